package e2e

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// computer is a machine that starts from a disk image.
type computer struct {
	t   *testing.T
	dir string
	qmp net.Conn
	in  *bufio.Scanner
}

// startComputer needs an emulator of a whole machine with UEFI.
func startComputer(t *testing.T, disk string) *computer {
	t.Helper()
	c := &computer{t: t, dir: t.TempDir()}
	socket := filepath.Join(c.dir, "qmp")
	args := []string{"-m", "2048", "-smp", "2", "-drive", "if=pflash,format=raw,readonly=on,file=" + firmware, "-drive", "if=virtio,format=raw,file=" + disk,
		"-vga", "none", "-device", "virtio-gpu-pci,xres=1280,yres=800", "-device", "qemu-xhci", "-device", "usb-tablet", "-device", "usb-kbd", "-display", "none",
		"-netdev", "user,id=n,restrict=on", "-device", "virtio-net-pci,netdev=n", "-serial", "file:" + filepath.Join(c.dir, "console"), "-qmp", "unix:" + socket + ",server=on,wait=off"}
	// The processor is emulated: that of the machine is not always there for it, and not
	// always whole where it is.
	args = append(args, "-accel", "tcg,thread=multi", "-cpu", "Nehalem")
	cmd := exec.Command("qemu-system-x86_64", args...)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if raw, _ := os.ReadFile(filepath.Join(c.dir, "console")); t.Failed() {
			t.Logf("console: %s", raw[max(0, len(raw)-4000):])
		}
	})
	ring.Await(t, func() bool {
		var err error
		c.qmp, err = net.Dial("unix", socket)
		return err == nil
	}, "the emulator's socket")
	t.Cleanup(func() { _ = c.qmp.Close() })
	c.in = bufio.NewScanner(c.qmp)
	c.do("qmp_capabilities", map[string]any{})
	return c
}

const firmware = "/usr/share/OVMF/OVMF_CODE_4M.fd"

// do has the emulator carry out a command of its own.
func (c *computer) do(name string, arguments any) {
	c.t.Helper()
	require.NoError(c.t, json.NewEncoder(c.qmp).Encode(map[string]any{"execute": name, "arguments": arguments}))
	for c.in.Scan() {
		var out struct {
			Return json.RawMessage `json:"return"`
			Error  json.RawMessage `json:"error"`
		}
		require.NoError(c.t, json.Unmarshal(c.in.Bytes(), &out))
		require.Empty(c.t, string(out.Error), name)
		if out.Return != nil {
			return
		}
	}
	require.FailNow(c.t, "the emulator has ended")
}

// awaitConsole waits until a text has been on the console so many times.
func (c *computer) awaitConsole(text string, times int) {
	c.t.Helper()
	for end := time.Now().Add(15 * time.Minute); ; time.Sleep(time.Second) {
		raw, err := os.ReadFile(filepath.Join(c.dir, "console"))
		require.NoError(c.t, err)
		if strings.Count(string(raw), text) >= times {
			return
		}
		require.True(c.t, time.Now().Before(end), "the console has no %q", text)
	}
}

// The disk image of a cabinet's computer starts on a machine without a network, takes what
// its installer has put beside the starter, and starts agent and screen, again after a power
// cut. What the screen shows is not judged here: a browser is too slow in an emulator.
func TestTheImageOfACabinetStarts(t *testing.T) {
	ring.SkipUnlessFull(t, "builds a disk image from Debian's packages, and starts it")
	if os.Getuid() != 0 {
		t.Skip("only root makes the files of another system")
	}
	for _, tool := range []string{"mmdebstrap", "mcopy", "mkfs.vfat", "mke2fs", "sfdisk", "qemu-system-x86_64"} {
		_, err := exec.LookPath(tool)
		ring.Needs(t, ring.EnvTools, tool, err == nil)
	}
	_, err := os.Stat(firmware)
	ring.Needs(t, ring.EnvTools, "ovmf", err == nil)
	dir := t.TempDir()
	disk := os.Getenv("POSTERN_IMAGE") // one that is there
	if disk == "" {
		makePackages(t, dir, "v1.2.3", "amd64")
		disk = filepath.Join(dir, "cabinet.img")
		cmd := exec.CommandContext(t.Context(), "../../deploy/kiosk/image", disk, dir)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "CMDLINE=console=ttyS0 systemd.journald.forward_to_console=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	writeFile(t, filepath.Join(dir, "secrets.json"), secretsWithoutCloud(t))
	writeFile(t, filepath.Join(dir, "edge.yaml"), "data: /var/lib/postern/edge\nkiosk: {name: Acme Logistics, phone: +1 416 555 0100}\n")
	for _, name := range []string{"secrets.json", "edge.yaml"} {
		out, err := exec.CommandContext(t.Context(), "mcopy", "-o", "-i", disk+"@@1M", filepath.Join(dir, name), "::/postern/"+name).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	c := startComputer(t, disk)
	c.awaitConsole("Finished postern-setup.service", 1)
	c.awaitConsole("the cabinet's screen is at http://127.0.0.1:8091", 1)
	c.awaitConsole("New session c1 of user postern-kiosk", 1)
	out, err := exec.CommandContext(t.Context(), "mdir", "-b", "-i", disk+"@@1M", "::/postern").CombinedOutput()
	require.NotContains(t, string(out), ".", "what was put beside the starter is taken, and gone: %v", err)

	c.do("system_reset", map[string]any{}) // the power fails
	c.awaitConsole("the cabinet's screen is at http://127.0.0.1:8091", 2)
	c.awaitConsole("New session c1 of user postern-kiosk", 2)
}

// A kernel that is upgraded, a new initrd and a kernel that is removed reach the start partition of
// a cabinet by the scripts of Debian's packages.
func TestAnUpgradeOfTheKernelReachesTheStartPartition(t *testing.T) {
	ring.SkipUnlessFull(t, "makes a Debian system")
	if os.Getuid() != 0 {
		t.Skip("only root makes the files of another system")
	}
	_, err := exec.LookPath("mmdebstrap")
	ring.Needs(t, ring.EnvTools, "mmdebstrap", err == nil)
	root := filepath.Join(t.TempDir(), "root")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "SYSTEMD_RELAX_ESP_CHECKS=1") // the partition is none here
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %v: %s", name, args, out)
		return string(out)
	}
	run("mmdebstrap", "--variant=apt", "--format=directory", "--components=main", "--include=systemd-sysv,udev,kmod,linux-image-amd64,systemd-boot,systemd-boot-efi,zstd,initramfs-tools", "trixie", root)
	efi := filepath.Join(root, "boot", "efi")
	require.NoError(t, os.MkdirAll(efi, 0o755))
	for _, m := range [][]string{{"tmpfs", efi}, {"proc", filepath.Join(root, "proc")}} {
		run("mount", "-t", m[0], m[0], m[1])
		t.Cleanup(func() { _ = exec.Command("umount", m[1]).Run() })
	}
	run("../../deploy/kiosk/starter", root, "console=ttyS0")
	entries := func() (versions []string) {
		files, err := filepath.Glob(filepath.Join(efi, "loader", "entries", "*.conf"))
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "cabinet-"), ".conf")
			versions = append(versions, version)
			require.Contains(t, string(text), "root=LABEL=postern-root rw quiet")
			require.Contains(t, string(text), "console=ttyS0")
			require.NotContains(t, string(text), "/boot/efi", "paths are those of the partition")
			for _, kind := range []string{"linux", "initrd"} {
				_, path, found := strings.Cut(string(text), "\n"+kind+" ")
				require.True(t, found, "%s: %s", version, text)
				path, _, _ = strings.Cut(strings.TrimSpace(path), "\n")
				require.FileExists(t, filepath.Join(efi, path))
			}
		}
		return versions
	}
	old := entries()
	require.Len(t, old, 1)
	require.FileExists(t, filepath.Join(efi, "EFI", "BOOT", "BOOTX64.EFI"))

	// An upgrade: what the package of a kernel does once its files are there.
	const next = "99.0.0-amd64"
	for _, name := range []string{"vmlinuz-", "config-"} {
		run("cp", filepath.Join(root, "boot", name+old[0]), filepath.Join(root, "boot", name+next))
	}
	run("cp", "-a", filepath.Join(root, "usr", "lib", "modules", old[0]), filepath.Join(root, "usr", "lib", "modules", next))
	run("chroot", root, "run-parts", "--exit-on-error", "--arg="+next, "--arg=/boot/vmlinuz-"+next, "/etc/kernel/postinst.d")
	require.ElementsMatch(t, []string{old[0], next}, entries())

	copied := filepath.Join(efi, "cabinet", next, "initrd.img-"+next)
	require.NoError(t, os.WriteFile(copied, nil, 0o600))
	run("chroot", root, "update-initramfs", "-u", "-k", next)
	info, err := os.Stat(copied)
	require.NoError(t, err)
	require.NotZero(t, info.Size(), "a new initrd is copied")

	run("chroot", root, "run-parts", "--exit-on-error", "--arg="+old[0], "--arg=/boot/vmlinuz-"+old[0], "/etc/kernel/postrm.d")
	require.Equal(t, []string{next}, entries())
}

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
)

// computer is a machine with a screen that starts from a disk image.
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

// screen is what a person sees.
func (c *computer) screen() image.Image {
	c.t.Helper()
	file := filepath.Join(c.dir, "screen.png")
	c.do("screendump", map[string]any{"filename": file, "format": "png"})
	f, err := os.Open(file)
	require.NoError(c.t, err)
	defer f.Close() //nolint:errcheck // read only
	img, err := png.Decode(f)
	require.NoError(c.t, err)
	if dir := os.Getenv(browsertest.Pictures); dir != "" {
		raw, _ := os.ReadFile(file)
		_ = os.WriteFile(filepath.Join(dir, "image.png"), raw, 0o600) // the last one
	}
	return img
}

// share is how much of a screen has a colour, from 0 to 1.
func share(img image.Image, r, g, b uint32) float64 {
	n, all := 0, 0
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y += 4 {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x += 4 {
			pr, pg, pb, _ := img.At(x, y).RGBA()
			all++
			if pr>>8 == r && pg>>8 == g && pb>>8 == b {
				n++
			}
		}
	}
	return float64(n) / float64(all)
}

// press types keys together.
func (c *computer) press(keys ...string) {
	c.t.Helper()
	var list []map[string]string
	for _, k := range keys {
		list = append(list, map[string]string{"type": "qcode", "data": k})
	}
	c.do("send-key", map[string]any{"keys": list})
	time.Sleep(700 * time.Millisecond)
}

// touch touches the screen at a place, both from 0 to 1.
func (c *computer) touch(x, y float64) {
	c.t.Helper()
	axis := func(name string, at float64) map[string]any {
		return map[string]any{"type": "abs", "data": map[string]any{"axis": name, "value": int(at * 32767)}}
	}
	button := func(down bool) map[string]any {
		return map[string]any{"type": "btn", "data": map[string]any{"button": "left", "down": down}}
	}
	c.do("input-send-event", map[string]any{"events": []any{axis("x", x), axis("y", y)}})
	time.Sleep(200 * time.Millisecond)
	c.do("input-send-event", map[string]any{"events": []any{button(true)}})
	time.Sleep(100 * time.Millisecond)
	c.do("input-send-event", map[string]any{"events": []any{button(false)}})
	time.Sleep(time.Second)
}

// awaitScreen waits until the screen's ground and cards are those of the cabinet's page.
func (c *computer) awaitScreen(patience time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Second) {
		img := c.screen()
		if share(img, 0xf5, 0xf2, 0xec) > 0.1 && share(img, 0xff, 0xfd, 0xf9) > 0.1 {
			return
		}
		require.True(c.t, time.Now().Before(end), "the cabinet's page is not on the screen")
	}
}

// The disk image of a cabinet's computer starts on a machine without a network, takes what
// its installer has put beside the starter, and shows the cabinet's screen, which people
// use; no key leads anywhere else, and the power may be cut.
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
	c.awaitScreen(10 * time.Minute)
	time.Sleep(3 * time.Second)
	first := c.screen()
	for _, keys := range [][]string{{"ctrl", "t"}, {"ctrl", "n"}, {"ctrl", "l"}, {"f11"}, {"f12"}, {"ctrl", "shift", "i"}, {"ctrl", "o"}, {"ctrl", "p"}, {"alt", "f4"}, {"ctrl", "w"}, {"alt", "home"}, {"ctrl", "h"},
		{"ctrl", "alt", "f2"}, {"ctrl", "alt", "f1"}, {"ctrl", "alt", "delete"}, {"meta_l"}, {"alt", "tab"}, {"esc"}} {
		c.press(keys...)
	}
	c.awaitScreen(time.Minute) // a browser that was ended starts again
	require.Less(t, differ(first, c.screen()), 0.05, "the same screen as before")
	c.touch(0.8, 0.6) // "Pick up"
	require.Greater(t, differ(first, c.screen()), 0.05, "people can use it")

	// The power fails.
	c.do("system_reset", map[string]any{})
	time.Sleep(5 * time.Second)
	c.awaitScreen(10 * time.Minute)
	out, err := exec.CommandContext(t.Context(), "mdir", "-b", "-i", disk+"@@1M", "::/postern").CombinedOutput()
	require.Equal(t, "", string(out), "what was put beside the starter is taken, and gone: %v", err)
}

// differ is how much of two screens differs, from 0 to 1.
func differ(a, b image.Image) float64 {
	n, all := 0, 0
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y += 4 {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x += 4 {
			all++
			if fmt.Sprint(a.At(x, y)) != fmt.Sprint(b.At(x, y)) {
				n++
			}
		}
	}
	return float64(n) / float64(all)
}

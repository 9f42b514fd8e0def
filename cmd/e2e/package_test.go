package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// machine is a copy of this one, on which packages are installed: what is written to it is
// in a folder of the test.
type machine struct {
	dir      string // with the folders upper, work and root
	packages string
}

// newMachine needs root, for mounts of its own and another root.
func newMachine(t *testing.T, packages string) machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root starts programs in another root")
	}
	for _, tool := range []string{"dpkg", "unshare", "chroot", "setpriv", "deb-systemd-helper"} {
		_, err := exec.LookPath(tool)
		ring.Needs(t, ring.EnvTools, tool, err == nil)
	}
	m := machine{dir: t.TempDir(), packages: packages}
	for _, name := range []string{"upper", "work", "root"} {
		require.NoError(t, os.Mkdir(filepath.Join(m.dir, name), 0o755))
	}
	return m
}

// command is one that runs on the machine, one at a time.
func (m machine) command(t *testing.T, args ...string) *exec.Cmd {
	const enter = `mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount --bind /proc "$1/root/proc"
mkdir -p "$1/root/packages"
mount --bind "$2" "$1/root/packages"
root=$1/root
shift 2
exec chroot "$root" "$@"`
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "sh", "-euc", enter, "enter", m.dir, m.packages}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

func (m machine) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.command(t, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", args, out)
	return string(out)
}

// file is where this machine finds what the other one has written.
func (m machine) file(name string) string { return filepath.Join(m.dir, "upper", name) }

// unit is a value of a unit that is installed.
func (m machine) unit(t *testing.T, name, key string) string {
	t.Helper()
	raw, err := os.ReadFile(m.file("/usr/lib/systemd/system/" + name + ".service"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(string(raw))
	require.NotNil(t, found, "%s of %s", key, name)
	return found[1]
}

// start runs a unit's command as its user.
func (m machine) start(t *testing.T, unit string) *process {
	t.Helper()
	user := m.unit(t, unit, "User")
	args := []string{"setpriv", "--reuid=" + user, "--regid=" + m.unit(t, unit, "Group"), "--clear-groups", "env", "--chdir=" + m.unit(t, unit, "WorkingDirectory")}
	p := &process{name: unit, cmd: m.command(t, append(args, strings.Fields(m.unit(t, unit, "ExecStart"))...)...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.run(t)
	return p
}

// makePackages builds the Debian packages for a kind of processor.
func makePackages(t *testing.T, dir, version string, archs ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "packages", "DEB_ARCHS="+strings.Join(archs, " "), "VERSION="+version, "DIST="+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// awaitPage waits for a page of a process.
func awaitPage(t *testing.T, p *process, address string) {
	t.Helper()
	ring.Await(t, func() bool {
		a, err := http.Get(address)
		return err == nil && a.Body.Close() == nil && a.StatusCode == http.StatusOK
	}, p.name, address)
}

// Packages of one commit have the same bytes each time. They are installed, upgraded,
// removed and purged as Debian's policy has it, and the programs run by the units'
// commands: the cloud, and the agent of a cabinet of it.
func TestPackages(t *testing.T) {
	ring.SkipUnlessFull(t, "builds programs anew, without paths of this machine")
	t.Parallel()
	dir, again := t.TempDir(), t.TempDir()
	m := newMachine(t, dir)
	arch := runtime.GOARCH
	makePackages(t, dir, "v1.2.3", arch)
	makePackages(t, again, "v1.2.3", arch)
	files := map[string]string{}
	for _, name := range []string{"postern-cloud", "postern-edge"} {
		file := fmt.Sprintf("%s_1.2.3_%s.deb", name, arch)
		files[name] = "/packages/" + file
		a, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(again, file))
		require.NoError(t, err)
		require.True(t, string(a) == string(b), "%s: other bytes for the same commit", file)
	}
	checkPolicy(t, dir)

	m.run(t, "dpkg", "--install", files["postern-cloud"], files["postern-edge"])
	for _, name := range []string{"cloud", "edge"} {
		unit := "postern-" + name
		ours, err := os.ReadFile("../../deploy/systemd/" + unit + ".service")
		require.NoError(t, err)
		theirs, err := os.ReadFile(m.file("/usr/lib/systemd/system/" + unit + ".service"))
		require.NoError(t, err)
		require.Equal(t, string(ours), string(theirs))
		_, err = os.Lstat(m.file("/etc/systemd/system/multi-user.target.wants/" + unit + ".service"))
		require.NoError(t, err, "the unit is enabled")
		info, err := os.Stat(m.file("/var/lib/" + m.unit(t, unit, "StateDirectory")))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
		require.NotZero(t, info.Sys().(*syscall.Stat_t).Uid)
		require.Contains(t, m.run(t, "/usr/bin/"+unit, "--version"), "v1.2.3")
		require.Contains(t, m.run(t, "/usr/bin/"+unit, "--check", "--config", "/etc/postern/"+name+".yaml"), "in order")
	}
	require.Contains(t, m.run(t, "dpkg-query", "--show", "--showformat=${Conffiles}", "postern-edge"), "/etc/postern/edge.yaml")
	require.NoFileExists(t, m.file(m.unit(t, "postern-edge", "ConditionPathExists")), "a cabinet that is not enrolled is not started")

	bin := build(t)
	key, releases := bin.releaseKey(t)

	// Settings of an administrator stay in an upgrade.
	web, screen := freeAddress(t), freeAddress(t)
	appendText(t, m.file("/etc/postern/cloud.yaml"), fmt.Sprintf("listen: %s\nmqtt: {listen: %s}\nadmin: {listen: \"\"}\n%s\n", web, freeAddress(t), releases))
	appendText(t, m.file("/etc/postern/edge.yaml"), fmt.Sprintf("kiosk: {listen: %s}\n", screen))
	m.run(t, "dpkg", "--install", files["postern-cloud"], files["postern-edge"])
	raw, err := os.ReadFile(m.file("/etc/postern/edge.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(raw), screen)

	as := []string{"setpriv", "--reuid=postern", "--regid=postern", "--clear-groups"}
	m.run(t, append(as, "/usr/bin/postern-cloud", "demo-data", "--config", "/etc/postern/cloud.yaml")...)
	secrets := m.unit(t, "postern-edge", "ConditionPathExists")
	m.run(t, "install", "-m", "0600", "-o", "postern", "-g", "postern", "/var/lib/postern/cloud/devices/CAB-1001.json", secrets)
	cloud := m.start(t, "postern-cloud")
	awaitPage(t, cloud, "http://"+web+"/readyz")
	cloud.stop(t)
	edge := m.start(t, "postern-edge")
	awaitPage(t, edge, "http://"+screen+"/api/state")
	edge.stop(t)

	// An update is the user's to install and takes the place of the packaged program.
	update, err := os.ReadFile(bin.signedAgent(t, key, "1.3.0"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "update"), update, 0o644))
	install := []string{"/usr/bin/postern-edge", "--config", "/etc/postern/edge.yaml", "install-update", "/packages/update"}
	out, err := m.command(t, install...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "with runuser -u postern -- before it")
	require.Contains(t, m.run(t, append(as, install...)...), "version 1.3.0 is installed")
	edge = m.start(t, "postern-edge")
	awaitPage(t, edge, "http://"+screen+"/api/state")
	ring.Await(t, func() bool {
		return strings.Contains(edge.text(), `"the cabinet runs","device":"CAB-1001","version":"v1.3.0"`)
	}, "the update runs")
	edge.stop(t)

	m.run(t, "dpkg", "--remove", "postern-cloud", "postern-edge")
	for _, kept := range []string{"/var/lib/postern/cloud/postern.db", "/var/lib/postern/edge/edge.db", secrets, "/etc/postern/edge.yaml", "/etc/postern/cloud.yaml"} {
		require.FileExists(t, m.file(kept))
	}
	require.NoFileExists(t, m.file("/usr/bin/postern-edge"))
	m.run(t, "dpkg", "--purge", "postern-cloud", "postern-edge")
	for _, gone := range []string{"/var/lib/postern", "/etc/postern", "/etc/systemd/system/multi-user.target.wants/postern-edge.service"} {
		_, err := os.Lstat(m.file(gone))
		require.ErrorIs(t, err, fs.ErrNotExist, gone)
	}
}

func appendText(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// checkPolicy has Debian's own judge find no error in the packages of a folder.
func checkPolicy(t *testing.T, dir string) {
	t.Helper()
	lintian, err := exec.LookPath("lintian")
	ring.Needs(t, ring.EnvTools, "lintian", err == nil)
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	cmd := exec.CommandContext(t.Context(), lintian, append([]string{"--fail-on", "error", "--tag-display-limit", "0"}, files...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // it leaves files behind
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// secretsWithoutCloud is a secrets file of a cabinet whose cloud does not answer.
func secretsWithoutCloud(t *testing.T) string {
	t.Helper()
	raw, err := json.Marshal(access.Secrets{DeviceCode: "CAB-1", DeviceSecret: "secret", CodeSalt: make([]byte, passcode.SaltSize), CodeKey: make([]byte, passcode.KeySize),
		Keys: []wire.PinnedKey{{ID: make([]byte, 8), Key: make([]byte, 32)}}, Brokers: []string{"tcp://127.0.0.1:1"}, Prefix: "tms"})
	require.NoError(t, err)
	return string(raw)
}

// The agent's packages for other processors hold programs that run, in an emulator.
func TestPackagesOfOtherProcessors(t *testing.T) {
	ring.SkipUnlessFull(t, "builds programs anew, for other processors")
	t.Parallel()
	emulators := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static", "armhf": "qemu-arm-static"}
	delete(emulators, runtime.GOARCH)
	for _, emulator := range emulators {
		_, err := exec.LookPath(emulator)
		ring.Needs(t, ring.EnvTools, emulator, err == nil)
	}
	_, err := exec.LookPath("dpkg-deb")
	ring.Needs(t, ring.EnvTools, "dpkg-deb", err == nil)
	for arch, emulator := range emulators {
		dir, root := t.TempDir(), t.TempDir()
		makePackages(t, dir, "v1.2.3", arch)
		checkPolicy(t, dir)
		out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--extract", filepath.Join(dir, "postern-edge_1.2.3_"+arch+".deb"), root).CombinedOutput()
		require.NoError(t, err, "%s", out)
		program := filepath.Join(root, "usr/bin/postern-edge")
		out, err = exec.CommandContext(t.Context(), emulator, program, "--version").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "v1.2.3")
		data := filepath.Join(root, "data")
		require.NoError(t, os.Mkdir(data, 0o700))
		writeFile(t, filepath.Join(data, "secrets.json"), secretsWithoutCloud(t))
		screen := freeAddress(t)
		p := &process{name: arch, cmd: exec.Command(emulator, program, "--data", data, "--kiosk-listen", screen), done: make(chan error, 1)}
		p.cmd.Stderr = p
		p.run(t)
		awaitPage(t, p, "http://"+screen+"/api/state")
		require.Contains(t, p.text(), "the cabinet runs")
		p.stop(t)
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	edgeupdate "github.com/postern-io/postern/edge/update"
	"github.com/postern-io/postern/internal/ring"
)

// updateRig is a cabinet of the sandbox, which knows the key of a release, its boards and its
// cloud, as real processes.
type updateRig struct {
	t      *testing.T
	dir    string
	key    string // of releases
	screen string
	boards *process
	agent  *process // the launcher
}

func newUpdateRig(t *testing.T) *updateRig {
	bin := build(t)
	r := &updateRig{t: t}
	var setting string
	r.key, setting = bin.releaseKey(t)
	free := commands{}.ports(t)
	r.dir = installed(t, bin, func(text string) string { return strings.Replace(free(text), "release_keys: []", setting, 1) })
	r.screen = "http://" + free("127.0.0.1:8091")
	r.start("cloud", "--config", "configs/cloud.yaml")
	r.boards = r.start("firmware-sim", "--config", "configs/cabinet.yaml", "--tcp", free("127.0.0.1:7001"))
	return r
}

func (r *updateRig) start(name string, args ...string) *process {
	p := &process{name: name, cmd: exec.Command("bin/"+name, args...), done: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Stderr = r.dir, p
	p.run(r.t)
	return p
}

func (r *updateRig) launch() { r.agent = r.start("edge", "--config", "configs/edge.yaml", "launch") }

// releaseKey makes a key of releases, and the cloud's setting of it.
func (b programs) releaseKey(t *testing.T) (file, setting string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "release.pem")
	out, err := exec.CommandContext(t.Context(), filepath.Join(string(b), "release"), "key", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	setting = regexp.MustCompile(`release_keys: \[.+\]`).FindString(string(out))
	require.NotEmpty(t, setting)
	return file, setting
}

// signedAgent builds the agent as another version and signs it.
func (b programs) signedAgent(t *testing.T, key, version string) (file string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "edge")
	file = program + ".update"
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-s -w -X github.com/postern-io/postern/cmd/internal/cli.release=v"+version, "-o", program, "../edge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), filepath.Join(string(b), "release"), "sign", "--key", key, "--release", version, program, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// install installs another version of the agent.
func (r *updateRig) install(version string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "bin/edge", "--config", "configs/edge.yaml", "install-update", built.signedAgent(r.t, r.key, version))
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
}

// runs waits until the agent that runs says that it is of a version.
func (r *updateRig) runs(version string) {
	r.t.Helper()
	ring.Await(r.t, func() bool { return strings.Contains(r.health(), fmt.Sprintf(`"agent":%q`, version)) }, version, r.agent.tail())
}

// health is the cabinet's own, as its page has it; "" when it does not run.
func (r *updateRig) health() string {
	v, err := getState(r.screen, filepath.Join(r.dir, "data", "edge-1001"))
	if err != nil {
		return ""
	}
	raw, err := json.Marshal(v.Health)
	require.NoError(r.t, err)
	return string(raw)
}

// child is the agent that the launcher has started, 0 for none.
func (r *updateRig) child() int {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.agent.cmd.Process.Pid))
	require.NoError(r.t, err)
	for _, f := range files {
		raw, _ := os.ReadFile(f)
		if words := strings.Fields(string(raw)); len(words) > 0 {
			pid, err := strconv.Atoi(words[0])
			require.NoError(r.t, err)
			return pid
		}
	}
	return 0
}

// A real agent is updated and proves itself with its boards and its cloud; it ends with its
// launcher, however that ends. An update that is killed before it is healthy goes back by
// itself.
func TestAgentIsUpdated(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessCheck(t, "cmd/edge tries the launcher with small programs")
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("the launcher's children are found in /proc")
	}
	r := newUpdateRig(t)
	r.launch()
	ring.Await(t, func() bool { return strings.Contains(r.health(), `"agent":`) })
	r.install("1.1.0")
	r.agent.stop(t)
	r.launch()
	r.runs("v1.1.0")
	ring.Await(t, func() bool { return strings.Contains(r.agent.text(), "the update is healthy") }, r.agent.tail())

	r.agent.kill(t)
	ring.Await(t, func() bool { return r.health() == "" }, "the agent ends with its launcher")
	r.launch()
	r.runs("v1.1.0")

	r.install("1.2.0")
	r.boards.kill(t) // no start from now on is healthy
	r.agent.stop(t)
	r.launch()
	killed := 0
	for range edgeupdate.MaxStarts {
		ring.Await(t, func() bool {
			pid := r.child()
			return pid != 0 && pid != killed && strings.Contains(r.health(), `"v1.2.0"`)
		}, r.agent.tail())
		killed = r.child()
		require.NoError(t, syscall.Kill(killed, syscall.SIGKILL))
	}
	r.runs("v1.1.0")
	require.Contains(t, r.agent.text(), "an update is given up")
	r.agent.stop(t)
}

package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	edgeupdate "github.com/postern-io/postern/edge/update"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
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

// buildAgent builds the agent as a version.
func buildAgent(t *testing.T, version string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "edge")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-s -w -X github.com/postern-io/postern/cmd/internal/cli.release=[[postern-release:v"+version+"]]", "-o", program, "../edge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// signedAgent builds the agent as another version and signs it.
func (b programs) signedAgent(t *testing.T, key, version string) (file string) {
	t.Helper()
	program := buildAgent(t, version)
	file = program + ".update"
	out, err := exec.CommandContext(t.Context(), filepath.Join(string(b), "release"), "sign", "--key", key, "--release", version, program, file).CombinedOutput()
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
	r.killTrials("1.2.0")
	r.runs("v1.1.0")
	require.Contains(t, r.agent.text(), "an update is given up")
	r.agent.stop(t)
}

// staff calls the rig's cloud as the sandbox's administrator.
func (r *updateRig) staff() (person, server.Sandbox) {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dir, "sandbox.json"))
	require.NoError(r.t, err)
	var box server.Sandbox
	require.NoError(r.t, json.Unmarshal(raw, &box))
	return person{base: box.BaseURL, token: box.Admin.Token}, box
}

// offer adds a version of the agent to the cloud.
func (r *updateRig) offer(file string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "bin/cloud", "--config", "configs/cloud.yaml", "program", "add", file)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// order sends the command update.
func (r *updateRig) order(version string) answered {
	p, box := r.staff()
	return p.do(r.t, "POST", fmt.Sprintf("/api/v1/smart-lockers/devices/%d/command", box.Devices[0].DeviceID), map[string]any{"type": "update", "version": version})
}

// said is what the cabinet said of its program, as the cloud shows it.
func (r *updateRig) said() map[string]any {
	p, box := r.staff()
	program, _ := p.do(r.t, "GET", fmt.Sprintf("/api/v1/smart-lockers/devices/%d/health", box.Devices[0].DeviceID), nil).at("health", "program").(map[string]any)
	return program
}

func (r *updateRig) says(want map[string]any) {
	r.t.Helper()
	ring.Await(r.t, func() bool {
		said := r.said()
		for member, value := range want {
			if said[member] != value {
				return false
			}
		}
		return true
	}, fmt.Sprint(want, r.said()), r.agent.tail())
}

// A real agent under its launcher gets a newer program by the cloud's command and proves
// itself. Then it gets one by a roll-out that does not work: it goes back, the roll-out stops,
// and the cloud says so. A file that another key signed is not offered, and an older version is
// refused by the cabinet.
func TestAgentIsUpdatedByTheCloud(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "edge/update, edge/agent and cloud/artefact try the parts")
	r := newUpdateRig(t)
	r.launch()
	ring.Await(t, func() bool { return strings.Contains(r.health(), `"agent":`) })
	ring.Await(t, func() bool {
		p, _ := r.staff()
		resp, err := page.Get(p.base + "/api/openapi.json")
		return err == nil && resp.Body.Close() == nil
	})
	r.says(map[string]any{"takes_updates": true, "platform": runtime.GOOS + "/" + runtime.GOARCH})

	other, _ := built.releaseKey(t)
	out, err := r.offer(built.signedAgent(t, other, "1.1.0"))
	require.Error(t, err)
	require.Contains(t, out, "signature does not verify")
	require.Equal(t, 404, r.order("1.1.0").status)

	good := built.signedAgent(t, r.key, "1.1.0")
	out, err = r.offer(good)
	require.NoError(t, err, out)
	require.Equal(t, 200, r.order("1.1.0").status)
	r.runs("v1.1.0")
	r.says(map[string]any{"version": "v1.1.0", "on_trial": false, "given_up": nil})

	out, err = r.offer(built.signedAgent(t, r.key, "1.0.9"))
	require.NoError(t, err, out)
	require.Equal(t, 200, r.order("1.0.9").status)
	ring.Await(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(r.dir, "data", "edge-1001", "versions", "state.json"))
		require.NoError(t, err)
		require.NotContains(t, string(raw), `"1.0.9"`)
		return r.outcome(wire.ReasonNotNewer)
	}, r.agent.tail())

	out, err = r.offer(built.signedAgent(t, r.key, "1.2.0"))
	require.NoError(t, err, out)
	r.boards.kill(t) // no start from now on is healthy
	p, box := r.staff()
	rollout := p.do(t, "POST", "/api/v1/smart-lockers/rollouts", map[string]any{"version": "1.2.0", "device_ids": []any{box.Devices[0].DeviceID}})
	require.Equal(t, 201, rollout.status, rollout.body)
	r.killTrials("1.2.0")
	r.says(map[string]any{"version": "v1.1.0", "given_up": "1.2.0"})
	r.runs("v1.1.0")
	require.Contains(t, r.agent.text(), "an update is given up")
	address := fmt.Sprintf("/api/v1/smart-lockers/rollouts/%v", rollout.at("rollout", "rollout_id"))
	ring.Await(t, func() bool {
		rollout = p.do(t, "GET", address, nil) // or that there were too many calls
		return rollout.at("rollout", "state") == "stopped"
	})
	require.Equal(t, "rolled_back", rollout.at("rollout", "reason"), rollout.body)
	require.Equal(t, []any{"v1.1.0", "1.2.0", "v1.1.0", "rolled_back"}, []any{rollout.at("rollout", "devices", 0, "version_before"), rollout.at("rollout", "devices", 0, "version_wanted"),
		rollout.at("rollout", "devices", 0, "version_now"), rollout.at("rollout", "devices", 0, "state")})
	r.agent.stop(t)
}

// outcome reports whether a command of the cabinet ended for a reason.
func (r *updateRig) outcome(reason string) bool {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "data", "cloud", "postern.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	require.NoError(r.t, err)
	defer db.Close()
	var n int
	require.NoError(r.t, db.QueryRowContext(r.t.Context(), "SELECT COUNT(*) FROM command WHERE kind = 'update' AND reason = $1", reason).Scan(&n))
	return n > 0
}

// killTrials kills each start of a version on trial.
func (r *updateRig) killTrials(version string) {
	r.t.Helper()
	killed := 0
	for range edgeupdate.MaxStarts {
		ring.Await(r.t, func() bool {
			pid := r.child()
			return pid != 0 && pid != killed && strings.Contains(r.health(), fmt.Sprintf(`"v%s"`, version))
		}, r.agent.tail())
		killed = r.child()
		require.NoError(r.t, syscall.Kill(killed, syscall.SIGKILL))
	}
}

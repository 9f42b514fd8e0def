package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/firmware-sim/page"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wiring"
)

func file(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestHelpVersionAndCheckTouchNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--help"}, "--script"},
		{[]string{"-version"}, "firmware-sim"},
		{[]string{"--version"}, "firmware-sim"},
		{[]string{"--faults"}, "flip_keep_sum"},
		{[]string{"-check"}, "1 boards, 8 doors"},
		{[]string{"-check", "-layout", "large"}, "1 boards, 24 doors"},
		{[]string{"-check", "-config", "../../configs/cabinet.yaml"}, "2 boards, 16 doors"},
		{[]string{"--check", "--script", file(t, "1s push 3\n+1s close 3")}, "2 script steps"},
	} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), c.args, &out, io.Discard), "%v", c.args)
		require.Contains(t, out.String(), c.want, "%v", c.args)
	}
}

func TestWhatIsPrintedCanBeReadBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--print", "--fault", "echo=0.5", "--person"}, &out, io.Discard))
	cfg, err := readConfig(file(t, out.String()))
	require.NoError(t, err)
	require.Equal(t, 0.5, cfg.Faults[board.Echo])
	require.Len(t, cfg.Doors, 8)
	require.NotNil(t, cfg.Person)
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nonsense"}, "--help"},
		{[]string{"--config", "/nowhere"}, "/nowhere"},
		{[]string{"--config", file(t, "doorz: []")}, "doorz"},
		{[]string{"--config", file(t, `{"boards": [], "doors": []}`)}, "no boards"},
		{[]string{"--fault", "gremlins=1"}, "gremlins"},
		{[]string{"--check", "--script", file(t, "1s close 99")}, "close 99"},
		{[]string{"--check", "--script", file(t, "1s dance 1")}, "line 1"},
		{[]string{"--tcp", "nowhere"}, "nowhere"},
		{[]string{"--page", "0.0.0.0:7080"}, "--page 0.0.0.0:7080: the host must be an address of the loopback, such as 127.0.0.1:7080"},
		{[]string{"--page", "7080"}, "--page 7080"},
		{[]string{"--layout", "huge"}, "small"},
		{[]string{"--layout", "large", "--config", "../../configs/cabinet.yaml"}, "--layout is for a cabinet without --config"},
	} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		require.ErrorContains(t, err, c.want, "%v", c.args)
	}
}

// watcher is a writer that tests can read while it is written.
type watcher struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func TestPlaysAScriptAndPrintsTheTruthWhenStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	var live watcher
	done := make(chan error, 1)
	script := file(t, "0s put 2\n+10ms force 2 # someone with a crowbar\n+10ms close 2\n")
	go func() {
		done <- run(ctx, []string{"--tcp", "127.0.0.1:0", "--script", script}, &out, &live)
	}()
	ring.Await(t, func() bool { return strings.Contains(live.String(), "script is over") })
	cancel()
	require.NoError(t, <-done)
	require.Contains(t, live.String(), "tcp://127.0.0.1:")
	var kinds []board.FactKind
	for dec := json.NewDecoder(&out); ; {
		var f board.Fact
		if err := dec.Decode(&f); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		require.EqualValues(t, 2, f.Door)
		kinds = append(kinds, f.Kind)
	}
	require.Equal(t, []board.FactKind{board.ItemIn, board.HookOut, board.Opened, board.Closed, board.HookIn}, kinds)
}

// Without settings everything that the next program needs is printed: the line that
// edge --line takes, and the page with its doors.
func TestAStartWithoutSettingsSaysWhereEverythingIs(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	for range 2 { // the second finds the usual ports taken
		ctx, cancel := context.WithCancel(t.Context())
		var live watcher
		done := make(chan error, 1)
		go func() { done <- run(ctx, []string{"--layout", "large"}, io.Discard, &live) }()
		defer func() { cancel(); require.NoError(t, <-done) }()
		said := regexp.MustCompile(`doors can be touched at (http://127\.0\.0\.1:[0-9]+/CABINET)\nline main is at (tcp://127\.0\.0\.1:[0-9]+)\nno cabinet is enrolled here yet .*\bedge enrol with the line of the cabinet on the cloud's set-up page.*\nnext: edge --line (tcp://127\.0\.0\.1:[0-9]+)\n`)
		ring.Await(t, func() bool { return said.MatchString(live.String()) }, "the addresses")
		m := said.FindStringSubmatch(live.String())
		require.Equal(t, m[2], m[3])
		conn, err := net.Dial("tcp", strings.TrimPrefix(m[2], "tcp://"))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		r, err := http.Get(m[1] + "/state")
		require.NoError(t, err)
		var state page.State
		require.NoError(t, json.NewDecoder(r.Body).Decode(&state))
		require.NoError(t, r.Body.Close())
		large, _ := wiring.Find("large")
		var sizes []string
		for _, d := range state.Doors {
			sizes = append(sizes, d.Size)
		}
		require.Equal(t, large.Each(), sizes)
		require.False(t, state.Guests, "no parcel ever waits here")
		for _, a := range m[1:3] {
			require.False(t, addresses[a], a)
			addresses[a] = true
		}
	}
}

// Where an agent has its folder, it is started at once.
func TestTheNextCommandIsToEnrolOnANewInstall(t *testing.T) {
	t.Chdir(t.TempDir())
	var said []string
	say := func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
	sayNext("tcp://127.0.0.1:7001", say)
	require.Len(t, said, 2)
	require.Contains(t, said[0], "edge enrol")
	require.NoError(t, os.MkdirAll(agentData, 0o700))
	said = nil
	sayNext("tcp://127.0.0.1:7001", say)
	require.Equal(t, []string{"next: edge --line tcp://127.0.0.1:7001"}, said)
}

func TestATakenAddressNamesItsFlag(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	for flag, other := range map[string]string{"--tcp": "--page", "--page": "--tcp"} {
		err := run(t.Context(), []string{flag, ln.Addr().String(), other, "127.0.0.1:0"}, io.Discard, io.Discard)
		require.ErrorContains(t, err, "set "+flag+" to another address")
	}
}

// The cabinet that is played has the boards, channels and family of the layout that
// the set-up page offers under that name.
func TestLayoutsAreThoseOfTheSetUpPage(t *testing.T) {
	t.Parallel()
	for _, x := range wiring.Templates() {
		cfg, _, err := load(options{Layout: x.Name})
		require.NoError(t, err)
		require.Equal(t, []board.Board{{Name: wiring.Board, Line: wiring.Line, Family: wiring.Family}}, cfg.Boards)
		require.Len(t, cfg.Doors, x.Doors())
		for i, d := range cfg.Doors {
			require.Equal(t, board.Door{Number: uint(i + 1), Board: wiring.Board, Channel: uint(i + 1)}, d)
		}
	}
}

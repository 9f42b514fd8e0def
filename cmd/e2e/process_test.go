package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/internal/ring"
)

// programs is the folder of the built programs.
type programs string

// built is the folder for the programs that build makes.
var built programs

func TestMain(m *testing.M) {
	if text := os.Getenv(readerEnv); text != "" {
		readFeed(text)
	}
	dir, err := os.MkdirTemp("", "postern")
	if err != nil {
		log.Fatal(err)
	}
	built = programs(dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var buildOnce = sync.OnceValues(func() ([]byte, error) {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", string(built)+string(filepath.Separator), "../edge", "../cloud", "../release", "../firmware-sim", "../httpdevice")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd.CombinedOutput()
})

// build builds edge, cloud, release, firmware-sim and httpdevice as they are delivered, without cgo and
// tables for a debugger: once for all tests.
func build(t *testing.T) programs {
	t.Helper()
	ring.SkipUnlessCheck(t, "the same parts in one process, in simulated time")
	out, err := buildOnce()
	require.NoError(t, err, "%s", out)
	return built
}

// process is one started program. Its log is kept; only its own pid is ever
// signalled.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan error // the end of the process, once

	mu    sync.Mutex // guards log and ended
	log   bytes.Buffer
	ended bool
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) tail() string {
	s := p.text()
	return s[max(0, len(s)-3000):]
}

// start starts a program; what is left of it when the test ends is killed.
func (b programs) start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return b.startIn(t, nil, name, args...)
}

// startIn is start with more in the program's environment.
func (b programs) startIn(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(filepath.Join(string(b), name), args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p
	p.run(t)
	return p
}

func (p *process) run(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		if !p.over() {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
}

// startHands starts a program that is talked to by its standard input and output.
func (b programs) startHands(t *testing.T, name string, args ...string) (*process, *hands) {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(filepath.Join(string(b), name), args...), done: make(chan error, 1)}
	p.cmd.Stderr = p
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.run(t)
	return p, &hands{in: in, out: bufio.NewReader(out)}
}

func (p *process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// await waits for the end of the process.
func (p *process) await() error {
	err := <-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	return err
}

// kill ends a process without warning. One that had ended by itself fails the
// test.
func (p *process) kill(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		require.FailNow(t, p.name+" ended by itself", "%v\n%s", err, p.tail())
	default:
	}
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.await())
}

// stop asks a process to end and expects that it does so in order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM), "%s: %s", p.name, p.tail())
	require.NoError(t, p.await(), "%s: %s", p.name, p.tail())
}

// stacks ends a process and shows what its goroutines were about: how many were in which
// functions of ours, the innermost first.
func (p *process) stacks() string {
	if p.cmd.Process.Signal(syscall.SIGQUIT) != nil {
		return "it has ended"
	}
	text := ""
	for n := 0; n < 20 && (text == "" || len(text) != len(p.text())); n++ {
		text = p.text()
		time.Sleep(200 * time.Millisecond)
	}
	count := map[string]int{}
	_, text, _ = strings.Cut(text, "SIGQUIT")
	for _, g := range strings.Split(text, "\n\ngoroutine ")[1:] {
		head, frames, _ := strings.Cut(g, "\n")
		_, state, _ := strings.Cut(head, "[")
		state = state[:max(0, strings.IndexAny(state, ",]"))]
		var ours []string
		for line := range strings.SplitSeq(frames, "\n") {
			if name, is := strings.CutPrefix(line, "github.com/postern-io/postern/"); is && len(ours) < 3 && !strings.HasPrefix(line, "created by") {
				name, _, _ = strings.Cut(name, "({")
				name, _, _ = strings.Cut(name, "(0x")
				ours = append(ours, name)
			}
		}
		if len(ours) > 0 {
			count[state+": "+strings.Join(ours, " < ")]++
		}
	}
	var out strings.Builder
	for _, what := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&out, "%d %s\n", count[what], what)
	}
	return out.String()
}

// awaitLog waits for a line of the log and returns one of its fields.
func (p *process) awaitLog(t *testing.T, msg, field string) string {
	t.Helper()
	found := ""
	ring.Await(t, func() bool {
		for s := range strings.SplitSeq(p.text(), "\n") {
			var m map[string]any
			if json.Unmarshal([]byte(s), &m) == nil && m["msg"] == msg {
				found = fmt.Sprint(m[field])
				return true
			}
		}
		return false
	}, p.name, " did not log: ", msg)
	return found
}

// freeAddress is an unused address of the loopback, below the ports
// that systems give to outgoing connections, so that it stays free between two
// starts of a program.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if _, given := givenAddresses.LoadOrStore(addr, true); given { // its program may not listen yet
			continue
		}
		if ln, err := net.Listen("tcp", addr); err == nil {
			require.NoError(t, ln.Close())
			return addr
		}
	}
	require.FailNow(t, "no free address")
	return ""
}

// givenAddresses are those that programs of this process have got: each is given once.
var givenAddresses sync.Map

// listens reports whether a program takes connections at an address.
func listens(addr string) bool {
	c, err := net.Dial("tcp", addr)
	return err == nil && c.Close() == nil
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

var page = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// postCode types a code at the local page.
func postCode(base, code string) (r kiosk.Result, err error) {
	body, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		return r, err
	}
	resp, err := page.Post(base+"/api/code", "application/json", bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

// getState is what staff see at the local page of an agent with the data folder.
func getState(base, data string) (v kiosk.View, err error) {
	key, err := kiosk.ReadKey(data)
	if err != nil {
		return v, err
	}
	q, err := http.NewRequest(http.MethodGet, base+"/api/staff", nil)
	if err != nil {
		return v, err
	}
	q.Header.Set("Authorization", "Bearer "+key)
	resp, err := page.Do(q)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return v, fmt.Errorf("the local page answered %d", resp.StatusCode)
	}
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

// getPublic is what any passer-by sees at the local page.
func getPublic(base string) (v kiosk.PublicView, err error) {
	resp, err := page.Get(base + "/api/state")
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// screen keeps what the program prints.
type screen struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// find waits for a line and gives its parts.
func (s *screen) find(t *testing.T, line string) []string {
	t.Helper()
	var m []string
	ring.Await(t, func() bool { m = regexp.MustCompile(line).FindStringSubmatch(s.String()); return m != nil }, line, s)
	return m
}

var browser = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// open gives the status and the text of a page; 0: nothing answers.
func open(t *testing.T, address string) (int, string) {
	t.Helper()
	resp, err := browser.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func isRunning(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	return syscall.Kill(n, 0) == nil
}

// The console opens through the balancer; a node that is killed runs again as another
// process while the others serve; and at the end nothing is left.
func TestAKilledNodeRunsAgain(t *testing.T) {
	ring.SkipUnlessFull(t, "the message about a balancer that is not installed")
	for _, tool := range []string{"haproxy", "/usr/lib/postgresql"} {
		_, err := exec.LookPath(tool)
		_, folder := os.Stat(tool)
		ring.Needs(t, ring.EnvTools, tool, err == nil || folder == nil)
	}
	file := filepath.Join(t.TempDir(), "cluster")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", file, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd, seen := exec.Command(file, "-http", "127.0.0.1:0", "-mqtt", "127.0.0.1:0"), new(screen)
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Stdout, cmd.Stderr = seen, seen
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGINT); <-ended })
	await := func(line string) []string {
		t.Helper()
		select {
		case err := <-ended:
			require.FailNow(t, "the program ended", "%v\n%s", err, seen)
		default:
		}
		return seen.find(t, line)
	}

	front := await(`Console +(http://\S+)/console`)[1]
	mqtt := await(`MQTT +(\S+)`)[1]
	dir := await(`Folder +(\S+)`)[1]
	nodes := map[string]string{}
	pids := []string{await(`balancer +process (\d+)`)[1]}
	for n := range 3 {
		m := await(fmt.Sprintf(`node%d +(http://\S+) +MQTT \S+ +process (\d+)`, n+1))
		nodes[m[2]] = m[1]
		pids = append(pids, m[2])
		status, _ := open(t, m[1]+"/readyz")
		require.Equal(t, http.StatusOK, status)
	}
	require.Len(t, nodes, 3)
	status, text := open(t, front+"/console")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `type="password"`)
	c, err := net.Dial("tcp", mqtt)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.FileExists(t, filepath.Join(dir, "data", "devices", "CAB-1001.json"))
	b, err := os.ReadFile(filepath.Join(dir, "data", "devices", "CAB-1001.json"))
	require.NoError(t, err)
	require.Contains(t, string(b), mqtt, "the cabinet goes to the balancer")

	victim := pids[2]
	n, err := strconv.Atoi(victim)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(n, syscall.SIGKILL))
	await(`node2 ended: signal: killed`)
	ring.Await(t, func() bool { status, _ := open(t, front+"/console"); return status == http.StatusOK }, "the others serve")
	again := await(`node2 runs again: process (\d+)`)[1]
	require.NotEqual(t, victim, again)
	pids = append(pids, again)
	ring.Await(t, func() bool { status, _ := open(t, nodes[victim]+"/readyz"); return status == http.StatusOK }, "the node serves again")

	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, <-ended, "%s", seen)
	require.NotContains(t, seen.String(), "not end in order")
	require.NoDirExists(t, dir)
	for _, pid := range pids {
		require.False(t, isRunning(t, pid), "process %s", pid)
	}
	_, err = net.Dial("tcp", strings.TrimPrefix(front, "http://"))
	require.Error(t, err)
}

// Without a balancer the program names the package to install, and leaves nothing.
func TestTheMissingPackageIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, run(t.Context(), nil, io.Discard), "install the package haproxy")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

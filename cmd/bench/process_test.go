package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// The agent as a process, with a million records waiting, no cloud and no
// boards: size of the program, time until its page answers, memory of its own
// three seconds later: figure 10. The bare loop is the start of the same
// program that only prints its version.
func BenchmarkAgentProcess(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "edge")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "../edge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	store := filepath.Join(dir, "edge.db")
	fill(b, store)
	page := closedPort(b)
	args := []string{"--config", agentSettings(b, dir, page)}
	var ready, bare []time.Duration
	var memory []float64
	for b.Loop() {
		t0 := time.Now()
		require.NoError(b, exec.Command(bin, "--version").Run())
		bare = append(bare, time.Since(t0))
		took, own := runAgent(b, bin, args, page, dir)
		ready, memory = append(ready, took), append(memory, own)
	}
	slices.Sort(ready)
	slices.Sort(bare)
	p50 := ready[len(ready)/2]
	b.ReportMetric(sizeMB(b, bin), "binary-MB")
	b.ReportMetric(sizeMB(b, store), "store-MB")
	b.ReportMetric(float64(p50)/1e6, "ready-ms")
	b.ReportMetric(float64(p50)/float64(bare[len(bare)/2]), "ratio")
	b.ReportMetric(slices.Max(memory), "anon-MB")
	b.ReportMetric(0, "ns/op")
}

// fill makes a store with a million records that wait.
func fill(b *testing.B, path string) {
	const waiting, each = 1_000_000, 4000
	var mono atomic.Int64
	st, err := buffer.Open(buffer.Config{Path: path, NoSync: true, Stamp: func() wire.Record { return wire.Record{Mono: mono.Add(1000)} }})
	require.NoError(b, err)
	body := wire.MustEncode(wire.Measurement{Type: "temperature of the cooled compartments, upper row", Value: 4.25, Unit: "CEL"})
	for range waiting / each {
		var c buffer.Change
		for range each {
			r, err := buffer.NewRecord(wire.Record{Kind: wire.KindTelemetry, Boot: 1, Mono: mono.Add(1000), At: time.Now().UnixNano(), Clock: wire.ClockSynced, Body: body})
			require.NoError(b, err)
			c.Records = append(c.Records, r)
		}
		require.NoError(b, st.Commit(context.Background(), c))
	}
	require.Equal(b, uint64(waiting), st.Backlog()[wire.Telemetry])
	require.NoError(b, st.Ready())
	require.NoError(b, st.Close())
}

// closedPort is an address of the loopback without a listener.
func closedPort(b *testing.B) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	require.NoError(b, ln.Close())
	return ln.Addr().String()
}

// agentSettings writes the settings and secrets of an agent that reaches
// neither a cloud nor a board.
func agentSettings(b *testing.B, dir, page string) string {
	nobody := closedPort(b)
	secrets, err := json.Marshal(access.Secrets{DeviceCode: "CAB-1", DeviceSecret: "bench", CodeSalt: make([]byte, passcode.SaltSize), CodeKey: make([]byte, passcode.KeySize),
		Keys: []wire.PinnedKey{{ID: make([]byte, 8), Key: make([]byte, 32)}}, Brokers: []string{"tcp://" + nobody}, Prefix: "postern"})
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(filepath.Join(dir, "secrets.json"), secrets, 0o600))
	name := filepath.Join(dir, "edge.yaml")
	require.NoError(b, os.WriteFile(name, fmt.Appendf(nil, "data: %s\nkiosk: {listen: '%s'}\nlines:\n  - {name: main, port: 'tcp://%s', boards: [{name: A, family: cu48}]}\n", dir, page, nobody), 0o600))
	return name
}

// runAgent starts the agent, asks its page until it answers, and looks at its
// memory. It stops what it started.
func runAgent(b *testing.B, bin string, args []string, page, dir string) (ready time.Duration, anonMB float64) {
	var log bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stderr = &log
	start := time.Now()
	require.NoError(b, cmd.Start())
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for !answers(client, page, dir) {
		require.Less(b, time.Since(start), 20*time.Second, "the page does not answer")
		time.Sleep(time.Millisecond)
	}
	ready = time.Since(start)
	time.Sleep(3 * time.Second)
	anonMB = anonymousMB(b, cmd.Process.Pid)
	require.NoError(b, cmd.Process.Signal(os.Interrupt))
	err := cmd.Wait()
	ended = true
	require.NoError(b, err, "%s", &log)
	return ready, anonMB
}

func answers(client *http.Client, page, dir string) bool {
	key, err := kiosk.ReadKey(dir)
	if err != nil {
		return false
	}
	q, err := http.NewRequest(http.MethodGet, "http://"+page+"/api/staff", nil)
	if err != nil {
		return false
	}
	q.Header.Set("Authorization", "Bearer "+key)
	r, err := client.Do(q)
	if err != nil {
		return false
	}
	defer r.Body.Close()
	var v struct {
		Store struct {
			Waiting [2]uint64 `json:"waiting"`
		} `json:"store"`
	}
	return r.StatusCode == http.StatusOK && json.NewDecoder(r.Body).Decode(&v) == nil && v.Store.Waiting[wire.Telemetry] >= 1_000_000
}

// anonymousMB is the resident anonymous memory of a process.
func anonymousMB(b *testing.B, pid int) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skip("this system does not tell a process's memory: " + err.Error())
	}
	_, rest, _ := strings.Cut(string(raw), "\nAnonymous:")
	var kb float64
	_, err = fmt.Sscan(rest, &kb)
	require.NoError(b, err)
	return kb / 1024
}

func sizeMB(b *testing.B, name string) float64 {
	st, err := os.Stat(name)
	require.NoError(b, err)
	return float64(st.Size()) / 1e6
}

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// Two and three processes on one database: while all are well each event comes
// once; what a killed one held comes from another within its lease; one that
// stood still neither repeats what others sent meanwhile nor writes over it.
func TestProcessesShareWebhooks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	t.Parallel()
	ring.SkipUnlessFull(t, "cloud/webhook/sender has two nodes in one process")
	database := storetest.MigratedPostgresURL(t)
	bin := build(t)
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			url := database
			if n == 3 {
				url = storetest.MigratedPostgresURL(t)
			}
			shareWebhooks(t, bin, url, n)
		})
	}
}

const (
	inFlight = 5  // posts at once to one address, of each process
	burst    = 60 // orders at once: enough that each process has more than it may send
	slack    = 10 * time.Second
)

// gate is a receiver that can be shut: it takes posts then and answers none.
type gate struct {
	mu    sync.Mutex
	shut  chan struct{} // nil while it is open
	times map[string]int
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	g.mu.Lock()
	g.times[r.Header.Get("X-Webhook-Event-Id")]++
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-r.Context().Done():
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// posts counts events that have come, and the posts beyond one of each.
func (g *gate) posts() (events, repeats int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.times {
		repeats += n - 1
	}
	return len(g.times), repeats
}

func shareWebhooks(t *testing.T, bin programs, database string, n int) {
	g := &gate{times: map[string]int{}}
	hook := httptest.NewServer(g)
	defer hook.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(hook.URL, "http://"))
	require.NoError(t, err)
	dir := t.TempDir()
	open := func() *server.Server {
		s, err := server.New(t.Context(), server.Config{Dir: dir, Database: database, Node: "test", Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		return s
	}
	srv := open()
	defer func() { require.NoError(t, errors.Join(srv.Broker.Close(), srv.Store.Close())) }()
	box, err := srv.Sandbox(t.Context(), server.SandboxConfig{})
	require.NoError(t, err)

	nodes, addresses := make([]*process, n), make([]string, n)
	for i := range nodes {
		addresses[i] = freeAddress(t)
		nodes[i] = bin.start(t, "cloud", "--data", dir, "--database", database, "--node", fmt.Sprint("n", i+1), "--listen", addresses[i], "--mqtt-listen", freeAddress(t), "--webhook-http",
			"--webhook-allow-network", "127.0.0.0/8", "--webhook-allow-port", port, "--admin-listen", "")
	}
	call := func(node int, method, path, body string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addresses[node]+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+box.Admin.Token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := page.Do(req)
		if err != nil {
			return 0, nil
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, out
	}
	for i := range nodes {
		require.Eventually(t, func() bool { status, _ := call(i, "GET", "/readyz", ""); return status == 200 }, time.Minute, 20*time.Millisecond, "%s", nodes[i].tail())
	}
	status, out := call(0, "PUT", "/api/v1/webhook-settings", fmt.Sprintf(`{"webhook_sign_secret":%q,"order_create_webhook_url":%q}`, killSecret, hook.URL+"/created"))
	require.Equal(t, 200, status, "%s", out)
	made := 0
	orders := func(node, n int) {
		t.Helper()
		for range n {
			status, out := call(node, "POST", "/api/v1/client/orderCreate", `{"type":"D","packages":[{"weight":1}],"recipient":{"name":"Ada","phone":"+14165550123",
"address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`)
			require.Equal(t, 201, status, "%s", out)
			made++
		}
	}
	arrived := func(within time.Duration, why string) {
		t.Helper()
		require.Eventually(t, func() bool { events, _ := g.posts(); return events == made }, within, 20*time.Millisecond, why)
	}
	flying := func(processes int) { // each sends what is its own
		t.Helper()
		require.Eventually(t, func() bool { events, _ := g.posts(); return events == made-burst+processes*inFlight }, slack, 5*time.Millisecond)
	}
	finished := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			waiting, err := srv.Store.OutboxWaiting(t.Context())
			return err == nil && len(waiting) == 0
		}, store.Lease+slack, 20*time.Millisecond)
	}

	for i := range 60 {
		orders(i%n, 1)
	}
	arrived(slack, "all are well")
	finished()
	_, repeats := g.posts()
	require.Zero(t, repeats, "each came once")

	// The first is killed with posts in flight and others waiting.
	g.close()
	orders(0, burst)
	flying(n)
	nodes[0].kill(t)
	g.open()
	arrived(store.Lease+2*time.Second+slack, "another takes over")
	finished()
	_, repeats = g.posts()
	require.LessOrEqual(t, repeats, inFlight)
	if n == 2 {
		// The log of what came twice has the attempt that was heard of.
		check(t, srv, box, made)
		return
	}

	// The second stands still with posts in flight and others waiting, until the
	// third has sent everything.
	before := repeats
	g.close()
	orders(1, burst)
	flying(n - 1)
	require.NoError(t, nodes[1].cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(500 * time.Millisecond) // a signal takes its time
	g.open()
	arrived(store.Lease+2*time.Second+slack, "another takes over")
	finished()
	require.NoError(t, nodes[1].cmd.Process.Signal(syscall.SIGCONT))
	require.Error(t, nodes[1].await(), "a process whose lease another one ended stops")
	require.Contains(t, nodes[1].text(), "this process's lease was ended by another")
	require.Contains(t, nodes[1].text(), `"webhook deliveries were left to other nodes: their leases were not renewed in time","count":`)
	_, repeats = g.posts()
	require.LessOrEqual(t, repeats-before, inFlight, "what waited is not sent again")
	check(t, srv, box, made)
	for _, p := range nodes[2:] {
		p.stop(t)
	}
}

// check finds every delivery a success of one attempt.
func check(t *testing.T, srv *server.Server, box server.Sandbox, made int) {
	t.Helper()
	_, rows, err := srv.Store.ListAccountOutbox(t.Context(), cloud.AccountLog{BusinessID: box.ProviderCaller.Provider.BusinessID, Page: cloud.Page{Limit: 1000}})
	require.NoError(t, err)
	require.Len(t, rows, made)
	for _, r := range rows {
		as, err := srv.Store.OutboxAttempts(t.Context(), r.Delivery.ID)
		require.NoError(t, err)
		text, _ := json.Marshal(r.Delivery)
		require.Equal(t, cloud.OutboxSuccess, r.Delivery.State, "%s", text)
		require.Len(t, as, 1, "%s", text)
	}
}

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
)

const onceOrder = `{"type":"D","recipient":{"name":"Ada Moreau","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":2.5}]}`

// The built cloud, killed without warning while it takes orders, a hundred at a
// time or one: the client says the same again with the same key until it has an
// answer. In the end each order is there once. Nothing but the key keeps them
// apart.
func TestKilledCloudTakesEachOrderOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	defer func() {
		if t.Failed() {
			t.Logf("try it again: POSTERN_RING=check go test ./cmd/e2e -run TestKilledCloudTakesEachOrderOnce -kill-seed %d -kill-rounds %d", seed, *killRounds)
		}
	}()
	rnd := rand.New(rand.NewPCG(seed, 12))
	dir, bin, addr, mqtt := t.TempDir(), build(t), freeAddress(t), freeAddress(t)
	srv, err := server.New(t.Context(), server.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	box, err := srv.Sandbox(t.Context(), server.SandboxConfig{})
	require.NoError(t, err)
	require.NoError(t, errors.Join(srv.Broker.Close(), srv.Store.Close()))

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	call := func(method, path, key, body string) (int, map[string]any, bool) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+box.Admin.Token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		resp, err := client.Do(req)
		if err != nil {
			return 0, nil, false
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		var m map[string]any
		if err != nil || json.Unmarshal(raw, &m) != nil {
			return 0, nil, false
		}
		return resp.StatusCode, m, resp.Header.Get("Idempotent-Replayed") == "true"
	}
	start := func() *process {
		return bin.start(t, "cloud", "--data", dir, "--listen", addr, "--mqtt-listen", mqtt)
	}
	// said is what the client says until it is answered.
	var p *process
	said := func(path, key, body string) (map[string]any, bool) {
		var answer map[string]any
		var replayed bool
		ring.Await(t, func() bool {
			status, m, again := call("POST", path, key, body)
			if status != 0 && status != 409 && status != 201 && status != 202 {
				require.FailNow(t, "refused", "%d %v", status, m)
			}
			answer, replayed = m, again
			return status == 201 || status == 202
		}, "no answer")
		return answer, replayed
	}
	batch := `{"orders":[` + strings.TrimSuffix(strings.Repeat(onceOrder+",", 100), ",") + `]}`
	p = start()
	want, replays, jobs := 0, 0, []string{}
	said("/api/v1/client/orderCreate", "first", onceOrder)
	for round := range *killRounds {
		path, body, n := "/api/v1/client/orderCreate", onceOrder, 1
		if round%5 == 0 {
			path, body, n = "/api/v1/client/batchOrderCreateAsync", batch, 100
		}
		key := fmt.Sprint("round-", round)
		heard := make(chan bool, 1)
		go func() {
			status, _, _ := call("POST", path, key, body)
			heard <- status != 0
		}()
		time.Sleep(time.Duration(rnd.Int64N(int64(12 * time.Millisecond))))
		p.kill(t)
		<-heard
		p = start()
		m, again := said(path, key, body)
		if again {
			replays++
		}
		if id, ok := m["asyncId"].(string); ok {
			jobs = append(jobs, id)
		}
		want += n
	}
	t.Logf("%d rounds, the answer of a killed process was given %d times", *killRounds, replays)
	for _, id := range jobs {
		ring.Await(t, func() bool {
			_, m, _ := call("GET", "/api/v1/client/async/"+id, "", "")
			return m["status"] == "completed"
		})
	}
	var m map[string]any
	ring.Await(t, func() bool { // so many calls at once reach their limit
		var status int
		status, m, _ = call("GET", "/api/v1/orders", "", "")
		return status == http.StatusOK
	})
	require.Equal(t, float64(want+1), m["total"])
	p.stop(t)
}

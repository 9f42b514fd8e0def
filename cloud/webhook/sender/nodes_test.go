package sender

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// Two nodes on one PostgreSQL database share the work and send nothing twice,
// neither what they wrote themselves nor what waited before they started.
func TestTwoNodesSendOnce(t *testing.T) {
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	n, r := fetchtest.NewNetwork(), &fetchtest.Receiver{}
	n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = r.Handle
	var dbs []*store.DB
	for i := range 2 {
		dbs = append(dbs, storetest.Open(t, store.Config{URL: url, Instance: fmt.Sprint("n", i), Box: storetest.Box(t)}))
	}
	write := func(db *store.DB, c *cloud.Changes) {
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
	}
	c := &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{{ID: 3, BusinessID: 42, ProviderID: 17, URL: "http://a.example.com/", Enabled: true,
		Status: "healthy", Secret: []byte(secret)}}}}
	for i := range 50 {
		c.Outbox = append(c.Outbox, event(1000+i))
	}
	write(dbs[0], c)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var ds []*Dispatcher
	for _, db := range dbs {
		d := New(Config{Store: db, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: n, Dial: n.Dial, Logger: slog.New(slog.DiscardHandler)})
		db.OnCommit(d.Committed)
		ds = append(ds, d)
		go func() { ended <- d.Run(ctx) }()
	}
	for i := range 100 {
		write(dbs[i%2], &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{event(i + 1)}}})
	}
	ring.Await(t, func() bool {
		for _, d := range ds {
			d.mu.Lock()
			running := d.running
			d.mu.Unlock()
			if !running {
				return false
			}
		}
		w, err := dbs[0].OutboxWaiting(t.Context())
		return err == nil && len(w) == 0
	})
	cancel()
	for range dbs {
		require.NoError(t, <-ended)
	}
	n.Handlers.Wait()
	times := map[string]int{}
	for _, p := range r.Seen() {
		times[p.Head.Get("X-Webhook-Id")]++
	}
	require.Len(t, times, 150)
	for id, k := range times {
		require.Equal(t, 1, k, id)
	}
}

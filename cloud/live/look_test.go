package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/mqttbroker"
)

// table is what all nodes have committed, which this node cannot reach at times.
type table struct {
	Store
	mu   sync.Mutex
	away bool
	rows []cloud.LiveEvent
}

func (t *table) Peers() bool                                            { return true }
func (t *table) DropLive(context.Context, time.Time) error              { return nil }
func (t *table) set(away bool)                                          { t.mu.Lock(); t.away = away; t.mu.Unlock() }
func (t *table) add(e cloud.LiveEvent)                                  { t.mu.Lock(); t.rows = append(t.rows, e); t.mu.Unlock() }
func (t *table) HeardPushes(context.Context, []string, time.Time) error { return nil }

// LiveSince gives what is in between as well, as the database does.
func (t *table) LiveSince(_ context.Context, from time.Time, known func(string) bool) ([]cloud.LiveEvent, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.away {
		return nil, errors.New("the database is away")
	}
	recent := slices.DeleteFunc(slices.Clone(t.rows), func(e cloud.LiveEvent) bool { return e.At.Before(from) })
	if i := slices.IndexFunc(recent, func(e cloud.LiveEvent) bool { return !known(e.ID) }); i >= 0 {
		return recent[i:], nil
	}
	return nil, nil
}

// heard is what listeners receive.
type heard struct {
	mu    sync.Mutex
	times map[string]int
}

func (h *heard) Publish(_ string, m mqttbroker.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[m.ID]++
}

// A node that could not reach the database for a while, longer than rows may be late, finds
// what others committed meanwhile, and repeats nothing.
func TestALongCutOffLosesNoEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, ears := &table{}, &heard{times: map[string]int{}}
		s := New(Config{Store: rows})
		s.SetTeller(ears)
		s.subscriptions.Store(1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		n := 0
		for second := range 300 {
			time.Sleep(time.Second)
			rows.set(second >= 100 && second < 150)
			n++
			rows.add(cloud.LiveEvent{ID: fmt.Sprint(n), Kind: cloud.LiveChat, BusinessID: 1, Subject: 7, At: time.Now().Add(-time.Duration(second%10) * time.Second)})
		}
		time.Sleep(20 * time.Second)
		stop()
		require.NoError(t, <-ended)
		for i := range n {
			require.Equal(t, 1, ears.times[fmt.Sprint(i+1)], i+1)
		}
		require.Less(t, len(s.sent), 60, "what is long past is forgotten")
	})
}

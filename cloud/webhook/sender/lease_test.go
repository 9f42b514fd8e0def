package sender

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// cutOff is a store whose leases cannot be renewed for a while.
type cutOff struct {
	Store
	off *atomic.Bool
}

func (c cutOff) RenewOutbox(ctx context.Context, ids []cloud.OutboxID) ([]cloud.OutboxID, error) {
	if c.off.Load() {
		return nil, errors.New("no connection")
	}
	return c.Store.RenewOutbox(ctx, ids)
}

// A node that could not renew its leases sends nothing any more before another
// may have taken them up; what it held goes back, and is sent once.
func TestLeasesInDoubtAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var off atomic.Bool
		w.wrap = func(s Store) Store { return cutOff{s, &off} }
		w.a.Reply = func(int, http.ResponseWriter) { time.Sleep(4 * time.Second) }
		w.run()
		synctest.Wait()
		time.Sleep(6 * time.Second)
		off.Store(true)
		begun := time.Now()
		for range 60 { // five at a time, four seconds each: 48 seconds
			w.emit(nil)
		}
		time.Sleep(time.Minute)
		sent := w.a.Seen()
		require.Less(t, len(sent), 60)
		for _, p := range sent {
			require.Less(t, p.At.Sub(begun), leaseSure, "its attempt ends before the lease does")
		}
		off.Store(false)
		time.Sleep(2 * time.Minute)
		times := map[string]int{}
		for _, p := range w.a.Seen() {
			times[p.Head.Get("X-Webhook-Id")]++
		}
		require.Len(t, times, 60)
		for id, n := range times {
			require.Equal(t, 1, n, id)
		}
		w.stop()
		w.close()
	})
}

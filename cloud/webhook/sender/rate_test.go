package sender

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A receiver gets no more a second than it wants, and just as much; what waits
// says why, counts as no attempt, and another receiver does not wait with it. A
// new rate holds for what waits already.
func TestARateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		limited := func(rate float64, burst int) {
			w.endpoint(func(e *cloud.Endpoint) { e.Rate, e.Burst = rate, burst })
		}
		limited(4, 3)
		w.run()
		synctest.Wait()
		begun := time.Now()
		var ids []cloud.OutboxID
		for range 43 {
			ids = append(ids, w.emit(nil))
		}
		time.Sleep(100 * time.Millisecond)
		require.Len(t, w.a.Seen(), 3, "a burst")
		time.Sleep(8 * time.Second)
		require.InDelta(t, 3+32, len(w.a.Seen()), 1)
		limited(1, 1)
		time.Sleep(time.Until(begun.Add(30 * time.Second)))
		posts := w.a.Seen()
		require.Len(t, posts, 43)
		for i := 3; i < 43; i++ {
			require.GreaterOrEqual(t, posts[i].At.Sub(posts[i-1].At), 240*time.Millisecond, "one after another behind the burst")
		}
		last := posts[42].At.Sub(posts[38].At)
		require.True(t, last >= 3900*time.Millisecond && last < 5*time.Second, "at the new pace: %v", last)
		row, as := w.row(ids[20])
		require.Equal(t, 1, row.Attempts)
		require.Equal(t, waitRate, as[0].WaitReason)
		require.Positive(t, w.count("webhook_postponed_total", "reason", "rate"))
		w.stop()
		w.close()
	})
}

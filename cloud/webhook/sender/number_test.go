package sender

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A receiver that wants numbers gets them from 1 without gaps, in the order in
// which things happened; repeats and what is sent again have their own. They are
// as quick as others.
func TestRunningNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.endpoint(func(e *cloud.Endpoint) { e.Numbered = true })
		numbered := func(o *cloud.OutboxWrite) { o.Deliveries[0].Sequence = cloud.Unnumbered }
		w.a.Reply = func(n int, rw http.ResponseWriter) {
			if n == 2 {
				rw.WriteHeader(500)
			}
		}
		w.run()
		synctest.Wait()
		first := w.emit(numbered)
		time.Sleep(100 * time.Millisecond)
		require.Len(t, w.a.Seen(), 1, "it does not wait for a poll")
		for range 30 {
			w.emit(numbered)
		}
		time.Sleep(100 * time.Millisecond) // the second request is one of those
		plain := w.emit(nil)
		time.Sleep(time.Minute)
		numbers := map[string][]string{}
		for _, p := range w.a.Seen() {
			id := p.Head.Get("X-Webhook-Id")
			numbers[id] = append(numbers[id], p.Head.Get("X-Webhook-Sequence"))
		}
		require.Len(t, numbers, 32)
		seen, twice := map[int64]bool{}, 0
		for n := range 31 {
			row, _ := w.row(first + cloud.OutboxID(n))
			require.EqualValues(t, n+1, row.Sequence)
			seen[row.Sequence] = true
			for _, got := range numbers[row.WebhookID] {
				require.Equal(t, numbers[row.WebhookID][0], got)
			}
			twice += len(numbers[row.WebhookID]) - 1
		}
		require.Len(t, seen, 31)
		require.Equal(t, 1, twice, "one was tried again")
		row, _ := w.row(plain)
		require.Equal(t, []string{""}, numbers[row.WebhookID])

		_, err := w.db.Redeliver(context.Background(), cloud.OutboxOwner{ProviderID: 17}, first, 1000, "", time.Now(), nil)
		require.NoError(t, err)
		time.Sleep(time.Second)
		posts := w.a.Seen()
		last := posts[len(posts)-1]
		require.Equal(t, []string{"1", "1"}, []string{last.Head.Get("X-Webhook-Sequence"), last.Head.Get("X-Webhook-Replay")})
		w.emit(numbered)
		time.Sleep(time.Second)
		posts = w.a.Seen()
		require.Equal(t, "32", posts[len(posts)-1].Head.Get("X-Webhook-Sequence"), "what was sent again used up none")
		w.stop()
		w.close()
	})
}

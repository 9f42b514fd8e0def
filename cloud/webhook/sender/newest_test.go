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

// place is where a driver is.
func place(driver string) func(*cloud.OutboxWrite) {
	return func(o *cloud.OutboxWrite) {
		toAccount(o)
		o.Event.Event, o.Event.ReferenceType, o.Event.ReferenceID = cloud.EventDriverPlace, "driver", driver
	}
}

// Of what waits about one driver only the newest is sent, whether it waits in
// memory, for a retry, or until its receiver is resumed; each of the others ends
// in the log with the reason.
func TestOnlyTheNewestPlaceIsSent(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]func(w http.ResponseWriter){
		"slow":     func(w http.ResponseWriter) { time.Sleep(5 * time.Second); w.WriteHeader(200) },
		"failing":  func(w http.ResponseWriter) { w.WriteHeader(500) },
		"hopeless": func(http.ResponseWriter) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.account(cloud.WebhookSettings{Secret: []byte(secret)})
				w.a.Reply = func(n int, rw http.ResponseWriter) {
					if n == 1 {
						down(rw)
					}
				}
				w.run()
				synctest.Wait()
				var mine []cloud.OutboxID
				for range 5 {
					mine = append(mine, w.emit(place("903")))
					time.Sleep(100 * time.Millisecond)
				}
				other := w.emit(place("904"))
				time.Sleep(2 * time.Hour)
				posts := w.a.Seen()
				ids := map[string]int{}
				for _, p := range posts {
					ids[p.Head.Get("X-Webhook-Event-Id")]++
				}
				first, _ := w.row(mine[0])
				last, _ := w.row(mine[4])
				require.Equal(t, cloud.OutboxSuccess, last.State)
				require.Equal(t, 1, ids[last.EventID])
				require.Equal(t, 1, ids[first.EventID], "it was on its way, and is not sent again once there is something newer")
				alone, _ := w.row(other)
				require.Equal(t, cloud.OutboxSuccess, alone.State, "of another driver")
				skipped := 0
				for _, id := range mine[:4] {
					row, as := w.row(id)
					if row.State == cloud.OutboxSuccess {
						continue
					}
					skipped++
					require.Equal(t, cloud.OutboxFailed, row.State)
					require.Equal(t, ReasonSuperseded, row.Reason)
					require.Len(t, as, map[bool]int{true: 1, false: 0}[id == mine[0]])
				}
				require.Positive(t, skipped)

				_, err := w.db.Redeliver(context.Background(), cloud.OutboxOwner{BusinessID: 42}, mine[0], 1000, "", time.Now(), nil)
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.Len(t, w.a.Seen(), len(posts)+1, "what is sent again by hand goes out, however old")
				w.stop()
				w.close()
			})
		})
	}
}

// A receiver that is paused for a day gets one place of each driver.
func TestPlacesOfAPausedReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.account(cloud.WebhookSettings{Secret: []byte(secret)})
		w.endpoint(func(e *cloud.Endpoint) {
			e.Kind, e.ProviderID, e.Secret, e.Status = cloud.AccountEndpoint, 0, nil, "paused"
		})
		w.run()
		synctest.Wait()
		waiting := 0
		var ids []cloud.OutboxID
		for range 50 {
			ids = append(ids, w.emit(place("903")))
			time.Sleep(2 * time.Second)
		}
		for _, id := range ids {
			if row, _ := w.row(id); row.State == cloud.OutboxPaused {
				waiting++
			}
		}
		require.Equal(t, 1, waiting)
		require.Empty(t, w.a.Seen())
		w.stop()
		w.close()
	})
}

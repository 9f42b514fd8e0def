package sender

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
)

// blocked sends one event to url and requires that no socket was opened.
func blocked(t *testing.T, change func(*world), url string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		change(w)
		w.endpoint(func(e *cloud.Endpoint) { e.URL = url })
		w.run()
		synctest.Wait()
		id := w.emit(nil)
		time.Sleep(100 * time.Millisecond)
		w.stop()
		row, as := w.row(id)
		require.Equal(t, cloud.OutboxDead, row.State)
		require.Len(t, as, 1)
		require.Equal(t, fetch.CodeBlocked, as[0].ErrorCode)
		require.Empty(t, as[0].AnswerBody)
		require.NotContains(t, as[0].Error, "10.0.0.1")
		require.Empty(t, w.net.Dials)
		w.close()
	})
}

func TestNothingInsideIsReached(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string][]string{"private": {"10.0.0.1"}, "mixed": {"93.184.216.34", "10.0.0.1"}, "mapped": {"::ffff:10.0.0.1"},
		"metadata": {"169.254.169.254"}, "loopback": {"127.0.0.1"}, "six": {"fd00::1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocked(t, func(w *world) {
				var as []netip.Addr
				for _, a := range addrs {
					as = append(as, netip.MustParseAddr(a))
				}
				w.net.Names["x.example.com"] = as
			}, "http://x.example.com/")
		})
	}
	for _, url := range []string{"http://127.0.0.1/", "http://localhost/", "http://2130706433/", "gopher://a.example.com/"} {
		t.Run(url, func(t *testing.T) { t.Parallel(); blocked(t, func(*world) {}, url) })
	}
}

// A name that was fine when saved and leads inside when the event is sent.
func TestNameThatChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		synctest.Wait()
		w.emit(nil)
		time.Sleep(time.Second)
		require.Len(t, w.a.Seen(), 1)
		w.net.Mu.Lock()
		w.net.Names["a.example.com"] = fetchtest.Addrs("10.0.0.1")
		w.net.Mu.Unlock()
		time.Sleep(2 * time.Minute) // names and idle connections are forgotten
		id := w.emit(nil)
		time.Sleep(time.Second)
		w.stop()
		require.Len(t, w.a.Seen(), 1)
		_, as := w.row(id)
		require.Equal(t, fetch.CodeBlocked, as[0].ErrorCode)
		w.close()
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"http://10.0.0.1/", "http://b.example.com/"} {
			t.Run(fmt.Sprint(status, to), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.a.Reply = func(_ int, rw http.ResponseWriter) { rw.Header().Set("Location", to); rw.WriteHeader(status) }
					w.run()
					synctest.Wait()
					id := w.emit(nil)
					time.Sleep(time.Second)
					w.stop()
					row, as := w.row(id)
					require.Equal(t, cloud.OutboxRetrying, row.State)
					require.Equal(t, status, as[0].HTTPStatus)
					require.Contains(t, as[0].AnswerHead, "Location: "+to)
					require.Len(t, w.net.Dials, 1)
					w.close()
				})
			})
		}
	}
}

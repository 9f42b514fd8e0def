package sender

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
)

// proxyFaults are the ways in which a proxy fails.
var proxyFaults = map[string]struct {
	reason, words string
	dial          error
	answer        func(string, net.Conn) bool
}{
	"is not there":    {reason: "unreachable", words: "check that it runs", dial: errors.New("connection refused")},
	"wants a login":   {reason: "login", words: "proxy_secret_file", answer: fetchtest.Say("HTTP/1.1 407 No\r\nX: " + fetchtest.Login + "\r\n\r\n")},
	"is overloaded":   {reason: "status", words: "503", answer: fetchtest.Say("HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n" + fetchtest.Login)},
	"is broken":       {reason: "status", words: "500", answer: fetchtest.Say("HTTP/1.0 500 No\r\n\r\n")},
	"limits":          {reason: "status", words: "429", answer: fetchtest.Say("HTTP/1.1 429 No\r\n\r\n")},
	"redirects":       {reason: "status", words: "302", answer: fetchtest.Say("HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n")},
	"refuses all":     {reason: "refused", words: "403", answer: fetchtest.Say("HTTP/1.1 403 Forbidden\r\n\r\n")},
	"hangs":           {reason: "silent", words: "does not answer", answer: func(string, net.Conn) bool { time.Sleep(time.Minute); return true }},
	"trickles":        {reason: "silent", words: "does not answer", answer: func(_ string, c net.Conn) bool { return trickleTo(c, "HTTP/1.1 200 OK\r\n\r\n") }},
	"closes":          {reason: "unreadable", words: "HTTP proxy", answer: func(string, net.Conn) bool { return true }},
	"speaks rubbish":  {reason: "unreadable", words: "HTTP proxy", answer: fetchtest.Say("SSH-2.0-OpenSSH_9.9\r\n\r\n")},
	"says too much":   {reason: "unreadable", words: "HTTP proxy", answer: fetchtest.Say("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 10<<10) + "\r\n\r\n")},
	"goes on":         {reason: "unreadable", words: "HTTP proxy", answer: fetchtest.Say("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")},
	"another wire":    {reason: "status", words: "101", answer: fetchtest.Say("HTTP/1.1 101 Switching\r\n\r\n")},
	"speaks too soon": {reason: "unreadable", words: "HTTP proxy", answer: fetchtest.Say("\x15\x03\x01\x00\x02\x02\x0a")},
}

func trickleTo(c net.Conn, text string) bool {
	for _, b := range []byte(text) {
		if _, err := c.Write([]byte{b}); err != nil {
			break
		}
		time.Sleep(time.Second)
	}
	return true
}

// Nothing that the proxy does wrong is put on the receiver: its delivery is put
// off with a reason, no attempt is counted or logged, nothing counts for its
// health, and when the proxy is well again it is sent at once. The operator of the
// proxy reads of it once, and in words.
func TestFaultsOfTheProxyAreNotTheReceivers(t *testing.T) {
	t.Parallel()
	for name, z := range proxyFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var log fetchtest.Log
				var broken sync.Mutex // held while it is not there
				dialErr := z.dial
				registry := prometheus.NewRegistry()
				there, dial := fetchtest.ProxyBefore(t, w.net, fetchtest.Login)
				p, err := fetch.NewProxy(fetch.ProxyConfig{URL: "http://proxy.internal:3128", Login: fetchtest.Login, Logger: log.Logger(), Metrics: registry,
					Dial: func(ctx context.Context, addr string) (net.Conn, error) {
						broken.Lock()
						defer broken.Unlock()
						if dialErr != nil {
							return nil, dialErr
						}
						return dial(ctx, addr)
					}})
				require.NoError(t, err)
				there.Instead(z.answer)
				w.proxy, w.log = p, log.Logger()
				d := w.run()
				synctest.Wait()
				const all = perURL + 2
				for range all {
					w.emit(nil)
				}
				time.Sleep(5 * time.Minute)
				row, as := w.resting(1)
				require.Equal(t, ReasonProxy, row.Reason)
				require.Equal(t, 0, row.Attempts)
				require.Empty(t, as)
				require.LessOrEqual(t, time.Until(row.NextAt), 72*time.Second, "it is tried again soon")
				why, until := d.Held(42, "http://a.example.com/hook?key=hidden")
				require.Equal(t, waitProxy, why)
				require.False(t, until.Before(row.NextAt), "at the earliest")
				require.LessOrEqual(t, len(there.Asked()), 12*all, "but the proxy is not flooded")
				require.Equal(t, 1, strings.Count(log.String(), "webhooks do not get through"), log.String())
				require.Contains(t, log.String(), z.words)
				require.Zero(t, w.count("webhook_attempts_total", "channel", cloud.ChannelLocker))
				require.Positive(t, w.count("webhook_postponed_total", "reason", waitProxy))
				h, err := w.db.FindHealth(t.Context(), 3)
				require.NoError(t, err)
				require.Zero(t, h.Failures)
				metrics := w.metrics
				w.metrics = registry
				require.Positive(t, w.count("webhook_proxy_faults_total", "reason", z.reason))
				require.Equal(t, 1.0, w.gauge("webhook_proxy_down"))

				broken.Lock()
				dialErr = nil
				broken.Unlock()
				there.Instead(nil)
				time.Sleep(2 * time.Minute)
				require.Zero(t, w.gauge("webhook_proxy_down"))
				w.metrics = metrics
				w.stop()
				for id := cloud.OutboxID(1); id <= all; id++ {
					row, as = w.row(id)
					require.Equal(t, cloud.OutboxSuccess, row.State)
					require.Len(t, as, 1)
					require.Equal(t, 1, as[0].Attempt)
					fetchtest.RequireNoLogin(t, as[0].Error+as[0].RequestHead+as[0].AnswerHead+as[0].AnswerBody+row.Reason)
				}
				require.Len(t, w.a.Seen(), all)
				require.Equal(t, "1", w.a.Seen()[0].Head.Get("X-Webhook-Attempt"))
				require.Equal(t, 1, strings.Count(log.String(), "outgoing proxy works again for webhooks"))
				fetchtest.RequireNoLogin(t, log.String())
				require.Empty(t, w.net.Dials, "no direct connection")
				w.close()
			})
		})
	}
}

// resting is the row of a delivery when it waits for its time, and is neither in
// flight nor in memory.
func (w *world) resting(id cloud.OutboxID) (cloud.OutboxDelivery, []cloud.OutboxAttempt) {
	for range 600 {
		if row, as := w.row(id); row.State == cloud.OutboxRetrying && row.NextAt.After(time.Now()) {
			return row, as
		}
		time.Sleep(time.Second)
	}
	row, _ := w.row(id)
	require.Fail(w.t, "it does not wait for a time", "%+v", row)
	return row, nil
}

func (w *world) gauge(name string) float64 {
	families, err := w.metrics.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	require.Fail(w.t, "there is no "+name)
	return 0
}

// A target that alone gets no way, while others do, is in trouble of its own: the
// proxy cannot reach it, or its rules forbid it. Its deliveries are counted as
// without a proxy; those of the others do not notice.
func TestProxyThatFailsForOneTargetAlone(t *testing.T) {
	t.Parallel()
	for name, z := range map[string]struct {
		answer  func(string, net.Conn) bool
		code    string
		counted bool // for the receiver's health
	}{
		"cannot reach it": {fetchtest.Say("HTTP/1.1 503 No\r\n\r\n"), fetch.CodeConnect, true},
		"waits for it":    {func(string, net.Conn) bool { time.Sleep(time.Minute); return true }, fetch.CodeTimeout, true},
		"hangs up":        {func(string, net.Conn) bool { return true }, fetch.CodeConnect, true},
		"forbids it":      {fetchtest.Say("HTTP/1.1 403 Forbidden\r\n\r\n"), fetch.CodeBlocked, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var log fetchtest.Log
				there, p := behindProxy(t, w.net, fetch.ProxyConfig{Logger: log.Logger()})
				there.Instead(func(to string, c net.Conn) bool { return to == "b.example.com:80" && z.answer(to, c) })
				w.endpoint(func(e *cloud.Endpoint) { e.ID, e.ProviderID, e.URL = 4, 18, "http://b.example.com/" })
				w.proxy = p
				w.run()
				synctest.Wait()
				bad := w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].EndpointID = 4 })
				var good []cloud.OutboxID
				for range 10 { // more seldom than ways are kept
					good = append(good, w.emit(nil))
					time.Sleep(20 * time.Second)
				}
				for _, id := range good {
					row, as := w.row(id)
					require.Equal(t, cloud.OutboxSuccess, row.State)
					require.Len(t, as, 1)
				}
				row, as := w.resting(bad) // as a rule may be changed, and a receiver may come back
				require.Equal(t, z.code, row.Reason)
				require.Greater(t, row.Attempts, 1)
				require.Len(t, as, row.Attempts)
				require.Equal(t, z.code, as[0].ErrorCode)
				h, err := w.db.FindHealth(t.Context(), 4)
				require.NoError(t, err)
				require.Equal(t, z.counted, h.Failures > 0)
				require.Empty(t, log.String(), "nobody is got out of bed")
				require.Empty(t, w.net.Dials)
				w.stop()
				w.close()
			})
		})
	}
}

// What is sent by hand is answered at once, and says whose fault it was.
func TestSendNowByAProxyThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, p := behindProxy(t, w.net, fetch.ProxyConfig{Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("no route to host") }})
		w.proxy = p
		d := w.run()
		synctest.Wait()
		o := event(1)
		o.Deliveries[0].State, o.Deliveries[0].MaxAttempts = cloud.OutboxDelivering, 1
		w.write(&cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{o}}})
		work, err := w.db.FindOutbox(t.Context(), 1)
		require.NoError(t, err)
		ep, err := w.db.FindEndpoint(t.Context(), 3)
		require.NoError(t, err)
		r, err := d.SendNow(t.Context(), ep, work, cloud.HookTweak{})
		require.NoError(t, err)
		require.Equal(t, cloud.OutboxFailed, r.State)
		require.Equal(t, ReasonProxy, r.Reason)
		row, as := w.row(1)
		require.Equal(t, ReasonProxy, row.Reason)
		require.Empty(t, as)
		w.stop()
		w.close()
	})
}

// behindProxy puts a proxy before the network in memory.
func behindProxy(t *testing.T, n *fetchtest.Network, cfg fetch.ProxyConfig) (*fetchtest.Proxy, *fetch.Proxy) {
	there, dial := fetchtest.ProxyBefore(t, n, cfg.Login)
	if cfg.Dial == nil {
		cfg.Dial = dial
	}
	cfg.URL = "http://proxy.internal:3128"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := fetch.NewProxy(cfg)
	require.NoError(t, err)
	return there, p
}

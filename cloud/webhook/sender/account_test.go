package sender

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signature"
)

// account makes the receiver one of the account channel, which signs with the
// secrets of its level.
func (w *world) account(s cloud.WebhookSettings) {
	s.BusinessID = 42
	w.endpoint(func(e *cloud.Endpoint) {
		e.Kind, e.ProviderID, e.Secret = cloud.AccountEndpoint, 0, nil
	})
	w.write(&cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{s}}})
}

func toAccount(o *cloud.OutboxWrite) {
	e, d := &o.Event, &o.Deliveries[0]
	e.EventID = strings.Replace(e.EventID, "PLE", "OSC", 1)
	e.Event, e.ProviderID, e.Channel, e.ReferenceType = "order.status_change", 0, cloud.ChannelAccount, "order"
	d.EventID, d.WebhookID, d.MaxAttempts, d.Setting = e.EventID, e.EventID+"-2", 6, cloud.HookStatusChange
}

func TestAccountDeliveriesAreSignedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		next := "fedcba9876543210fedcba9876543210"
		w.account(cloud.WebhookSettings{Secret: []byte(secret), SecretNext: []byte(next), NextUntil: time.Now().Add(time.Hour)})
		w.run()
		synctest.Wait()
		w.emit(toAccount)
		time.Sleep(10 * time.Millisecond)
		posts := w.a.Seen()
		require.Len(t, posts, 1)
		p := posts[0]
		require.NoError(t, signature.VerifyLegacy(p.Head.Get, p.Body, []byte(secret)))
		for _, s := range []string{secret, next} {
			require.NoError(t, signature.VerifyV2(p.Head.Get, p.Body, time.Now(), []byte(s)), "both while they overlap")
		}
		require.Equal(t, signature.V2(p.At, p.Body, []byte(next), []byte(secret)), p.Head.Get("X-Webhook-Signature-V2"), "the new one first")
		require.Equal(t, signature.Legacy([]byte(next), p.Body), p.Head.Get("Signature-Next"))
		for name, want := range map[string]string{"Content-Type": "application/json; charset=utf-8", "User-Agent": "TMS-Webhooks/1", "X-Webhook-Event": "order.status_change",
			"X-Webhook-Event-Id": "OSC-810201", "X-Webhook-Id": "OSC-810201-2", "X-Webhook-Attempt": "1", "X-Webhook-Timestamp": fmt.Sprint(p.At.Unix())} {
			require.Equal(t, want, p.Head.Get(name), name)
			delete(p.Head, http.CanonicalHeaderKey(name))
		}
		for _, name := range []string{"Signature", "Signature-Next", "X-Webhook-Signature-V2", "Content-Length"} {
			delete(p.Head, http.CanonicalHeaderKey(name))
		}
		require.Empty(t, p.Head, "nothing else is sent")

		time.Sleep(time.Hour) // the overlap is over
		w.emit(toAccount)
		time.Sleep(10 * time.Millisecond)
		p = w.a.Seen()[1]
		require.NoError(t, signature.VerifyLegacy(p.Head.Get, p.Body, []byte(next)))
		require.Equal(t, signature.V2(p.At, p.Body, []byte(next)), p.Head.Get("X-Webhook-Signature-V2"))
		require.Empty(t, p.Head.Get("Signature-Next"))
		w.stop()
		w.close()
	})
}

// Six attempts with the waits of the table between them, then the delivery has
// failed; what an attempt sends but for time and number stays the same.
func TestAccountDeliveriesFailAfterSixAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, wait := range Waits() {
			w.waits = append(w.waits, wait/20)
		}
		w.account(cloud.WebhookSettings{Secret: []byte(secret)})
		w.a.Reply = func(_ int, w http.ResponseWriter) { w.WriteHeader(500) }
		w.run()
		synctest.Wait()
		id := w.emit(toAccount)
		for row, _ := w.row(id); row.State != cloud.OutboxFailed; row, _ = w.row(id) {
			time.Sleep(time.Second)
		}
		posts := w.a.Seen()
		require.Len(t, posts, 6)
		for i, p := range posts {
			require.Equal(t, posts[0].Body, p.Body)
			require.Equal(t, "OSC-810201-2", p.Head.Get("X-Webhook-Id"))
			require.Equal(t, strconv.Itoa(i+1), p.Head.Get("X-Webhook-Attempt"))
			require.NoError(t, signature.VerifyV2(p.Head.Get, p.Body, p.At, []byte(secret)))
			if i > 0 {
				wait := p.At.Sub(posts[i-1].At).Seconds()
				require.InDelta(t, w.waits[i-1].Seconds(), wait, w.waits[i-1].Seconds()*0.2+1.2)
			}
		}
		time.Sleep(time.Hour)
		require.Len(t, w.a.Seen(), 6)
		row, as := w.row(id)
		require.Equal(t, []any{cloud.OutboxFailed, ReasonOutOfTries, 6}, []any{row.State, row.Reason, len(as)})
		require.NotContains(t, as[0].RequestHead, secret)
		require.Equal(t, 1.0, w.count("webhook_deliveries_total", "channel", cloud.ChannelAccount))
		w.stop()
		w.close()
	})
}

// A receiver that is gone gets no second attempt and is flagged; without a
// secret nothing is sent at all.
func TestAccountReceiversThatCannotBeReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.account(cloud.WebhookSettings{})
		w.a.Reply = func(_ int, w http.ResponseWriter) { w.WriteHeader(410) }
		w.run()
		synctest.Wait()
		unsigned := w.emit(toAccount)
		time.Sleep(2 * time.Second)
		require.Empty(t, w.a.Seen())
		w.write(&cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{{BusinessID: 42, Secret: []byte(secret)}}}})
		time.Sleep(2 * time.Second)
		gone := w.emit(toAccount)
		time.Sleep(time.Hour)
		require.Len(t, w.a.Seen(), 1)
		for id, reason := range map[cloud.OutboxID]string{unsigned: ReasonUnsentError, gone: ReasonGone} {
			row, _ := w.row(id)
			require.Equal(t, []any{cloud.OutboxFailed, reason}, []any{row.State, row.Reason})
		}
		e, err := w.db.FindEndpoint(context.Background(), 3)
		require.NoError(t, err)
		require.Equal(t, "gone", e.Status)
		w.stop()
		w.close()
	})
}

package webhook

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Bodies have the number of their event among those about its reference, and the
// millisecond. An event without a receiver uses up none.
func TestBodiesAreNumbered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"https://a.example"}`)
	at := time.Date(2026, 11, 20, 23, 12, 0, 0, time.UTC).Add(345 * time.Millisecond)
	event := func(id, setting, order string) cloud.AccountEvent {
		return cloud.AccountEvent{BusinessID: 1, Settings: []string{setting}, Event: orderNew, ID: id, ReferenceType: "order", ReferenceID: order, OccurredAt: at,
			Data: func(int64, bool) (any, error) { return map[string]int{"n": 1}, nil }}
	}
	fan := func(events ...cloud.AccountEvent) (out []string) {
		require.NoError(t, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			writes, err := w.s.FanOut(v, events...)
			out = nil
			for _, o := range writes {
				var body struct {
					AtMS     int64     `json:"occurred_at_ms"`
					At       time.Time `json:"occurred_at"`
					Sequence int64     `json:"sequence"`
				}
				require.NoError(t, json.Unmarshal(o.Event.Body, &body))
				require.Equal(t, []any{at.UnixMilli(), at.Truncate(time.Second).Unix(), o.Event.Sequence}, []any{body.AtMS, body.At.Unix(), body.Sequence})
				out = append(out, fmt.Sprint(o.Event.ReferenceID, ":", body.Sequence))
			}
			return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: writes}}, err
		}))
		return out
	}
	require.Equal(t, []string{"7:1", "7:2", "8:1"}, fan(event("E-1", cloud.HookOrderCreate, "7"), event("E-2", cloud.HookOrderCreate, "7"), event("E-3", cloud.HookOrderCreate, "8")))
	require.Empty(t, fan(event("E-4", cloud.HookStatusChange, "7")))
	require.Equal(t, []string{"7:3"}, fan(event("E-5", cloud.HookOrderCreate, "7")))
}

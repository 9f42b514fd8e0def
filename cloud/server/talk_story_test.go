package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bare is a call of which only the status counts.
func (w *talkWorld) bare(method, path, token, body string) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	require.NoError(w.t, resp.Body.Close())
	return resp.StatusCode
}

// Everybody who takes part listens, each with a client of other people and by
// another way, and receives everything that happens in the order in which it does;
// what is for dispatchers and driver reaches no other participant.
func TestAllReceiveTheChat(t *testing.T) {
	bothTalks(t, allReceive)
}

func allReceive(t *testing.T, w *talkWorld) {
	all, both := []string{w.chat()}, []string{w.chat(), w.staff()}
	dashboard := "tms/business/1/orders"
	push := fmt.Sprintf("tms/driver/%d/push", w.ids["driver"])
	topics := map[string][]string{"admin": append([]string{dashboard}, both...), "staff": append([]string{dashboard}, both...), "contractor": both, "driver": append([]string{push}, both...), "customer": all, "recipient": all}
	passes := map[string]pass{}
	for _, role := range talkers {
		passes[role] = w.pass(role)
		require.Equal(t, topics[role], passes[role].Topics, role)
		require.Equal(t, passes[role].ClientID, passes[role].Username)
	}
	foreign := []string{w.staff(), w.chat() + "/#", "tms/order-chat/1/+", "#", push}
	ears := map[string]*ear{"admin": w.mosquitto(passes["admin"], overTCP, "mqttv311"), "staff": w.mosquitto(passes["staff"], overTLS, "mqttv5"), "contractor": w.node(passes["contractor"], overTLS, 5, nil, ""),
		"driver": w.node(passes["driver"], overTCP, 4, nil, ""), "customer": w.node(passes["customer"], overWS, 4, foreign, ""), "recipient": w.node(passes["recipient"], overWSS, 5, foreign, "")}
	hear := func(want ...string) {
		t.Helper()
		for role, e := range ears {
			w.eventually(func() bool { return len(e.types(w.chat())) >= len(want) }, "%s of %v", role, want)
			require.Equal(t, want, e.types(w.chat()), role)
		}
	}
	first := w.says("driver", "I am at the lobby", "all")
	hear("message.created") // now everybody listens, and not only to what is kept
	for _, role := range []string{"customer", "recipient"} {
		w.eventually(func() bool { return ears[role].answers() != nil })
		for _, topic := range foreign {
			require.GreaterOrEqual(t, ears[role].answers()[topic], 128, "%s: %s", role, topic)
		}
	}
	got := ears["recipient"].heard(w.chat())[0]
	require.Regexp(t, `^och_[0-9A-Z]{26}$`, got.body["event_id"])
	require.EqualValues(t, w.order, got.body["order_id"])
	require.Equal(t, map[string]any{"type": "driver", "id": float64(w.ids["driver"]), "name": "Sam Lee"}, got.body["data"].(map[string]any)["message"].(map[string]any)["sender"])

	hidden := w.says("contractor", "The customer shouts", "staff_driver")
	message := fmt.Sprintf("/api/v1/order-chat/messages/%d", first)
	w.good("PATCH", message, w.tokens["driver"], map[string]any{"text": "I am at the gate"})
	w.good("POST", w.of("/read"), w.tokens["customer"], map[string]any{"last_message_id": first})
	w.good("POST", w.of("/read"), w.tokens["admin"], map[string]any{"last_message_id": hidden})
	require.Equal(t, http.StatusNoContent, w.bare("POST", w.of("/typing"), w.tokens["recipient"], `{"typing":true}`))
	w.good("POST", w.of("/participants"), w.tokens["admin"], map[string]any{"id": w.ids["customer"], "muted": true})
	second := w.says("recipient", "Come up", "all")
	w.good("DELETE", fmt.Sprintf("/api/v1/order-chat/messages/%d", second), w.tokens["recipient"], nil)
	want := []string{"message.created", "message.updated", "message.read", "message.read", "typing", "participant.changed", "message.created", "message.deleted"}
	hear(want...)
	w.good("POST", w.of("/close"), w.tokens["staff"], nil)
	recipient := ears["recipient"]
	w.eventually(recipient.gone, "the recipient leaves when the conversation closes")
	require.Equal(t, append(want, "conversation.closed"), recipient.types(w.chat()), "and hears why")
	delete(ears, "recipient")
	hear(append(want, "conversation.closed")...)
	w.good("POST", w.of("/reopen"), w.tokens["staff"], nil)
	hear(append(want, "conversation.closed", "conversation.reopened")...)
	w.says("staff", "Open again", "all")
	hear(append(want, "conversation.closed", "conversation.reopened", "message.created")...)

	for _, role := range []string{"admin", "staff", "contractor", "driver"} {
		e := ears[role]
		require.Equal(t, []string{"message.created", "message.read"}, e.types(w.staff()), role)
		require.EqualValues(t, hidden, e.heard(w.staff())[0].body["data"].(map[string]any)["message"].(map[string]any)["message_id"])
	}
	events := ears["customer"].heard(w.chat())
	require.EqualValues(t, first, events[3].body["data"].(map[string]any)["last_message_id"], "how far everybody sees that the administrator has read")
	for _, e := range []*ear{ears["customer"], recipient} {
		e.mu.Lock()
		for _, h := range e.all {
			require.Equal(t, w.chat(), h.topic)
			require.NotContains(t, fmt.Sprint(h.body), "shouts")
		}
		e.mu.Unlock()
	}
	require.False(t, slices.ContainsFunc(events, func(h heardEvent) bool { return strings.Contains(fmt.Sprint(h.body), fmt.Sprint(hidden)) }), "nor its number")
}

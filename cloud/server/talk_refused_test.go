package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Credentials are good for the topics that they name, to subscribe, for an hour
// and for the business whose they are. Nothing else is let in.
func TestOthersReceiveNothingOfAChat(t *testing.T) {
	bothTalks(t, nobodyElse)
}

func nobodyElse(t *testing.T, w *talkWorld) {
	first := w.order
	other, _ := w.newOrder()
	broker := "tcp://" + w.addr[overTCP]
	for i, role := range talkers {
		p := w.pass(role)
		tried := []string{"#", "tms/#", "tms/order-chat/1/+", w.chat() + "/#", "$SYS/#", fmt.Sprintf("tms/order-chat/1/%d", other), fmt.Sprintf("tms/order-chat/2/%d", first), w.staff(),
			"tms/business/1/orders", "tms/business/2/orders", fmt.Sprintf("tms/driver/%d/push", w.ids["driver"]), fmt.Sprintf("tms/driver/%d/push", w.ids["another driver"]), "$share/x/" + w.chat()}
		tried = slices.DeleteFunc(tried, func(topic string) bool { return slices.Contains(p.Topics, topic) })
		for part := range slices.Chunk(tried, 8) { // who tries more is let go
			c, e, err := w.paho(p, broker)
			require.NoError(t, err)
			for _, topic := range part {
				require.EqualValues(t, 0x80, e.subscribe(t, c, topic), "%s: %s", role, topic)
			}
			c.Disconnect(0)
		}
		for _, topic := range []string{w.chat(), "tms/device/CAB-1/up", "x"} {
			c, e, err := w.paho(p, broker)
			require.NoError(t, err)
			c.Publish(topic, byte(i%2), false, "{}")
			w.eventually(e.gone, "%s publishes to %s", role, topic)
		}
		w.badPasswords(p, broker)
	}
	// The same by another library: who publishes over WebSocket is let go.
	p := w.pass("driver")
	w.eventually(w.node(p, overWS, 5, nil, w.chat()).gone)

	// The order is closed to accounts that do not take part.
	body := fmt.Sprintf(`{"order_ids":[%d]}`, first)
	const token = "/api/v1/order-chat/token"
	for _, role := range []string{"stranger", "another driver", "another customer"} {
		require.Equal(t, http.StatusNotFound, w.bare("POST", token, w.tokens[role], body), role)
		require.Equal(t, http.StatusNotFound, w.bare("GET", w.of("/messages"), w.tokens[role], ""), role)
		require.Equal(t, http.StatusNotFound, w.bare("POST", w.of("/messages"), w.tokens[role], `{"text":"x"}`), role)
	}
	require.Equal(t, http.StatusNotFound, w.bare("POST", token, w.tokens["recipient"], fmt.Sprintf(`{"order_ids":[%d]}`, other)))
	require.Equal(t, http.StatusUnauthorized, w.bare("POST", token, "", body))
	require.Equal(t, http.StatusUnauthorized, w.bare("POST", token, w.tokens["recipient"]+"x", body))
	require.Equal(t, http.StatusUnprocessableEntity, w.bare("POST", token, w.tokens["admin"], `{"order_ids":[`+strings.Repeat("1,", 50)+`1]}`))
	for _, call := range [][2]string{{"GET", "/api/v1/order-chat/conversations"}, {"POST", w.of("/close")}, {"GET", w.of("/participants")}, {"GET", "/api/v1/order-chat/settings"}} {
		require.GreaterOrEqual(t, w.bare(call[0], call[1], w.tokens["recipient"], ""), 401, "%v", call)
	}
	// An administrator of another business receives its own dashboard and nothing of this.
	m := w.good("POST", "/api/v1/user/live-token", w.tokens["stranger"], map[string]any{})["mqtt"].(map[string]any)
	p = pass{ClientID: m["client_id"].(string), Username: m["username"].(string), Password: m["password"].(string)}
	c, e, err := w.paho(p, broker)
	require.NoError(t, err)
	require.Equal(t, []any{"tms/business/2/orders"}, m["topics"])
	for _, topic := range []string{w.chat(), w.staff(), "tms/business/1/orders"} {
		require.EqualValues(t, 0x80, e.subscribe(t, c, topic), topic)
	}
}

// badPasswords tries what is none, or none of this client's, or over.
func (w *talkWorld) badPasswords(p pass, broker string) {
	w.t.Helper()
	bad := func(what string, change func(*pass)) {
		w.t.Helper()
		q := p
		change(&q)
		_, _, err := w.paho(q, broker)
		require.Error(w.t, err, "%s: %s", p.role, what)
	}
	for _, i := range []int{0, len(p.Password) / 2, len(p.Password) - 1} {
		bad("tampered", func(q *pass) {
			b := []byte(q.Password)
			b[i] ^= 1
			q.Password = string(b)
		})
	}
	bad("none", func(q *pass) { q.Password = "" })
	bad("of another client", func(q *pass) { q.Password = w.pass(p.role).Password })
	bad("the token itself", func(q *pass) { q.Password = w.tokens[p.role] })
	sealed, err := base64.RawURLEncoding.DecodeString(p.Password)
	require.NoError(w.t, err)
	plain, err := w.s.Box.Open("live channel/"+p.ClientID, sealed)
	require.NoError(w.t, err)
	var claim map[string]any
	require.NoError(w.t, json.Unmarshal(plain, &claim))
	seal := func(changed map[string]any) string {
		plain, err := json.Marshal(changed)
		require.NoError(w.t, err)
		return base64.RawURLEncoding.EncodeToString(w.s.Box.Seal("live channel/"+p.ClientID, plain))
	}
	q := p
	q.Password = seal(claim)
	c, _, err := w.paho(q, broker)
	require.NoError(w.t, err, "this is how they are made")
	c.Disconnect(0)
	claim["e"] = time.Now().Unix()
	bad("expired", func(q *pass) { q.Password = seal(claim) })
}

// What ends a participant's part ends the connection, and the credentials with it.
func TestWhoLosesTheirPartIsDisconnected(t *testing.T) {
	bothTalks(t, losesItsPart)
}

func losesItsPart(t *testing.T, w *talkWorld) {
	ends := func(role string, why func()) {
		t.Helper()
		p := w.pass(role)
		c, e, err := w.paho(p, "tcp://"+w.addr[overTCP])
		require.NoError(t, err)
		for _, topic := range p.Topics {
			require.EqualValues(t, 1, e.subscribe(t, c, topic))
		}
		time.Sleep(5 * w.cfg.Recheck)
		require.False(t, e.gone(), "%s is there", role)
		why()
		w.eventually(e.gone, "%s is let go", role)
		_, _, err = w.paho(p, "tcp://"+w.addr[overTCP])
		require.Error(t, err, "%s is not let in again", role)
	}
	settings := func(name string, on bool) {
		w.good("PUT", "/api/v1/order-chat/settings", w.tokens["admin"], map[string]any{name: on})
	}
	const token = "/api/v1/order-chat/token"
	body := fmt.Sprintf(`{"order_ids":[%d]}`, w.order)
	w.says("admin", "Hello", "all")
	ends("customer", func() { settings("allow_customer", false) })
	require.Equal(t, http.StatusForbidden, w.bare("POST", token, w.tokens["customer"], body))
	settings("allow_customer", true)
	ends("customer", func() {
		w.good("DELETE", fmt.Sprintf("%s?id=%d", w.of("/participants"), w.ids["customer"]), w.tokens["admin"], nil)
	})
	ends("recipient", func() { settings("allow_recipient", false) })
	settings("allow_recipient", true)
	ends("driver", func() { w.give(w.order, "another driver") })
	require.Equal(t, http.StatusForbidden, w.bare("POST", token, w.tokens["driver"], body))
	require.Equal(t, http.StatusForbidden, w.bare("POST", w.of("/messages"), w.tokens["driver"], `{"text":"x"}`))
	require.Equal(t, http.StatusOK, w.bare("GET", w.of("/messages"), w.tokens["driver"], ""), "it may read for a day")
	ends("another driver", func() { require.Less(t, w.bare("POST", "/api/v1/user/logout", w.tokens["another driver"], `{}`), 300) })
	w.give(w.order, "driver")
	ends("recipient", func() {
		o := w.good("POST", fmt.Sprintf("/api/v1/orders/%d/tracking-number", w.order), w.tokens["admin"], nil)["order"].(map[string]any)
		w.number = o["tracking_number"].(string)
	})
	require.Equal(t, http.StatusUnauthorized, w.bare("POST", token, w.tokens["recipient"], body), "a new number replaces the link")
	w.tokens["recipient"], _ = w.good("GET", "/api/v1/tracking/"+w.number, w.tokens["admin"], nil)["chat"].(map[string]any)["token"].(string)
	ends("staff", func() {
		w.good("PATCH", fmt.Sprintf("/api/v1/users/%d", w.ids["staff"]), w.tokens["admin"], map[string]any{"permissions": []string{"orders:read"}})
	})
	ends("recipient", func() { w.good("POST", w.of("/close"), w.tokens["admin"], nil) })
	require.Equal(t, http.StatusUnauthorized, w.bare("POST", token, w.tokens["recipient"], body))
	w.good("POST", w.of("/reopen"), w.tokens["admin"], nil)
	require.Equal(t, http.StatusUnauthorized, w.bare("POST", token, w.tokens["recipient"], body), "for good")
	ends("driver", func() {
		w.good("PUT", "/api/v1/features/order_chat", w.tokens["admin"], map[string]any{"enabled": false})
	})
	status, out := w.call("POST", token, w.tokens["driver"], map[string]any{"order_ids": []int{w.order}})
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, false, out["feature_enabled"])
}

package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// reading are operations that change nothing, whatever their method, or only
// what was measured; elsewhere
// are those whose work is done by what this world does not have.
var (
	reading   = []string{"otep.batch", "otep.validate", "orders.operations", "orders.rate", "driver.location", "order_chat.read", "order_chat.typing", "order_chat.token", "user.live_token", "user.login.passkey.begin"}
	elsewhere = []string{"devices.enrol", "third_party.deliveries.confirm", "third_party.deliveries.confirm_retrieval", "smart_lockers.deliveries.confirm", "user.password_reset.request", "user.passkeys.create", "user.login.passkey"}
)

// audits are all lines of the world.
func (x *world) audits() []cloud.Audit {
	var out []cloud.Audit
	for _, b := range []cloud.BusinessID{0, 42, 43} {
		rows, err := x.w.DB.ListAudits(x.t.Context(), b, 0, 1000)
		require.NoError(x.t, err)
		for _, r := range rows {
			out = append(out, r.Audit)
		}
	}
	return out
}

// Every operation that writes leaves a line that says who did what to what, and
// by which call; no line holds a secret, a code or a body.
func TestEveryWriteLeavesAnAuditLine(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestEveryOperationLetsInWhomItsRowNames, of the same rows")
	t.Parallel()
	for _, o := range newWorld(t).table.Operations() {
		if !o.Writes() || slices.Contains(reading, o.Name) || slices.Contains(elsewhere, o.Name) {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			x := newWorld(t)
			c := x.call(o)
			before := len(x.audits())
			token := x.token(c.as)
			a := x.do(o.Method, c.path, token, c.body)
			if a.code() != "MODULE_UNAVAILABLE" { // it waits for a cabinet that says nothing
				require.Less(t, a.status, 300, "%s", a.body)
			}
			lines := x.audits()
			require.Greater(t, len(lines), before, "%s", a.body)
			var mine []cloud.Audit
			for _, l := range lines {
				require.True(t, x.table.Find(l.Action) != nil || locale.Action(locale.German, l.Action) != "", "%s has no words", l.Action)
				var d map[string]any
				if json.Unmarshal([]byte(l.Detail), &d) == nil && d["operation"] == o.Name && d["request_id"] == requestID && d["surface"] == "api" && d["ip"] != "" && d["outcome"] == "done" {
					mine = append(mine, l)
				}
				for _, secret := range []string{webtest.PickupCode, webtest.DeliveryCode, webtest.Secret, webtest.Password, "long enough", "Ada Moreau", "correct horse"} {
					require.NotContains(t, l.Detail+l.Target+l.Action, secret)
				}
				if token != "" {
					require.NotContains(t, l.Detail+l.Target+l.Action, token)
				}
				if shown, _ := a.json["token"].(string); shown != "" {
					require.NotContains(t, l.Detail, shown)
				}
			}
			require.NotEmpty(t, mine)
			whose := map[cloud.BusinessID]bool{} // what an operator does is the platform's, and the business's where it is about one
			for _, l := range mine {
				whose[l.BusinessID] = true
			}
			require.True(t, whose[42] || (strings.HasPrefix(o.Name, "platform.") || o.Name == "user.login.second_factor") && whose[0], "%v", whose)
			require.Equal(t, token == "", mine[0].Actor == "anonymous")
			require.NotEmpty(t, mine[0].Actor)
			if strings.Contains(o.Path, "{") {
				require.NotEmpty(t, mine[0].Target)
			}
		})
	}
}

// A refused attempt at a dangerous operation leaves a line too, by any caller that has a
// name.
func TestRefusedAttemptsLeaveALine(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	id, _ := x.order(cloud.OrderNew)
	before := len(x.audits())
	path := "/api/v1/orders/" + id + "/cancel"
	require.Equal(t, 401, x.do("POST", path, "", "{}").status)
	require.Len(t, x.audits(), before)
	for i, try := range []struct{ token, code string }{{x.token(provider), "ACCOUNT_TYPE_NOT_ALLOWED"}, {x.token(cloud.ClientEmployee), "FORBIDDEN"}} {
		require.Equal(t, try.code, x.do("POST", path, try.token, "{}").code())
		lines := x.audits()
		require.Len(t, lines, before+i+1)
	}
	require.Equal(t, "ORDER_NOT_FOUND", x.do("POST", path, x.w.OtherAdmin, "{}").code())
	require.Equal(t, 403, x.do("POST", "/api/v1/orders/"+id+"/ready", x.token(provider), "{}").status, "of no high risk")
	lines := x.audits()
	require.Len(t, lines, before+3)
	// An operation whose refusal is sent as an event was not done either.
	x.told()
	x.made("PUT", "/api/v1/webhook-settings", x.token(admin), `{"order_cancel_failed_webhook_url":"https://mine.example/refused"}`)
	over, _ := x.order(cloud.OrderDelivered)
	before = len(x.audits())
	require.Equal(t, "ORDER_NOT_CANCELLABLE", x.do("POST", "/api/v1/orders/"+over+"/cancel", x.token(admin), "{}").code())
	require.Contains(t, fmt.Sprint(x.made("GET", "/api/v1/webhook-delivery-logs", x.token(admin), "")), "order.cancel_failed")
	after := x.audits()
	require.Len(t, after, before+1)
	for _, l := range after {
		require.False(t, strings.HasSuffix(l.Target, "="+over) && strings.Contains(l.Detail, `"outcome":"done"`), "%+v", l)
	}
	found := map[string]cloud.Audit{}
	for _, l := range lines {
		var d map[string]any
		if json.Unmarshal([]byte(l.Detail), &d) == nil {
			found[fmt.Sprint(d["outcome"])] = l
		}
	}
	require.Equal(t, cloud.BusinessID(43), found["ORDER_NOT_FOUND"].BusinessID, "the line is of the business of who tried")
	require.Equal(t, "order_id="+id, found["ORDER_NOT_FOUND"].Target)
	require.Equal(t, "orders.cancel", found["FORBIDDEN"].Action)
	require.Equal(t, "account:20", found["ACCOUNT_TYPE_NOT_ALLOWED"].Actor)
}

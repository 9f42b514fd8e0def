package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// A verb of an order is offered in exactly the states in which it works.
func TestVerbsOfAnOrderAreOfferedWhereTheyWork(t *testing.T) {
	ring.SkipUnlessCheck(t, "single operations; this one walks over all of them")
	t.Parallel()
	x := newWorld(t)
	n := x.table.Noun("order")
	tried := 0
	for _, verb := range n.Verbs {
		o := x.table.Find(verb)
		if len(o.When) == 0 {
			continue
		}
		for _, s := range cloud.OrderStates() {
			if s.ID == cloud.OrderIntercepted { // belongs to an interception
				continue
			}
			id, _ := x.order(s.ID)
			in := o.WorkedInput()
			for member := range maps.Clone(in) {
				switch member {
				case "order_id":
					in[member] = json.Number(id)
				case "order_ids":
					in[member] = []any{json.Number(id)}
				case "provider_id":
					in[member] = 17
				case "order_status_id":
					in[member] = int(cloud.OrderReceived)
					if s.ID == cloud.OrderReceived {
						in[member] = int(cloud.OrderArrivalScan)
					}
				}
			}
			path := pathOf(*o, in)
			for _, m := range o.Members() {
				if m.Place != "" {
					delete(in, m.Name)
				}
			}
			raw, err := json.Marshal(in)
			require.NoError(t, err)
			a := x.do(o.Method, path, x.token(admin), string(raw))
			failed, _ := a.json["errors"].([]any)
			works := a.status < 300 && len(failed) == 0
			require.True(t, works || a.status == 409 || len(failed) == 1, "%s in %s: %d %s", verb, s.Name, a.status, a.body)
			assert.Equal(t, slices.Contains(o.When, strconv.Itoa(int(s.ID))), works, "%s in %s: %d %s", verb, s.Name, a.status, a.body)
			tried++
		}
	}
	require.Greater(t, tried, 250, fmt.Sprint(tried))
}

// What an operation on several records refuses is said on its page, and is not done.
func TestAPageSaysWhatWasRefusedOfSeveral(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	good, _ := x.order(cloud.OrderNew)
	route := x.id(at(x.made("POST", "/api/v1/routes", x.token(admin), `{"date":"2099-12-01","driver_id":4,"name":"Round"}`), "route", "route_id"))
	path := "/console/routes/" + route + "/add"
	s := d.preview(p.session, path, d.form(p.session, path), "in:order_ids", good+"\n999999")
	s = d.ask(p.session, path, filled(formIn(t, s), "step", "do"))
	require.Equal(t, 409, s.status, s.body)
	require.Regexp(t, `role="alert">.*999999: `, s.body)
	require.NotContains(t, s.body, "notice done")
	require.EqualValues(t, 1, len(at(x.made("GET", "/api/v1/routes/"+route, x.token(admin), ""), "route", "stops").([]any)))
}

// Callers are offered the verbs of a work item that they may use on its kind.
func TestVerbsOfAWorkItemAreOfferedToThoseWhoMay(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	items := []string{x.exception(), "approval-" + x.approval()}
	offered := map[bool]int{}
	for _, scopes := range [][]string{{"lockers:read"}, {"lockers:read", "lockers:write"}, {"approvals:read"}, {"approvals:read", "approvals:write"}, cloud.AllScopes()} {
		p := x.signIn("employee", x.token(cloud.ClientEmployee), scopes...)
		for _, item := range items {
			at := "/console/work/" + item
			s := d.ask(p.session, at, nil)
			if s.status != 200 {
				require.Equal(t, 404, s.status)
				continue
			}
			for verb, body := range map[string]string{"note": `{"note":"x"}`, "snooze": `{"hours":0}`, "take": `{"instead":true}`, "close": `{"note":"y"}`} {
				shown := strings.Contains(headPart.FindString(s.body), at+"/"+verb+`"`)
				a := answer{status: 200}
				if verb != "close" || item != items[0] { // it would be gone
					a = x.do("POST", "/api/v1/work-items/"+item+"/"+verb, p.session, body)
				} else if !slices.Contains(scopes, "lockers:write") {
					a.status = 403
				}
				require.Equal(t, a.status < 300, shown, "%v: %s of %s: %d %s", scopes, verb, item, a.status, a.body)
				offered[shown]++
			}
		}
	}
	require.Greater(t, offered[true], 6)
	require.Greater(t, offered[false], 6)

	// One that has an owner can be given back, and one that has none cannot.
	p := x.signIn("admin", x.token(admin))
	item := x.exception()
	at := "/console/work/" + item
	require.NotContains(t, headPart.FindString(d.ask(p.session, at, nil).body), at+`/release"`)
	x.made("POST", "/api/v1/work-items/"+item+"/take", p.session, `{}`)
	require.Contains(t, headPart.FindString(d.ask(p.session, at, nil).body), at+`/release"`)
}

// The verbs of a route are offered where they work: dispatching needs a driver and
// orders, removing needs orders, a cancelled route takes nothing.
func TestVerbsOfARouteAreOfferedWhereTheyWork(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	planned, _ := x.planned(false)
	undriven, taken := x.planned(false)
	x.made("PATCH", "/api/v1/routes/"+undriven, x.token(admin), `{"driver_id":0}`)
	cancelled := x.route()
	x.made("POST", "/api/v1/routes/"+cancelled+"/cancel", x.token(admin), `{}`)
	for route, verbs := range map[string]string{planned: "dispatch add remove update cancel", undriven: "add remove update cancel", x.route(): "add update cancel", cancelled: ""} {
		s := d.ask(p.session, "/console/routes/"+route, nil)
		require.Equal(t, 200, s.status)
		for _, verb := range []string{"dispatch", "add", "remove", "update", "cancel"} {
			require.Equal(t, slices.Contains(strings.Fields(verbs), verb), strings.Contains(headPart.FindString(s.body), "/console/routes/"+route+"/"+verb+`"`), "%s of route %s, which has %q", verb, route, verbs)
		}
	}
	require.Equal(t, 409, x.do("POST", "/api/v1/routes/"+undriven+"/dispatch", x.token(admin), `{}`).status)
	require.Equal(t, 200, x.do("POST", "/api/v1/routes/"+undriven+"/orders/remove", x.token(admin), `{"order_ids":[`+taken+`]}`).status)

	// A driver that is not chosen is missed at its field, not as a state of the order.
	free, _ := x.order(cloud.OrderNew)
	path := "/console/orders/" + free + "/driver"
	s := d.preview(p.session, path, d.form(p.session, path))
	require.Equal(t, 422, s.status)
	require.Regexp(t, `aria-invalid="true" aria-describedby="f-driver_id-p"`, s.body)

	// The preview of a cancelled route says what becomes of it and of its orders.
	path = "/console/routes/" + planned + "/cancel"
	s = d.preview(p.session, path, d.form(p.session, path))
	require.Equal(t, 200, s.status)
	text := mainPart.FindString(s.body)
	require.Regexp(t, `<td class="was"><bdi>Planned</bdi></td><td class="will"><bdi>Cancelled</bdi>`, text)
	require.NotContains(t, text, "Changes besides: Route")

	// Of an unchanged one it says that nothing changes.
	path = "/console/routes/" + planned + "/update"
	s = d.preview(p.session, path, d.form(p.session, path))
	require.Equal(t, 200, s.status)
	require.Contains(t, mainPart.FindString(s.body), "Nothing changes.")
	require.NotContains(t, mainPart.FindString(s.body), "Changes besides")
}

// What becomes of a cabinet is said before it is cut off.
func TestPreviewsOfACabinetSayWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	for verb, says := range map[string]string{"report_stolen": "Active", "retire": "Out of service for good", "replace_hardware": "Waiting for its hardware"} {
		path := "/console/cabinets/89/" + verb
		s := d.preview(p.session, path, d.form(p.session, path), "in:reason", "A test", "in:leave_contents", "true")
		require.Equal(t, 200, s.status, mainPart.FindString(s.body))
		require.Regexp(t, `<th scope="row"><bdi>`+says+`</bdi>`, mainPart.FindString(s.body), verb)
	}
	s := d.ask(p.session, "/console/cabinets/89?tab=service", nil)
	require.NotContains(t, s.body, "/console/cabinets/89/renew_token", "it has enrolled")
}

// An order without a weight lacks it at the field of its first package.
func TestAnEmptyRowSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	const path = "/console/orders/new"
	s := d.preview(p.session, path, d.form(p.session, path), "in:type", "D", "in:recipient.name", "Ada")
	require.Equal(t, 422, s.status)
	require.Regexp(t, `<input id="f-packages\[0\]\.weight"[^>]*aria-invalid="true"`, s.body)
}

package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A verb of an order is offered in exactly the states in which it works.
func TestVerbsOfAnOrderAreOfferedWhereTheyWork(t *testing.T) {
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
	s := d.ask(p.session, path, filled(d.form(p.session, path), "step", "next", "in:order_ids", good+"\n999999"))
	s = d.ask(p.session, path, filled(formIn(t, s), "step", "do"))
	require.Equal(t, 409, s.status, s.body)
	require.Regexp(t, `role="alert">.*999999: `, s.body)
	require.NotContains(t, s.body, "notice done")
	require.EqualValues(t, 1, len(at(x.made("GET", "/api/v1/routes/"+route, x.token(admin), ""), "route", "stops").([]any)))
}

package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
)

// A customer does not see staff's note of its order, and wrote over it.
func TestAttackCustomersOverwriteNotes(t *testing.T) {
	t.Parallel()
	g := launch(t)
	p := g.order(g.box.Customer.Token, "NOTE-1")
	path := fmt.Sprintf("/api/v1/orders/%d", p.id)
	g.must("PATCH", path, g.box.Admin.Token, `{"note":"pays late: call first"}`)
	for _, body := range []string{`{"note":""}`, `{"note":"good customer"}`, `{"note":"x","priority":5}`} {
		r := g.call("PATCH", path, g.box.Customer.Token, body)
		require.Equal(t, 422, r.status, r.raw)
		require.Contains(t, r.raw, "delivery_instruction", "what is allowed is said")
	}
	r := g.must("GET", path, g.box.Admin.Token, "")
	require.Equal(t, "pays late: call first", r.text("order.note"))
	require.NotEqual(t, 5.0, r.at("order.priority"))
	g.must("PATCH", path, g.box.Customer.Token, `{"delivery_instruction":"ring twice"}`)
}

// An employee whom nothing is permitted looked at the console: which door holds
// what, openings, deliveries and webhooks.
func TestAttackTheConsoleShowsByRights(t *testing.T) {
	t.Parallel()
	g := launch(t)
	s, err := g.server.Sandbox(t.Context(), server.SandboxConfig{})
	require.Error(t, err, "there is one already: %v", s)
	require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.DeviceIDs)
		d := cloud.Device{ID: cloud.DeviceID(id), BusinessID: 1, Code: "SECRET-YARD", Name: "Secret Yard", Type: "smart_locker", Timezone: "UTC", Protocol: "mqtt"}
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}, LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{{DeviceID: d.ID, Door: 1, GridID: 77, GridCode: "Z-77", Size: "M", State: "occupied", DoorStatus: "closed", Column: 1, Row: 1}}}}, err
	}))
	permit := func(scopes ...string) {
		require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: 1, Types: []cloud.AccountType{cloud.ClientEmployee}, Page: cloud.Page{Sort: "id", Limit: 10}})
			for i := range list {
				list[i].Permissions = scopes
			}
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: list}}, err
		}))
	}
	staff := g.signIn(g.box.Staff)
	console := func() string { return staff.send("GET", "/console", nil).raw }
	require.Contains(t, console(), "Secret Yard")
	sections := map[string]string{"cabinets": "lockers:read", "deliveries": "lockers:read", "openings": "lockers:read", "webhooks": "webhooks:read"}
	permit()
	shown := console()
	for section := range sections {
		require.NotContains(t, shown, fmt.Sprintf(`id="%s"`, section))
	}
	for _, secret := range []string{"Secret Yard", "SECRET-YARD", "Z-77", "/console/chats", "/mcp-approvals"} {
		require.NotContains(t, shown, secret)
	}
	require.Contains(t, shown, "administrator", "what to do is said")
	permit("webhooks:read")
	require.NotContains(t, console(), `id="webhooks"`, "the log is for administrators: no scope gives it to an employee")
	admin := g.signIn(g.box.Admin).send("GET", "/console", nil).raw
	for section := range sections {
		require.Contains(t, admin, fmt.Sprintf(`id="%s"`, section))
	}
	require.Equal(t, 403, staff.send("GET", "/console/webhooks", nil).status)
	require.Equal(t, 403, staff.send("GET", "/console/chats", nil).status)
	permit("lockers:read")
	for section, scope := range sections {
		require.Equal(t, scope == "lockers:read", strings.Contains(console(), fmt.Sprintf(`id="%s"`, section)), section)
	}
}

package e2e

import (
	"fmt"
	"io"
	"mime/quotedprintable"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/notification/mailtest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

var resetLink = regexp.MustCompile(`/password-reset\?key=([\w-]{64})`)

// mailedKey waits for a link to a new password, in a mail to an address.
func (f *firm) mailedKey(post *mailtest.Server, to string) string {
	f.t.Helper()
	for {
		select {
		case got := <-post.Mails:
			raw, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(got.Raw)))
			require.NoError(f.t, err)
			if found := resetLink.FindSubmatch(raw); found != nil && strings.Contains(got.To, to) {
				return string(found[1])
			}
		case <-time.After(time.Minute):
			require.FailNow(f.t, "no link came by mail")
		}
	}
}

// A business makes an account for a customer. A partner brings a parcel for the customer's mail
// address to a cabinet. Until the customer has chosen a password by a link in a mail, the account
// is shown nothing, whatever the business set; then the customer finds the parcel without its
// link, opens the door with the characters of the cabinet's screen and brings the parcel back.
func TestACustomerCollectsByTheAccount(t *testing.T) {
	ring.SkipUnlessCheck(t, "the calls one by one")
	if testing.Short() {
		t.Skip("runs in real time")
	}
	t.Parallel()
	post := mailtest.New(t)
	settings := post.Settings()
	f := &firm{t: t, dir: t.TempDir(), mail: &settings}
	admin := f.begin()
	f.ok(admin, "PUT", "/api/v1/settings", map[string]any{"locker_returns": true})
	pier := f.newBox(admin, "PIER-1", admin)
	f.ok(admin, "PATCH", fmt.Sprintf("/api/v1/smart-lockers/devices/%.0f", pier.id), map[string]any{"public": true})
	made := f.ok(admin, "POST", "/api/v1/providers", map[string]any{"code": "swift", "name": "Swift", "services": []string{"locker"}, "livemode_allowed": true})
	provider := worker{person: person{base: f.base, language: "en"}}
	provider.token = f.ok(admin, "POST", fmt.Sprintf("/api/v1/providers/%v/tokens", made.at("provider", "id")), map[string]any{"name": "first"}).at("token").(string)
	customer := func(email, password string) float64 {
		return f.ok(admin, "POST", "/api/v1/customers", map[string]any{"name": "Jane Smith", "email": email, "password": password}).at("customer", "id").(float64)
	}
	jane := worker{person: person{base: f.base, language: "en"}, email: "jane@mail.example"}
	jane.id = customer("Jane@Mail.example", beginnerPassword)
	neighbour := worker{person: person{base: f.base, language: "en"}, email: "neighbour@mail.example"}
	neighbour.id = customer(neighbour.email, beginnerPassword)

	const deliveries, parcels, preferred = "/api/v1/third-party-delivery/deliveries", "/api/v1/customer/lockers/parcels", "/api/v1/customer/lockers/preferred"
	f.ok(provider, "POST", deliveries, map[string]any{"reference_number": "R-1", "device_id": pier.id,
		"recipient": map[string]any{"name": "Jane Smith", "phone": "+14165550123", "email": "JANE@mail.example"}, "packages": []any{map[string]any{"tracking_number": "PK-1", "size": "S"}}})
	f.ok(provider, "POST", deliveries+"/ref:R-1/open-doors", map[string]any{})
	door := pier.openDoor()
	require.NoError(t, pier.sim.Put(door, "PK-1"))
	time.Sleep(time.Second) // a door that shuts at once is a bounce
	require.NoError(t, pier.sim.CloseDoor(door))
	status := func(ref string) any {
		return f.ok(provider, "GET", deliveries+"/ref:"+ref, nil).at("delivery", "status")
	}
	f.awaits("the parcel is delivered", func() bool { return status("R-1") == "delivered" })
	number := f.ok(provider, "GET", deliveries+"/ref:R-1", nil).at("delivery", "delivery_number").(string)

	// The business signs in with the password that it set, and is shown nothing.
	f.login(&jane, "")
	key := f.ok(jane, "POST", "/api/v1/user/api-keys", map[string]any{"name": "left", "profile": "full"}).at("token").(string)
	left := worker{person: person{base: f.base, language: "en", token: key}}
	refused := jane.do(t, "GET", parcels, nil)
	require.Equal(t, []any{403, "EMAIL_NOT_VERIFIED"}, []any{refused.status, refused.at("error_code")})
	open := func(w worker) answered {
		return w.do(t, "POST", parcels+"/"+number+"/open", map[string]any{"on_site_token": pier.agent.OnSite()})
	}
	require.Equal(t, "DELIVERY_NOT_FOUND", open(jane).at("error_code"))

	for _, w := range []*worker{&jane, &neighbour} {
		f.ok(*w, "POST", "/api/v1/user/password-reset/request", map[string]any{"email": w.email})
		f.ok(*w, "POST", "/api/v1/user/password-reset", map[string]any{"token": f.mailedKey(post, w.email), "password": beginnerPassword})
		f.login(w, "")
	}
	require.Equal(t, 401, left.do(t, "GET", parcels, nil).status, "what was made before the address was verified")
	require.Equal(t, "DELIVERY_NOT_FOUND", open(neighbour).at("error_code"))
	require.Empty(t, f.ok(neighbour, "GET", parcels, nil).at("parcels"))
	list := f.ok(jane, "GET", parcels, nil)
	require.Equal(t, []any{number, 1.0}, []any{list.at("parcels", 0, "delivery_number"), list.at("total")})
	require.NotEmpty(t, list.at("parcels", 0, "pickup_code"))
	require.Equal(t, "NOT_AT_LOCKER", jane.do(t, "POST", parcels+"/"+number+"/open", map[string]any{"on_site_token": "222222"}).at("error_code"))

	got := open(jane)
	require.Equal(t, 200, got.status, "%v", got.body)
	require.Equal(t, door, pier.openDoor())
	items, err := pier.sim.TakeOut(door)
	require.NoError(t, err)
	require.Equal(t, []string{"PK-1"}, items)
	time.Sleep(time.Second)
	require.NoError(t, pier.sim.CloseDoor(door))
	f.awaits("the parcel is collected", func() bool { return status("R-1") == "picked_up" })

	require.Equal(t, "DELIVERY_NOT_FOUND", neighbour.do(t, "POST", parcels+"/"+number+"/return", map[string]any{}).at("error_code"))
	back := f.ok(jane, "POST", parcels+"/"+number+"/return", map[string]any{})
	list = f.ok(jane, "GET", parcels, nil)
	require.Empty(t, list.at("parcels"))
	require.Equal(t, back.at("return", "delivery_number"), list.at("to_bring", 0, "delivery_number"))
	code := back.at("return", "dropoff_code").(string)
	f.awaits("the cabinet opens for the return", func() bool {
		a, err := pier.agent.Codes().Type(t.Context(), code, nil)
		return err == nil && a.Outcome == wire.CodeOK
	})
	door = pier.openDoor()
	require.NoError(t, pier.sim.Put(door, "PK-1"))
	time.Sleep(time.Second)
	require.NoError(t, pier.sim.CloseDoor(door))
	f.awaits("the return waits for a courier", func() bool { return status("RETURN-"+back.at("return", "delivery_number").(string)) == "delivered" })
	require.Empty(t, f.ok(jane, "GET", parcels, nil).at("to_bring"))

	require.Equal(t, true, f.ok(jane, "PUT", preferred, map[string]any{"device_id": pier.id}).at("preferred", "preferred"))
	require.Equal(t, pier.id, f.ok(jane, "GET", preferred, nil).at("preferred", "device_id"))
	require.Nil(t, f.ok(neighbour, "GET", preferred, nil).at("preferred"))
}

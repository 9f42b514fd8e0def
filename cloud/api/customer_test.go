package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/webtest"
)

// waitsFor is the number of a delivery that waits for the person with a mail address.
func (x *world) waitsFor(mail string) string {
	x.n++
	d := x.w.Delivery
	d.ID, d.DeviceID, d.Handover, d.Recipient.Email = cloud.DeliveryID(86000+x.n), x.w.Device.ID, nil, mail
	d.Number, d.Reference = fmt.Sprintf("LD-%09d", d.ID), x.next("MINE-")
	d.Packages = []cloud.Package{{TrackingNumber: trackingOf(d.Number), Status: cloud.PackageInCompartment}}
	sh := cloud.Shipment{ID: cloud.ShipmentID(d.ID), BusinessID: d.BusinessID, Number: trackingOf(d.Number), ProviderID: d.ProviderID, DeliveryID: d.ID, Profile: "locker", CreatedAt: time.Now()}
	x.w.Write(x.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{sh}}})
	return d.Number
}

// trackingOf is the tracking number of a delivery of waitsFor.
func trackingOf(number string) string { return strings.Replace(number, "LD-", "TN", 1) }

// accountOf is the account of a token, as it is now.
func (x *world) accountOf(token string) (a cloud.Account) {
	x.t.Helper()
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(token))
	require.NoError(x.t, err)
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) (err error) { a, err = v.Account(s.Account.ID); return err }))
	return a
}

// By its account a parcel is the customer's whose verified address is the recipient's, at every
// operation of recipients. Any other account, of this business and of another one, is answered,
// byte for byte, as about a number that there is not, and nothing is done.
func TestParcelsOfAnAccount(t *testing.T) {
	onBoth(t, func(t *testing.T, x *world) {
		mail := x.w.Emails[cloud.Customer]
		number := x.waitsFor(strings.ToUpper(mail))
		here := fmt.Sprintf(`{"latitude":%v,"longitude":%v,"wait_seconds":0}`, x.w.Device.Latitude, x.w.Device.Longitude)
		calls := []struct{ method, path, body string }{
			{"GET", "?tracking_number=%s", ""},
			{"POST", "/%s/open", here},
			{"POST", "/%s/handover", toSam},
			{"DELETE", "/%s/handover", ""},
			{"POST", "/%s/return", "{}"},
			{"GET", "/%s/return", ""},
		}
		const parcels = "/api/v1/customer/lockers/parcels"
		ask := func(i int, number, token string, headers ...string) answer {
			if i == 0 {
				number = trackingOf(number)
			}
			return x.do(calls[i].method, parcels+fmt.Sprintf(calls[i].path, number), token, calls[i].body, headers...)
		}
		callers := map[string]string{}
		for typ, token := range x.w.Tokens {
			if typ != cloud.Customer {
				callers["of this business: "+string(typ)] = x.login(token, "lockers:write")
			}
		}
		for typ, token := range x.w.Others {
			callers["of another business: "+string(typ)] = x.login(token, "lockers:write")
		}
		// The customer of another business has the same address.
		x.changed(x.w.Others[cloud.Customer], func(a *cloud.Account) { a.Email = mail; a.ProveMail() })
		before := x.done()
		refuseAll := func() {
			for name, token := range callers {
				for i, c := range calls {
					foreign, none := ask(i, number, token), ask(i, "LD-000999999", token)
					require.Equal(t, http.StatusNotFound, foreign.status, "%s: %s %s: %s", name, c.method, c.path, foreign.body)
					require.Equal(t, string(none.body), string(foreign.body), "%s: %s %s", name, c.method, c.path)
				}
			}
		}
		refuseAll()
		require.Equal(t, before, x.done())
		for i := range calls { // no account, and no key but a wrong one
			require.Equal(t, http.StatusNotFound, ask(i, number, "", "X-Tracking-Key", "wrong").status)
		}
		narrow := x.login(x.w.Tokens[cloud.ClientEmployee])
		require.Equal(t, "FORBIDDEN", ask(1, number, narrow).code(), "a token without the scope")
		require.Equal(t, "TOKEN_INVALID", ask(1, number, "unknown", "X-Tracking-Key", webtest.Links.OfShipment(1, 0)).code(), "a bad token is no anonymous call")

		mine := x.w.Tokens[cloud.Customer]
		list := x.made("GET", parcels, mine, "")
		require.Len(t, list["parcels"], 1)
		first := list["parcels"].([]any)[0].(map[string]any)
		require.Equal(t, []any{number, webtest.PickupCode}, []any{first["delivery_number"], first["pickup_code"]})
		numbered := ask(0, number, mine)
		require.Equal(t, list["parcels"], numbered.json["parcels"])
		require.Equal(t, http.StatusNotFound, ask(0, x.waitsFor("x"+mail), mine).status, "another person's number")
		handed := ask(2, number, mine)
		require.Equal(t, http.StatusOK, handed.status, "%s", handed.body)
		require.Equal(t, http.StatusOK, ask(3, number, mine).status)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", ask(4, number, mine).code())
		opened := ask(1, number, mine)
		require.NotContains(t, []int{401, 403, 404}, opened.status, "%s", opened.body)

		// From the moment that the address, the password or the account changes, nothing.
		for name, change := range map[string]func(a *cloud.Account){
			"another address":            func(a *cloud.Account) { a.Email = "x" + mail },
			"a password of the business": func(a *cloud.Account) { a.PasswordHash = "x" },
			"never verified":             func(a *cloud.Account) { a.MailProof = nil },
			"disabled":                   func(a *cloud.Account) { a.Enabled = false },
		} {
			was := x.changed(mine, change)
			for i := range calls {
				foreign, none := ask(i, number, mine), ask(i, "LD-000999999", mine)
				require.Contains(t, []string{"DELIVERY_NOT_FOUND", "TRACKING_NOT_FOUND", "ACCOUNT_DISABLED"}, foreign.code(), name)
				require.True(t, bytes.Equal(none.body, foreign.body), "%s: %s", name, foreign.body)
			}
			require.Contains(t, []string{"EMAIL_NOT_VERIFIED", "ACCOUNT_DISABLED"}, x.do("GET", parcels, mine, "").code(), name)
			x.changed(mine, func(a *cloud.Account) { *a = was })
		}
		require.Len(t, x.made("GET", parcels, mine, "")["parcels"], 1)
	})
}

// changed changes the account of a token and gives what it was.
func (x *world) changed(token string, change func(*cloud.Account)) (was cloud.Account) {
	x.t.Helper()
	was = x.accountOf(token)
	a := was
	change(&a)
	x.w.Write(x.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
	return was
}

// The openings of one delivery are bounded, whichever proof its recipient has.
func TestOpeningsOfAnAccountAreBounded(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	number := x.waitsFor(x.w.Emails[cloud.Customer])
	codes := map[string]int{}
	for range 9 {
		codes[x.do("POST", "/api/v1/customer/lockers/parcels/"+number+"/open", x.w.Tokens[cloud.Customer], `{"on_site_token":"222222"}`).code()]++
	}
	require.Equal(t, map[string]int{"NOT_AT_LOCKER": 6, "RATE_LIMITED": 3}, codes)
}

// A customer prefers a pickup point of the business: it is first in the list of that business,
// for this customer alone, for as long as it is one.
func TestThePreferredLocker(t *testing.T) {
	onBoth(t, func(t *testing.T, x *world) {
		const preferred = "/api/v1/customer/lockers/preferred"
		mine := x.w.Tokens[cloud.Customer]
		set := func(token string, id any) answer {
			return x.do("PUT", preferred, token, fmt.Sprintf(`{"device_id":%v}`, id))
		}
		device := func(id int, body string) {
			t.Helper()
			a := x.do("PATCH", fmt.Sprintf("/api/v1/smart-lockers/devices/%d", id), x.token(admin), body)
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		}
		points := func(token, query string) (out []string) {
			t.Helper()
			a := x.made("GET", "/api/v1/public/pickup-points?client_code=acme"+query, token, "")
			for _, p := range a["pickup_points"].([]any) {
				mark := ""
				if at(p, "preferred") == true {
					mark = "*"
				}
				out = append(out, fmt.Sprint(at(p, "device_id"), mark))
			}
			return out
		}
		at := func(member string) any { return x.made("GET", preferred, mine, "")[member] }
		require.Nil(t, at("preferred"))
		require.Equal(t, []string{"88", "89"}, points(mine, ""))

		made := x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf(x.next("PIER-")))
		hidden := made["device"].(map[string]any)["device_id"]
		for name, id := range map[string]any{"unknown": 987654, "of another business": 90, "not shown": hidden, "zero": 0, "below zero": -1} {
			a := set(mine, id)
			require.Equal(t, []any{http.StatusNotFound, "DEVICE_NOT_FOUND"}, []any{a.status, a.code()}, "%s: %s", name, a.body)
		}
		require.Nil(t, at("preferred"))
		for typ, token := range x.w.Tokens {
			if typ != cloud.Customer {
				require.Equal(t, http.StatusForbidden, set(x.login(token, "*"), 89).status, typ)
				require.Equal(t, http.StatusForbidden, x.do("GET", preferred, x.login(token, "*"), "").status, typ)
			}
		}
		require.Equal(t, http.StatusUnauthorized, set("", 89).status)
		require.Equal(t, "DEVICE_NOT_FOUND", set(x.w.Others[cloud.Customer], 89).code(), "a customer of another business")

		a := set(mine, 89)
		require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		chosen := a.json["preferred"].(map[string]any)
		require.Equal(t, []any{"89", true}, []any{fmt.Sprint(chosen["device_id"]), chosen["preferred"]})
		require.Equal(t, []string{"89*", "88"}, points(mine, ""))
		require.Equal(t, []string{"88", "89"}, points("", ""), "everybody")
		require.Equal(t, []string{"88", "89"}, points(x.w.Others[cloud.Customer], ""), "a customer of another business")
		require.Equal(t, []string{"88", "89"}, points(x.token(admin), ""))
		require.Equal(t, []string{"89*", "88"}, points(mine, "&per_page=1"), "beside the page")
		require.Empty(t, points(mine, "&per_page=1&page=2"), "it was on the first")
		require.Equal(t, []string{"88"}, points(mine, "&q=lobby"), "the filters leave it out")
		require.Equal(t, []string{"89*", "88"}, points(mine, "&latitude=43.6446&longitude=-79.3849"))

		for _, body := range []string{`{"status":"maintenance"}`, `{"public":false}`, `{"status":"disabled"}`} {
			device(89, body)
			require.Nil(t, at("preferred"), body)
			require.EqualValues(t, "89", fmt.Sprint(at("unavailable_device_id")), body)
			require.Equal(t, []string{"88"}, points(mine, ""), body)
			require.Equal(t, "DEVICE_NOT_FOUND", set(mine, 89).code(), body)
			device(89, `{"status":"active","public":true}`)
			require.NotNil(t, at("preferred"), body)
		}
		partners := x.do("GET", partner+"/lockers", x.token(provider), "")
		require.NotContains(t, string(partners.body), "preferred", "partners are not shown it")
		require.Equal(t, http.StatusOK, set(mine, "null").status)
		require.Nil(t, at("preferred"))
		require.Nil(t, at("unavailable_device_id"))
		require.Equal(t, []string{"88", "89"}, points(mine, ""))
		require.WithinDuration(t, time.Now(), x.audits()[0].At, time.Minute)
	})
}

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	parcel   = "/api/v1/customer/lockers/parcels/LD-000064021/handover"
	toSam    = `{"name":"Sam Smith","phone":"+14165550199"}`
	byOffice = "/api/v1/smart-lockers/deliveries/64021/handover"
)

// liveCodes are the entries of the waiting delivery that are in force, by kind.
func (x *world) liveCodes() map[string]int {
	x.t.Helper()
	out := map[string]int{}
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) error {
		rows, err := v.DeliveryCodes(64021)
		for _, r := range rows {
			if r.Entry.Op == wire.CodeSet && r.DroppedAt.IsZero() {
				out[r.Entry.Kind]++
			}
		}
		return err
	}))
	return out
}

// A recipient's link hands a parcel over and takes it back. Any other key, also the
// day's proof that digits of a telephone number give, is answered as an unknown number.
func TestTheLinkHandsAParcelOver(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	link := webtest.Links.OfShipment(1, 0)
	unknown := x.do("POST", strings.Replace(parcel, "64021", "99999", 1), "", toSam, "X-Tracking-Key", link)
	require.Equal(t, []any{http.StatusNotFound, "DELIVERY_NOT_FOUND"}, []any{unknown.status, unknown.code()})
	for name, key := range map[string]string{"none": "", "another parcel's": webtest.Links.OfShipment(2, 0), "an order's": webtest.Links.OfOrder(1, 0),
		"a day's proof": webtest.Links.Until(link, time.Now().Add(time.Hour)), "cut short": link[:len(link)-1]} {
		for _, method := range []string{"POST", "DELETE"} {
			a := x.do(method, parcel, "", map[string]string{"POST": toSam}[method], "X-Tracking-Key", key)
			require.Equal(t, string(unknown.body), string(a.body), "%s %s", method, name)
		}
	}
	require.NotContains(t, x.liveCodes(), wire.CodeHandover)

	own := x.do("DELETE", parcel, "", "", "X-Tracking-Key", link)
	require.Equal(t, []any{http.StatusConflict, "DELIVERY_STATE_CONFLICT"}, []any{own.status, own.code()}, "there is no handover")
	a := x.do("POST", parcel, "", toSam, "X-Tracking-Key", link)
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	first, _ := a.json["pickup_code"].(string)
	require.Len(t, first, 6)
	require.Equal(t, "Sam Smith", at(a.json, "handover", "name"))
	require.Equal(t, map[string]int{wire.CodeHandover: 1}, x.liveCodes())
	shown := x.made("GET", partner+"/deliveries/64021", x.token(provider), "")
	require.Equal(t, []any{first, "Sam Smith"}, []any{at(shown, "delivery", "pickup_code"), at(shown, "delivery", "handover", "name")})

	a = x.do("DELETE", parcel, "", "", "X-Tracking-Key", link)
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.Nil(t, a.json["handover"])
	second, _ := a.json["pickup_code"].(string)
	require.NotContains(t, []string{first, webtest.PickupCode, ""}, second)
	require.Equal(t, map[string]int{wire.CodePickup: 1}, x.liveCodes())
	for _, l := range x.audits() {
		for _, secret := range []string{first, second, link, "Sam Smith"} {
			require.NotContains(t, l.Actor+l.Action+l.Target+l.Detail, secret)
		}
	}
}

// Staff hand over for a recipient and are shown no code; who may not is refused, and
// nothing changes.
func TestStaffHandAParcelOverAndSeeNoCode(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	for _, typ := range []cloud.AccountType{cloud.DriverAccount, cloud.Broker, cloud.Customer, provider} {
		require.Equal(t, http.StatusForbidden, x.do("POST", byOffice, x.token(typ), toSam).status, typ)
	}
	require.Equal(t, http.StatusNotFound, x.do("POST", byOffice, x.w.Others[admin], toSam).status)
	require.Empty(t, x.liveCodes()[wire.CodeHandover])
	a := x.made("POST", byOffice, x.token(admin), toSam)
	require.Equal(t, []any{true, nil, "LD-000064021"}, []any{a["result"], a["pickup_code"], a["delivery_number"]})
	require.Equal(t, map[string]int{wire.CodeHandover: 1}, x.liveCodes())
	code := at(x.made("GET", partner+"/deliveries/64021", x.token(provider), ""), "delivery", "pickup_code")
	require.NotEqual(t, webtest.PickupCode, code)

	// A rotation while another person collects keeps the handover.
	rotated := x.made("POST", partner+"/deliveries/64021/pickup-code/rotate", x.token(provider), `{"reason":"security"}`)
	require.NotEqual(t, code, rotated["pickup_code"])
	require.Equal(t, map[string]int{wire.CodeHandover: 1}, x.liveCodes())
	x.made("DELETE", byOffice, x.token(admin), "")
	require.Equal(t, http.StatusConflict, x.do("DELETE", byOffice, x.token(admin), "").status)
	require.Equal(t, map[string]int{wire.CodePickup: 1}, x.liveCodes())
	require.Equal(t, http.StatusConflict, x.do("POST", "/api/v1/smart-lockers/deliveries/64022/handover", x.token(admin), toSam).status, "nothing waits")
}

// Many at once leave one code in force: that of the answer whose person is shown.
func TestHandoversAtOnceLeaveOneCode(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	const callers = 6
	codes := make([]string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			a := x.do("POST", partner+"/deliveries/64021/handover", x.token(provider), fmt.Sprintf(`{"name":"Person %d"}`, i))
			codes[i], _ = a.json["pickup_code"].(string)
		})
	}
	all.Wait()
	require.Equal(t, map[string]int{wire.CodeHandover: 1}, x.liveCodes())
	d := x.made("GET", partner+"/deliveries/64021", x.token(provider), "")
	var last int
	_, err := fmt.Sscanf(at(d, "delivery", "handover", "name").(string), "Person %d", &last)
	require.NoError(t, err)
	require.Equal(t, codes[last], at(d, "delivery", "pickup_code"))
}

package page_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// broughtBySid is a delivery that Sid is to bring for Jane, with its drop-off code.
func broughtBySid(t *testing.T, w *webtest.World, ref string) (d locker.DeliveryBody, path, key string) {
	t.Helper()
	require.NoError(t, w.DB.Decide(t.Context(), w.Device.ID, func(v cloud.View) (*cloud.Changes, error) {
		dev, err := v.Device(w.Device.ID)
		dev.Profile.Guide = &cloud.IndoorGuide{Text: "Behind the <b>escalator"}
		dev.Profile.Hours = []cloud.OpeningHours{{Day: 1, Open: "08:00", Close: "12:00"}, {Day: 1, Open: "13:00", Close: "20:30"}, {Day: 0, Open: "10:00", Close: "16:00"}}
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{dev}}}, err
	}))
	var by cloud.Caller
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { by.Provider, err = v.Provider(17); return err }))
	reserve := false
	out, err := w.Lockers.Create(t.Context(), by, locker.CreateInput{ReferenceNumber: ref, DeviceID: w.Device.ID, Purpose: "send", Reserve: &reserve, Sender: &cloud.Sender{Name: "Sid Sender", Email: "sid@example.com"},
		Recipient: cloud.Recipient{Name: "Jane Receiver", Phone: "+14165550177", Email: "jane@receiver.example", Address: "9 Receiver Rd"}, Packages: []locker.PackageInput{{TrackingNumber: ref + "-1", Size: "S"}}})
	require.NoError(t, err)
	return out.Delivery, "/dropoff/" + out.Delivery.DeliveryNumber, linkKey.OfSender(out.Delivery.DeliveryID)
}

// The sender's link leads to a clean address, where code, place and time limit stand and
// nothing of the recipient does; another key is answered like a number that is not known.
func TestTheSendersPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	d, path, key := broughtBySid(t, r.w, "SID-1")
	code := halvesOf(*d.DeliveryCode)
	g := r.do("GET", path, nil)
	require.Equal(t, 404, g.status)
	unknown := r.do("GET", "/dropoff/LD-000999999", nil)
	plain := func(g got, number string) string {
		return regexp.MustCompile(`<time.*?</time>`).ReplaceAllString(strings.ReplaceAll(g.body, number, ""), "")
	}
	require.Equal(t, plain(unknown, "LD-000999999"), plain(g, d.DeliveryNumber))
	for _, wrong := range []string{"wrong", linkKey.OfSender(d.DeliveryID + 1), linkKey.OfShipment(cloud.ShipmentID(d.DeliveryID), 0)} {
		g = r.do("GET", path+"?k="+url.QueryEscape(wrong), nil)
		require.Equal(t, []any{303, path}, []any{g.status, g.header("Location")})
		g = r.do("GET", path, nil)
		require.Equal(t, 404, g.status)
		require.Equal(t, plain(unknown, "LD-000999999"), plain(g, d.DeliveryNumber))
		require.Equal(t, 404, r.do("POST", path, url.Values{"do": {"cancel"}}).status)
		clean(t, r, g)
	}
	g = r.do("GET", path+"?k="+url.QueryEscape(key), nil)
	require.Equal(t, []any{303, path}, []any{g.status, g.header("Location")})
	require.NotContains(t, g.body, key)
	for _, l := range locale.All() {
		g = r.do("GET", path+"?lang="+l.Code, nil)
		require.Equal(t, 200, g.status)
		clean(t, r, g)
		for _, part := range []string{code, `class="qr"`, "SID-1-1", r.w.Device.Name, "Behind the &lt;b&gt;escalator", "08:00–12:00, 13:00–20:30", locale.Word(l.Code, "dropoff.closed"),
			locale.Word(l.Code, "dropoff.by"), locale.Word(l.Code, "dropoff.confirm"), locale.Weekday(l.Code, time.Monday)} {
			require.Contains(t, g.body, part, l.Code)
		}
		for _, secret := range []string{key, "Jane", "Receiver", "4165550177", "receiver.example", "dropoff."} {
			require.NotContains(t, g.body, secret, l.Code)
		}
	}
	require.Equal(t, "no-store", g.header("Cache-Control"))
	require.Equal(t, "no-referrer", g.header("Referrer-Policy"))

	r.cookies = map[string]string{} // the sender's key is none of the tracking page
	require.Equal(t, 303, r.do("GET", "/track/SID-1-1?k="+url.QueryEscape(key), nil).status)
	g = r.do("GET", "/track/SID-1-1", nil)
	require.NotContains(t, g.body, code)
	require.NotContains(t, g.body, `class="qr"`)
}

// A sender cancels once, after a question, and from the own page alone; what was brought
// cannot be cancelled, and the page shows why.
func TestASenderCancelsOnThePage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	status := func(number string) (out cloud.DeliveryStatus) {
		require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) error {
			d, err := v.DeliveryByNumber(number)
			out = d.Status
			return err
		}))
		return out
	}
	d, path, key := broughtBySid(t, r.w, "SID-2")
	ask := url.Values{"do": {"cancel"}}
	require.Equal(t, 404, r.do("POST", path, ask).status, "without the link")
	require.Equal(t, 303, r.do("GET", path+"?k="+url.QueryEscape(key), nil).status)
	require.Equal(t, 403, r.do("POST", path, ask, "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, 400, r.do("POST", path, url.Values{}).status)
	r.do("GET", path+"?do=cancel", nil)
	require.Equal(t, cloud.DeliveryCreated, status(d.DeliveryNumber))
	g := r.do("POST", path+"?lang=fr", ask)
	require.Equal(t, []any{303, path + "?lang=fr"}, []any{g.status, g.header("Location")})
	require.Equal(t, cloud.DeliveryCancelled, status(d.DeliveryNumber))
	g = r.do("GET", path+"?lang=en", nil)
	require.Contains(t, g.body, locale.Word("en", "dropoff.cancelled"))
	require.NotContains(t, g.body, halvesOf(*d.DeliveryCode))
	require.NotContains(t, g.body, locale.Word("en", "dropoff.confirm"))
	clean(t, r, g)
	g = r.do("POST", path, ask)
	require.Equal(t, 409, g.status)
	require.Contains(t, g.body, locale.Word("en", "dropoff.changed"))
	require.Contains(t, g.body, locale.Word("en", "dropoff.cancelled"), "the state")
	clean(t, r, g)

	d, path, key = broughtBySid(t, r.w, "SID-3")
	require.Equal(t, 303, r.do("GET", path+"?k="+url.QueryEscape(key), nil).status)
	for state, words := range map[cloud.DeliveryStatus]string{cloud.DeliveryDelivered: "return.waits", cloud.DeliveryPickedUp: "return.collected", cloud.DeliveryExpired: "dropoff.late", cloud.DeliveryFailed: "dropoff.failed"} {
		require.NoError(t, r.w.DB.Decide(t.Context(), r.w.Device.ID, func(v cloud.View) (*cloud.Changes, error) {
			row, err := v.DeliveryByNumber(d.DeliveryNumber)
			row.Status = state
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{row}}}, err
		}))
		g = r.do("GET", path, nil)
		require.Contains(t, g.body, locale.Word("en", words), state)
		require.NotContains(t, g.body, halvesOf(*d.DeliveryCode))
		clean(t, r, g)
		require.Equal(t, 409, r.do("POST", path, ask).status, state)
		require.Equal(t, state, status(d.DeliveryNumber))
	}
}

// Guesses cost one network its readings for a while, and are answered then without a look.
func TestTheSendersPageIsAskedTooOften(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestTheSendersPage")
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", "/dropoff/LD-000999999", nil)
	for range 200 {
		if g = r.do("GET", "/dropoff/LD-000999999", nil); g.status == 429 {
			break
		}
	}
	require.Equal(t, 429, g.status)
	require.NotEmpty(t, g.header("Retry-After"))
	require.Contains(t, g.body, locale.Word("en", "dropoff.often"))
	clean(t, r, g)
}

// In a real browser: nothing that axe objects to, on a telephone and on a desk, in light and
// dark; and a cancellation by the keyboard, and without script.
func TestBringingInARealBrowser(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestTheSendersPage")
	w, s, _ := server(t, nil)
	_, path, key := broughtBySid(t, w, "SID-4")
	_, other, otherKey := broughtBySid(t, w, "SID-5")
	out := drive(t, s, []string{"OTHER=" + other, "OTHER_KEY=" + otherKey}, "dropoff.mjs", path, key)
	var f struct {
		Axe                        map[string][]string
		Console, Foreign, Overflow []string
		Address                    string
		Hidden                     bool
		Keyboard, Noscript         string
	}
	require.NoError(t, json.Unmarshal(out, &f))
	require.Len(t, f.Axe, 6)
	for name, violations := range f.Axe {
		require.Empty(t, violations, name)
	}
	require.Empty(t, f.Console)
	require.Empty(t, f.Foreign)
	require.Empty(t, f.Overflow)
	require.Equal(t, path, f.Address, "without the key")
	require.True(t, f.Hidden, "a question comes first")
	require.Contains(t, f.Keyboard, locale.Word("en", "dropoff.cancelled"))
	require.Contains(t, f.Noscript, locale.Word("en", "dropoff.cancelled"))
}

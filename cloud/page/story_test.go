package page_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
	protocol "github.com/postern-io/postern/protocol/wire"
)

// A parcel's story has its own openings and what staff did, the newest first, and leads to
// what the recipient sees and to its webhooks.
func TestStoryOfAParcel(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	d, now := r.w.Delivery, time.Now().UTC().Truncate(time.Second)
	opening := func(id string, of cloud.DeliveryID, kind protocol.OpeningKind, at time.Time) cloud.Opening {
		return cloud.Opening{ID: id, BusinessID: 42, DeviceID: d.DeviceID, DeliveryID: of, Kind: kind, State: cloud.OpeningSettled, Requester: cloud.Requester{Type: "staff", Name: "Opener " + id}, RequestedAt: at, OpenedAt: at,
			Doors: []cloud.OpeningDoor{{Door: 1, GridID: 8801}}}
	}
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: []cloud.Opening{
		opening("op_a", d.ID, protocol.OpenDeposit, now.Add(-2*time.Minute)), opening("op_b", d.ID, protocol.OpenPickup, now.Add(-time.Minute)), opening("op_c", 0, protocol.OpenStaff, now)}},
		AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: 42, At: now.Add(-90 * time.Second), Actor: "account:1", Action: "delivery_cancelled", Target: d.Number}}}})
	g := r.do("GET", "/console/parcels/"+url.PathEscape(strconv.Itoa(int(d.ID))), nil)
	require.Equal(t, 200, g.status)
	i := strings.Index(g.body, `<ol class="story">`)
	require.Positive(t, i, "there is a story")
	story := g.body[i : i+strings.Index(g.body[i:], "</ol>")]
	at := func(text string) int {
		k := strings.Index(story, text)
		require.NotEqual(t, -1, k, "%s: %s", text, story)
		return k
	}
	require.Less(t, at("Opener op_b"), at("cancelled"))
	require.Less(t, at("cancelled"), at("Opener op_a"))
	require.NotContains(t, story, "op_c", "of another parcel, or none")
	require.Contains(t, g.body, `<a href="/track/`+d.Packages[0].TrackingNumber+`">What the recipient sees</a>`)
	require.Contains(t, g.body, `<a href="/console/webhooks?reference=`+d.Number+`">Webhooks</a>`)
}

// A test delivery has no timeline, whatever parcel has its number: its story is its own, and
// lists name the mock locker that it is for.
func TestStoryOfATestDelivery(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	waits := locale.Headline("en", otep.AvailableForPickup)
	require.Contains(t, r.do("GET", "/console/parcels/"+strconv.Itoa(int(r.w.Delivery.ID)), nil).body, waits)
	d := r.w.Delivery
	d.ID, d.Number, d.Reference, d.Livemode = d.ID+100, "LD-TEST", "TEST", false
	mock := r.w.Device
	mock.ID, mock.Code, mock.Name, mock.Protocol, mock.Livemode = mock.ID+100, "MOCK-1", "Mock locker of Swift", cloud.ProtocolMock, false
	d.DeviceID = mock.ID
	none := d
	none.ID, none.Number, none.Reference, none.Packages = d.ID+1, "LD-TEST-2", "TEST-2", []cloud.Package{{TrackingNumber: "NO-SUCH", Status: cloud.PackageCreated}}
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{mock}}, LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d, none}}})
	for _, x := range []cloud.Delivery{d, none} {
		g := r.do("GET", "/console/parcels/"+strconv.Itoa(int(x.ID)), nil)
		require.Equal(t, 200, g.status)
		require.Contains(t, g.body, "Mock locker of Swift")
		for _, text := range []string{waits, "/track/", "could not be read"} {
			require.NotContains(t, g.body, text, x.Number)
		}
	}
	require.Contains(t, r.do("GET", "/console/parcels?livemode=false", nil).body, "Mock locker of Swift")
}

// An exception leads to its door, its parcel and the work list.
func TestAnExceptionLeadsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A 1/2", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)}}}})
	g := r.do("GET", "/console/exceptions/9301", nil)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, `href="/console/cabinets/88#door-A%201%2F2"`)
	require.Contains(t, g.body, `href="/console/work#exception-9301"`)
	require.NotContains(t, g.body, `href="/console/parcels/0"`)
	require.NotContains(t, g.body, "door_left_open", "its type is said in words")
	require.NotContains(t, g.body, locale.Word("en", "work.partly"), "about no parcel")
}

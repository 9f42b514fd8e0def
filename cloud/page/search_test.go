package page_test

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// The field in the bar finds records without script: the only exact hit opens, anything
// else is listed by noun, and what was typed stays text.
func TestSearchPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", "/console/search?q=LD", nil)
	require.Equal(t, 303, g.status, "only people who are signed in search")
	r.signedIn()
	find := func(text string) got { return r.do("GET", "/console/search?q="+url.QueryEscape(text), nil) }

	g = find(" " + r.w.Delivery.Number + " ")
	require.Equal(t, 303, g.status, g.body)
	require.Contains(t, g.header("Location"), "/console/parcels/"+strconv.FormatInt(int64(r.w.Delivery.ID), 10))

	g = find(r.w.Delivery.Number[:5])
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, `href="/console/parcels/`+strconv.FormatInt(int64(r.w.Delivery.ID), 10)+`"`)
	require.Contains(t, g.body, `value="`+r.w.Delivery.Number[:5]+`"`)

	for _, text := range []string{`"><script>alert(1)</script>`, "nowhere", "x", "", "\xff\xfe\xfd", "a\x00b"} {
		g = find(text)
		require.Equal(t, 200, g.status, text)
		require.NotContains(t, g.body, "<script>alert")
		require.NotContains(t, g.body, "/console/parcels/"+strconv.FormatInt(int64(r.w.Delivery.ID), 10))
	}

	// Two records that are called so are both listed.
	twin := r.w.Delivery
	twin.ID, twin.Number, twin.Reference = 991, "LD-000990991", "twin"
	twin.Packages = []cloud.Package{{TrackingNumber: r.w.Delivery.Packages[0].TrackingNumber, Size: "S"}}
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{twin}}})
	g = find(twin.Packages[0].TrackingNumber)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, "/console/parcels/991")
}

// A door is found by each way of writing its name; the only one opens the page of its
// cabinet at that door.
func TestSearchFindsADoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	find := func(text string) got { return r.do("GET", "/console/search?q="+url.QueryEscape(text), nil) }
	for id, of := range map[cloud.DeviceID]cloud.BusinessID{93: r.w.Business.ID, 94: r.w.Other.ID} {
		cells := []cloud.Compartment{{GridID: cloud.GridID(id * 100), DeviceID: id, Door: 4, GridCode: "A04", Column: 1, Row: 1, PickupEnabled: true, State: cloud.GridFree},
			{GridID: cloud.GridID(id*100 + 1), DeviceID: id, Door: 7, GridCode: "K07", Label: "K-7", Column: 1, Row: 2, PickupEnabled: true, State: cloud.GridFree}}
		r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: id, BusinessID: of, Code: "C" + strconv.Itoa(int(id)), Name: "Pier"}}}, LockerChanges: cloud.LockerChanges{Compartments: cells}})
	}
	for text, to := range map[string]string{"K-7": "93#door-K07", "k07": "93#door-K07", "K7": "93#door-K07", "k 7": "93#door-K07", "K.07": "93#door-K07", "K-007": "93#door-K07", "pier A4": "93#door-A04",
		"Front St Lobby A04": "88#door-A04", "front st lobby a-4": "88#door-A04", r.w.Device.Code + " A4": "88#door-A04"} {
		g := find(text)
		require.Equal(t, 303, g.status, "%s: %s", text, g.body)
		require.Equal(t, "/console/cabinets/"+to, g.header("Location"), text)
	}
	for _, text := range []string{"A99", "A-0", "A04x", "Nowhere A04", "4-A", "'A04"} {
		g := find(text)
		require.Equal(t, 200, g.status, text)
		require.NotContains(t, g.body, "#door-", text)
	}

	// A door of that name in each of several cabinets: all are listed. Another business's is not.
	g := find("A-4")
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, `href="/console/cabinets/88#door-A04"`)
	require.Contains(t, g.body, `href="/console/cabinets/93#door-A04"`)
	require.Contains(t, g.body, "Pier · Door A04")
	require.NotContains(t, g.body, "/console/cabinets/94")
}

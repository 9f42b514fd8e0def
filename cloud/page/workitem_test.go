package page_test

import (
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Staff see what needs them in words, take it and put it off by forms without script;
// the cabinet's page has a drawer for the door, with what is done there.
func TestWorkList(t *testing.T) {
	r := newRig(t, nil)
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
		{ID: 9303, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w3", Type: "deposit_unverified", DeliveryID: r.w.Delivery.ID, Severity: "medium", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
		{ID: 9302, BusinessID: r.w.Other.ID, DeviceID: 88, GridCode: "A02", Source: "w2", Type: "item_missing", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
	}}})
	g := r.do("GET", "/console/work", nil)
	require.Equal(t, 303, g.status, "without a login")
	r.signedIn()
	g = r.do("GET", "/console/work", nil)
	require.Equal(t, 200, g.status, g.body)
	require.Contains(t, g.body, "Door A-1 at")
	require.Contains(t, g.body, "/console/cabinets/88#door-A01")
	require.NotContains(t, g.body, "exception-9302", "of another business")
	confirm := "/console/parcels/" + strconv.Itoa(int(r.w.Delivery.ID)) + "/confirm"
	d := r.w.Delivery
	for status, offered := range map[cloud.DeliveryStatus]bool{cloud.DeliveryDoorsOpened: true, cloud.DeliveryDelivered: false, cloud.DeliveryPickedUp: false} {
		d.Status = status
		r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}})
		require.Equal(t, offered, strings.Contains(r.do("GET", "/console/work", nil).body, confirm), status)
	}
	send := func(do string, more url.Values) got {
		form := url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}, "item": {"exception-9301"}, "do": {do}}
		for k, v := range more {
			form[k] = v
		}
		return r.do("POST", "/console/work", form)
	}
	require.Equal(t, 303, send("take", nil).status)
	require.Equal(t, 303, send("note", url.Values{"note": {"<b>On my way"}}).status)
	g = r.do("GET", "/console/work?show=mine", nil)
	require.Contains(t, g.body, "sees to it")
	require.Contains(t, g.body, "&lt;b&gt;On my way")
	require.Equal(t, 303, send("snooze", url.Values{"hours": {"1"}}).status)
	require.NotContains(t, r.do("GET", "/console/work", nil).body, "exception-9301")
	require.Contains(t, r.do("GET", "/console/work?show=snoozed", nil).body, "exception-9301")
	require.Equal(t, 404, send("open", nil).status)

	g = r.do("GET", "/console/cabinets/88", nil)
	require.Equal(t, 200, g.status, g.body)
	require.Contains(t, g.body, `id="door-A01"`)
	require.Contains(t, g.body, "/console/cabinets/88/open?grid_ids=8801")
	for _, tab := range []string{"health", "service"} {
		require.Equal(t, 200, r.do("GET", "/console/cabinets/88?tab="+tab, nil).status)
	}
	require.Equal(t, 404, r.do("GET", "/console/cabinets/987654", nil).status)
}

// What a form of the work list did can be taken back there, as on the pages of records;
// what others did since stays.
func TestUndoOnTheWorkList(t *testing.T) {
	r := newRig(t, nil)
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
	}}})
	r.signedIn()
	token := formField.FindStringSubmatch(r.do("GET", "/console/work", nil).body)[1]
	mark := func(show, do string, more url.Values) got {
		form := url.Values{"form": {token}, "item": {"exception-9301"}, "do": {do}}
		for k, v := range more {
			form[k] = v
		}
		g := r.do("POST", "/console/work?show="+show, form)
		require.Equal(t, 303, g.status, g.body)
		return r.do("GET", g.header("Location"), nil)
	}
	undo := func(page got) got {
		m := undoForm.FindStringSubmatch(page.body)
		require.NotNil(t, m, page.body)
		return r.do("POST", m[1], url.Values{"form": {token}, "undo": {html.UnescapeString(m[2])}})
	}
	list := func(show string) string { return r.do("GET", "/console/work?show="+show, nil).body }

	g := undo(mark("all", "take", nil))
	require.Equal(t, 303, g.status, g.body)
	require.Contains(t, g.header("Location"), "/console/work?done=", "back on the list")
	require.NotContains(t, list("mine"), "exception-9301")
	require.Contains(t, r.do("GET", g.header("Location"), nil).body, "Taken back: ")

	page := mark("all", "snooze", url.Values{"hours": {"1"}})
	require.NotContains(t, list("all"), "exception-9301")
	require.Equal(t, 303, undo(page).status)
	require.Contains(t, list("all"), "exception-9301")

	mark("all", "take", nil)
	page = mark("mine", "note", url.Values{"note": {"first"}})
	mark("mine", "note", url.Values{"note": {"second"}})
	require.Equal(t, 409, undo(page).status, "it has changed since")
	require.Contains(t, list("mine"), "second")
	g = undo(mark("mine", "note", url.Values{"note": {"third"}}))
	require.Contains(t, g.header("Location"), "/console/work?show=mine&done=")
	require.Contains(t, list("mine"), "second")

	page = mark("mine", "release", nil)
	require.Equal(t, 303, undo(page).status)
	require.Contains(t, list("mine"), "exception-9301")
}

// The item of a door that stands open says that it cannot be closed yet in place of the buttons
// that would be refused, on the home page, in the list and on the exception's own page; once the
// door is shut they are there. Its name is that of the door and not of the cabinet.
func TestAnOpenDoorKeepsItsItem(t *testing.T) {
	r := newRig(t, nil)
	cell := cellOf(r, 8801)
	stands := func(status string) {
		cell.DoorStatus = status
		r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{cell}}})
	}
	stands("open")
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
	}}})
	r.signedIn()
	const why = "Not possible while the cabinet reports door A-1 as open"
	for _, path := range []string{"/console", "/console/work", "/console/exceptions/9301"} {
		g := r.do("GET", path, nil)
		require.Contains(t, g.body, why, path)
		require.NotContains(t, g.body, "/console/exceptions/9301/resolve", path)
		require.NotContains(t, g.body, "/console/work/exception-9301/close", path)
	}
	stands("closed")
	for _, path := range []string{"/console", "/console/work", "/console/exceptions/9301"} {
		g := r.do("GET", path, nil)
		require.NotContains(t, g.body, why, path)
		require.Contains(t, g.body, "/console/exceptions/9301/resolve", path)
	}
	g := r.do("GET", "/console/work/exception-9301/close", nil)
	require.Contains(t, g.body, "Close the exception")
	require.Contains(t, g.body, "Door A-1 at Front St Lobby stands open")
}

// The fault of locks names every door on the home page, and on the cabinet's page each with its
// own time.
func TestDoorsThatStayShutAreNamed(t *testing.T) {
	r := newRig(t, nil)
	now := time.Now()
	detail := cloud.ShutDoor{Name: "A-2", Since: now.Add(-3 * time.Minute)}.String() + "; " + cloud.ShutDoor{Name: "A-3", Since: now.Add(-49 * time.Hour)}.String()
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{{DeviceID: 88, Type: cloud.DevDoorShut, Detail: detail, OpenedAt: now.Add(-99 * time.Hour), SeenAt: now}}}})
	r.signedIn()
	require.Contains(t, r.do("GET", "/console", nil).body, "Front St Lobby: does not open: A-2, A-3")
	health := r.do("GET", "/console/cabinets/88?tab=health", nil).body
	i := strings.Index(health, `id="h-faults"`)
	require.Positive(t, i)
	faults := health[i : i+strings.Index(health[i:], "</section>")]
	require.Contains(t, faults, "<bdi>A-2</bdi>")
	require.Contains(t, faults, "<bdi>A-3</bdi>")
	require.Equal(t, 2, strings.Count(faults, "Door does not open"))
	zone, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	require.Contains(t, faults, `datetime="`+now.Add(-3*time.Minute).In(zone).Format("2006-01-02T15:04"))
	require.Contains(t, faults, `datetime="`+now.Add(-49*time.Hour).In(zone).Format("2006-01-02T15:04"))
}

func cellOf(r *rig, id cloud.GridID) (cell cloud.Compartment) {
	require.NoError(r.t, r.w.DB.Look(r.t.Context(), func(v cloud.View) error {
		cells, err := v.Compartments(88)
		for _, c := range cells {
			if c.GridID == id {
				cell = c
			}
		}
		return err
	}))
	return cell
}

package page_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// The page of reports has a chart, its sentence, its table and its file for everything that
// the visitor may read, in a range that the address says.
func TestReportsPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 303, r.do("GET", "/console/reports", nil).status)
	require.Equal(t, 303, r.do("GET", "/console/reports/hours.csv", nil).status)
	r.signedIn()
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 901, BusinessID: r.w.Business.ID, Code: "EVIL-1", Name: "=1+<b>x</b>"}}},
		LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{{GridID: 90101, DeviceID: 901, Door: 1, Column: 1, PickupEnabled: true, State: cloud.GridOccupied}}}})
	g := r.do("GET", "/console/reports?days=1", nil)
	require.Equal(t, 200, g.status)
	for _, name := range []string{"deliveries", "hours", "collection", "waits", "occupancy", "connections", "orders", "webhooks"} {
		require.Contains(t, g.body, `id="report-`+name+`"`)
		require.Contains(t, g.body, `href="/console/reports/`+name+`.csv?days=1"`)
	}
	require.Contains(t, g.body, `<a class="chip" href="?days=1" aria-current="page">Today</a>`)
	require.Contains(t, r.do("GET", "/console/reports", nil).body, "Put in: 1. Collected: 0.")
	require.Contains(t, g.body, "No order is planned for these days.")
	require.Contains(t, g.body, "=1+&lt;b&gt;x&lt;/b&gt;")
	require.NotRegexp(t, `\sstyle=|<style|ZgotmplZ|report\.[a-z]`, strings.ReplaceAll(g.body, "report.css", ""))
	require.Contains(t, r.do("GET", "/console", nil).body, `href="/console/reports"`)

	file := r.do("GET", "/console/reports/occupancy.csv", nil)
	require.Equal(t, 200, file.status)
	require.Equal(t, "text/csv; charset=utf-8", file.header("Content-Type"))
	require.Contains(t, file.header("Content-Disposition"), "report-occupancy-")
	require.Contains(t, file.body, "Cabinet,Occupied,Reserved,Free,Blocked,Not read yet\n")
	require.Contains(t, file.body, "'=1+<b>x</b>,1,0,0,0,0\n")
	require.Equal(t, 404, r.do("GET", "/console/reports/nothing.csv", nil).status)

	at := time.Now().In(r.w.Business.Location())
	hours := r.do("GET", "/console/reports/deliveries.csv?from="+at.Format(time.DateOnly)+"&to="+at.Format(time.DateOnly), nil)
	require.GreaterOrEqual(t, strings.Count(hours.body, "\n"), 24, "a day has hours")
	for _, bad := range []string{"from=2026-01-01&to=2026-03-01", "from=2026-02-02&to=2026-02-01"} {
		g := r.do("GET", "/console/reports?"+bad, nil)
		require.Equal(t, 200, g.status)
		require.Contains(t, g.body, `role="alert"`)
		require.NotContains(t, g.body, "<svg class=\"ch-")
	}
	require.Equal(t, 200, r.do("GET", "/console/reports?days=x&from="+url.QueryEscape(strings.Repeat("<", 999)), nil).status)
	for _, l := range locale.All() {
		g := r.do("GET", "/console/reports?days=30&lang="+l.Code, nil)
		require.Contains(t, g.body, "<h1>"+escaped(locale.Word(l.Code, "report.title"))+"</h1>")
		require.NotRegexp(t, `>report\.|%!|%s`, g.body)
	}
}

// The sentence of the occupancy counts from the first compartment on, and says when there is none.
func TestOccupancyOfASingleCompartment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	var ch cloud.Changes
	for _, d := range []cloud.DeviceID{r.w.Device.ID, r.w.Spare.ID} {
		for n := range 12 {
			ch.Compartments = append(ch.Compartments, cloud.Compartment{GridID: cloud.GridID(int(d)*100 + n + 1), DeviceID: d, Door: uint(n + 1), State: cloud.GridBlocked, BlockReason: cloud.BlockRemoved})
		}
	}
	r.w.Write(t, ch)
	require.Contains(t, r.do("GET", "/console/reports", nil).body, "No cabinet is in use yet.")
	one := ch.Compartments[0]
	one.State, one.BlockReason, one.PickupEnabled = cloud.GridOccupied, "", true
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{one}}})
	require.Contains(t, r.do("GET", "/console/reports", nil).body, "Occupied: 1 of 1 compartments (100")
}

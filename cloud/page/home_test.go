package page_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
	bus "github.com/postern-io/postern/protocol/wire"
)

var countOf = regexp.MustCompile(`data-live="(n-[a-z]+)">([^<]*)<`)

// counts are those of the navigation.
func (r *rig) counts(path string) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for _, m := range countOf.FindAllStringSubmatch(r.do("GET", path, nil).body, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// The navigation counts what waits, as far as its reader may read it.
func TestTheNavigationCountsByRights(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.ask(r.w.Tokens[cloud.Broker], nil)
	r.signedIn()
	all := r.counts("/console/cabinets")
	require.Equal(t, "1", all["n-approvals"])
	require.NotEmpty(t, all["n-work"])
	require.Equal(t, all, r.counts("/console/work"), "on each page")

	s, err := r.w.FindToken(t.Context(), hashOf(r.w.Tokens[cloud.ClientEmployee]))
	require.NoError(t, err)
	s.Account.Permissions = []string{"orders:read"}
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
	sam := newRigAt(r)
	require.Equal(t, 303, sam.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	few := sam.counts("/console")
	require.NotContains(t, few, "n-approvals")
	require.Empty(t, few["n-work"], "none of the items is for who may read orders alone")

	customer := newRigAt(r)
	require.Equal(t, 303, customer.signIn(r.w.Emails[cloud.Customer]).status)
	require.Empty(t, customer.counts("/console/search"))
}

// Home says what happened just now and what went to others, and what needs people once.
func TestHomeSaysWhatHappened(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	now := time.Now().UTC()
	r.w.Write(t, cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{
		{BusinessID: 42, At: now, Actor: "account:1", Action: "orders.hold", Target: "order:7", Detail: `{"surface":"web","outcome":"done"}`},
		{BusinessID: 42, At: now, Actor: "account:1", Action: "orders.cancel", Target: "order:8", Detail: `{"surface":"web","outcome":"FORBIDDEN"}`},
		{BusinessID: 43, At: now, Actor: "account:9", Action: "orders.release", Target: "order:9", Detail: `{"surface":"web","outcome":"done"}`}}},
		LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: 9401, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "h1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: now}}}})
	r.signedIn()
	g := r.do("GET", "/console", nil)
	clean(t, r, g)
	for _, want := range []string{"Just now", "Put on hold", `href="/console/orders/7"`, "Sent to others today", "none asks", "Door A-1 at Front St Lobby stands open", "things need you"} {
		require.Contains(t, g.body, want)
	}
	for _, not := range []string{`href="/console/orders/8"`, `href="/console/orders/9"`, "Open exceptions"} {
		require.NotContains(t, g.body, not)
	}
	require.NotContains(t, g.body, webtest.PickupCode)
}

// The page of a cabinet shows what it reported, and says so when that is nothing.
func TestHealthOnThePageOfACabinet(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	g := r.do("GET", "/console/cabinets/88?tab=health", nil)
	clean(t, r, g)
	require.Contains(t, g.body, "What it reported")
	require.Contains(t, g.body, "No health report has come yet")

	now := time.Now()
	record := bus.Record{Kind: bus.KindHealth, At: now.UnixNano(), Boot: 1, Mono: 1, Clock: bus.ClockSynced, Body: bus.MustEncode(bus.Health{
		Boards: map[string]uint64{"A": 3}, StoreUse: map[string]uint64{"lane0": 4_000_000, "lane1": 8_000_000, "filled_percent": 12}, Uplink: map[string]uint64{"connects": 2, "resends": 1},
		Temperatures: map[string]float64{"inside": 21.5}, Versions: map[string]string{"agent": "1.2.3"}, Locks: []bus.LockWear{{Door: 1, Cycles: 40, Acts: 32, DelayMS: 210}, {Door: 2, Cycles: 9, Failed: 1, Acts: 10, Trouble: 3, DelayMS: 900}}})}
	batch := bus.Batch{Version: 1, Epoch: bus.Epoch{1}, Lane: bus.Telemetry, First: 1, Records: []bus.Raw{bus.MustEncode(record)}, Sent: bus.Sample{Boot: 1, Wall: now.UnixNano(), Clock: bus.ClockSynced, ErrMS: 2}}
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{
		Lanes:   []cloud.LaneMove{{To: cloud.LaneState{DeviceID: 88, Epoch: batch.Epoch, Lane: batch.Lane, Next: 2}}},
		Batches: []cloud.JournalBatch{{DeviceID: 88, Epoch: batch.Epoch, Lane: batch.Lane, First: 1, Count: 1, ReceivedAt: now, Bytes: bus.MustEncode(batch)}},
		Seen:    []cloud.DeviceSeen{{DeviceID: 88, LastSeenAt: now, StatusAt: now, StatusEpoch: batch.Epoch}}}})
	g = r.do("GET", "/console/cabinets/88?tab=health", nil)
	clean(t, r, g)
	for _, want := range []string{"12 %", "4.0 MB", "2, with 1 repeats", "Board A", "3 errors", "21.5 °C", "1.2.3", "Locks", "lock-failing", "2 of the last 10", "900 ms", "210 ms"} {
		require.Contains(t, g.body, want)
	}
	require.Less(t, strings.Index(g.body, "lock-failing"), strings.Index(g.body, "lock-ok"), "the worst first")
}

// A dispatcher begins at the day board, an operator of cabinets at home.
func TestWhereADayBegins(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, err := r.w.FindToken(t.Context(), hashOf(r.w.Tokens[cloud.ClientEmployee]))
	require.NoError(t, err)
	for _, x := range []struct {
		scopes []string
		home   string
	}{
		{[]string{"orders:write", "routes:write"}, "/console/day"},
		{[]string{"orders:write", "routes:read", "lockers:read"}, "/console"},
		{[]string{"orders:read"}, "/console"},
	} {
		s.Account.Permissions = x.scopes
		r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
		who := newRigAt(r)
		g := who.signIn(r.w.Emails[cloud.ClientEmployee])
		require.Equal(t, []any{303, x.home}, []any{g.status, g.header("Location")}, x.scopes)
		home := who.do("GET", x.home, nil)
		require.Equal(t, 200, home.status)
		for _, m := range regexp.MustCompile(`href="(/console[^"?#]*)`).FindAllStringSubmatch(home.body, -1) {
			require.NotEqual(t, 403, who.do("GET", m[1], nil).status, "%v are led to %s", x.scopes, m[1])
		}
	}
}

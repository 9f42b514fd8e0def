package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
)

const lockersPath = "/api/mcp/lockers"

// cabinet makes a cabinet of the sandbox's business and enrols it. Its doors are not
// connected.
func (w *agentWorld) cabinet(code string) (id cloud.DeviceID, grids []int64) {
	w.t.Helper()
	var made struct {
		Device struct {
			ID cloud.DeviceID `json:"device_id"`
		} `json:"device"`
		Enrolment struct {
			Token string `json:"token"`
		} `json:"enrolment"`
	}
	require.Equal(w.t, 201, call(w.t, "POST", w.base+"/api/v1/smart-lockers/devices", w.box.Admin.Token, map[string]any{"device_name": "Pier", "device_code": code, "layout": "small"}, &made))
	require.Equal(w.t, 200, call(w.t, "POST", w.base+"/api/v1/devices/enrol", "", map[string]any{"device_code": code, "token": made.Enrolment.Token}, nil))
	require.NoError(w.t, w.s.Store.Look(w.t.Context(), func(v cloud.View) error {
		cells, err := v.Compartments(made.Device.ID)
		for _, c := range cells {
			grids = append(grids, int64(c.GridID))
		}
		return err
	}))
	return made.Device.ID, grids
}

// oneMore are the shelves of a cabinet with a compartment more at the bottom of
// the last one.
func (w *agentWorld) oneMore(d cloud.DeviceID) string {
	w.t.Helper()
	var shelves []locker.LayoutShelf
	require.NoError(w.t, w.s.Store.Look(w.t.Context(), func(v cloud.View) error {
		cells, err := v.Compartments(d)
		for _, c := range cells {
			if len(shelves) == 0 || shelves[len(shelves)-1].Code != c.ShelfCode {
				shelves = append(shelves, locker.LayoutShelf{Code: c.ShelfCode})
			}
			s := &shelves[len(shelves)-1]
			s.Grids = append(s.Grids, locker.LayoutGrid{Door: int(c.Door), Column: c.Column, Row: c.Row, Size: c.Size, PickupEnabled: &c.PickupEnabled})
		}
		return err
	}))
	shelves[len(shelves)-1].Grids = append(shelves[len(shelves)-1].Grids, locker.LayoutGrid{Door: 99, Column: 1, Row: 64, Size: "S"})
	text, err := json.Marshal(shelves)
	require.NoError(w.t, err)
	return string(text)
}

// parcel is a delivery into a cabinet.
func (w *agentWorld) parcel(d cloud.DeviceID, ref string) cloud.DeliveryID {
	w.t.Helper()
	out, err := w.s.Lockers.Create(w.t.Context(), w.box.ProviderCaller, locker.CreateInput{DeviceID: d, ReferenceNumber: ref,
		Packages: []locker.PackageInput{{TrackingNumber: ref, Size: "M"}}, Recipient: cloud.Recipient{Name: "Ann Lee", Phone: "+14165550123"}})
	require.NoError(w.t, err)
	return out.Delivery.DeliveryID
}

// stored is a device order of a delivery that waits in a compartment of a cabinet, and an open
// exception there.
func (w *agentWorld) stored(d cloud.DeviceID, grid cloud.GridID, ref string) (o cloud.DeviceOrder, e cloud.Exception) {
	w.t.Helper()
	id := w.parcel(d, ref)
	require.NoError(w.t, w.s.Store.Decide(w.t.Context(), d, func(v cloud.View) (*cloud.Changes, error) {
		x, err1 := v.Delivery(id)
		cells, err2 := v.Compartments(d)
		n, err3 := v.NewID(cloud.DeviceOrderIDs)
		m, err4 := v.NewID(cloud.ExceptionIDs)
		i := slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.GridID == grid })
		if err := errors.Join(err1, err2, err3, err4); err != nil || i < 0 {
			return nil, fmt.Errorf("compartment %d is the %d. of %d: %w", grid, i, len(cells), err)
		}
		at := cells[i]
		at.State, at.DeliveryID = cloud.GridOccupied, id
		x.Status, x.PickupCodeActive, x.DepositedAt, x.DueAt = cloud.DeliveryDelivered, true, x.CreatedAt, x.CreatedAt.Add(72*time.Hour)
		x.Packages[0].GridID, x.Packages[0].Status = grid, cloud.PackageInCompartment
		o = cloud.DeviceOrder{ID: cloud.DeviceOrderID(n), BusinessID: x.BusinessID, DeviceID: d, GridCode: at.GridCode, Kind: "locker_delivery", Status: "stored", NextActor: "recipient",
			DeliveryID: id, Tracking: ref, Reference: ref, StoredAt: x.DepositedAt, DueAt: x.DueAt}
		e = cloud.Exception{ID: cloud.ExceptionID(m), BusinessID: x.BusinessID, DeviceID: d, GridCode: at.GridCode, Source: "x-" + ref, Type: "item_missing", Severity: "high", Status: "open", OpenedAt: x.DepositedAt,
			DeviceOrderID: o.ID, DeliveryID: id}
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{x}, Compartments: []cloud.Compartment{at}, DeviceOrders: []cloud.DeviceOrder{o}, Exceptions: []cloud.Exception{e}}}, nil
	}))
	return o, e
}

// lockerWrites says how every tool of the lockers server that writes is called for.
func lockerWrites(w *agentWorld, n int) map[string]string {
	d, grids := w.cabinet(fmt.Sprint("W-", n))
	grid := grids[len(grids)-1]
	require.NoError(w.t, w.s.Store.Decide(w.t.Context(), d, func(cloud.View) (*cloud.Changes, error) { // as if it were connected
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: d, Generation: 1, Online: true}}}}, nil
	}))
	delivery := w.parcel(d, fmt.Sprint("LW-", n))
	full, places := w.cabinet(fmt.Sprint("I-", n))
	inside, exception := w.stored(full, cloud.GridID(places[0]), fmt.Sprint("LI-", n))
	order := w.order(fmt.Sprint("LO-", n))
	return map[string]string{
		"open_cabinet_doors":        fmt.Sprintf(`{"device_id":%d,"grid_ids":[%d],"reason":"Clean a spill","attended":true,"wait_seconds":0}`, d, grid),
		"block_compartment":         fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"The hinge is bent"}`, d, grid),
		"unblock_compartment":       fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"Hinge repaired"}`, d, grid),
		"clear_compartment":         fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"Found empty"}`, d, grid),
		"remove_device_order":       fmt.Sprintf(`{"device_order_id":%d,"removal_reason":"handover"}`, inside.ID),
		"extend_device_order":       fmt.Sprintf(`{"device_order_id":%d,"hours":24}`, inside.ID),
		"resend_device_order_code":  fmt.Sprintf(`{"device_order_id":%d}`, inside.ID),
		"resolve_cabinet_exception": fmt.Sprintf(`{"exception_id":%d,"resolution_action":"package_lost"}`, exception.ID),
		"dismiss_cabinet_exception": fmt.Sprintf(`{"exception_id":%d,"note":"Seen"}`, exception.ID),
		"send_cabinet_command":      fmt.Sprintf(`{"device_id":%d,"type":"reset_tries","reason":"A child played with it"}`, d),
		"edit_cabinet":              fmt.Sprintf(`{"device_id":%d,"device_name":"Hall"}`, d),
		"set_cabinet_layout":        fmt.Sprintf(`{"device_id":%d,"shelves":%s}`, d, w.oneMore(d)),
		"replace_cabinet_hardware":  fmt.Sprintf(`{"device_id":%d,"reason":"The controller burnt"}`, d),
		"retire_cabinet":            fmt.Sprintf(`{"device_id":%d,"reason":"The shop closes"}`, d),
		"report_cabinet_stolen":     fmt.Sprintf(`{"device_id":%d,"reason":"Police report 7"}`, d),
		"cancel_locker_delivery":    fmt.Sprintf(`{"delivery_id":"%d","reason":"The site is closed"}`, delivery),
		"expire_locker_delivery":    fmt.Sprintf(`{"delivery_id":"%d","reason":"Sent back"}`, delivery),
		"confirm_locker_deposit":    fmt.Sprintf(`{"delivery_id":"%d"}`, delivery),
		"close_conversation":        fmt.Sprintf(`{"order_id":%d}`, order),
		"reopen_conversation":       fmt.Sprintf(`{"order_id":%d}`, order),
	}
}

// refusedHere are writes that the state of a fresh cabinet refuses: the refusal is
// what a call and a dry run say.
var refusedHere = map[string]string{
	"resend_device_order_code": "CHANNEL_NOT_CONFIGURED", "confirm_locker_deposit": "DELIVERY_STATE_CONFLICT", "close_conversation": "CONVERSATION_NOT_FOUND", "reopen_conversation": "CONVERSATION_NOT_FOUND",
}

// No write of the lockers server is done without a person's word: it waits, carries
// the digest of what was shown, and changes nothing but the queue; a dry run changes
// nothing at all. No argument stands for the word.
func TestEveryWriteAtCabinetsWaitsForAPerson(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls of the same tools; this one walks over all of them")
	t.Parallel()
	w := newAgentWorld(t, Config{})
	staff := []string{"Authorization", w.box.Staff.Token}
	admin := []string{"Authorization", w.box.Admin.Token}
	n, done := 0, 0
	for _, tool := range w.s.Catalog.Tools(catalog.LockersServer) {
		if !tool.Writes() && tool.Effect == catalog.Usual {
			continue
		}
		t.Run(tool.Name, func(t *testing.T) {
			w := &agentWorld{t, w.s, w.box, w.base}
			n++
			text, ok := lockerWrites(w, n)[tool.Name]
			require.True(t, ok, "how is %s called?", tool.Name)
			require.True(t, tool.Asks && tool.Confirm)
			before := w.dump()
			same := func(but ...string) {
				t.Helper()
				but = append(but, "business_health") // counted by the clock
				for table, rows := range w.dump() {
					require.True(t, slices.Contains(but, table) || slices.Equal(before[table], rows), "%s changed", table)
				}
			}
			dry := w.on(lockersPath, tool.Name, text, append(slices.Clone(staff), "X-MCP-Dry-Run", "1")...)
			same()
			bypass := w.on(lockersPath, tool.Name, strings.Replace(text, "{", `{"confirm":true,`, 1), staff...)
			require.Equal(t, "VALIDATION_FAILED", bypass.body["code"])
			same()
			queued := w.on(lockersPath, tool.Name, text, staff...)
			same("approval", "audit")
			if code, refused := refusedHere[tool.Name]; refused {
				require.Contains(t, string(dry.raw), strings.ToLower(code), "%s", dry.raw)
				require.Equal(t, code, queued.body["code"], "%s", queued.raw)
				return
			}
			require.Equal(t, "preview", dry.body["outcome"], "%s", dry.raw)
			require.Equal(t, "pending_approval", queued.body["outcome"], "%s", queued.raw)
			shown := queued.body["approval"].(map[string]any)
			require.Equal(t, dry.body["digest"], shown["digest"], "what waits is what was shown")
			require.Equal(t, catalog.LockersServer, shown["server"])
			approved := w.on("/mcp", "approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, queued.body["approval_id"]), admin...)
			require.Equal(t, "executed", approved.body["outcome"], "%s", approved.raw)
			done++
		})
	}
	require.GreaterOrEqual(t, n, 10)
	require.GreaterOrEqual(t, done, 5)
}

// A client that can put questions shows one; the answer does what was shown, once, and
// nothing when something changed meanwhile.
func TestAQuestionAtCabinetsIsHeldToWhatWasShown(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	d, grids := w.cabinet("PIER-1")
	grid := grids[0]
	text := fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"The hinge is bent"}`, d, grid)
	ask := func(more string) map[string]any {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block_compartment","arguments":%s%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, text, more)
		r := w.post(lockersPath, body, "Authorization", w.box.Staff.Token, "Mcp-Method", "tools/call", "Mcp-Name", "block_compartment", "MCP-Protocol-Version", "2026-07-28")
		result, ok := r.json["result"].(map[string]any)
		require.True(t, ok, "%s", r.raw)
		return result
	}
	state := func(grid cloud.GridID) (out string) {
		require.NoError(t, w.s.Store.Look(t.Context(), func(v cloud.View) error {
			cells, err := v.Compartments(d)
			for _, c := range cells {
				if c.GridID == grid {
					out = c.State
				}
			}
			return err
		}))
		return out
	}
	answer := func(q map[string]any, yes bool) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":%v}}}`, q["requestState"], yes)
	}
	first := ask("")
	require.Equal(t, "input_required", first["resultType"], "%v", first)
	question := first["inputRequests"].(map[string]any)["confirm"].(map[string]any)["params"].(map[string]any)["message"].(string)
	require.Contains(t, question, "Block compartment")
	require.Contains(t, question, "The hinge is bent")
	require.Equal(t, cloud.GridFree, state(cloud.GridID(grid)))

	declined := ask(answer(ask(""), false))
	require.Equal(t, true, declined["isError"], "%v", declined)
	require.Equal(t, cloud.GridFree, state(cloud.GridID(grid)))

	stale := ask("")
	require.NoError(t, w.s.Store.Decide(t.Context(), d, func(v cloud.View) (*cloud.Changes, error) { // the compartment is another one now
		c, err := v.Compartment(d, 1)
		c.Version++
		c.State = cloud.GridCleaning
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, err
	}))
	refused := ask(answer(stale, true))
	require.Equal(t, true, refused["isError"], "%v", refused)
	require.NotEqual(t, cloud.GridBlocked, state(cloud.GridID(grid)))
	require.NoError(t, w.s.Store.Decide(t.Context(), d, func(v cloud.View) (*cloud.Changes, error) {
		c, err := v.Compartment(d, 1)
		c.State = cloud.GridFree
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, err
	}))

	good := ask("")
	executed := ask(answer(good, true))
	require.NotEqual(t, true, executed["isError"], "%v", executed)
	require.Equal(t, cloud.GridBlocked, state(cloud.GridID(grid)))
}

// What belongs to another business is what there is not, and no code is shown.
func TestLockerToolsShowOnlyWhatIsOnesOwn(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	d, grids := w.cabinet("PIER-1")
	delivery := w.parcel(d, "OWN-1")
	inside, exception := w.stored(d, cloud.GridID(grids[1]), "OWN-2")
	other := auth.NewToken()
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err1 := v.NewID(cloud.BusinessIDs)
		a, err2 := v.NewID(cloud.AccountIDs)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("ids: %w, %w", err1, err2)
		}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: cloud.BusinessID(b), Code: "other", Name: "Other", Timezone: "UTC"}},
			Accounts: []cloud.Account{{ID: cloud.AccountID(a), BusinessID: cloud.BusinessID(b), Type: cloud.ClientAdmin, Email: "other@other.example", Enabled: true}},
			Tokens:   []cloud.Token{{Hash: auth.Hash(other), AccountID: cloud.AccountID(a), Name: "login"}}}}, nil
	}))
	for tool, ids := range map[string][2]string{
		"get_cabinet":               {fmt.Sprintf(`{"device_id":%d}`, d), `{"device_id":987654}`},
		"block_compartment":         {fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"x"}`, d, grids[0]), `{"device_id":987654,"grid_id":1,"reason":"x"}`},
		"clear_compartment":         {fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"x"}`, d, grids[0]), `{"device_id":987654,"grid_id":1,"reason":"x"}`},
		"report_cabinet_stolen":     {fmt.Sprintf(`{"device_id":%d,"reason":"x"}`, d), `{"device_id":987654,"reason":"x"}`},
		"get_device_order":          {fmt.Sprintf(`{"device_order_id":%d}`, inside.ID), `{"device_order_id":987654}`},
		"remove_device_order":       {fmt.Sprintf(`{"device_order_id":%d,"removal_reason":"handover"}`, inside.ID), `{"device_order_id":987654,"removal_reason":"handover"}`},
		"explain_cabinet_exception": {fmt.Sprintf(`{"exception_id":%d}`, exception.ID), `{"exception_id":987654}`},
		"resolve_cabinet_exception": {fmt.Sprintf(`{"exception_id":%d,"resolution_action":"no_action"}`, exception.ID), `{"exception_id":987654,"resolution_action":"no_action"}`},
		"get_locker_delivery":       {fmt.Sprintf(`{"delivery_id":"%d"}`, delivery), `{"delivery_id":"987654"}`},
		"expire_locker_delivery":    {fmt.Sprintf(`{"delivery_id":"%d","reason":"x"}`, delivery), `{"delivery_id":"987654","reason":"x"}`},
		"get_person":                {`{"user_id":1}`, `{"user_id":987654}`},
	} {
		mine, none := w.on(lockersPath, tool, ids[0], "Authorization", other), w.on(lockersPath, tool, ids[1], "Authorization", other)
		require.Contains(t, mine.body["code"], "_NOT_FOUND", "%s: %s", tool, mine.raw)
		require.Equal(t, string(none.raw), string(mine.raw), tool)
	}
	for _, tool := range []string{"list_cabinets", "list_locker_deliveries", "list_cabinet_exceptions", "list_device_orders"} {
		r := w.on(lockersPath, tool, `{}`, "Authorization", other)
		require.EqualValues(t, 0, r.body["total"], "%s: %s", tool, r.raw)
	}
	seen := w.on(lockersPath, "list_cabinets", `{"per_page":5}`, "Authorization", w.box.Staff.Token)
	require.Contains(t, string(seen.raw), "PIER-1")
	codes, err := w.s.Lockers.Find(t.Context(), w.box.ProviderCaller, locker.DeliveryKey(fmt.Sprint(delivery)))
	require.NoError(t, err)
	require.NotNil(t, codes.Delivery.DeliveryCode)
	for tool, text := range map[string]string{"get_locker_delivery": fmt.Sprintf(`{"delivery_id":"%d"}`, delivery), "list_locker_deliveries": `{}`, "list_device_orders": `{}`} {
		r := w.on(lockersPath, tool, text, "Authorization", w.box.Staff.Token)
		require.Contains(t, string(r.raw), "OWN-")
		require.NotContains(t, string(r.raw), *codes.Delivery.DeliveryCode)
		require.NotContains(t, string(r.raw), "pickup_code")
	}
}

// An operator's write by a pass waits for the business's people, is done by a decision
// of theirs in the operator's name, and ends with the pass: nothing waits that can never
// be done. A pass decides about nothing itself.
func TestAPassAsksTheBusiness(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	operator := auth.NewToken()
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.AccountIDs)
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: cloud.AccountID(id), Type: cloud.PlatformAdmin, Email: "op@platform.example", Name: "Olga Operator", Enabled: true}},
			Tokens: []cloud.Token{{Hash: auth.Hash(operator), AccountID: cloud.AccountID(id), Name: "login"}}}}, err
	}))
	var pass struct {
		Pass struct {
			ID      int64 `json:"pass_id"`
			Account int64 `json:"account_id"`
		} `json:"pass"`
		Token string `json:"token"`
	}
	require.Equal(t, 201, call(t, "POST", fmt.Sprintf("%s/api/v1/platform/businesses/%d/passes", w.base, w.business()), operator, map[string]any{"reason": "Ticket 1187", "hours": 1}, &pass))
	admin := []string{"Authorization", w.box.Admin.Token}
	d, grids := w.cabinet("PASS-1")
	ask := func(grid int64) string {
		r := w.on(lockersPath, "block_compartment", fmt.Sprintf(`{"device_id":%d,"grid_id":%d,"reason":"The hinge is bent"}`, d, grid), "Authorization", pass.Token)
		require.Equal(t, "pending_approval", r.body["outcome"], "%s", r.raw)
		return r.body["approval_id"].(string)
	}
	decide := func(id string, headers ...string) called {
		return w.on("/mcp", "approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, id), headers...)
	}
	first, second := ask(grids[0]), ask(grids[1])
	require.Equal(t, "PASS_NOT_ALLOWED", decide(first, "Authorization", pass.Token).body["code"])
	done := decide(first, admin...)
	require.Equal(t, "executed", done.body["outcome"], "%s", done.raw)
	var trail struct {
		Lines []struct {
			Actor     string         `json:"actor"`
			ActorName *string        `json:"actor_name"`
			PassID    *int64         `json:"pass_id"`
			Action    string         `json:"action"`
			Details   map[string]any `json:"details"`
		} `json:"lines"`
	}
	require.Equal(t, 200, call(t, "GET", w.base+"/api/v1/audit?per_page=20", w.box.Admin.Token, nil, &trail))
	by, asked := fmt.Sprintf("account:%d", pass.Pass.Account), false
	for _, l := range trail.Lines {
		if l.Details["requested_by"] == by && l.PassID != nil {
			asked = *l.PassID == pass.Pass.ID
		}
		if l.Actor == by {
			require.Equal(t, "Olga Operator", *l.ActorName, l.Action)
			require.True(t, l.PassID != nil || l.Action == "platform_pass_opened", l.Action)
		}
	}
	require.True(t, asked, "%v", trail.Lines)
	require.Equal(t, 200, call(t, "GET", w.base+"/api/v1/audit", pass.Token, nil, nil), "a pass reads the trail")

	require.Equal(t, 200, call(t, "POST", fmt.Sprintf("%s/api/v1/operator-passes/%d/end", w.base, pass.Pass.ID), w.box.Admin.Token, map[string]any{}, nil))
	require.Equal(t, "APPROVAL_EXPIRED", decide(second, admin...).body["code"])
	waiting := w.on("/mcp", "list_pending_approvals", `{}`, admin...)
	require.NotContains(t, string(waiting.raw), second)
}

// A login that has a second factor to set up first opens no tool server: neither tools
// that are about tools nor the queue of what people decide.
func TestToolServersDemandTheSecondFactor(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	order := w.order("SF-1")
	fresh := auth.NewToken()
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.AccountIDs)
		a := cloud.Account{ID: cloud.AccountID(id), BusinessID: w.business(), Type: cloud.ClientEmployee, Email: "few@acme.example", Name: "Few", Permissions: []string{"approvals:read"}, Enabled: true}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}, Tokens: []cloud.Token{{Hash: auth.Hash(fresh), AccountID: a.ID, Kind: cloud.SetupToken, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}}}}, err
	}))
	for _, x := range []struct{ path, tool, arguments string }{
		{"/mcp", "propose_write", fmt.Sprintf(`{"tool":"hold_order","arguments":{"order_id":%d,"reason":"x"}}`, order)},
		{"/mcp", "get_capabilities", `{}`}, {lockersPath, "get_capabilities", `{}`}, {lockersPath, "list_cabinets", `{}`}, {"/mcp/developer", "run_graphql_query", `{"query":"{ orders { total } }"}`},
	} {
		r := w.on(x.path, x.tool, x.arguments, "Authorization", fresh)
		require.Equal(t, 403, r.status, "%s: %s", x.tool, r.raw)
		require.Contains(t, string(r.raw), "SECOND_FACTOR_SETUP_REQUIRED", x.tool)
	}
	require.NoError(t, w.s.Store.Look(t.Context(), func(v cloud.View) error {
		waiting, _, err := v.Approvals(cloud.ApprovalFilter{BusinessID: w.business(), Now: time.Now(), Page: cloud.Page{Sort: "requested_at", Limit: 10}})
		require.Empty(t, waiting)
		return err
	}))
}

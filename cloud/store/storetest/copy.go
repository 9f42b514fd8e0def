package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Ids of the rows that FillCopy adds, far above what a day of the demo reaches.
const (
	copyOrder  = 900_001
	copyDriver = 900_002
	copyRoute  = 900_003
	copyGrant  = 900_004
	copyFile   = "copies/proof.jpg"
)

var copyCall = cloud.CallID{9, 0, 1}

// FillCopy adds one row each of what a day of the demo leaves empty, so that a
// copy of its database holds something in every table. The database is one of
// the demo: business 1 with its devices.
func FillCopy(t testing.TB, db *store.DB) {
	o := order(copyOrder, 0)
	o.BusinessID, o.RouteID, o.Stop, o.DriverID, o.DriverName = 1, copyRoute, 1, copyDriver, "Dana Driver"
	o.Status, o.Instruction = cloud.OrderStates()[3].ID, "Ünï 包裹: ring twice"
	c := &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}}

	account := cloud.Account{ID: copyDriver, BusinessID: 1, Type: cloud.DriverAccount, Name: "Dana Driver", Email: "dana@copy.example", Enabled: true, CreatedAt: now}
	c.Accounts = []cloud.Account{account}
	c.Drivers = []cloud.Driver{{Account: account, Phone: "+14165550177", OnDuty: true, DutySince: now, Skills: []string{"fragile"}, ShiftStart: "08:00", ShiftEnd: "16:00"}}
	c.DriverPlaces = []cloud.DriverPlace{{AccountID: copyDriver, BusinessID: 1, Latitude: 43.65, Longitude: -79.38, RecordedAt: now, DueAt: now.Add(time.Minute)}}
	c.Routes = []cloud.Route{{ID: copyRoute, BusinessID: 1, Name: "Copy route", Date: "2026-11-20", DriverID: copyDriver, DriverName: "Dana Driver", LastStop: 1, CreatedAt: now, UpdatedAt: now, DispatchedAt: now}}
	c.PushTokens = []cloud.PushToken{{DriverID: copyDriver, Token: "copy-token", Platform: "fcm", Login: [32]byte{9}, At: now}}

	c.Interceptions = []cloud.Interception{{ID: copyOrder, BusinessID: 1, OrderID: copyOrder, Status: "requested", Requested: "hold", Reason: "as the recipient asked", CreatedAt: now}}
	c.Assignments = []cloud.Assignment{{ID: copyOrder, BusinessID: 1, OrderID: copyOrder, BrokerID: 900_009, Status: cloud.AssignmentActive, Note: "by noon", AssignedBy: 1, AssignedAt: now}}
	c.Jobs = []cloud.Job{{ID: "bat_copy", BusinessID: 1, AccountID: 1, Surface: "api", Total: 2, Status: "processing", CreatedAt: now}}
	c.JobRows = []cloud.JobRow{{JobID: "bat_copy", Row: 1, Input: []byte(`{"a":1}`), Result: []byte(`{"order_id":1}`)}, {JobID: "bat_copy", Row: 2, Input: []byte(`{"a":2}`)}}
	c.Files = []cloud.KeptFile{{Path: copyFile, BusinessID: 1, OrderID: copyOrder, At: now}}

	c.Conversations = []cloud.Conversation{{ID: copyOrder, BusinessID: 1, OrderID: copyOrder}}
	c.ChatMessages = []cloud.ChatMessage{{ID: copyOrder, BusinessID: 1, OrderID: copyOrder, ConversationID: copyOrder, ClientID: "c1", Kind: "text", Text: "Is anyone there? 包裹", CreatedAt: now}}
	c.ChatReads = []cloud.ChatRead{{BusinessID: 1, OrderID: copyOrder, Account: copyDriver, UpTo: copyOrder, At: now}}
	c.ChatAttachments = []cloud.ChatAttachment{{ID: copyOrder, BusinessID: 1, OrderID: copyOrder, By: copyDriver, Name: "door.jpg", Path: copyFile, MIME: "image/jpeg", Size: 77, At: now}}

	c.DeviceFaults = []cloud.DeviceException{{DeviceID: findCopyDevice(t, db).ID, Type: "bad_batch", Detail: "a byte is missing", Count: 1, OpenedAt: now, SeenAt: now}}
	c.Gaps = []cloud.GapRange{{DeviceID: findCopyDevice(t, db).ID, Epoch: epoch(1), Lane: wire.Settlement, First: 100, Last: 120, Reason: "overwritten", Missing: 21}}
	c.Enrolments = []cloud.EnrolmentToken{{Hash: [32]byte{9}, DeviceID: findCopyDevice(t, db).ID, ExpiresAt: now.Add(time.Hour)}}
	c.Observations = []cloud.Observation{{ShipmentID: findCopyShipment(t, db).ID, Source: "swift", Raw: "In Transit", Code: findCopyShipment(t, db).Current, SeenAt: now}}

	c.OAuthClients = []cloud.OAuthClient{{ID: "client_copy", Name: "An agent", RedirectURIs: []string{"https://agent.example/back"}, CreatedAt: now}}
	g := cloud.OAuthGrant{ID: copyGrant, AccountID: copyDriver, ClientID: "client_copy", ClientName: "An agent", Host: "agent.example", Scopes: []string{"orders:read"}, Audience: "https://cloud.example/mcp", CreatedAt: now, ExpiresAt: now.Add(time.Hour), Code: cloud.OAuthCode{Hash: [32]byte{9}, ExpiresAt: now.Add(time.Minute)}}
	c.OAuthGrants = []cloud.OAuthGrant{g}
	c.ReplayJobs = []cloud.ReplayJob{{ID: "rpl_copy", BusinessID: 1, Filter: cloud.ReplayFilter{From: now, To: now.Add(time.Hour)}, Status: cloud.ReplayRunning, PositionAt: time.UnixMilli(0), Total: 4, CreatedAt: now}}
	c.Endpoints = []cloud.Endpoint{{ID: copyOrder, BusinessID: 1, Kind: cloud.AccountEndpoint, URL: "https://copy.example/hook", Events: []string{"*"}, Secret: []byte("whsec_copy"), Numbered: true, Enabled: true, Status: "healthy", CreatedAt: now}}
	w := event(900_001, copyOrder)
	w.Event.BusinessID, w.Deliveries[0].BusinessID, w.Deliveries[0].Sequence = 1, 1, cloud.Unnumbered
	c.Outbox = []cloud.OutboxWrite{w}
	write(t, db, 0, c)

	// A call with a key whose answer is kept, and a delivery that took its number.
	ctx, call := callOnce(1)
	call.BusinessID, call.Once.ID, call.Once.Until = 1, copyCall, now.Add(365*24*time.Hour)
	require.NoError(t, db.Decide(ctx, 0, makes(900_001, map[string]int{"made": 1})))
	held, err := db.ClaimTraces(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	_, err = db.ClaimOutbox(t.Context(), copyOrder, now.Add(30*24*time.Hour), 5)
	require.NoError(t, err)
}

func findCopyDevice(t testing.TB, db *store.DB) cloud.Device {
	list, err := db.ListAllDevices(t.Context(), 0, 1)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

func findCopyShipment(t testing.TB, db *store.DB) cloud.Shipment {
	list, err := db.ListDeliveries(t.Context(), store.DeliveryFilter{BusinessID: 1, Limit: 1})
	require.NoError(t, err)
	require.Len(t, list, 1)
	s, err := db.FindShipment(t.Context(), list[0].Packages[0].TrackingNumber)
	require.NoError(t, err)
	return s
}

// DescribeCopy says in lines what a copy of the demo's database holds, as the
// store's finders read it: one line a row, the fields that its readers depend on
// by name. A field that a later release adds is not in it.
func DescribeCopy(t testing.TB, db *store.DB) string {
	d := describer{t: t, db: db}
	look(t, db, func(v cloud.View) {
		d.v = v
		d.describePeople()
		d.describeDevices()
		d.describeDeliveries()
		d.describeTimelines()
		d.describeOrders()
		d.describeChats()
		d.describeWebhooks()
		d.describeAgents()
		d.describeRest()
	})
	return d.out.String()
}

// describer writes lines about one snapshot.
type describer struct {
	t   testing.TB
	db  *store.DB
	v   cloud.View
	out strings.Builder
}

// writeLine writes a kind and pairs of name and value.
func (d *describer) writeLine(kind string, pairs ...any) {
	d.out.WriteString(kind)
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&d.out, " %v=", pairs[i])
		switch x := pairs[i+1].(type) {
		case time.Time:
			if !x.IsZero() {
				d.out.WriteString(x.UTC().Format(time.RFC3339Nano))
			}
		case []byte:
			fmt.Fprintf(&d.out, "%q", x)
		case string:
			fmt.Fprintf(&d.out, "%q", x)
		default:
			fmt.Fprintf(&d.out, "%v", x)
		}
	}
	d.out.WriteByte('\n')
}

// requireFound passes a value through that was read without an error.
func requireFound[T any](d *describer) func(T, error) T {
	return func(v T, err error) T {
		d.t.Helper()
		require.NoError(d.t, err)
		return v
	}
}

func (d *describer) describePeople() {
	b := requireFound[cloud.Business](d)(d.v.Business(1))
	d.writeLine("business", "id", b.ID, "code", b.Code, "name", b.Name)
	accounts, total, err := d.v.Accounts(cloud.AccountFilter{BusinessID: 1, Page: cloud.Page{Sort: "id", Limit: 50}})
	require.NoError(d.t, err)
	require.Len(d.t, accounts, total.Total)
	for _, a := range accounts {
		d.writeLine("account", "id", a.ID, "type", a.Type, "email", a.Email, "name", a.Name, "password", a.PasswordHash, "enabled", a.Enabled)
		tokens := requireFound[[]cloud.Token](d)(d.v.Tokens(a.ID))
		slices.SortFunc(tokens, func(a, b cloud.Token) int { return slices.Compare(a.Hash[:], b.Hash[:]) })
		for _, k := range tokens {
			d.writeLine("token", "hash", fmt.Sprintf("%x", k.Hash), "account", k.AccountID, "name", k.Name, "expires", k.ExpiresAt)
		}
	}
	for _, p := range requireFound[[]cloud.Provider](d)(d.db.ListProviders(d.t.Context(), 1)) {
		d.writeLine("provider", "id", p.ID, "code", p.Code, "name", p.Name)
	}
	x := requireFound[cloud.Driver](d)(d.v.Driver(1, copyDriver))
	d.writeLine("driver", "id", x.Account.ID, "phone", x.Phone, "duty", x.DutySince, "skills", x.Skills)
	p := requireFound[cloud.DriverPlace](d)(d.v.DriverPlace(1, copyDriver))
	d.writeLine("driver place", "latitude", p.Latitude, "longitude", p.Longitude, "recorded", p.RecordedAt)
	for _, k := range requireFound[[]cloud.PushToken](d)(d.db.PushTokens(d.t.Context(), copyDriver, now)) {
		d.writeLine("push token", "token", k.Token, "platform", k.Platform)
	}
}

func (d *describer) describeDevices() {
	ctx := d.t.Context()
	for _, x := range requireFound[[]cloud.Device](d)(d.db.ListAllDevices(ctx, 0, 50)) {
		d.writeLine("device", "id", x.ID, "code", x.Code, "name", x.Name, "type", x.Type, "created", x.CreatedAt)
		for _, g := range requireFound[[]cloud.Compartment](d)(d.v.Compartments(x.ID)) {
			d.writeLine("compartment", "grid", g.GridID, "door", g.Door, "size", g.Size, "state", g.State, "door_status", g.DoorStatus, "delivery", g.DeliveryID, "version", g.Version)
		}
		for _, l := range requireFound[[]cloud.LaneState](d)(d.db.ListLanes(ctx, x.ID)) {
			d.writeLine("lane", "lane", l.Lane, "epoch", fmt.Sprintf("%x", l.Epoch), "next", l.Next, "head", fmt.Sprintf("%x", l.Head))
		}
		s := requireFound[store.Stats](d)(d.db.JournalStats(ctx, x.ID))
		d.writeLine("journal", "device", x.ID, "records", s.Records, "batches", s.Batches, "missing", s.Missing, "gaps", s.Gaps)
		for _, e := range requireFound[[]cloud.DeviceException](d)(d.db.ListDeviceExceptions(ctx, x.ID, 50)) {
			d.writeLine("device exception", "type", e.Type, "detail", e.Detail, "count", e.Count)
		}
		for _, o := range requireFound[[]cloud.DeviceOrder](d)(d.db.ListDeviceOrders(ctx, x.ID)) {
			d.writeLine("device order", "id", o.ID, "grid", o.GridCode, "status", o.Status, "delivery", o.DeliveryID, "stored", o.StoredAt, "ended", o.EndedAt)
		}
	}
	for _, e := range requireFound[[]cloud.Exception](d)(d.db.ListExceptions(ctx, 1, "", 0, 50)) {
		d.writeLine("exception", "id", e.ID, "type", e.Type, "status", e.Status, "source", e.Source, "opened", e.OpenedAt)
	}
	e := requireFound[cloud.EnrolmentToken](d)(d.db.FindEnrolment(ctx, [32]byte{9}))
	d.writeLine("enrolment", "device", e.DeviceID, "expires", e.ExpiresAt)
	for _, j := range requireFound[[]store.JournalRow](d)(d.db.JournalAfter(ctx, 0, 5)) {
		d.writeLine("journal batch", "first", j.First, "count", j.Count, "bytes", fmt.Sprintf("%x", j.Bytes))
	}
}

func (d *describer) describeDeliveries() {
	for _, x := range requireFound[[]cloud.Delivery](d)(d.db.ListDeliveries(d.t.Context(), store.DeliveryFilter{BusinessID: 1, Limit: 100})) {
		d.writeLine("delivery", "id", x.ID, "number", x.Number, "reference", x.Reference, "status", x.Status, "confirmed", x.ConfirmedBy, "recipient", x.Recipient.Name, "codes", fmt.Sprintf("%x", x.SealedCodes),
			"created", x.CreatedAt, "deposited", x.DepositedAt, "picked_up", x.PickedUpAt)
		for _, p := range x.Packages {
			d.writeLine("package", "number", p.TrackingNumber, "size", p.Size, "grid", p.GridID, "status", p.Status)
		}
		for _, o := range requireFound[[]cloud.Opening](d)(d.v.DeliveryOpenings(x.ID)) {
			d.writeLine("opening", "id", o.ID, "kind", o.Kind, "state", o.State, "doors", len(o.Doors), "confirmed", o.ConfirmedBy, "opened", o.OpenedAt, "ended", o.EndedAt)
		}
		for _, c := range requireFound[[]cloud.CodeRow](d)(d.v.DeliveryCodes(x.ID)) {
			d.writeLine("code", "number", c.Entry.Number, "created", c.CreatedAt, "dropped", c.DroppedAt)
		}
	}
}

func (d *describer) describeTimelines() {
	for _, r := range requireFound[[]cloud.EventRow](d)(d.db.EventPage(d.t.Context(), cloud.EventQuery{BusinessID: 1, Limit: 500})) {
		d.writeLine("event", "id", r.Event.EventID, "number", r.Shipment.Number, "code", r.Event.StatusCode, "current", r.Shipment.Current, "occurred", r.Event.OccurredAt.String(), "recorded", r.Event.RecordedAt.String())
	}
	s := findCopyShipment(d.t, d.db)
	timeline, err := d.db.FindTimeline(d.t.Context(), strings.ToLower(s.Number), func(cloud.Shipment) bool { return true })
	of, events := timeline.Shipment, timeline.Events
	require.NoError(d.t, err)
	d.writeLine("timeline", "number", of.Number, "events", len(events))
	o := requireFound[cloud.Observation](d)(d.v.Observation(s.ID, "swift"))
	d.writeLine("observation", "raw", o.Raw, "code", o.Code)
}

func (d *describer) describeOrders() {
	ctx := d.t.Context()
	listed, orders, err := d.db.ListOrders(ctx, cloud.OrderQuery{BusinessID: 1, Page: cloud.Page{Sort: "id", Limit: 100}})
	require.NoError(d.t, err)
	require.Len(d.t, orders, listed.Total)
	for _, o := range orders {
		d.writeLine("order", "id", o.ID, "number", o.Number, "ref", o.Ref, "type", o.Type, "status", o.Status, "route", o.RouteID, "driver", o.DriverName, "instruction", o.Instruction, "third_party", o.ThirdPartyID)
		for _, p := range o.Packages {
			d.writeLine("order package", "id", p.ID, "number", p.Number, "weight", p.Weight)
		}
		for _, x := range requireFound[[]cloud.OrderOperation](d)(d.db.ListOrderOperations(ctx, 1, o.ID)) {
			d.writeLine("operation", "id", x.ID, "type", x.Type, "at", x.At)
		}
		for _, x := range requireFound[[]cloud.Interception](d)(d.db.ListInterceptions(ctx, 1, o.ID)) {
			d.writeLine("interception", "id", x.ID, "status", x.Status, "requested", x.Requested, "reason", x.Reason)
		}
		if o.Recipient == nil || len(o.Number) < 3 {
			continue
		}
		for _, m := range requireFound[[]cloud.OrderMatch](d)(d.db.SearchOrders(ctx, cloud.OrderSearch{BusinessID: 1, Text: strings.ToLower(o.Number), Fields: []cloud.SearchField{cloud.SearchNumber}, Limit: 5})) {
			d.writeLine("match", "order", m.Order.ID, "value", m.Value)
		}
	}
	_, assigned, err := d.db.ListAssignments(ctx, cloud.AssignmentQuery{BusinessID: 1, Page: cloud.Page{Limit: 50}})
	require.NoError(d.t, err)
	for _, a := range assigned {
		d.writeLine("assignment", "id", a.ID, "order", a.OrderID, "contractor", a.BrokerID, "status", a.Status, "note", a.Note)
	}
	_, third, err := d.db.ListThirdParties(ctx, cloud.ThirdPartyQuery{BusinessID: 1, Page: cloud.Page{Limit: 50}})
	require.NoError(d.t, err)
	for _, a := range third {
		d.writeLine("third party", "number", a.Number, "order", a.OrderID, "status", a.Status, "packages", len(a.Packages), "legs", len(a.Legs), "completed", a.CompletedAt)
	}
	x := requireFound[cloud.Route](d)(d.v.Route(1, copyRoute))
	d.writeLine("route", "id", x.ID, "name", x.Name, "date", x.Date, "driver", x.DriverName, "orders", len(requireFound[[]cloud.Order](d)(d.v.RouteOrders(1, copyRoute))))
	j, n, _, rows, err := d.db.ListJobRows(ctx, 1, "bat_copy", cloud.Page{Limit: 10})
	require.NoError(d.t, err)
	d.writeLine("order job", "id", j.ID, "status", j.Status, "count", fmt.Sprintf("{Processed:%d Failed:%d}", n.Processed, n.Failed))
	for _, r := range rows {
		d.writeLine("order job row", "row", r.Row, "result", r.Result, "failed", r.Failed)
	}
}

func (d *describer) describeChats() {
	total, list, err := d.db.ListConversations(d.t.Context(), cloud.ConversationQuery{BusinessID: 1, Staff: true, Page: cloud.Page{Limit: 50}})
	require.NoError(d.t, err)
	require.Len(d.t, list, total.Total)
	slices.SortFunc(list, func(a, b cloud.Conversation) int { return int(a.ID - b.ID) })
	for _, c := range list {
		d.writeLine("conversation", "id", c.ID, "order", c.OrderID, "members", len(c.Members), "closed", c.ClosedAt)
		messages, _, err := d.v.ChatMessages(cloud.ChatPage{BusinessID: 1, OrderID: c.OrderID, Staff: true, Page: cloud.Page{Limit: 100}})
		require.NoError(d.t, err)
		for _, m := range messages {
			d.writeLine("message", "id", m.ID, "kind", m.Kind, "text", m.Text, "created", m.CreatedAt)
		}
	}
	for _, r := range requireFound[[]cloud.ChatRead](d)(d.v.ChatReads(1, copyOrder, copyDriver, 0, 5)) {
		d.writeLine("read", "account", r.Account, "up_to", r.UpTo, "at", r.At)
	}
	a := requireFound[cloud.ChatAttachment](d)(d.v.ChatAttachment(1, copyOrder))
	d.writeLine("attachment", "name", a.Name, "path", a.Path, "bytes", a.Size)
}

func (d *describer) describeWebhooks() {
	ctx := d.t.Context()
	endpoints := requireFound[[]cloud.Endpoint](d)(d.v.AccountEndpoints(1))
	endpoints = append(endpoints, requireFound[[]cloud.Endpoint](d)(d.v.Endpoints(1))...)
	for _, e := range endpoints {
		e = requireFound[cloud.Endpoint](d)(d.db.FindEndpoint(ctx, e.ID)) // with its secret, which the key opens
		d.writeLine("endpoint", "id", e.ID, "kind", e.Kind, "status", e.Status, "secret", e.Secret, "events", e.Events)
	}
	s := requireFound[cloud.WebhookSettings](d)(d.v.WebhookSettings(1, 0))
	d.writeLine("webhook settings", "secret", s.Secret, "urls", len(s.URLs), "off", s.Off)
	for _, r := range requireFound[[]cloud.OutboxRow](d)(d.db.ListBusinessOutbox(ctx, cloud.BusinessLog{BusinessID: 1, Limit: 500})) {
		w := requireFound[cloud.OutboxWork](d)(d.db.FindOutbox(ctx, r.Delivery.ID)) // with its body, which the key opens
		d.writeLine("webhook delivery", "id", r.Delivery.ID, "event", r.Event.EventID, "type", r.Event.Event, "endpoint", r.Delivery.EndpointID, "state", w.Delivery.State, "attempts", r.Delivery.Attempts,
			"sequence", r.Delivery.Sequence, "created", r.Delivery.CreatedAt, "body", w.Event.Body)
		for _, a := range requireFound[[]cloud.OutboxAttempt](d)(d.db.OutboxAttempts(ctx, r.Delivery.ID)) {
			d.writeLine("attempt", "n", a.Attempt, "at", a.At, "status", a.HTTPStatus, "answer", a.AnswerBody)
		}
	}
	j := requireFound[cloud.ReplayJob](d)(d.db.FindReplay(ctx, "rpl_copy"))
	d.writeLine("replay", "status", j.Status, "total", j.Total, "from", j.Filter.From)
}

func (d *describer) describeAgents() {
	list, total, err := d.v.Approvals(cloud.ApprovalFilter{BusinessID: 1, Now: now, Page: cloud.Page{Sort: "id", Limit: 50}})
	require.NoError(d.t, err)
	require.Len(d.t, list, total.Total)
	for _, a := range list {
		d.writeLine("approval", "id", a.ID, "tool", a.Tool, "status", a.Status, "arguments", []byte(a.Arguments))
	}
	c := requireFound[cloud.OAuthClient](d)(d.v.OAuthClient("client_copy"))
	d.writeLine("client", "name", c.Name, "redirects", c.RedirectURIs)
	for _, g := range requireFound[[]cloud.OAuthGrant](d)(d.v.OAuthGrants(copyDriver)) {
		d.writeLine("grant", "id", g.ID, "client", g.ClientName, "scopes", g.Scopes)
	}
}

func (d *describer) describeRest() {
	ctx := d.t.Context()
	answer := requireFound[cloud.KeptAnswer](d)(d.db.FindCall(ctx, copyCall, now))
	d.writeLine("kept answer", "answer", answer.Answer, "at", answer.At)
	lines := requireFound[[]store.AuditRow](d)(d.db.ListAudits(ctx, 1, 0, 500))
	d.writeLine("audit", "lines", len(lines), "newest", lines[0].Action)
	d.writeLine("files", "kept", requireFound[[]string](d)(d.db.ListKeptFiles(ctx, copyFile[:len("copies/pr")])))
	live := requireFound[[]cloud.LiveEvent](d)(d.db.Live(ctx, time.UnixMilli(0), 500))
	d.writeLine("live events", "kept", len(live))
	for _, p := range requireFound[[]cloud.PushRow](d)(d.db.ListPushes(ctx, 1, 0, time.UnixMilli(0), 100)) {
		d.writeLine("push", "id", p.ID, "state", p.State, "title", p.Title)
	}
}

// WriteToCopy writes to a copy of the demo's database what a day's work writes:
// a delivery with a package, an event of its timeline and a webhook of it.
func WriteToCopy(t testing.TB, db *store.DB) {
	var id, shipment int64
	require.NoError(t, db.Decide(t.Context(), 0, func(v cloud.View) (_ *cloud.Changes, err error) {
		if id, err = v.NewID(cloud.DeliveryIDs); err != nil {
			return nil, err
		}
		shipment, err = v.NewID(cloud.ShipmentIDs)
		return &cloud.Changes{}, err
	}))
	x := cloud.Delivery{ID: cloud.DeliveryID(id), Number: fmt.Sprintf("LD-%09d", id), BusinessID: 1, ProviderID: 1, DeviceID: findCopyDevice(t, db).ID, Reference: "AFTER-1", Status: cloud.DeliveryCreated, CreatedAt: now,
		Packages: []cloud.Package{{TrackingNumber: "AFTER-PK-1", Size: "M", Status: cloud.PackageCreated}}}
	s := cloud.Shipment{ID: cloud.ShipmentID(shipment), BusinessID: 1, Number: "AFTER-PK-1", ProviderID: 1, DeliveryID: x.ID, Current: otep.InTransit, CreatedAt: now, LastAt: now}
	w := event(900_007, copyOrder)
	w.Event.BusinessID, w.Deliveries[0].BusinessID = 1, 1
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{x}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}, Events: []cloud.TimelineEvent{{ShipmentID: s.ID, BusinessID: 1, Event: scanAt(t, "after-1", "2026-11-20T18:12:00Z")}}}, OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{w}}})
	look(t, db, func(v cloud.View) {
		got, err := v.Delivery(x.ID)
		require.NoError(t, err)
		require.Equal(t, x.Number, got.Number)
		timeline, err := db.FindTimeline(t.Context(), "AFTER-PK-1", func(cloud.Shipment) bool { return true })
		events := timeline.Events
		require.NoError(t, err)
		require.Len(t, events, 1)
	})
	work, err := db.FindOutbox(t.Context(), w.Deliveries[0].ID)
	require.NoError(t, err)
	require.Equal(t, w.Event.Body, work.Event.Body)
}

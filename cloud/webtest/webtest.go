// Package webtest fills a store with two businesses, their people and what the
// HTTP faces show of them, for tests of those faces. Everything goes through
// the real store and the real rules.
package webtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Password is that of every account.
const Password = "correct horse battery"

// Tracking numbers of the world: one that waits in a locker, one that is only
// announced, one that was collected long ago.
const (
	Waiting   = "SWP100200300"
	Announced = "SWP100200301"
	Old       = "SWP000000001"
)

// Links makes the secrets of recipients' links.
var Links = cloud.LinkKey("links of the test's world")

// SandboxMessage is the id of the message in the inbox of the sandbox.
const SandboxMessage = "6J4GZC2QW7TLNDA3K5RYHXBV"

// PickupCode and DeliveryCode are those of the delivery that waits: no page and
// no public answer may hold them.
const (
	PickupCode   = "550618"
	DeliveryCode = "8306142"
	Secret       = "whk-secret-0123456789-abcdef-wxyz"
)

// World is a filled store with the services over it.
type World struct {
	DB      *store.DB
	Lockers *locker.Service
	Auth    *auth.Service

	Files *object.Files // of cabinets

	Business, Other cloud.Business
	Tokens          map[cloud.AccountType]string // of Business
	Emails          map[cloud.AccountType]string
	Stranger        string                       // token of the other business's provider
	OtherAdmin      string                       // token of the other business's administrator
	Others          map[cloud.AccountType]string // tokens of the other business, those two too
	Device, Spare   cloud.Device
	Delivery        cloud.Delivery // the one that waits
	Outbox          cloud.OutboxID // a webhook delivery of Business's provider
	Expired         string         // a token that is no longer good
}

// Passwords cost next to nothing in tests of the faces: what they cost people is
// tested by package auth.
func init() { auth.PersonCost = auth.Cost{MemoryKiB: 8, Passes: 1} }

// hashPassword is the hash of Password, made once.
var hashPassword = sync.OnceValue(func() string { return auth.HashPassword(Password) })

// New fills a fresh SQLite store.
func New(t testing.TB) *World { return NewOn(t, storetest.OpenSQLite(t)) }

// NewOn fills an empty store.
func NewOn(t testing.TB, db *store.DB) *World {
	files, err := object.Open(t.TempDir(), bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	w := &World{DB: db, Files: files, Auth: auth.New(db), Tokens: map[cloud.AccountType]string{}, Emails: map[cloud.AccountType]string{},
		Lockers: lockers(t, db, files)}
	db.OnCommit(w.Lockers.Committed)
	w.fill(t)
	for kind, highest := range map[cloud.IDKind]int64{cloud.AccountIDs: 30, cloud.ProviderIDs: 30, cloud.ShipmentIDs: 110, cloud.RolloutIDs: 10, cloud.DiagnosisIDs: 10} { // new ids start above those of the world
		for id := int64(0); id < highest; {
			var err error
			id, err = db.NewID(context.Background(), kind)
			require.NoError(t, err)
		}
	}
	return w
}

func lockers(t testing.TB, db *store.DB, files *object.Files) *locker.Service {
	return locker.New(locker.Config{Store: db, Programs: programs{}, Sealer: storetest.Box(t), Webhooks: webhook.New(db, nil), Passes: signer(t), Links: Links, Channels: []cloud.NotificationChannel{cloud.ByEmail, cloud.BySMS},
		Files: files, SignFile: files.Address, OpenFile: func(ctx context.Context, path string) (io.ReadCloser, int64, error) {
			f, err := files.Get(ctx, path)
			return f.ReadCloser, f.Size, err
		}})
}

// Diagnosed is a board view of the cabinet that is answered, as the row of its file says.
func (w *World) Diagnosed(t testing.TB, id cloud.DiagnosisID, device cloud.DeviceID, kind wire.CommandKind) (cloud.Diagnosis, cloud.KeptFile) {
	t.Helper()
	yes, ago := true, int64(120)
	board := diagnosis.Board{Name: "A", Line: "main", Family: "cu48", Address: 1, State: "online", Polls: 900, Silent: 2, AnsweredMS: &ago, Error: "no_answer", ErrorMS: &ago,
		Channels: []diagnosis.Channel{{Channel: 1, Door: 1, Switch: &yes, State: "closed", Edges: 4}, {Channel: 2, Door: 2, Switch: &yes, Item: &yes, State: "closed"}}}
	var answer any = diagnosis.Boards{At: time.Now().UTC(), Boards: []diagnosis.Board{board}}
	if kind == wire.CmdChannelTest {
		answer = diagnosis.Test{At: time.Now().UTC(), OpeningID: "op_1", Door: 2, Channel: 2, Result: diagnosis.Opened, Pulses: 1, DelayMS: &ago, Closed: true, OpenMS: &ago, Board: &board,
			Moves: []diagnosis.Move{{AfterMS: 120, Channel: 2, Bit: diagnosis.Switch}, {AfterMS: 130, Channel: 5, Bit: diagnosis.Switch, Set: true}}}
	}
	raw, err := diagnosis.Encode(answer)
	require.NoError(t, err)
	stored, err := w.Files.Put(context.Background(), "answer", bytes.NewReader(raw), diagnosis.MaxView, diagnosis.MIME)
	require.NoError(t, err)
	now := time.Now().UTC().Truncate(time.Millisecond)
	unique := fmt.Sprint("diagnosis-", id)
	d := cloud.Diagnosis{Kept: cloud.Kept[cloud.DiagnosisID]{ID: id, BusinessID: 42, CreatedAt: now.Add(-time.Minute), UpdatedAt: now}, DeviceID: device, Kind: kind, CommandID: unique, TokenHash: unique, RequestedBy: "Ana Admin",
		Reason: "Doors 3 and 4 do not answer", Until: now.Add(time.Hour), State: cloud.DiagnosisDone, Path: stored.Path, SizeBytes: stored.Size, Digest: unique, EndedAt: now}
	return d, cloud.KeptFile{Path: stored.Path, BusinessID: 42, At: now}
}

// signer signs QR codes of the world.
func signer(t testing.TB) *signed.Signer {
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	return s
}

// programs has one version of the agent.
type programs struct{}

func (programs) FindUpdate(_ context.Context, version, platform string, _ time.Time) (wire.Update, error) {
	if version != "1.4.0" || platform != "linux/arm64" {
		return wire.Update{}, cloud.ErrNotFound
	}
	return wire.Update{Version: version, URL: "/api/v1/devices/programs/x", Size: 1, Digest: []byte{1}, Signature: []byte{1}}, nil
}

// At is the same world at another node, whose store is db.
func (w *World) At(t testing.TB, db *store.DB) *World {
	there := *w
	there.DB, there.Auth = db, auth.New(db)
	there.Lockers = lockers(t, db, w.Files)
	db.OnCommit(there.Lockers.Committed)
	return &there
}

// FindToken is what both faces need.
func (w *World) FindToken(ctx context.Context, hash [32]byte) (auth.Session, error) {
	l, err := w.DB.FindToken(ctx, hash)
	return auth.Session{Token: l.Token, Account: l.Account, Provider: l.Provider, State: l.State, Pass: l.Pass}, err
}

// Deliveries lists a business's newest.
func (w *World) Deliveries(ctx context.Context, b cloud.BusinessID, limit int) ([]cloud.Delivery, error) {
	return w.DB.ListDeliveries(ctx, store.DeliveryFilter{BusinessID: b, Limit: limit})
}

// Write stores changes.
func (w *World) Write(t testing.TB, ch cloud.Changes) {
	require.NoError(t, w.DB.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil }))
}

func (w *World) fill(t testing.TB) {
	now := time.Now().UTC().Truncate(time.Second)
	box := storetest.Box(t)
	w.Business = cloud.Business{ID: 42, Code: "acme", Name: "Acme Logistics", Timezone: "America/Toronto", SupportPhone: "+1 416 555 0100", SupportEmail: "help@acme.example"}
	contractors := cloud.Settings{Features: []cloud.Feature{{Family: "contractor_assignment", Enabled: true}}}
	w.Business.Settings = contractors
	w.Other = cloud.Business{Settings: contractors, ID: 43, Code: "other", Name: "Other Freight", Timezone: "Europe/Berlin"}
	ch := cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{w.Business, w.Other},
		Providers: []cloud.Provider{
			{ID: 17, BusinessID: 42, Code: "swiftparcel", Name: "Swift Parcel", Services: []string{"locker", "third_party"}, LivemodeAllowed: true, CreatedAt: now},
			{ID: 18, BusinessID: 43, Code: "rival", Name: "Rival Post", Services: []string{"locker"}, CreatedAt: now}}}}
	hash := hashPassword()
	add := func(id int64, b cloud.BusinessID, typ cloud.AccountType, p cloud.ProviderID) string {
		token := auth.NewToken()
		a := cloud.Account{ID: cloud.AccountID(id), BusinessID: b, Type: typ, Name: string(typ), ProviderID: p, Enabled: true, CreatedAt: now}
		if typ != cloud.ProviderType {
			a.Email, a.PasswordHash = fmt.Sprintf("%s@%d.example", typ, b), hash
			if typ == cloud.Customer {
				a.ProveMail()
			}
			if b == 42 {
				w.Emails[typ] = a.Email
			}
		}
		ch.Accounts = append(ch.Accounts, a)
		ch.Tokens = append(ch.Tokens, cloud.Token{Hash: auth.Hash(token), AccountID: a.ID, Name: "test", CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		return token
	}
	for i, typ := range []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.PlatformAdmin} {
		w.Tokens[typ] = add(int64(i+1), 42, typ, 0)
		if typ == cloud.PlatformAdmin { // who belongs to no business
			ch.Accounts[len(ch.Accounts)-1].BusinessID = 0
		}
	}
	w.Tokens[cloud.ProviderType] = add(20, 42, cloud.ProviderType, 17)
	w.Stranger = add(21, 43, cloud.ProviderType, 18)
	w.OtherAdmin = add(23, 43, cloud.ClientAdmin, 0)
	w.Others = map[cloud.AccountType]string{cloud.ProviderType: w.Stranger, cloud.ClientAdmin: w.OtherAdmin}
	for i, typ := range []cloud.AccountType{cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer} {
		w.Others[typ] = add(int64(24+i), 43, typ, 0)
	}
	w.Expired = add(22, 42, cloud.ClientAdmin, 0)
	ch.Accounts[len(ch.Accounts)-1].Email = "former@42.example" // an email has one account
	ch.Tokens[len(ch.Tokens)-1].ExpiresAt = now.Add(-time.Minute)

	secrets := locker.CodeSecrets{Salt: make([]byte, 16), Key: make([]byte, 32), Params: wire.CodeParams{MemoryKiB: 64, Passes: 1}}
	device := func(id cloud.DeviceID, b cloud.BusinessID, code, name string) cloud.Device {
		return cloud.Device{ID: id, BusinessID: b, Code: code, Name: name, Type: "smart_locker", Address: "120 Front St W, Toronto ON M5J 2L7, CA", PostalCode: "M5J 2L7", Country: "CA",
			Latitude: 43.6446, Longitude: -79.3849, Timezone: "America/Toronto", Protocol: "mqtt", Livemode: true, CreatedAt: now, EnrolledAt: now,
			SealedCode: locker.SealSecrets(box, secrets)}
	}
	w.Device, w.Spare = device(88, 42, "TOR-FRONT-01", "Front St Lobby"), device(89, 42, "TOR-UNION-02", "Union Station East")
	w.Device.Public, w.Spare.Public = true, true
	ch.Devices = []cloud.Device{w.Device, w.Spare, device(90, 43, "BER-01", "Berlin Hauptbahnhof")}
	ch.Sessions = []cloud.Session{
		{DeviceID: 88, Generation: 1, Node: "test", Online: true, ConnectedAt: now.Add(-3 * time.Hour), LastSeenAt: now},
		{DeviceID: 89, Generation: 1, Node: "test", LastSeenAt: now.Add(-26 * time.Hour), ConnectedAt: now.Add(-50 * time.Hour)}}
	ch.Seen = append(ch.Seen, cloud.DeviceSeen{DeviceID: 88, Firmware: "v1.3.0", Program: &cloud.DeviceProgram{Platform: "linux/arm64", Updates: true}})
	sizes := []string{"S", "S", "M", "M", "L", "XL"}
	for _, d := range ch.Devices {
		for i := range 12 {
			n := i + 1
			c := cloud.Compartment{GridID: cloud.GridID(int(d.ID)*100 + n), DeviceID: d.ID, GridCode: fmt.Sprintf("A%02d", n), ShelfCode: "A", Door: uint(n), PickupNumber: n,
				Label: fmt.Sprintf("A-%d", n), Column: 1 + i/4, Row: 1 + i%4, Size: sizes[i%len(sizes)], PickupEnabled: true, DoorStatus: "closed", State: cloud.GridFree}
			switch {
			case d.ID == 88 && n == 3:
				c.State, c.DeliveryID = cloud.GridOccupied, 64021
			case d.ID == 88 && n == 6:
				c.State = cloud.GridReserved
			case d.ID == 88 && n == 7:
				c.DoorStatus = "open"
			case d.ID == 88 && n == 9:
				c.State, c.BlockReason = cloud.GridBlocked, "open_failed"
			case d.ID == 88 && n == 11:
				c.DoorStatus = "unknown"
			}
			ch.Compartments = append(ch.Compartments, c)
		}
	}
	w.Delivery = cloud.Delivery{ID: 64021, Number: "LD-000064021", BusinessID: 42, ProviderID: 17, DeviceID: 88, Reference: "SWP-REF-88", Status: cloud.DeliveryDelivered,
		Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+1 416 555 0123"}, DeliverBefore: now.Add(48 * time.Hour), CollectWithin: 72 * time.Hour,
		DueAt: now.Add(70 * time.Hour), PickupAssigned: true, PickupCodeActive: true, ConfirmedBy: wire.ByDoorClose, Livemode: true, RequestHash: []byte{1},
		SealedCodes: box.Seal("delivery-codes", fmt.Appendf(nil, `{"d":%q,"p":%q}`, DeliveryCode, PickupCode)),
		CreatedAt:   now.Add(-5 * time.Hour), DoorsOpenedAt: now.Add(-125 * time.Minute), DepositedAt: now.Add(-2 * time.Hour),
		Packages: []cloud.Package{{TrackingNumber: Waiting, GridID: 8803, Status: cloud.PackageInCompartment, Weight: 2.4, Size: "M"}}}
	announced := cloud.Delivery{ID: 64022, Number: "LD-000064022", BusinessID: 42, ProviderID: 17, DeviceID: 89, Courier: &cloud.Courier{Name: "Cy", Phone: "+1 416 555 0144"}, Reference: "SWP-REF-89", Status: cloud.DeliveryCreated,
		Recipient: cloud.Recipient{Name: "Ada Byron", Phone: "+1 416 555 0199"}, DeliverBefore: now.Add(48 * time.Hour), CollectWithin: 72 * time.Hour, RequestHash: []byte{2},
		SealedCodes: w.Delivery.SealedCodes, Livemode: true, CreatedAt: now.Add(-time.Hour), Packages: []cloud.Package{{TrackingNumber: Announced, Status: cloud.PackageCreated}}}
	ch.Deliveries = []cloud.Delivery{w.Delivery, announced}
	ch.Openings = []cloud.Opening{{ID: "op_0123456789abcdef01234567", BusinessID: 42, DeviceID: 88, Kind: wire.OpenStaff, State: cloud.OpeningRunning,
		Requester: cloud.Requester{Type: "console", ID: "1", Name: "Sam"}, Doors: []cloud.OpeningDoor{{Door: 7, GridID: 8807, Status: "open"}},
		RequestedAt: now.Add(-time.Minute), OpenedAt: now.Add(-time.Minute), EndsAt: now.Add(9 * time.Minute)}}
	ch.DeviceOrders = []cloud.DeviceOrder{{ID: 8301, BusinessID: 42, DeviceID: 88, GridCode: "A03", Kind: "locker_delivery", Status: "stored", NextActor: "recipient", DeliveryID: 64021, Tracking: Waiting,
		Reference: "SWP-REF-88", DueAt: w.Delivery.DueAt, StoredAt: w.Delivery.DepositedAt}}
	ch.Exceptions = []cloud.Exception{{ID: 7, BusinessID: 42, DeviceID: 88, GridCode: "A07", Source: "x1", Type: "door_left_open", Severity: "medium", Status: "open", OpenedAt: now.Add(-30 * time.Second)}}
	w.timelines(&ch, now)
	text := cloud.NotificationText{To: "+14165550123", Language: "en", Name: "Jane Smith", Business: "Acme Logistics", Parcel: &cloud.ParcelNotice{Numbers: []string{"SWP100200390"}, Code: "135790",
		Locker: "Test locker of Swift Parcel", Doors: []string{"A-1"}, Until: now.Add(70 * time.Hour)}}
	note := cloud.Notification{ID: "3KQ7ZC2QW7TLNDA3K5RYHXBV", BusinessID: 42, ProviderID: 17, DeliveryID: 64021, Channel: cloud.BySMS, Kind: cloud.NotifyParcelWaiting, At: now.Add(-2 * time.Hour), Until: now.Add(70 * time.Hour), NotificationText: text}
	test := note
	test.ID, test.DeliveryID, test.Sandbox = SandboxMessage, 64023, true
	ch.Notifications = []cloud.Notification{note, test}
	ch.Rows = append(ch.Rows, cloud.StaffCodeHolder{Kept: cloud.Kept[cloud.StaffCodeHolderID]{ID: 12, BusinessID: 42, CreatedAt: now, UpdatedAt: now}, AccountID: 2})
	seen, file := w.Diagnosed(t, 7, 88, wire.CmdBoardView)
	ch.Rows, ch.Files = append(ch.Rows, seen), append(ch.Files, file)
	ch.Rows = append(ch.Rows, cloud.Rollout{Kept: cloud.Kept[cloud.RolloutID]{ID: 7, BusinessID: 42, CreatedAt: now, UpdatedAt: now}, Version: "1.3.0", State: cloud.RolloutDone, Rings: 1, HealthySeconds: 3600, PatienceSeconds: 43200,
		Devices: []cloud.RolloutDevice{{DeviceID: 88, Before: "v1.2.0", State: cloud.RolloutHealthy, BegunAt: now, HealthyAt: now}}})
	ch.Rows = append(ch.Rows, cloud.Site{Kept: cloud.Kept[cloud.SiteID]{ID: 12, BusinessID: 42, CreatedAt: now, UpdatedAt: now}, Name: "Front St Lobby", Address: "120 Front St W, Toronto ON"},
		cloud.AnnouncedPackage{Kept: cloud.Kept[cloud.AnnouncedPackageID]{ID: 7781, BusinessID: 42, CreatedAt: now, UpdatedAt: now}, ProviderID: 17, CarrierReference: "SWP100200300", MemberNumber: "M-204",
			Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, SiteID: 12, Size: "M", Weight: 2.4, Status: cloud.PackageAnnounced, RequestHash: []byte{3}})
	ch.Endpoints = []cloud.Endpoint{{ID: 5, BusinessID: 42, ProviderID: 17, Kind: "locker_provider", URL: "https://hooks.example/postern", SandboxEnabled: true, Events: []string{"*"},
		Secret: []byte(Secret), Enabled: true, Status: "healthy", StatusSince: now, CreatedAt: now}}
	w.Outbox = 900
	ch.Outbox = []cloud.OutboxWrite{{Event: cloud.OutboxEvent{EventID: "PLE-810201", Event: "locker_delivery.delivered", BusinessID: 42, ProviderID: 17, Channel: cloud.ChannelLocker,
		ReferenceType: "locker_delivery", ReferenceID: w.Delivery.Number, OccurredAt: now.Add(-2 * time.Hour), CreatedAt: now.Add(-2 * time.Hour), Sequence: 4, Body: deliveredBody(t)},
		Deliveries: []cloud.OutboxDelivery{{ID: w.Outbox, EventID: "PLE-810201", EndpointID: 5, BusinessID: 42, WebhookID: "PLE-810201", State: cloud.OutboxSuccess, Attempts: 1, MaxAttempts: 8,
			CreatedAt: now.Add(-2 * time.Hour), DeliveredAt: now.Add(-2 * time.Hour)}}}}
	w.Write(t, ch)
}

// deliveredBody is the body of the webhook about the delivery, with its codes.
func deliveredBody(t testing.TB) []byte {
	for _, e := range locker.Events() {
		if e.Name != locker.EventDelivered {
			continue
		}
		var body map[string]any
		require.NoError(t, json.Unmarshal(e.Sample, &body))
		data := body["data"].(map[string]any)
		data["pickup_code"], data["delivery_code"] = PickupCode, DeliveryCode
		data["delivery"].(map[string]any)["recipient"].(map[string]any)["name"] = "J. Smith" // the world's recipient is on no page
		data["packages"].([]any)[0].(map[string]any)["tracking_number"] = Waiting
		out, err := json.Marshal(body)
		require.NoError(t, err)
		return out
	}
	t.Fatal("there is no sample")
	return nil
}

func (w *World) timelines(ch *cloud.Changes, now time.Time) {
	add := func(id cloud.ShipmentID, number string, d cloud.DeliveryID, codes map[otep.Code]time.Time) {
		sh := cloud.Shipment{ID: id, BusinessID: 42, Number: number, ProviderID: 17, DeliveryID: d, Profile: "parcel", CreatedAt: now}
		for _, code := range slices.Sorted(maps.Keys(codes)) { // rows are numbered alike in each world
			at := codes[code]
			e := otep.Event{OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: at.Add(time.Second)}, StatusCode: code, Source: &otep.Source{Type: "locker"}}
			switch code {
			case otep.AvailableForPickup:
				e.Location = &otep.Location{Name: "Front St Lobby", Type: "locker", City: "Toronto", Region: "ON", Country: "CA"}
			case otep.OutForDelivery:
				e.Location = &otep.Location{Name: "Jane's flat", Type: "address", Address: "9 Secret Lane", PostalCode: "M5V 2T6", City: "Toronto", Country: "CA"}
			}
			e.EventID = otep.ID(otep.Subject{TrackingNumber: number}, e)
			ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: id, BusinessID: 42, Event: e.Fill("parcel")})
		}
		ch.Shipments = append(ch.Shipments, sh)
	}
	add(1, Waiting, 64021, map[otep.Code]time.Time{otep.InformationSubmitted: now.Add(-5 * time.Hour), otep.OutForDelivery: now.Add(-3 * time.Hour), otep.AvailableForPickup: now.Add(-2 * time.Hour)})
	add(2, Announced, 64022, map[otep.Code]time.Time{otep.InformationSubmitted: now.Add(-time.Hour)})
	add(3, Old, 0, map[otep.Code]time.Time{otep.InformationSubmitted: now.AddDate(0, 0, -190), otep.Delivered: now.AddDate(0, 0, -181)})
}

// Server is what a face must offer to be served here.
type Server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

// Serve serves s in memory until the test ends and gives the listener to dial.
func Serve(t testing.TB, s Server) *fasthttputil.InmemoryListener {
	ln := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(sharedListener{ln}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.NoError(t, <-done)
	})
	return ln
}

// sharedListener accepts connections whose write deadline may be set while
// another goroutine writes, as that of a socket may. An in-memory connection
// by itself does not allow it.
type sharedListener struct{ *fasthttputil.InmemoryListener }

func (l sharedListener) Accept() (net.Conn, error) {
	c, err := l.InmemoryListener.Accept()
	if err != nil {
		return nil, err
	}
	return &sharedConn{Conn: c}, nil
}

// sharedConn lets one goroutine at a time write or set a deadline. A deadline
// set during a write holds from the next one on.
type sharedConn struct {
	net.Conn
	mu sync.Mutex // guards writing of Conn
}

func (c *sharedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *sharedConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

func (c *sharedConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

// Client is a client of an in-memory listener that keeps no connection.
func Client(ln *fasthttputil.InmemoryListener) *fasthttp.Client {
	return &fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }, DisablePathNormalizing: true, NoDefaultUserAgentHeader: true}
}

// Stored adds a delivery that waits in compartment A04 of the spare cabinet, with a device order
// of the same id. ref is its reference and its tracking number.
func (w *World) Stored(t testing.TB, id cloud.DeliveryID, ref string) cloud.DeviceOrderID {
	d := w.Delivery
	d.ID, d.Number, d.Reference, d.DeviceID = id, fmt.Sprintf("LD-%09d", id), ref, w.Spare.ID
	d.Packages = []cloud.Package{{TrackingNumber: ref, GridID: 8904, Status: cloud.PackageInCompartment}}
	o := cloud.DeviceOrder{ID: cloud.DeviceOrderID(id), BusinessID: d.BusinessID, DeviceID: d.DeviceID, GridCode: "A04", Kind: "locker_delivery", Status: "stored", NextActor: "recipient",
		DeliveryID: id, Tracking: ref, Reference: ref, DueAt: d.DueAt, StoredAt: d.DepositedAt}
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}, DeviceOrders: []cloud.DeviceOrder{o}}})
	return o.ID
}

// Package storetest is the conformance suite of the store: the same tests run
// over every database that it works with.
package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Box is a sealing box for tests.
func Box(t testing.TB) *seal.Box {
	b, err := seal.New(bytes.Repeat([]byte{42}, seal.KeySize))
	require.NoError(t, err)
	return b
}

// OpenSQLite opens a fresh SQLite store that is closed with the test.
func OpenSQLite(t testing.TB) *store.DB {
	return Open(t, store.Config{Dir: MigratedDir(t), Instance: "test", Box: Box(t)})
}

// MigratedDir is a data folder of the test, as WriteMigrated leaves it.
func MigratedDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	WriteMigrated(t, dir)
	return dir
}

// WriteMigrated writes an empty SQLite database of this version to a data folder
// that has none, and makes the folder: making the tables is most of what a store
// does when it is opened for the first time.
func WriteMigrated(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	b, err := migrated()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "postern.db"), b, 0o600))
}

// migrated is the bytes of that database, made once for all tests of a process.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "postern")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		return nil, err
	}
	db, err := store.Open(context.Background(), store.Config{Dir: dir, Box: box, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // leaves one file
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "postern.db"))
})

// Open opens a store that is closed with the test.
func Open(t testing.TB, cfg store.Config) *store.DB {
	db, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// PostgresURL makes an empty schema of its own for the test, dropped with it, and
// skips the test when no server is given.
func PostgresURL(t testing.TB) string {
	base := ring.Postgres(t)
	schema := "t" + randomName()
	runPostgres(t, base, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { runPostgres(t, base, "DROP SCHEMA "+schema+" CASCADE") })
	return pooled(base, "", schema)
}

// MigratedPostgresURL makes a database of its own for the test that holds the
// tables of this version and no rows, dropped with it, and skips the test when no
// server is given. It is a copy of a template that the first caller makes and
// later runs use again: a tenth of what making the tables costs.
func MigratedPostgresURL(t testing.TB) string {
	base := ring.Postgres(t)
	template, err := postgresTemplate()
	require.NoError(t, err)
	name := "postern_t" + randomName()
	runPostgres(t, base, "CREATE DATABASE "+name+" TEMPLATE "+template)
	t.Cleanup(func() { runPostgres(t, base, "DROP DATABASE "+name+" WITH (FORCE)") })
	return pooled(base, name, "")
}

// postgresTemplate finds or makes the database that tests copy and gives its
// name. One process of several makes it; connections to it are refused, as a
// database that is used cannot be copied.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	name := "postern_template_" + store.Schema()
	return name, makeTemplate(os.Getenv(ring.EnvPostgres), name)
})

func makeTemplate(base, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, base)
	if err != nil {
		return err
	}
	defer c.Close(ctx) // ends the lock
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name); err != nil {
		return err
	}
	var ready bool
	if err := c.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_database WHERE datname = $1 AND NOT datallowconn", name).Scan(&ready); err != nil || ready {
		return err
	}
	if _, err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil { // of a process that ended half-way
		return err
	}
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Config{URL: pooled(base, name, ""), Box: box, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
	return err
}

func randomName() string {
	var random [8]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// pooled is the address with another database, where one is named, or another
// search path, and a small pool.
func pooled(base, database, schema string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // it was connected to
	}
	if database != "" {
		u.Path = "/" + database
	}
	q := u.Query()
	if schema != "" {
		q.Set("search_path", schema)
	}
	q.Set("pool_max_conns", "6")
	u.RawQuery = q.Encode()
	return u.String()
}

func runPostgres(t testing.TB, base, sql string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, base)
	require.NoError(t, err)
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	require.NoError(t, err)
}

// OpenPostgres opens a store in a database of its own, as MigratedPostgresURL.
func OpenPostgres(t testing.TB) *store.DB {
	return Open(t, store.Config{URL: MigratedPostgresURL(t), Instance: "test", Box: Box(t)})
}

// SecondPostgresURL is MigratedPostgresURL for a test that runs on SQLite as well: in the
// quick ring one database is enough for it, and it is skipped. The suite of this
// package, and what only PostgreSQL can show, ask for PostgreSQL itself.
func SecondPostgresURL(t testing.TB) string {
	t.Helper()
	ring.SkipUnlessFull(t, "there this test runs on SQLite only")
	return MigratedPostgresURL(t)
}

// OpenSecondPostgres opens a store as OpenPostgres, as SecondPostgresURL.
func OpenSecondPostgres(t testing.TB) *store.DB {
	return Open(t, store.Config{URL: SecondPostgresURL(t), Instance: "test", Box: Box(t)})
}

// Run runs the suite. open gives a fresh store for each test.
func Run(t *testing.T, open func(t *testing.T) *store.DB) {
	for name, test := range map[string]func(*testing.T, *store.DB){
		"ChangesAgainstModel":      changesAgainstModel,
		"NothingOfAFailedDecision": nothingOfAFailedDecision,
		"FailingAmongGood":         failingAmongGood,
		"Conditions":               conditions,
		"NaturalKeys":              naturalKeys,
		"MissingRows":              missingRows,
		"DeviceSerialises":         deviceSerialises,
		"ShipmentSerialises":       shipmentSerialises,
		"CommitOrder":              commitOrder,
		"JournalAndGaps":           journalAndGaps,
		"AsidesAreBounded":         asidesAreBounded,
		"Crowd":                    crowd,
		"DeviceSeen":               deviceSeen,
		"DeviceFaults":             deviceFaults,
		"Epochs":                   epochs,
		"Codes":                    codes,
		"StaffCodes":               staffCodes,
		"Timeline":                 timeline,
		"Withdrawn":                withdrawn,
		"Subjects":                 subjects,
		"Observations":             observations,
		"EventPages":               eventPages,
		"Accounts":                 accounts,
		"AccountPages":             accountPages,
		"OAuthGrants":              oauthGrants,
		"OAuthLeftovers":           oauthLeftovers,
		"Lists":                    lists,
		"DueDeliveries":            dueDeliveries,
		"Pushes":                   pushes,
		"Notifications":            notifications,
		"Identities":               identities,
		"Rows":                     rows,
		"WorkItems":                workItems,
		"WorkMarks":                workMarks,
		"LiveSince":                liveSince,
		"ManyPushes":               manyPushes,
		"OperationsAfter":          operationsAfter,
		"PushCollapse":             pushCollapse,
		"PushTokens":               pushTokens,
		"Orders":                   orders,
		"OrderKeys":                orderKeys,
		"Assignments":              assignments,
		"ThirdParties":             thirdParties,
		"OrderLists":               orderLists,
		"OrderPages":               orderPages,
		"OrderShipments":           orderShipments,
		"OrderSearch":              orderSearch,
		"DroppedOrders":            droppedOrders,
		"Jobs":                     jobs,
		"Interceptions":            interceptions,
		"Routes":                   routes,
		"Drivers":                  drivers,
		"Concerns":                 concerns,
		"LiveEvents":               live,
		"Chats":                    chats,
		"ChatUpkeep":               chatUpkeep,
		"ProofGuesses":             proofGuesses,
		"FormerNumbers":            formerNumbers,
		"ParcelLinks":              parcelLinks,
		"Approvals":                approvals,
		"ApprovalSerialises":       approvalSerialises,
		"KeptFiles":                keptFiles,
		"IDs":                      ids,
		"OutboxLifecycle":          outboxLifecycle,
		"OutboxLog":                outboxLog,
		"PausedDeliveries":         pausedDeliveries,
		"SentByTheirWriter":        sentByTheirWriter,
		"EndpointHealth":           endpointHealth,
		"PruneOutbox":              pruneOutbox,
		"ReplayJobs":               replayJobs,
		"WebhookSettings":          webhookSettings,
		"AccountLog":               accountLog,
		"BusinessLog":              businessLog,
		"StatesAsShown":            statesAsShown,
		"JobRowsInView":            jobRowsInView,
		"JobSteps":                 jobSteps,
		"LookIsReadOnlySnapshot":   lookIsSnapshot,
		"PanicIsAnError":           panicIsAnError,
		"Nodes":                    nodes,
		"Slots":                    slots,
		"Traces":                   traces,
		"CallsOnce":                callsOnce,
		"ExpectedChanges":          expectedChanges,
		"Budgets":                  budgets,
		"CallsAtOnce":              callsAtOnce,
		"CallsAreAudited":          callsAreAudited,
		"Cabinets":                 cabinets,
		"Feed":                     feed,
		"Search":                   searches,
		"DoorHistory":              doorHistory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Now is a fixed moment for tests.
var now = time.Date(2026, 11, 20, 18, 12, 0, 123_000_000, time.UTC)

var errNo = errors.New("decided against it")

func write(t testing.TB, db *store.DB, dev cloud.DeviceID, c *cloud.Changes) {
	t.Helper()
	require.NoError(t, db.Decide(t.Context(), dev, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
}

func look(t testing.TB, db *store.DB, fn func(cloud.View)) {
	t.Helper()
	require.NoError(t, db.Look(t.Context(), func(v cloud.View) error { fn(v); return nil }))
}

func device(id cloud.DeviceID) cloud.Device {
	return cloud.Device{ID: id, BusinessID: 1, Code: fmt.Sprintf("CAB-%d", id), Type: "smart_locker", CreatedAt: now}
}

func epoch(n byte) wire.Epoch { return wire.Epoch{0: n, 15: 1} }

func lane(dev cloud.DeviceID, next uint64) cloud.LaneState {
	return cloud.LaneState{DeviceID: dev, Epoch: epoch(1), Lane: wire.Settlement, Next: next, Head: wire.Head{1, 2}}
}

func nothingOfAFailedDecision(t *testing.T, db *store.DB) {
	err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}}}}, errNo
	})
	require.Same(t, errNo, err, "the error comes as it is")
	look(t, db, func(v cloud.View) {
		_, err := v.Business(1)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return nil, nil }))
}

// failingAmongGood holds the writer with one decision while others queue up
// behind it, so that SQLite commits them as one group.
func failingAmongGood(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}},
		LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{
			{ID: 1, Number: "LD-1", ProviderID: 1, Reference: "taken"}}}})
	const n = 60
	var wg sync.WaitGroup
	begun, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	wg.Go(func() {
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			once.Do(func() { close(begun) })
			<-hold
			return nil, nil
		}))
	})
	<-begun
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			id := int64(100 + i)
			c := &cloud.Changes{
				AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: cloud.BusinessID(id), Code: fmt.Sprint(id)}}},
				LockerChanges:  cloud.LockerChanges{Deliveries: []cloud.Delivery{{ID: cloud.DeliveryID(id), Number: fmt.Sprint("LD-", id), ProviderID: 1, Reference: fmt.Sprint(id)}}},
			}
			switch i % 5 {
			case 1:
				c.Deliveries[0].Reference = "taken" // after the business was written
			case 2:
				c.Seen = []cloud.DeviceSeen{{DeviceID: 77, LastSeenAt: now}}
			case 3:
				c.Lanes = []cloud.LaneMove{{From: 9, To: lane(1, 10)}}
			}
			errs[i] = db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil })
		})
	}
	close(hold)
	wg.Wait()
	look(t, db, func(v cloud.View) {
		for i, err := range errs {
			want := []error{nil, cloud.ErrExists, cloud.ErrNotFound, cloud.ErrStale, nil}[i%5]
			_, stored := v.Business(cloud.BusinessID(100 + i))
			if want == nil {
				require.NoError(t, err)
				require.NoError(t, stored)
				continue
			}
			require.ErrorIs(t, err, want)
			require.ErrorIs(t, stored, cloud.ErrNotFound, "change %d left something behind", i)
		}
	})
}

func conditions(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}, Sessions: []cloud.Session{{DeviceID: 1, Generation: 5}}}})
	try := func(c *cloud.Changes) error {
		c.Businesses = []cloud.Business{{ID: 9, Code: "mark"}}
		return db.Decide(t.Context(), 1, func(cloud.View) (*cloud.Changes, error) { return c, nil })
	}
	marked := func() (found bool) {
		look(t, db, func(v cloud.View) { _, err := v.Business(9); found = err == nil })
		return found
	}
	require.ErrorIs(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: 4}}), cloud.ErrStale)
	require.ErrorIs(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Lanes: []cloud.LaneMove{{From: 3, To: lane(1, 4)}}}}), cloud.ErrStale, "no row yet")
	require.False(t, marked())
	require.NoError(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: 5, Lanes: []cloud.LaneMove{{To: lane(1, 4)}}}}))
	require.True(t, marked())
	require.ErrorIs(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Lanes: []cloud.LaneMove{{To: lane(1, 4)}}}}), cloud.ErrStale, "a row is there")
	require.ErrorIs(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Lanes: []cloud.LaneMove{{From: 5, To: lane(1, 6)}}}}), cloud.ErrStale)
	other := lane(1, 2)
	other.Lane = wire.Telemetry
	require.ErrorIs(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Lanes: []cloud.LaneMove{{To: other}, {From: 5, To: lane(1, 6)}}}}), cloud.ErrStale)
	look(t, db, func(v cloud.View) {
		got, err := v.Lane(1, epoch(1), wire.Settlement)
		require.NoError(t, err)
		require.Equal(t, lane(1, 4), got)
		_, err = v.Lane(1, epoch(1), wire.Telemetry)
		require.ErrorIs(t, err, cloud.ErrNotFound, "half of the lanes moved")
	})
	require.NoError(t, try(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Lanes: []cloud.LaneMove{{From: 4, To: lane(1, 9)}}}}))
	require.Error(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: 5}, AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 10}}}}, nil
	}), "a generation belongs to a device")
}

func naturalKeys(t *testing.T, db *store.DB) {
	first := &cloud.Changes{
		AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "b"}},
			Providers: []cloud.Provider{{ID: 1, BusinessID: 1, Code: "p"}},
			Accounts:  []cloud.Account{{ID: 1, Email: "A@x.example"}, {ID: 2}, {ID: 3}},
			Tokens:    []cloud.Token{{Hash: [32]byte{1}, ID: 1}, {Hash: [32]byte{3}}, {Hash: [32]byte{4}}}},
		DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}, Batches: []cloud.JournalBatch{{DeviceID: 1, Epoch: epoch(1), First: 1, Count: 1, Bytes: []byte{1}}}},
		LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{{GridID: 1, DeviceID: 1, Door: 1}},
			Deliveries: []cloud.Delivery{{ID: 1, Number: "n", ProviderID: 1, Reference: "r"}, {ID: 2, Number: "n2"}, {ID: 3, Number: "n3"}},
			Exceptions: []cloud.Exception{{ID: 1, DeviceID: 1, Source: "s"}}},
		TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, Number: "swp1"}}},
		OutboxChanges:   cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: cloud.OutboxEvent{EventID: "PLE-1"}, Deliveries: []cloud.OutboxDelivery{{ID: 1, CreatedAt: now}}}}},
	}
	write(t, db, 0, first)
	for name, c := range map[string]*cloud.Changes{
		"business":  {AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 2, Code: "b"}}}},
		"provider":  {AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{{ID: 2, BusinessID: 1, Code: "p"}}}},
		"email":     {AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: 9, Email: "a@X.example"}}}},
		"token":     {AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: [32]byte{2}, ID: 1}}}},
		"device":    {DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 2, Code: "CAB-1"}}}},
		"door":      {LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{{GridID: 2, DeviceID: 1, Door: 1}}}},
		"number":    {LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{{ID: 9, Number: "n"}}}},
		"reference": {LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{{ID: 9, Number: "n9", ProviderID: 1, Reference: "r"}}}},
		"exception": {LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: 2, DeviceID: 1, Source: "s"}}}},
		"shipment":  {TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 2, Number: "SWP1"}}}},
		"batch":     {DeviceChanges: cloud.DeviceChanges{Batches: first.Batches}},
		"event":     {OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: cloud.OutboxEvent{EventID: "PLE-1"}, Deliveries: []cloud.OutboxDelivery{{ID: 2, CreatedAt: now}}}}}},
	} {
		err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil })
		require.ErrorIs(t, err, cloud.ErrExists, name)
	}
	first.Batches, first.Outbox = nil, nil
	write(t, db, 0, first) // known ids are replaced
}

func missingRows(t *testing.T, db *store.DB) {
	look(t, db, func(v cloud.View) {
		for name, err := range map[string]error{
			"business": second(v.Business(1)), "account": second(v.Account(1)), "provider": second(v.Provider(1)), "device": second(v.Device(1)),
			"session": second(v.Session(1)), "current epoch": second(v.CurrentEpoch(1)), "epoch": second(v.FindEpoch(epoch(1))),
			"lane": second(v.Lane(1, epoch(1), 0)), "compartment": second(v.Compartment(1, 1)), "delivery": second(v.Delivery(1)),
			"number": second(v.DeliveryByNumber("")), "reference": second(v.DeliveryByReference(0, "")),
			"opening": second(v.Opening("")), "command": second(v.Command("")), "source": second(v.ExceptionBySource(1, "")),
			"shipment": second(v.ShipmentByNumber("")),
		} {
			require.ErrorIs(t, err, cloud.ErrNotFound, name)
		}
		es, err := v.Timeline(1)
		require.NoError(t, err)
		require.Empty(t, es)
	})
	for name, c := range map[string]*cloud.Changes{
		"seen": {DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, Firmware: "1"}}}},
		"door": {LockerChanges: cloud.LockerChanges{Doors: []cloud.DoorPresent{{DeviceID: 1, Door: 1}}}},
	} {
		err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil })
		require.ErrorIs(t, err, cloud.ErrNotFound, name)
	}
}

func second[T any](_ T, err error) error { return err }

// deviceSerialises counts with read-modify-write decisions about one device.
func deviceSerialises(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}, Sessions: []cloud.Session{{DeviceID: 1}}}})
	const workers, each = 8, 12
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				require.NoError(t, db.Decide(t.Context(), 1, func(v cloud.View) (*cloud.Changes, error) {
					s, err := v.Session(1)
					s.Generation++
					return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{s}}}, err
				}))
			}
		})
	}
	wg.Wait()
	look(t, db, func(v cloud.View) {
		s, err := v.Session(1)
		require.NoError(t, err)
		require.EqualValues(t, workers*each, s.Generation)
	})
}

// shipmentSerialises folds one timeline from decisions about different devices
// and about none.
func shipmentSerialises(t *testing.T, db *store.DB) {
	c := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, Number: "SWP-1"}}}}
	for id := range cloud.DeviceID(4) {
		c.Devices = append(c.Devices, device(id+1))
	}
	write(t, db, 0, c)
	const each = 10
	var wg sync.WaitGroup
	for dev := range cloud.DeviceID(4) { // device 0 is none
		wg.Go(func() {
			for i := range each {
				require.NoError(t, db.Decide(t.Context(), dev, func(v cloud.View) (*cloud.Changes, error) {
					s, err := v.ShipmentByNumber("swp-1")
					if err != nil {
						return nil, err
					}
					es, err := v.Timeline(s.ID)
					s.Current = otep.Code(fmt.Sprint(len(es) + 1))
					e := otep.Event{EventID: fmt.Sprintf("%d-%d", dev, i), OccurredAt: otep.Time{Time: now}}
					return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}, Events: []cloud.TimelineEvent{{ShipmentID: 1, Event: e}}}}, err
				}))
			}
		})
	}
	wg.Wait()
	timeline, err := db.FindTimeline(t.Context(), "SWP-1", nil)
	s, es := timeline.Shipment, timeline.Events
	require.NoError(t, err)
	require.Len(t, es, 4*each)
	require.EqualValues(t, fmt.Sprint(4*each), s.Current)
}

// commitOrder checks that each device's changes reach OnCommit in the order of their
// commits, after the commit, and before Decide returns.
func commitOrder(t *testing.T, db *store.DB) {
	var mu sync.Mutex
	told := map[cloud.DeviceID][]int64{}
	db.OnCommit(func(c *cloud.Changes) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range c.Sessions {
			told[s.DeviceID] = append(told[s.DeviceID], s.Generation)
		}
	})
	var wg sync.WaitGroup
	for id := cloud.DeviceID(1); id <= 3; id++ {
		write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(id)}, Sessions: []cloud.Session{{DeviceID: id}}}})
		for range 4 {
			wg.Go(func() {
				for range 8 {
					var mine int64
					require.NoError(t, db.Decide(t.Context(), id, func(v cloud.View) (*cloud.Changes, error) {
						s, err := v.Session(id)
						s.Generation++
						mine = s.Generation
						return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{s}}}, err
					}))
					mu.Lock()
					require.True(t, slices.Contains(told[id], mine), "Decide returned before it was told")
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	err := db.Decide(t.Context(), 1, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 1, Generation: 1000}}, Generation: 999}}, nil
	})
	require.ErrorIs(t, err, cloud.ErrStale)
	for id, got := range told {
		want := make([]int64, 33)
		for i := range want {
			want[i] = int64(i)
		}
		require.Equal(t, want, got, "device %d", id)
	}
}

func journalAndGaps(t *testing.T, db *store.DB) {
	batch := func(first uint64, count int, aside string) cloud.JournalBatch {
		return cloud.JournalBatch{DeviceID: 1, Epoch: epoch(1), Lane: wire.Telemetry, First: first, Count: count,
			Bytes: []byte(fmt.Sprint(first)), Head: wire.Head{byte(first)}, ReceivedAt: now, Aside: aside}
	}
	bs := []cloud.JournalBatch{batch(1, 10, ""), batch(11, 5, ""), batch(11, 5, "fork"), batch(11, 5, "fork"), batch(20, 4, "")}
	gap := cloud.GapRange{DeviceID: 1, Epoch: epoch(1), Lane: wire.Telemetry, First: 16, Last: 19, Reason: "evicted", Missing: 4}
	open := cloud.GapRange{DeviceID: 1, Epoch: epoch(1), Lane: wire.Telemetry, First: 24, Reason: "damaged", Head: wire.Head{9}}
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}, Batches: bs, Gaps: []cloud.GapRange{gap, open}}})
	look(t, db, func(v cloud.View) {
		f := func(first, last uint64, want ...cloud.JournalBatch) {
			t.Helper()
			got, err := v.Journal(1, epoch(1), wire.Telemetry, first, last)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		f(1, 1, bs[0])
		f(10, 11, bs[0], bs[1])
		f(15, 20, bs[1], bs[4])
		f(16, 19)
		f(1, 100, bs[0], bs[1], bs[4])
		f(24, 100)
		g := func(from uint64, want ...cloud.GapRange) {
			t.Helper()
			got, err := v.Gaps(1, epoch(1), wire.Telemetry, from)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		g(0, gap, open)
		g(19, gap, open)
		g(20, open)
	})
	s, err := db.JournalStats(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, store.Stats{Records: 19, Batches: 3, Missing: 4, Gaps: 2}, s)
	var seen []cloud.JournalBatch
	for n := int64(0); ; {
		page, err := db.JournalAfter(t.Context(), n, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, j := range page {
			require.Greater(t, j.N, n)
			n, seen = j.N, append(seen, j.JournalBatch)
		}
	}
	require.Equal(t, bs, seen)
	asides, err := db.ListAsides(t.Context(), 1, 0, 10)
	require.NoError(t, err)
	require.Len(t, asides, 2)
	gap.Missing = 1 // a late batch filled three
	write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Gaps: []cloud.GapRange{gap}}})
	s, err = db.JournalStats(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Missing)
}

func deviceSeen(t *testing.T, db *store.DB) {
	d := device(1)
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	held, generation, locked := uint64(7), uint64(2), now.Add(time.Hour)
	write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, LastSeenAt: now, Applied: 3, CodesHeld: &held,
		HeldGeneration: &generation, TypedLocked: &locked, Firmware: "1.2", StatusAt: now, StatusEnds: &[2]uint64{5, 6}, StatusEpoch: epoch(1)}}}})
	write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, LastPlaced: now.Add(time.Second)}}}})
	d.Name = "lobby" // writing the device leaves what it last said
	write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	d.LastSeenAt, d.LastPlaced, d.Applied, d.CodesHeld, d.Firmware = now, now.Add(time.Second), 3, 7, "1.2"
	d.StatusAt, d.StatusEnds, d.StatusEpoch = now, [2]uint64{5, 6}, epoch(1)
	d.HeldGeneration, d.TypedLocked = 2, locked
	look(t, db, func(v cloud.View) {
		got, err := v.Device(1)
		require.NoError(t, err)
		require.Equal(t, d, got)
	})
	none := uint64(0)
	write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, CodesHeld: &none, TypedLocked: &time.Time{}}}}})
	got, err := db.FindDeviceByCode(t.Context(), "CAB-1")
	require.NoError(t, err)
	require.Zero(t, got.CodesHeld)
	require.Zero(t, got.TypedLocked)
	require.EqualValues(t, 2, got.HeldGeneration)
}

func deviceFaults(t *testing.T, db *store.DB) {
	f := cloud.DeviceException{DeviceID: 1, Type: cloud.DevBadBatch, Detail: "a", OpenedAt: now, SeenAt: now}
	again := f
	again.Detail, again.SeenAt, again.OpenedAt = "b", now.Add(time.Second), now.Add(time.Second)
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{f, again}}})
	got, err := db.ListDeviceExceptions(t.Context(), 1, 10)
	require.NoError(t, err)
	want := f
	want.Detail, want.Count, want.SeenAt = "b", 2, again.SeenAt
	require.Equal(t, []cloud.DeviceException{want}, got)
	end := f
	end.ClosedAt = now.Add(time.Hour)
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{end}}})
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{f}}})
	got, err = db.ListDeviceExceptions(t.Context(), 1, 10)
	require.NoError(t, err)
	require.Len(t, got, 2, "a closed one is not counted up")
	require.Equal(t, end.ClosedAt, got[1].ClosedAt)

	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1), device(2)}}})
	locked := cloud.DeviceException{DeviceID: 2, Type: cloud.DevKeypadLocked, OpenedAt: now, SeenAt: now}
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{locked}}})
	open := got[0]
	locked.Count = 1
	look(t, db, func(v cloud.View) {
		rows, err := v.DeviceExceptions(1)
		require.NoError(t, err)
		require.Equal(t, []cloud.DeviceException{open}, rows, "open ones of this device")
	})
	counts, err := db.CountDeviceExceptions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []store.FaultCount{{Type: cloud.DevBadBatch, Count: 1}, {Type: cloud.DevKeypadLocked, Count: 1}}, counts)
}

func epochs(t *testing.T, db *store.DB) {
	a := cloud.Epoch{DeviceID: 1, Epoch: epoch(1), Current: true, OpenedAt: now}
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Epochs: []cloud.Epoch{a}}})
	b := cloud.Epoch{DeviceID: 1, Epoch: epoch(2), Prev: epoch(1), Current: true, OpenedAt: now.Add(time.Hour)}
	old := a
	old.Current, old.ClosedAt = false, b.OpenedAt
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Epochs: []cloud.Epoch{b, old}}}) // in either order
	look(t, db, func(v cloud.View) {
		got, err := v.CurrentEpoch(1)
		require.NoError(t, err)
		require.Equal(t, b, got)
		for at, want := range map[time.Time]int{now: 2, now.Add(time.Minute): 1, now.Add(2 * time.Hour): 0} {
			n, err := v.EpochsSince(1, at, 10)
			require.NoError(t, err)
			require.Equal(t, want, n)
			n, err = v.EpochsSince(1, at, 1)
			require.NoError(t, err)
			require.Equal(t, min(want, 1), n)
		}
		got, err = v.FindEpoch(epoch(1))
		require.NoError(t, err)
		require.Equal(t, old, got)
	})
}

func codes(t *testing.T, db *store.DB) {
	row := func(n uint64) cloud.CodeRow {
		return cloud.CodeRow{DeviceID: 1, DeliveryID: 5, CreatedAt: now, Entry: wire.CodeEntry{Number: n, Op: wire.CodeSet,
			Kind: wire.CodePickup, Verifier: bytes.Repeat([]byte{byte(n)}, 32), Packages: map[uint][]string{3: {"a"}}}}
	}
	a, b, c := row(1), row(2), row(3)
	a.DroppedAt = now
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{Codes: []cloud.CodeRow{a, b, c}}})
	look(t, db, func(v cloud.View) {
		f := func(from uint64, limit int, want ...cloud.CodeRow) {
			t.Helper()
			got, err := v.CodeRows(1, from, limit)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		f(0, 10, b, c)
		f(0, 1, b)
		f(1, 10, b, c)
		f(3, 10)
		got, err := v.DeliveryCodes(5)
		require.NoError(t, err)
		require.Equal(t, []cloud.CodeRow{a, b, c}, got)
	})
	b.DroppedAt = now
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{Codes: []cloud.CodeRow{b}}})
	look(t, db, func(v cloud.View) {
		got, err := v.CodeRows(1, 1, 10)
		require.NoError(t, err)
		require.Equal(t, []cloud.CodeRow{b, c}, got, "pieces hold dropped ones too")
	})
}

func timeline(t *testing.T, db *store.DB) {
	at, err := otep.ParseTime("2026-11-20T18:12:00.123456789-05:00")
	require.NoError(t, err)
	e := otep.Event{EventID: "e1", Version: otep.Version, OccurredAt: at, RecordedAt: at, StatusCode: "x-available_for_pickup",
		Phase: "delivery", Location: &otep.Location{Name: "包裹 <42>"}, Extensions: map[string]any{"k": "v"}}
	s := cloud.Shipment{ID: 1, BusinessID: 1, Number: "Swp1", DeliveryID: 4, LinkFrom: 3, CreatedAt: now}
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}, Events: []cloud.TimelineEvent{{ShipmentID: 1, BusinessID: 1, Event: e}}}})
	changed := e
	changed.Message = "rewritten"
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{ShipmentID: 1, BusinessID: 1, Event: changed}}}})
	look(t, db, func(v cloud.View) {
		for after, want := range map[time.Time]bool{{}: true, at.Add(-time.Second): true, at.Time: false} {
			later, err := v.HasEventsAfter(1, after)
			require.NoError(t, err)
			require.Equal(t, want, later, after)
		}
		later, err := v.HasEventsAfter(2, time.Time{})
		require.NoError(t, err)
		require.False(t, later)
	})
	timeline, err := db.FindTimeline(t.Context(), "sWP1", nil)
	got, es := timeline.Shipment, timeline.Events
	require.NoError(t, err)
	require.Equal(t, s, got)
	require.Len(t, es, 1, "a known event is left as it is")
	require.Equal(t, at.String(), es[0].Event.OccurredAt.String(), "times come back as they were given")
	es[0].Event.OccurredAt, es[0].Event.RecordedAt = at, at
	require.Equal(t, e, es[0].Event)
	of, err := db.ListDeliveryShipments(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, []cloud.Shipment{s}, of)
}

func accounts(t *testing.T, db *store.DB) {
	p := cloud.Provider{ID: 17, BusinessID: 42, Code: "swift", Name: "Swift", Services: []string{"locker"}, LivemodeAllowed: true, SourceType: "carrier", Authority: "reports", Scope: cloud.ScopeAll, CreatedAt: now}
	a := cloud.Account{ID: 12, BusinessID: 42, Type: cloud.ProviderType, Email: "ops@swift.example", ProviderID: 17, Enabled: true, CreatedAt: now, PriceHidden: []string{"label"}}
	tok := cloud.Token{Hash: [32]byte{1}, AccountID: 12, Name: "ci", CreatedAt: now, ID: 5, Scopes: []string{"orders:read"}, Profile: "support", IPAllowlist: []string{"192.0.2.0/24"},
		Policy: cloud.KeyPolicy{Approval: cloud.AskHigh, DryRunOnly: true, Surfaces: []string{"mcp"}, WritesPerDay: 5, MoneyPerDay: 1250}}
	e := cloud.Endpoint{ID: 3, BusinessID: 42, ProviderID: 17, Kind: "locker_provider", URL: "https://swift.example/h", Events: []string{"*"},
		Secret: []byte("0123456789abcdef0123456789abcdef"), Enabled: true, Status: "healthy", CreatedAt: now, Format: cloud.FormatStructured, Signature: cloud.SignatureAsymmetric, SigningKey: []byte("a seed")}
	third := cloud.Endpoint{ID: 4, BusinessID: 42, ProviderID: 17, Kind: cloud.ThirdPartyEndpoint, Events: []string{"*"}, Categories: []string{"handover", "outcome"}, Secret: []byte("another one, of its own"), CreatedAt: now}
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{p}, Accounts: []cloud.Account{a}, Tokens: []cloud.Token{tok}},
		HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e, third}},
		AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: 42, At: now, Actor: "account:12", Action: "a", Detail: "{}"},
			{BusinessID: 42, At: now, Actor: "system", Action: "b"}}}})
	l, err := db.FindToken(t.Context(), tok.Hash)
	require.NoError(t, err)
	require.Equal(t, store.Login{Token: tok, Account: a, Provider: p}, l)
	_, err = db.FindToken(t.Context(), [32]byte{2})
	require.ErrorIs(t, err, cloud.ErrNotFound)
	got, err := db.FindAccountsByEmail(t.Context(), "OPS@swift.example")
	require.NoError(t, err)
	require.Equal(t, []cloud.Account{a}, got)
	got, err = db.FindAccountsByEmail(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, got)
	look(t, db, func(v cloud.View) {
		es, err := v.Endpoints(17)
		require.NoError(t, err)
		require.Equal(t, []cloud.Endpoint{e, third}, es)
	})
	look(t, db, func(v cloud.View) {
		ts, err := v.Tokens(12)
		require.NoError(t, err)
		require.Equal(t, []cloud.Token{tok}, ts)
		ts, err = v.Tokens(13)
		require.NoError(t, err)
		require.Empty(t, ts)
	})
	ep, err := db.FindEndpoint(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, e, ep)
	require.NoError(t, db.SetEndpointStatus(t.Context(), 3, "gone", "", now))
	ep, err = db.FindEndpoint(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, "gone", ep.Status)
	au, err := db.ListAudits(t.Context(), 42, 0, 1)
	require.NoError(t, err)
	require.Equal(t, "b", au[0].Action)
	au, err = db.ListAudits(t.Context(), 42, au[0].N, 5)
	require.NoError(t, err)
	require.Len(t, au, 1)
}

func lists(t *testing.T, db *store.DB) {
	c := &cloud.Changes{LockerChanges: cloud.LockerChanges{Shelves: map[cloud.DeviceID][]cloud.Shelf{1: {{Code: "B", Position: 2}, {Code: "A", Position: 1}}}}}
	for id := range cloud.DeviceID(5) {
		c.Devices = append(c.Devices, device(id+1))
		c.Sessions = append(c.Sessions, cloud.Session{DeviceID: id + 1, Generation: 1})
		for door := range uint(4) {
			c.Compartments = append(c.Compartments, cloud.Compartment{GridID: cloud.GridID(uint(id)*10 + door + 1), DeviceID: id + 1, Door: door + 1,
				State: []string{"free", "free", "occupied", "blocked"}[door], DoorStatus: []string{"closed", "open", "closed", "unknown"}[door]})
		}
	}
	for i := range cloud.DeliveryID(7) {
		st := cloud.DeliveryCreated
		if i%2 == 1 {
			st = cloud.DeliveryPickedUp
		}
		c.Deliveries = append(c.Deliveries, cloud.Delivery{ID: i + 1, Number: fmt.Sprint("LD-", i), BusinessID: 1, ProviderID: cloud.ProviderID(i%2 + 1),
			DeviceID: 1, Reference: fmt.Sprint("R", i), Status: st, Packages: []cloud.Package{{TrackingNumber: "T"}}})
		c.Exceptions = append(c.Exceptions, cloud.Exception{ID: cloud.ExceptionID(i + 1), BusinessID: 1, DeviceID: 1,
			Status: []string{"open", "resolved"}[i%2]})
	}
	write(t, db, 0, c)
	ctx := t.Context()
	ds, err := db.ListDevices(ctx, 1, 2, 2)
	require.NoError(t, err)
	require.Equal(t, []cloud.Device{device(3), device(4)}, ds)
	all, err := db.ListAllDevices(ctx, 0, 100)
	require.NoError(t, err)
	require.Len(t, all, 5)
	ss, err := db.ListSessions(ctx, 3, 100)
	require.NoError(t, err)
	require.Len(t, ss, 2)
	sh, err := db.ListShelves(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, []cloud.Shelf{{Code: "A", Position: 1}, {Code: "B", Position: 2}}, sh)
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{Shelves: map[cloud.DeviceID][]cloud.Shelf{1: {{Code: "C", Position: 1}}}}})
	sh, err = db.ListShelves(ctx, 1)
	require.NoError(t, err)
	require.Len(t, sh, 1, "shelves are replaced as a whole")
	cs, err := db.ListCompartments(ctx, 2)
	require.NoError(t, err)
	require.Len(t, cs, 4)
	one, err := db.FindCompartment(ctx, 12)
	require.NoError(t, err)
	require.EqualValues(t, 2, one.Door)
	oc, err := db.ListOccupancy(ctx, 1)
	require.NoError(t, err)
	require.Len(t, oc, 5)
	require.Equal(t, store.Occupancy{DeviceID: 1, Total: 4, Free: 2, Occupied: 1, Blocked: 1, Opens: 1}, oc[0])
	open, err := db.ListDeviceDeliveries(ctx, 1)
	require.NoError(t, err)
	require.Len(t, open, 4)
	require.Len(t, open[0].Packages, 1)
	page, err := db.ListDeliveries(ctx, store.DeliveryFilter{BusinessID: 1, Before: 6, Limit: 2})
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.EqualValues(t, 5, page[0].ID)
	page, err = db.ListDeliveries(ctx, store.DeliveryFilter{ProviderID: 2, Status: cloud.DeliveryPickedUp, Limit: 10})
	require.NoError(t, err)
	require.Len(t, page, 3)
	_, err = db.FindDelivery(ctx, 1, 2)
	require.ErrorIs(t, err, cloud.ErrNotFound, "another provider's")
	d, err := db.FindDeliveryByReference(ctx, 2, "R1")
	require.NoError(t, err)
	require.EqualValues(t, 2, d.ID)
	ex, err := db.ListExceptions(ctx, 1, "open", 7, 10)
	require.NoError(t, err)
	require.Len(t, ex, 3)
}

func ids(t *testing.T, db *store.DB) {
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			last := int64(0)
			for range 100 {
				id, err := db.NewID(t.Context(), store.Deliveries)
				require.NoError(t, err)
				require.Greater(t, id, last)
				last = id
				mu.Lock()
				require.False(t, seen[id])
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.True(t, seen[1])
	require.True(t, seen[800], "one node leaves no holes")
	id, err := db.NewID(t.Context(), store.Grids)
	require.NoError(t, err)
	require.EqualValues(t, 1, id, "kinds count apart")

	// A decision may need more ids than any block holds: each of its runs is
	// given those of the run before again.
	const many = 10_000
	var got map[int64]bool
	err = db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		got = map[int64]bool{}
		for range many {
			id, err := v.NewID(store.Shipments)
			if err != nil {
				return nil, err
			}
			got[id] = true
		}
		return nil, nil
	})
	require.NoError(t, err)
	require.Len(t, got, many)
	require.Error(t, db.Look(t.Context(), func(v cloud.View) error { _, err := v.NewID(store.Shipments); return err }), "only in decisions")
}

func lookIsSnapshot(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a", Name: "before"}}}})
	look(t, db, func(v cloud.View) {
		_, err := v.Business(1)
		require.NoError(t, err)
		write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a", Name: "after"}}}})
		b, err := v.Business(1)
		require.NoError(t, err)
		require.Equal(t, "before", b.Name)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, db.Look(ctx, func(cloud.View) error { return nil }))
	require.Error(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 2, Code: "b"}}}}, nil
	}))
}

func panicIsAnError(t *testing.T, db *store.DB) {
	err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { panic("boom") })
	require.ErrorContains(t, err, "panicked")
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}}}})
}

func scanAt(t testing.TB, id, when string) otep.Event {
	at, err := otep.ParseTime(when)
	require.NoError(t, err)
	return otep.Event{EventID: id, Version: otep.Version, OccurredAt: at, RecordedAt: at, StatusCode: "in_transit", Phase: "transit"}
}

// What a source took back stays, marked, and does not come again.
func withdrawn(t *testing.T, db *store.DB) {
	s := cloud.Shipment{ID: 1, BusinessID: 1, Number: "SWP1"}
	e := cloud.TimelineEvent{ShipmentID: 1, BusinessID: 1, Event: scanAt(t, "e1", "2026-11-20T10:00:00Z")}
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}, Events: []cloud.TimelineEvent{e}}})
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Withdrawn: []cloud.EventRef{{ShipmentID: 1, EventID: "e1", At: now, Reason: otep.IncorrectData, By: "ups", CorrectedBy: "e2"}, {ShipmentID: 1, EventID: "unknown", At: now}}}})
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{e}}})
	look(t, db, func(v cloud.View) {
		es, err := v.Timeline(1)
		require.NoError(t, err)
		require.Len(t, es, 1)
		require.True(t, es[0].Event.Withdrawn)
		gone, err := v.WithdrawnEvents(1, time.Time{}, time.Time{})
		require.NoError(t, err)
		require.Equal(t, []cloud.WithdrawnEvent{{EventRef: cloud.EventRef{ShipmentID: 1, EventID: "e1", At: now, Reason: otep.IncorrectData, By: "ups", CorrectedBy: "e2"}, Event: e.Event}}, gone)
		gone, err = v.WithdrawnEvents(2, time.Time{}, time.Time{})
		require.NoError(t, err)
		require.Empty(t, gone)
	})
	timeline, err := db.FindTimeline(t.Context(), "swp1", nil)
	es := timeline.Events
	require.NoError(t, err)
	require.Len(t, es, 1)
	require.True(t, es[0].Event.Withdrawn)
	page, err := db.EventPage(t.Context(), cloud.EventQuery{BusinessID: 1, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, page, "a page has none that were taken back")
}

func subjects(t *testing.T, db *store.DB) {
	a := cloud.Shipment{ID: 1, BusinessID: 1, Number: "SWP1", External: "ups-7", SSCC: "106141412345678908"}
	b := cloud.Shipment{ID: 2, BusinessID: 1, Number: "SWP2", External: "UPS-7", PieceID: "piece-2"}
	other := cloud.Shipment{ID: 3, BusinessID: 2, Number: "SWP3", External: "UPS-7", SSCC: "106141412345678908"}
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{a, b, other}}})
	f := func(s otep.Subject, want ...cloud.Shipment) {
		t.Helper()
		look(t, db, func(v cloud.View) {
			got, err := v.ShipmentsBySubject(1, s)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
		require.NoError(t, db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			got, err := v.ShipmentsBySubject(1, s)
			require.Equal(t, want, got)
			return nil, err
		}))
	}
	f(otep.Subject{TrackingNumber: "swp1", ExternalTrackingNumber: "ups-7"}, a)
	f(otep.Subject{TrackingNumber: "unknown", ExternalTrackingNumber: "Ups-7"}, a, b)
	f(otep.Subject{ExternalTrackingNumber: "swp2"}, b)
	f(otep.Subject{SSCC: "106141412345678908"}, a)
	f(otep.Subject{PieceID: "piece-2"}, b)
	f(otep.Subject{TrackingNumber: "SWP3"})
	f(otep.Subject{})
	timeline, err := db.FindTimeline(t.Context(), "ups-7", nil)
	found := timeline.Shipment
	require.NoError(t, err)
	require.Equal(t, other, found, "the newest")
	timeline, err = db.FindTimeline(t.Context(), "ups-7", func(s cloud.Shipment) bool { return s.BusinessID == 1 })
	found = timeline.Shipment
	require.NoError(t, err)
	require.Equal(t, b, found)
}

func observations(t *testing.T, db *store.DB) {
	o := cloud.Observation{ShipmentID: 1, Source: "ups", Raw: "In Transit", Code: "in_transit", SeenAt: now}
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Observations: []cloud.Observation{o}}})
	o.Raw, o.Code = "Delivered", "delivered"
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Observations: []cloud.Observation{o}}})
	look(t, db, func(v cloud.View) {
		got, err := v.Observation(1, "ups")
		require.NoError(t, err)
		require.Equal(t, o, got)
		_, err = v.Observation(1, "dhl")
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
}

// Pages of a business's events are in order, without a hole or a repeat, and
// hold nothing of others.
func eventPages(t *testing.T, db *store.DB) {
	c := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, BusinessID: 1, Number: "A", ProviderID: 17}, {ID: 2, BusinessID: 1, Number: "B"}, {ID: 3, BusinessID: 2, Number: "C"}}}}
	for i := range 30 {
		id := cloud.ShipmentID(1 + i%3)
		c.Events = append(c.Events, cloud.TimelineEvent{ShipmentID: id, BusinessID: 1 + cloud.BusinessID(id/3), Event: scanAt(t, fmt.Sprint("e", i), fmt.Sprintf("2026-11-20T10:%02d:00Z", i/6))})
	}
	c.Withdrawn = []cloud.EventRef{{ShipmentID: 1, EventID: "e0", At: now}}
	write(t, db, 0, c)
	read := func(q cloud.EventQuery) (ids []string) {
		t.Helper()
		for {
			rows, err := db.EventPage(t.Context(), q)
			require.NoError(t, err)
			require.LessOrEqual(t, len(rows), q.Limit)
			if len(rows) == 0 {
				return ids
			}
			for _, r := range rows {
				require.Equal(t, q.BusinessID, r.Shipment.BusinessID)
				ids = append(ids, r.Event.EventID)
			}
			q.After = rows[len(rows)-1].Cursor
		}
	}
	all := read(cloud.EventQuery{BusinessID: 1, Limit: 4})
	require.Equal(t, []string{"e1", "e3", "e4", "e6", "e7", "e9", "e10", "e12", "e13", "e15", "e16", "e18", "e19", "e21", "e22", "e24", "e25", "e27", "e28"}, all)
	require.Equal(t, all, read(cloud.EventQuery{BusinessID: 1, Limit: 1000}))
	require.Len(t, read(cloud.EventQuery{BusinessID: 1, ProviderID: 17, Limit: 2}), 9)
	minute := time.Date(2026, 11, 20, 10, 2, 0, 0, time.UTC)
	require.Equal(t, []string{"e12", "e13", "e15", "e16"}, read(cloud.EventQuery{BusinessID: 1, From: minute, To: minute.Add(time.Minute), Limit: 3}))
}

// dueDeliveries: deadlines that have passed, in order and page by page, but for
// deliveries that an opening still runs for and those in other states.
func dueDeliveries(t *testing.T, db *store.DB) {
	ctx := context.Background()
	now := time.Now().UTC().Truncate(time.Second)
	ago := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Minute) }
	due := func(id cloud.DeliveryID, status cloud.DeliveryStatus, before, dueAt time.Time) cloud.Delivery {
		return cloud.Delivery{ID: id, Number: fmt.Sprintf("LD-%d", id), BusinessID: 1, ProviderID: 1, DeviceID: 7, Status: status, DeliverBefore: before, DueAt: dueAt, CreatedAt: now}
	}
	c := &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{
		due(1, cloud.DeliveryCreated, ago(5), time.Time{}), due(2, cloud.DeliveryCreated, ago(-1), time.Time{}), due(3, cloud.DeliveryDelivered, ago(9), ago(7)),
		due(4, cloud.DeliveryDelivered, ago(9), ago(-7)), due(5, cloud.DeliveryDoorsOpened, ago(9), time.Time{}), due(6, cloud.DeliveryCreated, ago(5), time.Time{}),
		due(7, cloud.DeliveryCreated, ago(5), time.Time{}), due(8, cloud.DeliveryCreated, now, time.Time{}), due(9, cloud.DeliveryExpired, ago(5), ago(5)),
	},
		Openings: []cloud.Opening{{ID: "op_1", DeviceID: 7, DeliveryID: 6, Kind: wire.OpenDeposit, State: cloud.OpeningRunning, RequestedAt: now, Reason: "why"},
			{ID: "op_2", DeviceID: 7, DeliveryID: 7, Kind: wire.OpenDeposit, State: cloud.OpeningEnded, RequestedAt: now}}}}
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
	var got []cloud.DeliveryID
	for after := (cloud.DueDelivery{}); ; {
		page, err := db.ListDueDeliveries(ctx, now, after, 2)
		require.NoError(t, err)
		for _, d := range page {
			require.EqualValues(t, 7, d.DeviceID)
			got, after = append(got, d.ID), d
		}
		if len(page) < 2 {
			break
		}
	}
	require.Equal(t, []cloud.DeliveryID{3, 1, 7, 8}, got)
	require.NoError(t, db.Look(ctx, func(v cloud.View) error {
		o, err := v.Opening("op_1")
		require.Equal(t, "why", o.Reason)
		return err
	}))
}

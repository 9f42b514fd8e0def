package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// producers are the callers that keep a group commit filled.
const producers = 64

// settlement is what one settlement record changes: journal, compartment,
// delivery, opening, device order, timeline and outbox.
func settlement(n int64, at time.Time) *cloud.Changes {
	dev := cloud.DeviceID(n%producers + 1)
	ref := fmt.Sprint(64000 + n)
	occupied := true
	return &cloud.Changes{
		DeviceChanges: cloud.DeviceChanges{Generation: 1,
			Lanes:   []cloud.LaneMove{{From: uint64(n/producers + 1), To: cloud.LaneState{DeviceID: dev, Epoch: wire.Epoch{1}, Next: uint64(n/producers + 2), Head: wire.Head{byte(n)}}}},
			Batches: []cloud.JournalBatch{{DeviceID: dev, Epoch: wire.Epoch{1}, First: uint64(n/producers + 1), Count: 1, Bytes: make([]byte, 260), ReceivedAt: at}},
			Seen:    []cloud.DeviceSeen{{DeviceID: dev, LastSeenAt: at, LastPlaced: at}}},
		LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{{GridID: cloud.GridID(dev), DeviceID: dev, Door: 1, GridCode: "A06", ShelfCode: "A", Size: "M", DoorStatus: "closed",
			Occupied: &occupied, State: cloud.GridOccupied, DeliveryID: cloud.DeliveryID(n)}},
			Deliveries: []cloud.Delivery{{ID: cloud.DeliveryID(n + 1), Number: "LD-" + ref, BusinessID: 42, ProviderID: 17, DeviceID: dev, Reference: "SWP-" + ref,
				Status: cloud.DeliveryDelivered, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, SealedCodes: make([]byte, 60),
				PickupCodeActive: true, ConfirmedBy: wire.ByDoorClose, CreatedAt: at, DepositedAt: at,
				Packages: []cloud.Package{{TrackingNumber: "SWP" + ref, Size: "M", Status: cloud.PackageInCompartment}}}},
			Openings: []cloud.Opening{{ID: "op_" + ref, BusinessID: 42, DeviceID: dev, DeliveryID: cloud.DeliveryID(n + 1), Kind: wire.OpenDeposit, State: cloud.OpeningSettled,
				Doors: []cloud.OpeningDoor{{Door: 1, GridID: 7001, Status: "closed"}}, RequestedAt: at, EndedAt: at}},
			DeviceOrders: []cloud.DeviceOrder{{ID: cloud.DeviceOrderID(n + 1), BusinessID: 42, DeviceID: dev, GridCode: "A06", Kind: "locker_delivery", Status: "stored",
				DeliveryID: cloud.DeliveryID(n + 1), Tracking: "SWP" + ref, StoredAt: at}}},
		TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: cloud.ShipmentID(n + 1), BusinessID: 42, Number: "SWP" + ref, DeliveryID: cloud.DeliveryID(n + 1), Current: "x-available_for_pickup", LastAt: at, CreatedAt: at}},
			Events: []cloud.TimelineEvent{{ShipmentID: cloud.ShipmentID(n + 1), BusinessID: 42, Event: otep.Event{EventID: "ev-" + ref, Version: otep.Version,
				OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: at}, StatusCode: "x-available_for_pickup", Phase: "delivery"}}}},
		OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: cloud.OutboxEvent{EventID: "PLE-" + ref, Event: "locker_delivery.delivered", BusinessID: 42, ProviderID: 17,
			Channel: cloud.ChannelLocker, ReferenceType: "locker_delivery", ReferenceID: ref, OccurredAt: at, CreatedAt: at, Body: make([]byte, 1024)},
			Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(n + 1), EventID: "PLE-" + ref, EndpointID: 3, BusinessID: 42, WebhookID: "PLE-" + ref,
				State: cloud.OutboxPending, MaxAttempts: 8, CreatedAt: at}}}}},
	}
}

// telemetry is a batch of 100 telemetry records as it is stored.
func telemetry(n int64, at time.Time) *cloud.Changes {
	dev := cloud.DeviceID(n%producers + 1)
	first := uint64(n/producers)*100 + 1
	return &cloud.Changes{
		DeviceChanges: cloud.DeviceChanges{Generation: 1,
			Lanes:   []cloud.LaneMove{{From: first, To: cloud.LaneState{DeviceID: dev, Epoch: wire.Epoch{1}, Lane: wire.Telemetry, Next: first + 100, Head: wire.Head{byte(n)}}}},
			Batches: []cloud.JournalBatch{{DeviceID: dev, Epoch: wire.Epoch{1}, Lane: wire.Telemetry, First: first, Count: 100, Bytes: make([]byte, 6000), ReceivedAt: at}},
			Seen:    []cloud.DeviceSeen{{DeviceID: dev, LastSeenAt: at, LastPlaced: at}}},
	}
}

func benchDevices(b *testing.B, db *DB) {
	c := &cloud.Changes{}
	for id := cloud.DeviceID(1); id <= producers; id++ {
		c.Devices = append(c.Devices, cloud.Device{ID: id, Code: fmt.Sprint(id)})
		c.Sessions = append(c.Sessions, cloud.Session{DeviceID: id, Generation: 1})
		for l := range wire.Lane(wire.Lanes) {
			c.Lanes = append(c.Lanes, cloud.LaneMove{To: cloud.LaneState{DeviceID: id, Epoch: wire.Epoch{1}, Lane: l, Next: 1}})
		}
	}
	require.NoError(b, db.Decide(b.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
}

// decideAll writes n changes through Decide from all producers, each with its
// own device, and reads what a real decision reads first.
func decideAll(b *testing.B, db *DB, n int64, change func(int64, time.Time) *cloud.Changes) time.Duration {
	at := time.Now()
	var failed atomic.Value
	var wg sync.WaitGroup
	start := time.Now()
	for p := range int64(producers) {
		wg.Go(func() {
			for i := p; i < n; i += producers {
				err := db.Decide(context.Background(), cloud.DeviceID(p+1), func(v cloud.View) (*cloud.Changes, error) {
					c := change(i, at)
					_, err := v.Lane(c.Lanes[0].To.DeviceID, c.Lanes[0].To.Epoch, c.Lanes[0].To.Lane)
					return c, err
				})
				if err != nil {
					failed.Store(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// bareAll writes the same rows in a plain loop: prepared statements, one
// transaction for as many changes as there are producers.
func bareAll(b *testing.B, n int64, change func(int64, time.Time) *cloud.Changes) time.Duration {
	db, err := Open(b.Context(), Config{Dir: b.TempDir(), Box: testBox(b)})
	require.NoError(b, err)
	benchDevices(b, db)
	path := db.engine.(*lite).path
	require.NoError(b, db.Close())
	raw, err := sql.Open("sqlite", "file:"+path+"?"+liteWriterDSN)
	require.NoError(b, err)
	defer raw.Close()
	conn, err := newLiteConn(b.Context(), raw)
	require.NoError(b, err)
	defer conn.close()
	ctx, at := context.Background(), time.Now()
	ops := make([][]op, n)
	for i := range n {
		w := writer{box: testBox(b), dev: cloud.DeviceID(i%producers + 1)}
		require.NoError(b, w.changes(change(i, at)))
		ops[i] = w.ops
	}
	start := time.Now()
	for i := int64(0); i < n; i += producers {
		require.NoError(b, conn.control("BEGIN IMMEDIATE"))
		for _, os := range ops[i:min(i+producers, n)] {
			for j := range os {
				if os[j].need == probe {
					continue
				}
				s, err := conn.prepared(os[j].sql)
				if err == nil {
					_, err = s.ExecContext(ctx, os[j].args...)
				}
				if then := os[j].then; err == nil && then != nil {
					if s, err = conn.prepared(then.sql); err == nil {
						_, err = s.ExecContext(ctx, then.args...)
					}
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		require.NoError(b, conn.control("COMMIT"))
	}
	return time.Since(start)
}

func benchDecide(b *testing.B, records int, change func(int64, time.Time) *cloud.Changes) {
	n := int64(max(b.N, 4*producers))
	db := openBench(b)
	benchDevices(b, db)
	b.ResetTimer()
	took := decideAll(b, db, n, change)
	b.StopTimer()
	bare := bareAll(b, n, change)
	b.ReportMetric(float64(n)*float64(records)/took.Seconds(), "records/s")
	b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
}

func openBench(b *testing.B) *DB {
	if url := os.Getenv("POSTERN_BENCH_POSTGRES"); url != "" {
		return openTest(b, Config{URL: url})
	}
	return openTest(b, Config{Dir: filepath.Join(b.TempDir(), "data")})
}

func BenchmarkSettlement(b *testing.B) { benchDecide(b, 1, settlement) }

func BenchmarkTelemetryBatch(b *testing.B) { benchDecide(b, 100, telemetry) }

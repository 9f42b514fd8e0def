package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// devicesAtOnce is how many devices send side by side.
const devicesAtOnce = 64

// acks counts receipts per device, in place of the broker.
type acks struct {
	next []atomic.Uint64
	code map[string]int
	wake []chan struct{}
}

func (a *acks) Send(code string, _ topic.Leaf, payload []byte, _ bool) error {
	d, err := wire.DecodeDown(payload)
	if err != nil || d.Type != wire.DownAck {
		return err
	}
	var ack wire.Ack
	if err := wire.Decode(d.Body, &ack); err != nil {
		return err
	}
	if ack.Refused != "" || ack.ResendFrom != 0 {
		return fmt.Errorf("refused %q, resend from %d", ack.Refused, ack.ResendFrom)
	}
	i := a.code[code]
	a.next[i].Store(ack.Next)
	select {
	case a.wake[i] <- struct{}{}:
	default:
	}
	return nil
}

func (a *acks) Kick(string) {}

// rig is a cloud without a network: payloads go straight to the device link.
type rig struct {
	s   *server.Server
	box server.Sandbox
	a   *acks
	gen []int64
}

func newRig(tb testing.TB, devices int) *rig {
	tb.Helper()
	s, err := server.New(context.Background(), server.Config{Dir: tb.TempDir(), Node: "bench"})
	require.NoError(tb, err)
	r := &rig{s: s, a: &acks{next: make([]atomic.Uint64, devices), code: map[string]int{}}}
	cfg := server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, WebhookURL: "https://receiver.example/hook"}
	for i := range devices {
		d := server.SandboxDevice{Code: fmt.Sprintf("D-%d", i), Name: "bench", Type: "smart_locker", Unsigned: true}
		for n := uint(1); n <= 12; n++ {
			d.Layout = append(d.Layout, wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: "M"})
		}
		cfg.Devices = append(cfg.Devices, d)
		r.a.code[d.Code] = i
		r.a.wake = append(r.a.wake, make(chan struct{}, 1))
	}
	r.box, err = s.Sandbox(context.Background(), cfg)
	require.NoError(tb, err)
	s.Devices.SetSender(r.a)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Devices.Run(ctx) })
	for i := range devices {
		gen, err := s.Devices.Login(context.Background(), r.box.Devices[i].DeviceCode, r.box.Devices[i].Secret)
		require.NoError(tb, err)
		r.gen = append(r.gen, gen)
	}
	tb.Cleanup(func() {
		stop()
		wg.Wait()
		require.NoError(tb, s.Broker.Close())
		require.NoError(tb, s.Store.Close())
	})
	return r
}

// stream makes one device's batches of one lane.
type stream struct {
	epoch wire.Epoch
	lane  wire.Lane
	next  uint64
	head  wire.Head
	mono  int64
}

func newStream(i int, lane wire.Lane) *stream {
	e := wire.Epoch{1, byte(i), byte(i >> 8), byte(lane) + 1}
	return &stream{epoch: e, lane: lane, next: 1, head: wire.FirstHead(e, lane)}
}

func (s *stream) batch(bodies []wire.Record) []byte {
	b := wire.Batch{Version: wire.Version, Epoch: s.epoch, Lane: s.lane, First: s.next}
	for _, r := range bodies {
		s.mono += 1_000_000
		r.Boot, r.Mono, r.Clock = 1, s.mono, wire.ClockSynced
		r.At = time.Now().UnixNano()
		raw := wire.MustEncode(r)
		s.head = s.head.Next(raw)
		b.Records = append(b.Records, raw)
	}
	s.next += uint64(len(bodies))
	b.Head = s.head
	b.Sent = wire.Sample{Boot: 1, Mono: s.mono, Wall: time.Now().UnixNano(), Clock: wire.ClockSynced}
	return wire.MustEncode(b)
}

// feed sends each device's payloads with up to eight on the way, and waits for
// all receipts.
func (r *rig) feed(tb testing.TB, payloads [][][]byte, per int) time.Duration {
	tb.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for i := range payloads {
		wg.Go(func() {
			acked := func() int { return int(r.a.next[i].Load()-1) / per }
			base := acked()
			if r.a.next[i].Load() == 0 {
				base = 0
			}
			for n, p := range payloads[i] {
				for n-(max(acked(), base)-base) >= 8 {
					<-r.a.wake[i]
				}
				r.s.Devices.Receive(r.box.Devices[i].DeviceCode, r.gen[i], topic.Up, p)
			}
			for acked()-base < len(payloads[i]) {
				select {
				case <-r.a.wake[i]:
				case <-time.After(20 * time.Second):
					tb.Errorf("device %d: %d of %d batches acknowledged", i, acked()-base, len(payloads[i]))
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// Telemetry in batches of 100, kept as batches, durable: figure 4.
func BenchmarkTelemetryIntake(b *testing.B) {
	const per, batches = 100, 60
	r := newRig(b, devicesAtOnce)
	streams := make([]*stream, devicesAtOnce)
	for i := range streams {
		streams[i] = newStream(i, wire.Telemetry)
	}
	body := wire.MustEncode(wire.Measurement{Type: "temperature", Value: 4.25, Unit: "CEL"})
	var took, bare time.Duration
	records := 0
	for b.Loop() {
		payloads := make([][][]byte, devicesAtOnce)
		for i, s := range streams {
			for range batches {
				rows := make([]wire.Record, per)
				for k := range rows {
					rows[k] = wire.Record{Kind: wire.KindTelemetry, Body: body}
				}
				payloads[i] = append(payloads[i], s.batch(rows))
			}
		}
		took += r.feed(b, payloads, per)
		bare += r.bare(b, payloads, per)
		records += devicesAtOnce * batches * per
	}
	b.ReportMetric(float64(records)/took.Seconds(), "records/s")
	b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

var bareRun atomic.Int64

// bare writes the same rows through the same store with nothing around it: a
// journal row, a lane and the device's seen row per payload.
func (r *rig) bare(tb testing.TB, payloads [][][]byte, per int) time.Duration {
	run := byte(bareRun.Add(1))
	start := time.Now()
	var wg sync.WaitGroup
	for i := range payloads {
		wg.Go(func() {
			id := r.box.Devices[i].DeviceID
			e := wire.Epoch{2, byte(i), run}
			now := time.Now().UTC()
			var next uint64
			for n, p := range payloads[i] {
				first := uint64(n*per + 1)
				to := cloud.LaneState{DeviceID: id, Epoch: e, Lane: wire.Telemetry, Next: first + uint64(per)}
				err := r.s.Store.Decide(context.Background(), id, func(cloud.View) (*cloud.Changes, error) {
					return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: r.gen[i],
						Lanes:   []cloud.LaneMove{{From: next, To: to}},
						Batches: []cloud.JournalBatch{{DeviceID: id, Epoch: e, Lane: wire.Telemetry, First: first, Count: per, Bytes: p, ReceivedAt: now}},
						Seen:    []cloud.DeviceSeen{{DeviceID: id, LastSeenAt: now, LastPlaced: now}}}}, nil
				})
				if err != nil {
					tb.Error(err)
					return
				}
				next = to.Next
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// Settlements with everything that follows from them, durable: figure 4. Every
// fifth record is a settlement's worth of work: opening, command outcome,
// settlement; each delivery leads to timeline, device order and outbox rows.
func BenchmarkSettlementIntake(b *testing.B) {
	r := newRig(b, devicesAtOnce)
	second := newRig(b, devicesAtOnce) // the same rows, with nothing around them
	var kept recorder
	r.s.Store.OnCommit(kept.committed)
	streams := make([]*stream, devicesAtOnce)
	for i := range streams {
		streams[i] = newStream(i, wire.Settlement)
	}
	var took, bare time.Duration
	records, round := 0, 0
	for b.Loop() {
		const deliveries = 12
		payloads := make([][][]byte, devicesAtOnce)
		for i, s := range streams {
			numbers := r.deliveries(b, i, round, deliveries)
			for d, number := range numbers {
				id := fmt.Sprintf("op_%d_%d_%d", i, round, d)
				door := uint(d + 1)
				now := time.Now().UnixNano()
				payloads[i] = append(payloads[i], s.batch([]wire.Record{
					{Kind: wire.KindOpeningStarted, Body: wire.MustEncode(wire.OpeningStarted{OpeningID: id, Kind: wire.OpenDeposit, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: number.number})},
					{Kind: wire.KindOpeningSettled, Body: wire.MustEncode(wire.OpeningSettled{OpeningID: id, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: door, OpenedAt: now, ClosedAt: now}},
						Packages: []wire.SettledPackage{{Ref: number.parcel, Door: door, Outcome: wire.Deposited}}})},
					{Kind: wire.KindOpeningStarted, Body: wire.MustEncode(wire.OpeningStarted{OpeningID: id + "p", Kind: wire.OpenPickup, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: number.number})},
					{Kind: wire.KindPickupCompleted, Body: wire.MustEncode(wire.PickupCompleted{DeliveryRef: number.number, OpeningID: id + "p", Doors: []uint{door}, How: "keypad"})},
				}))
			}
		}
		round++
		kept.replay(b, second.s.Store) // the deliveries
		took += r.feed(b, payloads, 4)
		bare += kept.replay(b, second.s.Store)
		records += devicesAtOnce * deliveries * 4
	}
	b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
	b.ReportMetric(float64(records)/took.Seconds(), "records/s")
	b.ReportMetric(0, "ns/op")
}

// recorder keeps what was committed, per device, to write it once more.
type recorder struct {
	mu   sync.Mutex
	rows map[cloud.DeviceID][]cloud.Changes
}

func (k *recorder) committed(ch *cloud.Changes) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rows == nil {
		k.rows = map[cloud.DeviceID][]cloud.Changes{}
	}
	var id cloud.DeviceID
	switch {
	case len(ch.Seen) > 0:
		id = ch.Seen[0].DeviceID
	case len(ch.Devices) > 0:
		id = ch.Devices[0].ID
	default:
		return
	}
	k.rows[id] = append(k.rows[id], *ch)
}

// intake keeps commits that stored batches, without the conditions on a
// session that the other store does not have.
func (k *recorder) intake(ch *cloud.Changes) {
	if len(ch.Batches) == 0 {
		return
	}
	c := *ch
	c.Generation, c.Sessions = 0, nil
	k.committed(&c)
}

// payloads are the batches that were kept, of one device and lane 1, in order.
func (k *recorder) payloads() (out [][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, list := range k.rows {
		for _, ch := range list {
			for _, j := range ch.Batches {
				if j.Lane == wire.Telemetry && j.Aside == "" {
					out = append(out, j.Bytes)
				}
			}
		}
	}
	return out
}

// drain gives the first device's batches to the cloud, within the link's window
// of eight batches and 256 KiB without a receipt, and waits for the last.
func (r *rig) drain(tb testing.TB, payloads [][]byte) time.Duration {
	tb.Helper()
	ends := make([]uint64, len(payloads)) // next after each
	for i, p := range payloads {
		b, err := wire.DecodeBatch(p)
		require.NoError(tb, err)
		ends[i] = b.Last() + 1
	}
	start := time.Now()
	oldest, open := 0, 0 // batches and bytes without a receipt
	for i, p := range payloads {
		for {
			for oldest < i && r.a.next[0].Load() >= ends[oldest] {
				open -= len(payloads[oldest])
				oldest++
			}
			if i-oldest < 8 && open+len(p) <= 256<<10 {
				break
			}
			<-r.a.wake[0]
		}
		open += len(p)
		r.s.Devices.Receive(r.box.Devices[0].DeviceCode, r.gen[0], topic.Up, p)
	}
	for r.a.next[0].Load() < ends[len(ends)-1] {
		select {
		case <-r.a.wake[0]:
		case <-time.After(20 * time.Second):
			tb.Fatalf("%d of %d acknowledged", r.a.next[0].Load(), ends[len(ends)-1])
		}
	}
	return time.Since(start)
}

// replay writes what was kept into another store and forgets it.
func (k *recorder) replay(tb testing.TB, db *store.DB) time.Duration {
	k.mu.Lock()
	rows := k.rows
	k.rows = nil
	k.mu.Unlock()
	start := time.Now()
	var wg sync.WaitGroup
	for id, list := range rows {
		wg.Go(func() {
			for i := range list {
				if err := db.Decide(context.Background(), id, func(cloud.View) (*cloud.Changes, error) { return &list[i], nil }); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

type made struct{ number, parcel string }

func (r *rig) deliveries(tb testing.TB, device, round, n int) []made {
	var out []made
	id := r.box.Devices[device].DeviceID
	for d := range n {
		in := newDelivery(id, fmt.Sprintf("%d-%d-%d", device, round, d))
		got, err := r.s.Lockers.Create(context.Background(), r.box.ProviderCaller, in)
		require.NoError(tb, err)
		out = append(out, made{got.Delivery.DeliveryNumber, in.Packages[0].TrackingNumber})
	}
	return out
}

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/mqttbroker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// "Fleet recovery: the cloud hands out credit so that its own commit queue stays
// below 1 s; lane 0 is taken first." Two hundred cabinets come back at once, each
// with a long backlog, to a cloud with a slow database.
func TestFleetComesBackToASlowDatabase(t *testing.T) {
	ring.SkipUnlessCheck(t, "cloud/device bounds what waits for the database")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const backlog = 2000
		f := newFleet(t, 200)
		defer f.close()
		for _, m := range f.members {
			m.store.add(wire.Telemetry, backlog)
		}
		f.start()
		// One of them has something that a person waits for, once a second.
		var slowest time.Duration
		m := f.members[17]
		began := time.Now()
		for !f.drained() {
			require.Less(t, time.Since(began), 5*time.Minute, "the backlog does not end")
			time.Sleep(time.Second)
			if !m.link.Connected() {
				continue
			}
			at := time.Now()
			last := m.store.add(wire.Settlement, 1)
			for m.store.Present().Acked[wire.Settlement] <= last {
				time.Sleep(5 * time.Millisecond)
				require.Less(t, time.Since(at), time.Minute)
			}
			slowest = max(slowest, time.Since(at))
		}
		took := time.Since(began)
		require.Greater(t, took, 8*time.Second, "a database this slow cannot have been quicker: it was not the bottleneck")
		require.Less(t, f.slow.longest(wire.Telemetry), 1200*time.Millisecond, "the queue grew")
		require.Less(t, f.slow.longest(wire.Settlement), 200*time.Millisecond, "lane 0 waited for lane 1")
		require.Less(t, slowest, time.Second, "from the record to its receipt")
		for _, d := range f.box.Devices {
			stats, err := f.srv.Store.JournalStats(context.Background(), d.DeviceID)
			require.NoError(t, err)
			require.GreaterOrEqual(t, stats.Records, int64(backlog))
			require.Zero(t, stats.Missing)
		}
		// The limit is lifted: what happens now goes at once, however much it is.
		m.store.add(wire.Settlement, 1)
		time.Sleep(time.Second)
		at := time.Now()
		m.store.add(wire.Telemetry, 500)
		for !f.drained() {
			time.Sleep(5 * time.Millisecond)
		}
		require.Less(t, time.Since(at), 500*time.Millisecond, "the limit was not lifted")
		t.Logf("%d records in %s; longest wait: lane 1 %s, lane 0 %s; lane 0 from record to receipt at most %s", 200*backlog, took,
			f.slow.longest(wire.Telemetry), f.slow.longest(wire.Settlement), slowest)
	})
}

// fleet is a cloud with a slow database and many devices that consist of their
// uplink and a store in memory.
type fleet struct {
	t       *testing.T
	box     server.Sandbox
	srv     *server.Server
	slow    *slowStore
	broker  *mqttbroker.Broker
	members []*member
	stop    []func()
}

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{t: t}
	run := func(what string, fn func(ctx context.Context) error) {
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := fn(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		f.stop = append(f.stop, func() { stop(); wg.Wait() })
	}
	var err error
	f.srv, err = server.New(t.Context(), server.Config{Dir: filepath.Join(t.TempDir(), "cloud"), Node: "one"})
	require.NoError(t, err)
	run("server", func(ctx context.Context) error { return f.srv.Run(ctx, server.Listeners{}) })
	cfg := server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}}
	for i := range n {
		cfg.Devices = append(cfg.Devices, server.SandboxDevice{Code: fmt.Sprintf("CAB-%d", i), Type: "smart_locker", Unsigned: true, Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}})
	}
	f.box, err = f.srv.Sandbox(t.Context(), cfg)
	require.NoError(t, err)
	f.slow = &slowStore{Store: f.srv.Store, each: 20 * time.Millisecond, record: 100 * time.Microsecond}
	devices := device.New(device.Config{Store: f.slow, Meaning: nothing{}, Signer: f.srv.Signer, ServerKey: f.srv.Keys.Server, Node: "two", Bulk: 4})
	f.broker, err = mqttbroker.New(mqttbroker.Config{Devices: devices})
	require.NoError(t, err)
	devices.SetSender(f.broker)
	run("devices", devices.Run)
	f.stop = append(f.stop, func() { require.NoError(t, f.broker.Close()) })
	for i, d := range f.box.Devices {
		m := &member{store: newMemory(byte(i), byte(i>>8))}
		m.link, err = uplink.New(uplink.Config{DeviceCode: d.DeviceCode, Secret: d.Secret, Brokers: []string{"tcp://cloud:1883"}, Store: m.store, Handler: m,
			Status: func() wire.Status { return wire.Status{At: time.Now().UnixNano(), Instance: []byte{byte(i)}} },
			Sample: func() wire.Sample { return wire.Sample{Boot: 1, Wall: time.Now().UnixNano(), Clock: wire.ClockSynced} },
			Dial: func(context.Context, *url.URL) (net.Conn, error) {
				here, there := net.Pipe()
				go func() { _ = f.broker.ServeConn(newBuffered(there)) }()
				return here, nil
			}})
		require.NoError(t, err)
		f.members = append(f.members, m)
	}
	return f
}

func (f *fleet) start() {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, m := range f.members {
		wg.Go(func() { _ = m.link.Run(ctx) })
	}
	f.stop = append(f.stop, func() { stop(); wg.Wait() })
}

func (f *fleet) drained() bool {
	for _, m := range f.members {
		if m.store.Present().Backlog != [2]uint64{} {
			return false
		}
	}
	return true
}

func (f *fleet) close() {
	for i := len(f.stop) - 1; i >= 0; i-- {
		f.stop[i]()
	}
}

// slowStore takes its time for every transaction that stores batches, and notes
// how long these had been waiting when it was done.
type slowStore struct {
	device.Store
	each, record time.Duration

	mu    sync.Mutex
	waits [wire.Lanes]time.Duration
}

func (s *slowStore) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	var ch *cloud.Changes
	err := s.Store.Decide(ctx, d, func(v cloud.View) (_ *cloud.Changes, err error) {
		ch, err = fn(v)
		return ch, err
	})
	if err != nil || len(ch.Batches) == 0 {
		return err
	}
	n := 0
	for _, b := range ch.Batches {
		n += b.Count
	}
	time.Sleep(s.each + time.Duration(n)*s.record)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range ch.Batches {
		s.waits[b.Lane] = max(s.waits[b.Lane], time.Since(b.ReceivedAt))
	}
	return nil
}

func (s *slowStore) longest(l wire.Lane) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits[l]
}

// nothing follows from any record.
type nothing struct{}

func (nothing) Begin(cloud.View, cloud.Device, time.Time) device.Work { return nothing{} }
func (nothing) Record(device.Record) (string, error)                  { return "", nil }
func (nothing) StoreLost(time.Time) error                             { return nil }
func (nothing) Snapshot(*wire.Status, time.Time) error                { return nil }
func (nothing) DoorsFreed(*wire.Status, time.Time) error              { return nil }
func (nothing) Finish(*cloud.Changes) error                           { return nil }

// member is one device of the fleet. It heeds nothing that comes down but
// receipts.
type member struct {
	link  *uplink.Uplink
	store *memory
}

func (*member) Command([]byte)           {}
func (*member) Time(uplink.TimeAnswer)   {}
func (*member) Codes(uplink.CodesAnswer) {}
func (*member) Config([]byte)            {}

// memory is a store of records that a power cut would take.
type memory struct {
	mu    sync.Mutex
	epoch wire.Epoch
	lanes [wire.Lanes]struct {
		records []wire.Raw
		heads   []wire.Head // after each record, the first before any
		acked   uint64
	}
	mono int64
	wake chan struct{}
}

func newMemory(id ...byte) *memory {
	m := &memory{wake: make(chan struct{}, 1)}
	copy(m.epoch[:], append([]byte("fleet"), id...))
	for l := range m.lanes {
		m.lanes[l].heads, m.lanes[l].acked = []wire.Head{wire.FirstHead(m.epoch, wire.Lane(l))}, 1
	}
	return m
}

// add keeps n records and gives the number of the last.
func (m *memory) add(l wire.Lane, n int) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind, body := wire.KindTelemetry, wire.MustEncode(wire.Measurement{Type: "temperature", Value: 21.5, Unit: "Cel"})
	if l == wire.Settlement {
		kind, body = wire.KindTamper, wire.MustEncode(wire.Tamper{What: wire.TamperCabinetOpened})
	}
	ln := &m.lanes[l]
	for range n {
		m.mono += 1e6
		raw := wire.MustEncode(wire.Record{Kind: kind, At: time.Now().UnixNano(), Boot: 1, Mono: m.mono, Clock: wire.ClockSynced, Body: body})
		ln.records = append(ln.records, raw)
		ln.heads = append(ln.heads, ln.heads[len(ln.heads)-1].Next(raw))
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return uint64(len(ln.records))
}

func (m *memory) Present() buffer.Present {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := buffer.Present{Epoch: m.epoch}
	for l, ln := range m.lanes {
		n := uint64(len(ln.records))
		p.Ends[l], p.Acked[l], p.Backlog[l] = wire.LaneEnd{Last: n, Head: ln.heads[n]}, ln.acked, n+1-ln.acked
	}
	return p
}

func (m *memory) Read(l wire.Lane, from uint64, maxRecords, maxBytes int) (buffer.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := buffer.Run{Epoch: m.epoch, Lane: l, First: from}
	for n := from; n <= uint64(len(m.lanes[l].records)) && len(r.Records) < maxRecords; n++ {
		raw := m.lanes[l].records[n-1]
		if maxBytes -= len(raw); maxBytes < 0 {
			break
		}
		r.Records, r.Head = append(r.Records, raw), m.lanes[l].heads[n]
	}
	return r, nil
}

func (m *memory) Ack(e wire.Epoch, l wire.Lane, next uint64, head wire.Head) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ln := &m.lanes[l]
	switch {
	case e != m.epoch || next < ln.acked:
		return buffer.ErrStale
	case next > uint64(len(ln.heads)) || ln.heads[next-1] != head:
		return buffer.ErrForked
	}
	ln.acked = next
	return nil
}

func (m *memory) NewEpoch(string, *buffer.Refused) error {
	panic("nothing was refused, and no chain differs")
}

func (m *memory) NewEpochFrom([wire.Lanes]uint64) error {
	panic("the cloud was not restored")
}

func (m *memory) Wake() <-chan struct{} { return m.wake }

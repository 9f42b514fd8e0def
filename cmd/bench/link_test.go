package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/uplink"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// up starts a cloud that listens for MQTT on the loopback, with devices of four
// doors.
func up(tb testing.TB, devices int, hook string) (*server.Server, server.Sandbox, string) {
	tb.Helper()
	return upWith(tb, server.SandboxConfig{}, devices, 4, hook)
}

func upWith(tb testing.TB, sc server.SandboxConfig, devices int, doors uint, hook string, change ...func(*server.SandboxDevice)) (*server.Server, server.Sandbox, string) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	cfg := server.Config{Dir: tb.TempDir(), Node: "bench", Brokers: []string{"tcp://" + ln.Addr().String()}, WebhookHTTP: true,
		WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	if hook != "" {
		ap, err := netip.ParseAddrPort(hook)
		require.NoError(tb, err)
		cfg.WebhookPorts = []uint16{ap.Port()}
	}
	s, err := server.New(context.Background(), cfg)
	require.NoError(tb, err)
	sc.Codes = wire.CodeParams{MemoryKiB: 8, Passes: 1}
	if hook != "" {
		sc.WebhookURL = "http://" + hook + "/hook"
	}
	for i := range devices {
		d := server.SandboxDevice{Code: fmt.Sprintf("D-%d", i), Name: "bench", Type: "smart_locker"}
		for n := uint(1); n <= doors; n++ {
			d.Layout = append(d.Layout, wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: "M"})
		}
		for _, f := range change {
			f(&d)
		}
		sc.Devices = append(sc.Devices, d)
	}
	box, err := s.Sandbox(context.Background(), sc)
	require.NoError(tb, err)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx, server.Listeners{MQTT: ln}) })
	tb.Cleanup(func() { stop(); wg.Wait() })
	return s, box, ln.Addr().String()
}

// Half a million records that a cabinet kept while it was alone, drained into
// the cloud, signed and verified: figure 3. ratio is to what the cloud's store
// alone commits: the rows of the same batches, with no link and no intake around
// them. intake is to the cloud's intake, given the same batches from memory.
func BenchmarkBacklog(b *testing.B) {
	const backlog = 500_000
	for b.Loop() {
		s, box, _ := up(b, 1, "")
		second, _, _ := up(b, 1, "") // the same rows, with nothing around them
		alone := newRig(b, 1)        // the same batches, from memory
		var kept recorder
		s.Store.OnCommit(kept.intake)
		dir := b.TempDir()
		var mono atomic.Int64
		st, err := buffer.Open(buffer.Config{Path: filepath.Join(dir, "edge.db"), Stamp: func() wire.Record { return wire.Record{Mono: mono.Add(1000)} }})
		require.NoError(b, err)
		body := wire.MustEncode(wire.Measurement{Type: "temperature", Value: 4.25, Unit: "CEL"})
		boot := st.Opened().Boot
		for n := 0; n < backlog; {
			var c buffer.Change
			for range 2000 {
				r, err := buffer.NewRecord(wire.Record{Kind: wire.KindTelemetry, Boot: boot, Mono: mono.Add(1000), Body: body})
				require.NoError(b, err)
				c.Records = append(c.Records, r)
				n++
			}
			require.NoError(b, st.Commit(context.Background(), c))
		}
		e := access.Secrets(box.Devices[0].Enrolled)
		key, err := signed.NewDeviceKey(e.DeviceCode, e.DeviceKey)
		require.NoError(b, err)
		receipt := func(env []byte) (a wire.Ack, err error) {
			return a, signed.PinnedKeys(e.Keys).Open(signed.ForReceipt, env, &a)
		}
		u, err := uplink.New(uplink.Config{Key: key, Receipt: receipt, DeviceCode: e.DeviceCode, Secret: e.DeviceSecret, Prefix: e.Prefix, Brokers: e.Brokers, Store: st,
			Status: func() wire.Status { return wire.Status{Instance: []byte("bench"), Boot: boot} }, Sample: func() wire.Sample { return wire.Sample{Boot: boot, Mono: mono.Load()} }, Handler: deaf{}})
		require.NoError(b, err)
		ctx, stop := context.WithCancel(context.Background())
		start := time.Now()
		done := make(chan struct{})
		go func() { defer close(done); _ = u.Run(ctx) }()
		for st.Backlog() != [2]uint64{} {
			require.Less(b, time.Since(start), 2*time.Minute, "backlog %v", st.Backlog())
			time.Sleep(5 * time.Millisecond)
		}
		took := time.Since(start)
		stop()
		<-done
		require.NoError(b, st.Close())
		b.ReportMetric(backlog/took.Seconds(), "records/s")
		b.ReportMetric(took.Seconds(), "s")
		payloads := kept.payloads() // before they are written elsewhere and forgotten
		b.ReportMetric(kept.replay(b, second.Store).Seconds()/took.Seconds(), "ratio")
		b.ReportMetric(alone.drain(b, payloads).Seconds()/took.Seconds(), "intake")
	}
	b.ReportMetric(0, "ns/op")
}

type deaf struct{}

func (deaf) Command([]byte)           {}
func (deaf) Time(uplink.TimeAnswer)   {}
func (deaf) Codes(uplink.CodesAnswer) {}
func (deaf) Config([]byte)            {}

// Figure 9 is measured over so many cabinets and rounds of each, every round at
// another door.
const (
	doorCabinets = 5
	doorRounds   = 42
)

// doorTimes are short waits, so that a run of 210 rounds takes two minutes.
var doorTimes = wire.Times{MinOpenMS: 300, SettleMS: 500}

// From the hook that falls in on the serial line to the first byte of the
// signed webhook, less the settle delay, which counts from the first poll that
// shows the door closed: figure 9. Five cabinets take turns of their own; each
// round is a delivery behind another door.
func BenchmarkDoorToWebhook(b *testing.B) {
	for b.Loop() {
		over := doorsToWebhooks(b)
		slices.Sort(over)
		b.ReportMetric(float64(len(over)), "rounds")
		b.ReportMetric(float64(over[len(over)/2])/1e6, "p50-ms")
		b.ReportMetric(float64(over[len(over)*99/100])/1e6, "p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

func doorsToWebhooks(b *testing.B) (over []time.Duration) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var mu sync.Mutex // guards got and over
	got := map[string]chan time.Time{}
	h := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		at := time.Now()
		w.WriteHeader(http.StatusNoContent)
		if q.Header.Get("X-Webhook-Event") != locker.EventDelivered {
			return
		}
		var body struct {
			Data struct {
				Delivery struct {
					Reference string `json:"reference_number"`
				} `json:"delivery"`
			} `json:"data"`
		}
		if json.NewDecoder(q.Body).Decode(&body) == nil {
			mu.Lock()
			c := got[body.Data.Delivery.Reference]
			mu.Unlock()
			if c != nil {
				c <- at
			}
		}
	})}
	go func() { _ = h.Serve(ln) }()
	defer h.Close()
	s, box, _ := upWith(b, server.SandboxConfig{Times: doorTimes}, doorCabinets, doorRounds, ln.Addr().String())
	settle := time.Duration(doorTimes.SettleMS) * time.Millisecond
	ctx, stop := context.WithCancel(b.Context())
	var agents, turns sync.WaitGroup
	defer agents.Wait()
	defer stop()
	for i := range doorCabinets {
		var hookIn [doorRounds + 1]atomic.Int64
		cfg := simboard.Config{Seed: uint64(i), Boards: []simboard.Board{{Name: "A", Line: "main", Family: lockbus.CU48, NoItems: true}}, OnFact: func(f simboard.Fact) {
			if f.Kind == simboard.HookIn {
				hookIn[f.Door].Store(f.At.UnixNano())
			}
		}}
		for n := uint(1); n <= doorRounds; n++ {
			cfg.Doors = append(cfg.Doors, simboard.Door{Number: n, Board: "A", Channel: n, Bounce: -1})
		}
		sim, err := simboard.New(cfg)
		require.NoError(b, err)
		defer sim.Close()
		a, err := agent.New(agent.Config{Dir: b.TempDir(), Secrets: access.Secrets(box.Devices[i].Enrolled), Lines: []board.LineConfig{{Name: "main", Port: "main", Boards: []board.BoardConfig{{Name: "A", Family: lockbus.CU48}}}},
			Open: func(_ context.Context, l board.LineConfig) (board.Port, error) {
				c, err := sim.Dial(l.Port)
				if err != nil {
					return nil, err
				}
				return board.ConnPort(c), nil
			}})
		require.NoError(b, err)
		agents.Go(func() { _ = a.Run(ctx) })
		turns.Go(func() {
			for (!a.Loop().State().Doors[1].Known || !s.Devices.Online(box.Devices[i].DeviceCode)) && ctx.Err() == nil {
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(time.Second + time.Duration(i)*170*time.Millisecond)
			for n := range doorRounds {
				ref := fmt.Sprintf("W-%d-%d", i, n)
				arrived := make(chan time.Time, 1)
				mu.Lock()
				got[ref] = arrived
				mu.Unlock()
				d, err := s.Lockers.Create(ctx, box.ProviderCaller, newDelivery(box.Devices[i].DeviceID, ref))
				if err != nil {
					b.Errorf("announce %s: %v", ref, err)
					return
				}
				out, err := s.Lockers.OpenDoors(ctx, box.ProviderCaller, locker.OpenInput{Delivery: locker.DeliveryKey(fmt.Sprint(d.Delivery.DeliveryID))})
				if err != nil || out.Pending {
					b.Errorf("open doors of %s: %v", ref, err)
					return
				}
				door := out.Opening.Compartments[0].Door
				if err := sim.CloseDoor(door); err != nil {
					b.Error(err)
					return
				}
				select {
				case at := <-arrived:
					mu.Lock()
					over = append(over, at.Sub(time.Unix(0, hookIn[door].Load()))-settle)
					mu.Unlock()
				case <-time.After(10 * time.Second):
					b.Errorf("no webhook of %s", ref)
					return
				}
			}
		})
	}
	turns.Wait()
	require.Len(b, over, doorCabinets*doorRounds)
	return over
}

// Ten thousand connected devices on one node: memory of each, and how long
// until all are back after the broker was gone: figure 11. Clients are pipes
// in the same process and count as well.
func BenchmarkManyDevices(b *testing.B) {
	const devices = 10_000
	for b.Loop() {
		s, box, _ := up(b, devices, "")
		memory := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapInuse + m.StackInuse
		}
		before := memory()
		var conns []*thin
		connect := func() time.Duration {
			start := time.Now()
			conns = dialAll(b, s, box.Devices, 512, nil)
			return time.Since(start)
		}
		first := connect()
		time.Sleep(time.Second)
		each := float64(memory()-before) / devices
		for _, c := range conns {
			c.close()
		}
		require.Eventually(b, func() bool { return s.Broker.Connected() == 0 }, time.Minute, 50*time.Millisecond)
		back := connect()
		require.Equal(b, devices, s.Broker.Connected())
		for _, c := range conns {
			c.close()
		}
		b.ReportMetric(each/1024, "KiB/device")
		b.ReportMetric(first.Seconds(), "s-first")
		b.ReportMetric(back.Seconds(), "s-back")
	}
	b.ReportMetric(0, "ns/op")
}

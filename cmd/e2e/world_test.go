package e2e

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mqttbroker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

// world is a cloud and its cabinets, all in one bubble of simulated time.
type world struct {
	// leavesOutgoing keeps couriers from collecting: a backup does not know what the cloud alone has
	// decided since, and the exception about what lies where is right then.
	leavesOutgoing bool
	launches       bool // agents are started by a launcher, and take updates
	t              testing.TB
	dir            string
	seed           uint64
	rnd            *rand.Rand
	box            server.Sandbox
	staff          cloud.Caller
	logs           *slog.Logger

	cloud    *server.Server
	broker   atomic.Pointer[mqttbroker.Broker] // the cloud's, for cabinets that dial while it is exchanged
	stopC    context.CancelFunc
	cloudRun sync.WaitGroup

	cabinets   []*cabinet
	simple     *httpBox     // a device without an agent, nil for none
	noise      atomic.Int64 // chance in a hundred that a payload is lost, repeated or late
	tap        *wiretap     // the broker's owner
	hooks      *hookReceiver
	people     sync.WaitGroup
	unscripted bool       // people do more than the script notes
	mu         sync.Mutex // guards all below
	acts       []truth.Act
	inHand     sync.Map // package: a courier took it out again
	cancels    []truth.Cancel
	replaced   []truth.Replacement
	strays     []truth.Stray
	cleared    []truth.Clear
	resets     []truth.Reset
	tests      []truth.ChannelTest
	rollouts   []rolledOut
	outages    []truth.Span
	forgotten  []truth.Span // from a backup to the restore
	tasks      []*task
	copies     []diskCopy
	effects    map[string]int // of actions, by their name and answer
}

// cabinet is one device: simulated hardware and its agent.
type cabinet struct {
	w     *world
	code  string
	sim   *simboard.Cabinet
	lines []board.LineConfig
	dir   string
	// scanners are at this device; scanned gets their results, nil for none.
	scanners []scanner.Config
	scanned  func(scanner.Result)
	// act gets what is to be shown; nil for nothing.
	act func(edgelocker.Action)

	upload   *upload      // of answers to diagnoses, and of programs in the other direction
	launcher *launcher    // of the agent; nil: it takes no updates
	forges   atomic.Int64 // parts of programs that are changed on their way to it

	agent *agent.Agent
	stop  context.CancelFunc
	run   sync.WaitGroup

	system   func() time.Time // the machine's clock; nil is true
	maxBytes int64            // of the store; 0 is the usual limit
	trial    time.Duration    // of new addresses and keys; 0 is the usual time
	reach    func(broker *url.URL) error
	disk     func() error // under the store; nil is a healthy one

	stray   atomic.Pointer[stray] // set while the hardware is switched on although it was cut off
	reboot  atomic.Bool           // a command asks for another start of the agent
	sensors bool                  // item sensors are wired
	dead    atomic.Bool           // killed: nothing of the agent reaches disk, line or network
	cut     atomic.Bool           // the network to the cloud
	mu      sync.Mutex            // guards all below
	conns   []net.Conn
	ports   []net.Conn // to the boards
	pulses  []truth.Pulse
	boots   []truth.Boot
	trouble []truth.Span
	removed []truth.Span  // compartments out of the layout
	rolled  bool          // its store was exchanged for a copy
	stays   map[uint]bool // doors that are left open until after the session; guarded by w.mu
	// unsentSince is since when the store of the last agent that ended held what the
	// cloud did not have, or what was under way.
	unsentSince time.Time
	recorded    uint64 // by agents that have ended
}

const doors = 4

var families = []lockbus.Family{lockbus.CU48, lockbus.CU16, lockbus.Preamble}

// newWorld has cabinets, and further devices that do not run.
func newWorld(t testing.TB, seed uint64, cabinets int, more ...server.SandboxDevice) *world {
	t.Helper()
	return makeWorld(t, seed, cabinets, false, more...)
}

// makeWorld is newWorld, whose agents may take updates.
func makeWorld(t testing.TB, seed uint64, cabinets int, launches bool, more ...server.SandboxDevice) *world {
	t.Helper()
	w := &world{launches: launches, t: t, dir: t.TempDir(), seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), effects: map[string]int{}, logs: slog.New(slog.DiscardHandler), hooks: newHookReceiver()}
	w.tap = &wiretap{w: w, rnd: rand.New(rand.NewPCG(seed, 3)), tried: map[string]int{}, up: map[string][]message{}, down: map[string][]message{}, live: map[string]int64{}}
	storetest.WriteMigrated(t, filepath.Join(w.dir, "cloud"))
	if testing.Verbose() && os.Getenv("POSTERN_E2E_LOG") != "" {
		w.logs = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w.startCloud()
	cfg := server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, WebhookURL: hookAddress}
	for i := range cabinets {
		d := server.SandboxDevice{Code: fmt.Sprintf("CAB-%d", i+1), Name: fmt.Sprintf("Cabinet %d", i+1), Type: "smart_locker"}
		for n := uint(1); n <= doors; n++ {
			l := wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: "M"}
			if n > 1 && n+1 >= doors { // for parcels that do not fit
				l.Size = "L"
			}
			d.Layout = append(d.Layout, l)
		}
		cfg.Devices = append(cfg.Devices, d)
	}
	cfg.Devices = append(cfg.Devices, more...)
	var err error
	w.box, err = w.cloud.Sandbox(t.Context(), cfg)
	require.NoError(t, err)
	w.staff = cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: w.box.ProviderCaller.Account.BusinessID, Type: cloud.ClientAdmin}}
	if launches {
		w.offerVersions()
	}
	for i := range cabinets {
		w.cabinets = append(w.cabinets, w.newCabinet(i, seed))
	}
	return w
}

func (w *world) newCabinet(i int, seed uint64) *cabinet {
	family := families[(i+int(seed/4))%len(families)]
	c := &cabinet{w: w, stays: map[uint]bool{}, code: w.box.Devices[i].DeviceCode, dir: filepath.Join(w.dir, w.box.Devices[i].DeviceCode)}
	c.sensors = seed%4 == 3 && family.HasItems()
	cfg := simboard.Config{Boards: []simboard.Board{{Name: "A", Line: "main", Family: family, NoItems: !c.sensors}}, Seed: seed + uint64(i)}
	for n := uint(1); n <= doors; n++ {
		cfg.Doors = append(cfg.Doors, simboard.Door{Number: n, Board: "A", Channel: n})
	}
	var err error
	c.sim, err = simboard.New(cfg)
	require.NoError(w.t, err)
	if w.launches {
		c.launcher = &launcher{c: c}
	}
	c.lines = []board.LineConfig{{Name: "main", Port: "main", Boards: []board.BoardConfig{{Name: "A", Family: family, Items: c.sensors}}}}
	c.start()
	return c
}

// start starts the cabinet's agent.
func (c *cabinet) start() {
	c.w.t.Helper()
	secrets := c.w.secrets(c.code)
	c.dead.Store(false)
	began := time.Now()
	cfg := agent.Config{Dir: c.dir, Secrets: secrets, Lines: c.lines, Scanners: c.scanners, Scanned: c.scanned, Version: "test", Log: c.w.logs.With("cabinet", c.code),
		System: c.system, MaxBytes: c.maxBytes, Trial: c.trial, Disk: c.onDiskOf(c.disk), Trace: c.trace,
		Open: func(_ context.Context, l board.LineConfig) (board.Port, error) {
			conn, err := c.plug(l.Port)
			if err != nil {
				return nil, err
			}
			return board.ConnPort(conn), nil
		},
		Act: func(x edgelocker.Action) {
			if show, ok := x.(edgelocker.Show); ok && show.What == "reboot" {
				c.reboot.Store(true)
			}
			if c.act != nil {
				c.act(x)
			}
		},
		Dial: c.dial, Origin: c.origin()}
	if c.launcher != nil {
		c.launcher.choose(&cfg)
	}
	a, err := agent.New(cfg)
	for range 120 { // whatever supervises the program starts it again
		if err == nil {
			break
		}
		time.Sleep(time.Second)
		began = time.Now()
		a, err = agent.New(cfg)
	}
	require.NoError(c.w.t, err)
	opened := a.Store().Opened()
	c.mu.Lock()
	boot := truth.Boot{N: opened.Boot, Start: began, Lost: len(c.boots) > 0 && (opened.Created != "" || c.rolled)}
	if c.system != nil {
		boot.Ahead = time.Until(c.system()).Round(time.Second)
	}
	c.boots = append(c.boots, boot)
	c.rolled = false
	c.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	c.mu.Lock()
	c.agent, c.stop = a, stop
	c.mu.Unlock()
	c.run.Go(func() {
		if err := a.Run(ctx); err != nil && !c.dead.Load() {
			c.w.t.Errorf("agent %s: %v", c.code, err)
		}
	})
}

var errCut = errors.New("the network is cut")

// dial connects the agent to the cloud through a pipe that can be cut.
func (c *cabinet) dial(_ context.Context, to *url.URL) (net.Conn, error) {
	if c.reach != nil {
		if err := c.reach(to); err != nil {
			return nil, err
		}
	}
	broker := c.w.broker.Load()
	if c.cut.Load() || c.dead.Load() || broker == nil {
		return nil, errCut
	}
	here, there := net.Pipe()
	go func() { _ = broker.ServeConn(newBuffered(there)) }()
	c.mu.Lock()
	c.conns = append(c.conns, here)
	c.mu.Unlock()
	if x := c.stray.Load(); x != nil {
		return x.watch(here), nil
	}
	return here, nil
}

// buffered writes to a pipe as to a socket: what the other side has not read yet
// waits. Without that both sides can wait in a write for the other one to read,
// one of them holding a lock, for which simulated time does not go on.
type buffered struct {
	net.Conn
	mu      sync.Mutex
	waiting []byte
	err     error
	wake    chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func newBuffered(c net.Conn) *buffered {
	b := &buffered{Conn: c, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	go b.run()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.waiting = append(b.waiting, p...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (b *buffered) run() {
	for {
		select {
		case <-b.closed:
			return
		case <-b.wake:
		}
		b.mu.Lock()
		p := b.waiting
		b.waiting = nil
		b.mu.Unlock()
		if _, err := b.Conn.Write(p); err != nil {
			b.mu.Lock()
			b.err = err
			b.mu.Unlock()
			return
		}
	}
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}

// setCut cuts or restores the network.
func (c *cabinet) setCut(cut bool) {
	c.cut.Store(cut)
	if !cut {
		return
	}
	c.drop()
}

// drop breaks the connection once.
func (c *cabinet) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.conns {
		_ = x.Close()
	}
	c.conns = nil
}

// restart stops the agent in an orderly way and starts it again.
func (c *cabinet) restart(off time.Duration) {
	c.halt()
	time.Sleep(off)
	c.start()
}

func (c *cabinet) halt() {
	c.stop()
	c.run.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorded += c.agent.Recorded.Load()
	b := &c.boots[len(c.boots)-1]
	left := c.agent.Store().Backlog()
	b.End, b.Unsent, c.unsentSince = time.Now(), left[0]+left[1], b.Start
}

func (w *world) startCloud() {
	w.t.Helper()
	s, err := server.New(context.Background(), server.Config{Dir: filepath.Join(w.dir, "cloud"), Node: "one", Brokers: []string{"tcp://cloud:1883"}, Log: w.logs.With("side", "cloud"),
		ReleaseKeys: []ed25519.PublicKey{releaseKey().Public().(ed25519.PublicKey)}, WebhookHTTP: true, WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, WebhookPorts: []uint16{8080}, WebhookDial: w.hooks.dial,
		WebhookWaits: []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute},
		WrapDevices:  func(d mqttbroker.Devices) mqttbroker.Devices { w.tap.setDevices(d); return tappedUp{d, w.tap} },
		WrapSender:   func(s device.Sender) device.Sender { w.tap.setSender(s); return tappedDown{s, w.tap} }})
	require.NoError(w.t, err)
	ctx, stop := context.WithCancel(context.Background())
	w.mu.Lock()
	w.cloud, w.stopC = s, stop
	w.mu.Unlock()
	w.broker.Store(s.Broker)
	w.cloudRun.Go(func() {
		if err := s.Run(ctx, server.Listeners{}); err != nil {
			w.t.Errorf("cloud: %v", err)
		}
	})
}

// server is the cloud of this moment.
func (w *world) server() *server.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cloud
}

func (w *world) stopCloud() {
	w.stopC()
	w.cloudRun.Wait()
	for _, c := range w.cabinets {
		c.drop()
	}
}

// close ends everything.
func (w *world) close() {
	w.people.Wait()
	if w.simple != nil {
		w.simple.powerOff()
	}
	for _, c := range w.cabinets {
		c.halt()
		c.sim.Close()
		c.drop()
	}
	w.stopCloud()
	w.hooks.close()
}

func (w *world) create(ref string, device int, packages ...string) locker.DeliveryBody {
	w.t.Helper()
	in := locker.CreateInput{ReferenceNumber: ref, DeviceID: w.box.Devices[device].DeviceID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}}
	for _, p := range packages {
		in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: p, Size: "M"})
	}
	out, err := w.cloud.Lockers.Create(context.Background(), w.box.ProviderCaller, in)
	require.NoError(w.t, err)
	return out.Delivery
}

func (w *world) find(ref string) locker.DeliveryBody {
	w.t.Helper()
	out, err := w.cloud.Lockers.Find(context.Background(), w.box.ProviderCaller, locker.DeliveryKey("ref:"+ref))
	require.NoError(w.t, err)
	return out.Delivery
}

func (w *world) open(ref string) (locker.OpenOutput, error) {
	return w.cloud.Lockers.OpenDoors(context.Background(), w.box.ProviderCaller, locker.OpenInput{Delivery: locker.DeliveryKey("ref:" + ref)})
}

// awaits waits for a condition in simulated time.
func (w *world) awaits(what string, limit time.Duration, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	require.FailNow(w.t, "not in time: "+what)
}

// secrets are what the device's file holds.
func (w *world) secrets(code string) access.Secrets {
	for _, d := range w.box.Devices {
		if d.DeviceCode == code {
			return access.Secrets(d.Enrolled)
		}
	}
	require.FailNow(w.t, "no such device: "+code)
	return access.Secrets{}
}

// effect counts what an action came to: done, or why not.
func (w *world) effect(action string, err error) {
	how := "done"
	if err != nil {
		how = cmp.Or(refusal(err), "no answer")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[action+" "+how]++
}

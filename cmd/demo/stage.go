package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge/board"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

// Times of the demo: people watch, so a door session is short.
const (
	session = 16 * time.Second
	settle  = 800 * time.Millisecond
)

// stage is everything the demo puts up.
type stage struct {
	flags flags
	out   io.Writer
	rnd   *rand.Rand
	begun time.Time

	mu sync.Mutex // guards out and acts

	dir      string
	own      bool // dir is ours to remove
	http     string
	box      server.Sandbox
	cloud    *nodes
	cabinets []*cabinet
	receiver *receiver
	shop     *shop
	client   *http.Client
	api      *api // of the partner
	cancel   context.CancelFunc
	refs     int
	talks    []*talk
	guest    *guest      // nil with --once
	left     []*parcel   // waiting to be collected
	acts     []truth.Act // codes that people of the script typed; guarded by mu
}

// script is what people, cables and power do on one day.
type script struct{ *stage }

// reckoning compares at the end what everybody says.
type reckoning struct{ *stage }

// cabinet is one device with its simulated boards.
type cabinet struct {
	s     *stage
	code  string
	name  string
	doors []uint
	sizes map[uint]string // S, M or L, by door
	sim   *simboard.Cabinet
	proc  *process
	power *power
	cable *cable
	kiosk string
	id    int64
}

// cast are the devices of the demo.
var cast = []struct {
	code, name, kind string
	family           lockbus.Family
	doors            uint
	tty              bool // boards hang on a pseudo-terminal, not on TCP
}{
	{"FRONT-01", "Front St Lobby", "smart_locker", lockbus.CU48B, 12, true},
	{"YARD-02", "Old Yard", "smart_locker", lockbus.Preamble, 8, false},
	{"DESK-03", "Reception Desk", "kiosk", lockbus.CU16, 4, false},
}

func newStage(f flags, out io.Writer) *stage {
	return &stage{flags: f, out: out, rnd: rand.New(rand.NewPCG(f.Seed, 42)), begun: time.Now(), client: &http.Client{Timeout: 40 * time.Second}}
}

// logStory tells the story, one line a happening.
func (s *stage) logStory(who, format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%7.1fs  %-10s %s\n", time.Since(s.begun).Seconds(), who, fmt.Sprintf(format, a...))
}

func (s *stage) build(ctx context.Context) error {
	// Boards outlive a Ctrl-C: what is on its way arrives first.
	var boards context.Context
	boards, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.folder(); err != nil {
		return err
	}
	var err error
	at := s.flags.Listen
	if s.flags.Once && at == "127.0.0.1:8080" { // no viewer: days that are played side by side do not meet
		at = "127.0.0.1:0"
	}
	if s.http, err = free(at); err != nil {
		return err
	}
	mqtt, err := free("")
	if err != nil {
		return err
	}
	var ws string
	if !s.flags.Cluster { // the balancer has no address for browsers
		if ws, err = free(""); err != nil {
			return err
		}
	}
	if s.receiver, err = newReceiver(s); err != nil {
		return err
	}
	if s.shop, err = newShop(s); err != nil {
		return err
	}
	if s.cloud, err = newNodes(ctx, s, childConfig{Role: "cloud", Node: "demo", Dir: filepath.Join(s.dir, "cloud"), Log: filepath.Join(s.dir, "cloud.log"), HTTP: s.http, MQTT: mqtt, Base: s.http, Broker: mqtt, WebSocket: ws, Database: s.flags.Database,
		WebhookPorts: []uint16{s.receiver.port(), s.shop.port()}, Session: session, Waits: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second}}, s.flags.Cluster); err != nil {
		return err
	}
	if err := s.furnish(ctx); err != nil {
		return err
	}
	s.api = s.as(s.box.Provider.Token)
	if err := s.cloud.start(); err != nil {
		return err
	}
	for i := range cast {
		if err := s.raise(boards, i, mqtt); err != nil {
			return err
		}
	}
	if err := s.awaits(ctx, "the cloud and all cabinets", 45*time.Second, func() bool {
		for _, c := range s.cabinets {
			if c.missing(ctx) != "" {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	if err := s.letTalk(ctx); err != nil {
		return err
	}
	if err := s.openCarrier(ctx); err != nil {
		return err
	}
	if err := s.shop.open(ctx); err != nil || s.flags.Once {
		return err
	}
	return s.welcome(ctx)
}

func (s *stage) folder() (err error) {
	if s.dir = s.flags.Dir; s.dir == "" {
		s.own = true
		if s.dir, err = os.MkdirTemp("", "postern-demo-"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		return nil
	}
	if _, err := os.Stat(s.credentials()); err == nil {
		return fmt.Errorf("%s holds an earlier demo; name an empty folder", s.dir)
	}
	return os.MkdirAll(s.dir, 0o700)
}

// furnish makes the business, its provider and its devices.
func (s *stage) furnish(ctx context.Context) error {
	cloud, err := s.openCloud(ctx)
	if err != nil {
		return err
	}
	cfg := server.SandboxConfig{BaseURL: "http://" + s.http, WebhookURL: s.receiver.at(hookPath), Passwords: true,
		Codes: wire.CodeParams{MemoryKiB: 8192, Passes: 1},
		Times: wire.Times{SettleMS: uint32(settle / time.Millisecond), SessionS: uint32(session / time.Second), PollIdleMS: 300}}
	for i, c := range cast {
		d := server.SandboxDevice{Code: c.code, Name: c.name, Type: c.kind, Address: strconv.Itoa(120+i) + " Front St W, Toronto ON", PostalCode: "M5J 2L7", Country: "CA", Latitude: 43.6446, Longitude: -79.3849 + float64(i)/100}
		for n := uint(1); n <= c.doors; n++ {
			d.Layout = append(d.Layout, wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: sizeOf(n), Display: n, Label: fmt.Sprintf("A-%d", n)})
		}
		cfg.Devices = append(cfg.Devices, d)
	}
	cfg.Devices = append(cfg.Devices, server.SandboxDevice{Code: "TEST-04", Name: "Test cabinet", Type: "smart_locker", Test: true, Address: "124 Front St W, Toronto ON", PostalCode: "M5J 2L7", Country: "CA", Latitude: 43.6446, Longitude: -79.3449,
		Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M", Display: 1, Label: "A-1"}}})
	s.box, err = cloud.Sandbox(ctx, cfg)
	s.receiver.secret(hookPath, s.box.Provider.WebhookSecret)
	if err = errors.Join(err, cloud.Broker.Close(), cloud.Store.Close()); err != nil {
		return err
	}
	b, err := json.MarshalIndent(s.box, "", "  ")
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	return os.WriteFile(s.credentials(), append(b, '\n'), 0o600)
}

// openCloud opens what the nodes serve while none of them runs.
func (s *stage) openCloud(ctx context.Context) (*server.Server, error) {
	cfg, err := s.cloud.cfg.cloudConfig()
	if err != nil {
		return nil, err
	}
	return server.New(ctx, cfg)
}

// sizeOf is the size of a compartment by its door.
func sizeOf(door uint) string { return []string{"M", "S", "M", "L"}[door%4] }

// credentials is the file with the sandbox's tokens.
func (s *stage) credentials() string { return filepath.Join(s.dir, "sandbox.json") }

// raise puts up one device: boards, cable, agent.
func (s *stage) raise(ctx context.Context, i int, mqtt string) error {
	r := cast[i]
	c := &cabinet{s: s, code: r.code, name: r.name, id: int64(s.box.Devices[i].DeviceID), sizes: map[uint]string{}}
	c.power = &power{c: c}
	cfg := simboard.Config{Boards: []simboard.Board{{Name: "A", Line: "main", Family: r.family}}, Seed: s.flags.Seed + uint64(i), OnFact: c.fact}
	for n := uint(1); n <= r.doors; n++ {
		c.doors, c.sizes[n] = append(c.doors, n), sizeOf(n)
		cfg.Doors = append(cfg.Doors, simboard.Door{Number: n, Board: "A", Channel: n})
	}
	var err error
	if c.sim, err = simboard.New(cfg); err != nil {
		return fmt.Errorf("simulate %s: %w", r.code, err)
	}
	port, err := c.wire(ctx, r.tty)
	if err != nil {
		return err
	}
	if c.cable, err = newCable(mqtt); err != nil {
		return err
	}
	if c.kiosk, err = free(""); err != nil {
		return err
	}
	secrets, err := c.cable.secrets(filepath.Join(s.dir, "cloud", s.box.Devices[i].SecretsFile))
	if err != nil {
		return err
	}
	c.proc = newChild(r.code, childConfig{Role: "edge", Dir: filepath.Join(s.dir, r.code), Log: filepath.Join(s.dir, r.code+".log"), Secrets: secrets, Kiosk: c.kiosk, Pulses: c.pulses(),
		Lines: []board.LineConfig{{Name: "main", Port: port, Boards: []board.BoardConfig{{Name: "A", Family: r.family, Items: r.family.HasItems()}}}}})
	s.cabinets = append(s.cabinets, c)
	return c.proc.start()
}

// wire connects the simulated boards to a port that the agent can open.
func (c *cabinet) wire(ctx context.Context, tty bool) (port string, err error) {
	if tty {
		if pty, err := simboard.OpenPTY(); err == nil {
			go func() { _ = c.sim.ServeLine(ctx, "main", pty) }()
			return pty.Path, nil
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for %s: %w", c.code, err)
	}
	go func() { _ = c.sim.ServeTCP(ctx, "main", ln) }()
	return "tcp://" + ln.Addr().String(), nil
}

// fact shows what physically happens.
func (c *cabinet) fact(f simboard.Fact) {
	switch f.Kind {
	case simboard.Opened, simboard.Closed, simboard.ItemIn, simboard.ItemOut:
		go c.s.logStory(c.code, "door %d %s", f.Door, map[simboard.FactKind]string{simboard.Opened: "swings open", simboard.Closed: "is closed",
			simboard.ItemIn: "gets a parcel", simboard.ItemOut: "is emptied"}[f.Kind])
	}
}

// errNotIn is that of what did not come in time.
var errNotIn = errors.New("not in")

func (s *stage) awaits(ctx context.Context, what string, limit time.Duration, ok func() bool) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ok() {
			return nil
		}
	}
	return fmt.Errorf("%s: %w %v", what, errNotIn, limit)
}

// greet prints where to look.
func (s *stage) greet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, `
Postern is up.

  Console   http://%s/console    (log in as %s, password %s)
  API       http://%s/api/v1     (provider token in %s)
  Webhooks  http://%s/console/webhooks    (deliveries, their attempts and failures; press "Send again" there)
  Messages  http://%s/console/chats    (what drivers, recipients and staff say about orders, live)
  Agents    http://%s/mcp        (tools; what they may not decide waits at /mcp-approvals)
`, s.http, s.box.Admin.Email, s.box.Admin.Password, s.http, s.credentials(), s.http, s.http, s.http)
	for _, c := range s.cabinets {
		fmt.Fprintf(s.out, "  Cabinet   http://%s            %s, %d doors\n", c.kiosk, c.name, len(c.doors))
	}
	fmt.Fprintf(s.out, "  Parcels   http://%s/track/...  (numbers as they appear below)\n\n", s.http)
	if s.flags.Cluster {
		fmt.Fprintf(s.out, "  Three nodes serve behind a balancer; their logs are in %s. Kill any of them: kill -9 PROCESS. It is started again after %s.\n\n%s\n", s.dir, restart, s.cloud.table())
	}
	if s.guest != nil {
		fmt.Fprintf(s.out, "  Touch it  http://%s/%s    (doors, locks, boxes, network and power of each cabinet, as they physically are)\n", s.guest.addr, s.cabinets[0].code)
		fmt.Fprintf(s.out, "  Type \"cut %s\" to cut a cabinet off, \"mend %s\" to connect it again. Ctrl-C ends the demo and compares.\n\n", s.cabinets[0].code, s.cabinets[0].code)
		fmt.Fprintf(s.out, "  Try it    %s\n\n", s.guest.invitation())
	}
}

// close ends everything that the demo started, and only that.
func (s *stage) close() {
	if s.cancel == nil {
		return
	}
	if s.guest != nil {
		s.guest.close()
	}
	var wg sync.WaitGroup
	for _, c := range s.cabinets {
		wg.Go(func() {
			if c.proc != nil {
				c.proc.end(syscall.SIGTERM)
			}
		})
	}
	wg.Wait()
	if s.cloud != nil {
		if err := s.cloud.close(); err != nil {
			s.logStory("database", "%v", err)
		}
	}
	s.cancel()
	for _, c := range s.cabinets {
		c.sim.Close()
		c.cable.close()
	}
	if s.receiver != nil {
		s.receiver.close()
	}
	if s.shop != nil {
		s.shop.close()
	}
	if s.own {
		_ = os.RemoveAll(s.dir)
	}
}

package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/postgres"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/kiosk"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

var (
	killRounds = flag.Int("kill-rounds", countRounds(8), "how often each side is killed")
	killSeed   = flag.Uint64("kill-seed", 0, "seed of the kill tests of orders and webhooks; 0 draws one")
)

// The three built programs (boards, agent, cloud), each killed without warning at
// random moments of an opening, and the agent kept from running, on real files and real TCP. People put parcels in
// and take them out all the while. The oracle judges by the boards' own facts,
// which outlive every kill: which coil fired and who allowed it, which parcel
// lies where, what the cabinet, the cloud and the webhooks say of it.
func TestKilledProgramsTellTheTruth(t *testing.T) {
	t.Parallel()
	first, last := ring.Rounds(5, 1000)
	bin := build(t)
	for from := first; from <= last; from += roundsPerWorld {
		to := min(from+roundsPerWorld-1, last)
		t.Run(fmt.Sprintf("rounds %d-%d", from, to), func(t *testing.T) {
			s := newSlaughter(t, bin, uint64(from))
			s.startSim()
			s.startCloud()
			s.startEdge()
			s.awaits("boards are read and codes are held", func(v kiosk.View) bool { return v.Online && v.CodeList >= uint64(2*len(s.parcels)) && known(v) })
			for n := from; n <= to; n++ {
				s.rnd = rand.New(rand.NewPCG(uint64(n), 11))
				for _, side := range s.rnd.Perm(len(sides)) {
					s.round(sides[side])
				}
			}
			s.calm()
			s.judge()
		})
	}
}

// roundsPerWorld bounds how many codes one cabinet's list holds.
const roundsPerWorld = 40

// parcelsPerWorld are enough for every round.
const parcelsPerWorld = 5*roundsPerWorld + 10

// killDoors are enough for all compartments that stay taken because it was not
// seen what became of their deposit.
const killDoors = 48

// sides are what happens in a round, each once: a program is killed, or the agent stands still
// for as long as a person may need at a door.
var sides = []string{"edge", "cloud", "boards", "standstill"}

// parcel is one delivery with its codes, as the test knows them.
type parcel struct {
	number, tracking string
	id               cloud.DeliveryID
	delivery, pickup string
	tries            int // to collect it, in vain
}

// slaughter is the programs and what the test knows of them.
type slaughter struct {
	t     *testing.T
	rnd   *rand.Rand
	dir   string
	bin   programs
	later programs // of a later release, with which nodes are restarted; "" before it is there

	device      cloud.DeviceID
	provider    cloud.ProviderID
	mqtt, lines string // addresses
	hooks       *hookReceiver
	hookURL     string
	parcels     []parcel
	next        int      // parcel to be deposited
	inside      []parcel // deposited, or perhaps so

	sim, edge *process
	nodes     []*killNode // of the cloud
	database  string      // of several nodes; empty: one node with a file
	primary   *postgres.Server
	standby   *postgres.Server
	token     string          // of the provider
	admin     string          // token of the business's administrator
	front     string          // where the balancer serves HTTP
	opened    []time.Duration // from the partner's call to the open door
	refused   int             // calls that were answered with a refusal
	afar      []opened        // deposits whose doors the partner opened
	hands     *hands
	page      string
	boots     []truth.Boot
	late      map[uint]string // what a person does as soon as a door opens that kept them waiting, by door
	mu        sync.Mutex      // guards all below
	acts      []truth.Act
	trouble   []truth.Span // of the boards
	outages   []truth.Span // of the cloud
}

// killNode is a process of the cloud with its addresses.
type killNode struct {
	name, http, mqtt string // http empty: it serves none
	admin            string // address of its metrics, "" for the usual one
	bin              programs
	env              []string
	*process
}

func newSlaughter(t *testing.T, bin programs, seed uint64) *slaughter {
	mqtt := freeAddress(t)
	return newSlaughterOf(t, bin, seed, parcelsPerWorld, "", mqtt, &killNode{mqtt: mqtt, admin: freeAddress(t)})
}

// newSlaughterOf is newSlaughter with the parcels that it makes beforehand, the nodes of
// the cloud, and where the cabinet reaches them.
func newSlaughterOf(t *testing.T, bin programs, seed uint64, parcels int, database, mqtt string, nodes ...*killNode) *slaughter {
	s := &slaughter{t: t, rnd: rand.New(rand.NewPCG(seed, 11)), dir: t.TempDir(), bin: bin, database: database, nodes: nodes, mqtt: mqtt, lines: freeAddress(t), hooks: &hookReceiver{}, late: map[uint]string{}}
	receiver := httptest.NewServer(s.hooks)
	t.Cleanup(receiver.Close)
	s.hookURL = receiver.URL
	s.prepare(parcels)
	return s
}

// prepare makes a cabinet and parcels enough for every round, and learns their
// codes, which no interface gives away.
func (s *slaughter) prepare(parcels int) {
	srv := s.open()
	layout := make([]wire.LayoutDoor, killDoors)
	cfg := simboard.Config{Boards: []simboard.Board{{Name: "A", Line: "main", NoItems: true, UnlockTime: 100 * time.Millisecond}}}
	for i := range layout {
		layout[i] = wire.LayoutDoor{Door: uint(i + 1), Board: "A", Channel: uint(i + 1), Size: "M"}
		cfg.Doors = append(cfg.Doors, simboard.Door{Number: uint(i + 1), Board: "A", Channel: uint(i + 1)})
	}
	// Quick doors, so that a round takes a second; a reset of the boards shows 300 ms
	// of open doors.
	times := wire.Times{DebounceMS: 60, MinOpenMS: 450, OpenWaitMS: 700, SettleMS: 150, SessionS: 8, PulseMS: 100, PulseGapMS: 50, PollIdleMS: 100}
	box, err := srv.Sandbox(s.t.Context(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Times: times, WebhookURL: s.hookURL,
		Devices: []server.SandboxDevice{{Code: "CAB-1", Name: "Cabinet", Type: "smart_locker", Layout: layout}}})
	require.NoError(s.t, err)
	s.token, s.admin = box.Provider.Token, box.Admin.Token
	s.device, s.provider = box.Devices[0].DeviceID, box.ProviderCaller.Provider.ID
	unreserved := false
	for i := range parcels {
		tracking := fmt.Sprintf("PK-%d", i)
		out, err := srv.Lockers.Create(s.t.Context(), box.ProviderCaller, locker.CreateInput{ReferenceNumber: fmt.Sprintf("R-%d", i), DeviceID: s.device, Reserve: &unreserved,
			Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: tracking, Size: "M"}}})
		require.NoError(s.t, err)
		d, err := srv.Store.FindDelivery(s.t.Context(), s.provider, out.Delivery.DeliveryID)
		require.NoError(s.t, err)
		raw, err := srv.Box.Open("delivery-codes", d.SealedCodes)
		require.NoError(s.t, err)
		var codes locker.Codes
		require.NoError(s.t, json.Unmarshal(raw, &codes))
		s.parcels = append(s.parcels, parcel{id: d.ID, number: d.Number, tracking: tracking, delivery: codes.Delivery, pickup: codes.Pickup})
	}
	require.NoError(s.t, errors.Join(srv.Broker.Close(), srv.Store.Close()))
	sim, err := json.Marshal(map[string]any{"seed": s.rnd.Uint64() >> 12, "boards": []map[string]any{{"name": "A", "line": "main", "family": "cu48", "no_items": true, "unlock_time": "100ms"}},
		"doors": doorList(cfg.Doors)})
	require.NoError(s.t, err)
	writeFile(s.t, filepath.Join(s.dir, "boards.yaml"), string(sim))
}

func doorList(doors []simboard.Door) (out []map[string]any) {
	for _, d := range doors {
		out = append(out, map[string]any{"number": d.Number, "board": d.Board, "channel": d.Channel})
	}
	return out
}

// open opens the cloud's data in this process, while no program has it.
func (s *slaughter) open() *server.Server {
	srv, err := server.New(s.t.Context(), server.Config{Dir: filepath.Join(s.dir, "cloud"), Database: s.database, Brokers: []string{"tcp://" + s.mqtt}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	return srv
}

func (s *slaughter) startSim() {
	s.sim, s.hands = s.bin.startHands(s.t, "firmware-sim", "--config", filepath.Join(s.dir, "boards.yaml"), "--tcp", s.lines, "--truth", filepath.Join(s.dir, "truth.jsonl"), "--stdin", "--quiet")
}

func (s *slaughter) startCloud() {
	for _, n := range s.nodes {
		s.startNode(n)
	}
}

func (s *slaughter) startNode(n *killNode) {
	n.process = cmp.Or(n.bin, s.bin).startIn(s.t, n.env, "cloud", s.nodeArgs(n)...)
}

func (s *slaughter) nodeArgs(n *killNode) []string {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.hookURL, "http://"))
	require.NoError(s.t, err)
	args := []string{"--data", filepath.Join(s.dir, "cloud"), "--listen", n.http, "--mqtt-listen", n.mqtt,
		"--webhook-http", "--webhook-allow-network", "127.0.0.0/8", "--webhook-allow-port", port}
	if n.admin != "" {
		args = append(args, "--admin-listen", n.admin)
	}
	if s.database == "" {
		return args
	}
	name := filepath.Join(s.dir, n.name+".yaml")
	writeFile(s.t, name, "proxies: {trusted: [127.0.0.1], protocol: [listen, mqtt.listen]}\nstop: {announce: 2500ms, drain: 1s}\n")
	return append(args, "--config", name, "--database", s.database, "--node", n.name)
}

func (s *slaughter) startEdge() {
	name := filepath.Join(s.dir, "edge.yaml")
	writeFile(s.t, name, fmt.Sprintf("data: %s\nsecrets: %s\npulse_trace: %s\nkiosk: {listen: '127.0.0.1:0'}\nlines:\n  - {name: main, port: 'tcp://%s', boards: [{name: A, family: cu48}]}\n",
		filepath.Join(s.dir, "edge"), filepath.Join(s.dir, "cloud", "devices", "CAB-1.json"), filepath.Join(s.dir, "pulses.jsonl"), s.lines))
	s.boots = append(s.boots, truth.Boot{N: uint64(len(s.boots) + 1), Start: time.Now()})
	s.edge = s.bin.start(s.t, "edge", "--config", name)
	s.page = "http://" + s.edge.awaitLog(s.t, "the local page is served", "addr")
}

// spans are how long after people began the kill may come: while an intent is
// written, while a door opens and is used, while the opening settles.
var spans = []time.Duration{15 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond}

// round does some door work, kills one side in the middle of it, and starts it
// again.
func (s *slaughter) round(side string) {
	s.awaits("doors are known", known)
	var work sync.WaitGroup
	tries := s.choose()
	moment := time.Duration(s.rnd.Int64N(int64(spans[s.rnd.IntN(len(spans))])))
	work.Go(func() { s.use(tries) })
	defer work.Wait() // also of a round that fails
	time.Sleep(moment)
	span := truth.Span{At: time.Now(), What: side}
	switch side {
	case "edge":
		s.edge.kill(s.t)
		s.boots[len(s.boots)-1].End = time.Now()
		work.Wait()
		s.startEdge()
	case "standstill":
		require.NoError(s.t, s.edge.cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(300*time.Millisecond + time.Duration(s.rnd.Int64N(int64(1500*time.Millisecond))))
		require.NoError(s.t, s.edge.cmd.Process.Signal(syscall.SIGCONT))
		work.Wait()
	case "cloud":
		n := s.nodes[s.rnd.IntN(len(s.nodes))]
		n.kill(s.t)
		work.Wait()
		s.startNode(n)
	case "rolling":
		n := s.nodes[s.rnd.IntN(len(s.nodes))]
		s.awaitServing(n)
		n.stop(s.t)
		n.bin = cmp.Or(s.later, n.bin)
		s.startNode(n)
		work.Wait()
	case "namesake":
		s.startNamesake()
		work.Wait()
	case "database":
		s.crashDatabase()
		work.Wait()
	case "failover":
		s.failOver()
		work.Wait()
	case "boards":
		s.sim.kill(s.t)
		if s.rnd.IntN(2) == 0 {
			time.Sleep(time.Duration(s.rnd.Int64N(int64(time.Second))))
		}
		s.startSim()
		work.Wait()
	}
	span.Until = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch side {
	case "standstill": // makes nothing forget, and hides no door from a record
	case "edge", "boards":
		s.trouble = append(s.trouble, span)
	default:
		s.outages = append(s.outages, span)
	}
}

// try is one code that a person types, or a deposit whose doors are opened from afar.
type try struct {
	code   string
	parcel parcel
	pickup bool
}

// choose picks what people come for.
func (s *slaughter) choose() (out []try) {
	for range 1 + s.rnd.IntN(2) {
		if len(s.inside) > 0 && s.rnd.IntN(2) == 0 {
			p := s.inside[0]
			s.inside = s.inside[1:]
			out = append(out, try{p.pickup, p, true})
		} else if s.next < len(s.parcels) {
			p := s.parcels[s.next]
			s.next++
			code := p.delivery
			if len(s.nodes) > 1 && s.rnd.IntN(2) == 0 {
				code = "" // the partner opens
			}
			out = append(out, try{code, p, false})
		}
	}
	return out
}

// use types codes one after the other, and uses the doors that open. A page that
// dies in between gives no answer: the person uses the door that opens all the
// same, and it is not known whether a parcel lies inside, so that it is tried again
// later.
func (s *slaughter) use(tries []try) {
	for _, x := range tries {
		if x.code == "" {
			s.useFromAfar(x)
			continue
		}
		kind := wire.CodeDelivery
		if x.pickup {
			kind = wire.CodePickup
		}
		at := time.Now()
		doors, ok, err := s.enter(x.parcel.number, kind, x.code)
		if err != nil {
			doors = s.openedSince(at, time.Second)
		}
		put := false
		for _, d := range doors {
			put = s.atDoor(d, x) || put
		}
		switch {
		case !x.pickup && (put || err != nil || ok):
			s.inside = append(s.inside, x.parcel)
		case !x.pickup:
			s.parcels = append(s.parcels, x.parcel) // no compartment is free: another time
		case !put && x.parcel.tries < 5:
			x.parcel.tries++ // not settled yet, its door in use, or no answer
			s.inside = append(s.inside, x.parcel)
		}
	}
}

// enter types a code of a delivery. err says that the page gave no answer.
func (s *slaughter) enter(delivery, kind, code string) (doors []uint, ok bool, err error) {
	a := truth.Act{Cabinet: "CAB-1", Kind: edge.ByCode, At: time.Now(), Delivery: delivery, Code: kind}
	s.mu.Lock()
	n := len(s.acts)
	s.acts = append(s.acts, a)
	s.mu.Unlock()
	r, err := postCode(s.page, code)
	if err != nil {
		return nil, false, err
	}
	ok = r.Outcome == wire.CodeOK && r.OpeningID != ""
	for _, d := range r.Doors {
		doors = append(doors, d.Door)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts[n].Until, s.acts[n].OK, s.acts[n].Doors = time.Now(), ok, doors
	return doors, ok, nil
}

// atDoor puts a parcel in, or takes what is inside, as soon as the door is open,
// and closes it most of the time. It reports whether the door was used.
func (s *slaughter) atDoor(door uint, x try) bool {
	what := fmt.Sprintf("insert %d %s", door, x.parcel.tracking)
	if x.pickup {
		what = fmt.Sprintf("empty %d", door)
	}
	if !s.reach(door, what, 2*time.Second) {
		s.late[door] = what
		return false
	}
	delete(s.late, door)
	if x.parcel.tries%7 != 6 {
		s.hands.do(fmt.Sprintf("close %d", door))
	}
	return true
}

// reach does something at a door as soon as it is open, and holds it open a little longer than
// a door has to be open to count. It reports whether the door opened within some time.
func (s *slaughter) reach(door uint, what string, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s.hands.do(what) == "ok" {
			time.Sleep(550 * time.Millisecond)
			return true
		}
	}
	return false
}

// openedSince waits for doors that opened since a moment, and that no other person
// waits for.
func (s *slaughter) openedSince(at time.Time, wait time.Duration) (doors []uint) {
	for end := time.Now().Add(wait); len(doors) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, f := range readLines[simboard.Fact](s.t, filepath.Join(s.dir, "truth.jsonl")) {
			if f.Kind == simboard.Opened && f.At.After(at) && s.late[f.Door] == "" && !slices.Contains(doors, f.Door) {
				doors = append(doors, f.Door)
			}
		}
	}
	return doors
}

// hands are what reaches the boards' doors from outside: standard input and
// output of the running firmware-sim.
type hands struct {
	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

// do does one action; "" when the boards are dead.
func (h *hands) do(what string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := io.WriteString(h.in, what+"\n"); err != nil {
		return ""
	}
	line, err := h.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

// closeDoors closes what stands open, after the people who still wait there have used
// it.
func (s *slaughter) closeDoors() {
	for door, what := range s.late {
		if s.hands.do(what) == "ok" {
			delete(s.late, door)
		}
	}
	for n := 1; n <= killDoors; n++ {
		s.hands.do(fmt.Sprintf("close %d", n))
	}
}

func known(v kiosk.View) bool {
	return len(v.Doors) == killDoors && !slices.ContainsFunc(v.Doors, func(d kiosk.DoorView) bool { return d.State == wire.DoorUnknown })
}

// awaits waits for a state of the page.
func (s *slaughter) awaits(what string, ok func(kiosk.View) bool) {
	s.t.Helper()
	var v kiosk.View
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		if v, err = getState(s.page, filepath.Join(s.dir, "edge")); err == nil && ok(v) {
			return
		}
	}
	v.Doors = nil // there are many
	raw, _ := json.Marshal(v)
	edge, cloud := s.edge.tail(), s.nodes[0].tail()+s.nodes[0].linkCounts()
	require.FailNow(s.t, "not in time: "+what, "%s\nedge: %s\n%s\ncloud: %s\n%s", raw, edge, s.edge.stacks(), cloud, s.nodes[0].stacks())
}

// calm ends all trouble and stops the programs in order. An opening that no agent saw, and
// that its delivery's state lets the partner not end, ends with its session.
func (s *slaughter) calm() {
	s.awaits("no opening runs", func(v kiosk.View) bool {
		s.closeDoors()
		return known(v) && len(v.Openings) == 0
	})
	s.awaitSent()
	s.awaitHooks()
	s.edge.stop(s.t)
	for _, n := range s.nodes {
		n.stop(s.t)
	}
	s.sim.stop(s.t)
}

// linkCounts are what a node has counted of its cabinets.
func (n *killNode) linkCounts() string {
	resp, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "postern_device") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// awaitSent waits until the cloud has all records. A fresh start of the agent does not sit
// out the back-off that the kills have earned.
func (s *slaughter) awaitSent() {
	s.edge.stop(s.t)
	s.boots[len(s.boots)-1].End = time.Now()
	s.startEdge()
	s.awaits("everything is sent", func(v kiosk.View) bool { return v.Online && v.Store.Waiting == [2]uint64{} })
}

// awaitHooks waits until nothing new has come to the webhook receiver for a
// while.
func (s *slaughter) awaitHooks() {
	if s.database != "" { // what a killed node had taken up goes on elsewhere once its end was noticed
		db := s.open()
		ring.Await(s.t, func() bool {
			waiting, err := db.Store.OutboxWaiting(s.t.Context())
			require.NoError(s.t, err)
			return len(waiting) == 0
		}, "everything is told")
		require.NoError(s.t, errors.Join(db.Broker.Close(), db.Store.Close()))
	}
	for quiet, before := 0, -1; quiet < 20; time.Sleep(100 * time.Millisecond) {
		if n := len(s.hooks.all()); n == before {
			quiet++
		} else {
			quiet, before = 0, n
		}
	}
}

// logRecords shows what the cabinet reported of a door.
func (s *slaughter) logRecords(records []wire.Record, door uint) {
	about := map[string]bool{} // openings
	for _, r := range records {
		var body any
		id, is := "", false
		switch r.Kind {
		case wire.KindOpeningStarted:
			b := read[wire.OpeningStarted](r)
			body, id, is = b, b.OpeningID, slices.Contains(b.Doors, door)
		case wire.KindOpeningSettled:
			b := read[wire.OpeningSettled](r)
			body, id = b, b.OpeningID
		case wire.KindOpeningEnded:
			b := read[wire.OpeningEnded](r)
			body, id = b, b.OpeningID
		case wire.KindPickupCompleted:
			b := read[wire.PickupCompleted](r)
			body, id, is = b, b.OpeningID, slices.Contains(b.Doors, door)
		case wire.KindDoorOpened:
			b := read[wire.DoorOpened](r)
			body, is = b, b.Door == door
		case wire.KindDoorClosed:
			b := read[wire.DoorClosed](r)
			body, is = b, b.Door == door
		case wire.KindExceptionOpened, wire.KindExceptionClosed:
			b := read[wire.Exception](r)
			body, is = b, b.Door == door
		}
		if about[id] = about[id] || is && id != ""; is || about[id] {
			s.t.Logf("boot %d, %s by the agent: %+v", r.Boot, time.Unix(0, r.At).UTC().Format("15:04:05.000"), body)
		}
	}
}

// read reads a record's body.
func read[T any](r wire.Record) (body T) {
	_ = wire.Decode(r.Body, &body)
	return body
}

// judge hands everything to the oracle.
func (s *slaughter) judge() {
	srv := s.open()
	defer func() { require.NoError(s.t, errors.Join(srv.Broker.Close(), srv.Store.Close())) }()
	kept := s.kept()
	b := truth.Cabinet{Code: "CAB-1", WallClock: true, Boots: s.boots, Trouble: s.trouble}
	require.NoError(s.t, b.ReadStore(filepath.Join(s.dir, "edge", "edge.db")))
	b.Facts = readLines[simboard.Fact](s.t, filepath.Join(s.dir, "truth.jsonl"))
	b.Pulses = readLines[truth.Pulse](s.t, filepath.Join(s.dir, "pulses.jsonl"))
	c := truth.Case{Cabinets: []truth.Cabinet{b}, Acts: s.acts, Outages: s.outages, Received: s.hooks.all(), Recorded: uint64(kept), Final: true}
	var err error
	c.Cloud, err = truth.Read(s.t.Context(), srv, s.provider, c.Cabinets)
	require.NoError(s.t, err)
	require.Equal(s.t, kept, c.Cloud.Audit.Stored+c.Cloud.Audit.Gaps, "recorded = stored + gaps")
	require.Zero(s.t, c.Cloud.Audit.Gaps, "nothing was evicted, so nothing may be missing")
	v := truth.Judge(c)
	for _, f := range b.Facts {
		if slices.ContainsFunc(v.Findings, func(x truth.Finding) bool { return x.Door == f.Door }) {
			s.t.Log(f)
		}
	}
	for _, x := range v.Findings {
		s.logRecords(c.Cloud.Devices["CAB-1"].Records, x.Door)
	}
	require.True(s.t, v.OK(), v.String())
	require.NotZero(s.t, v.Settled, "hardly anything happened")
	s.t.Logf("%d starts of the agent: %s", len(s.boots), v)
}

// readLines reads a file of JSON lines; a last one that a kill cut off is left
// out.
func readLines[T any](t *testing.T, name string) (out []T) {
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		var v T
		if strings.HasSuffix(line, "\n") {
			require.NoError(t, json.Unmarshal([]byte(line), &v))
			out = append(out, v)
		}
	}
	return out
}

// kept counts the records in the edge's store, distinct by boot and monotonic
// time.
func (s *slaughter) kept() (records int) {
	store, err := buffer.Open(buffer.Config{Path: filepath.Join(s.dir, "edge", "edge.db"), Stamp: func() wire.Record { return wire.Record{} }})
	require.NoError(s.t, err)
	defer store.Close()
	require.Empty(s.t, store.Opened().Created, "the store survived")
	require.Equal(s.t, uint64(len(s.boots)+1), store.Opened().Boot, "every start is a boot, this one too")
	type key struct {
		boot uint64
		mono int64
	}
	seen, ended := map[key]bool{}, map[string]bool{}
	for l := wire.Lane(0); l < wire.Lanes; l++ {
		require.Equal(s.t, uint64(1), store.Oldest()[l], "the store still holds all records")
		for from := uint64(1); ; {
			run, err := store.Read(l, from, wire.MaxRecords, wire.MaxPayload)
			require.NoError(s.t, err)
			if len(run.Records) == 0 {
				break
			}
			for _, raw := range run.Records {
				r, err := wire.DecodeRecord(raw)
				require.NoError(s.t, err)
				require.False(s.t, seen[key{r.Boot, r.Mono}], "two records of one moment")
				seen[key{r.Boot, r.Mono}] = true
				if id := endOf(r); id != "" {
					require.False(s.t, ended[id], "%s ended twice at the cabinet", id)
					ended[id] = true
				}
			}
			from = run.Next()
		}
	}
	return len(seen)
}

// endOf is the opening that a record ends, or empty.
func endOf(r wire.Record) string {
	var settled wire.OpeningSettled
	var ended wire.OpeningEnded
	var collected wire.PickupCompleted
	switch {
	case r.Kind == wire.KindOpeningSettled && wire.Decode(r.Body, &settled) == nil:
		return settled.OpeningID
	case r.Kind == wire.KindOpeningEnded && wire.Decode(r.Body, &ended) == nil:
		return ended.OpeningID
	case r.Kind == wire.KindPickupCompleted && wire.Decode(r.Body, &collected) == nil:
		return collected.OpeningID
	}
	return ""
}

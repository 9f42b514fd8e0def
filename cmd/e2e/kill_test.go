package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/kiosk"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

var (
	killRounds = flag.Int("kill-rounds", countRounds(8), "how often each side is killed")
	killSeed   = flag.Uint64("kill-seed", 0, "seed of the kill test; 0 draws one")
)

// The built programs, killed without warning at random moments: a cloud and an
// edge on real files and real TCP, boards played here. In the end every record
// that the cabinet kept is in the cloud, every opening that the page confirmed
// has exactly one end, and nothing settled over an open door.
func TestKilledProgramsLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	defer func() {
		if t.Failed() {
			t.Logf("try it again: go test ./cmd/e2e -run TestKilledProgramsLoseNothing -kill-seed %d -kill-rounds %d", seed, *killRounds)
		}
	}()
	s := newSlaughter(t, seed)
	s.startCloud()
	s.startEdge()
	s.awaits("boards are read and codes are held", func(v kiosk.View) bool { return v.Online && v.CodeList >= uint64(2*len(s.parcels)) && known(v) })
	kills := make([]bool, 0, 2**killRounds) // true: the edge
	for range *killRounds {
		kills = append(kills, true, false)
	}
	s.rnd.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	for _, edge := range kills {
		s.round(edge)
	}
	s.calm()
	s.judge()
}

// killDoors are enough for all compartments that stay taken because nobody saw
// what became of their deposit.
const killDoors = 40

// parcel is one delivery with its codes, as the test knows them.
type parcel struct {
	delivery, pickup string
	tries            int // to collect it, in vain
}

// slaughter is both programs and what the test knows of them.
type slaughter struct {
	t   *testing.T
	rnd *rand.Rand
	dir string
	bin programs

	device      cloud.DeviceID
	mqtt, lines string // addresses
	parcels     []parcel
	next        int      // parcel to be deposited
	inside      []parcel // deposited, or perhaps so
	doubts      int      // collected parcels that may be tried again although their code may be gone
	confirmed   map[string]bool

	sim         *simboard.Cabinet
	edge, cloud *process
	page        string
	starts      int // of the edge
	cut         int // times that the cloud was killed while the edge was connected to it
}

func newSlaughter(t *testing.T, seed uint64) *slaughter {
	s := &slaughter{t: t, rnd: rand.New(rand.NewPCG(seed, 11)), dir: t.TempDir(), bin: build(t), mqtt: freeAddress(t), confirmed: map[string]bool{}, doubts: 4}
	s.prepare()
	s.playBoards(seed)
	return s
}

// prepare makes a cabinet and parcels enough for every round, and learns their
// codes, which no interface gives away.
func (s *slaughter) prepare() {
	srv := s.open()
	layout := make([]wire.LayoutDoor, killDoors)
	for i := range layout {
		layout[i] = wire.LayoutDoor{Door: uint(i + 1), Board: "A", Channel: uint(i + 1), Size: "M"}
	}
	// Quick doors, so that a round takes half a second.
	times := wire.Times{DebounceMS: 60, MinOpenMS: 120, OpenWaitMS: 700, SettleMS: 150, SessionS: 8, PulseMS: 100, PulseGapMS: 50, PollIdleMS: 100}
	box, err := srv.Sandbox(s.t.Context(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Times: times,
		Devices: []server.SandboxDevice{{Code: "CAB-1", Name: "Cabinet", Type: "smart_locker", Layout: layout}}})
	require.NoError(s.t, err)
	s.device = box.Devices[0].DeviceID
	unreserved := false
	for i := range 2**killRounds + 10 {
		out, err := srv.Lockers.Create(s.t.Context(), box.ProviderCaller, locker.CreateInput{ReferenceNumber: fmt.Sprintf("R-%d", i), DeviceID: s.device, Reserve: &unreserved,
			Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: fmt.Sprintf("PK-%d", i), Size: "M"}}})
		require.NoError(s.t, err)
		d, err := srv.Store.FindDelivery(s.t.Context(), box.ProviderCaller.Provider.ID, out.Delivery.DeliveryID)
		require.NoError(s.t, err)
		raw, err := srv.Box.Open("delivery-codes", d.SealedCodes)
		require.NoError(s.t, err)
		var codes locker.Codes
		require.NoError(s.t, json.Unmarshal(raw, &codes))
		s.parcels = append(s.parcels, parcel{delivery: codes.Delivery, pickup: codes.Pickup})
	}
	require.NoError(s.t, errors.Join(srv.Broker.Close(), srv.Store.Close()))
}

// open opens the cloud's data in this process, while no program has it.
func (s *slaughter) open() *server.Server {
	srv, err := server.New(s.t.Context(), server.Config{Dir: filepath.Join(s.dir, "cloud"), Brokers: []string{"tcp://" + s.mqtt}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	return srv
}

// playBoards serves the hardware over TCP, with someone in front who closes
// most doors.
func (s *slaughter) playBoards(seed uint64) {
	cfg := simboard.Config{Boards: []simboard.Board{{Name: "A", Line: "main", Family: lockbus.CU48, NoItems: true, UnlockTime: 100 * time.Millisecond}}, Seed: seed,
		Person: &simboard.Person{Wait: 120 * time.Millisecond, Does: "nothing", Forgets: 0.1}}
	for n := uint(1); n <= killDoors; n++ {
		cfg.Doors = append(cfg.Doors, simboard.Door{Number: n, Board: "A", Channel: n})
	}
	var err error
	s.sim, err = simboard.New(cfg)
	require.NoError(s.t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	s.lines = ln.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.sim.ServeTCP(ctx, "main", ln); err != nil {
			s.t.Errorf("boards: %v", err)
		}
	})
	s.t.Cleanup(func() { stop(); s.sim.Close(); wg.Wait() })
}

func (s *slaughter) startCloud() {
	s.cloud = s.bin.start(s.t, "cloud", "--data", filepath.Join(s.dir, "cloud"), "--listen", "", "--mqtt-listen", s.mqtt)
}

func (s *slaughter) startEdge() {
	s.starts++
	name := filepath.Join(s.dir, "edge.yaml")
	writeFile(s.t, name, fmt.Sprintf("data: %s\nsecrets: %s\nkiosk: {listen: '127.0.0.1:0'}\nlines:\n  - {name: main, port: 'tcp://%s', boards: [{name: A, family: cu48}]}\n",
		filepath.Join(s.dir, "edge"), filepath.Join(s.dir, "cloud", "devices", "CAB-1.json"), s.lines))
	s.edge = s.bin.start(s.t, "edge", "--config", name)
	s.page = "http://" + s.edge.awaitLog(s.t, "the local page is served", "addr")
}

// spans are how long after a code was typed the kill may come: while its intent
// is written, while the door opens and is used, while the opening settles.
var spans = []time.Duration{15 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond}

// round does some door work, kills one side in the middle of it, and starts it
// again.
func (s *slaughter) round(edge bool) {
	s.awaits("doors are known", known)
	var work sync.WaitGroup
	parcels := s.choose()
	moment := time.Duration(s.rnd.Int64N(int64(spans[s.rnd.IntN(len(spans))])))
	work.Go(func() { s.use(parcels) })
	time.Sleep(moment)
	if edge {
		s.edge.kill(s.t)
		work.Wait()
		s.startEdge()
	} else {
		if v, err := getState(s.page); err == nil && v.Online {
			s.cut++
		}
		s.cloud.kill(s.t)
		work.Wait()
		s.startCloud()
	}
	if s.rnd.IntN(2) == 0 {
		s.closeDoors()
	}
	if s.rnd.IntN(4) == 0 {
		time.Sleep(400 * time.Millisecond) // what runs may end in peace
	}
}

// try is one code that somebody types.
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
			out = append(out, try{p.delivery, p, false})
		}
	}
	return out
}

// use types codes one after the other. A page that dies in between gives no
// answer: then nobody knows whether a parcel lies inside, and it is tried.
func (s *slaughter) use(tries []try) {
	for _, x := range tries {
		r, err := postCode(s.page, x.code)
		ok := err == nil && r.Outcome == wire.CodeOK && r.OpeningID != ""
		if ok {
			s.confirmed[r.OpeningID] = true
		}
		switch {
		case !x.pickup && (ok || err != nil):
			s.inside = append(s.inside, x.parcel)
		case !x.pickup:
			s.parcels = append(s.parcels, x.parcel) // no compartment is free: another time
		case err != nil && s.doubts > 0: // five codes that are gone would lock the keypad
			s.doubts--
			s.inside = append(s.inside, x.parcel)
		case err == nil && r.Outcome != wire.CodeUnknown && !ok && x.parcel.tries < 5:
			x.parcel.tries++ // not settled yet, or its door is in use
			s.inside = append(s.inside, x.parcel)
		}
	}
}

func (s *slaughter) closeDoors() {
	for n := uint(1); n <= killDoors; n++ {
		if s.sim.OpenAt(n, time.Now()) {
			require.NoError(s.t, s.sim.CloseDoor(n))
		}
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
		if v, err = getState(s.page); err == nil && ok(v) {
			return
		}
	}
	raw, _ := json.Marshal(v)
	require.FailNow(s.t, "not in time: "+what, "%s\nedge: %s\ncloud: %s", raw, s.edge.tail(), s.cloud.tail())
}

// calm ends all trouble and stops both programs in order.
func (s *slaughter) calm() {
	s.awaits("no opening runs", func(v kiosk.View) bool {
		s.closeDoors()
		return known(v) && len(v.Openings) == 0
	})
	s.edge.stop(s.t) // a fresh start does not sit out the back-off that the kills have earned
	s.startEdge()
	s.awaits("everything is sent", func(v kiosk.View) bool { return v.Online && v.Store.Waiting == [2]uint64{} })
	s.edge.stop(s.t)
	s.cloud.stop(s.t)
}

// judge compares what the cabinet kept, what the cloud holds, what the page
// said, and what was physically true.
func (s *slaughter) judge() {
	srv := s.open()
	defer func() { require.NoError(s.t, errors.Join(srv.Broker.Close(), srv.Store.Close())) }()
	a, err := srv.Audit(s.t.Context())
	require.NoError(s.t, err)
	kept, ends := s.kept()
	require.Equal(s.t, kept, a.Stored+a.Gaps, "recorded = stored + gaps")
	require.Zero(s.t, a.Gaps, "nothing was evicted, so nothing may be missing")
	require.Zero(s.t, a.SettledTwice, "openings that ended twice")
	require.Equal(s.t, ends, a.Ended(), "the cloud knows the ends that the cabinet kept")
	for id := range s.confirmed {
		require.Contains(s.t, a.Openings, id, "an opening that the page confirmed")
	}
	require.GreaterOrEqual(s.t, len(s.confirmed), *killRounds/2, "hardly anything happened")
	require.NotZero(s.t, a.Settled)
	require.NotZero(s.t, s.cut, "the cloud was never killed while it had work")
	for id, end := range a.Openings {
		if end.End != wire.KindOpeningSettled {
			continue
		}
		for _, n := range end.Doors {
			require.False(s.t, s.sim.OpenAt(n, end.Ended), "%s settled while door %d was open", id, n)
		}
	}
	err = srv.Store.Look(s.t.Context(), func(v cloud.View) error {
		running, err := v.RunningOpenings(s.device)
		require.Empty(s.t, running, "openings without an end")
		return err
	})
	require.NoError(s.t, err)
	s.t.Logf("%d records, %d openings confirmed, %d deposits settled, edge started %d times, cloud killed %d times with the edge connected", kept, len(s.confirmed), a.Settled, s.starts, s.cut)
}

// kept counts the records in the edge's store, distinct by boot and monotonic
// time, and the openings that have ended in it.
func (s *slaughter) kept() (records int, ends []string) {
	store, err := buffer.Open(buffer.Config{Path: filepath.Join(s.dir, "edge", "edge.db"), Stamp: func() wire.Record { return wire.Record{} }})
	require.NoError(s.t, err)
	defer store.Close()
	require.Empty(s.t, store.Opened().Created, "the store survived")
	require.Equal(s.t, uint64(s.starts+1), store.Opened().Boot, "every start is a boot, this one too")
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
	return len(seen), slices.Sorted(maps.Keys(ended))
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

package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

var (
	seedOnly = flag.Uint64("seed", 0, "try this seed of the simulated world alone")
	only     = flag.String("only", "", "leave only these actions in the day, by name, with commas")
	survey   = flag.Bool("survey", false, "go on after a broken rule, and make no day shorter")
	omit     = flag.String("omit", "", "leave these actions out of the day, by name, with commas")
)

// No lock fires without one fresh authorisation, everybody agrees what lies
// where, nothing is lost, nothing counts twice: boards, agents, link, broker,
// cloud and webhook receiver under one seed and a simulated clock, with people
// who come and go, cuts, faults, crashes of every part, and a broker that is not
// to be trusted. The oracle (cmd/internal/truth) judges by what physically
// happened. A seed that fails tells its story and is made shorter.
func TestAnySeed(t *testing.T) {
	first, last := ring.Seeds(4, 60)
	if testing.Short() {
		last = min(last, first+9)
	}
	if *seedOnly != 0 {
		first, last = *seedOnly, *seedOnly
	}
	var sum tally
	var queue sync.Mutex
	next := first
	for _, half := range []string{"one", "other"} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			for {
				queue.Lock()
				seed := next
				next++
				queue.Unlock()
				if seed > last || sum.failed() && !*survey {
					return
				}
				r := liveThrough(t, seed, plan(seed))
				sum.add(r)
				switch {
				case r.verdict.OK():
				case *survey:
					t.Errorf("seed %d: %s", seed, r.verdict)
				default:
					tellStory(t, seed, r)
				}
			}
		})
	}
	t.Cleanup(func() { t.Log(sum.String()) })
}

// result is how one day went.
type result struct {
	plan    []step
	verdict truth.Verdict
	tried   map[string]int
	effects map[string]int
}

// rules are the names of the rules that were broken.
func (r result) rules() string {
	names := map[string]bool{}
	for _, f := range r.verdict.Findings {
		names[f.Rule] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ",")
}

// everything is what can happen on a random day, at cabinets and at the device without an agent.
var everything = slices.Concat(actions, boxActions, remoteActions)

// plan draws a random day: its steps, not what people and chance make of them.
func plan(seed uint64) []step {
	rnd := rand.New(rand.NewPCG(seed, 7))
	total := 0
	for _, a := range everything {
		total += a.weight
	}
	var out []step
	for range 22 + rnd.IntN(30) {
		n := rnd.IntN(total)
		i := 0
		for ; n >= everything[i].weight; i++ {
			n -= everything[i].weight
		}
		s := step{what: everything[i].name, cabinet: rnd.IntN(2), seed: rnd.Uint64() >> 16}
		s.wait = time.Duration(rnd.Int64N(int64(pick(rnd, 2*time.Second, 12*time.Second, 40*time.Second, 120*time.Second))))
		if (*only == "" || slices.Contains(strings.Split(*only, ","), s.what)) && !slices.Contains(strings.Split(*omit, ","), s.what) {
			out = append(out, s)
		}
	}
	return out
}

var days atomic.Int64 // lived through, so that each has a name of its own

// liveThrough lives one day in a bubble of simulated time, and judges it.
func liveThrough(t *testing.T, seed uint64, steps []step) (r result) {
	r.plan = steps
	ok := t.Run(fmt.Sprintf("seed %d day %d", seed, days.Add(1)), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := makeWorld(t, seed, 2, true)
			w.simple = w.newBox()
			stuck := &watched{TB: t}
			w.t = stuck
			r.verdict = w.day(steps, stuck)
			w.t = t
			r.tried = maps.Clone(w.tap.tried)
			r.effects = maps.Clone(w.effects)
			w.close()
		})
	})
	if !ok {
		r.verdict.Findings = append(r.verdict.Findings, truth.Finding{Rule: "broken", Text: "the day did not end in order"})
	}
	return r
}

// watched is a test that is not failed by what goes wrong in it: a day that gets
// stuck is a finding.
type watched struct {
	testing.TB
	mu   sync.Mutex
	text []string
}

type stuckDay struct{}

func (x *watched) Errorf(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.text = append(x.text, fmt.Sprintf(format, args...))
}

func (x *watched) FailNow() { panic(stuckDay{}) }
func (x *watched) Helper()  {}

// day lives through the steps, ends all trouble, judges, and then lets people try
// every door.
func (w *world) day(steps []step, stuck *watched) (v truth.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stuckDay); !ok {
				panic(p)
			}
		}
		for _, s := range stuck.text {
			v.Findings = append(v.Findings, truth.Finding{Rule: "stuck", Text: cmp.Or(firstLines(s, 12), "stuck")})
		}
	}()
	for _, c := range w.cabinets {
		w.awaits("cabinet online and read", 5*time.Minute, func() bool { return w.cloud.Devices.Online(c.code) && c.agent.Loop().State().Doors[1].Known })
	}
	for _, s := range steps {
		i := slices.IndexFunc(everything, func(a action) bool { return a.name == s.what })
		everything[i].do(w, s, rand.New(rand.NewPCG(s.seed, 9)))
		time.Sleep(s.wait)
		w.reboot()
	}
	w.people.Wait()
	w.reboot()
	w.settleDown()
	versions, settings := w.endUpdates(), w.endRollouts()
	sent := func() bool {
		return !slices.ContainsFunc(w.cabinets, func(c *cabinet) bool { return c.agent.Store().Backlog() != [2]uint64{} })
	}
	w.awaits("everything sent since", 15*time.Minute, func() bool { // at a moment at which nothing is under way, which the verdict is of
		if !sent() {
			return false
		}
		time.Sleep(50 * time.Millisecond)
		return sent()
	})
	v = w.verdict()
	for _, x := range []truth.Finding{{Rule: "update", Text: versions}, {Rule: "profile", Text: settings}} {
		if x.Text != "" {
			v.Findings = append(v.Findings, x)
		}
	}
	if !v.OK() {
		return v
	}
	if text := w.tryEveryDoor(); text != "" {
		v.Findings = append(v.Findings, truth.Finding{Rule: "useless", Text: text})
	}
	return v
}

func firstLines(s string, n int) string {
	lines := slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// settleDown ends all trouble and waits until everything has arrived.
func (w *world) settleDown() {
	w.noise.Store(0)
	w.tap.calm()
	if w.simple != nil {
		w.simple.mend()
	}
	for _, c := range w.cabinets {
		c.disk = nil
		c.setCut(false)
		c.sim.PowerOn()
		c.sim.Mend()
	}
	// Someone passes by and closes what stands open; a door that springs open late
	// is seen by the next one.
	for range 2 {
		for _, c := range w.cabinets {
			for n := uint(1); n <= doors; n++ {
				_ = c.sim.Free(n)
				if !c.stays[n] {
					_ = c.sim.CloseDoor(n)
				}
			}
		}
		time.Sleep(90 * time.Second)
	}
	if slices.ContainsFunc(w.cabinets, func(c *cabinet) bool { return len(c.stays) > 0 }) {
		time.Sleep(10 * time.Minute) // beyond the longest door session
		for _, c := range w.cabinets {
			for n := range c.stays {
				_ = c.sim.CloseDoor(n)
			}
		}
		time.Sleep(time.Minute)
	}
	for _, c := range w.cabinets {
		w.awaits(c.code+": nothing runs", 15*time.Minute, func() bool { return len(c.agent.Loop().State().Openings) == 0 })
		w.awaits(c.code+": everything sent", 15*time.Minute, func() bool { return c.agent.Link().Connected() && c.agent.Store().Backlog() == [2]uint64{} })
		w.awaits(c.code+": holds the whole list", 15*time.Minute, func() bool {
			d, err := w.cloud.Store.FindDeviceByCode(context.Background(), c.code)
			return err == nil && c.agent.Loop().State().Meta.CodeList == d.CodeList
		})
	}
	w.reboot() // commands that waited for a cabinet
	w.inspectFound()
	// The mechanic has been there, and an unblock may have been refused while the
	// clock was not set.
	for i, c := range w.cabinets {
		for n := range c.agent.Loop().State().Doors {
			for range 12 {
				if b := c.agent.Loop().State().Doors[n].Blocked; b != "dirty" && b != wire.ReasonSuspect {
					break
				}
				w.command(i, uint(n), wire.CmdUnblock, wire.DoorReason{Door: uint(n)})
				time.Sleep(time.Minute)
			}
		}
	}
	if w.simple != nil {
		w.awaits(w.simple.code+": everything told", 15*time.Minute, w.simple.told)
	}
	w.awaits("every event delivered", 30*time.Minute, func() bool {
		n, err := w.cloud.Store.OutboxWaiting(context.Background())
		return err == nil && len(n) == 0
	})
	// The cloud gives an opening up that the cabinet does not know any more.
	for range 50 {
		read, err := truth.Read(context.Background(), w.cloud, w.box.ProviderCaller.Provider.ID, w.parts(), w.simples()...)
		require.NoError(w.t, err)
		if !slices.ContainsFunc(slices.Collect(maps.Values(read.Devices)), func(d truth.Device) bool { return len(d.Running) > 0 }) {
			break
		}
		time.Sleep(30 * time.Second)
	}
	// One more status of each: most days by a new connection, some by the clock.
	if w.seed%8 == 0 {
		time.Sleep(11 * time.Minute)
		return
	}
	for _, c := range w.cabinets {
		c.drop()
		time.Sleep(time.Second)
		w.awaits(c.code+" comes back", 15*time.Minute, func() bool { return w.cloud.Devices.Online(c.code) && c.agent.Link().Connected() })
	}
	time.Sleep(time.Minute)
}

// parts are the cabinets' parts of a case.
func (w *world) parts() (out []truth.Cabinet) {
	for _, x := range w.cabinets {
		out = append(out, x.part())
	}
	return out
}

// verdict gathers the case and judges it.
func (w *world) verdict() truth.Verdict {
	c := truth.Case{Final: true, Received: w.hooks.all(), Unscripted: w.unscripted, Cabinets: w.parts(), Simple: w.simples()}
	for _, x := range w.cabinets {
		c.Recorded += x.recorded + x.agent.Recorded.Load()
	}
	var err error
	c.Cloud, err = truth.Read(context.Background(), w.cloud, w.box.ProviderCaller.Provider.ID, c.Cabinets, c.Simple...)
	require.NoError(w.t, err)
	w.mu.Lock()
	c.Acts, c.Outages, c.Cancels = slices.Clone(w.acts), slices.Clone(w.outages), slices.Clone(w.cancels)
	c.Forgotten = slices.Clone(w.forgotten)
	c.Replaced, c.Strays, c.Cleared, c.Resets = slices.Clone(w.replaced), slices.Clone(w.strays), slices.Clone(w.cleared), slices.Clone(w.resets)
	c.Tests = slices.Clone(w.tests)
	w.mu.Unlock()
	return truth.Judge(c)
}

// tryEveryDoor lets every recipient whose parcel waits collect it, and brings a
// parcel into every compartment that counts as free. It says what a person at the
// cabinet could not do, "" when everything worked.
func (w *world) tryEveryDoor() string {
	for i, c := range w.cabinets {
		if text := w.tryPickups(i, c); text != "" {
			return text
		}
		if text := w.tryDeposits(i, c); text != "" {
			return text
		}
	}
	if w.simple == nil {
		return ""
	}
	return w.simple.tryLast()
}

// simples are the shares of devices without an agent.
func (w *world) simples() (out []truth.Simple) {
	if w.simple != nil {
		out = append(out, w.simple.part())
	}
	return out
}

func (w *world) tryPickups(i int, c *cabinet) string {
	for _, x := range w.tasks {
		d := w.find(x.ref)
		if x.cabinet != i || w.outOfUse(c, x) || d.Status != cloud.DeliveryDelivered && (d.Status != cloud.DeliveryExpired || d.DepositedAt == nil) {
			continue
		}
		if !d.PickupCodeActive && (w.wasStolen(c) || !slices.ContainsFunc(d.Packages, func(p locker.PackageBody) bool { return p.Status == cloud.PackageInCompartment })) {
			continue // the codes died with a theft, or staff took out what was settled: they are to look
		}
		if x.outgoing {
			if got := c.purposeOf(x.number); got != d.Purpose {
				return fmt.Sprintf("%s knows %s as %q, and it is %q", c.code, x.number, got, d.Purpose)
			}
			continue
		}
		codes, ok := w.codes(x)
		if !ok {
			return x.number + " has no codes"
		}
		a, err := w.enter(c, truth.Act{Delivery: x.number, Code: w.collects(x)}, codes.Pickup, true)
		if err == nil && a.Outcome == wire.CodeLockedOut { // by a vandal a moment ago: the recipient calls for help
			w.staffReset(step{cabinet: i})
			time.Sleep(10 * time.Second)
			a, err = w.enter(c, truth.Act{Delivery: x.number, Code: w.collects(x)}, codes.Pickup, true)
		}
		if err != nil || a.Outcome != wire.CodeOK {
			return fmt.Sprintf("the recipient of %s at %s was refused: %s %v", x.number, c.code, a.Outcome, err)
		}
		for _, n := range a.Doors {
			time.Sleep(4 * time.Second)
			if !c.sim.OpenAt(uint(n), time.Now()) {
				return fmt.Sprintf("door %d of %s stayed shut for the recipient of %s", n, c.code, x.number)
			}
			_, _ = c.sim.TakeOut(uint(n))
			_ = c.sim.CloseDoor(uint(n))
		}
		w.awaits(x.number+" collected", 2*time.Minute, func() bool { return w.find(x.ref).Status == cloud.DeliveryPickedUp })
	}
	return ""
}

func (w *world) tryDeposits(i int, c *cabinet) string {
	cells, err := w.cloud.Store.ListCompartments(context.Background(), w.box.Devices[i].DeviceID)
	require.NoError(w.t, err)
	for _, cell := range cells {
		if cell.State != cloud.GridFree || cell.OutOfUse() {
			continue
		}
		ref := fmt.Sprintf("LAST-%d-%d", i, cell.Door)
		no := false
		_, err := w.cloud.Lockers.Create(context.Background(), w.box.ProviderCaller, locker.CreateInput{ReferenceNumber: ref, DeviceID: w.box.Devices[i].DeviceID, Reserve: &no,
			Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-" + ref, Size: "M"}}})
		if err != nil {
			return fmt.Sprintf("nothing can be announced for door %d of %s: %v", cell.Door, c.code, err)
		}
		_, err = w.cloud.Lockers.OpenDoors(context.Background(), w.box.ProviderCaller, locker.OpenInput{Delivery: locker.DeliveryKey("ref:" + ref), Compartments: []cloud.GridID{cell.GridID}})
		if err != nil || !c.sim.OpenAt(cell.Door, time.Now()) {
			return fmt.Sprintf("door %d of %s counts as free and does not open for a courier: %v", cell.Door, c.code, err)
		}
		_ = c.sim.Put(cell.Door, "PK-"+ref)
		_ = c.sim.CloseDoor(cell.Door)
		w.awaits(ref+" delivered", 2*time.Minute, func() bool { return w.find(ref).Status == cloud.DeliveryDelivered })
	}
	return ""
}

// tally adds up what the days had to judge.
type tally struct {
	mu      sync.Mutex
	days    int
	verdict truth.Verdict
	tried   map[string]int
	effects map[string]int
}

func (s *tally) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.days++
	v := &s.verdict
	v.Coils, v.Authorised, v.Unfired = v.Coils+r.verdict.Coils, v.Authorised+r.verdict.Authorised, v.Unfired+r.verdict.Unfired
	v.Settled, v.Collected, v.Items = v.Settled+r.verdict.Settled, v.Collected+r.verdict.Collected, v.Items+r.verdict.Items
	v.Exceptions, v.Events = v.Exceptions+r.verdict.Exceptions, v.Events+r.verdict.Events
	v.Findings = append(v.Findings, r.verdict.Findings...)
	if s.tried == nil {
		s.tried, s.effects = map[string]int{}, map[string]int{}
	}
	for k, n := range r.effects {
		s.effects[k] += n
	}
	for k, n := range r.tried {
		s.tried[k] += n
	}
}

func (s *tally) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.verdict.OK()
}

func (s *tally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	attacks := 0
	for _, n := range s.tried {
		attacks += n
	}
	return fmt.Sprintf("%d days, %d attacks: %s\n%v", s.days, attacks, s.verdict, s.effects)
}

// maxShrinks bounds how often a day is tried again to make it shorter.
const maxShrinks = 60

// tellStory leaves out steps as long as the same rule stays broken, and tells
// what is left.
func tellStory(t *testing.T, seed uint64, r result) {
	want, tries := r.verdict.Findings[0].Rule, 0
	for size := len(r.plan) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(r.plan) && tries < maxShrinks; {
			shorter := slices.Delete(slices.Clone(r.plan), at, at+size)
			tries++
			if again := liveThrough(t, seed, shorter); len(again.verdict.Findings) > 0 && strings.Contains(again.rules(), want) {
				r = again
			} else {
				at += size
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks %s. Its day, shortened in %d tries:\n", seed, r.rules(), tries)
	for _, s := range r.plan {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if len(r.tried) > 0 {
		fmt.Fprintf(&b, "  the broker tried: %v\n", r.tried)
	}
	for i, f := range r.verdict.Findings {
		if i < 6 {
			fmt.Fprintf(&b, "  → %s\n", f)
		}
	}
	fmt.Fprintf(&b, "try it alone: go test ./cmd/e2e -run TestAnySeed -seed %d", seed)
	t.Error(b.String())
}

// judge fails a story in which a rule was broken. Stories move doors by hand.
func (w *world) judge(t *testing.T) {
	t.Helper()
	w.unscripted = true
	v := w.verdict()
	require.True(t, v.OK(), v.String())
}

package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/protocol/wire"
)

// Hardware that is replaced, stolen, and found again.

// replaceHardware has staff exchange the controller of a cabinet, whatever lies
// inside. The former one works on for a while, comes off, and is switched on again
// somewhere else: nothing lets it in any more.
func (w *world) replaceHardware(s step, rnd *rand.Rand) {
	c, d := w.cabinets[s.cabinet], &w.box.Devices[s.cabinet]
	inside := w.lying(s.cabinet)
	_, err := w.server().Lockers.ReplaceHardware(context.Background(), w.staff, locker.ReplaceInput{Device: d.DeviceID, Reason: "water"})
	w.effect("replace_hardware", err)
	if err != nil {
		return
	}
	cutOff := time.Now()
	time.Sleep(pick(rnd, 0, 5*time.Second, time.Minute))
	c.kill()
	c.forget(c.unsentSince, time.Minute)
	former, dir := access.Secrets(d.Enrolled), c.dir
	time.Sleep(pick(rnd, time.Second, 30*time.Second, 5*time.Minute))
	c.dir = filepath.Join(w.dir, fmt.Sprintf("%s-%x", c.code, s.seed))
	w.enrolAgain(s.cabinet)
	c.start()
	w.mu.Lock()
	w.replaced = append(w.replaced, truth.Replacement{Cabinet: c.code, At: cutOff, Started: time.Now(), Inside: inside})
	w.mu.Unlock()
	w.people.Go(func() {
		time.Sleep(pick(rnd, 0, 20*time.Second, 2*time.Minute))
		w.switchOn(c, former, dir)
	})
}

// lying is what the cloud knows to lie in a cabinet: door to delivery number.
func (w *world) lying(cabinet int) map[uint]string {
	cells, err := w.server().Store.ListCompartments(context.Background(), w.box.Devices[cabinet].DeviceID)
	require.NoError(w.t, err)
	out := map[uint]string{}
	for _, x := range cells {
		if x.State != cloud.GridOccupied || x.OutOfUse() {
			continue
		}
		for _, t := range w.tasks {
			if t.id == x.DeliveryID {
				out[x.Door] = t.number
			}
		}
	}
	return out
}

// enrolAgain gives the hardware at a cabinet's place new secrets, by a one-time token.
func (w *world) enrolAgain(cabinet int) {
	s, d, ctx := w.server(), &w.box.Devices[cabinet], context.Background()
	made, err := s.Setup.RenewToken(ctx, w.staff, setup.DeviceInput{ID: d.DeviceID})
	require.NoError(w.t, err)
	own := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(len(w.replaced) + len(w.strays) + 1)}, ed25519.SeedSize))
	got, err := s.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: d.DeviceCode, Token: made.Enrolment.Token, PublicKey: own.Public().(ed25519.PublicKey)},
		func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
			return s.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: wire.CodeParams{MemoryKiB: 8, Passes: 1}}, decide)
		})
	require.NoError(w.t, err)
	d.Enrolled = s.Enrolled(d.DeviceCode, got)
	d.Enrolled.DeviceKey = own.Seed()
}

// switchOn runs hardware that was cut off, with no boards, for a while.
func (w *world) switchOn(c *cabinet, former access.Secrets, dir string) {
	x := &stray{Stray: truth.Stray{Cabinet: c.code, What: "replaced", From: time.Now()}}
	a, err := agent.New(agent.Config{Dir: dir, Secrets: former, Lines: c.lines, Version: "test", Log: w.logs,
		Open: func(context.Context, board.LineConfig) (board.Port, error) {
			return nil, errors.New("nothing is wired")
		},
		Dial: func(context.Context, *url.URL) (net.Conn, error) {
			broker := w.broker.Load()
			if broker == nil {
				return nil, errCut
			}
			here, there := net.Pipe()
			go func() { _ = broker.ServeConn(newBuffered(there)) }()
			return x.watch(here), nil
		}})
	if err != nil {
		return // its store is damaged beyond use
	}
	ctx, stop := context.WithTimeout(context.Background(), 40*time.Second)
	defer stop()
	_ = a.Run(ctx)
	w.ended(x)
}

// ended notes what hardware that was cut off came to.
func (w *world) ended(x *stray) {
	x.mu.Lock()
	x.Until = time.Now()
	seen := x.Stray
	x.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strays = append(w.strays, seen)
	w.effects["stray "+seen.What+" tried to log in"] += seen.Tried
}

// stray watches the connections of hardware that was cut off.
type stray struct {
	mu sync.Mutex // guards all below
	truth.Stray
}

// watch counts a connection, and whether the broker's first packet accepts it: a
// CONNACK with return code 0 ([MQTT-3.2.2-4], 4 bytes).
func (x *stray) watch(conn net.Conn) net.Conn {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Tried++
	return &watchedConn{Conn: conn, of: x}
}

type watchedConn struct {
	net.Conn
	of    *stray
	first []byte // read by one goroutine
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if had := len(c.first); had < 4 {
		c.first = append(c.first, p[:min(n, 4-had)]...)
		if len(c.first) == 4 && c.first[0] == 0x20 && c.first[3] == 0 {
			c.of.mu.Lock()
			c.of.Accepted++
			c.of.mu.Unlock()
		}
	}
	return n, err
}

// steal has a cabinet carried away, reported, switched on by the thief, found and
// put back. Staff look behind every door before it is used again.
func (w *world) steal(s step, rnd *rand.Rand) {
	c, d := w.cabinets[s.cabinet], &w.box.Devices[s.cabinet]
	c.sim.PowerOff()
	c.kill()
	c.forget(c.unsentSince, time.Minute)
	time.Sleep(pick(rnd, time.Second, 2*time.Minute))
	_, err := w.server().Lockers.ReportStolen(context.Background(), w.staff, locker.StolenInput{Device: d.DeviceID, Reason: "police report 12"})
	w.effect("report_stolen", err)
	if err == nil {
		x := &stray{Stray: truth.Stray{Cabinet: c.code, What: "stolen", From: time.Now()}}
		c.stray.Store(x)
		c.sim.PowerOn()
		c.start()
		time.Sleep(pick(rnd, 10*time.Second, 40*time.Second))
		c.sim.PowerOff()
		c.kill()
		c.stray.Store(nil)
		w.ended(x)
		c.forget(x.From, time.Minute)
		if rnd.IntN(2) == 0 { // its controller is gone for good
			c.dir = filepath.Join(w.dir, fmt.Sprintf("%s-%x", c.code, s.seed))
		}
		w.enrolAgain(s.cabinet)
	}
	c.sim.PowerOn()
	c.start()
	w.people.Go(func() {
		time.Sleep(pick(rnd, 20*time.Second, 2*time.Minute))
		w.inspect(s.cabinet, nil)
	})
}

// inspect has staff open doors of a cabinet, take out what lies there, and clear the
// compartments; nil are those in which anything lies or should.
func (w *world) inspect(cabinet int, only []uint) {
	c, id := w.cabinets[cabinet], w.box.Devices[cabinet].DeviceID
	cells, err := w.server().Store.ListCompartments(context.Background(), id)
	if err != nil {
		return
	}
	for _, x := range cells {
		switch {
		case only != nil && !slices.Contains(only, x.Door):
			continue
		case only == nil && x.DeliveryID == 0 && x.Dispute == nil && len(c.sim.ItemsAt(x.Door, time.Now())) == 0:
			continue
		}
		w.lookAndClear(c, id, x)
	}
}

// openedFor waits until a door stands open after a pulse since a moment, for an opening if
// that is known, and names the pulse's opening.
func (c *cabinet) openedFor(door uint, since time.Time, o *locker.OpeningBody) (opening string, ok bool) {
	for range 20 {
		p := c.pulsedSince(door, since)
		if p.Kind != "" && c.sim.OpenAt(door, time.Now()) && (o == nil || p.OpeningID == o.OpeningID) {
			return p.OpeningID, true
		}
		time.Sleep(500 * time.Millisecond)
	}
	return "", false
}

// lookAndClear opens one door for staff at the cabinet, who empty and clear it. A
// door that does not open is left alone, what does not lie there any more is not
// looked for, and a compartment in use again by then is not called empty.
func (w *world) lookAndClear(c *cabinet, id cloud.DeviceID, x cloud.Compartment) {
	opening, opened := w.openForStaff(c, id, x, "open_grids")
	if !opened {
		return
	}
	taken, _ := c.sim.TakeOut(x.Door)
	time.Sleep(2 * time.Second)
	_ = c.sim.CloseDoor(x.Door)
	for range 8 { // until the cloud knows that the door is shut
		time.Sleep(3 * time.Second)
		cleared, err := w.server().Lockers.Clear(context.Background(), w.staff, locker.ClearInput{Device: id, Grid: x.GridID, Reason: "empty now"})
		var conflict *cloud.Error
		if refusal(err) == "DELIVERY_STATE_CONFLICT" && errors.As(err, &conflict) && conflict.Details["opening_id"] == opening {
			continue
		}
		w.effect("clear", err)
		if err == nil {
			w.noteClear(c, x.Door, cleared, taken)
			return
		}
		break
	}
	if len(taken) > 0 { // they gave up, and the parcel is gone
		c.disturb("forgot", x.Door, 30*time.Second)
	}
	w.effect("clear", errors.New("the opening runs on"))
}

// openForStaff opens one door for staff at the cabinet, and waits until it stands open.
func (w *world) openForStaff(c *cabinet, id cloud.DeviceID, x cloud.Compartment, effect string) (opening string, opened bool) {
	began, yes := time.Now().Add(-time.Millisecond), true
	out, err := w.server().Lockers.OpenGrids(w.soon(), w.staff, locker.StaffOpenInput{Device: id, Grids: []cloud.GridID{x.GridID}, Reason: "look inside", Attended: &yes})
	w.effect(effect, err)
	if err != nil && refusal(err) != "DEVICE_TIMEOUT" {
		return "", false
	}
	return c.openedFor(x.Door, began, out.Opening)
}

func (w *world) noteClear(c *cabinet, door uint, out locker.ClearOutput, taken []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects["clear took out a parcel"] += len(taken)
	x := truth.Clear{Cabinet: c.code, Door: door, At: time.Now()}
	for _, p := range out.Cleared {
		if p.Deposited {
			x.Packages = append(x.Packages, p.TrackingNumber)
		}
	}
	w.cleared = append(w.cleared, x)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// parcel is a delivery as the demo follows it.
type parcel struct {
	delivery
	at    *cabinet
	doors []uint
	code  string // pickup code
}

// day is one scripted day.
func (s script) day(ctx context.Context) error {
	front, yard, desk := s.cabinets[0], s.cabinets[1], s.cabinets[2]
	if err := s.shop.day(ctx); err != nil {
		return fmt.Errorf("the shop's day: %w", err)
	}
	for _, act := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"Morning: three deposits, opened from afar, settled when the doors close", func(ctx context.Context) error {
			return errors.Join(s.whole(ctx, front, "M"), s.whole(ctx, yard, "S"), s.whole(ctx, desk, "M"))
		}},
		{"An agent makes an order, and asks a person before it stops it", s.askAPerson},
		{"A driver is on the way, and the recipient asks", s.onTheWay},
		{"A delivery company carries an order, and knows of it by webhooks alone", s.carry},
		{"The cable is cut while a courier stands at an open door; the parcel is collected before it is mended", func(ctx context.Context) error { return s.cutDuringDeposit(ctx, front) }},
		{"A courier and a recipient use a cabinet that has had no network all along", func(ctx context.Context) error { return s.offlineAllTheWay(ctx, yard) }},
		{"A door is left open", func(ctx context.Context) error { return s.leftOpen(ctx, desk) }},
		{"A lock jams; another compartment is free", func(ctx context.Context) error { return s.jamWithRoom(ctx, yard) }},
		{"A lock jams; nothing else fits", func(ctx context.Context) error { return s.jamWithoutRoom(ctx, desk) }},
		{"The agent is killed while a door is open", func(ctx context.Context) error { return s.killAgent(ctx, front) }},
		{"The cloud is killed while a door is open", func(ctx context.Context) error { return s.killCloud(ctx, yard) }},
		{"The receiver is sick for a while; no event is lost", func(ctx context.Context) error { return s.sickReceiver(ctx, front) }},
	} {
		if err := s.connected(ctx); err != nil {
			return err
		}
		s.restock(ctx)
		s.announce(act.title)
		unharmed := s.cloud.killOne(ctx)
		err := act.play(ctx)
		unharmed()
		if err := s.excuse(ctx, act.title, err); err != nil {
			return err
		}
	}
	if err := s.connected(ctx); err != nil {
		return err
	}
	if err := s.tidy(ctx); err != nil {
		return fmt.Errorf("tidy up: %w", err)
	}
	if err := s.shop.waitDelivered(ctx); err != nil {
		return err
	}
	s.logStory("shop", "has got the rest; the deliveries that it refused, and the test that no endpoint took, wait at http://%s/console/webhooks to be sent again", s.http)
	return s.rest(ctx)
}

// excuse lets the day go on after an act that went wrong where guests may have had
// a hand in it; a day without guests ends there.
func (s *stage) excuse(ctx context.Context, title string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.guest == nil || ctx.Err() != nil:
		return fmt.Errorf("%s: %w", title, err)
	}
	s.logStory("day", "this did not go by the script: %v", err)
	return nil
}

// restock has a parcel wait for the guest, if there is one; the next act tries
// again when that fails.
func (s *stage) restock(ctx context.Context) {
	if s.guest == nil {
		return
	}
	if err := s.guest.restock(ctx); err != nil && ctx.Err() == nil {
		s.logStory("guest", "%v", err)
	}
}

// startAgain is how long staff wait for a cabinet before they start it again. After
// a connection that was lost soon, an agent stays away for minutes.
const startAgain = 20 * time.Second

// connected waits for cabinets that were cut off to come back: they take their
// time, so that not all of a fleet come at once. Staff put right what a guest left
// broken.
func (s *stage) connected(ctx context.Context) error {
	away, since := "", time.Now()
	err := s.awaits(ctx, "all cabinets connected", 2*time.Minute, func() bool {
		if s.guest != nil {
			if err := s.guest.putRight(); err != nil {
				s.logStory("staff", "%v", err)
			}
		}
		for _, c := range s.cabinets {
			if away = c.missing(ctx); away == "" {
				continue
			}
			if s.guest != nil && time.Since(since) >= startAgain {
				s.guest.startAgain(c, away)
				since = time.Now()
			}
			return false
		}
		return true
	})
	if err != nil && away != "" {
		return fmt.Errorf("%w: %s", err, away)
	}
	return err
}

// tidy has waiting parcels collected and puts jammed compartments back into
// use, so that the next day finds room.
func (s script) tidy(ctx context.Context) error {
	s.logStory("day", "Evening: what is left is collected, and staff put the jammed compartments back into use")
	for _, p := range s.left {
		err := s.collect(ctx, p)
		if err == nil {
			err = s.becomes(ctx, p, "picked_up", 30*time.Second)
		}
		if err := s.excuse(ctx, p.Number, err); err != nil {
			return err
		}
	}
	s.left = nil
	staff := s.as(s.box.Staff.Token)
	for _, c := range s.cabinets {
		if err := staff.unblock(ctx, c); err != nil {
			return err
		}
		if locked, err := c.locked(ctx); err != nil || !locked {
			continue // a cabinet that is away is no reason to end the day
		}
		if err := s.excuse(ctx, c.code, s.resetTries(ctx, c)); err != nil {
			return err
		}
	}
	return nil
}

// pause is how long a person takes for something.
func (s *stage) pause() { time.Sleep(time.Duration(300+s.rnd.IntN(900)) * time.Millisecond) }

func (s *stage) post(ctx context.Context, c *cabinet, size string) (*parcel, error) {
	s.refs++
	d, err := s.api.create(ctx, c, fmt.Sprintf("DEMO-%d-%03d-%d", s.flags.Seed, s.refs, s.begun.Unix()%100000), size)
	if err != nil {
		return nil, fmt.Errorf("create delivery: %w", err)
	}
	s.logStory("partner", "delivery %s for %s, size %s; watch http://%s/track/PK-%s", d.Number, c.code, size, s.http, d.Reference)
	return &parcel{delivery: d, at: c}, nil
}

// open opens a parcel's doors from afar, and waits until they are.
func (s *stage) open(ctx context.Context, p *parcel) error {
	doors, code, err := s.api.open(ctx, p.ID)
	for end := time.Now().Add(s.limit(8 * time.Second)); time.Now().Before(end); doors, code, err = s.api.open(ctx, p.ID) {
		var refused *apiError
		if !errors.As(err, &refused) || !refused.passing() && !(s.flags.Cluster && refused.away()) {
			break
		}
		s.logStory("courier", "%v; tries again", err)
		sleep(ctx, 2*time.Second)
	}
	if err == nil && len(doors) == 0 { // a repeat of a call whose node was killed
		doors, err = s.api.doors(ctx, p.ID)
	}
	if err != nil {
		return err
	}
	p.doors, p.code = doors, code
	if err := s.areOpen(ctx, p.at, doors); err != nil {
		return err
	}
	s.logStory("courier", "door %v of %s is open", doors, p.at.code)
	return nil
}

// areOpen waits until doors stand open, and a while for the cabinet to see it: on a machine
// with other work that takes longer than a quick hand.
func (s *stage) areOpen(ctx context.Context, c *cabinet, doors []uint) error {
	err := s.awaits(ctx, "doors open", 10*time.Second, func() bool {
		return !slices.ContainsFunc(doors, func(n uint) bool { return !c.sim.OpenAt(n, time.Now()) })
	})
	for end := time.Now().Add(3 * time.Second); err == nil && time.Now().Before(end) && !c.sees(ctx, doors); {
		sleep(ctx, 50*time.Millisecond)
	}
	return err
}

// limit is how long something may take: longer where nodes are killed all day long, and
// cabinets stay away for a while after each.
func (s *stage) limit(d time.Duration) time.Duration {
	if s.flags.Cluster {
		d += time.Minute
	}
	return d
}

// putIn puts the parcel in and closes the doors.
func (s *stage) putIn(p *parcel) error {
	for _, n := range p.doors {
		s.pause()
		if err := p.at.sim.Put(n, "PK-"+p.Reference); err != nil {
			return err
		}
		s.pause()
		if err := p.at.sim.CloseDoor(n); err != nil {
			return err
		}
	}
	return nil
}

// becomes waits for a state of the delivery.
func (s *stage) becomes(ctx context.Context, p *parcel, status string, limit time.Duration) error {
	var last string
	err := s.awaits(ctx, p.Number+" "+status, s.limit(limit), func() bool {
		d, err := s.api.find(ctx, p.ID)
		if err == nil {
			p.delivery, last = d, d.Status
			if p.code == "" && d.PickupCode != nil {
				p.code = *d.PickupCode
			}
		}
		return err == nil && d.Status == status
	})
	if err != nil {
		return fmt.Errorf("%w (it is %s)", err, last)
	}
	by := ""
	if p.ConfirmedBy != nil {
		by = ", confirmed by " + *p.ConfirmedBy
	}
	s.logStory("cloud", "%s is %s%s", p.Number, status, by)
	return nil
}

// deposit is a whole deposit, opened from afar.
func (s *stage) deposit(ctx context.Context, c *cabinet, size string) (*parcel, error) {
	p, err := s.post(ctx, c, size)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, p); err != nil {
		return nil, err
	}
	if err := s.putIn(p); err != nil {
		return nil, err
	}
	return p, s.becomes(ctx, p, "delivered", 20*time.Second)
}

// collect types the pickup code at the cabinet and takes the parcel.
func (s *stage) collect(ctx context.Context, p *parcel) error {
	a, err := openByCode(ctx, s, p)
	for n := 1; errors.Is(err, errNotIn) && n < 3; n++ { // people enter the code once more
		a, err = openByCode(ctx, s, p)
	}
	if err != nil {
		return err
	}
	time.Sleep(1500 * time.Millisecond) // longer than a bounce
	for _, n := range a.Doors {
		_, err := p.at.sim.TakeOut(n)
		if err := errors.Join(err, p.at.sim.CloseDoor(n)); err != nil {
			return err
		}
	}
	return nil
}

// openByCode opens the doors of a parcel by its pickup code.
func openByCode(ctx context.Context, s *stage, p *parcel) (entered, error) {
	a, err := s.enterCode(ctx, p, wire.CodePickup, p.code)
	if err != nil {
		return a, fmt.Errorf("enter pickup code: %w", err)
	}
	if a.Outcome != wire.CodeOK {
		return a, fmt.Errorf("the cabinet answers %q to a valid code", a.Outcome)
	}
	s.logStory("recipient", "%s at %s; door %v opens", a.how(), p.at.code, a.Doors)
	return a, s.areOpen(ctx, p.at, a.Doors)
}

func (s script) whole(ctx context.Context, c *cabinet, size string) error {
	p, err := s.deposit(ctx, c, size)
	if err != nil {
		return err
	}
	if err := s.collect(ctx, p); err != nil {
		return err
	}
	return s.becomes(ctx, p, "picked_up", 20*time.Second)
}

// cutOff runs a scene at a cabinet whose cable is cut, and mends it whatever becomes of the
// scene.
func (s script) cutOff(c *cabinet, scene func() error) error {
	c.cable.set(true)
	s.logStory("cable", "%s is cut off", c.code)
	defer func() {
		c.cable.set(false)
		s.logStory("cable", "%s is connected again", c.code)
	}()
	return scene()
}

func (s script) cutDuringDeposit(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "M")
	if err != nil {
		return err
	}
	if err := s.open(ctx, p); err != nil {
		return err
	}
	err = s.cutOff(c, func() error {
		if err := s.putIn(p); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		err := s.collect(ctx, p)
		time.Sleep(2 * time.Second)
		return err
	})
	if err != nil {
		return err
	}
	return s.becomes(ctx, p, "picked_up", 90*time.Second)
}

func (s script) offlineAllTheWay(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "S")
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // the cabinet receives the codes
	err = s.cutOff(c, func() error {
		a, err := s.enterCode(ctx, p, wire.CodeDelivery, *p.Code)
		if err != nil {
			return err
		}
		if a.Outcome != wire.CodeOK {
			return fmt.Errorf("the cabinet answers %q to the courier's code", a.Outcome)
		}
		s.logStory("courier", "%s of the delivery at %s; door %v opens", a.how(), c.code, a.Doors)
		p.doors = a.Doors
		time.Sleep(3 * time.Second)
		return s.putIn(p)
	})
	if err != nil {
		return err
	}
	if err := s.becomes(ctx, p, "delivered", 90*time.Second); err != nil {
		return err
	}
	if err := s.collect(ctx, p); err != nil {
		return err
	}
	return s.becomes(ctx, p, "picked_up", 20*time.Second)
}

func (s script) leftOpen(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "M")
	if err != nil {
		return err
	}
	if err := s.open(ctx, p); err != nil {
		return err
	}
	s.logStory("courier", "walks away without closing the door")
	time.Sleep(session + 2*time.Second)
	if d, err := s.api.find(ctx, p.ID); err != nil || d.Status != "doors_opened" {
		return fmt.Errorf("with the door open the delivery is %q, %v", d.Status, err)
	}
	s.logStory("neighbour", "pushes the door shut")
	if err := s.putIn(p); err != nil {
		return err
	}
	s.left = append(s.left, p)
	return s.becomes(ctx, p, "delivered", 20*time.Second)
}

func (s script) jamWithRoom(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "S")
	if err != nil {
		return err
	}
	if err := s.jamAll(c, true); err != nil {
		return err
	}
	err = s.open(ctx, p)
	if err == nil {
		return errors.New("a jammed door opened")
	}
	s.logStory("cloud", "the door did not open: %v", err)
	if err := s.jamAll(c, false); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if err := s.open(ctx, p); err != nil {
		return fmt.Errorf("another compartment: %w", err)
	}
	if err := s.putIn(p); err != nil {
		return err
	}
	s.left = append(s.left, p)
	return s.becomes(ctx, p, "delivered", 20*time.Second)
}

// jamWithoutRoom takes the only large compartment of the kiosk.
func (s script) jamWithoutRoom(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "L")
	var refused *apiError
	if errors.As(err, &refused) && refused.Code == "NO_COMPARTMENT" {
		s.logStory("cloud", "no large compartment is left at %s: %s", c.code, refused.Message)
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.jamAll(c, true); err != nil {
		return err
	}
	err = s.open(ctx, p)
	if err == nil {
		return errors.New("a jammed door opened")
	}
	s.logStory("cloud", "the door did not open: %v", err)
	if err := s.jamAll(c, false); err != nil {
		return err
	}
	return s.becomes(ctx, p, "failed", 20*time.Second)
}

func (s script) jamAll(c *cabinet, jam bool) error {
	for _, n := range c.doors {
		f := c.sim.Free
		if jam {
			f = c.sim.Jam
		}
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

func (s script) killAgent(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "S")
	if err != nil {
		return err
	}
	if err := s.open(ctx, p); err != nil {
		return err
	}
	c.power.kill()
	s.logStory("power", "the agent of %s is killed", c.code)
	if err := s.putIn(p); err != nil {
		return err
	}
	if err := c.power.revive(); err != nil {
		return err
	}
	s.logStory("power", "the agent of %s starts again", c.code)
	if err := s.becomes(ctx, p, "delivered", 60*time.Second); err != nil {
		return err
	}
	if err := s.collect(ctx, p); err != nil {
		return err
	}
	return s.becomes(ctx, p, "picked_up", 30*time.Second)
}

func (s script) killCloud(ctx context.Context, c *cabinet) error {
	p, err := s.post(ctx, c, "S")
	if err != nil {
		return err
	}
	if err := s.open(ctx, p); err != nil {
		return err
	}
	s.cloud.killAll()
	s.logStory("power", "the whole cloud is killed")
	if err := s.putIn(p); err != nil {
		return err
	}
	if err := s.becomes(ctx, p, "delivered", 90*time.Second); err != nil {
		return err
	}
	if err := s.collect(ctx, p); err != nil {
		return err
	}
	return s.becomes(ctx, p, "picked_up", 60*time.Second)
}

func (s script) sickReceiver(ctx context.Context, c *cabinet) error {
	s.receiver.setSick(true)
	s.logStory("receiver", "answers 500 to everything")
	p, err := s.deposit(ctx, c, "S")
	s.receiver.setSick(false)
	s.logStory("receiver", "is well again")
	if err != nil {
		return err
	}
	return errors.Join(s.collect(ctx, p), s.becomes(ctx, p, "picked_up", 20*time.Second))
}

// quiet is how long nothing may wait at any cabinet before the day counts as
// over: a command on its way down has a record to come.
const quiet = 3 * time.Second

// rest waits until everything has arrived everywhere.
func (s *stage) rest(ctx context.Context) error {
	since := time.Now()
	return s.awaits(ctx, "everything sent", 90*time.Second, func() bool {
		for _, c := range s.cabinets {
			if c.waiting(ctx) > 0 {
				since = time.Now()
			}
		}
		return time.Since(since) >= quiet
	})
}

// waiting is how many records a cabinet has not been acknowledged for.
func (c *cabinet) waiting(ctx context.Context) int {
	v, err := c.look(ctx)
	if err != nil {
		return 1
	}
	n := 0
	for _, b := range v.Store.Waiting {
		n += b
	}
	return n
}

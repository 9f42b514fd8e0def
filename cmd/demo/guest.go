package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/firmware-sim/page"
)

// guest is a person at this machine: a parcel waits for the guest at the first
// cabinet, and pages show all of them and let the guest touch them. It exists in a
// demo that goes on, not in one day with --once.
type guest struct {
	s     *stage
	addr  string
	close func()

	mu      sync.Mutex
	parcel  *parcel              // that waits; nil: none
	touched map[string]time.Time // cabinets by code, until they were put right
}

// guestAddress is where the page wants to be, beside the cloud's own address.
const guestAddress = "127.0.0.1:8081"

// welcome serves the pages and has the first parcel wait.
func (s *stage) welcome(ctx context.Context) error {
	wanted := guestAddress
	if strings.HasSuffix(s.flags.Listen, ":0") {
		wanted = ""
	}
	addr, err := free(wanted)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for the cabinets' pages: %w", err)
	}
	g := &guest{s: s, addr: addr, touched: map[string]time.Time{}}
	cfg := page.Config{Waiting: g.waiting, OnAct: g.noteAct}
	for _, c := range s.cabinets {
		cfg.Cabinets = append(cfg.Cabinets, page.Cabinet{Code: c.code, Name: c.name, Sim: c.sim, Sizes: c.sizes, Kiosk: "http://" + c.kiosk, Network: &network{c.cable}, Power: c.power})
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := page.New(cfg).Run(serving, ln); err != nil {
			s.logStory("demo", "%v", err)
		}
	}()
	g.close = sync.OnceFunc(func() { stop(); <-ended })
	s.guest = g
	return g.restock(ctx)
}

// leave ends the guest's pages; what the guest touched is in staff's hands.
func (g *guest) leave() {
	g.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.touched)
}

// restock has a parcel wait for the guest, if none does.
func (g *guest) restock(ctx context.Context) error {
	g.mu.Lock()
	waits := g.parcel != nil
	g.mu.Unlock()
	if waits {
		return nil
	}
	p, err := g.bring(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.parcel = p
	g.mu.Unlock()
	g.s.logStory("guest", "delivery %s waits for a guest: %s", p.Number, g.invitation())
	return nil
}

// bring has a courier bring a parcel. One that cannot be put in is taken back.
func (g *guest) bring(ctx context.Context) (*parcel, error) {
	s := g.s
	p, err := s.post(ctx, s.cabinets[0], "M")
	if err != nil {
		return nil, err
	}
	err = s.open(ctx, p)
	if err == nil {
		err = s.putIn(p)
	}
	if err == nil {
		err = s.becomes(ctx, p, "delivered", 20*time.Second)
	}
	if err == nil {
		return p, nil
	}
	back := s.api.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/third-party-delivery/deliveries/%d/cancel", s.api.base, p.ID), map[string]any{"reason": "the door could not be used"}, nil)
	return nil, errors.Join(fmt.Errorf("bring a parcel for the guest: %w", err), back)
}

// invitation says how to collect the parcel that waits; empty when none does.
func (g *guest) invitation() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.parcel == nil {
		return ""
	}
	p := g.parcel
	return fmt.Sprintf("type %s at http://%s and watch door %s at http://%s/%s", p.code, p.at.kiosk, strings.Trim(fmt.Sprint(p.doors), "[]"), g.addr, p.at.code)
}

// waiting finds the parcel that waits at a cabinet.
func (g *guest) waiting(code string) (page.Parcel, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.parcel == nil || g.parcel.at.code != code {
		return page.Parcel{}, false
	}
	return page.Parcel{ID: g.parcel.Number, Code: g.parcel.code, Doors: g.parcel.doors}, true
}

// watch notices when the guest's parcel is collected, until ctx ends.
func (g *guest) watch(ctx context.Context) {
	for ; ctx.Err() == nil; sleep(ctx, 500*time.Millisecond) {
		g.mu.Lock()
		p := g.parcel
		g.mu.Unlock()
		if p == nil {
			continue
		}
		d, err := g.s.api.find(ctx, p.ID)
		if err != nil || d.Status == "delivered" {
			continue
		}
		g.mu.Lock()
		g.parcel = nil
		g.mu.Unlock()
		if d.Status == "picked_up" {
			g.s.logStory("guest", "has collected %s; another parcel comes by itself", d.Number)
		} else {
			g.s.logStory("guest", "%s is %s; another parcel comes by itself", d.Number, d.Status)
		}
	}
}

// acts tell what a guest did, by the page's names.
var acts = map[string]string{"close": "shuts door %d", "force": "forces door %d", "jam": "jams the lock of door %d", "free": "frees the lock of door %d",
	"put": "puts a parcel behind door %d", "take": "empties the box behind door %d",
	"network_off": "cuts the network", "network_on": "restores the network", "power_off": "cuts the power", "power_on": "restores the power"}

// noteAct notes that a guest touched a cabinet.
func (g *guest) noteAct(code, action string, door uint) {
	g.mu.Lock()
	g.touched[code] = time.Now()
	g.mu.Unlock()
	text := acts[action]
	if door != 0 {
		text = fmt.Sprintf(text, door)
	}
	g.s.logStory("guest", "%s: %s", code, text)
}

// patienceWithGuests is how long after a guest's last touch of a cabinet staff
// leave it as it is.
const patienceWithGuests = 45 * time.Second

// putRight has staff see to the cabinets that a guest left alone for a while.
func (g *guest) putRight() error {
	var errs []error
	for _, c := range g.s.cabinets {
		g.mu.Lock()
		at, touched := g.touched[c.code]
		over := touched && time.Since(at) >= patienceWithGuests
		if over {
			delete(g.touched, c.code)
		}
		g.mu.Unlock()
		if over {
			errs = append(errs, c.putRight())
		}
	}
	return errors.Join(errs...)
}

// startAgain has staff start a cabinet again that stays away, unless a guest has just
// touched it.
func (g *guest) startAgain(c *cabinet, why string) {
	g.mu.Lock()
	_, touched := g.touched[c.code]
	g.mu.Unlock()
	if touched {
		return
	}
	g.s.logStory("staff", "start %s again: %s", c.code, why)
	if err := errors.Join(c.power.Set(false), c.power.Set(true)); err != nil {
		g.s.logStory("staff", "%v", err)
	}
}

// putRight restores power and network, frees the locks and shuts the doors.
func (c *cabinet) putRight() error {
	if !c.power.On() || c.cable.isCut() {
		c.s.logStory("staff", "restore power and network of %s", c.code)
	}
	c.cable.set(false)
	return errors.Join(c.power.Set(true), script{c.s}.jamAll(c, false), c.shutDoors())
}

// shutDoors shuts the doors that stand open.
func (c *cabinet) shutDoors() error {
	var errs []error
	for _, d := range c.sim.View().Doors {
		if d.Open {
			c.s.logStory("neighbour", "pushes door %d of %s shut", d.Number, c.code)
			errs = append(errs, c.sim.CloseDoor(d.Number))
		}
	}
	return errors.Join(errs...)
}

// announce says what an act of the day is about, and what waits for a guest.
func (s *stage) announce(title string) {
	s.logStory("day", "%s", title)
	if s.guest == nil {
		return
	}
	if invitation := s.guest.invitation(); invitation != "" {
		s.logStory("guest", "try it: %s", invitation)
	}
}

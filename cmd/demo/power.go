package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// startTakes is how long an agent may take from its start to its first page.
const startTakes = 20 * time.Second

// power is what a cabinet's boards and agent run on. It is a Switch of the
// cabinet's page.
type power struct {
	c *cabinet

	mu  sync.Mutex
	off bool
}

// On reports whether the cabinet has power.
func (p *power) On() bool { p.mu.Lock(); defer p.mu.Unlock(); return !p.off }

// Set cuts the power, which kills the agent and darkens the boards, or restores
// it and waits until the agent answers. An agent that is just starting is waited
// for: a cut in its first moment would leave no trace of that start.
func (p *power) Set(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on == !p.off:
		return nil
	case !on:
		p.c.sim.PowerOff()
		p.c.proc.end(os.Kill)
		p.off = true
		return nil
	}
	p.off = false
	p.c.sim.PowerOn()
	return p.start()
}

// kill ends the agent alone, as a crash does.
func (p *power) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.c.proc.end(os.Kill)
}

// revive starts an agent that was killed, unless there is no power: it starts with
// the power then.
func (p *power) revive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return nil
	}
	return p.start()
}

// start starts the agent, if it does not run, and waits for its first page. p.mu
// is held.
func (p *power) start() error {
	if err := p.c.proc.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTakes)
	defer cancel()
	for {
		if _, err := p.c.look(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start %s: its agent did not answer in %s", p.c.code, startTakes)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// network is a cabinet's way to the cloud. It is a Switch of the cabinet's page.
type network struct{ cable *cable }

// On reports whether the cable is whole.
func (n *network) On() bool { return !n.cable.isCut() }

// Set cuts or mends the cable.
func (n *network) Set(on bool) error {
	n.cable.set(!on)
	return nil
}

package device

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// How often a node looks for what others committed for its devices, and how far back:
// rows are not committed in the order of their times, and clocks of nodes must not
// differ by more.
const (
	followEvery = time.Second
	followBack  = 15 * time.Second
	followMost  = 5 * time.Minute // how far back a node looks that could not
)

// follow finds what other nodes committed for devices that are connected here.
func (s downlink) follow(ctx context.Context) {
	t := time.NewTicker(followEvery)
	defer t.Stop()
	f := follower{changed: s.cfg.Store.ChangedDevices, looked: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if len(s.sessions.list()) == 0 {
				f.looked = now
				continue
			}
			list, err := f.look(ctx, now)
			if err != nil && ctx.Err() == nil {
				s.log.Warn("look for what other nodes committed", "err", err)
			}
			s.Notice(ctx, list)
		}
	}
}

// follower tells what of the changes in the store it has not seen yet.
type follower struct {
	changed func(ctx context.Context, since time.Time) ([]cloud.DeviceChange, error)
	known   map[cloud.DeviceChange]bool
	looked  time.Time // the last look that went well
}

// look gives the devices with changes that no earlier look saw. Rows of before the last one
// may have been committed since.
func (f *follower) look(ctx context.Context, now time.Time) (list []cloud.DeviceID, err error) {
	from := f.looked.Add(-followBack)
	if most := now.Add(-followMost); from.Before(most) {
		from = most
	}
	found, err := f.changed(ctx, from)
	if err != nil {
		return nil, err
	}
	known := make(map[cloud.DeviceChange]bool, len(found))
	for _, c := range found {
		if known[c] = true; !f.known[c] {
			list = append(list, c.DeviceID)
		}
	}
	f.known, f.looked = known, now
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Notice takes note that other nodes may have committed commands, codes, configuration,
// sessions or the end of devices. Those that are connected here are sent what they lack,
// or let go. It does not wait for that.
func (s downlink) Notice(ctx context.Context, list []cloud.DeviceID) {
	if len(list) == 0 {
		return
	}
	for _, x := range s.sessions.list() {
		if slices.Contains(list, x.id) {
			go s.catchUp(ctx, x)
		}
	}
}

// NoticeAll is Notice for every device that is connected here, one after the other: what
// others committed may have been missed.
func (s downlink) NoticeAll(ctx context.Context) {
	for _, x := range s.sessions.list() {
		s.catchUp(ctx, x)
	}
}

// catchUp sends a connected device what another node committed for it, and lets one go
// that is no longer let in or has connected to another node.
func (s downlink) catchUp(ctx context.Context, x *session) {
	var d cloud.Device
	var row cloud.Session
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		if d, err = v.Device(x.id); err != nil {
			return err
		}
		row, err = v.Session(x.id)
		return err
	})
	if err != nil {
		return
	}
	if s.sessions.hasFormer(d) || row.Generation > x.generation {
		s.drop(x)
		return
	}
	x.mu.Lock()
	ready, awaited := x.greeted && !x.closed, x.codesTo
	x.mu.Unlock()
	if ready {
		s.sendLacking(ctx, x, d, awaited != d.CodeList, true)
	}
}

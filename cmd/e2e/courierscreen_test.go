package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// courierHands does what happens around a courier at a cabinet's screen; a script asks for it.
// What it does not know more does.
func (w *world) courierHands(c *cabinet, more http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", more)
	n := 0
	act := func(path string, do func(r *http.Request) (any, error)) {
		mux.HandleFunc("GET "+path, func(rw http.ResponseWriter, r *http.Request) {
			out, err := do(r)
			if err != nil {
				http.Error(rw, err.Error(), http.StatusConflict)
				return
			}
			_ = json.NewEncoder(rw).Encode(out) // the script has gone
		})
	}
	grids := func(change func(locker.GridBody) error, is func(locker.GridBody) bool) (err error) {
		out, err := w.cloud.Lockers.FindDevice(context.Background(), w.box.AdminCaller, w.box.Devices[0].DeviceID)
		for _, g := range out.Device.Grids {
			if is(g) {
				err = errors.Join(err, change(g))
			}
		}
		return err
	}
	settled := func(is func(edgelocker.Door) bool) error {
		for range 300 {
			ok := true
			for _, d := range c.agent.Loop().State().Doors {
				ok = ok && is(d)
			}
			if ok {
				return nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		return errors.New("the cabinet did not obey in time")
	}
	act("/bring", func(r *http.Request) (any, error) { // a delivery of so many parcels
		n++
		var packages []string
		for i := range r.URL.Query()["parcel"] {
			packages = append(packages, fmt.Sprintf("PK-C%d-%d", n, i+1))
		}
		d := w.create(fmt.Sprintf("C-%d", n), 0, packages...)
		w.listed(c)
		return map[string]any{"code": *d.DeliveryCode, "ref": d.ReferenceNumber, "packages": packages}, nil
	})
	act("/doors", func(*http.Request) (any, error) { // that stand open, those that were left first
		var left, open []uint
		for _, o := range c.agent.Loop().State().Openings {
			for _, d := range o.Doors {
				if o.Cancelled {
					left = append(left, uint(d.Door))
				} else if d.Phase == edgelocker.Opened {
					open = append(open, uint(d.Door))
				}
			}
		}
		return map[string]any{"left": left, "open": open}, nil
	})
	act("/full", func(*http.Request) (any, error) { // no compartment is free any more
		var free []string
		for range 60 { // one may come free in the cloud meanwhile
			err := grids(func(g locker.GridBody) error {
				_, err := w.cloud.Lockers.Block(context.Background(), w.box.AdminCaller, locker.BlockInput{Device: w.box.Devices[0].DeviceID, Grid: g.GridID, Reason: "test"})
				return err
			}, func(g locker.GridBody) bool { return g.State == cloud.GridFree })
			if err != nil {
				return nil, err
			}
			free = nil
			for _, d := range c.agent.Loop().State().Doors {
				if d.Blocked == "" && d.Delivery == "" && !w.isPlanned(c, d.Number) {
					free = append(free, fmt.Sprintf("%d %s", d.Number, w.cellOf(c, uint(d.Number)).State))
				}
			}
			if len(free) == 0 {
				return nil, nil
			}
			time.Sleep(500 * time.Millisecond)
		}
		return nil, fmt.Errorf("free at the cabinet, with their state in the cloud: %v", free)
	})
	act("/clean", func(*http.Request) (any, error) { // staff put all compartments back into use
		err := grids(func(g locker.GridBody) error {
			_, err := w.cloud.Lockers.Unblock(context.Background(), w.box.AdminCaller, locker.UnblockInput{Device: w.box.Devices[0].DeviceID, Grid: g.GridID})
			return err
		}, func(g locker.GridBody) bool { return g.State == cloud.GridBlocked })
		return nil, errors.Join(err, settled(func(d edgelocker.Door) bool { return d.Blocked == "" }))
	})
	act("/blocked", func(*http.Request) (any, error) { // as the cloud has it, with the reason
		out := map[uint]string{}
		err := grids(func(g locker.GridBody) error { out[g.Door] = *g.BlockReason; return nil }, func(g locker.GridBody) bool { return g.State == cloud.GridBlocked })
		return out, err
	})
	act("/over", func(r *http.Request) (any, error) { // a delivery is collected, or given up; without ref the newest
		ref := cmp.Or(r.URL.Query().Get("ref"), fmt.Sprintf("C-%d", n))
		if w.find(ref).Status != cloud.DeliveryDelivered {
			_, err := w.cloud.Lockers.Cancel(context.Background(), w.box.ProviderCaller, locker.CancelInput{Delivery: locker.DeliveryKey("ref:" + ref), Reason: "test"})
			return nil, err
		}
		a := c.try(*w.find(ref).PickupCode)
		if a.Outcome != wire.CodeOK {
			return nil, fmt.Errorf("the code opens nothing: %s", a.Outcome)
		}
		time.Sleep(2 * time.Second)
		var err error
		for _, d := range a.Doors {
			_, out := c.sim.TakeOut(uint(d))
			err = errors.Join(err, out, c.sim.CloseDoor(uint(d)))
		}
		return nil, err
	})
	act("/key", func(r *http.Request) (any, error) { // a technician opens a door with its key
		door, err := strconv.ParseUint(r.URL.Query().Get("door"), 10, 32)
		return nil, errors.Join(err, c.sim.Force(uint(door)))
	})
	act("/polarity", func(r *http.Request) (any, error) { // the cloud's layout says how a door's switch reads
		q := r.URL.Query()
		door, err := strconv.ParseUint(q.Get("door"), 10, 32)
		if err != nil {
			return nil, err
		}
		out, err := w.cloud.Lockers.FindDevice(context.Background(), w.box.AdminCaller, w.box.Devices[0].DeviceID)
		if err != nil {
			return nil, err
		}
		in, inverted := locker.LayoutInput{Device: w.box.Devices[0].DeviceID}, q.Has("inverted")
		for _, code := range out.Device.Shelves {
			in.Shelves = append(in.Shelves, locker.LayoutShelf{Code: code})
		}
		for _, g := range out.Device.Grids {
			x := locker.LayoutGrid{Door: int(g.Door), Column: g.Column, Row: g.Row, Size: g.Size, PickupEnabled: &g.PickupEnabled}
			if uint64(g.Door) == door {
				x.Inverted = &inverted
			}
			at := slices.Index(out.Device.Shelves, g.ShelfCode)
			in.Shelves[at].Grids = append(in.Shelves[at].Grids, x)
		}
		if out, err = w.cloud.Lockers.SetLayout(context.Background(), w.box.AdminCaller, in); err != nil {
			return nil, err
		}
		for range 300 {
			if s := c.agent.Loop().State(); s.Config.Version == out.Device.ConfigVersion && s.Doors[edge.DoorNumber(door)].Known {
				return nil, nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		return nil, errors.New("the cabinet has not applied the layout in time")
	})
	act("/arrived", func(*http.Request) (any, error) { w.delivered(fmt.Sprintf("C-%d", n)); return nil, nil })
	return mux
}

// isPlanned reports whether the code list of a cabinet names a door.
func (w *world) isPlanned(c *cabinet, n edge.DoorNumber) bool {
	for _, e := range c.agent.Loop().State().Codes {
		for _, d := range e.Doors {
			if d == uint(n) {
				return true
			}
		}
	}
	return false
}

// Couriers use the screen of a cabinet in a real browser when a compartment cannot take their
// parcel, with the link cut in between.
func TestCouriersUseTheScreenOfACabinet(t *testing.T) {
	ring.SkipUnlessFull(t, "minutes of a browser; the same acts are tried in shorter rings without one")
	w := newWorld(t, 7, 1) // with sensors of items
	defer w.close()
	found := w.useScreen(t, w.cabinets[0], "courier.mjs")
	for _, kind := range found.kinds() {
		for what, want := range map[string]string{"dirty": "dirty", "several": "broken", "none": "occupied", "stays": "trouble", "known label": "dropoff", "chosen": "large", "none title": "No compartment is free"} {
			require.Equal(t, want, found.Screens[kind+"-"+strings.ReplaceAll(what, " ", "-")], "%s %s", kind, what)
		}
		require.Regexp(t, `^Door .* is wired as the layout says\.$`, found.Screens[kind+"-learned-right"])
		require.Regexp(t, `^The switch of door .* reads the other way round\.$`, found.Screens[kind+"-learned-wrong"])
		require.NotContains(t, found.Screens, kind+"-receipt-of-nothing")
		require.Contains(t, found.Screens[kind+"-none-lead"], "The delivery stays open")
		require.Regexp(t, `^Take the parcel out of door`, found.Screens[kind+"-none-take-back"])
	}
}

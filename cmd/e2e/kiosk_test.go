package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// physical does what people and technicians do at a cabinet; a script asks for it.
// scanned gets the answers of the cabinet's scanner.
func (w *world) physical(c *cabinet, staff string, scanned func(scanner.Result)) http.Handler {
	mux := http.NewServeMux()
	n := 0
	newRef := func() string { n++; return fmt.Sprintf("K-%d", n) }
	type parcel struct {
		Code string `json:"code"`
		QR   string `json:"qr,omitempty"`
		Door uint   `json:"door,omitempty"`
		Left uint   `json:"left,omitempty"` // door that was left for Door
		// Delivery is what lies behind Door, as the cabinet has it.
		Delivery string `json:"delivery,omitempty"`
	}
	act := func(path string, do func(door uint) (parcel, error)) {
		mux.HandleFunc("GET "+path, func(rw http.ResponseWriter, r *http.Request) {
			door, _ := strconv.ParseUint(r.URL.Query().Get("door"), 10, 32)
			out, err := do(uint(door))
			if err != nil {
				http.Error(rw, err.Error(), http.StatusConflict)
				return
			}
			_ = json.NewEncoder(rw).Encode(out) // the script has gone
		})
	}
	plain := func(path string, do func(door uint) error) {
		act(path, func(door uint) (parcel, error) { return parcel{}, do(door) })
	}
	deposit := func(uint) (parcel, error) {
		ref := newRef()
		w.create(ref, 0, "PK-"+ref)
		out, err := w.open(ref)
		for end := time.Now().Add(20 * time.Second); refusal(err) == "DELIVERY_STATE_CONFLICT" && time.Now().Before(end); out, err = w.open(ref) {
			time.Sleep(100 * time.Millisecond) // the cloud learns in a moment that the opening before has ended there
		}
		if err != nil {
			return parcel{}, err
		}
		door := out.Opening.Compartments[0].Door
		time.Sleep(2 * time.Second)
		if err := c.sim.Put(door, "PK"); err != nil {
			return parcel{}, err
		}
		if err := c.sim.CloseDoor(door); err != nil {
			return parcel{}, err
		}
		w.delivered(ref)
		return parcel{Code: *out.PickupCode, QR: passcode.QR(c.code, *out.PickupCode), Door: door}, nil
	}
	act("/deposit", deposit)
	act("/overdue", func(uint) (parcel, error) {
		p, err := deposit(0)
		if err == nil {
			_, err = w.cloud.Lockers.ExpireDelivery(context.Background(), w.box.AdminCaller, locker.EndInput{Delivery: locker.DeliveryKey(strconv.FormatInt(int64(w.find("K-"+strconv.Itoa(n)).DeliveryID), 10)), Reason: "Too long"})
		}
		return p, err
	})
	for path, purpose := range map[string]string{"/send": wire.PurposeSend, "/return": wire.PurposeReturn} { // a code of a sender
		act(path, func(uint) (parcel, error) {
			d := w.sends(purpose, newRef())
			w.listed(c)
			return parcel{Code: *d.DeliveryCode}, nil
		})
	}
	act("/create", func(uint) (parcel, error) {
		d := w.create(newRef(), 0, "PK-"+strconv.Itoa(n))
		w.listed(c)
		return parcel{Code: *d.DeliveryCode}, nil
	})
	act("/collected", func(uint) (parcel, error) { // of the newest delivery that waits, later
		var d locker.DeliveryOutput
		for i := n; d.Delivery.PickupCode == nil; i-- {
			var err error
			if d, err = w.cloud.Lockers.Find(context.Background(), w.box.ProviderCaller, locker.DeliveryKey("ref:K-"+strconv.Itoa(i))); err != nil {
				return parcel{}, err
			}
		}
		a := c.try(*d.Delivery.PickupCode)
		if a.Outcome != wire.CodeOK {
			return parcel{}, fmt.Errorf("the code opens nothing: %s", a.Outcome)
		}
		time.Sleep(2 * time.Second)
		_, err := c.sim.TakeOut(uint(a.Doors[0]))
		return parcel{}, errors.Join(err, c.sim.CloseDoor(uint(a.Doors[0])))
	})
	act("/opened", func(uint) (parcel, error) {
		for _, d := range c.sim.View().Doors {
			if d.Open {
				return parcel{Door: d.Number}, nil
			}
		}
		return parcel{}, fmt.Errorf("no door is open")
	})
	act("/larger", func(uint) (out parcel, err error) { // the doors of a courier whose parcel did not fit
		for _, o := range c.agent.Loop().State().Openings {
			if n := uint(o.Doors[0].Door); o.Cancelled {
				out.Left = n
			} else {
				out.Door = n
			}
		}
		return out, nil
	})
	act("/delivered", func(uint) (parcel, error) { // where the cabinet put it, by word of the cloud
		ref := "K-" + strconv.Itoa(n)
		w.delivered(ref)
		return parcel{}, nil
	})
	act("/staff", func(uint) (parcel, error) { return parcel{Code: staff}, nil })
	plain("/cut", func(uint) error { c.setCut(true); return nil })
	plain("/mend", func(uint) error { c.setCut(false); w.ready(c); c.drained(); return nil })
	plain("/listed", func(uint) error { w.listed(c); return nil })
	plain("/put", func(d uint) error { return c.sim.Put(d, "PK") })
	plain("/take", func(d uint) error { _, err := c.sim.TakeOut(d); return err })
	plain("/close", func(d uint) error { return c.sim.CloseDoor(d) })
	act("/holds", func(d uint) (parcel, error) { return parcel{Delivery: c.doorOf(d).Delivery}, nil })
	plain("/clear", func(d uint) (err error) { // it is empty
		w.awaits("the opening has ended", time.Minute, func() bool {
			_, err = w.cloud.Lockers.Clear(context.Background(), w.box.AdminCaller, locker.ClearInput{Device: w.box.Devices[0].DeviceID, Grid: w.cellOf(c, d).GridID, Reason: "empty"})
			return err == nil && c.doorOf(d).Delivery == ""
		})
		return err
	})
	plain("/jam", func(d uint) error { return c.sim.Jam(d) })
	plain("/free", func(d uint) error { return c.sim.Free(d) })
	mux.HandleFunc("GET /scan", func(rw http.ResponseWriter, r *http.Request) {
		answer, err := c.agent.Codes().Scan(r.Context(), r.URL.Query().Get("text"))
		scanned(scanner.Result{Outcome: scanner.CodeTried, Answer: answer, Err: err})
		_ = json.NewEncoder(rw).Encode(parcel{}) // the script has gone
	})
	return mux
}

// Recipients, couriers and staff use the screen of a cabinet in a real browser, with the
// link cut and mended in between; the cabinet's agent, its boards and the cloud are real
// but for the hardware.
func TestPeopleUseTheScreenOfACabinet(t *testing.T) {
	ring.SkipUnlessFull(t, "minutes of a browser; what a guest does at the screen is tried in a shorter ring")
	w := newWorld(t, 7, 1) // with sensors of items
	defer w.close()
	found := w.useScreen(t, w.cabinets[0], "kiosk.mjs")
	require.Empty(t, found.Leaks)
	require.Len(t, found.Idle, 8*len(found.kinds()))
	for screen, came := range found.Idle {
		require.True(t, came, "%s: the start comes back by itself, after a question", screen)
	}
	for _, kind := range found.kinds() {
		for what, want := range map[string]any{"shown": true, "stays-while-open": "flow", "thanks": "Thank you", "jammed": "The door did not open", "larger-stays-while-open": "flow", "staff-left": true, "choices-are-reset": true} {
			require.Equal(t, want, found.Screens[kind+"-"+what], "%s %s", kind, what)
		}
		require.Regexp(t, `^Door \d`, found.Screens[kind+"-door"])
		require.Regexp(t, `^Put the parcel in and close door`, found.Screens[kind+"-larger-lead"])
		require.Regexp(t, `^Door .* is closed\.$`, found.Screens[kind+"-larger-thanks"])
		require.Equal(t, touches{Taps: 3, Digits: 6}, found.Taps[kind+"-pickup"])
		require.Equal(t, touches{Taps: 1}, found.Taps[kind+"-pickup-by-scanner"], "to finish")
		require.Equal(t, touches{Taps: 2, Digits: 7}, found.Taps[kind+"-dropoff"])
	}
}

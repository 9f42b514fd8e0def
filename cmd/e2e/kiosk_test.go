package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge/kiosk"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/browsertest"
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
	plain("/mend", func(uint) error { c.setCut(false); w.ready(c); return nil })
	plain("/put", func(d uint) error { return c.sim.Put(d, "PK") })
	plain("/take", func(d uint) error { _, err := c.sim.TakeOut(d); return err })
	plain("/close", func(d uint) error { return c.sim.CloseDoor(d) })
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
	chromium, node := browsertest.Tools(t)
	w := newWorld(t, 7, 1) // with sensors of items
	defer w.close()
	c := w.cabinets[0]
	require.True(t, c.sensors)
	var page atomic.Pointer[kiosk.Kiosk]
	c.act = func(x edgelocker.Action) {
		if k := page.Load(); k != nil {
			k.Act(x)
		}
	}
	c.restart(0)
	w.ready(c)
	staff := w.drawStaffCodes(c)[0].Code
	page.Store(kiosk.New(kiosk.Config{DeviceCode: c.code, Operator: kiosk.Operator{Name: "Acme Logistics", Phone: "+1 416 555 0100", Email: "help@acme.example"}, Codes: c.agent.Codes(),
		Loop: c.agent.Loop(), Link: c.agent.Link(), Now: c.agent.Now, Health: c.agent.Health, OnSite: c.agent.OnSite,
		Store: func() kiosk.StoreState {
			return kiosk.StoreState{FilledPercent: c.agent.Store().Filled(), Waiting: c.agent.Store().Present().Backlog}
		}}))
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- page.Load().Run(ctx, ln) }()
	defer func() { stop(); require.NoError(t, <-ended) }()
	hands := httptest.NewServer(w.physical(c, staff, page.Load().Scanned))
	defer hands.Close()

	args := []string{"kiosk.mjs", "http://" + ln.Addr().String(), hands.URL, chromium}
	if dir := os.Getenv(browsertest.Pictures); dir != "" {
		args = append(args, dir)
	}
	cmd := exec.CommandContext(t.Context(), node, args...)
	cmd.Dir = "../../cloud/page/browser"
	kinds := []string{"portrait", "landscape"}
	cmd.Env = append(os.Environ(), "KINDS="+strings.Join(kinds, " "))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errs.String())
	var found struct {
		Axe                                            map[string][]string
		Overflow, Console, Foreign, Small, High, Leaks []string
		Idle                                           map[string]bool
		Screens                                        map[string]any
	}
	require.NoError(t, json.Unmarshal(out, &found))
	for screen, violations := range found.Axe {
		require.Empty(t, violations, screen)
	}
	require.Empty(t, found.Console, "errors in the browser's console")
	require.Empty(t, found.Foreign, "requests to other hosts")
	require.Empty(t, found.Overflow, "screens wider than the window")
	require.Empty(t, found.Small, "what is touched and smaller than 96 by 96")
	require.Empty(t, found.High, "what is touched and out of a seated person's reach")
	require.Empty(t, found.Leaks)
	require.Len(t, found.Idle, 6*len(kinds))
	for screen, came := range found.Idle {
		require.True(t, came, "%s: the start comes back by itself, after a question", screen)
	}
	for _, kind := range kinds {
		for what, want := range map[string]any{"shown": true, "stays-while-open": "flow", "thanks": "Thank you", "jammed": "The door did not open", "larger-stays-while-open": "flow", "staff-left": true, "choices-are-reset": true} {
			require.Equal(t, want, found.Screens[kind+"-"+what], "%s %s", kind, what)
		}
		require.Regexp(t, `^Door \d`, found.Screens[kind+"-door"])
		require.Regexp(t, `^Put the parcel in and close door`, found.Screens[kind+"-larger-lead"])
		require.Regexp(t, `^Door .* is closed\.$`, found.Screens[kind+"-larger-thanks"])
	}
}

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cmd/httpdevice/client"
	"github.com/postern-io/postern/cmd/internal/truth"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// httpBox is a device that speaks HTTP: doors that a person can use, and the program that a device
// of its kind would run (cmd/httpdevice/client), over a network that loses calls.
type httpBox struct {
	w       *world
	id      cloud.DeviceID
	code    string
	secrets client.Secrets
	net     *boxNetwork
	off     atomic.Int64 // of its clock, ns
	run     sync.WaitGroup
	moved   chan struct{} // has room for one

	mu      sync.Mutex // guards all below
	program *client.Device
	stop    context.CancelFunc
	ends    <-chan struct{} // of the program
	failing bool            // the power goes with the next lock that is pulsed
	doors   []boxDoor       // by number less one
	facts   []simboard.Fact
	unlocks []truth.Unlock
	trouble []truth.Span
	tasks   []*task
}

type boxDoor struct {
	open, stuck bool
	items       []string
}

// newBox adds a device and starts its program.
func (w *world) newBox() *httpBox {
	w.t.Helper()
	ctx := context.Background()
	made, err := w.cloud.Setup.AddCabinet(ctx, w.box.AdminCaller, setup.CabinetInput{Name: "Box", Code: "BOX-1", Layout: "small", Protocol: cloud.ProtocolHTTP})
	require.NoError(w.t, err)
	b := &httpBox{w: w, id: made.Device.ID, code: "BOX-1", moved: make(chan struct{}, 1), net: &boxNetwork{w: w, rnd: rand.New(rand.NewPCG(w.seed, 11))}}
	raw, err := w.cloud.Enrol(ctx, b.code, made.Enrolment.Token, nil)
	require.NoError(w.t, err)
	text, err := json.Marshal(raw)
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(text, &b.secrets))
	var conf wire.Config
	d, err := w.cloud.Store.FindDeviceByCode(ctx, b.code)
	require.NoError(w.t, err)
	require.NoError(w.t, wire.Decode(d.Config, &conf))
	b.doors = make([]boxDoor, len(conf.Layout))
	b.powerOn()
	return b
}

// powerOn starts the program, which reads how the doors stand.
func (b *httpBox) powerOn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.program != nil {
		return // another hand was quicker
	}
	ctx, stop := context.WithCancel(context.Background())
	var now []client.Door
	for i, d := range b.doors {
		now = append(now, client.Door{Door: uint(i + 1), State: map[bool]string{true: "open", false: "closed"}[d.open]})
	}
	p := client.New(client.Config{Cloud: "https://cloud.example", Transport: b.net, Secrets: b.secrets, Doors: now,
		Now:    func() time.Time { return time.Now().Add(time.Duration(b.off.Load())) },
		Unlock: func(n uint, c wire.Command) { b.unlock(ctx, n, c) }, Do: func(wire.Command) {}})
	b.program, b.stop, b.ends = p, stop, ctx.Done()
	b.run.Go(func() { // a move is reported at once, also while a call waits for orders
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.moved:
				_ = p.Send(ctx)
			}
		}
	})
	b.run.Go(func() {
		for ctx.Err() == nil {
			if p.Turn(ctx) != nil {
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		}
	})
}

// powerOff ends the program in whatever it does. The doors stay as they are.
func (b *httpBox) powerOff() {
	b.mu.Lock()
	stop := b.stop
	b.program = nil
	b.mu.Unlock()
	stop()
	b.run.Wait()
}

// fact notes what happened, and move moves a door; the caller holds mu.
func (b *httpBox) fact(n uint, kind simboard.FactKind, item string) {
	b.facts = append(b.facts, simboard.Fact{At: time.Now(), Door: n, Kind: kind, Cause: simboard.ByRequest, Item: item})
}

func (b *httpBox) move(n uint, open bool) {
	d := &b.doors[n-1]
	if d.open == open {
		return
	}
	d.open = open
	kind, state := simboard.Closed, "closed"
	if open {
		kind, state = simboard.Opened, "open"
	}
	b.fact(n, kind, "")
	if b.program != nil {
		b.program.Moved(n, state)
		select {
		case b.moved <- struct{}{}:
		default:
		}
	}
}

// unlock pulses a lock, unless the power went.
func (b *httpBox) unlock(ctx context.Context, n uint, c wire.Command) {
	var open wire.OpenDoors
	_ = wire.Decode(c.Body, &open)
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	b.unlocks = append(b.unlocks, truth.Unlock{At: time.Now(), Door: n, Command: c.CommandID, Opening: open.OpeningID, Ends: time.Unix(0, c.ExpiresAt)})
	b.fact(n, simboard.CoilFired, "")
	if !b.doors[n-1].stuck {
		b.move(n, true)
	}
	if b.failing { // before anything is said of it
		b.failing = false
		b.stop()
	}
}

// failAtLock has the power go with the next lock that is pulsed, for a while.
func (b *httpBox) failAtLock(off time.Duration) {
	b.mu.Lock()
	b.failing = true
	ends := b.ends
	b.mu.Unlock()
	select {
	case <-ends:
	case <-time.After(3 * time.Minute):
	}
	b.mu.Lock()
	gone := ends == b.ends && !b.failing && b.program != nil
	b.failing = false
	b.mu.Unlock()
	if gone {
		b.powerOff()
		time.Sleep(off)
		b.powerOn()
	}
}

// with does something at a door that stands open.
func (b *httpBox) with(n uint, do func(d *boxDoor)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.doors[n-1].open {
		return errShut
	}
	do(&b.doors[n-1])
	return nil
}

func (b *httpBox) put(n uint, item string) error {
	return b.with(n, func(d *boxDoor) { d.items = append(d.items, item); b.fact(n, simboard.ItemIn, item) })
}

func (b *httpBox) take(n uint) (items []string, err error) {
	err = b.with(n, func(d *boxDoor) {
		for _, item := range d.items {
			b.fact(n, simboard.ItemOut, item)
		}
		items, d.items = d.items, nil
	})
	return items, err
}

func (b *httpBox) close(n uint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.move(n, false)
}

// force opens a door by hand.
func (b *httpBox) force(n uint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = append(b.trouble, truth.Span{At: time.Now(), Until: time.Now().Add(time.Second), What: "force", Door: n})
	b.move(n, true)
}

// part is the device's share of a case.
func (b *httpBox) part() truth.Simple {
	b.mu.Lock()
	defer b.mu.Unlock()
	return truth.Simple{Code: b.code, Facts: slices.Clone(b.facts), Unlocks: slices.Clone(b.unlocks), Trouble: slices.Clone(b.trouble)}
}

// mend ends all trouble of the device and closes its doors.
func (b *httpBox) mend() {
	b.net.cut.Store(false)
	b.net.noise.Store(0)
	b.off.Store(0)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.doors {
		b.doors[i].stuck = false
		b.move(uint(i+1), false)
	}
}

// told reports whether the cloud has heard how the doors stand, and nothing waits.
func (b *httpBox) told() (told bool) {
	err := b.w.server().Store.Look(context.Background(), func(v cloud.View) error {
		row, err := v.Session(b.id)
		if err != nil || !row.Online {
			return err
		}
		cells, err := v.Compartments(b.id)
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		told = !slices.ContainsFunc(cells, func(c cloud.Compartment) bool {
			isShut := c.DoorStatus == "closed" || c.DoorStatus == "jammed" // and did not open when it was to
			return b.doors[c.Door-1].open == isShut || !isShut && c.DoorStatus != "open"
		})
		return nil
	})
	return told && err == nil
}

// boxNetwork brings calls of a box to the cloud, or not.
type boxNetwork struct {
	w     *world
	cut   atomic.Bool
	noise atomic.Int64 // chance in a hundred that a call is lost, not answered, late, answered late or made twice

	mu  sync.Mutex
	rnd *rand.Rand // guarded by mu
}

// fate is what happens to a call.
func (n *boxNetwork) fate() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rnd.Int64N(100) >= n.noise.Load() {
		return ""
	}
	return pick(n.rnd, "lost", "unanswered", "late", "slow", "twice")
}

// RoundTrip has the cloud answer as its HTTP face does.
func (n *boxNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	fate := n.fate()
	if fate == "late" && !sleep(r.Context(), 7*time.Second) {
		return nil, r.Context().Err()
	}
	if fate == "lost" || n.cut.Load() {
		_ = sleep(r.Context(), 3*time.Second)
		return nil, errCut
	}
	status, answer := n.arrive(r, body)
	if fate == "twice" { // something between the two repeats it
		if again, _ := n.arrive(r, body); again == http.StatusOK && strings.HasPrefix(r.URL.Path, "/api/v1/devices/") {
			n.w.t.Errorf("%s %s was taken twice", r.Method, r.URL.Path)
		}
	}
	if fate == "slow" && !sleep(r.Context(), 25*time.Second) {
		return nil, r.Context().Err()
	}
	if fate == "unanswered" || n.cut.Load() || r.Context().Err() != nil {
		return nil, errCut
	}
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(bytes.NewReader(answer)), Request: r}, nil
}

// arrive has the cloud's present process answer a call.
func (n *boxNetwork) arrive(r *http.Request, body []byte) (status int, answer []byte) {
	var in fasthttp.Request
	in.Header.SetMethod(r.Method)
	in.SetRequestURI(r.URL.RequestURI())
	in.Header.SetHost("127.0.0.1:8080")
	in.SetBody(body)
	for name := range r.Header {
		in.Header.Set(name, r.Header.Get(name))
	}
	var c fasthttp.RequestCtx
	c.Init(&in, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	peer.Proxies{}.Resolve(&c)
	path := r.URL.Path
	if id, is := strings.CutSuffix(strings.TrimPrefix(path, "/api/v1/devices/commands/"), "/ack"); is {
		path = "/api/v1/devices/commands/{cmd_id}/ack"
		c.SetUserValue("cmd_id", id)
	}
	routes := n.w.server().HTTPDevices.Routes()
	for _, route := range routes {
		if route.Path != path {
			continue
		}
		out, err := route.Answer(r.Context(), &c)
		var refused *cloud.Error
		switch {
		case errors.As(err, &refused):
			return catalog.Status(refused), []byte(refused.Code)
		case err != nil:
			return http.StatusInternalServerError, nil
		}
		answer, err = json.Marshal(out)
		require.NoError(n.w.t, err)
		return http.StatusOK, answer
	}
	return http.StatusNotFound, nil
}

// sleep waits; false when ctx has ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// enter types or shows a code at the box.
func (b *httpBox) enter(a truth.Act, code string, scan bool) (out client.Verified, err error) {
	b.mu.Lock()
	p := b.program
	b.mu.Unlock()
	if p == nil {
		return out, errCut
	}
	input := "keypad"
	if scan {
		input, code = "qr", fmt.Sprintf("PU:%s:%s", b.code, code)
	}
	a.Cabinet, a.Kind, a.Scanned = b.code, "code", scan
	n := b.w.act(a)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	out, err = p.Verify(ctx, code, input)
	if err == nil {
		b.answered(n, out.Action == "open", cmp.Or(out.Reason, wire.CodeOK), out.Doors)
	}
	return out, err
}

func (b *httpBox) answered(n int, ok bool, outcome string, doors []uint) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	x := &b.w.acts[n]
	x.Until, x.OK, x.Outcome, x.Doors = time.Now(), ok, outcome, doors
}

// openedFor are the doors that were unlocked for a delivery since a moment, or that stand open as
// one of its openings wants them, as a forced one does.
func (b *httpBox) openedFor(x *task, since time.Time) (doors []uint) {
	b.mu.Lock()
	list := slices.Clone(b.unlocks)
	b.mu.Unlock()
	for _, u := range list {
		if !u.At.Before(since) && !slices.Contains(doors, u.Door) && b.w.opens(u.Opening, x) {
			doors = append(doors, u.Door)
		}
	}
	_ = b.w.server().Store.Look(context.Background(), func(v cloud.View) error {
		openings, err := v.DeliveryOpenings(x.id)
		for _, o := range openings {
			for _, d := range o.Doors {
				if o.State == cloud.OpeningRunning && !o.RequestedAt.Before(since.Add(-time.Second)) && d.Status == wire.DoorOpen && !slices.Contains(doors, d.Door) {
					doors = append(doors, d.Door)
				}
			}
		}
		return err
	})
	return doors
}

// boxPatience is how long a person waits for a door: beyond the end of an act and its order.
const boxPatience = 100 * time.Second

// useDoors does something at each door that opens for a delivery, until done says that it is
// enough. A door that stands open was opened for it, or another person has left it open.
func (b *httpBox) useDoors(x *task, since time.Time, do func(n uint) (done bool)) (used []uint) {
	for end := time.Now().Add(boxPatience); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		for _, n := range b.openedFor(x, since) {
			if slices.Contains(used, n) || b.with(n, func(*boxDoor) {}) != nil {
				continue
			}
			used = append(used, n)
			if do(n) {
				return used
			}
		}
	}
	return used
}

// leave closes the doors behind a person, most of the time.
func (b *httpBox) leave(doors []uint, rnd *rand.Rand) {
	time.Sleep(time.Duration(1+rnd.IntN(15)) * time.Second)
	for _, n := range doors {
		if rnd.IntN(9) > 0 {
			b.close(n)
		}
	}
}

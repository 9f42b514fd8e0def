package e2e

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// drop is a device that speaks HTTP, in simulated time: its doors and what lies behind them
// are real, its program starts again and its network fails.
type drop struct {
	w       *world
	id      cloud.DeviceID
	code    string
	secret  string
	keys    []wire.PinnedKey
	cut     bool // nothing passes
	loseOut bool // calls arrive, answers do not

	mu       sync.Mutex
	open     map[uint]bool
	item     map[uint]string // reference of the delivery that lies there
	closed   map[uint]time.Time
	executed map[string]int // orders by id, ever
	pulses   []dropPulse

	instance     string
	seq          uint64
	reports      []map[string]any
	moved        map[uint]uint64 // number of each door's newest report of this start
	done         map[string]string
	node         *httpdevice.Service // that takes its calls; nil: the cloud's
	acknowledged func()              // after an answer to an order, nil for nothing
	obeyed       func()              // after an order, nil for nothing
	pulled       func(door uint)     // a lock is released, and a person pulls; nil: its door springs open
	wait         int                 // s, of a call that waits for orders; 0 is 5
	stop         chan struct{}
	run          sync.WaitGroup
}

type dropPulse struct {
	at      time.Time
	door    uint
	opening string
}

func (w *world) newDrop(code string) *drop {
	w.t.Helper()
	made, err := w.cloud.Setup.AddCabinet(context.Background(), w.box.AdminCaller, setup.CabinetInput{Name: "Drop", Code: code, Layout: "small", Protocol: "http"})
	require.NoError(w.t, err)
	d := &drop{w: w, id: made.Device.ID, code: code, open: map[uint]bool{}, item: map[uint]string{}, closed: map[uint]time.Time{}, executed: map[string]int{}}
	d.enrol(made.Enrolment.Token)
	d.start()
	return d
}

func (d *drop) enrol(token string) {
	d.w.t.Helper()
	out, err := d.w.cloud.Enrol(context.Background(), d.code, token, nil)
	require.NoError(d.w.t, err)
	b, err := json.Marshal(out)
	require.NoError(d.w.t, err)
	var x struct {
		Secret string           `json:"device_secret"`
		Keys   []wire.PinnedKey `json:"keys"`
	}
	require.NoError(d.w.t, json.Unmarshal(b, &x))
	require.NotContains(d.w.t, string(b), "code_key", "verifiers stay in the cloud")
	d.secret, d.keys = x.Secret, x.Keys
}

func (d *drop) start() {
	d.mu.Lock()
	d.instance, d.seq, d.reports, d.moved, d.done, d.stop = rand.Text(), 0, nil, map[uint]uint64{}, map[string]string{}, make(chan struct{})
	stop := d.stop
	d.note()
	d.mu.Unlock()
	d.run.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if d.turn() != nil {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Second):
				}
			}
		}
	})
}

func (d *drop) halt() {
	close(d.stop)
	d.run.Wait()
}

// note puts a report of how the doors stand in line.
func (d *drop) note() {
	d.seq++
	d.reports = append(d.reports, map[string]any{"seq": d.seq, "doors": d.shown()})
}

// shown is how the doors stand, as a report says it.
func (d *drop) shown() (doors []map[string]any) {
	for n := uint(1); n <= 8; n++ {
		doors = append(doors, map[string]any{"door": n, "state": map[bool]string{true: "open", false: "closed"}[d.open[n]]})
	}
	return doors
}

// move is a door that moves.
func (d *drop) move(n uint, open bool, item *string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if item != nil {
		d.item[n] = *item
	}
	if d.open[n] == open {
		return
	}
	if d.open[n] = open; !open {
		d.closed[n] = time.Now()
	}
	d.note()
	d.moved[n] = d.seq
}

// request is one call as it goes over the wire.
type request struct {
	method, uri string
	headers     map[string]string
	body        []byte
}

func (d *drop) request(method, uri string, in any) request {
	body := []byte{}
	if in != nil {
		body, _ = json.Marshal(in)
	}
	if method == "GET" {
		uri += "&instance=" + d.instance
	} else {
		uri += "?instance=" + d.instance
	}
	at, nonce := fmt.Sprint(time.Now().Unix()), rand.Text()
	sum := httpdevice.Sign([]byte(d.secret), at, nonce, method, uri, body)
	return request{method, uri, map[string]string{"X-Device-Code": d.code, "X-Device-Timestamp": at, "X-Device-Nonce": nonce, "X-Device-Signature": hex.EncodeToString(sum)}, body}
}

// arrive has the cloud answer a call.
func (d *drop) arrive(q request, path, id string) (any, error) {
	var ctx fasthttp.RequestCtx
	var r fasthttp.Request
	r.Header.SetMethod(q.method)
	r.SetRequestURI(q.uri)
	r.Header.SetHost("127.0.0.1:8080")
	for k, v := range q.headers {
		r.Header.Set(k, v)
	}
	r.SetBody(q.body)
	from := net.IPv4(127, 0, 0, 1)
	if far := q.headers["from"]; far != "" {
		from = net.ParseIP(far)
	}
	ctx.Init(&r, &net.TCPAddr{IP: from}, nil)
	peer.Proxies{}.Resolve(&ctx)
	ctx.SetUserValue("cmd_id", id)
	node := d.node
	if node == nil {
		node = d.w.server().HTTPDevices
	}
	for _, route := range node.Routes() {
		if route.Path == path {
			return route.Answer(context.Background(), &ctx)
		}
	}
	return nil, errors.New("no such address")
}

var errNetwork = errors.New("network")

func (d *drop) call(method, path, query, id string, in, out any) error {
	if d.cut {
		return errNetwork
	}
	uri := path
	if id != "" {
		uri = "/api/v1/devices/commands/" + id + "/ack"
	}
	q := d.request(method, uri+query, in)
	answer, err := d.arrive(q, path, id)
	if err != nil {
		return err
	}
	_, err = d.arrive(q, path, id) // the network's owner sends it again
	e := new(cloud.Error)
	if !errors.As(err, &e) || e.Code != "DEVICE_SIGNATURE_INVALID" {
		d.w.t.Errorf("a call counted twice: %s %v", q.uri, err)
	}
	if d.cut || d.loseOut {
		return errNetwork
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// send sends the reports that wait.
func (d *drop) send() error {
	for {
		d.mu.Lock()
		if len(d.reports) == 0 {
			d.mu.Unlock()
			return nil
		}
		next := d.reports[0]
		d.mu.Unlock()
		if err := d.call("POST", "/api/v1/devices/doors/report", "", "", next, &struct{}{}); err != nil {
			return err
		}
		d.mu.Lock()
		d.reports = d.reports[1:]
		d.mu.Unlock()
	}
}

// turn is one round of the program: reports, then orders.
func (d *drop) turn() error {
	if err := d.send(); err != nil {
		return err
	}
	d.mu.Lock()
	seq := d.seq
	d.mu.Unlock()
	var list struct {
		Awaits   bool `json:"awaits_report"`
		Commands []struct{ Envelope []byte }
	}
	if err := d.call("GET", "/api/v1/devices/commands", fmt.Sprintf("?wait=%d&seq=%d", cmp.Or(d.wait, 5), seq), "", nil, &list); err != nil {
		return err
	}
	if list.Awaits {
		d.mu.Lock()
		d.note()
		d.mu.Unlock()
	}
	for _, x := range list.Commands {
		if err := d.send(); err != nil { // what moved while the call waited
			return err
		}
		id, outcome := d.obey(x.Envelope, seq)
		if err := d.call("POST", "/api/v1/devices/commands/{cmd_id}/ack", "", id, map[string]string{"outcome": outcome}, &struct{}{}); err != nil {
			return err
		}
		if d.acknowledged != nil {
			d.acknowledged()
		}
	}
	return nil
}

// obey carries out an order that a call was answered, unless its door has moved since the report
// that the call named.
func (d *drop) obey(envelope []byte, seq uint64) (id, outcome string) {
	var c wire.Command
	if err := signed.PinnedKeys(d.keys).Open(signed.ForCommand, envelope, &c); err != nil {
		d.w.t.Errorf("order: %v", err)
		return "", ""
	}
	if was := d.done[c.CommandID]; was != "" {
		return c.CommandID, was
	}
	outcome = "done"
	var open wire.OpenDoors
	if c.Kind == wire.CmdOpenDoors {
		_ = wire.Decode(c.Body, &open)
	}
	switch {
	case time.Now().UnixNano() >= c.ExpiresAt || d.hasMoved(open.Doors, seq):
		outcome = "refused"
	case c.Kind == wire.CmdOpenDoors:
		d.mu.Lock()
		d.executed[c.CommandID]++
		for _, n := range open.Doors {
			d.pulses = append(d.pulses, dropPulse{time.Now(), n, open.OpeningID})
		}
		d.mu.Unlock()
		for _, n := range open.Doors {
			if d.pulled != nil {
				d.pulled(n)
				continue
			}
			d.move(n, true, nil)
		}
	}
	d.done[c.CommandID] = outcome
	if d.obeyed != nil {
		d.obeyed()
	}
	return c.CommandID, outcome
}

// hasMoved reports whether a door has moved since a report.
func (d *drop) hasMoved(doors []uint, seq uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(doors, func(n uint) bool { return d.moved[n] > seq })
}

// verify is a code at its keypad.
func (d *drop) verify(code string) (action string) {
	var out struct{ Action string }
	_ = d.call("POST", "/api/v1/devices/codes/verify", "", "", map[string]any{"code": code, "input": "keypad"}, &out)
	return out.Action
}

func (d *drop) opened() (out []uint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, open := range d.open {
		if open {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Random days at a small device: networks that fail, answers that are lost, programs that
// start again, people who are slow. What its doors did is held against what the cloud made
// of it.
func TestDaysAtADeviceThatSpeaksHTTP(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ring.Among(1, 6, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { dropDay(t, seed) })
		})
	}
}

// doorPatience is how long a person waits for a door: longer than it may still open for an act.
const doorPatience = 50 * time.Second

func dropDay(t *testing.T, seed uint64) {
	w := newWorld(t, seed, 1)
	defer w.close()
	w.ready(w.cabinets[0])
	d := w.newDrop("DROP-1")
	defer func() { d.halt() }()
	rnd := mrand.New(mrand.NewPCG(seed, 7))
	if rnd.IntN(2) == 0 { // its doors do not spring open
		pull := mrand.New(mrand.NewPCG(seed, 8))
		d.halt()
		d.pulled = func(n uint) {
			time.AfterFunc(time.Duration(pull.IntN(4500))*time.Millisecond, func() { d.move(n, true, nil) })
		}
		d.start()
	}
	online := func() bool {
		out, err := w.cloud.Lockers.FindDevice(context.Background(), w.box.AdminCaller, d.id)
		return err == nil && out.Device.Status == "online"
	}
	w.awaits("device online", time.Minute, online)
	ctx := context.Background()
	type parcel struct {
		ref, delivery string
		inside, gone  bool
	}
	var parcels []*parcel
	for i := range 25 {
		for _, n := range d.opened() { // who comes next closes what stands open
			d.move(n, false, nil)
		}
		time.Sleep(doorPatience)
		switch rnd.IntN(8) {
		case 0, 1, 2: // a courier, from afar or by code
			if len(parcels) > 4 && slices.ContainsFunc(parcels, func(p *parcel) bool { return !p.gone }) && rnd.IntN(3) > 0 {
				break
			}
			p := &parcel{ref: fmt.Sprintf("D-%d-%d", seed, i)}
			out, err := w.cloud.Lockers.Create(ctx, w.box.ProviderCaller, locker.CreateInput{ReferenceNumber: p.ref, DeviceID: d.id, Recipient: cloud.Recipient{Name: "Jane", Phone: "+14165550123"},
				Packages: []locker.PackageInput{{TrackingNumber: "PK-" + p.ref, Size: "S"}}})
			if err != nil {
				break // no compartment is free
			}
			p.delivery = *out.Delivery.DeliveryCode
			if rnd.IntN(2) == 0 {
				_, _ = w.cloud.Lockers.OpenDoors(ctx, w.box.ProviderCaller, locker.OpenInput{Delivery: locker.DeliveryKey("ref:" + p.ref)})
			} else {
				d.verify(p.delivery)
			}
			time.Sleep(doorPatience)
			if doors := d.opened(); len(doors) > 0 && d.item[doors[0]] == "" {
				p.inside = true
				d.move(doors[0], true, &p.ref)
			}
			parcels = append(parcels, p)
		case 3, 4: // a recipient
			for _, p := range parcels {
				if body := w.find(p.ref); !p.gone && p.inside && body.Status == cloud.DeliveryDelivered {
					d.verify(*body.PickupCode) // whatever it answers: people look at the doors
					time.Sleep(doorPatience)
					for _, n := range d.opened() {
						if d.item[n] == p.ref {
							none := ""
							p.gone = true
							d.move(n, true, &none)
						}
					}
					break
				}
			}
		case 5, 6: // the network, for a while
			is := map[bool]*bool{true: &d.cut, false: &d.loseOut}[rnd.IntN(2) == 0]
			*is = true
			time.AfterFunc(time.Duration(rnd.IntN(200))*time.Second, func() { *is = false })
		case 7:
			d.halt()
			time.Sleep(time.Duration(rnd.IntN(120)) * time.Second)
			d.start()
		}
		time.Sleep(time.Duration(rnd.IntN(90)) * time.Second)
		if rnd.IntN(4) > 0 {
			for _, n := range d.opened() {
				d.move(n, false, nil)
			}
		}
		if rnd.IntN(10) == 0 {
			time.Sleep(12 * time.Minute)
		}
	}
	d.cut, d.loseOut = false, false
	for _, n := range d.opened() {
		d.move(n, false, nil)
	}
	w.awaits("device online", 5*time.Minute, online)
	time.Sleep(20 * time.Minute)
	require.Empty(t, d.opened(), "nothing opens by itself")
	for id, n := range d.executed {
		require.Equal(t, 1, n, "order %s", id)
	}
	for _, p := range parcels {
		body := w.find(p.ref)
		switch {
		case p.gone:
			require.EqualValues(t, "picked_up", body.Status, p.ref)
		case p.inside:
			require.EqualValues(t, "delivered", body.Status, p.ref)
		}
	}
	t.Logf("%d parcels, %d pulses", len(parcels), len(d.pulses))
}

// Who is on the way between a device and the cloud, or has another device, gets nowhere,
// and learns nothing from what he is answered.
func TestCallsOfADeviceAreItsOwn(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d, other := w.newDrop("DROP-1"), w.newDrop("DROP-2")
		defer func() { d.halt(); other.halt() }()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 && other.waiting() == 0 })
		body := map[string]any{"code": "123456", "input": "keypad"}
		const path = "/api/v1/devices/codes/verify"
		refused := func(what string, change func(q *request)) {
			t.Helper()
			q := d.request("POST", path, body)
			change(&q)
			_, err := d.arrive(q, path, "")
			e := new(cloud.Error)
			require.ErrorAs(t, err, &e, what)
			require.Equal(t, cloud.Error{Kind: cloud.Unauthenticated, Code: "DEVICE_SIGNATURE_INVALID"}, *e, what)
		}
		refused("another code", func(q *request) { q.body = []byte(`{"code":"123457","input":"keypad"}`) })
		refused("another instance", func(q *request) { q.uri = path + "?instance=x" })
		refused("another address", func(q *request) { q.uri = "/api/v1/devices/heartbeat?instance=" + d.instance })
		refused("another time", func(q *request) { q.headers["X-Device-Timestamp"] = fmt.Sprint(time.Now().Unix() + 1) })
		refused("another nonce", func(q *request) { q.headers["X-Device-Nonce"] = rand.Text() })
		refused("no nonce", func(q *request) { delete(q.headers, "X-Device-Nonce") })
		refused("no signature", func(q *request) { delete(q.headers, "X-Device-Signature") })
		refused("another device's code", func(q *request) { q.headers["X-Device-Code"] = other.code })
		refused("no device's code", func(q *request) { q.headers["X-Device-Code"] = "DROP-3" })
		refused("an agent's code", func(q *request) { q.headers["X-Device-Code"] = w.cabinets[0].code })
		old := d.request("POST", path, body)
		time.Sleep(301 * time.Second)
		_, err := d.arrive(old, path, "")
		require.ErrorContains(t, err, "DEVICE_SIGNATURE_INVALID", "it is old")
		_, err = w.cloud.Devices.Login(context.Background(), d.code, d.secret)
		require.Error(t, err, "its secret is none of the broker's")

		far := d.request("POST", path, body)
		far.headers["from"] = "192.0.2.7"
		_, err = d.arrive(far, path, "")
		require.ErrorContains(t, err, "TLS_REQUIRED")

		// Calls that are no calls of it keep no device out.
		for range 700 {
			q := d.request("POST", path, body)
			q.body = []byte("{}")
			_, err = d.arrive(q, path, "")
			require.ErrorContains(t, err, "DEVICE_SIGNATURE_INVALID")
		}
		require.Equal(t, "deny", d.verify("123456"))
		time.Sleep(2 * time.Minute)

		// Five wrong codes lock the keypad, as they do at a cabinet.
		for range 5 {
			require.Equal(t, "deny", d.verify("654321"))
		}
		w.create1(d, "L-1")
		time.Sleep(2 * time.Second)
		require.Equal(t, "deny", d.verify(*w.find("L-1").DeliveryCode), "locked")
		require.Empty(t, d.opened())

		// Staff cut it off: nothing that it signs counts, and another enrolment begins anew.
		_, err = w.cloud.Lockers.ReplaceHardware(context.Background(), w.box.AdminCaller, locker.ReplaceInput{Device: d.id, Reason: "broken"})
		require.NoError(t, err)
		refused("cut off", func(*request) {})
		made, err := w.cloud.Setup.RenewToken(context.Background(), w.box.AdminCaller, setup.DeviceInput{ID: d.id})
		require.NoError(t, err)
		former := d.secret
		d.halt()
		d.enrol(made.Enrolment.Token)
		require.NotEqual(t, former, d.secret)
		d.start()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		time.Sleep(10 * time.Second)
		require.Equal(t, "open", d.verify(*w.find("L-1").DeliveryCode), "codes live on")
	})
}

func (w *world) create1(d *drop, ref string) {
	w.t.Helper()
	_, err := w.cloud.Lockers.Create(context.Background(), w.box.ProviderCaller, locker.CreateInput{ReferenceNumber: ref, DeviceID: d.id, Recipient: cloud.Recipient{Name: "Jane", Phone: "+14165550123"},
		Packages: []locker.PackageInput{{TrackingNumber: "PK-" + ref, Size: "S"}}})
	require.NoError(w.t, err)
}

// waiting counts reports that were not taken.
func (d *drop) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.reports)
}

// Power fails when a lock was opened and the answer is not sent. The next start of the program
// finds the door as a person left it, and does not open it again.
func TestAnOrderIsOfOneStart(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		defer func() { d.halt() }()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		w.create1(d, "O-1")
		d.obeyed = func() { d.cut = true }
		d.verify(*w.find("O-1").DeliveryCode) // its answer may be lost, too
		w.awaits("door open", time.Minute, func() bool { return len(d.opened()) == 1 })
		ref := "O-1"
		door := d.opened()[0]
		d.move(door, true, &ref)
		d.halt()
		d.move(door, false, nil)
		d.obeyed, d.cut = nil, false
		d.start()
		time.Sleep(time.Minute)
		require.Empty(t, d.opened())
		for _, n := range d.executed {
			require.Equal(t, 1, n)
		}
	})
}

// A device that has news of its doors is given no order before it has told them: it might
// open a door again that a person has used and closed.
func TestOrdersWaitForReports(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		d.halt()
		w.create1(d, "O-1")
		require.Equal(t, "open", d.verify(*w.find("O-1").DeliveryCode))
		var out struct {
			Awaits   bool `json:"awaits_report"`
			Commands []any
		}
		require.NoError(t, d.call("GET", "/api/v1/devices/commands", fmt.Sprintf("?wait=0&seq=%d", d.seq+1), "", nil, &out))
		require.True(t, out.Awaits)
		require.Empty(t, out.Commands)
		require.NoError(t, d.call("GET", "/api/v1/devices/commands", fmt.Sprintf("?wait=0&seq=%d", d.seq), "", nil, &out))
		require.Len(t, out.Commands, 1)
		// A late report of before is none.
		for range 2 {
			require.NoError(t, d.call("POST", "/api/v1/devices/doors/report", "", "", map[string]any{"seq": d.seq + 1, "doors": d.shown()}, &struct{}{}))
		}
		d.open[1] = true
		require.NoError(t, d.call("POST", "/api/v1/devices/doors/report", "", "", map[string]any{"seq": d.seq, "doors": d.shown()}, &struct{}{}))
		cells, err := w.cloud.Lockers.FindDevice(context.Background(), w.box.AdminCaller, d.id)
		require.NoError(t, err)
		for _, g := range cells.Device.Grids {
			require.EqualValues(t, "closed", g.DoorStatus)
		}
		d.start() // for the end
		d.halt()
	})
}

// Two nodes take the calls of a device: what one took the other refuses, and an order that one
// gave is fetched from the other, within a second or two.
func TestCallsOfADeviceAtTwoNodes(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		defer func() { d.halt() }()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		d.halt()
		second := httpdevice.New(httpdevice.Config{Store: w.cloud.Store, Lockers: w.cloud.Lockers, Sealer: w.cloud.Box, Signer: w.cloud.Signer, Nodes: func() int { return 2 }})
		const path = "/api/v1/devices/heartbeat"
		q := d.request("POST", path, map[string]any{})
		_, err := d.arrive(q, path, "")
		require.NoError(t, err)
		d.node = second
		_, err = d.arrive(q, path, "")
		require.ErrorContains(t, err, "DEVICE_SIGNATURE_INVALID")
		d.start()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		w.create1(d, "N-1")
		began := time.Now()
		out, err := w.cloud.Lockers.OpenDoors(context.Background(), w.box.ProviderCaller, locker.OpenInput{Delivery: "ref:N-1"})
		require.NoError(t, err)
		require.False(t, out.Pending)
		require.Len(t, d.opened(), 1)
		require.Less(t, time.Since(began), 5*time.Second)
	})
}

// A router that is off for two minutes leaves a device offline with doors unknown, and then it
// works as before, though no door has moved.
func TestADeviceComesBackFromSilence(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		defer func() { d.halt() }()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		status := func() string {
			out, err := w.cloud.Lockers.FindDevice(context.Background(), w.box.AdminCaller, d.id)
			require.NoError(t, err)
			return out.Device.Status
		}
		d.cut = true
		time.Sleep(2 * time.Minute)
		require.Equal(t, "offline", status())
		d.cut = false
		w.awaits("device online", time.Minute, func() bool { return status() == "online" })
		time.Sleep(10 * time.Second)
		w.create1(d, "S-1")
		out, err := w.cloud.Lockers.OpenDoors(context.Background(), w.box.ProviderCaller, locker.OpenInput{Delivery: "ref:S-1"})
		require.NoError(t, err)
		require.False(t, out.Pending)
		require.Len(t, d.opened(), 1)
	})
}

// The network fails as a lock opens, a person uses the door and closes it, and the network is
// back: the door stays closed.
func TestADoorThatWasUsedStaysClosed(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		defer func() { d.halt() }()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		w.create1(d, "U-1")
		acked := make(chan bool, 9)
		d.acknowledged = func() { d.cut = true; acked <- true }
		d.verify(*w.find("U-1").DeliveryCode)
		<-acked
		time.Sleep(14 * time.Second) // the rules have asked for another pulse by now
		require.Len(t, d.opened(), 1)
		ref := "U-1"
		door := d.opened()[0]
		d.move(door, true, &ref)
		d.move(door, false, nil)
		d.acknowledged, d.cut = nil, false
		time.Sleep(40 * time.Second)
		require.Empty(t, d.opened())
		require.Len(t, d.pulses, 1)
		w.delivered("U-1")
	})
}

// A door is used while a call waits for orders, and its reports wait for that call: what the call
// is answered opens the door no more.
func TestAnOrderIsOlderThanADoorThatMoved(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		defer func() { d.halt() }()
		d.wait = 25
		ref := "W-1"
		d.pulled = func(n uint) {
			time.AfterFunc(time.Second, func() { d.move(n, true, &ref) })
			time.AfterFunc(3*time.Second, func() { d.move(n, false, nil) })
		}
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		w.create1(d, ref)
		require.Equal(t, "open", d.verify(*w.find(ref).DeliveryCode))
		time.Sleep(time.Minute)
		require.Len(t, d.pulses, 1)
		w.delivered(ref)
	})
}

// Calls of a start that another has followed count no more, whenever they arrive.
func TestAFormerStartCountsNoMore(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		d.halt()
		const path = "/api/v1/devices/doors/report"
		late := d.request("POST", path, map[string]any{"seq": d.seq + 1, "doors": d.shown()})
		d.open[1] = true
		d.start()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		_, err := d.arrive(late, path, "")
		require.ErrorContains(t, err, "DEVICE_SIGNATURE_INVALID")
		d.halt()
	})
}

// Staff disable a device and enable it again: it is online with its next call.
func TestADeviceIsEnabledAgain(t *testing.T) {
	story(t, func(t *testing.T, w *world, _ *cabinet) {
		d := w.newDrop("DROP-1")
		defer func() { d.halt() }()
		w.awaits("report taken", time.Minute, func() bool { return d.waiting() == 0 })
		for _, status := range []string{"disabled", "active"} {
			_, err := w.cloud.Lockers.EditDevice(context.Background(), w.box.AdminCaller, locker.DeviceEdit{Device: d.id, Status: &status})
			require.NoError(t, err)
			time.Sleep(3 * time.Second)
		}
		w.awaits("device online", time.Minute, func() bool {
			out, err := w.cloud.Lockers.FindDevice(context.Background(), w.box.AdminCaller, d.id)
			return err == nil && out.Device.Status == "online"
		})
	})
}

package httpdevice_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

var ctx = context.Background()

// box is a device of eight doors, of which every call is made by hand.
type box struct {
	*devicetest.World
	t        *testing.T
	id       cloud.DeviceID
	code     string
	secret   string
	keys     []wire.PinnedKey
	instance string
	node     *httpdevice.Service // that takes its calls
	headers  map[string]string   // beside those of a call
}

// try runs f in simulated time with a device that has reported closed doors.
func try(t *testing.T, f func(b *box)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := devicetest.New(t, nil)
		defer w.Stop()
		b := &box{World: w, t: t, code: "BOX-1", instance: "first", node: w.HTTPDevices}
		made, err := w.Setup.AddCabinet(ctx, w.Box.AdminCaller, setup.CabinetInput{Name: "Box", Code: b.code, Layout: "small", Protocol: "http"})
		require.NoError(t, err)
		b.id = made.Device.ID
		b.enrol(made.Enrolment.Token)
		b.report(1)
		f(b)
	})
}

func (b *box) enrol(token string) {
	b.t.Helper()
	out, err := b.Enrol(ctx, b.code, token, nil)
	require.NoError(b.t, err)
	var x struct {
		Secret string           `json:"device_secret"`
		Keys   []wire.PinnedKey `json:"keys"`
	}
	reencode(b.t, out, &x)
	b.secret, b.keys = x.Secret, x.Keys
}

func reencode(t testing.TB, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, to))
}

// request is a signed call, as it goes over the wire.
func (b *box) request(method, path, query string, in any) *fasthttp.RequestCtx {
	var body []byte
	if in != nil {
		body, _ = json.Marshal(in)
	}
	uri, at, nonce := "/api/v1/devices"+path+"?instance="+b.instance+query, fmt.Sprint(time.Now().Unix()), rand.Text()
	var r fasthttp.Request
	r.Header.SetMethod(method)
	r.SetRequestURI(uri)
	r.Header.SetHost("127.0.0.1:8080")
	r.SetBody(body)
	sum := httpdevice.Sign([]byte(b.secret), at, nonce, method, uri, body)
	for k, v := range map[string]string{"X-Device-Code": b.code, "X-Device-Timestamp": at, "X-Device-Nonce": nonce, "X-Device-Signature": hex.EncodeToString(sum)} {
		r.Header.Set(k, v)
	}
	for k, v := range b.headers {
		r.Header.Set(k, v)
	}
	var c fasthttp.RequestCtx
	c.Init(&r, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	return &c
}

// arrive has a node answer a call.
func (b *box) arrive(n *httpdevice.Service, r *fasthttp.RequestCtx) (any, error) {
	peer.Proxies{}.Resolve(r)
	path := string(r.Path())
	if id, is := strings.CutSuffix(strings.TrimPrefix(path, "/api/v1/devices/commands/"), "/ack"); is {
		path = "/api/v1/devices/commands/{cmd_id}/ack"
		r.SetUserValue("cmd_id", id)
	}
	for _, route := range n.Routes() {
		if route.Path == path {
			return route.Answer(ctx, r)
		}
	}
	return nil, errors.New("no such address: " + path)
}

func (b *box) call(method, path, query string, in, out any) error {
	answer, err := b.arrive(b.node, b.request(method, path, query, in))
	if err == nil {
		reencode(b.t, answer, out)
	}
	return err
}

type doorNow struct {
	Door  uint   `json:"door"`
	State string `json:"state"`
}

// report says that doors are open and all others closed.
func (b *box) report(seq uint64, open ...uint) {
	b.t.Helper()
	require.NoError(b.t, b.call("POST", "/doors/report", "", map[string]any{"seq": seq, "doors": doorsNow(open...)}, &struct{}{}))
}

func doorsNow(open ...uint) (doors []doorNow) {
	for n := uint(1); n <= 8; n++ {
		doors = append(doors, doorNow{n, "closed"})
	}
	for _, n := range open {
		doors[n-1].State = "open"
	}
	return doors
}

type given struct {
	Awaits   bool `json:"awaits_report"`
	Commands []struct {
		ID       string `json:"cmd_id"`
		Kind     string
		Envelope []byte
	}
}

func (b *box) fetch(seq uint64) (out given) {
	b.t.Helper()
	require.NoError(b.t, b.call("GET", "/commands", fmt.Sprintf("&wait=0&seq=%d", seq), nil, &out))
	return out
}

// doorOf is the door that an order opens.
func (b *box) doorOf(envelope []byte) uint {
	b.t.Helper()
	var c wire.Command
	var open wire.OpenDoors
	require.NoError(b.t, signed.PinnedKeys(b.keys).Open(signed.ForCommand, envelope, &c))
	require.NoError(b.t, wire.Decode(c.Body, &open))
	require.Len(b.t, open.Doors, 1)
	return open.Doors[0]
}

func (b *box) ack(id, outcome string) {
	b.t.Helper()
	require.NoError(b.t, b.call("POST", "/commands/"+id+"/ack", "", map[string]string{"outcome": outcome}, &struct{}{}))
}

type verified struct {
	Action, Reason string
	Doors          []uint
	OpeningID      string `json:"opening_id"`
}

func (b *box) verify(code string) (out verified) {
	b.t.Helper()
	require.NoError(b.t, b.call("POST", "/codes/verify", "", map[string]any{"code": code, "input": "keypad"}, &out))
	return out
}

func (b *box) create(ref string) locker.DeliveryBody {
	b.t.Helper()
	out, err := b.Lockers.Create(ctx, b.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: ref, DeviceID: b.id, Recipient: cloud.Recipient{Name: "Jane", Phone: "+14165550123"},
		Packages: []locker.PackageInput{{TrackingNumber: "PK-" + ref, Size: "S"}}})
	require.NoError(b.t, err)
	return out.Delivery
}

func (b *box) find(ref string) locker.DeliveryBody {
	b.t.Helper()
	out, err := b.Lockers.Find(ctx, b.Box.ProviderCaller, locker.DeliveryKey("ref:"+ref))
	require.NoError(b.t, err)
	return out.Delivery
}

func refusedSignature(t testing.TB, err error) {
	t.Helper()
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, cloud.Error{Kind: cloud.Unauthenticated, Code: "DEVICE_SIGNATURE_INVALID"}, *e)
}

// The hardware is replaced while a call of the former one waits for orders: the call ends with
// its secret, and the new hardware alone is given orders.
func TestACallEndsWithItsSecret(t *testing.T) {
	try(t, func(b *box) {
		answered := make(chan error, 1)
		var got given
		former := b.request("GET", "/commands", "&wait=25&seq=1", nil)
		go func() {
			out, err := b.arrive(b.node, former)
			if err == nil {
				reencode(t, out, &got)
			}
			answered <- err
		}()
		synctest.Wait()
		_, err := b.Lockers.ReplaceHardware(ctx, b.Box.AdminCaller, locker.ReplaceInput{Device: b.id, Reason: "stolen from the van"})
		require.NoError(t, err)
		made, err := b.Setup.RenewToken(ctx, b.Box.AdminCaller, setup.DeviceInput{ID: b.id})
		require.NoError(t, err)
		time.Sleep(10 * time.Millisecond)
		b.enrol(made.Enrolment.Token)
		b.instance = "second"
		b.report(1)
		time.Sleep(3 * time.Second)
		d := b.create("F-1")
		require.Equal(t, "open", b.verify(*d.DeliveryCode).Action)
		err = <-answered
		require.Empty(t, got.Commands, "the former hardware was given an order")
		if err != nil {
			refusedSignature(t, err)
		}
		require.Len(t, b.fetch(1).Commands, 1)
	})
}

// A report that was made before an order was fetched says nothing of that order: a door that
// moved by then was not opened for it.
func TestALateReportSettlesNothing(t *testing.T) {
	try(t, func(b *box) {
		d := b.create("L-1")
		v := b.verify(*d.DeliveryCode)
		require.Equal(t, "open", v.Action)
		b.report(2, v.Doors...) // of a minute ago: someone leaned against the cabinet
		time.Sleep(time.Second)
		b.report(3)
		time.Sleep(10 * time.Second)
		require.EqualValues(t, cloud.DeliveryCreated, b.find("L-1").Status, "no lock was opened for it")
	})
}

// layout has staff change the layout.
func (b *box) layout(change func([]locker.LayoutGrid) []locker.LayoutGrid) {
	b.t.Helper()
	out, err := b.Lockers.FindDevice(ctx, b.Box.AdminCaller, b.id)
	require.NoError(b.t, err)
	var grids []locker.LayoutGrid
	for _, g := range out.Device.Grids {
		if g.Column > 0 {
			grids = append(grids, locker.LayoutGrid{Door: int(g.Door), Column: g.Column, Row: g.Row, Size: g.Size, PickupEnabled: &g.PickupEnabled})
		}
	}
	_, err = b.Lockers.SetLayout(ctx, b.Box.AdminCaller, locker.LayoutInput{Device: b.id, Version: new(int64(out.Device.ConfigVersion)), Shelves: []locker.LayoutShelf{{Code: "A", Grids: change(grids)}}})
	require.NoError(b.t, err)
}

// A layout takes a door away that was opened in the same moment: operators read why it is not in force, once for
// however many calls, and it is in force once the door is closed.
func TestARefusedLayoutIsAnException(t *testing.T) {
	try(t, func(b *box) {
		b.report(2, 8)
		time.Sleep(5 * time.Second) // nothing is due: the next step is that of a report
		require.NoError(t, b.Store.Decide(ctx, b.id, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(b.id)
			if err != nil {
				return nil, err
			}
			var conf wire.Config
			if err := wire.Decode(d.Config, &conf); err != nil {
				return nil, err
			}
			conf.Version, conf.Layout = conf.Version+1, conf.Layout[:7]
			d.Config, d.ConfigVersion = wire.MustEncode(conf), conf.Version
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}, Unaudited: true}, nil
		}))
		refusal := func() (out []cloud.DeviceException) {
			rows, err := b.Store.ListDeviceExceptions(ctx, b.id, 100)
			require.NoError(t, err)
			for _, r := range rows {
				if r.Type == cloud.DevConfigRefused {
					out = append(out, r)
				}
			}
			return out
		}
		b.report(3, 8)
		for range 5 {
			require.NoError(t, b.call("POST", "/heartbeat", "", map[string]any{}, &struct{}{}))
			time.Sleep(time.Second)
		}
		require.Len(t, refusal(), 1)
		require.Contains(t, refusal()[0].Detail, "door 8")
		require.EqualValues(t, 1, refusal()[0].Count)
		require.True(t, refusal()[0].ClosedAt.IsZero())
		b.report(4)
		time.Sleep(5 * time.Second)
		require.NoError(t, b.call("POST", "/heartbeat", "", map[string]any{}, &struct{}{}))
		require.False(t, refusal()[0].ClosedAt.IsZero())
	})
}

// A device that is retired leaves neither its secret nor its nonces.
func TestARetiredDeviceLeavesNothing(t *testing.T) {
	try(t, func(b *box) {
		nonce := cloud.HTTPNonce{DeviceID: b.id, Nonce: "0123456789abcdef", ExpiresAt: time.Now().Add(time.Hour), Now: time.Now()}
		use := func() error {
			return b.Store.Decide(ctx, b.id, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{HTTPNonces: []cloud.HTTPNonce{nonce}}, Unaudited: true}, nil
			})
		}
		require.NoError(t, use())
		require.ErrorIs(t, use(), cloud.ErrExists)
		_, err := b.Lockers.Retire(ctx, b.Box.AdminCaller, locker.RetireInput{Device: b.id, Reason: "sold"})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		refusedSignature(t, b.call("POST", "/heartbeat", "", map[string]any{}, &struct{}{}))
		b.Look(func(v cloud.View) error {
			_, err := v.HTTPDevice(b.id)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			return nil
		})
		require.NoError(t, use())
	})
}

// The layout changes: the device is asked how its doors stand, though none has moved.
func TestANewLayoutAwaitsAReport(t *testing.T) {
	try(t, func(b *box) {
		b.layout(func(grids []locker.LayoutGrid) []locker.LayoutGrid {
			return append(grids, locker.LayoutGrid{Door: 9, Column: 9, Row: 1, Size: "XL"})
		})
		require.True(t, b.fetch(1).Awaits, "door 9 was never read")
		b.report(2)
		require.False(t, b.fetch(2).Awaits)
	})
}

// A call that a proxy passed on is not one of this machine.
func TestAProxyIsNotTheLoopback(t *testing.T) {
	try(t, func(b *box) {
		b.headers = map[string]string{"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "http", "Host": "lockers.example.com"}
		err := b.call("POST", "/heartbeat", "", map[string]any{}, &struct{}{})
		require.ErrorContains(t, err, "TLS_REQUIRED")
	})
}

// again is a store whose decisions are made twice, as when transactions collide.
type again struct {
	httpdevice.Store
	between func()
}

var errAgain = errors.New("the transactions collided")

func (a again) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	_ = a.Store.Decide(ctx, d, func(v cloud.View) (*cloud.Changes, error) {
		_, _ = fn(v)
		return nil, errAgain
	})
	if a.between != nil {
		a.between()
	}
	return a.Store.Decide(ctx, d, fn)
}

// A decision that is made again leaves nothing of the first time in the answer.
func TestAnAnswerIsOfTheDecisionThatCounts(t *testing.T) {
	try(t, func(b *box) {
		var between func()
		b.node = httpdevice.New(httpdevice.Config{Store: again{b.Store, func() {
			if between != nil {
				between()
			}
		}}, Lockers: b.Lockers, Sealer: b.Server.Box, Signer: b.Signer, Nodes: func() int { return 1 }})
		var conf struct{ Doors []doorNow }
		require.NoError(t, b.call("GET", "/config", "", nil, &conf))
		require.Len(t, conf.Doors, 8)
		v := b.verify(*b.create("A-1").DeliveryCode)
		require.Len(t, v.Doors, 1)

		between = func() { // another call of the device is quicker
			between = nil
			_, err := b.arrive(b.HTTPDevices, b.request("POST", "/doors/report", "", map[string]any{"seq": 2, "doors": doorsNow(v.Doors...)}))
			require.NoError(t, err)
		}
		require.Empty(t, b.fetch(1).Commands, "its door has moved")
	})
}

// One door is named twice: there is one order for it.
func TestADoorIsNamedOnce(t *testing.T) {
	try(t, func(b *box) {
		err := b.call("POST", "/doors/report", "", map[string]any{"seq": 2, "doors": append(doorsNow(), doorNow{3, "open"})}, &struct{}{})
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.Fields, "doors")
		b.report(2)
	})
}

// A former start goes on calling, as a second program with the same secret would: it is refused
// however long that lasts, and however often the device starts again.
func TestAFormerStartStaysFormer(t *testing.T) {
	try(t, func(b *box) {
		beat := func(instance string) error {
			b.instance = instance
			return b.call("POST", "/heartbeat", "", map[string]any{}, &struct{}{})
		}
		require.NoError(t, beat("second"))
		for range 20 {
			time.Sleep(time.Minute)
			refusedSignature(t, beat("first"))
			require.NoError(t, beat("second"))
		}
		require.NoError(t, beat("third"))
		refusedSignature(t, beat("first"))
		for n := range 40 {
			require.NoError(t, beat(fmt.Sprint("start", n)))
		}
		refusedSignature(t, beat("third"))
	})
}

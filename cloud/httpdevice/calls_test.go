package httpdevice_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
)

// second is another node over the same store.
func (b *box) second() *httpdevice.Service {
	return httpdevice.New(httpdevice.Config{Store: b.Store, Lockers: b.Lockers, Sealer: b.Server.Box, Signer: b.Signer, Nodes: func() int { return 2 }})
}

// Whatever is changed of a call, its signature holds no more.
func TestASignatureIsOfTheWholeCall(t *testing.T) {
	try(t, func(b *box) {
		body := map[string]any{"firmware": "box 1"}
		for _, code := range []string{"", "NONE-1"} { // it says so of any device, known or not
			r := b.request("POST", "/heartbeat", "", body)
			r.Request.SetRequestURI("/api/v1/devices/heartbeat")
			if code != "" {
				r.Request.Header.Set("X-Device-Code", code)
			}
			_, err := b.arrive(b.node, r)
			var e *cloud.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "VALIDATION_FAILED", e.Code)
			require.Contains(t, e.Fields, "instance")
		}
		for what, change := range map[string]func(r *fasthttp.Request){
			"method":         func(r *fasthttp.Request) { r.Header.SetMethod("PUT") },
			"address":        func(r *fasthttp.Request) { r.SetRequestURI("/api/v1/devices/codes/verify?instance=first") },
			"query":          func(r *fasthttp.Request) { r.SetRequestURI("/api/v1/devices/heartbeat?instance=other") },
			"query grows":    func(r *fasthttp.Request) { r.SetRequestURI("/api/v1/devices/heartbeat?instance=first&a=b") },
			"query is coded": func(r *fasthttp.Request) { r.SetRequestURI("/api/v1/devices/heartbeat?instance=%66irst") },
			"path is coded":  func(r *fasthttp.Request) { r.SetRequestURI("/api/v1/devices/%68eartbeat?instance=first") },
			"path has dots":  func(r *fasthttp.Request) { r.SetRequestURI("/api/v1/devices/./heartbeat?instance=first") },
			"body":           func(r *fasthttp.Request) { r.SetBody([]byte(`{"firmware":"box 2"}`)) },
			"body grows":     func(r *fasthttp.Request) { r.AppendBodyString(" ") },
			"no body":        func(r *fasthttp.Request) { r.ResetBody() },
			"time":           func(r *fasthttp.Request) { r.Header.Set("X-Device-Timestamp", fmt.Sprint(time.Now().Unix()+1)) },
			"time with sign": func(r *fasthttp.Request) { r.Header.Set("X-Device-Timestamp", "+"+fmt.Sprint(time.Now().Unix())) },
			"time in ms":     func(r *fasthttp.Request) { r.Header.Set("X-Device-Timestamp", fmt.Sprint(time.Now().UnixMilli())) },
			"nonce":          func(r *fasthttp.Request) { r.Header.Set("X-Device-Nonce", "0123456789abcdef") },
			"short nonce":    func(r *fasthttp.Request) { r.Header.Set("X-Device-Nonce", "0123") },
			"device":         func(r *fasthttp.Request) { r.Header.Set("X-Device-Code", "CAB-1") },
			"signature cut": func(r *fasthttp.Request) {
				r.Header.Set("X-Device-Signature", string(r.Header.Peek("X-Device-Signature")[:62]))
			},
			"no hex": func(r *fasthttp.Request) { r.Header.Set("X-Device-Signature", "zz") },
		} {
			r := b.request("POST", "/heartbeat", "", body)
			change(&r.Request)
			_, err := b.arrive(b.node, r)
			require.Error(t, err, what)
			var e *cloud.Error
			if errors.As(err, &e) && e.Code != "METHOD_NOT_ALLOWED" {
				refusedSignature(t, err)
			}
		}
		require.NoError(t, b.call("POST", "/heartbeat", "", body, &struct{}{}), "what was refused used nothing up")
	})
}

// One call that reaches two nodes many times at once counts once.
func TestACallCountsOnce(t *testing.T) {
	try(t, func(b *box) {
		nodes := []*httpdevice.Service{b.node, b.second()}
		for range ring.Among(3, 10, 30) {
			q := b.request("POST", "/codes/verify", "", map[string]any{"code": "999999", "input": "keypad"})
			var counted atomic.Int32
			var calls sync.WaitGroup
			for i := range 6 {
				var r fasthttp.RequestCtx
				r.Init(&q.Request, q.RemoteAddr(), nil)
				calls.Go(func() {
					if _, err := b.arrive(nodes[i%2], &r); err == nil {
						counted.Add(1)
					}
				})
			}
			calls.Wait()
			require.EqualValues(t, 1, counted.Load())
			time.Sleep(time.Second)
		}
	})
}

// Wrong codes are counted for the device: by whichever node, over starts of its program.
func TestWrongCodesAreOfTheDevice(t *testing.T) {
	try(t, func(b *box) {
		d := b.create("W-1")
		nodes := []*httpdevice.Service{b.node, b.second()}
		for i := range 5 {
			b.node, b.instance = nodes[i%2], fmt.Sprint("start", i)
			b.report(1)
			require.Equal(t, "unknown", b.verify(fmt.Sprint(900000+i)).Reason)
		}
		b.instance = "last"
		b.report(1)
		require.Equal(t, verified{Action: "deny", Reason: "locked_out", Doors: []uint{}}, b.verify(*d.DeliveryCode))
		time.Sleep(4 * time.Minute)
		require.Equal(t, "deny", b.verify(*d.DeliveryCode).Action)
		time.Sleep(61 * time.Second)
		b.report(2) // it was silent
		require.Equal(t, "open", b.verify(*d.DeliveryCode).Action)
	})
}

// An order is answered once, by the start that fetched it, whatever else is answered.
func TestAnOrderIsAnsweredByItsStart(t *testing.T) {
	try(t, func(b *box) {
		d := b.create("A-1")
		v := b.verify(*d.DeliveryCode)
		require.Equal(t, "open", v.Action)
		b.ack("0198c0de-0000-7000-8000-000000000000", "done") // of no order
		o := b.fetch(1).Commands
		require.Len(t, o, 1)
		require.Equal(t, v.Doors[0], b.doorOf(o[0].Envelope))
		require.Equal(t, o[0].ID, b.fetch(1).Commands[0].ID, "its answer was lost")

		b.instance = "second" // the power failed
		b.ack(o[0].ID, "refused")
		require.True(t, b.fetch(0).Awaits)
		b.report(1)
		for range 3 {
			require.Empty(t, b.fetch(1).Commands, "it may have been carried out")
			time.Sleep(5 * time.Second)
		}
		require.EqualValues(t, cloud.DeliveryCreated, b.find("A-1").Status)
	})
}

// A device that is silent for 90 s is offline, and its doors are unknown until it reports them;
// what it is asked meanwhile opens nothing.
func TestSilence(t *testing.T) {
	try(t, func(b *box) {
		status := func() string {
			out, err := b.Lockers.FindDevice(ctx, b.Box.AdminCaller, b.id)
			require.NoError(t, err)
			return out.Device.Status
		}
		d := b.create("S-1")
		time.Sleep(89 * time.Second)
		require.Equal(t, "online", status())
		time.Sleep(3 * time.Second)
		require.Equal(t, "offline", status())
		require.Equal(t, "deny", b.verify(*d.DeliveryCode).Action, "how its doors stand is not known")
		require.Equal(t, "online", status())
		require.True(t, b.fetch(1).Awaits)
		b.report(2)
		require.False(t, b.fetch(2).Awaits)
		require.Equal(t, "open", b.verify(*d.DeliveryCode).Action)
	})
}

// Two calls of one start wait for orders: the later one takes the place of the first, at whatever
// node, and each order is given under one id.
func TestTwoCallsWait(t *testing.T) {
	try(t, func(b *box) {
		d := b.create("T-1")
		var first, later given
		began := time.Now()
		r := b.request("GET", "/commands", "&wait=25&seq=1", nil)
		ended := make(chan time.Duration, 1)
		go func() {
			out, err := b.arrive(b.node, r)
			if err == nil {
				reencode(t, out, &first)
			}
			ended <- time.Since(began)
		}()
		synctest.Wait()
		again := b.request("GET", "/commands", "&wait=25&seq=1", nil)
		done := make(chan error, 1)
		go func() {
			out, err := b.arrive(b.node, again)
			if err == nil {
				reencode(t, out, &later)
			}
			done <- err
		}()
		require.Less(t, <-ended, time.Second)
		require.Empty(t, first.Commands)
		require.Equal(t, "open", b.verify(*d.DeliveryCode).Action)
		require.NoError(t, <-done)
		require.Len(t, later.Commands, 1)
		require.Equal(t, later.Commands[0].ID, b.fetch(1).Commands[0].ID)
	})
}

// A person pulls at a door when the order for another pulse is on its way. The device says that the
// door is open and refuses that order: what was put in counts.
func TestARefusedOrderOfAnOpenDoor(t *testing.T) {
	try(t, func(b *box) {
		v := b.verify(*b.create("R-1").DeliveryCode)
		require.Equal(t, "open", v.Action)
		b.ack(b.fetch(1).Commands[0].ID, "done")
		require.Empty(t, b.fetch(1).Commands, "no door has moved yet")
		time.Sleep(11 * time.Second)
		again := b.fetch(1).Commands
		require.Len(t, again, 1)
		b.report(2, v.Doors...)
		require.Empty(t, b.fetch(2).Commands, "its door is open")
		b.ack(again[0].ID, "refused")
		time.Sleep(time.Second)
		b.report(3)
		time.Sleep(5 * time.Second)
		require.EqualValues(t, cloud.DeliveryDelivered, b.find("R-1").Status)
	})
}

// A door moves and is reported while a call waits for orders: an order for it is not given to that
// call, whose device would refuse it, but to the next one.
func TestAnOrderAfterAMoveDuringTheCall(t *testing.T) {
	try(t, func(b *box) {
		d := b.create("M-1")
		var got given
		done := make(chan error, 1)
		waiting := b.request("GET", "/commands", "&wait=25&seq=1", nil)
		go func() {
			out, err := b.arrive(b.node, waiting)
			if err == nil {
				reencode(t, out, &got)
			}
			done <- err
		}()
		synctest.Wait()
		b.report(2, 1)
		time.Sleep(5 * time.Second)
		b.report(3)
		time.Sleep(5 * time.Second)
		v := b.verify(*d.DeliveryCode)
		require.NoError(t, <-done)
		require.Empty(t, got.Commands)
		require.False(t, got.Awaits)
		order := b.fetch(3).Commands
		require.Len(t, order, 1)
		require.Equal(t, v.Doors, []uint{b.doorOf(order[0].Envelope)})
	})
}

// The network breaks when an order has been carried out, with and without its acknowledgement, and
// is back later than the order ends. How the door stood before says nothing: the courier's parcel
// counts.
func TestAnOrderBeforeTheNetworkBreaks(t *testing.T) {
	for name, says := range map[string]bool{"acknowledged": true, "unanswered": false} {
		t.Run(name, func(t *testing.T) {
			try(t, func(b *box) {
				v := b.verify(*b.create("N-1").DeliveryCode)
				order := b.fetch(1).Commands[0]
				if says {
					b.ack(order.ID, "done")
				}
				time.Sleep(50 * time.Second)
				require.True(t, b.fetch(1).Awaits, "how the door stands is not known")
				b.report(2, v.Doors...)
				time.Sleep(time.Second)
				b.report(3)
				time.Sleep(5 * time.Second)
				require.EqualValues(t, cloud.DeliveryDelivered, b.find("N-1").Status)
				rows, err := b.Store.ListExceptions(ctx, b.Box.AdminCaller.Account.BusinessID, "", 0, 10)
				require.NoError(t, err)
				require.Empty(t, rows, "no door was forced")
			})
		})
	}
}

// A device is to start again while it is silent: the order waits until it calls.
func TestARestartWaitsForTheDevice(t *testing.T) {
	try(t, func(b *box) {
		time.Sleep(2 * time.Minute)
		_, err := b.Lockers.SendDeviceCommand(ctx, b.Box.AdminCaller, locker.DeviceCommandInput{Device: b.id, Type: "reboot"})
		require.NoError(t, err)
		_, err = b.Lockers.SendDeviceCommand(ctx, b.Box.AdminCaller, locker.DeviceCommandInput{Device: b.id, Type: "reset_tries"})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		b.report(2)
		o := b.fetch(2).Commands
		require.Len(t, o, 1)
		require.Equal(t, "reboot", o[0].Kind)
		b.ack(o[0].ID, "done")
		require.Empty(t, b.fetch(2).Commands)
	})
}

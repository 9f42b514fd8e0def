package e2e

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// showQR shows a signed QR code at a cabinet. number is the delivery's, "" of staff.
func (w *world) showQR(c *cabinet, qr locker.QROutput, number string) (edgelocker.Answer, error) {
	n := w.act(truth.Act{Cabinet: c.code, Kind: edge.ByPass, Delivery: number, Scanned: true, Pass: qr.QRID})
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	a, err := c.running().Codes().Scan(ctx, qr.QR)
	w.answered(n, a, err)
	return a, err
}

// depositQR brings a delivery with a signed QR code, which may be some while old, and
// shows it again afterwards.
func (w *world) depositQR(x *task, rnd *rand.Rand) {
	qr, err := w.server().Lockers.IssueCourierQR(context.Background(), w.box.ProviderCaller, locker.CourierQRInput{Delivery: x.key(), Hours: new(1 + rnd.IntN(3))})
	w.effect("courier_qr", err)
	if err != nil {
		return
	}
	time.Sleep(pick(rnd, 0, 20*time.Second, 5*time.Minute))
	c := w.cabinets[x.cabinet]
	a, err := w.showQR(c, qr, x.number)
	if err != nil || a.Outcome != wire.CodeOK {
		return
	}
	boxes := w.boxes(x)
	if len(boxes) == 0 {
		boxes = map[uint][]string{}
		for i := range min(len(a.Doors), len(x.packages)) {
			boxes[uint(a.Doors[i])] = []string{x.packages[i]}
		}
	}
	w.deposit(x, boxes, rnd)
	_, _ = w.showQR(c, qr, x.number)
}

// staffQR opens a door with a signed QR code of staff; a person looks inside and closes it.
func (w *world) staffQR(s step, rnd *rand.Rand) {
	c, device, door := w.cabinets[s.cabinet], w.box.Devices[s.cabinet].DeviceID, uint(1+rnd.IntN(doors))
	later := pick(rnd, 0, 10*time.Second, 20*time.Minute)
	stay := time.Duration(3+rnd.IntN(20)) * time.Second
	cell := cloud.Compartment{}
	_ = w.server().Store.Look(context.Background(), func(v cloud.View) (err error) { cell, err = v.Compartment(device, door); return err })
	qr, err := w.server().Lockers.IssueOpeningQR(context.Background(), w.staff, locker.OpeningQRInput{Device: device, Grids: []cloud.GridID{cell.GridID}, Reason: "look inside"})
	w.effect("opening_qr", err)
	if err != nil {
		return
	}
	w.people.Go(func() {
		time.Sleep(later)
		a, err := w.showQR(c, qr, "")
		time.Sleep(stay)
		if err == nil && a.Outcome == wire.CodeOK && c.pulsedFor(a.OpeningID) {
			_ = c.sim.CloseDoor(door)
		}
	})
}

// A courier stands before a cabinet without a network, which has never heard of the
// delivery, and shows the QR code to its scanner. The deposit settles there; once the link
// is mended it is on exactly one timeline, and the recipient collects. The same code opens
// nothing more, before and after a start, and nothing of it is kept.
func TestACourierBringsAParcelWithoutANetwork(t *testing.T) {
	if !ring.Check() {
		t.Skip("real time: in check")
	}
	t.Parallel()
	w := newWorld(t, 1, 1)
	defer w.close()
	terminal, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer terminal.Close()
	c, results := w.cabinets[0], &scanned{}
	c.halt()
	c.scanners, c.scanned = []scanner.Config{{Name: "codes", Port: "tcp://" + terminal.Addr().String(), Use: scanner.UseCodes}}, results.add
	c.start()
	w.ready(c)
	w.awaits("the clock is set", time.Minute, func() bool { return c.agent.Now().Clock == wire.ClockSynced })
	time.Sleep(12 * time.Second) // a new store takes nothing from before its start, and a code begins ten seconds earlier
	c.setCut(true)
	d := w.create("R-1", 0, "PK-1")
	qr, err := w.cloud.Lockers.IssueCourierQR(t.Context(), w.box.ProviderCaller, locker.CourierQRInput{Delivery: "ref:R-1"})
	require.NoError(t, err)
	require.Empty(t, c.agent.Loop().State().Codes, "the cabinet has not heard of it")

	var plugged net.Conn
	scan := func() edgelocker.Answer {
		t.Helper()
		before := len(results.outcomes())
		n := w.act(truth.Act{Cabinet: c.code, Kind: edge.ByPass, Delivery: d.DeliveryNumber, Scanned: true, Pass: qr.QRID})
		_, err := io.WriteString(plugged, qr.QR+"\r\n")
		require.NoError(t, err)
		w.awaits("scanned", 30*time.Second, func() bool { return len(results.outcomes()) > before })
		results.mu.Lock()
		defer results.mu.Unlock()
		r := results.all[before]
		w.answered(n, r.Answer, r.Err)
		require.NoError(t, r.Err)
		require.Empty(t, r.Text)
		return r.Answer
	}
	plugged, err = terminal.Accept()
	require.NoError(t, err)
	a := scan()
	require.Equal(t, wire.CodeOK, a.Outcome)
	door := uint(a.Doors[0])
	w.atDoors(c, []uint{door}, func(n uint) error { return c.sim.Put(n, "PK-1") })
	time.Sleep(time.Second)
	require.NoError(t, c.sim.CloseDoor(door))
	w.awaits("settled", time.Minute, func() bool { return len(c.agent.Loop().State().Openings) == 0 })
	require.Equal(t, wire.PassUsed, scan().Outcome, "before a start")
	require.Equal(t, cloud.DeliveryCreated, w.find("R-1").Status, "the cloud does not know yet")

	c.halt()
	c.start()
	plugged, err = terminal.Accept()
	require.NoError(t, err)
	w.awaits("boards read", time.Minute, func() bool { return c.agent.Loop().State().Ready })
	require.Equal(t, wire.ReasonClock, scan().Outcome, "no clock was set in this boot")
	c.cut.Store(false)
	w.delivered("R-1")
	w.awaits("the clock is set", time.Minute, func() bool { return c.agent.Now().Clock == wire.ClockSynced })
	require.Equal(t, wire.PassUsed, scan().Outcome, "after a start")

	timeline, err := w.cloud.Store.FindTimeline(t.Context(), "PK-1", nil)

	events := timeline.Events
	require.NoError(t, err)
	waits := 0
	for _, e := range events {
		if e.Event.StatusCode == otep.AvailableForPickup {
			waits++
		}
	}
	require.Equal(t, 1, waits, "one deposit")
	row, err := findQR(w, qr.QRID)
	require.NoError(t, err)
	require.NotEmpty(t, row.OpeningID)
	require.Empty(t, c.scans(), "no label")

	code := *w.find("R-1").PickupCode
	w.awaits("the recipient's code works", time.Minute, func() bool {
		a, err := w.enter(c, truth.Act{Delivery: d.DeliveryNumber, Code: wire.CodePickup}, code, false)
		return err == nil && a.Outcome == wire.CodeOK
	})
	w.atDoors(c, []uint{door}, func(n uint) error { _, err := c.sim.TakeOut(n); return err })
	time.Sleep(2 * time.Second)
	require.NoError(t, c.sim.CloseDoor(door))
	w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
	c.drained()
	w.judge(t)
}

func findQR(w *world, id string) (row cloud.QRCode, err error) {
	err = w.cloud.Store.Look(context.Background(), func(v cloud.View) (err error) {
		row, err = cloud.Find(v, cloud.QRCode{PassID: id})
		return err
	})
	return row, err
}

// What opens nothing: a code that others have signed, that is for another cabinet, over,
// withdrawn in a list that the cabinet holds, or shown to a cabinet whose clock is not
// set. Of a cancelled delivery it still works where the list has not come.
func TestSignedQRCodesThatOpenNothing(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx := context.Background()
		issue := func(ref string) locker.QROutput {
			t.Helper()
			w.create(ref, 0, "PK-"+ref)
			qr, err := w.cloud.Lockers.IssueCourierQR(ctx, w.box.ProviderCaller, locker.CourierQRInput{Delivery: locker.DeliveryKey("ref:" + ref), Hours: new(2)})
			require.NoError(t, err)
			return qr
		}
		show := func(qr locker.QROutput, number string) string {
			t.Helper()
			a, err := w.showQR(c, qr, number)
			require.NoError(t, err)
			return a.Outcome
		}
		c.setCut(true)
		qr := issue("R-1")
		number := w.find("R-1").DeliveryNumber
		keys := signed.PinnedKeys([]wire.PinnedKey{w.cloud.Signer.Pinned()})
		pass, err := keys.OpenPass(qr.QR)
		require.NoError(t, err)
		forged, err := stranger(t).SignPass(pass)
		require.NoError(t, err)
		require.Equal(t, wire.PassForged, show(locker.QROutput{QR: forged, QRID: qr.QRID}, number))
		pass.DeviceCode = "CAB-9"
		other, err := w.cloud.Signer.SignPass(pass)
		require.NoError(t, err)
		require.Equal(t, wire.PassOtherCabinet, show(locker.QROutput{QR: other, QRID: qr.QRID}, number))
		command, err := w.cloud.Signer.Sign(signed.ForCommand, pass)
		require.NoError(t, err)
		require.Equal(t, wire.PassForged, show(locker.QROutput{QR: signed.PassPrefix + string(command), QRID: qr.QRID}, number))

		time.Sleep(2*time.Hour + time.Second)
		require.Equal(t, wire.CodeExpired, show(qr, number))
		qr = issue("R-2")
		second := w.find("R-2").DeliveryNumber
		_, err = w.cloud.Lockers.Cancel(ctx, w.box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-2", Reason: "changed"})
		require.NoError(t, err)
		c.restart(time.Second)
		w.awaits("boards read", time.Minute, func() bool { return c.agent.Loop().State().Ready })
		require.Equal(t, wire.ReasonClock, show(qr, second))
		c.cut.Store(false)
		w.ready(c)
		w.listed(c)
		require.Equal(t, wire.PassRevoked, show(qr, second), "the list has come")
		require.Empty(t, c.coils())

		// Cancelled, and the cabinet has not heard of it: it opens, and what happened stands.
		c.setCut(true)
		qr = issue("R-3")
		third := w.find("R-3").DeliveryNumber
		_, err = w.cloud.Lockers.Cancel(ctx, w.box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-3", Reason: "changed"})
		require.NoError(t, err)
		a, err := w.showQR(c, qr, third)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, a.Outcome)
		door := uint(a.Doors[0])
		w.atDoors(c, []uint{door}, func(n uint) error { return c.sim.Put(n, "PK-R-3") })
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(time.Minute)

		// Staff look inside by a code of their own.
		cell := w.cellOf(c, door)
		look, err := w.cloud.Lockers.IssueOpeningQR(ctx, w.staff, locker.OpeningQRInput{Device: w.box.Devices[0].DeviceID, Grids: []cloud.GridID{cell.GridID}, Reason: "look inside"})
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, show(look, ""))
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(5 * time.Second)
		require.Equal(t, wire.PassUsed, show(look, ""))
		c.setCut(false)
		w.delivered("R-3")
		c.drained()
		history, err := w.cloud.Lockers.ListDoorHistory(ctx, w.staff, locker.HistoryInput{Device: w.box.Devices[0].DeviceID})
		require.NoError(t, err)
		require.Equal(t, "staff", history.Reports[0].By)
		require.Equal(t, "look inside", *history.Reports[0].Reason)
		w.judge(t)
	})
}

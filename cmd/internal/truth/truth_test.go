package truth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func record(kind wire.Kind, seconds float64, body any) wire.Record {
	return wire.Record{Kind: kind, At: at(seconds).UnixNano(), Boot: 1, Mono: at(seconds).Sub(noon).Nanoseconds(), Clock: wire.ClockSynced, ErrMS: 5, Body: wire.MustEncode(body)}
}

// calmDay is a deposit by a command and a parcel that waits, and a second one
// that was collected by its code; nothing is wrong with it.
func calmDay() Case {
	door := func(n uint, kind board.FactKind, seconds float64) board.Fact {
		return board.Fact{At: at(seconds), Door: n, Board: "A", Kind: kind}
	}
	coil := func(n uint, seconds float64) board.Fact {
		return board.Fact{At: at(seconds), Door: n, Board: "A", Channel: n, Kind: board.CoilFired, Cause: board.ByRequest}
	}
	item := func(n uint, kind board.FactKind, name string, seconds float64) board.Fact {
		return board.Fact{At: at(seconds), Door: n, Board: "A", Kind: kind, Item: name}
	}
	pulse := func(n uint, seconds float64, by edge.Authority) Pulse {
		return Pulse{At: at(seconds), Written: int64(at(seconds).Sub(noon)), Board: "A", Channel: n, Door: edge.DoorNumber(n), Authority: by}
	}
	facts := []board.Fact{
		coil(1, 10.1), door(1, board.HookOut, 10.2), door(1, board.Opened, 10.3), item(1, board.ItemIn, "PK-1", 12), door(1, board.Closed, 15), door(1, board.HookIn, 15),
		coil(2, 100.1), door(2, board.HookOut, 100.2), door(2, board.Opened, 100.3), item(2, board.ItemIn, "PK-2", 102), door(2, board.Closed, 105), door(2, board.HookIn, 105),
		coil(2, 200.1), door(2, board.HookOut, 200.2), door(2, board.Opened, 200.3), item(2, board.ItemOut, "PK-2", 202), door(2, board.Closed, 205), door(2, board.HookIn, 205),
	}
	settled := func(id string, n uint, p string, opened, closed float64) wire.OpeningSettled {
		return wire.OpeningSettled{OpeningID: id, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: n, OpenedAt: at(opened).UnixNano(), ClosedAt: at(closed).UnixNano()}},
			Packages: []wire.SettledPackage{{Ref: p, Door: n, Outcome: wire.Deposited}}}
	}
	command := func(id, opening string, n uint, seconds float64) cloud.Command {
		return cloud.Command{ID: id, DeviceID: 7, Kind: wire.CmdOpenDoors, IssuedAt: at(seconds), ExpiresAt: at(seconds + 20),
			Body: wire.MustEncode(wire.OpenDoors{OpeningID: opening, Doors: []uint{n}})}
	}
	row := cloud.CodeRow{DeviceID: 7, DeliveryID: 2, Entry: wire.CodeEntry{Number: 4, Op: wire.CodeSet, Kind: wire.CodePickup, DeliveryRef: "LD-2"}}
	device := Device{
		Row: cloud.Device{ID: 7, Code: "CAB-1"},
		Cells: map[uint]cloud.Compartment{
			1: {GridID: 1, GridCode: "A01", Door: 1, State: cloud.GridOccupied, DeliveryID: 1},
			2: {GridID: 2, GridCode: "A02", Door: 2, State: cloud.GridFree},
		},
		Deliveries: map[string]cloud.Delivery{
			"LD-1": {ID: 1, Number: "LD-1", Livemode: true, Packages: []cloud.Package{{TrackingNumber: "PK-1", GridID: 1, Status: cloud.PackageInCompartment}}},
			"LD-2": {ID: 2, Number: "LD-2", Livemode: true, Packages: []cloud.Package{{TrackingNumber: "PK-2", Status: cloud.PackagePickedUp}}},
		},
		Orders: []cloud.DeviceOrder{{DeliveryID: 1, Tracking: "PK-1", GridCode: "A01", Status: "stored"}, {DeliveryID: 2, Tracking: "PK-2", Status: "picked_up", EndedAt: at(205)}},
		Codes:  []cloud.CodeRow{row},
		Records: []wire.Record{
			record(wire.KindOpeningStarted, 10, wire.OpeningStarted{OpeningID: "op-1", Doors: []uint{1}}), record(wire.KindOpeningSettled, 17, settled("op-1", 1, "PK-1", 10.3, 15)),
			record(wire.KindOpeningStarted, 100, wire.OpeningStarted{OpeningID: "op-2", Doors: []uint{2}}), record(wire.KindOpeningSettled, 107, settled("op-2", 2, "PK-2", 100.3, 105)),
			record(wire.KindOpeningStarted, 200, wire.OpeningStarted{OpeningID: "op-3", Doors: []uint{2}}),
			record(wire.KindPickupCompleted, 207, wire.PickupCompleted{OpeningID: "op-3", DeliveryRef: "LD-2", Doors: []uint{2}}),
		},
	}
	return Case{
		Cabinets: []Cabinet{{
			Code: "CAB-1", Facts: facts, Boots: []Boot{{N: 1, Start: noon}}, Contents: map[uint]string{1: "LD-1"},
			Pulses: []Pulse{
				pulse(1, 10.05, edge.Authority{Boot: 1, OpeningID: "op-1", Act: "cmd-1", Kind: edge.ByCommand, Mono: int64(10 * time.Second)}),
				pulse(2, 100.05, edge.Authority{Boot: 1, OpeningID: "op-2", Act: "cmd-2", Kind: edge.ByCommand, Mono: int64(100 * time.Second)}),
				pulse(2, 200.05, edge.Authority{Boot: 1, OpeningID: "op-3", Act: "act-1", Kind: edge.ByCode, CodeNumber: 4, Mono: int64(200 * time.Second)}),
			},
		}},
		Acts:     []Act{{Cabinet: "CAB-1", Kind: edge.ByCode, At: at(199.8), Until: at(200.1), Delivery: "LD-2", Code: wire.CodePickup, OK: true, Doors: []uint{2}}},
		Received: []Received{{At: at(16), EventID: "E-1", Body: "{}", Status: 200}},
		Recorded: 6, Final: true,
		Cloud: Cloud{
			Audit:     server.Audit{Stored: 6, Openings: map[string]server.OpeningAudit{}},
			Commands:  map[string]cloud.Command{"cmd-1": command("cmd-1", "op-1", 1, 9), "cmd-2": command("cmd-2", "op-2", 2, 99)},
			Devices:   map[string]Device{"CAB-1": device},
			Timelines: map[string][]Step{"PK-1": {{Code: "x-available_for_pickup"}}, "PK-2": {{Code: "x-available_for_pickup"}, {Code: "delivered"}}},
			Events:    []Event{{ID: "E-1", Delivered: true, Attempts: 1}},
		},
	}
}

// send makes a delivery one that its sender has brought.
func send(d *Device, number, by string) {
	x := d.Deliveries[number]
	x.Purpose, x.PickedUpBy = wire.PurposeSend, by
	if by != "" {
		x.Status = cloud.DeliveryPickedUp
	}
	d.Deliveries = maps.Clone(d.Deliveries)
	d.Deliveries[number] = x
}

// change alters the device of a case.
func change(c *Case, f func(d *Device)) {
	d := c.Cloud.Devices["CAB-1"]
	f(&d)
	c.Cloud.Devices["CAB-1"] = d
}

// ofOrder makes the parcel that was collected one of an order, with the order's timeline.
func ofOrder(c *Case, steps []Step) {
	c.Cloud.Timelines["PK-2"] = steps
	change(c, func(d *Device) {
		d.Deliveries = maps.Clone(d.Deliveries)
		x := d.Deliveries["LD-2"]
		x.Packages = []cloud.Package{{TrackingNumber: "PK-2", Status: cloud.PackagePickedUp, OrderID: 9}}
		d.Deliveries["LD-2"] = x
	})
}

// An order goes on after its parcel was collected, and one that had ended says no more; a
// test has no timeline.
func TestTheTimelineOfAnOrderOrATest(t *testing.T) {
	t.Parallel()
	for _, steps := range [][]Step{{{Code: "x-available_for_pickup"}, {Code: "delivered"}, {Code: "x-note"}}, {{Code: "cancelled"}}} {
		c := calmDay()
		ofOrder(&c, steps)
		v := Judge(c)
		require.True(t, v.OK(), v.String())
	}
	c := calmDay()
	ofOrder(&c, nil)
	require.False(t, Judge(c).OK())
	change(&c, func(d *Device) {
		x := d.Deliveries["LD-2"]
		x.Livemode = false
		d.Deliveries["LD-2"] = x
	})
	v := Judge(c)
	require.True(t, v.OK(), v.String())
}

func TestACalmDayBreaksNoRule(t *testing.T) {
	t.Parallel()
	v := Judge(calmDay())
	require.True(t, v.OK(), v.String())
	require.Equal(t, Verdict{Coils: 3, Authorised: 3, Settled: 2, Collected: 1, Items: 1, Events: 1}, v)
}

// The agent of a real process counts from some seconds after its start: a door that was shut
// meanwhile is no open one, and one that stands open all the while is.
func TestAnOpenPulseOfARealProcess(t *testing.T) {
	t.Parallel()
	latch := func(when float64, kind board.FactKind) board.Fact {
		return board.Fact{At: at(when), Door: 1, Board: "A", Kind: kind}
	}
	c := calmDay()
	b := &c.Cabinets[0]
	b.WallClock, b.Boots[0].Start = true, noon.Add(-3*time.Second)
	b.Facts = slices.Insert(b.Facts, 0, latch(5, board.HookOut), latch(9, board.HookIn))
	require.NotContains(t, Judge(c).String(), "open_pulse")
	b.Facts = slices.Delete(b.Facts, 1, 2)
	require.Contains(t, Judge(c).String(), "open_pulse")
}

// A door that was forced as its deposit settled cannot have been seen by then; one that was
// forced before can.
func TestADoorForcedAsItsDepositSettles(t *testing.T) {
	t.Parallel()
	for seconds, found := range map[float64]bool{16.7: false, 16.3: true} { // it settles at 17
		c := calmDay()
		b := &c.Cabinets[0]
		b.Facts = slices.Insert(b.Facts, 6, board.Fact{At: at(seconds), Door: 1, Kind: board.HookOut}, board.Fact{At: at(seconds), Door: 1, Kind: board.Opened})
		require.Contains(t, Judge(c).String(), "open_settle", "no one forced it")
		b.Trouble = append(b.Trouble, Span{At: at(seconds), Until: at(seconds + 60), What: force, Door: 1})
		require.Equal(t, found, strings.Contains(Judge(c).String(), "open_settle"), "%v", seconds)
	}
}

// The clock of a real process is set by the cloud's, which may differ from this machine's:
// its records are placed by its count.
func TestARealProcessOnTheCloudsClock(t *testing.T) {
	t.Parallel()
	c := calmDay()
	c.Cabinets[0].WallClock = true
	d := c.Cloud.Devices["CAB-1"]
	shift := func(by time.Duration) {
		for i := range d.Records {
			d.Records[i].At -= int64(by)
		}
	}
	shift(4 * time.Second)
	require.NotContains(t, Judge(c).String(), "open_settle", "the trace tells what the difference is")
	b := &c.Cabinets[0]
	for i := range b.Pulses { // a busy machine wrote them late
		b.Pulses[i].Mono -= int64(4 * time.Second)
	}
	b.begins = nil
	require.NotContains(t, Judge(c).String(), "open_settle", "also of pulses that came long after their acts")
	b.Pulses, b.begins = nil, nil
	require.NotContains(t, Judge(c).String(), "open_settle", "the door was shut within what clocks may differ by")
	b.Facts = slices.DeleteFunc(b.Facts, func(f board.Fact) bool { return f.Kind == board.Closed || f.Kind == board.HookIn })
	require.Contains(t, Judge(c).String(), "open_settle", "it stands open")
}

// shown makes the collection of a calm day one by a signed QR code.
func shown(c *Case, b *Cabinet) {
	b.Pulses[2].Kind = edge.ByPass
	c.Acts[0].Kind, c.Acts[0].Code, c.Acts[0].Pass = edge.ByPass, "", "p1"
	d := c.Cloud.Devices["CAB-1"]
	d.QRCodes = []cloud.QRCode{{PassID: "p1", DeviceID: 7, EndsAt: at(600)}}
	d.QRCodes[0].CreatedAt = at(0)
	c.Cloud.Devices["CAB-1"] = d
}

func TestASignedQRCodeBreaksNoRule(t *testing.T) {
	t.Parallel()
	c := calmDay()
	shown(&c, &c.Cabinets[0])
	v := Judge(c)
	require.True(t, v.OK(), v.String())
}

// Each rule is broken once, and found under its name.
func TestEachBrokenRuleIsFound(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		rule, name string
		do         func(c *Case, b *Cabinet)
	}{
		{"coil", "fired without a line", func(_ *Case, b *Cabinet) { b.Pulses = b.Pulses[1:] }},
		{"coil", "two coils for one line", func(_ *Case, b *Cabinet) { b.Facts = slices.Insert(b.Facts, 1, b.Facts[0]) }},
		{"coil", "the coil of another door", func(_ *Case, b *Cabinet) { b.Pulses[0].Door = 2 }},
		{"open_pulse", "a pulse for a door that stands open", func(_ *Case, b *Cabinet) {
			b.Facts = slices.Insert(b.Facts, 0, board.Fact{At: at(5), Door: 1, Board: "A", Kind: board.HookOut}, board.Fact{At: at(5), Door: 1, Board: "A", Kind: board.Opened})
		}},
		{"authority", "a command that there is not", func(c *Case, _ *Cabinet) { delete(c.Cloud.Commands, "cmd-1") }},
		{"authority", "a command for another cabinet", func(c *Case, _ *Cabinet) {
			x := c.Cloud.Commands["cmd-1"]
			x.DeviceID = 8
			c.Cloud.Commands["cmd-1"] = x
		}},
		{"authority", "a command for another door", func(c *Case, _ *Cabinet) { c.Cloud.Commands["cmd-1"] = c.Cloud.Commands["cmd-2"] }},
		{"authority", "an expired command", func(c *Case, _ *Cabinet) {
			x := c.Cloud.Commands["cmd-1"]
			x.ExpiresAt = at(-60)
			c.Cloud.Commands["cmd-1"] = x
		}},
		{"authority", "an act of an earlier boot", func(_ *Case, b *Cabinet) { b.Boots = []Boot{{N: 1, Start: noon, End: at(9)}, {N: 2, Start: at(9.5)}} }},
		{"authority", "an act of hours ago", func(_ *Case, b *Cabinet) { b.Boots[0].Start = noon.Add(-5 * time.Hour) }},
		{"authority", "the third pulse of an act", func(_ *Case, b *Cabinet) {
			b.Pulses = slices.Insert(b.Pulses, 1, b.Pulses[0], b.Pulses[0])
			b.Facts = slices.Insert(b.Facts, 1, b.Facts[0], b.Facts[0])
		}},
		{"authority", "no person came", func(c *Case, _ *Cabinet) { c.Acts = nil }},
		{"authority", "another delivery's code", func(c *Case, _ *Cabinet) { c.Acts[0].Delivery = "LD-1" }},
		{"authority", "a code that was never listed", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { d.Codes = nil }) }},
		{"authority", "a door that the person was not let in to", func(c *Case, _ *Cabinet) { c.Acts[0].Doors = []uint{1} }},
		{"dead_code", "a code that the cabinet knew was revoked", func(c *Case, b *Cabinet) {
			change(c, func(d *Device) {
				d.Codes = append(d.Codes, cloud.CodeRow{Entry: wire.CodeEntry{Number: 5, Op: wire.CodeRevoke, Kind: wire.CodePickup, DeliveryRef: "LD-2"}})
			})
			b.Held = []Held{{At: at(150), Number: 5}}
		}},
		{"authority", "a QR code that was not given out", func(c *Case, b *Cabinet) { shown(c, b); change(c, func(d *Device) { d.QRCodes = nil }) }},
		{"authority", "a QR code that had ended", func(c *Case, b *Cabinet) { shown(c, b); change(c, func(d *Device) { d.QRCodes[0].EndsAt = at(150) }) }},
		{"authority", "a QR code before it was given out", func(c *Case, b *Cabinet) {
			shown(c, b)
			change(c, func(d *Device) { d.QRCodes[0].CreatedAt = at(250) })
		}},
		{"authority", "a QR code that was used before", func(c *Case, b *Cabinet) {
			shown(c, b)
			b.Pulses[1].Authority = b.Pulses[2].Authority
			b.Pulses[1].Act, b.Pulses[1].Mono = "act-0", int64(100*time.Second)
			c.Acts = append([]Act{{Cabinet: "CAB-1", Kind: edge.ByPass, At: at(99.8), Until: at(100.1), Delivery: "LD-2", Pass: "p1", OK: true, Doors: []uint{2}}}, c.Acts...)
		}},
		{"dead_code", "a QR code in the place of a code that the cabinet knew was revoked", func(c *Case, b *Cabinet) {
			shown(c, b)
			change(c, func(d *Device) {
				d.Codes = append(d.Codes, cloud.CodeRow{Entry: wire.CodeEntry{Number: 5, Op: wire.CodeRevoke, Kind: wire.CodePickup, DeliveryRef: "LD-2"}})
			})
			b.Held = []Held{{At: at(150), Number: 5}}
		}},
		{"hand", "an item left through a shut door", func(_ *Case, b *Cabinet) {
			b.Facts[15].At = at(206)
			b.Facts[15], b.Facts[17] = b.Facts[17], b.Facts[15]
		}},
		{"hand", "a door swung open by itself", func(_ *Case, b *Cabinet) {
			b.Facts = slices.Insert(b.Facts, 6, board.Fact{At: at(50), Door: 1, Kind: board.Opened}, board.Fact{At: at(51), Door: 1, Kind: board.Closed})
		}},
		{"open_settle", "settled over an open door", func(_ *Case, b *Cabinet) { b.Facts[4].At, b.Facts[5].At = at(18), at(18) }},
		{"twice", "ended twice", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindOpeningEnded, 30, wire.OpeningEnded{OpeningID: "op-1", Reason: wire.EndDone}))
			})
		}},
		{"close_time", "a close that was not seen, told exactly", func(_ *Case, b *Cabinet) { b.Facts[4].At, b.Facts[5].At = at(11), at(11) }},
		{"close_time", "a close outside its bounds", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records[1] = record(wire.KindOpeningSettled, 60, wire.OpeningSettled{OpeningID: "op-1", Doors: []wire.SettledDoor{{Door: 1, OpenedAt: at(10.3).UnixNano(),
					ClosedAt: at(59).UnixNano(), ClosedAfter: at(40).UnixNano(), ClosedBefore: at(59).UnixNano()}}})
			})
		}},
		{"running", "an opening in the cloud", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { d.Running = []cloud.Opening{{ID: "op-9"}} }) }},
		{"running", "a command", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { d.Commands = []cloud.Command{{ID: "cmd-9"}} }) }},
		{"running", "an opening at the cabinet", func(_ *Case, b *Cabinet) { b.Running = []string{"op-9"} }},
		{"lost", "a record", func(c *Case, _ *Cabinet) { c.Recorded = 7 }},
		{"views", "the cabinet forgot", func(_ *Case, b *Cabinet) { b.Contents = nil }},
		{"views", "the cabinet believes in a ghost", func(_ *Case, b *Cabinet) { b.Contents[2] = "LD-2" }},
		{"outgoing", "a recipient's code opened what a courier collects", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { send(d, "LD-2", "courier") }) }},
		{"outgoing", "a pickup code of what a courier collects", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				send(d, "LD-1", "")
				d.Codes = append(d.Codes, cloud.CodeRow{Entry: wire.CodeEntry{Number: 5, Op: wire.CodeSet, Kind: wire.CodePickup, DeliveryRef: "LD-1"}})
			})
		}},
		{"outgoing", "collected twice", func(c *Case, _ *Cabinet) {
			c.Acts[0].Code = wire.CodeDelivery
			change(c, func(d *Device) {
				send(d, "LD-2", "courier")
				d.Codes = []cloud.CodeRow{d.Codes[0]}
				d.Codes[0].Entry.Kind = wire.CodeDelivery
				d.Orders = append(d.Orders, d.Orders[1])
			})
		}},
		{"timeline", "a parcel that a courier collects waits for its recipient", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { send(d, "LD-1", "") }) }},
		{"place", "an item in a box that counts as empty", func(c *Case, b *Cabinet) {
			b.Contents = nil
			change(c, func(d *Device) {
				d.Cells = map[uint]cloud.Compartment{1: {Door: 1, State: cloud.GridFree}, 2: d.Cells[2]}
			})
		}},
		{"place", "an empty box that counts as full", func(_ *Case, b *Cabinet) { b.Facts = slices.Delete(b.Facts, 3, 4) }},
		{"views", "they differ, and nothing made either forget", func(c *Case, b *Cabinet) { disagree(c, b, "door 1: cabinet empty, cloud LD-1"); b.Trouble = nil }},
		{"views", "they differ about another door", func(c *Case, b *Cabinet) { disagree(c, b, "door 11: cabinet empty, cloud LD-1") }},
		{"views", "they differ, and the compartment is in use", func(c *Case, b *Cabinet) {
			disagree(c, b, "door 1: cabinet empty, cloud LD-1")
			change(c, func(d *Device) { d.Cells[1] = cloud.Compartment{Door: 1, State: cloud.GridOccupied, DeliveryID: 1} })
		}},
		{"views", "they agree, and the exception stays", func(c *Case, b *Cabinet) {
			disagree(c, b, "door 1: cabinet empty, cloud LD-1")
			b.Contents[1] = "LD-1"
		}},
		{"place", "a doubt of another time", func(_ *Case, b *Cabinet) {
			b.Facts = slices.Delete(b.Facts, 3, 4)
			b.Trouble = []Span{{At: at(3600), Until: at(3700), What: forgot}}
		}},
		{"place", "an exception of another time", func(c *Case, b *Cabinet) {
			b.Facts = slices.Delete(b.Facts, 3, 4)
			change(c, func(d *Device) {
				d.Exceptions = []cloud.Exception{{GridCode: "A01", Type: wire.ExDepositUnverified, OpenedAt: at(3600)}}
			})
		}},
		{"silent", "forced, and not told", func(_ *Case, b *Cabinet) { forceOpen(b, 1, 300) }},
		{"silent", "forced before its compartment left the layout", func(c *Case, b *Cabinet) {
			forceOpen(b, 1, 300)
			removeFromLayout(c, b, 1, 320, 400)
		}},
		{"silent", "forced, and told a minute late", func(c *Case, b *Cabinet) {
			forceOpen(b, 1, 300)
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindTamper, 309, wire.Tamper{What: wire.TamperDoorForced, Door: 1}))
			})
		}},
		{"cause", "told as forced, and shut", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindTamper, 300, wire.Tamper{What: wire.TamperDoorForced, Door: 1}))
			})
		}},
		{"cause", "told as forced, and a pulse had opened it", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindTamper, 100.3, wire.Tamper{What: wire.TamperDoorForced, Door: 2}))
			})
		}},
		{"cause", "an exception of a force, and a pulse had opened it", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindExceptionOpened, 101.3, wire.Exception{ID: "x", Type: wire.ExDoorLeftOpen, Door: 2, Evidence: forcedEvidence}))
			})
		}},
		{"lost", "a record that had been sent before the store was lost", func(c *Case, b *Cabinet) {
			c.Recorded = 9
			b.Boots = []Boot{{N: 1, Start: noon, End: at(500), Unsent: 2}, {N: 2, Start: at(501), Lost: true}}
		}},
		{"close_time", "a wrong clock that was set long before", func(c *Case, b *Cabinet) {
			b.Facts[4].At, b.Facts[5].At = at(11), at(11)
			b.Trouble = []Span{{At: at(-1), What: clock}}
			change(c, func(d *Device) { d.Records = slices.Insert(d.Records, 0, record(wire.KindHealth, 2, wire.Health{})) })
		}},
		{"refused", "a code as expired before its end", func(c *Case, _ *Cabinet) { courier(c, 61) }},
		{"dead_code", "a code that was handed over, by the script's own facts", func(c *Case, b *Cabinet) {
			c.Acts[0].Replaced, c.Acts[0].OK = 5, true
			b.Held = []Held{{At: at(150), Number: 5}}
		}},
		{"cut_off", "replaced hardware was let in", func(c *Case, _ *Cabinet) {
			c.Strays = []Stray{{Cabinet: "CAB-1", What: "replaced", From: at(300), Tried: 2, Accepted: 1}}
		}},
		{"kept", "new hardware forgot a parcel", func(c *Case, b *Cabinet) {
			c.Replaced = []Replacement{{Cabinet: "CAB-1", At: at(2000), Inside: map[uint]string{1: "LD-1"}}}
			b.Contents = nil
		}},
		{"kept", "new hardware forgot a parcel that its sensor sees", func(c *Case, b *Cabinet) {
			c.Replaced = []Replacement{{Cabinet: "CAB-1", At: at(2000), Inside: map[uint]string{1: "LD-1"}}}
			b.Contents, b.Sensors = nil, true
		}},
		{"cleared", "a parcel that staff took out lies inside again", func(c *Case, _ *Cabinet) {
			c.Cleared = []Clear{{Cabinet: "CAB-1", Door: 1, At: at(300), Packages: []string{"PK-1"}}}
		}},
		{"keypad", "six wrong codes were looked at", func(c *Case, _ *Cabinet) { wrongCodes(c, 6, 0) }},
		{"keypad", "six wrong codes, and a reset of an hour later", func(c *Case, _ *Cabinet) {
			wrongCodes(c, 6, 0)
			resetTries(c, 4000)
		}},
		{"keypad", "locked after four wrong codes", func(c *Case, _ *Cabinet) { wrongCodes(c, 4, 1) }},
		{"keypad", "locked after a reset", func(c *Case, _ *Cabinet) {
			wrongCodes(c, 5, 1)
			resetTries(c, 319)
		}},
		{"keypad", "typed codes locked by scanned ones", func(c *Case, _ *Cabinet) {
			wrongCodes(c, 5, 1)
			for i := range c.Acts {
				c.Acts[i].Scanned = c.Acts[i].Outcome == wire.CodeUnknown
			}
		}},
		{"cancelled", "a pickup that counts as collected", func(c *Case, _ *Cabinet) {
			c.Cancels = []Cancel{{"CAB-1", "op-3", "cmd-9"}}
			change(c, func(d *Device) {
				d.Records = slices.Insert(d.Records, len(d.Records)-1, record(wire.KindCommandOutcome, 203, wire.CommandOutcome{CommandID: "cmd-9", Outcome: wire.OutcomeDone}))
			})
		}},
		{"device_order", "the registry lags behind", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { d.Orders = d.Orders[1:] }) }},
		{"timeline", "the timeline of an order lags behind", func(c *Case, _ *Cabinet) {
			ofOrder(c, []Step{{Code: "picked_up"}, {Code: "x-available_for_pickup"}})
		}},
		{"timeline", "the timeline lags behind", func(c *Case, _ *Cabinet) { c.Cloud.Timelines["PK-2"] = []Step{{Code: "x-available_for_pickup"}} }},
		{"cause", "left open, and shut", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindExceptionOpened, 60, wire.Exception{ID: "x", Type: wire.ExDoorLeftOpen, Door: 1}))
			})
		}},
		{"cause", "missing, and nothing left", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindExceptionOpened, 60, wire.Exception{ID: "x", Type: wire.ExItemMissing, Door: 1}))
			})
		}},
		{"cause", "unverified on a calm day", func(c *Case, _ *Cabinet) {
			change(c, func(d *Device) {
				d.Records = append(d.Records, record(wire.KindExceptionOpened, 60, wire.Exception{ID: "x", Type: wire.ExDepositUnverified, Door: 1}))
			})
		}},
		{"silent", "open for an hour", func(_ *Case, b *Cabinet) {
			for i := 16; i < 18; i++ {
				b.Facts[i].At = at(3800)
			}
		}},
		{"device_order", "the registry names another compartment", func(c *Case, _ *Cabinet) { change(c, func(d *Device) { d.Orders[0].GridCode = "A02" }) }},
		{"authority", "a command that was obeyed again after a start", func(c *Case, b *Cabinet) {
			b.Boots = []Boot{{N: 1, Start: noon, End: at(11)}, {N: 2, Start: at(12)}}
			again := b.Pulses[0]
			again.At, again.Boot, again.Mono = at(13), 2, int64(time.Second)
			b.Pulses = slices.Insert(b.Pulses, 1, b.Pulses[0], again)
			b.Facts = slices.Insert(b.Facts, 1, b.Facts[0])
		}},
		{"authority", "an opening of an earlier start", func(c *Case, b *Cabinet) {
			change(c, func(d *Device) {
				d.Records[0].Body = wire.MustEncode(wire.OpeningStarted{OpeningID: "op-1", CommandID: "cmd-1", Doors: []uint{1}})
			})
			b.Boots = []Boot{{N: 1, Start: noon, End: at(10.01)}, {N: 2, Start: at(10.02)}}
			b.Pulses[0].Boot, b.Pulses[0].Mono = 2, int64(10*time.Millisecond)
		}},
		{"authority", "an act that is older than the queue of the cabinet's doors allows", func(c *Case, b *Cabinet) {
			b.Pulses[0].Mono -= int64(80 * time.Second)
			b.Boots[0].Start = b.Boots[0].Start.Add(-time.Hour)
			for i := range b.Pulses {
				b.Pulses[i].Mono += int64(time.Hour)
			}
			x := c.Cloud.Commands["cmd-1"]
			x.IssuedAt = at(-80)
			c.Cloud.Commands["cmd-1"] = x
		}},
		{"expired", "a code that had ended", func(c *Case, _ *Cabinet) { endOfCode(c, 180) }},
		{"told", "an exception that the cloud does not have", func(c *Case, b *Cabinet) { leftOpen(c, b, cloud.Exception{}) }},
		{"told", "an exception about another door", func(c *Case, b *Cabinet) {
			leftOpen(c, b, cloud.Exception{Source: "x", Type: wire.ExDoorLeftOpen, GridCode: "A02", Status: "resolved"})
		}},
		{"told", "an exception that stays though the door is shut", func(c *Case, b *Cabinet) {
			leftOpen(c, b, cloud.Exception{Source: "x", Type: wire.ExDoorLeftOpen, GridCode: "A01", Status: "open"})
		}},
		{"news", "a deposit without an event", func(c *Case, _ *Cabinet) { named(c, "LD-1"); c.Cloud.Events[0].Name = newsPickedUp }},
		{"news", "a collection without an event", func(c *Case, _ *Cabinet) {
			named(c, "LD-2")
			change(c, func(d *Device) {
				x := d.Deliveries["LD-2"]
				x.Status = cloud.DeliveryPickedUp
				d.Deliveries["LD-2"] = x
			})
		}},
		{"news", "two events of one deposit", func(c *Case, _ *Cabinet) {
			named(c, "LD-1")
			again := c.Cloud.Events[0]
			again.ID = "E-2"
			c.Cloud.Events = append(c.Cloud.Events, again)
		}},
		{"news", "two events of one opening", func(c *Case, _ *Cabinet) {
			named(c, "LD-1")
			again, got := c.Cloud.Events[0], c.Received[0]
			again.ID, got.EventID = "E-2", "E-2"
			c.Cloud.Events, c.Received = append(c.Cloud.Events, again), append(c.Received, got)
		}},
		{"news", "an event that names another compartment", func(c *Case, _ *Cabinet) {
			named(c, "LD-1")
			c.Received[0].Body = strings.Replace(c.Received[0].Body, `"grid_id":1`, `"grid_id":2`, 1)
		}},
		{"news", "an event that names another cabinet", func(c *Case, _ *Cabinet) {
			named(c, "LD-1")
			c.Received[0].Body = strings.Replace(c.Received[0].Body, "CAB-1", "CAB-2", 1)
		}},
		{"event", "never came", func(c *Case, _ *Cabinet) { c.Received = []Received{} }},
		{"event", "not in the log", func(c *Case, _ *Cabinet) { c.Cloud.Events = nil }},
		{"event", "other bytes", func(c *Case, _ *Cabinet) {
			c.Outages = []Span{{At: at(16), Until: at(20)}}
			c.Received = append(c.Received, Received{At: at(17), EventID: "E-1", Body: "{ }", Status: 200})
		}},
		{"event", "twice without a reason", func(c *Case, _ *Cabinet) { c.Received = append(c.Received, c.Received[0]) }},
		{"event", "waits for ever", func(c *Case, _ *Cabinet) { c.Cloud.Events = append(c.Cloud.Events, Event{ID: "E-2"}) }},
	} {
		t.Run(x.rule+" "+x.name, func(t *testing.T) {
			c := calmDay()
			x.do(&c, &c.Cabinets[0])
			v := Judge(c)
			require.True(t, slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Rule == x.rule }), v.String())
		})
	}
}

// A pulse under a boot that did not run is one finding: its age is not judged by that boot.
func TestAPulseOfNoBootIsFoundOnce(t *testing.T) {
	t.Parallel()
	c := calmDay()
	c.Cabinets[0].Pulses[0].Boot = 9
	var found []string
	for _, f := range Judge(c).Findings {
		if f.Rule == "authority" {
			found = append(found, f.Text)
		}
	}
	require.Equal(t, []string{"a pulse under the boot 9, which did not run"}, found)
}

// disagree makes the cabinet hold nothing behind door 1, after it forgot.
func disagree(c *Case, b *Cabinet, detail string) {
	b.Contents = map[uint]string{}
	b.Trouble = []Span{{At: at(300), Until: at(301), What: forgot}}
	d := c.Cloud.Devices["CAB-1"]
	d.Cells[1] = cloud.Compartment{GridID: 1, GridCode: "A01", Door: 1, State: cloud.GridOccupied, DeliveryID: 1, Dispute: &cloud.Dispute{Cloud: "LD-1"}}
	d.Faults = []cloud.DeviceException{{Type: mismatch, Detail: detail, OpenedAt: at(302), SeenAt: at(302)}}
	c.Cloud.Devices["CAB-1"] = d
}

// forceOpen forces a door open for 10 s.
func forceOpen(b *Cabinet, door uint, seconds float64) {
	fact := func(kind board.FactKind, s float64) board.Fact {
		return board.Fact{At: at(s), Door: door, Board: "A", Kind: kind}
	}
	b.Facts = append(b.Facts, fact(board.HookOut, seconds), fact(board.Opened, seconds), fact(board.Closed, seconds+10), fact(board.HookIn, seconds+10))
	b.Trouble = append(b.Trouble, Span{At: at(seconds), Until: at(seconds + 60), What: force, Door: door})
}

// removeFromLayout has the cabinet apply a layout without a compartment, and later one
// with it.
func removeFromLayout(c *Case, b *Cabinet, door uint, out, in float64) {
	b.Removed = []Span{{At: at(out - 1), Until: at(in - 1), Door: door}}
	d := c.Cloud.Devices["CAB-1"]
	d.Records = append(d.Records, record(wire.KindConfigApplied, out, wire.ConfigApplied{Version: 2, Result: wire.ResultOK}), record(wire.KindConfigApplied, in, wire.ConfigApplied{Version: 3, Result: wire.ResultOK}))
	c.Cloud.Devices["CAB-1"] = d
}

// wrongCodes are typed from second 300 on, one each second; the keypad looks at some of
// them and is locked for the rest.
func wrongCodes(c *Case, looked, locked int) {
	for i := range looked + locked {
		a := Act{Cabinet: "CAB-1", Kind: edge.ByCode, Code: "wrong", At: at(300 + float64(i)), Until: at(300.1 + float64(i)), Outcome: wire.CodeUnknown}
		if i >= looked {
			a.Outcome = wire.CodeLockedOut
			a.At, a.Until = a.At.Add(20*time.Second), a.Until.Add(20*time.Second)
		}
		c.Acts = append(c.Acts, a)
	}
}

// resetTries has a command lift the keypad's locks.
func resetTries(c *Case, seconds float64) {
	c.Resets = []Reset{{"CAB-1", "cmd-9"}}
	d := c.Cloud.Devices["CAB-1"]
	d.Records = append(d.Records, record(wire.KindCommandOutcome, seconds, wire.CommandOutcome{CommandID: "cmd-9", Outcome: wire.OutcomeDone}))
	c.Cloud.Devices["CAB-1"] = d
}

// endOfCode gives the code that opened door 2 an end, as of a courier's.
func endOfCode(c *Case, end float64) {
	d := c.Cloud.Devices["CAB-1"]
	d.Codes[0].Entry.Kind, d.Codes[0].Entry.NotAfter = wire.CodeDelivery, at(end).UnixNano()
	c.Acts[0].Code = wire.CodeDelivery
	c.Cloud.Devices["CAB-1"] = d
}

// leftOpen has the cabinet tell that door 1 was left open, and the cloud keep that as
// row.
func leftOpen(c *Case, b *Cabinet, row cloud.Exception) {
	b.Held = []Held{{At: at(3600)}}
	d := c.Cloud.Devices["CAB-1"]
	d.Records = append(d.Records, record(wire.KindExceptionOpened, 14, wire.Exception{ID: "x", Type: wire.ExDoorLeftOpen, Door: 1}))
	d.Exceptions = []cloud.Exception{row}
	c.Cloud.Devices["CAB-1"] = d
}

// named gives the day's event a name and what it tells of a delivery, which lies in
// compartment 1.
func named(c *Case, number string) {
	c.Cloud.Events[0].Name, c.Cloud.Events[0].Reference, c.Cloud.Events[0].OccurredAt = newsDelivered, number, at(15)
	c.Received[0].Body = `{"data":{"locker":{"device_code":"CAB-1"},"packages":[{"tracking_number":"PK-1","grid_id":1,"status":"in_compartment"}]}}`
	d := c.Cloud.Devices["CAB-1"]
	x := d.Deliveries["LD-1"]
	x.DepositedAt, x.Status = at(15), cloud.DeliveryDelivered
	d.Deliveries["LD-1"] = x
	c.Cloud.Devices["CAB-1"] = d
}

// courier is refused as expired with a code that ends at some second of the day.
func courier(c *Case, end float64) {
	d := c.Cloud.Devices["CAB-1"]
	d.Codes = append(d.Codes, cloud.CodeRow{Entry: wire.CodeEntry{Number: 6, Op: wire.CodeSet, Kind: wire.CodeDelivery, DeliveryRef: "LD-3", NotAfter: at(end).UnixNano()}})
	c.Cloud.Devices["CAB-1"] = d
	c.Acts = append(c.Acts, Act{Cabinet: "CAB-1", Kind: edge.ByCode, At: at(60), Until: at(60.5), Delivery: "LD-3", Code: wire.CodeDelivery, Outcome: wire.CodeExpired})
}

// What the rules allow is no finding.
func TestWhatIsReportedInTimeAndWithItsCauseBreaksNoRule(t *testing.T) {
	t.Parallel()
	tell := func(c *Case, records ...wire.Record) {
		d := c.Cloud.Devices["CAB-1"]
		d.Records = append(d.Records, records...)
		c.Cloud.Devices["CAB-1"] = d
	}
	for name, do := range map[string]func(c *Case, b *Cabinet){
		"a door that was forced": func(c *Case, b *Cabinet) {
			forceOpen(b, 1, 300)
			tell(c, record(wire.KindTamper, 301, wire.Tamper{What: wire.TamperDoorForced, Door: 1}))
		},
		"forced while no agent ran": func(_ *Case, b *Cabinet) {
			forceOpen(b, 1, 300)
			b.Boots = []Boot{{N: 1, Start: noon, End: at(299)}, {N: 2, Start: at(320)}}
		},
		"forced while no layout names the compartment": func(c *Case, b *Cabinet) {
			forceOpen(b, 1, 300)
			removeFromLayout(c, b, 1, 290, 400)
		},
		"views that differ after a loss, out of use": func(c *Case, b *Cabinet) {
			disagree(c, b, "door 11: cabinet empty, cloud X; door 1: cabinet empty, cloud LD-1")
		},
		"what a lost store had not sent": func(c *Case, b *Cabinet) {
			c.Recorded = 8
			b.Boots = []Boot{{N: 1, Start: noon, End: at(500), Unsent: 2}, {N: 2, Start: at(501), Lost: true}}
		},
		"a close before the clock was set": func(c *Case, b *Cabinet) {
			b.Facts[4].At, b.Facts[5].At = at(11), at(11)
			b.Trouble = []Span{{At: at(-1), What: clock}}
			c.Cloud.Devices["CAB-1"].Records[0].Clock = wire.ClockCarried
		},
		"a box that is kept and empty": func(c *Case, b *Cabinet) {
			b.Facts = slices.Delete(b.Facts, 3, 4)
			b.Kept = map[uint]bool{1: true}
			c.Cloud.Devices["CAB-1"].Deliveries["LD-1"].Packages[0].Status = cloud.PackageAwaitingDeposit
		},
		"a code that was replaced in a list that the cabinet has not": func(c *Case, b *Cabinet) {
			c.Acts[0].Replaced, c.Acts[0].OK = 5, true
			b.Held = []Held{{At: at(150), Number: 4}}
		},
		"hardware that was cut off and stayed out": func(c *Case, _ *Cabinet) {
			c.Strays = []Stray{{Cabinet: "CAB-1", What: "stolen", From: at(300), Tried: 9}}
		},
		"new hardware, and a door that was opened before": func(c *Case, _ *Cabinet) {
			c.Replaced = []Replacement{{Cabinet: "CAB-1", At: at(300), Inside: map[uint]string{1: "LD-1", 2: "LD-2"}}}
		},
		"new hardware, and a compartment that staff declared empty since": func(c *Case, _ *Cabinet) {
			c.Replaced = []Replacement{{Cabinet: "CAB-1", At: at(2000), Inside: map[uint]string{2: "LD-2"}}}
			c.Cleared = []Clear{{Cabinet: "CAB-1", Door: 2, At: at(2100)}}
		},
		"new hardware, and the former was cut off as stolen": func(c *Case, _ *Cabinet) {
			c.Replaced = []Replacement{{Cabinet: "CAB-1", At: at(2000), Inside: map[uint]string{2: "LD-2"}}}
			c.Strays = []Stray{{Cabinet: "CAB-1", What: "stolen", From: at(1900), Until: at(2100), Tried: 9}}
		},
		"five wrong codes, and no code looked at": func(c *Case, _ *Cabinet) { wrongCodes(c, 5, 3) },
		"a reset between wrong codes": func(c *Case, _ *Cabinet) {
			wrongCodes(c, 8, 0)
			resetTries(c, 303.5)
		},
		"forced, and the hardware was lost before it was told": func(c *Case, b *Cabinet) {
			forceOpen(b, 1, 300)
			b.Boots = []Boot{{N: 1, Start: noon, End: at(500), Unsent: 2}, {N: 2, Start: at(501), End: at(600), Unsent: 3}, {N: 1, Start: at(601), Lost: true}}
			c.Recorded = 9
		},
		"a code that has ended": func(c *Case, _ *Cabinet) { courier(c, 60) },
		"a code that had ended, by a clock that nothing had set": func(c *Case, _ *Cabinet) {
			endOfCode(c, 180)
			for i := range c.Cloud.Devices["CAB-1"].Records {
				c.Cloud.Devices["CAB-1"].Records[i].Clock = wire.ClockCarried
			}
		},
		"a code just before its end": func(c *Case, _ *Cabinet) { endOfCode(c, 199) },
		"an exception that ended with its door": func(c *Case, b *Cabinet) {
			leftOpen(c, b, cloud.Exception{Source: "x", Type: wire.ExDoorLeftOpen, GridCode: "A01", Status: "resolved"})
		},
		"an event of a deposit": func(c *Case, _ *Cabinet) { named(c, "LD-1") },
	} {
		c := calmDay()
		do(&c, &c.Cabinets[0])
		v := Judge(c)
		require.True(t, v.OK(), "%s: %s", name, v.String())
	}
}

// What is on record as doubtful, or was cut off, is no finding.
func TestDoubtsAndOutagesExcuse(t *testing.T) {
	t.Parallel()
	c := calmDay()
	b := &c.Cabinets[0]
	b.Facts = slices.Delete(b.Facts, 3, 4) // nothing was put in
	d := c.Cloud.Devices["CAB-1"]
	d.Records = append(d.Records, record(wire.KindExceptionOpened, 16, wire.Exception{ID: "x", Type: wire.ExDepositUnverified, Door: 1}))
	d.Exceptions = []cloud.Exception{{Source: "x", Type: wire.ExDepositUnverified, GridCode: "A01", OpenedAt: at(16)}}
	b.Trouble = []Span{{At: at(11), Until: at(12), What: "boards"}}
	c.Cloud.Devices["CAB-1"] = d
	c.Outages = []Span{{At: at(16), Until: at(20)}}
	c.Received = append(c.Received, Received{At: at(21), EventID: "E-1", Body: "{}", Status: 200})
	v := Judge(c)
	require.True(t, v.OK(), v.String())
}

// A door that stands open for long ends its opening late: the trouble that left the deposit unseen may
// lie further back than an opening lives.
func TestADepositThatEndsLateHasAnEarlyCause(t *testing.T) {
	t.Parallel()
	for at0, excused := range map[float64]bool{11: true, 5000: true, -1000: true, -2000: false, 6100: false} {
		c := calmDay()
		b := &c.Cabinets[0]
		b.Facts = []board.Fact{{At: at(10), Door: 1, Kind: board.Opened}, {At: at(6000), Door: 1, Kind: board.Closed}}
		b.Trouble = []Span{{At: at(at0), Until: at(at0 + 1), What: "boards"}}
		d := Device{Records: []wire.Record{record(wire.KindExceptionOpened, 6002, wire.Exception{ID: "x", Type: wire.ExDepositUnverified, Door: 1})}}
		j := &judge{Case: Case{Cabinets: c.Cabinets, Cloud: Cloud{Devices: map[string]Device{"CAB-1": d}}}}
		j.exceptions(b)
		require.Equal(t, excused, !slices.ContainsFunc(j.Findings, func(f Finding) bool { return f.Rule == "cause" }), "trouble at %v s", at0)
	}
}

// A doubt about an opening of several doors names one of them and is about all.
func TestADoubtAboutAnOpeningIsAboutItsDoors(t *testing.T) {
	t.Parallel()
	for opening, excused := range map[string]bool{"op-1": true, "op-9": false} {
		c := calmDay()
		b := &c.Cabinets[0]
		b.Facts = slices.Delete(b.Facts, 3, 4) // nothing was put in
		d := c.Cloud.Devices["CAB-1"]
		d.Exceptions = []cloud.Exception{{GridCode: "A02", Type: wire.ExDepositUnverified, Source: "late:" + opening, OpenedAt: at(18)}}
		c.Cloud.Devices["CAB-1"] = d
		c.Cloud.Audit.Openings = map[string]server.OpeningAudit{"op-1": {Doors: []uint{1, 2}}, "op-9": {Doors: []uint{2}}}
		v := Judge(c)
		require.Equal(t, excused, v.OK(), "%s: %s", opening, v.String())
	}
}

// A device without an agent: each rule of its own is seen to break.
func TestRulesOfASimpleDevice(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return day.Add(time.Duration(s) * time.Second) }
	simple := func() Case {
		return Case{Acts: []Act{{Cabinet: "BOX", Kind: edge.ByCode, Delivery: "LD-1", Code: wire.CodeDelivery, At: at(0), Until: at(1), OK: true, Doors: []uint{1}}},
			Simple: []Simple{{Code: "BOX", Unlocks: []Unlock{{At: at(2), Door: 1, Command: "c-1", Opening: "op-1", Ends: at(20)}},
				Facts: []board.Fact{{At: at(2), Door: 1, Kind: board.CoilFired}, {At: at(2), Door: 1, Kind: board.Opened}, {At: at(3), Door: 1, Kind: board.ItemIn, Item: "PK-1"}, {At: at(4), Door: 1, Kind: board.Closed}}}},
			Cloud: Cloud{Timelines: map[string][]Step{"PK-1": {{Code: waiting[0], At: at(5)}}}, Devices: map[string]Device{"BOX": {Cells: map[uint]cloud.Compartment{1: {Door: 1, GridID: 7, GridCode: "A01"}},
				Deliveries: map[string]cloud.Delivery{"LD-1": {ID: 3, Number: "LD-1", DepositedAt: at(6), Packages: []cloud.Package{{TrackingNumber: "PK-1", GridID: 7, Status: cloud.PackageInCompartment}}}},
				Orders:     []cloud.DeviceOrder{{DeliveryID: 3, Tracking: "PK-1", Status: "stored", GridCode: "A01"}},
				Openings:   map[string]cloud.Opening{"op-1": {ID: "op-1", DeliveryID: 3, Kind: wire.OpenDeposit, Doors: []cloud.OpeningDoor{{Door: 1}}}}}}},
			Final: true}
	}
	pulsed := func(x *Simple, n int) { // an order for each
		for i := 1; i < n; i++ {
			u := x.Unlocks[0]
			u.Command = fmt.Sprint("more-", i)
			x.Unlocks, x.Facts = append(x.Unlocks, u), append(x.Facts, x.Facts[0])
		}
	}
	require.Empty(t, Judge(simple()).Findings)
	twice := simple() // a person enters the code once more while the opening runs: it has pulses of its own
	twice.Acts = append(twice.Acts, twice.Acts[0])
	twice.Acts[1].At, twice.Acts[1].Until = at(180), at(180)
	pulsed(&twice.Simple[0], 4)
	for i := range twice.Simple[0].Unlocks[1:] {
		x := &twice.Simple[0].Unlocks[i+1]
		x.At, x.Ends = at(181), at(200)
	}
	twice.Cloud.Devices["BOX"].Deliveries["LD-1"] = cloud.Delivery{ID: 3, Number: "LD-1", DepositedAt: at(190), Packages: twice.Cloud.Devices["BOX"].Deliveries["LD-1"].Packages}
	require.Empty(t, Judge(twice).Findings)
	for name, c := range map[string]struct {
		rule string
		do   func(c *Case)
	}{
		"a coil that no order asked for": {"order", func(c *Case) { c.Simple[0].Unlocks = nil }},
		"an order twice": {"order", func(c *Case) {
			x := &c.Simple[0]
			x.Unlocks, x.Facts = append(x.Unlocks, x.Unlocks[0]), append(x.Facts, x.Facts[0])
		}},
		"more pulses than an act has": {"order", func(c *Case) { pulsed(&c.Simple[0], 3) }},
		"more than two acts have": {"order", func(c *Case) {
			c.Acts = append(c.Acts, c.Acts[0])
			pulsed(&c.Simple[0], 5)
		}},
		"an order after its end":       {"order", func(c *Case) { c.Simple[0].Unlocks[0].Ends = at(-1) }},
		"another door":                 {"authority", func(c *Case) { c.Simple[0].Unlocks[0].Door = 2 }},
		"a person who was refused":     {"authority", func(c *Case) { c.Acts[0].OK = false }},
		"a person of another delivery": {"authority", func(c *Case) { c.Acts[0].Delivery = "LD-2" }},
		"no such opening":              {"authority", func(c *Case) { c.Simple[0].Unlocks[0].Opening = "op-2" }},
		"a code that was used": {"once", func(c *Case) {
			again := c.Acts[0]
			again.At = at(60)
			c.Acts = append(c.Acts, again)
		}},
		"a code that was replaced":    {"dead_code", func(c *Case) { c.Acts[0].Replaced = 1 }},
		"a deposit that counts twice": {"once", func(c *Case) { s := c.Cloud.Timelines["PK-1"]; c.Cloud.Timelines["PK-1"] = append(s, s[0]) }},
		"a parcel that is not there":  {"place", func(c *Case) { x := &c.Simple[0]; x.Facts = slices.Delete(x.Facts, 2, 3) }},
		"a parcel that is not known":  {"place", func(c *Case) { c.Cloud.Devices["BOX"].Deliveries["LD-1"].Packages[0].Status = "created" }},
		"a door that opens by itself": {"hand", func(c *Case) {
			x := &c.Simple[0]
			x.Facts = append(x.Facts, board.Fact{At: at(100), Door: 1, Kind: board.Opened})
		}},
	} {
		x := simple()
		c.do(&x)
		require.Contains(t, fmt.Sprint(Judge(x).Findings), c.rule+": BOX", name)
	}
}

// A channel test opens no door over a parcel that staff did not know of, and is no deposit.
func TestRulesOfAChannelTest(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	b := Cabinet{Code: "CAB", Pulses: []Pulse{{At: day.Add(time.Minute), Door: 1, Authority: edge.Authority{OpeningID: "op-1"}}},
		Facts: []board.Fact{{At: day, Door: 1, Kind: board.Opened}, {At: day, Door: 1, Kind: board.ItemIn, Item: "PK-1"}, {At: day.Add(time.Second), Door: 1, Kind: board.Closed}}}
	judged := func(occupied bool, records ...wire.Record) string {
		j := &judge{Case: Case{Tests: []ChannelTest{{Cabinet: "CAB", Door: 1, OpeningID: "op-1", Occupied: occupied}}, Cloud: Cloud{Devices: map[string]Device{"CAB": {Records: records}}}}}
		judgeTests(j, &b)
		return fmt.Sprint(j.Findings)
	}
	require.Contains(t, judged(false), "over [PK-1]")
	require.Equal(t, "[]", judged(true))
	require.Contains(t, judged(true, wire.Record{Kind: wire.KindPickupCompleted, Body: wire.MustEncode(wire.PickupCompleted{OpeningID: "op-1"})}), "counts as a")
}

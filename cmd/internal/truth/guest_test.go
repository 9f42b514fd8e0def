package truth

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// guestDay is the calm day with a guest beside the script: the second delivery was
// collected by the guest's code, seconds before the script's own person typed
// another delivery's code, which was refused.
func guestDay() Case {
	c := calmDay()
	c.Unscripted = true
	c.Acts = []Act{{Cabinet: "CAB-1", Kind: edge.ByCode, At: at(203), Until: at(203.5), Delivery: "LD-1", Code: wire.CodePickup}}
	c.Cabinets[0].WallClock = true
	return c
}

// open lets a coil swing a door open by an act, and a person shut it.
func open(b *Cabinet, door uint, seconds float64, by edge.Authority) {
	by.Boot, by.Mono = 1, int64(seconds*float64(time.Second))
	b.Pulses = append(b.Pulses, Pulse{At: at(seconds), Written: int64(at(seconds).Sub(noon)), Board: "A", Channel: door, Door: edge.DoorNumber(door), Authority: by})
	for _, fact := range []struct {
		kind  board.FactKind
		later float64
	}{{board.CoilFired, .1}, {board.HookOut, .2}, {board.Opened, .3}, {board.Closed, 2}, {board.HookIn, 2}} {
		f := board.Fact{At: at(seconds + fact.later), Door: door, Board: "A", Kind: fact.kind}
		if fact.kind == board.CoilFired {
			f.Channel, f.Cause = door, board.ByRequest
		}
		b.Facts = append(b.Facts, f)
	}
}

// giveQR has the cloud give out a signed QR code, and the cabinet report its use at a door.
func giveQR(c *Case, door uint, used float64) {
	d := c.Cloud.Devices["CAB-1"]
	d.QRCodes = append(d.QRCodes, cloud.QRCode{Kept: cloud.Kept[cloud.QRCodeID]{CreatedAt: at(200)}, PassID: "ab", EndsAt: at(900), OpeningID: "op_qr", UsedAt: at(used)})
	d.Openings = map[string]cloud.Opening{"op_qr": {ID: "op_qr", Doors: []cloud.OpeningDoor{{Door: door}}}}
	c.Cloud.Devices["CAB-1"] = d
}

// What guests may do at a cabinet is no finding: codes are judged by the list
// alone, also beside the script's people.
func TestGuestsAreJudgedByTheCodesAlone(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(c *Case, b *Cabinet){
		"a code beside the script's": func(*Case, *Cabinet) {},
		"a pickup that is opened once more": func(_ *Case, b *Cabinet) {
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByReopen})
		},
		"a larger compartment": func(c *Case, b *Cabinet) {
			d := c.Cloud.Devices["CAB-1"]
			d.Codes = append(d.Codes, cloud.CodeRow{DeviceID: 7, Entry: wire.CodeEntry{Number: 9, Op: wire.CodeSet, Kind: wire.CodeDelivery, DeliveryRef: "LD-9"}})
			c.Cloud.Devices["CAB-1"] = d
			open(b, 1, 230, edge.Authority{Act: "act-2", Kind: edge.ByCode, CodeNumber: 9})
			open(b, 2, 260, edge.Authority{Act: "act-3", Kind: edge.ByLarger, CodeNumber: 9})
		},
		"a staff code": func(c *Case, b *Cabinet) {
			d := c.Cloud.Devices["CAB-1"]
			d.Codes = append(d.Codes, cloud.CodeRow{DeviceID: 7, Entry: wire.CodeEntry{Number: 9, Op: wire.CodeSet, Kind: wire.CodeStaff}})
			c.Cloud.Devices["CAB-1"] = d
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByStaff, CodeNumber: 9})
		},
		"a signed QR code of staff": func(c *Case, b *Cabinet) {
			giveQR(c, 2, 230)
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByPass})
		},
	} {
		c := guestDay()
		do(&c, &c.Cabinets[0])
		v := Judge(c)
		require.True(t, v.OK(), "%s: %s", name, v.String())
	}
}

// What no code allows stays a finding.
func TestGuestsOpenNothingWithoutACode(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(c *Case, b *Cabinet){
		"a code that was never listed": func(c *Case, _ *Cabinet) {
			d := c.Cloud.Devices["CAB-1"]
			d.Codes = nil
			c.Cloud.Devices["CAB-1"] = d
		},
		"another delivery's door for the script's code": func(c *Case, _ *Cabinet) {
			c.Acts[0].At, c.Acts[0].Until, c.Acts[0].OK, c.Acts[0].Doors = at(199.8), at(200.1), true, []uint{2}
		},
		"a reopening of a door that no pickup opened": func(_ *Case, b *Cabinet) {
			open(b, 1, 230, edge.Authority{Act: "act-2", Kind: edge.ByReopen})
		},
		"a reopening long after the pickup": func(_ *Case, b *Cabinet) {
			open(b, 2, 200+longOpen.Seconds()+60, edge.Authority{Act: "act-2", Kind: edge.ByReopen})
		},
		"a signed QR code that was never given out": func(_ *Case, b *Cabinet) {
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByPass})
		},
		"a signed QR code for another door": func(c *Case, b *Cabinet) {
			giveQR(c, 1, 230)
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByPass})
		},
		"a signed QR code that was used at another time": func(c *Case, b *Cabinet) {
			giveQR(c, 2, 260)
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByPass})
		},
		"a staff code that was never listed": func(_ *Case, b *Cabinet) {
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByStaff, CodeNumber: 9})
		},
		"a larger compartment for a pickup code": func(_ *Case, b *Cabinet) {
			open(b, 1, 230, edge.Authority{Act: "act-2", Kind: edge.ByLarger, CodeNumber: 4})
		},
		"a larger compartment without a code before": func(c *Case, b *Cabinet) {
			d := c.Cloud.Devices["CAB-1"]
			d.Codes = append(d.Codes, cloud.CodeRow{DeviceID: 7, Entry: wire.CodeEntry{Number: 9, Op: wire.CodeSet, Kind: wire.CodeDelivery, DeliveryRef: "LD-9"}})
			c.Cloud.Devices["CAB-1"] = d
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByLarger, CodeNumber: 9})
		},
		"a pickup code as a staff code": func(_ *Case, b *Cabinet) {
			open(b, 2, 230, edge.Authority{Act: "act-2", Kind: edge.ByStaff, CodeNumber: 4})
		},
	} {
		c := guestDay()
		do(&c, &c.Cabinets[0])
		v := Judge(c)
		require.True(t, slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Rule == "authority" }), "%s: %v", name, v.Findings)
	}
}

// A delivery of another provider, as of the console's first parcel, lies where it lies; its events
// go to an address of its own.
func TestADeliveryOfAnotherProviderHasOtherNews(t *testing.T) {
	t.Parallel()
	c := calmDay()
	c.Cloud.Events[0].Name, c.Cloud.Events[0].Reference, c.Cloud.Events[0].OccurredAt = "locker_delivery.doors_opened", "LD-1", at(11)
	change(&c, func(d *Device) {
		d.Deliveries = maps.Clone(d.Deliveries)
		x := d.Deliveries["LD-1"]
		x.DepositedAt = at(17)
		d.Deliveries["LD-1"] = x
	})
	require.Contains(t, fmt.Sprint(Judge(c).Findings), "no event says so", "the provider receives its events")
	c.Cloud.Provider = 9
	require.Empty(t, Judge(c).Findings)
}

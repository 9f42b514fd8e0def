package device_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

func cell(w *devicetest.World, d *devicetest.Device, door uint) (c cloud.Compartment) {
	w.T.Helper()
	w.Look(func(v cloud.View) (err error) { c, err = v.Compartment(d.ID, door); return err })
	return c
}

func deliveryOf(w *devicetest.World, number string) (d cloud.Delivery) {
	w.T.Helper()
	w.Look(func(v cloud.View) (err error) { d, err = v.DeliveryByNumber(number); return err })
	return d
}

// tellContents sends a status and waits until it is taken.
func tellContents(d *devicetest.Device, f func(*wire.Status)) {
	d.Status(f)
	synctest.Wait()
}

// Collected while offline, then rotated in the cloud, then connected: the new
// code was listed as active now for compartments that were empty by then, and
// stayed at the cabinet as a ghost once the record of the pickup had come.
func TestRotationOfADeliveryThatTheCabinetHasCollected(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		held := d.List
		d.Drop()
		_, err := w.Lockers.RotatePickupCode(context.Background(), w.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(t, err)
		delete(d.Contents, door)
		pickup := d.Batch(0, d.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: ref, OpeningID: "op_offline", Doors: []uint{door}, How: "keypad", ListNumber: held}))

		d = w.Connect(d.Code, d.Memory)
		d.Greet(nil)
		tail := list(t, d)
		require.Equal(t, held, tail.From)
		set := tail.Entries[len(tail.Entries)-1]
		require.Equal(t, []any{wire.CodeSet, wire.ActiveNow, ref}, []any{set.Op, set.Active, set.DeliveryRef})
		d.List = tail.To
		d.Status(nil)
		drain(d)
		require.Nil(t, cell(w, d, door).Dispute, "the record is on its way: nothing is compared")
		d.Up(wire.MustEncode(pickup))
		require.Equal(t, pickup.Last()+1, d.Ack().Next)
		require.Equal(t, cloud.DeliveryPickedUp, deliveryOf(w, ref).Status)

		// What was listed since is revoked, and in no whole list.
		c := list(t, d)
		require.Equal(t, tail.To, c.From)
		require.Equal(t, []any{wire.CodeRevoke, wire.CodePickup, ref}, []any{c.Entries[0].Op, c.Entries[0].Kind, c.Entries[0].DeliveryRef})
		require.Greater(t, c.Entries[0].Number, set.Number)
		confirm(w, d)
		d.Lost = true
		whole := ask(t, d, "lost")
		require.EqualValues(t, 0, whole.From)
		require.Empty(t, whole.Entries)
		d.Lost = false
		tellContents(d, nil)
		require.Empty(t, d.Faults())
		require.Equal(t, cloud.GridFree, cell(w, d, door).State)
	})
}

// A parcel that was collected with the code that the list had needs no
// revocation: the cabinet has dropped it.
func TestPickupWithTheNewestListRevokesNothing(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		held := d.List
		d.Tell(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: ref, OpeningID: "op_1", Doors: []uint{door}, How: "keypad", ListNumber: held})
		w.Look(func(v cloud.View) error { row, err := v.Device(d.ID); require.Equal(t, held, row.CodeList); return err })
	})
}

// What a pickup left is what a whole list brings back.
func TestWholeListAfterAPickupThatLeftSomething(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		confirm(w, d)
		ref := create(w, "R-1", d.Code, "PK-1", "PK-2").DeliveryNumber
		o := startOpening(w, d, "R-1")
		now := time.Now().UnixNano()
		body := wire.OpeningSettled{OpeningID: o.OpeningID, ConfirmedBy: wire.ByDoorClose}
		for i, door := range o.Doors {
			body.Doors = append(body.Doors, wire.SettledDoor{Door: door, OpenedAt: now - 5e9, ClosedAt: now - 2e9})
			body.Packages = append(body.Packages, wire.SettledPackage{Ref: []string{"PK-1", "PK-2"}[i], Door: door, Outcome: wire.Deposited})
		}
		d.Tell(wire.KindOpeningSettled, body)
		d.Tell(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: ref, OpeningID: "op_1", Doors: o.Doors[:1], Left: o.Doors[1:], How: "keypad", ListNumber: 2})
		d.Lost = true
		for _, e := range ask(t, d, "lost").Entries {
			if e.Kind == wire.CodePickup {
				require.Equal(t, o.Doors[1:], e.Doors)
			}
		}
	})
}

// The cabinet and the cloud could disagree about a compartment for ever.
func TestContentsMismatchOpensKeepsOutOfUseAndEndsByItself(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		require.Empty(t, d.Faults())
		before, delivery := cell(w, d, door), deliveryOf(w, ref)

		delete(d.Contents, door)
		tellContents(d, nil)
		f := d.Faults()[cloud.DevContentsMismatch]
		require.Equal(t, "door 1: cabinet empty, cloud "+ref, f.Detail)
		now := cell(w, d, door)
		require.True(t, now.OutOfUse())
		now.Dispute = nil
		require.Equal(t, before, now, "what is known of the compartment stays")
		require.Equal(t, delivery, deliveryOf(w, ref), "a snapshot changes no delivery")
		_, events, err := w.Store.ListOutbox(t.Context(), cloud.OutboxFilter{ProviderID: w.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
		require.NoError(t, err)

		// A second door.
		d.Contents[2] = "LD-000000099"
		tellContents(d, nil)
		require.Equal(t, "door 1: cabinet empty, cloud "+ref+"; door 2: cabinet LD-000000099, cloud empty", d.Faults()[cloud.DevContentsMismatch].Detail)
		require.Equal(t, cloud.GridFree, cell(w, d, 2).State)
		require.Empty(t, d.Cmds, "nothing proves which view is old")
		var doors []cloud.GridID
		for _, ref := range []string{"R-2", "R-3"} {
			for _, p := range create(w, ref, d.Code, "PK-"+ref).Packages {
				doors = append(doors, *p.GridID)
			}
		}
		require.NotContains(t, doors, cell(w, d, 2).GridID, "it takes no new delivery")
		_, err = w.Lockers.Create(context.Background(), w.Box.ProviderCaller, locker.CreateInput{DeviceID: d.ID, ReferenceNumber: "R-4",
			Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-4", Size: "M"}}})
		require.ErrorContains(t, err, "NO_COMPARTMENT")

		delete(d.Contents, 2)
		tellContents(d, nil)
		require.False(t, cell(w, d, 2).OutOfUse())
		require.Contains(t, d.Faults(), cloud.DevContentsMismatch, "the other door is left")
		d.Contents[door] = ref
		tellContents(d, nil)
		require.Empty(t, d.Faults(), "the views agree")
		require.Equal(t, before, cell(w, d, door))
		_, after, err := w.Store.ListOutbox(t.Context(), cloud.OutboxFilter{ProviderID: w.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
		require.NoError(t, err)
		require.Len(t, after, len(events), "no webhook")
	})
}

// A compartment that stays taken for a delivery whose package is planned for another door,
// because what was left there is not known, is held by the cloud: hardware that knows
// nothing of it says otherwise, and both views are shown.
func TestContentsMismatchOfACompartmentThatIsKept(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		stored(t, w, d, "R-0", "PK-0")
		confirm(w, d)
		x := create(w, "R-1", d.Code, "PK-1")
		confirm(w, d)
		const kept = 4
		require.NotEqual(t, cell(w, d, kept).GridID, *x.Packages[0].GridID)
		keep := func(state string, of cloud.DeliveryID) {
			c := cell(w, d, kept)
			c.State, c.DeliveryID = state, of
			require.NoError(t, w.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{Unaudited: true, LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, nil
			}))
		}
		keep(cloud.GridOccupied, x.DeliveryID)
		d.Contents[kept] = x.DeliveryNumber
		tellContents(d, nil)
		require.Empty(t, d.Faults(), "both hold it")
		delete(d.Contents, kept)
		tellContents(d, nil)
		require.Equal(t, "door 4: cabinet empty, cloud "+x.DeliveryNumber, d.Faults()[cloud.DevContentsMismatch].Detail)
		require.Empty(t, d.Cmds, "nothing proves which view is old")
		keep(cloud.GridFree, 0)
		tellContents(d, nil)
		require.Empty(t, d.Faults(), "staff have emptied it")
	})
}

// Only a complete and settled present is compared.
func TestContentsAreComparedOnlyWhenTheyCanBe(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		none := func(name string, f func(*wire.Status)) {
			t.Helper()
			tellContents(d, func(s *wire.Status) {
				s.Contents = nil
				f(s)
			})
			require.NotContains(t, d.Faults(), cloud.DevContentsMismatch, name)
			require.Nil(t, cell(w, d, door).Dispute, name)
		}
		none("an agent that does not tell contents", func(s *wire.Status) { s.Snapshot = 0 })
		none("a cabinet that lost its memory", func(s *wire.Status) { s.Lost = true })
		none("records are on their way", func(s *wire.Status) { s.Ends[0].Last++ })
		none("no ends of lanes", func(s *wire.Status) { s.Ends = nil })
		none("another epoch", func(s *wire.Status) { s.Epoch = devicetest.EpochOf(200) })
		none("an opening runs there", func(s *wire.Status) { s.Doors[door-1].OpeningID = "op_1" })
		none("a door that is not in the status", func(s *wire.Status) { s.Doors = s.Doors[:0] })
		none("a version that the cloud never gave", func(s *wire.Status) { s.Doors[door-1].Version = 99 })
		require.NotContains(t, d.Faults(), cloud.DevStoreFork)

		// A command for the door, an opening that is asked for.
		ref2 := create(w, "R-2", d.Code, "PK-2").DeliveryNumber
		o := startOpening(w, d, "R-2")
		d.Versions[o.Doors[0]]++
		tellContents(d, func(s *wire.Status) { s.Contents = map[uint]string{door: ref, o.Doors[0]: "LD-000000099"} })
		require.NotContains(t, d.Faults(), cloud.DevContentsMismatch)
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
		tellContents(d, func(s *wire.Status) { s.Contents = map[uint]string{door: ref, o.Doors[0]: "LD-000000099"} })
		require.NotContains(t, d.Faults(), cloud.DevContentsMismatch, "the opening runs")
		d.Tell(wire.KindOpeningSettled, settlement(o.OpeningID, "PK-2", o.Doors[0]))
		tellContents(d, func(s *wire.Status) { s.Contents = map[uint]string{door: ref, o.Doors[0]: ref2} })
		require.Empty(t, d.Faults())

		// Reserved and empty is no difference.
		create(w, "R-3", d.Code, "PK-3")
		tellContents(d, func(s *wire.Status) { s.Contents = map[uint]string{door: ref, o.Doors[0]: ref2} })
		require.Empty(t, d.Faults())
		tellContents(d, func(s *wire.Status) { s.Contents = map[uint]string{door: ref} })
		require.Contains(t, d.Faults(), cloud.DevContentsMismatch, "this one is")
	})
}

// A parcel may lie unverified in one compartment while another is reserved for the
// next try: that one is empty for both, and was taken for one that holds it.
func TestAReservationBesideAnUnverifiedDepositIsNoDifference(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		confirm(w, d)
		ref := create(w, "R-1", d.Code, "PK-1").DeliveryNumber
		o := startOpening(w, d, "R-1")
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
		d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: o.OpeningID, Reason: wire.EndDepositUnverified})
		d.Contents[o.Doors[0]] = ref
		tellContents(d, nil)
		require.Empty(t, d.Faults())
		next := cell(w, d, 2)
		require.NoError(t, w.Store.Decide(t.Context(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
			x, err := v.DeliveryByNumber(ref)
			next.State, next.DeliveryID, x.Packages[0].GridID = cloud.GridReserved, x.ID, next.GridID
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{x}, Compartments: []cloud.Compartment{next}}}, err
		}))
		tellContents(d, nil)
		require.Empty(t, d.Faults(), "door 2 is reserved and empty")
		delete(d.Contents, o.Doors[0])
		tellContents(d, nil)
		require.Contains(t, d.Faults()[cloud.DevContentsMismatch].Detail, "door 1: cabinet empty")
	})
}

// The cabinet holds a parcel that left by its own record: its view is old, and a
// clear command brings it up to date.
func TestGhostOfACollectedParcelIsCleared(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		d.Tell(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: ref, OpeningID: "op_1", Doors: []uint{door}, How: "keypad", ListNumber: d.List})
		tellContents(d, func(s *wire.Status) { s.Doors[door-1].Item = wire.ItemPresent })
		require.Equal(t, "door 1: cabinet "+ref+", cloud empty", d.Faults()[cloud.DevContentsMismatch].Detail)
		require.Empty(t, d.Cmds, "a sensor sees something inside")

		tellContents(d, nil)
		var body wire.DoorReason
		c := d.Command(&body)
		require.Equal(t, []any{wire.CmdClear, door, cell(w, d, door).Version}, []any{c.Kind, body.Door, c.Versions[door]})
		require.True(t, cell(w, d, door).OutOfUse())
		for range 3 {
			tellContents(d, nil)
		}
		d.Versions[door] = c.Versions[door]
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: c.CommandID, Outcome: wire.OutcomeRefused, Reason: "busy"})
		drain(d)
		tellContents(d, nil)
		require.Empty(t, d.Cmds, "sent once: the rest is for staff")
		delete(d.Contents, door)
		tellContents(d, nil)
		require.Empty(t, d.Faults())
		require.Equal(t, cloud.GridFree, cell(w, d, door).State)
		require.Nil(t, cell(w, d, door).Dispute)
	})
}

// An expired clear command is sent anew.
func TestClearThatExpiredIsSentAgain(t *testing.T) {
	ring.SkipUnlessFull(t, "commands that expire are tested without 25 hours of simulated time")
	if testing.Short() {
		t.Skip("the race detector's own library crashes on 25 hours of simulated time")
	}
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		d.Tell(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: ref, OpeningID: "op_1", Doors: []uint{door}, How: "keypad", ListNumber: d.List})
		tellContents(d, nil)
		var body wire.DoorReason
		first := d.Command(&body)
		d.Drop()
		time.Sleep(25 * time.Hour)
		d = w.Connect(d.Code, d.Memory)
		d.Greet(nil)
		require.NotEqual(t, first.CommandID, d.Command(&body).CommandID)
		require.Equal(t, door, body.Door)
	})
}

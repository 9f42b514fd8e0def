package device_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

type topicLeaf = topic.Leaf

func create(w *devicetest.World, ref, code string, packages ...string) locker.DeliveryBody {
	w.T.Helper()
	in := locker.CreateInput{ReferenceNumber: ref, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}}
	for _, d := range w.Box.Devices {
		if d.DeviceCode == code {
			in.DeviceID = d.DeviceID
		}
	}
	for _, p := range packages {
		in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: p, Size: "M"})
	}
	out, err := w.Lockers.Create(context.Background(), w.Box.ProviderCaller, in)
	require.NoError(w.T, err)
	return out.Delivery
}

// opened is a remote opening that the cabinet has begun.
type opened struct {
	wire.OpenDoors
	CommandID string
}

// startOpening asks for a delivery's doors, and has the device begin.
func startOpening(w *devicetest.World, d *devicetest.Device, ref string) opened {
	w.T.Helper()
	zero := 0
	_, err := w.Lockers.OpenDoors(context.Background(), w.Box.ProviderCaller, locker.OpenInput{Delivery: locker.DeliveryKey("ref:" + ref), WaitSeconds: &zero})
	require.NoError(w.T, err)
	var o opened
	o.CommandID = d.Command(&o.OpenDoors).CommandID
	d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: o.OpeningID, Kind: o.Kind, Doors: o.Doors, CommandID: o.CommandID, Who: "remote"})
	return o
}

func settlement(opening, ref string, door uint) wire.OpeningSettled {
	now := time.Now().UnixNano()
	return wire.OpeningSettled{OpeningID: opening, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: door, OpenedAt: now - 5e9, ClosedAt: now - 2e9}},
		Packages: []wire.SettledPackage{{Ref: ref, Door: door, Outcome: wire.Deposited}}}
}

// present is what the locker rules derived for a device so far.
func present(w *devicetest.World, d *devicetest.Device) (out []any) {
	w.T.Helper()
	w.Look(func(v cloud.View) error {
		cells, err := v.Compartments(d.ID)
		if err != nil {
			return err
		}
		running, err := v.RunningOpenings(d.ID)
		if err != nil {
			return err
		}
		commands, err := v.OpenCommands(d.ID)
		if err != nil {
			return err
		}
		delivery, err := v.DeliveryByReference(w.Box.ProviderCaller.Provider.ID, "R-1")
		out = []any{cells, running, commands, delivery}
		return err
	})
	return out
}

// An event id comes from device, kind, boot and mono, so that a record that was
// carried into another epoch makes no second event, and ends nothing twice.
func TestRecordsCarriedIntoAnotherEpochChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		create(w, "R-1", "CAB-1", "PK-1")
		o := startOpening(w, d, "R-1")
		old := d.Epoch
		records := []wire.Raw{
			d.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: o.OpeningID, Kind: o.Kind, Doors: o.Doors, CommandID: o.CommandID, Who: "remote"}),
			d.Record(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone}),
			d.Record(wire.KindOpeningSettled, settlement(o.OpeningID, "PK-1", o.Doors[0])),
		}
		d.Send(0, records...)
		d.Ack()
		shot := func() []any {
			timeline, err := w.Store.FindTimeline(t.Context(), "PK-1", nil)
			events := timeline.Events
			require.NoError(t, err)
			require.Len(t, events, 2)
			_, outbox, err := w.Store.ListOutbox(t.Context(), cloud.OutboxFilter{ProviderID: w.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
			require.NoError(t, err)
			var names []string
			for _, r := range outbox {
				names = append(names, r.Event.Event)
			}
			return append(present(w, d), events, names)
		}
		before := shot()
		d.NewEpoch(devicetest.EpochOf(100), &old)
		d.Send(0, append([]wire.Raw{d.Record(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreRolledBack})}, records...)...)
		require.EqualValues(t, 5, d.Ack().Next)
		require.Equal(t, before, shot())
		require.Empty(t, d.Faults())
	})
}

func TestCommandIsSentAgainUntilItIsAcceptedAndNeverAfterItsExpiry(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		create(w, "R-1", "CAB-1", "PK-1")
		zero := 0
		ask := func() {
			_, err := w.Lockers.OpenDoors(context.Background(), w.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &zero})
			require.NoError(t, err)
		}
		state := func(id string) (s cloud.CommandState) {
			w.Look(func(v cloud.View) error { c, err := v.Command(id); s = c.State; return err })
			return s
		}
		began := time.Now()
		ask()
		var b wire.OpenDoors
		c := d.Command(&b)
		require.Equal(t, time.Duration(c.ExpiresAt-c.IssuedAt), 20*time.Second)
		require.Less(t, time.Since(began), time.Second)
		synctest.Wait()
		require.Equal(t, cloud.CommandSent, state(c.CommandID))
		require.Equal(t, c.CommandID, d.Command(&b).CommandID)
		require.InDelta(t, 5, time.Since(began).Seconds(), 1.1)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(d.Cmds), 3, "not after its 20 s")
		require.Equal(t, cloud.CommandExpired, state(c.CommandID))
		for len(d.Cmds) > 0 {
			<-d.Cmds
		}

		ask()
		o := d.Command(&b)
		d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: b.OpeningID, Kind: b.Kind, Doors: b.Doors, CommandID: o.CommandID})
		time.Sleep(12 * time.Second)
		require.Empty(t, d.Cmds, "not again once it is accepted")
		again := w.Connect("CAB-1", d.Memory)
		again.Greet(nil)
		require.Equal(t, o.CommandID, again.Command(&b).CommandID, "but after a reconnect, until its outcome")
		again.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
		third := w.Connect("CAB-1", again.Memory)
		third.Greet(nil)
		synctest.Wait()
		require.Empty(t, third.Cmds)

		// A late outcome overrides the cloud's own word.
		third.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: c.CommandID, Outcome: wire.OutcomeFailed})
		require.Equal(t, cloud.CommandFailed, state(c.CommandID))
	})
}

// Staff block, unblock and clear compartments one after the other while the cabinet answers nothing:
// no order waits for another, they come in the order in which they were given, and each is sent
// again until the cabinet accepts it.
func TestOrdersDoNotWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx, began := context.Background(), time.Now()
		var grids []cloud.GridID
		w.Look(func(v cloud.View) error {
			cells, err := v.Compartments(d.ID)
			for _, c := range cells {
				grids = append(grids, c.GridID)
			}
			return err
		})
		var want, got []string
		for range 4 {
			for _, g := range grids {
				_, err := w.Lockers.Block(ctx, w.Box.AdminCaller, locker.BlockInput{Device: d.ID, Grid: g, Reason: "test"})
				require.NoError(t, err)
				_, err = w.Lockers.Unblock(ctx, w.Box.AdminCaller, locker.UnblockInput{Device: d.ID, Grid: g})
				require.NoError(t, err)
				want = append(want, string(wire.CmdBlock), string(wire.CmdUnblock))
			}
		}
		ids, versions := map[string]int{}, map[uint]uint64{}
		for range want {
			var b wire.DoorReason
			c := d.Command(&b)
			got = append(got, string(c.Kind))
			ids[c.CommandID]++
			require.Greater(t, c.Versions[b.Door], versions[b.Door], "an older order would be refused as overtaken")
			versions[b.Door] = c.Versions[b.Door]
		}
		require.Equal(t, want, got)
		require.Len(t, ids, len(want))
		require.Less(t, time.Since(began), time.Second)
		for range want {
			var b wire.DoorReason
			ids[d.Command(&b).CommandID]++
		}
		require.InDelta(t, 5, time.Since(began).Seconds(), 1.1)
		for id, n := range ids {
			require.Equal(t, 2, n, id)
		}
	})
}

func TestCodeListTailWholeListAndAgainUntilConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		first := create(w, "R-1", "CAB-1", "PK-1")
		c := devicetest.Wait(t, "codes", d.Codes)
		require.EqualValues(t, 0, c.From)
		require.EqualValues(t, 2, c.To)
		require.Len(t, c.Entries, 2)
		for _, e := range c.Entries {
			require.Equal(t, first.DeliveryNumber, e.DeliveryRef)
			require.Len(t, e.Verifier, 32)
		}
		began := time.Now()
		require.Equal(t, c, devicetest.Wait(t, "codes again", d.Codes))
		require.InDelta(t, 5, time.Since(began).Seconds(), 1.1)
		d.List = 2
		d.Status(nil)
		synctest.Wait()
		for len(d.Codes) > 0 {
			<-d.Codes
		}
		time.Sleep(30 * time.Second)
		require.Empty(t, d.Codes, "confirmed")

		create(w, "R-2", "CAB-1", "PK-2")
		c = devicetest.Wait(t, "tail", d.Codes)
		require.EqualValues(t, 2, c.From)
		require.EqualValues(t, 4, c.To)
		d.List = 4
		d.Status(nil)
		synctest.Wait()
		for len(d.Codes) > 0 {
			<-d.Codes
		}
		_, err := w.Lockers.Cancel(context.Background(), w.Box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-1"})
		require.NoError(t, err)
		c = devicetest.Wait(t, "revocations", d.Codes)
		require.EqualValues(t, 4, c.From)
		require.Len(t, c.Entries, 2)
		require.Equal(t, wire.CodeRevoke, c.Entries[0].Op)

		fresh := w.Connect("CAB-1", nil) // a new store
		fresh.Greet(nil)
		c = devicetest.Wait(t, "the whole list", fresh.Codes)
		require.EqualValues(t, 0, c.From)
		require.EqualValues(t, 6, c.To)
		for _, e := range c.Entries {
			if e.Op == wire.CodeSet {
				require.NotEqual(t, first.DeliveryNumber, e.DeliveryRef, "entries go when the delivery has ended")
			}
		}
		ahead := w.Connect("CAB-1", fresh.Memory)
		ahead.List = 99
		ahead.Greet(nil)
		require.EqualValues(t, 0, devicetest.Wait(t, "the whole list", ahead.Codes).From, "a number the cloud never gave")
	})
}

// A long tail made a message over the payload limit: the device refused it, and
// never had another code.
func TestLongCodeListComesInPiecesUnderThePayloadLimit(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		require.NoError(t, w.Store.Decide(context.Background(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
			row, err := v.Device(d.ID)
			ch := &cloud.Changes{}
			for range 900 {
				row.CodeList++
				ch.Codes = append(ch.Codes, cloud.CodeRow{DeviceID: d.ID, CreatedAt: time.Now(), Entry: wire.CodeEntry{Number: row.CodeList, Op: wire.CodeSet, Kind: wire.CodePickup,
					Verifier: make([]byte, 32), DeliveryRef: "LD-000000001", Doors: []uint{1}, Packages: map[uint][]string{1: {strings.Repeat("P", 64), strings.Repeat("Q", 64), strings.Repeat("R", 64)}}}})
			}
			ch.Devices = []cloud.Device{row}
			return ch, err
		}))
		got := uint64(0)
		for pieces := 0; got < 900; pieces++ {
			c := devicetest.Wait(t, "piece", d.Codes) // Device refuses what is over the limit
			if c.From != got {
				continue // one that was sent again
			}
			for i, e := range c.Entries {
				require.Equal(t, got+1+uint64(i), e.Number)
			}
			require.Equal(t, got+uint64(len(c.Entries)), c.To)
			got, d.List = c.To, c.To
			d.Status(nil)
			require.Less(t, pieces, 20)
		}
	})
}

func setConfig(w *devicetest.World, d *devicetest.Device, version uint64) {
	w.T.Helper()
	require.NoError(w.T, w.Store.Decide(context.Background(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
		row, err := v.Device(d.ID)
		if err != nil {
			return nil, err
		}
		var c wire.Config
		if err := wire.Decode(row.Config, &c); err != nil {
			return nil, err
		}
		c.Version, row.ConfigVersion = version, version
		row.Config = wire.MustEncode(c)
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{row}}}, nil
	}))
}

func TestConfigurationIsSentOnlyWhenNewer(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Applied = 0
		d.Status(nil)
		require.EqualValues(t, 1, devicetest.Wait(t, "configuration of one that has none", d.Config).Version)
		d.Applied = 1
		d.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: 1, Result: "ok"})
		d.Status(nil)
		synctest.Wait()
		require.Empty(t, d.Config)

		setConfig(w, d, 2)
		require.EqualValues(t, 2, devicetest.Wait(t, "new version, at once", d.Config).Version)
		d.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: 2, Result: "layout moves an open compartment"})
		w.Look(func(v cloud.View) error {
			row, err := v.Device(d.ID)
			require.EqualValues(t, 1, row.Applied)
			return err
		})
		rows, err := w.Store.ListAudits(t.Context(), w.Box.ProviderCaller.Provider.BusinessID, 0, 10)
		require.NoError(t, err)
		told := false
		for _, r := range rows {
			told = told || r.Action == "config_not_applied" && r.Target == "2" && strings.Contains(r.Detail, "moves an open compartment")
		}
		require.True(t, told, "operators are told")
		for range 20 { // a device that will not have it sends five statuses a second
			d.Status(nil)
			time.Sleep(200 * time.Millisecond)
		}
		require.LessOrEqual(t, len(d.Config), 1)
		for len(d.Config) > 0 {
			<-d.Config
		}
		again := w.Connect("CAB-1", d.Memory)
		again.Greet(nil)
		require.EqualValues(t, 2, devicetest.Wait(t, "the retained copy or the current version", again.Config).Version)
	})
}

package device_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/wire"
)

// bubble runs a story in simulated time, over a server and a connected CAB-1.
func bubble(t *testing.T, story func(t *testing.T, w *devicetest.World, d *devicetest.Device)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := devicetest.New(t, nil)
		defer w.Stop()
		d := w.Connect("CAB-1", nil)
		d.Greet(nil)
		story(t, w, d)
	})
}

// scans are n records that lead to nothing.
func scans(d *devicetest.Device, n int) []wire.Raw {
	out := make([]wire.Raw, n)
	for i := range out {
		out[i] = d.Record(wire.KindScan, wire.Scan{Raw: []byte{byte(i)}})
	}
	return out
}

func quiet(t *testing.T, d *devicetest.Device) {
	t.Helper()
	synctest.Wait()
	require.Empty(t, d.Acks, "no more receipts")
}

func TestUndecodableBatchIsRefusedByNameWithReasonSizeAndHash(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		d.Send(1, scans(d, 2)...)
		require.EqualValues(t, 3, d.Ack().Next)
		good := wire.MustEncode(d.Batch(1, scans(d, 3)...))
		bad := good[:len(good)-1]
		d.Up(bad)
		a := d.Ack()
		require.Equal(t, wire.RefusedBadBatch, a.Refused)
		require.EqualValues(t, 3, a.RefusedFirst)
		require.EqualValues(t, 3, a.Next, "nothing of it is stored")
		require.EqualValues(t, 1, *a.Credit, "credit falls to 1")
		f := d.Faults()[cloud.DevBadBatch]
		require.Contains(t, f.Detail, fmt.Sprintf("%d bytes, SHA-256 %x", len(bad), sha256.Sum256(bad)))
		require.Contains(t, f.Detail, "unexpected EOF")
		d.Up(good)
		a = d.Ack()
		require.EqualValues(t, 6, a.Next)
		require.Nil(t, a.Credit, "and rises with the next good one")
	})
}

// The name of a batch that breaks a limit was read by decoding all of it once
// more, which failed as well: the receipt named epoch 0, the agent took it for
// another agent's and sent the same batch for ever.
func TestBatchOverALimitIsRefusedByName(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		for name, b := range map[string]wire.Batch{
			"1,025 records":  d.Batch(1, scans(d, 1025)...),
			"over 128 KiB":   {Version: 1, Epoch: d.Epoch, Lane: 1, First: 1, Records: bytesOf(d, 9, 15<<10)},
			"too deep":       {Version: 1, Epoch: d.Epoch, Lane: 1, First: 1, Records: []wire.Raw{{0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x00}}},
			"16 KiB records": {Version: 1, Epoch: d.Epoch, Lane: 1, First: 1, Records: bytesOf(d, 1, 17<<10)},
		} {
			d.Up(wire.MustEncode(b))
			a := d.Ack()
			require.Equal(t, wire.RefusedBadBatch, a.Refused, name)
			require.Equal(t, d.Epoch, a.Epoch, name)
			require.EqualValues(t, 1, a.Lane, name)
			require.EqualValues(t, 1, a.RefusedFirst, name)
		}
	})
}

func bytesOf(d *devicetest.Device, n, size int) []wire.Raw {
	var out []wire.Raw
	for range n {
		out = append(out, d.Record(wire.KindScan, wire.Scan{Raw: bytes.Repeat([]byte{1}, size)}))
	}
	return out
}

func TestRecordWithAnUnreadableBodyIsStoredAndDerivesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Send(0, d.Record(wire.KindOpeningStarted, "not a map"), wire.Raw{0x01},
			d.Record(wire.KindExceptionOpened, wire.Exception{ID: "x1", Type: wire.ExItemMissing, Severity: "low", Door: 1}))
		require.EqualValues(t, 4, d.Ack().Next)
		require.EqualValues(t, 2, d.Faults()[cloud.DevBadBatch].Count)
		w.Look(func(v cloud.View) error {
			e, err := v.ExceptionBySource(d.ID, "x1")
			require.Equal(t, "open", e.Status, "the sound record beside it counts")
			return err
		})
		stats, err := w.Store.JournalStats(t.Context(), d.ID)
		require.NoError(t, err)
		require.EqualValues(t, 3, stats.Records)
	})
}

func TestBatchOfAnotherDevicesEpochIsAnEpochConflict(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindTamper, wire.Tamper{What: wire.TamperDoorForced})
		other := w.Connect("CAB-2", nil)
		other.Greet(nil)
		other.NewEpoch(d.Epoch, nil)
		for _, first := range []uint64{1, 2} {
			other.Next[0] = first
			other.Send(0, other.Record(wire.KindTamper, wire.Tamper{What: wire.TamperDoorForced}))
			a := other.Ack()
			require.Equal(t, wire.RefusedEpochConflict, a.Refused)
			require.Equal(t, d.Epoch, a.Epoch)
			require.Equal(t, first, a.RefusedFirst)
		}
		require.Contains(t, other.Faults(), cloud.DevEpochConflict)
		require.Empty(t, d.Faults(), "the one whose epoch it is has nothing to do with it")
		require.EqualValues(t, 3, d.Tell(wire.KindTamper, wire.Tamper{What: wire.TamperDoorForced}).Next)
	})
}

// What belongs to another device, or to another business, is stored as it came
// and leads to nothing.
func TestForeignReferencesAreStoredAndDeriveNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		del := create(w, "R-1", "CAB-1", "PK-1")
		open := startOpening(w, d, "R-1")
		other := w.Connect("CAB-2", nil)
		other.Greet(nil)
		before := present(w, d)
		for name, record := range map[string]wire.Raw{
			"opening, started again":   other.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: open.OpeningID, Kind: wire.OpenDeposit, Doors: []uint{1}}),
			"opening, settled":         other.Record(wire.KindOpeningSettled, settlement(open.OpeningID, "PK-1", open.Doors[0])),
			"opening, ended":           other.Record(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: open.OpeningID, Reason: wire.EndCancelled}),
			"opening nobody knows":     other.Record(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: "op_none", Reason: wire.EndCancelled}),
			"delivery, local opening":  other.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{1}, CommandID: "local", DeliveryRef: del.DeliveryNumber}),
			"delivery, picked up":      other.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: del.DeliveryNumber, OpeningID: "op_p", Doors: []uint{1}}),
			"delivery nobody knows":    other.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: "LD-9", OpeningID: "op_p", Doors: []uint{1}}),
			"door that does not exist": other.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_d", Kind: wire.OpenStaff, Doors: []uint{99}, CommandID: "local"}),
			"command":                  other.Record(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: open.CommandID, Outcome: wire.OutcomeDone}),
			"exception":                other.Record(wire.KindExceptionClosed, wire.Exception{ID: "x1", Type: wire.ExItemMissing}),
			"subject":                  other.Record(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-none", StatusCode: "in_transit"}),
		} {
			fault := cloud.DevForeignReference
			if name == "subject" {
				fault = cloud.DevUnknownLabel
			}
			count := other.Faults()[fault].Count
			other.Send(0, record)
			require.Equal(t, other.Next[0], other.Ack().Next, name)
			require.Equal(t, count+1, other.Faults()[fault].Count, name)
			require.Equal(t, before, present(w, d), name)
		}
	})
}

// A door edge for a door that is in no layout named a compartment that is not
// there; the store refused the whole transaction, so the batch was never
// acknowledged and its lane stood still for ever.
func TestDoorEdgeOfADoorThatDoesNotExistHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		d.Send(1, d.Record(wire.KindDoorOpened, wire.DoorOpened{Door: 99}), d.Record(wire.KindDoorClosed, wire.DoorClosed{Door: 99}),
			d.Record(wire.KindDoorOpened, wire.DoorOpened{Door: 1}))
		require.EqualValues(t, 4, d.Ack().Next)
		require.EqualValues(t, 2, d.Faults()[cloud.DevForeignReference].Count)
	})
}

// An opening of no doors, and then two ends of it: the second made the decision
// panic, and with it every batch that held it.
func TestOpeningWithoutDoorsIsABadBody(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		del := create(w, "R-1", "CAB-1", "PK-1")
		d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_0", Kind: wire.OpenDeposit, CommandID: "local", DeliveryRef: del.DeliveryNumber})
		for range 2 {
			d.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: "op_0", ConfirmedBy: wire.ByDoorClose, Packages: []wire.SettledPackage{{Ref: "PK-1", Door: 1, Outcome: wire.Unverified}}})
		}
		d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: "op_0", Reason: wire.EndCancelled})
		require.EqualValues(t, 1, d.Faults()[cloud.DevBadBatch].Count)
	})
}

// Any word counted as the outcome of a command, and as its state.
func TestOutcomeThatIsNoneIsABadBody(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		create(w, "R-1", "CAB-1", "PK-1")
		open := startOpening(w, d, "R-1")
		for _, outcome := range []string{"sent", "queued", "accepted", "perhaps", ""} {
			d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: open.CommandID, Outcome: outcome})
		}
		require.EqualValues(t, 5, d.Faults()[cloud.DevBadBatch].Count)
		w.Look(func(v cloud.View) error {
			c, err := v.Command(open.CommandID)
			require.Equal(t, cloud.CommandAccepted, c.State)
			return err
		})
	})
}

func TestHoleIsAnsweredWithWhereToGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		for l := range wire.Lane(wire.Lanes) {
			kind := wire.KindTamper
			if l == 1 {
				kind = wire.KindScan
			}
			d.Send(l, d.Record(kind, wire.Tamper{What: "x"}))
			first := d.Ack()
			require.EqualValues(t, 2, first.Next)
			lost := d.Batch(l, d.Record(kind, wire.Tamper{What: "x"}), d.Record(kind, wire.Tamper{What: "x"}))
			after := d.Send(l, d.Record(kind, wire.Tamper{What: "x"}))
			a := d.Ack()
			require.EqualValues(t, 2, a.Next, "the old next")
			require.EqualValues(t, 2, a.ResendFrom)
			require.Equal(t, first.Head, a.Head)
			require.Empty(t, a.Refused)
			d.Up(wire.MustEncode(lost))
			require.EqualValues(t, 4, d.Ack().Next, "nothing behind the hole was stored")
			d.Up(wire.MustEncode(after))
			require.EqualValues(t, 5, d.Ack().Next)
		}
		require.Empty(t, d.Faults())

		d.NewEpoch(devicetest.EpochOf(200), &d.Epoch)
		d.Next[0] = 7
		d.Send(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))
		a := d.Ack()
		require.EqualValues(t, 1, a.Next, "an epoch that nobody has heard the beginning of")
		require.EqualValues(t, 1, a.ResendFrom)
		w.Look(func(v cloud.View) error {
			_, err := v.FindEpoch(d.Epoch)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			return nil
		})
	})
}

func TestRecordOfUnknownKindIsKeptAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Send(1, d.Record(40, wire.Tamper{What: "of a newer agent"}))
		require.EqualValues(t, 2, d.Ack().Next)
		require.Empty(t, d.Faults())
		require.EqualValues(t, 1, w.Devices.Metrics.Unknown.Load())
		stats, err := w.Store.JournalStats(t.Context(), d.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, stats.Records)
	})
}

func TestForeignTopicClosesAndIsAudited(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Publish("tms/device/CAB-2/up", wire.MustEncode(d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))))
		devicetest.Wait(t, "end of the connection", d.Closed)
		synctest.Wait()
		rows, err := w.Store.ListAudits(t.Context(), 0, 0, 10)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, "mqtt:dev-CAB-1", rows[0].Actor)
		require.Equal(t, "foreign_topic", rows[0].Action)
		require.Equal(t, "tms/device/CAB-2/up", rows[0].Target)
		require.False(t, d.Online())
	})
}

// A repeat is compared, never only skipped.
func TestRepeatedRangeIsComparedAndADifferentOneIsAFork(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		one, two, three := scans(d, 2), scans(d, 2), scans(d, 1)
		a := d.Batch(1, one...)
		b := d.Batch(1, append(append([]wire.Raw{}, two...), three...)...)
		d.Up(wire.MustEncode(a))
		d.Ack()
		d.Up(wire.MustEncode(b))
		stored := d.Ack()
		require.EqualValues(t, 6, stored.Next)
		for _, again := range []wire.Batch{a, b, overlapping(d, 2, one[1], two[0], two[1])} {
			d.Up(wire.MustEncode(again))
			require.Equal(t, stored, d.Ack(), "nothing new, answered with where it stands")
		}
		// A range that ends later than what is stored brings its new part.
		more := d.Record(wire.KindScan, wire.Scan{Raw: []byte("new")})
		longer := overlapping(d, 4, two[1], three[0], more)
		longer.Head = stored.Head.Next(more)
		d.Up(wire.MustEncode(longer))
		require.EqualValues(t, 7, d.Ack().Next)

		changed := overlapping(d, 2, one[1], scans(d, 1)[0], two[1])
		d.Up(wire.MustEncode(changed))
		f := d.Ack()
		require.Equal(t, wire.RefusedFork, f.Refused)
		require.EqualValues(t, 2, f.RefusedFirst)
		require.Contains(t, d.Faults(), cloud.DevStoreFork)
		aside, err := w.Store.ListAsides(t.Context(), d.ID, 0, 10)
		require.NoError(t, err)
		require.Len(t, aside, 1)
		require.Equal(t, wire.MustEncode(changed), aside[0].Bytes, "kept as evidence")
		stats, err := w.Store.JournalStats(t.Context(), d.ID)
		require.NoError(t, err)
		require.EqualValues(t, 6, stats.Records, "each record once")
	})
}

func overlapping(d *devicetest.Device, first uint64, records ...wire.Raw) wire.Batch {
	return wire.Batch{Version: 1, Epoch: d.Epoch, Lane: 1, First: first, Records: records, Head: d.Head[1], Sent: wire.Sample{Boot: d.Boot}}
}

func TestChainThatDiffersIsAFork(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindScan, wire.Scan{})
		d.Head[1][0] ^= 1 // a copied store went another way
		b := d.Send(1, scans(d, 1)...)
		a := d.Ack()
		require.Equal(t, wire.RefusedFork, a.Refused)
		require.Equal(t, b.First, a.RefusedFirst)
		require.Contains(t, d.Faults()[cloud.DevStoreFork].Detail, "the chain differs")
	})
}

func TestStatusOfAStoreThatEndsTooEarlyOrElsewhereIsAFork(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		last := d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		f := func(name string, forked bool, end wire.LaneEnd) {
			t.Helper()
			c := w.Connect("CAB-1", d.Memory)
			c.Status(func(s *wire.Status) { s.Ends[0] = end })
			a := c.Ack()
			require.Equal(t, forked, a.Refused == wire.RefusedFork, name)
			require.Equal(t, last.Head, a.Head, "the agent finds the fork by the head as well")
			c.Drop()
		}
		f("as the cloud knows it", false, wire.LaneEnd{Last: 2, Head: last.Head})
		f("further on", false, wire.LaneEnd{Last: 5, Head: wire.Head{9}})
		f("rolled back", true, wire.LaneEnd{Last: 1, Head: wire.Head{9}})
		f("empty", true, wire.LaneEnd{})
		f("same length, other content", true, wire.LaneEnd{Last: 2, Head: wire.Head{9}})
		require.Contains(t, d.Faults(), cloud.DevStoreFork)
	})
}

func TestEpochs(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		start := func(prev wire.Epoch) wire.Raw {
			return d.Record(wire.KindGap, wire.Gap{Epoch: prev, Reason: wire.GapStoreRolledBack})
		}
		d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		old, memory := *d.Memory, *d.Memory
		d.Memory = &memory
		d.NewEpoch(devicetest.EpochOf(100), &old.Epoch)
		d.Send(0, start(old.Epoch))
		require.EqualValues(t, 2, d.Ack().Next)
		require.Empty(t, d.Faults(), "a new epoch that names the current one is no fork")

		d.Memory = &old
		d.Send(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))
		a := d.Ack()
		require.Equal(t, wire.RefusedFork, a.Refused, "a closed epoch goes on")
		require.Contains(t, d.Faults(), cloud.DevStoreFork)
		first := d.Faults()[cloud.DevStoreFork].Count

		closed := d.Epoch
		d.NewEpoch(devicetest.EpochOf(101), &closed)
		d.Send(0, start(closed))
		require.EqualValues(t, 2, d.Ack().Next, "taken")
		require.Equal(t, first+1, d.Faults()[cloud.DevStoreFork].Count, "and a fork: it replaces an epoch that was closed")

		d.NewEpoch(devicetest.EpochOf(102), nil)
		d.Send(1, scans(d, 1)...)
		require.EqualValues(t, 2, d.Ack().Next, "a new store may begin with lane 1, and know of none before")
		require.Equal(t, first+1, d.Faults()[cloud.DevStoreFork].Count)
	})
}

func gap(d *devicetest.Device, first, last uint64, head *wire.Head) wire.Raw {
	return d.Record(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 1, First: first, Last: last, Reason: wire.GapEvicted, HeadAfter: head})
}

// skip moves lane 1 past records that are never sent, and gives the head after.
func skip(d *devicetest.Device, n int) *wire.Head {
	d.Batch(1, scans(d, n)...)
	h := d.Head[1]
	return &h
}

func TestJumpInLane1NeedsGapsThatCoverItWithoutAHole(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		h10, h20, h30 := skip(d, 10), skip(d, 10), skip(d, 10)
		b := wire.MustEncode(d.Batch(1, scans(d, 1)...))
		jump := func() wire.Ack { d.Up(b); return d.Ack() }
		require.EqualValues(t, 1, jump().ResendFrom, "no gap")
		d.Tell(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 1, First: 1, Last: 10, Reason: wire.GapEvicted, HeadAfter: h10})
		require.EqualValues(t, 1, jump().ResendFrom, "a gap that ends too early")
		d.Tell(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 1, First: 21, Last: 30, Reason: wire.GapEvicted, HeadAfter: h30})
		require.EqualValues(t, 1, jump().ResendFrom, "gaps with a hole between")
		d.Tell(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 1, First: 11, Last: 20, Reason: wire.GapEvicted, HeadAfter: h20})
		require.EqualValues(t, 32, jump().Next, "covered, going on from the last gap's head")
		stats, err := w.Store.JournalStats(t.Context(), d.ID)
		require.NoError(t, err)
		require.EqualValues(t, 30, stats.Missing)
		require.Empty(t, d.Faults())
	})
}

func TestLane0NeverJumps(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		d.Send(0, d.Record(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 0, First: 2, Last: 5, Reason: wire.GapEvicted, HeadAfter: &wire.Head{1}}))
		require.EqualValues(t, 2, d.Ack().Next)
		d.Next[0], d.Head[0] = 6, wire.Head{1}
		d.Send(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))
		require.EqualValues(t, 2, d.Ack().ResendFrom)
	})
}

// The cloud may hold part of a named range: what is missing is what it lacks.
func TestGapThatIsPartlyHeld(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Send(1, scans(d, 4)...)
		require.EqualValues(t, 5, d.Ack().Next)
		h := skip(d, 6)
		g := gap(d, 1, 10, h)
		d.Send(0, g)
		require.EqualValues(t, 2, d.Ack().Next)
		missing := func() int64 {
			stats, err := w.Store.JournalStats(t.Context(), d.ID)
			require.NoError(t, err)
			return stats.Missing
		}
		require.EqualValues(t, 6, missing())
		d.Send(1, scans(d, 1)...)
		require.EqualValues(t, 12, d.Ack().Next)

		// Carried into another epoch, the same record came when the lane had
		// moved across the gap: nothing seemed to be missing any more.
		old := d.Epoch
		d.NewEpoch(devicetest.EpochOf(100), &old)
		d.Send(0, d.Record(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreRolledBack}), g)
		require.EqualValues(t, 3, d.Ack().Next)
		require.EqualValues(t, 6, missing())
	})
}

func TestDuplicateIdentityIsAThenBThenA(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		as := func(instance byte, after time.Duration) {
			time.Sleep(after)
			m := *d.Memory
			m.Instance = []byte{instance}
			c := w.Connect("CAB-1", &m)
			c.Greet(nil)
			c.Drop()
		}
		as(50, 0)
		as(50, time.Second)
		as(51, time.Second)
		as(52, time.Second)
		require.Empty(t, d.Faults(), "restarts, and one takeover each")
		as(51, 11*time.Minute)
		require.Empty(t, d.Faults(), "not within ten minutes")
		as(53, time.Minute)
		as(51, time.Minute)
		require.Contains(t, d.Faults(), cloud.DevDuplicateIdentity)
	})
}

func TestSessionThatWasTakenOverCountsForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		require.True(t, d.Online())
		newer := w.Connect("CAB-1", d.Memory)
		devicetest.Wait(t, "end of the older", d.Closed) // with its last will
		synctest.Wait()
		newer.Greet(nil)
		require.True(t, newer.Online())
		w.Devices.Disconnected(context.Background(), "CAB-1", 1)
		w.Devices.Receive("CAB-1", 1, "status", wire.MustEncode(wire.Status{State: wire.Offline, Epoch: d.Epoch}))
		w.Devices.Receive("CAB-1", 1, "up", wire.MustEncode(d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))))
		synctest.Wait()
		require.True(t, newer.Online())
		quiet(t, newer)
		newer.Status(func(s *wire.Status) { s.State = wire.Offline })
		synctest.Wait()
		require.False(t, newer.Online(), "its own word counts")
	})
}

// Acks go out at most every 20 ms or 256 records, and at once for a batch that
// brought nothing new.
func TestReceiptsAreGatheredForTwentyMillisecondsOr256Records(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		began := time.Now()
		var last wire.Batch
		for range 5 {
			last = d.Send(1, scans(d, 1)...)
			synctest.Wait()
		}
		require.Empty(t, d.Acks)
		require.EqualValues(t, 6, d.Ack().Next)
		require.Equal(t, 20*time.Millisecond, time.Since(began))
		quiet(t, d)

		began = time.Now()
		d.Send(1, scans(d, 255)...)
		synctest.Wait()
		require.Empty(t, d.Acks)
		d.Send(1, scans(d, 1)...)
		require.EqualValues(t, 262, d.Ack().Next)
		require.Zero(t, time.Since(began))

		d.Up(wire.MustEncode(last))
		require.EqualValues(t, 262, d.Ack().Next)
		require.Zero(t, time.Since(began), "a repeat is answered at once")
		time.Sleep(time.Second)
		quiet(t, d)
	})
}

func TestReceiptsForBothLanesAnswerTheFirstStatusOfASession(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		d.Status(nil)
		synctest.Wait()
		quiet(t, d)
		c := w.Connect("CAB-1", d.Memory)
		acks := c.Greet(nil)
		require.EqualValues(t, 2, acks[0].Next)
		require.Equal(t, d.Head[0], acks[0].Head)
		require.EqualValues(t, 1, acks[1].Next)
		require.Equal(t, wire.FirstHead(d.Epoch, 1), acks[1].Head)
		quiet(t, c)
	})
}

func TestTimeAnswersANonceAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		require.Equal(t, "nonce", string(devicetest.Wait(t, "time", d.Times).Nonce))
		d.Status(func(s *wire.Status) { s.Nonce = nil })
		synctest.Wait()
		require.Empty(t, d.Times)
		d.Status(func(s *wire.Status) { s.Nonce = []byte("second") })
		a := devicetest.Wait(t, "time", d.Times)
		require.Equal(t, wire.Time{DeviceCode: "CAB-1", Nonce: []byte("second"), ServerTime: time.Now().UnixNano()}, a)
	})
}

func TestPresenceOfADeviceWhoseNodeDied(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		row := func() (s cloud.Session) {
			w.Look(func(v cloud.View) (err error) { s, err = v.Session(d.ID); return err })
			return s
		}
		put := func(change func(*cloud.Session)) {
			require.NoError(t, w.Store.Decide(context.Background(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
				s, err := v.Session(d.ID)
				change(&s)
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{s}}}, err
			}))
		}
		time.Sleep(10 * time.Minute)
		require.True(t, row().Online, "a connection that only pings is present")

		d.Drop()
		synctest.Wait()
		require.False(t, row().Online, "at once when it ends")

		// The node died with the session: no process was left to say so.
		put(func(s *cloud.Session) { s.Online = true })
		w.Stop()
		w.Start()
		synctest.Wait()
		require.False(t, row().Online, "found at start")

		// The node that it was connected to has no lease any more.
		put(func(s *cloud.Session) { s.Online, s.Node = true, "two" })
		time.Sleep(16 * time.Second)
		require.False(t, row().Online)
	})
}

// A device is online for as long as the process that it is connected to has its lease,
// whatever other processes see of it, and without a write.
func TestSessionsLastAsLongAsTheLeaseOfTheirProcess(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		living := map[string]bool{"two": true, "three": true}
		var mu sync.Mutex
		lives := func(context.Context) (map[string]bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(living), nil
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		w.Stop() // it has the database for itself, and no say about leases
		box, err := seal.New(w.Keys.Seal)
		require.NoError(t, err)
		db, err := store.Open(ctx, store.Config{Dir: w.Copy(), Box: box})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		peers := map[string]*device.Service{}
		for name := range maps.Clone(living) {
			peers[name] = device.New(device.Config{Store: db, Signer: w.Signer, ServerKey: w.Keys.Server, Node: name, Living: lives})
			peers[name].SetSender(nobody{})
		}
		go func() { _ = peers["three"].Run(ctx) }()
		two, end := context.WithCancel(ctx)
		go func() { _ = peers["two"].Run(two) }()
		generation, err := peers["two"].Login(ctx, "CAB-2", w.Box.Devices[1].Secret)
		require.NoError(t, err)
		peers["two"].Receive("CAB-2", generation, "status", wire.MustEncode(wire.Status{State: wire.Online, Epoch: devicetest.EpochOf(9)}))
		synctest.Wait()
		row := func() (row cloud.Session) {
			require.NoError(t, db.Look(ctx, func(v cloud.View) (err error) { row, err = v.Session(w.Box.Devices[1].DeviceID); return err }))
			return row
		}
		began := row()
		require.True(t, began.Online)
		time.Sleep(10 * time.Minute)
		require.Equal(t, began, row(), "node three does not take node two for dead, and nothing was written")
		end()
		synctest.Wait()
		require.True(t, row().Online, "a process that was killed says nothing")
		mu.Lock()
		delete(living, "two")
		mu.Unlock()
		time.Sleep(16 * time.Second)
		require.False(t, row().Online)
		stop()
		synctest.Wait()
	})
}

type nobody struct{}

func (nobody) Send(string, topicLeaf, []byte, bool) error { return nil }
func (nobody) Kick(string)                                {}

func TestLogin(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx := context.Background()
		secret := w.Box.Devices[0].Secret
		g, err := w.Devices.Login(ctx, "CAB-1", secret)
		require.NoError(t, err)
		h, err := w.Devices.LoginCertificate(ctx, "CAB-1", time.Now())
		require.NoError(t, err)
		require.Greater(t, h, g)
		for _, try := range [][2]string{{"CAB-1", ""}, {"CAB-1", secret + "x"}, {"CAB-2", secret}, {"CAB-7", secret}} {
			_, err := w.Devices.Login(ctx, try[0], try[1])
			require.ErrorIs(t, err, device.ErrLogin)
			require.NotContains(t, err.Error(), secret)
		}
		_, err = w.Devices.LoginCertificate(ctx, "CAB-7", time.Now())
		require.ErrorIs(t, err, device.ErrLogin)
		require.NoError(t, w.Store.Decide(ctx, d.ID, func(v cloud.View) (*cloud.Changes, error) {
			row, err := v.Device(d.ID)
			row.Disabled = true
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{row}}}, err
		}))
		_, err = w.Devices.Login(ctx, "CAB-1", secret)
		require.ErrorIs(t, err, device.ErrLogin)
		_, err = w.Devices.LoginCertificate(ctx, "CAB-1", time.Now())
		require.ErrorIs(t, err, device.ErrLogin)
	})
}

func TestEnrolmentWorksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx := context.Background()
		issue := func(made time.Time) string {
			token, row := device.NewToken(d.ID, made)
			require.NoError(t, w.Store.Decide(ctx, d.ID, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Enrolments: []cloud.EnrolmentToken{row}}}, nil
			}))
			return token
		}
		enrol := func(code, token string) (device.Secrets, error) {
			return w.Devices.Enrol(ctx, w.Store, device.Enrolment{Code: code, Token: token}, func(ctx context.Context, d cloud.DeviceID, _ device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
				return w.Store.Decide(ctx, d, decide)
			})
		}
		token := issue(time.Now().UTC())
		for _, try := range [][2]string{{"CAB-2", token}, {"CAB-7", token}, {"CAB-1", "nonsense"}, {"CAB-1", ""}} {
			_, err := enrol(try[0], try[1])
			require.ErrorContains(t, err, "TOKEN_INVALID")
		}
		made, err := enrol("CAB-1", token)
		require.NoError(t, err)
		_, err = w.Devices.Login(ctx, "CAB-1", w.Box.Devices[0].Secret)
		require.ErrorIs(t, err, device.ErrLogin, "the former secret is over")
		_, err = w.Devices.Login(ctx, "CAB-1", made.Secret)
		require.NoError(t, err)
		_, err = enrol("CAB-1", token)
		require.ErrorContains(t, err, "TOKEN_INVALID", "once")
		lost := issue(time.Now().UTC())
		time.Sleep(time.Second)
		found := issue(time.Now().UTC())
		time.Sleep(time.Second)
		_, err = enrol("CAB-1", strings.ToLower(strings.NewReplacer("-", " ", "0", "o", "1", "L").Replace(found)))
		require.NoError(t, err, "as people type it")
		_, err = enrol("CAB-1", lost)
		require.ErrorContains(t, err, "TOKEN_INVALID", "a lost token gives nobody the place of a device that has enrolled")
		late := issue(time.Now().UTC().Add(-device.TokenLife))
		_, err = enrol("CAB-1", late)
		require.ErrorContains(t, err, "TOKEN_INVALID", "24 h")
	})
}

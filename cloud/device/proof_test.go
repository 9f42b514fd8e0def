package device_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// begin starts the device's agent anew, on the same store.
func begin(w *devicetest.World, d *devicetest.Device) *devicetest.Device {
	d.Drop()
	synctest.Wait()
	d.Boot, d.Instance, d.Count = d.Boot+1, []byte{200, byte(d.Boot)}, 0
	return w.Connect(devicetest.Signing, d.Memory)
}

// isHealthy checks that the device's epoch is the current one and works on, and
// that nothing was said against it.
func isHealthy(t *testing.T, w *devicetest.World, d *devicetest.Device) {
	t.Helper()
	refusals, _ := drain(d)
	require.Empty(t, refusals, "a refusal makes a healthy cabinet begin a new epoch")
	require.NotContains(t, d.Faults(), cloud.DevStoreFork)
	require.NotContains(t, d.Faults(), cloud.DevDuplicateIdentity)
	w.Look(func(v cloud.View) error {
		e, err := v.CurrentEpoch(d.ID)
		require.Equal(t, d.Epoch, e.Epoch)
		return err
	})
	d.Status(nil)
	drain(d)
	d.Tell(wire.KindTamper, wire.Tamper{What: "it works on"})
}

// The cloud remembers the last sixteen agents of a device. A recorded status of an
// older one passed for an older copy of the store: a broker could fork a healthy
// device at any time.
func TestRecordsOfAgentsLongForgottenForkNothing(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		var tape []devicetest.Published
		for range cloud.MaxInstances + 4 {
			d.Status(nil)
			drain(d)
			d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
			tape = append(append(tape, d.Published...), d.Will)
			d = begin(w, d)
		}
		d.Status(nil)
		drain(d)
		before := shot(t, w, d)
		for range 3 {
			for _, p := range tape {
				d.Publish(p.Topic, p.Payload)
				synctest.Wait()
				require.Empty(t, d.Codes)
				require.Empty(t, d.Cmds)
			}
			slices.Reverse(tape)
		}
		refusals, _ := drain(d)
		require.Empty(t, refusals)
		require.Equal(t, before, shot(t, w, d))
		isHealthy(t, w, d)
	})
}

// A broker withholds all statuses of a start while its batches pass, and releases
// one later: it is newer than all that the cloud knows, of an unknown agent, and
// ends before what is stored.
func TestAWithheldStatusForksNothing(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d = begin(w, d)
		var withheld [][]byte
		for range 3 {
			d.Count++
			withheld = append(withheld, d.SignStatus(wire.Status{State: wire.Online, Instance: d.Instance, Boot: d.Boot, Count: d.Count, Epoch: d.Epoch, Snapshot: 1,
				Nonce: []byte{byte(d.Count)}, Ends: []wire.LaneEnd{{Last: d.Next[0] - 1, Head: d.Head[0]}, {Last: d.Next[1] - 1, Head: d.Head[1]}}}))
			d.Up(wire.MustEncode(d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))))
			synctest.Wait()
		}
		drain(d)
		for _, p := range withheld {
			d.Publish(topic.Device("tms", d.Code, topic.Status), p)
			synctest.Wait()
		}
		isHealthy(t, w, d)
		// The same after its agent has proven itself: a batch overtakes a status.
		d = begin(w, d)
		d.Boot-- // it has to
		d.Prove(nil)
		drain(d)
		late := d.SignStatus(wire.Status{State: wire.Online, Instance: d.Instance, Boot: d.Boot, Count: d.Count + 1, Epoch: d.Epoch, Snapshot: 1,
			Nonce: []byte("late"), Ends: []wire.LaneEnd{{Last: d.Next[0] - 1, Head: d.Head[0]}, {Last: d.Next[1] - 1, Head: d.Head[1]}}})
		d.Count++
		d.Up(wire.MustEncode(d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "y"}))))
		d.Publish(topic.Device("tms", d.Code, topic.Status), late)
		synctest.Wait()
		isHealthy(t, w, d)
	})
}

// What was recorded in this very session of the broker, challenge and all, proves
// nothing once another agent speaks.
func TestAProofIsOfOneAgentAlone(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		d.Boot, d.Instance = 9, []byte{9}
		d.Status(nil)
		drain(d)
		d.Boot, d.Instance, d.Count = 1, []byte{1, 1}, 0 // a new store, whose starts count from 1
		old := d.Epoch
		d.NewEpoch(devicetest.EpochOf(90), &old)
		d.Prove(nil)
		proof := d.Published[len(d.Published)-1]
		drain(d)
		d.Tell(wire.KindGap, wire.Gap{Reason: wire.GapStoreCreated})
		for i := range cloud.MaxInstances + 1 {
			d.Boot, d.Instance, d.Count = uint64(10+i), []byte{2, byte(i)}, 0
			d.Status(nil)
			drain(d)
		}
		drain(d)
		before := shot(t, w, d)
		d.Publish(proof.Topic, proof.Payload)
		refusals, _ := drain(d)
		require.Empty(t, refusals)
		require.Equal(t, before, shot(t, w, d))
		isHealthy(t, w, d)
	})
}

// An older copy whose agent was started more often than the original still has to
// be found, and is, by its second status.
func TestAnOlderCopyIsFoundWhateverItsStartsCount(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		for i, boot := range []uint64{1, 7, 100} {
			d.Boot, d.Instance, d.Count = 7+uint64(i), []byte{70, byte(i)}, 0
			d.Status(nil)
			drain(d)
			d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
			copied := *d.Memory
			d.Tell(wire.KindTamper, wire.Tamper{What: "y"})
			d.Drop()
			synctest.Wait()
			copied.Boot, copied.Instance, copied.Count = boot, []byte{71, byte(i)}, 0
			d = w.Connect(devicetest.Signing, &copied)
			d.Prove(nil)
			require.Equal(t, wire.RefusedFork, d.Ack().Refused, "start %d", boot)
			require.Contains(t, d.Faults()[cloud.DevStoreFork].Detail, "lane 0 ends at")
			old := d.Epoch
			d.NewEpoch(devicetest.EpochOf(byte(100+i)), &old)
			d.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreRolledBack})
			drain(d)
		}
	})
}

// The last will of a session that is over was taken for one of the session that
// stands, as its agent is the same.
func TestTheLastWillOfAnEarlierSessionCountsForNothing(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		online := func() (is bool) {
			w.Look(func(v cloud.View) error { row, err := v.Session(d.ID); is = row.Online; return err })
			return is
		}
		will := d.Will
		d.Drop()
		synctest.Wait()
		d = w.Connect(devicetest.Signing, d.Memory)
		d.Status(nil)
		drain(d)
		require.True(t, online())
		d.Publish(will.Topic, will.Payload)
		drain(d)
		require.True(t, online())
		d.Publish(d.Will.Topic, d.Will.Payload)
		drain(d)
		require.False(t, online(), "its own")
	})
}

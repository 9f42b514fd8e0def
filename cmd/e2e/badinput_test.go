package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// put keeps records whose bodies no rule of the cabinet would make.
func (c *cabinet) put(kind wire.Kind, bodies ...[]byte) {
	c.w.t.Helper()
	var ch buffer.Change
	for _, b := range bodies {
		c.agent.Recorded.Add(1)
		rec, err := buffer.NewRecord(wire.Record{Kind: kind, At: time.Now().UnixNano(), Boot: c.agent.Store().Opened().Boot, Mono: int64(1e15) + int64(c.agent.Recorded.Load()), Body: b})
		require.NoError(c.w.t, err)
		ch.Records = append(ch.Records, rec)
	}
	require.NoError(c.w.t, c.agent.Store().Commit(context.Background(), ch))
}

// "The agent halves the batch down to one record; a single record refused 3 times
// is set aside and a new epoch goes on without it": in either lane, agent and
// cloud both real, on a line that loses and repeats.
func TestRecordThatTheCloudRefusesIsSetAsideAndTheRestArrives(t *testing.T) {
	for _, noise := range []int64{0, 20} {
		t.Run(fmt.Sprintf("noise %d", noise), func(t *testing.T) { setAside(t, noise) })
	}
}

func setAside(t *testing.T, noise int64) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		w.noise.Store(noise)
		c.setCut(true)
		tooDeep := append(bytes.Repeat([]byte{0x81}, 6), 0x00) // as a record by itself it is sound
		sound := func(n int) (out [][]byte) {
			for range n {
				out = append(out, wire.MustEncode(wire.Scan{Raw: []byte("x")}))
			}
			return out
		}
		began := c.agent.Store().Epoch()
		c.put(wire.KindScan, append(append(sound(40), tooDeep), sound(60)...)...)
		c.put(wire.KindTamper, wire.MustEncode(wire.Tamper{What: "before"}), tooDeep, wire.MustEncode(wire.Tamper{What: "after"}))
		c.setCut(false)
		c.drained()
		w.noise.Store(0)
		require.NotEqual(t, began, c.agent.Store().Epoch())
		gaps, _ := kept[wire.Gap](w, wire.KindGap)
		refused := map[wire.Lane]uint64{}
		for _, g := range gaps {
			if g.Reason == wire.GapRefused {
				refused[g.Lane] += g.Last - g.First + 1
			}
		}
		require.Equal(t, map[wire.Lane]uint64{0: 1, 1: 1}, refused)
		scans, _ := kept[wire.Scan](w, wire.KindScan)
		require.Len(t, scans, 100)
		told, _ := kept[wire.Tamper](w, wire.KindTamper)
		require.Len(t, told, 2)
		require.Equal(t, map[string]bool{cloud.DevBadBatch: true}, w.faults())
		w.judge(t)
	})
}

// "Batch of another device's epoch: refused, exception epoch_conflict; the agent
// begins a new epoch": a cabinet was set up from the image of another one.
func TestStoreThatWasCopiedFromAnotherCabinet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2)
		defer w.close()
		one, two := w.cabinets[0], w.cabinets[1]
		w.ready(one)
		w.awaits("the other one", time.Minute, func() bool { return two.agent.Link().Connected() && two.agent.Loop().State().Config.Version > 0 })
		one.drained()
		two.drained()
		one.halt()
		two.halt()
		image, err := os.ReadFile(filepath.Join(one.dir, "edge.db"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(two.dir, "edge.db"), image, 0o600))
		one.start()
		two.start()
		of := one.agent.Store().Epoch()
		two.put(wire.KindTamper, wire.MustEncode(wire.Tamper{What: wire.TamperCabinetOpened}))
		w.awaits("a new epoch", 10*time.Minute, func() bool { return two.agent.Store().Epoch() != of })
		two.drained()
		w.ready(one)
		one.drained()
		require.Equal(t, of, one.agent.Store().Epoch(), "the one whose epoch it is goes on")
		rows, err := w.cloud.Store.ListDeviceExceptions(context.Background(), w.box.Devices[1].DeviceID, 100)
		require.NoError(t, err)
		require.NotEmpty(t, rows)
		require.Equal(t, cloud.DevEpochConflict, rows[len(rows)-1].Type)
		require.Empty(t, w.faults(), "and has no part in it")
		told, _ := kept[wire.Tamper](w, wire.KindTamper)
		require.NotEmpty(t, told, "what the copy recorded was carried over")
	})
}

// "Overtaken command: never executed; refused with the reason", and so is one for
// another purpose or of a time when another held the door; each is reported once.
func TestOvertakenCommandIsRefusedOnce(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		send := func(id string, version uint64) {
			now := time.Now()
			env, err := w.cloud.Signer.Sign(signed.ForCommand, wire.Command{CommandID: id, DeviceCode: c.code, IssuedAt: now.UnixNano(), ExpiresAt: now.Add(time.Minute).UnixNano(),
				Versions: map[uint]uint64{1: version}, Kind: wire.CmdOpenDoors, Body: wire.MustEncode(wire.OpenDoors{OpeningID: "op_" + id, Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 30})})
			require.NoError(t, err)
			for range 3 {
				require.NoError(t, w.cloud.Broker.Send(c.code, topic.Down, wire.EncodeDown(wire.DownCommand, env), false))
				time.Sleep(time.Second)
			}
		}
		send("new", 50)
		require.True(t, c.sim.OpenAt(1, time.Now()))
		require.NoError(t, c.sim.CloseDoor(1))
		time.Sleep(time.Minute)
		send("same", 50)
		send("old", 49)
		require.False(t, c.sim.OpenAt(1, time.Now()))
		c.restart(time.Second)
		w.ready(c)
		send("older", 2) // after a start as well
		require.False(t, c.sim.OpenAt(1, time.Now()))
		c.drained()
		got := map[string]string{}
		outcomes, _ := kept[wire.CommandOutcome](w, wire.KindCommandOutcome)
		for _, o := range outcomes {
			got[o.CommandID] = o.Outcome + " " + o.Reason
		}
		require.Len(t, outcomes, 4, "each once")
		refused := wire.OutcomeRefused + " " + wire.ReasonOvertaken
		require.Equal(t, map[string]string{"new": wire.OutcomeDone + " ", "same": refused, "old": refused, "older": refused}, got)
	})
}

// A store is set back to an older copy while the line loses, repeats and reorders
// whatever passes: the fork is found, what was carried over counts once.
func TestRolledBackStoreOnABadLine(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	for seed := range uint64(ring.Among(3, 12, 12)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { rolledBack(t, seed) })
	}
}

func rolledBack(t *testing.T, seed uint64) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, 1)
		defer w.close()
		c := w.cabinets[0]
		w.ready(c)
		c.drained()
		c.halt()
		file := filepath.Join(c.dir, "edge.db")
		image, err := os.ReadFile(file)
		require.NoError(t, err)
		c.start()
		w.ready(c)
		out := w.begin("R-1", "PK-R-1")
		require.NoError(t, c.sim.PutItem(out.Opening.Compartments[0].Door))
		w.noise.Store(30)
		c.close(out)
		w.delivered("R-1")
		c.drained()
		c.halt()
		require.NoError(t, os.WriteFile(file, image, 0o600))
		c.start()
		c.put(wire.KindTamper, wire.MustEncode(wire.Tamper{What: wire.TamperCabinetOpened}), wire.MustEncode(wire.Tamper{What: wire.TamperCabinetOpened}))
		w.awaits("fork found", 10*time.Minute, func() bool { return w.faults()[cloud.DevStoreFork] && c.agent.Link().Counters().Epochs > 0 })
		time.Sleep(time.Duration(seed) * 20 * time.Second)
		c.drop()
		c.drained()
		w.noise.Store(0)
		opened := 0
		told, _ := kept[wire.Tamper](w, wire.KindTamper)
		for _, x := range told {
			if x.What == wire.TamperCabinetOpened {
				opened++
			}
		}
		require.Equal(t, 2, opened)
		require.Equal(t, cloud.DeliveryDelivered, w.find("R-1").Status)
		timeline, err := w.cloud.Store.FindTimeline(context.Background(), "PK-R-1", nil)
		events := timeline.Events
		require.NoError(t, err)
		require.Len(t, events, 2)
		w.ready(c)
		out = w.begin("R-2", "PK-2")
		require.NoError(t, c.sim.PutItem(out.Opening.Compartments[0].Door))
		c.close(out)
		w.delivered("R-2")
	})
}

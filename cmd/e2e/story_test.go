package e2e

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge/buffer"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// story plays one day of one cabinet that is online and has read its doors.
func story(t *testing.T, play func(t *testing.T, w *world, c *cabinet)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		defer w.close()
		c := w.cabinets[0]
		w.ready(c)
		play(t, w, c)
	})
}

func (w *world) ready(c *cabinet) {
	w.t.Helper()
	w.awaits("cabinet online and read", 5*time.Minute, func() bool {
		s := c.agent.Loop().State()
		now := c.agent.Link().Connected() && w.cloud.Devices.Online(c.code) && s.Doors[1].Known
		return now && s.Config.Version > 0
	})
	time.Sleep(2 * time.Second) // the clock is set by then
}

// begin opens the doors of a new delivery from afar.
func (w *world) begin(ref string, packages ...string) locker.OpenOutput {
	w.t.Helper()
	w.create(ref, 0, packages...)
	out, err := w.open(ref)
	require.NoError(w.t, err)
	require.False(w.t, out.Pending)
	return out
}

func (c *cabinet) close(out locker.OpenOutput) {
	c.w.t.Helper()
	for _, x := range out.Opening.Compartments {
		require.NoError(c.w.t, c.sim.CloseDoor(x.Door))
	}
}

// deposited is a whole deposit; it gives the pickup code and the door.
func (w *world) deposited(c *cabinet, ref string) (code string, door uint) {
	w.t.Helper()
	out := w.begin(ref, "PK-"+ref)
	c.close(out)
	w.delivered(ref)
	return *out.PickupCode, out.Opening.Compartments[0].Door
}

func (w *world) delivered(ref string) {
	w.t.Helper()
	w.awaits(ref+" delivered", 15*time.Minute, func() bool { return w.find(ref).Status == cloud.DeliveryDelivered })
}

// try types a code.
func (c *cabinet) try(code string) edgelocker.Answer {
	c.w.t.Helper()
	a, err := c.agent.Codes().Type(context.Background(), code, nil)
	require.NoError(c.w.t, err)
	return a
}

func (w *world) faults() map[string]bool {
	w.t.Helper()
	rows, err := w.cloud.Store.ListDeviceExceptions(context.Background(), w.box.Devices[0].DeviceID, 100)
	require.NoError(w.t, err)
	out := map[string]bool{}
	for _, r := range rows {
		out[r.Type] = true
	}
	return out
}

// kept are the records of a kind in the cloud's journal, once each.
func kept[B any](w *world, kind wire.Kind) (bodies []B, records []wire.Record) {
	w.t.Helper()
	rows, err := w.cloud.Store.JournalAfter(context.Background(), 0, 10000)
	require.NoError(w.t, err)
	seen := map[[2]int64]bool{}
	for _, row := range rows {
		if row.Aside != "" {
			continue
		}
		list, err := device.JournalRecords(row.JournalBatch)
		require.NoError(w.t, err)
		for _, raw := range list {
			r, err := wire.DecodeRecord(raw)
			require.NoError(w.t, err)
			if k := [2]int64{int64(r.Boot), r.Mono}; r.Kind != kind || seen[k] {
				continue
			} else {
				seen[k] = true
			}
			var b B
			require.NoError(w.t, wire.Decode(r.Body, &b))
			bodies, records = append(bodies, b), append(records, r)
		}
	}
	return bodies, records
}

func (c *cabinet) drained() {
	c.w.t.Helper()
	c.w.awaits(c.code+": everything sent", 15*time.Minute, func() bool { return c.agent.Store().Backlog() == [2]uint64{} })
}

func stranger(t *testing.T) *signed.Signer {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.NoError(t, err)
	return s
}

// A person who merely controls a broker or a network cannot open a door: forged,
// unsigned, misdirected and misused down messages, by a person who controls the broker.
func TestForgedDownMessagesAreNeverExecutedAndOneTamperRecordAnHourTells(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		cmd := wire.Command{CommandID: "c-1", DeviceCode: c.code, IssuedAt: time.Now().UnixNano(), ExpiresAt: time.Now().Add(time.Hour).UnixNano(), Kind: wire.CmdOpenDoors,
			Body: wire.MustEncode(wire.OpenDoors{OpeningID: "op_x", Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 60})}
		sign := func(s *signed.Signer, p signed.Purpose, v any) []byte {
			env, err := s.Sign(p, v)
			require.NoError(t, err)
			return env
		}
		ours, theirs := w.cloud.Signer, stranger(t)
		other := cmd
		other.DeviceCode = "CAB-2"
		before := c.agent.Loop().State()
		down := func(typ wire.DownType, body []byte) {
			require.NoError(t, w.cloud.Broker.Send(c.code, topic.Down, wire.EncodeDown(typ, body), false))
		}
		flood := func() {
			down(wire.DownCommand, sign(theirs, signed.ForCommand, cmd))
			down(wire.DownCommand, sign(ours, signed.ForQR, cmd)) // signed for something else
			down(wire.DownCommand, sign(ours, signed.ForCommand, other))
			down(wire.DownCommand, wire.MustEncode(cmd))
			down(wire.DownCodes, sign(theirs, signed.ForCodes, wire.Codes{DeviceCode: c.code, From: 0, To: 99}))
			down(wire.DownTime, sign(theirs, signed.ForTime, wire.Time{DeviceCode: c.code, ServerTime: 1}))
			conf := before.Config
			conf.Version = 99
			require.NoError(t, w.cloud.Broker.Send(c.code, topic.Config, sign(theirs, signed.ForConfig, conf), false))
			require.NoError(t, w.cloud.Broker.Send(c.code, topic.Down, []byte{0xff}, false))
			time.Sleep(time.Second)
		}
		flood()
		flood()
		c.drained()
		after := c.agent.Loop().State()
		require.Equal(t, before.Config.Version, after.Config.Version)
		require.Equal(t, before.Meta.CodeList, after.Meta.CodeList)
		require.Empty(t, after.Openings)
		require.False(t, c.sim.OpenAt(1, time.Now()))
		told, _ := kept[wire.Tamper](w, wire.KindTamper)
		require.Len(t, told, 1)
		require.Equal(t, wire.TamperBadSignature, told[0].What)
		outcomes, _ := kept[wire.CommandOutcome](w, wire.KindCommandOutcome)
		require.Empty(t, outcomes)

		time.Sleep(time.Hour)
		flood()
		c.drained()
		told, _ = kept[wire.Tamper](w, wire.KindTamper)
		require.Len(t, told, 2, "one an hour")
		require.EqualValues(t, 14, told[1].Count, "and it says of how many it tells")
		out := w.begin("R-1", "PK-1") // the true one works
		c.close(out)
	})
}

// "Expired when now + error bound > expires_at": a command that was withheld is
// replayed later, with the time answer of its day, so that the cabinet should
// believe that no time has passed.
func TestWithheldCommandReplayedWithAnOldTimeAnswer(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		now := time.Now()
		withheld, err := w.cloud.Signer.Sign(signed.ForCommand, wire.Command{CommandID: "c-1", DeviceCode: c.code, IssuedAt: now.UnixNano(), ExpiresAt: now.Add(20 * time.Second).UnixNano(),
			Kind: wire.CmdOpenDoors, Body: wire.MustEncode(wire.OpenDoors{OpeningID: "op_x", Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 60})})
		require.NoError(t, err)
		old, err := w.cloud.Signer.Sign(signed.ForTime, wire.Time{DeviceCode: c.code, Nonce: []byte("of that day"), ServerTime: now.UnixNano()})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		for range 3 {
			require.NoError(t, w.cloud.Broker.Send(c.code, topic.Down, wire.EncodeDown(wire.DownTime, old), false))
			require.NoError(t, w.cloud.Broker.Send(c.code, topic.Down, wire.EncodeDown(wire.DownCommand, withheld), false))
			time.Sleep(time.Second)
		}
		c.drained()
		outcomes, _ := kept[wire.CommandOutcome](w, wire.KindCommandOutcome)
		require.Len(t, outcomes, 1, "a repeated command writes nothing")
		require.Equal(t, wire.OutcomeExpired, outcomes[0].Outcome)
		require.False(t, c.sim.OpenAt(1, time.Now()))
		_, records := kept[wire.CommandOutcome](w, wire.KindCommandOutcome)
		require.InDelta(t, time.Now().UnixNano(), records[0].At, float64(time.Minute), "its clock was not moved")
	})
}

// "A session with k doors settles as a whole."
func TestTwoDoorOpeningWithASlowSecondDoor(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1", "PK-2")
		require.Len(t, out.Opening.Compartments, 2)
		require.NoError(t, c.sim.CloseDoor(out.Opening.Compartments[0].Door))
		time.Sleep(5 * time.Minute)
		require.Equal(t, cloud.DeliveryDoorsOpened, w.find("R-1").Status)
		require.NoError(t, c.sim.CloseDoor(out.Opening.Compartments[1].Door))
		w.delivered("R-1")
		settled, _ := kept[wire.OpeningSettled](w, wire.KindOpeningSettled)
		require.Len(t, settled, 1)
		require.Equal(t, wire.ByDoorClose, settled[0].ConfirmedBy)
		require.Len(t, settled[0].Packages, 2)
	})
}

// "A board's reset (300 ms of zeros) forces no door", and ends no session.
func TestBoardResetInMidSession(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		for range 3 {
			require.NoError(t, c.sim.ResetBoard("A"))
			time.Sleep(10 * time.Second)
		}
		require.Equal(t, cloud.DeliveryDoorsOpened, w.find("R-1").Status)
		c.close(out)
		w.delivered("R-1")
		tampered, _ := kept[wire.Tamper](w, wire.KindTamper)
		require.Empty(t, tampered)
	})
}

// "Session still running and all opened doors read closed: that read is the close
// report"; a door open: "continue waiting with the old deadline".
func TestAgentRestartInMidSession(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		c.restart(30 * time.Second)
		w.ready(c)
		require.Equal(t, cloud.DeliveryDoorsOpened, w.find("R-1").Status)
		c.close(out)
		w.delivered("R-1")

		out = w.begin("R-2", "PK-2")
		c.halt()
		c.close(out) // no agent sees it
		time.Sleep(time.Minute)
		c.start()
		w.delivered("R-2")
		settled, _ := kept[wire.OpeningSettled](w, wire.KindOpeningSettled)
		require.Len(t, settled, 2)
		require.Equal(t, wire.ByDoorClose, settled[1].ConfirmedBy)
		require.Equal(t, wire.CodeOK, c.try(*out.PickupCode).Outcome)
	})
}

// "Delivery is proven by the cloud's own acknowledgement": the cloud dies, or the
// line breaks, between its commit and the receipt.
func TestReceiptThatIsLostAfterTheCommit(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		hit := make(chan struct{}, 1)
		w.cloud.Store.OnCommit(func(ch *cloud.Changes) {
			for _, o := range ch.Openings {
				if o.State == cloud.OpeningSettled {
					c.drop()
					select {
					case hit <- struct{}{}:
					default:
					}
				}
			}
		})
		c.close(out)
		<-hit
		w.stopCloud()
		require.NotZero(t, c.agent.Store().Backlog()[0], "not acknowledged")
		time.Sleep(10 * time.Second)
		w.startCloud()
		c.drained()
		w.delivered("R-1")
		w.judge(t)
		timeline, err := w.cloud.Store.FindTimeline(context.Background(), "PK-1", nil)
		events := timeline.Events
		require.NoError(t, err)
		require.Len(t, events, 2)
		require.Empty(t, w.faults())
	})
}

// "A rotated code dies at once in the cloud, and on the cabinet as soon as the
// code list reaches it"; "what it then accepts stands".
func TestCodeRevokedWhileTheCabinetIsOffline(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		rotate := func(ref string) locker.RotateOutput {
			out, err := w.cloud.Lockers.RotatePickupCode(context.Background(), w.box.ProviderCaller, locker.RotateInput{Delivery: locker.DeliveryKey("ref:" + ref)})
			require.NoError(t, err)
			return out
		}
		former, door := w.deposited(c, "R-1")
		other, _ := w.deposited(c, "R-2")
		c.setCut(true)
		time.Sleep(2 * time.Minute)
		require.False(t, rotate("R-1").AppliedOnDevice)
		fresh := rotate("R-2").PickupCode
		a := c.try(former)
		require.Equal(t, wire.CodeOK, a.Outcome, "the cabinet cannot know")
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(5 * time.Second)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		w.awaits("list", time.Minute, func() bool { return c.agent.Loop().State().Meta.CodeList >= 8 })
		require.Equal(t, wire.CodeUnknown, c.try(other).Outcome, "the list has reached it")
		require.Equal(t, wire.CodeOK, c.try(fresh).Outcome)
		require.Empty(t, w.faults())
	})
}

// "Whole list from 0": a cabinet that lost its store knows from the list alone
// whose parcels lie where, and opens the right door with no network.
func TestWholeCodeListAfterANewStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		c.drained()
		c.halt()
		require.NoError(t, os.RemoveAll(c.dir))
		c.start()
		w.ready(c)
		w.awaits("list", time.Minute, func() bool { return len(c.agent.Loop().State().Codes) > 0 })
		c.setCut(true)
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(time.Minute)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
	})
}

// "The chain finds copied and rolled-back stores", and "a recipient never waits
// for staff": the store is an older copy and goes on recording with no network.
func TestStoreRolledBackToAnOlderCopyWorksOn(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		file, copied := filepath.Join(c.dir, "edge.db"), filepath.Join(t.TempDir(), "copy.db")
		carry := func(from, to string) {
			b, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, b, 0o600))
		}
		c.drained()
		c.halt()
		carry(file, copied)
		c.start()
		w.ready(c)
		code, door := w.deposited(c, "R-1")
		c.drained()
		c.halt()
		carry(copied, file)
		c.cut.Store(true)
		c.start()
		time.Sleep(10 * time.Second)
		rolled := c.agent.Store().Epoch()
		require.NoError(t, c.sim.Force(4))
		time.Sleep(10 * time.Second)
		require.NoError(t, c.sim.CloseDoor(4))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("a new epoch", 5*time.Minute, func() bool { return c.agent.Store().Epoch() != rolled })
		c.drained()
		require.True(t, w.faults()[cloud.DevStoreFork])
		tampered, _ := kept[wire.Tamper](w, wire.KindTamper)
		require.NotEmpty(t, tampered, "what it recorded offline was carried over")
		require.Equal(t, cloud.DeliveryDelivered, w.find("R-1").Status)
		w.awaits("list", time.Minute, func() bool { return c.hasList() })
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		out := w.begin("R-2", "PK-R-2")
		c.close(out)
		w.delivered("R-2")
	})
}

// "duplicate_identity is raised when agent instances alternate."
func TestTwoAgentsWithOneIdentity(t *testing.T) {
	ring.SkipUnlessCheck(t, "cloud/device has twins in one process")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		require.Empty(t, w.faults())
		own := w.dir
		w.dir = t.TempDir()
		twin := w.newCabinet(0, 99)
		w.dir = own
		defer func() {
			twin.halt()
			twin.sim.Close()
		}()
		w.awaits("noticed", time.Hour, func() bool { return w.faults()[cloud.DevDuplicateIdentity] })
		a, b := c.agent.Link().Counters().Connects, twin.agent.Link().Counters().Connects
		time.Sleep(time.Hour)
		a, b = c.agent.Link().Counters().Connects-a, twin.agent.Link().Counters().Connects-b
		require.Less(t, a+b, uint64(120), "a kicked agent backs off, also after a successful connect")
	})
}

// "NTP and the system clock never do": a machine whose clock is unset, or has
// jumped by years either way, obeys and is placed by signed time alone.
func TestSystemClockUnsetOrWrongByYears(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		for i, wrong := range []time.Duration{-30 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
			c.setCut(true)
			c.halt()
			c.system = func() time.Time { return time.Now().Add(wrong) }
			c.start()
			time.Sleep(10 * time.Second)
			forced := time.Now()
			require.NoError(t, c.sim.Force(4))
			time.Sleep(10 * time.Second)
			require.NoError(t, c.sim.CloseDoor(4))
			time.Sleep(time.Minute)
			c.setCut(false)
			w.ready(c)
			ref := "R-" + string(rune('1'+i))
			w.deposited(c, ref)
			c.drained()
			rows, err := w.cloud.Store.ListAudits(context.Background(), w.box.ProviderCaller.Provider.BusinessID, 0, 100)
			require.NoError(t, err)
			found := false
			for _, r := range rows {
				if r.Action == "tamper" && r.Target == wire.TamperDoorForced && r.At.After(forced.Add(-time.Second)) {
					found = true
					require.WithinDuration(t, forced, r.At, 5*time.Second, "placed by the boot's later sample, whatever its own clock said")
				}
			}
			require.True(t, found, "%s: %v %v", wrong, forced, rows)
			d := w.find(ref)
			at, err := time.Parse(time.RFC3339, *d.DepositedAt)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), at, time.Minute)
		}
	})
}

// "From 90 % of the size limit the agent refuses new sessions; the last tenth is
// kept for sessions already open."
func TestFullStoreRefusesNewSessionsAndSettlesOpenOnes(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		c.drained()
		c.halt()
		c.maxBytes = 2 << 20
		require.NoError(t, os.RemoveAll(c.dir))
		c.start()
		w.ready(c)
		other := w.create("R-2", 0, "PK-2")
		out := w.begin("R-1", "PK-1")
		w.awaits("list", time.Minute, func() bool { return c.agent.Loop().State().Meta.CodeList == 4 })
		c.setCut(true)
		full := error(nil)
		for size := 8000; size > 0; size /= 20 {
			for full = error(nil); full == nil; {
				full = c.agent.Record(context.Background(), wire.KindTrackingEvent, wire.TrackingEvent{Subject: "none", StatusCode: "in_transit", Location: string(make([]byte, size))})
			}
		}
		require.ErrorIs(t, full, edgelocker.ErrFull)
		_, err := c.agent.Codes().Type(context.Background(), *other.DeliveryCode, nil)
		require.ErrorIs(t, err, edgelocker.ErrFull, "no new session")
		c.close(out)
		w.awaits("the open one settles", time.Minute, func() bool { return len(c.agent.Loop().State().Openings) == 0 })
		c.setCut(false)
		w.delivered("R-1")
		c.drained()
		a := c.try(*other.DeliveryCode)
		require.Equal(t, wire.CodeOK, a.Outcome, "and with room again it takes new ones")
		time.Sleep(5 * time.Second)
		for _, n := range a.Doors {
			require.NoError(t, c.sim.CloseDoor(uint(n)))
		}
		w.delivered("R-2")
	})
}

// "The cloud may hold part of a named range (sent, its acknowledgement lost)":
// recorded = stored + gaps, to the record.
func TestAcknowledgementLostBeforeEviction(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		c.drained()
		c.halt()
		c.maxBytes = 4 << 20
		c.start()
		w.ready(c)
		fill := func(n int) {
			for done := 0; done < n; {
				var ch buffer.Change
				for range min(1000, n-done) {
					r := wire.Record{Kind: wire.KindScan, At: time.Now().UnixNano(), Boot: c.agent.Store().Opened().Boot, Mono: int64(1e15) + int64(c.agent.Recorded.Load()) + int64(len(ch.Records)), Body: wire.MustEncode(wire.Scan{Raw: make([]byte, 64)})}
					rec, err := buffer.NewRecord(r)
					require.NoError(t, err)
					ch.Records = append(ch.Records, rec)
				}
				require.NoError(t, c.agent.Store().Commit(context.Background(), ch))
				c.agent.Recorded.Add(uint64(len(ch.Records)))
				done += len(ch.Records)
			}
		}
		var lost atomic.Bool
		w.cloud.Store.OnCommit(func(ch *cloud.Changes) {
			for _, b := range ch.Batches {
				if b.Lane == wire.Telemetry && !lost.Swap(true) {
					c.cut.Store(true) // the receipt is on its way
					c.drop()
				}
			}
		})
		fill(500)
		w.awaits("committed, and its receipt lost", time.Minute, lost.Load)
		c.setCut(true)
		fill(45_000)
		c.setCut(false)
		c.drained()
		gaps, _ := kept[wire.Gap](w, wire.KindGap)
		evicted := 0
		for _, g := range gaps {
			if g.Reason == wire.GapEvicted {
				evicted++
			}
		}
		require.NotZero(t, evicted)
		require.Empty(t, w.faults())
		w.judge(t)
	})
}

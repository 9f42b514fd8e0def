package device_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// signing is bubble with the cabinet that has a key of its own.
func signing(t *testing.T, story func(t *testing.T, w *devicetest.World, d *devicetest.Device)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := devicetest.New(t, nil)
		defer w.Stop()
		d := w.Connect(devicetest.Signing, nil)
		d.Greet(nil)
		story(t, w, d)
	})
}

// shot is all that is kept of a device but for when it was last seen, and for
// the exceptions that say what was tried.
func shot(t *testing.T, w *devicetest.World, d *devicetest.Device) map[string]any {
	t.Helper()
	synctest.Wait()
	out := map[string]any{}
	w.Look(func(v cloud.View) error {
		dev, err := v.Device(d.ID)
		if err != nil {
			return err
		}
		dev.LastSeenAt = time.Time{}
		session, err := v.Session(d.ID)
		if err != nil {
			return err
		}
		session.LastSeenAt = time.Time{}
		out["device"], out["session"] = dev, session
		if out["cells"], err = v.Compartments(d.ID); err != nil {
			return err
		}
		if out["running"], err = v.RunningOpenings(d.ID); err != nil {
			return err
		}
		if out["commands"], err = v.OpenCommands(d.ID); err != nil {
			return err
		}
		if out["codes"], err = v.CodeRows(d.ID, 0, 100); err != nil {
			return err
		}
		if out["epoch"], err = v.CurrentEpoch(d.ID); err != nil {
			return err
		}
		out["delivery"], err = v.DeliveryByReference(w.Box.ProviderCaller.Provider.ID, "R-1")
		return err
	})
	lanes, err := w.Store.ListLanes(t.Context(), d.ID)
	require.NoError(t, err)
	journal, err := w.Store.JournalStats(t.Context(), d.ID)
	require.NoError(t, err)
	aside, err := w.Store.ListAsides(t.Context(), d.ID, 0, 100)
	require.NoError(t, err)
	timeline, err := w.Store.FindTimeline(t.Context(), "PK-1", nil)
	events := timeline.Events
	require.NoError(t, err)
	_, outbox, err := w.Store.ListOutbox(t.Context(), cloud.OutboxFilter{ProviderID: w.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
	require.NoError(t, err)
	out["lanes"], out["journal"], out["aside"], out["events"], out["outbox"] = lanes, journal, aside, events, len(outbox)
	return out
}

// drain takes what came down, and reports the refusals among it.
func drain(d *devicetest.Device) (refusals []wire.Ack, others int) {
	synctest.Wait()
	for len(d.Acks) > 0 {
		if a := <-d.Acks; a.Refused != "" {
			refusals = append(refusals, a)
		}
	}
	others = len(d.Cmds) + len(d.Codes) + len(d.Times)
	for _, c := range []func() bool{
		func() bool { return len(d.Cmds) > 0 && len((<-d.Cmds).CommandID) > 0 },
		func() bool { return len(d.Codes) > 0 && (<-d.Codes).DeviceCode != "" },
		func() bool { return len(d.Times) > 0 && (<-d.Times).DeviceCode != "" },
	} {
		for c() {
		}
	}
	return refusals, others
}

// stored brings a delivery into a compartment.
func stored(t *testing.T, w *devicetest.World, d *devicetest.Device, ref, number string) (delivery string, door uint) {
	t.Helper()
	for _, x := range w.Box.Devices {
		if x.DeviceID == d.ID {
			delivery = create(w, ref, x.DeviceCode, number).DeliveryNumber
		}
	}
	o := startOpening(w, d, ref)
	d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
	d.Tell(wire.KindOpeningSettled, settlement(o.OpeningID, number, o.Doors[0]))
	d.Contents[o.Doors[0]] = delivery
	d.Versions[o.Doors[0]]++
	return delivery, o.Doors[0]
}

// confirm takes the list that is on its way, and confirms it.
func confirm(w *devicetest.World, d *devicetest.Device) {
	w.Look(func(v cloud.View) error {
		row, err := v.Device(d.ID)
		d.List, d.Generation = row.CodeList, row.CodeGeneration
		return err
	})
	d.Status(nil)
	drain(d)
}

// The owner of a broker could invent records: nothing proved that a batch
// or a status came from the cabinet.
func TestWhatTheDeviceHasNotSignedIsDroppedWithoutAnAnswer(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		drain(d)
		before := shot(t, w, d)
		seed, _ := signed.NewSeed()
		stranger, err := signed.NewDeviceKey(devicetest.Signing, seed)
		require.NoError(t, err)
		memory := *d.Memory
		batch := func(f func(*wire.Batch)) []byte {
			b := d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))
			*d.Memory = memory
			f(&b)
			return wire.MustEncode(b)
		}
		status := func(f func(*wire.Status)) []byte {
			st := wire.Status{State: wire.Online, Instance: d.Instance, Boot: d.Boot, Epoch: d.Epoch, Count: d.Count + 1, Snapshot: 1, Nonce: []byte("n"),
				Ends: []wire.LaneEnd{{}, {}}}
			f(&st)
			return wire.MustEncode(st)
		}
		n := int64(0)
		for name, p := range map[string]struct {
			leaf    topic.Leaf
			payload []byte
		}{
			"batch, no signature":           {topic.Up, batch(func(b *wire.Batch) { b.Signature = nil })},
			"batch, another key":            {topic.Up, batch(func(b *wire.Batch) { require.NoError(t, stranger.SignBatch(b)) })},
			"batch, another lane":           {topic.Up, batch(func(b *wire.Batch) { b.Lane = 1 })},
			"batch, another sampling time":  {topic.Up, batch(func(b *wire.Batch) { b.Sent.Wall-- })},
			"batch, another first":          {topic.Up, batch(func(b *wire.Batch) { b.First++ })},
			"batch, one record more":        {topic.Up, batch(func(b *wire.Batch) { b.Records = append(b.Records, b.Records[0]) })},
			"batch that cannot be read":     {topic.Up, batch(func(*wire.Batch) {})[:40]},
			"nothing":                       {topic.Up, nil},
			"status, no signature":          {topic.Status, status(func(*wire.Status) {})},
			"status, another key":           {topic.Status, status(func(s *wire.Status) { require.NoError(t, stranger.SignStatus(s)) })},
			"status, offline, no signature": {topic.Status, status(func(s *wire.Status) { s.State = wire.Offline })},
			"status that cannot be read":    {topic.Status, []byte{0xff}},
		} {
			d.Publish(topic.Device("tms", d.Code, p.leaf), p.payload)
			refusals, others := drain(d)
			require.Empty(t, refusals, name)
			require.Zero(t, others, name)
			require.Empty(t, d.Acks, name)
			require.Equal(t, before, shot(t, w, d), name)
			n++
			f := d.Faults()
			require.Equal(t, n, f[cloud.DevBadSignature].Count, name)
			require.Contains(t, f[cloud.DevBadSignature].Detail, fmt.Sprintf("%d bytes, SHA-256 %x", len(p.payload), sha256.Sum256(p.payload)), name)
			require.Len(t, f, 1, name)
		}
		require.EqualValues(t, n, w.Devices.Metrics.BadSignatures.Load())
		d.Tell(wire.KindTamper, wire.Tamper{What: "sound"})
	})
}

// A signature covers the head and not the records: others under a sound header
// are found by the chain. The answer says only what is stored, so that an agent
// whose store forked finds that out by itself and an honest one changes nothing.
func TestRecordsThatDoNotFitTheSignedHeadAreNotTaken(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		before := shot(t, w, d)
		next, head := d.Next[0], d.Head[0]
		b := d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "x"}))
		forged := b
		forged.Records = []wire.Raw{d.Record(wire.KindTamper, wire.Tamper{What: "other"})}
		d.Up(wire.MustEncode(forged))
		a := d.Ack()
		require.Empty(t, a.Refused)
		require.Equal(t, next, a.Next)
		require.Equal(t, head, a.Head)
		require.Equal(t, before, shot(t, w, d))
		require.Contains(t, d.Faults()[cloud.DevBadSignature].Detail, "do not fit the signed head")
		d.Up(wire.MustEncode(b))
		require.Equal(t, d.Next[0], d.Ack().Next, "the records that were signed are taken")

		again := shot(t, w, d)
		d.Up(wire.MustEncode(forged))
		require.Equal(t, d.Next[0], d.Ack().Next)
		require.Equal(t, again, shot(t, w, d))
		require.EqualValues(t, 2, d.Faults()[cloud.DevBadSignature].Count)

		// Under the first header of an epoch nothing begins either.
		d.NewEpoch(devicetest.EpochOf(100), &d.Epoch)
		d.Status(nil)
		drain(d)
		again = shot(t, w, d)
		first := d.Batch(0, d.Record(wire.KindGap, wire.Gap{Reason: wire.GapStoreRolledBack}))
		forged = first
		forged.Records = []wire.Raw{d.Record(wire.KindGap, wire.Gap{Reason: wire.GapStoreCreated})}
		d.Up(wire.MustEncode(forged))
		require.Equal(t, again, shot(t, w, d))
		require.Empty(t, d.Acks)
		d.Up(wire.MustEncode(first))
		require.EqualValues(t, 2, d.Ack().Next)
	})
}

// A record that cannot be read is refused to the cabinet that sent it, which sets
// it aside; one that was made so on the way is not: a sound record would be lost.
func TestUnreadableRecordsAreRefusedOnlyAsTheyWereSent(t *testing.T) {
	signing(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindTamper, wire.Tamper{What: "first"})
		deep := wire.Raw(append(bytes.Repeat([]byte{0x81}, 12), 0x00))
		next := d.Next[0]
		b := d.Batch(0, d.Record(wire.KindTamper, wire.Tamper{What: "sound"}))
		forged := b
		forged.Records = []wire.Raw{deep}
		for range 3 {
			d.Up(wire.MustEncode(forged))
			a := d.Ack()
			require.Empty(t, a.Refused)
			require.Equal(t, next, a.Next)
		}
		require.Contains(t, d.Faults()[cloud.DevBadSignature].Detail, "do not fit the signed head")
		require.NotContains(t, d.Faults(), cloud.DevBadBatch)
		d.Up(wire.MustEncode(b))
		require.Equal(t, d.Next[0], d.Ack().Next)

		next = d.Next[0]
		d.Up(wire.MustEncode(d.Batch(0, deep)))
		a := d.Ack()
		require.Equal(t, wire.RefusedBadBatch, a.Refused)
		require.Equal(t, next, a.RefusedFirst)
		require.Equal(t, next, a.Next)
		require.Contains(t, d.Faults(), cloud.DevBadBatch)
	})
}

// A broker that keeps everything and sends it again, in whatever order, as often
// as it likes and with bytes changed, changes nothing and makes the cabinet do
// nothing.
func TestRecordingAdversaryChangesNothing(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		confirm(w, d)
		stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		d.Send(1, scans(d, 5)...)
		d.Status(func(s *wire.Status) { s.Doors = []wire.DoorStatus{{Door: 3, State: wire.DoorOpen}} })
		old := d.Epoch
		d.NewEpoch(devicetest.EpochOf(100), &old)
		d.Send(0, d.Record(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreRolledBack}))
		d.Send(1, scans(d, 3)...)
		d.Boot, d.Instance, d.Count = d.Boot+1, []byte{99}, 0 // it starts anew
		confirm(w, d)
		stored(t, w, d, "R-2", "PK-2")
		confirm(w, d)
		drain(d)
		tape := slices.Clone(d.Published)
		before, faults := shot(t, w, d), d.Faults()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		play := func(what string, list []devicetest.Published) {
			t.Helper()
			for _, p := range list {
				d.Publish(p.Topic, p.Payload)
				refusals, others := drain(d)
				require.Empty(t, refusals, "%s: an answer that makes the cabinet begin anew or set records aside", what)
				require.Zero(t, others, "%s: an answer to a status that was kept", what)
			}
			require.Equal(t, before, shot(t, w, d), what)
		}
		play("again", tape)
		back := slices.Clone(tape)
		slices.Reverse(back)
		play("backwards", back)
		for range 3 {
			random.Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
			play("shuffled", back)
		}
		require.Equal(t, faults, d.Faults(), "what was signed and kept is no fault")
		require.NotZero(t, w.Devices.Metrics.OldStatuses.Load())
		for range 5 {
			var bent []devicetest.Published
			for _, p := range tape {
				b := bytes.Clone(p.Payload)
				b[random.IntN(len(b))] ^= 1 << random.IntN(8)
				bent = append(bent, devicetest.Published{Topic: p.Topic, Payload: b})
			}
			play("altered", bent)
		}
		d.Drop()
		again := w.Connect(devicetest.Signing, d.Memory)
		again.Greet(nil)
		again.Tell(wire.KindTamper, wire.Tamper{What: "it works on"})
	})
}

// The first batch of an epoch that was withheld, and let through once the
// cabinet had begun another, closed the one that it works in.
func TestEpochThatNoNewestStatusNamesDoesNotBegin(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		first := d.Epoch
		d.NewEpoch(devicetest.EpochOf(100), &first)
		withheld := d.Batch(0, d.Record(wire.KindGap, wire.Gap{Epoch: first, Reason: wire.GapStoreRolledBack}))
		d.NewEpoch(devicetest.EpochOf(101), &first)
		d.Tell(wire.KindGap, wire.Gap{Epoch: first, Reason: wire.GapStoreRolledBack})
		d.Up(wire.MustEncode(withheld))
		a := d.Ack()
		require.Empty(t, a.Refused)
		require.EqualValues(t, 1, a.Next)
		w.Look(func(v cloud.View) error {
			e, err := v.CurrentEpoch(d.ID)
			require.Equal(t, d.Epoch, e.Epoch)
			return err
		})
		d.Tell(wire.KindTamper, wire.Tamper{What: "it works on"})
		require.Len(t, d.Faults(), 1)
		require.Contains(t, d.Faults()[cloud.DevStoreFork].Detail, "the device has found", "it says so itself")
	})
}

// A store that was rolled back speaks through an agent that is new and whose
// boots count less: it is a fork, as without a key, and not an old status, once it
// has proven that it speaks now.
func TestRolledBackStoreOfASigningDeviceIsAFork(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Boot, d.Instance = 7, []byte{70}
		d.Status(nil)
		d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		copied := *d.Memory
		d.Tell(wire.KindTamper, wire.Tamper{What: "y"})
		d.Drop()
		synctest.Wait()
		copied.Boot, copied.Instance, copied.Count = 6, []byte{71}, 0
		back := w.Connect(devicetest.Signing, &copied)
		back.Prove(nil)
		require.Equal(t, wire.RefusedFork, back.Ack().Refused)
		require.Contains(t, back.Faults()[cloud.DevStoreFork].Detail, "lane 0 ends at 1, the cloud holds up to 2")
		old := back.Epoch
		back.NewEpoch(devicetest.EpochOf(100), &old)
		back.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreRolledBack})

		// A copy that goes on in the closed epoch.
		back.Drop()
		synctest.Wait()
		third := *d.Memory
		third.Boot, third.Instance, third.Count = 5, []byte{72}, 0
		twin := w.Connect(devicetest.Signing, &third)
		twin.Prove(nil)
		a := twin.Ack()
		require.Equal(t, wire.RefusedFork, a.Refused)
		require.Equal(t, old, a.Epoch)
	})
}

// The public half is registered with a one-time token, and replaced with the
// next: what the former key signed counts for nothing then.
func TestEnrolmentRegistersAndReplacesThePublicKey(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx := context.Background()
		enrol := func(key []byte) (device.Secrets, error) {
			token, row := device.NewToken(d.ID, time.Now().UTC())
			require.NoError(t, w.Store.Decide(ctx, d.ID, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Enrolments: []cloud.EnrolmentToken{row}}}, nil
			}))
			return w.Devices.Enrol(ctx, w.Store, device.Enrolment{Code: d.Code, Token: token, PublicKey: key},
				func(ctx context.Context, d cloud.DeviceID, _ device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
					return w.Store.Decide(ctx, d, decide)
				})
		}
		registered := func() (key []byte) {
			w.Look(func(v cloud.View) error { row, err := v.Device(d.ID); key = row.UpKey; return err })
			return key
		}
		for _, bad := range [][]byte{make([]byte, 31), make([]byte, 33), {1}} {
			_, err := enrol(bad)
			require.ErrorContains(t, err, "VALIDATION_FAILED")
		}
		seed, public := signed.NewSeed()
		made, err := enrol(public)
		require.NoError(t, err)
		require.Equal(t, public, registered())
		devicetest.Wait(t, "end of the connection with the former secret", d.Closed)

		box := &w.Box.Devices[slices.IndexFunc(w.Box.Devices, func(x devicetest.Secrets) bool { return x.DeviceCode == d.Code })]
		box.Secret = made.Secret
		former := w.Connect(d.Code, d.Memory)
		former.Status(nil)
		synctest.Wait()
		require.Empty(t, former.Acks)
		require.Contains(t, former.Faults(), cloud.DevBadSignature)
		box.Enrolled.DeviceKey = seed
		fresh := w.Connect(d.Code, nil)
		fresh.Greet(nil)
		fresh.Tell(wire.KindTamper, wire.Tamper{What: "x"})

		_, err = enrol(nil)
		require.NoError(t, err)
		require.Nil(t, registered(), "a device that enrols without a key signs nothing")
		rows, err := w.Store.ListAudits(t.Context(), w.Box.ProviderCaller.Provider.BusinessID, 0, 100)
		require.NoError(t, err)
		for _, r := range rows {
			require.False(t, strings.Contains(r.Detail, made.Secret))
		}
	})
}

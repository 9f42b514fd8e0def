package device_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Each row of the table of bad input that concerns the cloud, from its cause to
// the exception, and to its end where it has one. plain stands for a device
// without a key, whose broker is believed.
func TestDeviceExceptionTable(t *testing.T) {
	ring.SkipUnlessCheck(t, "its rows one by one, in cmd/e2e")
	t.Parallel()
	type row struct {
		name  string
		plain bool
		typ   string // exception that opens, "" none
		cause func(t *testing.T, w *devicetest.World, d *devicetest.Device)
		end   func(t *testing.T, w *devicetest.World, d *devicetest.Device) // nil: it stays for staff
	}
	tamper := func(d *devicetest.Device) wire.Raw {
		return d.Record(wire.KindTamper, wire.Tamper{What: wire.TamperDoorForced})
	}
	for _, r := range []row{
		{name: "signed snapshot and rows disagree", typ: cloud.DevContentsMismatch,
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				stored(t, w, d, "R-1", "PK-1")
				tellContents(d, func(s *wire.Status) { s.Contents = nil })
			},
			end: func(_ *testing.T, _ *devicetest.World, d *devicetest.Device) { tellContents(d, nil) }},
		{name: "undecodable batch", plain: true, typ: cloud.DevBadBatch,
			cause: func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
				d.Up([]byte{0xff})
				require.Equal(t, wire.RefusedBadBatch, d.Ack().Refused)
			}},
		{name: "undecodable batch of a device with a key", typ: cloud.DevBadSignature,
			cause: func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
				d.Up([]byte{0xff})
				synctest.Wait()
				require.Empty(t, d.Acks)
			}},
		{name: "one record's body is not sound", typ: cloud.DevBadBatch,
			cause: func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
				d.Send(0, d.Record(wire.KindOpeningStarted, "not a map"))
				require.EqualValues(t, 2, d.Ack().Next, "stored and acknowledged")
			}},
		{name: "batch of another device's epoch", typ: cloud.DevEpochConflict,
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				other := w.Connect("CAB-1", nil)
				other.Greet(nil)
				other.Tell(wire.KindTamper, wire.Tamper{What: "x"})
				d.NewEpoch(other.Epoch, nil)
				d.Send(0, tamper(d))
				require.Equal(t, wire.RefusedEpochConflict, d.Ack().Refused)
			}},
		{name: "opening of another device", typ: cloud.DevForeignReference,
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				other := w.Connect("CAB-1", nil)
				other.Greet(nil)
				create(w, "R-1", "CAB-1", "PK-1")
				o := startOpening(w, other, "R-1")
				d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: o.OpeningID, Reason: wire.EndCancelled})
			}},
		{name: "hole in the sequence",
			cause: func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
				d.Batch(0, tamper(d))
				d.Send(0, tamper(d))
				a := d.Ack()
				require.Equal(t, []any{uint64(1), uint64(1), ""}, []any{a.Next, a.ResendFrom, a.Refused})
			}},
		{name: "record of unknown kind",
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				d.Send(0, d.Record(99, wire.Tamper{}))
				require.EqualValues(t, 2, d.Ack().Next)
				require.EqualValues(t, 1, w.Devices.Metrics.Unknown.Load())
			}},
		{name: "publish to a foreign topic",
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				d.Publish(topic.Device("tms", "CAB-1", topic.Up), []byte{1})
				devicetest.Wait(t, "end of the connection", d.Closed)
				synctest.Wait()
				rows, err := w.Store.ListAudits(t.Context(), 0, 0, 10)
				require.NoError(t, err)
				require.Equal(t, "foreign_topic", rows[0].Action)
			}},
		{name: "batch without a signature", typ: cloud.DevBadSignature,
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				b := d.Batch(0, tamper(d))
				b.Signature = nil
				d.Up(wire.MustEncode(b))
				synctest.Wait()
				require.Empty(t, d.Acks)
				require.EqualValues(t, 1, metric(t, w, "postern_device_link_total", "bad_signatures"))
			}},
		{name: "store that ends before what is stored", typ: cloud.DevStoreFork,
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
				d.Prove(func(s *wire.Status) { s.Ends[0] = wire.LaneEnd{} })
				require.Equal(t, wire.RefusedFork, d.Ack().Refused)
			}},
		{name: "two agents take turns", typ: cloud.DevDuplicateIdentity,
			cause: func(_ *testing.T, w *devicetest.World, d *devicetest.Device) {
				for _, instance := range []byte{80, 81} {
					d.Instance = []byte{instance}
					d.Prove(nil)
				}
				d.Instance = []byte{80}
				d.Status(nil)
				synctest.Wait()
			}},
		{name: "thirty wrong codes", typ: cloud.DevKeypadLocked,
			cause: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				until := time.Now().Add(3 * time.Hour)
				tellContents(d, func(s *wire.Status) { s.TypedLocked = until.UnixNano() })
				require.Contains(t, d.Faults()[cloud.DevKeypadLocked].Detail, until.UTC().Format(time.RFC3339))
				tellContents(d, func(s *wire.Status) { s.TypedLocked = until.UnixNano() })
				w.Look(func(v cloud.View) error {
					row, err := v.Device(d.ID)
					require.WithinDuration(t, until, row.TypedLocked, time.Millisecond)
					return err
				})
				staff := employee(w)
				out, err := w.Lockers.SendDeviceCommand(context.Background(), staff, locker.DeviceCommandInput{Device: d.ID, Type: "reset_tries", Reason: "called"})
				require.NoError(t, err)
				var body wire.DoorReason
				c := d.Command(&body)
				require.Equal(t, []any{out.Command.CommandID, wire.CmdResetTries, "called"}, []any{c.CommandID, c.Kind, body.Reason})
			},
			end: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				tellContents(d, func(s *wire.Status) { s.TypedLocked = 0 })
				w.Look(func(v cloud.View) error { row, err := v.Device(d.ID); require.Zero(t, row.TypedLocked); return err })
			}},
		{name: "a lock of the keypad that is over", typ: cloud.DevKeypadLocked,
			cause: func(_ *testing.T, _ *devicetest.World, d *devicetest.Device) {
				tellContents(d, func(s *wire.Status) { s.TypedLocked = time.Now().Add(time.Hour).UnixNano() })
			},
			end: func(_ *testing.T, _ *devicetest.World, d *devicetest.Device) {
				tellContents(d, func(s *wire.Status) { s.TypedLocked = time.Now().Add(-time.Second).UnixNano() })
			}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := devicetest.New(t, nil)
				defer w.Stop()
				code := devicetest.Signing
				if r.plain {
					code = "CAB-1"
				}
				d := w.Connect(code, nil)
				d.Greet(nil)
				require.Empty(t, d.Faults())
				r.cause(t, w, d)
				synctest.Wait()
				if r.typ == "" {
					require.Empty(t, d.Faults())
					return
				}
				require.Len(t, d.Faults(), 1)
				require.Contains(t, d.Faults(), r.typ)
				require.EqualValues(t, 1, metric(t, w, "postern_device_exceptions", r.typ))
				if r.end != nil {
					r.end(t, w, d)
					require.Empty(t, d.Faults(), "it ends by itself")
					require.Zero(t, metric(t, w, "postern_device_exceptions", r.typ))
				}
				_, outbox, err := w.Store.ListOutbox(t.Context(), cloud.OutboxFilter{ProviderID: w.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
				require.NoError(t, err)
				for _, e := range outbox {
					require.Contains(t, []string{locker.EventDelivered, locker.EventDoorsOpened}, e.Event.Event, "no webhook tells of it")
				}
			})
		})
	}
}

// metric is the value of a metric with one label.
func metric(t *testing.T, w *devicetest.World, name, label string) float64 {
	t.Helper()
	families, err := w.Server.Metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	require.FailNow(t, "no such metric", "%s %s", name, label)
	return 0
}

// After a loss that the cabinet declares, what lies inside for all that the cloud
// knows goes down again, and what ran is looked at.
func TestStoreLostBringsTheContentsDownAgain(t *testing.T) {
	for _, reason := range []string{wire.GapStoreCreated, wire.GapStoreDamaged} {
		t.Run(reason, func(t *testing.T) {
			signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				ref, door := stored(t, w, d, "R-1", "PK-1")
				confirm(w, d)
				before := cell(w, d, door)
				old := d.Epoch
				d.NewEpoch(devicetest.EpochOf(100), &old)
				d.Lost, d.List, d.Contents = true, 0, map[uint]string{}
				drain(d)
				c := ask(t, d, "after the loss")
				d.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: reason})
				require.Equal(t, []any{uint64(0), "after the loss"}, []any{c.From, string(c.Nonce)})
				inside := false
				for _, e := range c.Entries {
					inside = inside || e.Kind == wire.CodePickup && e.Active == wire.ActiveNow && e.DeliveryRef == ref && len(e.Doors) == 1 && e.Doors[0] == door
				}
				require.True(t, inside)
				require.Empty(t, d.Faults(), "a declared loss is no difference")
				require.Equal(t, before, cell(w, d, door))
				d.Lost, d.Contents[door] = false, ref
				confirm(w, d)
				require.Empty(t, d.Faults())
			})
		})
	}
}

// Staff end a difference that no rule heals: the compartment is in use as long
// as the views stay, and opens again with others.
func TestStaffEndAContentsMismatch(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		confirm(w, d)
		staff := employee(w)
		stranger := cloud.Caller{Account: cloud.Account{ID: 3, BusinessID: 999, Type: cloud.ClientEmployee}}
		ref, door := stored(t, w, d, "R-1", "PK-1")
		delete(d.Contents, door)
		d.Contents[2] = "LD-000000099"
		tellContents(d, nil)
		unblock := func(c cloud.Caller, door uint) (locker.GridOutput, error) {
			return w.Lockers.Unblock(context.Background(), c, locker.UnblockInput{Device: d.ID, Grid: cell(w, d, door).GridID, Reason: "looked"})
		}
		_, err := unblock(stranger, door)
		require.ErrorContains(t, err, "DEVICE_NOT_FOUND")
		_, err = w.Lockers.SendDeviceCommand(context.Background(), stranger, locker.DeviceCommandInput{Device: d.ID, Type: "reset_tries"})
		require.ErrorContains(t, err, "DEVICE_NOT_FOUND")
		var refused *cloud.Error
		require.ErrorAs(t, check.Input(&locker.DeviceCommandInput{Device: d.ID, Type: "beep"}), &refused)
		require.Contains(t, refused.Fields["type"][0], "reset_tries", "the error says what is allowed")

		shown, err := w.Lockers.FindDevice(context.Background(), staff, d.ID)
		require.NoError(t, err)
		require.Equal(t, cloud.DevContentsMismatch, shown.Device.Exceptions[0].Type)
		require.Equal(t, ref, *shown.Device.Grids[door-1].Mismatch.Cloud)
		require.Nil(t, shown.Device.Grids[door-1].Mismatch.Cabinet)

		out, err := unblock(staff, door)
		require.NoError(t, err)
		require.False(t, out.Grid.Mismatch.OutOfUse)
		require.Equal(t, cloud.GridOccupied, out.Grid.State)
		require.Contains(t, d.Faults(), cloud.DevContentsMismatch, "the other door is left")
		require.Empty(t, d.Cmds)
		_, err = unblock(staff, 2)
		require.NoError(t, err)
		require.Empty(t, d.Faults())
		var body wire.DoorReason
		c := d.Command(&body)
		require.Equal(t, []any{wire.CmdClear, uint(2)}, []any{c.Kind, body.Door})
		d.Versions[2] = c.Versions[2]
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: c.CommandID, Outcome: wire.OutcomeDone})
		delete(d.Contents, 2)
		tellContents(d, nil)
		require.Empty(t, d.Faults(), "the same views are accepted")
		require.Nil(t, cell(w, d, 2).Dispute)
		d.Contents[door] = "LD-000000099"
		tellContents(d, nil)
		require.Contains(t, d.Faults(), cloud.DevContentsMismatch, "others are not")
	})
}

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

// What was ordered while a cabinet was dark, for longer than the order lived, is ordered
// again once the cabinet's own view shows that it does not know it, and only then.
func TestWhatExpiredInTheDarkIsOrderedAgain(t *testing.T) {
	ring.SkipUnlessFull(t, "what commands do that arrive, and what a cabinet's contents are compared with")
	const broken = uint(1)
	block := func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		_, err := w.Lockers.Block(context.Background(), employee(w), locker.BlockInput{Device: d.ID, Grid: cell(w, d, broken).GridID, Reason: "The hinge is bent"})
		require.NoError(t, err)
	}
	suspect := func(s *wire.Status) { s.Blocked = map[uint]string{broken: wire.ReasonSuspect} }
	for name, x := range map[string]struct {
		before, dark func(t *testing.T, w *devicetest.World, d *devicetest.Device) // what happens
		stale, told  func(*wire.Status)                                            // the cabinet's view before and after the order
		kind         wire.CommandKind
	}{
		"out of use": {dark: block, told: func(s *wire.Status) { s.Blocked = map[uint]string{broken: "bent"} }, kind: wire.CmdBlock},
		"in use again": {before: block, dark: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
			_, err := w.Lockers.Unblock(context.Background(), employee(w), locker.UnblockInput{Device: d.ID, Grid: cell(w, d, broken).GridID, Reason: "mended"})
			require.NoError(t, err)
		}, stale: func(s *wire.Status) { s.Blocked = map[uint]string{broken: "bent"} }, kind: wire.CmdUnblock},
		"a lock that is in order again": {dark: func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
			require.NoError(t, w.Store.Decide(context.Background(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
				c, err := v.Compartment(d.ID, broken)
				c.State, c.BlockReason = cloud.GridBlocked, wire.DoorOpenFailed
				return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, err
			}))
			_, err := w.Lockers.Unblock(context.Background(), employee(w), locker.UnblockInput{Device: d.ID, Grid: cell(w, d, broken).GridID, Reason: "looked"})
			require.NoError(t, err)
		}, stale: suspect, kind: wire.CmdUnblock},
		"a deposit that no sensor saw": {before: func(_ *testing.T, w *devicetest.World, d *devicetest.Device) {
			ref := create(w, "R-1", d.Code, "PK-1", "PK-2").DeliveryNumber
			confirm(w, d)
			o := startOpening(w, d, "R-1")
			d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
			st := settlement(o.OpeningID, "PK-1", o.Doors[0])
			other := settlement(o.OpeningID, "PK-2", o.Doors[1])
			st.Doors, st.Packages = append(st.Doors, other.Doors...), append(st.Packages, other.Packages...)
			for i, door := range o.Doors {
				st.Packages[i].Outcome = wire.Unverified
				d.Contents[door] = ref
				d.Versions[door]++
			}
			d.Tell(wire.KindOpeningSettled, st)
			confirm(w, d)
		}, dark: func(t *testing.T, w *devicetest.World, _ *devicetest.Device) {
			_, err := w.Lockers.Confirm(context.Background(), w.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1"})
			require.NoError(t, err)
		}, stale: func(s *wire.Status) {
			for door := range s.Contents {
				s.Unconfirmed = append(s.Unconfirmed, door)
			}
		}, kind: wire.CmdCloseSession},
	} {
		t.Run(name, func(t *testing.T) {
			signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				view := func(f func(*wire.Status)) func(*wire.Status) {
					return func(s *wire.Status) {
						if s.Snapshot = wire.SnapshotOfUse; f != nil {
							f(s)
						}
					}
				}
				d.Tell(wire.KindScan, wire.Scan{Raw: []byte("x")}) // any record: its store is known
				if x.before != nil {
					x.before(t, w, d)
				}
				confirm(w, d)
				drain(d)
				d.Drop()
				x.dark(t, w, d)
				time.Sleep(25 * time.Hour)
				d = w.Connect(d.Code, d.Memory)
				d.Greet(view(x.stale))
				synctest.Wait()
				cmd := devicetest.Wait(t, "the order", d.Cmds)
				require.Equal(t, x.kind, cmd.Kind)
				if body := (wire.CloseSession{}); x.kind == wire.CmdCloseSession {
					require.NoError(t, wire.Decode(cmd.Body, &body))
					require.Len(t, body.Packages, 2, "what the order leaves out was not brought")
				}
				tellContents(d, view(x.stale))
				require.Empty(t, d.Cmds, "while one is on its way no other is sent")
				d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: cmd.CommandID, Outcome: wire.OutcomeDone})
				for door, version := range cmd.Versions {
					d.Versions[door] = version
				}
				for range 3 {
					tellContents(d, view(x.told))
					time.Sleep(10 * time.Minute)
				}
				require.Empty(t, d.Cmds, "what the cabinet knows is not told again")
				if x.kind == wire.CmdUnblock {
					tellContents(d, view(suspect))
					require.Empty(t, d.Cmds, "a lock that the cabinet itself gave up is left to it")
				}
				require.Empty(t, d.Faults())
			})
		})
	}
}

// An order that the cabinet refuses is repeated, but not with every status.
func TestARefusedOrderIsRepeatedOnceAnHour(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindScan, wire.Scan{Raw: []byte("x")})
		confirm(w, d)
		drain(d)
		_, err := w.Lockers.Block(context.Background(), employee(w), locker.BlockInput{Device: d.ID, Grid: cell(w, d, 1).GridID, Reason: "bent"})
		require.NoError(t, err)
		sent := map[string]bool{}
		refuse := func(statuses int, apart time.Duration) {
			for range statuses {
				synctest.Wait()
				for len(d.Cmds) > 0 {
					c := <-d.Cmds
					require.Equal(t, wire.CmdBlock, c.Kind)
					sent[c.CommandID] = true
					d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: c.CommandID, Outcome: wire.OutcomeRefused, Reason: wire.ReasonClock})
				}
				tellContents(d, func(s *wire.Status) { s.Snapshot = wire.SnapshotOfUse })
				time.Sleep(apart)
			}
		}
		refuse(12, time.Second)
		require.Len(t, sent, 1)
		refuse(18, 10*time.Minute)
		require.InDelta(t, 3, len(sent), 1, "once an hour")
	})
}

// A lock that the cabinet gave up by its own rule is left to it, though orders about its
// door were refused or have expired since.
func TestALockGivenUpIsLeftToTheCabinet(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		suspect := func(s *wire.Status) {
			s.Snapshot = wire.SnapshotOfUse
			s.Blocked = map[uint]string{1: wire.ReasonSuspect}
		}
		d.Tell(wire.KindScan, wire.Scan{Raw: []byte("x")})
		create(w, "R-1", d.Code, "PK-1")
		confirm(w, d)
		tellContents(d, suspect)
		drain(d)
		require.Empty(t, d.Cmds)
		zero := 0
		_, err := w.Lockers.OpenDoors(context.Background(), w.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &zero})
		require.NoError(t, err)
		var o wire.OpenDoors
		id := d.Command(&o).CommandID
		require.Equal(t, []uint{1}, o.Doors)
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: id, Outcome: wire.OutcomeRefused, Reason: wire.ReasonClock})
		confirm(w, d)
		require.NotEqual(t, cloud.GridBlocked, cell(w, d, 1).State)
		tellContents(d, suspect)
		require.Empty(t, d.Cmds)
	})
}

func employee(w *devicetest.World) cloud.Caller {
	return cloud.Caller{Account: cloud.Account{ID: 2, BusinessID: w.Box.ProviderCaller.Provider.BusinessID, Type: cloud.ClientEmployee}}
}

// answered answers the orders that came, the same to each, and gives their kinds.
func answered(d *devicetest.Device, outcome, reason string) (kinds []wire.CommandKind) {
	synctest.Wait()
	for len(d.Cmds) > 0 {
		c := <-d.Cmds
		kinds = append(kinds, c.Kind)
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: c.CommandID, Outcome: outcome, Reason: reason})
	}
	return kinds
}

// refusing is what comes within three hours to a cabinet that keeps its view and refuses all.
func refusing(d *devicetest.Device, view func(*wire.Status)) (kinds []wire.CommandKind) {
	for range 18 {
		tellContents(d, view)
		kinds = append(kinds, answered(d, wire.OutcomeRefused, wire.ReasonClock)...)
		time.Sleep(10 * time.Minute)
	}
	return kinds
}

// A confirmation that the cabinet refused is repeated, though its door was to be opened for
// something else since, and did not open.
func TestAConfirmationIsRepeatedAfterAnotherOpening(t *testing.T) {
	ctx, zero := context.Background(), 0
	for name, open := range map[string]func(w *devicetest.World){
		"retrieval": func(w *devicetest.World) {
			_, err := w.Lockers.Retrieve(ctx, w.Box.ProviderCaller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "recall", WaitSeconds: &zero})
			require.NoError(w.T, err)
		},
		"correction": func(w *devicetest.World) { // which waits for the answer
			go func() {
				_, _ = w.Lockers.Correct(ctx, w.Box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "wrong_parcel"})
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				ref := create(w, "R-1", d.Code, "PK-1").DeliveryNumber
				confirm(w, d)
				o := startOpening(w, d, "R-1")
				door := o.Doors[0]
				d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
				st := settlement(o.OpeningID, "PK-1", door)
				st.Packages[0].Outcome = wire.Unverified
				d.Contents[door] = ref
				d.Versions[door]++
				d.Tell(wire.KindOpeningSettled, st)
				confirm(w, d)
				view := func(s *wire.Status) { s.Snapshot = wire.SnapshotOfUse; s.Unconfirmed = []uint{door} }
				_, err := w.Lockers.Confirm(ctx, w.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1"})
				require.NoError(t, err)
				require.Equal(t, []wire.CommandKind{wire.CmdCloseSession}, answered(d, wire.OutcomeRefused, wire.ReasonClock))
				tellContents(d, view)
				open(w)
				var b wire.OpenDoors
				id := d.Command(&b).CommandID
				require.Equal(t, map[string]wire.OpeningKind{"retrieval": wire.OpenStaff, "correction": wire.OpenCorrection}[name], b.Kind)
				d.Versions[door]++
				d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: b.OpeningID, Kind: b.Kind, Doors: b.Doors, CommandID: id, Who: "remote"})
				d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: id, Outcome: wire.OutcomeFailed, Doors: map[uint]string{door: wire.DoorOpenFailed}})
				d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: b.OpeningID, Reason: wire.EndOpenFailed})
				kinds := refusing(d, view)
				require.Equal(t, cloud.DeliveryDelivered, deliveryOf(w, ref).Status)
				require.Contains(t, kinds, wire.CmdCloseSession, "the recipient's code opens nothing, and the order is never repeated")
			})
		})
	}
}

// An unblock that the cabinet refused is repeated, though it obeyed another order about the door.
func TestAnUnblockIsRepeatedAfterAnotherOrder(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx := context.Background()
		suspect := func(s *wire.Status) {
			s.Snapshot = wire.SnapshotOfUse
			s.Blocked = map[uint]string{1: wire.ReasonSuspect}
		}
		d.Tell(wire.KindScan, wire.Scan{Raw: []byte("x")})
		confirm(w, d)
		drain(d)
		require.NoError(t, w.Store.Decide(ctx, d.ID, func(v cloud.View) (*cloud.Changes, error) {
			c, err := v.Compartment(d.ID, 1)
			c.State, c.BlockReason = cloud.GridBlocked, wire.DoorOpenFailed
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, err
		}))
		tellContents(d, suspect)
		_, err := w.Lockers.Unblock(ctx, employee(w), locker.UnblockInput{Device: d.ID, Grid: cell(w, d, 1).GridID, Reason: "mended"})
		require.NoError(t, err)
		require.Equal(t, []wire.CommandKind{wire.CmdUnblock}, answered(d, wire.OutcomeRefused, wire.ReasonClock))
		tellContents(d, suspect)
		// The technician looks inside: the cabinet obeys.
		yes, zero := true, 0
		_, err = w.Lockers.OpenGrids(ctx, employee(w), locker.StaffOpenInput{Device: d.ID, Grids: []cloud.GridID{cell(w, d, 1).GridID}, Reason: "look", Attended: &yes, WaitSeconds: &zero})
		require.NoError(t, err)
		var b wire.OpenDoors
		cmd := d.Command(&b)
		d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: b.OpeningID, Kind: b.Kind, Doors: b.Doors, CommandID: cmd.CommandID, Who: "remote"})
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: cmd.CommandID, Outcome: wire.OutcomeDone})
		d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: b.OpeningID, Reason: wire.EndDone})
		d.Versions[1] = cmd.Versions[1]
		require.Contains(t, refusing(d, suspect), wire.CmdUnblock, "the cloud gives the compartment away, and the cabinet refuses every opening of it")
	})
}

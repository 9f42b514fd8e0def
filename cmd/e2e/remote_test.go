package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/cabinetprofile"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/wire"
)

// remoteActions is what staff do from afar with cabinets on a random day.
var remoteActions = []action{
	{"channel_test", 5, func(w *world, s step, rnd *rand.Rand) { w.channelTest(s, rnd) }},
	{"diagnose", 4, func(w *world, s step, rnd *rand.Rand) {
		kind := pick(rnd, wire.CmdBoardView, wire.CmdSupportBundle)
		_, err := w.server().Lockers.Diagnose(context.Background(), w.staff, locker.DiagnoseInput{Device: w.box.Devices[s.cabinet].DeviceID, Type: string(kind), Reason: "it is slow"})
		w.effect("diagnose", err)
	}},
	{"update", 5, func(w *world, s step, rnd *rand.Rand) { w.sendUpdate(s, rnd) }},
	{"profile", 3, func(w *world, _ step, rnd *rand.Rand) { w.rollOutProfile(rnd) }},
}

// channelTest has staff test a lock. One who stands at the cabinet closes the door that the test
// opens, and touches nothing inside.
func (w *world) channelTest(s step, rnd *rand.Rand) {
	door, yes, occupied, c := uint(1+rnd.IntN(doors)), true, rnd.IntN(4) == 0, w.cabinets[s.cabinet]
	out, err := w.server().Lockers.TestChannel(context.Background(), w.staff, locker.ChannelTestInput{Device: w.box.Devices[s.cabinet].DeviceID, Grid: w.cellOf(c, door).GridID, Reason: "the lock sticks", Attended: &yes, Occupied: occupied})
	w.effect("channel_test", err)
	if err != nil {
		return
	}
	var opening string
	_ = w.server().Store.Look(context.Background(), func(v cloud.View) error {
		list, err := cloud.All(v, cloud.Diagnosis{Kept: cloud.Kept[cloud.DiagnosisID]{BusinessID: w.staff.Account.BusinessID}, DeviceID: w.box.Devices[s.cabinet].DeviceID})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(list, func(d cloud.Diagnosis) bool { return d.ID == out.Diagnosis.ID })
		cmd, err := v.Command(list[at].CommandID)
		opening = cmd.OpeningID
		return err
	})
	w.mu.Lock()
	w.tests = append(w.tests, truth.ChannelTest{Cabinet: c.code, Door: door, OpeningID: opening, At: time.Now(), Occupied: occupied})
	w.mu.Unlock()
	wait := time.Duration(3+rnd.IntN(15)) * time.Second
	w.people.Go(func() {
		time.Sleep(wait)
		if c.pulsedFor(opening) {
			_ = c.sim.CloseDoor(door)
		}
	})
}

// rollOutProfile brings settings to both cabinets, one after the other. One that is cut off
// meanwhile stops the roll-out.
func (w *world) rollOutProfile(rnd *rand.Rand) {
	ctx, s := context.Background(), w.server()
	notice := pick(rnd, "Closed on Sunday", "Open again", "Mind the step")
	session := 300 + 10*len(w.rollouts) // of this roll-out alone
	p, err := collection.MakeCreate(s.Store, cabinetprofile.Fill, cabinetprofile.Show)(ctx, w.staff, cabinetprofile.Input{Name: fmt.Sprint(notice, " ", session), Session: session, Sound: 120, Reopen: 60, Notice: notice})
	w.effect("profile_create", err)
	if err != nil {
		return
	}
	devices := []cloud.DeviceID{w.box.Devices[0].DeviceID, w.box.Devices[1].DeviceID}
	if rnd.IntN(2) == 0 {
		slices.Reverse(devices)
	}
	out, err := s.Lockers.CreateRollout(ctx, w.staff, locker.RolloutInput{Profile: p.Profile.ID, Devices: devices, First: 1, Percent: 100, Healthy: 5, Patience: 10})
	w.effect("rollout", err)
	if err != nil {
		return
	}
	if rnd.IntN(2) == 0 { // the first one loses the network once it has the settings: it does not come to be healthy
		c := w.cabinets[slices.IndexFunc(w.box.Devices, func(d server.SandboxSecrets) bool { return d.DeviceID == devices[0] })]
		w.people.Go(func() {
			for range 240 {
				if time.Sleep(time.Second); c.running().Loop().State().Config.Times.SessionS == uint32(session) {
					c.setCut(true)
					time.Sleep(12 * time.Minute)
					c.setCut(false)
					return
				}
			}
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollouts = append(w.rollouts, rolledOut{out.Rollout.ID, uint32(session)})
}

// rolledOut is a roll-out of settings, and the one of them that no other has.
type rolledOut struct {
	id      cloud.RolloutID
	session uint32
}

// endRollouts waits until no roll-out runs, and says what is not as it is to be: a cabinet that
// has the settings of a roll-out that took them back from it, or lacks those that it was found
// healthy with.
func (w *world) endRollouts() (wrong string) {
	ctx := context.Background()
	for i, x := range w.rollouts {
		var r locker.RolloutDetail
		w.awaits("a roll-out ends", 3*time.Hour, func() bool {
			out, err := w.server().Lockers.FindRollout(ctx, w.staff, locker.ByRollout{ID: x.id})
			r = out.Rollout
			return err == nil && (r.State == cloud.RolloutDone || r.State == cloud.RolloutStopped)
		})
		w.effect("rollout "+string(r.State), nil)
		if i < len(w.rollouts)-1 {
			continue // another one came after it
		}
		for _, d := range r.Devices {
			for k, c := range w.cabinets {
				if w.box.Devices[k].DeviceID != d.DeviceID {
					continue
				}
				if !w.hasNewest(c) {
					if !w.refusesConfig(d.DeviceID) {
						wrong = c.code + ": it has not the newest configuration, and does not refuse it"
					}
					continue
				}
				has := c.agent.Loop().State().Config.Times.SessionS == x.session
				if d.State == cloud.RolloutSkipped && w.wasStolen(c) {
					continue // it was out of use, before it had them or after
				}
				if back := d.Back != nil; has == back && d.State != cloud.RolloutWaiting {
					wrong = c.code + ": its settings are not those of its state in the roll-out: " + string(d.State)
				}
			}
		}
	}
	return wrong
}

// hasNewest waits for a cabinet to have the cloud's newest configuration, and reports whether it
// came to that.
func (w *world) hasNewest(c *cabinet) bool {
	for range 15 * 60 {
		row, err := w.server().Store.FindDeviceByCode(context.Background(), c.code)
		if err == nil && c.agent.Loop().State().Config.Version == row.ConfigVersion {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// refusesConfig reports whether staff see that a cabinet refuses a configuration, as one that
// moves a door that is in use.
func (w *world) refusesConfig(id cloud.DeviceID) (refuses bool) {
	require.NoError(w.t, w.server().Store.Look(context.Background(), func(v cloud.View) error {
		open, err := v.DeviceExceptions(id)
		refuses = slices.ContainsFunc(open, func(x cloud.DeviceException) bool { return x.Type == cloud.DevConfigRefused })
		return err
	}))
	return refuses
}

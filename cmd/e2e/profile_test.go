package e2e

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/cabinetprofile"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// A profile is rolled out to three cabinets, the link of one is cut in the middle: the roll-out
// stops, the cabinet takes its former settings when it is back, and the new ones once staff
// resume. One that refuses the configuration keeps what it has, and the roll-out says why.
func TestProfileIsRolledOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		defer w.close()
		var devices []cloud.DeviceID
		for i, c := range w.cabinets {
			w.ready(c)
			devices = append(devices, w.box.Devices[i].DeviceID)
		}
		ctx := context.Background()
		held := func(c *cabinet) wire.Config { return c.agent.Loop().State().Config }
		notice := func(c *cabinet) string { return held(c).Texts[wire.TextNotice] }
		create := collection.MakeCreate(w.cloud.Store, cabinetprofile.Fill, cabinetprofile.Show)
		change := collection.MakeChange(w.cloud.Store, cabinetprofile.Change, cabinetprofile.Show)
		p, err := create(ctx, w.staff, cabinetprofile.Input{Name: "Stations", Session: 300, Sound: 120, Reopen: 60, Notice: "Closed on Sunday"})
		require.NoError(t, err)
		begin := func() (find func() locker.RolloutDetail, id cloud.RolloutID) {
			out, err := w.cloud.Lockers.CreateRollout(ctx, w.staff, locker.RolloutInput{Profile: p.Profile.ID, Devices: devices, First: 1, Percent: 100, Healthy: 5, Patience: 20})
			require.NoError(t, err)
			return func() locker.RolloutDetail {
				out, err := w.cloud.Lockers.FindRollout(ctx, w.staff, locker.ByRollout{ID: out.Rollout.ID})
				require.NoError(t, err)
				return out.Rollout
			}, out.Rollout.ID
		}
		find, id := begin()
		w.awaits("the first ring", time.Minute, func() bool { return notice(w.cabinets[0]) == "Closed on Sunday" })
		require.EqualValues(t, 300, held(w.cabinets[0]).Times.SessionS)
		lost := w.cabinets[2]
		before := held(lost)
		lost.cut.Store(true)
		lost.drop()
		w.awaits("the second ring", 10*time.Minute, func() bool { return notice(w.cabinets[1]) == "Closed on Sunday" })
		w.awaits("it stops", 30*time.Minute, func() bool { return find().State == cloud.RolloutStopped })
		r := find()
		require.Equal(t, []any{cloud.RolloutStopSilent, cloud.RolloutHealthy, cloud.RolloutHealthy, cloud.RolloutSilent}, []any{*r.Reason, r.Devices[0].State, r.Devices[1].State, r.Devices[2].State})
		lost.cut.Store(false)
		w.ready(lost)
		w.awaits("the former settings", 5*time.Minute, func() bool { return held(lost).Version == *r.Devices[2].Back })
		require.Equal(t, before.Version+2, held(lost).Version)
		require.Equal(t, before.Times, held(lost).Times)
		require.Empty(t, notice(lost))
		require.Equal(t, "Closed on Sunday", notice(w.cabinets[1]), "what is proven stays")
		_, err = w.cloud.Lockers.ResumeRollout(ctx, w.staff, locker.ByRollout{ID: id})
		require.NoError(t, err)
		w.awaits("the rest", 10*time.Minute, func() bool { return find().State == cloud.RolloutDone })
		require.Equal(t, "Closed on Sunday", notice(lost))

		_, err = change(ctx, w.staff, cabinetprofile.Edit{ID: p.Profile.ID, Notice: new("Open again")})
		require.NoError(t, err)
		_, err = w.cloud.Lockers.Configure(ctx, devices[0], func(c *wire.Config) error { c.Layout[0].Board = "Z"; return nil })
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, "Closed on Sunday", notice(w.cabinets[1]), "a change of a profile goes nowhere by itself")
		find, _ = begin()
		w.awaits("it stops", 10*time.Minute, func() bool { return find().State == cloud.RolloutStopped })
		r = find()
		require.Equal(t, []any{cloud.RolloutStopRefused, cloud.RolloutFailed}, []any{*r.Reason, r.Devices[0].State})
		require.Contains(t, *r.Note, "CAB-1")
		require.NotEmpty(t, *r.Devices[0].Reason)
		require.Equal(t, "Closed on Sunday", notice(w.cabinets[0]))
		require.Equal(t, "Closed on Sunday", notice(w.cabinets[1]))
	})
}

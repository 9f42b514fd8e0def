package locker_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// The quick ring plays fewer fleets; -rapid.checks says otherwise.
var _ = flag.Set("rapid.checks", strconv.Itoa(ring.Count(20, 100)))

// fate is what becomes of a cabinet that gets the command, in one life of it.
type fate string

const (
	works    fate = "works"
	there    fate = "there" // it runs the version already
	newer    fate = "newer"
	retired  fate = "retired"
	sick     fate = "sick"    // it goes back
	refuses  fate = "refuses" // the command
	silent   fate = "silent"  // it never answers
	flickers fate = "flickers"
)

// fleet is a business with cabinets of many fates and two nodes.
type fleet struct {
	t       require.TestingT
	db      *store.DB
	nodes   []*locker.Service
	staff   cloud.Caller
	now     time.Time
	devices []cloud.DeviceID
	fates   map[cloud.DeviceID]fate
	sent    map[string]time.Time // by command
	of      map[cloud.DeviceID]int
	id      cloud.RolloutID
}

func (f *fleet) write(ch cloud.Changes) {
	require.NoError(f.t, f.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil }))
}

func newFleet(t require.TestingT, w *webtest.World, business cloud.BusinessID, fates []fate) *fleet {
	f := &fleet{t: t, db: w.DB, now: time.Now().UTC().Truncate(time.Millisecond), fates: map[cloud.DeviceID]fate{}, sent: map[string]time.Time{}, of: map[cloud.DeviceID]int{},
		staff: cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: business, Type: cloud.ClientAdmin, Name: "Ada"}}}
	for range 2 {
		f.nodes = append(f.nodes, locker.New(locker.Config{Store: w.DB, Programs: &programs{}, Log: slog.New(slog.DiscardHandler)}))
	}
	f.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: business, Code: fmt.Sprint("b", business), Name: fmt.Sprint("B", business), Timezone: "UTC"}}}})
	for i, x := range fates {
		d := w.Device
		d.ID, d.BusinessID, d.Code, d.Public = cloud.DeviceID(int64(business)*100+int64(i)), business, fmt.Sprintf("F-%d-%d", business, i), false
		f.devices, f.fates[d.ID] = append(f.devices, d.ID), x
		f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}, Sessions: []cloud.Session{{DeviceID: d.ID, Generation: 1, Node: "n", Online: x != silent}}}})
		version := "v1.3.0"
		switch x {
		case there:
			version = "v1.4.0"
		case newer:
			version = "v1.5.0"
		}
		f.says(d.ID, version, "")
	}
	return f
}

func (f *fleet) says(id cloud.DeviceID, version, givenUp string) {
	f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: id, Firmware: version, Program: &cloud.DeviceProgram{Platform: "linux/arm64", Updates: true, GivenUp: givenUp, Reason: "crash"}}}}})
}

// begin creates the roll-out, and retires what retires.
func (f *fleet) begin(in locker.RolloutInput) {
	out, err := f.nodes[0].CreateRollout(ctx, f.staff, in)
	require.NoError(f.t, err)
	f.id = out.Rollout.ID
	for id, x := range f.fates {
		if x == retired {
			var d cloud.Device
			require.NoError(f.t, f.db.Look(ctx, func(v cloud.View) (err error) { d, err = v.Device(id); return err }))
			d.RetiredAt = f.now
			f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
		}
	}
}

// step lets both nodes make one at the same time.
func (f *fleet) step() {
	var wg sync.WaitGroup
	errs := make([]error, len(f.nodes))
	for i, n := range f.nodes {
		wg.Go(func() { errs[i] = n.StepRollouts(ctx, f.db, f.now) })
	}
	wg.Wait()
	require.NoError(f.t, errors.Join(errs...))
}

// live lets cabinets do what they do with the commands that they have.
func (f *fleet) live() {
	for _, id := range f.devices {
		var open []cloud.Command
		require.NoError(f.t, f.db.Look(ctx, func(v cloud.View) (err error) { open, err = v.OpenCommands(id); return err }))
		for _, c := range open {
			require.Equal(f.t, wire.CmdUpdate, c.Kind)
			if _, known := f.sent[c.ID]; !known {
				f.sent[c.ID] = f.now
				f.of[id]++
			}
			end := func(state cloud.CommandState, reason string) {
				c.State, c.Reason, c.EndedAt = state, reason, f.now
				f.write(cloud.Changes{LockerChanges: cloud.LockerChanges{Commands: []cloud.Command{c}}})
			}
			switch f.fates[id] {
			case works, flickers:
				end(cloud.CommandDone, "")
				f.says(id, "v1.4.0", "")
			case sick:
				end(cloud.CommandDone, "")
				f.says(id, "v1.3.0", "1.4.0")
			case refuses:
				end(cloud.CommandRefused, wire.ReasonDisk)
			}
		}
	}
	for _, id := range f.devices {
		if f.fates[id] == flickers { // away for a moment, once
			f.fates[id] = works
			f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: id, Generation: 1, Node: "n", Online: false}}}})
			f.step()
			f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: id, Generation: 1, Node: "n", Online: true}}}})
		}
	}
}

func (f *fleet) find() locker.RolloutDetail {
	out, err := f.nodes[1].FindRollout(ctx, f.staff, locker.ByRollout{ID: f.id})
	require.NoError(f.t, err)
	return out.Rollout
}

// judge holds a roll-out against what must be so at every moment.
func (f *fleet) judge(r locker.RolloutDetail, resumed int) {
	for _, d := range r.Devices {
		require.LessOrEqual(f.t, f.of[d.DeviceID], 1+resumed, "one command for each try")
		if d.Ring > r.Ring {
			require.Equal(f.t, cloud.RolloutWaiting, d.State, "its ring has not begun")
			require.Zero(f.t, f.of[d.DeviceID])
		}
		if d.Ring < r.Ring || r.State == cloud.RolloutDone {
			require.Contains(f.t, []cloud.RolloutDeviceState{cloud.RolloutHealthy, cloud.RolloutSkipped, cloud.RolloutRolledBack}, d.State)
		}
		if d.State == cloud.RolloutHealthy {
			require.Equal(f.t, "v1.4.0", d.Now)
		}
	}
}

// Whatever becomes of cabinets, and whichever node steps when: rings follow each other, each
// try is one command, and a roll-out ends or says which fate stopped it.
func TestRolloutsGoRingByRing(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, w *webtest.World) {
		business := cloud.BusinessID(1000)
		rapid.Check(t, func(t *rapid.T) {
			business++
			fates := rapid.SliceOfN(rapid.SampledFrom([]fate{works, works, works, works, flickers, there, newer, retired, sick, refuses, silent}), 1, 12).Draw(t, "fates")
			f := newFleet(t, w, business, fates)
			f.begin(locker.RolloutInput{Version: "1.4.0", First: rapid.IntRange(1, 4).Draw(t, "first"), Percent: rapid.IntRange(1, 100).Draw(t, "percent"), Healthy: 30, Patience: 300})
			resumed := 0
			for range 200 {
				f.step()
				f.live()
				f.now = f.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
				r := f.find()
				f.judge(r, resumed)
				if r.State == cloud.RolloutDone {
					break
				}
				if r.State == cloud.RolloutRunning {
					continue
				}
				bad := slices.IndexFunc(r.Devices, func(d locker.RolloutDeviceBody) bool {
					return d.Ring == r.Ring && d.State == map[cloud.RolloutStop]cloud.RolloutDeviceState{cloud.RolloutStopFailed: cloud.RolloutFailed, cloud.RolloutStopRolledBack: cloud.RolloutRolledBack, cloud.RolloutStopSilent: cloud.RolloutSilent}[*r.Reason]
				})
				require.GreaterOrEqual(t, bad, 0, "%v", r)
				before := fmt.Sprint(f.of)
				f.now = f.now.Add(time.Hour)
				f.step()
				f.live()
				require.Equal(t, before, fmt.Sprint(f.of), "nothing is sent while it is stopped")
				for _, d := range r.Devices { // people mend what they can
					if x := f.fates[d.DeviceID]; x == refuses || x == silent {
						f.fates[d.DeviceID] = works
						f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: d.DeviceID, Generation: 1, Node: "n", Online: true}}}})
					}
				}
				_, err := f.nodes[0].ResumeRollout(ctx, f.staff, locker.ByRollout{ID: f.id})
				require.NoError(t, err)
				resumed++
			}
			require.Equal(t, cloud.RolloutDone, f.find().State)
			for i, id := range f.devices {
				want := map[fate]cloud.RolloutDeviceState{newer: cloud.RolloutSkipped, retired: cloud.RolloutSkipped, sick: cloud.RolloutRolledBack}[fates[i]]
				if want == "" {
					want = cloud.RolloutHealthy
				}
				require.Equal(t, want, f.find().Devices[i].State, "%d %s", id, fates[i])
			}
		})
	}
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); run(t, webtest.New(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); run(t, webtest.NewOn(t, storetest.OpenSecondPostgres(t))) })
}

// What cannot be rolled out is refused, with the reason; a business has one that runs.
func TestRolloutsAreRefused(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	f := newFleet(t, w, 1001, []fate{works, works})
	good := locker.RolloutInput{Version: "1.4.0", First: 1, Percent: 10, Healthy: 30, Patience: 300}
	create := func(change func(*locker.RolloutInput)) string {
		in := good
		change(&in)
		_, err := f.nodes[0].CreateRollout(ctx, f.staff, in)
		return code(err)
	}
	require.Equal(t, "VALIDATION_FAILED", create(func(in *locker.RolloutInput) { in.Patience = in.Healthy }))
	require.Equal(t, "VALIDATION_FAILED", create(func(in *locker.RolloutInput) { in.Version = "one" }))
	require.Equal(t, "VALIDATION_FAILED", create(func(in *locker.RolloutInput) { in.Devices = []cloud.DeviceID{f.devices[0], f.devices[0]} }))
	require.Equal(t, "RELEASE_NOT_FOUND", create(func(in *locker.RolloutInput) { in.Version = "1.9.0" }))
	require.Equal(t, "DEVICE_NOT_FOUND", create(func(in *locker.RolloutInput) { in.Devices = []cloud.DeviceID{88} }), "of another business")
	other := newFleet(t, w, 1002, nil)
	_, err := other.nodes[0].CreateRollout(ctx, other.staff, good)
	require.Equal(t, "UPDATE_NOT_POSSIBLE", code(err), "no cabinet takes updates")
	f.begin(good)
	require.Equal(t, "ROLLOUT_EXISTS", create(func(*locker.RolloutInput) {}))
	_, err = other.nodes[0].FindRollout(ctx, other.staff, locker.ByRollout{ID: f.id})
	require.Equal(t, "ROLLOUT_NOT_FOUND", code(err))
	_, err = f.nodes[0].ResumeRollout(ctx, f.staff, locker.ByRollout{ID: f.id})
	require.Equal(t, "ROLLOUT_STATE_CONFLICT", code(err))
	_, err = f.nodes[0].StopRollout(ctx, f.staff, locker.RolloutStopInput{ID: f.id, Reason: "wait"})
	require.NoError(t, err)
	r := f.find()
	require.Equal(t, []any{cloud.RolloutStopped, cloud.RolloutStopAsked, "wait"}, []any{r.State, *r.Reason, *r.Note})
	f.step()
	f.live()
	require.Empty(t, f.sent)
	first := f.id
	f.begin(good)
	_, err = f.nodes[0].ResumeRollout(ctx, f.staff, locker.ByRollout{ID: first})
	require.Equal(t, "ROLLOUT_EXISTS", code(err))
	list, err := f.nodes[0].ListRollouts(ctx, f.staff, locker.RolloutsInput{State: cloud.RolloutStopped})
	require.NoError(t, err)
	require.Len(t, list.Rollouts, 1)
	require.Equal(t, 2, list.Rollouts[0].Total)
}

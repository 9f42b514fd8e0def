package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/backup"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// backup takes a backup of the running cloud.
func (w *world) backup() (target object.Store, m backup.Manifest) {
	w.t.Helper()
	target, err := object.OpenFolder(filepath.Join(w.dir, "copies"))
	require.NoError(w.t, err)
	m, err = w.server().NewBackups(target).Take(context.Background())
	require.NoError(w.t, err)
	return target, m
}

// restore puts what a backup holds in the place of the cloud, which is lost.
func (w *world) restore(from object.Store, m backup.Manifest) {
	w.t.Helper()
	w.outage("restore", func() {
		w.stopCloud()
		dir := filepath.Join(w.dir, "cloud")
		keys, err := os.ReadFile(filepath.Join(dir, "keys.json"))
		require.NoError(w.t, err)
		require.NoError(w.t, os.RemoveAll(dir))
		require.NoError(w.t, os.Mkdir(dir, 0o700))
		files, err := object.OpenFolder(filepath.Join(dir, "files"))
		require.NoError(w.t, err)
		_, err = backup.Restore(context.Background(), backup.RestoreConfig{Source: from, Keys: keys, KeysFile: filepath.Join(dir, "keys.json"), Database: store.Config{Dir: dir}, Files: files})
		require.NoError(w.t, errors.Join(err, files.Close()))
		w.forgotten = append(w.forgotten, truth.Span{At: m.TakenAt, Until: time.Now(), What: "forgotten"})
		w.startCloud()
	})
}

// point keeps the state of the cloud, and gives how to go back to it: by a backup of this
// product, or to a snapshot, after which the command is run that says so.
func (w *world) point(seed uint64) (back func(), at time.Time) {
	if seed%3 == 1 {
		snapshot, at := w.keep()
		for _, c := range w.cabinets {
			w.ready(c)
		}
		return func() { w.goBack(snapshot, at, w.sayRecovered(at)) }, at
	}
	from, m := w.backup()
	w.t.Cleanup(func() { _ = from.Close() })
	return func() { w.restore(from, m) }, m.TakenAt
}

// sayRecovered does what the command does that is run after a database was recovered.
func (w *world) sayRecovered(at time.Time) func(dir string) {
	return func(dir string) {
		s, err := server.New(context.Background(), server.Config{Dir: dir, Node: "one", Log: w.logs.With("side", "cloud"), Recovered: at})
		require.NoError(w.t, err)
		require.NoError(w.t, errors.Join(s.Broker.Close(), s.Store.Close()))
	}
}

// steps plays actions, one after the other, each to its end.
func (w *world) steps(seed uint64, what ...string) {
	for i, name := range what {
		at := slices.IndexFunc(actions, func(a action) bool { return a.name == name })
		s := step{what: name, cabinet: i % len(w.cabinets), seed: seed*1000 + uint64(i)}
		actions[at].do(w, s, rand.New(rand.NewPCG(s.seed, 9)))
		w.people.Wait()
		time.Sleep(5 * time.Second)
	}
}

// A cloud is restored from a backup while cabinets are ahead of it: they brought, opened
// and gave out parcels since, took codes, commands and a configuration. In the end cabinets
// and cloud agree on all of it, what was undone by the restore is undone at the cabinet too, every door
// works, and nothing that was over by the backup happens again.
func TestRestoredCloudAndItsCabinetsAgree(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	t.Parallel()
	for seed := range uint64(ring.Among(1, 2, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, 2)
				defer w.close()
				w.leavesOutgoing = true
				for _, c := range w.cabinets {
					w.awaits("cabinet online and read", 5*time.Minute, func() bool { return w.cloud.Devices.Online(c.code) && c.agent.Loop().State().Doors[1].Known })
				}
				time.Sleep(5 * time.Second)
				w.steps(seed, "deposit", "deposit", "deposit_code", "deposit_code", "announce", "announce", "staff_open", "rotate", "configure", "collect")
				back, at := w.point(seed)
				old := map[*task]int{}
				for _, x := range w.tasks {
					old[x] = len(x.former)
				}
				w.steps(seed+10, "bring_code", "bring", "collect", "collect_qr", "rotate", "rotate", "configure", "configure", "staff_open", "staff_open", "drop", "drop", "wrong_codes", "vandal")
				time.Sleep(time.Minute)
				back()
				if seed%2 == 1 { // and it is lost once more, with what it did since
					w.heard()
					w.steps(seed+30, "configure", "configure", "rotate", "rotate", "staff_open", "staff_open", "collect", "kill")
					back()
				}
				for _, x := range w.tasks {
					x.former = x.former[:old[x]] // what was rotated since is not
				}
				w.heard()
				commands := w.commandsSince(at)
				require.Zero(t, commands, "a command of before the backup was sent again")
				w.steps(seed+20, "configure", "configure", "staff_open", "staff_open", "rotate", "rotate", "collect", "former_code", "bring", "bring_code", "deposit", "deposit_code")
				w.settleDown()
				for _, c := range w.cabinets {
					d, err := w.cloud.Store.FindDeviceByCode(t.Context(), c.code)
					require.NoError(t, err)
					require.Equal(t, d.ConfigVersion, c.agent.Loop().State().Config.Version)
					stats, err := w.cloud.Store.JournalStats(t.Context(), d.ID)
					require.NoError(t, err)
					require.Zero(t, stats.Missing, "all that the cabinets still had is stored again")
				}
				v := w.verdict()
				require.True(t, v.OK(), "%v", v)
				require.Empty(t, w.tryEveryDoor())
			})
		})
	}
}

// A parcel of a delivery that the cloud has forgotten is for staff: they are shown that
// something lies there, nothing else is put on top of it, and once they took it out the
// compartment is in use again.
func TestRestoredCloudLeavesForgottenParcelsToStaff(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		kept, _ := w.deposited(c, "KEPT")
		from, m := w.backup()
		defer from.Close()
		lost, door := w.deposited(c, "LOST")
		w.restore(from, m)
		w.ready(c)
		w.awaits("the mismatch is shown", 15*time.Minute, func() bool { return w.faults()[cloud.DevContentsMismatch] })
		require.NotEqual(t, wire.CodeOK, c.try(lost).Outcome, "the code ended with its delivery")
		require.NotNil(t, w.cellOf(c, door).Dispute)
		for i := range doors - 2 { // all other compartments, and no more
			_, at := w.deposited(c, fmt.Sprint("NEW-", i))
			require.NotEqual(t, door, at)
		}
		require.Equal(t, wire.CodeOK, c.try(kept).Outcome)
	})
}

// Commands that waited when the backup was taken are over, however soon it is restored.
func TestRestoredCloudSendsNoCommandOfBefore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		c.setCut(true)
		_, _ = w.command(0, 2, wire.CmdOpenDoors, nil)
		_, _ = w.command(0, 3, "beep", wire.DoorReason{Reason: "hello"})
		from, m := w.backup()
		defer from.Close()
		w.restore(from, m)
		c.setCut(false)
		w.ready(c)
		time.Sleep(time.Minute)
		require.Zero(t, w.commandsSince(m.TakenAt))
		require.Zero(t, w.verdict().Coils, "a lock was pulsed")
		_, door := w.deposited(c, "AFTER")
		require.NotZero(t, door)
	})
}

// heard waits until the cloud has all that the cabinets have for it.
func (w *world) heard() {
	for _, c := range w.cabinets {
		w.awaits(c.code+" is heard", 15*time.Minute, func() bool { return w.cloud.Devices.Online(c.code) && c.agent.Store().Backlog() == [2]uint64{} })
	}
	time.Sleep(time.Minute)
}

// commandsSince counts open commands that were made before a time and are still to be sent.
func (w *world) commandsSince(at time.Time) (n int) {
	for _, d := range w.box.Devices {
		var open []cloud.Command
		require.NoError(w.t, w.cloud.Store.Look(context.Background(), func(v cloud.View) (err error) {
			open, err = v.OpenCommands(d.DeviceID)
			return err
		}))
		for _, c := range open {
			if c.IssuedAt.Before(at) && c.ExpiresAt.After(time.Now()) {
				n++
			}
		}
	}
	return n
}

// keep takes a copy of the cloud's folder, as a snapshot of its disk is.
func (w *world) keep() (snapshot string, at time.Time) {
	w.t.Helper()
	snapshot = filepath.Join(w.dir, "snapshot")
	w.outage("snapshot", func() {
		w.stopCloud()
		at = time.Now()
		require.NoError(w.t, os.CopyFS(snapshot, os.DirFS(filepath.Join(w.dir, "cloud"))))
		w.startCloud()
	})
	return snapshot, at
}

// goBack puts a copy in the place of the cloud's folder. before is done before the cloud
// starts on it; nil: nothing.
func (w *world) goBack(snapshot string, at time.Time, before func(dir string)) {
	w.t.Helper()
	w.outage("restore", func() {
		w.stopCloud()
		dir := filepath.Join(w.dir, "cloud")
		require.NoError(w.t, os.RemoveAll(dir))
		require.NoError(w.t, os.CopyFS(dir, os.DirFS(snapshot)))
		if before != nil {
			before(dir)
		}
		w.forgotten = append(w.forgotten, truth.Span{At: at, Until: time.Now(), What: "forgotten"})
		w.startCloud()
	})
}

// A database that went back by other means than a backup of this product, as to a snapshot,
// goes on by what the cabinets say that they hold: openings, orders and configurations are
// not overtaken.
func TestADatabaseThatWentBackGoesOnByWhatCabinetsHold(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		snapshot, at := w.keep()
		w.ready(c)
		for i := range 4 {
			w.steps(uint64(i), "staff_open", "configure")
		}
		time.Sleep(time.Minute)
		held := c.agent.Loop().State().Config.Version
		w.goBack(snapshot, at, nil)
		w.ready(c)
		w.heard()
		d, err := w.cloud.Store.FindDeviceByCode(t.Context(), c.code)
		require.NoError(t, err)
		require.Greater(t, d.ConfigVersion, held, "the cloud's own is the newest")
		w.awaits("the cloud's configuration is taken", 15*time.Minute, func() bool { return c.agent.Loop().State().Config.Version == d.ConfigVersion })
		for door := range uint(doors) {
			opening, _ := w.command(0, door+1, wire.CmdOpenDoors, nil)
			w.awaits("the lock is pulsed", time.Minute, func() bool { return c.pulsedFor(opening) })
			time.Sleep(time.Second)
			require.NoError(t, c.sim.CloseDoor(door+1))
			time.Sleep(10 * time.Second)
		}
		require.True(t, w.verdict().OK())
	})
}

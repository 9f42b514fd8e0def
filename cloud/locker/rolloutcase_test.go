package locker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webtest"
)

// online has a device connected or not.
func (f *fleet) online(id cloud.DeviceID, on bool) {
	f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: id, Generation: 1, Node: "n", Online: on}}}})
}

// open are the commands of a device without an outcome.
func (f *fleet) open(id cloud.DeviceID) (open []cloud.Command) {
	require.NoError(f.t, f.db.Look(ctx, func(v cloud.View) (err error) { open, err = v.OpenCommands(id); return err }))
	return open
}

func (f *fleet) pause() {
	_, err := f.nodes[0].StopRollout(ctx, f.staff, locker.RolloutStopInput{ID: f.id, Reason: "night"})
	require.NoError(f.t, err)
}

func (f *fleet) resume() {
	_, err := f.nodes[0].ResumeRollout(ctx, f.staff, locker.ByRollout{ID: f.id})
	require.NoError(f.t, err)
}

// Cases that no random fate of a cabinet leads to.
func TestCasesOfRollouts(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	in := locker.RolloutInput{Version: "1.4.0", First: 1, Percent: 10, Healthy: 30, Patience: 300}
	wide := in
	wide.Percent = 100
	n := cloud.BusinessID(2000)
	test := func(name string, fates []fate, do func(t *testing.T, f *fleet)) {
		n += 10
		from := n
		t.Run(name, func(t *testing.T) { do(t, newFleet(t, w, from, fates)) })
	}
	test("patience begins anew with a resume", []fate{works, works}, func(t *testing.T, f *fleet) {
		f.begin(in)
		f.step()
		f.pause()
		f.now = f.now.Add(12 * time.Hour)
		f.resume()
		f.step()
		require.Equal(t, cloud.RolloutRunning, f.find().State)
		require.Len(t, f.open(f.devices[0]), 1)
	})
	test("health begins anew with a resume", []fate{works, works}, func(t *testing.T, f *fleet) {
		f.begin(in)
		f.step()
		f.live()
		f.step()
		f.pause()
		f.online(f.devices[0], false)
		f.now = f.now.Add(2 * time.Hour)
		f.step()
		f.online(f.devices[0], true)
		f.resume()
		f.step()
		require.Empty(t, f.open(f.devices[1]))
	})
	test("a resume sends nothing beside a command that is open", []fate{works, works}, func(t *testing.T, f *fleet) {
		f.begin(in)
		f.step()
		f.now = f.now.Add(301 * time.Minute)
		f.step()
		require.Equal(t, cloud.RolloutStopped, f.find().State)
		f.resume()
		f.step()
		require.Len(t, f.open(f.devices[0]), 1)
	})
	test("installed by hand and on trial: no command", []fate{works, works}, func(t *testing.T, f *fleet) {
		f.begin(in)
		f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: f.devices[0], Firmware: "v1.4.0", Program: &cloud.DeviceProgram{Platform: "linux/arm64", Updates: true, Trial: true}}}}})
		f.step()
		require.Empty(t, f.open(f.devices[0]))
		require.Equal(t, cloud.RolloutRunning, f.find().State)
	})
	test("the version runs, and the connection is away: no command", []fate{there, works}, func(t *testing.T, f *fleet) {
		f.online(f.devices[0], false)
		f.begin(in)
		f.step()
		require.Empty(t, f.open(f.devices[0]))
	})
	test("a first device that has proven nothing is followed by one other", []fate{newer, works, works, works}, func(t *testing.T, f *fleet) {
		f.begin(wide)
		f.step()
		require.Len(t, f.open(f.devices[1]), 1)
		require.Empty(t, append(f.open(f.devices[2]), f.open(f.devices[3])...))
	})
	test("a version that went back everywhere is tried by one at a time", []fate{sick, works, works}, func(t *testing.T, f *fleet) {
		f.begin(wide)
		f.step()
		f.live()
		f.step()
		require.Equal(t, cloud.RolloutStopped, f.find().State)
		f.resume()
		f.step()
		require.Len(t, f.open(f.devices[1]), 1)
		require.Empty(t, f.open(f.devices[2]))
	})
	test("what the hardware before this one said counts for nothing", []fate{works, works}, func(t *testing.T, f *fleet) {
		f.says(f.devices[0], "v1.3.0", "1.4.0")
		_, err := f.nodes[0].ReplaceHardware(ctx, f.staff, locker.ReplaceInput{Device: f.devices[0], Reason: "broken"})
		require.NoError(t, err)
		f.begin(in)
		f.step()
		require.Equal(t, cloud.RolloutRunning, f.find().State)
	})
	test("a program that cannot be found for one device keeps no other one waiting, and not for ever", []fate{works, works}, func(t *testing.T, f *fleet) {
		first := in
		first.First = 2
		f.begin(first)
		broken := cloud.DeviceProgram{Platform: "linux/broken", Updates: true}
		f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: f.devices[0], Firmware: "v1.3.0", Program: &broken}}}})
		require.ErrorContains(t, f.nodes[0].StepRollouts(ctx, f.db, f.now), "the disk does not answer")
		require.Empty(t, f.open(f.devices[0]))
		require.Len(t, f.open(f.devices[1]), 1)
		f.now = f.now.Add(301 * time.Minute)
		require.NoError(t, f.nodes[0].StepRollouts(ctx, f.db, f.now))
		require.Equal(t, cloud.RolloutStopped, f.find().State)
	})
	test("an empty list is not all", []fate{works, works}, func(t *testing.T, f *fleet) {
		none := in
		none.Devices = []cloud.DeviceID{}
		_, err := f.nodes[0].CreateRollout(ctx, f.staff, none)
		require.Equal(t, "VALIDATION_FAILED", code(err))
	})
}

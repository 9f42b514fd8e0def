package locker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/wire"
)

// More fates of cabinets that get a configuration.
const (
	moved fate = "moved" // staff change its layout in the middle
	back  fate = "back"  // away at first, and connected again after some time
)

// profile is one that the fleet's business has.
func (f *fleet) profile(s cloud.CabinetSettings, revision int64) cloud.CabinetProfileID {
	id := cloud.CabinetProfileID(int64(f.staff.Account.BusinessID)*10 + 1)
	p := cloud.CabinetProfile{Name: "Stations", Revision: revision, Settings: s}
	p.Begin(int64(id), f.staff.Account.BusinessID, f.now)
	f.write(cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{p}}})
	return id
}

func (f *fleet) device(id cloud.DeviceID) (d cloud.Device) {
	require.NoError(f.t, f.db.Look(ctx, func(v cloud.View) (err error) { d, err = v.Device(id); return err }))
	return d
}

func (f *fleet) conf(id cloud.DeviceID) (c wire.Config) {
	require.NoError(f.t, wire.Decode(f.device(id).Config, &c))
	return c
}

// cabinets is the judge's own view of what cabinets hold.
type cabinets struct {
	*fleet
	holds    map[cloud.DeviceID]wire.Config // that the cabinet has applied
	versions map[cloud.DeviceID]uint64      // newest that the cloud ever had
	tries    map[cloud.DeviceID]int         // versions with the roll-out's notice
	away     map[cloud.DeviceID]bool
}

func newCabinets(f *fleet) *cabinets {
	c := &cabinets{fleet: f, holds: map[cloud.DeviceID]wire.Config{}, versions: map[cloud.DeviceID]uint64{}, tries: map[cloud.DeviceID]int{}, away: map[cloud.DeviceID]bool{}}
	for _, id := range f.devices {
		d := f.device(id)
		conf := wire.Config{Version: 7, DeviceCode: d.Code, Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}, Texts: map[string]string{"other": "kept", wire.TextNotice: "old"},
			Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Times: wire.Times{SessionS: 500, PulseMS: 400}}
		d.Config, d.ConfigVersion = wire.MustEncode(conf), conf.Version
		f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
		c.holds[id], c.versions[id] = conf, 7
		c.said(id)
		if x := f.fates[id]; x == silent || x == back {
			c.away[id] = true
			f.online(id, false)
		}
	}
	return c
}

// said is the cabinet's status.
func (c *cabinets) said(id cloud.DeviceID) {
	c.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: id, StatusAt: c.now, Applied: c.holds[id].Version, Firmware: "v1.3.0"}}}})
}

// live lets cabinets that are connected take what the cloud has, or refuse it.
func (c *cabinets) live() {
	for _, id := range c.devices {
		conf := c.conf(id)
		require.GreaterOrEqual(c.t, conf.Version, c.versions[id], "versions never go back")
		if conf.Version > c.versions[id] && conf.Texts[wire.TextNotice] == "new" && c.holds[id].Texts[wire.TextNotice] != "new" {
			c.tries[id]++
		}
		c.versions[id] = conf.Version
		require.Equal(c.t, "kept", conf.Texts["other"])
		require.EqualValues(c.t, 400, conf.Times.PulseMS)
		if c.away[id] || conf.Version <= c.holds[id].Version {
			continue
		}
		if c.fates[id] == refuses && conf.Texts[wire.TextNotice] == "new" {
			c.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{{DeviceID: id, Type: cloud.DevConfigRefused,
				Detail: fmt.Sprintf("version %d: door 1 is occupied or open and cannot be moved", conf.Version), OpenedAt: c.now, SeenAt: c.now}}}})
			continue
		}
		c.holds[id] = conf
		c.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{{DeviceID: id, Type: cloud.DevConfigRefused, ClosedAt: c.now}}}})
		c.said(id)
		switch c.fates[id] {
		case flickers:
			c.fates[id] = works
			c.online(id, false)
			c.step()
			c.online(id, true)
		case moved:
			c.fates[id] = works
			d := c.device(id)
			next := c.conf(id)
			next.Version++
			d.Config, d.ConfigVersion = wire.MustEncode(next), next.Version
			c.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
		}
	}
}

func (c *cabinets) judge(r locker.RolloutDetail, resumed int) {
	for i, d := range r.Devices {
		notice := c.conf(d.DeviceID).Texts[wire.TextNotice]
		require.LessOrEqual(c.t, c.tries[d.DeviceID], 1+resumed, "one version for each try")
		switch {
		case d.Ring > r.Ring:
			require.Equal(c.t, cloud.RolloutWaiting, d.State)
			require.Equal(c.t, "old", notice, "its ring has not begun")
		case d.State == cloud.RolloutHealthy:
			require.Equal(c.t, "new", c.holds[d.DeviceID].Texts[wire.TextNotice])
			require.EqualValues(c.t, 300, c.holds[d.DeviceID].Times.SessionS)
			require.Equal(c.t, []wire.Hours{{Day: 1, Open: "06:00", Close: "22:00"}}, c.holds[d.DeviceID].Hours)
		case r.State == cloud.RolloutStopped:
			require.Equal(c.t, "old", notice, "%d %v: it is not proven, and goes back", i, d)
			require.EqualValues(c.t, 500, c.conf(d.DeviceID).Times.SessionS)
			require.Empty(c.t, c.device(d.DeviceID).Profile.Hours)
		}
		if d.Ring < r.Ring || r.State == cloud.RolloutDone {
			require.Contains(c.t, []cloud.RolloutDeviceState{cloud.RolloutHealthy, cloud.RolloutSkipped}, d.State)
		}
	}
}

// Whatever becomes of cabinets, and whichever node steps when: settings of a profile go ring by
// ring, versions never go back, and where a roll-out stops by itself, every cabinet that has not
// proven the settings has its former ones.
func TestProfilesGoRingByRing(t *testing.T) {
	t.Parallel()
	settings := cloud.CabinetSettings{SessionS: 300, Notice: "new", Hours: []cloud.OpeningHours{{Day: 1, Open: "06:00", Close: "22:00"}}}
	run := func(t *testing.T, w *webtest.World) {
		business := cloud.BusinessID(5000)
		rapid.Check(t, func(t *rapid.T) {
			business++
			fates := rapid.SliceOfN(rapid.SampledFrom([]fate{works, works, works, flickers, moved, retired, refuses, silent, back}), 1, 10).Draw(t, "fates")
			c := newCabinets(newFleet(t, w, business, fates))
			c.begin(locker.RolloutInput{Profile: c.profile(settings, 3), First: rapid.IntRange(1, 4).Draw(t, "first"), Percent: rapid.IntRange(1, 100).Draw(t, "percent"), Healthy: 30, Patience: 300})
			c.profile(cloud.CabinetSettings{Notice: "newest"}, 4) // which the roll-out does not bring
			resumed := 0
			for round := range 300 {
				c.step()
				c.live()
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
				for _, id := range c.devices {
					if c.fates[id] == back && round > 5 {
						c.fates[id], c.away[id] = works, false
						c.online(id, true)
					}
				}
				r := c.find()
				c.judge(r, resumed)
				if r.State == cloud.RolloutDone {
					break
				}
				if r.State == cloud.RolloutRunning {
					continue
				}
				require.True(t, slices.ContainsFunc(r.Devices, func(d locker.RolloutDeviceBody) bool {
					return d.Ring == r.Ring && d.Back != nil && d.State == map[cloud.RolloutStop]cloud.RolloutDeviceState{cloud.RolloutStopRefused: cloud.RolloutFailed, cloud.RolloutStopSilent: cloud.RolloutSilent}[*r.Reason]
				}), "%v", r)
				c.now = c.now.Add(time.Hour)
				c.step()
				c.live()
				c.judge(c.find(), resumed)
				for _, d := range r.Devices { // people mend what they can
					if x := c.fates[d.DeviceID]; x == refuses || x == silent || x == back {
						c.fates[d.DeviceID], c.away[d.DeviceID] = works, false
						c.online(d.DeviceID, true)
					}
				}
				c.live()
				_, err := c.nodes[0].ResumeRollout(ctx, c.staff, locker.ByRollout{ID: c.id})
				require.NoError(t, err)
				resumed++
			}
			require.Equal(t, cloud.RolloutDone, c.find().State)
			for i, id := range c.devices {
				want := cloud.RolloutHealthy
				if fates[i] == retired {
					want = cloud.RolloutSkipped
				}
				require.Equal(t, want, c.find().Devices[i].State, "%d %s", id, fates[i])
			}
		})
	}
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); run(t, webtest.New(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); run(t, webtest.NewOn(t, storetest.OpenSecondPostgres(t))) })
}

// A roll-out brings one thing, to devices that take it.
func TestRolloutsOfProfilesAreRefused(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	f := newFleet(t, w, 6001, []fate{works, works})
	profile := f.profile(cloud.CabinetSettings{Notice: "new"}, 1)
	good := locker.RolloutInput{Profile: profile, First: 1, Percent: 10, Healthy: 30, Patience: 300}
	create := func(f *fleet, change func(*locker.RolloutInput)) string {
		in := good
		change(&in)
		_, err := f.nodes[0].CreateRollout(ctx, f.staff, in)
		return code(err)
	}
	require.Equal(t, "VALIDATION_FAILED", create(f, func(in *locker.RolloutInput) { in.Version = "1.4.0" }), "both")
	require.Equal(t, "VALIDATION_FAILED", create(f, func(in *locker.RolloutInput) { in.Profile = 0 }), "neither")
	require.Equal(t, "CABINET_PROFILE_NOT_FOUND", create(f, func(in *locker.RolloutInput) { in.Profile++ }))
	other := newFleet(t, w, 6002, []fate{works})
	require.Equal(t, "CABINET_PROFILE_NOT_FOUND", create(other, func(*locker.RolloutInput) {}), "of another business")
	require.Equal(t, "DEVICE_NOT_FOUND", create(f, func(in *locker.RolloutInput) { in.Devices = other.devices }))
	for _, id := range f.devices {
		d := f.device(id)
		d.Protocol = cloud.ProtocolHTTP
		f.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	}
	require.Equal(t, "CONFIG_NOT_POSSIBLE", create(f, func(*locker.RolloutInput) {}))
	require.Equal(t, "CONFIG_NOT_POSSIBLE", create(f, func(in *locker.RolloutInput) { in.Devices = f.devices[:1] }))
}

// A profile that is changed or removed in the middle changes nothing of a roll-out; opening
// hours that people set meanwhile stay when the rest goes back.
func TestCasesOfRolloutsOfProfiles(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	c := newCabinets(newFleet(t, w, 6010, []fate{silent, works}))
	c.begin(locker.RolloutInput{Profile: c.profile(cloud.CabinetSettings{Notice: "new", Hours: []cloud.OpeningHours{{Day: 1, Open: "06:00", Close: "22:00"}}}, 1), First: 1, Percent: 10, Healthy: 30, Patience: 300})
	c.step()
	require.Equal(t, "new", c.conf(c.devices[0]).Texts[wire.TextNotice])
	own := []check.HoursInput{{Day: new(2), Open: "08:00", Close: "12:00"}}
	_, err := c.nodes[0].EditDevice(ctx, c.staff, locker.DeviceEdit{Device: c.devices[0], Hours: &own})
	require.NoError(t, err)
	c.now = c.now.Add(301 * time.Minute)
	c.step()
	r := c.find()
	require.Equal(t, []any{cloud.RolloutStopped, cloud.RolloutStopSilent, cloud.RolloutSilent}, []any{r.State, *r.Reason, r.Devices[0].State})
	conf := c.conf(c.devices[0])
	require.Equal(t, []any{"old", uint64(10), []wire.Hours{{Day: 2, Open: "08:00", Close: "12:00"}}}, []any{conf.Texts[wire.TextNotice], conf.Version, conf.Hours})
	require.Equal(t, conf.Version, *r.Devices[0].Back)
	require.Equal(t, "old", c.conf(c.devices[1]).Texts[wire.TextNotice])
	require.Zero(t, c.device(c.devices[0]).Profile.Settings)
}

// What another roll-out brought meanwhile is not taken back by one that was resumed.
func TestResumedRolloutTakesNoOtherSettingsBack(t *testing.T) {
	t.Parallel()
	c := newCabinets(newFleet(t, webtest.New(t), 6020, []fate{works, refuses}))
	c.begin(locker.RolloutInput{Profile: c.profile(cloud.CabinetSettings{Notice: "new"}, 1), First: 2, Percent: 100, Healthy: 30, Patience: 300})
	c.step()
	c.pause()
	c.live()
	d := c.device(c.devices[0])
	conf := c.conf(d.ID)
	conf.Version++
	conf.Texts[wire.TextNotice] = "other"
	d.Config, d.ConfigVersion, d.Profile.Settings = wire.MustEncode(conf), conf.Version, cloud.ProfileMark{ProfileID: 77, Revision: 1, Since: conf.Version}
	c.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	c.resume()
	c.step()
	require.Equal(t, cloud.RolloutStopRefused, *c.find().Reason)
	require.Equal(t, []string{"other", "old"}, []string{c.conf(c.devices[0]).Texts[wire.TextNotice], c.conf(c.devices[1]).Texts[wire.TextNotice]})
}

// After the cloud came back from a backup, a configuration that the cabinet has of a version
// that the cloud does not know is none of the roll-out's.
func TestRaisedConfigurationIsNotTheProfiles(t *testing.T) {
	t.Parallel()
	d := cloud.Device{Code: "A", ConfigVersion: 8, Config: wire.MustEncode(wire.Config{Version: 8}), Profile: cloud.DeviceProfile{Settings: cloud.ProfileMark{ProfileID: 1, Revision: 1, Since: 8}}}
	require.NoError(t, device.RaiseConfig(&d, 12))
	require.EqualValues(t, 12, d.Profile.Settings.Since)
	d.Profile.Settings = cloud.ProfileMark{}
	require.NoError(t, device.RaiseConfig(&d, 13))
	require.Zero(t, d.Profile.Settings)
}

// A cabinet that is taken out of use in the middle has proven nothing: it goes back with its ring.
func TestDisabledCabinetsGoBackWithTheirRing(t *testing.T) {
	t.Parallel()
	c := newCabinets(newFleet(t, webtest.New(t), 6030, []fate{works, refuses}))
	c.begin(locker.RolloutInput{Profile: c.profile(cloud.CabinetSettings{Notice: "new"}, 1), First: 2, Percent: 100, Healthy: 30, Patience: 300})
	c.step()
	d := c.device(c.devices[0])
	require.Equal(t, "new", c.conf(d.ID).Texts[wire.TextNotice])
	d.Disabled = true
	c.write(cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	c.step()
	c.live()
	c.step()
	r := c.find()
	require.Equal(t, []any{cloud.RolloutStopped, cloud.RolloutSkipped}, []any{r.State, r.Devices[0].State})
	require.Equal(t, "old", c.conf(d.ID).Texts[wire.TextNotice], "the settings are not proven there")
}

// A profile comes again to a cabinet whose opening hours people have changed since.
func TestProfilesComeAgain(t *testing.T) {
	t.Parallel()
	c := newCabinets(newFleet(t, webtest.New(t), 6040, []fate{works}))
	in := locker.RolloutInput{Profile: c.profile(cloud.CabinetSettings{Notice: "new", Hours: []cloud.OpeningHours{{Day: 1, Open: "06:00", Close: "22:00"}}}, 1), First: 1, Percent: 100, Healthy: 30, Patience: 300}
	bring := func() {
		c.begin(in)
		for range 5 {
			c.step()
			c.live()
			c.now = c.now.Add(20 * time.Minute)
		}
		require.Equal(t, cloud.RolloutDone, c.find().State)
	}
	bring()
	own := []check.HoursInput{{Day: new(2), Open: "08:00", Close: "12:00"}}
	_, err := c.nodes[0].EditDevice(ctx, c.staff, locker.DeviceEdit{Device: c.devices[0], Hours: &own})
	require.NoError(t, err)
	bring()
	require.Equal(t, []wire.Hours{{Day: 1, Open: "06:00", Close: "22:00"}}, c.conf(c.devices[0]).Hours)
}

package locker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/protocol/wire"
)

// Roll-outs of profiles use the steps of those of the agent. A cabinet has no command then:
// its configuration of the next version carries the settings, and is sent whenever it
// connects. Where one refuses it, or is not healthy in time, the roll-out stops, and this one
// and all of its ring that have not proven the settings get their former ones back, as a
// configuration of a version above.

// settingsOf are those of the device's configuration that a profile can have.
func settingsOf(w *Work) (s cloud.CabinetSettings, err error) {
	conf, err := w.config()
	return settingsIn(w.device, conf), err
}

func settingsIn(d cloud.Device, conf wire.Config) cloud.CabinetSettings {
	return cloud.CabinetSettings{SessionS: conf.Times.SessionS, LeftOpenSoundS: conf.Times.LeftOpenSoundS, ReopenS: conf.Times.ReopenS,
		Notice: conf.Texts[wire.TextNotice], Hours: d.Profile.Hours}
}

// setSettings publishes the device's configuration with settings. mark says whose they are.
func setSettings(w *Work, s cloud.CabinetSettings, mark cloud.ProfileMark) error {
	w.device.Profile.Hours = s.Hours
	err := publishConfig(w.requests, func(c *wire.Config) {
		c.Times.SessionS, c.Times.LeftOpenSoundS, c.Times.ReopenS = s.SessionS, s.LeftOpenSoundS, s.ReopenS
		c.Texts = maps.Clone(c.Texts)
		if delete(c.Texts, wire.TextNotice); s.Notice != "" {
			if c.Texts == nil {
				c.Texts = map[string]string{}
			}
			c.Texts[wire.TextNotice] = s.Notice
		}
	})
	if mark.Since = 0; mark.ProfileID != 0 {
		mark.Since = w.device.ConfigVersion
	}
	w.device.Profile.Settings = mark
	return err
}

// hasSettings reports whether a device's configuration has the settings of a roll-out.
func hasSettings(d cloud.Device, r cloud.Rollout) bool {
	m := d.Profile.Settings
	return m.ProfileID == r.ProfileID && m.Revision == r.Revision
}

// waitsForSettings reports whether a roll-out still has to bring its settings to a device: it
// has others, or people have changed them before the roll-out came to it.
func waitsForSettings(device cloud.Device, d cloud.RolloutDevice, r cloud.Rollout) bool {
	if !hasSettings(device, r) {
		return true
	}
	var conf wire.Config
	return d.State == cloud.RolloutWaiting && d.Former == nil && wire.Decode(device.Config, &conf) == nil && !settingsIn(device, conf).Equal(r.Settings)
}

// takesSettings reports whether a device takes configurations: it runs the agent, and has
// compartments or is a warehouse post.
func takesSettings(d cloud.Device) bool {
	var conf wire.Config
	return d.Protocol == cloud.ProtocolMQTT && wire.Decode(d.Config, &conf) == nil && (len(conf.Layout) > 0 || d.IsPost())
}

// judgeSettings is judgeDevice of a roll-out of a profile.
func judgeSettings(v cloud.View, r cloud.Rollout, d cloud.RolloutDevice, device cloud.Device, now time.Time) (cloud.RolloutDevice, cloud.RolloutStop, error) {
	if !takesSettings(device) {
		d.State = cloud.RolloutSkipped
		return d, "", nil
	}
	if waitsForSettings(device, d, r) {
		d.State, d.HealthyAt = cloud.RolloutWaiting, time.Time{}
		d, why := endPatience(r, d, now)
		return d, why, nil
	}
	since := device.Profile.Settings.Since
	has := device.Applied >= since && !isOfFormerHardware(device)
	isHealthy := false
	if has {
		var err error
		if isHealthy, err = isConnected(v, d.DeviceID); err != nil {
			return d, "", err
		}
	} else {
		why, err := configRefusal(v, d.DeviceID, since)
		if err != nil {
			return d, "", err
		}
		if why != "" {
			d.State, d.Reason = cloud.RolloutFailed, why
			return d, cloud.RolloutStopRefused, nil
		}
	}
	d.State = cloud.RolloutSent
	if has {
		d.State = cloud.RolloutTrying
	}
	if d = countHealth(r, d, isHealthy, now); d.IsEnded() {
		return d, "", nil
	}
	d, why := endPatience(r, d, now)
	return d, why, nil
}

// refusalDetail is the detail of the exception of a configuration that was not taken.
func refusalDetail(version uint64, result string) string {
	return fmt.Sprintf("version %d: %s", version, result)
}

// configRefusal says why the device refused a configuration of a version or above; "": it
// has not.
func configRefusal(v cloud.View, id cloud.DeviceID, version uint64) (string, error) {
	faults, err := v.DeviceExceptions(id)
	for _, x := range faults {
		var refused uint64
		before, result, _ := strings.Cut(x.Detail, ": ")
		if _, serr := fmt.Sscanf(before, "version %d", &refused); x.Type == cloud.DevConfigRefused && serr == nil && refused >= version {
			return cmp.Or(result, "refused"), err
		}
	}
	return "", err
}

// sendSettings publishes the settings to a device that waits for them: its configuration and
// the roll-out's row are written together.
func (s rollouts) sendSettings(v cloud.View, r *cloud.Rollout, i int, now time.Time, ch *cloud.Changes) error {
	d := &r.Devices[i]
	device, err := v.Device(d.DeviceID)
	if err != nil {
		return err
	}
	waits := waitsForSettings(device, *d, *r)
	d.State = cloud.RolloutSent
	if !waits {
		return nil
	}
	w := s.Begin(v, device, now)
	former, err := settingsOf(w)
	if err != nil {
		return err
	}
	d.Former, d.Back = &cloud.FormerSettings{Settings: former, Mark: device.Profile.Settings}, 0
	if err := setSettings(w, r.Settings, cloud.ProfileMark{ProfileID: r.ProfileID, Revision: r.Revision}); err != nil {
		return err
	}
	return w.Finish(ch)
}

// returnRing gives the devices of the ring that runs, except those that have proven the
// settings, their former ones back: also those that were taken out of use meanwhile.
func (s rollouts) returnRing(v cloud.View, r *cloud.Rollout, now time.Time, ch *cloud.Changes) error {
	for i, d := range r.Devices {
		if d.Ring != r.Ring || d.State == cloud.RolloutHealthy || d.Former == nil {
			continue
		}
		if err := s.returnSettings(v, r, i, now, ch); err != nil {
			return err
		}
		if d.State == cloud.RolloutSent || d.State == cloud.RolloutTrying {
			r.Devices[i].State, r.Devices[i].HealthyAt = cloud.RolloutWaiting, time.Time{}
		}
	}
	return nil
}

// returnSettings publishes the former settings of a device that has those of the roll-out.
// Opening hours that people have changed meanwhile stay.
func (s rollouts) returnSettings(v cloud.View, r *cloud.Rollout, i int, now time.Time, ch *cloud.Changes) error {
	d := &r.Devices[i]
	device, err := v.Device(d.DeviceID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (device.BusinessID != r.BusinessID || !device.RetiredAt.IsZero() || !hasSettings(device, *r)) {
		return nil
	}
	if err != nil {
		return err
	}
	w := s.Begin(v, device, now)
	have, err := settingsOf(w)
	if err != nil {
		return err
	}
	former := d.Former.Settings
	if !have.Equal(r.Settings) {
		former.Hours = have.Hours
	}
	if err := setSettings(w, former, d.Former.Mark); err != nil {
		return err
	}
	d.Former, d.Back = nil, w.device.ConfigVersion
	return w.Finish(ch)
}

// profileOf is the profile that an input names. Errors: CABINET_PROFILE_NOT_FOUND.
func profileOf(v cloud.View, c cloud.Caller, id cloud.CabinetProfileID) (cloud.CabinetProfile, error) {
	return collection.FindIn(v, cloud.CabinetProfile{Kept: cloud.Kept[cloud.CabinetProfileID]{ID: id, BusinessID: c.Account.BusinessID}})
}

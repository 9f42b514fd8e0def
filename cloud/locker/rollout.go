package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/wire"
)

// maxRollout bounds the devices of a roll-out.
const maxRollout = 1000

// rollouts bring versions of the agent and settings of profiles to cabinets, for the staff
// that looks after them.
type rollouts struct{ *core }

// RolloutInput describes a new roll-out.
type RolloutInput struct {
	Version string                 `json:"version" max:"64" example:"1.4.0" doc:"Of the agent; give this or cabinet_profile_id"`
	Profile cloud.CabinetProfileID `json:"cabinet_profile_id" doc:"Whose settings, as they are now, cabinets get"`
	Devices []cloud.DeviceID       `json:"device_ids" max:"1000" doc:"In the order in which they are changed; when absent, all that can be, by id"`
	// The rings.
	First    int `json:"first_devices" min:"1" max:"1000" default:"1" doc:"Devices of the first ring"`
	Percent  int `json:"second_percent" min:"1" max:"100" default:"10" doc:"Percent of all devices that are changed when the second ring is; the third ring is the rest"`
	Healthy  int `json:"healthy_minutes" min:"1" max:"10080" default:"60" doc:"How long each device of a ring has to be connected and run the version, or have the settings, before the next ring starts"`
	Patience int `json:"patience_minutes" min:"5" max:"1440" default:"720" doc:"How long a device may take until that is so; a longer silence stops the roll-out, and brings former settings back. Must be above healthy_minutes"`
}

// RolloutBody is a roll-out in a list.
type RolloutBody struct {
	ID       cloud.RolloutID         `json:"rollout_id"`
	Version  string                  `json:"version" doc:"Of the agent; empty: it brings a profile"`
	Profile  *cloud.CabinetProfileID `json:"cabinet_profile_id" doc:"null: it brings a version of the agent"`
	Name     *string                 `json:"cabinet_profile_name" doc:"When it began"`
	Revision *int64                  `json:"revision" doc:"Of the profile, when it began"`
	State    cloud.RolloutState      `json:"state" enum:"running,stopped,done"`
	Reason   *cloud.RolloutStop      `json:"reason" enum:"asked,update_failed,rolled_back,not_healthy,config_refused" doc:"Why it is stopped; null while it is not"`
	Note     *string                 `json:"reason_note"`
	Ring     int                     `json:"ring" doc:"Whose devices are updated now, from 1"`
	Rings    int                     `json:"rings"`
	Healthy  int64                   `json:"healthy_minutes"`
	Patience int64                   `json:"patience_minutes"`
	Total    int                     `json:"total_devices"`
	Updated  int                     `json:"updated_devices" doc:"That run the version, or have the settings, and count as healthy"`
	Created  *string                 `json:"created_at"`
	Changed  *string                 `json:"updated_at"`
}

// RolloutDeviceBody is a device of a roll-out.
type RolloutDeviceBody struct {
	DeviceID cloud.DeviceID           `json:"device_id"`
	Ring     int                      `json:"ring" doc:"From 1"`
	Before   string                   `json:"version_before" doc:"Empty: it had not said"`
	Wanted   string                   `json:"version_wanted"`
	Now      string                   `json:"version_now" doc:"By its newest status; empty: it has not said"`
	State    cloud.RolloutDeviceState `json:"state" enum:"waiting,sent,trying,healthy,skipped,failed,rolled_back,not_healthy" doc:"skipped: out of use, it takes no configuration, or it runs a newer version. failed: its command, or it refused the configuration"`
	Reason   *string                  `json:"reason"`
	Begun    *string                  `json:"begun_at" doc:"When its ring came to it"`
	Healthy  *string                  `json:"healthy_at" doc:"Since when it is connected and runs the version, or has the settings"`
	Config   uint64                   `json:"config_version" graphql:"Long!" doc:"Of its configuration in the cloud"`
	Applied  uint64                   `json:"config_applied" graphql:"Long!" doc:"Of the configuration that it has"`
	Back     *uint64                  `json:"config_returned" graphql:"Long" doc:"Version of the configuration that brought its former settings back"`
}

// RolloutDetail is a roll-out with its devices.
type RolloutDetail struct {
	RolloutBody
	Devices []RolloutDeviceBody `json:"devices"`
}

// RolloutOutput shows a roll-out.
type RolloutOutput struct {
	Result  bool          `json:"result"`
	Rollout RolloutDetail `json:"rollout"`
}

// RolloutsInput asks for a part of the roll-outs.
type RolloutsInput struct {
	State cloud.RolloutState `query:"state" enum:"running,stopped,done"`
	collection.PageInput
}

// RolloutsOutput lists roll-outs.
type RolloutsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Rollouts []RolloutBody `json:"rollouts"`
}

// ByRollout names a roll-out.
type ByRollout struct {
	ID cloud.RolloutID `path:"rollout_id"`
}

// RolloutStopInput stops a roll-out.
type RolloutStopInput struct {
	ID     cloud.RolloutID `path:"rollout_id" json:"-"`
	Reason string          `json:"reason" required:"true" max:"255" line:"true"`
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func rolloutBody(r cloud.Rollout, l *time.Location) RolloutBody {
	b := RolloutBody{ID: r.ID, Version: r.Version, State: r.State, Note: textOrNil(r.StopNote), Ring: r.Ring + 1, Rings: r.Rings, Healthy: r.HealthySeconds / 60, Patience: r.PatienceSeconds / 60,
		Total: len(r.Devices), Created: cloud.Stamp(r.CreatedAt, l), Changed: cloud.Stamp(r.UpdatedAt, l)}
	if r.Stop != "" {
		b.Reason = &r.Stop
	}
	if r.ProfileID != 0 {
		b.Profile, b.Name, b.Revision = &r.ProfileID, &r.ProfileName, &r.Revision
	}
	for _, d := range r.Devices {
		if d.State == cloud.RolloutHealthy {
			b.Updated++
		}
	}
	return b
}

func showRollout(v cloud.View, r cloud.Rollout) (RolloutOutput, error) {
	biz, err := v.Business(r.BusinessID)
	if err != nil {
		return RolloutOutput{}, err
	}
	l := biz.Location()
	out := RolloutDetail{RolloutBody: rolloutBody(r, l), Devices: []RolloutDeviceBody{}}
	for _, d := range r.Devices {
		b := RolloutDeviceBody{DeviceID: d.DeviceID, Ring: d.Ring + 1, Before: d.Before, Wanted: r.Version, State: d.State, Reason: textOrNil(d.Reason), Begun: cloud.Stamp(d.BegunAt, l), Healthy: cloud.Stamp(d.HealthyAt, l)}
		switch device, err := v.Device(d.DeviceID); {
		case err == nil:
			b.Now, b.Config, b.Applied = device.Firmware, device.ConfigVersion, device.Applied
		case !errors.Is(err, cloud.ErrNotFound):
			return RolloutOutput{}, err
		}
		if d.Back > 0 {
			b.Back = &d.Back
		}
		out.Devices = append(out.Devices, b)
	}
	return RolloutOutput{true, out}, nil
}

// ListRollouts lists the roll-outs of the caller's business.
func (s rollouts) ListRollouts(ctx context.Context, c cloud.Caller, in RolloutsInput) (RolloutsOutput, error) {
	list, page, err := collection.List(ctx, s.cfg.Store, c, in, cloud.Rollout{State: in.State}, rolloutBody)
	return RolloutsOutput{err == nil, page, list}, err
}

// FindRollout shows a roll-out of the caller's business. Error: ROLLOUT_NOT_FOUND.
func (s rollouts) FindRollout(ctx context.Context, c cloud.Caller, in ByRollout) (out RolloutOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		r, err := findRollout(v, c.Account.BusinessID, in.ID)
		if err == nil {
			out, err = showRollout(v, r)
		}
		return err
	})
	return out, err
}

func findRollout(v cloud.View, b cloud.BusinessID, id cloud.RolloutID) (cloud.Rollout, error) {
	return collection.FindIn(v, cloud.Rollout{Kept: cloud.Kept[cloud.RolloutID]{ID: id, BusinessID: b}})
}

// CreateRollout begins a roll-out. Errors: DEVICE_NOT_FOUND, RELEASE_NOT_FOUND,
// CABINET_PROFILE_NOT_FOUND, UPDATE_NOT_POSSIBLE, CONFIG_NOT_POSSIBLE, ROLLOUT_EXISTS,
// VALIDATION_FAILED.
func (s rollouts) CreateRollout(ctx context.Context, c cloud.Caller, in RolloutInput) (out RolloutOutput, err error) {
	f := newFields()
	for i, id := range in.Devices {
		if slices.Contains(in.Devices[:i], id) {
			f.Say(fmt.Sprintf("device_ids.%d", i), check.MessageTwice)
		}
	}
	if in.Devices != nil && len(in.Devices) == 0 {
		f.Say("device_ids", check.MessageRequired)
	}
	if in.Patience <= in.Healthy {
		f.Say("patience_minutes", messagePatience)
	}
	switch {
	case (in.Version == "") == (in.Profile == 0):
		f.Say("version", messageKind)
	case in.Version != "" && !release.IsVersion(in.Version):
		f.Say("version", messageVersion)
	}
	if err := f.Err(); err != nil {
		return out, err
	}
	// Files are looked at before the decision; what has changed until then, each step finds.
	now := time.Now().UTC().Truncate(time.Millisecond)
	var devices []cloud.Device
	if err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		if in.Profile != 0 {
			if _, err := profileOf(v, c, in.Profile); err != nil {
				return err
			}
		}
		devices, err = rolloutDevices(v, c, in)
		return err
	}); err != nil {
		return out, err
	}
	known := map[string]bool{}
	for _, d := range devices {
		if in.Profile != 0 {
			break
		}
		if d.Program.Updates && known[d.Program.Platform] {
			continue
		}
		if _, err := s.updateOf(ctx, d, in.Version, now); err != nil {
			return out, err
		}
		known[d.Program.Platform] = true
	}
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.RolloutIDs)
		if err != nil {
			return nil, err
		}
		r := cloud.Rollout{Version: in.Version, State: cloud.RolloutRunning, HealthySeconds: int64(in.Healthy) * 60, PatienceSeconds: int64(in.Patience) * 60}
		r.Begin(id, c.Account.BusinessID, now)
		if in.Profile != 0 {
			p, err := profileOf(v, c, in.Profile)
			if err != nil {
				return nil, err
			}
			r.ProfileID, r.ProfileName, r.Revision, r.Settings = p.ID, p.Name, p.Revision, p.Settings
		}
		for _, d := range devices {
			r.Devices = append(r.Devices, cloud.RolloutDevice{DeviceID: d.ID, Before: d.Firmware, State: cloud.RolloutWaiting})
		}
		r.Rings = setRings(r.Devices, in.First, in.Percent)
		return s.keepRollout(v, c, r, now, "rollout_made", &out)
	})
	if errors.Is(err, cloud.ErrExists) {
		err = cloud.E(cloud.Conflict, "ROLLOUT_EXISTS")
	}
	return out, err
}

// Messages of a roll-out's members.
const (
	messagePatience = "The patience must be longer than the time for which devices have to be healthy."
	messageKind     = "Give either a version of the agent or a cabinet_profile_id."
	messageVersion  = "A version is a semantic version without build metadata, such as 1.4.0."
)

// keepRollout writes a roll-out that a person changes.
func (s rollouts) keepRollout(v cloud.View, c cloud.Caller, r cloud.Rollout, now time.Time, action string, out *RolloutOutput) (*cloud.Changes, error) {
	r.Touch(now)
	shown, err := showRollout(v, r)
	if err != nil {
		return nil, err
	}
	*out = shown
	return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{r}}, Answer: shown,
		AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: r.BusinessID, At: now, Actor: actor(c), Action: action, Target: fmt.Sprintf("rollout:%d", r.ID), Detail: "{}"}}}}, nil
}

// rolloutDevices are the devices that an input names. Errors: DEVICE_NOT_FOUND,
// UPDATE_NOT_POSSIBLE, CONFIG_NOT_POSSIBLE, VALIDATION_FAILED.
func rolloutDevices(v cloud.View, c cloud.Caller, in RolloutInput) (out []cloud.Device, err error) {
	for _, id := range in.Devices {
		d, err := owned(v, c, id)
		if err != nil {
			return nil, err
		}
		if in.Profile != 0 && !takesSettings(d) {
			return nil, cloud.E(cloud.Conflict, "CONFIG_NOT_POSSIBLE")
		}
		out = append(out, d)
	}
	if len(in.Devices) > 0 {
		return out, nil
	}
	page := cloud.Page{Sort: "id", Limit: 200}
	for {
		list, listed, err := v.Devices(cloud.DeviceFilter{BusinessID: c.Account.BusinessID, Page: page})
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			takes := d.Program.Updates && d.Protocol == cloud.ProtocolMQTT
			if in.Profile != 0 {
				takes = takesSettings(d) && d.RetiredAt.IsZero()
			}
			if takes && !d.Disabled {
				out = append(out, d)
			}
		}
		if page.After = listed.Next; page.After == nil {
			break
		}
	}
	switch {
	case len(out) == 0 && in.Profile != 0:
		return nil, cloud.E(cloud.Conflict, "CONFIG_NOT_POSSIBLE")
	case len(out) == 0:
		return nil, cloud.E(cloud.Conflict, "UPDATE_NOT_POSSIBLE")
	case len(out) > maxRollout:
		f := newFields()
		f.Say("device_ids", messageTooMany)
		return nil, f.Err()
	}
	return out, nil
}

const messageTooMany = "More than 1,000 devices can be changed: name those of this roll-out."

// setRings numbers the rings of devices, without holes, and counts them.
func setRings(devices []cloud.RolloutDevice, first, percent int) int {
	second := max(first, (len(devices)*percent+99)/100)
	ring := 0
	for i := range devices {
		if i == first || i == second && second > first {
			ring++
		}
		devices[i].Ring = ring
	}
	return ring + 1
}

// StopRollout stops a roll-out: no further command is sent. Devices that have one go on.
// Errors: ROLLOUT_NOT_FOUND, ROLLOUT_STATE_CONFLICT.
func (s rollouts) StopRollout(ctx context.Context, c cloud.Caller, in RolloutStopInput) (out RolloutOutput, err error) {
	return s.changeRollout(ctx, c, in.ID, cloud.RolloutRunning, "rollout_stopped", func(_ cloud.View, r *cloud.Rollout) error {
		stopRollout(r, cloud.RolloutStopAsked, strings.TrimSpace(in.Reason))
		return nil
	})
}

// ResumeRollout goes on with a stopped roll-out. Devices whose command failed, or that were
// not healthy in time, get another one, unless one is on its way still; those that went back
// do not. For all of them patience and the time of health begin anew. Errors:
// ROLLOUT_NOT_FOUND, ROLLOUT_STATE_CONFLICT, ROLLOUT_EXISTS.
func (s rollouts) ResumeRollout(ctx context.Context, c cloud.Caller, in ByRollout) (out RolloutOutput, err error) {
	out, err = s.changeRollout(ctx, c, in.ID, cloud.RolloutStopped, "rollout_resumed", func(v cloud.View, r *cloud.Rollout) error {
		r.State, r.Stop, r.StopNote = cloud.RolloutRunning, "", ""
		for i, d := range r.Devices {
			if d.IsEnded() {
				continue
			}
			d.BegunAt, d.HealthyAt, d.Reason = time.Time{}, time.Time{}, ""
			if d.State == cloud.RolloutFailed || d.State == cloud.RolloutSilent {
				c, err := v.Command(d.CommandID)
				switch {
				case err != nil && !errors.Is(err, cloud.ErrNotFound):
					return err
				case err == nil && !c.State.Ended() && d.CommandID != "":
					d.State = cloud.RolloutSent
				default:
					d.State, d.CommandID = cloud.RolloutWaiting, ""
				}
			}
			r.Devices[i] = d
		}
		return nil
	})
	if errors.Is(err, cloud.ErrExists) {
		err = cloud.E(cloud.Conflict, "ROLLOUT_EXISTS")
	}
	return out, err
}

func (s rollouts) changeRollout(ctx context.Context, c cloud.Caller, id cloud.RolloutID, from cloud.RolloutState, action string, change func(cloud.View, *cloud.Rollout) error) (out RolloutOutput, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		r, err := findRollout(v, c.Account.BusinessID, id)
		if err != nil {
			return nil, err
		}
		if r.State != from {
			return nil, cloud.E(cloud.Conflict, "ROLLOUT_STATE_CONFLICT")
		}
		r.Devices = slices.Clone(r.Devices)
		if err := change(v, &r); err != nil {
			return nil, err
		}
		return s.keepRollout(v, c, r, now, action, &out)
	})
	return out, err
}

func stopRollout(r *cloud.Rollout, why cloud.RolloutStop, note string) {
	r.State, r.Stop, r.StopNote = cloud.RolloutStopped, why, note
}

// Rollouts lists what runs.
type Rollouts interface {
	ListRunningRollouts(ctx context.Context, after cloud.RolloutID, limit int) ([]cloud.Rollout, error)
}

// Times of roll-outs.
const (
	rolloutEvery = 10 * time.Second
	rolloutPage  = 100
)

// RunRollouts goes on with roll-outs until ctx ends. One node runs it at a time; two do no
// harm.
func (s rollouts) RunRollouts(ctx context.Context, running Rollouts) error {
	t := time.NewTicker(rolloutEvery)
	defer t.Stop()
	for {
		if err := s.StepRollouts(ctx, running, time.Now().UTC()); err != nil && ctx.Err() == nil {
			s.log.Error("go on with roll-outs", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// StepRollouts makes one step of each roll-out that runs.
func (s rollouts) StepRollouts(ctx context.Context, running Rollouts, now time.Time) (err error) {
	var after cloud.RolloutID
	for {
		list, lerr := running.ListRunningRollouts(ctx, after, rolloutPage)
		if lerr != nil {
			return errors.Join(err, fmt.Errorf("list running roll-outs: %w", lerr))
		}
		for _, r := range list {
			after = r.ID
			if serr := s.stepRollout(ctx, r, now.Truncate(time.Millisecond)); serr != nil {
				err = errors.Join(err, fmt.Errorf("roll-out %d: %w", r.ID, serr))
			}
		}
		if len(list) < rolloutPage {
			return err
		}
	}
}

// stepRollout judges the devices of the ring that runs, and sends commands or settings to
// those that wait for them. One that they cannot be sent to keeps no other one waiting.
func (s rollouts) stepRollout(ctx context.Context, ref cloud.Rollout, now time.Time) error {
	var r cloud.Rollout
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		var changed bool
		var stopped bool
		var err error
		if r, stopped, changed, err = judgeRollout(v, ref, now); err != nil || !changed {
			return nil, err
		}
		ch := &cloud.Changes{}
		if stopped {
			if err := s.returnRing(v, &r, now, ch); err != nil {
				return nil, err
			}
		}
		ch.Rows = append(ch.Rows, r)
		return ch, nil
	})
	if err != nil {
		return err
	}
	for _, d := range r.Devices {
		if r.State == cloud.RolloutRunning && d.Ring == r.Ring && d.State == cloud.RolloutWaiting {
			if serr := s.sendRollout(ctx, r, d.DeviceID, now); serr != nil {
				err = errors.Join(err, fmt.Errorf("send to device %d: %w", d.DeviceID, serr))
			}
		}
	}
	return err
}

// judgeRollout is a roll-out as what is known of its devices makes it, and whether that
// stopped it.
func judgeRollout(v cloud.View, ref cloud.Rollout, now time.Time) (r cloud.Rollout, stopped, changed bool, err error) {
	r, err = cloud.Find(v, cloud.Rollout{Kept: cloud.Kept[cloud.RolloutID]{ID: ref.ID, BusinessID: ref.BusinessID}})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && r.State != cloud.RolloutRunning {
		return r, false, false, nil
	}
	if err != nil {
		return r, false, false, err
	}
	r.Devices = slices.Clone(r.Devices)
	for r.State == cloud.RolloutRunning {
		ended := true
		for i, d := range r.Devices {
			if d.Ring != r.Ring || d.IsEnded() {
				continue
			}
			next, why, err := judgeDevice(v, r, d, now)
			if err != nil {
				return r, false, false, err
			}
			changed = changed || next != d
			r.Devices[i] = next
			if why != "" && r.State == cloud.RolloutRunning {
				stopped = true
				stopRollout(&r, why, deviceNote(v, next))
			}
			ended = ended && next.IsEnded()
		}
		if r.State != cloud.RolloutRunning || !ended {
			break
		}
		changed = true
		if moveCanary(&r) {
			continue
		}
		if r.Ring+1 == r.Rings {
			r.State = cloud.RolloutDone
		} else {
			r.Ring++
		}
	}
	if changed {
		r.Touch(now)
	}
	return r, stopped, changed, nil
}

// moveCanary takes the first device of later rings into the present one while no device has
// proven the version: none of the first may have been left to do so. It reports whether it
// did.
func moveCanary(r *cloud.Rollout) bool {
	if slices.ContainsFunc(r.Devices, func(d cloud.RolloutDevice) bool { return d.State == cloud.RolloutHealthy }) {
		return false
	}
	i := slices.IndexFunc(r.Devices, func(d cloud.RolloutDevice) bool { return d.Ring > r.Ring })
	if i >= 0 {
		r.Devices[i].Ring = r.Ring
	}
	return i >= 0
}

// deviceNote says which device stopped a roll-out, and why.
func deviceNote(v cloud.View, d cloud.RolloutDevice) string {
	name := fmt.Sprint(d.DeviceID)
	if device, err := v.Device(d.DeviceID); err == nil {
		name = device.Code
	}
	if d.Reason == "" {
		return name
	}
	return name + ": " + d.Reason
}

// judgeDevice is a device of the ring that runs as what is known of it makes it, and why the
// roll-out is to stop; "": it is not.
func judgeDevice(v cloud.View, r cloud.Rollout, d cloud.RolloutDevice, now time.Time) (cloud.RolloutDevice, cloud.RolloutStop, error) {
	device, err := v.Device(d.DeviceID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (device.BusinessID != r.BusinessID || device.Disabled || !device.RetiredAt.IsZero()) {
		d.State = cloud.RolloutSkipped
		return d, "", nil
	}
	if err != nil {
		return d, "", err
	}
	if d.BegunAt.IsZero() {
		d.BegunAt = now
	}
	if r.ProfileID != 0 {
		return judgeSettings(v, r, d, device, now)
	}
	runs, program := release.VersionOf(device.Firmware), device.Program
	if isOfFormerHardware(device) {
		runs, program = "", cloud.DeviceProgram{}
	}
	switch {
	case program.GivenUp == r.Version && runs != r.Version:
		d.State, d.Reason = cloud.RolloutRolledBack, program.Reason
		return d, cloud.RolloutStopRolledBack, nil
	case runs != "" && release.IsNewer(runs, r.Version):
		d.State = cloud.RolloutSkipped
		return d, "", nil
	}
	if runs == r.Version && d.State == cloud.RolloutWaiting {
		d.State = cloud.RolloutTrying // it needs no command
	}
	isHealthy := false
	if runs == r.Version && !program.Trial {
		if isHealthy, err = isConnected(v, d.DeviceID); err != nil {
			return d, "", err
		}
	}
	if d = countHealth(r, d, isHealthy, now); d.IsEnded() {
		return d, "", nil
	}
	if d.State == cloud.RolloutSent {
		c, err := v.Command(d.CommandID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return d, "", err
		}
		switch {
		case err == nil && c.State == cloud.CommandRefused && runs == r.Version: // it has it already
			d.State = cloud.RolloutTrying
		case err != nil || c.State.Ended() && c.State != cloud.CommandDone:
			d.State, d.Reason = cloud.RolloutFailed, strings.TrimSpace(string(c.State)+" "+c.Reason)
			return d, cloud.RolloutStopFailed, nil
		case c.State == cloud.CommandDone:
			d.State = cloud.RolloutTrying
		}
	}
	d, why := endPatience(r, d, now)
	return d, why, nil
}

// countHealth is a device whose health at this moment is known: healthy for good once it has
// been so for the roll-out's time without a break.
func countHealth(r cloud.Rollout, d cloud.RolloutDevice, isHealthy bool, now time.Time) cloud.RolloutDevice {
	switch {
	case !isHealthy:
		d.HealthyAt = time.Time{}
	case d.HealthyAt.IsZero():
		d.State, d.HealthyAt = cloud.RolloutTrying, now
	case now.Sub(d.HealthyAt) >= time.Duration(r.HealthySeconds)*time.Second:
		d.State = cloud.RolloutHealthy
	}
	return d
}

// endPatience is a device that is not healthy for good yet, and why the roll-out is to stop once
// its patience is over; "": it is not.
func endPatience(r cloud.Rollout, d cloud.RolloutDevice, now time.Time) (cloud.RolloutDevice, cloud.RolloutStop) {
	if now.Sub(d.BegunAt) <= time.Duration(r.PatienceSeconds)*time.Second {
		return d, ""
	}
	d.State = cloud.RolloutSilent
	return d, cloud.RolloutStopSilent
}

// isOfFormerHardware reports whether what the device last said is of the hardware before this
// one.
func isOfFormerHardware(d cloud.Device) bool {
	return d.StatusAt.Before(d.CutOffAt) || d.StatusAt.Before(d.EnrolledAt) && !d.StatusAt.IsZero()
}

func isConnected(v cloud.View, id cloud.DeviceID) (bool, error) {
	session, err := v.Session(id)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	return err == nil && session.Online, err
}

// sendRollout sends the command, or the settings, to a device that waits for them: they and
// the roll-out's row are written together, so that there is one.
func (s rollouts) sendRollout(ctx context.Context, ref cloud.Rollout, id cloud.DeviceID, now time.Time) error {
	var update *wire.Update
	var refused *cloud.Error
	if ref.ProfileID == 0 {
		var device cloud.Device
		err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
			device, err = v.Device(id)
			return err
		})
		if err == nil {
			update, err = s.updateOf(ctx, device, ref.Version, now)
		}
		if err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return s.cfg.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
		r, err := cloud.Find(v, cloud.Rollout{Kept: cloud.Kept[cloud.RolloutID]{ID: ref.ID, BusinessID: ref.BusinessID}})
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(r.Devices, func(d cloud.RolloutDevice) bool { return d.DeviceID == id })
		if r.State != cloud.RolloutRunning || i < 0 || r.Devices[i].Ring != r.Ring || r.Devices[i].State != cloud.RolloutWaiting {
			return nil, nil // another node was here, or a person
		}
		r.Devices = slices.Clone(r.Devices)
		r.Touch(now)
		ch := &cloud.Changes{}
		d := &r.Devices[i]
		switch {
		case r.ProfileID != 0:
			if err := s.sendSettings(v, &r, i, now, ch); err != nil {
				return nil, err
			}
		case refused != nil:
			d.State, d.Reason = cloud.RolloutFailed, refused.Code
			stopRollout(&r, cloud.RolloutStopFailed, deviceNote(v, *d))
		default:
			device, err := v.Device(id)
			if err != nil {
				return nil, err
			}
			w := s.Begin(v, device, now)
			cmd, err := w.send("", wire.CmdUpdate, *update, nil, longCommandLife)
			if err != nil {
				return nil, err
			}
			d.State, d.CommandID = cloud.RolloutSent, cmd.ID
			if err := w.Finish(ch); err != nil {
				return nil, err
			}
		}
		ch.Rows = append(ch.Rows, r)
		return ch, nil
	})
}

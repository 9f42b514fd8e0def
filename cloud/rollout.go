package cloud

import "time"

// RolloutID names a roll-out.
type RolloutID int64

// RolloutIDs is their sequence.
const RolloutIDs IDKind = "rollout"

// Rollout brings a version of the agent, or the settings of a profile, to devices, one ring
// of them after the other.
type Rollout struct {
	Kept[RolloutID]
	Version string `row:",fixed"` // of the agent, as manifests have it, without v; "" in a roll-out of a profile
	// ProfileID, ProfileName and Revision name the profile as it was at the start, Settings
	// are what it had then. ProfileID is 0 in a roll-out of the agent.
	ProfileID   CabinetProfileID `row:",fixed"`
	ProfileName string           `row:",fixed"`
	Revision    int64            `row:",fixed"`
	Settings    CabinetSettings  `row:",fixed"`
	State       RolloutState     `row:",sort"`
	Stop        RolloutStop      // why it is stopped; "" while it is not
	StopNote    string           // what people said, or the device, of the stop
	Ring        int              // whose devices are updated now, from 0; that of the last when done
	Rings       int              `row:",fixed"`
	// HealthySeconds is how long a device has to run the version before it counts.
	HealthySeconds int64 `row:",fixed"`
	// PatienceSeconds is how long a device may take from its command until it counts.
	PatienceSeconds int64           `row:",fixed"`
	Devices         []RolloutDevice // in the order of their rings
}

// RowKind implements Row.
func (Rollout) RowKind() IDKind { return RolloutIDs }

// RolloutState is where a roll-out stands.
type RolloutState string

// States of a roll-out.
const (
	RolloutRunning RolloutState = "running"
	RolloutStopped RolloutState = "stopped"
	RolloutDone    RolloutState = "done"
)

// RolloutStop is why a roll-out is stopped.
type RolloutStop string

// Reasons of a stop.
const (
	RolloutStopAsked      RolloutStop = "asked"
	RolloutStopFailed     RolloutStop = "update_failed"
	RolloutStopRolledBack RolloutStop = "rolled_back"
	RolloutStopSilent     RolloutStop = "not_healthy"
	RolloutStopRefused    RolloutStop = "config_refused"
)

// RolloutDevice is a device of a roll-out.
type RolloutDevice struct {
	DeviceID  DeviceID           `json:"device_id"`
	Ring      int                `json:"ring"`
	Before    string             `json:"before,omitempty"` // version that it ran
	State     RolloutDeviceState `json:"state"`
	Reason    string             `json:"reason,omitempty"`
	CommandID string             `json:"command_id,omitempty"`
	// BegunAt is when its ring came to it; HealthyAt is since when it runs the version.
	BegunAt   time.Time `json:"begun_at,omitzero"`
	HealthyAt time.Time `json:"healthy_at,omitzero"`
	// Former are the settings that a profile has replaced, nil before; Back is the version
	// of the configuration by which the device got them back, 0 while it has not.
	Former *FormerSettings `json:"former,omitempty"`
	Back   uint64          `json:"back,omitempty"`
}

// FormerSettings are what a device had before a roll-out of a profile.
type FormerSettings struct {
	Settings CabinetSettings `json:"settings"`
	Mark     ProfileMark     `json:"mark,omitzero"`
}

// RolloutDeviceState is where a device of a roll-out stands.
type RolloutDeviceState string

// States of a device of a roll-out.
const (
	RolloutWaiting    RolloutDeviceState = "waiting"     // for its command
	RolloutSent       RolloutDeviceState = "sent"        // the command has no outcome yet
	RolloutTrying     RolloutDeviceState = "trying"      // installed, or it runs and is watched
	RolloutHealthy    RolloutDeviceState = "healthy"     // it counts
	RolloutSkipped    RolloutDeviceState = "skipped"     // out of use, or it runs a newer version
	RolloutFailed     RolloutDeviceState = "failed"      // the command has failed
	RolloutRolledBack RolloutDeviceState = "rolled_back" // the version did not work there
	RolloutSilent     RolloutDeviceState = "not_healthy" // not in time
)

// IsEnded reports whether the roll-out waits no more for the device.
func (d RolloutDevice) IsEnded() bool {
	return d.State == RolloutHealthy || d.State == RolloutSkipped || d.State == RolloutRolledBack
}

package cloud

import "slices"

// CabinetProfileID names a configuration profile.
type CabinetProfileID int64

// CabinetProfileIDs is their sequence.
const CabinetProfileIDs IDKind = "cabinet_profile"

// CabinetProfile is a named set of settings for cabinets of a business. A change of it
// reaches cabinets by a roll-out alone.
type CabinetProfile struct {
	Kept[CabinetProfileID]
	Name     string `row:",sort"`
	Revision int64  // counts changes of Settings, from 1
	Settings CabinetSettings
}

// RowKind implements Row.
func (CabinetProfile) RowKind() IDKind { return CabinetProfileIDs }

// CabinetSettings are what a profile gives to a cabinet. Layout, keys and addresses are the
// cabinet's own.
type CabinetSettings struct {
	SessionS       uint32         `json:"session_seconds,omitempty"`         // 0: the cabinet's default
	LeftOpenSoundS uint32         `json:"left_open_sound_seconds,omitempty"` // 0: the cabinet's default
	ReopenS        uint32         `json:"reopen_seconds,omitempty"`          // 0: the cabinet's default
	Notice         string         `json:"notice,omitempty"`                  // one line for the screen
	Hours          []OpeningHours `json:"opening_hours,omitempty"`           // empty: always open
}

// Equal reports whether both are the same for a cabinet.
func (s CabinetSettings) Equal(o CabinetSettings) bool {
	return slices.Equal(s.Hours, o.Hours) && s.SessionS == o.SessionS && s.LeftOpenSoundS == o.LeftOpenSoundS && s.ReopenS == o.ReopenS && s.Notice == o.Notice
}

// ProfileMark says which profile's settings a device's configuration has. The zero value:
// those of none.
type ProfileMark struct {
	ProfileID CabinetProfileID `json:"profile_id,omitempty"`
	Revision  int64            `json:"revision,omitempty"`
	// Since is the first version of the configuration that has them; all above it do.
	Since uint64 `json:"since,omitempty"`
}

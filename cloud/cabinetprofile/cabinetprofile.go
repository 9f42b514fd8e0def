// Package cabinetprofile has the configuration profiles of a business: settings of cabinets
// under a name. A profile changes no cabinet; roll-outs of cloud/locker bring its settings to
// them. The functions have no state.
package cabinetprofile

import (
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/protocol/wire"
)

// Body is a profile as it is answered.
type Body struct {
	ID        cloud.CabinetProfileID `json:"cabinet_profile_id"`
	Name      string                 `json:"name"`
	Revision  int64                  `json:"revision" graphql:"Long!" doc:"Counts changes of the settings, from 1"`
	Session   int                    `json:"session_seconds" doc:"How long an opening that began at the cabinet lasts"`
	Sound     int                    `json:"left_open_sound_seconds" doc:"After how long a door that stays open sounds"`
	Reopen    int                    `json:"reopen_seconds" doc:"How long a recipient may open the compartment once more without a code"`
	Notice    string                 `json:"notice" doc:"Shown on the screen of the cabinet, in every language alike; empty: nothing"`
	Hours     []cloud.OpeningHours   `json:"opening_hours" doc:"Empty: always open"`
	CreatedAt *string                `json:"created_at"`
	UpdatedAt *string                `json:"updated_at"`
}

// Output shows a profile.
type Output struct {
	Result  bool `json:"result"`
	Profile Body `json:"cabinet_profile"`
}

// ListInput asks for a part of the profiles.
type ListInput struct {
	Name string `query:"name" max:"60" doc:"The whole name"`
	collection.PageInput
}

// ListOutput lists profiles.
type ListOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Profiles []Body `json:"cabinet_profiles"`
}

// Input describes a new profile. Members that are absent are the cabinet's defaults.
type Input struct {
	Name    string             `json:"name" required:"true" max:"60" line:"true" example:"Stations"`
	Session int                `json:"session_seconds" min:"60" max:"1800" default:"600" doc:"How long an opening that began at the cabinet lasts"`
	Sound   int                `json:"left_open_sound_seconds" min:"10" max:"3600" default:"120" doc:"After how long a door that stays open sounds"`
	Reopen  int                `json:"reopen_seconds" min:"5" max:"600" default:"60" doc:"How long a recipient may open the compartment once more without a code"`
	Notice  string             `json:"notice" max:"200" line:"true" doc:"One line on the screen of the cabinet, in every language alike"`
	Hours   []check.HoursInput `json:"opening_hours" max:"42" doc:"An empty list is always open"`
}

// Edit changes a profile. Members that are absent stay as they are.
type Edit struct {
	ID      cloud.CabinetProfileID `path:"id" json:"-"`
	Name    *string                `json:"name" min:"1" max:"60" line:"true"`
	Session *int                   `json:"session_seconds" min:"60" max:"1800" doc:"How long an opening that began at the cabinet lasts"`
	Sound   *int                   `json:"left_open_sound_seconds" min:"10" max:"3600" doc:"After how long a door that stays open sounds"`
	Reopen  *int                   `json:"reopen_seconds" min:"5" max:"600" doc:"How long a recipient may open the compartment once more without a code"`
	Notice  *string                `json:"notice" max:"200" line:"true" doc:"One line on the screen; empty: nothing"`
	Hours   *[]check.HoursInput    `json:"opening_hours" max:"42" doc:"All hours; an empty list is always open"`
}

// Key is the profile's id.
func (in Edit) Key() int64 { return int64(in.ID) }

// Row is a profile in a list.
func Row(p cloud.CabinetProfile, l *time.Location) Body {
	s, hours := p.Settings, p.Settings.Hours
	if hours == nil {
		hours = []cloud.OpeningHours{}
	}
	t := wire.Times{SessionS: s.SessionS, LeftOpenSoundS: s.LeftOpenSoundS, ReopenS: s.ReopenS}.WithDefaults()
	return Body{p.ID, p.Name, p.Revision, int(t.SessionS), int(t.LeftOpenSoundS), int(t.ReopenS), s.Notice, hours, cloud.Stamp(p.CreatedAt, l), cloud.Stamp(p.UpdatedAt, l)}
}

// Show is the answer with one profile.
func Show(p cloud.CabinetProfile, l *time.Location) Output { return Output{true, Row(p, l)} }

// ShowList is the answer with a list of profiles.
func ShowList(list []Body, p check.PageOutput) ListOutput { return ListOutput{true, p, list} }

// Like is the example that an input asks for.
func Like(in ListInput) cloud.CabinetProfile { return cloud.CabinetProfile{Name: in.Name} }

// Fill fills a new profile. Error: VALIDATION_FAILED.
func Fill(in Input, p *cloud.CabinetProfile) error {
	p.Name, p.Revision = strings.TrimSpace(in.Name), 1
	p.Settings = cloud.CabinetSettings{SessionS: uint32(in.Session), LeftOpenSoundS: uint32(in.Sound), ReopenS: uint32(in.Reopen), Notice: strings.TrimSpace(in.Notice), Hours: check.Hours(in.Hours)}
	return checkHours(p)
}

// Change changes a profile; settings that differ are its next revision. Error:
// VALIDATION_FAILED.
func Change(in Edit, p *cloud.CabinetProfile) error {
	before := p.Settings
	s := &p.Settings
	for to, from := range map[*uint32]*int{&s.SessionS: in.Session, &s.LeftOpenSoundS: in.Sound, &s.ReopenS: in.Reopen} {
		if from != nil {
			*to = uint32(*from)
		}
	}
	if in.Name != nil {
		p.Name = strings.TrimSpace(*in.Name)
	}
	if in.Notice != nil {
		s.Notice = strings.TrimSpace(*in.Notice)
	}
	if in.Hours != nil {
		s.Hours = check.Hours(*in.Hours)
	}
	if !s.Equal(before) {
		p.Revision++
	}
	return checkHours(p)
}

func checkHours(p *cloud.CabinetProfile) error {
	f := check.Fields{}
	f.Hours(p.Settings.Hours)
	return f.Err()
}

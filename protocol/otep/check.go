package otep

import (
	"encoding/json"
	"fmt"
	"time"
)

// Check holds events that came otherwise than as a timeline in JSON to the
// rules of Read, V11 to V35 among them, and gives them back as Read does: one
// for each, normalised. Addresses and labels of events are not looked at. A
// zero time, an empty phase, version or id counts as not given. now is the
// instant of reading; errors are those of Read.
func Check(s Subject, events []Event, now time.Time) ([]Event, Report, error) {
	type given struct {
		Event
		OccurredAt *Time   `json:"occurred_at,omitempty"`
		RecordedAt *Time   `json:"recorded_at,omitempty"`
		Version    *string `json:"otep_version,omitempty"`
		EventID    string  `json:"event_id,omitempty"`
		Phase      string  `json:"phase,omitempty"`
	}
	list := make([]given, len(events))
	for i, e := range events {
		list[i] = given{Event: e, EventID: e.EventID, Phase: e.Phase}
		if !e.OccurredAt.IsZero() {
			list[i].OccurredAt = &e.OccurredAt
		}
		if !e.RecordedAt.IsZero() {
			list[i].RecordedAt = &e.RecordedAt
		}
	}
	raw, err := json.Marshal(struct {
		Version string  `json:"otep_version"`
		Profile string  `json:"profile"`
		Subject Subject `json:"subject"`
		Events  []given `json:"events"`
	}{Version, DefaultProfile, s, list})
	if err != nil {
		return nil, Report{}, fmt.Errorf("encode events: %w", err)
	}
	t, report, err := Read(raw, now)
	return t.Events, report.Tolerant(), err
}

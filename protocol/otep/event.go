package otep

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// early is how far an event may lie in the future: clocks differ.
const early = 5 * time.Minute

// event reads the item at i and checks it in the order of the rules.
func (r *reader) event(i int, v value) error {
	if !v.isObject() {
		r.report.add("V35", path(i, ""), i)
		return nil
	}
	m, err := v.members()
	if err != nil {
		return err
	}
	e := &r.timeline.Events[i]
	defer r.flush()
	r.members(eventShape, m, spot{i, "", -1})
	timeType, knownType := readTimeType(find(m, "time_type"))
	e.TimeType = timeType

	failed := len(r.report.Errors)
	r.occurred(i, e, find(m, "occurred_at"))
	r.recorded(i, e, find(m, "recorded_at"))
	r.eventVersion(i, find(m, "otep_version"))
	r.status(i, e, find(m, "status_code"))
	r.phase(i, e, find(m, "phase"))
	r.sound[i] = len(r.report.Errors) == failed

	if err := r.source(i, e, find(m, "source")); err != nil {
		return err
	}
	if err := r.location(i, e, find(m, "location")); err != nil {
		return err
	}
	r.reason(i, e, find(m, "incident_reason"))
	if err := r.proof(i, e, find(m, "pod")); err != nil {
		return err
	}
	if err := r.telemetry(i, e, find(m, "telemetry")); err != nil {
		return err
	}
	if !knownType {
		r.report.add("V33", path(i, "time_type"), i, find(m, "time_type").citation())
	}
	r.eventID(i, e, find(m, "event_id"))
	e.Message, _ = find(m, "message").text()
	if v := find(m, "corrects"); !v.isNull() && anID.holds(v) {
		e.Corrects, _ = v.text()
	}
	return r.extensions(i, e, find(m, "extensions"))
}

// unknownTime stands for a time_type that is none: its event counts as little
// as an estimate.
const unknownTime = "unknown"

// readTimeType gives "" for actual.
func readTimeType(v value) (s string, ok bool) {
	if v.isNull() {
		return "", true
	}
	s, _ = v.text()
	if s == Actual {
		return "", true
	}
	if !slices.Contains(timeTypes, s) {
		return unknownTime, false
	}
	return s, true
}

func (r *reader) occurred(i int, e *Event, v value) {
	if v.isNull() {
		r.report.add("V11", path(i, "occurred_at"), i)
		return
	}
	t, ok := instant(v)
	if !ok {
		r.report.add("V12", path(i, "occurred_at"), i)
		return
	}
	e.OccurredAt = t
	if e.TimeType == "" && t.Sub(r.now) > early {
		r.report.add("V13", path(i, "occurred_at"), i)
	}
}

func (r *reader) recorded(i int, e *Event, v value) {
	if v.isNull() {
		return
	}
	t, ok := instant(v)
	if !ok {
		r.report.add("V14", path(i, "recorded_at"), i)
		return
	}
	e.RecordedAt = t
	if e.TimeType == "" && t.Before(e.OccurredAt.Time) {
		r.report.add("V15", path(i, "recorded_at"), i)
	}
}

// eventVersion compares with an envelope that has a version; one that has none
// is reported once.
func (r *reader) eventVersion(i int, v value) {
	if v.isNull() || r.timeline.Version == "" {
		return
	}
	if s, ok := v.text(); !ok || !sameVersion(s, r.timeline.Version) {
		r.report.add("V16", path(i, "otep_version"), i)
	}
}

func (r *reader) status(i int, e *Event, v value) {
	s, ok := v.text()
	if !ok {
		r.report.add("V17", path(i, "status_code"), i)
		return
	}
	c, changed, ok := Canonical(s)
	if !ok {
		r.report.add("V18", path(i, "status_code"), i, s)
		return
	}
	e.StatusCode = c
	if changed {
		r.report.add("V19", path(i, "status_code"), i, s, string(c))
	}
	if c.Experimental() {
		r.report.add("V20", path(i, "status_code"), i, string(c))
	}
}

func (r *reader) phase(i int, e *Event, v value) {
	if e.StatusCode == "" {
		return
	}
	s, _ := v.text()
	spec := byCode[e.StatusCode]
	switch {
	case spec == nil && !slices.Contains(phases, s):
		r.report.add("V22", path(i, "phase"), i)
	case spec == nil:
		e.Phase = s
	default:
		e.Phase = spec.Phase
		if !v.isNull() && s != spec.Phase {
			r.report.add("V21", path(i, "phase"), i, v.citation(), spec.Phase)
		}
	}
}

// eventID takes an id of 1 to 64 characters, none of them a control character; another one is
// as none (V38). Repeats are found among all of them.
func (r *reader) eventID(i int, e *Event, v value) {
	s, ok := v.text()
	if !ok || s == "" {
		return
	}
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	if r.seen[s] {
		r.report.add("V34", path(i, "event_id"), i, s)
	}
	r.seen[s] = true
	if isExternal(s) {
		e.EventID = s
	}
}

func (r *reader) extensions(i int, e *Event, v value) error {
	if !v.isObject() {
		return nil
	}
	if err := v.unique(); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return err
	}
	if b.Len() > MaxExtensionsBytes {
		r.later.add("V37", path(i, "extensions"), i, "extensions", strconv.Itoa(MaxExtensionsBytes)+" bytes")
		return nil
	}
	return json.Unmarshal(v, &e.Extensions)
}

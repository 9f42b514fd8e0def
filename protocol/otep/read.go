package otep

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrTooLarge is what Read answers to more events in a timeline than there may be.
var ErrTooLarge = errors.New("over the limit")

// Read reads a timeline as producers write it and reports how it conforms.
// now is the instant of reading.
//
// The timeline holds what could be read, normalised: canonical codes, phases
// and source types, the default profile. Its events stand as they were given,
// one for each item, those in error filled as far as they were readable; ids
// and recording times that were not given are empty. Members that follow from the
// events, such as the current status, are left to Fold. Unknown members are
// ignored, with a warning.
//
// The error is a *JSONError, which is ErrJSON, or ErrTooLarge with the detail; everything else
// is in the report.
func Read(data []byte, now time.Time) (Timeline, Report, error) {
	body, err := document(data)
	if err != nil {
		return Timeline{}, Report{}, err
	}
	r := reader{now: now}
	if !body.isObject() {
		r.report.add("V01", "$", -1)
		return r.timeline, r.report, nil
	}
	if err := r.envelope(body); err != nil {
		return Timeline{}, Report{}, located(err, data)
	}
	r.report.Level = r.level()
	return r.timeline, r.report, nil
}

// Validate is Read for callers that only want the report.
func Validate(data []byte, now time.Time) (Report, error) {
	_, r, err := Read(data, now)
	return r, err
}

type reader struct {
	now      time.Time
	timeline Timeline
	report   Report
	later    Report // what members are found to be, until flush
	sound    []bool // by event: nothing wrong with V11 to V22
	seen     map[string]bool
}

func (r *reader) envelope(body value) error {
	m, err := body.members()
	if err != nil {
		return err
	}
	r.version(find(m, "otep_version"))
	r.profile(find(m, "profile"))
	if err := r.subject(find(m, "subject")); err != nil {
		return err
	}
	r.members(timelineShape, m, envelope)
	if t, ok := instant(find(m, "estimated_delivery_at")); ok {
		r.timeline.EstimatedDeliveryAt = &t
	}
	if err := r.withdrawals(find(m, "withdrawals")); err != nil {
		return err
	}
	list := find(m, "events")
	if !list.isArray() {
		r.report.add("V10", "events", -1)
	}
	r.flush()
	items := list.items()
	if len(items) > MaxEvents {
		return fmt.Errorf("events: %w of %d items", ErrTooLarge, MaxEvents)
	}
	r.timeline.Events = make([]Event, len(items))
	r.sound = make([]bool, len(items))
	for i, item := range items {
		if err := r.event(i, item); err != nil {
			return err
		}
	}
	if list.isArray() {
		r.whole(find(m, "current_status"), find(m, "delivered"))
	}
	return nil
}

// withdrawals reads what a source takes back.
func (r *reader) withdrawals(v value) error {
	if v.count() > MaxEvents { // V37 says so
		return nil
	}
	for i, item := range v.items() {
		m, err := item.members()
		if err != nil {
			return err
		}
		at := spot{-1, "withdrawals.", i}
		if !item.isObject() {
			r.later.add("V36", at.path(""), -1, "withdrawals", anObject.words)
			continue
		}
		r.members(withdrawalShape, m, at)
		var w Withdrawal
		texts(m, field{"event_id", &w.EventID}, field{"reason", &w.Reason})
		r.timeline.Withdrawals = append(r.timeline.Withdrawals, w)
	}
	return nil
}

func (r *reader) version(v value) {
	s, ok := v.text()
	if !ok {
		r.report.add("V02", "otep_version", -1)
		return
	}
	r.timeline.Version = s
	major, minor, _, ok := parts(s)
	switch {
	case !ok || major > 0:
		r.report.add("V03", "otep_version", -1, s)
	case minor > 1:
		r.report.add("V04", "otep_version", -1, s)
	}
}

// parts reads a version of two or three numbers. Numbers beyond what fits are
// the largest that does.
func parts(s string) (major, minor, patch uint64, ok bool) {
	words := strings.SplitN(s, ".", 4)
	if len(words) < 2 || len(words) > 3 {
		return 0, 0, 0, false
	}
	var n [3]uint64
	for i, w := range words {
		if strings.Trim(w, "0123456789") != "" {
			return 0, 0, 0, false
		}
		var err error
		if n[i], err = strconv.ParseUint(w, 10, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, 0, 0, false
		}
	}
	return n[0], n[1], n[2], true
}

// sameVersion compares versions by their numbers when both have some.
func sameVersion(a, b string) bool {
	if a == b {
		return true
	}
	a1, a2, a3, ok := parts(a)
	b1, b2, b3, both := parts(b)
	return ok && both && a1 == b1 && a2 == b2 && a3 == b3
}

func (r *reader) profile(v value) {
	r.timeline.Profile = DefaultProfile
	if v.isNull() {
		r.report.add("V05", "profile", -1)
		return
	}
	s, ok := v.text()
	if !ok || !ValidProfile(s) {
		r.report.add("V06", "profile", -1, v.citation())
		return
	}
	if !slices.Contains(profiles, s) {
		r.report.add("V07", "profile", -1, s)
	}
	r.timeline.Profile = s
}

func path(event int, member string) string {
	p := "events[" + strconv.Itoa(event) + "]"
	if member != "" {
		p += "." + member
	}
	return p
}

// instant reads a date-time.
func instant(v value) (Time, bool) {
	s, ok := v.text()
	if !ok {
		return Time{}, false
	}
	t, err := ParseTime(s)
	return t, err == nil
}

package otep

import (
	"cmp"
	"slices"
	"time"
)

// level is 2 when a code of a single profile is used.
func (r *reader) level() int {
	if !r.report.Conformant() {
		return 0
	}
	for _, e := range r.timeline.Events {
		if !isUniversal(e.StatusCode) {
			return 2
		}
	}
	return 1
}

// whole checks the timeline as a whole, as far as its events are sound.
func (r *reader) whole(current, delivered value) {
	events := r.timeline.Events
	if len(events) == 0 {
		r.report.add("V40", "events", -1)
	}
	for i := 1; i < len(events); i++ {
		a, b := events[i-1].OccurredAt, events[i].OccurredAt
		if !a.IsZero() && !b.IsZero() && b.Before(a.Time) {
			r.report.add("V41", path(i, "occurred_at"), i)
		}
	}
	sorted, index := r.sorted()
	bad := BadMoves(sorted)
	slices.SortFunc(bad, func(a, b Move) int { return cmp.Compare(index[a.Index], index[b.Index]) })
	for _, m := range bad {
		i := index[m.Index]
		r.report.Errors = append(r.report.Errors, m.Entry(path(i, "status_code"), i))
	}

	if len(events) > 0 && len(sorted) == 0 {
		return // nothing is known of the latest event
	}
	var code Code
	if e := latest(sorted, time.Time{}); e != nil {
		code = e.StatusCode
	}
	_, isText := current.text()
	if current != nil && (isText || current.isNull()) && !isStatus(current, code) {
		r.report.add("V44", "current_status", -1, current.citation(), string(code))
	}
	if b, ok := delivered.flag(); ok && b != (code == Delivered) {
		r.report.add("V45", "delivered", -1)
	}
}

// isStatus reports whether v names the code; null names none.
func isStatus(v value, code Code) bool {
	if v.isNull() {
		return code == ""
	}
	s, _ := v.text()
	c, _, ok := Canonical(s)
	return ok && c == code
}

// sorted gives the sound events in order and the index that each was given at.
// Ids and recording times are those that ingest would set.
func (r *reader) sorted() (events []Event, index []int) {
	for i, e := range r.timeline.Events {
		if !r.sound[i] {
			continue
		}
		if e.RecordedAt.IsZero() {
			e.RecordedAt = Time{r.now}
		}
		if e.EventID == "" {
			e.EventID = ID(r.timeline.Subject, e)
		}
		events = append(events, e)
		index = append(index, i)
	}
	by := make([]int, len(events))
	for i := range by {
		by[i] = i
	}
	slices.SortStableFunc(by, func(a, b int) int { return Compare(&events[a], &events[b]) })
	outEvents, outIndex := make([]Event, len(by)), make([]int, len(by))
	for i, from := range by {
		outEvents[i], outIndex[i] = events[from], index[from]
	}
	return outEvents, outIndex
}

package otep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ErrTooLarge is what Read answers to more events in a timeline, or more
// telemetry in an event, than there may be.
var ErrTooLarge = errors.New("over the limit")

// Read reads a timeline as producers write it and reports how it conforms.
// now is the instant of reading.
//
// The timeline holds what could be read, normalised: canonical codes, phases
// and source types, the default profile. Its events stand as they were given,
// one for each item, those in error filled as far as they were readable; ids
// and recording times that were not given are empty. What follows from the
// events, such as the current status, is left to Fold. Unknown members are
// ignored, and so are optional ones of a wrong type that no rule is about.
//
// The error is ErrJSON or ErrTooLarge, with the detail; everything else is in
// the report.
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
		return Timeline{}, Report{}, err
	}
	r.report.Level = r.level()
	return r.timeline, r.report, nil
}

// Parse is Read for those who only want the timeline.
func Parse(data []byte) (Timeline, error) {
	t, _, err := Read(data, time.Time{})
	return t, err
}

// Validate is Read for those who only want the report.
func Validate(data []byte, now time.Time) (Report, error) {
	_, r, err := Read(data, now)
	return r, err
}

type reader struct {
	now      time.Time
	timeline Timeline
	report   Report
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
	if t, ok := instant(find(m, "estimated_delivery_at")); ok {
		r.timeline.EstimatedDeliveryAt = &t
	}
	list := find(m, "events")
	if !list.isArray() {
		r.report.add("V10", "events", -1)
		return nil
	}
	items := list.items()
	if len(items) > MaxEvents {
		return tooLarge("events", MaxEvents)
	}
	r.timeline.Events = make([]Event, len(items))
	r.sound = make([]bool, len(items))
	for i, item := range items {
		if err := r.event(i, item); err != nil {
			return err
		}
	}
	r.whole(find(m, "current_status"), find(m, "delivered"))
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
	words := strings.Split(s, ".")
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
		r.report.add("V06", "profile", -1, v.shown())
		return
	}
	if !slices.Contains(profiles, s) {
		r.report.add("V07", "profile", -1, s)
	}
	r.timeline.Profile = s
}

func (r *reader) subject(v value) error {
	m, err := v.members()
	if err != nil {
		return err
	}
	s := &r.timeline.Subject
	check := func(name string, read func(value) bool) {
		if v := find(m, name); !v.isNull() && !read(v) {
			r.report.add("V09", "subject."+name, -1, name)
		}
	}
	if !slices.ContainsFunc(identifiers, func(name string) bool { return !find(m, name).isNull() }) {
		r.report.add("V08", "subject", -1)
		return nil
	}
	check("tracking_number", func(v value) bool { return number(v, &s.TrackingNumber, isTracking) })
	check("order_id", func(v value) bool { return id(v, &s.OrderID) })
	check("package_id", func(v value) bool { return id(v, &s.PackageID) })
	check("external_tracking_number", func(v value) bool { return number(v, &s.ExternalTrackingNumber, isExternal) })
	check("gs1_sscc", func(v value) bool { return sscc(v, &s.SSCC) })
	check("piece_id", func(v value) bool { return number(v, &s.PieceID, isPrintable) })
	return nil
}

var identifiers = []string{"tracking_number", "order_id", "package_id", "external_tracking_number", "gs1_sscc", "piece_id"}

// number reads an identifier of letters, trimmed.
func number(v value, to *string, valid func(string) bool) bool {
	s, ok := v.text()
	s = strings.TrimSpace(s)
	if !ok || s == "" || !valid(s) {
		return false
	}
	*to = s
	return true
}

// isTracking holds when nothing but the allowed characters is there to trim.
func isTracking(s string) bool {
	return len(s) <= maxName && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func isExternal(s string) bool { return utf8.RuneCountInString(s) <= maxName && isPrintable(s) }

func isPrintable(s string) bool { return strings.IndexFunc(s, unicode.IsControl) < 0 }

// id reads a number of the platform, 1 or more.
func id(v value, to *int64) bool {
	n, ok := v.whole()
	if !ok || n < 1 {
		return false
	}
	*to = n
	return true
}

// sscc reads a serial shipping container code: 18 digits, the last one a GS1
// check digit, perhaps with the application identifier 00 before them.
func sscc(v value, to *string) bool {
	s, _ := v.text()
	if len(s) == 20 {
		s = strings.TrimPrefix(s, "00")
	}
	if len(s) != 18 {
		return false
	}
	sum := 0
	for i := range len(s) {
		d := int(s[i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		sum += d * (3 - i%2*2) // weights 3, 1, 3, ... and 1 for the check digit
	}
	if sum%10 != 0 {
		return false
	}
	*to = s
	return true
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
		if m.Ended {
			r.report.add("V43", path(i, "status_code"), i, string(m.To), string(m.From))
		} else {
			r.report.add("V42", path(i, "status_code"), i, string(m.From), string(m.To))
		}
	}
	if len(events) > 0 && len(sorted) == 0 {
		return // nothing is known of the latest event
	}
	var code Code
	if e := latest(sorted); e != nil {
		code = e.StatusCode
	}
	if current != nil && !isStatus(current, code) {
		r.report.add("V44", "current_status", -1, current.shown(), string(code))
	}
	if !delivered.isNull() {
		if b, ok := delivered.flag(); !ok || b != (code == Delivered) {
			r.report.add("V45", "delivered", -1)
		}
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
	slices.SortStableFunc(by, func(a, b int) int { return compare(&events[a], &events[b]) })
	outEvents, outIndex := make([]Event, len(by)), make([]int, len(by))
	for i, from := range by {
		outEvents[i], outIndex[i] = events[from], index[from]
	}
	return outEvents, outIndex
}

func tooLarge(path string, limit int) error {
	return fmt.Errorf("%s: %w of %d items", path, ErrTooLarge, limit)
}

func path(event int, member string) string {
	p := "events[" + strconv.Itoa(event) + "]"
	if member != "" {
		p += "." + member
	}
	return p
}

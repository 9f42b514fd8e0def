package otep

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Events are stored by the million and read with every look at a parcel. The
// functions here read and write the JSON of an event without reflection, as
// long as it looks as we write it; whatever looks unusual is left to
// encoding/json, so both mean the same, and tests hold them to it.

// DecodeEvent reads an event as AppendEvent or encoding/json wrote it. The
// event shares the text's memory.
func DecodeEvent(text string) (Event, error) {
	if e, ok := quickEvent(text); ok {
		return e, nil
	}
	var e Event
	err := json.Unmarshal([]byte(text), &e)
	return e, err
}

// quickEvent reads members in the order of Event's fields, each at most once.
func quickEvent(text string) (e Event, ok bool) {
	q := quick{s: text}
	q.open()
	e.EventID = q.text(`"event_id":`)
	e.Version = q.text(`"otep_version":`)
	e.OccurredAt = q.time(`"occurred_at":`)
	e.RecordedAt = q.time(`"recorded_at":`)
	e.StatusCode = Code(q.text(`"status_code":`))
	e.StatusURI = q.text(`"status_uri":`)
	e.StatusLabel = q.text(`"status_label":`)
	e.Phase = q.text(`"phase":`)
	e.PhaseURI = q.text(`"phase_uri":`)
	e.TimeType = q.text(`"time_type":`)
	if q.next(`"location":`) {
		e.Location = q.location()
	}
	e.IncidentReason = q.text(`"incident_reason":`)
	if q.next(`"source":`) {
		e.Source = q.source()
	}
	e.Message = q.text(`"message":`)
	e.Corrects = q.text(`"corrects":`)
	q.end()
	return e, !q.bad && q.s == ""
}

func (q *quick) location() *Location {
	l := &Location{}
	q.open()
	l.Name = q.text(`"name":`)
	l.Address = q.text(`"address":`)
	l.City = q.text(`"city":`)
	l.Region = q.text(`"region":`)
	l.PostalCode = q.text(`"postal_code":`)
	l.Country = q.text(`"country":`)
	l.Latitude = q.number(`"latitude":`)
	l.Longitude = q.number(`"longitude":`)
	l.UNLocode = q.text(`"unlocode":`)
	l.GLN = q.text(`"gln":`)
	l.FacilityID = q.text(`"facility_id":`)
	l.Type = q.text(`"type":`)
	q.end()
	return l
}

func (q *quick) source() *Source {
	s := &Source{}
	q.open()
	s.Type = q.text(`"type":`)
	s.Provider = q.text(`"provider":`)
	s.ProviderName = q.text(`"provider_name":`)
	s.RawStatus = q.text(`"raw_status":`)
	s.RawMessage = q.text(`"raw_message":`)
	s.Reference = q.text(`"reference":`)
	if q.next(`"synthesized":`) {
		s.Synthesized = true
		q.cut("true")
	}
	q.end()
	return s
}

// quick is what is left to read. Once bad it stays so.
type quick struct {
	s    string
	more bool // a member was read in this object
	bad  bool
}

func (q *quick) cut(prefix string) {
	rest, ok := strings.CutPrefix(q.s, prefix)
	q.s, q.bad = rest, q.bad || !ok
}

func (q *quick) open() {
	q.cut("{")
	q.more = false
}

func (q *quick) end() {
	q.cut("}")
	q.more = true // in the object around it
}

// next goes to the value of a member when it is the one that comes.
func (q *quick) next(name string) bool {
	s := q.s
	if q.more {
		if s == "" || s[0] != ',' {
			return false
		}
		s = s[1:]
	}
	s, ok := strings.CutPrefix(s, name)
	if ok {
		q.s, q.more = s, true
	}
	return ok
}

// text reads a string without escapes, "" when another member comes.
func (q *quick) text(name string) string {
	if !q.next(name) {
		return ""
	}
	q.cut(`"`)
	for i := 0; i < len(q.s); i++ {
		switch c := q.s[i]; {
		case c == '"':
			s := q.s[:i]
			q.s = q.s[i+1:]
			q.bad = q.bad || !utf8.ValidString(s)
			return s
		case c == '\\' || c < ' ':
			q.bad = true
			return ""
		}
	}
	q.bad = true
	return ""
}

func (q *quick) time(name string) Time {
	s := q.text(name)
	if s == "" {
		q.bad = true // every event has both
		return Time{}
	}
	t, err := ParseTime(s)
	q.bad = q.bad || err != nil
	return t
}

// number reads a number without an exponent.
func (q *quick) number(name string) *float64 {
	if !q.next(name) {
		return nil
	}
	n := 0
	for n < len(q.s) && (q.s[n] == '-' || q.s[n] == '.' || q.s[n] >= '0' && q.s[n] <= '9') {
		n++
	}
	f, err := strconv.ParseFloat(q.s[:n], 64)
	if err != nil || !plainNumber(q.s[:n]) {
		q.bad = true
		return nil
	}
	q.s = q.s[n:]
	return &f
}

// plainNumber is the grammar of JSON for what is made of digits, signs and
// dots and is a number.
func plainNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, _, dot := strings.Cut(s, ".")
	return whole != "" && (whole == "0" || whole[0] != '0') && (!dot || s[len(s)-1] != '.')
}

// Writing.

var errNumber = errors.New("a number is not finite")

// AppendEvent appends what encoding/json writes for e with nothing escaped for
// HTML. The error is that of encoding/json for a number that is not finite, or
// for extensions that have no JSON.
func AppendEvent(b []byte, e *Event) ([]byte, error) {
	b = appendText(b, `{"event_id":`, e.EventID)
	b = appendText(b, `,"otep_version":`, e.Version)
	b = appendTime(b, `,"occurred_at":`, e.OccurredAt)
	b = appendTime(b, `,"recorded_at":`, e.RecordedAt)
	b = appendText(b, `,"status_code":`, string(e.StatusCode))
	b = appendGiven(b, `,"status_uri":`, e.StatusURI)
	b = appendGiven(b, `,"status_label":`, e.StatusLabel)
	b = appendText(b, `,"phase":`, e.Phase)
	b = appendGiven(b, `,"phase_uri":`, e.PhaseURI)
	b = appendGiven(b, `,"time_type":`, e.TimeType)
	var err, failed error
	if e.Location != nil {
		b, failed = appendLocation(append(b, `,"location":`...), e.Location)
		err = errors.Join(err, failed)
	}
	b = appendGiven(b, `,"incident_reason":`, e.IncidentReason)
	if e.Source != nil {
		b = appendSource(append(b, `,"source":`...), e.Source)
	}
	if e.PoD != nil {
		b, failed = appendAny(append(b, `,"pod":`...), e.PoD)
		err = errors.Join(err, failed)
	}
	if len(e.Telemetry) > 0 {
		b, failed = appendAny(append(b, `,"telemetry":`...), e.Telemetry)
		err = errors.Join(err, failed)
	}
	b = appendGiven(b, `,"message":`, e.Message)
	if len(e.Extensions) > 0 {
		b, failed = appendAny(append(b, `,"extensions":`...), e.Extensions)
		err = errors.Join(err, failed)
	}
	b = appendGiven(b, `,"corrects":`, e.Corrects)
	if e.Via != 0 {
		b = strconv.AppendInt(append(b, `,"via":`...), e.Via, 10)
	}
	return append(b, '}'), err
}

// AppendJSON appends the timeline as AppendEvent does its events.
func (t Timeline) AppendJSON(b []byte) ([]byte, error) {
	b = appendText(b, `{"otep_version":`, t.Version)
	b = appendText(b, `,"profile":`, t.Profile)
	b, err := appendAny(append(b, `,"subject":`...), t.Subject)
	if err != nil {
		return b, err
	}
	b = appendOrNull(b, `,"current_status":`, (*string)(t.Current))
	b = appendOrNull(b, `,"current_phase":`, t.CurrentPhase)
	b = strconv.AppendBool(append(b, `,"delivered":`...), t.Delivered)
	b = strconv.AppendBool(append(b, `,"terminal":`...), t.Terminal)
	if t.LastEventAt != nil {
		b = appendTime(b, `,"last_event_at":`, *t.LastEventAt)
	} else {
		b = append(b, `,"last_event_at":null`...)
	}
	if t.EstimatedDeliveryAt != nil {
		b = appendTime(b, `,"estimated_delivery_at":`, *t.EstimatedDeliveryAt)
	}
	if t.Events == nil {
		b = append(b, `,"events":null`...)
	} else if b, err = appendEvents(append(b, `,"events":`...), t.Events); err != nil {
		return b, err
	}
	if len(t.Reports) > 0 {
		if b, err = appendEvents(append(b, `,"reports":`...), t.Reports); err != nil {
			return b, err
		}
	}
	if len(t.Withdrawals) > 0 {
		if b, err = appendAny(append(b, `,"withdrawals":`...), t.Withdrawals); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func appendEvents(b []byte, events []Event) (_ []byte, err error) {
	b = append(b, '[')
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = AppendEvent(b, &events[i]); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func appendLocation(b []byte, l *Location) ([]byte, error) {
	at := len(b)
	b = appendGiven(b, `,"name":`, l.Name)
	b = appendGiven(b, `,"address":`, l.Address)
	b = appendGiven(b, `,"city":`, l.City)
	b = appendGiven(b, `,"region":`, l.Region)
	b = appendGiven(b, `,"postal_code":`, l.PostalCode)
	b = appendGiven(b, `,"country":`, l.Country)
	b, err := appendNumber(b, `,"latitude":`, l.Latitude)
	b, failed := appendNumber(b, `,"longitude":`, l.Longitude)
	b = appendGiven(b, `,"unlocode":`, l.UNLocode)
	b = appendGiven(b, `,"gln":`, l.GLN)
	b = appendGiven(b, `,"facility_id":`, l.FacilityID)
	b = appendGiven(b, `,"type":`, l.Type)
	return closed(b, at), errors.Join(err, failed)
}

func appendSource(b []byte, s *Source) []byte {
	b = appendText(b, `{"type":`, s.Type)
	b = appendGiven(b, `,"provider":`, s.Provider)
	b = appendGiven(b, `,"provider_name":`, s.ProviderName)
	b = appendGiven(b, `,"raw_status":`, s.RawStatus)
	b = appendGiven(b, `,"raw_message":`, s.RawMessage)
	b = appendGiven(b, `,"reference":`, s.Reference)
	if s.Synthesized {
		b = append(b, `,"synthesized":true`...)
	}
	return append(b, '}')
}

// closed makes an object of members that begin at b[at] with a comma.
func closed(b []byte, at int) []byte {
	if len(b) == at {
		return append(b, "{}"...)
	}
	b[at] = '{'
	return append(b, '}')
}

func appendGiven(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendText(b, name, s)
}

func appendOrNull(b []byte, name string, s *string) []byte {
	if s == nil {
		return append(append(b, name...), "null"...)
	}
	return appendText(b, name, *s)
}

func appendText(b []byte, name, s string) []byte {
	b = append(b, name...)
	plain, ascii := true, true
	for i := range len(s) {
		c := s[i]
		plain = plain && c >= ' ' && c != '"' && c != '\\'
		ascii = ascii && c < utf8.RuneSelf
	}
	if !plain || !ascii && (!utf8.ValidString(s) || strings.ContainsAny(s, "\u2028\u2029")) {
		b, _ = appendAny(b, s) // a string always has an encoding
		return b
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendTime(b []byte, name string, t Time) []byte {
	b = append(append(b, name...), '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

func appendNumber(b []byte, name string, f *float64) ([]byte, error) {
	switch {
	case f == nil:
		return b, nil
	case math.IsNaN(*f) || math.IsInf(*f, 0):
		return b, errNumber
	case *f != 0 && (math.Abs(*f) < 1e-6 || math.Abs(*f) >= 1e21): // written with an exponent
		return appendAny(append(b, name...), *f)
	}
	return strconv.AppendFloat(append(b, name...), *f, 'f', -1, 64), nil
}

// appendAny is encoding/json.
func appendAny(b []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})...), nil
}

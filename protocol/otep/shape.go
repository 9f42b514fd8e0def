package otep

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/internal/spelling"
	"github.com/postern-io/postern/protocol/gs1"
)

// The members of every object of a timeline stand here once: the schema, the rules V36 to V39
// and with them ingest follow from the tables.

// kind is what a member may hold.
type kind struct {
	words  string // as V36 says it
	holds  func(v value) bool
	schema object
}

var (
	aText   = kind{"a string", value.isText, object{"type": "string"}}
	aFlag   = kind{"true or false", func(v value) bool { _, ok := v.flag(); return ok }, object{"type": "boolean"}}
	aWhole  = kind{"an integer", func(v value) bool { _, ok := v.whole(); return ok }, object{"type": "integer", "minimum": int64(math.MinInt64), "maximum": int64(math.MaxInt64)}}
	aMoment = kind{"a date-time with offset", func(v value) bool { _, ok := instant(v); return ok }, ref("date_time")}
	// anID names an event that was sent before.
	anID     = kind{"an event_id of 1 to 64 characters", func(v value) bool { s, ok := v.text(); return ok && s != "" && isExternal(s) }, object{"type": "string", "pattern": `^` + printable + `{1,64}$`}}
	aReason  = oneOf(DidNotOccur, IncorrectData)
	aPhase   = oneOf(phases...)
	anObject = kind{"an object", value.isObject, object{"type": "object"}}
	anArray  = kind{"an array", value.isArray, object{"type": "array"}}
)

// oneOf is one of some texts.
func oneOf(texts ...string) kind {
	return kind{"one of: " + strings.Join(texts, ", "), func(v value) bool { s, ok := v.text(); return ok && slices.Contains(texts, s) }, object{"enum": texts}}
}

// ref is the schema that another one names.
func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

// nullable is a schema that takes null, too: a member that is null counts as not given.
func nullable(s object) object {
	if t, ok := s["type"].(string); ok {
		s = maps.Clone(s)
		s["type"] = []string{t, "null"}
		return s
	}
	if list, ok := s["enum"].([]string); ok {
		return object{"enum": append(anys(list), nil)}
	}
	return object{"anyOf": []any{s, object{"type": "null"}}}
}

// slot is a member of an object. One that no rule of its own is about is held to its kind
// (V36) and limit (V37), and warned about a text of another form (V38).
type slot struct {
	name   string
	kind   kind
	schema object // of a ruled one all of it; of others what stands beside that of kind
	ruled  bool
	needed bool // where null and nothing are of the wrong kind, too
	max    int  // characters of a text, items of an array; 0: no limit
	form   func(s string) bool
}

// write is the slot's schema.
func (x slot) write() object {
	if x.ruled {
		return x.schema
	}
	out := x.kind.schema
	if !x.needed {
		out = nullable(out)
	}
	if len(x.schema) > 0 || x.max > 0 {
		out = maps.Clone(out)
	}
	maps.Copy(out, x.schema)
	switch {
	case x.max > 0 && x.kind.words == anArray.words:
		out["maxItems"] = x.max
	case x.max > 0:
		out["maxLength"] = x.max
	}
	return out
}

// over says how a value is larger than it may be, "" when it is not.
func (x slot) over(v value) string {
	if x.max == 0 {
		return ""
	}
	if v.isArray() {
		if v.count() > x.max {
			return strconv.Itoa(x.max) + " items"
		}
		return ""
	}
	if len(v) <= x.max { // at least a byte for each
		return ""
	}
	if s, _ := v.text(); utf8.RuneCountInString(s) > x.max {
		return strconv.Itoa(x.max) + " characters"
	}
	return ""
}

// shape is an object's members.
type shape struct {
	members []string
	needed  []string
	slots   map[string]*slot
}

func newShape(slots ...slot) *shape {
	s := &shape{slots: make(map[string]*slot, len(slots))}
	for i := range slots {
		s.members = append(s.members, slots[i].name)
		s.slots[slots[i].name] = &slots[i]
		if slots[i].needed {
			s.needed = append(s.needed, slots[i].name)
		}
	}
	return s
}

// ruled is a slot that a rule of its own is about, for which null may be an error.
func ruled(name string, schema object) slot { return slot{name: name, schema: schema, ruled: true} }

// ofKind are slots of one kind that nothing more is said of.
func ofKind(k kind, names ...string) (out []slot) {
	for _, name := range names {
		out = append(out, slot{name: name, kind: k})
	}
	return out
}

var (
	timelineShape = newShape(
		ruled("otep_version", versionSchema),
		ruled("profile", nullable(object{"type": "string", "pattern": namePattern, "maxLength": maxName, "not": object{"enum": reserved}, "default": DefaultProfile, "examples": profiles})),
		ruled("subject", ref("subject")),
		slot{name: "current_status", kind: aText, schema: object{"description": "status code of the latest event"}},
		slot{name: "current_phase", kind: aPhase},
		slot{name: "delivered", kind: aFlag},
		slot{name: "terminal", kind: aFlag},
		slot{name: "last_event_at", kind: aMoment},
		slot{name: "estimated_delivery_at", kind: aMoment},
		ruled("events", object{"type": "array", "items": ref("event"), "maxItems": MaxEvents}),
		slot{name: "reports", kind: anArray, schema: object{"description": "events of sources that had no say when they came, in answers only; they count for nothing"}},
		slot{name: "withdrawals", kind: anArray, max: MaxEvents, schema: object{"items": ref("withdrawal")}},
	)
	withdrawalShape = newShape(
		slot{name: "event_id", kind: anID, needed: true, schema: object{"description": "of an event that the same source sent before"}},
		slot{name: "reason", kind: aReason, needed: true},
	)
	subjectShape = newShape(
		ruled("tracking_number", nullable(object{"type": "string", "pattern": trimmed(`[A-Za-z0-9._-]{1,64}`), "description": "1 to 64 of A-Z a-z 0-9 . _ -"})),
		ruled("order_id", positiveSchema),
		ruled("package_id", positiveSchema),
		ruled("external_tracking_number", nullable(object{"type": "string", "pattern": trimmed(letter + `(` + printable + `{0,62}` + letter + `)?`), "description": "1 to 64 characters, no control characters"})),
		ruled("gs1_sscc", nullable(object{"type": "string", "pattern": `^(00)?\d{18}$`, "description": "18 digits, the last one a GS1 check digit; the application identifier 00 may stand before them"})),
		ruled("piece_id", nullable(object{"type": "string", "pattern": trimmed(letter + `(` + printable + `*` + letter + `)?`), "description": "an absolute IRI, or a local id"})),
	)
	eventShape = newShape(
		slot{name: "event_id", kind: aText, form: func(s string) bool { return s == "" || isExternal(s) }, schema: object{"description": "1 to 64 characters, no control characters; another one is replaced"}},
		ruled("otep_version", nullable(versionSchema)),
		ruled("occurred_at", ref("date_time")),
		ruled("recorded_at", nullable(ref("date_time"))),
		ruled("status_code", ref("status_code")),
		slot{name: "status_uri", kind: aText},
		slot{name: "status_label", kind: aText},
		ruled("phase", object{"enum": append(anys(phases), nil)}),
		slot{name: "phase_uri", kind: aText},
		ruled("time_type", object{"enum": append(anys(timeTypes), nil), "default": Actual}),
		ruled("location", nullable(ref("location"))),
		ruled("incident_reason", object{"anyOf": []any{object{"enum": incidentCodes()}, object{"type": "string", "pattern": "^x-[a-z][a-z0-9_]*$", "maxLength": maxName}, object{"type": "null"}}}),
		ruled("source", nullable(ref("source"))),
		slot{name: "pod", kind: kind{anObject.words, anObject.holds, ref("pod")}},
		slot{name: "telemetry", kind: anArray, max: MaxTelemetry, schema: object{"items": ref("reading")}},
		slot{name: "message", kind: aText, max: MaxMessage},
		slot{name: "extensions", kind: anObject, schema: object{"description": "members of the producer, kept untouched; 8 KiB as JSON without white space"}},
		slot{name: "corrects", kind: anID, schema: object{"description": "id of an event that the same source sent before, and which this one replaces"}},
	)
	locationShape = newShape(slices.Concat(
		ofKind(aText, "name", "address", "city", "region", "postal_code"),
		[]slot{{name: "country", kind: aText, schema: object{"description": "ISO 3166-1 alpha-2"}}},
		[]slot{
			ruled("latitude", nullable(object{"type": "number", "minimum": -90, "maximum": 90})),
			ruled("longitude", nullable(object{"type": "number", "minimum": -180, "maximum": 180})),
			{name: "unlocode", kind: aText, form: IsUNLocode, schema: object{"description": "UN/LOCODE, 5 characters"}},
			{name: "gln", kind: aText, form: IsGLN, schema: object{"description": "GS1 Global Location Number, 13 digits, the last one a check digit"}},
			{name: "facility_id", kind: aText},
			{name: "type", kind: aText, schema: object{"description": strings.Join(places, " | ") + ", to which another one is read", "examples": places}},
		},
	)...)
	sourceShape = newShape(slices.Concat(
		[]slot{ruled("type", familySchema())},
		ofKind(aText, "provider", "provider_name", "raw_status", "raw_message", "reference"),
		ofKind(aFlag, "synthesized"),
	)...)
	proofShape = newShape(slices.Concat(
		ofKind(aText, "recipient"), ofKind(aFlag, "signed"), ofKind(aText, "signature_url"), ofKind(aMoment, "signed_at"), ofKind(aText, "note"),
		[]slot{{name: "files", kind: anArray, schema: object{"items": ref("file")}}},
	)...)
	fileShape    = newShape(slices.Concat(ofKind(aWhole, "file_id"), ofKind(aText, "type", "url", "full_url"))...)
	readingShape = newShape(
		ruled("type", object{"type": "string", "pattern": `[^` + white + `]`, "description": "what was measured", "examples": sensorNames()}),
		ruled("value", object{"type": "number", "minimum": -math.MaxFloat64, "maximum": math.MaxFloat64}),
		slot{name: "unit", kind: aText, form: IsUnit, schema: object{"description": "UN/CEFACT Recommendation 20 code"}},
		slot{name: "time", kind: aMoment},
		slot{name: "device_id", kind: aText},
	)
)

// IsGLN reports whether s is a GS1 Global Location Number: 13 digits, the last one a check digit.
func IsGLN(s string) bool { return len(s) == 13 && gs1.IsKey(s) }

// IsSSCC reports whether s is a serial shipping container code: 18 digits, the last one a check digit.
func IsSSCC(s string) bool { return len(s) == 18 && gs1.IsKey(s) }

// IsCountry reports whether s has the form of a code of ISO 3166-1 alpha-2, in capitals.
func IsCountry(s string) bool {
	return len(s) == 2 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// IsUNLocode reports whether s has the form of a UN/LOCODE, a country's two letters and three
// letters or digits from 2 to 9.
func IsUNLocode(s string) bool { return unlocodeForm.MatchString(s) }

// IsUnit reports whether s has the form of a code of UN/CEFACT Recommendation 20, one to three
// capital letters and digits.
func IsUnit(s string) bool { return unitForm.MatchString(s) }

// Patterns of texts, in what the regular expressions of all languages share. White space is that
// of Unicode, which stands in them letter by letter.
const (
	white     = `\s` + "\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
	control   = `\x00-\x1f\x7f-\x9f`
	letter    = `[^` + white + control + `]`
	printable = `[^` + control + `]`
)

// trimmed is the pattern of a text with white space around it, which does not count.
func trimmed(text string) string { return `^[` + white + `]*` + text + `[` + white + `]*$` }

var (
	unlocodeForm = regexp.MustCompile(`^[A-Z]{2}[A-Z2-9]{3}$`)
	unitForm     = regexp.MustCompile(`^[A-Z0-9]{1,3}$`)
)

// spot is where an object stands: an event, or the envelope with -1, the names above the object,
// each with its dot, and its place in an array, -1 for none.
type spot struct {
	event int
	above string
	item  int
}

var envelope = spot{-1, "", -1}

// path is that of a member of the object.
func (p spot) path(name string) string {
	above := p.above
	if p.item >= 0 {
		above = strings.TrimSuffix(above, ".") + "[" + strconv.Itoa(p.item) + "]."
	}
	if name == "" {
		above = strings.TrimSuffix(above, ".")
	}
	if p.event < 0 {
		return above + name
	}
	return path(p.event, above+name)
}

// members holds those of an object to its shape. What they are found to be is kept until the
// rules of their event or envelope are through.
func (r *reader) members(s *shape, given []member, at spot) {
	for i := range given {
		name, v := given[i].name, given[i].value
		x, known := s.slots[string(name)]
		switch {
		case !known:
			r.later.add("V39", at.path(string(name)), at.event, string(name), s.advice(string(name)))
		case x.ruled || v.isNull() && !x.needed:
		default:
			r.slot(x, v, at)
		}
	}
	for _, name := range s.needed {
		if find(given, name) == nil {
			r.slot(s.slots[name], nil, at)
		}
	}
}

func (r *reader) slot(x *slot, v value, at spot) {
	if !x.kind.holds(v) {
		r.later.add("V36", at.path(x.name), at.event, x.name, x.kind.words)
		return
	}
	if what := x.over(v); what != "" {
		r.later.add("V37", at.path(x.name), at.event, x.name, what)
	}
	if x.form != nil {
		if s, _ := v.text(); !x.form(s) {
			r.later.add("V38", at.path(x.name), at.event, x.name, s)
		}
	}
}

// flush puts the findings of members behind those of the other rules.
func (r *reader) flush() {
	r.report.Errors, r.report.Warnings = append(r.report.Errors, r.later.Errors...), append(r.report.Warnings, r.later.Warnings...)
	r.later = Report{}
}

// advice says what a member that is not known may have meant.
func (s *shape) advice(name string) string {
	if nearest := spelling.Nearest(strings.ToLower(name), s.members); nearest != "" {
		return "did you mean '" + nearest + "'?"
	}
	return "known are " + strings.Join(s.members, ", ")
}

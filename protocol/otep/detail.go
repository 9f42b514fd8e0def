package otep

import (
	"slices"
	"strconv"
	"strings"
)

func (r *reader) source(i int, e *Event, v value) error {
	if v.isNull() {
		r.report.add("V23", path(i, "source"), i)
		return nil
	}
	m, err := v.members()
	if err != nil {
		return err
	}
	r.members(sourceShape, m, spot{i, "source.", -1})
	given := find(m, "type")
	s, _ := given.text()
	kind, changed, ok := SourceType(s)
	switch {
	case !ok && given.isNull():
		r.report.add("V24", path(i, "source.type"), i, "")
	case !ok:
		r.report.add("V24", path(i, "source.type"), i, given.citation())
	case changed:
		r.report.add("V25", path(i, "source.type"), i, s, kind)
	}
	e.Source = &Source{Type: kind}
	texts(m,
		field{"provider", &e.Source.Provider}, field{"provider_name", &e.Source.ProviderName}, field{"raw_status", &e.Source.RawStatus},
		field{"raw_message", &e.Source.RawMessage}, field{"reference", &e.Source.Reference},
	)
	e.Source.Synthesized, _ = find(m, "synthesized").flag()
	return nil
}

// field is where the text of a member goes.
type field struct {
	name string
	to   *string
}

// texts fills what is given as a string.
func texts(m []member, fields ...field) {
	for _, f := range fields {
		*f.to, _ = find(m, f.name).text()
	}
}

func (r *reader) location(i int, e *Event, v value) error {
	if v.isNull() {
		return nil
	}
	m, err := v.members()
	if err != nil {
		return err
	}
	r.members(locationShape, m, spot{i, "location.", -1})
	l := &Location{}
	lat, latOK := coordinate(find(m, "latitude"), 90)
	long, longOK := coordinate(find(m, "longitude"), 180)
	if !v.isObject() || !latOK || !longOK || (lat == nil) != (long == nil) {
		r.report.add("V26", path(i, "location"), i)
	} else {
		l.Latitude, l.Longitude = lat, long
	}
	texts(m,
		field{"name", &l.Name}, field{"address", &l.Address}, field{"city", &l.City}, field{"region", &l.Region}, field{"postal_code", &l.PostalCode}, field{"country", &l.Country},
		field{"unlocode", &l.UNLocode}, field{"gln", &l.GLN}, field{"facility_id", &l.FacilityID}, field{"type", &l.Type},
	)
	if _, given := find(m, "country").text(); given {
		l.Country = strings.ToUpper(l.Country)
		if !IsCountry(l.Country) {
			r.report.add("V27", path(i, "location.country"), i)
		}
	}
	if l.Type = strings.ToLower(strings.TrimSpace(l.Type)); l.Type != "" && !slices.Contains(places, l.Type) {
		l.Type = placeOther
	}
	if *l != (Location{}) {
		e.Location = l
	}
	return nil
}

// coordinate reads degrees of at most limit to either side. ok is false for
// what is given and is none.
func coordinate(v value, limit float64) (f *float64, ok bool) {
	if v.isNull() {
		return nil, true
	}
	n, ok := v.number()
	if !ok || n < -limit || n > limit {
		return nil, false
	}
	return &n, true
}

func (r *reader) reason(i int, e *Event, v value) {
	if v.isNull() {
		return
	}
	s, _ := v.text()
	if _, registered := Reason(s); registered {
		e.IncidentReason = s
	} else if experimentalReason(s) {
		e.IncidentReason = s
		r.report.add("V29", path(i, "incident_reason"), i, s)
	} else {
		r.report.add("V28", path(i, "incident_reason"), i, v.citation())
	}
	switch e.Phase {
	case "", PhaseException, PhaseReturn, PhaseCancelled:
	default:
		r.report.add("V30", path(i, "incident_reason"), i, string(e.StatusCode))
	}
}

func (r *reader) proof(i int, e *Event, v value) error {
	if v.isNull() {
		return nil
	}
	if e.Phase != "" && !Project(e.StatusCode, e.Phase).PoD {
		r.report.add("V31", path(i, "pod"), i, string(e.StatusCode))
	}
	m, err := v.members()
	if err != nil || !v.isObject() {
		return err
	}
	r.members(proofShape, m, spot{i, "pod.", -1})
	p := &Proof{}
	texts(m, field{"recipient", &p.Recipient}, field{"signature_url", &p.SignatureURL}, field{"note", &p.Note})
	p.Signed, _ = find(m, "signed").flag()
	if t, ok := instant(find(m, "signed_at")); ok {
		p.SignedAt = &t
	}
	for j, item := range find(m, "files").items() {
		m, err := item.members()
		if err != nil {
			return err
		}
		at := spot{i, "pod.files.", j}
		r.members(fileShape, m, at)
		if !item.isObject() {
			r.later.add("V36", at.path(""), i, "files", anObject.words)
		} else {
			var f File
			f.ID, _ = find(m, "file_id").whole()
			texts(m, field{"type", &f.Type}, field{"url", &f.URL}, field{"full_url", &f.FullURL})
			p.Files = append(p.Files, f)
		}
	}
	e.PoD = p
	return nil
}

func (r *reader) telemetry(i int, e *Event, v value) error {
	if v.count() > MaxTelemetry { // V37 says so
		return nil
	}
	for j, item := range v.items() {
		m, err := item.members()
		if err != nil {
			return err
		}
		r.members(readingShape, m, spot{i, "telemetry.", j})
		kind, _ := find(m, "type").text()
		n, ok := find(m, "value").number()
		if kind = strings.ToLower(strings.TrimSpace(kind)); kind == "" || !ok {
			r.report.add("V32", path(i, "telemetry["+strconv.Itoa(j)+"]"), i)
			continue
		}
		reading := Reading{Type: kind, Value: n}
		texts(m, field{"unit", &reading.Unit}, field{"device_id", &reading.DeviceID})
		if t, ok := instant(find(m, "time")); ok {
			reading.Time = &t
		}
		e.Telemetry = append(e.Telemetry, reading)
	}
	return nil
}

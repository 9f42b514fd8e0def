package projection

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/protocol/otep"
)

// EPCIS 2.0 (GS1, ISO/IEC 19987). Vocabulary words stand bare: the published
// schema refuses every other spelling of them.
const (
	epcisContext = "https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld"
	gs1ID        = "https://id.gs1.org"

	// received is no word of the vocabulary, so it stands as an address.
	dispReceived  = "otep:disp:received"
	dimensionless = "Dimensionless"
)

type epcisDocument struct {
	Context      []any     `json:"@context"`
	ID           string    `json:"id"`
	Type         string    `json:"type"`
	Version      string    `json:"schemaVersion"`
	CreationDate otep.Time `json:"creationDate"`
	Body         struct {
		Events []EPCISEvent `json:"eventList"`
	} `json:"epcisBody"`
}

// EPCISEvent is one ObjectEvent.
type EPCISEvent struct {
	Type        string         `json:"type"`
	EventID     string         `json:"eventID"`
	EventTime   otep.Time      `json:"eventTime"`
	Offset      string         `json:"eventTimeZoneOffset"`
	RecordTime  *otep.Time     `json:"recordTime,omitempty"`
	Action      string         `json:"action"`
	EPCs        []string       `json:"epcList"`
	BizStep     string         `json:"bizStep"`
	Disposition string         `json:"disposition"`
	ReadPoint   *epcisPlace    `json:"readPoint,omitempty"`
	BizLocation *epcisPlace    `json:"bizLocation,omitempty"`
	Sensors     []epcisElement `json:"sensorElementList,omitempty"`
	// Error is set in the declaration that the event, as it stands here, is wrong.
	Error *epcisError `json:"errorDeclaration,omitempty"`

	OTEPEventID  string `json:"otep:event_id"`
	OTEPStatus   string `json:"otep:status_code"`
	OTEPIncident string `json:"otep:incident_reason,omitempty"`
	OTEPPhase    string `json:"otep:phase,omitempty"` // of a code that no registry has
}

type epcisPlace struct {
	ID string `json:"id"`
}

type (
	epcisError struct {
		Time       otep.Time `json:"declarationTime"`
		Reason     string    `json:"reason,omitempty"`
		Corrective []string  `json:"correctiveEventIDs,omitempty"`
	}
	epcisElement struct {
		Metadata epcisMetadata `json:"sensorMetadata"`
		Reports  []epcisReport `json:"sensorReport"`
	}
	epcisMetadata struct {
		Time     otep.Time `json:"time"`
		DeviceID string    `json:"deviceID,omitempty"`
	}
	epcisReport struct {
		Type      string  `json:"type"`
		Value     float64 `json:"value"`
		Unit      string  `json:"uom,omitempty"`
		Telemetry string  `json:"otep:telemetry_type,omitempty"`
	}
)

func (p *Projector) epcisContext() []any {
	return []any{epcisContext, map[string]string{"otep": p.vocab("")}}
}

func epcis(p *Projector, t otep.Timeline, now time.Time) any {
	d := epcisDocument{Context: p.epcisContext(), ID: p.tracking(t.Subject) + "?format=epcis", Type: "EPCISDocument", Version: "2.0",
		CreationDate: otep.Time{Time: now.UTC().Truncate(time.Second)}}
	d.Body.Events = p.objectEvents(t)
	return d
}

func epcisEvents(p *Projector, t otep.Timeline) any { return p.objectEvents(t) }

func (p *Projector) objectEvents(t otep.Timeline) []EPCISEvent {
	events := actual(t)
	out := make([]EPCISEvent, len(events))
	for i, e := range events {
		out[i] = p.objectEvent(t.Subject, e)
	}
	return out
}

// EPCISQuery is the answer to a pull: a query document around events that were
// made by ObjectEvent (EPCIS 2.0, SimpleEventQuery).
func (p *Projector) EPCISQuery(events []EPCISEvent, now time.Time) any {
	type results struct {
		Name string `json:"queryName"`
		Body struct {
			Events []EPCISEvent `json:"eventList"`
		} `json:"resultsBody"`
	}
	var d struct {
		Context      []any     `json:"@context"`
		Type         string    `json:"type"`
		Version      string    `json:"schemaVersion"`
		CreationDate otep.Time `json:"creationDate"`
		Body         struct {
			Results results `json:"queryResults"`
		} `json:"epcisBody"`
	}
	d.Context, d.Type, d.Version, d.CreationDate = p.epcisContext(), "EPCISQueryDocument", "2.0", otep.Time{Time: now.UTC().Truncate(time.Second)}
	d.Body.Results.Name = "SimpleEventQuery"
	d.Body.Results.Body.Events = events
	return d
}

// ObjectEvent is one event of a subject in EPCIS.
func (p *Projector) ObjectEvent(s otep.Subject, e otep.Event) EPCISEvent {
	return p.objectEvent(s, wellFormed(e))
}

// Retraction says how an event was taken back.
type Retraction struct {
	At          time.Time
	Reason      string // did_not_occur or incorrect_data, "" when none was given
	CorrectedBy string // id of the event that took its place, "" when there is none
}

// ErrorDeclaration is the declaration that an event of a subject is wrong: the event once more,
// under the same id, with when and why (EPCIS 2.0, 7.4.1.2).
func (p *Projector) ErrorDeclaration(s otep.Subject, e otep.Event, r Retraction) EPCISEvent {
	out := p.ObjectEvent(s, e)
	at := otep.Time{Time: r.At.UTC()}
	out.RecordTime, out.Error = &at, &epcisError{Time: at, Reason: r.Reason}
	if r.CorrectedBy != "" {
		out.Error.Corrective = []string{epcisEventID(r.CorrectedBy)}
	}
	return out
}

func (p *Projector) objectEvent(s otep.Subject, e otep.Event) EPCISEvent {
	spec := otep.Project(e.StatusCode, e.Phase)
	at, offset := epcisTime(e.OccurredAt)
	out := EPCISEvent{
		Type: "ObjectEvent", EventID: epcisEventID(e.EventID), EventTime: at, Offset: offset, Action: "OBSERVE",
		EPCs: []string{p.epc(s)}, BizStep: spec.BizStep, Disposition: spec.Disposition,
		OTEPEventID: e.EventID, OTEPStatus: e.StatusURI, OTEPIncident: e.IncidentReason,
	}
	if _, known := otep.Lookup(e.StatusCode); !known {
		out.OTEPPhase = e.Phase
	}
	if !e.RecordedAt.IsZero() {
		out.RecordTime = &e.RecordedAt
	}
	if r, ok := otep.Reason(reason(e, spec)); ok && r.Disposition != "" {
		out.Disposition = r.Disposition
	}
	if out.Disposition == "received" {
		out.Disposition = dispReceived
	}
	if id := readPoint(e.Location); id != "" {
		out.ReadPoint = &epcisPlace{id}
		if rests(spec) {
			out.BizLocation = out.ReadPoint
		}
	}
	for _, r := range e.Telemetry {
		out.Sensors = append(out.Sensors, sensorElement(e, r))
	}
	return out
}

// epcisEventID is the address of an event: the same id always gives the same.
func epcisEventID(id string) string {
	return "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte("otep:event:"+id)).String()
}

// epcisTime is a time and its offset as EPCIS has them: within 14 hours.
func epcisTime(t otep.Time) (otep.Time, string) {
	if _, s := t.Zone(); s < -14*3600 || s > 14*3600 || s%60 != 0 {
		t = utc(t)
	}
	return t, t.Format("-07:00")
}

// epc names the subject: by its SSCC as a digital link, else by the address of
// its timeline, else by its identity key.
func (p *Projector) epc(s otep.Subject) string {
	switch {
	case s.SSCC != "":
		return gs1ID + "/00/" + s.SSCC
	case s.TrackingNumber != "":
		return p.tracking(s)
	}
	return "otep:subject:" + url.PathEscape(s.IdentityKey())
}

// readPoint is where it happened: a GLN, a position, or a name of our own.
func readPoint(l *otep.Location) string {
	if l == nil {
		return ""
	}
	if l.GLN != "" {
		return gs1ID + "/414/" + l.GLN
	}
	if located(l) {
		return "geo:" + decimal(*l.Latitude) + "," + decimal(*l.Longitude)
	}
	if name := cmp.Or(l.UNLocode, l.FacilityID, l.Name, l.City); name != "" {
		return "otep:location:" + url.PathEscape(name)
	}
	return ""
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// rests reports whether goods stay where the code says, so that the place is
// their business location as well.
func rests(s otep.Spec) bool {
	switch s.Code {
	case otep.AwaitingPickup, otep.PickedUp, otep.Received, otep.ArrivalScan, otep.Delivered, otep.DeliveryFailed, otep.DeliveryRescheduled:
		return true
	}
	return s.Profile == "locker" || s.Profile == "storage"
}

func sensorElement(e otep.Event, r otep.Reading) epcisElement {
	kind, _ := otep.Telemetry(r.Type)
	m := epcisMetadata{Time: e.OccurredAt}
	if r.Time != nil {
		m.Time = *r.Time
	}
	if r.DeviceID != "" {
		m.DeviceID = "otep:device:" + url.PathEscape(r.DeviceID)
	}
	report := epcisReport{Type: kind.EPCIS, Value: r.Value, Unit: r.Unit}
	if report.Type == dimensionless {
		report.Telemetry = r.Type
	}
	return epcisElement{Metadata: m, Reports: []epcisReport{report}}
}

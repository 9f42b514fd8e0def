package projection

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// IATA ONE Record. Since version 3.0.0 of its model the names are eventFor and
// eventLocation; before, linkedObject and recordedAtLocation. Both are written,
// with equal content.
const (
	cargo        = "https://onerecord.iata.org/ns/cargo#"
	codeListBase = "https://onerecord.iata.org/ns/code-lists/StatusCode#"
)

// unlisted are codes that the closed StatusCode list does not have.
var unlisted = map[string]bool{"DIS": true, "RTS": true, "CAN": true}

type (
	oneRecordList struct {
		Context any              `json:"@context"`
		ID      string           `json:"@id"`
		Type    string           `json:"@type"`
		Total   int              `json:"api:hasTotalItems"`
		Items   []logisticsEvent `json:"api:hasItem"`
	}
	logisticsEvent struct {
		ID           string      `json:"@id"`
		Type         string      `json:"@type"`
		EventDate    otep.Time   `json:"eventDate"`
		CreationDate otep.Time   `json:"creationDate"`
		EventCode    codeElement `json:"eventCode"`
		EventName    string      `json:"eventName"`
		TimeType     typed       `json:"eventTimeType"`
		Partial      bool        `json:"partialEventIndicator"`
		LinkedObject typed       `json:"linkedObject"`
		EventFor     typed       `json:"eventFor"`
		RecordedAt   *cargoPlace `json:"recordedAtLocation,omitempty"`
		Location     *cargoPlace `json:"eventLocation,omitempty"`
		Remark       string      `json:"otep:eventRemark,omitempty"`
		Status       string      `json:"otep:status_code"`
	}
	typed struct {
		ID   string `json:"@id"`
		Type string `json:"@type"`
	}
	codeElement struct {
		ID   string `json:"@id"`
		Type string `json:"@type"`
		Code string `json:"code"`
		List string `json:"codeListName,omitempty"`
	}
	cargoPlace struct {
		ID    string        `json:"@id"`
		Type  string        `json:"@type"`
		Name  string        `json:"locationName,omitempty"`
		Codes []codeElement `json:"locationCodes,omitempty"`
		Geo   *cargoGeo     `json:"geolocation,omitempty"`
	}
	cargoGeo struct {
		Type      string  `json:"@type"`
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	}
)

func (p *Projector) oneRecordContext() any {
	return struct {
		Vocab        string            `json:"@vocab"`
		Cargo        string            `json:"cargo"`
		API          string            `json:"api"`
		XSD          string            `json:"xsd"`
		OTEP         string            `json:"otep"`
		EventDate    map[string]string `json:"eventDate"`
		CreationDate map[string]string `json:"creationDate"`
	}{cargo, cargo, "https://onerecord.iata.org/ns/api#", "http://www.w3.org/2001/XMLSchema#", p.vocab(""),
		map[string]string{"@id": "cargo:eventDate", "@type": "xsd:dateTime"}, map[string]string{"@id": "cargo:creationDate", "@type": "xsd:dateTime"}}
}

func oneRecord(p *Projector, t otep.Timeline, _ time.Time) any {
	return oneRecordList{Context: p.oneRecordContext(), ID: p.logisticsObject(t.Subject) + "/logistics-events", Type: "api:Collection",
		Total: len(t.Events), Items: p.logisticsEvents(t)}
}

func oneRecordEvents(p *Projector, t otep.Timeline) any { return p.logisticsEvents(t) }

func (p *Projector) logisticsEvents(t otep.Timeline) []logisticsEvent {
	object := p.logisticsObject(t.Subject)
	piece := typed{object, "Piece"}
	if absolute(t.Subject.PieceID) {
		piece.ID = t.Subject.PieceID
	}
	out := make([]logisticsEvent, len(t.Events))
	for i, e := range t.Events {
		spec := otep.Project(e.StatusCode, e.Phase)
		id := object + "/logistics-events/" + url.PathEscape(e.EventID)
		at := cargoLocation(id, e.Location)
		out[i] = logisticsEvent{ID: id, Type: "LogisticsEvent", EventDate: e.OccurredAt, CreationDate: e.RecordedAt, EventCode: p.eventCode(spec.OneRecord),
			EventName: p.label(e.StatusCode), TimeType: typed{"cargo:" + strings.ToUpper(cmp.Or(e.TimeType, otep.Actual)), "EventTimeType"},
			LinkedObject: piece, EventFor: piece, RecordedAt: at, Location: at, Remark: reason(e, spec), Status: e.StatusURI}
	}
	return out
}

// logisticsObject is the local address of the piece.
func (p *Projector) logisticsObject(s otep.Subject) string {
	id := s.PieceID
	if id == "" || absolute(id) {
		id = number(s)
	}
	return p.base + "/api/v1/otep/logistics-objects/" + url.PathEscape(id)
}

// absolute reports whether a piece id is an IRI that stands on its own.
func absolute(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.IsAbs()
}

func (p *Projector) eventCode(code string) codeElement {
	base := codeListBase
	if unlisted[code] {
		base = p.base + "/api/otep-guide/code-lists/OtepEventCode#"
	}
	return codeElement{ID: base + code, Type: "CodeListElement", Code: code}
}

func cargoLocation(event string, l *otep.Location) *cargoPlace {
	if l == nil || place(l) == "" && l.UNLocode == "" && !located(l) {
		return nil
	}
	out := &cargoPlace{ID: event + "#location", Type: "Location", Name: place(l)}
	if l.UNLocode != "" {
		out.Codes = []codeElement{{ID: "https://vocabulary.uncefact.org/unlocode#" + l.UNLocode, Type: "CodeListElement", Code: l.UNLocode, List: "UN/LOCODE"}}
	}
	if located(l) {
		out.Geo = &cargoGeo{"Geolocation", *l.Latitude, *l.Longitude}
	}
	return out
}

package projection

import (
	"cmp"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// UN/CEFACT web vocabulary: a Consignment with its TransportEvents. Status
// numbers are those of Recommendation 24.
const uncefactBase = "https://vocabulary.uncefact.org/"

type (
	consignment struct {
		Context    any              `json:"@context"`
		ID         string           `json:"id"`
		Type       string           `json:"type"`
		Identifier string           `json:"identifier"`
		Events     []transportEvent `json:"transportEvent"`
	}
	transportEvent struct {
		Type        string             `json:"type"`
		Identifier  string             `json:"identifier"`
		TypeCode    string             `json:"typeCode"`
		Condition   string             `json:"reportedConditionTypeCode"`
		Status      string             `json:"transportStatusCode"`
		Description string             `json:"description"`
		Actual      *otep.Time         `json:"actualOccurrenceDateTime,omitempty"`
		Estimated   *otep.Time         `json:"estimatedOccurrenceDateTime,omitempty"`
		Scheduled   *otep.Time         `json:"scheduledOccurrenceDateTime,omitempty"`
		Received    otep.Time          `json:"receivedDateTime"`
		Location    *logisticsLocation `json:"occurrenceLogisticsLocation,omitempty"`
		ReasonType  string             `json:"reasonTypeCode,omitempty"`
		Reason      string             `json:"statusReasonCode,omitempty"`
	}
	logisticsLocation struct {
		Type       string        `json:"type"`
		Name       string        `json:"name,omitempty"`
		Identifier string        `json:"identifier,omitempty"`
		Address    *tradeAddress `json:"postalAddress,omitempty"`
		Coordinate *geographical `json:"physicalGeographicalCoordinate,omitempty"`
	}
	tradeAddress struct {
		Type     string `json:"type"`
		Street   string `json:"streetName,omitempty"`
		City     string `json:"cityName,omitempty"`
		Region   string `json:"countrySubDivisionName,omitempty"`
		Postcode string `json:"postcodeCode,omitempty"`
		Country  string `json:"countryName,omitempty"`
	}
	geographical struct {
		Type      string  `json:"type"`
		Latitude  float64 `json:"latitudeMeasure"`
		Longitude float64 `json:"longitudeMeasure"`
	}
)

func uncefact(p *Projector, t otep.Timeline, _ time.Time) any {
	context := struct {
		Vocab     string            `json:"@vocab"`
		UNECE     string            `json:"unece"`
		ID        string            `json:"id"`
		Type      string            `json:"type"`
		Condition map[string]string `json:"reportedConditionTypeCode"`
		Status    string            `json:"transportStatusCode"`
		Reason    string            `json:"statusReasonCode"`
	}{uncefactBase, uncefactBase, "@id", "@type", map[string]string{"@id": "unece:reportedConditionTypeCode", "@type": "@id"},
		p.vocab("transportStatusCode"), p.vocab("statusReasonCode")}
	return consignment{Context: context, ID: p.tracking(t.Subject), Type: "Consignment", Identifier: number(t.Subject), Events: p.transportEvents(t)}
}

func uncefactEvents(p *Projector, t otep.Timeline) any { return p.transportEvents(t) }

func (p *Projector) transportEvents(t otep.Timeline) []transportEvent {
	out := make([]transportEvent, len(t.Events))
	for i := range t.Events {
		e := &t.Events[i]
		spec := otep.Project(e.StatusCode, e.Phase)
		v := transportEvent{Type: "TransportEvent", Identifier: e.EventID, TypeCode: spec.Rec24, Condition: "unece:LogisticsStatusCodeList#" + spec.Rec24,
			Status: spec.Transport, Description: p.label(e.StatusCode), Received: e.RecordedAt, Location: occurrence(e.Location), Reason: reason(*e, spec)}
		if r, ok := otep.Reason(v.Reason); ok {
			v.ReasonType = r.Rec24
		}
		switch e.TimeType {
		case otep.Estimated:
			v.Estimated = &e.OccurredAt
		case otep.Planned:
			v.Scheduled = &e.OccurredAt
		default:
			v.Actual = &e.OccurredAt
		}
		out[i] = v
	}
	return out
}

func occurrence(l *otep.Location) *logisticsLocation {
	if l == nil {
		return nil
	}
	out := &logisticsLocation{Type: "LogisticsLocation", Name: place(l), Identifier: cmp.Or(l.UNLocode, l.GLN)}
	if a := (tradeAddress{Street: l.Address, City: l.City, Region: l.Region, Postcode: l.PostalCode, Country: l.Country}); a != (tradeAddress{}) {
		a.Type = "TradeAddress"
		out.Address = &a
	}
	if located(l) {
		out.Coordinate = &geographical{"GeographicalCoordinate", *l.Latitude, *l.Longitude}
	}
	return out
}

package projection

import (
	"slices"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Amazon Shipping API v2, definition GetTrackingResult. Its times are in UTC.
type (
	amazonTracking struct {
		TrackingID   string        `json:"trackingId"`
		AlternateLeg string        `json:"alternateLegTrackingId"`
		History      []amazonEvent `json:"eventHistory"`
		Promised     *otep.Time    `json:"promisedDeliveryDate,omitempty"`
		Summary      amazonSummary `json:"summary"`
	}
	amazonEvent struct {
		Code     string       `json:"eventCode"`
		Location *amazonPlace `json:"location,omitempty"`
		At       otep.Time    `json:"eventTime"`
		Shipment string       `json:"shipmentType"`
	}
	amazonPlace struct {
		City       string `json:"city,omitempty"`
		Region     string `json:"stateOrRegion,omitempty"`
		Country    string `json:"countryCode,omitempty"`
		PostalCode string `json:"postalCode,omitempty"`
	}
	amazonSummary struct {
		Status string `json:"status"`
		Detail struct {
			Forward []string `json:"forward"`
			Returns []string `json:"returns"`
		} `json:"trackingDetailCodes"`
	}
)

// amazonLost is an event code and a summary's status.
const amazonLost = "Lost"

func isLost(e otep.Event) bool { return e.IncidentReason == "lost" || e.IncidentReason == "stolen" }

func amazon(_ *Projector, t otep.Timeline, now time.Time) any {
	events := actual(t)
	out := amazonTracking{TrackingID: number(t.Subject), History: amazonHistory(events)}
	out.Summary.Status = "PreTransit"
	out.Summary.Detail.Forward, out.Summary.Detail.Returns = []string{}, []string{}
	// The member is mandatory there.
	promised := otep.Time{Time: now.UTC().Truncate(time.Second)}
	if e := last(events); e != nil {
		if out.Summary.Status = otep.Project(e.StatusCode, e.Phase).AmazonSummary; isLost(*e) {
			out.Summary.Status = amazonLost
		}
		promised = utc(e.OccurredAt)
	}
	if t.EstimatedDeliveryAt != nil {
		promised = utc(*t.EstimatedDeliveryAt)
	}
	out.Promised = &promised
	for _, e := range events {
		r, ok := otep.Reason(reason(e, otep.Project(e.StatusCode, e.Phase)))
		if !ok || r.AmazonDetail == "" {
			continue
		}
		list := &out.Summary.Detail.Forward
		if e.Phase == otep.PhaseReturn {
			list = &out.Summary.Detail.Returns
		}
		if !slices.Contains(*list, r.AmazonDetail) {
			*list = append(*list, r.AmazonDetail)
		}
	}
	return out
}

func amazonEvents(_ *Projector, t otep.Timeline) any { return amazonHistory(actual(t)) }

func amazonHistory(events []otep.Event) []amazonEvent {
	out := make([]amazonEvent, len(events))
	for i, e := range events {
		a := amazonEvent{Code: otep.Project(e.StatusCode, e.Phase).Amazon, At: utc(e.OccurredAt), Shipment: "FORWARD"}
		if isLost(e) {
			a.Code = amazonLost
		}
		if e.Phase == otep.PhaseReturn {
			a.Shipment = "RETURNS"
		}
		if l := e.Location; l != nil {
			if p := (amazonPlace{City: l.City, Region: l.Region, Country: l.Country, PostalCode: l.PostalCode}); p != (amazonPlace{}) {
				a.Location = &p
			}
		}
		out[i] = a
	}
	return out
}

package projection

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/postern-io/postern/protocol/otep"
)

// AfterShip's tracking object, as version 2026-07 of the Tracking API names its
// members. expected_delivery, zip and country_iso3 are of older versions: the
// published example has them, so they stand beside today's.
const (
	subtagReturning = "Exception_010"
	subtagReturned  = "Exception_011"
)

// subtagMessages are that platform's own texts, in its own spelling.
var subtagMessages = map[string]string{
	"Pending_001": "Pending", "InfoReceived_001": "Info Received",
	"InTransit_001": "In Transit", "InTransit_002": "Acceptance scan", "InTransit_003": "Arrival scan", "InTransit_007": "Departure Scan",
	"OutForDelivery_001": "Out for Delivery", "AttemptFail_001": "Failed Attempt", "AttemptFail_002": "Addressee not available", "AttemptFail_003": "Business Closed",
	"AvailableForPickup_001": "Available for pickup", "Delivered_001": "Delivered", "Delivered_003": "Sign by customer",
	"Exception_001": "Exception", "Exception_002": "Customer moved", "Exception_003": "Customer refused delivery", "Exception_004": "Delayed (Customs clearance)",
	"Exception_005": "Delayed (External factors)", "Exception_006": "Held for payment", "Exception_007": "Incorrect Address", "Exception_008": "Pick up missed",
	"Exception_009": "Rejected by carrier", subtagReturning: "Returning to sender", subtagReturned: "Returned to sender",
	"Exception_012": "Shipment damage", "Exception_013": "Shipment lost",
}

type (
	afterShipTracking struct {
		ID             string           `json:"id"`
		TrackingNumber string           `json:"tracking_number"`
		Slug           string           `json:"slug"`
		Active         bool             `json:"active"`
		OrderID        *string          `json:"order_id"`
		Title          string           `json:"title"`
		Source         string           `json:"source"`
		Tag            string           `json:"tag"`
		Subtag         string           `json:"subtag"`
		SubtagMessage  string           `json:"subtag_message"`
		SignedBy       *string          `json:"signed_by"`
		PickupDate     *otep.Time       `json:"shipment_pickup_date"`
		DeliveryDate   *otep.Time       `json:"shipment_delivery_date"`
		FirstAttempted *otep.Time       `json:"first_attempted_at"`
		FailedAttempts int              `json:"failed_delivery_attempts"`
		ReturnToSender bool             `json:"return_to_sender"`
		Expected       *otep.Time       `json:"expected_delivery"`
		Courier        *courierEstimate `json:"courier_estimated_delivery_date"`
		First          *estimate        `json:"first_estimated_delivery"`
		Latest         *latestEstimate  `json:"latest_estimated_delivery"`
		TrackedCount   int              `json:"tracked_count"`
		CreatedAt      *otep.Time       `json:"created_at"`
		UpdatedAt      *otep.Time       `json:"updated_at"`
		Checkpoints    []checkpoint     `json:"checkpoints"`
	}
	// A timeline estimates an instant and no range, so the bounds are null.
	courierEstimate struct {
		At  otep.Time  `json:"estimated_delivery_date"`
		Min *otep.Time `json:"estimated_delivery_date_min"`
		Max *otep.Time `json:"estimated_delivery_date_max"`
	}
	estimate struct {
		Type   string     `json:"type"`
		Source string     `json:"source"`
		At     otep.Time  `json:"datetime"`
		Min    *otep.Time `json:"datetime_min"`
		Max    *otep.Time `json:"datetime_max"`
	}
	latestEstimate struct {
		estimate
		ReviseReason *string `json:"revise_reason"`
	}
	checkpoint struct {
		Slug          string      `json:"slug"`
		At            otep.Time   `json:"checkpoint_time"`
		CreatedAt     otep.Time   `json:"created_at"`
		Location      string      `json:"location,omitempty"`
		City          string      `json:"city,omitempty"`
		State         string      `json:"state,omitempty"`
		PostalCode    string      `json:"postal_code,omitempty"`
		Zip           string      `json:"zip,omitempty"`
		CountryRegion string      `json:"country_region,omitempty"`
		CountryISO3   string      `json:"country_iso3,omitempty"`
		Coordinate    *coordinate `json:"coordinate,omitempty"`
		Message       string      `json:"message"`
		Tag           string      `json:"tag"`
		Subtag        string      `json:"subtag"`
		SubtagMessage string      `json:"subtag_message"`
		RawTag        string      `json:"raw_tag"`
		Source        string      `json:"source"`
		Hash          string      `json:"hash"` // of the event's id
	}
	coordinate struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	}
)

func afterShip(p *Projector, t otep.Timeline, _ time.Time) any {
	events := actual(t)
	n := number(t.Subject)
	out := afterShipTracking{ID: hexDigest(16, "otep/aftership/", t.Subject.IdentityKey()), TrackingNumber: n, Slug: sourceName(last(events)),
		Active: !t.Terminal, Title: n, Source: "otep", Tag: "Pending", Subtag: "Pending_001", Expected: t.EstimatedDeliveryAt,
		TrackedCount: len(events), Checkpoints: p.checkpoints(events)}
	if t.Subject.OrderID != 0 {
		id := strconv.FormatInt(t.Subject.OrderID, 10)
		out.OrderID = &id
	}
	for i := range events {
		out.follow(&events[i], out.Checkpoints[i])
	}
	out.SubtagMessage = subtagMessages[out.Subtag]
	first, latest := deliveryEstimates(t)
	if first != nil {
		out.First = new(carrierEstimate(*first))
	}
	if latest != nil {
		out.Courier, out.Latest = &courierEstimate{At: *latest}, &latestEstimate{estimate: carrierEstimate(*latest)}
	}
	return out
}

// carrierEstimate is an estimate as a carrier gives it: providers alone estimate
// deliveries here.
func carrierEstimate(at otep.Time) estimate {
	return estimate{Type: "specific", Source: "Carrier EDD", At: at}
}

// deliveryEstimates gives the first and the latest estimate of the delivery, nil
// where it is not known. The latest is the timeline's own, else that of the
// estimated delivery that was recorded last; the first is known by such events
// alone, since a timeline keeps one estimate.
func deliveryEstimates(t otep.Timeline) (first, latest *otep.Time) {
	var oldest, newest *otep.Event
	for i := range t.Events {
		e := &t.Events[i]
		if e.TimeType != otep.Estimated || e.StatusCode != otep.Delivered {
			continue
		}
		if oldest == nil || e.RecordedAt.Before(oldest.RecordedAt.Time) {
			oldest, first = e, &e.OccurredAt
		}
		if newest == nil || !e.RecordedAt.Before(newest.RecordedAt.Time) {
			newest, latest = e, &e.OccurredAt
		}
	}
	return first, cmp.Or(t.EstimatedDeliveryAt, latest)
}

// follow takes one more event into the summary.
func (a *afterShipTracking) follow(e *otep.Event, c checkpoint) {
	a.Tag, a.Subtag = c.Tag, c.Subtag
	a.ReturnToSender = a.ReturnToSender || c.Subtag == subtagReturning || c.Subtag == subtagReturned
	if a.CreatedAt == nil {
		a.CreatedAt = &c.CreatedAt
	}
	a.UpdatedAt = &c.CreatedAt
	switch e.StatusCode {
	case otep.PickedUp:
		if a.PickupDate == nil {
			a.PickupDate = &e.OccurredAt
		}
	case otep.DeliveryFailed:
		a.FailedAttempts++
	case otep.Delivered:
		a.DeliveryDate = &e.OccurredAt
		if e.PoD != nil {
			a.SignedBy = orNull(e.PoD.Recipient)
		}
	}
	if a.FirstAttempted == nil && (e.StatusCode == otep.DeliveryFailed || e.StatusCode == otep.Delivered) {
		a.FirstAttempted = &e.OccurredAt
	}
}

func afterShipEvents(p *Projector, t otep.Timeline) any { return p.checkpoints(actual(t)) }

func (p *Projector) checkpoints(events []otep.Event) []checkpoint {
	out := make([]checkpoint, len(events))
	for i, e := range events {
		tag, subtag := afterShipTag(e)
		c := checkpoint{Slug: sourceName(&e), At: e.OccurredAt, CreatedAt: utc(e.RecordedAt), Message: p.label(e.StatusCode),
			Tag: tag, Subtag: subtag, SubtagMessage: subtagMessages[subtag], RawTag: string(e.StatusCode),
			Source: "carrier", Hash: hexDigest(16, "otep/aftership/checkpoint/", e.EventID)}
		if l := e.Location; l != nil {
			c.Location, c.City, c.State, c.PostalCode, c.Zip = l.Name, l.City, l.Region, l.PostalCode, l.PostalCode
			c.CountryISO3 = iso3(l.Country)
			c.CountryRegion = c.CountryISO3
			if located(l) {
				c.Coordinate = &coordinate{*l.Latitude, *l.Longitude}
			}
		}
		out[i] = c
	}
	return out
}

// afterShipTag is an event's tag and subtag. The reason of an exception or
// return brings its own of both.
func afterShipTag(e otep.Event) (tag, subtag string) {
	s := otep.Project(e.StatusCode, e.Phase)
	tag, subtag = s.AfterShipTag, s.AfterShipSubtag
	if s.AfterShipSigned != "" && e.PoD != nil && (e.PoD.Recipient != "" || e.PoD.Signed || e.PoD.SignatureURL != "") {
		subtag = s.AfterShipSigned
	}
	if e.Phase != otep.PhaseException && e.Phase != otep.PhaseReturn {
		return tag, subtag
	}
	if r, ok := otep.Reason(reason(e, s)); ok && r.AfterShipSubtag != "" {
		tag, _, _ = strings.Cut(r.AfterShipSubtag, "_")
		return tag, r.AfterShipSubtag
	}
	return tag, subtag
}

// iso3 is a country's ISO 3166-1 alpha-3 code, "" for what is no country.
func iso3(alpha2 string) string {
	r, err := language.ParseRegion(alpha2)
	if err != nil || !r.IsCountry() || r.ISO3() == "ZZZ" {
		return ""
	}
	return r.ISO3()
}

package projection

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/postern-io/postern/protocol/otep"
)

// AfterShip's tracking object: tags and subtags are that platform's.
const (
	subtagReturning = "Exception_010"
	subtagReturned  = "Exception_011"
)

var subtagMessages = map[string]string{
	"Pending_001": "No information yet", "InfoReceived_001": "Info received",
	"InTransit_001": "In transit", "InTransit_002": "Acceptance scan", "InTransit_003": "Arrival scan", "InTransit_007": "Departure scan",
	"OutForDelivery_001": "Out for delivery", "AttemptFail_001": "Failed attempt", "AttemptFail_002": "Addressee not available", "AttemptFail_003": "Business closed",
	"AvailableForPickup_001": "Available for pickup", "Delivered_001": "Delivered", "Delivered_003": "Sign by customer",
	"Exception_001": "Exception", "Exception_002": "Customer moved", "Exception_003": "Customer refused delivery", "Exception_004": "Delayed (customs clearance)",
	"Exception_005": "Delayed (external factors)", "Exception_006": "Held for payment", "Exception_007": "Incorrect address", "Exception_008": "Pick up missed",
	"Exception_009": "Rejected by carrier", subtagReturning: "Returning to sender", subtagReturned: "Returned to sender",
	"Exception_012": "Shipment damage", "Exception_013": "Shipment lost",
}

type (
	afterShipTracking struct {
		ID             string       `json:"id"`
		TrackingNumber string       `json:"tracking_number"`
		Slug           string       `json:"slug"`
		Active         bool         `json:"active"`
		OrderID        *string      `json:"order_id"`
		Title          string       `json:"title"`
		Source         string       `json:"source"`
		Tag            string       `json:"tag"`
		Subtag         string       `json:"subtag"`
		SubtagMessage  string       `json:"subtag_message"`
		SignedBy       *string      `json:"signed_by"`
		PickupDate     *otep.Time   `json:"shipment_pickup_date"`
		DeliveryDate   *otep.Time   `json:"shipment_delivery_date"`
		FirstAttempted *otep.Time   `json:"first_attempted_at"`
		FailedAttempts int          `json:"failed_delivery_attempts"`
		ReturnToSender bool         `json:"return_to_sender"`
		Expected       *otep.Time   `json:"expected_delivery"`
		TrackedCount   int          `json:"tracked_count"`
		CreatedAt      *otep.Time   `json:"created_at"`
		UpdatedAt      *otep.Time   `json:"updated_at"`
		Checkpoints    []checkpoint `json:"checkpoints"`
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
	return out
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
			Tag: tag, Subtag: subtag, SubtagMessage: subtagMessages[subtag], RawTag: string(e.StatusCode)}
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

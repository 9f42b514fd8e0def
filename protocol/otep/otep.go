// Package otep is the Open Tracking Event Protocol: event, vocabulary, order
// and folding of a timeline to its current status, the lenient reader and the
// conformance rules, and the documents that describe the protocol.
//
// An event says what (the timeline's subject), when, where and why. A timeline
// is append-only and ordered by time of occurrence; arrival order never
// matters. The package is pure: no I/O, no clock, safe for concurrent use.
package otep

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Version is the protocol version that travels with every event.
const Version = "0.1"

// Code is a canonical status code.
type Code string

// Subject is what a timeline is about. At least one identifier is set.
type Subject struct {
	TrackingNumber         string `json:"tracking_number,omitempty"` // 1 to 64 of A-Z a-z 0-9 . _ -
	OrderID                int64  `json:"order_id,omitempty"`        // positive
	PackageID              int64  `json:"package_id,omitempty"`      // positive
	ExternalTrackingNumber string `json:"external_tracking_number,omitempty"`
	SSCC                   string `json:"gs1_sscc,omitempty"` // 18 digits, the last one a check digit
	PieceID                string `json:"piece_id,omitempty"` // an absolute IRI or a local id
}

// Location is where an event happened. Coordinates come in pairs.
type Location struct {
	Name       string   `json:"name,omitempty"`
	Address    string   `json:"address,omitempty"`
	City       string   `json:"city,omitempty"`
	Region     string   `json:"region,omitempty"`
	PostalCode string   `json:"postal_code,omitempty"`
	Country    string   `json:"country,omitempty"` // ISO 3166-1 alpha-2
	Latitude   *float64 `json:"latitude,omitempty"`
	Longitude  *float64 `json:"longitude,omitempty"`
	UNLocode   string   `json:"unlocode,omitempty"`
	GLN        string   `json:"gln,omitempty"`
	FacilityID string   `json:"facility_id,omitempty"`
	Type       string   `json:"type,omitempty"`
}

// Source is who said so.
type Source struct {
	Type         string `json:"type"`
	Provider     string `json:"provider,omitempty"`
	ProviderName string `json:"provider_name,omitempty"`
	RawStatus    string `json:"raw_status,omitempty"`
	RawMessage   string `json:"raw_message,omitempty"`
	Reference    string `json:"reference,omitempty"`
	Synthesized  bool   `json:"synthesized,omitempty"` // made from a source that only has a current status
}

// Proof is a proof of delivery.
type Proof struct {
	Recipient    string `json:"recipient,omitempty"`
	Signed       bool   `json:"signed,omitempty"`
	SignatureURL string `json:"signature_url,omitempty"`
	SignedAt     *Time  `json:"signed_at,omitempty"`
	Note         string `json:"note,omitempty"`
	Files        []File `json:"files,omitempty"`
}

// File is one file of a proof. URLs of a removed one are empty.
type File struct {
	ID      int64  `json:"file_id"`
	Type    string `json:"type,omitempty"`
	URL     string `json:"url,omitempty"`
	FullURL string `json:"full_url,omitempty"`
}

// Reading is one measured value. Unit is a UN/CEFACT Recommendation 20 code,
// and Time the event's occurred_at when it is nil.
type Reading struct {
	Type     string  `json:"type"`
	Value    float64 `json:"value"` // finite
	Unit     string  `json:"unit,omitempty"`
	Time     *Time   `json:"time,omitempty"`
	DeviceID string  `json:"device_id,omitempty"`
}

// Extensions are members of the producer's own. Numbers that were read from
// JSON are json.Number: they come out with the digits they came in with.
type Extensions map[string]any

// UnmarshalJSON reads an object, or null as none.
func (x *Extensions) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return err
	}
	*x = m
	return nil
}

// Event is one thing that happened to a subject.
type Event struct {
	EventID        string     `json:"event_id"`
	Version        string     `json:"otep_version"`
	OccurredAt     Time       `json:"occurred_at"`
	RecordedAt     Time       `json:"recorded_at"`
	StatusCode     Code       `json:"status_code"`
	StatusURI      string     `json:"status_uri,omitempty"`
	StatusLabel    string     `json:"status_label,omitempty"`
	Phase          string     `json:"phase"`
	PhaseURI       string     `json:"phase_uri,omitempty"`
	TimeType       string     `json:"time_type,omitempty"` // "" is actual
	Location       *Location  `json:"location,omitempty"`
	IncidentReason string     `json:"incident_reason,omitempty"`
	Source         *Source    `json:"source,omitempty"`
	PoD            *Proof     `json:"pod,omitempty"`
	Telemetry      []Reading  `json:"telemetry,omitempty"`
	Message        string     `json:"message,omitempty"`
	Extensions     Extensions `json:"extensions,omitempty"`
	Corrects       string     `json:"corrects,omitempty"` // id of the event that this one takes the place of
	Via            int64      `json:"via,omitempty"`      // container that it came through

	// Withdrawn marks an event that its source took back. It stays stored and
	// is in no timeline.
	Withdrawn bool `json:"-"`
	// Reported marks an event of a source that had no say: it is shown beside the
	// timeline and is no part of it.
	Reported bool `json:"-"`
}

// Timeline is the envelope.
type Timeline struct {
	Version             string  `json:"otep_version"`
	Profile             string  `json:"profile"`
	Subject             Subject `json:"subject"`
	Current             *Code   `json:"current_status"`
	CurrentPhase        *string `json:"current_phase"`
	Delivered           bool    `json:"delivered"`
	Terminal            bool    `json:"terminal"`
	LastEventAt         *Time   `json:"last_event_at"`
	EstimatedDeliveryAt *Time   `json:"estimated_delivery_at,omitempty"`
	Events              []Event `json:"events"`
	// Reports are events of sources that had no say, in the order of Events. They count for nothing.
	Reports []Event `json:"reports,omitempty"`
	// Withdrawals are the events that a source takes back; a folded timeline has none.
	Withdrawals []Withdrawal `json:"withdrawals,omitempty"`
}

// Withdrawal takes back an event that its source sent before.
type Withdrawal struct {
	EventID string `json:"event_id"`
	Reason  string `json:"reason"` // DidNotOccur or IncorrectData
}

// Why an event is taken back: the error reasons of GS1's Core Business Vocabulary.
const (
	DidNotOccur   = "did_not_occur"
	IncorrectData = "incorrect_data"
)

// Public is an event as it is shown without a token: without what its source wrote for
// itself (message, reference, raw status, extensions), its place and proof
// reduced. Devices keep their ids.
func (e Event) Public() Event {
	e.Message, e.Extensions, e.Location, e.PoD, e.Via = "", nil, e.Location.Public(), e.PoD.Public(), 0
	if e.Source != nil {
		e.Source = &Source{Type: e.Source.Type, Provider: e.Source.Provider, ProviderName: e.Source.ProviderName, Synthesized: e.Source.Synthesized}
	}
	e.Telemetry = slices.Clone(e.Telemetry)
	return e
}

// publicPlaces are the types of places that are no secret.
var publicPlaces = []string{"hub", PlaceWarehouse, PlaceLocker, "store", "port"}

// Public is a location as it is shown without a token: of one that may be a person's
// address only city, region and country. It is nil for nil.
func (l *Location) Public() *Location {
	if l == nil || slices.Contains(publicPlaces, l.Type) {
		return l
	}
	return &Location{City: l.City, Region: l.Region, Country: l.Country, Type: l.Type}
}

// Public is a proof as it is shown without a token: the recipient as initial and
// family name, no note, no files and no addresses of files. It is nil for nil.
func (p *Proof) Public() *Proof {
	if p == nil {
		return nil
	}
	return &Proof{Recipient: initialed(p.Recipient), Signed: p.Signed, SignedAt: p.SignedAt}
}

// Recipients is a proof as the recipient may see it: all but the note. It is nil
// for nil.
func (p *Proof) Recipients() *Proof {
	if p == nil {
		return nil
	}
	out := *p
	out.Note = ""
	return &out
}

// initialed is a name as its first letter and its last word; of a name of one
// word only the letter is left.
func initialed(name string) string {
	words := strings.Fields(name)
	if len(words) == 0 {
		return ""
	}
	first := []rune(words[0])
	if len(words) == 1 {
		return string(first[:1]) + "."
	}
	return string(first[:1]) + ". " + words[len(words)-1]
}

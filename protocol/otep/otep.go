// Package otep is the Open Tracking Event Protocol: event, vocabulary, order
// and folding of a timeline to its current status.
//
// An event says what (the timeline's subject), when, where and why. A timeline
// is append-only and ordered by time of occurrence; arrival order never
// matters. The package is pure: no I/O, no clock, safe for concurrent use.
package otep

// Version is the protocol version that travels with every event.
const Version = "0.1"

// Code is a canonical status code.
type Code string

// Subject is what a timeline is about. At least one identifier is set.
type Subject struct {
	TrackingNumber         string `json:"tracking_number,omitempty"`
	OrderID                int64  `json:"order_id,omitempty"`
	PackageID              int64  `json:"package_id,omitempty"`
	ExternalTrackingNumber string `json:"external_tracking_number,omitempty"`
	SSCC                   string `json:"gs1_sscc,omitempty"`
	PieceID                string `json:"piece_id,omitempty"`
}

// Location is where an event happened.
type Location struct {
	Name       string   `json:"name,omitempty"`
	Address    string   `json:"address,omitempty"`
	City       string   `json:"city,omitempty"`
	Region     string   `json:"region,omitempty"`
	PostalCode string   `json:"postal_code,omitempty"`
	Country    string   `json:"country,omitempty"`
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
	Synthesized  bool   `json:"synthesized,omitempty"`
}

// Event is one thing that happened to a subject.
type Event struct {
	EventID        string         `json:"event_id"`
	Version        string         `json:"otep_version"`
	OccurredAt     Time           `json:"occurred_at"`
	RecordedAt     Time           `json:"recorded_at"`
	StatusCode     Code           `json:"status_code"`
	StatusURI      string         `json:"status_uri,omitempty"`
	StatusLabel    string         `json:"status_label,omitempty"`
	Phase          string         `json:"phase"`
	PhaseURI       string         `json:"phase_uri,omitempty"`
	TimeType       string         `json:"time_type,omitempty"`
	Location       *Location      `json:"location,omitempty"`
	IncidentReason string         `json:"incident_reason,omitempty"`
	Source         *Source        `json:"source,omitempty"`
	Message        string         `json:"message,omitempty"`
	Extensions     map[string]any `json:"extensions,omitempty"`
}

// Timeline is the envelope.
type Timeline struct {
	Version      string  `json:"otep_version"`
	Profile      string  `json:"profile"`
	Subject      Subject `json:"subject"`
	Current      *Code   `json:"current_status"`
	CurrentPhase *string `json:"current_phase"`
	Delivered    bool    `json:"delivered"`
	Terminal     bool    `json:"terminal"`
	LastEventAt  *Time   `json:"last_event_at"`
	Events       []Event `json:"events"`
}

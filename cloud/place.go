package cloud

import "time"

// PlaceFresh is how long a place says where a driver is.
const PlaceFresh = 15 * time.Minute

// DriverPlace is where a driver was last, as the driver's app says. Of two the
// one that was recorded later is kept.
type DriverPlace struct {
	AccountID  AccountID  `json:"-"`
	BusinessID BusinessID `json:"-"`
	Latitude   float64    `json:"latitude"`
	Longitude  float64    `json:"longitude"`
	Accuracy   *float64   `json:"accuracy_m"` // metres; nil: not known, as below
	Heading    *float64   `json:"heading"`    // degrees from north, clockwise
	Speed      *float64   `json:"speed_kmh"`
	Battery    *int       `json:"battery"` // per cent
	RecordedAt time.Time  `json:"recorded_at"`
	// SentAt is when receivers were last sent the driver's place, DueAt when
	// they are to be sent this one; zero: not at all, not later.
	SentAt time.Time `json:"-"`
	DueAt  time.Time `json:"-"`
}

// PlaceView reads the present of where drivers are.
type PlaceView interface {
	// DriverPlace is where a driver was last.
	DriverPlace(BusinessID, AccountID) (DriverPlace, error)
}

// PlaceChanges are the changes of where drivers are.
type PlaceChanges struct {
	DriverPlaces []DriverPlace // unless one that was recorded later is stored
}

package cloud

import (
	"math"
	"strings"
)

// DeviceProfile describes a device to people, and what it can do.
type DeviceProfile struct {
	Hours    []OpeningHours `json:"hours,omitempty"` // empty: always open
	Guide    *IndoorGuide   `json:"guide,omitempty"`
	Features DeviceFeatures `json:"features"`
	SiteID   SiteID         `json:"site_id,omitempty"` // 0: it stands at no site
	Settings ProfileMark    `json:"settings,omitzero"`
}

// OpeningHours are hours of one weekday in the device's timezone. A day may have
// several that do not overlap.
type OpeningHours struct {
	Day   int    `json:"day" doc:"0 is Sunday"`
	Open  string `json:"open" doc:"HH:MM"`
	Close string `json:"close" doc:"HH:MM, up to 24:00"`
}

// IndoorGuide says how to find a device.
type IndoorGuide struct {
	Text   string   `json:"text" max:"2000"`
	Photos []string `json:"photos" max:"10" item_format:"https" item_max:"500" doc:"Addresses of pictures"`
}

// DeviceFeatures are what a device has.
type DeviceFeatures struct {
	RemoteOpen      bool `json:"remote_open"`
	Screen          bool `json:"screen"`
	Keypad          bool `json:"keypad"`
	Scanner         bool `json:"scanner"`
	Camera          bool `json:"camera"`
	OccupancySensor bool `json:"occupancy_sensor"`
	Temperature     bool `json:"temperature"`
}

// Device states as people see them.
const (
	StatusOnline      = "online"
	StatusOffline     = "offline"
	StatusMaintenance = "maintenance"
	StatusDisabled    = "disabled"
	StatusRetired     = "retired"
)

// Status is the state of a device as people see it; online says that it is
// connected.
func (d Device) Status(online bool) string {
	switch {
	case !d.RetiredAt.IsZero():
		return StatusRetired
	case d.Disabled:
		return StatusDisabled
	case !d.MaintenanceAt.IsZero():
		return StatusMaintenance
	case online:
		return StatusOnline
	}
	return StatusOffline
}

// TakesDeliveries reports whether new deliveries may be made for d: a cabinet that has never been
// enrolled stands nowhere yet, one that waits for its hardware has no locks, and one that has come
// and has applied no configuration has no doors.
func (d Device) TakesDeliveries() bool {
	return !d.IsPost() && !d.EnrolledAt.IsZero() && !d.IsCutOff() && (d.Applied > 0 || d.StatusAt.IsZero()) && !d.Disabled && d.MaintenanceAt.IsZero() && d.RetiredAt.IsZero()
}

// DeviceFilter chooses devices of a business. Empty members choose all, but those
// that are retired are chosen by their Status alone, and mock cabinets by UsableBy.
type DeviceFilter struct {
	BusinessID BusinessID
	Status     string // as Device.Status gives it
	Type       string
	Keyword    string // part of the name, the code or the address, in any case
	PostalCode string // as PostalKey gives it
	Country    string // in capital letters
	// UsableBy leaves out those of other providers, and those that take no new deliveries,
	// warehouse posts among them.
	UsableBy ProviderID
	Livemode *bool
	Public   bool     // pickup points alone; a warehouse post is none
	Only     DeviceID // this one, or none
	Sizes    []string // those with a compartment for pickup of one of these sizes
	Near     *Circle  // those inside; the list may be sorted by "distance" then
	Page
}

// CleanPostalCode is a postal code as it is kept: with one blank between its parts.
func CleanPostalCode(code string) string { return strings.Join(strings.Fields(code), " ") }

// PostalKey is a postal code by which others are compared: without blanks, in capital letters.
func PostalKey(code string) string { return strings.ToUpper(strings.Join(strings.Fields(code), "")) }

// Circle is what lies no further than Meters from a point.
type Circle struct {
	Latitude, Longitude float64 // degrees
	Meters              int
}

// A degree on the ground, in metres. At 50 km from the point the plane that is taken for
// the ground is wrong by less than half a percent.
const (
	metersOfLatitude  = 110_574
	metersOfLongitude = 111_320 // on the equator
)

// PerDegree is how long a degree of latitude and one of longitude are about the point, in
// metres.
func (c Circle) PerDegree() (latitude, longitude float64) {
	return metersOfLatitude, metersOfLongitude * math.Cos(c.Latitude*math.Pi/180)
}

// Distance is how far a place is from the point, in metres.
func (c Circle) Distance(latitude, longitude float64) float64 {
	north, east := c.PerDegree()
	return math.Hypot((latitude-c.Latitude)*north, (180-math.Abs(math.Abs(longitude-c.Longitude)-180))*east)
}

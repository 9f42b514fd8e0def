package cloud

// DeviceProfile describes a device to people, and what it can do.
type DeviceProfile struct {
	Hours    []OpeningHours `json:"hours,omitempty"` // empty: always open
	Guide    *IndoorGuide   `json:"guide,omitempty"`
	Features DeviceFeatures `json:"features"`
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

// DeviceFilter chooses devices of a business. Empty members choose all, but those
// that are retired are chosen by their Status alone.
type DeviceFilter struct {
	BusinessID BusinessID
	Status     string // as Device.Status gives it
	Type       string
	Keyword    string // part of the name, the code or the address, in any case
	Page
}

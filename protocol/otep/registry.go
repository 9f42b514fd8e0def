package otep

import (
	"slices"
	"strings"
)

// Phases. The first six are ordered; the last three stand beside them.
const (
	PhasePreShipment    = "pre_shipment"
	PhasePickup         = "pickup"
	PhaseInbound        = "inbound"
	PhaseTransit        = "transit"
	PhaseOutForDelivery = "out_for_delivery"
	PhaseDelivered      = "delivered"
	PhaseException      = "exception"
	PhaseReturn         = "return"
	PhaseCancelled      = "cancelled"
)

var phases = []string{PhasePreShipment, PhasePickup, PhaseInbound, PhaseTransit, PhaseOutForDelivery, PhaseDelivered, PhaseException, PhaseReturn, PhaseCancelled}

// ordered is how many of phases have a place in the order.
const ordered = 6

// Phases lists the phases, ordered ones first.
func Phases() []string { return slices.Clone(phases) }

// PhaseOrder is the place of a phase in the order, 1 to 6. A phase beside the
// order has 0; ok is false for what is no phase.
func PhaseOrder(phase string) (n int, ok bool) {
	i := slices.Index(phases, phase)
	if i >= ordered {
		return 0, true
	}
	return i + 1, i >= 0
}

// Values of time_type. An event without one is actual.
const (
	Actual    = "actual"
	Estimated = "estimated"
	Planned   = "planned"
)

var timeTypes = []string{Actual, Estimated, Planned}

// DefaultProfile holds for a timeline that names none.
const DefaultProfile = "parcel"

// universalProfile stands for every profile in an address of a universal code.
const universalProfile = "universal"

var (
	profiles = []string{DefaultProfile, "moving", "food", "storage", "locker"}
	reserved = []string{"phase", "reason", universalProfile}
)

// Profiles lists the registered profiles, the default first.
func Profiles() []string { return slices.Clone(profiles) }

// ValidProfile reports whether s can name a profile, registered or not.
func ValidProfile(s string) bool { return validName(s) && !slices.Contains(reserved, s) }

// Source families.
const (
	SelfDelivery = "self_delivery"
	ThirdParty   = "third_party"
	Carrier      = "carrier"
	Warehouse    = "warehouse"
	Locker       = "locker"
	Partner      = "partner"
	IoT          = "iot"
	System       = "system"
)

// Family is a type of source.
type Family struct {
	Type      string
	Meaning   string
	Spellings []string // accepted on input as the same
}

var families = []Family{
	{SelfDelivery, "own fleet", []string{"own_fleet"}},
	{ThirdParty, "third-party courier or delivery company", []string{"third_party_delivery", "third_party_courier"}},
	{Carrier, "label carrier tracking", []string{"carrier_label", "label"}},
	{Warehouse, "node scan in a warehouse or hub", []string{"node_scan", "hub"}},
	{Locker, "smart locker, kiosk, smart drop", []string{"device"}},
	{Partner, "other platform (handoff)", []string{"handoff"}},
	{IoT, "sensor or tracker device", []string{"sensor"}},
	{System, "platform itself or manual back office", []string{"platform", "manual"}},
}

// SourceTypes lists the source families.
func SourceTypes() []Family { return slices.Clone(families) }

// SourceType reads a source type or an accepted spelling of one; changed says
// that it was a spelling.
func SourceType(s string) (canonical string, changed, ok bool) {
	for _, f := range families {
		if s == f.Type {
			return s, false, true
		}
		if slices.Contains(f.Spellings, s) {
			return f.Type, true, true
		}
	}
	return "", false, false
}

// Sensor is a kind of telemetry.
type Sensor struct {
	Type  string
	Unit  string // UN/CEFACT Recommendation 20
	EPCIS string // sensorReport.type
	QUDT  string // unit for SensorThings
}

// dimensionless is the EPCIS type of everything without one of its own.
const dimensionless = "Dimensionless"

var sensors = []Sensor{
	{"temperature", "CEL", "Temperature", "DEG_C"},
	{"relative_humidity", "P1", "RelativeHumidity", "PERCENT"},
	{"pressure", "PAL", "Pressure", "PA"},
	{"acceleration", "MSK", "Acceleration", "M-PER-SEC2"},
	{"illuminance", "LUX", "Illuminance", "LUX"},
	{"angle", "DD", "Angle", "DEG"},
	{"speed", "KMH", "Speed", "KiloM-PER-HR"},
	{"mass", "KGM", "Mass", "KiloGM"},
	{"battery", "P1", dimensionless, "PERCENT"},
}

// Sensors lists the registered kinds of telemetry.
func Sensors() []Sensor { return slices.Clone(sensors) }

// Telemetry finds a kind of telemetry. One that is not registered has no unit,
// is dimensionless in EPCIS, and ok is false.
func Telemetry(kind string) (s Sensor, ok bool) {
	for _, s := range sensors {
		if s.Type == kind {
			return s, true
		}
	}
	return Sensor{Type: kind, EPCIS: dimensionless}, false
}

// Incident is a registered reason. An empty external value leaves that of the
// status code in force.
type Incident struct {
	Code            string
	Meaning         string
	Disposition     string // EPCIS, CBV word
	Rec24           string // UN/CEFACT Recommendation 24 number
	AfterShipSubtag string
	AmazonDetail    string
}

// Reasons lists the registered incident reasons.
func Reasons() []Incident { return slices.Clone(incidents) }

// Reason finds a registered incident reason.
func Reason(code string) (Incident, bool) {
	i := slices.IndexFunc(incidents, func(r Incident) bool { return r.Code == code })
	if i < 0 {
		return Incident{}, false
	}
	return incidents[i], true
}

// experimentalReason reports whether a reason is a well formed unregistered one.
func experimentalReason(s string) bool { return strings.HasPrefix(s, "x-") && validName(s) }

// Place types of a location.
const (
	PlaceAddress   = "address"
	PlaceLocker    = "locker"
	PlaceWarehouse = "warehouse"
	placeOther     = "other"
)

var places = []string{"hub", PlaceWarehouse, PlaceLocker, "store", "vehicle", PlaceAddress, "port", placeOther}

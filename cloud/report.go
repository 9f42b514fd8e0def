package cloud

import "time"

// ReportSlot is the quarter of an hour by which reports add up. Every time zone differs
// from UTC by a multiple of it.
const ReportSlot = 15 * time.Minute

// WaitClasses are the upper ends of how long parcels wait for their collection, by which
// reports count them; the last class has none.
var WaitClasses = []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 72 * time.Hour}

// ReportRange is the business and the time that a report is about: from From on, before
// To.
type ReportRange struct {
	BusinessID BusinessID
	From, To   time.Time
}

// DeliverySlot is what happened at cabinets in a quarter of an hour.
type DeliverySlot struct {
	At       time.Time // its beginning
	Deposits int
	Taken    [7]int        // collections, by the class of their wait
	Waited   time.Duration // of all collections together
}

// HourSum are attempts of webhooks in an hour.
type HourSum struct {
	At                 time.Time
	Attempts, Failures int
}

// CabinetGaps are the times without a connection of a cabinet, as far as they lie in the
// range of a report.
type CabinetGaps struct {
	DeviceID      DeviceID
	Name          string
	Gaps          int
	Down, Longest time.Duration
	Open          bool // it has no connection now
}

// CabinetState counts the compartments of a cabinet in one state.
type CabinetState struct {
	DeviceID DeviceID
	Name     string
	State    string // "": free, but its door was never read
	Count    int
}

// DayCount counts the orders that are planned for a day in one state.
type DayCount struct {
	Date     string // as ISO 8601 has dates
	StatusID OrderStatus
	Count    int
}

// DeliveredSlot counts the orders that are planned for a day and were delivered in a
// quarter of an hour.
type DeliveredSlot struct {
	Date  string // that they are planned for, as ISO 8601 has dates
	At    time.Time
	Count int
}

// ReportView reads what reports add up. It reads sums and indexes alone, however many
// parcels there are.
type ReportView interface {
	// DeliverySlots are the deposits and collections of real or of test deliveries, by
	// quarters of an hour in their order.
	DeliverySlots(r ReportRange, livemode bool) ([]DeliverySlot, error)
	// WebhookHours are the attempts at all endpoints, by hours in their order.
	WebhookHours(r ReportRange) ([]HourSum, error)
	// ConnectionGaps adds up the times without a connection that reach into the range, of
	// cabinets that are in use. A gap that has not ended ends at now.
	ConnectionGaps(r ReportRange, now time.Time) ([]CabinetGaps, error)
	// CompartmentStates counts compartments of cabinets that are in use, by cabinet.
	CompartmentStates(b BusinessID) ([]CabinetState, error)
	// OrderDays counts orders planned for days from from to to, both included.
	OrderDays(b BusinessID, from, to string) ([]DayCount, error)
	// DeliveredSlots counts the delivered orders of those days by when they were delivered.
	DeliveredSlots(b BusinessID, from, to string) ([]DeliveredSlot, error)
}

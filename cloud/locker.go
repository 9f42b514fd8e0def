package cloud

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Shelf is one column block of a cabinet.
type Shelf struct {
	Code     string // A, B, …
	Position int    // left to right
}

// Compartment is one cell of a cabinet (a grid in the public interface).
type Compartment struct {
	GridID        GridID
	DeviceID      DeviceID
	GridCode      string // A06
	ShelfCode     string
	Door          uint   // compartment_number
	PickupNumber  int    // display sequence, 0 when none
	Label         string // pickup_locker_code, "" when none
	Column, Row   int
	Size          string // S, M, L, XL
	Inner         Inner  // the zero value: not known
	PickupEnabled bool

	DoorStatus  string // closed, open, jammed, unknown
	Occupied    *bool
	State       string // free, reserved, occupied, blocked, cleaning
	BlockReason string
	DeliveryID  DeliveryID // current, 0 when none
	Version     uint64     // counts command rows for this compartment
	OpeningID   string     // running on it, as the device last said
	// Dispute is set while the cabinet and the cloud disagree about what lies
	// inside. It leaves State as it is.
	Dispute *Dispute
	// ClearedAt is when staff last declared it empty, zero when never: a deposit made
	// before and reported later is doubtful.
	ClearedAt time.Time
}

// Inner are the measures of a compartment inside, in centimetres.
type Inner struct {
	Width  int `json:"width" required:"true" min:"1" max:"300" doc:"cm"`
	Height int `json:"height" required:"true" min:"1" max:"300" doc:"cm"`
	Depth  int `json:"depth" required:"true" min:"1" max:"300" doc:"cm"`
}

// Volume is in cubic centimetres, 0 for measures that are not known.
func (i Inner) Volume() int { return i.Width * i.Height * i.Depth }

// Name is what the compartment's door is called towards people, everywhere: what is
// printed on it, or the code of its place where nothing is.
func (c Compartment) Name() string { return cmp.Or(c.Label, c.GridCode) }

// Dispute is how the views of a compartment differ. Each is a delivery's number,
// "" for nothing inside.
type Dispute struct {
	Cabinet string `json:"cabinet,omitempty"`
	Cloud   string `json:"cloud,omitempty"`
	// CommandID names the command that was sent to bring the cabinet's view up to
	// date, if any.
	CommandID string `json:"command_id,omitempty"`
	// Accepted is set once staff have looked: the compartment is in use again as
	// long as the views stay these.
	Accepted bool `json:"accepted,omitempty"`
}

// IsRemoved reports whether the compartment has no place in the layout any more. Its
// row stays, for what its door may still report.
func (c Compartment) IsRemoved() bool { return c.Column == 0 && !c.PickupEnabled }

// Reasons of compartments that a layout blocks.
const (
	BlockRemoved = "removed from the layout"
	BlockWaits   = "waits until the cabinet has applied the layout"
)

// OutOfUse reports whether a compartment takes no new delivery because of a
// dispute about what lies inside.
func (c Compartment) OutOfUse() bool { return c.Dispute != nil && !c.Dispute.Accepted }

// Compartment states.
const (
	GridFree     = "free"
	GridReserved = "reserved"
	GridOccupied = "occupied"
	GridBlocked  = "blocked"
	GridCleaning = "cleaning"
)

// DeliveryStatus is the state of a locker delivery.
type DeliveryStatus string

// Delivery states.
const (
	DeliveryCreated     DeliveryStatus = "created"
	DeliveryDoorsOpened DeliveryStatus = "doors_opened"
	DeliveryDelivered   DeliveryStatus = "delivered"
	DeliveryCorrecting  DeliveryStatus = "correcting"
	DeliveryPickedUp    DeliveryStatus = "picked_up"
	DeliveryFailed      DeliveryStatus = "failed"
	DeliveryExpired     DeliveryStatus = "expired"
	DeliveryCancelled   DeliveryStatus = "cancelled"
)

// Recipient is who may collect.
type Recipient struct {
	Name     string `json:"name" required:"true" max:"120"`
	Phone    string `json:"phone,omitempty" max:"32" format:"phone" doc:"A phone number or an email address is required"`
	Email    string `json:"email,omitempty" max:"254" format:"email"`
	Language string `json:"language,omitempty"`
	Address  string `json:"address,omitempty" max:"255" doc:"Where the parcel goes; for the purposes send and return alone"`
}

// Sender is who brings a parcel that a courier collects.
type Sender struct {
	Name     string `json:"name" required:"true" max:"120"`
	Phone    string `json:"phone,omitempty" max:"32" format:"phone" doc:"A phone number or an email address is required"`
	Email    string `json:"email,omitempty" max:"254" format:"email"`
	Language string `json:"language,omitempty" max:"35"`
}

// Courier is who brings.
type Courier struct {
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Phone string `json:"phone,omitempty"`
}

// Handover is the person whom a recipient has named to collect a delivery.
type Handover struct {
	Name  string    `json:"name"`
	Phone string    `json:"phone,omitempty"`
	At    time.Time `json:"at"` // since when
}

// Rotation is the replacement of a code of a delivery.
type Rotation struct {
	CodeKind string    `json:"code_kind"` // pickup_code, delivery_code
	Reason   string    `json:"reason"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
}

// Notify says by which ways the platform tells the recipient.
type Notify struct {
	SMS   bool `json:"sms"`
	Email bool `json:"email"`
	Push  bool `json:"push"`
}

// Delivery is one task: packages of one partner into one cabinet.
type Delivery struct {
	ID               DeliveryID
	Number           string // LD-000064021, also the reference on the device link
	BusinessID       BusinessID
	ProviderID       ProviderID
	DeviceID         DeviceID
	Reference        string
	RequestHash      []byte // of the creating body, for idempotency by reference
	Status           DeliveryStatus
	Recipient        Recipient
	Courier          *Courier
	Notify           Notify
	DeliverBefore    time.Time
	CollectWithin    time.Duration
	DueAt            time.Time
	SealedCodes      []byte // encrypted Codes
	PickupAssigned   bool   // doors have opened once
	PickupCodeActive bool
	ConfirmedBy      wire.ConfirmedBy
	ExpiredKind      string
	CancelReason     string
	CancelledBy      string
	FailureCode      string
	PickedUpBy       string // recipient, courier, staff
	PickedUpMethod   string
	Corrections      int
	Livemode         bool
	Metadata         []byte // JSON object as given, nil when none
	Packages         []Package
	Handover         *Handover // nil: the recipient collects
	Rotation         *Rotation // the newest; nil: no code was replaced
	// Purpose is "", wire.PurposeSend or wire.PurposeReturn. The latter are brought by their
	// Sender and collected by a courier; "" has no sender.
	Purpose string
	Sender  *Sender
	Returns DeliveryID // whose packages a return brings back; 0 of others

	CreatedAt, DoorsOpenedAt, DepositedAt, PickedUpAt, ExpiredAt, CancelledAt, FailedAt time.Time
	// DepositedEarliest and DepositedLatest bound a deposit whose moment was not
	// seen; zero when it was.
	DepositedEarliest, DepositedLatest time.Time
}

// IsOutgoing reports whether a delivery is brought by its sender, for a courier to collect.
func (d Delivery) IsOutgoing() bool { return d.Purpose != "" }

// PackagesOf are the packages of a delivery that the link of a shipment is for: those of its
// order, or the one with its number, in deliveries from LinkFrom on. A test delivery has none.
func (d Delivery) PackagesOf(s Shipment) (out []Package) {
	if !d.Livemode || d.BusinessID != s.BusinessID || s.OrderID == 0 && (d.ProviderID != s.ProviderID || d.ID < s.LinkFrom) {
		return nil
	}
	for _, p := range d.Packages {
		if p.OrderID == s.OrderID && (s.OrderID != 0 || strings.EqualFold(p.TrackingNumber, s.Number)) {
			out = append(out, p)
		}
	}
	return out
}

// Reminder is when the recipient of a delivery is to be reminded of it; each delivery has
// one at most. A zero time takes it away.
type Reminder struct {
	DeliveryID DeliveryID
	At         time.Time
}

// DueDelivery names a delivery whose deadline has passed.
type DueDelivery struct {
	ID       DeliveryID
	DeviceID DeviceID
	At       time.Time // the deadline
}

// PackageStatus is the state of one package of a delivery.
type PackageStatus string

// Package states.
const (
	PackageCreated         PackageStatus = "created"
	PackageAwaitingDeposit PackageStatus = "awaiting_deposit"
	PackageInCompartment   PackageStatus = "in_compartment"
	PackageCorrecting      PackageStatus = "correcting"
	PackagePickedUp        PackageStatus = "picked_up"
	PackageFailed          PackageStatus = "failed"
	PackageReturned        PackageStatus = "returned"
	PackageCancelled       PackageStatus = "cancelled"
)

// Package is one parcel of a delivery.
type Package struct {
	Position       int // from 0, the order given
	TrackingNumber string
	Reference      string
	Size           string
	Weight         float64
	Length         float64
	Width          float64
	Height         float64
	Description    string
	GridID         GridID // 0 when none
	Status         PackageStatus
	FailureCode    string
	// OrderID is the order that the package belongs to, 0 when it has a timeline
	// of its own, and OrderPackage which of its packages it is, 0 the whole order.
	OrderID      OrderID
	OrderPackage PackageID
}

// OrderID is the order whose packages the delivery brings, 0 for none.
func (d Delivery) OrderID() OrderID {
	for _, p := range d.Packages {
		if p.OrderID != 0 {
			return p.OrderID
		}
	}
	return 0
}

// Opening is one unlocking of doors until they are closed again, as the cloud
// knows it.
type Opening struct {
	ID          string
	BusinessID  BusinessID
	DeviceID    DeviceID
	DeliveryID  DeliveryID // 0 for staff openings
	Kind        wire.OpeningKind
	Requester   Requester
	Doors       []OpeningDoor
	State       string // requested, running, settled, ended
	EndReason   string
	Reason      string // why a correction or reassignment was asked for
	ConfirmedBy wire.ConfirmedBy
	OpenedSent  bool // doors_opened was sent
	RequestedAt time.Time
	OpenedAt    time.Time // a door was first seen open
	EndsAt      time.Time // end of the door session
	EndedAt     time.Time
	Trace       string // traceparent of the call that asked for it, "" when that was not followed
}

// Opening states.
const (
	OpeningRequested = "requested"
	OpeningRunning   = "running"
	OpeningSettled   = "settled"
	OpeningEnded     = "ended"
)

// Ended reports whether the opening has its one end.
func (o Opening) Ended() bool { return o.State == OpeningSettled || o.State == OpeningEnded }

// Requester is who asked for an opening.
type Requester struct {
	Type string `json:"type"` // partner_api, courier, recipient, staff, console
	ID   string `json:"id"`
	Name string `json:"name"`
}

// OpeningDoor is one door of an opening.
type OpeningDoor struct {
	Door     uint      `json:"door"`
	GridID   GridID    `json:"grid_id"`
	Packages []string  `json:"packages,omitempty"` // tracking numbers
	Status   string    `json:"status"`             // closed, open, unknown
	Error    string    `json:"error,omitempty"`
	OpenedAt time.Time `json:"opened_at,omitzero"`
	ClosedAt time.Time `json:"closed_at,omitzero"`
	// BlockID is of the record by which a courier had the compartment blocked.
	BlockID string `json:"block_id,omitempty"`
	// Removals are what staff stated at the cabinet of packages behind the door, in their order.
	Removals []Removal `json:"removals,omitempty"`
}

// Removal is what staff stated at a cabinet of the packages of a delivery behind a door.
type Removal struct {
	ID         string     `json:"id"` // the cabinet's
	DeliveryID DeliveryID `json:"delivery_id"`
	Outcome    string     `json:"outcome"` // as wire.IsRemoval allows
	Reason     string     `json:"reason"`
	At         time.Time  `json:"at"`
}

// DeviceOrder is a registry row for a package that rests in a device.
type DeviceOrder struct {
	ID            DeviceOrderID
	BusinessID    BusinessID
	DeviceID      DeviceID
	GridCode      string
	Kind          string // locker_delivery, …
	Status        string // unverified, stored, overdue, picked_up, removed
	NextActor     string // recipient, courier, staff, operator, "" is null
	DeliveryID    DeliveryID
	Tracking      string // package
	Reference     string
	RemovalReason string
	DueAt         time.Time
	OverdueAt     time.Time
	StoredAt      time.Time
	EndedAt       time.Time
}

// IsUnverified reports whether nothing confirms that the package lies in the compartment.
func (o DeviceOrder) IsUnverified() bool { return o.EndedAt.IsZero() && o.Status == "unverified" }

// Exception is a device order exception: something at a compartment that a
// person has to look at.
type Exception struct {
	ID            ExceptionID
	BusinessID    BusinessID
	DeviceID      DeviceID
	DeviceOrderID DeviceOrderID // 0 for a door with no parcel
	DeliveryID    DeliveryID
	GridCode      string
	Source        string // the device's exception id, or how the cloud found it
	Type          string // door_left_open, deposit_unverified, item_missing, overdue
	Severity      string
	Status        string // open, resolved, dismissed
	Resolution    string
	Note          string
	OpenedAt      time.Time
	ClosedAt      time.Time
	ClosedBy      string
}

// LockerNews is what happened to packages of an order on their way through a
// cabinet. It cannot be refused.
type LockerNews struct {
	Kind       LockerNewsKind
	BusinessID BusinessID
	OrderID    OrderID
	Packages   []PackageID // a 0 among them stands for all that the order has
	DeliveryID DeliveryID
	Device     Operator // who says so
	DeviceCode string
	Place      *otep.Location
	Trace      string         // of the opening that the news come from, as Opening.Trace
	Event      *TimelineEvent // of LockerEvent
	Moment
}

// LockerNewsKind is a kind of news.
type LockerNewsKind string

// Kinds of news.
const (
	LockerAnnounced LockerNewsKind = "announced" // a delivery was made for them
	LockerOpened    LockerNewsKind = "opened"    // a door, for their deposit
	LockerDeposited LockerNewsKind = "deposited"
	LockerCollected LockerNewsKind = "collected"
	LockerOverdue   LockerNewsKind = "overdue" // not collected in time; they stay and may be collected
	LockerExpired   LockerNewsKind = "expired" // not brought in time
	LockerRemoved   LockerNewsKind = "removed" // taken out, but not by who was to collect them
	LockerEvent     LockerNewsKind = "event"   // that the device has made, as a scanner does
)

// DeliveryFilter chooses deliveries of a business. Zero fields choose all.
type DeliveryFilter struct {
	BusinessID     BusinessID
	ProviderID     ProviderID
	DeviceID       DeviceID
	Status         DeliveryStatus
	Livemode       *bool
	Reference      string    // of the provider, as it is
	TrackingNumber string    // of a package, in any case
	From, To       time.Time // of the creation: not before From, before To
	// Of is a mail address in small letters: live deliveries alone that concern the person
	// who has it, as Part says.
	Of   string
	Part RecipientPart
	// CollectedFrom bounds RecipientCollected, whose list is sorted by picked_up_at.
	CollectedFrom time.Time
	Page          Page
}

// RecipientPart is what deliveries are to the person with a mail address.
type RecipientPart uint8

// Parts of a recipient's deliveries.
const (
	RecipientWaiting   RecipientPart = iota // they wait to be collected, in time or overdue
	RecipientCollected                      // they were collected
	RecipientBrings                         // they are still to be brought by that person
)

// DeviceOrderFilter chooses device orders of a business. Zero fields choose all.
type DeviceOrderFilter struct {
	BusinessID BusinessID
	DeviceID   DeviceID
	Status     string
	Kind       string
	Reference  string // of the provider, as it is
	Live       bool   // none of the mock lockers of providers
	Page       Page
}

// ExceptionFilter chooses exceptions of a business. Zero fields choose all.
type ExceptionFilter struct {
	BusinessID BusinessID
	DeviceID   DeviceID
	Status     string
	Live       bool // none of the mock lockers of providers
	Page       Page
}

// LockerView reads the present of compartments, deliveries and openings.
type LockerView interface {
	Compartments(DeviceID) ([]Compartment, error) // by door
	Compartment(DeviceID, uint) (Compartment, error)
	// PickupSizes are the sizes of the compartments for pickup that devices have, each once.
	PickupSizes([]DeviceID) (map[DeviceID][]string, error)
	Shelves(DeviceID) ([]Shelf, error) // from left to right
	Delivery(DeliveryID) (Delivery, error)
	// Deliveries and Exceptions list a part of what a business has, by id.
	Deliveries(DeliveryFilter) ([]Delivery, Listed, error)
	Exceptions(ExceptionFilter) ([]Exception, Listed, error)
	// Registry lists a part of what rests, and rested, in the cabinets of a business, by id.
	Registry(DeviceOrderFilter) ([]DeviceOrder, Listed, error)
	DeviceOrder(BusinessID, DeviceOrderID) (DeviceOrder, error)
	// DeliveryExceptions lists the exceptions about a delivery, oldest first.
	DeliveryExceptions(DeliveryID) ([]Exception, error)
	DeliveryByNumber(string) (Delivery, error)
	DeliveryByReference(ProviderID, string) (Delivery, error)
	// DeliveriesOf lists the deliveries that hold packages of a shipment, by id: the newest
	// 100 (see Delivery.PackagesOf).
	DeliveriesOf(Shipment) ([]Delivery, error)
	// ReturnsOf lists the returns of a delivery's packages, by id.
	ReturnsOf(DeliveryID) ([]Delivery, error)
	Opening(string) (Opening, error)
	// RunningOpenings lists openings of a device that have no end yet.
	RunningOpenings(DeviceID) ([]Opening, error)
	// DoorHistory lists a part of a device's openings that were asked for since a
	// time, newest first.
	DoorHistory(d DeviceID, of DeliveryID, since time.Time, p Page) ([]Opening, Listed, error)
	// DeliveryOpenings lists a delivery's openings, oldest first.
	DeliveryOpenings(DeliveryID) ([]Opening, error)
	Command(string) (Command, error)
	// OpenCommands lists a device's commands without an outcome, oldest first.
	OpenCommands(DeviceID) ([]Command, error)
	// RecentOrders lists a device's newest 200 orders about the use of compartments (block,
	// unblock, close_session), newest first, whatever became of them.
	RecentOrders(DeviceID) ([]Command, error)
	// CodeRows lists code list entries of a device with a number above from,
	// by number; dropped ones too unless from is 0. At most limit.
	CodeRows(d DeviceID, from uint64, limit int) ([]CodeRow, error)
	DeliveryCodes(DeliveryID) ([]CodeRow, error)
	// StaffRota finds that of a business; StaffList is how far a cabinet's list follows it.
	StaffRota(BusinessID) (StaffRota, error)
	StaffList(DeviceID) (StaffList, error)
	// StaffEntries are the live code list entries of a device that are of staff codes, by
	// number.
	StaffEntries(DeviceID) ([]CodeRow, error)
	// StaffReach counts the cabinets of a business that take staff codes, and those of
	// them that have not confirmed a list with all of them.
	StaffReach(BusinessID) (cabinets, waiting int, err error)
	DeviceOrders(DeliveryID) ([]DeviceOrder, error)
	// Reminder finds the reminder of a delivery that is to come.
	Reminder(DeliveryID) (Reminder, error)
	// OpenExceptions lists open exceptions of a device; ExceptionBySource finds
	// one, open or closed, by what raised it.
	OpenExceptions(DeviceID) ([]Exception, error)
	ExceptionBySource(DeviceID, string) (Exception, error)
	Exception(BusinessID, ExceptionID) (Exception, error)
}

// LockerChanges are the changes of compartments, deliveries and openings.
type LockerChanges struct {
	Shelves      map[DeviceID][]Shelf
	Compartments []Compartment
	Doors        []DoorPresent // only the present of a compartment
	Deliveries   []Delivery    // with packages
	Openings     []Opening
	Commands     []Command
	Codes        []CodeRow
	DeviceOrders []DeviceOrder
	Exceptions   []Exception
	Reminders    []Reminder
	StaffRotas   []StaffRota
	StaffLists   []StaffList
}

func (s *LockerChanges) preview(e *effectList) {
	previewEach(e, "Compartments", s.Compartments, func(x Compartment) {
		old, err := e.view.Compartment(x.DeviceID, x.Door)
		showChanged(e, "compartment", fmt.Sprintf("%d/%d", x.DeviceID, x.Door), x.Name(), x, old, err, Compartment.members)
	})
	previewEach(e, "Deliveries", s.Deliveries, func(x Delivery) {
		old, err := e.view.Delivery(x.ID)
		showChanged(e, "delivery", x.ID, x.Number, x, old, err, Delivery.members).countDue(old.DueAt, x.DueAt)
	})
	previewEach(e, "Commands", s.Commands, func(x Command) {
		old, err := e.view.Command(x.ID)
		showChanged(e, "command", x.ID, "", x, old, err, nil)
	})
	previewEach(e, "DeviceOrders", s.DeviceOrders, func(x DeviceOrder) {
		old, err := e.view.DeviceOrder(x.BusinessID, x.ID)
		showChanged(e, "device_order", x.ID, x.Tracking, x, old, err, DeviceOrder.members).countDue(old.DueAt, x.DueAt)
	})
	previewEach(e, "Exceptions", s.Exceptions, func(x Exception) {
		old, err := Exception{}, error(ErrNotFound)
		if x.ID != 0 {
			old, err = e.view.Exception(x.BusinessID, x.ID)
		}
		e.showMembers(Effect{Type: "exception", ID: x.ID, Name: e.placeOf(x), Kind: x.Type, Before: old.members(), After: x.members()}, old, err)
	})
}

// countDue shows a due_at that counts from now, not from what it was, as hours from now: as a time it would be
// another one each second, and never what was shown.
func (x *Effect) countDue(was, is time.Time) {
	now := time.Now()
	if is.Equal(was) || is.IsZero() || was.After(now) && is.After(now.Add(time.Minute)) {
		return
	}
	delete(x.Before, "due_at")
	delete(x.After, "due_at")
	x.After["due_in_hours"] = int(math.Round(is.Sub(now).Hours()))
}

// placeOf is where an exception is, as people call it: the cabinet, and the door.
func (e *effectList) placeOf(x Exception) string {
	d, err := e.view.Device(x.DeviceID)
	if err != nil {
		return x.GridCode
	}
	door := x.GridCode
	cells, _ := e.view.Compartments(x.DeviceID) // the code of the place says it without them
	for _, c := range cells {
		if c.GridCode == x.GridCode {
			door = c.Name()
		}
	}
	return cmp.Or(d.Name, d.Code) + ", " + door
}

// members are those of a compartment that a preview shows.
func (x Compartment) members() map[string]any {
	return map[string]any{"status": OrNull(x.State), "block_reason": OrNull(x.BlockReason), "size": OrNull(x.Size)}
}

// members are those of a delivery that a preview shows.
func (d Delivery) members() map[string]any {
	return map[string]any{"status": d.Status, "due_at": Stamp(d.DueAt, time.UTC)}
}

// members are those of a device order that a preview shows.
func (o DeviceOrder) members() map[string]any {
	return map[string]any{"status": o.Status, "removal_reason": OrNull(o.RemovalReason), "due_at": Stamp(o.DueAt, time.UTC)}
}

// members are those of an exception that a preview shows.
func (x Exception) members() map[string]any {
	out := map[string]any{"type": x.Type, "status": x.Status}
	for name, v := range map[string]string{"resolution": x.Resolution, "note": x.Note} {
		out[name] = nil
		if v != "" {
			out[name] = v
		}
	}
	return out
}

// DoorPresent is the present of one compartment, as a status or record said.
type DoorPresent struct {
	DeviceID   DeviceID
	Door       uint
	DoorStatus string
	Occupied   *bool
	OpeningID  string
	// Version is the highest version of a command that the cabinet has taken for the door: the
	// compartment's does not stay below it. 0: not said.
	Version uint64
}

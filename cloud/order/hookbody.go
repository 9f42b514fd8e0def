package order

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// telling makes the data of one event. What goes to a customer holds no notes
// and names of staff, and no prices where those are hidden from it.
type telling struct {
	w        *work
	number   int64
	customer bool

	business cloud.Business
	zone     *time.Location
	show     *shower
}

func (t *telling) begin() (err error) {
	if t.business, err = t.w.v.Business(t.w.o.BusinessID); err != nil {
		return err
	}
	t.zone, t.show = t.business.Location(), t.w.s.shower(t.w.v, t.w.c)
	return nil
}

func (t *telling) stamp(at time.Time) *string { return cloud.Stamp(at, t.zone) }

// hookOrder names the order in every event.
type hookOrder struct {
	OrderID        cloud.OrderID     `json:"order_id"`
	Ref            *string           `json:"order_ref"`
	Number         string            `json:"tracking_number"`
	ExternalNumber *string           `json:"external_tracking_number"`
	ExternalID     *string           `json:"external_order_id"`
	Type           cloud.OrderType   `json:"type"`
	CustomerID     *cloud.AccountID  `json:"customer_id"`
	Metadata       map[string]string `json:"metadata"`
}

func (t *telling) order() hookOrder {
	o := t.w.o
	h := hookOrder{OrderID: o.ID, Ref: cloud.OrNull(o.Ref), Number: o.Number, ExternalNumber: cloud.OrNull(o.ExternalNumber), ExternalID: cloud.OrNull(o.ExternalID),
		Type: o.Type, CustomerID: cloud.OrNull(o.CustomerID), Metadata: map[string]string{}}
	if o.Metadata != nil {
		h.Metadata = o.Metadata
	}
	return h
}

// hookPackage is a package of a new order.
type hookPackage struct {
	PackageID      cloud.PackageID          `json:"package_id"`
	Ref            *string                  `json:"package_ref"`
	Number         string                   `json:"tracking_number"`
	ExternalNumber *string                  `json:"external_tracking_number"`
	Description    *string                  `json:"description"`
	Quantity       int                      `json:"quantity"`
	Weight         float64                  `json:"weight"`
	Length         *float64                 `json:"length"`
	Width          *float64                 `json:"width"`
	Height         *float64                 `json:"height"`
	WeightUnit     string                   `json:"weight_unit"`
	DimensionUnit  string                   `json:"dimension_unit"`
	Status         cloud.OrderPackageStatus `json:"status"`
}

// hookCreated is the data of order.created.
type hookCreated struct {
	Order         hookOrder           `json:"order"`
	StatusID      cloud.OrderStatus   `json:"order_status_id"`
	Status        string              `json:"order_status"`
	ScheduledDate *string             `json:"scheduled_date"`
	TimeWindow    *TimeWindow         `json:"time_window"`
	Sender        *AddressBody        `json:"sender"`
	Recipient     *AddressBody        `json:"recipient"`
	Packages      []hookPackage       `json:"packages"`
	Instruction   *string             `json:"delivery_instruction"`
	Note          *string             `json:"note"`
	Source        string              `json:"source"`
	ShippingPrice *cloud.Money        `json:"shipping_price,omitempty"`
	Tax           *cloud.Money        `json:"tax,omitempty"`
	TotalPrice    *cloud.Money        `json:"total_price,omitempty"`
	Currency      *string             `json:"currency,omitempty"`
	PriceDetails  []cloud.PriceDetail `json:"price_details,omitempty"`
	PriceHidden   bool                `json:"price_hidden,omitempty"`
	TrackingURL   string              `json:"tracking_url"`
}

func (t *telling) created() (any, error) {
	o := t.w.o
	c := hookCreated{Order: t.order(), StatusID: o.Status, Status: o.Status.String(), ScheduledDate: cloud.OrNull(o.ScheduledDate), Sender: addressBody(o.Sender),
		Recipient: addressBody(o.Recipient), Packages: []hookPackage{}, Instruction: cloud.OrNull(o.Instruction), Note: cloud.OrNull(o.Note), Source: o.Source,
		TrackingURL: trackingURL(t.w.c, o.Number)}
	if o.WindowStart != "" {
		c.TimeWindow = &TimeWindow{Start: o.WindowStart, End: o.WindowEnd}
	}
	for _, p := range o.Packages {
		b := packageBody(p)
		c.Packages = append(c.Packages, hookPackage{PackageID: b.PackageID, Ref: b.Ref, Number: b.Number, ExternalNumber: b.ExternalNumber, Description: b.Description,
			Quantity: b.Quantity, Weight: b.Weight, Length: b.Length, Width: b.Width, Height: b.Height, WeightUnit: b.WeightUnit, DimensionUnit: b.DimensionUnit,
			Status: b.Status})
	}
	if t.customer {
		c.Note = nil
		a, err := t.w.v.Account(o.CustomerID)
		if err != nil {
			return nil, err
		}
		c.PriceHidden = slices.Contains(a.PriceHidden, cloud.LocalDelivery)
	}
	if p := o.Prices; p != nil && !c.PriceHidden {
		c.ShippingPrice, c.Tax, c.TotalPrice, c.Currency, c.PriceDetails = &p.Shipping, &p.Tax, &p.Total, &p.Currency, p.Details
	}
	return c, nil
}

// actor is who acts, as far as who is told may know.
func (t *telling) actor() OperatorBody {
	by := operator(t.w.c)
	if t.w.c.Account.Type == cloud.Customer {
		by.Type = "customer"
	}
	b := OperatorBody{Type: by.Type}
	if !t.customer || t.ownAct() {
		b.ID, b.Name = cloud.OrNull(by.ID), cloud.OrNull(by.Name)
	}
	return b
}

// ownAct reports whether the order's customer acts.
func (t *telling) ownAct() bool {
	return t.w.c.Account.Type == cloud.Customer && t.w.c.Account.ID == t.w.o.CustomerID
}

// note is a text of whoever acted, as far as who is told may know.
func (t *telling) note(text string) string {
	if t.customer && !t.ownAct() {
		return ""
	}
	return text
}

// hookDriver is a driver. A telephone and a vehicle are not kept.
type hookDriver struct {
	DriverID cloud.AccountID `json:"driver_id"`
	Name     *string         `json:"name"`
	Phone    *string         `json:"phone"`
	Vehicle  *string         `json:"vehicle_type"`
}

func (t *telling) driver() *hookDriver {
	if t.w.o.DriverID == 0 {
		return nil
	}
	return &hookDriver{DriverID: t.w.o.DriverID, Name: cloud.OrNull(t.w.o.DriverName)}
}

// hookStatus is the data of order.status_change.
type hookStatus struct {
	Order      hookOrder         `json:"order"`
	Before     cloud.OrderStatus `json:"before_status"`
	After      cloud.OrderStatus `json:"after_status"`
	BeforeName string            `json:"before_status_name"`
	AfterName  string            `json:"after_status_name"`
	Operation  int               `json:"operation_type"`
	Operator   OperatorBody      `json:"operator"`
	Reason     *string           `json:"reason"`
	RouteID    *int64            `json:"route_id"`
	Driver     *hookDriver       `json:"driver"`
	ChangedAt  *string           `json:"changed_at"`
}

func (t *telling) statusChange(s step) (any, error) {
	return hookStatus{Order: t.order(), Before: s.before, After: s.after, BeforeName: s.before.String(), AfterName: s.after.String(), Operation: s.operation,
		Operator: t.actor(), Reason: cloud.OrNull(cmp.Or(s.reason, t.note(s.note))), RouteID: cloud.OrNull(t.w.o.RouteID), Driver: t.driver(), ChangedAt: t.stamp(t.w.now)}, nil
}

// hookLife is the data of the lifecycle events. Members behind Location are of
// some of them.
type hookLife struct {
	Order    hookOrder         `json:"order"`
	StatusID cloud.OrderStatus `json:"order_status_id"`
	Status   string            `json:"order_status"`
	Driver   *hookDriver       `json:"driver"`
	Previous *cloud.AccountID  `json:"previous_driver_id"`
	Source   string            `json:"source"` // manual, route, driver_app, staff, system
	Reason   *string           `json:"reason"`
	RouteID  *int64            `json:"route_id"`
	Location *struct{}         `json:"location"` // is not kept

	ETA       nullable    `json:"eta,omitzero"`
	Recipient nullable    `json:"recipient_name,omitzero"`
	FollowUp  string      `json:"follow_up,omitempty"` // redelivery, reschedule, refused
	Proof     *[]hookFile `json:"proof_files_detail,omitempty"`
}

// nullable is a member that is there, with null or a text.
type nullable struct {
	there bool
	text  *string
}

// MarshalJSON implements json.Marshaler.
func (n nullable) MarshalJSON() ([]byte, error) { return json.Marshal(n.text) }

func (t *telling) lifecycle(name string, s step) (any, error) {
	l := hookLife{Order: t.order(), StatusID: s.after, Status: s.after.String(), Driver: t.driver(), Source: t.source(name), RouteID: cloud.OrNull(t.w.o.RouteID)}
	if t.w.was.DriverID != t.w.o.DriverID {
		l.Previous = cloud.OrNull(t.w.was.DriverID)
	}
	switch name {
	case liveDeclined: // whoever declined
		if was := t.w.was; was.DriverID != 0 {
			l.Driver, l.Previous = &hookDriver{DriverID: was.DriverID, Name: cloud.OrNull(was.DriverName)}, nil
		}
		l.Reason = cloud.OrNull(t.note(s.note))
	case liveUnassigned:
		l.Reason = cloud.OrNull(t.lost(s))
	case liveFailed:
		l.Reason, l.FollowUp = cloud.OrNull(s.reason), followUp(s)
	case liveCancelled:
		l.Reason = cloud.OrNull(cmp.Or(t.w.o.CancelReason, s.reason))
	default:
		l.Reason = cloud.OrNull(t.note(s.note))
	}
	switch name {
	case "out_for_delivery":
		l.ETA = nullable{true, t.stamp(t.w.o.ETA)}
	case "delivered":
		l.Recipient = nullable{there: true}
	}
	if code := s.after.State().Code; name == "picked_up" || name == "delivered" || name == liveFailed {
		files := t.files(func(f cloud.ProofFile) bool { return f.Event == code })
		l.Proof = &files
	}
	return l, nil
}

// lost is why a driver no longer has the order.
func (t *telling) lost(s step) string {
	switch {
	case s.trigger == DriverDeclines:
		return "declined"
	case s.trigger == "" && t.w.o.DriverID != 0:
		return "handover"
	}
	return "revoked"
}

// followUp is what comes after a delivery that failed: the driver comes again,
// someone has to plan it, or nothing.
func followUp(s step) string {
	switch {
	case s.after == cloud.OrderRejected:
		return "refused"
	case s.trigger == DeliveryResult:
		return "redelivery"
	}
	return "reschedule"
}

// source is by whom or what an event of an order's life came about.
func (t *telling) source(name string) string {
	c := t.w.c
	switch {
	case name == liveAssigned && t.w.o.RouteID != 0:
		return "route"
	case c.Anonymous():
		return "system"
	case c.Account.Type == cloud.DriverAccount:
		return "driver_app"
	case name == liveAssigned || c.Account.Type == cloud.Customer || c.Account.Type == cloud.Broker:
		return "manual"
	}
	return "staff"
}

// hookTracking is the data of tracking.event. Its timelines are those of whole
// orders.
type hookTracking struct {
	Order      hookOrder   `json:"order"`
	Package    *struct{}   `json:"package"`
	ID         int64       `json:"tracking_event_id"`
	StatusID   int         `json:"tracking_event_status_id"`
	Key        otep.Code   `json:"tracking_event_key"`
	Phase      string      `json:"phase"`
	Label      string      `json:"description"`
	OccurredAt *string     `json:"event_occurred_at"`
	RecordedAt *string     `json:"event_recorded_at"`
	Location   *struct{}   `json:"location"` // is not kept
	Reason     *string     `json:"incident_reason"`
	Service    *int        `json:"service_type"`
	Result     *int        `json:"service_status"`
	Recipient  *string     `json:"recipient_name"` // is not kept
	Signature  *string     `json:"signature"`
	Files      []string    `json:"proof_files"`
	Detail     []hookFile  `json:"proof_files_detail"`
	Source     eventSource `json:"source"`
}

type eventSource struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// eventIDs are the numbers of the tracking event dictionary (interface 4.2);
// statuses of orders that have the same code have the same number, but for
// these.
var eventIDs = map[otep.Code]int{otep.InformationSubmitted: 10, otep.BookingConfirmed: 11, otep.AwaitingPickup: 12, otep.RemovedFromRoute: 34, otep.RouteCancelled: 35,
	otep.PickedUp: 21, otep.DeliveryFailed: 43}

// eventID is the number of a code, 0 when it has none.
func eventID(code otep.Code) int {
	if id := eventIDs[code]; id != 0 {
		return id
	}
	for _, s := range cloud.OrderStates() {
		if s.Code == code {
			return int(s.ID)
		}
	}
	return 0
}

func (t *telling) tracking(e otep.Event) (any, error) {
	h := hookTracking{Order: t.order(), ID: t.number, StatusID: eventID(e.StatusCode), Key: e.StatusCode, Phase: e.Phase,
		Label: locale.Description(t.business.Settings.Locale(), e.StatusCode), OccurredAt: t.stamp(e.OccurredAt.Time), RecordedAt: t.stamp(e.RecordedAt.Time),
		Reason: cloud.OrNull(e.IncidentReason), Files: []string{}, Source: eventSource{Name: t.business.Name}}
	if e.Source != nil {
		h.Source.Type = e.Source.Type
	}
	for kind, status := range proven {
		if status.State().Code == e.StatusCode {
			h.Service, h.Result = &kind[0], &kind[1]
		}
	}
	var signature *string
	h.Detail = t.files(func(f cloud.ProofFile) bool { return f.Event == e.StatusCode && h.Service != nil })
	for _, f := range h.Detail {
		if f.FullURL == nil {
			continue
		}
		if f.Type == "signature" {
			signature = f.FullURL
		} else {
			h.Files = append(h.Files, *f.FullURL)
		}
	}
	h.Signature = signature
	return h, nil
}

// hookFile is a proof file; those of a file that was removed have no address.
type hookFile struct {
	FileID     int64              `json:"file_id"`
	Type       string             `json:"type"`
	URL        *string            `json:"url"`
	FullURL    *string            `json:"full_url"`
	EventID    *int64             `json:"tracking_event_id"`
	StatusID   *cloud.OrderStatus `json:"tracking_event_status_id"`
	Key        *otep.Code         `json:"tracking_event_key"`
	Service    *int               `json:"service_type"`
	Result     *int               `json:"service_status"`
	MIME       *string            `json:"mime_type"`
	Size       *int64             `json:"size"`
	CapturedAt *string            `json:"captured_at"`
	Latitude   *float64           `json:"latitude"`
	Longitude  *float64           `json:"longitude"`
}

func (t *telling) file(f cloud.ProofFile) hookFile {
	b := t.show.file(f, t.zone)
	return hookFile{FileID: b.FileID, Type: b.Type, URL: &b.URL, FullURL: b.FullURL, EventID: b.EventID, StatusID: b.StatusID, Key: b.EventKey, Service: b.Service,
		Result: b.Result, MIME: b.MIME, Size: b.Size, CapturedAt: b.CapturedAt, Latitude: b.Latitude, Longitude: b.Longitude}
}

func (t *telling) files(keep func(cloud.ProofFile) bool) []hookFile {
	out := []hookFile{}
	for _, f := range t.w.o.Files {
		if keep(f) {
			out = append(out, t.file(f))
		}
	}
	return out
}

// hookProof is the data of pod.files_updated.
type hookProof struct {
	Action  string     `json:"action"` // added, updated, removed
	Order   hookOrder  `json:"order"`
	Package *struct{}  `json:"package"`
	File    hookFile   `json:"file"`
	Files   []string   `json:"proof_files"` // all there are now
	Detail  []hookFile `json:"proof_files_detail"`
}

func (t *telling) proof(action string, f cloud.ProofFile) (any, error) {
	h := hookProof{Action: action, Order: t.order(), File: t.file(f), Files: []string{}, Detail: t.files(func(cloud.ProofFile) bool { return true })}
	if action == "removed" {
		h.File.URL, h.File.FullURL = nil, nil
	}
	for _, d := range h.Detail {
		if d.FullURL != nil {
			h.Files = append(h.Files, *d.FullURL)
		}
	}
	return h, nil
}

// hookDeleted is the data of order.deleted.
type hookDeleted struct {
	Order     hookOrder         `json:"order"`
	Status    cloud.OrderStatus `json:"last_status"`
	Name      string            `json:"last_status_name"`
	Operation int               `json:"operation_type"`
	Operator  OperatorBody      `json:"operator"`
	DeletedAt *string           `json:"deleted_at"`
}

func (t *telling) deleted() (any, error) {
	return hookDeleted{Order: t.order(), Status: t.w.o.Status, Name: t.w.o.Status.String(), Operation: t.w.steps[len(t.w.steps)-1].operation, Operator: t.actor(),
		DeletedAt: t.stamp(t.w.now)}, nil
}

// hookRefused is the data of order.cancel_failed.
type hookRefused struct {
	Order       hookOrder         `json:"order"`
	StatusID    cloud.OrderStatus `json:"order_status_id"`
	Status      string            `json:"order_status"`
	Code        string            `json:"code"`
	Message     string            `json:"message"` // in the business's language
	RequestedBy OperatorBody      `json:"requested_by"`
	AttemptedAt *string           `json:"attempted_at"`
}

func (t *telling) refused() (any, error) {
	code := whyNot(t.w.o.Status)
	return hookRefused{Order: t.order(), StatusID: t.w.o.Status, Status: t.w.o.Status.String(), Code: code,
		Message: locale.Error(t.business.Settings.Locale(), code), RequestedBy: t.actor(), AttemptedAt: t.stamp(t.w.now)}, nil
}

// hookStop is the data of the events of an interception. Each has the moment
// that it is about.
type hookStop struct {
	ID            cloud.InterceptionID `json:"interception_id"`
	Order         hookOrder            `json:"order"`
	Status        string               `json:"status"`
	Requested     string               `json:"requested_outcome"`
	Outcome       *string              `json:"outcome"`
	Before        cloud.OrderStatus    `json:"before_status"`
	After         *cloud.OrderStatus   `json:"after_status"`
	Operation     int                  `json:"operation_type"`
	Reason        *string              `json:"reason"`
	NewAddress    *AddressBody         `json:"new_address"`
	NewDate       *string              `json:"new_scheduled_date"`
	RequestedBy   cloud.Operator       `json:"requested_by"`
	RejectReason  *string              `json:"reject_reason"`
	FailureReason *string              `json:"failure_reason"`
	WarehouseID   *int64               `json:"warehouse_id"`
	CreatedAt     *string              `json:"created_at"`
	InForceAt     *string              `json:"in_force_at,omitempty"`
	HeldAt        *string              `json:"held_at,omitempty"`
	ExecutedAt    *string              `json:"executed_at,omitempty"`
	EndedAt       *string              `json:"ended_at,omitempty"`
}

// interception tells of one that came to a status and had another before.
func (t *telling) interception(status, was string, i cloud.Interception) (any, error) {
	h := hookStop{ID: i.ID, Order: t.order(), Status: status, Requested: i.Requested, Outcome: cloud.OrNull(i.Outcome), Before: i.Before, After: cloud.OrNull(i.After),
		Operation: i.Operation, Reason: cloud.OrNull(i.Reason), NewAddress: addressBody(i.NewAddress), NewDate: cloud.OrNull(i.NewDate), RequestedBy: i.By,
		RejectReason: cloud.OrNull(i.RejectReason), FailureReason: cloud.OrNull(i.FailureReason), CreatedAt: t.stamp(i.CreatedAt)}
	if !i.HeldAt.IsZero() {
		h.WarehouseID = cloud.OrNull(t.w.o.WarehouseID)
	}
	switch status {
	case cloud.InterceptionInForce:
		h.InForceAt = t.stamp(i.InForceAt)
	case cloud.InterceptionHeld:
		h.HeldAt = t.stamp(i.HeldAt)
	case cloud.InterceptionExecuted:
		h.ExecutedAt = t.stamp(i.ExecutedAt)
	case cloud.InterceptionWithdrawn, cloud.InterceptionRejected, cloud.InterceptionFailed:
		h.EndedAt = t.stamp(i.EndedAt)
	}
	ended := status == cloud.InterceptionExecuted || status == cloud.InterceptionWithdrawn || status == cloud.InterceptionFailed
	if ended && (was == cloud.InterceptionInForce || was == cloud.InterceptionHeld) {
		h.Before = cloud.OrderIntercepted
	}
	return h, nil
}

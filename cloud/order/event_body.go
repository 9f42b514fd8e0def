package order

import (
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// eventWriter makes the data of one event. The data for a customer holds no notes
// and names of staff, and no prices where those are hidden from it.
type eventWriter struct {
	d        *Decision
	number   int64
	customer bool

	business cloud.Business
	zone     *time.Location
	show     *shower
}

func (t *eventWriter) load() (err error) {
	if t.business, err = t.d.View.Business(t.d.Order.BusinessID); err != nil {
		return err
	}
	t.zone, t.show = t.business.Location(), t.d.service.shower(t.d.View, t.d.Caller.ForOthers())
	return nil
}

func (t *eventWriter) stamp(at time.Time) *string { return cloud.Stamp(at, t.zone) }

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

func (t *eventWriter) order() hookOrder {
	o := t.d.Order
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

func (t *eventWriter) created() (any, error) {
	o := t.d.Order
	c := hookCreated{Order: t.order(), StatusID: o.Status, Status: o.Status.String(), ScheduledDate: cloud.OrNull(o.ScheduledDate), Sender: addressBody(o.Sender),
		Recipient: addressBody(o.Recipient), Packages: []hookPackage{}, Instruction: cloud.OrNull(o.Instruction), Note: cloud.OrNull(o.Note), Source: o.Source,
		TrackingURL: trackingURL(t.d.Caller.ForOthers(), o.Number)}
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
		a, err := t.d.View.Account(o.CustomerID)
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

// actor is who acts, as far as the receiver may know.
func (t *eventWriter) actor() OperatorBody {
	by := t.d.Operator()
	if t.d.Caller.Account.Type == cloud.Customer {
		by.Type = "customer"
	}
	b := OperatorBody{Type: by.Type}
	if !t.customer || t.byCustomer() {
		b.ID, b.Name = cloud.OrNull(by.ID), cloud.OrNull(by.Name)
	}
	return b
}

// byCustomer reports whether the order's customer acts.
func (t *eventWriter) byCustomer() bool {
	return t.d.Caller.Account.Type == cloud.Customer && t.d.Caller.Account.ID == t.d.Order.CustomerID
}

// note is a text of the actor, as far as the receiver may know.
func (t *eventWriter) note(text string) string {
	if t.customer && !t.byCustomer() {
		return ""
	}
	return text
}

// HookDriver is a driver in events.
type HookDriver struct {
	DriverID cloud.AccountID `json:"driver_id"`
	Name     *string         `json:"name"`
	Phone    *string         `json:"phone"`
	Vehicle  *string         `json:"vehicle_type"`
}

// TellDriver is a driver as events show it.
func TellDriver(d cloud.Driver) HookDriver {
	return HookDriver{DriverID: d.Account.ID, Name: cloud.OrNull(d.Account.Name), Phone: cloud.OrNull(d.Phone), Vehicle: cloud.OrNull(d.Vehicle.Type)}
}

func (t *eventWriter) driver() (*HookDriver, error) { return t.driverOf(t.d.Order) }

// driverOf is the driver of an order as it was, nil when it had none.
func (t *eventWriter) driverOf(o cloud.Order) (*HookDriver, error) {
	if o.DriverID == 0 {
		return nil, nil
	}
	out := HookDriver{DriverID: o.DriverID}
	d, err := t.d.View.Driver(o.BusinessID, o.DriverID)
	switch {
	case err == nil:
		out = TellDriver(d)
	case !errors.Is(err, cloud.ErrNotFound): // the account may be gone
		return nil, err
	}
	if o.DriverName != "" { // as the order has it everywhere
		out.Name = &o.DriverName
	}
	return &out, nil
}

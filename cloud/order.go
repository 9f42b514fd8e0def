package cloud

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// OrderType says which stops an order has.
type OrderType string

// Types of orders.
const (
	DeliveryOrder OrderType = "D"   // a stop at the recipient
	PickupOrder   OrderType = "P"   // a stop at the sender
	PointToPoint  OrderType = "P2P" // both
)

// Values are all of them.
func (OrderType) Values() []string {
	return []string{string(DeliveryOrder), string(PickupOrder), string(PointToPoint)}
}

// LocalDelivery is the family of orders with stops, as keys of price hiding
// name it.
const LocalDelivery = "local_delivery"

// Order is one job for a business: packages from a sender to a recipient, each
// end of which may be a warehouse.
type Order struct {
	ID             OrderID     `json:"ID"`
	BusinessID     BusinessID  `json:"BusinessID"`
	CustomerID     AccountID   `json:"CustomerID"`     // whose order it is; 0 when it is the business's own
	Number         string      `json:"Number"`         // SR204518837, unique in the deployment
	Ref            string      `json:"Ref"`            // unique per business and customer
	ExternalNumber string      `json:"ExternalNumber"` // tracking number at a carrier
	ExternalID     string      `json:"ExternalID"`     // id in a shop or partner system
	Type           OrderType   `json:"Type"`
	Status         OrderStatus `json:"Status"`
	StatusAt       time.Time   `json:"StatusAt"` // when it came into that status; see Since
	// Before is the status to go back to from planning and from a third party; 0
	// outside of them.
	Before OrderStatus `json:"Before"`
	// Collected says that the goods have left their sender.
	Collected bool `json:"Collected"`

	SelfDelivery  bool   `json:"SelfDelivery"`
	ScheduledDate string `json:"ScheduledDate"` // YYYY-MM-DD in the business's time zone, "" when not planned
	WindowStart   string `json:"WindowStart"`   // HH:MM at the stop, "" when any time will do
	WindowEnd     string `json:"WindowEnd"`
	Service       int    `json:"Service"`  // minutes at the stop
	Priority      int    `json:"Priority"` // 0 to 9

	Sender      *Address       `json:"Sender"`
	Recipient   *Address       `json:"Recipient"`
	WarehouseID int64          `json:"WarehouseID"`
	Packages    []OrderPackage `json:"Packages"`

	Skills            []string `json:"Skills"`
	Instruction       string   `json:"Instruction"`
	Note              string   `json:"Note"`
	SignatureRequired bool     `json:"SignatureRequired"`
	PhotoRequired     bool     `json:"PhotoRequired"`
	AgeVerification   int      `json:"AgeVerification"`
	COD               *Money   `json:"COD"`
	Declared          *Money   `json:"Declared"`

	// RouteID is the route that the order is on, as its status allows (Rides).
	// Stop is the number of its stop there, of the first when it has two, and
	// SecondStop that of the second, 0 when it has one.
	RouteID    RouteID   `json:"RouteID"`
	Stop       int       `json:"Stop"`
	SecondStop int       `json:"SecondStop"`
	DriverID   AccountID `json:"DriverID"`
	DriverName string    `json:"DriverName"`
	// Drove are the drivers who had the order within the last day and have it no more,
	// oldest first.
	Drove []FormerDriver `json:"Drove"`
	ETA   time.Time      `json:"ETA"`
	// Past are stops on routes that the order has left, oldest first. Paused is
	// where it comes back to when it is intercepted no more, nil otherwise.
	Past   []RouteStop  `json:"Past"`
	Paused *PausedRoute `json:"Paused"`
	// BrokerID is the contractor that holds the order, or that held it when it was
	// completed. It is what lets a contractor see it.
	BrokerID AccountID `json:"BrokerID"`
	// AssignmentID is the active assignment, 0 when there is none.
	AssignmentID AssignmentID `json:"AssignmentID"`
	// ThirdPartyID is the latest assignment to a third party, 0 when there was
	// none. ThirdPartyOpen says that it has not ended.
	ThirdPartyID   ThirdPartyID `json:"ThirdPartyID"`
	ThirdPartyOpen bool         `json:"ThirdPartyOpen"`

	// DeliveryID is the latest locker delivery with packages of the order, 0 when
	// there was none.
	DeliveryID DeliveryID `json:"DeliveryID"`
	// InterceptionID is the latest interception, open or not.
	InterceptionID InterceptionID    `json:"InterceptionID"`
	Files          []ProofFile       `json:"Files"`
	Attempts       int               `json:"Attempts"`
	Prices         *OrderPrices      `json:"Prices"` // nil while the order has no price
	PaymentStatus  string            `json:"PaymentStatus"`
	Source         string            `json:"Source"` // web, api, graphql, mcp, import, …
	Metadata       map[string]string `json:"Metadata"`
	// LinkGeneration counts the times that the secret of its tracking link was
	// changed.
	LinkGeneration int `json:"LinkGeneration,omitempty"`
	// FormerNumbers are tracking numbers that were replaced, the newest first. Who
	// sees the order finds it by them.
	FormerNumbers []string `json:"FormerNumbers,omitempty"`
	// Reroutes counts the orders that took this one's place under its reference.
	Reroutes int `json:"Reroutes"`

	CreatedAt    time.Time `json:"CreatedAt"`
	UpdatedAt    time.Time `json:"UpdatedAt"`
	DeliveredAt  time.Time `json:"DeliveredAt"`
	CancelledAt  time.Time `json:"CancelledAt"`
	CancelReason string    `json:"CancelReason"`
}

// HeldByThirdParty reports whether a third party carries the order, or is about
// to: no other account may plan it.
func (o Order) HeldByThirdParty() bool {
	return o.ThirdPartyOpen || o.Status == OrderHandedOver
}

// Since is when the order came into its status, as far as that is known.
func (o Order) Since() time.Time {
	if o.StatusAt.IsZero() {
		return o.UpdatedAt
	}
	return o.StatusAt
}

// FormerDriver is a driver from whom an order was taken.
type FormerDriver struct {
	ID    AccountID `json:"ID"`
	Until time.Time `json:"Until"`
}

// FormerDriverReads is how long a driver may still read about an order that was
// taken away.
const FormerDriverReads = 24 * time.Hour

// OrderPrices are the amounts of an order.
type OrderPrices struct {
	Shipping Money         `json:"Shipping"`
	Tax      Money         `json:"Tax"`
	Total    Money         `json:"Total"`
	Paid     Money         `json:"Paid"`
	Currency string        `json:"Currency"` // ISO 4217
	Details  []PriceDetail `json:"Details"`
}

// PriceDetail is one line of a price.
type PriceDetail struct {
	Code     string  `json:"code"`
	Name     string  `json:"name"`
	Amount   Money   `json:"amount"`
	Quantity float64 `json:"quantity"`
	Taxable  bool    `json:"taxable"`
}

// Payment states of an order.
const (
	Unpaid        = "unpaid"
	Paid          = "paid"
	PartiallyPaid = "partially_paid"
	Refunded      = "refunded"
	Offline       = "offline"
)

// Address is a place with a person.
type Address struct {
	Name       string   `json:"name" required:"true" graphql:"String" max:"100"`
	Company    string   `json:"company" max:"100"`
	Phone      string   `json:"phone" max:"32" format:"phone"`
	Email      string   `json:"email" max:"254" format:"email"`
	Line1      string   `json:"address_line1" required:"true" graphql:"String" max:"255"`
	Line2      string   `json:"address_line2" max:"255"`
	City       string   `json:"city" required:"true" graphql:"String" max:"100"`
	Province   string   `json:"province" required:"true" graphql:"String" max:"100"`
	PostalCode string   `json:"postal_code" required:"true" graphql:"String" max:"20" pattern:"[0-9A-Za-z-]" example:"M5V 2T6"`
	Country    string   `json:"country" required:"true" graphql:"String" format:"country" doc:"Assigned by ISO 3166-1 alpha-2, such as CA, DE or US; XK for Kosovo"`
	Latitude   *float64 `json:"latitude" min:"-90" max:"90" with:"longitude" doc:"Degrees"`
	Longitude  *float64 `json:"longitude" min:"-180" max:"180" with:"latitude" doc:"Degrees"`
	BuzzCode   string   `json:"buzz_code" max:"32"`
	Kind       string   `json:"address_type" enum:"residential,commercial,unknown" default:"unknown"`
}

// ProofFile is a file that shows what happened at a stop. The file itself is
// kept elsewhere, at Path.
type ProofFile struct {
	ID         int64     `json:"ID"`
	Type       string    `json:"Type"` // photo, signature, document, video
	Path       string    `json:"Path"`
	MIME       string    `json:"MIME"`
	Size       int64     `json:"Size"`    // bytes
	Event      otep.Code `json:"Event"`   // that it goes with, "" for none
	Service    int       `json:"Service"` // 1 delivery, 2 pickup, 0 not known
	Result     int       `json:"Result"`  // 1 success, 2 failed, 0 not known
	CapturedAt time.Time `json:"CapturedAt"`
	Latitude   *float64  `json:"Latitude"`
	Longitude  *float64  `json:"Longitude"`
	By         Operator  `json:"By"`
	AddedAt    time.Time `json:"AddedAt"`
}

// OrderPackage is one parcel of an order.
type OrderPackage struct {
	ID             PackageID          `json:"ID"`
	Ref            string             `json:"Ref"`
	Number         string             `json:"Number"` // the order's with -1, -2, …
	ExternalNumber string             `json:"ExternalNumber"`
	Barcode        string             `json:"Barcode"`
	Description    string             `json:"Description"`
	Quantity       int                `json:"Quantity"`
	Weight         float64            `json:"Weight"`
	Length         float64            `json:"Length"`
	Width          float64            `json:"Width"`
	Height         float64            `json:"Height"`
	WeightUnit     string             `json:"WeightUnit"`    // kg, g, lb, oz
	DimensionUnit  string             `json:"DimensionUnit"` // cm, in, mm
	Declared       *Money             `json:"Declared"`
	Status         OrderPackageStatus `json:"Status"`
	Items          []PackageItem      `json:"Items"`
}

// IDsOfPackages are the ids of packages.
func IDsOfPackages(list []OrderPackage) []PackageID {
	out := make([]PackageID, len(list))
	for i, p := range list {
		out[i] = p.ID
	}
	return out
}

// Grams is the weight of one piece in grams.
func (p OrderPackage) Grams() float64 { return p.Weight * GramsOf(p.WeightUnit) }

// GramsOf is how many grams a unit of weight has: kg, g, lb or oz; 0 for anything
// else.
func GramsOf(unit string) float64 {
	switch unit {
	case "kg":
		return 1000
	case "g":
		return 1
	case "lb":
		return 453.59237
	case "oz":
		return 28.349523125
	}
	return 0
}

// PackageItem is one kind of goods in a package.
type PackageItem struct {
	SKU       string `json:"sku" max:"64"`
	Name      string `json:"name" max:"255"`
	Quantity  int    `json:"quantity" min:"0" max:"1000000"`
	UnitPrice *Money `json:"unit_price" min:"0"`
	HSCode    string `json:"hs_code" max:"16"`
	Origin    string `json:"origin_country" format:"country" doc:"Assigned by ISO 3166-1 alpha-2, such as CA, DE or US; XK for Kosovo"`
}

// OrderPackageStatus is where one package of an order is.
type OrderPackageStatus string

// States of an order's package.
const (
	OrderPackageCreated        OrderPackageStatus = "created"
	OrderPackageReceived       OrderPackageStatus = "received"
	OrderPackageInTransit      OrderPackageStatus = "in_transit"
	OrderPackageOutForDelivery OrderPackageStatus = "out_for_delivery"
	OrderPackageDelivered      OrderPackageStatus = "delivered"
	OrderPackageFailed         OrderPackageStatus = "failed"
	OrderPackageReturned       OrderPackageStatus = "returned"
	OrderPackageCancelled      OrderPackageStatus = "cancelled"
	OrderPackageInLocker       OrderPackageStatus = "in_locker"
	OrderPackageLost           OrderPackageStatus = "lost"
)

// OrderOperation is one thing that was done to an order, by whom. It is never
// changed.
type OrderOperation struct {
	ID         int64                  `json:"ID"` // given by the store, in the order of writing
	OrderID    OrderID                `json:"OrderID"`
	BusinessID BusinessID             `json:"BusinessID"`
	PackageID  PackageID              `json:"PackageID"`
	Type       int                    `json:"Type"` // operation type; its first digit is the channel
	Before     OrderStatus            `json:"Before"`
	After      OrderStatus            `json:"After"`
	Changes    map[string]FieldChange `json:"Changes"`
	Note       string                 `json:"Note"`
	Operator   Operator               `json:"Operator"`
	At         time.Time              `json:"At"`
}

// FieldChange is what became of one member.
type FieldChange struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// Operator is who did something.
type Operator struct {
	Type string    `json:"type"` // user, customer, driver, system, api, device, partner
	ID   AccountID `json:"id"`
	Name string    `json:"name"`
}

// OrderTerms is what an order is found by in a search. It replaces what was
// kept before.
type OrderTerms struct {
	BusinessID BusinessID
	OrderID    OrderID
	Terms      [SearchFields]string // by SearchField, folded; "" is not searched
}

// SearchField is a field that a search looks at.
type SearchField int

// Fields of a search.
const (
	SearchNumber SearchField = iota
	SearchExternal
	SearchRef
	SearchName
	SearchPhone

	SearchFields = 5
)

// OrderQuery asks for a page of orders. Zero fields do not filter.
type OrderQuery struct {
	BusinessID                 BusinessID // required
	CustomerID                 AccountID
	BrokerID                   AccountID
	DriverID                   AccountID
	RouteID                    int64
	WarehouseID                int64
	Statuses                   []OrderStatus
	Type                       OrderType
	ScheduledFrom, ScheduledTo string // YYYY-MM-DD, both included
	CreatedFrom, CreatedTo     time.Time
	Keyword                    string // folded, at least three characters: part of what orders are found by
	// Page is sorted by id, created_at, updated_at, scheduled_date, priority or
	// order_status_id.
	Page
}

// ConcernQuery asks for a page of orders that need attention: first those that
// stopped, by when, then those whose day is over, by day, then those of a day
// without a driver; newest first.
type ConcernQuery struct {
	BusinessID     BusinessID    // required
	CustomerID     AccountID     // 0: of all customers
	BrokerID       AccountID     // 0: of any contractor, or none
	Stopped        []OrderStatus // some of StoppedStatuses
	From, To       time.Time     // when they stopped; To is not included
	DueFrom, DueTo string        // YYYY-MM-DD, both included; "": not asked for
	UnassignedOn   string        // YYYY-MM-DD, "": not asked for
	Page                         // its sort is the list's own
}

// StoppedStatuses are those of orders that go on only by an act of staff, and
// that of a refusal.
var StoppedStatuses = []OrderStatus{OrderHold, OrderPickupFailed, OrderPartlyDelivered, OrderDeliveryFailed, OrderRejected, OrderIntercepted}

// OrderSearch asks for orders by what they are found by: those that contain
// Text, or with Near those that contain every part of one of these. All of it is
// folded and has at least three characters.
type OrderSearch struct {
	BusinessID BusinessID // required
	CustomerID AccountID  // 0: of all customers
	BrokerID   AccountID  // 0: of any contractor, or none
	Fields     []SearchField
	Text       string
	Near       [][]string
	Limit      int // rows, not orders
}

// OrderMatch is an order with the field that a search found it by.
type OrderMatch struct {
	Order Order
	Field SearchField
	Value string // of the field, folded
}

// OrderView reads the present of orders.
type OrderView interface {
	// Order, in a decision on PostgreSQL, waits for others that decide about
	// the same order.
	Order(BusinessID, OrderID) (Order, error)
	OrderByNumber(BusinessID, string) (Order, error)
	// OrderByRef finds an order by its reference among those of one customer,
	// or with customer 0 of the business itself.
	OrderByRef(b BusinessID, customer AccountID, ref string) (Order, error)
	// OrdersByRef lists a business's orders with a reference, whosever they are.
	OrdersByRef(BusinessID, string) ([]Order, error)
}

// OrderChanges are the changes of orders.
type OrderChanges struct {
	Orders          []Order // with packages
	OrderTerms      []OrderTerms
	OrderOperations []OrderOperation // insert
	// DroppedOrders are removed with all that is kept about them, but for
	// operations of the same Changes and audit lines.
	DroppedOrders []OrderKey
}

func (s *OrderChanges) preview(e *effectList) {
	previewEach(e, "Orders", s.Orders, func(o Order) {
		old, err := e.view.Order(o.BusinessID, o.ID)
		e.showMembers(Effect{Type: "order", ID: o.ID, Name: o.Number, Before: old.members(), After: o.members(), version: versionOf(o.terms())}, old, err)
	})
	previewEach(e, "DroppedOrders", s.DroppedOrders, func(k OrderKey) {
		old, err := e.view.Order(k.BusinessID, k.ID)
		if err != nil {
			e.err = err
			return
		}
		e.list = append(e.list, Effect{Type: "order", ID: k.ID, Name: old.Number, Before: dropEmpty(old.members()), version: versionOf(old)})
	})
}

// OrderKey names an order of a business.
type OrderKey struct {
	BusinessID BusinessID
	ID         OrderID
}

// members are what people are shown of an order in a preview.
func (o Order) members() map[string]any {
	packages := make([]map[string]any, len(o.Packages))
	for i, p := range o.Packages {
		packages[i] = map[string]any{"package_ref": OrNull(p.Ref), "description": OrNull(p.Description), "quantity": p.Quantity}
	}
	out := map[string]any{
		"order_ref": OrNull(o.Ref), "type": o.Type, "order_status_id": o.Status, "order_status": o.Status.String(), "customer_id": OrNull(o.CustomerID),
		"scheduled_date": OrNull(o.ScheduledDate), "time_window_start": OrNull(o.WindowStart), "time_window_end": OrNull(o.WindowEnd),
		"sender": o.Sender.line(), "recipient": o.Recipient.line(), "packages": packages, "delivery_instruction": OrNull(o.Instruction), "note": OrNull(o.Note),
		"priority": o.Priority, "driver_id": OrNull(o.DriverID), "route_id": OrNull(o.RouteID), "broker_id": OrNull(o.BrokerID), "cancel_reason": OrNull(o.CancelReason),
	}
	if p := o.Prices; p != nil {
		out["shipping_price"], out["tax"], out["total_price"], out["currency"] = p.Shipping, p.Tax, p.Total, p.Currency
	}
	return out
}

// terms are what the business decides about a new order and a preview does not
// show: every line of its price and what the driver has to bring. A yes to the
// order is bound to them.
func (o Order) terms() any {
	return []any{o.Prices, o.SignatureRequired, o.PhotoRequired, o.Service}
}

// line is an address as one writes it on one line, null when there is none.
func (a *Address) line() any {
	if a == nil {
		return nil
	}
	out := a.Name
	for _, s := range []string{a.Company, a.Line1, a.Line2, a.City, a.Province, a.PostalCode, a.Country} {
		if s != "" {
			out += ", " + s
		}
	}
	return out
}

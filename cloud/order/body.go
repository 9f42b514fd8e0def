package order

import (
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// OrderOutput is the answer that shows an order.
type OrderOutput struct {
	Result bool      `json:"result"`
	Order  OrderBody `json:"order"`
}

// OrderBody is an order as answers show it (interface 4.1). Members marked
// price are left out for callers that may not see prices, and while there is
// no price.
type OrderBody struct {
	OrderID          cloud.OrderID     `json:"order_id"`
	Ref              *string           `json:"order_ref"`
	Number           string            `json:"tracking_number"`
	ExternalNumber   *string           `json:"external_tracking_number"`
	ExternalID       *string           `json:"external_order_id"`
	Type             cloud.OrderType   `json:"type"`
	Family           string            `json:"family"`
	StatusID         cloud.OrderStatus `json:"order_status_id"`
	Status           string            `json:"order_status"`
	OTEPStatus       *otep.Code        `json:"otep_status"`
	SelfDelivery     bool              `json:"self_delivery"`
	BusinessID       cloud.BusinessID  `json:"business_id"`
	CustomerID       *cloud.AccountID  `json:"customer_id"`
	CustomerName     *string           `json:"customer_name"`
	ScheduledDate    *string           `json:"scheduled_date" graphql:"Date"`
	TimeWindow       *TimeWindow       `json:"time_window" graphql:"JSON"`
	ServiceMinutes   int               `json:"service_minutes"`
	Priority         int               `json:"priority"`
	Sender           *AddressBody      `json:"sender"`
	Recipient        *AddressBody      `json:"recipient"`
	WarehouseID      *int64            `json:"warehouse_id"`
	Packages         []PackageBody     `json:"packages" graphql:"!"`
	PackageCount     int               `json:"package_count"`
	TotalWeight      float64           `json:"total_weight"` // in WeightUnit
	WeightUnit       string            `json:"weight_unit"`
	RequiredSkills   []string          `json:"required_skills" graphql:"!"`
	Instruction      *string           `json:"delivery_instruction"`
	Note             *string           `json:"note"` // null for customers
	Signature        bool              `json:"signature_required"`
	Photo            bool              `json:"photo_required"`
	AgeVerification  int               `json:"age_verification"`
	COD              *cloud.Money      `json:"cod_amount"`
	Declared         *cloud.Money      `json:"declared_value"`
	RouteID          *int64            `json:"route_id"`
	StopSequence     *int              `json:"stop_sequence"`
	DriverID         *cloud.AccountID  `json:"driver_id"`
	DriverName       *string           `json:"driver_name"`
	ETA              *string           `json:"eta" graphql:"DateTime"`
	BrokerAssignment *AssignmentBody   `json:"broker_assignment"`
	ThirdParty       *ThirdPartyRef    `json:"third_party" graphql:"JSON"`
	Interception     *InterceptionRef  `json:"interception" graphql:"JSON"`
	Locker           *LockerRef        `json:"locker" graphql:"JSON"`
	Attempts         int               `json:"attempts"`
	ProofFiles       []string          `json:"proof_files" graphql:"!"`
	ProofDetail      []FileBody        `json:"proof_files_detail" graphql:"[JSON!]!"`

	ShippingPrice *cloud.Money        `json:"shipping_price,omitempty" price:"true"`
	Tax           *cloud.Money        `json:"tax,omitempty" price:"true"`
	TotalPrice    *cloud.Money        `json:"total_price,omitempty" price:"true"`
	PaidAmount    *cloud.Money        `json:"paid_amount,omitempty" price:"true"`
	Currency      *string             `json:"currency,omitempty" price:"true"`
	PriceDetails  []cloud.PriceDetail `json:"price_details,omitempty" graphql:"JSON" price:"true"`
	PriceHidden   bool                `json:"price_hidden,omitempty"`

	PaymentStatus string            `json:"payment_status"`
	TrackingURL   string            `json:"tracking_url"`
	RecipientLink *string           `json:"recipient_link,omitempty"` // to give to the recipient; for callers who may change orders
	Source        string            `json:"source"`
	Metadata      map[string]string `json:"metadata"`
	CreatedAt     *string           `json:"created_at" graphql:"DateTime!"`
	UpdatedAt     *string           `json:"updated_at" graphql:"DateTime!"`
	DeliveredAt   *string           `json:"delivered_at" graphql:"DateTime"`
	CancelledAt   *string           `json:"cancelled_at" graphql:"DateTime"`
	CancelReason  *string           `json:"cancel_reason"`
}

// TimeWindow is a window at the stop, in local time.
type TimeWindow struct {
	Start string `json:"start"` // HH:MM
	End   string `json:"end"`
}

// InterceptionRef is an order's latest interception in short.
type InterceptionRef struct {
	ID      cloud.InterceptionID `json:"interception_id"`
	Status  string               `json:"status"`
	Outcome *string              `json:"outcome"`
}

// AddressBody is an address as answers show it.
type AddressBody struct {
	Name       string   `json:"name"`
	Company    *string  `json:"company"`
	Phone      *string  `json:"phone"`
	Email      *string  `json:"email"`
	Line1      string   `json:"address_line1"`
	Line2      *string  `json:"address_line2"`
	City       string   `json:"city"`
	Province   string   `json:"province"`
	PostalCode string   `json:"postal_code"`
	Country    string   `json:"country"`
	Latitude   *float64 `json:"latitude"`
	Longitude  *float64 `json:"longitude"`
	BuzzCode   *string  `json:"buzz_code"`
	Kind       string   `json:"address_type"`
}

// PackageBody is a package as answers show it.
type PackageBody struct {
	PackageID      cloud.PackageID          `json:"package_id"`
	Ref            *string                  `json:"package_ref"`
	Number         string                   `json:"tracking_number"`
	ExternalNumber *string                  `json:"external_tracking_number"`
	Barcode        *string                  `json:"barcode"`
	Description    *string                  `json:"description"`
	Quantity       int                      `json:"quantity"`
	Weight         float64                  `json:"weight"`
	Length         *float64                 `json:"length"`
	Width          *float64                 `json:"width"`
	Height         *float64                 `json:"height"`
	WeightUnit     string                   `json:"weight_unit"`
	DimensionUnit  string                   `json:"dimension_unit"`
	Declared       *cloud.Money             `json:"declared_value"`
	Status         cloud.OrderPackageStatus `json:"status"`
	Items          []cloud.PackageItem      `json:"items"`
	LabelURL       *string                  `json:"label_url"` // null while no label was printed
}

// Names of the types in GraphQL.
func (OrderBody) GraphQLName() string    { return "Order" }
func (CreateInput) GraphQLName() string  { return "Order" }
func (AddressBody) GraphQLName() string  { return "Address" }
func (PackageBody) GraphQLName() string  { return "Package" }
func (PackageInput) GraphQLName() string { return "Package" }

// shower shows orders to a caller. It reads what many of them share once.
type shower struct {
	v     cloud.View
	c     cloud.Caller
	sign  func(string, time.Time) string
	links cloud.LinkKey
	now   time.Time
	zones map[cloud.BusinessID]*time.Location
	names map[cloud.AccountID]string
}

func (s *Service) shower(v cloud.View, c cloud.Caller) *shower {
	return &shower{v: v, c: c, sign: s.sign, links: s.links, now: s.time(), zones: map[cloud.BusinessID]*time.Location{}, names: map[cloud.AccountID]string{}}
}

func (s *shower) zone(id cloud.BusinessID) (*time.Location, error) {
	if z := s.zones[id]; z != nil {
		return z, nil
	}
	b, err := s.v.Business(id)
	if err != nil {
		return nil, err
	}
	s.zones[id] = b.Location()
	return s.zones[id], nil
}

func (s *shower) name(id cloud.AccountID) (string, error) {
	if n, ok := s.names[id]; ok || id == 0 {
		return n, nil
	}
	a, err := s.v.Account(id)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return "", err
	}
	s.names[id] = a.Name
	return a.Name, nil
}

// order shows one order. w is the decision about it, of which nothing is
// stored yet, or nil.
func (s *shower) order(o cloud.Order, d *Decision) (OrderBody, error) {
	zone, err := s.zone(o.BusinessID)
	if err != nil {
		return OrderBody{}, err
	}
	customer, err := s.name(o.CustomerID)
	if err != nil {
		return OrderBody{}, err
	}
	b := OrderBody{OrderID: o.ID, Ref: cloud.OrNull(o.Ref), Number: o.Number, ExternalNumber: cloud.OrNull(o.ExternalNumber), ExternalID: cloud.OrNull(o.ExternalID),
		Type: o.Type, Family: cloud.LocalDelivery, StatusID: o.Status, Status: o.Status.String(), SelfDelivery: o.SelfDelivery, BusinessID: o.BusinessID,
		CustomerID: cloud.OrNull(o.CustomerID), CustomerName: cloud.OrNull(customer), ScheduledDate: cloud.OrNull(o.ScheduledDate), ServiceMinutes: o.Service,
		Priority: o.Priority, Sender: addressBody(o.Sender), Recipient: addressBody(o.Recipient), WarehouseID: cloud.OrNull(o.WarehouseID),
		Packages: []PackageBody{}, PackageCount: len(o.Packages), RequiredSkills: OrEmpty(o.Skills), Instruction: cloud.OrNull(o.Instruction),
		Note: cloud.OrNull(o.Note), Signature: o.SignatureRequired, Photo: o.PhotoRequired, AgeVerification: o.AgeVerification, COD: o.COD, Declared: o.Declared,
		RouteID: cloud.OrNull(o.RouteID), StopSequence: cloud.OrNull(o.Stop), DriverID: cloud.OrNull(o.DriverID), DriverName: cloud.OrNull(o.DriverName),
		ETA: cloud.Stamp(o.ETA, zone), Attempts: o.Attempts, ProofFiles: []string{}, ProofDetail: []FileBody{}, PaymentStatus: o.PaymentStatus,
		TrackingURL: trackingURL(s.c, o.Number), RecipientLink: s.recipientLink(o), Source: o.Source, Metadata: map[string]string{}, CreatedAt: cloud.Stamp(o.CreatedAt, zone),
		UpdatedAt: cloud.Stamp(o.UpdatedAt, zone), DeliveredAt: cloud.Stamp(o.DeliveredAt, zone), CancelledAt: cloud.Stamp(o.CancelledAt, zone),
		CancelReason: cloud.OrNull(o.CancelReason)}
	if s.c.Account.Type == cloud.Customer {
		b.Note = nil
	}
	if o.Metadata != nil {
		b.Metadata = o.Metadata
	}
	if o.WindowStart != "" {
		b.TimeWindow = &TimeWindow{Start: o.WindowStart, End: o.WindowEnd}
	}
	for _, p := range o.Packages {
		b.Packages = append(b.Packages, packageBody(p))
	}
	b.TotalWeight, b.WeightUnit = totalWeight(o.Packages)
	b.prices(o.Prices)
	for _, f := range o.Files {
		body := s.file(f, zone)
		b.ProofDetail = append(b.ProofDetail, body)
		if body.FullURL != nil {
			b.ProofFiles = append(b.ProofFiles, *body.FullURL)
		}
	}
	if err := s.related(o, d, &b); err != nil {
		return OrderBody{}, err
	}
	b.Locker, err = s.locker(o)
	return b, err
}

func (b *OrderBody) prices(p *cloud.OrderPrices) {
	if p != nil {
		b.ShippingPrice, b.Tax, b.TotalPrice, b.PaidAmount = &p.Shipping, &p.Tax, &p.Total, &p.Paid
		b.Currency, b.PriceDetails = &p.Currency, p.Details
	}
}

// statusNow is the code of a shipment's latest event. The one that is kept beside
// the shipment stands where it was when the last event came: an event that was
// ahead of its time then counts since.
func statusNow(v cloud.View, o cloud.Order, s cloud.Shipment, now time.Time) (otep.Code, error) {
	if s.ID == 0 {
		return "", nil
	}
	later, err := v.HasEventsAfter(s.ID, s.LastAt)
	if err != nil || !later {
		return s.Current, err
	}
	rows, err := v.Timeline(s.ID)
	if err != nil {
		return "", err
	}
	if t := otep.FoldAt(s.Profile, s.Subject(), timeline.OfOrder(rows, cloud.IDsOfPackages(o.Packages), now), now); t.Current != nil {
		return *t.Current, nil
	}
	return s.Current, nil
}

// related fills in what is kept beside the order.
func (s *shower) related(o cloud.Order, d *Decision, b *OrderBody) error {
	if d != nil && d.timeline != nil {
		b.OTEPStatus = cloud.OrNull(d.timeline.Current())
	} else {
		sh, err := s.v.OrderShipment(o.BusinessID, o.ID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		code, err := statusNow(s.v, o, sh, s.now)
		if err != nil {
			return err
		}
		b.OTEPStatus = cloud.OrNull(code)
	}
	if d == nil {
		d = &Decision{View: s.v, Order: o}
	}
	if held, err := d.assignment(); err != nil {
		return err
	} else if held != nil {
		body, err := s.held(*held, o)
		if err != nil {
			return err
		}
		b.BrokerAssignment = &body
	}
	if a, err := d.ThirdParty(); err != nil {
		return err
	} else if a != nil {
		if b.ThirdParty, err = thirdPartyRef(s.v, *a); err != nil {
			return err
		}
	}
	stop, err := d.Interception()
	if err == nil && stop != nil {
		b.Interception = &InterceptionRef{ID: stop.ID, Status: stop.Status, Outcome: cloud.OrNull(stop.Outcome)}
	}
	return err
}

func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func addressBody(a *cloud.Address) *AddressBody {
	if a == nil {
		return nil
	}
	return &AddressBody{Name: a.Name, Company: cloud.OrNull(a.Company), Phone: cloud.OrNull(a.Phone), Email: cloud.OrNull(a.Email), Line1: a.Line1,
		Line2: cloud.OrNull(a.Line2), City: a.City, Province: a.Province, PostalCode: a.PostalCode, Country: a.Country, Latitude: a.Latitude,
		Longitude: a.Longitude, BuzzCode: cloud.OrNull(a.BuzzCode), Kind: a.Kind}
}

func packageBody(p cloud.OrderPackage) PackageBody {
	return PackageBody{PackageID: p.ID, Ref: cloud.OrNull(p.Ref), Number: p.Number, ExternalNumber: cloud.OrNull(p.ExternalNumber), Barcode: cloud.OrNull(p.Barcode),
		Description: cloud.OrNull(p.Description), Quantity: p.Quantity, Weight: p.Weight, Length: cloud.OrNull(p.Length), Width: cloud.OrNull(p.Width),
		Height: cloud.OrNull(p.Height), WeightUnit: p.WeightUnit, DimensionUnit: p.DimensionUnit, Declared: p.Declared, Status: p.Status, Items: OrEmpty(p.Items)}
}

// totalWeight is the weight of all packages in the unit of the first, to the
// thousandth.
func totalWeight(list []cloud.OrderPackage) (float64, string) {
	if len(list) == 0 {
		return 0, "kg"
	}
	unit, sum := list[0].WeightUnit, 0.0
	for _, p := range list {
		sum += p.Grams()
	}
	return thousandth(sum / cloud.GramsOf(unit)), unit
}

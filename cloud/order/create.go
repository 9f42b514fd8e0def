package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// CreateInput is a new order (interface 4.8).
type CreateInput struct {
	Type              cloud.OrderType   `json:"type" required:"true"` // D, P, P2P
	Ref               string            `json:"order_ref" max:"64"`
	CustomerID        cloud.AccountID   `json:"customer_id"`
	ScheduledDate     string            `json:"scheduled_date" format:"date" graphql:"Date" doc:"The next day when absent; not a day that has passed"`
	WindowStart       string            `json:"time_window_start" format:"time"`
	WindowEnd         string            `json:"time_window_end" format:"time" doc:"After the start; both or none"`
	Sender            *cloud.Address    `json:"sender"`
	Recipient         *cloud.Address    `json:"recipient"`
	Packages          []PackageInput    `json:"packages" required:"true" min:"1" max:"200"`
	Instruction       string            `json:"delivery_instruction" max:"500"`
	Note              string            `json:"note" max:"1000"`
	ServiceMinutes    *int              `json:"service_minutes" min:"0" max:"1440" default:"5" doc:"Minutes at the stop"`
	Priority          int               `json:"priority" min:"0" max:"9"`
	SignatureRequired *bool             `json:"signature_required"` // nil: as the business has it
	PhotoRequired     *bool             `json:"photo_required"`     // nil: as the business has it
	AgeVerification   int               `json:"age_verification" enum:"0,18,19,21"`
	COD               *cloud.Money      `json:"cod_amount" min:"0"`
	Declared          *cloud.Money      `json:"declared_value" min:"0"`
	Hold              bool              `json:"hold"`
	Skills            []string          `json:"required_skills" max:"20" item_pattern:"^[a-z0-9][a-z0-9_-]{0,31}$" item_example:"tail-lift" doc:"Of the driver"`
	RateID            string            `json:"rate_id" max:"4096" doc:"Of a rate, whose price the order gets"`
	ExternalID        string            `json:"external_order_id" max:"128"`
	Metadata          map[string]string `json:"metadata" max:"20" key_max:"64" item_max:"255"`
}

// PackageInput is one package of a new order.
type PackageInput struct {
	Ref            string              `json:"package_ref" max:"64"`
	ExternalNumber string              `json:"external_tracking_number" max:"64"`
	Barcode        string              `json:"barcode" max:"64"`
	Description    string              `json:"description" max:"255"`
	Quantity       *int                `json:"quantity" min:"1" max:"1000000" default:"1"`
	Weight         float64             `json:"weight" required:"true" above:"0" max:"1000000000" doc:"In weight_unit"`
	Length         *float64            `json:"length" above:"0" max:"1000000000" doc:"In dimension_unit"`
	Width          *float64            `json:"width" above:"0" max:"1000000000"`
	Height         *float64            `json:"height" above:"0" max:"1000000000"`
	WeightUnit     string              `json:"weight_unit" enum:"kg,g,lb,oz" default:"kg"`
	DimensionUnit  string              `json:"dimension_unit" enum:"cm,in,mm" default:"cm"`
	Declared       *cloud.Money        `json:"declared_value" min:"0"`
	Items          []cloud.PackageItem `json:"items" max:"200" graphql:"JSON"`
}

// CreateOutput is the answer to a new order.
type CreateOutput struct {
	Result        bool                `json:"result"`
	OrderID       cloud.OrderID       `json:"order_id"`
	Ref           *string             `json:"order_ref"`
	Number        string              `json:"tracking_number"`
	TrackingURL   string              `json:"tracking_url"`
	StatusID      cloud.OrderStatus   `json:"order_status_id"`
	Status        string              `json:"order_status"`
	Packages      []PackageBody       `json:"packages" graphql:"!"`
	ShippingPrice *cloud.Money        `json:"shipping_price,omitempty" price:"true"`
	Tax           *cloud.Money        `json:"tax,omitempty" price:"true"`
	TotalPrice    *cloud.Money        `json:"total_price,omitempty" price:"true"`
	Currency      *string             `json:"currency,omitempty" price:"true"`
	PriceDetails  []cloud.PriceDetail `json:"price_details,omitempty" graphql:"JSON" price:"true"`
	PriceHidden   bool                `json:"price_hidden,omitempty"`
	PaymentStatus string              `json:"payment_status"`
	Warnings      []Warning           `json:"warnings" graphql:"[JSON!]"`
	Order         OrderBody           `json:"order"`
}

// Warning is something about a new order that is worth knowing.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"` // in the caller's language
}

const codeApproxAt = "ADDRESS_APPROXIMATE"

// check checks the input at now, a time in the business's time zone, and fills
// in what was left out. Rows of a batch come here without another check.
func (in *CreateInput) check(now time.Time) error {
	// The caller keeps what it gave.
	in.Sender, in.Recipient, in.Packages = CloneAddress(in.Sender), CloneAddress(in.Recipient), slices.Clone(in.Packages)
	f := fields{check.Of(in)}
	if in.ScheduledDate == "" {
		in.ScheduledDate = now.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	f.Ahead("scheduled_date", in.ScheduledDate, now)
	f.window(in.WindowStart, in.WindowEnd)
	f.ends(in.Type, "sender", in.Sender != nil, "recipient", in.Recipient != nil)
	return f.Err()
}

// Create makes an order, with its packages, its tracking number and its
// timeline. Staff and customers may. Errors: VALIDATION_FAILED,
// DUPLICATE_ORDER_REF with details.order_id, ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) Create(ctx context.Context, c cloud.Caller, in CreateInput) (CreateOutput, error) {
	if err := RequireOwners(c); err != nil {
		return CreateOutput{}, err
	}
	now := s.time()
	var out CreateOutput
	err := s.twice(ctx, func(v cloud.View) (ch *cloud.Changes, err error) {
		if out, ch, err = s.open(v, c, in, now, actCreate.Operation(c), nil); err == nil {
			ch.Answer = out
		}
		return ch, err
	})
	return out, err
}

// twice runs a decision that takes a reference again when that was taken at the
// same moment: now it is seen.
func (s *Service) twice(ctx context.Context, fn func(cloud.View) (*cloud.Changes, error)) error {
	err := s.store.Decide(ctx, 0, fn)
	if errors.Is(err, cloud.ErrExists) {
		err = s.store.Decide(ctx, 0, fn)
	}
	return err
}

// open is the decision to make an order, by a batch whose end is sent or
// by none.
func (s *Service) open(v cloud.View, c cloud.Caller, in CreateInput, now time.Time, operation int, batch *cloud.AccountEvent) (CreateOutput, *cloud.Changes, error) {
	b, err := v.Business(c.Account.BusinessID)
	if err != nil {
		return CreateOutput{}, nil, err
	}
	if err := in.check(now.In(b.Location())); err != nil {
		return CreateOutput{}, nil, err
	}
	if in.SignatureRequired == nil {
		in.SignatureRequired = &b.Settings.SignatureRequired
	}
	if in.PhotoRequired == nil {
		in.PhotoRequired = &b.Settings.PhotoRequired
	}
	if b.Settings.ExactGeocodes {
		if err := placed(in); err != nil {
			return CreateOutput{}, nil, err
		}
	}
	d := &Decision{service: s, View: v, Caller: c, Now: now, batch: batch}
	if err := openOrder(d, in); err != nil {
		return CreateOutput{}, nil, err
	}
	if err := charge(d, s.box, b, in.RateID); err != nil {
		return CreateOutput{}, nil, err
	}
	d.LogOperation(operation, 0, "", nil)
	if err := d.finish(); err != nil {
		return CreateOutput{}, nil, err
	}
	body, err := s.shower(v, c).order(d.Order, d)
	return created(body, warnings(c, d.Order)), &d.Changes, err
}

// placed refuses addresses that are only known by their words.
func placed(in CreateInput) error {
	f := map[string][]string{}
	for path, a := range map[string]*cloud.Address{"sender": in.Sender, "recipient": in.Recipient} {
		if a != nil && a.Latitude == nil {
			f[path+".latitude"] = []string{fmt.Sprintf(check.MessageRequired, path+".latitude")}
		}
	}
	if len(f) == 0 {
		return nil
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: "ADDRESS_NOT_GEOCODED", Fields: f}
}

// openOrder makes the order and its timeline. Errors: VALIDATION_FAILED,
// DUPLICATE_ORDER_REF.
func openOrder(d *Decision, in CreateInput) error {
	customer, err := customerOf(d, in.CustomerID)
	if err != nil {
		return err
	}
	o := cloud.Order{BusinessID: d.Caller.Account.BusinessID, CustomerID: customer, Ref: in.Ref, ExternalID: in.ExternalID, Type: in.Type, Status: cloud.OrderNew,
		SelfDelivery: true, Skills: in.Skills, ScheduledDate: in.ScheduledDate, WindowStart: in.WindowStart, WindowEnd: in.WindowEnd, Service: *in.ServiceMinutes, Priority: in.Priority,
		Sender: in.Sender, Recipient: in.Recipient, Instruction: in.Instruction, Note: in.Note, SignatureRequired: *in.SignatureRequired, PhotoRequired: *in.PhotoRequired,
		AgeVerification: in.AgeVerification, COD: in.COD, Declared: in.Declared, PaymentStatus: cloud.Unpaid, Source: d.Caller.Surface, Metadata: in.Metadata,
		CreatedAt: d.Now, UpdatedAt: d.Now, StatusAt: d.Now}
	if o.Source == "" {
		o.Source = "api"
	}
	if in.Hold {
		o.Status = cloud.OrderHold
	}
	for _, p := range in.Packages {
		o.Packages = append(o.Packages, newPackage(p))
	}
	return insertOrder(d, o)
}

// insertOrder gives a new order its ids and numbers and begins its timeline. Error:
// DUPLICATE_ORDER_REF.
func insertOrder(d *Decision, o cloud.Order) error {
	if o.Ref != "" {
		old, err := d.View.OrderByRef(o.BusinessID, o.CustomerID, o.Ref)
		if err == nil {
			return &cloud.Error{Kind: cloud.Conflict, Code: codeDuplicateRef, Args: []any{old.ID}, Details: map[string]any{"order_id": old.ID}}
		}
		if !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
	}
	if err := assignNumber(d, &o); err != nil {
		return err
	}
	for i := range o.Packages {
		id, err := d.View.NewID(cloud.PackageIDs)
		if err != nil {
			return err
		}
		o.Packages[i].ID, o.Packages[i].Number = cloud.PackageID(id), packageNumber(o.Number, i)
	}
	id, err := d.View.NewID(cloud.ShipmentIDs)
	if err != nil {
		return err
	}
	d.Order, d.timeline = o, newTimeline(o, cloud.ShipmentID(id), d.Now)
	d.timeline.Append(otep.InformationSubmitted, otep.System, "", d.Now, d.Now)
	d.Index()
	return nil
}

// assignNumber gives an order an id whose tracking number is not in use: partners name
// their parcels as they like.
func assignNumber(d *Decision, o *cloud.Order) error {
	for {
		id, err := d.View.NewID(cloud.OrderIDs)
		if err != nil {
			return err
		}
		o.ID = cloud.OrderID(id)
		o.Number = d.service.number(o.ID)
		if _, err = d.View.ShipmentByNumber(o.Number); errors.Is(err, cloud.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// customerOf is whose a new order is: a customer's own, else the one that staff
// name.
func customerOf(d *Decision, id cloud.AccountID) (cloud.AccountID, error) {
	f := newFields()
	if d.Caller.Account.Type == cloud.Customer {
		if id != 0 && id != d.Caller.Account.ID {
			f.Add("customer_id", "There is no such customer.")
		}
		return d.Caller.Account.ID, f.Err()
	}
	if id == 0 {
		return 0, nil
	}
	a, err := d.View.Account(id)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return 0, err
	}
	if err != nil || a.BusinessID != d.Caller.Account.BusinessID || a.Type != cloud.Customer {
		f.Add("customer_id", "There is no such customer.")
	}
	return id, f.Err()
}

func newPackage(p PackageInput) cloud.OrderPackage {
	value := func(n *float64) float64 {
		if n == nil {
			return 0
		}
		return *n
	}
	return cloud.OrderPackage{Ref: p.Ref, ExternalNumber: p.ExternalNumber, Barcode: p.Barcode, Description: p.Description, Quantity: *p.Quantity, Weight: p.Weight,
		Length: value(p.Length), Width: value(p.Width), Height: value(p.Height), WeightUnit: p.WeightUnit, DimensionUnit: p.DimensionUnit, Declared: p.Declared,
		Status: cloud.OrderPackageCreated, Items: p.Items}
}

func created(b OrderBody, warnings []Warning) CreateOutput {
	return CreateOutput{Result: true, OrderID: b.OrderID, Ref: b.Ref, Number: b.Number, TrackingURL: b.TrackingURL, StatusID: b.StatusID, Status: b.Status,
		Packages: b.Packages, ShippingPrice: b.ShippingPrice, Tax: b.Tax, TotalPrice: b.TotalPrice, Currency: b.Currency, PriceDetails: b.PriceDetails,
		PaymentStatus: b.PaymentStatus, Warnings: warnings, Order: b}
}

// warnings are about addresses that are only known by their words.
func warnings(c cloud.Caller, o cloud.Order) []Warning {
	for _, a := range []*cloud.Address{o.Sender, o.Recipient} {
		if a != nil && a.Latitude == nil {
			return []Warning{{Code: codeApproxAt, Message: locale.Error(c.Language, codeApproxAt)}}
		}
	}
	return []Warning{}
}

// fold is a text as searches compare it: lower case, one space between words.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// digits are those of a text.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// Index keeps what the order is found by.
func (d *Decision) Index() {
	t := cloud.OrderTerms{BusinessID: d.Order.BusinessID, OrderID: d.Order.ID}
	t.Terms[cloud.SearchNumber], t.Terms[cloud.SearchExternal], t.Terms[cloud.SearchRef] = fold(strings.Join(append([]string{d.Order.Number}, d.Order.FormerNumbers...), " ")), fold(d.Order.ExternalNumber), fold(d.Order.Ref)
	for _, p := range d.Order.Packages {
		if p.ExternalNumber != "" {
			t.Terms[cloud.SearchExternal] = strings.TrimSpace(t.Terms[cloud.SearchExternal] + " " + fold(p.ExternalNumber))
		}
	}
	if a := consignee(d.Order); a != nil {
		t.Terms[cloud.SearchName], t.Terms[cloud.SearchPhone] = fold(a.Name), digits(a.Phone)
	}
	d.Changes.OrderTerms = append(d.Changes.OrderTerms, t)
}

// consignee is the person at the order's last stop: the recipient, or of a
// pickup the sender.
func consignee(o cloud.Order) *cloud.Address {
	if o.Recipient != nil {
		return o.Recipient
	}
	return o.Sender
}

package order

import (
	"context"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/order/pricing"
)

// RateInput asks what an order would cost.
type RateInput struct {
	Type          cloud.OrderType `json:"type" required:"true"`
	Origin        *RateAddress    `json:"origin" doc:"Of a pickup and of a run from point to point"`
	Destination   *RateAddress    `json:"destination" doc:"Of a delivery and of a run from point to point"`
	Packages      []PackageInput  `json:"packages" required:"true" min:"1" max:"200"`
	ScheduledDate string          `json:"scheduled_date" format:"date" graphql:"Date"`
	WindowStart   string          `json:"time_window_start" format:"time"`
	WindowEnd     string          `json:"time_window_end" format:"time"`
	CustomerID    cloud.AccountID `json:"customer_id" doc:"Whom it is for; customers ask for themselves"`
	Options       RateOptions     `json:"options"`
}

// RateAddress is as much of a place as a price depends on.
type RateAddress struct {
	PostalCode string `json:"postal_code" required:"true" max:"20"`
	Country    string `json:"country" required:"true" format:"country" doc:"Assigned by ISO 3166-1 alpha-2, such as CA, DE or US; XK for Kosovo"`
}

// RateOptions are what else is asked for.
type RateOptions struct {
	COD *cloud.Money `json:"cod_amount" min:"0"`
}

// RateOutput is what can be had.
type RateOutput struct {
	Result      bool    `json:"result"`
	Serviceable bool    `json:"serviceable"`
	Rates       []Rate  `json:"rates"`
	Reason      *string `json:"unserviceable_reason"` // OUT_OF_SERVICE_AREA, OVERSIZE, NO_PRICE_RULE
}

// Rate is one way to have it done. Its id keeps the price for thirty minutes.
type Rate struct {
	ID           string              `json:"rate_id"`
	ServiceCode  string              `json:"service_code"`
	ServiceName  string              `json:"service_name"`
	Shipping     cloud.Money         `json:"shipping_price" price:"true"`
	Tax          cloud.Money         `json:"tax" price:"true"`
	Total        cloud.Money         `json:"total_price" price:"true"`
	Currency     string              `json:"currency" price:"true"`
	Details      []cloud.PriceDetail `json:"price_details" price:"true"`
	EarliestDate string              `json:"earliest_date"`
	LatestDate   string              `json:"latest_date"`
	ExpiresAt    string              `json:"expires_at"`
}

// Rate says what an order would cost. An order that cannot be carried has no rates and a
// reason. Error: VALIDATION_FAILED.
func (s *Service) Rate(ctx context.Context, c cloud.Caller, in RateInput) (RateOutput, error) {
	if err := RequireOwners(c); err != nil {
		return RateOutput{}, err
	}
	var out RateOutput
	err := s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		o, err := in.order(s.time().In(b.Location()))
		if err != nil {
			return err
		}
		d := &Decision{View: v, Caller: c}
		customer, err := customerOf(d, in.CustomerID)
		if err != nil {
			return err
		}
		out = s.rate(c, b, customer, o)
		return nil
	})
	return out, err
}

func (s *Service) rate(c cloud.Caller, b cloud.Business, customer cloud.AccountID, o cloud.Order) RateOutput {
	j := pricing.JobOf(o)
	p, reason := pricing.Price(b, j)
	if p == nil {
		return RateOutput{Result: true, Rates: []Rate{}, Reason: &reason}
	}
	until := s.time().Add(pricing.RateLife)
	id := pricing.SealRate(s.box, b.ID, customer, j, *p, until)
	return RateOutput{Result: true, Serviceable: true, Rates: []Rate{{ID: id, ServiceCode: "local", ServiceName: locale.Word(c.Language, "app.local_delivery"), Shipping: p.Shipping, Tax: p.Tax,
		Total: p.Total, Currency: p.Currency, Details: p.Details, EarliestDate: o.ScheduledDate, LatestDate: o.ScheduledDate, ExpiresAt: *cloud.Stamp(until, b.Location())}}}
}

// order is the order that a rate is asked for, as far as a price depends on it.
func (in RateInput) order(now time.Time) (cloud.Order, error) {
	f := fields{check.Of(&in)}
	place := func(a *RateAddress) *cloud.Address {
		if a == nil {
			return nil
		}
		return &cloud.Address{PostalCode: a.PostalCode, Country: strings.ToUpper(a.Country)}
	}
	o := cloud.Order{Type: in.Type, ScheduledDate: in.ScheduledDate, COD: in.Options.COD, Sender: place(in.Origin), Recipient: place(in.Destination)}
	if o.ScheduledDate == "" {
		o.ScheduledDate = now.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	f.Ahead("scheduled_date", o.ScheduledDate, now)
	f.window(in.WindowStart, in.WindowEnd)
	f.ends(in.Type, "origin", in.Origin != nil, "destination", in.Destination != nil)
	if err := f.Err(); err != nil {
		return o, err
	}
	for _, p := range in.Packages {
		o.Packages = append(o.Packages, newPackage(p))
	}
	return o, nil
}

// charge gives a new order its price: that of its rate, else that of the list.
// Errors: RATE_EXPIRED, RATE_MISMATCH, OUT_OF_SERVICE_AREA, VALIDATION_FAILED.
func charge(d *Decision, box pricing.Sealer, b cloud.Business, rateID string) error {
	j := pricing.JobOf(d.Order)
	if rateID == "" {
		p, reason := pricing.Price(b, j)
		if reason == pricing.OutOfArea {
			return cloud.E(cloud.Invalid, pricing.OutOfArea)
		}
		if reason == pricing.Oversize {
			return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{"packages": {"This is heavier than the business takes."}}}
		}
		d.Order.Prices = p
		return nil
	}
	p, err := pricing.OpenRate(box, rateID)
	switch {
	case err != nil || p.Business != b.ID:
		return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{"rate_id": {"This is no rate of yours."}}}
	case !p.Fits(d.Order.CustomerID, j):
		return cloud.E(cloud.Conflict, "RATE_MISMATCH")
	case !d.Now.Before(p.Until):
		return cloud.E(cloud.Conflict, "RATE_EXPIRED")
	}
	d.Order.Prices = &p.Prices
	return nil
}

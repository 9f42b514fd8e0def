package order

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
)

// Sealer encrypts what only we shall read again.
type Sealer interface {
	Seal(purpose string, plain []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// job is what a price depends on.
type job struct {
	Type     cloud.OrderType
	From, To string // postal code and country of the ends, "" for a warehouse
	Grams    int64
	Packages int
	COD      bool
}

func jobOf(o cloud.Order) job {
	j := job{Type: o.Type, From: region(o.Sender), To: region(o.Recipient), COD: o.COD != nil && *o.COD > 0}
	for _, p := range o.Packages {
		j.Packages += p.Quantity
		j.Grams += int64(math.Ceil(p.Weight * grams[p.WeightUnit] * float64(p.Quantity)))
	}
	return j
}

func region(a *cloud.Address) string {
	if a == nil {
		return ""
	}
	return strings.ToUpper(strings.ReplaceAll(a.PostalCode, " ", "")) + " " + strings.ToUpper(a.Country)
}

// countries of the ends.
func (j job) countries() (out []string) {
	for _, r := range []string{j.From, j.To} {
		if r != "" {
			out = append(out, r[strings.LastIndexByte(r, ' ')+1:])
		}
	}
	return out
}

// Why there is no price.
const (
	noPriceRule = "NO_PRICE_RULE"
	outOfArea   = "OUT_OF_SERVICE_AREA"
	oversize    = "OVERSIZE"
)

// price is what a job costs by a business's list; the reason says why it is not
// done at all, or has no price.
func price(b cloud.Business, j job) (p *cloud.OrderPrices, reason string) {
	l := b.Settings.Prices
	if l == nil || b.Settings.Currency == "" {
		return nil, noPriceRule
	}
	for _, c := range j.countries() {
		if !l.Serves(c) {
			return nil, outOfArea
		}
	}
	if l.MaxKilograms > 0 && j.Grams > int64(l.MaxKilograms)*1000 {
		return nil, oversize
	}
	p = &cloud.OrderPrices{Currency: b.Settings.Currency}
	add := func(code, name string, each cloud.Money, n int64) {
		if each != 0 && n > 0 {
			p.Details = append(p.Details, cloud.PriceDetail{Code: code, Name: name, Amount: each * cloud.Money(n), Quantity: float64(n), Taxable: true})
			p.Shipping += each * cloud.Money(n)
		}
	}
	over := j.Grams - int64(l.IncludedKilograms)*1000
	add("base", "Base price", l.Base, 1)
	add("weight", "Weight", l.PerKilogram, (over+999)/1000)
	add("package", "Further packages", l.PerPackage, int64(j.Packages-1))
	if j.COD {
		add("cod_fee", "Cash on delivery", l.CODFee, 1)
	}
	if l.TaxPercent > 0 {
		// Half up, of hundredths of hundredths of a percent.
		p.Tax = cloud.Money((int64(p.Shipping)*int64(math.Round(l.TaxPercent*1000)) + 50_000) / 100_000)
		p.Details = append(p.Details, cloud.PriceDetail{Code: l.TaxCode, Name: "Tax", Amount: p.Tax, Quantity: 1})
	}
	p.Total = p.Shipping + p.Tax
	return p, ""
}

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
	Country    string `json:"country" required:"true" format:"country" doc:"ISO 3166-1 alpha-2"`
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

const rateLife = 30 * time.Minute

// promise is what a rate id holds, sealed.
type promise struct {
	Business cloud.BusinessID
	Customer cloud.AccountID
	Job      [32]byte
	Prices   cloud.OrderPrices
	Until    time.Time
}

func (j job) hash() [32]byte {
	b, _ := json.Marshal(j) // plain fields always encode
	return sha256.Sum256(b)
}

const sealRate = "order-rate"

// Rate says what an order would cost. What cannot be done has no rates and a
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
		customer, err := d.customer(in.CustomerID)
		if err != nil {
			return err
		}
		out = s.rate(c, b, customer, o)
		return nil
	})
	return out, err
}

func (s *Service) rate(c cloud.Caller, b cloud.Business, customer cloud.AccountID, o cloud.Order) RateOutput {
	j := jobOf(o)
	p, reason := price(b, j)
	if p == nil {
		return RateOutput{Result: true, Rates: []Rate{}, Reason: &reason}
	}
	until := s.time().Add(rateLife)
	plain, _ := json.Marshal(promise{b.ID, customer, j.hash(), *p, until}) // plain fields always encode
	id := "rate_" + base64.RawURLEncoding.EncodeToString(s.box.Seal(sealRate, plain))
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
func (d *Decision) charge(box Sealer, b cloud.Business, rateID string) error {
	j := jobOf(d.Order)
	if rateID == "" {
		p, reason := price(b, j)
		if reason == outOfArea {
			return cloud.E(cloud.Invalid, outOfArea)
		}
		if reason == oversize {
			return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{"packages": {"This is heavier than the business takes."}}}
		}
		d.Order.Prices = p
		return nil
	}
	p, err := openRate(box, rateID)
	switch {
	case err != nil || p.Business != b.ID:
		return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{"rate_id": {"This is no rate of yours."}}}
	case p.Customer != d.Order.CustomerID || p.Job != j.hash():
		return cloud.E(cloud.Conflict, "RATE_MISMATCH")
	case !d.Now.Before(p.Until):
		return cloud.E(cloud.Conflict, "RATE_EXPIRED")
	}
	d.Order.Prices = &p.Prices
	return nil
}

func openRate(box Sealer, id string) (p promise, err error) {
	text, ok := strings.CutPrefix(id, "rate_")
	if !ok {
		return p, errors.New("not a rate")
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return p, err
	}
	plain, err := box.Open(sealRate, sealed)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(plain, &p)
}

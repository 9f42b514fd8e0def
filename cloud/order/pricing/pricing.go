// Package pricing says what an order costs by its business's price list, and keeps a
// price in the id of a rate: sealed, so that only we make one, for a customer, a job
// and a time. Nothing is stored. Safe for concurrent use.
package pricing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Sealer encrypts what only we shall read again.
type Sealer interface {
	Seal(purpose string, plain []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Job is what a price depends on.
type Job struct {
	Type     cloud.OrderType
	From, To string // postal code and country of the ends, "" for a warehouse
	Grams    int64
	Packages int
	COD      bool
}

func JobOf(o cloud.Order) Job {
	j := Job{Type: o.Type, From: region(o.Sender), To: region(o.Recipient), COD: o.COD != nil && *o.COD > 0}
	for _, p := range o.Packages {
		j.Packages += p.Quantity
		j.Grams += int64(math.Ceil(p.Grams() * float64(p.Quantity)))
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
func (j Job) countries() (out []string) {
	for _, r := range []string{j.From, j.To} {
		if r != "" {
			out = append(out, r[strings.LastIndexByte(r, ' ')+1:])
		}
	}
	return out
}

// Why there is no price.
const (
	NoPriceRule = "NO_PRICE_RULE"
	OutOfArea   = "OUT_OF_SERVICE_AREA"
	Oversize    = "OVERSIZE"
)

// Price is what a job costs by a business's list; the reason says why it is not
// done at all, or has no price.
func Price(b cloud.Business, j Job) (p *cloud.OrderPrices, reason string) {
	l := b.Settings.Prices
	if l == nil || b.Settings.Currency == "" {
		return nil, NoPriceRule
	}
	for _, c := range j.countries() {
		if !l.Serves(c) {
			return nil, OutOfArea
		}
	}
	if l.MaxKilograms > 0 && j.Grams > int64(l.MaxKilograms)*1000 {
		return nil, Oversize
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

const RateLife = 30 * time.Minute

// Quote is what a rate id holds, sealed.
type Quote struct {
	Business cloud.BusinessID
	Customer cloud.AccountID
	Job      [32]byte
	Prices   cloud.OrderPrices
	Until    time.Time
}

// Fits reports whether the rate is for a job of a customer.
func (p Quote) Fits(customer cloud.AccountID, j Job) bool {
	return p.Customer == customer && p.Job == j.hash()
}

// SealRate makes the id of a rate, which keeps a price for a job until a time.
func SealRate(box Sealer, b cloud.BusinessID, customer cloud.AccountID, j Job, p cloud.OrderPrices, until time.Time) string {
	plain, _ := json.Marshal(Quote{b, customer, j.hash(), p, until}) // plain fields always encode
	return "rate_" + base64.RawURLEncoding.EncodeToString(box.Seal(sealRate, plain))
}

func (j Job) hash() [32]byte {
	b, _ := json.Marshal(j) // plain fields always encode
	return sha256.Sum256(b)
}

const sealRate = "order-rate"

func OpenRate(box Sealer, id string) (p Quote, err error) {
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

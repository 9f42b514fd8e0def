package order

import (
	"fmt"
	"math"
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

// required is text that must not be empty.
func (f fields) required(path, s string, max int) {
	if strings.TrimSpace(s) == "" {
		f.Add(path, "This is required.")
	}
	f.Text(path, s, max)
}

// money checks an amount that may be missing.
func (f fields) money(path string, m *cloud.Money) {
	if m != nil && *m < 0 {
		f.Add(path, "The value is out of range.")
	}
}

// date checks a date that has not passed at now.
func (f fields) date(path, s string, now time.Time) {
	t, err := time.ParseInLocation(time.DateOnly, s, now.Location())
	if err != nil {
		f.Add(path, "Use a date such as 2026-11-20.")
	} else if t.AddDate(0, 0, 1).Before(now) {
		f.Add(path, "The date has passed.")
	}
}

var clock = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// window checks a window of which both ends are given or none.
func (f fields) window(start, end string) {
	if start == "" && end == "" {
		return
	}
	readable := true
	for path, s := range map[string]string{"time_window_start": start, "time_window_end": end} {
		if s != "" && !clock.MatchString(s) {
			f.Add(path, "Use a time such as 13:30.")
			readable = false
		}
	}
	if readable && (start == "" || end <= start) {
		f.Add("time_window_end", "Give both ends of the window, the end after the start.")
	}
}

var country = regexp.MustCompile(`^[A-Z]{2}$`)

// own is a copy of an address, which may be changed.
func own(a *cloud.Address) *cloud.Address {
	if a == nil {
		return nil
	}
	b := *a
	return &b
}

// address checks an address and fills in what was left out.
func (f fields) address(path string, a *cloud.Address) {
	path += "."
	f.required(path+"name", a.Name, 100)
	f.Text(path+"company", a.Company, 100)
	f.Text(path+"phone", a.Phone, 32)
	if a.Email != "" {
		if m, err := mail.ParseAddress(a.Email); err != nil || m.Address != a.Email || len(a.Email) > 254 {
			f.Add(path+"email", "Use an email address.")
		}
	}
	f.required(path+"address_line1", a.Line1, 255)
	f.Text(path+"address_line2", a.Line2, 255)
	f.required(path+"city", a.City, 100)
	f.required(path+"province", a.Province, 100)
	f.required(path+"postal_code", a.PostalCode, 20)
	if a.Country = strings.ToUpper(a.Country); !country.MatchString(a.Country) {
		f.Add(path+"country", "Use a two-letter country code, such as CA.")
	}
	f.Text(path+"buzz_code", a.BuzzCode, 32)
	if a.Kind == "" {
		a.Kind = "unknown"
	}
	f.OneOf(path+"address_type", a.Kind, "residential", "commercial", "unknown")
	f.Place(path, a.Latitude, a.Longitude)
}

// pack checks a package and fills in what was left out.
func (f fields) pack(path string, p *PackageInput) {
	f.Text(path+"package_ref", p.Ref, 64)
	f.Text(path+"external_tracking_number", p.ExternalNumber, 64)
	f.Text(path+"barcode", p.Barcode, 64)
	f.Text(path+"description", p.Description, 255)
	if p.Quantity == nil {
		p.Quantity = new(int)
		*p.Quantity = 1
	}
	f.Between(path+"quantity", *p.Quantity, 1, 1_000_000)
	for name, n := range map[string]*float64{"weight": &p.Weight, "length": p.Length, "width": p.Width, "height": p.Height} {
		if n != nil && (*n <= 0 || *n > 1e9) {
			f.Add(path+name, "The value must be greater than 0.")
		}
	}
	if p.WeightUnit == "" {
		p.WeightUnit = "kg"
	}
	if p.DimensionUnit == "" {
		p.DimensionUnit = "cm"
	}
	f.OneOf(path+"weight_unit", p.WeightUnit, "kg", "g", "lb", "oz")
	f.OneOf(path+"dimension_unit", p.DimensionUnit, "cm", "in", "mm")
	f.money(path+"declared_value", p.Declared)
	for i, item := range p.Items {
		at := fmt.Sprintf("%sitems.%d.", path, i)
		f.Text(at+"sku", item.SKU, 64)
		f.Text(at+"name", item.Name, 255)
		f.Text(at+"hs_code", item.HSCode, 16)
		f.Text(at+"origin_country", item.Origin, 2)
		f.Between(at+"quantity", item.Quantity, 0, 1_000_000)
		f.money(at+"unit_price", item.UnitPrice)
	}
	if len(p.Items) > 200 {
		f.Add(path+"items", "The value is out of range.")
	}
}

func (f fields) metadata(m map[string]string) {
	bad := len(m) > 20
	for k, v := range m {
		bad = bad || k == "" || len(k) > 64 || utf8.RuneCountInString(v) > 255
	}
	if bad {
		f.Add("metadata", "Metadata has at most 20 keys with values of up to 255 characters.")
	}
}

// moment reads a date-time of a query in the business's time zone, the zero
// time when it is empty.
func (f fields) moment(path, s string, zone *time.Location) time.Time {
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t.UTC()
		}
	}
	f.Add(path, "Use a date-time with offset, such as 2026-06-10T11:30:00-04:00.")
	return time.Time{}
}

// thousandth rounds to three decimals.
func thousandth(x float64) float64 { return math.Round(x*1000) / 1000 }

package order

import (
	"fmt"
	"math"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
)

// fields collects messages about input fields.
type fields map[string][]string

func (f fields) add(path, message string) { f[path] = append(f[path], message) }

func (f fields) err() error {
	if len(f) == 0 {
		return nil
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: f}
}

// text checks a text of at most max characters.
func (f fields) text(path, s string, max int) {
	if utf8.RuneCountInString(s) > max {
		f.add(path, "This is too long.")
	}
	bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }
	if !utf8.ValidString(s) || strings.IndexFunc(s, bad) >= 0 {
		f.add(path, "This holds characters that cannot be kept.")
	}
}

// required is text that must not be empty.
func (f fields) required(path, s string, max int) {
	if strings.TrimSpace(s) == "" {
		f.add(path, "This is required.")
	}
	f.text(path, s, max)
}

func (f fields) oneOf(path, s string, allowed ...string) {
	if !slices.Contains(allowed, s) {
		f.add(path, "This is none of the values allowed here.")
	}
}

func (f fields) between(path string, n, low, high int) {
	if n < low || n > high {
		f.add(path, "The value is out of range.")
	}
}

// money checks an amount that may be missing.
func (f fields) money(path string, m *cloud.Money) {
	if m != nil && *m < 0 {
		f.add(path, "The value is out of range.")
	}
}

// date checks a date that has not passed at now.
func (f fields) date(path, s string, now time.Time) {
	t, err := time.ParseInLocation(time.DateOnly, s, now.Location())
	if err != nil {
		f.add(path, "Use a date such as 2026-11-20.")
	} else if t.AddDate(0, 0, 1).Before(now) {
		f.add(path, "The date has passed.")
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
			f.add(path, "Use a time such as 13:30.")
			readable = false
		}
	}
	if readable && (start == "" || end <= start) {
		f.add("time_window_end", "Give both ends of the window, the end after the start.")
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
	f.text(path+"company", a.Company, 100)
	f.text(path+"phone", a.Phone, 32)
	if a.Email != "" {
		if m, err := mail.ParseAddress(a.Email); err != nil || m.Address != a.Email || len(a.Email) > 254 {
			f.add(path+"email", "Use an email address.")
		}
	}
	f.required(path+"address_line1", a.Line1, 255)
	f.text(path+"address_line2", a.Line2, 255)
	f.required(path+"city", a.City, 100)
	f.required(path+"province", a.Province, 100)
	f.required(path+"postal_code", a.PostalCode, 20)
	if a.Country = strings.ToUpper(a.Country); !country.MatchString(a.Country) {
		f.add(path+"country", "Use a two-letter country code, such as CA.")
	}
	f.text(path+"buzz_code", a.BuzzCode, 32)
	if a.Kind == "" {
		a.Kind = "unknown"
	}
	f.oneOf(path+"address_type", a.Kind, "residential", "commercial", "unknown")
	f.place(path, a.Latitude, a.Longitude)
}

// place checks coordinates, of which both are given or none.
func (f fields) place(path string, latitude, longitude *float64) {
	if (latitude == nil) != (longitude == nil) || latitude != nil && (math.Abs(*latitude) > 90 || math.Abs(*longitude) > 180) {
		f.add(path+"latitude", "Give both coordinates, latitude from -90 to 90 and longitude from -180 to 180.")
	}
}

// pack checks a package and fills in what was left out.
func (f fields) pack(path string, p *PackageInput) {
	f.text(path+"package_ref", p.Ref, 64)
	f.text(path+"external_tracking_number", p.ExternalNumber, 64)
	f.text(path+"barcode", p.Barcode, 64)
	f.text(path+"description", p.Description, 255)
	if p.Quantity == nil {
		p.Quantity = new(int)
		*p.Quantity = 1
	}
	f.between(path+"quantity", *p.Quantity, 1, 1_000_000)
	for name, n := range map[string]*float64{"weight": &p.Weight, "length": p.Length, "width": p.Width, "height": p.Height} {
		if n != nil && (*n <= 0 || *n > 1e9) {
			f.add(path+name, "The value must be greater than 0.")
		}
	}
	if p.WeightUnit == "" {
		p.WeightUnit = "kg"
	}
	if p.DimensionUnit == "" {
		p.DimensionUnit = "cm"
	}
	f.oneOf(path+"weight_unit", p.WeightUnit, "kg", "g", "lb", "oz")
	f.oneOf(path+"dimension_unit", p.DimensionUnit, "cm", "in", "mm")
	f.money(path+"declared_value", p.Declared)
	for i, item := range p.Items {
		at := fmt.Sprintf("%sitems.%d.", path, i)
		f.text(at+"sku", item.SKU, 64)
		f.text(at+"name", item.Name, 255)
		f.text(at+"hs_code", item.HSCode, 16)
		f.text(at+"origin_country", item.Origin, 2)
		f.between(at+"quantity", item.Quantity, 0, 1_000_000)
		f.money(at+"unit_price", item.UnitPrice)
	}
	if len(p.Items) > 200 {
		f.add(path+"items", "The value is out of range.")
	}
}

func (f fields) metadata(m map[string]string) {
	bad := len(m) > 20
	for k, v := range m {
		bad = bad || k == "" || len(k) > 64 || utf8.RuneCountInString(v) > 255
	}
	if bad {
		f.add("metadata", "Metadata has at most 20 keys with values of up to 255 characters.")
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
	f.add(path, "Use a date-time with offset, such as 2026-06-10T11:30:00-04:00.")
	return time.Time{}
}

// thousandth rounds to three decimals.
func thousandth(x float64) float64 { return math.Round(x*1000) / 1000 }

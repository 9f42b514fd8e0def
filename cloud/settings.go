package cloud

import (
	"cmp"
	"slices"
	"time"
)

// Settings are what a business chose for itself. The zero Settings are those of
// a new business.
type Settings struct {
	DefaultLocale string `json:"default_locale,omitempty"` // empty: en
	Country       string `json:"country,omitempty"`        // ISO 3166-1 alpha-2
	Currency      string `json:"currency,omitempty"`       // ISO 4217
	Rules
	// CorrectionMinutes is how long after a deposit its compartments may be
	// opened again, 0 to 60; nil is the usual time.
	CorrectionMinutes *int      `json:"correction_window_minutes,omitempty"`
	Features          []Feature `json:"features,omitempty"` // that were ever switched
	Apps              []App     `json:"apps,omitempty"`     // that were ever set up
	// Prices are those of local deliveries; nil: orders have none.
	Prices *PriceList   `json:"prices,omitempty"`
	Chat   ChatSettings `json:"chat,omitzero"`
}

// Has reports whether a feature is on for the business, as far as it and the
// platform say.
func (s Settings) Has(family string) bool {
	return slices.ContainsFunc(s.Features, func(f Feature) bool { return f.Family == family && f.Enabled && !f.Revoked })
}

// PriceList is what local deliveries cost, in the business's currency.
type PriceList struct {
	Base              Money    `json:"base" min:"0" max:"100000"`
	IncludedKilograms int      `json:"included_kilograms" min:"0" max:"100000" doc:"In the base price"`
	PerKilogram       Money    `json:"per_kilogram" min:"0" max:"100000" doc:"For each begun one beyond"`
	PerPackage        Money    `json:"per_package" min:"0" max:"100000" doc:"For each beyond the first"`
	CODFee            Money    `json:"cod_fee" min:"0" max:"100000"`
	TaxCode           string   `json:"tax_code" enum:"tax_gst,tax_pst,tax_hst" doc:"Empty without tax"`
	TaxPercent        float64  `json:"tax_percent" min:"0" max:"100" doc:"To the thousandth"`
	Countries         []string `json:"countries" item_pattern:"^[A-Z]{2}$" item_example:"CA" doc:"ISO 3166-1 alpha-2; empty: everywhere"`
	MaxKilograms      int      `json:"max_kilograms" min:"0" max:"100000" doc:"Of an order; 0: any"`
}

// Serves reports whether deliveries are made in a country.
func (l *PriceList) Serves(country string) bool {
	return len(l.Countries) == 0 || slices.Contains(l.Countries, country)
}

// Feature is a family of operations that a business may have.
type Feature struct {
	Family  string `json:"family"`
	Enabled bool   `json:"enabled"`
	Revoked bool   `json:"revoked,omitempty"` // by the platform
}

// Rules are switches of a business. All are off in a new one.
type Rules struct {
	InterceptionReview bool `json:"interception_review"`
	SelfApproval       bool `json:"allow_self_approval"`
	ExactGeocodes      bool `json:"exact_geocodes"`
	SignatureRequired  bool `json:"signature_required"`
	PhotoRequired      bool `json:"photo_required"`
	DriverMarksReady   bool `json:"driver_may_mark_ready"`
	DriverAccepts      bool `json:"driver_acceptance_required"`
	LockerReturns      bool `json:"locker_returns" doc:"Recipients may return at a locker, for 14 days, what they have collected there"`
	SecondFactor       bool `json:"second_factor_required" doc:"People of the business can do nothing but set up a second factor until they have one"`
}

// Locale is the language that the business writes in.
func (s Settings) Locale() string { return cmp.Or(s.DefaultLocale, "en") }

// Correction is the time for corrections; usual where the business chose none.
func (s Settings) Correction(usual time.Duration) time.Duration {
	if s.CorrectionMinutes == nil {
		return usual
	}
	return time.Duration(*s.CorrectionMinutes) * time.Minute
}

// terms are what orders that are made later from these settings depend on.
func (s Settings) terms() any {
	return []any{s.Currency, s.Prices, s.SignatureRequired, s.PhotoRequired}
}

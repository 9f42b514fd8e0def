package account

import (
	"context"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Settings are a business's own.
type Settings struct {
	Timezone      string  `json:"timezone"`
	DefaultLocale string  `json:"default_locale"`
	Country       *string `json:"country"`  // ISO 3166-1 alpha-2, null when none was chosen
	Currency      *string `json:"currency"` // ISO 4217, null when none was chosen
	cloud.Rules
	CorrectionWindow int `json:"correction_window_minutes"`
}

func showSettings(b cloud.Business) Settings {
	return Settings{Timezone: b.Timezone, DefaultLocale: b.Settings.Locale(), Country: cloud.OrNull(b.Settings.Country), Currency: cloud.OrNull(b.Settings.Currency), Rules: b.Settings.Rules,
		CorrectionWindow: int(b.Settings.Correction(15*time.Minute) / time.Minute)}
}

// SettingsOutput shows the settings.
type SettingsOutput struct {
	Result   bool     `json:"result"`
	Settings Settings `json:"settings"`
}

// FindSettings shows the settings of the caller's business.
func (s *Service) FindSettings(ctx context.Context, c cloud.Caller, _ check.None) (out SettingsOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		out = SettingsOutput{Result: err == nil, Settings: showSettings(b)}
		return err
	})
	return out, err
}

// SettingsInput changes settings. Members that are absent stay as they are.
type SettingsInput struct {
	Timezone           *string `json:"timezone" max:"64" format:"time-zone" doc:"IANA name"`
	DefaultLocale      *string `json:"default_locale" enum:"en,zh-Hans,zh-Hant,fr,de,es"`
	Country            *string `json:"country" format:"country" doc:"Assigned by ISO 3166-1 alpha-2, such as CA, DE or US; XK for Kosovo"`
	Currency           *string `json:"currency" pattern:"^[A-Z]{3}$" example:"CAD" doc:"ISO 4217"`
	InterceptionReview *bool   `json:"interception_review"`
	SelfApproval       *bool   `json:"allow_self_approval"`
	CorrectionWindow   *int    `json:"correction_window_minutes" min:"0" max:"60"`
	ExactGeocodes      *bool   `json:"exact_geocodes"`
	SignatureRequired  *bool   `json:"signature_required"`
	PhotoRequired      *bool   `json:"photo_required"`
	DriverMarksReady   *bool   `json:"driver_may_mark_ready"`
	DriverAccepts      *bool   `json:"driver_acceptance_required"`
	LockerReturns      *bool   `json:"locker_returns" doc:"Recipients may return at a locker, for 14 days, what they have collected there"`
	SecondFactor       *bool   `json:"second_factor_required" doc:"true lets people without a second factor do nothing but set one up, those who are logged in too"`
}

// check refuses to take a setting away that every business has.
func (in SettingsInput) check() error {
	f := newFields()
	f.filled("timezone", in.Timezone, false)
	f.filled("default_locale", in.DefaultLocale, false)
	f.filled("country", in.Country, false)
	f.filled("currency", in.Currency, false)
	return f.Err()
}

// SaveSettings changes the settings of the caller's business. Error:
// VALIDATION_FAILED.
func (s *Service) SaveSettings(ctx context.Context, c cloud.Caller, in SettingsInput) (out SettingsOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		r := &b.Settings.Rules
		demanded := r.SecondFactor
		set(&b.Timezone, in.Timezone)
		set(&b.Settings.DefaultLocale, in.DefaultLocale)
		if in.Country != nil {
			b.Settings.Country = strings.ToUpper(*in.Country)
		}
		set(&b.Settings.Currency, in.Currency)
		set(&r.InterceptionReview, in.InterceptionReview)
		set(&r.SelfApproval, in.SelfApproval)
		set(&r.ExactGeocodes, in.ExactGeocodes)
		set(&r.SignatureRequired, in.SignatureRequired)
		set(&r.PhotoRequired, in.PhotoRequired)
		set(&r.DriverMarksReady, in.DriverMarksReady)
		set(&r.DriverAccepts, in.DriverAccepts)
		set(&r.LockerReturns, in.LockerReturns)
		set(&r.SecondFactor, in.SecondFactor)
		if in.CorrectionWindow != nil {
			b.Settings.CorrectionMinutes = in.CorrectionWindow
		}
		out = SettingsOutput{Result: true, Settings: showSettings(b)}
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "settings_saved", "business", int64(b.ID))}}
		if r.SecondFactor && !demanded {
			ch.LimitLogins = []cloud.BusinessID{b.ID}
		}
		return ch, nil
	})
	if err != nil {
		return SettingsOutput{}, err
	}
	return out, nil
}

// PricesOutput shows what local deliveries cost; null when orders have no price.
type PricesOutput struct {
	Result bool             `json:"result"`
	Prices *cloud.PriceList `json:"prices"`
}

func showPrices(l *cloud.PriceList) *cloud.PriceList {
	if l == nil {
		return nil
	}
	out := *l
	out.Countries = orEmpty(l.Countries)
	return &out
}

// FindPrices shows the price list of the caller's business.
func (s *Service) FindPrices(ctx context.Context, c cloud.Caller, _ check.None) (out PricesOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		out = PricesOutput{Result: err == nil, Prices: showPrices(b.Settings.Prices)}
		return err
	})
	return out, err
}

// PricesInput replaces the price list; null takes it away.
type PricesInput struct {
	Prices *cloud.PriceList `json:"prices"`
}

func checkPrices(l *cloud.PriceList) error {
	if l == nil {
		return nil
	}
	f := newFields()
	if l.TaxCode == "" && l.TaxPercent > 0 {
		f.Say("prices.tax_code", check.MessageRequired)
	}
	return f.Err()
}

// SavePrices replaces the price list of the caller's business. Orders that there
// are keep their price. Errors: VALIDATION_FAILED, also while the business has no
// currency.
func (s *Service) SavePrices(ctx context.Context, c cloud.Caller, in PricesInput) (out PricesOutput, err error) {
	if err := checkPrices(in.Prices); err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		if in.Prices != nil && b.Settings.Currency == "" {
			f := newFields()
			f.Add("prices", "Choose the currency in the settings first.")
			return nil, f.Err()
		}
		b.Settings.Prices = in.Prices
		out = PricesOutput{Result: true, Prices: showPrices(in.Prices)}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "prices_saved", "business", int64(b.ID))}}, nil
	})
	return out, err
}

package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"golang.org/x/mod/semver"

	"github.com/postern-io/postern/cloud"
)

// BootstrapInput names an app and the business that it shows.
type BootstrapInput struct {
	AppCode    string `path:"appCode" doc:"customer-app or driver-app"`
	ClientCode string `path:"clientCode" doc:"Business code. It selects what is shown and allows nothing"`
	Platform   string `query:"platform" enum:"ios,android"`
	Version    string `query:"app_version" max:"64" format:"version" doc:"MAJOR.MINOR.PATCH of the app that asks"`
}

// BootstrapOutput is all that an app needs before a person signs in.
type BootstrapOutput struct {
	Result bool `json:"result"`
	Data   Data `json:"data"`
}

// The blocks of the answer (interface 3). Members that were never set are null.
type (
	// Data is public.
	Data struct {
		App           Ref               `json:"app"`
		Client        Client            `json:"client"`
		Branding      Branding          `json:"branding"`
		Capabilities  Capabilities      `json:"capabilities"`
		Contracts     []ServiceContract `json:"service_contracts"`
		VersionPolicy VersionPolicy     `json:"version_policy"`
		Settings      Settings          `json:"settings"`
		Legal         Legal             `json:"legal"`
		GeneratedAt   string            `json:"generated_at"`
		ETag          string            `json:"etag"` // of everything but generated_at
	}
	// Ref names the app.
	Ref struct {
		Code string `json:"code"`
		Name string `json:"name"`
		Type string `json:"type"` // customer, driver
	}
	// Client is the business.
	Client struct {
		Code          string   `json:"code"`
		Name          string   `json:"name"`
		Country       *string  `json:"country"` // ISO 3166-1 alpha-2
		Timezone      string   `json:"timezone"`
		Currency      *string  `json:"currency"` // ISO 4217
		DefaultLocale string   `json:"default_locale"`
		Locales       []string `json:"locales"`
		Support       Support  `json:"support"`
	}
	// Support is whom people ask for help.
	Support struct {
		Email *string `json:"email"`
		Phone *string `json:"phone"`
		URL   *string `json:"url"`
	}
	// Branding is how it looks.
	Branding struct {
		LogoURL    *string           `json:"logo_url"`
		IconURL    *string           `json:"icon_url"`
		Colors     map[string]string `json:"colors"`
		Radius     int               `json:"radius"` // pixels
		FontFamily *string           `json:"font_family"`
		DarkMode   string            `json:"dark_mode"` // auto, light, dark
	}
	// ServiceContract is a family of orders that can be made.
	ServiceContract struct {
		Code        string  `json:"code"`
		Family      string  `json:"family"`
		Name        string  `json:"name"` // in the caller's language
		Enabled     bool    `json:"enabled"`
		Version     string  `json:"version"`
		FormURL     *string `json:"form_url"`
		TermsURL    *string `json:"terms_url"`
		PriceHidden bool    `json:"price_hidden"`
	}
	// VersionPolicy says whether the app that asks is new enough.
	VersionPolicy struct {
		Platform    *string `json:"platform"`
		Latest      *string `json:"latest"`
		Minimum     *string `json:"minimum"`
		Recommended *string `json:"recommended"`
		Status      string  `json:"status"` // ok, update_recommended, update_required, unknown
		StoreURL    *string `json:"store_url"`
		Message     *string `json:"message"` // in the caller's language, when there is an update
	}
	// Settings are of the app itself.
	Settings struct {
		Home Home `json:"home"`
		Map  Map  `json:"map"`
		Auth Auth `json:"auth"`
	}
	// Home is the first screen.
	Home struct {
		QuickActions []string `json:"quick_actions"`
	}
	// Map says whose maps are shown.
	Map struct {
		Provider string `json:"provider"`
	}
	// Auth says how people can sign in.
	Auth struct {
		Methods []string `json:"methods"`
	}
	// Legal are addresses of texts.
	Legal struct {
		PrivacyURL *string `json:"privacy_url"`
		TermsURL   *string `json:"terms_url"`
	}
)

// colors are those of an app without colors of its own.
var colors = map[string]string{"primary": "#0B5FFF", "on_primary": "#FFFFFF", "accent": "#FFB400", "background": "#FFFFFF", "surface": "#F6F7F9", "text": "#111827"}

const usualRadius = 12

// Bootstrap tells an app what to show. Errors: APP_NOT_FOUND, CLIENT_NOT_FOUND,
// APP_NOT_ENABLED_FOR_CLIENT, VALIDATION_FAILED.
func (s *Service) Bootstrap(ctx context.Context, c cloud.Caller, in BootstrapInput) (BootstrapOutput, error) {
	k, err := kindOf(in.AppCode)
	if err != nil {
		return BootstrapOutput{}, err
	}
	b, err := s.cfg.Store.FindBusinessByCode(ctx, in.ClientCode)
	if errors.Is(err, cloud.ErrNotFound) {
		return BootstrapOutput{}, cloud.E(cloud.NotFound, "CLIENT_NOT_FOUND")
	}
	if err != nil {
		return BootstrapOutput{}, err
	}
	a := find(b, k.code)
	if !a.Enabled {
		return BootstrapOutput{}, cloud.E(cloud.Forbidden, "APP_NOT_ENABLED_FOR_CLIENT")
	}
	d := s.data(k, a, b, c.Language)
	d.VersionPolicy = s.policy(a, in, c.Language)
	if d.Capabilities, err = s.capabilities(ctx, b, a); err != nil {
		return BootstrapOutput{}, err
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return BootstrapOutput{}, err
	}
	sum := sha256.Sum256(raw)
	d.ETag, d.GeneratedAt = hex.EncodeToString(sum[:8]), stamp(b)
	return BootstrapOutput{Result: true, Data: d}, nil
}

func (s *Service) data(k kind, a cloud.App, b cloud.Business, language string) Data {
	d := Data{App: Ref{k.code, k.name, k.kind},
		Client: Client{Code: b.Code, Name: b.Name, Country: cloud.OrNull(b.Settings.Country), Timezone: b.Timezone, Currency: cloud.OrNull(b.Settings.Currency),
			DefaultLocale: b.Settings.Locale(), Locales: s.cfg.Languages,
			Support: Support{cloud.OrNull(b.SupportEmail), cloud.OrNull(b.SupportPhone), cloud.OrNull(a.SupportURL)}},
		Branding: Branding{LogoURL: cloud.OrNull(a.LogoURL), IconURL: cloud.OrNull(a.IconURL), Colors: map[string]string{}, Radius: usualRadius,
			FontFamily: cloud.OrNull(a.FontFamily), DarkMode: "auto"},
		Contracts: []ServiceContract{{Code: "local", Family: cloud.LocalDelivery, Name: s.cfg.Text(language, "app.local_delivery"), Enabled: true, Version: "1",
			TermsURL: cloud.OrNull(a.TermsURL)}},
		Settings: Settings{Home: Home{QuickActions: append([]string{}, k.actions...)}, Map: Map{"default"}, Auth: Auth{[]string{"password"}}},
		Legal:    Legal{cloud.OrNull(a.PrivacyURL), cloud.OrNull(a.TermsURL)}}
	for name, usual := range colors {
		d.Branding.Colors[name] = usual
		if own := a.Colors[name]; own != "" {
			d.Branding.Colors[name] = own
		}
	}
	if a.Name != "" {
		d.App.Name = a.Name
	}
	if a.Radius != nil {
		d.Branding.Radius = *a.Radius
	}
	if a.DarkMode != "" {
		d.Branding.DarkMode = a.DarkMode
	}
	if a.QuickActions != nil {
		d.Settings.Home.QuickActions = a.QuickActions
	}
	return d
}

// policy judges the version that asks.
func (s *Service) policy(a cloud.App, in BootstrapInput, language string) VersionPolicy {
	v := a.Versions[in.Platform]
	p := VersionPolicy{Platform: cloud.OrNull(in.Platform), Latest: cloud.OrNull(v.Latest), Minimum: cloud.OrNull(v.Minimum), Recommended: cloud.OrNull(v.Recommended),
		StoreURL: cloud.OrNull(v.StoreURL), Status: "ok"}
	older := func(than string) bool { return than != "" && semver.Compare("v"+in.Version, "v"+than) < 0 }
	message := ""
	switch {
	case in.Version == "" || in.Platform == "":
		p.Status = "unknown"
	case older(v.Minimum):
		p.Status, message = "update_required", "app.update_required"
	case older(v.Recommended):
		p.Status, message = "update_recommended", "app.update_recommended"
	}
	if message != "" {
		text := s.cfg.Text(language, message)
		p.Message = &text
	}
	return p
}

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// ByCode names an app.
type ByCode struct {
	Code string `path:"app_code" doc:"customer-app or driver-app"`
}

// AppOutput shows how a business wants an app.
type AppOutput struct {
	Result bool      `json:"result"`
	App    cloud.App `json:"app"`
}

// AppsOutput lists the apps that there are.
type AppsOutput struct {
	Result bool        `json:"result"`
	Apps   []cloud.App `json:"apps"`
}

// List lists every app as the caller's business wants it.
func (s *Service) List(ctx context.Context, c cloud.Caller, _ check.None) (AppsOutput, error) {
	out := AppsOutput{Result: true}
	return out, s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		for _, k := range kinds {
			out.Apps = append(out.Apps, showApp(b, k))
		}
		return err
	})
}

// showApp is an app with what is usual where the business said nothing.
func showApp(b cloud.Business, k kind) cloud.App {
	a := find(b, k.code)
	if a.Colors == nil {
		a.Colors = map[string]string{}
	}
	if a.QuickActions == nil {
		a.QuickActions = append([]string{}, k.actions...)
	}
	a.Off = append([]string{}, a.Off...)
	if a.Versions == nil {
		a.Versions = map[string]cloud.AppVersion{}
	}
	return a
}

// Find shows one app. Error: APP_NOT_FOUND.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ByCode) (out AppOutput, err error) {
	k, err := kindOf(in.Code)
	if err != nil {
		return out, err
	}
	return out, s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		out.Result, out.App = err == nil, showApp(b, k)
		return err
	})
}

// SaveInput changes how a business wants an app. Members that are absent stay
// as they are; an empty text goes back to the usual.
type SaveInput struct {
	Code         string                      `path:"app_code" json:"-"`
	Enabled      *bool                       `json:"enabled"`
	Name         *string                     `json:"name" max:"64"`
	LogoURL      *string                     `json:"logo_url" max:"512" format:"https"`
	IconURL      *string                     `json:"icon_url" max:"512" format:"https"`
	Colors       map[string]string           `json:"colors" key_enum:"primary,on_primary,accent,background,surface,text" item_format:"color"`
	Radius       *int                        `json:"radius" min:"0" max:"32" doc:"Pixels"`
	FontFamily   *string                     `json:"font_family" max:"64"`
	DarkMode     *string                     `json:"dark_mode" enum:"auto,light,dark"`
	SupportURL   *string                     `json:"support_url" max:"512" format:"https"`
	PrivacyURL   *string                     `json:"privacy_url" max:"512" format:"https"`
	TermsURL     *string                     `json:"terms_url" max:"512" format:"https"`
	QuickActions []string                    `json:"quick_actions" unique:"true" doc:"Shortcuts in their order; those left out are hidden"`
	Off          []string                    `json:"off" unique:"true" doc:"Capabilities that the business does not want"`
	Versions     map[string]cloud.AppVersion `json:"versions" key_enum:"ios,android" doc:"By platform"`
}

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

func (f fields) each(path string, list, allowed []string) {
	for i, s := range list {
		if !slices.Contains(allowed, s) {
			f.Say(fmt.Sprintf("%s.%d", path, i), check.MessageEnum, strings.Join(allowed, ", "))
		}
	}
}

func (in SaveInput) check() error {
	f := newFields()
	f.each("quick_actions", in.QuickActions, actions)
	var known []string
	for name := range (&Capabilities{}).switches() {
		known = append(known, name)
	}
	slices.Sort(known)
	f.each("off", in.Off, known)
	return f.Err()
}

// Save changes how the caller's business wants an app. Errors: APP_NOT_FOUND,
// VALIDATION_FAILED.
func (s *Service) Save(ctx context.Context, c cloud.Caller, in SaveInput) (out AppOutput, err error) {
	k, err := kindOf(in.Code)
	if err != nil {
		return out, err
	}
	if err := in.check(); err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		a := find(b, k.code)
		in.apply(&a)
		others := slices.DeleteFunc(slices.Clone(b.Settings.Apps), func(x cloud.App) bool { return x.Code == k.code })
		b.Settings.Apps = append(others, a)
		out = AppOutput{Result: true, App: showApp(b, k)}
		detail, err := json.Marshal(map[string]any{"enabled": a.Enabled})
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}},
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: b.ID, At: now, Actor: fmt.Sprintf("account:%d", c.Account.ID),
				Action: "app_saved", Target: "app:" + k.code, Detail: string(detail)}}}}, err
	})
	if err != nil {
		return AppOutput{}, err
	}
	return out, nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func (in SaveInput) apply(a *cloud.App) {
	set(&a.Enabled, in.Enabled)
	for _, x := range []struct{ to, from *string }{{&a.Name, in.Name}, {&a.LogoURL, in.LogoURL}, {&a.IconURL, in.IconURL}, {&a.FontFamily, in.FontFamily}, {&a.DarkMode, in.DarkMode},
		{&a.SupportURL, in.SupportURL}, {&a.PrivacyURL, in.PrivacyURL}, {&a.TermsURL, in.TermsURL}} {
		set(x.to, x.from)
	}
	if in.Colors != nil {
		a.Colors = in.Colors
	}
	if in.Radius != nil {
		a.Radius = in.Radius
	}
	if in.QuickActions != nil {
		a.QuickActions = in.QuickActions
	}
	if in.Off != nil {
		a.Off = in.Off
	}
	if in.Versions != nil {
		a.Versions = in.Versions
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// world is two businesses on a database: the first may have lockers and a chat,
// which a test switches.
type world struct {
	t    *testing.T
	db   *store.DB
	s    *Service
	chat error // of the gate of order_chat
}

var (
	ann = cloud.Caller{Account: cloud.Account{ID: 10, BusinessID: 1, Type: cloud.ClientAdmin}, Language: "de"}
	rae = cloud.Caller{Account: cloud.Account{ID: 20, BusinessID: 2, Type: cloud.ClientAdmin}}
)

func ptr[T any](v T) *T { return &v }

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: storetest.OpenSQLite(t), chat: cloud.E(cloud.Conflict, "FEATURE_DISABLED")}
	w.s = New(Config{Store: w.db, Languages: []string{"en", "de"}, Text: func(language, key string) string { return language + " " + key },
		Feature: func(_ context.Context, b cloud.BusinessID, family string) error {
			require.Equal(t, []any{cloud.BusinessID(1), "order_chat"}, []any{b, family})
			return w.chat
		}})
	w.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "Acme", Timezone: "America/Toronto", SupportPhone: "+1 416 555 0100", Settings: cloud.Settings{Country: "CA"}}, {ID: 2, Code: "rival", Timezone: "UTC"}}}})
	return w
}

func (w *world) write(ch *cloud.Changes) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
}

func (w *world) save(in SaveInput) cloud.App {
	w.t.Helper()
	if in.Code == "" {
		in.Code = "customer-app"
	}
	out, err := w.s.Save(w.t.Context(), ann, in)
	require.NoError(w.t, err)
	require.True(w.t, out.Result)
	return out.App
}

func (w *world) bootstrap(in BootstrapInput) Data {
	w.t.Helper()
	in.AppCode, in.ClientCode = "customer-app", "acme"
	out, err := w.s.Bootstrap(w.t.Context(), ann, in)
	require.NoError(w.t, err)
	require.True(w.t, out.Result)
	return out.Data
}

func (w *world) audits(b cloud.BusinessID) (out []string) {
	rows, err := w.db.ListAudits(w.t.Context(), b, 0, 100)
	require.NoError(w.t, err)
	for _, r := range slices.Backward(rows) {
		out = append(out, fmt.Sprint(r.Audit.Actor, " ", r.Audit.Action, " ", r.Audit.Target, " ", r.Audit.Detail))
	}
	return out
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestAnAppThatWasNeverSetUpIsOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.s.Bootstrap(ctx, cloud.Caller{}, BootstrapInput{AppCode: "customer-app", ClientCode: "acme"})
	require.Equal(t, cloud.E(cloud.Forbidden, "APP_NOT_ENABLED_FOR_CLIENT"), err)
	_, err = w.s.Bootstrap(ctx, cloud.Caller{}, BootstrapInput{AppCode: "customer-app", ClientCode: "none"})
	require.Equal(t, cloud.E(cloud.NotFound, "CLIENT_NOT_FOUND"), err)
	w.save(SaveInput{Enabled: ptr(true)})
	_, err = w.s.Bootstrap(ctx, cloud.Caller{}, BootstrapInput{AppCode: "driver-app", ClientCode: "acme"})
	require.Equal(t, "APP_NOT_ENABLED_FOR_CLIENT", code(err), "another app of the business")
	_, err = w.s.Bootstrap(ctx, cloud.Caller{}, BootstrapInput{AppCode: "customer-app", ClientCode: "rival"})
	require.Equal(t, "APP_NOT_ENABLED_FOR_CLIENT", code(err), "the same app of another business")
	for name, call := range map[string]func() error{
		"bootstrap": func() error {
			_, err := w.s.Bootstrap(ctx, ann, BootstrapInput{AppCode: "x", ClientCode: "acme"})
			return err
		},
		"find": func() error { _, err := w.s.Find(ctx, ann, ByCode{"x"}); return err },
		"save": func() error { _, err := w.s.Save(ctx, ann, SaveInput{Code: "x"}); return err },
	} {
		require.Equal(t, cloud.E(cloud.NotFound, "APP_NOT_FOUND"), call(), name)
	}
	gone := cloud.Caller{Account: cloud.Account{ID: 30, BusinessID: 3}}
	for name, call := range map[string]func() error{
		"list": func() error { _, err := w.s.List(ctx, gone, check.None{}); return err },
		"find": func() error {
			out, err := w.s.Find(ctx, gone, ByCode{"driver-app"})
			require.False(t, out.Result)
			return err
		},
		"save": func() error { _, err := w.s.Save(ctx, gone, SaveInput{Code: "driver-app"}); return err },
	} {
		require.ErrorIs(t, call(), cloud.ErrNotFound, name)
	}
}

func TestWhatABusinessSetsIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	usual := w.save(SaveInput{Enabled: ptr(true)})
	require.Equal(t, cloud.App{Code: "customer-app", Enabled: true, Colors: map[string]string{}, QuickActions: []string{"send", "return", "lockers"}, Off: []string{}, Versions: map[string]cloud.AppVersion{}}, usual)
	d := w.bootstrap(BootstrapInput{})
	require.Equal(t, Ref{"customer-app", "Parcels", "customer"}, d.App)
	require.Equal(t, Client{Code: "acme", Name: "Acme", Country: ptr("CA"), Timezone: "America/Toronto", DefaultLocale: "en", Locales: []string{"en", "de"}, Support: Support{Phone: ptr("+1 416 555 0100")}}, d.Client)
	require.Equal(t, Branding{Colors: colors, Radius: 12, DarkMode: "auto"}, d.Branding)
	require.Equal(t, []ServiceContract{{Code: "local", Family: cloud.LocalDelivery, Name: "de app.local_delivery", Enabled: true, Version: "1"}}, d.Contracts)
	require.Equal(t, Settings{Home{[]string{"send", "return", "lockers"}}, Map{"default"}, Auth{[]string{"password"}}}, d.Settings)
	require.Equal(t, Legal{}, d.Legal)
	require.Len(t, d.ETag, 16)
	at, err := time.Parse(time.RFC3339, d.GeneratedAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Equal(t, d.ETag, w.bootstrap(BootstrapInput{}).ETag, "the same content has the same tag")

	all := SaveInput{Name: ptr("Mine"), LogoURL: ptr("https://a.example/l"), IconURL: ptr("https://a.example/i"), Colors: map[string]string{"primary": "#12abEF"}, Radius: ptr(0), FontFamily: ptr("Inter"),
		DarkMode: ptr("dark"), SupportURL: ptr("https://a.example/s"), PrivacyURL: ptr("https://a.example/p"), TermsURL: ptr("https://a.example/t"), QuickActions: []string{"wallet", "send"}, Off: []string{"return"},
		Versions: map[string]cloud.AppVersion{"ios": {Latest: "2.0.0"}}}
	saved := w.save(all)
	require.True(t, saved.Enabled, "what is absent stays")
	again := w.save(SaveInput{FontFamily: ptr("")})
	want := saved
	want.FontFamily = ""
	require.Equal(t, want, again)
	m := w.bootstrap(BootstrapInput{})
	require.NotEqual(t, d.ETag, m.ETag)
	require.Equal(t, "Mine", m.App.Name)
	require.Equal(t, []any{0, "dark", "#12abEF", colors["accent"], (*string)(nil), "https://a.example/l", "https://a.example/i"}, []any{m.Branding.Radius, m.Branding.DarkMode, m.Branding.Colors["primary"], m.Branding.Colors["accent"], m.Branding.FontFamily, *m.Branding.LogoURL, *m.Branding.IconURL})
	require.Equal(t, []any{"https://a.example/s", "https://a.example/p", "https://a.example/t", "https://a.example/t"}, []any{*m.Client.Support.URL, *m.Legal.PrivacyURL, *m.Legal.TermsURL, *m.Contracts[0].TermsURL})
	require.Equal(t, []string{"wallet", "send"}, m.Settings.Home.QuickActions)
	require.Equal(t, []bool{true, false}, []bool{m.Capabilities.Send, m.Capabilities.Return})
	require.Empty(t, w.save(SaveInput{QuickActions: []string{}}).QuickActions, "none, not the usual ones")

	found, err := w.s.Find(t.Context(), ann, ByCode{"customer-app"})
	require.NoError(t, err)
	require.Equal(t, "Mine", found.App.Name)
	w.save(SaveInput{Code: "driver-app", Name: ptr("Drive")})
	list, err := w.s.List(t.Context(), ann, check.None{})
	require.NoError(t, err)
	require.Equal(t, []string{"customer-app Mine", "driver-app Drive"}, []string{list.Apps[0].Code + " " + list.Apps[0].Name, list.Apps[1].Code + " " + list.Apps[1].Name})
	require.Len(t, list.Apps, 2)
	other, err := w.s.List(t.Context(), rae, check.None{})
	require.NoError(t, err)
	require.Empty(t, other.Apps[0].Name, "another business sets its own")
	require.Equal(t, `account:10 app_saved app:customer-app {"enabled":true}`, w.audits(1)[0])
	require.Equal(t, `account:10 app_saved app:driver-app {"enabled":false}`, w.audits(1)[4])
	require.Empty(t, w.audits(2))

	every := []string{"wallet", "send", "return", "store", "lockers", "luggage", "handover", "pay"} // of the interface document
	w.save(SaveInput{QuickActions: every})
	require.Equal(t, every, w.bootstrap(BootstrapInput{}).Settings.Home.QuickActions)
}

func TestCapabilitiesFollowWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save(SaveInput{Enabled: ptr(true)})
	require.Equal(t, Capabilities{Send: true, Return: true}, w.bootstrap(BootstrapInput{}).Capabilities)
	w.write(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 1, BusinessID: 2, Code: "OTHER", Type: "smart_locker", CreatedAt: time.Now().UTC()}}}})
	require.False(t, w.bootstrap(BootstrapInput{}).Capabilities.Lockers, "another business's locker")
	w.write(&cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 2, BusinessID: 1, Code: "OWN", Type: "smart_locker", CreatedAt: time.Now().UTC()}}}})
	w.chat = nil
	require.Equal(t, Capabilities{Send: true, Return: true, Lockers: true, OrderChat: true}, w.bootstrap(BootstrapInput{}).Capabilities)
	w.save(SaveInput{Off: []string{"send", "return", "lockers", "order_chat"}})
	require.Equal(t, Capabilities{}, w.bootstrap(BootstrapInput{}).Capabilities)
	w.save(SaveInput{Off: []string{}})
	require.True(t, w.bootstrap(BootstrapInput{}).Capabilities.Send)
	w.chat = errors.New("the database is gone")
	_, err := w.s.Bootstrap(t.Context(), ann, BootstrapInput{AppCode: "customer-app", ClientCode: "acme"})
	require.ErrorIs(t, err, w.chat, "an error of ours is no answer about a feature")
}

func TestVersionsThatStillWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save(SaveInput{Enabled: ptr(true), Versions: map[string]cloud.AppVersion{"ios": {Latest: "3.0.0", Minimum: "2.0.0", Recommended: "2.5.0", StoreURL: "https://s.example"}}})
	for _, c := range []struct{ platform, version, status, message string }{
		{"ios", "1.9.9", "update_required", "de app.update_required"},
		{"ios", "2.0.0", "update_recommended", "de app.update_recommended"},
		{"ios", "2.4.10", "update_recommended", "de app.update_recommended"},
		{"ios", "2.5.0", "ok", ""},
		{"ios", "10.0.0", "ok", ""}, // as numbers, not as text
		{"ios", "", "unknown", ""},
		{"", "1.0.0", "unknown", ""},
		{"android", "0.0.1", "ok", ""}, // nothing is said about it
	} {
		p := w.bootstrap(BootstrapInput{Platform: c.platform, Version: c.version}).VersionPolicy
		require.Equal(t, c.status, p.Status, "%v", c)
		require.Equal(t, cloud.OrNull(c.message), p.Message, "%v", c)
		if c.platform == "ios" {
			require.Equal(t, []string{"ios", "3.0.0", "2.0.0", "2.5.0", "https://s.example"}, []string{*p.Platform, *p.Latest, *p.Minimum, *p.Recommended, *p.StoreURL})
		}
	}
	for member, in := range map[string]BootstrapInput{"platform": {Platform: "windows"}, "app_version": {Platform: "ios", Version: "two"}} {
		in.AppCode, in.ClientCode = "customer-app", "acme"
		refuses(t, member, in, w.s.Bootstrap)
	}
}

// refuses checks that an input is refused for a member: by its tags, as the
// catalogue does before it calls, or else by the feature.
func refuses[In, Out any](t *testing.T, member string, in In, call func(context.Context, cloud.Caller, In) (Out, error)) {
	t.Helper()
	err := check.Input(&in)
	if err == nil {
		_, err = call(t.Context(), ann, in)
	}
	var e *cloud.Error
	require.ErrorAs(t, err, &e, "%s: %+v", member, in)
	require.Equal(t, []any{cloud.Invalid, check.Code}, []any{e.Kind, e.Code})
	require.Contains(t, e.Fields, member, "%+v", in)
}

func TestBadAppsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.save(SaveInput{Enabled: ptr(true)})
	for _, c := range []struct {
		member string
		in     SaveInput
	}{
		{"name", SaveInput{Name: ptr(strings.Repeat("é", 65))}},
		{"name", SaveInput{Name: ptr("\xff")}},
		{"font_family", SaveInput{FontFamily: ptr(strings.Repeat("x", 65))}},
		{"logo_url", SaveInput{LogoURL: ptr("http://a.example/l")}},
		{"icon_url", SaveInput{IconURL: ptr("javascript:alert(1)")}},
		{"support_url", SaveInput{SupportURL: ptr("https://")}},
		{"privacy_url", SaveInput{PrivacyURL: ptr("https://user:pw@a.example")}},
		{"terms_url", SaveInput{TermsURL: ptr("https://a.example/" + strings.Repeat("x", 495))}},
		{"terms_url", SaveInput{TermsURL: ptr("https://a.example/%zz")}},
		{"colors.primary", SaveInput{Colors: map[string]string{"primary": "red"}}},
		{"colors.primary", SaveInput{Colors: map[string]string{"primary": "#12345678"}}},
		{"colors", SaveInput{Colors: map[string]string{"shadow": "#000000"}}},
		{"radius", SaveInput{Radius: ptr(-1)}},
		{"radius", SaveInput{Radius: ptr(33)}},
		{"dark_mode", SaveInput{DarkMode: ptr("dim")}},
		{"quick_actions.1", SaveInput{QuickActions: []string{"send", "fly"}}},
		{"quick_actions.2", SaveInput{QuickActions: []string{"send", "pay", "send"}}},
		{"off.0", SaveInput{Off: []string{"wallet"}}}, // the platform has none: it is off
		{"off.1", SaveInput{Off: []string{"send", "send"}}},
		{"versions", SaveInput{Versions: map[string]cloud.AppVersion{"windows": {}}}},
		{"versions.ios.latest", SaveInput{Versions: map[string]cloud.AppVersion{"ios": {Latest: "two"}}}},
		{"versions.ios.minimum", SaveInput{Versions: map[string]cloud.AppVersion{"ios": {Minimum: "v2"}}}},
		{"versions.ios.recommended", SaveInput{Versions: map[string]cloud.AppVersion{"ios": {Recommended: "1.0.0-" + strings.Repeat("a", 59)}}}},
		{"versions.android.store_url", SaveInput{Versions: map[string]cloud.AppVersion{"android": {StoreURL: "market://x"}}}},
	} {
		c.in.Code = "customer-app"
		refuses(t, c.member, c.in, w.s.Save)
	}
	found, err := w.s.Find(t.Context(), ann, ByCode{"customer-app"})
	require.NoError(t, err)
	require.Equal(t, before, found.App)
	require.Len(t, w.audits(1), 1, "a refused call changes nothing")
	w.save(SaveInput{Name: ptr(strings.Repeat("é", 64)), Radius: ptr(32), TermsURL: ptr("https://a.example/" + strings.Repeat("x", 494)),
		Versions: map[string]cloud.AppVersion{"ios": {Recommended: "1.0.0-" + strings.Repeat("a", 58)}}})
}

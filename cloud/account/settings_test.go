package account

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	before, err := w.s.FindSettings(ctx, as(ann), check.None{})
	require.NoError(t, err)
	require.Equal(t, SettingsOutput{true, Settings{Timezone: "America/Toronto", DefaultLocale: "en", CorrectionWindow: 15}}, before)
	all := SettingsInput{Timezone: ptr("Europe/Berlin"), DefaultLocale: ptr("de"), Country: ptr("DE"), Currency: ptr("EUR"), InterceptionReview: ptr(true), SelfApproval: ptr(true), CorrectionWindow: ptr(0),
		ExactGeocodes: ptr(true), SignatureRequired: ptr(true), PhotoRequired: ptr(true), DriverMarksReady: ptr(true), DriverAccepts: ptr(true)}
	saved, err := w.s.SaveSettings(ctx, as(ann), all)
	require.NoError(t, err)
	want := Settings{Timezone: "Europe/Berlin", DefaultLocale: "de", Country: ptr("DE"), Currency: ptr("EUR"),
		Rules: cloud.Rules{InterceptionReview: true, SelfApproval: true, ExactGeocodes: true, SignatureRequired: true, PhotoRequired: true, DriverMarksReady: true, DriverAccepts: true}}
	require.Equal(t, want, saved.Settings)
	saved, err = w.s.SaveSettings(ctx, as(ben), SettingsInput{CorrectionWindow: ptr(60), PhotoRequired: ptr(false)})
	require.NoError(t, err)
	want.CorrectionWindow, want.PhotoRequired = 60, false
	require.Equal(t, want, saved.Settings, "what is absent stays")
	found, err := w.s.FindSettings(ctx, as(ann), check.None{})
	require.NoError(t, err)
	require.Equal(t, saved, found)
	require.Equal(t, "UTC", w.business(2).Timezone, "another business keeps its own")
	require.Equal(t, []string{"account:10 settings_saved business", "account:11 settings_saved business"}, w.actions(1))
	_, err = w.s.FindSettings(ctx, as(top), check.None{})
	require.ErrorIs(t, err, cloud.ErrNotFound)

	save := func(in SettingsInput) (SettingsOutput, error) { return w.s.SaveSettings(ctx, as(ann), in) }
	for _, zone := range []string{"", "Local", "Mars/Olympus", "../../etc/passwd"} {
		refused(w, "timezone", SettingsInput{Timezone: &zone}, save)
	}
	for _, c := range []struct {
		member string
		in     SettingsInput
	}{
		{"default_locale", SettingsInput{DefaultLocale: ptr("tlh")}}, {"country", SettingsInput{Country: ptr("XX")}}, {"country", SettingsInput{Country: ptr("CAN")}}, {"country", SettingsInput{Country: ptr("")}},
		{"currency", SettingsInput{Currency: ptr("CA")}}, {"currency", SettingsInput{Currency: ptr("cad")}},
		{"correction_window_minutes", SettingsInput{CorrectionWindow: ptr(-1)}}, {"correction_window_minutes", SettingsInput{CorrectionWindow: ptr(61)}},
	} {
		refused(w, c.member, c.in, save)
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	save := func(in PricesInput) (PricesOutput, error) { return w.s.SavePrices(ctx, as(ann), in) }
	prices := cloud.PriceList{Base: 100_000_00, PerKilogram: 1, MaxKilograms: 100_000, TaxCode: "tax_hst", TaxPercent: 100, Countries: []string{"CA", "US"}}
	refused(w, "prices", PricesInput{&prices}, save) // without a currency
	_, err := save(PricesInput{})
	require.NoError(t, err, "no prices need no currency")
	_, err = w.s.SaveSettings(ctx, as(ann), SettingsInput{Currency: ptr("CAD")})
	require.NoError(t, err)
	saved, err := save(PricesInput{&prices})
	require.NoError(t, err)
	require.Equal(t, PricesOutput{true, &prices}, saved)
	found, err := w.s.FindPrices(ctx, as(ben), check.None{})
	require.NoError(t, err)
	require.Equal(t, saved, found)
	found, err = w.s.FindPrices(ctx, as(rae), check.None{})
	require.NoError(t, err)
	require.Nil(t, found.Prices)
	for _, c := range []struct {
		member string
		change func(*cloud.PriceList)
	}{
		{"prices.base", func(l *cloud.PriceList) { l.Base = -1 }}, {"prices.base", func(l *cloud.PriceList) { l.Base = 100_000_01 }},
		{"prices.per_kilogram", func(l *cloud.PriceList) { l.PerKilogram = -1 }}, {"prices.per_package", func(l *cloud.PriceList) { l.PerPackage = -1 }}, {"prices.cod_fee", func(l *cloud.PriceList) { l.CODFee = -1 }},
		{"prices.included_kilograms", func(l *cloud.PriceList) { l.IncludedKilograms = -1 }}, {"prices.max_kilograms", func(l *cloud.PriceList) { l.MaxKilograms = 100_001 }},
		{"prices.tax_percent", func(l *cloud.PriceList) { l.TaxPercent = -0.1 }}, {"prices.tax_percent", func(l *cloud.PriceList) { l.TaxPercent = 100.1 }}, {"prices.tax_percent", func(l *cloud.PriceList) { l.TaxPercent = math.NaN() }},
		{"prices.tax_code", func(l *cloud.PriceList) { l.TaxCode = "vat" }}, {"prices.tax_code", func(l *cloud.PriceList) { l.TaxCode = "" }},
		{"prices.countries.1", func(l *cloud.PriceList) { l.Countries = []string{"CA", "usa"} }},
	} {
		l := prices
		c.change(&l)
		refused(w, c.member, PricesInput{&l}, save)
	}
	free := cloud.PriceList{TaxCode: "", TaxPercent: 0}
	saved, err = save(PricesInput{&free})
	require.NoError(t, err)
	require.Equal(t, []string{}, saved.Prices.Countries, "a list, as answers show it")
	_, err = save(PricesInput{})
	require.NoError(t, err)
	require.Nil(t, w.business(1).Settings.Prices)
	require.Equal(t, []string{"account:10 prices_saved business", "account:10 settings_saved business", "account:10 prices_saved business", "account:10 prices_saved business", "account:10 prices_saved business"}, w.actions(1))
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	gate := func(family string) string { return code(w.s.Gate(ctx, 1, family)) }
	switched := func(family string, on bool) error {
		_, err := w.s.Switch(ctx, as(ann), SwitchInput{family, &on})
		return err
	}
	grant := func(family, state string, on bool) error {
		_, err := w.s.Grant(ctx, as(top), GrantInput{family, 1, state, &on})
		return err
	}
	list, err := w.s.ListFeatures(ctx, as(ann), check.None{})
	require.NoError(t, err)
	require.Equal(t, []Feature{{"order_chat", false, "allowed"}, {"ops_agent", false, "allowed"}, {smsMarketing, false, "allowed"}, {contractorAssignment, false, "allowed"}}, list.Features, "all are off at first")
	require.Equal(t, &cloud.Error{Kind: cloud.Conflict, Code: "FEATURE_DISABLED", Members: map[string]any{"feature_enabled": false}}, w.s.Gate(ctx, 1, "order_chat"))
	require.NoError(t, switched("order_chat", true))
	require.Empty(t, gate("order_chat"))
	require.Equal(t, "FEATURE_DISABLED", gate("ops_agent"), "each by itself")
	require.Equal(t, "FEATURE_DISABLED", code(w.s.Gate(ctx, 2, "order_chat")), "another business's")
	require.Equal(t, "FEATURE_DISABLED", code(w.s.Gate(ctx, 99, "order_chat")), "no business")
	require.NoError(t, switched("order_chat", false))
	require.Equal(t, "FEATURE_DISABLED", gate("order_chat"))

	require.NoError(t, grant("order_chat", "revoked", true))
	require.Equal(t, "FEATURE_DISABLED", gate("order_chat"), "revoked is off whatever is switched")
	list, err = w.s.ListFeatures(ctx, as(ann), check.None{})
	require.NoError(t, err)
	require.Equal(t, Feature{"order_chat", false, "revoked"}, list.Features[0])
	w.unchanged(func() { require.Equal(t, cloud.E(cloud.Conflict, "FEATURE_REVOKED"), switched("order_chat", true)) })
	require.NoError(t, switched("order_chat", false), "off is always possible")
	require.NoError(t, grant("order_chat", "allowed", false))
	require.NoError(t, switched("order_chat", true))

	require.NoError(t, grant(smsMarketing, "revoked", false))
	require.Equal(t, "FEATURE_REVOKED", gate(smsMarketing))
	require.Equal(t, cloud.E(cloud.Forbidden, "MODULE_DISABLED"), w.s.Gate(ctx, 1, contractorAssignment))
	for _, on := range []bool{true, false} {
		w.unchanged(func() {
			require.Equal(t, cloud.E(cloud.Forbidden, "FORBIDDEN"), switched(contractorAssignment, on), "the platform switches it")
		})
	}
	require.NoError(t, grant(contractorAssignment, "allowed", true))
	require.Empty(t, gate(contractorAssignment))

	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no such family": {switched("teleport", true), "FEATURE_NOT_FOUND"},
		"none to grant":  {grant("teleport", "allowed", true), "FEATURE_NOT_FOUND"},
		"no such business": {func() error {
			_, err := w.s.Grant(ctx, as(top), GrantInput{"order_chat", 99, "allowed", ptr(true)})
			return err
		}(), "BUSINESS_NOT_FOUND"},
		"a caller without one":  {func() error { _, err := w.s.Switch(ctx, as(top), SwitchInput{"order_chat", ptr(true)}); return err }(), "BUSINESS_NOT_FOUND"},
		"a list without a firm": {func() error { _, err := w.s.ListFeatures(ctx, as(top), check.None{}); return err }(), cloud.ErrNotFound.Error()},
	} {
		require.ErrorContains(t, c.err, c.want, name)
	}
	refused(w, "state", GrantInput{"order_chat", 1, "maybe", ptr(true)}, func(in GrantInput) (FeatureOutput, error) { return w.s.Grant(ctx, as(top), in) })
	refused(w, "enabled", GrantInput{"order_chat", 1, "allowed", nil}, func(in GrantInput) (FeatureOutput, error) { return w.s.Grant(ctx, as(top), in) })
	refused(w, "enabled", SwitchInput{"order_chat", nil}, func(in SwitchInput) (FeatureOutput, error) { return w.s.Switch(ctx, as(ann), in) })
	lines := w.actions(1)
	require.Equal(t, "account:10 feature_order_chat business", lines[0])
	require.Equal(t, "account:90 feature_contractor_assignment business", lines[len(lines)-1], "in the log of the business that it is about")
}

// What this deployment does not have can be switched off, and never on.
func TestFamiliesThatThereAreNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, smsMarketing, contractorAssignment, "ops_agent")
	ctx := t.Context()
	for family, want := range map[string]*cloud.Error{
		smsMarketing:         {Kind: cloud.Conflict, Code: "FEATURE_NOT_MIGRATED", Members: map[string]any{"feature_enabled": false}},
		"ops_agent":          {Kind: cloud.Conflict, Code: "FEATURE_DISABLED", Members: map[string]any{"feature_enabled": false}},
		contractorAssignment: {Kind: cloud.Unavailable, Code: "MODULE_UNAVAILABLE", RetryAfter: 300},
	} {
		require.Equal(t, want, w.s.Gate(ctx, 1, family))
		if family == contractorAssignment {
			continue
		}
		w.unchanged(func() {
			_, err := w.s.Switch(ctx, as(ann), SwitchInput{family, ptr(true)})
			require.Equal(t, want, err)
		})
		out, err := w.s.Switch(ctx, as(ann), SwitchInput{family, ptr(false)})
		require.NoError(t, err)
		require.Equal(t, Feature{family, false, "allowed"}, out.Feature)
	}
	out, err := w.s.Grant(ctx, as(top), GrantInput{smsMarketing, 1, "allowed", ptr(true)})
	require.NoError(t, err, "the platform may prepare it")
	require.False(t, out.Feature.Enabled, "it is shown as off")
	require.Equal(t, "FEATURE_NOT_MIGRATED", code(w.s.Gate(ctx, 1, smsMarketing)))
}

package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

func TestSettingsOfLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	empty, err := w.s.FindSettings(ctx, ann, LevelInput{})
	require.NoError(t, err)
	require.Equal(t, []any{levelBusiness, true, map[string]string{}, []URLBody{}}, []any{empty.Level, empty.Settings.Enabled, empty.Effective, empty.URLs})
	first := w.saveSettings(ann, `{"order_create_webhook_url":"`+good+`"}`)
	require.Len(t, first.Generated, 43, "a business's first address comes with a secret")
	require.Equal(t, []any{false, (*string)(nil)}, []any{first.Unseen, first.SecretPage})

	saved := w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":" https://a.example , https://b.example,https://a.example","order_lifecycle_events":"order.delivered, order.pick*","driver_location_min_interval_sec":5}`)
	require.Equal(t, []any{"***cdef", "https://a.example,https://b.example", "order.delivered,order.pick*", 5}, []any{*saved.Settings.Secret, *saved.Settings.OrderCreate, *saved.Settings.LifecycleEvents, *saved.Settings.PlaceEvery})
	require.NotEmpty(t, saved.StandardSecret)
	require.Equal(t, map[string]string{memberSecret: levelBusiness, cloud.HookOrderCreate: levelBusiness, memberEvents: levelBusiness, memberPlace: levelBusiness}, saved.Effective)
	require.Len(t, saved.URLs, 2)
	one := saved.URLs[0]
	saved = w.saveSettings(ann, `{"settings":{"order_create_webhook_url":"HTTPS://A.example"},"driver_location_min_interval_sec":null,"enabled":false}`)
	require.Equal(t, []URLBody{one}, saved.URLs, "the same address, however its host is written")
	require.Equal(t, []any{false, (*int)(nil), "***cdef"}, []any{saved.Settings.Enabled, saved.Settings.PlaceEvery, *saved.Settings.Secret})
	saved = w.saveSettings(ann, `{"order_create_webhook_url":"https://b.example","enabled":true}`)
	require.Equal(t, "https://b.example", saved.URLs[0].URL)

	own := w.saveSettings(cus, `{"order_status_change_webhook_url":"`+good+`"}`)
	require.Equal(t, []any{levelCustomer, cus.Account.ID}, []any{own.Level, *own.CustomerID})
	require.Len(t, own.Generated, 43, "a customer's first address comes with a secret")
	require.Equal(t, []string{levelCustomer, levelBusiness}, []string{own.Effective[cloud.HookStatusChange], own.Effective[cloud.HookOrderCreate]})
	muted := w.saveSettings(cus, `{"order_create_webhook_url":"none"}`)
	require.Equal(t, []any{"none", levelCustomer, ""}, []any{*muted.Settings.OrderCreate, muted.Effective[cloud.HookOrderCreate], muted.Generated})
	refuses(w, cus, memberSecret, settings(t, `{"webhook_sign_secret":""}`), w.s.SaveSettings)
	refuses(w, ann, memberSecret, settings(t, `{"webhook_sign_secret":null}`), w.s.SaveSettings)
	seen, err := w.s.FindSettings(ctx, ann, LevelInput{CustomerID: cus.Account.ID})
	require.NoError(t, err)
	require.Equal(t, "none", *seen.Settings.OrderCreate, "staff see a customer's level")
	mine, err := w.s.FindSettings(ctx, cus, LevelInput{CustomerID: zoe.Account.ID})
	require.NoError(t, err)
	require.Equal(t, cus.Account.ID, *mine.CustomerID, "a customer has only its own")
	for name, c := range map[string]struct {
		by   cloud.Caller
		of   cloud.AccountID
		want string
	}{"an employee": {eve, 0, "ACCOUNT_TYPE_NOT_ALLOWED"}, "a partner": {pam, 0, "ACCOUNT_TYPE_NOT_ALLOWED"}, "no customer": {ann, eve.Account.ID, "CUSTOMER_NOT_FOUND"},
		"another business's": {rae, cus.Account.ID, "CUSTOMER_NOT_FOUND"}, "none": {ann, 999, "CUSTOMER_NOT_FOUND"}} {
		_, err := w.s.FindSettings(ctx, c.by, LevelInput{c.of})
		require.Equal(t, c.want, code(err), name)
		_, err = w.s.SaveSettings(ctx, c.by, SettingsInput{LevelInput: LevelInput{c.of}})
		require.Equal(t, c.want, code(err), name)
	}
	other, err := w.s.FindSettings(ctx, rae, LevelInput{})
	require.NoError(t, err)
	require.Empty(t, other.URLs)
	clear := w.saveSettings(ann, `{"order_create_webhook_url":" , ","order_lifecycle_events":null}`)
	require.Nil(t, clear.Settings.OrderCreate)
	require.Nil(t, clear.Settings.LifecycleEvents)
}

func TestBadSettingsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`"}`)
	six := "https://1.example,https://2.example,https://3.example,https://4.example,https://5.example,https://6.example"
	for _, c := range []struct{ member, text string }{
		{"colour", `{"colour":"blue"}`},
		{memberSecret, `{"webhook_sign_secret":"short"}`},
		{memberNext, `{"webhook_sign_secret_next":"short"}`},
		{memberHours, `{"overlap_hours":169}`},
		{memberEvents, `{"order_lifecycle_events":"order.vanished"}`},
		{memberDevice, `{"device_order_events":"order.delivered"}`},
		{memberPlace, `{"driver_location_min_interval_sec":4}`},
		{memberPlace, `{"driver_location_min_interval_sec":3601}`},
		{cloud.HookOrderCreate, `{"order_create_webhook_url":"` + six + `"}`},
		{cloud.HookOrderCreate, `{"order_create_webhook_url":"https://r.example/` + strings.Repeat("x", 2031) + `"}`},
		{cloud.HookOrderCreate, `{"order_create_webhook_url":"none"}`}, // the business cannot borrow
		{memberFormat + ".0.format", `{"webhook_url_options":[{"url":"` + good + `","format":"xml"}]}`},
		{memberFormat + ".0.signature", `{"webhook_url_options":[{"url":"` + good + `","signature":"x"}]}`},
		{memberFormat + ".0.rate_per_second", `{"webhook_url_options":[{"url":"` + good + `","rate_per_second":0.001}]}`},
		{memberFormat + ".0.rate_per_second", `{"webhook_url_options":[{"url":"` + good + `","rate_per_second":1000.5}]}`},
		{memberFormat + ".0.burst", `{"webhook_url_options":[{"url":"` + good + `","rate_per_second":1,"burst":0}]}`},
		{memberFormat + ".0.burst", `{"webhook_url_options":[{"url":"` + good + `","burst":5}]}`},
		{memberFormat + ".0.private_key", `{"webhook_url_options":[{"url":"` + good + `","private_key":"whsk_x","signature":"standard_webhooks_v1a"}]}`},
		{memberFormat + ".0.url", `{"webhook_url_options":[{"url":"` + good + `"}]}`}, // no setting names it
		{memberFormat + ".1.url", `{"order_create_webhook_url":"` + good + `","webhook_url_options":[{"url":"` + good + `"},{"url":"` + good + `"}]}`},
	} {
		refuses(w, ann, c.member, settings(t, c.text), w.s.SaveSettings)
	}
	for _, text := range []string{`{"driver_location_webhook_url":"` + good + `"}`, `{"driver_location_min_interval_sec":9}`} {
		in := settings(t, text)
		for member := range in.given {
			refuses(w, cus, member, in, w.s.SaveSettings)
			in.CustomerID = cus.Account.ID
			refuses(w, ann, member, in, w.s.SaveSettings)
		}
	}
	_, err := w.s.SaveSettings(t.Context(), ann, settings(t, `{"order_create_webhook_url":"https://blocked.example"}`))
	require.Equal(t, codeBlocked, code(err))
	refuses(w, rae, memberNext, settings(t, `{"webhook_sign_secret_next":"`+longer+`"}`), w.s.SaveSettings)
	var hosts []string
	for _, name := range []string{"order_create_webhook_url", "order_status_change_webhook_url", "tracking_event_webhook_url", "pod_files_webhook_url", "order_deleted_webhook_url"} {
		var list []string
		for i := range 5 {
			list = append(list, "https://"+name[:7]+strings.Repeat("x", i)+".example")
		}
		hosts = append(hosts, `"`+name+`":"`+strings.ReplaceAll(strings.Join(list, ","), "_", "")+`"`)
	}
	refuses(w, ann, "settings", settings(t, "{"+strings.ReplaceAll(strings.Join(hosts, ","), "https://order", "https://o")+"}"), w.s.SaveSettings)
}

func TestRotatingTheSecretOfALevel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"`+good+`"}`)
	out := w.saveSettings(ann, `{"webhook_sign_secret_next":"`+longer+`"}`)
	require.Equal(t, []any{"***cdef", "***hars", false}, []any{*out.Settings.Secret, *out.Settings.SecretNext, out.DroppedOldest})
	out = w.saveSettings(ann, `{"webhook_sign_secret_next":"a-third-secret-of-some-length-000"}`)
	require.Equal(t, []any{"***hars", "***-000", true}, []any{*out.Settings.Secret, *out.Settings.SecretNext, out.DroppedOldest})
	out = w.saveSettings(ann, `{"webhook_sign_secret_next":null}`)
	require.Nil(t, out.Settings.SecretNext, "a rotation can be called off")
	require.Equal(t, "***hars", *out.Settings.Secret)
	out = w.saveSettings(ann, `{"webhook_sign_secret_next":"`+secret+`","overlap_hours":0}`)
	require.Equal(t, "***cdef", *out.Settings.Secret, "at once")
	require.Nil(t, out.Settings.SecretNext)
	w.look(func(v cloud.View) {
		s, err := v.WebhookSettings(1, 0)
		require.NoError(t, err)
		s.SecretNext, s.NextUntil = []byte(longer), time.Now().Add(-time.Hour)
		w.write(&cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{s}}})
	})
	out = w.saveSettings(ann, `{"enabled":true}`)
	require.Equal(t, "***hars", *out.Settings.Secret, "the overlap is over")
	require.Nil(t, out.Settings.SecretNext)
}

func TestOptionsOfAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"`+good+`","webhook_url_options":[{"url":"`+good+`","format":"ce_binary","signature":"standard_webhooks","rate_per_second":2,"sequence":true}]}`)
	want := []URLOptionsBody{{URL: good, Format: cloud.FormatBinary, Signature: cloud.SignatureStandard, Rate: ptr(2.), Burst: ptr(1), Sequence: true}}
	require.Equal(t, want, out.Settings.URLOptions)
	require.Len(t, out.Warnings, 1)
	out = w.saveSettings(ann, `{"enabled":true}`)
	require.Equal(t, want, out.Settings.URLOptions, "what is absent stays")
	out = w.saveSettings(ann, `{"webhook_url_options":[]}`)
	require.Empty(t, out.Settings.URLOptions, "the list is replaced")
}

func TestAddressesPauseAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := int64(w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"`+good+`"}`).URLs[0].URLID)
	hers := int64(w.saveSettings(cus, `{"order_create_webhook_url":"`+good+`"}`).URLs[0].URLID)
	list, err := w.s.ListURLs(ctx, ann, check.None{})
	require.NoError(t, err)
	require.Len(t, list.URLs, 2)
	require.Equal(t, []any{levelBusiness, statusFresh, []string{cloud.HookOrderCreate}}, []any{list.URLs[0].Level, list.URLs[0].Status, list.URLs[0].Settings})
	require.Equal(t, []any{levelCustomer, cus.Account.ID}, []any{list.URLs[1].Level, *list.URLs[1].CustomerID})
	list, err = w.s.ListURLs(ctx, cus, check.None{})
	require.NoError(t, err)
	require.Len(t, list.URLs, 1)
	_, err = w.s.ListURLs(ctx, eve, check.None{})
	require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))

	paused, err := w.s.Pause(ctx, ann, URLInput{id})
	require.NoError(t, err)
	require.Equal(t, statusPaused, paused.URL.Status)
	for name, c := range map[string]struct {
		by cloud.Caller
		id int64
	}{"a customer": {cus, id}, "another customer": {zoe, hers}, "another business": {rae, id}, "none": {ann, 999}} {
		_, err := w.s.Pause(ctx, c.by, URLInput{c.id})
		require.Equal(t, "WEBHOOK_URL_NOT_FOUND", code(err), name)
		_, err = w.s.Resume(ctx, c.by, ResumeInput{URLID: c.id})
		require.Equal(t, "WEBHOOK_URL_NOT_FOUND", code(err), name)
		_, err = w.s.CheckUp(ctx, c.by, URLInput{c.id})
		require.Equal(t, "WEBHOOK_URL_NOT_FOUND", code(err), name)
	}
	refuses(w, ann, "mode", ResumeInput{URLID: id, Mode: "drop"}, w.s.Resume)
	require.NoError(t, w.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) { // an event of the time of the pause waits
		out, err := w.s.FanOut(v, orderEvent("EV-1", 0))
		if len(out) > 0 {
			out[0].Deliveries[0].State = cloud.OutboxPaused
		}
		return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: out}}, err
	}))
	resumed, err := w.s.Resume(ctx, ann, ResumeInput{URLID: id, Mode: "fail"})
	require.NoError(t, err)
	require.Equal(t, statusFresh, resumed.URL.Status)
	logs, err := w.s.ListLogs(ctx, ann, AccountLogInput{})
	require.NoError(t, err)
	require.Equal(t, []any{cloud.OutboxFailed, reasonGivenUp}, []any{logs.Logs[0].Status, *logs.Logs[0].Error}, "what was kept is given up")
	w.held = heldBreaker
	list, err = w.s.ListURLs(ctx, cus, check.None{})
	require.NoError(t, err)
	require.Equal(t, statusDegraded, list.URLs[0].Status, "the sender leaves it alone")
	settings, err := w.s.FindSettings(ctx, cus, LevelInput{})
	require.NoError(t, err)
	require.Equal(t, []any{statusDegraded, list.URLs[0].Since}, []any{settings.URLs[0].Status, settings.URLs[0].Since}, "settings and the list agree how an address is doing")
}

// A secret that a tool made is replaced at once: no receiver has it. A person who
// names the first address again is shown another one.
func TestSecretsThatNoPersonSaw(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := ann
	agent.Surface, agent.BaseURL = "mcp", "https://postern.example"
	first := `{"order_create_webhook_url":"` + good + `"}`
	made := w.saveSettings(agent, first)
	require.Equal(t, []any{"", "", true}, []any{made.Generated, made.StandardSecret, made.Unseen})
	require.Contains(t, made.Warnings[0], *made.SecretPage)
	next := w.saveSettings(ann, `{"webhook_sign_secret_next":"`+longer+`"}`)
	require.Equal(t, []any{false, "***hars", (*string)(nil), false}, []any{next.Unseen, *next.Settings.Secret, next.Settings.SecretNext, next.DroppedOldest})
	require.Empty(t, next.Warnings)

	theirs := cus
	theirs.Surface = "mcp"
	require.True(t, w.saveSettings(theirs, first).Unseen)
	mine := w.saveSettings(cus, `{"enabled":true}`)
	require.Equal(t, []any{true, (*string)(nil), ""}, []any{mine.Unseen, mine.SecretPage, mine.Generated}, "customers have no page; an address that there is keeps its secret")
	refuses(w, cus, memberSecret, settings(t, `{"webhook_sign_secret":null}`), w.s.SaveSettings)
	w.saveSettings(cus, `{"order_create_webhook_url":null}`)
	again := w.saveSettings(cus, first)
	require.Len(t, again.Generated, 43)
	require.False(t, again.Unseen)
	require.True(t, w.saveSettings(theirs, `{"order_create_webhook_url":null,"webhook_sign_secret":null}`).Settings.Secret == nil)
	require.False(t, w.saveSettings(theirs, `{"order_create_webhook_url":"`+good+`","webhook_sign_secret":"`+secret+`"}`).Unseen, "who gave it knows it")
}

// A business whose customers have secrets of their own needs none for them.
func TestCustomersSecretsAskNoneOfTheBusiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.saveSettings(cus, `{"order_create_webhook_url":"`+good+`"}`)
	saved := w.saveSettings(ann, `{"order_lifecycle_events":"order.delivered"}`)
	require.Equal(t, []any{"", (*string)(nil)}, []any{saved.Generated, saved.Settings.Secret})
}

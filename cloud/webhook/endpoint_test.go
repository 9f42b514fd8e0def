package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

func TestAPartnerSetsItsEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.s.Find(ctx, pam, KindInput{})
	require.Equal(t, cloud.E(cloud.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND"), err)
	refuses(w, pam, "url", EndpointInput{}, w.s.Save)
	made, err := w.s.Save(ctx, pam, EndpointInput{URL: ptr(good), SandboxURL: ptr("https://s.example")})
	require.NoError(t, err)
	require.Len(t, made.Secret, 43)
	require.NotEmpty(t, made.StandardSecret)
	e := made.Endpoint
	require.Equal(t, []any{cloud.LockerEndpoint, good, []string{"*"}, "native", "native", true, true, "healthy", "…" + made.Secret[39:]},
		[]any{e.Kind, e.URL, e.Events, e.Format, e.Signature, e.Enabled, e.SandboxEnabled, e.Status, e.SecretHint})
	found, err := w.s.Find(ctx, pam, KindInput{Kind: cloud.LockerEndpoint})
	require.NoError(t, err)
	require.Equal(t, EndpointOutput{Result: true, Endpoint: e, Warnings: []string{}}, found, "the secret is shown once")

	changed, err := w.s.Save(ctx, pam, EndpointInput{SandboxURL: ptr(""), Events: &[]string{"locker_delivery.delivered"}, Enabled: ptr(false), Format: ptr(cloud.FormatStructured)})
	require.NoError(t, err)
	require.Empty(t, changed.Secret)
	want := e
	want.SandboxURL, want.Events, want.Enabled, want.Format = nil, []string{"locker_delivery.delivered"}, false, cloud.FormatStructured
	require.Equal(t, want, changed.Endpoint, "what is absent stays")
	_, err = w.s.Find(ctx, ray, KindInput{})
	require.Equal(t, "WEBHOOK_ENDPOINT_NOT_FOUND", code(err), "another partner has its own")
	_, err = w.s.Find(ctx, ann, KindInput{})
	require.ErrorContains(t, err, "no provider")
	require.Equal(t, []string{"account:30 webhook_endpoint_saved", "account:30 webhook_endpoint_saved"}, w.actions())

	for _, c := range []struct {
		member string
		in     EndpointInput
	}{
		{"url", EndpointInput{URL: ptr("")}}, {"url", EndpointInput{URL: ptr("http://r.example")}}, {"url", EndpointInput{URL: ptr("https://blocked.example")}},
		{"url", EndpointInput{URL: ptr("https://r.example/" + strings.Repeat("x", 2031))}}, {"sandbox_url", EndpointInput{SandboxURL: ptr("ftp://r.example")}},
		{"events", EndpointInput{Events: &[]string{}}}, {"events", EndpointInput{Events: &[]string{"third_party_delivery.created"}}},
		{"categories", EndpointInput{Categories: &[]string{"handover"}}}, {"format", EndpointInput{Format: ptr("xml")}}, {"signature", EndpointInput{Signature: ptr("none")}},
		{"private_key", EndpointInput{PrivateKey: ptr("whsk_x")}}, {"kind", EndpointInput{Kind: cloud.ThirdPartyEndpoint}}, {"kind", EndpointInput{Kind: "account"}},
	} {
		refuses(w, pam, c.member, c.in, w.s.Save)
	}
	_, err = w.s.Save(ctx, pam, EndpointInput{URL: ptr("https://r.example/" + strings.Repeat("x", 2030))})
	require.NoError(t, err)
}

func TestAnEndpointForOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, err := w.s.Save(ctx, tom, EndpointInput{URL: ptr(good), Categories: &[]string{"outcome", "assignment"}, Events: &[]string{"*", "third_party_delivery.created"}})
	require.NoError(t, err)
	require.Equal(t, cloud.ThirdPartyEndpoint, made.Endpoint.Kind, "that of its service")
	require.Equal(t, []string{"assignment", "outcome"}, made.Endpoint.Categories)
	cleared, err := w.s.Save(ctx, tom, EndpointInput{Categories: &[]string{}})
	require.NoError(t, err)
	require.Empty(t, cleared.Endpoint.Categories)
	refuses(w, tom, "categories", EndpointInput{Categories: &[]string{"weather"}}, w.s.Save)
	refuses(w, tom, "events", EndpointInput{Events: &[]string{"locker_delivery.delivered"}}, w.s.Save)
	_, err = w.s.Find(ctx, tom, KindInput{Kind: cloud.LockerEndpoint})
	require.Equal(t, "WEBHOOK_ENDPOINT_NOT_FOUND", code(err), "each kind has its own")
	both := partner(31, 8, 1, cloud.ServiceThirdParty, cloud.ServiceLocker)
	_, err = w.s.Find(ctx, both, KindInput{})
	require.Equal(t, "WEBHOOK_ENDPOINT_NOT_FOUND", code(err), "of both services the lockers come first")
}

// An endpoint that was paused goes on when it is saved.
func TestSavingResumesAnEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.s.Save(t.Context(), pam, EndpointInput{URL: ptr(good)})
	require.NoError(t, err)
	w.look(func(v cloud.View) {
		es, err := v.Endpoints(pam.Provider.ID)
		require.NoError(t, err)
		es[0].Status, es[0].StatusReason, es[0].StatusSince = statusPaused, cloud.PausedByRule, time.Now().UTC()
		w.write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: es}})
	})
	paused, err := w.s.Find(t.Context(), pam, KindInput{})
	require.NoError(t, err)
	require.Equal(t, statusPaused, paused.Endpoint.Status)
	resumed, err := w.s.Save(t.Context(), pam, EndpointInput{})
	require.NoError(t, err)
	require.Equal(t, made.Endpoint, resumed.Endpoint)
}

func TestRotatingASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.s.RotateSecret(ctx, pam, SecretInput{})
	require.Equal(t, cloud.E(cloud.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND"), err)
	made, err := w.s.Save(ctx, pam, EndpointInput{URL: ptr(good)})
	require.NoError(t, err)
	secrets := func() (current, next string) {
		w.look(func(v cloud.View) {
			es, err := v.Endpoints(pam.Provider.ID)
			require.NoError(t, err)
			a, b := es[0].Secrets(time.Now())
			current, next = string(a), string(b)
		})
		return current, next
	}
	pair := func(a, b string) [2]string { return [2]string{a, b} }
	first, err := w.s.RotateSecret(ctx, pam, SecretInput{Secret: secret})
	require.NoError(t, err)
	require.Equal(t, []any{secret, "…cdef", false}, []any{first.Secret, first.SecretHint, first.DroppedOldest})
	until, err := time.Parse(time.RFC3339, *first.PreviousUntil)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), until, time.Minute)
	require.Equal(t, pair(made.Secret, secret), pair(secrets()))
	second, err := w.s.RotateSecret(ctx, pam, SecretInput{Secret: longer, OverlapHours: ptr(168)})
	require.NoError(t, err)
	require.True(t, second.DroppedOldest, "of three the oldest goes")
	require.Equal(t, pair(secret, longer), pair(secrets()))
	third, err := w.s.RotateSecret(ctx, pam, SecretInput{OverlapHours: ptr(0)})
	require.NoError(t, err)
	require.Nil(t, third.PreviousUntil)
	require.Equal(t, pair(third.Secret, ""), pair(secrets()), "the former ends at once")
	found, err := w.s.Find(ctx, pam, KindInput{})
	require.NoError(t, err)
	require.Equal(t, third.SecretHint, found.Endpoint.SecretHint)
	for _, bad := range []string{"short", strings.Repeat("x", 15), strings.Repeat("x", 129), "has a space in its text", "ünïcode-characters-in-it", "whsec_dG9vc2hvcnQ=", "whsk_" + strings.Repeat("A", 43)} {
		refuses(w, pam, "secret", SecretInput{Secret: bad}, w.s.RotateSecret)
	}
	refuses(w, pam, "overlap_hours", SecretInput{OverlapHours: ptr(169)}, w.s.RotateSecret)
	refuses(w, pam, "overlap_hours", SecretInput{OverlapHours: ptr(-1)}, w.s.RotateSecret)
	refuses(w, pam, "kind", SecretInput{Kind: cloud.ThirdPartyEndpoint}, w.s.RotateSecret)
}

func TestKeysOfAnEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	own, deployment := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed([]byte(strings.Repeat("d", 32)))
	w.s.SignedBy(deployment.Public().(ed25519.PublicKey))
	made, err := w.s.Save(ctx, pam, EndpointInput{URL: ptr(good), Signature: ptr(cloud.SignatureAsymmetric)})
	require.NoError(t, err)
	require.NotNil(t, made.Endpoint.PublicKey, "the deployment's")
	text := "whsk_" + base64.StdEncoding.EncodeToString(own.Seed())
	keyed, err := w.s.Save(ctx, pam, EndpointInput{PrivateKey: &text})
	require.NoError(t, err)
	require.NotEqual(t, made.Endpoint.PublicKey, keyed.Endpoint.PublicKey)
	require.NotEqual(t, made.Endpoint.KeyID, keyed.Endpoint.KeyID)
	kept, err := w.s.Save(ctx, pam, EndpointInput{Enabled: ptr(true)})
	require.NoError(t, err)
	require.Equal(t, keyed.Endpoint.PublicKey, kept.Endpoint.PublicKey)
	_, err = w.s.RotateSecret(ctx, pam, SecretInput{Secret: secret})
	require.NoError(t, err)
	warned, err := w.s.Find(ctx, pam, KindInput{})
	require.NoError(t, err)
	require.Len(t, warned.Warnings, 1, "sixteen bytes are short for Standard Webhooks")
	native, err := w.s.Save(ctx, pam, EndpointInput{Signature: ptr(cloud.SignatureNative)})
	require.NoError(t, err)
	require.Nil(t, native.Endpoint.PublicKey)
	require.Empty(t, native.Warnings)
	back, err := w.s.Save(ctx, pam, EndpointInput{Signature: ptr(cloud.SignatureAsymmetric)})
	require.NoError(t, err)
	require.Equal(t, made.Endpoint.PublicKey, back.Endpoint.PublicKey, "an own key ends with its signature")
}

func TestAPartnerTestsItsEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.s.TestEndpoint(ctx, pam, MockInput{Event: "locker_delivery.delivered"})
	require.Equal(t, "WEBHOOK_ENDPOINT_NOT_FOUND", code(err))
	_, err = w.s.Save(ctx, pam, EndpointInput{URL: ptr(good)})
	require.NoError(t, err)
	refuses(w, pam, "event", MockInput{Event: "order.created"}, w.s.TestEndpoint)
	refuses(w, pam, "kind", MockInput{Event: "third_party_delivery.created"}, w.s.TestEndpoint)
	out, err := w.s.TestEndpoint(ctx, pam, MockInput{Event: "locker_delivery.delivered"})
	require.NoError(t, err)
	require.Equal(t, []any{true, true, 204, int64(7)}, []any{out.Result, out.Delivered, *out.HTTPStatus, *out.DurationMS})
	require.Contains(t, string(w.sent[0].work.Event.Body), `"livemode":false`)
	require.Contains(t, w.sent[0].work.Event.EventID, "LD-")
	w.answer = func(int, send) cloud.OutboxResult { return answered(500) }
	out, err = w.s.TestEndpoint(ctx, pam, MockInput{Event: "locker_delivery.picked_up"})
	require.NoError(t, err)
	require.Equal(t, []any{false, 500, "status 500"}, []any{out.Delivered, *out.HTTPStatus, *out.Error})

	log, err := w.s.List(ctx, pam, LogInput{Keyset: check.Keyset{PerPage: new(1)}})
	require.NoError(t, err)
	require.Equal(t, []any{1, out.LogID, "locker_delivery.picked_up", true, "provider"}, []any{log.PerPage, log.Deliveries[0].ID, log.Deliveries[0].Event, log.Deliveries[0].IsTest, log.Deliveries[0].Level})
	require.Equal(t, &out.LogID, log.NextBefore)
	log, err = w.s.List(ctx, pam, LogInput{Before: int64(out.LogID)})
	require.NoError(t, err)
	require.Len(t, log.Deliveries, 1)
	require.Nil(t, log.NextBefore)
	log, err = w.s.List(ctx, ray, LogInput{})
	require.NoError(t, err)
	require.Empty(t, log.Deliveries)
	for member, in := range map[string]LogInput{"per_page": {Keyset: check.Keyset{PerPage: new(201)}}, "status": {Status: "lost"}, "from": {From: "yesterday"}, "to": {To: "2026-13-01"}} {
		refuses(w, pam, member, in, w.s.List)
	}
	refuses(w, pam, "per_page", LogInput{Keyset: check.Keyset{PerPage: new(-1)}}, w.s.List)
	one, err := w.s.FindDelivery(ctx, pam, EntryInput{int64(out.LogID)})
	require.NoError(t, err)
	require.JSONEq(t, string(w.sent[1].work.Event.Body), string(one.Delivery.RequestBody))
	for name, c := range map[string]struct {
		by cloud.Caller
		id int64
	}{"another partner": {ray, int64(out.LogID)}, "another of the business": {tom, int64(out.LogID)}, "none": {pam, 999}} {
		_, err = w.s.FindDelivery(ctx, c.by, EntryInput{c.id})
		require.Equal(t, "WEBHOOK_DELIVERY_NOT_FOUND", code(err), name)
		_, err = w.s.Redeliver(ctx, c.by, EntryInput{c.id})
		require.Equal(t, "WEBHOOK_DELIVERY_NOT_FOUND", code(err), name)
	}
	_, err = w.s.Redeliver(ctx, ann, EntryInput{int64(out.LogID)})
	require.ErrorContains(t, err, "no provider")
	again, err := w.s.Redeliver(ctx, pam, EntryInput{int64(out.LogID)})
	require.NoError(t, err)
	require.Equal(t, cloud.OutboxPending, again.Status)
	one, err = w.s.FindDelivery(ctx, pam, EntryInput{int64(again.LogID)})
	require.NoError(t, err)
	require.Equal(t, out.LogID, *one.Delivery.ReplayOf)
	require.JSONEq(t, string(w.sent[1].work.Event.Body), string(one.Delivery.RequestBody), "the same bytes")
}

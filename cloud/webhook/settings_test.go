package webhook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsInputKnowsWhatWasThere(t *testing.T) {
	t.Parallel()
	f := func(raw string, given ...string) (in SettingsInput) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(raw), &in))
		want := map[string]bool{}
		for _, name := range given {
			want[name] = true
		}
		require.Equal(t, want, in.given)
		return in
	}
	f(`{}`)
	in := f(`{"enabled":null,"order_create_webhook_url":"https://a.example/"}`, "enabled", "order_create_webhook_url")
	require.Nil(t, in.Enabled)
	require.Equal(t, "https://a.example/", *in.OrderCreate)
	in = f(`{"settings":{"enabled":false,"unheard_of":1},"order_lifecycle_events":""}`, "enabled", "unheard_of", "order_lifecycle_events")
	require.False(t, *in.Enabled)
	f(`{"settings":null}`)
	f(`{"ENABLED":true}`, "ENABLED")
	require.Error(t, json.Unmarshal([]byte(`{"settings":[]}`), &in))
	require.Error(t, json.Unmarshal([]byte(`{"enabled":"yes"}`), &in))
}

func FuzzSettingsInput(f *testing.F) {
	f.Add([]byte(`{"settings":{"enabled":false}}`))
	f.Add([]byte(`{"webhook_sign_secret":null,"settings":{"settings":{"order_create_webhook_url":"a, b,,a"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var in SettingsInput
		if json.Unmarshal(raw, &in) != nil {
			return
		}
		for name, value := range in.urls() {
			if value == nil {
				continue
			}
			for _, u := range split(*value) {
				if u == "" {
					t.Errorf("%s has an empty address", name)
				}
			}
		}
	})
}

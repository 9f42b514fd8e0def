package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMasked(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"pickup_code":"550618","n":12345678901234567890}`:                                                       `{"n":12345678901234567890,"pickup_code":"******"}`,
		`[{"a":{"delivery_code":"1234567","pickup_code":null}}]`:                                                  `[{"a":{"delivery_code":"******","pickup_code":null}}]`,
		`{"pickup_code":{"value":"550618"},"pickup_code_active":true}`:                                            `{"pickup_code":"******","pickup_code_active":true}`,
		`{"note":"Code 550618, or 83061.","pickup_code":"550618","n":15506180,"short":"12","delivery_code":"12"}`: `{"note":"Code ******, or 83061.","pickup_code":"******","n":15506180,"short":"12","delivery_code":"******"}`,
		`not json`:       `null`,
		`{"a":1} and so`: `null`,
	} {
		require.JSONEq(t, want, string(Masked([]byte(in))))
	}
	require.NotContains(t, maskedText(`echo {"pickup_code": "550618", "delivery_code":"83061`), "550618")
	require.NotContains(t, maskedText(`echo {"pickup_code": "550618", "delivery_code":"83061`), "83061")
	require.NotContains(t, maskedText(`{"pickup_code":550618,"delivery_code":83061`), "550618")
	for _, said := range []string{"ok", "500 Internal Server Error", `{"error":"no such order"} (node 7)`, "null", ""} {
		require.Equal(t, said, maskedText(said), "what was answered is shown to its end")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for s, ok := range map[string]bool{"": false, "short": false, strings.Repeat("x", 16): true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
		"whsec_AAAAAAAAAAAAAAAAAAAAAAAA": true, "whsec_AAAAAAAAAAAAAAAA": false, "whsec_!!!!!!!!!!!!!!!!!!!!!!!!": false, "has a space in the middle": false, "snowman ☃ is not ASCII": false} {
		require.Equal(t, ok, goodSecret(s), s)
	}
	require.True(t, goodSecret(NewSecret()))
	require.Equal(t, "", hint([]byte("short")))
}

func FuzzMasked(f *testing.F) {
	f.Add([]byte(`{"a":[{"pickup_code":"550618"}]}`))
	f.Add([]byte(`{"pickup_code":["550618"]}`))
	f.Add([]byte(`1E1000`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var v any
		dec := json.NewDecoder(bytes.NewReader(Masked(body)))
		dec.UseNumber() // as large as they come
		require.NoError(t, dec.Decode(&v))
		var walk func(any)
		walk = func(v any) {
			switch x := v.(type) {
			case map[string]any:
				for k, inner := range x {
					if k == "pickup_code" || k == "delivery_code" {
						require.Contains(t, []any{nil, "******"}, inner)
					}
					walk(inner)
				}
			case []any:
				for _, inner := range x {
					walk(inner)
				}
			}
		}
		walk(v)
	})
}

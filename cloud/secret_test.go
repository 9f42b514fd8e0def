package cloud

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"password", "api_token", "webhook_sign_secret_next_standard", "X-Api-Key", "apiKey", "Card Number", "pin", "pickup_code"} {
		require.True(t, IsSecretName(name), name)
	}
	for _, name := range []string{"token_name", "shipping", "secretary", "code", "pinned", "secret_set"} {
		require.False(t, IsSecretName(name), name)
	}
}

func TestTextsOfDocumentsAreMasked(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"query":"mutation{a(password:\"x\\\"y\",n:1){b}}"}`:                                              `{"query":"mutation{a(password:\"***\",n:1){b}}"}`,
		`{"query":"mutation{a(t:\"\"\"x \\\"\"\" y\"\"\"){b}}"}`:                                           `{"query":"mutation{a(t:\"***\"){b}}"}`,
		`{"query":"mutation{a(t:\"x"}`:                                                                     `{"query":"mutation{a(t:\"***"}`,
		`{"query":"mutation($x:String,$y:Int){a(password : $x,n:$y){b}}","variables":{"x":"s","y":2}}`:     `{"query":"mutation($x:String,$y:Int){a(password : $x,n:$y){b}}","variables":{"x":"***","y":2}}`,
		`{"query":"mutation($i:I){a(input:$i){b}}","variables":{"i":{"password":"s","list":[{"pin":1}]}}}`: `{"query":"mutation($i:I){a(input:$i){b}}","variables":{"i":{"password":"***","list":[{"pin":"***"}]}}}`,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(given), &v))
		raw, err := json.Marshal(MaskToolArguments(GraphQLQueryTool, v))
		require.NoError(t, err)
		require.JSONEq(t, want, string(raw))
	}
	require.Equal(t, map[string]any{"query": `"Ann"`}, MaskToolArguments("find_order", map[string]any{"query": `"Ann"`}))
}

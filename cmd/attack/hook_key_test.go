package attack

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/signature"
)

// A receiver of v1a whose settings showed no key had to believe the first key that
// came, and a new key came without a word before.
func TestAttackKeysAreShownAndPublishedBefore(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	settings := g.must("PUT", "/api/v1/webhook-settings", g.box.Admin.Token, fmt.Sprintf(`{"webhook_sign_secret":%q,"order_create_webhook_url":%q,"webhook_url_options":[{"url":%q,"signature":"standard_webhooks_v1a"}]}`, companySecret, at, at))
	var published struct {
		Keys []struct{ X, Kid string }
	}
	require.NoError(t, json.Unmarshal([]byte(g.must("GET", "/.well-known/jwks.json", "", "").raw), &published))
	require.Len(t, published.Keys, 2, "the one in use and the next one")
	require.NotEqual(t, published.Keys[0].Kid, published.Keys[1].Kid)
	x, err := base64.RawURLEncoding.DecodeString(published.Keys[0].X)
	require.NoError(t, err)
	g.must("PUT", "/api/v1/third-party-delivery/webhook-endpoint", g.box.Provider.Token, fmt.Sprintf(`{"url":%q,"signature":"standard_webhooks_v1a"}`, at))
	endpoint := g.must("GET", "/api/v1/third-party-delivery/webhook-endpoint", g.box.Provider.Token, "")
	for _, r := range []struct {
		of   result
		path string
	}{{settings, "settings.webhook_url_options.0."}, {g.must("GET", "/api/v1/webhook-settings", g.box.Admin.Token, ""), "settings.webhook_url_options.0."}, {endpoint, "webhook_endpoint."}} {
		require.Equal(t, published.Keys[0].Kid, r.of.text(r.path+"kid"), r.of.raw)
		shown, err := signature.ParsePublicKey(r.of.text(r.path + "public_key"))
		require.NoError(t, err)
		require.Equal(t, ed25519.PublicKey(x), shown)
	}
	g.order(g.box.Admin.Token, "KEY-1")
	require.Equal(t, published.Keys[0].Kid, next(t, got, "order.created", "KEY-1").header.Get("X-Webhook-Key-Id"))
}

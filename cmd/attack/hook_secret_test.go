package attack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"crypto/ed25519"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// post is a request at a receiver of webhooks.
type post struct {
	header http.Header
	body   []byte
}

// inbox keeps what a receiver of webhooks got; events come in any order.
type inbox struct {
	arrived chan post
	kept    []post
}

// receiver takes webhooks.
func receiver(t *testing.T) (string, *inbox) {
	in := &inbox{arrived: make(chan post, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.arrived <- post{r.Header, body}
	}))
	t.Cleanup(s.Close)
	return s.URL, in
}

// next takes the first post about an event whose body contains a text; it waits
// for one that did not arrive yet.
func next(t *testing.T, in *inbox, event, text string) post {
	t.Helper()
	asked := func(p post) bool {
		return p.header.Get("X-Webhook-Event") == event && bytes.Contains(p.body, []byte(text))
	}
	if i := slices.IndexFunc(in.kept, asked); i >= 0 {
		p := in.kept[i]
		in.kept = slices.Delete(in.kept, i, i+1)
		return p
	}
	for {
		select {
		case p := <-in.arrived:
			if asked(p) {
				return p
			}
			in.kept = append(in.kept, p)
		case <-time.After(4 * time.Second):
			t.Fatalf("no %s with %q arrived", event, text)
		}
	}
}

// hooked is a cloud that may send to the loopback.
func hooked(t *testing.T, address string) *gateway {
	u, err := url.Parse(address)
	require.NoError(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	require.NoError(t, err)
	return launch(t, func(c *server.Config) {
		c.WebhookHTTP, c.WebhookNetworks, c.WebhookPorts = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []uint16{uint16(port)}
	})
}

const companySecret = "company-secret-0123456789abcdef"

func signedBy(secret string, p post) bool {
	return signature.Legacy([]byte(secret), p.body) == p.header.Get("Signature")
}

// What went to a customer's address was signed with the company's secret: the
// customer had to have it, and could sign what came to all others.
func TestAttackCustomersShareTheCompanysSecret(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	set := func(token, body string) result { return g.must("PUT", "/api/v1/webhook-settings", token, body) }
	set(g.box.Admin.Token, fmt.Sprintf(`{"webhook_sign_secret":%q,"order_create_webhook_url":"%s/company"}`, companySecret, at))
	made := set(g.box.Customer.Token, fmt.Sprintf(`{"order_create_webhook_url":"%s/customer"}`, at))
	own := made.text("generated_secret")
	require.GreaterOrEqual(t, len(own), 40, made.raw)
	require.NotContains(t, g.must("GET", "/api/v1/webhook-settings", g.box.Customer.Token, "").raw, own, "it is shown once")
	g.order(g.box.Customer.Token, "H-1")
	p := next(t, got, "order.created", "H-1")
	require.False(t, signedBy(companySecret, p))
	require.True(t, signedBy(own, p))
	require.Equal(t, 422, g.call("PUT", "/api/v1/webhook-settings", g.box.Customer.Token, `{"webhook_sign_secret":null}`).status, "an address is never without a secret of its own")
	r := g.call("POST", "/api/v1/client/batchOrderCreateAsync", g.box.Customer.Token, fmt.Sprintf(`{"postback_url":"%s/batch","orders":[{"type":"D","recipient":{"name":"Ann Lee","phone":"+14165550123","address_line1":"1 A St","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":1}]}]}`, at))
	require.Less(t, r.status, 300, r.raw)
	require.True(t, signedBy(own, next(t, got, "order.batch_processed", "")))

	t.Run("the caller chooses the overlap", func(t *testing.T) {
		set(g.box.Customer.Token, `{"webhook_sign_secret_next":"second-secret-0123456789abcdef","overlap_hours":0}`)
		g.order(g.box.Customer.Token, "H-2")
		p := next(t, got, "order.created", "H-2")
		require.True(t, signedBy("second-secret-0123456789abcdef", p), "0 is at once")
		require.Empty(t, p.header.Get("Signature-Next"))
		set(g.box.Customer.Token, `{"webhook_sign_secret_next":"third-secret-0123456789abcdefgh","overlap_hours":2}`)
		g.order(g.box.Customer.Token, "H-3")
		p = next(t, got, "order.created", "H-3")
		require.True(t, signedBy("second-secret-0123456789abcdef", p))
		require.Equal(t, signature.Legacy([]byte("third-secret-0123456789abcdefgh"), p.body), p.header.Get("Signature-Next"))
		for _, bad := range []string{"-1", "169", `"x"`} {
			require.Contains(t, []int{400, 422}, g.call("PUT", "/api/v1/webhook-settings", g.box.Customer.Token, `{"webhook_sign_secret_next":"fourth-secret-0123456789abcdefg","overlap_hours":`+bad+`}`).status, bad)
		}
	})
	t.Run("the log holds headers and nothing else", func(t *testing.T) {
		logs := g.must("GET", "/api/v1/webhook-delivery-logs", g.box.Customer.Token, "")
		id, _ := logs.at("logs.0.id").(float64)
		if id == 0 {
			id, _ = logs.at("deliveries.0.id").(float64)
		}
		require.NotZero(t, id, logs.raw)
		var entry result
		ring.Await(t, func() bool { // until the outcome is stored
			entry = g.must("GET", fmt.Sprintf("/api/v1/webhook-delivery-logs/%d", int(id)), g.box.Customer.Token, "")
			return strings.Contains(entry.raw, `"X-Webhook-Event"`)
		})
		require.NotContains(t, entry.raw, `"POST http`)
		require.NotContains(t, entry.raw, `"POST `)
	})
}

// A provider that set its own secret because the old one was known to others was
// signed for with the old one for a day.
func TestAttackAKnownSecretSignsOn(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	const base = "/api/v1/third-party-delivery"
	g.must("PUT", base+"/webhook-endpoint", g.box.Provider.Token, fmt.Sprintf(`{"url":%q}`, at))
	own := "provider-secret-0123456789abcdef"
	r := g.must("POST", base+"/webhook-endpoint/secret", g.box.Provider.Token, fmt.Sprintf(`{"secret":%q,"overlap_hours":0}`, own))
	require.Nil(t, r.at("previous_secret_valid_until"), r.raw)
	g.must("POST", base+"/webhook-endpoint/test", g.box.Provider.Token, `{"event":"locker_delivery.delivered"}`)
	p := next(t, got, "locker_delivery.delivered", "")
	unix, err := strconv.ParseInt(p.header.Get("X-Webhook-Timestamp"), 10, 64)
	require.NoError(t, err)
	require.Equal(t, signature.Provider([]byte(own), time.Unix(unix, 0), p.header.Get("X-Webhook-Delivery-Id"), p.body), p.header.Get("X-Webhook-Signature"))
	require.Equal(t, 422, g.call("POST", base+"/webhook-endpoint/secret", g.box.Provider.Token, `{"overlap_hours":169}`).status)
}

// A receiver that verifies v1a had to believe the key that the settings showed
// once: it is published with its id.
func TestAttackUnpublishedKeys(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	g.must("PUT", "/api/v1/webhook-settings", g.box.Admin.Token, fmt.Sprintf(`{"webhook_sign_secret":%q,"order_create_webhook_url":%q,"webhook_url_options":[{"url":%q,"signature":"standard_webhooks_v1a"}]}`, companySecret, at, at))
	set := g.must("GET", "/.well-known/jwks.json", "", "")
	var keys struct {
		Keys []struct{ Kty, Crv, X, Kid, Use, Alg string }
	}
	require.NoError(t, json.Unmarshal([]byte(set.raw), &keys))
	require.NotEmpty(t, keys.Keys)
	require.LessOrEqual(t, len(keys.Keys), 3)
	g.order(g.box.Admin.Token, "J-1")
	p := next(t, got, "order.created", "J-1")
	k := keys.Keys[0]
	require.Equal(t, []string{"OKP", "Ed25519", "sig", "EdDSA", k.Kid}, []string{k.Kty, k.Crv, k.Use, k.Alg, p.header.Get("X-Webhook-Key-Id")})
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	require.NoError(t, err)
	h := func(name string) string { return p.header.Get(name) }
	require.NoError(t, signature.VerifyStandardAsymmetric(h, p.body, time.Now(), ed25519.PublicKey(x)))
	require.False(t, strings.Contains(set.raw, `"d"`), "no private part")
}

// A driver's no was sent as staff's revocation, without its reason.
func TestAttackADeclineIsSentAsRevoked(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	g.must("PUT", "/api/v1/webhook-settings", g.box.Admin.Token, fmt.Sprintf(`{"webhook_sign_secret":%q,"order_lifecycle_webhook_url":%q}`, companySecret, at))
	p := g.order(g.box.Admin.Token, "D-1")
	me := g.must("GET", "/api/v1/user/me", g.box.Driver.Token, "")
	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/driver", p.id), g.box.Admin.Token, fmt.Sprintf(`{"driver_id":%v}`, me.at("user.id")))
	g.must("POST", fmt.Sprintf("/api/v1/driver/orders/%d/decline", p.id), g.box.Driver.Token, `{"reason":"van is full"}`)
	said := next(t, got, "order.driver_declined", "")
	require.Contains(t, string(said.body), "van is full")
	require.Contains(t, string(next(t, got, "order.driver_unassigned", "").body), `"reason":"declined"`)
}

package webhook

import (
	"crypto/ed25519"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signature"
)

// URLOptions say how what goes to one address is put and signed. What is
// missing is native.
type URLOptions struct {
	URL        string   `json:"url" required:"true" doc:"An address of this level's settings"`
	Format     string   `json:"format,omitempty" enum:"native,ce_binary,ce_structured"`
	Signature  string   `json:"signature,omitempty" enum:"native,standard_webhooks,standard_webhooks_v1a" doc:"standard_webhooks adds its headers beside the others, standard_webhooks_v1a an Ed25519 signature too"`
	Rate       *float64 `json:"rate_per_second,omitempty" min:"0.01" max:"1000" doc:"Attempts a second at most; what is more waits. Empty: as many as the receiver takes"`
	Burst      *int     `json:"burst,omitempty" min:"1" max:"1000" doc:"Attempts at once, with rate_per_second; empty: 1"`
	Sequence   bool     `json:"sequence,omitzero" doc:"X-Webhook-Sequence counts what goes to the address from 1, so that a receiver sees what is missing"`
	PrivateKey string   `json:"private_key,omitempty" doc:"Signs standard_webhooks_v1a: whsk_ and base64. Without one an own key is kept, else the deployment signs, with the key of /.well-known/jwks.json that X-Webhook-Key-Id names. It is never shown"`
}

// GraphQLName is the name of the type in GraphQL.
func (URLOptions) GraphQLName() string { return "WebhookUrlOptions" }

// URLOptionsBody are the options of an address as they are shown. PublicKey
// verifies standard_webhooks_v1a, KeyID is its thumbprint (RFC 7638); both are null
// for others.
type URLOptionsBody struct {
	URL       string   `json:"url"`
	Format    string   `json:"format"`
	Signature string   `json:"signature"`
	Rate      *float64 `json:"rate_per_second"`
	Burst     *int     `json:"burst"`
	Sequence  bool     `json:"sequence"`
	PublicKey *string  `json:"public_key"`
	KeyID     *string  `json:"kid"`
}

const (
	badKey   = "The key must be whsk_ and the base64 of an Ed25519 seed of 32 bytes, or of the seed and its public key."
	shortest = 24 // bytes of a key that Standard Webhooks advises
)

// check looks at what its bounds cannot say.
func (o URLOptions) check(p problems, member string) {
	if o.Burst != nil && o.Rate == nil {
		p.add(member+".burst", "Give rate_per_second too.")
	}
	if o.PrivateKey == "" {
		return
	}
	if _, err := signature.ParsePrivateKey(o.PrivateKey); err != nil || o.Signature != cloud.SignatureAsymmetric {
		p.add(member+".private_key", badKey)
	}
}

// apply sets an endpoint to what the options say. They have been checked.
func (o URLOptions) apply(e *cloud.Endpoint) {
	e.Format, e.Signature, e.Rate, e.Burst, e.Numbered = o.Format, o.Signature, 0, 0, o.Sequence
	if o.Rate != nil {
		e.Rate, e.Burst = *o.Rate, 1
	}
	if o.Burst != nil {
		e.Burst = *o.Burst
	}
	switch key, err := signature.ParsePrivateKey(o.PrivateKey); {
	case e.Signature != cloud.SignatureAsymmetric:
		e.SigningKey = nil
	case err == nil:
		e.SigningKey = key.Seed()
	}
}

// optionsOf are the options of an endpoint, as they are shown.
func (s *core) optionsOf(e cloud.Endpoint) URLOptionsBody {
	o := URLOptionsBody{URL: e.URL, Format: cloud.FormatNative, Signature: cloud.SignatureNative, Rate: cloud.OrNull(e.Rate), Burst: cloud.OrNull(e.Burst), Sequence: e.Numbered}
	if key := s.keyOf(e); key != nil {
		text, id := signature.PublicText(key), signature.KeyID(key)
		o.PublicKey, o.KeyID = &text, &id
	}
	if e.Format != "" {
		o.Format = e.Format
	}
	if e.Signature != "" {
		o.Signature = e.Signature
	}
	return o
}

// keyOf verifies the v1a signatures of an endpoint: its own key, else the
// deployment's; nil for endpoints without such signatures.
func (s *core) keyOf(e cloud.Endpoint) ed25519.PublicKey {
	switch {
	case e.Signature != cloud.SignatureAsymmetric:
		return nil
	case len(e.SigningKey) == ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(e.SigningKey).Public().(ed25519.PublicKey)
	}
	return s.signedBy
}

// standardForm is a plain secret as libraries of Standard Webhooks want it, ""
// for one that is in that form.
func standardForm(secret string) string {
	if secret == "" || strings.HasPrefix(secret, "whsec_") {
		return ""
	}
	return signature.StandardForm(secret)
}

// weak is a warning about secrets that are short for Standard Webhooks, where
// one of the endpoints is signed for by that.
func weak(es []cloud.Endpoint, secrets ...[]byte) []string {
	standard := slices.ContainsFunc(es, func(e cloud.Endpoint) bool {
		return e.Enabled && (e.Signature == cloud.SignatureStandard || e.Signature == cloud.SignatureAsymmetric)
	})
	for _, s := range secrets {
		key, err := signature.StandardKey(string(s))
		if standard && err == nil && len(key) > 0 && len(key) < shortest {
			return []string{"The secret has fewer than the 24 bytes that Standard Webhooks advises; some libraries refuse it."}
		}
	}
	return []string{}
}

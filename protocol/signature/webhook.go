package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of the schemes.
const (
	HeaderLegacy            = "Signature"
	HeaderLegacyNext        = "Signature-Next"
	HeaderV2                = "X-Webhook-Signature-V2"
	HeaderProvider          = "X-Webhook-Signature"
	HeaderProviderNext      = "X-Webhook-Signature-Next"
	HeaderDigest            = "X-Webhook-Content-Digest"
	HeaderTimestamp         = "X-Webhook-Timestamp"
	HeaderDeliveryID        = "X-Webhook-Delivery-Id"
	HeaderHandoff           = "X-Ohp-Signature"
	HeaderHandoffNext       = "X-Ohp-Signature-Next"
	HeaderHandoffTimestamp  = "X-Ohp-Timestamp"
	HeaderStandard          = "webhook-signature"
	HeaderStandardID        = "webhook-id"
	HeaderStandardTimestamp = "webhook-timestamp"
)

// Tolerance is how far a timestamp may be off, both ways.
const Tolerance = 300 * time.Second

// Limits of what a verifier reads.
const (
	maxHeader     = 4096
	maxSignatures = 16
	maxID         = 64
	minKey        = 16 // bytes of a decoded whsec_ secret
)

// Reasons why a webhook is refused.
var (
	// ErrMissing says that a header of the scheme is absent or unreadable.
	ErrMissing = errors.New("signature header is missing or unreadable")
	// ErrStale says that the timestamp is more than Tolerance off.
	ErrStale = errors.New("timestamp is too old or too far ahead")
	// ErrMismatch says that no listed signature is of any given key.
	ErrMismatch = errors.New("no signature matches")
)

// sumBody is the HMAC of the parts and then body.
func sumBody(key, body []byte, parts ...string) []byte {
	m := hmac.New(sha256.New, key)
	b := make([]byte, 0, 128)
	for _, p := range parts {
		b = append(b, p...)
	}
	m.Write(b)
	m.Write(body)
	return m.Sum(b[:0])
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// Legacy is the value of Signature.
func Legacy(secret, body []byte) string { return hex.EncodeToString(sumBody(secret, body)) }

// V2 is the value of X-Webhook-Signature-V2: one signature for each secret, in
// the order given, which is the new one first.
func V2(at time.Time, body []byte, secrets ...[]byte) string {
	out, stamp := make([]byte, 0, 130), unix(at)
	for i, s := range secrets {
		if i > 0 {
			out = append(out, ',')
		}
		out = hex.AppendEncode(out, sumBody(s, body, stamp, "."))
	}
	return string(out)
}

// Provider is the value of X-Webhook-Signature for an attempt at a time with a
// delivery id.
func Provider(secret []byte, at time.Time, deliveryID string, body []byte) string {
	return base64.StdEncoding.EncodeToString(sumBody(secret, body, unix(at), "\n", deliveryID, "\n"))
}

// Digest is the value of X-Webhook-Content-Digest.
func Digest(body []byte) string {
	d := sha256.Sum256(body)
	return hex.EncodeToString(d[:])
}

// Handoff is the value of X-Ohp-Signature.
func Handoff(secret []byte, at time.Time, body []byte) string {
	return "v1=" + hex.EncodeToString(sumBody(secret, body, unix(at), "."))
}

// Standard is the value of webhook-signature with one signature for each key,
// in the order given; keys come from StandardKey.
func Standard(id string, at time.Time, body []byte, keys ...[]byte) string {
	out, stamp := make([]byte, 0, 96), unix(at)
	for i, k := range keys {
		if i > 0 {
			out = append(out, ' ')
		}
		out = base64.StdEncoding.AppendEncode(append(out, "v1,"...), sumBody(k, body, id, ".", stamp, "."))
	}
	return string(out)
}

// StandardHeaders are the headers of Standard Webhooks of a body, signed with a secret as
// in settings: whsec_… or any text. Error: the secret's base64 is none.
func StandardHeaders(secret, id string, at time.Time, body []byte) ([][2]string, error) {
	key, err := StandardKey(secret)
	if err != nil {
		return nil, err
	}
	return [][2]string{{HeaderStandardID, id}, {HeaderStandardTimestamp, unix(at)}, {HeaderStandard, Standard(id, at, body, key)}}, nil
}

// StandardAsymmetric is one v1a signature, to stand in webhook-signature alone
// or beside others, separated by a space.
func StandardAsymmetric(key ed25519.PrivateKey, id string, at time.Time, body []byte) string {
	text := append([]byte(id+"."+unix(at)+"."), body...)
	return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, text))
}

// StandardKey gives the key bytes of a secret in the Standard Webhooks scheme:
// the decoding of what follows whsec_, or else the secret's own bytes. The
// native schemes always use the secret's own bytes.
func StandardKey(secret string) ([]byte, error) {
	rest, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil {
		return nil, errors.New("secret begins with whsec_ but the rest is not base64")
	}
	if len(key) < minKey {
		return nil, fmt.Errorf("secret holds %d bytes, at least %d are needed", len(key), minKey)
	}
	return key, nil
}

// StandardForm is the whsec_ form of a plain secret, with which any Standard
// Webhooks library verifies.
func StandardForm(secret string) string {
	if strings.HasPrefix(secret, "whsec_") {
		return secret
	}
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))
}

// Header looks up a header by name, "" when it is absent; http.Header.Get and
// the like.
type Header func(name string) string

// VerifyProvider verifies a webhook of a provider channel with any of the given
// secrets: signature, timestamp and, when it is sent, content digest.
func VerifyProvider(h Header, body []byte, now time.Time, secrets ...[]byte) error {
	at, id := h(HeaderTimestamp), h(HeaderDeliveryID)
	if !PlainID(id) {
		return fmt.Errorf("%w: %s", ErrMissing, HeaderDeliveryID)
	}
	if err := fresh(HeaderTimestamp, at, now); err != nil {
		return err
	}
	if d := h(HeaderDigest); d != "" && subtle.ConstantTimeCompare([]byte(d), []byte(Digest(body))) != 1 {
		return fmt.Errorf("%w: %s", ErrMismatch, HeaderDigest)
	}
	listed := decodeAll(base64.StdEncoding.Strict().DecodeString, h(HeaderProvider), h(HeaderProviderNext))
	return match(HeaderProvider, listed, secrets, func(s []byte) []byte { return sumBody(s, body, at, "\n", id, "\n") })
}

// VerifyV2 verifies X-Webhook-Signature-V2.
func VerifyV2(h Header, body []byte, now time.Time, secrets ...[]byte) error {
	at := h(HeaderTimestamp)
	if err := fresh(HeaderTimestamp, at, now); err != nil {
		return err
	}
	listed := decodeAll(hex.DecodeString, split(h(HeaderV2), ",")...)
	return match(HeaderV2, listed, secrets, func(s []byte) []byte { return sumBody(s, body, at, ".") })
}

// VerifyLegacy verifies Signature, which covers the body and no time: a copied
// request passes for ever. Prefer VerifyV2.
func VerifyLegacy(h Header, body []byte, secrets ...[]byte) error {
	listed := decodeAll(hex.DecodeString, h(HeaderLegacy), h(HeaderLegacyNext))
	return match(HeaderLegacy, listed, secrets, func(s []byte) []byte { return sumBody(s, body) })
}

// VerifyHandoff verifies X-Ohp-Signature.
func VerifyHandoff(h Header, body []byte, now time.Time, secrets ...[]byte) error {
	at := h(HeaderHandoffTimestamp)
	if err := fresh(HeaderHandoffTimestamp, at, now); err != nil {
		return err
	}
	value, ok := strings.CutPrefix(h(HeaderHandoff), "v1=")
	if !ok {
		return fmt.Errorf("%w: %s", ErrMissing, HeaderHandoff)
	}
	next, _ := strings.CutPrefix(h(HeaderHandoffNext), "v1=")
	return match(HeaderHandoff, decodeAll(hex.DecodeString, value, next), secrets, func(s []byte) []byte { return sumBody(s, body, at, ".") })
}

// VerifyStandard verifies webhook-signature with keys from StandardKey.
// Versions other than v1 are passed over.
func VerifyStandard(h Header, body []byte, now time.Time, keys ...[]byte) error {
	id, at, err := standardHead(h, now)
	if err != nil {
		return err
	}
	return match(HeaderStandard, standardListed(h, "v1,"), keys, func(k []byte) []byte { return sumBody(k, body, id, ".", at, ".") })
}

// VerifyStandardAsymmetric verifies a v1a signature with any of the public keys.
func VerifyStandardAsymmetric(h Header, body []byte, now time.Time, keys ...ed25519.PublicKey) error {
	id, at, err := standardHead(h, now)
	if err != nil {
		return err
	}
	text := append([]byte(id+"."+at+"."), body...)
	for _, sig := range standardListed(h, "v1a,") {
		for _, k := range keys {
			if len(k) == ed25519.PublicKeySize && ed25519.Verify(k, text, sig) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %s", ErrMismatch, HeaderStandard)
}

func standardHead(h Header, now time.Time) (id, at string, err error) {
	id, at = h(HeaderStandardID), h(HeaderStandardTimestamp)
	if !PlainID(id) {
		return "", "", fmt.Errorf("%w: %s", ErrMissing, HeaderStandardID)
	}
	return id, at, fresh(HeaderStandardTimestamp, at, now)
}

func standardListed(h Header, version string) [][]byte {
	var values []string
	for _, v := range split(h(HeaderStandard), " ") {
		if rest, ok := strings.CutPrefix(v, version); ok {
			values = append(values, rest)
		}
	}
	return decodeAll(base64.StdEncoding.Strict().DecodeString, values...)
}

// Verify tries every scheme whose header is there, strongest first, with secrets
// as each scheme reads them, and names the header that matched. A secret that
// begins with whpk_ is a public key: it verifies v1a signatures and nothing
// else. When no scheme matches, the error is that of the last one tried.
func Verify(h Header, body []byte, now time.Time, secrets ...string) (scheme string, err error) {
	var native, standard [][]byte
	var public []ed25519.PublicKey
	for _, s := range secrets {
		if KeyText(s) {
			if k, err := ParsePublicKey(s); err == nil {
				public = append(public, k)
			}
			continue
		}
		native = append(native, []byte(s))
		if k, err := StandardKey(s); err == nil {
			standard = append(standard, k)
		}
	}
	err = ErrMissing
	for _, s := range []struct {
		name string
		try  func() error
	}{
		{HeaderStandard, func() error {
			if len(public) > 0 && VerifyStandardAsymmetric(h, body, now, public...) == nil {
				return nil
			}
			return VerifyStandard(h, body, now, standard...)
		}},
		{HeaderProvider, func() error { return VerifyProvider(h, body, now, native...) }},
		{HeaderV2, func() error { return VerifyV2(h, body, now, native...) }},
		{HeaderHandoff, func() error { return VerifyHandoff(h, body, now, native...) }},
		{HeaderLegacy, func() error { return VerifyLegacy(h, body, native...) }},
	} {
		if h(s.name) == "" {
			continue
		}
		if err = s.try(); err == nil {
			return s.name, nil
		}
		if errors.Is(err, ErrStale) { // a weaker scheme must not let it in
			return "", err
		}
	}
	return "", err
}

// fresh checks a timestamp header: whole unix seconds, near now.
func fresh(name, value string, now time.Time) error {
	sec, err := strconv.ParseInt(value, 10, 64)
	if err != nil || sec < 0 || value != strconv.FormatInt(sec, 10) {
		return fmt.Errorf("%w: %s", ErrMissing, name)
	}
	// Compared in whole seconds: a far-off value must not wrap around.
	if d := now.Unix() - sec; d > int64(Tolerance/time.Second) || d < -int64(Tolerance/time.Second) {
		return fmt.Errorf("%w: %s", ErrStale, name)
	}
	return nil
}

// PlainID reports whether an id can stand in a signed text: 1 to 64 of A-Z, a-z,
// 0-9, _ and -, so that the separators cannot be part of it.
func PlainID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// split cuts a list header; one that is too long is as good as none.
func split(value, sep string) []string {
	if value == "" || len(value) > maxHeader {
		return nil
	}
	parts := strings.SplitN(value, sep, maxSignatures+1)
	return parts[:min(len(parts), maxSignatures)]
}

func decodeAll(decode func(string) ([]byte, error), values ...string) [][]byte {
	var out [][]byte
	for _, v := range values {
		if v == "" || len(v) > maxHeader {
			continue
		}
		if b, err := decode(strings.TrimSpace(v)); err == nil {
			out = append(out, b)
		}
	}
	return out
}

// match compares every listed signature with that of every key and does not
// stop at the first that is right.
func match(name string, listed, keys [][]byte, sign func(key []byte) []byte) error {
	if len(listed) == 0 {
		return fmt.Errorf("%w: %s", ErrMissing, name)
	}
	found := 0
	for _, k := range keys {
		if len(k) == 0 {
			continue // no signature of the key
		}
		want := sign(k)
		for _, got := range listed {
			found |= subtle.ConstantTimeCompare(want, got)
		}
	}
	if found != 1 {
		return fmt.Errorf("%w: %s", ErrMismatch, name)
	}
	return nil
}

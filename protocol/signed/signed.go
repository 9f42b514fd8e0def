// Package signed seals messages of the device link into COSE envelopes and opens
// them, each for one purpose only.
//
// No function keeps state, and all are safe for concurrent use. Errors never
// hold key material.
package signed

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/veraison/go-cose"

	"github.com/postern-io/postern/protocol/wire"
)

// Purpose keeps one kind of signed message from passing for another. It is
// signed as external data and never travels.
type Purpose string

// Purposes of the device link.
const (
	ForCommand Purpose = "postern/1/command"
	ForConfig  Purpose = "postern/1/config"
	ForTime    Purpose = "postern/1/time"
	ForCodes   Purpose = "postern/1/codes"
	ForQR      Purpose = "postern/1/qr"
	ForReceipt Purpose = "postern/1/receipt"
)

// ForRelease is the purpose of a release's key, which signs programs and nothing else.
const ForRelease Purpose = "postern/1/release"

// ErrSignature says that an envelope is malformed, signed by no known key,
// or not signed for this purpose.
var ErrSignature = errors.New("signature does not verify")

// Signer signs device messages as COSE_Sign1 (RFC 9052) with EdDSA and the key
// id in the protected header. Safe for concurrent use.
type Signer struct {
	id     []byte
	public ed25519.PublicKey
	signer cose.Signer
}

// NewSigner uses key; its id is the first eight bytes of the public key.
func NewSigner(key ed25519.PrivateKey) (*Signer, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("signing key has %d bytes, want %d", len(key), ed25519.PrivateKeySize)
	}
	s, err := cose.NewSigner(cose.AlgorithmEdDSA, crypto.Signer(key))
	if err != nil {
		return nil, fmt.Errorf("use signing key: %w", err)
	}
	public := key.Public().(ed25519.PublicKey)
	return &Signer{id: KeyID(public), public: public, signer: s}, nil
}

// KeyID names a public key: its first eight bytes.
func KeyID(k ed25519.PublicKey) []byte { return append([]byte(nil), k[:8]...) }

// Pinned is the public half, as devices pin it.
func (s *Signer) Pinned() wire.PinnedKey {
	return wire.PinnedKey{ID: s.id, Key: append([]byte(nil), s.public...)}
}

// Sign returns the envelope that carries payload, one of wire's signed
// messages.
func (s *Signer) Sign(p Purpose, payload any) ([]byte, error) {
	b, err := wire.Encode(payload)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", p, err)
	}
	m := cose.NewSign1Message()
	m.Headers.Protected.SetAlgorithm(cose.AlgorithmEdDSA)
	m.Headers.Protected[cose.HeaderLabelKeyID] = s.id
	m.Payload = b
	if err := m.Sign(rand.Reader, []byte(p), s.signer); err != nil {
		return nil, fmt.Errorf("sign %s: %w", p, err)
	}
	return m.MarshalCBOR()
}

// Keys are public keys that a device trusts, by key id. Replace the map to
// change it; it is never written to.
type Keys map[string]ed25519.PublicKey

// PinnedKeys makes Keys of pinned ones, leaving malformed ones out.
func PinnedKeys(pinned []wire.PinnedKey) Keys {
	k := make(Keys, len(pinned))
	for _, p := range pinned {
		if len(p.Key) == ed25519.PublicKeySize {
			k[string(p.ID)] = ed25519.PublicKey(p.Key)
		}
	}
	return k
}

// Open verifies envelope for purpose p and decodes its payload into out. The
// error is ErrSignature when the envelope must not be trusted, and wraps
// wire.ErrBad when a trusted payload cannot be read.
func (k Keys) Open(p Purpose, envelope []byte, out any) error {
	if len(envelope) > wire.MaxPayload {
		return fmt.Errorf("%w: %d bytes", ErrSignature, len(envelope))
	}
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(envelope); err != nil {
		return fmt.Errorf("%w: not an envelope", ErrSignature)
	}
	alg, err := m.Headers.Protected.Algorithm()
	if err != nil || alg != cose.AlgorithmEdDSA {
		return fmt.Errorf("%w: algorithm", ErrSignature)
	}
	id, _ := m.Headers.Protected[cose.HeaderLabelKeyID].([]byte)
	key, ok := k[string(id)]
	if !ok {
		return fmt.Errorf("%w: key %x is not pinned", ErrSignature, id)
	}
	v, err := cose.NewVerifier(cose.AlgorithmEdDSA, crypto.PublicKey(key))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if err := m.Verify([]byte(p), v); err != nil {
		return ErrSignature
	}
	return wire.Decode(m.Payload, out)
}

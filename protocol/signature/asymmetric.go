package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Prefixes of keys of the v1a signatures as text.
const (
	PrivatePrefix = "whsk_"
	PublicPrefix  = "whpk_"
)

// ParsePrivateKey reads a private key: whsk_ and the base64 of its seed of 32
// bytes, or of the seed with the public key behind it, 64 bytes.
func ParsePrivateKey(text string) (ed25519.PrivateKey, error) {
	rest, ok := strings.CutPrefix(text, PrivatePrefix)
	if !ok {
		return nil, errors.New("a private key begins with " + PrivatePrefix)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil {
		return nil, errors.New("what follows " + PrivatePrefix + " is not base64")
	}
	switch len(b) {
	case ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(b), nil
	case ed25519.PrivateKeySize:
		k := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
		if string(k) != string(b) {
			return nil, errors.New("the private key's second half is not its public key")
		}
		return k, nil
	}
	return nil, fmt.Errorf("a private key has 32 or 64 bytes, this has %d", len(b))
}

// ParsePublicKey reads a public key: whpk_ and the base64 of its 32 bytes.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	rest, ok := strings.CutPrefix(text, PublicPrefix)
	if !ok {
		return nil, errors.New("a public key begins with " + PublicPrefix)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("what follows " + PublicPrefix + " is not the base64 of 32 bytes")
	}
	return b, nil
}

// PublicKeyText is the text of the public part of a private key.
func PublicKeyText(k ed25519.PrivateKey) string { return PublicText(k.Public().(ed25519.PublicKey)) }

// PublicText is the text of a public key, as ParsePublicKey reads it.
func PublicText(k ed25519.PublicKey) string {
	return PublicPrefix + base64.StdEncoding.EncodeToString(k)
}

// KeyText reports whether a secret is the text of a v1a key, which must not be
// used as the key of an HMAC: a public key is known to others.
func KeyText(secret string) bool {
	return strings.HasPrefix(secret, PrivatePrefix) || strings.HasPrefix(secret, PublicPrefix)
}

// HeaderKeyID names the key of a key set that a v1a signature was made with.
const HeaderKeyID = "X-Webhook-Key-Id"

// KeyID is the id of a public key in a key set: its thumbprint (RFC 7638).
func KeyID(k ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(k) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// KeySet is a JSON Web Key Set of public keys that sign v1a (RFC 7517, 8037).
func KeySet(keys ...ed25519.PublicKey) []byte {
	b := []byte(`{"keys":[`)
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","kid":"`+KeyID(k)+`","x":"`+base64.RawURLEncoding.EncodeToString(k)+`"}`...)
	}
	return append(b, "]}\n"...)
}

// Package seal encrypts small secrets before they are stored: webhook secrets,
// event bodies that carry pickup codes, code parameters of cabinets.
//
// A sealed value is AES-256-GCM under one key from the settings. The purpose is
// authenticated with it, so that a value taken from one row or column does not
// open in another. Nothing here keeps state that changes; a Box is safe for
// concurrent use.
//
//	byte 0      version, 1
//	bytes 1-12  nonce, random
//	rest        ciphertext and 16 bytes of tag
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

const (
	version  = 1
	overhead = 1 + 12 + 16
)

// ErrOpen is returned by Open when a value was not sealed by this key for this
// purpose, or was changed since.
var ErrOpen = errors.New("sealed value does not open with this key and purpose")

// Box seals and opens under one key.
type Box struct{ aead cipher.AEAD }

// New returns a Box for key, which is KeySize bytes from a good source.
func New(key []byte) (*Box, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("sealing key has %d bytes, want %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	return &Box{aead: aead}, nil
}

// Seal encrypts plain for purpose. Sealing the same value twice gives different
// bytes. The result is never nil, also for an empty plain.
func (b *Box) Seal(purpose string, plain []byte) []byte {
	out := make([]byte, 1+b.aead.NonceSize(), overhead+len(plain))
	out[0] = version
	_, _ = rand.Read(out[1:]) // never fails, see crypto/rand
	return b.aead.Seal(out, out[1:], plain, additional(purpose))
}

// Open decrypts what Seal returned for the same purpose. The error is ErrOpen,
// whatever was wrong, so that it teaches nothing about the value.
func (b *Box) Open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < overhead || sealed[0] != version {
		return nil, ErrOpen
	}
	nonce, text := sealed[1:1+b.aead.NonceSize()], sealed[1+b.aead.NonceSize():]
	plain, err := b.aead.Open(nil, nonce, text, additional(purpose))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// additional binds version and purpose to the ciphertext.
func additional(purpose string) []byte { return append([]byte{version}, purpose...) }

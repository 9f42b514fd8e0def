// Package passcode computes what cloud and cabinet must agree on about codes
// that people type: how a code looks, and the verifier by which a cabinet
// recognises it without holding it. Nothing here logs or keeps a code. All
// functions are safe for concurrent use; Verifier uses much memory for a
// moment, so callers run one at a time per core.
package passcode

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Lengths of codes in digits.
const (
	PickupDigits   = 6
	DeliveryDigits = 7
	StaffDigits    = 8
)

// Sizes of a device's secrets in bytes.
const (
	SaltSize     = 16
	KeySize      = 32
	VerifierSize = 32
)

// DefaultParams cost 50 to 150 ms a try on a small board.
func DefaultParams() wire.CodeParams { return wire.CodeParams{MemoryKiB: 8192, Passes: 3} }

// Verifier is HMAC-SHA256(key, argon2id(code, salt)): a stolen list without
// the key gives no code. salt has SaltSize bytes, key has KeySize.
func Verifier(code string, salt, key []byte, p wire.CodeParams) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(argon2.IDKey([]byte(code), salt, p.Passes, p.MemoryKiB, 1, 32))
	return m.Sum(nil)
}

// Draw makes a random code of so many digits that does not start with 0000.
func Draw(digits int) string {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	for {
		n, err := rand.Int(rand.Reader, limit)
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		s := n.String()
		s = strings.Repeat("0", digits-len(s)) + s
		if !strings.HasPrefix(s, "0000") {
			return s
		}
	}
}

// Valid reports whether s is 6 to 8 digits.
func Valid(s string) bool {
	if len(s) < PickupDigits || len(s) > StaffDigits {
		return false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Prefix begins the text of a pickup code's QR symbol.
const Prefix = "PU:"

// QR is the text of a pickup code's QR symbol.
func QR(device, code string) string { return Prefix + device + ":" + code }

// ParseQR reads what QR wrote. ok is false for anything else, or when it is
// for another device.
func ParseQR(device, text string) (code string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), Prefix)
	if !ok {
		return "", false
	}
	dev, code, ok := strings.Cut(rest, ":")
	return code, ok && dev == device && topic.ValidCode(dev) && Valid(code)
}

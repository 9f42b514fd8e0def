package signed

import (
	"encoding/base32"
	"fmt"
	"strings"
	"unicode"

	"github.com/postern-io/postern/protocol/wire"
)

// PassPrefix begins the text of a signed QR code.
const PassPrefix = "PX:"

// MaxPassText is how many characters the text of a signed QR code has at most. A
// symbol of that size is still read from a telephone's screen.
const MaxPassText = 1400

// passLetters have neither signs nor small letters, so that a QR symbol holds them in
// its alphanumeric mode and keyboards of other layouts type most of them alike.
var passLetters = base32.StdEncoding.WithPadding(base32.NoPadding)

// SignPass returns the text of the QR code that carries p. The error wraps
// wire.ErrBad for a pass that breaks a limit, or whose text is longer than
// MaxPassText. The text opens doors: it belongs into no log and no record.
func (s *Signer) SignPass(p wire.Pass) (string, error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	envelope, err := s.Sign(ForQR, p)
	if err != nil {
		return "", err
	}
	text := PassPrefix + passLetters.EncodeToString(envelope)
	if len(text) > MaxPassText {
		return "", fmt.Errorf("%w: pass of %d characters, more than %d", wire.ErrBad, len(text), MaxPassText)
	}
	return text, nil
}

// IsPass reports whether what a scanner sent is, or was meant to be, a signed QR
// code, in whatever case and with whatever a scanner puts before it.
func IsPass(text string) bool {
	_, found := cutPass(text)
	return found
}

// cutPass gives the letters behind the prefix.
func cutPass(text string) (letters string, found bool) {
	_, letters, found = strings.Cut(strings.ToUpper(text), PassPrefix)
	return letters, found
}

// OpenPass verifies the text of a signed QR code. The error is ErrSignature when it
// must not be trusted, and wraps wire.ErrBad when what is signed breaks a limit. It
// never holds the text.
func (k Keys) OpenPass(text string) (p wire.Pass, err error) {
	letters, _ := cutPass(text)
	letters = strings.TrimFunc(letters, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if len(letters) == 0 || len(letters) > MaxPassText {
		return p, fmt.Errorf("%w: %d characters", ErrSignature, len(letters))
	}
	envelope, err := passLetters.DecodeString(letters)
	if err != nil {
		return p, fmt.Errorf("%w: not the letters of a signed QR code", ErrSignature)
	}
	if err := k.Open(ForQR, envelope, &p); err != nil {
		return wire.Pass{}, err
	}
	if err := p.Check(); err != nil {
		return wire.Pass{}, err
	}
	return p, nil
}

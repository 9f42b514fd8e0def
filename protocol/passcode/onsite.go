package passcode

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"strings"
	"time"
)

// OnSiteLength is the number of characters of an on-site token.
const OnSiteLength = 6

const (
	onSitePurpose = "postern/1/on-site"
	onSiteStep    = time.Minute
	// Steps before and after the present one whose tokens count: people type for a
	// while, and clocks differ.
	onSiteBefore, onSiteAfter = 2, 1
	// onSiteLetters are 32 that people do not mix up: no I, O, 0 and 1.
	onSiteLetters = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
)

// OnSite is the token that a cabinet's screen shows in the minute of at: whoever can type it
// stands before the screen. It is OnSiteLength characters out of 32, 30 bits, made with the
// device's code key, and opens nothing by itself. The bytes that it is made of never change.
func OnSite(key []byte, device string, at time.Time) string {
	return onSite(key, device, at.Unix()/int64(onSiteStep/time.Second))
}

func onSite(key []byte, device string, step int64) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(onSitePurpose))
	m.Write([]byte{0})
	m.Write([]byte(device))
	m.Write([]byte{0})
	m.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	bits := binary.BigEndian.Uint32(m.Sum(nil))
	var out [OnSiteLength]byte
	for i := range out {
		out[i] = onSiteLetters[bits&31]
		bits >>= 5
	}
	return string(out[:])
}

// IsOnSite reports whether a text is the token of a cabinet's screen at a time, a little
// before or after it. Case, spaces and hyphens do not count.
func IsOnSite(key []byte, device, text string, at time.Time) bool {
	text = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(text))
	step, same := at.Unix()/int64(onSiteStep/time.Second), 0
	for i := step - onSiteBefore; i <= step+onSiteAfter; i++ {
		same |= subtle.ConstantTimeCompare([]byte(onSite(key, device, i)), []byte(text))
	}
	return same == 1
}

package cloud

import (
	"crypto/rand"
	"strings"
)

// Tracking numbers are SR, eleven random symbols and a check symbol. The symbols
// hold no vowel and nothing that reads like another: 29^11 numbers (1.2e16), of
// which none says anything about another. Counting symbols from 0, the sum of
// i*v(i) for i = 1 to 12 is 0 modulo 29. As 29 is a prime, every wrong symbol and
// every swap of two is found.
const (
	numberPrefix   = "SR"
	numberSymbols  = "23456789BCDFGHJKLMNPQRSTVWXYZ"
	numberLength   = 12 // with the check symbol, without the prefix
	oldNumberDigit = 9  // of the numbers before: computed from the order's id
)

// OrderNumber is the number of the order that a package's number begins with: all before
// its last hyphen and digits. ok is false for a text that is no package's number.
func OrderNumber(text string) (order string, ok bool) {
	i := strings.LastIndexByte(text, '-')
	if i <= 0 || strings.Trim(text[i+1:], "0123456789") != "" {
		return "", false
	}
	return text[:i], true
}

// NewTrackingNumber makes a number from crypto/rand. Safe for concurrent use.
func NewTrackingNumber() string {
	out := append(make([]byte, 0, len(numberPrefix)+numberLength), numberPrefix...)
	sum := 0
	for i := 1; i < numberLength; i++ {
		n := randomSymbol()
		sum += i * n
		out = append(out, numberSymbols[n])
	}
	return string(append(out, numberSymbols[checkSymbol(sum)]))
}

// randomSymbol is evenly one of the symbols: bytes beyond the last multiple are
// drawn again.
func randomSymbol() int {
	const n = len(numberSymbols)
	for {
		var b [1]byte
		_, _ = rand.Read(b[:]) // never fails
		if int(b[0]) < 256/n*n {
			return int(b[0]) % n
		}
	}
}

// checkSymbol solves sum + 12*v = 0 modulo 29: 12 times 17 is 1.
func checkSymbol(sum int) int {
	const n, inverse = len(numberSymbols), 17
	return (n - sum%n) * inverse % n
}

// NumberForm says of what form a tracking number is.
type NumberForm int

// Forms.
const (
	ForeignNumber NumberForm = iota // of a partner or carrier
	RandomNumber                    // as NewTrackingNumber makes them, or of a package of such an order
	MistypedNumber
	LegacyNumber // SR and nine digits: anybody can compute these
)

// FormOf is the form of a number, however it is written.
func FormOf(number string) NumberForm {
	key := NumberKey(number)
	order, _, _ := strings.Cut(key, "-")
	symbols, ours := strings.CutPrefix(order, numberPrefix)
	switch {
	case !ours:
		return ForeignNumber
	case len(symbols) == oldNumberDigit && onlyDigits(symbols):
		return LegacyNumber
	case len(symbols) != numberLength || strings.Trim(symbols, numberSymbols) != "":
		return ForeignNumber
	}
	sum := 0
	for i, c := range []byte(symbols) {
		sum += (i + 1) * strings.IndexByte(numberSymbols, c)
	}
	if sum%len(numberSymbols) != 0 {
		return MistypedNumber
	}
	return RandomNumber
}

// NumberKey is what makes two tracking numbers the same. Case never matters; of
// our own neither do spaces and hyphens, but for the one before a package's
// number: sr 7kq4-m2xd 9htb is SR7KQ4M2XD9HTB.
func NumberKey(number string) string {
	number = strings.ToUpper(number)
	if order, rest, ok := strings.Cut(strings.TrimSpace(number), "-"); ok && packagePart(rest) && len(order) == len(numberPrefix)+oldNumberDigit {
		return strings.TrimSpace(number) // SR204518837-1
	}
	want := len(numberPrefix) + numberLength
	key := make([]byte, 0, want)
	for i := range len(number) {
		switch c := number[i]; {
		case c == ' ' || c == '-':
		case len(key) < len(numberPrefix) && c == numberPrefix[len(key)], len(key) >= len(numberPrefix) && strings.IndexByte(numberSymbols, c) >= 0:
			key = append(key, c)
		default:
			return number
		}
		if len(key) == want {
			rest := strings.TrimSpace(number[i+1:])
			if p, ok := strings.CutPrefix(rest, "-"); rest == "" || ok && packagePart(p) {
				return string(key) + rest
			}
			return number
		}
	}
	return number
}

// packagePart reports whether s numbers a package of an order.
func packagePart(s string) bool { return len(s) >= 1 && len(s) <= 4 && onlyDigits(s) }

func onlyDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

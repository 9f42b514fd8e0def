package scanner

import (
	"strings"

	"github.com/postern-io/postern/protocol/gs1"
)

// carrierNumbers are forms of carriers' tracking numbers that can be told from
// other texts by a check digit: letters are in upper case, without spaces.
var carrierNumbers = []func(string) bool{isPostal, isUPS, isUSPS}

// carrierNumber is the carrier's tracking number on a label, as carriers write it
// in data: without the spaces and hyphens of print. "" is none.
func carrierNumber(label gs1.Scan) string {
	text := label.Text
	if label.Kind != gs1.Plain {
		text = ""
		for _, ai := range []string{"91", "92", "93", "94", "95"} { // of the post of the USA, behind a postcode
			if v := label.Value(ai); v != "" {
				text = ai + v
				break
			}
		}
	}
	text = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(text))
	for _, is := range carrierNumbers {
		if is(text) {
			return text
		}
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isPostal is a postal item of UPU standard S10: two letters, eight digits and
// their check digit, a country.
func isPostal(s string) bool {
	if len(s) != 13 || !isLetter(s[0]) || !isLetter(s[1]) || !isLetter(s[11]) || !isLetter(s[12]) {
		return false
	}
	sum := 0
	for i, weight := range [8]int{8, 6, 4, 2, 3, 5, 9, 7} {
		if !isDigit(s[2+i]) {
			return false
		}
		sum += weight * int(s[2+i]-'0')
	}
	check := 11 - sum%11
	switch check {
	case 10:
		check = 0
	case 11:
		check = 5
	}
	return s[10] == byte('0'+check)
}

// isUPS is 1Z, 15 letters or digits, and their check digit: letters count from
// A = 2 on, by their last digit, and every second place twice.
func isUPS(s string) bool {
	if len(s) != 18 || s[:2] != "1Z" || !isDigit(s[17]) {
		return false
	}
	sum := 0
	for i := 2; i < 17; i++ {
		var value int
		switch c := s[i]; {
		case isDigit(c):
			value = int(c - '0')
		case isLetter(c):
			value = (int(c-'A') + 2) % 10
		default:
			return false
		}
		if i%2 == 1 {
			value *= 2
		}
		sum += value
	}
	return int(s[17]-'0') == (10-sum%10)%10
}

// isUSPS is an Intelligent Mail package number of 22 digits: 91 to 95 first, a
// check digit as GS1's last.
func isUSPS(s string) bool {
	return len(s) == 22 && s[0] == '9' && s[1] >= '1' && s[1] <= '5' && gs1.IsKey(s)
}

package gs1

import (
	"fmt"
	"strings"
	"time"
)

// CheckDigit is the digit that completes a number of digits: from the right, with the weights
// 3, 1, 3 and so on, the sum of all reaches the next ten. -1 for what is no number. Source:
// General Specifications, 7.9.
func CheckDigit(s string) int {
	sum, weight := 0, 3
	for i := len(s) - 1; i >= 0; i-- {
		d := s[i] - '0'
		if d > 9 {
			return -1
		}
		sum += int(d) * weight
		weight = 4 - weight
	}
	return (10 - sum%10) % 10
}

// IsKey reports whether a number ends with its check digit.
func IsKey(s string) bool {
	return len(s) > 1 && CheckDigit(s[:len(s)-1]) == int(s[len(s)-1]-'0')
}

// Check says what is wrong with a value of the identifier; nil: nothing.
func (x *Identifier) Check(value string) error {
	if !x.valid(value) {
		return fmt.Errorf("(%s) %s: %s", x.AI, x.Title, x.fault(value))
	}
	return nil
}

// fault is what is wrong with a value in words.
func (x *Identifier) fault(value string) string {
	if n := len(value); n < x.min || n > x.max {
		if x.min == x.max {
			return fmt.Sprintf("%d characters, must be %d", n, x.min)
		}
		return fmt.Sprintf("%d characters, must be %d to %d", n, x.min, x.max)
	}
	rest := value
	for _, p := range x.parts {
		s := rest[:p.takeCharacters(rest)]
		rest = rest[len(s):]
		switch {
		case !p.hasSet(s):
			return fmt.Sprintf("%q has characters that are not allowed", s)
		case !p.follows(s):
			return fmt.Sprintf("%q is no %s", s, map[string]string{"key": "number with its check digit", "date": "date YYMMDD", "day": "date YYMMDD with a day", "hour": "time YYMMDDhh",
				"minute": "time YYMMDDhhmm", "clock": "time mm or mmss", "yes": "0 or 1", "pieces": "piece of how many", "zero": "0", "land": "code of a country", "text": "percent-encoded text",
				"lat": "latitude", "lon": "longitude", "minus": "minus sign"}[p.rule])
		}
	}
	return "is too long"
}

// valid reports whether a value follows the rules of its identifier.
func (x *Identifier) valid(value string) bool {
	if len(value) < x.min || len(value) > x.max {
		return false
	}
	for i := range x.parts {
		p := &x.parts[i]
		n := p.takeCharacters(value)
		s := value[:n]
		if n < p.min || !p.hasSet(s) || !p.follows(s) {
			return false
		}
		value = value[n:]
	}
	return value == ""
}

// takeCharacters is how much of the rest of a value is the part's: as much as it may have. Parts of
// several lengths stand at the end of their identifiers.
func (p *part) takeCharacters(rest string) int { return min(p.max, len(rest)) }

// setX has the characters of GS1's first set, setY those of its second.
var setX, setY [256]bool

func init() {
	for _, c := range []byte(`!"%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz`) {
		setX[c] = true
	}
	for _, c := range []byte("#-/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		setY[c] = true
	}
}

func (p *part) hasSet(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch p.kind {
		case 'n':
			if c-'0' > 9 {
				return false
			}
		case 'x':
			if !setX[c] {
				return false
			}
		default:
			if !setY[c] {
				return false
			}
		}
	}
	return true
}

// follows reports whether a text follows the rule of its part.
func (p *part) follows(s string) bool {
	switch p.rule {
	case "":
		return true
	case "key":
		return IsKey(s)
	case "date":
		return isDate(s, true)
	case "day":
		return isDate(s, false)
	case "hour":
		return isDate(s[:6], false) && number(s[6:]) < 24
	case "minute":
		return isDate(s[:6], false) && (s[6:] == "9999" || number(s[6:8]) < 24 && number(s[8:]) < 60)
	case "clock":
		return len(s)%2 == 0 && (s == "" || number(s[:2]) < 60 && number(s[2:]) < 60)
	case "yes":
		return s == "0" || s == "1"
	case "pieces":
		n, of := number(s[:2]), number(s[2:])
		return n > 0 && n <= of
	case "zero":
		return s == "0"
	case "land":
		return s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'A' && s[1] <= 'Z'
	case "text":
		_, ok := Text(s)
		return ok
	case "lat":
		return s <= "1800000000"
	case "lon":
		return s <= "3600000000"
	case "minus":
		return s == "" || s == "-"
	}
	return false
}

// isDate reports whether YYMMDD is a day of a year that the two digits may stand for; a day
// of 00 is the last one of the month.
func isDate(s string, noDay bool) bool {
	month, day := number(s[2:4]), number(s[4:])
	if month < 1 || month > 12 {
		return false
	}
	if day == 0 {
		return noDay
	}
	// 2000 was a leap year, and so is each year that ends with a multiple of four, whichever
	// century near our own it is of.
	return day <= time.Date(2000+number(s[:2]), time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// Date is the day that YYMMDD stands for, seen from now: a day of 00 is the last one of the
// month, and the year is the one of its two digits that is nearest, from 49 years back to 50
// ahead. Source: General Specifications, 7.12.
func Date(value string, now time.Time) (time.Time, error) {
	if len(value) != 6 || number(value) < 0 || !isDate(value, true) {
		return time.Time{}, fmt.Errorf("%q is no date YYMMDD", value)
	}
	year := now.Year() - now.Year()%100 + number(value[:2])
	switch apart := number(value[:2]) - now.Year()%100; {
	case apart >= 51:
		year -= 100
	case apart <= -50:
		year += 100
	}
	month, day := time.Month(number(value[2:4])), number(value[4:])
	if day == 0 {
		month, day = month+1, 0
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC), nil
}

// Decimal is the value of a measure such as 3103, whose last digit says how many decimals there
// are; ok is false for other identifiers.
func (e Element) Decimal() (text string, ok bool) {
	if len(e.AI) != 4 || e.AI[0] != '3' || len(e.Value) != 6 || e.AI >= "3700" {
		return "", false
	}
	at := len(e.Value) - int(e.AI[3]-'0')
	whole, rest := strings.TrimLeft(e.Value[:at], "0"), strings.TrimRight(e.Value[at:], "0")
	if whole == "" {
		whole = "0"
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole, true
}

// Text is a percent-encoded value as people read it: + is a blank. ok is false for a value
// that is not encoded so.
func Text(value string) (text string, ok bool) {
	if !strings.ContainsAny(value, "%+") {
		return value, true
	}
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '+':
			out.WriteByte(' ')
		case '%':
			if i+2 >= len(value) {
				return "", false
			}
			high, low := hexDigit(value[i+1]), hexDigit(value[i+2])
			if high < 0 || low < 0 {
				return "", false
			}
			out.WriteByte(byte(high<<4 | low))
			i += 2
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

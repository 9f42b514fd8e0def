package otep

import (
	"errors"
	"strings"
	"time"
)

// Time is an instant that keeps the UTC offset it was given with. In JSON it
// is RFC 3339 with up to nine fractional digits.
type Time struct{ time.Time }

var errTime = errors.New("not a date-time with offset, such as 2026-06-10T11:30:00-04:00")

// ParseTime reads an RFC 3339 date-time with offset, Z or ±hh:mm, and at most
// nine fractional digits.
func ParseTime(s string) (Time, error) {
	s = strings.ToUpper(s) // RFC 3339 5.6: t and z are allowed
	if !shaped(s) {
		return Time{}, errTime
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Time{}, errTime
	}
	_, offset := t.Zone()
	if offset == 0 {
		return Time{t.UTC()}, nil
	}
	// Never the machine's own zone, whose rules would come along.
	return Time{t.In(time.FixedZone("", offset))}, nil
}

// shaped holds what time.Parse takes too easily: hours of one digit, a comma,
// more fractional digits than are kept, offsets beyond a day.
func shaped(s string) bool {
	const layout = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(layout) || !matches(s[:len(layout)], layout) {
		return false
	}
	s = s[len(layout):]
	if s[0] == '.' {
		n := 1
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 1 || n > 10 {
			return false
		}
		s = s[n:]
	}
	if s == "Z" {
		return true
	}
	return (matches(s, "+dd:dd") || matches(s, "-dd:dd")) && s[1:3] <= "23" && s[4:6] <= "59"
}

// matches reports whether s looks like layout, where d is any digit.
func matches(s, layout string) bool {
	if len(s) != len(layout) {
		return false
	}
	for i := range len(s) {
		digit := s[i] >= '0' && s[i] <= '9'
		if layout[i] == 'd' && !digit || layout[i] != 'd' && s[i] != layout[i] {
			return false
		}
	}
	return true
}

func (t Time) String() string { return t.Format(time.RFC3339Nano) }

// MarshalText gives the time with the offset that it was given with.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON is MarshalText in quotes.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalText reads what MarshalText wrote.
func (t *Time) UnmarshalText(b []byte) error {
	p, err := ParseTime(string(b))
	if err == nil {
		*t = p
	}
	return err
}

// UnmarshalJSON reads a quoted time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' {
		return errTime
	}
	return t.UnmarshalText(b[1 : len(b)-1])
}

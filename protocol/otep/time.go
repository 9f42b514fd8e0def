package otep

import (
	"fmt"
	"time"
)

// Time is an instant that keeps the UTC offset it was given with. In JSON it
// is RFC 3339 with up to nine fractional digits.
type Time struct{ time.Time }

// ParseTime reads an RFC 3339 date-time with offset.
func ParseTime(s string) (Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Time{}, fmt.Errorf("not a date-time with offset")
	}
	return Time{t}, nil
}

func (t Time) String() string { return t.Format(time.RFC3339Nano) }

// MarshalText gives the time as it was given, offset included.
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
		return fmt.Errorf("not a date-time with offset")
	}
	return t.UnmarshalText(b[1 : len(b)-1])
}

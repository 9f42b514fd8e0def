package cloud

import (
	"sync"
	"time"
)

// zones are the time zones that were asked for. Reading one from the machine's
// files costs more than the rest of an event's body; there are some 600.
var zones sync.Map // name → *time.Location

// Location is the business's time zone, UTC when it has none that is known.
func (b Business) Location() *time.Location {
	if l, ok := zones.Load(b.Timezone); ok {
		return l.(*time.Location)
	}
	l, err := time.LoadLocation(b.Timezone)
	if err != nil {
		return time.UTC
	}
	zones.Store(b.Timezone, l)
	return l
}

// Stamp is a time as answers and events show it: ISO 8601 with the offset of
// l, in seconds; nil when it did not happen.
func Stamp(t time.Time, l *time.Location) *string {
	if t.IsZero() {
		return nil
	}
	s := t.In(l).Format(time.RFC3339)
	return &s
}

// OrNull is v as answers show what may be missing: nil when it is zero.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

package device

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// place computes when a record occurred, once: from its boot's sample where
// there is one, else from the device's own clock if that was ever set, else
// right after the last placed record. A clock carried over that puts a record of
// lane 0 before those that came before it is not believed. The moment is never
// later than receipt, nor than the start of a later boot that sends it.
func place(b *wire.Batch, r wire.Record, last, received time.Time) (at time.Time, approximate bool) {
	switch s, ok := b.Boots[r.Boot]; {
	case r.Boot == b.Sent.Boot && b.Sent.Clock == wire.ClockSynced:
		at = time.Unix(0, b.Sent.Wall-(b.Sent.Mono-r.Mono))
	case ok && r.Boot != b.Sent.Boot:
		at = time.Unix(0, s.Wall+(r.Mono-s.Mono))
	case r.Clock == wire.ClockSynced:
		at = time.Unix(0, r.At)
	case r.Clock == wire.ClockCarried:
		at, approximate = time.Unix(0, r.At), true
		if b.Lane == wire.Settlement && at.Before(last) {
			at = last.Add(time.Millisecond) // records of a lane come in their order: that clock lies
		}
	case last.IsZero():
		at, approximate = received, true
	default:
		at, approximate = last.Add(time.Millisecond), true
	}
	if end := newest(b, r, received); at.After(end) {
		at = end
	}
	return at.UTC(), approximate
}

// newest is the last moment at which a record can have occurred: that of its receipt,
// or the start of the boot that sends it where it was written in an earlier one.
func newest(b *wire.Batch, r wire.Record, received time.Time) time.Time {
	if r.Boot < b.Sent.Boot && b.Sent.Clock == wire.ClockSynced {
		if start := time.Unix(0, b.Sent.Wall-b.Sent.Mono); start.Before(received) {
			return start
		}
	}
	return received
}

// bounds are those of an approximate moment: it is not after newest, and
// one of lane 0, whose records come in their order, not before what was placed
// last, unless the device's clock says otherwise.
func bounds(l wire.Lane, at, last, newest time.Time) (earliest, latest time.Time) {
	if l == wire.Settlement && !last.IsZero() && !at.Before(last) {
		earliest = last.UTC()
	}
	return earliest, newest.UTC()
}

// placed reports whether records of a kind are placed in time: newer agents may
// have others, and measurements are kept as batches.
func placed(k wire.Kind) bool {
	return k.IsKnown() && k != wire.KindTelemetry && k != wire.KindHealth
}

// latest is the later of the last placed record's time and at, as it is stored:
// what comes after it goes by that.
func latest(last, at time.Time) time.Time {
	if at = at.Truncate(time.Millisecond); at.After(last) {
		return at
	}
	return last
}

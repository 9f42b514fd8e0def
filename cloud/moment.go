package cloud

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Moment is when something happened, as far as it is known. Where nothing saw
// it, At is the best guess and Earliest and Latest are its bounds; a zero bound is
// not known, and both are zero where At was seen.
type Moment struct {
	At time.Time
	// Approximate is set when the clock that At goes by was not to be relied on.
	Approximate      bool
	Earliest, Latest time.Time
}

// Extensions are what an event says of its occurred_at beside it; nil when it
// was seen.
func (m Moment) Extensions() otep.Extensions {
	var x otep.Extensions
	put := func(key string, v any) {
		if x == nil {
			x = otep.Extensions{}
		}
		x[key] = v
	}
	if m.Approximate {
		put("occurred_at_approximate", true)
	}
	if !m.Earliest.IsZero() {
		put("occurred_earliest", otep.Time{Time: m.Earliest.UTC()}.String())
	}
	if !m.Latest.IsZero() {
		put("occurred_latest", otep.Time{Time: m.Latest.UTC()}.String())
	}
	return x
}

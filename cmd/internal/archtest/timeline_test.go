package archtest

import (
	"go/types"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// Files that may put events into timelines. Those of an order are written by the order alone, which moves and
// sends what follows; a parcel without an order has no such part, and who writes its events sends them.
var timelineWriters = map[string]string{
	"cloud/order/timeline.go":  "events of orders, from every source",
	"cloud/tracking/add.go":    "events of providers: those of an order are handed to it, and what it gives is written",
	"cloud/locker/delivery.go": "the first event of a partner's parcel, which has no order",
	"cloud/locker/work.go":     "events of parcels without an order",
	"cloud/server/rebuild.go":  "events that the journal proves and the database has lost: they were sent and followed when they came",
}

// Every event goes the one way, so that a webhook, the feed, the page and the trace have it.
func TestTimelinesHaveFewWriters(t *testing.T) {
	ring.SkipUnlessCheck(t, "it types the whole cloud")
	p := loadCloud(t)
	changes, ok := p.done[module+"cloud"].Scope().Lookup("TrackingChanges").Type().Underlying().(*types.Struct)
	require.True(t, ok)
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for f := range changes.Fields() {
		if f.Name() != "Events" {
			continue
		}
		var writers []string
		for _, path := range p.written[f.Origin()] {
			path, err := filepath.Rel(root, path)
			require.NoError(t, err)
			writers = append(writers, filepath.ToSlash(path))
		}
		slices.Sort(writers)
		writers = slices.Compact(writers)
		require.Contains(t, writers, "cloud/order/timeline.go")
		for _, path := range writers {
			require.Contains(t, timelineWriters, path, "%s puts events into timelines by itself: give them to package order, or to package tracking", path)
		}
		for path := range timelineWriters {
			require.Contains(t, writers, path, "%s puts no events into timelines any more", path)
		}
	}
}

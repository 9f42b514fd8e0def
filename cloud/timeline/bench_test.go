package timeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// The order of 200 packages with a full timeline.
func BenchmarkManyPackages(b *testing.B) {
	var events []cloud.TimelineEvent
	var ids []cloud.PackageID
	for p := range 200 {
		ids = append(ids, cloud.PackageID(p+1))
	}
	events = append(events, event("first", 0, "information_submitted", 0))
	for i := range 1999 {
		events = append(events, event(fmt.Sprint("e", i), i+1, []otep.Code{"in_transit", "arrival_scan"}[i/200%2], ids[i%200]))
	}
	b.ReportAllocs()
	for b.Loop() {
		timeline.OfOrder(events, ids, time.Time{})
	}
}

package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/tracking"
)

// BenchmarkAppendToALongTimeline is what the 20,001st event of a timeline takes, from the call to the commit. The
// ratio is to one of the first thousand, by turns in the same run.
func BenchmarkAppendToALongTimeline(b *testing.B) {
	d := newTwin(b, Config{Dir: b.TempDir()}, usualWindow)
	base := time.Now().Add(-1000 * time.Hour).UTC().Truncate(time.Second)
	lengths := map[cloud.ShipmentID]int{}
	grow := func(id cloud.ShipmentID, length int) {
		decide(b, d.db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: id, BusinessID: 1, Number: fmt.Sprint("APPEND", id), ProviderID: 1}}}})
		for lengths[id] < length {
			require.NoError(b, d.db.Decide(b.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				_, err := v.RecentTimeline(id) // which makes checkpoints
				c := &cloud.Changes{}
				for range 100 {
					e := feedEvent(id, fmt.Sprint("a-", lengths[id]))
					e.Event.OccurredAt.Time = base.Add(time.Duration(lengths[id]) * time.Minute)
					c.Events = append(c.Events, e)
					lengths[id]++
				}
				return c, err
			}))
		}
	}
	const long = cloud.ShipmentID(1)
	grow(long, 20_000)
	var shorts []cloud.ShipmentID // of lengths throughout the first thousand
	for i := range 10 {
		shorts = append(shorts, cloud.ShipmentID(2+i))
		grow(shorts[i], i*100)
	}
	s := tracking.New(d.db)
	tracking.LimitEvents(s, cloud.MaxTimelineEvents)
	add := func(id cloud.ShipmentID) time.Duration {
		at := base.Add(time.Duration(lengths[id]) * time.Minute)
		body := fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"APPEND%d"},"events":[{"occurred_at":%q,"status_code":"in_transit","source":{"type":"carrier"}}]}`, id, at.Format(time.RFC3339))
		lengths[id]++
		begun := time.Now()
		out, err := s.Ingest(b.Context(), pageOwner, tracking.IngestInput{Body: []byte(body)})
		took := time.Since(begun)
		require.NoError(b, err)
		require.Equal(b, 1, out.Accepted)
		return took
	}
	var ofLong, ofShort []time.Duration
	sample := func() {
		i := len(ofLong) % len(shorts)
		if lengths[shorts[i]] >= (i+1)*100 {
			b.StopTimer()
			shorts[i] += cloud.ShipmentID(len(shorts))
			grow(shorts[i], i*100)
			b.StartTimer()
		}
		short := shorts[i]
		if rand.IntN(2) == 0 {
			ofLong = append(ofLong, add(long))
			ofShort = append(ofShort, add(short))
			return
		}
		ofShort = append(ofShort, add(short))
		ofLong = append(ofLong, add(long))
	}
	for b.Loop() {
		sample()
	}
	for len(ofLong) < 30 {
		sample()
	}
	ratio := float64(median(ofLong)) / float64(median(ofShort))
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(float64(median(ofLong).Microseconds()), "µs/append")
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

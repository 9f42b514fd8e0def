package tracking_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

// A reader that waits at one node gets what another one commits, with notices and without, and
// goes on there with its cursor.
func TestReadersWaitForOtherNodes(t *testing.T) {
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	var nodes []*store.DB
	var services, beside []*tracking.Service
	for i := range 2 {
		db := storetest.Open(t, store.Config{URL: url, Instance: fmt.Sprint("n", i), Box: storetest.Box(t)})
		s := tracking.New(db)
		db.OnCommit(s.Committed)
		t.Cleanup(s.EndFeed)
		nodes, services, beside = append(nodes, db), append(services, s), append(beside, tracking.New(db))
	}
	add := func(db *store.DB, id string) {
		at := otep.Time{Time: time.Now()}
		c := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{ShipmentID: 1, BusinessID: 1, Event: otep.Event{EventID: id, OccurredAt: at, RecordedAt: at, StatusCode: "in_transit"}}}}}
		if id == "" {
			c = &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, BusinessID: 1, Number: "N1"}}}}
		}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
	}
	add(nodes[0], "")
	staff, wait := cloud.Caller{Account: cloud.Account{ID: 5, BusinessID: 1, Type: cloud.ClientAdmin}, Language: "en"}, 20
	after := ""
	for i := range 8 {
		at := i % 2
		type answer struct {
			out tracking.ChangesOutput
			err error
			at  time.Time
		}
		got := make(chan answer, 1)
		go func() {
			for tries := 0; ; tries++ {
				out, err := services[at].Changes(context.Background(), staff, tracking.ChangesInput{After: after, Wait: &wait})
				if err != nil || len(out.Changes) > 0 || tries == 4 {
					got <- answer{out, err, time.Now()}
					return
				}
			}
		}()
		time.Sleep(50 * time.Millisecond)
		add(nodes[1-at], fmt.Sprint("e", i))
		if i >= 4 { // as the notice of another node comes
			services[at].Notice([]cloud.Touch{{Kind: "Events", Business: 1}})
		}
		// Transactions of other tests hold it back, from a reader that asks all the time, too.
		ring.Await(t, func() bool {
			out, err := beside[at].Changes(context.Background(), staff, tracking.ChangesInput{After: after})
			return err == nil && len(out.Changes) == 1
		})
		there := time.Now()
		a := <-got
		require.NoError(t, a.err)
		require.Len(t, a.out.Changes, 1)
		require.Equal(t, fmt.Sprint("e", i), a.out.Changes[0].Event.EventID)
		t.Log(i, a.at.Sub(there))
		require.Less(t, a.at.Sub(there), 10*time.Second)
		after = a.out.Next
	}
}

package tracking_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

// A task that cannot be done keeps no other one waiting.
func TestATaskOfContainersThatFailsIsPutBehind(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 1)
		pallet := y.container(y.theirs[0], "P-1")
		bad := cloud.ContainerTask{Root: "nothing", Since: y.start, Until: cloud.EndOfTimes}
		bad.Begin(1, 42, y.start)
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{Unaudited: true, RowChanges: cloud.RowChanges{Rows: []cloud.Row{bad}}}, nil
		}))
		require.NoError(t, y.bind(y.staff, true, pallet, y.at(1), y.parcel(0)))
		_, err := y.say(y.theirs[0], "P-1", containerEvent{ID: "e-1", Code: "in_transit", At: y.at(2)})
		require.NoError(t, err)
		for range 3 {
			require.Error(t, tracking.ContainersOf(y.s).Follow(t.Context()))
		}
		require.Equal(t, []string{fmt.Sprint("e-1 in_transit ", pallet)}, y.events(0))
	})
}

// Who sends an event cannot say that it came through a container.
func TestViaIsOfContainersAlone(t *testing.T) {
	t.Parallel()
	y := newYard(t, storetest.OpenSQLite(t), 1)
	body := fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[{"event_id":"e-1","status_code":"in_transit","occurred_at":%q,"source":{"type":"carrier"},"via":7}]}`, y.parcel(0), y.at(1).Format(time.RFC3339))
	_, err := y.s.Ingest(t.Context(), y.theirs[0], tracking.IngestInput{Body: []byte(body)})
	require.NoError(t, err)
	require.Equal(t, []string{"e-1 in_transit 0"}, y.events(0))
}

// The packages of an order are in containers one by one: what happens to a container is theirs, and the order
// follows from all of them.
func TestPackagesOfOrdersFollowTheirContainers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 0)
		orders := order.New(order.Config{Store: db, Sealer: storetest.Box(t)})
		y.s.MoveOrders(order.CarriersOf(orders))
		all := y.theirs[0].Provider
		all.Scope = cloud.ScopeAll
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{all}, Accounts: []cloud.Account{y.staff.Account}}}, nil
		}))
		y.theirs[0].Provider = all
		made, err := orders.Create(t.Context(), y.staff, order.CreateInput{Type: "D", Packages: []order.PackageInput{{Weight: 1}, {Weight: 2}}, Recipient: &cloud.Address{Name: "Ada", Phone: "+14165550123", Line1: "100 Queen St W", City: "Toronto", Province: "ON", PostalCode: "M5H 2N2", Country: "CA"}})
		require.NoError(t, err)
		number := made.Number
		pallet := y.container(y.staff, "P-1")
		now := time.Now().UTC().Truncate(time.Second)
		require.NoError(t, y.bind(y.staff, true, pallet, now.Add(-time.Hour), number+"-1"))
		say := func(e containerEvent) {
			t.Helper()
			_, err := y.say(y.theirs[0], "P-1", e)
			require.NoError(t, err)
			y.settle()
		}
		codes := func(number string) (out []string) {
			read, err := y.s.Timeline(t.Context(), y.staff, tracking.TimelineInput{Number: number})
			require.NoError(t, err)
			for _, e := range read.Data.(otep.Timeline).Events {
				out = append(out, string(e.StatusCode))
			}
			return out
		}
		say(containerEvent{ID: "e-1", Code: "in_transit", At: now.Add(time.Second)})
		require.Contains(t, codes(number+"-1"), "in_transit")
		require.NotContains(t, codes(number+"-2"), "in_transit")
		require.NotContains(t, codes(number), "in_transit", "the other package is not on its way")
		require.NoError(t, y.bind(y.staff, true, pallet, now.Add(-time.Hour), number+"-2"))
		y.settle()
		require.Contains(t, codes(number+"-2"), "in_transit", "bound late")
		require.Contains(t, codes(number), "in_transit")
		say(containerEvent{ID: "e-2", Code: "delivered", At: now.Add(2 * time.Second)})
		for _, n := range []string{number, number + "-1", number + "-2"} {
			require.Contains(t, codes(n), "arrival_scan", n)
			require.NotContains(t, codes(n), "delivered", n)
		}
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
			o, err := v.Order(42, made.OrderID)
			require.Equal(t, cloud.OrderStatus(32), o.Status)
			return err
		}))
	})
}

// Workers of two nodes do the tasks at once while bindings, releases and events of a container come: in the end each parcel
// has what it should have, each event once.
func TestContainersAtTwoNodes(t *testing.T) {
	ring.SkipUnlessCheck(t, "one node on SQLite")
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	open := func(name string) *store.DB {
		return storetest.Open(t, store.Config{URL: url, Instance: name, Box: storetest.Box(t)})
	}
	const parcels = 40
	y := newYard(t, open("n0"), parcels)
	other := tracking.ContainersOf(tracking.New(open("n1")))
	pallet := y.container(y.theirs[0], "P-1")
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for _, node := range []tracking.Containers{tracking.ContainersOf(y.s), other, other} {
		work.Go(func() {
			for ctx.Err() == nil {
				_ = node.Follow(ctx)
			}
		})
	}
	for i := range 12 {
		var names []string
		for n := i % 3; n < parcels; n += 3 {
			names = append(names, y.parcel(n))
		}
		require.NoError(t, y.bind(y.staff, i%4 != 3, pallet, y.at(10*i), names...))
		_, err := y.say(y.theirs[0], "P-1", containerEvent{ID: fmt.Sprint("e-", i), Code: "in_transit", At: y.at(10*i + 5)})
		require.NoError(t, err)
	}
	stop()
	work.Wait()
	y.settle()
	for n := range parcels {
		var want []string
		inside := false
		for i := range 12 {
			if i%3 == n%3 {
				inside = i%4 != 3
			}
			if inside {
				want = append(want, fmt.Sprintf("e-%d in_transit %d", i, pallet))
			}
		}
		slices.Sort(want)
		require.Equal(t, want, y.events(n), "parcel %d", n)
	}
}

// Disputes of one event that come at once are one review.
func TestDisputesAtOnceAreOneReview(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 6)
		for n := range 6 {
			_, err := y.say(y.theirs[0], y.parcel(n), containerEvent{ID: "e-1", Code: "in_transit", At: y.at(1)})
			require.NoError(t, err)
			var work sync.WaitGroup
			for range 12 {
				work.Go(func() {
					_, err := y.s.Dispute(t.Context(), y.theirs[0], tracking.DisputeInput{Number: y.parcel(n), EventID: "e-1", Kind: "damaged"})
					assert.NoError(t, err)
				})
			}
			work.Wait()
		}
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
			open, err := cloud.All(v, cloud.Review{Kept: cloud.Kept[cloud.ReviewID]{BusinessID: 42}})
			require.Len(t, open, 6)
			return err
		}))
	})
}

// A container takes 5,000 things and no more, whenever they are inside, and all have its events.
func TestAContainerIsFull(t *testing.T) {
	ring.SkipUnlessCheck(t, "fewer things")
	t.Parallel()
	const most = cloud.MaxContainerChildren
	y := newYard(t, storetest.OpenSQLite(t), most+1)
	pallet := y.container(y.theirs[0], "P-1")
	for from := 0; from < most; from += 1000 {
		var names []string
		for n := range 1000 {
			names = append(names, y.parcel(from+n))
		}
		require.NoError(t, y.bind(y.theirs[0], true, pallet, y.at(1), names...))
	}
	for _, minute := range []int{1, 5} {
		var e *cloud.Error
		require.ErrorAs(t, y.bind(y.theirs[0], true, pallet, y.at(minute), y.parcel(most)), &e)
		require.Equal(t, "CONTAINER_FULL", e.Code)
	}
	require.NoError(t, y.bind(y.theirs[0], false, pallet, y.at(3), y.parcel(0)))
	require.NoError(t, y.bind(y.theirs[0], true, pallet, y.at(4), y.parcel(most)), "there is room from then on")
	_, err := y.say(y.theirs[0], "P-1", containerEvent{ID: "e-1", Code: "in_transit", At: y.at(2)})
	require.NoError(t, err)
	y.settle()
	for n := range most {
		require.Len(t, y.events(n), 1, "parcel %d", n)
	}
	require.Empty(t, y.events(most))
}

// An event that the timeline shows on an older page alone can be disputed like any other.
func TestDisputeOfAnOldEvent(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 1)
		var list []any
		for n := range 1300 {
			list = append(list, map[string]any{"event_id": fmt.Sprint("e-", n), "status_code": "in_transit", "occurred_at": y.at(0).Add(time.Duration(n) * time.Second).Format(time.RFC3339), "source": map[string]any{"type": "carrier"}})
		}
		for part := range slices.Chunk(list, 650) {
			body, err := json.Marshal(map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": y.parcel(0)}, "events": part})
			require.NoError(t, err)
			_, err = y.s.Ingest(t.Context(), y.theirs[0], tracking.IngestInput{Body: body})
			require.NoError(t, err)
		}
		for _, id := range []string{"e-0", "e-400", "e-1299"} {
			_, err := y.s.Dispute(t.Context(), y.theirs[0], tracking.DisputeInput{Number: y.parcel(0), EventID: id, Kind: "damaged"})
			require.NoError(t, err, id)
		}
		_, err := y.s.Dispute(t.Context(), y.theirs[0], tracking.DisputeInput{Number: y.parcel(0), EventID: "e-1300", Kind: "damaged"})
		require.Error(t, err)
		reviews, err := tracking.Desk{Service: y.s}.Reviews(t.Context(), y.staff, tracking.ReviewsInput{})
		require.NoError(t, err)
		require.Len(t, reviews.Reviews, 3)
	})
}

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Numbers of a reference rise by one with each decision that wrote something, whatever
// nodes and decisions about devices are at it at once, and in whatever order decisions
// name several references. So they rise in the order of the commits.
func TestNumbersOfAReferenceRiseOverAllNodes(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			var nodes []*DB
			if engine == "postgres" {
				url := freshSchema(t)
				nodes = []*DB{openTest(t, Config{URL: url, Instance: "n1"}), openTest(t, Config{URL: url, Instance: "n2"})}
			} else {
				db := openTest(t, Config{Dir: t.TempDir()})
				nodes = []*DB{db, db}
			}
			refs := []cloud.EventReference{{BusinessID: 42, Type: "order", ID: "7"}, {BusinessID: 42, Type: "order", ID: "8"}}
			const workers, rounds = 8, 10
			var mu sync.Mutex
			got := map[cloud.EventReference][]int64{}
			var all sync.WaitGroup
			for i := range workers {
				all.Go(func() {
					for n := range rounds {
						own := slices.Clone(refs)
						if (i+n)%2 == 0 {
							slices.Reverse(own)
						}
						dev := cloud.DeviceID(0)
						if i%2 == 0 {
							dev = cloud.DeviceID(i + 1)
						}
						given := map[cloud.EventReference]int64{}
						err := nodes[i%2].Decide(t.Context(), dev, func(v cloud.View) (*cloud.Changes, error) {
							for _, r := range own {
								var err error
								if given[r], err = v.NextSequence(r); err != nil {
									return nil, err
								}
							}
							return numberedEvents(i*rounds+n+1, given), nil
						})
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						for r, k := range given {
							got[r] = append(got[r], k)
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
			for _, r := range refs {
				slices.Sort(got[r])
				require.Len(t, got[r], workers*rounds)
				for n, k := range got[r] {
					require.EqualValues(t, n+1, k, "each number is given once")
				}
			}
		})
	}
}

// numberedEvents are an event for each reference, with ids from n.
func numberedEvents(n int, given map[cloud.EventReference]int64) *cloud.Changes {
	c := &cloud.Changes{}
	for r, k := range given {
		e := cloud.OutboxEvent{EventID: fmt.Sprintf("E-%d-%s", n, r.ID), Event: "order.status_change", BusinessID: r.BusinessID, ReferenceType: r.Type, ReferenceID: r.ID, Sequence: k, Body: []byte("{}")}
		c.Outbox = append(c.Outbox, cloud.OutboxWrite{Event: e, Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(r.ID[0])<<32 + cloud.OutboxID(n), EventID: e.EventID, EndpointID: 3, State: cloud.OutboxSuccess}}})
	}
	return c
}

// A decision that fails, writes nothing or is a preview uses up no number, within a
// decision they rise, and what has no receiver leaves no row.
func TestNumbersAreWrittenWithTheChange(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	ref := cloud.EventReference{BusinessID: 42, Type: "order", ID: "7"}
	var numbers []int64
	decide := func(ctx context.Context, change *cloud.Changes, err error) {
		_ = db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			numbers = nil
			for range 2 {
				n, err := v.NextSequence(ref)
				require.NoError(t, err)
				numbers = append(numbers, n)
			}
			return change, err
		})
	}
	change := func(n int) *cloud.Changes { return numberedEvents(n, map[cloud.EventReference]int64{ref: 1}) }
	decide(t.Context(), change(1), errors.New("refused"))
	decide(t.Context(), nil, nil)
	decide(cloud.WithPreview(t.Context(), &cloud.Preview{}), change(1), nil)
	decide(t.Context(), change(1), nil)
	require.Equal(t, []int64{1, 2}, numbers)
	decide(t.Context(), change(2), nil)
	require.Equal(t, []int64{3, 4}, numbers)
	require.Error(t, db.Look(t.Context(), func(v cloud.View) error {
		_, err := v.NextSequence(ref)
		return err
	}))
	count, err := readOne(t.Context(), db.database, "SELECT COUNT(*) FROM reference_sequence", scanInt)
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
}

// After a restore the numbers of every reference, known or new, continue above what was
// given since the backup.
func TestNumbersContinueAboveTheLostOnes(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Dir: t.TempDir()}
			if engine == "postgres" {
				cfg = Config{URL: freshSchema(t)}
			}
			db := openTest(t, cfg)
			next := func(id string, n int) (k int64) {
				ref := cloud.EventReference{BusinessID: 42, Type: "order", ID: id}
				require.NoError(t, db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
					var err error
					k, err = v.NextSequence(ref)
					return numberedEvents(n, map[cloud.EventReference]int64{ref: k}), err
				}))
				return k
			}
			require.EqualValues(t, 1, next("7", 1))
			require.NoError(t, db.RaiseSequences(t.Context(), 1000))
			require.EqualValues(t, 1001, next("7", 2))
			require.EqualValues(t, 1002, next("7", 3))
			require.EqualValues(t, 1001, next("8", 4))
			require.NoError(t, db.RaiseSequences(t.Context(), 10), "a lower one changes nothing")
			require.EqualValues(t, 1003, next("7", 5))
		})
	}
}

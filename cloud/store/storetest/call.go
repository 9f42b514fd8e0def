package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

func callOnce(n byte) (context.Context, *cloud.Call) {
	c := &cloud.Call{BusinessID: 42, Actor: "account:1", Operation: "things.make", Target: "id=7", Surface: "api", IP: "192.0.2.1", RequestID: "req-1",
		Once: &cloud.Once{ID: cloud.CallID{n}, Request: [32]byte{n, 1}, At: now, Until: now.Add(time.Minute), Encode: func(v any) ([]byte, error) { return json.Marshal(v) }}}
	return cloud.WithCall(context.Background(), c), c
}

func makes(id cloud.BusinessID, answer any) func(cloud.View) (*cloud.Changes, error) {
	return func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: id, Code: fmt.Sprint(id)}}}, Answer: answer}, nil
	}
}

// callsOnce walks a call and its repeats through all that can become of them.
func callsOnce(t *testing.T, db *store.DB) {
	ctx, first := callOnce(1)
	_, err := db.FindCall(ctx, first.Once.ID, now)
	require.ErrorIs(t, err, cloud.ErrNotFound)
	require.ErrorContains(t, db.Decide(ctx, 0, makes(1, nil)), "no answer")
	require.ErrorIs(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return &cloud.Changes{Answer: "x"}, errNo }), errNo)
	_, taken := first.Once.Taken()
	require.False(t, taken, "nothing was written")
	require.NoError(t, db.Decide(ctx, 0, makes(2, "made")))
	kept, taken := first.Once.Taken()
	require.True(t, taken)
	stored, err := db.FindCall(ctx, first.Once.ID, now)
	require.NoError(t, err)
	require.Equal(t, kept, stored)
	require.Equal(t, `"made"`, string(stored.Answer))
	require.Equal(t, first.Once.Request, stored.Request)
	require.NoError(t, db.Decide(ctx, 0, makes(3, nil)), "the same call goes on")

	again, second := callOnce(1)
	ran := false
	err = db.Decide(again, 0, func(cloud.View) (*cloud.Changes, error) { ran = true; return makes(4, "again")(nil) })
	require.ErrorIs(t, err, cloud.ErrRepeated)
	require.False(t, ran, "what the first wrote must not be what the repeat is refused for")
	require.ErrorIs(t, db.AnswerCall(again, second.Once, []byte(`"other"`)), cloud.ErrRepeated)

	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		ch, _ := makes(5, "goes on")(nil)
		ch.Unfinished = true
		return ch, nil
	}))
	stored, err = db.FindCall(ctx, first.Once.ID, now)
	require.NoError(t, err)
	require.Equal(t, `"goes on"`, string(stored.Answer))
	require.Equal(t, first.Once.Until, stored.Running)
	require.NoError(t, db.AnswerCall(ctx, first.Once, []byte(`"done"`)))
	stored, err = db.FindCall(ctx, first.Once.ID, now)
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(stored.Answer))
	require.True(t, stored.Running.IsZero())

	// After a day it is a new call, whether or not the row is still there.
	_, err = db.FindCall(ctx, first.Once.ID, now.Add(store.CallsKept))
	require.ErrorIs(t, err, cloud.ErrNotFound)
	later, third := callOnce(1)
	third.Once.At = now.Add(store.CallsKept)
	require.NoError(t, db.Decide(later, 0, makes(6, "anew")))
	require.NoError(t, db.DropCall(ctx, first.Once), "a call that lost its id drops nothing of the next")
	stored, err = db.FindCall(ctx, first.Once.ID, now.Add(store.CallsKept))
	require.NoError(t, err)
	require.Equal(t, `"anew"`, string(stored.Answer))
	require.NoError(t, db.DropCalls(ctx, now.Add(store.CallsKept)))
	_, err = db.FindCall(ctx, first.Once.ID, now.Add(store.CallsKept))
	require.NoError(t, err, "it is younger than a day")
	require.NoError(t, db.DropCall(ctx, third.Once))
	_, err = db.FindCall(ctx, first.Once.ID, now.Add(store.CallsKept))
	require.ErrorIs(t, err, cloud.ErrNotFound)

	// A call that wrote nothing is answered too, and then has its id.
	ctx, c := callOnce(2)
	require.NoError(t, db.AnswerCall(ctx, c.Once, []byte(`"refused"`)))
	other, o := callOnce(2)
	require.ErrorIs(t, db.Decide(other, 0, makes(7, "x")), cloud.ErrRepeated)
	require.ErrorIs(t, db.AnswerCall(other, o.Once, []byte("x")), cloud.ErrRepeated)
	require.NoError(t, db.DropCalls(ctx, now.Add(2*store.CallsKept)))
	require.NoError(t, db.Decide(other, 0, makes(8, "x")))
}

// callsAtOnce runs one call many times at the same moment, with and without a
// device: one is written.
func callsAtOnce(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}}})
	for round := range byte(6) {
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx, _ := callOnce(10 + round)
				id := 1000*int64(round+1) + int64(i)
				err := db.Decide(ctx, cloud.DeviceID(round%2), makes(cloud.BusinessID(id), id))
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, cloud.ErrRepeated):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, [2]int32{1, 49}, [2]int32{won.Load(), lost.Load()})
		a, err := db.FindCall(t.Context(), cloud.CallID{10 + round}, now)
		require.NoError(t, err)
		look(t, db, func(v cloud.View) {
			made := 0
			for i := range int64(50) {
				id := 1000*int64(round+1) + i
				if _, err := v.Business(cloud.BusinessID(id)); err == nil {
					made++
					require.Equal(t, fmt.Sprint(id), string(a.Answer), "the answer is that of the one that was written")
				}
			}
			require.Equal(t, 1, made)
		})
	}
}

// callsAreAudited writes a line of its own for a call that has none.
func callsAreAudited(t *testing.T, db *store.DB) {
	ctx, c := callOnce(1)
	c.Once = nil
	require.NoError(t, db.Decide(ctx, 0, makes(42, nil)))
	require.NoError(t, db.Decide(ctx, 0, makes(43, nil)), "one line is enough")
	own := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: 42, At: now, Actor: "account:1", Action: "thing_made", Target: "thing:7", Detail: `{"size":"M"}`}}}}
	for range 2 { // what a decision gives is not changed
		require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return own, nil }))
	}
	c.Outcome = "FORBIDDEN"
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return own, nil }))
	write(t, db, 0, own)
	rows, err := db.ListAudits(ctx, 42, 0, 100)
	require.NoError(t, err)
	require.Len(t, rows, 5)
	require.Equal(t, `{"size":"M"}`, rows[0].Detail, "no call, no stamp")
	const stamp = `"ip":"192.0.2.1","operation":"things.make","outcome":"done","request_id":"req-1","surface":"api"`
	require.JSONEq(t, `{`+strings.Replace(stamp, "done", "FORBIDDEN", 1)+`,"size":"M"}`, rows[1].Detail)
	require.JSONEq(t, `{`+stamp+`,"size":"M"}`, rows[2].Detail)
	require.JSONEq(t, `{`+stamp+`,"size":"M"}`, rows[3].Detail)
	require.JSONEq(t, `{`+stamp+`}`, rows[4].Detail)
	require.Equal(t, "things.make", rows[4].Action)
	require.Equal(t, "id=7", rows[4].Target)
	require.Equal(t, "account:1", rows[4].Actor)
}

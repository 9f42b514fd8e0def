package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// jobSteps does rows of jobs: each once, with its result in the transaction that does it,
// and none of a job that has ended or with a key that was done.
func jobSteps(t *testing.T, db *store.DB) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	jobs := []cloud.Job{{ID: "bat_s1", BusinessID: 1, AccountID: 2, Operation: "orders.create", Status: cloud.JobProcessing, CreatedAt: now, Total: 3}, {ID: "bat_s2", BusinessID: 1, AccountID: 2, Operation: "orders.create", Status: cloud.JobCancelled, CreatedAt: now, FinishedAt: now, Total: 1}}
	c := &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: jobs}}
	for i := range 3 {
		c.JobRows = append(c.JobRows, cloud.JobRow{JobID: "bat_s1", Row: i + 1, Input: []byte(`{"cells":["D"]}`)})
	}
	c.JobRows = append(c.JobRows, cloud.JobRow{JobID: "bat_s2", Row: 1, Input: []byte(`{}`)})
	write(t, db, 0, c)
	ran := 0
	var mu sync.Mutex
	do := func(s *cloud.JobStep) error {
		s.Encode = func(answer any) ([]byte, error) { return []byte(answer.(string)), nil }
		return db.Decide(cloud.WithJobStep(t.Context(), s), 0, func(v cloud.View) (*cloud.Changes, error) {
			id, err := v.NewID(cloud.FileColumnIDs)
			x := cloud.FileColumn{Noun: "order", Header: string(rune('a' + id%26)), Path: "x"}
			x.Begin(id, 1, now)
			return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{x}}, Answer: `{"id":"7"}`}, err
		})
	}
	var wg sync.WaitGroup
	for range 4 { // nodes that run the same row at once
		wg.Go(func() {
			s := &cloud.JobStep{BusinessID: 1, JobID: "bat_s1", Row: 1, Key: "order/hash/1"}
			err := do(s)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && s.Taken() {
				ran++
			} else if !errors.Is(err, cloud.ErrRepeated) {
				t.Errorf("%v, %v", err, s.Taken())
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, ran)
	for name, s := range map[string]*cloud.JobStep{
		"the key was done":       {BusinessID: 1, JobID: "bat_s1", Row: 2, Key: "order/hash/1"},
		"the job has ended":      {BusinessID: 1, JobID: "bat_s2", Row: 1},
		"there is no such row":   {BusinessID: 1, JobID: "bat_s1", Row: 9},
		"it is another business": {BusinessID: 2, JobID: "bat_s1", Row: 3},
	} {
		require.ErrorIs(t, do(s), cloud.ErrRepeated, name)
		require.False(t, s.Taken(), name)
	}
	require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
		rows, err := v.JobRows("bat_s1")
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"7"}`, string(rows[0].Result))
		require.Empty(t, rows[0].Input, "what was asked is not kept")
		require.Nil(t, rows[1].Result, "with the key its changes were refused")
		made, err := cloud.All(v, cloud.FileColumn{Kept: cloud.Kept[cloud.FileColumnID]{BusinessID: 1}})
		require.Len(t, made, 1)
		done, err2 := v.JobKey(1, "order/hash/1")
		require.True(t, done)
		other, err3 := v.JobKey(2, "order/hash/1")
		require.False(t, other)
		return errors.Join(err, err2, err3)
	}))
	require.NoError(t, db.FailJobRow(context.WithoutCancel(t.Context()), "bat_s1", 1, []byte(`{"code":"LATER"}`)))
	waiting, err := db.WaitingJobs(t.Context(), now, 9)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	require.NoError(t, db.LeaseJob(t.Context(), "bat_s1", now, now.Add(time.Second)))
	require.NoError(t, db.LeaseJob(t.Context(), "bat_s1", now, now.Add(time.Second)), "its own")
	require.ErrorIs(t, db.LeaseJob(t.Context(), "bat_s2", now, now.Add(time.Second)), cloud.ErrStale)
	require.NoError(t, db.ReleaseJob(t.Context(), "bat_s1"))
	_, rows, err := db.PickJobRows(t.Context(), cloud.JobRowFilter{JobID: "bat_s1", State: "failed", Page: cloud.Page{Limit: 9}})
	require.NoError(t, err)
	require.Len(t, rows, 1)
}

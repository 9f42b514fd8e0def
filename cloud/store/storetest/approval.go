package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// approvals come back as they were written, only to their business, and pages
// of them are those of a plain filter.
func approvals(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(11, 11))
	all := map[cloud.ApprovalID]cloud.Approval{}
	states := []string{cloud.ApprovalPending, cloud.ApprovalPending, cloud.ApprovalExecuted, cloud.ApprovalFailed, cloud.ApprovalRejected}
	content := func() json.RawMessage {
		return []json.RawMessage{nil, json.RawMessage(`{"secret":"s3cr3t-<&>","n":1.50}`), json.RawMessage(`{"b":[1,null],"a":"Ünï 包裹"}`)}[r.IntN(3)]
	}
	for range 12 {
		ch := &cloud.Changes{}
		for range 9 {
			a := random[cloud.Approval](r)
			n := r.IntN(60)
			a.ID, a.BusinessID = cloud.ApprovalID(fmt.Sprintf("apr_%02d", n)), cloud.BusinessID(n%2+1)
			a.Arguments, a.Preview, a.Result, a.Error = content(), content(), content(), content()
			a.Tool, a.RequestedBy = fmt.Sprint("tool", r.IntN(3)), cloud.AccountID(r.IntN(3)+1)
			a.Status, a.ReviewedBy = states[r.IntN(len(states))], 0
			a.RequestedAt, a.ExpiresAt = now.Add(-time.Duration(r.IntN(5))*time.Hour), now.Add(time.Duration(r.IntN(3)-1)*time.Millisecond)
			if a.ReviewedAt = (time.Time{}); a.Status != cloud.ApprovalPending || r.IntN(3) == 0 {
				a.ReviewedBy, a.ReviewedAt = 4, now.Add(-time.Duration(r.IntN(5))*time.Minute)
			}
			all[a.ID] = a
			ch.Approvals = append(ch.Approvals, a)
		}
		write(t, db, 0, ch)
	}
	look(t, db, func(v cloud.View) {
		for id, a := range all {
			got, err := v.Approval(a.BusinessID, id)
			require.NoError(t, err)
			require.Equal(t, a, got)
			_, err = v.Approval(3-a.BusinessID, id)
			require.ErrorIs(t, err, cloud.ErrNotFound, "another business's")
		}
		for range 200 {
			f := cloud.ApprovalFilter{BusinessID: cloud.BusinessID(r.IntN(2) + 1), Now: now, Page: cloud.Page{Sort: []string{"id", "requested_at"}[r.IntN(2)], Down: r.IntN(2) == 0, Offset: r.IntN(4), Limit: r.IntN(9)}}
			f.Status = []string{"", cloud.ApprovalPending, cloud.ApprovalExpired, cloud.ApprovalExecuted, cloud.ApprovalRejected}[r.IntN(5)]
			if f.Decided = r.IntN(4) == 0; f.Decided {
				f.Page.Sort = "reviewed_at"
			}
			f.Tool, f.RequestedBy = []string{"", "tool1"}[r.IntN(2)], cloud.AccountID(r.IntN(4))
			want := slices.DeleteFunc(slices.Collect(maps.Values(all)), func(a cloud.Approval) bool {
				return a.BusinessID != f.BusinessID || f.Status != "" && a.StatusAt(now) != f.Status || f.Decided && a.Status == cloud.ApprovalPending ||
					f.Tool != "" && a.Tool != f.Tool || f.RequestedBy != 0 && a.RequestedBy != f.RequestedBy
			})
			slices.SortFunc(want, func(a, b cloud.Approval) int {
				by := map[string]int{"requested_at": a.RequestedAt.Compare(b.RequestedAt), "reviewed_at": a.ReviewedAt.Compare(b.ReviewedAt)}[f.Page.Sort]
				if c := cmp.Or(by, cmp.Compare(a.ID, b.ID)); f.Page.Down {
					return -c
				} else {
					return c
				}
			})
			got, listed, err := v.Approvals(f)
			require.NoError(t, err)
			require.Equal(t, len(want), listed.Total, "%+v", f)
			requireWalk(t, f.Page, func(p cloud.Page) (cloud.Listed, []cloud.Approval, error) {
				f := f
				f.Page = p
				list, listed, err := v.Approvals(f)
				return listed, list, err
			})
			from := min(f.Page.Offset, len(want))
			require.Equal(t, names(want[from:min(from+f.Page.Limit, len(want))]), names(got), "%+v", f)
		}
		_, _, err := v.Approvals(cloud.ApprovalFilter{BusinessID: 1, Page: cloud.Page{Sort: "body"}})
		require.Error(t, err)
	})
	for id, a := range all { // no business takes over what is another's
		a.BusinessID = 3 - a.BusinessID
		err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{a}}}, nil
		})
		require.ErrorIs(t, err, cloud.ErrNotFound, id)
	}
}

func names(list []cloud.Approval) []cloud.ApprovalID {
	out := []cloud.ApprovalID{}
	for _, a := range list {
		out = append(out, a.ID)
	}
	return out
}

// approvalSerialises: of many that decide about one approval each sees what the
// one before wrote.
func approvalSerialises(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{{ID: "apr_1", BusinessID: 1, Status: cloud.ApprovalPending}}}})
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			require.NoError(t, db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				a, err := v.Approval(1, "apr_1")
				a.Note += "x"
				return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{a}}}, err
			}))
		})
	}
	wg.Wait()
	look(t, db, func(v cloud.View) {
		a, err := v.Approval(1, "apr_1")
		require.NoError(t, err)
		require.Len(t, a.Note, 24)
	})
}

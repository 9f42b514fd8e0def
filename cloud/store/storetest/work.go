package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/work"
)

func workDevice(id cloud.DeviceID, b cloud.BusinessID) cloud.Device {
	return cloud.Device{ID: id, BusinessID: b, Code: fmt.Sprint("W-", id), Name: fmt.Sprint("Cabinet ", id), Type: "smart_locker", Timezone: "UTC", CreatedAt: now}
}

// workItems compares work lists of two businesses with a plain filter over the rows that
// they were made of.
func workItems(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(7, 7))
	ch := &cloud.Changes{}
	businesses := map[cloud.DeviceID]cloud.BusinessID{1: 1, 2: 1, 3: 2}
	for id, b := range businesses {
		ch.Devices = append(ch.Devices, workDevice(id, b))
	}
	ch.Accounts = []cloud.Account{{ID: 1, BusinessID: 1, Type: cloud.ClientAdmin, Email: "a@a.example", Name: "Ann", Enabled: true}}
	var all []cloud.WorkItem
	of := map[string]cloud.BusinessID{}
	for id := cloud.ExceptionID(1); id <= 200; id++ {
		device := cloud.DeviceID(r.IntN(3) + 1)
		e := cloud.Exception{ID: id, BusinessID: businesses[device], DeviceID: device, GridCode: "A01", Source: fmt.Sprint("s", id), Type: []string{"door_left_open", "item_missing", "overdue"}[r.IntN(3)],
			Severity: []string{"high", "medium", "low"}[r.IntN(3)], Status: []string{"open", "open", "resolved"}[r.IntN(3)], OpenedAt: now.Add(time.Duration(r.IntN(40)) * time.Minute)}
		ch.Exceptions = append(ch.Exceptions, e)
		w := cloud.WorkItem{Kind: cloud.WorkException, Subject: strconv.FormatInt(int64(id), 10), Type: e.Type, Severity: e.Severity, Since: e.OpenedAt, DeviceID: device, Device: fmt.Sprint("Cabinet ", device), GridCode: "A01", Door: "A01"}
		if e.Type == "overdue" {
			w.Kind = cloud.WorkOverdue
		}
		if r.IntN(3) == 0 { // marks of the same subject in both businesses do not cross
			m := cloud.WorkMark{Kind: w.Kind, Subject: w.Subject, Note: fmt.Sprint("note ", id)}
			if r.IntN(2) == 0 {
				m.OwnerID = 1
			}
			if r.IntN(2) == 0 {
				m.SnoozeUntil = now.Add(time.Duration(r.IntN(4)-1) * time.Hour)
			}
			m.Begin(int64(id), e.BusinessID, now)
			other := m
			other.Begin(int64(id)+1000, 3-e.BusinessID, now)
			other.Note, other.SnoozeUntil = "of the other", now.Add(100*time.Hour)
			ch.Rows = append(ch.Rows, m, other)
			w.OwnerID, w.Note, w.SnoozeUntil = m.OwnerID, m.Note, m.SnoozeUntil
			if m.OwnerID == 1 && e.BusinessID == 1 {
				w.Owner = "Ann"
			}
		}
		if e.Status == "open" {
			all, of[w.Subject] = append(all, w), e.BusinessID
		}
	}
	ch.Sessions = []cloud.Session{{DeviceID: 1, Online: true, LastSeenAt: now.Add(-time.Hour)}, {DeviceID: 2, LastSeenAt: now.Add(-cloud.SilentAfter)}, {DeviceID: 3, LastSeenAt: now.Add(time.Second - cloud.SilentAfter)}}
	silent := cloud.WorkItem{Kind: cloud.WorkSilent, Subject: "2", Type: "offline", Severity: "medium", Since: now.Add(-cloud.SilentAfter), DeviceID: 2, Device: "Cabinet 2"}
	all, of["2/silent"] = append(all, silent), 1
	for i, a := range []struct {
		b    cloud.BusinessID
		risk string
	}{{1, "medium"}, {1, "high"}, {2, "high"}, {1, "high"}} {
		id := fmt.Sprint("apr_", i)
		at := now.Add(-time.Duration(i+1) * time.Minute)
		ch.Approvals = append(ch.Approvals, cloud.Approval{ID: cloud.ApprovalID(id), BusinessID: a.b, Tool: "hold_order", Summary: "Hold", Risk: a.risk, Arguments: []byte(`{"note":{"Risk":"high"}}`), Status: cloud.ApprovalPending, RequestedBy: 1, RequestedAt: at, ExpiresAt: now.Add(time.Hour)})
		all, of[id] = append(all, cloud.WorkItem{Kind: cloud.WorkApproval, Subject: id, Type: "hold_order", Severity: a.risk, Since: at, Title: "Hold", AskedBy: 1}), a.b
	}
	ch.DeviceFaults = []cloud.DeviceException{{DeviceID: 1, Type: cloud.DevBadSignature, Detail: "x", Count: 1, OpenedAt: now, SeenAt: now}}
	write(t, db, 0, ch)
	for range 25 {
		f := cloud.WorkFilter{BusinessID: cloud.BusinessID(r.IntN(2) + 1), Now: now, Limit: 300, Severity: []string{"", "", "high", "low", "medium"}[r.IntN(5)], Snoozed: r.IntN(4) == 0}
		f.Kinds = [][]string{{cloud.WorkException}, {cloud.WorkOverdue}, {cloud.WorkException, cloud.WorkOverdue, cloud.WorkSilent, cloud.WorkEndpoint, cloud.WorkApproval}}[r.IntN(3)]
		if r.IntN(4) == 0 {
			f.Owner = 1
		}
		var want []cloud.WorkItem
		for _, w := range all {
			b := of[w.Subject]
			if w.Kind == cloud.WorkSilent {
				b = 1
			}
			if b == f.BusinessID && slices.Contains(f.Kinds, w.Kind) && (f.Severity == "" || f.Severity == w.Severity) && w.SnoozeUntil.After(now) == f.Snoozed && (f.Owner == 0 || w.OwnerID == f.Owner) {
				want = append(want, w)
			}
		}
		work.Rank(want)
		look(t, db, func(v cloud.View) {
			got, cut, err := v.WorkItems(f)
			require.NoError(t, err)
			require.False(t, cut)
			work.Rank(got)
			require.Equal(t, want, got, "%+v", f)
			f.Limit = 2
			got, cut, err = v.WorkItems(f)
			require.NoError(t, err)
			work.Rank(got)
			require.Equal(t, want[:min(len(want), 1)], got[:min(len(got), 1)], "the gravest and oldest is never cut off")
			require.True(t, cut || len(want) <= 2*9)
		})
	}
	look(t, db, func(v cloud.View) {
		got, _, err := v.WorkItems(cloud.WorkFilter{BusinessID: 1, Kinds: []string{cloud.WorkFault}, Now: now, Limit: 9})
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "high", got[0].Severity)
		for _, subject := range []string{"x", "0", "-1", "1e3", "9223372036854775808", " 2"} {
			got, _, err = v.WorkItems(cloud.WorkFilter{BusinessID: 1, Kinds: []string{cloud.WorkSilent}, Subject: subject, Now: now, Limit: 1})
			require.NoError(t, err)
			require.Empty(t, got, subject)
		}
		got, _, err = v.WorkItems(cloud.WorkFilter{BusinessID: 2, Kinds: []string{cloud.WorkSilent}, Subject: "2", Now: now, Limit: 1})
		require.NoError(t, err)
		require.Empty(t, got, "the cabinet of another business")
	})
}

// workMarks lets several people take one item at once: one of them has it, and each of
// the others learns whose it is. A note that is written meanwhile is not lost.
func workMarks(t *testing.T, db *store.DB) {
	ch := &cloud.Changes{}
	ch.Businesses = []cloud.Business{{ID: 1, Code: "w", Name: "W", Timezone: "UTC"}}
	ch.Devices = []cloud.Device{workDevice(1, 1)}
	ch.Exceptions = []cloud.Exception{{ID: 1, BusinessID: 1, DeviceID: 1, GridCode: "A01", Source: "s", Type: "door_left_open", Severity: "low", Status: "open", OpenedAt: now}}
	for id := cloud.AccountID(1); id <= 6; id++ {
		ch.Accounts = append(ch.Accounts, cloud.Account{ID: id, BusinessID: 1, Type: cloud.ClientAdmin, Email: fmt.Sprint(id, "@w.example"), Name: fmt.Sprint("Person ", id), Enabled: true})
	}
	write(t, db, 0, ch)
	s := &work.Service{Store: db, Rights: func(context.Context, cloud.Caller, string, bool) error { return nil }}
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() {
			c := cloud.Caller{Account: ch.Accounts[i]}
			if i == 5 {
				_, errs[i] = s.Note(t.Context(), c, work.NoteInput{ID: "exception-1", Note: "On my way"})
				return
			}
			_, errs[i] = s.Take(t.Context(), c, work.TakeInput{ID: "exception-1"})
		})
	}
	wg.Wait()
	require.NoError(t, errs[5])
	winner := -1
	for i, err := range errs[:5] {
		var refused *cloud.Error
		switch {
		case err == nil:
			require.Negative(t, winner, "two people have it")
			winner = i
		case errors.As(err, &refused):
			require.Equal(t, "WORK_ITEM_TAKEN", refused.Code)
		default:
			require.NoError(t, err)
		}
	}
	require.GreaterOrEqual(t, winner, 0)
	c := cloud.Caller{Account: ch.Accounts[winner]}
	found, err := s.Find(t.Context(), c, work.ByItem{ID: "exception-1"})
	require.NoError(t, err)
	require.Equal(t, c.Account.Name, found.Item.OwnerName)
	require.Equal(t, "On my way", found.Item.Note)

	hours := 2
	out, err := s.Snooze(t.Context(), c, work.SnoozeInput{ID: "exception-1", Hours: &hours})
	require.NoError(t, err)
	require.NotNil(t, out.Item.SnoozedUntil)
	yes := true
	for _, x := range []struct {
		in   work.ListInput
		want int
	}{{work.ListInput{}, 0}, {work.ListInput{Snoozed: &yes}, 1}} {
		list, err := s.List(t.Context(), c, x.in)
		require.NoError(t, err)
		require.Len(t, list.Items, x.want)
	}
	hours = 0
	_, err = s.Snooze(t.Context(), c, work.SnoozeInput{ID: "exception-1", Hours: &hours})
	require.NoError(t, err)
	list, err := s.List(t.Context(), c, work.ListInput{Mine: &yes})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	none := &work.Service{Store: db, Rights: func(context.Context, cloud.Caller, string, bool) error { return cloud.E(cloud.Forbidden, "FORBIDDEN") }}
	list, err = none.List(t.Context(), c, work.ListInput{})
	require.NoError(t, err)
	require.Empty(t, list.Items, "without rights nothing is listed")
	_, err = none.Take(t.Context(), c, work.TakeInput{ID: "exception-1"})
	var refused *cloud.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "WORK_ITEM_NOT_FOUND", refused.Code)
}

package account

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// world is two businesses on a database. Ann and Ben are admins of the first,
// Rae of the second; accounts that a test makes have ids of the store.
type world struct {
	t  testing.TB
	db *store.DB
	s  *Service
}

var (
	ann = person(10, 1, cloud.ClientAdmin, "ann@a.example", true)
	ben = person(11, 1, cloud.ClientAdmin, "ben@a.example", true)
	cus = person(12, 1, cloud.Customer, "cus@a.example", true)
	rae = person(20, 2, cloud.ClientAdmin, "rae@b.example", true)
	top = person(90, 0, cloud.PlatformAdmin, "top@p.example", true)
)

func person(id cloud.AccountID, b cloud.BusinessID, kind cloud.AccountType, email string, enabled bool) cloud.Account {
	return cloud.Account{ID: id, BusinessID: b, Type: kind, Email: email, Name: email[:3], Enabled: enabled}
}

func as(a cloud.Account) cloud.Caller { return cloud.Caller{Account: a} }

func ptr[T any](v T) *T { return &v }

func newWorld(t *testing.T, unavailable ...string) *world {
	w := &world{t: t, db: storetest.OpenSQLite(t)}
	w.s = New(Config{Store: w.db, Unavailable: unavailable})
	w.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "Acme", Timezone: "America/Toronto"}, {ID: 2, Code: "rival", Name: "Rival", Timezone: "UTC"}},
		Accounts: []cloud.Account{ann, ben, cus, rae, top}}})
	return w
}

func (w *world) write(ch *cloud.Changes) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
}

func (w *world) look(fn func(v cloud.View)) {
	w.t.Helper()
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) error { fn(v); return nil }))
}

func (w *world) account(id cloud.AccountID) (a cloud.Account) {
	w.t.Helper()
	w.look(func(v cloud.View) {
		var err error
		a, err = v.Account(id)
		require.NoError(w.t, err)
	})
	return a
}

func (w *world) business(id cloud.BusinessID) (b cloud.Business) {
	w.t.Helper()
	w.look(func(v cloud.View) {
		var err error
		b, err = v.Business(id)
		require.NoError(w.t, err)
	})
	return b
}

// actions are the audit lines of a business, oldest first, without their ids.
func (w *world) actions(b cloud.BusinessID) (out []string) {
	w.t.Helper()
	rows, err := w.db.ListAudits(w.t.Context(), b, 0, 100)
	require.NoError(w.t, err)
	for _, r := range slices.Backward(rows) {
		kind, _, _ := strings.Cut(r.Audit.Target, ":")
		out = append(out, fmt.Sprint(r.Audit.Actor, " ", r.Audit.Action, " ", kind))
	}
	return out
}

// unchanged runs a call and requires that it left no line of audit.
func (w *world) unchanged(call func()) {
	w.t.Helper()
	before := [][]string{w.actions(1), w.actions(2)}
	call()
	require.Equal(w.t, before, [][]string{w.actions(1), w.actions(2)}, "a refused call changes nothing")
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// refused checks that an input is refused for a member: by its tags, as the
// catalogue does before it calls, or else by the feature.
func refused[In, Out any](w *world, member string, in In, call func(In) (Out, error)) {
	w.t.Helper()
	w.unchanged(func() {
		w.t.Helper()
		err := check.Input(&in)
		if err == nil {
			_, err = call(in)
		}
		var e *cloud.Error
		require.ErrorAs(w.t, err, &e, "%s of %+v", member, in)
		require.Equal(w.t, []any{cloud.Invalid, check.Code}, []any{e.Kind, e.Code})
		require.Contains(w.t, e.Fields, member, "%+v", in)
	})
}

// day is a date so many days from now, as inputs have it.
func day(days int) string { return time.Now().AddDate(0, 0, days).Format(time.DateOnly) }

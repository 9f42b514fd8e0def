package collection

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

type guideID int64

// guide is a row as a family has it.
type guide struct {
	cloud.Kept[guideID]
	Name string `row:",unique,sort"`
}

func (guide) RowKind() cloud.IDKind { return "guide" }

// memory is a store of guides of any business.
type memory struct {
	cloud.View
	rows   map[guideID]guide
	audits []cloud.Audit
	like   guide // of the last list
	page   cloud.Page
	answer any
}

func (m *memory) Look(_ context.Context, fn func(cloud.View) error) error { return fn(m) }

func (m *memory) Decide(_ context.Context, _ cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	ch, err := fn(m)
	if err != nil {
		return err
	}
	for _, r := range ch.Rows {
		g := r.(guide)
		for _, x := range m.rows {
			if x.Name == g.Name && x.ID != g.ID {
				return cloud.ErrExists
			}
		}
		m.rows[g.ID] = g
	}
	for _, r := range ch.DroppedRows {
		delete(m.rows, r.(guide).ID)
	}
	m.audits, m.answer = append(m.audits, ch.Audits...), ch.Answer
	return nil
}

func (m *memory) NewID(cloud.IDKind) (int64, error) { return int64(len(m.rows) + 1), nil }

func (m *memory) Business(id cloud.BusinessID) (cloud.Business, error) {
	return cloud.Business{ID: id, Timezone: "UTC"}, nil
}

func (m *memory) FindRow(like cloud.Row) (cloud.Row, error) {
	g, ok := m.rows[like.(guide).ID]
	if !ok || g.BusinessID != like.(guide).BusinessID {
		return nil, cloud.ErrNotFound
	}
	return g, nil
}

func (m *memory) ListRows(like cloud.Row, p cloud.Page) (out []cloud.Row, listed cloud.Listed, err error) {
	m.like, m.page = like.(guide), p
	for _, g := range m.rows {
		if g.BusinessID == m.like.BusinessID {
			out = append(out, g)
		}
	}
	return out, cloud.Listed{Total: len(out)}, nil
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Code)
}

// A family's steps touch rows of the caller's business and write who did what.
func TestStepsKeepToTheBusiness(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), &memory{rows: map[guideID]guide{}}
	ann := cloud.Caller{Account: cloud.Account{ID: 10, BusinessID: 1}}
	rae := cloud.Caller{Account: cloud.Account{ID: 20, BusinessID: 2}}
	name := func(g guide, _ *time.Location) string { return g.Name }
	fill := func(text string) func(*guide) error { return func(g *guide) error { g.Name = text; return nil } }

	out, err := Create(ctx, m, ann, fill("Lobby"), name)
	require.NoError(t, err)
	require.Equal(t, "Lobby", out)
	require.Equal(t, "Lobby", m.answer, "a repeat of the call has the answer")
	require.EqualValues(t, 1, m.rows[1].BusinessID)
	require.False(t, m.rows[1].CreatedAt.IsZero())
	made := m.rows[1].CreatedAt
	_, err = Create(ctx, m, rae, fill("Lobby"), name)
	refused(t, err, "GUIDE_EXISTS")

	_, err = Change(ctx, m, rae, guideID(1), fill("Hall"), name)
	refused(t, err, "GUIDE_NOT_FOUND")
	_, err = Find(ctx, m, rae, guideID(1), name)
	refused(t, err, "GUIDE_NOT_FOUND")
	_, err = Remove[guide](ctx, m, rae, guideID(1))
	refused(t, err, "GUIDE_NOT_FOUND")
	wrong := cloud.E(cloud.Conflict, "WRONG")
	_, err = Change(ctx, m, ann, guideID(1), func(*guide) error { return wrong }, name)
	refused(t, err, "WRONG")
	require.Len(t, m.audits, 1)

	out, err = Change(ctx, m, ann, guideID(1), fill("Hall"), name)
	require.NoError(t, err)
	require.Equal(t, "Hall", out)
	require.Equal(t, made, m.rows[1].CreatedAt)
	out, err = Find(ctx, m, ann, guideID(1), name)
	require.NoError(t, err)
	require.Equal(t, "Hall", out)

	list, page, err := List(ctx, m, rae, PageInput{}, guide{Kept: cloud.Kept[guideID]{BusinessID: 1}, Name: "Hall"}, name)
	require.NoError(t, err)
	require.Equal(t, []string{}, list, "a list without rows is no null")
	require.Zero(t, page.Total)
	require.Equal(t, guide{Kept: cloud.Kept[guideID]{BusinessID: 2}, Name: "Hall"}, m.like, "the owner is the caller's business, whatever the example says")
	require.Equal(t, cloud.Page{Sort: "id", Down: true, Limit: 20}, m.page)
	list, page, err = List(ctx, m, ann, PageInput{Keyset: check.Keyset{PerPage: new(5)}, Sort: "-name"}, guide{}, name)
	require.NoError(t, err)
	require.Equal(t, []string{"Hall"}, list)
	require.Equal(t, 1, page.Total)
	require.Equal(t, cloud.Page{Sort: "name", Down: true, Limit: 5}, m.page)
	_, _, err = List(ctx, m, ann, PageInput{Sort: "business_id"}, guide{}, name)
	refused(t, err, "VALIDATION_FAILED")

	done, err := Remove[guide](ctx, m, ann, guideID(1))
	require.NoError(t, err)
	require.True(t, done.Result)
	require.Empty(t, m.rows)
	require.Len(t, m.audits, 3)
	for i, action := range []string{"guide_made", "guide_changed", "guide_removed"} {
		a := m.audits[i]
		require.Equal(t, []any{cloud.BusinessID(1), "account:10", action, "guide:1"}, []any{a.BusinessID, a.Actor, a.Action, a.Target})
	}
}

type listInput struct {
	PageInput
	Name string
}

func (in listInput) like() guide { return guide{Name: in.Name} }

type guideInput struct {
	ByID[guide]
	Name string
}

func (in guideInput) fill(g *guide) error { g.Name = in.Name; return nil }

// The operations of a family are its steps over its inputs and answers.
func TestOperationsAreTheSteps(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), &memory{rows: map[guideID]guide{}}
	ann := cloud.Caller{Account: cloud.Account{ID: 10, BusinessID: 1}}
	name := func(g guide, _ *time.Location) string { return g.Name }
	out, err := MakeCreate(m, guideInput.fill, name)(ctx, ann, guideInput{Name: "Lobby"})
	require.NoError(t, err)
	require.Equal(t, "Lobby", out)
	out, err = MakeChange(m, guideInput.fill, name)(ctx, ann, guideInput{ByID[guide]{1}, "Hall"})
	require.NoError(t, err)
	require.Equal(t, "Hall", out)
	out, err = MakeFind(m, name)(ctx, ann, ByID[guide]{1})
	require.NoError(t, err)
	require.Equal(t, "Hall", out)
	list, err := MakeList(m, listInput.like, name, func(all []string, p check.PageOutput) []string { return append(all, "of", strconv.Itoa(p.Total)) })(ctx, ann, listInput{Name: "Hall"})
	require.NoError(t, err)
	require.Equal(t, []string{"Hall", "of", "1"}, list)
	require.Equal(t, "Hall", m.like.Name)
	_, err = MakeRemove[guide](m)(ctx, ann, ByID[guide]{2})
	refused(t, err, "GUIDE_NOT_FOUND")
	done, err := MakeRemove[guide](m)(ctx, ann, ByID[guide]{1})
	require.NoError(t, err)
	require.True(t, done.Result)
}

// Package collection has the steps that families of simple rows share: list, find,
// create, change and remove rows of the caller's business (cloud.Row).
//
// Each step is one transaction with an audit line. Rows of another business are
// answered as if they were not there: the steps set the owner, no family does. Codes
// of errors follow from the kind of the row: of a skill they are SKILL_NOT_FOUND and
// SKILL_EXISTS, which says that a unique member is taken. Safe for concurrent use.
package collection

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// PageInput asks for a part of a list. Inputs of lists embed it.
type PageInput struct {
	check.Keyset
	Sort string `query:"sort" doc:"A member, or - and a member; -id when absent"`
}

// Paged is the input of a list.
type Paged interface{ Asked() PageInput }

// Asked implements Paged.
func (p PageInput) Asked() PageInput { return p }

// Sorted is the part that an input asks for, of a list that can be sorted by some
// members; newest first when it says no order. Errors: VALIDATION_FAILED,
// cloud.ErrNoMark.
func (p PageInput) Sorted(in any, sorts ...string) (cloud.Page, error) {
	if p.Sort != "" && !slices.Contains(sorts, strings.TrimPrefix(p.Sort, "-")) {
		f := check.Fields{}
		f.Say("sort", check.MessageEnum, strings.Join(sorts, ", ")+", -"+strings.Join(sorts, ", -"))
		return cloud.Page{}, f.Err()
	}
	return p.Part(in, cmp.Or(p.Sort, "-id"))
}

// Done is the answer of what has nothing to say.
type Done struct {
	Result bool `json:"result"`
}

// kept is a row that embeds cloud.Kept, by its address.
type kept[R any] interface {
	*R
	Begin(id int64, b cloud.BusinessID, now time.Time)
	Touch(now time.Time)
}

// of is a row of the caller's business with an id and nothing else.
func of[R any, P kept[R]](c cloud.Caller, id int64) (r R) {
	P(&r).Begin(id, c.Account.BusinessID, time.Time{})
	return r
}

// List shows a part of the rows of the caller's business that have all members of
// like that are not zero. They are sorted by the columns that are tagged for it.
// Errors: VALIDATION_FAILED, cloud.ErrNoMark.
func List[R cloud.Row, P kept[R], O any](ctx context.Context, s Store, c cloud.Caller, in Paged, like R, show func(R, *time.Location) O) ([]O, check.PageOutput, error) {
	P(&like).Begin(0, c.Account.BusinessID, time.Time{})
	return ListLike(ctx, s, c, in, like, show)
}

// ListLike is List for rows that have another owner, which like names.
func ListLike[R cloud.Row, O any](ctx context.Context, s Store, c cloud.Caller, in Paged, like R, show func(R, *time.Location) O) (out []O, page check.PageOutput, err error) {
	var sorts []string
	for _, column := range cloud.ColumnsOf(like) {
		if column.Sort {
			sorts = append(sorts, column.Name)
		}
	}
	asked, out := in.Asked(), []O{}
	part, err := asked.Sorted(in, sorts...)
	if err != nil {
		return out, page, err
	}
	err = s.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := cloud.List(v, like, part)
		page = asked.Output(in, listed)
		for _, r := range list {
			out = append(out, show(r, b.Location()))
		}
		return err
	})
	return out, page, err
}

// Find answers with a row of the caller's business. Error: …_NOT_FOUND.
func Find[R cloud.Row, P kept[R], I ~int64, O any](ctx context.Context, s Store, c cloud.Caller, id I, answer func(R, *time.Location) O) (out O, err error) {
	err = s.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		r, err := FindIn(v, of[R, P](c, int64(id)))
		if err == nil {
			out = answer(r, b.Location())
		}
		return err
	})
	return out, err
}

// Create stores a new row of the caller's business, as fill fills it in. fill may be
// called again. Errors: those of fill, …_EXISTS.
func Create[R cloud.Row, P kept[R], O any](ctx context.Context, s Store, c cloud.Caller, fill func(*R) error, answer func(R, *time.Location) O) (O, error) {
	return CreateIn[R, P](ctx, s, c, func(_ cloud.View, r *R) error { return fill(r) }, answer)
}

// CreateIn is Create for rows that look at what stands.
func CreateIn[R cloud.Row, P kept[R], O any](ctx context.Context, s Store, c cloud.Caller, fill func(cloud.View, *R) error, answer func(R, *time.Location) O) (O, error) {
	var look cloud.View
	return save(ctx, s, c, "made", func(v cloud.View, now time.Time) (r R, err error) {
		look = v
		id, err := v.NewID(r.RowKind())
		P(&r).Begin(id, c.Account.BusinessID, now)
		return r, err
	}, func(r *R) error { return fill(look, r) }, answer)
}

// Change stores a row of the caller's business as fill changes it. fill may be called
// again. Errors: those of fill, …_NOT_FOUND, …_EXISTS.
func Change[R cloud.Row, P kept[R], I ~int64, O any](ctx context.Context, s Store, c cloud.Caller, id I, fill func(*R) error, answer func(R, *time.Location) O) (O, error) {
	return save(ctx, s, c, "changed", func(v cloud.View, now time.Time) (R, error) {
		r, err := FindIn(v, of[R, P](c, int64(id)))
		P(&r).Touch(now)
		return r, err
	}, fill, answer)
}

// Remove removes a row of the caller's business. Error: …_NOT_FOUND.
func Remove[R cloud.Row, P kept[R], I ~int64](ctx context.Context, s Store, c cloud.Caller, id I) (Done, error) {
	err := s.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		r, err := FindIn(v, of[R, P](c, int64(id)))
		if err != nil {
			return nil, err
		}
		return &cloud.Changes{RowChanges: cloud.RowChanges{DroppedRows: []cloud.Row{r}}, AuditChanges: line(c, r, moment(), "removed"), Answer: Done{true}}, nil
	})
	return Done{err == nil}, err
}

func save[R cloud.Row, O any](ctx context.Context, s Store, c cloud.Caller, done string, begin func(cloud.View, time.Time) (R, error), fill func(*R) error, answer func(R, *time.Location) O) (out O, err error) {
	now := moment()
	err = s.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		r, err := begin(v, now)
		if err == nil {
			err = fill(&r)
		}
		if err != nil {
			return nil, err
		}
		out = answer(r, b.Location())
		return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{r}}, AuditChanges: line(c, r, now, done), Answer: out}, nil
	})
	if err != nil {
		var none O
		var r R
		if errors.Is(err, cloud.ErrExists) {
			err = cloud.E(cloud.Conflict, code(r, "EXISTS"))
		}
		return none, err
	}
	return out, nil
}

// FindIn finds a row in a decision. Error: …_NOT_FOUND, by its kind.
func FindIn[R cloud.Row](v cloud.View, like R) (R, error) {
	r, err := cloud.Find(v, like)
	if errors.Is(err, cloud.ErrNotFound) {
		err = cloud.E(cloud.NotFound, code(r, "NOT_FOUND"))
	}
	return r, err
}

// code is a public code about a kind of rows.
func code(r cloud.Row, what string) string { return strings.ToUpper(string(r.RowKind())) + "_" + what }

// line is the audit line of what was done to a row.
func line(c cloud.Caller, r cloud.Row, now time.Time, done string) cloud.AuditChanges {
	kind := string(r.RowKind())
	return cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: c.Account.BusinessID, At: now, Actor: c.Account.ID.Actor(), Action: kind + "_" + done,
		Target: kind + ":" + strconv.FormatInt(r.RowID(), 10), Detail: "{}"}}}
}

func moment() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

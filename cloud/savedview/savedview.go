// Package savedview keeps lists of the console as people want to see them again. A
// view belongs to a person; one that is shared is seen by all staff of the business.
// Safe for concurrent use.
package savedview

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
)

// maxViews bounds the views of one person.
const maxViews = 100

// View is a saved view as it is answered.
type View struct {
	ID        cloud.SavedViewID `json:"saved_view_id"`
	Noun      string            `json:"noun"`
	Name      string            `json:"name"`
	Query     string            `json:"query"`
	Shared    bool              `json:"shared"`
	Own       bool              `json:"own"`
	CreatedAt *string           `json:"created_at"`
}

// Output shows a view.
type Output struct {
	Result bool `json:"result"`
	View   View `json:"saved_view"`
}

// ListInput asks for the views of a list.
type ListInput struct {
	Noun string `query:"noun" max:"40" doc:"Name of the console's noun, such as order; all when absent"`
}

// ListOutput lists views by name.
type ListOutput struct {
	Result bool   `json:"result"`
	Views  []View `json:"saved_views"`
}

// Input describes a new view.
type Input struct {
	Noun   string `json:"noun" required:"true" max:"40" pattern:"^[a-z_]+$" example:"order"`
	Name   string `json:"name" required:"true" max:"60" line:"true"`
	Query  string `json:"query" max:"1000" line:"true" doc:"Query of the list's address: filters, columns, sort"`
	Shared bool   `json:"shared" doc:"All staff of the business see it; of staff alone"`
}

// Service keeps views.
type Service struct{ store collection.Store }

// New returns one.
func New(s collection.Store) *Service { return &Service{s} }

func show(r cloud.SavedView, c cloud.Caller, l *time.Location) View {
	return View{r.ID, r.Noun, r.Name, r.Query, r.Shared, r.AccountID == c.Account.ID, cloud.Stamp(r.CreatedAt, l)}
}

// List lists the caller's views, and for staff those that are shared.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	out := ListOutput{Views: []View{}}
	err := s.store.Look(ctx, func(v cloud.View) error {
		out.Views = out.Views[:0]
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		like := cloud.SavedView{Kept: cloud.Kept[cloud.SavedViewID]{BusinessID: b.ID}, Noun: in.Noun}
		own, shared := like, like
		own.AccountID, shared.Shared = c.Account.ID, true
		list, err := cloud.All(v, own)
		if err != nil {
			return err
		}
		if c.Account.Type.IsStaff() {
			of, err := cloud.All(v, shared)
			if err != nil {
				return err
			}
			for _, r := range of {
				if r.AccountID != c.Account.ID {
					list = append(list, r)
				}
			}
		}
		for _, r := range list {
			out.Views = append(out.Views, show(r, c, b.Location()))
		}
		slices.SortStableFunc(out.Views, func(a, b View) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
		return nil
	})
	out.Result = err == nil
	return out, err
}

// Create keeps a view. Errors: VALIDATION_FAILED, SAVED_VIEW_EXISTS,
// SAVED_VIEW_LIMIT_REACHED.
func (s *Service) Create(ctx context.Context, c cloud.Caller, in Input) (Output, error) {
	f := check.Fields{}
	if _, err := url.ParseQuery(in.Query); err != nil || strings.HasPrefix(in.Query, "?") {
		f.Say("query", "The query must be that of an address, without the question mark.")
	}
	if in.Shared && !c.Account.Type.IsStaff() {
		f.Say("shared", "Staff alone share views.")
	}
	if err := f.Err(); err != nil {
		return Output{}, err
	}
	return collection.CreateIn(ctx, s.store, c, func(v cloud.View, r *cloud.SavedView) error {
		own, err := cloud.All(v, cloud.SavedView{Kept: cloud.Kept[cloud.SavedViewID]{BusinessID: c.Account.BusinessID}, AccountID: c.Account.ID})
		if err != nil {
			return err
		}
		if len(own) >= maxViews {
			return cloud.E(cloud.Conflict, "SAVED_VIEW_LIMIT_REACHED")
		}
		r.AccountID, r.Noun, r.Name, r.Query, r.Shared = c.Account.ID, in.Noun, in.Name, in.Query, in.Shared
		return nil
	}, func(r cloud.SavedView, l *time.Location) Output { return Output{true, show(r, c, l)} })
}

// find reads a view that the caller sees. Error: SAVED_VIEW_NOT_FOUND.
func find(v cloud.View, c cloud.Caller, id int64) (cloud.SavedView, error) {
	r, err := cloud.Find(v, cloud.SavedView{Kept: cloud.Kept[cloud.SavedViewID]{ID: cloud.SavedViewID(id), BusinessID: c.Account.BusinessID}})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && r.AccountID != c.Account.ID && !(r.Shared && c.Account.Type.IsStaff()) {
		return r, cloud.E(cloud.NotFound, "SAVED_VIEW_NOT_FOUND")
	}
	return r, err
}

// Find shows a view. Error: SAVED_VIEW_NOT_FOUND.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in collection.ByID[cloud.SavedView]) (out Output, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		r, err := find(v, c, in.ID)
		if err != nil {
			return err
		}
		b, err := v.Business(r.BusinessID)
		out = Output{err == nil, show(r, c, b.Location())}
		return err
	})
	return out, err
}

// Remove removes a view of the caller, or for administrators a shared one. Errors:
// SAVED_VIEW_NOT_FOUND, SAVED_VIEW_NOT_OWN.
func (s *Service) Remove(ctx context.Context, c cloud.Caller, in collection.ByID[cloud.SavedView]) (collection.Done, error) {
	err := s.store.Look(ctx, func(v cloud.View) error {
		r, err := find(v, c, in.ID)
		if err == nil && r.AccountID != c.Account.ID && c.Account.Type != cloud.ClientAdmin {
			err = cloud.E(cloud.Forbidden, "SAVED_VIEW_NOT_OWN")
		}
		return err
	})
	if err != nil {
		return collection.Done{}, err
	}
	return collection.Remove[cloud.SavedView](ctx, s.store, c, in.ID)
}

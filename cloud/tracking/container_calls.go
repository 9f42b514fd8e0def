package tracking

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// Containers are the operations on containers.
type Containers struct{ s *Service }

// ContainersOf is that of a service.
func ContainersOf(s *Service) Containers { return Containers{s} }

// ContainerInput makes a container.
type ContainerInput struct {
	Kind     string `json:"kind" required:"true" enum:"pallet,bag,cage,route,vehicle"`
	Scheme   string `json:"scheme" required:"true" enum:"sscc,grai,giai,own" doc:"What identity is"`
	Identity string `json:"identity" required:"true" max:"64" line:"true" doc:"By which events name the container; one container of a business has it"`
}

// ContainerRef names a container.
type ContainerRef struct {
	ID cloud.ContainerID `path:"id" json:"-"`
}

// ContainersInput asks for a part of the containers.
type ContainersInput struct {
	check.Keyset
	Kind string `query:"kind" enum:"pallet,bag,cage,route,vehicle"`
}

// ContainersOutput lists containers.
type ContainersOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Containers []ContainerRow `json:"containers"`
}

// ContainerRow is a container without what is inside.
type ContainerRow struct {
	ID        cloud.ContainerID `json:"container_id"`
	Kind      string            `json:"kind" enum:"pallet,bag,cage,route,vehicle"`
	Scheme    string            `json:"scheme" enum:"sscc,grai,giai,own"`
	Identity  string            `json:"identity"`
	CreatedAt string            `json:"created_at" format:"date-time"`
}

// ContainerOutput is one container.
type ContainerOutput struct {
	Result    bool          `json:"result"`
	Container ContainerBody `json:"container"`
}

// ContainerBody is a container with what is in it now, and its newest events.
type ContainerBody struct {
	ContainerRow
	Children []ContainerChild `json:"children" doc:"What is inside now"`
	Events   []otep.Event     `json:"events" doc:"Newest first, at most 500"`
}

// ContainerChild is a thing in a container.
type ContainerChild struct {
	Number    *string            `json:"tracking_number" doc:"Of a parcel or an order; null for a container"`
	Container *cloud.ContainerID `json:"container_id" doc:"Of a container; null for a parcel or an order"`
	Since     string             `json:"since" format:"date-time"`
}

// BindInput puts things into a container, or takes them out.
type BindInput struct {
	ContainerRef
	Children []string `json:"children" required:"true" min:"1" max:"1000" item_min:"1" item_max:"100" item_line:"true" doc:"Numbers of parcels and orders, and identities of containers"`
	At       string   `json:"at" format:"date-time" doc:"When it happened, now when absent"`
}

// BindOutput says what became of it.
type BindOutput struct {
	Result  bool              `json:"result"`
	ID      cloud.ContainerID `json:"container_id"`
	Changed int               `json:"changed" doc:"Bindings that were written; the others were there already"`
}

// scopeOf is the business whose containers a caller may see. A provider sees its own, or all with the scope all.
func scopeOf(c cloud.Caller) (cloud.Container, error) {
	like := cloud.Container{}
	switch {
	case c.Anonymous():
		return like, cloud.E(cloud.Unauthenticated, codeCredentials)
	case c.Account.Type == cloud.ProviderType && c.Provider.ID != 0:
		like.BusinessID = c.Provider.BusinessID
		if c.Provider.Scope != cloud.ScopeAll {
			like.ProviderID = c.Provider.ID
		}
	case c.Account.Type.IsStaff():
		like.BusinessID = c.Account.BusinessID
	}
	if like.BusinessID == 0 {
		return like, cloud.E(cloud.Forbidden, codeForbidden)
	}
	return like, nil
}

// own finds a container of a caller. Error: CONTAINER_NOT_FOUND.
func own(v cloud.View, c cloud.Caller, id cloud.ContainerID) (cloud.Container, error) {
	like, err := scopeOf(c)
	if err != nil {
		return like, err
	}
	found, err := cloud.Find(v, cloud.Container{Kept: cloud.Kept[cloud.ContainerID]{ID: id, BusinessID: like.BusinessID}})
	if isMissing(err) || err == nil && like.ProviderID != 0 && !found.OfProvider(c.Provider) {
		err = cloud.E(cloud.NotFound, codeContainerMissing)
	}
	return found, err
}

// Create makes a container. Errors: CONTAINER_EXISTS, OTEP_INVALID_REQUEST.
func (s Containers) Create(ctx context.Context, c cloud.Caller, in ContainerInput) (out ContainerOutput, err error) {
	like, err := scopeOf(c)
	if err != nil {
		return out, err
	}
	row := cloud.Container{Kind: in.Kind, Scheme: in.Scheme, Identity: strings.TrimSpace(in.Identity), Key: containerKey(in.Identity)}
	if c.Account.Type == cloud.ProviderType {
		row.ProviderID = c.Provider.ID
	}
	if row.Key == "" || in.Scheme == "sscc" && !otep.IsSSCC(row.Key) {
		return out, invalid("identity", "Give the identity of the container; an SSCC has 18 digits, the last one a check digit.")
	}
	now := milliseconds(time.Now())
	err = decideAgain(ctx, s.s.store, func(v cloud.View) (*cloud.Changes, error) {
		if _, err := v.ContainerByKey(like.BusinessID, row.Key); err == nil {
			return nil, cloud.E(cloud.Conflict, "CONTAINER_EXISTS")
		} else if !isMissing(err) {
			return nil, err
		}
		id, err := v.NewID(cloud.ContainerIDs)
		if err != nil {
			return nil, err
		}
		made := row
		made.Begin(id, like.BusinessID, now)
		ch := &cloud.Changes{}
		ch.Rows = append(ch.Rows, made)
		binder{business: like.BusinessID, now: now, ch: ch}.turn()
		b, err := v.Business(like.BusinessID)
		out = ContainerOutput{Result: true, Container: ContainerBody{containerRow(made, b.Location()), []ContainerChild{}, []otep.Event{}}}
		ch.Answer = out
		return ch, err
	})
	return out, err
}

func containerRow(c cloud.Container, l *time.Location) ContainerRow {
	return ContainerRow{ID: c.ID, Kind: c.Kind, Scheme: c.Scheme, Identity: c.Identity, CreatedAt: *cloud.Stamp(c.CreatedAt, l)}
}

// List lists containers, newest first.
func (s Containers) List(ctx context.Context, c cloud.Caller, in ContainersInput) (out ContainersOutput, err error) {
	like, err := scopeOf(c)
	if err != nil {
		return out, err
	}
	like.Kind = in.Kind
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	err = s.s.store.Look(ctx, func(v cloud.View) error {
		list, listed, err := cloud.List(v, like, page)
		if err != nil {
			return err
		}
		b, err := v.Business(like.BusinessID)
		out = ContainersOutput{Result: true, PageOutput: in.Output(in, listed), Containers: []ContainerRow{}}
		for _, x := range list {
			out.Containers = append(out.Containers, containerRow(x, b.Location()))
		}
		return err
	})
	return out, err
}

// Find shows a container. Error: CONTAINER_NOT_FOUND.
func (s Containers) Find(ctx context.Context, c cloud.Caller, in ContainerRef) (out ContainerOutput, err error) {
	now := time.Now()
	err = s.s.store.Look(ctx, func(v cloud.View) error {
		x, err := own(v, c, in.ID)
		if err != nil {
			return err
		}
		b, err := v.Business(x.BusinessID)
		if err != nil {
			return err
		}
		body := ContainerBody{containerRow(x, b.Location()), []ContainerChild{}, []otep.Event{}}
		marks, err := v.MarksIn(x.ID)
		if err != nil {
			return err
		}
		for child, list := range byChild(marks) {
			if !list.Holds(now) {
				continue
			}
			row, ok, err := shownChild(v, c, child)
			if err != nil {
				return err
			}
			spans := list.Spans()
			row.Since = *cloud.Stamp(spans[len(spans)-1].From, b.Location())
			if ok {
				body.Children = append(body.Children, row)
			}
		}
		slices.SortFunc(body.Children, func(p, q ContainerChild) int {
			return cmp.Or(cmp.Compare(p.Since, q.Since), cmp.Compare(fmt.Sprint(p.name()), fmt.Sprint(q.name())))
		})
		events, err := v.EventsIn(x.ID, startOfTimes, cloud.EndOfTimes)
		if err != nil {
			return err
		}
		for _, row := range events {
			e, err := row.Decode()
			if err != nil {
				return err
			}
			if !e.Withdrawn {
				e = e.Fill(otep.DefaultProfile)
				e.StatusLabel = locale.Status(c.Language, e.StatusCode)
				body.Events = append(body.Events, e)
			}
		}
		slices.SortFunc(body.Events, func(p, q otep.Event) int { return -otep.Compare(&p, &q) })
		body.Events = body.Events[:min(len(body.Events), maxShown)]
		out = ContainerOutput{Result: true, Container: body}
		return nil
	})
	return out, err
}

func (x ContainerChild) name() string {
	if x.Number != nil {
		return *x.Number
	}
	return fmt.Sprint(int64(*x.Container))
}

// shownChild is a thing in a container as a caller sees it; ok is false for a parcel of others.
func shownChild(v cloud.View, c cloud.Caller, child string) (row ContainerChild, ok bool, err error) {
	x, err := cloud.ParseThing(child)
	if err != nil {
		return row, false, err
	}
	if x.Container != 0 {
		return ContainerChild{Container: &x.Container}, true, nil
	}
	sh, err := v.ShipmentByID(x.Shipment)
	if isMissing(err) || err == nil && !c.Owns(sh) {
		return row, false, nil
	}
	if err != nil {
		return row, false, err
	}
	number, err := numberOf(v, sh, x.Package)
	row.Number = &number
	return row, err == nil, err
}

// Bind puts things into a container. Errors: CONTAINER_NOT_FOUND, OTEP_TRACKING_NOT_FOUND with the names in its
// details, CONTAINER_CYCLE, CONTAINER_TOO_DEEP, CONTAINER_FULL, OTEP_INVALID_REQUEST.
func (s Containers) Bind(ctx context.Context, c cloud.Caller, in BindInput) (BindOutput, error) {
	return s.mark(ctx, c, in, true)
}

// Unbind takes things out of a container. Errors: CONTAINER_NOT_FOUND, OTEP_TRACKING_NOT_FOUND with the names in
// its details, OTEP_INVALID_REQUEST.
func (s Containers) Unbind(ctx context.Context, c cloud.Caller, in BindInput) (BindOutput, error) {
	return s.mark(ctx, c, in, false)
}

func (s Containers) mark(ctx context.Context, c cloud.Caller, in BindInput, inside bool) (out BindOutput, err error) {
	now := time.Now()
	at := now
	if in.At != "" {
		t, err := otep.ParseTime(in.At)
		if err != nil || t.Sub(now) > ahead || now.Sub(t.Time) > s.s.oldest {
			return out, invalid("at", "Give a time within the last two years and not more than 48 hours ahead, as RFC 3339 has it.")
		}
		at = t.Time
	}
	err = s.s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := own(v, c, in.ID)
		if err != nil {
			return nil, err
		}
		things, err := thingsOf(v, c, x.BusinessID, in.Children)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		n, err := binder{v: v, business: x.BusinessID, now: milliseconds(now), cause: "call", ch: ch}.mark(x, things, inside, at)
		out = BindOutput{Result: true, ID: x.ID, Changed: n}
		return ch, err
	})
	return out, err
}

// thingsOf are the things of a caller that some names mean, each once. Error: OTEP_TRACKING_NOT_FOUND.
func thingsOf(v cloud.View, c cloud.Caller, b cloud.BusinessID, names []string) (out []cloud.Thing, err error) {
	missing := []string{}
	for _, name := range names {
		x, ok, err := thingBySubject(v, c, b, otep.Subject{TrackingNumber: name, ExternalTrackingNumber: name, SSCC: name})
		if err != nil {
			return nil, err
		}
		switch {
		case !ok:
			missing = append(missing, name)
		case !slices.Contains(out, x):
			out = append(out, x)
		}
	}
	if len(missing) > 0 {
		return nil, &cloud.Error{Kind: cloud.NotFound, Code: codeOTEPNotFound, Details: map[string]any{"children": missing}}
	}
	return out, nil
}

// thingBySubject is what a subject names: the newest parcel of the caller, else the container with the identity.
func thingBySubject(v cloud.View, c cloud.Caller, b cloud.BusinessID, sub otep.Subject) (x cloud.Thing, ok bool, err error) {
	found, err := v.ShipmentsBySubject(b, sub)
	if err != nil {
		return x, false, err
	}
	for _, sh := range slices.Backward(found) {
		if !mayAddTo(c, sh) {
			continue
		}
		x.Shipment = sh.ID
		if sh.OrderID == 0 {
			return x, true, nil
		}
		list, err := v.PackagesOf(sh.BusinessID, sh.OrderID)
		if p, named := packageOf(list, sh, sub); named && len(list) > 1 {
			x.Package = p.ID
		}
		return x, true, err
	}
	if len(found) > 0 {
		return x, false, nil
	}
	inner, err := containerBySubject(v, b, sub)
	if isMissing(err) {
		return x, false, nil
	}
	ok = err == nil && mayFill(c, inner)
	return cloud.Thing{Container: inner.ID}, ok, err
}

// containerBySubject finds the container that a subject names.
func containerBySubject(v cloud.View, b cloud.BusinessID, sub otep.Subject) (cloud.Container, error) {
	last := ""
	for _, identity := range []string{sub.TrackingNumber, sub.ExternalTrackingNumber, sub.SSCC} {
		key := containerKey(identity)
		if key == "" || key == last {
			continue
		}
		last = key
		if c, err := v.ContainerByKey(b, key); !isMissing(err) {
			return c, err
		}
	}
	return cloud.Container{}, cloud.ErrNotFound
}

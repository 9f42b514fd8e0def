package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

const (
	containerPage = 200 // things of a container between two notes of how far it is
	containerLook = 500 * time.Millisecond
)

// Run has things follow their containers until ctx ends.
func (s Containers) Run(ctx context.Context) error {
	return repeat(ctx, containerLook, s.s.log, "events of containers", func(ctx context.Context) error {
		_, err := follower(s).runTasks(ctx)
		return err
	})
}

// Follow does what there is to do of Run. It may be ended at any moment, and run at several nodes at
// once: each thing is put where the bindings and the events of its containers say, whatever was done before.
func (s Containers) Follow(ctx context.Context) error {
	for {
		if n, err := follower(s).runTasks(ctx); n == 0 || err != nil {
			return err
		}
	}
}

// follower has things follow their containers.
type follower struct{ s *Service }

// runTasks does the oldest tasks, and gives their number. One that fails is put behind the others, which
// do not wait for it.
func (f follower) runTasks(ctx context.Context) (int, error) {
	list, err := f.s.store.ContainerTasks(ctx, containerPage)
	if err != nil {
		return 0, fmt.Errorf("list tasks of containers: %w", err)
	}
	var failed error
	for _, t := range list {
		err := f.task(ctx, t)
		if err == nil {
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("task %d of containers: %w", t.ID, err))
		if ctx.Err() != nil {
			break
		}
		if err := f.putBehind(ctx, t); err != nil {
			return 0, errors.Join(failed, err)
		}
	}
	return len(list), failed
}

// putBehind makes a task the last one.
func (f follower) putBehind(ctx context.Context, t cloud.ContainerTask) error {
	return f.withTask(ctx, t, func(v cloud.View, row cloud.ContainerTask, ch *cloud.Changes) error {
		id, err := v.NewID(cloud.ContainerTaskIDs)
		again := row
		again.ID = cloud.ContainerTaskID(id)
		ch.Rows, ch.DroppedRows = append(ch.Rows, again), append(ch.DroppedRows, row)
		return err
	})
}

// withTask decides about a task that is still to be done; nothing happens where another node was faster.
func (f follower) withTask(ctx context.Context, t cloud.ContainerTask, change func(cloud.View, cloud.ContainerTask, *cloud.Changes) error) error {
	return f.s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		row, err := cloud.Find(v, cloud.ContainerTask{Kept: t.Kept})
		if isMissing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{Unaudited: true}
		return ch, change(v, row, ch)
	})
}

func (f follower) task(ctx context.Context, t cloud.ContainerTask) error {
	root, err := cloud.ParseThing(t.Root)
	if err != nil {
		return err
	}
	if root.Container == 0 {
		if err := f.follow(ctx, t, root); err != nil {
			return err
		}
		return f.finish(ctx, t, "")
	}
	return f.walk(ctx, t, root.Container, t.Finished, 1, func(last string) error { return f.finish(ctx, t, last) })
}

// walk follows with all that ever was in a container. note is called with the last thing of each page, and with ""
// at the end.
func (f follower) walk(ctx context.Context, t cloud.ContainerTask, c cloud.ContainerID, after string, depth int, note func(last string) error) error {
	for {
		var list []string
		if err := f.s.store.Look(ctx, func(v cloud.View) (err error) {
			list, err = v.ThingsIn(c, after, containerPage)
			return err
		}); err != nil {
			return err
		}
		for _, text := range list {
			x, err := cloud.ParseThing(text)
			if err != nil {
				return err
			}
			switch {
			case x.Container == 0:
				err = f.follow(ctx, t, x)
			case depth < cloud.MaxContainerDepth:
				err = f.walk(ctx, t, x.Container, "", depth+1, func(string) error { return nil })
			}
			if err != nil {
				return err
			}
			after = text
		}
		if len(list) < containerPage {
			return note("")
		}
		if err := note(after); err != nil {
			return err
		}
	}
}

// finish notes how far a task is; it ends with "".
func (f follower) finish(ctx context.Context, t cloud.ContainerTask, last string) error {
	return f.withTask(ctx, t, func(_ cloud.View, row cloud.ContainerTask, ch *cloud.Changes) error {
		switch {
		case last == "":
			ch.DroppedRows = append(ch.DroppedRows, row)
		case last > row.Finished:
			row.Finished = last
			row.Touch(time.Now().UTC())
			ch.Rows = append(ch.Rows, row)
		}
		return nil
	})
}

// follow puts a parcel where its containers say within the span of a task, for one provider after the other.
func (f follower) follow(ctx context.Context, t cloud.ContainerTask, x cloud.Thing) error {
	done := map[cloud.ProviderID]bool{}
	for {
		var next cloud.ProviderID
		err := f.s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			next = 0
			if _, err := cloud.Find(v, cloud.ContainerTask{Kept: t.Kept}); err != nil {
				if isMissing(err) {
					err = nil
				}
				return nil, err
			}
			ch := &cloud.Changes{Unaudited: true}
			binder{business: t.BusinessID, now: time.Now().UTC(), ch: ch}.turn()
			arrivals, err := f.arrivals(v, t, x)
			if err != nil {
				return nil, err
			}
			for _, id := range slices.Sorted(maps.Keys(arrivals)) {
				if done[id] {
					continue
				}
				next = id
				by, err := v.Provider(id)
				if isMissing(err) {
					return ch, nil
				}
				if err != nil {
					return nil, err
				}
				c := cloud.Caller{Account: cloud.Account{BusinessID: by.BusinessID, Type: cloud.ProviderType, Name: by.Name}, Provider: by, Language: "en"}
				_, more, err := f.s.addIn(v, c, by, arrivals[id])
				if err != nil {
					return nil, err
				}
				if more != nil {
					more.Rows = append(more.Rows, ch.Rows...)
					ch = more
				}
				break
			}
			return ch, nil
		})
		if err != nil || next == 0 {
			return err
		}
		done[next] = true
	}
}

// passed is an event of a container, and whether it is one of a thing.
type passed struct {
	cloud.ContainerEvent
	passes bool
}

// arrivals are what has to come to a parcel, or leave it, by the provider that sent it.
func (f follower) arrivals(v cloud.View, t cloud.ContainerTask, x cloud.Thing) (map[cloud.ProviderID]arrival, error) {
	stored, err := v.Timeline(x.Shipment)
	if err != nil {
		return nil, err
	}
	withdrawn, err := v.WithdrawnEvents(x.Shipment, time.Time{}, time.Time{})
	if err != nil {
		return nil, err
	}
	list, err := above{v, t.BusinessID}.events(x, cloud.Span{From: t.Since, To: t.Until}, nil)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b passed) int {
		return cmp.Or(a.OccurredAt.Compare(b.OccurredAt), cmp.Compare(a.ID, b.ID))
	})
	there, back := map[string]otep.Event{}, map[string]bool{}
	for _, e := range stored {
		if e.Package == x.Package {
			there[e.Event.EventID] = e.Event
		}
	}
	for _, e := range withdrawn {
		if e.Package == x.Package && e.By == cloud.ByContainer {
			back[e.EventID] = true
		}
	}
	passes := map[string]bool{}
	for _, p := range list {
		passes[p.EventID] = passes[p.EventID] || p.passes
	}
	out := map[cloud.ProviderID]arrival{}
	for _, p := range list {
		e, isThere := there[p.EventID]
		a, ok := out[p.ProviderID]
		if !ok {
			a = arrival{through: &through{thing: x, back: back}, profile: otep.DefaultProfile}
		}
		switch {
		case p.passes && (!isThere || e.Withdrawn && back[p.EventID]):
			came, err := p.Decode()
			if err != nil {
				return nil, err
			}
			came, ok := carryEvent(came, p.ContainerID)
			if !ok {
				continue
			}
			if old, ok := there[came.Corrects]; !ok || old.Withdrawn {
				came.Corrects = ""
			}
			a.events = append(a.events, incoming{index: len(a.events), event: came})
			there[p.EventID] = came
		case !passes[p.EventID] && isThere && !e.Withdrawn && e.Via == int64(p.ContainerID):
			ref := cloud.EventRef{EventID: p.EventID, Reason: otep.DidNotOccur, By: cloud.ByContainer}
			if !p.WithdrawnAt.IsZero() {
				ref.Reason, ref.By = p.Reason, p.WithdrawnBy
			}
			a.through.gone = append(a.through.gone, ref)
		default:
			continue
		}
		out[p.ProviderID] = a
	}
	return out, nil
}

// carryEvent gives an event of a container as one of a thing inside; ok is false where it does not pass.
func carryEvent(e otep.Event, via cloud.ContainerID) (out otep.Event, passes bool) {
	e.Via = int64(via)
	code := e.StatusCode
	if _, ok := otep.Lookup(code); !ok {
		code = otep.Project(e.StatusCode, e.Phase).Parent
	}
	if code == otep.Delivered {
		e.StatusCode, e.StatusURI, e.StatusLabel, e.Phase, e.PhaseURI, e.PoD = otep.ArrivalScan, "", "", "", "", nil
		return e, true
	}
	s, ok := otep.Lookup(code)
	return e, !ok || !s.Terminal
}

// above looks at what is over a thing.
type above struct {
	v        cloud.View
	business cloud.BusinessID
}

// events are those of all containers that a thing ever was in, within a span, also of those that these were in.
// links are the bindings between the thing and a lower one whose events are asked for.
func (a above) events(x cloud.Thing, s cloud.Span, links []cloud.Bindings) (out []passed, err error) {
	if len(links) == cloud.MaxContainerDepth {
		return nil, nil
	}
	marks, err := a.v.MarksOf(a.business, x.String())
	if err != nil {
		return nil, err
	}
	over := byContainer(marks)
	for _, id := range slices.Sorted(maps.Keys(over)) {
		chain := append(slices.Clone(links), over[id])
		found, err := a.v.EventsIn(id, s.From, s.To)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			isOpen := func(b cloud.Bindings) bool { return !b.Holds(e.OccurredAt) }
			out = append(out, passed{e, e.WithdrawnAt.IsZero() && !slices.ContainsFunc(chain, isOpen)})
		}
		more, err := a.events(cloud.Thing{Container: id}, s, chain)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

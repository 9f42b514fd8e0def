package tracking

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

var startOfTimes = time.Unix(0, 0).UTC()

func milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// containerKey is an identity of a container as it is compared.
func containerKey(identity string) string {
	return strings.ToUpper(strings.TrimSpace(identity))
}

// Errors of bindings.
const (
	codeContainerMissing = "CONTAINER_NOT_FOUND"
	codeContainerCycle   = "CONTAINER_CYCLE"
	codeContainerDeep    = "CONTAINER_TOO_DEEP"
	codeContainerFull    = "CONTAINER_FULL"
)

// binder puts things into containers inside a decision, and takes them out.
type binder struct {
	v        cloud.View
	business cloud.BusinessID
	now      time.Time
	cause    string
	ch       *cloud.Changes
}

// turn has decisions about bindings of the business come one after the other.
func (b binder) turn() {
	t := cloud.ContainerTurn{}
	t.Begin(int64(b.business), b.business, b.now)
	b.ch.Rows = append(b.ch.Rows, t)
}

// task has the things below a root follow what happened in a span.
func (b binder) task(root cloud.Thing, s cloud.Span) error {
	id, err := b.v.NewID(cloud.ContainerTaskIDs)
	if err != nil {
		return err
	}
	t := cloud.ContainerTask{Root: root.String(), Since: s.From, Until: s.To}
	t.Begin(id, b.business, b.now)
	b.ch.Rows = append(b.ch.Rows, t)
	return nil
}

// mark writes that things are inside a container from a time on, or outside. A thing that is so already has no
// mark of it. Errors: CONTAINER_CYCLE, CONTAINER_TOO_DEEP, CONTAINER_FULL.
func (b binder) mark(c cloud.Container, things []cloud.Thing, inside bool, at time.Time) (int, error) {
	at = milliseconds(at)
	marks, err := b.v.MarksIn(c.ID)
	if err != nil {
		return 0, err
	}
	of := byChild(marks)
	if inside {
		if err := b.mayHold(c, of, things, at); err != nil {
			return 0, err
		}
	}
	made := 0
	for _, x := range things {
		child := x.String()
		known := of[child]
		isSame := func(m cloud.ContainerMark) bool { return m.At.Equal(at) && m.Inside == inside }
		if slices.ContainsFunc(known, isSame) {
			continue
		}
		id, err := b.v.NewID(cloud.ContainerMarkIDs)
		if err != nil {
			return 0, err
		}
		m := cloud.ContainerMark{ContainerID: c.ID, Child: child, At: at, Inside: inside, Cause: b.cause, ShipmentID: x.Shipment}
		m.Begin(id, b.business, b.now)
		b.ch.Rows = append(b.ch.Rows, m)
		of[child] = append(known, m).Sort()
		made++
		end := cloud.EndOfTimes
		for _, k := range known {
			if k.At.After(at) {
				end = k.At
				break
			}
		}
		if err := b.task(x, cloud.Span{From: at, To: end}); err != nil {
			return 0, err
		}
	}
	b.turn()
	return made, nil
}

// byChild are marks by their thing, each in the order in which they count.
func byChild(marks []cloud.ContainerMark) map[string]cloud.Bindings {
	out := map[string]cloud.Bindings{}
	for _, m := range marks {
		out[m.Child] = append(out[m.Child], m)
	}
	for _, list := range out {
		list.Sort()
	}
	return out
}

// byContainer are marks of one thing by their container, each in the order in which they count.
func byContainer(marks []cloud.ContainerMark) map[cloud.ContainerID]cloud.Bindings {
	out := map[cloud.ContainerID]cloud.Bindings{}
	for _, m := range marks {
		out[m.ContainerID] = append(out[m.ContainerID], m)
	}
	for _, list := range out {
		list.Sort()
	}
	return out
}

// mayHold reports whether things may be in a container from a time on.
func (b binder) mayHold(c cloud.Container, of map[string]cloud.Bindings, things []cloud.Thing, at time.Time) error {
	fresh := map[string]bool{}
	for _, x := range things {
		fresh[x.String()] = true
	}
	for _, moment := range []time.Time{at, b.now} {
		count := len(fresh)
		for child, list := range of {
			if !fresh[child] && !moment.Before(at) && list.Holds(moment) {
				count++
			}
		}
		if count > cloud.MaxContainerChildren {
			return &cloud.Error{Kind: cloud.Invalid, Code: codeContainerFull, Details: map[string]any{"limit": cloud.MaxContainerChildren, "children": count}}
		}
	}
	isNested := func(x cloud.Thing) bool { return x.Container != 0 }
	if !slices.ContainsFunc(things, isNested) {
		up, _, err := b.above(c.ID, cloud.Span{From: at, To: cloud.EndOfTimes}, 0)
		if err == nil && up > cloud.MaxContainerDepth {
			err = tooDeep()
		}
		return err
	}
	for _, x := range things {
		if !isNested(x) {
			continue
		}
		s := cloud.Span{From: at, To: cloud.EndOfTimes}
		for _, m := range of[x.String()] {
			if m.At.After(at) && !m.Inside {
				s.To = m.At
				break
			}
		}
		up, over, err := b.above(c.ID, s, 0)
		if err != nil {
			return err
		}
		if over[x.Container] {
			return &cloud.Error{Kind: cloud.Invalid, Code: codeContainerCycle, Details: map[string]any{"container_id": int64(x.Container)}}
		}
		down, err := b.below(x.Container, s, 0)
		if err != nil {
			return err
		}
		if up+down > cloud.MaxContainerDepth {
			return tooDeep()
		}
	}
	return nil
}

func tooDeep() error {
	return &cloud.Error{Kind: cloud.Invalid, Code: codeContainerDeep, Details: map[string]any{"limit": cloud.MaxContainerDepth}}
}

// above is how many containers one in the other there are with a container as the lowest, at any moment of a span, and
// which these are.
func (b binder) above(id cloud.ContainerID, s cloud.Span, depth int) (int, map[cloud.ContainerID]bool, error) {
	all := map[cloud.ContainerID]bool{id: true}
	if depth > cloud.MaxContainerDepth {
		return 1, all, nil
	}
	marks, err := b.v.MarksOf(b.business, cloud.Thing{Container: id}.String())
	if err != nil {
		return 0, nil, err
	}
	most := 0
	for parent, list := range byContainer(marks) {
		for _, span := range list.Spans() {
			if span, ok := span.In(s); ok {
				n, over, err := b.above(parent, span, depth+1)
				if err != nil {
					return 0, nil, err
				}
				most = max(most, n)
				maps.Copy(all, over)
			}
		}
	}
	return most + 1, all, nil
}

// below is how many containers one in the other there are with a container as the highest, at any moment of a span.
func (b binder) below(id cloud.ContainerID, s cloud.Span, depth int) (int, error) {
	if depth > cloud.MaxContainerDepth {
		return 1, nil
	}
	marks, err := b.v.MarksIn(id)
	if err != nil {
		return 0, err
	}
	most := 0
	for child, list := range byChild(marks) {
		x, err := cloud.ParseThing(child)
		if err != nil {
			return 0, err
		}
		if x.Container == 0 {
			continue
		}
		for _, span := range list.Spans() {
			if span, ok := span.In(s); ok {
				n, err := b.below(x.Container, span, depth+1)
				if err != nil {
					return 0, err
				}
				most = max(most, n)
			}
		}
	}
	return most + 1, nil
}

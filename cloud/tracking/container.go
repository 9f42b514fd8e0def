package tracking

import (
	"context"
	"errors"
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
	isTurn := func(r cloud.Row) bool { _, ok := r.(cloud.ContainerTurn); return ok }
	if slices.ContainsFunc(b.ch.Rows, isTurn) {
		return
	}
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
	marks, err := b.marksIn(c)
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
		isMade, err := b.markThing(c, of, x, cloud.ContainerMark{At: at, Inside: inside, Cause: b.cause})
		if err == nil && isMade {
			made++
			if inside {
				err = b.endWithAll(c, of, x, at)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	b.turn()
	return made, nil
}

// markThing writes a mark of a thing, if there is no such one.
func (b binder) markThing(c cloud.Container, of map[string]cloud.Bindings, x cloud.Thing, m cloud.ContainerMark) (bool, error) {
	child := x.String()
	isSame := func(k cloud.ContainerMark) bool {
		return k.At.Equal(m.At) && k.Inside == m.Inside && k.Cause == m.Cause
	}
	if slices.ContainsFunc(of[child], isSame) {
		return false, nil
	}
	m.Child, m.ShipmentID = child, x.Shipment
	m, err := b.addMark(c, m)
	if err != nil {
		return false, err
	}
	end := of[child].Next(m.At)
	of[child] = append(of[child], m).Sort()
	return true, b.task(x, cloud.Span{From: m.At, To: end})
}

func (b binder) addMark(c cloud.Container, m cloud.ContainerMark) (cloud.ContainerMark, error) {
	id, err := b.v.NewID(cloud.ContainerMarkIDs)
	if err != nil {
		return m, err
	}
	m.ContainerID = c.ID
	m.Begin(id, b.business, b.now)
	b.ch.Rows = append(b.ch.Rows, m)
	return m, nil
}

// endWithAll has a thing that is inside from a time on go out when all is next taken out.
func (b binder) endWithAll(c cloud.Container, of map[string]cloud.Bindings, x cloud.Thing, at time.Time) error {
	for _, all := range of[cloud.EveryChild] {
		if all.At.After(at) {
			_, err := b.markThing(c, of, x, cloud.ContainerMark{At: all.At, Cause: all.Cause})
			return err
		}
	}
	return nil
}

// empty takes out all that is in a container at a time, also what is put in later for a time before.
func (b binder) empty(c cloud.Container, at time.Time) (int, error) {
	at = milliseconds(at)
	marks, err := b.marksIn(c)
	if err != nil {
		return 0, err
	}
	isSame := func(m cloud.ContainerMark) bool {
		return m.Child == cloud.EveryChild && m.At.Equal(at) && m.Cause == b.cause
	}
	if slices.ContainsFunc(marks, isSame) {
		return 0, nil
	}
	var things []cloud.Thing
	of := byChild(marks)
	for _, child := range slices.Sorted(maps.Keys(of)) {
		if !of[child].Before(at) {
			continue
		}
		x, err := cloud.ParseThing(child)
		if err != nil {
			return 0, err
		}
		things = append(things, x)
	}
	made, err := b.mark(c, things, false, at)
	if err != nil {
		return 0, err
	}
	_, err = b.addMark(c, cloud.ContainerMark{Child: cloud.EveryChild, At: at, Cause: b.cause})
	return made, err
}

// undo takes back all marks of the binder's cause, and gives their number. Errors: CONTAINER_CYCLE, CONTAINER_TOO_DEEP,
// CONTAINER_FULL, where things that were taken out cannot be inside again.
func (b binder) undo(c cloud.Container) (int, error) {
	marks, err := b.marksIn(c)
	if err != nil {
		return 0, err
	}
	var gone, kept []cloud.ContainerMark
	for _, m := range marks {
		if m.Cause == b.cause {
			gone = append(gone, m)
			continue
		}
		kept = append(kept, m)
	}
	if len(gone) == 0 {
		return 0, nil
	}
	of, at := byChild(kept), gone[0].At // it is one event's
	var things, again []cloud.Thing
	for _, m := range gone {
		if m.Child == cloud.EveryChild {
			continue
		}
		x, err := cloud.ParseThing(m.Child)
		if err != nil {
			return 0, err
		}
		things = append(things, x)
		if !m.Inside && of[m.Child].Since(at) {
			again = append(again, x)
		}
	}
	if len(again) > 0 {
		if err := b.mayHold(c, of, again, at); err != nil {
			return 0, err
		}
	}
	for _, m := range gone {
		b.withdrawMark(m)
	}
	for _, x := range things {
		if err := b.task(x, cloud.Span{From: at, To: of[x.String()].Next(at)}); err != nil {
			return 0, err
		}
	}
	for _, x := range again {
		if err := b.endWithAll(c, of, x, at); err != nil {
			return 0, err
		}
	}
	b.turn()
	return len(things), nil
}

// withdrawMark has a mark count no more. One that the decision would write is not written.
func (b binder) withdrawMark(m cloud.ContainerMark) {
	isIt := func(r cloud.Row) bool { x, ok := r.(cloud.ContainerMark); return ok && x.ID == m.ID }
	if i := slices.IndexFunc(b.ch.Rows, isIt); i >= 0 {
		b.ch.Rows = slices.Delete(b.ch.Rows, i, i+1)
		return
	}
	m.WithdrawnAt = b.now
	m.Touch(b.now)
	b.ch.Rows = append(b.ch.Rows, m)
}

// marksIn are the marks of a container that count, with what the decision changes.
func (b binder) marksIn(c cloud.Container) (out []cloud.ContainerMark, err error) {
	marks, err := b.v.MarksIn(c.ID)
	if err != nil {
		return nil, err
	}
	changed := map[cloud.ContainerMarkID]bool{}
	for _, r := range b.ch.Rows {
		if m, ok := r.(cloud.ContainerMark); ok && m.ContainerID == c.ID {
			changed[m.ID] = true
			out = append(out, m)
		}
	}
	for _, m := range marks {
		if !changed[m.ID] {
			out = append(out, m)
		}
	}
	return slices.DeleteFunc(out, func(m cloud.ContainerMark) bool { return !m.WithdrawnAt.IsZero() }), nil
}

// decideAgain decides, and once more where another node has made the same container or taken the same event meanwhile.
func decideAgain(ctx context.Context, s Store, decide func(cloud.View) (*cloud.Changes, error)) error {
	for range 5 {
		if err := s.Decide(ctx, 0, decide); !errors.Is(err, cloud.ErrExists) {
			return err
		}
	}
	return s.Decide(ctx, 0, decide)
}

// byChild are marks by their thing, each in the order in which they count.
func byChild(marks []cloud.ContainerMark) map[string]cloud.Bindings {
	out := map[string]cloud.Bindings{}
	for _, m := range marks {
		out[m.Child] = out[m.Child].With(m)
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
		out[m.ContainerID] = out[m.ContainerID].With(m)
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
		if child == cloud.EveryChild {
			continue
		}
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

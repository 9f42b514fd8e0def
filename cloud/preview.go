package cloud

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync"
	"time"
)

// Preview takes down what decisions would write, in place of writing it. A
// context that carries one makes the store run decisions as ever and throw away
// their changes. Safe for concurrent use.
type Preview struct {
	mu      sync.Mutex
	effects []Effect
	named   []Effect // kinds that change besides, each once
	follows []Effect // kinds that follow of themselves, each once
}

// Effect is one thing that a decision would change.
type Effect struct {
	Type string `json:"type"` // order
	ID   any    `json:"id"`   // null for a new one
	// Name is what people call it, as far as that is ours: a number.
	Name   string         `json:"name,omitempty"`
	Kind   string         `json:"kind,omitempty"` // of an exception: its type
	Before map[string]any `json:"before"`         // members that change; null for a new one
	After  map[string]any `json:"after"`          // null for one that is gone

	version string // of the thing as it is, whether it is shown or not; of a new one what is not shown of it
}

type previewKey struct{}

// WithPreview is a context in which nothing is written.
func WithPreview(ctx context.Context, p *Preview) context.Context {
	return context.WithValue(ctx, previewKey{}, p)
}

// PreviewOf is the preview of a context, nil when what is decided is written.
func PreviewOf(ctx context.Context) *Preview {
	p, _ := ctx.Value(previewKey{}).(*Preview)
	return p
}

// Effects are what decisions would change so far: things whose members a preview
// shows, then the kinds of all other things that would change. What follows of itself
// is named when there is nothing else: a preview says that nothing would change only
// when nothing is written.
func (p *Preview) Effects() []Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := append(append([]Effect{}, p.effects...), p.named...)
	if len(out) == 0 {
		out = append(out, p.follows...)
	}
	return out
}

// Take takes down what c would change of what v shows.
func (p *Preview) Take(v View, c *Changes) error {
	e, err := effectsOf(v, c)
	if err != nil {
		return err
	}
	named, follows := c.kinds(e.shown)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects = append(p.effects, e.list...)
	p.named = addKinds(p.named, named)
	p.follows = addKinds(p.follows, follows)
	return nil
}

// previewer is a section of Changes that shows what it would change. Members that
// it has no clause for are named by their kind.
type previewer interface{ preview(*effectList) }

// effectList collects the effects of one decision.
type effectList struct {
	view  View
	list  []Effect
	shown map[string]bool // members of Changes that have an effect in list
	stay  int             // things that are written as they were
	err   error           // of the first thing that could not be read; no clause runs after it
}

// effectsOf are the effects of c on what v shows, section by section. Times,
// versions and what follows of itself are left out.
func effectsOf(v View, c *Changes) (*effectList, error) {
	e := &effectList{view: v, shown: map[string]bool{}}
	all := reflect.ValueOf(c).Elem()
	for i := range all.NumField() {
		if s, ok := all.Field(i).Addr().Interface().(previewer); ok {
			s.preview(e)
		}
	}
	return e, e.err
}

// previewEach runs the clause of a member of Changes for each of its elements.
func previewEach[T any](e *effectList, member string, elements []T, clause func(T)) {
	before := len(e.list) + e.stay
	for _, x := range elements {
		if e.err != nil {
			return
		}
		clause(x)
	}
	if len(e.list)+e.stay > before {
		e.shown[member] = true
	}
}

// showMembers adds x with those of its members that change. old and err are what
// reading the thing gave: of a new one, ErrNotFound, all members are shown that say
// something, and the version of x stays.
func (e *effectList) showMembers(x Effect, old any, err error) {
	switch {
	case errors.Is(err, ErrNotFound):
		x.ID, x.Name, x.Before, x.After = nil, "", nil, dropEmpty(x.After)
	case err != nil:
		e.err = err
		return
	default:
		x.version = versionOf(old)
		if x.Before, x.After = differ(x.Before, x.After); len(x.After) == 0 {
			return
		}
	}
	e.list = append(e.list, x)
}

// showChanged adds a thing, x, that was old: that there is a new one, or that it changes,
// with members of its own, nil for none. err is what reading old gave. A thing that stays
// as it was, but for the time of its change, is none. The answer, to add members to, is
// valid until the next effect.
func showChanged[T any](e *effectList, kind string, id any, name string, x, old T, err error, members func(T) map[string]any) *Effect {
	shown := Effect{Type: kind, ID: id, Name: name, After: map[string]any{}}
	if members == nil {
		members = func(T) map[string]any { return nil }
	}
	switch {
	case errors.Is(err, ErrNotFound):
		shown.ID = nil
		maps.Copy(shown.After, dropEmpty(members(x)))
		shown.After["new"] = true
	case err != nil:
		e.err = err
		return &shown
	case reflect.DeepEqual(untimed(x), untimed(old)):
		e.stay++
		return &shown
	default:
		shown.version = versionOf(old)
		shown.Before, shown.After = differ(members(old), members(x))
		shown.After["changed"] = true
	}
	e.list = append(e.list, shown)
	return &e.list[len(e.list)-1]
}

// untimed is a thing without the time of its change, a pointer to a struct or a struct.
func untimed(x any) any {
	v := reflect.ValueOf(x)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return x
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	if at := c.FieldByName("UpdatedAt"); at.IsValid() && at.Type() == reflect.TypeFor[time.Time]() {
		at.SetZero()
	}
	return c.Interface()
}

// dropEmpty leaves out members that say nothing.
func dropEmpty(members map[string]any) map[string]any {
	for k, v := range members {
		if x := reflect.ValueOf(v); v == nil || x.Kind() == reflect.Pointer && x.IsNil() {
			delete(members, k)
		}
	}
	return members
}

// differ leaves of two sets of members those that are not the same.
func differ(before, after map[string]any) (b, a map[string]any) {
	b, a = map[string]any{}, map[string]any{}
	for k, x := range after {
		if !reflect.DeepEqual(before[k], x) {
			b[k], a[k] = before[k], x
		}
	}
	return b, a
}

package board

import (
	"slices"
	"time"
)

// View is a cabinet as it physically stands now.
type View struct {
	Powered bool       // the boards have power
	Doors   []DoorView // by number
}

// DoorView is one door and the box behind it.
type DoorView struct {
	Number uint
	Open   bool
	Jammed bool
	Items  []string // what lies inside, in the order it was put in; never nil
}

// View looks at everything at once. Its slices belong to the caller.
func (c witness) View() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(time.Now())
	v := View{Powered: !c.off}
	for _, d := range c.order {
		v.Doors = append(v.Doors, DoorView{Number: d.cfg.Number, Open: d.open, Jammed: d.jammed, Items: append([]string{}, d.items...)})
	}
	return v
}

// Newest returns the last facts of these kinds, at most n, in order of time.
func (c witness) Newest(n int, kinds ...FactKind) []Fact {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(time.Now())
	out := []Fact{}
	for i := len(c.facts) - 1; i >= 0 && len(out) < n; i-- {
		if slices.Contains(kinds, c.facts[i].Kind) {
			out = append(out, c.facts[i])
		}
	}
	slices.Reverse(out)
	return out
}

package cloud

import "slices"

// Page asks for a part of a list: Limit rows, sorted by a column, rows that are
// equal there by id. It begins behind the row After, and without one behind the
// first Offset rows. Rows that are inserted or removed meanwhile shift what comes
// by Offset, not what comes by After.
type Page struct {
	Sort          string // id, name, …
	Down          bool
	Offset, Limit int
	After         *Mark // nil for none; Offset is 0 then
}

// Mark is a row of a list by what the list is sorted by. It may be gone.
type Mark struct {
	Key any // int64 or string: its value of the sorted column; nil in a list by id
	ID  any // int64 or string
}

// ErrNoMark says that a page begins after a mark that no row of such a list has.
var ErrNoMark = &Error{Kind: Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{
	"cursor": {"This is no next_cursor of a list with these filters and this sort. Begin without a cursor."}}}

// MaxTotal is how far lists that grow without a bound are counted.
const MaxTotal = 10_000

// Listed is what a list says beside its rows.
type Listed struct {
	Total   int
	AtLeast bool  // there are more than Total rows
	Next    *Mark // the last row of the page, nil when no row comes behind it
}

// Counted is a list of n rows, of which up to MaxTotal+1 were counted.
func Counted(n int64) Listed {
	return Listed{Total: int(min(n, MaxTotal)), AtLeast: n > MaxTotal}
}

// PartOf is a part of a list that is in memory, by its ids, which grow in it. Error:
// ErrNoMark.
func PartOf[T any, I ~int64](all []T, p Page, id func(T) I) ([]T, Listed, error) {
	out := Listed{Total: len(all)}
	if all = slices.Clone(all); p.Down {
		slices.Reverse(all)
	}
	if m := p.After; m != nil {
		n, ok := m.ID.(int64)
		if !ok || m.Key != nil {
			return nil, out, ErrNoMark
		}
		all = slices.DeleteFunc(all, func(v T) bool { return id(v) == I(n) || p.Down != (id(v) < I(n)) })
	}
	all = all[min(p.Offset, len(all)):]
	if len(all) > p.Limit {
		all = all[:p.Limit]
		out.Next = &Mark{ID: int64(id(all[p.Limit-1]))}
	}
	return all, out, nil
}

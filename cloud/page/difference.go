package page

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// difference is a value that is not the same in two JSON values. A side that is not
// there is absent.
type difference struct {
	Path          string // a.b[0].c; the elements of a list of plain values have its path
	Before, After any
}

// absent stands for a value that is not there; null is one that is.
type absent struct{}

// differences are the values that differ between two JSON values, nil for none, by
// path. Lists are compared by their elements and not by their places: an element that
// was taken out of the middle is one difference.
func differences(before, after any) (out []difference) {
	if before == nil {
		before = absent{}
	}
	if after == nil {
		after = absent{}
	}
	c := comparison{func(path string, a, b any) { out = append(out, difference{path, a, b}) }}
	c.values("", before, after, 0)
	return out
}

type comparison struct {
	emit func(path string, before, after any)
}

func (c comparison) values(path string, a, b any, depth int) {
	if depth < maxDepth {
		x, isObject := a.(map[string]any)
		y, both := b.(map[string]any)
		if isObject && both {
			names := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				c.values(strings.TrimPrefix(path+"."+name, "."), memberOf(x, name), memberOf(y, name), depth+1)
			}
			return
		}
		k, isList := a.([]any)
		l, both := b.([]any)
		if isList && both && len(k) > 0 && len(l) > 0 {
			c.lists(path, k, l, depth)
			return
		}
	}
	_, gone := a.(absent)
	_, missing := b.(absent)
	switch {
	case !gone && !missing && marshalJSON(a) == marshalJSON(b):
	case !gone && !missing && isLeaf(a, depth) && isLeaf(b, depth):
		c.emit(path, a, b)
	default:
		if a != nil || missing {
			walk(path, a, depth, func(path string, v any) { c.emit(path, v, absent{}) })
		}
		if b != nil || gone {
			walk(path, b, depth, func(path string, v any) { c.emit(path, absent{}, v) })
		}
	}
}

// lists compares two lists with elements. One of plain values in another order is one
// difference.
func (c comparison) lists(path string, a, b []any, depth int) {
	x, y := texts(a), texts(b)
	plain := isLeaf(a, depth) && isLeaf(b, depth)
	if slices.Equal(x, y) {
		return
	}
	if plain && slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))) {
		c.emit(path, a, b)
		return
	}
	place := func(i int) string {
		if plain {
			return path
		}
		return path + "[" + strconv.Itoa(i) + "]"
	}
	i, j := 0, 0
	until := func(k, l int) { // what lies between two elements that both lists have
		for ; i < k || j < l; i, j = min(i+1, k), min(j+1, l) {
			switch {
			case i < k && j < l:
				c.values(place(i), a[i], b[j], depth+1)
			case i < k:
				c.values(place(i), a[i], absent{}, depth+1)
			default:
				c.values(place(j), absent{}, b[j], depth+1)
			}
		}
	}
	for _, m := range common(x, y) {
		until(m[0], m[1])
		i, j = m[0]+1, m[1]+1
	}
	until(len(a), len(b))
}

func texts(list []any) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = marshalJSON(x)
	}
	return out
}

// maxCommon is the most pairs of elements that are compared for a longest common part.
// Longer lists are compared by places, but for their equal ends.
const maxCommon = 1 << 18

// common are the places of the elements of a longest common part of two lists.
func common(a, b []string) (out [][2]int) {
	front := 0
	for front < len(a) && front < len(b) && a[front] == b[front] {
		out = append(out, [2]int{front, front})
		front++
	}
	back := 0
	for back < len(a)-front && back < len(b)-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	x, y := a[front:len(a)-back], b[front:len(b)-back]
	if len(x)*len(y) <= maxCommon {
		longest := make([][]int32, len(x)+1) // of x[i:] and y[j:]
		for i := range longest {
			longest[i] = make([]int32, len(y)+1)
		}
		for i := len(x) - 1; i >= 0; i-- {
			for j := len(y) - 1; j >= 0; j-- {
				if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); x[i] == y[j] {
					longest[i][j] = longest[i+1][j+1] + 1
				}
			}
		}
		for i, j := 0, 0; i < len(x) && j < len(y); {
			switch {
			case x[i] == y[j]:
				out = append(out, [2]int{front + i, front + j})
				i++
				j++
			case longest[i+1][j] >= longest[i][j+1]:
				i++
			default:
				j++
			}
		}
	}
	for ; back > 0; back-- {
		out = append(out, [2]int{len(a) - back, len(b) - back})
	}
	return out
}

func memberOf(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

// isLeaf reports whether a value is shown as one: no object or list, an empty one, a list
// of plain values, or one that lies too deep.
func isLeaf(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0 || depth >= maxDepth
	case []any:
		return depth >= maxDepth || !slices.ContainsFunc(v, func(x any) bool {
			inner, object := x.(map[string]any)
			_, list := x.([]any)
			return object && len(inner) > 0 || list
		})
	}
	return true
}

// walk gives the leaves of a value in the order of their paths.
func walk(path string, v any, depth int, emit func(path string, v any)) {
	switch x := v.(type) {
	case absent:
		return
	case map[string]any:
		if !isLeaf(v, depth) {
			for _, name := range slices.Sorted(maps.Keys(x)) {
				walk(strings.TrimPrefix(path+"."+name, "."), x[name], depth+1, emit)
			}
			return
		}
	case []any:
		if !isLeaf(v, depth) {
			for i, e := range x {
				walk(path+"["+strconv.Itoa(i)+"]", e, depth+1, emit)
			}
			return
		}
	}
	emit(path, v)
}

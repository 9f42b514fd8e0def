package page

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

func TestDifferencesAreFoundByPath(t *testing.T) {
	t.Parallel()
	read := func(before, after string) (out []string) {
		var a, b any
		require.True(t, before == "null" || decode(json.RawMessage(before), &a))
		require.True(t, after == "null" || decode(json.RawMessage(after), &b))
		for _, d := range differences(a, b) {
			text := d.Path + ":"
			if d.Before != (absent{}) {
				text += whole(d.Before)
			}
			text += ">"
			if d.After != (absent{}) {
				text += whole(d.After)
			}
			out = append(out, text)
		}
		return out
	}
	require.Empty(t, read(`{"a":1,"b":{"c":[1,2]}}`, `{"b":{"c":[1,2]},"a":1}`))
	require.Equal(t, []string{"b.c:2>3", "b.c:>4", "e:x>–"}, read(`{"a":1,"b":{"c":[1,2]},"e":"x"}`, `{"a":1,"b":{"c":[1,3,4]},"e":null}`))
	require.Equal(t, []string{"a:>", "b:>[]"}, read(`null`, `{"a":"","b":[]}`))
	require.Equal(t, []string{"a:12345678901234567890>"}, read(`{"a":12345678901234567890}`, `null`))
	require.Equal(t, []string{`a:5>5`}, read(`{"a":5}`, `{"a":"5"}`))

	// Of a list, what was taken out and what was put in.
	require.Equal(t, []string{`a:y>`}, read(`{"a":["x","y","z","u"]}`, `{"a":["x","z","u"]}`))
	require.Equal(t, []string{`a:>y`, `a:>v`}, read(`{"a":["x","z","u"]}`, `{"a":["x","y","z","u","v"]}`))
	require.Equal(t, []string{`a:["x","y","z"]>["z","x","y"]`}, read(`{"a":["x","y","z"]}`, `{"a":["z","x","y"]}`))
	require.Equal(t, []string{`a:x>`}, read(`{"a":["x","x"]}`, `{"a":["x"]}`))
	require.Equal(t, []string{`a:[]>["x","y"]`}, read(`{"a":[]}`, `{"a":["x","y"]}`))
	require.Equal(t, []string{`a:–>["x"]`}, read(`{"a":null}`, `{"a":["x"]}`))
	require.Equal(t, []string{`a[0].n:1>`}, read(`{"a":[{"n":1},{"n":2},{"n":3}]}`, `{"a":[{"n":2},{"n":3}]}`))
	require.Equal(t, []string{`a[1].n:2>5`}, read(`{"a":[{"n":1},{"n":2},{"n":3}]}`, `{"a":[{"n":1},{"n":5},{"n":3}]}`))
	require.Equal(t, []string{`a.b:>1`}, read(`{"a":null}`, `{"a":{"b":1}}`))
}

// What previews show of a thing has words in every language.
func TestPreviewsHaveWords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "members" || f.Recv == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				key := ast.Node(nil)
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					key = n.Key
				case *ast.IndexExpr:
					key = n.Index
				}
				if s, ok := key.(*ast.BasicLit); ok && s.Kind == token.STRING {
					member, _ := strconv.Unquote(s.Value)
					shown[member] = !slices.Contains(unsaid, member)
				}
				return true
			})
		}
	}
	require.Greater(t, len(shown), 15)
	for member, is := range shown {
		if key := "member." + member; is && locale.Word(locale.German, key) == key {
			t.Errorf("no words for %s", member)
		}
	}
}

// Two lists are the same after the differences between them are made.
func FuzzDifferences(f *testing.F) {
	f.Add([]byte(`["a","b","c"]`), []byte(`["b","c","a","d"]`))
	f.Add([]byte(`[1,[2],{"a":3},3]`), []byte(`[[2],{"a":4},1]`))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		var a, b []any
		if json.Unmarshal(x, &a) != nil || json.Unmarshal(y, &b) != nil {
			return
		}
		k, l := texts(a), texts(b)
		i, j := -1, -1
		for _, m := range common(k, l) {
			if m[0] <= i || m[1] <= j || k[m[0]] != l[m[1]] {
				t.Fatalf("%q %q: %v", k, l, m)
			}
			i, j = m[0], m[1]
		}
		counts := map[string]int{}
		for _, s := range k {
			counts[s]++
		}
		for _, s := range l {
			counts[s]--
		}
		moved := slices.Equal(slices.Sorted(slices.Values(k)), slices.Sorted(slices.Values(l)))
		if !isLeaf(any(a), 0) || !isLeaf(any(b), 0) || len(a) == 0 || len(b) == 0 || moved {
			return
		}
		for _, d := range differences(any(a), any(b)) {
			if d.Before != (absent{}) {
				counts[marshalJSON(d.Before)]--
			}
			if d.After != (absent{}) {
				counts[marshalJSON(d.After)]++
			}
		}
		for s, n := range counts {
			if n != 0 {
				t.Fatalf("%q %q: %q is off by %d", k, l, s, n)
			}
		}
	})
}

// Whatever a dry run says, a page of it stays within bounds.
func FuzzPreview(f *testing.F) {
	f.Add([]byte(`{"would_change":{"method":"POST","path":"/x","affected":[{"type":"order","id":1,"before":{"a":[1]},"after":null}]},"checks":[{"check":"a","ok":true,"message":null}],"warnings":["w",{"a":1}]}`))
	f.Add([]byte(`{"would_change":{"affected":[{"before":{"":{"":0}},"after":{"":1}}]}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := readPreview(raw)
		if !p.same(readPreview(raw)) || len(p.affected) > maxThings || len(p.Checks) > maxChecks || len(p.Warnings) > maxChecks {
			t.Fatalf("%q", raw)
		}
		m := &maker{f: frame{Lang: "en"}, refs: &references{}}
		m.p = nounPages{&kit{cfg: Config{Catalog: &catalog.Catalog{}}}}
		m.refs.p = m.p
		things, besides := m.things(p.affected)
		if utf8.RuneCountInString(besides) > maxThings*2*maxValue || !utf8.ValidString(besides) {
			t.Fatalf("%q", besides)
		}
		for _, x := range things {
			if len(x.Rows) > maxLeaves {
				t.Fatalf("%d rows", len(x.Rows))
			}
			for _, c := range x.Rows {
				for _, s := range []*string{&c.Name, c.Before, c.After} {
					if s != nil && (utf8.RuneCountInString(*s) > maxValue || !utf8.ValidString(*s)) {
						t.Fatalf("%q", *s)
					}
				}
			}
		}
		for _, l := range m.leavesOf(raw) {
			if utf8.RuneCountInString(l.Name) > maxValue || utf8.RuneCountInString(l.Value) > maxValue {
				t.Fatalf("%q", l)
			}
		}
		pretty(raw)
	})
}

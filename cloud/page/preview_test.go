package page

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestDifferencesAreFoundByPath(t *testing.T) {
	t.Parallel()
	read := func(before, after string) (out []string) {
		p := readPreview(json.RawMessage(`{"would_change":{"affected":[{"type":"order","id":7,"before":` + before + `,"after":` + after + `}]}}`))
		for _, c := range p.Things[0].Rows {
			text := c.Name + ":"
			if c.Before != nil {
				text += *c.Before
			}
			text += ">"
			if c.After != nil {
				text += *c.After
			}
			out = append(out, text)
		}
		return out
	}
	require.Empty(t, read(`{"a":1,"b":{"c":[1,2]}}`, `{"b":{"c":[1,2]},"a":1}`))
	require.Equal(t, []string{"b.c[1]:2>3", "b.c[2]:>4", "e:x>–"}, read(`{"a":1,"b":{"c":[1,2]},"e":"x"}`, `{"a":1,"b":{"c":[1,3,4]},"e":null}`))
	require.Equal(t, []string{"a:>", "b:>[]"}, read(`null`, `{"a":"","b":[]}`))
	require.Equal(t, []string{"a:12345678901234567890>"}, read(`{"a":12345678901234567890}`, `null`))
}

// Whatever a dry run says, a page of it stays within bounds.
func FuzzPreview(f *testing.F) {
	f.Add([]byte(`{"would_change":{"method":"POST","path":"/x","affected":[{"type":"order","id":1,"before":{"a":[1]},"after":null}]},"checks":[{"check":"a","ok":true,"message":null}],"warnings":["w",{"a":1}]}`))
	f.Add([]byte(`{"would_change":{"affected":[{"before":{"":{"":0}},"after":{"":1}}]}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := readPreview(raw)
		if !p.same(readPreview(raw)) || len(p.Things) > maxThings || len(p.Checks) > maxChecks || len(p.Warnings) > maxChecks {
			t.Fatalf("%q", raw)
		}
		for _, x := range p.Things {
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
		leaves(raw)
		pretty(raw)
	})
}

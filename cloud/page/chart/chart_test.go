package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn gives any chart.
func drawn(t *rapid.T) Chart {
	n := rapid.IntRange(0, 80).Draw(t, "categories")
	number := rapid.OneOf(rapid.Float64Range(0, 5), rapid.Float64Range(0, 1e7), rapid.Float64Range(-1e4, 1e4), rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), 1e15, 1e-9}))
	c := Chart{ID: rapid.String().Draw(t, "id"), Kind: rapid.SampledFrom([]Kind{Bars, Line, Stack}).Draw(t, "kind"), Title: "T", Sentence: "S", Table: "F", Heading: "H"}
	for range n {
		c.Categories = append(c.Categories, Category{Text: rapid.StringN(0, 30, -1).Draw(t, "name")})
	}
	for range rapid.IntRange(0, 6).Draw(t, "series") {
		c.Series = append(c.Series, Series{Name: "N", Tone: rapid.SampledFrom([]string{"", "bad", `"><script>`}).Draw(t, "tone"), Values: rapid.SliceOfN(number, max(n-1, 0), n).Draw(t, "values")})
	}
	return c
}

// part is an element of a drawing.
type part struct {
	name  string
	attrs map[string]string
	text  string
}

// parts reads a chart as strictly as XML is read.
func parts(t require.TestingT, c Chart) (out []part) {
	d := xml.NewDecoder(strings.NewReader(string(c.HTML())))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			p := part{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				p.attrs[a.Name.Local] = a.Value
			}
			out = append(out, p)
		case xml.CharData:
			if len(out) > 0 {
				out[len(out)-1].text += string(token)
			}
		}
	}
}

func number(t require.TestingT, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err, s)
	return v
}

var lengths = regexp.MustCompile(`([MLH])([-\d.]+)(?: ([-\d.]+))?`)

// All that is drawn is inside of the box, whatever the values are.
func TestAllPointsAreInsideTheBox(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var width, height float64
		inside := func(x, y float64) {
			require.True(t, x >= 0 && x <= width && y >= 0 && y <= height, "%v %v is outside of %v by %v", x, y, width, height)
		}
		for _, p := range parts(t, drawn(t)) {
			switch p.name {
			case "svg":
				box := strings.Fields(p.attrs["viewBox"])
				width, height = number(t, box[2]), number(t, box[3])
			case "rect":
				x, y := number(t, "0"+p.attrs["x"]), number(t, "0"+p.attrs["y"])
				inside(x, y)
				inside(x+number(t, p.attrs["width"]), y+number(t, p.attrs["height"]))
			case "circle":
				inside(number(t, p.attrs["cx"]), number(t, p.attrs["cy"]))
			case "text":
				inside(number(t, p.attrs["x"]), number(t, p.attrs["y"]))
			case "path":
				for _, m := range lengths.FindAllStringSubmatch(p.attrs["d"], -1) {
					y := 0.0
					if m[3] != "" {
						y = number(t, m[3])
					}
					inside(number(t, m[2]), y)
				}
			}
		}
	})
}

// The marks of an axis cover what is drawn, in equal steps, and are few.
func TestMarksCoverTheValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		low, high := c.bounds()
		a := newAxis(low, high)
		require.LessOrEqual(t, a.marks[0], low+math.Abs(low)*1e-9)
		require.GreaterOrEqual(t, a.marks[len(a.marks)-1], high-math.Abs(high)*1e-9)
		require.LessOrEqual(t, len(a.marks), 7)
		require.GreaterOrEqual(t, len(a.marks), 2)
		require.True(t, slices.IsSorted(a.marks))
		step := a.marks[1] - a.marks[0]
		for i := 1; i < len(a.marks); i++ {
			require.InEpsilon(t, step, a.marks[i]-a.marks[i-1], 1e-6)
		}
		for i := range c.Categories {
			for _, s := range c.Series {
				if v, ok := s.value(i); ok && c.Kind != Stack {
					require.True(t, v >= low && v <= high)
				}
			}
		}
	})
	require.Equal(t, []float64{0, 1, 2, 3}, newAxis(0, 3).marks, "counts have no halves")
	require.Equal(t, []float64{0, 1}, newAxis(0, 0).marks)
	require.Equal(t, []float64{0, 25, 50, 75, 100}, newAxis(0, 100).marks)
}

// Names may be anything: they are text, and nothing of the drawing.
func TestHostileNamesAreText(t *testing.T) {
	t.Parallel()
	known := []string{"figure", "figcaption", "h2", "h3", "p", "ul", "li", "svg", "rect", "path", "text", "title", "circle", "details", "summary", "div", "table", "thead", "tbody", "tr", "th", "td"}
	attributes := []string{"class", "id", "viewBox", "aria-hidden", "focusable", "width", "height", "rx", "role", "aria-label", "x", "y", "text-anchor", "dominant-baseline", "d", "cx", "cy", "r", "tabindex", "scope"}
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`</text><script>alert(1)</script>`, `" onload="x`, "<!--", "]]>", "&lt;", "\u202egnp.exe", "\x00", "\xff\xfe", strings.Repeat("w", 3000)}))
		c := Chart{ID: hostile.Draw(t, "id"), Kind: rapid.SampledFrom([]Kind{Bars, Line, Stack, "x"}).Draw(t, "kind"), Title: hostile.Draw(t, "title"), Sentence: hostile.Draw(t, "sentence"), Table: hostile.Draw(t, "table"), Heading: hostile.Draw(t, "heading"),
			Categories: []Category{{Text: hostile.Draw(t, "text"), Short: hostile.Draw(t, "short")}}, Format: func(float64) string { return hostile.Draw(t, "value") },
			Series: []Series{{Name: hostile.Draw(t, "name"), Tone: hostile.Draw(t, "tone"), Values: []float64{1}}, {Name: "b", Values: []float64{2}}}}
		for _, p := range parts(t, c) {
			require.Contains(t, known, p.name)
			for name := range p.attrs {
				require.Contains(t, attributes, name)
			}
			require.NotContains(t, p.text, "\u202e")
		}
	})
}

// What is drawn is said by the table, too: every figure stands there.
func TestTheTableHasEveryFigure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		var cells []string
		for _, p := range parts(t, c) {
			if p.name == "td" {
				cells = append(cells, p.text)
			}
		}
		require.Len(t, cells, len(c.Categories)*len(c.Series))
		for i := range c.Categories {
			for n, s := range c.Series {
				want := "–"
				if v, ok := s.value(i); ok {
					want = c.format(v)
				}
				require.Equal(t, want, cells[i*len(c.Series)+n])
			}
		}
	})
}

// A chart has no style and no script of its own: the policy of pages refuses them.
func TestChartsHaveNoStyle(t *testing.T) {
	t.Parallel()
	c := Chart{ID: "a", Kind: Stack, Title: "Doors", Sentence: "Two.", Table: "Figures", Heading: "Hour", Categories: []Category{{Text: "8:00", Short: "8"}, {Text: "9:00", Short: "9"}}, Series: []Series{{"in", "", []float64{1, 2}}, {"out", "bad", []float64{0, 1}}}}
	s := string(c.HTML())
	require.NotRegexp(t, `\s(style|on[a-z]+|fill|stroke)=`, s)
	require.Equal(t, 2, strings.Count(s, `role="img" aria-label="Doors. Two."`))
	require.Contains(t, s, "<title>9:00: out 1</title>")
	require.Contains(t, s, `class="ch-bar ch-bad"`)
	require.NotContains(t, string(Chart{ID: "a", Title: "Nothing", Sentence: "None."}.HTML()), "<svg", "of nothing there is no drawing")
}

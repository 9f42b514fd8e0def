// Package chart draws figures as SVG on the server: bars, lines and stacks. Every chart
// comes with a sentence that says what it shows, and with a table of the same figures, so
// that nothing is said by the drawing alone.
//
// A drawing has classes and attributes and no style of its own: colours come from the
// style sheet of the page, in light, dark and forced colours. It is drawn twice, for wide
// and for narrow places, and the style sheet shows the one that fits. Texts are escaped
// here; they may come from anywhere. Functions are pure and safe for concurrent use.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Kind is how a chart draws its series.
type Kind string

// Kinds of charts.
const (
	Bars  Kind = "bars"  // beside each other
	Line  Kind = "line"  // points that are joined; gaps where there is no value
	Stack Kind = "stack" // upon each other
)

// Chart is what is drawn. Every series has a value for each category.
type Chart struct {
	ID         string // of the page's parts: letters, digits and hyphens
	Kind       Kind
	Title      string
	Sentence   string // what the figures say, in words
	Heading    string // what categories are, over their column of the table
	Table      string // name of the table that unfolds
	Categories []Category
	Series     []Series
	// Format writes a value; nil writes its shortest digits.
	Format func(float64) string
	// Top is the least upper end of the axis; 0 leaves it to the values.
	Top float64
	// Level is that of the title among the headings of the page; 0 is 3.
	Level int
}

// Category is a place on the horizontal axis.
type Category struct {
	Text  string // whole, in the table
	Short string // below the axis; "" takes Text
	File  string // in a file; "" takes Text
}

// Series are values of one kind. NaN and infinite values are none.
type Series struct {
	Name   string
	Tone   string // good, warn, bad, calm or off; "" takes the next colour of the row
	Values []float64
}

// size is where a drawing is shown. Lengths are CSS pixels.
type size struct {
	class         string
	width, height float64
	labels        int // categories that are named, at most
	runes         int // of a name below the axis, at most
}

var sizes = []size{{"ch-wide", 560, 230, 10, 14}, {"ch-narrow", 330, 210, 5, 9}}

const (
	textWidth = 6.6 // of a digit, at the size of the style sheet
	edgeTop   = 12.0
	edgeRight = 10.0
	edgeBelow = 28.0
	colours   = 5 // of series without a tone
)

// HTML is the chart with its sentence, its legend and its table.
func (c Chart) HTML() template.HTML {
	var b strings.Builder
	id := ident(c.ID)
	level := c.Level
	if level < 2 || level > 6 {
		level = 3
	}
	fmt.Fprintf(&b, `<figure class="chart" id="%s"><figcaption><h%[2]d>%[3]s</h%[2]d><p>%[4]s</p></figcaption>`, id, level, text(c.Title), text(c.Sentence))
	drawn := c.hasValues()
	if drawn && len(c.Series) > 1 {
		b.WriteString(`<ul class="ch-legend">`)
		for i, s := range c.Series {
			fmt.Fprintf(&b, `<li><svg class="ch-key" viewBox="0 0 12 12" aria-hidden="true" focusable="false"><rect class="%s" width="12" height="12" rx="2"/></svg>%s</li>`, s.class(i), text(s.Name))
		}
		b.WriteString(`</ul>`)
	}
	if drawn {
		for _, z := range sizes {
			c.draw(&b, z)
		}
	}
	if len(c.Categories) > 0 {
		c.table(&b)
	}
	b.WriteString(`</figure>`)
	return template.HTML(b.String()) // every text was escaped
}

// class is the colour of the series in place i.
func (s Series) class(i int) string {
	switch s.Tone {
	case "good", "warn", "bad", "calm", "off":
		return "ch-" + s.Tone
	}
	return "ch-" + strconv.Itoa(i%colours+1)
}

func (c Chart) format(v float64) string {
	if c.Format != nil {
		return c.Format(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// value is the value of a series at a category; ok is false for none.
func (s Series) value(i int) (v float64, ok bool) {
	if i >= len(s.Values) || math.IsNaN(s.Values[i]) || math.IsInf(s.Values[i], 0) {
		return 0, false
	}
	return s.Values[i], true
}

// hasValues reports whether there is anything to draw: a value that is not zero.
func (c Chart) hasValues() bool {
	for i := range c.Categories {
		for _, s := range c.Series {
			if v, ok := s.value(i); ok && v != 0 && (c.Kind != Stack || v > 0) {
				return true
			}
		}
	}
	return false
}

// bounds are the least and the greatest height that is drawn. A stack has no heights below
// zero.
func (c Chart) bounds() (low, high float64) {
	high = c.Top
	for i := range c.Categories {
		sum := 0.0
		for _, s := range c.Series {
			v, ok := s.value(i)
			switch {
			case !ok:
			case c.Kind == Stack:
				sum += max(v, 0)
			default:
				low, high = min(low, v), max(high, v)
			}
		}
		high = max(high, sum)
	}
	return low, high
}

// axis has marks at round values that cover all that is drawn.
type axis struct {
	low, high float64
	marks     []float64
}

// newAxis makes an axis of at most six marks from low to high or beyond.
func newAxis(low, high float64) axis {
	if !(high > low) || math.IsInf(high-low, 0) {
		high = low + 1
	}
	raw := (high - low) / 4
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if step*m >= raw {
			step *= m
			break
		}
	}
	if step < 1 && high == math.Trunc(high) && low == math.Trunc(low) { // counts have no halves
		step = 1
	}
	a := axis{low: math.Floor(low/step) * step, high: math.Ceil(high/step) * step}
	for i := range 8 {
		m := a.low + float64(i)*step
		if m > a.high+step/2 {
			break
		}
		a.marks = append(a.marks, m)
	}
	a.high = max(a.high, a.marks[len(a.marks)-1])
	return a
}

// plot is the part of a drawing inside of its axes.
type plot struct {
	axis
	left, right, top, bottom float64
}

func (p plot) y(v float64) float64 {
	share := (v - p.low) / (p.high - p.low)
	return p.bottom - min(max(share, 0), 1)*(p.bottom-p.top)
}

func (c Chart) draw(b *strings.Builder, z size) {
	a := newAxis(c.bounds())
	longest := 0
	for _, m := range a.marks {
		longest = max(longest, len([]rune(c.format(m))))
	}
	p := plot{axis: a, left: min(float64(longest)*textWidth+12, z.width/3), right: z.width - edgeRight, top: edgeTop, bottom: z.height - edgeBelow}
	fmt.Fprintf(b, `<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s" focusable="false">`, z.class, num(z.width), num(z.height), text(c.Title+". "+c.Sentence))
	for _, m := range a.marks {
		y := num(p.y(m))
		fmt.Fprintf(b, `<path class="ch-grid" d="M%s %sH%s"/><text class="ch-mark" x="%s" y="%s" text-anchor="end" dominant-baseline="middle">%s</text>`, num(p.left), y, num(p.right), num(p.left-6), y, text(c.format(m)))
	}
	slot := (p.right - p.left) / float64(len(c.Categories))
	every := (len(c.Categories) + z.labels - 1) / z.labels
	for i, k := range c.Categories {
		if i%every != 0 {
			continue
		}
		name := k.Short
		if name == "" {
			name = k.Text
		}
		most := min(z.runes, max(1, int(slot*float64(every)/textWidth)))
		fmt.Fprintf(b, `<text class="ch-name" x="%s" y="%s" text-anchor="middle">%s</text>`, num(p.left+(float64(i)+.5)*slot), num(z.height-9), text(clip(name, most)))
	}
	switch c.Kind {
	case Line:
		c.lines(b, p, slot)
	default:
		c.bars(b, p, slot)
	}
	fmt.Fprintf(b, `<path class="ch-zero" d="M%s %sH%s"/></svg>`, num(p.left), num(p.y(0)), num(p.right))
}

// bars draws a bar for each value: beside each other or, of a stack, upon each other.
func (c Chart) bars(b *strings.Builder, p plot, slot float64) {
	gap := min(slot*.2, 6)
	wide := slot - gap
	if c.Kind != Stack {
		wide /= float64(len(c.Series))
	}
	for i, k := range c.Categories {
		sum := 0.0
		for n, s := range c.Series {
			v, ok := s.value(i)
			if !ok || v == 0 || c.Kind == Stack && v < 0 {
				continue
			}
			x, from, to := p.left+float64(i)*slot+gap/2, 0.0, v
			if c.Kind == Stack {
				from, to = sum, sum+v
				sum = to
			} else {
				x += float64(n) * wide
			}
			y, end := p.y(max(from, to)), p.y(min(from, to))
			fmt.Fprintf(b, `<rect class="ch-bar %s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, s.class(n), num(x), num(y), num(max(wide-.5, .5)), num(end-y), text(k.Text+": "+c.named(s)+c.format(v)))
		}
	}
}

// named is the name of a series before a value, where there are several.
func (c Chart) named(s Series) string {
	if len(c.Series) < 2 {
		return ""
	}
	return s.Name + " "
}

// manyPoints is from how many categories on points are not marked.
const manyPoints = 60

// lines joins the values of each series.
func (c Chart) lines(b *strings.Builder, p plot, slot float64) {
	for n, s := range c.Series {
		var path, points strings.Builder
		joined := false
		for i, k := range c.Categories {
			v, ok := s.value(i)
			if !ok {
				joined = false
				continue
			}
			x, y := num(p.left+(float64(i)+.5)*slot), num(p.y(v))
			if joined {
				fmt.Fprintf(&path, "L%s %s", x, y)
			} else {
				fmt.Fprintf(&path, "M%s %s", x, y)
			}
			joined = true
			if len(c.Categories) <= manyPoints {
				fmt.Fprintf(&points, `<circle class="ch-point %s" cx="%s" cy="%s" r="3"><title>%s</title></circle>`, s.class(n), x, y, text(k.Text+": "+c.named(s)+c.format(v)))
			}
		}
		if path.Len() > 0 {
			fmt.Fprintf(b, `<path class="ch-line %s" d="%s"/>%s`, s.class(n), path.String(), points.String())
		}
	}
}

// table writes the same figures.
func (c Chart) table(b *strings.Builder) {
	fmt.Fprintf(b, `<details class="ch-figures"><summary>%s</summary><div class="scroll" tabindex="0" role="group" aria-label="%s"><table><thead><tr><th scope="col">%s</th>`, text(c.Table), text(c.Title), text(c.Heading))
	for _, s := range c.Series {
		fmt.Fprintf(b, `<th scope="col" class="ch-number">%s</th>`, text(s.Name))
	}
	b.WriteString(`</tr></thead><tbody>`)
	for i, k := range c.Categories {
		fmt.Fprintf(b, `<tr><th scope="row">%s</th>`, text(k.Text))
		for _, s := range c.Series {
			shown := "–"
			if v, ok := s.value(i); ok {
				shown = c.format(v)
			}
			fmt.Fprintf(b, `<td class="ch-number">%s</td>`, text(shown))
		}
		b.WriteString(`</tr>`)
	}
	b.WriteString(`</tbody></table></div></details>`)
}

// num writes a length with at most one digit behind the point.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// text is a text as HTML and SVG show it, without what steers a terminal or turns the
// direction of what follows.
func text(s string) string {
	return template.HTMLEscapeString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " ")))
}

// clip is the beginning of a text of at most n runes.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}

// ident keeps what an id may have.
func ident(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s)
}

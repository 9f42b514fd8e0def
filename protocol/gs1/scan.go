// Package gs1 reads what scanners read: GS1 element strings, GS1 Digital Links and plain
// labels, and writes the first two.
//
// The application identifiers are a table. A label says by itself what it is, by the symbology
// identifier before it, else by its form: an address, an element string that can be read
// completely, or plain text. Scanners that drop separators make some labels doubtful: Read
// says whether what it read is exact, recovered or ambiguous. No address is ever fetched.
// Safe for concurrent use.
//
// Sources: GS1 General Specifications 24, GS1 Digital Link URI Syntax 1.4.
package gs1

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Separator is the group separator, which ends values that are not of predefined length.
const Separator = 0x1D

// MaxLabel is how many bytes of a label are read.
const MaxLabel = 512

// Kind is what a label is.
type Kind string

// Kinds of labels.
const (
	ElementString Kind = "element_string"
	DigitalLink   Kind = "digital_link"
	Plain         Kind = "plain"
)

// Certainty is how sure it is what a label says.
type Certainty string

// Certainties.
const (
	Exact     Certainty = "exact"
	Recovered Certainty = "recovered" // one way alone to read it, with separators that are missing
	Ambiguous Certainty = "ambiguous" // several ways: it is to be scanned again
)

// Element is an identifier with its value.
type Element struct{ AI, Value string }

// Scan is a label that was read.
type Scan struct {
	Raw       []byte // as it came
	Symbology string // such as ]C1; "" when the scanner sends none
	Kind      Kind
	Certainty Certainty
	Text      string    // without symbology and what scanners add
	Elements  []Element // none of plain and of ambiguous labels
	Warnings  []string  // what another element is missing for
}

// Source says how a scanner sends.
type Source struct {
	// DropsSeparators is set for scanners that may leave separators out, as keyboards do.
	DropsSeparators bool
}

// Refusals of labels.
var (
	ErrEmpty   = errors.New("the label is empty")
	ErrTooLong = fmt.Errorf("the label is longer than %d bytes", MaxLabel)
	// ErrElements is wrapped by what is wrong with a label that says that it is an element
	// string, or with an address whose identifiers are not right.
	ErrElements = errors.New("no GS1 label")
)

// symbologies are those of GS1 labels, and of plain ones. All others are plain.
var symbologies = map[string]Kind{"]C1": ElementString, "]e0": ElementString, "]d2": ElementString, "]Q3": ElementString, "]J1": ElementString,
	"]E0": Plain, "]C0": Plain, "]d1": Plain, "]Q1": Plain}

// HasSymbology reports whether a text begins with a symbology identifier of ISO/IEC 15424, of
// three characters.
func HasSymbology(text string) bool {
	return len(text) >= 3 && text[0] == ']' && isLetter(text[1]) && (isLetter(text[2]) || text[2] >= '0' && text[2] <= '9')
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// Read reads a label. What says by its symbology that it is a GS1 label, and is none, is an
// error (ErrElements); what says nothing is plain then. Errors: ErrEmpty, ErrTooLong.
func (o Source) Read(raw []byte) (s Scan, err error) {
	if len(raw) > MaxLabel {
		return s, ErrTooLong
	}
	s = Scan{Raw: raw, Kind: Plain, Certainty: Exact, Text: cleaned(raw)}
	said := Kind("")
	if HasSymbology(s.Text) {
		s.Symbology, s.Text, said = s.Text[:3], s.Text[3:], Plain
		if kind, ok := symbologies[s.Symbology]; ok {
			said = kind
		}
	}
	s.Text = strings.Trim(s.Text, string(rune(Separator)))
	switch {
	case s.Text == "":
		return s, ErrEmpty
	case s.Symbology == "]E0" && (len(s.Text) == 13 || len(s.Text) == 12 || len(s.Text) == 8) && IsKey(s.Text):
		s.Kind, s.Elements = ElementString, []Element{{"01", strings.Repeat("0", 14-len(s.Text)) + s.Text}}
		return s, nil
	case said == Plain && s.Symbology != "]Q1" && s.Symbology != "]d1":
		return s, nil
	case isAddress(s.Text): // also in a GS1 QR code
		s.Elements, err = parseLink(s.Text)
		if err == nil {
			s.Kind = DigitalLink
			s.Warnings = lacks(s.Elements)
		}
		if errors.Is(err, errNoLink) {
			err = nil
		}
		return s, err
	case said == Plain:
		return s, nil
	}
	s.Elements, s.Certainty, err = o.parse(s.Text)
	switch {
	case err == nil:
		s.Kind, s.Warnings = ElementString, lacks(s.Elements)
	case said != ElementString:
		s.Elements, s.Certainty, err = nil, Exact, nil
	}
	return s, err
}

// Read reads a label of a scanner that sends separators.
func Read(raw []byte) (Scan, error) { return Source{}.Read(raw) }

// cleaned is a label without what scanners put around it: a byte-order mark, NUL, line ends and
// tabs, and separators that are doubled.
func cleaned(raw []byte) string {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if !bytes.ContainsAny(raw, "\x00\r\n\t") && !bytes.Contains(raw, []byte{Separator, Separator}) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for _, c := range raw {
		switch {
		case c == 0, c == '\r', c == '\n', c == '\t':
		case c == Separator && len(out) > 0 && out[len(out)-1] == Separator:
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// parse reads an element string completely. Error: ErrElements.
func (o Source) parse(s string) ([]Element, Certainty, error) {
	list, err := parseStrict(s)
	if err == nil && !(o.DropsSeparators && isDoubtful(list)) {
		return list, Exact, nil
	}
	ways, more := splits(s)
	switch {
	case more:
		return nil, Ambiguous, nil
	case len(ways) == 1 && err == nil && slices.Equal(ways[0], list):
		return list, Exact, nil
	case len(ways) == 1:
		return ways[0], Recovered, nil
	case len(ways) > 1:
		return nil, Ambiguous, nil
	}
	return nil, Exact, err
}

// isDoubtful reports whether a value may have swallowed what stands behind it: there is one that
// is not of predefined length.
func isDoubtful(list []Element) bool {
	return slices.ContainsFunc(list, func(e Element) bool { return Find(e.AI).fixed == 0 })
}

// parseStrict reads an element string with all its separators.
func parseStrict(s string) ([]Element, error) {
	list := make([]Element, 0, 4)
	for s != "" {
		x := findIn(s)
		if x == nil {
			return nil, fmt.Errorf("%w: no identifier is known at %q", ErrElements, cut(s))
		}
		rest := s[len(x.AI):]
		end := strings.IndexByte(rest, Separator)
		if x.fixed > 0 {
			end = min(x.fixed, len(rest))
		} else if end < 0 {
			end = len(rest)
		}
		value := rest[:end]
		if !x.valid(value) {
			return nil, fmt.Errorf("%w: %w", ErrElements, x.Check(value))
		}
		list = append(list, Element{x.AI, value})
		s = rest[end:]
		if s != "" && s[0] == Separator {
			s = s[1:]
		}
	}
	return list, consistent(list)
}

func cut(s string) string { return s[:min(len(s), 12)] }

// maxSteps is how many values are tried to find the ways to read a label. One that needs more
// is ambiguous.
const maxSteps = 4096

// splits are the ways in which an element string can be read when separators may be missing, at
// most two of them: those that follow all rules. more says that not all were looked at.
func splits(s string) (ways [][]Element, more bool) {
	r := splitter{s: s, dead: make([]bool, len(s)+1)}
	r.from(0)
	return r.ways, r.steps > maxSteps
}

// splitter looks for ways to read a text.
type splitter struct {
	s     string
	dead  []bool // places from which nothing leads to the end
	way   []Element
	ways  [][]Element
	steps int
}

// over reports whether enough was looked at.
func (r *splitter) over() bool { return len(r.ways) == 2 || r.steps > maxSteps }

// from reads from a place on, and reports whether the end was reached.
func (r *splitter) from(at int) bool {
	if at == len(r.s) {
		if consistent(r.way) == nil {
			r.ways = append(r.ways, slices.Clone(r.way))
		}
		return true
	}
	x := findIn(r.s[at:])
	if x == nil || r.dead[at] {
		return false
	}
	begin, reached := at+len(x.AI), false
	low, high := x.min, x.max
	if x.fixed > 0 {
		low, high = x.fixed, x.fixed
	}
	for n := low; n <= high && begin+n <= len(r.s) && !r.over(); n++ {
		r.steps++
		if n > 0 && r.s[begin+n-1] == Separator {
			break
		}
		if !x.valid(r.s[begin : begin+n]) {
			continue
		}
		next := begin + n
		if next < len(r.s) && r.s[next] == Separator {
			next++
		}
		r.way = append(r.way, Element{x.AI, r.s[begin : begin+n]})
		reached = r.from(next) || reached
		r.way = r.way[:len(r.way)-1]
	}
	r.dead[at] = !reached && !r.over()
	return reached
}

// excluded are identifiers of which a label has one at most.
var excluded = [][2]string{{"420", "421"}, {"01", "02"}, {"01", "03"}, {"02", "03"}, {"01", "37"}, {"01", "255"}}

// needs are identifiers that another one is needed for, any of those named.
var needs = []struct {
	ai string
	of []string
}{
	{"02", []string{"00"}}, {"02", []string{"37"}}, {"37", []string{"00"}}, {"37", []string{"02", "8026"}}, {"403", []string{"00"}}, {"254", []string{"414"}},
	{"10", []string{"01", "02", "03", "8006", "8026"}}, {"21", []string{"01", "03", "8006"}}, {"22", []string{"01"}}, {"235", []string{"01"}}, {"8019", []string{"8017", "8018"}}, {"8011", []string{"8010"}},
}

// consistent refuses a label that names an identifier twice with different values, or two that
// exclude each other. Error: ErrElements.
func consistent(list []Element) error {
	for i, e := range list {
		for _, other := range list[:i] {
			if other.AI == e.AI && other.Value != e.Value {
				return fmt.Errorf("%w: (%s) is there twice, with different values", ErrElements, e.AI)
			}
		}
	}
	if len(list) < 2 {
		return nil
	}
	for _, x := range excluded {
		if has(list, x[0]) && has(list, x[1]) {
			return fmt.Errorf("%w: (%s) and (%s) exclude each other", ErrElements, x[0], x[1])
		}
	}
	return nil
}

func has(list []Element, ais ...string) bool {
	return slices.ContainsFunc(list, func(e Element) bool { return slices.Contains(ais, e.AI) })
}

// lacks are the elements that others of a label need.
func lacks(list []Element) (out []string) {
	for _, n := range needs {
		if has(list, n.ai) && !has(list, n.of...) {
			out = append(out, fmt.Sprintf("(%s) needs (%s)", n.ai, strings.Join(n.of, ") or (")))
		}
	}
	for _, e := range list {
		if len(e.AI) == 4 && e.AI >= "4300" && e.AI <= "4333" && !has(list, "00") {
			return append(out, fmt.Sprintf("(%s) needs (00)", e.AI))
		}
	}
	return out
}

// Value is the value of an identifier, "" when the label has none.
func (s Scan) Value(ai string) string {
	for _, e := range s.Elements {
		if e.AI == ai {
			return e.Value
		}
	}
	return ""
}

// Subject is what a label names: of an SSCC (00), a shipment (402), a consignment (401) and an
// item with its serial (01 and 21) the first, with its identifier; else its text, with none.
func (s Scan) Subject() (ai, value string) {
	for _, ai := range []string{"00", "402", "401"} {
		if v := s.Value(ai); v != "" {
			return ai, v
		}
	}
	if item, serial := s.Value("01"), s.Value("21"); item != "" && serial != "" {
		return "01", item + "/" + serial
	}
	return "", s.Text
}

// IsMisread reports whether a label that does not say what it is has the form of an SSCC, with its
// identifier or without, and a wrong check digit: digits of a bar code that were read wrong, or
// typed wrong. What names something else, or says that it is no GS1 label, is not.
func (s Scan) IsMisread() bool {
	number := s.Text
	if len(number) == 20 {
		number = strings.TrimPrefix(number, "00")
	}
	ai, _ := s.Subject()
	return s.Symbology == "" && ai == "" && len(number) == 18 && CheckDigit(number) >= 0 && !IsKey(number)
}

// Encode writes elements as an element string: those of predefined length first, in their order,
// and separators behind the others but the last. Errors: of Check, ErrElements.
func Encode(list []Element) (string, error) {
	if err := checkAll(list); err != nil {
		return "", err
	}
	var out strings.Builder
	var rest []Element
	for _, e := range list {
		if Find(e.AI).fixed == 0 {
			rest = append(rest, e)
			continue
		}
		out.WriteString(e.AI)
		out.WriteString(e.Value)
	}
	for i, e := range rest {
		if i > 0 {
			out.WriteByte(Separator)
		}
		out.WriteString(e.AI)
		out.WriteString(e.Value)
	}
	return out.String(), nil
}

func checkAll(list []Element) error {
	for _, e := range list {
		x := Find(e.AI)
		if x == nil {
			return fmt.Errorf("%w: (%s) is not known", ErrElements, e.AI)
		}
		if err := x.Check(e.Value); err != nil {
			return fmt.Errorf("%w: %w", ErrElements, err)
		}
	}
	return consistent(list)
}

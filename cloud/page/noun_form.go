package page

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// formField is a member of an input as a form shows it. Name is its path: weight,
// packages[0].weight.
type formField struct {
	Name, ID, Label, Hint string
	Kind                  string // text, long, number, choices, picks, check, date, time, moment, email, url, tel, secret, list, json, group, rows
	Value, Problem        string
	Required              bool
	Needed                bool // once anything in its group is given
	Min, Max, Pattern     string
	Length                int
	Choices               []choice
	Quick                 []string      // texts that are offered for one that is written
	Fields                []formField   // of a group
	Rows                  [][]formField // of rows
}

// Bounds of forms.
const (
	maxFormRows = 50
	maxRefs     = 200 // records that a field offers
	longText    = 255 // characters from which a text has several lines
	// Fields of a form that is sent: fifty packages with ten articles each have fewer.
	maxFields = 5000
	maxPath   = 200 // bytes of a field's name
)

// maker makes the fields of a form.
type maker struct {
	p        nounPages
	of       string // name of the operation
	f        frame
	c        context.Context
	ctx      *fasthttp.RequestCtx
	v        visitor
	values   map[string]string // by path; several of a field are parted by line breaks
	rows     map[string]int    // rows of lists of objects, by path
	problems map[string]string // by path
	refs     *references
	parts    map[string][]choice // that the record offers, by member
	left     []string            // members that belong to what it does not offer
}

// fields are those of some members. Required ones come first.
func (m *maker) fields(prefix string, members []catalog.Member, leave ...string) []formField {
	var out []formField
	for _, x := range members {
		if slices.Contains(leave, x.Name) || prefix == "" && slices.Contains(m.left, x.Name) {
			continue
		}
		out = append(out, m.field(prefix+x.Name, x))
	}
	slices.SortStableFunc(out, func(a, b formField) int {
		return strings.Compare(strconv.FormatBool(b.Required), strconv.FormatBool(a.Required))
	})
	return out
}

// field is that of a member at a path.
func (m *maker) field(path string, x catalog.Member) formField {
	t := bare(x.Type)
	f := formField{Name: path, ID: "f-" + path, Label: memberWords(m.f.Lang, x.Name), Value: m.values[path], Problem: m.problems[path], Required: x.Required, Kind: "text"}
	switch t.Kind() {
	case reflect.Struct:
		if isPlain(t) {
			m.fillScalar(&f, t, x)
			break
		}
		f.Kind = "group"
		f.Fields = m.fields(path+".", catalog.BodyMembers(t))
		if !x.Required {
			for i, inner := range f.Fields {
				f.Fields[i].Required, f.Fields[i].Needed = false, inner.Required || inner.Needed
				f.Needed = f.Needed || inner.Required
			}
		}
	case reflect.Slice:
		m.fillList(&f, path, t, x)
	case reflect.Map, reflect.Interface:
		f.Kind = "json"
	default:
		m.fillScalar(&f, t, x)
	}
	return f
}

// isPlain reports whether a struct is one value in JSON.
func isPlain(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || len(catalog.BodyMembers(t)) == 0
}

// fillList fills the field of a list.
func (m *maker) fillList(f *formField, path string, t reflect.Type, x catalog.Member) {
	e, r := bare(t.Elem()), x.Rules()
	switch {
	case e.Kind() == reflect.Uint8: // JSON as it came
		f.Kind = "json"
	case e.Kind() == reflect.Struct && !isPlain(e) && f.Value != "":
		f.Kind = "json"
	case e.Kind() == reflect.Struct && !isPlain(e):
		f.Kind = "rows"
		n := min(max(m.rows[path], boolInt(f.Required)), maxFormRows)
		for i := range n {
			f.Rows = append(f.Rows, m.fields(path+"["+strconv.Itoa(i)+"].", catalog.BodyMembers(e)))
		}
	case r.Item != nil && len(r.Item.Enum) > 0:
		f.Kind = "picks"
		chosen := strings.Split(f.Value, "\n")
		for _, v := range r.Item.Enum {
			if x.Name == "scopes" && !m.v.c.HasScope(v) && !slices.Contains(chosen, v) { // nothing beyond what the person may
				continue
			}
			f.Choices = append(f.Choices, choice{v, valueWords(m.f.Lang, x.Name, v), slices.Contains(chosen, v)})
		}
	default:
		f.Kind, f.Hint = "list", m.f.T("work.lines")
		list, ok := m.parts[path]
		if !ok {
			list = m.offer(singular(path), e)
		}
		if len(list) > 0 {
			chosen := strings.Split(f.Value, "\n")
			f.Kind, f.Hint = "picks", ""
			for _, c := range list {
				c.Chosen = slices.Contains(chosen, c.Value)
				f.Choices = append(f.Choices, c)
			}
		}
	}
}

// singular is the name of one element of a list of ids: order_ids holds order_id.
func singular(path string) string { return strings.TrimSuffix(path, "s") }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fillScalar fills the field of a text, number, or yes or no.
func (m *maker) fillScalar(f *formField, t reflect.Type, x catalog.Member) {
	r := x.Rules()
	number := func(n *float64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatFloat(*n, 'f', -1, 64)
	}
	if f.Value == "" && r.Default != "" && !f.Required {
		f.Hint = m.f.T("work.default", valueWords(m.f.Lang, x.Name, r.Default))
	}
	switch {
	case len(r.Enum) > 0:
		f.Kind = "choices"
		offered, some := m.parts[x.Name]
		for _, v := range r.Enum {
			if some && !slices.ContainsFunc(offered, func(c choice) bool { return c.Value == v }) {
				continue // not about this record
			}
			f.Choices = append(f.Choices, choice{v, valueWords(m.f.Lang, x.Name, v), v == f.Value})
		}
	case t.Kind() == reflect.Bool:
		f.Kind = "choices"
		f.Choices = []choice{{"true", m.f.T("work.yes"), f.Value == "true"}, {"false", m.f.T("work.no"), f.Value == "false"}}
	case t.Kind() == reflect.String && isCountry(x.Name):
		f.Kind, f.Choices = "choices", countryChoices(m.f.Lang, f.Value)
	case t.Kind() == reflect.String:
		f.Kind = map[string]string{"date": "date", "time": "time", "date-time": "moment", "moment": "moment", "email": "email", "url": "url", "uri": "url", "https": "url"}[r.Format]
		if r.Max != nil {
			f.Length = int(*r.Max)
		}
		if f.Kind == "" {
			f.Kind = "text"
			if f.Length > longText && !r.Line {
				f.Kind = "long"
			}
		}
		if isSecret(x.Name) {
			f.Kind, f.Value = "secret", "" // it is never sent back
		}
		switch x.Name {
		case "phone":
			f.Kind = "tel"
		case "email":
			f.Kind = "email"
		}
		if f.Kind == "text" {
			f.Quick = locale.QuickTexts(m.f.Lang, m.of, f.Name)
		}
		f.Pattern = r.Pattern
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		f.Kind = "json"
	default:
		f.Kind, f.Min, f.Max = "number", number(r.Min), number(r.Max)
		list, ok := m.parts[x.Name]
		if !ok {
			list = m.offer(x.Name, t)
		}
		if len(list) > 0 {
			f.Kind = "choices"
			for _, c := range list {
				c.Chosen = c.Value == f.Value
				f.Choices = append(f.Choices, c)
			}
		}
	}
}

// isCountry reports whether a member, by its path, is a country's code of ISO 3166-1.
func isCountry(path string) bool {
	name := lastPart(path)
	return name == "country" || strings.HasSuffix(name, "_country")
}

// countryChoices are the countries by name. A code that is chosen and that no country
// has is offered too: a form never drops what a record holds.
func countryChoices(lang, chosen string) []choice {
	list, found := locale.Countries(lang), chosen == ""
	out := make([]choice, 0, len(list)+1)
	for _, r := range list {
		is := strings.EqualFold(r.Code, chosen)
		found = found || is
		out = append(out, choice{r.Code, r.Name, is})
	}
	if !found {
		out = append(out, choice{chosen, chosen, true})
	}
	return out
}

// isSecret reports whether a member, by its path, holds what no page shows.
func isSecret(path string) bool {
	name := lastPart(path)
	return strings.Contains(name, "password") || strings.Contains(name, "secret") || name == "private_key" || name == "otp"
}

// offer are the records that a member can name, nil when there are none to choose
// from or too many.
func (m *maker) offer(name string, t reflect.Type) []choice {
	if k := t.Kind(); k == reflect.String || k == reflect.Bool || k == reflect.Float64 {
		return nil
	}
	return m.refs.choices(name)
}

// offerParts reads what a record offers to its verbs.
func (m *maker) offerParts(n *catalog.Noun, record map[string]any) {
	m.parts = map[string][]choice{}
	for _, part := range n.Parts {
		list, known := record[part.Of].([]any)
		for name, id := range part.Only {
			if known && !slices.ContainsFunc(list, func(x any) bool { e, _ := x.(map[string]any); return e[part.ID] == id }) {
				m.left = append(m.left, name)
			}
		}
		for _, x := range list {
			if e, ok := x.(map[string]any); ok {
				m.parts[part.Input] = append(m.parts[part.Input], choice{Value: plainText(e[part.ID]), Text: plainText(e[part.Title])})
			}
		}
	}
}

// flattened are the values of a record by path, as fields hold them, and the rows of
// its lists of objects.
func (m *maker) flattened(prefix string, members []catalog.Member, record map[string]any) {
	for _, x := range members {
		path, v := prefix+x.Name, record[x.Name]
		t := bare(x.Type)
		switch v := v.(type) {
		case nil:
		case map[string]any:
			if t.Kind() == reflect.Struct && !isPlain(t) {
				m.flattened(path+".", catalog.BodyMembers(t), v)
				continue
			}
			m.values[path] = marshalJSON(v)
		case []any:
			if t.Kind() == reflect.Slice && bare(t.Elem()).Kind() == reflect.Struct && !isPlain(bare(t.Elem())) {
				if len(v) > maxFormRows { // all of it in one field: a form that shows a part would drop the rest
					m.values[path] = marshalJSON(v)
					continue
				}
				m.rows[path] = len(v)
				for i, e := range v {
					if inner, ok := e.(map[string]any); ok {
						m.flattened(path+"["+strconv.Itoa(i)+"].", catalog.BodyMembers(bare(t.Elem())), inner)
					}
				}
				continue
			}
			var lines []string
			for _, e := range v {
				lines = append(lines, plainText(e))
			}
			m.values[path] = strings.Join(lines, "\n")
		case string:
			if isSecret(path) { // masked; an empty field leaves it as it is
				continue
			}
			if e := x.Rules().Enum; len(e) > 0 && !slices.Contains(e, v) { // it cannot be set to what it is
				continue
			}
			if isMoment(x.Rules().Format) {
				if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
					v = at.In(m.zone()).Format(localMoment)
				}
			}
			m.values[path] = v
		default:
			m.values[path] = plainText(v)
		}
	}
}

// clash is a value that two people changed.
type clash struct{ Name, Was, Now, Yours string }

// merge takes over what someone else changed since the form was made, and lists the
// members that the person changed too, whose values stay. was are the values that the
// form began with; the ones that it would begin with now are given back.
func (m *maker) merge(members []catalog.Member, record map[string]any, was string) (now string, clashes []clash) {
	old := map[string]string{}
	if json.Unmarshal([]byte(was), &old) != nil {
		return was, nil
	}
	fresh := maker{f: m.f, values: map[string]string{}, rows: map[string]int{}}
	fresh.flattened("", members, record)
	for _, x := range members {
		before, current, own := valuesOf(old, x.Name), valuesOf(fresh.values, x.Name), valuesOf(m.values, x.Name)
		switch {
		case maps.Equal(before, current) || maps.Equal(current, own):
		case maps.Equal(before, own):
			for path := range own {
				delete(m.values, path)
			}
			maps.Copy(m.values, current)
			for path, n := range fresh.rows {
				if valuesOf(map[string]string{path: "x"}, x.Name) != nil {
					m.rows[path] = n
				}
			}
		default:
			all := maps.Clone(current)
			maps.Copy(all, own)
			for _, path := range slices.Sorted(maps.Keys(all)) {
				if current[path] != own[path] {
					clashes = append(clashes, clash{memberWords(m.f.Lang, path), m.fieldWords(path, before[path]), m.fieldWords(path, current[path]), m.fieldWords(path, own[path])})
				}
			}
		}
	}
	return marshalJSON(fresh.values), clashes
}

// fieldWords are a value of a form in words.
func (m *maker) fieldWords(path, text string) string {
	if enumLike(text) {
		return valueWords(m.f.Lang, path, text)
	}
	return outside(text, maxValue)
}

// valuesOf are the values of a member and of what is in it, but for empty ones.
func valuesOf(all map[string]string, member string) map[string]string {
	var part map[string]string
	for path, v := range all {
		if rest, ok := strings.CutPrefix(path, member); ok && strings.TrimSpace(v) != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') && !isSecret(path) {
			if part == nil {
				part = map[string]string{}
			}
			part[path] = strings.TrimSpace(v)
		}
	}
	return part
}

const localMoment = "2006-01-02T15:04"

// isMoment reports whether a format of check is that of points in time.
func isMoment(format string) bool { return format == "date-time" || format == "moment" }

func (m *maker) zone() *time.Location {
	if m.f.Zone == nil {
		return time.UTC
	}
	return m.f.Zone
}

// sent reads what a form sent: values and rows by path. It is false for a form with more
// fields than any of ours has, and for one with a secret that another form held.
func (m *maker) sent(args *fasthttp.Args, seal sealer) bool {
	lines := map[string][]string{}
	n, whole := 0, true
	for k, x := range args.All() {
		path, ok := strings.CutPrefix(string(k), "in:")
		if !ok {
			continue
		}
		if n++; n > maxFields || len(path) > maxPath {
			return false
		}
		value := strings.ReplaceAll(string(x), "\r\n", "\n")
		if isSecret(path) {
			if value, ok = seal.open(path, value); !ok {
				whole = false
			}
		}
		lines[path] = append(lines[path], value)
	}
	for path, list := range lines {
		m.values[path] = strings.Join(list, "\n")
		for rest, from := path, 0; ; {
			i := strings.IndexByte(rest, '[')
			if i < 0 {
				break
			}
			list := path[:from+i]
			end := strings.IndexByte(rest[i:], ']')
			if end < 0 {
				break
			}
			if n, err := strconv.Atoi(rest[i+1 : i+end]); err == nil && n >= 0 && n < maxFormRows {
				m.rows[list] = max(m.rows[list], n+1)
			}
			from += i + end + 1
			rest = rest[i+end+1:]
		}
	}
	return whole
}

// edit adds a row to a list or removes one, as the form's button said; false when no
// such button was pressed.
func (m *maker) edit(args *fasthttp.Args) bool {
	if list := string(args.Peek("add")); list != "" {
		m.rows[list] = min(m.rows[list]+1, maxFormRows)
		return true
	}
	row := string(args.Peek("remove"))
	open := strings.LastIndexByte(row, '[')
	if open < 0 {
		return row != ""
	}
	list := row[:open]
	gone, err := strconv.Atoi(strings.Trim(row[open:], "[]"))
	if err != nil || gone < 0 || gone >= m.rows[list] {
		return true
	}
	at := func(i int) string { return list + "[" + strconv.Itoa(i) + "]" }
	old, oldRows := maps.Clone(m.values), maps.Clone(m.rows)
	for i := gone; i < m.rows[list]; i++ { // each row takes what the next one holds
		for path := range old {
			if strings.HasPrefix(path, at(i)) {
				delete(m.values, path)
			}
		}
		for path := range oldRows {
			if strings.HasPrefix(path, at(i)) {
				delete(m.rows, path)
			}
		}
		for path, value := range old {
			if rest, ok := strings.CutPrefix(path, at(i+1)); ok {
				m.values[at(i)+rest] = value
			}
		}
		for path, n := range oldRows {
			if rest, ok := strings.CutPrefix(path, at(i+1)); ok {
				m.rows[at(i)+rest] = n
			}
		}
	}
	m.rows[list]--
	return true
}

// input are the values as the operation takes them.
func (m *maker) input(prefix string, members []catalog.Member) map[string]any {
	out := map[string]any{}
	for _, x := range members {
		path := prefix + x.Name
		if v := m.value(path, x); v != nil {
			out[x.Name] = v
		}
	}
	return out
}

func (m *maker) value(path string, x catalog.Member) any {
	t, r, text := bare(x.Type), x.Rules(), m.values[path]
	switch t.Kind() {
	case reflect.Struct:
		if !isPlain(t) {
			if inner := m.input(path+".", catalog.BodyMembers(t)); len(inner) > 0 {
				return inner
			}
			return nil
		}
	case reflect.Slice:
		e := bare(t.Elem())
		switch {
		case e.Kind() == reflect.Uint8:
			return asJSON(text)
		case e.Kind() == reflect.Struct && !isPlain(e) && text != "":
			return asJSON(text)
		case e.Kind() == reflect.Struct && !isPlain(e):
			var list []any
			for i := range m.rows[path] {
				if inner := m.input(path+"["+strconv.Itoa(i)+"].", catalog.BodyMembers(e)); len(inner) > 0 {
					list = append(list, inner)
				}
			}
			if list == nil && x.Required { // an empty row, whose fields say what it lacks
				list = append(list, map[string]any{})
			}
			if list == nil {
				return nil
			}
			return list
		}
		var list []any
		for _, line := range strings.Split(text, "\n") {
			if line = strings.TrimSpace(line); line != "" && x.Name == "countries" {
				list = append(list, locale.CountryCode(m.f.Lang, line))
			} else if line != "" {
				list = append(list, scalar(e, line))
			}
		}
		if list == nil {
			return nil
		}
		return list
	case reflect.Map, reflect.Interface:
		return asJSON(text)
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	if isMoment(r.Format) {
		if at, err := time.ParseInLocation(localMoment, text, m.zone()); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	}
	return scalar(t, text)
}

// scalar is a text as JSON has the type; a text of another form stays one, which the
// operation then names.
func scalar(t reflect.Type, text string) any {
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
		return text
	}
	if isNumber(text) {
		return json.Number(text)
	}
	return text
}

// isNumber reports whether a text is a number as JSON writes one.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

func asJSON(text string) any {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	return v
}

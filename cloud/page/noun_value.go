package page

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// shown is a value as a page shows it.
type shown struct {
	Text string // "" for none
	At   *moment
	To   string // address of the record that it names
	Out  bool   // the address is another's, of http or https
	Tone string // of a state: good, warn, bad, calm; "" for what is no state
	Yes  bool   // of a yes or no
	Is   string // yesno, for a yes or no
}

// states are how the words of a state look. Any other value is calm.
var states = map[string]string{}

func init() {
	for tone, list := range map[string]string{
		"good": "online active delivered picked_up success collected ok completed accepted enabled closed resolved executed approved done succeeded order.41 order.46",
		"warn": "overdue expired retrying paused correcting pending waiting medium requested held awaiting_hardware maintenance created partial planned doors_opened order.2 order.3 order.42 order.48",
		"bad":  "offline failed dead stolen open suspended high critical refused error disabled cancelled rejected jammed denied failing order.22 order.43 order.45",
		"off":  "retired ended withdrawn never unknown revoked order.47 order.50",
	} {
		for _, s := range strings.Fields(list) {
			states[s] = tone
		}
	}
}

// value shows a member of a record. kind is that of a state's words, "" for members
// that are no state.
func (p nounPages) value(f frame, name string, v any, kind string) shown {
	switch v := v.(type) {
	case nil:
		return shown{}
	case bool:
		if name == "livemode" {
			return shown{Text: f.T("work.live." + map[bool]string{true: "yes", false: "no"}[v]), Tone: map[bool]string{true: "calm", false: "warn"}[v]}
		}
		return shown{Text: f.T("work." + map[bool]string{true: "yes", false: "no"}[v]), Is: "yesno", Yes: v}
	case json.Number:
		if kind != "" {
			return stateShown(f, kind, v.String())
		}
		if strings.HasSuffix(name, "_status_id") || name == "before_status" || name == "after_status" {
			return stateShown(f, "order", v.String())
		}
		if v == "0" && slices.Contains(unbounded, lastPart(name)) {
			return shown{Text: f.T("work.nobound")}
		}
		return shown{Text: numberShown(f, name, v.String()), To: p.refer(name, v.String())}
	case string:
		if kind != "" {
			return stateShown(f, kind, v)
		}
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil && len(v) >= len("2006-01-02T15:04:05Z") {
			return shown{Text: v, At: f.Time(t)}
		}
		if t, err := time.Parse(time.DateOnly, v); err == nil {
			return shown{Text: v, At: f.Day(t)}
		}
		if isCountry(name) {
			return shown{Text: locale.Country(f.Lang, outside(v, maxValue))}
		}
		if isWebAddress(v) {
			return shown{Text: outside(v, maxValue), To: v, Out: true}
		}
		switch lastPart(name) {
		case "scopes", "permissions":
			return shown{Text: valueWords(f.Lang, name, v)}
		case "operation", "action":
			if p.cfg.Catalog.Find(v) != nil {
				return shown{Text: label(f.Lang, v)}
			}
		case "otep_status", "tracking_event_key", "status_code":
			return shown{Text: valueWords(f.Lang, name, v)}
		case "note":
			v = locale.Note(f.Lang, v)
		case "noun":
			if p.cfg.Catalog.Noun(v) != nil {
				return shown{Text: f.T("noun." + v + ".one")}
			}
		}
		if enumLike(v) || name == "type" || name == "profile" {
			if w := valueWords(f.Lang, name, v); w != v {
				return shown{Text: w, To: p.refer(name, v)}
			}
		}
		return shown{Text: outside(v, maxValue), To: p.refer(name, v)}
	case []any:
		var list []string
		for _, x := range v {
			if area, reads := strings.CutSuffix(plainText(x), ":read"); reads && slices.Contains(v, any(area+":write")) { // who may change may look
				continue
			}
			if s := plainText(x); s != "" && s[0] != '{' {
				list = append(list, valueWords(f.Lang, name, s))
			}
		}
		return shown{Text: outside(strings.Join(list, ", "), maxValue)}
	case map[string]any:
		return shown{Text: inWords(f, v)}
	}
	return shown{Text: plainText(v)}
}

// isWebAddress reports whether a text is an address of http or https, without anything that
// opens something else.
func isWebAddress(v string) bool {
	u, err := url.Parse(v)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && len(v) <= 2000
}

// counts are the names of members that count something.
var counts = strings.Fields("total good failed succeeded checked refused attempts failures orders packages count quantity")

// numberShown writes a number as the page's language does where it is an amount: a fraction,
// or one of what is counted. Others name something.
func numberShown(f frame, name, text string) string {
	name = lastPart(name)
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && strings.HasPrefix(name, "failure_rate") { // a part of one
		return f.T("report.percent", f.number(math.Round(n*1000)/10))
	}
	if err != nil || name == "latitude" || name == "longitude" || !slices.Contains(counts, name) && !strings.HasSuffix(name, "_count") && (n == math.Trunc(n) || math.Abs(n) >= 1e15 || math.Round(n*100) != n*100) {
		return text
	}
	return f.number(n)
}

// valueWords is a value of a member in words: those of choices, or of the kind that the
// member's name says.
func valueWords(lang, member, v string) string {
	switch lastPart(member) {
	case "scopes", "permissions":
		return locale.Scope(lang, v)
	case "profile":
		return locale.Value(lang, "profile", v)
	case "severity":
		return locale.Value(lang, "severity", v)
	case "purpose":
		return locale.Value(lang, "purpose", v)
	case "end_reason":
		return locale.Value(lang, "end", v)
	case "door_status":
		return locale.Value(lang, "door", v)
	case "otep_status", "tracking_event_key", "status_code":
		return locale.Headline(lang, otep.Code(v))
	case "type":
		if w := locale.Word(lang, "exception."+v); w != "exception."+v {
			return w
		}
	}
	w := locale.Value(lang, "value", v)
	if strings.ReplaceAll(v, "_", " ") == w { // the name of a member
		w = memberWords(lang, v)
	}
	return w
}

// enumLike reports whether a text may be one of a list of choices.
func enumLike(s string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func stateShown(f frame, kind, v string) shown {
	return shown{Text: capital(f.V(kind, v)), Tone: cmp.Or(states[kind+"."+v], states[v], "calm")}
}

// capital is a word as it begins a line: some words of states stand in sentences too.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// inWords is a small object in one line: the members that have a value.
func inWords(f frame, v map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		s := plainText(v[name])
		switch {
		case s == "" || s == "0" || s == "false" || s[0] == '{' || s[0] == '[':
		case s == "true":
			parts = append(parts, memberWords(f.Lang, name))
		default:
			parts = append(parts, f.V("value", name)+": "+f.V("value", s))
		}
	}
	return outside(strings.Join(parts, ", "), maxValue)
}

// refer is the address of the record that a member names, "" when it names none.
func (p nounPages) refer(name, id string) string {
	n := p.cfg.Catalog.NounOf(lastPart(name))
	if n == nil || n.ID == "" || id == "" || id == "0" {
		return ""
	}
	return recordAddress(n, map[string]any{n.ID: id})
}

// fact is a member of a record in its detail.
type fact struct {
	Name  string
	Value shown
}

// factGroup are members that belong together: those of the record itself, or of an
// object in it.
type factGroup struct {
	Title string // "" for the record's own
	Facts []fact
	Table *nounTable // of a list of objects
}

// Bounds of a detail.
const (
	maxInner = 60 // rows of a list inside a record
	maxWide  = 8  // columns of it
)

// facts lay a record out. Members without a value are left out.
func (p nounPages) facts(v visitor, n *catalog.Noun, record map[string]any, refs *references) []factGroup {
	own := factGroup{}
	var groups []factGroup
	for _, name := range p.ordered(n, record) {
		switch x := record[name].(type) {
		case nil:
		case map[string]any:
			g := factGroup{Title: memberWords(v.Lang, name)}
			p.lay(v.frame, &g, "", x, p.membersAt(n, name), refs)
			if len(g.Facts) > 0 {
				groups = append(groups, g)
			}
		case []any:
			if len(x) == 0 {
				continue
			}
			if _, isObject := x[0].(map[string]any); isObject {
				groups = append(groups, factGroup{Title: memberWords(v.Lang, name), Table: p.inner(v.frame, x, p.membersAt(n, name), refs)})
				continue
			}
			own.Facts = append(own.Facts, fact{memberWords(v.Lang, name), p.value(v.frame, name, x, "")})
		default:
			if name == n.State { // it stands beside the heading
				continue
			}
			if name == n.ID && len(n.Title) > 0 && n.Title[0] != n.ID && n.Area != "" { // it stands in the address
				continue
			}
			own.add(memberWords(v.Lang, name), refs.title(name, p.value(v.frame, name, x, "")))
		}
	}
	return append([]factGroup{own}, groups...)
}

// add adds a fact, unless it has no value or the group says it already: an id that is shown
// by its record's name, and the name.
func (g *factGroup) add(name string, s shown) {
	if s.Text != "" && !slices.ContainsFunc(g.Facts, func(x fact) bool { return x.Name == name && x.Value.Text == s.Text }) {
		g.Facts = append(g.Facts, fact{name, s})
	}
}

// isPlaceOfDoor reports whether a member is the code of a door's place, which a record that
// names the door leaves out.
func isPlaceOfDoor(record map[string]any, member string) bool {
	_, named := record["door_name"]
	return named && member == "grid_code"
}

// lay adds the members of an object and of the objects in it.
func (p nounPages) lay(f frame, g *factGroup, prefix string, v map[string]any, order []string, refs *references) {
	for _, name := range inOrder(slices.Sorted(maps.Keys(v)), order) {
		if isPlaceOfDoor(v, name) {
			continue
		}
		if inner, ok := v[name].(map[string]any); ok {
			p.lay(f, g, prefix+memberWords(f.Lang, name)+" · ", inner, nil, refs)
			continue
		}
		g.add(prefix+memberWords(f.Lang, name), refs.title(name, p.value(f, name, v[name], "")))
	}
}

// inner is a list of objects as a table of their plain members.
func (p nounPages) inner(f frame, list []any, order []string, refs *references) *nounTable {
	t := &nounTable{}
	var names []string
	for _, x := range list {
		record, _ := x.(map[string]any)
		for name, v := range record {
			if _, isObject := v.(map[string]any); !isObject && plainText(v) != "" && plainText(v) != "[]" && !slices.Contains(names, name) && !isPlaceOfDoor(record, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	names = inOrder(names, order)
	names = names[:min(len(names), maxWide)]
	for _, name := range names {
		t.Columns = append(t.Columns, column{Text: memberWords(f.Lang, name)})
	}
	for _, x := range list[:min(len(list), maxInner)] {
		record, _ := x.(map[string]any)
		var row tableRow
		for _, name := range names {
			row.Cells = append(row.Cells, refs.title(name, p.value(f, name, record[name], "")))
		}
		t.Rows = append(t.Rows, row)
	}
	t.More = len(list) - len(t.Rows)
	return t
}

// membersAt are the names of the members below one of a noun's record, in the order of
// their type.
func (p nounPages) membersAt(n *catalog.Noun, name string) []string {
	if n.Find == "" {
		return nil
	}
	return p.cfg.Catalog.Find(n.Find).FoundMembers(name)
}

// inOrder sorts names as another list has them; those that it lacks come last.
func inOrder(names, order []string) []string {
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := slices.Index(order, a), slices.Index(order, b)
		if x < 0 {
			x = len(order)
		}
		if y < 0 {
			y = len(order)
		}
		return x - y
	})
	return names
}

// ordered are the names of a record's members: its columns first, as the list has
// them, then the others in the order of the answer's type.
func (p nounPages) ordered(n *catalog.Noun, record map[string]any) []string {
	var out []string
	code := strings.TrimSuffix(n.State, "_id") // of the state beside its number, which has words
	add := func(name string) {
		if _, ok := record[name]; ok && !slices.Contains(out, name) && (name != code || code == n.State) && !isPlaceOfDoor(record, name) {
			out = append(out, name)
		}
	}
	for _, path := range n.Columns {
		name, _, deeper := strings.Cut(path, ".")
		if !deeper {
			add(name)
		}
	}
	if n.Find != "" {
		for _, name := range p.cfg.Catalog.Find(n.Find).FoundMembers("") {
			add(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		if name != "result" {
			add(name)
		}
	}
	return out
}

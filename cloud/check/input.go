package check

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
)

// None is the input of operations that take none.
type None struct{}

// Input checks an input, a pointer to a struct, by the rules of its members and
// those of nested structs, lists and maps, and fills in defaults. The error is
// of kind cloud.Invalid and names each member by its path, such as
// packages.3.weight; nil when every rule holds.
func Input(in any) error { return Of(in).Err() }

// Of is what Input finds, never nil, for an operation that has rules to add: of the
// rows of a list, or of inputs that come from elsewhere than a call.
func Of(in any) Fields {
	f := Fields{}
	v := reflect.ValueOf(in).Elem()
	planOf(v.Type()).check(f, "", v)
	return f
}

// Messages are the sentences about members, each with its element's name and what
// is allowed. Package locale has them in other languages.
const (
	MessageRequired  = "%s is required."
	MessageTrue      = "%s must be true: nothing is done without it."
	MessageBetween   = "%s must be from %s to %s."
	MessageLeast     = "%s must be at least %s."
	MessageMost      = "%s must be at most %s."
	MessageAbove     = "%s must be above %s."
	MessageLength    = "%s must have %s to %s characters; it has %s."
	MessageShort     = "%s must have at least %s characters; it has %s."
	MessageLong      = "%s must have at most %s characters; it has %s."
	MessageItems     = "%s must have %s to %s elements; it has %s."
	MessageFewItems  = "%s must have at least %s elements; it has %s."
	MessageManyItems = "%s must have at most %s elements; it has %s."
	MessageEnum      = "%s must be one of %s."
	MessageForm      = "%s must look like %s."
	MessageCountry   = "%s must be a country code of two letters that ISO 3166-1 assigns, such as CA, DE or US."
	MessageTwice     = "%s is in the list twice."
	MessageNoMember  = "%s is no member that is known here."
	MessageControl   = "%s must not contain control characters."
	MessageLine      = "%s must be one line, without control characters."
	MessageUTF8      = "%s must be valid UTF-8."
	MessageFuture    = "%s must lie in the future."
	MessageOneOf     = "Give one of %s."
	MessageWith      = "%s must come together with %s."
	MessageFixed     = "%s cannot be changed here. What can be: %s."
	MessageKeyLength = "%s must have keys of %s to %s characters."
	MessageKeyEnum   = "%s must have no keys but %s."
)

// Messages lists them all.
func Messages() []string {
	return []string{MessageRequired, MessageTrue, MessageBetween, MessageLeast, MessageMost, MessageAbove, MessageLength, MessageShort, MessageLong, MessageItems,
		MessageFewItems, MessageManyItems, MessageEnum, MessageForm, MessageCountry, MessageTwice, MessageNoMember, MessageControl, MessageLine, MessageUTF8,
		MessageWith, MessageFixed, MessageKeyLength, MessageKeyEnum, MessageText, MessageWhole, MessageNumber, MessageAmount, MessageBool, MessageTime, MessageList, MessageObject, MessageZero, MessageFuture, MessageOneOf}
}

// plan is how a type is checked: by member.
type plan struct {
	once    sync.Once
	members []member
}

type member struct {
	index []int
	name  string // in paths; "" for embedded structs without a name
	rules Rules
	with  []int // of the member that comes together with it; nil: none
}

var plans sync.Map // of reflect.Type to *plan

func planOf(t reflect.Type) *plan {
	p, _ := plans.LoadOrStore(t, &plan{})
	made := p.(*plan)
	made.once.Do(func() {
		for i := range t.NumField() {
			f := t.Field(i)
			name, ok := memberName(f)
			if !ok {
				continue
			}
			made.members = append(made.members, member{index: f.Index, name: name, rules: RulesOf(f)})
		}
		for i := range made.members {
			m := &made.members[i]
			for _, other := range made.members {
				if m.rules.With != "" && other.name == m.rules.With {
					m.with = other.index
				}
			}
			if m.rules.With != "" && m.with == nil {
				panic("check: " + t.String() + " has no member " + m.rules.With)
			}
		}
	})
	return made
}

// memberName is the name of a member in a path, query or body; ok is false for one
// that callers do not give. Embedded structs have an empty name.
func memberName(f reflect.StructField) (name string, ok bool) {
	if !f.IsExported() && !f.Anonymous || f.Tag.Get("body") != "" {
		return "", false
	}
	for _, place := range []string{"path", "query", "header"} {
		if name := f.Tag.Get(place); name != "" {
			return name, name != "*"
		}
	}
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return "", false
	}
	if name == "" && !f.Anonymous {
		name = f.Name
	}
	return name, true
}

func (p *plan) check(f Fields, path string, v reflect.Value) {
	for _, m := range p.members {
		at := path
		if m.name != "" {
			at = join(path, m.name)
		}
		m.check(f, at, v.FieldByIndex(m.index))
		if m.with != nil && absent(v.FieldByIndex(m.index)) && !absent(v.FieldByIndex(m.with)) {
			f.Say(at, MessageWith, m.rules.With)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var (
	rawJSON   = reflect.TypeFor[json.RawMessage]()
	moneyType = reflect.TypeFor[cloud.Money]()
)

// check checks one member and what it holds.
func (m member) check(f Fields, path string, v reflect.Value) {
	r := &m.rules
	if absent(v) && r.Default != "" {
		setDefault(v, r.Default)
	}
	if absent(v) || r.Required && v.Kind() == reflect.Struct && v.IsZero() {
		if r.Required {
			f.Say(path, MessageRequired)
		}
		return
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	r.value(f, path, v)
}

// absent reports whether a member was not given, or given as nothing.
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map:
		return v.IsNil()
	case reflect.Slice:
		return v.IsNil()
	case reflect.Bool:
		return false
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func setDefault(v reflect.Value, text string) {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		setDefault(p.Elem(), text)
		v.Set(p)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic("check: a default is no whole number: " + text)
		}
		v.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic("check: a default is no number: " + text)
		}
		v.SetFloat(n)
	case reflect.Bool:
		v.SetBool(text == "true")
	default:
		panic("check: no default for a " + v.Kind().String())
	}
}

// value checks a value that is there, and what is nested in it.
func (r *Rules) value(f Fields, path string, v reflect.Value) {
	if v.Type() == rawJSON {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if r.Required && strings.TrimSpace(v.String()) == "" {
			f.Say(path, MessageRequired)
		} else if v.String() != "" {
			r.text(f, path, v.String())
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := float64(v.Int())
		if v.Type() == moneyType {
			n /= 100
		}
		r.number(f, path, n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		r.number(f, path, float64(v.Uint()))
	case reflect.Float32, reflect.Float64:
		r.number(f, path, v.Float())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		r.list(f, path, v)
	case reflect.Map:
		r.pairs(f, path, v)
	default:
		nested(f, path, v)
	}
}

// nested checks the members of a struct, where it is one that callers fill.
func nested(f Fields, path string, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || isText(v.Type()) {
		return
	}
	planOf(v.Type()).check(f, path, v)
}

// isText reports whether a struct is written as a text or a number of its own.
func isText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) || p.Implements(reflect.TypeFor[json.Unmarshaler]())
}

func (r *Rules) list(f Fields, path string, v reflect.Value) {
	if r.Required && v.Len() == 0 {
		f.Say(path, MessageRequired)
		return
	}
	if !r.size(f, path, v.Len(), MessageItems, MessageFewItems, MessageManyItems) || r.Rows {
		return // a list that is far too long is not read
	}
	seen := map[any]bool{}
	for i := range v.Len() {
		at := path + "." + strconv.Itoa(i)
		e := v.Index(i)
		if r.Unique && e.Comparable() {
			if key := e.Interface(); seen[key] {
				f.Say(at, MessageTwice)
			} else {
				seen[key] = true
			}
		}
		r.element(f, at, e)
	}
}

// pairs checks a map: its keys, and its values like elements of a list.
func (r *Rules) pairs(f Fields, path string, v reflect.Value) {
	if r.Required && v.Len() == 0 {
		f.Say(path, MessageRequired)
		return
	}
	if !r.size(f, path, v.Len(), MessageItems, MessageFewItems, MessageManyItems) || v.Type().Key().Kind() != reflect.String {
		return
	}
	for it := v.MapRange(); it.Next(); {
		key := it.Key().String()
		if n := float64(utf8.RuneCountInString(key)); r.Key.Max != nil && (n < *r.Key.Min || n > *r.Key.Max) || !utf8.ValidString(key) {
			f.once(path, MessageKeyLength, figure(*r.Key.Min), figure(*r.Key.Max))
			continue
		}
		if len(r.Key.Enum) > 0 && !slices.Contains(r.Key.Enum, key) {
			f.once(path, MessageKeyEnum, strings.Join(r.Key.Enum, ", "))
			continue
		}
		inner := reflect.New(it.Value().Type()).Elem() // elements of maps cannot be set
		inner.Set(it.Value())
		r.element(f, join(path, key), inner)
	}
}

// element checks one element of a list or map: what is nested in it, or a text or
// number by the rules of elements.
func (r *Rules) element(f Fields, path string, v reflect.Value) {
	item := r.Item
	if item == nil {
		item = &Rules{}
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Interface:
		nested(f, path, v)
	case reflect.String:
		item.text(f, path, v.String()) // an empty text is an element, too
	default:
		item.value(f, path, v)
	}
}

// once is Say about a member that has no message yet.
func (f Fields) once(path, message string, args ...any) {
	if len(f[path]) == 0 {
		f.Say(path, message, args...)
	}
}

func (r *Rules) number(f Fields, path string, n float64) {
	low, high := r.Min != nil && !(n >= *r.Min), r.Max != nil && !(n <= *r.Max)
	switch {
	case r.Above != nil && !(n > *r.Above):
		f.Say(path, MessageAbove, figure(*r.Above))
	case (low || high) && r.Min != nil && r.Max != nil:
		f.Say(path, MessageBetween, figure(*r.Min), figure(*r.Max))
	case low:
		f.Say(path, MessageLeast, figure(*r.Min))
	case high:
		f.Say(path, MessageMost, figure(*r.Max))
	case math.IsNaN(n) || math.IsInf(n, 0):
		f.Say(path, MessageAbove, "0")
	case len(r.Enum) > 0 && !slices.Contains(r.Enum, figure(n)):
		f.Say(path, MessageEnum, strings.Join(r.Enum, ", "))
	}
}

// size checks a length; false when a rule is broken.
func (r *Rules) size(f Fields, path string, n int, both, few, many string) bool {
	low, high, has := r.Min != nil && float64(n) < *r.Min, r.Max != nil && float64(n) > *r.Max, strconv.Itoa(n)
	switch {
	case (low || high) && r.Min != nil && r.Max != nil:
		f.Say(path, both, figure(*r.Min), figure(*r.Max), has)
	case low:
		f.Say(path, few, figure(*r.Min), has)
	case high:
		f.Say(path, many, figure(*r.Max), has)
	}
	return !low && !high
}

func figure(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func (r *Rules) text(f Fields, path, s string) {
	control := func(c rune) bool {
		return unicode.IsControl(c) && (r.Line || c != '\n' && c != '\r' && c != '\t')
	}
	switch {
	case !utf8.ValidString(s):
		f.Say(path, MessageUTF8)
		return
	case strings.ContainsFunc(s, control):
		f.Say(path, map[bool]string{true: MessageLine, false: MessageControl}[r.Line])
		return
	case !r.size(f, path, utf8.RuneCountInString(s), MessageLength, MessageShort, MessageLong):
		return
	}
	switch {
	case len(r.Enum) > 0 && !slices.Contains(r.Enum, s):
		f.Say(path, MessageEnum, strings.Join(r.Enum, ", "))
	case r.Format != "" && !formats[r.Format].has(s):
		formats[r.Format].sayForm(f, path)
	case r.match != nil && !r.match.MatchString(s):
		f.Say(path, MessageForm, r.Example)
	}
}

// Say adds a message about a member: one of Messages, whose first place is the
// member's name as people write it, or a sentence without places.
func (f Fields) Say(path, message string, args ...any) {
	if !strings.Contains(message, "%s") {
		f.Add(path, message)
		return
	}
	f.Add(path, fmt.Sprintf(message, append([]any{displayPath(path)}, args...)...))
}

// displayPath is a path as people write it: packages.3.weight is packages[3].weight.
func displayPath(path string) string {
	parts := strings.Split(path, ".")
	var b strings.Builder
	for i, p := range parts {
		switch _, err := strconv.Atoi(p); {
		case err == nil && i > 0:
			b.WriteString("[" + p + "]")
		case i > 0:
			b.WriteString("." + p)
		default:
			b.WriteString(p)
		}
	}
	return b.String()
}

package check

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Input checks an input, a pointer to a struct, by the rules of its members and
// those of nested structs, lists and maps, and fills in defaults. The error is
// of kind cloud.Invalid and names each member by its path, such as
// packages.3.weight; nil when every rule holds.
func Input(in any) error {
	f := Fields{}
	v := reflect.ValueOf(in).Elem()
	planOf(v.Type()).check(f, "", v)
	return f.Err()
}

// Messages are the sentences about members, each with its element's name and what
// is allowed. Package locale has them in other languages.
const (
	MessageRequired  = "%s is required."
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
	MessageTwice     = "%s is in the list twice."
	MessageControl   = "%s must not contain control characters."
	MessageLine      = "%s must be one line, without control characters."
	MessageUTF8      = "%s must be valid UTF-8."
)

// Messages lists them all.
func Messages() []string {
	return []string{MessageRequired, MessageBetween, MessageLeast, MessageMost, MessageAbove, MessageLength, MessageShort, MessageLong, MessageItems,
		MessageFewItems, MessageManyItems, MessageEnum, MessageForm, MessageTwice, MessageControl, MessageLine, MessageUTF8}
}

// examples are texts of each format.
var examples = map[string]string{"date": "2026-11-20", "date-time": "2026-11-20T18:12:00-05:00", "time": "18:12", "email": "ann@example.com",
	"https": "https://example.com/path", "uuid": "6f1c0f1e-6d0a-4f39-9a8b-0a8a5b0c7a11", "phone": "+14165550123"}

// plan is how a type is checked: by member.
type plan struct {
	once    sync.Once
	members []member
}

type member struct {
	index []int
	name  string // in paths; "" for embedded structs without a name
	rules Rules
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
			made.members = append(made.members, member{f.Index, name, RulesOf(f)})
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
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var rawJSON = reflect.TypeFor[json.RawMessage]()

// check checks one member and what it holds.
func (m member) check(f Fields, path string, v reflect.Value) {
	r := &m.rules
	if absent(v) && r.Default != "" {
		setDefault(v, r.Default)
	}
	if absent(v) {
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
		if v.String() != "" {
			r.text(f, path, v.String())
		} else if r.Required {
			f.Say(path, MessageRequired)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		r.number(f, path, float64(v.Int()))
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
		if r.Required && v.Len() == 0 {
			f.Say(path, MessageRequired)
		}
		r.size(f, path, v.Len(), MessageItems, MessageFewItems, MessageManyItems)
		for it := v.MapRange(); it.Next(); {
			if inner := it.Value(); it.Key().Kind() == reflect.String {
				copied := reflect.New(inner.Type()).Elem() // elements of maps cannot be set
				copied.Set(inner)
				nested(f, join(path, it.Key().String()), copied)
			}
		}
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
	if !r.size(f, path, v.Len(), MessageItems, MessageFewItems, MessageManyItems) {
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
		if e.Kind() == reflect.String && r.Item != nil {
			r.Item.text(f, at, e.String())
			continue
		}
		nested(f, at, e)
	}
}

func (r *Rules) number(f Fields, path string, n float64) {
	low, high := r.Min != nil && !(n >= *r.Min), r.Max != nil && !(n <= *r.Max)
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		f.Say(path, MessageAbove, "0")
	case r.Above != nil && !(n > *r.Above):
		f.Say(path, MessageAbove, figure(*r.Above))
	case (low || high) && r.Min != nil && r.Max != nil:
		f.Say(path, MessageBetween, figure(*r.Min), figure(*r.Max))
	case low:
		f.Say(path, MessageLeast, figure(*r.Min))
	case high:
		f.Say(path, MessageMost, figure(*r.Max))
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
	case r.Format != "" && !hasFormat(r.Format, s):
		f.Say(path, MessageForm, examples[r.Format])
	case r.match != nil && !r.match.MatchString(s):
		f.Say(path, MessageForm, r.Example)
	}
}

// hasFormat reports whether a text has a format; formats that are not known
// describe and check nothing.
func hasFormat(format, s string) bool {
	var err error
	switch format {
	case "date":
		_, err = time.Parse(time.DateOnly, s)
	case "date-time":
		if _, err = time.Parse(time.RFC3339, s); err != nil {
			_, err = time.Parse(time.DateTime, s)
		}
	case "time":
		_, err = time.Parse("15:04", s)
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(s); err == nil && a.Address != s {
			return false
		}
	case "https":
		var u *url.URL
		u, err = url.Parse(s)
		return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
	case "uuid":
		return pattern(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`).MatchString(s)
	case "phone":
		return pattern(`^\+?[0-9][0-9 ()./-]{2,30}$`).MatchString(s)
	}
	return err == nil
}

// Say adds a message about a member: one of Messages, whose first place is the
// member's name as people write it.
func (f Fields) Say(path, message string, args ...any) {
	f.Add(path, fmt.Sprintf(message, append([]any{shown(path)}, args...)...))
}

// shown is a path as people write it: packages.3.weight is packages[3].weight.
func shown(path string) string {
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

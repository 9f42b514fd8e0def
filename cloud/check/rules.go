package check

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Rules are the bounds of one member, read from its tags. They are the one place
// of bounds: inputs are checked by them, and schemas show them.
//
//	required:"true"    present: no empty text, no nil, no number 0
//	min, max           of a number; of the length of a text (characters) or list
//	above:"0"          of a number: greater than that
//	enum:"a,b"         the only values of a text
//	format             date, date-time, time, email, https, uuid, phone
//	pattern, example   regular expression of a text, and a text of that form
//	line:"true"        a text of one line
//	unique:"true"      no element of a list twice
//	default:"20"       of an absent member
//	item_min, item_max, item_enum, item_format   of each element of a list of texts
//
// A member that is absent (nil, an empty text, a number 0 without a pointer)
// breaks no rule but required. A type may list its values by Values() []string.
type Rules struct {
	Required     bool
	Min, Max     *float64
	Above        *float64
	Enum         []string
	Format       string
	Pattern      string
	Example      string
	Line, Unique bool
	Default      string
	Item         *Rules // of the elements of a list of texts; nil: none

	match *regexp.Regexp
}

// lister is a type whose values are a list.
type lister interface{ Values() []string }

// RulesOf reads the tags of a member. It panics on tags that cannot be read, at
// the start of a program.
func RulesOf(f reflect.StructField) Rules {
	r := rulesOf(f, "")
	r.Required = f.Tag.Get("required") == "true" && f.Tag.Get("path") == "" // a path always has it
	r.Unique = f.Tag.Get("unique") == "true"
	r.Default = f.Tag.Get("default")
	r.Above = numberTag(f, "above")
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if l, ok := reflect.Zero(t).Interface().(lister); ok && len(r.Enum) == 0 {
		r.Enum = l.Values()
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String {
		item := rulesOf(f, "item_")
		if l, ok := reflect.Zero(t.Elem()).Interface().(lister); ok && len(item.Enum) == 0 {
			item.Enum = l.Values()
		}
		r.Item = &item
	}
	return r
}

func rulesOf(f reflect.StructField, prefix string) Rules {
	get := func(name string) string { return f.Tag.Get(prefix + name) }
	r := Rules{Min: numberTag(f, prefix+"min"), Max: numberTag(f, prefix+"max"), Format: get("format"), Pattern: get("pattern"), Example: get("example"), Line: get("line") == "true"}
	if e := get("enum"); e != "" {
		r.Enum = strings.Split(e, ",")
	}
	if r.Pattern != "" {
		r.match = pattern(r.Pattern)
	}
	return r
}

func numberTag(f reflect.StructField, name string) *float64 {
	text := f.Tag.Get(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("check: tag " + name + " of " + f.Name + " is no number: " + text)
	}
	return &n
}

var patterns sync.Map // of expressions to *regexp.Regexp

func pattern(expr string) *regexp.Regexp {
	if p, ok := patterns.Load(expr); ok {
		return p.(*regexp.Regexp)
	}
	p := regexp.MustCompile(expr)
	patterns.Store(expr, p)
	return p
}

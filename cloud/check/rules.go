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
//	required:"true"    present: no blank text, no nil, no number 0, no empty list
//	min, max           of a number; of the length of a text (characters), list or map
//	above:"0"          of a number: greater than that
//	enum:"a,b"         the only values of a text or number
//	format             one of Formats
//	pattern, example   regular expression of a text, and a text of that form
//	line:"true"        a text of one line
//	unique:"true"      no element of a list twice
//	with:"longitude"   the member of the same struct that comes together with it
//	default:"20"       of an absent member
//	item_min, item_max, item_enum, …   of each text or number in a list or map
//	key_min, key_max, key_enum         of each key of a map
//	rows:"true"        a list whose elements the operation checks one by one
//
// A member that is absent (nil, an empty text, a number 0 without a pointer)
// breaks no rule but required. Amounts of cloud.Money have bounds in whole units.
// A type may list its values by Values() []string, and a list those of its elements by
// ItemValues() []string.
type Rules struct {
	Required     bool
	Min, Max     *float64
	Above        *float64
	Enum         []string
	Format       string
	Pattern      string
	Example      string
	Line, Unique bool
	With         string
	Default      string
	Rows         bool
	Item         *Rules // of texts and numbers in a list or map; nil: none
	Key          *Rules // of the keys of a map; nil: none

	match *regexp.Regexp
}

// lister is a type whose values are a list.
type lister interface{ Values() []string }

// itemLister is a list whose elements have a list of values.
type itemLister interface{ ItemValues() []string }

// RulesOf reads the tags of a member. It panics on tags that cannot be read, at
// the start of a program.
func RulesOf(f reflect.StructField) Rules {
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	r := rulesOf(f, "", t)
	r.Required = f.Tag.Get("required") == "true" && f.Tag.Get("path") == "" // a path always has it
	r.Unique = f.Tag.Get("unique") == "true"
	r.Rows = f.Tag.Get("rows") == "true"
	r.Default, r.With = f.Tag.Get("default"), f.Tag.Get("with")
	if k := t.Kind(); k == reflect.Slice || k == reflect.Map {
		item := rulesOf(f, "item_", t.Elem())
		if l, ok := reflect.Zero(t).Interface().(itemLister); ok {
			item.Enum = l.ItemValues()
		}
		r.Item = &item
	}
	if t.Kind() == reflect.Map {
		key := rulesOf(f, "key_", t.Key())
		if key.Max != nil && key.Min == nil {
			key.Min = new(1.0)
		}
		r.Key = &key
	}
	return r
}

func rulesOf(f reflect.StructField, prefix string, t reflect.Type) Rules {
	get := func(name string) string { return f.Tag.Get(prefix + name) }
	r := Rules{Min: numberTag(f, prefix+"min"), Max: numberTag(f, prefix+"max"), Above: numberTag(f, prefix+"above"), Format: get("format"), Pattern: get("pattern"),
		Example: get("example"), Line: get("line") == "true"}
	if e := get("enum"); e != "" {
		r.Enum = strings.Split(e, ",")
	} else if l, ok := reflect.Zero(t).Interface().(lister); ok {
		r.Enum = l.Values()
	}
	if r.Format != "" && formats[r.Format].example == "" {
		panic("check: " + f.Name + " has the format " + r.Format + ", which is not known")
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

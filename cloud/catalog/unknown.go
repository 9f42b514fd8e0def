package catalog

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud/check"
)

// maxUnknown bounds how many unknown members of one body are named.
const maxUnknown = 20

// Unknown are the members of a JSON body that the operation does not know, by path
// (packages.1.colour), sorted; at most 20. Members of values that are taken as they
// come are known. A body that is no object has none.
func (o *Operation) Unknown(body []byte) []string {
	if o.raw != nil || o.upload != nil {
		return nil
	}
	var u unknown
	u.object("", body, o.in)
	slices.Sort(u.paths)
	return u.paths
}

// CheckFixed refuses a JSON body with one of the members in Fixed. Error:
// VALIDATION_FAILED, which names what the operation takes.
func (o *Operation) CheckFixed(body []byte) error {
	var all map[string]json.RawMessage
	if len(o.Fixed) == 0 || json.Unmarshal(body, &all) != nil { // another step refuses what is no object
		return nil
	}
	takes := slices.Sorted(maps.Keys(bodyMembers(o.in)))
	has := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
	}
	f := check.Fields{}
	for name := range all {
		if has(o.Fixed, name) && !has(takes, name) {
			f.Say(name, check.MessageFixed, strings.Join(takes, ", "))
		}
	}
	return f.Err()
}

// BodyNames are the names of the members that some types have in JSON.
func BodyNames(values ...any) (out []string) {
	for _, v := range values {
		for name := range bodyMembers(reflect.TypeOf(v)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bodyMembers are the members of a struct's JSON, by name.
func bodyMembers(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, ok := jsonName(f); ok && place(f) == "" && promoted(t, f) {
			out[name] = f.Type
		}
	}
	return out
}

// unknown collects the paths of members that no type knows.
type unknown struct{ paths []string }

// value walks a JSON value as encoding/json would read it into t.
func (u *unknown) value(path string, raw json.RawMessage, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		u.object(path, raw, t)
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if holdsStruct(t.Elem()) && json.Unmarshal(raw, &list) == nil {
			for i, x := range list {
				u.value(path+"."+strconv.Itoa(i), x, t.Elem())
			}
		}
	case reflect.Map:
		var all map[string]json.RawMessage
		if holdsStruct(t.Elem()) && json.Unmarshal(raw, &all) == nil {
			for name, x := range all {
				u.value(path+"."+name, x, t.Elem())
			}
		}
	}
}

// holdsStruct reports whether values of a type have members of their own.
func holdsStruct(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsStruct(t.Elem())
	}
	return t.Kind() == reflect.Struct
}

// object walks the members of an object. A value that is none, such as a time, has no
// members.
func (u *unknown) object(path string, raw json.RawMessage, t reflect.Type) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return
	}
	members := bodyMembers(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(u.paths) >= maxUnknown {
			return
		}
		in, ok := members[name]
		if !ok {
			for known, k := range members { // as encoding/json finds it
				if strings.EqualFold(known, name) {
					in, ok = k, true
				}
			}
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if !ok {
			u.paths = append(u.paths, at)
			continue
		}
		u.value(at, all[name], in)
	}
}

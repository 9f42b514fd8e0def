package cli

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ReadYAML decodes a settings file into v, a pointer to a struct. Keys that v does not
// have are refused, and so are a second document and values of another kind; errors name
// the line and the setting. An empty file changes nothing.
func ReadYAML(name string, v any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return fmt.Errorf("read configuration %s: %w", name, err)
	}
	if len(document.Content) > 0 {
		var c formCheck
		c.value(document.Content[0], reflect.TypeOf(v).Elem(), "")
		if err := errors.Join(c.errs...); err != nil {
			return fmt.Errorf("read configuration %s: %w", name, err)
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read configuration %s: %w", name, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("read configuration %s: there is more than one document in it", name)
	}
	return nil
}

// formCheck compares a document with the type that it is read into.
type formCheck struct {
	errs []error
	deep int
}

// maxDeep bounds how deep a document is compared; aliases may lead in a circle.
const maxDeep = 50

func (c *formCheck) bad(n *yaml.Node, format string, a ...any) {
	c.errs = append(c.errs, fmt.Errorf("line %d: %w", n.Line, fmt.Errorf(format, a...)))
}

// value compares one value; path is its setting's name, empty for the whole document.
func (c *formCheck) value(n *yaml.Node, t reflect.Type, path string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if c.deep++; c.deep > maxDeep {
		c.deep--
		return
	}
	defer func() { c.deep-- }()
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if readsItself(t) {
		c.leaf(n, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		c.value(n, t.Elem(), path)
	case reflect.Struct:
		if c.is(n, yaml.MappingNode, t, path) {
			c.members(n, t, path)
		}
	case reflect.Map:
		if c.is(n, yaml.MappingNode, t, path) {
			for i := 0; i+1 < len(n.Content); i += 2 {
				c.value(n.Content[i+1], t.Elem(), below(path, n.Content[i].Value))
			}
		}
	case reflect.Slice, reflect.Array:
		if c.is(n, yaml.SequenceNode, t, path) {
			for _, x := range n.Content {
				c.value(x, t.Elem(), path)
			}
		}
	default:
		c.leaf(n, t, path)
	}
}

func (c *formCheck) is(n *yaml.Node, kind yaml.Kind, t reflect.Type, path string) bool {
	if n.Kind == kind {
		return true
	}
	c.bad(n, "%s: use %s", orFile(path), formOf(t))
	return false
}

// members compares the keys of a section with its struct's.
func (c *formCheck) members(n *yaml.Node, t reflect.Type, path string) {
	names, types := membersOf(t)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			c.value(value, t, path)
			continue
		}
		member, known := types[key.Value]
		switch {
		case known:
			c.value(value, member, below(path, key.Value))
		case path == "":
			c.bad(key, "there is no setting %q; there are: %s", key.Value, strings.Join(names, ", "))
		default:
			c.bad(key, "%s has no setting %q; it has: %s", path, key.Value, strings.Join(names, ", "))
		}
	}
}

// leaf tries a value that has no settings below it.
func (c *formCheck) leaf(n *yaml.Node, t reflect.Type, path string) {
	err := n.Decode(reflect.New(t).Interface())
	var form *yaml.TypeError
	switch {
	case errors.As(err, &form):
		c.bad(n, "%s: use %s", orFile(path), formOf(t))
	case err != nil:
		c.bad(n, "%s: %w", path, err)
	}
}

// readsItself reports whether values of a type are read by a method of its own.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[yaml.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// membersOf lists the settings of a struct, in its order, with those of structs that are
// inlined.
func membersOf(t reflect.Type) (names []string, types map[string]reflect.Type) {
	types = map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, flags, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(flags, "inline"):
			inner, more := membersOf(f.Type)
			names = append(names, inner...)
			for k, v := range more {
				types[k] = v
			}
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = strings.ToLower(f.Name)
		}
		names, types[name] = append(names, name), f.Type
	}
	return names, types
}

// formOf says what a value of a type looks like in a file.
func formOf(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "a duration such as 10m"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return formOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Uint, reflect.Uint64:
		return "a whole number from 0 on"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list: [a, b], or one entry a line with a dash before it"
	case reflect.Struct, reflect.Map:
		return "names with values below it: name: value"
	}
	return "another value"
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/valyala/fasthttp"
)

// mirrored is an argument that a header repeats.
type mirrored struct {
	path []string // names of properties from the root
	name string   // of the header
}

// named are the parameters that Mcp-Name repeats, by method.
var named = map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

var token = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// mirrors finds the properties of a schema that have x-mcp-header.
func mirrors(input json.RawMessage) ([]mirrored, error) {
	var list []mirrored
	taken := map[string]bool{}
	var walk func(raw []byte, path []string) error
	walk = func(raw []byte, path []string) error {
		o, _ := split(trimmed(raw))
		properties, _ := split(o.get("properties"))
		for _, p := range properties {
			at := append(append([]string{}, path...), string(p.name))
			property, _ := split(p.value)
			if property.get("x-mcp-header") != nil {
				name, _ := property.text("x-mcp-header")
				kind, _ := property.text("type")
				key := strings.ToLower(name)
				switch {
				case !token.MatchString(name) || taken[key]:
					return fmt.Errorf("x-mcp-header of %s is no header name, or another property's", p.name)
				case kind != "string" && kind != "integer" && kind != "boolean":
					return fmt.Errorf("%s is mirrored by a header but no string, integer or boolean", p.name)
				}
				taken[key] = true
				list = append(list, mirrored{at, "Mcp-Param-" + name})
			}
			if err := walk(p.value, at); err != nil {
				return err
			}
		}
		return nil
	}
	return list, walk(input, nil)
}

// mirrorsBody checks that the headers of a modern request say what its body
// says (3.2).
func (s *Server) mirrorsBody(h *fasthttp.RequestHeader, l language, m *message) *Error {
	differs := func(name string) *Error {
		return l.refusal(fasthttp.StatusBadRequest, CodeHeaderMismatch, codeHeader, name)
	}
	if v := only(h, "Mcp-Method"); v.times != 1 || v.value != m.method {
		return differs("Mcp-Method")
	}
	parameter, ok := named[m.method]
	if !ok {
		return nil
	}
	want, given := m.params.text(parameter)
	v := only(h, "Mcp-Name")
	if got, ok := v.literal(); v.times > 1 || given && v.times == 0 || v.times > 0 && (!ok || !given || got != want) {
		return differs("Mcp-Name")
	}
	if m.method != "tools/call" {
		return nil
	}
	t, ok := s.tool(want)
	if !ok {
		return nil
	}
	for _, p := range t.mirrored {
		arg := m.params.get("arguments")
		for _, name := range p.path {
			o, _ := split(arg)
			arg = o.get(name)
		}
		v := only(h, p.name)
		if arg == nil || string(arg) == "null" {
			if v.times > 0 {
				return differs(p.name)
			}
			continue
		}
		if got, ok := v.literal(); v.times != 1 || !ok || !same(arg, got) {
			return differs(p.name)
		}
	}
	return nil
}

// only reads a header. Its value is that of the last one.
func only(h *fasthttp.RequestHeader, name string) (v header) {
	for _, b := range h.PeekAll(name) {
		v.times++
		v.value = string(bytes.Trim(b, " \t"))
	}
	return v
}

// literal is what a value stands for: itself, or what =?base64?…?= holds.
func (v header) literal() (string, bool) {
	for _, c := range []byte(v.value) {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return "", false
		}
	}
	coded, begins := strings.CutPrefix(v.value, "=?base64?")
	coded, ends := strings.CutSuffix(coded, "?=")
	if !begins || !ends {
		return v.value, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(coded)
	return string(b), err == nil
}

// same reports whether a header says what an argument does. An argument that
// no header can repeat is left to the tool's own check.
func same(arg []byte, got string) bool {
	switch {
	case isText(arg):
		return string(unquote(arg)) == got
	case isObject(arg) || arg[0] == '[':
		return true
	case arg[0] == 't' || arg[0] == 'f':
		return string(arg) == got
	}
	// Exponents would let a short text stand for a number of any size.
	if len(arg) > 64 || len(got) > 64 || strings.ContainsAny(got, "eE/_xXpP") || bytes.ContainsAny(arg, "eE") {
		return string(arg) == got
	}
	a, ok := new(big.Rat).SetString(string(arg))
	b, fine := new(big.Rat).SetString(got)
	return ok && fine && a.Cmp(b) == 0
}

// trimmed is raw without white space around it.
func trimmed(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

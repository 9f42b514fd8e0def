package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "record the published description of webhooks anew, when it only grew")

const publishedFile = "testdata/asyncapi-webhooks.json"

// What was published of bodies stays: receivers read members by name and type.
func TestPublishedBodiesOnlyGrow(t *testing.T) {
	t.Parallel()
	now := description(t)
	raw, err := os.ReadFile(publishedFile)
	if err == nil {
		var before map[string]any
		require.NoError(t, json.Unmarshal(raw, &before))
		require.Empty(t, narrowed(before, now))
	}
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, served(t), "", " "))
	b.WriteByte('\n')
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(publishedFile, b.Bytes(), 0o644))
		return
	}
	require.NoError(t, err, "record it with -update")
	require.Equal(t, b.String(), string(raw), "the description has changed: record it with -update")
}

// narrowed are the members of bodies that a receiver of before could rely on and
// cannot rely on any more.
func narrowed(before, now map[string]any) (out []string) {
	of := func(doc map[string]any, name string) any {
		m, _ := doc["components"].(map[string]any)["messages"].(map[string]any)[name].(map[string]any)
		return m["payload"]
	}
	for _, name := range slices.Sorted(maps.Keys(before["components"].(map[string]any)["messages"].(map[string]any))) {
		n := of(now, name)
		if n == nil {
			out = append(out, name+" is gone")
			continue
		}
		out = append(out, compare(before, now, name, of(before, name), n)...)
	}
	return out
}

func compare(before, now map[string]any, path string, was, is any) (out []string) {
	was, is = follow(before, was), follow(now, is)
	b, ok1 := was.(map[string]any)
	n, ok2 := is.(map[string]any)
	if !ok1 || !ok2 {
		return nil
	}
	for _, kind := range types(n) {
		if t := types(b); len(t) > 0 && !slices.Contains(t, kind) {
			out = append(out, fmt.Sprintf("%s may be %s now", path, kind))
		}
	}
	for _, word := range []string{"const", "pattern", "format"} {
		if b[word] != nil && b[word] != n[word] {
			out = append(out, fmt.Sprintf("%s has another %s", path, word))
		}
	}
	if e, ok := n["enum"].([]any); ok && b["enum"] != nil {
		for _, v := range e {
			if !slices.Contains(b["enum"].([]any), v) {
				out = append(out, fmt.Sprintf("%s may be %v now", path, v))
			}
		}
	}
	required, _ := n["required"].([]any)
	if list, ok := b["required"].([]any); ok {
		for _, name := range list {
			if !slices.Contains(required, name) {
				out = append(out, fmt.Sprintf("%s.%s may be missing now", path, name))
			}
		}
	}
	if members, ok := b["properties"].(map[string]any); ok {
		have, _ := n["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if have[name] == nil {
				out = append(out, fmt.Sprintf("%s.%s is gone", path, name))
				continue
			}
			out = append(out, compare(before, now, path+"."+name, members[name], have[name])...)
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if b[inner] != nil {
			out = append(out, compare(before, now, path+"[]", b[inner], n[inner])...)
		}
	}
	if list, ok := b["anyOf"].([]any); ok {
		others, _ := n["anyOf"].([]any)
		if len(others) != len(list) {
			return append(out, path+" has other alternatives")
		}
		for i := range list {
			out = append(out, compare(before, now, path, list[i], others[i])...)
		}
	}
	return out
}

func follow(doc map[string]any, schema any) any {
	m, _ := schema.(map[string]any)
	ref, ok := m["$ref"].(string)
	if !ok {
		return schema
	}
	var at any = doc
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	return at
}

func types(schema map[string]any) (out []string) {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, k := range t {
			out = append(out, k.(string))
		}
	}
	return out
}

// The comparison sees what it is for.
func TestNarrowedBodiesAreSeen(t *testing.T) {
	t.Parallel()
	doc := func(payload string) (out map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(`{"components":{"messages":{"a":{"payload":`+payload+`}},"schemas":{"S":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}}`), &out))
		return out
	}
	was := `{"type":"object","required":["x"],"properties":{"x":{"type":"string"},"s":{"$ref":"#/components/schemas/S"},"l":{"type":"array","items":{"type":"string","enum":["a"]}}}}`
	for now, want := range map[string]string{
		was: "",
		`{"type":"object","required":["x","y"],"properties":{"x":{"type":"string"},"y":{"type":"string"},"s":{"$ref":"#/components/schemas/S"},"l":{"type":"array","items":{"type":"string","enum":["a"]}}}}`: "",
		strings.Replace(was, `"required":["x"],`, "", 1):                                   "a.x may be missing now",
		strings.Replace(was, `"x":{"type":"string"},`, "", 1):                              "a.x is gone",
		strings.Replace(was, `"x":{"type":"string"}`, `"x":{"type":["string","null"]}`, 1): "a.x may be null now",
		strings.Replace(was, `["a"]`, `["a","b"]`, 1):                                      "a.l[] may be b now",
		strings.Replace(was, `{"$ref":"#/components/schemas/S"}`, `{"type":"object"}`, 1):  "a.s.n may be missing now a.s.n is gone",
	} {
		require.Equal(t, want, strings.Join(narrowed(doc(was), doc(now)), " "), now)
	}
	gone := doc(was)
	delete(gone["components"].(map[string]any)["messages"].(map[string]any), "a")
	require.Equal(t, []string{"a is gone"}, narrowed(doc(was), gone))
}

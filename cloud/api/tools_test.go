package api_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
)

// tool is an agent tool as the published list has it.
type listed struct {
	Name    string       `json:"name"`
	Scopes  []string     `json:"scopes"`
	Risk    catalog.Risk `json:"risk"`
	Confirm bool         `json:"confirm_required"`
	Behind  string       `json:"backs_onto"`
}

func publishedTools(t *testing.T) (out []listed) {
	readPublished(t, &out)
	return out
}

func publishedDefinitions(t *testing.T) (out []definition) {
	readPublished(t, &out)
	return out
}

func readPublished[T any](t *testing.T, to *[]T) {
	raw, err := os.ReadFile("../../docs/interface/mcp-tools.json")
	require.NoError(t, err)
	var list struct {
		Tools []T `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(raw, &list))
	require.Len(t, list.Tools, 118)
	*to = list.Tools
}

// A tool asks for what the operation behind it asks for, and an operation that
// the list puts behind a tool names it.
func TestToolsAgreeWithTheirOperations(t *testing.T) {
	published := publishedTools(t)
	braces := regexp.MustCompile(`\{[^}]*\}`)
	named := 0
	lockers := map[string]bool{} // tools of the third server, which the list does not have
	for _, x := range table().Tools(catalog.LockersServer) {
		lockers[x.Name] = true
	}
	for _, o := range table().Operations() {
		o.Tools = slices.DeleteFunc(slices.Clone(o.Tools), func(name string) bool { return lockers[name] })
		for _, name := range o.Tools {
			i := slices.IndexFunc(published, func(x listed) bool { return x.Name == name })
			require.GreaterOrEqual(t, i, 0, "%s names the unknown tool %s", o.Name, name)
			named++
		}
		for _, x := range published { // one name may be on two servers
			if slices.Contains(o.Tools, x.Name) {
				require.ElementsMatch(t, x.Scopes, o.Scopes, "%s, %s", o.Name, x.Name)
				require.Equal(t, x.Risk, o.Risk, "%s, %s", o.Name, x.Name)
				require.Equal(t, x.Confirm, o.Confirm, "%s, %s", o.Name, x.Name)
			} else {
				require.NotEqual(t, x.Behind, o.Method+" "+o.Path, "%s is behind %s", o.Name, x.Name)
				require.NotEqual(t, braces.ReplaceAllString(x.Behind, "{}"), braces.ReplaceAllString(o.Method+" "+o.Path, "{}"), "%s is behind %s", o.Name, x.Name)
			}
		}
		if len(o.Tools) == 0 {
			require.False(t, o.Confirm, o.Name)
		}
	}
	require.GreaterOrEqual(t, named, 18)
}

// Agents read in the description what a tool may do.
func TestTheDescriptionNamesTools(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(table().OpenAPI("https://api.example.com", "test"), &doc))
	cancel := doc.Paths["/api/v1/orders/{order_id}/cancel"]["post"]
	require.Equal(t, []any{"cancel_order"}, cancel["x-ai-tool"])
	require.Equal(t, true, cancel["x-ai-confirm"])
	require.Equal(t, "high", cancel["x-ai-risk"])
	require.NotContains(t, doc.Paths["/api/v1/user/me"]["get"], "x-ai-tool")
}

// Tools that stand for an operation whole say what is in their arguments and answers, as
// far as a type says it: an object says its members, or of what kind its values are.
func TestOwnToolsHaveNoOpenObjects(t *testing.T) {
	t.Parallel()
	var open func(path string, schema any) []string
	open = func(path string, schema any) (out []string) {
		switch x := schema.(type) {
		case map[string]any:
			kind, _ := x["type"].(string)
			if kinds, ok := x["type"].([]any); ok && len(kinds) == 2 && kinds[1] == "null" {
				kind, _ = kinds[0].(string)
			}
			if kind == "object" && x["properties"] == nil && x["additionalProperties"] == nil {
				out = append(out, path)
			}
			for name, inner := range x {
				out = append(out, open(path+"."+name, inner)...)
			}
		case []any:
			for _, inner := range x {
				out = append(out, open(path, inner)...)
			}
		}
		return out
	}
	published := map[string]bool{}
	for _, x := range publishedTools(t) {
		published[x.Name] = true
	}
	seen := 0
	for _, x := range withTools().Tools(catalog.LockersServer) {
		if published[x.Name] {
			continue
		}
		var in, out any
		require.NoError(t, json.Unmarshal(x.Input(), &in))
		require.Empty(t, open(x.Name, in))
		require.NoError(t, json.Unmarshal(x.Output(), &out))
		if seen++; !x.Writes() && x.Effect == catalog.Usual { // writes answer what all of them may
			require.Empty(t, open(x.Name, out))
		}
	}
	require.Greater(t, seen, 30)
}

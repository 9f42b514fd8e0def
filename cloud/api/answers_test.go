package api_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/internal/ring"
)

var update = flag.Bool("update", false, "record answers anew that are new or have changed")

const answersFile = "answers.json"

// unsaid are operations whose good answer this world cannot give.
var unsaid = append([]string{"third_party.deliveries.open_doors", "third_party.deliveries.retrieve", "third_party.deliveries.correct", "third_party.deliveries.reassign", "otep.epcis_events", "order_chat.typing"}, elsewhere...)

// example is an answer as it is shown: two rows of a list, and no secret that was
// really given.
func example(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, m := range v {
			v[k] = example(m, k)
		}
	case []any:
		v = v[:min(len(v), 2)]
		for i := range v {
			v[i] = example(v[i], name)
		}
		return v
	case string:
		if i := strings.LastIndexByte(v, ' '); name == "line" { // its last part is the token
			return v[:i+1] + strings.Repeat("x", len(v)-i-1)
		}
		if before, _, ok := strings.Cut(v, "secret="); ok { // an address that holds one
			return before + "secret=" + strings.Repeat("X", 32)
		}
		if before, _, ok := strings.Cut(v, "?key="); ok {
			return before + "?key=" + strings.Repeat("x", 64)
		}
		if name == "recovery_codes" {
			return "xxxx-xxxx-xxxx-xxxx"
		}
		if len(v) > 20 && (strings.HasSuffix(name, "token") || strings.HasSuffix(name, "secret") || name == "password") {
			return strings.Repeat("x", len(v))
		}
	}
	return v
}

// shapeOf lists the kinds of values of an answer by path.
func shapeOf(v any) map[string]string {
	out := map[string]string{}
	shape(v, "", out)
	return out
}

// shape lists the kinds of values by path; rows of lists count as one.
func shape(v any, path string, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		out[path] = "object"
		for k, m := range v {
			shape(m, path+"."+k, out)
		}
	case []any:
		out[path] = "array"
		for _, m := range v {
			shape(m, path+"[]", out)
		}
	case string:
		out[path] = "string"
	case float64:
		out[path] = "number"
	case bool:
		out[path] = "boolean"
	}
}

// The examples of the description are answers that were really given, and look
// like those that are given now.
func TestExamplesAreRealAnswers(t *testing.T) {
	ring.SkipUnlessCheck(t, "the schemas of the answers")
	var mu sync.Mutex
	now := map[string]any{}
	ask := func(t *testing.T, x *world, o catalog.Operation) {
		c := x.call(o)
		token := ""
		if c.as != "" {
			token = x.login(x.token(c.as), "*")
		}
		a := x.do(o.Method, c.path, token, c.body)
		require.Less(t, a.status, 300, "%s: %s", o.Name, a.body)
		require.NotNil(t, a.json, "%s answers no JSON", o.Name)
		mu.Lock()
		defer mu.Unlock()
		now[o.Name] = example(a.json, "")
	}
	t.Run("all", func(t *testing.T) {
		x := newWorld(t)
		for _, o := range x.table.Operations() {
			switch {
			case slices.Contains(unsaid, o.Name) || o.Streams():
			case o.Writes(): // each has a world of its own
				t.Run(o.Name, func(t *testing.T) { t.Parallel(); ask(t, newWorld(t), o) })
			default:
				ask(t, x, o)
			}
		}
	})
	if *update {
		fresh := maps.Clone(now)
		for name, v := range readExamples(t) {
			if _, asked := now[name]; asked && reflect.DeepEqual(shapeOf(v), shapeOf(now[name])) { // times and ids alone differ; one that is taken out of the file is recorded anew
				fresh[name] = v
			}
		}
		raw, err := json.MarshalIndent(fresh, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(answersFile, append(raw, '\n'), 0o644))
	}
	kept := readExamples(t)
	require.Len(t, kept, len(now))
	for name, v := range now {
		require.Equal(t, shapeOf(kept[name]), shapeOf(v), "%s is answered otherwise than its example: record it anew with -update", name)
	}
}

// readExamples are the answers that are recorded.
func readExamples(t *testing.T) (kept map[string]any) {
	raw, err := os.ReadFile(answersFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &kept))
	return kept
}

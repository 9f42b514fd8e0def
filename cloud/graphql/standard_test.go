package graphql

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Documents of graphql-js as its editions make them.
func TestStandardDocumentsAreKnownHoweverTheyAreSpaced(t *testing.T) {
	t.Parallel()
	runs := 0
	known := (&Server{}).standards()
	known.run = func(query string) json.RawMessage { runs++; return json.RawMessage(query) }
	var documents []string
	for _, name := range []string{"default", "all", "short"} {
		raw, err := os.ReadFile("testdata/introspection-" + name + ".graphql")
		require.NoError(t, err)
		documents = append(documents, string(raw), "\n\t"+compact(string(raw))+"\r\n,,")
	}
	for i, query := range documents {
		answer := known.find(query, nil)
		require.NotNil(t, answer, query)
		require.Equal(t, compact(query), compact(string(answer())))
		require.Equal(t, 1+i/2, runs, "made once")
		require.Nil(t, known.find(query+" fragment x on A{b}", nil))
		require.Nil(t, known.find(strings.Replace(query, "isDeprecated", "isDeprecated x", 1), nil))
		require.Nil(t, known.find(query, new("Another")))
	}
	for of, o := range known.options { // a client that asks for all of them takes the memory of some
		require.Equal(t, of, sha256.Sum256([]byte(compact(o.query()))))
		known.find(o.query(), nil)()
	}
	require.Len(t, known.asked, keptAnswers)
	require.NotEqual(t, compact("{a b}"), compact("{ab}"), "names stay apart")
	require.Equal(t, compact("{a{b}...c}"), compact("{ a { b } ... c }"))
}

func TestVisitedNodesAreBounded(t *testing.T) {
	t.Parallel()
	e := &execution{nodes: MaxNodes}
	require.False(t, e.over())
	e.nodes++
	require.True(t, e.over())
	e.unbounded = true
	require.False(t, e.over())
}

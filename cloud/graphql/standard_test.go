package graphql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStandardDocumentsAreKnownHoweverTheyAreSpaced(t *testing.T) {
	t.Parallel()
	known := standard{compact(introspectionQuery(true, false, 9)): nil}
	for query, want := range map[string]bool{
		introspectionQuery(true, false, 9):                              true,
		introspectionQuery(false, false, 9):                             false,
		introspectionQuery(true, false, 9) + " fragment x on A{b}":      false,
		"\n\t" + compact(introspectionQuery(true, false, 9)) + "\r\n,,": true,
	} {
		_, ok := known[compact(query)]
		require.Equal(t, want, ok)
	}
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

package api_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// newWorldOfNodes is a world that three nodes on one PostgreSQL database serve: each call
// is at any of them.
func newWorldOfNodes(t *testing.T) *world {
	url, folder := storetest.MigratedPostgresURL(t), t.TempDir()
	open := func(i int) *store.DB {
		return storetest.Open(t, store.Config{URL: url, Instance: fmt.Sprint("n", i), Box: storetest.Box(t)})
	}
	x := newWorldIn(t, open(0), folder, "")
	for i := range 2 {
		x.others = append(x.others, serveWorld(t, x.w.At(t, open(i+1)), folder, "").c)
	}
	return x
}

// Every operation does what it does wherever it is asked, also when what leads to it was
// done at other nodes; and one that is repeated under its key at another node is answered
// as it was, and done once.
func TestEveryOperationAtAnyNode(t *testing.T) {
	ring.SkipUnlessFull(t, "every operation at one node")
	ask := func(t *testing.T, x *world, o catalog.Operation) {
		c := x.call(o)
		token := ""
		if c.as != "" {
			token = x.login(x.token(c.as), "*")
		}
		if !o.Idempotent {
			a := x.do(o.Method, c.path, token, c.body)
			require.Less(t, a.status, 300, "%s: %s", o.Name, a.body)
			return
		}
		var first answer
		for i := range 4 {
			a := x.do(o.Method, c.path, token, c.body, "Idempotency-Key", "at-any-node")
			require.Less(t, a.status, 300, "%s: %s", o.Name, a.body)
			if i == 0 {
				first = a
			}
			require.Equal(t, string(first.body), string(a.body), o.Name)
		}
	}
	t.Run("all", func(t *testing.T) {
		x := newWorldOfNodes(t)
		for _, o := range x.table.Operations() {
			switch {
			case slices.Contains(unsaid, o.Name) || o.Streams():
			case o.Writes():
				t.Run(o.Name, func(t *testing.T) { t.Parallel(); ask(t, newWorldOfNodes(t), o) })
			default:
				ask(t, x, o)
			}
		}
	})
}

package oauth

import (
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// Two nodes that are asked for the same at one moment: one of all who ask gets
// tokens, the others have brought what is used up, so that no client keeps any.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := storetest.OpenSQLite(t)
		race(t, db, db)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		at := storetest.SecondPostgresURL(t)
		open := func(node string) *store.DB {
			return storetest.Open(t, store.Config{URL: at, Instance: node, Box: storetest.Box(t)})
		}
		race(t, open("a"), open("b"))
	})
}

func race(t *testing.T, one, two *store.DB) {
	a := rigOn(t, one)
	b := &rig{t: t, db: two, docs: a.docs, log: a.log}
	b.s = New(Config{Store: two, BaseURL: base})
	id := a.client(callback)
	for range 10 {
		code := a.allowed(admin, "support", asking(id))
		race1(t, a, b, func() url.Values { return paying(id, code) })
		_, refresh := a.given(paying(id, a.allowed(admin, "support", asking(id))))
		race1(t, a, b, func() url.Values { return refreshing(id, refresh) })
	}
	require.Equal(t, 20, count(a.audits(), "agent_reuse_detected"))
}

func race1(t *testing.T, a, b *rig, ask func() url.Values) {
	const each = 3
	answers := make([]reply, 2*each)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		r := []*rig{a, b}[i%2]
		s := New(r.s.cfg) // limits of its own
		wg.Go(func() {
			<-begin
			answers[i] = (&rig{t: t, s: s, db: r.db}).post(TokenPath, ask())
		})
	}
	close(begin)
	wg.Wait()
	given := 0
	for _, x := range answers {
		if x.status == 200 {
			given++
			for _, n := range []string{"access_token", "refresh_token"} {
				_, good := a.stored(x.text(n))
				require.False(t, good, "it ends with the others' tries")
			}
			continue
		}
		require.Equal(t, InvalidGrant, x.error(), x.body)
	}
	require.Equal(t, 1, given)
}

package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// expectedChanges holds decisions to what a dry run showed.
func expectedChanges(t *testing.T, db *store.DB) {
	rename := func(name string) func(cloud.View) (*cloud.Changes, error) {
		return func(v cloud.View) (*cloud.Changes, error) {
			b, err := v.Business(71)
			b.Name = name
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
		}
	}
	name := func() (out string) {
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
			b, err := v.Business(71)
			out = b.Name
			return err
		}))
		return out
	}
	require.NoError(t, db.Decide(t.Context(), 0, makes(71, nil)))
	p := &cloud.Preview{}
	require.NoError(t, db.Decide(cloud.WithPreview(t.Context(), p), 0, rename("shown")))
	require.Len(t, p.Marks(), 1)
	shown := p.Marks()
	changed := cloud.E(cloud.Conflict, "APPROVAL_CHANGED")

	require.Equal(t, changed, db.Decide(cloud.WithExpected(t.Context(), cloud.Marks{}.Expect()), 0, rename("nothing was shown")))
	ctx := cloud.WithExpected(t.Context(), shown.Expect())
	require.Equal(t, changed, db.Decide(ctx, 0, makes(72, nil)), "another thing")
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return nil, nil }))
	require.NoError(t, db.Decide(ctx, 0, rename("shown")))
	require.NoError(t, db.Decide(ctx, 0, rename("again")), "what the call changed it may change again")
	require.Equal(t, "again", name())
	require.Equal(t, changed, db.Decide(cloud.WithExpected(t.Context(), shown.Expect()), 0, rename("shown")), "the thing is not as it was shown")
	require.Equal(t, "again", name())
}

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Failed logins are replaced, forgotten and removed when they are over, those of other
// emails stay, and none is lost that two nodes count at once.
func TestLoginFailures(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := openTest(t, Config{Dir: t.TempDir()})
			if engine == "postgres" {
				db = openTest(t, Config{URL: freshSchema(t), Instance: "n1"})
			}
			now := time.Now().UTC().Truncate(time.Millisecond)
			decide := func(c cloud.FactorChanges) {
				require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
					return &cloud.Changes{FactorChanges: c, Unaudited: true}, nil
				}))
			}
			find := func(key byte) (f cloud.LoginFailures) {
				require.NoError(t, db.Look(t.Context(), func(v cloud.View) (err error) {
					f, err = v.LoginFailures([32]byte{key})
					return err
				}))
				return f
			}
			require.Equal(t, cloud.LoginFailures{Key: [32]byte{1}}, find(1))
			one := cloud.LoginFailures{Key: [32]byte{1}, Times: []time.Time{now.Add(-time.Second), now}, OverAt: now.Add(time.Minute)}
			two := cloud.LoginFailures{Key: [32]byte{2}, LockedUntil: now.Add(time.Hour), OverAt: now.Add(time.Hour)}
			decide(cloud.FactorChanges{LoginFailures: []cloud.LoginFailures{one, two}})
			require.Equal(t, one, find(1))
			require.Equal(t, two, find(2))
			decide(cloud.FactorChanges{DropFailures: now.Add(2 * time.Minute)})
			require.Empty(t, find(1).Times)
			require.Equal(t, two, find(2))

			const at = 8
			counted := make(chan error, at)
			decide(cloud.FactorChanges{LoginFailures: []cloud.LoginFailures{one}})
			for range at {
				go func() {
					counted <- db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
						f, err := v.LoginFailures(one.Key)
						f.Times, f.OverAt = append(f.Times, now), now.Add(time.Hour)
						return &cloud.Changes{FactorChanges: cloud.FactorChanges{LoginFailures: []cloud.LoginFailures{f}}, Unaudited: true}, err
					})
				}()
			}
			for range at {
				require.NoError(t, <-counted)
			}
			require.Len(t, find(1).Times, 2+at)
			decide(cloud.FactorChanges{LoginFailures: []cloud.LoginFailures{{Key: one.Key}}})
			require.Equal(t, cloud.LoginFailures{Key: one.Key}, find(1))
		})
	}
}

package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/node"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// A process that is to serve migrates nothing while another one that has its name answers.
func TestStartAsksForItsNameBeforeItMigrates(t *testing.T) {
	t.Parallel()
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(rest.InstanceHeader, "i") }))
	defer there.Close()
	one := cloud.Node{Name: "one", Instance: "i", Address: there.URL}
	permit := Config{Held: true, Node: "one"}.permit()
	err := permit(t.Context(), []cloud.Node{{Name: "two", Instance: "j", Address: there.URL}, one})
	require.ErrorIs(t, err, node.ErrTaken)
	require.ErrorContains(t, err, there.URL)
	one.Instance = "former"
	require.NoError(t, permit(t.Context(), []cloud.Node{one}), "another process answers there")
	require.NoError(t, permit(t.Context(), nil))
	require.Nil(t, Config{Node: "one"}.permit(), "programs that do not serve migrate beside nodes")
}

// A start whose clock is behind what the database holds says so, with both times.
func TestStartWarnsOfAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	for _, postgres := range []bool{false, true} {
		for ahead, warned := range map[time.Duration]bool{0: false, 30 * time.Minute: false, 365 * 24 * time.Hour: true} {
			var log written
			cfg := Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))}
			if postgres {
				cfg.Database = storetest.MigratedPostgresURL(t)
			} else {
				storetest.WriteMigrated(t, cfg.Dir)
			}
			s, err := New(t.Context(), cfg)
			require.NoError(t, err)
			at := time.Now().Add(ahead)
			require.NoError(t, s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{At: at, Actor: "a", Action: "b"}}}}, nil
			}))
			require.NoError(t, Enter(t.Context(), s, Listeners{}))
			require.NoError(t, Leave(s))
			require.NoError(t, s.Broker.Close())
			require.NoError(t, s.Store.Close())
			if !warned {
				require.NotContains(t, log.text(), "clock is behind")
				continue
			}
			require.Contains(t, log.text(), "clock is behind")
			require.Contains(t, log.text(), at.UTC().Format(time.RFC3339))
		}
	}
}

// What Enter took keeps others away, until Leave.
func TestLockOfAStartIsTakenOnce(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	storetest.WriteMigrated(t, cfg.Dir)
	first, err := New(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, Enter(t.Context(), first, Listeners{}))
	_, err = store.Hold(store.Config{Dir: cfg.Dir})
	require.ErrorIs(t, err, store.ErrInUse)
	require.NoError(t, Leave(first))
	list, err := first.Store.ListNodes(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	release, err := store.Hold(store.Config{Dir: cfg.Dir})
	require.NoError(t, err)
	require.NoError(t, release())
	require.NoError(t, first.Broker.Close())
	require.NoError(t, first.Store.Close())
}

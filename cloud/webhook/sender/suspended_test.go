package sender

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Webhooks of a suspended business wait, without an attempt, and go out within minutes
// of its end.
func TestWebhooksOfASuspendedBusinessWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e, err := w.db.FindEndpoint(t.Context(), 3)
		require.NoError(t, err)
		set := func(s cloud.BusinessState) {
			s.BusinessID = e.BusinessID
			require.NoError(t, w.db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{s}}}, nil
			}))
		}
		set(cloud.BusinessState{SuspendedAt: time.Now(), Reason: "Unpaid"})
		w.run()
		synctest.Wait()
		id := w.emit(nil)
		time.Sleep(time.Hour)
		synctest.Wait() // an attempt of this very moment is over
		row, attempts := w.row(id)
		require.Equal(t, []any{cloud.OutboxRetrying, ReasonSuspended, 0}, []any{row.State, row.Reason, len(attempts)})
		require.Empty(t, w.a.Seen())
		set(cloud.BusinessState{})
		time.Sleep(suspendedWait + time.Minute)
		w.stop()
		row, attempts = w.row(id)
		require.Equal(t, []any{cloud.OutboxSuccess, 1}, []any{row.State, len(attempts)})
		require.Len(t, w.a.Seen(), 1)
		w.close()
	})
}

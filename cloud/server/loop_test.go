package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The database may go away between the start of a node and the first step of its loops.
func TestALoopBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		away, calls := errors.New("the database is away"), 0
		done := make(chan error, 1)
		go func() {
			done <- beginAgain(ctx, slog.New(slog.DiscardHandler), "webhooks", func(ctx context.Context) error {
				if calls++; calls < 4 {
					return away
				}
				<-ctx.Done()
				return errors.New("leases are not given back")
			})
		}()
		time.Sleep(3*beginPause + time.Millisecond)
		synctest.Wait()
		require.Equal(t, 4, calls)
		cancel()
		require.EqualError(t, <-done, "leases are not given back", "the end of a loop that ran is answered")

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(2500*time.Millisecond, cancel)
		calls = 0
		require.NoError(t, beginAgain(ctx, slog.New(slog.DiscardHandler), "mails", func(context.Context) error { calls++; return away }))
		require.Equal(t, 3, calls)
	})
}

// A task that reads as it begins is asked to end while it reads, as when the node's lease comes
// into doubt: the node goes on. What fails otherwise at the end is said.
func TestALoopThatIsAskedToEndWhileItBeginsHasNoError(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		err := beginAgain(ctx, slog.New(slog.DiscardHandler), "deadlines", func(ctx context.Context) error {
			cancel()
			if fails {
				return errors.New("nothing was kept")
			}
			return fmt.Errorf("read: %w", ctx.Err())
		})
		require.Equal(t, fails, err != nil)
	}
}

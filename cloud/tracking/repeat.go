package tracking

import (
	"context"
	"log/slog"
	"time"
)

// repeat does something at once and then at each interval until ctx ends, and logs what failed of it.
func repeat(ctx context.Context, interval time.Duration, log *slog.Logger, failed string, do func(context.Context) error) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			log.Error(failed, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

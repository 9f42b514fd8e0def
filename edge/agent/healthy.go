package agent

import (
	"context"
	"time"

	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/protocol/wire"
)

// healthyLook is how often it is looked whether a start has shown that it works.
const healthyLook = time.Second

// reportHealthy calls Config.Healthy once this start has shown that it works.
func (a *Agent) reportHealthy(ctx context.Context) error {
	if a.cfg.Healthy == nil {
		return nil
	}
	t := time.NewTicker(healthyLook)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if a.isHealthy(ctx) {
			a.log.Info("this start has shown that it works")
			a.cfg.Healthy()
			return nil
		}
	}
}

// isHealthy reports whether the parts work by now. It writes to the store, which is the
// proof that the store takes what is written.
func (a *Agent) isHealthy(ctx context.Context) bool {
	if a.loop.Broken() || a.knewCloud && a.link.Counters().Connects == 0 || len(a.cfg.Lines) > 0 && !a.hasBoardAnswered() {
		return false
	}
	if err := a.Record(ctx, wire.KindHealth, a.healthBody()); err != nil {
		a.log.Warn("keep health record", "err", err)
		return false
	}
	return true
}

func (a *Agent) hasBoardAnswered() bool {
	for _, b := range a.board.Health() {
		if b.State != board.StateOffline {
			return true
		}
	}
	return false
}

package sender

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Keeping is what the store does to keep the log from growing for ever.
type Keeping interface {
	PruneOutbox(ctx context.Context, after cloud.OutboxID, before time.Time, step int) (last cloud.OutboxID, removed int, more bool, err error)
	DropOldSecrets(ctx context.Context, now time.Time) error
	DropReplays(ctx context.Context, before time.Time) error
	EndSubscriptions(ctx context.Context, expired, ended time.Time) error
	DropDeliveryEvents(ctx context.Context, before time.Time) error
	LongestTransaction(ctx context.Context) (time.Duration, error)
}

const (
	logKept    = 30 * 24 * time.Hour
	endedKept  = 30 * 24 * time.Hour // a subscription behind the end of its last parcel
	lastSent   = 24 * time.Hour      // what was for a subscription when it expired is sent by then
	keepEvery  = 10 * time.Minute
	pruneStep  = 200                   // deliveries in one transaction
	prunePause = 50 * time.Millisecond // between them
	longWrite  = time.Minute           // a transaction that is older is warned of
)

// pruneLog removes what is too old from the log, in small steps, until ctx ends.
func (d *Dispatcher) pruneLog(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		if err := d.prune(ctx, time.Now().Add(-d.cfg.Retention)); err != nil && ctx.Err() == nil {
			d.log.Warn("removing old webhook deliveries failed", "error", err)
		}
		if age, err := d.cfg.Store.LongestTransaction(ctx); err == nil && age > longWrite {
			d.log.Warn("a transaction keeps the database from cleaning up", "seconds", int(age.Seconds()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Dispatcher) prune(ctx context.Context, before time.Time) error {
	now := time.Now()
	if err := d.cfg.Store.EndSubscriptions(ctx, now.Add(-lastSent), now.Add(-endedKept)); err != nil {
		return err
	}
	if err := d.cfg.Store.DropReplays(ctx, before); err != nil {
		return err
	}
	return errors.Join(pruneDeliveries(d, ctx, before), d.cfg.Store.DropDeliveryEvents(ctx, before))
}

func pruneDeliveries(d *Dispatcher, ctx context.Context, before time.Time) error {
	for last, more := cloud.OutboxID(0), true; more; {
		var err error
		if last, _, more, err = d.cfg.Store.PruneOutbox(ctx, last, before, pruneStep); err != nil {
			return err
		}
		if !more {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(prunePause):
		}
	}
	return nil
}

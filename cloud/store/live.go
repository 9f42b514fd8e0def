package store

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlSaveLive = `INSERT INTO live_event (id, kind, business_id, subject, at, passing, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	liveColumns = `SELECT id, kind, business_id, subject, at, passing, body FROM live_event`
	sqlLive     = liveColumns + ` WHERE at >= $1 ORDER BY at, id LIMIT $2`
	sqlLiveOf   = liveColumns + ` WHERE business_id = $1 AND kind = $2 AND subject = $3 AND at >= $4 AND NOT passing ORDER BY at, id LIMIT $5`
	// What a poll looks at is in the index.
	sqlLiveIDs     = `SELECT id, at FROM live_event WHERE at >= $1 ORDER BY at, id`
	sqlLiveBetween = liveColumns + ` WHERE at >= $1 AND at <= $2 ORDER BY at, id`
	sqlRetellLive  = `UPDATE live_event SET body = $2 WHERE id = $1`
	sqlDropLive    = `DELETE FROM live_event WHERE at < $1`
)

func (w *writer) live(c *cloud.Changes) {
	for _, e := range c.Live {
		w.liveEvent(e)
	}
	for _, e := range c.Reworded {
		w.add(anything, sqlRetellLive, e.ID, e.Body)
	}
}

func (w *writer) liveEvent(e cloud.LiveEvent) {
	w.add(anything, sqlSaveLive, e.ID, string(e.Kind), int64(e.BusinessID), e.Subject, ms(e.At), e.Passing, e.Body)
}

func scanLive(r rows, e *cloud.LiveEvent) error {
	return r.Scan(&e.ID, &e.Kind, &e.BusinessID, &e.Subject, when(&e.At), &e.Passing, &e.Body)
}

// LiveSince gives what listeners receive from a time on and known does not know,
// oldest first, with what known knows in between.
func (db pushes) LiveSince(ctx context.Context, from time.Time, known func(id string) bool) (out []cloud.LiveEvent, err error) {
	type ref struct {
		id string
		at time.Time
	}
	all, err := readList(ctx, db.database, sqlLiveIDs, func(r rows, x *ref) error { return r.Scan(&x.id, when(&x.at)) }, ms(from))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x ref) bool { return known(x.id) })
	if len(all) == 0 {
		return nil, nil
	}
	return readList(ctx, db.database, sqlLiveBetween, scanLive, ms(all[0].at), ms(all[len(all)-1].at))
}

// Live lists what listeners receive from a time on, oldest first. What another
// node is just committing may come between what was listed before.
func (db pushes) Live(ctx context.Context, from time.Time, limit int) ([]cloud.LiveEvent, error) {
	return readList(ctx, db.database, sqlLive, scanLive, ms(from), limit)
}

// LiveOf lists what the listeners of one channel receive from a time on, oldest
// first, without what passes.
func (db pushes) LiveOf(ctx context.Context, b cloud.BusinessID, kind cloud.LiveKind, subject int64, from time.Time, limit int) ([]cloud.LiveEvent, error) {
	return readList(ctx, db.database, sqlLiveOf, scanLive, int64(b), string(kind), subject, ms(from), limit)
}

// DropLive removes what is from before a time.
func (db pushes) DropLive(ctx context.Context, before time.Time) error {
	return db.exec(ctx, sqlDropLive, ms(before))
}

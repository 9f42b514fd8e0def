package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	guessColumns    = `shipment_id, business_id, number, wrong, total, locks, locked_at, locked_until`
	sqlProofGuesses = `SELECT ` + guessColumns + ` FROM proof_guess WHERE shipment_id = $1`
	sqlLocked       = `SELECT ` + guessColumns + ` FROM proof_guess WHERE business_id = $1 AND locked_at >= $2 ORDER BY locked_at DESC, shipment_id DESC LIMIT $3`
	sqlSaveGuesses  = `INSERT INTO proof_guess (` + guessColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (shipment_id) DO UPDATE SET number = excluded.number, wrong = excluded.wrong, total = excluded.total, locks = excluded.locks, locked_at = excluded.locked_at, locked_until = excluded.locked_until`
	sqlDropGuesses = `DELETE FROM proof_guess WHERE shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`
)

func scanGuesses(r rows, g *cloud.ProofGuesses) error {
	return r.Scan(&g.ShipmentID, &g.BusinessID, &g.Number, &g.Wrong, &g.Total, &g.Locks, when(&g.LockedAt), when(&g.LockedUntil))
}

func (v orderView) ProofGuesses(id cloud.ShipmentID) (cloud.ProofGuesses, error) {
	return one(v.ctx, v.q, sqlProofGuesses, scanGuesses, int64(id))
}

func (w *writer) guesses(c *cloud.Changes) {
	for _, g := range c.ProofGuesses {
		w.add(anything, sqlSaveGuesses, int64(g.ShipmentID), int64(g.BusinessID), g.Number, g.Wrong, g.Total, g.Locks, ms(g.LockedAt), ms(g.LockedUntil))
	}
}

// ListLockedParcels lists the shipments of a business whose digits were locked
// since then, the last one first.
func (db orders) ListLockedParcels(ctx context.Context, b cloud.BusinessID, since time.Time, limit int) ([]cloud.ProofGuesses, error) {
	return readList(ctx, db.database, sqlLocked, scanGuesses, int64(b), since.UnixMilli(), limit)
}

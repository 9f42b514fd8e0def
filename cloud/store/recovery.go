package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

// A database that goes back to an earlier moment has forgotten what it gave out since:
// ids, numbers of events, versions of orders to cabinets. A row notes that in the same
// transaction, so that whichever process starts on it first lets them continue above.
const (
	sqlMakeRecovery = `CREATE TABLE IF NOT EXISTS recovery (noted_at @int NOT NULL PRIMARY KEY, state_at @int NOT NULL, done_at @int) @strict`
	sqlNoteRecovery = `INSERT INTO recovery (noted_at, state_at) VALUES ($1, $2) ON CONFLICT (noted_at) DO NOTHING`
	sqlRecovery     = `SELECT noted_at FROM recovery WHERE done_at IS NULL ORDER BY noted_at DESC LIMIT 1`
	sqlEndRecovery  = `UPDATE recovery SET done_at = $2 WHERE done_at IS NULL AND noted_at <= $1`

	// What was under way at the moment ends: a door that was to open then is not to open
	// now. The parts that wait for a command's outcome take it as one that expired.
	sqlExpireCommands = `UPDATE command SET expires_at = $1 WHERE state IN ('queued', 'sent', 'accepted') AND (expires_at IS NULL OR expires_at > $1)`

	// Processes of the deployment as it was have no lease any more; one that runs still stops.
	sqlEndNodes = `DELETE FROM node`
	sqlEndTasks = `DELETE FROM task`

	// Ids that were given since are known elsewhere: those that are given next, of every
	// kind, leave out more than were given in that time. So two restores of one backup do
	// not give the same ids either.
	sqlNoteFirstIDs = `INSERT INTO id_block (kind, next) VALUES ('', 1) ON CONFLICT (kind) DO NOTHING`
	sqlSkipIDs      = `UPDATE id_block SET next = next + $1`
	skippedIDs      = 1_000_000
	skippedASecond  = 1000
)

// recoverySteps is what a database of a schema needs that holds the state of a moment again.
func recoverySteps(schema int64, at, now time.Time) []op {
	var ends []op
	if schema >= firstWithNodes {
		ends = []op{{sql: sqlEndNodes}, {sql: sqlEndTasks}}
	}
	return append(ends, []op{
		{sql: sqlExpireCommands, args: []any{at.UnixMilli()}},
		{sql: sqlNoteFirstIDs},
		{sql: sqlSkipIDs, args: []any{skippedIDs + skippedASecond*max(int64(now.Sub(at)/time.Second), 0)}},
		{sql: sqlNoteRecovery, args: []any{now.UnixMilli(), at.UnixMilli()}},
	}...)
}

// NoteRecovery notes that the database holds the state of an earlier moment, because it was
// recovered by other means than LoadDump: to a point in time, from a snapshot. Commands that
// were under way then expire with it and are not sent; ids continue above those that were
// given since. It is called while no process serves, and before the next one starts.
func (db nodes) NoteRecovery(ctx context.Context, at time.Time) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, recoverySteps(SchemaNumber(), at, time.Now()))
	})
}

// Recovery gives when it was noted last that the database went back, while numbers have not
// been made to continue since; zero when there is nothing to do.
func (db nodes) Recovery(ctx context.Context) (noted time.Time, err error) {
	found, err := readList(ctx, db.database, sqlRecovery, scanInt)
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(found[0]), nil
}

// EndRecovery notes that numbers continue above those that were given before a recovery.
func (db nodes) EndRecovery(ctx context.Context, noted time.Time) error {
	return db.exec(ctx, sqlEndRecovery, noted.UnixMilli(), time.Now().UnixMilli())
}

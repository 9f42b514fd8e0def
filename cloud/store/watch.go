package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlLastOperation   = `SELECT COALESCE(MAX(n), 0) FROM order_operation`
	sqlOperationsAfter = `SELECT n, body FROM order_operation WHERE n > $1 ORDER BY n LIMIT $2`
)

// LastOperation is the number of the newest operation on any order. One with a
// lower number may still be under way.
func (db orders) LastOperation(ctx context.Context) (int64, error) {
	return readOne(ctx, db.database, sqlLastOperation, scanInt)
}

// OperationsAfter lists operations on orders of every business with numbers
// above one, in the order of these.
func (db orders) OperationsAfter(ctx context.Context, after int64, limit int) ([]cloud.OrderOperation, error) {
	return readList(ctx, db.database, sqlOperationsAfter, scanOperation, after, limit)
}

// Peers reports whether other nodes may write into the same database.
func (db *database) Peers() bool {
	_, ok := db.engine.(*postgres)
	return ok
}

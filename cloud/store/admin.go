package store

import (
	"context"
	"errors"
	"fmt"
)

// Backup writes a consistent copy of a SQLite database to path, which must not
// exist, while the store is in use. PostgreSQL has its own tools.
func (db *database) Backup(ctx context.Context, path string) error {
	e, ok := db.engine.(*lite)
	if !ok {
		return errors.New("back up PostgreSQL with its own tools, such as pg_dump")
	}
	if err := e.backup(ctx, path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

// WALSize is the size of SQLite's write-ahead log in bytes, 0 on PostgreSQL. It
// grows while a reader does not end.
func (db *database) WALSize() (int64, error) {
	e, ok := db.engine.(*lite)
	if !ok {
		return 0, nil
	}
	return e.walSize()
}

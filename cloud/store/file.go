package store

import (
	"context"
	"strings"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlAddFile  = `INSERT INTO kept_file (path, shard, business_id, order_id, at) VALUES ($1, $2, $3, $4, $5)`
	sqlDropFile = `DELETE FROM kept_file WHERE path = $1 AND business_id = $2`
	// The files of a shard are those of all businesses: only the sweep asks.
	sqlFilesOfShard = `SELECT path FROM kept_file WHERE shard = $1`
)

func (w *writer) files(c *cloud.Changes) {
	for _, f := range c.DroppedFiles {
		w.add(anything, sqlDropFile, f.Path, int64(f.BusinessID))
	}
	for _, f := range c.Files {
		w.add(anything, sqlAddFile, f.Path, shardOf(f.Path), int64(f.BusinessID), int64(f.OrderID), ms(f.At))
	}
}

// shardOf is the area of a stored path and the first two characters of its name.
func shardOf(path string) string {
	slash := strings.IndexByte(path, '/')
	return path[:min(slash+3, len(path))]
}

// ListKeptFiles lists the stored paths that are needed of one shard: an area, a
// slash and the first two characters of a name.
func (db chats) ListKeptFiles(ctx context.Context, shard string) ([]string, error) {
	return readList(ctx, db.database, sqlFilesOfShard, func(r rows, path *string) error { return r.Scan(path) }, shard)
}

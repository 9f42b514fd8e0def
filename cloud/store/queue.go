package store

import (
	"context"
	"fmt"
	"os"
	"time"
)

// MostWaiting is how many waiting rows of a queue are counted.
const MostWaiting = 10_000

// Each reads no more than MostWaiting rows from the end of an index that holds what
// waits and nothing else, the one that waits longest first.
const (
	sqlQueueCommands = `SELECT COUNT(*), MIN(at) FROM (SELECT issued_at AS at FROM command WHERE state = 'queued' ORDER BY issued_at LIMIT $1) AS q`
	sqlQueueMails    = `SELECT COUNT(*), MIN(at) FROM (SELECT next_at AS at FROM mail WHERE state = 'waiting' AND channel = 'email' ORDER BY next_at, n LIMIT $1) AS q`
	sqlQueueSMS      = `SELECT COUNT(*), MIN(at) FROM (SELECT next_at AS at FROM mail WHERE state = 'waiting' AND channel = 'sms' ORDER BY next_at, n LIMIT $1) AS q`
	sqlQueuePushes   = `SELECT COUNT(*), MIN(at) FROM (SELECT next_at AS at FROM push WHERE state = 'waiting' ORDER BY next_at, n LIMIT $1) AS q`
	sqlQueueResets   = `SELECT COUNT(*), MIN(at) FROM (SELECT at FROM reset_request WHERE done_at IS NULL ORDER BY at LIMIT $1) AS q`
	sqlQueueJobs     = `SELECT COUNT(*), MIN(at) FROM (SELECT created_at AS at FROM order_job WHERE finished_at IS NULL ORDER BY created_at, id LIMIT $1) AS q`
	sqlQueueReplays  = `SELECT COUNT(*), MIN(at) FROM (SELECT created_at AS at FROM replay_job WHERE finished_at IS NULL ORDER BY created_at, id LIMIT $1) AS q`
	sqlQueueArchives = `SELECT COUNT(*), MIN(at) FROM (SELECT created_at AS at FROM business_job WHERE finished_at IS NULL ORDER BY id LIMIT $1) AS q`
)

var queues = []struct{ name, sql string }{{"commands", sqlQueueCommands}, {"mails", sqlQueueMails}, {"sms", sqlQueueSMS}, {"pushes", sqlQueuePushes}, {"resets", sqlQueueResets},
	{"jobs", sqlQueueJobs}, {"replays", sqlQueueReplays}, {"business_jobs", sqlQueueArchives}}

// Queue is what waits in a table.
type Queue struct {
	// Name is commands (not sent to their devices yet), mails, sms, pushes, resets (requests for
	// new passwords), jobs, replays (of webhooks) or business_jobs (exports, removals).
	Name   string
	Count  int64     // at most MostWaiting
	Oldest time.Time // when it was made, or due; zero: nothing waits
}

// CountQueues counts what waits, but for webhooks, which their sender counts.
func (db shares) CountQueues(ctx context.Context) ([]Queue, error) {
	out := make([]Queue, 0, len(queues))
	for _, q := range queues {
		found, err := readList(ctx, db.database, q.sql, func(r rows, x *Queue) error { return r.Scan(&x.Count, when(&x.Oldest)) }, MostWaiting)
		if err != nil {
			return nil, fmt.Errorf("count %s: %w", q.name, err)
		}
		found[0].Name = q.name
		out = append(out, found[0])
	}
	return out, nil
}

// Connections are those of this process to the database.
type Connections struct {
	Open, Busy, Most int
	Waits            int64 // reads and transactions that had to wait for a connection
	Queued           int   // decisions that wait for the writer; SQLite
	// Size and WALSize are those of the database's file and of its write-ahead log, in
	// bytes; 0 on PostgreSQL.
	Size, WALSize int64
}

// Connections asks nothing of the database.
func (db *database) Connections() Connections { return db.engine.connections() }

func (e *lite) connections() Connections {
	open := liteReaders - len(e.unopened)
	s := Connections{Open: open + 1, Busy: open - len(e.readers), Most: liteReaders + 1, Waits: e.waits.Load(), Queued: len(e.queue), Size: fileSize(e.path), WALSize: fileSize(e.path + "-wal")}
	if e.writing.Load() {
		s.Busy++
	}
	return s
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (e *postgres) connections() Connections {
	x := e.pool.Stat()
	return Connections{Open: int(x.TotalConns()), Busy: int(x.AcquiredConns()), Most: int(x.MaxConns()), Waits: x.EmptyAcquireCount()}
}

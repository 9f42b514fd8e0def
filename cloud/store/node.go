package store

import (
	"context"
	"fmt"

	"github.com/postern-io/postern/cloud"
)

const (
	nodeColumns = `instance, name, generation, address, version, schema, schema_number, edge, core, started_at, signing_key, beat`

	sqlNodes   = `SELECT ` + nodeColumns + ` FROM node ORDER BY instance`
	sqlAddNode = `INSERT INTO node (` + nodeColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)
ON CONFLICT (name) DO NOTHING`
	sqlOldestShared = `SELECT number FROM schema_oldest @share`
	sqlRenewNode    = `UPDATE node SET beat = beat + 1 WHERE instance = $1`
	sqlEndNode      = `DELETE FROM node WHERE instance = $1 AND ($2 < 0 OR beat = $2)`
	sqlFreeTasks    = `DELETE FROM task WHERE instance = $1`
	sqlTakeTask     = `INSERT INTO task (name, instance) SELECT CAST($1 AS TEXT), instance FROM node WHERE instance = $2
ON CONFLICT (name) DO UPDATE SET instance = excluded.instance WHERE task.instance NOT IN (SELECT instance FROM node)`
	sqlLeaveTask    = `DELETE FROM task WHERE name = $1 AND instance = $2`
	sqlTasks        = `SELECT t.name, t.instance FROM task AS t JOIN node AS n ON n.instance = t.instance`
	sqlFreeNodeJobs = `UPDATE order_job SET lease_owner = '', lease_until = NULL WHERE finished_at IS NULL AND lease_owner = $1`
)

func scanNode(r rows, n *cloud.Node) error {
	return r.Scan(&n.Instance, &n.Name, &n.Generation, &n.Address, &n.Version, &n.Schema, &n.SchemaNumber, &n.Edge, &n.Core, when(&n.StartedAt), &n.SigningKey, &n.Beat)
}

// Instance names this process in leases.
func (db *database) Instance() string { return db.node }

// ListNodes lists the processes that hold a lease, by instance.
func (db nodes) ListNodes(ctx context.Context) ([]cloud.Node, error) {
	return readList(ctx, db.database, sqlNodes, scanNode)
}

// EnterNode gives a process its lease, with a generation one above former's, which is the
// process that had the name and has ended; it may be the zero Node. Error: cloud.ErrStale
// when another process has the name now, ErrOldProgram when the tables were migrated since
// they were opened and this program is too old for them.
func (db nodes) EnterNode(ctx context.Context, n, former cloud.Node) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		oldest, err := list(ctx, s, sqlOldestShared, scanInt)
		if err != nil {
			return nil, err
		}
		if len(oldest) > 0 && n.SchemaNumber < oldest[0] {
			return nil, fmt.Errorf("%w: this program has schema %d, the database takes programs of schema %d or newer; start the release that the other nodes run, or a newer one", ErrOldProgram, n.SchemaNumber, oldest[0])
		}
		ops := append(endNode(s, former.Instance, -1), op{sql: sqlAddNode, need: notStale,
			args: []any{n.Instance, n.Name, former.Generation + 1, n.Address, n.Version, n.Schema, n.SchemaNumber, n.Edge, n.Core, ms(n.StartedAt), n.SigningKey}})
		if s.postgres() {
			ops = append(ops, op{sql: nodeNotice})
		}
		return nil, s.last(ctx, ops)
	})
}

// RenewNode renews the lease of a process. Error: cloud.ErrStale when it has ended, which
// another process may do for one that stands still.
func (db nodes) RenewNode(ctx context.Context, instance string) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlRenewNode, args: []any{instance}, need: notStale}})
	})
}

// EndNode ends the lease of a process, and those of all that it had taken up: webhooks,
// pushes, mails, jobs and tasks. With a beat of 0 or more it does so only while the
// lease has not been renewed since. Devices that were connected to the process are shown
// offline by the next look at presence.
func (db nodes) EndNode(ctx context.Context, instance string, beat int64) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, endNode(s, instance, beat))
	})
}

// endNode ends a lease with what hangs on it. On SQLite the sections free at their start
// what was taken up: no other process has it.
func endNode(s session, instance string, beat int64) (ops []op) {
	if instance == "" {
		return nil
	}
	need := anything
	if beat >= 0 {
		need = notStale
	}
	ops = append(ops, op{sql: sqlEndNode, args: []any{instance, beat}, need: need}, op{sql: sqlFreeTasks, args: []any{instance}})
	if s.postgres() {
		for _, sql := range []string{sqlReleaseAll, sqlReleaseOwnPush, sqlReleaseNodeNotifications, sqlFreeNodeJobs, sqlReleaseTraces} {
			ops = append(ops, op{sql: sql, args: []any{instance}})
		}
		ops = append(ops, op{sql: nodeNotice})
	}
	return ops
}

// ListTasks gives the processes that do background tasks, by the names of these.
func (db nodes) ListTasks(ctx context.Context) (map[string]string, error) {
	type task struct{ name, instance string }
	list, err := readList(ctx, db.database, sqlTasks, func(r rows, t *task) error { return r.Scan(&t.name, &t.instance) })
	out := make(map[string]string, len(list))
	for _, t := range list {
		out[t.name] = t.instance
	}
	return out, err
}

// TakeTask gives a process a background task that no running one does. Error:
// cloud.ErrStale when one does, or when the process itself has no lease.
func (db nodes) TakeTask(ctx context.Context, name, instance string) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlTakeTask, args: []any{name, instance}, need: notStale}})
	})
}

// LeaveTask lets another process do a background task.
func (db nodes) LeaveTask(ctx context.Context, name, instance string) error {
	return db.exec(ctx, sqlLeaveTask, name, instance)
}

// ListExpiringCommands lists commands of every business that were not taken, the first to expire first.
func (db lockers) ListExpiringCommands(ctx context.Context, limit int) ([]cloud.ExpiringCommand, error) {
	return readList(ctx, db.database, sqlExpiringCommands, func(r rows, c *cloud.ExpiringCommand) error { return r.Scan(&c.DeviceID, when(&c.ExpiresAt)) }, limit)
}

package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postern-io/postern/cloud"
)

// Nodes on one PostgreSQL database notice each other's commits: at once by NOTIFY, and
// otherwise by looking for rows of the last seconds. Rows are the truth, notices only
// make it quicker: one that is lost, or a pooler that carries none, costs a second.

// Notice is what a commit of another node is about.
type Notice struct {
	// Devices are those whose commands, code list, configuration, session or standing
	// changed.
	Devices []cloud.DeviceID `json:"devices,omitempty"`
	// Openings are those that changed, or whose commands did.
	Openings []string `json:"openings,omitempty"`
	// Jobs is set when a job was stored or changed.
	Jobs bool `json:"jobs,omitempty"`
	// Slots are those of webhooks that were written for other nodes, a bit each.
	Slots uint64 `json:"slots,omitempty"`
	// Nodes is set when a process came or went.
	Nodes bool `json:"nodes,omitempty"`
	// Touches are what pages may show of it; none where they were too many.
	Touches []cloud.Touch `json:"touches,omitempty"`
	// Missed is set when notices may have been lost: everything may have changed.
	Missed bool `json:"missed,omitempty"`
}

// add joins another notice to n.
func (n *Notice) add(m Notice) {
	n.Devices, n.Openings, n.Touches = append(n.Devices, m.Devices...), append(n.Openings, m.Openings...), append(n.Touches, m.Touches...)
	n.Jobs = n.Jobs || m.Jobs
	n.Slots |= m.Slots
}

// parts are the notice in messages that PostgreSQL carries. What pages show is left out
// where it is too much: they look again by themselves.
func (n Notice) parts(from string) (out []string, err error) {
	slices.Sort(n.Devices)
	slices.Sort(n.Openings)
	n.Devices, n.Openings = slices.Compact(n.Devices), slices.Compact(n.Openings)
	for {
		part := n
		raw, err := json.Marshal(wrapped{from, part})
		if err == nil && len(raw) > noticeBytes {
			part.Touches = nil
			part.Devices, part.Openings = part.Devices[:min(noticeIDs, len(part.Devices))], part.Openings[:min(noticeIDs, len(part.Openings))]
			raw, err = json.Marshal(wrapped{from, part})
		}
		if err != nil {
			return nil, fmt.Errorf("encode a notice: %w", err)
		}
		out = append(out, string(raw))
		n = Notice{Devices: n.Devices[len(part.Devices):], Openings: n.Openings[len(part.Openings):]}
		if len(n.Devices)+len(n.Openings) == 0 {
			return out, nil
		}
	}
}

// nodeNotice sends the notice of a process that came or went with its transaction.
const nodeNotice = `SELECT pg_notify('postern_' || current_schema(), '{"nodes":true}')`

const (
	noticeAfter = 5 * time.Millisecond // commits within it share a notice
	noticeBytes = 7900                 // PostgreSQL carries less than 8,000
	noticeIDs   = 120                  // of devices, and of openings, which always fit
	noticeRetry = time.Second
)

// Notices exchanges notices with other nodes. Safe for concurrent use.
type Notices struct {
	engine *postgres
	self   string // random, so that a node does not notice itself
	log    *slog.Logger
	wake   chan struct{} // of size 1

	mu  sync.Mutex
	due Notice // not sent yet
}

// NewNotices makes the notices of one node; Run sends and receives them. It is nil on
// SQLite, which one node has for itself.
func NewNotices(db *DB, log *slog.Logger) *Notices {
	e, ok := db.engine.(*postgres)
	if !ok {
		return nil
	}
	return &Notices{engine: e, self: rand.Text(), log: log, wake: make(chan struct{}, 1)}
}

// Add sends a notice of what this node committed to the others, within 5 ms. It never
// waits.
func (s *Notices) Add(n Notice) {
	if len(n.Devices)+len(n.Openings)+len(n.Touches) == 0 && !n.Jobs && n.Slots == 0 {
		return
	}
	s.mu.Lock()
	s.due.add(n)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends this node's notices and gives those of others to receive, one at a time,
// until ctx ends. It connects again where the connection was lost; receive is given a
// notice with Missed then, and at the start.
func (s *Notices) Run(ctx context.Context, receive func(Notice)) {
	var wg sync.WaitGroup
	wg.Go(func() { s.send(ctx) })
	for failed := false; ctx.Err() == nil; {
		err := s.listen(ctx, receive)
		if err != nil && ctx.Err() == nil && !failed {
			s.log.Warn("notices of other nodes do not arrive: their changes are found within a second", "error", err)
		}
		failed = true
		select {
		case <-ctx.Done():
		case <-time.After(noticeRetry):
		}
	}
	wg.Wait()
}

// wrapped is a notice with the instance that it comes from.
type wrapped struct {
	From string `json:"from"`
	Notice
}

func (s *Notices) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		time.Sleep(noticeAfter)
		s.mu.Lock()
		n := s.due
		s.due = Notice{}
		s.mu.Unlock()
		parts, err := n.parts(s.self)
		if err == nil {
			_, err = s.engine.pool.Exec(ctx, `SELECT pg_notify('postern_' || current_schema(), part) FROM unnest($1::text[]) AS part`, parts)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("send a notice to other nodes", "error", err)
		}
	}
}

// listen gives notices of others to receive over a connection of its own, until that
// fails or ctx ends.
func (s *Notices) listen(ctx context.Context, receive func(Notice)) error {
	c, err := pgx.ConnectConfig(ctx, s.engine.pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("connect for notices: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	var schema string
	if err := c.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return fmt.Errorf("find the schema: %w", err)
	}
	if _, err := c.Exec(ctx, `LISTEN `+pgx.Identifier{"postern_" + schema}.Sanitize()); err != nil {
		return fmt.Errorf("listen for notices: %w", err)
	}
	receive(Notice{Missed: true})
	for {
		got, err := c.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for notices: %w", err)
		}
		var n wrapped
		if json.Unmarshal([]byte(got.Payload), &n) == nil && n.From != s.self {
			receive(n.Notice)
		}
	}
}

const (
	sqlExpiringCommands = `SELECT device_id, expires_at FROM command WHERE state IN ('queued', 'sent') AND expires_at IS NOT NULL ORDER BY expires_at LIMIT $1`
	sqlChangedDevices   = `SELECT id, '', changed_at FROM device WHERE changed_at >= $1
UNION ALL SELECT device_id, id, issued_at FROM command WHERE state = 'queued' AND issued_at >= $1`
)

// ChangedDevices gives what changed since a time of commands, code lists, configurations and
// the standing of devices of every business.
func (db lockers) ChangedDevices(ctx context.Context, since time.Time) ([]cloud.DeviceChange, error) {
	return readList(ctx, db.database, sqlChangedDevices, func(r rows, c *cloud.DeviceChange) error { return r.Scan(&c.DeviceID, &c.Command, &c.At) }, since.UnixMilli())
}

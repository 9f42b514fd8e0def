package device

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

// watch keeps presence true: a device is shown offline at once when its
// connection ends, and after 90 s when no process was left to say so. A node that
// starts finds the sessions that it left behind when it died.
func (s presence) watch(ctx context.Context) {
	t := time.NewTicker(presenceEvery)
	defer t.Stop()
	for {
		if err := s.check(ctx, time.Now().UTC()); err != nil && ctx.Err() == nil {
			s.log.Error("look after presence", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// check looks once at every session that is shown online.
func (s presence) check(ctx context.Context, now time.Time) error {
	const page = 500
	for after := cloud.DeviceID(0); ; {
		rows, err := s.cfg.Store.ListSessions(ctx, after, page)
		if err != nil {
			return err
		}
		here := s.sessions.generations() // read after the rows: every session that logged in meanwhile is in it
		for _, row := range rows {
			after = row.DeviceID
			if g, ok := here[row.DeviceID]; ok && g < row.Generation {
				s.dropSuperseded(row)
			}
			if !row.Online {
				continue
			}
			silent := now.Sub(row.LastSeenAt)
			switch mine := row.Node == s.cfg.Node; {
			case mine && here[row.DeviceID] >= row.Generation:
				if s.cfg.Peers && silent >= silentAfter/3 {
					s.alive(ctx, row, now)
				}
			case mine || silent >= silentAfter:
				s.offline(ctx, row.DeviceID, row.Generation, nil)
			}
		}
		if len(rows) < page {
			return nil
		}
	}
}

// dropSuperseded closes a connection to this node whose session counts for nothing
// any more: another node has a newer one, or cut the device off.
func (s presence) dropSuperseded(row cloud.Session) {
	for _, x := range s.sessions.list() {
		if x.id == row.DeviceID && x.generation < row.Generation {
			s.drop(x)
		}
	}
}

// drop ends a session and closes its connection.
func (s *core) drop(x *session) {
	s.end(x)
	s.sessions.remove(x)
	s.sender.Kick(x.code)
}

// alive tells other nodes that a session of this one still stands.
func (s presence) alive(ctx context.Context, row cloud.Session, now time.Time) {
	err := s.cfg.Store.Decide(ctx, row.DeviceID, func(v cloud.View) (*cloud.Changes, error) {
		fresh, err := v.Session(row.DeviceID)
		if err != nil || fresh.Generation != row.Generation || !fresh.Online {
			return nil, ignoreNotFound(err)
		}
		fresh.LastSeenAt = now
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: row.Generation, Sessions: []cloud.Session{fresh}}}, nil
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("keep session fresh", "device_id", row.DeviceID, "err", err)
	}
}

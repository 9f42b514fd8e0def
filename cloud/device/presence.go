package device

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

// watch keeps presence true: a device is shown offline at once when its connection ends,
// and when the process that it was connected to has no lease any more.
func (s presence) watch(ctx context.Context) {
	t := time.NewTicker(presenceEvery)
	defer t.Stop()
	for {
		if err := s.check(ctx); err != nil && ctx.Err() == nil {
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
func (s presence) check(ctx context.Context) error {
	const page = 500
	for after := cloud.DeviceID(0); ; {
		rows, err := s.cfg.Store.ListSessions(ctx, after, page)
		if err != nil {
			return err
		}
		here := s.sessions.generations()
		living := map[string]bool{}
		if s.cfg.Living != nil { // read after the rows: every process that began a session is in it
			if living, err = s.cfg.Living(ctx); err != nil {
				return err
			}
		}
		for _, row := range rows {
			after = row.DeviceID
			if g, ok := here[row.DeviceID]; ok && g < row.Generation {
				s.dropSuperseded(row)
			}
			stands := living[row.Node] || row.Node == "" // a mock cabinet has no connection
			if row.Node == s.cfg.Node {
				stands = here[row.DeviceID] >= row.Generation
			}
			if row.Online && !stands {
				// A login is committed before its session is here, and its status comes after it:
				// one that is not here as this is decided says later that it is online.
				s.offline(ctx, row.DeviceID, row.Generation, nil, func() bool { return s.sessions.holds(row.DeviceID, row.Generation) })
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

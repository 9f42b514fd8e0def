package uplink

import (
	"fmt"
	"time"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/wire"
)

// takeBad halves the batch that was refused, or sets the record aside.
func (s *session) takeBad(a wire.Ack, now time.Time) {
	s.u.count(func(c *Counters) { c.BadBatches++ })
	seq, aside := s.lanes[a.Lane].bad(a.RefusedFirst, s.u.cfg.Store.Present().Acked[a.Lane], now)
	s.u.cfg.Logger.Warn("batch refused", "lane", a.Lane.String(), "first", a.RefusedFirst, "next_size", s.lanes[a.Lane].limit)
	if aside {
		s.begin(wire.GapRefused, &buffer.Refused{Lane: a.Lane, Seq: seq}, a.Refused, now)
	}
}

// begin begins a new epoch and starts over with a status.
func (s *session) begin(reason string, refused *buffer.Refused, why string, now time.Time) {
	if refused == nil && !s.epochAt.IsZero() && now.Before(s.epochAt.Add(epochGap)) {
		return
	}
	if err := s.u.cfg.Store.NewEpoch(reason, refused); err != nil {
		s.u.cfg.Logger.Error("no new epoch could be begun", "reason", reason, "error", err)
		return
	}
	s.begun(reason, why, now)
}

// beginFrom begins a new epoch for a cloud that was restored and holds less than it
// had acknowledged.
func (s *session) beginFrom(holds [wire.Lanes]uint64, now time.Time) {
	acked := s.u.cfg.Store.Present().Acked
	if holds[wire.Settlement] >= acked[wire.Settlement] && holds[wire.Telemetry] >= acked[wire.Telemetry] {
		return // it holds all of that, so this is about an earlier status
	}
	if !s.epochAt.IsZero() && now.Before(s.epochAt.Add(epochGap)) {
		return
	}
	if err := s.u.cfg.Store.NewEpochFrom(holds); err != nil {
		s.u.cfg.Logger.Error("no new epoch could be begun", "reason", wire.GapCloudRestored, "error", err)
		return
	}
	s.begun(wire.GapCloudRestored, fmt.Sprintf("the cloud holds less than records %d and %d", acked[0]-1, acked[1]-1), now)
}

// begun starts over with a status of the new epoch.
func (s *session) begun(reason, why string, now time.Time) {
	s.epochAt = now
	s.u.count(func(c *Counters) { c.Epochs++ })
	s.u.cfg.Logger.Warn("new epoch", "reason", reason, "answer", why)
	if s.u.cfg.Forked != nil {
		s.u.cfg.Forked(reason)
	}
	s.resync(now)
}

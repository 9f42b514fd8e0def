package buffer

import (
	"sync"

	"github.com/postern-io/postern/protocol/wire"
)

// ledger is where the store stands, kept in memory: how it was found, what is
// durable, and what the cloud has acknowledged. Safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	opened  Opened
	head    layout      // durable
	acked   [2]position // newest acknowledgement known; may be ahead of layout.acked
	cursor  [2]position // where the last Read of a lane ended
	pending bool        // acked is ahead of what is written
	broken  error       // non-nil refuses writes
}

// Opened says how the store was found. NewEpoch changes Epoch and Prev.
func (s *ledger) Opened() Opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Epoch is the id of the store file.
func (s *ledger) Epoch() wire.Epoch { return s.Opened().Epoch }

// Ends is the end of both lanes, as far as it is durable.
func (s *ledger) Ends() [2]wire.LaneEnd { return s.Present().Ends }

// Acked is the next record the cloud waits for, per lane, from 1.
func (s *ledger) Acked() [2]uint64 { return s.Present().Acked }

// Backlog is how many records held are not acknowledged, per lane.
func (s *ledger) Backlog() [2]uint64 { return s.Present().Backlog }

// Use is how many bytes the records of each lane take.
func (s *ledger) Use() [2]uint64 { return s.Present().Use }

// Oldest is the first record still held, per lane; one past the end when none
// is.
func (s *ledger) Oldest() [2]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [2]uint64{s.head[0].oldest(), s.head[1].oldest()}
}

// Broken is the error that made the store refuse writes, or nil.
func (s *ledger) Broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Present is where the store stands, all of one moment.
type Present struct {
	Epoch   wire.Epoch
	Ends    [2]wire.LaneEnd
	Acked   [2]uint64 // next record the cloud waits for, from 1
	Backlog [2]uint64 // records held and not acknowledged
	Use     [2]uint64 // bytes of records
}

// Present is where the store stands.
func (s *ledger) Present() Present {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Present{Epoch: s.opened.Epoch}
	for l := range s.head {
		ln := &s.head[l]
		p.Ends[l], p.Acked[l], p.Use[l] = ln.end, s.acked[l].next, ln.bytes()
		p.Backlog[l] = ln.end.Last + 1 - max(s.acked[l].next, ln.oldest())
	}
	return p
}

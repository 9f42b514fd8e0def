package device

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// session is a connected device on this node.
type session struct {
	code       string
	id         cloud.DeviceID
	generation int64
	// upKey is the device's public key as of the login, nil when it has none:
	// registering another ends the session.
	upKey []byte
	// cutOff is when the device was last cut off as of the login: another ends the
	// session.
	cutOff time.Time

	sending  sync.Mutex // held while commands are read and sent: they leave in their order, each once
	mu       sync.Mutex // guards what follows
	queue    []incoming
	asked    [2]bool      // waits for a worker of its class
	busy     bool         // being worked on
	greeted  bool         // a status was taken in this session
	bad      bool         // the last batch was refused: one record a second
	end      wire.LaneEnd // of lane 1, as the newest status said
	endEpoch wire.Epoch   // and of which epoch
	last     wire.Ack     // newest receipt of lane 1
	held     bool         // the newest receipt carried a limit that the flow sets
	share    share        // of the flow
	closed   bool
	acks     [wire.Lanes]*wire.Ack
	pending  int // records acknowledged by acks
	timer    *time.Timer
	codesAt  time.Time // last time codes were sent
	codesTo  uint64
	holds    heldList             // as the newest status said
	asks     challenge            // that the device was given last
	config   uint64               // version that was sent last
	configAt time.Time            // and when
	commands map[string]time.Time // when each was sent last, by id; in the future: not again in this session
}

// class is that of the most urgent payload in the queue.
func (x *session) class() int {
	if slices.ContainsFunc(x.queue, func(in incoming) bool { return in.class() == classUrgent }) {
		return classUrgent
	}
	return classBulk
}

// next is the place of what is taken next: the first of lane 0 unless a status
// came before it, else the oldest. The lanes do not depend on each other, but a
// batch of lane 0 may begin an epoch of which only a status says so.
func (x *session) next() int {
	for i, in := range x.queue {
		if in.leaf != topic.Up {
			break
		}
		if in.lane == wire.Settlement {
			return i
		}
	}
	return 0
}

// cut takes the next run out of the queue: one status, or batches of one class
// up to the next status, in the order they came. The caller holds x.mu.
func (x *session) cut() (run []incoming) {
	first := x.queue[x.next()]
	if first.leaf != topic.Up {
		x.queue = append([]incoming(nil), x.queue[1:]...)
		return []incoming{first}
	}
	var rest []incoming
	for i, in := range x.queue {
		if in.leaf != topic.Up || len(run) == takeAtOnce {
			rest = append(rest, x.queue[i:]...)
			break
		}
		if in.class() == first.class() {
			run = append(run, in)
		} else {
			rest = append(rest, in)
		}
	}
	x.queue = rest
	return run
}

// sessions are those of this node, one for each device. Safe for concurrent use.
type sessions struct {
	mu     sync.Mutex
	byCode map[string]*session
}

// add puts a session in the place of an older one of its device. It returns the
// one of the two that is to end: the session itself where a newer login came
// first, nil where there was none.
func (s *sessions) add(x *session) (ends *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.byCode[x.code]
	if old != nil && old.generation > x.generation {
		return x
	}
	s.byCode[x.code] = x
	return old
}

// remove takes a session out, unless another has its place.
func (s *sessions) remove(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byCode[x.code] == x {
		delete(s.byCode, x.code)
	}
}

// find is the session of a device with a generation, nil when it has another or
// none.
func (s *sessions) find(code string, generation int64) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.byCode[code]; x != nil && x.generation == generation {
		return x
	}
	return nil
}

// has reports whether a device has one.
func (s *sessions) has(code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byCode[code] != nil
}

// hasFormer reports whether a device has a session that its row allows no more: it is
// disabled, or was cut off since the login.
func (s *sessions) hasFormer(d cloud.Device) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byCode[d.Code]
	return x != nil && (d.Disabled || d.CutOffAt.After(x.cutOff))
}

// isPresent reports whether a session is that of its device.
func (s *sessions) isPresent(x *session) bool { return s.find(x.code, x.generation) == x }

func (s *sessions) list() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byCode))
}

// holds reports whether a device's session of a generation is here.
func (s *sessions) holds(id cloud.DeviceID, generation int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.byCode {
		if x.id == id {
			return x.generation == generation
		}
	}
	return false
}

// generations are those of the sessions by device.
func (s *sessions) generations() map[cloud.DeviceID]int64 {
	out := map[cloud.DeviceID]int64{}
	for _, x := range s.list() {
		out[x.id] = x.generation
	}
	return out
}

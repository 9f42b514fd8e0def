package server

import (
	"sync"

	"github.com/postern-io/postern/cloud"
)

// feed tells live pages which devices and deliveries have changed. A listener
// that is behind loses notices, not the truth: it reads what is there.
type feed struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

func newFeed() *feed { return &feed{listeners: map[chan struct{}]bool{}} }

// committed wakes every listener when a commit changed what pages show.
func (f *feed) committed(ch *cloud.Changes) {
	if len(ch.Doors)+len(ch.Compartments)+len(ch.Deliveries)+len(ch.Openings)+len(ch.Sessions)+len(ch.Exceptions)+len(ch.DeviceFaults)+len(ch.Events)+len(ch.Outbox) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Listen gives a channel that is signalled after changes, until stop is called.
func (s *Server) Listen() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.feed.mu.Lock()
	s.feed.listeners[c] = true
	s.feed.mu.Unlock()
	return c, func() {
		s.feed.mu.Lock()
		delete(s.feed.listeners, c)
		s.feed.mu.Unlock()
	}
}

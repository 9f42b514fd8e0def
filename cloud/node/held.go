package node

import (
	"maps"
	"time"
)

// Held is what this process holds now.
type Held struct {
	// Renewed is when its own lease was renewed; where no other process shares the
	// database, when the process began.
	Renewed time.Time
	// Lost counts how often the lease could not be renewed in time.
	Lost int
	// Tasks are the background tasks that this process does when it may, by name, each
	// with since when it does; zero: another process does, or none.
	Tasks map[string]time.Time
}

// Held tells what this process holds. The map is the caller's.
func (m *Member) Held() Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Held{Renewed: m.renewed, Lost: m.lost, Tasks: maps.Clone(m.held)}
}

// setHeld remembers since when this process does a task; zero: it does not.
func (m *Member) setHeld(name string, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[name] = since
}

// loseLease ends what only the holder of a lease may do.
func (m *Member) loseLease(doubt func()) {
	m.mu.Lock()
	m.lost++
	m.mu.Unlock()
	doubt()
}

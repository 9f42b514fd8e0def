package device

import (
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Refused batches are kept aside as evidence: of each device so many at once, and
// then one every so often. All are counted by the exception. The store keeps the
// newest (cloud.MaxAside), so that neither disk nor log grows with a device that
// sends garbage in a loop.
const (
	asideBurst = 20
	asideEvery = time.Minute
)

// evidence says how many more batches may be kept aside. It remembers devices,
// not sessions: a reconnect brings nothing new.
type evidence struct {
	mu   sync.Mutex
	left map[cloud.DeviceID]allowance // of devices that had something refused
}

type allowance struct {
	n  int
	at time.Time // when n was right
}

// room is how many batches of a device may be kept aside now.
func (e *evidence) room(id cloud.DeviceID, now time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, ok := e.left[id]
	if !ok {
		return asideBurst
	}
	grown := int(now.Sub(a.at) / asideEvery)
	if a.n+grown >= asideBurst {
		delete(e.left, id)
		return asideBurst
	}
	a.n, a.at = a.n+grown, a.at.Add(time.Duration(grown)*asideEvery)
	e.left[id] = a
	return a.n
}

// spend takes n of what room gave.
func (e *evidence) spend(id cloud.DeviceID, n int) {
	if n == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a, ok := e.left[id]
	if !ok {
		a = allowance{n: asideBurst, at: time.Now()}
	}
	a.n = max(a.n-n, 0)
	e.left[id] = a
}

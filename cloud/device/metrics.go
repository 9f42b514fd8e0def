package device

import "sync/atomic"

// Metrics count what happens on the device link.
type Metrics struct {
	Logins   atomic.Uint64
	Batches  atomic.Uint64 // stored
	Records  atomic.Uint64 // stored
	Repeats  atomic.Uint64 // batches that brought nothing new
	Holes    atomic.Uint64
	Refused  atomic.Uint64
	Dropped  atomic.Uint64 // payloads for want of room
	Unknown  atomic.Uint64 // records of unknown kind
	Problems atomic.Uint64 // records that derived nothing
	// BadSignatures counts batches and statuses that a device's own key has not
	// signed, OldStatuses those that were signed, and overtaken or not proven to be new.
	BadSignatures, OldStatuses atomic.Uint64
}

package limit

import (
	"math"
	"sync"
	"time"
)

// Windows counts calls by key so that no minute, wherever it begins, has more of
// them than its limit. A bucket lets as many pass at once and goes on filling;
// this is for limits that say how many may come in a minute. It is kept as
// Buckets are.
type Windows struct {
	max int

	mu   sync.Mutex
	list map[string][]time.Time // calls of the last minute, oldest first
}

// NewWindows makes a set of at most maxKeys keys; 0 is DefaultKeys.
func NewWindows(maxKeys int) *Windows {
	if maxKeys <= 0 {
		maxKeys = DefaultKeys
	}
	return &Windows{max: maxKeys, list: map[string][]time.Time{}}
}

// Take counts a call of key, unless perMinute have come within the last minute:
// then wait is how many seconds are left until one may come, at least 1. A limit
// of 0 or less lets everything pass.
func (w *Windows) Take(key string, perMinute int, now time.Time) (wait int, ok bool) {
	if perMinute <= 0 {
		return 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	calls, known := w.list[key]
	if !known && len(w.list) >= w.max {
		w.forget(now)
	}
	if len(calls) >= perMinute {
		if left := time.Minute - now.Sub(calls[len(calls)-perMinute]); left > 0 {
			return int(math.Ceil(left.Seconds())), false
		}
		calls = append(calls[:0], calls[len(calls)-perMinute+1:]...)
	}
	w.list[key] = append(calls, now)
	return 0, true
}

// forget drops keys without a call in the last minute, or, when there are few of
// these, an eighth of all.
func (w *Windows) forget(now time.Time) {
	for k, calls := range w.list {
		if now.Sub(calls[len(calls)-1]) >= time.Minute {
			delete(w.list, k)
		}
	}
	for k := range w.list {
		if len(w.list) <= w.max-w.max/8-1 {
			return
		}
		delete(w.list, k)
	}
}

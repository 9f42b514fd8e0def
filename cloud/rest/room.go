package rest

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Room is how many bytes the bodies of requests that are being read or answered may
// take together. The HTTP library makes room for a whole body as soon as its length
// is announced, so that a few bytes could take megabytes for half a minute.
type Room struct {
	Strangers int64 // of callers without a good token; 0 is 64 MB
	Known     int64 // of others; 0 is 512 MB
}

// smallBody needs no room of its own.
const smallBody = 64 << 10

func (r Room) withDefaults() Room {
	if r.Strangers == 0 {
		r.Strangers = 64 << 20
	}
	if r.Known == 0 {
		r.Known = 512 << 20
	}
	return r
}

// room lends Room to requests, by their headers, which stay where they are as long
// as a request lasts. A connection that ends without a word gives its part back when
// its header is used again, or its body would have had to be there.
type room struct {
	limit Room

	mu   sync.Mutex // guards what follows
	used [2]int64   // by strangers, by others
	lent map[*fasthttp.RequestHeader]loan
}

type loan struct {
	size  int64 // 0: there was no room
	who   int   // of used
	until time.Time
}

func newRoom(r Room) *room {
	return &room{limit: r.withDefaults(), lent: map[*fasthttp.RequestHeader]loan{}}
}

// take reports whether a request gets room for a body that may take some time.
func (r *room) take(h *fasthttp.RequestHeader, size int64, known bool, life time.Duration) bool {
	who, limit := 0, r.limit.Strangers
	if known {
		who, limit = 1, r.limit.Known
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(h)
	if r.used[who]+size > limit {
		for x, l := range r.lent {
			if now.After(l.until) {
				r.end(x)
			}
		}
	}
	l := loan{size: size, who: who, until: now.Add(life)}
	if r.used[who]+size > limit {
		l.size = 0
	}
	r.used[who] += l.size
	r.lent[h] = l
	return l.size > 0
}

// shrink leaves a request what its body takes, which came in chunks.
func (r *room) shrink(h *fasthttp.RequestHeader, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.lent[h]; ok && size < l.size {
		r.used[l.who] -= l.size - size
		l.size = size
		r.lent[h] = l
	}
}

// give takes back what a request was lent, and reports whether it got none.
func (r *room) give(h *fasthttp.RequestHeader) (refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.lent[h]
	r.end(h)
	return ok && l.size == 0
}

// end forgets a loan; mu is held.
func (r *room) end(h *fasthttp.RequestHeader) {
	if l, ok := r.lent[h]; ok {
		r.used[l.who] -= l.size
		delete(r.lent, h)
	}
}

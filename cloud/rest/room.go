package rest

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Room is how many bytes the bodies of requests that are being read or answered may
// take together. The HTTP library makes room for a whole body as soon as its length
// is announced, so that a few bytes could take megabytes for half a minute.
type Room struct {
	Strangers int64 // of callers without a good token; 0 is 64 MB
	Known     int64 // of others, a quarter of it to one token; 0 is 512 MB
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
	each map[token]int64
	lent map[*fasthttp.RequestHeader]loan
}

// token stands for a good token; the zero token for strangers.
type token [sha256.Size]byte

type loan struct {
	size  int64 // 0: there was no room
	who   token
	until time.Time
}

func newRoom(r Room) *room {
	return &room{limit: r.withDefaults(), each: map[token]int64{}, lent: map[*fasthttp.RequestHeader]loan{}}
}

// reserve reports whether a request gets room for a body that may take some time.
func (r *room) reserve(h *fasthttp.RequestHeader, size int64, who token, life time.Duration) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(h)
	if !r.fits(who, size) {
		for x, l := range r.lent {
			if now.After(l.until) {
				r.end(x)
			}
		}
	}
	l := loan{size: size, who: who, until: now.Add(life)}
	if !r.fits(who, size) {
		l.size = 0
	}
	r.add(who, l.size)
	r.lent[h] = l
	return l.size > 0
}

// fits reports whether there is room for so many bytes more; mu is held. The first
// body of a token always counts as within its share.
func (r *room) fits(who token, size int64) bool {
	if who == (token{}) {
		return r.used[0]+size <= r.limit.Strangers
	}
	return r.used[1]+size <= r.limit.Known && (r.each[who] == 0 || r.each[who]+size <= r.limit.Known/4)
}

// add counts bytes, or takes them back; mu is held.
func (r *room) add(who token, size int64) {
	if who == (token{}) {
		r.used[0] += size
		return
	}
	r.used[1] += size
	if r.each[who] += size; r.each[who] == 0 {
		delete(r.each, who)
	}
}

// shrink leaves a request what its body takes, which came in chunks.
func (r *room) shrink(h *fasthttp.RequestHeader, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.lent[h]; ok && size < l.size {
		r.add(l.who, size-l.size)
		l.size = size
		r.lent[h] = l
	}
}

// release takes back what a request was lent, and reports whether it got none.
func (r *room) release(h *fasthttp.RequestHeader) (refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.lent[h]
	r.end(h)
	return ok && l.size == 0
}

// end forgets a loan; mu is held.
func (r *room) end(h *fasthttp.RequestHeader) {
	if l, ok := r.lent[h]; ok {
		r.add(l.who, -l.size)
		delete(r.lent, h)
	}
}

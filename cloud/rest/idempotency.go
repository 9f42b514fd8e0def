package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
)

// replays remembers first answers by Idempotency-Key, in memory of this node:
// after a restart, or at another node, a repeated call runs again. It keeps at
// most maxReplays answers for replayLife; when it is full the oldest go.
type replays struct {
	mu    sync.Mutex
	list  map[replayKey]*replay
	order []replayKey // oldest first; may name forgotten ones
}

type replayKey struct {
	account cloud.AccountID
	path    string // with the method
	key     string
}

type replay struct {
	hash [32]byte // of the body
	at   time.Time
	done bool
	r    reply
}

const (
	maxReplays = 8192
	replayLife = 24 * time.Hour
	maxKey     = 128
)

func newReplays() *replays { return &replays{list: map[replayKey]*replay{}} }

// begin says what a call with this key is: the first (nil, nil), a repetition
// whose answer is known, or one that is refused. The first call must end with
// finish or abandon.
func (p *replays) begin(k replayKey, hash [32]byte, now time.Time) (*reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.list[k]
	if old != nil && now.Sub(old.at) >= replayLife {
		old = nil
	}
	switch {
	case old == nil:
		p.add(k, &replay{hash: hash, at: now}, now)
		return nil, nil
	case old.hash != hash:
		return nil, cloud.E(cloud.Conflict, "IDEMPOTENCY_KEY_REUSED")
	case !old.done:
		return nil, &cloud.Error{Kind: cloud.Conflict, Code: "IDEMPOTENCY_IN_PROGRESS", RetryAfter: 1}
	}
	r := old.r
	return &r, nil
}

// add makes room first: for what is too old, and for the newest when full. One
// that still runs keeps its place.
func (p *replays) add(k replayKey, x *replay, now time.Time) {
	kept := p.order[:0]
	for i, o := range p.order {
		old := p.list[o]
		switch {
		case old == nil || o == k:
			continue
		case now.Sub(old.at) >= replayLife, len(p.list) >= maxReplays && old.done:
			delete(p.list, o)
			continue
		}
		kept = append(kept, o)
		if len(p.list) < maxReplays && now.Sub(old.at) < replayLife {
			kept = append(kept, p.order[i+1:]...)
			break
		}
	}
	p.order = append(kept, k)
	p.list[k] = x
}

func (p *replays) finish(k replayKey, r reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.list[k]; x != nil {
		x.r, x.done = r, true
	}
}

func (p *replays) abandon(k replayKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.list, k)
}

// final reports whether an answer is the one for good: those that ask to be
// tried again are not.
func (s *Server) final(r reply) bool {
	if r.err == nil {
		return true
	}
	if !isShown(r.err) {
		return false
	}
	var e *cloud.Error
	_ = errors.As(r.err, &e)
	switch e.Kind {
	case cloud.Limited, cloud.Unavailable, cloud.Timeout:
		return false
	}
	return e.RetryAfter == 0
}

// once runs an operation under its Idempotency-Key, when it has one.
func (s *Server) once(c context.Context, ctx *fasthttp.RequestCtx, op *route, caller cloud.Caller, q *query) {
	key := string(ctx.Request.Header.Peek("Idempotency-Key"))
	if key == "" {
		s.write(ctx, op, s.answer(c, op, caller, q))
		return
	}
	if !visibleKey(key) {
		s.refuse(ctx, invalid("Idempotency-Key", "The key must have 1 to 128 visible ASCII characters."))
		return
	}
	k := replayKey{caller.Account.ID, op.Method + " " + string(ctx.Path()), key}
	old, err := s.replays.begin(k, sha256.Sum256(q.body), time.Now())
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	if old != nil {
		s.write(ctx, op, *old)
		ctx.Response.Header.Set("Idempotent-Replayed", "true")
		return
	}
	kept := false
	defer func() { // also when the operation panicked
		if !kept {
			s.replays.abandon(k)
		}
	}()
	r := s.answer(c, op, caller, q)
	if kept = s.final(r); kept {
		s.replays.finish(k, r)
	}
	s.write(ctx, op, r)
}

func visibleKey(key string) bool {
	if len(key) > maxKey {
		return false
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

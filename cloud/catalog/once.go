package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Calls is what the pipeline needs of the database.
type Calls interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	FindCall(ctx context.Context, id cloud.CallID, now time.Time) (cloud.KeptAnswer, error)
	AnswerCall(ctx context.Context, o *cloud.Once, answer []byte) error
	DropCall(ctx context.Context, o *cloud.Once) error
	DropCalls(ctx context.Context, now time.Time) error
}

// Key is the caller's own key of a call: repeats of it are not run again. An
// empty Value is none.
type Key struct {
	Value   string // Idempotency-Key, 1 to 128 visible characters of ASCII
	Address string // what is called, as the face has it
	Request []byte // all that is given, the same bytes for the same
	// Always holds operations to the key that do not take one themselves. A
	// repeat of one whose process ended in between has an answer without a body.
	Always bool
	// Bare keeps no answer that succeeded: a repeat has one without a body. It is for
	// callers whose answers hold what is shown once.
	Bare bool
}

const (
	maxKey = 128
	// callLife is how long a call may take whose context has no deadline.
	callLife = time.Minute
	// keeping bounds what is written when a call is over.
	keeping = 10 * time.Second
)

func (k Key) check() error {
	bad := len(k.Value) > maxKey
	for _, c := range []byte(k.Value) {
		bad = bad || c <= ' ' || c > '~'
	}
	if bad {
		return invalid("Idempotency-Key", "The key must have 1 to 128 visible ASCII characters.")
	}
	return nil
}

// id tells calls of different callers, addresses and keys apart.
func (k Key) id(c cloud.Caller) cloud.CallID {
	return sha256.Sum256([]byte(strconv.FormatInt(int64(c.Account.ID), 10) + "\n" + k.Address + "\n" + k.Value))
}

// Used reports whether a caller's call with a key took it before.
func (p *Pipeline) Used(ctx context.Context, c cloud.Caller, k Key) (bool, error) {
	if p.cfg.Calls == nil {
		return false, nil
	}
	_, err := p.cfg.Calls.FindCall(ctx, k.id(c), time.Now().UTC())
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// once runs a call that has a key, unless it ran before. The answer that its first
// transaction wrote cannot be written again, and has an answer from that moment
// on, so that it does not matter where a process ends. A call that fails before
// it wrote anything, and does not say to come again, is answered alike by its
// repeats; one that says so may be run again.
func (r *running) once(ctx context.Context, k Key) (Answer, error) {
	if err := k.check(); err != nil {
		return Answer{}, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	until, ok := ctx.Deadline()
	if !ok {
		until = now.Add(callLife)
	}
	o := &cloud.Once{Bare: k.Bare || k.Always && !r.o.Idempotent, ID: k.id(r.c), Request: sha256.Sum256(k.Request), At: now, Until: until.UTC().Truncate(time.Millisecond),
		Encode: r.encode}
	a, err := r.first(ctx, o)
	if !errors.Is(err, cloud.ErrNotFound) {
		return a, err
	}
	if r.call == nil {
		r.call = &cloud.Call{Operation: r.o.Name}
		ctx = cloud.WithCall(ctx, r.call)
	}
	r.call.Once = o
	a, err = r.run(ctx)
	if errors.Is(err, cloud.ErrRepeated) || errors.Is(r.storeAnswer(ctx, o, keptOf(k, a), err), cloud.ErrRepeated) {
		if a, err = r.first(ctx, o); errors.Is(err, cloud.ErrNotFound) { // its commit failed, or it may be run again
			return Answer{}, inProgress()
		}
	}
	return a, err
}

// keptOf is the part of an answer that is kept for repeats.
func keptOf(k Key, a Answer) Answer {
	if k.Bare {
		a.Body = nil
	}
	return a
}

// encode is an answer that a decision gave.
func (r *running) encode(out any) ([]byte, error) {
	if t := reflect.TypeOf(out); t != r.o.out {
		return nil, fmt.Errorf("%s answers %v, the decision gave %v", r.o.Name, r.o.out, t)
	}
	return encodeKept(r.shape(out))
}

func inProgress() error {
	return &cloud.Error{Kind: cloud.Conflict, Code: "IDEMPOTENCY_IN_PROGRESS", RetryAfter: 1}
}

// first is the answer of the call that o repeats; cloud.ErrNotFound when it
// repeats none.
func (r *running) first(ctx context.Context, o *cloud.Once) (Answer, error) {
	old, err := r.p.cfg.Calls.FindCall(ctx, o.ID, o.At)
	switch {
	case err != nil:
		return Answer{}, err
	case old.Request != o.Request:
		return Answer{}, cloud.E(cloud.Conflict, "IDEMPOTENCY_KEY_REUSED")
	case o.At.Before(old.Running):
		return Answer{}, inProgress()
	}
	return replayed(old.Answer)
}

// storeAnswer stores what a call is answered that is over, where that is not what its
// transactions stored. Error: cloud.ErrRepeated when another call was the
// first; anything else is only logged: the caller has its answer.
func (r *running) storeAnswer(ctx context.Context, o *cloud.Once, a Answer, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeping)
	defer cancel()
	stored, taken := o.Taken()
	var answer []byte
	var err error
	switch shown := cloud.Shown(failed); {
	case failed == nil:
		answer, err = encodeKept(a)
	case shown == nil: // ours, or out of time: what is stored stands
		return nil
	case !final(shown):
		if taken {
			err = r.p.cfg.Calls.DropCall(ctx, o)
		}
		return r.logged(err)
	default:
		answer, err = keptError(shown)
	}
	if err == nil && !(taken && stored.Running.IsZero() && bytes.Equal(answer, stored.Answer)) {
		err = r.p.cfg.Calls.AnswerCall(ctx, o, answer)
	}
	return r.logged(err)
}

func (r *running) logged(err error) error {
	if err != nil && !errors.Is(err, cloud.ErrRepeated) {
		r.p.cfg.Log.Error("answer of a call is not kept", "operation", r.o.Name, "err", err)
	}
	return err
}

// final reports whether a refusal is for good: others ask to come again.
func final(e *cloud.Error) bool {
	switch e.Kind {
	case cloud.Limited, cloud.Unavailable, cloud.Timeout:
		return false
	}
	return e.RetryAfter == 0
}

// Forget drops calls that are too old for repeats, every hour until ctx ends.
func (p *Pipeline) Forget(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := p.cfg.Calls.DropCalls(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.cfg.Log.Error("old calls cannot be removed now", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
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
}

const (
	maxKey    = 128
	maxAnswer = 4 << 20 // bytes of one kept answer
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

// once runs a call that has a key, unless it ran before. What its first
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
	o := &cloud.Once{ID: k.id(r.c), Request: sha256.Sum256(k.Request), At: now, Until: until.UTC().Truncate(time.Millisecond),
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
	if errors.Is(err, cloud.ErrRepeated) || errors.Is(r.keep(ctx, o, a, err), cloud.ErrRepeated) {
		if a, err = r.first(ctx, o); errors.Is(err, cloud.ErrNotFound) { // its commit failed, or it may be run again
			return Answer{}, inProgress()
		}
	}
	return a, err
}

// encode is an answer that a decision gave.
func (r *running) encode(out any) ([]byte, error) {
	if t := reflect.TypeOf(out); t != r.o.out {
		return nil, fmt.Errorf("%s answers %v, the decision gave %v", r.o.Name, r.o.out, t)
	}
	return kept(r.shape(out))
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

// keep stores what a call is answered that is over, where that is not what its
// transactions stored. Error: cloud.ErrRepeated when another call was the
// first; anything else is only logged: the caller has its answer.
func (r *running) keep(ctx context.Context, o *cloud.Once, a Answer, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeping)
	defer cancel()
	stored, taken := o.Taken()
	var answer []byte
	var err error
	switch shown := shownError(failed); {
	case failed == nil:
		answer, err = kept(a)
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

// shownError is an error that callers see; nil for others.
func shownError(err error) *cloud.Error {
	var e *cloud.Error
	if errors.As(err, &e) && e.Kind != cloud.Internal {
		return e
	}
	return nil
}

// final reports whether a refusal is for good: others ask to come again.
func final(e *cloud.Error) bool {
	switch e.Kind {
	case cloud.Limited, cloud.Unavailable, cloud.Timeout:
		return false
	}
	return e.RetryAfter == 0
}

// keptAnswer is how an answer is stored.
type keptAnswer struct {
	Status  int             `json:"status,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
	Headers [][2]string     `json:"headers,omitempty"`
	ETag    bool            `json:"etag,omitempty"`
	Type    string          `json:"type,omitempty"`
	Error   *refusal        `json:"error,omitempty"`
}

// refusal is an error as it is stored; each face makes its body of it, in the
// language of who asks.
type refusal struct {
	Kind    cloud.Kind          `json:"kind"`
	Code    string              `json:"code"`
	Args    []any               `json:"args,omitempty"`
	Fields  map[string][]string `json:"fields,omitempty"`
	Details map[string]any      `json:"details,omitempty"`
	Members map[string]any      `json:"members,omitempty"`
}

func kept(a Answer) ([]byte, error) {
	body, err := encode(a.Body)
	if err != nil {
		return nil, err
	}
	return bounded(keptAnswer{Status: a.Status, Body: body, Headers: a.Headers, ETag: a.ETag, Type: a.Type})
}

func keptError(e *cloud.Error) ([]byte, error) {
	return bounded(keptAnswer{Error: &refusal{e.Kind, e.Code, e.Args, e.Fields, e.Details, e.Members}})
}

func bounded(k keptAnswer) ([]byte, error) {
	raw, err := encode(k)
	if err == nil && len(raw) > maxAnswer {
		err = fmt.Errorf("an answer of %d bytes is too long to be kept", len(raw))
	}
	return raw, err
}

// encode is JSON with nothing escaped for HTML: the bytes that faces send.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// replayed is an answer as it was stored.
func replayed(raw []byte) (Answer, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var k keptAnswer
	if err := d.Decode(&k); err != nil {
		return Answer{}, fmt.Errorf("kept answer: %w", err)
	}
	if e := k.Error; e != nil {
		return Answer{Replayed: true}, &cloud.Error{Kind: e.Kind, Code: e.Code, Args: e.Args, Fields: e.Fields, Details: e.Details, Members: e.Members}
	}
	return Answer{Status: k.Status, Body: k.Body, Headers: k.Headers, ETag: k.ETag, Type: k.Type, Replayed: true}, nil
}

// Forget drops calls that are too old for repeats, every hour until ctx ends.
func (p *Pipeline) Forget(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := p.cfg.Calls.DropCalls(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.cfg.Log.Error("old calls cannot be dropped now", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

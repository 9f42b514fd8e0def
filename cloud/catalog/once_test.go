package catalog

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// calls is a database of which a test says what it does.
type calls struct {
	find    func(id cloud.CallID) (cloud.KeptAnswer, error)
	decide  func(ctx context.Context) error
	answer  func(o *cloud.Once, answer []byte) error
	dropped []time.Time
	freed   int
}

func (c *calls) FindCall(_ context.Context, id cloud.CallID, _ time.Time) (cloud.KeptAnswer, error) {
	return c.find(id)
}
func (c *calls) Decide(ctx context.Context, _ cloud.DeviceID, _ func(cloud.View) (*cloud.Changes, error)) error {
	return c.decide(ctx)
}
func (c *calls) AnswerCall(_ context.Context, o *cloud.Once, answer []byte) error {
	return c.answer(o, answer)
}
func (c *calls) DropCall(context.Context, *cloud.Once) error { c.freed++; return nil }
func (c *calls) DropCalls(_ context.Context, now time.Time) error {
	c.dropped = append(c.dropped, now)
	return errors.New("one that fails is not the last")
}

func TestOldCallsAreForgottenEveryHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &calls{}
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Hour+time.Minute)
		defer stop()
		require.NoError(t, NewPipeline(Config{Calls: db}).Forget(ctx))
		require.Len(t, db.dropped, 4)
		require.Equal(t, time.Hour, db.dropped[2].Sub(db.dropped[1]))
	})
}

// What becomes of a key for each way in which a call can end.
func TestHowACallEnds(t *testing.T) {
	t.Parallel()
	gone, later := errors.New("database is gone"), &cloud.Error{Kind: cloud.Timeout, Code: "DEVICE_TIMEOUT", RetryAfter: 5}
	refused := &cloud.Error{Kind: cloud.Conflict, Code: "NO", Args: []any{"a", int64(9007199254740993), 1.5}, Details: map[string]any{"id": 9007199254740993}}
	for name, c := range map[string]struct {
		wrote       bool // a transaction, with an answer
		unfinished  bool
		err         error
		kept, freed bool
	}{
		"done at once":             {wrote: true},
		"done after more":          {wrote: true, unfinished: true, kept: true},
		"nothing to do":            {kept: true},
		"refused":                  {err: refused, kept: true},
		"refused after a write":    {wrote: true, err: refused, kept: true},
		"come again":               {err: later},
		"come again after a write": {wrote: true, err: later, freed: true},
		"failed":                   {err: gone},
		"failed after a write":     {wrote: true, err: gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored []byte
			db := &calls{find: func(cloud.CallID) (cloud.KeptAnswer, error) {
				if stored == nil {
					return cloud.KeptAnswer{}, cloud.ErrNotFound
				}
				return cloud.KeptAnswer{Request: [32]byte{}, Answer: stored}, nil
			}, answer: func(_ *cloud.Once, a []byte) error { stored = a; return nil }}
			o := Define(Operation{Name: "a.b", Summary: "Test", Tag: "User", Method: "POST", Path: "/x", Idempotent: true}, func(ctx context.Context, _ cloud.Caller, _ in) (result, error) {
				if call := cloud.CallOf(ctx); c.wrote {
					raw, err := call.Once.Encode(result{true, 5})
					require.NoError(t, err)
					_, err = call.Once.Encode(in{})
					require.ErrorContains(t, err, "answers catalog.result", "another operation's answer")
					a := cloud.KeptAnswer{Request: call.Once.Request, Answer: raw}
					if c.unfinished {
						a.Running = call.Once.Until
					}
					call.Once.Take(a)
				}
				return result{true, 5}, c.err
			}, nil)
			p := NewPipeline(Config{Calls: db})
			a, err := p.Run(t.Context(), &o, cloud.Caller{}, Key{Value: "k"}, func(any) error { return nil })
			require.Equal(t, c.err, err)
			require.False(t, a.Replayed)
			require.Equal(t, c.kept, stored != nil)
			require.Equal(t, c.freed, db.freed == 1)
			if stored == nil {
				return
			}
			again, err := replayed(stored)
			require.True(t, again.Replayed)
			if c.err != nil {
				var e *cloud.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, []any{"NO", cloud.Conflict, []any{"a", int64(9007199254740993), 1.5}}, []any{e.Code, e.Kind, e.Args})
				first, _ := encode(refused.Details)
				second, _ := encode(e.Details)
				require.Equal(t, string(first), string(second), "numbers keep their digits")
				return
			}
			require.NoError(t, err)
			body, _ := encode(again.Body)
			require.Equal(t, `{"result":true,"price":5}`, string(body))
		})
	}
}

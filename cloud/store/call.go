package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// CallsKept is how long repeats of a call are known.
const CallsKept = 24 * time.Hour

const (
	sqlCall     = `SELECT request, at, running_until, answer FROM call_answer WHERE id = $1 AND at > $2`
	sqlTakeCall = `INSERT INTO call_answer (id, request, at, running_until, answer) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET request = excluded.request, at = excluded.at, running_until = excluded.running_until, answer = excluded.answer
WHERE call_answer.at <= $6`
	sqlAnswerCall = `UPDATE call_answer SET running_until = $2, answer = $3 WHERE id = $1 AND at = $4`
	sqlDropCall   = `DELETE FROM call_answer WHERE id = $1 AND at = $2`
	sqlDropCalls  = `DELETE FROM call_answer WHERE id IN (SELECT id FROM call_answer WHERE at <= $1 ORDER BY at LIMIT $2)`
)

func scanCall(r rows, a *cloud.KeptAnswer) error {
	return r.Scan(fixed(a.Request[:]), when(&a.At), when(&a.Running), &a.Answer)
}

func callPurpose(id cloud.CallID) string { return "call/" + hex.EncodeToString(id[:]) }

// FindCall finds what a repeat of a call at now is answered; cloud.ErrNotFound
// when it is none.
func (db calls) FindCall(ctx context.Context, id cloud.CallID, now time.Time) (cloud.KeptAnswer, error) {
	a, err := readOne(ctx, db.database, sqlCall, scanCall, id[:], ms(now.Add(-CallsKept)))
	if err != nil {
		return a, err
	}
	if a.Answer, err = (sealer{db.box}).open(callPurpose(id), a.Answer); err != nil {
		return a, fmt.Errorf("answer of a call: %w", err)
	}
	return a, nil
}

// AnswerCall stores the final answer of a call, of which a transaction may have
// stored another one. cloud.ErrRepeated when the id is another call's.
func (db calls) AnswerCall(ctx context.Context, o *cloud.Once, answer []byte) error {
	_, taken := o.Taken()
	kept := cloud.KeptAnswer{Request: o.Request, At: o.At, Answer: answer}
	err := db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		w := writer{box: db.box}
		w.answer(o, taken, kept)
		return nil, s.last(ctx, w.ops)
	})
	if err == nil {
		o.Take(kept)
	}
	return err
}

// DropCall forgets a call, so that a repeat runs again.
func (db calls) DropCall(ctx context.Context, o *cloud.Once) error {
	return db.exec(ctx, sqlDropCall, o.ID[:], ms(o.At))
}

// DropCalls forgets calls that are too old at now for repeats, and what keys did
// before yesterday.
func (db calls) DropCalls(ctx context.Context, now time.Time) error {
	return errors.Join(db.inSteps(ctx, sqlDropCalls, ms(now.Add(-CallsKept))), db.exec(ctx, sqlDropBudgets, now.UTC().AddDate(0, 0, -1).Format(time.DateOnly)))
}

func (db *database) exec(ctx context.Context, sql string, args ...any) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sql, args: args}})
	})
}

// rowsAtOnce is how many rows a statement of inSteps touches: others write in between.
const rowsAtOnce = 500

// inSteps runs a statement that touches up to rowsAtOnce rows until it finds fewer.
func (db *database) inSteps(ctx context.Context, sql string, args ...any) error {
	for {
		var n int64
		err := db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
			return nil, s.last(ctx, []op{{sql: sql, args: append(args, rowsAtOnce), count: &n}})
		})
		if err != nil || n < rowsAtOnce {
			return err
		}
	}
}

// isFirst refuses with cloud.ErrRepeated, before a decision is run, a call
// whose id another call has: what that one wrote must not be what this one is
// refused for.
func isFirst(ctx context.Context, s session, call *cloud.Call) error {
	if call == nil || call.Once == nil {
		return nil
	}
	if _, taken := call.Once.Taken(); taken {
		return nil
	}
	_, err := one(ctx, s, sqlCall, scanCall, call.Once.ID[:], ms(call.Once.At.Add(-CallsKept)))
	switch {
	case err == nil:
		return cloud.ErrRepeated
	case errors.Is(err, cloud.ErrNotFound):
		return nil
	}
	return err
}

// once takes a call's id and stores what the decision answers. It gives what
// is kept once that is committed; nil when nothing is.
func (w *writer) once(call *cloud.Call, c *cloud.Changes) (*cloud.KeptAnswer, error) {
	if call == nil || call.Once == nil {
		return nil, nil
	}
	o := call.Once
	kept, taken := o.Taken()
	if c.Answer == nil && o.Bare && !taken {
		kept.Request, kept.At, kept.Answer = o.Request, o.At, []byte("{}") // done, and nothing more
		w.answer(o, false, kept)
		return &kept, nil
	}
	if c.Answer == nil {
		if !taken {
			return nil, fmt.Errorf("%s takes an Idempotency-Key but its first decision has no answer", call.Operation)
		}
		return nil, nil
	}
	var err error
	if kept.Answer, err = o.Encode(c.Answer); err != nil {
		return nil, fmt.Errorf("encode answer of %s: %w", call.Operation, err)
	}
	kept.Request, kept.At, kept.Running = o.Request, o.At, time.Time{}
	if c.Unfinished {
		kept.Running = o.Until
	}
	w.answer(o, taken, kept)
	return &kept, nil
}

func (w *writer) answer(o *cloud.Once, taken bool, a cloud.KeptAnswer) {
	sealed := w.seal(callPurpose(o.ID), a.Answer)
	if taken {
		w.add(anything, sqlAnswerCall, o.ID[:], ms(a.Running), sealed, ms(o.At))
		return
	}
	w.add(mustBeFirst, sqlTakeCall, o.ID[:], o.Request[:], ms(o.At), ms(a.Running), sealed, ms(o.At.Add(-CallsKept)))
}

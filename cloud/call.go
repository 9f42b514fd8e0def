package cloud

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// Call is what the store knows of the call that a decision is made for: it
// comes with the decision's context. Every audit line that is written for the
// call says so, and the first transaction of a call whose operation writes no
// line gets one. Safe for concurrent use.
type Call struct {
	BusinessID BusinessID
	Actor      string // account:12
	Operation  string // its name in the catalogue
	Target     string // what it is about, as far as the input says
	Surface    string // as Caller.Surface
	IP         string
	RequestID  string
	Pass       PassID // that the caller acts by; 0: none
	Outcome    string // a public code of a call that was refused; empty: done
	Via        Via
	Once       *Once   // nil: a repeat runs again
	Budget     *Budget // nil: no bound
	// Rights says why the caller may not go on, in each transaction of the call before
	// anything else of it: rights may have ended since the call was let in. nil: never.
	Rights func(View) error

	mu      sync.Mutex
	audited bool
	counted bool
}

// Via is how an agent's call came to be done. The zero Via is that of a call
// which no agent made.
type Via struct {
	Server, Tool string // operations, cancel_order
	Token        string // name of the caller's token
	// Consent is what let a call through that asks for a person's word: argument
	// (confirm), question (the client says its user agreed), approval (another
	// account decided).
	Consent  string
	Approval ApprovalID
	Reviewer AccountID // who decided
}

// Audited reports whether a transaction of the call wrote an audit line.
func (c *Call) Audited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.audited
}

// Committed takes down that a transaction with an audit line is written.
func (c *Call) Committed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.audited = true
}

// Counted reports whether a transaction of the call took from its budget.
func (c *Call) Counted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted
}

// Count takes down that a transaction which took from the budget is written.
func (c *Call) Count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted = true
}

// Once makes a call run at most once. The first transaction of the call takes
// the id, in the same commit as its changes; it fails with ErrRepeated when
// another call has it. Each transaction stores Changes.Answer, so that a repeat
// has an answer however the call ended. Safe for concurrent use.
type Once struct {
	ID      CallID
	Request [sha256.Size]byte // of what the call gives; a repeat gives the same
	At      time.Time
	Until   time.Time                 // when the call is over, whatever became of it
	Bare    bool                      // the first transaction may have no answer
	Encode  func(any) ([]byte, error) // how an answer is kept; it has no side effects

	mu     sync.Mutex
	taken  bool
	answer KeptAnswer
}

// CallID is a digest of who calls, what, and the caller's own key.
type CallID [sha256.Size]byte

// KeptAnswer is what is kept for repeats of a call.
type KeptAnswer struct {
	Request [sha256.Size]byte
	At      time.Time
	Answer  []byte
	// Running is until when the call may still be answered otherwise; the zero
	// time: it is answered.
	Running time.Time
}

// Taken reports whether a transaction of this call took the id, and what it
// stored last.
func (o *Once) Taken() (KeptAnswer, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answer, o.taken
}

// Take takes down that a transaction that took the id is written.
func (o *Once) Take(a KeptAnswer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken, o.answer = true, a
}

type callKey struct{}

// WithCall is a context of what is done for a call.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf is the call that ctx belongs to, nil when there is none.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

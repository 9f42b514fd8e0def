package cloud

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Marks stand for the effects of a call as a person was shown them: one for each
// thing, over its kind, id, version, and members before and after. 32 hex digits
// each, sorted. They also cover what some readers are not shown, as prices are,
// and never leave the cloud: Digest does.
type Marks []string

// Digest is one text for all of the marks, 64 hex digits: what answers, forms
// and questions carry. The digest of no marks is one too. The key is the
// deployment's: a reader who knows all of a preview but a hidden price cannot
// find the price by trying.
func (m Marks) Digest(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(m, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// Marks are those of what decisions would change so far.
func (p *Preview) Marks() Marks {
	p.mu.Lock()
	defer p.mu.Unlock()
	return marksOf(p.effects)
}

func marksOf(effects []Effect) Marks {
	out := Marks{}
	for _, e := range effects {
		out = append(out, e.mark())
	}
	slices.Sort(out)
	return out
}

func (e Effect) mark() string {
	raw, err := json.Marshal([]any{e, e.version})
	if err != nil {
		panic(fmt.Sprintf("cloud: encode effect: %v", err)) // of plain values
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// versionOf tells two states of a thing apart, by everything that is stored of
// it; nil is one that is not there.
func versionOf(old any) string {
	if old == nil {
		return ""
	}
	raw, err := json.Marshal(old)
	if err != nil {
		panic(fmt.Sprintf("cloud: encode %T: %v", old, err)) // of plain values
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// Expected holds decisions to the effects that were shown: one with any other is
// refused as a whole, in the transaction that would write it, with the error
// APPROVAL_CHANGED. A change that a decision of the same context made before may be
// changed again. Safe for concurrent use.
type Expected struct {
	mu    sync.Mutex
	left  map[string]int  // marks that no decision has used up
	known map[string]bool // things that decisions have changed, by kind and id
	only  string          // id of the things that are looked at; "" for all
}

// MarkOf is one mark for the effects on the things with an id, "" for none, and what
// people call the first of them.
func (p *Preview) MarkOf(id string) (mark, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var own []string
	for _, e := range p.effects {
		if e.ID != nil && fmt.Sprint(e.ID) == id {
			own = append(own, e.mark())
			name = cmp.Or(name, e.Name)
		}
	}
	slices.Sort(own)
	return strings.Join(own, " "), name
}

// ExpectOf is an Expected of what MarkOf gave: effects on other things are not looked
// at.
func ExpectOf(id, mark string) *Expected {
	e := Marks(strings.Fields(mark)).Expect()
	e.only = id
	return e
}

// Expect is an Expected of what was shown.
func (m Marks) Expect() *Expected {
	e := &Expected{left: map[string]int{}, known: map[string]bool{}}
	for _, mark := range m {
		e.left[mark]++
	}
	return e
}

type expectedKey struct{}

// WithExpected is a context whose decisions are held to what was shown.
func WithExpected(ctx context.Context, e *Expected) context.Context {
	return context.WithValue(ctx, expectedKey{}, e)
}

// ExpectedOf is what the decisions of a context are held to, nil for nothing.
func ExpectedOf(ctx context.Context) *Expected {
	e, _ := ctx.Value(expectedKey{}).(*Expected)
	return e
}

// Check refuses changes that were not shown. It may be asked again for a
// decision that runs again; written takes down that the changes are stored.
func (e *Expected) Check(v View, c *Changes) (written func(), err error) {
	shown, err := effectsOf(v, c)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	used := map[string]int{}
	var changed []string
	for _, x := range shown.list {
		thing := fmt.Sprint(x.Type, "/", x.ID)
		if x.ID != nil && e.known[thing] || e.only != "" && fmt.Sprint(x.ID) != e.only {
			continue
		}
		mark := x.mark()
		if used[mark]++; used[mark] > e.left[mark] {
			return nil, E(Conflict, "APPROVAL_CHANGED")
		}
		changed = append(changed, thing)
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for mark, n := range used {
			e.left[mark] -= n
		}
		for _, thing := range changed {
			e.known[thing] = true
		}
	}, nil
}

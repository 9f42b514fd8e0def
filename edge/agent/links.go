package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// keyLinks remembers the addresses and keys that have proven themselves, and how
// the addresses of the newest configuration fare.
const keyLinks = "agent/links"

// trialTime is how long new addresses may take to prove themselves.
const trialTime = 10 * time.Minute

// A trial is looked after so many times while it lasts. Each time it is kept how
// long it has run, so that starts in between neither end nor prolong it; time
// without power does not count. Every fourth time the new addresses are tried
// again by an agent that is connected to an old one.
const (
	trialLooks = 20
	trialAgain = 4
)

// link is how the cloud is reached and known. A configuration that has wrong
// ones would cut the cabinet off, with it every way to mend that. So both have to
// prove themselves, each in its way:
//
//   - new addresses go back to the last good ones when no time answer came by one
//     of them within the trial;
//   - new keys count beside the old ones until a time answer is signed by one of
//     them. From then on the old ones are gone for good: a broker that withholds
//     messages brings none back.
type link struct {
	Brokers []string         `cbor:"1,keyasint,omitempty"`
	Keys    []wire.PinnedKey `cbor:"2,keyasint,omitempty"`
}

func linkOf(c wire.Config) link { return link{c.Brokers, c.Keys} }

// sameKeys reports whether both hold the same keys, in any order.
func sameKeys(a, b []wire.PinnedKey) bool {
	return holdsKeys(a, b) && holdsKeys(b, a)
}

func holdsKeys(all, some []wire.PinnedKey) bool {
	for _, k := range some {
		if !slices.ContainsFunc(all, func(o wire.PinnedKey) bool { return slices.Equal(o.ID, k.ID) && slices.Equal(o.Key, k.Key) }) {
			return false
		}
	}
	return true
}

// stand is where a configuration's addresses stand.
type stand uint8

const (
	onTrial stand = iota
	proven
	goneBack // the last good one is in use
)

// keptLinks is what is kept under keyLinks.
type keptLinks struct {
	Version uint64 `cbor:"1,keyasint"` // of the configuration whose addresses Stand is about
	Stand   stand  `cbor:"2,keyasint"`
	Tried   int64  `cbor:"3,keyasint,omitempty"` // ns that its trial has run
	Good    link   `cbor:"4,keyasint"`           // what was proven last, each part zero for that of the secrets file alone
}

// links decides which addresses and keys are in use. The last good ones are only
// replaced, durably, by others that have proven themselves: see proof.
type links struct {
	own []wire.PinnedKey // of the secrets file; immutable

	change sync.Mutex // one change at a time

	mu   sync.Mutex // guards all below; never held while something is kept
	kept keptLinks
	next link // of the newest configuration
}

// adopt takes over the link of a configuration. It reports whether other
// addresses have to be tried.
func (l *links) adopt(c wire.Config) (moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = linkOf(c)
	if c.Version == 0 || c.Version == l.kept.Version {
		return false
	}
	l.kept.Version, l.kept.Stand, l.kept.Tried = c.Version, onTrial, 0
	if slices.Equal(l.next.Brokers, l.kept.Good.Brokers) {
		l.kept.Stand = proven
	}
	return !slices.Equal(l.next.Brokers, l.kept.Good.Brokers)
}

// brokers are the addresses in use: the configuration's own, then what it may fall
// back on.
func (l *links) brokers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch good := l.kept.Good.Brokers; {
	case l.kept.Version == 0 || l.kept.Stand == goneBack:
		return good
	case l.kept.Stand == proven:
		return l.next.Brokers
	default:
		return slices.Concat(l.next.Brokers, good)
	}
}

// keys are those that count, and those of them that have yet to prove themselves.
// A configuration that names none changes none.
func (l *links) keys() (all, unproven []wire.PinnedKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	good := l.kept.Good.Keys
	if len(good) == 0 {
		good = l.own
	}
	if len(l.next.Keys) == 0 || sameKeys(l.next.Keys, good) {
		return good, nil
	}
	return slices.Concat(good, l.next.Keys), l.next.Keys
}

// onTrial returns the addresses that wait for their proof, nil when none do.
func (l *links) onTrial() (brokers []string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.Version == 0 || l.kept.Stand != onTrial {
		return nil, false
	}
	return l.next.Brokers, true
}

// change keeps what f makes of the present, together with records, or changes
// nothing.
func (a *Agent) changeLinks(ctx context.Context, f func(k *keptLinks, next link), records ...buffer.Record) error {
	l := &a.links
	l.change.Lock()
	defer l.change.Unlock()
	l.mu.Lock()
	k := l.kept
	f(&k, l.next)
	l.mu.Unlock()
	if err := a.commit(ctx, buffer.Change{Put: map[string][]byte{keyLinks: wire.MustEncode(k)}, Records: records, Urgent: true}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.Version == k.Version { // else a newer configuration came meanwhile; what is kept has the same last good link
		l.kept = k
	}
	return nil
}

// dump is what is kept, for a store that has lost its content.
func (l *links) dump() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return wire.MustEncode(l.kept)
}

// proof takes the answer to a fresh nonce as proof of the address at which it came
// and of the keys by which it is signed: anything else may be an old message,
// replayed by a broker. The keys are kept beside the store first, so that
// an older copy of it brings no old key back.
func (a *Agent) proof(answer []byte) {
	fresh, trial := a.links.onTrial()
	reached := trial && slices.Contains(fresh, a.link.Broker())
	_, keys := a.links.keys()
	var payload wire.Raw
	seen := len(keys) > 0 && signed.PinnedKeys(keys).Open(signed.ForTime, answer, &payload) == nil
	if !reached && !seen {
		return
	}
	if seen {
		if err := a.marks.pin(keys, a.cfg.Secrets.Keys); err != nil {
			a.log.Warn("keep the proven keys; the next answer proves them as well", "err", err)
			seen = false
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepWait)
	defer cancel()
	err := a.changeLinks(ctx, func(k *keptLinks, next link) {
		if reached {
			k.Stand, k.Tried, k.Good.Brokers = proven, 0, next.Brokers
		}
		if seen {
			k.Good.Keys = keys
		}
	})
	if err != nil {
		a.log.Warn("keep the proven addresses and keys; the next answer proves them as well", "err", err)
	}
	a.setBrokers()
}

func (a *Agent) setBrokers() {
	a.link.SetBrokers(brokers(a.links.brokers(), a.cfg.Secrets.Brokers))
}

// applied takes over the link of a configuration that was just applied.
func (a *Agent) applied(c wire.Config) {
	moved := a.links.adopt(c)
	a.setBrokers()
	if moved {
		a.link.Again()
	}
}

// try looks after the trial of new addresses, until ctx ends.
func (a *Agent) try(ctx context.Context) error {
	every := a.cfg.Trial / trialLooks
	t := time.NewTicker(every)
	defer t.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		fresh, trial := a.links.onTrial()
		if !trial {
			looks = 0
			continue
		}
		over, err := a.tried(ctx, every)
		switch {
		case err != nil && ctx.Err() == nil:
			a.log.Error("keep the trial of addresses", "err", err)
		case err == nil && over:
			a.log.Error("new addresses did not work; the old ones are in use again", "after", a.cfg.Trial)
			a.setBrokers()
		case looks%trialAgain == 0 && len(fresh) > 0 && a.link.Connected() && !slices.Contains(fresh, a.link.Broker()):
			a.link.Again()
		}
	}
}

// tried counts the running trial on, and ends it when its time is up: the last
// good link is in use again, and a record says so, in one commit.
func (a *Agent) tried(ctx context.Context, more time.Duration) (over bool, err error) {
	a.links.mu.Lock()
	k := a.links.kept
	a.links.mu.Unlock()
	if over = time.Duration(k.Tried)+more >= a.cfg.Trial; !over {
		return false, a.changeLinks(ctx, func(k *keptLinks, _ link) { k.Tried += int64(more) })
	}
	r := a.clock.Stamp(time.Now())
	r.Kind = wire.KindConfigApplied
	r.Body = wire.MustEncode(wire.ConfigApplied{Version: k.Version,
		Result: fmt.Sprintf("addresses went back to the last good ones: no time answer came by a new one within %s", a.cfg.Trial)})
	rec, err := buffer.NewRecord(r)
	if err != nil {
		return false, fmt.Errorf("encode config_applied: %w", err)
	}
	return true, a.changeLinks(ctx, func(now *keptLinks, _ link) {
		if now.Version == k.Version { // else its time is over anyway: another configuration came this moment
			now.Stand, now.Tried = goneBack, 0
		}
	}, rec)
}

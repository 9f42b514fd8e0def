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
// those of the newest configuration fare.
const keyLinks = "agent/links"

// trialTime is how long new addresses and keys may take to prove themselves.
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
// ones would cut the cabinet off, with it every way to mend that.
type link struct {
	Brokers []string         `cbor:"1,keyasint,omitempty"`
	Keys    []wire.PinnedKey `cbor:"2,keyasint,omitempty"`
}

func linkOf(c wire.Config) link { return link{c.Brokers, c.Keys} }

func (l link) same(o link) bool {
	return slices.Equal(l.Brokers, o.Brokers) && slices.EqualFunc(l.Keys, o.Keys, func(a, b wire.PinnedKey) bool {
		return slices.Equal(a.ID, b.ID) && slices.Equal(a.Key, b.Key)
	})
}

// stand is where a configuration's link stands.
type stand uint8

const (
	onTrial stand = iota
	proven
	goneBack // the last good one is in use
)

// keptLinks is what is kept under keyLinks.
type keptLinks struct {
	Version uint64 `cbor:"1,keyasint"` // of the configuration whose link Stand is about
	Stand   stand  `cbor:"2,keyasint"`
	Tried   int64  `cbor:"3,keyasint,omitempty"` // ns that its trial has run
	Good    link   `cbor:"4,keyasint"`           // the last that was proven, zero for those of the secrets file alone
}

// links decides which addresses and keys are in use. The last good ones are only
// replaced, durably, by others that have proven themselves: see proof.
type links struct {
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
	if l.next.same(l.kept.Good) {
		l.kept.Stand = proven
	}
	return !slices.Equal(l.next.Brokers, l.kept.Good.Brokers)
}

// use is what is in use: the configuration's own, then what it may fall back on.
func (l *links) use() link {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch good := l.kept.Good; {
	case l.kept.Version == 0 || l.kept.Stand == goneBack:
		return good
	case l.kept.Stand == proven:
		return l.next
	default:
		return link{slices.Concat(l.next.Brokers, good.Brokers), slices.Concat(l.next.Keys, good.Keys)}
	}
}

// onTrial reports whether the new link waits for its proof, and, when it names
// addresses of its own, which.
func (l *links) onTrial() (is bool, brokers []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.Version == 0 || l.kept.Stand != onTrial {
		return false, nil
	}
	if slices.Equal(l.next.Brokers, l.kept.Good.Brokers) {
		return true, nil
	}
	return true, l.next.Brokers
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

// proof ends a trial well when this message, which has been verified, also
// verifies by the new keys alone. New addresses are proven at one of them, and by
// an answer to a fresh nonce: anything else may be an old message, replayed by
// whoever is there.
func (a *Agent) proof(p signed.Purpose, envelope []byte) {
	trial, fresh := a.links.onTrial()
	if !trial || len(fresh) > 0 && (p != signed.ForTime || !slices.Contains(fresh, a.link.Broker())) {
		return
	}
	a.links.mu.Lock()
	keys := a.links.next.Keys
	a.links.mu.Unlock()
	if len(keys) == 0 {
		keys = a.cfg.Secrets.Keys
	}
	var payload wire.Raw
	if signed.PinnedKeys(keys).Open(p, envelope, &payload) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepWait)
	defer cancel()
	err := a.changeLinks(ctx, func(k *keptLinks, next link) { k.Stand, k.Tried, k.Good = proven, 0, next })
	if err != nil {
		a.log.Warn("keep the proven addresses and keys; the next message proves them as well", "err", err)
	}
	a.setBrokers()
}

func (a *Agent) setBrokers() {
	a.link.SetBrokers(brokers(a.links.use().Brokers, a.cfg.Secrets.Brokers))
}

// applied takes over the link of a configuration that was just applied.
func (a *Agent) applied(c wire.Config) {
	moved := a.links.adopt(c)
	a.setBrokers()
	if moved {
		a.link.Again()
	}
}

// try looks after the trial of new addresses and keys, until ctx ends.
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
		trial, fresh := a.links.onTrial()
		if !trial {
			looks = 0
			continue
		}
		over, err := a.tried(ctx, every)
		switch {
		case err != nil && ctx.Err() == nil:
			a.log.Error("keep the trial of addresses and keys", "err", err)
		case err == nil && over:
			a.log.Error("new addresses and keys did not work; the old ones are in use again", "after", a.cfg.Trial)
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
		Result: fmt.Sprintf("addresses and keys went back to the last good ones: nothing was proven with the new ones within %s", a.cfg.Trial)})
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

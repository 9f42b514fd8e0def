package tracking

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// Bounds of the feed's memory and of what it asks the database.
const (
	feedRecent    = 1024                   // changes of a business that are kept in memory
	feedBytes     = 8 << 20                // of their events
	feedPace      = 20 * time.Millisecond  // between two reads
	feedLook      = 500 * time.Millisecond // without a notice
	feedRetry     = time.Second            // after a read that failed
	feedLinger    = 30 * time.Second       // without readers
	feedFollowers = 20                     // of one account that wait
	feedAll       = 4096                   // of all accounts
)

// feed lets readers wait for changes. However many readers a business has, one goroutine reads
// for them what is new, and keeps some of it. Safe for concurrent use.
type feed struct {
	store FeedStore
	log   *slog.Logger
	ended chan struct{} // closed by end

	mu      sync.Mutex // guards what follows, and the members of tails
	tails   map[cloud.BusinessID]*feedTail
	waiting map[cloud.AccountID]int
	all     int // of waiting
	closed  bool
}

// feedTail is the newest part of a business's changes.
type feedTail struct {
	business   cloud.BusinessID
	users      int
	idle       time.Time          // since when there are none
	start, end cloud.FeedPosition // what is kept is behind start, up to end
	kept       []*feedEntry       // its elements are never overwritten
	size       int                // bytes of their events
	moved      chan struct{}      // closed when end moves
	wake       chan struct{}      // of size 1
}

func newFeed(s FeedStore) *feed {
	return &feed{store: s, log: slog.New(slog.DiscardHandler), ended: make(chan struct{}), tails: map[cloud.BusinessID]*feedTail{}, waiting: map[cloud.AccountID]int{}}
}

// enter counts a reader that waits. Error: RATE_LIMITED.
func (f *feed) enter(a cloud.AccountID) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[a] >= feedFollowers || f.all >= feedAll {
		return nil, limited(feedBeat)
	}
	f.waiting[a]++
	f.all++
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all--
		if f.waiting[a]--; f.waiting[a] == 0 {
			delete(f.waiting, a)
		}
	}), nil
}

// follow has new changes of a business read until release is called. moved is closed when
// there are any behind a position.
func (f *feed) follow(ctx context.Context, b cloud.BusinessID, at cloud.FeedPosition) (moved <-chan struct{}, release func(), err error) {
	t := f.use(b, nil)
	if t == nil {
		end, err := f.store.FeedEnd(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		t = f.use(b, &end)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if moved = t.moved; t.end.Compare(at) > 0 {
		now := make(chan struct{})
		close(now)
		moved = now
	}
	return moved, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		t.users--
		t.idle = time.Now()
	}, nil
}

// use counts a user of a business's tail, which is made where there is none and its end is
// given; otherwise it is nil then.
func (f *feed) use(b cloud.BusinessID, end *cloud.FeedPosition) *feedTail {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[b]
	if t == nil && end != nil {
		t = &feedTail{business: b, start: *end, end: *end, moved: make(chan struct{}), wake: make(chan struct{}, 1)}
		if f.tails[b] = t; !f.closed {
			go f.run(t)
		}
	}
	if t != nil {
		t.users++
	}
	return t
}

// recent gives at most size changes behind a position out of memory. known is false where
// that does not reach back so far.
func (f *feed) recent(b cloud.BusinessID, at cloud.FeedPosition, size int) (list []*feedEntry, end, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[b]
	if t == nil || at.Compare(t.start) < 0 {
		return nil, false, false
	}
	i := sort.Search(len(t.kept), func(i int) bool { return t.kept[i].Position.Compare(at) > 0 })
	j := min(i+size, len(t.kept))
	return t.kept[i:j:j], j == len(t.kept), true
}

// run reads what is new until the tail has no users.
func (f *feed) run(t *feedTail) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-f.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	pending, failed := time.Duration(0), false
	for ctx.Err() == nil && !f.drop(t) {
		asked := time.Now()
		p, err := f.store.FeedPage(ctx, t.business, t.end, feedScan) // only this goroutine moves the end
		if err != nil && !failed && ctx.Err() == nil {
			f.log.Warn("read changes of timelines", "business", int64(t.business), "error", err)
		}
		failed = err != nil
		f.extend(t, p.Changes)
		wait := feedLook
		switch {
		case failed:
			wait = feedRetry
		case !p.End:
			continue
		case p.Pending: // until an older transaction ends, which gives no notice
			pending = min(max(feedPace, 2*pending), feedLook)
			wait = pending
		}
		if !p.Pending {
			pending = 0
		}
		select {
		case <-t.wake:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(time.Until(asked.Add(feedPace))):
		case <-ctx.Done():
		}
	}
}

// extend keeps changes and lets readers go that wait for them.
func (f *feed) extend(t *feedTail, list []cloud.FeedChange) {
	if len(list) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range entriesOf(t.business, list) {
		t.kept = append(t.kept, x)
		t.size += x.Size
		t.end = x.Position
	}
	for len(t.kept) > feedRecent || t.size > feedBytes && len(t.kept) > 1 {
		t.size -= t.kept[0].Size
		t.start, t.kept = t.kept[0].Position, t.kept[1:]
	}
	close(t.moved)
	t.moved = make(chan struct{})
}

// drop forgets a tail that has had no users for a while.
func (f *feed) drop(t *feedTail) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.users > 0 || time.Since(t.idle) < feedLinger {
		return false
	}
	delete(f.tails, t.business)
	return true
}

// notice has the changes of a business read soon; 0: of all that are followed.
func (f *feed) notice(b cloud.BusinessID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.tails[b]; t != nil {
		t.look()
	}
	if b == 0 {
		for _, t := range f.tails {
			t.look()
		}
	}
}

// look has the tail read soon.
func (t *feedTail) look() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// end lets all readers that wait go, and those that come.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.ended)
	}
}

// Committed takes what a decision changed: readers that wait for it get it. It never waits.
func (s *Service) Committed(ch *cloud.Changes) {
	for _, x := range ch.Events {
		s.feed.notice(x.BusinessID)
	}
	for _, x := range ch.Shipments {
		s.feed.notice(x.BusinessID)
	}
	for _, x := range ch.Rows {
		switch x := x.(type) {
		case cloud.ContainerMark:
			s.feed.notice(x.BusinessID)
		case cloud.Alias:
			s.feed.notice(x.BusinessID)
		}
	}
	if len(ch.Withdrawn) > 0 {
		s.feed.notice(0)
	}
}

// Notice takes what another node changed, as Committed does. It never waits.
func (s *Service) Notice(changed []cloud.Touch) {
	for _, t := range changed {
		switch t.Kind {
		case "Events", "Shipments", "Withdrawn":
			s.feed.notice(t.Business)
		}
	}
}

// EndFeed ends the waiting calls and streams of the feed, before the server stops.
func (s *Service) EndFeed() { s.feed.end() }

const (
	feedMargin = 24 * time.Hour // that changes are kept beyond their life
	pruneEvery = time.Hour
	pruneStep  = 1000 // changes in one transaction
	prunePause = 50 * time.Millisecond
)

// PruneFeed removes changes that are older than their life, in small steps, until ctx ends.
func (s *Service) PruneFeed(ctx context.Context) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		before := time.Now().Add(-cloud.FeedLife - feedMargin)
		for last, more := int64(0), true; more && ctx.Err() == nil; {
			var err error
			if last, more, err = s.store.PruneFeed(ctx, last, before, pruneStep); err != nil {
				if ctx.Err() == nil {
					s.log.Warn("remove old changes of timelines", "error", err)
				}
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(prunePause):
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// feedEntry is a change with its forms for readers, each made once.
type feedEntry struct {
	cloud.FeedChange
	business cloud.BusinessID

	mu    sync.Mutex
	forms map[string]Change // by language; guarded by mu
}

func entriesOf(b cloud.BusinessID, list []cloud.FeedChange) []*feedEntry {
	out := make([]*feedEntry, len(list))
	for i, x := range list {
		out[i] = &feedEntry{FeedChange: x, business: b}
	}
	return out
}

// isWhole reports whether what the change is about is still there.
func (x *feedEntry) isWhole() bool {
	return x.Shipment.ID != 0 && (x.Event != nil || x.Estimate != "" || x.Container != 0 || x.Alias != nil)
}

// inLanguage is the change with labels in a language. It is not changed after.
func (x *feedEntry) inLanguage(lang string) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, ok := x.forms[lang]; ok {
		return c
	}
	c := Change{Cursor: cursorText(x.business, x.Position, x.RecordedAt), Kind: x.Kind, RecordedAt: otep.Time{Time: x.RecordedAt}.String(), Number: x.Shipment.Number, PackageNumber: cloud.OrNull(x.Package), Estimate: x.Estimate, Container: x.Container, Alias: x.Alias}
	if x.Event != nil {
		e := x.Event.Fill(cmp.Or(x.Shipment.Profile, otep.DefaultProfile))
		e.StatusLabel = locale.Status(lang, e.StatusCode)
		c.Event = &ShownEvent{Event: e}
		if x.Kind == cloud.EventWithdrawn || x.Kind == cloud.EventCorrected {
			c.Event.Withdrawn = withdrawnBody(x.Withdrawal)
		}
	}
	c.text = feedText(c)
	if x.forms == nil {
		x.forms = map[string]Change{}
	}
	x.forms[lang] = c
	return c
}

// feedText is a change as JSON, with nothing escaped for HTML.
func feedText(c Change) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(c) // what was stored as JSON always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

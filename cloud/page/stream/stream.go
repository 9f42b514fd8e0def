// Package stream keeps open pages up to date. It knows of pages nothing but their
// topics: what is read for one, how that is shown, and what changes concern it.
//
// Readers of a topic with the same rights share a source, and those of them with the
// same language, zone and level share a view. After a change that concerns it a source
// is read once and each of its views is rendered once, at most every Config.Pace; the
// sections that look different go to all readers of the view as one slice of bytes. A
// change that concerns no source costs a look into an index. A notice that is lost loses
// nothing for longer than Config.Look: a source that has readers is then read again,
// also because other nodes commit without a notice here.
//
// A reader that has more than Config.Behind bytes to take is dropped and comes back.
// Events are numbered in one order over all topics, so that a reader that comes back
// with a number gets what changed after it; a number of another hub, or of before
// a source was known, gets all sections. Safe for concurrent use.
package stream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Config is what New needs. Zero values are the usual ones.
type Config struct {
	Pace   time.Duration // least time between two reads of a source; 200 ms
	Beat   time.Duration // silence after which a reader gets a heartbeat; 3 s
	Look   time.Duration // after which a source is read again without a notice; 15 s
	Linger time.Duration // that a source without readers is kept; 60 s
	Most   int           // readers; 20,000
	Each   int           // readers of one session; 5
	Behind int           // bytes that a reader may have to take; 64 KB
	Reads  int           // sources that are read at once; 4
	// Owner finds the business of a cabinet, for changes that name the cabinet alone.
	// nil: they concern topics of that cabinet only.
	Owner func(ctx context.Context, d cloud.DeviceID) (cloud.BusinessID, error)
	Log   *slog.Logger
}

// Errors of topics and readers.
var (
	// ErrFull says that there are too many readers, of the node or of the session.
	ErrFull = errors.New("too many streams")
	// ErrEnded is of Topic.Check and Topic.Read: the reader may not see the topic any
	// longer.
	ErrEnded = errors.New("the right to read has ended")
)

// Topic is something that a reader follows.
type Topic struct {
	Name string // in events
	Key  string // of the source: what is read, with the rights that change it
	View string // of the view: how that is shown
	// Wants are the changes that concern the topic.
	Wants []Want
	// Read reads what the topic shows. Topics with the same Key read the same.
	Read func(ctx context.Context) (any, error)
	// Render shows what was read. Topics with the same Key and View show the same. The
	// order of sections is that in which a page takes them.
	Render func(data any) ([]Section, error)
	// Check says whether the reader may still read: nil, ErrEnded, or why that is not
	// known. It runs before each read. nil: everyone may.
	Check func(ctx context.Context) error
	// Sees says whether the reader may see what was read. nil: every reader may.
	Sees func(data any) bool
	// Look is in place of Config.Look, Pace of Config.Pace.
	Look, Pace time.Duration
}

// Section is a part of a page.
type Section struct {
	Name, HTML string
	// Shape stands in for HTML where it is compared: a section whose parts are sections
	// themselves changes when its parts are others. "": HTML is compared.
	Shape string
	// Of is the section that holds it too: it is not sent together with that. "": none.
	Of string
}

// Want is a kind of changes. A change concerns a topic when it has the same subject, the
// one member that is not zero, and one of the kinds. The state of a business and what
// is named for all concern each topic of it.
type Want struct {
	Subject cloud.Touch
	Kinds   []string // nil: all
}

// always are kinds that concern all topics of a business.
var always = map[string]bool{"Businesses": true, "BusinessStates": true}

// Hub has the sources of one node.
type Hub struct {
	cfg   Config
	epoch string
	turns chan struct{} // of reads

	mu       sync.Mutex // guards what follows, and all of sources and views
	number   int64      // of the latest event
	sources  map[string]*source
	index    map[cloud.Touch]map[*source]bool // by subject
	accounts map[cloud.AccountID]map[*Reader]bool
	readers  int
	sessions map[string]int // readers by session
	stats    Stats

	queueMu  sync.Mutex
	queue    []cloud.Touch
	draining bool
	owners   map[cloud.DeviceID]cloud.BusinessID // of the draining goroutine
}

// Stats counts what a hub did.
type Stats struct {
	Readers, Sources       int
	Reads, Renders, Events int // events by reader
	Dropped                int // readers that were behind
	Ended                  int // readers whose right ended
}

// maxQueue are the touches that wait to be looked at; when there are more, all sources
// are read again.
const maxQueue = 16 << 10

// New makes a hub. It starts nothing: goroutines run while there is something to do.
func New(cfg Config) *Hub {
	cfg.Pace = cmp.Or(cfg.Pace, 200*time.Millisecond)
	cfg.Beat = cmp.Or(cfg.Beat, 3*time.Second)
	cfg.Look = cmp.Or(cfg.Look, 15*time.Second)
	cfg.Linger = cmp.Or(cfg.Linger, time.Minute)
	cfg.Most = cmp.Or(cfg.Most, 20_000)
	cfg.Each = cmp.Or(cfg.Each, 5)
	cfg.Behind = cmp.Or(cfg.Behind, 64<<10)
	cfg.Reads = cmp.Or(cfg.Reads, 4)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &Hub{cfg: cfg, epoch: hex.EncodeToString(b[:]), turns: make(chan struct{}, cfg.Reads), sources: map[string]*source{}, index: map[cloud.Touch]map[*source]bool{},
		accounts: map[cloud.AccountID]map[*Reader]bool{}, sessions: map[string]int{}, owners: map[cloud.DeviceID]cloud.BusinessID{}}
}

// ID is the id of the latest event. A page that was read after that was asked shows all
// up to it.
func (h *Hub) ID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.id(h.number)
}

func (h *Hub) id(n int64) string { return h.epoch + "-" + strconv.FormatInt(n, 10) }

// numberOf is the number of an id; -1 for one of another hub.
func (h *Hub) numberOf(id string) int64 {
	epoch, text, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(text, 10, 64)
	if epoch != h.epoch || err != nil || n < 0 {
		return -1
	}
	return n
}

// Stats says what the hub did so far.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.stats
	s.Readers, s.Sources = h.readers, len(h.sources)
	return s
}

// Committed takes what a commit is about. It never waits.
func (h *Hub) Committed(list []cloud.Touch) {
	if len(list) == 0 {
		return
	}
	h.queueMu.Lock()
	defer h.queueMu.Unlock()
	if len(h.queue) > maxQueue {
		h.queue = append(h.queue[:0], cloud.Touch{}) // about everything
	} else {
		h.queue = append(h.queue, list...)
	}
	if !h.draining {
		h.draining = true
		go h.drain()
	}
}

// drain looks at touches until there are none.
func (h *Hub) drain() {
	for {
		h.queueMu.Lock()
		list := h.queue
		h.queue = nil
		if len(list) == 0 {
			h.draining = false
			h.queueMu.Unlock()
			return
		}
		h.queueMu.Unlock()
		for _, t := range list {
			h.touch(t)
		}
	}
}

// touch has the sources read again that a change concerns.
func (h *Hub) touch(t cloud.Touch) {
	if t.Business == 0 && t.Device != 0 {
		t.Business = h.owner(t.Device)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t == (cloud.Touch{}) {
		for _, s := range h.sources {
			s.change()
		}
		return
	}
	for _, subject := range subjects(t) {
		for s := range h.index[subject] {
			if s.wants(subject, t.Kind) {
				s.change()
			}
		}
	}
	for r := range h.accounts[t.Account] {
		for _, m := range r.members {
			m.source.change()
		}
	}
}

// subjects are what a change is about, each alone.
func subjects(t cloud.Touch) (out []cloud.Touch) {
	for _, s := range []cloud.Touch{{Business: t.Business}, {Device: t.Device}, {Shipment: t.Shipment}, {Order: t.Order}, {Delivery: t.Delivery}} {
		if s != (cloud.Touch{}) {
			out = append(out, s)
		}
	}
	return out
}

// maxOwners are the cabinets whose business is remembered; it does not change.
const maxOwners = 100_000

// owner is the business of a cabinet; 0: not known, or there is no business to ask about.
func (h *Hub) owner(d cloud.DeviceID) cloud.BusinessID {
	if b, ok := h.owners[d]; ok {
		return b
	}
	h.mu.Lock()
	none := len(h.sources) == 0
	h.mu.Unlock()
	if none || h.cfg.Owner == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	b, err := h.cfg.Owner(ctx, d)
	if err != nil {
		h.cfg.Log.Warn("find the business of a cabinet for live pages", "device", int64(d), "err", err)
		return 0
	}
	if len(h.owners) >= maxOwners {
		clear(h.owners)
	}
	h.owners[d] = b
	return b
}

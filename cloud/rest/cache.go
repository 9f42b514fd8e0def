package rest

import (
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// answers keeps what many callers may read for a moment: a parcel that many people
// watch is folded once a second and not once a call. A change that this node commits
// about its shipment or order is forgotten at once; what another node commits shows after
// answerLife at the latest. Bounded by count and bytes: when it is full it
// begins anew.
type answers struct {
	mu      sync.Mutex
	list    map[string]*cachedAnswer
	about   map[subject][]string // keys of list
	changed map[subject]uint64   // the last changes, by seq; those of before are below floor
	seq     uint64
	floor   uint64
	bytes   int
}

// subject is a shipment or an order; the other is 0.
type subject struct {
	shipment cloud.ShipmentID
	order    cloud.OrderID
}

type cachedAnswer struct {
	reply reply
	until time.Time
}

const (
	answerLife  = time.Second
	answerBytes = 32 << 20
	answerCount = 8192
)

func newAnswers() *answers {
	return &answers{list: map[string]*cachedAnswer{}, about: map[subject][]string{}, changed: map[subject]uint64{}}
}

func (a *answers) find(key []byte, now time.Time) (reply, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.list[string(key)]
	if k == nil || now.After(k.until) {
		return reply{}, false
	}
	return k.reply, true
}

// begin is the state of the changes before something is read.
func (a *answers) begin() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq
}

// subjects are those that an answer is about.
func subjects(of cloud.AnswerSubject) []subject {
	if of.Order == 0 {
		return []subject{{shipment: of.Shipment}}
	}
	return []subject{{shipment: of.Shipment}, {order: of.Order}}
}

// store keeps an answer that was read since begin, unless what it is about has changed meanwhile.
func (a *answers) store(key string, r reply, begun uint64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	about := subjects(r.about)
	if begun < a.floor || slices.ContainsFunc(about, func(x subject) bool { return a.changed[x] > begun }) {
		return
	}
	if len(a.list) >= answerCount || a.bytes+len(r.body) > answerBytes {
		clear(a.list)
		clear(a.about)
		a.bytes = 0
	}
	if old := a.list[key]; old != nil {
		a.bytes -= len(old.reply.body)
	} else {
		for _, x := range about {
			a.about[x] = append(a.about[x], key)
		}
	}
	a.list[key] = &cachedAnswer{r, now.Add(answerLife)}
	a.bytes += len(r.body)
}

// forget drops what is about something that has changed.
func (a *answers) forget(changed []subject) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	if len(a.changed) >= answerCount {
		clear(a.changed)
		a.floor = a.seq
	}
	for _, x := range changed {
		a.changed[x] = a.seq
		for _, key := range a.about[x] {
			if k := a.list[key]; k != nil {
				a.bytes -= len(k.reply.body)
				delete(a.list, key)
			}
		}
		delete(a.about, x)
	}
}

// Committed forgets what a commit has made old. It returns at once.
func (s *Server) Committed(ch *cloud.Changes) {
	var changed []subject
	for _, x := range ch.Shipments {
		changed = append(changed, subject{shipment: x.ID})
	}
	for _, x := range ch.Events {
		changed = append(changed, subject{shipment: x.ShipmentID})
	}
	for _, x := range ch.Withdrawn {
		changed = append(changed, subject{shipment: x.ShipmentID})
	}
	for _, x := range ch.Orders {
		changed = append(changed, subject{order: x.ID})
	}
	for _, x := range ch.DroppedOrders {
		changed = append(changed, subject{order: x.ID})
	}
	if len(changed) > 0 {
		s.answers.forget(changed)
	}
}

// answerKey is everything that an answer to an anonymous caller depends on, beside what it is about.
func answerKey(ctx *fasthttp.RequestCtx, c catalog.Who) []byte {
	h := &ctx.Request.Header
	b := append(make([]byte, 0, 128), ctx.RequestURI()...)
	b = append(append(b, 0), c.Language...)
	b = append(append(b, 0), c.BaseURL...)
	b = append(append(b, 0), h.Peek("Accept")...)
	return append(append(b, 0), h.Peek("X-Tracking-Key")...)
}

// accountKey is answerKey for a caller with an account, whose answers are kept where no other node writes.
// What is asked for with a trace is always read: its spans say how.
func (s *Server) accountKey(ctx *fasthttp.RequestCtx, who catalog.Who, c cloud.Caller) []byte {
	if !s.cfg.Alone || c.Account.ID == 0 || c.Recipient != 0 || c.Pass != 0 || len(ctx.Request.Header.Peek("traceparent")) > 0 {
		return nil
	}
	b := append(answerKey(ctx, who), 0)
	b = append(append(b, c.Language...), 0)
	return append(b, c.OwnerKey()...)
}

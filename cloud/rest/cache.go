package rest

import (
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// answers keeps what anybody may read for a moment: a parcel that many people
// watch is folded once a second and not once a call. A change that this node commits
// about a shipment is forgotten at once; what another node commits shows after
// answerLife at the latest. Bounded by count and bytes: when it is full it
// begins anew.
type answers struct {
	mu    sync.Mutex
	list  map[string]*cachedAnswer
	about map[cloud.ShipmentID][]string // keys of list
	bytes int
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
	return &answers{list: map[string]*cachedAnswer{}, about: map[cloud.ShipmentID][]string{}}
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

func (a *answers) store(key string, r reply, about cloud.ShipmentID, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) >= answerCount || a.bytes+len(r.body) > answerBytes {
		clear(a.list)
		clear(a.about)
		a.bytes = 0
	}
	if old := a.list[key]; old != nil {
		a.bytes -= len(old.reply.body)
	} else {
		a.about[about] = append(a.about[about], key)
	}
	a.list[key] = &cachedAnswer{r, now.Add(answerLife)}
	a.bytes += len(r.body)
}

// Committed forgets what a commit has made old. It returns at once.
func (s *Server) Committed(ch *cloud.Changes) {
	if len(ch.Shipments)+len(ch.Events)+len(ch.Withdrawn) == 0 {
		return
	}
	var ids []cloud.ShipmentID
	for _, x := range ch.Shipments {
		ids = append(ids, x.ID)
	}
	for _, x := range ch.Events {
		ids = append(ids, x.ShipmentID)
	}
	for _, x := range ch.Withdrawn {
		ids = append(ids, x.ShipmentID)
	}
	slices.Sort(ids)
	a := s.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.Compact(ids) {
		for _, key := range a.about[id] {
			if k := a.list[key]; k != nil {
				a.bytes -= len(k.reply.body)
				delete(a.list, key)
			}
		}
		delete(a.about, id)
	}
}

// answerKey is everything that an answer to an anonymous caller depends on.
func answerKey(ctx *fasthttp.RequestCtx, c catalog.Who) []byte {
	h := &ctx.Request.Header
	b := append(make([]byte, 0, 128), ctx.RequestURI()...)
	b = append(append(b, 0), c.Language...)
	b = append(append(b, 0), c.BaseURL...)
	b = append(append(b, 0), h.Peek("Accept")...)
	return append(append(b, 0), h.Peek("X-Tracking-Key")...)
}

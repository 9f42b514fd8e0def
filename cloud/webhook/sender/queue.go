package sender

import (
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

const (
	perURL        = 5        // attempts in flight to one URL
	perURLWaiting = 2000     // deliveries to one URL that wait in memory
	maxWaiting    = 20_000   // deliveries that wait in memory
	maxBytes      = 64 << 20 // of their bodies
	retryShare    = 0.3      // of the slots, while first attempts wait
	slowAnswer    = time.Second
	capStep       = 100              // quick successes in a row that raise the cap by one
	probeEvery    = 10 * time.Second // attempts at a URL that never answered well
)

// What holds a delivery up beside its plan.
const (
	waitRate    = "rate"
	waitBreaker = "breaker"
	waitOrder   = "order"
	waitAfter   = "retry_after"
	waitProxy   = "proxy"
)

// rank is where a delivery stands among those about one reference to one URL: by the
// number of the reference, and where several have the same, or none, by its id.
type rank struct {
	sequence int64
	id       cloud.OutboxID
}

func (p rank) before(o rank) bool {
	return p.sequence < o.sequence || p.sequence == o.sequence && p.id < o.id
}

func rankOf(w *cloud.OutboxWork) rank { return rank{w.Event.Sequence, w.Delivery.ID} }

// item is one delivery in memory, with its lease.
type item struct {
	work   cloud.OutboxWork
	line   *line
	url    *urlQueue
	waited string // what held it up last, "" for nothing
}

// planned is when the delivery was due.
func (it *item) planned() time.Time {
	if it.work.Delivery.NextAt.IsZero() {
		return it.work.Delivery.CreatedAt
	}
	return it.work.Delivery.NextAt
}

func (it *item) retry() bool { return it.work.Delivery.Attempts > 0 }

// line is the deliveries about one reference to one URL: one at a time, oldest
// first.
type line struct {
	ref     reference
	items   itemHeap
	busy    bool
	blocked rank      // a delivery that waits for its first retry goes first …
	until   time.Time // … if it comes by then
	queued  bool      // in urlQueue.ready
	ended   time.Time // of the last attempt
}

// itemHeap is ordered by rank, which is the order of emission.
type itemHeap []*item

func (h itemHeap) Len() int           { return len(h) }
func (h itemHeap) Less(i, j int) bool { return rankOf(&h[i].work).before(rankOf(&h[j].work)) }
func (h itemHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *itemHeap) Push(x any)        { *h = append(*h, x.(*item)) }
func (h *itemHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return it
}

// free reports whether the line's first item may go.
func (l *line) free(now time.Time) bool {
	if l.busy || len(l.items) == 0 {
		return false
	}
	return l.blocked == rank{} || !l.blocked.before(rankOf(&l.items[0].work)) || !now.Before(l.until)
}

// address is a URL of one account. Others may name the same: how it answers them,
// whose secrets it may not know, and what they have set for it, is no matter of
// this account's.
type address struct {
	account cloud.BusinessID
	url     string
}

// urlQueue is what waits for one address, and how it is doing.
type urlQueue struct {
	address
	lines     map[reference]*line
	ready     []*line // with items; those that are not free are passed over
	count     int
	inFlight  int
	cap       int
	quick     int           // quick successes in a row
	notBefore time.Time     // Retry-After, a breaker that opened again, or the proxy
	held      string        // which of them
	reopened  int           // times the breaker opened without closing between
	unproven  bool          // it never answered well: one attempt every probeEvery
	proven    bool          // it has answered well since this was made
	probeAt   time.Time     // not before, while it is unproven
	passed    string        // why it was passed over last …
	passedAt  time.Time     // … and when
	rate      *rate.Limiter // nil: no bound
	breaker   *gobreaker.TwoStepCircuitBreaker[any]
	inRing    bool

	shutUntil time.Time // the breaker, when it opened last
}

// queues holds everything that waits in memory and says what goes next:
// accounts take turns, within an account its URLs, within a URL its references.
// It is not safe for concurrent use.
type queues struct {
	urls     map[address]*urlQueue
	accounts map[cloud.BusinessID][]*urlQueue // rings
	ring     []cloud.BusinessID
	held     map[cloud.OutboxID]bool

	slots           int
	count, bytes    int
	firstWaiting    int
	inFlight        int
	retriesInFlight int
	postponed       map[string]int
	wakeAt          time.Time // when something may go that was passed over; zero: the next poll sees
}

func newQueues(slots int) *queues {
	return &queues{urls: map[address]*urlQueue{}, accounts: map[cloud.BusinessID][]*urlQueue{}, held: map[cloud.OutboxID]bool{},
		slots: slots, postponed: map[string]int{}}
}

// room is how many more deliveries to an address fit.
func (q *queues) room(to address) int {
	n := perURLWaiting
	if u := q.urls[to]; u != nil {
		n -= u.count
	}
	if q.bytes >= maxBytes {
		return 0
	}
	return max(min(n, maxWaiting-q.count), 0)
}

// push adds a delivery; false when it does not fit or is there already.
func (q *queues) push(to address, w cloud.OutboxWork) bool {
	if q.held[w.Delivery.ID] || q.room(to) == 0 {
		return false
	}
	u, l := q.line(to, lineOf(&w))
	it := &item{work: w, line: l, url: u}
	heap.Push(&l.items, it)
	u.count++
	q.count++
	q.bytes += len(w.Event.Body)
	if !it.retry() {
		q.firstWaiting++
	}
	q.held[w.Delivery.ID] = true
	u.enqueue(l)
	q.enter(u)
	return true
}

// reference names a line among those of a URL. What is sent again has a line of its own:
// it waits for no retries.
type reference struct {
	kind, id string
	again    bool
}

func lineOf(w *cloud.OutboxWork) reference {
	return reference{w.Event.ReferenceType, w.Event.ReferenceID, w.Delivery.ReplayOf != 0}
}

// line is a line of an address; both are made when they are not there.
func (q *queues) line(to address, ref reference) (*urlQueue, *line) {
	u := q.urls[to]
	if u == nil {
		u = &urlQueue{address: to, lines: map[reference]*line{}, cap: perURL, breaker: newBreaker()}
		q.urls[to] = u
	}
	l := u.lines[ref]
	if l == nil {
		l = &line{ref: ref}
		u.lines[ref] = l
	}
	return u, l
}

// block lets nothing behind a delivery of a line go that waits for its first retry in the
// store, unless it has not come by a time.
func (q *queues) block(to address, ref reference, at rank, until time.Time) {
	_, l := q.line(to, ref)
	if !at.before(l.blocked) {
		l.blocked, l.until = at, until
	}
}

func (u *urlQueue) enqueue(l *line) {
	if !l.queued && len(l.items) > 0 {
		l.queued = true
		u.ready = append(u.ready, l)
	}
}

// enter puts a URL with work into its account's ring.
func (q *queues) enter(u *urlQueue) {
	if u.inRing || len(u.ready) == 0 {
		return
	}
	u.inRing = true
	if len(q.accounts[u.account]) == 0 {
		q.ring = append(q.ring, u.account)
	}
	q.accounts[u.account] = append(q.accounts[u.account], u)
}

// pop takes the next delivery to send and the function that tells its breaker
// how it went; nil when nothing may go now.
func (q *queues) pop(now time.Time) (*item, func(error)) {
	if q.inFlight >= q.slots {
		return nil, nil
	}
	for range len(q.ring) {
		account := q.ring[0]
		q.ring = q.ring[1:]
		it, done := q.popAccount(account, now)
		if len(q.accounts[account]) > 0 {
			q.ring = append(q.ring, account)
		} else {
			delete(q.accounts, account)
		}
		if it != nil {
			return it, done
		}
	}
	return nil, nil
}

func (q *queues) popAccount(account cloud.BusinessID, now time.Time) (it *item, done func(error)) {
	us := q.accounts[account]
	for range len(us) {
		u := us[0]
		us = us[1:]
		it, done = q.popURL(u, now)
		if len(u.ready) > 0 {
			us = append(us, u)
		} else {
			u.inRing = false
		}
		if it != nil {
			break
		}
	}
	q.accounts[account] = us
	return it, done
}

func (q *queues) popURL(u *urlQueue, now time.Time) (*item, func(error)) {
	if u.inFlight >= u.cap {
		return nil, nil
	}
	if now.Before(u.notBefore) {
		return q.pass(u, u.held, now)
	}
	if u.unproven && (u.inFlight > 0 || now.Before(u.probeAt)) {
		return q.pass(u, waitRate, now)
	}
	if u.rate != nil && u.rate.TokensAt(now) < 1 {
		q.wake(now.Add(time.Duration((1 - u.rate.TokensAt(now)) / float64(u.rate.Limit()) * float64(time.Second))))
		return q.pass(u, waitRate, now)
	}
	l := u.next(now, q.retriesFull())
	if l == nil {
		return nil, nil
	}
	done, err := u.breaker.Allow()
	if err != nil {
		return q.pass(u, waitBreaker, now)
	}
	it := heap.Pop(&l.items).(*item)
	switch planned := it.planned(); {
	case u.passedAt.After(planned):
		it.waited = u.passed
	case l.ended.After(planned):
		it.waited = waitOrder
	}
	if u.rate != nil {
		u.rate.AllowN(now, 1)
	}
	if u.unproven {
		u.probeAt = now.Add(probeEvery)
	}
	l.busy, l.blocked = true, rank{}
	u.remove(l)
	u.enqueue(l)
	u.count--
	u.inFlight++
	q.count--
	q.inFlight++
	q.bytes -= len(it.work.Event.Body)
	if it.retry() {
		q.retriesInFlight++
	} else {
		q.firstWaiting--
	}
	return it, done
}

// pass notes why a URL is passed over.
func (q *queues) pass(u *urlQueue, reason string, now time.Time) (*item, func(error)) {
	q.postponed[reason]++
	u.passed, u.passedAt = reason, now
	return nil, nil
}

// wake asks to be looked at again by then.
func (q *queues) wake(at time.Time) {
	if q.wakeAt.IsZero() || at.Before(q.wakeAt) {
		q.wakeAt = at
	}
}

// limit bounds the attempts at an address by what its receivers want, 0 for
// nothing. Of several the last one counts.
func (q *queues) limit(at address, perSecond float64, burst int) {
	u := q.urls[at]
	switch {
	case u == nil:
	case perSecond == 0:
		u.rate = nil
	case u.rate == nil:
		u.rate = rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))
	case u.rate.Limit() != rate.Limit(perSecond) || u.rate.Burst() != max(burst, 1): // what was used up stays so
		u.rate.SetLimit(rate.Limit(perSecond))
		u.rate.SetBurst(max(burst, 1))
	}
}

// prove says whether an address has ever answered well. Without that it is tried
// seldom, so that no receiver is flooded at another's wish.
func (q *queues) prove(at address, proven bool) {
	if u := q.urls[at]; u != nil {
		u.unproven = !proven && !u.proven
	}
}

func (q *queues) retriesFull() bool {
	return q.firstWaiting > 0 && float64(q.retriesInFlight) >= retryShare*float64(q.slots)
}

// next is the line whose turn it is. Lines that may not go keep their place
// behind those that may. An open breaker is probed with the oldest delivery.
func (u *urlQueue) next(now time.Time, noRetries bool) *line {
	ok := func(l *line) bool { return l.free(now) && !(noRetries && l.items[0].retry()) }
	if u.breaker.State() != gobreaker.StateClosed {
		var oldest *line
		for _, l := range u.ready {
			if ok(l) && (oldest == nil || l.items[0].work.Delivery.ID < oldest.items[0].work.Delivery.ID) {
				oldest = l
			}
		}
		return oldest
	}
	for i, l := range u.ready {
		if ok(l) {
			u.ready = append(u.ready, u.ready[:i]...)
			u.ready = u.ready[i:]
			return l
		}
	}
	return nil
}

// remove takes l out of the ready list.
func (u *urlQueue) remove(l *line) {
	for i, r := range u.ready {
		if r == l {
			u.ready = append(u.ready[:i], u.ready[i+1:]...)
			break
		}
	}
	l.queued = false
}

// done gives the slot of it back and notes how the URL is doing.
func (q *queues) done(it *item, v outcome, a *fetch.Answer, now time.Time) {
	u, l := it.url, it.line
	u.inFlight--
	q.inFlight--
	if it.retry() {
		q.retriesInFlight--
	}
	delete(q.held, it.work.Delivery.ID)
	l.busy, l.ended = false, now
	if v.state == cloud.OutboxRetrying && it.work.Delivery.Attempts == 0 && !it.work.Event.Supersedes() {
		l.blocked, l.until = rankOf(&it.work), v.next.Add(fetch.NameLife)
	}
	u.adapt(a, now)
	if a.Code == fetch.CodeProxy {
		u.hold(v.next, waitProxy)
	}
	if len(l.items) == 0 && l.blocked == (rank{}) {
		delete(u.lines, l.ref)
	}
	u.enqueue(l)
	q.enter(u)
}

// adapt moves the cap and the wait that all deliveries to a URL share.
func (u *urlQueue) adapt(a *fetch.Answer, now time.Time) {
	if a.Status != 0 && a.Code == "" {
		u.proven, u.unproven = true, false
	}
	switch {
	case a.Unsent():
	case a.Status == 429 || a.Status == 503 || a.Code == fetch.CodeTimeout:
		u.cap, u.quick = max(u.cap/2, 1), 0
	case a.Code == "" && a.Phases.Total < slowAnswer:
		if u.quick++; u.quick >= capStep {
			u.cap, u.quick = min(u.cap+1, perURL), 0
		}
	}
	if after, ok := retryAfter(a.RetryAfter, now); ok && a.Code != "" {
		u.hold(now.Add(after), waitAfter)
	}
}

// hold leaves the address alone until a time, unless it is left alone for longer.
func (u *urlQueue) hold(until time.Time, why string) {
	if until.After(u.notBefore) {
		u.notBefore, u.held = until, why
	}
}

const (
	breakerOpen = 30 * time.Second
	breakerMost = 15 * time.Minute
)

// newBreaker opens after 10 failures in a row, or when at least half of 20 or
// more attempts within a minute failed. After it opens one probe decides.
func newBreaker() *gobreaker.TwoStepCircuitBreaker[any] {
	return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests: 1, Interval: time.Minute, Timeout: breakerOpen,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= 10 || c.Requests >= 20 && 2*c.TotalFailures >= c.Requests
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errUnsent) },
	})
}

// What breakers count.
var (
	errFailed = errors.New("attempt failed")
	errUnsent = errors.New("nothing was sent, which says nothing about the receiver")
)

// report tells the breaker of an attempt. Every opening in a row is twice as
// long as the one before.
func (u *urlQueue) report(done func(error), a *fetch.Answer, now time.Time) {
	before := u.breaker.State()
	switch {
	case a.Unsent():
		done(errUnsent)
		return
	case a.Code == "":
		done(nil)
		u.reopened = 0
		return
	}
	done(errFailed)
	if u.breaker.State() == gobreaker.StateOpen && before != gobreaker.StateOpen {
		open := min(breakerOpen<<min(u.reopened, 10), breakerMost)
		u.reopened++
		u.shutUntil = now.Add(open)
		if open > breakerOpen {
			u.hold(now.Add(open), waitBreaker)
		}
	}
}

// holds says why nothing goes to an address at now, and until when; "" when it may.
func (q *queues) holds(at address, now time.Time) (reason string, until time.Time) {
	u := q.urls[at]
	switch {
	case u == nil:
	case now.Before(u.notBefore):
		return u.held, u.notBefore
	case u.breaker.State() != gobreaker.StateClosed:
		return waitBreaker, u.shutUntil
	}
	return "", time.Time{}
}

// drain takes out what waits of some slots, to be given back.
func (q *queues) drain(slots uint64) []cloud.OutboxResult {
	return q.takeOut(func(w *cloud.OutboxWork) bool { return slots == allSlots || slots>>slotOf(w)&1 == 1 })
}

// takeOut takes out what waits and is chosen, and gives its leases. Deliveries in flight, and
// how each URL is doing, stay.
func (q *queues) takeOut(chosen func(*cloud.OutboxWork) bool) []cloud.OutboxResult {
	var out []cloud.OutboxResult
	for _, u := range q.urls {
		for _, l := range u.lines {
			kept := l.items[:0]
			for _, it := range l.items {
				if !chosen(&it.work) {
					kept = append(kept, it)
					continue
				}
				out = append(out, leaseOf(&it.work))
				delete(q.held, it.work.Delivery.ID)
				u.count--
				q.count--
				q.bytes -= len(it.work.Event.Body)
				if !it.retry() {
					q.firstWaiting--
				}
			}
			clear(l.items[len(kept):])
			l.items = kept
			heap.Init(&l.items)
		}
		u.ready = slices.DeleteFunc(u.ready, func(l *line) bool {
			l.queued = len(l.items) > 0
			return !l.queued
		})
	}
	return out
}

// leaseOf is a lease to give back.
func leaseOf(w *cloud.OutboxWork) cloud.OutboxResult {
	return cloud.OutboxResult{ID: w.Delivery.ID, Generation: w.Delivery.Generation}
}

// forget drops URLs that have nothing left and are well, and lines whose
// blocker never came.
func (q *queues) forget(now time.Time) {
	for at, u := range q.urls {
		for ref, l := range u.lines {
			if len(l.items) == 0 && !l.busy && now.After(l.until) {
				delete(u.lines, ref)
			}
		}
		if len(u.lines) == 0 && u.inFlight == 0 && (u.rate == nil || u.rate.TokensAt(now) >= float64(u.rate.Burst())) && u.breaker.State() == gobreaker.StateClosed && now.After(u.notBefore) && now.After(u.probeAt) && u.cap == perURL &&
			u.breaker.Counts().TotalFailures == 0 {
			delete(q.urls, at)
		}
	}
}

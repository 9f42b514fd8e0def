package uplink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	connectTimeout = 10 * time.Second
	writeTimeout   = 10 * time.Second
	keepAlive      = 30 * time.Second
	answerWait     = 2 * time.Second        // for acknowledgements and time after a status
	statusEvery    = 10 * time.Minute       // with a nonce
	statusGap      = 200 * time.Millisecond // between statuses
	nonceGap       = 5 * time.Second        // between nonces that ask for a whole code list
	untimedGap     = time.Minute            // between nonces as long as the time was not answered
	lostGap        = time.Minute            // between nonces of statuses that say that the memory is lost
	epochGap       = 30 * time.Second       // between new epochs, so that a cloud that always refuses does not wear out the store
	readAgain      = 5 * time.Second        // after the store could not be read
	deafAfter      = time.Minute            // without an acknowledgement of what the broker has, and up to a third more
)

// errRefused is a login or subscription that the broker turned down.
var errRefused = errors.New("refused by the broker")

// errDeaf ends a session whose connection stands and brings no acknowledgement: what is
// between the agent and the cloud's intake has lost one of its directions.
var errDeaf = errors.New("nothing that was sent is acknowledged")

// errAgain ends a session that is to start again at the first address.
var errAgain = errors.New("other addresses come first")

// session is one connection. Its loop's goroutine owns everything below mqtt's
// own channels.
type session struct {
	u      *Uplink
	client mqtt.Client
	conn   atomic.Value // holder of the connection, so that it can be cut at any time
	lost   chan error
	acks   chan wire.Ack
	timed  chan struct{} // a time answer came
	out    chan message  // to the writer, one at a time
	sent   chan written  // from the writer
	onWire chan struct{} // a publish was written
	asked  atomic.Pointer[question]

	busy        bool // the writer has a message
	epoch       wire.Epoch
	lanes       [wire.Lanes]sender
	credit      credit
	statusDue   bool
	statusAt    time.Time // last one
	nonceAt     time.Time // last one with a nonce, zero to send one now
	nonceDue    bool      // the next one carries a nonce: a whole list is needed
	answered    [wire.Lanes]bool
	timeKnown   bool
	answerUntil time.Time
	epochAt     time.Time
	readFailed  time.Time
	first       mqtt.Token    // of the first batch since the last acknowledgement, nil when there is none
	unheard     time.Time     // since when the broker has it, zero before
	patience    time.Duration // for its acknowledgement
}

// question is the nonce that was sent last.
type question struct {
	nonce   []byte
	at      time.Time
	earlier [][]byte
}

type connHolder struct{ net.Conn }

// watched tells when a publish has been written to the connection, and breaks it
// off when the broker sends a packet that is too large. The library keeps some
// messages between its own goroutines, so without the first a record that just
// happened would wait behind all of them.
type watched struct {
	net.Conn
	written chan struct{}
	in      frames // used by the one goroutine that reads
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if bad := w.in.feed(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err == nil && len(p) > 0 && p[0]>>4 == packets.Publish { // the library writes a packet in one call
		select {
		case w.written <- struct{}{}:
		default:
		}
	}
	return n, err
}

// written is a message that is on the wire, or could not be sent.
type written struct {
	token mqtt.Token // of a batch; it is done once the broker has it
	err   error
}

type message struct {
	topic    string
	retained bool
	payload  []byte
}

// connect runs one session: it returns how long it stood and why it ended.
func (u *Uplink) connect(ctx context.Context, at broker, wg *sync.WaitGroup) (up time.Duration, err error) {
	s := &session{u: u, lost: make(chan error, 1), acks: make(chan wire.Ack, 256), timed: make(chan struct{}, 1),
		out: make(chan message), sent: make(chan written, 1), onWire: make(chan struct{}, 1)}
	u.count(func(c *Counters) { c.Attempts++ })
	broker := at.url
	dialing, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	s.client = mqtt.NewClient(s.options(dialing, broker))
	defer s.close()
	defer u.endStatuses()
	if err := s.wait(dialing, s.client.Connect()); err != nil {
		return 0, fmt.Errorf("connect to %s: %w", broker.Host, err)
	}
	began := time.Now()
	u.count(func(c *Counters) { c.Connects++ })
	if err := s.subscribe(ctx); err != nil {
		return max(time.Since(began), 1), err
	}
	u.setConnected(at.name)
	defer u.setConnected("")
	u.cfg.Logger.Info("connected", "broker", broker.Host)
	wg.Go(s.write)
	err = s.loop(ctx)
	if ctx.Err() != nil || errors.Is(err, errAgain) {
		s.goodbye()
	}
	close(s.out)
	return max(time.Since(began), 1), err
}

func (u *Uplink) setConnected(address string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.connected = address
}

// options are for one connection: the library neither retries nor reconnects.
// Its callbacks here never block, so its own order of messages can be kept.
func (s *session) options(ctx context.Context, broker *url.URL) *mqtt.ClientOptions {
	cfg := &s.u.cfg
	o := mqtt.NewClientOptions()
	o.Servers = []*url.URL{broker}
	o.SetClientID("dev-" + cfg.DeviceCode)
	o.SetUsername(cfg.DeviceCode)
	o.SetPassword(cfg.Secret)
	o.SetProtocolVersion(4)
	o.SetCleanSession(true)
	o.SetAutoReconnect(false)
	o.SetConnectRetry(false)
	o.SetConnectTimeout(connectTimeout)
	o.SetWriteTimeout(writeTimeout)
	o.SetKeepAlive(keepAlive)
	o.SetOrderMatters(true)
	o.SetBinaryWill(s.u.topics.status, s.offline(s.u.lastStatus()), 1, true)
	o.SetCustomOpenConnectionFn(func(addr *url.URL, _ mqtt.ClientOptions) (net.Conn, error) {
		c, err := cfg.Dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil { // given up meanwhile
			return nil, errors.Join(ctx.Err(), c.Close())
		}
		s.conn.Store(connHolder{c})
		return &watched{Conn: c, written: s.onWire}, nil
	})
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) {
		select {
		case s.lost <- err:
		default:
		}
	})
	o.SetDefaultPublishHandler(s.receive)
	return o
}

// wait waits for one of the library's tokens.
func (s *session) wait(ctx context.Context, t mqtt.Token) error {
	select {
	case <-t.Done():
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.lost:
		return fmt.Errorf("connection lost: %w", err)
	}
	err := t.Error()
	if errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword) || errors.Is(err, packets.ErrorRefusedNotAuthorised) ||
		errors.Is(err, packets.ErrorRefusedIDRejected) {
		s.u.count(func(c *Counters) { c.Refused++ })
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

func (s *session) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	t := s.client.SubscribeMultiple(map[string]byte{s.u.topics.down: 1, s.u.topics.config: 1}, nil)
	if err := s.wait(ctx, t); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	for topic, code := range t.(*mqtt.SubscribeToken).Result() {
		if code > 2 {
			s.u.count(func(c *Counters) { c.Refused++ })
			return fmt.Errorf("subscribe to %s: %w", topic, errRefused)
		}
	}
	return nil
}

// close ends the connection, whatever state it is in.
func (s *session) close() {
	if h, ok := s.conn.Load().(connHolder); ok {
		_ = h.Close()
	}
	s.client.Disconnect(0)
}

// write publishes one message after the other, each when the one before is on
// the wire: the library blocks while the network does, and the loop must not.
func (s *session) write() {
	for m := range s.out {
		select {
		case <-s.onWire: // word of one that was given up
		default:
		}
		t := s.client.Publish(m.topic, 1, m.retained, m.payload)
		var err error
		select {
		case <-s.onWire:
		case <-t.Done(): // it could not be sent, or the connection is gone
			err = t.Error()
		}
		if m.topic != s.u.topics.up {
			t = nil
		}
		s.sent <- written{t, err}
	}
}

// receive runs on the library's goroutine: it may only queue.
func (s *session) receive(_ mqtt.Client, m mqtt.Message) {
	now := time.Now()
	switch m.Topic() {
	case s.u.topics.config:
		s.u.deliver(func() { s.u.cfg.Handler.Config(m.Payload()) })
	case s.u.topics.down:
		if err := s.receiveDown(m.Payload(), now); err != nil {
			s.u.count(func(c *Counters) { c.BadDown++ })
			s.u.cfg.Logger.Warn("message from the cloud cannot be read", "bytes", len(m.Payload()), "error", err)
		}
	}
}

func (s *session) receiveDown(p []byte, now time.Time) error {
	d, err := wire.DecodeDown(p)
	if err != nil {
		return err
	}
	h := s.u.cfg.Handler
	switch d.Type {
	case wire.DownAck:
		if s.u.cfg.Key != nil {
			s.forged(errPlainAck)
			return nil
		}
		var a wire.Ack
		if err := wire.Decode(d.Body, &a); err != nil {
			return fmt.Errorf("decode ack: %w", err)
		}
		return s.receiveAck(a)
	case wire.DownReceipt:
		if s.u.cfg.Receipt == nil {
			return errors.New("a receipt, which this device cannot open")
		}
		a, err := s.u.cfg.Receipt(d.Body)
		if err != nil {
			s.forged(err)
			return nil
		}
		return s.receiveAck(a)
	case wire.DownCommand:
		s.u.deliver(func() { h.Command(d.Body) })
	case wire.DownCodes:
		a := CodesAnswer{Envelope: d.Body}
		if q := s.asked.Load(); q != nil {
			a.Nonce, a.Earlier = q.nonce, q.earlier
		}
		s.u.deliver(func() { h.Codes(a) })
	case wire.DownTime:
		if q := s.asked.Load(); q != nil {
			s.u.deliver(func() {
				h.Time(TimeAnswer{Envelope: d.Body, Nonce: q.nonce, SentAt: q.at, ReceivedAt: now})
				select { // only now: the first batch carries the clock that the answer has set
				case s.timed <- struct{}{}:
				default:
				}
			})
		}
	}
	return nil
}

// errPlainAck is an acknowledgement that any client of the broker could have made.
var errPlainAck = errors.New("an acknowledgement without a signature, for a device with a key")

// forged counts an acknowledgement that cannot be trusted.
func (s *session) forged(err error) {
	s.u.count(func(c *Counters) { c.Forged++ })
	if s.u.cfg.Forged != nil {
		s.u.deliver(func() { s.u.cfg.Forged(err) })
	}
}

func (s *session) receiveAck(a wire.Ack) error {
	if a.Lane >= wire.Lanes {
		return fmt.Errorf("ack of lane %d", a.Lane)
	}
	select {
	case s.acks <- a:
	default: // the next one says the same and more
		s.u.count(func(c *Counters) { c.Dropped++ })
	}
	return nil
}

// loop drives the session until it is lost or ctx ends.
func (s *session) loop(ctx context.Context) error {
	s.resync(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.patience = deafAfter + time.Duration(s.u.backoff.rnd.Int64N(int64(deafAfter/3))) // those of a fleet do not come back at once
	for {
		now := time.Now()
		again := s.step(now)
		if s.isDeaf(now) {
			return errDeaf
		}
		timer.Reset(again.Sub(now))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.lost:
			return fmt.Errorf("connection lost: %w", err)
		case w := <-s.sent:
			s.busy = false
			if w.err != nil {
				return fmt.Errorf("publish: %w", w.err)
			}
			if s.first == nil {
				s.first = w.token
			}
		case a := <-s.acks:
			s.applyAck(a, time.Now())
		case <-s.timed:
			s.timeKnown = true
		case <-s.u.again:
			return errAgain
		case <-s.u.status:
			s.statusDue = true
		case <-s.u.ask:
			s.nonceDue = true
		case <-s.u.cfg.Store.Wake():
		case <-timer.C:
		}
	}
}

// isDeaf reports whether the broker has had a batch for long, and no acknowledgement came.
// A batch that waits for more goes again every ten seconds, so it is looked at often enough.
func (s *session) isDeaf(now time.Time) bool {
	if s.first == nil {
		return false
	}
	select {
	case <-s.first.Done():
	default:
		return false // the line is slow
	}
	if s.unheard.IsZero() {
		s.unheard = now
	}
	return now.Sub(s.unheard) >= s.patience
}

// resync begins as on a new connection: a status with a nonce, the answers to
// it, then the lanes from the last acknowledgement on.
func (s *session) resync(now time.Time) {
	p := s.u.cfg.Store.Present()
	s.epoch = p.Epoch
	for l := range s.lanes {
		s.lanes[l] = newSender(p.Acked[l])
	}
	s.credit = newCredit(now)
	s.answered, s.timeKnown = [wire.Lanes]bool{}, false
	s.nonceAt, s.answerUntil = time.Time{}, time.Time{}
}

// step hands the writer what is next, if it is free, and returns when to look
// again without a wake-up.
func (s *session) step(now time.Time) time.Time {
	p := s.u.cfg.Store.Present()
	if p.Epoch != s.epoch {
		s.resync(now)
	}
	again := s.nonceAt.Add(s.nonceEvery())
	sooner := func(t time.Time) { // what is past was looked at now, and waits for word of something else
		if t.After(now) && t.Before(again) {
			again = t
		}
	}
	for l := range s.lanes {
		if s.lanes[l].stuck(p.Acked[l], now) {
			s.u.count(func(c *Counters) { c.Resends++ })
		}
		sooner(s.lanes[l].deadline())
	}
	if s.busy {
		return again
	}
	if !now.Before(s.statusTime(now)) {
		s.sendStatus(now)
		return now.Add(answerWait)
	}
	sooner(s.statusTime(now))
	if !s.answers() && now.Before(s.answerUntil) {
		sooner(s.answerUntil)
		return again
	}
	if now.Before(s.readFailed.Add(readAgain)) {
		sooner(s.readFailed.Add(readAgain))
		return again
	}
	sooner(s.sendRecords(p, now))
	return again
}

// answers reports whether everything that answers a status has come.
func (s *session) answers() bool {
	return s.timeKnown && s.answered[wire.Settlement] && s.answered[wire.Telemetry]
}

// statusTime is when the next status is due.
func (s *session) statusTime(now time.Time) time.Time {
	if s.nonceAt.IsZero() {
		return now
	}
	due := s.nonceAt.Add(s.nonceEvery())
	if s.statusDue && s.statusAt.Add(statusGap).Before(due) {
		due = s.statusAt.Add(statusGap)
	}
	return due
}

// nonceEvery is how long after the last nonce the next one is due.
func (s *session) nonceEvery() time.Duration {
	if s.nonceDue {
		return nonceGap
	}
	if !s.timeKnown {
		return untimedGap // without the time every command is refused
	}
	return statusEvery
}

// sendStatus sends the present, with a nonce on connect, every 10 min, every minute
// until the time is answered, and while a whole code list is needed.
func (s *session) sendStatus(now time.Time) {
	first := s.nonceAt.IsZero()
	// The lanes' ends are read before the snapshot: it may show more than the
	// records up to them, never less.
	p := s.u.cfg.Store.Present()
	st := s.u.cfg.Status()
	st.State, st.Epoch = wire.Online, p.Epoch
	st.StoreUse, st.Backlog, st.Ends = p.Use[:], p.Backlog[:], p.Ends[:]
	st.Acked = p.Acked[:]
	if first || !now.Before(s.nonceAt.Add(s.nonceEvery())) || st.Lost && !now.Before(s.nonceAt.Add(lostGap)) {
		st.Nonce = make([]byte, 16)
		_, _ = rand.Read(st.Nonce)
		s.nonceAt, s.nonceDue = now, false
		s.expectNonce(st.Nonce)
	}
	if first {
		s.answerUntil = now.Add(answerWait)
	}
	s.statusDue, s.statusAt = false, now
	b, err := s.encodeStatus(&st, s.u.nextStatus())
	if err == nil && len(b) > wire.MaxPayload {
		err = fmt.Errorf("%d bytes, the limit is %d", len(b), wire.MaxPayload)
	}
	if err != nil {
		s.u.cfg.Logger.Error("status cannot be sent", "error", err)
		return
	}
	s.u.count(func(c *Counters) { c.Statuses++ })
	s.send(message{topic: s.u.topics.status, retained: true, payload: b})
}

// expectNonce makes nonce the one that answers have to name.
func (s *session) expectNonce(nonce []byte) {
	q := &question{nonce: nonce, at: time.Now()}
	if last := s.asked.Load(); last != nil {
		q.earlier = append([][]byte{last.nonce}, last.earlier...)
		q.earlier = q.earlier[:min(len(q.earlier), earlierNonces)]
	}
	s.asked.Store(q)
}

// encodeStatus numbers and signs a status.
func (s *session) encodeStatus(st *wire.Status, number uint64) ([]byte, error) {
	st.Count = number
	if s.u.cfg.Key != nil {
		if err := s.u.cfg.Key.SignStatus(st); err != nil {
			return nil, err
		}
	}
	return wire.Encode(st)
}

// offline is the last will, and what is said on a clean stop.
func (s *session) offline(number uint64) []byte {
	st := s.u.cfg.Status()
	b, err := s.encodeStatus(&wire.Status{State: wire.Offline, At: st.At, AgentVersion: st.AgentVersion, Instance: st.Instance,
		Boot: st.Boot, Epoch: s.u.cfg.Store.Present().Epoch}, number)
	if err != nil {
		s.u.cfg.Logger.Error("offline status cannot be made", "error", err)
	}
	return b
}

// goodbye says offline before a clean stop, as long as the network takes it.
func (s *session) goodbye() {
	deadline := time.NewTimer(answerWait)
	defer deadline.Stop()
	for _, m := range []*message{nil, {topic: s.u.topics.status, retained: true, payload: s.offline(s.u.nextStatus())}, nil} {
		if m != nil && !s.busy {
			s.send(*m)
		}
		if !s.busy {
			continue
		}
		select {
		case <-s.sent:
			s.busy = false
		case <-s.lost:
			return
		case <-deadline.C:
			return
		}
	}
	s.client.Disconnect(250)
}

func (s *session) send(m message) {
	s.busy = true
	s.out <- m // the writer is free, so it takes it at once
}

// sendRecords sends the next batch: lane 0 first, lane 1 when nothing of lane 0
// is left to send. It returns when to look again.
func (s *session) sendRecords(p buffer.Present, now time.Time) (again time.Time) {
	zero, one := &s.lanes[wire.Settlement], &s.lanes[wire.Telemetry]
	if zero.next <= p.Ends[wire.Settlement].Last {
		if room := zero.room(now); room > 0 {
			s.sendBatch(wire.Settlement, zero, zero.limit, room, p, now)
		}
		return zero.hold
	}
	if one.next > p.Ends[wire.Telemetry].Last {
		return again
	}
	room := one.room(now)
	if room == 0 {
		return one.hold
	}
	n, again := s.credit.allow(p.Ends[wire.Telemetry].Last+1-one.next, now)
	if n == 0 {
		return again
	}
	if n = s.sendBatch(wire.Telemetry, one, min(n, one.limit), room, p, now); n > 0 {
		s.credit.spend(n, now)
	}
	return again
}

// sendBatch reads and sends at most n records, and returns how many it sent: 0
// behind a gap that is not acknowledged, or when the store cannot be read.
func (s *session) sendBatch(l wire.Lane, from *sender, n, room int, p buffer.Present, now time.Time) int {
	run, err := s.u.cfg.Store.Read(l, from.next, n, room)
	if err != nil {
		s.readFailed = now
		s.u.cfg.Logger.Error("records cannot be read", "lane", l.String(), "from", from.next, "error", err)
		return 0
	}
	behind := run.Gap != 0 && p.Acked[wire.Settlement] <= run.Gap
	if len(run.Records) == 0 || run.Epoch != s.epoch || behind {
		return 0
	}
	b := wire.Batch{Version: wire.Version, Epoch: run.Epoch, Lane: l, First: run.First, Records: run.Records,
		Sent: s.u.cfg.Sample(), PrevEpoch: run.Prev, Head: run.Head, Boots: run.Boots}
	payload, err := s.encodeBatch(&b)
	if err != nil || len(payload) > wire.MaxPayload {
		s.readFailed = now
		s.u.cfg.Logger.Error("batch cannot be built", "lane", l.String(), "first", run.First, "bytes", len(payload), "error", err)
		return 0
	}
	from.sent(flight{first: run.First, next: run.Next(), bytes: len(payload)}, now)
	s.u.count(func(c *Counters) { c.Batches, c.Records = c.Batches+1, c.Records+uint64(len(run.Records)) })
	s.send(message{topic: s.u.topics.up, payload: payload})
	return len(run.Records)
}

// encodeBatch signs a batch.
func (s *session) encodeBatch(b *wire.Batch) ([]byte, error) {
	if s.u.cfg.Key != nil {
		if err := s.u.cfg.Key.SignBatch(b); err != nil {
			return nil, err
		}
	}
	return wire.Encode(b)
}

// applyAck takes an acknowledgement.
func (s *session) applyAck(a wire.Ack, now time.Time) {
	s.u.count(func(c *Counters) { c.Acks++ })
	s.first, s.unheard = nil, time.Time{}
	if a.Epoch != s.epoch {
		return
	}
	s.answered[a.Lane] = true
	s.credit.grant(a.Credit, now)
	switch a.Refused {
	case wire.RefusedFork, wire.RefusedEpochConflict:
		if len(a.Holds) == wire.Lanes {
			s.beginFrom([wire.Lanes]uint64(a.Holds), now)
			return
		}
		s.begin(wire.GapStoreRolledBack, nil, a.Refused, now)
		return
	case wire.RefusedBadBatch:
		s.takeBad(a, now)
		return
	}
	st := s.u.cfg.Store
	err := st.Ack(a.Epoch, a.Lane, a.Next, a.Head)
	switch {
	case errors.Is(err, buffer.ErrForked):
		s.begin(wire.GapStoreRolledBack, nil, err.Error(), now)
		return
	case errors.Is(err, buffer.ErrStale):
	case err != nil:
		s.u.cfg.Logger.Error("acknowledgement cannot be taken", "lane", a.Lane.String(), "next", a.Next, "error", err)
		return
	}
	lane, acked := &s.lanes[a.Lane], st.Present().Acked[a.Lane]
	if err == nil && (len(lane.flights) == 0 || a.Next > lane.flights[0].first) {
		lane.acked(acked, now)
	}
	if a.ResendFrom != 0 && lane.hole(acked, now) {
		s.u.count(func(c *Counters) { c.Resends++ })
	}
}

package uplink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/wire"
)

// cloud is a broker and the cloud behind it, over pipes. It stores batches as
// the link demands: in order, each chain checked, jumps only over named gaps.
// Its functions change one thing each; a nil function is the plain behaviour.
type cloud struct {
	t     *testing.T
	began time.Time

	refuse  func() byte                           // return code of a login
	dialErr func() error                          // the network
	lose    func(p *packets.PublishPacket) bool   // a publish that never arrives
	answer  func(b *wire.Batch, a *wire.Ack) bool // changes the answer; false sends none
	onAck   func(s wire.Status) bool              // false leaves a status unanswered
	delay   func(topic string) time.Duration      // before a publish is read on
	publish func(p *packets.PublishPacket)        // sees every publish as it came
	receipt func(a wire.Ack) []byte               // seals acknowledgements

	mu     sync.Mutex
	links  []*link
	events []event
	epochs map[wire.Epoch]*[2]lane
	order  []wire.Epoch
	credit *uint64
}

// event is one thing the cloud saw.
type event struct {
	at     time.Duration
	what   string // dial, connect, subscribe, status, batch, will, disconnect, cut
	status *wire.Status
	batch  *wire.Batch
	bytes  int
}

func (e event) String() string {
	switch {
	case e.batch != nil:
		return fmt.Sprintf("lane %d %d-%d", e.batch.Lane, e.batch.First, e.batch.Last())
	case e.status != nil && e.status.Nonce != nil:
		return e.status.State + " with nonce"
	case e.status != nil:
		return e.status.State
	}
	return e.what
}

// lane is what the cloud has of one lane of one epoch.
type lane struct {
	next    uint64
	head    wire.Head
	records []wire.Raw
	gaps    []wire.Gap // of this lane, from lane 0
}

// link is one connection.
type link struct {
	c    *cloud
	conn net.Conn
	mu   sync.Mutex
	out  []packets.ControlPacket
	wake chan struct{}
	done chan struct{}
	once sync.Once
	will *packets.ConnectPacket
}

func newCloud(t *testing.T) *cloud {
	return &cloud{t: t, began: time.Now(), epochs: map[wire.Epoch]*[2]lane{}}
}

func (c *cloud) note(e event) {
	e.at = time.Since(c.began)
	c.events = append(c.events, e)
}

// seen are the events of a kind so far.
func (c *cloud) seen(kinds ...string) (out []event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		for _, k := range kinds {
			if e.what == k {
				out = append(out, e)
			}
		}
	}
	return out
}

func (c *cloud) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = nil
}

func (c *cloud) dial(context.Context, *url.URL) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(event{what: "dial"})
	if c.dialErr != nil {
		if err := c.dialErr(); err != nil {
			return nil, err
		}
	}
	here, there := net.Pipe()
	l := &link{c: c, conn: there, wake: make(chan struct{}, 1), done: make(chan struct{})}
	c.links = append(c.links, l)
	go l.read()
	go l.write()
	return here, nil
}

// cut ends the newest connection without a word.
func (c *cloud) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.links); n > 0 {
		c.links[n-1].end()
	}
}

func (l *link) end() {
	l.once.Do(func() {
		close(l.done)
		l.conn.Close()
	})
}

func (l *link) push(p packets.ControlPacket) {
	l.mu.Lock()
	l.out = append(l.out, p)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) write() {
	for {
		l.mu.Lock()
		var p packets.ControlPacket
		if len(l.out) > 0 {
			p, l.out = l.out[0], l.out[1:]
		}
		l.mu.Unlock()
		if p != nil {
			if p.Write(l.conn) != nil {
				return
			}
			if ca, ok := p.(*packets.ConnackPacket); ok && ca.ReturnCode != 0 {
				l.end()
			}
			continue
		}
		select {
		case <-l.wake:
		case <-l.done:
			return
		}
	}
}

func (l *link) read() {
	defer l.end()
	for {
		p, err := packets.ReadPacket(l.conn)
		if err != nil {
			return
		}
		if pub, ok := p.(*packets.PublishPacket); ok && l.c.delay != nil {
			time.Sleep(l.c.delay(pub.TopicName))
		}
		l.c.mu.Lock()
		l.take(p)
		l.c.mu.Unlock()
	}
}

func (l *link) take(p packets.ControlPacket) {
	c := l.c
	switch p := p.(type) {
	case *packets.ConnectPacket:
		l.will = p
		c.note(event{what: "connect"})
		ack := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
		if c.refuse != nil {
			ack.ReturnCode = c.refuse()
		}
		l.push(ack)
	case *packets.SubscribePacket:
		c.note(event{what: "subscribe"})
		ack := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
		ack.MessageID, ack.ReturnCodes = p.MessageID, make([]byte, len(p.Topics))
		l.push(ack)
	case *packets.PingreqPacket:
		l.push(packets.NewControlPacket(packets.Pingresp))
	case *packets.DisconnectPacket:
		c.note(event{what: "disconnect"})
	case *packets.PublishPacket:
		if c.lose != nil && c.lose(p) {
			return
		}
		ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		ack.MessageID = p.MessageID
		l.push(ack)
		l.publish(p)
	}
}

func (l *link) publish(p *packets.PublishPacket) {
	c := l.c
	require.LessOrEqual(c.t, len(p.Payload), wire.MaxPayload)
	if c.publish != nil {
		c.publish(p)
	}
	switch p.TopicName {
	case "tms/device/CAB-1/status":
		s, err := wire.DecodeStatus(p.Payload)
		require.NoError(c.t, err)
		require.True(c.t, p.Retain)
		c.note(event{what: "status", status: s})
		if s.Nonce == nil || s.State != wire.Online || c.onAck != nil && !c.onAck(*s) {
			return
		}
		for n := range wire.Lane(wire.Lanes) {
			ln := c.lane(s.Epoch, n)
			l.ack(wire.Ack{Epoch: s.Epoch, Lane: n, Next: ln.next, Head: ln.head, Credit: c.credit})
		}
		l.down(wire.DownTime, s.Nonce)
	case "tms/device/CAB-1/up":
		b, err := wire.DecodeBatch(p.Payload)
		require.NoError(c.t, err)
		c.note(event{what: "batch", batch: b, bytes: len(p.Payload)})
		a := c.store(b)
		if c.answer == nil || c.answer(b, &a) {
			l.ack(a)
		}
	default:
		c.t.Errorf("publish to %s", p.TopicName)
	}
}

func (l *link) ack(a wire.Ack) {
	if l.c.receipt != nil {
		l.down(wire.DownReceipt, l.c.receipt(a))
		return
	}
	l.down(wire.DownAck, wire.MustEncode(a))
}

func (l *link) down(t wire.DownType, body []byte) {
	if t == wire.DownTime {
		body = wire.MustEncode(body)
	}
	l.publishDown("down", wire.EncodeDown(t, body))
}

func (l *link) publishDown(topic string, payload []byte) {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Qos, p.MessageID, p.Payload = "tms/device/CAB-1/"+topic, 1, uint16(rand.IntN(60000)+1), payload
	l.push(p)
}

func (c *cloud) lane(e wire.Epoch, n wire.Lane) *lane {
	if c.epochs[e] == nil {
		c.epochs[e] = &[2]lane{{next: 1, head: wire.FirstHead(e, 0)}, {next: 1, head: wire.FirstHead(e, 1)}}
		c.order = append(c.order, e)
	}
	return &c.epochs[e][n]
}

// store takes a batch as the cloud does, and answers.
func (c *cloud) store(b *wire.Batch) wire.Ack {
	ln := c.lane(b.Epoch, b.Lane)
	for _, g := range ln.gaps {
		if b.First > ln.next && g.First <= ln.next && g.Last >= ln.next && g.HeadAfter != nil {
			ln.next, ln.head = g.Last+1, *g.HeadAfter
		}
	}
	a := wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Credit: c.credit}
	if b.First > ln.next {
		a.Next, a.Head, a.ResendFrom = ln.next, ln.head, ln.next
		return a
	}
	for i, r := range b.Records {
		n := b.First + uint64(i)
		if n < ln.next {
			continue
		}
		ln.records, ln.head, ln.next = append(ln.records, r), ln.head.Next(r), n+1
		if rec, err := wire.DecodeRecord(r); err == nil && rec.Kind == wire.KindGap {
			var g wire.Gap
			require.NoError(c.t, wire.Decode(rec.Body, &g))
			if g.Epoch == b.Epoch {
				to := c.lane(b.Epoch, g.Lane)
				to.gaps = append(to.gaps, g)
			}
		}
	}
	if b.Last()+1 == ln.next {
		require.Equal(c.t, ln.head, b.Head, "the batch's chain")
	}
	a.Next, a.Head = ln.next, ln.head
	return a
}

// bodies are the texts of all records of a lane, over all epochs, each once.
func (c *cloud) bodies(n wire.Lane) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for _, e := range c.order {
		for _, raw := range c.epochs[e][n].records {
			r, err := wire.DecodeRecord(raw)
			require.NoError(c.t, err)
			id := fmt.Sprint(r.Kind, r.Boot, r.Mono) // as the cloud drops repeats
			if r.Kind == wire.KindGap || seen[id] {
				continue
			}
			seen[id] = true
			var m map[uint]string
			require.NoError(c.t, wire.Decode(r.Body, &m))
			out = append(out, m[1])
		}
	}
	return out
}

// newest is the link that stands.
func (c *cloud) newest() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[len(c.links)-1]
}

// rig is a device at the cloud's door.
type rig struct {
	t     *testing.T
	c     *cloud
	s     *buffer.Store
	cfg   buffer.Config
	u     *Uplink
	mono  atomic.Int64
	doors atomic.Uint64 // shown in the status

	mu   sync.Mutex
	got  []string
	time []TimeAnswer
	list []CodesAnswer
	lost atomic.Bool // the status says that the memory is lost
	stop context.CancelFunc
	done chan struct{}
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, c: newCloud(t)}
	r.cfg = buffer.Config{Path: filepath.Join(t.TempDir(), "s"), MaxBytes: 16 << 20, Stamp: r.stamp, NoSync: true}
	r.open()
	u, err := New(Config{DeviceCode: "CAB-1", Secret: "secret", Brokers: []string{"tcp://127.0.0.1:1883"}, Dial: r.c.dial,
		Store: r.s, Status: r.status, Sample: r.sample, Handler: r, Source: rand.NewPCG(1, 1)})
	require.NoError(t, err)
	r.u = u
	return r
}

func (r *rig) open() {
	s, err := buffer.Open(r.cfg)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = s.Close() })
	r.s = s
}

func (r *rig) stamp() wire.Record {
	return wire.Record{At: time.Now().UnixNano(), Mono: r.mono.Add(1), Clock: wire.ClockCarried}
}

func (r *rig) sample() wire.Sample {
	return wire.Sample{Boot: r.s.Opened().Boot, Mono: r.mono.Add(1), Wall: time.Now().UnixNano()}
}

func (r *rig) status() wire.Status {
	return wire.Status{At: time.Now().UnixNano(), Instance: []byte("i"), Boot: 1, CodeList: r.doors.Load(), Lost: r.lost.Load()}
}

func (r *rig) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, what)
}

func (r *rig) Command(b []byte) { r.note("command " + string(b)) }
func (r *rig) Codes(a CodesAnswer) {
	r.note("codes " + string(a.Envelope))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, a)
}
func (r *rig) Config(b []byte) { r.note("config " + string(b)) }
func (r *rig) Time(a TimeAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.time = append(r.time, a)
}

// add commits n records of a kind, size bytes each, with texts name+number.
func (r *rig) add(k wire.Kind, name string, from, to, size int) {
	for from <= to {
		var recs []buffer.Record
		for ; from <= to && len(recs) < 500; from++ {
			rec := r.stamp()
			rec.Kind, rec.Boot = k, r.s.Opened().Boot
			rec.Body = wire.MustEncode(map[uint]string{1: fmt.Sprint(name, from), 2: string(make([]byte, size))})
			recs = append(recs, buffer.Record{Kind: k, Bytes: wire.MustEncode(rec)})
		}
		require.NoError(r.t, r.s.Commit(context.Background(), buffer.Change{Records: recs}))
	}
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		require.NoError(r.t, r.u.Run(ctx))
	}()
	r.t.Cleanup(r.end)
	synctest.Wait()
}

// end stops the uplink and everything that the cloud still holds.
func (r *rig) end() {
	r.stop()
	<-r.done
	r.c.mu.Lock()
	links := r.c.links
	r.c.mu.Unlock()
	for _, l := range links {
		l.end()
	}
	time.Sleep(time.Minute) // whatever the library still waits for
}

// until runs the clock until ok, at most d.
func (r *rig) until(d time.Duration, ok func() bool) {
	for end := time.Now().Add(d); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			require.Fail(r.t, "it did not come to that", "%v", r.c.seen("connect", "status", "batch"))
		}
	}
}

func names(prefix string, from, to int) (out []string) {
	for ; from <= to; from++ {
		out = append(out, fmt.Sprint(prefix, from))
	}
	return out
}

func texts(es []event) (out []string) {
	for _, e := range es {
		out = append(out, e.String())
	}
	return out
}

var errNoNetwork = errors.New("no network")

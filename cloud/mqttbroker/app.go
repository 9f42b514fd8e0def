package mqttbroker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Limits of one app.
const (
	appQueue  = 256 // messages that wait for it; one that takes no more has to come again
	appWindow = 64  // messages that it has not acknowledged
	appStall  = 20 * time.Second
	keptWait  = 10 * time.Second
	// How long, and of how many messages, it is known that they were sent as kept.
	caughtFor  = 30 * time.Second
	caughtMost = 1000
)

// app is the connection of a person's app.
//
// Its messages do not go through the library. That drops what a slow client does
// not take, without a word when acknowledgements are missing; lets one client
// that does not read hold up who publishes; and refuses subscriptions whose
// packet id is that of a message under way. Here each connection has a bounded
// queue and a goroutine. When the queue is full the connection ends, and the app
// finds what it missed when it comes back.
type app struct {
	apps   *apps
	client *mqtt.Client
	name   string // client id as issued
	serial int64
	person Person
	window int
	done   chan struct{} // closed when the connection has ended
	wake   chan struct{} // something waits
	acked  chan struct{} // something was acknowledged
	// caught are ids of what was kept and sent to it, since the last time: they
	// may be in the queue too. Owned by run.
	caught map[string]bool
	since  time.Time

	mu      sync.Mutex
	topics  map[string]grant // that it listens to
	queue   []waiting
	flying  map[uint16]waiting // sent and not acknowledged
	last    uint16             // packet id
	refused int
	doubts  int  // rechecks in a row without an answer
	parting bool // its rights have ended
}

// waiting is a message for an app, or with kept set all that was sent to its topic
// lately.
type waiting struct {
	topic string
	Message
	kept bool
}

// grant is how an app listens to a topic.
type grant struct {
	qos byte
	id  int // that it gave the subscription, 0 for none
}

func newApp(s *apps, cl *mqtt.Client, p Person) *app {
	a := &app{apps: s, client: cl, name: cl.ID, person: p, window: appWindow, done: make(chan struct{}), wake: make(chan struct{}, 1), acked: make(chan struct{}, 1),
		topics: map[string]grant{}, flying: map[uint16]waiting{}}
	if n := int(cl.Properties.Props.ReceiveMaximum); cl.Properties.ProtocolVersion == 5 && n > 0 {
		a.window = min(n, appWindow) // [MQTT-3.3.4-9]
	}
	return a
}

func (a *app) listens(topic string, g grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.topics[topic] = g
}

func (a *app) listensAt(topic string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.topics[topic]
	return ok
}

func (a *app) ignores(topic string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.topics, topic)
}

func (a *app) refuse() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused++
	return a.refused
}

func (a *app) listensTo() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.topics))
}

// push puts a message into the queue. It never waits.
func (a *app) push(w waiting) {
	a.mu.Lock()
	full := len(a.queue) >= appQueue
	if !full {
		a.queue = append(a.queue, w)
	}
	a.mu.Unlock()
	if full {
		a.end("it is too slow", errSlow)
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// end closes the connection.
func (a *app) end(why string, err error) {
	a.apps.cfg.Log.Info("app disconnected", "client", a.name, "why", why, "err", err)
	a.client.Stop(packets.ErrAdministrativeAction)
}

// run sends what waits, in order, until the connection ends.
func (a *app) run() {
	for {
		a.mu.Lock()
		var next waiting
		n := len(a.queue)
		if n > 0 {
			next = a.queue[0]
			a.queue[0] = waiting{}
			if a.queue = a.queue[1:]; n == 1 {
				a.queue = nil
			}
		}
		a.mu.Unlock()
		if n == 0 {
			select {
			case <-a.wake:
				continue
			case <-a.done:
				return
			}
		}
		if err := a.deliver(next); err != nil {
			if !errors.Is(err, errClosed) {
				a.end("a message could not be sent", err)
			}
			<-a.done
			return
		}
	}
}

// deliver sends a message, or what was sent to its topic lately.
func (a *app) deliver(w waiting) error {
	if !w.kept {
		if a.caught != nil && time.Since(a.since) > caughtFor {
			a.caught = nil
		}
		if a.caught[w.ID] {
			return nil
		}
		return a.send(w)
	}
	ctx, cancel := context.WithTimeout(context.Background(), keptWait)
	defer cancel()
	kept, err := a.apps.cfg.People.ListRecent(ctx, a.person, w.topic)
	if err != nil {
		return err
	}
	if len(kept) > 0 && a.caught == nil {
		a.caught = map[string]bool{}
	}
	a.since = time.Now()
	for _, m := range kept {
		if len(a.caught) < caughtMost {
			a.caught[m.ID] = true
		}
		if err := a.send(waiting{topic: w.topic, Message: m}); err != nil {
			return err
		}
	}
	return nil
}

// send writes one message once the app has acknowledged enough of the others.
func (a *app) send(w waiting) error {
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish}, TopicName: w.topic, Payload: w.Payload}
	stall := time.NewTimer(appStall)
	defer stall.Stop()
	for {
		g, id, ok := a.begin(w)
		if !ok {
			return nil // it does not listen any more
		}
		if g.qos == 0 || id != 0 {
			pk.FixedHeader.Qos, pk.PacketID = g.qos, id
			if g.id != 0 {
				pk.Properties.SubscriptionIdentifier = []int{g.id} // [MQTT-3.3.4-3]
			}
			break
		}
		select {
		case <-a.acked:
		case <-a.done:
			return errClosed
		case <-stall.C:
			return errStalled
		}
	}
	err := a.client.WritePacket(pk)
	if errors.Is(err, packets.ErrPacketTooLarge) { // for what it said it takes [MQTT-3.1.2-25]
		a.ack(pk.PacketID)
		return nil
	}
	if err != nil {
		return errors.Join(errClosed, err)
	}
	return nil
}

// begin gives a message the packet id under which it is sent: 0 with QoS 1 says
// that too much is under way.
func (a *app) begin(w waiting) (g grant, id uint16, listens bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, listens = a.topics[w.topic]
	if !listens || g.qos == 0 || len(a.flying) >= a.window {
		return g, 0, listens
	}
	for {
		a.last++
		if _, taken := a.flying[a.last]; a.last != 0 && !taken {
			break
		}
	}
	w.Payload = nil
	a.flying[a.last] = w
	return g, a.last, true
}

// ack is the app's word that it has a message.
func (a *app) ack(id uint16) (w waiting, ok bool) {
	a.mu.Lock()
	w, ok = a.flying[id]
	delete(a.flying, id)
	a.mu.Unlock()
	select {
	case a.acked <- struct{}{}:
	default:
	}
	return w, ok
}

// acknowledge is ack by the app itself.
func (a *app) acknowledge(id uint16) {
	if w, ok := a.ack(id); ok {
		a.apps.cfg.People.Received(a.person, w.topic, w.ID)
	}
}

// part ends the connection once it has had time to receive why.
func (a *app) part() {
	a.mu.Lock()
	again := a.parting
	a.parting = true
	a.mu.Unlock()
	if again {
		return
	}
	go func() {
		select {
		case <-a.done:
		case <-time.After(lastWord):
			a.end("it may no more", errRights)
		}
	}()
}

// recheck ends the connection when what let it in holds no more.
func (a *app) recheck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loginWait)
	defer cancel()
	holds, err := a.apps.cfg.People.Holds(ctx, a.person)
	a.mu.Lock()
	if a.doubts++; err == nil {
		a.doubts = 0
	}
	doubts := a.doubts
	a.mu.Unlock()
	switch {
	case err == nil && !holds:
		a.part()
	case doubts > 1:
		a.end("its rights could not be read", err)
	}
}

var (
	errNoPeople = errors.New("no apps are let in here")
	errUsername = errors.New("the user name is not the client id")
	errWill     = errors.New("an app leaves no will")
	errManyApps = errors.New("too many connections")
	errSlow     = errors.New("the queue is full")
	errStalled  = errors.New("nothing was acknowledged")
	errRights   = errors.New("its rights have ended")
)

package mqttbroker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"
)

// folk lets people in by a list of passwords.
type folk struct {
	mu        sync.Mutex
	people    map[string]Person // by client id and password
	kept      map[string][]Message
	out       map[string]bool // owners who may no more
	unknown   bool            // it is not known
	asked     int
	listening map[string]int
	heard     []string
}

func (f *folk) Login(_ context.Context, client, password, ip string) (Person, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.people[client+" "+password]
	if !ok || ip != "127.0.0.1" {
		return p, errLogin
	}
	return p, nil
}

func (f *folk) Holds(_ context.Context, p Person) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.unknown {
		return false, errors.New("the database is away")
	}
	return !f.out[p.Owner], nil
}

func (f *folk) ListRecent(_ context.Context, _ Person, topic string) ([]Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kept[topic]), nil
}

func (f *folk) Listening(_ Person, topic string, change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listening[topic] += change
}

func (f *folk) Received(_ Person, _, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, id)
}

func (f *folk) listeners(topic string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listening[topic]
}

func (f *folk) set(change func(*folk)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// hall is a broker with people at it.
type hall struct {
	*stand
	folk *folk
}

func newHall(t testing.TB, recheck time.Duration) *hall {
	t.Helper()
	f := &folk{people: map[string]Person{}, kept: map[string][]Message{}, out: map[string]bool{}, listening: map[string]int{}}
	for i := range 30 {
		f.people[fmt.Sprintf("app-a-%d pw", i)] = Person{Owner: "a", Topics: []string{"tms/x/1", "tms/x/2"}}
		f.people[fmt.Sprintf("app-b-%d pw", i)] = Person{Owner: "b", Topics: []string{"tms/x/1"}}
	}
	s := &stand{t: t, link: &link{secrets: map[string]string{"CAB-1": "one"}}}
	var err error
	s.Broker, err = New(Config{Devices: s.link, People: f, Recheck: recheck, Foreign: func(client, name string, write bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.foreign = append(s.foreign, use{client, name, write})
	}})
	require.NoError(t, err)
	ln := listen(t)
	s.addr = ln.Addr().String()
	require.NoError(t, s.Serve(ln, nil))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &hall{s, f}
}

func (h *hall) app(client string) *paho.ClientOptions {
	o := h.options("CAB-1", "pw")
	return o.SetClientID(client).SetUsername(client)
}

// open subscribes a new connection to a topic.
func (h *hall) open(client, topic string) (paho.Client, chan paho.Message) {
	h.t.Helper()
	got := make(chan paho.Message, 2000)
	c := h.connect(h.app(client).SetOrderMatters(true))
	require.NoError(h.t, done(h.t, c.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) { got <- m })))
	return c, got
}

func (h *hall) connectPacket(client, password string) *packets.ConnectPacket {
	p := connectPacket("CAB-1", password)
	p.ClientIdentifier, p.Username = client, client
	return p
}

// in is a client that speaks packets and has logged in.
func (h *hall) in(client string) *raw {
	h.t.Helper()
	c := h.dial()
	require.Zero(h.t, c.login(h.connectPacket(client, "pw")))
	return c
}

func (r *raw) subscribe(topic string, id uint16) byte {
	r.t.Helper()
	p := subscribePacket(topic)
	p.MessageID = id
	r.send(p)
	for {
		if a, ok := r.next().(*packets.SubackPacket); ok {
			require.Equal(r.t, id, a.MessageID)
			return a.ReturnCodes[0]
		}
	}
}

func next(t testing.TB, got chan paho.Message) paho.Message {
	t.Helper()
	return <-got
}

func TestAppsHearTheirTopicsInOrder(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	ln := listen(t)
	require.NoError(t, h.ServeWebSocket(ln, nil))
	_, one := h.open("app-a-1", "tms/x/1")
	_, other := h.open("app-a-2", "tms/x/2")
	ws := h.app("app-b-1")
	ws.Servers = nil
	ws.AddBroker("ws://" + ln.Addr().String() + "/mqtt").SetOrderMatters(true)
	web := make(chan paho.Message, 2000)
	require.NoError(t, done(t, h.connect(ws).Subscribe("tms/x/1", 0, func(_ paho.Client, m paho.Message) { web <- m })))
	const n = 500
	for i := range n {
		h.Publish("tms/x/1", Message{ID: fmt.Sprint(i), Payload: fmt.Append(nil, i)})
		if i%100 == 99 { // no faster than they are
			eventually(t, "taken", func() bool { return len(one) > i && len(web) > i })
		}
	}
	h.Publish("tms/x/2", Message{Payload: []byte("other")})
	for i := range n {
		for qos, got := range []chan paho.Message{web, one} {
			m := next(t, got)
			require.Equal(t, fmt.Sprint(i), string(m.Payload()))
			require.EqualValues(t, qos, m.Qos())
			require.False(t, m.Retained())
		}
	}
	require.Equal(t, "other", string(next(t, other).Payload()))
	require.Empty(t, other)
	eventually(t, "acknowledged by the one with QoS 1", func() bool {
		h.folk.mu.Lock()
		defer h.folk.mu.Unlock()
		return len(h.folk.heard) == n+1
	})
}

func TestAppsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	f := func(name string, change func(*packets.ConnectPacket)) {
		t.Helper()
		p := h.connectPacket("app-a-1", "pw")
		change(p)
		c := h.dial()
		require.NotZero(t, c.login(p), name)
		c.closed()
	}
	f("another password", func(p *packets.ConnectPacket) { p.Password = []byte("pv") })
	f("no password", func(p *packets.ConnectPacket) { p.PasswordFlag, p.Password = false, nil })
	f("another's client id", func(p *packets.ConnectPacket) { p.ClientIdentifier = "app-b-1" })
	f("no user name", func(p *packets.ConnectPacket) { p.Username = "" })
	f("an unknown one", func(p *packets.ConnectPacket) { p.ClientIdentifier, p.Username = "app-c-1", "app-c-1" })
	f("a will, even on an own topic", func(p *packets.ConnectPacket) {
		p.WillFlag, p.WillTopic, p.WillQos, p.WillMessage = true, "tms/x/1", 1, []byte("x")
	})
	require.NotZero(t, newStand(t).dial().login(h.connectPacket("app-a-1", "pw")), "where nobody knows people")
}

func TestAnAppMayOnlySubscribeToWhatItWasGiven(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	foreign := []string{"tms/x/2", "tms/x/3", "tms/x/+", "tms/#", "#", "+", "$SYS/#", "$share/g/tms/x/1", "tms/device/CAB-1/config", "tms/device/CAB-1/down", "tms/x/1/", "TMS/x/1"}
	for _, filter := range foreign {
		c := h.in("app-b-1")
		require.EqualValues(t, 0x80, c.subscribe(filter, 3), filter)
		require.EqualValues(t, 1, c.subscribe("tms/x/1", 4), "the connection stays")
		_ = c.Close()
		if !strings.ContainsAny(filter, "$") { // the library answers those itself
			require.True(t, h.audited(use{"app-b-1", filter, false}), filter)
		}
	}
	c := h.in("app-b-1")
	for range appRefused {
		require.EqualValues(t, 0x80, c.subscribe("tms/x/2", 3))
	}
	c.send(subscribePacket("tms/x/2"))
	c.closed()
	for _, name := range []string{"tms/x/1", "tms/x/2", "tms/device/CAB-1/up", "$SYS/x"} {
		for _, qos := range []byte{0, 1} {
			c := h.in("app-b-1")
			p := publishPacket(name, []byte("x"))
			p.Qos, p.Retain = qos, true
			c.send(p)
			c.closed()
		}
		require.True(t, h.audited(use{"app-b-1", name, true}), name)
	}
	received, _ := h.link.count()
	require.Zero(t, received)
}

// One packet may name thousands of topics, and a topic may be long: what is
// written down of it is bounded.
func TestWhatIsKeptOfRefusalsIsBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	c := h.in("app-b-1")
	p := subscribePacket("tms/x/2" + strings.Repeat("y", 60_000))
	for len(p.Topics) < 5000 {
		p.Topics, p.Qoss = append(p.Topics, fmt.Sprint("tms/y/", len(p.Topics))), append(p.Qoss, 1)
	}
	c.send(p)
	c.closed()
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Len(t, h.foreign, appRefused+1)
	for _, u := range h.foreign {
		require.LessOrEqual(t, len(u.topic), loggedName)
	}
}

// What anybody may send before a login is not written into the log at length.
func TestAHugeClientIDIsRefusedWithFewWords(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	b, err := New(Config{Devices: &link{}, People: &folk{people: map[string]Person{}}, Log: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	s := &stand{t: t, Broker: b}
	ln := listen(t)
	s.addr = ln.Addr().String()
	require.NoError(t, s.Serve(ln, nil))
	c := s.dial()
	p := connectPacket("CAB-1", "x")
	p.ClientIdentifier = AppPrefix + strings.Repeat("z", 8_000)
	p.Username = p.ClientIdentifier
	require.NotZero(t, c.login(p))
	c.closed()
	require.NoError(t, b.Close())
	require.Contains(t, said.String(), "app refused")
	require.Less(t, said.Len(), 1000)
}

func TestRightsThatEndEndTheConnection(t *testing.T) {
	t.Parallel()
	h := newHall(t, 5*time.Millisecond)
	a, _ := h.open("app-a-1", "tms/x/1")
	b, got := h.open("app-b-1", "tms/x/1")
	h.folk.set(func(f *folk) { f.out["a"] = true })
	eventually(t, "disconnected", func() bool { return !a.IsConnectionOpen() })
	eventually(t, "and forgotten", func() bool { return h.folk.listeners("tms/x/1") == 1 })
	h.Publish("tms/x/1", Message{Payload: []byte("still")})
	require.Equal(t, "still", string(next(t, got).Payload()))
	h.folk.set(func(f *folk) { f.unknown = true })
	eventually(t, "nobody knows, twice", func() bool { return !b.IsConnectionOpen() })
}

// What ends a person's rights is often sent to that person's app: the app receives
// it before it is let go.
func TestTheLastWordIsHeard(t *testing.T) {
	t.Parallel()
	h := newHall(t, time.Hour)
	a, got := h.open("app-a-1", "tms/x/1")
	h.folk.set(func(f *folk) { f.out["a"] = true })
	began := time.Now()
	for range 3 { // further checks end it no sooner, and no later
		h.events.apps.recheck(t.Context())
	}
	h.Publish("tms/x/1", Message{Payload: []byte("closed")})
	require.Equal(t, "closed", string(next(t, got).Payload()))
	eventually(t, "disconnected", func() bool { return !a.IsConnectionOpen() })
	require.GreaterOrEqual(t, time.Since(began), lastWord)
}

func TestOneRecheckWithoutAnAnswerEndsNothing(t *testing.T) {
	t.Parallel()
	h := newHall(t, time.Hour)
	c, _ := h.open("app-a-1", "tms/x/1")
	for range 3 {
		h.folk.set(func(f *folk) { f.unknown = true })
		h.events.apps.recheck(t.Context())
		h.folk.set(func(f *folk) { f.unknown = false })
		h.events.apps.recheck(t.Context())
	}
	require.True(t, c.IsConnectionOpen())
}

// A topic's recent messages come first, then those that arrive meanwhile.
func TestAnAppThatComesBackReceivesWhatItMissed(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	h.folk.set(func(f *folk) {
		for i := range 100 {
			f.kept["tms/x/1"] = append(f.kept["tms/x/1"], Message{ID: fmt.Sprint(i), Payload: fmt.Append(nil, i)})
		}
	})
	_, got := h.open("app-a-1", "tms/x/1")
	h.Publish("tms/x/1", Message{ID: "100", Payload: []byte("100")})
	for i := range 101 {
		require.Equal(t, fmt.Sprint(i), string(next(t, got).Payload()))
	}
	_, got = h.open("app-a-1", "tms/x/1") // the same client again
	require.Equal(t, "0", string(next(t, got).Payload()))
}

func TestAnAppThatUnsubscribesReceivesNoMore(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	c, got := h.open("app-a-1", "tms/x/1")
	require.NoError(t, done(t, c.Subscribe("tms/x/2", 1, func(_ paho.Client, m paho.Message) { got <- m })))
	require.NoError(t, done(t, c.Unsubscribe("tms/x/1", "tms/x/3")))
	require.Equal(t, 0, h.folk.listeners("tms/x/1"))
	require.Equal(t, 1, h.folk.listeners("tms/x/2"))
	h.Publish("tms/x/1", Message{Payload: []byte("one")})
	h.Publish("tms/x/2", Message{Payload: []byte("two")})
	require.Equal(t, "two", string(next(t, got).Payload()))
	require.NoError(t, done(t, c.Subscribe("tms/x/2", 1, nil)), "again")
	require.Equal(t, 1, h.folk.listeners("tms/x/2"))
	c.Disconnect(0)
	eventually(t, "gone", func() bool { return h.folk.listeners("tms/x/2") == 0 })
}

func TestAnAppThatComesAgainTakesItsOwnPlace(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	first, _ := h.open("app-a-1", "tms/x/1")
	for range 3 * appsEach { // more often than a person has connections
		c, got := h.open("app-a-1", "tms/x/1")
		eventually(t, "taken over", func() bool { return !first.IsConnectionOpen() })
		h.Publish("tms/x/1", Message{Payload: []byte("x")})
		next(t, got)
		require.Equal(t, 1, h.folk.listeners("tms/x/1"))
		first = c
	}
}

func TestConnectionsOfAPersonAreBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	var last paho.Client
	for i := range appsEach {
		last, _ = h.open(fmt.Sprintf("app-a-%d", i), "tms/x/1")
	}
	require.Error(t, done(t, paho.NewClient(h.app("app-a-29")).Connect()))
	h.open("app-b-1", "tms/x/1") // another person
	last.Disconnect(0)
	eventually(t, "room again", func() bool {
		c := paho.NewClient(h.app("app-a-29"))
		err := done(t, c.Connect())
		c.Disconnect(0)
		return err == nil
	})
}

// The library numbers what it sends and what a client sends in one table: a
// subscription with the packet id of an unacknowledged message would be refused.
func TestASubscriptionMayHaveThePacketIDOfAMessageUnderWay(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	c := h.in("app-a-1")
	require.EqualValues(t, 1, c.subscribe("tms/x/1", 1))
	h.Publish("tms/x/1", Message{Payload: []byte("x")})
	p, ok := c.next().(*packets.PublishPacket)
	require.True(t, ok)
	require.EqualValues(t, 1, c.subscribe("tms/x/2", p.MessageID))
}

func TestAnAppThatDoesNotAcknowledgeIsLetGoWhenItsQueueIsFull(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	c := h.in("app-a-1")
	require.EqualValues(t, 1, c.subscribe("tms/x/1", 1))
	tell := func(n int) {
		for range n {
			h.Publish("tms/x/1", Message{Payload: []byte("x")})
		}
	}
	tell(appWindow)
	for range appWindow {
		_, ok := c.next().(*packets.PublishPacket)
		require.True(t, ok)
	}
	tell(appQueue)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := packets.ReadPacket(c.Conn)
	var timeout net.Error
	require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "nothing more before it acknowledges")
	tell(appQueue)
	c.closed()
	eventually(t, "forgotten", func() bool { return h.folk.listeners("tms/x/1") == 0 })
}

// One that does not read fills the buffers of its connection: the others hear
// everything, and it loses its connection, not messages.
func TestASlowAppHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	for _, qos := range []byte{0, 1} {
		slow := h.in("app-b-1")
		p := subscribePacket("tms/x/1")
		p.Qoss[0] = qos
		slow.send(p)
		eventually(t, "subscribed", func() bool { return h.folk.listeners("tms/x/1") == 1 })
		c, got := h.open("app-a-1", "tms/x/1")
		big := []byte(strings.Repeat("x", 60<<10))
		for i := range 2 * appQueue {
			h.Publish("tms/x/1", Message{Payload: big})
			if i%32 == 31 {
				eventually(t, "the other one hears", func() bool { return len(got) > i })
			}
		}
		eventually(t, "let go", func() bool { return h.folk.listeners("tms/x/1") == 1 })
		c.Disconnect(0)
		eventually(t, "gone", func() bool { return h.folk.listeners("tms/x/1") == 0 })
	}
}

func TestMosquittoListensAsAnApp(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	host, port, err := net.SplitHostPort(h.addr)
	require.NoError(t, err)
	h.folk.set(func(f *folk) { f.kept["tms/x/1"] = []Message{{ID: "1", Payload: []byte("kept")}} })
	for _, version := range []string{"mqttv311", "mqttv5"} {
		args := []string{"-h", host, "-p", port, "-V", version, "-i", "app-a-1", "-u", "app-a-1", "-P", "pw", "-q", "1", "-W", "10"}
		out, err := mosquitto(t, "mosquitto_sub", append(args, "-C", "1", "-t", "tms/x/1")...)
		require.NoError(t, err, out)
		require.Equal(t, "kept\n", out)
		out, _ = mosquitto(t, "mosquitto_sub", append(args, "-C", "1", "-t", "tms/y/1")...)
		require.Contains(t, out, "denied", version)
	}
}

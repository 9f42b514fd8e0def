package mqttbroker

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/gorilla/websocket"
	mqtt "github.com/mochi-mqtt/server/v2"
	packets5 "github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/topic"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	f := func(name string, want byte, change func(*packets.ConnectPacket)) {
		t.Helper()
		p := connectPacket("CAB-1", "one")
		change(p)
		c := s.dial()
		require.Equal(t, want, c.login(p), name)
		if want != packets.Accepted {
			c.closed()
		}
		_ = c.Close()
	}
	f("the right secret", packets.Accepted, func(*packets.ConnectPacket) {})
	const refused = packets.ErrRefusedNotAuthorised
	f("a wrong secret", refused, func(p *packets.ConnectPacket) { p.Password = []byte("two") })
	f("no secret", refused, func(p *packets.ConnectPacket) { p.PasswordFlag, p.Password = false, nil })
	f("no name and no secret", refused, func(p *packets.ConnectPacket) {
		p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = false, "", false, nil
	})
	f("an unknown device", refused, func(p *packets.ConnectPacket) { p.Username, p.ClientIdentifier = "CAB-7", "dev-CAB-7" })
	f("a disabled device", refused, func(p *packets.ConnectPacket) {
		p.Username, p.ClientIdentifier, p.Password = "CAB-9", "dev-CAB-9", []byte("x")
	})
	f("a client id of another device", refused, func(p *packets.ConnectPacket) { p.ClientIdentifier = "dev-CAB-2" })
	f("a client id without dev-", refused, func(p *packets.ConnectPacket) { p.ClientIdentifier = "CAB-1" })
	f("an empty client id", refused, func(p *packets.ConnectPacket) { p.ClientIdentifier = "" })
	f("a name that is no code", refused, func(p *packets.ConnectPacket) { p.Username, p.ClientIdentifier = "CAB/+", "dev-CAB/+" })
	eventually(t, "nobody stays", func() bool { return s.Connected() == 0 })
}

func TestWillOnAForeignTopicIsNoLogin(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, name := range []string{"tms/device/CAB-2/status", "tms/device/CAB-1/down", "tms/device/CAB-1/config", "$SYS/x", "other", "tms/device/+/status"} {
		p := connectPacket("CAB-1", "one")
		p.WillFlag, p.WillTopic, p.WillQos, p.WillMessage = true, name, 1, []byte("x")
		require.NotEqual(t, packets.Accepted, s.dial().login(p), name)
		require.True(t, s.audited(use{"dev-CAB-1", name, true}), name)
	}
	p := connectPacket("CAB-1", "one")
	p.WillFlag, p.WillRetain, p.WillTopic, p.WillQos, p.WillMessage = true, true, "tms/device/CAB-1/status", 1, []byte("x")
	require.EqualValues(t, packets.Accepted, s.dial().login(p))
}

func TestOwnTopicsOfADevice(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c := s.connect(s.options("CAB-1", "one"))
	got := make(chan paho.Message, 4)
	for _, leaf := range []topic.Leaf{topic.Down, topic.Config} {
		require.NoError(t, done(t, c.Subscribe(topic.Device("tms", "CAB-1", leaf), 1, func(_ paho.Client, m paho.Message) { got <- m })))
		require.NoError(t, s.Send("CAB-1", leaf, []byte(leaf), false))
		m := <-got
		require.Equal(t, string(leaf), string(m.Payload()))
		require.EqualValues(t, 1, m.Qos())
	}
	for _, leaf := range []topic.Leaf{topic.Up, topic.Status} {
		require.NoError(t, done(t, c.Publish(topic.Device("tms", "CAB-1", leaf), 1, leaf == topic.Status, "hello")))
		eventually(t, "received", func() bool { return s.link.has(publish{"CAB-1", 1, leaf, "hello"}) })
	}
}

// The library drops a publish to $SYS, and one to a name with wildcards, without
// a word, and answers malformed filters instead of ending anything. All of them
// close the connection, unacknowledged, and reach the audit.
func TestForeignTopicClosesTheConnectionAndIsAudited(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, name := range []string{"tms/device/CAB-2/up", "tms/device/CAB-2/status", "tms/device/CAB-1/down", "tms/device/CAB-1/config", "tms/device/CAB-1/upper",
		"tms/device/CAB-1/up/x", "$SYS/broker/uptime", "$share/g/tms/device/CAB-1/up", "tms/#", "tms/device/+/up", "#", "x", "TMS/device/CAB-1/up"} {
		c := s.dial()
		require.Zero(t, c.login(connectPacket("CAB-1", "one")))
		c.send(publishPacket(name, []byte("x")))
		c.closed()
		require.True(t, s.audited(use{"dev-CAB-1", name, true}), "publish to %s", name)
	}
	for _, filter := range []string{"tms/device/CAB-2/down", "tms/device/CAB-2/config", "tms/device/CAB-1/up", "tms/device/CAB-1/status", "tms/device/CAB-1/+",
		"tms/device/+/down", "#", "+", "tms/#", "$SYS/#", "$share/g/tms/device/CAB-1/down", "$share/g/#", "$share", "tms/#/x", "x"} {
		c := s.dial()
		require.Zero(t, c.login(connectPacket("CAB-1", "one")))
		c.send(subscribePacket(filter))
		c.closed()
		require.True(t, s.audited(use{"dev-CAB-1", filter, false}), "subscribe to %s", filter)
	}
	received, _ := s.link.count()
	require.Zero(t, received)
}

// The library acknowledges a publish before it is routed, and to an MQTT 3.1.1
// client even when a callback refused it. So a PUBACK proves nothing: here the
// queue behind drops the payload, and the client gets a success.
func TestPubackProvesNothingTheQueueMayHaveDroppedIt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c := s.dial()
	require.Zero(t, c.login(connectPacket("CAB-1", "one")))
	s.link.mu.Lock()
	s.link.drop = true
	s.link.mu.Unlock()
	c.send(publishPacket("tms/device/CAB-1/up", []byte("lost")))
	ack, ok := c.next().(*packets.PubackPacket)
	require.True(t, ok)
	require.EqualValues(t, 7, ack.MessageID)
	received, _ := s.link.count()
	require.Zero(t, received, "acknowledged, and nobody has it: only the link's own receipt counts")
}

// A refusal to an MQTT 3.1.1 client has no reason code: if the connection stayed
// open the message would count as accepted.
func TestRefusalOfAnOldClientClosesItWithoutAnAcknowledgement(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c := s.dial()
	require.Zero(t, c.login(connectPacket("CAB-1", "one")))
	for range 3 { // also when the client does not wait
		_ = publishPacket("tms/device/CAB-2/up", []byte("x")).Write(c)
	}
	c.closed() // fails on any PUBACK
	eventually(t, "gone", func() bool { return s.link.left(1) })
}

// Without a limit the library allocates what a header claims, before login.
func TestPacketOver256KiBIsRefusedBeforeLogin(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c := s.dial()
	_, err := c.Write([]byte{0x10, 0xff, 0xff, 0xff, 0x7f}) // CONNECT of 256 MB
	require.NoError(t, err)
	c.closed()

	c = s.dial()
	require.Zero(t, c.login(connectPacket("CAB-1", "one")))
	_ = publishPacket("tms/device/CAB-1/up", bytes.Repeat([]byte{1}, 256<<10)).Write(c) // the connection may break while it is written
	c.closed()
	received, _ := s.link.count()
	require.Zero(t, received)

	c = s.dial()
	require.Zero(t, c.login(connectPacket("CAB-1", "one")))
	c.send(publishPacket("tms/device/CAB-1/up", bytes.Repeat([]byte{1}, 128<<10)))
	_, ok := c.next().(*packets.PubackPacket)
	require.True(t, ok, "the link's own limit of 128 KiB passes")
}

// The library makes room for a packet when its length is announced. Before the login
// that is little, in whatever pieces the length comes.
func TestALongFirstPacketIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for name, says := range map[string][]string{"whole": {"\x10\x80\x80\x02"}, "in pieces": {"\x10", "\x80", "\x80\x02"}, "no length at all": {"\x10\xff\xff\xff\xff"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := New(Config{Devices: &link{}})
				require.NoError(t, err)
				here, there := net.Pipe()
				began := time.Now()
				go func() {
					for _, x := range says {
						_, _ = io.WriteString(here, x)
					}
				}()
				require.Error(t, b.ServeConn(there))
				require.Zero(t, time.Since(began))
				require.NoError(t, b.Close())
			})
		})
	}
}

// One address has so many connections and no more, over WebSocket too; when one ends,
// another gets in.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	s := &stand{t: t, link: &link{secrets: map[string]string{"CAB-1": "one", "CAB-2": "two", "CAB-3": "three"}}}
	var err error
	s.Broker, err = New(Config{Devices: s.link, Crowd: limit.NewCrowd(limit.Connections{Address: 2}, nil)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	ln, web := listen(t), listen(t)
	s.addr = ln.Addr().String()
	require.NoError(t, s.Serve(ln, nil))
	require.NoError(t, s.ServeWebSocket(web, nil))
	first := s.dial()
	require.Zero(t, first.login(connectPacket("CAB-1", "one")))
	second, _, err := websocket.DefaultDialer.Dial("ws://"+web.Addr().String()+"/mqtt", http.Header{"Sec-WebSocket-Protocol": {"mqtt"}})
	require.NoError(t, err)
	var connect bytes.Buffer
	require.NoError(t, connectPacket("CAB-2", "two").Write(&connect))
	require.NoError(t, second.WriteMessage(websocket.BinaryMessage, connect.Bytes()))
	_, _, err = second.ReadMessage()
	require.NoError(t, err)
	third := func() bool {
		c, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		defer c.Close()
		var connect bytes.Buffer
		require.NoError(t, connectPacket("CAB-3", "three").Write(&connect))
		_, _ = c.Write(connect.Bytes())
		p, err := packets.ReadPacket(c)
		ack, is := p.(*packets.ConnackPacket)
		return err == nil && is && ack.ReturnCode == 0
	}
	require.False(t, third(), "one too many")
	require.Equal(t, 2, s.Connected(), "the others stay")
	require.NoError(t, second.Close())
	ring.Await(t, third)
}

func TestClientThatNeverSaysWhoItIsIsLetGo(t *testing.T) {
	t.Parallel()
	var connect bytes.Buffer
	require.NoError(t, connectPacket("CAB-1", "one").Write(&connect))
	for name, says := range map[string][]byte{"silent": nil, "half a CONNECT": connect.Bytes()[:5]} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := New(Config{Devices: &link{}})
				require.NoError(t, err)
				here, there := net.Pipe()
				began := time.Now()
				go func() { _, _ = here.Write(says) }()
				require.Error(t, b.ServeConn(there))
				require.Equal(t, loginWait, time.Since(began))
				require.NoError(t, b.Close())
			})
		})
	}
	s := newStand(t)
	first := s.dial()
	first.send(publishPacket("tms/device/CAB-1/up", []byte("x"))) // not a CONNECT
	first.closed()
	require.Zero(t, s.Connected())
}

// A keep-alive of 0 switches the library's deadline off, and a dead connection
// would count as present for ever.
func TestKeepAliveIsBounded(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, k := range []uint16{0, 65535, 30} {
		c, p := s.dial(), connectPacket("CAB-1", "one")
		p.Keepalive = k
		require.Zero(t, c.login(p))
		cl, ok := s.server.Clients.Get("dev-CAB-1")
		require.True(t, ok)
		want := uint16(keepAlive)
		if k == 30 {
			want = 30
		}
		require.Equal(t, want, cl.State.Keepalive)
		require.LessOrEqual(t, cl.State.Keepalive*3/2, uint16(90), "silence counts as absence after 90 s")
	}
}

// The newer login wins. The older one's will, its end and everything it still
// sends count for nothing: they carry a generation that is over.
func TestTakeoverTheNewerLoginWins(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	lost := make(chan error, 1)
	o := s.options("CAB-1", "one").SetBinaryWill("tms/device/CAB-1/status", []byte("will"), 1, true).
		SetConnectionLostHandler(func(_ paho.Client, err error) { lost <- err })
	older := s.connect(o)
	got := make(chan string, 4)
	newer := s.connect(s.options("CAB-1", "one"))
	<-lost
	require.False(t, older.IsConnectionOpen())
	require.NoError(t, done(t, newer.Subscribe("tms/device/CAB-1/down", 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })))
	require.NoError(t, s.Send("CAB-1", topic.Down, []byte("for the newer"), false))
	require.Equal(t, "for the newer", <-got)
	require.NoError(t, done(t, newer.Publish("tms/device/CAB-1/up", 1, false, "x")))
	eventually(t, "received", func() bool { return s.link.has(publish{"CAB-1", 2, topic.Up, "x"}) })
	require.False(t, s.link.left(2))
	require.False(t, s.link.has(publish{"CAB-1", 1, topic.Status, "will"}), "a will never reaches the intake")
	require.Equal(t, 1, s.Connected())
	s.Kick("CAB-1")
	eventually(t, "the newest one's end counts", func() bool { return s.link.left(2) })
}

// slowEnd holds up the end of connections between two steps of the library.
type slowEnd struct {
	mqtt.HookBase
	reached, goOn chan struct{}
}

func (h *slowEnd) ID() string           { return "slow end" }
func (h *slowEnd) Provides(b byte) bool { return b == mqtt.OnUnsubscribed }
func (h *slowEnd) OnUnsubscribed(*mqtt.Client, packets5.Packet) {
	select {
	case h.reached <- struct{}{}:
		<-h.goOn
	default:
	}
}

// A device that came back while its old connection was still ending was connected
// and received nothing any more: the end of the old one took the new one's place
// in the library's books with it.
func TestTakeoverOfAConnectionThatIsEnding(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	slow := &slowEnd{reached: make(chan struct{}), goOn: make(chan struct{})}
	require.NoError(t, s.server.AddHook(slow, nil))
	older := s.connect(s.options("CAB-1", "one"))
	require.NoError(t, done(t, older.Subscribe("tms/device/CAB-1/down", 1, func(paho.Client, paho.Message) {})))
	older.Disconnect(0)
	<-slow.reached
	time.AfterFunc(200*time.Millisecond, func() { close(slow.goOn) })
	newer := s.connect(s.options("CAB-1", "one"))
	got := make(chan string, 4)
	require.NoError(t, done(t, newer.Subscribe("tms/device/CAB-1/down", 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })))
	<-slow.goOn
	eventually(t, "the old one has ended", func() bool { return s.Connected() == 1 })
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, s.Send("CAB-1", topic.Down, []byte("for the newer"), false))
	select {
	case text := <-got:
		require.Equal(t, "for the newer", text)
	case <-time.After(4 * time.Second):
		require.Fail(t, "the newer connection receives nothing")
	}
	s.Kick("CAB-1")
	eventually(t, "it can be kicked", func() bool { return !newer.IsConnectionOpen() })
}

// A client that goes away between CONNECT and its answer was never heard of
// again: the library ends it without its disconnect event, and its device would
// stay online.
func TestClientThatLeavesDuringItsLoginIsGone(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for range 20 {
		here, there := net.Pipe()
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.ServeConn(there) }()
		require.NoError(t, connectPacket("CAB-1", "one").Write(here))
		require.NoError(t, here.Close()) // no client reads the answer
		<-ended
	}
	require.Zero(t, s.Connected())
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	require.Len(t, s.link.gone, int(s.link.last), "every login has its end")
}

func TestRetainedConfigurationWaitsForTheNextConnection(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	require.NoError(t, s.Send("CAB-1", topic.Config, []byte("v1"), true))
	require.NoError(t, s.Send("CAB-1", topic.Config, []byte("v2"), true))
	require.NoError(t, s.Send("CAB-1", topic.Down, []byte("gone"), false))
	s.sends.wg.Wait()
	c := s.connect(s.options("CAB-1", "one"))
	got := make(chan paho.Message, 4)
	require.NoError(t, done(t, c.SubscribeMultiple(map[string]byte{"tms/device/CAB-1/config": 1, "tms/device/CAB-1/down": 1}, func(_ paho.Client, m paho.Message) { got <- m })))
	m := <-got
	require.Equal(t, "v2", string(m.Payload()))
	require.True(t, m.Retained())
	require.NoError(t, s.Send("CAB-1", topic.Down, []byte("next"), false))
	require.Equal(t, "next", string((<-got).Payload()), "what was sent to nobody is not kept")
}

// paho's tokens are done after a reconnect although nothing was stored: a publish
// that was on its way when the connection broke counts as sent.
func TestTokenOfPahoIsDoneThoughNothingWasStored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.link.mu.Lock()
	s.link.drop = true
	s.link.mu.Unlock()
	var first *swallower
	o := s.options("CAB-1", "one").SetAutoReconnect(true).SetMaxReconnectInterval(10 * time.Millisecond)
	o.SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
		c, err := net.Dial("tcp", s.addr)
		if err != nil || first != nil {
			return c, err
		}
		first = &swallower{Conn: c, swallowed: make(chan struct{}, 1)}
		return first, nil
	})
	c := s.connect(o)
	first.swallows.Store(true)
	tok := c.Publish("tms/device/CAB-1/up", 1, false, "x")
	<-first.swallowed // on its way
	select {
	case <-tok.Done():
		require.Fail(t, "done before anything answered")
	default:
	}
	s.Kick("CAB-1")
	require.NoError(t, done(t, tok), "after the reconnect")
	received, _ := s.link.count()
	require.Zero(t, received)
}

func TestTLSAndClientCertificates(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ca, other := newAuthority(t), newAuthority(t)
	ln := listen(t)
	require.NoError(t, s.Serve(ln, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ca.issue(t, "server")},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: ca.pool}))
	try := func(code, secret string, cert ...tls.Certificate) error {
		o := s.options(code, secret)
		o.Servers = nil
		o.AddBroker("ssl://" + ln.Addr().String()).SetTLSConfig(&tls.Config{RootCAs: ca.pool, Certificates: cert})
		c := paho.NewClient(o)
		err := done(t, c.Connect())
		if err == nil {
			err = done(t, c.Publish(topic.Device("tms", code, topic.Up), 1, false, "tls"))
			c.Disconnect(0)
		}
		return err
	}
	require.NoError(t, try("CAB-1", "one"), "a secret over TLS")
	require.NoError(t, try("CAB-1", "", ca.issue(t, "CAB-1")), "a certificate instead of a secret")
	s.link.setCutOff(time.Now().Add(-time.Hour))
	require.NoError(t, try("CAB-1", "", ca.issue(t, "CAB-1")), "valid since after the cut-off")
	s.link.setCutOff(time.Now().Add(time.Hour))
	require.Error(t, try("CAB-1", "", ca.issue(t, "CAB-1")), "valid since before the cut-off")
	s.link.setCutOff(time.Time{})
	require.Error(t, try("CAB-2", "", ca.issue(t, "CAB-1")), "a certificate of another device")
	require.Error(t, try("CAB-2", "one", ca.issue(t, "CAB-1")), "a certificate does not help a wrong secret")
	require.Error(t, try("CAB-1", "", other.issue(t, "CAB-1")), "an authority that nobody trusts")
	require.Error(t, try("CAB-7", "", ca.issue(t, "CAB-7")), "an unknown device")
	require.Error(t, try("CAB-1", ""), "neither")

	old, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{RootCAs: ca.pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}) //nolint:gosec // it must be refused
	require.Error(t, err)
	require.Nil(t, old)
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ln := listen(t)
	require.NoError(t, s.ServeWebSocket(ln, nil))
	o := s.options("CAB-1", "one")
	o.Servers = nil
	o.AddBroker("ws://" + ln.Addr().String() + "/mqtt")
	c := s.connect(o)
	got := make(chan string, 4)
	require.NoError(t, done(t, c.Subscribe("tms/device/CAB-1/down", 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })))
	big := strings.Repeat("x", 128<<10)
	require.NoError(t, s.Send("CAB-1", topic.Down, []byte(big), false))
	require.Equal(t, big, <-got)
	require.NoError(t, done(t, c.Publish("tms/device/CAB-1/up", 1, false, big)))
	eventually(t, "received", func() bool { return s.link.has(publish{"CAB-1", 1, topic.Up, big}) })
	c.Disconnect(0)
	eventually(t, "gone", func() bool { return s.link.left(1) })

	bad := s.options("CAB-1", "wrong")
	bad.Servers = nil
	bad.AddBroker("ws://" + ln.Addr().String() + "/mqtt")
	require.Error(t, done(t, paho.NewClient(bad).Connect()))
	elsewhere := s.options("CAB-1", "one")
	elsewhere.Servers = nil
	elsewhere.AddBroker("ws://" + ln.Addr().String() + "/other")
	require.Error(t, done(t, paho.NewClient(elsewhere).Connect()))
}

func TestCloseEndsConnectionsAndIsFinal(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c := s.connect(s.options("CAB-1", "one"))
	require.NoError(t, s.Close())
	eventually(t, "closed", func() bool { return !c.IsConnectionOpen() })
	require.True(t, s.link.left(1), "Close waits for the word of every connection")
	here, there := net.Pipe()
	require.ErrorIs(t, s.ServeConn(there), errClosed)
	_ = here.Close()
	require.ErrorIs(t, s.Serve(listen(t), nil), errClosed)
}

func TestPrefixIsChecked(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Devices: &link{}, Prefix: "a/#"})
	require.ErrorContains(t, err, "topic prefix")
}

// mosquitto runs one of the reference clients.
func mosquitto(t *testing.T, name string, args ...string) (out string, err error) {
	t.Helper()
	path, look := exec.LookPath(name)
	ring.Needs(t, ring.EnvTools, name, look == nil)
	b, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	return string(b), err
}

func TestMosquittoClients(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	host, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	for _, version := range []string{"mqttv311", "mqttv5"} {
		args := func(more ...string) []string {
			return append([]string{"-h", host, "-p", port, "-V", version, "-i", "dev-CAB-1", "-u", "CAB-1", "-P", "one", "-q", "1"}, more...)
		}
		out, err := mosquitto(t, "mosquitto_pub", args("-t", "tms/device/CAB-1/up", "-m", "by "+version)...)
		require.NoError(t, err, out)
		s.link.mu.Lock()
		last := s.link.received[len(s.link.received)-1]
		s.link.mu.Unlock()
		require.Equal(t, "by "+version, last.payload)
		out, err = mosquitto(t, "mosquitto_pub", append(args("-t", "tms/device/CAB-1/up", "-m", "x"), "-P", "wrong")...)
		require.Error(t, err, out)
		_, _ = mosquitto(t, "mosquitto_pub", args("-t", "tms/device/CAB-2/up", "-m", version)...) // says nothing or complains: what counts is below
		require.True(t, s.audited(use{"dev-CAB-1", "tms/device/CAB-2/up", true}))

		require.NoError(t, s.Send("CAB-1", topic.Config, []byte("kept"), true))
		out, err = mosquitto(t, "mosquitto_sub", args("-t", "tms/device/CAB-1/config", "-C", "1", "-W", "10")...)
		require.NoError(t, err, out)
		require.Equal(t, "kept\n", out)
		out, err = mosquitto(t, "mosquitto_sub", args("-t", "tms/#", "-C", "1", "-W", "2")...)
		require.Error(t, err, out)
		require.True(t, s.audited(use{"dev-CAB-1", "tms/#", false}))
	}
	received, _ := s.link.count()
	require.Equal(t, 2, received)
}

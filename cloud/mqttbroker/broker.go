// Package mqttbroker is the embedded MQTT broker: logins and topic rights of
// devices and of people's apps, intake, sending.
//
// The broker only carries. A publish is copied into a bounded queue and
// acknowledged at MQTT level whether or not it is ever stored; delivery is
// proven by the device link's own receipts. A forbidden packet of a device closes its
// connection. Nothing is kept for a client that is away: sessions are clean.
//
// People's apps subscribe and do nothing else. Each topic that they may have is
// given to them by name; another is refused in the answer, a publish closes the
// connection. Their messages have ids: a connection that ends, for whatever
// reason, loses nothing that the app does not receive again when it comes back.
package mqttbroker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/protocol/topic"
)

// Devices is what the broker needs of the device link.
type Devices interface {
	Login(ctx context.Context, code, secret string) (generation int64, err error)
	// LoginCertificate lets in a device by a verified certificate, valid since from.
	LoginCertificate(ctx context.Context, code string, from time.Time) (generation int64, err error)
	Receive(code string, generation int64, leaf topic.Leaf, payload []byte)
	Disconnected(ctx context.Context, code string, generation int64)
}

// Config is what New needs.
type Config struct {
	Devices Devices
	People  People // nil: apps of people are not let in
	Prefix  string // of all topics; empty: topic.DefaultPrefix
	Log     *slog.Logger
	// Foreign receives a client that used a topic it has no right to, for the
	// audit. It must not block.
	Foreign func(client, topic string, write bool)
	// Recheck is how often what apps were let in by is looked at again; 0: thirty
	// seconds.
	Recheck time.Duration
	// Plain lets listeners without TLS take connections from beyond the loopback.
	// Device secrets then cross the network in the clear.
	Plain bool
	// Caller is the address of who connects over WebSocket, as seen behind proxies;
	// nil: that of the connection.
	Caller func(*http.Request) net.Addr
	// Crowd bounds the connections of one address; nil: they are not counted.
	Crowd *limit.Crowd
}

// Limits of a client.
const (
	maxPacket     = 256 << 10
	maxConnect    = 16 << 10 // of the first packet
	writesPending = 128      // queued messages to a slow client; more are lost and come again
	loginWait     = 10 * time.Second
	keepAlive     = 60 // seconds a client may ask for; silence of half as long again ends its connection
	acceptPause   = 100 * time.Millisecond
)

// Broker is the broker. Serve and ServeWebSocket give it connections; Close
// ends it.
type Broker struct {
	cfg    Config
	server *mqtt.Server
	events *brokerEvents
	sends  sends

	mu        sync.Mutex
	closed    bool
	conns     map[net.Conn]bool
	listeners []io.Closer
	wg        sync.WaitGroup     // of listeners
	serving   sync.WaitGroup     // of connections
	stop      context.CancelFunc // ends the rechecks
}

// New builds a broker that does not listen yet.
func New(cfg Config) (*Broker, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = topic.DefaultPrefix
	}
	if !topic.ValidPrefix(cfg.Prefix) {
		return nil, fmt.Errorf("topic prefix %q: levels of A-Z a-z 0-9 _ - joined by slashes", cfg.Prefix)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Crowd == nil {
		cfg.Crowd = limit.NewCrowd(limit.Connections{Address: -1, Total: -1}, nil)
	}
	if cfg.Foreign == nil {
		cfg.Foreign = func(string, string, bool) {}
	}
	c := mqtt.NewDefaultServerCapabilities()
	c.MaximumPacketSize = maxPacket // the default is none, allocated before login
	c.MaximumClientWritesPending = writesPending
	c.MaximumInflight = writesPending
	c.MaximumQos = 1
	c.MaximumSessionExpiryInterval = 0
	c.TopicAliasMaximum = 0
	c.WildcardSubAvailable = 0
	c.SharedSubAvailable = 0
	s := mqtt.New(&mqtt.Options{Capabilities: c, InlineClient: true, Logger: slog.New(quiet{cfg.Log.Handler()}), ClientNetReadBufferSize: 2048, ClientNetWriteBufferSize: 2048,
		SysTopicResendInterval: 1 << 30}) // no client may read $SYS
	b := &Broker{cfg: cfg, server: s, conns: map[net.Conn]bool{}}
	b.sends = sends{publish: b.publish, queues: map[string][]sending{}}
	b.events = &brokerEvents{cfg: cfg, apps: newApps(cfg), turns: newTurns(), clients: map[string]*login{}, conns: map[net.Conn]*login{}}
	if err := s.AddHook(b.events, nil); err != nil {
		return nil, fmt.Errorf("add broker extension: %w", err)
	}
	if err := s.Serve(); err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	if cfg.People != nil {
		b.wg.Go(func() { b.events.apps.run(ctx, cmp.Or(cfg.Recheck, appRecheck)) })
	}
	return b, nil
}

// Serve takes connections from ln until Close. With config set they are TLS; a
// verified client certificate stands in for a password. It returns at once. On
// error, as with a plain listener beyond the loopback, ln is closed.
func (b *Broker) Serve(ln net.Listener, config *tls.Config) error {
	ln, err := b.secure(ln, config)
	if err != nil {
		return err
	}
	if !b.addCloser(ln) {
		return errors.Join(errClosed, ln.Close())
	}
	b.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				b.cfg.Log.Warn("accept MQTT connection", "err", err)
				time.Sleep(acceptPause) // out of descriptors, most likely
				continue
			}
			go func() {
				if err := b.ServeConn(c); err != nil {
					b.cfg.Log.Debug("MQTT client left", "remote", c.RemoteAddr(), "err", err)
				}
			}()
		}
	})
	return nil
}

// secure puts TLS on a listener, or checks that it may do without.
func (b *Broker) secure(ln net.Listener, config *tls.Config) (net.Listener, error) {
	if config != nil {
		return tls.NewListener(ln, config), nil
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !b.cfg.Plain {
		return nil, errors.Join(fmt.Errorf("MQTT without TLS at %s would show device secrets to the network: listen on the loopback, use TLS, or allow it (mqtt.plain)", tcp), ln.Close())
	}
	return ln, nil
}

// addCloser remembers what Close has to close.
func (b *Broker) addCloser(l io.Closer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.listeners = append(b.listeners, l)
	return true
}

// ServeConn serves one connection and returns when it has ended. A client that
// does not say who it is within ten seconds is let go.
func (b *Broker) ServeConn(c net.Conn) error {
	c = &opening{Conn: c}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errors.Join(errClosed, c.Close())
	}
	b.conns[c] = true
	b.serving.Add(1)
	b.mu.Unlock()
	defer b.serving.Done()
	defer func() {
		b.mu.Lock()
		delete(b.conns, c)
		b.mu.Unlock()
		_ = c.Close() // closed already, mostly
	}()
	if err := c.SetReadDeadline(time.Now().Add(loginWait)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	leave, ok := b.cfg.Crowd.Enter(c.RemoteAddr())
	if !ok {
		return errCrowd
	}
	defer leave()
	turn := b.events.turns.begin(c)
	defer b.events.turns.end(turn)
	defer b.events.left(c)                         // the library says nothing of a client that left before its login was answered
	return b.server.EstablishConnection("mqtt", c) // sets its own deadline after the login
}

// Publish gives a message to the apps that listen to a topic. It never waits for
// them: one that is too slow loses its connection.
func (b *Broker) Publish(topic string, m Message) { b.events.apps.publish(topic, m) }

// Kick closes a device's connection.
func (b *Broker) Kick(code string) {
	if cl, ok := b.server.Clients.Get(topic.ClientID(code)); ok {
		cl.Stop(packets.ErrAdministrativeAction)
	}
}

// Connected is the number of connected clients.
func (b *Broker) Connected() int { return b.events.connected() }

// Traffic is what the broker has carried since it was made, and its connections now.
type Traffic struct {
	Devices, Apps            int   // connected
	Connections              int   // with those that have not said who they are
	Received, Sent, Dropped  int64 // messages; dropped ones were too many for a slow client
	BytesReceived, BytesSent int64
}

// Traffic counts what the broker carries.
func (b *Broker) Traffic() Traffic {
	i := b.server.Info.Clone()
	t := Traffic{Devices: b.Connected(), Apps: b.events.apps.connected(), Received: i.MessagesReceived, Sent: i.MessagesSent, Dropped: i.MessagesDropped, BytesReceived: i.BytesReceived, BytesSent: i.BytesSent}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Connections = len(b.conns)
	return t
}

// Drain takes no more connections and lets go of those that it has one after the other,
// evenly over a time, so that they do not all come to another node at once. It ends early
// when none are left, or when ctx ends. Close comes after it.
func (b *Broker) Drain(ctx context.Context, over time.Duration) error {
	b.mu.Lock()
	listeners := b.listeners
	b.listeners = nil
	conns := slices.Collect(maps.Keys(b.conns))
	b.mu.Unlock()
	err := closeAll(listeners)
	byConn := map[net.Conn]*mqtt.Client{}
	for _, cl := range b.server.Clients.GetAll() {
		byConn[cl.Net.Conn] = cl
	}
	var goodbyes sync.WaitGroup
	defer goodbyes.Wait()
	for _, c := range conns {
		goodbyes.Go(func() { b.letGo(c, byConn[c]) })
		select {
		case <-ctx.Done():
			return err
		case <-time.After(over / time.Duration(len(conns))):
		}
	}
	return err
}

// goodbye is how long a client may take to read that its connection ends.
const goodbye = time.Second

// letGo ends a connection, with a word of why to a client that reads it. One that reads
// nothing blocks what is written to it until its connection is closed.
func (b *Broker) letGo(c net.Conn, cl *mqtt.Client) {
	if cl != nil {
		late := time.AfterFunc(goodbye, func() { _ = c.Close() })
		defer late.Stop()
		_ = b.server.DisconnectClient(cl, packets.ErrServerShuttingDown)
	}
	_ = c.Close()
}

func closeAll(list []io.Closer) error {
	errs := make([]error, 0, len(list))
	for _, l := range list {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Close ends all connections and listeners, and waits for them.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil // the library does not survive a second time
	}
	b.closed = true
	b.stop()
	listeners, conns := b.listeners, b.conns
	b.listeners, b.conns = nil, map[net.Conn]bool{}
	b.mu.Unlock()
	err := closeAll(listeners)
	for c := range conns {
		_ = c.Close()
	}
	b.wg.Wait()
	b.serving.Wait()
	b.sends.wg.Wait()
	return errors.Join(err, b.server.Close())
}

// brokerEvents is the broker's side of mochi's events.
type brokerEvents struct {
	mqtt.HookBase
	cfg  Config
	apps *apps

	mu      sync.Mutex
	turns   *turns
	clients map[string]*login   // by client id, of the newest connection
	conns   map[net.Conn]*login // of every connection that was let in
}

// login is who is behind a connection.
type login struct {
	client     *mqtt.Client
	code       string
	generation int64
}

func (h *brokerEvents) ID() string { return "postern" }

func (h *brokerEvents) Provides(b byte) bool {
	return bytes.Contains([]byte{mqtt.OnConnectAuthenticate, mqtt.OnSessionEstablish, mqtt.OnACLCheck, mqtt.OnPacketRead, mqtt.OnPublish, mqtt.OnSubscribed, mqtt.OnUnsubscribed, mqtt.OnDisconnect}, []byte{b})
}

func (h *brokerEvents) connected() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// OnConnectAuthenticate lets in devices that know their secret, or hold a
// client certificate that names them.
func (h *brokerEvents) OnConnectAuthenticate(cl *mqtt.Client, pk packets.Packet) bool {
	ctx, cancel := context.WithTimeout(context.Background(), loginWait)
	defer cancel()
	if isApp(cl.ID) {
		limitSilence(cl)
		err := h.apps.admit(ctx, cl, pk)
		if err != nil {
			h.cfg.Log.Info("app refused", "client", short(cl.ID), "remote", cl.Net.Remote, "err", err)
		}
		return err == nil
	}
	code, secret := string(pk.Connect.Username), string(pk.Connect.Password)
	cert, from := certificateOf(cl.Net.Conn)
	if cert != "" && (code == "" || code == cert) && secret == "" {
		code = cert
	}
	if !topic.ValidCode(code) || cl.ID != topic.ClientID(code) {
		return false
	}
	if pk.Connect.WillFlag && !topic.DeviceMay(h.cfg.Prefix, code, pk.Connect.WillTopic, true) {
		h.cfg.Foreign(cl.ID, short(pk.Connect.WillTopic), true)
		return false
	}
	var generation int64
	var err error
	if cert == code && secret == "" {
		generation, err = h.cfg.Devices.LoginCertificate(ctx, code, from)
	} else {
		generation, err = h.cfg.Devices.Login(ctx, code, secret)
	}
	if err != nil {
		h.cfg.Log.Info("device login refused", "device", code, "remote", cl.Net.Remote, "err", err)
		return false
	}
	limitSilence(cl)
	// No session outlives the connection. Of a client of MQTT 3.1.1 that asks
	// for more, the library would keep subscriptions for good, and what it was sent
	// for a while. Clients of MQTT 5 learn this from the answer.
	cl.Properties.Clean = true
	l := &login{client: cl, code: code, generation: generation}
	h.mu.Lock()
	if old := h.clients[cl.ID]; old == nil || old.generation < generation { // of two at once the newer one stays
		h.clients[cl.ID] = l
	}
	h.conns[cl.Net.Conn] = l
	h.mu.Unlock()
	return true
}

// limitSilence lets no client be silent for longer than the link allows. One of MQTT 5
// hears of it (section 3.2.2.3.14).
func limitSilence(cl *mqtt.Client) {
	if s := &cl.State; s.Keepalive == 0 || s.Keepalive > keepAlive {
		s.Keepalive, s.ServerKeepalive = keepAlive, true
	}
}

// certificateOf is the common name of a verified client certificate, "" without
// one, and since when it is valid.
func certificateOf(c net.Conn) (name string, from time.Time) {
	if o, ok := c.(*opening); ok {
		c = o.Conn
	}
	if ws, ok := c.(*wsConn); ok {
		c = ws.Conn
	}
	t, ok := c.(*tls.Conn)
	if !ok {
		return "", from
	}
	st := t.ConnectionState()
	if len(st.VerifiedChains) == 0 {
		return "", from
	}
	leaf := st.VerifiedChains[0][0]
	return leaf.Subject.CommonName, leaf.NotBefore
}

func (h *brokerEvents) login(cl *mqtt.Client) *login {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.clients[cl.ID]; l != nil && l.client == cl {
		return l
	}
	return nil
}

// OnPacketRead looks at every topic that a client names, before the library
// does: a foreign one closes the connection. The library alone would drop the
// message, answer, or do nothing at all ($SYS, a malformed filter), and report
// nothing.
func (h *brokerEvents) OnPacketRead(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	switch pk.FixedHeader.Type {
	case packets.Publish:
		return pk, h.allow(cl, pk.TopicName, true)
	case packets.Puback:
		if a := h.apps.find(cl); a != nil {
			a.acknowledge(pk.PacketID)
		}
	case packets.Subscribe:
		if h.apps.find(cl) != nil {
			return pk, nil // what it may not is refused in the answer
		}
		for _, f := range pk.Filters {
			if err := h.allow(cl, f.Filter, false); err != nil {
				return pk, err
			}
		}
	}
	return pk, nil
}

// allow closes the connection of a client that names a foreign topic.
func (h *brokerEvents) allow(cl *mqtt.Client, name string, write bool) error {
	if h.OnACLCheck(cl, name, write) {
		return nil
	}
	if a := h.apps.find(cl); a != nil {
		h.apps.refused(a, name, write)
	} else if h.login(cl) != nil {
		name = short(name)
		h.cfg.Foreign(cl.ID, name, write)
		h.cfg.Log.Warn("topic refused", "client", cl.ID, "topic", name, "write", write)
	}
	cl.Stop(packets.ErrNotAuthorized)
	return packets.ErrRejectPacket // the only error that the library heeds here
}

// OnACLCheck allows a device its own topics, and an app to subscribe to those
// that it was given. One that has been taken over has none any more.
func (h *brokerEvents) OnACLCheck(cl *mqtt.Client, name string, write bool) bool {
	if a := h.apps.find(cl); a != nil {
		return !write && h.apps.may(a, name)
	}
	l := h.login(cl)
	return l != nil && topic.DeviceMay(h.cfg.Prefix, l.code, name, write)
}

// OnPublish queues what a device sends and returns; it never waits for the
// database. The payload is copied: the library reuses its buffer.
func (h *brokerEvents) OnPublish(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	if cl.Net.Inline {
		return pk, nil
	}
	l := h.login(cl)
	_, leaf, err := topic.ParseDevice(h.cfg.Prefix, pk.TopicName)
	if l == nil || err != nil {
		cl.Stop(packets.ErrNotAuthorized)
		return pk, packets.ErrRejectPacket
	}
	h.cfg.Devices.Receive(l.code, l.generation, leaf, bytes.Clone(pk.Payload))
	return pk, nil
}

// OnSessionEstablish comes after a login that was let in and before the library
// looks for an older connection of the same client.
func (h *brokerEvents) OnSessionEstablish(cl *mqtt.Client, _ packets.Packet) {
	h.turns.follow(cl.Net.Conn, cl.ID)
}

// OnSubscribed and OnUnsubscribed keep the books of who listens to what.
func (h *brokerEvents) OnSubscribed(cl *mqtt.Client, pk packets.Packet, codes []byte) {
	if a := h.apps.find(cl); a != nil {
		h.apps.subscribed(a, pk, codes)
	}
}

func (h *brokerEvents) OnUnsubscribed(cl *mqtt.Client, pk packets.Packet) {
	if a := h.apps.find(cl); a != nil {
		h.apps.unsubscribed(a, pk)
	}
}

// OnDisconnect marks a device as gone, unless a newer connection has taken
// over. The will says nothing more, so it is not read.
func (h *brokerEvents) OnDisconnect(cl *mqtt.Client, _ error, _ bool) {
	if l := h.login(cl); l != nil {
		h.gone(l)
	}
}

// left forgets the login of a connection that has ended.
func (h *brokerEvents) left(c net.Conn) {
	h.apps.left(c)
	h.mu.Lock()
	l := h.conns[c]
	delete(h.conns, c)
	h.mu.Unlock()
	if l != nil {
		h.gone(l)
	}
}

// gone says that a login has ended, once, unless a newer one has taken over.
func (h *brokerEvents) gone(l *login) {
	h.mu.Lock()
	newest := h.clients[l.client.ID] == l
	if newest {
		delete(h.clients, l.client.ID)
	}
	h.mu.Unlock()
	if !newest {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), loginWait)
	defer cancel()
	h.cfg.Devices.Disconnected(ctx, l.code, l.generation)
}

// quiet keeps the library's notices about ordinary events of a network out of
// the log: a client that left is no warning.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(n string) slog.Handler      { return quiet{q.Handler.WithGroup(n)} }

var errClosed, errCrowd = errors.New("the connection is closed"), errors.New("the address has too many connections")

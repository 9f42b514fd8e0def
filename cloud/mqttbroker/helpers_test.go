package mqttbroker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/topic"
)

// link is the device link as the broker sees it: logins by password, and a
// notebook of what it received.
type link struct {
	mu       sync.Mutex
	secrets  map[string]string // by device code
	last     int64             // generation
	received []publish
	gone     []int64   // generations
	drop     bool      // as a full queue does
	cutOff   time.Time // certificates of before are refused
}

type publish struct {
	code       string
	generation int64
	leaf       topic.Leaf
	payload    string
}

var errLogin = errors.New("refused")

func (l *link) Login(_ context.Context, code, secret string) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if want, ok := l.secrets[code]; !ok || want != secret || want == "" {
		return 0, errLogin
	}
	l.last++
	return l.last, nil
}

func (l *link) LoginCertificate(_ context.Context, code string, from time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.secrets[code]; !ok || from.Before(l.cutOff) {
		return 0, errLogin
	}
	l.last++
	return l.last, nil
}

// setCutOff refuses certificates that are valid since before a time.
func (l *link) setCutOff(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutOff = at
}

func (l *link) Receive(code string, generation int64, leaf topic.Leaf, payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.drop {
		l.received = append(l.received, publish{code, generation, leaf, string(payload)})
	}
}

func (l *link) Disconnected(_ context.Context, _ string, generation int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = append(l.gone, generation)
}

func (l *link) has(p publish) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.received, p)
}

func (l *link) left(generation int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.gone, generation)
}

func (l *link) count() (received, gone int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.received), len(l.gone)
}

// stand is a broker on loopback.
type stand struct {
	*Broker
	t    testing.TB
	link *link
	addr string

	mu      sync.Mutex
	foreign []use
}

type use struct {
	client, topic string
	write         bool
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return ln
}

func newStand(t testing.TB) *stand {
	t.Helper()
	s := &stand{t: t, link: &link{secrets: map[string]string{"CAB-1": "one", "CAB-2": "two", "CAB-9": ""}}}
	var err error
	s.Broker, err = New(Config{Devices: s.link, Foreign: func(client, name string, write bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.foreign = append(s.foreign, use{client, name, write})
	}})
	require.NoError(t, err)
	ln := listen(t)
	s.addr = ln.Addr().String()
	require.NoError(t, s.Serve(ln, nil))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func (s *stand) audited(u use) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.foreign, u)
}

// options are those of an ordinary device.
func (s *stand) options(code, secret string) *paho.ClientOptions {
	return paho.NewClientOptions().AddBroker("tcp://" + s.addr).SetClientID(topic.ClientID(code)).SetUsername(code).SetPassword(secret).
		SetProtocolVersion(4).SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(5 * time.Second).SetOrderMatters(false)
}

// done waits until the library calls a token done, however long that takes.
func done(t testing.TB, tok paho.Token) error {
	t.Helper()
	<-tok.Done()
	return tok.Error()
}

func (s *stand) connect(o *paho.ClientOptions) paho.Client {
	s.t.Helper()
	c := paho.NewClient(o)
	require.NoError(s.t, done(s.t, c.Connect()))
	s.t.Cleanup(func() { c.Disconnect(0) })
	return c
}

// swallower is a connection that can take what is written and send none of it, as
// a line that broke does until that shows.
type swallower struct {
	net.Conn
	swallows  atomic.Bool
	swallowed chan struct{} // gets a value for the first write that goes nowhere
}

func (s *swallower) Write(b []byte) (int, error) {
	if !s.swallows.Load() {
		return s.Conn.Write(b)
	}
	select {
	case s.swallowed <- struct{}{}:
	default:
	}
	return len(b), nil
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ring.Await(t, ok, what)
}

// raw is a client that speaks packets, to do what a library does not.
type raw struct {
	t testing.TB
	net.Conn
}

func (s *stand) dial() *raw {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return &raw{s.t, c}
}

func (r *raw) send(p packets.ControlPacket) {
	r.t.Helper()
	require.NoError(r.t, p.Write(r.Conn))
}

func (r *raw) next() packets.ControlPacket {
	r.t.Helper()
	require.NoError(r.t, r.SetReadDeadline(time.Time{}))
	p, err := packets.ReadPacket(r.Conn)
	require.NoError(r.t, err)
	return p
}

// closed demands that the broker ends the connection, saying nothing but what
// skip allows.
func (r *raw) closed() {
	r.t.Helper()
	require.NoError(r.t, r.SetReadDeadline(time.Time{}))
	for {
		p, err := packets.ReadPacket(r.Conn)
		if err != nil {
			return
		}
		_, ack := p.(*packets.PubackPacket)
		require.False(r.t, ack, "a refused publish was acknowledged")
	}
}

func connectPacket(code, secret string) *packets.ConnectPacket {
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.CleanSession, p.Keepalive = "MQTT", 4, true, 30
	p.ClientIdentifier = topic.ClientID(code)
	p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = true, code, true, []byte(secret)
	return p
}

// login connects the raw client and gives the broker's answer.
func (r *raw) login(p *packets.ConnectPacket) byte {
	r.t.Helper()
	r.send(p)
	a, ok := r.next().(*packets.ConnackPacket)
	require.True(r.t, ok)
	return a.ReturnCode
}

func publishPacket(name string, payload []byte) *packets.PublishPacket {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.Qos, p.TopicName, p.Payload, p.MessageID = 1, name, payload, 7
	return p
}

func subscribePacket(filter string) *packets.SubscribePacket {
	p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	p.Qos, p.Topics, p.Qoss, p.MessageID = 1, []string{filter}, []byte{1}, 8
	return p
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

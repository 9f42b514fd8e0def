package mqttbroker

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"
)

// five is a client that speaks packets of MQTT 5.
type five struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (h *hall) five(client string, receiveMaximum uint16) *five {
	h.t.Helper()
	f, _ := h.fiveAlive(client, receiveMaximum, 30)
	return f
}

// fiveAlive connects with a keep-alive, and gives the server's answer.
func (h *hall) fiveAlive(client string, receiveMaximum, seconds uint16) (*five, packets.Packet) {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = c.Close() })
	f := &five{h.t, c, bufio.NewReader(c)}
	f.send((&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: 5, Properties: packets.Properties{ReceiveMaximum: receiveMaximum, SessionExpiryInterval: 3600, SessionExpiryIntervalFlag: true},
		Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Keepalive: seconds, ClientIdentifier: client, UsernameFlag: true, PasswordFlag: true, Username: []byte(client), Password: []byte("pw")}}).ConnectEncode)
	pk := f.next()
	require.EqualValues(h.t, packets.Connack, pk.FixedHeader.Type)
	require.Zero(h.t, pk.ReasonCode)
	require.False(h.t, pk.SessionPresent, "no session goes on")
	return f, pk
}

func (f *five) send(encode func(*bytes.Buffer) error) {
	f.t.Helper()
	var b bytes.Buffer
	require.NoError(f.t, encode(&b))
	_, err := f.Write(b.Bytes())
	require.NoError(f.t, err)
}

func (f *five) next() packets.Packet {
	f.t.Helper()
	require.NoError(f.t, f.SetReadDeadline(time.Time{}))
	head, err := f.r.ReadByte()
	require.NoError(f.t, err)
	pk := packets.Packet{ProtocolVersion: 5}
	require.NoError(f.t, pk.FixedHeader.Decode(head))
	n, _, err := packets.DecodeLength(f.r)
	require.NoError(f.t, err)
	pk.FixedHeader.Remaining = n
	body := make([]byte, n)
	_, err = io.ReadFull(f.r, body)
	require.NoError(f.t, err)
	decode := map[byte]func([]byte) error{packets.Connack: pk.ConnackDecode, packets.Suback: pk.SubackDecode, packets.Publish: pk.PublishDecode}[pk.FixedHeader.Type]
	require.NotNil(f.t, decode, "a packet of type %d", pk.FixedHeader.Type)
	require.NoError(f.t, decode(body))
	return pk
}

func (f *five) subscribe(id int, filters ...string) []byte {
	f.t.Helper()
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 5, PacketID: 9}
	if id != 0 {
		pk.Properties.SubscriptionIdentifier = []int{id}
	}
	for _, filter := range filters {
		pk.Filters = append(pk.Filters, packets.Subscription{Filter: filter, Qos: 1, Identifier: id})
	}
	f.send(pk.SubscribeEncode)
	return f.next().ReasonCodes
}

// An app of MQTT 5 learns that it is not authorized, gets its subscription's
// identifier back, and no more at once than it said that it takes. What it wants
// kept of its session is not.
func TestAppsOfMQTT5(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	for range 2 {
		f := h.five("app-b-1", 2)
		require.Equal(t, []byte{0x87, 1, 0x87}, f.subscribe(77, "tms/x/2", "tms/x/1", "tms/x/+"))
		for range 3 {
			h.Publish("tms/x/1", Message{Payload: []byte("x")})
		}
		first, second := f.next(), f.next()
		require.Equal(t, []int{77}, first.Properties.SubscriptionIdentifier)
		require.EqualValues(t, 1, first.FixedHeader.Qos)
		require.NotEqual(t, first.PacketID, second.PacketID)
		require.NoError(t, f.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		_, err := f.r.Peek(1)
		require.Error(t, err, "two are under way")
		f.send((&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, ProtocolVersion: 5, PacketID: first.PacketID}).PubackEncode)
		require.Equal(t, "x", string(f.next().Payload))
		_ = f.Close()
	}
}

func TestAppsOverTLS(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	ca := newAuthority(t)
	ln := listen(t)
	require.NoError(t, h.Serve(ln, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "broker")}, MinVersion: tls.VersionTLS12}))
	o := h.app("app-a-1")
	o.Servers = nil
	c := h.connect(o.AddBroker("ssl://" + ln.Addr().String()).SetTLSConfig(&tls.Config{RootCAs: ca.pool}))
	got := make(chan paho.Message, 1)
	require.NoError(t, done(t, c.Subscribe("tms/x/1", 1, func(_ paho.Client, m paho.Message) { got <- m })))
	h.Publish("tms/x/1", Message{Payload: []byte("x")})
	require.Equal(t, "x", string(next(t, got).Payload()))
}

// A client that asks for a longer silence than it may have, or for any, hears how long it
// may be silent.
func TestTheKeepAliveIsAnswered(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0)
	for asked, answered := range map[uint16]uint16{0: keepAlive, 30: 0, keepAlive: 0, 3600: keepAlive} {
		_, pk := h.fiveAlive("app-b-1", 2, asked)
		require.Equal(t, answered, pk.Properties.ServerKeepAlive, "asked for %d s", asked)
		require.Equal(t, answered != 0, pk.Properties.ServerKeepAliveFlag)
	}
}

package mqttbroker

import (
	"net"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/topic"
)

// forgotten demands that library and broker know nothing of a device that is away.
func (s *stand) forgotten(client, name string) {
	s.t.Helper()
	eventually(s.t, "the client is gone", func() bool { _, ok := s.server.Clients.Get(client); return !ok })
	eventually(s.t, "so are its subscriptions", func() bool { return len(s.server.Topics.Subscribers(name).Subscriptions) == 0 })
	eventually(s.t, "so is its turn", func() bool {
		s.events.turns.mu.Lock()
		defer s.events.turns.mu.Unlock()
		return s.events.turns.clients[client] == nil
	})
}

// A device that asks for a session to be kept learns that there is none. The
// library kept the subscriptions of such a client of MQTT 3.1.1 for good.
func TestNothingIsKeptOfADeviceThatIsAway(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const name = "tms/device/CAB-1/down"
	for range 3 {
		c, p := s.dial(), connectPacket("CAB-1", "one")
		p.CleanSession = false
		c.send(p)
		a, ok := c.next().(*packets.ConnackPacket)
		require.True(t, ok)
		require.Zero(t, a.ReturnCode)
		require.False(t, a.SessionPresent)
		c.send(subscribePacket(name))
		require.IsType(t, &packets.SubackPacket{}, c.next())
		require.NoError(t, s.Send("CAB-1", topic.Down, []byte("unacknowledged"), false))
		got, ok := c.next().(*packets.PublishPacket)
		require.True(t, ok)
		require.False(t, got.Dup)
		require.NoError(t, c.Close())
		s.forgotten("dev-CAB-1", name)
		require.NoError(t, s.Send("CAB-1", topic.Down, []byte("nobody is there"), false))
		s.sends.wg.Wait()
	}

	// One that comes again before the old connection has ended takes over nothing.
	first, p := s.dial(), connectPacket("CAB-1", "one")
	p.CleanSession = false
	require.Zero(t, first.login(p))
	first.send(subscribePacket(name))
	require.IsType(t, &packets.SubackPacket{}, first.next())
	second := s.dial()
	second.send(p)
	a, ok := second.next().(*packets.ConnackPacket)
	require.True(t, ok)
	require.False(t, a.SessionPresent)
	require.NoError(t, second.Close())
	s.forgotten("dev-CAB-1", name)
}

// The same by other people's client: what is sent while it is away does not come
// when it is back.
func TestMosquittoWithoutACleanSession(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	host, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	const name = "tms/device/CAB-1/down"
	for _, version := range []string{"mqttv311", "mqttv5"} {
		args := []string{"-h", host, "-p", port, "-V", version, "-i", "dev-CAB-1", "-u", "CAB-1", "-P", "one", "-q", "1", "-c", "-t", name, "-W", "1"}
		if version == "mqttv5" {
			args = append(args, "-x", "3600")
		}
		out, _ := mosquitto(t, "mosquitto_sub", args...) // ends by its own clock
		require.NotContains(t, out, "away")
		s.forgotten("dev-CAB-1", name)
		require.NoError(t, s.Send("CAB-1", topic.Down, []byte("away"), false))
		s.sends.wg.Wait()
		out, _ = mosquitto(t, "mosquitto_sub", args...)
		require.NotContains(t, out, "away")
		s.forgotten("dev-CAB-1", name)
	}
}

// A device that does not read holds up no sender: not to it, and not to
// others. What is too much for it is lost, and the newest configuration is not.
func TestADeviceThatDoesNotReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c := s.dial()
	require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(4096))
	require.Zero(t, c.login(connectPacket("CAB-1", "one")))
	for _, leaf := range []string{"down", "config"} {
		c.send(subscribePacket("tms/device/CAB-1/" + leaf))
		require.IsType(t, &packets.SubackPacket{}, c.next())
	}
	other := s.connect(s.options("CAB-2", "two"))
	got := make(chan string, 1)
	require.NoError(t, done(t, other.Subscribe("tms/device/CAB-2/down", 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })))

	big := []byte(strings.Repeat("x", 200<<10))
	sent := make(chan bool)
	go func() {
		defer close(sent)
		lost := 0
		for range 400 {
			if s.Send("CAB-1", topic.Down, big, false) != nil {
				lost++
			}
		}
		require.Positive(t, lost)
	}()
	select {
	case <-sent:
	case <-time.After(30 * time.Second): // its silence would end the connection after 45 s
		require.Fail(t, "who sends waits for the device")
	}
	require.NoError(t, s.Send("CAB-2", topic.Down, []byte("hello"), false))
	require.Equal(t, "hello", <-got)
	require.NoError(t, c.Close())
	s.sends.wg.Wait()
	require.Empty(t, s.sends.queues)

	for _, v := range []string{"v1", "v2"} {
		require.NoError(t, s.Send("CAB-1", topic.Config, []byte(v), true))
	}
	s.sends.wg.Wait()
	kept := s.connect(s.options("CAB-1", "one"))
	require.NoError(t, done(t, kept.Subscribe("tms/device/CAB-1/config", 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })))
	require.Equal(t, "v2", <-got)
}

// Of configurations that wait the newest is sent; a full queue loses the rest.
func TestQueueOfADevice(t *testing.T) {
	t.Parallel()
	var published []string
	held, begun := make(chan bool), make(chan bool)
	s := sends{queues: map[string][]sending{}, publish: func(m sending) {
		if m.topic == "first" {
			close(begun)
			<-held
		}
		published = append(published, m.topic+string(m.payload))
	}}
	require.NoError(t, s.add("a", sending{topic: "first"}))
	<-begun
	require.NoError(t, s.add("a", sending{"config", []byte("1"), true}))
	for range sendQueue - 1 {
		require.NoError(t, s.add("a", sending{topic: "down"}))
	}
	require.ErrorIs(t, s.add("a", sending{topic: "down"}), errSlow)
	require.NoError(t, s.add("a", sending{"codes", nil, true}))
	require.NoError(t, s.add("a", sending{"config", []byte("2"), true}))
	close(held)
	s.wg.Wait()
	require.Equal(t, []string{"first", "config2"}, published[:2])
	require.Len(t, published, sendQueue+2)
	require.Empty(t, s.queues)
}

package mqttbroker

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/topic"
)

// A device that reads nothing does not hold up the end of a node: what is written to it is
// cut off, and the next connection is let go meanwhile.
func TestDrainWaitsForNoDeviceThatDoesNotRead(t *testing.T) {
	s := newStand(t)
	c := s.dial()
	require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(4096))
	require.Zero(t, c.login(connectPacket("CAB-1", "one")))
	c.send(subscribePacket("tms/device/CAB-1/down"))
	require.IsType(t, &packets.SubackPacket{}, c.next())
	before := s.Traffic().BytesSent
	big := []byte(strings.Repeat("x", 200<<10))
	for range 60 {
		_ = s.Send("CAB-1", topic.Down, big, false)
	}
	last := int64(0)
	ring.Await(t, func() bool { // until the device takes no more
		sent := s.Traffic().BytesSent
		stuck := sent == last && sent >= before
		last = sent
		time.Sleep(300 * time.Millisecond)
		return stuck
	})
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(t.Context(), 100*time.Millisecond) }()
	select {
	case err := <-drained:
		require.NoError(t, err)
	case <-time.After(20 * time.Second): // the keep-alive ends it in twice that time
		t.Fatal("the drain waits for a device that does not read")
	}
	ring.Await(t, func() bool { return s.Connected() == 0 })
}

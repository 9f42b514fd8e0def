package live_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/mqttbroker"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// anybody may hear everything.
type anybody struct{}

func (anybody) Chat(context.Context, live.Listener, cloud.OrderID) (live.ChatRight, error) {
	return live.ChatAll, nil
}

// hall is a broker with thin apps at it.
type hall struct {
	b      *testing.B
	broker *mqttbroker.Broker
	live   *live.Service
	heard  chan time.Duration
}

func newHall(b *testing.B) (*hall, func(*cloud.Changes)) {
	db := storetest.OpenSQLite(b)
	h := &hall{b: b, heard: make(chan time.Duration, 100_000)}
	h.live = live.New(live.Config{Store: db, Sealer: storetest.Box(b), Rights: anybody{}, Prefix: "tms"})
	var err error
	h.broker, err = mqttbroker.New(mqttbroker.Config{Devices: devices{}, People: h.live})
	require.NoError(b, err)
	h.live.SetTeller(h.broker)
	db.OnCommit(h.live.Committed)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.live.Run(ctx) }()
	b.Cleanup(func() {
		require.NoError(b, h.broker.Close())
		cancel()
		require.NoError(b, <-done)
	})
	return h, func(c *cloud.Changes) { write(b, db, c) }
}

// listen adds an app of a guest that listens to an order's chat and acknowledges
// everything.
func (h *hall) listen(guest int, o cloud.OrderID) {
	c, err := h.live.Issue(h.b.Context(), live.Listener{BusinessID: 1, Guest: fmt.Sprint(guest), Orders: []cloud.OrderID{o}})
	require.NoError(h.b, err)
	here, there := net.Pipe()
	go func() { _ = h.broker.ServeConn(there) }()
	h.b.Cleanup(func() { _ = here.Close() })
	var b bytes.Buffer
	require.NoError(h.b, (&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: 4, Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Clean: true,
		ClientIdentifier: c.ClientID, UsernameFlag: true, PasswordFlag: true, Username: []byte(c.Username), Password: []byte(c.Password)}}).ConnectEncode(&b))
	_, err = here.Write(b.Bytes())
	require.NoError(h.b, err)
	var ack [4]byte
	_, err = io.ReadFull(here, ack[:])
	require.NoError(h.b, err)
	require.Zero(h.b, ack[3])
	b.Reset()
	require.NoError(h.b, (&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1, Filters: packets.Subscriptions{{Filter: c.Topics[0], Qos: 1}}}).SubscribeEncode(&b))
	_, err = here.Write(b.Bytes())
	require.NoError(h.b, err)
	var suback [5]byte
	_, err = io.ReadFull(here, suback[:])
	require.NoError(h.b, err)
	go h.hear(here)
}

// hear takes publishes, says how long each was under way, and acknowledges it.
func (h *hall) hear(c net.Conn) {
	var head [1]byte
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		n, _, err := packets.DecodeLength(byteReader{c})
		if err != nil {
			return
		}
		p := make([]byte, n)
		if _, err := io.ReadFull(c, p); err != nil {
			return
		}
		name := int(binary.BigEndian.Uint16(p))
		if _, err := c.Write([]byte{packets.Puback << 4, 2, p[2+name], p[3+name]}); err != nil {
			return
		}
		_, at, _ := strings.Cut(string(p[4+name:]), `"at":`)
		var ns int64
		if _, err := fmt.Sscan(strings.TrimRight(at, "}"), &ns); err == nil {
			h.heard <- time.Since(time.Unix(0, ns))
		}
	}
}

type byteReader struct{ net.Conn }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Conn, b[:])
	return b[0], err
}

// wait takes n hearings and gives how long each was under way.
func (h *hall) wait(n int) []time.Duration {
	out := make([]time.Duration, 0, n)
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for range n {
		select {
		case took := <-h.heard:
			out = append(out, took)
		case <-late.C:
			h.b.Fatalf("%d of %d heard in a minute", len(out), n)
		}
	}
	return out
}

var serial atomic.Int64

func stamped(o cloud.OrderID) cloud.LiveEvent {
	now := time.Now()
	id := fmt.Sprintf("och_%d", serial.Add(1))
	return cloud.LiveEvent{ID: id, Kind: cloud.LiveChat, BusinessID: 1, Subject: int64(o), At: now.UTC(), Body: fmt.Appendf(nil, `{"event_id":%q,"at":%d}`, id, now.UnixNano())}
}

func (h *hall) tell(e cloud.LiveEvent) {
	h.broker.Publish(fmt.Sprintf("tms/order-chat/1/%d", e.Subject), mqttbroker.Message{ID: e.ID, Payload: e.Body})
}

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// BenchmarkOneToAThousand is one message to a thousand apps, from before its
// commit to the last of them, beside the bare broker's word to the same apps.
func BenchmarkOneToAThousand(b *testing.B) {
	h, put := newHall(b)
	const n = 1000
	for i := range n {
		h.listen(i, 7)
	}
	var committed, bare []time.Duration
	for b.Loop() {
		e := stamped(7)
		put(&cloud.Changes{LiveChanges: cloud.LiveChanges{Live: []cloud.LiveEvent{e}}})
		committed = append(committed, slices.Max(h.wait(n)))
		h.tell(stamped(7))
		bare = append(bare, slices.Max(h.wait(n)))
	}
	report(b, committed, bare)
}

// BenchmarkFiveHundredOrders is 500 messages a second over as many orders with an
// app each, from before the commit to the app, beside a commit of as much that
// reaches no listener, and the bare broker's word after it, at the same pace.
func BenchmarkFiveHundredOrders(b *testing.B) {
	h, put := newHall(b)
	const orders = 500
	for i := range orders {
		h.listen(i, cloud.OrderID(i+1))
	}
	pace := func(send func(cloud.LiveEvent)) []time.Duration {
		t := time.NewTicker(time.Second / orders)
		defer t.Stop()
		var all sync.WaitGroup
		n := 0
		for range max(b.N, 100) {
			<-t.C
			n++
			o := cloud.OrderID(n%orders + 1)
			all.Go(func() { send(stamped(o)) })
		}
		all.Wait()
		return h.wait(n)
	}
	b.ResetTimer()
	committed := pace(func(e cloud.LiveEvent) {
		put(&cloud.Changes{LiveChanges: cloud.LiveChanges{Live: []cloud.LiveEvent{e}}})
	})
	report(b, committed, pace(func(e cloud.LiveEvent) {
		unheard := e
		unheard.Subject = 0
		put(&cloud.Changes{LiveChanges: cloud.LiveChanges{Live: []cloud.LiveEvent{unheard}}})
		h.tell(e)
	}))
}

func report(b *testing.B, committed, bare []time.Duration) {
	b.ReportMetric(float64(p99(committed))/float64(time.Millisecond), "p99-ms")
	b.ReportMetric(float64(p99(committed))/float64(p99(bare)), "p99/bare")
	b.ReportMetric(0, "ns/op")
}

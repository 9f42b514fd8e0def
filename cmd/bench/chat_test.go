package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/mqttbroker"
)

// hall is a cloud with people who listen to chats of orders.
type hall struct {
	*desk
	people []person
	heard  chan time.Duration // how long each message was under way to each listener
}

// person is one of a business's staff. Each has at most ten connections and sends
// at most twenty messages a minute.
type person struct {
	account cloud.Account
	token   string
}

const connections = 10

func newHall(b *testing.B, people int) *hall {
	h := &hall{desk: newDesk(b, ""), heard: make(chan time.Duration, 1<<20)}
	require.NoError(b, h.server.Store.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
		ch, now := &cloud.Changes{}, time.Now().UTC()
		h.people = nil
		for i := range people {
			id, err := v.NewID(cloud.AccountIDs)
			if err != nil {
				return nil, err
			}
			p := person{cloud.Account{ID: cloud.AccountID(id), BusinessID: cloud.BusinessID(h.business), Type: cloud.ClientAdmin, Name: fmt.Sprint("Person ", i), Enabled: true, CreatedAt: now}, auth.NewToken()}
			h.people = append(h.people, p)
			ch.Accounts = append(ch.Accounts, p.account)
			ch.Tokens = append(ch.Tokens, cloud.Token{Hash: auth.Hash(p.token), AccountID: p.account.ID, Name: "bench", CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		}
		return ch, nil
	}))
	return h
}

// listen adds an app that gets the chat of an order, with the n-th connection.
func (h *hall) listen(n int, order int64) {
	var out struct {
		MQTT struct {
			ClientID string `json:"client_id"`
			Username string
			Password string
			Topics   []string
		}
	}
	require.NoError(h.b, json.Unmarshal(h.as(h.people[n/connections].token, "POST", "/api/v1/order-chat/token", fmt.Sprintf(`{"order_ids":[%d]}`, order)), &out))
	here, there := net.Pipe()
	go func() { _ = h.server.Broker.ServeConn(there) }()
	h.b.Cleanup(func() { _ = here.Close() })
	var b bytes.Buffer
	require.NoError(h.b, (&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: 4, Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Clean: true,
		ClientIdentifier: out.MQTT.ClientID, UsernameFlag: true, PasswordFlag: true, Username: []byte(out.MQTT.Username), Password: []byte(out.MQTT.Password)}}).ConnectEncode(&b))
	answer := func(n int) byte {
		_, err := here.Write(b.Bytes())
		require.NoError(h.b, err)
		ack := make([]byte, n)
		_, err = io.ReadFull(here, ack)
		require.NoError(h.b, err)
		b.Reset()
		return ack[n-1]
	}
	require.Zero(h.b, answer(4))
	require.NoError(h.b, (&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1,
		Filters: packets.Subscriptions{{Filter: chatTopic(h.business, order), Qos: 1}}}).SubscribeEncode(&b))
	require.EqualValues(h.b, 1, answer(5))
	go h.hear(here)
}

func chatTopic(business, order int64) string {
	return fmt.Sprintf("tms/order-chat/%d/%d", business, order)
}

// hear takes messages, says how long each was under way, and acknowledges it.
func (h *hall) hear(c net.Conn) {
	var head [1]byte
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		n, _, err := packets.DecodeLength(oneByte{c})
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
		_, at, _ := strings.Cut(string(p[4+name:]), `"text":"`)
		at, _, _ = strings.Cut(at, `"`)
		if ns, err := strconv.ParseInt(at, 10, 64); err == nil {
			h.heard <- time.Since(time.Unix(0, ns))
		}
	}
}

type oneByte struct{ net.Conn }

func (r oneByte) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Conn, b[:])
	return b[0], err
}

// wait takes n hearings.
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

// text is a message that says when it was sent.
func text(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// tell gives the bare broker a word for an order's topic, of the size of a
// message's event.
func (h *hall) tell(order int64, at time.Time) {
	h.server.Broker.Publish(chatTopic(h.business, order), mqttbroker.Message{ID: "och_" + text(at), Payload: fmt.Appendf(nil, `{"text":"%s","pad":"%s"}`, text(at), strings.Repeat("x", 600))})
}

// report gives the median and the slowest hundredth, each beside that of the bare
// loop.
func (h *hall) report(whole, bare []time.Duration) {
	slices.Sort(whole)
	slices.Sort(bare)
	for _, percent := range []int{50, 99} {
		w, b := whole[len(whole)*percent/100], bare[len(bare)*percent/100]
		h.b.ReportMetric(float64(w)/float64(time.Millisecond), fmt.Sprintf("p%d-ms", percent))
		h.b.ReportMetric(float64(w)/float64(b), fmt.Sprintf("p%d/bare", percent))
	}
	h.b.ReportMetric(0, "ns/op")
}

// BenchmarkChatToAThousand is one message over the whole path, from before its
// POST to the last of a thousand apps, beside a POST that reaches no app and the
// bare broker's word to the same apps after it.
func BenchmarkChatToAThousand(b *testing.B) {
	const apps = 1000
	h := newHall(b, apps/connections)
	order, deaf := h.order("HEARD"), h.order("UNHEARD")
	for i := range apps {
		h.listen(i, order)
	}
	n := 0
	post := func(order int64, at time.Time) {
		n++
		h.as(h.people[n%len(h.people)].token, "POST", fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", order), fmt.Sprintf(`{"text":"%s"}`, text(at)))
	}
	var whole, bare []time.Duration
	for b.Loop() {
		post(order, time.Now())
		whole = append(whole, slices.Max(h.wait(apps)))
		at := time.Now()
		post(deaf, at)
		h.tell(order, at)
		bare = append(bare, slices.Max(h.wait(apps)))
	}
	h.report(whole, bare)
}

// BenchmarkChatOfFiveHundredOrders is 500 messages a second over as many orders
// with an app each, from before they are sent to the app, beside as many that
// reach no app and the bare broker's word after each, at the same pace.
func BenchmarkChatOfFiveHundredOrders(b *testing.B) {
	const orders = 500
	h := newHall(b, orders/connections)
	chats := chat.New(chat.Config{Store: h.server.Store, Key: make([]byte, 32), PerMinute: -1})
	var heard, deaf [orders]int64
	for i := range orders {
		heard[i], deaf[i] = h.order(fmt.Sprint("HEARD-", i)), h.order(fmt.Sprint("UNHEARD-", i))
		h.listen(i, heard[i])
	}
	send := func(n int, order int64, at time.Time) {
		c := cloud.Caller{Account: h.people[n%len(h.people)].account}
		if _, err := chats.Send(context.Background(), c, chat.SendInput{OrderID: cloud.OrderID(order), Text: text(at)}); err != nil {
			b.Error(err)
		}
	}
	pace := func(more func() bool, one func(n int, at time.Time)) []time.Duration {
		t := time.NewTicker(time.Second / orders)
		defer t.Stop()
		var all sync.WaitGroup
		n := 0
		for ; more(); n++ {
			<-t.C
			at := time.Now()
			all.Go(func() { one(n, at) })
		}
		all.Wait()
		return h.wait(n)
	}
	whole := pace(b.Loop, func(n int, at time.Time) { send(n, heard[n%orders], at) })
	left := len(whole)
	bare := pace(func() bool { left--; return left >= 0 }, func(n int, at time.Time) {
		send(n, deaf[n%orders], at)
		h.tell(heard[n%orders], at)
	})
	h.report(whole, bare)
}

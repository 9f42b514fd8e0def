package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"bytes"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/protocol/topic"
)

// thin is as little of an MQTT client as a broker takes for a device.
type thin struct{ c net.Conn }

func dialThin(s *server.Server, code, secret string) (*thin, error) {
	here, there := net.Pipe()
	go func() { _ = s.Broker.ServeConn(there) }()
	t := &thin{here}
	if err := here.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: 4,
		Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Clean: true, Keepalive: 0, ClientIdentifier: topic.ClientID(code), UsernameFlag: true, PasswordFlag: true, Username: []byte(code), Password: []byte(secret)}}
	if err := pk.ConnectEncode(&b); err != nil {
		return nil, err
	}
	if _, err := here.Write(b.Bytes()); err != nil {
		return nil, err
	}
	var ack [4]byte
	if _, err := io.ReadFull(here, ack[:]); err != nil {
		return nil, err
	}
	if ack[3] != 0 {
		return nil, fmt.Errorf("login of %s refused: %d", code, ack[3])
	}
	b.Reset()
	sub := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1,
		Filters: packets.Subscriptions{{Filter: topic.Device(topic.DefaultPrefix, code, topic.Down), Qos: 1}, {Filter: topic.Device(topic.DefaultPrefix, code, topic.Config), Qos: 1}}}
	if err := sub.SubscribeEncode(&b); err != nil {
		return nil, err
	}
	if _, err := here.Write(b.Bytes()); err != nil {
		return nil, err
	}
	var suback [6]byte
	if _, err := io.ReadFull(here, suback[:]); err != nil {
		return nil, err
	}
	if suback[0]>>4 != packets.Suback {
		return nil, errors.New("no SUBACK")
	}
	return t, here.SetDeadline(time.Time{})
}

// dialAll connects devices, so many at once, and has then do what follows with each; nil:
// nothing.
func dialAll(tb testing.TB, s *server.Server, devices []server.SandboxSecrets, atOnce int, then func(i int, t *thin) error) []*thin {
	conns := make([]*thin, len(devices))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, d := range devices {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var err error
			if conns[i], err = dialThin(s, d.DeviceCode, d.Secret); err == nil && then != nil {
				err = then(i, conns[i])
			}
			if err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
	return conns
}

func (t *thin) close() { _ = t.c.Close() }

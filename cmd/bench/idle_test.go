package bench

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Five thousand cabinets that have nothing to say: what a node writes a second while each
// keeps its connection alive and sends its status every ten minutes, as transactions and
// as changes in them.
func BenchmarkIdleCabinets(b *testing.B) {
	const (
		cabinets = 5000
		cadence  = 10 * time.Minute
		window   = time.Minute
	)
	for b.Loop() {
		s, box, _ := upWith(b, server.SandboxConfig{}, cabinets, 4, "", unsigned)
		conns := dialAll(b, s, box.Devices, 64, func(i int, c *thin) error {
			go func() { _, _ = io.Copy(io.Discard, c.c) }()
			return c.status(box.Devices[i].DeviceCode, i)
		})
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(b.Context())
		wg.Go(func() { // every cabinet once in half a minute
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := conns[n%cabinets].c.Write([]byte{packets.Pingreq << 4, 0}); err != nil {
					b.Error(err)
					return
				}
				time.Sleep(30 * time.Second / cabinets)
			}
		})
		require.Eventually(b, func() bool {
			before := written(b, s)
			time.Sleep(2 * time.Second)
			return written(b, s).changes-before.changes < cabinets/50
		}, 5*time.Minute, time.Millisecond)
		before, begun := written(b, s), time.Now()
		sent := 0
		for ; time.Since(begun) < window; time.Sleep(10 * time.Millisecond) {
			for want := int(float64(cabinets) * time.Since(begun).Seconds() / cadence.Seconds()); sent < want; sent++ {
				require.NoError(b, conns[sent].status(box.Devices[sent].DeviceCode, sent))
			}
		}
		took, after := time.Since(begun).Seconds(), written(b, s)
		require.Equal(b, cabinets, s.Broker.Connected())
		b.ReportMetric(after.transactions/took-before.transactions/took, "transactions/s")
		b.ReportMetric(after.changes/took-before.changes/took, "changes/s")
		b.ReportMetric(float64(sent)/took, "statuses/s")
		stop()
		wg.Wait()
		for _, c := range conns {
			c.close()
		}
	}
	b.ReportMetric(0, "ns/op")
}

func unsigned(d *server.SandboxDevice) { d.Unsigned = true }

// status publishes the status of a cabinet with closed doors.
func (t *thin) status(code string, i int) error {
	st := wire.Status{State: wire.Online, At: time.Now().UnixNano(), AgentVersion: "bench", Instance: []byte{byte(i), byte(i >> 8)}, Boot: 1, Epoch: wire.Epoch{byte(i), byte(i >> 8), 1}, Boards: map[string]string{"A": "online"}, ConfigVersion: 1, CodeList: 1}
	for door := uint(1); door <= 4; door++ {
		st.Doors = append(st.Doors, wire.DoorStatus{Door: door, State: wire.DoorLocked})
	}
	var out bytes.Buffer
	p := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish}, TopicName: topic.Device(topic.DefaultPrefix, code, topic.Status), Payload: wire.MustEncode(st)}
	if err := p.PublishEncode(&out); err != nil {
		return err
	}
	_, err := t.c.Write(out.Bytes())
	return err
}

// writes are what a node has written since it began.
type writes struct{ transactions, changes float64 }

func written(tb testing.TB, s *server.Server) (w writes) {
	families, err := s.Metrics.Gather()
	require.NoError(tb, err)
	for _, f := range families {
		switch f.GetName() {
		case "postern_commit_seconds":
			w.transactions = float64(f.GetMetric()[0].GetHistogram().GetSampleCount())
		case "postern_commit_changes":
			w.changes = f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	return w
}

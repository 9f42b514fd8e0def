package device_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/wire"
)

// joined starts another node on the world's database until ctx ends.
func joined(ctx context.Context, w *devicetest.World, s device.Store, log *slog.Logger) *device.Service {
	synctest.Wait() // the world's own node, which knows of no other, has looked after presence
	peer := device.New(device.Config{Store: s, Signer: w.Signer, ServerKey: w.Keys.Server, Node: "two", Living: both(w), Log: log})
	peer.SetSender(nobody{})
	go func() { _ = peer.Run(ctx) }()
	return peer
}

// both are the instances of the world's node and of the one that joined.
func both(w *devicetest.World) func(context.Context) (map[string]bool, error) {
	return func(context.Context) (map[string]bool, error) {
		return map[string]bool{w.Store.Instance(): true, "two": true}, nil
	}
}

func sessionOf(w *devicetest.World, id cloud.DeviceID) (row cloud.Session) {
	w.T.Helper()
	w.Look(func(v cloud.View) (err error) { row, err = v.Session(id); return err })
	return row
}

// What a device has not sent yet holds others back no longer than its connection
// lasts.
func TestBacklogOfAConnectionEndsWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		var acks [wire.Lanes]wire.Ack
		for range 4 {
			d.Drop()
			devicetest.Wait(t, "end of the connection", d.Closed)
			synctest.Wait()
			require.False(t, d.Online())
			d = w.Connect("CAB-1", d.Memory)
			acks = d.Greet(func(s *wire.Status) { s.Ends[wire.Telemetry].Last = 1 << 30 })
		}
		require.Nil(t, acks[wire.Telemetry].Credit, "nobody else waits")
	})
}

// A status that comes through an older connection at another node, before that node
// has heard of the newer one, changes nothing.
func TestStatusOfASessionThatAnotherNodeTookOverChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		peer := joined(ctx, w, w.Store, nil)
		generation, err := peer.Login(ctx, "CAB-1", w.Box.Devices[0].Secret)
		require.NoError(t, err)
		peer.Receive("CAB-1", generation, "status", wire.MustEncode(wire.Status{State: wire.Online, Epoch: d.Epoch, Instance: []byte("newer")}))
		synctest.Wait()
		newest := sessionOf(w, d.ID)
		require.Equal(t, []any{generation, true}, []any{newest.Generation, newest.Online})
		time.Sleep(time.Second)
		d.Status(nil)
		synctest.Wait()
		require.Equal(t, newest, sessionOf(w, d.ID))
	})
}

// slowLogin gives a login back some time after it is committed.
type slowLogin struct {
	*store.DB
	wait atomic.Int64 // nanoseconds
}

func (s *slowLogin) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	err := s.DB.Decide(ctx, d, fn)
	time.Sleep(time.Duration(s.wait.Swap(0)))
	return err
}

// A look at presence between a login's commit and its session does not show the device
// offline that has said since that it is online.
func TestPresenceWaitsForALoginThatIsNotBackYet(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		s, hold, held := &slowLogin{DB: w.Store}, make(chan struct{}), false
		peer := device.New(device.Config{Store: s, Signer: w.Signer, ServerKey: w.Keys.Server, Node: "two", Living: func(ctx context.Context) (map[string]bool, error) {
			if row := sessionOf(w, d.ID); row.Node == "two" && row.Online && !held {
				held = true
				<-hold
			}
			return both(w)(ctx)
		}})
		peer.SetSender(nobody{})
		time.Sleep(5 * time.Second)
		go func() { _ = peer.Run(ctx) }() // looks after presence at 5, 20, 35 s, the world's own node at 15 and 30 s
		time.Sleep(11 * time.Second)
		s.wait.Store(int64(6 * time.Second))
		generation, err := peer.Login(ctx, "CAB-1", w.Box.Devices[0].Secret)
		require.NoError(t, err)
		peer.Receive("CAB-1", generation, "status", wire.MustEncode(wire.Status{State: wire.Online, Epoch: d.Epoch, Instance: []byte("newer")}))
		synctest.Wait()
		require.True(t, held)
		close(hold)
		synctest.Wait()
		require.True(t, sessionOf(w, d.ID).Online)
	})
}

// fullStore refuses all that is written, once it is full.
type fullStore struct {
	*store.DB
	full atomic.Bool
}

func (s *fullStore) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if s.full.Load() {
		return errors.New("disk is full")
	}
	return s.DB.Decide(ctx, d, fn)
}

// lines keeps a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) read() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// What is wrong with a device is stored and not logged. The log has it when the
// database does not take it.
func TestExceptionThatIsNotStoredIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, _ *devicetest.Device) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var log lines
		s := &fullStore{DB: w.Store}
		peer := joined(ctx, w, s, slog.New(slog.NewTextHandler(&log, nil)))
		generation, err := peer.Login(ctx, "CAB-2", w.Box.Devices[1].Secret)
		require.NoError(t, err)
		bad := func() {
			peer.Receive("CAB-2", generation, "status", []byte{0xff})
			synctest.Wait()
		}
		bad()
		require.NotContains(t, log.read(), cloud.DevBadBatch)
		s.full.Store(true)
		bad()
		require.Contains(t, log.read(), "type="+cloud.DevBadBatch)
		require.Contains(t, log.read(), "disk is full")
	})
}

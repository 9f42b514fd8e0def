package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/signature"
	"github.com/postern-io/postern/protocol/wire"
)

// A parcel's whole way in real time, with the cloud on PostgreSQL, MQTT and
// webhooks over TCP: created, opened from afar, closed, delivered, collected
// with the typed code; and a receiver that verifies what it gets.
func TestAParcelsWayOnPostgreSQL(t *testing.T) {
	t.Parallel()
	database := storetest.MigratedPostgresURL(t) // skips when there is no server
	hook := newHook(t)
	mqtt, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv, err := server.New(t.Context(), server.Config{Dir: t.TempDir(), Database: database, Node: "one", Brokers: []string{"tcp://" + mqtt.Addr().String()},
		WebhookHTTP: true, WebhookPorts: []uint16{hook.port()}, WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	require.NoError(t, err)
	// Closes the store when it ends; so it starts before anything may fail.
	runs(t, "cloud", func(ctx context.Context) error { return srv.Run(ctx, server.Listeners{MQTT: mqtt}) })
	box, err := srv.Sandbox(t.Context(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Times: quickTimes, WebhookURL: hook.url(),
		Devices: []server.SandboxDevice{{Code: "CAB-1", Name: "Cabinet", Type: "smart_locker", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}}}})
	require.NoError(t, err)
	hook.trust(box.Provider.WebhookSecret)
	sim, cabinet := oneDoor(t, access.Secrets(box.Devices[0].Enrolled))

	takesDeliveries(t, srv, box.Devices[0].DeviceID, cabinet)
	key := locker.DeliveryKey("ref:REF-1")
	_, err = srv.Lockers.Create(t.Context(), box.ProviderCaller, locker.CreateInput{ReferenceNumber: "REF-1", DeviceID: box.Devices[0].DeviceID,
		Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-1", Size: "M"}}})
	require.NoError(t, err)
	find := func() locker.DeliveryBody {
		out, err := srv.Lockers.Find(t.Context(), box.ProviderCaller, key)
		require.NoError(t, err)
		return out.Delivery
	}
	require.Equal(t, cloud.DeliveryCreated, find().Status)

	opened, err := srv.Lockers.OpenDoors(t.Context(), box.ProviderCaller, locker.OpenInput{Delivery: key})
	require.NoError(t, err)
	require.False(t, opened.Pending)
	require.True(t, sim.OpenAt(1, time.Now()))
	require.NoError(t, sim.CloseDoor(1))
	soon(t, "delivered", func() bool { return find().Status == cloud.DeliveryDelivered })
	d := find()
	require.Equal(t, wire.ByDoorClose, *d.ConfirmedBy)
	require.True(t, d.PickupCodeActive)

	answer, err := cabinet.Codes().Type(t.Context(), *d.PickupCode, nil)
	require.NoError(t, err)
	require.Equal(t, wire.CodeOK, answer.Outcome)
	soon(t, "the recipient's door is seen open", func() bool {
		s := cabinet.Loop().State()
		door := s.Doors[1]
		return sim.OpenAt(1, time.Now()) && door.State(&s, int64(quickTimes.MinOpenMS)*int64(time.Millisecond), cabinet.Now().Mono) == wire.DoorOpen
	})
	require.NoError(t, sim.CloseDoor(1))
	soon(t, "picked up", func() bool { return find().Status == cloud.DeliveryPickedUp })
	for _, event := range []string{locker.EventDelivered, locker.EventPickedUp} {
		soon(t, "webhook "+event, func() bool { return hook.got(event) })
	}
	require.Empty(t, hook.refused(), "webhooks that do not verify")
}

// quickTimes are those of a door that opens and settles within a second.
var quickTimes = wire.Times{DebounceMS: 60, MinOpenMS: 120, OpenWaitMS: 1000, SettleMS: 300, SessionS: 10, PulseMS: 100, PulseGapMS: 50, PollIdleMS: 100}

// oneDoor is a cabinet of one simulated door with its running agent, connected
// to the brokers of its secrets over TCP.
func oneDoor(t *testing.T, secrets access.Secrets) (*simboard.Cabinet, *agent.Agent) {
	sim, err := simboard.New(simboard.Config{Boards: []simboard.Board{{Name: "A", Line: "main", Family: lockbus.CU48, NoItems: true, UnlockTime: 100 * time.Millisecond}},
		Doors: []simboard.Door{{Number: 1, Board: "A", Channel: 1}}})
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	a, err := agent.New(agent.Config{Dir: t.TempDir(), Secrets: secrets, Lines: []board.LineConfig{{Name: "main", Port: "main", Boards: []board.BoardConfig{{Name: "A", Family: lockbus.CU48}}}},
		Open: func(_ context.Context, l board.LineConfig) (board.Port, error) {
			c, err := sim.Dial(l.Port)
			if err != nil {
				return nil, err
			}
			return board.ConnPort(c), nil
		}})
	require.NoError(t, err)
	runs(t, "agent", a.Run)
	return sim, a
}

// runs runs f until the test ends, and expects that it stops in order.
func runs(t *testing.T, name string, f func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done, name)
	})
}

// soon waits for a condition in real time.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ring.Await(t, ok, what)
}

// takesDeliveries waits until a cabinet is online, has read its door, and has told the cloud that
// it has its configuration: until then nothing is sent to it.
func takesDeliveries(t *testing.T, s *server.Server, id cloud.DeviceID, cabinet *agent.Agent) {
	t.Helper()
	soon(t, "the cabinet takes deliveries", func() (takes bool) {
		require.NoError(t, s.Store.Look(t.Context(), func(v cloud.View) error {
			d, err := v.Device(id)
			takes = err == nil && d.Applied > 0 && d.TakesDeliveries() && s.Devices.Online(d.Code)
			return err
		}))
		return takes && cabinet.Loop().State().Doors[1].Known
	})
}

// hook is a receiver of webhooks that verifies them.
type hook struct {
	ln net.Listener

	mu     sync.Mutex // guards all below
	secret []byte
	events []string // verified
	bad    []string // why others were refused
	traces []string // traceparents that came with them
}

func newHook(t *testing.T) *hook {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &hook{ln: ln}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return h
}

func (h *hook) port() uint16 { return uint16(h.ln.Addr().(*net.TCPAddr).Port) }
func (h *hook) url() string  { return "http://" + h.ln.Addr().String() + "/hook" }

func (h *hook) trust(secret string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secret = []byte(secret)
}

func (h *hook) got(event string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.events, event)
}

// followed reports whether a webhook came with a span of a trace.
func (h *hook) followed(trace, span string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.traces, "00-"+trace+"-"+span+"-01")
}

func (h *hook) refused() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bad)
}

func (h *hook) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	h.mu.Lock()
	defer h.mu.Unlock()
	var b struct {
		Event string `json:"event"`
	}
	if err == nil {
		err = signature.VerifyProvider(q.Header.Get, body, time.Now(), h.secret)
	}
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	if err != nil {
		h.bad = append(h.bad, err.Error())
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	h.events, h.traces = append(h.events, b.Event), append(h.traces, q.Header.Get("traceparent"))
	w.WriteHeader(http.StatusNoContent)
}

package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/node"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// running is a node on a database of several.
type running struct {
	*server.Server
	url   string       // of its HTTP
	mqtt  string       // its address
	web   net.Listener // of HTTP
	stop  context.CancelFunc
	ended chan error
}

// door is a listener that fails with errDoor once it is closed.
type door struct{ net.Listener }

var errDoor = errors.New("the network is gone")

func (d door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, errDoor
	}
	return c, nil
}

func startNode(t *testing.T, cfg server.Config, mqtt bool) *running {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := server.New(t.Context(), cfg)
	require.NoError(t, err)
	var ln server.Listeners
	web, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln.HTTP = door{web}
	if mqtt {
		ln.MQTT, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	n := &running{Server: s, web: ln.HTTP, url: "http://" + ln.HTTP.Addr().String(), ended: make(chan error, 1)}
	if mqtt {
		n.mqtt = ln.MQTT.Addr().String()
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(t.Context())
	t.Cleanup(n.stop)
	go func() { n.ended <- s.Run(ctx, ln) }()
	return n
}

func (n *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	a, err := http.Get(n.url + path)
	if err != nil {
		return 0, ""
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, string(text)
}

func (n *running) awaitReady(t *testing.T) {
	t.Helper()
	ring.Await(t, func() bool { status, _ := n.get(t, "/readyz"); return status == http.StatusOK }, "the node is ready")
}

func nodesOf(t *testing.T, s *server.Server) map[string]cloud.Node {
	t.Helper()
	list, err := s.Store.ListNodes(t.Context())
	require.NoError(t, err)
	out := map[string]cloud.Node{}
	for _, n := range list {
		out[n.Name] = n
	}
	return out
}

// A process with the name of a running one is refused at once and changes nothing. The
// name of one that was killed is taken over, with all that it had taken up.
func TestASecondProcessOfOneNameIsRefusedWhileTheFirstAnswers(t *testing.T) {
	t.Parallel()
	cfg := server.Config{Dir: t.TempDir(), Database: storetest.MigratedPostgresURL(t), Node: "one"}
	first := startNode(t, cfg, true)
	first.awaitReady(t)
	held := nodesOf(t, first.Server)["one"]
	require.Equal(t, first.url, held.Address)
	require.Equal(t, []any{true, true, int64(1)}, []any{held.Edge, held.Core, held.Generation})

	second := startNode(t, cfg, true)
	err := <-second.ended
	require.ErrorIs(t, err, node.ErrTaken)
	require.ErrorContains(t, err, first.url)
	require.Equal(t, held.Instance, nodesOf(t, first.Server)["one"].Instance)

	// Killed: its row stays, and no process answers.
	first.stop()
	require.NoError(t, <-first.ended)
	box := storetest.Open(t, store.Config{URL: cfg.Database, Instance: "killed", Box: storetest.Box(t)})
	require.NoError(t, box.EnterNode(t.Context(), cloud.Node{Instance: "killed", Name: "one", SchemaNumber: store.SchemaNumber(), Address: first.url, StartedAt: time.Now()}, cloud.Node{}))
	require.NoError(t, box.TakeTask(t.Context(), "deadlines", "killed"))
	third := startNode(t, cfg, true)
	third.awaitReady(t)
	now := nodesOf(t, third.Server)["one"]
	require.Equal(t, third.Store.Instance(), now.Instance)
	require.EqualValues(t, 2, now.Generation)
	ring.Await(t, func() bool {
		tasks, err := third.Store.ListTasks(t.Context())
		require.NoError(t, err)
		return tasks["deadlines"] == now.Instance
	}, "the task of the killed process goes on")
	third.stop()
	require.NoError(t, <-third.ended)
	list, err := box.ListNodes(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "a process that ends leaves no lease")
}

// Processes with different roles are one deployment: the one for devices serves no
// interface and no pages, and the other opens no address for devices.
func TestRolesDivideADeployment(t *testing.T) {
	t.Parallel()
	dir, database := t.TempDir(), storetest.MigratedPostgresURL(t)
	edge := startNode(t, server.Config{Dir: dir, Database: database, Node: "edge", Part: server.Edge}, true)
	edge.awaitReady(t)
	core := startNode(t, server.Config{Dir: dir, Database: database, Node: "core", Part: server.Core}, false)
	core.awaitReady(t)
	for _, path := range []string{"/", "/console", "/api/openapi.json", "/api/v1/orders", "/.well-known/mcp", "/docs"} {
		status, text := edge.get(t, path)
		require.Equal(t, http.StatusNotFound, status, path)
		require.Contains(t, text, "serves devices")
		status, _ = core.get(t, path)
		require.NotEqual(t, 0, status)
	}
	status, _ := core.get(t, "/api/openapi.json")
	require.Equal(t, http.StatusOK, status)
	status, _ = edge.get(t, "/readyz")
	require.Equal(t, http.StatusOK, status)
	ring.Await(t, func() bool {
		tasks, err := core.Store.ListTasks(t.Context())
		require.NoError(t, err)
		return len(tasks) >= 10
	}, "the core does the tasks")
	tasks, err := core.Store.ListTasks(t.Context())
	require.NoError(t, err)
	for name, instance := range tasks {
		require.Equal(t, core.Store.Instance(), instance, name)
	}
	wrong := startNode(t, server.Config{Dir: dir, Database: database, Node: "wrong", Part: server.Core}, true)
	require.ErrorContains(t, <-wrong.ended, "not one for devices")
}

// A node that is asked to stop says so first and serves on meanwhile, for as long as it
// announces the stop: here for an hour, which a loop that fails ends. Then it lets
// connections go.
func TestAStopIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]server.Stop{
		"announced": {Announce: time.Hour, Drain: 300 * time.Millisecond},
		"drained":   {Announce: time.Millisecond, Drain: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, server.Config{Dir: t.TempDir(), Stop: stop}, true)
			n.awaitReady(t)
			box, err := n.Sandbox(t.Context(), server.SandboxConfig{Devices: []server.SandboxDevice{{Code: "CAB-1", Name: "Cabinet", Type: "smart_locker", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}}}})
			require.NoError(t, err)
			secret := box.Devices[0]
			client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + n.mqtt).SetClientID(topic.ClientID(secret.DeviceCode)).SetUsername(secret.DeviceCode).
				SetPassword(secret.Secret).SetAutoReconnect(false))
			token := client.Connect()
			token.Wait()
			require.NoError(t, token.Error())
			n.stop()
			if name == "announced" {
				ring.Await(t, func() bool { status, _ := n.get(t, "/readyz"); return status == http.StatusServiceUnavailable }, "the node says no")
				status, _ := n.get(t, "/healthz")
				require.Equal(t, http.StatusOK, status)
				status, _ = n.get(t, "/api/openapi.json")
				require.Equal(t, http.StatusOK, status)
				require.True(t, client.IsConnectionOpen(), "devices stay while the stop is announced")
				require.NoError(t, n.web.Close())
				require.ErrorIs(t, <-n.ended, errDoor)
			} else {
				require.NoError(t, <-n.ended)
			}
			ring.Await(t, func() bool { return !client.IsConnectionOpen() }, "the device is let go")
		})
	}
}

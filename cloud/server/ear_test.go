package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// ear is a participant's app that listens to an order's chat.
type ear struct {
	role string

	mu      sync.Mutex
	all     []heardEvent
	granted map[string]int
	closed  bool
}

// heardEvent is one event as it came.
type heardEvent struct {
	topic string
	body  map[string]any
}

func (e *ear) hear(topic string, raw []byte) {
	var body map[string]any
	if json.Unmarshal(raw, &body) != nil {
		body = map[string]any{"type": "no JSON: " + string(raw)}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, heardEvent{topic, body})
}

// heard are the events of topics that end so, each once, in the order in which
// they came first.
func (e *ear) heard(topic string) (out []heardEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[any]bool{}
	for _, h := range e.all {
		if id := h.body["event_id"]; h.topic == topic && !seen[id] {
			seen[id] = true
			out = append(out, h)
		}
	}
	return out
}

func (e *ear) types(topic string) (out []string) {
	for _, h := range e.heard(topic) {
		kind, _ := h.body["type"].(string)
		out = append(out, kind)
	}
	return out
}

// answers are what the broker said to its subscriptions, once it has.
func (e *ear) answers() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.granted
}

func (e *ear) gone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

func (e *ear) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// eventually waits for something that does not come at once.
func (w *talkWorld) eventually(ok func() bool, what ...any) {
	w.t.Helper()
	ring.Await(w.t, ok, what...)
}

// paho connects an app of our own library's.
func (w *talkWorld) paho(p pass, broker string) (paho.Client, *ear, error) {
	e := &ear{role: p.role}
	c := paho.NewClient(paho.NewClientOptions().AddBroker(broker).SetClientID(p.ClientID).SetUsername(p.Username).SetPassword(p.Password).SetProtocolVersion(4).SetAutoReconnect(false).
		SetConnectTimeout(10 * time.Second).SetConnectionLostHandler(func(paho.Client, error) { e.end() }))
	tok := c.Connect()
	<-tok.Done()
	w.t.Cleanup(func() { c.Disconnect(0) })
	return c, e, tok.Error()
}

// subscribe gives the broker's answer to one topic.
func (e *ear) subscribe(t testing.TB, c paho.Client, topic string) byte {
	t.Helper()
	tok := c.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) { e.hear(m.Topic(), m.Payload()) })
	<-tok.Done()
	answers := slices.Collect(maps.Values(tok.(*paho.SubscribeToken).Result())) // by the topic without $share
	require.Len(t, answers, 1)
	return answers[0]
}

// listen is an app of our own library's that listens to all that it may.
func (w *talkWorld) listen(role string) (paho.Client, *ear) {
	w.t.Helper()
	p := w.pass(role)
	c, e, err := w.paho(p, "tcp://"+w.addr[overTCP])
	require.NoError(w.t, err)
	for _, topic := range p.Topics {
		require.EqualValues(w.t, 1, e.subscribe(w.t, c, topic), topic)
	}
	return c, e
}

// mosquitto is the reference client of MQTT; it comes again by itself when its
// connection ends.
func (w *talkWorld) mosquitto(p pass, at int, version string) *ear {
	w.t.Helper()
	program, err := exec.LookPath("mosquitto_sub")
	ring.Needs(w.t, ring.EnvTools, "mosquitto_sub", err == nil)
	host, port, err := net.SplitHostPort(w.addr[at])
	require.NoError(w.t, err)
	args := []string{"-h", host, "-p", port, "-V", version, "-i", p.ClientID, "-u", p.Username, "-P", p.Password, "-q", "1", "-F", "%t %p"}
	for _, topic := range p.Topics {
		args = append(args, "-t", topic)
	}
	if at == overTLS {
		file := filepath.Join(w.t.TempDir(), "ca.pem")
		require.NoError(w.t, os.WriteFile(file, []byte(w.ca), 0o600))
		args = append(args, "--cafile", file)
	}
	e := &ear{role: p.role}
	w.run(exec.CommandContext(w.t.Context(), program, args...), nil, e, func(line []byte) {
		topic, body, _ := strings.Cut(string(line), " ")
		e.hear(topic, []byte(body))
	})
	return e
}

// node is the client of browsers and Node, over TCP or WebSocket. It tries what
// it is refused, too.
func (w *talkWorld) node(p pass, at, version int, refused []string, publish string) *ear {
	w.t.Helper()
	program, err := exec.LookPath("node")
	ring.Needs(w.t, ring.EnvBrowsers, "node", err == nil)
	dir := filepath.Join("..", "live", "apps")
	_, err = os.Stat(filepath.Join(dir, "node_modules", "mqtt"))
	ring.Needs(w.t, ring.EnvBrowsers, "node_modules/mqtt (npm ci in cloud/live/apps)", err == nil)
	address := map[int]string{overTCP: "mqtt://" + w.addr[at], overTLS: "mqtts://" + w.addr[at], overWS: "ws://" + w.addr[at] + "/mqtt", overWSS: "wss://" + w.addr[at] + "/mqtt"}[at]
	how, err := json.Marshal(map[string]any{"address": address, "client_id": p.ClientID, "username": p.Username, "password": p.Password, "topics": p.Topics, "ca": w.ca, "version": version,
		"refused": refused, "publish": publish})
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), program, "listen.mjs")
	cmd.Dir = dir
	e := &ear{role: p.role}
	w.run(cmd, how, e, func(line []byte) {
		var said struct {
			Topic   string
			Body    json.RawMessage
			Granted map[string]int
			Closed  bool
		}
		if json.Unmarshal(line, &said) != nil {
			return
		}
		if said.Topic != "" {
			e.hear(said.Topic, said.Body)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if said.Granted != nil {
			e.granted = said.Granted
		}
		e.closed = e.closed || said.Closed
	})
	return e
}

// run starts a program and reads its lines until the test ends.
func (w *talkWorld) run(cmd *exec.Cmd, input []byte, e *ear, line func([]byte)) {
	w.t.Helper()
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(w.t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			line(slices.Clone(in.Bytes()))
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // killed, mostly
		e.end()
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if w.t.Failed() && errs.Len() > 0 {
			w.t.Logf("%s: %s", e.role, errs.String())
		}
	})
}

// Package devicetest is for tests of the device link's cloud side: a real
// server with a real store and broker, and a device whose every message is made
// by hand, so that it can say what no agent would. All of it runs inside one
// bubble of simulated time (testing/synctest).
package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Secrets are those of a cabinet.
type Secrets = server.SandboxSecrets

// World is a server and what it was made with.
type World struct {
	*server.Server
	T   testing.TB
	Box server.Sandbox
	dir string
	cfg server.Config
	run sync.WaitGroup
	end context.CancelFunc

	mu    sync.Mutex
	ids   byte
	conns []net.Conn
}

// Doors is how many compartments of size M each of the two cabinets has.
const Doors = 4

// Signing is the code of the cabinet that has a key of its own.
const Signing = "CAB-S"

// New starts a server with two cabinets without a key, CAB-1 and CAB-2, one that
// signs what it sends, CAB-S, and a provider with a webhook endpoint that nothing
// ever reaches: its events wait in the outbox. Cabinet devices are added as they
// are given.
func New(t testing.TB, log *slog.Logger, more ...server.SandboxDevice) *World {
	t.Helper()
	return NewOn(t, "", log, more...)
}

// NewOn is New with a database of its own at an address, outside of any bubble;
// "" is New.
func NewOn(t testing.TB, database string, log *slog.Logger, more ...server.SandboxDevice) *World {
	t.Helper()
	w := &World{T: t, dir: filepath.Join(t.TempDir(), "cloud")}
	w.cfg = server.Config{Dir: w.dir, Database: database, Node: "one", Log: log, WebhookWaits: []time.Duration{1000 * time.Hour},
		WebhookDial: func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errors.New("nobody listens") }}
	storetest.WriteMigrated(t, w.dir)
	w.Start()
	var layout []wire.LayoutDoor
	for n := uint(1); n <= Doors; n++ {
		layout = append(layout, wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: "M"})
	}
	devices := []server.SandboxDevice{{Code: "CAB-1", Name: "One", Type: "smart_locker", Layout: layout, Unsigned: true}, {Code: "CAB-2", Name: "Two", Type: "smart_locker", Layout: layout, Unsigned: true},
		{Code: Signing, Name: "Three", Type: "smart_locker", Layout: layout}}
	var err error
	w.Box, err = w.Sandbox(context.Background(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, WebhookURL: "https://8.8.8.8/hook",
		Devices: append(devices, more...)})
	require.NoError(t, err)
	return w
}

// Start starts the server over its data folder; New has done so once.
func (w *World) Start() {
	w.T.Helper()
	var err error
	w.Server, err = server.New(context.Background(), w.cfg)
	require.NoError(w.T, err)
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	s := w.Server
	w.run.Go(func() {
		if err := s.Run(ctx, server.Listeners{}); err != nil {
			w.T.Errorf("run server: %v", err)
		}
	})
}

// Stop ends the server in an orderly way.
func (w *World) Stop() {
	w.end()
	w.run.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// Copy is a folder with a copy of the server's data.
func (w *World) Copy() string {
	w.T.Helper()
	dir := w.T.TempDir()
	require.NoError(w.T, w.Store.Backup(context.Background(), filepath.Join(dir, "postern.db")))
	keys, err := os.ReadFile(filepath.Join(w.dir, "keys.json"))
	require.NoError(w.T, err)
	require.NoError(w.T, os.WriteFile(filepath.Join(dir, "keys.json"), keys, 0o600))
	return dir
}

// Device is one connection of a device, and the store behind it.
type Device struct {
	W    *World
	Code string
	ID   cloud.DeviceID

	conn   net.Conn
	out    chan packets.ControlPacket
	Acks   chan wire.Ack
	Cmds   chan wire.Command
	Codes  chan wire.Codes
	Times  chan wire.Time
	Config chan wire.Config
	Closed chan struct{}

	key   *signed.DeviceKey      // nil: it signs nothing
	named wire.Epoch             // by the newest status of this connection
	echo  atomic.Pointer[[]byte] // of the newest challenge
	// Published is what it has sent, as a recording broker has it.
	Published []Published
	Will      Published // of this connection
	*Memory
}

// Published is a payload on its way up.
type Published struct {
	Topic   string
	Payload []byte
}

// Memory is what a device keeps between connections.
type Memory struct {
	Epoch    wire.Epoch
	Prev     *wire.Epoch
	Next     [wire.Lanes]uint64
	Head     [wire.Lanes]wire.Head
	Boot     uint64
	Mono     int64
	Instance []byte
	List     uint64
	Applied  uint64

	// Of a device that signs, or with Snapshot set.
	Count      uint64          // of statuses in this boot
	Generation uint64          // of the list
	Snapshot   bool            // it tells contents and generations
	Contents   map[uint]string // door to delivery
	Versions   map[uint]uint64 // of doors, by commands taken
	Lost       bool
	nonces     uint64
}

// NewEpoch begins a new epoch that names the one before.
func (m *Memory) NewEpoch(e wire.Epoch, prev *wire.Epoch) {
	m.Epoch, m.Prev = e, prev
	for l := range m.Next {
		m.Next[l], m.Head[l] = 1, wire.FirstHead(e, wire.Lane(l))
	}
}

// NewMemory is an empty store.
func (w *World) NewMemory() *Memory {
	w.mu.Lock()
	w.ids++
	m := &Memory{Applied: 1, Boot: 1, Mono: 1e9, Instance: []byte{w.ids}, Versions: map[uint]uint64{}, Contents: map[uint]string{}}
	id := w.ids
	w.mu.Unlock()
	m.NewEpoch(EpochOf(id), nil)
	return m
}

// EpochOf is an epoch id made of one byte.
func EpochOf(n byte) wire.Epoch { return wire.Epoch(bytes.Repeat([]byte{n}, 16)) }

func (w *World) secrets(code string) server.SandboxSecrets {
	for _, d := range w.Box.Devices {
		if d.DeviceCode == code {
			return d
		}
	}
	require.FailNow(w.T, "no such device: "+code)
	return server.SandboxSecrets{}
}

// Connect logs a device in. With a nil memory it has a new store.
func (w *World) Connect(code string, m *Memory) *Device {
	w.T.Helper()
	if m == nil {
		m = w.NewMemory()
	}
	s := w.secrets(code)
	d := &Device{W: w, Code: code, ID: s.DeviceID, Memory: m, out: make(chan packets.ControlPacket, 64), Acks: make(chan wire.Ack, 256),
		Cmds: make(chan wire.Command, 256), Codes: make(chan wire.Codes, 256), Times: make(chan wire.Time, 256), Config: make(chan wire.Config, 256), Closed: make(chan struct{})}
	if seed := s.Enrolled.DeviceKey; seed != nil {
		var err error
		d.key, err = signed.NewDeviceKey(code, seed)
		require.NoError(w.T, err)
	}
	here, there := net.Pipe()
	broker := w.Broker
	go func() { _ = broker.ServeConn(there) }()
	w.mu.Lock()
	w.conns = append(w.conns, here)
	w.mu.Unlock()
	d.conn = here
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.CleanSession, p.Keepalive = "MQTT", 4, true, 30
	p.ClientIdentifier, p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = topic.ClientID(code), true, code, true, []byte(s.Secret)
	p.WillFlag, p.WillRetain, p.WillQos, p.WillTopic = true, true, 1, topic.Device("tms", code, topic.Status)
	m.Count = (m.Count>>32 + 1) << 32 // a session's own numbers, the last one for its will
	will := wire.Status{State: wire.Offline, Boot: m.Boot, Epoch: m.Epoch, Instance: m.Instance, Count: m.Count | 1<<32 - 1}
	d.Will = Published{p.WillTopic, nil}
	d.sign(&will)
	p.WillMessage = wire.MustEncode(will)
	d.Will.Payload = p.WillMessage
	require.NoError(w.T, p.Write(here))
	a, err := packets.ReadPacket(here)
	require.NoError(w.T, err)
	require.Zero(w.T, a.(*packets.ConnackPacket).ReturnCode, "login of %s", code)
	sub := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	sub.MessageID, sub.Topics, sub.Qoss = 1, []string{topic.Device("tms", code, topic.Down), topic.Device("tms", code, topic.Config)}, []byte{1, 1}
	go d.write()
	go d.read()
	d.out <- sub
	return d
}

// write sends packets and the pings that keep the connection.
func (d *Device) write() {
	ping := time.NewTicker(20 * time.Second)
	defer ping.Stop()
	for {
		var p packets.ControlPacket = packets.NewControlPacket(packets.Pingreq)
		select {
		case <-d.Closed:
			return
		case p = <-d.out:
		case <-ping.C:
		}
		if p.Write(d.conn) != nil {
			return
		}
	}
}

func (d *Device) read() {
	defer close(d.Closed)
	for {
		p, err := packets.ReadPacket(d.conn)
		if err != nil {
			return
		}
		m, ok := p.(*packets.PublishPacket)
		if !ok {
			continue
		}
		if m.Qos > 0 {
			a := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			a.MessageID = m.MessageID
			select {
			case d.out <- a:
			case <-time.After(time.Minute):
			}
		}
		if err := d.receivePacket(m); err != nil {
			d.W.T.Errorf("message to %s: %v", d.Code, err)
		}
	}
}

func (d *Device) receivePacket(m *packets.PublishPacket) error {
	if len(m.Payload) > wire.MaxPayload {
		return fmt.Errorf("%d bytes, the limit is %d", len(m.Payload), wire.MaxPayload)
	}
	keys := signed.PinnedKeys(d.W.secrets(d.Code).Enrolled.Keys)
	if m.TopicName == topic.Device("tms", d.Code, topic.Config) {
		var c wire.Config
		err := keys.Open(signed.ForConfig, m.Payload, &c)
		d.Config <- c
		return err
	}
	down, err := wire.DecodeDown(m.Payload)
	if err != nil {
		return err
	}
	switch down.Type {
	case wire.DownAck:
		var a wire.Ack
		if err = wire.Decode(down.Body, &a); d.key != nil {
			err = errors.New("a plain receipt to a device with a key")
		}
		d.Acks <- a
	case wire.DownReceipt:
		var a wire.Ack
		if err = keys.Open(signed.ForReceipt, down.Body, &a); d.key == nil {
			err = errors.New("a signed receipt to a device without a key")
		}
		d.Acks <- a
	case wire.DownCommand:
		var c wire.Command
		err = keys.Open(signed.ForCommand, down.Body, &c)
		d.Cmds <- c
	case wire.DownCodes:
		var c wire.Codes
		err = keys.Open(signed.ForCodes, down.Body, &c)
		if len(d.Codes) == cap(d.Codes) { // a list that is not confirmed comes again every few seconds
			<-d.Codes
		}
		d.Codes <- c
	case wire.DownTime:
		var c wire.Time
		if err = keys.Open(signed.ForTime, down.Body, &c); len(c.Challenge) > 0 {
			d.echo.Store(&c.Challenge)
		}
		d.Times <- c
	default:
		err = errors.New("unknown type")
	}
	return err
}

// Publish sends a payload to a topic of the device's own, or to a foreign one.
func (d *Device) Publish(name string, payload []byte) {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.Qos, p.TopicName, p.Payload, p.MessageID = 1, name, payload, 9
	d.Published = append(d.Published, Published{name, payload})
	d.out <- p
}

// sign signs a status, if the device signs what it sends.
func (d *Device) sign(s *wire.Status) {
	if d.key != nil {
		require.NoError(d.W.T, d.key.SignStatus(s))
	}
}

// Up sends the bytes of a batch.
func (d *Device) Up(payload []byte) { d.Publish(topic.Device("tms", d.Code, topic.Up), payload) }

// Drop breaks the connection, as a cut does.
func (d *Device) Drop() {
	_ = d.conn.Close()
	<-d.Closed
}

// Record makes a record of this moment.
func (d *Device) Record(k wire.Kind, body any) wire.Raw {
	d.Mono += 1e6
	return wire.MustEncode(wire.Record{Kind: k, At: time.Now().UnixNano(), Boot: d.Boot, Mono: d.Mono, Clock: wire.ClockSynced, ErrMS: 5, Body: wire.MustEncode(body)})
}

// Batch makes the next batch of a lane; it counts as sent.
func (d *Device) Batch(l wire.Lane, records ...wire.Raw) wire.Batch {
	b := wire.Batch{Version: 1, Epoch: d.Epoch, Lane: l, First: d.Next[l], Records: records,
		Sent: wire.Sample{Boot: d.Boot, Mono: d.Mono, Wall: time.Now().UnixNano(), Clock: wire.ClockSynced, ErrMS: 5}}
	if b.First == 1 {
		b.PrevEpoch = d.Prev
	}
	for _, r := range records {
		d.Head[l] = d.Head[l].Next(r)
	}
	d.Next[l] += uint64(len(records))
	b.Head = d.Head[l]
	d.Sign(&b)
	return b
}

// Sign signs a batch, again when it was changed, if the device signs what it sends.
func (d *Device) Sign(b *wire.Batch) {
	if d.key != nil {
		require.NoError(d.W.T, d.key.SignBatch(b))
	}
}

// Send sends the next batch of a lane. A device with a key names a new epoch in a
// status first.
func (d *Device) Send(l wire.Lane, records ...wire.Raw) wire.Batch {
	if d.key != nil && d.named != d.Epoch {
		d.Status(nil)
	}
	b := d.Batch(l, records...)
	d.Up(wire.MustEncode(b))
	return b
}

// Tell sends one record in the lane of its kind and waits for its receipt.
func (d *Device) Tell(k wire.Kind, body any) wire.Ack {
	d.W.T.Helper()
	b := d.Send(k.Lane(), d.Record(k, body))
	for {
		a := d.Ack()
		if a.Lane != b.Lane || a.Epoch != b.Epoch {
			continue
		}
		require.Empty(d.W.T, a.Refused)
		require.Equal(d.W.T, b.Last()+1, a.Next, "%s is stored", k)
		return a
	}
}

// Status sends the device's present, changed by f where that is not nil.
func (d *Device) Status(f func(*wire.Status)) {
	s := wire.Status{State: wire.Online, At: time.Now().UnixNano(), Instance: d.Instance, Boot: d.Boot, Epoch: d.Epoch, CodeList: d.List, ConfigVersion: d.Applied,
		Nonce: []byte("nonce")}
	for l := range d.Next {
		s.Ends = append(s.Ends, wire.LaneEnd{Last: d.Next[l] - 1, Head: d.Head[l]})
	}
	if d.Snapshot = d.Snapshot || d.key != nil; d.Snapshot {
		d.Count++
		d.nonces++
		s.Count, s.Snapshot, s.Contents, s.Generation, s.Lost = d.Count, 1, d.Contents, d.Generation, d.Lost
		s.Nonce = fmt.Appendf(nil, "nonce-%d", d.nonces)
		for n := uint(1); n <= Doors; n++ {
			s.Doors = append(s.Doors, wire.DoorStatus{Door: n, State: wire.DoorLocked, Version: d.Versions[n]})
		}
	}
	if f != nil {
		f(&s)
	}
	d.named = s.Epoch
	d.Publish(topic.Device("tms", d.Code, topic.Status), d.SignStatus(s))
}

// SignStatus encodes a status with the newest challenge repeated in it, and signed
// if the device signs what it sends.
func (d *Device) SignStatus(s wire.Status) []byte {
	if echo := d.echo.Load(); echo != nil && s.Echo == nil {
		s.Echo = *echo
	}
	d.sign(&s)
	return wire.MustEncode(s)
}

// Prove sends a status, changed by f where that is not nil, waits for the challenge
// in its answer and sends another one that repeats it.
func (d *Device) Prove(f func(*wire.Status)) {
	d.W.T.Helper()
	d.Status(f)
	for len(Wait(d.W.T, "challenge", d.Times).Challenge) == 0 { // of a status before
	}
	d.Status(f)
}

// Greet sends the status of a connect and takes both receipts.
func (d *Device) Greet(f func(*wire.Status)) (acks [wire.Lanes]wire.Ack) {
	d.W.T.Helper()
	d.Status(f)
	for range acks {
		a := d.Ack()
		acks[a.Lane] = a
	}
	return acks
}

// Wait takes what comes next on a channel, within a minute of simulated time.
func Wait[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		require.FailNow(t, "did not come within a minute: "+what)
	}
	return v
}

// Ack waits for the next receipt.
func (d *Device) Ack() wire.Ack {
	d.W.T.Helper()
	return Wait(d.W.T, "receipt", d.Acks)
}

// Command waits for the next command and reads its body into it.
func (d *Device) Command(body any) wire.Command {
	d.W.T.Helper()
	c := Wait(d.W.T, "command", d.Cmds)
	require.NoError(d.W.T, wire.Decode(c.Body, body))
	return c
}

// Look reads the store.
func (w *World) Look(fn func(v cloud.View) error) {
	w.T.Helper()
	require.NoError(w.T, w.Store.Look(context.Background(), fn))
}

// Faults are the open device exceptions of a device, by type.
func (d *Device) Faults() map[string]cloud.DeviceException {
	d.W.T.Helper()
	rows, err := d.W.Store.ListDeviceExceptions(context.Background(), d.ID, 100)
	require.NoError(d.W.T, err)
	out := map[string]cloud.DeviceException{}
	for _, r := range rows {
		if r.ClosedAt.IsZero() {
			out[r.Type] = r
		}
	}
	return out
}

// Online is what the cloud shows.
func (d *Device) Online() bool {
	d.W.T.Helper()
	online := false
	d.W.Look(func(v cloud.View) error {
		s, err := v.Session(d.ID)
		online = s.Online
		return err
	})
	return online
}

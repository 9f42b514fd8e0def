// Package device is the cloud's side of the device link: logins and sessions,
// intake of record batches, receipts, presence, and what goes down to a device
// (time, configuration, codes, commands).
//
// MQTT only carries. A batch is stored, with everything derived from it, in one
// transaction, and only then is its receipt sent. Nothing a device sends is
// taken twice: (device, epoch, lane, sequence) and the hash chain decide, so
// repeats, holes, copied and rolled-back stores are distinguished. What a record
// means is asked of Meaning, inside the same transaction.
//
// Batches of one device are taken in the order they came, those of different
// devices side by side. All methods are safe for concurrent use.
package device

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	FindDeviceByCode(ctx context.Context, code string) (cloud.Device, error)
	// ListSessions lists sessions by device, those after the given one.
	ListSessions(ctx context.Context, after cloud.DeviceID, limit int) ([]cloud.Session, error)
	// ChangedDevices gives devices whose commands, code list, configuration or standing
	// changed since a time, each with when that was last.
	ChangedDevices(ctx context.Context, since time.Time) ([]cloud.DeviceChange, error)
}

// Meaning tells what records lead to.
type Meaning interface {
	Begin(v cloud.View, d cloud.Device, received time.Time) Work
}

// Work is one transaction's worth of records. It collects what they lead to
// and writes it into changes at the end. A problem is a fault of the record
// (cloud.DevBadBatch, cloud.DevForeignReference), which then derives nothing;
// an error is ours.
type Work interface {
	Record(r Record) (problem string, err error)
	// Snapshot compares what a cabinet says about its compartments with what is
	// known of them. It is called only for a status that may be compared: all
	// that led to it is stored.
	Snapshot(st *wire.Status, at time.Time) error
	// DoorsFreed takes a status by which doors stand open that had stayed shut.
	DoorsFreed(st *wire.Status, at time.Time) error
	// StoreLost says that the device lost its state at the given time.
	StoreLost(at time.Time) error
	Finish(ch *cloud.Changes) error
}

// Record is one placed record.
type Record struct {
	wire.Record
	Lane        wire.Lane
	Seq         uint64
	OccurredAt  time.Time // never after receipt
	Approximate bool
	// Earliest and Latest bound an approximate moment; zero: not known.
	Earliest, Latest time.Time
	// Present is set when no newer status has reported the device's present.
	Present bool
}

// Sender carries messages down. It must not block; what it loses is sent
// again.
type Sender interface {
	Send(code string, leaf topic.Leaf, payload []byte, retain bool) error
	// Kick closes the connection of a device.
	Kick(code string)
}

// Config is what New needs.
type Config struct {
	Store     Store
	Meaning   Meaning
	Signer    *signed.Signer
	ServerKey []byte // for the digests of device secrets
	Node      string // instance of this process
	// Living gives the instances that may have devices connected; nil: this one alone.
	Living func(ctx context.Context) (map[string]bool, error)
	// Bulk is how many transactions of lane 1 alone run at a time; 0 is 48. With
	// a database that gives each transaction a connection it has to be smaller
	// than their number, so that lane 0 always finds one.
	Bulk int
	Log  *slog.Logger
}

// Service is the device link's cloud side.
type Service struct {
	*core
	logins
	queue
	presence
}

// Sections of the service.
type (
	logins   struct{ *core }    // sessions begin and end, and secrets are given
	presence struct{ *core }    // who is there, of all nodes
	downlink struct{ *core }    // time, configuration, codes and commands
	receipts struct{ downlink } // of batches, with the credit for more
	queue    struct{ receipts } // what devices sent, taken in and answered
)

// core is what the sections share.
type core struct {
	cfg    Config
	log    *slog.Logger
	sender Sender

	sessions sessions
	urgent   chan *session // sessions with a status or something of lane 0 to take
	bulk     chan *session // sessions with something of lane 1
	flow     flow
	evidence evidence
	held     chan struct{} // a session is held back
	Metrics  Metrics
}

// Limits of intake.
const (
	queuePerDevice = 24 // payloads; the agent keeps at most 8 batches a lane on the way
	takeAtOnce     = 16 // payloads in one transaction
	urgentWorkers  = 64 // on SQLite those that decide together share a commit
	bulkWorkers    = 48
	ackDelay       = 20 * time.Millisecond
	ackRecords     = 256
	resendEvery    = 5 * time.Second
	presenceEvery  = 15 * time.Second
	codesBytes     = 96 << 10 // entries in one message; a payload has at most 128 KiB
)

// New builds the service; Run starts it.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Bulk == 0 {
		cfg.Bulk = bulkWorkers
	}
	c := &core{cfg: cfg, log: cfg.Log, sessions: sessions{byCode: map[string]*session{}}, urgent: make(chan *session, 1<<16), bulk: make(chan *session, 1<<16),
		flow: newFlow(time.Now()), held: make(chan struct{}, 1), evidence: evidence{left: map[cloud.DeviceID]allowance{}}}
	return &Service{c, logins{c}, queue{receipts{downlink{c}}}, presence{c}}
}

// SetSender names who carries messages down. It is called once, before Run.
func (s *core) SetSender(x Sender) { s.sender = x }

// Online reports whether a device is connected to this node.
func (s *core) Online(code string) bool { return s.sessions.has(code) }

type incoming struct {
	leaf    topic.Leaf
	lane    wire.Lane // of a batch; lane 1 when that cannot be read
	payload []byte
	at      time.Time
}

// class is how urgent a payload is.
func (in incoming) class() int {
	if in.leaf == topic.Up && in.lane != wire.Settlement {
		return classBulk
	}
	return classUrgent
}

const (
	classUrgent = iota
	classBulk
)

// SecretMAC is the digest of a device secret that the cloud keeps.
func SecretMAC(serverKey []byte, code, secret string) []byte {
	m := hmac.New(sha256.New, serverKey)
	m.Write([]byte("postern/device-secret/1\n" + code + "\n" + secret))
	return m.Sum(nil)
}

// ErrLogin says that code and secret do not belong together, or that the
// device is disabled.
var ErrLogin = errors.New("device login refused")

// Login checks a device's secret and opens a session, which takes over an
// older one. The generation names it in Disconnected and Receive.
func (s logins) Login(ctx context.Context, code, secret string) (generation int64, err error) {
	d, err := s.cfg.Store.FindDeviceByCode(ctx, code)
	if errors.Is(err, cloud.ErrNotFound) {
		return 0, ErrLogin
	}
	if err != nil {
		return 0, fmt.Errorf("find device %s: %w", code, err)
	}
	if d.Protocol == cloud.ProtocolHTTP || d.Disabled || len(d.SecretMAC) == 0 || !hmac.Equal(d.SecretMAC, SecretMAC(s.cfg.ServerKey, code, secret)) {
		return 0, ErrLogin
	}
	return s.open(ctx, d)
}

// LoginCertificate opens a session for a device whose client certificate the
// TLS layer has verified. A certificate whose validity begins before the device was
// cut off is refused: a holder of the old hardware has that too.
func (s logins) LoginCertificate(ctx context.Context, code string, from time.Time) (generation int64, err error) {
	d, err := s.cfg.Store.FindDeviceByCode(ctx, code)
	if err != nil || d.Protocol == cloud.ProtocolHTTP || d.Disabled || d.IsCutOff() || from.Before(d.CutOffAt) {
		return 0, ErrLogin
	}
	return s.open(ctx, d)
}

func (s logins) open(ctx context.Context, d cloud.Device) (int64, error) {
	now := time.Now().UTC()
	var generation int64
	var upKey []byte
	err := s.cfg.Store.Decide(ctx, d.ID, func(v cloud.View) (*cloud.Changes, error) {
		present, err := v.Device(d.ID)
		if err != nil {
			return nil, err
		}
		if present.Disabled || !present.EnrolledAt.Equal(d.EnrolledAt) || !present.CutOffAt.Equal(d.CutOffAt) {
			return nil, ErrLogin // enrolled anew or cut off since its secret was checked
		}
		upKey = present.UpKey
		row, err := v.Session(d.ID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return nil, err
		}
		row.DeviceID, row.Node, row.ConnectedAt, row.LastSeenAt = d.ID, s.cfg.Node, now, now
		row.Generation++
		generation = row.Generation
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{row}}}, nil
	})
	if err != nil {
		return 0, fmt.Errorf("open session of %s: %w", d.Code, err)
	}
	x := &session{code: d.Code, id: d.ID, generation: generation, upKey: upKey, cutOff: d.CutOffAt, commands: map[string]time.Time{}}
	if old := s.sessions.add(x); old != nil {
		s.end(old)
	}
	s.Metrics.Logins.Add(1)
	return generation, nil
}

// end closes a session; what it has queued comes again.
func (s *core) end(x *session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	s.forget(x)
	s.flow.owes(x, 0)
	if x.timer != nil {
		x.timer.Stop()
	}
}

// forget empties a session's queue. The caller holds x.mu.
func (s *core) forget(x *session) {
	for _, in := range x.queue {
		s.flow.drop(len(in.payload))
	}
	x.queue = nil
}

// Receive queues what a device published. It never blocks: a full queue drops
// the payload, and since no receipt follows it comes again. The payload is
// kept; the caller must not change it afterwards.
func (s queue) Receive(code string, generation int64, leaf topic.Leaf, payload []byte) {
	x := s.sessions.find(code, generation)
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	if len(x.queue) >= queuePerDevice {
		s.Metrics.Dropped.Add(1)
		return
	}
	in := incoming{leaf: leaf, lane: wire.Telemetry, payload: payload, at: time.Now().UTC().Truncate(time.Millisecond)} // as the journal keeps it
	if _, lane, _, ok := wire.PeekBatch(payload); leaf == topic.Up && ok {
		in.lane = lane
	}
	if !s.flow.admit(x, len(payload), in.class() == classBulk) {
		s.Metrics.Dropped.Add(1)
		return
	}
	x.queue = append(x.queue, in)
	s.wake(x)
}

// wake asks for a worker, once: an urgent one as long as anything urgent waits,
// even behind something that is not. The caller holds x.mu.
func (s queue) wake(x *session) {
	if x.busy || len(x.queue) == 0 {
		return
	}
	class := x.class()
	if x.asked[class] {
		return
	}
	line := s.urgent
	if class == classBulk {
		line = s.bulk
	}
	select {
	case line <- x:
		x.asked[class] = true
	default:
		s.forget(x) // as a full queue: it comes again
		s.Metrics.Dropped.Add(1)
	}
}

// Disconnected says that a connection ended. A session that has been taken
// over changes nothing.
func (s logins) Disconnected(ctx context.Context, code string, generation int64) {
	x := s.sessions.find(code, generation)
	if x == nil {
		return
	}
	s.end(x)
	s.sessions.remove(x)
	s.offline(ctx, x.id, generation, nil, nil)
}

// offline marks a session's device as gone unless a newer session owns it, or back,
// where it is given, says as the decision is made that it is here. A signed last will counts when its agent is the one
// that speaks and has said nothing since; without one the connection has ended.
func (s *core) offline(ctx context.Context, id cloud.DeviceID, generation int64, will *wire.Status, back func() bool) {
	err := s.cfg.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
		row, err := v.Session(id)
		if err != nil || row.Generation != generation || !row.Online || back != nil && back() {
			return &cloud.Changes{}, ignoreNotFound(err)
		}
		if will != nil && row.Instance != "" {
			instance := hex.EncodeToString(will.Instance)
			if old, _, _ := isOld(row, instance, will); old || row.Instance != instance {
				return &cloud.Changes{}, nil
			}
		}
		row.Online, row.LastSeenAt = false, time.Now().UTC()
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: generation, Seen: []cloud.DeviceSeen{{DeviceID: id}}, Sessions: []cloud.Session{row}}}, nil
	})
	if err != nil && !errors.Is(err, cloud.ErrStale) && ctx.Err() == nil {
		s.log.Error("mark device offline", "device_id", id, "err", err)
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	return err
}

// Run takes what devices send until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range urgentWorkers {
		wg.Go(func() { s.serve(ctx, s.urgent, classUrgent) })
	}
	for range s.cfg.Bulk {
		wg.Go(func() { s.serve(ctx, s.bulk, classBulk) })
	}
	wg.Go(func() { s.tend(ctx) })
	wg.Go(func() { s.pace(ctx) })
	wg.Go(func() { s.watch(ctx) })
	if s.cfg.Living != nil {
		wg.Go(func() { s.follow(ctx) })
	}
	wg.Wait()
	return ctx.Err()
}

// serve is one worker: what is urgent never waits for what is not.
func (s queue) serve(ctx context.Context, line <-chan *session, class int) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-line:
			s.intakeQueued(ctx, x, class)
		}
	}
}

// intakeQueued works on what one session has queued: runs of batches of one class in
// one transaction, statuses one by one.
func (s queue) intakeQueued(ctx context.Context, x *session, class int) {
	x.mu.Lock()
	x.asked[class] = false
	if x.busy || len(x.queue) == 0 || x.class() != class {
		s.wake(x)
		x.mu.Unlock()
		return // another worker has it, or it waits in the other line
	}
	run := x.cut()
	x.busy = true
	x.mu.Unlock()

	if run[0].leaf == topic.Up {
		s.batches(ctx, x, run)
	} else {
		s.status(ctx, x, run[0])
		s.flow.drop(len(run[0].payload))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy = false
	s.wake(x)
}

// Waiting is how long a batch that comes now waits for its commit, as far as
// this node can tell.
func (s *core) Waiting() time.Duration { return s.flow.wait() }

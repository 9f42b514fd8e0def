// Package uplink is the cabinet's end of the device link: it keeps one MQTT
// session to the cloud, says how the cabinet stands, drains the store, and hands
// on what comes down.
//
// Order: on every connection the subscriptions come first, then the status with
// a fresh nonce, then, once the cloud has answered or 2 s later, lane 0, and
// lane 1 when nothing of lane 0 is left to send. Records of a lane are sent in
// their order. Lane 1 behind a gap waits until the gap record is acknowledged.
// A status overtakes everything that is not already being written.
//
// Loss: a publish that the broker confirmed proves nothing. A record leaves the
// store only by the cloud's own acknowledgement, so after a lost connection, a
// hole, or 10 s without progress sending starts again at the last one. Messages
// that come down while the handler is behind are dropped and counted; the cloud
// sends all of them again.
//
// Concurrency: Run owns the session. The other methods of Uplink may be called
// from anywhere. The handler's methods are called one at a time, from a
// goroutine of their own: they may take their time.
//
// The package signs by the key that it is given, leaves verifying to its caller,
// and understands no command.
package uplink

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Store is what the uplink drains. buffer.Store is one.
type Store interface {
	Present() buffer.Present
	Read(l wire.Lane, from uint64, maxRecords, maxBytes int) (buffer.Run, error)
	Ack(epoch wire.Epoch, l wire.Lane, next uint64, head wire.Head) error
	NewEpoch(reason string, refused *buffer.Refused) error
	NewEpochFrom(holds [wire.Lanes]uint64) error
	Wake() <-chan struct{} // records became durable; the uplink is its only reader
}

// Handler takes what comes down. Envelopes are COSE_Sign1 bytes as they came:
// verifying them is the handler's part. They belong to it.
type Handler interface {
	Command(envelope []byte)
	Time(a TimeAnswer)
	Codes(a CodesAnswer)
	Config(envelope []byte)
}

// TimeAnswer is the cloud's answer to a nonce. It counts only when its payload
// names Nonce. Both times carry a monotonic reading, and half of their distance
// bounds the error.
type TimeAnswer struct {
	Envelope   []byte
	Nonce      []byte    // of the last status that carried one
	SentAt     time.Time // just before that status was handed to the network
	ReceivedAt time.Time
}

// CodesAnswer is a message about the code list. A whole list counts only when its
// payload names Nonce; one that names any of Earlier is late.
type CodesAnswer struct {
	Envelope []byte
	Nonce    []byte   // of the last status that carried one
	Earlier  [][]byte // nonces of this connection before it, newest first, at most earlierNonces
}

// earlierNonces is how many nonces of a connection are remembered beside the last
// one, five minutes' worth at least: answers to them may still be on their way.
const earlierNonces = 64

// Config is what New needs.
type Config struct {
	DeviceCode string // [A-Za-z0-9_-]{1,32}
	Secret     string // password; empty with a client certificate in TLS
	Prefix     string // of the topics; empty is "tms"
	// Brokers are tried in turn: tcp://, ssl:// (or tls://, mqtts://), ws://,
	// wss:// with host and port. Plain ones are for the loopback only.
	Brokers []string
	TLS     *tls.Config // nil is the system's roots, TLS 1.2 and up
	// Dial opens the connection to a broker; nil dials by the address's scheme.
	Dial    func(ctx context.Context, broker *url.URL) (net.Conn, error)
	Store   Store
	Status  func() wire.Status // everything but state, lanes, nonce and epoch
	Sample  func() wire.Sample // this boot's clock as it is now
	Handler Handler
	// Key signs every batch and status, the last will included; nil signs nothing.
	// A device with a key takes no plain acknowledgement, only receipts.
	Key *signed.DeviceKey
	// Receipt opens a signed acknowledgement; nil refuses all of them. It is called
	// on the network's goroutine.
	Receipt func(envelope []byte) (wire.Ack, error)
	// Forged is called, as the handler is, for an acknowledgement that cannot be
	// trusted. It may be nil.
	Forged func(err error)
	// Forked gets the reason why an epoch was begun: one of wire's gap reasons. It may
	// be nil and must not block.
	Forked func(reason string)
	Logger *slog.Logger    // nil discards
	Source mathrand.Source // of the jitter; nil is seeded at random. Only Run uses it
}

var deviceCode = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

func (c *Config) check() error {
	switch {
	case !deviceCode.MatchString(c.DeviceCode):
		return fmt.Errorf("device code %q", c.DeviceCode)
	case len(c.Brokers) == 0:
		return errors.New("no broker address")
	case c.Store == nil || c.Status == nil || c.Sample == nil || c.Handler == nil:
		return errors.New("store, status, sample and handler are all needed")
	}
	return nil
}

// Counters count since New.
type Counters struct {
	Attempts   uint64 // connections tried
	Connects   uint64 // that were accepted
	Refused    uint64 // logins refused
	Kicks      uint64 // connections lost within 60 s
	Statuses   uint64
	Batches    uint64
	Records    uint64 // sent, repeats included
	Acks       uint64
	Resends    uint64 // times that sending started again at the last acknowledgement
	BadBatches uint64 // refused as undecodable or over a limit
	Epochs     uint64 // begun because of what the cloud answered
	BadDown    uint64 // messages from the cloud that could not be read
	Forged     uint64 // acknowledgements that could not be trusted
	Dropped    uint64 // messages from the cloud that found the queue full
}

// Uplink is one device's end of the link.
type Uplink struct {
	cfg     Config
	topics  topics
	again   chan struct{} // start again at the first broker
	status  chan struct{} // a status is due
	ask     chan struct{} // a status with a nonce is due
	down    chan func()   // for the handler
	backoff backoff

	mu        sync.Mutex
	counters  Counters
	brokers   []broker // never empty
	connected string   // address of the broker, "" while no session stands
	statuses  uint64   // number of the newest status of this boot
}

// broker is an address as it was given and as it is used.
type broker struct {
	name string
	url  *url.URL
}

type topics struct{ up, down, config, status string }

// New checks cfg. It starts nothing.
func New(cfg Config) (*Uplink, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "tms"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Source == nil {
		var seed [16]byte
		_, _ = rand.Read(seed[:])
		cfg.Source = mathrand.NewPCG(binary.NativeEndian.Uint64(seed[:]), binary.NativeEndian.Uint64(seed[8:]))
	}
	u := &Uplink{cfg: cfg, again: make(chan struct{}, 1), status: make(chan struct{}, 1), ask: make(chan struct{}, 1), down: make(chan func(), 64)}
	u.backoff.rnd = mathrand.New(cfg.Source)
	for _, b := range cfg.Brokers {
		if err := CheckAddress(b); err != nil {
			return nil, fmt.Errorf("uplink: %w", err)
		}
	}
	u.SetBrokers(cfg.Brokers)
	if cfg.Dial == nil {
		u.cfg.Dial = u.dial
	}
	base := cfg.Prefix + "/device/" + cfg.DeviceCode + "/"
	u.topics = topics{up: base + "up", down: base + "down", config: base + "config", status: base + "status"}
	return u, nil
}

// CheckAddress reports what is wrong with the address of a broker, or nil.
func CheckAddress(b string) error {
	addr, err := url.Parse(b)
	switch {
	case err != nil || addr.Hostname() == "":
		return fmt.Errorf("broker address %q: use one such as ssl://tms.example:8883", b)
	case dialers[addr.Scheme] == nil:
		return fmt.Errorf("broker address %q: unknown scheme", b)
	}
	return nil
}

// SetBrokers replaces the addresses, from the next attempt on. A session stands
// unless its address is not among them. Addresses that CheckAddress refuses are
// left out; with none left nothing changes.
func (u *Uplink) SetBrokers(addresses []string) {
	var list []broker
	for _, b := range addresses {
		if CheckAddress(b) == nil {
			addr, _ := url.Parse(b) // CheckAddress has
			list = append(list, broker{b, addr})
		}
	}
	if len(list) == 0 {
		return
	}
	u.mu.Lock()
	u.brokers = list
	gone := u.connected != "" && !slices.ContainsFunc(list, func(b broker) bool { return b.name == u.connected })
	u.mu.Unlock()
	if gone {
		u.Again()
	}
}

// Again ends the session, if one stands, and starts at the first address.
func (u *Uplink) Again() {
	select {
	case u.again <- struct{}{}:
	default:
	}
}

// Broker is the address at which the session stands, "" when none does.
func (u *Uplink) Broker() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.connected
}

// StatusChanged says that the status should go out again. Calls within 200 ms
// make one status, the newest.
func (u *Uplink) StatusChanged() {
	select {
	case u.status <- struct{}{}:
	default:
	}
}

// AskList says that a whole code list is needed, for which the status has to
// carry a nonce. Such a status goes at most every 5 s.
func (u *Uplink) AskList() {
	select {
	case u.ask <- struct{}{}:
	default:
	}
}

// Each session has numbers for its statuses, and the last one of them is its last
// will's: the cloud takes it for newer than all that the session sent, and the
// next session's are newer still.
const statusBlock = 1 << 32

func (u *Uplink) nextStatus() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.statuses++
	return u.statuses
}

// lastStatus is the number of the running session's last will.
func (u *Uplink) lastStatus() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.statuses/statusBlock*statusBlock + statusBlock - 1
}

// endStatuses leaves the running session's numbers behind.
func (u *Uplink) endStatuses() {
	next := u.lastStatus() + 1
	u.mu.Lock()
	defer u.mu.Unlock()
	u.statuses = next
}

// Counters returns them as they stand.
func (u *Uplink) Counters() Counters {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counters
}

// Connected reports whether a session stands.
func (u *Uplink) Connected() bool {
	return u.Broker() != ""
}

func (u *Uplink) count(fn func(*Counters)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	fn(&u.counters)
}

// Run keeps the session until ctx ends, then says goodbye and returns nil. It
// may be called once.
func (u *Uplink) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { u.dispatch(inner) })
	for i := 0; ctx.Err() == nil; i++ {
		u.mu.Lock()
		broker := u.brokers[i%len(u.brokers)]
		u.mu.Unlock()
		up, err := u.connect(ctx, broker, &wg)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errAgain) {
			i = -1
			continue
		}
		wait := u.backoff.after(outcome{up: up, refused: errors.Is(err, errRefused)})
		if up > 0 && up < steady {
			u.count(func(c *Counters) { c.Kicks++ })
		}
		if up >= steady {
			i-- // it worked: the same one first
		}
		u.cfg.Logger.Warn("not connected", "broker", broker.url.Host, "error", err, "connected_for", up, "retry_in", wait)
		if u.sleep(ctx, wait) {
			i = -1
		}
	}
	return nil
}

// sleep waits, until it is to start again at the first address: it reports that.
func (u *Uplink) sleep(ctx context.Context, d time.Duration) (again bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-u.again:
		return true
	case <-t.C:
	}
	return false
}

// dispatch calls the handler.
func (u *Uplink) dispatch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case fn := <-u.down:
			fn()
		}
	}
}

// deliver queues a call of the handler, or drops it.
func (u *Uplink) deliver(fn func()) {
	select {
	case u.down <- fn:
	default:
		u.count(func(c *Counters) { c.Dropped++ })
	}
}

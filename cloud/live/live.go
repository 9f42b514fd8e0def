// Package live is the live channel of people's apps: who may listen to what, and
// what they receive over MQTT.
//
// An event is a row that was written with what it reports (cloud.LiveEvent).
// Each node publishes to its own listeners, at once what it committed itself, and
// what others committed by a poll that runs while there is a listener and looks at
// the last fifteen seconds, because rows are not committed in the order of their
// times; clocks of nodes must not differ by more. A listener receives everything
// at least once and drops repeats by id: a new listener first receives what
// the channel carried within cloud.LiveKept, so an app that comes back to
// whatever node, after whatever happened to the one before, misses nothing.
//
// Dashboards receive changes of orders' statuses while they listen. That is read
// from the operations of orders; no row is written for it.
//
// Safe for concurrent use.
package live

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/mqttbroker"
)

// Store is what this package needs of the database.
type Store interface {
	// LiveSince gives events from a time on that known does not know, and those
	// that come between.
	LiveSince(ctx context.Context, from time.Time, known func(id string) bool) ([]cloud.LiveEvent, error)
	LiveOf(ctx context.Context, b cloud.BusinessID, kind cloud.LiveKind, subject int64, from time.Time, limit int) ([]cloud.LiveEvent, error)
	DropLive(ctx context.Context, before time.Time) error
	HeardPushes(ctx context.Context, ids []string, now time.Time) error
	LastOperation(ctx context.Context) (int64, error)
	OperationsAfter(ctx context.Context, after int64, limit int) ([]cloud.OrderOperation, error)
	// Peers reports whether others write into the same database.
	Peers() bool
}

// Sealer makes passwords that no other program can make or read.
type Sealer interface {
	Seal(purpose string, plain []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Publisher gives messages to the listeners of this node. It never waits for them.
type Publisher interface {
	Publish(topic string, m mqttbroker.Message)
}

// Rights says who may read the chat of an order.
type Rights interface {
	// Chat is what a listener may receive of an order's chat: none too while the
	// chats of the business are off. An error says that it is unknown.
	Chat(ctx context.Context, l Listener, o cloud.OrderID) (ChatRight, error)
}

// ChatRight is what a listener may receive of a chat.
type ChatRight int

// Rights to a chat.
const (
	NoChat    ChatRight = iota
	ChatAll             // what is for all who take part
	ChatStaff           // what is for dispatchers and the driver too
)

// Config is what New needs.
type Config struct {
	Store  Store
	Sealer Sealer
	Rights Rights // nil: chats have no listeners
	// ChatReceived takes down that a listener has what an order's chat sent it, by the
	// ids of events. nil: none are given.
	ChatReceived func(ctx context.Context, l Listener, o cloud.OrderID, ids []string) error
	// FindToken finds a token by its hash; cloud.ErrNotFound when there is none.
	FindToken func(ctx context.Context, hash [32]byte) (auth.Session, error)
	// SeesOrders reports whether one of a business's staff may see its orders.
	SeesOrders func(auth.Session) bool
	// SeesChats reports whether an account's login may read chats.
	SeesChats func(auth.Session) bool
	// SeesPushes reports whether a driver's login may read what the driver is pushed.
	SeesPushes func(auth.Session) bool
	Prefix     string // of all topics
	// URL and WebSocketURL are where apps reach the broker, "" where they cannot.
	URL, WebSocketURL string
	Poll              time.Duration // 0: a second
	Log               *slog.Logger
}

// Service is the live channel of one node.
type Service struct {
	cfg           Config
	publisher     Publisher
	queue         chan item     // what this node committed; when it is full the poll finds the rest
	missed        atomic.Bool   // the queue was full
	acks          chan ack      // what was acknowledged; when it is full, pushes go to the provider too
	turns         chan struct{} // reads for new listeners
	subscriptions atomic.Int64  // subscriptions to anything but dashboards

	mu     sync.Mutex
	sent   map[any]time.Time // ids of items, from when they are, or were sent
	looked time.Time         // the last look into the store that went well, or was not needed
	dash   dashboards
}

// Sizes and times.
const (
	queueSize  = 4096
	ackSize    = 4096
	keptReads  = 4
	lookBack   = 15 * time.Second // how much later than its time a row may be committed
	lookMost   = 5 * time.Minute  // how far back a node looks that could not reach the store
	passingFor = 3 * time.Second  // how long what passes is of use
	pruneEvery = 30 * time.Second
	ackEvery   = 200 * time.Millisecond
)

// New builds the service; it starts nothing. SetTeller comes before Run.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	return &Service{cfg: cfg, queue: make(chan item, queueSize), acks: make(chan ack, ackSize), turns: make(chan struct{}, keptReads), sent: map[any]time.Time{}, looked: time.Now(),
		dash: dashboards{open: map[cloud.BusinessID]int{}}}
}

// SetTeller sets the publisher that reaches listeners.
func (s *Service) SetTeller(t Publisher) { s.publisher = t }

// Run publishes until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.publish(ctx) })
	wg.Go(func() { s.acknowledge(ctx) })
	wg.Go(func() { s.every(ctx, pruneEvery, s.prune) })
	s.every(ctx, s.cfg.Poll, s.poll)
	wg.Wait()
	return nil
}

// every does something again and again; what fails is tried the next time.
func (s *Service) every(ctx context.Context, wait time.Duration, do func(context.Context) error) {
	t := time.NewTicker(wait)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("live channel", "err", err)
		}
	}
}

func (s *Service) prune(ctx context.Context) error {
	now := time.Now()
	from := s.lookFrom(now)
	s.mu.Lock()
	for id, at := range s.sent {
		if at.Before(from) {
			delete(s.sent, id)
		}
	}
	s.mu.Unlock()
	return s.cfg.Store.DropLive(ctx, now.Add(-cloud.LiveKept-lookBack))
}

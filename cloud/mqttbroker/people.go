package mqttbroker

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// People is what the broker needs of the service that lets people's apps in. Apps only
// subscribe, to topics that are named to the last level.
type People interface {
	// Login lets an app in by its client id and password, or says why not. The
	// id begins with AppPrefix; ip is the address of the caller.
	Login(ctx context.Context, client, password, ip string) (Person, error)
	// Holds reports whether what an app was let in by holds still. An error says
	// that it is not known; an app of which it is not known twice is let go.
	Holds(ctx context.Context, p Person) (bool, error)
	// ListRecent gives the latest messages of a topic, oldest first: an app that subscribes
	// receives it before anything else.
	ListRecent(ctx context.Context, p Person, topic string) ([]Message, error)
	// Listening is called when a connection subscribes to a topic (1) and when that
	// ends (-1). It must not block.
	Listening(p Person, topic string, change int)
	// Received is called when an app has acknowledged a message. It must not block.
	Received(p Person, topic, id string)
}

// Person is one who uses an app.
type Person struct {
	Owner  string   // whose connections are counted together
	Topics []string // that the app may subscribe to
	Claim  any      // of the feature that let it in
}

// Message is what apps receive. Payload must not change.
type Message struct {
	ID      string
	Payload []byte
}

// AppPrefix begins the client ids of people's apps.
const AppPrefix = "app-"

// Limits of people's apps.
const (
	appsEach    = 10     // connections of one person
	appsAll     = 20_000 // of all
	appRefused  = 10     // topics that an app may try in vain
	appRecheck  = 30 * time.Second
	rechecksAt1 = 4 // at a time
	// How long an app whose rights have ended still receives: the reason comes on
	// its topics, by another node perhaps, which this one looks for every second.
	lastWord = 3 * time.Second
)

// apps are the connections of people's apps.
type apps struct {
	cfg Config

	mu        sync.Mutex
	serial    int64
	byName    map[string]*app   // by the client id that they were issued
	byConn    map[net.Conn]*app // of every connection that was let in
	owners    map[string]int
	listeners map[string]map[*app]bool // by topic
}

func (a *apps) connected() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byConn)
}

func newApps(cfg Config) *apps {
	return &apps{cfg: cfg, byName: map[string]*app{}, byConn: map[net.Conn]*app{}, owners: map[string]int{}, listeners: map[string]map[*app]bool{}}
}

// admit lets an app in, or says why not. One that comes again under the same
// client id takes the place of the first.
func (s *apps) admit(ctx context.Context, cl *mqtt.Client, pk packets.Packet) error {
	switch {
	case s.cfg.People == nil:
		return errNoPeople
	case string(pk.Connect.Username) != cl.ID:
		return errUsername
	case pk.Connect.WillFlag:
		return errWill
	}
	p, err := s.cfg.People.Login(ctx, cl.ID, string(pk.Connect.Password), host(cl.Net.Remote))
	if err != nil {
		return err
	}
	a := newApp(s, cl, p)
	old, err := s.add(a)
	if err != nil {
		return err
	}
	if old != nil {
		old.client.Stop(packets.ErrSessionTakenOver)
		s.left(old.client.Net.Conn)
	}
	// Sessions are not carried on: for the library each connection has an id of
	// its own, and is gone when it ends.
	cl.ID = fmt.Sprintf("%s/%d", a.name, a.serial)
	cl.Properties.Clean = true
	go a.run()
	return nil
}

// add puts an app into the books and gives the one whose place it takes.
func (s *apps) add(a *app) (old *app, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old = s.byName[a.name]
	if old == nil && len(s.byConn) >= appsAll || s.owners[a.person.Owner] >= appsEach && (old == nil || old.person.Owner != a.person.Owner) {
		return nil, errManyApps
	}
	s.serial++
	a.serial = s.serial
	s.byName[a.name], s.byConn[a.client.Net.Conn] = a, a
	s.owners[a.person.Owner]++
	return old, nil
}

// find is the app behind a connection, nil when it is none or has been taken
// over.
func (s *apps) find(cl *mqtt.Client) *app {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byConn[cl.Net.Conn]
}

// left forgets the app of a connection that has ended.
func (s *apps) left(c net.Conn) {
	s.mu.Lock()
	a := s.byConn[c]
	if a == nil {
		s.mu.Unlock()
		return
	}
	delete(s.byConn, c)
	if s.byName[a.name] == a {
		delete(s.byName, a.name)
	}
	if s.owners[a.person.Owner]--; s.owners[a.person.Owner] == 0 {
		delete(s.owners, a.person.Owner)
	}
	topics := a.listensTo()
	for _, topic := range topics {
		s.drop(topic, a)
	}
	s.mu.Unlock()
	close(a.done)
	for _, topic := range topics {
		s.cfg.People.Listening(a.person, topic, -1)
	}
}

// drop takes a listener off a topic; the books are held.
func (s *apps) drop(topic string, a *app) {
	delete(s.listeners[topic], a)
	if len(s.listeners[topic]) == 0 {
		delete(s.listeners, topic)
	}
}

// publish gives a message to all who listen to a topic.
func (s *apps) publish(topic string, m Message) {
	s.mu.Lock()
	all := make([]*app, 0, len(s.listeners[topic]))
	for a := range s.listeners[topic] {
		all = append(all, a)
	}
	s.mu.Unlock()
	for _, a := range all {
		a.push(waiting{topic: topic, Message: m})
	}
}

// subscribed begins what an app was granted.
func (s *apps) subscribed(a *app, pk packets.Packet, codes []byte) {
	for i, f := range pk.Filters {
		if codes[i] > packets.CodeGrantedQos2.Code {
			continue
		}
		// Publishers know of the listener before it receives what was kept.
		known := a.listensAt(f.Filter)
		if !known {
			s.cfg.People.Listening(a.person, f.Filter, 1)
		}
		if !s.begin(a, f.Filter, grant{min(codes[i], 1), f.Identifier}) && !known {
			s.cfg.People.Listening(a.person, f.Filter, -1)
		}
	}
}

// begin puts a listener into the books, unless its connection has ended: first in
// its queue is what was sent to the topic lately, then what is sent from here on.
func (s *apps) begin(a *app, topic string, g grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byConn[a.client.Net.Conn] != a {
		return false
	}
	if s.listeners[topic] == nil {
		s.listeners[topic] = map[*app]bool{}
	}
	s.listeners[topic][a] = true
	a.listens(topic, g)
	a.push(waiting{topic: topic, kept: true})
	return true
}

func (s *apps) unsubscribed(a *app, pk packets.Packet) {
	for _, f := range pk.Filters {
		s.mu.Lock()
		known := s.listeners[f.Filter][a]
		s.drop(f.Filter, a)
		a.ignores(f.Filter)
		s.mu.Unlock()
		if known {
			s.cfg.People.Listening(a.person, f.Filter, -1)
		}
	}
}

// may reports whether an app may subscribe to a topic. One that tries too many
// others is let go.
func (s *apps) may(a *app, topic string) bool {
	if slices.Contains(a.person.Topics, topic) {
		return true
	}
	n := a.refuse()
	if n <= appRefused+1 { // one packet may name thousands
		s.refused(a, topic, false)
	}
	if n > appRefused {
		a.client.Stop(packets.ErrNotAuthorized)
	}
	return false
}

// loggedName is how much of a name that a client chose is written down.
const loggedName = 256

// short is the beginning of a name, for the log.
func short(name string) string {
	if len(name) > loggedName {
		return strings.ToValidUTF8(name[:loggedName], "")
	}
	return name
}

func (s *apps) refused(a *app, topic string, write bool) {
	topic = short(topic)
	s.cfg.Log.Warn("topic refused", "client", a.name, "topic", topic, "write", write)
	s.cfg.Foreign(a.name, topic, write)
}

// recheck looks at all apps again, a few at a time, and ends the connections of
// those that may no more, a moment later.
func (s *apps) recheck(ctx context.Context) {
	s.mu.Lock()
	all := make([]*app, 0, len(s.byConn))
	for _, a := range s.byConn {
		all = append(all, a)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	turn := make(chan struct{}, rechecksAt1)
	for _, a := range all {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			a.recheck(ctx)
		})
	}
	wg.Wait()
}

// run rechecks until ctx ends.
func (s *apps) run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.recheck(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func isApp(client string) bool { return strings.HasPrefix(client, AppPrefix) }

// host is the address without its port; empty when it has none.
func host(remote string) string {
	h, _, err := net.SplitHostPort(remote)
	if err != nil {
		return ""
	}
	return h
}

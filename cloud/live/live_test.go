package live_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/mqttbroker"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/topic"
)

// devices is a device link without devices.
type devices struct{}

func (devices) Login(context.Context, string, string) (int64, error) { return 0, errors.New("none") }
func (devices) LoginCertificate(context.Context, string, time.Time) (int64, error) {
	return 0, errors.New("none")
}
func (devices) Receive(string, int64, topic.Leaf, []byte)   {}
func (devices) Disconnected(context.Context, string, int64) {}

// chats say who may hear what; order 7 is everybody's.
type chats struct {
	mu     sync.Mutex
	rights map[cloud.AccountID]live.ChatRight
	err    error
}

func (c *chats) Chat(_ context.Context, l live.Listener, o cloud.OrderID) (live.ChatRight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o != 7 || l.BusinessID != 1 || l.AccountID == 0 && l.Guest != "tracking page of 7" {
		return live.NoChat, c.err
	}
	if l.AccountID == 0 {
		return live.ChatAll, c.err
	}
	return c.rights[l.AccountID], c.err
}

func (c *chats) set(a cloud.AccountID, r live.ChatRight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rights[a] = r
}

// node is a store, a broker and a live channel.
type node struct {
	t      testing.TB
	db     *store.DB
	live   *live.Service
	broker *mqttbroker.Broker
	chats  *chats
	addr   string
	stop   func()
}

const (
	admin, driver, customer, other = 1, 2, 3, 4
)

func token(a cloud.AccountID) [32]byte { return [32]byte{byte(a)} }

// people are four accounts with a token each.
func people(t testing.TB, db *store.DB) {
	c := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}, {ID: 2, Code: "b"}}}}
	for id, kind := range map[cloud.AccountID]cloud.AccountType{admin: cloud.ClientAdmin, driver: cloud.DriverAccount, customer: cloud.Customer, other: cloud.ClientAdmin} {
		b := cloud.BusinessID(1)
		if id == other {
			b = 2
		}
		c.Accounts = append(c.Accounts, cloud.Account{ID: id, BusinessID: b, Type: kind, Enabled: true})
		c.Tokens = append(c.Tokens, cloud.Token{Hash: token(id), AccountID: id, CreatedAt: time.Now()})
	}
	write(t, db, c)
}

func write(t testing.TB, db *store.DB, c *cloud.Changes) {
	t.Helper()
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
}

func start(t testing.TB, db *store.DB) *node {
	t.Helper()
	n := &node{t: t, db: db, chats: &chats{rights: map[cloud.AccountID]live.ChatRight{admin: live.ChatStaff, driver: live.ChatStaff, customer: live.ChatAll}}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n.addr = ln.Addr().String()
	n.live = live.New(live.Config{Store: db, Sealer: storetest.Box(t), Rights: n.chats, Prefix: "tms", URL: "tcp://" + n.addr, Poll: 10 * time.Millisecond,
		FindToken: func(ctx context.Context, hash [32]byte) (auth.Session, error) {
			l, err := db.FindToken(ctx, hash)
			return auth.Session{Token: l.Token, Account: l.Account, State: l.State}, err
		}, SeesOrders: func(s auth.Session) bool { return len(s.Token.Scopes) == 0 }, SeesChats: func(s auth.Session) bool { return true }, SeesPushes: func(s auth.Session) bool { return len(s.Token.Scopes) == 0 }})
	n.broker, err = mqttbroker.New(mqttbroker.Config{Devices: devices{}, People: n.live, Recheck: 10 * time.Millisecond})
	require.NoError(t, err)
	n.live.SetTeller(n.broker)
	db.OnCommit(n.live.Committed)
	require.NoError(t, n.broker.Serve(ln, nil))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.live.Run(ctx) }()
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			require.NoError(t, n.broker.Close())
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(n.stop)
	return n
}

func (n *node) issue(a cloud.AccountID, orders ...cloud.OrderID) live.Credentials {
	n.t.Helper()
	b := cloud.BusinessID(1)
	if a == other {
		b = 2
	}
	c, err := n.live.Issue(n.t.Context(), live.Listener{BusinessID: b, AccountID: a, Token: token(a), Orders: orders})
	require.NoError(n.t, err)
	return c
}

// ear is an app that listens and keeps what it heard.
type ear struct {
	paho.Client
	mu    sync.Mutex
	heard []string // topic and body
}

func (n *node) connect(c live.Credentials) (*ear, error) {
	e := &ear{}
	o := paho.NewClientOptions().AddBroker("tcp://" + n.addr).SetClientID(c.ClientID).SetUsername(c.Username).SetPassword(c.Password).SetProtocolVersion(4).
		SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(5 * time.Second).
		SetKeepAlive(10 * time.Minute) // a busy machine answers no ping in time
	e.Client = paho.NewClient(o)
	tok := e.Connect()
	if <-tok.Done(); tok.Error() != nil {
		return nil, fmt.Errorf("connect: %w", tok.Error())
	}
	n.t.Cleanup(func() { e.Disconnect(0) })
	return e, nil
}

func (e *ear) listen(t testing.TB, topics ...string) {
	t.Helper()
	for _, name := range topics {
		tok := e.Subscribe(name, 1, func(_ paho.Client, m paho.Message) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.heard = append(e.heard, m.Topic()+" "+string(m.Payload()))
		})
		<-tok.Done()
		require.NoError(t, tok.Error())
	}
}

func (e *ear) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.heard...)
}

// count is how often an event was heard.
func (e *ear) count(part string) (n int) {
	for _, h := range e.all() {
		if strings.Contains(h, part) {
			n++
		}
	}
	return n
}

// open is an app of an account that listens to everything that it may.
func (n *node) open(a cloud.AccountID, orders ...cloud.OrderID) *ear {
	n.t.Helper()
	c := n.issue(a, orders...)
	e, err := n.connect(c)
	require.NoError(n.t, err)
	e.listen(n.t, c.Topics...)
	return e
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ring.Await(t, ok, what)
}

func event(id string, kind cloud.LiveKind, subject int64) cloud.LiveEvent {
	return cloud.LiveEvent{ID: id, Kind: kind, BusinessID: 1, Subject: subject, At: time.Now().UTC(), Body: []byte(`{"event_id":"` + id + `"}`)}
}

func said(id string) *cloud.Changes {
	return &cloud.Changes{LiveChanges: cloud.LiveChanges{Live: []cloud.LiveEvent{event(id, cloud.LiveChat, 7)}}}
}

func TestEachReceivesItsOwnEvents(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	require.Equal(t, []string{"tms/driver/2/push", "tms/order-chat/1/7", "tms/order-chat/1/7/staff"}, n.issue(driver, 7).Topics)
	require.Equal(t, []string{"tms/business/1/orders"}, n.issue(admin).Topics)
	require.Equal(t, []string{"tms/order-chat/1/7"}, n.issue(customer, 7, 7).Topics)
	all := map[string]*ear{"admin": n.open(admin, 7), "driver": n.open(driver, 7), "customer": n.open(customer, 7), "other": n.open(other)}
	at := time.Now().UTC().Truncate(time.Millisecond)
	p := cloud.Push{ID: cloud.NewPushID(at), BusinessID: 1, DriverID: driver, Type: "order_assigned", Title: "New order", At: at, Data: cloud.PushData{OrderID: 7}}
	op := cloud.OrderOperation{OrderID: 7, BusinessID: 1, Type: 1001, Before: cloud.OrderReady, After: cloud.OrderOutForDelivery, At: at}
	noted := op
	noted.Before = op.After
	write(t, db, &cloud.Changes{LiveChanges: cloud.LiveChanges{Live: []cloud.LiveEvent{event("och_all", cloud.LiveChat, 7), event("och_staff", cloud.LiveChatStaff, 7)}},
		PushChanges:  cloud.PushChanges{Pushes: []cloud.Push{p}},
		OrderChanges: cloud.OrderChanges{OrderOperations: []cloud.OrderOperation{op, noted}}})
	want := map[string][]string{"admin": {"och_all", "och_staff", "out_for_delivery"}, "driver": {"och_all", "och_staff", p.ID}, "customer": {"och_all"}, "other": {}}
	for name, parts := range want {
		eventually(t, name, func() bool { return len(all[name].all()) >= len(parts) })
		for _, part := range parts {
			require.Equal(t, 1, all[name].count(part), "%s: %v", name, all[name].all())
		}
		require.Len(t, all[name].all(), len(parts), name)
	}
	require.Contains(t, all["admin"].all(), fmt.Sprintf(`tms/business/1/orders {"order_id":7,"order_status_id":%d,"tracking_event_key":"out_for_delivery","at":"%s"}`, cloud.OrderOutForDelivery, at.Format(time.RFC3339)))
	eventually(t, "the driver has the push", func() bool {
		row, err := db.FindPush(t.Context(), p.ID)
		return err == nil && row.State == cloud.PushHeard
	})
}

func TestGuestsHearTheChatThatTheyCameFor(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	l := live.Listener{BusinessID: 1, Guest: "tracking page of 7", Orders: []cloud.OrderID{7}}
	c, err := n.live.Issue(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, []string{"tms/order-chat/1/7"}, c.Topics)
	e, err := n.connect(c)
	require.NoError(t, err)
	e.listen(t, c.Topics...)
	write(t, db, said("och_1"))
	eventually(t, "heard", func() bool { return e.count("och_1") == 1 })
	for _, bad := range []live.Listener{{BusinessID: 1, Guest: "x", Orders: []cloud.OrderID{7}}, {BusinessID: 1, Guest: l.Guest}, {BusinessID: 1}, {BusinessID: 1, AccountID: driver},
		{BusinessID: 2, AccountID: driver, Token: token(driver)}, {BusinessID: 1, AccountID: driver, Token: token(admin)}, {BusinessID: 1, AccountID: driver, Token: token(driver), Orders: []cloud.OrderID{8}},
		{BusinessID: 1, AccountID: customer, Token: token(customer)}} {
		_, err := n.live.Issue(t.Context(), bad)
		var refused *cloud.Error
		require.ErrorAs(t, err, &refused, "%+v", bad)
		require.Equal(t, cloud.Forbidden, refused.Kind)
	}
}

func TestCredentialsAreGoodForOneClientAndNothingElse(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	good, second := n.issue(driver, 7), n.issue(driver, 7)
	require.NotEqual(t, good.ClientID, second.ClientID, "a person has several connections")
	f := func(name string, change func(*live.Credentials)) {
		t.Helper()
		c := good
		change(&c)
		_, err := n.connect(c)
		require.Error(t, err, name)
	}
	for i := range good.Password {
		if i%17 == 0 || i == len(good.Password)-1 {
			f("tampered", func(c *live.Credentials) {
				b := []byte(c.Password)
				b[i] ^= 1
				c.Password = string(b)
			})
		}
	}
	f("another's client id", func(c *live.Credentials) { c.ClientID, c.Username = second.ClientID, second.Username })
	f("another's password", func(c *live.Credentials) { c.Password = second.Password })
	f("an empty password", func(c *live.Credentials) { c.Password = "" })
	f("a cut password", func(c *live.Credentials) { c.Password = c.Password[:20] })
	e, err := n.connect(good)
	require.NoError(t, err)
	for _, name := range []string{"tms/driver/1/push", "tms/order-chat/1/8", "tms/order-chat/2/7", "tms/order-chat/1/+", "tms/order-chat/1/#", "tms/#", "#", "tms/business/1/orders", "tms/device/CAB-1/down"} {
		tok := e.Subscribe(name, 1, nil)
		<-tok.Done()
		require.EqualValues(t, 0x80, tok.(*paho.SubscribeToken).Result()[name], name)
	}
	var claim map[string]any
	require.Error(t, json.Unmarshal([]byte(good.Password), &claim))
	require.NotContains(t, good.Password, "driver")
}

// until are the same credentials with another end.
func (n *node) until(c live.Credentials, end time.Time) live.Credentials {
	n.t.Helper()
	box := storetest.Box(n.t)
	sealed, err := base64.RawURLEncoding.DecodeString(c.Password)
	require.NoError(n.t, err)
	plain, err := box.Open("live channel/"+c.ClientID, sealed)
	require.NoError(n.t, err)
	var claim map[string]any
	require.NoError(n.t, json.Unmarshal(plain, &claim))
	claim["e"] = end.Unix()
	plain, err = json.Marshal(claim)
	require.NoError(n.t, err)
	c.Password = base64.RawURLEncoding.EncodeToString(box.Seal("live channel/"+c.ClientID, plain))
	return c
}

// A key receives no more than it may see: without orders there is no dashboard.
func TestAKeyWithoutOrdersHasNoDashboard(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	key := token(9)
	write(t, db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: key, AccountID: admin, Scopes: []string{"chat:read"}, CreatedAt: time.Now()}}}})
	c, err := n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: admin, Token: key, Orders: []cloud.OrderID{7}})
	require.NoError(t, err)
	require.Equal(t, []string{"tms/order-chat/1/7", "tms/order-chat/1/7/staff"}, c.Topics)
	e, err := n.connect(c)
	require.NoError(t, err)
	tok := e.Subscribe("tms/business/1/orders", 1, nil).(*paho.SubscribeToken)
	<-tok.Done()
	require.EqualValues(t, 0x80, tok.Result()["tms/business/1/orders"])
	_, err = n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: admin, Token: key})
	require.ErrorContains(t, err, "FORBIDDEN", "there is nothing to hear")
	_, err = n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: admin, Token: token(admin), Orders: slices.Repeat([]cloud.OrderID{7}, live.MaxOrders+1)})
	require.NoError(t, err, "the same order many times is one")
}

// A key that is not good on the live channel receives nothing there.
func TestAKeyOfOtherSurfacesHasNoTopics(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	elsewhere, here := token(9), token(10)
	write(t, db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: elsewhere, AccountID: admin, Policy: cloud.KeyPolicy{Surfaces: []string{"api", "mcp"}}, CreatedAt: time.Now()},
		{Hash: here, AccountID: admin, Policy: cloud.KeyPolicy{Surfaces: []string{"live"}}, CreatedAt: time.Now()}}}})
	_, err := n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: admin, Token: elsewhere})
	require.Error(t, err)
	_, err = n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: admin, Token: here})
	require.NoError(t, err)
}

// Nor does a driver's app hear pushes that may not read what the driver is pushed.
func TestAKeyWithoutRoutesHasNoPushes(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	key := token(9)
	write(t, db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: key, AccountID: driver, Scopes: []string{"chat:read"}, CreatedAt: time.Now()}}}})
	c, err := n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: driver, Token: key, Orders: []cloud.OrderID{7}})
	require.NoError(t, err)
	require.Equal(t, []string{"tms/order-chat/1/7", "tms/order-chat/1/7/staff"}, c.Topics)
	_, err = n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: driver, Token: key})
	require.ErrorContains(t, err, "FORBIDDEN", "there is nothing to hear")
	c, err = n.live.Issue(t.Context(), live.Listener{BusinessID: 1, AccountID: driver, Token: token(driver)})
	require.NoError(t, err)
	require.Len(t, c.Topics, 1)
}

func TestCredentialsExpire(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	c := n.issue(driver, 7)
	ends, err := time.Parse(time.RFC3339, c.ExpiresAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), ends, time.Minute)
	_, err = n.connect(n.until(c, time.Now().Add(-time.Second)))
	require.Error(t, err)
	e, err := n.connect(n.until(c, time.Now().Add(2*time.Second)))
	require.NoError(t, err)
	eventually(t, "the connection ends with the credentials", func() bool { return !e.IsConnectionOpen() })
}

// Nothing that a client says as its password does harm.
func FuzzLogin(f *testing.F) {
	db := storetest.OpenSQLite(f)
	people(f, db)
	s := live.New(live.Config{Store: db, Sealer: storetest.Box(f), Prefix: "tms", FindToken: func(context.Context, [32]byte) (auth.Session, error) { return auth.Session{}, cloud.ErrNotFound }})
	f.Add("app-1-x", "AQ", []byte(`{"b":1,"e":99999999999}`))
	f.Add("app-guest-x", "", []byte(`{"g":"x","o":[7],"e":99999999999}`))
	f.Add("", "%", []byte(`[`))
	f.Fuzz(func(t *testing.T, client, password string, claim []byte) {
		_, err := s.Login(context.Background(), client, password, "192.0.2.1")
		require.Error(t, err, "it is not sealed")
		_, _ = s.Login(context.Background(), client, base64.RawURLEncoding.EncodeToString(storetest.Box(t).Seal("live channel/"+client, claim)), "192.0.2.1")
	})
}

func TestRightsThatEndEndTheConnection(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(n *node){
		"the token is revoked": func(n *node) {
			write(n.t, n.db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: token(driver), AccountID: driver, RevokedAt: time.Now()}}}})
		},
		"the token is over": func(n *node) {
			write(n.t, n.db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: token(driver), AccountID: driver, ExpiresAt: time.Now()}}}})
		},
		"the token is for other addresses": func(n *node) {
			write(n.t, n.db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: token(driver), AccountID: driver, CreatedAt: time.Now(), IPAllowlist: []string{"203.0.113.0/24"}}}}})
		},
		"the account is switched off": func(n *node) {
			write(n.t, n.db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: driver, BusinessID: 1, Type: cloud.DriverAccount}}}})
		},
		"the account is something else": func(n *node) {
			write(n.t, n.db, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: driver, BusinessID: 1, Type: cloud.Customer, Enabled: true}}}})
		},
		"the business is suspended": func(n *node) {
			write(n.t, n.db, &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1, SuspendedAt: time.Now(), Reason: "Unpaid"}}}})
		},
		"no part in the chat":     func(n *node) { n.chats.set(driver, live.NoChat) },
		"a smaller part":          func(n *node) { n.chats.set(driver, live.ChatAll) },
		"nobody knows any longer": func(n *node) { n.chats.mu.Lock(); n.chats.err = errors.New("away"); n.chats.mu.Unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.OpenSQLite(t)
			people(t, db)
			n := start(t, db)
			c := n.issue(driver, 7)
			e, err := n.connect(c)
			require.NoError(t, err)
			stays := n.open(customer, 7)
			end(n)
			eventually(t, "disconnected", func() bool { return !e.IsConnectionOpen() })
			if name == "the account is something else" {
				return // the chat is its own still
			}
			if name == "a smaller part" {
				require.Equal(t, []string{"tms/driver/2/push", "tms/order-chat/1/7"}, n.issue(driver, 7).Topics)
				return
			}
			_, err = n.connect(c)
			require.Error(t, err, "and not let in again")
			if name != "nobody knows any longer" && name != "the business is suspended" {
				require.True(t, stays.IsConnectionOpen())
			}
		})
	}
}

// A node that dies between the commit and the word of it leaves the row: a listener that
// comes back, here to a broker that knows nothing of before, receives it.
func TestWhatADeadNodeCommittedIsHeardFromTheNext(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	first := start(t, db)
	c := first.issue(driver, 7)
	e, err := first.connect(c)
	require.NoError(t, err)
	e.listen(t, c.Topics...)
	write(t, db, said("och_1"))
	eventually(t, "heard", func() bool { return e.count("och_1") == 1 })
	first.stop()
	write(t, db, said("och_2"))
	passing := said("och_typing")
	passing.Live[0].Passing = true
	write(t, db, passing)
	second := start(t, db)
	again, err := second.connect(c)
	require.NoError(t, err, "credentials do not hang on a node")
	again.listen(t, c.Topics...)
	write(t, db, said("och_3"))
	eventually(t, "heard", func() bool { return again.count("och_3") > 0 })
	heard := again.all()
	require.Len(t, heard, 3)
	for i, id := range []string{"och_1", "och_2", "och_3"} {
		require.Contains(t, heard[i], id, "in order")
	}
	require.Zero(t, again.count("och_typing"), "what passes is told to those who were there")
}

// More than the queue holds, at once: the poll finds the rest.
func TestNothingIsLostWhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	e := n.open(customer, 7)
	write(t, db, said("och_first"))
	eventually(t, "it listens", func() bool { return e.count("och_first") > 0 })
	c, want := &cloud.Changes{}, []string{}
	for i := range 5000 {
		subject := int64(8) // of no listener here
		if i%40 == 0 {
			subject = 7
		}
		c.Live = append(c.Live, event(fmt.Sprintf("och_%04d", i), cloud.LiveChat, subject))
		if subject == 7 {
			want = append(want, fmt.Sprintf("och_%04d", i))
		}
	}
	write(t, db, c)
	eventually(t, "everything", func() bool { return len(e.all()) >= len(want) && e.count(want[len(want)-1]) > 0 })
	for _, id := range want {
		require.NotZero(t, e.count(id), id)
	}
}

// Two nodes on one database hear what the other commits, also what is committed
// behind what was read already.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	open := func(name string) *store.DB {
		return storetest.Open(t, store.Config{URL: url, Instance: name, Box: storetest.Box(t)})
	}
	here, there := open("here"), open("there")
	people(t, here)
	a, b := start(t, here), start(t, there)
	ears := []*ear{a.open(admin, 7), b.open(admin, 7)}
	const each = 60
	var all sync.WaitGroup
	at := time.Now().UTC().Truncate(time.Millisecond)
	for k, db := range []*store.DB{here, there} {
		for i := range each {
			all.Go(func() {
				c := said(fmt.Sprintf("och_%d_%02d_", k, i))
				c.Live[0].At = c.Live[0].At.Add(-time.Duration(i%7) * time.Second) // as if it took long to commit
				c.OrderOperations = []cloud.OrderOperation{{OrderID: cloud.OrderID(1000 + k*each + i), BusinessID: 1, Before: cloud.OrderReady, After: cloud.OrderCancelled, At: at}}
				_ = db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) {
					time.Sleep(time.Duration(i%5) * 10 * time.Millisecond)
					return c, nil
				})
			})
		}
	}
	all.Wait()
	for _, e := range ears {
		eventually(t, "everything", func() bool {
			distinct := map[string]bool{}
			for _, h := range e.all() {
				distinct[h] = true
			}
			return len(distinct) >= 4*each
		})
		for k := range 2 {
			for i := range each {
				require.Equal(t, 1, e.count(fmt.Sprintf("och_%d_%02d_", k, i)))
				require.Equal(t, 1, e.count(fmt.Sprintf(`"order_id":%d,`, 1000+k*each+i)))
			}
		}
	}
}

func TestMosquittoReceivesWithIssuedCredentials(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("mosquitto_sub")
	ring.Needs(t, ring.EnvTools, "mosquitto_sub", err == nil)
	db := storetest.OpenSQLite(t)
	people(t, db)
	n := start(t, db)
	host, port, err := net.SplitHostPort(n.addr)
	require.NoError(t, err)
	for _, version := range []string{"mqttv311", "mqttv5"} {
		c := n.issue(driver, 7)
		write(t, db, said("och_"+version))
		out, err := exec.CommandContext(t.Context(), path, "-h", host, "-p", port, "-V", version, "-i", c.ClientID, "-u", c.Username, "-P", c.Password, "-q", "1", "-t", c.Topics[1], "-C", "1", "-W", "10").CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "och_mqttv311")
	}
}

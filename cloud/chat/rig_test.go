package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// Accounts of the rig. The recipient has none.
const (
	recipient  cloud.AccountID = 0
	admin      cloud.AccountID = 1
	employee   cloud.AccountID = 2
	contractor cloud.AccountID = 3
	driver     cloud.AccountID = 4
	second     cloud.AccountID = 5 // a driver
	customer   cloud.AccountID = 6
	stranger   cloud.AccountID = 7 // a customer whose order it is not
	foreign    cloud.AccountID = 8 // an administrator of another business

	theOrder cloud.OrderID = 70
)

var started = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC) // Friday, 10:00 in Toronto

// rig is a business with an order, over one or two nodes of one database.
type rig struct {
	t     *testing.T
	db    *store.DB
	nodes []*Service
	files *object.Files

	mu     sync.Mutex
	now    time.Time
	live   []cloud.LiveEvent
	pushes []cloud.Push
}

// bothDatabases runs a test on each, with two nodes on PostgreSQL.
func bothDatabases(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, newRig(t, storetest.OpenSQLite(t)))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := storetest.SecondPostgresURL(t)
		open := func(node string) *store.DB {
			return storetest.Open(t, store.Config{URL: url, Instance: node, Box: storetest.Box(t)})
		}
		test(t, newRig(t, open("a"), open("b")))
	})
}

func newRig(t *testing.T, nodes ...*store.DB) *rig {
	files, err := object.Open(t.TempDir(), bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	r := &rig{t: t, db: nodes[0], files: files, now: started}
	if len(nodes) == 1 {
		nodes = append(nodes, nodes[0])
	}
	for i, db := range nodes {
		s := New(Config{Store: db, Files: files, SignFile: files.Address, Key: bytes.Repeat([]byte{2}, 32), PerMinute: -1})
		s.now = r.clock
		r.nodes = append(r.nodes, s)
		if i == 0 || db != nodes[0] {
			db.OnCommit(func(ch *cloud.Changes) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.live, r.pushes = append(r.live, ch.Live...), append(r.pushes, ch.Pushes...)
			})
		}
	}
	r.fill()
	return r
}

func (r *rig) fill() {
	on := cloud.Settings{Features: []cloud.Feature{{Family: Feature, Enabled: true}}, Chat: cloud.ChatSettings{Recipient: true}}
	ch := cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme", Timezone: "America/Toronto", Settings: on}, {ID: 43, Code: "other", Name: "Other", Settings: on}}}}
	for id, typ := range map[cloud.AccountID]cloud.AccountType{admin: cloud.ClientAdmin, employee: cloud.ClientEmployee, contractor: cloud.Broker, driver: cloud.DriverAccount, second: cloud.DriverAccount,
		customer: cloud.Customer, stranger: cloud.Customer, foreign: cloud.ClientAdmin} {
		a := cloud.Account{ID: id, BusinessID: 42, Type: typ, Email: fmt.Sprintf("%d@acme.example", id), Name: fmt.Sprint("Person ", id), Enabled: true, CreatedAt: started}
		if id == foreign {
			a.BusinessID = 43
		}
		ch.Accounts = append(ch.Accounts, a)
	}
	o := cloud.Order{ID: theOrder, BusinessID: 42, CustomerID: customer, Number: "SR000000070", Ref: "SO-70", Type: cloud.DeliveryOrder, Status: cloud.OrderOutForDelivery, StatusAt: started,
		Recipient: &cloud.Address{Name: "Ada Moreau"}, DriverID: driver, DriverName: "Person 4", BrokerID: contractor, AssignmentID: 9, CreatedAt: started, UpdatedAt: started}
	other := cloud.Order{ID: 71, BusinessID: 42, Number: "SR000000071", Type: cloud.DeliveryOrder, Status: cloud.OrderNew, StatusAt: started, CreatedAt: started, UpdatedAt: started}
	ch.Orders = []cloud.Order{o, other}
	ch.Assignments = []cloud.Assignment{{ID: 9, BusinessID: 42, OrderID: theOrder, BrokerID: contractor, Status: cloud.AssignmentActive}}
	r.write(&ch)
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) write(ch *cloud.Changes) {
	r.t.Helper()
	require.NoError(r.t, r.db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
}

// order changes the order.
func (r *rig) order(fn func(o *cloud.Order)) {
	r.t.Helper()
	require.NoError(r.t, r.db.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Order(42, theOrder)
		fn(&o)
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}}, err
	}))
}

// settings changes those of the chat.
func (r *rig) settings(fn func(s *cloud.ChatSettings)) {
	r.t.Helper()
	require.NoError(r.t, r.db.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(42)
		fn(&b.Settings.Chat)
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
}

// caller is the caller with an account's id.
func (r *rig) caller(id cloud.AccountID) cloud.Caller {
	if id == recipient {
		return cloud.Caller{Account: cloud.Account{BusinessID: 42}, Recipient: theOrder, BaseURL: "https://cloud.test"}
	}
	c := cloud.Caller{BaseURL: "https://cloud.test"}
	require.NoError(r.t, r.db.Look(context.Background(), func(v cloud.View) (err error) { c.Account, err = v.Account(id); return err }))
	return c
}

func (r *rig) send(who cloud.AccountID, in SendInput) (Message, error) {
	in.OrderID = theOrder
	out, err := r.nodes[0].Send(r.t.Context(), r.caller(who), in)
	return out.Message, err
}

// says sends a text that must be taken.
func (r *rig) says(who cloud.AccountID, text string, audience ...string) Message {
	r.t.Helper()
	in := SendInput{Text: text}
	if len(audience) > 0 {
		in.Audience = audience[0]
	}
	m, err := r.send(who, in)
	require.NoError(r.t, err)
	return m
}

func (r *rig) messages(who cloud.AccountID) []Message {
	r.t.Helper()
	out, err := r.nodes[0].Messages(r.t.Context(), r.caller(who), MessagesInput{OrderID: theOrder, Limit: 100})
	require.NoError(r.t, err)
	return out.Messages
}

func (r *rig) reads(who cloud.AccountID, upTo cloud.ChatMessageID) int {
	r.t.Helper()
	out, err := r.nodes[0].MarkRead(r.t.Context(), r.caller(who), MarkInput{OrderID: theOrder, UpTo: upTo})
	require.NoError(r.t, err)
	return out.Unread
}

func (r *rig) talk(who cloud.AccountID) *Conversation {
	r.t.Helper()
	out, err := r.nodes[0].Find(r.t.Context(), r.caller(who), OrderInput{theOrder})
	require.NoError(r.t, err)
	return out.Conversation
}

func (r *rig) refused(err error, code string) {
	r.t.Helper()
	var e *cloud.Error
	require.True(r.t, errors.As(err, &e), "%v", err)
	require.Equal(r.t, code, e.Code, "%v", e.Fields)
}

// The live events so far, which are forgotten then.
func (r *rig) told() (list []told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.live {
		x := told{Kind: e.Kind, Passing: e.Passing}
		require.NoError(r.t, json.Unmarshal(e.Body, &x))
		require.Equal(r.t, e.ID, x.ID)
		require.Equal(r.t, int64(theOrder), e.Subject)
		list = append(list, x)
	}
	r.live = nil
	return list
}

type told struct {
	Kind    cloud.LiveKind `json:"-"`
	Passing bool           `json:"-"`
	ID      string         `json:"event_id"`
	Type    string         `json:"type"`
	Data    struct {
		Message     Message             `json:"message"`
		Reader      Party               `json:"reader"`
		UpTo        cloud.ChatMessageID `json:"last_message_id"`
		Participant Participant         `json:"participant"`
		Change      string              `json:"change"`
		Typing      bool                `json:"typing"`
		By          *Party              `json:"by"`
	} `json:"data"`
}

func types(list []told) (out []string) {
	for _, e := range list {
		out = append(out, string(e.Kind)+" "+e.Type)
	}
	return out
}

func ids(list []Message) (out []cloud.ChatMessageID) {
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}

func drawing(t *testing.T) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))))
	return b.Bytes()
}

func (r *rig) upload(who cloud.AccountID, file []byte) (Attachment, error) {
	out, err := r.nodes[0].Attach(r.t.Context(), r.caller(who), AttachInput{OrderID: theOrder, File: file, Name: "door"})
	return out.Attachment, err
}

// kept is what is kept under a signed address.
func (r *rig) kept(address string) []byte {
	r.t.Helper()
	path, _, _ := strings.Cut(address, "?")
	f, err := r.files.Get(r.t.Context(), path[strings.Index(path, "/chat/")+1:])
	require.NoError(r.t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(r.t, err)
	return b
}

var everybody = []cloud.AccountID{admin, employee, contractor, driver, customer, recipient}

func staffed(who cloud.AccountID) bool {
	return !slices.Contains([]cloud.AccountID{customer, recipient}, who)
}

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// said is a message as far as every participant sees the same of it.
type said struct {
	Sender, Audience, Text string
	Edited, Deleted        string
}

// mirror is what an app knows of a conversation.
type mirror struct {
	Messages map[int64]said
	Read     map[string]int64 // how far who has read
	Status   string
}

func newMirror() mirror { return mirror{map[int64]said{}, map[string]int64{}, "open"} }

// shownMessage and shownTalk are the parts of answers and events that a mirror
// is made of.
type shownMessage struct {
	ID        int64 `json:"message_id"`
	Sender    struct{ Type string }
	Audience  string
	Text      *string
	EditedAt  string `json:"edited_at"`
	DeletedAt string `json:"deleted_at"`
}

type shownEvent struct {
	ID   string `json:"event_id"`
	Type string
	Data struct {
		Message shownMessage
		Reader  struct{ ID int64 }
		UpTo    int64 `json:"last_message_id"`
		Status  string
	}
}

func (m mirror) message(x shownMessage) {
	s := said{Sender: x.Sender.Type, Audience: x.Audience, Edited: x.EditedAt, Deleted: x.DeletedAt}
	if x.Text != nil {
		s.Text = *x.Text
	}
	m.Messages[x.ID] = s
}

func (m *mirror) apply(e shownEvent) {
	switch e.Type {
	case "message.created", "message.updated", "message.deleted":
		m.message(e.Data.Message)
	case "message.read":
		who := fmt.Sprint(e.Data.Reader.ID)
		m.Read[who] = max(m.Read[who], e.Data.UpTo)
	case "conversation.closed", "conversation.reopened":
		m.Status = e.Data.Status
	}
}

// fetch reads the conversation by REST.
func (w *talkWorld) fetch(ctx context.Context, role string) (m mirror, err error) {
	m = newMirror()
	ask := func(path string, out any) error {
		req, err := http.NewRequestWithContext(ctx, "GET", w.base+w.of(path), nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+w.tokens[role])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, resp.Status)
		}
		return json.NewDecoder(resp.Body).Decode(out)
	}
	var talk struct {
		Conversation *struct {
			Status       string
			Participants []struct {
				ID   int64
				Read int64 `json:"last_read_message_id"`
			}
		}
	}
	if err := ask("", &talk); err != nil || talk.Conversation == nil {
		return m, err
	}
	m.Status = talk.Conversation.Status
	for _, p := range talk.Conversation.Participants {
		if p.Read > 0 {
			m.Read[fmt.Sprint(p.ID)] = p.Read
		}
	}
	for after, more := int64(0), true; more; {
		var page struct {
			Messages []shownMessage
			More     bool `json:"has_more"`
		}
		if err := ask(fmt.Sprintf("/messages?limit=100&after_id=%d", after), &page); err != nil {
			return m, err
		}
		for _, x := range page.Messages {
			m.message(x)
			after = x.ID
		}
		more = page.More
	}
	return m, nil
}

// follower is an app that follows a conversation as an app has to: it subscribes,
// reads what there is, and goes on from there with what it receives, each event
// once and in the order in which it comes; when its connection ends it does the
// same again.
type follower struct {
	w    *talkWorld
	pass pass

	mu    sync.Mutex
	conn  net.Conn // nil: it is away
	held  []shownEvent
	ready bool            // it has read what there is; before that, events are held
	seen  map[string]bool // events
	now   mirror
	cuts  int
}

// follow runs until ctx ends.
func (f *follower) follow(ctx context.Context, errs chan<- error) {
	for ctx.Err() == nil {
		if err := f.once(ctx); err != nil && ctx.Err() == nil {
			errs <- fmt.Errorf("%s: %w", f.pass.role, err)
			return
		}
	}
}

// once is one connection. One that was cut is no error.
func (f *follower) once(ctx context.Context) error {
	lost := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(lost) }) }
	f.mu.Lock()
	f.ready, f.held = false, nil
	f.mu.Unlock()
	c := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + f.w.addr[overTCP]).SetClientID(f.pass.ClientID).SetUsername(f.pass.Username).SetPassword(f.pass.Password).
		SetProtocolVersion(4).SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(5 * time.Second).SetConnectionLostHandler(func(paho.Client, error) { end() }).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
			conn, err := net.Dial("tcp", f.w.addr[overTCP])
			f.mu.Lock()
			defer f.mu.Unlock()
			f.conn = conn
			return torn{conn}, err
		}))
	defer func() {
		c.Disconnect(0)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.conn = nil
	}()
	// The library forgets some tokens of a connection that is cut.
	answered := func(tok paho.Token) bool {
		select {
		case <-tok.Done():
			return tok.Error() == nil
		case <-lost:
		case <-ctx.Done():
		}
		return false
	}
	if tok := c.Connect(); !answered(tok) {
		return f.unlessCut(tok.Error())
	}
	for _, topic := range f.pass.Topics {
		tok := c.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) {
			var e shownEvent
			if json.Unmarshal(m.Payload(), &e) == nil {
				f.hear(e)
			}
		})
		if !answered(tok) {
			return f.unlessCut(tok.Error())
		}
		if got := tok.(*paho.SubscribeToken).Result()[topic]; got != 1 {
			return f.unlessCut(fmt.Errorf("subscribe to %s: %d", topic, got))
		}
	}
	m, err := f.w.fetch(ctx, f.pass.role)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.now, f.ready = m, true
	for _, e := range f.held {
		f.take(e)
	}
	f.held = nil
	f.mu.Unlock()
	select {
	case <-lost:
	case <-ctx.Done():
	}
	return nil
}

// unlessCut is an error that is not for want of a connection.
func (f *follower) unlessCut(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn == nil {
		return nil
	}
	if _, write := f.conn.Write(nil); errors.Is(write, net.ErrClosed) {
		return nil
	}
	return err
}

func (f *follower) hear(e shownEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		f.held = append(f.held, e)
		return
	}
	f.take(e)
}

// take applies an event that is new; the lock is held.
func (f *follower) take(e shownEvent) {
	if !f.seen[e.ID] {
		f.seen[e.ID] = true
		f.now.apply(e)
	}
}

// torn is a connection that is cut from outside. The library takes one that was
// closed here for one that it closed itself.
type torn struct{ net.Conn }

func (c torn) Read(p []byte) (int, error)  { n, err := c.Conn.Read(p); return n, lostIf(err) }
func (c torn) Write(p []byte) (int, error) { n, err := c.Conn.Write(p); return n, lostIf(err) }

func lostIf(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// cut ends the connection under the library.
func (f *follower) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		_ = f.conn.Close()
		f.cuts++
	}
}

func (f *follower) state() (m mirror, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return mirror{maps.Clone(f.now.Messages), maps.Clone(f.now.Read), f.now.Status}, f.ready
}

// People send, edit, delete, read, close and reopen at once while connections
// are cut: what each app knows at the end, from what it received and what it read
// when it came back, is what the conversation is.
func TestAppsKnowTheConversationWhateverIsCut(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls and packets")
	bothTalks(t, follows)
}

func follows(t *testing.T, w *talkWorld) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	roles := []string{"admin", "staff", "contractor", "driver", "customer"}
	w.says("admin", "Hello", "all")
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 20)
	var apps, people sync.WaitGroup
	var all []*follower
	for _, role := range append(slices.Clone(roles), "driver", "customer") {
		f := &follower{w: w, pass: w.pass(role), seen: map[string]bool{}, now: newMirror()}
		all = append(all, f)
		apps.Go(func() { f.follow(ctx, errs) })
	}
	defer apps.Wait()
	defer cancel()
	for i, role := range roles {
		people.Go(func() { w.talks(role, rand.New(rand.NewPCG(seed, uint64(i))), errs) })
	}
	talking := make(chan struct{})
	go func() { people.Wait(); close(talking) }()
	r := rand.New(rand.NewPCG(seed, 100))
	for wait := time.NewTicker(15 * time.Millisecond); ; {
		select {
		case <-wait.C:
			all[r.IntN(len(all))].cut()
			continue
		case err := <-errs:
			require.NoError(t, err)
		case <-talking:
		}
		wait.Stop()
		break
	}
	cuts := 0
	for _, f := range all {
		cuts += f.cuts
		want, err := w.fetch(ctx, f.pass.role)
		require.NoError(t, err)
		require.NotEmpty(t, want.Messages)
		if f.pass.role == "admin" { // who sees all that was not deleted
			require.Greater(t, len(want.Messages), 5)
		}
		ring.Await(t, func() bool {
			m, ready := f.state()
			return ready && reflect.DeepEqual(want, m)
		}, f.pass.role)
		hidden := slices.ContainsFunc(slices.Collect(maps.Values(want.Messages)), func(s said) bool { return s.Audience == "staff_driver" })
		require.Equal(t, f.pass.role != "customer", hidden)
	}
	require.Greater(t, cuts, 10)
	select {
	case err := <-errs:
		require.NoError(t, err)
	default:
	}
}

// talks does what a person does, at random, within the limit of messages.
func (w *talkWorld) talks(role string, r *rand.Rand, errs chan<- error) {
	var mine []int64
	newest := int64(0)
	staff := role != "customer"
	do := func(method, path string, body map[string]any, allowed ...int) map[string]any {
		raw, err := json.Marshal(body)
		var req *http.Request
		if err == nil {
			req, err = http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(string(raw)))
		}
		var resp *http.Response
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+w.tokens[role])
			req.Header.Set("Content-Type", "application/json")
			resp, err = http.DefaultClient.Do(req)
		}
		if err != nil {
			errs <- err
			return nil
		}
		defer resp.Body.Close()
		var out map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&out) // some answers have no body
		if resp.StatusCode > 299 && !slices.Contains(allowed, resp.StatusCode) {
			errs <- fmt.Errorf("%s: %s %s: %d %v", role, method, path, resp.StatusCode, out)
		}
		return out
	}
	for n := 0; n < 18; {
		switch x := r.IntN(20); {
		case x < 7:
			audience := "all"
			if staff && r.IntN(3) == 0 {
				audience = "staff_driver"
			}
			n++
			out := do("POST", w.of("/messages"), map[string]any{"text": fmt.Sprintf("%s %d", role, n), "audience": audience}, http.StatusConflict)
			if m, ok := out["message"].(map[string]any); ok {
				newest = int64(m["message_id"].(float64))
				mine = append(mine, newest)
			}
		case x < 12 && len(mine) > 0:
			do("PATCH", fmt.Sprintf("/api/v1/order-chat/messages/%d", mine[r.IntN(len(mine))]), map[string]any{"text": fmt.Sprint("edited ", r.IntN(1000))}, http.StatusConflict)
		case x < 13 && len(mine) > 0:
			do("DELETE", fmt.Sprintf("/api/v1/order-chat/messages/%d", mine[r.IntN(len(mine))]), map[string]any{}, http.StatusConflict)
		case x < 17 && newest > 0:
			do("POST", w.of("/read"), map[string]any{"last_message_id": newest})
		case x == 17 && role == "staff":
			do("POST", w.of("/close"), map[string]any{})
		case x >= 17 && role == "admin":
			do("POST", w.of("/reopen"), map[string]any{})
		case x >= 18:
			do("POST", w.of("/typing"), map[string]any{"typing": true}, http.StatusConflict)
		}
		time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond)
	}
}

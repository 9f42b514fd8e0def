package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	platform "github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
)

// wire passes connections on, until it is cut.
type wire struct {
	ln net.Listener
	to string

	mu    sync.Mutex
	isCut bool
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{ln: ln, to: to}
	t.Cleanup(func() { _ = ln.Close(); w.cut(true) })
	go func() {
		for {
			here, err := ln.Accept()
			if err != nil {
				return
			}
			w.pass(here)
		}
	}()
	return w
}

func (w *wire) pass(here net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	there, err := net.Dial("tcp", w.to)
	if err != nil || w.isCut {
		_ = here.Close()
		if err == nil {
			_ = there.Close()
		}
		return
	}
	w.conns = append(w.conns, here, there)
	for _, x := range [][2]net.Conn{{here, there}, {there, here}} {
		go func() {
			_, _ = io.Copy(x[0], x[1])
			_, _ = x[0].Close(), x[1].Close()
		}()
	}
}

func (w *wire) cut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = cut
	if cut {
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.conns = nil
	}
}

// logged keeps what is logged. Safe for concurrent use.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *logged) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// Staff in the console and the recipient at the tracking page talk, in two real
// browsers and over the real broker: at once, and by asking while the wire to the
// broker is cut. What could not be sent stays and arrives once. What a participant
// writes is text. Axe objects to nothing, and everything works without script.
func TestChatInARealBrowser(t *testing.T) {
	ring.SkipUnlessFull(t, "its pages are tested without a browser, others in one")
	var log logged
	var ln [2]net.Listener
	for i := range ln {
		var err error
		ln[i], err = net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
	}
	base := "http://" + ln[0].Addr().String()
	cable := newWire(t, ln[1].Addr().String())
	s, err := platform.New(t.Context(), platform.Config{Dir: t.TempDir(), Node: "one", BaseURL: base, AppWebSocketURL: "ws://" + cable.ln.Addr().String() + "/mqtt", Limits: catalog.Limits{Authenticated: -1, Anonymous: -1},
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	box, err := s.Sandbox(t.Context(), platform.SandboxConfig{BaseURL: base, Passwords: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, platform.Listeners{HTTP: ln[0], WebSocket: ln[1]}) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	admin, err := s.Store.FindToken(t.Context(), auth.Hash(box.Admin.Token))
	require.NoError(t, err)
	hasty := chat.New(chat.Config{Store: s.Store, PerMinute: -1}) // says more in a minute than people may
	mux := http.NewServeMux()
	mux.HandleFunc("/cut", func(http.ResponseWriter, *http.Request) { cable.cut(true) })
	mux.HandleFunc("/mend", func(http.ResponseWriter, *http.Request) { cable.cut(false) })
	mux.HandleFunc("/talk/{order}", func(w http.ResponseWriter, q *http.Request) {
		order, _ := strconv.ParseInt(q.PathValue("order"), 10, 64)
		for i := range 55 {
			line := fmt.Sprint("Line ", i)
			if i%9 == 0 {
				line = strings.Repeat("Averylongword", 20)
			}
			if _, err := hasty.Send(q.Context(), cloud.Caller{Account: admin.Account}, chat.SendInput{OrderID: cloud.OrderID(order), Text: line}); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	})
	mux.HandleFunc("/forget", func(w http.ResponseWriter, q *http.Request) {
		if err := s.Store.DropLive(q.Context(), time.Now().Add(time.Second)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	control := httptest.NewServer(mux)
	defer control.Close()
	people, err := json.Marshal(box)
	require.NoError(t, err)

	out := nodeAt(t, base, []string{"SANDBOX=" + string(people), "CONTROL=" + control.URL}, "chat.mjs", withBrowser(t, nil)...)
	var f struct {
		Axe                        map[string][]string
		Console, Foreign, Overflow []string
		Asked                      int
		Script                     struct {
			Text     string
			Elements int
			Ran      bool
		}
		Typing, Quick, Private, Read string
		Order                        []string
		Polled, Mended               bool
		Unsent                       struct{ Field, Notice, Button string }
		Lost, Offline                int
		Edited, Deleted, Place, File string
		Picture                      int
		Counter, Over                string
		Kept                         bool
		Earlier                      []int
		Closed                       struct {
			Recipient, Staff         string
			FieldRecipient, FieldOff bool
			Button                   string
			After, Status            int
		}
		NoScript struct {
			Said, Quote, Answer, Unread, Listed, Problem, Text string
			Times                                              int
		} `json:"noscript"`
		Shared           map[string]shared
		Refused          map[string]any
		Handed           []string
		Wordless         int
		Sized, Privately bool
		Keys, Keyboard   []string
		Quotes           struct {
			Served, Jumped bool
			Words          string
		}
		Unloaded struct {
			More, First  int
			Quote, Words string
			Sorted       bool
		}
		Forged, Unfit, Bottom []int
		Tokens                []string
		Renewed               int
		German                string
	}
	require.NoError(t, json.Unmarshal(out, &f), "%s", out)
	require.Len(t, f.Axe, 3*3+5)
	for page, violations := range f.Axe {
		require.Empty(t, violations, page)
	}
	require.Empty(t, f.Console, "errors in the browsers' consoles")
	require.Empty(t, f.Foreign, "requests to other hosts")
	require.Empty(t, f.Overflow, "pages wider than the window")
	require.Empty(t, f.Tokens, "a token in an address")
	require.NotContains(t, log.b.String(), "oct_")
	require.Zero(t, f.Asked, "what comes live is not asked for")
	require.Equal(t, `<script>window.ran=1</script> <b>I am at the door</b>`, f.Script.Text)
	require.Zero(t, f.Script.Elements)
	require.False(t, f.Script.Ran)
	require.Equal(t, "Ada Moreau is typing …", f.Typing)
	require.Equal(t, "I am on my way", f.Quick)
	require.Equal(t, "0", f.Private, "the recipient sees nothing of what is for staff")
	require.Equal(t, "✓✓ Read", f.Read)
	require.Equal(t, []string{"one", "two", "three"}, f.Order, "what was said while the wire was cut")
	require.True(t, f.Polled)
	require.True(t, f.Mended)
	require.Equal(t, "Is anybody there?", f.Unsent.Field)
	require.Contains(t, f.Unsent.Notice, "Your text is still here")
	require.Equal(t, "Send again", f.Unsent.Button)
	require.Equal(t, 1, f.Offline, "sent again after there was no connection")
	require.Equal(t, 1, f.Lost, "the answer was lost, not the message")
	require.Contains(t, f.Edited, "edited")
	require.Equal(t, "This message was deleted.", f.Deleted)
	require.Equal(t, "https://www.openstreetmap.org/?mlat=43.64460&mlon=-79.38490#map=17/43.64460/-79.38490", f.Place)
	require.Equal(t, 3, f.Picture, "the picture is loaded")
	require.Equal(t, "40 characters left", f.Counter)
	require.Equal(t, "Too long by 10 characters. Shorten it to send it.", f.Over)
	require.True(t, f.Kept, "what is too long is not sent")
	require.Greater(t, f.Earlier[1], f.Earlier[0], "earlier messages are read in")
	require.Contains(t, f.Closed.Recipient, "This conversation is closed")
	require.Contains(t, f.Closed.Staff, "This conversation is closed")
	require.True(t, f.Closed.FieldRecipient)
	require.True(t, f.Closed.FieldOff)
	require.Equal(t, "Open the conversation again", f.Closed.Button)
	require.Zero(t, f.Closed.After, "a closed conversation is not offered to the recipient")
	require.Equal(t, 409, f.Closed.Status)
	require.Equal(t, "Left at the desk?", f.NoScript.Said)
	require.Equal(t, "At the desk.", f.NoScript.Answer)
	require.Equal(t, "Mark as read (1)", f.NoScript.Unread)
	require.Equal(t, "1 unread", f.NoScript.Listed)
	require.Equal(t, 2, f.NoScript.Times, "the same form with another text is another message")
	require.Contains(t, f.NoScript.Problem, "Your text is still here")
	require.Equal(t, strconv.Itoa(2001), f.NoScript.Text)
	require.Equal(t, []string{"said", "reply", "edit", "delete", "quick", "chat-text", "private", "send", "photos"}, f.Keyboard)
	require.Equal(t, []int{403, 403, 403, 403, 403, 403, 403, 401, 401}, f.Forged)
	require.Equal(t, map[string]shared{"live": sharing("live"), "cut": sharing("cut")}, f.Shared)
	require.Equal(t, []string{"paste.png", "drop.png"}, f.Handed)
	require.Zero(t, f.Wordless, "a message of photos alone")
	require.Equal(t, []string{"reply One more thing", "reply At the gate", "chat-text", "Reply to Ada Moreau At the gate", "false", "You At the gate"}, f.Keys)
	require.True(t, f.Quotes.Served, "without script there is a link to what is on another page")
	require.True(t, f.Privately, "an answer to what is for staff is for staff")
	require.True(t, f.Sized, "without script a picture is small and has its place, too")
	require.Equal(t, "You Left at the desk?", f.NoScript.Quote)
	require.Equal(t, []int{415, 400, 404, 400, 413}, f.Unfit)
	require.Equal(t, make([]int, 6), f.Bottom, "the newest message is in sight")
	require.Equal(t, "Mina Roy AverylongwordAverylongwordAvery", f.Quotes.Words)
	require.True(t, f.Quotes.Jumped)
	require.Equal(t, 1, f.Unloaded.More, "only what was said")
	require.Zero(t, f.Unloaded.First, "what is not shown yet and was changed is not shown alone")
	require.Equal(t, "Mina Roy Changed later", f.Unloaded.Quote, "but where it is quoted")
	require.Equal(t, "Changed later", f.Unloaded.Words)
	require.True(t, f.Unloaded.Sorted)
	require.Equal(t, refusals, f.Refused)
	require.GreaterOrEqual(t, f.Renewed, 2, "credentials are renewed before they end")
	require.Equal(t, "Unterhaltung", f.German)
}

// shared is what two people saw of photos, a reply, changes and a deletion.
type shared struct {
	Progress                               bool
	Grown, Pictures, Dismissed             int
	Sizes, Can, Loaded                     []string
	Full, Deleted                          []any
	Alt, Banner, Quote, Field, Save, Asked string
	Jumped                                 bool
	Edited, Answered, Gone                 string
	Requoted                               []string
}

func sharing(way string) shared {
	before, after := "My doorr ("+way+")", "My door ("+way+")"
	return shared{
		Progress: true, Grown: 0, Sizes: []string{"480x360 in 320x240", "160x480 in 85x255"}, Loaded: []string{"jpg", "jpg"}, Alt: "Photo: door.png", Full: []any{"image/png", 800.0}, Can: []string{"reply", "reply,edit,delete"},
		Banner: "Reply to Ada Moreau " + before, Quote: "You " + before, Jumped: true,
		Field: before, Save: "Save", Edited: "Reply edited", Pictures: 2, Requoted: []string{"Ada Moreau " + after, "You " + after}, Answered: "Reply edited",
		Dismissed: 1, Asked: "Delete this message? Everybody sees that there was one.", Deleted: []any{"This message was deleted.", 0.0, "", ""}, Gone: "You This message was deleted.",
	}
}

// refusals are what is said when something is not done, and what is still there then.
var refusals = func() map[string]any {
	const long = "a long name a long name a long name a long name a long name a long name a long name a long name a long name 5.png"
	const closed, gate, please = "This conversation is closed: no more messages can be written here.", "At the gate", "Which gate, please?"
	return map[string]any{
		"kind":      "“notes.txt” is no photo that can be sent. Choose a JPEG, PNG or WebP file.",
		"big":       "“huge.png” is larger than 10 MB. Choose a smaller photo.",
		"many":      "A message has at most 5 photos. Send the others in another one.",
		"five":      []any{"1.png", "2.png", "3.png", "4.png", long},
		"recipient": []any{"“false.png” is no photo that can be sent. Choose a JPEG, PNG or WebP file. Your text is still here.", gate, "4.png", long},
		"staff":     []any{"“false.png” is no photo that can be sent. Choose a JPEG, PNG or WebP file. Your text is still here.", gate},
		"said":      0.0,
		"cut":       []any{"“6.png” was not uploaded. Your text and your photos are still here: check the connection and send again.", gate, "4.png", long, "6.png"},
		"lost":      "It is not certain that this was sent. Your text is still here: check the connection and press “Send again”. It will not arrive twice.",
		"once":      []any{1.0, 3.0, 1.0},
		"blank":     "Which gate?",
		"unsaved":   []any{"It is not certain that this was done. Check the connection and try again.", please},
		"late":      []any{"A message can be changed for ten minutes, and not after it was deleted. Send another one.", please},
		"before":    "reply,edit,delete",
		"after":     "reply",
		"away":      []any{1.0, false},
		"often":     []any{"That was a lot in one minute. Your text is still here: wait a minute, then send it.", "Too many"},

		"closed recipient": []any{"Your text is still here.", closed + " Reload", "Too late recipient", "late.png", "false"},
		"closed staff":     []any{"This conversation is closed. Staff of the business can open it again.", closed, "Too late staff", "late.png", "false"},
	}
}()

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/localpage"
	"github.com/postern-io/postern/protocol/lockbus"
)

// rig is a page over a cabinet of three doors whose network is a plain switch.
type rig struct {
	t    *testing.T
	sim  *board.Cabinet
	net  *plainSwitch
	page *Page

	mu   sync.Mutex
	acts []string
}

type plainSwitch struct {
	mu  sync.Mutex
	off bool
	err error
}

func (s *plainSwitch) On() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.off }
func (s *plainSwitch) Set(on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.off = !on
	}
	return s.err
}

const guestCode = "482915"

func newRig(t *testing.T) *rig {
	cfg := board.Config{Boards: []board.Board{{Name: "A", Line: "main", Family: lockbus.CU48B}}}
	for n := uint(1); n <= 3; n++ {
		cfg.Doors = append(cfg.Doors, board.Door{Number: n, Board: "A", Channel: n})
	}
	sim, err := board.New(cfg)
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	r := &rig{t: t, sim: sim, net: &plainSwitch{}}
	r.page = New(Config{
		Cabinets: []Cabinet{{Code: "FRONT-01", Name: "Front", Sim: sim, Sizes: map[uint]string{2: "L"}, Kiosk: "http://127.0.0.1:9", Network: r.net}, {Code: "YARD-02", Name: "Yard", Sim: sim}},
		Waiting: func(cabinet string) (Parcel, bool) {
			return Parcel{ID: "LD-1", Code: guestCode, Doors: []uint{3}}, cabinet == "FRONT-01"
		},
		OnAct: func(cabinet, action string, _ uint) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.acts = append(r.acts, cabinet+" "+action)
		},
	})
	return r
}

func (r *rig) call(method, path, body string) (int, string, http.Header) {
	q := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.page.Handler().ServeHTTP(w, q)
	return w.Code, w.Body.String(), w.Header()
}

func (r *rig) act(body string) (int, Result) {
	r.t.Helper()
	status, text, _ := r.call("POST", "/FRONT-01/act", body)
	var out Result
	require.NoError(r.t, json.Unmarshal([]byte(text), &out), text)
	return status, out
}

func (r *rig) state() (s State) {
	r.t.Helper()
	status, text, _ := r.call("GET", "/FRONT-01/state", "")
	require.Equal(r.t, 200, status)
	require.NotContains(r.t, text, guestCode, "the code is in no state")
	require.NoError(r.t, json.Unmarshal([]byte(text), &s))
	return s
}

func TestEachActIsAPhysicalFact(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	done := func(body string) {
		t.Helper()
		status, out := r.act(body)
		require.Equal(t, 200, status, out)
		require.Equal(t, Result{Outcome: "ok"}, out)
	}
	done(`{"action":"jam","door":3}`)
	require.True(t, r.state().Doors[2].Jammed)
	done(`{"action":"force","door":3}`)
	require.True(t, r.state().Doors[2].Open, "jammed or not")
	done(`{"action":"put","door":3}`)
	done(`{"action":"put","door":3}`)
	require.Equal(t, []string{"GUEST-1", "GUEST-2"}, r.state().Doors[2].Items)
	done(`{"action":"take","door":3}`)
	require.Empty(t, r.state().Doors[2].Items)
	done(`{"action":"free","door":3}`)
	done(`{"action":"close","door":3}`)
	require.Equal(t, Door{Door: 3, Size: "M", Items: []string{}}, r.state().Doors[2])
	done(`{"action":"network","on":false}`)
	require.False(t, *r.state().Network)
	done(`{"action":"power","on":false}`)
	done(`{"action":"power","on":false}`)
	require.False(t, r.state().Power)
	done(`{"action":"power","on":true}`)
	done(`{"action":"network","on":true}`)
	s := r.state()
	require.True(t, s.Power)
	require.True(t, *s.Network)
	var kinds []board.FactKind
	for _, f := range s.Facts {
		kinds = append(kinds, f.Kind)
	}
	require.Equal(t, []board.FactKind{board.Opened, board.ItemIn, board.ItemIn, board.ItemOut, board.ItemOut, board.Closed, board.PowerOff, board.PowerOn}, kinds)
	require.Equal(t, []string{"jam", "force", "put", "put", "take", "free", "close", "network_off", "power_off", "power_off", "power_on", "network_on"}, strings.Split(strings.ReplaceAll(strings.Join(r.acts, ","), "FRONT-01 ", ""), ","))
}

func TestWhatCannotBeDoneSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for body, want := range map[string]string{
		`{"action":"put","door":1}`:               "409 shut: put at door 1: the door is shut",
		`{"action":"take","door":1}`:              "409 shut: take at door 1: the door is shut",
		`{"action":"close","door":9}`:             "400 refused: `door` must be a door of FRONT-01.",
		`{"action":"close"}`:                      "400 refused: `door` must be a door of FRONT-01.",
		`{"action":"paint","door":1}`:             "400 refused: `action` must be one of close, force, jam, free, put, take, network, power.",
		`{"action":"power"}`:                      "400 refused: `on` must be true or false.",
		`{"action":"close","door":-1}`:            "400 refused: The body must be one JSON object",
		`{"action":"close","door":1} {}`:          "400 refused: The body must be one JSON object",
		`{"action":"close","door":1,"hard":true}`: "400 refused: The body must be one JSON object",
		``: "400 refused: The body must be one JSON object",
	} {
		status, out := r.act(body)
		require.Contains(t, fmt.Sprintf("%d %s: %s", status, out.Outcome, out.Why), want, body)
	}
	require.Empty(t, r.sim.Truth(), "nothing happened")
	require.Empty(t, r.acts)
	r.net.err = errors.New("the cable is stuck")
	status, out := r.act(`{"action":"network","on":false}`)
	require.Equal(t, 500, status)
	require.Equal(t, Result{Outcome: "failed", Why: "the cable is stuck"}, out)
	status, text, _ := r.call("POST", "/YARD-02/act", `{"action":"network","on":false}`)
	require.Equal(t, 400, status)
	require.Contains(t, text, "no network to cut")
}

func TestOnlyARequestForTheParcelGetsItsCode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	status, text, _ := r.call("GET", "/FRONT-01/parcel", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"id":"LD-1","code":"482915","doors":[3]}`, text)
	require.Equal(t, "LD-1", r.state().Parcel)
	status, _, _ = r.call("GET", "/YARD-02/parcel", "")
	require.Equal(t, 404, status)
	status, text, _ = r.call("GET", "/NONE/state", "")
	require.Equal(t, 404, status)
	require.Contains(t, text, "no cabinet of that code")
	status, _, head := r.call("GET", "/", "")
	require.Equal(t, 303, status)
	require.Equal(t, "/FRONT-01", head.Get("Location"))
}

func TestOnlyPagesOfThisAddressCanAct(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, change := range map[string]func(q *http.Request){
		"another host":   func(q *http.Request) { q.Host = "locker.example.com" },
		"another origin": func(q *http.Request) { q.Header.Set("Origin", "http://evil.example.com") },
		"a form":         func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") },
	} {
		q := httptest.NewRequest("POST", "http://127.0.0.1/FRONT-01/act", strings.NewReader(`{"action":"force","door":1}`))
		q.Header.Set("Content-Type", "application/json")
		change(q)
		w := httptest.NewRecorder()
		r.page.Handler().ServeHTTP(w, q)
		require.GreaterOrEqual(t, w.Code, 400, name)
	}
	require.Empty(t, r.sim.Truth())
	for path, kind := range map[string]string{"/FRONT-01": "text/html", "/page.js": "javascript", "/page.css": "text/css", "/texts.json": "application/json"} {
		status, body, head := r.call("GET", path, "")
		require.Equal(t, 200, status, path)
		require.Contains(t, head.Get("Content-Type"), kind)
		require.Equal(t, localpage.Policy, head.Get("Content-Security-Policy"))
		require.NotContains(t, localpage.Policy, "unsafe")
		require.NotContains(t, strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), "://", path)
		require.NotContains(t, body, " style=")
		require.NotRegexp(t, `<script[^>]*>[^<]`, body, "inline script")
		require.NotRegexp(t, `\son\w+="`, body, "inline handler")
	}
}

// A live page gets the state at once, and each change as it happens.
func TestALivePageFollowsTheCabinet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.page.Run(ctx, ln) }()
	res, err := http.Get("http://" + ln.Addr().String() + "/FRONT-01/events")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	next := func() (s State) {
		for lines.Scan() {
			require.NotContains(t, lines.Text(), guestCode)
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(data), &s))
				return s
			}
		}
		t.Fatal("the events ended")
		return s
	}
	require.False(t, next().Doors[0].Open)
	require.NoError(t, r.sim.Force(1))
	require.True(t, next().Doors[0].Open)
	stop()
	require.NoError(t, <-ended)
	for lines.Scan() {
		require.Empty(t, lines.Text(), "a stopped page says no more")
	}
}

func TestEveryLanguageHasEveryWord(t *testing.T) {
	t.Parallel()
	require.Len(t, texts, 6)
	hole := regexp.MustCompile(`\{\w+\}`)
	for lang, words := range texts {
		require.Len(t, words, len(texts["en"]), lang)
		for key, en := range texts["en"] {
			require.NotEmpty(t, words[key], "%s: %s", lang, key)
			require.ElementsMatch(t, hole.FindAllString(en, -1), hole.FindAllString(words[key], -1), "%s: %s", lang, key)
		}
	}
	script, err := files.ReadFile("files/page.js")
	require.NoError(t, err)
	html, err := files.ReadFile("files/cabinet.html")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`\bt\("(\w+)"|data-text="(\w+)"|key: "(\w+)"`).FindAllStringSubmatch(string(script)+string(html), -1) {
		if key := m[1] + m[2] + m[3]; !strings.HasSuffix(key, "_") { // the script completes these
			require.Contains(t, texts["en"], key)
		}
	}
	for _, kind := range visible {
		require.Contains(t, texts["en"], "f_"+string(kind))
	}
	for _, a := range actions {
		if a == "network" || a == "power" {
			require.Contains(t, texts["en"], "said_"+a+"_on")
			require.Contains(t, texts["en"], "said_"+a+"_off")
			continue
		}
		require.Contains(t, texts["en"], "act_"+a)
		require.Contains(t, texts["en"], "said_"+a)
	}
}

func FuzzActs(f *testing.F) {
	f.Add(`{"action":"put","door":1}`)
	f.Add(`{"action":"power","on":false}`)
	f.Add(`[[[[[[`)
	f.Fuzz(func(t *testing.T, body string) {
		status, text, _ := newRig(t).call("POST", "/FRONT-01/act", body)
		require.True(t, json.Valid([]byte(text)))
		require.Less(t, status, 500)
	})
}

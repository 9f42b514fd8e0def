package kiosk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

const secret = "48151623"

// fake plays desk, loop and link.
type fake struct {
	mu      sync.Mutex
	asked   []string
	answer  locker.Answer
	err     error
	state   locker.State
	online  bool
	broken  bool
	working bool
	full    bool
	hold    chan struct{} // asks wait for it
}

func (f *fake) ask(what string) (locker.Answer, error) {
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
	return f.answer, f.err
}

func (f *fake) Enter(_ context.Context, in access.Entered) (locker.Answer, error) {
	label := ""
	if in.Label != "" {
		label = " of " + in.Label
	}
	if in.Text != "" {
		return f.ask("scan " + in.Text + label)
	}
	if in.Queue {
		return f.ask(fmt.Sprint("queue ", in.Code, in.Doors))
	}
	return f.ask(fmt.Sprint("type ", in.Code, in.Doors) + label)
}
func (f *fake) Do(_ context.Context, in locker.Input) (locker.Answer, error) {
	return f.ask(fmt.Sprintf("%T %+v", in, in))
}
func (f *fake) State() locker.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}
func (f *fake) set(change func(*locker.State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.state // readers go on with the maps that they have
	s.Doors, s.Openings, s.Ended = maps.Clone(s.Doors), maps.Clone(s.Openings), maps.Clone(s.Ended)
	s.Deliveries, s.Exceptions = maps.Clone(s.Deliveries), maps.Clone(s.Exceptions)
	change(s)
}
func (f *fake) Broken() bool    { return f.broken }
func (f *fake) Full() bool      { return f.full }
func (f *fake) Working() bool   { return f.working }
func (f *fake) Connected() bool { return f.online }
func (f *fake) now() locker.Now { return moment }

func newState() locker.State {
	s := locker.New(wire.Config{Version: 3, Layout: []wire.LayoutDoor{{Door: 7, Board: "A", Channel: 1, Size: "M", Label: "A-1"}, {Door: 8, Board: "A", Channel: 2, Size: "L"}}})
	s.Doors[7] = locker.Door{Number: 7, Known: true}
	return s
}

var moment = locker.Now{Boot: 1, Mono: int64(time.Minute)}

// keyed is a request of a program that has the page's key.
func keyed(r *http.Request) { r.Header.Set("Authorization", "Bearer "+pageKey) }

const pageKey = "PAGEKEY"

func newKiosk(f *fake, log io.Writer) *Kiosk {
	return New(Config{DeviceCode: "CAB-1", Key: pageKey, Codes: f, Loop: f, Link: f, Store: func() StoreState { return StoreState{FilledPercent: 12, Waiting: [2]uint64{0, 5}} },
		Now: func() locker.Now { return moment }, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
}

// call does one request and returns status and body.
func call(k *Kiosk, method, path, body string, change ...func(*http.Request)) (int, string, http.Header) {
	r := httptest.NewRequest(method, "http://127.0.0.1:8091"+path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	k.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// The operator's notice is on the public page as it is.
func TestNoticeIsShown(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState(), online: true}
	_, body, _ := call(newKiosk(f, io.Discard), "GET", "/api/state", "")
	require.NotContains(t, body, "notice")
	f.state.Config.Texts = map[string]string{wire.TextNotice: "Closed <b>on</b> 1 January", "other": "not shown"}
	_, body, _ = call(newKiosk(f, io.Discard), "GET", "/api/state", "")
	var v struct{ Notice string }
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	require.Equal(t, "Closed <b>on</b> 1 January", v.Notice)
	require.NotContains(t, body, "not shown")
}

func TestWhatPeopleDoReachesTheCabinet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, body string
		answer           locker.Answer
		err              error
		asked, want      string
		status           int
	}{
		{"code opens", "/api/code", `{"code":"481516"}`, locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_1", Doors: []edge.DoorNumber{7, 8}}, nil,
			"type 481516[]", `{"outcome":"ok","opening_id":"op_1","doors":[{"door":7,"label":"A-1"},{"door":8,"label":"8"}]}`, 200},
		{"wrong code", "/api/code", `{"code":"481516"}`, locker.Answer{Outcome: wire.CodeUnknown, Left: 2}, nil,
			"type 481516[]", `{"outcome":"unknown","tries_left":2}`, 200},
		{"locked out", "/api/code", `{"code":"481516"}`, locker.Answer{Outcome: wire.CodeLockedOut, Budget: locker.BudgetTyped, Until: moment.Mono + int64(90*time.Second) - 1}, nil,
			"type 481516[]", `{"outcome":"locked_out","budget":"typed","locked_seconds":90}`, 200},
		{"the fifth wrong one", "/api/code", `{"code":"481516"}`, locker.Answer{Outcome: wire.CodeUnknown, Budget: locker.BudgetTyped, Until: moment.Mono + int64(300*time.Second)}, nil,
			"type 481516[]", `{"outcome":"unknown","budget":"typed","tries_left":0,"locked_seconds":300}`, 200},
		{"staff chose doors", "/api/code", `{"code":"48151623","doors":[8]}`, locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_2", Doors: []edge.DoorNumber{8}}, nil,
			"type 48151623[8]", `{"outcome":"ok","opening_id":"op_2","doors":[{"door":8,"label":"8"}]}`, 200},
		{"staff chose none", "/api/code", `{"code":"48151623"}`, locker.Answer{Outcome: wire.CodeOK}, nil, "type 48151623[]", `{"outcome":"staff","staff_token":"*"}`, 200},
		{"not a code", "/api/code", `{"code":"12"}`, locker.Answer{}, access.ErrNotACode, "type 12[]", `{"outcome":"not_a_code"}`, 422},
		{"store full", "/api/code", `{"code":"481516"}`, locker.Answer{}, locker.ErrFull, "type 481516[]", `{"outcome":"store"}`, 503},
		{"no answer", "/api/code", `{"code":"481516"}`, locker.Answer{}, context.DeadlineExceeded, "type 481516[]", `{"outcome":"uncertain"}`, 503},
		{"scan", "/api/scan", `{"text":"PU:CAB-1:481516"}`, locker.Answer{Outcome: wire.CodeNotActive}, nil, "scan PU:CAB-1:481516", `{"outcome":"not_active"}`, 200},
		{"a code after a label", "/api/code", `{"code":"4815162","label":"PK-1"}`, locker.Answer{Outcome: locker.OtherLabel}, nil, "type 4815162[] of PK-1", `{"outcome":"other_label"}`, 200},
		{"a signed code after a label", "/api/scan", `{"text":"PX:1","label":"PK-1"}`, locker.Answer{Outcome: locker.OtherLabel}, nil, "scan PX:1 of PK-1", `{"outcome":"other_label"}`, 200},
		{"sizes", "/api/code", `{"code":"4815162"}`, locker.Answer{Outcome: locker.ChooseSize, Choice: "ch_1", Size: "M", Free: []locker.FreeSize{{Size: "S", Free: 2}, {Size: "M", Free: 1}}}, nil, "type 4815162[]",
			`{"outcome":"choose_size","choice":"ch_1","size":"M","sizes":[{"size":"S","free":2},{"size":"M","free":1}]}`, 200},
		{"a size", "/api/size", `{"choice":"ch_1","size":"S"}`, locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_2", Doors: []edge.DoorNumber{8}}, nil, "locker.PickSize {Choice:ch_1 Size:S}",
			`{"outcome":"ok","opening_id":"op_2","doors":[{"door":8,"label":"8"}]}`, 200},
		{"reopen", "/api/reopen", `{"opening_id":"op_1"}`, locker.Answer{Outcome: wire.ReasonNoOpening}, nil, "locker.Reopen {OpeningID:op_1}", `{"outcome":"no_opening"}`, 200},
		{"does not fit", "/api/another", `{"opening_id":"op_1","door":7,"reason":"too_small"}`, locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_2", Doors: []edge.DoorNumber{8}}, nil, "locker.TakeAnother {OpeningID:op_1 Door:7 Reason:too_small}",
			`{"outcome":"ok","opening_id":"op_2","doors":[{"door":8,"label":"8"}]}`, 200},
		{"done", "/api/done", `{"opening_id":"op_1"}`, locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_1"}, nil, "locker.PressedDone {OpeningID:op_1}", `{"outcome":"ok","opening_id":"op_1"}`, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{answer: c.answer, err: c.err, state: newState()}
			status, body, _ := call(newKiosk(f, io.Discard), "POST", c.path, c.body)
			require.Equal(t, c.status, status)
			body = regexp.MustCompile(`"staff_token":"[A-Z2-7]{26}"`).ReplaceAllString(body, `"staff_token":"*"`)
			require.JSONEq(t, c.want, body)
			require.Equal(t, []string{c.asked}, f.asked)
		})
	}
}

func TestForeignPagesAndOddRequestsReachNothing(t *testing.T) {
	t.Parallel()
	head := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	good := `{"code":"481516"}`
	for _, c := range []struct {
		name, path, body string
		change           func(*http.Request)
		status           int
	}{
		{"other origin", "/api/code", good, head("Origin", "http://evil.example"), 403},
		{"other port", "/api/code", good, head("Origin", "http://127.0.0.1:1"), 403},
		{"other site", "/api/code", good, head("Sec-Fetch-Site", "cross-site"), 403},
		{"form", "/api/code", good, head("Content-Type", "text/plain"), 415},
		{"no type", "/api/code", good, func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		{"name pointed here", "/api/code", good, host("evil.example"), 421},
		{"address of the network", "/api/code", good, host("192.0.2.7:8091"), 421},
		{"code in the address", "/api/code?code=481516", good, nil, 400},
		{"unknown member", "/api/code", `{"code":"481516","x":1}`, nil, 400},
		{"two values", "/api/code", good + good, nil, 400},
		{"nothing", "/api/code", "", nil, 400},
		{"too long", "/api/scan", `{"text":"` + strings.Repeat("x", maxBody) + `"}`, nil, 400},
		{"too many doors", "/api/code", `{"code":"481516","doors":[` + strings.Repeat("1,", 64) + `1]}`, nil, 400},
		{"unknown path", "/api/doors", `{}`, nil, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{answer: locker.Answer{Outcome: wire.CodeOK}, state: newState()}
			var changes []func(*http.Request)
			if c.change != nil {
				changes = append(changes, c.change)
			}
			status, body, _ := call(newKiosk(f, io.Discard), "POST", c.path, c.body, changes...)
			require.Equal(t, c.status, status, body)
			require.NotContains(t, body, "481516")
			require.Empty(t, f.asked)
		})
	}
	f := &fake{state: newState()}
	status, _, _ := call(newKiosk(f, io.Discard), "POST", "/api/code", good, head("Origin", "http://127.0.0.1:8091"), head("Sec-Fetch-Site", "same-origin"))
	require.Equal(t, 200, status, "the page itself")
	for _, h := range []string{"localhost:8091", "[::1]:8091", "127.0.0.1"} {
		status, _, _ := call(newKiosk(f, io.Discard), "GET", "/api/state", "", host(h))
		require.Equal(t, 200, status, h)
	}
}

// Whatever goes wrong, a code is neither logged nor sent back.
func TestCodesAreNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, access.ErrNotACode, locker.ErrFull, locker.ErrStore, errors.New("anything"), context.Canceled} {
		for _, body := range []string{`{"code":"` + secret + `"}`, `{"code":"` + secret, `{"code":` + secret + `}`, `{"` + secret + `":1}`, secret} {
			for _, path := range []string{"/api/code", "/api/scan", "/api/reopen", "/" + secret} {
				var log bytes.Buffer
				f := &fake{answer: locker.Answer{Outcome: wire.CodeUnknown}, err: err, state: newState()}
				k := newKiosk(f, &log)
				_, got, head := call(k, "POST", path, body)
				require.NotContains(t, got, secret)
				require.NotContains(t, fmt.Sprint(head), secret)
				require.NotContains(t, log.String(), secret)
				state, _ := json.Marshal(k.view())
				require.NotContains(t, string(state), secret)
			}
		}
	}
}

func TestNoMoreThanAFewWait(t *testing.T) {
	t.Parallel()
	f := &fake{answer: locker.Answer{Outcome: wire.CodeOK}, state: newState(), hold: make(chan struct{})}
	k := newKiosk(f, io.Discard)
	var wg sync.WaitGroup
	for range maxTries {
		wg.Go(func() { call(k, "POST", "/api/code", `{"code":"481516"}`) })
	}
	ring.Await(t, func() bool { return len(k.tries) == maxTries })
	status, body, _ := call(k, "POST", "/api/code", `{"code":"481516"}`)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.JSONEq(t, `{"outcome":"busy_page"}`, body)
	close(f.hold)
	wg.Wait()
}

func TestStateShowsTheCabinetAndNoSecrets(t *testing.T) {
	t.Parallel()
	s := newState()
	s.Meta.CodeList = 9
	s.Meta.Budgets.Typed.Until = locker.Instant{Boot: 1, Mono: moment.Mono + int64(61*time.Second)}
	s.Meta.Budgets.Staff.Shut = locker.Instant{Boot: 1, Mono: moment.Mono + int64(20*time.Hour)}
	s.Doors[8] = locker.Door{Number: 8, Known: true, Open: true, Counted: true, Opening: "op_1", Delivery: "LD-000000042", Item: wire.ItemPresent}
	s.Openings["op_1"] = locker.Opening{ID: "op_1", Kind: wire.OpenDeposit, Who: "courier", DeliveryRef: "LD-000000042", Ends: locker.Instant{Boot: 1, Mono: moment.Mono + int64(5*time.Second)},
		Doors: []locker.OpeningDoor{{Door: 8, Phase: locker.Opened, Packages: []string{"PK-99"}}}}
	s.Codes[3] = wire.CodeEntry{Number: 3, Verifier: []byte("0123456789abcdef0123456789abcdef"), DeliveryRef: "LD-000000042"}
	s.Exceptions["x"] = locker.Exception{Exception: wire.Exception{Type: wire.ExDoorLeftOpen, Severity: wire.SeverityMedium, Door: 8, Evidence: "LD-000000042"}}
	f := &fake{state: s, online: true}
	k := newKiosk(f, io.Discard)
	status, public, _ := call(k, "GET", "/api/state", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"device_code":"CAB-1","online":true,"store":"ok","doors":[{"door":7,"label":"A-1","size":"M"},{"door":8,"label":"8","size":"L"}],
		"openings":[{"opening_id":"op_1","kind":"deposit","doors":[{"door":8,"label":"8","phase":"open"}],"can_be_done":true,"left":false,"outgoing":false}],
		"reopen":[],"left_open":[{"door":8,"label":"8"}],"locked_seconds":61,"scan_locked_seconds":0,"staff_locked_seconds":72000}`, public, "passers-by")
	status, body, _ := call(k, "GET", "/api/staff", "", keyed)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"device_code":"CAB-1","online":true,"store":{"state":"ok","filled_percent":12,"waiting":[0,5]},
		"doors":[{"door":7,"label":"A-1","size":"M","state":"locked","blocked":false},{"door":8,"label":"8","size":"L","state":"open","blocked":false}],
		"openings":[{"opening_id":"op_1","kind":"deposit","doors":[{"door":8,"label":"8","phase":"open"}],"can_be_done":true,"left":false,"outgoing":false}],
		"reopen":[],"exceptions":[{"type":"door_left_open","severity":"medium","door":8}],"locked_seconds":61,"scan_locked_seconds":0,"staff_locked_seconds":72000,"code_list":9,"config_version":3}`, body)
	// What lies where shows nowhere, in no door's state and by no exception.
	f.set(func(s *locker.State) {
		s.Doors[7] = locker.Door{Number: 7, Known: true, Delivery: "LD-000000043", Item: wire.ItemPresent}
		s.Exceptions["y"] = locker.Exception{Exception: wire.Exception{Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: 7}}
		s.Exceptions["z"] = locker.Exception{Exception: wire.Exception{Type: wire.ExDepositUnverified, Severity: wire.SeverityHigh, Door: 7}}
	})
	_, full, _ := call(k, "GET", "/api/staff", "", keyed)
	require.Equal(t, body, full, "a parcel behind a door changes nothing that is shown")
	_, full, _ = call(k, "GET", "/api/state", "")
	require.Equal(t, public, full, "nor for passers-by")
	for _, never := range []string{"LD-000000042", "PK-99", "0123456789abcdef"} {
		require.NotContains(t, body, never)
	}
	f.working = true
	_, body, _ = call(k, "GET", "/api/state", "")
	require.Contains(t, body, `"store":"working"`, "not hanging")
	f.full = true
	_, body, _ = call(k, "GET", "/api/state", "")
	require.Contains(t, body, `"store":"full"`, "a full disk, though the store is small")
	f.broken = true
	_, body, _ = call(k, "GET", "/api/state", "")
	require.Contains(t, body, `"store":"broken"`)
	f.set(func(s *locker.State) { s.Doors = map[edge.DoorNumber]locker.Door{} })
	_, body, _ = call(k, "GET", "/api/staff", "", keyed)
	require.Contains(t, body, `"state":"unknown"`)
	require.NotContains(t, body, `"state":"locked"`, "what is not known is never shown as locked")
}

func TestReopenIsOfferedOnlyWhileTheRulesAllowIt(t *testing.T) {
	t.Parallel()
	start := func() *fake {
		s := newState()
		s.Ended["op_1"] = locker.EndedOpening{ID: "op_1", Kind: wire.OpenPickup, Settled: true, At: locker.Instant{Boot: 1, Mono: moment.Mono - int64(10*time.Second)},
			Ends: locker.Instant{Boot: 1, Mono: moment.Mono + int64(500*time.Second)}, Delivery: "LD-1", Doors: []edge.DoorNumber{7}}
		s.Deliveries["LD-1"] = locker.Delivery{Ref: "LD-1", Doors: map[edge.DoorNumber][]string{7: {"P"}}}
		s.Doors[7] = locker.Door{Number: 7, Known: true, Item: wire.ItemPresent, Delivery: "LD-1"}
		return &fake{state: s}
	}
	require.Equal(t, []ReopenView{{OpeningID: "op_1", Doors: []DoorRef{{7, "A-1"}}, Seconds: 50}}, newKiosk(start(), io.Discard).view().Reopen)
	for name, change := range map[string]func(*locker.State){
		"too late":      func(s *locker.State) { e := s.Ended["op_1"]; e.At.Mono = 0; s.Ended["op_1"] = e },
		"session over":  func(s *locker.State) { e := s.Ended["op_1"]; e.Ends.Mono = moment.Mono; s.Ended["op_1"] = e },
		"other boot":    func(s *locker.State) { e := s.Ended["op_1"]; e.At.Boot = 2; s.Ended["op_1"] = e },
		"nothing there": func(s *locker.State) { d := s.Doors[7]; d.Item = wire.ItemAbsent; s.Doors[7] = d },
		"delivery gone": func(s *locker.State) { delete(s.Deliveries, "LD-1") },
		"a deposit":     func(s *locker.State) { e := s.Ended["op_1"]; e.Kind = wire.OpenDeposit; s.Ended["op_1"] = e },
	} {
		f := start()
		f.set(change)
		require.Empty(t, newKiosk(f, io.Discard).view().Reopen, name)
	}
}

func TestLivePagesSeeChangesAndNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{state: newState()}
		k := newKiosk(f, io.Discard)
		client, stop := serve(t, k)
		defer stop()
		r, err := client.Get("http://localhost/api/events")
		require.NoError(t, err)
		defer r.Body.Close()
		require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
		lines := bufio.NewReader(r.Body)
		next := func() (event, data string) {
			for {
				l, err := lines.ReadString('\n')
				require.NoError(t, err)
				switch l = strings.TrimSpace(l); {
				case strings.HasPrefix(l, "event: "):
					event = l[7:]
				case strings.HasPrefix(l, "data: "):
					data = l[6:]
				case l == "" && event != "":
					return event, data
				}
			}
		}
		event, data := next()
		require.Equal(t, "state", event)
		require.Contains(t, data, `"openings":[]`)
		f.set(func(s *locker.State) {
			s.Openings = map[string]locker.Opening{"op_1": {ID: "op_1", Kind: wire.OpenPickup, Doors: []locker.OpeningDoor{{Door: 7, Phase: locker.Opened}}}}
		})
		event, data = next()
		require.Equal(t, "state", event)
		require.Contains(t, data, `"label":"A-1","phase":"open"`)
		k.Act(locker.Show{What: "reboot"})
		k.Act(locker.StatusChanged{})
		k.Act(locker.Show{What: "pull", Door: 7})
		event, data = next()
		require.Equal(t, "notice", event)
		require.JSONEq(t, `{"what":"pull","door":7,"label":"A-1"}`, data)
		// A quiet page stays connected.
		time.AfterFunc(5*time.Minute, func() { k.Act(locker.Show{What: "message", Text: "closed at noon"}) })
		event, data = next()
		require.Equal(t, "notice", event)
		require.JSONEq(t, `{"what":"message","text":"closed at noon"}`, data)
		// A code that a scanner of the cabinet read is answered as one of the page.
		k.Scanned(scanner.Result{Outcome: scanner.CodeTried, Answer: locker.Answer{Outcome: wire.CodeUnknown, Left: 3}})
		event, data = next()
		require.Equal(t, "notice", event)
		require.JSONEq(t, `{"what":"scanned","answer":{"outcome":"unknown","tries_left":3}}`, data)
		k.Scanned(scanner.Result{Outcome: scanner.CodeTried, Err: access.ErrNotACode})
		_, data = next()
		require.JSONEq(t, `{"what":"scanned","answer":{"outcome":"not_a_code"}}`, data)
	})
}

func TestLivePagesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKiosk(&fake{state: newState()}, io.Discard)
		client, stop := serve(t, k)
		defer stop()
		for range maxListeners {
			r, err := client.Get("http://localhost/api/events")
			require.NoError(t, err)
			defer r.Body.Close()
		}
		r, err := client.Get("http://localhost/api/events")
		require.NoError(t, err)
		defer r.Body.Close()
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	})
}

// pipes is a listener of in-memory connections.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// serve runs the page over pipes; stop ends it and checks that it went well.
func serve(t *testing.T, k *Kiosk) (*http.Client, func()) {
	ln := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx, ln) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		ln.conns <- there
		return here, nil
	}}
	return &http.Client{Transport: transport}, func() {
		cancel()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
	}
}

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	k := newKiosk(&fake{state: newState()}, io.Discard)
	for path, kind := range map[string]string{"/": "text/html", "/kiosk.js": "javascript", "/screens.js": "javascript", "/words.js": "javascript", "/drawing.js": "javascript", "/sound.js": "javascript", "/camera.js": "javascript",
		"/kiosk.css": "text/css", "/texts.json": "application/json", "/operator.json": "application/json"} {
		status, body, head := call(k, "GET", path, "")
		require.Equal(t, 200, status, path)
		require.Contains(t, head.Get("Content-Type"), kind)
		require.Contains(t, head.Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, head.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "no-store", head.Get("Cache-Control"))
		require.NotContains(t, body, "://", path)
		require.NotContains(t, body, " style=")
		require.NotRegexp(t, `<script[^>]*>[^<]`, body, "inline script")
		require.NotRegexp(t, `\son\w+="`, body, "inline handler")
	}
	for _, path := range []string{"/page/", "/kiosk.go", "/favicon.ico", "/index.html"} {
		status, _, _ := call(k, "GET", path, "")
		require.NotEqual(t, 200, status, path)
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
	var page string
	for _, name := range []string{"kiosk.js", "screens.js", "words.js", "drawing.js", "sound.js", "camera.js", "collect.js", "index.html"} {
		raw, err := files.ReadFile("page/" + name)
		require.NoError(t, err)
		page += string(raw)
	}
	for _, m := range regexp.MustCompile(`\bt\("(\w+)"|data-text="(\w+)"`).FindAllStringSubmatch(page, -1) {
		key := m[1] + m[2]
		if strings.HasSuffix(key, "_") {
			continue // completed by the script
		}
		require.Contains(t, texts["en"], key)
	}
	for _, outcome := range []string{wire.CodeUnknown, wire.CodeNotActive, wire.CodeExpired, "locked_typed", "locked_scanned", "locked_staff", wire.ReasonBusy, wire.ReasonOccupied, wire.ReasonUnknownDoor,
		wire.ReasonBoard, wire.ReasonSuspect, wire.ReasonNoOpening, wire.PassForged, wire.PassOtherCabinet, wire.PassUsed, wire.PassRevoked, wire.ReasonClock, wire.ReasonMemory, notACode, noStore, tooMany, uncertain, staffCode,
		locker.QueueDone, locker.RemovalDoorOpen, locker.RemovalSeen, locker.RemovalNotDue, wire.ReasonNotInside, wire.ReasonUnsupported} {
		require.Contains(t, texts["en"], outcome, "what people are told")
	}
	for _, state := range []string{wire.DoorUnknown, wire.DoorLocked, wire.DoorOpening, wire.DoorOpen, wire.DoorSettling} {
		require.Contains(t, texts["en"], "state_"+state)
	}
	for _, reason := range wire.RemovalReasons() {
		require.Contains(t, texts["en"], "r_"+reason)
	}
	for _, why := range []string{locker.DueOverdue, locker.DueOutgoing} {
		require.Contains(t, texts["en"], "why_"+why)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("/api/code", `{"code":"481516","doors":[1]}`)
	f.Add("/api/scan", `{"text":"PU:CAB-1:481516"}`)
	f.Add("/api/done", `{"opening_id":"\u0000"}`)
	f.Add("/api/reopen", `[[[[[[`)
	f.Add("/api/staff/remove", `{"door":1,"outcome":"taken","removal_reason":"relay"}`)
	f.Add("/api/label", `{"text":"PK-1"}`)
	f.Add("/api/size", `{"choice":"ch_1","size":"M"}`)
	f.Add("/api/another", `{"opening_id":1,"reason":"dirty"}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		k := newKiosk(&fake{answer: locker.Answer{Outcome: wire.CodeUnknown}, state: newState()}, io.Discard)
		r := httptest.NewRequest("POST", "http://127.0.0.1/", strings.NewReader(body))
		r.URL.Path = path
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		k.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusOK {
			require.True(t, json.Valid(w.Body.Bytes()))
		}
		require.Less(t, w.Code, 500)
	})
}

// A label is answered with whether it is known, and with nothing of its delivery.
func TestALabelIsKnownOrNot(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState()}
	f.state.Codes[1] = wire.CodeEntry{Number: 1, Kind: wire.CodeDelivery, DeliveryRef: "LD-1", Sizes: []string{"M"}, Packages: map[uint][]string{0: {"PK-1"}}}
	f.state.Codes[2] = wire.CodeEntry{Number: 2, Kind: wire.CodePickup, DeliveryRef: "LD-2", Packages: map[uint][]string{7: {"PK-2"}}}
	k := newKiosk(f, io.Discard)
	for text, want := range map[string]string{"PK-1": "known_label", "pk-1": "known_label", "PK-2": "unknown_label", "": "unknown_label", "LD-1": "unknown_label"} {
		status, body, _ := call(k, "POST", "/api/label", `{"text":"`+text+`"}`)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"outcome":"`+want+`"}`, body, text)
	}
	require.Empty(t, f.asked, "nothing is tried")
}

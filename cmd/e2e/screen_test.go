package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/kiosk"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// touches are how often a person touches a screen on one way through it, keys with digits apart.
type touches struct{ Taps, Digits int }

// screenFound is what a script has found at the screen of a cabinet; see cabinet.mjs.
type screenFound struct {
	Axe                                                        map[string][]string
	Overflow, Console, Foreign, Small, High, Clipped, Repeated []string
	Leaks, Focus                                               []string
	Walked                                                     map[string]int // what is touched by keys, on each screen
	Idle                                                       map[string]bool
	Taps                                                       map[string]touches
	Posted                                                     map[string]int
	Screens                                                    map[string]any
}

// kinds are the kiosks at which scripts try a screen.
func (screenFound) kinds() []string { return []string{"portrait", "landscape"} }

// useScreen restarts the agent of a cabinet with its screen, has a script use that in a real
// browser, and checks what holds for each script. env is what the script gets besides; with a
// camera its pictures are looked at.
func (w *world) useScreen(t *testing.T, c *cabinet, script string, env ...string) screenFound {
	w.t.Helper()
	chromium, node := browsertest.Tools(t)
	var page atomic.Pointer[kiosk.Kiosk]
	c.act = func(x edgelocker.Action) {
		if k := page.Load(); k != nil {
			k.Act(x)
		}
	}
	c.restart(0)
	w.ready(c)
	page.Store(screenOf(c))
	staff := w.drawStaffCodes(c)[0].Code
	return w.runScript(page.Load(), w.courierHands(c, w.physical(c, staff, func(r scanner.Result) { page.Load().Scanned(r) })), chromium, node, script, env...)
}

// serveScreen serves a screen until stop is called.
func (w *world) serveScreen(page *kiosk.Kiosk) (address string, stop func()) {
	w.t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- page.Run(ctx, ln) }()
	return "http://" + ln.Addr().String(), func() { cancel(); require.NoError(w.t, <-ended) }
}

// runScript serves a screen while a script uses it.
func (w *world) runScript(page *kiosk.Kiosk, hands http.Handler, chromium, node, script string, env ...string) (found screenFound) {
	w.t.Helper()
	address, stop := w.serveScreen(page)
	defer stop()
	people := httptest.NewServer(hands)
	defer people.Close()
	args := []string{script, address, people.URL, chromium}
	if dir := os.Getenv(browsertest.Pictures); dir != "" {
		args = append(args, dir)
	}
	cmd := exec.CommandContext(w.t.Context(), node, args...)
	cmd.Dir = "../../cloud/page/browser"
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(w.t, err, "%s", errs.String())
	require.NoError(w.t, json.Unmarshal(out, &found))
	verdict.RecordPages(w.t, "screens of a cabinet", found.Axe)
	require.NotEmpty(w.t, found.Axe)
	for screen, violations := range found.Axe {
		require.Empty(w.t, violations, screen)
	}
	require.Empty(w.t, found.Console, "errors in the browser's console")
	require.Empty(w.t, found.Foreign, "requests to other hosts")
	require.Empty(w.t, found.Overflow, "screens wider than the window")
	require.Empty(w.t, found.Small, "what is touched and smaller than 96 by 96")
	require.Empty(w.t, found.High, "what is touched and out of a seated person's reach")
	require.Empty(w.t, found.Clipped, "what is touched and not seen whole")
	require.Empty(w.t, found.Repeated, "ids that two elements have")
	var ways []string
	for way := range found.Taps {
		ways = append(ways, way)
	}
	slices.Sort(ways)
	for _, way := range ways {
		w.t.Logf("%s: %d taps and %d digits", way, found.Taps[way].Taps, found.Taps[way].Digits)
	}
	return found
}

// unconfigured is a cabinet that has no layout yet.
type unconfigured struct{ kiosk.Loop }

func (l unconfigured) State() edgelocker.State {
	s := l.Loop.State()
	s.Config.Layout = nil
	return s
}

// People use the screen by keys alone, with spoken words, without motion, and with the largest
// text in high contrast, in a real browser.
func TestTheScreenOfACabinetIsAccessible(t *testing.T) {
	ring.SkipUnlessFull(t, "minutes of a browser")
	w := newWorld(t, 7, 1)
	defer w.close()
	c := w.cabinets[0]
	empty, stop := w.serveScreen(kiosk.New(kiosk.Config{DeviceCode: c.code, Codes: c.agent.Codes(), Loop: unconfigured{c.agent.Loop()}, Link: c.agent.Link(), Now: c.agent.Now, Store: func() kiosk.StoreState { return kiosk.StoreState{} }}))
	defer stop()
	found := w.useScreen(t, c, "kioskaccess.mjs", "EMPTY="+empty)
	require.Empty(t, found.Focus)
	require.Len(t, found.Walked, 19*len(found.kinds()))
	for screen, n := range found.Walked {
		require.Positive(t, n, screen)
	}
	for _, kind := range found.kinds() {
		for what, want := range map[string]any{
			"language-by-keys": "Saisissez votre code ou présentez votre code QR au lecteur.", "escape-of-the-question-stays": "pickup", "enter-of-the-question-stays": "pickup",
			"silent-at-first": 0., "other-languages": 0., "code-is-said": 0., "without-a-voice": 0., "silent-for-the-next": 0., "voice-is-offered": 0.,
			"moves-reduce": 0., "chosen-to-the-end": "3 high", "chosen-for-the-next": "undefined undefined",
			"empty": "This locker is being set up: it has no compartments yet.", "drawings": 0.,
		} {
			require.Equal(t, want, found.Screens[kind+"-"+what], "%s %s", kind, what)
		}
		require.NotZero(t, found.Screens[kind+"-moves-no-preference"], "a door that opens glows")
		require.Equal(t, touches{}, found.Taps[kind+"-by-keys"], "by keys alone")
		require.Equal(t, touches{Taps: 4, Digits: 12}, found.Taps[kind+"-pickup-after-a-wrong-code"])
	}
}

// The start comes back by itself from the middle of each screen, and two people do not get into
// each other's way.
func TestPeopleLeaveTheScreenOfACabinet(t *testing.T) {
	ring.SkipUnlessFull(t, "minutes of a browser")
	w := newWorld(t, 7, 1)
	defer w.close()
	found := w.useScreen(t, w.cabinets[0], "kioskaway.mjs")
	require.Len(t, found.Idle, 22*len(found.kinds()))
	for screen, came := range found.Idle {
		require.True(t, came, "%s: the start comes back by itself, after a question", screen)
	}
	for _, kind := range found.kinds() {
		for _, id := range []string{"pickup", "send", "return", "dropoff", "staff"} {
			require.Equal(t, true, found.Screens[kind+"-"+id+"-is-empty"], "%s %s", kind, id)
		}
		for _, screen := range []string{"staff", "staffopen", "learn", "collect", "collectcode"} {
			require.Equal(t, "staffcode", found.Screens[kind+"-"+screen+"-asks-for-the-code-again"])
		}
		for what, want := range map[string]any{
			"a-door-of-staff-is-not-shown-to-the-next": "start", "trouble-stays-while-a-courier-is-at-the-door": "trouble", "the-next-uses-the-screen": "pickup", "and-its-start": "start", "the-other-sees-their-door-alone": true,
			"the-end-of-the-first-changes-nothing": "flow", "typed-meanwhile": "pickup 123", "both-doors": 2., "an-opening-that-ended-at-once": "The door did not open",
		} {
			require.Equal(t, want, found.Screens[kind+"-"+what], "%s %s", kind, what)
		}
		require.Regexp(t, `^Door \S+ is open`, found.Screens[kind+"-the-open-door-is-shown-to-the-next"])
		require.NotEmpty(t, found.Screens[kind+"-nothing-was-removed"])
		require.Regexp(t, `^Door \S+ is closed\.$`, found.Screens[kind+"-the-other-is-thanked"])
		require.Regexp(t, `^Door \S+: Please close door \S+\.$`, found.Screens[kind+"-the-door-of-an-opening-that-is-over-stands-open"])
	}
}

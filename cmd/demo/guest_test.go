package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/firmware-sim/page"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

// programEnv makes this test's binary the demo itself.
const programEnv = "POSTERN_DEMO_PROGRAM"

// program is a demo that runs, as a guest sees it: lines on a terminal.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	dir  string
	done chan error

	mu    sync.Mutex
	story bytes.Buffer
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	dir, err := os.MkdirTemp("", "postern-guest-")
	require.NoError(t, err)
	p := &program{t: t, dir: dir, done: make(chan error, 1)}
	self, err := os.Executable()
	require.NoError(t, err)
	p.cmd = exec.Command(self, append([]string{"--listen", "127.0.0.1:0", "--dir", p.dir}, args...)...)
	p.cmd.Env = append(os.Environ(), programEnv+"=1")
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = p.cmd.Stdout
	require.NoError(t, p.cmd.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.story.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
		}
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // its children end by themselves
		browsertest.RemoveFolder(t, p.dir)
		if t.Failed() {
			t.Log(p.String())
		}
	})
	return p
}

func (p *program) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.story.String()
}

// reads waits for a line and gives what its groups hold.
func (p *program) reads(pattern string) []string {
	p.t.Helper()
	var m []string
	ring.Await(p.t, func() bool {
		select {
		case err := <-p.done:
			p.t.Fatalf("the demo ended (%v) before it printed %s", err, pattern)
		default:
		}
		m = regexp.MustCompile(pattern).FindStringSubmatch(p.String())
		return m != nil
	}, "the line ", pattern)
	return m
}

// stop ends the demo as Ctrl-C does, and waits for its exit status 0.
func (p *program) stop() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGINT))
	require.NoError(p.t, <-p.done, "the exit status")
}

// post does what a button of a page does.
func post(t *testing.T, url string, in any, out any) {
	t.Helper()
	a := &api{client: &http.Client{Timeout: time.Minute}}
	require.NoError(t, a.call(t.Context(), http.MethodPost, url, in, out), url)
}

// guest is what a guest does at the two pages. The one with a browser clicks and
// types; the one without sends what the buttons send.
type guestHands interface {
	typeCode(code string)
	awaitOpen(door string)
	takeOut(door string)
	shut(door string)
}

// plainHands send what the pages' buttons send.
type plainHands struct {
	t              *testing.T
	kiosk, cabinet string
}

func (h plainHands) typeCode(code string) {
	var out struct{ Outcome string }
	post(h.t, h.kiosk+"/api/code", map[string]any{"code": code}, &out)
	require.Equal(h.t, wire.CodeOK, out.Outcome)
}

func (h plainHands) awaitOpen(door string) {
	ring.Await(h.t, func() bool {
		for _, d := range h.state().Doors {
			if fmt.Sprint(d.Door) == door {
				return d.Open
			}
		}
		return false
	}, "door ", door, " open on the page")
	awaitSeen(h.t, h.kiosk, door)
}

// awaitSeen waits until the agent counts a door as open, which a bounce is not. A
// person takes longer to reach in.
func awaitSeen(t *testing.T, kiosk, door string) {
	t.Helper()
	a := &api{client: http.DefaultClient}
	ring.Await(t, func() bool {
		var shown struct {
			Openings []struct {
				Doors []struct {
					Door  uint
					Phase string
				}
			}
		}
		require.NoError(t, a.call(t.Context(), http.MethodGet, kiosk+"/api/state", nil, &shown))
		for _, o := range shown.Openings {
			for _, d := range o.Doors {
				if fmt.Sprint(d.Door) == door {
					return d.Phase == "open"
				}
			}
		}
		return false
	}, "door ", door, " open for the agent")
}

func (h plainHands) state() (s page.State) {
	a := &api{client: http.DefaultClient}
	require.NoError(h.t, a.call(h.t.Context(), http.MethodGet, h.cabinet+"/state", nil, &s))
	return s
}

// opens reports whether a door opens within a time.
func (h plainHands) opens(door string, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if slices.ContainsFunc(h.state().Doors, func(d page.Door) bool { return fmt.Sprint(d.Door) == door && d.Open }) {
			return true
		}
	}
	return false
}

func (h plainHands) act(action, door string) {
	post(h.t, h.cabinet+"/act", map[string]any{"action": action, "door": json.Number(door)}, nil)
}

func (h plainHands) takeOut(door string) { h.act("take", door) }
func (h plainHands) shut(door string)    { h.act("close", door) }

// browserHands click and type in a real browser.
type browserHands struct {
	t              *testing.T
	kiosk, cabinet *browsertest.Tab
	address        string // of the kiosk
}

func newBrowserHands(t *testing.T, c *browsertest.Chromium, kiosk, cabinet string) browserHands {
	return browserHands{t: t, kiosk: c.Open(kiosk), cabinet: c.Open(cabinet), address: kiosk}
}

func (h browserHands) typeCode(code string) {
	h.kiosk.Call("Page.bringToFront", nil)
	h.kiosk.Eval(`document.querySelector("#code") || document.querySelector("#home").click()`, nil)
	h.kiosk.Eval(`document.querySelector("#code") || document.querySelector("#pickup").click()`, nil)
	h.kiosk.Await(`document.activeElement.id === "code" && !document.activeElement.disabled`)
	h.kiosk.Call("Input.insertText", map[string]any{"text": code})
	h.kiosk.Await(fmt.Sprintf(`document.querySelector("#code").value === %q`, code))
	h.kiosk.Press("Enter")
	h.kiosk.Await(`!document.querySelector("#code")?.value`)
}

func (h browserHands) awaitOpen(door string) {
	h.cabinet.Call("Page.bringToFront", nil)
	h.cabinet.Await(fmt.Sprintf(`document.querySelector("#door-%s.open")`, door))
	awaitSeen(h.t, h.address, door)
}

func (h browserHands) takeOut(door string) {
	h.cabinet.Click("#door-" + door)
	h.cabinet.Await(`document.querySelector("[data-action=take][aria-disabled=false]")`)
	h.cabinet.Click("[data-action=take]")
	h.cabinet.Await(fmt.Sprintf(`document.querySelector("#door-%s:not(.full)")`, door))
}

func (h browserHands) shut(door string) {
	h.cabinet.Eval(fmt.Sprintf(`document.querySelector("#door-%s").focus()`, door), nil)
	h.cabinet.Press("c")
	h.cabinet.Await(fmt.Sprintf(`document.querySelector("#door-%s:not(.open)")`, door))
}

// delivery finds a delivery of the demo by its number.
func (p *program) delivery(number string) (found delivery) {
	p.t.Helper()
	var box server.Sandbox
	b, err := os.ReadFile(filepath.Join(p.dir, "sandbox.json"))
	require.NoError(p.t, err)
	require.NoError(p.t, json.Unmarshal(b, &box))
	base := p.reads(`API +(http://127\.0\.0\.1:[0-9]+)/api/v1`)[1]
	a := &api{base: base, token: box.Provider.Token, client: &http.Client{Timeout: 20 * time.Second}}
	for id := int64(1); id < 50; id++ {
		if d, err := a.find(p.t.Context(), id); err == nil && d.Number == number {
			return d
		}
	}
	p.t.Fatalf("there is no delivery %s", number)
	return found
}

// A guest reads what is printed, opens the waiting parcel's door with its code,
// takes it and shuts the door. In the full ring the guest then locks the keypad with
// wrong codes, and what is printed after the script's whole day still agrees.
func TestAGuestUsesTheDemo(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same parts in one process")
	t.Parallel()
	began := time.Now()
	p := startProgram(t)
	line := p.reads(`Try it +type ([0-9]{6}) at (http://127\.0\.0\.1:[0-9]+) and watch door ([0-9]+) at (http://127\.0\.0\.1:[0-9]+/FRONT-01)\n`)
	code, kiosk, door, cabinet := line[1], line[2], line[3], line[4]
	number := p.reads(`delivery (LD-[0-9A-Z-]+) waits for a guest`)[1]
	plain := plainHands{t, kiosk, cabinet}
	var hands guestHands = plain
	if c := browsertest.Start(t); c != nil {
		hands = newBrowserHands(t, c, kiosk, cabinet)
	} else {
		t.Log("chromium is missing: the buttons' requests are sent instead")
	}
	hands.typeCode(code)
	for range 5 { // a board that does not answer on a busy machine opens nothing: people type once more
		if plain.opens(door, 5*time.Second) {
			break
		}
		hands.typeCode(code)
	}
	hands.awaitOpen(door)
	took := time.Since(began)
	t.Logf("from the start to a door opened by a person: %s", took.Round(100*time.Millisecond))
	hands.takeOut(door)
	hands.shut(door)
	ring.Await(t, func() bool { return p.delivery(number).Status == "picked_up" }, number, " collected")
	p.reads(`guest +has collected ` + number)
	if !ring.Full() {
		return
	}

	outcomes := map[string]int{}
	for i := range 12 {
		var out struct{ Outcome string }
		post(t, kiosk+"/api/code", map[string]any{"code": fmt.Sprintf("%06d", i)}, &out)
		outcomes[out.Outcome]++
	}
	require.Equal(t, map[string]int{wire.CodeUnknown: 5, wire.CodeLockedOut: 7}, outcomes)
	ring.Await(t, func() bool { return strings.Contains(p.String(), "shows the QR code at FRONT-01") }, "a recipient at the locked keypad")
	p.reads(`day 1 is over`)
	require.NotContains(t, p.String(), "did not go by the script")
	p.stop()
	require.Regexp(t, `verdict +OK`, p.String())
}

// A guest does everything that a page lets a guest do, while the script goes on, and
// leaves it so: staff put it right after a while, the script goes on, and the sides
// agree. Then the guest does it again, and the demo is stopped at once.
func TestAGuestWhoBreaksEverything(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "sessions run out in real time")
	p := startProgram(t)
	cabinet := p.reads(`watch door [0-9]+ at (http://127\.0\.0\.1:[0-9]+)/FRONT-01\n`)[1]
	p.reads(`Morning: three deposits`)
	breakEverything(t, cabinet)
	for _, code := range []string{"FRONT-01", "YARD-02", "DESK-03"} {
		p.reads(`staff +restore power and network of ` + code)
	}
	p.reads(`A delivery company carries an order`)
	breakEverything(t, cabinet)
	p.stop()
	require.Regexp(t, `verdict +OK`, p.String())
}

func breakEverything(t *testing.T, cabinet string) {
	t.Helper()
	for _, code := range []string{"FRONT-01", "YARD-02", "DESK-03"} {
		h := plainHands{t: t, cabinet: cabinet + "/" + code}
		for n := 1; n <= 4; n++ {
			h.act("force", fmt.Sprint(n))
			h.act("put", fmt.Sprint(n))
			h.act("jam", fmt.Sprint(n))
		}
		h.act("close", "1")
		post(t, h.cabinet+"/act", map[string]any{"action": "network", "on": false}, nil)
	}
	post(t, cabinet+"/YARD-02/act", map[string]any{"action": "power", "on": false}, nil)
	post(t, cabinet+"/YARD-02/act", map[string]any{"action": "power", "on": true}, nil)
	post(t, cabinet+"/FRONT-01/act", map[string]any{"action": "power", "on": false}, nil)
}

// The page of the simulated cabinet, in wide and narrow windows, light and dark.
func TestTheCabinetPageInARealBrowser(t *testing.T) {
	t.Parallel()
	c := browsertest.Start(t)
	ring.Needs(t, ring.EnvBrowsers, "chromium (Debian's chromium)", c != nil)
	sims, serve := newBenchPage(t)
	x := c.Open(serve + "/FRONT-01")
	x.Await(`document.querySelector("#door-3.open.full") && document.querySelector("#code").textContent === "482 915"`)
	for _, w := range []struct {
		name   string
		wide   int
		scheme string
	}{{"wide-light", 1280, "light"}, {"wide-dark", 1280, "dark"}, {"narrow-light", 360, "light"}, {"narrow-dark", 360, "dark"}} {
		x.Window(w.wide, 900, w.scheme)
		x.CheckAccess(w.name)
		x.Picture("cabinet-" + w.name)
	}
	for _, lang := range []string{"fr", "de", "es", "zh-Hans", "zh-Hant"} {
		x.Eval(fmt.Sprintf(`document.querySelector("#languages [data-lang=%s]").click()`, lang), nil)
		x.Await(fmt.Sprintf(`document.documentElement.lang === %q`, lang))
		x.CheckAccess("narrow " + lang)
	}
	x.Eval(`document.querySelector("#languages [data-lang=en]").click()`, nil)

	// By keyboard alone: arrows choose, letters act, the picture follows.
	x.Window(1280, 900, "light")
	x.Eval(`document.querySelector("#door-3").focus()`, nil)
	x.Press("ArrowDown")
	x.Await(`document.activeElement.id === "door-4" && document.querySelector("#door-title").textContent === "Door 4"`)
	x.Press("f")
	x.Await(`document.querySelector("#door-4.open")`)
	x.Press("p")
	x.Await(`document.querySelector("#door-4.full") && document.querySelector("#said").textContent === "A parcel lies behind door 4."`)
	x.Press("j")
	x.Await(`document.querySelector("#door-4.jammed")`)
	x.Press("j")
	x.Await(`!document.querySelector("#door-4.jammed")`)
	x.Press("t")
	x.Await(`!document.querySelector("#door-4.full")`)
	x.Press("c")
	x.Await(`!document.querySelector("#door-4.open") && document.activeElement.id === "door-4"`)
	x.Click("#switch-power")
	x.Await(`document.querySelector("#switch-power").getAttribute("aria-checked") === "false" && document.querySelector("#box.dark")`)
	require.False(t, sims.View().Powered)
	x.Eval(`document.querySelector("#switch-power").focus()`, nil)
	x.Press("Enter")
	x.Await(`document.querySelector("#switch-power").getAttribute("aria-checked") === "true" && document.activeElement.id === "switch-power"`)
	require.NoError(t, sims.Force(7)) // not by this page: it follows all the same
	x.Await(`document.querySelector("#door-7.open") && document.querySelector("#facts li").textContent.includes("Door 7 swung open")`)
}

// newBenchPage serves a cabinet with a door of each kind and a parcel that waits.
func newBenchPage(t *testing.T) (sim *board.Cabinet, address string) {
	t.Helper()
	cfg := board.Config{Boards: []board.Board{{Name: "A", Line: "main", Family: lockbus.CU48B}}}
	sizes := map[uint]string{}
	for n := uint(1); n <= 12; n++ {
		cfg.Doors = append(cfg.Doors, board.Door{Number: n, Board: "A", Channel: n, Jammed: n == 5, Open: n == 3, Item: n == 3 || n == 8})
		sizes[n] = []string{"M", "S", "M", "L"}[n%4]
	}
	sim, err := board.New(cfg)
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	loose, err := newCable("127.0.0.1:9")
	require.NoError(t, err)
	t.Cleanup(loose.close)
	return sim, serveForTest(t, page.New(page.Config{
		Cabinets: []page.Cabinet{{Code: "FRONT-01", Name: "Front St Lobby", Sim: sim, Sizes: sizes, Kiosk: "http://127.0.0.1:9", Network: &network{cable: loose}},
			{Code: "YARD-02", Name: "Old Yard", Sim: sim}, {Code: "DESK-03", Name: "Reception Desk", Sim: sim}},
		Waiting: func(string) (page.Parcel, bool) {
			return page.Parcel{ID: "LD-1", Code: "482915", Doors: []uint{8}}, true
		},
	}))
}

// serveForTest serves a page until the test ends.
func serveForTest(t *testing.T, p *page.Page) string {
	t.Helper()
	ln, err := listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return "http://" + ln.Addr().String()
}

// A person does the jobs of the workplace in the browser while the demo's day goes on,
// by what is on the screen alone and with no more presses than each may take; the
// interface knows of every one afterwards. Then by keyboard alone, with the focus in
// sight at each stop, and in a browser without script.
func TestJobsInARealBrowser(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "a person needs a minute for all jobs")
	p, run := startBrowserJobs(t)
	for _, mode := range []string{"mouse", "keys", "plain"} {
		t.Run(mode, func(t *testing.T) {
			var found struct {
				Jobs []struct {
					Number, Limit, Presses int
					Words                  string
					Done                   bool
				}
				Console, Failed []string
			}
			run("jobs.mjs", &found, filepath.Join(p.dir, "sandbox.json"), mode)
			require.Empty(t, found.Failed)
			require.Empty(t, found.Console)
			require.Greater(t, len(found.Jobs), 26)
			for _, j := range found.Jobs {
				if mode == "mouse" {
					require.LessOrEqual(t, j.Presses, j.Limit, "%d %s", j.Number, j.Words)
				}
				t.Logf("%d %s: %d of %d presses", j.Number, j.Words, j.Presses, j.Limit)
			}
		})
	}
}

// A newcomer who has a sentence for each of twelve jobs and more finds the way by the
// words on the screen alone, and the interface knows of each job afterwards.
func TestANewcomerFindsTheWay(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "a person needs a minute for all jobs")
	p, run := startBrowserJobs(t)
	var found struct {
		Jobs []struct {
			Say  string
			Path []string
			Done bool
		}
		Console, Failed []string
	}
	run("newcomer.mjs", &found, filepath.Join(p.dir, "sandbox.json"))
	for _, j := range found.Jobs {
		t.Logf("%s %s", j.Say, strings.Join(j.Path, " > "))
	}
	require.Empty(t, found.Failed)
	require.Empty(t, found.Console)
	require.GreaterOrEqual(t, len(found.Jobs), 12)
}

// The pages of the console, drawn and generated, and the tracking page keep their
// budgets of bytes and requests with an empty cache; a tracking page shows what it has
// within 1.2 s on a slow mobile network.
func TestPagesKeepTheirBudgets(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "a browser loads a hundred pages")
	p, run := startBrowserJobs(t)
	var found struct {
		Pages []struct {
			Path                           string
			Status, Requests, HTML, Assets int
			First, Largest                 float64 // ms
		}
		Failed []string
	}
	run("budgets.mjs", &found, filepath.Join(p.dir, "sandbox.json"))
	require.Greater(t, len(found.Pages), 50)
	quickest := 1e9
	for _, x := range found.Pages {
		most, requests := 120<<10, 8
		switch {
		case strings.HasPrefix(x.Path, "/track/"):
			most, requests = 60<<10, 5
			quickest = min(quickest, max(x.First, x.Largest))
		case x.Path == "/console/day":
			most = 200 << 10
		}
		require.Equal(t, 200, x.Status, x.Path)
		require.LessOrEqual(t, x.HTML+x.Assets, most, "bytes of %s", x.Path)
		require.LessOrEqual(t, x.Requests, requests, "requests of %s", x.Path)
		t.Logf("%s: %d + %d bytes, %d requests, painted after %.0f and %.0f ms", x.Path, x.HTML, x.Assets, x.Requests, x.First, x.Largest)
	}
	t.Logf("a tracking page on a slow network is painted after %.0f ms, the best of three", quickest)
}

// startBrowserJobs starts a demo, and gives what runs a script of a real browser against
// it and reads its answer.
func startBrowserJobs(t *testing.T) (p *program, run func(script string, found any, sandbox string, more ...string)) {
	chromium, node := browsertest.Tools(t)
	p = startProgram(t)
	p.reads(`Morning: three deposits`)
	return p, func(script string, found any, sandbox string, more ...string) {
		cmd := exec.CommandContext(t.Context(), node, append([]string{script, sandbox, chromium}, more...)...)
		cmd.Dir, cmd.Stderr = "../../cloud/page/browser", t.Output()
		out, err := cmd.Output()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, found))
	}
}

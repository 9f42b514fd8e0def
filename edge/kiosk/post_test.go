package kiosk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/localpage"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

var dock = scanner.Config{Name: "dock", Port: "/dev/x", Use: scanner.UseLabels, Post: "Dock 3", Step: otep.Received, Choices: []otep.Code{otep.Received, otep.PackageOutbound}}

func newPost(f *fake) *Kiosk {
	return New(Config{DeviceCode: "POST-1", Codes: f, Loop: f, Link: f, Store: func() StoreState { return StoreState{Waiting: [2]uint64{2, 5}} }, Now: f.now, Scanners: func() []scanner.Config { return []scanner.Config{chosen(f)} },
		ChooseStep: func(_ context.Context, name string, step otep.Code) error {
			if name != "dock" || !slices.Contains(dock.Choices, step) {
				return scanner.ErrStep
			}
			_, err := f.ask(string(step))
			return err
		}})
}

// chosen is the scanner with the step that was chosen last.
func chosen(f *fake) scanner.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := dock
	if n := len(f.asked); n > 0 {
		c.Step = otep.Code(f.asked[n-1])
	}
	return c
}

func TestTheStepIsChosenAtTheScreen(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState()}
	k := newPost(f)
	status, _, _ := call(k, "POST", "/api/post/step", `{"scanner":"dock","step":"package_outbound"}`)
	require.Equal(t, 200, status)
	require.Equal(t, "package_outbound", k.postView().Scanners[0].Step)
	for _, bad := range []string{`{"scanner":"dock","step":"delivered"}`, `{"scanner":"x","step":"received"}`} {
		status, body, _ := call(k, "POST", "/api/post/step", bad)
		require.Equal(t, 422, status)
		require.JSONEq(t, `{"outcome":"refused","why":"step"}`, body)
	}
	f.err = errors.New("the disk fails")
	status, body, _ := call(k, "POST", "/api/post/step", `{"scanner":"dock","step":"received"}`)
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"outcome":"store"}`, body)
	status, _, _ = call(newKiosk(f, io.Discard), "POST", "/api/post/step", `{"scanner":"dock","step":"received"}`)
	require.Equal(t, 404, status)
}

func scan(at time.Time, outcome scanner.Outcome, text string) scanner.Result {
	return scanner.Result{At: at, Scanner: "dock", Use: scanner.UseLabels, Post: "Dock 3", Step: "received", Outcome: outcome, Text: text}
}

// The page shows the newest scans first, and counts those of the day.
func TestThePostShowsItsScans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newPost(&fake{state: newState(), online: true})
		v := k.postView()
		require.Equal(t, PostView{DeviceCode: "POST-1", Online: true, Store: "ok", Waiting: 7, Scanners: []PostScanner{{"dock", "Dock 3", "received", dock.Choices}}, SinceMS: time.Now().UnixMilli(), Scans: v.Scans,
			Counts: map[string]int64{"ok": 0, "repeated": 0, "ambiguous": 0, "unreadable": 0, "refused": 0, "failed": 0}}, v)
		require.Equal(t, []PostScan{}, v.Scans, "the page wants a list")
		for i := range 30 {
			k.Scanned(scan(time.Now(), scanner.Accepted, fmt.Sprint("SR-", i)))
		}
		k.Scanned(scan(time.Now(), scanner.Refused, ""))
		k.Scanned(scanner.Result{Use: scanner.UseCodes, Outcome: scanner.Refused})
		v = k.postView()
		require.Len(t, v.Scans, lastScans)
		require.Equal(t, PostScan{N: 31, AtMS: time.Now().UnixMilli(), Scanner: "dock", Outcome: "refused"}, v.Scans[0])
		require.Equal(t, "SR-29", v.Scans[1].Text)
		require.Equal(t, []int64{30, 1}, []int64{v.Counts["ok"], v.Counts["refused"]})
		time.Sleep(25 * time.Hour)
		v = k.postView()
		require.Zero(t, v.Counts["ok"], "another day")
		y, m, d := time.Now().Date()
		require.Equal(t, time.Date(y, m, d, 0, 0, 0, 0, time.Local).UnixMilli(), v.SinceMS)
		require.Len(t, v.Scans, lastScans)
	})
}

func TestOnlyAPostHasThePage(t *testing.T) {
	t.Parallel()
	paths := []string{"/post", "/post.js", "/post.css", "/post-texts.json"}
	for _, path := range paths {
		status, _, _ := call(newKiosk(&fake{state: newState()}, io.Discard), "GET", path, "")
		require.Equal(t, 404, status, path)
		status, body, head := call(newPost(&fake{state: newState()}), "GET", path, "")
		require.Equal(t, 200, status, path)
		require.NotContains(t, body, "://", path)
		require.NotRegexp(t, `<script[^>]*>[^<]`, body, "inline script")
		require.Equal(t, localpage.Policy, head.Get("Content-Security-Policy"))
		status, _, _ = call(newPost(&fake{state: newState()}), "GET", path, "", func(r *http.Request) { r.Host = "evil.example" })
		require.Equal(t, http.StatusMisdirectedRequest, status)
	}
}

// A post has no doors: nothing of a cabinet's screen is there.
func TestAPostHasNoCabinetsPage(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState()}
	k := newPost(f)
	k.cfg.Post = true
	k = New(k.cfg)
	status, _, header := call(k, "GET", "/", "")
	require.Equal(t, []any{303, "/post"}, []any{status, header.Get("Location")})
	for _, path := range []string{"/post", "/post.js", "/post.css", "/camera.js", "/operator.json", "/post-texts.json"} {
		status, _, _ := call(k, "GET", path, "")
		require.Equal(t, 200, status, path)
	}
	for _, path := range []string{"/kiosk.js", "/api/state", "/api/events"} {
		status, _, _ := call(k, "GET", path, "")
		require.Equal(t, 404, status, path)
	}
	for _, path := range []string{"/api/code", "/api/scan", "/api/label", "/api/reopen", "/api/done"} {
		status, _, _ := call(k, "POST", path, `{"code":"123456"}`)
		require.Equal(t, 404, status, path)
	}
	require.Empty(t, f.asked)
}

func TestEveryLanguageHasEveryWordOfThePost(t *testing.T) {
	t.Parallel()
	require.Len(t, postTexts, len(texts))
	hole := regexp.MustCompile(`\{\w+\}`)
	for lang, words := range postTexts {
		require.Contains(t, texts, lang)
		require.Len(t, words, len(postTexts["en"]), lang)
		for key, en := range postTexts["en"] {
			require.NotEmpty(t, words[key], "%s: %s", lang, key)
			require.ElementsMatch(t, hole.FindAllString(en, -1), hole.FindAllString(words[key], -1), "%s: %s", lang, key)
		}
	}
	for _, step := range scanner.Steps() {
		require.Contains(t, postTexts["en"], string(step))
	}
	raw, err := json.Marshal(newPost(&fake{state: newState()}).postView().Counts)
	require.NoError(t, err)
	var counts map[string]int64
	require.NoError(t, json.Unmarshal(raw, &counts))
	for o := range counts {
		require.Contains(t, postTexts["en"], o)
		require.Contains(t, postTexts["en"], "short_"+o)
	}
	for _, s := range []string{"ok", "full", "working", "broken"} {
		require.Contains(t, postTexts["en"], "store_"+s)
	}
}

// In a real browser: each outcome is said in words and with a sign of its own,
// nothing is wider than the window, axe finds nothing, and a program that ends is
// noticed.
func TestThePostInARealBrowser(t *testing.T) {
	ring.SkipUnlessCheck(t, "a browser")
	browser := browsertest.Start(t)
	if browser == nil {
		return
	}
	k := newPost(&fake{state: newState()})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, ln) }()
	x := browser.Open("http://" + ln.Addr().String() + "/post")
	look := func(name string) {
		for _, size := range [][2]int{{1280, 800}, {390, 844}} {
			x.Window(size[0], size[1], "light")
			x.CheckAccess(fmt.Sprint(name, " ", size[0]))
			var wide bool
			x.Eval(`document.documentElement.scrollWidth > document.documentElement.clientWidth + 1`, &wide)
			require.False(t, wide, "%s: wider than %d", name, size[0])
			x.Picture(fmt.Sprint("post-", name, "-", size[0]))
		}
	}
	x.Await(`document.querySelector("#newest").textContent === "Scan a label"`)
	look("ready")
	for i, o := range []scanner.Outcome{scanner.Repeated, scanner.Ambiguous, scanner.Unreadable, scanner.Refused, scanner.Failed, scanner.Accepted} {
		text := "00340123450000000017"
		if o == scanner.Refused {
			text = ""
		}
		k.Scanned(scan(time.Now(), o, text))
		x.Await(fmt.Sprintf(`document.querySelectorAll("#scans li").length === %d && document.querySelector("#newest").classList.contains(%q)`, i+1, o))
		require.Contains(t, x.Text("#newest"), postTexts["en"][string(o)])
		look(string(o))
	}
	x.Click(`.steps button[aria-pressed="false"]`)
	x.Await(`document.querySelector("#scanners").textContent.includes("Dock 3 · Outbound")`)
	x.Click("#sound")
	x.Await(`document.querySelector("#sound").getAttribute("aria-pressed") === "true"`)
	x.Click(`#languages [data-lang="de"]`)
	x.Await(`document.querySelector("#newest").textContent.includes("Gespeichert")`)
	look("de")
	stop()
	require.NoError(t, <-done)
	x.Await(`document.querySelector("#newest").textContent.includes("antwortet nicht")`)
}

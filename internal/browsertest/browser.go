// Package browsertest drives a real Chromium from tests by its debugging
// protocol: what a person clicks, types and sees at pages of several programs. Only
// tests import it. A Tab belongs to one goroutine; failures end the test.
package browsertest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// Pictures names the variable with a folder for screenshots.
const Pictures = "POSTERN_BROWSER_PICTURES"

// axe is the checker of accessibility that the pages' own browser tests install,
// as tests of programs see it from their folder.
const axe = "../../cloud/page/browser/node_modules/axe-core/axe.min.js"

// Chromium is a browser that is driven by its debugging protocol.
type Chromium struct {
	t    *testing.T
	http string // address of the protocol
}

// Program is the path of Chromium. The shell without windows is the same engine
// and takes half the processor time, so it comes first.
func Program() (string, error) {
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil {
		return path, nil
	}
	return exec.LookPath("chromium")
}

// Tools are the paths of Chromium and of Node, for scripts that drive the one from the
// other. A machine that lacks one skips the test, or fails it where they are required.
func Tools(t *testing.T) (chromium, node string) {
	t.Helper()
	chromium, err := Program()
	node, lost := exec.LookPath("node")
	ring.Needs(t, ring.EnvBrowsers, "chromium or node", err == nil && lost == nil)
	return chromium, node
}

// Start starts the browser until the test ends; nil when this machine has none, and in
// the quick ring.
func Start(t *testing.T) *Chromium {
	t.Helper()
	program, err := Program()
	if !ring.Check() || err != nil {
		if ring.Check() && os.Getenv(ring.EnvBrowsers) == "require" {
			t.Fatal("chromium is missing (Debian's chromium)")
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "postern-chromium-")
	require.NoError(t, err)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--lang=en", "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its own children
		_ = cmd.Wait()                                      // killed
		RemoveFolder(t, dir)
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := regexp.MustCompile(`listening on ws://([^/]+)/`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it never waits for a reader
			return &Chromium{t: t, http: "http://" + m[1]}
		}
	}
	t.Fatal("the browser ended before it listened")
	return nil
}

// RemoveFolder removes what processes that are just ending may still write to.
func RemoveFolder(t *testing.T, dir string) {
	t.Helper()
	var err error
	for range 100 {
		if err = os.RemoveAll(dir); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.NoError(t, err)
}

// Tab is one page of the browser.
type Tab struct {
	t    *testing.T
	conn *websocket.Conn
	id   int
}

// Open shows an address in a new tab. It may lead to another of the same host.
func (c *Chromium) Open(address string) *Tab {
	c.t.Helper()
	q, err := http.NewRequestWithContext(c.t.Context(), http.MethodPut, c.http+"/json/new?"+url.QueryEscape(address), nil)
	require.NoError(c.t, err)
	r, err := http.DefaultClient.Do(q)
	require.NoError(c.t, err)
	defer r.Body.Close()
	var out struct {
		Debugger string `json:"webSocketDebuggerUrl"`
	}
	require.NoError(c.t, json.NewDecoder(r.Body).Decode(&out))
	conn, _, err := websocket.DefaultDialer.DialContext(c.t.Context(), out.Debugger, nil)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	x := &Tab{t: c.t, conn: conn}
	// A page behind another counts as one that has the focus: what is typed into it
	// would be lost.
	x.Call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	at, err := url.Parse(address)
	require.NoError(c.t, err)
	host := at.Scheme + "://" + at.Host
	ring.Await(c.t, func() bool {
		raw, err := x.try("Runtime.evaluate", map[string]any{"expression": `document.readyState + " " + location.href`})
		return err == nil && strings.Contains(string(raw), "complete "+host+"/")
	}, "the page of "+host)
	x.Call("Page.bringToFront", nil)
	return x
}

// Call sends one command of the protocol and waits for its answer.
func (x *Tab) Call(method string, params map[string]any) json.RawMessage {
	x.t.Helper()
	raw, err := x.try(method, params)
	require.NoError(x.t, err)
	return raw
}

// try is call with the protocol's error, as when the page is being exchanged.
func (x *Tab) try(method string, params map[string]any) (json.RawMessage, error) {
	x.t.Helper()
	x.id++
	require.NoError(x.t, x.conn.WriteJSON(map[string]any{"id": x.id, "method": method, "params": params}))
	for {
		var m struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		require.NoError(x.t, x.conn.ReadJSON(&m))
		switch {
		case m.ID != x.id:
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		default:
			return m.Result, nil
		}
	}
}

// Eval runs an expression in the page, a promise to its end, and reads its value
// into out; nil: the value does not matter.
func (x *Tab) Eval(expression string, out any) {
	x.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	raw := x.Call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	require.NoError(x.t, json.Unmarshal(raw, &r))
	require.Empty(x.t, r.Exception, "%s", r.Exception)
	if out != nil {
		require.NoError(x.t, json.Unmarshal(r.Result.Value, out), "%s", raw)
	}
}

// Await waits until a condition holds in the page, which is not exchanged for
// another meanwhile.
func (x *Tab) Await(condition string) {
	x.t.Helper()
	x.Arrive(condition)
}

// Press types one key, as a keyboard does.
func (x *Tab) Press(key string) {
	x.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "text": key}
	if key == "Enter" {
		down = map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": 13, "text": "\r"}
	}
	if strings.HasPrefix(key, "Arrow") {
		delete(down, "text")
	}
	x.Call("Input.dispatchKeyEvent", down)
	x.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// Click presses the mouse in the middle of an element.
func (x *Tab) Click(selector string) {
	x.t.Helper()
	var at struct{ X, Y float64 }
	x.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return {X: r.x + r.width/2, Y: r.y + r.height/2}; })()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		x.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// Window gives the page a size and a scheme of colours.
func (x *Tab) Window(width, height int, scheme string) {
	x.t.Helper()
	x.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
	x.Call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// Picture keeps a screenshot of the whole page where pictures are wanted.
func (x *Tab) Picture(name string) {
	x.t.Helper()
	dir := os.Getenv(Pictures)
	if dir == "" {
		return
	}
	var out struct {
		Data string `json:"data"`
	}
	require.NoError(x.t, json.Unmarshal(x.Call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}), &out))
	b, err := base64.StdEncoding.DecodeString(out.Data)
	require.NoError(x.t, err)
	require.NoError(x.t, os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644))
}

// CheckAccess fails on a page that is wider than its window or holds a control
// without a name, and on all that axe objects to where axe is installed.
func (x *Tab) CheckAccess(where string) {
	x.t.Helper()
	var wide bool
	x.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide)
	require.False(x.t, wide, "%s: wider than its window", where)
	script, err := os.ReadFile(axe)
	if err != nil {
		require.NotEqual(x.t, "require", os.Getenv(ring.EnvBrowsers), "axe-core is missing (npm ci in cloud/page/browser)")
		x.t.Logf("%s: axe-core is missing (npm ci in cloud/page/browser)", where)
		return
	}
	// A text that is half-way in has less contrast than the one that is read.
	x.Eval(`Promise.allSettled(document.getAnimations().filter((a) => a.playState === "running" && a.effect.getComputedTiming().endTime !== Infinity).map((a) => a.finished)).then(() => 0)`, nil)
	x.Eval(string(script)+"; 0", nil)
	var violations []string
	x.Eval(`axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html + " " + n.failureSummary)))`, &violations)
	verdict.RecordPages(x.t, "pages in the hands of people", map[string][]string{where: violations})
	require.Empty(x.t, violations, where)
}

// Fill types a text into a field, in place of what it holds.
func (x *Tab) Fill(selector, text string) {
	x.t.Helper()
	x.Call("Page.bringToFront", nil)
	x.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.select?.(); })()`, selector), nil)
	x.Call("Input.insertText", map[string]any{"text": text})
}

// Arrive waits until a condition holds in the page, also when the page is
// exchanged for another meanwhile.
func (x *Tab) Arrive(condition string) {
	x.t.Helper()
	defer func() {
		if x.t.Failed() {
			raw, _ := x.try("Runtime.evaluate", map[string]any{"expression": `location.href + " " + document.body.innerText`, "returnByValue": true})
			x.t.Logf("the page is %s", raw)
		}
	}()
	ring.Await(x.t, func() bool {
		raw, err := x.try("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf(`document.readyState === "complete" && Boolean(%s)`, condition), "returnByValue": true})
		return err == nil && strings.Contains(string(raw), `"value":true`)
	}, "in the page: "+condition)
}

// Text is the text of an element as it is shown.
func (x *Tab) Text(selector string) (text string) {
	x.t.Helper()
	x.Eval(fmt.Sprintf(`document.querySelector(%q).innerText`, selector), &text)
	return strings.TrimSpace(text)
}

// Has reports whether the page has an element.
func (x *Tab) Has(selector string) (has bool) {
	x.t.Helper()
	x.Eval(fmt.Sprintf(`document.querySelector(%q) !== null`, selector), &has)
	return has
}

// Attr is an attribute of an element, "" when it has none.
func (x *Tab) Attr(selector, name string) (value string) {
	x.t.Helper()
	x.Eval(fmt.Sprintf(`document.querySelector(%q).getAttribute(%q) ?? ""`, selector, name), &value)
	return value
}

// Search is the part of the page's address from its question mark on.
func (x *Tab) Search() (text string) {
	x.t.Helper()
	x.Eval(`location.search`, &text)
	return text
}

// Go shows another address in the tab.
func (x *Tab) Go(address string) {
	x.t.Helper()
	x.Call("Page.navigate", map[string]any{"url": address})
	x.Arrive(fmt.Sprintf(`location.href === %q`, address))
}

package main

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
)

// Variables of the browser test: browserTests is "require" where a missing browser
// is a failure; pictures is a folder for screenshots.
const (
	browserTests = "POSTERN_BROWSER_TESTS"
	pictures     = "POSTERN_BROWSER_PICTURES"
)

// axe is the checker of accessibility that the pages' own browser tests install.
const axe = "../../cloud/page/browser/node_modules/axe-core/axe.min.js"

// chromium is a browser that is driven by its debugging protocol.
type chromium struct {
	t    *testing.T
	http string // address of the protocol
}

// newChromium starts the browser; nil when this machine has none.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv(browserTests) == "require" {
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
		removeFolder(t, dir)
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := regexp.MustCompile(`listening on ws://([^/]+)/`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it never waits for a reader
			return &chromium{t: t, http: "http://" + m[1]}
		}
	}
	t.Fatal("the browser ended before it listened")
	return nil
}

// removeFolder removes what processes that are just ending may still write to.
func removeFolder(t *testing.T, dir string) {
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

// tab is one page of the browser.
type tab struct {
	t    *testing.T
	conn *websocket.Conn
	id   int
}

// open shows an address in a new tab.
func (c *chromium) open(address string) *tab {
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
	x := &tab{t: c.t, conn: conn}
	ring.Await(c.t, func() bool {
		raw, err := x.try("Runtime.evaluate", map[string]any{"expression": `document.readyState + " " + location.href`})
		return err == nil && strings.Contains(string(raw), "complete "+address)
	}, address, " shown")
	x.call("Page.bringToFront", nil)
	return x
}

// call sends one command of the protocol and waits for its answer.
func (x *tab) call(method string, params map[string]any) json.RawMessage {
	x.t.Helper()
	raw, err := x.try(method, params)
	require.NoError(x.t, err)
	return raw
}

// try is call with the protocol's error, as when the page is being exchanged.
func (x *tab) try(method string, params map[string]any) (json.RawMessage, error) {
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

// eval runs an expression in the page, a promise to its end, and reads its value
// into out; nil: the value does not matter.
func (x *tab) eval(expression string, out any) {
	x.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	raw := x.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	require.NoError(x.t, json.Unmarshal(raw, &r))
	require.Empty(x.t, r.Exception, "%s", r.Exception)
	if out != nil {
		require.NoError(x.t, json.Unmarshal(r.Result.Value, out), "%s", raw)
	}
}

// await waits in the page until a condition holds, looking at each animation
// frame's distance; the page's own clock bounds it.
func (x *tab) await(condition string) {
	x.t.Helper()
	var ok bool
	x.eval(fmt.Sprintf(`new Promise((done) => { const end = Date.now() + 60000; (function look() {
		let ok = false; try { ok = Boolean(%s); } catch { ok = false; }
		if (ok || Date.now() > end) done(ok); else setTimeout(look, 20); })(); })`, condition), &ok)
	require.True(x.t, ok, "in the page: %s", condition)
}

// press types one key, as a keyboard does.
func (x *tab) press(key string) {
	x.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "text": key}
	if key == "Enter" {
		down = map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": 13, "text": "\r"}
	}
	if strings.HasPrefix(key, "Arrow") {
		delete(down, "text")
	}
	x.call("Input.dispatchKeyEvent", down)
	x.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// click presses the mouse in the middle of an element.
func (x *tab) click(selector string) {
	x.t.Helper()
	var at struct{ X, Y float64 }
	x.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return {X: r.x + r.width/2, Y: r.y + r.height/2}; })()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		x.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// window gives the page a size and a scheme of colours.
func (x *tab) window(width, height int, scheme string) {
	x.t.Helper()
	x.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
	x.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// picture keeps a screenshot of the whole page where pictures are wanted.
func (x *tab) picture(name string) {
	x.t.Helper()
	dir := os.Getenv(pictures)
	if dir == "" {
		return
	}
	var out struct {
		Data string `json:"data"`
	}
	require.NoError(x.t, json.Unmarshal(x.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}), &out))
	b, err := base64.StdEncoding.DecodeString(out.Data)
	require.NoError(x.t, err)
	require.NoError(x.t, os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644))
}

// checkAccess fails on a page that is wider than its window or holds a control
// without a name, and on all that axe objects to where axe is installed.
func (x *tab) checkAccess(where string) {
	x.t.Helper()
	var wide bool
	x.eval(`document.documentElement.scrollWidth > innerWidth`, &wide)
	require.False(x.t, wide, "%s: wider than its window", where)
	script, err := os.ReadFile(axe)
	if err != nil {
		require.NotEqual(x.t, "require", os.Getenv(browserTests), "axe-core is missing (npm ci in cloud/page/browser)")
		x.t.Logf("%s: axe-core is missing (npm ci in cloud/page/browser)", where)
		return
	}
	x.eval(string(script)+"; 0", nil)
	var violations []string
	x.eval(`axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html + " " + n.failureSummary)))`, &violations)
	require.Empty(x.t, violations, where)
}

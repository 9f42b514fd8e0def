package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// Variables of the browser test: set BrowserTests to "require" where a missing
// browser is a failure; Pictures is a folder for screenshots.
const (
	browserTests = "POSTERN_BROWSER_TESTS"
	pictures     = "POSTERN_BROWSER_PICTURES"
)

// tool finds a program or file of the browser test.
func tool(t *testing.T, what string, ok bool) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv(browserTests) == "require" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing (npm ci in cloud/page/browser; Debian's chromium)", what)
}

type findings struct {
	Axe       map[string][]string `json:"axe"`
	Console   []string            `json:"console"`
	Foreign   []string            `json:"foreign"`
	Overflow  []string            `json:"overflow"`
	Live      bool                `json:"live"`
	Stale     bool                `json:"stale"`
	Refreshed bool                `json:"refreshed"`
	Motion    *int                `json:"motion"`
	Skip      string              `json:"skip"`
	NoScript  struct {
		Track    string `json:"track"`
		Language string `json:"language"`
		Doors    int    `json:"doors"`
		Hint     bool   `json:"hint"`
		Out      bool   `json:"out"`
	} `json:"noscript"`
}

// In a real browser: nothing that axe objects to on any page, in light and
// dark, on a desk and on a telephone; nothing from other hosts; nothing that
// the pages' own policy refuses; the console follows; everything works without
// script.
func TestPagesInARealBrowser(t *testing.T) {
	node, err := exec.LookPath("node")
	tool(t, "node", err == nil)
	chromium, err := exec.LookPath("chromium")
	tool(t, "chromium", err == nil)
	_, err = os.Stat(filepath.Join("browser", "node_modules", "playwright-core"))
	tool(t, "node_modules", err == nil)

	w, s, _ := server(t, nil)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	change := changer(t, w)

	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	defer cancel()
	args := []string{"drive.mjs", "http://" + ln.Addr().String(), w.Emails[cloud.ClientAdmin], webtest.Password, chromium}
	if dir := os.Getenv(pictures); dir != "" {
		args = append(args, dir)
	}
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Dir = "browser"
	cmd.Env = append(os.Environ(), "CHANGE="+change)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s", errs.String())
	stop, end := context.WithTimeout(context.Background(), 10*time.Second)
	defer end()
	require.NoError(t, s.Shutdown(stop))
	require.NoError(t, <-done)

	var f findings
	require.NoError(t, json.Unmarshal(out.Bytes(), &f))
	require.Len(t, f.Axe, 22)
	for page, violations := range f.Axe {
		require.Empty(t, violations, page)
	}
	require.Empty(t, f.Console, "errors in the browser's console")
	require.Empty(t, f.Foreign, "requests to other hosts")
	require.Empty(t, f.Overflow, "pages wider than the window")
	require.True(t, f.Live, "an event reaches the console")
	require.True(t, f.Stale, "a page that cannot be refreshed says so")
	require.True(t, f.Refreshed, "and recovers")
	require.NotNil(t, f.Motion)
	require.Zero(t, *f.Motion, "animations although less motion was asked for")
	require.Equal(t, "skip true", f.Skip)
	require.Equal(t, "Ready for collection", f.NoScript.Track)
	require.Equal(t, "Abholbereit", f.NoScript.Language)
	require.Equal(t, 24, f.NoScript.Doors)
	require.True(t, f.NoScript.Hint)
	require.True(t, f.NoScript.Out)
}

// changer gives an address that closes a door when it is asked for.
func changer(t *testing.T, w *webtest.World) string {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		err := w.DB.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{Doors: []cloud.DoorPresent{{DeviceID: 88, Door: 7, DoorStatus: "closed"}}}, nil
		})
		if err != nil {
			ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		}
	}}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, ln.Close())
		<-done
	})
	return fmt.Sprintf("http://%s/", ln.Addr())
}

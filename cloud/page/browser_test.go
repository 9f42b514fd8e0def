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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/approval"
	otepdocs "github.com/postern-io/postern/cloud/docs/otep"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
	"github.com/postern-io/postern/protocol/otep"
)

// tool finds a program or file of the browser test.
func tool(t *testing.T, what string, ok bool) {
	t.Helper()
	ring.Needs(t, ring.EnvBrowsers, what+" (npm ci in cloud/page/browser; Debian's chromium)", ok)
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
	Decided struct {
		Noscript, Rejected, Next, Keyboard string
		Waiting                            string
	} `json:"decided"`
	Hooks struct {
		Filtered, Repeat      int
		Event, Again, Reached string
		Opened                bool
	} `json:"hooks"`
}

// In a real browser: nothing that axe objects to on any page, in light and
// dark, on a desk and on a telephone; nothing from other hosts; nothing that
// the pages' own policy refuses; the console follows; everything works without
// script.
func TestPagesInARealBrowser(t *testing.T) {
	w, s, feed := server(t, nil)
	r := &rig{t: t, w: w, f: feed}
	long := r.ask(w.Tokens[cloud.Broker], func(in *approval.ProposeInput) {
		in.Summary, in.Reason = strings.Repeat("Cancelorder120045", 9), strings.Repeat("x", 400)
		in.Arguments = json.RawMessage(`{"orders":["` + strings.Repeat("y", 700) + `"` + strings.Repeat(`,1`, 60) + `]}`)
	})
	first := r.ask(w.Tokens[cloud.Broker], nil)
	r.ask(w.Tokens[cloud.Broker], func(in *approval.ProposeInput) { in.Summary, in.Risk = "Hold order 7", "medium" })
	fillHooks(t, w)
	out := drive(t, s, []string{"CHANGE=" + changer(t, w), fmt.Sprint("HOOKS=", hookDone, " ", hookRetrying), "APPROVALS=" + string(long) + " " + string(first)}, "drive.mjs", w.Emails[cloud.ClientAdmin], webtest.Password)
	var f findings
	require.NoError(t, json.Unmarshal(out, &f))
	require.Len(t, f.Axe, ring.Count(14+1, 3*14)+1+2+1+2+1)
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
	require.Equal(t, "Approved, and done.", f.Decided.Noscript)
	require.Contains(t, f.Decided.Next, "Cancelorder120045", "the one that waits longest comes next")
	require.Equal(t, "Rejected. Nothing was done.", f.Decided.Rejected)
	require.Equal(t, "note approve reject", f.Decided.Keyboard)
	require.Equal(t, "1", f.Decided.Waiting)
	require.Equal(t, 1, feed.tool.runs)
	require.Equal(t, 1, f.Hooks.Filtered)
	require.Equal(t, "order.status_change", f.Hooks.Event)
	require.Contains(t, f.Hooks.Again, "on its way once more")
	require.Equal(t, 1, f.Hooks.Repeat, "the new delivery names the one it repeats")
	require.True(t, f.Hooks.Opened)
	require.Equal(t, "submit", f.Hooks.Reached)
}

// drive serves s and runs a script of the browser folder against it, with a
// browser. The script gets the address, args, the browser and perhaps a folder
// for pictures.
func drive(t *testing.T, s *rest.Server, env []string, script string, args ...string) []byte {
	t.Helper()
	return node(t, s, env, script, withBrowser(t, args)...)
}

// withBrowser are the arguments of a script that needs a browser.
func withBrowser(t *testing.T, args []string) []string {
	t.Helper()
	chromium, err := browsertest.Program()
	tool(t, "chromium", err == nil)
	args = append(args, chromium)
	if dir := os.Getenv(browsertest.Pictures); dir != "" {
		args = append(args, dir)
	}
	return args
}

// node serves s and runs a script of the browser folder against it. The script
// gets the address and args, and what it prints is given back.
func node(t *testing.T, s *rest.Server, env []string, script string, args ...string) []byte {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	out := nodeAt(t, "http://"+ln.Addr().String(), env, script, args...)
	require.NoError(t, s.Shutdown(context.Background()))
	require.NoError(t, <-done)
	return out
}

// nodeAt is node against what is served at an address.
func nodeAt(t *testing.T, base string, env []string, script string, args ...string) []byte {
	t.Helper()
	program, err := exec.LookPath("node")
	tool(t, "node", err == nil)
	list, err := os.ReadFile(filepath.Join("browser", "package.json"))
	require.NoError(t, err)
	var packages struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal(list, &packages))
	for name := range packages.Dependencies {
		_, err = os.Stat(filepath.Join("browser", "node_modules", name))
		tool(t, "node_modules/"+name, err == nil)
	}
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok { // time to say what the script said
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-10*time.Second))
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, program, append([]string{script, base}, args...)...)
	cmd.Dir = "browser"
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s", errs.String())
	var found struct{ Axe map[string][]string }
	if json.Unmarshal(out.Bytes(), &found) == nil { // not every script looks at pages
		verdict.RecordPages(t, "pages of the cloud", found.Axe)
	}
	return out.Bytes()
}

// The protocol's description in a real browser: nothing that axe objects to, on
// a desk, in the dark, on a telephone and in the widest languages; the
// validator answers with script, without it and by keyboard; paper shows
// documents whole.
func TestGuideInARealBrowser(t *testing.T) {
	ring.SkipUnlessFull(t, "its pages are tested without a browser, others in one")
	_, s, _ := server(t, nil)
	var f struct {
		Axe      map[string][]string `json:"axe"`
		Console  []string            `json:"console"`
		Foreign  []string            `json:"foreign"`
		Overflow []string            `json:"overflow"`
		Asked    []string            `json:"asked"`
		Clipped  *int                `json:"clipped"`
		Verdict  struct {
			Word, Good, Notice, Offline string
			Paths, Messages, Hints      []string
		} `json:"verdict"`
		NoScript struct {
			Word, Title string
			Paths       []string
			Kept        bool
		} `json:"noscript"`
		Keyboard struct {
			Skip, Next string
			Checked    bool
		} `json:"keyboard"`
	}
	require.NoError(t, json.Unmarshal(drive(t, s, nil, "guide.mjs"), &f))
	require.Len(t, f.Axe, 3*len(guidePaths)+4+1)
	for page, violations := range f.Axe {
		require.Empty(t, violations, page)
	}
	require.Empty(t, f.Console, "errors in the browser's console")
	require.Empty(t, f.Foreign, "requests to other hosts")
	require.Empty(t, f.Overflow, "pages wider than the window")
	report, err := otep.Validate([]byte(otepdocs.Faulty()), time.Now())
	require.NoError(t, err)
	var paths, messages, hints []string
	for _, e := range report.Errors {
		paths, messages, hints = append(paths, e.Path), append(messages, e.Message), append(hints, locale.Hint("de", e.Rule, e.Args...))
	}
	require.Equal(t, "Nicht konform", f.Verdict.Word)
	require.Equal(t, paths, f.Verdict.Paths)
	require.Equal(t, messages, f.Verdict.Messages)
	require.Equal(t, hints, f.Verdict.Hints)
	require.Equal(t, "Konform", f.Verdict.Good)
	require.Contains(t, f.Verdict.Notice, locale.Error("de", "OTEP_INVALID_JSON"))
	require.Contains(t, f.Verdict.Offline, locale.Word("de", "trouble.title"))
	for _, asked := range f.Asked {
		require.Equal(t, "/api/v1/otep/validate", asked, "with script the interface is asked")
	}
	require.NotEmpty(t, f.Asked)
	require.Equal(t, "Not conformant", f.NoScript.Word)
	require.Equal(t, paths, f.NoScript.Paths)
	require.True(t, f.NoScript.Kept, "the form keeps what was sent")
	require.Equal(t, "Specification", f.NoScript.Title)
	require.Equal(t, "skip", f.Keyboard.Skip)
	require.Equal(t, "Check", f.Keyboard.Next)
	require.True(t, f.Keyboard.Checked)
	require.NotNil(t, f.Clipped)
	require.Zero(t, *f.Clipped)
}

// The interface's description in a real browser: nothing that axe objects to;
// calls are sent and answered in the page; the token is nowhere but in its
// field; search, keyboard and reading without script work.
func TestDocsInARealBrowser(t *testing.T) {
	w, s, _ := server(t, nil)
	type said struct {
		Status, Body, Headers string
		Notice                []string
	}
	var f struct {
		Axe                              map[string][]string
		Console, Foreign, Overflow, Kept []string
		Calls                            map[string]json.RawMessage
		Curl, Moved, Back                string
		Search                           struct {
			All, One, Words, Again int
			Count                  string
			None                   bool
		}
		Keyboard struct {
			Skip, Next string
			Sent       bool
		}
		NoScript struct {
			Shown, Found         int
			Example, Token, Hint bool
		} `json:"noscript"`
	}
	token, email := w.Tokens[cloud.ClientAdmin], w.Emails[cloud.ClientAdmin]
	require.NoError(t, json.Unmarshal(drive(t, s, []string{"EMAIL=" + email, "PASSWORD=" + webtest.Password}, "docs.mjs", token), &f))
	answer := func(name string) (a said) {
		require.NoError(t, json.Unmarshal(f.Calls[name], &a), name)
		return a
	}
	require.Len(t, f.Axe, ring.Count(1, 3)*3+ring.Count(0, 4)+1)
	require.Equal(t, "/docs/operations/user.me", f.Moved, "where an address of old leads")
	require.Equal(t, "/docs/operations/user.login", f.Back)
	for page, violations := range f.Axe {
		require.Empty(t, violations, page)
	}
	require.Empty(t, f.Console, "errors in the browser's console")
	require.Empty(t, f.Foreign, "requests to other hosts")
	require.Empty(t, f.Overflow, "pages wider than the window")
	require.Empty(t, f.Kept, "the token is kept somewhere")

	for _, name := range []string{"good", "used"} {
		require.Equal(t, "200 OK", answer(name).Status)
		require.Contains(t, answer(name).Body, `"email": "`+email+`"`)
		require.Contains(t, answer(name).Headers, "x-request-id: ")
	}
	for name, code := range map[string]string{"none": "UNAUTHENTICATED", "wrong": "TOKEN_INVALID"} {
		require.Equal(t, "401 Unauthorized", answer(name).Status)
		require.Contains(t, answer(name).Body, code)
		require.Contains(t, answer(name).Notice[0], locale.Error("en", code))
	}
	require.Equal(t, "200 OK", answer("body").Status)
	require.Equal(t, "201 Created", answer("created").Status)
	require.Contains(t, answer("created").Body, `"order_ref": "DOCS-1"`)
	require.Equal(t, "409 Conflict", answer("twice").Status)
	require.Regexp(t, `This reference is used by order \d+\.`, answer("twice").Notice[0])
	require.Equal(t, "200 OK", answer("tracking light").Status)
	require.Contains(t, answer("tracking light").Body, webtest.Waiting)
	require.JSONEq(t, `"/api/v1/otep/trackings/SWP%201%2F2%3F%23%C3%BC/events"`, string(f.Calls["path"]))
	require.JSONEq(t, "false", string(f.Calls["dots"]), "dots are no name")
	require.JSONEq(t, "false", string(f.Calls["unsure"]), "what opens doors asks first")
	require.Regexp(t, "(?s)^curl -X GET 'http://127.0.0.1:[0-9]+/api/v1/user/me' .*Bearer \\$POSTERN_TOKEN\"", f.Curl)
	require.NotContains(t, f.Curl, token)

	ops := len(api.New(api.Config{}).Operations())
	require.Equal(t, ops, f.Search.All)
	require.Equal(t, 1, f.Search.One)
	require.Equal(t, fmt.Sprintf("1 / %d", ops), f.Search.Count)
	require.Positive(t, f.Search.Words)
	require.Less(t, f.Search.Words, ops/2)
	require.True(t, f.Search.None)
	require.Equal(t, ops, f.Search.Again)
	require.Equal(t, "skip", f.Keyboard.Skip)
	require.Equal(t, "H1", f.Keyboard.Next, "a step begins at the heading")
	require.True(t, f.Keyboard.Sent)
	require.Equal(t, ops, f.NoScript.Shown)
	require.Positive(t, f.NoScript.Found)
	require.Less(t, f.NoScript.Found, ops/4)
	require.True(t, f.NoScript.Example)
	require.False(t, f.NoScript.Token)
	require.True(t, f.NoScript.Hint)
}

// changer gives an address that closes a door when it is asked for.
func changer(t *testing.T, w *webtest.World) string {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		err := w.DB.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Doors: []cloud.DoorPresent{{DeviceID: 88, Door: 7, DoorStatus: "closed"}}}}, nil
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

// The guide for receivers of webhooks in a real browser: nothing that axe
// objects to with everything unfolded, nothing wider than a telephone; it
// unfolds by keyboard and without script.
func TestWebhookGuideInARealBrowser(t *testing.T) {
	ring.SkipUnlessFull(t, "its pages are tested without a browser, others in one")
	_, s, _ := server(t, nil)
	var f struct {
		Axe                        map[string][]string
		Console, Foreign, Overflow []string
		Folds, Opened              int
		Keyboard, NoScript         bool
	}
	require.NoError(t, json.Unmarshal(drive(t, s, nil, "hooks.mjs"), &f))
	require.Len(t, f.Axe, 4)
	for look, violations := range f.Axe {
		require.Empty(t, violations, look)
	}
	require.Empty(t, f.Console, "errors in the browser's console")
	require.Empty(t, f.Foreign, "requests to other hosts")
	require.Empty(t, f.Overflow, "wider than the window")
	require.Equal(t, f.Folds, f.Opened)
	require.Greater(t, f.Folds, 40)
	require.True(t, f.Keyboard)
	require.True(t, f.NoScript)
}

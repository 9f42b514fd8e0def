package page_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	platform "github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webhook/sender"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

const (
	livePath    = hooksPath + "/receivers/60"
	replaysPath = hooksPath + "/replays"
)

type anywhere struct{}

func (anywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func (anywhere) CheckURL(context.Context, string) error { return nil }

// receivers is the feature with the real sender, whose every connection goes to
// the feed's receiver.
func (f *feed) receivers(w *webtest.World) *webhook.Service {
	sender := sender.New(sender.Config{Store: w.DB, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: anywhere{}, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		to, _ := f.to.Load().(string)
		if to == "" {
			return nil, errors.New("nobody listens")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}})
	f.service = webhook.New(w.DB, anywhere{}).Sending(sender, func(event string) (cloud.HookSample, bool) { return cloud.SampleOf(platform.HookEvents(), event) })
	return f.service
}

// partner is a receiver that verifies, unless it is set to be sick or careless.
type partner struct {
	mu             sync.Mutex
	sick, careless bool
	tests          int
}

func (p *partner) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.Header.Get("X-Webhook-Test") == "1" {
		p.tests++
	}
	switch {
	case p.sick:
		w.WriteHeader(http.StatusInternalServerError)
	case !p.careless && signature.VerifyV2(q.Header.Get, body, time.Now(), []byte(levelSecret)) != nil:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func (p *partner) becomes(sick, careless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sick, p.careless = sick, careless
}

func (r *rig) live() *partner {
	r.t.Helper()
	return live(r.t, r.w, r.f)
}

// live adds a receiver that answers.
func live(t testing.TB, w *webtest.World, f *feed) *partner {
	t.Helper()
	p := &partner{}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	f.to.Store(s.Listener.Addr().String())
	now := time.Now().UTC().Truncate(time.Millisecond)
	e := cloud.Endpoint{ID: 60, BusinessID: 42, Kind: cloud.AccountEndpoint, URL: "http://live.example/in?key=very-private", SandboxEnabled: true, Events: []string{"*"}, Enabled: true, Status: "healthy", StatusSince: now, CreatedAt: now}
	w.Write(t, cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e},
		WebhookSettings: []cloud.WebhookSettings{{BusinessID: 42, Secret: []byte(levelSecret), URLs: map[string][]cloud.HookURL{
			cloud.HookOrderCreate: {{EndpointID: 60, URL: e.URL}}, cloud.HookStatusChange: {{EndpointID: 50, URL: "https://erp.example/hook?key=very-private"}}}}}}})
	return p
}

// waiting is a sender whose breaker is open for one address.
type waiting struct {
	url   string
	until time.Time
}

func (w waiting) SendNow(context.Context, cloud.Endpoint, cloud.OutboxWork, cloud.HookTweak) (cloud.OutboxResult, error) {
	return cloud.OutboxResult{}, errors.New("nothing is sent")
}

func (w waiting) Held(_ cloud.BusinessID, url string) (string, time.Time) {
	if url == w.url {
		return "breaker", w.until
	}
	return "", time.Time{}
}

// Who is left alone by the sender is degraded, and what the sender holds for it is
// not said to be on its way.
func TestWhoIsLeftAloneShows(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(time.Minute)
	r := newRig(t, func(cfg *page.Config) {
		cfg.Receivers = webhook.New(cfg.Store.(*store.DB), anywhere{}).Sending(waiting{"https://erp.example/hook?key=very-private", until}, nil)
	})
	fillHooks(t, r.w)
	r.signedIn()
	g := r.do("GET", hooksPath+"/receivers/50", nil)
	bounded(t, r, g)
	for _, want := range []string{"▲</span> Failing", "Left alone for now:", "it keeps failing", `until <time datetime="` + until.In(toronto(t)).Format(time.RFC3339)} {
		require.Contains(t, g.body, want)
	}
	g = r.do("GET", hooksPath, nil)
	require.Equal(t, 1, strings.Count(g.body, "Left alone for now:"))
	now := time.Now().UTC()
	e := cloud.OutboxEvent{EventID: "OCR-7", Event: "order.created", BusinessID: 42, Channel: cloud.ChannelAccount, CreatedAt: now, OccurredAt: now, Body: []byte("{}")}
	r.w.Write(t, cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: e, Deliveries: []cloud.OutboxDelivery{{ID: 9007, EventID: e.EventID, EndpointID: 50, BusinessID: 42, WebhookID: e.EventID, State: cloud.OutboxPending, CreatedAt: now}}}}}})
	_, err := r.w.DB.ClaimOutbox(t.Context(), 50, now.Add(time.Second), 1)
	require.NoError(t, err)
	g = r.do("GET", one(9007), nil)
	require.Contains(t, g.body, "Left alone for now: it keeps failing")
	require.NotContains(t, g.body, "being sent right now")
}

func toronto(t *testing.T) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	return l
}

// send posts a form as the page of a path gives it.
func (r *rig) send(path string, form url.Values, headers ...string) got {
	r.t.Helper()
	m := formField.FindStringSubmatch(r.do("GET", hooksPath, nil).body)
	require.NotNil(r.t, m)
	form.Set("form", m[1])
	return r.do("POST", path, form, headers...)
}

func does(what string) url.Values { return url.Values{"do": {what}} }

func TestAReceiverIsLookedAfterFromItsPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	p := r.live()
	login := r.do("GET", livePath, nil).header("Location")
	require.Equal(t, "/console/login?next="+url.QueryEscape(livePath), login)
	require.Contains(t, r.do("GET", login, nil).body, `value="`+livePath+`"`, "the login leads there")
	r.signedIn()
	g := r.do("GET", livePath, nil)
	require.Equal(t, 200, g.status, g.body)
	bounded(t, r, g)
	for _, want := range []string{"live.example/in?key=***", "healthy", "New orders", "Send a test", "Run the check-up", ">Pause<", "Make a new secret", "<option>order.created</option>", `data-refresh="15"`} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, g.body, "<option>order.deleted", "it is not told of those")

	g = r.send(livePath, url.Values{"do": {"test"}, "event": {"order.created"}})
	require.Equal(t, 303, g.status, g.body)
	require.Regexp(t, `^`+livePath+`\?test=[0-9]+$`, g.header("Location"))
	g = r.do("GET", g.header("Location"), nil)
	bounded(t, r, g)
	require.Contains(t, g.body, "The test arrived.")
	require.Equal(t, 1, p.tests)
	p.becomes(true, false)
	g = r.do("GET", r.send(livePath, url.Values{"do": {"test"}, "event": {"order.created"}}).header("Location"), nil)
	require.Contains(t, g.body, "The test did not arrive.")
	require.NotContains(t, r.do("GET", livePath+"?test=9001", nil).body, "The test ", "that was no test of it")

	p.becomes(false, false)
	g = r.send(livePath, does("check"))
	require.Equal(t, 200, g.status, g.body)
	bounded(t, r, g)
	require.Contains(t, g.body, "did everything right")
	require.Equal(t, strings.Count(g.body, `<tr><th scope="row"><a href=`), strings.Count(g.body, "</span> right</span>"))
	require.Contains(t, g.body, "Changed after signing")
	require.NotContains(t, g.body, "data-refresh", "what came of it would be gone")
	p.becomes(false, true)
	g = r.send(livePath, does("check"))
	require.Contains(t, g.body, "did not do everything right")
	require.Equal(t, 3, strings.Count(g.body, "</span> wrong</span>"), "another key, another body, an old time")

	g = r.send(livePath, does("pause"))
	require.Equal(t, livePath+"?done=pause", g.header("Location"))
	g = r.do("GET", livePath+"?done=pause", nil)
	bounded(t, r, g)
	for _, want := range []string{"What is for it is kept", "‖</span> Paused", "It was paused by hand.", "Resume and send", "Resume and give up"} {
		require.Contains(t, g.body, want)
	}
	require.Contains(t, r.do("GET", hooksPath, nil).body, "‖</span> Paused")
	g = r.send(livePath, does("send"))
	require.Contains(t, r.do("GET", g.header("Location"), nil).body, "✓</span> Healthy")
	require.Equal(t, livePath+"?done=fail", r.send(livePath, does("fail")).header("Location"))

	lines, err := r.w.DB.ListAudits(t.Context(), 42, 0, 100)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, l := range lines {
		if l.Actor == "account:1" && l.Target == "endpoint:60" {
			found[l.Action] = true
		}
	}
	for _, action := range []string{"webhook_test_sent", "webhook_url_paused", "webhook_url_resumed"} {
		require.True(t, found[action], "as when the interface is asked: %s", action)
	}
	require.Equal(t, 400, r.send(livePath, does("nonsense")).status)
	status := 303
	for i := 0; i < 1000 && status == 303; i++ { // a slow machine gets some back meanwhile
		status = r.send(livePath, does("test")).status
	}
	require.Equal(t, 429, status, "no faster than by the interface")
}

var shownSecret = regexp.MustCompile(`id="secret">([A-Za-z0-9_-]{43})<`)

func TestANewSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.live()
	r.signedIn()
	g := r.send(livePath, does("rotate"))
	require.Equal(t, 200, g.status, g.body)
	bounded(t, r, g)
	m := shownSecret.FindStringSubmatch(g.body)
	require.NotNil(t, m, g.body)
	require.NotContains(t, g.body, "data-refresh")
	require.NotContains(t, r.do("GET", livePath, nil).body, m[1])
	require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) error {
		s, err := v.WebhookSettings(42, 0)
		require.Equal(t, levelSecret, string(s.Secret), "the present one signs on")
		require.Equal(t, m[1], string(s.SecretNext))
		return err
	}))
	const ended = "the oldest secret no longer signs"
	require.NotContains(t, g.body, ended)
	g = r.send(livePath, does("rotate"))
	require.Equal(t, 200, g.status, g.body)
	bounded(t, r, g)
	require.Contains(t, g.body, ended, "a receiver that knows but that one refuses everything from now on")
	lines, err := r.w.DB.ListAudits(t.Context(), 42, 0, 100)
	require.NoError(t, err)
	for _, l := range lines {
		require.NotContains(t, l.Detail, m[1])
	}
	g = r.do("GET", hooksPath+"/receivers/51", nil)
	require.Contains(t, g.body, "Make a new secret", "that customer has none of its own, and gets one so")
	require.Equal(t, 200, r.send(hooksPath+"/receivers/51", does("rotate")).status)
}

// A check-up ends where nothing answers, and says why in words.
func TestACheckUpOfNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.live()
	r.f.to.Store("127.0.0.1:1") // where no server listens
	r.signedIn()
	g := r.send(livePath, does("check"))
	require.Equal(t, 200, g.status, g.body)
	bounded(t, r, g)
	require.Contains(t, g.body, "The host could not be reached", "in words, not CONNECT")
	require.NotContains(t, g.body, "CONNECT")
	require.Equal(t, 1, strings.Count(g.body, `<tr><th scope="row"><a href=`), "one is enough")
}

// No page does what the interface would refuse, and no other site does it in a
// user's name.
func TestWhoLooksAfterReceivers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	p := r.live()
	r.signedIn()
	all := []string{"test", "check", "pause", "send", "fail", "rotate"}
	for _, do := range all {
		require.Equal(t, 403, r.do("POST", livePath, url.Values{"do": {do}, "form": {strings.Repeat("x", 32)}}).status, "a forged form")
		require.Equal(t, 403, r.do("POST", livePath, does(do)).status)
		require.Equal(t, 403, r.send(livePath, does(do), "Sec-Fetch-Site", "cross-site").status)
		for _, id := range []string{"52", "999", "-1", "x"} { // another business's, and none
			require.Equal(t, 404, r.send(hooksPath+"/receivers/"+id, does(do)).status)
		}
		require.Contains(t, []int{404, 422}, r.send(hooksPath+"/receivers/5", does(do)).status, "a partner's")
	}
	for _, path := range []string{replaysPath, replaysPath + "/rpl_0"} {
		require.Equal(t, 403, r.do("POST", path, url.Values{"form": {strings.Repeat("x", 32)}}).status)
	}
	require.Equal(t, 404, r.do("GET", hooksPath+"/receivers/52", nil).status)
	require.NotContains(t, r.do("GET", hooksPath+"/receivers/52", nil).body, "rival")
	g := r.do("GET", hooksPath+"/receivers/5", nil)
	require.Equal(t, 200, g.status)
	bounded(t, r, g)
	require.NotContains(t, g.body, `name="do"`, "the partner's own")

	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	for _, path := range []string{livePath, hooksPath} { // as the catalogue has it
		g = r.do("GET", path, nil)
		require.Equal(t, 403, g.status)
		bounded(t, r, g)
		require.NotContains(t, g.body, "live.example")
	}
	form := strings.Repeat("x", 32)
	r.cookies["postern_form"] = form
	own := func(v url.Values) url.Values { v.Set("form", form); return v }
	for _, do := range all {
		require.Equal(t, 403, r.do("POST", livePath, own(does(do))).status, do)
	}
	require.Equal(t, 403, r.do("POST", replaysPath, own(url.Values{"send": {"yes"}})).status)
	require.Equal(t, 403, r.do("GET", replaysPath+"/rpl_0", nil).status)
	require.Zero(t, p.tests)
	lines, err := r.w.DB.ListAudits(t.Context(), 42, 0, 100)
	require.NoError(t, err)
	for _, l := range lines {
		require.NotContains(t, l.Action, "webhook", "nothing was done")
	}
}

func TestManyAreSentAgainFromAPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.live()
	r.signedIn()
	g := r.do("GET", hooksPath+"?state=failed&receiver=51", nil)
	require.Contains(t, g.body, "Count them")
	require.Contains(t, g.body, `<option value="failed" selected>`)
	g = r.send(replaysPath, url.Values{"state": {"failed"}})
	require.Equal(t, 200, g.status, g.body)
	bounded(t, r, g)
	require.Contains(t, g.body, "would be sent again: 1<")
	require.Contains(t, g.body, `name="send" value="yes"`)
	g = r.send(replaysPath, url.Values{"state": {"failed"}, "event": {"order.created"}})
	require.Contains(t, g.body, "would be sent again: 0<")
	require.NotContains(t, g.body, "Send them")
	g = r.send(replaysPath, url.Values{"state": {"success"}, "from": {"yesterday"}, "send": {"yes"}})
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, "nothing was sent: From")
	rows := func() int {
		all, err := r.w.DB.ListBusinessOutbox(t.Context(), cloud.BusinessLog{BusinessID: 42, Limit: 200})
		require.NoError(t, err)
		return len(all)
	}
	before := rows()
	start := func() string {
		g := r.send(replaysPath, url.Values{"state": {"failed"}, "send": {"yes"}})
		require.Equal(t, 303, g.status, g.body)
		require.Regexp(t, `^`+replaysPath+`/rpl_[0-9a-f]{32}$`, g.header("Location"))
		return g.header("Location")
	}
	job := start()
	g = r.do("GET", job, nil)
	bounded(t, r, g)
	for _, want := range []string{">running<", "0 of 1 are on their way", `data-refresh="5"`, "Stop it", `<progress id="share" max="100" value="0">`} {
		require.Contains(t, g.body, want)
	}
	require.Equal(t, job, r.send(job, url.Values{}).header("Location"))
	g = r.do("GET", job, nil)
	require.Contains(t, g.body, ">stopped<")
	require.NotContains(t, g.body, "Stop it")
	require.Equal(t, before, rows())

	job = start()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.f.service.Run(ctx, slog.New(slog.DiscardHandler)) }()
	ring.Await(t, func() bool { return strings.Contains(r.do("GET", job, nil).body, ">done<") })
	stop()
	require.NoError(t, <-done)
	require.Contains(t, r.do("GET", job, nil).body, "1 of 1 are on their way")
	require.Equal(t, before+1, rows())

	r.cookies = map[string]string{"postern_session": r.w.OtherAdmin}
	require.Equal(t, 404, r.do("GET", job, nil).status, "another business's")
	require.Equal(t, 404, r.send(job, url.Values{}).status)
}

func TestPagesOfReceiversInEveryLanguageAreClean(t *testing.T) {
	ring.SkipUnlessCheck(t, "one language; this one walks over all of them")
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.live()
	r.signedIn()
	job := r.send(replaysPath, url.Values{"state": {"failed"}, "send": {"yes"}}).header("Location")
	r.send(livePath, does("pause"))
	for _, l := range locale.All() {
		pages := []got{r.do("GET", livePath+"?done=pause&lang="+l.Code, nil), r.do("GET", hooksPath+"/receivers/51?lang="+l.Code, nil), r.do("GET", job+"?lang="+l.Code, nil),
			r.send(replaysPath, url.Values{"state": {"failed"}}), r.send(livePath, does("check"))}
		for _, g := range pages {
			require.Equal(t, 200, g.status)
			bounded(t, r, g)
			require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
			require.Equal(t, 1, strings.Count(g.body, "<h1"))
			require.NotRegexp(t, `\bhook[a-z]*\.[a-z]+\b[^/]`, g.body, "a word is missing")
			require.NotContains(t, g.body, "%!")
		}
	}
}

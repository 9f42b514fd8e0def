package page_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/webtest"
)

const (
	hooksPath   = "/console/webhooks"
	levelSecret = "level-secret-0123456789-of-acme"
	evil        = `<script>alert(1)</script>"'>` + "\u202e\x00"
)

// Deliveries that fillHooks makes.
const (
	hookDone, hookRetrying, hookGone, hookTheirs = 9001, 9002, 9003, 9004
)

// fillHooks gives the business addresses and deliveries of every kind, with
// attempts as a sender writes them; hostile is what receivers say.
func fillHooks(t testing.TB, w *webtest.World) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	endpoint := func(id cloud.EndpointID, b cloud.BusinessID, customer cloud.AccountID, url, status string) cloud.Endpoint {
		return cloud.Endpoint{ID: id, BusinessID: b, CustomerID: customer, Kind: cloud.AccountEndpoint, URL: url, Events: []string{"*"}, Enabled: true, Status: status, StatusSince: now, CreatedAt: now}
	}
	own, theirs := endpoint(50, 42, 0, "https://erp.example/hook?key=very-private", "healthy"), endpoint(51, 42, 5, "https://shop.example/in?"+evil+"=1", "gone")
	other := endpoint(52, 43, 0, "https://rival.example/", "healthy")
	event := func(id cloud.OutboxID, b cloud.BusinessID, to cloud.EndpointID, state cloud.OutboxState, max int) cloud.OutboxWrite {
		e := cloud.OutboxEvent{EventID: fmt.Sprint("OSC-", id), Event: "order.status_change", BusinessID: b, Channel: cloud.ChannelAccount, ReferenceType: "order", ReferenceID: fmt.Sprint("ref-", id%9000),
			OccurredAt: now, CreatedAt: now, Body: []byte(`{"event_id":"OSC-` + fmt.Sprint(id) + `","data":{"note":"` + `<b>bold</b> your code is 550618` + `","pickup_code":"` + webtest.PickupCode + `"}}`)}
		return cloud.OutboxWrite{Event: e, Deliveries: []cloud.OutboxDelivery{{ID: id, EventID: e.EventID, EndpointID: to, BusinessID: b, WebhookID: e.EventID, State: state, MaxAttempts: max,
			NextAt: now, CreatedAt: now.Add(time.Duration(id-9010) * time.Second), Setting: cloud.HookStatusChange}}}
	}
	urls := func(e cloud.Endpoint) map[string][]cloud.HookURL {
		return map[string][]cloud.HookURL{cloud.HookStatusChange: {{EndpointID: e.ID, URL: e.URL}}}
	}
	w.Write(t, cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{own, theirs, other},
		WebhookSettings: []cloud.WebhookSettings{{BusinessID: 42, Secret: []byte(levelSecret), URLs: urls(own)},
			{BusinessID: 42, CustomerID: 5, URLs: urls(theirs)}, {BusinessID: 43, URLs: urls(other)}}},
		OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{event(hookDone, 42, 50, cloud.OutboxPending, 6), event(hookRetrying, 42, 50, cloud.OutboxPending, 6), event(hookGone, 42, 51, cloud.OutboxPending, 6), event(hookTheirs, 43, 52, cloud.OutboxPending, 6)}}})
	finish := func(to cloud.EndpointID, results map[cloud.OutboxID]cloud.OutboxResult) {
		work, err := w.DB.ClaimOutbox(context.Background(), to, now.Add(time.Hour), 10)
		require.NoError(t, err)
		var all []cloud.OutboxResult
		for _, x := range work {
			r := results[x.Delivery.ID]
			r.ID, r.Generation, r.Attempts = x.Delivery.ID, x.Delivery.Generation, 1
			r.Attempt.DeliveryID, r.Attempt.Attempt, r.Attempt.At = r.ID, 1, now
			r.Attempt.RequestHead = "POST https://erp.example/hook?key=***\nX-Webhook-Signature: abcdef0123\n"
			all = append(all, r)
		}
		require.Len(t, all, len(results))
		lost, err := w.DB.FinishOutbox(context.Background(), all)
		require.NoError(t, err)
		require.Empty(t, lost)
	}
	finish(50, map[cloud.OutboxID]cloud.OutboxResult{
		hookDone: {State: cloud.OutboxSuccess, DeliveredAt: now, Attempt: &cloud.OutboxAttempt{URL: "https://erp.example/hook?key=***", HTTPStatus: 200, Duration: 40 * time.Millisecond, FirstByte: 30 * time.Millisecond,
			AnswerHead: "HTTP/1.1 200 OK\nX-Said: " + evil, AnswerBody: evil + " echo: code " + webtest.PickupCode + " secret " + levelSecret, Reused: true}},
		hookRetrying: {State: cloud.OutboxRetrying, NextAt: now.Add(2 * time.Hour), Attempt: &cloud.OutboxAttempt{URL: "https://erp.example/hook?key=***", HTTPStatus: 503, Duration: 1000 * time.Millisecond, DNS: 100 * time.Millisecond, Connect: 200 * time.Millisecond, TLS: 300 * time.Millisecond,
			FirstByte: 350 * time.Millisecond, PlannedAt: now.Add(-90 * time.Second), WaitReason: "breaker",
			ErrorCode: "HTTP_STATUS", Error: "the answer was 503 " + evil, RetryAfter: "120", AnswerBody: strings.Repeat("x", 4096)}}})
	finish(51, map[cloud.OutboxID]cloud.OutboxResult{hookGone: {State: cloud.OutboxFailed, Reason: "gone", Attempt: &cloud.OutboxAttempt{URL: "https://shop.example/in", HTTPStatus: 410, ErrorCode: "HTTP_STATUS", Error: "410"}}})
	finish(52, map[cloud.OutboxID]cloud.OutboxResult{hookTheirs: {State: cloud.OutboxSuccess, Attempt: &cloud.OutboxAttempt{URL: "https://rival.example/"}}})
}

var (
	hookRows  = regexp.MustCompile(`<th scope="row"><a href="/console/webhooks/([0-9]+)"`)
	olderPage = regexp.MustCompile(`href="([^"]+)">Older`)
)

func one(id int) string { return fmt.Sprint(hooksPath, "/", id) }

// bounded checks that nothing of others' is more than text on a page.
func bounded(t testing.TB, r *rig, g got) {
	t.Helper()
	clean(t, r, g)
	for _, bad := range []string{"<script>alert", "<b>bold", "\u202e", "\x00", "very-private", levelSecret} {
		require.NotContains(t, g.body, bad)
	}
}

func (r *rig) sendAgain(id int, headers ...string) got {
	r.t.Helper()
	m := formField.FindStringSubmatch(r.do("GET", hooksPath, nil).body)
	require.NotNil(r.t, m)
	return r.do("POST", one(id), url.Values{"form": {m[1]}}, headers...)
}

func TestThePagesShowWhatWasSentToWhom(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	g := r.do("GET", one(hookDone), nil)
	require.Equal(t, 303, g.status)
	login := g.header("Location")
	require.Equal(t, "/console/login?next="+url.QueryEscape(one(hookDone)), login)
	m := formField.FindStringSubmatch(r.do("GET", login, nil).body)
	g = r.do("POST", "/console/login", url.Values{"email": {r.w.Emails[cloud.ClientAdmin]}, "password": {webtest.Password}, "form": {m[1]}, "next": {one(hookDone)}})
	require.Equal(t, one(hookDone), g.header("Location"))

	g = r.do("GET", "/console", nil)
	require.Contains(t, g.body, `<a class="pill ob-failed" href="/console/webhooks">2 did not arrive</a>`)
	require.NotContains(t, g.body, "Nothing needs you.")
	require.NotContains(t, g.body, "Nothing needs you now.", "in the box of what needs people")
	require.Contains(t, g.body, `<a href="/console/webhooks"`, "the page has an entry of the menu")
	require.Contains(t, g.body, one(hookGone), "the card has all channels")
	require.NotContains(t, g.body, one(hookTheirs))

	g = r.do("GET", hooksPath, nil)
	require.Equal(t, 200, g.status)
	bounded(t, r, g)
	for _, want := range []string{"erp.example/hook?key=***", "own · Changes of status", "Changes of status", "✓</span> Healthy", "✗</span> Gone", "Customer customer", "Partner Swift Parcel", "hooks.example/postern",
		"order.status_change", "locker_delivery.delivered", "ref-1", "will be retried", ">failed<", ">503<", ">410<", "1/6", "2 did not arrive"} {
		require.Contains(t, strings.ReplaceAll(g.body, "</bdi>", ""), want)
	}
	require.NotContains(t, g.body, "rival.example")
	require.Less(t, strings.Index(g.body, one(hookGone)), strings.Index(g.body, one(hookDone)), "newest first")

	g = r.do("GET", one(hookDone), nil)
	require.Equal(t, 200, g.status)
	bounded(t, r, g)
	for _, want := range []string{"It has arrived", "OSC-9001", "Attempt 1", "HTTP 200", "30 ms", "10 ms", "X-Webhook-Signature: abcdef0123", "&lt;script&gt;alert(1)", "echo: code ******", "secret ******",
		"&lt;b&gt;bold", "your code is ******", "pickup_code&#34;: &#34;******", "on a kept connection", "Send again", `<rect class="sp-first_byte" x="0" y="0" width="750"`, `<rect class="sp-rest" x="750" y="0" width="250"`} {
		require.Contains(t, g.body, want)
	}
	g = r.do("GET", one(hookRetrying), nil)
	bounded(t, r, g)
	for _, want := range []string{"tried again by itself", "Planned for", "The answer was not a success", "the answer was 503 &lt;script", "It asks to wait:", "120", `data-refresh="15"`, "It began 90 s after its plan", "it keeps failing", `<rect class="sp-wait" x="0" y="0" width="1000"`,
		`<rect class="sp-dns" x="0" y="0" width="100"`, `<rect class="sp-connect" x="100" y="0" width="200"`, `<rect class="sp-tls" x="300" y="0" width="300"`, `<rect class="sp-first_byte" x="600" y="0" width="350"`,
		`<rect class="sp-rest" x="950" y="0" width="50"`, "looking up the name <strong>100 ms</strong>", "securing the connection <strong>300 ms</strong>"} {
		require.Contains(t, g.body, want)
	}
	g = r.do("GET", one(hookGone), nil)
	bounded(t, r, g)
	for _, want := range []string{"is not tried again by itself", "it is there no more (410)", "✗"} {
		require.Contains(t, g.body, want)
	}
	g = r.do("GET", one(int(r.w.Outbox)), nil)
	bounded(t, r, g)
	for _, want := range []string{"Swift Parcel", "Nothing has been sent yet", "The partner itself sends"} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, g.body, "Send again<", "no operation lets the business do it")
}

func TestTheLogIsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.signedIn()
	shown := func(query string) (ids []string) {
		t.Helper()
		g := r.do("GET", hooksPath+"?"+query, nil)
		require.Equal(t, 200, g.status, query)
		bounded(t, r, g)
		for _, id := range []string{"9003", "9002", "9001", "900"} {
			if strings.Contains(g.body, `href="`+hooksPath+"/"+id+`"`) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	soon := url.QueryEscape(time.Now().Add(24 * time.Hour).Format("2006-01-02T15:04"))
	for query, want := range map[string][]string{
		"": {"9003", "9002", "9001", "900"}, "state=failed": {"9003"}, "state=dead": nil, "state=success": {"9001", "900"}, "state=paused": nil, "event=locker_delivery.delivered": {"900"}, "event=order": nil,
		"reference=ref-2": {"9002"}, "receiver=50": {"9002", "9001"}, "receiver=5": {"900"}, "receiver=52": nil, "receiver=50&state=retrying": {"9002"}, "from=" + soon: nil, "to=2020-01-01T00:00": nil,
		"from=2020-01-01T00:00&to=" + soon: {"9003", "9002", "9001", "900"}, "before=" + fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli()) + "-5": {"900"},
		"before=x-y": {"9003", "9002", "9001", "900"}, "before=-": {"9003", "9002", "9001", "900"},
	} {
		require.Equal(t, want, shown(query), query)
	}
	for query, field := range map[string]string{"state=nonsense": "Status", "receiver=-4": "Receiver", "receiver=1e9": "Receiver", "from=yesterday": "From", "to=" + url.QueryEscape(evil): "Before"} {
		g := r.do("GET", hooksPath+"?"+query, nil)
		bounded(t, r, g)
		require.Contains(t, g.body, "could not be read and was left out: "+field, query)
		require.Contains(t, g.body, one(hookGone), "what cannot be read filters nothing")
	}
	g := r.do("GET", hooksPath+"?event="+url.QueryEscape(evil)+"&state=failed", nil)
	bounded(t, r, g)
	require.Contains(t, g.body, "No delivery fits.")
	require.Contains(t, g.body, `<option value="failed" selected>`, "the form keeps what was asked for")

	many := cloud.Changes{}
	now := time.Now().UTC()
	for i := range 120 {
		id := cloud.OutboxID(20_000 + i)
		e := cloud.OutboxEvent{EventID: fmt.Sprint("OCR-", id), Event: "order.created", BusinessID: 42, Channel: cloud.ChannelAccount, CreatedAt: now, OccurredAt: now, Body: []byte("{}")}
		many.Outbox = append(many.Outbox, cloud.OutboxWrite{Event: e, Deliveries: []cloud.OutboxDelivery{{ID: id, EventID: e.EventID, EndpointID: 50, BusinessID: 42, WebhookID: e.EventID, State: cloud.OutboxSuccess, CreatedAt: now}}})
	}
	r.w.Write(t, many)
	next, seen := hooksPath+"?event=order.created", map[string]bool{}
	for pages := 0; next != ""; pages++ {
		require.Less(t, pages, 4)
		body := r.do("GET", strings.TrimSuffix(strings.ReplaceAll(next, "&amp;", "&"), "#log"), nil).body
		rows := hookRows.FindAllStringSubmatch(body, -1)
		for _, row := range rows {
			require.False(t, seen[row[1]], "a row comes once")
			seen[row[1]] = true
		}
		if m := olderPage.FindStringSubmatch(body); m != nil {
			require.Len(t, rows, 50)
			next = m[1]
		} else {
			next = ""
		}
	}
	require.Len(t, seen, 120)
}

func TestSendingAgainFromAPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.signedIn()
	count := func() int {
		rows, err := r.w.DB.ListBusinessOutbox(t.Context(), cloud.BusinessLog{BusinessID: 42, Limit: 200})
		require.NoError(t, err)
		return len(rows)
	}
	before := count()
	for _, form := range []url.Values{{}, {"form": {strings.Repeat("x", 32)}}} {
		require.Equal(t, 403, r.do("POST", one(hookDone), form).status, "a forged form")
	}
	require.Equal(t, 403, r.sendAgain(hookDone, "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, before, count())

	g := r.sendAgain(hookDone)
	require.Equal(t, 303, g.status, g.body)
	to := g.header("Location")
	require.Regexp(t, `^/console/webhooks/9001\?again=[0-9]+$`, to)
	again := to[strings.Index(to, "=")+1:]
	g = r.do("GET", to, nil)
	bounded(t, r, g)
	require.Contains(t, g.body, `on its way once more, as delivery <a href="/console/webhooks/`+again+`">`)
	g = r.do("GET", hooksPath+"/"+again, nil)
	bounded(t, r, g)
	for _, want := range []string{"This repeats delivery", `href="/console/webhooks/9001"`, "OSC-9001", "sent again", "waits for its first attempt"} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, r.do("GET", one(hookRetrying)+"?again="+again, nil).body, "on its way once more", "that repeats another one")
	require.NotContains(t, r.do("GET", one(hookDone)+"?again=9004", nil).body, "on its way once more")
	lines, err := r.w.DB.ListAudits(t.Context(), 42, 0, 50)
	require.NoError(t, err)
	found := false
	for _, l := range lines {
		found = found || l.Audit.Action == "webhook_redelivered" && strings.Contains(l.Audit.Detail, "9001") && l.Audit.Actor == "account:1"
	}
	require.True(t, found, "as when the interface is asked")

	require.Equal(t, 404, r.sendAgain(int(r.w.Outbox)).status, "a partner's")
	require.Equal(t, before+1, count())
	status := 303
	for i := 0; i < 1000 && status == 303; i++ { // a slow machine gets some back meanwhile
		status = r.sendAgain(hookDone).status
	}
	require.Equal(t, 429, status, "no faster than by the interface")
}

func TestWhoSeesWebhooks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	same := func(method string, paths ...string) {
		t.Helper()
		var pages []string
		for _, path := range paths {
			var g got
			if method == "GET" {
				g = r.do("GET", hooksPath+"/"+path, nil)
			} else {
				m := formField.FindStringSubmatch(r.do("GET", hooksPath, nil).body)
				g = r.do("POST", hooksPath+"/"+path, url.Values{"form": {m[1]}})
			}
			require.Equal(t, 404, g.status, path)
			bounded(t, r, g)
			require.NotContains(t, g.body, "rival")
			pages = append(pages, strings.ReplaceAll(g.body, hooksPath+"/"+path, "ID"))
		}
		for _, p := range pages {
			require.Equal(t, pages[0], p, "what is another business's looks like nothing")
		}
	}
	r.signedIn()
	same("GET", "9004", "9999", "-1", "abc", "99999999999999999999")
	same("POST", "9004", "9999")

	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	// The catalogue gives the log to administrators: the pages do the same.
	for _, path := range []string{hooksPath, one(hookDone), one(9004), one(9999)} {
		g := r.do("GET", path, nil)
		require.Equal(t, 403, g.status, path)
		bounded(t, r, g)
		require.NotContains(t, g.body, "erp.example")
	}
	form := strings.Repeat("x", 32)
	r.cookies["postern_form"] = form
	require.Equal(t, 403, r.do("POST", one(hookDone), url.Values{"do": {"again"}, "form": {form}}).status)

	for _, typ := range []cloud.AccountType{cloud.Broker, cloud.Customer} {
		r.cookies["postern_session"] = r.w.Tokens[typ]
		require.Equal(t, 403, r.do("GET", hooksPath, nil).status, typ)
		require.Equal(t, 403, r.do("POST", one(hookDone), url.Values{}).status, typ)
	}
	for _, token := range []string{r.w.Tokens[cloud.ProviderType], r.w.Expired, "nonsense", ""} {
		r.cookies["postern_session"] = token
		for _, path := range []string{hooksPath, one(hookDone)} {
			require.Equal(t, 303, r.do("GET", path, nil).status)
			require.Equal(t, 303, r.do("POST", one(hookDone), url.Values{}).status)
		}
	}
}

func TestWebhookPagesInEveryLanguageAreClean(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fillHooks(t, r.w)
	r.signedIn()
	for _, l := range locale.All() {
		for _, path := range []string{hooksPath + "?state=failed&", one(hookDone) + "?", one(hookRetrying) + "?", one(hookGone) + "?"} {
			g := r.do("GET", path+"lang="+l.Code, nil)
			require.Equal(t, 200, g.status)
			bounded(t, r, g)
			require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
			require.Equal(t, 1, strings.Count(g.body, "<h1"))
			require.NotRegexp(t, `\bhooks?[a-z]*\.[a-z]+\b[^/]`, strings.NewReplacer("hooks.example", "").Replace(g.body), "a word is missing")
			require.NotContains(t, g.body, "%!")
		}
	}
	r.w.Write(t, cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{{ID: 75, BusinessID: 42, ProviderID: 17, Kind: cloud.ThirdPartyEndpoint, URL: "https://hooks.example/third", Events: []string{"*"}, Enabled: true, Status: "healthy"}}}})
	for lang, want := range map[string]string{"en": "Third-party deliveries", "zh-Hans": "第三方配送", "zh-Hant": "第三方配送", "fr": "Livraisons par un tiers", "de": "Fremdzustellungen", "es": "Entregas por terceros"} {
		body := strings.ReplaceAll(r.do("GET", hooksPath+"?lang="+lang, nil).body, "</bdi>", "")
		require.Contains(t, body, "Swift Parcel · "+want, "one kind of the partner's receivers")
		require.Contains(t, body, "Swift Parcel · "+locale.Value(lang, "hookkind", cloud.LockerEndpoint), "and the other")
	}
	require.Contains(t, r.do("GET", hooksPath+"?state=failed", nil).body, "/console/webhooks?state=failed&amp;lang=de", "the language changes, the filter stays")
}

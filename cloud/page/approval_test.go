package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// runner answers approved calls and dry runs as a test wants.
type runner struct {
	mu   sync.Mutex
	said json.RawMessage // of dry runs
	err  error           // of dry runs and calls
	runs int
}

func (x *runner) set(said string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.said, x.err = json.RawMessage(said), err
}

func approvals(w *webtest.World, f *feed) *approval.Service {
	return approval.New(approval.Config{Store: w.DB, Holds: catalog.Holds, Message: locale.Error, Run: func(context.Context, cloud.Caller, cloud.Approval) (json.RawMessage, error) {
		f.tool.mu.Lock()
		defer f.tool.mu.Unlock()
		if f.tool.err != nil {
			return nil, f.tool.err
		}
		f.tool.runs++
		return json.RawMessage(`{"result":true,"outcome":"executed","order_status_id":50,"api_token":"` + webtest.Secret + `"}`), nil
	}, Foresee: func(_ context.Context, _ cloud.Caller, a cloud.Approval) (approval.Foresight, error) {
		f.tool.mu.Lock()
		defer f.tool.mu.Unlock()
		if f.tool.said != nil {
			return approval.Foresight{Preview: f.tool.said, Marks: a.Marks}, f.tool.err
		}
		return approval.Foresight{Preview: a.Preview, Marks: a.Marks}, f.tool.err
	}})
}

// foreseen is a preview of a cancelled order.
func foreseen(status int) string {
	return fmt.Sprintf(`{"result":true,"outcome":"preview","tool":"cancel_order","would_change":{"method":"POST","path":"/api/v1/orders/120045/cancel","affected":[
{"type":"order","id":120045,"before":{"order_status_id":%d,"note":"kept","recipient":{"name":"Ann <b>Lee</b>"}},"after":{"order_status_id":50,"note":"kept","recipient":{"name":"Ann <b>Lee</b>"},"cancelled_reason":"duplicate"}},
{"type":"refund","id":null,"before":null,"after":{"amount":12.50}}]},
"checks":[{"check":"order_exists","ok":true,"message":null},{"check":"status_allows","ok":false,"message":"It is on its way"}],"warnings":["The driver is told at once"]}`, status)
}

// ask proposes what a person's agent wants.
func (r *rig) ask(token string, change func(*approval.ProposeInput)) cloud.ApprovalID {
	r.t.Helper()
	s, err := r.w.FindToken(context.Background(), auth.Hash(token))
	require.NoError(r.t, err)
	in := approval.ProposeInput{Server: "operations", Tool: "cancel_order", Risk: "high", Scopes: []string{"orders:write"}, TokenName: "agent-1", Summary: "Cancel order 120045 (to Ann Lee)",
		Arguments: json.RawMessage(`{"order_id":120045,"reason":"duplicate","api_token":"` + webtest.Secret + `"}`), Preview: json.RawMessage(foreseen(1)),
		Reason: "The customer ordered twice.\n<script>alert(1)</script>"}
	if change != nil {
		change(&in)
	}
	r.asked++
	in.Marks = cloud.Marks{fmt.Sprint("call ", r.asked)} // the same call would be the same approval
	out, err := approvals(r.w, r.f).Propose(context.Background(), cloud.Caller{Account: s.Account, Surface: "mcp"}, in)
	require.NoError(r.t, err)
	return out.Approval.ApprovalID
}

const approvalsPath = "/mcp-approvals"

func (r *rig) decide(id cloud.ApprovalID, decision, note string, headers ...string) got {
	r.t.Helper()
	m := formField.FindStringSubmatch(r.do("GET", approvalsPath, nil).body)
	require.NotNil(r.t, m)
	return r.do("POST", approvalsPath+"/"+string(id), url.Values{"form": {m[1]}, "decision": {decision}, "note": {note}}, headers...)
}

func TestDecidingOnAPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.ask(r.w.Tokens[cloud.Broker], nil)
	time.Sleep(2 * time.Millisecond) // requests of one millisecond have no order
	next := r.ask(r.w.Tokens[cloud.Broker], func(in *approval.ProposeInput) { in.Summary, in.Risk = "Hold order 7", "medium" })
	one := approvalsPath + "/" + string(id)

	g := r.do("GET", one, nil)
	require.Equal(t, 303, g.status)
	login := g.header("Location")
	require.Equal(t, "/console/login?next="+url.QueryEscape(one), login)
	m := formField.FindStringSubmatch(r.do("GET", login, nil).body)
	g = r.do("POST", "/console/login", url.Values{"email": {r.w.Emails[cloud.ClientAdmin]}, "password": {webtest.Password}, "form": {m[1]}, "next": {one}})
	require.Equal(t, one, g.header("Location"), "the login goes on where one wanted to be")

	require.Contains(t, r.do("GET", "/console", nil).body, `data-live="n-approvals">2</em>`)
	g = r.do("GET", approvalsPath, nil)
	clean(t, r, g)
	require.Less(t, strings.Index(g.body, "Cancel order 120045"), strings.Index(g.body, "Hold order 7"), "who waits longest comes first")
	german := r.do("GET", "/mcp-approvals", nil, "Accept-Language", "de").body
	require.Contains(t, german, locale.Word("de", "verb.orders.cancel")+" 120045", "what an agent asks for is said in the reader's language")
	require.NotContains(t, german, "Cancel order")
	for _, want := range []string{"Risk: high", "▲", "Risk: medium", "●", "broker", "agent-1", "2 d 23 h", "3 d"} {
		if want == "2 d 23 h" || want == "3 d" {
			continue // which of them depends on the second
		}
		require.Contains(t, g.body, want)
	}
	require.Regexp(t, `<strong>(3 d|2 d 23 h)</strong>`, g.body)

	g = r.do("GET", one, nil)
	clean(t, r, g)
	require.Equal(t, 200, g.status)
	for _, want := range []string{"order 120045", ">Status<", ">New order</bdi></td>", ">Cancelled</bdi></td>", "Reason of cancellation", "duplicate", "nothing", "refund", "12.5", ">new<", "The driver is told at once",
		"order exists", "does not pass", "It is on its way", "The customer ordered twice.", "&lt;script&gt;alert(1)", "own words", "***", "Checked just now", "POST /api/v1/orders/120045/cancel", "Approve and run now", "Reject"} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, g.body, "kept<", "what stays as it is is not told")
	require.NotContains(t, g.body, "Ann &lt;b&gt;")

	require.Equal(t, 400, r.decide(id, "", "").status)
	g = r.decide(id, "approve", "Called the customer")
	require.Equal(t, 303, g.status, g.body)
	require.Equal(t, one, g.header("Location"))
	require.Equal(t, 1, r.f.tool.runs)
	g = r.do("GET", one, nil)
	clean(t, r, g)
	for _, want := range []string{"Approved, and done.", "client_admin", "Called the customer", ">Status<", "Next one waiting: <bdi>Hold order 7", string(next)} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, g.body, "Approve and run now")
	g = r.decide(id, "approve", "")
	require.Equal(t, 409, g.status)
	require.Contains(t, g.body, "A decision about this was made already")
	require.Equal(t, 1, r.f.tool.runs)

	require.Equal(t, 303, r.decide(next, "reject", "Not needed").status)
	g = r.do("GET", approvalsPath+"/"+string(next), nil)
	require.Contains(t, g.body, "Rejected. Nothing was done.")
	require.Contains(t, g.body, "Nothing waits for a decision.")
	g = r.do("GET", approvalsPath, nil)
	require.Less(t, strings.Index(g.body, "Hold order 7"), strings.Index(g.body, "Cancel order 120045"), "the last decision comes first")
	lines, err := r.w.DB.ListAudits(t.Context(), 42, 0, 50)
	require.NoError(t, err)
	web := 0
	for _, l := range lines {
		if strings.HasPrefix(l.Audit.Action, "approval.") && strings.Contains(l.Audit.Detail, `"surface":"web"`) {
			require.Contains(t, l.Audit.Detail, `"tool":"cancel_order"`)
			web++
		}
	}
	require.Equal(t, 3, web, "approved, executed, rejected")
}

func TestAPageSaysHowThingsStandNow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	id := r.ask(r.w.Tokens[cloud.Broker], nil)
	one := approvalsPath + "/" + string(id)
	r.f.tool.set(foreseen(20), nil)
	g := r.do("GET", one, nil)
	require.Contains(t, g.body, "Things have changed since this was asked for")
	require.Contains(t, g.body, ">Driver going to pick up</bdi></td>", "it shows what would happen now")
	r.f.tool.set("", cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE"))
	g = r.do("GET", one, nil)
	require.Contains(t, g.body, "could not be checked again")
	require.Contains(t, g.body, ">New order</bdi></td>")
	g = r.decide(id, "approve", "my note")
	require.Equal(t, 503, g.status)
	require.Contains(t, g.body, locale.Error("en", "MODULE_UNAVAILABLE"))
	require.Contains(t, g.body, ">my note</textarea>", "nothing that was written is lost")
	require.Contains(t, g.body, "Approve and run now", "it waits as before")
	r.f.tool.set("", fmt.Errorf("secret detail"))
	g = r.decide(id, "approve", "")
	require.Equal(t, 500, g.status)
	require.NotContains(t, g.body, "secret detail")
	r.f.tool.set("", &cloud.Error{Kind: cloud.Conflict, Code: "ORDER_NOT_CANCELLABLE", Details: map[string]any{"order_status_id": 41}})
	require.Contains(t, r.do("GET", one, nil).body, "As things stand it would fail: "+locale.Error("en", "ORDER_NOT_CANCELLABLE"))
	require.Equal(t, 303, r.decide(id, "approve", "").status)
	g = r.do("GET", one, nil)
	for _, want := range []string{"Approved, but it failed. Nothing was done.", locale.Error("en", "ORDER_NOT_CANCELLABLE"), "ORDER_NOT_CANCELLABLE", locale.Value("en", "order", "41")} {
		require.Contains(t, g.body, want)
	}
	r.f.tool.set("", nil)
	odd := r.ask(r.w.Tokens[cloud.Broker], func(in *approval.ProposeInput) {
		in.Preview, in.Reason, in.Summary = json.RawMessage(`{"would_change":[1]}`), "", ""
		in.Arguments = json.RawMessage(`{"orders":[` + strings.Repeat(`{"order_ref":"X","weight":1},`, 60) + `{"order_ref":"the last \u202e one"}]}`)
	})
	g = r.do("GET", approvalsPath+"/"+string(odd), nil)
	clean(t, r, g)
	for _, want := range []string{"It is not known what would change", "The agent gave no reason", "Show all arguments", "the last", "<bdi>Cancel order</bdi></h1>"} {
		require.Contains(t, g.body, want)
	}
	long := r.ask(r.w.Tokens[cloud.Broker], func(in *approval.ProposeInput) {
		in.Arguments = json.RawMessage(`{"note":"` + strings.Repeat("a", 900) + ` the end"}`)
		in.Preview = json.RawMessage(`{"would_change":{"affected":[{"type":"order","id":1,"before":{"note":"` + strings.Repeat("a", 900) + `"},"after":{"note":"` + strings.Repeat("a", 900) + ` the end"}}]}}`)
	})
	long1 := r.do("GET", approvalsPath+"/"+string(long), nil).body
	require.Equal(t, 2, strings.Count(long1, "a the end"), "what is at the end of a long text is seen, in the change and in the arguments")
	require.NotContains(t, g.body, "\u202e", "nothing turns the direction of reading")
	require.NotContains(t, g.body, `\u202e`)
}

// What a dry run has checked is said in the reader's language; checks of others are
// shown by their names.
func TestChecksAreInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.ask(r.w.Tokens[cloud.Broker], nil)
	r.f.tool.set(`{"would_change":{"affected":[]},"checks":[{"check":"arguments_valid","ok":true},{"check":"caller_may","ok":true},{"check":"state_allows","ok":true},{"check":"moon_is_full","ok":false}]}`, nil)
	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientAdmin]).status)
	seen := map[string]bool{}
	for _, l := range locale.All() {
		body := r.do("GET", approvalsPath+"/"+string(id)+"?lang="+l.Code, nil).body
		require.Contains(t, body, "<bdi>moon is full</bdi>")
		for _, name := range []string{"arguments_valid", "caller_may", "state_allows"} {
			text := locale.Value(l.Code, "check", name)
			require.Contains(t, body, "<bdi>"+htmlEscaped(text)+"</bdi>")
			require.False(t, seen[text] || text == strings.ReplaceAll(name, "_", " "), "%s has no words for %s", l.Code, name)
			seen[text] = true
		}
	}
}

func htmlEscaped(s string) string { return strings.ReplaceAll(s, "'", "&#39;") }

func TestWhoMayDecideOnPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.ask(r.w.Tokens[cloud.Broker], nil)
	one := approvalsPath + "/" + string(id)
	may := func(scopes ...string) {
		s, err := r.w.FindToken(t.Context(), auth.Hash(r.w.Tokens[cloud.ClientEmployee]))
		require.NoError(t, err)
		s.Account.Permissions = scopes
		r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
	}
	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	may()
	for _, path := range []string{approvalsPath, one} {
		g := r.do("GET", path, nil)
		require.Equal(t, 403, g.status)
		require.Contains(t, g.body, "("+locale.Scope("en", "approvals:read")+")")
		require.NotContains(t, g.body, "120045")
		for _, want := range []string{`action="/console/logout"`, `href="/console"`, "Ask your administrator for the right"} {
			require.Contains(t, g.body, want, "the page is no dead end")
		}
	}
	r.ask(r.w.Tokens[cloud.Broker], nil)
	may("approvals:read", "orders:write")
	g := r.do("GET", approvalsPath, nil)
	require.Equal(t, 200, g.status)
	clean(t, r, g)
	require.Contains(t, g.body, "You may read here and not decide.")
	require.Contains(t, g.body, "("+locale.Scope("en", "approvals:write")+")")
	require.NotContains(t, g.body, `name="decision"`, "no button that would be refused")
	require.Equal(t, 403, r.do("POST", approvalsPath, url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}, "group": {string(id)}}).status)
	g = r.do("GET", one, nil)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, "("+locale.Scope("en", "approvals:write")+")")
	require.NotContains(t, g.body, `name="decision"`)
	require.Equal(t, 403, r.decide(id, "approve", "").status)
	require.Equal(t, 403, r.decide(id, "reject", "").status)
	may("approvals:write")
	require.Contains(t, r.do("GET", approvalsPath, nil).body, `name="decision"`, "who may decide is offered it")
	g = r.do("GET", one, nil)
	require.Contains(t, g.body, "("+locale.Scope("en", "orders:write")+")")
	require.NotContains(t, g.body, `value="approve"`)
	require.Contains(t, g.body, `value="reject"`, "who may decide may say no")
	require.Equal(t, 403, r.decide(id, "approve", "").status)
	require.Zero(t, r.f.tool.runs)

	own := r.ask(r.w.Tokens[cloud.ClientEmployee], nil)
	may("approvals:write", "orders:write")
	g = r.do("GET", approvalsPath+"/"+string(own), nil)
	require.Contains(t, g.body, "You asked for this yourself")
	require.Equal(t, 403, r.decide(own, "approve", "").status)

	for _, form := range []url.Values{{"decision": {"approve"}}, {"decision": {"approve"}, "form": {strings.Repeat("x", 32)}}} {
		require.Equal(t, 403, r.do("POST", one, form).status, "a forged form")
	}
	require.Equal(t, 403, r.decide(id, "approve", "", "Sec-Fetch-Site", "cross-site").status)
	require.Zero(t, r.f.tool.runs)

	foreign := r.ask(r.w.OtherAdmin, func(in *approval.ProposeInput) { in.Summary = "Theirs" })
	unknown := string(foreign[:len(foreign)-4]) + "0000"
	same := func(method string) {
		t.Helper()
		var pages []string
		for _, path := range []string{string(foreign), unknown} {
			g := r.do(method, approvalsPath+"/"+path, nil)
			require.Equal(t, 404, g.status)
			require.NotContains(t, g.body, "Theirs")
			pages = append(pages, strings.ReplaceAll(g.body, path, "ID"))
		}
		require.Equal(t, pages[0], pages[1], "what is another business's looks like nothing")
	}
	same("GET")
	require.NotContains(t, r.do("GET", approvalsPath, nil).body, "Theirs")
	require.Equal(t, 404, r.decide(foreign, "approve", "").status)
	require.Equal(t, 404, r.decide("%3Cscript%3E", "reject", "").status)

	for _, typ := range []cloud.AccountType{cloud.Broker, cloud.Customer} {
		r.cookies["postern_session"] = r.w.Tokens[typ]
		require.Equal(t, 403, r.do("GET", approvalsPath, nil).status, typ)
		require.Equal(t, 403, r.do("POST", one, url.Values{"decision": {"approve"}}).status, typ)
	}
	for _, token := range []string{r.w.Expired, "nonsense", ""} {
		r.cookies["postern_session"] = token
		g := r.do("GET", approvalsPath, nil)
		require.Equal(t, 303, g.status)
		require.Equal(t, "/console/login?next=%2Fmcp-approvals", g.header("Location"))
		require.Equal(t, 303, r.do("POST", one, url.Values{"decision": {"approve"}}).status, "a session that is over")
	}
	for _, narrowed := range []cloud.Token{{ID: 9}, {Scopes: []string{"orders:read"}}, {Profile: "support"}} {
		token := auth.NewToken()
		narrowed.Hash, narrowed.AccountID, narrowed.ExpiresAt = auth.Hash(token), 1, time.Now().Add(time.Hour)
		r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{narrowed}}})
		r.cookies["postern_session"] = token
		require.Equal(t, 303, r.do("GET", approvalsPath, nil).status, "an agent's key is no person: %+v", narrowed)
	}
	require.Zero(t, r.f.tool.runs)
}

func TestTheLoginGoesNowhereElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, to := range []string{"//evil.example", "https://evil.example/mcp-approvals", "/mcp-approvals/../console", "/mcp-approvals/apr_x", "/mcp-approvals\r\nX: y", "/docs", "/console/webhooks/../login", "/console/webhooks?state=dead"} {
		form := r.do("GET", "/console/login?next="+url.QueryEscape(to), nil).body
		require.NotContains(t, form, `name="next"`, to)
		m := formField.FindStringSubmatch(form)
		g := r.do("POST", "/console/login", url.Values{"email": {r.w.Emails[cloud.ClientAdmin]}, "password": {webtest.Password}, "form": {m[1]}, "next": {to}})
		require.Equal(t, "/console", g.header("Location"), to)
	}
}

func TestApprovalPagesInEveryLanguageAreClean(t *testing.T) {
	ring.SkipUnlessCheck(t, "one language; this one walks over all of them")
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	id := r.ask(r.w.Tokens[cloud.Broker], nil)
	for _, l := range locale.All() {
		for _, path := range []string{approvalsPath, approvalsPath + "/" + string(id)} {
			g := r.do("GET", path+"?lang="+l.Code, nil)
			require.Equal(t, 200, g.status)
			clean(t, r, g)
			require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
			require.Equal(t, 1, strings.Count(g.body, "<h1"))
			require.NotContains(t, g.body, "approvals.", "a word is missing")
			require.NotContains(t, g.body, "%!")
		}
	}
	bare := newRig(t, func(c *page.Config) {
		c.Approvals = approval.New(approval.Config{Store: c.Store.(approval.Store), Holds: catalog.Holds, Message: locale.Error})
	})
	bare.signedIn()
	id = bare.ask(bare.w.Tokens[cloud.Broker], nil)
	g := bare.decide(id, "approve", "")
	require.Equal(t, 503, g.status, "nothing runs without tools")
}

package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

const (
	approvalsPath = "/mcp-approvals"
	maxWaiting    = 50
	maxDecided    = 10
)

var nextForm = regexp.MustCompile(`^(` + AccountPath + `|` + ConsolePath + `(/[a-z-]{1,40}(/[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}){0,2})?|` + cabinetPath + `|` + approvalsPath + `(/apr_[0-9A-Z]{26})?|` + hooksPath + `(/[0-9]{1,18}|/receivers/[0-9]{1,18}|/replays/rpl_[0-9a-f]{32})?)$`)

// nextPage is the page that a person who signs in wanted, "" for none: one of
// those about approvals, webhooks or a new cabinet, never an address of others.
func nextPage(args *fasthttp.Args) string {
	if to := string(args.Peek("next")); nextForm.MatchString(to) {
		return to
	}
	return ""
}

// approvalRow is an approval in a list.
type approvalRow struct {
	ID                    cloud.ApprovalID
	Summary, Tool, Status string
	Risk, RiskWords       string
	Who, Token, By        string
	Asked, Until, Decided *moment
	Left                  string
	Running               bool // approved, and not over
}

type approvalsPage struct {
	frame
	CSRF    string
	Total   int
	Groups  []approvalGroup // of those that wait
	Shown   int             // in Groups
	Decided []approvalRow
	Missing string // why the visitor cannot decide, "" when that is not so
}

// approvalGroup is what one requester asked for by one key with one tool.
type approvalGroup struct {
	IDs  string // with spaces between them
	Rows []approvalRow
}

type approvalPage struct {
	frame
	CSRF                  string
	A                     approvalRow
	Reason, Note, Said    string // the agent's words, those in the form, the reviewer's
	Problem               string // why what was just tried did not work
	MayApprove, MayReject bool
	Obstacle              string // why the caller cannot approve
	Digest                string // of what is shown
	Foresight             string // how current Preview is
	Changed               bool
	Preview               preview
	Arguments, Result     []leaf
	Whole                 string // arguments as they came, where they are more than the list
	Unseen                string // page where to make anew a secret that the call made and no person saw
	Error                 string
	ErrorCode             string
	ErrorDetails          []leaf
	Next                  *approvalRow
	Total                 int // that wait
}

// visitor is a person who is signed in, on a page about approvals or webhooks.
type visitor struct {
	frame
	c        cloud.Caller
	business string
}

// visitor finds who of staff asks for a drawn page; without anybody it answers with the
// way to the login, and others it leads to the pages that are theirs.
func (p *kit) visitor(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, ok bool) {
	v, ok = p.worker(c, ctx)
	if !ok || slices.Contains(staff, v.c.Account.Type) {
		return v, ok
	}
	if areas := p.navigation(c, v); string(ctx.Path()) == ConsolePath && len(areas) > 0 {
		seeOther(ctx, areas[0].Links[0].Path)
	} else {
		p.refused(ctx, v, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED"))
	}
	return v, false
}

// worker finds who asks for a generated page; without anybody it answers with the way
// to the login.
func (p *kit) worker(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, ok bool) {
	s, ok, err := p.session(c, ctx, &forWork)
	if err != nil {
		p.trouble(ctx, err)
		return v, false
	}
	if !ok && ctx.IsPost() && ctx.PostArgs().Has("step") && ownForm(ctx, &forWork) {
		p.keepTyped(ctx)
		return v, false
	}
	if !ok {
		to := ConsolePath + "/login"
		if path := string(ctx.Path()); path != ConsolePath {
			to += "?next=" + url.QueryEscape(path)
		}
		seeOther(ctx, to)
		return v, false
	}
	v.frame = p.frame(ctx, "approvals.title")
	v.c = caller(s, v.Lang, p.cfg.BaseURL)
	err = p.cfg.Store.Look(c, func(view cloud.View) error {
		if s.Account.BusinessID == 0 { // an operator of the platform
			return nil
		}
		b, err := view.Business(s.Account.BusinessID)
		v.business, v.Zone = b.Name, b.Location()
		return err
	})
	if err != nil {
		p.trouble(ctx, err)
	}
	v.Desk = p.deskOf(c, ctx, v)
	return v, err == nil
}

// writer is the visitor who sent a form of ours. When there is none, what to show
// instead has been shown.
func (p *kit) writer(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, ok bool) {
	if v, ok = p.visitor(c, ctx); ok && !ownForm(ctx, &forStaff) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return v, false
	}
	return v, ok
}

// caller is a person at a page. An employee has the scopes that the account
// permits.
func caller(s auth.Session, lang, base string) cloud.Caller {
	c := cloud.Caller{Account: s.Account, Language: lang, BaseURL: base, Surface: "web"}
	if s.Account.Type == cloud.ClientEmployee {
		c.Scopes = append([]string{}, s.Account.Permissions...)
	}
	return c
}

// refused shows a visitor an error of the feature as a page of its own, with the
// way back to the console.
func (p *kit) refused(ctx *fasthttp.RequestCtx, v visitor, err error) {
	shown := cloud.Shown(err)
	if shown == nil || shown.Kind == cloud.Limited {
		p.trouble(ctx, err)
		return
	}
	v.Title = v.T("trouble.title")
	p.show(ctx, statusOf(shown), "message.html", messagePage{frame: v.frame, Heading: v.Title, Body: describeError(v.frame, shown)})
}

// statusOf is the status of a page about an error.
func statusOf(e *cloud.Error) int {
	switch e.Kind {
	case cloud.Forbidden:
		return fasthttp.StatusForbidden
	case cloud.NotFound:
		return fasthttp.StatusNotFound
	case cloud.Conflict:
		return fasthttp.StatusConflict
	case cloud.Limited:
		return fasthttp.StatusTooManyRequests
	case cloud.Unavailable, cloud.Timeout:
		return fasthttp.StatusServiceUnavailable
	}
	return fasthttp.StatusUnprocessableEntity
}

// statusFor is the status of a page after a try that may have failed.
func statusFor(tried error) int {
	var shown *cloud.Error
	switch {
	case tried == nil:
		return fasthttp.StatusOK
	case errors.As(tried, &shown):
		return statusOf(shown)
	}
	return fasthttp.StatusInternalServerError
}

// describeError is an error in words, with the scope that is missing.
func describeError(f frame, e *cloud.Error) string {
	text := locale.Error(f.Lang, e.Code, e.Args...)
	if e.Code == "ACCOUNT_TYPE_NOT_ALLOWED" { // whose own words speak of tokens
		text = f.T("work.otheraccount")
	}
	if scope, ok := e.Details["scope"].(string); ok {
		text += " (" + locale.Scope(f.Lang, scope) + ")"
	}
	return text
}

// why is the text for an error; the details of one that may be ours are only logged.
func (p *kit) why(f frame, err error) string {
	if err == nil {
		return ""
	}
	shown, ours := cloud.Answered(err)
	if ours {
		p.log.Error("operation of a page failed", "err", err)
	}
	return describeError(f, shown)
}

func (p approvalPages) approvals(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.reader(c, ctx, "approvals.list")
	if !ok {
		return
	}
	waiting, err := p.cfg.Approvals.Waiting(c, v.c, maxWaiting)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	decided, err := p.cfg.Approvals.Decided(c, v.c, maxDecided)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	p.show(ctx, fasthttp.StatusOK, "approvals.html", approvalsPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff),
		Total: waiting.Total, Groups: groups(p.kit, v.frame, waiting.Approvals), Shown: len(waiting.Approvals), Decided: rows(p.kit, v.frame, decided.Approvals),
		Missing: p.why(v.frame, p.cfg.Pipeline.May(c, p.cfg.Catalog.Find("approvals.reject_many"), v.c))})
}

func groups(k *kit, f frame, list []approval.Body) (out []approvalGroup) {
	for _, g := range approval.Groups(list) {
		var ids []string
		for _, a := range g.Approvals {
			ids = append(ids, string(a.ApprovalID))
		}
		out = append(out, approvalGroup{strings.Join(ids, " "), rows(k, f, g.Approvals)})
	}
	return out
}

// rejectTogether takes the form that rejects a group: of what the page showed.
func (p approvalPages) rejectTogether(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.writer(c, ctx)
	if !ok {
		return
	}
	group := strings.Fields(string(ctx.PostArgs().Peek("group")))
	if _, err := run[approval.RejectManyOutput](c, ctx, p.kit, v, "approvals.reject_many", map[string]any{"approval_ids": group}); err != nil {
		p.refused(ctx, v, err)
		return
	}
	seeOther(ctx, approvalsPath)
}

func (p approvalPages) approval(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if v, ok := p.reader(c, ctx, "approvals.find"); ok {
		p.showApproval(c, ctx, v, nil, "")
	}
}

// decide takes the form of a decision.
func (p approvalPages) decide(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.writer(c, ctx)
	if !ok {
		return
	}
	id, note := approvalID(ctx), string(ctx.PostArgs().Peek("note"))
	var err error
	switch string(ctx.PostArgs().Peek("decision")) {
	case "approve":
		_, err = run[approval.Output](c, ctx, p.kit, v, "approvals.approve", map[string]any{"approval_id": string(id), "note": note, "digest": string(ctx.PostArgs().Peek("digest"))})
	case "reject":
		_, err = run[approval.Output](c, ctx, p.kit, v, "approvals.reject", map[string]any{"approval_id": string(id), "reason": note})
	default:
		p.message(ctx, fasthttp.StatusBadRequest, "trouble.title", "approvals.choose")
		return
	}
	if err == nil {
		seeOther(ctx, approvalsPath+"/"+string(id))
		return
	}
	again, stop := context.WithTimeout(context.Background(), readTime) // the call may have taken its time
	defer stop()
	p.showApproval(again, ctx, v, err, note)
}

// unseenSecret is the path of the page where a person makes anew a secret that a
// call made without showing it to a person, "" for other calls and once that is
// done.
func (p approvalPages) unseenSecret(c context.Context, who cloud.Caller, result json.RawMessage) string {
	var out any
	if !decode(result, &out) {
		return ""
	}
	page := ""
	walk("", out, 0, func(path string, v any) {
		address, ok := v.(string)
		if lastPart(path) != "secret_page" || !ok {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		m := receiverForm.FindStringSubmatch(u.Path)
		if m == nil {
			return
		}
		if r, err := p.cfg.Receivers.Receiver(c, who, cloud.EndpointID(hookID(m[1]))); err == nil && r.Unseen {
			page = u.Path
		}
	})
	return page
}

var receiverForm = regexp.MustCompile(`^` + hooksPath + `/receivers/([0-9]{1,18})$`)

func approvalID(ctx *fasthttp.RequestCtx) cloud.ApprovalID {
	id, _ := ctx.UserValue("id").(string)
	return cloud.ApprovalID(id)
}

// showApproval shows an approval, and why what was tried did not work.
func (p approvalPages) showApproval(c context.Context, ctx *fasthttp.RequestCtx, v visitor, tried error, note string) {
	r, err := p.cfg.Approvals.Review(c, v.c, approval.ByApproval{ID: approvalID(ctx)})
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	waiting, err := p.cfg.Approvals.Waiting(c, v.c, 2)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	a := r.Approval
	m := &maker{p: nounPages(p), f: v.frame, refs: nounPages(p).references(c, ctx, v)}
	page := approvalPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff), A: row(p.kit, v.frame, a), Note: outside(note, maxNote),
		Problem: p.why(v.frame, tried), MayApprove: r.NotApprove == nil, MayReject: r.NotReject == nil, Total: waiting.Total, Digest: r.Digest, Arguments: m.leavesOf(a.Arguments), Result: m.leavesOf(a.Result)}
	page.Title = page.A.Summary
	if p.may(c, v, "webhook_settings.save") {
		page.Unseen = p.unseenSecret(c, v.c, a.Result)
	}
	if len(page.Arguments) > maxLeaves || slices.ContainsFunc(page.Arguments, func(l leaf) bool { return strings.HasSuffix(l.Value, "…") }) {
		page.Whole = pretty(a.Arguments)
	}
	if a.Reason != nil {
		page.Reason = outside(*a.Reason, maxNote)
	}
	if page.Status() == cloud.ApprovalPending && !page.A.Running {
		page.Obstacle = p.why(v.frame, r.NotApprove)
	}
	if a.ReviewNote != nil {
		page.Said = outside(*a.ReviewNote, maxNote)
	}
	p.foresee(&page, r)
	page.Preview.Things, page.Preview.Besides = m.things(page.Preview.affected)
	if a.Error != nil {
		page.Error, page.ErrorCode, page.ErrorDetails = a.Error.Message, a.Error.Code, m.leaves(details(a.Error))
	}
	for _, w := range rows(p.kit, v.frame, waiting.Approvals) {
		if w.ID != a.ApprovalID {
			page.Next = &w
			break
		}
	}
	status := fasthttp.StatusOK
	var shown *cloud.Error
	if errors.As(tried, &shown) {
		status = statusOf(shown)
	} else if tried != nil {
		status = fasthttp.StatusInternalServerError
	}
	p.show(ctx, status, "approval.html", page)
}

const maxNote = 500

// Status is the approval's.
func (p approvalPage) Status() string { return p.A.Status }

// foresee shows what would happen now where that is known, else what was known
// when it was asked for.
func (p approvalPages) foresee(page *approvalPage, r approval.Review) {
	asked := readPreview(r.Approval.Preview)
	page.Preview = asked
	switch {
	case r.FreshError != nil:
		var shown *cloud.Error
		if errors.As(r.FreshError, &shown) && shown.Kind != cloud.Unavailable && shown.Kind != cloud.Internal && shown.Kind != cloud.Timeout {
			page.Foresight, page.Changed = page.T("approvals.wouldfail")+" "+describeError(page.frame, shown), true
			return
		}
		if shown == nil || shown.Kind == cloud.Internal {
			p.log.Error("preview of an approval", "approval", page.A.ID, "err", r.FreshError)
		}
		page.Foresight = page.T("approvals.unchecked")
	case r.Fresh != nil:
		now := readPreview(r.Fresh)
		page.Preview, page.Foresight = now, page.T("approvals.fresh")
		if page.Changed = !now.same(asked) || r.Digest != r.Approval.Digest; page.Changed {
			page.Foresight = page.T("approvals.changed")
		}
	}
}

func details(f *approval.Failure) map[string]any {
	all := maps.Clone(f.Details)
	if all == nil {
		all = map[string]any{}
	}
	for name, list := range f.Fields {
		all[name] = strings.Join(list, " ")
	}
	return all
}

func rows(k *kit, f frame, list []approval.Body) []approvalRow {
	var out []approvalRow
	for _, a := range list {
		out = append(out, row(k, f, a))
	}
	return out
}

func row(k *kit, f frame, a approval.Body) approvalRow {
	r := approvalRow{ID: a.ApprovalID, Summary: outside(asked(k.cfg.Catalog, f.Lang, a.Tool, summaryOf(f.Lang, a)), 400), Tool: outside(asked(k.cfg.Catalog, f.Lang, a.Tool, ""), 64), Risk: a.Risk, RiskWords: f.T("docs.risk") + ": " + f.V("risk", a.Risk), Status: a.Status, Who: outside(a.RequestedBy.Name, 100),
		Asked: f.Time(stamp(a.RequestedAt)), Until: f.Time(stamp(a.ExpiresAt)), Decided: f.Time(stamp(a.ReviewedAt)), Left: left(f, stamp(a.ExpiresAt))}
	if a.RequestedBy.TokenName != nil {
		r.Token = outside(*a.RequestedBy.TokenName, 100)
	}
	if a.ReviewedBy != nil {
		r.By, r.Running = outside(a.ReviewedBy.Name, 100), a.Status == cloud.ApprovalPending
	}
	return r
}

// summaryOf is the summary of an approval, with what follows in the reader's language where it is
// about an exception.
func summaryOf(lang string, a approval.Body) string {
	for _, e := range readPreview(a.Preview).affected {
		after, _ := e.After.(map[string]any)
		action, _ := after["resolution"].(string)
		// The summary of a call about an exception begins with where it is.
		if at := strings.Index(a.Summary, ": "+e.Name+": "); e.Type == "exception" && action != "" && at >= 0 {
			return a.Summary[:at] + ": " + locale.Resolution(lang, e.Name, e.Kind, action)
		}
	}
	return a.Summary
}

// asked is what an agent asks for in the reader's language: what its tool does, and the
// rest of the summary, which names what with.
func asked(c *catalog.Catalog, lang, tool, summary string) string {
	for _, server := range catalog.ToolServers() {
		t := c.Tool(server.ID, tool)
		if t == nil {
			continue
		}
		words := t.Title
		if key := "verb." + t.Operation; lang != locale.English && locale.Word(lang, key) != key {
			words = locale.Word(lang, key)
		}
		if rest, ok := strings.CutPrefix(summary, t.Title); ok {
			return words + rest
		}
		if summary == "" || summary == tool {
			return words
		}
	}
	return cmp.Or(summary, tool)
}

// stamp reads a time as answers have it.
func stamp(s *string) time.Time {
	if s == nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, *s) // written by us
	return t
}

// left is how long there is until a time, in its two largest units.
func left(f frame, until time.Time) string {
	d := until.Sub(f.Made).Round(time.Minute)
	if d < time.Minute {
		return "< 1 " + f.T("time.m")
	}
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	part := func(n int, unit string) string { return strconv.Itoa(n) + " " + f.T(unit) }
	switch {
	case days > 0 && hours > 0:
		return part(days, "time.d") + " " + part(hours, "time.h")
	case days > 0:
		return part(days, "time.d")
	case hours > 0 && minutes > 0:
		return part(hours, "time.h") + " " + part(minutes, "time.m")
	case hours > 0:
		return part(hours, "time.h")
	}
	return part(minutes, "time.m")
}

package page

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webhook"
)

const (
	hooksPath  = ConsolePath + "/webhooks"
	maxLog     = 50                 // rows on a page of the log
	maxAddress = 160                // characters of an address
	maxFilter  = 100                // bytes of what is filtered by
	fieldTime  = "2006-01-02T15:04" // of a form
)

// webhookRow is a webhook delivery in a list.
type webhookRow struct {
	ID              cloud.OutboxID
	Event, Status   string
	Reference       string
	To              string // partner, or host of the address
	Attempts, Limit int
	HTTP            int
	Code            string // of the last attempt's error, where nothing answered
	Test, Replay    bool
	At              *moment
}

func newWebhookRow(f frame, r cloud.OutboxRow) webhookRow {
	d := r.Delivery
	w := webhookRow{ID: d.ID, Event: outside(r.Event.Event, 80), Status: string(d.State), Reference: outside(r.Event.ReferenceID, 80), Attempts: d.Attempts, Limit: d.MaxAttempts,
		Test: r.Event.Test, Replay: d.ReplayOf != 0, At: f.Time(d.CreatedAt)}
	if r.Last != nil {
		w.HTTP, w.To = r.Last.HTTPStatus, hostOf(r.Last.URL)
		if w.HTTP == 0 {
			w.Code = outside(r.Last.ErrorCode, 40)
		}
	}
	return w
}

// hostOf is the host of an address, as it is shown.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return outside(u.Host, 80)
}

// receiverRow is a receiver in a list.
type receiverRow struct {
	ID                    cloud.EndpointID
	Name, URL             string
	Of                    string // whose it is, in words
	Settings              []string
	Health, Icon          string // healthy, degraded, paused, gone, off
	Since, Success, Worse *moment
	Waiting               int
	Held                  string // why it is left alone for now
	Manages               bool
}

var healthIcons = map[string]string{"healthy": "✓", "degraded": "▲", "paused": "‖", "gone": "✗", "off": "–"}

func newReceiverRow(f frame, r webhook.Receiver) receiverRow {
	row := receiverRow{ID: r.ID, URL: outside(r.URL, maxAddress), Name: cmp.Or(hostOf(r.URL), outside(r.URL, 80), fmt.Sprint(r.ID)), Health: r.Status, Since: f.Time(r.StatusSince),
		Success: f.Time(r.Report.SucceededAt), Worse: f.Time(r.Report.FailedAt), Waiting: r.Report.Waiting}
	switch {
	case r.Partner != "":
		row.Of = f.T("hooklog.partner", outside(r.Partner, 80)) + " · " + f.V("hookkind", r.Kind)
	case r.Customer != "":
		row.Of = f.T("hooklog.customer", outside(r.Customer, 80))
	default:
		row.Of = f.T("hooklog.company")
	}
	if r.Kind == cloud.PostbackEndpoint {
		row.Of += " · " + f.T("hooklog.postback")
	}
	for _, s := range r.Settings {
		row.Settings = append(row.Settings, f.V("hooksetting", s))
	}
	row.Manages = r.Manages
	if r.Held.Why != "" {
		row.Held = f.V("hookwait", r.Held.Why)
	}
	if !r.Enabled {
		row.Health, row.Since = "off", nil
	}
	row.Icon = cmp.Or(healthIcons[row.Health], "–")
	return row
}

// counted is a count that ends at cloud.MaxFailing; "" for none.
func counted(n int) string {
	switch {
	case n == 0:
		return ""
	case n >= cloud.MaxFailing:
		return strconv.Itoa(cloud.MaxFailing) + "+"
	}
	return strconv.Itoa(n)
}

// logForm is what the log is filtered by, as it stands in the form.
type logForm struct {
	State, Event, Reference, Receiver, From, To string
	Bad                                         string // the field that cannot be read
}

var logStates = []cloud.OutboxState{cloud.OutboxPending, cloud.OutboxDelivering, cloud.OutboxSuccess, cloud.OutboxRetrying, cloud.OutboxFailed, cloud.OutboxDead, cloud.OutboxPaused}

// readLogForm reads the filters of an address. A value that cannot be read filters
// nothing, and is named.
func readLogForm(args *fasthttp.Args, zone *time.Location) (logForm, cloud.BusinessLog) {
	get := func(name string) string { return outside(strings.TrimSpace(string(args.Peek(name))), maxFilter) }
	in := logForm{State: get("state"), Event: get("event"), Reference: get("reference"), Receiver: get("receiver"), From: get("from"), To: get("to")}
	f := cloud.BusinessLog{Event: in.Event, ReferenceID: in.Reference, Limit: maxLog + 1}
	bad := func(field string, value *string) {
		in.Bad, *value = cmp.Or(in.Bad, field), ""
	}
	if in.State != "" {
		known := false
		for _, s := range logStates {
			known = known || string(s) == in.State
		}
		if f.State = cloud.OutboxState(in.State); !known {
			f.State = ""
			bad("col.status", &in.State)
		}
	}
	if in.Receiver != "" {
		n, err := strconv.ParseInt(in.Receiver, 10, 64)
		if f.EndpointID = cloud.EndpointID(n); err != nil || n < 1 {
			f.EndpointID = 0
			bad("hooklog.receiver", &in.Receiver)
		}
	}
	moment := func(field string, value *string) time.Time {
		if *value == "" {
			return time.Time{}
		}
		t, err := time.ParseInLocation(fieldTime, *value, zone)
		if err != nil || t.Year() < 2000 || t.Year() > 9999 {
			bad(field, value)
			return time.Time{}
		}
		return t
	}
	f.From, f.To = moment("hooklog.from", &in.From), moment("hooklog.to", &in.To)
	if at, id, ok := strings.Cut(string(args.Peek("before")), "-"); ok {
		ms, err1 := strconv.ParseInt(at, 10, 64)
		n, err2 := strconv.ParseInt(id, 10, 64)
		if err1 == nil && err2 == nil && n > 0 {
			f.Before = cloud.OutboxMark{At: time.UnixMilli(ms), ID: cloud.OutboxID(n)}
		}
	}
	return in, f
}

// query is the form as it stands in an address.
func (l logForm) query() url.Values {
	q := url.Values{}
	for name, v := range map[string]string{"state": l.State, "event": l.Event, "reference": l.Reference, "receiver": l.Receiver, "from": l.From, "to": l.To} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return q
}

type hooksPage struct {
	frame
	CSRF           string
	Failing        string // deliveries that did not arrive
	Receivers      []receiverRow
	More           bool // receivers that are not shown
	Form           logForm
	States         []cloud.OutboxState
	Stray          bool // the receiver filtered by is not among Receivers
	Filtered, Late bool // the log is filtered; it does not begin with the newest
	Log            []webhookRow
	Newest, Older  string // addresses of pages of the log
	MayReplay      bool
	ReplayStates   []cloud.OutboxState
}

// showDeliveries shows the endpoints of a business and the newest deliveries to them.
func (p webhookPages) showDeliveries(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.reader(c, ctx, "webhook_logs.list")
	if !ok {
		return
	}
	page := hooksPage{CSRF: p.formToken(ctx, &forStaff), States: logStates, ReplayStates: replayStates, MayReplay: p.may(c, v, "webhook_logs.replay_many")}
	form, filter := readLogForm(ctx.QueryArgs(), v.Zone)
	q := form.query()
	page.Form, page.Filtered, page.Late = form, len(q) > 0, filter.Before.ID != 0
	page.Newest = address(q)
	if page.Late {
		q.Set("before", mark(filter.Before))
	}
	v.Title, v.Query = v.T("hooklog.title"), q.Encode()
	page.frame = v.frame
	if err := p.fillHooks(c, v, &page, filter); err != nil {
		p.refused(ctx, v, err)
		return
	}
	p.show(ctx, fasthttp.StatusOK, "hooklog.html", page)
}

func (p webhookPages) fillHooks(c context.Context, v visitor, page *hooksPage, filter cloud.BusinessLog) error {
	receivers, more, err := p.cfg.Receivers.Receivers(c, v.c)
	if err != nil {
		return err
	}
	names := map[cloud.EndpointID]string{}
	for _, r := range receivers {
		row := newReceiverRow(v.frame, r)
		page.Receivers, names[r.ID] = append(page.Receivers, row), row.Name
	}
	page.More = more
	_, known := names[filter.EndpointID]
	page.Stray = filter.EndpointID != 0 && !known
	log, err := p.cfg.Receivers.BusinessLog(c, v.c, filter)
	if err != nil {
		return err
	}
	if len(log) > maxLog {
		log = log[:maxLog]
		d, q := log[maxLog-1].Delivery, page.Form.query()
		q.Set("before", mark(cloud.OutboxMark{At: d.CreatedAt, ID: d.ID}))
		page.Older = address(q)
	}
	for _, r := range log {
		row := newWebhookRow(v.frame, r)
		row.To = cmp.Or(row.To, names[r.Delivery.EndpointID])
		page.Log = append(page.Log, row)
	}
	failing, err := p.cfg.Store.CountFailing(c, v.c.Account.BusinessID)
	page.Failing = counted(failing)
	return err
}

func mark(m cloud.OutboxMark) string { return fmt.Sprintf("%d-%d", m.At.UnixMilli(), m.ID) }

// address is that of the log with a query.
func address(q url.Values) string {
	if len(q) == 0 {
		return hooksPath + "#log"
	}
	return hooksPath + "?" + q.Encode() + "#log"
}

package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webhook"
)

// workTime bounds what waits for a receiver's answers.
const workTime = 28 * time.Second

type receiverPage struct {
	frame
	CSRF               string
	R                  receiverRow
	Why                []string // what its health rests on
	Held               string   // why it is left alone for now
	HeldUntil          *moment
	Manages, MayRotate bool
	Unseen             bool // no person has seen the secret that signs for it
	Resumes            bool
	Events             []string // that it can be tested with
	Problem            string   // why what was just tried did not work
	Done               string   // what was just done
	Test               *webhookRow
	Checks             []webhook.Check
	AllOK              bool
	Secret, Standard   string // new; shown once
	Dropped            bool   // the oldest secret ended for it
}

// receiverNews is what a form about a receiver has brought.
type receiverNews struct {
	tried            error
	checks           []webhook.Check
	secret, standard string
	dropped          bool
}

func receiverID(ctx *fasthttp.RequestCtx) cloud.EndpointID {
	id, _ := ctx.UserValue("id").(string)
	return cloud.EndpointID(hookID(id))
}

func receiverPath(id cloud.EndpointID) string { return fmt.Sprintf("%s/receivers/%d", hooksPath, id) }

// receiver shows one receiver, how it is doing and what can be done about it.
func (p webhookPages) receiver(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if v, ok := p.reader(c, ctx, "webhook_logs.list"); ok {
		p.showReceiver(c, ctx, v, receiverNews{})
	}
}

// manage takes the forms of a receiver's page.
func (p webhookPages) manage(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	v, ok := p.writer(c, ctx)
	if !ok {
		return
	}
	id, do := receiverID(ctx), string(ctx.PostArgs().Peek("do"))
	if id == 0 { // that names no receiver, and a test without one goes to the first there is
		p.refused(ctx, v, cloud.E(cloud.NotFound, "WEBHOOK_URL_NOT_FOUND"))
		return
	}
	var news receiverNews
	query := ""
	switch do {
	case "test":
		var out webhook.TestOutput
		out, news.tried = run[webhook.TestOutput](c, ctx, p.kit, v, "webhook_settings.test", map[string]any{"url_id": id, "event": string(ctx.PostArgs().Peek("event"))})
		query = fmt.Sprint("?test=", out.LogID)
	case "pause":
		_, news.tried = run[webhook.URLOutput](c, ctx, p.kit, v, "webhook_urls.pause", map[string]any{"url_id": id})
		query = "?done=pause"
	case "send", "fail":
		_, news.tried = run[webhook.URLOutput](c, ctx, p.kit, v, "webhook_urls.resume", map[string]any{"url_id": id, "mode": do})
		query = "?done=" + do
	case "check":
		var out webhook.CheckupOutput
		out, news.tried = run[webhook.CheckupOutput](c, ctx, p.kit, v, "webhook_urls.check_up", map[string]any{"url_id": id})
		news.checks = out.Checks
	case "rotate":
		news = p.rotate(c, ctx, v, id)
	default:
		p.message(ctx, fasthttp.StatusBadRequest, "trouble.title", "oops.body")
		return
	}
	if news.tried == nil && query != "" {
		seeOther(ctx, receiverPath(id)+query)
		return
	}
	again, stop := context.WithTimeout(context.Background(), readTime) // the call may have taken its time
	defer stop()
	p.showReceiver(again, ctx, v, news)
}

// rotate gives the level of a receiver a secret beside its present one.
func (p webhookPages) rotate(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id cloud.EndpointID) (n receiverNews) {
	r, err := p.cfg.Receivers.Receiver(c, v.c, id)
	if err == nil && !r.Manages { // else the business's own secret would change
		err = cloud.E(cloud.NotFound, "WEBHOOK_URL_NOT_FOUND")
	}
	if err != nil {
		return receiverNews{tried: err}
	}
	in := map[string]any{"webhook_sign_secret_next": webhook.NewSecret()}
	if r.CustomerID != 0 {
		in["customer_id"] = r.CustomerID
	}
	out, err := run[webhook.SettingsOutput](c, ctx, p.kit, v, "webhook_settings.save", in)
	if err != nil {
		return receiverNews{tried: err}
	}
	return receiverNews{secret: in["webhook_sign_secret_next"].(string), standard: out.StandardNext, dropped: out.DroppedOldest}
}

// showReceiver shows a receiver, and what a form has brought.
func (p webhookPages) showReceiver(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n receiverNews) {
	r, err := p.cfg.Receivers.Receiver(c, v.c, receiverID(ctx))
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	page := receiverPage{CSRF: p.formToken(ctx, &forStaff), R: newReceiverRow(v.frame, r), Problem: p.why(v.frame, n.tried),
		Manages: r.Manages && p.may(c, v, "webhook_urls.pause"), Resumes: r.Status == "paused" || r.Status == "gone", Checks: n.checks, Secret: n.secret, Standard: n.standard, Dropped: n.dropped,
		AllOK: !slices.ContainsFunc(n.checks, func(k webhook.Check) bool { return !k.OK })}
	page.Unseen = r.Unseen
	page.MayRotate = page.Manages && (r.OwnSecret || r.Customer != "") // a rotation gives a customer's level its own
	v.Title = v.T("hooklog.receiver") + " " + page.R.Name
	if done := string(ctx.QueryArgs().Peek("done")); slices.Contains([]string{"pause", "send", "fail"}, done) {
		page.Done, v.Query = v.V("hookdone", done), "done="+done
	}
	if id := hookID(string(ctx.QueryArgs().Peek("test"))); id != 0 {
		s, err := p.cfg.Receivers.FindDeliveryView(c, v.c, webhook.EntryInput{ID: id})
		if err == nil && s.Event.Test && s.Delivery.EndpointID == r.ID {
			row := newWebhookRow(v.frame, cloud.OutboxRow{Event: s.Event, Delivery: s.Delivery})
			page.Test, v.Query = &row, "test="+strconv.FormatInt(id, 10)
		}
	}
	for i, k := range page.Checks {
		if _, err := strconv.Atoi(k.Got); err != nil { // no status: why there was none
			page.Checks[i].Got = reason(v.frame, k.Got)
		}
	}
	page.frame, page.Events = v.frame, p.testEvents(r)
	page.health(r)
	status := fasthttp.StatusOK
	var shown *cloud.Error
	if errors.As(n.tried, &shown) {
		status = statusOf(shown)
	} else if n.tried != nil {
		status = fasthttp.StatusInternalServerError
	}
	p.show(ctx, status, "hookreceiver.html", page)
}

// testEvents are what a receiver can be sent, by the settings that name it.
func (p webhookPages) testEvents(r webhook.Receiver) (out []string) {
	if p.cfg.Webhooks == nil {
		return nil
	}
	for _, e := range p.cfg.Webhooks.Events {
		if slices.ContainsFunc(e.Settings, func(s string) bool { return slices.Contains(r.Settings, s) }) {
			out = append(out, e.Name)
		}
	}
	return out
}

// health says what a receiver's health rests on.
func (page *receiverPage) health(r webhook.Receiver) {
	f, x := page.frame, r.Report
	if r.Status == "paused" && r.StatusReason != "" {
		page.Why = append(page.Why, f.V("hookpause", r.StatusReason))
	}
	if r.Status == "gone" {
		page.Why = append(page.Why, f.V("hookreason", "gone"))
	}
	if x.FailuresHour > 0 {
		page.Why = append(page.Why, f.T("hooklog.rate.hour", strconv.Itoa(x.FailuresHour), strconv.Itoa(x.AttemptsHour)))
	}
	if x.Attempts24h > 0 {
		page.Why = append(page.Why, f.T("hooklog.rate.day", strconv.Itoa(x.Failures24h), strconv.Itoa(x.Attempts24h)))
	}
	if x.Failures > 0 {
		page.Why = append(page.Why, f.T("hooklog.row", strconv.Itoa(x.Failures), f.Time(x.FailingSince).Full))
	}
	if r.Held.Why != "" {
		page.Held, page.HeldUntil = f.V("hookwait", r.Held.Why), f.Time(r.Held.Until)
	}
}

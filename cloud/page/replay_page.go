package page

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webhook"
)

const replaysPath = hooksPath + "/replays"

// replayStates are those of deliveries that can be sent again many at once.
var replayStates = []cloud.OutboxState{cloud.OutboxFailed, cloud.OutboxRetrying, cloud.OutboxPaused, cloud.OutboxSuccess}

type replayPage struct {
	frame
	CSRF    string
	Form    logForm
	Count   int // that would be sent again
	Problem string
	Job     *replayJob // nil: none was begun yet
}

type replayJob struct {
	ID, Status          string
	Count, Sent, Share  int
	Running             bool
	CreatedAt, Finished *moment
}

// replayForm leads to the form, which stands below the log.
func (p webhookPages) replayForm(ctx *fasthttp.RequestCtx) { seeOther(ctx, hooksPath+"#again") }

// replayMany counts what a form chooses, and with its second form sends it.
func (p webhookPages) replayMany(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	v, ok := p.writer(c, ctx)
	if !ok {
		return
	}
	form, filter := readLogForm(ctx.PostArgs(), v.Zone)
	page := p.newReplayPage(ctx, v, form)
	if form.Bad != "" { // sending more than was meant is no way to read a form
		page.Problem = v.T("hooklog.unread", v.T(form.Bad))
		p.show(ctx, fasthttp.StatusUnprocessableEntity, "hookreplay.html", page)
		return
	}
	send := string(ctx.PostArgs().Peek("send")) == "yes"
	out, err := run[webhook.BulkOutput](c, ctx, p.kit, v, "webhook_logs.replay_many", map[string]any{"from": inputTime(filter.From), "to": inputTime(filter.To), "event": filter.Event,
		"status": string(filter.State), "url_id": filter.EndpointID, "dry_run": !send})
	switch {
	case err != nil:
		p.refused(ctx, v, err)
	case out.JobID != nil:
		seeOther(ctx, replaysPath+"/"+*out.JobID)
	default:
		page.Count = out.Count
		p.show(ctx, fasthttp.StatusOK, "hookreplay.html", page)
	}
}

func (p webhookPages) newReplayPage(ctx *fasthttp.RequestCtx, v visitor, form logForm) replayPage {
	v.Title = v.T("hooklog.many")
	return replayPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff), Form: form}
}

// inputTime is a time as operations read it; "" for none.
func inputTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// replayJob shows how far a replay has come.
func (p webhookPages) replayJob(ctx *fasthttp.RequestCtx) { p.showJob(ctx, "webhook_replays.find") }

// cancelReplay ends a replay.
func (p webhookPages) cancelReplay(ctx *fasthttp.RequestCtx) {
	if !ownForm(ctx, &forStaff) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	p.showJob(ctx, "webhook_replays.cancel")
}

func (p webhookPages) showJob(ctx *fasthttp.RequestCtx, operation string) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.reader(c, ctx, "webhook_logs.list")
	if !ok {
		return
	}
	id, _ := ctx.UserValue("job").(string)
	out, err := run[webhook.JobOutput](c, ctx, p.kit, v, operation, map[string]any{"job_id": id})
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	if ctx.IsPost() {
		seeOther(ctx, replaysPath+"/"+out.JobID)
		return
	}
	page := p.newReplayPage(ctx, v, logForm{})
	page.Job = &replayJob{ID: out.JobID, Status: out.Status, Count: out.Count, Sent: out.Sent, Running: out.Status == cloud.ReplayRunning, CreatedAt: v.Time(stamp(out.CreatedAt)), Finished: v.Time(stamp(out.FinishedAt))}
	page.Job.Share = 100
	if out.Count > 0 {
		page.Job.Share = min(100*out.Sent/out.Count, 100)
	}
	p.show(ctx, fasthttp.StatusOK, "hookreplay.html", page)
}

// Percent is how much of the job is done, in words of the page.
func (j replayJob) Percent() string { return strconv.Itoa(j.Share) + " %" }

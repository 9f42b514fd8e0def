package page

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/work"
)

// workPath is the list of what waits for people.
const workPath = ConsolePath + "/work"

// workPage is the work list.
type workPage struct {
	workFrame
	Items  []todo
	Shows  []choice // all, mine, put off
	Show   string
	Cut    string // says that there are more
	Count  int
	Before string // the form of this page brings people back to it
}

// todo is an item as people see it: what is wrong since when, and the steps that act on
// it where it is.
type todo struct {
	ID, Path, Icon, Tone     string
	Headline, Next, Severity string
	Since                    *moment
	Owner, Note              string
	Mine                     bool
	Until                    *moment // put off
	Steps                    []verbLink
	Off                      string // why some steps cannot be taken now; "" for none
	Takes, Marks, Closes     bool   // what the visitor may do
}

// workItems shows the work list.
func (p drawnPages) workItems(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.worker(c, ctx)
	if !ok {
		return
	}
	p.showWork(c, ctx, v, "")
}

func (p drawnPages) showWork(c context.Context, ctx *fasthttp.RequestCtx, v visitor, problem string) {
	out, err := p.workList(c, ctx, v, string(ctx.QueryArgs().Peek("show")))
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	if problem != "" {
		out.Problem = problem
	}
	followTopics(p.kit, ctx, &out.frame, "work:"+out.Show)
	p.show(ctx, fasthttp.StatusOK, "workitems.html", out)
}

// workList reads the work list: all of it, what the visitor sees to, or what is put off.
func (p drawnPages) workList(c context.Context, ctx *fasthttp.RequestCtx, v visitor, show string) (workPage, error) {
	in := map[string]any{"limit": 100}
	switch show {
	case "mine", "snoozed":
		in[show] = true
	default:
		show = "all"
	}
	answer, err := run[work.ListOutput](c, ctx, p.kit, v, "work_items.list", in)
	if err != nil {
		return workPage{}, err
	}
	out := workPage{workFrame: p.work(ctx, v, v.T("noun.work_item")), Show: show, Count: answer.Count}
	out.Shows = []choice{{"all", v.T("todo.all"), show == "all"}, {"mine", v.T("todo.mine"), show == "mine"}, {"snoozed", v.T("todo.snoozed"), show == "snoozed"}}
	for _, x := range answer.Items {
		out.Items = append(out.Items, p.todo(c, v, x))
	}
	if n := len(answer.Items); n < answer.Count || answer.More {
		total := fmt.Sprint(answer.Count)
		if answer.More {
			total += "+"
		}
		out.Cut = v.T("todo.more", fmt.Sprint(n), total)
	}
	return out, nil
}

// markWork takes a form of the work list: who sees to an item, its note, until when it is
// put off.
func (p drawnPages) markWork(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.worker(c, ctx)
	if !ok {
		return
	}
	if !ownForm(ctx, &forStaff) {
		p.showWork(c, ctx, v, v.T("console.expired"))
		return
	}
	field := func(name string) string { return string(ctx.PostArgs().Peek(name)) }
	in := map[string]any{"id": field("item")}
	operation := "work_items." + field("do")
	switch field("do") {
	case "take":
		in["instead"] = field("instead") == "true"
	case "release":
	case "note":
		in["note"] = field("note")
	case "snooze":
		in["hours"] = field("hours")
		if hours, err := time.ParseDuration(field("hours") + "h"); err == nil {
			in["hours"] = int(hours.Hours())
		}
	default:
		p.missing(ctx)
		return
	}
	what, err := p.runMark(c, ctx, v, operation, field("item"), in)
	if err != nil {
		problem, fields, known := p.explain(v.Lang, err)
		if !known {
			p.trouble(ctx, err)
			return
		}
		for _, words := range fields {
			problem += " " + words
		}
		p.showWork(c, ctx, v, problem)
		return
	}
	to := workPath + "?"
	if s := string(ctx.QueryArgs().Peek("show")); s == "mine" || s == "snoozed" {
		to += "show=" + s + "&"
	}
	if what.Undo != nil {
		what.Undo.Back = strings.TrimRight(to, "?&")
	}
	seeOther(ctx, to+sealAfter(p.kit, ctx, what)+"#"+url.PathEscape(field("item")))
}

// runMark runs an operation on an item of the work list and says what was done, with the
// call that takes it back.
func (p drawnPages) runMark(c context.Context, ctx *fasthttp.RequestCtx, v visitor, operation, id string, in map[string]any) (after, error) {
	n, o := p.cfg.Catalog.Noun("work_item"), p.cfg.Catalog.Find(operation)
	record, err := p.find(c, ctx, v, n, id)
	if err != nil {
		return after{}, err
	}
	who, receipt := visitorCaller(p.kit, ctx, v), &cloud.Receipt{}
	if _, err := p.answerTo(cloud.WithReceipt(c, receipt), who, operation, in, catalog.Key{}); err != nil {
		return after{}, err
	}
	return after{Operation: operation, Notices: receipt.Notices(), Target: receipt.Target(), Undo: p.undoOf(c, v, who, n, o, id, record)}, nil
}

// todo is an item in words, with the steps that a visitor may take.
func (p *kit) todo(c context.Context, v visitor, x work.Item) todo {
	may := func(operation string) bool { return p.cfg.Catalog.Find(operation) != nil && p.may(c, v, operation) }
	out := todo{ID: x.ItemID, Path: workPath + "/" + url.PathEscape(x.ItemID), Severity: x.Severity, Tone: map[string]string{"high": "bad", "medium": "warn"}[x.Severity], Owner: x.OwnerName,
		Note: x.Note, Mine: x.OwnerID != nil && *x.OwnerID == v.c.Account.ID, Since: v.stamped(x.Since), Until: v.stamped(x.SnoozedUntil), Icon: workIcons[x.Kind]}
	if out.Tone == "" {
		out.Tone = "calm"
	}
	if x.Kind == cloud.WorkApproval {
		x.Title = asked(p.cfg.Catalog, v.Lang, x.Type, x.Title)
	}
	out.Headline, out.Next = itemWords(v.Lang, "item", x), itemWords(v.Lang, "next", x)
	if x.OpenDoor != nil {
		out.Off = v.T("work.notwith.open_door", outside(*x.OpenDoor, maxValue))
	}
	step := func(allowed bool, to, text string) {
		if allowed {
			out.Steps = append(out.Steps, verbLink{To: to, Text: text})
		}
	}
	cabinet := ""
	if x.DeviceID != nil {
		cabinet = fmt.Sprintf("%s/cabinets/%d", ConsolePath, *x.DeviceID)
	}
	door := cabinet
	if x.GridCode != "" {
		door += "#door-" + url.PathEscape(x.GridCode)
	}
	open := ""
	if x.GridID != nil {
		open = cabinet + "/open?" + url.Values{"grid_ids": {fmt.Sprint(*x.GridID)}, "reason": {out.Headline}}.Encode()
	}
	const resolve = "device_order_exceptions.resolve"
	sees, writes, exception := may("smart_lockers.devices.find"), may("smart_lockers.devices.open"), ConsolePath+"/exceptions/"+url.PathEscape(x.Subject)
	switch x.Kind {
	case cloud.WorkException:
		step(sees, door, v.T("todo.door"))
		if may(resolve) {
			out.Steps = append(out.Steps, verbLink{To: exception + "/resolve", Text: label(v.Lang, resolve), Off: out.Off})
		}
		if x.Type == "deposit_unverified" && x.DeliveryID != nil {
			const confirm = "smart_lockers.deliveries.confirm"
			step(may(confirm) && slices.Contains(p.cfg.Catalog.Find(confirm).When, string(x.DeliveryStatus)), fmt.Sprintf("%s/parcels/%d/confirm", ConsolePath, *x.DeliveryID), label(v.Lang, confirm))
		}
	case cloud.WorkOverdue:
		if x.DeliveryID != nil {
			step(may("smart_lockers.deliveries.find"), fmt.Sprintf("%s/parcels/%d", ConsolePath, *x.DeliveryID), v.T("todo.parcel"))
		}
		step(writes && open != "", open, v.T("todo.takeback"))
		step(may(resolve), exception+"/resolve", label(v.Lang, resolve))
	case cloud.WorkFault, cloud.WorkSilent:
		step(sees, cabinet+"?tab=health", v.T("todo.link"))
	case cloud.WorkEndpoint:
		step(may("webhook_urls.check_up"), ConsolePath+"/webhook-urls/"+url.PathEscape(x.Subject)+"/check_up", label(v.Lang, "webhook_urls.check_up"))
		step(may("webhook_urls.pause"), ConsolePath+"/webhook-urls/"+url.PathEscape(x.Subject)+"/pause", label(v.Lang, "webhook_urls.pause"))
	case cloud.WorkApproval:
		step(p.cfg.Approvals != nil, approvalsPath+"/"+url.PathEscape(x.Subject), v.T("todo.decide"))
	}
	offered := func(operation string) bool { // what cannot be done now is offered too, with the reason
		_, ok := offer(p, c, v, p.cfg.Catalog.Noun("work_item"), p.cfg.Catalog.Find(operation), map[string]any{"kind": x.Kind})
		return ok
	}
	out.Marks, out.Closes = offered("work_items.note"), offered("work_items.close")
	return out
}

// itemTitle names an item that is read as members by name: by what is wrong, which a cabinet's
// name alone does not say.
func itemTitle(lang string, record map[string]any) string {
	x := work.Item{Kind: plainText(record["kind"]), Type: plainText(record["type"]), Title: plainText(record["title"]), DeviceName: plainText(record["device_name"]), DoorName: plainText(record["door_name"])}
	return outside(itemWords(lang, "item", x), maxValue)
}

// itemWords says of an item what is wrong (item) or what to do (next).
func itemWords(lang, kind string, x work.Item) string {
	key, title := x.Kind, outside(x.Title, maxValue)
	if x.Kind == cloud.WorkFault {
		title = locale.Value(lang, "exception", x.Type)
	}
	if own := "item." + x.Type; (x.Kind == cloud.WorkException || x.Kind == cloud.WorkFault) && locale.Word(lang, own) != own {
		key = x.Type
	}
	text := locale.Word(lang, kind+"."+key)
	if !strings.Contains(text, "%[") {
		return text
	}
	return fmt.Sprintf(text, x.DeviceName, outside(x.DoorName, maxValue), title, fmt.Sprint(x.Parcels))
}

var workIcons = map[string]string{cloud.WorkException: "door", cloud.WorkOverdue: "clock", cloud.WorkFault: "warning", cloud.WorkSilent: "plug", cloud.WorkEndpoint: "webhook", cloud.WorkApproval: "shield"}

// stamped is a time of an answer as pages show it.
// clock is the time in words without minutes that count.
func (m *moment) clock() string {
	if m == nil {
		return ""
	}
	return cmp.Or(m.Later, m.Text)
}

func (f frame) stamped(s *string) *moment {
	if s == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339, *s)
	if err != nil {
		return nil
	}
	return f.Time(at)
}

package page

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/page/stream"
	"github.com/postern-io/postern/cloud/work"
)

// homeItems are the work items that the home page shows.
const homeItems = 8

// Bounds of what happened just now.
const (
	feedLines    = 10
	feedOpenings = 4 // of each cabinet
	feedSpan     = 24 * time.Hour
)

// byPeople are the surfaces of what people and their agents do: what programs of partners
// do shows with the doors.
var byPeople = []string{"web", "mcp"}

// feedLine is something that happened just now.
type feedLine struct {
	at   time.Time
	At   *moment
	Who  string // "" where the sentence does not begin with a person
	What string
	To   string // address of what it is about; "" for none
}

// sentLine is what was sent to others today by one way.
type sentLine struct{ Name, Text, Tone, To string }

// roadLine is a driver on duty with the stops of today.
type roadLine struct {
	Name, To    string
	Done, Total int
}

// roadLines are the drivers that the home page shows.
const roadLines = 6

// onTheRoad reads who drives now, as far as the visitor may.
func (p consolePages) onTheRoad(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board) error {
	if b.Drives = p.mayAny(c, v, "drivers.list"); !b.Drives {
		return nil
	}
	if p.mayAny(c, v, "routes.list") {
		b.Day = dayPath
	}
	answer, err := p.read(c, ctx, v, "drivers.list", map[string]any{"on_duty": true, "status": "active", "sort": "name", "per_page": roadLines})
	if err != nil {
		return fmt.Errorf("list drivers on duty: %w", err)
	}
	list, _ := answer["drivers"].([]any)
	for _, x := range list {
		d, ok := x.(map[string]any)
		if !ok {
			continue
		}
		l := roadLine{Name: outside(plainText(d["name"]), maxValue), To: ConsolePath + "/drivers/" + url.PathEscape(plainText(d["driver_id"]))}
		_, _ = fmt.Sscan(plainText(at(d, "today.stops_done")), &l.Done)
		_, _ = fmt.Sscan(plainText(at(d, "today.stops_total")), &l.Total)
		b.Road = append(b.Road, l)
	}
	return nil
}

// addOpenings adds the newest openings of a cabinet to what happened just now.
func (b *board) addOpenings(v cloud.View, x cabinet, cells []cloud.Compartment) error {
	b.Feeds = true
	list, _, err := v.DoorHistory(x.ID, 0, b.Made.Add(-feedSpan), cloud.Page{Sort: "-requested_at", Limit: feedOpenings})
	if err != nil {
		return err
	}
	for _, o := range list {
		at := latest(o.RequestedAt, o.OpenedAt)
		where := x.Name
		if doors := doorList(o, cells); doors != "" {
			where += ", " + doors
		}
		b.Feed = append(b.Feed, feedLine{at: at, At: b.Time(at), Who: outside(o.Requester.Name, maxValue), What: b.V("value", string(o.Kind)) + ": " + where, To: fmt.Sprintf("%s/cabinets/%d?tab=health", ConsolePath, x.ID)})
	}
	return nil
}

// happened adds what people did to what happened just now, and leaves the newest.
func (p consolePages) happened(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board) error {
	if p.mayAny(c, v, "audit.list") {
		b.Feeds, b.FeedAll = true, auditPath
		answer, err := run[account.AuditOutput](c, ctx, p.kit, v, "audit.list", map[string]any{"per_page": 3 * feedLines})
		if err != nil {
			return fmt.Errorf("list what people did: %w", err)
		}
		pages := drawnPages{nounPages(p)}
		untitled := func(_ *catalog.Noun, id string) string { return id } // a line leads to its record and does not name it
		for _, l := range answer.Lines {
			if l.Outcome != "" && l.Outcome != "done" || !slices.Contains(byPeople, l.Surface) || l.At == nil {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, *l.At)
			if err != nil || at.Before(b.Made.Add(-feedSpan)) {
				continue
			}
			b.Feed = append(b.Feed, feedLine{at: at, At: b.Time(at), Who: actorName(v.frame, l), What: actionWords(p.cfg.Catalog, v.Lang, l.Action), To: pages.target(v.frame, untitled, l.Action, l.Target).To})
		}
	}
	slices.SortStableFunc(b.Feed, func(a, z feedLine) int { return z.at.Compare(a.at) })
	b.Feed = b.Feed[:min(len(b.Feed), feedLines)]
	return nil
}

// sentToday counts what went to others today, as far as the visitor may read it.
func (p consolePages) sentToday(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board) error {
	today := b.Made.In(b.Zone)
	midnight := time.Date(today.Year(), today.Month(), today.Day(), 0, 0, 0, 0, b.Zone).Format(time.RFC3339)
	total := func(operation string, in map[string]any) (string, error) {
		in["per_page"] = 1
		answer, err := p.read(c, ctx, v, operation, in)
		if err != nil {
			return "", fmt.Errorf("count what was sent: %w", err)
		}
		return totalOf(v.frame, answer), nil
	}
	if b.Sees.Hooks && p.cfg.Receivers != nil {
		arrived, err := total("webhook_logs.list", map[string]any{"status": "success", "from": midnight})
		if err != nil {
			return err
		}
		late, err := total("webhook_logs.list", map[string]any{"status": "retrying"})
		if err != nil {
			return err
		}
		x := sentLine{Name: v.T("console.webhooks"), Text: v.T("sent.hooks", arrived), Tone: "good", To: hooksPath}
		if late != "0" {
			x.Text, x.Tone = x.Text+" · "+v.T("sent.late", late), "warn"
		}
		b.Sent = append(b.Sent, x)
	}
	if b.Sees.Asks {
		asks, err := total("approvals.list", map[string]any{})
		if err != nil {
			return err
		}
		x := sentLine{Name: v.T("sent.agents"), Text: v.T("sent.none"), Tone: "good", To: approvalsPath}
		if asks != "0" {
			x.Text, x.Tone = v.T("sent.asks", asks), "warn"
		}
		b.Sent = append(b.Sent, x)
	}
	return nil
}

// homeSections are the home page's sections. A cabinet is one of its own.
func (p livePages) homeSections(data any) ([]stream.Section, error) {
	b, _ := data.(board)
	out, err := p.executed("needs", "homefigures", "todos", "road", "now", "sent", "cabinets", "openings", "deliveries", "webhooks")(b)
	if err != nil {
		return nil, err
	}
	shape := fmt.Sprint(b.More, b.Adds)
	for _, x := range b.Cabinets {
		html, err := p.execute("cabinet", struct{ Page, Name any }{b, x})
		if err != nil {
			return nil, err
		}
		shape += fmt.Sprint(" ", x.ID)
		out = append(out, stream.Section{Name: fmt.Sprint("cab-", x.ID), HTML: html, Of: "cabinets"})
	}
	for i := range out {
		if out[i].Name == "cabinets" {
			out[i].Shape = shape
		}
	}
	return out, nil
}

// figure is a number of today with what it is a part of.
type figure struct {
	Name, Value, Of, Note, To string
	Tone                      string
	Part, Whole               int // of a bar; Whole 0: none
}

// needs fills in what the home page says first: what needs the visitor, and the figures
// of today. The visitor's rights decide about each.
func (p consolePages) needs(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board) error {
	answer, err := run[work.ListOutput](c, ctx, p.kit, v, "work_items.list", map[string]any{"limit": 200})
	if err != nil {
		return fmt.Errorf("list work items: %w", err)
	}
	overdue, locked := 0, len(b.Todos)
	for i, x := range answer.Items {
		if x.Kind == cloud.WorkOverdue {
			overdue++
		}
		if i < homeItems {
			b.Todos = append(b.Todos, p.todo(c, v, x))
		}
	}
	total := answer.Count + locked
	count := fmt.Sprint(total)
	if answer.More {
		count += "+"
	}
	switch {
	case total == 0 && b.Failing != "":
		b.Needs = v.T("home.zerobut", b.Failing)
	case total == 0:
		b.Needs = v.T("home.zero")
	case total == 1:
		b.Needs = v.T("home.one")
	default:
		b.Needs = v.T("home.many", count)
	}
	if err := p.happened(c, ctx, v, b); err != nil {
		return err
	}
	if err := p.sentToday(c, ctx, v, b); err != nil {
		return err
	}
	if err := p.onTheRoad(c, ctx, v, b); err != nil {
		return err
	}
	return p.figures(c, ctx, v, b, overdue)
}

// figures adds the figures that the visitor may read, in the order of their reading.
// Those of more than a day are the reports' own, of the range that reports begin with.
func (p consolePages) figures(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board, overdue int) error {
	r := newReporting(c, ctx, p.kit, v, usualRange(v))
	if b.Sees.Orders {
		if err := p.ordersToday(c, ctx, v, b); err != nil {
			return err
		}
	}
	report := func(name string) string { return reportsPath + "#report-" + name }
	if p.mayAny(c, v, "reports.orders") {
		_, text, err := r.onTime()
		if err != nil {
			return err
		}
		b.Figures = append(b.Figures, figure{Name: v.T("report.ontime"), Value: text, Of: v.T("report.days.7"), To: report("ontime")})
	}
	if !b.Sees.Lockers || !p.mayAny(c, v, "reports.occupancy") {
		return nil
	}
	doors, err := r.occupancy()
	if err != nil {
		return err
	}
	waiting := figure{Name: v.T("home.waiting"), Value: r.count(doors.Occupied), To: ConsolePath + "/parcels?status=delivered"}
	if overdue > 0 {
		waiting.Note, waiting.Tone = v.T("home.overdue", r.count(overdue)), "warn"
	}
	_, wait, err := r.collection()
	if err != nil {
		return err
	}
	known := doors.Compartments - doors.Unread // doors of a cabinet that never connected are no doors to count on
	b.Figures = append(b.Figures, waiting,
		figure{Name: v.T("report.collection"), Value: wait, Of: v.T("report.days.7"), To: report("collection")},
		figure{Name: v.T("home.free"), Value: r.count(doors.Free), Of: v.T("home.of", r.count(known)), Part: doors.Free, Whole: known, To: report("occupancy")})
	return nil
}

// ordersToday counts the orders that are planned for today, and those of them that have
// arrived.
func (p consolePages) ordersToday(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board) error {
	today := b.Made.In(b.Zone).Format(time.DateOnly)
	counted := func(more map[string]any) (text string, n int, err error) {
		in := map[string]any{"scheduled_date_from": today, "scheduled_date_to": today, "per_page": 1}
		for k, x := range more {
			in[k] = x
		}
		answer, err := p.read(c, ctx, v, "orders.list", in)
		if err != nil {
			return "", 0, fmt.Errorf("count orders of today: %w", err)
		}
		return totalOf(v.frame, answer), number(answer["total"]), nil
	}
	all, whole, err := counted(nil)
	if err != nil {
		return err
	}
	done, part, err := counted(map[string]any{"status_ids": []any{int(cloud.OrderDelivered)}})
	if err != nil {
		return err
	}
	failed, _, err := counted(map[string]any{"status_ids": []any{int(cloud.OrderDeliveryFailed)}})
	if err != nil {
		return err
	}
	note := ""
	if failed != "0" {
		note = v.T("home.failed", failed)
	}
	to := ConsolePath + "/orders"
	if p.mayAny(c, v, "routes.list") {
		to = dayPath
	}
	b.Figures = append(b.Figures, figure{Note: note, Name: v.T("home.delivered"), Value: done, Of: v.T("home.of", all), Part: part, Whole: whole, To: to})
	return nil
}

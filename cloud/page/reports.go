package page

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page/chart"
	"github.com/postern-io/postern/cloud/report"
)

// reportsPath is the page of reports: what happened at cabinets, orders and webhooks in a
// range of days.
const reportsPath = ConsolePath + "/reports"

// shownCabinets are the cabinets that a chart has, at most.
const shownCabinets = 20

// reportKind is a report of the page. draw makes its chart from the operation's answer.
type reportKind struct {
	name, operation string
	draw            func(reporting) (chart.Chart, error)
}

// reporting draws reports for a visitor, of the range that in has.
type reporting struct {
	visitor
	p   *kit
	c   context.Context
	ctx *fasthttp.RequestCtx
	in  map[string]any
	// answers are those of operations that several charts are drawn of.
	answers map[string]any
}

func newReporting(c context.Context, ctx *fasthttp.RequestCtx, p *kit, v visitor, in map[string]any) reporting {
	return reporting{v, p, c, ctx, in, map[string]any{}}
}

// askReport is what an operation answers about the range, asked once.
func askReport[Out any](r reporting, operation string) (Out, error) {
	if out, ok := r.answers[operation].(Out); ok {
		return out, nil
	}
	out, err := run[Out](r.c, r.ctx, r.p, r.visitor, operation, r.in)
	if err == nil {
		r.answers[operation] = out
	}
	return out, err
}

var reportKinds = []reportKind{
	{"deliveries", "reports.deliveries", reporting.drawDeliveries},
	{"hours", "reports.deliveries", reporting.drawHours},
	{"collection", "reports.collection", reporting.drawWaits},
	{"waits", "reports.collection", reporting.drawMeans},
	{"occupancy", "reports.occupancy", reporting.drawOccupancy},
	{"connections", "reports.connections", reporting.drawConnections},
	{"orders", "reports.orders", reporting.drawOrders},
	{"ontime", "reports.orders", reporting.drawOnTime},
	{"webhooks", "reports.webhooks", reporting.drawWebhooks},
}

// reportsPage is the page of reports.
type reportsPage struct {
	workFrame
	From, To string // of the range, as HTML has dates
	Ranges   []pageLink
	Parts    []reportPart
}

// reportPart is a chart with the address of its figures as a file.
type reportPart struct {
	Title, CSV string
	Chart      template.HTML
}

// reportRange is the range that a request asks for: days back from today, or from and to,
// with its form in addresses. Without either it is seven days.
func reportRange(ctx *fasthttp.RequestCtx, v visitor) (in map[string]any, query url.Values, days string) {
	in, query = map[string]any{}, url.Values{}
	if v.Zone != nil && v.Zone != time.UTC {
		in["time_zone"] = v.Zone.String()
	}
	arg := func(name string) string {
		if s := string(ctx.QueryArgs().Peek(name)); len(s) <= len(time.DateOnly) {
			return s
		}
		return ""
	}
	from, to := arg("from"), arg("to")
	if from != "" || to != "" {
		for name, x := range map[string]string{"from": from, "to": to} {
			if x != "" {
				in[name] = x
				query.Set(name, x)
			}
		}
		return in, query, ""
	}
	days = "7"
	if d := arg("days"); d == "1" || d == "30" {
		days = d
	}
	n, _ := strconv.Atoi(days)
	query.Set("days", days)
	return lastDays(v, n), query, days
}

// lastDays is the range of some days up to today.
func lastDays(v visitor, n int) map[string]any {
	today := time.Now().In(v.zone())
	in := map[string]any{"from": today.AddDate(0, 0, 1-n).Format(time.DateOnly), "to": today.Format(time.DateOnly)}
	if v.Zone != nil && v.Zone != time.UTC {
		in["time_zone"] = v.Zone.String()
	}
	return in
}

// usualRange is the range that reports begin with.
func usualRange(v visitor) map[string]any { return lastDays(v, 7) }

func (f frame) zone() *time.Location {
	if f.Zone == nil {
		return time.UTC
	}
	return f.Zone
}

// reports shows the charts of a range that the visitor may read.
func (p drawnPages) reports(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, kinds, ok := p.reportReader(c, ctx)
	if !ok {
		return
	}
	in, query, days := reportRange(ctx, v)
	out := reportsPage{workFrame: p.work(ctx, v, v.T("report.title"))}
	out.Query = query.Encode()
	out.From, _ = in["from"].(string)
	out.To, _ = in["to"].(string)
	for _, d := range [][2]string{{"1", "report.days.1"}, {"7", "report.days.7"}, {"30", "report.days.30"}} {
		out.Ranges = append(out.Ranges, pageLink{"?days=" + d[0], v.T(d[1]), d[0] == days})
	}
	r := newReporting(c, ctx, p.kit, v, in)
	for _, k := range kinds {
		drawn, err := k.draw(r)
		if err != nil {
			problem, fields, known := p.explain(v.Lang, err)
			if !known {
				p.trouble(ctx, err)
				return
			}
			for _, text := range fields {
				problem = text
			}
			out.Problem = problem
			if shown := new(cloud.Error); errors.As(err, &shown) && shown.Kind == cloud.Invalid {
				break // the same range is refused by all
			}
			continue
		}
		out.Parts = append(out.Parts, reportPart{drawn.Title, reportsPath + "/" + k.name + ".csv?" + query.Encode(), drawn.HTML()})
	}
	p.show(ctx, fasthttp.StatusOK, "reports.html", out)
}

// reportReader is a visitor who may read a report at least, with those reports.
func (p drawnPages) reportReader(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, kinds []reportKind, ok bool) {
	if v, ok = p.worker(c, ctx); !ok {
		return v, nil, false
	}
	var refused error
	for _, k := range reportKinds {
		if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(k.operation), v.c); err == nil {
			kinds = append(kinds, k)
		} else if refused == nil {
			refused = err
		}
	}
	if len(kinds) == 0 {
		p.refused(ctx, v, refused)
		return v, nil, false
	}
	return v, kinds, true
}

// exportReport sends the figures of a chart as a file.
func (p drawnPages) exportReport(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	name, _ := ctx.UserValue("report").(string)
	v, kinds, ok := p.reportReader(c, ctx)
	if !ok {
		return
	}
	in, _, _ := reportRange(ctx, v)
	for _, k := range kinds {
		if k.name+".csv" != name {
			continue
		}
		drawn, err := k.draw(newReporting(c, ctx, p.kit, v, in))
		if err != nil {
			p.refused(ctx, v, err)
			return
		}
		ctx.SetContentType("text/csv; charset=utf-8")
		ctx.Response.Header.Set("Content-Disposition", `attachment; filename="report-`+k.name+"-"+time.Now().In(v.zone()).Format(time.DateOnly)+`.csv"`)
		w := csv.NewWriter(ctx)
		head := []string{noFormula(drawn.Heading)}
		for _, s := range drawn.Series {
			head = append(head, noFormula(s.Name))
		}
		_ = w.Write(head) // into memory
		for i, category := range drawn.Categories {
			row := []string{noFormula(cmp.Or(category.File, category.Text))}
			for _, s := range drawn.Series {
				cell := ""
				if i < len(s.Values) && !math.IsNaN(s.Values[i]) {
					cell = strconv.FormatFloat(s.Values[i], 'f', -1, 64)
				}
				row = append(row, cell)
			}
			_ = w.Write(row)
		}
		w.Flush()
		return
	}
	p.missing(ctx)
}

// newChart starts the chart of a report. Series are keys of words, each with its tone.
func (r reporting) newChart(title string, kind chart.Kind, heading string, series ...[2]string) chart.Chart {
	c := chart.Chart{ID: strings.ReplaceAll(title, ".", "-"), Kind: kind, Title: r.T(title), Heading: r.T(heading), Table: r.T("report.table"), Format: r.number, Level: 2}
	for _, s := range series {
		c.Series = append(c.Series, chart.Series{Name: r.T(s[0]), Tone: s[1]})
	}
	return c
}

// addCategory appends a category with a value of each series.
func addCategory(c *chart.Chart, category chart.Category, values ...float64) {
	c.Categories = append(c.Categories, category)
	for i, v := range values {
		c.Series[i].Values = append(c.Series[i].Values, v)
	}
}

// part names an hour or a day of a report.
func (r reporting) part(at, step string) chart.Category {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return chart.Category{Text: at}
	}
	if step == "hour" {
		return chart.Category{Text: locale.DateHour(r.Lang, t), Short: t.Format("15:04"), File: t.Format("2006-01-02 15:04")}
	}
	return chart.Category{Text: locale.Date(r.Lang, t), Short: locale.DayMonth(r.Lang, t), File: t.Format(time.DateOnly)}
}

// number writes a number as the page's language does.
func (f frame) number(v float64) string { return locale.Number(f.Lang, v) }

func (r reporting) count(n int) string { return r.number(float64(n)) }

// share is a part of a whole in percent, "0" of nothing.
func (r reporting) share(part, whole int) string {
	if whole == 0 {
		return "0"
	}
	return r.number(math.Round(float64(part) / float64(whole) * 100))
}

// noFigure stands for a figure of nothing.
const noFigure = "–"

// percent is a part of a whole with one digit behind the point, noFigure of nothing.
func (r reporting) percent(part, whole int) string {
	if whole == 0 {
		return noFigure
	}
	return r.T("report.percent", r.number(math.Floor(float64(part)/float64(whole)*1000)/10))
}

// wait is a time of some hours in words: below two hours in minutes.
func (r reporting) wait(hours float64) string {
	if hours < 2 {
		return r.T("report.minutes.of", r.number(math.Round(hours*60)))
	}
	return r.T("report.hours.of", r.number(math.Round(hours*10)/10))
}

// busiest is the category where the series together are highest.
func busiest(c chart.Chart) (text string, sum float64) {
	for i, k := range c.Categories {
		all := 0.0
		for _, s := range c.Series {
			all += s.Values[i]
		}
		if all > sum {
			text, sum = k.Text, all
		}
	}
	return text, sum
}

func (r reporting) drawDeliveries() (chart.Chart, error) {
	out, err := askReport[report.DeliveriesOutput](r, "reports.deliveries")
	drawn := r.newChart("report.deliveries", chart.Bars, "report."+out.Step, [2]string{"report.deposits"}, [2]string{"report.collections"})
	for _, x := range out.Items {
		addCategory(&drawn, r.part(x.At, out.Step), float64(x.Deposits), float64(x.Collections))
	}
	drawn.Sentence = r.T("report.deliveries.said", r.count(out.Deposits), r.count(out.Collections))
	if at, n := busiest(drawn); n > 0 {
		drawn.Sentence += " " + r.T("report.peak", at, r.number(n))
	}
	return drawn, err
}

// drawHours counts doors by the hour of the day.
func (r reporting) drawHours() (chart.Chart, error) {
	out, err := askReport[report.DeliveriesOutput](r, "reports.deliveries")
	drawn := r.newChart("report.hours", chart.Stack, "report.hour", [2]string{"report.deposits"}, [2]string{"report.collections"})
	for _, x := range out.Hours {
		hour := strconv.Itoa(x.Hour)
		addCategory(&drawn, chart.Category{Text: hour + ":00", Short: hour}, float64(x.Deposits), float64(x.Collections))
	}
	drawn.Sentence = r.T("report.hours.none")
	if at, n := busiest(drawn); n > 0 {
		drawn.Sentence = r.T("report.hours.said", at, r.number(n))
	}
	return drawn, err
}

// drawDoors draws deposits and collections of today by the hour of the day; "" for a
// visitor who may not read them.
func (p consolePages) drawDoors(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (template.HTML, error) {
	if !p.mayAny(c, v, "reports.deliveries") {
		return "", nil
	}
	today := time.Now().In(v.zone()).Format(time.DateOnly)
	drawn, err := newReporting(c, ctx, p.kit, v, map[string]any{"from": today, "to": today, "time_zone": v.zone().String()}).drawHours()
	if err != nil {
		return "", err
	}
	return drawn.HTML(), nil
}

func (r reporting) drawWaits() (chart.Chart, error) {
	out, mean, err := r.collection()
	drawn := r.newChart("report.collection", chart.Bars, "report.wait", [2]string{"report.collections"})
	within := 0
	for _, x := range out.Waits {
		text := r.T("report.wait.over", strconv.Itoa(x.FromHours))
		if x.ToHours != nil {
			text = r.T("report.wait.between", strconv.Itoa(x.FromHours), strconv.Itoa(*x.ToHours))
			if *x.ToHours <= 24 {
				within += x.Collections
			}
		}
		addCategory(&drawn, chart.Category{Text: text}, float64(x.Collections))
	}
	drawn.Sentence = r.T("report.collection.none")
	if out.MeanHours != nil {
		drawn.Sentence = r.T("report.collection.said", mean, r.share(within, out.Collections))
	}
	return drawn, err
}

// collection is how long parcels waited for their collection, and the mean in words.
func (r reporting) collection() (out report.CollectionOutput, text string, err error) {
	out, err = askReport[report.CollectionOutput](r, "reports.collection")
	if out.MeanHours == nil {
		return out, noFigure, err
	}
	return out, r.wait(*out.MeanHours), err
}

func (r reporting) drawMeans() (chart.Chart, error) {
	out, err := askReport[report.CollectionOutput](r, "reports.collection")
	drawn := r.newChart("report.waits", chart.Line, "report.day", [2]string{"report.mean"})
	longest, at := 0.0, ""
	for _, x := range out.Days {
		mean, day := math.NaN(), r.part(x.Date+"T00:00:00Z", "day")
		if x.MeanHours != nil {
			if mean = *x.MeanHours; mean >= longest {
				longest, at = mean, day.Text
			}
		}
		addCategory(&drawn, day, mean)
	}
	drawn.Sentence = r.T("report.collection.none")
	if at != "" {
		drawn.Sentence = r.T("report.waits.said", at, r.wait(longest))
	}
	return drawn, err
}

// occupancy is how full cabinets are now.
func (r reporting) occupancy() (report.OccupancyOutput, error) {
	return run[report.OccupancyOutput](r.c, r.ctx, r.p, r.visitor, "reports.occupancy", map[string]any{"limit": shownCabinets})
}

func (r reporting) drawOccupancy() (chart.Chart, error) {
	out, err := r.occupancy()
	drawn := r.newChart("report.occupancy", chart.Stack, "report.cabinet", [2]string{"report.occupied"}, [2]string{"report.reserved", "calm"}, [2]string{"report.free", "off"}, [2]string{"report.blocked", "bad"}, [2]string{"report.unread", "warn"})
	for _, x := range out.Items {
		addCategory(&drawn, chart.Category{Text: outside(x.DeviceName, maxValue)}, float64(x.Occupied), float64(x.Reserved), float64(x.Free), float64(x.Blocked), float64(x.Unread))
	}
	drawn.Sentence = r.T("report.occupancy.none")
	if out.Compartments > 0 {
		drawn.Sentence = r.T("report.occupancy.said", r.count(out.Occupied), r.count(out.Compartments), r.share(out.Occupied, out.Compartments))
	}
	if out.Cabinets > len(out.Items) {
		drawn.Sentence += " " + r.T("report.part", r.count(len(out.Items)), r.count(out.Cabinets))
	}
	return drawn, err
}

func (r reporting) drawConnections() (chart.Chart, error) {
	asked := map[string]any{"limit": shownCabinets}
	for name, x := range r.in {
		asked[name] = x
	}
	out, err := run[report.ConnectionsOutput](r.c, r.ctx, r.p, r.visitor, "reports.connections", asked)
	drawn := r.newChart("report.connections", chart.Bars, "report.cabinet", [2]string{"report.minutes"}, [2]string{"report.longest"})
	for _, x := range out.Items {
		addCategory(&drawn, chart.Category{Text: outside(x.DeviceName, maxValue)}, float64(x.DownMinutes), float64(x.LongestMinutes))
	}
	drawn.Sentence = r.T("report.connections.none")
	if out.Gaps > 0 {
		drawn.Sentence = r.T("report.connections.said", r.count(out.Cabinets), r.count(out.Gaps), r.number(math.Round(float64(out.DownMinutes)/6)/10))
	}
	if out.Cabinets > len(out.Items) {
		drawn.Sentence += " " + r.T("report.part", r.count(len(out.Items)), r.count(out.Cabinets))
	}
	return drawn, err
}

func (r reporting) drawWebhooks() (chart.Chart, error) {
	out, err := askReport[report.WebhooksOutput](r, "reports.webhooks")
	drawn := r.newChart("report.webhooks", chart.Stack, "report."+out.Step, [2]string{"report.taken", "good"}, [2]string{"report.failed", "bad"})
	for _, x := range out.Items {
		addCategory(&drawn, r.part(x.At, out.Step), float64(x.Attempts-x.Failures), float64(x.Failures))
	}
	drawn.Sentence = r.T("report.webhooks.none")
	if out.Attempts > 0 {
		drawn.Sentence = r.T("report.webhooks.said", r.count(out.Attempts), r.count(out.Failures), r.share(out.Attempts-out.Failures, out.Attempts))
	}
	return drawn, err
}

// orderGroup is the series of the chart of orders that a state is in: delivered, under
// way, failed or cancelled.
func orderGroup(s cloud.OrderStatus) int {
	switch s {
	case cloud.OrderDelivered:
		return 0
	case cloud.OrderPickupFailed, cloud.OrderPartlyDelivered, cloud.OrderDeliveryFailed, cloud.OrderRejected, cloud.OrderReturned, cloud.OrderIntercepted:
		return 2
	case cloud.OrderCancelled:
		return 3
	}
	return 1
}

func (r reporting) drawOrders() (chart.Chart, error) {
	out, err := askReport[report.OrdersOutput](r, "reports.orders")
	drawn := r.newChart("report.orders", chart.Stack, "report.day", [2]string{"report.delivered", "good"}, [2]string{"report.underway", "calm"}, [2]string{"report.notdelivered", "bad"}, [2]string{"report.cancelled", "off"})
	all := make([]float64, 4)
	for _, x := range out.Days {
		n := make([]float64, 4)
		for _, s := range x.Statuses {
			n[orderGroup(s.OrderStatusID)] += float64(s.Orders)
			all[orderGroup(s.OrderStatusID)] += float64(s.Orders)
		}
		addCategory(&drawn, r.part(x.Date+"T00:00:00Z", "day"), n...)
	}
	drawn.Sentence = r.T("report.orders.none")
	if out.Orders > 0 {
		drawn.Sentence = r.T("report.orders.said", r.count(out.Orders), r.number(all[0]), r.number(all[2]))
	}
	return drawn, err
}

// onTime counts the orders that were due, and says how many of them were delivered by the
// end of their day.
func (r reporting) onTime() (out report.OrdersOutput, text string, err error) {
	out, err = askReport[report.OrdersOutput](r, "reports.orders")
	return out, r.percent(out.OnTime, out.Due), err
}

func (r reporting) drawOnTime() (chart.Chart, error) {
	out, text, err := r.onTime()
	drawn := r.newChart("report.ontime", chart.Bars, "report.day", [2]string{"report.due", "calm"}, [2]string{"report.intime", "good"})
	for _, x := range out.Days {
		addCategory(&drawn, r.part(x.Date+"T00:00:00Z", "day"), float64(x.Due), float64(x.OnTime))
	}
	drawn.Sentence = r.T("report.ontime.none")
	if out.Due > 0 {
		drawn.Sentence = r.T("report.ontime.said", r.count(out.Due), r.count(out.OnTime), text)
	}
	return drawn, err
}

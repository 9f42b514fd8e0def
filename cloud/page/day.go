package page

import (
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
)

// DayPath is the day board: routes, drivers and orders of one day.
const dayPath = ConsolePath + "/day"

// dayPage is the day board of one day.
type dayPage struct {
	workFrame
	Date, Day, Before, After string // as HTML has dates; Day in words
	Parts                    []dayPart
}

// dayPart is a list of the board.
type dayPart struct {
	Title, Summary, Empty, All string
	Table                      nounTable
}

// day shows a day's routes with their drivers, and its orders without a route.
func (p drawnPages) day(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.worker(c, ctx)
	if !ok {
		return
	}
	if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find("routes.list"), v.c); err != nil {
		p.refused(ctx, v, err)
		return
	}
	out, err := p.dayOf(c, ctx, v, string(ctx.QueryArgs().Peek("date")))
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	followTopics(p.kit, ctx, &out.frame, "day:"+out.Date)
	p.show(ctx, fasthttp.StatusOK, "day.html", out)
}

// dayOf reads the day board of a date; "" or no date: of today.
func (p drawnPages) dayOf(c context.Context, ctx *fasthttp.RequestCtx, v visitor, given string) (dayPage, error) {
	zone := v.Zone
	if zone == nil {
		zone = time.UTC
	}
	at, err := time.ParseInLocation(time.DateOnly, given, zone)
	if err != nil {
		at = time.Now().In(zone)
	}
	date := at.Format(time.DateOnly)
	out := dayPage{workFrame: p.work(ctx, v, v.T("work.day")), Date: date, Before: at.AddDate(0, 0, -1).Format(time.DateOnly), After: at.AddDate(0, 0, 1).Format(time.DateOnly)}
	unplanned := []any{int(cloud.OrderNew), int(cloud.OrderReady), int(cloud.OrderPickupRescheduled), int(cloud.OrderDeliveryRescheduled)}
	refs := p.references(c, ctx, v)
	for _, x := range []struct {
		noun, title, empty string
		columns            []string
		in                 map[string]any
		all                string
	}{
		{"route", "work.day.routes", "work.day.noroute", []string{"name", "status", "driver_name", "stop_count", "completed_count", "failed_count", "start_at", "end_at"}, map[string]any{"date": date, "per_page": 100}, "?date=" + date},
		{"order", "work.day.unplanned", "work.day.allplanned", []string{"tracking_number", "order_status_id", "recipient.name", "recipient.city", "package_count", "priority"}, map[string]any{"scheduled_date_from": date, "scheduled_date_to": date, "status_ids": unplanned, "per_page": 50}, "?scheduled_date_from=" + date + "&scheduled_date_to=" + date},
		{"driver", "work.day.drivers", "work.day.nodriver", []string{"name", "on_duty", "today.stops_done", "today.stops_total", "phone"}, map[string]any{"status": "active", "per_page": 100}, ""},
	} {
		n := p.cfg.Catalog.Noun(x.noun)
		if !p.may(c, v, n.List) {
			continue
		}
		answer, err := p.read(c, ctx, v, n.List, x.in)
		if err != nil {
			return out, err
		}
		t := p.table(v.frame, n, x.columns, answer, refs)
		t.Caption = v.T(x.title)
		total := plainText(answer["total"])
		if answer["total_is_lower_bound"] == true {
			total += "+"
		}
		out.Parts = append(out.Parts, dayPart{Title: v.T(x.title), Summary: fmt.Sprint(total), Empty: v.T(x.empty), Table: t, All: ConsolePath + "/" + n.Path + x.all})
	}
	return out, nil
}

package page

import (
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/work"
)

// homeItems are the work items that the home page shows.
const homeItems = 5

// figure is a number of today with what it is a part of.
type figure struct {
	Name, Value, Of, Note, To string
	Tone                      string
	Part, Whole               int // of a bar; Whole 0: none
}

// needs fills in what the home page says first: what needs the visitor, and the figures
// of today. The visitor's rights decide about each.
func (p consolePages) needs(c context.Context, ctx *fasthttp.RequestCtx, v visitor, b *board) error {
	b.Hello = v.T("home.hello", v.c.Account.Name)
	answer, err := run[work.ListOutput](c, ctx, p.kit, v, "work_items.list", map[string]any{"limit": 200})
	if err != nil {
		return fmt.Errorf("list work items: %w", err)
	}
	overdue := 0
	for i, x := range answer.Items {
		if x.Kind == cloud.WorkOverdue {
			overdue++
		}
		if i < homeItems {
			b.Todos = append(b.Todos, p.todo(c, v, x))
		}
	}
	count := fmt.Sprint(answer.Count)
	if answer.More {
		count += "+"
	}
	switch {
	case answer.Count == 0:
		b.Needs = v.T("home.zero")
	case answer.Count == 1:
		b.Needs = v.T("home.one")
	default:
		b.Needs = v.T("home.many", count)
	}
	if b.Sees.Orders {
		if err := p.ordersToday(c, ctx, v, b); err != nil {
			return err
		}
	}
	if !b.Sees.Lockers || b.More || len(b.Cabinets) == 0 { // figures of a part of the cabinets would be wrong
		return nil
	}
	doors, free, inside := 0, 0, 0
	for _, x := range b.Cabinets {
		for _, column := range x.Columns {
			for _, d := range column {
				doors++
				if d.State == cloud.GridOccupied {
					inside++
				}
				if d.State == cloud.GridFree {
					free++
				}
			}
		}
	}
	waiting := figure{Name: v.T("home.waiting"), Value: fmt.Sprint(inside), To: ConsolePath + "/parcels?status=delivered"}
	if overdue > 0 {
		waiting.Note, waiting.Tone = v.T("home.overdue", fmt.Sprint(overdue)), "warn"
	}
	b.Figures = append(b.Figures, waiting, figure{Name: v.T("home.free"), Value: fmt.Sprint(free), Of: v.T("home.of", fmt.Sprint(doors)), Part: free, Whole: doors})
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
		text = plainText(answer["total"])
		_, _ = fmt.Sscan(text, &n)
		if answer["total_is_lower_bound"] == true {
			text += "+"
		}
		return text, n, nil
	}
	all, whole, err := counted(nil)
	if err != nil {
		return err
	}
	done, part, err := counted(map[string]any{"status_ids": []any{int(cloud.OrderDelivered)}})
	if err != nil {
		return err
	}
	b.Figures = append(b.Figures, figure{Name: v.T("home.delivered"), Value: done, Of: v.T("home.of", all), Part: part, Whole: whole, To: dayPath})
	return nil
}

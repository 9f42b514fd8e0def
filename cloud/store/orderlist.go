package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// orderSorts are the columns that a list may be in the order of.
var orderSorts = map[string]sortColumn{
	"id":              {},
	"created_at":      {name: "created_at"},
	"updated_at":      {name: "updated_at"},
	"scheduled_date":  {name: "scheduled_date", text: true},
	"priority":        {name: "priority"},
	"order_status_id": {name: "status_id"},
}

// ListOrders reads a page of orders and counts all that the query asks for, up
// to cloud.MaxTotal. Error: cloud.ErrNoMark when the page begins after a row that
// such a list cannot have.
func (db orders) ListOrders(ctx context.Context, q cloud.OrderQuery) (out cloud.Listed, found []cloud.Order, err error) {
	column, ok := orderSorts[q.Sort]
	if !ok {
		return out, nil, fmt.Errorf("orders are not sorted by %q", q.Sort)
	}
	if err := column.check(q.After); err != nil {
		return out, nil, err
	}
	err = db.engine.read(ctx, func(ctx context.Context, r querier) (err error) {
		l := orderList{db: db.database, q: q, column: column}
		if q.Keyword != "" {
			if l, err = l.narrowed(ctx, r, fewCandidates); err != nil {
				return err
			}
		} else if l, err = l.bounded(ctx, r); err != nil {
			return err
		}
		if l.byWords() {
			out, found, err = l.keywordRows(ctx, r)
			return err
		}
		if l.q.Keyword != "" && l.onlyWords() && q.Down && q.After == nil && q.Offset+q.Limit < cloud.MaxTotal {
			n, err := l.crowded(ctx, r)
			if err != nil {
				return err
			}
			if l.above > 0 {
				out = cloud.Counted(n)
				found, out.Next, err = readKeyed(ctx, r, l.page(out), q.Page, scanOrder)
				return err
			}
		}
		if l.q.Keyword != "" && q.Sort == "id" && q.After == nil && q.Offset+q.Limit <= cloud.MaxTotal {
			if out, found, err = l.byKeyword(ctx, r); err != nil || len(found) > 0 {
				return err
			}
		}
		count := l.count()
		n, err := one(ctx, r, count.sql, scanInt, count.args...)
		if err != nil {
			return err
		}
		out = cloud.Counted(n)
		if n == 0 {
			return nil
		}
		found, out.Next, err = readKeyed(ctx, r, l.page(out), q.Page, scanOrder)
		return err
	})
	return out, found, err
}

// orderList makes the statements of one query.
//
// SQLite keeps no statistics here, so each statement names its index; of
// PostgreSQL the planner knows. Orders are found by the first of these that the
// query has:
//
//	a keyword                     the search's index, newest first; where the rest of
//	                              the query finds few orders, these are searched
//	a customer, contractor, …     that one's index
//	a route, a warehouse          that one's index, which has no more of an order
//	nothing, or a sort only       the index in the order of the list
//	statuses                      one walk of orders_status for each of them
//	a time of creation            orders_created; in the order of ids, one walk of
//	                              orders_week for each week
//	anything else                 orders_business, which has all that is filtered by
type orderList struct {
	db     *database
	q      cloud.OrderQuery
	column sortColumn
	within string // what each order's fields are searched for; the rest of q finds few orders
	above  int64  // row number of the search above which a keyword finds more than is counted; 0: unknown
	first  int64  // when the first order of a list by weeks was made, in milliseconds
}

// anchor is the index of what a query names one of.
func (l orderList) anchor() string {
	switch q := l.q; {
	case q.DriverID != 0:
		return "orders_driver"
	case q.RouteID != 0:
		return "orders_route"
	case q.CustomerID != 0:
		return "orders_customer"
	case q.BrokerID != 0:
		return "orders_broker"
	case q.WarehouseID != 0:
		return "orders_warehouse"
	}
	return ""
}

// filters are what a query filters by beside what it is named for.
func (l orderList) filters() (statuses, created, others bool) {
	q := l.q
	return len(q.Statuses) > 0, !q.CreatedFrom.IsZero() || !q.CreatedTo.IsZero(), q.Type != "" || q.ScheduledFrom != "" || q.ScheduledTo != ""
}

// count counts what the query asks for, up to one more than cloud.MaxTotal.
func (l orderList) count() statement { return l.countUpTo(cloud.MaxTotal + 1) }

func (l orderList) countUpTo(limit int) statement {
	statuses, created, others := l.filters()
	index := "orders_business"
	switch {
	case l.q.Keyword != "":
		return l.keywordCount()
	case l.anchor() != "":
		index = l.anchor()
	case others && !statuses && !created && l.q.ScheduledFrom == "" && l.q.ScheduledTo == "":
		index = "orders_type"
	case others && !statuses && !created && l.q.Type == "":
		index = "orders_scheduled"
	case others, statuses && created:
	case statuses:
		index = "orders_status"
	case created:
		index = "orders_created"
	}
	var c conditions
	l.where(&c)
	return statement{`SELECT COUNT(*) FROM (SELECT 1 FROM orders o` + l.by(index) + c.where() + fmt.Sprintf(` LIMIT %d) AS found`, limit), c.args}
}

// page reads a page's orders, each with its value of the sorted column and its
// id: first which ones, out of an index, then these.
func (l orderList) page(counted cloud.Listed) statement {
	var c conditions
	inner := l.pageIDs(&c, !counted.AtLeast)
	return statement{`SELECT o.body, ` + l.column.of("p.") + `, p.id FROM (` + inner + l.order("") + l.limit(&c) + `) AS p JOIN orders o ON o.id = p.id` + l.order("p."), c.args}
}

// pageIDs finds what the order of a list has first; few says that it is no more
// than cloud.MaxTotal rows.
func (l orderList) pageIDs(c *conditions, few bool) string {
	statuses, created, others := l.filters()
	byID := l.column.name == ""
	switch {
	case l.q.Keyword != "":
		return l.keywordPage(c)
	case l.anchor() != "":
		return l.walk(c, l.anchor())
	case !statuses && !created && !others:
		return l.walk(c, orderIndexes[l.column.name])
	case statuses && !created && !others && (byID || l.column.name == "status_id"):
		return l.eachStatus(c)
	case statuses && !created && !others && few:
		return l.beside(c, "orders_status")
	case created && !statuses && !others && l.column.name == "created_at":
		return l.walk(c, "orders_created")
	case l.first > 0:
		return l.eachWeek(c)
	case created && !statuses && !others && byID && (few || !l.q.CreatedTo.IsZero() && l.q.After == nil):
		return l.newestFirst(c)
	case created && !statuses && !others && few:
		return l.beside(c, "orders_created")
	case others && !statuses && !created && l.q.Type == "" && l.column.name == "scheduled_date":
		return l.walk(c, "orders_scheduled")
	case others && !statuses && !created && byID && l.q.ScheduledFrom == "" && l.q.ScheduledTo == "":
		return l.walk(c, "orders_type")
	}
	return l.walk(c, "orders_business")
}

// orderIndexes are the indexes in the order of each column of a list.
var orderIndexes = map[string]string{"": "orders_business", "created_at": "orders_created", "updated_at": "orders_updated",
	"scheduled_date": "orders_scheduled", "priority": "orders_priority", "status_id": "orders_status"}

// walk finds orders by one index.
func (l orderList) walk(c *conditions, index string) string {
	l.where(c)
	l.after(c)
	return `SELECT ` + l.columns() + ` FROM orders o` + l.by(index) + c.where()
}

// newestFirst finds orders by the time of their creation. Ids grow with it but
// for seconds, so that what a sort by id keeps is met first.
func (l orderList) newestFirst(c *conditions) string {
	return `SELECT id FROM (` + l.walk(c, "orders_created") + ` ORDER BY o.created_at` + down(l.q.Page) + ` LIMIT 9223372036854775807) AS by_time`
}

// The weeks of orders_week, which are counted from the beginning of 1970, and how many
// of them one statement goes through: SQLite takes 500 parts.
const (
	weekMS   = 7 * 24 * 60 * 60 * 1000
	maxWeeks = 450
)

// bounded finds out whether a list goes by weeks, and where the first of them is: the
// list has a last time of creation, and is in the order of ids with no other filter.
func (l orderList) bounded(ctx context.Context, r querier) (orderList, error) {
	statuses, created, others := l.filters()
	if l.anchor() != "" || statuses || others || !created || l.column.name != "" || l.q.CreatedTo.IsZero() {
		return l, nil
	}
	first, err := one(ctx, r, `SELECT created_at FROM orders WHERE business_id = $1 AND created_at >= $2 ORDER BY created_at LIMIT 1`, scanInt, int64(l.q.BusinessID), max(l.q.CreatedFrom.UnixMilli(), 0))
	if errors.Is(err, cloud.ErrNotFound) {
		return l, nil
	}
	if to := l.q.CreatedTo.UnixMilli(); err == nil && first > 0 && (to-first)/weekMS < maxWeeks {
		l.first = first
	}
	return l, err
}

// eachWeek finds the first orders of each week in the order of the list.
func (l orderList) eachWeek(c *conditions) string {
	l.where(c)
	l.after(c)
	from, to := l.first/weekMS, l.q.CreatedTo.UnixMilli()/weekMS
	c.args = append(c.args, l.q.Offset+l.q.Limit+1)
	where, limit := c.where(), len(c.args)
	some := func(week, as string) string {
		return fmt.Sprintf(`(SELECT o.id FROM orders o%s%s AND o.created_at / %d = %s ORDER BY o.id%s LIMIT $%d) AS %s`, l.by("orders_week"), where, weekMS, week, down(l.q.Page), limit, as)
	}
	if !l.lite() {
		return fmt.Sprintf(`SELECT f.id FROM generate_series(CAST(%d AS BIGINT), %d) AS w(week) CROSS JOIN LATERAL `, from, to) + some("w.week", "f")
	}
	var all []string
	for week := from; week <= to; week++ {
		c.args = append(c.args, week)
		all = append(all, `SELECT * FROM `+some(fmt.Sprintf("$%d", len(c.args)), fmt.Sprintf("w%d", week-from)))
	}
	return `SELECT * FROM (` + strings.Join(all, ` UNION ALL `) + `) AS every`
}

// beside finds orders by an index that has less of them than the list is sorted
// by, the rest out of orders_business: both are narrower than the table.
func (l orderList) beside(c *conditions, index string) string {
	l.where(c)
	if !l.lite() {
		l.after(c)
		return `SELECT ` + l.columns() + ` FROM orders o` + c.where()
	}
	named := `SELECT o.id AS found FROM orders o` + l.by(index) + c.where()
	var behind conditions
	behind.args = append(c.args, int64(l.q.BusinessID))
	behind.and(fmt.Sprintf(`o.business_id = $%d AND o.id = n.found`, len(behind.args)))
	l.after(&behind)
	c.args = behind.args
	return `SELECT ` + l.columns() + ` FROM (` + named + `) AS n CROSS JOIN orders o` + l.by("orders_business") + behind.where()
}

// eachStatus finds the first orders of each status in the order of the list.
func (l orderList) eachStatus(c *conditions) string {
	c.and(`o.business_id = $%d`, int64(l.q.BusinessID))
	l.searched(c)
	l.after(c)
	rest := c.where()
	c.args = append(c.args, l.q.Offset+l.q.Limit+1)
	limit := fmt.Sprintf(` LIMIT $%d`, len(c.args))
	var all []string
	statuses := slices.Clone(l.q.Statuses)
	slices.Sort(statuses)
	for i, s := range slices.Compact(statuses) {
		c.args = append(c.args, int64(s))
		all = append(all, fmt.Sprintf(`SELECT * FROM (SELECT %s FROM orders o%s%s AND o.status_id = $%d ORDER BY o.id%s%s) AS s%d`, l.columns(), l.by("orders_status"), rest, len(c.args), down(l.q.Page), limit, i))
	}
	return `SELECT * FROM (` + strings.Join(all, ` UNION ALL `) + `) AS every`
}

// keywordCount counts the orders that a keyword finds. Row numbers of the search
// are termRows for an order.
func (l orderList) keywordCount() statement {
	var c conditions
	l.matching(&c)
	return statement{fmt.Sprintf(`SELECT COUNT(*) FROM (SELECT DISTINCT s.rowid / %d FROM `, termRows) + l.found() + c.where() + fmt.Sprintf(` LIMIT %d) AS found`, cloud.MaxTotal+1), c.args}
}

// fewCandidates is how many orders are searched one by one, in place of the search's
// index.
const fewCandidates = 3000

// narrowed searches the orders that the rest of a query finds where these are few: the
// index gives what a keyword finds in all orders of all times.
func (l orderList) narrowed(ctx context.Context, r querier, few int) (orderList, error) {
	statuses, created, others := l.filters()
	if !statuses && !created && !others && l.anchor() == "" {
		return l, nil
	}
	rest := l
	rest.q.Keyword = ""
	count := rest.countUpTo(few + 1)
	n, err := one(ctx, r, count.sql, scanInt, count.args...)
	if err != nil || n > int64(few) {
		return l, err
	}
	rest.within = l.q.Keyword
	return rest, nil
}

// byWords reports whether a list is read out of the search's index row by row, which
// SQLite does faster than it makes rows distinct.
func (l orderList) byWords() bool { return l.q.Keyword != "" && l.lite() && l.column.name == "" }

// keywordRows reads a page of what a keyword finds, in the order of ids, and counts what
// it finds in all: in the order that the index is faster in. When that was all, the page
// is among it.
func (l orderList) keywordRows(ctx context.Context, r querier) (out cloud.Listed, found []cloud.Order, err error) {
	alone, err := l.isAlone(ctx, r)
	if err != nil {
		return out, nil, err
	}
	ids, all, err := l.matchingIDs(ctx, r, alone, cloud.Page{}, cloud.MaxTotal+1)
	n := len(ids)
	if err == nil && !all {
		p := l.q.Page
		ids, _, err = l.matchingIDs(ctx, r, alone, p, p.Offset+p.Limit+1)
		if p.Down { // as they are in memory
			slices.Reverse(ids)
		}
	}
	if err != nil {
		return out, nil, err
	}
	ids, part, err := cloud.PartOf(ids, l.q.Page, func(id int64) int64 { return id })
	if err != nil {
		return out, nil, err
	}
	out = cloud.Counted(int64(n))
	out.Next = part.Next
	for _, id := range ids {
		o, err := one(ctx, r, sqlOrder, scanOrder, int64(l.q.BusinessID), id)
		if errors.Is(err, cloud.ErrNotFound) { // the search has more than orders, for a moment of a removal
			continue
		}
		if err != nil {
			return out, nil, err
		}
		found = append(found, o)
	}
	return out, found, nil
}

// isAlone reports whether a query has a keyword alone and no other business has orders:
// all that the search finds is the business's then.
func (l orderList) isAlone(ctx context.Context, r querier) (bool, error) {
	statuses, created, others := l.filters()
	if statuses || created || others || l.anchor() != "" {
		return false, nil
	}
	for _, than := range []string{"<", ">"} {
		_, err := one(ctx, r, `SELECT business_id FROM orders INDEXED BY orders_type WHERE business_id `+than+` $1 LIMIT 1`, scanInt, int64(l.q.BusinessID))
		if !errors.Is(err, cloud.ErrNotFound) {
			return false, err
		}
	}
	return true, nil
}

// matchingIDs are the first ids of what a keyword finds behind a page's mark; all says
// that there are no more.
func (l orderList) matchingIDs(ctx context.Context, r querier, alone bool, p cloud.Page, limit int) (ids []int64, all bool, err error) {
	var c conditions
	from := `order_search s`
	c.and(`order_search MATCH $%d`, l.db.contains(l.q.Keyword))
	if !alone {
		from += ` CROSS JOIN orders o NOT INDEXED`
		c.and(fmt.Sprintf(`o.id = s.rowid / %d`, termRows))
		l.where(&c)
	}
	if m := p.After; m != nil && p.Down {
		c.and(`s.rowid < $%d`, m.ID.(int64)*termRows)
	} else if m != nil {
		c.and(`s.rowid >= $%d`, (m.ID.(int64)+1)*termRows)
	}
	rs, err := r.query(ctx, `SELECT s.rowid FROM `+from+c.where()+` ORDER BY s.rowid`+down(p), c.args...)
	if err != nil {
		return nil, false, err
	}
	defer rs.Close()
	for rs.Next() {
		var row int64
		if err := rs.Scan(&row); err != nil {
			return nil, false, err
		}
		if id := row / termRows; len(ids) == 0 || ids[len(ids)-1] != id {
			if len(ids) == limit {
				return ids, false, nil
			}
			ids = append(ids, id)
		}
	}
	return ids, true, rs.Err()
}

// byKeyword reads and counts in one walk of the search's index, which is what
// takes the time. Nothing is counted when nothing is found.
func (l orderList) byKeyword(ctx context.Context, r querier) (out cloud.Listed, found []cloud.Order, err error) {
	var c conditions
	l.matching(&c)
	where, first := c.where(), ""
	if !l.lite() { // SQLite keeps the order of what it makes distinct
		first = l.order("")
	}
	sql := fmt.Sprintf(`WITH found AS MATERIALIZED (SELECT DISTINCT id FROM (SELECT s.rowid / %d AS id FROM %s%s ORDER BY s.rowid%s LIMIT 9223372036854775807) AS every%s LIMIT %d)
SELECT (SELECT COUNT(*) FROM found), o.body, p.id, p.id FROM (SELECT id FROM found`+l.order("")+l.limit(&c)+`) AS p JOIN orders o ON o.id = p.id`+l.order("p."),
		termRows, l.found(), where, down(l.q.Page), first, cloud.MaxTotal+1)
	var n int64
	found, next, err := readKeyed(ctx, r, statement{sql, c.args}, l.q.Page, func(r rows, o *cloud.Order) error { return r.Scan(&n, parsed(o)) })
	out = cloud.Counted(n)
	out.Next = next
	return out, found, err
}

// keywordPage finds orders by a keyword. In the order of their ids they come out
// of the search's index; an order has up to SearchFields rows there.
func (l orderList) keywordPage(c *conditions) string {
	l.matching(c)
	if l.column.name != "" {
		l.after(c)
		return `SELECT DISTINCT ` + l.columns() + ` FROM ` + l.found() + c.where()
	}
	if l.q.After != nil && l.q.Down {
		c.and(`s.rowid < $%d`, l.q.After.ID.(int64)*termRows)
	} else if l.q.After != nil {
		c.and(`s.rowid >= $%d`, (l.q.After.ID.(int64)+1)*termRows)
	}
	where := c.where()
	c.args = append(c.args, (l.q.Offset+l.q.Limit+1)*cloud.SearchFields)
	return fmt.Sprintf(`SELECT DISTINCT id FROM (SELECT s.rowid / %d AS id FROM %s%s ORDER BY s.rowid%s LIMIT $%d) AS rows_found`, termRows, l.found(), where, down(l.q.Page), len(c.args))
}

// found are the rows of the search with their orders.
func (l orderList) found() string {
	if l.onlyWords() {
		return `order_search s`
	}
	return `order_search s CROSS JOIN orders o` + l.by("orders_business")
}

// onlyWords reports whether a keyword is all that is asked for and PostgreSQL is asked,
// whose search knows the business: no order is looked at for it.
func (l orderList) onlyWords() bool {
	statuses, created, others := l.filters()
	return !l.lite() && !statuses && !created && !others && l.anchor() == "" && l.column.name == ""
}

// How many of the newest orders show whether a keyword finds most orders, and how many
// of these it finds then.
const (
	probedOrders = 2000
	crowdedFrom  = 1000
)

// crowded reports how many orders a keyword finds among the newest ones when that is
// more than is counted, and sets above. What most orders have is found without the
// trigrams of PostgreSQL, which give every match of all times.
func (l *orderList) crowded(ctx context.Context, r querier) (n int64, err error) {
	newest, err := one(ctx, r, `SELECT COALESCE(MAX(rowid), 0) FROM order_search`, scanInt)
	if err != nil {
		return 0, err
	}
	among := func(orders int64, count string) (int64, error) {
		x := *l
		x.above = max(newest-orders*termRows, 1)
		var c conditions
		x.matching(&c)
		return one(ctx, r, `SELECT COUNT(`+count+`) FROM order_search s`+c.where(), scanInt, c.args...)
	}
	found, err := among(probedOrders, "*")
	if err != nil || found < crowdedFrom {
		return 0, err
	}
	orders := (cloud.MaxTotal + 1) * probedOrders / found * 13 / 10 // and some more
	if n, err = among(orders, fmt.Sprintf("DISTINCT s.rowid / %d", termRows)); err == nil && n > cloud.MaxTotal {
		l.above = max(newest-orders*termRows, 1)
	}
	return n, err
}

func (l orderList) matching(c *conditions) {
	if l.onlyWords() && l.above > 0 {
		c.and(`(s.value || '') LIKE $%d AND s.rowid > $%d AND s.business_id = $%d`, l.db.contains(l.q.Keyword), l.above, int64(l.q.BusinessID))
		return
	}
	if l.onlyWords() {
		c.and(`@contains $%d`, l.db.contains(l.q.Keyword))
		c.and(`s.business_id = $%d`, int64(l.q.BusinessID))
		return
	}
	c.and(fmt.Sprintf(`o.id = s.rowid / %d`, termRows))
	c.and(`@contains $%d`, l.db.contains(l.q.Keyword))
	if !l.lite() { // FTS5 would read each row's content for it
		c.and(`s.business_id = $%d`, int64(l.q.BusinessID))
	}
	l.where(c)
}

// by is what makes SQLite take an index.
func (l orderList) by(index string) string {
	if l.lite() {
		return " INDEXED BY " + index
	}
	return ""
}

func (l orderList) lite() bool {
	_, ok := l.db.engine.(*lite)
	return ok
}

// columns are what a page is sorted by.
func (l orderList) columns() string {
	if l.column.name == "" {
		return "o.id"
	}
	return "o.id, o." + l.column.name
}

func (l orderList) order(table string) string { return l.column.order(table, l.q.Page) }

// limit is a row more than the page has, which says whether there is a next one.
func (l orderList) limit(c *conditions) string {
	c.args = append(c.args, l.q.Limit+1, l.q.Offset)
	return fmt.Sprintf(` LIMIT $%d OFFSET $%d`, len(c.args)-1, len(c.args))
}

// after leaves out what comes before the page.
func (l orderList) after(c *conditions) { l.column.after(c, "o.", l.q.Page) }

// where is the condition of a query, with only what it asks for: each condition
// more would keep engines from answering out of an index.
func (l orderList) where(c *conditions) {
	q := l.q
	c.and(`o.business_id = $%d`, int64(q.BusinessID))
	for _, x := range []struct {
		is string
		id int64
	}{{"o.customer_id = $%d AND o.customer_id <> 0", int64(q.CustomerID)}, {"o.broker_id = $%d AND o.broker_id <> 0", int64(q.BrokerID)},
		{"o.driver_id = $%d AND o.driver_id <> 0", int64(q.DriverID)}, {"o.route_id = $%d AND o.route_id <> 0", q.RouteID},
		{"o.warehouse_id = $%d AND o.warehouse_id <> 0", q.WarehouseID}} {
		if x.id != 0 {
			c.and(x.is, x.id)
		}
	}
	for _, x := range []struct{ is, text string }{{"o.type = $%d", string(q.Type)}, {"o.scheduled_date >= $%d", q.ScheduledFrom},
		{"o.scheduled_date <= $%d AND o.scheduled_date <> ''", q.ScheduledTo}} {
		if x.text != "" {
			c.and(x.is, x.text)
		}
	}
	l.searched(c)
	c.created("o.", q.CreatedFrom, q.CreatedTo)
	if len(q.Statuses) > 0 {
		in := make([]any, len(q.Statuses))
		for i, s := range q.Statuses {
			in[i] = int64(s)
		}
		c.and("o.status_id IN "+oneOf(len(in)), in...)
	}
}

// searched leaves out orders that do not have what each is searched for.
func (l orderList) searched(c *conditions) {
	if l.within != "" && l.lite() {
		c.and(fmt.Sprintf(`EXISTS (SELECT 1 FROM order_search_content w WHERE w.id BETWEEN o.id * %[1]d AND o.id * %[1]d + %d AND instr(w.c3, $%%d) > 0)`, termRows, termRows-1), l.within)
	} else if l.within != "" {
		c.and(fmt.Sprintf(`EXISTS (SELECT 1 FROM order_search w WHERE w.rowid BETWEEN o.id * %[1]d AND o.id * %[1]d + %d AND w.value LIKE $%%d)`, termRows, termRows-1), l.db.contains(l.within))
	}
}

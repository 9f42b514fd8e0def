package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// sortColumn is a column that a list can be in the order of, before that of its
// ids. It is never NULL.
type sortColumn struct {
	name   string // "" when the order is that of the ids
	text   bool   // of the column
	id     string // of the ids; "" is id
	idText bool
}

// check is cloud.ErrNoMark when a mark is none of such a list.
func (s sortColumn) check(m *cloud.Mark) error {
	if m == nil {
		return nil
	}
	if !isOf(m.ID, s.idText) || (s.name == "") != (m.Key == nil) || m.Key != nil && !isOf(m.Key, s.text) {
		return cloud.ErrNoMark
	}
	return nil
}

func isOf(v any, text bool) bool {
	switch v.(type) {
	case string:
		return text
	case int64:
		return !text
	}
	return false
}

// idColumn is the column of the ids.
func (s sortColumn) idColumn() string { return cmp.Or(s.id, "id") }

// of is the column of a statement's rows; prefix is that of their table.
func (s sortColumn) of(prefix string) string { return prefix + cmp.Or(s.name, s.idColumn()) }

// after adds that rows come behind the mark of a page.
func (s sortColumn) after(c *conditions, prefix string, p cloud.Page) {
	than := ">"
	if p.Down {
		than = "<"
	}
	switch m := p.After; {
	case m == nil:
	case s.name == "":
		c.and(s.of(prefix)+" "+than+" $%d", m.ID)
	default:
		if strings.Contains(s.name, "(") { // SQLite finds no row value in an index of expressions
			c.and(s.of(prefix)+" "+than+"= $%d", m.Key)
		}
		c.and("("+s.of(prefix)+", "+prefix+s.idColumn()+") "+than+" ($%d, $%d)", m.Key, m.ID)
	}
}

// order is the order of a page.
func (s sortColumn) order(prefix string, p cloud.Page) string {
	by := " ORDER BY " + s.of(prefix) + down(p)
	if s.name != "" {
		by += ", " + prefix + s.idColumn() + down(p)
	}
	return by
}

// newest is a page in the order of ids, the last ones first.
func newest(p cloud.Page) cloud.Page {
	p.Sort, p.Down = "id", true
	return p
}

// down is the direction of a page.
func down(p cloud.Page) string {
	if p.Down {
		return " DESC"
	}
	return ""
}

// keyList is a list of rows by the conditions of a query.
type keyList struct {
	columns string     // of a row
	from    string     // a table, with what is joined to it
	counted string     // from where less is joined for counting; "" is from
	where   conditions // not empty
	prefix  string     // of the columns that the list is sorted by
	by      sortColumn
	page    cloud.Page
	exact   bool // the total is counted to its end
}

// count counts the rows of all pages, up to one more than cloud.MaxTotal.
func (l keyList) count() statement {
	from := cmp.Or(l.counted, l.from) + l.where.where()
	if l.exact {
		return statement{`SELECT COUNT(*) FROM ` + from, l.where.args}
	}
	return statement{fmt.Sprintf(`SELECT COUNT(*) FROM (SELECT 1 FROM %s LIMIT %d) AS found`, from, cloud.MaxTotal+1), l.where.args}
}

// rows reads a page's rows and one more, which says whether there is a next page.
func (l keyList) rows() statement {
	c := conditions{l.where.text, slices.Clone(l.where.args)}
	l.by.after(&c, l.prefix, l.page)
	sql := `SELECT ` + l.columns + `, ` + l.by.of(l.prefix) + `, ` + l.prefix + l.by.idColumn() + ` FROM ` + l.from + c.where() + l.by.order(l.prefix, l.page)
	c.args = append(c.args, l.page.Limit+1, l.page.Offset)
	return statement{sql + fmt.Sprintf(` LIMIT $%d OFFSET $%d`, len(c.args)-1, len(c.args)), c.args}
}

// readKeyList reads a page of a list and counts all of it. Error: cloud.ErrNoMark
// when the page begins after a row that such a list cannot have.
func readKeyList[T any](ctx context.Context, q querier, l keyList, scan func(rows, *T) error) (out cloud.Listed, found []T, err error) {
	if err := l.by.check(l.page.After); err != nil {
		return out, nil, err
	}
	count := l.count()
	n, err := one(ctx, q, count.sql, scanInt, count.args...)
	if err != nil {
		return out, nil, err
	}
	if out = cloud.Counted(n); l.exact {
		out = cloud.Listed{Total: int(n)}
	}
	found, out.Next, err = readKeyed(ctx, q, l.rows(), l.page, scan)
	return out, found, err
}

// lookKeyList is readKeyList outside of a View.
func lookKeyList[T any](ctx context.Context, db *database, l keyList, scan func(rows, *T) error) (out cloud.Listed, found []T, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		out, found, err = readKeyList(ctx, q, l, scan)
		return err
	})
	return out, found, err
}

// readKeyed reads the rows of a page. The statement gives one row more where
// there is one, and two columns behind those that scan reads: the one that it is
// sorted by and the id.
func readKeyed[T any](ctx context.Context, q querier, s statement, p cloud.Page, scan func(rows, *T) error) (found []T, next *cloud.Mark, err error) {
	r, err := q.query(ctx, s.sql, s.args...)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var at cloud.Mark
	keyed := keyedRows{r, []any{&at.Key, &at.ID}}
	for r.Next() {
		if len(found) == p.Limit {
			return found, next, nil
		}
		var v T
		if err := scan(keyed, &v); err != nil {
			return nil, nil, err
		}
		found = append(found, v)
		if len(found) == p.Limit {
			next = &cloud.Mark{Key: at.Key, ID: at.ID}
			if p.Sort == "id" {
				next.Key = nil
			}
		}
	}
	return found, nil, r.Err()
}

// keyedRows scans columns behind those that are asked for.
type keyedRows struct {
	rows
	behind []any
}

func (k keyedRows) Scan(dest ...any) error { return k.rows.Scan(append(dest, k.behind...)...) }

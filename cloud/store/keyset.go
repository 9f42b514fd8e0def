package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

// sortColumn is a column that a list can be in the order of, before that of its
// ids. It is never NULL.
type sortColumn struct {
	name   string // "" when the order is that of the ids
	text   bool   // of the column
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

// of is the column in a table of a statement.
func (s sortColumn) of(table string) string {
	if s.name == "" {
		return table + ".id"
	}
	return table + "." + s.name
}

// after adds that rows come behind the mark of a page.
func (s sortColumn) after(c *conditions, prefix string, p cloud.Page) {
	than := ">"
	if p.Down {
		than = "<"
	}
	switch m := p.After; {
	case m == nil:
	case s.name == "":
		c.and(prefix+"id "+than+" $%d", m.ID)
	default:
		c.and("("+prefix+s.name+", "+prefix+"id) "+than+" ($%d, $%d)", m.Key, m.ID)
	}
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

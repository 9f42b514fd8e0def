package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// ms is a time as it is stored: milliseconds, NULL for the zero time.
func ms(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// when reads what ms wrote.
func when(t *time.Time) *timeColumn { return (*timeColumn)(t) }

type timeColumn time.Time

// Scan implements sql.Scanner.
func (c *timeColumn) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*c = timeColumn{}
	case int64:
		*c = timeColumn(time.UnixMilli(v).UTC())
	default:
		return fmt.Errorf("a time is stored as %T", src)
	}
	return nil
}

// text is JSON as it is stored. The values are our own plain types, which
// always have an encoding.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return string(b)
}

// parsed reads what text wrote into v, a pointer; an empty column leaves it.
func parsed(v any) *jsonColumn { return &jsonColumn{v} }

type jsonColumn struct{ v any }

// Scan implements sql.Scanner.
func (c *jsonColumn) Scan(src any) error {
	var b []byte
	switch s := src.(type) {
	case nil:
	case string:
		b = []byte(s)
	case []byte:
		b = s
	default:
		return fmt.Errorf("JSON is stored as %T", src)
	}
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	return json.Unmarshal(b, c.v)
}

// fixed reads bytes of a fixed length; NULL leaves them zero.
func fixed(dst []byte) *fixedColumn { return &fixedColumn{dst} }

type fixedColumn struct{ dst []byte }

// Scan implements sql.Scanner.
func (c *fixedColumn) Scan(src any) error {
	if src == nil {
		return nil
	}
	b, ok := src.([]byte)
	if !ok || len(b) != len(c.dst) {
		return fmt.Errorf("%d bytes are stored as %T of %d", len(c.dst), src, len(b))
	}
	copy(c.dst, b)
	return nil
}

// list runs a query and reads its rows.
func list[T any](ctx context.Context, q querier, sql string, scan func(rows, *T) error, args ...any) ([]T, error) {
	r, err := q.query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []T
	for r.Next() {
		var v T
		if err := scan(r, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, r.Err()
}

// one runs a query for a single row; cloud.ErrNotFound when there is none.
func one[T any](ctx context.Context, q querier, sql string, scan func(rows, *T) error, args ...any) (T, error) {
	var v T
	r, err := q.query(ctx, sql, args...)
	if err != nil {
		return v, err
	}
	defer r.Close()
	if !r.Next() {
		if err := r.Err(); err != nil {
			return v, err
		}
		return v, cloud.ErrNotFound
	}
	if err := scan(r, &v); err != nil {
		return v, err
	}
	return v, r.Err()
}

// scanInt reads a single integer.
func scanInt(r rows, n *int64) error { return r.Scan(n) }

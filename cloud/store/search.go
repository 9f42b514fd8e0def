package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postern-io/postern/cloud"
)

// A search goes by trigrams: FTS5 on SQLite, pg_trgm on PostgreSQL. A server
// that has no pg_trgm finds what begins with the words that are asked for,
// by an ordinary index.

// Statements of one engine only, and what they begin and end with.
const (
	hasTrigrams  = `SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'`
	makeTrigrams = `CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public`
	prefixIndex  = `CREATE INDEX %s IF NOT EXISTS order_search_prefix ON order_search (business_id, value text_pattern_ops)`
	gramIndex    = `CREATE INDEX %%s IF NOT EXISTS order_search_grams ON order_search USING gin (value %s.gin_trgm_ops)`

	// An index that is not valid is being made, or was when its node ended.
	indexState = `SELECT i.indisvalid, EXISTS (SELECT 1 FROM pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)
FROM pg_index AS i WHERE i.indexrelid = to_regclass($1)`

	hasTerms = `SELECT EXISTS (SELECT 1 FROM order_search)`

	matches = `SELECT o.body, s.field, s.value FROM order_search s JOIN orders o ON o.id = s.order_id
WHERE s.business_id = $1 AND o.business_id = $1 AND (CAST($2 AS @int) = 0 OR o.customer_id = $2)
  AND (CAST($3 AS @int) = 0 OR o.broker_id = $3) AND (CAST($4 AS @int) >> CAST(s.field AS INTEGER)) & 1 = 1 AND `
	// Row numbers are in the order of the orders' ids: the newest come first
	// without sorting.
	matchesNewest = ` ORDER BY s.rowid DESC LIMIT $5`
	liteMatches   = matches + `order_search MATCH $6` + matchesNewest
	pgMatches     = matches + `s.value LIKE $6` + matchesNewest
	// Among the newest rows no trigrams are asked, which give every match of all times.
	pgRecent   = matches + `(s.value || '') LIKE $6 AND s.rowid > $7` + matchesNewest
	pgLastTerm = `SELECT COALESCE(MAX(rowid), 0) FROM order_search`
)

// indexSearch makes the indexes that a search on PostgreSQL goes by, and reports whether
// there is one of trigrams. What takes long, where there are rows, is left to later: a search
// goes without it until then.
func indexSearch(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (trigrams bool, later func(context.Context) error, err error) {
	lacks := map[string]string{"order_search_prefix": prefixIndex}
	schema, err := trigramSchema(ctx, pool)
	if err == nil && schema == "" {
		refused := makeOnce(ctx, pool, makeTrigrams)
		if schema, err = trigramSchema(ctx, pool); err == nil && schema == "" {
			log.Warn("PostgreSQL has no pg_trgm: orders are found by the beginnings of their numbers, references, names and telephone numbers alone; "+
				"have an administrator run CREATE EXTENSION pg_trgm and start again", "error", refused)
		}
	}
	if err != nil {
		return false, nil, fmt.Errorf("look for pg_trgm: %w", err)
	}
	if schema != "" {
		lacks["order_search_grams"] = fmt.Sprintf(gramIndex, pgx.Identifier{schema}.Sanitize())
	}
	var rows bool
	if err := pool.QueryRow(ctx, hasTerms).Scan(&rows); err != nil {
		return false, nil, fmt.Errorf("index the search: %w", err)
	}
	for name := range lacks {
		state, err := stateOfIndex(ctx, pool, name)
		if err == nil && state == indexAbsent && !rows {
			state, err = makeIndexNow(ctx, pool, fmt.Sprintf(lacks[name], ""))
		}
		if err != nil {
			return false, nil, fmt.Errorf("index the search: %w", err)
		}
		if state == indexValid {
			delete(lacks, name)
		}
	}
	if len(lacks) == 0 {
		return schema != "", nil, nil
	}
	return schema != "", func(ctx context.Context) error {
		for name, sql := range lacks {
			if err := makeIndexBeside(ctx, pool, name, sql); err != nil {
				return fmt.Errorf("index the search: %s: %w", name, err)
			}
		}
		return nil
	}, nil
}

// What becomes of an index.
const (
	indexAbsent = iota
	indexBroken // its node ended while it was made
	indexGrows
	indexValid
)

// stateOfIndex looks without waiting for any lock of the table.
func stateOfIndex(ctx context.Context, pool *pgxpool.Pool, name string) (state int, err error) {
	var valid, grows bool
	err = pool.QueryRow(ctx, indexState, name).Scan(&valid, &grows)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return indexAbsent, nil
	case valid:
		return indexValid, err
	case grows:
		return indexGrows, err
	}
	return indexBroken, err
}

// makeIndexNow makes an index of a table without rows, unless a writer is in the way.
func makeIndexNow(ctx context.Context, pool *pgxpool.Pool, sql string) (state int, err error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return indexAbsent, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, "SET LOCAL lock_timeout = '1s'")
	if err == nil {
		_, err = tx.Exec(ctx, sql)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" || err != nil && wasInTheWay(err) {
		return indexAbsent, nil
	}
	if err != nil {
		return indexAbsent, err
	}
	return indexValid, nil
}

// lookAtIndex is between two looks at an index that another node makes.
const lookAtIndex = 2 * time.Second

// makeIndexBeside makes an index beside writers, or waits until another node has. What a node
// left half made is made again. sql has a place for how it is made.
func makeIndexBeside(ctx context.Context, pool *pgxpool.Pool, name, sql string) error {
	for {
		state, err := stateOfIndex(ctx, pool, name)
		if err == nil && state == indexValid {
			return nil
		}
		if err == nil && state == indexBroken {
			_, err = pool.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name)
		}
		if err == nil && state != indexGrows {
			_, err = pool.Exec(ctx, fmt.Sprintf(sql, "CONCURRENTLY"))
		}
		if err != nil && !wasInTheWay(err) {
			return err
		}
		if err == nil && state != indexGrows {
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAtIndex):
		}
	}
}

// trigramSchema is where pg_trgm is, "" when it is nowhere.
func trigramSchema(ctx context.Context, pool *pgxpool.Pool) (schema string, err error) {
	err = pool.QueryRow(ctx, hasTrigrams).Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return schema, err
}

// makeOnce makes something unless it exists. Nodes that start at the same moment
// get in each other's way, which IF NOT EXISTS does not help against.
func makeOnce(ctx context.Context, pool *pgxpool.Pool, sql string) (err error) {
	for try := range pgTries {
		if _, err = pool.Exec(ctx, sql); err == nil {
			return nil
		}
		if !wasInTheWay(err) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
	return err
}

// wasInTheWay reports whether another node that makes the same was in the way.
func wasInTheWay(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "42P07" || pg.Code == "42710") || overtaken(err)
}

// contains is the argument of @contains for a text of three characters or more,
// or "" for none.
func (db *database) contains(text string) string {
	e, postgres := db.engine.(*postgres)
	switch {
	case text == "":
		return ""
	case !postgres:
		return phrase(text)
	case e.trigrams:
		return "%" + likeText(text) + "%"
	}
	return likeText(text) + "%"
}

// phrase is text as FTS5 takes it word for word.
func phrase(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// likeText is text as PostgreSQL's LIKE takes it word for word.
func likeText(text string) string { return likeEscapes.Replace(text) }

// A search for few rows looks among the newest orders first: what many orders contain is
// found there, and what few contain the trigrams give at once.
const (
	fewRows      = 50
	recentOrders = 2000
)

// SearchOrders reads what contains q.Text, or what contains every part of one of
// q.Near; newest first.
func (db orders) SearchOrders(ctx context.Context, q cloud.OrderSearch) ([]cloud.OrderMatch, error) {
	sql, args := liteMatches, []any{db.contains(q.Text)}
	e, postgres := db.engine.(*postgres)
	switch {
	case postgres && len(q.Near) > 0 && !e.trigrams:
		return nil, nil
	case postgres && len(q.Near) > 0:
		sql, args = pgNear(q.Near)
	case postgres:
		sql = pgMatches
	case len(q.Near) > 0:
		args = []any{liteNear(q.Near)}
	}
	var fields int64
	for _, f := range q.Fields {
		fields |= 1 << f
	}
	scan := func(r rows, m *cloud.OrderMatch) error { return r.Scan(parsed(&m.Order), &m.Field, &m.Value) }
	chosen := []any{int64(q.BusinessID), int64(q.CustomerID), int64(q.BrokerID), fields, q.Limit}
	if postgres && len(q.Near) == 0 && q.Limit <= fewRows {
		last, err := readList(ctx, db.database, pgLastTerm, func(r rows, n *int64) error { return r.Scan(n) })
		if err != nil {
			return nil, err
		}
		found, err := readList(ctx, db.database, pgRecent, scan, append(slices.Clone(chosen), args[0], last[0]-recentOrders*termRows)...)
		if err != nil || len(found) == q.Limit {
			return found, err
		}
	}
	return readList(ctx, db.database, sql, scan, append(chosen, args...)...)
}

// liteNear is alternatives of parts as FTS5 takes them.
func liteNear(near [][]string) string {
	all := make([]string, len(near))
	for i, parts := range near {
		quoted := make([]string, len(parts))
		for k, p := range parts {
			quoted[k] = phrase(p)
		}
		all[i] = "(" + strings.Join(quoted, " AND ") + ")"
	}
	return strings.Join(all, " OR ")
}

// pgNear is the statement for alternatives of parts, with its patterns.
func pgNear(near [][]string) (sql string, args []any) {
	all := make([]string, len(near))
	for i, parts := range near {
		likes := make([]string, len(parts))
		for k, p := range parts {
			args = append(args, "%"+likeText(p)+"%")
			likes[k] = fmt.Sprintf("s.value LIKE $%d", len(args)+5)
		}
		all[i] = "(" + strings.Join(likes, " AND ") + ")"
	}
	return matches + "(" + strings.Join(all, " OR ") + ")" + matchesNewest, args
}

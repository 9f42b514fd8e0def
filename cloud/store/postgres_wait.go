package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	pgAwait = 30 * time.Second // for a database that does not answer when this process starts
	pgAgain = 500 * time.Millisecond
)

// awaitPostgres waits until a database answers that is starting, or whose standby is about
// to take over. What waiting does not change, such as a wrong password, is an error at once.
func awaitPostgres(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, pgAwait)
	defer cancel()
	for told := false; ; told = true {
		err := pool.Ping(ctx)
		if err == nil || !absent(err) {
			return err
		}
		if !told {
			log.Warn("the database does not answer: it is tried again", "for", pgAwait, "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pgAgain):
		}
	}
}

// absent reports whether an error is about a database that is not there now: none listens,
// it is starting, ending or has no place for a connection (classes 53 and 57 of PostgreSQL's
// appendix A), or takes no writes.
func absent(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code[:2] == "57" || said.Code[:2] == "53"
	}
	var failed *pgconn.ConnectError
	return errors.As(err, &failed)
}

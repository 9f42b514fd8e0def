package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/postern-io/postern/cloud/store"
)

// schemaStatus prints how the tables of the database stand.
type schemaStatus struct{}

// schemaUp runs migrations.
type schemaUp struct{}

// database is where the store is.
func (s settings) database() store.Config { return store.Config{URL: s.Database, Dir: s.Data} }

func (schemaStatus) run(ctx context.Context, s settings, stdout io.Writer) error {
	if _, err := os.Stat(s.Data); s.Database == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("schema status: there is no data folder %s; the first start makes it", s.Data)
	}
	at, err := store.InspectSchema(ctx, s.database())
	if err != nil {
		return fmt.Errorf("schema status: %w", err)
	}
	fmt.Fprintf(stdout, "program   %d\n", at.Program)
	switch {
	case at.Database == 0:
		fmt.Fprintln(stdout, "database  none yet")
	case at.Program < at.Oldest:
		fmt.Fprintf(stdout, "database  %d, takes programs of %d or newer: this program is too old\n", at.Database, at.Oldest)
	default:
		fmt.Fprintf(stdout, "database  %d, takes programs of %d or newer\n", at.Database, at.Oldest)
	}
	if len(at.Pending) == 0 {
		fmt.Fprintln(stdout, "pending   none")
	}
	for _, name := range at.Pending {
		fmt.Fprintf(stdout, "pending   %s\n", name)
	}
	for _, n := range at.Running {
		fmt.Fprintf(stdout, "running   %s  schema %d  release %s  at %s\n", n.Name, n.SchemaNumber, n.Version, n.Address)
	}
	return nil
}

func (schemaUp) run(ctx context.Context, s settings, stdout io.Writer) error {
	err := store.MigrateSchema(ctx, s.database(), func(p store.Progress) {
		switch {
		case p.Done:
			fmt.Fprintf(stdout, "done      %s in %s\n", p.Migration, p.Took.Round(time.Millisecond))
		case p.Rows > 0:
			fmt.Fprintf(stdout, "fills     %s, %d rows\n", p.Migration, p.Rows)
		case p.Phase != "":
			fmt.Fprintf(stdout, "goes on   %s, %s\n", p.Migration, p.Phase)
		default:
			fmt.Fprintf(stdout, "begins    %s\n", p.Migration)
		}
	})
	if err != nil {
		return fmt.Errorf("schema up: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "database  %d\n", store.SchemaNumber())
	return err
}

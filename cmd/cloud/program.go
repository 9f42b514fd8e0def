package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/postern-io/postern/cloud/artefact"
	"github.com/postern-io/postern/cloud/object"
)

// programAdd adds a program of cabinets.
type programAdd struct {
	File string `arg:"" help:"The artefact, as release sign writes it; - is standard input."`
}

func (p programAdd) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	in := io.Reader(os.Stdin)
	if p.File != "-" {
		f, err := os.Open(p.File)
		if err != nil {
			return fmt.Errorf("program add: %w", err)
		}
		defer f.Close()
		in = f
	}
	return withPrograms(ctx, s, log, func(shelf *artefact.Shelf) error {
		m, err := shelf.Add(ctx, in)
		if err != nil {
			return fmt.Errorf("program add: %s: %w", p.File, err)
		}
		_, err = fmt.Fprintf(stdout, "version %s for %s/%s is there: send a cabinet the command update\n", m.Version, m.System, m.Arch)
		return err
	})
}

// programList lists the programs of cabinets.
type programList struct{}

func (programList) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	return withPrograms(ctx, s, log, func(shelf *artefact.Shelf) error {
		list, err := shelf.List(ctx)
		for _, m := range list {
			if _, werr := fmt.Fprintf(stdout, "%s %s/%s %d bytes, SHA-256 %x\n", m.Version, m.System, m.Arch, m.Size, m.Digest); werr != nil {
				return werr
			}
		}
		return err
	})
}

// withPrograms opens where the programs of cabinets are.
func withPrograms(ctx context.Context, s settings, log *slog.Logger, f func(*artefact.Shelf) error) (err error) {
	if err := s.hasData(); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	cfg := s.server(log)
	store, err := cfg.FilesStore(ctx)
	if err != nil {
		return fmt.Errorf("program: open files: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return f(artefact.New(object.ProgramsOf(store), cfg.ReleaseKeys))
}

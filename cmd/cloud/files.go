package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/postern-io/postern/cloud/object"
)

// filesMove moves uploaded files between the folder and the bucket.
type filesMove struct {
	To   string `required:"" enum:"bucket,folder" help:"Where to: bucket or folder."`
	Keep bool   `help:"Leave them where they were too, as for a first pass while nodes still serve from there."`
}

// progressEvery is how often a move says how far it is.
const progressEvery = 5 * time.Second

// progress gives what says, when it is asked, whether it is time to say how far it is.
func progress() (due func() bool) {
	next := time.Now().Add(progressEvery)
	return func() bool {
		now := time.Now()
		if !now.After(next) {
			return false
		}
		next = now.Add(progressEvery)
		return true
	}
}

func (f filesMove) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) (err error) {
	if s.bucket == nil {
		return errors.New("files move: the bucket of the settings is not set")
	}
	if err := s.hasData(); err != nil {
		return fmt.Errorf("files move: %w", err)
	}
	cfg := s.server(log)
	bucket, err := cfg.FilesBucket(ctx)
	if err != nil {
		return fmt.Errorf("files move: %w", err)
	}
	defer func() { err = errors.Join(err, bucket.Close()) }()
	folder, err := object.OpenFolder(cfg.FilesFolder())
	if err != nil {
		return fmt.Errorf("files move: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	var from, to object.Store = folder, bucket
	if f.To == "folder" {
		from, to = bucket, folder
	}
	due := progress()
	moved, err := object.Move(ctx, from, to, !f.Keep, func(m object.Moved) {
		if due() {
			log.Info("moving files", "files", m.Objects, "copied", m.Copied, "bytes", m.Bytes)
		}
	})
	if err != nil {
		return fmt.Errorf("%w; %d files are done, the same command goes on with the rest", err, moved.Objects)
	}
	what := "moved"
	if f.Keep {
		what = "copied"
	}
	_, err = fmt.Fprintf(stdout, "%s %d files to the %s; %d of them, %d bytes, were not there before\n", what, moved.Objects, f.To, moved.Copied, moved.Bytes)
	return err
}

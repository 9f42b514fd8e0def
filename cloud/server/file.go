package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/postern-io/postern/cloud/object"
)

// sweepEvery is how often files are looked for that nothing needs any more.
const sweepEvery = 6 * time.Hour

// sweepFiles removes files without a row until ctx ends. Another node may do the
// same in the same folder.
func (s *Server) sweepFiles(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := s.Files.Sweep(ctx, s.Store.ListKeptFiles)
		if err != nil && ctx.Err() == nil {
			s.log.Error("unused files cannot be removed now", "err", err)
		}
		if n > 0 {
			s.log.Info("unused files removed", "files", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// FilesFolder is where uploaded files are without a bucket.
func (c Config) FilesFolder() string { return cmp.Or(c.Objects, filepath.Join(c.Dir, "files")) }

// FilesBucket opens the bucket of uploaded files, which writes drafts to the data folder.
func (c Config) FilesBucket(ctx context.Context) (*object.Bucket, error) {
	b := *c.Bucket
	b.Spool = spool(c.Dir)
	return object.OpenBucket(ctx, b)
}

// FilesStore opens where uploaded files are.
func (c Config) FilesStore(ctx context.Context) (object.Store, error) {
	if c.Bucket != nil {
		return c.FilesBucket(ctx)
	}
	return object.OpenFolder(c.FilesFolder())
}

func (c Config) openFiles(ctx context.Context, k Keys) (*object.Files, error) {
	s, err := c.FilesStore(ctx)
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	return object.New(s, k.files())
}

// openFile opens an uploaded file for the export of a business.
func (s *Server) openFile(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	f, err := s.Files.Get(ctx, path)
	return f.ReadCloser, f.Size, err
}

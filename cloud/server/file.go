package server

import (
	"cmp"
	"context"
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
	b.Spool = filepath.Join(c.Dir, "spool")
	return object.OpenBucket(ctx, b)
}

func (c Config) openFiles(ctx context.Context, k Keys) (*object.Files, error) {
	if c.Bucket == nil {
		return object.Open(c.FilesFolder(), k.files())
	}
	b, err := c.FilesBucket(ctx)
	if err != nil {
		return nil, err
	}
	return object.New(b, k.files())
}

// openFile opens an uploaded file for the export of a business.
func (s *Server) openFile(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	f, err := s.Files.Get(ctx, path)
	return f.ReadCloser, f.Size, err
}

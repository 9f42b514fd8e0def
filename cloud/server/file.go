package server

import (
	"context"
	"io"
	"time"
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

// openFile opens an uploaded file for the export of a business.
func (s *Server) openFile(path string) (io.ReadCloser, int64, error) {
	f, err := s.Files.Get(path)
	return f.ReadCloser, f.Size, err
}

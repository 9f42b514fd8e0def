package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/wire"
)

// buildScanners puts the scanners together. kept is what the store has of scans
// that may be repeated. The clock has begun.
func (a *Agent) buildScanners(kept []byte) {
	a.scans = scanner.NewRecorder(scanStore{a}, kept, a.log)
	for _, c := range a.cfg.Scanners {
		a.scanners = append(a.scanners, scanner.New(c, scanner.Options{Open: a.cfg.OpenScanner, Recorder: a.scans, Codes: a.codes, Report: a.cfg.Scanned, Log: a.log}))
	}
}

// scanStore is the store as scanners see it.
type scanStore struct{ a *Agent }

var _ scanner.Store = scanStore{}

func (s scanStore) Stamp(at time.Time) wire.Record { return s.a.clock.Stamp(at) }

// Keep writes once more, the same, to a store that broke and was opened again.
func (s scanStore) Keep(ctx context.Context, put map[string][]byte, records []wire.Record) error {
	encoded := make([]locker.Encoded, 0, len(records))
	for _, r := range records {
		rec, err := buffer.NewRecord(r)
		if err != nil {
			return fmt.Errorf("encode scan: %w", err)
		}
		encoded = append(encoded, locker.Encoded{Kind: rec.Kind, Bytes: rec.Bytes})
	}
	err := keeper(s).Keep(ctx, put, encoded, false)
	if errors.Is(err, buffer.ErrBroken) || errors.Is(err, buffer.ErrDamaged) {
		err = keeper(s).Keep(ctx, put, encoded, false)
	}
	return err
}

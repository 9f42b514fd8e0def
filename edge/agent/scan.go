package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// keptScans is what the store has of scanners.
type keptScans struct {
	windows []byte
	steps   map[string]otep.Code // that were chosen, by scanner
}

// load takes a row of the state, and reports whether it is of scanners.
func (k *keptScans) load(key string, value []byte) bool {
	if key == scanner.KeyWindows {
		k.windows = slices.Clone(value)
		return true
	}
	name, ok := strings.CutPrefix(key, scanner.KeyStep)
	if ok && k.steps == nil {
		k.steps = map[string]otep.Code{}
	}
	if ok {
		k.steps[name] = otep.Code(value)
	}
	return ok
}

// buildScanners puts the scanners together. The clock has begun.
func (a *Agent) buildScanners(kept keptScans) {
	a.scans = scanner.NewRecorder(scanStore{a}, kept.windows, a.log)
	for _, c := range a.cfg.Scanners {
		if step, ok := kept.steps[c.Name]; ok && slices.Contains(c.Choices, step) {
			c.Step = step
		}
		a.scanners = append(a.scanners, scanner.New(c, scanner.Options{Open: a.cfg.OpenScanner, Recorder: a.scans, Codes: a.codes, Report: a.cfg.Scanned, Log: a.log}))
	}
}

// Scanners are the scanners as they work now.
func (a *Agent) Scanners() []scanner.Config {
	out := make([]scanner.Config, 0, len(a.scanners))
	for _, s := range a.scanners {
		out = append(out, s.Config())
	}
	return out
}

// ChooseStep chooses the step of a scanner from now on. Errors: scanner.ErrStep, or
// the store's.
func (a *Agent) ChooseStep(ctx context.Context, name string, step otep.Code) error {
	for _, s := range a.scanners {
		if s.Config().Name == name {
			return s.ChooseStep(ctx, step)
		}
	}
	return fmt.Errorf("%w: there is no scanner %q", scanner.ErrStep, name)
}

// scanStore is the store as scanners see it.
type scanStore struct{ a *Agent }

var _ scanner.Store = scanStore{}

func (s scanStore) Stamp(at time.Time) wire.Record { return s.a.clock.Stamp(at) }

// scansUpTo is how full the store of a cabinet may be, in hundredths, for labels to be kept:
// from 90 on it would take no sessions. A post has none.
const scansUpTo = 80

var errScansFull = errors.New("the store is kept for doors: labels are taken again once the cloud has what waits")

// Keep writes once more, the same, to a store that broke and was opened again.
func (s scanStore) Keep(ctx context.Context, put map[string][]byte, records []wire.Record) error {
	if len(records) > 0 && len(s.a.cfg.Lines) > 0 && s.a.store.Filled() >= scansUpTo {
		return errScansFull
	}
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

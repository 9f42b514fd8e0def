package scanner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// KeyWindows is where the store has what may be repeated.
const KeyWindows = "scanner/windows"

// KeyStep and the name of a scanner is where the store has the step that was chosen
// for it.
const KeyStep = "scanner/step/"

// Store keeps records.
type Store interface {
	// Stamp is a record of a moment without kind and body; each is another one.
	Stamp(at time.Time) wire.Record
	// Keep writes state and records in one transaction. On nil all of it survives a
	// power cut. After an error it may be there in whole; the same records once more
	// are then the same to the cloud.
	Keep(ctx context.Context, put map[string][]byte, records []wire.Record) error
}

// Recorder makes records of labels, for all scanners of a device. Safe for
// concurrent use.
//
//	time      0 s           1 s     3 s      5 s
//	scans     first         again   again    window ends
//	records   scan, event                    scan with repeats 2
type Recorder struct {
	store Store
	log   *slog.Logger
	wake  chan struct{}
	turn  chan struct{} // held by who uses open; a channel, as the store may be slow
	open  windows
}

// keepWait bounds how long a scan waits for the store, and countRetry is when a
// count that was not taken is tried again.
const (
	keepWait   = 10 * time.Second
	countRetry = time.Second
)

// NewRecorder builds a recorder. kept is what the store has under KeyWindows.
func NewRecorder(store Store, kept []byte, log *slog.Logger) *Recorder {
	now := time.Now()
	open, err := loadWindows(kept, now, store.Stamp(now).At)
	if err != nil {
		log.Error("scans of the last start are not known as repeats", "err", err)
	}
	return &Recorder{store: store, log: log, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), open: open}
}

// Scan takes a line of a scanner of labels at a moment. The result is durable; an
// Outcome of "" is of a line of nothing.
func (r *Recorder) Scan(ctx context.Context, at time.Time, raw []byte, c Config) Result {
	l := readLabel(raw, c)
	if l.outcome == "" || l.outcome == Refused {
		return Result{Outcome: l.outcome, Message: l.message}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	m := l.mark(c)
	if w := r.open.find(m, at); w != nil && w.isSame(l, at, c) {
		if w.pending == nil {
			return r.repeat(w, l, at)
		}
		return r.keepScan(ctx, w, l, at)
	}
	r.forget(ctx, m)
	if len(r.open) >= maxWindows {
		first, _ := r.open.first()
		r.forget(ctx, first)
	}
	stamp := r.store.Stamp(at)
	took := c.Repeat
	if c.Batch != nil {
		took = batchWindow
	}
	w := &window{ends: at.Add(took), took: took, kept: stamp.At + int64(took), outcome: l.outcome, scan: l.scan}
	r.open[m] = w
	stamp.Kind, stamp.Body = wire.KindScan, wire.MustEncode(l.scan)
	w.pending = []wire.Record{stamp}
	if l.outcome == Accepted {
		event := r.store.Stamp(at)
		event.Kind, event.Body = wire.KindTrackingEvent, wire.MustEncode(l.event)
		w.pending = append(w.pending, event)
	}
	return r.keepScan(ctx, w, l, at)
}

// keepStep stores the step that was chosen for a scanner.
func (r *Recorder) keepStep(ctx context.Context, name string, step otep.Code) error {
	if err := r.store.Keep(ctx, map[string][]byte{KeyStep + name: []byte(step)}, nil); err != nil {
		return fmt.Errorf("keep the step of scanner %q: %w", name, err)
	}
	return nil
}

// mark names what a line may be a repeat of: the same outcome about the same
// parcel, or about the same bytes.
func (l reading) mark(c Config) mark {
	if l.outcome == Accepted {
		return markOf(c, string(l.outcome), l.event.Subject)
	}
	return markOf(c, string(l.outcome), string(l.scan.Raw))
}

// repeat counts a scan of what is stored.
func (r *Recorder) repeat(w *window, l reading, at time.Time) Result {
	w.repeats, w.last = w.repeats+1, at
	if w.scan.Raw == nil {
		w.scan = l.scan
	}
	out := Result{Outcome: w.outcome, Text: l.text, Message: l.message}
	if w.outcome == Accepted {
		out.Outcome = Repeated
	}
	r.signal()
	return out
}

// keepScan stores a scan, and others that are pending.
func (r *Recorder) keepScan(ctx context.Context, w *window, l reading, at time.Time) Result {
	put := map[string][]byte{KeyWindows: r.open.dump(w.kept - int64(w.took))}
	if err := r.store.Keep(ctx, put, r.open.pending(at)); err != nil {
		r.log.Error("keep a scan; it is shown as failed", "err", err)
		return Result{Outcome: Failed, Text: l.text, Message: "the memory takes nothing now: scan again"}
	}
	r.open.settled()
	r.signal()
	return Result{Outcome: w.outcome, Text: l.text, Message: l.message}
}

func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// forget ends a window. A count that the store does not take is lost.
func (r *Recorder) forget(ctx context.Context, m mark) {
	if w := r.open[m]; w != nil {
		if err := r.count(ctx, w); err != nil {
			r.log.Warn("the count of a scan's repeats is lost", "err", err)
		}
		delete(r.open, m)
	}
}

// count stores how often a scan was repeated, as another record of it at the time
// of the last repeat.
func (r *Recorder) count(ctx context.Context, w *window) error {
	if w.repeats == 0 {
		return nil
	}
	body := w.scan
	body.Repeats = w.repeats
	rec := r.store.Stamp(w.last)
	rec.Kind, rec.Body = wire.KindScan, wire.MustEncode(body)
	if err := r.store.Keep(ctx, nil, []wire.Record{rec}); err != nil {
		return fmt.Errorf("keep repeats: %w", err)
	}
	w.repeats = 0
	return nil
}

// Run stores counts of repeats when their windows end, until ctx ends, and then
// those that are left.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		wait := r.settle(ctx, time.Now())
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.wake:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
			defer cancel()
			r.turn <- struct{}{}
			defer func() { <-r.turn }()
			for _, w := range r.open {
				if err := r.count(ctx, w); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// settle ends windows whose time is over, and says when to look again.
func (r *Recorder) settle(ctx context.Context, now time.Time) time.Duration {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	for _, m := range r.open.ended(now) {
		if err := r.count(ctx, r.open[m]); err != nil {
			return countRetry
		}
		delete(r.open, m)
	}
	if _, w := r.open.first(); w != nil {
		return max(w.ends.Sub(now), 0)
	}
	return time.Hour
}

// Package scanner takes what barcode scanners of a cabinet or a warehouse post
// send: serial devices, hand terminals over TCP, and keyboards.
//
// A scanner of labels makes a scan record of each line that it sends, and a
// tracking event when the line names one parcel. Both, and what is known of
// repeats, are one transaction of the store; a result is reported afterwards. A
// scanner of codes hands its lines to whoever checks pickup codes and makes no
// record. Codes of cabinets are never kept, reported or logged, whatever
// scanner reads them.
//
// A scan counts when its line is complete. A line that is under way when its
// scanner or the power goes is lost, and one that the store did not take is
// reported as failed. After a cut the same code within its time is still a repeat.
package scanner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/passcode"
)

// Codes checks codes of the cabinet; its error is that of access.Verifier.
type Codes interface {
	Scan(ctx context.Context, text string) (locker.Answer, error)
}

// Options is what New needs beside the scanner's own settings.
type Options struct {
	Open     Opener    // nil is OpenPort
	Recorder *Recorder // of labels; scanners of one device share it
	Codes    Codes     // of codes
	// Report gets the result of each line, once what it says is durable. It must
	// not block and may be called by several scanners at once; nil is none.
	Report func(Result)
	Log    *slog.Logger
}

// Scanner is one device that scans.
type Scanner struct {
	cfg  Config
	opt  Options
	step atomic.Pointer[otep.Code] // of lines from now on; never nil
	pace *rate.Limiter
}

// Lines a second that a scanner may send on and on, and at once. People and conveyors are
// slower; one that sends without end is read more slowly, so that it fills no store.
const (
	paceLines = 20
	paceBurst = 100
	// batchFaster is how many times as much a batch scanner may send, which people wait for.
	batchFaster = 10
)

// New builds a scanner of checked settings; nothing is opened yet.
func New(cfg Config, opt Options) *Scanner {
	if opt.Open == nil {
		opt.Open = OpenPort
	}
	if opt.Report == nil {
		opt.Report = func(Result) {}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	opt.Log = opt.Log.With("scanner", cfg.Name)
	s := &Scanner{cfg: cfg.withDefaults(), opt: opt, pace: rate.NewLimiter(paceLines, paceBurst)}
	if cfg.Batch != nil {
		s.pace = rate.NewLimiter(batchFaster*paceLines, batchFaster*paceBurst)
	}
	s.step.Store(&cfg.Step)
	return s
}

// Config is the scanner as it works now, with the step that was chosen last.
func (s *Scanner) Config() Config {
	c := s.cfg
	c.Step = *s.step.Load()
	return c
}

// ErrStep says that a step is none of those that the scanner has.
var ErrStep = errors.New("the scanner has no such step")

// ChooseStep chooses the step of lines from now on, which also starts after this
// one go on with. Errors: ErrStep, or the store's.
func (s *Scanner) ChooseStep(ctx context.Context, step otep.Code) error {
	if !slices.Contains(s.cfg.Choices, step) {
		return fmt.Errorf("%w: use one of %v", ErrStep, s.cfg.Choices)
	}
	if err := s.opt.Recorder.keepStep(ctx, s.cfg.Name, step); err != nil {
		return err
	}
	s.step.Store(&step)
	return nil
}

// How a scanner that is away is looked for, and how long a pause ends a line that
// has no end of its own.
const (
	waitFirst = 500 * time.Millisecond // doubles
	waitLast  = 15 * time.Second
	idleGap   = 500 * time.Millisecond
	codeWait  = 30 * time.Second
)

// Run reads lines until ctx ends, opening the port again whenever it is gone.
func (s *Scanner) Run(ctx context.Context) error {
	wait, away := waitFirst, false
	for ctx.Err() == nil {
		port, err := s.opt.Open(ctx, s.cfg)
		if err == nil {
			s.opt.Log.Info("the scanner is connected", "port", s.cfg.Port)
			away = false
			var came bool
			if came, err = s.readPort(ctx, port); came {
				wait = waitFirst
			}
		}
		if ctx.Err() != nil {
			break
		}
		if !away { // once until it is back
			s.opt.Log.Warn("the scanner is away", "port", s.cfg.Port, "err", err)
			away = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, waitLast)
	}
	return nil
}

// readPort reads lines until the port fails or ctx ends. came says that anything
// was read.
func (s *Scanner) readPort(ctx context.Context, port board.Port) (came bool, err error) {
	release := context.AfterFunc(ctx, func() { _ = port.Close() })
	defer func() {
		release()
		err = errors.Join(err, port.Close())
	}()
	if err := port.SetReadTimeout(idleGap); err != nil {
		return false, err
	}
	var lines splitter
	buf := make([]byte, 1024)
	for {
		n, err := port.Read(buf)
		if n > 0 {
			came = true
			lines.add(buf[:n], func(raw []byte, fits bool) { s.takeLine(ctx, raw, fits) })
		}
		if err != nil {
			return came, err
		}
		if n == 0 {
			lines.end(func(raw []byte, fits bool) { s.takeLine(ctx, raw, fits) })
		}
	}
}

// takeLine is what becomes of one line.
func (s *Scanner) takeLine(ctx context.Context, raw []byte, fits bool) {
	at, c := time.Now(), s.Config()
	if s.pace.Wait(ctx) != nil {
		return // it ends
	}
	var r Result
	switch {
	case !fits:
		r = Result{Outcome: Refused, Message: fmt.Sprintf("the scan is longer than %d bytes", MaxLine)}
	case s.cfg.Use == UseCodes:
		r = s.tryCode(ctx, raw)
	default:
		r = s.opt.Recorder.Scan(ctx, at, raw, c)
	}
	if r.Outcome == "" {
		return // an empty line
	}
	s.report(r, at, c)
	for c.Batch != nil && r.Outcome == Failed { // a batch scanner may have forgotten it
		select {
		case <-ctx.Done():
			return
		case <-time.After(countRetry):
		}
		if r = s.opt.Recorder.Scan(ctx, time.Now(), raw, c); r.Outcome != Failed {
			s.report(r, at, c)
		}
	}
}

func (s *Scanner) report(r Result, at time.Time, c Config) {
	r.At, r.Scanner, r.Use, r.Post, r.Step = at, s.cfg.Name, c.Use, c.Post, string(c.Step)
	s.opt.Log.Debug("scan", "outcome", r.Outcome)
	s.opt.Report(r)
}

// tryCode hands a line to the check of codes, as the local page does.
func (s *Scanner) tryCode(ctx context.Context, raw []byte) Result {
	label, err := gs1.Read(raw)
	if errors.Is(err, gs1.ErrEmpty) {
		return Result{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), codeWait)
	defer cancel()
	a, err := s.opt.Codes.Scan(ctx, label.Text)
	r := Result{Outcome: CodeTried, Answer: a, Err: err}
	if err != nil && isLabel(label.Text) {
		r.Text = label.Text
	}
	return r
}

// isLabel reports whether a text may be that of a parcel's label: nothing of a code is in it.
func isLabel(text string) bool {
	const shortest = 5 // and longer than the digits of any code, where it has digits alone
	upper := strings.ToUpper(text)
	if strings.Contains(upper, "PU:") || strings.Contains(upper, "PX:") || strings.Contains(text, "://") /* such as the address of a parcel's page */ || len(text) < shortest || len(text) > 80 {
		return false
	}
	return len(text) > passcode.StaffDigits || strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}

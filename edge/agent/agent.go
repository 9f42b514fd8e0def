// Package agent puts the parts of a cabinet or a warehouse post together: boards,
// scanners, rules, store, uplink, codes and the local page. New builds, Run blocks until its context
// ends; stopping goes from the boards inwards, the store last.
package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/origin"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Config is what New needs. Zero fields take defaults where one is named.
type Config struct {
	Dir      string // of the store file
	Secrets  access.Secrets
	Lines    []board.LineConfig
	Scanners []scanner.Config // as scanner.Check allows
	Supply   board.Supply
	Version  string
	MaxBytes int64 // of the store; 0 is 512 MiB
	// HealthEvery is how often a health record is written; 0 is ten minutes.
	HealthEvery time.Duration
	// Trial is how long the addresses of a new configuration may take to prove
	// themselves before the agent goes back to the last good ones; 0 is ten
	// minutes.
	Trial time.Duration
	TLS   *tls.Config
	Log   *slog.Logger
	// Act gets what is to be shown or done outside the boards, once it is
	// durable: for the local page. It must not block; nil: nothing is shown.
	Act func(locker.Action)

	// Scanned gets what became of each line of a scanner, once it is durable. It must
	// not block and may be called by several scanners at once; nil: nothing is shown.
	Scanned func(scanner.Result)

	// Healthy is called once, when this start has shown that it works: the parts run, the
	// store takes what is written, a board has answered where there are lines, and the
	// cloud is connected where it ever was before. nil: not asked.
	Healthy func()

	// Updates takes new versions of this program by command; nil: none is taken.
	Updates Updates

	// Origin is the cloud by HTTPS, to which answers to diagnoses go; nil: it is not known,
	// and diagnoses are refused.
	Origin *origin.Cloud

	// Facts are what the program knows besides, for support bundles: by the names of their
	// files, without an ending. They hold no secrets. nil: nothing.
	Facts func() map[string]any

	// Trace takes each pulse with its authority just before it is written to the
	// line, which waits for it; nil is none. For tests.
	Trace func(edge.PulseTrace)

	// Seams of tests and simulators; nil takes the real thing.
	Open        board.Opener
	OpenScanner scanner.Opener
	Dial        func(ctx context.Context, broker *url.URL) (net.Conn, error)
	System      func() time.Time // the machine's wall clock
	OpenFile    func(name string, flag int, perm os.FileMode) (*os.File, error)
	Disk        func() error // as buffer.Config.Disk
}

// IsPost reports whether c is that of a warehouse post: it scans labels and has no lines
// of lock boards, so that it takes configurations without doors alone.
func (c Config) IsPost() bool {
	return len(c.Lines) == 0 && slices.ContainsFunc(c.Scanners, func(s scanner.Config) bool { return s.Use == scanner.UseLabels })
}

// keyWall remembers a time that has certainly passed, for the next start: codes
// that have run out stay so. It is kept with every record and every
// keepWallEvery.
const (
	keyWall       = "agent/wall"
	keepWallEvery = time.Minute
)

// Agent is one cabinet.
type Agent struct {
	cfg   Config
	log   *slog.Logger
	clock *edge.Clock
	store *buffer.Store
	loop  *locker.Loop
	board *board.Cabinet
	link  *uplink.Uplink
	codes *access.Verifier
	marks *marks

	scans    *scanner.Recorder
	scanners []*scanner.Scanner

	updates   *updater
	diagnoses *diagnoser
	key       *signed.DeviceKey // its own; nil: it signs nothing

	instance  [16]byte
	started   time.Time
	forged    forgeries
	links     links
	nonce     []byte                 // that was answered last; owned by the handler
	echo      atomic.Pointer[[]byte] // the cloud's newest challenge
	synced    time.Time              // when a synchronisation was last kept; owned by the handler
	knewCloud bool                   // it was connected before this start
	laid      uint64                 // configuration version that the boards run; owned by act
	Recorded  atomic.Uint64          // records kept since start, for audits
}

// New opens the store and builds the agent; nothing runs yet. Close releases
// the store when Run is never called.
func New(cfg Config) (*Agent, error) {
	if err := cfg.Secrets.Check(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.System == nil {
		cfg.System = time.Now
	}
	if cfg.HealthEvery == 0 {
		cfg.HealthEvery = 10 * time.Minute
	}
	if cfg.Trial == 0 {
		cfg.Trial = trialTime
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	log, ring := keepLog(cfg.Log)
	cfg.Log = log
	a := &Agent{cfg: cfg, log: cfg.Log, clock: edge.NewClock(cfg.System()), started: time.Now()}
	a.updates, a.diagnoses = newUpdater(a), newDiagnoser(a, ring)
	_, _ = rand.Read(a.instance[:]) // never fails
	store, err := buffer.Open(buffer.Config{Path: filepath.Join(cfg.Dir, "edge.db"), MaxBytes: cfg.MaxBytes, Logger: cfg.Log, OpenFile: cfg.OpenFile, Disk: cfg.Disk,
		Stamp: func() wire.Record { a.Recorded.Add(1); return a.clock.Stamp(time.Now()) }})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	a.store = store
	if err := a.build(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return a, nil
}

// build puts the parts together over the open store.
func (a *Agent) build() error {
	state := locker.New(wire.Config{})
	var known int64
	var start keptStart
	var scans keptScans
	blank := true
	err := a.store.Load(func(key string, value []byte) error {
		blank = false
		switch key {
		case keyWall:
			return wire.Decode(value, &known)
		case keyLinks:
			return wire.Decode(value, &a.links.kept)
		case keyStart:
			return wire.Decode(value, &start)
		}
		if scans.load(key, value) {
			return nil
		}
		if err := state.Load(key, value); err != nil {
			a.log.Error("leave out records that cannot be read", "err", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	state.Settle()
	if a.marks, err = openMarks(a.cfg.Dir); err != nil {
		a.log.Error("the code list's generation is known by the store alone", "err", err)
	}
	opened := a.store.Opened()
	put := map[string][]byte{}
	found := state.Meta.Found // by a start that power ended at once
	switch {
	case opened.Created != "" || blank:
		found = locker.FoundNew
	case found == 0 && a.marks.behind(start):
		found = locker.FoundBehind
	}
	if found != 0 {
		put = state.DeclareLoss(found, opened.Boot)
	}
	start = a.keptStart(start.Now)
	put[keyStart] = wire.MustEncode(start)
	err = a.store.Commit(context.Background(), buffer.Change{Put: put, Urgent: true})
	if err == nil {
		err = a.marks.begin(start.Now)
	}
	if err != nil { // an older copy would then be found by the cloud alone
		a.log.Error("keep the start beside the store", "err", err)
	}
	if m := state.Meta; m.Generation > 0 {
		if err := a.marks.raise(locker.Marks{Generation: m.Generation, Number: m.CodeList}); err != nil {
			a.log.Error("keep the code list's generation beside the store", "err", err)
		}
	}
	acked := a.store.Acked()
	a.knewCloud = state.Meta.Generation > 0 || acked[0] > 1 || acked[1] > 1
	a.clock.Begin(opened.Boot, known)
	a.laid = state.Config.Version
	layout := board.Layout{Lines: a.cfg.Lines, Doors: places(state.Config)}
	a.board = board.New(board.Config{Layout: layout, Times: state.Config.Times, Supply: a.cfg.Supply, Open: a.cfg.Open, Trace: a.cfg.Trace, Mono: a.clock.Mono, Log: a.log,
		Sink: func(e edge.Event) { a.loop.Event(e) }})
	a.loop = locker.NewLoop(locker.LoopConfig{State: state, Fresh: found == locker.FoundNew, Behind: found == locker.FoundBehind, Clock: a.clock, Store: keeper{a}, Hardware: a.board,
		Act: a.apply, Log: a.log})
	a.links.own = a.cfg.Secrets.Keys
	if keys, known := a.marks.pinned(a.cfg.Secrets.Keys); known {
		a.links.kept.Good.Keys = keys
	}
	a.links.adopt(state.Config)
	s := a.cfg.Secrets
	if len(s.DeviceKey) > 0 {
		if a.key, err = signed.NewDeviceKey(s.DeviceCode, s.DeviceKey); err != nil {
			return fmt.Errorf("use device key: %w", err)
		}
	}
	a.link, err = uplink.New(uplink.Config{DeviceCode: s.DeviceCode, Secret: s.DeviceSecret, Prefix: s.Prefix, Brokers: brokers(a.links.brokers(), s.Brokers), TLS: a.cfg.TLS,
		Dial: a.cfg.Dial, Store: a.store, Status: a.status, Sample: func() wire.Sample { return a.clock.Sample(time.Now()) }, Handler: (*handler)(a), Key: a.key, Receipt: a.receipt,
		Forged: func(err error) { a.forgery("ack", err) }, Forked: a.forked, Logger: a.log})
	if err != nil {
		return fmt.Errorf("build uplink: %w", err)
	}
	a.codes = access.New(access.Config{DeviceCode: s.DeviceCode, Salt: s.CodeSalt, Key: s.CodeKey, Loop: a.loop, Link: a.link, Now: a.now, Keys: (*handler)(a).keys})
	a.buildScanners(scans)
	return nil
}

// brokers are the addresses of the configuration, then those of the secrets
// file, so that a wrong configuration cannot cut a cabinet off.
func brokers(configured, own []string) []string {
	var out []string
	for _, b := range slices.Concat(configured, own) {
		if !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

func places(c wire.Config) map[edge.DoorNumber]edge.Place {
	out := make(map[edge.DoorNumber]edge.Place, len(c.Layout))
	for _, l := range c.Layout {
		out[edge.DoorNumber(l.Door)] = edge.Place{Board: l.Board, Channel: l.Channel, Inverted: l.Inverted}
	}
	return out
}

// keeper is the store as the loop sees it.
type keeper struct{ a *Agent }

func (k keeper) Keep(ctx context.Context, put map[string][]byte, records []locker.Encoded, urgent bool) error {
	c := buffer.Change{Put: put, Urgent: urgent}
	if wall := k.a.wall(time.Now()); wall != nil && len(records) > 0 {
		c.Put = maps.Clone(put)
		if c.Put == nil {
			c.Put = map[string][]byte{}
		}
		c.Put[keyWall] = wall
	}
	for _, r := range records {
		c.Records = append(c.Records, buffer.Record{Kind: r.Kind, Bytes: r.Bytes})
	}
	return k.a.commit(ctx, c)
}

// wall is what is kept under keyWall, nil while nothing is known. It goes on
// without a network: the time of several starts adds up.
func (a *Agent) wall(at time.Time) []byte {
	floor := a.clock.Floor(at)
	if floor == 0 {
		return nil
	}
	return wire.MustEncode(floor)
}

// keepWall keeps the time now and then: a cabinet that is not used for a week has
// it all the same.
func (a *Agent) keepWall(ctx context.Context) error {
	t := time.NewTicker(keepWallEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if wall := a.wall(time.Now()); wall != nil {
			if err := a.commit(ctx, buffer.Change{Put: map[string][]byte{keyWall: wall}, Urgent: true}); err != nil && ctx.Err() == nil {
				a.log.Warn("keep wall clock", "err", err)
			}
		}
	}
}

// keptStart is what a store that knew the start before is to know of this one.
func (a *Agent) keptStart(before string) keptStart {
	return keptStart{Now: hex.EncodeToString(a.instance[:]), Before: a.marks.newest(before)}
}

// commit keeps a change. A store that broke is opened again first; one that
// lost its content by that is given what the cabinet has in memory.
func (a *Agent) commit(ctx context.Context, c buffer.Change) error {
	err := a.store.Commit(ctx, c)
	if errors.Is(err, buffer.ErrBroken) || errors.Is(err, buffer.ErrDamaged) {
		opened, rerr := a.store.Reopen()
		if rerr != nil {
			return errors.Join(err, rerr)
		}
		if opened.Created != "" {
			s := a.loop.State()
			put := s.Dump()
			put[keyLinks], put[keyStart] = a.links.dump(), wire.MustEncode(a.keptStart(""))
			if wall := a.wall(time.Now()); wall != nil {
				put[keyWall] = wall
			}
			if derr := a.store.Commit(ctx, buffer.Change{Put: put, Urgent: true}); derr != nil {
				return errors.Join(err, derr)
			}
		}
		return err // the caller tries again
	}
	if errors.Is(err, buffer.ErrFull) {
		return fmt.Errorf("%w: %w", locker.ErrFull, err)
	}
	if err == nil {
		a.Recorded.Add(uint64(len(c.Records)))
	}
	return err
}

func (a *Agent) now() locker.Now {
	s := a.clock.Sample(time.Now())
	return locker.Now{Boot: s.Boot, Mono: s.Mono, Offset: s.Wall - s.Mono, Clock: s.Clock, ErrMS: s.ErrMS, Floor: a.clock.Floor(time.Now())}
}

// Now is the cabinet's time, as its rules see it.
func (a *Agent) Now() locker.Now { return a.now() }

// Health is what a health record would hold now.
func (a *Agent) Health() wire.Health { return a.healthBody() }

// Codes checks the codes that people type or scan at the cabinet.
func (a *Agent) Codes() *access.Verifier { return a.codes }

// Loop owns the cabinet's state.
func (a *Agent) Loop() *locker.Loop { return a.loop }

// Link is the way to the cloud.
func (a *Agent) Link() *uplink.Uplink { return a.link }

// Store is the cabinet's memory.
func (a *Agent) Store() *buffer.Store { return a.store }

// Close releases the store.
func (a *Agent) Close() error { return a.store.Close() }

// Run runs the cabinet until ctx ends, then closes the store. It returns nil
// after an ordinary stop.
func (a *Agent) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var outside, inside sync.WaitGroup
	fail := make(chan error, 8)
	run := func(wg *sync.WaitGroup, ctx context.Context, name string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				fail <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	outer, cancel := context.WithCancel(ctx)
	defer cancel()
	run(&inside, inner, "locker", a.loop.Run)
	run(&outside, outer, "boards", a.board.Run)
	run(&outside, outer, "uplink", a.link.Run)
	run(&outside, outer, "health", a.health)
	run(&outside, outer, "check", a.check)
	run(&outside, outer, "trial", a.try)
	run(&outside, outer, "time", a.keepWall)
	run(&outside, outer, "scans", a.scans.Run)
	for _, s := range a.scanners {
		run(&outside, outer, "scanner", s.Run)
	}
	run(&outside, outer, "healthy", a.reportHealthy)
	run(&outside, outer, "updates", a.updates.run)
	run(&outside, outer, "diagnoses", a.diagnoses.run)
	err := a.store.Ready()
	if err != nil {
		a.log.Warn("mark the start as done", "err", err)
		err = nil
	}
	select {
	case <-ctx.Done():
	case err = <-fail:
	}
	cancel()
	outside.Wait()
	stop()
	inside.Wait()
	return errors.Join(err, a.store.Close())
}

// check reads the whole store once, beside the work.
func (a *Agent) check(ctx context.Context) error {
	if err := a.store.Check(ctx); err != nil && ctx.Err() == nil {
		a.log.Error("the store is damaged; it is moved aside", "err", err)
	}
	<-ctx.Done()
	return nil
}

// status is the cabinet's present.
func (a *Agent) status() wire.Status {
	s := a.loop.State()
	now := a.now()
	st := wire.Status{At: now.Wall(now.Mono), AgentVersion: a.cfg.Version, Instance: a.instance[:], Boot: now.Boot, UptimeS: uint64(time.Since(a.started) / time.Second),
		Boards: map[string]string{}, ConfigVersion: s.Config.Version, Snapshot: wire.SnapshotOfUse, Contents: map[uint]string{}, Blocked: map[uint]string{},
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Update: a.updates.state.Load(), CodeList: s.ListNumber(a.marks.now()), Generation: s.HeldList(a.marks.now()).Generation, Lost: s.Meta.Lost}
	if echo := a.echo.Load(); echo != nil {
		st.Echo = *echo
	}
	if shut := s.Meta.Budgets.Typed.Long(now); shut != 0 {
		st.TypedLocked = now.Wall(shut)
	}
	for name, h := range a.board.Health() {
		st.Boards[name] = h.State
	}
	minOpen := int64(s.Config.Times.WithDefaults().MinOpenMS) * int64(time.Millisecond)
	for _, n := range slices.Sorted(maps.Keys(s.Doors)) {
		d := s.Doors[n]
		st.Doors = append(st.Doors, wire.DoorStatus{Door: uint(n), State: d.State(&s, minOpen, now.Mono), Item: d.Item, OpeningID: d.Opening, Version: d.Version})
		if d.Delivery != "" {
			st.Contents[uint(n)] = d.Delivery
		}
		if d.Blocked != "" {
			st.Blocked[uint(n)] = d.Blocked
		}
		if s.IsUnconfirmed(n) {
			st.Unconfirmed = append(st.Unconfirmed, uint(n))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Exceptions)) {
		st.Exceptions = append(st.Exceptions, s.Exceptions[id].Exception)
	}
	return st
}

// apply takes what the rules want done outside.
func (a *Agent) apply(x locker.Action) {
	if a.cfg.Act != nil {
		defer a.cfg.Act(x)
	}
	switch x.(type) {
	case locker.StatusChanged:
		a.layBoards()
		a.link.StatusChanged()
	case locker.AskList:
		a.link.AskList()
	case locker.UpdateWanted:
		a.updates.wake()
	case locker.DiagnosisWanted:
		a.diagnoses.wake()
	case locker.Show:
		a.log.Debug("show", "action", fmt.Sprintf("%+v", x))
	}
}

// layBoards lays the boards anew when the configuration has changed: before the
// next pulse is asked for, because a door's number may mean another lock.
func (a *Agent) layBoards() {
	c := a.loop.State().Config
	if c.Version == a.laid {
		return
	}
	a.laid = c.Version
	if err := a.board.SetLayout(board.Layout{Lines: a.cfg.Lines, Doors: places(c)}); err != nil {
		a.log.Error("lay boards anew", "version", c.Version, "err", err)
	}
}

// maxOnSiteErrMS is the error of the clock above which no on-site token is shown.
const maxOnSiteErrMS = 30_000

// OnSite is the token for the screen by which a recipient shows to the cloud that they stand
// before it; "" while there is no session with the cloud, or no clock to make it by.
func (a *Agent) OnSite() string {
	now := a.Now()
	if now.Clock != wire.ClockSynced || now.ErrMS > maxOnSiteErrMS || !a.link.Connected() {
		return ""
	}
	return passcode.OnSite(a.cfg.Secrets.CodeKey, a.cfg.Secrets.DeviceCode, time.Unix(0, now.Wall(now.Mono)))
}

// Record keeps a record of its own: a scan, a measurement, health.
func (a *Agent) Record(ctx context.Context, kind wire.Kind, body any) error {
	r := a.clock.Stamp(time.Now())
	r.Kind, r.Body = kind, wire.MustEncode(body)
	rec, err := buffer.NewRecord(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	return a.commit(ctx, buffer.Change{Records: []buffer.Record{rec}})
}

// wearEvery is in which of the health records the wear of locks stands: the first of a
// start, and one in so many.
const wearEvery = 6

// firstHealth is how long after a start its first health record is written: one that starts
// again and again is not silent about it.
const firstHealth = time.Minute

// health writes a health record soon after the start, and then now and then.
func (a *Agent) health(ctx context.Context) error {
	t := time.NewTimer(min(firstHealth, a.cfg.HealthEvery))
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			t.Reset(a.cfg.HealthEvery)
			body := a.healthBody()
			if n%wearEvery == 0 {
				s := a.loop.State()
				body.Locks = s.Wear()
			}
			if err := a.Record(ctx, wire.KindHealth, body); err != nil && ctx.Err() == nil {
				a.log.Warn("keep health record", "err", err)
			}
		}
	}
}

func (a *Agent) healthBody() wire.Health {
	p := a.store.Present()
	c := a.link.Counters()
	h := wire.Health{Boards: map[string]uint64{}, StoreUse: map[string]uint64{"lane0": p.Use[0], "lane1": p.Use[1], "filled_percent": uint64(a.store.Filled())},
		Uplink:   map[string]uint64{"connects": c.Connects, "batches": c.Batches, "resends": c.Resends, "forged": a.forged.total.Load()},
		Versions: map[string]string{"agent": a.cfg.Version}}
	for name, b := range a.board.Health() {
		h.Boards[name] = b.Bad + b.Silent
	}
	return h
}

// forgeries counts down messages without a signature by a trusted key; one tamper
// record an hour tells of them.
type forgeries struct {
	total atomic.Uint64
	mu    sync.Mutex
	last  time.Time
	since uint64
}

func (a *Agent) forgery(what string, err error) {
	f := &a.forged
	f.total.Add(1)
	a.log.Warn("down message is not trusted", "kind", what, "err", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since++
	if !f.last.IsZero() && time.Since(f.last) < time.Hour {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepWait)
	defer cancel()
	if _, err := a.loop.Do(ctx, locker.Tampered{What: wire.TamperBadSignature, Count: f.since}); err != nil {
		a.log.Error("keep tamper record; the next one counts it as well", "err", err)
		return
	}
	f.last, f.since = time.Now(), 0
}

// receipt opens an acknowledgement that the cloud has signed.
func (a *Agent) receipt(envelope []byte) (ack wire.Ack, err error) {
	err = (*handler)(a).keys().Open(signed.ForReceipt, envelope, &ack)
	return ack, err
}

// forked records that the store was found to be a copy or an older one. The
// uplink does not wait for it.
func (a *Agent) forked(reason string) {
	if reason != wire.GapStoreRolledBack {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepWait)
		defer cancel()
		if _, err := a.loop.Do(ctx, locker.Tampered{What: wire.TamperStoreRolledBack}); err != nil {
			a.log.Error("keep tamper record", "err", err)
		}
	}()
}

// handler takes what comes down. The uplink calls it one message at a time.
type handler Agent

// maxChallenge is how long a challenge may be that is repeated, in bytes.
const maxChallenge = 64

// stepWait bounds how long one message may wait for the store.
const stepWait = 10 * time.Second

func (h *handler) keys() signed.Keys {
	all, _ := h.links.keys()
	return signed.PinnedKeys(all)
}

func (h *handler) step(in locker.Input) {
	ctx, cancel := context.WithTimeout(context.Background(), stepWait)
	defer cancel()
	if _, err := h.loop.Do(ctx, in); err != nil {
		h.log.Warn("message not taken; the cloud sends it again", "err", err)
	}
}

func (h *handler) Command(envelope []byte) {
	var c wire.Command
	if err := h.keys().Open(signed.ForCommand, envelope, &c); err != nil || c.DeviceCode != h.cfg.Secrets.DeviceCode {
		(*Agent)(h).forgery("command", err)
		return
	}
	if c.Trace != "" {
		h.log.Info("a command whose call is followed", "command", c.CommandID, "kind", c.Kind, "traceparent", c.Trace)
	}
	in := h.updates.judgeCommand(c)
	if c.Kind.IsDiagnosis() {
		in.Problem = h.diagnoses.problem(c)
	}
	h.step(in)
}

func (h *handler) Codes(x uplink.CodesAnswer) {
	var c wire.Codes
	if err := h.keys().Open(signed.ForCodes, x.Envelope, &c); err != nil || c.DeviceCode != h.cfg.Secrets.DeviceCode {
		(*Agent)(h).forgery("codes", err)
		return
	}
	in := locker.CodesCame{Codes: c, Asked: x.Nonce, Earlier: x.Earlier, Marks: h.marks.now(), Keyed: len(h.cfg.Secrets.DeviceKey) > 0}
	if s := h.loop.State(); c.Generation > 0 && s.Applies(in) {
		if err := h.marks.raise(locker.Marks{Generation: c.Generation, Number: c.To}); err != nil {
			h.log.Warn("code list not taken; the cloud sends it again", "err", err)
			return
		}
	}
	h.step(in)
}

func (h *handler) Config(envelope []byte) {
	var c wire.Config
	if err := h.keys().Open(signed.ForConfig, envelope, &c); err != nil || c.DeviceCode != h.cfg.Secrets.DeviceCode {
		(*Agent)(h).forgery("config", err)
		return
	}
	problem, post := "", h.cfg.IsPost()
	if err := (board.Layout{Lines: h.cfg.Lines, Doors: places(c)}).Check(); err != nil && !post { // a post refuses any doors
		problem = err.Error()
	}
	for _, b := range c.Brokers {
		if err := uplink.CheckAddress(b); err != nil {
			problem = err.Error()
		}
	}
	before := h.loop.State().Config.Version
	h.step(locker.ConfigCame{Config: c, Problem: problem, Post: post})
	if now := h.loop.State().Config; now.Version != before {
		(*Agent)(h).applied(now)
	}
}

func (h *handler) Time(t uplink.TimeAnswer) {
	var p wire.Time
	err := h.keys().Open(signed.ForTime, t.Envelope, &p)
	if err != nil || p.DeviceCode != h.cfg.Secrets.DeviceCode {
		(*Agent)(h).forgery("time", err)
		return
	}
	if len(t.Nonce) == 0 || !slices.Equal(p.Nonce, t.Nonce) || slices.Equal(t.Nonce, h.nonce) {
		return // an answer to an older question, or the same once more
	}
	(*Agent)(h).proof(t.Envelope)
	h.nonce = slices.Clone(t.Nonce)
	if n := len(p.Challenge); n > 0 && n <= maxChallenge {
		h.echo.Store(&p.Challenge)
		h.link.StatusChanged() // it proves that this agent speaks now
	}
	half := t.ReceivedAt.Sub(t.SentAt) / 2
	at := t.SentAt.Add(half)
	if s := h.clock.Sample(t.ReceivedAt); s.Clock == wire.ClockSynced && half > time.Duration(s.ErrMS)*time.Millisecond {
		return // the clock is better than an answer that was held up
	}
	h.clock.Sync(p.ServerTime, at, half)
	if !h.synced.IsZero() && t.ReceivedAt.Sub(h.synced) < keepWallEvery {
		return // the one that is kept is as good
	}
	h.synced = t.ReceivedAt
	s := h.clock.Sample(at)
	if err := h.store.SetSync(s.Mono, s.Wall, s.ErrMS); err != nil {
		h.log.Warn("keep synchronisation", "err", err)
	}
	if err := h.store.Commit(context.Background(), buffer.Change{Put: map[string][]byte{keyWall: (*Agent)(h).wall(t.ReceivedAt)}, Urgent: true}); err != nil {
		h.log.Warn("keep wall clock", "err", err)
	}
}

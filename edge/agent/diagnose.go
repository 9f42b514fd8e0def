package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/origin"
	"github.com/postern-io/postern/internal/wholefile"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/wire"
)

// Waits of diagnoses.
const (
	diagnosisLook  = 5 * time.Second  // between looks at what is wanted
	sendFirstPause = 5 * time.Second  // before an answer is sent again; each further pause is twice as long
	sendLastPause  = time.Minute      // at most
	viewWait       = 20 * time.Second // for the next poll of each board
)

// answerFolder has the answer that is being sent, in the data folder.
const answerFolder = "diagnosis"

// diagnoser carries out the diagnoses of an agent. An answer is made once and kept as a file
// until its outcome is: after a power cut the same bytes are sent, which the cloud takes once.
type diagnoser struct {
	agent  *Agent
	wanted chan struct{} // has room for one
	log    *logRing
}

func newDiagnoser(a *Agent, log *logRing) *diagnoser {
	return &diagnoser{agent: a, wanted: make(chan struct{}, 1), log: log}
}

// wake has it look for a diagnosis at once.
func (x *diagnoser) wake() {
	select {
	case x.wanted <- struct{}{}:
	default:
	}
}

// problem is why a diagnosis cannot be answered; "": it can.
func (x *diagnoser) problem(c wire.Command) string {
	var path string
	var test wire.ChannelTest
	var other wire.Diagnosis
	if c.Kind == wire.CmdChannelTest && wire.Decode(c.Body, &test) == nil {
		path = test.Upload.Path
	} else if wire.Decode(c.Body, &other) == nil {
		path = other.Upload.Path
	}
	if _, err := x.agent.cfg.Origin.Address(path); err != nil && path != "" {
		return wire.ReasonNoCloud
	}
	return ""
}

// run carries out what is wanted, that of earlier starts too.
func (x *diagnoser) run(ctx context.Context) error {
	t := time.NewTicker(diagnosisLook)
	defer t.Stop()
	for ctx.Err() == nil {
		s := x.agent.loop.State()
		switch d := s.Meta.Diagnosis; {
		case d == nil:
			x.dropAnswers("")
		case d.Test == nil || d.Test.Over:
			x.carryOut(ctx, *d)
		case x.isOver(*d):
			x.end(ctx, *d, locker.Diagnosed{Outcome: wire.OutcomeFailed, Reason: wire.ReasonNotSent})
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-x.wanted:
		}
	}
	return nil
}

// isOver reports whether the cloud takes no answer any more, as far as the clock tells.
func (x *diagnoser) isOver(d locker.Diagnosis) bool {
	now := x.agent.Now()
	return now.Clock == wire.ClockSynced && now.Wall(now.Mono) > d.Upload.Until
}

// carryOut makes the answer, sends it and keeps the outcome. What is cut short is wanted still.
func (x *diagnoser) carryOut(ctx context.Context, d locker.Diagnosis) {
	a := x.agent
	file, err := x.answer(ctx, d)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.log.Error("the answer to a diagnosis was not made", "kind", d.Kind, "command", d.CommandID, "err", err)
		x.end(ctx, d, locker.Diagnosed{Outcome: wire.OutcomeFailed, Reason: wire.ReasonDisk})
		return
	}
	err = x.send(ctx, d, file)
	switch {
	case err == nil:
		sum := sha256.Sum256(file)
		x.end(ctx, d, locker.Diagnosed{Outcome: wire.OutcomeDone, Digest: sum[:]})
	case ctx.Err() == nil:
		a.log.Error("the answer to a diagnosis was not sent", "kind", d.Kind, "command", d.CommandID, "err", err)
		x.end(ctx, d, locker.Diagnosed{Outcome: wire.OutcomeFailed, Reason: wire.ReasonNotSent})
	}
}

// send sends an answer, and again while the cloud may take it.
func (x *diagnoser) send(ctx context.Context, d locker.Diagnosis, file []byte) error {
	a := x.agent
	var signature []byte
	if a.key != nil {
		signature = a.key.SignAnswer(d.Upload.Path, sha256.Sum256(file))
	}
	for pause := sendFirstPause; ; pause = min(2*pause, sendLastPause) {
		err := a.cfg.Origin.Send(ctx, d.Upload.Path, file, signature)
		var final *origin.Refusal
		switch {
		case err == nil || errors.As(err, &final):
			return err
		case x.isOver(d):
			return fmt.Errorf("its time is over: %w", err)
		}
		a.log.Warn("the answer to a diagnosis is not sent yet", "kind", d.Kind, "command", d.CommandID, "bytes", len(file), "err", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// end keeps the outcome of a diagnosis; it tries until the store takes it.
func (x *diagnoser) end(ctx context.Context, d locker.Diagnosis, in locker.Diagnosed) {
	in.CommandID = d.CommandID
	for ctx.Err() == nil {
		step, cancel := context.WithTimeout(ctx, stepWait)
		_, err := x.agent.loop.Do(step, in)
		cancel()
		if err == nil {
			x.dropAnswers("")
			return
		}
		x.agent.log.Error("keep the outcome of a diagnosis", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(updateAgain):
		}
	}
}

// answer is the file of a diagnosis: the one that was kept, or a new one that is kept first.
func (x *diagnoser) answer(ctx context.Context, d locker.Diagnosis) ([]byte, error) {
	sum := sha256.Sum256([]byte(d.CommandID))
	name := hex.EncodeToString(sum[:16])
	x.dropAnswers(name)
	dir := filepath.Join(x.agent.cfg.Dir, answerFolder)
	file, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		return file, nil
	}
	switch d.Kind {
	case wire.CmdBoardView:
		file, err = diagnosis.Encode(x.boards(ctx))
	case wire.CmdChannelTest:
		file, err = diagnosis.Encode(x.test(*d.Test))
	default:
		file, err = x.bundle(int(min(d.Upload.Max, diagnosis.MaxBundle)))
	}
	if err != nil {
		return nil, err
	}
	if int64(len(file)) > d.Upload.Max {
		return nil, fmt.Errorf("it has %d bytes; the cloud takes %d", len(file), d.Upload.Max)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return file, wholefile.Replace(filepath.Join(dir, name), file)
}

// dropAnswers removes the answers that are kept, but for one.
func (x *diagnoser) dropAnswers(but string) {
	dir := filepath.Join(x.agent.cfg.Dir, answerFolder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none
	}
	for _, e := range entries {
		if e.Name() == but {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			x.agent.log.Warn("an answer that is not needed any more is not removed", "err", err)
		}
	}
}

// wallNow is the cabinet's time as people read it.
func (x *diagnoser) wallNow() time.Time {
	now := x.agent.Now()
	return time.Unix(0, now.Wall(now.Mono)).UTC()
}

// boards are the boards as they answer now: each is polled once more, unless that takes too
// long.
func (x *diagnoser) boards(ctx context.Context) diagnosis.Boards {
	asked := time.Now()
	for time.Since(asked) < viewWait && ctx.Err() == nil {
		all := true
		for _, v := range x.agent.board.Views() {
			all = all && v.TriedAt.After(asked)
		}
		if all {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return x.boardsNow()
}

// boardsNow are the boards by their newest polls.
func (x *diagnoser) boardsNow() diagnosis.Boards {
	out := diagnosis.Boards{At: x.wallNow(), Boards: []diagnosis.Board{}}
	for _, v := range x.agent.board.Views() {
		out.Boards = append(out.Boards, boardOf(v))
	}
	return out
}

func boardOf(v edge.BoardView) diagnosis.Board {
	ago := func(t time.Time) *int64 {
		if t.IsZero() {
			return nil
		}
		ms := time.Since(t).Milliseconds()
		return &ms
	}
	b := diagnosis.Board{Name: diagnosis.Text(v.Name), Line: diagnosis.Text(v.Line), Family: v.Family, Address: uint(v.Address), State: v.Health.State, Polls: v.Health.Polls, Silent: v.Health.Silent,
		Damaged: v.Health.Bad, Pulses: v.Health.Pulses, AnsweredMS: ago(v.ReadAt), Error: diagnosis.Text(v.Err), ErrorMS: ago(v.ErrAt), Channels: []diagnosis.Channel{}}
	for _, c := range v.Channels {
		b.Channels = append(b.Channels, diagnosis.Channel{Channel: c.Channel, Door: uint(c.Door), Switch: c.Switch, Item: c.Item, State: c.State, Edges: v.Health.Edges[c.Channel]})
	}
	return b
}

// test is the answer to a channel test that is over.
func (x *diagnoser) test(t locker.Test) diagnosis.Test {
	now := x.agent.Now()
	out := diagnosis.Test{At: time.Unix(0, now.Wall(t.At.Mono)).UTC(), OpeningID: diagnosis.Text(t.OpeningID), Door: uint(t.Door), Result: t.Result, Pulses: uint(max(t.Pulses, 0)), DelayMS: t.DelayMS, Closed: t.Closed,
		OpenMS: t.OpenMS, Restarted: t.At.Boot != now.Boot, Moves: []diagnosis.Move{}}
	if out.Restarted {
		out.At = time.Unix(0, t.At.Wall).UTC()
	}
	switch t.Item {
	case wire.ItemPresent:
		out.Item = "present"
	case wire.ItemAbsent:
		out.Item = "absent"
	}
	place, ok := places(x.agent.loop.State().Config)[t.Door]
	if !ok {
		return out
	}
	out.Channel = place.Channel
	for _, v := range x.agent.board.Views() {
		if v.Name == place.Board {
			b := boardOf(v)
			out.Board = &b
		}
	}
	if out.Restarted {
		return out
	}
	begun := time.Now().Add(-time.Duration(now.Mono - t.At.Mono))
	for _, m := range x.agent.board.Moves(place.Board, begun) {
		bit := diagnosis.Switch
		if m.Item {
			bit = diagnosis.Item
		}
		out.Moves = append(out.Moves, diagnosis.Move{AfterMS: max(0, m.At.Sub(begun).Milliseconds()), Channel: m.Channel, Bit: bit, Set: m.Set})
	}
	return out
}

// tokenOf is the secret part of an upload's path.
func tokenOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// version is the agent's version as bundles name it.
func (x *diagnoser) version() string { return cmp.Or(x.agent.cfg.Version, "dev") }

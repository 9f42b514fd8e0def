package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/internal/wholefile"
)

// learnedFile has what was learned of doors, the newest of each, in the data folder.
const learnedFile = "learned.json"

// Learn says what has moved on the boards since staff began to learn how a door is wired; false
// for a door that the layout does not have. It changes nothing. Safe for concurrent use.
func (a *Agent) Learn(door edge.DoorNumber, since time.Time) (l edge.Learned, ok bool) {
	place, ok := places(a.loop.State().Config)[door]
	if !ok {
		return l, false
	}
	l = edge.Learned{Door: door, At: since.UTC(), Layout: edge.Wiring(place), Moves: []edge.LearnedMove{}}
	for _, v := range a.board.Views() {
		for _, c := range v.Channels {
			if v.Name == place.Board && c.Channel == place.Channel {
				l.Switch, l.Item = c.Switch, c.Item
			}
		}
		for _, m := range a.board.Moves(v.Name, since) {
			bit := "switch"
			if m.Item {
				bit = "item"
			}
			l.Moves = append(l.Moves, edge.LearnedMove{AfterMS: m.At.Sub(since).Milliseconds(), Board: v.Name, Channel: m.Channel, Bit: bit, Set: m.Set})
		}
	}
	slices.SortStableFunc(l.Moves, func(x, y edge.LearnedMove) int { return cmp.Compare(x.AfterMS, y.AfterMS) })
	l.Judge()
	return l, true
}

// KeepLearned keeps what was learned of a door for support bundles, in place of what was learned
// of it before. Only the page may call it, one at a time.
func (a *Agent) KeepLearned(l edge.Learned) error {
	all, err := a.learned()
	if err != nil {
		a.log.Warn("what was learned of doors is not read, and begins anew", "err", err)
		all = nil
	}
	all = append(slices.DeleteFunc(all, func(x edge.Learned) bool { return x.Door == l.Door }), l)
	raw, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("keep what was learned of door %d: %w", l.Door, err)
	}
	return wholefile.Replace(filepath.Join(a.cfg.Dir, learnedFile), raw)
}

// learned is what was learned of doors; nothing where none was.
func (a *Agent) learned() (all []edge.Learned, err error) {
	raw, err := os.ReadFile(filepath.Join(a.cfg.Dir, learnedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	return all, err
}

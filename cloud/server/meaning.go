package server

import (
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// meaning asks the locker feature what records mean. Features do not know each
// other; this is where they meet.
type meaning struct{ lockers *locker.Service }

func (m meaning) Begin(v cloud.View, d cloud.Device, received time.Time) device.Work {
	return recordEffects{m.lockers.Begin(v, d, received)}
}

type recordEffects struct{ w *locker.Work }

func (w recordEffects) Record(r device.Record) (string, error) {
	return w.w.Apply(locker.Occurrence{Record: r.Record, OccurredAt: r.OccurredAt, Approximate: r.Approximate, Earliest: r.Earliest, Latest: r.Latest, Present: r.Present})
}
func (w recordEffects) Snapshot(st *wire.Status, at time.Time) error { return w.w.Compare(st, at) }
func (w recordEffects) DoorsFreed(st *wire.Status, at time.Time) error {
	return w.w.DoorsFreed(st, at)
}
func (w recordEffects) StoreLost(at time.Time) error   { return w.w.StoreLost(at) }
func (w recordEffects) Finish(ch *cloud.Changes) error { return w.w.Finish(ch) }

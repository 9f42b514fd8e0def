package store

import (
	"errors"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
)

// writer turns Changes into statements. Conditions come first, so that a
// decision that was overtaken ends before it has written anything.
type writer struct {
	box   *seal.Box
	dev   cloud.DeviceID
	node  string
	owner string // node that new outbox rows are leased to, "" for none
	slots uint64 // of them, a bit each
	ops   []op
}

func (w *writer) add(n need, sql string, args ...any) {
	w.ops = append(w.ops, op{sql: sql, args: args, need: n})
}

func (w *writer) seal(purpose string, plain []byte) any { return sealer{w.box}.seal(purpose, plain) }

// blob is b as it is stored, NULL for nil.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func (w *writer) changes(c *cloud.Changes) error {
	if c.Generation != 0 {
		if w.dev == 0 {
			return errors.New("changes name a session generation but the decision is about no device")
		}
		w.add(probe, sqlHasGeneration, int64(w.dev), c.Generation)
	}
	w.setup(c)
	w.lanes(c)
	w.accounts(c)
	w.oauth(c)
	w.factors(c)
	saveNotifications(w, c)
	saveIdentities(w, c)
	savePlatform(w, c)
	if err := saveRows(w, c); err != nil {
		return err
	}
	w.webhookSettings(c)
	if err := w.devices(c); err != nil {
		return err
	}
	w.lockers(c)
	w.guesses(c)
	if err := w.timelines(c); err != nil {
		return err
	}
	w.orders(c)
	w.interceptions(c)
	w.assignments(c)
	w.thirdParties(c)
	w.routes(c)
	w.places(c)
	w.jobs(c)
	w.approvals(c)
	w.chats(c)
	w.files(c)
	w.outbox(c)
	w.replayJobs(c)
	w.live(c)
	w.pushes(c)
	return nil
}

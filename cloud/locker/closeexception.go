package locker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
)

// CloseException closes an open exception at a compartment of the caller's business by
// word of staff, who looked. An overdue parcel stays one until it is collected, has more
// time or was cleared. Errors: WORK_ITEM_NOT_FOUND, WORK_ITEM_STAYS.
func (s staff) CloseException(ctx context.Context, c cloud.Caller, id cloud.ExceptionID, note string) error {
	now := time.Now().UTC()
	device := cloud.DeviceID(0)
	missing := cloud.E(cloud.NotFound, "WORK_ITEM_NOT_FOUND")
	err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
		e, err := v.Exception(c.Account.BusinessID, id)
		if errors.Is(err, cloud.ErrNotFound) {
			return missing
		}
		device = e.DeviceID
		return err
	})
	if err != nil {
		return err
	}
	return s.cfg.Store.Decide(ctx, device, func(v cloud.View) (*cloud.Changes, error) {
		d, err := owned(v, c, device)
		if err != nil {
			return nil, err
		}
		row, err := v.Exception(c.Account.BusinessID, id)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, d, now)
		e, err := w.exception(row.Source)
		switch {
		case err != nil:
			return nil, err
		case e == nil || e.ID != id || e.Status != "open":
			return nil, missing
		case e.Type == exOverdue:
			return nil, cloud.E(cloud.Conflict, "WORK_ITEM_STAYS")
		}
		e.Status, e.Resolution, e.Note, e.ClosedAt, e.ClosedBy = "dismissed", "no_action", note, now, "staff"
		w.touch(e)
		if err := w.auditStaff(c, "exception_closed", "exception:"+strconv.FormatInt(int64(id), 10), map[string]string{"note": note}); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
}

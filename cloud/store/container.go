package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

var (
	containers      = newRowTable("container", cloud.Container{})
	containerMarks  = newRowTable("container_mark", cloud.ContainerMark{})
	containerEvents = newRowTable("container_event", cloud.ContainerEvent{})
	containerTasks  = newRowTable("container_task", cloud.ContainerTask{})

	containerCaptures = newRowTable("container_capture", cloud.ContainerCapture{})

	sqlContainerByKey = `SELECT ` + containers.list + ` FROM container WHERE business_id = $1 AND key = $2`
	sqlMarksIn        = `SELECT ` + containerMarks.list + ` FROM container_mark WHERE container_id = $1`
	sqlMarksOf        = `SELECT ` + containerMarks.list + ` FROM container_mark WHERE business_id = $1 AND child = $2`
	sqlEventsIn       = `SELECT ` + containerEvents.list + ` FROM container_event WHERE container_id = $1 AND occurred_at >= $2 AND occurred_at <= $3`
	sqlCaptureIn      = `SELECT ` + containerCaptures.list + ` FROM container_capture WHERE container_id = $1 AND event_id = $2`
	sqlContainerTasks = `SELECT ` + containerTasks.list + ` FROM container_task ORDER BY id LIMIT $1`
)

const sqlThingsIn = `SELECT DISTINCT child FROM container_mark WHERE container_id = $1 AND child > $2 ORDER BY child LIMIT $3`

// containerView reads containers.
type containerView struct{ *snapshot }

// rowsAs reads rows of one noun.
func rowsAs[R cloud.Row](v *snapshot, t *rowTable, sql string, args ...any) ([]R, error) {
	return list(v.ctx, v.q, sql, func(r rows, out *R) error {
		var row cloud.Row
		err := t.scan(r, &row)
		if err == nil {
			*out = row.(R)
		}
		return err
	}, args...)
}

// rowAs reads one row of a noun. Error: cloud.ErrNotFound.
func rowAs[R cloud.Row](v *snapshot, t *rowTable, sql string, args ...any) (row R, err error) {
	found, err := rowsAs[R](v, t, sql, args...)
	if err == nil && len(found) == 0 {
		err = cloud.ErrNotFound
	}
	if err != nil {
		return row, err
	}
	return found[0], nil
}

// ContainerByKey implements cloud.ContainerView.
func (v containerView) ContainerByKey(b cloud.BusinessID, key string) (cloud.Container, error) {
	return rowAs[cloud.Container](v.snapshot, containers, sqlContainerByKey, int64(b), key)
}

// CaptureIn implements cloud.ContainerView.
func (v containerView) CaptureIn(id cloud.ContainerID, eventID string) (cloud.ContainerCapture, error) {
	return rowAs[cloud.ContainerCapture](v.snapshot, containerCaptures, sqlCaptureIn, int64(id), eventID)
}

// MarksIn implements cloud.ContainerView.
func (v containerView) MarksIn(id cloud.ContainerID) ([]cloud.ContainerMark, error) {
	return rowsAs[cloud.ContainerMark](v.snapshot, containerMarks, sqlMarksIn, int64(id))
}

// MarksOf implements cloud.ContainerView.
func (v containerView) MarksOf(b cloud.BusinessID, child string) ([]cloud.ContainerMark, error) {
	return rowsAs[cloud.ContainerMark](v.snapshot, containerMarks, sqlMarksOf, int64(b), child)
}

// EventsIn implements cloud.ContainerView.
func (v containerView) EventsIn(id cloud.ContainerID, from, to time.Time) ([]cloud.ContainerEvent, error) {
	return rowsAs[cloud.ContainerEvent](v.snapshot, containerEvents, sqlEventsIn, int64(id), ms(from), ms(to))
}

// ThingsIn implements cloud.ContainerView.
func (v containerView) ThingsIn(id cloud.ContainerID, after string, limit int) ([]string, error) {
	return list(v.ctx, v.q, sqlThingsIn, func(r rows, s *string) error { return r.Scan(s) }, int64(id), after, limit)
}

// ContainerTasks lists the oldest tasks of containers.
func (db timelines) ContainerTasks(ctx context.Context, limit int) (out []cloud.ContainerTask, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		out, err = rowsAs[cloud.ContainerTask](&snapshot{ctx: ctx, q: q}, containerTasks, sqlContainerTasks, limit)
		return err
	})
	return out, err
}

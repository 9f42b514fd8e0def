package tracking

import (
	"cmp"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// through says of an arrival that it is what a container's events are for a thing inside.
type through struct {
	thing cloud.Thing
	// back are events that were withdrawn when the thing seemed to be outside.
	back map[string]bool
	// gone are events that are no longer the thing's.
	gone []cloud.EventRef
}

// subjects are the shipments that the arrival may be about.
func (w *adding) subjects() ([]cloud.Shipment, error) {
	if w.a.through == nil {
		return w.v.ShipmentsBySubject(w.by.BusinessID, w.a.subject)
	}
	sh, err := w.v.ShipmentByID(w.a.through.thing.Shipment)
	if err == nil && sh.OrderID == 0 { // another decision about it is waited for
		sh, err = w.v.ShipmentByNumber(sh.Number)
	}
	switch {
	case isMissing(err) || err == nil && sh.BusinessID != w.by.BusinessID:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []cloud.Shipment{sh}, nil
}

// comesBack makes way for an event that was withdrawn when its thing seemed to be outside.
func (w *adding) comesBack(id string) {
	i, stored := w.place[id]
	if w.a.through == nil || !w.a.through.back[id] || !stored {
		return
	}
	w.stored = slices.Delete(w.stored, i, i+1)
	delete(w.place, id)
	for other, n := range w.place {
		if n > i {
			w.place[other] = n - 1
		}
	}
}

// releases withdraws what is no longer the thing's.
func (w *adding) releases() {
	if w.a.through == nil {
		return
	}
	for _, ref := range w.a.through.gone {
		isMeant := func(e cloud.TimelineEvent) bool { return e.Event.EventID == ref.EventID && e.Event.Via != 0 }
		if _, changed := w.takeBack(isMeant, ref.Reason, ref.CorrectedBy); changed {
			last := &w.ch.Withdrawn[len(w.ch.Withdrawn)-1]
			last.By = cmp.Or(ref.By, w.by.Code)
			w.taken = append(w.taken, IngestWithdrawal{len(w.taken), ref.EventID, outcomeWithdrawn})
		}
	}
}

// openContainer finds the container that the arrival is about, where it is about no shipment: by its identity, else the
// one that an alias names.
func (w *adding) openContainer(named cloud.ContainerID) (bool, error) {
	w.code = codeOTEPNotFound
	if w.a.through != nil || w.a.reviewed != 0 {
		return false, nil
	}
	w.binder = binder{v: w.v, business: w.by.BusinessID, now: w.now.Time, ch: &cloud.Changes{}}
	c, err := containerBySubject(w.v, w.by.BusinessID, w.a.subject)
	if isMissing(err) && named != 0 {
		c, err = cloud.Find(w.v, cloud.Container{Kept: cloud.Kept[cloud.ContainerID]{ID: named, BusinessID: w.by.BusinessID}})
	} else if isMissing(err) {
		if holds, err := w.holdsFresh(); err != nil || !holds {
			return false, err
		}
		c, err = w.freshContainer(w.a.subject.SSCC)
	}
	if err != nil {
		return false, err
	}
	if !c.OfProvider(w.by) {
		w.code = codeForbidden
		return false, nil
	}
	w.code, w.container = "", &c
	return true, w.readContainer()
}

// readContainer reads the container's events.
func (w *adding) readContainer() (err error) {
	c := w.container
	w.shipment = cloud.Shipment{BusinessID: c.BusinessID, Number: c.Identity, Profile: otep.DefaultProfile}
	w.subject, w.fresh, w.place = otep.Subject{TrackingNumber: c.Identity}, map[string]int{}, map[string]int{}
	if w.kept, err = w.v.EventsIn(c.ID, startOfTimes, cloud.EndOfTimes); err != nil {
		return err
	}
	for i, x := range w.kept {
		e, err := x.Decode()
		if err != nil {
			return err
		}
		w.stored, w.place[x.EventID] = append(w.stored, cloud.TimelineEvent{BusinessID: c.BusinessID, Event: e}), i
	}
	return nil
}

// addToContainer is addIn of an arrival that is about a container.
func (w *adding) addToContainer() (out IngestTimeline, _ *cloud.Changes, err error) {
	if err := w.events(); err != nil {
		return out, nil, err
	}
	w.withdrawals()
	b := w.binder
	ch := b.ch
	rows := slices.Clone(w.kept)
	touched := map[string]bool{}
	for _, e := range w.ch.Events {
		text, err := otep.AppendEvent(nil, &e.Event)
		if err != nil {
			return out, nil, err
		}
		id, err := w.v.NewID(cloud.ContainerEventIDs)
		if err != nil {
			return out, nil, err
		}
		x := cloud.ContainerEvent{ContainerID: w.container.ID, EventID: e.Event.EventID, OccurredAt: milliseconds(e.Event.OccurredAt.Time), ProviderID: w.by.ID, Event: text}
		x.Begin(id, w.container.BusinessID, w.now.Time)
		rows, touched[x.EventID] = append(rows, x), true
	}
	for _, ref := range w.ch.Withdrawn {
		i := slices.IndexFunc(rows, func(x cloud.ContainerEvent) bool { return x.EventID == ref.EventID })
		x := &rows[i]
		x.Touch(w.now.Time)
		x.WithdrawnAt, x.Reason, x.WithdrawnBy, x.CorrectedBy, touched[x.EventID] = ref.At, ref.Reason, ref.By, ref.CorrectedBy, true
	}
	for _, x := range slices.Concat(rows[len(w.kept):], rows[:len(w.kept)]) { // what corrects another one is passed on before that is withdrawn
		if !touched[x.EventID] {
			continue
		}
		ch.Rows = append(ch.Rows, x)
		if err := b.task(cloud.Thing{Container: w.container.ID}, cloud.Span{From: x.OccurredAt, To: x.OccurredAt}); err != nil {
			return out, nil, err
		}
	}
	if out = w.answer(w.c.Language); !out.taken() {
		return out, nil, nil
	}
	if len(ch.Rows) > 0 {
		b.turn()
	}
	return out, ch, nil
}

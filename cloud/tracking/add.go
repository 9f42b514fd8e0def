package tracking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// add stores what it can of one arrival and says what became of each event.
func (s *Service) add(ctx context.Context, c cloud.Caller, by cloud.Provider, a arrival) (IngestTimeline, error) {
	if a.refused {
		return a.rejected(c.Language, codeNotConformant), nil
	}
	var out IngestTimeline
	err := decideAgain(ctx, s.store, func(v cloud.View) (ch *cloud.Changes, err error) {
		out, ch, err = s.addIn(v, c, by, a)
		return ch, err
	})
	return out, err
}

// addIn is add inside a decision.
func (s *Service) addIn(v cloud.View, c cloud.Caller, by cloud.Provider, a arrival) (out IngestTimeline, _ *cloud.Changes, _ error) {
	w := adding{s: s, c: c, v: v, by: by, a: a, now: otep.Time{Time: milliseconds(time.Now())}, warnings: slices.Clone(a.warnings), findings: slices.Clone(a.findings)}
	found, err := w.open()
	if err != nil {
		return out, nil, err
	}
	if w.container != nil {
		return w.addToContainer()
	}
	if w.code != "" || !found {
		return w.a.rejected(c.Language, w.code), nil, nil
	}
	if err := errors.Join(w.events(), w.observe()); err != nil {
		return out, nil, err
	}
	w.withdrawals()
	w.releases()
	if err := w.finish(); err != nil {
		return out, nil, err
	}
	w.ch.Join(&w.reviews)
	if out = w.answer(c.Language); !out.taken() && len(w.reviews.Rows) == 0 {
		return out, nil, nil // what is refused leaves nothing behind
	}
	return out, &w.ch, nil
}

// rejected is the answer of an arrival of which nothing is taken.
func (a arrival) rejected(lang, code string) IngestTimeline {
	out := IngestTimeline{Index: a.index, Rejected: len(a.events) + len(a.taken), Events: []IngestEvent{}, Errors: Findings(lang, a.prefix, a.findings),
		Warnings: Findings(lang, a.prefix, a.warnings), code: code}
	for _, e := range a.events {
		out.Events = append(out.Events, IngestEvent{Index: e.index, EventID: e.event.EventID, StatusCode: e.event.StatusCode, Outcome: outcomeRejected})
	}
	for i, x := range a.taken {
		out.Withdrawals = append(out.Withdrawals, IngestWithdrawal{i, x.EventID, outcomeRejected})
	}
	if code == codeOTEPNotFound || code == codeForbidden {
		out.Errors = append(out.Errors, refusal(lang, a.prefix, code))
	}
	return out
}

// adding is one arrival inside its transaction. It is built again when that is
// run again.
type adding struct {
	s        *Service
	c        cloud.Caller
	v        cloud.View
	by       cloud.Provider
	a        arrival
	now      otep.Time
	shipment cloud.Shipment
	subject  otep.Subject
	packages []cloud.PackageNumber // of an order with several
	part     cloud.PackageID       // of these the one that the arrival is about, 0 for the whole shipment
	stored   []cloud.TimelineEvent // of the shipment, with those that are added and those taken back
	recent   cloud.RecentTimeline  // what stored began with; a zero Upto: every event
	place    map[string]int        // in stored, by event id, of the part
	order    *cloud.TrackedOrder   // what became of it; nil: the shipment has none
	fresh    map[string]int        // index of those that are added, by event id
	ch       cloud.Changes
	outcomes []IngestEvent
	taken    []IngestWithdrawal
	findings []otep.Entry
	warnings []otep.Entry
	code     string
	reviews  cloud.Changes // that staff decide
	full     bool          // the timeline takes no more
	conflict bool          // an id is stored with other content
	estimate bool          // nothing else came, and it is stored
	// container is what the arrival is about in place of a shipment, with its events as they are stored.
	container *cloud.Container
	kept      []cloud.ContainerEvent
	binder    binder
}

// open finds the shipment. code says why it may not be added to.
func (w *adding) open() (bool, error) {
	list, err := w.subjects()
	if err != nil {
		return false, err
	}
	isTheirs := func(s cloud.Shipment) bool { return s.OfProvider(w.by) }
	if w.a.reviewed != 0 {
		isTheirs = func(s cloud.Shipment) bool { return s.ID == w.a.reviewed }
	}
	i := slices.IndexFunc(list, isTheirs)
	if len(list) == 0 && w.a.through == nil && w.a.reviewed == 0 {
		if _, err := containerBySubject(w.v, w.by.BusinessID, w.a.subject); !isMissing(err) {
			return w.openContainer(0)
		}
	}
	if i < 0 {
		x, err := findByAlias(w)
		if err == nil && (x.Container != 0 || x.Shipment == 0 && len(list) == 0) {
			return w.openContainer(x.Container)
		}
		if err == nil && x.Shipment != 0 {
			list, err = openThing(w, x)
			i = slices.IndexFunc(list, isTheirs)
		}
		if err != nil {
			return false, err
		}
	}
	if i < 0 {
		w.code = codeForbidden
		return false, nil
	}
	for n := len(list) - 1; n > i; n-- { // of several the newest
		if isTheirs(list[n]) {
			i = n
		}
	}
	w.shipment, w.subject, w.fresh, w.place = list[i], subject(list[i]), map[string]int{}, map[string]int{}
	if w.shipment.OrderID != 0 {
		if err := w.findPart(); err != nil {
			return false, err
		}
	}
	if w.recent, err = w.v.RecentTimeline(w.shipment.ID); err != nil {
		return false, err
	}
	w.setStored(w.recent.Events)
	if w.needsAll() {
		return true, w.readAll()
	}
	return true, nil
}

// setStored has the events of the shipment, and behind them those that are added.
func (w *adding) setStored(rows []cloud.TimelineEvent) {
	w.stored = append(slices.Clip(rows), w.ch.Events...)
	for i, r := range w.stored {
		if r.Package == w.part {
			w.place[r.Event.EventID] = i
		}
	}
}

// needsAll reports whether the arrival is about events that a checkpoint stands for.
func (w *adding) needsAll() bool {
	if w.recent.Upto.IsZero() {
		return false
	}
	return w.a.reviewed != 0 || len(w.a.taken) > 0 || w.a.status != "" && !w.recent.IsBehind(w.statusTime().Time) || slices.ContainsFunc(w.a.events, func(in incoming) bool {
		return in.withdraws || in.event.Corrects != "" || !w.recent.IsBehind(in.event.OccurredAt.Time)
	})
}

// readAll reads the events that a checkpoint stands for, too.
func (w *adding) readAll() error {
	rows, err := w.v.Timeline(w.shipment.ID)
	if err != nil {
		return err
	}
	w.recent.Upto = time.Time{}
	w.setStored(rows)
	return nil
}

// findOlder reads all events if one of the ids is that of an event that a checkpoint stands for.
func (w *adding) findOlder(ids ...string) error {
	if w.recent.Upto.IsZero() {
		return nil
	}
	for _, id := range ids {
		if w.known(id) {
			continue
		}
		_, err := w.v.TimelineEvent(w.shipment.ID, cloud.EventRef{EventID: id, Package: w.part}.Key())
		if isMissing(err) {
			continue
		}
		if err == nil {
			err = w.readAll()
		}
		return err
	}
	return nil
}

// findPart finds out which of several packages of the order the subject names.
func (w *adding) findPart() error {
	list, err := w.v.PackagesOf(w.shipment.BusinessID, w.shipment.OrderID)
	if err != nil || len(list) < 2 {
		return err
	}
	w.packages = list
	if w.a.through != nil {
		w.a.subject = otep.Subject{PackageID: int64(w.a.through.thing.Package)}
		if w.a.through.thing.Package == 0 {
			return nil
		}
	}
	if named, ok := packageOf(list, w.shipment, w.a.subject); ok {
		if number := cloud.NumberKey(w.a.subject.TrackingNumber); slices.ContainsFunc(list, func(x cloud.PackageNumber) bool { return x.Number == number && x.ID != named.ID }) {
			w.code = codeNotConformant
			w.a.findings = append(w.a.findings, otep.Entry{Rule: ruleSubject, Path: "subject.package_id", Message: "package_id and tracking_number name different packages", Event: -1})
			return nil
		}
		w.part = named.ID
		w.subject = partSubject(w.shipment, named)
	}
	return nil
}

// packageOf is the one of several packages of a shipment's order that a subject names, and not the whole.
func packageOf(list []cloud.PackageNumber, s cloud.Shipment, sub otep.Subject) (p cloud.PackageNumber, ok bool) {
	number, external := cloud.NumberKey(sub.TrackingNumber), cloud.NumberKey(sub.ExternalTrackingNumber)
	if i := slices.IndexFunc(list, func(x cloud.PackageNumber) bool { return sub.PackageID == int64(x.ID) }); i >= 0 {
		return list[i], true
	}
	if number != "" && number == cloud.NumberKey(s.Number) || external != "" && external == cloud.NumberKey(s.External) {
		return p, false
	}
	for _, x := range list {
		if number != "" && number == x.Number || external != "" && (external == x.External || external == x.Number) {
			if ok {
				return cloud.PackageNumber{}, false // it is not one parcel there
			}
			p, ok = x, true
		}
	}
	return p, ok
}

// partSubject is a package as timelines name it.
func partSubject(s cloud.Shipment, p cloud.PackageNumber) otep.Subject {
	return s.PackageSubject(p.ID, p.Number, p.External)
}

// idsOf are the ids of packages.
func idsOf(list []cloud.PackageNumber) []cloud.PackageID {
	out := make([]cloud.PackageID, len(list))
	for i, p := range list {
		out[i] = p.ID
	}
	return out
}

// events takes the events in the order in which they happened: what a business
// step means depends on what was before.
func (w *adding) events() error {
	order := slices.Clone(w.a.events)
	slices.SortStableFunc(order, func(a, b incoming) int {
		if a, b := a.event.Corrects != "", b.event.Corrects != ""; a != b { // what is corrected may come with it
			return map[bool]int{true: 1, false: -1}[a]
		}
		return a.event.OccurredAt.Compare(b.event.OccurredAt.Time)
	})
	for _, in := range order {
		var outcome IngestEvent
		switch {
		case in.refused:
			outcome = IngestEvent{EventID: in.event.EventID, StatusCode: in.event.StatusCode, Outcome: outcomeRejected}
		case in.binding != nil:
			var err error
			if outcome, err = (aggregation{w, in}).takeEvent(); err != nil {
				return err
			}
		case in.withdraws:
			outcome = w.withdraw(in)
		default:
			var err error
			if outcome, err = w.event(in); err != nil {
				return err
			}
		}
		outcome.Index = in.index
		w.outcomes = append(w.outcomes, outcome)
	}
	slices.SortStableFunc(w.outcomes, func(a, b IngestEvent) int { return a.Index - b.Index })
	return nil
}

// event takes one event.
func (w *adding) event(in incoming) (out IngestEvent, err error) {
	e := in.event
	if e.StatusCode == "" {
		e.StatusCode = w.status(in)
	}
	w.signed(&e, in.index)
	e = e.Fill(w.shipment.Profile)
	derived := otep.ID(w.subject, e)
	if e.EventID == "" {
		e.EventID = derived
	}
	if err := w.findOlder(e.EventID, derived); err != nil {
		return out, err
	}
	out = IngestEvent{EventID: e.EventID, StatusCode: e.StatusCode, Outcome: outcomeDuplicate}
	w.comesBack(e.EventID)
	if i, ok := w.place[e.EventID]; ok {
		if stored := w.stored[i].Event; !isRepeat(stored, e, in.event.StatusCode != "") {
			if taken, err := w.isTaken(e); err != nil || taken {
				return out, err
			}
			out.Outcome, out.Stored = outcomeConflict, &StoredEvent{stored.StatusCode, stored.OccurredAt}
			w.conflict = true
			w.findings = append(w.findings, otep.Entry{Rule: ruleConflict, Path: fmt.Sprintf("events[%d].event_id", in.index), Args: []string{e.EventID}, Event: in.index,
				Message: fmt.Sprintf("event_id '%s' is stored with other content: '%s' at %s", e.EventID, stored.StatusCode, stored.OccurredAt)})
			_, err = w.review(cloud.ReviewConflict, e, true)
		}
		return out, err
	}
	if derived != e.Corrects && w.known(derived) {
		return out, nil
	}
	kind := w.isStrange(e)
	if kind != "" && e.Corrects != "" { // what takes the place of another event does not wait
		w.findings = append(w.findings, otep.Entry{Rule: "V13", Path: fmt.Sprintf("events[%d].occurred_at", in.index), Message: "occurred_at must be within the last two years and not more than 48 hours ahead", Event: in.index})
		out.Outcome = outcomeRejected
		return out, nil
	}
	if kind != "" {
		r, err := w.review(kind, e, true)
		if out.Outcome = outcomeQuarantined; err == nil && r.Action == actReject {
			out.Outcome = outcomeRejected
			w.findings = append(w.findings, otep.Entry{Rule: ruleReviewed, Path: fmt.Sprintf("events[%d].occurred_at", in.index), Message: "staff of the business have decided not to take this event", Event: in.index})
		}
		return out, err
	}
	switch {
	case !w.takesPlace(e, in.index):
		out.Outcome = outcomeRejected
	case !w.mayAppend(e, in.index):
		out.Outcome, out.Code = outcomeRejected, codeFull
	default:
		w.append(e, in.index)
		if e.Corrects != "" {
			w.takeBack(w.sentAs(e.Corrects), otep.IncorrectData, e.EventID)
		}
		out.Outcome = outcomeAccepted
	}
	return out, nil
}

// takesPlace reports whether an event may take the place of the one that it corrects, if any.
func (w *adding) takesPlace(e otep.Event, index int) bool {
	isThere := func(x cloud.TimelineEvent) bool {
		return (!x.Event.Withdrawn || w.a.reviewed != 0) && w.sentAs(e.Corrects)(x)
	}
	if e.Corrects == "" || e.Corrects != e.EventID && slices.ContainsFunc(w.stored, isThere) {
		return true
	}
	w.findings = append(w.findings, otep.Entry{Rule: ruleUnknownEvent, Path: fmt.Sprintf("events[%d].corrects", index),
		Message: fmt.Sprintf("corrects names no other event that this provider sent, or one that was taken back: '%s'", e.Corrects), Args: []string{e.Corrects}, Event: index})
	return false
}

// sentAs holds for an event that this provider sent with an id.
func (w *adding) sentAs(id string) func(cloud.TimelineEvent) bool {
	return func(e cloud.TimelineEvent) bool { return e.Event.EventID == id && w.isSent(e) }
}

// isSent reports whether this provider sent an event about the same thing, or staff speak of it.
func (w *adding) isSent(e cloud.TimelineEvent) bool {
	sent := w.a.reviewed != 0 || e.Event.Source != nil && e.Event.Source.Provider == w.by.Code
	return sent && (w.part == 0 || e.Package == w.part)
}

// withdrawals takes events back.
func (w *adding) withdrawals() {
	for i, x := range w.a.taken {
		out := IngestWithdrawal{Index: i, EventID: x.EventID, Outcome: outcomeRejected}
		switch e, changed := w.takeBack(w.sentAs(x.EventID), x.Reason, ""); {
		case e == nil:
			w.findings = append(w.findings, otep.Entry{Rule: ruleUnknownEvent, Path: fmt.Sprintf("withdrawals[%d].event_id", i),
				Message: fmt.Sprintf("event_id names no event that this provider sent: '%s'", x.EventID), Args: []string{x.EventID}, Event: -1})
		case changed:
			out.Outcome = outcomeWithdrawn
		default:
			out.Outcome = outcomeDuplicate
		}
		w.taken = append(w.taken, out)
	}
}

// takeBack withdraws the stored event that is meant, nil when there is none. One that was
// taken back before is left as it is.
func (w *adding) takeBack(isMeant func(cloud.TimelineEvent) bool, reason, correctedBy string) (e *otep.Event, changed bool) {
	i := slices.IndexFunc(w.stored, func(e cloud.TimelineEvent) bool { return e.Package == w.part && isMeant(e) })
	if i < 0 { // the order's number may stand for a package's
		i = slices.IndexFunc(w.stored, isMeant)
	}
	if i < 0 {
		return nil, false
	}
	if e = &w.stored[i].Event; e.Withdrawn {
		return e, false
	}
	e.Withdrawn = true
	ref := w.stored[i].Ref()
	ref.At, ref.Reason, ref.By, ref.CorrectedBy = w.now.Time, reason, w.by.Code, correctedBy
	if w.a.reviewed != 0 {
		ref.By = byStaff
	}
	w.ch.Withdrawn = append(w.ch.Withdrawn, ref)
	return e, true
}

// isRepeat reports whether an event that came is a stored one once more: nothing that it says is
// other or new, by whatever source. A code that a business step was read as stays what it was when
// it was stored, and the time at which another system recorded the event is no part of it.
func isRepeat(stored, came otep.Event, coded bool) bool {
	if !coded {
		came.StatusCode, came.StatusURI, came.Phase, came.PhaseURI = stored.StatusCode, stored.StatusURI, stored.Phase, stored.PhaseURI
	}
	var texts [2][]byte
	for i, e := range []otep.Event{stored, came} {
		e.RecordedAt, e.Source, e.StatusLabel = otep.Time{}, nil, ""
		e.OccurredAt.Time = e.OccurredAt.UTC()
		if e.Extensions[projection.RecordTime] != nil {
			e.Extensions = maps.Clone(e.Extensions)
			delete(e.Extensions, projection.RecordTime)
		}
		var err error
		if texts[i], err = otep.AppendEvent(nil, &e); err != nil {
			return false
		}
	}
	if bytes.Equal(texts[0], texts[1]) {
		return true
	}
	var values [2]any
	for i, text := range texts {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return holdsAll(values[0], values[1])
}

// holdsAll reports whether a value of JSON has all that another one says.
func holdsAll(whole, part any) bool {
	members, isObject := part.(map[string]any)
	own, both := whole.(map[string]any)
	if !isObject || !both {
		return reflect.DeepEqual(whole, part)
	}
	for name, v := range members {
		if o, given := own[name]; !given || !holdsAll(o, v) {
			return false
		}
	}
	return true
}

// Bounds of a timeline. Its last events are taken beyond the limit of the service, so that a parcel
// whose sensor talks too much can still be delivered.
const (
	roomForEnds = 50
	ahead       = 48 * time.Hour // that an event may wait for its time
)

// mayAppend reports whether an event can be stored, with a finding where it
// cannot.
func (w *adding) mayAppend(e otep.Event, index int) bool {
	room := w.s.events
	if s, ok := otep.Lookup(e.StatusCode); ok && s.Terminal {
		room += max(roomForEnds, len(w.packages))
	}
	switch {
	case w.recent.Count+len(w.ch.Events) >= room:
		w.full = true
		w.findings = append(w.findings, otep.Entry{Rule: ruleFull, Path: fmt.Sprintf("events[%d]", index), Message: fmt.Sprintf("the timeline has %d events; only one that ends it is taken", w.s.events), Event: index})
	default:
		return true
	}
	return false
}

func (w *adding) append(e otep.Event, index int) {
	w.place[e.EventID] = len(w.stored)
	row := cloud.TimelineEvent{ShipmentID: w.shipment.ID, BusinessID: w.shipment.BusinessID, Package: w.part, Event: e}
	w.stored, w.ch.Events = append(w.stored, row), append(w.ch.Events, row)
	w.fresh[e.EventID] = index
}

// known reports whether an id is stored, taken back or not.
func (w *adding) known(id string) bool {
	_, ok := w.place[id]
	return ok
}

// status is what a business step means at this point of the timeline.
func (w *adding) status(in incoming) otep.Code {
	var reached, out bool
	for _, r := range w.stored {
		if e := r.Event; !e.Withdrawn && !e.OccurredAt.After(in.event.OccurredAt.Time) && (w.part == 0 || r.Package == 0 || r.Package == w.part) {
			out = out || e.StatusCode == otep.OutForDelivery
			reached = reached || e.IsCollected()
		}
	}
	code, _ := projection.Status(in.step, in.disposition, reached, out)
	return code
}

// signed puts the provider's name on an event, with a warning when the event
// named another.
func (w *adding) signed(e *otep.Event, index int) {
	src := otep.Source{}
	if e.Source != nil {
		src = *e.Source
	}
	if src.Type != "" && src.Type != w.by.SourceType {
		w.warn("source.type", index, fmt.Sprintf("source.type '%s' was replaced by '%s'", src.Type, w.by.SourceType))
	}
	if src.Provider != "" && src.Provider != w.by.Code {
		w.warn("source.provider", index, fmt.Sprintf("source.provider '%s' was replaced by '%s'", src.Provider, w.by.Code))
	}
	src.Type, src.Provider = w.by.SourceType, w.by.Code
	e.Source, e.RecordedAt = &src, w.now
}

func (w *adding) warn(member string, index int, message string) {
	w.warnings = append(w.warnings, otep.Entry{Rule: ruleReplaced, Path: fmt.Sprintf("events[%d].%s", index, member), Message: message, Event: index})
}

// withdraw takes back an event that this provider sent. Taking it back again
// changes nothing.
func (w *adding) withdraw(in incoming) IngestEvent {
	out := IngestEvent{EventID: in.event.EventID, Outcome: outcomeRejected}
	e, changed := w.takeBack(func(e cloud.TimelineEvent) bool {
		return w.isSent(e) && (e.Event.EventID == in.event.EventID || projection.IsEventID(in.address, e.Event.EventID))
	}, in.reason, "")
	if e == nil {
		w.findings = append(w.findings, otep.Entry{Rule: ruleUnknownEvent, Path: fmt.Sprintf("events[%d].errorDeclaration", in.index),
			Message: "errorDeclaration names no event that this provider sent", Event: in.index})
		return out
	}
	out = IngestEvent{EventID: e.EventID, StatusCode: e.StatusCode, Outcome: outcomeDuplicate}
	if changed {
		out.Outcome = outcomeWithdrawn
	}
	return out
}

// observe makes an event of a current status that has changed since it was
// last reported (sources that know nothing else).
func (w *adding) observe() error {
	if w.a.status == "" {
		return nil
	}
	code, _, ok := otep.Canonical(w.a.status)
	if _, registered := otep.Lookup(code); !ok || !registered {
		w.findings = append(w.findings, otep.Entry{Rule: "V18", Path: "current_status", Message: fmt.Sprintf("status_code '%s' is not an OTEP status code", w.a.status), Event: -1, Args: []string{w.a.status}})
		return nil
	}
	out := IngestEvent{StatusCode: code, Outcome: outcomeDuplicate}
	last, err := w.v.Observation(w.shipment.ID, w.by.Code)
	if err != nil && !isMissing(err) {
		return err
	}
	if err != nil || last.Code != code {
		e := otep.Event{OccurredAt: w.statusTime(), RecordedAt: w.now, StatusCode: code,
			Source: &otep.Source{Type: w.by.SourceType, Provider: w.by.Code, RawStatus: w.a.status, Synthesized: true}}.Fill(w.shipment.Profile)
		e.EventID = otep.ID(w.subject, e)
		out.EventID = e.EventID
		if err := w.findOlder(e.EventID); err != nil {
			return err
		}
		if !w.known(e.EventID) {
			strange := w.isStrange(e) != ""
			if strange { // a status without an event waits for none
				w.findings = append(w.findings, otep.Entry{Rule: "V13", Path: "last_event_at", Message: "last_event_at must be within the last two years and not more than 48 hours ahead", Event: -1})
			}
			if strange || !w.mayAppend(e, 0) {
				out.Outcome = outcomeRejected
				if !strange {
					out.Code = codeFull
				}
				w.outcomes = append(w.outcomes, out)
				return nil
			}
			w.append(e, 0)
			out.Outcome = outcomeAccepted
		}
		w.ch.Observations = append(w.ch.Observations, cloud.Observation{ShipmentID: w.shipment.ID, Source: w.by.Code, Raw: w.a.status, Code: code, SeenAt: w.now.Time})
	}
	w.outcomes = append(w.outcomes, out)
	return nil
}

// statusTime is when the status of a source that knows no events was reached.
func (w *adding) statusTime() otep.Time {
	if w.a.statusAt.IsZero() {
		return w.now
	}
	return w.a.statusAt
}

// finish keeps in the shipment what came with the arrival, has the order go on, and judges the moves
// that the new events make.
func (w *adding) finish() error {
	before := w.shipment
	if w.a.estimate != "" {
		w.shipment.Estimated = w.a.estimate
		w.estimate = len(w.a.events)+len(w.a.taken) == 0 && w.a.status == ""
	}
	if w.shipment.SSCC == "" && w.part == 0 {
		w.shipment.SSCC = w.a.subject.SSCC
	}
	if w.shipment.PieceID == "" && w.part == 0 {
		w.shipment.PieceID = w.a.subject.PieceID
	}
	if w.s.orders != nil && w.shipment.OrderID != 0 {
		if err := w.followOrder(before); err != nil {
			return err
		}
	}
	ids := idsOf(w.packages)
	t := otep.FoldAt(w.shipment.Profile, w.subject, timeline.OfOrder(w.stored, ids, w.now.Time), w.now.Time)
	if w.order == nil {
		if w.shipment = timeline.Settled(w.shipment, t); w.shipment != before {
			w.ch.Shipments = []cloud.Shipment{w.shipment}
		}
		if err := fanOutParcel(w.s, w.v, w.shipment, w.by.ID, &w.ch, w.now.Time); err != nil {
			return err
		}
	}
	if w.part != 0 {
		t = otep.FoldAt(w.shipment.Profile, w.subject, timeline.OfPackage(w.stored, ids, w.part, w.now.Time), w.now.Time)
	}
	for _, m := range otep.BadMoves(t.Events) {
		index, ok := w.fresh[t.Events[m.Index].EventID]
		if ok {
			w.warnings = append(w.warnings, m.Entry(fmt.Sprintf("events[%d].status_code", index), index))
		}
	}
	return nil
}

// followOrder hands what is new to the order, which writes it.
func (w *adding) followOrder(before cloud.Shipment) error {
	if len(w.ch.Events)+len(w.ch.Withdrawn) == 0 && w.shipment == before {
		return nil
	}
	more, order, err := w.s.orders.FromTracking(w.v, w.c, cloud.TrackingNews{Shipment: w.shipment, By: w.by, Events: w.ch.Events, Withdrawn: w.ch.Withdrawn})
	if isMissing(err) { // a timeline without its order goes on alone
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range order.Reported {
		id := w.ch.Events[i].Event.EventID
		w.stored[w.place[id]].Event.Reported = true
	}
	if err := w.endCustody(); err != nil {
		return err
	}
	for _, i := range order.Contested {
		if _, err := w.review(cloud.ReviewCustody, w.ch.Events[i].Event, false); err != nil {
			return err
		}
	}
	w.order, w.shipment.Current = &order, order.Current
	for i, e := range w.ch.Events {
		if e.Event.StatusCode == otep.Cancelled && !slices.Contains(order.Reported, i) && !order.Status.State().Terminal && e.Event.CountsAt(w.now.Time) {
			if _, err := w.review(cloud.ReviewCancelled, e.Event, false); err != nil {
				return err
			}
		}
	}
	if order.Disagrees {
		i := slices.IndexFunc(w.stored, func(e cloud.TimelineEvent) bool { return e.Event.EventID == w.ch.Withdrawn[0].EventID })
		if _, err := w.review(cloud.ReviewDisagrees, w.stored[i].Event, false); err != nil {
			return err
		}
	}
	observed := w.ch.Observations
	w.ch = *more
	w.ch.Observations = observed
	return nil
}

// endCustody ends reviews about reports that are taken back.
func (w *adding) endCustody() error {
	for _, x := range w.ch.Withdrawn {
		found, err := reviewsLike(w.v, w.shipment.BusinessID, cloud.Review{ShipmentID: x.ShipmentID, PackageID: x.Package, EventID: x.EventID})
		if err != nil {
			return err
		}
		for _, r := range found {
			if r.Kind == cloud.ReviewCustody && r.Status == cloud.ReviewOpen {
				r.Touch(w.now.Time)
				r.Status = cloud.ReviewEnded
				w.reviews.Rows = append(w.reviews.Rows, r)
			}
		}
	}
	return nil
}

func (w *adding) answer(lang string) IngestTimeline {
	out := IngestTimeline{Index: w.a.index, Number: &w.shipment.Number, Events: w.outcomes, Withdrawals: w.taken, Errors: Findings(lang, w.a.prefix, w.findings),
		Warnings: Findings(lang, w.a.prefix, w.warnings)}
	if out.Events == nil {
		out.Events = []IngestEvent{}
	}
	if w.estimate {
		out.Estimate = "stored"
	}
	switch {
	case w.full:
		out.code = codeFull
	case w.conflict:
		out.code = codeConflict
	}
	if w.shipment.Current != "" {
		out.Current = &w.shipment.Current
	}
	if o := w.order; o != nil {
		out.Order = &IngestOrder{o.OrderID, o.Status, o.Moved, cloud.OrNull(string(o.Reason))}
	}
	for _, x := range w.taken {
		switch x.Outcome {
		case outcomeDuplicate:
			out.Duplicates++
		case outcomeWithdrawn:
			out.Withdrawn++
		default:
			out.Rejected++
		}
	}
	for _, e := range out.Events {
		switch e.Outcome {
		case outcomeAccepted:
			out.Accepted++
		case outcomeDuplicate:
			out.Duplicates++
		case outcomeWithdrawn:
			out.Withdrawn++
		case outcomeConflict:
			out.Conflicts++
		case outcomeQuarantined:
			out.Quarantined++
		default:
			out.Rejected++
		}
	}
	return out
}

// Findings of ingest that no rule of the protocol has.
const (
	ruleReplaced     = "I01"
	ruleUnknownEvent = "I02"
	ruleEPCIS        = "I03"
	ruleFull         = "I04"
	ruleConflict     = "I05"
	ruleReviewed     = "I06"
	ruleSubject      = "I07"
	ruleChildren     = "I08"
	ruleBinding      = "I09"
	ruleAlias        = "I10"
)

// refusal is the finding of a parcel that may not be added to.
func refusal(lang, prefix, code string) Finding {
	path := strings.TrimSuffix(prefix, ".")
	if path == "" {
		path = "$"
	}
	return Finding{Path: path, Message: refusals[code], Code: code, Hint: locale.Error(lang, code)}
}

var refusals = map[string]string{
	codeOTEPNotFound: "no shipment has this subject",
	codeForbidden:    "the shipment is not handed to this provider",
}

package tracking

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// aggregation takes one aggregation event of EPCIS about a container.
type aggregation struct {
	w  *adding
	in incoming
}

// takeEvent does what the event says of its children, and takes it as one of its parent where it has a status: both or
// nothing.
func (a aggregation) takeEvent() (out IngestEvent, err error) {
	w, in := a.w, a.in
	out = IngestEvent{EventID: in.event.EventID, StatusCode: in.event.StatusCode, Outcome: outcomeRejected}
	isStep := !in.withdraws && (in.event.StatusCode != "" || w.status(in) != "")
	switch {
	case w.container == nil && in.withdraws:
		return w.withdraw(in), nil
	case w.container == nil && isStep:
		w.warnings = append(w.warnings, a.finding(ruleBinding, "parentID", notContainer))
		return w.event(in)
	case w.container == nil:
		return a.refuse(out, "parentID", codeContainerMissing, notContainer), nil
	case in.withdraws:
		return a.withdraw(out)
	}
	kept, err := w.v.CaptureIn(w.container.ID, in.event.EventID)
	if isMissing(err) {
		kept, err = a.pending(), nil
	}
	if err != nil {
		return out, err
	}
	content := a.content()
	switch isKnown := kept.ID != 0; {
	case isKnown && kept.Content != content:
		w.conflict, out.Outcome = true, outcomeConflict
		x := a.finding(ruleConflict, "eventID", fmt.Sprintf("eventID '%s' is stored with other children, another action or at another time", in.event.EventID))
		x.Args = []string{in.event.EventID}
		w.findings = append(w.findings, x)
		return out, nil
	case isKnown:
		out.Outcome = outcomeDuplicate
	case w.isStrange(in.event) != "":
		w.findings = append(w.findings, a.finding("V13", "eventTime", "eventTime must be within the last two years and not more than 48 hours ahead"))
		return out, nil
	default:
		out.Outcome = outcomeAccepted
	}
	made := 0
	before := len(w.binder.ch.Rows)
	if kept.WithdrawnAt.IsZero() {
		made, err = a.bind(&kept, content)
	}
	var refused *cloud.Error
	if errors.As(err, &refused) {
		w.binder.ch.Rows = w.binder.ch.Rows[:before]
		return a.refuse(out, "childEPCs", refused.Code, bindingFaults[refused.Code]), nil
	}
	if err != nil {
		return out, err
	}
	if isStep {
		step, err := w.event(in)
		if err != nil {
			return out, err
		}
		if step.Outcome != outcomeAccepted && step.Outcome != outcomeDuplicate {
			w.binder.ch.Rows = w.binder.ch.Rows[:before]
			return step, nil
		}
		out = step
	}
	out.Bindings = &made
	return out, nil
}

// bind does what the event says of its children, and keeps that it came.
func (a aggregation) bind(kept *cloud.ContainerCapture, content string) (int, error) {
	w, b := a.w, a.w.binder
	if kept.ID == 0 {
		id, err := w.v.NewID(cloud.ContainerCaptureIDs)
		if err != nil {
			return 0, err
		}
		*kept = cloud.ContainerCapture{ContainerID: w.container.ID, EventID: a.in.event.EventID, OccurredAt: milliseconds(a.in.event.OccurredAt.Time), ProviderID: w.by.ID, Content: content}
		kept.Begin(id, w.container.BusinessID, w.now.Time)
		b.ch.Rows = append(b.ch.Rows, *kept)
	}
	b.cause = kept.Cause()
	at := a.in.event.OccurredAt.Time
	if a.in.binding.All {
		return b.empty(*w.container, at)
	}
	things, missing, err := w.children(a.in.binding.Children, a.in.binding.Inside, at)
	if err != nil {
		return 0, err
	}
	if missing > 0 {
		x := a.finding(ruleChildren, "childEPCs", fmt.Sprintf("%d of the children are no parcels, orders or containers of this provider", missing))
		x.Args = []string{fmt.Sprint(missing)}
		w.warnings = append(w.warnings, x)
	}
	return b.mark(*w.container, things, a.in.binding.Inside, at)
}

// withdraw undoes what a declared event did.
func (a aggregation) withdraw(out IngestEvent) (IngestEvent, error) {
	w, in := a.w, a.in
	kept, err := w.v.CaptureIn(w.container.ID, in.event.EventID)
	if isMissing(err) {
		kept, err = a.pending(), nil
	}
	if err != nil {
		return out, err
	}
	if kept.ID == 0 || kept.ProviderID != w.by.ID {
		return w.withdraw(in), nil
	}
	if out.Outcome = outcomeDuplicate; !kept.WithdrawnAt.IsZero() {
		return out, nil
	}
	b := w.binder
	b.cause = kept.Cause()
	undone, err := b.undo(*w.container)
	var refused *cloud.Error
	if errors.As(err, &refused) {
		return a.refuse(out, "errorDeclaration", refused.Code, bindingFaults[refused.Code]), nil
	}
	if err != nil {
		return out, err
	}
	kept.WithdrawnAt, kept.Reason = w.now.Time, in.reason
	kept.Touch(w.now.Time)
	isIt := func(r cloud.Row) bool { x, ok := r.(cloud.ContainerCapture); return ok && x.ID == kept.ID }
	b.ch.Rows = append(slices.DeleteFunc(b.ch.Rows, isIt), kept)
	if e, _ := w.takeBack(w.sentAs(kept.EventID), in.reason, ""); e != nil {
		out.StatusCode = e.StatusCode
	}
	out.Outcome, out.Bindings = outcomeWithdrawn, &undone
	return out, nil
}

// pending is the event as the same decision has it, zero without one.
func (a aggregation) pending() (found cloud.ContainerCapture) {
	for _, r := range a.w.binder.ch.Rows {
		if x, ok := r.(cloud.ContainerCapture); ok && x.EventID == a.in.event.EventID {
			found = x
		}
	}
	return found
}

// content is a digest of what the event does.
func (a aggregation) content() string {
	var children []string
	for _, sub := range a.in.binding.Children {
		children = append(children, sub.IdentityKey())
	}
	slices.Sort(children)
	text := fmt.Sprint(a.in.binding.Inside, " ", a.in.binding.All, " ", a.in.event.OccurredAt.UnixMilli(), "\n", strings.Join(slices.Compact(children), "\n"))
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// maxBound is how many things one event puts into a container, as one call does.
const maxBound = 1000

const notContainer = "parentID names a parcel or an order; only a container holds things"

// bindingFaults say why things cannot be in a container.
var bindingFaults = map[string]string{
	codeContainerCycle: "a container cannot be inside itself",
	codeContainerDeep:  fmt.Sprintf("at most %d containers are one inside the other", cloud.MaxContainerDepth),
	codeContainerFull:  fmt.Sprintf("a container holds at most %d things at a time", cloud.MaxContainerChildren),
}

func (a aggregation) finding(rule, member, message string) otep.Entry {
	return otep.Entry{Rule: rule, Path: fmt.Sprintf("eventList[%d].%s", a.in.index, member), Message: message, Event: a.in.index}
}

// refuse is the outcome of an event that can bind nothing.
func (a aggregation) refuse(out IngestEvent, member, code, message string) IngestEvent {
	a.w.findings = append(a.w.findings, a.finding(ruleBinding, member, message))
	out.Outcome, out.Code = outcomeRejected, code
	return out
}

// children are the things of the provider that subjects name, each once, and how many name none. An SSCC into which the
// same document puts things becomes a container where isFresh says so.
func (w *adding) children(list []otep.Subject, isFresh bool, at time.Time) (out []cloud.Thing, missing int, err error) {
	seen := map[cloud.Thing]bool{}
	book := aliasBook{w.v, w.by.BusinessID, w.now.Time}
	for _, sub := range list {
		x, ok, err := thingBySubject(w.v, w.c, w.by.BusinessID, sub)
		if err == nil && !ok {
			var spans []aliasSpan
			if spans, err = book.spans(sub, ""); err == nil {
				x, err = book.thingAt(w.c, spans, at)
				ok = x != (cloud.Thing{})
			}
		}
		if err == nil && !ok && isFresh && w.a.parents[sub.SSCC] {
			x, ok, err = w.freshChild(sub)
		}
		switch {
		case err != nil:
			return nil, 0, err
		case !ok:
			missing++
		case !seen[x]:
			seen[x] = true
			out = append(out, x)
		}
	}
	return out, missing, nil
}

// freshChild makes the container that an SSCC names; ok is false where it names another thing.
func (w *adding) freshChild(sub otep.Subject) (x cloud.Thing, ok bool, err error) {
	found, err := w.v.ShipmentsBySubject(w.by.BusinessID, sub)
	if err != nil || len(found) > 0 || !otep.IsSSCC(sub.SSCC) {
		return x, false, err
	}
	if _, err := containerBySubject(w.v, w.by.BusinessID, sub); !isMissing(err) {
		return x, false, err
	}
	for _, r := range w.binder.ch.Rows {
		if c, ok := r.(cloud.Container); ok && c.Key == sub.SSCC {
			return cloud.Thing{Container: c.ID}, true, nil
		}
	}
	c, err := w.freshContainer(sub.SSCC)
	return cloud.Thing{Container: c.ID}, err == nil, err
}

// holdsFresh reports whether the arrival makes its parent a container: its SSCC is of none, and things of the
// provider are put into it or taken out.
func (w *adding) holdsFresh() (bool, error) {
	if !otep.IsSSCC(w.a.subject.SSCC) {
		return false, nil
	}
	for _, in := range w.a.events {
		if in.binding == nil || in.withdraws || in.refused {
			continue
		}
		for _, sub := range in.binding.Children {
			if w.a.parents[sub.SSCC] && sub.SSCC != w.a.subject.SSCC {
				return true, nil
			}
			if _, ok, err := thingBySubject(w.v, w.c, w.by.BusinessID, sub); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// freshContainer makes a pallet of the provider.
func (w *adding) freshContainer(sscc string) (c cloud.Container, err error) {
	id, err := w.v.NewID(cloud.ContainerIDs)
	if err != nil {
		return c, err
	}
	c = cloud.Container{Kind: "pallet", Scheme: "sscc", Identity: sscc, Key: containerKey(sscc), ProviderID: w.by.ID}
	c.Begin(id, w.by.BusinessID, w.now.Time)
	w.binder.ch.Rows = append(w.binder.ch.Rows, c)
	return c, nil
}

package tracking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// IngestEPCIS adds what an EPCIS document tells of parcels. Each ObjectEvent
// gives one event per EPC, each AggregationEvent one of its parent, and puts its children into the parent or takes them
// out; others are skipped with the reason. Errors: those of
// Ingest.
func (s *Service) IngestEPCIS(ctx context.Context, c cloud.Caller, in IngestInput) (IngestOutput, error) {
	by, err := source(c)
	if err != nil {
		return IngestOutput{}, err
	}
	if len(in.Body) > otep.MaxIngestBytes {
		return IngestOutput{}, tooLarge("$")
	}
	captured, count, err := projection.ReadEPCIS(in.Body)
	switch {
	case errors.Is(err, projection.ErrNoEvents):
		return IngestOutput{}, invalid("epcisBody", "Send an EPCISDocument, one event or a list of events.")
	case err != nil:
		return IngestOutput{}, notJSON(err)
	}
	things := 0
	for _, x := range captured {
		if x.Binding != nil {
			things += len(x.Binding.Children)
		}
	}
	if count > otep.MaxEvents || len(captured) > otep.MaxEvents || things > cloud.MaxContainerChildren {
		return IngestOutput{}, tooLarge("epcisBody.eventList")
	}
	list, skipped, faults, err := sorted(captured, time.Now())
	if err != nil {
		return IngestOutput{}, err
	}
	out, err := s.storeArrivals(ctx, c, by, list)
	if err != nil {
		return IngestOutput{}, err
	}
	out.Skipped = skipped
	if len(faults.events) > 0 {
		faults.index = len(out.Timelines)
		t := faults.rejected(c.Language, codeNotConformant)
		out.Timelines, out.Rejected = append(out.Timelines, t), out.Rejected+t.Rejected
	}
	return out, ingestAnswer(out, len(out.Timelines) != 1)
}

// sorted gathers what a document says by parcel. faults is what could not be
// read and belongs to none.
func sorted(captured []projection.Captured, now time.Time) (list []arrival, skipped []Skipped, faults arrival, err error) {
	place, parents := map[string]int{}, map[string]bool{}
	for _, c := range captured {
		if c.Binding != nil && len(c.Binding.Children) > maxBound {
			c.Fault = &projection.Fault{Path: "childEPCs", Message: fmt.Sprintf("childEPCs names %d parcels and containers; send at most %d in one event", len(c.Binding.Children), maxBound)}
		}
		if c.Fault == nil && c.Binding != nil && c.Binding.Inside && !c.Withdraws && c.Subject.SSCC != "" {
			parents[c.Subject.SSCC] = true
		}
		if c.Fault == nil && c.Skipped == "" && c.Code == "" && !c.Withdraws && c.Binding == nil {
			if _, ok := projection.Status(c.Step, c.Disposition, false, false); !ok {
				c.Skipped = fmt.Sprintf("bizStep %q with disposition %q has no status code", c.Step, c.Disposition)
			}
		}
		switch {
		case c.Skipped != "":
			if n := len(skipped); n == 0 || skipped[n-1].Index != c.Index { // once for all of its parcels
				skipped = append(skipped, Skipped{c.Index, c.Skipped})
			}
		case c.Fault != nil:
			faults.fault(c.Index, c.Fault.Path, c.Fault.Message)
			faults.events = append(faults.events, incoming{index: c.Index, refused: true})
		default:
			key := c.Subject.IdentityKey() + "\n" + c.EPC
			i, ok := place[key]
			if !ok {
				i = len(list)
				place[key] = i
				list = append(list, arrival{index: i, subject: c.Subject, epc: c.EPC, isEPCIS: true, profile: otep.DefaultProfile, parents: parents})
			}
			list[i].capture(c)
		}
	}
	for i := range list {
		if err := list[i].validate(now); err != nil {
			return nil, nil, faults, err
		}
	}
	return list, skipped, faults, nil
}

func (a *arrival) fault(index int, path, message string) {
	at := fmt.Sprintf("eventList[%d]", index)
	if path != "" {
		at += "." + path
	}
	a.findings = append(a.findings, otep.Entry{Rule: ruleEPCIS, Path: at, Message: message, Event: index})
}

func (a *arrival) refuse(i int, path, message string) {
	a.events[i].refused = true
	a.fault(a.events[i].index, path, message)
}

// capture takes one event. Its status code stays empty when step and
// disposition have to tell it.
func (a *arrival) capture(c projection.Captured) {
	in := incoming{index: c.Index, event: c.Event, step: c.Step, disposition: c.Disposition, withdraws: c.Withdraws, reason: c.Reason, address: c.EventID, binding: c.Binding}
	in.event.StatusCode = otep.Code(c.Code)
	for _, n := range c.Notes {
		a.warnings = append(a.warnings, otep.Entry{Rule: ruleEPCIS, Path: fmt.Sprintf("eventList[%d]", c.Index), Message: n, Event: c.Index})
	}
	a.events = append(a.events, in)
}

// validate holds what was captured to the rules that native events are held to.
func (a *arrival) validate(now time.Time) error {
	var events []otep.Event
	var at []int // where each stands
	for i, in := range a.events {
		if in.withdraws {
			continue
		}
		e := in.event
		if e.StatusCode == "" {
			e.StatusCode = otep.InTransit // any known one: it is found when the timeline is
		}
		events, at = append(events, e), append(at, i)
	}
	read, report, err := otep.Check(a.subject, events, now)
	if err != nil {
		return fmt.Errorf("check captured events: %w", err)
	}
	for i, e := range read {
		in := &a.events[at[i]]
		if in.event.StatusCode == "" {
			e.StatusCode, e.Phase = "", ""
		}
		in.event = e
	}
	for _, f := range report.Warnings {
		if f.Rule == "V38" && strings.HasSuffix(f.Path, ".event_id") {
			f.Event = a.events[at[f.Event]].index
			f.Path = fmt.Sprintf("eventList[%d].eventID", f.Event)
			a.warnings = append(a.warnings, f)
		}
	}
	for _, f := range report.Errors {
		switch {
		case f.Event < 0: // the subject, and with it all of them
			for i := range a.events {
				a.refuse(i, f.Path, f.Message)
			}
		case f.Rule != "V34": // the same id twice in a document is a repeat like any other
			a.refuse(at[f.Event], strings.TrimPrefix(f.Path, fmt.Sprintf("events[%d].", f.Event)), f.Message)
		}
	}
	return nil
}

func isMissing(err error) bool { return errors.Is(err, cloud.ErrNotFound) }

package tracking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// IngestEPCIS adds what an EPCIS document tells of parcels. Each ObjectEvent
// gives one event per EPC; others are skipped with the reason. Errors: those of
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
		return IngestOutput{}, cloud.E(cloud.Malformed, codeInvalidJSON)
	}
	if count > otep.MaxEvents || len(captured) > otep.MaxEvents {
		return IngestOutput{}, tooLarge("epcisBody.eventList")
	}
	list, skipped, faults, err := sorted(captured, time.Now())
	if err != nil {
		return IngestOutput{}, err
	}
	out, err := s.take(ctx, c, by, list)
	if err != nil {
		return IngestOutput{}, err
	}
	out.Skipped = skipped
	if len(faults.events) > 0 {
		faults.index = len(out.Timelines)
		t := faults.rejected(c.Language, codeNotConformant)
		out.Timelines, out.Rejected = append(out.Timelines, t), out.Rejected+t.Rejected
	}
	return out, verdict(out, len(out.Timelines) != 1)
}

// sorted gathers what a document says by parcel. faults is what could not be
// read and belongs to none.
func sorted(captured []projection.Captured, now time.Time) (list []arrival, skipped []Skipped, faults arrival, err error) {
	place := map[string]int{}
	for _, c := range captured {
		if c.Fault == nil && c.Skipped == "" && c.Code == "" && !c.Withdraws {
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
			key := c.Subject.IdentityKey()
			i, ok := place[key]
			if !ok {
				i = len(list)
				place[key] = i
				list = append(list, arrival{index: i, subject: c.Subject, profile: otep.DefaultProfile})
			}
			if err := list[i].capture(c, now); err != nil {
				return nil, nil, faults, err
			}
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

// capture takes one event, held to the same rules as a native one.
func (a *arrival) capture(c projection.Captured, now time.Time) error {
	in := incoming{index: c.Index, event: c.Event, step: c.Step, disposition: c.Disposition, withdraws: c.Withdraws, address: c.EventID}
	for _, n := range c.Notes {
		a.warnings = append(a.warnings, otep.Entry{Rule: ruleEPCIS, Path: fmt.Sprintf("eventList[%d]", c.Index), Message: n, Event: c.Index})
	}
	if c.Withdraws {
		a.events = append(a.events, in)
		return nil
	}
	e := c.Event
	e.StatusCode = otep.Code(c.Code)
	if c.Code == "" {
		e.StatusCode = otep.InTransit // any known one: it is found when the timeline is
	}
	if what := e.OverLimit(); what != "" {
		return tooLarge(fmt.Sprintf("eventList[%d].%s", c.Index, what))
	}
	read, report, err := judge(a.subject, e, now)
	if err != nil {
		return err
	}
	for _, f := range report.Tolerant().Errors {
		in.refused = true
		a.fault(c.Index, f.Path, f.Message)
	}
	in.event = read
	if c.Code == "" {
		in.event.StatusCode, in.event.Phase = "", ""
	}
	a.events = append(a.events, in)
	return nil
}

// judge reads one event as the validator does.
func judge(s otep.Subject, e otep.Event, now time.Time) (otep.Event, otep.Report, error) {
	type bare struct {
		otep.Event
		RecordedAt *otep.Time `json:"recorded_at,omitempty"`
		Version    *string    `json:"otep_version,omitempty"`
		EventID    *string    `json:"event_id,omitempty"`
		Phase      *string    `json:"phase,omitempty"`
	}
	b := bare{Event: e}
	if e.EventID != "" {
		b.EventID = &e.EventID
	}
	if e.Phase != "" {
		b.Phase = &e.Phase
	}
	raw, err := json.Marshal(map[string]any{"otep_version": otep.Version, "profile": otep.DefaultProfile, "subject": s, "events": []bare{b}})
	if err != nil {
		return e, otep.Report{}, fmt.Errorf("encode event: %w", err)
	}
	t, report, err := otep.Read(raw, now)
	switch {
	case errors.Is(err, otep.ErrTooLarge):
		return e, report, tooLarge(err.Error())
	case err != nil:
		return e, report, cloud.E(cloud.Malformed, codeInvalidJSON)
	case len(t.Events) == 1:
		e = t.Events[0]
	}
	return e, report, nil
}

func isMissing(err error) bool { return errors.Is(err, cloud.ErrNotFound) }

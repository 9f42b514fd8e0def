package tracking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// IngestInput is what a partner sends: one timeline, or an object with a list
// of them as timelines.
type IngestInput struct {
	Body []byte `body:"raw"`
}

// IngestOutput says what became of every event.
type IngestOutput struct {
	Result     bool `json:"result"`
	Accepted   int  `json:"accepted"`
	Duplicates int  `json:"duplicates"`
	Rejected   int  `json:"rejected"`
	Conflicts  int  `json:"conflicts,omitempty"` // ids that are stored with other content
	// Quarantined events wait for a decision of staff, since they lie far ahead or back.
	Quarantined int              `json:"quarantined,omitempty"`
	Withdrawn   int              `json:"withdrawn,omitempty"` // by an error declaration
	Timelines   []IngestTimeline `json:"timelines"`
	Skipped     []Skipped        `json:"skipped,omitempty"`
}

// IngestTimeline is what became of one timeline.
type IngestTimeline struct {
	Index      int     `json:"index"`
	Number     *string `json:"tracking_number"` // of the shipment; null when there is none
	Accepted   int     `json:"accepted"`
	Duplicates int     `json:"duplicates"`
	Rejected   int     `json:"rejected"`
	Conflicts  int     `json:"conflicts,omitempty"`
	// Quarantined events wait for a decision of staff.
	Quarantined int           `json:"quarantined,omitempty"`
	Withdrawn   int           `json:"withdrawn,omitempty"`
	Current     *otep.Code    `json:"current_status"`
	Estimate    string        `json:"estimate,omitempty"` // stored: it came without events
	Events      []IngestEvent `json:"events"`
	// Order is what became of the order that the shipment is of; absent without one.
	Order *IngestOrder `json:"order,omitempty"`
	// Withdrawals say what became of those of the timeline.
	Withdrawals []IngestWithdrawal `json:"withdrawals,omitempty"`
	Errors      []Finding          `json:"errors"`
	Warnings    []Finding          `json:"warnings"`

	code string // why nothing of it could be taken
}

// taken reports whether anything of the timeline was taken, or had been before.
func (t IngestTimeline) taken() bool {
	return t.Accepted+t.Duplicates+t.Withdrawn+t.Quarantined > 0 || t.Estimate != ""
}

// IngestOrder is what became of an order.
type IngestOrder struct {
	OrderID cloud.OrderID     `json:"order_id"`
	Status  cloud.OrderStatus `json:"order_status"`
	Moved   bool              `json:"moved"`
	// Reason is why it has not moved: late, custody, terminal, held, intercepted or no_rule; null where it moved, or is where the events lead.
	Reason *string `json:"reason"`
}

// IngestEvent is what became of one event.
type IngestEvent struct {
	Index      int       `json:"index"`
	EventID    string    `json:"event_id,omitempty"`
	StatusCode otep.Code `json:"status_code,omitempty"`
	Outcome    string    `json:"outcome"`
	// Bindings are how many things an AggregationEvent put into its container or took out, or how many of these its
	// error declaration undid.
	Bindings *int `json:"bindings,omitempty"`
	// Code is OTEP_TIMELINE_FULL of an event that was rejected since the timeline takes no more, CONTAINER_CYCLE,
	// CONTAINER_TOO_DEEP, CONTAINER_FULL or CONTAINER_NOT_FOUND of one that can bind nothing.
	Code string `json:"code,omitempty"`
	// Stored is what a conflict's id stands for.
	Stored *StoredEvent `json:"stored,omitempty"`
}

// IngestWithdrawal is what became of one withdrawal.
type IngestWithdrawal struct {
	Index   int    `json:"index"`
	EventID string `json:"event_id"`
	Outcome string `json:"outcome"` // withdrawn, duplicate or rejected
}

// StoredEvent is an event of a timeline in short.
type StoredEvent struct {
	StatusCode otep.Code `json:"status_code"`
	OccurredAt otep.Time `json:"occurred_at"`
}

// Outcomes of an event.
const (
	outcomeAccepted  = "accepted"
	outcomeDuplicate = "duplicate"
	outcomeConflict  = "conflict"
	// outcomeQuarantined is of an event that waits for a decision of staff.
	outcomeQuarantined = "quarantined"
	outcomeRejected    = "rejected"
	outcomeWithdrawn   = "withdrawn"
)

// Skipped is an event that says nothing here.
type Skipped struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// source is who sends.
func source(c cloud.Caller) (cloud.Provider, error) {
	switch {
	case c.Anonymous():
		return cloud.Provider{}, cloud.E(cloud.Unauthenticated, codeCredentials)
	case c.Account.Type != cloud.ProviderType || c.Provider.ID == 0:
		return cloud.Provider{}, cloud.E(cloud.Forbidden, codeForbidden)
	}
	return c.Provider, nil
}

// Ingest adds a provider's events to the timelines of their parcels. It may be
// repeated. Errors: OTEP_CREDENTIALS_REQUIRED, OTEP_PROVIDER_FORBIDDEN,
// OTEP_INVALID_JSON, OTEP_INVALID_REQUEST, OTEP_PAYLOAD_TOO_LARGE,
// OTEP_TRACKING_NOT_FOUND of a single timeline, OTEP_EVENT_CONFLICT,
// OTEP_TIMELINE_FULL or OTEP_NOT_CONFORMANT when nothing could be stored.
func (s *Service) Ingest(ctx context.Context, c cloud.Caller, in IngestInput) (IngestOutput, error) {
	by, err := source(c)
	if err != nil {
		return IngestOutput{}, err
	}
	if len(in.Body) > otep.MaxIngestBytes {
		return IngestOutput{}, tooLarge("$")
	}
	bodies, isList, err := timelines(in.Body)
	if err != nil {
		return IngestOutput{}, err
	}
	now := time.Now()
	list := make([]arrival, len(bodies))
	events := 0
	for i, body := range bodies {
		if list[i], err = read(body, i, isList, now); err != nil {
			var at *otep.JSONError
			if errors.As(err, &at) { // of equal timelines the first has it, too
				return IngestOutput{}, notJSON(at.In(in.Body, max(bytes.Index(in.Body, body), 0)))
			}
			return IngestOutput{}, err
		}
		if events += len(list[i].events) + len(list[i].taken); events > otep.MaxEvents {
			return IngestOutput{}, tooLarge("events")
		}
	}
	out, err := s.storeArrivals(ctx, c, by, list)
	if err != nil {
		return IngestOutput{}, err
	}
	return out, ingestAnswer(out, isList)
}

// timelines splits a body into its timelines.
func timelines(body []byte) (list []json.RawMessage, isList bool, err error) {
	if err := otep.CheckJSON(body); err != nil {
		return nil, false, notJSON(err)
	}
	var d struct {
		Timelines json.RawMessage `json:"timelines"`
	}
	if json.Unmarshal(body, &d) != nil || d.Timelines == nil {
		return []json.RawMessage{body}, false, nil
	}
	if json.Unmarshal(d.Timelines, &list) != nil || len(list) == 0 {
		return nil, true, invalid("timelines", "Give a list of 1 to 100 timelines.")
	}
	if len(list) > otep.MaxIngestTimelines {
		return nil, true, tooLarge("timelines")
	}
	return list, true, nil
}

// notJSON is the error of a body that is no JSON, with the place of what is wrong.
func notJSON(err error) error {
	out := &cloud.Error{Kind: cloud.Malformed, Code: codeInvalidJSON}
	var at *otep.JSONError
	if errors.As(err, &at) {
		out.Details = map[string]any{"offset": at.Offset, "line": at.Line, "column": at.Column, "problem": at.Problem}
	}
	return out
}

// arrival is a timeline on its way in.
type arrival struct {
	index    int
	prefix   string // before the paths of findings
	subject  otep.Subject
	epc      string // by which EPCIS names the subject
	isEPCIS  bool
	profile  string
	estimate string
	events   []incoming
	taken    []otep.Withdrawal // back
	findings []otep.Entry      // errors
	warnings []otep.Entry
	refused  bool             // the whole of it, for its envelope
	reviewed cloud.ShipmentID // staff have decided that it is taken, for this shipment
	through  *through         // a container; nil: it came by itself
	// status is the current status of a source that knows no events, as it
	// wrote it; statusAt the time that it gave with it.
	status   string
	statusAt otep.Time
	// parents are the SSCCs into which the document puts things. Each is a container.
	parents map[string]bool
}

// binds reports whether the arrival puts things into a container or takes them out.
func (a arrival) binds() bool {
	return slices.ContainsFunc(a.events, func(in incoming) bool { return in.binding != nil })
}

// incoming is one event on its way in.
type incoming struct {
	index   int
	event   otep.Event
	refused bool
	// step and disposition tell the status when the event has none yet.
	step, disposition string
	withdraws         bool
	reason            string // of a withdrawal
	address           string // by which EPCIS knows the event
	binding           *projection.Binding
}

// read reads a native timeline.
func read(body []byte, index int, isList bool, now time.Time) (arrival, error) {
	t, report, err := otep.Read(body, now)
	switch {
	case errors.Is(err, otep.ErrTooLarge):
		return arrival{}, tooLarge(err.Error())
	case err != nil:
		return arrival{}, err
	}
	report = report.Tolerant()
	a := arrival{index: index, subject: t.Subject, profile: t.Profile, taken: t.Withdrawals, findings: report.Errors, refused: report.Refused(-1)}
	if isList {
		a.prefix = fmt.Sprintf("timelines[%d].", index)
	}
	if t.EstimatedDeliveryAt != nil {
		a.estimate = t.EstimatedDeliveryAt.String()
	}
	for _, w := range report.Warnings {
		if w.Rule < "V40" { // the merged timeline is judged, not this part of it
			a.warnings = append(a.warnings, w)
		}
	}
	for i, e := range t.Events {
		a.events = append(a.events, incoming{index: i, event: e, refused: report.Refused(i)})
	}
	if len(a.events)+len(a.taken) == 0 {
		a.readStatus(body)
	}
	return a, nil
}

// readStatus takes the current status of a source that sends no events.
func (a *arrival) readStatus(body []byte) {
	var d struct {
		Current *string `json:"current_status"`
		At      string  `json:"last_event_at"`
	}
	if json.Unmarshal(body, &d) != nil || d.Current == nil {
		return
	}
	a.status = *d.Current
	if t, err := otep.ParseTime(d.At); err == nil {
		a.statusAt = t
	}
}

// sideBySide is how many timelines of one request are stored at once; the
// store commits them together.
const sideBySide = 16

// groupArrivals groups arrivals, by their places, by the first shipment that each may be about:
// transactions about one would only get in each other's way.
func groupArrivals(ctx context.Context, s Store, by cloud.Provider, list []arrival) (groups [][]int, err error) {
	if len(list) == 1 {
		return [][]int{{0}}, nil
	}
	err = s.Look(ctx, func(v cloud.View) error {
		groups = nil
		at := map[cloud.ShipmentID]int{}
		binding := -1
		for i, a := range list {
			if a.binds() { // one after the other: all bindings of a business depend on one another
				if binding < 0 {
					binding = len(groups)
					groups = append(groups, nil)
				}
				groups[binding] = append(groups[binding], i)
				continue
			}
			found, err := v.ShipmentsBySubject(by.BusinessID, a.subject)
			if err != nil {
				return err
			}
			if len(found) > 0 {
				if g, ok := at[found[0].ID]; ok {
					groups[g] = append(groups[g], i)
					continue
				}
				at[found[0].ID] = len(groups)
			}
			groups = append(groups, []int{i})
		}
		return nil
	})
	return groups, err
}

// storeArrivals stores arrivals, each in a transaction of its own, those about one shipment one after the other.
func (s *Service) storeArrivals(ctx context.Context, c cloud.Caller, by cloud.Provider, list []arrival) (IngestOutput, error) {
	out := IngestOutput{Result: true, Timelines: make([]IngestTimeline, len(list))}
	groups, err := groupArrivals(ctx, s.store, by, list)
	if err != nil {
		return IngestOutput{}, err
	}
	errs := make([]error, len(list))
	slots := make(chan struct{}, sideBySide)
	var wg sync.WaitGroup
	for _, group := range groups {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, i := range group {
				out.Timelines[i], errs[i] = s.add(ctx, c, by, list[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return IngestOutput{}, err
	}
	for _, t := range out.Timelines {
		out.Accepted += t.Accepted
		out.Duplicates += t.Duplicates
		out.Rejected += t.Rejected
		out.Conflicts += t.Conflicts
		out.Quarantined += t.Quarantined
		out.Withdrawn += t.Withdrawn
	}
	return out, nil
}

// ingestAnswer is the error of a request of which nothing could be stored.
func ingestAnswer(out IngestOutput, isList bool) error {
	if slices.ContainsFunc(out.Timelines, IngestTimeline.taken) {
		return nil
	}
	var errs, warnings []Finding
	single := len(out.Timelines) == 1 && !isList
	full, conflict := len(out.Timelines) > 0, false
	for _, t := range out.Timelines {
		full, conflict = full && t.code == codeFull, conflict || t.code == codeConflict
		errs, warnings = append(errs, t.Errors...), append(warnings, t.Warnings...)
		if single && t.code == codeOTEPNotFound {
			return cloud.E(cloud.NotFound, codeOTEPNotFound)
		}
		if single && t.code == codeForbidden {
			return cloud.E(cloud.Forbidden, codeForbidden)
		}
	}
	m := map[string]any{"errors": orEmpty(errs), "warnings": orEmpty(warnings), "timelines": out.Timelines}
	if len(out.Skipped) > 0 {
		m["skipped"] = out.Skipped
	}
	switch {
	case full:
		return &cloud.Error{Kind: cloud.Conflict, Code: codeFull, Members: m}
	case conflict:
		return &cloud.Error{Kind: cloud.Conflict, Code: codeConflict, Members: m}
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: codeNotConformant, Members: m}
}

func orEmpty(f []Finding) []Finding {
	if f == nil {
		return []Finding{}
	}
	return f
}

// ValidateInput is a timeline to check.
type ValidateInput struct {
	Body []byte `body:"raw"`
}

// Validate says how a timeline conforms. It stores nothing. Errors:
// OTEP_INVALID_JSON, OTEP_PAYLOAD_TOO_LARGE.
func (s *Service) Validate(_ context.Context, c cloud.Caller, in ValidateInput) (Conformance, error) {
	if len(in.Body) > otep.MaxValidateBytes {
		return Conformance{}, tooLarge("$")
	}
	report, err := otep.Validate(in.Body, time.Now())
	switch {
	case errors.Is(err, otep.ErrTooLarge):
		return Conformance{}, tooLarge(err.Error())
	case err != nil:
		return Conformance{}, notJSON(err)
	}
	return Conform(c.Language, report), nil
}

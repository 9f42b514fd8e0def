package tracking

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/protocol/otep"
)

// What staff decide about a review.
const (
	actAccept   = "accept"    // the event is taken as it came; one that is a report counts
	actAcceptAt = "accept_at" // it is taken, at another time
	actReject   = "reject"    // it is not taken, or stays a report
	actOverride = "override"  // of a conflict the event that came, of an order its timeline counts
	actWithdraw = "withdraw"  // the event is taken back
	actDismiss  = "dismiss"   // all stays as it is
)

// reviewActions are what may be decided, by kind.
var reviewActions = map[cloud.ReviewKind][]string{
	cloud.ReviewFuture: {actAccept, actAcceptAt, actReject}, cloud.ReviewPast: {actAccept, actAcceptAt, actReject}, cloud.ReviewConflict: {actOverride, actDismiss},
	cloud.ReviewCustody:   {actAccept, actReject},
	cloud.ReviewCancelled: {actAccept, actDismiss}, cloud.ReviewDispute: {actWithdraw, actDismiss}, cloud.ReviewDisagrees: {actOverride, actDismiss},
}

// byStaff stands in an event's withdrawal for the code of a provider.
const byStaff = "staff"

// Codes of errors of reviews.
const (
	codeReviewNotFound = "REVIEW_NOT_FOUND"
	codeReviewDecided  = "REVIEW_ALREADY_DECIDED"
	codeReviewAction   = "REVIEW_ACTION_NOT_ALLOWED"
	codeReviewsFull    = "TOO_MANY_REVIEWS"
)

// ReviewBody is a review as it is answered.
type ReviewBody struct {
	ID             cloud.ReviewID     `json:"review_id"`
	Kind           cloud.ReviewKind   `json:"kind"`
	Status         cloud.ReviewStatus `json:"status"`
	TrackingNumber string             `json:"tracking_number"`
	ProviderID     *cloud.ProviderID  `json:"provider_id"`
	EventID        string             `json:"event_id"`
	StatusCode     string             `json:"status_code"`
	OccurredAt     *string            `json:"occurred_at"`
	Event          json.RawMessage    `json:"event"` // as it came; null for one that is stored
	DisputeKind    *string            `json:"dispute_kind"`
	Note           *string            `json:"note"`
	Actions        []ReviewAction     `json:"actions"` // that may be decided now
	Action         *string            `json:"action"`
	Reason         *string            `json:"reason"`
	DecidedBy      *cloud.AccountID   `json:"decided_by"`
	DecidedAt      *string            `json:"decided_at"`
	CreatedAt      *string            `json:"created_at"`
	EndsAt         *string            `json:"ends_at"`
}

// ReviewAction is what may be decided.
type ReviewAction struct {
	Action string `json:"action"`
}

func showReview(r cloud.Review, l *time.Location) ReviewBody {
	b := ReviewBody{ID: r.ID, Kind: r.Kind, Status: r.Status, TrackingNumber: r.TrackingNumber, ProviderID: cloud.OrNull(r.ProviderID), EventID: r.EventID, StatusCode: r.StatusCode,
		OccurredAt: cloud.Stamp(r.OccurredAt, l), Event: json.RawMessage("null"), DisputeKind: cloud.OrNull(r.DisputeKind), Note: cloud.OrNull(r.Note), Actions: []ReviewAction{},
		Action: cloud.OrNull(r.Action), Reason: cloud.OrNull(r.Reason), DecidedBy: cloud.OrNull(r.DecidedBy), DecidedAt: cloud.Stamp(r.DecidedAt, l),
		CreatedAt: cloud.Stamp(r.CreatedAt, l), EndsAt: cloud.Stamp(r.EndsAt, l)}
	if len(r.Given) > 0 {
		b.Event = givenEvent(r.Given)
	}
	if r.Status == cloud.ReviewOpen {
		for _, a := range reviewActions[r.Kind] {
			b.Actions = append(b.Actions, ReviewAction{a})
		}
	}
	return b
}

// givenEvent is an event without what is made for one that is stored.
func givenEvent(stored []byte) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(stored, &members) != nil {
		return stored
	}
	for _, name := range []string{"recorded_at", "status_uri", "phase_uri", "otep_version"} {
		delete(members, name)
	}
	out, err := json.Marshal(members)
	if err != nil {
		return stored
	}
	return out
}

// ReviewsInput asks for a part of the reviews.
type ReviewsInput struct {
	collection.PageInput
	Kind   string `query:"kind" enum:"future,past,conflict,custody,carrier_cancelled,dispute,order_disagrees"`
	Status string `query:"status" enum:"open,decided,ended"`
}

// ReviewsOutput lists reviews, newest first.
type ReviewsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Reviews []ReviewBody `json:"reviews"`
}

// Desk is where staff decide about events.
type Desk struct{ *Service }

// Reviews lists what staff decide about events. Staff may.
func (s Desk) Reviews(ctx context.Context, c cloud.Caller, in ReviewsInput) (out ReviewsOutput, err error) {
	out.Reviews, out.PageOutput, err = collection.List(ctx, s.store, c, in, cloud.Review{Kind: cloud.ReviewKind(in.Kind), Status: cloud.ReviewStatus(in.Status)}, showReview)
	out.Result = err == nil
	return out, err
}

// ReviewOutput shows a review.
type ReviewOutput struct {
	Result bool       `json:"result"`
	Review ReviewBody `json:"review"`
}

// Review shows one. Error: REVIEW_NOT_FOUND.
func (s Desk) Review(ctx context.Context, c cloud.Caller, in collection.ByID[cloud.Review]) (ReviewOutput, error) {
	return collection.Find(ctx, s.store, c, in.ID, func(r cloud.Review, l *time.Location) ReviewOutput { return ReviewOutput{true, showReview(r, l)} })
}

// DecideInput is a decision about a review.
type DecideInput struct {
	ID         cloud.ReviewID `path:"id" json:"-"`
	Action     string         `json:"action" required:"true" enum:"accept,accept_at,reject,override,withdraw,dismiss" doc:"One of the review's actions"`
	OccurredAt string         `json:"occurred_at" format:"moment" doc:"Required with accept_at, and only with it: when it happened"`
	Note       string         `json:"note" max:"500" line:"true"`
}

// Decide decides a review, with what follows for the timeline and the order, in one transaction. Errors:
// REVIEW_NOT_FOUND, REVIEW_ALREADY_DECIDED, REVIEW_ACTION_NOT_ALLOWED, VALIDATION_FAILED, OTEP_TIMELINE_FULL,
// those of the order that is cancelled.
func (s Desk) Decide(ctx context.Context, c cloud.Caller, in DecideInput) (out ReviewOutput, err error) {
	now := milliseconds(time.Now())
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		r, err := collection.FindIn(v, cloud.Review{Kept: cloud.Kept[cloud.ReviewID]{ID: in.ID, BusinessID: b.ID}})
		if err != nil {
			return nil, err
		}
		at, err := in.check(r, b.Location())
		if err != nil {
			return nil, err
		}
		ch, err := s.carryOut(v, c, r, in, at)
		if err != nil {
			return nil, err
		}
		r.Touch(now)
		r.Status, r.Action, r.Reason, r.DecidedBy, r.DecidedAt = cloud.ReviewDecided, in.Action, in.Note, c.Account.ID, now
		ch.Rows = append(ch.Rows, r)
		detail, _ := json.Marshal(map[string]any{"kind": r.Kind, "action": in.Action, "event_id": r.EventID}) // plain fields always encode
		ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: b.ID, At: now, Actor: c.Account.ID.Actor(), Action: "review_decided", Target: "tracking:" + r.TrackingNumber, Detail: string(detail)})
		out = ReviewOutput{true, showReview(r, b.Location())}
		ch.Answer = out
		return ch, nil
	})
	return out, err
}

// check looks at a decision and gives the time of an event that is taken at another.
func (in DecideInput) check(r cloud.Review, zone *time.Location) (otep.Time, error) {
	if r.Status != cloud.ReviewOpen {
		return otep.Time{}, cloud.E(cloud.Conflict, codeReviewDecided)
	}
	if !slices.Contains(reviewActions[r.Kind], in.Action) {
		return otep.Time{}, &cloud.Error{Kind: cloud.Conflict, Code: codeReviewAction, Details: map[string]any{"actions": reviewActions[r.Kind]}}
	}
	f := check.Fields{}
	at := check.Moment(in.OccurredAt, zone)
	switch {
	case in.Action == actAcceptAt && at.IsZero():
		f.Say("occurred_at", check.MessageRequired)
	case in.Action != actAcceptAt && in.OccurredAt != "":
		f.Add("occurred_at", "This goes with accept_at only.")
	}
	return otep.Time{Time: at}, f.Err()
}

// carryOut is what follows from a decision.
func (s Desk) carryOut(v cloud.View, c cloud.Caller, r cloud.Review, in DecideInput, at otep.Time) (*cloud.Changes, error) {
	switch {
	case in.Action == actReject || in.Action == actDismiss:
		return &cloud.Changes{}, nil
	case r.Kind == cloud.ReviewCustody:
		ch, err := s.orders.Accept(v, c, r)
		if isMissing(err) { // the event was taken back
			err = cloud.E(cloud.NotFound, codeReviewNotFound)
		}
		return ch, err
	case r.Kind == cloud.ReviewCancelled:
		return s.orders.Cancel(v, c, r, in.Note)
	case r.Kind == cloud.ReviewDisagrees:
		return s.orders.Settle(v, c, r, in.Note)
	}
	by := cloud.Provider{BusinessID: r.BusinessID, Scope: cloud.ScopeAll}
	if r.ProviderID != 0 {
		var err error
		if by, err = v.Provider(r.ProviderID); err != nil {
			return nil, err
		}
	}
	a := arrival{profile: otep.DefaultProfile, subject: otep.Subject{TrackingNumber: r.TrackingNumber}, reviewed: r.ShipmentID}
	if len(r.Given) > 0 {
		e, err := otep.DecodeEvent(string(r.Given))
		if err != nil {
			return nil, err
		}
		if in.Action == actAcceptAt {
			e.OccurredAt = at
		}
		if r.Kind == cloud.ReviewConflict {
			sum := sha256.Sum256(r.Given) // not the id that follows from the event: that may be the one that it takes the place of
			e.Corrects, e.EventID = e.EventID, "evt_"+hex.EncodeToString(sum[:10])
		}
		a.events = []incoming{{event: e}}
	} else {
		a.taken = []otep.Withdrawal{{EventID: r.EventID, Reason: otep.IncorrectData}}
	}
	out, ch, err := s.addIn(v, c, by, a)
	switch {
	case err != nil:
		return nil, err
	case out.code != "":
		return nil, cloud.E(cloud.Conflict, out.code)
	case !out.taken():
		return nil, cloud.E(cloud.NotFound, codeReviewNotFound) // what it is about is gone
	}
	return ch, nil
}

// DisputeInput says that an event is wrong.
type DisputeInput struct {
	Number  string `path:"tracking_number" json:"-"`
	Verify  string `query:"verify" json:"-" doc:"Last four digits of the recipient's telephone number"`
	Key     string `header:"X-Tracking-Key" json:"-"`
	EventID string `json:"event_id" required:"true" max:"64"`
	Kind    string `json:"kind" required:"true" enum:"not_received,wrong_place,damaged,other"`
	Note    string `json:"note" max:"500" line:"true"`
}

// DisputeOutput says that a dispute was taken.
type DisputeOutput struct {
	Result  bool   `json:"result"`
	EventID string `json:"event_id"`
	Status  string `json:"status"` // open
}

// Dispute notes that the recipient, or a provider whose parcel it is, says that an event is wrong. The event
// stays; staff decide. A second dispute of the same event changes nothing while the first is open. Errors:
// OTEP_TRACKING_NOT_FOUND, OTEP_CREDENTIALS_REQUIRED without proof, OTEP_INVALID_REQUEST of an event that is
// not there, TOO_MANY_REVIEWS.
func (s *Service) Dispute(ctx context.Context, c cloud.Caller, in DisputeInput) (DisputeOutput, error) {
	p, err := s.visibleParcel(ctx, c, in.Number, proof{in.Verify, in.Key})
	switch {
	case err != nil:
		return DisputeOutput{}, err
	case !p.whole():
		return DisputeOutput{}, cloud.E(cloud.Unauthenticated, codeCredentials)
	}
	e, ok, err := findShown(ctx, s.store, &p, in.EventID)
	if err != nil {
		return DisputeOutput{}, err
	}
	row, hasCause := p.cause(e)
	if !ok || !hasCause {
		return DisputeOutput{}, invalid("event_id", "The timeline has no event with this id.")
	}
	number := p.shipment.Number
	if x := p.numberOf(row.Package); x != nil {
		number = *x
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		r := cloud.Review{Kind: cloud.ReviewDispute, TrackingNumber: number, ShipmentID: p.shipment.ID, PackageID: row.Package, EventID: row.Event.EventID,
			StatusCode: string(row.Event.StatusCode), OccurredAt: row.Event.OccurredAt.UTC(), DisputeKind: in.Kind, Note: in.Note}
		ch := &cloud.Changes{}
		sh, err := v.ShipmentByID(p.shipment.ID)
		if err == nil {
			r, err = addReview(v, ch, p.shipment.BusinessID, r, time.Now())
		}
		if err == nil && len(ch.Rows) > 0 {
			ch.Shipments = append(ch.Shipments, sh) // as it is: of two disputes at once one is begun again, and finds the other's review
			actor := "recipient"
			if !c.Anonymous() {
				actor = c.Account.ID.Actor()
			}
			detail, _ := json.Marshal(map[string]string{"event_id": r.EventID}) // texts always encode
			ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: p.shipment.BusinessID, At: time.Now().UTC(), Actor: actor, Action: "event_disputed", Target: "tracking:" + r.TrackingNumber, Detail: string(detail)})
			if s.parcels != nil {
				ch.Outbox, err = s.parcels.FanOutDispute(v, sh, row, r, disputer(c))
			}
		}
		return ch, err
	})
	return DisputeOutput{err == nil, e.EventID, string(cloud.ReviewOpen)}, err
}

// findShown finds an event of a parcel that the caller sees, on whatever page it stands.
func findShown(ctx context.Context, store Store, p *parcel, id string) (e otep.Event, ok bool, err error) {
	find := func() (otep.Event, bool) {
		i := slices.IndexFunc(p.events, func(e otep.Event) bool { return e.EventID == id })
		if i < 0 {
			return otep.Event{}, false
		}
		return p.events[i], true
	}
	if e, ok = find(); ok || !p.longer {
		return e, ok, nil
	}
	var row cloud.TimelineEvent
	err = store.Look(ctx, func(v cloud.View) (err error) {
		row, err = v.TimelineEvent(p.shipment.ID, id)
		return err
	})
	if isMissing(err) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	behind := row.Event
	behind.OccurredAt.Time = behind.OccurredAt.Add(time.Millisecond)
	if err = turn(ctx, store, p, page{&behind, maxShown}, time.Now()); err == nil {
		e, ok = find()
	}
	return e, ok, err
}

// disputer is who disputes an event, as webhooks have it.
func disputer(c cloud.Caller) string {
	switch {
	case c.Anonymous():
		return "recipient"
	case c.Account.Type == cloud.ProviderType:
		return c.Provider.Code
	case c.Account.Type == cloud.Customer:
		return "customer"
	}
	return byStaff
}

// cause is the stored event that a shown one is, or was made of: the latest that happened by then.
func (p *parcel) cause(e otep.Event) (out cloud.TimelineEvent, ok bool) {
	for _, r := range p.all {
		x := &r.Event
		if x.EventID == e.EventID && x.StatusCode == e.StatusCode && x.OccurredAt.Equal(e.OccurredAt.Time) && !x.Withdrawn && !x.Reported {
			return r, true
		}
		if x.CountsAt(time.Time{}) && !x.OccurredAt.After(e.OccurredAt.Time) && (!ok || otep.Compare(x, &out.Event) > 0) {
			out, ok = r, true
		}
	}
	return out, ok
}

// addReview makes a review unless there is one about the same event and kind. It gives the one that stands.
// Error: TOO_MANY_REVIEWS.
func addReview(v cloud.View, ch *cloud.Changes, b cloud.BusinessID, r cloud.Review, now time.Time) (cloud.Review, error) {
	found, err := reviewsLike(v, b, r)
	if err != nil {
		return r, err
	}
	for _, x := range ch.Rows {
		if old, ok := x.(cloud.Review); ok && old.EventID == r.EventID && old.PackageID == r.PackageID {
			found = append(found, old)
		}
	}
	for _, old := range slices.Backward(found) {
		if old.Kind != r.Kind {
			continue
		}
		if old.Status == cloud.ReviewOpen || bytes.Equal(old.Given, r.Given) && len(r.Given) > 0 {
			return old, nil
		}
		break
	}
	if r.ProviderID != 0 {
		_, open, err := cloud.List(v, cloud.Review{Kept: cloud.Kept[cloud.ReviewID]{BusinessID: b}, ProviderID: r.ProviderID, Status: cloud.ReviewOpen}, cloud.Page{Sort: "id", Down: true, Limit: 1})
		if err != nil {
			return r, err
		}
		if open.Total >= cloud.MaxOpenReviews {
			return r, &cloud.Error{Kind: cloud.Limited, Code: codeReviewsFull}
		}
	}
	id, err := v.NewID(cloud.ReviewIDs)
	if err != nil {
		return r, err
	}
	now = milliseconds(now)
	r.Begin(id, b, now)
	r.Status, r.EndsAt = cloud.ReviewOpen, now.Add(cloud.ReviewLasts)
	ch.Rows = append(ch.Rows, r)
	return r, nil
}

// reviewsLike are the reviews of a business about the same event as another one, by id.
func reviewsLike(v cloud.View, b cloud.BusinessID, r cloud.Review) ([]cloud.Review, error) {
	found, err := cloud.All(v, cloud.Review{Kept: cloud.Kept[cloud.ReviewID]{BusinessID: b}, ShipmentID: r.ShipmentID, EventID: r.EventID})
	return slices.DeleteFunc(found, func(x cloud.Review) bool { return x.PackageID != r.PackageID }), err // 0 stands for all in an example
}

// review makes one about an event of the arrival.
func (w *adding) review(kind cloud.ReviewKind, e otep.Event, given bool) (cloud.Review, error) {
	if w.container != nil || w.a.through != nil { // the answer says it, and there is no parcel to decide about
		return cloud.Review{Action: actReject}, nil
	}
	r := cloud.Review{Kind: kind, TrackingNumber: w.subject.TrackingNumber, ShipmentID: w.shipment.ID, PackageID: w.part, ProviderID: w.by.ID, EventID: e.EventID,
		StatusCode: string(e.StatusCode), OccurredAt: e.OccurredAt.UTC()}
	if given {
		var err error
		if r.Given, err = asGiven(e); err != nil {
			return r, err
		}
	}
	return addReview(w.v, &w.reviews, w.shipment.BusinessID, r, w.now.Time)
}

// asGiven is an event as reviews have it: each time that it comes it is the same.
func asGiven(e otep.Event) ([]byte, error) {
	e.RecordedAt = otep.Time{}
	return otep.AppendEvent(nil, &e)
}

// isTaken reports whether staff have taken an event as it comes, at another time or in the place of
// the one that is stored with its id.
func (w *adding) isTaken(e otep.Event) (bool, error) {
	given, err := asGiven(e)
	if err != nil {
		return false, err
	}
	found, err := reviewsLike(w.v, w.shipment.BusinessID, cloud.Review{ShipmentID: w.shipment.ID, PackageID: w.part, EventID: e.EventID})
	return slices.ContainsFunc(found, func(r cloud.Review) bool {
		return r.Status == cloud.ReviewDecided && r.Action != actReject && r.Action != actDismiss && bytes.Equal(r.Given, given)
	}), err
}

// oldest is how old an event may be without a review.
const oldest = 2 * 365 * 24 * time.Hour

// isStrange reports which review an event needs for its time before it is taken, "" for none.
func (w *adding) isStrange(e otep.Event) cloud.ReviewKind {
	switch {
	case w.a.reviewed != 0 || w.a.through != nil || e.TimeType != "" && e.TimeType != otep.Actual:
		return ""
	case e.OccurredAt.Sub(w.now.Time) > ahead:
		return cloud.ReviewFuture
	case w.now.Sub(e.OccurredAt.Time) > w.s.oldest:
		return cloud.ReviewPast
	}
	return ""
}

// Reviewer ends reviews that wait too long.
type Reviewer interface {
	EndReviews(ctx context.Context, now time.Time) error
}

// EndReviews ends reviews that are not decided in time, once an hour until ctx ends.
func EndReviews(ctx context.Context, r Reviewer, log *slog.Logger) error {
	return repeat(ctx, time.Hour, log, "end reviews", func(ctx context.Context) error { return r.EndReviews(ctx, time.Now()) })
}

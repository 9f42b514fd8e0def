package tracking

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// Aliases are the operations on numbers by which others know a thing.
type Aliases struct{ s *Service }

// AliasesOf is that of a service.
func AliasesOf(s *Service) Aliases { return Aliases{s} }

// Errors of aliases.
const (
	codeAliasTaken   = "ALIAS_TAKEN"
	codeAliasMissing = "ALIAS_NOT_FOUND"
	codeAliasesFull  = "TOO_MANY_ALIASES"
)

// AliasesInput names a thing.
type AliasesInput struct {
	Number string `path:"tracking_number" json:"-" max:"100" doc:"Of a parcel, a package or an order, or a container's identity"`
}

// AliasInput adds an alias to a thing.
type AliasInput struct {
	Number string `path:"tracking_number" json:"-" max:"100" doc:"Of a parcel, a package or an order, or a container's identity"`
	Kind   string `json:"kind" required:"true" enum:"carrier,package,sscc,epc,partner,legacy" doc:"What value is"`
	Issuer string `json:"issuer" max:"40" line:"true" doc:"That gave the value, as a carrier's code"`
	Value  string `json:"value" required:"true" min:"1" max:"200" line:"true"`
	From   string `json:"from" format:"date-time" doc:"Of the first event that is meant; when absent since the value was another thing's, or ever"`
	To     string `json:"to" format:"date-time" doc:"Behind the last event that is meant; when absent until 180 days after the end of the thing"`
}

// AliasRef names an alias of a thing.
type AliasRef struct {
	AliasesInput
	ID cloud.AliasID `path:"id" json:"-"`
}

// AliasBody is an alias.
type AliasBody struct {
	ID        cloud.AliasID `json:"alias_id"`
	Kind      string        `json:"kind" enum:"carrier,package,sscc,epc,partner,legacy"`
	Issuer    string        `json:"issuer"`
	Value     string        `json:"value"`
	From      *string       `json:"from" format:"date-time" doc:"null: ever"`
	To        *string       `json:"to" format:"date-time" doc:"null: until 180 days after the end of the thing"`
	CreatedAt string        `json:"created_at" format:"date-time"`
}

// AliasOutput is an alias that was added.
type AliasOutput struct {
	Result bool      `json:"result"`
	Alias  AliasBody `json:"alias"`
}

// AliasesOutput lists the aliases of a thing.
type AliasesOutput struct {
	Result  bool        `json:"result"`
	Aliases []AliasBody `json:"aliases" doc:"At most 50, oldest first"`
}

func aliasBody(a cloud.Alias, l *time.Location) AliasBody {
	out := AliasBody{ID: a.ID, Kind: a.Kind, Issuer: a.Issuer, Value: a.Value, CreatedAt: *cloud.Stamp(a.CreatedAt, l)}
	if a.Since.After(startOfTimes) {
		out.From = cloud.Stamp(a.Since, l)
	}
	if !a.Until.IsZero() {
		out.To = cloud.Stamp(a.Until, l)
	}
	return out
}

// named is the thing of a caller that a number names, and its business. Error: OTEP_TRACKING_NOT_FOUND.
func named(v cloud.View, c cloud.Caller, number string) (cloud.Thing, cloud.Business, error) {
	like, err := scopeOf(c)
	if err != nil {
		return cloud.Thing{}, cloud.Business{}, err
	}
	list, err := thingsOf(v, c, like.BusinessID, []string{number})
	if isCode(err, codeOTEPNotFound) {
		err = cloud.E(cloud.NotFound, codeOTEPNotFound)
	}
	if err != nil {
		return cloud.Thing{}, cloud.Business{}, err
	}
	b, err := v.Business(like.BusinessID)
	return list[0], b, err
}

// List lists the aliases of a thing. Error: OTEP_TRACKING_NOT_FOUND.
func (s Aliases) List(ctx context.Context, c cloud.Caller, in AliasesInput) (out AliasesOutput, err error) {
	err = s.s.store.Look(ctx, func(v cloud.View) error {
		x, b, err := named(v, c, in.Number)
		if err != nil {
			return err
		}
		list, err := v.AliasesOf(b.ID, x.String())
		out = AliasesOutput{Result: true, Aliases: []AliasBody{}}
		for _, a := range list {
			out.Aliases = append(out.Aliases, aliasBody(a, b.Location()))
		}
		return err
	})
	return out, err
}

// read is the alias that the input describes, without its thing.
func (in AliasInput) read() (a cloud.Alias, err error) {
	a = cloud.Alias{Kind: in.Kind, Issuer: strings.ToLower(strings.TrimSpace(in.Issuer)), Value: strings.TrimSpace(in.Value), Key: cloud.AliasKey(in.Kind, in.Value), Since: startOfTimes}
	u, bad := url.Parse(a.Value)
	switch {
	case a.Key == "":
		return a, invalid("value", "Give the number that others use.")
	case a.Kind == "sscc" && !otep.IsSSCC(a.Key):
		return a, invalid("value", "An SSCC has 18 digits, the last one a check digit.")
	case a.Kind == "epc" && (bad != nil || u.Scheme == ""):
		return a, invalid("value", "An EPC is an address, as urn:epc:id:sgtin:0614141.107346.2017.")
	}
	for _, x := range []struct {
		text, name string
		to         *time.Time
	}{{in.From, "from", &a.Since}, {in.To, "to", &a.Until}} {
		if x.text == "" {
			continue
		}
		t, err := otep.ParseTime(x.text)
		if err != nil {
			return a, invalid(x.name, "Give a time as RFC 3339 has it.")
		}
		*x.to = milliseconds(t.Time)
	}
	if !a.Until.IsZero() && !a.Until.After(a.Since) {
		return a, invalid("to", "to must be behind from.")
	}
	return a, nil
}

// Add adds an alias to a thing; one that it has already is given back. Errors: OTEP_TRACKING_NOT_FOUND, ALIAS_TAKEN,
// TOO_MANY_ALIASES, OTEP_INVALID_REQUEST.
func (s Aliases) Add(ctx context.Context, c cloud.Caller, in AliasInput) (out AliasOutput, err error) {
	like, err := in.read()
	if err != nil {
		return out, err
	}
	if c.Account.Type == cloud.ProviderType {
		like.ProviderID = c.Provider.ID
	}
	now := milliseconds(time.Now())
	err = decideAgain(ctx, s.s.store, func(v cloud.View) (*cloud.Changes, error) {
		x, b, err := named(v, c, in.Number)
		if err != nil {
			return nil, err
		}
		list, err := v.AliasesOf(b.ID, x.String())
		if err != nil {
			return nil, err
		}
		made := like
		made.Thing, made.ShipmentID = x.String(), x.Shipment
		ch := &cloud.Changes{}
		same, err := aliasBook{v, b.ID, now}.makeRoom(&made, in.From == "", ch)
		if err != nil {
			return nil, err
		}
		if same.ID != 0 {
			out = AliasOutput{Result: true, Alias: aliasBody(same, b.Location())}
			return &cloud.Changes{Unaudited: true, Answer: out}, nil
		}
		if len(list) >= cloud.MaxAliases {
			return nil, &cloud.Error{Kind: cloud.Conflict, Code: codeAliasesFull, Details: map[string]any{"limit": cloud.MaxAliases}}
		}
		id, err := v.NewID(cloud.AliasIDs)
		if err != nil {
			return nil, err
		}
		made.Begin(id, b.ID, now)
		ch.Rows = append(ch.Rows, made)
		binder{business: b.ID, now: now, ch: ch}.turn()
		out = AliasOutput{Result: true, Alias: aliasBody(made, b.Location())}
		ch.Answer = out
		return ch, nil
	})
	return out, err
}

// Remove removes an alias. Errors: OTEP_TRACKING_NOT_FOUND, ALIAS_NOT_FOUND.
func (s Aliases) Remove(ctx context.Context, c cloud.Caller, in AliasRef) (out collection.Done, err error) {
	err = s.s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, b, err := named(v, c, in.Number)
		if err != nil {
			return nil, err
		}
		list, err := v.AliasesOf(b.ID, x.String())
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(a cloud.Alias) bool { return a.ID == in.ID })
		if i < 0 {
			return nil, cloud.E(cloud.NotFound, codeAliasMissing)
		}
		out = collection.Done{Result: true}
		ch := &cloud.Changes{Answer: out}
		ch.DroppedRows = append(ch.DroppedRows, list[i])
		binder{business: b.ID, now: milliseconds(time.Now()), ch: ch}.turn()
		return ch, nil
	})
	return out, err
}

// aliasBook reads the aliases of a business.
type aliasBook struct {
	v        cloud.View
	business cloud.BusinessID
	now      time.Time
}

// span is when events that name an alias are its thing's.
func (b aliasBook) span(a cloud.Alias) (cloud.Span, error) {
	s := cloud.Span{From: a.Since, To: cloud.EndOfTimes}
	if !a.Until.IsZero() {
		s.To = a.Until
	}
	x, err := cloud.ParseThing(a.Thing)
	if err != nil {
		return s, err
	}
	end, err := b.end(x)
	if err == nil && !end.IsZero() && end.Add(cloud.AliasLife).Before(s.To) {
		s.To = end.Add(cloud.AliasLife)
	}
	return s, err
}

// end is when a thing ended, by its last terminal event, zero for one without any.
func (b aliasBook) end(x cloud.Thing) (time.Time, error) {
	var t otep.Timeline
	if x.Container != 0 {
		rows, err := b.v.EventsIn(x.Container, startOfTimes, cloud.EndOfTimes)
		if err != nil {
			return time.Time{}, err
		}
		var events []otep.Event
		for _, r := range rows {
			e, err := r.Decode()
			if err != nil {
				return time.Time{}, err
			}
			events = append(events, e)
		}
		t = otep.FoldAt(otep.DefaultProfile, otep.Subject{}, events, b.now)
	} else {
		sh, err := b.v.ShipmentByID(x.Shipment)
		if isMissing(err) { // what is no longer there is at its end
			return startOfTimes, nil
		}
		if err != nil {
			return time.Time{}, err
		}
		rows, err := b.v.Timeline(x.Shipment)
		if err != nil {
			return time.Time{}, err
		}
		packages, err := timeline.PackagesOf(b.v, sh)
		if err != nil {
			return time.Time{}, err
		}
		events := timeline.OfOrder(rows, packages, b.now)
		if x.Package != 0 {
			events = timeline.OfPackage(rows, packages, x.Package, b.now)
		}
		t = otep.FoldAt(sh.Profile, subject(sh), events, b.now)
	}
	end := time.Time{}
	for _, e := range t.Events {
		if code, ok := otep.Lookup(e.StatusCode); ok && code.Terminal && e.OccurredAt.After(end) {
			end = milliseconds(e.OccurredAt.Time)
		}
	}
	return end, nil
}

// makeRoom lets a value go that was another thing's, and gives the alias if the thing has it already. Error: ALIAS_TAKEN.
func (b aliasBook) makeRoom(a *cloud.Alias, isOpen bool, ch *cloud.Changes) (same cloud.Alias, err error) {
	list, err := b.v.AliasesByKey(b.business, a.Key)
	if err != nil {
		return same, err
	}
	var spans []cloud.Span
	list = slices.DeleteFunc(list, func(o cloud.Alias) bool { return o.Kind != a.Kind || o.Issuer != a.Issuer })
	for _, o := range list {
		s, err := b.span(o)
		if err != nil {
			return same, err
		}
		spans = append(spans, s)
		if isOpen && !s.To.After(b.now) && s.To.After(a.Since) {
			a.Since = s.To
		}
	}
	mine := cloud.Span{From: a.Since, To: cloud.EndOfTimes}
	if !a.Until.IsZero() {
		mine.To = a.Until
	}
	for i, o := range list {
		if _, over := mine.In(spans[i]); over {
			if o.Thing == a.Thing {
				return o, nil
			}
			return same, cloud.E(cloud.Conflict, codeAliasTaken)
		}
		if a.Until.IsZero() && o.Until.IsZero() { // it ended before
			o.Until = spans[i].To
			o.Touch(b.now)
			ch.Rows = append(ch.Rows, o)
		}
	}
	return same, nil
}

// aliasSpan says when a subject names a thing.
type aliasSpan struct {
	thing cloud.Thing
	cloud.Span
}

// spans are the things that a subject or an EPC names by an alias, and when.
func (b aliasBook) spans(sub otep.Subject, epc string) (out []aliasSpan, err error) {
	done := map[string]bool{}
	for _, by := range []struct{ value, kind string }{{sub.TrackingNumber, ""}, {sub.ExternalTrackingNumber, ""}, {sub.SSCC, "sscc"}, {epc, "epc"}} {
		key := cloud.AliasKey(by.kind, by.value)
		if key == "" || done[key] {
			continue
		}
		done[key] = true
		list, err := b.v.AliasesByKey(b.business, key)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			isNumber := a.Kind != "sscc" && a.Kind != "epc"
			if a.Kind != by.kind && (by.kind != "" || !isNumber) {
				continue
			}
			s, err := b.span(a)
			if err != nil {
				return nil, err
			}
			x, err := cloud.ParseThing(a.Thing)
			if err != nil {
				return nil, err
			}
			out = append(out, aliasSpan{x, s})
		}
	}
	return out, nil
}

// thingAt is the one thing of a caller that is named at a time, the zero thing for none or several.
func (b aliasBook) thingAt(c cloud.Caller, spans []aliasSpan, at time.Time) (x cloud.Thing, err error) {
	at = milliseconds(at)
	for _, s := range spans {
		if at.Before(s.From) || !at.Before(s.To) || s.thing == x {
			continue
		}
		ok, err := b.isWritable(c, s.thing)
		if err != nil {
			return cloud.Thing{}, err
		}
		if ok && x != (cloud.Thing{}) {
			return cloud.Thing{}, nil
		}
		if ok {
			x = s.thing
		}
	}
	return x, nil
}

// isWritable reports whether a caller may add to a thing: an alias gives no rights.
func (b aliasBook) isWritable(c cloud.Caller, x cloud.Thing) (bool, error) {
	if x.Container != 0 {
		found, err := cloud.Find(b.v, cloud.Container{Kept: cloud.Kept[cloud.ContainerID]{ID: x.Container, BusinessID: b.business}})
		if isMissing(err) {
			return false, nil
		}
		return err == nil && mayFill(c, found), err
	}
	sh, err := b.v.ShipmentByID(x.Shipment)
	if isMissing(err) {
		return false, nil
	}
	return err == nil && sh.BusinessID == b.business && mayAddTo(c, sh), err
}

// mayAddTo reports whether a shipment is a caller's to add to.
func mayAddTo(c cloud.Caller, sh cloud.Shipment) bool {
	return c.Account.Type == cloud.ProviderType && sh.OfProvider(c.Provider) || c.Account.Type.IsStaff() && sh.BusinessID == c.Account.BusinessID
}

// mayFill reports whether a container of the business is a caller's to add to.
func mayFill(c cloud.Caller, x cloud.Container) bool {
	return c.Account.Type != cloud.ProviderType || x.OfProvider(c.Provider)
}

// findByAlias finds the thing that the arrival names by an alias. Of several in the course of time it is the newest; events
// of another time are refused.
func findByAlias(w *adding) (x cloud.Thing, err error) {
	if w.a.through != nil || w.a.reviewed != 0 {
		return x, nil
	}
	book := aliasBook{w.v, w.by.BusinessID, w.now.Time}
	spans, err := book.spans(w.a.subject, w.a.epc)
	if err != nil || len(spans) == 0 {
		return x, err
	}
	var times []time.Time
	for _, in := range w.a.events {
		times = append(times, in.event.OccurredAt.Time)
	}
	if len(times) == 0 {
		times = append(times, w.statusTime().Time)
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	for _, at := range slices.CompactFunc(times, time.Time.Equal) {
		if x, err = book.thingAt(w.c, spans, at); err != nil || x != (cloud.Thing{}) {
			break
		}
	}
	if err != nil || x == (cloud.Thing{}) {
		return x, err
	}
	w.a.events = slices.Clone(w.a.events)
	for i, in := range w.a.events {
		own, err := book.thingAt(w.c, spans, in.event.OccurredAt.Time)
		if err != nil {
			return x, err
		}
		if own != x && !in.refused {
			w.a.events[i].refused = true
			w.findings = append(w.findings, otep.Entry{Rule: ruleAlias, Path: w.a.timePath(in.index), Message: "at this time the number is not one of the thing that the other events are of", Event: in.index})
		}
	}
	return x, nil
}

// timePath is where the time of an event stands.
func (a arrival) timePath(index int) string {
	if a.isEPCIS {
		return fmt.Sprintf("eventList[%d].eventTime", index)
	}
	return fmt.Sprintf("events[%d].occurred_at", index)
}

// openThing opens what an alias names.
func openThing(w *adding, x cloud.Thing) ([]cloud.Shipment, error) {
	sh, err := w.v.ShipmentByID(x.Shipment)
	if err == nil && sh.OrderID == 0 { // another decision about it is waited for
		sh, err = w.v.ShipmentByNumber(sh.Number)
	}
	if err != nil {
		return nil, err
	}
	w.a.subject = otep.Subject{TrackingNumber: sh.Number}
	if x.Package != 0 {
		w.a.subject = otep.Subject{PackageID: int64(x.Package)}
	}
	return []cloud.Shipment{sh}, nil
}

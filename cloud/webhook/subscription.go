package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/otep"
)

// maxSubscriptions are of a business, of a customer or of a provider.
const maxSubscriptions = 100

// SubscriptionInput describes a new subscription.
type SubscriptionInput struct {
	Numbers   []string `json:"tracking_numbers" max:"1000" item_min:"1" item_max:"100" item_line:"true" doc:"1 to 1,000 numbers of parcels or orders that you may see; or all"`
	All       bool     `json:"all" doc:"All parcels of the business, those to come too; of staff alone"`
	URL       string   `json:"url" required:"true" doc:"https"`
	Secret    string   `json:"secret" doc:"Signs what is sent: 16 to 128 characters; one is made when it is absent, and shown in this answer alone"`
	Events    []string `json:"events" max:"10" item_max:"64" doc:"Some of tracking.event, tracking.event_withdrawn and tracking.disputed; the first when absent"`
	Codes     []string `json:"codes" max:"100" item_max:"64" doc:"OTEP status codes of the events; all when absent"`
	Format    string   `json:"format" enum:"native,ce_binary,ce_structured"`
	Signature string   `json:"signature" enum:"native,standard_webhooks,standard_webhooks_v1a"`
	ExpiresAt string   `json:"expires_at" format:"moment" doc:"Absent: it ends 30 days after the last of its parcels has come to its end; one to all does not end"`
}

// SubscriptionRow is a subscription in a list.
type SubscriptionRow struct {
	ID         cloud.SubscriptionID `json:"subscription_id"`
	All        bool                 `json:"all"`
	Parcels    int                  `json:"parcels"` // that it names
	URL        string               `json:"url"`
	URLID      cloud.EndpointID     `json:"url_id"` // in the log of deliveries
	Events     []string             `json:"events"`
	Codes      []otep.Code          `json:"codes"` // none: all
	Format     string               `json:"format"`
	Signature  string               `json:"signature"`
	PublicKey  *string              `json:"public_key"` // verifies standard_webhooks_v1a
	SecretHint string               `json:"secret_hint"`
	Status     string               `json:"status"` // healthy, degraded, paused, gone, expired
	ExpiresAt  *string              `json:"expires_at"`
	CreatedAt  *string              `json:"created_at"`
}

// SubscriptionBody is a subscription with the numbers that it was made with.
type SubscriptionBody struct {
	SubscriptionRow
	Numbers []string `json:"tracking_numbers"`
}

// SubscriptionOutput shows a subscription. Secret is there when this call made one, and with it the form
// that libraries of Standard Webhooks want.
type SubscriptionOutput struct {
	Result         bool             `json:"result"`
	Subscription   SubscriptionBody `json:"subscription"`
	Secret         string           `json:"secret,omitempty"`
	StandardSecret string           `json:"standard_secret,omitempty"`
}

// SubscriptionsInput asks for a page of subscriptions, newest first.
type SubscriptionsInput struct {
	check.Keyset
}

// SubscriptionsOutput lists subscriptions.
type SubscriptionsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Subscriptions []SubscriptionRow `json:"subscriptions"`
}

// SubscriptionRef names a subscription.
type SubscriptionRef struct {
	ID int64 `path:"id" json:"-"`
}

// SubscriptionEnded is the answer of a removal.
type SubscriptionEnded struct {
	Result bool `json:"result"`
}

// statusExpired is the status of a subscription that is past its time.
const statusExpired = "expired"

// ofLevel is a subscription of the caller's level, with nothing else: staff share those of their
// business, a customer and a provider have their own. Error: ACCOUNT_TYPE_NOT_ALLOWED.
func ofLevel(c cloud.Caller) (s cloud.Subscription, err error) {
	s.BusinessID = c.Account.BusinessID
	switch {
	case c.Account.Type == cloud.ClientAdmin || c.Account.Type == cloud.ClientEmployee:
		s.Level = cloud.BusinessLevel
	case c.Account.Type == cloud.Customer:
		s.Level, s.CustomerID = cloud.CustomerLevel, c.Account.ID
	case c.Account.Type == cloud.ProviderType && c.Provider.ID != 0:
		s.Level, s.ProviderID = cloud.ProviderLevel, c.Provider.ID
	default:
		err = cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	return s, err
}

// Subscribe makes a subscription with an endpoint of its own. Errors: VALIDATION_FAILED, BLOCKED_URL,
// ACCOUNT_TYPE_NOT_ALLOWED, OTEP_TRACKING_NOT_FOUND with the numbers in its details,
// SUBSCRIPTION_LIMIT_REACHED.
func (s subscriptions) Subscribe(ctx context.Context, c cloud.Caller, in SubscriptionInput) (out SubscriptionOutput, err error) {
	like, err := ofLevel(c)
	if err != nil {
		return out, err
	}
	fresh := like
	if err := s.fill(ctx, c, in, &fresh); err != nil {
		return out, err
	}
	var parcels []cloud.SubscribedParcel
	if err := s.store.Look(ctx, func(v cloud.View) (err error) {
		parcels, err = parcelsOf(v, c, in)
		return err
	}); err != nil {
		return out, err
	}
	secret := in.Secret
	if secret == "" {
		secret = NewSecret()
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		_, listed, err := cloud.List(v, like, cloud.Page{Sort: "id", Limit: 1})
		if err == nil && listed.Total >= maxSubscriptions {
			err = cloud.E(cloud.Conflict, "SUBSCRIPTION_LIMIT_REACHED")
		}
		if err != nil {
			return nil, err
		}
		e, err := newEndpoint(v, like.BusinessID, like.CustomerID, cloud.SubscriptionEndpoint, in.URL, now)
		if err != nil {
			return nil, err
		}
		e.ProviderID, e.Secret, e.Format, e.Signature = like.ProviderID, []byte(secret), in.Format, in.Signature
		id, err := v.NewID(cloud.SubscriptionIDs)
		if err != nil {
			return nil, err
		}
		row := fresh
		row.Begin(id, like.BusinessID, now)
		row.EndpointID = e.ID
		ch := &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}}
		ch.Rows = append(ch.Rows, row)
		for _, p := range parcels {
			id, err := v.NewID(cloud.SubscribedParcelIDs)
			if err != nil {
				return nil, err
			}
			p.Begin(id, like.BusinessID, now)
			p.SubscriptionID = row.ID
			ch.Rows = append(ch.Rows, p)
		}
		ch.Audits = append(ch.Audits, subscriptionAudit(c, row, now, "tracking_subscription_made"))
		b, err := v.Business(like.BusinessID)
		out = SubscriptionOutput{Result: true, Subscription: SubscriptionBody{s.showSubscription(row, e, b.Location()), numbersOf(parcels)}}
		return ch, err
	})
	if err != nil {
		return SubscriptionOutput{}, err
	}
	if in.Secret == "" {
		out.Secret, out.StandardSecret = secret, standardForm(secret)
	}
	return out, nil
}

// fill checks what an input says beside its parcels, and puts it into a subscription.
func (s subscriptions) fill(ctx context.Context, c cloud.Caller, in SubscriptionInput, to *cloud.Subscription) error {
	p := problems{}
	switch {
	case in.All && to.Level != cloud.BusinessLevel:
		p.add("all", "Only staff of the business subscribe to all of its parcels: give tracking_numbers.")
	case in.All == (len(in.Numbers) > 0):
		p.add("tracking_numbers", "Give tracking_numbers, or all: true.")
	}
	if len(in.URL) > maxURL {
		p.add("url", tooLong("url", in.URL))
	}
	switch {
	case in.Secret != "" && !goodSecret(in.Secret):
		p.add("secret", badSecret)
	case in.Secret == "" && isUnread(ctx, c):
		p.add("secret", "Give a secret: no person reads the answer that would show one.")
	}
	for _, e := range in.Events {
		if !slices.Contains(cloud.SubscriptionEvents(), e) {
			p.add("events", fmt.Sprintf(check.MessageEnum, "events", strings.Join(cloud.SubscriptionEvents(), ", ")))
			break
		}
	}
	to.Events, to.Codes = slices.Compact(slices.Sorted(slices.Values(in.Events))), []otep.Code{}
	if len(to.Events) == 0 {
		to.Events = cloud.SubscriptionEvents()[:1]
	}
	for _, text := range in.Codes {
		code, _, ok := otep.Canonical(text)
		if _, known := otep.Lookup(code); !ok || !known {
			p.add("codes", fmt.Sprintf("The code %q is not an OTEP status code.", text[:min(len(text), 64)]))
			break
		}
		if !slices.Contains(to.Codes, code) {
			to.Codes = append(to.Codes, code)
		}
	}
	l, err := s.zone(ctx, to.BusinessID)
	if err != nil {
		return err
	}
	if to.ExpiresAt = check.Moment(in.ExpiresAt, l).UTC().Truncate(time.Millisecond); in.ExpiresAt != "" && !to.ExpiresAt.After(time.Now()) {
		p.add("expires_at", "The moment must lie ahead.")
	}
	to.AccountID, to.Everything, to.Parcels = c.Account.ID, in.All, len(in.Numbers)
	if err := p.err(); err != nil {
		return err
	}
	return s.allowed(ctx, "url", in.URL)
}

// parcelsOf are the parcels that an input names, each once; of all parcels one without a shipment.
// Error: OTEP_TRACKING_NOT_FOUND.
func parcelsOf(v cloud.View, c cloud.Caller, in SubscriptionInput) (out []cloud.SubscribedParcel, err error) {
	if in.All {
		return []cloud.SubscribedParcel{{}}, nil
	}
	missing := []string{}
	for _, number := range in.Numbers {
		p, err := parcelOf(v, c, number)
		if errors.Is(err, cloud.ErrNotFound) {
			missing = append(missing, number)
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if len(missing) > 0 {
		return nil, &cloud.Error{Kind: cloud.NotFound, Code: "OTEP_TRACKING_NOT_FOUND", Details: map[string]any{"tracking_numbers": missing}}
	}
	return out, nil
}

// parcelOf is the newest parcel of a number that the caller owns. Error: cloud.ErrNotFound.
func parcelOf(v cloud.View, c cloud.Caller, number string) (p cloud.SubscribedParcel, err error) {
	key := cloud.NumberKey(number)
	if key == "" {
		return p, cloud.ErrNotFound
	}
	found, err := v.ShipmentsBySubject(c.Account.BusinessID, otep.Subject{TrackingNumber: number, ExternalTrackingNumber: number})
	if err != nil {
		return p, err
	}
	for _, s := range slices.Backward(found) {
		if !c.Owns(s) {
			continue
		}
		p.ShipmentID, p.Number = s.ID, number
		if s.OrderID == 0 || key == cloud.NumberKey(s.Number) || key == cloud.NumberKey(s.External) {
			return p, nil
		}
		packages, err := v.PackagesOf(s.BusinessID, s.OrderID)
		for _, x := range packages {
			if len(packages) > 1 && (key == x.Number || key == x.External) {
				p.PackageID = x.ID
				break
			}
		}
		return p, err
	}
	return p, cloud.ErrNotFound
}

func numbersOf(parcels []cloud.SubscribedParcel) []string {
	out := []string{}
	for _, p := range parcels {
		if p.ShipmentID != 0 {
			out = append(out, p.Number)
		}
	}
	return out
}

// ListSubscriptions shows a page of the caller's subscriptions, newest first. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, VALIDATION_FAILED.
func (s subscriptions) ListSubscriptions(ctx context.Context, c cloud.Caller, in SubscriptionsInput) (out SubscriptionsOutput, err error) {
	like, err := ofLevel(c)
	if err != nil {
		return out, err
	}
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		list, listed, err := cloud.List(v, like, page)
		if err != nil {
			return err
		}
		out = SubscriptionsOutput{Result: true, PageOutput: in.Output(in, listed), Subscriptions: []SubscriptionRow{}}
		b, err := v.Business(like.BusinessID)
		if err != nil {
			return err
		}
		endpoints, err := endpointsOf(v, like)
		for _, r := range list {
			out.Subscriptions = append(out.Subscriptions, s.showSubscription(r, endpoints[r.EndpointID], b.Location()))
		}
		return err
	})
	return out, err
}

// FindSubscription shows a subscription of the caller. Errors: ACCOUNT_TYPE_NOT_ALLOWED,
// TRACKING_SUBSCRIPTION_NOT_FOUND.
func (s subscriptions) FindSubscription(ctx context.Context, c cloud.Caller, in SubscriptionRef) (out SubscriptionOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		row, e, err := ownSubscription(v, c, in)
		if err != nil {
			return err
		}
		parcels, err := cloud.All(v, cloud.SubscribedParcel{Kept: cloud.Kept[cloud.SubscribedParcelID]{BusinessID: row.BusinessID}, SubscriptionID: row.ID})
		if err != nil {
			return err
		}
		b, err := v.Business(row.BusinessID)
		out = SubscriptionOutput{Result: err == nil, Subscription: SubscriptionBody{s.showSubscription(row, e, b.Location()), numbersOf(parcels)}}
		return err
	})
	return out, err
}

// Unsubscribe ends a subscription of the caller: nothing more is sent to its endpoint. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, TRACKING_SUBSCRIPTION_NOT_FOUND.
func (s subscriptions) Unsubscribe(ctx context.Context, c cloud.Caller, in SubscriptionRef) (out SubscriptionEnded, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		row, e, err := ownSubscription(v, c, in)
		if err != nil {
			return nil, err
		}
		parcels, err := cloud.All(v, cloud.SubscribedParcel{Kept: cloud.Kept[cloud.SubscribedParcelID]{BusinessID: row.BusinessID}, SubscriptionID: row.ID})
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{subscriptionAudit(c, row, now, "tracking_subscription_removed")}}}
		ch.DroppedRows = append([]cloud.Row{row}, cloud.AsRows(parcels)...)
		if e.ID != 0 {
			e.Enabled = false
			ch.Endpoints = append(ch.Endpoints, e)
		}
		return ch, nil
	})
	out.Result = err == nil
	return out, err
}

// ownSubscription finds a subscription of the caller's level with its endpoint.
func ownSubscription(v cloud.View, c cloud.Caller, in SubscriptionRef) (row cloud.Subscription, e cloud.Endpoint, err error) {
	like, err := ofLevel(c)
	if err != nil {
		return row, e, err
	}
	row, err = cloud.Find(v, cloud.Subscription{Kept: cloud.Kept[cloud.SubscriptionID]{ID: cloud.SubscriptionID(in.ID), BusinessID: like.BusinessID}})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (row.Level != like.Level || row.CustomerID != like.CustomerID || row.ProviderID != like.ProviderID) {
		err = cloud.E(cloud.NotFound, "TRACKING_SUBSCRIPTION_NOT_FOUND")
	}
	if err != nil {
		return row, e, err
	}
	endpoints, err := endpointsOf(v, like)
	return row, endpoints[row.EndpointID], err
}

// endpointsOf are those of the subscriptions of a level, and others.
func endpointsOf(v cloud.View, like cloud.Subscription) (map[cloud.EndpointID]cloud.Endpoint, error) {
	list, err := []cloud.Endpoint(nil), error(nil)
	if like.ProviderID != 0 {
		list, err = v.Endpoints(like.ProviderID)
	} else {
		list, err = v.AccountEndpoints(like.BusinessID)
	}
	out := make(map[cloud.EndpointID]cloud.Endpoint, len(list))
	for _, e := range list {
		out[e.ID] = e
	}
	return out, err
}

func (s subscriptions) showSubscription(r cloud.Subscription, e cloud.Endpoint, l *time.Location) SubscriptionRow {
	o := s.optionsOf(e)
	out := SubscriptionRow{ID: r.ID, All: r.Everything, Parcels: r.Parcels, URL: e.URL, URLID: r.EndpointID, Events: r.Events, Codes: append([]otep.Code{}, r.Codes...), Format: o.Format,
		Signature: o.Signature, PublicKey: o.PublicKey, SecretHint: hint(e.Secret), Status: e.Status, ExpiresAt: cloud.Stamp(r.ExpiresAt, l), CreatedAt: cloud.Stamp(r.CreatedAt, l)}
	if !r.ExpiresAt.IsZero() && !time.Now().Before(r.ExpiresAt) {
		out.Status = statusExpired
	}
	return out
}

func subscriptionAudit(c cloud.Caller, r cloud.Subscription, now time.Time, action string) cloud.Audit {
	return cloud.Audit{BusinessID: r.BusinessID, At: now, Actor: c.Account.ID.Actor(), Action: action, Target: fmt.Sprint("tracking_subscription:", r.ID), Detail: "{}"}
}

package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Levels of settings.
const (
	levelBusiness = "business"
	levelCustomer = "customer"
)

const (
	maxURLs = 5 // in one setting
	// of driver_location_min_interval_sec
	minPlaceEvery, maxPlaceEvery = 5, 3600
	maxHosts                     = 20 // of one level
	noEvents                     = "none"
	codeBlocked                  = "BLOCKED_URL"
)

// lifecycleEvents are what order_lifecycle_events may name.
var lifecycleEvents = []string{"order.driver_assigned", "order.driver_unassigned", "order.driver_accepted", "order.driver_declined", "order.pickup_started",
	"order.picked_up", "order.out_for_delivery", "order.delivered", "order.delivery_failed", "order.cancelled", "order.ready_for_pickup", "order.tracking_number_changed", "driver.on_duty_changed"}

// deviceEvents are what device_order_events may name.
var deviceEvents = []string{"device_order.stored", "device_order.picked_up", "device_order.removed", "device_order.overdue", "device_order.exception_opened",
	"device_order.exception_closed"}

// trackingEvents are what tracking_events may name.
var trackingEvents = []string{cloud.EventTracking, cloud.HookEventWithdrawn, cloud.HookEventDisputed, cloud.EventProof}

// LevelInput names the level whose settings are meant: a customer's, else the
// caller's own.
type LevelInput struct {
	CustomerID cloud.AccountID `query:"customer_id" json:"-" doc:"A customer of the business; empty: the business"`
}

// SettingsInput changes settings. Absent members stay; null and an empty text
// clear. Settings holds the same members, for callers that have them as one
// value.
type SettingsInput struct {
	LevelInput
	Secret          *string         `json:"webhook_sign_secret" doc:"16 to 128 characters; made with the first address of a level that has none"`
	SecretNext      *string         `json:"webhook_sign_secret_next" doc:"Signs beside the current one for the overlap, then takes its place"`
	OverlapHours    *int            `json:"overlap_hours" min:"0" max:"168" doc:"With webhook_sign_secret_next: hours in which the former secret signs on, 0 ends it at once; empty: 24"`
	OrderCreate     *string         `json:"order_create_webhook_url" doc:"Up to 5 https addresses with commas between them; of a customer also: none"`
	StatusChange    *string         `json:"order_status_change_webhook_url"`
	TrackingEvent   *string         `json:"tracking_event_webhook_url"`
	TrackingEvents  *string         `json:"tracking_events" doc:"Events for tracking_event_webhook_url: names with commas between them, each of which may end with a star; empty: tracking.event,pod.files_updated"`
	Postback        *string         `json:"order_create_async_postback_url"`
	ProofFiles      *string         `json:"pod_files_webhook_url"`
	OrderDeleted    *string         `json:"order_deleted_webhook_url"`
	CancelFailed    *string         `json:"order_cancel_failed_webhook_url"`
	Intercept       *string         `json:"order_intercept_webhook_url"`
	DeviceOrder     *string         `json:"device_order_webhook_url"`
	DeviceEvents    *string         `json:"device_order_events" doc:"Names with commas between them, each of which may end with a star; empty: all"`
	Lifecycle       *string         `json:"order_lifecycle_webhook_url"`
	LifecycleEvents *string         `json:"order_lifecycle_events" doc:"Names with commas between them, each of which may end with a star; empty: all"`
	DriverPlace     *string         `json:"driver_location_webhook_url" doc:"Of the business only"`
	PlaceEvery      *int            `json:"driver_location_min_interval_sec" min:"5" max:"3600" doc:"Seconds between events about one driver; empty: 60. Of the business only"`
	URLOptions      []URLOptions    `json:"webhook_url_options" null:"true" doc:"How what goes to an address is put and signed, for each that is not native; replaces the list"`
	Enabled         *bool           `json:"enabled" doc:"Whether anything goes to the addresses of this level"`
	Settings        json.RawMessage `json:"settings" doc:"The members above as one object"`

	given map[string]bool // members that were there
}

// UnmarshalJSON notes which members were there.
func (in *SettingsInput) UnmarshalJSON(raw []byte) error {
	type plain SettingsInput
	if err := json.Unmarshal(raw, (*plain)(in)); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	if in.given == nil {
		in.given = map[string]bool{}
	}
	for name := range members {
		in.given[name] = true
	}
	inner := in.Settings
	in.Settings = nil
	delete(in.given, "settings")
	if len(inner) == 0 || string(inner) == "null" {
		return nil
	}
	if inner[0] != '{' {
		f := check.Fields{}
		f.Say("settings", check.MessageObject)
		return f.Err()
	}
	if err := check.WrongType(inner, in); err != nil {
		return err
	}
	return in.UnmarshalJSON(inner)
}

// urls are the members that hold addresses, by setting.
func (in *SettingsInput) urls() map[string]*string {
	return map[string]*string{cloud.HookOrderCreate: in.OrderCreate, cloud.HookStatusChange: in.StatusChange, cloud.HookTrackingEvent: in.TrackingEvent,
		cloud.HookPostback: in.Postback, cloud.HookProofFiles: in.ProofFiles, cloud.HookOrderDeleted: in.OrderDeleted, cloud.HookCancelFailed: in.CancelFailed,
		cloud.HookIntercept: in.Intercept, cloud.HookDeviceOrder: in.DeviceOrder, cloud.HookOrderLifecycle: in.Lifecycle, cloud.HookDriverPlace: in.DriverPlace}
}

const (
	memberSecret = "webhook_sign_secret"
	memberNext   = "webhook_sign_secret_next"
	memberEvents = "order_lifecycle_events"
	memberDevice = "device_order_events"
	memberTrack  = "tracking_events"
	memberPlace  = "driver_location_min_interval_sec"
	memberFormat = "webhook_url_options"
	memberOn     = "enabled"
	memberHours  = "overlap_hours"
)

// check looks at everything that can be wrong whatever is stored. Errors:
// VALIDATION_FAILED, BLOCKED_URL.
func (s accountHooks) checkSettings(ctx context.Context, in *SettingsInput, customer bool) error {
	p := problems{}
	urls := in.urls()
	for name := range in.given {
		if _, ok := urls[name]; !ok && !slices.Contains([]string{memberSecret, memberNext, memberEvents, memberDevice, memberTrack, memberPlace, memberFormat, memberOn, memberHours}, name) {
			p.add(name, "There is no such setting.")
		}
	}
	for name, secret := range map[string]*string{memberSecret: in.Secret, memberNext: in.SecretNext} {
		if secret != nil && *secret != "" && !goodSecret(*secret) {
			p.add(name, badSecret)
		}
	}
	overlapOf(p, in.OverlapHours, 0)
	checkNames(p, memberEvents, in.LifecycleEvents, lifecycleEvents, "The events must be names of lifecycle events of orders.")
	checkNames(p, memberDevice, in.DeviceEvents, deviceEvents, "The events must be names of events of device orders.")
	checkNames(p, memberTrack, in.TrackingEvents, trackingEvents, "The events must be some of tracking.event, tracking.event_withdrawn, tracking.disputed, pod.files_updated.")
	for _, name := range []string{cloud.HookDriverPlace, memberPlace} {
		if customer && in.given[name] {
			p.add(name, "Only the business has this setting.")
		}
	}
	for i, o := range in.URLOptions {
		o.check(p, fmt.Sprintf("%s.%d", memberFormat, i))
	}
	blocked := &cloud.Error{Kind: cloud.Invalid, Code: codeBlocked, Fields: problems{}, Details: map[string]any{}}
	for name, value := range urls {
		if value == nil || customer && strings.TrimSpace(*value) == noEvents {
			continue
		}
		list := split(*value)
		if len(list) > maxURLs {
			p.add(name, "Give at most 5 addresses.")
			continue
		}
		for _, u := range list {
			if len(u) > maxURL {
				p.add(name, tooLong(name, u))
			} else if err := s.guard.CheckURL(ctx, u); err != nil {
				blocked.Fields[name] = []string{"This address cannot be used: it must be a public https address that our guard accepts."}
				blocked.Details[name] = err.Error()
			}
		}
	}
	if err := p.err(); err != nil || len(blocked.Fields) == 0 {
		return err
	}
	return blocked
}

// checkNames checks a list of events, each of which may stand for several.
func checkNames(p problems, member string, list *string, known []string, message string) {
	if list == nil {
		return
	}
	for _, name := range split(*list) {
		if !slices.ContainsFunc(known, func(e string) bool { return cloud.HookNamed([]string{name}, e) }) {
			p.add(member, message)
			return
		}
	}
}

// split are the parts of a list with commas, each once.
func split(list string) (out []string) {
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

// levelOf is the level that a caller means: staff name one of their business's
// customers, a customer has only its own. Errors: ACCOUNT_TYPE_NOT_ALLOWED,
// CUSTOMER_NOT_FOUND.
func levelOf(v cloud.View, c cloud.Caller, in LevelInput) (cloud.BusinessID, cloud.AccountID, error) {
	b := c.Account.BusinessID
	switch {
	case c.Account.Type == cloud.Customer:
		return b, c.Account.ID, nil
	case c.Account.Type != cloud.ClientAdmin:
		return 0, 0, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	case in.CustomerID == 0:
		return b, 0, nil
	}
	a, err := v.Account(in.CustomerID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (a.BusinessID != b || a.Type != cloud.Customer) {
		err = cloud.E(cloud.NotFound, "CUSTOMER_NOT_FOUND")
	}
	return b, in.CustomerID, err
}

// FindSettings shows a level's settings. Errors: ACCOUNT_TYPE_NOT_ALLOWED,
// CUSTOMER_NOT_FOUND.
func (s accountHooks) FindSettings(ctx context.Context, c cloud.Caller, in LevelInput) (out SettingsOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, customer, err := levelOf(v, c, in)
		if err == nil {
			out, err = s.showSettings(v, c, b, customer)
		}
		return err
	})
	if err != nil || len(out.URLs) == 0 {
		return out, err
	}
	list, err := s.health(ctx, c)
	for _, h := range list {
		if i := slices.IndexFunc(out.URLs, func(u URLBody) bool { return u.URLID == h.URLID }); i >= 0 {
			out.URLs[i].Status, out.URLs[i].Since = h.Status, h.Since
		}
	}
	return out, err
}

// SaveSettings changes a level's settings. Saving sends what was paused, and
// tries addresses again that said they were gone. A level's first address brings a
// secret, shown in this answer once; where no person reads it, the secret stays
// unseen and SettingsOutput says how a person makes another one. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, CUSTOMER_NOT_FOUND, VALIDATION_FAILED, BLOCKED_URL.
func (s accountHooks) SaveSettings(ctx context.Context, c cloud.Caller, in SettingsInput) (out SettingsOutput, err error) {
	if err := s.checkSettings(ctx, &in, c.Account.Type == cloud.Customer || in.CustomerID != 0); err != nil {
		return out, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	var saved []cloud.Endpoint
	dropped, made := false, ""
	unread := isUnread(ctx, c)
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, customer, err := levelOf(v, c, in.LevelInput)
		if err != nil {
			return nil, err
		}
		to, business, err := levels(v, b, customer)
		if err != nil {
			return nil, err
		}
		all, err := v.AccountEndpoints(b)
		if err != nil {
			return nil, err
		}
		k := settingsWriter{v: v, now: now, unread: unread, overlap: overlapOf(problems{}, in.OverlapHours, s.overlap), to: to, was: to, business: business, all: all}
		if err := k.save(&in); err != nil {
			return nil, err
		}
		saved, dropped, made = k.endpoints, k.dropped, k.made
		a := audit(c, b, now, "webhook_settings_saved", 0)
		detail, err := json.Marshal(map[string]any{"members": slices.Sorted(maps.Keys(in.given))})
		a.Target, a.Detail = fmt.Sprintf("webhook_settings:%d", customer), string(detail)
		return &cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{k.to}, Endpoints: saved}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}}, err
	})
	if err != nil {
		return out, err
	}
	for _, e := range saved {
		if e.Enabled && cloud.PreviewOf(ctx) == nil {
			if err := s.store.EndPause(ctx, e.ID, now, ""); err != nil {
				return out, fmt.Errorf("resume deliveries of endpoint %d: %w", e.ID, err)
			}
		}
	}
	out, err = s.FindSettings(ctx, c, in.LevelInput)
	out.DroppedOldest = dropped
	if !unread {
		out.Generated = made
		out.StandardSecret, out.StandardNext = standardForm(cmp.Or(made, given(in.Secret))), standardForm(given(in.SecretNext))
	}
	return out, err
}

// isUnread reports whether no person reads the answer of a call: it goes to a tool,
// or is kept with the approval that let the call through.
func isUnread(ctx context.Context, c cloud.Caller) bool {
	call := cloud.CallOf(ctx)
	return c.Surface == "mcp" || call != nil && call.Via.Consent == "approval"
}

// given is a text, "" for null.
func given(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// levels reads a level and its business's own; they are the same for customer 0.
func levels(v cloud.View, b cloud.BusinessID, customer cloud.AccountID) (to, business cloud.WebhookSettings, err error) {
	read := func(customer cloud.AccountID) cloud.WebhookSettings {
		s, e := v.WebhookSettings(b, customer)
		if e != nil && !errors.Is(e, cloud.ErrNotFound) {
			err = e
		}
		s.BusinessID, s.CustomerID = b, customer
		return s
	}
	business = read(0)
	if to = business; customer != 0 {
		to = read(customer)
	}
	return to, business, err
}

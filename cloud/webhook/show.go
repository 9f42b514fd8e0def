package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// SettingsOutput shows one level's settings, and in Effective which level each
// setting is taken from; one that is in neither is not there.
type SettingsOutput struct {
	Result        bool              `json:"result"`
	Level         string            `json:"level"` // business, customer
	CustomerID    *cloud.AccountID  `json:"customer_id"`
	Settings      SettingsBody      `json:"settings" graphql:"JSON"`
	Effective     map[string]string `json:"effective"`
	URLs          []URLBody         `json:"urls" graphql:"[JSON!]"`
	DroppedOldest bool              `json:"dropped_oldest"` // a secret ended before its overlap did
	Warnings      []string          `json:"warnings"`
	// Unseen says that no person has seen the level's secret, as a tool or an approved
	// call made it; SecretPage is the page where staff make another one, null while
	// there is no such page or secret.
	Unseen     bool    `json:"secret_unseen"`
	SecretPage *string `json:"secret_page"`
	// Generated is the secret of a level that had none when it got its first address;
	// shown once.
	Generated string `json:"generated_secret,omitempty"`
	// The forms of secrets that this call has set which libraries of Standard
	// Webhooks want, where those are others; shown once.
	StandardSecret string `json:"webhook_sign_secret_standard,omitempty"`
	StandardNext   string `json:"webhook_sign_secret_next_standard,omitempty"`
}

// SettingsBody are the settings of a level. A member that is not set is null; "none" says
// that no endpoint gets the event. Of secrets only the last four characters are shown.
type SettingsBody struct {
	Secret          *string          `json:"webhook_sign_secret"`
	SecretNext      *string          `json:"webhook_sign_secret_next"`
	OrderCreate     *string          `json:"order_create_webhook_url"`
	StatusChange    *string          `json:"order_status_change_webhook_url"`
	TrackingEvent   *string          `json:"tracking_event_webhook_url"`
	TrackingEvents  *string          `json:"tracking_events"`
	Postback        *string          `json:"order_create_async_postback_url"`
	ProofFiles      *string          `json:"pod_files_webhook_url"`
	OrderDeleted    *string          `json:"order_deleted_webhook_url"`
	CancelFailed    *string          `json:"order_cancel_failed_webhook_url"`
	Intercept       *string          `json:"order_intercept_webhook_url"`
	DeviceOrder     *string          `json:"device_order_webhook_url"`
	DeviceEvents    *string          `json:"device_order_events"`
	Lifecycle       *string          `json:"order_lifecycle_webhook_url"`
	LifecycleEvents *string          `json:"order_lifecycle_events"`
	DriverPlace     *string          `json:"driver_location_webhook_url"`
	PlaceEvery      *int             `json:"driver_location_min_interval_sec"`
	URLOptions      []URLOptionsBody `json:"webhook_url_options"`
	Enabled         bool             `json:"enabled"`
}

// URLBody is the health of one address of a level.
type URLBody struct {
	URLID    cloud.EndpointID `json:"url_id"`
	URL      string           `json:"url"`
	Settings []string         `json:"settings"`
	Status   string           `json:"status"` // healthy, degraded, paused, gone
	Since    *string          `json:"since"`
}

// GraphQLName is the name of the type in GraphQL.
func (SettingsOutput) GraphQLName() string { return "WebhookSettings" }

// GraphQLName is the name of the type in GraphQL.
func (SettingsInput) GraphQLName() string { return "WebhookSettings" }

func (s accountHooks) showSettings(v cloud.View, c cloud.Caller, id cloud.BusinessID, customer cloud.AccountID) (SettingsOutput, error) {
	own, business, err := levels(v, id, customer)
	if err != nil {
		return SettingsOutput{}, err
	}
	b, err := v.Business(id)
	if err != nil {
		return SettingsOutput{}, err
	}
	out := SettingsOutput{Result: true, Level: levelBusiness, CustomerID: cloud.OrNull(customer), Effective: map[string]string{}, URLs: []URLBody{}}
	if customer != 0 {
		out.Level = levelCustomer
	}
	current, next := own.Secrets(time.Now())
	url := func(setting string) *string { return addressText(own, setting) }
	out.Settings = SettingsBody{Secret: maskSecret(current), SecretNext: maskSecret(next), OrderCreate: url(cloud.HookOrderCreate), StatusChange: url(cloud.HookStatusChange),
		TrackingEvent: url(cloud.HookTrackingEvent), Postback: url(cloud.HookPostback), ProofFiles: url(cloud.HookProofFiles), OrderDeleted: url(cloud.HookOrderDeleted),
		CancelFailed: url(cloud.HookCancelFailed), Intercept: url(cloud.HookIntercept), DeviceOrder: url(cloud.HookDeviceOrder),
		Lifecycle: url(cloud.HookOrderLifecycle), DriverPlace: url(cloud.HookDriverPlace), PlaceEvery: cloud.OrNull(int(own.PlaceEvery / time.Second)), DeviceEvents: cloud.OrNull(strings.Join(own.DeviceEvents, ",")),
		LifecycleEvents: cloud.OrNull(strings.Join(own.LifecycleEvents, ",")), TrackingEvents: cloud.OrNull(strings.Join(own.TrackingEvents, ",")), URLOptions: []URLOptionsBody{}, Enabled: !own.Off}
	supplied := map[string]func(cloud.WebhookSettings) bool{
		memberSecret: func(s cloud.WebhookSettings) bool { return len(s.Secret) > 0 },
		memberEvents: func(s cloud.WebhookSettings) bool { return s.LifecycleEvents != nil },
		memberDevice: func(s cloud.WebhookSettings) bool { return s.DeviceEvents != nil },
		memberTrack:  func(s cloud.WebhookSettings) bool { return s.TrackingEvents != nil },
		memberPlace:  func(s cloud.WebhookSettings) bool { return s.PlaceEvery != 0 },
	}
	for _, setting := range cloud.HookSettings() {
		supplied[setting] = has(setting)
	}
	for name, there := range supplied {
		switch {
		case there(own):
			out.Effective[name] = out.Level
		case there(business):
			out.Effective[name] = levelBusiness
		}
	}
	all, err := v.AccountEndpoints(id)
	signed := []cloud.Endpoint{}
	for _, e := range all {
		if u := used(own, e.ID); len(u) > 0 {
			signed = append(signed, e)
			if o := s.optionsOf(e); o.Format != cloud.FormatNative || o.Signature != cloud.SignatureNative || o.Rate != nil || o.Sequence {
				out.Settings.URLOptions = append(out.Settings.URLOptions, o)
			}
			out.URLs = append(out.URLs, URLBody{URLID: e.ID, URL: e.URL, Settings: u, Status: e.Status, Since: cloud.Stamp(e.StatusSince, b.Location())})
		}
	}
	if len(current) == 0 {
		current, next = business.Secrets(time.Now())
	}
	out.Warnings = weak(signed, current, next)
	slices.SortFunc(out.URLs, func(a, b URLBody) int { return cmp.Compare(a.URLID, b.URLID) })
	out.unseen(c, own)
	return out, err
}

// unseen says what to do about a secret that no person has seen. A customer, which
// has no such page, sets one of its own.
func (out *SettingsOutput) unseen(c cloud.Caller, own cloud.WebhookSettings) {
	if out.Unseen = own.Unseen; !own.Unseen {
		return
	}
	text := locale.Word(c.Language, "hooklog.unseen.customer")
	if c.Account.Type != cloud.Customer && len(out.URLs) > 0 {
		page := fmt.Sprintf("%s/console/webhooks/receivers/%d", c.BaseURL, out.URLs[0].URLID)
		out.SecretPage = &page
		text = locale.Word(c.Language, "hooklog.unseen.staff", page)
	}
	out.Warnings = append(out.Warnings, text)
}

// used are the settings of a level that name an endpoint.
func used(s cloud.WebhookSettings, id cloud.EndpointID) (out []string) {
	for _, setting := range cloud.HookSettings() {
		if slices.ContainsFunc(s.URLs[setting], func(u cloud.HookURL) bool { return u.EndpointID == id }) {
			out = append(out, setting)
		}
	}
	return out
}

// addressText is a setting as it is shown.
func addressText(s cloud.WebhookSettings, setting string) *string {
	list, ok := s.URLs[setting]
	if !ok {
		return nil
	}
	urls := []string{}
	for _, u := range list {
		urls = append(urls, u.URL)
	}
	text := cmp.Or(strings.Join(urls, ","), noEvents)
	return &text
}

// maskSecret is what is shown of a secret.
func maskSecret(secret []byte) *string {
	if len(secret) < 16 {
		return nil
	}
	text := "***" + string(secret[len(secret)-4:])
	return &text
}

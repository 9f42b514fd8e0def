package cloud

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// found is a View of one thing of each kind that previews have a rule for. broken is the
// error of all its reads.
type found struct {
	missing
	broken error
}

func (f found) Order(BusinessID, OrderID) (Order, error) {
	return Order{ID: 1, Number: "A1", Note: "x"}, f.broken
}
func (f found) Job(BusinessID, string) (Job, error) {
	return Job{ID: "bat_1", Operation: "orders.hold", Status: "queued"}, f.broken
}
func (f found) Business(BusinessID) (Business, error) {
	return Business{ID: 42, Name: "Acme"}, f.broken
}
func (f found) WebhookSettings(BusinessID, AccountID) (WebhookSettings, error) {
	return WebhookSettings{Secret: []byte("old")}, f.broken
}
func (f found) Approval(BusinessID, ApprovalID) (Approval, error) {
	return Approval{ID: "apr_1", Status: "pending"}, f.broken
}
func (f found) ChatMessage(BusinessID, ChatMessageID) (ChatMessage, error) {
	return ChatMessage{ID: 5, Text: "Hello"}, f.broken
}
func (f found) Provider(ProviderID) (Provider, error) { return Provider{ID: 17}, f.broken }
func (f found) Account(AccountID) (Account, error) {
	return Account{ID: 9, Type: Customer, Email: "a@example.com", Enabled: true, PasswordHash: "p"}, f.broken
}
func (f found) Token([32]byte) (Token, error)                   { return Token{ID: 3}, f.broken }
func (f found) Device(DeviceID) (Device, error)                 { return Device{ID: 88}, f.broken }
func (f found) Compartment(DeviceID, uint) (Compartment, error) { return Compartment{}, f.broken }
func (f found) Delivery(DeliveryID) (Delivery, error)           { return Delivery{Status: "reserved"}, f.broken }
func (f found) DeviceOrder(BusinessID, DeviceOrderID) (DeviceOrder, error) {
	return DeviceOrder{ID: 4, Status: "stored"}, f.broken
}
func (f found) Command(string) (Command, error) { return Command{}, f.broken }
func (f found) Interception(BusinessID, InterceptionID) (Interception, error) {
	return Interception{}, f.broken
}
func (f found) Assignment(BusinessID, AssignmentID) (Assignment, error) {
	return Assignment{}, f.broken
}
func (f found) ThirdParty(BusinessID, ThirdPartyID) (ThirdPartyAssignment, error) {
	return ThirdPartyAssignment{}, f.broken
}
func (f found) Route(BusinessID, RouteID) (Route, error) { return Route{}, f.broken }

func (missing) Job(BusinessID, string) (Job, error) { return Job{}, ErrNotFound }

// A thing that is written as it was, but for the time of its change, changes nothing.
func TestPreviewsShowNothingOfWhatStaysAsItWas(t *testing.T) {
	t.Parallel()
	p := &Preview{}
	c := &Changes{}
	c.Routes = []Route{{UpdatedAt: time.Unix(5, 0)}}
	c.Accounts = []Account{{ID: 9, Type: Customer, Email: "a@example.com", Enabled: true, PasswordHash: "p"}}
	c.Devices = []Device{{ID: 88}}
	c.Audits = []Audit{{}}
	require.NoError(t, p.Take(found{}, c))
	require.Empty(t, p.Effects())
	require.Equal(t, Marks{}, p.Marks())
}

// Each kind of things has an effect of its own, of a new one and of one that is there:
// its type, id, name and members.
func TestPreviewsShowEachKind(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	changed := m{"changed": true}
	for _, x := range []struct {
		c        Changes
		want     Effect // of one that is there
		newAfter m      // of a new one, among others; nil: it is like one that is there
	}{
		{Changes{OrderChanges: OrderChanges{Orders: []Order{{ID: 1, Number: "A1", Note: "y"}}}}, Effect{Type: "order", ID: OrderID(1), Name: "A1", Before: m{"note": OrNull("x")}, After: m{"note": OrNull("y")}}, nil},
		{Changes{JobChanges: JobChanges{Jobs: []Job{{ID: "bat_1", Operation: "orders.hold", Status: "cancelled"}}}}, Effect{Type: "job", ID: "bat_1", Name: "bat_1", Before: m{"status": "queued"}, After: m{"status": "cancelled"}}, m{"operation": "orders.hold"}},
		{Changes{JobChanges: JobChanges{Jobs: []Job{{ID: "bat_1", Total: 3}}}}, Effect{Type: "order_batch", After: m{"orders": 3, "stop_on_error": false, "postback": false}}, nil},
		{Changes{HookChanges: HookChanges{WebhookSettings: []WebhookSettings{{BusinessID: 42, Secret: []byte("new")}}}}, Effect{Type: "webhook_settings", ID: BusinessID(42), Before: m{"webhook_sign_secret": "set"}, After: m{"webhook_sign_secret": "another one"}}, nil},
		{Changes{ApprovalChanges: ApprovalChanges{Approvals: []Approval{{ID: "apr_1", Status: "rejected"}}}}, Effect{Type: "approval", ID: ApprovalID("apr_1"), Name: "apr_1", Before: m{"status": "pending"}, After: m{"status": "rejected"}}, m{"status": "rejected"}},
		{Changes{ChatChanges: ChatChanges{ChatMessages: []ChatMessage{{ID: 5, Text: "Hi"}}}}, Effect{Type: "chat_message", ID: ChatMessageID(5), Before: m{"text": OrNull("Hello")}, After: m{"text": OrNull("Hi")}}, m{"text": OrNull("Hi")}},
		{Changes{AccountChanges: AccountChanges{Businesses: []Business{{ID: 42, Name: "Acme Ltd"}}}}, Effect{Type: "business", ID: BusinessID(42), Name: "Acme Ltd", Before: m{"name": "Acme"}, After: m{"changed": true, "name": "Acme Ltd"}}, nil},
		{Changes{AccountChanges: AccountChanges{Providers: []Provider{{ID: 17, Name: "Fast"}}}}, Effect{Type: "provider", ID: ProviderID(17), Name: "Fast", Before: m{"name": ""}, After: m{"changed": true, "name": "Fast"}}, m{"new": true, "name": "Fast"}},
		{Changes{AccountChanges: AccountChanges{Accounts: []Account{{ID: 9, Name: "Ada", Type: Customer, Email: "b@example.com", Permissions: []string{"orders:read"}, PasswordHash: "q"}}}},
			Effect{Type: "account", ID: AccountID(9), Name: "Ada", Before: m{"name": (*string)(nil), "account_type": Customer, "email": "a@example.com", "enabled": true},
				After: m{"changed": true, "name": OrNull("Ada"), "account_type": Customer, "email": "b@example.com", "enabled": false, "permissions": []string{"orders:read"}, "password": Masked}}, m{"new": true, "email": "b@example.com", "password": Masked}},
		{Changes{AccountChanges: AccountChanges{Tokens: []Token{{ID: 3, Name: "Key", Scopes: []string{"orders:read"}, IPAllowlist: []string{"198.51.100.7"}, Policy: KeyPolicy{Approval: AskAll}}}}},
			Effect{Type: "token", ID: Token{ID: 3}.ID, Name: "Key", Before: m{"profile": "full", "require_approval": AskNever},
				After: m{"changed": true, "scopes": []string{"orders:read"}, "ip_allowlist": []string{"198.51.100.7"}, "require_approval": AskAll}}, m{"new": true, "scopes": []string{"orders:read"}}},
		{Changes{DeviceChanges: DeviceChanges{Devices: []Device{{ID: 88, Code: "F-1", Disabled: true}}}}, Effect{Type: "device", ID: DeviceID(88), Name: "F-1", Before: m{"enabled": true}, After: m{"changed": true, "enabled": false}}, m{"new": true, "enabled": false}},
		{Changes{LockerChanges: LockerChanges{Compartments: []Compartment{{DeviceID: 88, Door: 4, GridCode: "A4"}}}}, Effect{Type: "compartment", ID: "88/4", Name: "A4", Before: m{}, After: changed}, m{"new": true}},
		{Changes{LockerChanges: LockerChanges{Deliveries: []Delivery{{ID: 6, Number: "D-6", Status: "deposited"}}}}, Effect{Type: "delivery", ID: DeliveryID(6), Name: "D-6", Before: m{"status": Delivery{Status: "reserved"}.Status}, After: m{"changed": true, "status": Delivery{Status: "deposited"}.Status}}, m{"new": true}},
		{Changes{LockerChanges: LockerChanges{Commands: []Command{{ID: "c-1"}}}}, Effect{Type: "command", ID: Command{ID: "c-1"}.ID, Before: m{}, After: changed}, m{"new": true}},
		{Changes{InterceptionChanges: InterceptionChanges{Interceptions: []Interception{{ID: 2, Status: "ended"}}}}, Effect{Type: "interception", ID: InterceptionID(2), Before: m{"status": ""}, After: m{"changed": true, "status": "ended"}}, m{"new": true}},
		{Changes{AssignmentChanges: AssignmentChanges{Assignments: []Assignment{{ID: 2}}}}, Effect{Type: "assignment", ID: AssignmentID(2), Before: m{}, After: changed}, m{"new": true}},
		{Changes{ThirdPartyChanges: ThirdPartyChanges{ThirdParties: []ThirdPartyAssignment{{ID: 2}}}}, Effect{Type: "third_party", ID: ThirdPartyID(2), Before: m{}, After: changed}, m{"new": true}},
		{Changes{RouteChanges: RouteChanges{Routes: []Route{{ID: 2, Name: "Round"}}}}, Effect{Type: "route", ID: RouteID(2), Name: "Round", Before: m{"name": (*string)(nil)}, After: m{"changed": true, "name": OrNull("Round")}}, m{"new": true}},
	} {
		take := func(v View) Effect {
			p := &Preview{}
			require.NoError(t, p.Take(v, &x.c), x.want.Type)
			require.Len(t, p.Effects(), 1, x.want.Type)
			e := p.Effects()[0]
			e.version = ""
			return e
		}
		require.Equal(t, x.want, take(found{}))
		if x.newAfter != nil {
			e := take(missing{})
			require.Equal(t, []any{x.want.Type, nil, map[string]any(nil)}, []any{e.Type, e.ID, e.Before})
			for name, value := range x.newAfter {
				require.Equal(t, value, e.After[name], "%s.%s", x.want.Type, name)
			}
		}
		broken := errors.New("the disk is gone")
		require.ErrorIs(t, (&Preview{}).Take(found{broken: broken}, &x.c), broken, x.want.Type)
	}
}

func TestPreviewsShowOrdersThatAreRemoved(t *testing.T) {
	t.Parallel()
	p := &Preview{}
	c := &Changes{OrderChanges: OrderChanges{DroppedOrders: []OrderKey{{42, 1}}}}
	require.NoError(t, p.Take(found{}, c))
	require.Len(t, p.Effects(), 1)
	e := p.Effects()[0]
	require.Equal(t, []any{"order", OrderID(1), "A1", OrNull("x"), map[string]any(nil)}, []any{e.Type, e.ID, e.Name, e.Before["note"], e.After})
	require.ErrorIs(t, p.Take(found{broken: ErrNotFound}, c), ErrNotFound)
}

// Settings of webhooks show whether there is a secret, and that it is another one.
func TestPreviewsHideSecretsOfWebhooks(t *testing.T) {
	t.Parallel()
	take := func(s WebhookSettings) map[string]any {
		p := &Preview{}
		require.NoError(t, p.Take(found{}, &Changes{HookChanges: HookChanges{WebhookSettings: []WebhookSettings{s}}}))
		require.Len(t, p.Effects(), 1)
		return p.Effects()[0].After
	}
	require.Equal(t, map[string]any{"webhook_sign_secret": "not set"}, take(WebhookSettings{}))
	require.Equal(t, map[string]any{"webhook_sign_secret_next": "set", "enabled": false}, take(WebhookSettings{Secret: []byte("old"), SecretNext: []byte("n"), Off: true}))
	require.Equal(t, map[string]any{"driver_location_min_interval_sec": 90}, take(WebhookSettings{Secret: []byte("old"), PlaceEvery: 90 * time.Second}))
}

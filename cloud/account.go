package cloud

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Business is one tenant.
type Business struct {
	ID           BusinessID
	Code, Name   string
	Timezone     string // IANA name
	SupportPhone string
	SupportEmail string
	Settings     Settings
}

// AccountType says what a caller is.
type AccountType string

// Account types.
const (
	ClientAdmin    AccountType = "client_admin"
	ClientEmployee AccountType = "client_employee"
	Broker         AccountType = "broker"
	DriverAccount  AccountType = "driver"
	Customer       AccountType = "customer"
	ProviderType   AccountType = "provider"
	PlatformAdmin  AccountType = "platform_admin"
)

// IsStaff reports whether a caller is of the business's own people.
func (t AccountType) IsStaff() bool { return t == ClientAdmin || t == ClientEmployee }

// Actor is how audit lines name an account.
func (a AccountID) Actor() string { return "account:" + strconv.FormatInt(int64(a), 10) }

// Account is a person or system that can hold a token.
type Account struct {
	ID           AccountID
	BusinessID   BusinessID
	Type         AccountType
	Email        string // lower case; empty for providers
	Name         string
	PasswordHash string // argon2id in PHC form; empty when none
	ProviderID   ProviderID
	Permissions  []string // scopes of a client employee
	PriceHidden  []string // families of orders whose prices a customer does not see
	Locale       string
	Enabled      bool
	CreatedAt    time.Time
	// MailProof is the mark of address and password at which the person behind the
	// account showed that the mailbox is theirs; nil: never. IsMailProven reads it.
	MailProof []byte
	// PreferredDevice is the cabinet that a customer prefers; 0: none.
	PreferredDevice DeviceID
}

// mailMark stands for an account's address and password together.
func (a Account) mailMark() []byte {
	sum := sha256.Sum256([]byte("mail\x00" + strings.ToLower(a.Email) + "\x00" + a.PasswordHash))
	return sum[:]
}

// ProveMail says that the person who chose the account's password reads the account's
// mailbox. It ends with the address and with the password.
func (a *Account) ProveMail() { a.MailProof = a.mailMark() }

// IsMailProven reports whether the person who knows the account's password has shown that
// the mailbox is theirs: neither was set by another person since.
func (a Account) IsMailProven() bool {
	return a.Email != "" && a.PasswordHash != "" && bytes.Equal(a.MailProof, a.mailMark())
}

// Token is an access token. Only its hash is kept.
type Token struct {
	Hash      [32]byte // SHA-256 of the token
	AccountID AccountID
	Name      string
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time

	// Of keys only. A key with an id was made in the settings; a login has none.
	ID TokenID
	// Scopes that a key is narrowed to; empty: those of Profile, and when that
	// is empty too, everything that the account may.
	Scopes      []string
	Profile     string
	IPAllowlist []string // addresses and prefixes it may come from; empty: any
	// Policy is what may be done without a person; of tokens with a grant, too.
	Policy KeyPolicy

	// Strong says of a login that a passkey or a sign-in provider let in, which is as
	// good as a second factor.
	Strong bool

	// Of tokens of the authorization server only, which have a grant. Their
	// scopes are what was granted.
	Grant    OAuthGrantID
	Kind     TokenKind
	Audience string // address of the tool server that it is good at, or of the deployment: at all of them
}

// Login reports whether a token is one of a person who logged in: neither a key
// nor an agent's.
func (t Token) Login() bool { return t.ID == 0 && t.Grant == 0 }

// Source tells tokens of an account apart, for as long as the key or grant is
// there: key/7, grant/12. All logins are one: login.
func (t Token) Source() string {
	switch {
	case t.Grant != 0:
		return fmt.Sprintf("grant/%d", t.Grant)
	case t.ID != 0:
		return fmt.Sprintf("key/%d", t.ID)
	}
	return "login"
}

// AccountFilter chooses accounts of a business. Zero fields choose all.
type AccountFilter struct {
	BusinessID BusinessID
	Types      []AccountType
	ProviderID ProviderID
	Enabled    bool // only those
	Email      string
	Page       Page
}

// Caller is who asks: the account behind a token. The zero Caller is anonymous.
type Caller struct {
	Account  Account
	Provider Provider // when Account.Type is ProviderType
	Language string   // of messages, as in cloud/locale
	Scopes   []string // that the call is narrowed to; nil is everything that the account may
	BaseURL  string   // own address as the caller reaches it, without a slash at the end
	// PublicURL is the own address in what others get of a call: events, messages.
	// BaseURL may be what the caller's Host header says. Empty: BaseURL, which no
	// caller chose.
	PublicURL string
	// Surface is how the call came: web, api, graphql, mcp, import, app. Empty
	// is api.
	Surface string
	// Recipient is the order whose chat token the call came with, 0 for all other
	// calls. Such a caller has no account but its order's business, and may do what
	// operations for recipients do about that order.
	Recipient OrderID
	// Pass is what an operator of the platform acts by inside a business, 0 for all
	// other calls. Account is the operator's, as an administrator of that business.
	Pass PassID
}

// ForOthers is the caller as the maker of what others get: links begin with
// PublicURL.
func (c Caller) ForOthers() Caller {
	c.BaseURL = cmp.Or(c.PublicURL, c.BaseURL)
	return c
}

// RecipientToken is what tokens of recipients begin with.
const RecipientToken = "oct_"

// Anonymous reports whether the call has no account and no recipient.
func (c Caller) Anonymous() bool { return c.Account.ID == 0 && c.Recipient == 0 }

// Provider is a carrier or delivery partner.
type Provider struct {
	ID              ProviderID
	BusinessID      BusinessID
	Code, Name      string
	Services        []string // some of Services
	LivemodeAllowed bool
	// SourceType is what the provider's events are, as in OTEP's source.type;
	// empty is stored as partner.
	SourceType string
	Scope      string // whose timelines it may add to and pull; empty is stored as own
	Authority  string // of its events: AuthorityMoves or AuthorityReports; empty is stored as the first
	CreatedAt  time.Time
}

// Services of a provider.
const (
	ServiceLocker     = "locker"
	ServiceThirdParty = "third_party"
	ServiceTracking   = "otep"
)

// Scopes of a provider.
const (
	ScopeOwn = "own" // shipments handed to it
	ScopeAll = "all" // every shipment of its business
)

// Authority of a provider's events.
const (
	AuthorityMoves   = "moves"   // they take over orders that rest
	AuthorityReports = "reports" // they are shown, and count for nothing unless the order was handed to it
)

// Endpoint is a webhook receiver: a provider's, or one address of the account
// channel, whose secrets are those of its level's settings.
type Endpoint struct {
	ID             EndpointID
	BusinessID     BusinessID
	ProviderID     ProviderID // 0 in the account channel
	CustomerID     AccountID  // whose level; 0: the business's
	Kind           string     // locker_provider, third_party_delivery, account, postback
	URL            string
	SandboxURL     string
	SandboxEnabled bool
	Events         []string // ["*"] or names
	Categories     []string // of a third party's events, some of ThirdPartyCategories; empty: all
	Secret         []byte   // encrypted at rest by the store's sealer
	SecretNext     []byte   // during a rotation
	NextUntil      time.Time
	Format         string  // one of HookFormats, "" is native
	Signature      string  // one of HookSignatures, "" is native
	SigningKey     []byte  // seed of the Ed25519 key, encrypted at rest
	Rate           float64 // attempts a second at most; 0: no bound
	Numbered       bool    // what goes to it gets running numbers
	Burst          int     // attempts at once, where Rate is set; 0 is 1
	Scheme         string  // of a test send, not stored: account, provider, ohp; "" is its channel's
	Enabled        bool
	Status         string // healthy, degraded, paused, gone
	StatusSince    time.Time
	StatusReason   string // of a pause: one of the PausedBy…; else ""
	CreatedAt      time.Time
	// Suspended says that the business is: what waits is sent when it is not any more.
	// It is read with the endpoint and not stored there.
	Suspended bool
}

// Kinds of endpoints of providers.
const (
	LockerEndpoint     = "locker_provider"
	ThirdPartyEndpoint = "third_party_delivery"
)

// thirdPartyCategory is what an event of a third party is about.
var thirdPartyCategory = map[string]string{"third_party_delivery.created": "assignment", "third_party_delivery.packages_handed_over": "handover",
	"third_party_delivery.cancelled": "cancellation", "third_party_delivery.partial_delivery": "outcome"}

// ThirdPartyCategories are what an endpoint of a third party may choose of.
func ThirdPartyCategories() []string {
	return []string{"assignment", "handover", "cancellation", "outcome"}
}

// Why an endpoint is paused.
const (
	PausedByHand    = "by_hand"
	PausedByRule    = "rule"      // it did nothing but fail for long
	PausedByItsWord = "directive" // it asked for it in an answer
)

// Secrets are the endpoint's signing secrets at now: next is nil outside a
// rotation. When the overlap is over the next secret is the current one.
func (e Endpoint) Secrets(now time.Time) (current, next []byte) {
	switch {
	case len(e.SecretNext) == 0:
		return e.Secret, nil
	case now.Before(e.NextUntil):
		return e.Secret, e.SecretNext
	}
	return e.SecretNext, nil
}

// Wants reports whether the endpoint subscribes to event.
func (e Endpoint) Wants(event string) bool {
	if !e.Enabled || len(e.Categories) > 0 && !slices.Contains(e.Categories, thirdPartyCategory[event]) {
		return false
	}
	for _, n := range e.Events {
		if n == "*" || n == event {
			return true
		}
	}
	return false
}

// Channel is that of the events that go to the endpoint.
func (e Endpoint) Channel() string {
	switch e.Kind {
	case LockerEndpoint:
		return ChannelLocker
	case ThirdPartyEndpoint:
		return ChannelThirdParty
	}
	return ChannelAccount
}

// AccountView reads the present of businesses, people, providers and their tokens.
type AccountView interface {
	Business(BusinessID) (Business, error)
	BusinessByCode(string) (Business, error)
	Account(AccountID) (Account, error)
	// Accounts and Providers list a part of what a business has, and say how
	// much there is.
	Accounts(AccountFilter) ([]Account, Listed, error)
	Provider(ProviderID) (Provider, error)
	Providers(BusinessID, Page) ([]Provider, Listed, error)
	// Token finds a token by its hash, expired and revoked ones too.
	Token(hash [32]byte) (Token, error)
	// Tokens lists an account's tokens, expired and revoked ones too, in no
	// particular order.
	Tokens(AccountID) ([]Token, error)
}

// AccountChanges are the changes of businesses, people, providers and their tokens.
type AccountChanges struct {
	Businesses []Business
	Providers  []Provider
	Accounts   []Account
	Tokens     []Token
}

func (s *AccountChanges) preview(e *effectList) {
	previewEach(e, "Businesses", s.Businesses, func(x Business) {
		old, err := e.view.Business(x.ID)
		showChanged(e, "business", x.ID, x.Name, x, old, err, Business.members)
	})
	previewEach(e, "Providers", s.Providers, func(x Provider) {
		old, err := e.view.Provider(x.ID)
		showChanged(e, "provider", x.ID, x.Name, x, old, err, Provider.members)
	})
	previewEach(e, "Accounts", s.Accounts, func(x Account) {
		old, err := e.view.Account(x.ID)
		shown := showChanged(e, "account", x.ID, x.Name, x, old, err, Account.members)
		shown.addRights(x.rights(), old.rights())
		if x.PasswordHash != old.PasswordHash {
			shown.After["password"] = Masked
		}
	})
	previewEach(e, "Tokens", s.Tokens, func(x Token) {
		old, err := e.view.Token(x.Hash)
		showChanged(e, "token", x.ID, x.Name, x, old, err, nil).addRights(x.rights(), old.rights())
	})
}

// members are those of a business that a preview shows.
func (b Business) members() map[string]any {
	return map[string]any{"name": b.Name, "timezone": b.Timezone, "support_phone": OrNull(b.SupportPhone), "support_email": OrNull(b.SupportEmail),
		"prices": b.Settings.Prices, "settings": b.Settings.Rules}
}

// members are those of a provider that a preview shows.
func (p Provider) members() map[string]any {
	return map[string]any{"name": p.Name, "services": p.Services, "livemode_allowed": p.LivemodeAllowed}
}

// members are those of an account that a preview shows beside its rights.
func (a Account) members() map[string]any {
	return map[string]any{"name": OrNull(a.Name), "locale": OrNull(a.Locale)}
}

// addRights shows what something may from now on, and what it might before where it was
// there.
func (x *Effect) addRights(now, old map[string]any) {
	maps.Copy(x.After, now)
	if x.Before != nil {
		maps.Copy(x.Before, old)
	}
}

// rights are what a key may, for a person who decides about it; none of a login or of
// an agent's token, whose grant has them.
func (t Token) rights() map[string]any {
	if t.ID == 0 {
		return nil
	}
	out := map[string]any{"require_approval": cmp.Or(t.Policy.Approval, AskNever)}
	switch {
	case len(t.Scopes) > 0:
		out["scopes"] = t.Scopes
	default:
		out["profile"] = cmp.Or(t.Profile, "full") // everything that the account may
	}
	if len(t.IPAllowlist) > 0 {
		out["ip_allowlist"] = t.IPAllowlist
	}
	return out
}

// rights are what an account may, for a person who decides about it.
func (a Account) rights() map[string]any {
	out := map[string]any{"account_type": a.Type, "email": a.Email, "enabled": a.Enabled}
	if len(a.Permissions) > 0 {
		out["permissions"] = a.Permissions
	}
	return out
}

// Package webhook manages webhook subscriptions: the endpoints of a provider, and
// the addresses of a business and of its customers. Their owners set addresses,
// events and the signing secret, read the delivery log, redeliver and replay.
// Staff of a business read all of its endpoints and deliveries. FanOut turns an
// event into one outbox write for each subscribed address; package sender
// delivers them.
//
// Addresses are checked before they are stored. A secret is shown once, when
// it is made; later only its last four characters. Pickup and delivery codes
// are masked in every body that is shown. Every change is one transaction with
// an audit line. Safe for concurrent use.
package webhook

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/signature"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	EndPause(ctx context.Context, id cloud.EndpointID, now time.Time, failed string) error
	ReportEndpoints(ctx context.Context, ids []cloud.EndpointID, now time.Time) ([]cloud.EndpointReport, error)
	ListOutbox(ctx context.Context, f cloud.OutboxFilter) (cloud.Listed, []cloud.OutboxRow, error)
	ListAccountOutbox(ctx context.Context, f cloud.AccountLog) (cloud.Listed, []cloud.OutboxRow, error)
	ListBusinessOutbox(ctx context.Context, f cloud.BusinessLog) ([]cloud.OutboxRow, error)
	ListProviders(ctx context.Context, b cloud.BusinessID) ([]cloud.Provider, error)
	FindOutbox(ctx context.Context, id cloud.OutboxID) (cloud.OutboxWork, error)
	OutboxAttempts(ctx context.Context, id cloud.OutboxID) ([]cloud.OutboxAttempt, error)
	Redeliver(ctx context.Context, whose cloud.OutboxOwner, of, id cloud.OutboxID, url string, now time.Time, with func(cloud.View, cloud.OutboxWork) (*cloud.Changes, error)) (cloud.OutboxWork, error)
	CountReplay(ctx context.Context, j cloud.ReplayJob) (int, error)
	FindReplay(ctx context.Context, id string) (cloud.ReplayJob, error)
	OpenReplays(ctx context.Context) ([]cloud.ReplayJob, error)
	StepReplay(ctx context.Context, j cloud.ReplayJob, ids []cloud.OutboxID, now time.Time) error
}

// Sender sends one delivery at once, outside the schedule, and knows which
// addresses are paused. sender.Dispatcher implements it.
type Sender interface {
	SendNow(ctx context.Context, ep cloud.Endpoint, w cloud.OutboxWork, tweak cloud.HookTweak) (cloud.OutboxResult, error)
	// Held gives the reason and the end of a pause of an account's address; the
	// reason is empty when deliveries are sent.
	Held(account cloud.BusinessID, url string) (reason string, until time.Time)
}

// Samples returns an example of an event; ok is false when there is no such event.
type Samples func(event string) (s cloud.HookSample, ok bool)

// AddressGuard says whether an address may receive: nil when it may.
type AddressGuard interface {
	CheckURL(ctx context.Context, url string) error
}

// Service is the feature.
type Service struct {
	*core
	accountHooks
	providers
	deliveryLog
	subscriptions
}

// Sections of the service.
type (
	accountHooks struct{ *core } // of a business and its customers: addresses, tests, health
	providers    struct{ *core } // endpoints of providers
	deliveryLog  struct{ *core } // of all of them, and replays
	// subscriptions are those to parcels, of staff, customers and providers.
	subscriptions struct{ *core }
)

// core is what the sections share.
type core struct {
	store   Store
	guard   AddressGuard
	sender  Sender
	samples Samples
	overlap time.Duration
	// signedBy verifies v1a for endpoints without a key of their own; nil: there is
	// no such key.
	signedBy ed25519.PublicKey
}

// New builds the service.
func New(s Store, g AddressGuard) *Service {
	c := &core{store: s, guard: g, overlap: Overlap}
	return &Service{c, accountHooks{c}, providers{c}, deliveryLog{c}, subscriptions{c}}
}

// Overlapping sets how long a former secret stays the current one beside the
// next; 0 is no time. It is called once, before the service is used.
func (s *Service) Overlapping(d time.Duration) *Service {
	s.overlap = d
	return s
}

// SignedBy says which key signs for endpoints without one of their own. It is called
// once, before the service is used.
func (s *Service) SignedBy(key ed25519.PublicKey) *Service {
	s.signedBy = key
	return s
}

// Sending makes the service one that can send by hand: tests, and replays to
// other addresses. It is called once, before the service is used.
func (s *Service) Sending(x Sender, samples Samples) *Service {
	s.sender, s.samples = x, samples
	return s
}

// Overlap is how long a former secret stays the current one beside the next,
// where nothing else is set.
const Overlap = 24 * time.Hour

const (
	statusFresh = "healthy"
	maxURL      = 2048
	badSecret   = "The secret must have 16 to 128 visible ASCII characters and no spaces. After whsec_ comes the base64 of at least 16 bytes; whsk_ and whpk_ begin keys of another kind."
)

// Endpoint is a webhook endpoint as its owner sees it.
type Endpoint struct {
	EndpointID     cloud.EndpointID `json:"endpoint_id"`
	Kind           string           `json:"kind"`
	URL            string           `json:"url"`
	SandboxURL     *string          `json:"sandbox_url"`
	SandboxEnabled bool             `json:"sandbox_enabled"`
	Events         []string         `json:"events"`
	Categories     []string         `json:"categories"`
	Format         string           `json:"format"`
	Signature      string           `json:"signature"`
	PublicKey      *string          `json:"public_key"` // verifies standard_webhooks_v1a
	KeyID          *string          `json:"kid"`        // of PublicKey (RFC 7638)
	SecretHint     string           `json:"secret_hint"`
	Enabled        bool             `json:"enabled"`
	Status         string           `json:"status"`
	CreatedAt      *string          `json:"created_at"`
}

// EndpointOutput shows an endpoint. Secret is set once, when the endpoint was
// made by this call, and with it the form that libraries of Standard Webhooks
// want.
type EndpointOutput struct {
	Result         bool     `json:"result"`
	Endpoint       Endpoint `json:"webhook_endpoint"`
	Secret         string   `json:"secret,omitempty"`
	StandardSecret string   `json:"standard_secret,omitempty"`
	Warnings       []string `json:"warnings"`
}

// EndpointInput sets an endpoint. Members that are absent stay as they are.
type EndpointInput struct {
	Kind           string    `json:"kind" enum:"locker_provider,third_party_delivery" doc:"Which of the provider's endpoints; empty: that of its first service"`
	URL            *string   `json:"url"`
	SandboxURL     *string   `json:"sandbox_url"`
	SandboxEnabled *bool     `json:"sandbox_enabled"`
	Events         *[]string `json:"events"`
	Categories     *[]string `json:"categories" doc:"Of third-party deliveries: some of assignment, handover, cancellation, outcome; none are all"`
	Format         *string   `json:"format" enum:"native,ce_binary,ce_structured"`
	Signature      *string   `json:"signature" enum:"native,standard_webhooks,standard_webhooks_v1a"`
	PrivateKey     *string   `json:"private_key"`
	Enabled        *bool     `json:"enabled"`
}

type problems map[string][]string

func (p problems) add(field, message string) { p[field] = append(p[field], message) }

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: p}
}

// KindInput names one of the caller's endpoints.
type KindInput struct {
	Kind string `query:"kind" enum:"locker_provider,third_party_delivery" doc:"Which of the provider's endpoints; empty: that of its first service"`
}

// Find shows the caller's endpoint of a kind. Errors: VALIDATION_FAILED,
// WEBHOOK_ENDPOINT_NOT_FOUND.
func (s providers) Find(ctx context.Context, c cloud.Caller, in KindInput) (out EndpointOutput, err error) {
	kind, err := kindOf(c, in.Kind)
	if err != nil {
		return out, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		e, ok, err := mine(v, c, kind)
		if err == nil && !ok {
			err = cloud.E(cloud.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND")
		}
		if err == nil {
			out, err = s.show(v, e)
		}
		return err
	})
	return out, err
}

// Save sets the caller's endpoint of a kind, or makes it with a secret. Saving
// resumes what was paused. Error: VALIDATION_FAILED.
func (s providers) Save(ctx context.Context, c cloud.Caller, in EndpointInput) (out EndpointOutput, err error) {
	if in.Kind, err = kindOf(c, in.Kind); err != nil {
		return out, err
	}
	if err := s.check(ctx, in); err != nil {
		return out, err
	}
	now := time.Now().UTC()
	var saved cloud.Endpoint
	resumed := false
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		e, known, err := mine(v, c, in.Kind)
		if err != nil {
			return nil, err
		}
		out, resumed = EndpointOutput{}, known && e.Status != statusFresh
		if !known {
			if in.URL == nil {
				p := problems{}
				p.add("url", fmt.Sprintf(check.MessageRequired, "url"))
				return nil, p.err()
			}
			id, err := v.NewID(cloud.EndpointIDs)
			if err != nil {
				return nil, err
			}
			out.Secret = NewSecret()
			e = cloud.Endpoint{ID: cloud.EndpointID(id), BusinessID: c.Provider.BusinessID, ProviderID: c.Provider.ID, Kind: in.Kind, SandboxEnabled: true,
				Events: []string{"*"}, Secret: []byte(out.Secret), Enabled: true, CreatedAt: now}
		}
		in.apply(&e)
		if e.Status != statusFresh {
			e.Status, e.StatusSince, e.StatusReason = statusFresh, now, ""
		}
		saved = e
		return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{audit(c, c.Provider.BusinessID, now, "webhook_endpoint_saved", e.ID)}}}, nil
	})
	if err != nil {
		return EndpointOutput{}, err
	}
	if resumed {
		if err := s.store.EndPause(ctx, saved.ID, now, ""); err != nil {
			return EndpointOutput{}, fmt.Errorf("resume deliveries of endpoint %d: %w", saved.ID, err)
		}
	}
	secret := out.Secret
	err = s.store.Look(ctx, func(v cloud.View) (err error) {
		out, err = s.show(v, saved)
		return err
	})
	out.Secret, out.StandardSecret = secret, standardForm(secret)
	return out, err
}

// check looks at everything that can be wrong before anything is stored.
func (s providers) check(ctx context.Context, in EndpointInput) error {
	p := problems{}
	s.checkURL(ctx, p, "url", in.URL, false)
	s.checkURL(ctx, p, "sandbox_url", in.SandboxURL, true)
	if in.Events != nil {
		names := eventsOf(in.Kind)
		ok := len(*in.Events) > 0 && len(*in.Events) <= len(names)+1
		for _, n := range *in.Events {
			ok = ok && (n == "*" || slices.Contains(names, n))
		}
		switch {
		case ok:
		case in.Kind == cloud.ThirdPartyEndpoint:
			p.add("events", `The events must be ["*"] or names of third-party delivery events.`)
		default:
			p.add("events", `The events must be ["*"] or names of locker delivery events.`)
		}
	}
	if in.Categories != nil && len(*in.Categories) > 0 {
		unknown := func(name string) bool { return !slices.Contains(cloud.ThirdPartyCategories(), name) }
		switch {
		case in.Kind != cloud.ThirdPartyEndpoint:
			p.add("categories", "Only an endpoint for third-party deliveries has categories.")
		case slices.ContainsFunc(*in.Categories, unknown):
			p.add("categories", "The categories must be some of assignment, handover, cancellation, outcome.")
		}
	}
	if in.PrivateKey != nil && *in.PrivateKey != "" {
		if _, err := signature.ParsePrivateKey(*in.PrivateKey); err != nil {
			p.add("private_key", badKey)
		}
	}
	return p.err()
}

// tooLong says that an address has more than maxURL characters.
func tooLong(field, url string) string {
	return fmt.Sprintf(check.MessageLong, field, strconv.Itoa(maxURL), strconv.Itoa(len(url)))
}

func (s *core) checkURL(ctx context.Context, p problems, field string, url *string, emptyOK bool) {
	switch {
	case url == nil || emptyOK && *url == "":
	case len(*url) > maxURL:
		p.add(field, tooLong(field, *url))
	case s.guard.CheckURL(ctx, *url) != nil:
		p.add(field, "This address cannot be used: it must be a public https address that our guard accepts.")
	}
}

func (in EndpointInput) apply(e *cloud.Endpoint) {
	set(&e.URL, in.URL)
	set(&e.SandboxURL, in.SandboxURL)
	set(&e.SandboxEnabled, in.SandboxEnabled)
	set(&e.Events, in.Events)
	if in.Categories != nil {
		e.Categories = slices.DeleteFunc(cloud.ThirdPartyCategories(), func(name string) bool { return !slices.Contains(*in.Categories, name) })
	}
	set(&e.Enabled, in.Enabled)
	o := URLOptions{Format: e.Format, Signature: e.Signature}
	set(&o.Format, in.Format)
	set(&o.Signature, in.Signature)
	set(&o.PrivateKey, in.PrivateKey)
	o.apply(e)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// SecretInput asks for a new secret; an empty one is made.
type SecretInput struct {
	Kind   string `json:"kind" enum:"locker_provider,third_party_delivery" doc:"Which of the provider's endpoints; empty: that of its first service"`
	Secret string `json:"secret"`
	// OverlapHours is how long the former secret signs on, 0 to 168; 0: not at all,
	// nil: as the deployment has it.
	OverlapHours *int `json:"overlap_hours" min:"0" max:"168" doc:"Hours in which the former secret signs on: 0 ends it at once; empty: 24"`
}

// maxOverlap is how many hours two secrets may be good at once.
const maxOverlap = 168

// overlapOf is how long the caller of a rotation wants the former secret to sign
// on; usual where nothing is said.
func overlapOf(p problems, hours *int, usual time.Duration) time.Duration {
	if hours == nil {
		return usual
	}
	if *hours < 0 || *hours > maxOverlap {
		p.add("overlap_hours", "Use 0 to 168 hours.")
	}
	return time.Duration(*hours) * time.Hour
}

// SecretOutput shows a new secret, once. The former signs until
// PreviousUntil. StandardSecret is the form that libraries of Standard Webhooks
// want, where that is another. DroppedOldest tells that a rotation was under way, and that
// the key before it ended at once.
type SecretOutput struct {
	Result         bool     `json:"result"`
	Secret         string   `json:"secret"`
	StandardSecret string   `json:"standard_secret,omitempty"`
	SecretHint     string   `json:"secret_hint"`
	PreviousUntil  *string  `json:"previous_secret_valid_until"`
	DroppedOldest  bool     `json:"dropped_oldest"`
	Warnings       []string `json:"warnings"`
}

// RotateSecret gives the caller's endpoint of a kind a new secret. Errors:
// WEBHOOK_ENDPOINT_NOT_FOUND, VALIDATION_FAILED.
func (s providers) RotateSecret(ctx context.Context, c cloud.Caller, in SecretInput) (out SecretOutput, err error) {
	kind, err := kindOf(c, in.Kind)
	if err != nil {
		return out, err
	}
	secret := in.Secret
	if secret == "" {
		secret = NewSecret()
	}
	p := problems{}
	if !goodSecret(secret) {
		p.add("secret", badSecret)
	}
	overlap := overlapOf(p, in.OverlapHours, s.overlap)
	if err := p.err(); err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		e, ok, err := mine(v, c, kind)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, cloud.E(cloud.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND")
		}
		b, err := v.Business(e.BusinessID)
		if err != nil {
			return nil, err
		}
		out = SecretOutput{Result: true, Secret: secret, StandardSecret: standardForm(secret), SecretHint: hint([]byte(secret)),
			Warnings: weak([]cloud.Endpoint{e}, []byte(secret))}
		if len(e.SecretNext) > 0 {
			out.DroppedOldest = now.Before(e.NextUntil)
			e.Secret = e.SecretNext // over or not: of three the oldest goes
		}
		e.SecretNext, e.NextUntil = []byte(secret), now.Add(overlap)
		if overlap == 0 {
			e.Secret, e.SecretNext, e.NextUntil = []byte(secret), nil, time.Time{}
		}
		out.PreviousUntil = cloud.Stamp(e.NextUntil, b.Location())
		return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{audit(c, c.Provider.BusinessID, now, "webhook_secret_rotated", e.ID)}}}, nil
	})
	if err != nil {
		return SecretOutput{}, err
	}
	return out, nil
}

// goodSecret reports whether a secret can be used: 16 to 128 printable ASCII
// characters; after whsec_ the base64 of at least 16 bytes; no v1a key.
func goodSecret(s string) bool {
	if len(s) < 16 || len(s) > 128 {
		return false
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	_, err := signature.StandardKey(s)
	return err == nil && !signature.KeyText(s)
}

// NewSecret makes a signing secret: 32 random bytes in base64url.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hint(secret []byte) string {
	if len(secret) < 16 {
		return ""
	}
	return "…" + string(secret[len(secret)-4:])
}

// mine finds the caller's endpoint of a kind.
func mine(v cloud.View, c cloud.Caller, kind string) (e cloud.Endpoint, ok bool, err error) {
	if c.Provider.ID == 0 {
		return e, false, errors.New("find endpoint: the caller is no provider")
	}
	es, err := v.Endpoints(c.Provider.ID)
	if err != nil {
		return e, false, err
	}
	i := slices.IndexFunc(es, func(e cloud.Endpoint) bool { return e.Kind == kind })
	if i < 0 {
		return e, false, nil
	}
	return es[i], true, nil
}

func (s providers) show(v cloud.View, e cloud.Endpoint) (EndpointOutput, error) {
	b, err := v.Business(e.BusinessID)
	if err != nil {
		return EndpointOutput{}, err
	}
	newest := e.Secret
	if len(e.SecretNext) > 0 {
		newest = e.SecretNext
	}
	o := s.optionsOf(e)
	return EndpointOutput{Result: true, Warnings: weak([]cloud.Endpoint{e}, newest), Endpoint: Endpoint{EndpointID: e.ID, Kind: e.Kind, URL: e.URL, SandboxURL: cloud.OrNull(e.SandboxURL), SandboxEnabled: e.SandboxEnabled,
		Events: e.Events, Categories: append([]string{}, e.Categories...), Format: o.Format, Signature: o.Signature, PublicKey: o.PublicKey, KeyID: o.KeyID, SecretHint: hint(newest), Enabled: e.Enabled, Status: e.Status,
		CreatedAt: cloud.Stamp(e.CreatedAt, b.Location())}}, nil
}

func audit(c cloud.Caller, b cloud.BusinessID, now time.Time, action string, id cloud.EndpointID) cloud.Audit {
	return cloud.Audit{BusinessID: b, At: now, Actor: c.Account.ID.Actor(), Action: action,
		Target: "endpoint:" + strconv.FormatInt(int64(id), 10)}
}

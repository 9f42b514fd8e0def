package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/span"
)

// Config is what NewPipeline needs.
type Config struct {
	// FindToken finds a token by its hash, expired and revoked ones too;
	// cloud.ErrNotFound when there is none.
	FindToken func(ctx context.Context, hash [32]byte) (auth.Session, error)
	// FindRecipient finds the caller behind the token of an order's recipient, who
	// has Caller.Recipient; cloud.ErrNotFound when it is not good. nil: there are
	// no such tokens.
	FindRecipient func(ctx context.Context, token string) (cloud.Caller, error)
	// Feature says whether a feature is on for a business; nil: all are.
	Feature func(ctx context.Context, b cloud.BusinessID, feature string) error
	// Hidden says whether prices are hidden from a caller; nil: from none.
	Hidden func(ctx context.Context, c cloud.Caller, o *Operation) (bool, error)
	// Calls keeps what calls were answered; nil: keys of repeats are not looked
	// at, and refused attempts leave no audit line.
	Calls Calls
	// Hold tries, or with queue asks a person to decide about, a call that its key
	// may not make by itself. nil: there is no such way, and it is refused.
	Hold   func(ctx context.Context, o *Operation, c cloud.Caller, given map[string]any, queue bool) (*Held, error)
	Limits Limits
	Nodes  limit.Nodes  // that share the limits
	Spans  *span.Tracer // nil: calls are not followed
	Log    *slog.Logger // nil: nothing is logged
}

// Limits are calls a minute at all nodes together. 0 is the usual figure, a negative one no limit.
type Limits struct {
	Authenticated int // per token; 300
	Anonymous     int // per address, and units of lookups that find nothing; 60
	Parcel        int // anonymous lookups of one parcel per address; 60
	Parcels       int // anonymous lookups of all parcels per address; 1,200
	ParcelAll     int // anonymous lookups of one parcel from all addresses, without proof; 600
	Replay        int // redeliveries and test sends per token; 30
	Batch         int // batches per token; 20
	Quotes        int // quotes per token; 120
	Doors         int // remote openings per cabinet; 30
	Ingest        int // tracking uploads per provider; 6,000
}

// WithDefaults has the usual figure for every 0; lookups are unbounded where all
// anonymous calls are.
func (l Limits) WithDefaults() Limits {
	if l.Anonymous < 0 {
		l.Parcel, l.Parcels, l.ParcelAll = cmp.Or(l.Parcel, -1), cmp.Or(l.Parcels, -1), cmp.Or(l.ParcelAll, -1)
	}
	for _, x := range []struct {
		v     *int
		usual int
	}{{&l.Authenticated, 300}, {&l.Anonymous, 60}, {&l.Parcel, 60}, {&l.Parcels, 1200}, {&l.ParcelAll, 600}, {&l.Replay, 30}, {&l.Batch, 20}, {&l.Quotes, 120}, {&l.Doors, 30}, {&l.Ingest, 6000}} {
		if *x.v == 0 {
			*x.v = x.usual
		}
	}
	return l
}

// lookups are those of people without an account who ask about parcels.
func (l Limits) lookups() limit.LookupLimits {
	return limit.LookupLimits{Parcel: l.Parcel, Address: l.Parcels, Everywhere: l.ParcelAll, Misses: l.Anonymous}
}

// Pipeline takes every call.
type Pipeline struct {
	cfg     Config
	limits  *limit.Buckets
	lookups *limit.Lookups
}

// NewPipeline builds a pipeline.
func NewPipeline(cfg Config) *Pipeline {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Pipeline{cfg: cfg, limits: limit.New(0, cfg.Nodes), lookups: limit.NewLookups(cfg.Limits.lookups(), cfg.Nodes)}
}

// Limits are the limits in force.
func (p *Pipeline) Limits() Limits { return p.cfg.Limits }

// Lookups is the count of what callers ask about parcels. The operation counts,
// which knows what it found; Admit takes a call about a parcel from no limit.
func (p *Pipeline) Lookups() *limit.Lookups { return p.lookups }

// Who is what a face knows of a caller.
type Who struct {
	Authorization string // header, "" when there is none
	IP            string
	Parcel        string // cloud.NumberKey of the number that the call asks about, "" when it is about none
	Language      string // of ours
	BaseURL       string
	PublicURL     string // as cloud.Caller.PublicURL
	Surface       string // as cloud.Caller.Surface
	RequestID     string
	Trace         string // traceparent as it came, "" when there was none
	// Resource is the address that was called, where tokens may be bound to one
	// (RFC 8707); "": tokens that are bound to any are not good here.
	Resource string
	Via      cloud.Via // how an agent's call came to be done
}

// Limited is the error of a caller that came too often.
type Limited struct{ State limit.State }

func (l *Limited) Error() string { return "RATE_LIMITED" }

// Unwrap is the error as it is shown.
func (l *Limited) Unwrap() error {
	return &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: l.State.RetryAfter, Details: map[string]any{"retry_after": l.State.RetryAfter}}
}

// Take takes one call from a bucket of so many a minute.
func (p *Pipeline) Take(key string, perMinute int) limit.State {
	return p.limits.Take(key, perMinute, time.Now())
}

// Give gives back a call that Take took: it does not count after all.
func (p *Pipeline) Give(key string) { p.limits.Give(key, time.Now()) }

// tokenKey carries the caller's token to operations that are about it.
type tokenKey struct{}

// TokenOf is the token that the call of ctx came with.
func TokenOf(ctx context.Context) (cloud.Token, bool) {
	t, ok := ctx.Value(tokenKey{}).(cloud.Token)
	return t, ok
}

// addressKey carries the caller's network address.
type addressKey struct{}

// AddressOf is the network address that the call of ctx came from.
func AddressOf(ctx context.Context) string {
	ip, _ := ctx.Value(addressKey{}).(string)
	return ip
}

// Admit lets a caller in or says why not: token, rate limit, feature, account
// type, scopes. The state is that of the limit that was taken from.
func (p *Pipeline) Admit(ctx context.Context, o *Operation, w Who) (context.Context, cloud.Caller, limit.State, error) {
	var login *auth.Session
	var err error
	c, admitted := ctx.Value(admittedKey{}).(cloud.Caller)
	if !admitted {
		if ctx, c, login, err = p.enter(ctx, o, w); err != nil {
			return ctx, c, limit.State{}, err
		}
	}
	call := callOf(o, c, w)
	if t, ok := TokenOf(ctx); ok && !decided(call) {
		call.Budget = cloud.BudgetOf(t, bucketOf(t), time.Now())
	}
	if !c.Anonymous() && c.Recipient == 0 {
		call.Rights = func(v cloud.View) error { return rightsOf(v, o, c) }
	}
	ctx = cloud.WithCall(ctx, call)
	state := limit.State{OK: true}
	if t, ok := TokenOf(ctx); !admitted {
		state = p.countCall(o, w, login, c.Recipient)
	} else if ok {
		state = p.group(o, hex.EncodeToString(t.Hash[:16]))
	}
	if !state.OK {
		return ctx, c, state, &Limited{state}
	}
	if err = p.allow(ctx, o, c); err != nil {
		p.refused(ctx, o, c, err)
	}
	return ctx, c, state, err
}

// rightsOf says why a caller who was let in may not call an operation any more: the
// account was disabled, an employee lost a permission, the business was suspended, or an
// operator's pass ended. Errors: ACCOUNT_DISABLED, FORBIDDEN, BUSINESS_SUSPENDED,
// TOKEN_INVALID, BUSINESS_REMOVAL_RUNNING.
func rightsOf(v cloud.View, o *Operation, c cloud.Caller) error {
	a, err := v.Account(c.Account.ID)
	switch {
	case errors.Is(err, cloud.ErrNotFound) || err == nil && !a.Enabled:
		return cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED")
	case err != nil:
		return fmt.Errorf("read the caller's rights: %w", err)
	case c.Account.Type == cloud.ClientEmployee && c.Scopes != nil:
		c.Scopes = append([]string{}, a.Permissions...)
		if s := missingScope(o, c); s != "" {
			return &cloud.Error{Kind: cloud.Forbidden, Code: "FORBIDDEN", Details: map[string]any{"scope": s}}
		}
	}
	if c.Account.BusinessID == 0 {
		return nil
	}
	state, err := v.Suspension(c.Account.BusinessID)
	switch {
	case err != nil:
		return fmt.Errorf("read what the platform did to the business: %w", err)
	case c.Pass != 0:
		return passRights(v, a, c)
	case state.Suspended():
		return suspended(state)
	}
	return nil
}

// suspended is the error of a business that the platform suspended.
func suspended(s cloud.BusinessState) error {
	return &cloud.Error{Kind: cloud.Forbidden, Code: "BUSINESS_SUSPENDED", Details: map[string]any{"suspended_at": s.SuspendedAt.UTC().Format(time.RFC3339), "reason": s.Reason}}
}

// passRights says why an operator who was let in by a pass may not go on. Errors:
// TOKEN_INVALID, BUSINESS_REMOVAL_RUNNING.
func passRights(v cloud.View, a cloud.Account, c cloud.Caller) error {
	p, err := cloud.Find(v, cloud.PlatformPass{ID: c.Pass})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (!p.Live(time.Now()) || a.Type != cloud.PlatformAdmin) {
		return cloud.E(cloud.Unauthenticated, "TOKEN_INVALID")
	}
	if err != nil {
		return fmt.Errorf("read the pass: %w", err)
	}
	jobs, err := v.BusinessJobs(c.Account.BusinessID, cloud.RemovalJob, 1)
	if err == nil && len(jobs) > 0 && jobs[0].FinishedAt.IsZero() { // what it writes would be removed, or keep the removal from its end
		return cloud.E(cloud.Conflict, "BUSINESS_REMOVAL_RUNNING")
	}
	return err
}

// Enter finds who calls, for a face whose calls may be of several operations,
// which then run in a context of Admitted. One call is taken from the caller's
// limit, unless a face let the caller in already.
func (p *Pipeline) Enter(ctx context.Context, w Who) (context.Context, cloud.Caller, limit.State, error) {
	if c, ok := ctx.Value(admittedKey{}).(cloud.Caller); ok {
		return ctx, c, limit.State{OK: true}, nil
	}
	o := &Operation{}
	ctx, c, login, err := p.enter(ctx, o, w)
	if err != nil {
		return ctx, c, limit.State{}, err
	}
	state := p.countCall(o, w, login, 0)
	if !state.OK {
		return ctx, c, state, &Limited{state}
	}
	return ctx, c, state, nil
}

// admittedKey carries a caller whom a face let in already.
type admittedKey struct{}

// Admitted is a context whose calls are those of a caller whom Enter found, or
// of the requester of a call that was approved: Admit looks at no token,
// and takes calls from no limit but those that operations share.
func Admitted(ctx context.Context, c cloud.Caller) context.Context {
	return context.WithValue(ctx, admittedKey{}, c)
}

// Gated says whether a feature is off for a caller; nil when it is on.
func (p *Pipeline) Gated(ctx context.Context, feature string, c cloud.Caller) error {
	if p.cfg.Feature == nil {
		return nil
	}
	return p.cfg.Feature(ctx, c.Account.BusinessID, feature)
}

func (p *Pipeline) enter(ctx context.Context, o *Operation, w Who) (context.Context, cloud.Caller, *auth.Session, error) {
	c := cloud.Caller{Language: w.Language, BaseURL: w.BaseURL, PublicURL: w.PublicURL, Surface: w.Surface}
	ctx = context.WithValue(ctx, addressKey{}, w.IP)
	known, err := p.recipient(ctx, o, w, &c)
	if err != nil || known {
		return ctx, c, nil, err
	}
	login, err := p.login(ctx, o, w)
	if err != nil {
		return ctx, c, nil, err
	}
	if login != nil {
		c.Account, c.Provider, c.Scopes, c.Pass = login.Account, login.Provider, scopesOf(login), login.Pass
		ctx = span.Join(context.WithValue(ctx, tokenKey{}, login.Token), w.Trace) // of others, a share is followed
	}
	return ctx, c, login, nil
}

// recipient finds whether an order's recipient calls, where they may. Their
// token gives no access anywhere else.
func (p *Pipeline) recipient(ctx context.Context, o *Operation, w Who, c *cloud.Caller) (known bool, err error) {
	token := bearer(w)
	if !o.Recipient || p.cfg.FindRecipient == nil || !strings.HasPrefix(token, cloud.RecipientToken) {
		return false, nil
	}
	r, err := p.cfg.FindRecipient(ctx, token)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find recipient: %w", err)
	}
	c.Account, c.Recipient = r.Account, r.Recipient
	return true, nil
}

// bearer is the token of a call, "" when there is none that could be one.
func bearer(w Who) string {
	scheme, token, _ := strings.Cut(w.Authorization, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || len(token) > 256 {
		return ""
	}
	return token
}

// Knows reports whether an Authorization header holds a token that lets its holder
// in, an order's recipient too. It takes from no limit.
func (p *Pipeline) Knows(ctx context.Context, authorization string) (bool, error) {
	token := bearer(Who{Authorization: authorization})
	if token == "" {
		return false, nil
	}
	if p.cfg.FindRecipient != nil && strings.HasPrefix(token, cloud.RecipientToken) {
		if _, err := p.cfg.FindRecipient(ctx, token); !errors.Is(err, cloud.ErrNotFound) {
			return err == nil, err
		}
	}
	l, err := p.cfg.FindToken(ctx, auth.Hash(token))
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	return err == nil && auth.Valid(l.Token, time.Now()) && l.Account.Enabled, err
}

// login finds the caller's account. Without a token there is none.
func (p *Pipeline) login(ctx context.Context, o *Operation, w Who) (*auth.Session, error) {
	if o.NoToken || w.Authorization == "" {
		return nil, nil
	}
	surface := cmp.Or(o.Surface, w.Surface)
	var l auth.Session
	err := cloud.ErrNotFound
	if token := bearer(w); token != "" {
		l, err = p.cfg.FindToken(ctx, auth.Hash(token))
	}
	switch {
	case errors.Is(err, cloud.ErrNotFound) || err == nil && !((auth.Valid(l.Token, time.Now()) || auth.SetsUp(l.Token, time.Now())) && goodAt(l.Token, w.Resource)):
		// Guessing is bounded like any other call without a name.
		if st := p.Take("ip/"+limit.Address(w.IP), p.cfg.Limits.Anonymous); !st.OK {
			return nil, &Limited{st}
		}
		return nil, cloud.E(cloud.Unauthenticated, cmp.Or(o.NoTokenCode, "TOKEN_INVALID"))
	case err != nil:
		return nil, fmt.Errorf("find token: %w", err)
	case l.Suspended():
		return nil, suspended(l.State)
	case !l.Account.Enabled:
		return nil, cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED")
	case !l.Token.Policy.On(surface):
		return nil, &cloud.Error{Kind: cloud.Forbidden, Code: "SURFACE_NOT_ALLOWED", Args: []any{surface, strings.Join(l.Token.Policy.Surfaces, ", ")}, Details: map[string]any{"surface": surface, "surfaces": l.Token.Policy.Surfaces}}
	case !auth.From(l.Token, w.IP):
		return nil, cloud.E(cloud.Forbidden, "IP_NOT_ALLOWED")
	}
	return &l, nil
}

func (p *Pipeline) countCall(o *Operation, w Who, l *auth.Session, recipient cloud.OrderID) limit.State {
	lim := p.cfg.Limits
	switch {
	case o.Group == Unlimited:
		return limit.State{OK: true}
	case recipient != 0:
		return p.Take("recipient/"+strconv.FormatInt(int64(recipient), 10), lim.Authenticated)
	case l == nil && w.Parcel != "":
		return p.lookups.State(w.IP, time.Now())
	case l == nil:
		return p.Take("ip/"+limit.Address(w.IP), lim.Anonymous)
	case o.Group == Ingest:
		return p.Take("ingest/"+strconv.FormatInt(int64(l.Provider.ID), 10), lim.Ingest)
	}
	key := bucketOf(l.Token)
	state := p.Take("token/"+key, lim.Authenticated)
	if n := l.State.Limits.RequestsPerMinute; state.OK && n > 0 {
		if all := p.Take("business/"+strconv.FormatInt(int64(l.State.BusinessID), 10), n); !all.OK {
			return all
		}
	}
	if !state.OK || o.Group == General {
		return state
	}
	return p.group(o, key)
}

// bucketOf is whose limits a token's calls are taken from: a fresh token of a
// grant has no fresh limit.
func bucketOf(t cloud.Token) string {
	if t.Grant != 0 {
		return "grant/" + strconv.FormatInt(int64(t.Grant), 10)
	}
	return hex.EncodeToString(t.Hash[:16])
}

// group takes a call from the limit that operations share besides.
func (p *Pipeline) group(o *Operation, key string) limit.State {
	switch o.Group {
	case Replay:
		return p.Take("replay/"+key, p.cfg.Limits.Replay)
	case Batch:
		return p.Take("batch/"+key, p.cfg.Limits.Batch)
	case Quotes:
		return p.Take("quotes/"+key, p.cfg.Limits.Quotes)
	}
	return limit.State{OK: true}
}

// TakeAnonymous takes a call without a token from its limit.
func (p *Pipeline) TakeAnonymous(w Who) limit.State { return p.countCall(&Operation{}, w, nil, 0) }

// MayRead says why a face does not look at a document, which costs before anything
// is asked: without a token, when too many from the address were read in vain.
func (p *Pipeline) MayRead(ctx context.Context, w Who) error {
	if _, ok := ctx.Value(admittedKey{}).(cloud.Caller); ok || p.limits.Peek(inVain(w), p.cfg.Limits.Anonymous, time.Now()).OK {
		return nil
	}
	if w.Authorization == "" {
		return &Limited{p.Take(inVain(w), p.cfg.Limits.Anonymous)}
	}
	_, _, _, err := p.Enter(ctx, w)
	return err
}

// ReadInVain counts a document that could not be run, by the caller's limit or
// without a good token by the address. Error: Limited.
func (p *Pipeline) ReadInVain(ctx context.Context, w Who) error {
	var err error
	if w.Authorization != "" {
		_, _, _, err = p.Enter(ctx, w)
	}
	var over *Limited
	if errors.As(err, &over) {
		return over
	}
	if _, ok := ctx.Value(admittedKey{}).(cloud.Caller); !ok && (w.Authorization == "" || err != nil) {
		p.Take(inVain(w), p.cfg.Limits.Anonymous)
	}
	return nil
}

// inVain is the limit of an address's documents that could not be run.
func inVain(w Who) string { return "vain/" + limit.Address(w.IP) }

// LookAgain counts a lookup without a token that an answer was kept for. Error:
// Limited.
func (p *Pipeline) LookAgain(w Who, about cloud.ShipmentID) (limit.State, error) {
	now := time.Now()
	lookup, wait := p.lookups.Enter(w.IP, w.Parcel, false, now)
	if wait == 0 {
		wait = lookup.Found(int64(about), false, now)
	}
	state := p.lookups.State(w.IP, now)
	if wait > 0 {
		state.OK, state.RetryAfter = false, limit.Seconds(wait)
		return state, &Limited{state}
	}
	return state, nil
}

// May says why a caller may not call an operation; nil when it may. It takes
// from no limit.
func (p *Pipeline) May(ctx context.Context, o *Operation, c cloud.Caller) error {
	return p.allow(ctx, o, c)
}

// Again finds the caller of an answer that goes on anew, or says why it may not go on. It takes
// from no limit, but for a token that is not good any more.
func (p *Pipeline) Again(ctx context.Context, o *Operation, w Who) (cloud.Caller, error) {
	ctx, c, _, err := p.enter(ctx, o, w)
	if err == nil {
		err = p.allow(ctx, o, c)
	}
	return c, err
}

// allow checks account type, feature and scopes.
func (p *Pipeline) allow(ctx context.Context, o *Operation, c cloud.Caller) error {
	if o.Types != nil && c.Anonymous() {
		return cloud.E(cloud.Unauthenticated, "UNAUTHENTICATED")
	}
	if t, ok := TokenOf(ctx); ok && t.Kind == cloud.SetupToken && !o.SetsUp {
		return cloud.E(cloud.Forbidden, "SECOND_FACTOR_SETUP_REQUIRED")
	}
	if c.Account.Type == cloud.PlatformAdmin && o.Types != nil && !slices.Contains(o.Types, c.Account.Type) { // no gate is theirs
		return cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	if c.Pass != 0 && !o.underPass() {
		return cloud.E(cloud.Forbidden, "PASS_NOT_ALLOWED")
	}
	if o.Gate != "" {
		if err := p.Gated(ctx, o.Gate, c); err != nil {
			return err
		}
	}
	if c.Recipient != 0 && !o.Recipient {
		return cloud.E(cloud.Unauthenticated, "TOKEN_INVALID")
	}
	if o.Types != nil && c.Recipient == 0 && !slices.Contains(o.Types, c.Account.Type) {
		return cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	if s := missingScope(o, c); s != "" {
		return &cloud.Error{Kind: cloud.Forbidden, Code: "FORBIDDEN", Details: map[string]any{"scope": s}}
	}
	return nil
}

// Run runs an operation for a caller that Admit let in; ctx is the one that
// Admit gave. Prices are left out of the answer for those from whom they are
// hidden. A repeat of a call with a key gets the first one's answer, which may
// be an error; see Answer.Replayed for both.
func (p *Pipeline) Run(ctx context.Context, o *Operation, c cloud.Caller, k Key, bind Bind) (answer Answer, err error) {
	ctx, call := p.cfg.Spans.Start(ctx, o.Name, trace.SpanKindServer)
	if call.IsRecording() {
		call.SetAttributes(attribute.String("postern.surface", c.Surface), attribute.Int64("postern.business", int64(c.Account.BusinessID)))
	}
	defer func() {
		span.Fail(call, err)
		call.End()
	}()
	return p.run(ctx, o, c, k, bind)
}

func (p *Pipeline) run(ctx context.Context, o *Operation, c cloud.Caller, k Key, bind Bind) (Answer, error) {
	in, err := o.bind(bind)
	if err != nil {
		return Answer{}, err
	}
	hide := false
	if p.cfg.Hidden != nil && HasPrices(o.out) {
		if hide, err = p.cfg.Hidden(ctx, c, o); err != nil {
			return Answer{}, err
		}
	}
	r := running{p: p, o: o, c: c, in: in, hide: hide, call: cloud.CallOf(ctx)}
	if r.call != nil {
		r.call.Target = o.about(in)
	}
	if err := p.hold(ctx, o, c, in); err != nil {
		return Answer{}, err
	}
	if !o.Idempotent && !k.Always || k.Value == "" || p.cfg.Calls == nil {
		return r.run(ctx)
	}
	return r.once(ctx, k)
}

// running is one call of an operation.
type running struct {
	p    *Pipeline
	o    *Operation
	c    cloud.Caller
	in   any
	hide bool
	call *cloud.Call // nil outside of Admit's context
}

func (r *running) run(ctx context.Context) (Answer, error) {
	out, err := r.o.run(ctx, r.c, r.in)
	if err != nil {
		if !errors.Is(err, cloud.ErrRepeated) {
			r.p.refused(ctx, r.o, r.c, err)
		}
		return Answer{}, err
	}
	return r.shape(out), nil
}

func (r *running) shape(out any) Answer {
	a := r.o.shape(out)
	if r.hide {
		a.Body = Hide(a.Body)
	}
	return a
}

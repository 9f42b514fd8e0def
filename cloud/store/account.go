package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlBusiness         = `SELECT ` + businessColumns + ` FROM business WHERE id = $1`
	sqlBusinessByCode   = `SELECT ` + businessColumns + ` FROM business WHERE code = $1`
	sqlProvider         = `SELECT ` + providerColumns + ` FROM provider WHERE id = $1`
	sqlProviders        = `SELECT ` + providerColumns + ` FROM provider WHERE business_id = $1 ORDER BY code`
	sqlEndpoints        = `SELECT ` + endpointColumns + ` FROM endpoint WHERE provider_id = $1 ORDER BY id`
	sqlEndpoint         = `SELECT ` + endpointColumns + ` FROM endpoint WHERE id = $1`
	sqlAccountsByEmail  = `SELECT ` + accountColumns + ` FROM account WHERE email = $1 AND email <> '' ORDER BY business_id`
	sqlAccount          = `SELECT ` + accountColumns + ` FROM account WHERE id = $1`
	sqlToken            = `SELECT ` + tokenColumns + ` FROM token WHERE hash = $1`
	sqlTokens           = `SELECT ` + tokenColumns + ` FROM token WHERE account_id = $1`
	sqlSetEndpointState = `UPDATE endpoint SET status = $2, status_since = $3, status_reason = $4 WHERE id = $1 AND status NOT IN ($2, 'paused')`

	businessColumns = `id, code, name, timezone, support_phone, support_email, settings`
	providerColumns = `id, business_id, code, name, services, livemode_allowed, created_at, source_type, scope, authority`
	endpointColumns = `id, business_id, provider_id, kind, url, sandbox_url, sandbox_enabled, events, secret, secret_next,
  next_until, enabled, status, status_since, created_at, customer_id, format, signature, signing_key, rate, burst, status_reason, numbered, categories`
	tokenColumns   = `hash, account_id, name, created_at, expires_at, revoked_at, id, scopes, profile, ip_allowlist, grant_id, kind, audience, policy, strong`
	accountColumns = `id, business_id, type, email, name, password_hash, provider_id, locale, enabled, created_at, permissions,
  price_hidden, mail_proof, preferred_device_id`
)

const sqlSaveBusiness = `INSERT INTO business (
  id, code, name, timezone, support_phone, support_email, settings)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET
  code = excluded.code, name = excluded.name, timezone = excluded.timezone, support_phone =
  excluded.support_phone, support_email = excluded.support_email,
  settings = excluded.settings`

const sqlSaveProvider = `INSERT INTO provider (
  id, business_id, code, name, services, livemode_allowed, created_at, source_type, scope, authority)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, code = excluded.code, name = excluded.name, services =
  excluded.services, livemode_allowed = excluded.livemode_allowed, created_at = excluded.created_at,
  source_type = excluded.source_type, scope = excluded.scope, authority = excluded.authority`

const sqlSaveAccount = `INSERT INTO account (
  id, business_id, type, email, name, password_hash, provider_id, locale, enabled, created_at, permissions,
  price_hidden, mail_proof, preferred_device_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, type = excluded.type, email = excluded.email, name = excluded.name,
  password_hash = excluded.password_hash, provider_id = excluded.provider_id, locale = excluded.locale,
  enabled = excluded.enabled, created_at = excluded.created_at, permissions = excluded.permissions,
  price_hidden = excluded.price_hidden, mail_proof = excluded.mail_proof, preferred_device_id = excluded.preferred_device_id`

const sqlSaveToken = `INSERT INTO token (
  hash, account_id, name, created_at, expires_at, revoked_at, id, scopes, profile, ip_allowlist, grant_id, kind, audience, policy, strong)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (hash) DO UPDATE SET
  account_id = excluded.account_id, name = excluded.name, created_at = excluded.created_at, expires_at =
  excluded.expires_at, revoked_at = excluded.revoked_at, id = excluded.id, scopes = excluded.scopes,
  profile = excluded.profile, ip_allowlist = excluded.ip_allowlist, grant_id = excluded.grant_id, kind = excluded.kind,
  audience = excluded.audience, policy = excluded.policy, strong = excluded.strong`

const sqlSaveEndpoint = `INSERT INTO endpoint (
  id, business_id, provider_id, kind, url, sandbox_url, sandbox_enabled, events, secret, secret_next,
  next_until, enabled, status, status_since, created_at, customer_id, format, signature, signing_key, rate, burst, status_reason, numbered, categories)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, provider_id = excluded.provider_id, kind = excluded.kind, url =
  excluded.url, sandbox_url = excluded.sandbox_url, sandbox_enabled = excluded.sandbox_enabled, events =
  excluded.events, secret = excluded.secret, secret_next = excluded.secret_next, next_until =
  excluded.next_until, enabled = excluded.enabled, status = excluded.status, status_since =
  excluded.status_since, created_at = excluded.created_at, customer_id = excluded.customer_id, format = excluded.format, signature = excluded.signature,
  signing_key = excluded.signing_key, rate = excluded.rate, burst = excluded.burst, status_reason = excluded.status_reason, numbered = excluded.numbered,
  categories = excluded.categories`

func scanBusiness(r rows, b *cloud.Business) error {
	return r.Scan(&b.ID, &b.Code, &b.Name, &b.Timezone, &b.SupportPhone, &b.SupportEmail, parsed(&b.Settings))
}

func scanProvider(r rows, p *cloud.Provider) error {
	return r.Scan(&p.ID, &p.BusinessID, &p.Code, &p.Name, parsed(&p.Services), &p.LivemodeAllowed, when(&p.CreatedAt),
		&p.SourceType, &p.Scope, &p.Authority)
}

func scanAccount(r rows, a *cloud.Account) error { return r.Scan(accountFields(a)...) }

// accountFields are where accountColumns are read to.
func accountFields(a *cloud.Account) []any {
	return []any{&a.ID, &a.BusinessID, &a.Type, &a.Email, &a.Name, &a.PasswordHash, &a.ProviderID, &a.Locale,
		&a.Enabled, when(&a.CreatedAt), parsed(&a.Permissions), parsed(&a.PriceHidden), &bytesColumn{&a.MailProof}, &a.PreferredDevice}
}

func scanToken(r rows, t *cloud.Token) error {
	return r.Scan(fixed(t.Hash[:]), &t.AccountID, &t.Name, when(&t.CreatedAt), when(&t.ExpiresAt), when(&t.RevokedAt),
		&t.ID, parsed(&t.Scopes), &t.Profile, parsed(&t.IPAllowlist), &t.Grant, &t.Kind, &t.Audience, parsed(&t.Policy), &t.Strong)
}

// scanEndpoint leaves the secrets sealed; unsealEndpoint opens them.
func scanEndpoint(r rows, e *cloud.Endpoint) error {
	return r.Scan(&e.ID, &e.BusinessID, &e.ProviderID, &e.Kind, &e.URL, &e.SandboxURL, &e.SandboxEnabled,
		parsed(&e.Events), &e.Secret, &e.SecretNext, when(&e.NextUntil), &e.Enabled, &e.Status,
		when(&e.StatusSince), when(&e.CreatedAt), &e.CustomerID, &e.Format, &e.Signature, &e.SigningKey, &e.Rate, &e.Burst, &e.StatusReason, &e.Numbered, parsed(&e.Categories))
}

func secretPurpose(id cloud.EndpointID) string { return fmt.Sprintf("endpoint/%d", id) }

func (b sealer) unsealEndpoint(e *cloud.Endpoint) (err error) {
	if e.Secret, err = b.open(secretPurpose(e.ID), e.Secret); err == nil {
		e.SecretNext, err = b.open(secretPurpose(e.ID), e.SecretNext)
	}
	if err == nil {
		e.SigningKey, err = b.open(secretPurpose(e.ID)+"/key", e.SigningKey)
	}
	if err != nil {
		return fmt.Errorf("secret of endpoint %d: %w", e.ID, err)
	}
	return nil
}

func (v accountView) Business(id cloud.BusinessID) (cloud.Business, error) {
	return one(v.ctx, v.q, sqlBusiness, scanBusiness, int64(id))
}

func (v accountView) BusinessByCode(code string) (cloud.Business, error) {
	return one(v.ctx, v.q, sqlBusinessByCode, scanBusiness, code)
}

func (v accountView) Account(id cloud.AccountID) (cloud.Account, error) {
	return oneKept(v.ctx, v.q, sqlAccount, scanAccount, int64(id))
}

func (v accountView) Provider(id cloud.ProviderID) (cloud.Provider, error) {
	return one(v.ctx, v.q, sqlProvider, scanProvider, int64(id))
}

func (v accountView) Endpoints(id cloud.ProviderID) ([]cloud.Endpoint, error) {
	return v.endpoints(sqlEndpoints, int64(id))
}

func (v *snapshot) endpoints(sql string, id int64) ([]cloud.Endpoint, error) {
	es, err := list(v.ctx, v.q, sql, scanEndpoint, id)
	for i := range es {
		if err == nil {
			err = v.sealer().unsealEndpoint(&es[i])
		}
	}
	return es, err
}

func (v accountView) Tokens(id cloud.AccountID) ([]cloud.Token, error) {
	return list(v.ctx, v.q, sqlTokens, scanToken, int64(id))
}

func (w *writer) accounts(c *cloud.Changes) {
	for _, b := range c.Businesses {
		w.add(anything, sqlSaveBusiness, int64(b.ID), b.Code, b.Name, b.Timezone, b.SupportPhone, b.SupportEmail, text(b.Settings))
		if b.ID != 0 {
			w.add(anything, sqlBeginState, int64(b.ID))
		}
	}
	for _, p := range c.Providers {
		w.add(anything, sqlSaveProvider, int64(p.ID), int64(p.BusinessID), p.Code, p.Name, text(p.Services),
			p.LivemodeAllowed, ms(p.CreatedAt), cmp.Or(p.SourceType, "partner"), cmp.Or(p.Scope, cloud.ScopeOwn), cmp.Or(p.Authority, cloud.AuthorityMoves))
	}
	for _, a := range c.Accounts {
		w.add(anything, sqlSaveAccount, int64(a.ID), int64(a.BusinessID), string(a.Type), strings.ToLower(a.Email),
			a.Name, a.PasswordHash, int64(a.ProviderID), a.Locale, a.Enabled, ms(a.CreatedAt), text(a.Permissions), text(a.PriceHidden), blob(a.MailProof), int64(a.PreferredDevice))
	}
	for _, t := range c.Tokens {
		w.add(anything, sqlSaveToken, t.Hash[:], int64(t.AccountID), t.Name, ms(t.CreatedAt), ms(t.ExpiresAt), ms(t.RevokedAt),
			int64(t.ID), text(t.Scopes), t.Profile, text(t.IPAllowlist), int64(t.Grant), string(t.Kind), t.Audience, text(t.Policy), t.Strong)
	}
	for _, e := range c.Endpoints {
		purpose := secretPurpose(e.ID)
		w.add(anything, sqlHealthAnew, int64(e.ID), e.URL, e.Status)
		w.add(anything, sqlSaveEndpoint, int64(e.ID), int64(e.BusinessID), int64(e.ProviderID), e.Kind, e.URL,
			e.SandboxURL, e.SandboxEnabled, text(e.Events), w.seal(purpose, e.Secret), w.seal(purpose, e.SecretNext),
			ms(e.NextUntil), e.Enabled, e.Status, ms(e.StatusSince), ms(e.CreatedAt), int64(e.CustomerID), e.Format, e.Signature,
			w.seal(purpose+"/key", e.SigningKey), e.Rate, int64(e.Burst), e.StatusReason, e.Numbered, text(e.Categories))
	}
}

// Login is a token with what it belongs to.
type Login struct {
	Token    cloud.Token
	Account  cloud.Account
	Provider cloud.Provider // when the account is one's
	State    cloud.BusinessState
	Pass     cloud.PassID // of an operator of the platform
}

// FindToken finds what a token's hash stands for, expired and revoked ones too. What another program
// wrote to the same SQLite database, as an administrator's does beside a node, counts within a second.
// Callers share what the answer points to, and change none of it.
func (db accounts) FindToken(ctx context.Context, hash [32]byte) (Login, error) {
	e, ok := db.engine.(*lite)
	if !ok { // other nodes write, too
		return db.findLogin(ctx, hash)
	}
	at, now := e.logins.Load(), time.Now() // before the reading: what is written meanwhile makes its result old
	if l, ok := db.logins.find(hash, at); ok {
		return l, nil
	}
	l, err := db.findLogin(ctx, hash)
	if err == nil && l.Token.Kind != cloud.PassToken { // a pass ends by the clock
		db.logins.keepLogin(hash, l, at, now)
	}
	return l, err
}

// logins keeps what tokens stood for while this process writes nothing that could change it, and for
// keptLogins at most. It is safe for concurrent use.
type logins struct {
	mu    sync.RWMutex
	at    uint64    // the state of the engine that list is of
	since time.Time // when list began
	list  map[[32]byte]Login
}

const (
	maxLogins  = 4096 // about 4 MB
	keptLogins = time.Second
)

func (c *logins) find(hash [32]byte, at uint64) (l Login, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.at == at && time.Since(c.since) < keptLogins {
		l, ok = c.list[hash]
	}
	return l, ok
}

// keepLogin keeps what a token stood for in a state of the engine, read at a moment.
func (c *logins) keepLogin(hash [32]byte, l Login, at uint64, read time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case at < c.at, at == c.at && read.Before(c.since):
		return
	case at > c.at, read.Sub(c.since) >= keptLogins, len(c.list) >= maxLogins:
		c.at, c.since, c.list = at, read, make(map[[32]byte]Login, 16)
	}
	c.list[hash] = l
}

// findLogin reads what a token's hash stands for.
func (db *database) findLogin(ctx context.Context, hash [32]byte) (Login, error) {
	var l Login
	err := db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if l.Token, err = one(ctx, q, sqlToken, scanToken, hash[:]); err != nil {
			return err
		}
		if l.Account, err = one(ctx, q, sqlAccount, scanAccount, int64(l.Token.AccountID)); err != nil {
			return err
		}
		if l.Token.Kind == cloud.PassToken {
			if l.Account, l.Pass, err = passed(ctx, q, l); err != nil {
				return err
			}
		}
		l.State = cloud.BusinessState{BusinessID: l.Account.BusinessID}
		if l.Account.BusinessID != 0 {
			if l.State, err = one(ctx, q, sqlBusinessState, scanState, int64(l.Account.BusinessID)); err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return err
			}
			err = nil
		}
		if l.Account.ProviderID != 0 {
			l.Provider, err = one(ctx, q, sqlProvider, scanProvider, int64(l.Account.ProviderID))
		}
		return err
	})
	return l, err
}

// passed is the operator of a pass as an administrator of the business that it is
// for. Without a pass that lives the token is unknown.
func passed(ctx context.Context, q querier, l Login) (cloud.Account, cloud.PassID, error) {
	p, err := findRow(ctx, q, cloud.PlatformPass{TokenHash: l.Token.Hash})
	if err == nil && (!p.Live(time.Now()) || l.Account.Type != cloud.PlatformAdmin || p.AccountID != l.Account.ID) {
		err = cloud.ErrNotFound
	}
	a := l.Account
	a.BusinessID, a.Type = p.BusinessID, cloud.ClientAdmin
	return a, p.ID, err
}

// FindAccount finds an account.
func (db accounts) FindAccount(ctx context.Context, id cloud.AccountID) (cloud.Account, error) {
	return readOne(ctx, db.database, sqlAccount, scanAccount, int64(id))
}

// FindBusinessByCode finds a business by its code.
func (db accounts) FindBusinessByCode(ctx context.Context, code string) (cloud.Business, error) {
	return readOne(ctx, db.database, sqlBusinessByCode, scanBusiness, code)
}

// FindAccountsByEmail finds the accounts that sign in with email, in any case:
// at most one of each business.
func (db accounts) FindAccountsByEmail(ctx context.Context, email string) ([]cloud.Account, error) {
	return readList(ctx, db.database, sqlAccountsByEmail, scanAccount, strings.ToLower(email))
}

// ListTokens lists an account's tokens, expired and revoked ones too, in no
// particular order.
func (db accounts) ListTokens(ctx context.Context, id cloud.AccountID) ([]cloud.Token, error) {
	return readList(ctx, db.database, sqlTokens, scanToken, int64(id))
}

// ListProviders lists a business's providers by code.
func (db accounts) ListProviders(ctx context.Context, id cloud.BusinessID) ([]cloud.Provider, error) {
	return readList(ctx, db.database, sqlProviders, scanProvider, int64(id))
}

// FindEndpoint finds a webhook receiver with its secrets; those of the account
// channel have the secrets of their level.
func (db accounts) FindEndpoint(ctx context.Context, id cloud.EndpointID) (e cloud.Endpoint, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		if e, err = one(ctx, q, sqlEndpoint, scanEndpoint, int64(id)); err != nil {
			return err
		}
		if err = (sealer{db.box}).unsealEndpoint(&e); err != nil {
			return err
		}
		state, err := one(ctx, q, sqlBusinessState, scanState, int64(e.BusinessID))
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		e.Suspended = state.Suspended()
		if e.Kind == cloud.AccountEndpoint || e.Kind == cloud.PostbackEndpoint {
			return sealer{db.box}.signing(ctx, q, &e)
		}
		return nil
	})
	return e, err
}

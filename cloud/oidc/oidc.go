// Package oidc asks the sign-in providers of businesses who a person is (OpenID Connect
// Core 1.0, authorization code with PKCE).
//
// A login that is under way is a sealed cookie of the person's browser: state, nonce and
// PKCE verifier are in it, and a callback is taken with it alone, within ten minutes. The
// provider is found by its issuer when it is needed first, and its keys are read again
// when a token names one that is not known. Each business has a callback of its own
// (RFC 9700, 4.4.2): a provider of one that sends people on to another one's gets no
// code of that. Nothing is kept here. Safe for concurrent use.
package oidc

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// Life is how long a login may take at the provider.
const Life = 10 * time.Minute

// Provider is a business's sign-in provider.
type Provider struct {
	Business         string // code
	Name             string // on the login page
	Issuer           string
	ClientID, Secret string
	// RoleClaim names the claim whose values Roles maps to types of accounts, the most
	// powerful first; empty: roles are kept here.
	RoleClaim string
	Roles     map[string]cloud.AccountType
	// Required says that people of the business sign in this way alone.
	Required bool
}

// Config is what New needs.
type Config struct {
	Providers []Provider
	Redirect  string // address of the callbacks, before the code of a business
	Key       []byte // seals cookies, the same on every node
	Client    *http.Client
	Log       *slog.Logger
}

// Service asks providers.
type Service struct {
	cfg Config

	mu    sync.Mutex
	known map[string]*goidc.Provider // by issuer, of those that answered
}

// New builds the service; it asks nothing yet.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg, known: map[string]*goidc.Provider{}}
}

// Providers lists all of them, without their secrets.
func (s *Service) Providers() (out []Provider) {
	for _, p := range s.cfg.Providers {
		p.Secret = ""
		out = append(out, p)
	}
	return out
}

// login is one that is under way.
type login struct {
	Business string    `json:"b"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Until    time.Time `json:"u"`
	Next     string    `json:"x,omitempty"`
}

func (s *Service) provider(business string) (Provider, bool) {
	for _, p := range s.cfg.Providers {
		if strings.EqualFold(p.Business, business) {
			return p, true
		}
	}
	return Provider{}, false
}

// find reads what a provider says of itself, once.
func (s *Service) find(ctx context.Context, p Provider) (*goidc.Provider, *oauth2.Config, error) {
	s.mu.Lock()
	known := s.known[p.Issuer]
	s.mu.Unlock()
	if known == nil {
		// The library keeps the context for later reads of keys: it must not end.
		var err error
		if known, err = goidc.NewProvider(goidc.ClientContext(context.WithoutCancel(ctx), s.cfg.Client), p.Issuer); err != nil {
			return nil, nil, s.unavailable("find the provider", p, err)
		}
		s.mu.Lock()
		s.known[p.Issuer] = known
		s.mu.Unlock()
	}
	return known, &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.Secret, Endpoint: known.Endpoint(), RedirectURL: s.Callback(p), Scopes: []string{goidc.ScopeOpenID, "email", "profile"}}, nil
}

// Callback is the address that a provider is to send people back to.
func (s *Service) Callback(p Provider) string {
	return s.cfg.Redirect + "/" + url.PathEscape(strings.ToLower(p.Business))
}

func (s *Service) unavailable(what string, p Provider, err error) error {
	s.cfg.Log.Warn("sign-in provider", "what", what, "business", p.Business, "issuer", p.Issuer, "err", err)
	return cloud.E(cloud.Unavailable, "OIDC_UNAVAILABLE")
}

func (s *Service) refused(what string, p Provider, err error) error {
	s.cfg.Log.Warn("sign-in provider", "what", what, "business", p.Business, "issuer", p.Issuer, "err", err)
	return cloud.E(cloud.Unauthenticated, "OIDC_REFUSED")
}

func random() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// MaxNext is how long what a login is for may be, in bytes, so that browsers keep its
// cookie.
const MaxNext = 2000

// Begin gives the address at which a person of a business signs in, and the cookie that
// the browser has to bring back. next, at most MaxNext bytes, is what the login is for,
// as Next gives it back. Errors: OIDC_NO_PROVIDER, OIDC_UNAVAILABLE.
func (s *Service) Begin(ctx context.Context, business, next string) (address, cookie string, err error) {
	p, ok := s.provider(business)
	if !ok {
		return "", "", cloud.E(cloud.NotFound, "OIDC_NO_PROVIDER")
	}
	_, conf, err := s.find(ctx, p)
	if err != nil {
		return "", "", err
	}
	l := login{Business: p.Business, State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Until: time.Now().Add(Life).UTC(), Next: next}
	raw, err := json.Marshal(l)
	if err != nil {
		return "", "", err
	}
	return conf.AuthCodeURL(l.State, goidc.Nonce(l.Nonce), oauth2.S256ChallengeOption(l.Verifier)), s.seal(raw), nil
}

func (s *Service) seal(raw []byte) string {
	m := hmac.New(sha256.New, s.cfg.Key)
	m.Write(raw)
	return base64.RawURLEncoding.EncodeToString(m.Sum(raw))
}

func (s *Service) open(cookie string) (l login, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || len(raw) <= sha256.Size {
		return l, false
	}
	raw = raw[:len(raw)-sha256.Size]
	return l, subtle.ConstantTimeCompare([]byte(s.seal(raw[:len(raw):len(raw)])), []byte(cookie)) == 1 && json.Unmarshal(raw, &l) == nil
}

// Next is what the login of a cookie is for, one that is over too; empty for a cookie of
// another's making.
func (s *Service) Next(cookie string) string {
	if l, ok := s.open(cookie); ok {
		return l.Next
	}
	return ""
}

// claims are those of a token, or of the provider's answer about the person.
type claims struct {
	Subject       string `json:"sub"`
	Email         string `json:"email"`
	EmailVerified bool   `json:"email_verified"`
}

// Finish exchanges the code of a business's callback and gives the person that the
// provider vouches for. Errors: OIDC_EXPIRED without the cookie that Begin gave for the
// business, OIDC_UNAVAILABLE, OIDC_REFUSED.
func (s *Service) Finish(ctx context.Context, business, cookie, state, code string) (x auth.External, err error) {
	l, ok := s.open(cookie)
	if !ok || !strings.EqualFold(l.Business, business) || !time.Now().Before(l.Until) || subtle.ConstantTimeCompare([]byte(l.State), []byte(state)) != 1 {
		return x, cloud.E(cloud.Unauthenticated, "OIDC_EXPIRED")
	}
	p, ok := s.provider(l.Business)
	if !ok {
		return x, cloud.E(cloud.NotFound, "OIDC_NO_PROVIDER")
	}
	known, conf, err := s.find(ctx, p)
	if err != nil {
		return x, err
	}
	if code == "" {
		return x, s.refused("log in", p, errors.New("the provider sent no code"))
	}
	ctx = goidc.ClientContext(ctx, s.cfg.Client)
	token, err := conf.Exchange(ctx, code, oauth2.VerifierOption(l.Verifier))
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && answered.Response != nil && answered.Response.StatusCode < 500 {
		return x, s.refused("exchange the code", p, fmt.Errorf("it answered %d %s", answered.Response.StatusCode, answered.ErrorCode))
	}
	if err != nil {
		return x, s.unavailable("exchange the code", p, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return x, s.refused("read the token", p, errors.New("there is no id_token"))
	}
	id, err := known.Verifier(&goidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return x, s.refused("verify the token", p, err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(l.Nonce)) != 1 {
		return x, s.refused("verify the token", p, errors.New("the nonce is another login's"))
	}
	var c claims
	all := map[string]any{}
	if err := errors.Join(id.Claims(&c), id.Claims(&all)); err != nil {
		return x, s.refused("read the claims", p, err)
	}
	if _, there := all[p.RoleClaim]; c.Email == "" || p.RoleClaim != "" && !there {
		info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return x, s.unavailable("ask about the person", p, err)
		}
		if info.Subject != id.Subject {
			return x, s.refused("ask about the person", p, errors.New("the answer is about another person"))
		}
		var more claims
		others := map[string]any{}
		if err := errors.Join(info.Claims(&more), info.Claims(&others)); err != nil {
			return x, s.refused("read the claims", p, err)
		}
		if c.Email == "" { // an address and whether it is verified are of one document
			c.Email, c.EmailVerified = more.Email, more.EmailVerified
		}
		for name, v := range others { // what the token says is signed
			if _, there := all[name]; !there {
				all[name] = v
			}
		}
	}
	x = auth.External{BusinessCode: p.Business, Issuer: id.Issuer, Subject: id.Subject, Email: c.Email, EmailVerified: c.EmailVerified}
	if p.RoleClaim != "" {
		x.Role = p.role(all[p.RoleClaim])
		x.NoRole = x.Role == ""
	}
	return x, nil
}

// role is the most powerful that the values of a claim, a text or a list of texts, are
// mapped to; empty: none is.
func (p Provider) role(claim any) (role cloud.AccountType) {
	values, ok := claim.([]any)
	if !ok {
		values = []any{claim}
	}
	for _, v := range values {
		text, _ := v.(string)
		switch r := p.Roles[text]; {
		case r == cloud.ClientAdmin:
			return r
		case r != "":
			role = r
		}
	}
	return role
}

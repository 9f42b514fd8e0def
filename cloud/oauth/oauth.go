// Package oauth is the authorization server of agents: a program that knows
// nothing but one address finds out where to ask, registers or names a document
// about itself, sends its user here to log in and agree, and gets tokens that
// are good at that address only, for as much as its user agreed to.
//
// One grant type behind PKCE, public clients, opaque tokens of which only
// hashes are kept. A code works once and for a minute, a refresh token once; a
// second use of either means that another party has it and ends the grant with
// all its tokens, whichever node it happens on: every decision about a grant
// writes the grant's row.
//
// It shows no pages: cloud/page asks people, with Check, Offers, Allow and
// Refuse. Codes, tokens, verifiers and states are in no error, log or audit
// line. Safe for concurrent use.
//
// RFC 6749, 7009, 7591, 7636, 8252, 8414, 8707, 9207, 9728.
package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
)

// How long things last.
const (
	CodeLife    = time.Minute
	AccessLife  = time.Hour
	RefreshLife = 30 * 24 * time.Hour

	unusedLife = 24 * time.Hour       // of a registered client without consent
	idleLife   = 365 * 24 * time.Hour // of one whose grants are over
	overLife   = 30 * 24 * time.Hour  // of grants that are over
	sweepEvery = time.Hour
)

// Bounds.
const (
	maxUnused = 5000 // registered clients that were never used
	maxGrants = 50   // of one account that are live; the one used longest ago makes room
)

// Store is what this package needs of the database.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
}

// Document is what was found at an address.
type Document struct {
	Status int
	Type   string // media type
	Body   []byte
}

// Limits are how often a minute one address may ask. 0 is the usual figure, a
// negative one no limit.
type Limits struct {
	Register int // for a client id; 10
	Token    int // for a token, or the end of one; 120
	Fetch    int // for a client that is described at an address, which is read; 20
}

// WithDefaults has the usual figure for each that is 0.
func (l Limits) WithDefaults() Limits {
	return Limits{Register: cmp.Or(l.Register, 10), Token: cmp.Or(l.Token, 120), Fetch: cmp.Or(l.Fetch, 20)}
}

// Config is what New needs.
type Config struct {
	Store Store
	// Fetch reads a small document from an address that an outsider named: it is
	// guarded. nil: clients have to register.
	Fetch   func(ctx context.Context, url string) (Document, error)
	BaseURL string // own public address; "": see Base
	Limits  Limits
	Nodes   limit.Nodes // that share the limits
	Log     *slog.Logger
}

// Service is the authorization server.
type Service struct {
	cfg    Config
	log    *slog.Logger
	limits *limit.Buckets

	mu        sync.Mutex
	documents map[string]document // by client id, at most maxDocuments
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits = cfg.Limits.WithDefaults()
	return &Service{cfg: cfg, log: cfg.Log, limits: limit.New(0, cfg.Nodes), documents: map[string]document{}}
}

// Run removes what is over, now and then, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	for {
		if err := s.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Error("remove expired sessions of agents", "err", err)
		}
		t := time.NewTimer(sweepEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

func (s *Service) sweep(ctx context.Context, now time.Time) error {
	drop := cloud.OAuthDrop{Unused: now.Add(-unusedLife), Idle: now.Add(-idleLife), Tokens: now, Grants: now.Add(-overLife)}
	return s.cfg.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{OAuthChanges: cloud.OAuthChanges{DropOAuth: drop}}, nil
	})
}

// Error is an error as the protocol tells it. Text is one plain sentence
// without anything that came from outside.
type Error struct {
	Code string
	Text string
}

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// Codes of errors (RFC 6749 4.1.2.1 and 5.2, 7591 3.2.2, 8707 2).
const (
	InvalidRequest         = "invalid_request"
	InvalidClient          = "invalid_client"
	InvalidGrant           = "invalid_grant"
	InvalidScope           = "invalid_scope"
	InvalidTarget          = "invalid_target"
	InvalidRedirect        = "invalid_redirect_uri"
	InvalidMetadata        = "invalid_client_metadata"
	UnsupportedGrant       = "unsupported_grant_type"
	UnsupportedResponse    = "unsupported_response_type"
	AccessDenied           = "access_denied"
	ServerError            = "server_error"
	TemporarilyUnavailable = "temporarily_unavailable"
)

func fail(code, text string) *Error { return &Error{code, text} }

// line is an audit line about a client or grant.
func line(b cloud.BusinessID, a cloud.AccountID, action, target string, now time.Time, detail map[string]any) cloud.Audit {
	actor := "anonymous"
	if a != 0 {
		actor = fmt.Sprintf("account:%d", a)
	}
	text, _ := json.Marshal(detail) // of plain values
	return cloud.Audit{BusinessID: b, At: now, Actor: actor, Action: action, Target: target, Detail: string(text)}
}

func target(g cloud.OAuthGrant) string { return fmt.Sprintf("agent=%d", g.ID) }

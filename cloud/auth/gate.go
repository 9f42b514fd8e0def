package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
)

// GateConfig is how often people may try. Zero fields are the usual figures.
type GateConfig struct {
	PerIP    int           // failed tries a minute from one address, and those under way; 0 is 10
	PerEmail int           // tries a minute for one email; 0 is 5
	Failures int           // failed tries within Window that lock the email; 0 is 10
	Window   time.Duration // 0 is 15 minutes
	Lock     time.Duration // 0 is 15 minutes
	Nodes    limit.Nodes   // that share the first two
}

// Gate stands before Login: it bounds how often a password is tried. What failed is
// kept in the database, so that every node knows of a lock and none forgets it. Emails
// without an account are counted alike, so that nothing tells which exist. Safe for
// concurrent use.
type Gate struct {
	service *Service
	cfg     GateConfig
	tries   *limit.Buckets
}

// NewGate builds the gate before s.
func NewGate(s *Service, cfg GateConfig) *Gate {
	set := func(v *int, usual int) {
		if *v == 0 {
			*v = usual
		}
	}
	set(&cfg.PerIP, 10)
	set(&cfg.PerEmail, 5)
	set(&cfg.Failures, 10)
	if cfg.Window == 0 {
		cfg.Window = 15 * time.Minute
	}
	if cfg.Lock == 0 {
		cfg.Lock = 15 * time.Minute
	}
	return &Gate{service: s, cfg: cfg, tries: limit.New(0, cfg.Nodes)}
}

// Try is one attempt to log in.
type Try struct {
	Email, Password string
	Code            string // of the second factor, "" when none is given yet
	ClientCode      string // business code; empty: whichever
	Name            string // of the token, as its owner sees it
	Remember        bool   // the token lives RememberedLife
	// Life is how long the token lives; 0: as Remember says.
	Life time.Duration
	IP   string
}

// Login checks one attempt and makes a token. Errors: RATE_LIMITED (with what
// is left of the limit in the second result), ACCOUNT_LOCKED,
// INVALID_CREDENTIALS, ACCOUNT_DISABLED, CLIENT_CODE_REQUIRED,
// SECOND_FACTOR_REQUIRED with a challenge in its details, SECOND_FACTOR_INVALID,
// SECOND_FACTOR_LOCKED.
func (g *Gate) Login(ctx context.Context, try Try) (Login, limit.State, error) {
	var l Login
	state, err := g.guard(ctx, try.Email, try.IP, func() (err error) {
		l, err = g.service.login(ctx, try)
		return err
	})
	return l, state, err
}

// Second finishes a login with the challenge of Login and a code. Errors:
// RATE_LIMITED, CHALLENGE_EXPIRED, SECOND_FACTOR_REQUIRED, SECOND_FACTOR_INVALID,
// SECOND_FACTOR_LOCKED.
func (g *Gate) Second(ctx context.Context, step Step) (Login, limit.State, error) {
	address := "ip/" + limit.Address(step.IP)
	state := g.tries.Take(address, g.cfg.PerIP, time.Now())
	if !state.OK {
		return Login{}, state, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: state.RetryAfter}
	}
	l, err := g.service.second(ctx, step)
	if err == nil {
		g.tries.Give(address, time.Now())
	}
	return l, state, err
}

// BeginPasskey gives the options by which a browser signs in with a passkey. Errors:
// RATE_LIMITED, PASSKEY_UNAVAILABLE, CHALLENGE_EXPIRED.
func (g *Gate) BeginPasskey(ctx context.Context, try PasskeyTry) (options map[string]any, state limit.State, err error) {
	if state = g.tries.Take("passkey/"+limit.Address(try.IP), 6*g.cfg.PerIP, time.Now()); !state.OK {
		return nil, state, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: state.RetryAfter}
	}
	options, err = g.service.beginPasskey(ctx, try)
	return options, state, err
}

// Passkey logs in by what an authenticator signed over the options of BeginPasskey.
// Errors: RATE_LIMITED, PASSKEY_UNAVAILABLE, PASSKEY_REFUSED, CHALLENGE_EXPIRED,
// ACCOUNT_DISABLED.
func (g *Gate) Passkey(ctx context.Context, try PasskeyTry) (Login, limit.State, error) {
	address := "ip/" + limit.Address(try.IP)
	state := g.tries.Take(address, g.cfg.PerIP, time.Now())
	if !state.OK {
		return Login{}, state, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: state.RetryAfter}
	}
	l, err := g.service.passkey(ctx, try)
	if err == nil {
		g.tries.Give(address, time.Now())
	}
	return l, state, err
}

// Confirm checks the password of an account that is logged in, with the limits of
// Login. Errors: RATE_LIMITED, ACCOUNT_LOCKED, INVALID_CREDENTIALS.
func (g *Gate) Confirm(ctx context.Context, a cloud.Account, password, ip string) (limit.State, error) {
	return g.guard(ctx, a.Email, ip, func() error { return g.service.confirm(ctx, a, password) })
}

// Reset bounds how often links to new passwords are requested, alike for addresses
// with and without an account. Error: RATE_LIMITED.
func (g *Gate) Reset(email, ip string) (limit.State, error) {
	for _, x := range []struct {
		key string
		n   int
	}{{"reset ip/" + limit.Address(ip), g.cfg.PerIP}, {"reset email/" + strings.ToLower(strings.TrimSpace(email)), g.cfg.PerEmail}} {
		if s := g.tries.Take(x.key, x.n, time.Now()); !s.OK {
			return s, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: s.RetryAfter}
		}
	}
	return limit.State{OK: true}, nil
}

// guard bounds how often a password is tried.
func (g *Gate) guard(ctx context.Context, email, ip string, try func() error) (limit.State, error) {
	now := time.Now()
	email = strings.ToLower(strings.TrimSpace(email))
	address := "ip/" + limit.Address(ip)
	state := g.tries.Take(address, g.cfg.PerIP, now)
	if !state.OK {
		return state, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: state.RetryAfter}
	}
	key := failuresKey(email)
	var f cloud.LoginFailures
	err := g.service.store.Look(ctx, func(v cloud.View) (err error) {
		f, err = v.LoginFailures(key)
		return err
	})
	if err != nil {
		return state, fmt.Errorf("read failed logins: %w", err)
	}
	if left := f.LockedUntil.Sub(now); left > 0 {
		return state, &cloud.Error{Kind: cloud.Forbidden, Code: "ACCOUNT_LOCKED", RetryAfter: int(math.Ceil(left.Seconds()))}
	}
	if s := g.tries.Take("email/"+email, g.cfg.PerEmail, now); !s.OK {
		return s, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: s.RetryAfter}
	}
	err = try()
	var shown *cloud.Error
	switch known := errors.As(err, &shown); {
	case err == nil || known && shown.Code == "SECOND_FACTOR_REQUIRED": // many people may have one address: who knows the password is no bother
		g.tries.Give(address, time.Now())
		if len(f.Times) > 0 {
			if forgot := g.forget(context.WithoutCancel(ctx), key); forgot != nil {
				return state, forgot
			}
		}
	case known && shown.Code == "INVALID_CREDENTIALS":
		if counted := g.count(context.WithoutCancel(ctx), key); counted != nil {
			return state, counted
		}
	}
	return state, err
}

// failuresKey is what failed logins of an email are kept by: emails that people type,
// right or wrong, are not kept.
func failuresKey(email string) [32]byte { return sha256.Sum256([]byte("login/" + email)) }

// count counts a failed try, and locks the email for a while after too many.
func (g *Gate) count(ctx context.Context, key [32]byte) error {
	err := g.service.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		f, err := v.LoginFailures(key)
		if err != nil {
			return nil, err
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		f.Times = append(f.Times, now)
		if n := len(f.Times) - g.cfg.Failures; n > 0 {
			f.Times = f.Times[n:]
		}
		if len(f.Times) == g.cfg.Failures && now.Sub(f.Times[0]) < g.cfg.Window {
			f.LockedUntil, f.Times = now.Add(g.cfg.Lock), nil
		}
		f.OverAt = now.Add(max(g.cfg.Window, g.cfg.Lock))
		return &cloud.Changes{Unaudited: true, FactorChanges: cloud.FactorChanges{LoginFailures: []cloud.LoginFailures{f}, DropFailures: now}}, nil
	})
	if err != nil {
		return fmt.Errorf("count a failed login: %w", err)
	}
	return nil
}

// forget forgets failed tries.
func (g *Gate) forget(ctx context.Context, key [32]byte) error {
	err := g.service.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{Unaudited: true, FactorChanges: cloud.FactorChanges{LoginFailures: []cloud.LoginFailures{{Key: key}}, DropFailures: time.Now()}}, nil
	})
	if err != nil {
		return fmt.Errorf("forget failed logins: %w", err)
	}
	return nil
}

// Session is what a token stands for.
type Session struct {
	Token    cloud.Token
	Account  cloud.Account
	Provider cloud.Provider // when the account is one's
	// State is what the platform did to the account's business.
	State cloud.BusinessState
	// Pass is that of an operator of the platform, as cloud.Caller has it.
	Pass cloud.PassID
}

// Suspended reports whether no person of the session's business is let in. Operators
// with a pass are.
func (s Session) Suspended() bool { return s.State.Suspended() && s.Token.Kind != cloud.PassToken }

// Revoke ends a token. One that has ended stays as it is.
func (s *Service) Revoke(ctx context.Context, t cloud.Token) error {
	if !t.RevokedAt.IsZero() {
		return nil
	}
	t.RevokedAt = time.Now().UTC()
	return s.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}}, nil
	})
}

// Valid reports whether a token lets its holder in at now. One that is good for
// setting up a second factor alone does not.
func Valid(t cloud.Token, now time.Time) bool {
	return t.Kind != cloud.SetupToken && lives(t, now)
}

// SetsUp reports whether a token lets its holder in at now to what sets up a second
// factor, and to nothing else.
func SetsUp(t cloud.Token, now time.Time) bool {
	return t.Kind == cloud.SetupToken && lives(t, now)
}

func lives(t cloud.Token, now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

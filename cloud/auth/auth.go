// Package auth makes and checks what lets callers in: passwords and tokens.
// Passwords are kept as argon2id in PHC form, tokens as SHA-256. Checking a
// password costs 19 MiB for a moment; one per core runs at a time, the others
// wait their turn. Safe for concurrent use.
package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/postern-io/postern/cloud"
)

// Cost is what hashing a password costs: argon2id, one thread. A hash carries its
// cost, so hashes of several costs are checked side by side.
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
}

// PersonCost is the cost of people's passwords.
var PersonCost = Cost{MemoryKiB: 19 << 10, Passes: 2}

// Sizes in bytes.
const (
	saltSize = 16
	hashSize = 32
)

// How long a login lasts: as a rule, and when the person asked to be
// remembered.
const (
	TokenLife      = 7 * 24 * time.Hour
	RememberedLife = 30 * 24 * time.Hour
)

// Store is what this package needs of the database.
type Store interface {
	FindAccountsByEmail(ctx context.Context, email string) ([]cloud.Account, error)
	Look(ctx context.Context, fn func(cloud.View) error) error
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
}

// Service checks passwords.
type Service struct {
	store Store
	turn  chan struct{}
	// passkeys checks what authenticators sign; nil: no passkey lets in.
	passkeys *Passkeys
	// demanding are the codes, in lower case, of businesses whose people sign in by
	// their provider alone.
	demanding map[string]bool
	none      func() string // a hash that nothing matches, so that unknown names cost the same; made at the first login
}

// New builds the service.
func New(s Store) *Service {
	return &Service{store: s, turn: make(chan struct{}, runtime.NumCPU()), none: sync.OnceValue(func() string { return HashPassword(NewToken()) })}
}

// WithPasskeys lets people in by their passkeys; nil: not.
func (s *Service) WithPasskeys(p *Passkeys) *Service {
	s.passkeys = p
	return s
}

// HashPassword is the PHC form of a person's password.
func HashPassword(password string) string { return PersonCost.Hash(password) }

// Hash is the PHC form of a password at this cost.
func (c Cost) Hash(password string) string {
	var salt [saltSize]byte
	_, _ = rand.Read(salt[:]) // never fails
	sum := argon2.IDKey([]byte(password), salt[:], c.Passes, c.MemoryKiB, 1, hashSize)
	e := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, c.MemoryKiB, c.Passes, e.EncodeToString(salt[:]), e.EncodeToString(sum))
}

// CheckPassword reports whether password is the one that hash was made of.
func CheckPassword(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var m, t uint32
	var p uint8
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &m, &t, &p); err != nil || m > 1<<20 || t == 0 || t > 64 || p == 0 {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, t, m, p, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// NewToken makes an opaque token of 64 URL-safe characters.
func NewToken() string {
	var b [48]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is what is kept of a token.
func Hash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// Login is the answer to a login.
type Login struct {
	Token     string
	ExpiresAt time.Time
	Account   cloud.Account
	Business  cloud.Business
	SetsUp    bool // the token is good for setting up a second factor, which the business demands
}

// Login checks email and password and makes a token. Errors:
// INVALID_CREDENTIALS, ACCOUNT_DISABLED, CLIENT_CODE_REQUIRED.
func (s *Service) Login(ctx context.Context, email, password string) (Login, error) {
	return s.login(ctx, Try{Email: email, Password: password})
}

// member is an account with its business.
type member struct {
	cloud.Account
	business cloud.Business
}

// maxMembers is how many businesses of one email a password is tried with.
const maxMembers = 16

// members are the accounts that a try may mean.
func (s *Service) members(ctx context.Context, try Try) (out []member, err error) {
	list, err := s.store.FindAccountsByEmail(ctx, strings.ToLower(strings.TrimSpace(try.Email)))
	if err != nil {
		return nil, fmt.Errorf("find accounts: %w", err)
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		out = nil
		for _, a := range list {
			b, err := v.Business(a.BusinessID)
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return err
			}
			if try.ClientCode == "" || strings.EqualFold(try.ClientCode, b.Code) {
				out = append(out, member{a, b})
			}
		}
		return nil
	})
	return out[:min(len(out), maxMembers)], err
}

// choose finds the one account whose password it is. Businesses are named only
// to who knows the password of an account there.
func (s *Service) choose(ctx context.Context, try Try) (member, error) {
	list, err := s.members(ctx, try)
	if err != nil {
		return member{}, err
	}
	var good []member
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return member{}, ctx.Err()
	}
	if len(list) == 0 {
		CheckPassword(s.none(), try.Password) // an unknown name costs the same
	}
	for _, m := range list {
		if CheckPassword(cmp.Or(m.PasswordHash, s.none()), try.Password) && m.PasswordHash != "" {
			good = append(good, m)
		}
	}
	<-s.turn
	if enabled := slices.DeleteFunc(slices.Clone(good), func(m member) bool { return !m.Enabled }); len(enabled) > 0 {
		good = enabled
	}
	switch {
	case len(good) == 0:
		return member{}, cloud.E(cloud.Unauthenticated, "INVALID_CREDENTIALS")
	case len(good) > 1:
		clients := make([]map[string]string, len(good))
		for i, m := range good {
			clients[i] = map[string]string{"code": m.business.Code, "name": m.business.Name}
		}
		return member{}, &cloud.Error{Kind: cloud.Conflict, Code: "CLIENT_CODE_REQUIRED", Details: map[string]any{"clients": clients}}
	case !good[0].Enabled:
		return member{}, cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED")
	}
	return good[0], nil
}

// confirm checks the password of an account. Error: INVALID_CREDENTIALS.
func (s *Service) confirm(ctx context.Context, a cloud.Account, password string) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	good := CheckPassword(cmp.Or(a.PasswordHash, s.none()), password) && a.PasswordHash != ""
	<-s.turn
	if !good {
		return cloud.E(cloud.Unauthenticated, "INVALID_CREDENTIALS")
	}
	return nil
}

// login makes a token, or for an account with a second factor and a try without a
// code a challenge. Errors beside those of Login: SECOND_FACTOR_REQUIRED with the
// challenge in its details, SECOND_FACTOR_INVALID, SECOND_FACTOR_LOCKED.
func (s *Service) login(ctx context.Context, try Try) (l Login, err error) {
	m, err := s.choose(ctx, try)
	if err != nil {
		return Login{}, err
	}
	err = Decide(ctx, s.store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		a, err := v.Account(m.ID)
		if err != nil {
			return nil, err
		}
		if !a.Enabled || a.PasswordHash != m.PasswordHash {
			return cloud.E(cloud.Unauthenticated, "INVALID_CREDENTIALS"), nil // changed in this moment
		}
		if demanded, err := s.demands(v, a); demanded || err != nil {
			return cloud.E(cloud.Forbidden, "OIDC_REQUIRED"), err
		}
		name, life := cmp.Or(try.Name, "login"), cmp.Or(try.Life, TokenLife)
		if try.Life == 0 && try.Remember {
			life = RememberedLife
		}
		problem, err := Prove(v, ch, a, try.Code, now)
		switch {
		case err != nil:
			return nil, err
		case problem != nil && problem.Code == "SECOND_FACTOR_REQUIRED":
			challenge := NewToken()
			t := cloud.Ticket{Hash: Hash(challenge), Kind: cloud.LoginTicket, AccountID: a.ID, PasswordMark: Mark(a), Name: name, Life: life, ExpiresAt: now.Add(challengeLife)}
			ch.Tickets, ch.DropTickets, ch.Unaudited = append(ch.Tickets, t), now, true
			methods := []string{"totp", "recovery_code"}
			if s.passkeys != nil {
				list, err := cloud.All(v, cloud.Passkey{AccountID: a.ID})
				if err != nil {
					return nil, err
				}
				if len(list) > 0 {
					methods = append(methods, "passkey")
				}
			}
			problem.Details = map[string]any{"challenge": challenge, "challenge_expires_in": int(challengeLife / time.Second), "methods": methods}
			return problem, nil
		case problem != nil:
			return problem, nil
		}
		l, err = s.enter(v, ch, a, name, life, now, false)
		return nil, err
	})
	if err != nil {
		return Login{}, err
	}
	return l, nil
}

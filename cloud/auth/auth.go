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
	none  func() string // a hash that nothing matches, so that unknown names cost the same; made at the first login
}

// New builds the service.
func New(s Store) *Service {
	return &Service{store: s, turn: make(chan struct{}, runtime.NumCPU()), none: sync.OnceValue(func() string { return HashPassword(NewToken()) })}
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

func (s *Service) login(ctx context.Context, try Try) (Login, error) {
	a, err := s.choose(ctx, try)
	if err != nil {
		return Login{}, err
	}
	now := time.Now().UTC()
	l := Login{Token: NewToken(), ExpiresAt: now.Add(TokenLife), Account: a.Account, Business: a.business}
	switch {
	case try.Life > 0:
		l.ExpiresAt = now.Add(try.Life)
	case try.Remember:
		l.ExpiresAt = now.Add(RememberedLife)
	}
	name := try.Name
	if name == "" {
		name = "login"
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if now, err := v.Account(a.ID); err != nil {
			return nil, err
		} else if !now.Enabled || now.PasswordHash != a.PasswordHash {
			return nil, cloud.E(cloud.Unauthenticated, "INVALID_CREDENTIALS") // changed in this moment
		}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: Hash(l.Token), AccountID: a.ID, Name: name, CreatedAt: now, ExpiresAt: l.ExpiresAt}}},
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: a.BusinessID, At: now, Actor: fmt.Sprintf("account:%d", a.ID), Action: "logged_in", Target: fmt.Sprintf("account:%d", a.ID)}}}}, nil
	})
	if err != nil {
		return Login{}, err
	}
	return l, nil
}

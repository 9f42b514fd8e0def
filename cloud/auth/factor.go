package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/postern-io/postern/cloud"
)

// What a second factor is made of.
const (
	CodePeriod    = 30 * time.Second // of a time-based code; one before and one after are taken too
	RecoveryCodes = 10               // that are made at once

	secretSize    = 20 // bytes, as RFC 4226 recommends
	challengeLife = 5 * time.Minute
	freeCodes     = 5                // wrong codes in a row before the first lock
	firstLock     = 15 * time.Minute // doubled by each further wrong code
	longestLock   = 24 * time.Hour
)

var readable = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// NewSecret makes the secret of an account's time-based codes.
func NewSecret() []byte {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// KeyText is a secret as people type it into an app that shows codes.
func KeyText(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// NewRecoveryCodes makes recovery codes of 80 bits each, and what is kept of them.
func NewRecoveryCodes() (codes, kept []string) {
	for range RecoveryCodes {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails
		c := readable.EncodeToString(b[:])
		c = c[:4] + "-" + c[4:8] + "-" + c[8:12] + "-" + c[12:]
		codes, kept = append(codes, c), append(kept, recoveryDigest(c))
	}
	return codes, kept
}

func recoveryDigest(code string) string {
	sum := sha256.Sum256([]byte("recovery code/" + strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(code))))
	return hex.EncodeToString(sum[:])
}

// timeBased reports whether a code has the form of a time-based one.
func timeBased(code string) bool {
	return len(code) == 6 && strings.Trim(code, "0123456789") == ""
}

// StepOf is the counter whose code a time-based code of secret is at now, at
// least after last. ok is false for a wrong code and for one that was taken.
func StepOf(secret []byte, code string, last int64, now time.Time) (step int64, ok bool) {
	at := now.Unix() / int64(CodePeriod/time.Second)
	for _, step := range []int64{at, at - 1, at + 1} {
		want, err := hotp.GenerateCodeCustom(KeyText(secret), uint64(step), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err == nil && step > last && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			return step, true
		}
	}
	return 0, false
}

// TakeCode takes a time-based code or a recovery code of a second factor, within
// a decision that writes after, whatever problem says: wrong codes are counted.
// Each code is taken once. Five wrong ones in a row lock time-based codes for 15
// minutes and each further one for twice as long, to a day; recovery codes cannot
// be guessed and are never locked. Problems: SECOND_FACTOR_REQUIRED without a
// code, SECOND_FACTOR_INVALID, SECOND_FACTOR_LOCKED.
func TakeCode(f cloud.SecondFactor, code string, now time.Time) (after cloud.SecondFactor, problem *cloud.Error) {
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	switch {
	case code == "":
		return f, cloud.E(cloud.Unauthenticated, "SECOND_FACTOR_REQUIRED")
	case !timeBased(code):
		digest := recoveryDigest(code)
		if i := slices.Index(f.Recovery, digest); i >= 0 {
			f.Recovery = slices.Delete(slices.Clone(f.Recovery), i, i+1)
			f.Wrong, f.LockedUntil = 0, time.Time{}
			return f, nil
		}
		return f, cloud.E(cloud.Unauthenticated, "SECOND_FACTOR_INVALID")
	case now.Before(f.LockedUntil):
		return f, &cloud.Error{Kind: cloud.Forbidden, Code: "SECOND_FACTOR_LOCKED", RetryAfter: int(math.Ceil(f.LockedUntil.Sub(now).Seconds()))}
	}
	if step, ok := StepOf(f.Secret, code, f.Step, now); ok {
		f.Step, f.Wrong, f.LockedUntil = step, 0, time.Time{}
		return f, nil
	}
	f.Wrong++
	if n := f.Wrong - freeCodes; n >= 0 {
		f.LockedUntil = now.Add(min(firstLock<<min(n, 10), longestLock)).Truncate(time.Millisecond)
	}
	return f, cloud.E(cloud.Unauthenticated, "SECOND_FACTOR_INVALID")
}

// Prove looks at the second factor of an account within a decision that is about
// something that its password lets do. It adds to ch what the decision writes even
// when there is a problem, which is as TakeCode says; nil for an account without a
// second factor.
func Prove(v cloud.View, ch *cloud.Changes, a cloud.Account, code string, now time.Time) (*cloud.Error, error) {
	f, err := v.SecondFactor(a.ID)
	if err != nil || !f.On() {
		return nil, err
	}
	f, problem := TakeCode(f, code, now)
	if problem != nil && problem.Code == "SECOND_FACTOR_REQUIRED" {
		return problem, nil
	}
	ch.SecondFactors = append(ch.SecondFactors, f)
	if problem != nil {
		ch.Audits = append(ch.Audits, audit(a, now, "second_factor_refused"))
	}
	return problem, nil
}

func audit(a cloud.Account, now time.Time, action string) cloud.Audit {
	who := fmt.Sprintf("account:%d", a.ID)
	return cloud.Audit{BusinessID: a.BusinessID, At: now, Actor: who, Action: action, Target: who}
}

// Mark stands for an account's password: what was made for one ends with it.
func Mark(a cloud.Account) [32]byte { return sha256.Sum256([]byte(a.PasswordHash)) }

// Step is the second step of a login.
type Step struct {
	Challenge string // of the first
	Code      string // time-based code or recovery code
	IP        string
}

// second finishes a login that a second factor was missing of. Errors:
// CHALLENGE_EXPIRED, and those of TakeCode.
func (s *Service) second(ctx context.Context, step Step) (Login, error) {
	var l Login
	err := Decide(ctx, s.store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		t, a, problem, err := loginTicket(v, step.Challenge, now)
		if problem != nil || err != nil {
			return problem, err
		}
		if problem, err := Prove(v, ch, a, step.Code, now); problem != nil || err != nil {
			return problem, err
		}
		t.UsedAt = now
		ch.Tickets = append(ch.Tickets, t)
		l, err = s.enter(v, ch, a, t.Name, t.Life, now, false)
		return nil, err
	})
	if err != nil {
		return Login{}, err
	}
	return l, nil
}

// Decider is what Decide needs of the database.
type Decider interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
}

// Decide runs a decision that may write something although it refuses, as a count
// of wrong codes: fn adds it to ch and gives what the caller is answered.
func Decide(ctx context.Context, db Decider, fn func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error)) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	var problem *cloud.Error
	err := db.Decide(ctx, 0, func(v cloud.View) (_ *cloud.Changes, err error) {
		ch := &cloud.Changes{}
		problem, err = fn(v, ch, now)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			if ch.Empty() {
				return nil, problem
			}
			ch.Refused = true
		}
		return ch, nil
	})
	if err == nil && problem != nil {
		return problem
	}
	return err
}

// enter makes the token of a login. In a business that demands a second factor,
// the token of a person without one is good for setting one up, unless what let the
// person in is as strong.
func (s *Service) enter(v cloud.View, ch *cloud.Changes, a cloud.Account, name string, life time.Duration, now time.Time, strong bool) (Login, error) {
	b, err := v.Business(a.BusinessID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) { // the platform's own people have none
		return Login{}, err
	}
	if a.BusinessID != 0 {
		state, err := v.Suspension(a.BusinessID)
		if err != nil {
			return Login{}, err
		}
		if state.Suspended() {
			return Login{}, cloud.E(cloud.Forbidden, "BUSINESS_SUSPENDED")
		}
	}
	f, err := v.SecondFactor(a.ID)
	if err != nil {
		return Login{}, err
	}
	l := Login{Token: NewToken(), ExpiresAt: now.Add(life), Account: a, Business: b, SetsUp: b.Settings.SecondFactor && !f.On() && !strong}
	t := cloud.Token{Hash: Hash(l.Token), AccountID: a.ID, Name: name, CreatedAt: now, ExpiresAt: l.ExpiresAt, Strong: strong}
	if l.SetsUp {
		t.Kind = cloud.SetupToken
	}
	ch.Accounts = append(ch.Accounts, a) // who changes the password, or demands second factors, at this moment meets the login there
	ch.Tokens = append(ch.Tokens, t)
	ch.Audits = append(ch.Audits, audit(a, now, "logged_in"))
	return l, nil
}

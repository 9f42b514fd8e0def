package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// memory keeps accounts and businesses; its View answers for these two alone.
type memory struct {
	cloud.View
	accounts   []cloud.Account
	businesses []cloud.Business
	saved      []cloud.Changes
	failed     map[[32]byte]cloud.LoginFailures
	before     func(m *memory) // runs before a decision reads
}

func (m *memory) FindAccountsByEmail(_ context.Context, email string) (out []cloud.Account, err error) {
	for _, a := range m.accounts {
		if a.Email == email {
			out = append(out, a)
		}
	}
	return out, nil
}

func (m *memory) Look(_ context.Context, fn func(cloud.View) error) error { return fn(m) }

func (m *memory) Decide(_ context.Context, _ cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if m.before != nil {
		m.before(m)
	}
	ch, err := fn(m)
	switch {
	case err != nil:
	case len(ch.LoginFailures) > 0:
		if m.failed == nil {
			m.failed = map[[32]byte]cloud.LoginFailures{}
		}
		for _, f := range ch.LoginFailures {
			m.failed[f.Key] = f
		}
	default:
		m.saved = append(m.saved, *ch)
	}
	return err
}

func (m *memory) LoginFailures(key [32]byte) (cloud.LoginFailures, error) {
	f := m.failed[key]
	f.Key = key
	return f, nil
}

func (m *memory) Account(id cloud.AccountID) (cloud.Account, error) {
	for _, a := range m.accounts {
		if a.ID == id {
			return a, nil
		}
	}
	return cloud.Account{}, cloud.ErrNotFound
}

func (m *memory) Business(id cloud.BusinessID) (cloud.Business, error) {
	for _, b := range m.businesses {
		if b.ID == id {
			return b, nil
		}
	}
	return cloud.Business{}, cloud.ErrNotFound
}

func (m *memory) Suspension(id cloud.BusinessID) (cloud.BusinessState, error) {
	return cloud.BusinessState{BusinessID: id}, nil
}

func (m *memory) SecondFactor(id cloud.AccountID) (cloud.SecondFactor, error) {
	return cloud.SecondFactor{AccountID: id}, nil
}

var hashed = HashPassword("correct horse")

// people are two businesses; Ann works for both, with one password.
func people() *memory {
	at := func(id cloud.AccountID, b cloud.BusinessID, email string, enabled bool) cloud.Account {
		return cloud.Account{ID: id, BusinessID: b, Type: cloud.ClientAdmin, Email: email, PasswordHash: hashed, Enabled: enabled}
	}
	return &memory{businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "Acme"}, {ID: 2, Code: "rival", Name: "Rival"}},
		accounts: []cloud.Account{at(10, 1, "ann@x.example", true), at(11, 2, "ann@x.example", true), at(12, 1, "bob@x.example", true), at(13, 1, "eve@x.example", false),
			{ID: 14, BusinessID: 1, Type: cloud.Customer, Email: "key@x.example", Enabled: true}}}
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestATokenEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		token cloud.Token
		want  bool
	}{
		"without an end":       {cloud.Token{}, true},
		"before its end":       {cloud.Token{ExpiresAt: now.Add(time.Nanosecond)}, true},
		"at its end":           {cloud.Token{ExpiresAt: now}, false},
		"after its end":        {cloud.Token{ExpiresAt: now.Add(-time.Hour)}, false},
		"revoked":              {cloud.Token{RevokedAt: now.Add(-time.Hour), ExpiresAt: now.Add(time.Hour)}, false},
		"revoked, without end": {cloud.Token{RevokedAt: now.Add(-time.Hour)}, false},
	} {
		require.Equal(t, c.want, Valid(c.token, now), name)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	m := people()
	s := New(m)
	ctx := t.Context()
	try := func(email, password, business string) (Login, error) {
		return s.login(ctx, Try{Email: email, Password: password, ClientCode: business})
	}
	for _, c := range []struct{ email, password, business, want string }{
		{"bob@x.example", "correct horsf", "", "INVALID_CREDENTIALS"},
		{"bob@x.example", "", "", "INVALID_CREDENTIALS"},
		{"none@x.example", "correct horse", "", "INVALID_CREDENTIALS"},
		{"bob@x.example", "correct horse", "rival", "INVALID_CREDENTIALS"},
		{"key@x.example", "", "", "INVALID_CREDENTIALS"},
		{"eve@x.example", "correct horse", "", "ACCOUNT_DISABLED"},
		{"eve@x.example", "wrong", "", "INVALID_CREDENTIALS"},
		{"ann@x.example", "correct horse", "", "CLIENT_CODE_REQUIRED"},
		{"ann@x.example", "wrong", "", "INVALID_CREDENTIALS"},
	} {
		_, err := try(c.email, c.password, c.business)
		require.Equal(t, c.want, code(err), "%v", c)
	}
	require.Empty(t, m.saved, "a refused login stores nothing")

	l, err := try(" ANN@x.example ", "correct horse", "RIVAL")
	require.NoError(t, err)
	require.Equal(t, cloud.AccountID(11), l.Account.ID)
	require.Equal(t, "rival", l.Business.Code)
	stored := m.saved[0].Tokens[0]
	require.Equal(t, Hash(l.Token), stored.Hash)
	require.WithinDuration(t, time.Now().Add(TokenLife), stored.ExpiresAt, time.Minute)
	require.Equal(t, "logged_in", m.saved[0].Audits[0].Action)
	require.NotContains(t, fmt.Sprintf("%+v", m.saved), l.Token, "the token itself is not stored")

	m.accounts[1].Enabled = false // one of Ann's two: no code is needed
	l, err = try("ann@x.example", "correct horse", "")
	require.NoError(t, err)
	require.Equal(t, cloud.AccountID(10), l.Account.ID)
}

func TestLifeOfALogin(t *testing.T) {
	t.Parallel()
	m := people()
	s := New(m)
	for _, c := range []struct {
		try  Try
		want time.Duration
	}{{Try{}, TokenLife}, {Try{Remember: true}, RememberedLife}, {Try{Remember: true, Life: time.Hour}, time.Hour}} {
		c.try.Email, c.try.Password = "bob@x.example", "correct horse"
		l, err := s.login(t.Context(), c.try)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(c.want), l.ExpiresAt, time.Minute)
	}
}

// The password is checked outside the transaction: what changes meanwhile counts.
func TestAnAccountThatChangesDuringLogin(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a *cloud.Account){
		"password": func(a *cloud.Account) { a.PasswordHash = HashPassword("another") },
		"disabled": func(a *cloud.Account) { a.Enabled = false },
	} {
		m := people()
		m.before = func(m *memory) { change(&m.accounts[2]) }
		_, err := New(m).login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse"})
		require.Equal(t, "INVALID_CREDENTIALS", code(err), name)
		require.Empty(t, m.saved, name)
	}
}

func TestRevokedTokensStayAsTheyAre(t *testing.T) {
	t.Parallel()
	m := people()
	s := New(m)
	require.NoError(t, s.Revoke(t.Context(), cloud.Token{AccountID: 12}))
	require.WithinDuration(t, time.Now(), m.saved[0].Tokens[0].RevokedAt, time.Minute)
	require.NoError(t, s.Revoke(t.Context(), m.saved[0].Tokens[0]))
	require.Len(t, m.saved, 1)
}

// A gate with room for tries from one address and for one email, so that only its
// lock refuses.
func gate(m *memory) *Gate {
	return NewGate(New(m), GateConfig{PerIP: 1000, PerEmail: 1000, Failures: 4, Window: 15 * time.Minute, Lock: 20 * time.Minute})
}

func TestFailuresLockAnEmail(t *testing.T) {
	t.Parallel()
	for _, email := range []string{"bob@x.example", "none@x.example"} { // nothing tells which of them exists
		synctest.Test(t, func(t *testing.T) {
			g := gate(people())
			try := func(email, password string) string {
				_, _, err := g.Login(t.Context(), Try{Email: email, Password: password, IP: "192.0.2.1"})
				if err == nil {
					return ""
				}
				return code(err)
			}
			for range 4 {
				require.Equal(t, "INVALID_CREDENTIALS", try(email, "wrong"))
				time.Sleep(4 * time.Minute)
			}
			require.Equal(t, "ACCOUNT_LOCKED", try(strings.ToUpper(email), "correct horse"))
			require.NotEqual(t, "ACCOUNT_LOCKED", try("key@x.example", "wrong"), "others go on")
			time.Sleep(20*time.Minute - 4*time.Minute - time.Second)
			require.Equal(t, "ACCOUNT_LOCKED", try(email, "correct horse"))
			time.Sleep(time.Second)
			require.NotEqual(t, "ACCOUNT_LOCKED", try(email, "correct horse"), "the lock ends")
		})
	}
}

func TestFailuresThatAreFarApartLockNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate(people())
		for range 20 {
			_, _, err := g.Login(t.Context(), Try{Email: "bob@x.example", Password: "wrong", IP: "192.0.2.1"})
			require.Equal(t, "INVALID_CREDENTIALS", code(err))
			time.Sleep(5 * time.Minute) // four of them take the whole window
		}
		_, _, err := g.Login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse", IP: "192.0.2.1"})
		require.NoError(t, err)
	})
}

func TestASuccessForgetsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate(people())
		for i := range 12 {
			password := "wrong"
			if i%4 == 3 {
				password = "correct horse"
			}
			_, _, err := g.Login(t.Context(), Try{Email: "bob@x.example", Password: password, IP: "192.0.2.1"})
			require.NotEqual(t, "ACCOUNT_LOCKED", code(err))
		}
	})
}

func TestTriesPerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(New(people()), GateConfig{PerIP: 6, PerEmail: 3, Failures: 100})
		try := func(email, password, ip string) string {
			_, _, err := g.Login(t.Context(), Try{Email: email, Password: password, IP: ip})
			return code(err)
		}
		for range 3 {
			require.Equal(t, "INVALID_CREDENTIALS", try("bob@x.example", "wrong", "192.0.2.1"))
		}
		require.Equal(t, "RATE_LIMITED", try("bob@x.example", "correct horse", "192.0.2.2"), "of an email, from any address")
		for i := range 3 {
			require.Equal(t, "INVALID_CREDENTIALS", try(fmt.Sprint(i), "wrong", "192.0.2.1"))
		}
		require.Equal(t, "RATE_LIMITED", try("other@x.example", "wrong", "192.0.2.1"), "from an address, for any email")
		for range 3 { // the right password costs an address nothing
			time.Sleep(time.Minute)
			require.Equal(t, "<nil>", try("bob@x.example", "correct horse", "192.0.2.9"))
		}
	})
}

// Nodes count failures together, and a restarted one has not forgotten them.
func TestNodesLockAnEmailTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := people()
		for range 4 {
			_, _, err := gate(m).Login(t.Context(), Try{Email: "bob@x.example", Password: "wrong", IP: "192.0.2.1"})
			require.Equal(t, "INVALID_CREDENTIALS", code(err))
		}
		_, _, err := gate(m).Login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse", IP: "192.0.2.1"})
		require.Equal(t, "ACCOUNT_LOCKED", code(err))
		for key, f := range m.failed {
			require.NotContains(t, string(key[:]), "bob", "no email is kept")
			require.Equal(t, 20*time.Minute, time.Until(f.LockedUntil))
			require.Equal(t, f.LockedUntil, f.OverAt)
		}
	})
}

// Who goes away before the answer has failed all the same.
func TestAFailureOfACallerWhoLeftCounts(t *testing.T) {
	t.Parallel()
	m := people()
	g := NewGate(New(leaving{m}), GateConfig{PerIP: 1000, PerEmail: 1000, Failures: 4})
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := g.Login(context.WithValue(ctx, leave{}, cancel), Try{Email: "bob@x.example", Password: "wrong", IP: "192.0.2.1"})
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
	}
	_, _, err := g.Login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse", IP: "192.0.2.1"})
	require.Equal(t, "ACCOUNT_LOCKED", code(err))
}

type leave struct{}

// leaving is a store whose caller leaves when a decision begins.
type leaving struct{ *memory }

func (l leaving) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if cancel, ok := ctx.Value(leave{}).(context.CancelFunc); ok {
		cancel()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.memory.Decide(ctx, d, fn)
}

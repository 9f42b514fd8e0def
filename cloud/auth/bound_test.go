package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/argon2"

	"github.com/postern-io/postern/cloud"
)

// The published lives of a login.
func TestLivesOfALogin(t *testing.T) {
	t.Parallel()
	require.Equal(t, []time.Duration{168 * time.Hour, 720 * time.Hour}, []time.Duration{TokenLife, RememberedLife})
	m := people()
	l, err := New(m).login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse", Life: 1, Name: "my laptop"})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), l.ExpiresAt, time.Minute, "the least life is one")
	require.Equal(t, "my laptop", m.saved[0].Tokens[0].Name)
	_, err = New(m).Login(t.Context(), "bob@x.example", "correct horse")
	require.NoError(t, err)
	require.Equal(t, "login", m.saved[1].Tokens[0].Name)
	require.Equal(t, cloud.AccountID(12), m.saved[1].Tokens[0].AccountID)
	require.Equal(t, []any{"account:12", "account:12", cloud.BusinessID(1)}, []any{m.saved[1].Audits[0].Actor, m.saved[1].Audits[0].Target, m.saved[1].Audits[0].BusinessID})
}

// What Gate does where nothing is said: ten failures within 15 minutes lock an
// email for 15 minutes.
func TestUsualFiguresOfTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(New(people()), GateConfig{PerIP: 1000, PerEmail: 1000})
		try := func(password string) string {
			_, _, err := g.Login(t.Context(), Try{Email: "none@x.example", Password: password, IP: "192.0.2.1"})
			return code(err)
		}
		for range 9 {
			require.Equal(t, "INVALID_CREDENTIALS", try("wrong"))
		}
		time.Sleep(15*time.Minute - time.Second)
		require.Equal(t, "INVALID_CREDENTIALS", try("wrong"), "the tenth")
		require.Equal(t, "ACCOUNT_LOCKED", try("wrong"))
		time.Sleep(15*time.Minute - time.Second)
		require.Equal(t, "ACCOUNT_LOCKED", try("wrong"))
		time.Sleep(time.Second)
		for range 9 {
			require.Equal(t, "INVALID_CREDENTIALS", try("wrong"))
		}
		time.Sleep(15 * time.Minute)
		require.Equal(t, "INVALID_CREDENTIALS", try("wrong"), "the first of ten is old")
		require.Equal(t, "INVALID_CREDENTIALS", try("wrong"))
	})
	synctest.Test(t, func(t *testing.T) { // five a minute for an email, ten failures from an address
		g := NewGate(New(people()), GateConfig{})
		try := func(email string) string {
			_, _, err := g.Login(t.Context(), Try{Email: email, Password: "wrong", IP: "192.0.2.1"})
			return code(err)
		}
		for range 5 {
			require.Equal(t, "INVALID_CREDENTIALS", try("bob@x.example"))
		}
		require.Equal(t, "RATE_LIMITED", try("bob@x.example"))
		for i := range 4 {
			require.Equal(t, "INVALID_CREDENTIALS", try(fmt.Sprint(i, "@x.example")))
		}
		require.Equal(t, "RATE_LIMITED", try("last@x.example"))
	})
}

// An attacker who has failed slowly for long is locked out as soon as it hurries.
func TestSlowFailuresDoNotHideFastOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate(people())
		try := func() string {
			_, _, err := g.Login(t.Context(), Try{Email: "bob@x.example", Password: "wrong", IP: "192.0.2.1"})
			return code(err)
		}
		for range 7 {
			require.Equal(t, "INVALID_CREDENTIALS", try())
			time.Sleep(10 * time.Minute)
		}
		for range 3 { // with the last of the slow ones, four
			require.Equal(t, "INVALID_CREDENTIALS", try())
		}
		require.Equal(t, "ACCOUNT_LOCKED", try())
	})
}

func TestAPasswordIsTriedWithSoManyBusinesses(t *testing.T) {
	t.Parallel()
	weak := "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$" + base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("correct horse"), make([]byte, 8), 1, 8, 1, 16))
	m := &memory{}
	for i := range 17 {
		m.businesses = append(m.businesses, cloud.Business{ID: cloud.BusinessID(i + 1), Code: fmt.Sprint("b", i), Name: fmt.Sprint("B", i)})
		m.accounts = append(m.accounts, cloud.Account{ID: cloud.AccountID(i + 1), BusinessID: cloud.BusinessID(i + 1), Email: "ann@x.example", PasswordHash: weak, Enabled: true})
	}
	s := New(m)
	_, err := s.login(t.Context(), Try{Email: "ann@x.example", Password: "correct horse"})
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Details["clients"], 16)
	require.Equal(t, map[string]string{"code": "b0", "name": "B0"}, e.Details["clients"].([]map[string]string)[0])
	l, err := s.login(t.Context(), Try{Email: "ann@x.example", Password: "correct horse", ClientCode: "b16"})
	require.NoError(t, err, "a code names any of them")
	require.Equal(t, cloud.AccountID(17), l.Account.ID)
}

// failing is a store of which one part does not answer.
type failing struct {
	*memory
	find, look, decide, business, account error
}

var errGone = errors.New("the database is gone")

func (f *failing) FindAccountsByEmail(ctx context.Context, email string) ([]cloud.Account, error) {
	list, _ := f.memory.FindAccountsByEmail(ctx, email)
	return list, f.find
}

func (f *failing) Look(_ context.Context, fn func(cloud.View) error) error {
	return errors.Join(f.look, fn(f))
}

func (f *failing) Decide(_ context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if d != 0 {
		return errors.New("a login belongs to no device")
	}
	_, err := fn(f)
	return errors.Join(f.decide, err)
}

func (f *failing) Business(id cloud.BusinessID) (cloud.Business, error) {
	if f.business != nil {
		return cloud.Business{}, f.business
	}
	return f.memory.Business(id)
}

func (f *failing) Account(id cloud.AccountID) (cloud.Account, error) {
	if f.account != nil {
		return f.accounts[2], f.account
	}
	return f.memory.Account(id)
}

// An error of ours is never the answer about a password, and lets no caller in.
func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*failing{"find": {find: errGone}, "look": {look: errGone}, "decide": {decide: errGone}, "business": {business: errGone}, "account": {account: errGone}} {
		f.memory = people()
		g := NewGate(New(f), GateConfig{Failures: 1, PerEmail: 100})
		for range 2 { // such an error is no failed try: nothing is locked
			l, _, err := g.Login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse", IP: "192.0.2.1"})
			require.ErrorIs(t, err, errGone, name)
			require.Empty(t, l.Token, name)
		}
	}
	f := &failing{memory: people()}
	require.NoError(t, New(f).Revoke(t.Context(), cloud.Token{AccountID: 12}))
	gone := &failing{memory: people(), business: cloud.ErrNotFound}
	_, err := New(gone).login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse"})
	require.NoError(t, err, "an account without a business is the platform's")
}

// One who waits for a turn may leave.
func TestALoginThatNoLongerWaits(t *testing.T) {
	t.Parallel()
	s := New(people())
	for range cap(s.turn) {
		s.turn <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.login(ctx, Try{Email: "bob@x.example", Password: "correct horse"})
	require.ErrorIs(t, err, context.Canceled)
	for range cap(s.turn) {
		<-s.turn
	}
	_, err = s.login(t.Context(), Try{Email: "bob@x.example", Password: "correct horse"})
	require.NoError(t, err)
	require.Empty(t, s.turn)
}

// A stored hash of which a part cannot be read matches nothing, whatever its
// other part is.
func TestDamagedHashes(t *testing.T) {
	t.Parallel()
	salt, sum := "AAAAAAAAAAA", base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("x"), make([]byte, 8), 1, 8, 1, 16))
	require.True(t, CheckPassword("$argon2id$v=19$m=8,t=1,p=1$"+salt+"$"+sum, "x"))
	for _, bad := range []string{"$argon2i$v=19$m=8,t=1,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + sum + "$", "$argon2id$v=19$m=8,t=1,p=1$!" + salt + "$" + sum,
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + sum + "!", "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$", "$argon2id$v=19$m=8,t=65,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=8,t=1,p=0$" + salt + "$" + sum} {
		require.False(t, CheckPassword(bad, "x"), bad)
	}
	// "AAAA!" decodes to three bytes and an error: what it holds is not compared.
	partial := base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("x"), make([]byte, 3), 1, 8, 1, 16))
	require.False(t, CheckPassword("$argon2id$v=19$m=8,t=1,p=1$AAAA!$"+partial, "x"))
}

// twice is a store that reads again, as one may whose transaction was in conflict.
type twice struct{ *memory }

func (m twice) Look(_ context.Context, fn func(cloud.View) error) error {
	return errors.Join(fn(m), fn(m))
}

func TestAReadThatIsRepeated(t *testing.T) {
	t.Parallel()
	_, err := New(twice{people()}).login(t.Context(), Try{Email: "ann@x.example", Password: "correct horse"})
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Details["clients"], 2, "each business once")
}

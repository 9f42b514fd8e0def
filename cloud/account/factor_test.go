package account

import (
	"context"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

const password = "correct horse battery"

var passwordHash = sync.OnceValue(func() string { return auth.HashPassword(password) })

// desk is a node with people who have passwords.
type desk struct {
	*world
	mid  *interrupted
	a    *Access
	auth *auth.Service
	gate *auth.Gate
}

func newDesk(t testing.TB, db *store.DB, fill bool) *desk {
	d := &desk{world: &world{t: t, db: db}, mid: &interrupted{DB: db}}
	keys, err := auth.NewPasskeys("https://cloud.test", []byte("challenges"))
	require.NoError(t, err)
	d.auth = auth.New(d.mid).WithPasskeys(keys)
	d.gate = auth.NewGate(d.auth, auth.GateConfig{PerIP: 1e6, PerEmail: 1e6, Failures: 1e6})
	d.s = New(Config{Store: d.mid, Passkeys: keys, Confirm: func(ctx context.Context, a cloud.Account, password string) error {
		_, err := d.gate.Confirm(ctx, a, password, "192.0.2.1")
		return err
	}})
	d.a = AccessOf(d.s)
	if fill {
		var all []cloud.Account
		for _, a := range []cloud.Account{ann, ben, cus, rae, top} {
			a.PasswordHash = passwordHash()
			all = append(all, a)
		}
		d.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "Acme", Timezone: "UTC"}, {ID: 2, Code: "rival", Name: "Rival", Timezone: "UTC"}}, Accounts: all}})
	}
	return d
}

// interrupted is a database whose next decision stops between what it reads and
// what it writes, for meanwhile to run; once.
type interrupted struct {
	*store.DB
	meanwhile func()
}

func (s *interrupted) Decide(ctx context.Context, dev cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	return s.DB.Decide(ctx, dev, func(v cloud.View) (*cloud.Changes, error) {
		ch, err := fn(v)
		if run := s.meanwhile; run != nil {
			s.meanwhile = nil
			run()
		}
		return ch, err
	})
}

// onPostgres runs a test with two nodes on a PostgreSQL database.
func onPostgres(t *testing.T, test func(t *testing.T, one, two *desk)) {
	at := storetest.MigratedPostgresURL(t)
	open := func(node string) *store.DB {
		return storetest.Open(t, store.Config{URL: at, Instance: node, Box: storetest.Box(t)})
	}
	test(t, newDesk(t, open("a"), true), newDesk(t, open("b"), false))
}

// onBoth runs a test with two nodes on one database of each engine.
func onBoth(t *testing.T, test func(t *testing.T, one, two *desk)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := storetest.OpenSQLite(t)
		test(t, newDesk(t, db, true), newDesk(t, db, false))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, test)
	})
}

// now is the caller as the catalogue finds it for a call.
func (d *desk) now(id cloud.AccountID) cloud.Caller { return cloud.Caller{Account: d.account(id)} }

func (d *desk) login(email, otp string) (auth.Login, error) {
	l, _, err := d.gate.Login(d.t.Context(), auth.Try{Email: email, Password: password, Code: otp, IP: "192.0.2.1"})
	return l, err
}

// token is the row of a login.
func (d *desk) token(l auth.Login) cloud.Token {
	d.t.Helper()
	f, err := d.db.FindToken(d.t.Context(), auth.Hash(l.Token))
	require.NoError(d.t, err)
	return f.Token
}

func (d *desk) alive(l auth.Login) bool { return auth.Valid(d.token(l), time.Now()) }

// otp is a code of a secret; step counts periods from now.
func otp(t testing.TB, secret string, step int) string {
	c, err := totp.GenerateCode(secret, time.Now().Add(time.Duration(step)*auth.CodePeriod))
	require.NoError(t, err)
	return c
}

// setUp gives an account a second factor and returns its secret and recovery codes.
// The code that confirms it is that of the period before.
func (d *desk) setUp(id cloud.AccountID, own cloud.Token) (secret string, recovery []string) {
	d.t.Helper()
	begun, err := d.a.BeginFactor(d.t.Context(), d.now(id), ConfirmInput{Password: password})
	require.NoError(d.t, err)
	done, err := d.a.ConfirmFactor(d.t.Context(), d.now(id), CodeInput{OTP: otp(d.t, begun.Secret, -1)}, own)
	require.NoError(d.t, err)
	return begun.Secret, done.Recovery
}

// challenge is what a login without a code is answered.
func (d *desk) challenge(email string) string {
	d.t.Helper()
	_, err := d.login(email, "")
	require.Equal(d.t, "SECOND_FACTOR_REQUIRED", code(err))
	c, _ := err.(*cloud.Error).Details["challenge"].(string) //nolint:errorlint // it is one
	require.Len(d.t, c, 64)
	return c
}

func (d *desk) second(challenge, otp string) (auth.Login, error) {
	l, _, err := d.gate.Second(d.t.Context(), auth.Step{Challenge: challenge, Code: otp, IP: "192.0.2.1"})
	return l, err
}

func TestTimeBasedCodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		before, err := d.login("ann@a.example", "")
		require.NoError(t, err)
		own, err := d.login("ann@a.example", "123456") // a code that nothing asks for
		require.NoError(t, err)

		_, err = d.a.BeginFactor(ctx, d.now(10), ConfirmInput{Password: "wrong password"})
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		_, err = d.a.ConfirmFactor(ctx, d.now(10), CodeInput{OTP: "123456"}, d.token(own))
		require.Equal(t, "SECOND_FACTOR_NOT_BEGUN", code(err))
		begun, err := d.a.BeginFactor(ctx, d.now(10), ConfirmInput{Password: password})
		require.NoError(t, err)
		require.Equal(t, "otpauth://totp/Acme:ann@a.example?issuer=Acme&secret="+begun.Secret, begun.URI)
		raw, err := base32.StdEncoding.DecodeString(begun.Secret)
		require.NoError(t, err)
		require.Len(t, raw, 20)
		_, err = d.login("ann@a.example", "")
		require.NoError(t, err, "it is not in force before a code was given")
		_, err = d.a.ConfirmFactor(ctx, d.now(10), CodeInput{OTP: wrong(otp(t, begun.Secret, 0))}, d.token(own))
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err))
		first := otp(t, begun.Secret, -1)
		done, err := other.a.ConfirmFactor(ctx, d.now(10), CodeInput{OTP: first}, d.token(own))
		require.NoError(t, err)
		require.Len(t, done.Recovery, 10)
		require.True(t, d.alive(own))
		require.False(t, d.alive(before), "logins that were made without it end")
		_, err = d.a.BeginFactor(ctx, d.now(10), ConfirmInput{Password: password})
		require.Equal(t, "SECOND_FACTOR_EXISTS", code(err))

		_, err = d.login("ann@a.example", first)
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err), "a code that was taken")
		now := otp(t, begun.Secret, 0)
		_, err = d.login("ann@a.example", now[:3]+" "+now[3:])
		require.NoError(t, err)
		_, err = other.login("ann@a.example", now)
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err), "the other node knows that it was taken")
		_, err = d.login("ann@a.example", otp(t, begun.Secret, 3))
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err), "a code of the future")

		c := d.challenge("ann@a.example")
		_, err = other.second(c, wrong(otp(t, begun.Secret, 1)))
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err))
		_, err = other.second(altered(c), otp(t, begun.Secret, 1))
		require.Equal(t, "CHALLENGE_EXPIRED", code(err))
		l, err := other.second(c, otp(t, begun.Secret, 1))
		require.NoError(t, err)
		require.True(t, d.alive(l))
		_, err = d.second(c, done.Recovery[0])
		require.Equal(t, "CHALLENGE_EXPIRED", code(err), "a challenge is good once")

		shown, err := d.a.FindFactor(ctx, d.now(10), check.None{})
		require.NoError(t, err)
		require.Equal(t, []any{true, 10, false, true}, []any{shown.Factor.Enabled, shown.Factor.Recovery, shown.Factor.Required, shown.Factor.RemovedAt == nil})
		require.Contains(t, d.actions(1), "account:10 second_factor_set_up account")
		for _, secret := range append(done.Recovery, begun.Secret, c, l.Token, now) {
			require.NotContains(t, fmt.Sprint(d.details(1)), secret)
		}
	})
}

// wrong is a code that is not the one given, nor one of its neighbours by chance
// more often than once in 300,000 runs.
func wrong(c string) string { return c[1:] + string('0'+(c[0]-'0'+5)%10) }

// details are all that audit lines of a business hold.
func (d *desk) details(b cloud.BusinessID) (out []string) {
	rows, err := d.db.ListAudits(d.t.Context(), b, 0, 1000)
	require.NoError(d.t, err)
	for _, r := range rows {
		out = append(out, r.Action+" "+r.Target+" "+r.Detail)
	}
	return out
}

func TestRecoveryCodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		secret, recovery := d.setUp(10, cloud.Token{})
		seen := map[string]bool{}
		for _, c := range recovery {
			require.Regexp(t, `^[a-z2-9]{4}(-[a-z2-9]{4}){3}$`, c)
			seen[c] = true
		}
		require.Len(t, seen, 10)
		// A lost second factor: a recovery code lets in, once, in any case and without dashes.
		_, err := d.login("ann@a.example", strings.ToUpper(strings.ReplaceAll(recovery[3], "-", " ")))
		require.NoError(t, err)
		_, err = other.login("ann@a.example", recovery[3])
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err))
		// Six at once with one code on two nodes: one gets in.
		var wg sync.WaitGroup
		errs := make([]string, 6)
		for i := range errs {
			wg.Go(func() {
				_, err := []*desk{d, other}[i%2].login("ann@a.example", recovery[4])
				errs[i] = code(err)
			})
		}
		wg.Wait()
		slices.Sort(errs)
		require.Equal(t, []string{"", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_INVALID"}, errs)

		_, err = d.a.RenewRecovery(ctx, d.now(10), ProofInput{Password: password})
		require.Equal(t, "SECOND_FACTOR_REQUIRED", code(err))
		_, err = d.a.RenewRecovery(ctx, d.now(10), ProofInput{Password: "wrong password", OTP: recovery[0]})
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		fresh, err := d.a.RenewRecovery(ctx, d.now(10), ProofInput{Password: password, OTP: otp(t, secret, 0)})
		require.NoError(t, err)
		_, err = d.login("ann@a.example", recovery[0])
		require.Equal(t, "SECOND_FACTOR_INVALID", code(err), "codes that were replaced")
		_, err = d.a.RemoveFactor(ctx, d.now(10), ProofInput{Password: password, OTP: fresh.Recovery[0]})
		require.NoError(t, err)
		_, err = d.login("ann@a.example", "")
		require.NoError(t, err)
		_, err = d.a.RemoveFactor(ctx, d.now(10), ProofInput{Password: password, OTP: fresh.Recovery[1]})
		require.Equal(t, "SECOND_FACTOR_MISSING", code(err))
	})
}

// Wrong codes are counted on all nodes together and lock time-based codes; recovery
// codes go on to work.
func TestWrongCodesLock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		secret, recovery := d.setUp(10, cloud.Token{})
		c := d.challenge("ann@a.example")
		for i := range 5 {
			_, err := []*desk{d, other}[i%2].second(c, wrong(otp(t, secret, 0)))
			require.Equal(t, "SECOND_FACTOR_INVALID", code(err), "%d", i)
		}
		_, err := other.second(c, otp(t, secret, 0))
		require.Equal(t, "SECOND_FACTOR_LOCKED", code(err), "a good code too")
		require.InDelta(t, 900, err.(*cloud.Error).RetryAfter, 30) //nolint:errorlint // it is one
		_, err = d.login("ann@a.example", otp(t, secret, 0))
		require.Equal(t, "SECOND_FACTOR_LOCKED", code(err), "by the other way in too")
		_, err = d.a.RemoveFactor(t.Context(), d.now(10), ProofInput{Password: password, OTP: otp(t, secret, 0)})
		require.Equal(t, "SECOND_FACTOR_LOCKED", code(err))
		_, err = d.second(c, recovery[0])
		require.NoError(t, err)
		_, err = d.login("ann@a.example", otp(t, secret, 0))
		require.NoError(t, err, "a recovery code ends the lock")
		require.Contains(t, d.actions(1), "account:10 second_factor_refused account")
	})
}

func TestLocksGrow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f := cloud.SecondFactor{Secret: auth.NewSecret()}
	var locks []time.Duration
	for range 14 {
		var problem *cloud.Error
		f, problem = auth.TakeCode(f, "000000", now)
		if _, ok := auth.StepOf(f.Secret, "000000", 0, now); ok {
			t.Skip("one in 300,000")
		}
		require.Equal(t, "SECOND_FACTOR_INVALID", problem.Code)
		locks = append(locks, max(f.LockedUntil.Sub(now), 0))
		now = now.Add(locks[len(locks)-1])
	}
	m := time.Minute
	require.Equal(t, []time.Duration{0, 0, 0, 0, 15 * m, 30 * m, 60 * m, 120 * m, 240 * m, 480 * m, 960 * m, 1440 * m, 1440 * m, 1440 * m}, locks)
}

// An administrator of the same business resets what a person lost; the person's
// logins and challenges end.
func TestLostSecondFactor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		secret, recovery := d.setUp(12, cloud.Token{})
		in, err := d.login("cus@a.example", otp(t, secret, 0))
		require.NoError(t, err)
		c := d.challenge("cus@a.example")
		_, err = d.a.ResetFactor(ctx, d.now(20), ByUser{ID: 12})
		require.Equal(t, "USER_NOT_FOUND", code(err), "of another business")
		_, err = d.a.ResetFactor(ctx, d.now(10), ByUser{ID: 11})
		require.Equal(t, "SECOND_FACTOR_MISSING", code(err))
		_, err = d.a.ResetFactor(ctx, d.now(10), ByUser{ID: 10})
		require.Equal(t, "SECOND_FACTOR_OWN", code(err))
		require.True(t, d.alive(in))
		_, err = other.a.ResetFactor(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		require.False(t, d.alive(in))
		_, err = d.second(c, recovery[0])
		require.Equal(t, "CHALLENGE_EXPIRED", code(err))
		_, err = d.login("cus@a.example", "")
		require.NoError(t, err)
		shown, err := d.a.FindFactor(ctx, d.now(12), check.None{})
		require.NoError(t, err)
		require.NotNil(t, shown.Factor.RemovedAt, "the person is told")
		require.Contains(t, d.actions(1), "account:10 second_factor_reset account")
		d.setUp(12, cloud.Token{})
		shown, err = d.a.FindFactor(ctx, d.now(12), check.None{})
		require.NoError(t, err)
		require.Nil(t, shown.Factor.RemovedAt)
	})
}

// A business that demands a second factor lets its people do nothing else before
// they have one, logged-in people too; accounts elsewhere notice nothing.
func TestDemandedSecondFactor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		d.setUp(11, cloud.Token{})
		rae, err := d.login("rae@b.example", "")
		require.NoError(t, err)
		cus, err := d.login("cus@a.example", "")
		require.NoError(t, err)
		_, err = d.s.SaveSettings(ctx, d.now(10), SettingsInput{SecondFactor: ptr(true)})
		require.NoError(t, err)
		require.False(t, d.alive(cus))
		require.True(t, auth.SetsUp(d.token(cus), time.Now()))
		require.True(t, d.alive(rae))
		l, err := other.login("ann@a.example", "")
		require.NoError(t, err)
		require.True(t, l.SetsUp)
		require.False(t, d.alive(l))
		shown, err := d.a.FindFactor(ctx, d.now(10), check.None{})
		require.NoError(t, err)
		require.True(t, shown.Factor.Required)
		secret, _ := d.setUp(10, d.token(l))
		require.True(t, d.alive(l), "it is good for everything now")
		_, err = d.a.RemoveFactor(ctx, d.now(10), ProofInput{Password: password, OTP: otp(t, secret, 0)})
		require.Equal(t, "SECOND_FACTOR_DEMANDED", code(err))
		again, err := d.login("ann@a.example", otp(t, secret, 1))
		require.NoError(t, err)
		require.False(t, again.SetsUp)
	})
}

// A business comes to demand a second factor in the middle of a login without one, or
// of the removal of one, and these happen in the middle of its change of settings:
// afterwards no account without a second factor is let into anything but setting one up.
// SQLite decides about one thing after the other.
func TestADemandMeetsWhatGoesOnWithoutASecondFactor(t *testing.T) {
	t.Parallel()
	demand := func(t *testing.T, d *desk) {
		_, err := d.s.SaveSettings(t.Context(), d.now(10), SettingsInput{SecondFactor: ptr(true)})
		require.NoError(t, err)
	}
	limited := func(t *testing.T, d *desk, l auth.Login) {
		require.True(t, d.business(1).Settings.SecondFactor)
		require.False(t, d.alive(l), "a login without a second factor is good for everything")
		require.True(t, auth.SetsUp(d.token(l), time.Now()))
	}
	t.Run("demand within a login", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, func(t *testing.T, d, other *desk) {
			d.mid.meanwhile = func() { demand(t, other) }
			l, err := d.login("cus@a.example", "")
			require.NoError(t, err)
			limited(t, d, l)
			require.True(t, l.SetsUp, "the answer says so")
		})
	})
	t.Run("login within a demand", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, func(t *testing.T, d, other *desk) {
			var l auth.Login
			d.mid.meanwhile = func() {
				var err error
				l, err = other.login("cus@a.example", "")
				require.NoError(t, err)
			}
			demand(t, d)
			limited(t, d, l)
		})
	})
	remove := func(t *testing.T, d *desk, secret string) string {
		_, err := d.a.RemoveFactor(t.Context(), d.now(12), ProofInput{Password: password, OTP: otp(t, secret, 1)})
		return code(err)
	}
	t.Run("demand within a removal", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, func(t *testing.T, d, other *desk) {
			secret, _ := d.setUp(12, cloud.Token{})
			l, err := d.login("cus@a.example", otp(t, secret, 0))
			require.NoError(t, err)
			d.mid.meanwhile = func() { demand(t, other) }
			require.Equal(t, "SECOND_FACTOR_DEMANDED", remove(t, d, secret))
			require.True(t, d.alive(l))
		})
	})
	t.Run("removal within a demand", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, func(t *testing.T, d, other *desk) {
			secret, _ := d.setUp(12, cloud.Token{})
			l, err := d.login("cus@a.example", otp(t, secret, 0))
			require.NoError(t, err)
			d.mid.meanwhile = func() { require.Empty(t, remove(t, other, secret)) }
			demand(t, d)
			limited(t, d, l)
		})
	})
}

// Logins at once of one business, on two nodes, all come to their end although each
// meets the settings.
func TestLoginsAtOnceOfOneBusiness(t *testing.T) {
	ring.SkipUnlessCheck(t, "logins and changes one after the other")
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		before := d.business(1)
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = []*desk{d, other}[i%2].login([]string{"ann@a.example", "ben@a.example", "cus@a.example"}[i%3], "")
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, before, d.business(1), "a login changes nothing of its business")
	})
}

// A challenge ends with the password and with the account: rights that end in the
// middle of a login count.
func TestAChallengeEndsWithTheAccount(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		_, recovery := d.setUp(12, cloud.Token{})
		c := d.challenge("cus@a.example")
		_, err := d.s.ChangeCustomer(t.Context(), d.now(10), ChangeCustomerInput{ID: 12, CustomerInput: CustomerInput{Enabled: ptr(false)}})
		require.NoError(t, err)
		_, err = other.second(c, recovery[0])
		require.Equal(t, "CHALLENGE_EXPIRED", code(err))
		_, err = d.s.ChangeCustomer(t.Context(), d.now(10), ChangeCustomerInput{ID: 12, CustomerInput: CustomerInput{Enabled: ptr(true)}})
		require.NoError(t, err)
		c = d.challenge("cus@a.example")
		_, err = d.s.ChangeCustomer(t.Context(), d.now(10), ChangeCustomerInput{ID: 12, CustomerInput: CustomerInput{Password: ptr("another long password")}})
		require.NoError(t, err)
		_, err = other.second(c, recovery[0])
		require.Equal(t, "CHALLENGE_EXPIRED", code(err))
	})
}

// Agents that were let in by the password alone end when a second factor is set up, as
// other logins do; those of other people and keys go on.
func TestASecondFactorEndsAgents(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		grant := func(id cloud.OAuthGrantID, a cloud.AccountID) cloud.OAuthGrant {
			return cloud.OAuthGrant{ID: id, AccountID: a, ClientID: "c", ClientName: "Claudia", CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(time.Hour), Code: cloud.OAuthCode{Hash: [32]byte{byte(id)}, ExpiresAt: now}}
		}
		token := func(n byte, id cloud.TokenID, g cloud.OAuthGrantID) cloud.Token {
			return cloud.Token{Hash: [32]byte{n}, AccountID: 10, ID: id, Grant: g, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		}
		d.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{token(1, 0, 1), token(2, 7, 0)}},
			OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{{ID: "c", CreatedAt: now}}, OAuthGrants: []cloud.OAuthGrant{grant(1, 10), grant(2, 11)}}})
		d.setUp(10, cloud.Token{})
		d.look(func(v cloud.View) {
			for n, alive := range map[byte]bool{1: false, 2: true} {
				tok, err := v.Token([32]byte{n})
				require.NoError(t, err)
				require.Equal(t, alive, auth.Valid(tok, time.Now()), "token %d", n)
			}
			for id, live := range map[cloud.OAuthGrantID]bool{1: false, 2: true} {
				g, err := v.OAuthGrant(id)
				require.NoError(t, err)
				require.Equal(t, live, g.Live(time.Now()), "grant %d", id)
			}
		})
		require.Contains(t, d.actions(1), "account:10 agent_grant_ended agent")
	})
}

// A business that comes to demand a second factor ends the agents of people who have
// none, since the password alone let them in; those of others and of other businesses go on.
func TestADemandEndsAgents(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		d.setUp(11, cloud.Token{})
		ch := &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{{ID: "c", CreatedAt: now}}}}
		alive := map[cloud.AccountID]bool{11: true, 12: false, 20: true}
		for id := range alive {
			ch.OAuthGrants = append(ch.OAuthGrants, cloud.OAuthGrant{ID: cloud.OAuthGrantID(id), AccountID: id, ClientID: "c", CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(time.Hour), Code: cloud.OAuthCode{Hash: [32]byte{byte(id)}, ExpiresAt: now}})
			for i, kind := range []cloud.TokenKind{cloud.AccessToken, cloud.RefreshToken} {
				ch.Tokens = append(ch.Tokens, cloud.Token{Hash: [32]byte{byte(id), byte(i)}, AccountID: id, Kind: kind, Grant: cloud.OAuthGrantID(id), CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
			}
		}
		ch.Tokens = append(ch.Tokens, cloud.Token{Hash: [32]byte{99}, AccountID: 12, ID: 7, CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		d.write(ch)
		_, err := d.s.SaveSettings(t.Context(), d.now(10), SettingsInput{SecondFactor: ptr(true)})
		require.NoError(t, err)
		d.look(func(v cloud.View) {
			for id, want := range alive {
				g, err := v.OAuthGrant(cloud.OAuthGrantID(id))
				require.NoError(t, err)
				require.Equal(t, want, g.Live(time.Now()), "grant of account %d", id)
				for i := range byte(2) {
					tok, err := v.Token([32]byte{byte(id), i})
					require.NoError(t, err)
					require.Equal(t, want, auth.Valid(tok, time.Now()), "token %d of account %d", i, id)
				}
			}
			key, err := v.Token([32]byte{99})
			require.NoError(t, err)
			require.True(t, auth.Valid(key, time.Now()), "keys go on")
		})
	})
}

// A login by a sign-in provider and its agent need no second factor: the demand of a
// business leaves them as they are. Settings that are saved with a demand that was there
// end nothing.
func TestADemandLeavesStrongLogins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		ctx := t.Context()
		strong, err := d.auth.External(ctx, auth.External{BusinessCode: d.business(1).Code, Issuer: "https://id.example", Subject: "cus", Email: "cus@a.example", EmailVerified: true})
		require.NoError(t, err)
		weak, err := d.login("cus@a.example", "")
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{d.token(strong).Strong, d.token(weak).Strong})
		now := moment()
		grant := cloud.OAuthGrant{ID: 5, AccountID: 12, ClientID: "c", Strong: true, CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(time.Hour), Code: cloud.OAuthCode{Hash: [32]byte{5}, ExpiresAt: now}}
		d.write(&cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{{ID: "c", CreatedAt: now}}, OAuthGrants: []cloud.OAuthGrant{grant}},
			AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: [32]byte{5}, AccountID: 12, Kind: cloud.AccessToken, Grant: 5, Strong: true, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}}}})
		_, err = d.s.SaveSettings(ctx, d.now(10), SettingsInput{SecondFactor: ptr(true)})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{d.alive(strong), d.alive(weak)})
		d.look(func(v cloud.View) {
			g, err := v.OAuthGrant(5)
			require.NoError(t, err)
			require.True(t, g.Strong && g.Live(time.Now()))
			tok, err := v.Token([32]byte{5})
			require.NoError(t, err)
			require.True(t, tok.Strong && auth.Valid(tok, time.Now()))
		})
		later := cloud.Token{Hash: [32]byte{9}, AccountID: 12, Name: "login", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		d.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{later}}})
		for _, in := range []SettingsInput{{SecondFactor: ptr(true)}, {Country: ptr("DE")}} {
			_, err = d.s.SaveSettings(ctx, d.now(10), in)
			require.NoError(t, err)
		}
		d.look(func(v cloud.View) {
			tok, err := v.Token([32]byte{9})
			require.NoError(t, err)
			require.True(t, auth.Valid(tok, time.Now()), "nothing changed")
		})
	})
}

// An administrator's own password is changed with the present one and the second
// factor, not by the operation for the people of the business.
func TestAnAdministratorsOwnPassword(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		ctx := t.Context()
		d.setUp(10, cloud.Token{})
		before := d.account(10)
		_, err := d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 10, UserInput: UserInput{Name: ptr("Ann"), Password: ptr("another long password")}})
		var shown *cloud.Error
		require.ErrorAs(t, err, &shown)
		require.Equal(t, map[string][]string{"password": {"Your own password is changed with the present one, by user.password.change."}}, shown.Fields)
		require.Equal(t, before, d.account(10))
		_, err = d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 10, UserInput: UserInput{Name: ptr("Ann")}})
		require.NoError(t, err)
	})
}

func TestSessionsAndPassword(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		var ins [3]auth.Login
		for i := range ins {
			var err error
			ins[i], err = d.login("cus@a.example", "")
			require.NoError(t, err)
		}
		own := d.token(ins[2])
		list, err := other.a.ListSessions(ctx, d.now(12), SessionsInput{}, own)
		require.NoError(t, err)
		require.Equal(t, 3, list.Total)
		ids, current := map[SessionID]bool{}, 0
		for _, x := range list.Sessions {
			ids[x.ID] = true
			if x.Current {
				current++
				require.Equal(t, sessionID(own), x.ID)
			}
			require.Less(t, int64(x.ID), int64(1)<<53)
		}
		require.Len(t, ids, 3)
		require.Equal(t, 1, current)
		gone := sessionID(d.token(ins[0]))
		_, err = d.a.EndSession(ctx, d.now(10), BySession{ID: gone})
		require.Equal(t, "SESSION_NOT_FOUND", code(err), "of another person")
		_, err = d.a.EndSession(ctx, d.now(12), BySession{ID: gone})
		require.NoError(t, err)
		require.Equal(t, []bool{false, true, true}, []bool{d.alive(ins[0]), d.alive(ins[1]), d.alive(ins[2])})
		_, err = other.a.EndSession(ctx, d.now(12), BySession{ID: gone})
		require.Equal(t, "SESSION_NOT_FOUND", code(err), "ended twice")
		_, err = d.a.EndOtherSessions(ctx, d.now(12), check.None{}, own)
		require.NoError(t, err)
		require.Equal(t, []bool{false, true}, []bool{d.alive(ins[1]), d.alive(ins[2])})

		_, err = d.a.ListUserSessions(ctx, d.now(20), UserSessionsInput{ID: 12}, cloud.Token{})
		require.Equal(t, "USER_NOT_FOUND", code(err))
		_, err = d.a.EndUserSessions(ctx, d.now(20), ByUser{ID: 12})
		require.Equal(t, "USER_NOT_FOUND", code(err))
		shown, err := d.a.ListUserSessions(ctx, d.now(10), UserSessionsInput{ID: 12}, cloud.Token{})
		require.NoError(t, err)
		require.Len(t, shown.Sessions, 1)

		// Another password: other logins end, the one that changed it stays.
		ins[0], err = d.login("cus@a.example", "")
		require.NoError(t, err)
		_, err = d.a.ChangePassword(ctx, d.now(12), PasswordInput{Password: "wrong password", Next: "another long password"}, own)
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		secret, recovery := d.setUp(12, own)
		_, err = d.a.ChangePassword(ctx, d.now(12), PasswordInput{Password: password, Next: "another long password"}, own)
		require.Equal(t, "SECOND_FACTOR_REQUIRED", code(err))
		_, err = d.login("cus@a.example", recovery[0])
		require.NoError(t, err, "nothing was changed")
		stale := d.now(12)
		ins[0], err = d.login("cus@a.example", otp(t, secret, 0))
		require.NoError(t, err)
		_, err = d.a.ChangePassword(ctx, stale, PasswordInput{Password: password, Next: "another long password", OTP: recovery[1]}, own)
		require.NoError(t, err)
		require.Equal(t, []bool{false, true}, []bool{d.alive(ins[0]), d.alive(ins[2])})
		_, err = d.login("cus@a.example", recovery[2])
		require.Equal(t, "INVALID_CREDENTIALS", code(err), "the former password")
		// A person whose rights end in the middle of a call: what was let in with the former
		// password does nothing any more.
		_, err = d.a.ChangePassword(ctx, stale, PasswordInput{Password: password, Next: "one more long password", OTP: recovery[3]}, own)
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		stale = d.now(12)
		_, err = d.s.ChangeCustomer(ctx, d.now(10), ChangeCustomerInput{ID: 12, CustomerInput: CustomerInput{Enabled: ptr(false)}})
		require.NoError(t, err)
		_, err = d.a.ChangePassword(ctx, stale, PasswordInput{Password: "another long password", Next: "one more long password", OTP: recovery[3]}, own)
		require.Equal(t, "INVALID_CREDENTIALS", code(err))

		_, err = d.a.EndUserSessions(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		require.False(t, d.alive(ins[2]))
		_, err = d.a.ChangeSelf(ctx, d.now(10), SelfInput{Locale: "de"})
		require.NoError(t, err)
		require.Equal(t, "de", d.account(10).Locale)
	})
}

// Who logs in with the former password at the moment in which it changes has no
// login afterwards, whichever node came first.
func TestALoginMeetsAChangeOfPassword(t *testing.T) {
	ring.SkipUnlessCheck(t, "logins and changes one after the other")
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		words := []string{password, "another long password"}
		for i := range 6 {
			from, to := words[i%2], words[1-i%2]
			caller := d.now(12)
			var wg sync.WaitGroup
			ins := make([]auth.Login, 4)
			for k := range ins {
				wg.Go(func() {
					l, _, err := other.gate.Login(t.Context(), auth.Try{Email: "cus@a.example", Password: from, IP: "192.0.2.1"})
					if err == nil {
						ins[k] = l
					}
				})
			}
			_, err := d.a.ChangePassword(t.Context(), caller, PasswordInput{Password: from, Next: to}, cloud.Token{})
			require.NoError(t, err)
			wg.Wait()
			for _, l := range ins {
				require.False(t, l.Token != "" && d.alive(l), "a login with the former password")
			}
		}
	})
}

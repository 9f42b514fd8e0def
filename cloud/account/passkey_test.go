package account

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// device is a person's authenticator with one key.
type device struct {
	d    *desk
	rp   virtualwebauthn.RelyingParty
	auth virtualwebauthn.Authenticator
	key  virtualwebauthn.Credential
	tok  cloud.Token // of the login that makes it
}

func (d *desk) device(id cloud.AccountID) *device {
	return &device{d: d, rp: virtualwebauthn.RelyingParty{ID: "cloud.test", Name: "Postern", Origin: "https://cloud.test"},
		auth: virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: fmt.Appendf(nil, "account/%d", id)}),
		key:  newKey(d.t), tok: cloud.Token{Hash: auth.Hash(fmt.Sprint("login of ", id))}}
}

func optionsText(t testing.TB, options map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(options)
	require.NoError(t, err)
	return string(raw)
}

// begin gives what the browser answers to the options of a new passkey.
func (x *device) begin(id cloud.AccountID, otp string) string {
	x.d.t.Helper()
	out, err := x.d.a.BeginPasskey(x.d.t.Context(), x.d.now(id), ProofInput{Password: password, OTP: otp}, x.tok)
	require.NoError(x.d.t, err)
	o, err := virtualwebauthn.ParseAttestationOptions(optionsText(x.d.t, out.Options))
	require.NoError(x.d.t, err)
	return virtualwebauthn.CreateAttestationResponse(x.rp, x.auth, x.key, *o)
}

func (x *device) add(id cloud.AccountID, answer string) error {
	_, err := x.d.a.AddPasskey(x.d.t.Context(), x.d.now(id), AddPasskeyInput{Name: "Phone", Credential: answer}, x.tok)
	return err
}

// options are those of a login; challenge is its first step's.
func (x *device) options(challenge string) virtualwebauthn.AssertionOptions {
	x.d.t.Helper()
	out, _, err := x.d.gate.BeginPasskey(x.d.t.Context(), auth.PasskeyTry{Challenge: challenge, Binding: "browser", IP: "192.0.2.1"})
	require.NoError(x.d.t, err)
	o, err := virtualwebauthn.ParseAssertionOptions(optionsText(x.d.t, out))
	require.NoError(x.d.t, err)
	return *o
}

// sign is what the browser answers to options; the counter goes up.
func (x *device) sign(o virtualwebauthn.AssertionOptions) string {
	x.key.Counter++
	return virtualwebauthn.CreateAssertionResponse(x.rp, x.auth, x.key, o)
}

func (x *device) login(answer, challenge string) (auth.Login, error) {
	l, _, err := x.d.gate.Passkey(x.d.t.Context(), auth.PasskeyTry{Credential: answer, Challenge: challenge, Binding: "browser", Name: "console", IP: "192.0.2.1"})
	return l, err
}

// A passkey is made with the password, signs in alone, and is refused for each thing
// that is wrong with it.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		d.withMail()
		other.withMail()
		ctx := t.Context()
		x := d.device(10)
		_, err := d.a.BeginPasskey(ctx, d.now(10), ProofInput{Password: "wrong"}, x.tok)
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		made := x.begin(10, "")
		foreign := *x
		foreign.tok.Hash = auth.Hash("another login")
		require.Equal(t, "PASSKEY_REFUSED", code(foreign.add(10, made)), "another login of the account")
		require.Equal(t, "PASSKEY_REFUSED", code(x.add(11, made)), "another account")
		for _, bad := range []string{"", "{}", "null", `{"id":"x"}`, made[:len(made)-2], made + made} {
			require.Contains(t, []string{"PASSKEY_REFUSED", "VALIDATION_FAILED"}, code(x.add(10, bad)))
		}
		unseen := *x
		unseen.auth.Options.UserNotVerified = true
		require.Equal(t, "PASSKEY_REFUSED", code(x.add(10, unseen.begin(10, ""))), "no person was recognised")
		evil := *x
		evil.rp.Origin = "https://evil.example"
		require.Equal(t, "PASSKEY_REFUSED", code(x.add(10, evil.begin(10, ""))), "another origin")
		// Six at once on two nodes: one passkey.
		errs := make([]string, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, err := []*desk{d, other}[i%2].a.AddPasskey(ctx, d.now(10), AddPasskeyInput{Name: "Phone", Credential: made}, x.tok)
				errs[i] = code(err)
			})
		}
		wg.Wait()
		good := 0
		for _, e := range errs {
			if e == "" {
				good++
			} else {
				require.Contains(t, []string{"PASSKEY_REFUSED", "PASSKEY_EXISTS"}, e)
			}
		}
		require.Equal(t, 1, good)
		list, err := d.a.ListPasskeys(ctx, d.now(10), check.None{})
		require.NoError(t, err)
		require.Len(t, list.Passkeys, 1)
		kinds, _ := d.mails(1)
		require.Equal(t, []string{"passkey to ann@a.example"}, kinds)
		id := list.Passkeys[0].ID
		_, err = d.a.RenamePasskey(ctx, d.now(11), RenamePasskeyInput{ID: id, Name: "Mine"})
		require.Equal(t, "PASSKEY_NOT_FOUND", code(err), "another person's")
		_, err = d.a.RenamePasskey(ctx, d.now(10), RenamePasskeyInput{ID: id, Name: "Old phone"})
		require.NoError(t, err)

		answer := x.sign(x.options(""))
		l, err := x.login(answer, "")
		require.NoError(t, err)
		require.Equal(t, []any{cloud.AccountID(10), false}, []any{l.Account.ID, l.SetsUp})
		require.True(t, d.alive(l))
		_, err = x.login(answer, "")
		require.Equal(t, "PASSKEY_REFUSED", code(err), "replayed")
		refuse := func(why string, change func(*device)) {
			t.Helper()
			y := *x
			change(&y)
			_, err := x.login(y.sign(x.options("")), "")
			require.Equal(t, "PASSKEY_REFUSED", code(err), why)
		}
		refuse("another origin", func(y *device) { y.rp.Origin = "https://evil.example" })
		refuse("another relying party", func(y *device) { y.rp.ID = "evil.example" })
		refuse("no person was recognised", func(y *device) { y.auth.Options.UserNotVerified = true })
		refuse("nobody was there", func(y *device) { y.auth.Options.UserNotPresent = true })
		refuse("another user", func(y *device) { y.auth.Options.UserHandle = []byte("account/11") })
		refuse("no user", func(y *device) { y.auth.Options.UserHandle = nil })
		refuse("a key that was not kept", func(y *device) { y.key = newKey(t) })
		refuse("a counter that goes back", func(y *device) { y.key.Counter = 0 })
		require.Contains(t, d.actions(1), "account:10 passkey_counter_refused account")
		forged := x.options("")
		forged.Challenge[3] ^= 1
		_, err = x.login(x.sign(forged), "")
		require.Equal(t, "PASSKEY_REFUSED", code(err), "a challenge that was not given")
		elsewhere := x.sign(x.options(""))
		_, _, err = d.gate.Passkey(ctx, auth.PasskeyTry{Credential: elsewhere, Binding: "another browser", IP: "192.0.2.1"})
		require.Equal(t, "PASSKEY_REFUSED", code(err), "another browser's challenge")
		_, err = x.login(x.sign(virtualwebauthn.AssertionOptions{Challenge: x.options("").Challenge, RelyingPartyID: "cloud.test"}), "a-challenge-of-a-login")
		require.Equal(t, "PASSKEY_REFUSED", code(err), "not for a second step")
		l, err = x.login(x.sign(x.options("")), "")
		require.NoError(t, err, "none of it ended the passkey")

		answer = x.sign(x.options(""))
		_, err = d.a.RemovePasskey(ctx, d.now(10), ByPasskey{ID: id})
		require.NoError(t, err)
		_, err = x.login(answer, "")
		require.Equal(t, "PASSKEY_REFUSED", code(err), "removed")
		require.True(t, d.alive(l))
		_, err = d.a.RemovePasskey(ctx, d.now(10), ByPasskey{ID: id})
		require.Equal(t, "PASSKEY_NOT_FOUND", code(err))
	})
}

// Logins by one answer at one moment on two nodes meet at the passkey: one lets in.
func TestPasskeysOfOneMoment(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, d, other *desk) {
		x := d.device(10)
		require.NoError(t, x.add(10, x.begin(10, "")))
		answer := x.sign(x.options(""))
		y := *x
		y.d = other
		results := make([]string, 6)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				_, err := []*device{x, &y}[i%2].login(answer, "")
				results[i] = code(err)
			})
		}
		wg.Wait()
		good := 0
		for _, r := range results {
			if r == "" {
				good++
			}
		}
		require.Equal(t, 1, good, "%v", results)
	})
}

// Keys that are synced between devices have no counter: an answer of one is taken once
// because its challenge is, on every node.
func TestPasskeyWithoutCounter(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		x := d.device(10)
		require.NoError(t, x.add(10, x.begin(10, "")))
		again := *x
		again.d = other
		for range 2 {
			answer := virtualwebauthn.CreateAssertionResponse(x.rp, x.auth, x.key, x.options(""))
			_, err := x.login(answer, "")
			require.NoError(t, err)
			_, err = x.login(answer, "")
			require.Equal(t, "PASSKEY_REFUSED", code(err), "the same answer again")
			_, err = again.login(answer, "")
			require.Equal(t, "PASSKEY_REFUSED", code(err), "at another node")
		}
	})
}

// As second step after the password: of the same account, by its challenge alone, and
// of administrators with the person recognised.
func TestPasskeyAsSecondFactor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		ctx := t.Context()
		for _, id := range []cloud.AccountID{10, 12} {
			_, recovery := d.setUp(id, cloud.Token{})
			email := map[cloud.AccountID]string{10: "ann@a.example", 12: "cus@a.example"}[id]
			x := d.device(id)
			_, err := d.a.BeginPasskey(ctx, d.now(id), ProofInput{Password: password}, x.tok)
			require.Equal(t, "SECOND_FACTOR_REQUIRED", code(err))
			_, _, err = d.gate.BeginPasskey(ctx, auth.PasskeyTry{Challenge: d.challenge(email), IP: "192.0.2.1"})
			require.Equal(t, "PASSKEY_UNAVAILABLE", code(err), "there is none yet")
			require.NoError(t, x.add(id, x.begin(id, recovery[0])))
			challenge := d.challenge(email)
			answer := x.sign(x.options(challenge))
			_, err = x.login(answer, d.challenge(email))
			require.Equal(t, "PASSKEY_REFUSED", code(err), "another login's")
			_, err = x.login(answer, "")
			require.Equal(t, "PASSKEY_REFUSED", code(err), "not a whole login")
			quick := *x
			quick.auth.Options.UserNotVerified = true
			_, err = x.login(quick.sign(x.options(challenge)), challenge)
			x.key.Counter++
			if id == 10 {
				require.Equal(t, "PASSKEY_REFUSED", code(err), "an administrator has to be recognised")
				_, err = x.login(x.sign(x.options(challenge)), challenge)
			}
			require.NoError(t, err)
			_, _, err = d.gate.BeginPasskey(ctx, auth.PasskeyTry{Challenge: challenge, IP: "192.0.2.1"})
			require.Equal(t, "CHALLENGE_EXPIRED", code(err), "the login has its second step")
		}
	})
}

// In a business that demands a second factor a login by passkey is as good as one,
// and an administrator's reset takes passkeys away too.
func TestPasskeyWhereASecondFactorIsDemanded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		x := d.device(12)
		require.NoError(t, x.add(12, x.begin(12, "")))
		_, err := d.s.SaveSettings(t.Context(), d.now(10), SettingsInput{SecondFactor: ptr(true)})
		require.NoError(t, err)
		l, err := x.login(x.sign(x.options("")), "")
		require.NoError(t, err)
		require.False(t, l.SetsUp)
		p, err := d.login("cus@a.example", "")
		require.NoError(t, err)
		require.True(t, p.SetsUp, "the password alone")
		_, err = d.a.ResetFactor(t.Context(), d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		require.False(t, d.alive(l))
		_, err = x.login(x.sign(x.options("")), "")
		require.Equal(t, "PASSKEY_REFUSED", code(err))
	})
}

// Passkeys need an address that browsers give them at.
func TestWherePasskeysAre(t *testing.T) {
	t.Parallel()
	for base, there := range map[string]bool{"https://cloud.test": true, "https://cloud.test:8443": true, "http://localhost:8080": true, "": false, "http://cloud.test": false, "https://192.0.2.1": false, "http://127.0.0.1:8080": false} {
		p, err := auth.NewPasskeys(base, nil)
		require.NoError(t, err, base)
		require.Equal(t, there, p != nil, base)
	}
	d := newDesk(t, newWorld(t).db, false)
	d.auth.WithPasskeys(nil)
	d.s.cfg.Passkeys = nil
	d.a = AccessOf(d.s)
	_, err := d.a.BeginPasskey(t.Context(), as(ann), ProofInput{Password: password}, cloud.Token{})
	require.Equal(t, "PASSKEY_UNAVAILABLE", code(err))
	_, _, err = d.gate.Passkey(t.Context(), auth.PasskeyTry{Credential: "{}", IP: "192.0.2.1"})
	require.Equal(t, "PASSKEY_UNAVAILABLE", code(err))
}

// newKey is a key of an authenticator whose coordinates have all 32 bytes: the library
// leaves leading zeros out, and a key without them is no valid one.
func newKey(t testing.TB) virtualwebauthn.Credential {
	t.Helper()
	for {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		raw, err := k.PublicKey.Bytes()
		require.NoError(t, err)
		if raw[1] == 0 || raw[33] == 0 {
			continue
		}
		pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
		require.NoError(t, err)
		return virtualwebauthn.NewCredentialWithImportedKey(virtualwebauthn.KeyTypeEC2, pkcs8)
	}
}

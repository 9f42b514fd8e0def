package account

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// proven reports whether the address of a customer is, as a decision reads it.
func (d *desk) proven(id cloud.AccountID) bool {
	d.t.Helper()
	return d.account(id).IsMailProven()
}

// complete chooses a password by a link.
func (d *desk) complete(token, chosen string) {
	d.t.Helper()
	_, err := d.a.CompleteReset(d.t.Context(), cloud.Caller{}, NewPasswordInput{Token: token, Password: chosen})
	require.NoError(d.t, err)
}

// An address is proven by a link that went to it and into no answer: of an invitation, of an
// administrator's reset, of a request by the person. A new address or password that the
// business sets ends that; a password that the person chooses does not.
func TestAnAddressIsProvenByALinkThatWentToIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		ctx := t.Context()
		require.False(t, d.proven(12), "the business typed it")
		shown, err := d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		invited, err := d.a.Invite(ctx, d.now(10), InviteInput{AccountType: cloud.Customer, Email: "yan@a.example", Name: "Yan"})
		require.NoError(t, err)
		d.withMail() // from here on links go by mail; those before were shown to the administrator
		d.complete(shown.Token, password)
		require.False(t, d.proven(12), "the administrator was shown the link")
		require.NoError(t, d.accept(invited.Token, "yan@a.example"))
		in, err := d.login("yan@a.example", "")
		require.NoError(t, err)
		require.False(t, d.proven(in.Account.ID))

		_, err = d.a.Invite(ctx, d.now(10), InviteInput{AccountType: cloud.Customer, Email: "zoe@a.example", Name: "Zoe"})
		require.NoError(t, err)
		_, links := d.mails(1)
		require.NoError(t, d.accept(mailedKey(t, links[len(links)-1]), "zoe@a.example"))
		in, err = d.login("zoe@a.example", "")
		require.NoError(t, err)
		require.True(t, d.proven(in.Account.ID))

		prove := func() {
			t.Helper()
			_, err := d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
			require.NoError(t, err)
			_, links := d.mails(1)
			d.complete(mailedKey(t, links[len(links)-1]), password)
			require.True(t, d.proven(12))
		}
		change := func(in CustomerInput) {
			t.Helper()
			_, err := d.s.ChangeCustomer(ctx, d.now(10), ChangeCustomerInput{ID: 12, CustomerInput: in})
			require.NoError(t, err)
		}
		prove()
		change(CustomerInput{Name: ptr("Cus & Co"), Email: ptr(" CUS@a.example ")})
		require.True(t, d.proven(12), "the same address")
		change(CustomerInput{Email: ptr("victim@a.example")})
		require.False(t, d.proven(12), "another address")
		change(CustomerInput{Email: ptr("cus@a.example"), Password: ptr("chosen by the business")})
		require.False(t, d.proven(12), "the address of before, with a password of the business")
		prove()
		change(CustomerInput{Password: ptr("chosen by the business")})
		require.False(t, d.proven(12))
		_, err = d.a.ChangePassword(ctx, d.now(12), PasswordInput{Password: "chosen by the business", Next: "chosen by the person"}, cloud.Token{})
		require.NoError(t, err)
		require.False(t, d.proven(12), "a password of its own proves no address")
		prove()
		_, err = d.a.ChangePassword(ctx, d.now(12), PasswordInput{Password: password, Next: "chosen by the person"}, cloud.Token{})
		require.NoError(t, err)
		require.True(t, d.proven(12))

		change(CustomerInput{Password: ptr("chosen by the business")})
		_, err = d.a.RequestReset(ctx, cloud.Caller{}, ForgottenInput{Email: "cus@a.example"})
		require.NoError(t, err)
		require.NoError(t, d.a.ResolveResets(ctx, d.db))
		_, links = d.mails(1)
		d.complete(mailedKey(t, links[len(links)-1]), password)
		require.True(t, d.proven(12), "by a request of the person")
	})
}

// Who made a customer's account and signed in before its person did has left a key and a
// passkey behind: the proof of the address ends them. Those of a person whose address is
// proven stay when the person forgets the password.
func TestTheProofOfAnAddressEndsWhatWasMadeBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		ctx := t.Context()
		d.withMail()
		reset := func() {
			t.Helper()
			_, err := d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
			require.NoError(t, err)
			_, links := d.mails(1)
			d.complete(mailedKey(t, links[len(links)-1]), password)
		}
		leave := func(id cloud.PasskeyID) KeyOutput {
			t.Helper()
			key, err := d.s.MakeKey(ctx, d.now(12), KeyInput{Name: "left", Profile: "full"})
			require.NoError(t, err)
			d.write(&cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{cloud.Passkey{ID: id, AccountID: 12, Credential: []byte{byte(id)}, Name: "left", CreatedAt: time.Now()}}}})
			return key
		}
		left := func() (keys, passkeys int) {
			t.Helper()
			d.look(func(v cloud.View) {
				list, err := liveKeys(v, 12, time.Now())
				require.NoError(t, err)
				marks, err := cloud.All(v, cloud.Passkey{AccountID: 12})
				require.NoError(t, err)
				keys, passkeys = len(list), len(marks)
			})
			return keys, passkeys
		}
		key := leave(9001)
		reset()
		keys, passkeys := left()
		require.Equal(t, []int{0, 0}, []int{keys, passkeys})
		d.look(func(v cloud.View) {
			token, err := v.Token(auth.Hash(key.Token))
			require.NoError(t, err)
			require.False(t, auth.Valid(token, time.Now().Add(time.Second)))
		})
		leave(9002)
		reset()
		keys, passkeys = left()
		require.Equal(t, []int{1, 1}, []int{keys, passkeys}, "of the person")
	})
}

package account

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// A person whom a provider made anew gets the account again once an administrator took
// it from the former one, whose logins end; those of other businesses take nothing.
func TestAPersonThatAProviderMadeAnew(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		enter := func(subject string) (auth.Login, error) {
			return d.auth.External(ctx, auth.External{BusinessCode: d.business(1).Code, Issuer: "https://id.example", Subject: subject, Email: "cus@a.example", EmailVerified: true})
		}
		shown := func() (out []string) {
			list, err := other.a.ListUserIdentities(ctx, d.now(10), ByUser{ID: 12})
			require.NoError(t, err)
			for _, i := range list.Identities {
				require.NotNil(t, i.CreatedAt)
				out = append(out, i.Issuer+" "+i.Subject)
			}
			return out
		}
		require.Empty(t, shown())
		_, err := d.a.EndUserIdentities(ctx, d.now(10), ByUser{ID: 12})
		require.Equal(t, "IDENTITY_NOT_FOUND", code(err))
		former, err := enter("former")
		require.NoError(t, err)
		require.Equal(t, cloud.AccountID(12), former.Account.ID)
		require.Equal(t, []string{"https://id.example former"}, shown())
		_, err = enter("anew")
		require.Equal(t, "OIDC_NO_ACCOUNT", code(err))

		_, err = d.a.ListUserIdentities(ctx, d.now(20), ByUser{ID: 12})
		require.Equal(t, "USER_NOT_FOUND", code(err), "of another business")
		_, err = d.a.EndUserIdentities(ctx, d.now(20), ByUser{ID: 12})
		require.Equal(t, "USER_NOT_FOUND", code(err), "of another business")
		require.True(t, d.alive(former))

		_, err = d.a.EndUserIdentities(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		require.False(t, d.alive(former))
		require.Empty(t, shown())
		require.Contains(t, d.actions(1), "account:10 identities_ended account")
		l, err := enter("anew")
		require.NoError(t, err)
		require.Equal(t, cloud.AccountID(12), l.Account.ID)
		_, err = enter("former")
		require.Equal(t, "OIDC_NO_ACCOUNT", code(err), "the account is another person's now")
		require.Equal(t, []string{"https://id.example anew"}, shown())
	})
}

package catalog

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// A key never holds a scope that its owner or the key itself lacks.
func TestKeysNarrow(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name        string
		typ         cloud.AccountType
		permissions []string
		token       cloud.Token
		want        []string // of which the session has exactly these
	}{
		{"an admin's login", cloud.ClientAdmin, nil, cloud.Token{}, scopes},
		{"a provider's key", cloud.ProviderType, nil, cloud.Token{ID: 1}, scopes},
		{"scopes before the profile", cloud.ClientAdmin, nil, cloud.Token{ID: 1, Profile: "full", Scopes: []string{"lockers:write"}}, []string{"lockers:read", "lockers:write"}},
		{"a profile", cloud.ClientAdmin, nil, cloud.Token{ID: 1, Profile: "wms-readonly"}, []string{"orders:read", "wms:read"}},
		{"all", cloud.Customer, nil, cloud.Token{ID: 1, Profile: "full"}, scopes},
		{"a profile that is no more", cloud.ClientAdmin, nil, cloud.Token{ID: 1, Profile: "gone"}, nil},
		{"an employee's login", cloud.ClientEmployee, []string{"orders:write"}, cloud.Token{}, []string{"orders:read", "orders:write"}},
		{"an employee's key for all", cloud.ClientEmployee, []string{"orders:read"}, cloud.Token{ID: 1, Profile: "full"}, []string{"orders:read"}},
		{"write of the key, read of the employee", cloud.ClientEmployee, []string{"orders:read"}, cloud.Token{ID: 1, Scopes: []string{"orders:write"}}, []string{"orders:read"}},
		{"an employee who lost everything", cloud.ClientEmployee, nil, cloud.Token{ID: 1, Scopes: []string{"orders:write"}}, nil},
	} {
		c := cloud.Caller{Scopes: scopesOf(&auth.Session{Token: x.token, Account: cloud.Account{Type: x.typ, Permissions: x.permissions}})}
		var have []string
		for _, s := range scopes {
			if lacking(&Operation{Scopes: []string{s}}, c) == "" {
				have = append(have, s)
			}
		}
		require.Equal(t, x.want, have, x.name)
	}
}

func TestProfilesHoldKnownScopes(t *testing.T) {
	t.Parallel()
	for name, list := range profiles {
		require.True(t, KnownProfile(name))
		for _, s := range list {
			require.True(t, s == "*" || KnownScope(s), "%s: %s", name, s)
		}
	}
	require.False(t, KnownProfile("nosuch"))
}

func TestKeysFromForeignAddresses(t *testing.T) {
	t.Parallel()
	list := []string{"192.0.2.7", "2001:db8::/32", "198.51.100.0/24"}
	for ip, want := range map[string]string{
		"192.0.2.7": "", "::ffff:192.0.2.7": "", "198.51.100.200": "", "2001:db8::1": "", "2001:db8::1%eth0": "",
		"192.0.2.8": "IP_NOT_ALLOWED", "2001:db9::1": "IP_NOT_ALLOWED", "": "IP_NOT_ALLOWED", "nonsense": "IP_NOT_ALLOWED"} {
		p := NewPipeline(Config{Limits: Limits{Anonymous: -1}, FindToken: func(context.Context, [32]byte) (auth.Session, error) {
			return auth.Session{Token: cloud.Token{ID: 1, IPAllowlist: list}, Account: cloud.Account{ID: 1, Type: cloud.ClientAdmin, Enabled: true}}, nil
		}})
		o := row(Operation{})
		_, c, _, err := p.Admit(t.Context(), &o, Who{Authorization: "Bearer x", IP: ip})
		require.Equal(t, want, code(err), ip)
		require.Equal(t, want != "", c.Anonymous(), "nobody gets in half-way")
	}
}

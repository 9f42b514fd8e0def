package catalog

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
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
		{"an admin's login", cloud.ClientAdmin, nil, cloud.Token{}, cloud.AllScopes()},
		{"a provider's key", cloud.ProviderType, nil, cloud.Token{ID: 1}, cloud.AllScopes()},
		{"scopes before the profile", cloud.ClientAdmin, nil, cloud.Token{ID: 1, Profile: "full", Scopes: []string{"lockers:write"}}, []string{"lockers:read", "lockers:write"}},
		{"a profile", cloud.ClientAdmin, nil, cloud.Token{ID: 1, Profile: "wms-readonly"}, []string{"orders:read", "wms:read"}},
		{"all", cloud.Customer, nil, cloud.Token{ID: 1, Profile: "full"}, cloud.AllScopes()},
		{"a profile that is no more", cloud.ClientAdmin, nil, cloud.Token{ID: 1, Profile: "gone"}, nil},
		{"an employee's login", cloud.ClientEmployee, []string{"orders:write"}, cloud.Token{}, []string{"orders:read", "orders:write"}},
		{"an employee's key for all", cloud.ClientEmployee, []string{"orders:read"}, cloud.Token{ID: 1, Profile: "full"}, []string{"orders:read"}},
		{"write of the key, read of the employee", cloud.ClientEmployee, []string{"orders:read"}, cloud.Token{ID: 1, Scopes: []string{"orders:write"}}, []string{"orders:read"}},
		{"an agent's grant", cloud.ClientAdmin, nil, cloud.Token{Grant: 1, Scopes: []string{"wms:read"}}, []string{"wms:read"}},
		{"a grant of nothing", cloud.ClientAdmin, nil, cloud.Token{Grant: 1}, nil},
		{"an employee's agent who lost a permission since", cloud.ClientEmployee, []string{"orders:read"}, cloud.Token{Grant: 1, Scopes: []string{"orders:write", "wms:read"}}, []string{"orders:read"}},
		{"an employee who lost everything", cloud.ClientEmployee, nil, cloud.Token{ID: 1, Scopes: []string{"orders:write"}}, nil},
	} {
		c := cloud.Caller{Scopes: scopesOf(&auth.Session{Token: x.token, Account: cloud.Account{Type: x.typ, Permissions: x.permissions}})}
		var have []string
		for _, s := range cloud.AllScopes() {
			if missingScope(&Operation{Scopes: []string{s}}, c) == "" {
				have = append(have, s)
			}
		}
		require.Equal(t, x.want, have, x.name)
	}
}

func TestProfilesHoldKnownScopes(t *testing.T) {
	t.Parallel()
	for name, list := range profiles {
		for _, s := range list {
			require.True(t, s == "*" || cloud.KnownScope(s), "%s: %s", name, s)
		}
	}
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

// A token of the authorization server is good at the server that is its
// audience, at both addresses of it, and at no face that has none; a refresh
// token nowhere.
func TestTokensAreGoodAtTheirAudience(t *testing.T) {
	t.Parallel()
	const at = "https://x.example/mcp"
	token := cloud.Token{Grant: 1, Kind: cloud.AccessToken, Audience: at, Scopes: []string{"orders:read"}}
	refresh, nowhere, unbound := token, token, token
	refresh.Kind, nowhere.Audience, unbound.Kind = cloud.RefreshToken, "", ""
	root := token
	root.Audience = "https://x.example"
	for _, x := range []struct {
		token    cloud.Token
		resource string
		good     bool
	}{
		{token, at, true}, {token, at + "/developer", false}, {token, at + "/other", false}, {token, at + "x", false}, {token, at + "%2Fdeveloper", false}, {token, "https://x.example", false},
		{token, "https://x.example/api/mcp", true}, {token, "https://x.example/api/mcp/developer", false}, {token, "https://x.example/evil/mcp", false}, {token, "http://x.example/mcp", false}, {token, "https://x.example.evil/mcp", false}, {token, "", false},
		{root, at, true}, {root, at + "/developer", true}, {root, "https://x.example/api/v1/orders", false}, {root, "https://x.example.evil/mcp", false}, {root, "https://x.example:8443/mcp", false}, {root, "", false},
		{refresh, at, false}, {refresh, "", false}, {nowhere, at, false}, {nowhere, "", false}, {unbound, at, false}, {unbound, "", false},
		{cloud.Token{}, "", true}, {cloud.Token{}, at, true}, {cloud.Token{ID: 5}, at, true},
	} {
		p := NewPipeline(Config{Limits: Limits{Anonymous: -1}, FindToken: func(context.Context, [32]byte) (auth.Session, error) {
			return auth.Session{Token: x.token, Account: cloud.Account{ID: 1, Type: cloud.ClientAdmin, Enabled: true}}, nil
		}})
		o := row(Operation{})
		_, c, _, err := p.Admit(t.Context(), &o, Who{Authorization: "Bearer x", Resource: x.resource})
		want := ""
		if !x.good {
			want = "TOKEN_INVALID"
		}
		require.Equal(t, want, code(err), "%+v at %s", x.token, x.resource)
		require.Equal(t, !x.good, c.Anonymous())
	}
}

// A fresh token of the same grant comes with no fresh limit.
func TestTokensOfOneGrantShareALimit(t *testing.T) {
	t.Parallel()
	n := byte(0)
	p := NewPipeline(Config{Limits: Limits{Authenticated: 2}, FindToken: func(context.Context, [32]byte) (auth.Session, error) {
		n++
		return auth.Session{Token: cloud.Token{Hash: [32]byte{n}, Grant: 1, Kind: cloud.AccessToken, Audience: "https://x.example"}, Account: cloud.Account{ID: 1, Type: cloud.ClientAdmin, Enabled: true}}, nil
	}})
	o := row(Operation{})
	for _, want := range []string{"", "", "RATE_LIMITED"} {
		_, _, _, err := p.Admit(t.Context(), &o, Who{Authorization: "Bearer x", Resource: "https://x.example/mcp"})
		require.Equal(t, want, code(err))
	}
}

func TestProfilesGrow(t *testing.T) {
	t.Parallel()
	list := Profiles()
	require.Len(t, list, len(profiles))
	require.Equal(t, "full", list[len(list)-1])
	for i := 1; i < len(list); i++ {
		require.LessOrEqual(t, size(list[i-1]), size(list[i]))
	}
	require.Equal(t, []string{"*"}, ProfileScopes("full"))
	require.Nil(t, ProfileScopes("nosuch"))
}

// The input of a key lists all profiles.
func TestKeysOfEveryProfile(t *testing.T) {
	t.Parallel()
	f, _ := reflect.TypeFor[account.KeyInput]().FieldByName("Profile")
	require.Equal(t, Profiles(), check.RulesOf(f).Enum)
}

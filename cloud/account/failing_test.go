package account

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

var errGone = errors.New("the database is gone")

// failingView is a view of which one part does not answer.
type failingView struct {
	cloud.View
	part string
}

func (v failingView) fails(part string) error {
	if v.part == part {
		return errGone
	}
	return nil
}

func (v failingView) Tokens(id cloud.AccountID) ([]cloud.Token, error) {
	list, err := v.View.Tokens(id)
	return list, errors.Join(err, v.fails("tokens"))
}

func (v failingView) OAuthGrants(id cloud.AccountID) ([]cloud.OAuthGrant, error) {
	list, err := v.View.OAuthGrants(id)
	return list, errors.Join(err, v.fails("grants"))
}

func (v failingView) Driver(b cloud.BusinessID, id cloud.AccountID) (cloud.Driver, error) {
	d, err := v.View.Driver(b, id)
	if v.part == "driver" {
		err = errGone
	}
	return d, err
}

func (v failingView) Accounts(f cloud.AccountFilter) ([]cloud.Account, cloud.Listed, error) {
	list, n, err := v.View.Accounts(f)
	return list, n, errors.Join(err, v.fails("accounts"))
}

// failingStore gives such views, and refuses decisions of a device.
type failingStore struct {
	Store
	part string
}

func (s failingStore) Look(ctx context.Context, fn func(cloud.View) error) error {
	return s.Store.Look(ctx, func(v cloud.View) error { return fn(failingView{v, s.part}) })
}

func (s failingStore) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if d != 0 {
		return errors.New("accounts belong to no device")
	}
	return s.Store.Decide(ctx, d, func(v cloud.View) (*cloud.Changes, error) { return fn(failingView{v, s.part}) })
}

// A change of which a part cannot be read is not made: a new password never
// stands without the end of the logins by the former one.
func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	registered, err := w.s.Register(ctx, dan())
	require.NoError(t, err)
	provider, err := w.s.AddProvider(ctx, as(ann), ProviderInput{Code: ptr("fast"), Name: ptr("Fast")})
	require.NoError(t, err)
	key, err := w.s.MakeKey(ctx, as(ann), KeyInput{Name: "till"})
	require.NoError(t, err)
	password := func(s *Service) error {
		_, err := s.ChangeUser(ctx, as(ann), ChangeUserInput{ben.ID, UserInput{Password: ptr("battery staple")}})
		return err
	}
	for part, calls := range map[string][]func(s *Service) error{
		"tokens": {password,
			func(s *Service) error { _, err := s.MakeKey(ctx, as(ann), KeyInput{Name: "x"}); return err },
			func(s *Service) error { _, err := s.ListKeys(ctx, as(ann), KeysInput{}); return err },
			func(s *Service) error { _, err := s.FindKey(ctx, as(ann), ByKey{key.Key.ID}); return err },
			func(s *Service) error { _, err := s.RevokeKey(ctx, as(ann), ByKey{key.Key.ID}); return err },
		},
		"grants": {password, func(s *Service) error { _, err := s.ListAgents(ctx, as(ann), AgentsInput{}); return err }},
		"driver": {func(s *Service) error {
			_, err := s.ChangeUser(ctx, as(ann), ChangeUserInput{registered.DriverID, UserInput{Enabled: ptr(true)}})
			return err
		}},
		"accounts": {
			func(s *Service) error { _, err := s.ListUsers(ctx, as(ann), UsersInput{}); return err },
			func(s *Service) error {
				_, err := s.ChangeUser(ctx, as(ann), ChangeUserInput{ben.ID, UserInput{Enabled: ptr(false)}})
				return err
			},
			func(s *Service) error {
				_, err := s.MakeToken(ctx, as(ann), TokenInput{ID: provider.Provider.ID, Name: "x"})
				return err
			},
		},
	} {
		cfg := w.s.cfg
		cfg.Store = failingStore{w.db, part}
		for i, call := range calls {
			w.unchanged(func() { require.ErrorIs(t, call(New(cfg)), errGone, "%s %d", part, i) })
		}
	}
	require.False(t, w.account(registered.DriverID).Enabled)
	require.Empty(t, w.account(ben.ID).PasswordHash)
	cfg := w.s.cfg
	cfg.Store = failingStore{w.db, ""}
	s := New(cfg)
	for name, call := range map[string]func() error{
		"password": func() error { return password(s) },
		"token": func() error {
			out, err := s.MakeToken(ctx, as(ann), TokenInput{ID: provider.Provider.ID, Name: "x"})
			require.NoError(t, err)
			_, err = s.RevokeToken(ctx, as(ann), ByToken{provider.Provider.ID, out.Made.ID})
			return err
		},
		"key":      func() error { _, err := s.RevokeKey(ctx, as(ann), ByKey{key.Key.ID}); return err },
		"settings": func() error { _, err := s.SaveSettings(ctx, as(ann), SettingsInput{Currency: ptr("CAD")}); return err },
		"prices":   func() error { _, err := s.SavePrices(ctx, as(ann), PricesInput{}); return err },
		"feature":  func() error { _, err := s.Switch(ctx, as(ann), SwitchInput{"order_chat", ptr(true)}); return err },
	} {
		require.NoError(t, call(), "%s is no device's", name)
	}
}

package setup_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store"
)

func TestResetAtTheMachine(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		ctx, s := t.Context(), nodes[0]
		made, err := s.Administrator(ctx, ada)
		require.NoError(t, err)
		other := ada
		other.Business = "Pier Lockers"
		_, err = s.Administrator(ctx, other)
		require.NoError(t, err)
		_, err = s.Administrator(ctx, setup.Input{Code: made.Business.Code, Email: "bo@harbour.example", Password: "a long enough password"})
		require.NoError(t, err)
		login := func() (auth.Login, error) {
			return auth.New(db).Login(ctx, "bo@harbour.example", "a long enough password")
		}
		l, err := login()
		require.NoError(t, err)
		require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{{AccountID: l.Account.ID, Secret: auth.NewSecret()}}}}, nil
		}))
		_, err = login()
		var shown *cloud.Error
		require.True(t, errors.As(err, &shown) && shown.Code == "SECOND_FACTOR_REQUIRED", "%v", err)
		_, err = s.Reset(ctx, "none@harbour.example", "")
		require.ErrorIs(t, err, cloud.ErrNotFound)
		_, err = s.Reset(ctx, "bo@harbour.example", "pier-lockers")
		require.ErrorIs(t, err, cloud.ErrNotFound, "of another business")
		_, err = s.Reset(ctx, "Bo@Harbour.example", "")
		require.NoError(t, err)
		_, err = login()
		require.NoError(t, err)
		f, err := db.FindToken(ctx, auth.Hash(l.Token))
		require.NoError(t, err)
		require.False(t, f.Token.RevokedAt.IsZero(), "sessions end")
		rows, err := db.ListAudits(ctx, made.Business.ID, 0, 100)
		require.NoError(t, err)
		var lines []string
		for _, r := range rows {
			lines = append(lines, r.Action)
		}
		require.Contains(t, lines, "second_factor_reset")
	})
}

package platform_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// The link of a first administrator lets its holder in for good. Where there is a mail
// server it goes to that person, under the deployment's own address, and no operator
// has it; otherwise the operator gives it on.
func TestTheFirstAdministratorsLinkGoesByMail(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	operator := cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}, BaseURL: "https://evil.example"}
	in := platform.CreateInput{Code: "harbour", Name: "Harbour", Timezone: "UTC", Email: " Ann@A.example", Person: "Ann"}
	s := platform.New(platform.Config{Store: db, InvitationPath: "/invitation", MailBase: "https://cloud.test"})
	out, err := s.Create(t.Context(), operator, in)
	require.NoError(t, err)
	require.Equal(t, []any{true, ""}, []any{out.Mailed, out.Link})
	mails, err := db.ListNotifications(t.Context(), out.Business.BusinessID, 10)
	require.NoError(t, err)
	require.Len(t, mails, 1)
	require.Equal(t, []any{cloud.NotifyInvitation, "ann@a.example", "Ann", "Harbour"}, []any{mails[0].Kind, mails[0].To, mails[0].Name, mails[0].Business})
	u, err := url.Parse(mails[0].Link)
	require.NoError(t, err)
	require.Equal(t, "https://cloud.test/invitation", u.Scheme+"://"+u.Host+u.Path)
	require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
		_, err := cloud.Find(v, cloud.Invitation{Hash: auth.Hash(u.Query().Get("key"))})
		return err
	}))

	in.Code = "quay"
	s = platform.New(platform.Config{Store: db, InvitationPath: "/invitation"})
	out, err = s.Create(t.Context(), operator, in)
	require.NoError(t, err)
	require.False(t, out.Mailed)
	require.Contains(t, out.Link, "/invitation?key=")
	mails, err = db.ListNotifications(t.Context(), out.Business.BusinessID, 10)
	require.NoError(t, err)
	require.Empty(t, mails)
}

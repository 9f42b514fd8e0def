package account

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

func (d *desk) invite(email string) InviteOutput {
	d.t.Helper()
	c := d.now(10)
	c.BaseURL = "https://cloud.test"
	out, err := d.a.Invite(d.t.Context(), c, InviteInput{AccountType: cloud.ClientEmployee, Email: email, Name: "Zoe", Permissions: []string{"orders:read"}})
	require.NoError(d.t, err)
	return out
}

func (d *desk) accept(token, email string) error {
	_, err := d.a.Accept(d.t.Context(), cloud.Caller{}, AcceptInput{Token: token, Email: email, Password: password})
	return err
}

// altered is the token with another first character.
func altered(token string) string {
	if token[0] == 'x' {
		return "y" + token[1:]
	}
	return "x" + token[1:]
}

// An invitation that is used twice, forwarded, withdrawn, replaced or too old is
// refused with the reason; a refused invitation made no account.
func TestInvitationUsedTwiceOrForwarded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		made := d.invite("Zoe@A.example")
		require.Equal(t, "https://cloud.test/invitation?key="+url.QueryEscape(made.Token), made.Link)
		require.Equal(t, []any{"zoe@a.example", "pending"}, []any{made.Invitation.Email, made.Invitation.Status})
		require.Equal(t, "INVITATION_NOT_FOUND", code(d.accept(altered(made.Token), "zoe@a.example")))
		require.Equal(t, "INVITATION_EMAIL_WRONG", code(d.accept(made.Token, "eve@a.example")), "forwarded")
		_, err := d.login("zoe@a.example", "")
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		// Six at once on two nodes: one account.
		errs := make([]string, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = code([]*desk{d, other}[i%2].accept(made.Token, " ZOE@a.example")) })
		}
		wg.Wait()
		good := 0
		for _, e := range errs {
			if e == "" {
				good++
			} else {
				require.Equal(t, "INVITATION_USED", e)
			}
		}
		require.Equal(t, 1, good)
		require.Equal(t, "INVITATION_USED", code(other.accept(made.Token, "zoe@a.example")), "used twice")
		l, err := d.login("zoe@a.example", "")
		require.NoError(t, err)
		require.Equal(t, []any{cloud.ClientEmployee, cloud.BusinessID(1), "Zoe"}, []any{l.Account.Type, l.Account.BusinessID, l.Account.Name})
		require.Equal(t, []string{"orders:read"}, l.Account.Permissions)
		_, err = d.a.WithdrawInvitation(ctx, d.now(10), ByInvitation{ID: made.Invitation.ID})
		require.Equal(t, "INVITATION_USED", code(err))
		_, err = d.a.Invite(ctx, d.now(10), InviteInput{AccountType: cloud.Customer, Email: "zoe@a.example", Name: "Zoe"})
		require.Equal(t, "VALIDATION_FAILED", code(err), "somebody has that email")

		first := d.invite("yan@a.example")
		second := d.invite("yan@a.example")
		require.Equal(t, "INVITATION_WITHDRAWN", code(d.accept(first.Token, "yan@a.example")), "replaced")
		_, err = d.a.WithdrawInvitation(ctx, d.now(20), ByInvitation{ID: second.Invitation.ID})
		require.Equal(t, "INVITATION_NOT_FOUND", code(err), "of another business")
		_, err = d.a.WithdrawInvitation(ctx, d.now(11), ByInvitation{ID: second.Invitation.ID})
		require.NoError(t, err)
		require.Equal(t, "INVITATION_WITHDRAWN", code(d.accept(second.Token, "yan@a.example")))

		guessed := d.invite("xia@a.example")
		for range 5 {
			require.Equal(t, "INVITATION_EMAIL_WRONG", code(d.accept(guessed.Token, "eve@a.example")))
		}
		require.Equal(t, "INVITATION_WITHDRAWN", code(d.accept(guessed.Token, "xia@a.example")))

		late := d.invite("liu@a.example")
		d.look(func(v cloud.View) {
			i, err := cloud.Find(v, cloud.Invitation{BusinessID: 1, ID: late.Invitation.ID})
			require.NoError(t, err)
			require.Equal(t, 7*24*time.Hour, i.ExpiresAt.Sub(i.CreatedAt))
			i.ID, i.Hash, i.ExpiresAt = i.ID+1000, auth.Hash("old"), time.Now().Add(-time.Second)
			d.write(&cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{i}}})
		})
		require.Equal(t, "INVITATION_EXPIRED", code(d.accept("old", "liu@a.example")))

		list, err := d.a.ListInvitations(ctx, d.now(10), InvitationsInput{})
		require.NoError(t, err)
		var states []string
		for _, i := range list.Invitations {
			states = append(states, i.Email[:3]+" "+i.Status)
		}
		require.ElementsMatch(t, []string{"liu expired", "liu pending", "xia withdrawn", "yan withdrawn", "yan withdrawn", "zoe accepted"}, states)
		none, err := d.a.ListInvitations(ctx, d.now(20), InvitationsInput{})
		require.NoError(t, err)
		require.Empty(t, none.Invitations)
		require.Contains(t, d.actions(1), "anonymous invitation_accepted invitation")
		for _, secret := range []string{made.Token, first.Token, late.Token} {
			require.NotContains(t, strings.Join(d.details(1), " "), secret)
		}
	})
}

// A link to a new password works once, asks for the second factor and ends with the
// former password.
func TestPasswordReset(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		reset := func(token, next, otp string) string {
			_, err := other.a.CompleteReset(ctx, cloud.Caller{}, NewPasswordInput{Token: token, Password: next, OTP: otp})
			return code(err)
		}
		_, err := d.a.MakeReset(ctx, d.now(20), ByUser{ID: 12})
		require.Equal(t, "USER_NOT_FOUND", code(err))
		_, recovery := d.setUp(12, cloud.Token{})
		in, err := d.login("cus@a.example", recovery[9])
		require.NoError(t, err)
		former, err := d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		made, err := d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		require.False(t, d.alive(in), "an administrator's reset ends sessions")
		require.Equal(t, "RESET_EXPIRED", reset(former.Token, "another long password", recovery[0]), "replaced")
		require.Equal(t, "SECOND_FACTOR_REQUIRED", reset(made.Token, "another long password", ""))
		require.Equal(t, "SECOND_FACTOR_INVALID", reset(made.Token, "another long password", "0000-0000"))
		_, err = d.second(made.Token, recovery[0])
		require.Equal(t, "CHALLENGE_EXPIRED", code(err), "a link is no challenge")
		require.Equal(t, "RESET_EXPIRED", reset(d.challenge("cus@a.example"), "another long password", recovery[0]), "a challenge is no link")
		require.Equal(t, "", reset(made.Token, "another long password", recovery[0]))
		require.False(t, d.alive(in))
		require.Equal(t, "RESET_EXPIRED", reset(made.Token, "one more long password", recovery[1]), "used twice")
		_, err = d.login("cus@a.example", recovery[1])
		require.Equal(t, "INVALID_CREDENTIALS", code(err))
		_, _, err = d.gate.Login(ctx, auth.Try{Email: "cus@a.example", Password: "another long password", Code: recovery[1], IP: "192.0.2.1"})
		require.NoError(t, err)
		made, err = d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		_, err = d.s.ChangeCustomer(ctx, d.now(10), ChangeCustomerInput{ID: 12, CustomerInput: CustomerInput{Password: ptr("a password meanwhile")}})
		require.NoError(t, err)
		require.Equal(t, "RESET_EXPIRED", reset(made.Token, "one more long password", recovery[2]))
	})
}

// The link of a person does not go to who has the account afterwards: another address
// ends it, and a challenge of the former person's login too.
func TestAnotherAddressEndsLinks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		d.withMail()
		_, recovery := d.setUp(11, cloud.Token{})
		_, err := d.a.RequestReset(ctx, cloud.Caller{}, ForgottenInput{Email: "ben@a.example"})
		require.NoError(t, err)
		require.NoError(t, d.a.ResolveResets(ctx, d.db))
		_, links := d.mails(1)
		challenge := d.challenge("ben@a.example")
		_, err = d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 11, UserInput: UserInput{Name: ptr("Ben B."), Email: ptr("BEN@a.example")}})
		require.NoError(t, err)
		d.look(func(v cloud.View) {
			_, err := v.Ticket(auth.Hash(mailedKey(t, links[0])))
			require.NoError(t, err, "the address is the same")
		})
		_, err = d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 11, UserInput: UserInput{Email: ptr("bea@a.example")}})
		require.NoError(t, err)
		_, err = other.a.CompleteReset(ctx, cloud.Caller{}, NewPasswordInput{Token: mailedKey(t, links[0]), Password: "another long password", OTP: recovery[0]})
		require.Equal(t, "RESET_EXPIRED", code(err))
		_, err = other.second(challenge, recovery[1])
		require.Equal(t, "CHALLENGE_EXPIRED", code(err))
	})
}

// The limit of accounts that the platform set for a business holds: of several people who
// accept at once on two nodes the last place goes to one, and another one may come once
// an account is switched off.
func TestAccountsOfABusinessAreLimited(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		for _, node := range []*desk{d, other} { // ids beyond those of the accounts that are there
			require.NoError(t, node.db.Decide(ctx, 0, func(v cloud.View) (_ *cloud.Changes, err error) {
				for id := int64(0); id < 100 && err == nil; {
					id, err = v.NewID(cloud.AccountIDs)
				}
				return nil, err
			}))
		}
		var made []InviteOutput
		for i := range 4 {
			made = append(made, d.invite(fmt.Sprintf("zoe%d@a.example", i)))
		}
		enabled := 0
		require.NoError(t, d.db.Look(ctx, func(v cloud.View) error {
			_, listed, err := v.Accounts(cloud.AccountFilter{BusinessID: 1, Enabled: true, Page: cloud.Page{Sort: "id", Limit: 1}})
			enabled = listed.Total
			return err
		}))
		d.write(&cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1, Limits: cloud.BusinessLimits{Accounts: enabled + 1}}}}})
		errs := make([]string, len(made))
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				errs[i] = code([]*desk{d, other}[i%2].accept(made[i].Token, fmt.Sprintf("zoe%d@a.example", i)))
			})
		}
		wg.Wait()
		slices.Sort(errs)
		require.Equal(t, []string{"", "ACCOUNT_LIMIT_REACHED", "ACCOUNT_LIMIT_REACHED", "ACCOUNT_LIMIT_REACHED"}, errs)
		_, err := d.a.Invite(ctx, d.now(10), InviteInput{AccountType: cloud.Customer, Email: "new@a.example", Name: "New"})
		require.Equal(t, "ACCOUNT_LIMIT_REACHED", code(err))

		s := New(Config{Store: d.db})
		_, err = s.AddUser(ctx, d.now(10), UserInput{AccountType: ptr(cloud.DriverAccount), Name: ptr("Ned"), Email: ptr("ned@a.example")})
		require.Equal(t, "ACCOUNT_LIMIT_REACHED", code(err))
		off, err := s.AddUser(ctx, d.now(10), UserInput{AccountType: ptr(cloud.DriverAccount), Name: ptr("Ned"), Email: ptr("ned@a.example"), Enabled: ptr(false)})
		require.NoError(t, err, "one that is switched off takes no place")
		_, err = s.ChangeUser(ctx, d.now(10), ChangeUserInput{off.User.ID, UserInput{Enabled: ptr(true)}})
		require.Equal(t, "ACCOUNT_LIMIT_REACHED", code(err))
		_, err = s.ChangeUser(ctx, d.now(10), ChangeUserInput{10, UserInput{Name: ptr("Ann")}})
		require.NoError(t, err, "an account that is there changes")
	})
}

// No person joins a business that is suspended; the link is good again when it is resumed.
func TestInvitationIntoASuspendedBusiness(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		made := d.invite("zoe@a.example")
		set := func(s cloud.BusinessState) {
			s.BusinessID = 1
			d.write(&cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{s}}})
		}
		set(cloud.BusinessState{SuspendedAt: time.Now().UTC(), Reason: "Unpaid"})
		require.Equal(t, "BUSINESS_SUSPENDED", code(other.accept(made.Token, "zoe@a.example")))
		set(cloud.BusinessState{})
		require.NoError(t, other.accept(made.Token, "zoe@a.example"))
	})
}

// An invitation of an administrator who was switched off, or made an employee, makes
// no account: the link would give back what was taken away.
func TestInvitationOfAFormerAdministrator(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		invite := func() string {
			out, err := d.a.Invite(ctx, d.now(11), InviteInput{AccountType: cloud.ClientAdmin, Email: "back@a.example", Name: "Back"})
			require.NoError(t, err)
			return out.Token
		}
		change := func(in UserInput) {
			_, err := d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 11, UserInput: in})
			require.NoError(t, err)
		}
		token := invite()
		change(UserInput{Enabled: ptr(false)})
		require.Equal(t, "INVITATION_WITHDRAWN", code(other.accept(token, "back@a.example")), "switched off")
		change(UserInput{Enabled: ptr(true)})
		token = invite()
		change(UserInput{AccountType: ptr(cloud.ClientEmployee), Permissions: ptr(cloud.Scopes{"orders:read"})})
		require.Equal(t, "INVITATION_WITHDRAWN", code(other.accept(token, "back@a.example")), "an employee now")
		change(UserInput{AccountType: ptr(cloud.ClientAdmin)})
		require.NoError(t, other.accept(invite(), "back@a.example"))
	})
}

// A link to another person's new password, which an administrator has from an answer,
// ends when that administrator is switched off or none any more: with it the former one
// would take the other account over.
func TestResetOfAFormerAdministrator(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		reset := func(token string) string {
			_, err := other.a.CompleteReset(ctx, cloud.Caller{}, NewPasswordInput{Token: token, Password: "another long password"})
			return code(err)
		}
		change := func(in UserInput) {
			_, err := d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 11, UserInput: in})
			require.NoError(t, err)
		}
		made := func() string {
			out, err := d.a.MakeReset(ctx, d.now(11), ByUser{ID: 12})
			require.NoError(t, err)
			return out.Token
		}
		token := made()
		change(UserInput{Enabled: ptr(false)})
		require.Equal(t, "RESET_EXPIRED", reset(token), "switched off")
		change(UserInput{Enabled: ptr(true)})
		token = made()
		change(UserInput{AccountType: ptr(cloud.ClientEmployee), Permissions: ptr(cloud.Scopes{"orders:read"})})
		require.Equal(t, "RESET_EXPIRED", reset(token), "an employee now")
		change(UserInput{AccountType: ptr(cloud.ClientAdmin)})
		require.Equal(t, "", reset(made()))
	})
}

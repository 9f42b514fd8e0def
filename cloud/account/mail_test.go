package account

import (
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

// withMail gives a desk a mail server.
func (d *desk) withMail() *desk {
	d.s.cfg.MailBase = "https://cloud.test"
	d.a = AccessOf(d.s)
	return d
}

// mails are those of a business that wait, oldest first, as kind to address.
func (d *desk) mails(b cloud.BusinessID) (out []string, links []string) {
	d.t.Helper()
	list, err := d.db.ListNotifications(d.t.Context(), b, 100)
	require.NoError(d.t, err)
	for _, m := range slices.Backward(list) {
		out, links = append(out, string(m.Kind)+" to "+m.To), append(links, m.Link)
	}
	return out, links
}

func mailedKey(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	require.Equal(t, "cloud.test", u.Host, "never the Host header of a caller")
	return u.Query().Get("key")
}

// With a mail server links go to the person alone, and what an administrator does to
// an account is in a mail to its person.
func TestLinksGoByMail(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		d.withMail()
		ctx := t.Context()
		admin := d.now(10)
		admin.BaseURL = "https://evil.example"
		made, err := d.a.Invite(ctx, admin, InviteInput{AccountType: cloud.Customer, Email: "zoe@a.example", Name: "Zoe"})
		require.NoError(t, err)
		require.Equal(t, []any{true, "", ""}, []any{made.Mailed, made.Token, made.Link})
		in, err := d.login("cus@a.example", "")
		require.NoError(t, err)
		reset, err := d.a.MakeReset(ctx, admin, ByUser{ID: 12})
		require.NoError(t, err)
		require.Equal(t, []any{true, "", ""}, []any{reset.Mailed, reset.Token, reset.Link})
		require.False(t, d.alive(in), "an administrator's reset ends sessions")
		own, err := d.login("ann@a.example", "")
		require.NoError(t, err)
		_, err = d.a.MakeReset(ctx, d.now(10), ByUser{ID: 10})
		require.NoError(t, err)
		require.True(t, d.alive(own), "the own session stays until the password was chosen")
		kinds, links := d.mails(1)
		require.Equal(t, []string{"invitation to zoe@a.example", "admin_reset to cus@a.example", "admin_reset to ann@a.example"}, kinds)
		require.NoError(t, d.accept(mailedKey(t, links[0]), "zoe@a.example"))
		_, err = d.a.CompleteReset(ctx, cloud.Caller{}, NewPasswordInput{Token: mailedKey(t, links[1]), Password: "another long password"})
		require.NoError(t, err)

		d.setUp(11, cloud.Token{})
		_, err = d.a.ResetFactor(ctx, d.now(10), ByUser{ID: 11})
		require.NoError(t, err)
		_, err = d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 11, UserInput: UserInput{Password: ptr("a third long password")}})
		require.NoError(t, err)
		kinds, _ = d.mails(1)
		require.Equal(t, []string{"password to cus@a.example", "factor_removed to ben@a.example", "admin_password to ben@a.example"}, kinds[3:])
	})
}

// A request for a link answers and costs the same for every address, and what it
// leads to is found by its mail alone.
func TestRequestedResets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		_, err := d.a.RequestReset(ctx, cloud.Caller{}, ForgottenInput{Email: "cus@a.example"})
		require.Equal(t, "MAIL_UNAVAILABLE", code(err))
		d.withMail()
		other.withMail()
		twin := person(21, 2, cloud.Customer, "cus@a.example", true)
		off := person(22, 2, cloud.ClientEmployee, "off@b.example", false)
		twin.PasswordHash, off.PasswordHash = passwordHash(), passwordHash()
		none := person(23, 2, cloud.ClientEmployee, "new@b.example", true)
		d.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{twin, off, none}}})
		ask := func(email string) {
			t.Helper()
			out, err := d.a.RequestReset(ctx, cloud.Caller{Language: "fr", BaseURL: "https://evil.example"}, ForgottenInput{Email: email})
			require.NoError(t, err)
			require.Equal(t, Done{true}, out)
		}
		for _, email := range []string{" CUS@a.example", "off@b.example", "new@b.example", "nobody@x.example", "cus@a.example"} {
			ask(email)
		}
		_, err = d.a.RequestReset(ctx, cloud.Caller{}, ForgottenInput{Email: "cus"})
		require.Equal(t, "VALIDATION_FAILED", code(err))
		kinds, _ := d.mails(1)
		require.Empty(t, kinds, "nothing is looked up while a stranger waits")

		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wg.Go(func() { errs[i] = []*desk{d, other}[i%2].a.ResolveResets(ctx, d.db) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		kinds, links := d.mails(1)
		require.Equal(t, []string{"reset to cus@a.example"}, kinds)
		kinds, _ = d.mails(2)
		require.Equal(t, []string{"reset to cus@a.example"}, kinds, "an account that is disabled, and one without a password, get none")
		list, err := d.db.ListNotifications(ctx, 1, 1)
		require.NoError(t, err)
		require.Equal(t, "fr", list[0].Language)
		in, err := d.login("ann@a.example", "")
		require.NoError(t, err)
		token := mailedKey(t, links[0])
		require.NotContains(t, strings.Join(d.details(1), " "), token)
		_, err = d.a.CompleteReset(ctx, cloud.Caller{}, NewPasswordInput{Token: token, Password: "another long password"})
		require.NoError(t, err)
		_, err = d.a.CompleteReset(ctx, cloud.Caller{}, NewPasswordInput{Token: token, Password: "another long password"})
		require.Equal(t, "RESET_EXPIRED", code(err))
		require.True(t, d.alive(in))
		require.Contains(t, d.actions(1), "anonymous password_reset_requested account")
		ask("cus@a.example")
		require.NoError(t, d.a.ResolveResets(ctx, d.db))
		kinds, _ = d.mails(2)
		require.Len(t, kinds, 1, "ten minutes have not gone by")
	})
}

// A process that ends between what it read and what it writes has made neither link
// nor mail, and the request still waits.
func TestRequestedResetOfANodeThatEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		d.withMail()
		other.withMail()
		_, err := d.a.RequestReset(ctx, cloud.Caller{}, ForgottenInput{Email: "cus@a.example"})
		require.NoError(t, err)
		func() {
			defer func() { _ = recover() }()
			d.mid.meanwhile = func() { panic("the process ends") }
			_ = d.a.ResolveResets(ctx, d.db)
		}()
		kinds, _ := d.mails(1)
		require.Empty(t, kinds)
		require.NoError(t, other.a.ResolveResets(ctx, d.db))
		kinds, _ = d.mails(1)
		require.Equal(t, []string{"reset to cus@a.example"}, kinds)
	})
}

// The link of a request does not end what an administrator gave, nor a login that is
// under way: a stranger may ask for it.
func TestRequestedResetEndsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, _ *desk) {
		ctx := t.Context()
		former, err := d.a.MakeReset(ctx, d.now(10), ByUser{ID: 12})
		require.NoError(t, err)
		d.withMail()
		in, err := d.login("cus@a.example", "")
		require.NoError(t, err)
		_, err = d.a.RequestReset(ctx, cloud.Caller{}, ForgottenInput{Email: "cus@a.example"})
		require.NoError(t, err)
		require.NoError(t, d.a.ResolveResets(ctx, d.db))
		require.True(t, d.alive(in))
		d.look(func(v cloud.View) {
			ticket, err := v.Ticket(auth.Hash(former.Token))
			require.NoError(t, err)
			require.True(t, ticket.UsedAt.IsZero() && time.Now().Before(ticket.ExpiresAt))
		})
	})
}

package account

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

func jo() UserInput {
	return UserInput{AccountType: ptr(cloud.ClientEmployee), Name: ptr("Jo"), Email: ptr(" Jo@A.Example "), Password: ptr("correct horse"),
		Permissions: &cloud.Scopes{"orders:write", "orders:read", "orders:write"}}
}

func TestAPersonIsMadeChangedAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, err := w.s.AddUser(ctx, as(ann), jo())
	require.NoError(t, err)
	require.True(t, made.Result)
	require.Equal(t, "jo@a.example", made.User.Email, "as people log in with it")
	require.Equal(t, []string{"orders:read", "orders:write"}, made.User.Permissions)
	require.True(t, made.User.Enabled)
	stored := w.account(made.User.ID)
	require.Equal(t, cloud.BusinessID(1), stored.BusinessID)
	require.True(t, auth.CheckPassword(stored.PasswordHash, "correct horse"))

	found, err := w.s.FindUser(ctx, as(ben), ByUser{made.User.ID})
	require.NoError(t, err)
	require.Equal(t, made, found)
	changed, err := w.s.ChangeUser(ctx, as(ann), ChangeUserInput{made.User.ID, UserInput{Name: ptr("Joan"), Enabled: ptr(false)}})
	require.NoError(t, err)
	want := made.User
	want.Name, want.Enabled = "Joan", false
	require.Equal(t, want, changed.User, "what is absent stays")
	require.Equal(t, stored.PasswordHash, w.account(made.User.ID).PasswordHash)
	changed, err = w.s.ChangeUser(ctx, as(ann), ChangeUserInput{made.User.ID, UserInput{AccountType: ptr(cloud.Broker)}})
	require.NoError(t, err)
	require.Empty(t, changed.User.Permissions, "scopes are an employee's")
	require.Equal(t, []string{"account:10 user_made user", "account:10 user_changed user", "account:10 user_changed user"}, w.actions(1))

	list, err := w.s.ListUsers(ctx, as(ann), UsersInput{PageInput: PageInput{Keyset: check.Keyset{PerPage: ptr(2)}, Sort: "email"}})
	require.NoError(t, err)
	require.Equal(t, check.PageOutput{Total: 3, Page: 1, PerPage: 2, NextCursor: list.NextCursor}, list.PageOutput, "customers are no people of the business")
	require.Equal(t, []string{"ann@a.example", "ben@a.example"}, []string{list.Users[0].Email, list.Users[1].Email})
	list, err = w.s.ListUsers(ctx, as(ann), UsersInput{PageInput: PageInput{Keyset: check.Keyset{PerPage: ptr(2), Page: ptr(2)}, Sort: "email"}})
	require.NoError(t, err)
	require.Len(t, list.Users, 1)
	list, err = w.s.ListUsers(ctx, as(ann), UsersInput{})
	require.NoError(t, err)
	require.Equal(t, []cloud.AccountID{ben.ID, ann.ID, made.User.ID}, []cloud.AccountID{list.Users[0].ID, list.Users[1].ID, list.Users[2].ID}, "by id, the highest first")
	list, err = w.s.ListUsers(ctx, as(top), UsersInput{})
	require.NoError(t, err, "the platform's own people have no business")
	require.Zero(t, list.Total)
}

// Accounts of another business, of another kind and none look alike.
func TestForeignPeopleLookLikeNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for name, id := range map[string]cloud.AccountID{"another business": rae.ID, "a customer": cus.ID, "none": 999, "the platform's": top.ID} {
		w.unchanged(func() {
			_, err := w.s.FindUser(ctx, as(ann), ByUser{id})
			require.Equal(t, cloud.E(cloud.NotFound, "USER_NOT_FOUND"), err, name)
			_, err = w.s.ChangeUser(ctx, as(ann), ChangeUserInput{id, UserInput{Name: ptr("x")}})
			require.Equal(t, cloud.E(cloud.NotFound, "USER_NOT_FOUND"), err, name)
		})
	}
	for name, id := range map[string]cloud.AccountID{"another business": rae.ID, "staff": ben.ID, "none": 999} {
		w.unchanged(func() {
			_, err := w.s.FindCustomer(ctx, as(ann), ByCustomer{id})
			require.Equal(t, cloud.E(cloud.NotFound, "CUSTOMER_NOT_FOUND"), err, name)
			_, err = w.s.ChangeCustomer(ctx, as(ann), ChangeCustomerInput{id, CustomerInput{Name: ptr("x")}})
			require.Equal(t, cloud.E(cloud.NotFound, "CUSTOMER_NOT_FOUND"), err, name)
		})
	}
	gone := as(person(33, 3, cloud.ClientAdmin, "xxx@c.example", true))
	for name, call := range map[string]func() error{
		"users":     func() error { _, err := w.s.ListUsers(ctx, gone, UsersInput{}); return err },
		"user":      func() error { _, err := w.s.FindUser(ctx, gone, ByUser{1}); return err },
		"add":       func() error { _, err := w.s.AddUser(ctx, gone, jo()); return err },
		"customer":  func() error { _, err := w.s.FindCustomer(ctx, gone, ByCustomer{1}); return err },
		"keys":      func() error { _, err := w.s.ListKeys(ctx, gone, KeysInput{}); return err },
		"key":       func() error { _, err := w.s.FindKey(ctx, gone, ByKey{1}); return err },
		"make key":  func() error { _, err := w.s.MakeKey(ctx, gone, KeyInput{Name: "x"}); return err },
		"agents":    func() error { _, err := w.s.ListAgents(ctx, gone, AgentsInput{}); return err },
		"providers": func() error { _, err := w.s.ListProviders(ctx, gone, ProvidersInput{}); return err },
		"provider":  func() error { _, err := w.s.FindProvider(ctx, gone, ByProvider{1}); return err },
		"tokens":    func() error { _, err := w.s.ListTokens(ctx, gone, TokensInput{ID: 1}); return err },
		"settings":  func() error { _, err := w.s.SaveSettings(ctx, gone, SettingsInput{}); return err },
		"prices":    func() error { _, err := w.s.SavePrices(ctx, gone, PricesInput{}); return err },
	} {
		require.ErrorIs(t, call(), cloud.ErrNotFound, "%s of a business that is not there", name)
	}
}

func TestBadPeopleAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	add := func(in UserInput) (UserOutput, error) { return w.s.AddUser(t.Context(), as(ann), in) }
	for _, c := range []struct {
		member string
		change func(*UserInput)
	}{
		{"account_type", func(in *UserInput) { in.AccountType = nil }},
		{"account_type", func(in *UserInput) { in.AccountType = ptr(cloud.Customer) }},
		{"account_type", func(in *UserInput) { in.AccountType = ptr(cloud.PlatformAdmin) }},
		{"name", func(in *UserInput) { in.Name = nil }},
		{"name", func(in *UserInput) { in.Name = ptr(strings.Repeat("x", 121)) }},
		{"email", func(in *UserInput) { in.Email = nil }},
		{"email", func(in *UserInput) { in.Email = ptr("jo") }},
		{"email", func(in *UserInput) { in.Email = ptr("@a.example") }},
		{"email", func(in *UserInput) { in.Email = ptr("jo@example") }},
		{"email", func(in *UserInput) { in.Email = ptr("jo jo@a.example") }},
		{"email", func(in *UserInput) { in.Email = ptr("jo@b@a.example") }},
		{"email", func(in *UserInput) { in.Email = ptr(strings.Repeat("x", 250) + "@a.example") }},
		{"email", func(in *UserInput) { in.Email = ptr("ANN@a.example") }}, // in use
		{"password", func(in *UserInput) { in.Password = ptr("ninechars") }},
		{"password", func(in *UserInput) { in.Password = ptr(strings.Repeat("x", 257)) }},
		{"permissions.1", func(in *UserInput) { in.Permissions = &cloud.Scopes{"orders:read", "everything"} }},
	} {
		in := jo()
		c.change(&in)
		refused(w, c.member, in, add)
	}
	for _, length := range []int{10, 256} {
		in := jo()
		in.Email, in.Password = ptr(strings.Repeat("x", length-9)+"@a.example"), ptr(strings.Repeat("x", length))
		if length == 256 {
			in.Email = ptr(strings.Repeat("x", 246) + "@a.example")
		}
		_, err := add(in)
		require.NoError(t, err, "a password of %d", length)
	}
	longest := jo()
	longest.Name, longest.Email = ptr(strings.Repeat("x", 120)), ptr("long@a.example")
	_, err := add(longest)
	require.NoError(t, err, "a name of 120")
	long := make(cloud.Scopes, 101)
	for i := range long {
		long[i] = "orders:read"
	}
	in := jo()
	in.Permissions = &long
	refused(w, "permissions", in, add)
	refused(w, "email", ChangeUserInput{ben.ID, UserInput{Email: ptr("ann@a.example")}}, func(in ChangeUserInput) (UserOutput, error) { return w.s.ChangeUser(t.Context(), as(ann), in) })
	refused(w, "sort", UsersInput{PageInput: PageInput{Sort: "password_hash"}}, func(in UsersInput) (UsersOutput, error) { return w.s.ListUsers(t.Context(), as(ann), in) })
	for member, in := range map[string]PageInput{"page": {Keyset: check.Keyset{Page: ptr(0)}}, "per_page": {Keyset: check.Keyset{PerPage: ptr(0)}}} {
		refused(w, member, UsersInput{PageInput: in}, func(in UsersInput) (UsersOutput, error) { return w.s.ListUsers(t.Context(), as(ann), in) })
	}
	refused(w, "per_page", UsersInput{PageInput: PageInput{Keyset: check.Keyset{PerPage: ptr(201)}}}, func(in UsersInput) (UsersOutput, error) { return w.s.ListUsers(t.Context(), as(ann), in) })
	refused(w, "page", UsersInput{PageInput: PageInput{Keyset: check.Keyset{Page: ptr(10_000_001)}}}, func(in UsersInput) (UsersOutput, error) { return w.s.ListUsers(t.Context(), as(ann), in) })
	_, err = w.s.ListUsers(t.Context(), as(ann), UsersInput{PageInput: PageInput{Keyset: check.Keyset{Page: ptr(10_000_000), PerPage: ptr(200)}}})
	require.NoError(t, err, "the last page is empty")
}

// A password that is known to others ends with everything that was let in by it,
// and with nothing else: keys go on. So it is with an account that was switched off: what
// it had let in is not there again once it is enabled.
func TestANewPasswordEndsLoginsAndAgents(t *testing.T) {
	t.Parallel()
	for name, in := range map[string][2]UserInput{
		"password":          {{Name: ptr("Ben")}, {Password: ptr("battery staple")}},
		"off and on":        {{Enabled: ptr(false)}, {Enabled: ptr(true)}},
		"on and a password": {{Enabled: ptr(false)}, {Enabled: ptr(true), Password: ptr("battery staple")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endsLoginsAndAgents(t, in)
		})
	}
}

func endsLoginsAndAgents(t *testing.T, changes [2]UserInput) {
	w := newWorld(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	ended := now.Add(-time.Hour)
	token := func(n byte, a cloud.AccountID, id cloud.TokenID) cloud.Token {
		return cloud.Token{Hash: [32]byte{n}, AccountID: a, ID: id, CreatedAt: ended, ExpiresAt: now.Add(time.Hour)}
	}
	former := token(3, ben.ID, 0)
	former.RevokedAt = ended
	grant := func(id cloud.OAuthGrantID, a cloud.AccountID, expires time.Time) cloud.OAuthGrant {
		return cloud.OAuthGrant{ID: id, AccountID: a, ClientID: "c", ClientName: "Claudia", CreatedAt: ended, UsedAt: ended, ExpiresAt: expires, Code: cloud.OAuthCode{Hash: [32]byte{byte(id)}, ExpiresAt: ended}}
	}
	w.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{token(1, ben.ID, 0), token(2, ben.ID, 7), former, token(4, ann.ID, 0)}},
		OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{{ID: "c", CreatedAt: ended}},
			OAuthGrants: []cloud.OAuthGrant{grant(1, ben.ID, now.Add(time.Hour)), grant(2, ben.ID, ended), grant(3, ann.ID, now.Add(time.Hour))}}})
	for _, in := range changes {
		w.look(func(v cloud.View) {
			tok, err := v.Token([32]byte{1})
			require.NoError(t, err)
			require.True(t, auth.Valid(tok, time.Now()), "not before")
		})
		_, err := w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{ben.ID, in})
		require.NoError(t, err)
	}
	w.look(func(v cloud.View) {
		valid := map[byte]bool{}
		for n := byte(1); n <= 4; n++ {
			tok, err := v.Token([32]byte{n})
			require.NoError(t, err)
			valid[n] = auth.Valid(tok, time.Now())
			if n == 3 {
				require.Equal(t, ended, tok.RevokedAt, "it ended before")
			}
		}
		require.Equal(t, map[byte]bool{1: false, 2: true, 3: false, 4: true}, valid)
		for id, live := range map[cloud.OAuthGrantID]bool{1: false, 2: false, 3: true} {
			g, err := v.OAuthGrant(id)
			require.NoError(t, err)
			require.Equal(t, live, g.Live(time.Now()), id)
			require.Equal(t, id == 1, !g.EndedAt.IsZero(), id)
		}
	})
	require.Equal(t, changes[1].Password != nil, auth.CheckPassword(w.account(ben.ID).PasswordHash, "battery staple"))
	require.Equal(t, []string{"account:10 user_changed user", "account:10 user_changed user", "account:10 agent_grant_ended agent"}, w.actions(1))
}

func TestABusinessKeepsAnAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := func(by, a cloud.Account, in UserInput) error {
		_, err := w.s.ChangeUser(t.Context(), as(by), ChangeUserInput{a.ID, in})
		return err
	}
	off, employee := UserInput{Enabled: ptr(false)}, UserInput{AccountType: ptr(cloud.ClientEmployee)}
	for _, in := range []UserInput{off, employee} {
		w.unchanged(func() { require.Equal(t, cloud.E(cloud.Conflict, "LAST_ADMIN"), change(rae, rae, in)) })
	}
	require.NoError(t, change(rae, rae, UserInput{Name: ptr("Rae")}), "anything else can change")
	require.NoError(t, change(ann, ben, off), "another admin is left")
	w.unchanged(func() {
		require.Equal(t, "LAST_ADMIN", code(change(ann, ann, employee)), "one that is switched off does not count")
	})
	require.NoError(t, change(ann, ben, employee))
	require.NoError(t, change(ann, ben, UserInput{AccountType: ptr(cloud.ClientAdmin), Enabled: ptr(true)}))

	// Two admins who switch each other off at one moment: one of them stays.
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, pair := range [][2]cloud.Account{{ann, ben}, {ben, ann}} {
		wg.Go(func() { errs[i] = change(pair[0], pair[1], off) })
	}
	wg.Wait()
	require.Equal(t, 1, btoi(w.account(ann.ID).Enabled)+btoi(w.account(ben.ID).Enabled), "%v", errs)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestCustomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	in := CustomerInput{Name: ptr("Shop"), Email: ptr("Shop@S.example"), PriceHidden: &[]string{"ltl", "label", "ltl"}}
	made, err := w.s.AddCustomer(ctx, as(ann), in)
	require.NoError(t, err)
	require.Equal(t, []string{"label", "ltl"}, made.Customer.PriceHidden)
	require.Equal(t, "shop@s.example", made.Customer.Email)
	require.True(t, made.Customer.Enabled)
	stored := w.account(made.Customer.ID)
	require.Equal(t, cloud.Customer, stored.Type)
	require.Empty(t, stored.PasswordHash, "without a password there is no login")
	found, err := w.s.FindCustomer(ctx, as(ben), ByCustomer{made.Customer.ID})
	require.NoError(t, err)
	require.Equal(t, made, found)
	changed, err := w.s.ChangeCustomer(ctx, as(ann), ChangeCustomerInput{made.Customer.ID, CustomerInput{Enabled: ptr(false), PriceHidden: &[]string{}}})
	require.NoError(t, err)
	require.Equal(t, []any{"Shop", "shop@s.example", []string{}, false}, []any{changed.Customer.Name, changed.Customer.Email, changed.Customer.PriceHidden, changed.Customer.Enabled})
	list, err := w.s.ListCustomers(ctx, as(ann), CustomersInput{PageInput{Sort: "-name"}})
	require.NoError(t, err)
	require.Equal(t, 2, list.Total)
	require.Equal(t, []string{"cus", "Shop"}, []string{list.Customers[0].Name, list.Customers[1].Name})
	list, err = w.s.ListCustomers(ctx, as(rae), CustomersInput{})
	require.NoError(t, err)
	require.Empty(t, list.Customers)
	require.Equal(t, []string{"account:10 customer_made customer", "account:10 customer_changed customer"}, w.actions(1))

	add := func(in CustomerInput) (CustomerOutput, error) { return w.s.AddCustomer(ctx, as(ann), in) }
	refused(w, "price_hidden_families.0", CustomerInput{Name: ptr("x"), Email: ptr("x@s.example"), PriceHidden: &[]string{"all"}}, add)
	refused(w, "email", CustomerInput{Name: ptr("x"), Email: ptr("shop@s.example")}, add)
	refused(w, "name", CustomerInput{Email: ptr("x@s.example")}, add)
	refused(w, "email", ChangeCustomerInput{cus.ID, CustomerInput{Email: ptr("")}}, func(in ChangeCustomerInput) (CustomerOutput, error) { return w.s.ChangeCustomer(ctx, as(ann), in) })
}

func TestPricesAreHiddenFromCarriers(t *testing.T) {
	t.Parallel()
	for kind, hidden := range map[cloud.AccountType]bool{cloud.Broker: true, cloud.DriverAccount: true, cloud.ClientAdmin: false, cloud.ClientEmployee: false, cloud.Customer: false} {
		require.Equal(t, hidden, cloud.Caller{Account: cloud.Account{Type: kind}}.PricesHidden("label"), kind)
	}
}

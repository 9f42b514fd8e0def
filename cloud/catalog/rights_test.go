package catalog

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// Rights that end after a call was let in and before a transaction of it: what was
// written before stays, nothing is written after.
func TestRightsThatEndInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := storetest.OpenSQLite(t)
		rightsEnd(t, db, db)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := storetest.MigratedPostgresURL(t)
		rightsEnd(t, storetest.Open(t, store.Config{URL: url, Instance: "one", Box: storetest.Box(t)}), storetest.Open(t, store.Config{URL: url, Instance: "two", Box: storetest.Box(t)}))
	})
}

// rightsEnd has calls at node one while node two changes their caller.
func rightsEnd(t *testing.T, one, two *store.DB) {
	ctx := t.Context()
	save := func(db *store.DB, ctx context.Context, ch cloud.AccountChanges) error {
		return db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return &cloud.Changes{AccountChanges: ch}, nil })
	}
	b := cloud.Business{ID: 1, Code: "acme", Name: "0", Timezone: "UTC"}
	employee := cloud.Account{ID: 11, BusinessID: 1, Type: cloud.ClientEmployee, Email: "emp@a.example", Enabled: true, Permissions: []string{"orders:read", "orders:write"}, CreatedAt: time.Now().UTC()}
	admin := cloud.Account{ID: 12, BusinessID: 1, Type: cloud.ClientAdmin, Email: "adm@a.example", Enabled: true, CreatedAt: time.Now().UTC()}
	token := func(a cloud.Account) cloud.Token {
		return cloud.Token{Hash: auth.Hash(a.Email), AccountID: a.ID, CreatedAt: time.Now().UTC(), ExpiresAt: time.Now().UTC().Add(time.Hour)}
	}
	require.NoError(t, save(one, ctx, cloud.AccountChanges{Businesses: []cloud.Business{b}, Accounts: []cloud.Account{employee, admin}, Tokens: []cloud.Token{token(employee), token(admin)}}))
	p := NewPipeline(Config{Calls: one, FindToken: func(ctx context.Context, hash [32]byte) (auth.Session, error) {
		l, err := one.FindToken(ctx, hash)
		return auth.Session{Token: l.Token, Account: l.Account, State: l.State, Pass: l.Pass}, err
	}})
	var between func()
	o := row(Operation{Types: []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}, Scopes: []string{"orders:write"}, Risk: RiskHigh})
	o.run = func(ctx context.Context, _ cloud.Caller, _ any) (any, error) {
		for _, name := range []string{"1", "2"} { // two transactions
			b.Name = name
			if err := save(one, ctx, cloud.AccountChanges{Businesses: []cloud.Business{b}}); err != nil {
				return nil, err
			}
			between()
		}
		return result{}, nil
	}
	with := func(a cloud.Account, change func(*cloud.Account)) cloud.Account { change(&a); return a }
	disable := func(a *cloud.Account) { a.Enabled = false }
	for name, x := range map[string]struct {
		who    cloud.Account
		change func(*cloud.Account)
		want   string
	}{
		"a permission taken away":       {employee, func(a *cloud.Account) { a.Permissions = []string{"orders:read"} }, "FORBIDDEN"},
		"all permissions taken away":    {employee, func(a *cloud.Account) { a.Permissions = nil }, "FORBIDDEN"},
		"another permission taken away": {employee, func(a *cloud.Account) { a.Permissions = []string{"orders:write"} }, ""},
		"an employee disabled":          {employee, disable, "ACCOUNT_DISABLED"},
		"an administrator disabled":     {admin, disable, "ACCOUNT_DISABLED"},
		"a name changed":                {admin, func(a *cloud.Account) { a.Name = "Ada" }, ""},
	} {
		for at, stays := range []string{"0", "1"} { // before the first transaction, and between two
			b.Name = "0"
			require.NoError(t, save(two, ctx, cloud.AccountChanges{Businesses: []cloud.Business{b}, Accounts: []cloud.Account{x.who}}))
			in, c, _, err := p.Admit(ctx, &o, Who{Authorization: "Bearer " + x.who.Email, Surface: "rest"})
			require.NoError(t, err, name)
			end := func() {
				require.NoError(t, save(two, ctx, cloud.AccountChanges{Accounts: []cloud.Account{with(x.who, x.change)}}))
			}
			between = func() {}
			if at == 0 {
				end()
			} else {
				between = end
			}
			_, err = p.Run(in, &o, c, Key{}, func(any) error { return nil })
			require.Equal(t, x.want, code(err), name)
			if x.want == "" {
				stays = "2"
			}
			require.NoError(t, one.Look(ctx, func(v cloud.View) error {
				now, err := v.Business(1)
				require.Equal(t, stays, now.Name, "%s, %d", name, at)
				if x.want == "" || err != nil {
					return err
				}
				lines, _, err := v.Audits(cloud.AuditFilter{BusinessID: 1, Page: cloud.Page{Sort: "at", Down: true, Limit: 1}})
				require.Contains(t, lines[0].Detail, x.want, "the refusal is in the audit trail")
				return err
			}))
		}
	}
}

// A business that is suspended, a pass that ends and a removal that begins in the middle
// of a call: nothing is written after. A suspension waits for a decision that has begun.
func TestABusinessSuspendedInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := storetest.OpenSQLite(t)
		suspendedMeanwhile(t, db, db)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := storetest.MigratedPostgresURL(t)
		suspendedMeanwhile(t, storetest.Open(t, store.Config{URL: url, Instance: "one", Box: storetest.Box(t)}), storetest.Open(t, store.Config{URL: url, Instance: "two", Box: storetest.Box(t)}))
	})
}

func suspendedMeanwhile(t *testing.T, one, two *store.DB) {
	ctx := t.Context()
	save := func(db *store.DB, ctx context.Context, ch cloud.Changes) error {
		return db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil })
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	operator := cloud.Account{ID: 13, Type: cloud.PlatformAdmin, Email: "op@p.example", Enabled: true, CreatedAt: now}
	admin := cloud.Account{ID: 12, BusinessID: 1, Type: cloud.ClientAdmin, Email: "adm@a.example", Enabled: true, CreatedAt: now}
	pass := cloud.PlatformPass{ID: 5, BusinessID: 1, AccountID: 13, Operator: "Op", Reason: "x", TokenHash: auth.Hash("pass"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	require.NoError(t, save(one, ctx, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "0", Timezone: "UTC"}}, Accounts: []cloud.Account{admin, operator},
		Tokens: []cloud.Token{{Hash: auth.Hash("admin"), AccountID: 12, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, {Hash: pass.TokenHash, AccountID: 13, CreatedAt: now, ExpiresAt: now.Add(time.Hour), Kind: cloud.PassToken}}},
		RowChanges: cloud.RowChanges{Rows: []cloud.Row{pass}}}))
	p := NewPipeline(Config{Calls: one, FindToken: func(ctx context.Context, hash [32]byte) (auth.Session, error) {
		l, err := one.FindToken(ctx, hash)
		return auth.Session{Token: l.Token, Account: l.Account, State: l.State, Pass: l.Pass}, err
	}})
	o := row(Operation{Types: []cloud.AccountType{cloud.ClientAdmin}, Risk: RiskHigh})
	o.run = func(ctx context.Context, _ cloud.Caller, _ any) (any, error) {
		return result{}, save(one, ctx, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "written", Timezone: "UTC"}}}})
	}
	suspended := cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1, SuspendedAt: now, Reason: "Unpaid"}}}
	ended := pass
	ended.EndedAt, ended.EndedBy = now, 12
	for _, x := range []struct {
		name, who string
		change    cloud.Changes
		want      string
	}{
		{"nothing", "admin", cloud.Changes{}, ""},
		{"a limit", "admin", cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1, Limits: cloud.BusinessLimits{Cabinets: 3}}}}}, ""},
		{"a suspension", "admin", cloud.Changes{PlatformChanges: suspended}, "BUSINESS_SUSPENDED"},
		{"a suspension, by a pass", "pass", cloud.Changes{PlatformChanges: suspended}, ""},
		{"the end of the pass", "pass", cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{ended}}}, "TOKEN_INVALID"},
		{"a removal", "pass", cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessJobs: []cloud.BusinessJob{{ID: 1, BusinessID: 1, Kind: cloud.RemovalJob, CreatedAt: now}}}}, "BUSINESS_REMOVAL_RUNNING"},
	} {
		require.NoError(t, save(two, ctx, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "0", Timezone: "UTC"}}},
			PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1}}}, RowChanges: cloud.RowChanges{Rows: []cloud.Row{pass}}}))
		in, c, _, err := p.Admit(ctx, &o, Who{Authorization: "Bearer " + x.who, Surface: "rest"})
		require.NoError(t, err, x.name)
		require.NoError(t, save(two, ctx, x.change))
		_, err = p.Run(in, &o, c, Key{}, func(any) error { return nil })
		require.Equal(t, x.want, code(err), x.name)
		require.NoError(t, one.Look(ctx, func(v cloud.View) error {
			b, err := v.Business(1)
			require.Equal(t, x.want == "", b.Name == "written", x.name)
			return err
		}))
	}

	// A suspension that comes while a decision of the business runs waits for it.
	require.NoError(t, save(two, ctx, cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1}}}}))
	var over atomic.Bool
	suspend := make(chan error, 1)
	o.run = func(ctx context.Context, _ cloud.Caller, _ any) (any, error) {
		return result{}, one.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			go func() {
				err := two.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
					_, err := v.BusinessState(1)
					return &cloud.Changes{PlatformChanges: suspended}, err
				})
				over.Store(true)
				suspend <- err
			}()
			time.Sleep(100 * time.Millisecond)
			require.False(t, over.Load())
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "in time", Timezone: "UTC"}}}}, nil
		})
	}
	in, c, _, err := p.Admit(ctx, &o, Who{Authorization: "Bearer admin", Surface: "rest"})
	require.NoError(t, err)
	_, err = p.Run(in, &o, c, Key{}, func(any) error { return nil })
	require.NoError(t, err)
	require.NoError(t, <-suspend)
}

package store

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// What a token stands for is what is stored, after each write of each table that says so, also beside
// many that read it.
func TestLoginsFollowEachWrite(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	write := func(ch cloud.AccountChanges) {
		t.Helper()
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return &cloud.Changes{AccountChanges: ch}, nil }))
	}
	hash := sha256.Sum256([]byte("secret"))
	p := cloud.Provider{ID: 4, BusinessID: 1, Code: "ups"}
	a := cloud.Account{ID: 7, BusinessID: 1, Type: cloud.ProviderType, ProviderID: 4, Enabled: true, Email: "a@example.test"}
	token := cloud.Token{Hash: hash, AccountID: 7, CreatedAt: time.Now(), Name: "first"}
	write(cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "one"}}, Providers: []cloud.Provider{p}, Accounts: []cloud.Account{a}, Tokens: []cloud.Token{token}})

	stop, done := make(chan struct{}), sync.WaitGroup{}
	for range 4 { // that keep what they read
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = db.FindToken(t.Context(), hash)
				}
			}
		})
	}
	defer func() { close(stop); done.Wait() }()
	same := func() Login {
		t.Helper()
		kept, err := db.FindToken(t.Context(), hash)
		read, again := db.findLogin(t.Context(), hash)
		require.Equal(t, again, err)
		require.Equal(t, read, kept)
		return kept
	}
	same()
	for i := range 40 {
		a.Name = fmt.Sprint("n", i)
		write(cloud.AccountChanges{Accounts: []cloud.Account{a}})
		require.Equal(t, a.Name, same().Account.Name)
		p.Name = fmt.Sprint("p", i)
		write(cloud.AccountChanges{Providers: []cloud.Provider{p}})
		require.Equal(t, p.Name, same().Provider.Name)
		token.Name = fmt.Sprint("t", i)
		write(cloud.AccountChanges{Tokens: []cloud.Token{token}})
		same()
	}
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 1, SuspendedAt: time.Now(), Reason: "unpaid"}}}}, nil
	}))
	require.Equal(t, "unpaid", same().State.Reason)
	token.RevokedAt = time.Now()
	write(cloud.AccountChanges{Tokens: []cloud.Token{token}})
	require.False(t, same().Token.RevokedAt.IsZero())
}

// What another program writes beside the node, as the one that ends a person's sessions, counts within a second.
func TestLoginsFollowOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		node, other := openTest(t, Config{Dir: dir}), openTest(t, Config{Dir: dir})
		hash := sha256.Sum256([]byte("secret"))
		token := cloud.Token{Hash: hash, AccountID: 7, CreatedAt: time.Now(), Name: "first"}
		write := func(db *DB, ch cloud.AccountChanges) {
			require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return &cloud.Changes{AccountChanges: ch}, nil }))
		}
		write(node, cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "one"}}, Accounts: []cloud.Account{{ID: 7, BusinessID: 1, Enabled: true, Email: "a@example.test"}}, Tokens: []cloud.Token{token}})
		ended := func(after time.Duration) bool {
			time.Sleep(after)
			l, err := node.FindToken(t.Context(), hash)
			require.NoError(t, err)
			return !l.Token.RevokedAt.IsZero()
		}
		require.False(t, ended(0))
		for range 5 { // a caller who reads all the time is no reason to keep it longer
			require.False(t, ended(300*time.Millisecond))
		}
		token.RevokedAt = time.Now()
		write(other, cloud.AccountChanges{Tokens: []cloud.Token{token}})
		for range 3 {
			ended(300 * time.Millisecond)
		}
		require.True(t, ended(100*time.Millisecond))
		for i := range 5 { // and in a decision at once
			name := fmt.Sprint("n", i)
			write(other, cloud.AccountChanges{Accounts: []cloud.Account{{ID: 7, BusinessID: 1, Enabled: true, Email: "a@example.test", Name: name}}})
			require.NoError(t, node.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				a, err := v.Account(7)
				require.Equal(t, name, a.Name)
				return nil, err
			}))
		}
	})
}

// Each decision of a group sees the account and the suspension as the decisions before it left them, those that fail
// after they wrote left out.
func TestDecisionsOfAGroupSeeEachOthersRights(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	a := cloud.Account{ID: 7, BusinessID: 1, Enabled: true, Email: "a@example.test", Name: "start"}
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "one"}}, Accounts: []cloud.Account{a}}}, nil
	}))
	e := db.engine.(*lite)
	for _, spoilt := range []bool{false, true} {
		start, held := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		send := func(fn func(cloud.View) (*cloud.Changes, error), fails bool) {
			before := len(e.queue)
			all.Go(func() {
				err := db.Decide(t.Context(), 0, fn)
				require.Equal(t, fails, err != nil, "%v", err)
			})
			require.Eventually(t, func() bool { return len(e.queue) > before }, 10*time.Second, time.Millisecond)
		}
		all.Go(func() {
			require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { close(held); <-start; return nil, nil }))
		})
		<-held
		var seen []string
		for i := range 30 {
			name := fmt.Sprint(spoilt, i)
			write := func(name string, more ...cloud.Account) func(cloud.View) (*cloud.Changes, error) {
				return func(v cloud.View) (*cloud.Changes, error) {
					_, err := v.Account(7)
					b := a
					b.Name = name
					ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: append([]cloud.Account{b}, more...)}}
					ch.BusinessStates = []cloud.BusinessState{{BusinessID: 1, SuspendedAt: time.Now(), Reason: name}}
					return ch, err
				}
			}
			send(write(name), false)
			if spoilt && i%3 == 0 { // a second account of the same address
				send(write("no", cloud.Account{ID: cloud.AccountID(100 + i), BusinessID: 1, Email: a.Email}), true)
			}
			for range 2 {
				send(func(v cloud.View) (*cloud.Changes, error) {
					got, err := v.Account(7)
					if err != nil {
						return nil, err
					}
					state, err := v.Suspension(1)
					if got.Name != name || state.Reason != name {
						seen = append(seen, fmt.Sprint("not ", name, " but ", got.Name, " and ", state.Reason))
					}
					return nil, err
				}, false)
			}
		}
		close(start)
		all.Wait()
		require.Empty(t, seen)
	}
}

package setup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/wire"
)

var ada = setup.Input{Business: "Harbour Lockers", Timezone: "America/Toronto", Country: "CA", Name: "Ada", Email: "Ada@Harbour.example", Password: "a long enough password"}

func service(db *store.DB) *setup.Service {
	return setup.New(setup.Config{Store: db, Key: []byte("key of the deployment"), KeysDigest: []byte(strings.Repeat("k", 32)), NewToken: device.NewToken})
}

// engines runs a test with one node on SQLite and with two on PostgreSQL.
func engines(t *testing.T, test func(t *testing.T, db *store.DB, nodes []*setup.Service)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := storetest.OpenSQLite(t)
		test(t, db, []*setup.Service{service(db), service(db)})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := storetest.MigratedPostgresURL(t)
		one := storetest.Open(t, store.Config{URL: url, Instance: "one", Box: storetest.Box(t)})
		two := storetest.Open(t, store.Config{URL: url, Instance: "two", Box: storetest.Box(t)})
		test(t, one, []*setup.Service{service(one), service(two)})
	})
}

func administrators(t *testing.T, db *store.DB) (out []cloud.Account) {
	t.Helper()
	require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
		for id := cloud.BusinessID(1); id < 40; id++ {
			list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: id, Types: []cloud.AccountType{cloud.ClientAdmin}, Page: cloud.Page{Sort: "id", Limit: 100}})
			if err != nil {
				return err
			}
			out = append(out, list...)
		}
		return nil
	}))
	return out
}

// Every node shows the same one-time value; what was guessed, cut or is of
// another deployment's keys is refused; it is dead once it was used.
func TestTheOneTimeAddress(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		ctx := t.Context()
		require.ErrorIs(t, nodes[0].CheckToken(ctx, ""), setup.ErrToken, "none was shown yet")
		var wg sync.WaitGroup
		tokens := make([]string, 8)
		for i := range tokens {
			wg.Go(func() {
				var err error
				tokens[i], _, err = nodes[i%2].IssueToken(ctx)
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Len(t, slices.Compact(tokens), 1, "one row for all nodes")
		token := tokens[0]
		require.Len(t, token, 22)
		foreign := setup.New(setup.Config{Store: db, Key: []byte("other keys")})
		require.ErrorIs(t, foreign.CheckToken(ctx, token), setup.ErrToken, "the database alone gives nothing")
		for _, bad := range []string{"", token[:21], token + "A", strings.ToLower(token) + "", strings.Repeat("A", 22)} {
			if bad == token {
				continue
			}
			require.ErrorIs(t, nodes[1].CheckToken(ctx, bad), setup.ErrToken)
			_, err := nodes[1].Begin(ctx, bad, ada, time.Hour)
			require.ErrorIs(t, err, setup.ErrToken)
		}
		made, err := nodes[1].Begin(ctx, token, ada, time.Hour)
		require.NoError(t, err)
		require.Equal(t, []any{"harbour-lockers", "ada@harbour.example", cloud.ClientAdmin}, []any{made.Business.Code, made.Account.Email, made.Account.Type})
		login, err := auth.New(db).Login(ctx, "ada@harbour.example", ada.Password)
		require.NoError(t, err)
		require.Equal(t, made.Account.ID, login.Account.ID)
		l, err := db.FindToken(ctx, auth.Hash(made.Token))
		require.NoError(t, err)
		require.True(t, l.Token.Login())
		for _, n := range nodes {
			require.ErrorIs(t, n.CheckToken(ctx, token), setup.ErrDone)
			_, err = n.Begin(ctx, token, ada, time.Hour)
			require.ErrorIs(t, err, setup.ErrDone)
			_, _, err = n.IssueToken(ctx)
			require.ErrorIs(t, err, setup.ErrDone)
		}
	})
}

// Two browsers at two nodes, an unattended start and the command line at once: one
// of those that make the first administrator does.
func TestOneOfManyMakesTheFirstAdministrator(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		token, _, err := nodes[0].IssueToken(t.Context())
		require.NoError(t, err)
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for i := range 6 {
			in := ada
			in.Email, in.Code = string(rune('a'+i))+"@harbour.example", "harbour-"+string(rune('a'+i))
			wg.Go(func() {
				var err error
				made := true
				if i%3 == 2 {
					made, err = nodes[i%2].Ensure(context.Background(), in)
				} else {
					_, err = nodes[i%2].Begin(context.Background(), token, in, time.Hour)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && made:
					won++
				case err != nil && !errors.Is(err, setup.ErrDone) && !errors.Is(err, setup.ErrToken):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, won)
		require.Len(t, administrators(t, db), 1)
	})
}

// The address ends after an hour; a start after that shows a new one.
func TestTheAddressEndsAfterAnHour(t *testing.T) {
	db := storetest.OpenSQLite(t)
	s := service(db)
	first, until, err := s.IssueToken(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(setup.AddressLife), until, time.Minute)
	require.NoError(t, db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		row, err := v.Setup()
		row.ExpiresAt = time.Now().Add(-time.Second)
		return &cloud.Changes{SetupChanges: cloud.SetupChanges{Setup: &row}}, err
	}))
	require.ErrorIs(t, s.CheckToken(t.Context(), first), setup.ErrToken)
	_, err = s.Begin(t.Context(), first, ada, time.Hour)
	require.ErrorIs(t, err, setup.ErrToken)
	second, _, err := s.IssueToken(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.NoError(t, s.CheckToken(t.Context(), second))
	require.ErrorIs(t, s.CheckToken(t.Context(), first), setup.ErrToken)
}

// Who has the keys is never locked out, in whatever order things were started.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		ctx, s := t.Context(), nodes[0]
		operator := setup.Input{Email: "ops@platform.example", Password: "a long enough password"}
		made, err := s.Operator(ctx, operator)
		require.NoError(t, err)
		require.Equal(t, []any{cloud.PlatformAdmin, cloud.BusinessID(0), "ops@platform.example"}, []any{made.Account.Type, made.Account.BusinessID, made.Account.Name})
		_, err = auth.New(db).Login(ctx, operator.Email, operator.Password)
		require.NoError(t, err)
		token, _, err := s.IssueToken(ctx)
		require.NoError(t, err, "an operator is no administrator: the set-up page still makes a business")

		_, err = s.Administrator(ctx, setup.Input{Email: "x@y.example", Password: "a long enough password"})
		require.ErrorIs(t, err, setup.ErrWhich)
		made, err = s.Administrator(ctx, ada)
		require.NoError(t, err)
		require.False(t, made.Replaced)
		require.ErrorIs(t, s.CheckToken(ctx, token), setup.ErrDone)

		// A second administrator, a second business, and a lost password.
		_, err = s.Administrator(ctx, setup.Input{Code: "harbour-lockers", Email: "bo@harbour.example", Password: "a long enough password"})
		require.NoError(t, err)
		other := ada
		other.Business = "Pier Lockers"
		_, err = s.Administrator(ctx, other)
		require.NoError(t, err)
		login, err := auth.New(db).Login(ctx, "bo@harbour.example", "a long enough password")
		require.NoError(t, err)
		made, err = s.Administrator(ctx, setup.Input{Email: "bo@harbour.example", Password: "another long password"})
		require.NoError(t, err)
		require.True(t, made.Replaced)
		_, err = auth.New(db).Login(ctx, "bo@harbour.example", "a long enough password")
		require.Error(t, err)
		_, err = auth.New(db).Login(ctx, "bo@harbour.example", "another long password")
		require.NoError(t, err)
		l, err := db.FindToken(ctx, auth.Hash(login.Token))
		require.NoError(t, err)
		require.False(t, l.Token.RevokedAt.IsZero(), "logins with the former password have ended")
		_, err = s.Administrator(ctx, setup.Input{Email: "ada@harbour.example", Password: "another long password"})
		require.ErrorIs(t, err, setup.ErrWhich, "an administrator of two businesses")
		require.Len(t, administrators(t, db), 3)

		rows, err := db.ListAudits(ctx, made.Business.ID, 0, 50)
		require.NoError(t, err)
		require.NotEmpty(t, rows)
		for _, r := range rows {
			require.NotContains(t, r.Detail, "password ", "%v", r)
		}
	})
}

// What is wrong with an input is said, field by field, and nothing is made.
func TestInputsThatCannotBe(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	s := service(db)
	token, _, err := s.IssueToken(t.Context())
	require.NoError(t, err)
	for field, change := range map[string]func(*setup.Input){
		"business":      func(in *setup.Input) { in.Business = " " },
		"business_code": func(in *setup.Input) { in.Code = "Über" },
		"timezone":      func(in *setup.Input) { in.Timezone = "Mars/Base" },
		"country":       func(in *setup.Input) { in.Country = "Canada" },
		"name":          func(in *setup.Input) { in.Name = strings.Repeat("x", 121) },
		"email":         func(in *setup.Input) { in.Email = "ada" },
		"password":      func(in *setup.Input) { in.Password = "short" },
	} {
		in := ada
		change(&in)
		_, err := s.Begin(t.Context(), token, in, time.Hour)
		var shown *cloud.Error
		require.ErrorAs(t, err, &shown, field)
		require.Contains(t, shown.Fields, field)
		require.Len(t, shown.Fields, 1, "%v", shown.Fields)
	}
	require.Empty(t, administrators(t, db))
	require.NoError(t, s.CheckToken(t.Context(), token), "a mistake does not use the address up")
}

// A cabinet is made with a token that is good for one device, once; a lost token is
// of no use after the device has enrolled with another.
func TestCabinets(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		ctx, s := t.Context(), nodes[0]
		made, err := s.Administrator(ctx, ada)
		require.NoError(t, err)
		by := cloud.Caller{Account: made.Account, BaseURL: "https://x.example"}
		e, err := s.AddCabinet(ctx, by, setup.CabinetInput{Name: "Pier 7", Code: "PIER-7", Layout: "medium"})
		require.NoError(t, err)
		cells, err := db.ListCompartments(ctx, e.Device.ID)
		require.NoError(t, err)
		require.Len(t, cells, 12)
		require.Equal(t, "smart_locker", e.Device.Type)
		_, err = s.AddCabinet(ctx, by, setup.CabinetInput{Name: "Again", Code: "PIER-7", Layout: "small"})
		var shown *cloud.Error
		require.ErrorAs(t, err, &shown)
		require.Contains(t, shown.Fields, "device_code")
		for field, in := range map[string]setup.CabinetInput{"device_name": {Code: "A", Layout: "small"}, "device_code": {Name: "A", Code: "ä b", Layout: "small"}, "layout": {Name: "A", Code: "A", Layout: "huge"}} {
			_, err = s.AddCabinet(ctx, by, in)
			require.ErrorAs(t, err, &shown)
			require.Contains(t, shown.Fields, field)
		}
		waiting, all, err := s.Waiting(ctx, made.Business.ID)
		require.NoError(t, err)
		require.Len(t, waiting, 1)
		require.Equal(t, 1, all)

		other := ada
		other.Business, other.Email = "Rival", "eve@rival.example"
		rival, err := s.Administrator(ctx, other)
		require.NoError(t, err)
		_, err = s.RenewToken(ctx, cloud.Caller{Account: rival.Account}, setup.DeviceInput{ID: e.Device.ID})
		require.ErrorAs(t, err, &shown)
		require.Equal(t, "DEVICE_NOT_FOUND", shown.Code, "of another business")
		again, err := s.RenewToken(ctx, by, setup.DeviceInput{ID: e.Device.ID})
		require.NoError(t, err)
		require.NotEqual(t, e.Enrolment.Token, again.Enrolment.Token)
		require.Equal(t, "https://x.example PIER-7 "+again.Enrolment.Token, again.Enrolment.Line)
	})
}

// A warehouse post is made with a name and a place, and without doors: a layout for it is
// refused in words of a post, and its configuration has none. It enrols by the same line.
func TestAWarehousePostIsMadeWithoutDoors(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		ctx, s := t.Context(), nodes[0]
		made, err := s.Administrator(ctx, ada)
		require.NoError(t, err)
		by := cloud.Caller{Account: made.Account, BaseURL: "https://x.example"}
		e, err := s.AddCabinet(ctx, by, setup.CabinetInput{Name: "Dock 3", Code: "DOCK-3", Type: cloud.TypeScanPost, Address: "7 Quay Street"})
		require.NoError(t, err)
		require.Equal(t, []any{cloud.TypeScanPost, 0, "mqtt"}, []any{e.Device.Type, e.Device.Compartments, e.Device.Protocol})
		require.Equal(t, "https://x.example DOCK-3 "+e.Enrolment.Token, e.Enrolment.Line)
		cells, err := db.ListCompartments(ctx, e.Device.ID)
		require.NoError(t, err)
		require.Empty(t, cells)
		d, err := db.FindDeviceByCode(ctx, "DOCK-3")
		require.NoError(t, err)
		var conf wire.Config
		require.NoError(t, wire.Decode(d.Config, &conf))
		require.NoError(t, conf.CheckPost())
		require.True(t, d.IsPost())
		require.False(t, d.TakesDeliveries())
		require.NoError(t, db.Look(ctx, func(v cloud.View) error {
			shelves, err := v.Shelves(d.ID)
			require.Empty(t, shelves)
			return err
		}))
		again, err := s.RenewToken(ctx, by, setup.DeviceInput{ID: e.Device.ID})
		require.NoError(t, err)
		require.Equal(t, cloud.TypeScanPost, again.Device.Type)
		for field, in := range map[string]setup.CabinetInput{"layout": {Layout: "small"}, "protocol": {Protocol: cloud.ProtocolHTTP}} {
			in.Name, in.Code, in.Type = "Dock 4", "DOCK-4", cloud.TypeScanPost
			_, err = s.AddCabinet(ctx, by, in)
			var shown *cloud.Error
			require.ErrorAs(t, err, &shown, field)
			require.Contains(t, shown.Fields[field][0], "A warehouse post ", field)
			require.Len(t, shown.Fields, 1)
		}
		_, err = s.AddCabinet(ctx, by, setup.CabinetInput{Name: "Pier", Code: "PIER-8"})
		var shown *cloud.Error
		require.ErrorAs(t, err, &shown)
		require.Contains(t, shown.Fields, "layout", "a cabinet needs one")
	})
}

// A database that belongs to one keys file is not opened with another, whose node
// could read none of its secrets.
func TestADatabaseBelongsToItsKeys(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, db *store.DB, nodes []*setup.Service) {
		for round := range 2 {
			for i, n := range nodes {
				first, err := n.Claim(t.Context())
				require.NoError(t, err)
				require.Equal(t, round == 0 && i == 0, first, "it belonged to none before")
			}
		}
		other := setup.New(setup.Config{Store: db, KeysDigest: []byte(strings.Repeat("o", 32))})
		_, err := other.Claim(t.Context())
		require.ErrorIs(t, err, setup.ErrKeys)
		_, _, err = nodes[0].IssueToken(t.Context())
		require.NoError(t, err)
		_, err = nodes[0].Administrator(t.Context(), ada)
		require.NoError(t, err)
		_, err = other.Claim(t.Context())
		require.ErrorIs(t, err, setup.ErrKeys, "what else is written to the row keeps the claim")
	})
}

package account

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

func dan() RegisterInput {
	return RegisterInput{ClientCode: "acme", Name: "Dan", Phone: "+1 416 555 0100", Email: "Dan@A.example", Password: "correct horse", VehicleType: "van", Licence: "D123"}
}

func (w *world) driver(id cloud.AccountID) (d cloud.Driver) {
	w.t.Helper()
	w.look(func(v cloud.View) {
		var err error
		d, err = v.Driver(1, id)
		require.NoError(w.t, err)
	})
	return d
}

func TestADriverRegistersAndIsReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, err := w.s.Register(t.Context(), dan())
	require.NoError(t, err)
	require.Equal(t, RegisterOutput{true, out.DriverID, cloud.DriverPending}, out)
	a := w.account(out.DriverID)
	require.Equal(t, []any{cloud.BusinessID(1), cloud.DriverAccount, "dan@a.example", "Dan", false}, []any{a.BusinessID, a.Type, a.Email, a.Name, a.Enabled}, "nothing may be done yet")
	require.True(t, auth.CheckPassword(a.PasswordHash, "correct horse"))
	d := w.driver(a.ID)
	require.Equal(t, []any{"+1 416 555 0100", "D123", "van", true}, []any{d.Phone, d.Licence, d.Vehicle.Type, d.Pending})
	require.Equal(t, []string{"anonymous driver_registered account"}, w.actions(1))

	change := func(in UserInput) {
		_, err := w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{a.ID, in})
		require.NoError(t, err)
	}
	change(UserInput{Name: ptr("Daniel")})
	require.True(t, w.driver(a.ID).Pending, "a name is no review")
	change(UserInput{Enabled: ptr(true)})
	d = w.driver(a.ID)
	require.False(t, d.Pending)
	require.Equal(t, "D123", d.Licence, "the rest stays")
	change(UserInput{Enabled: ptr(false)})
	change(UserInput{Enabled: ptr(true)})
	require.False(t, w.driver(a.ID).Pending, "one review is enough")
	made, err := w.s.AddUser(t.Context(), as(ann), UserInput{AccountType: ptr(cloud.DriverAccount), Name: ptr("Dot"), Email: ptr("dot@a.example"), Enabled: ptr(false)})
	require.NoError(t, err)
	_, err = w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{made.User.ID, UserInput{Enabled: ptr(true)}})
	require.NoError(t, err, "a driver without a registration is switched on, too")
}

// The answer does not tell which emails are known.
func TestARegistrationWithAKnownEmailMakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := dan()
	in.Email = "ann@a.example"
	out, err := w.s.Register(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, []any{true, cloud.DriverPending}, []any{out.Result, out.Status})
	require.Positive(t, out.DriverID)
	w.look(func(v cloud.View) {
		_, err := v.Account(out.DriverID)
		require.ErrorIs(t, err, cloud.ErrNotFound)
		_, err = v.Driver(1, out.DriverID)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
	require.Equal(t, cloud.ClientAdmin, w.account(ann.ID).Type)
	require.Equal(t, []string{"anonymous driver_registration_email_in_use account"}, w.actions(1))
	in.ClientCode = "rival"
	out, err = w.s.Register(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, cloud.BusinessID(2), w.account(out.DriverID).BusinessID, "an email may have an account of each business")
}

// Any email may be used to register. Until the business has reviewed the registration,
// it keeps no other account of that email out.
func TestAnUnreviewedRegistrationGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	register := func(email string) cloud.AccountID {
		in := dan()
		in.Email = email
		out, err := w.s.Register(t.Context(), in)
		require.NoError(t, err)
		return out.DriverID
	}
	first, second, third := register("new@a.example"), register("shop@a.example"), register("old@a.example")
	_, err := w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{third, UserInput{Enabled: ptr(true)}})
	require.NoError(t, err)
	_, err = w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{third, UserInput{Enabled: ptr(false)}})
	require.NoError(t, err)

	made, err := w.s.AddUser(t.Context(), as(ann), UserInput{AccountType: ptr(cloud.ClientAdmin), Name: ptr("New"), Email: ptr("New@a.example")})
	require.NoError(t, err)
	require.Equal(t, "new@a.example", w.account(made.User.ID).Email)
	require.Empty(t, w.account(first).Email)
	require.True(t, w.driver(first).Pending)
	shop, err := w.s.AddCustomer(t.Context(), as(ann), CustomerInput{Name: ptr("Shop"), Email: ptr("shop@a.example")})
	require.NoError(t, err)
	require.Equal(t, "shop@a.example", w.account(shop.Customer.ID).Email)
	require.Empty(t, w.account(second).Email)
	_, err = w.s.AddUser(t.Context(), as(ann), UserInput{AccountType: ptr(cloud.ClientAdmin), Name: ptr("Old"), Email: ptr("old@a.example")})
	require.ErrorContains(t, err, "VALIDATION_FAILED", "who was reviewed keeps the email, switched off or not")
	_, err = w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{first, UserInput{Email: ptr("other@a.example")}})
	require.NoError(t, err, "a registration can get another email")
	require.Contains(t, w.actions(1), "account:10 driver_registration_lost_email account")
}

func TestBadRegistrationsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	register := func(in RegisterInput) (RegisterOutput, error) { return w.s.Register(t.Context(), in) }
	for _, c := range []struct {
		member string
		change func(*RegisterInput)
	}{
		{"client_code", func(in *RegisterInput) { in.ClientCode = "" }},
		{"client_code", func(in *RegisterInput) { in.ClientCode = strings.Repeat("x", 65) }},
		{"name", func(in *RegisterInput) { in.Name = "" }},
		{"phone", func(in *RegisterInput) { in.Phone = "" }},
		{"phone", func(in *RegisterInput) { in.Phone = strings.Repeat("1", 33) }},
		{"email", func(in *RegisterInput) { in.Email = "dan" }},
		{"password", func(in *RegisterInput) { in.Password = "short" }},
		{"vehicle_type", func(in *RegisterInput) { in.VehicleType = strings.Repeat("é", 33) }},
		{"licence_number", func(in *RegisterInput) { in.Licence = strings.Repeat("é", 33) }},
	} {
		in := dan()
		c.change(&in)
		refused(w, c.member, in, register)
	}
	in := dan()
	in.ClientCode = "none"
	w.unchanged(func() {
		_, err := register(in)
		require.Equal(t, cloud.E(cloud.NotFound, codeClient), err)
	})
	in = dan()
	in.Licence, in.VehicleType = strings.Repeat("é", 32), strings.Repeat("é", 32)
	_, err := register(in)
	require.NoError(t, err, "characters count, not bytes")
}

// A stranger waits in line for a hash, and may leave the line.
func TestARegistrationThatNoLongerWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.s.turn <- struct{}{} // another is being hashed
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := w.s.Register(ctx, dan()); done <- err }()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	<-w.s.turn
	_, err := w.s.Register(t.Context(), dan())
	require.NoError(t, err)
	require.Empty(t, w.s.turn, "the place in line is free again")
}

// Strangers cannot fill the store: past the bound, a registration takes the place of
// the one that waits longest, and reviewed drivers stay.
func TestWaitingRegistrationsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reviewed, err := w.s.Register(t.Context(), dan())
	require.NoError(t, err)
	_, err = w.s.ChangeUser(t.Context(), as(ann), ChangeUserInput{reviewed.DriverID, UserInput{Enabled: ptr(true)}})
	require.NoError(t, err)
	var waiting []cloud.Account
	var drivers []cloud.Driver
	for i := range maxPending { // as Register writes them, without their passwords' hashes
		a := cloud.Account{ID: cloud.AccountID(9000 - i), BusinessID: 1, Type: cloud.DriverAccount, Email: fmt.Sprintf("waiting-%d@a.example", i), Name: "Waiting", CreatedAt: time.UnixMilli(int64(1000 + i)).UTC()}
		waiting, drivers = append(waiting, a), append(drivers, cloud.Driver{Account: a, Pending: true})
	}
	w.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: waiting}, RouteChanges: cloud.RouteChanges{Drivers: drivers}})
	for n, email := range []string{"first@a.example", "second@a.example"} {
		in := dan()
		in.Email = email
		out, err := w.s.Register(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, waiting[n].ID, out.DriverID, "the place of the one that waited longest")
		require.Equal(t, email, w.account(out.DriverID).Email)
		require.Equal(t, "D123", w.driver(out.DriverID).Licence)
	}
	require.Equal(t, "dan@a.example", w.account(reviewed.DriverID).Email)
	w.look(func(v cloud.View) {
		list, err := v.PendingDrivers(1, 1000)
		require.NoError(t, err)
		require.Len(t, list, maxPending)
	})
}

package locker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

const mail = "jane@mail.example"

// write writes changes.
func (s *story) write(ch cloud.Changes) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil }))
}

// account makes an account of the partner's business, as changed, and gives it as a caller.
func (s *story) account(id cloud.AccountID, email string, change func(*cloud.Account)) cloud.Caller {
	s.t.Helper()
	a := cloud.Account{ID: id, BusinessID: s.Box.ProviderCaller.Provider.BusinessID, Type: cloud.Customer, Name: "Jane Smith", Email: email, PasswordHash: "hash", Enabled: true, CreatedAt: time.Now().UTC()}
	a.ProveMail()
	if change != nil {
		change(&a)
	}
	s.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
	return cloud.Caller{Account: a}
}

// goesTo changes the addresses of a delivery.
func (s *story) goesTo(number, recipient string, more func(*cloud.Delivery)) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.DeliveryByNumber(number)
		if d.Recipient.Email = recipient; more != nil {
			more(&d)
		}
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}}, err
	}))
}

// asRecipient is what each operation of recipients answers about a delivery, by name.
func (s *story) asRecipient(c cloud.Caller, number, tracking string) map[string]string {
	s.t.Helper()
	zero := 0
	out := map[string]string{}
	_, err := s.Lockers.FindParcel(ctx, c, number, "")
	out["find"] = code(err)
	_, err = s.Lockers.OpenParcel(ctx, c, locker.ParcelOpenInput{Number: number, OnSiteToken: s.onSite(), WaitSeconds: &zero})
	out["open"] = code(err)
	_, err = s.Lockers.HandOverParcel(ctx, c, locker.ParcelHandoverInput{Number: number, Name: "Sam"})
	out["hand over"] = code(err)
	_, err = s.Lockers.TakeBackParcel(ctx, c, locker.ParcelTakeBackInput{Number: number})
	out["take back"] = code(err)
	_, err = s.Lockers.ReturnParcel(ctx, c, locker.ParcelReturnInput{Number: number})
	out["return"] = code(err)
	_, err = s.Lockers.FindReturn(ctx, c, locker.ParcelReturnInput{Number: number})
	out["find return"] = code(err)
	_, err = s.Lockers.ListParcels(ctx, c, locker.ParcelsInput{Number: tracking})
	out["list"] = code(err)
	return out
}

// strangers are callers for whom R-1 is not, whose recipient's address is mail.
func (s *story) strangers() map[string]cloud.Caller {
	other := cloud.BusinessID(4300)
	s.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: other, Code: "rival", Name: "Rival", Timezone: "UTC"}}}})
	linked := s.account(9011, "linked@mail.example", func(a *cloud.Account) { a.Email = "x" + mail; a.ProveMail() })
	s.write(cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{{Issuer: "https://idp.example", Subject: "7", AccountID: linked.Account.ID, CreatedAt: time.Now().UTC()}}}})
	changed := s.account(9001, mail, nil) // who was let in with the address a second ago
	s.account(9001, "other@mail.example", nil)
	was := s.account(9002, mail, nil)
	s.account(9002, mail, func(a *cloud.Account) { a.Enabled, a.Email = false, "off@mail.example"; a.ProveMail() })
	return map[string]cloud.Caller{
		"anonymous":            {},
		"another business's":   s.account(9003, mail, func(a *cloud.Account) { a.BusinessID = other; a.ProveMail() }),
		"another address":      s.account(9004, "jane@mail.example.org", nil),
		"the sender":           s.account(9005, "sid@example.com", nil),
		"a former address":     changed,
		"disabled":             was,
		"an employee":          s.account(9006, "e"+mail, func(a *cloud.Account) { a.Type = cloud.ClientEmployee }),
		"a driver":             s.account(9007, "d"+mail, func(a *cloud.Account) { a.Type = cloud.DriverAccount }),
		"an administrator":     s.account(9008, "a"+mail, func(a *cloud.Account) { a.Type = cloud.ClientAdmin }),
		"a partner":            s.Box.ProviderCaller,
		"an empty address":     s.account(9009, "", func(a *cloud.Account) { a.Type = cloud.Customer; a.ProveMail() }),
		"a sign-in provider's": linked,
	}
}

// The account of a customer with the verified address of a delivery's recipient does what the
// parcel's link does; every other caller is answered as about a number that there is not. The
// state of the parcel does not change that.
func TestTheAccountOfARecipient(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		s.offersReturns(true)
		strangers := s.strangers()
		// The addresses of employees and drivers are their own: each has its turn as the recipient's.
		turn := map[string]string{"an employee": "e" + mail, "a driver": "d" + mail, "an administrator": "a" + mail, "a sign-in provider's": "x" + mail}
		refused := func(state string) {
			t.Helper()
			for name, c := range strangers {
				written := mail
				if x := turn[name]; x != "" {
					written = x
				}
				if name == "an empty address" {
					written = ""
				}
				s.goesTo(s.code, written, nil)
				require.Equal(t, s.asRecipient(c, "LD-9", "PK-9"), s.asRecipient(c, s.code, "PK-1"), "%s, %s", name, state)
				if c.Account.Type == cloud.Customer {
					list, err := s.Lockers.ListParcels(ctx, c, locker.ParcelsInput{})
					require.Contains(t, []string{"", "EMAIL_NOT_VERIFIED"}, code(err), name)
					require.Empty(t, list.Parcels, name)
					require.Empty(t, list.Collected, name)
					require.Empty(t, list.ToBring, name)
				} else {
					_, err := s.Lockers.ListParcels(ctx, c, locker.ParcelsInput{})
					require.Equal(t, "VALIDATION_FAILED", code(err), name)
				}
			}
		}
		jane := s.account(9000, mail, nil)
		refused("created")
		s.goesTo(s.code, " Jane@Mail.Example", nil)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", s.asRecipient(jane, s.code, "PK-1")["open"], "nothing waits yet")
		a := s.open()
		s.settle(a)
		refused("waiting")
		s.goesTo(s.code, "Jane@Mail.Example", nil)

		// Not verified: nothing, and a list that says so.
		s.account(9000, mail, func(a *cloud.Account) { a.MailProof = nil })
		require.Equal(t, s.asRecipient(jane, "LD-9", "PK-9"), s.asRecipient(jane, s.code, "PK-1"))
		_, err := s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{})
		require.Equal(t, "EMAIL_NOT_VERIFIED", code(err))
		s.account(9000, mail, func(a *cloud.Account) { a.PasswordHash = "set by the business" })
		require.Equal(t, s.asRecipient(jane, "LD-9", "PK-9"), s.asRecipient(jane, s.code, "PK-1"))
		s.account(9000, mail, nil)

		list, err := s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{})
		require.NoError(t, err)
		require.Len(t, list.Parcels, 1)
		p := list.Parcels[0]
		require.Equal(t, []any{s.code, "waiting", []string{"PK-1"}, 1}, []any{p.DeliveryNumber, p.Status, p.TrackingNumbers, list.Total})
		byLink, err := s.Lockers.ListParcels(ctx, cloud.Caller{}, locker.ParcelsInput{Number: "PK-1", Key: secret(s.World, "PK-1")})
		require.NoError(t, err)
		require.Equal(t, byLink.Parcels, list.Parcels, "as by the link")
		require.NotNil(t, p.PickupCode)
		numbered, err := s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{Number: "PK-1"})
		require.NoError(t, err)
		require.Equal(t, list.Parcels, numbered.Parcels)
		_, err = s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{Number: "PK-1", Key: "wrong"})
		require.Equal(t, "TRACKING_NOT_FOUND", code(err), "a key goes first")

		_, err = s.Lockers.OpenParcel(ctx, jane, locker.ParcelOpenInput{Number: s.code, OnSiteToken: "222222"})
		require.Equal(t, "NOT_AT_LOCKER", code(err))
		handed, err := s.Lockers.HandOverParcel(ctx, jane, locker.ParcelHandoverInput{Number: s.code, Name: "Sam"})
		require.NoError(t, err)
		require.NotEqual(t, *p.PickupCode, *handed.PickupCode)
		list, err = s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{})
		require.NoError(t, err)
		require.Nil(t, list.Parcels[0].PickupCode, "another person collects")
		_, err = s.Lockers.TakeBackParcel(ctx, jane, locker.ParcelTakeBackInput{Number: s.code})
		require.NoError(t, err)
		zero := 0
		opened, err := s.Lockers.OpenParcel(ctx, jane, locker.ParcelOpenInput{Number: s.code, OnSiteToken: s.onSite(), WaitSeconds: &zero})
		require.NoError(t, err)
		require.Equal(t, wire.OpenPickup, opened.Opening.Kind)
		s.pickUp(opened.Opening.OpeningID, 3, nil, a.Doors...)

		refused("collected")
		s.goesTo(s.code, mail, nil)
		back, err := s.Lockers.ReturnParcel(ctx, jane, locker.ParcelReturnInput{Number: s.code})
		require.NoError(t, err)
		require.True(t, back.Created)
		refused("returned")
		s.goesTo(s.code, mail, nil)
		list, err = s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{})
		require.NoError(t, err)
		require.Empty(t, list.Parcels)
		require.Equal(t, []locker.ReturnBody{back.Return}, list.ToBring)
		require.Equal(t, back.Return, *list.Collected[0].Return)
		// The return goes to the partner, who is no customer: its own number opens nothing for Jane.
		require.Equal(t, "DELIVERY_NOT_FOUND", s.asRecipient(jane, back.Return.DeliveryNumber, "PK-9")["open"])

		actors := map[string][]string{}
		audits, err := s.Server.Store.ListAudits(ctx, jane.Account.BusinessID, 0, 1000)
		require.NoError(t, err)
		for _, a := range audits {
			actors[a.Action] = append(actors[a.Action], a.Actor)
		}
		for _, action := range []string{"parcel_opened", "parcel_handed_over", "parcel_taken_back", "parcel_return_requested"} {
			require.Equal(t, []string{"account:9000"}, actors[action], action)
		}
	})
}

// between is a store that does something before each decision.
type between struct {
	locker.Store
	before func()
}

func (b between) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	b.before()
	return b.Store.Decide(ctx, d, fn)
}

// An account that is let in a moment before it changes is asked for its proof once more when
// the parcel is opened, handed over or returned.
func TestTheProofOfAnAccountIsAskedInTheDecision(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		s.offersReturns(true)
		change := func() {}
		lockers := locker.New(locker.Config{Store: between{s.Store, func() { change() }}, Sealer: s.Server.Box, Links: s.Server.Keys.Links()})
		a := s.open()
		s.settle(a)
		s.goesTo(s.code, mail, nil)
		token, zero := s.onSite(), 0
		calls := map[string]func(c cloud.Caller) error{
			"open": func(c cloud.Caller) error {
				_, err := lockers.OpenParcel(ctx, c, locker.ParcelOpenInput{Number: s.code, OnSiteToken: token, WaitSeconds: &zero})
				return err
			},
			"hand over": func(c cloud.Caller) error {
				_, err := lockers.HandOverParcel(ctx, c, locker.ParcelHandoverInput{Number: s.code, Name: "Sam"})
				return err
			},
			"return": func(c cloud.Caller) error {
				_, err := lockers.ReturnParcel(ctx, c, locker.ParcelReturnInput{Number: s.code})
				return err
			},
		}
		refused := func(name string) {
			t.Helper()
			for what, becomes := range map[string]func(a *cloud.Account){
				"another address":            func(a *cloud.Account) { a.Email = "other@mail.example" },
				"a password of the business": func(a *cloud.Account) { a.PasswordHash = "set by the business" },
				"disabled":                   func(a *cloud.Account) { a.Enabled = false },
			} {
				change = func() {}
				jane := s.account(9000, mail, nil)
				change = func() {
					a := jane.Account
					becomes(&a)
					s.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
				}
				require.Equal(t, "DELIVERY_NOT_FOUND", code(calls[name](jane)), "%s, %s", name, what)
			}
			change = func() {}
		}
		refused("open")
		refused("hand over")
		s.pickUp("op_p", 3, nil, a.Doors...)
		refused("return")
		require.NoError(t, calls["return"](s.account(9000, mail, nil)))
	})
}

// A parcel that its sender brings is shown to the sender alone, with the code to put it in and
// until then; its recipient, to whom a courier will bring it, opens nothing.
func TestWhatACustomerSends(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		s.goesTo(s.code, mail, nil)
		sid, jane := s.account(9001, "sid@example.com", nil), s.account(9000, mail, nil)
		list, err := s.Lockers.ListParcels(ctx, sid, locker.ParcelsInput{})
		require.NoError(t, err)
		require.Len(t, list.ToBring, 1)
		require.NotNil(t, list.ToBring[0].DropoffCode)
		require.Empty(t, list.Parcels)
		seen, err := s.Lockers.ListParcels(ctx, jane, locker.ParcelsInput{})
		require.NoError(t, err)
		require.Empty(t, seen.ToBring)
		require.Empty(t, seen.Parcels)
		s.settle(s.open())
		for name, c := range map[string]cloud.Caller{"sender": sid, "recipient": jane} {
			list, err := s.Lockers.ListParcels(ctx, c, locker.ParcelsInput{})
			require.NoError(t, err)
			require.Empty(t, list.Parcels, name)
			require.Empty(t, list.ToBring, name)
			require.Equal(t, s.asRecipient(c, "LD-9", "PK-9"), s.asRecipient(c, s.code, "PK-1"), name)
		}
	})
}

package locker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// secret is that of the link of a number that recipients have now.
func secret(r *devicetest.World, number string) (out string) {
	r.Look(func(v cloud.View) error {
		sh, err := v.ShipmentByNumber(number)
		if err != nil {
			return err
		}
		if out = r.Server.Keys.Links().OfShipment(sh.ID, sh.LinkFrom); sh.OrderID != 0 {
			o, err := v.Order(sh.BusinessID, sh.OrderID)
			out = r.Server.Keys.Links().OfOrder(o.ID, o.LinkGeneration)
			return err
		}
		return nil
	})
	return out
}

// byLink are the references of the deliveries that a link shows, with those that it opens and
// hands over nothing of.
func byLink(s *story, number, key string) (shown []string) {
	s.t.Helper()
	list, err := s.Lockers.ListParcels(ctx, cloud.Caller{}, locker.ParcelsInput{Number: number, Key: key})
	if err != nil {
		require.Equal(s.t, "TRACKING_NOT_FOUND", refusal(err))
	}
	of := map[string]bool{}
	for _, p := range list.Parcels {
		of[p.DeliveryNumber] = true
	}
	for _, ref := range []string{"R-1", "R-2"} {
		out, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, locker.DeliveryKey("ref:"+ref))
		if err != nil {
			continue
		}
		n := out.Delivery.DeliveryNumber
		if of[n] {
			shown = append(shown, ref)
		} else if out.Delivery.Status == cloud.DeliveryDelivered {
			_, err = s.Lockers.FindParcel(ctx, cloud.Caller{}, n, key)
			require.Equal(s.t, "DELIVERY_NOT_FOUND", refusal(err), ref)
			_, err = s.Lockers.OpenParcel(ctx, cloud.Caller{}, locker.ParcelOpenInput{Number: n, Key: key, OnSiteToken: "222222"})
			require.Equal(s.t, "DELIVERY_NOT_FOUND", refusal(err), ref)
			_, err = s.Lockers.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: n, Key: key, Name: "Sam"})
			require.Equal(s.t, "DELIVERY_NOT_FOUND", refusal(err), ref)
		}
	}
	return shown
}

func refusal(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// again announces a number once more, for a recipient.
func (s *story) again(number string, r cloud.Recipient) {
	s.t.Helper()
	_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID, Recipient: r,
		Packages: []locker.PackageInput{{TrackingNumber: number, Size: "M"}}})
	require.NoError(s.t, err)
}

// deposit opens for a delivery and settles it.
func (s *story) deposit(reference locker.DeliveryKey) asked {
	s.t.Helper()
	zero := 0
	_, err := s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: reference, WaitSeconds: &zero})
	require.NoError(s.t, err)
	var b asked
	b.id = s.Command(&b.OpenDoors).CommandID
	s.begin(b)
	s.outcome(b.id, wire.OutcomeDone, nil)
	s.settle(b)
	return b
}

var (
	jane = cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}
	bob  = cloud.Recipient{Name: "Bob Miller", Phone: "+14165559999"}
)

// A carrier uses the number of a parcel that was collected again: the former recipient's link
// shows and opens nothing of the next one's, whose own does.
func TestANumberThatIsUsedAgainHasAnotherLink(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		former := secret(s.World, "PK-1")
		require.Equal(t, []string{"R-1"}, byLink(s, "PK-1", former))
		s.pickUp("op_p", 2, nil, a.Doors...)
		require.Empty(t, byLink(s, "PK-1", former))
		s.again("PK-1", bob)
		s.deposit("ref:R-2")
		require.Empty(t, byLink(s, "PK-1", former))
		require.Equal(t, []string{"R-2"}, byLink(s, "PK-1", secret(s.World, "PK-1")))
	})
}

// While a parcel waits, its number is announced for another recipient: neither has a link that
// shows the other's parcel.
func TestANumberOfTwoRecipientsAtOnce(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		s.settle(s.open())
		former := secret(s.World, "PK-1")
		s.again("PK-1", bob)
		s.deposit("ref:R-2")
		require.Empty(t, byLink(s, "PK-1", former))
		require.Equal(t, []string{"R-2"}, byLink(s, "PK-1", secret(s.World, "PK-1")))
	})
}

// Of two packages one was never put in: its link shows and opens nothing of the other's.
func TestTheLinkOfAPackageThatIsNotInside(t *testing.T) {
	tell(t, 2, nil, func(s *story) {
		s.settle(s.open(), wire.Deposited, wire.Failed)
		require.Equal(t, []string{"R-1"}, byLink(s, "PK-1", secret(s.World, "PK-1")))
		require.Empty(t, byLink(s, "PK-2", secret(s.World, "PK-2")))
	})
}

// A second delivery with the number, for the same recipient, leaves the link as it is: it shows
// what waits of both, and the first alone when the second is cancelled.
func TestASecondDeliveryKeepsTheLinkOfTheFirst(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		tell(t, 1, nil, func(s *story) {
			s.settle(s.open())
			link, want := secret(s.World, "PK-1"), []string{"R-1"}
			s.again("PK-1", jane)
			require.Equal(t, want, byLink(s, "PK-1", link))
			if cancelled {
				_, err := s.Lockers.Cancel(ctx, s.Box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-2", Reason: "partner_request"})
				require.NoError(t, err)
			} else {
				s.deposit("ref:R-2")
				want = []string{"R-1", "R-2"}
			}
			require.Equal(t, link, secret(s.World, "PK-1"))
			require.Equal(t, want, byLink(s, "PK-1", link))
		})
	}
}

// A refused correction is newer than the recipient's opening, which still is what goes on.
func TestTheRunningCollectionGoesOn(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		s.settle(s.open())
		key, zero := secret(s.World, "PK-1"), 0
		in := locker.ParcelOpenInput{Number: s.find().DeliveryNumber, Key: key, WaitSeconds: &zero, OnSiteToken: s.onSite()}
		first, err := s.Lockers.OpenParcel(ctx, cloud.Caller{}, in)
		require.NoError(t, err)
		at := time.Now().Add(time.Second).UTC()
		require.NoError(t, s.Server.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.DeliveryByNumber(in.Number)
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: []cloud.Opening{{ID: "op_later", BusinessID: d.BusinessID, DeviceID: s.ID, DeliveryID: d.ID,
				Kind: wire.OpenCorrection, State: cloud.OpeningEnded, RequestedAt: at, EndedAt: at}}}}, err
		}))
		again, err := s.Lockers.OpenParcel(ctx, cloud.Caller{}, in)
		require.NoError(t, err)
		require.Equal(t, first.Opening.OpeningID, again.Opening.OpeningID)
		audits, err := s.Server.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 1000)
		require.NoError(t, err)
		opened := 0
		for _, a := range audits {
			if a.Action == "parcel_opened" {
				opened++
			}
		}
		require.Equal(t, 2, opened, "one line for each command")
	})
}

// onSite is the token on the cabinet's screen.
func (s *story) onSite() string {
	var d cloud.Device
	s.Look(func(v cloud.View) (err error) { d, err = v.Device(s.ID); return err })
	secrets, err := locker.OpenSecrets(s.Server.Box, d.SealedCode)
	require.NoError(s.t, err)
	return passcode.OnSite(secrets.Key, d.Code, time.Now())
}

// For an order's packages the order's link shows, opens and hands over what lies inside, and
// is what the notice has.
func TestTheLinkOfAnOrderOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carry(t, devicetest.New(t, nil), 1, true, func(s *parcels) {
			a := s.open()
			time.Sleep(3 * time.Second)
			s.settle(a)
			link := secret(s.World, s.made.Number)
			require.Equal(t, []string{"R-1"}, byLink(s.story, s.made.Number, link))
			l := locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Webhooks: webhook.New(s.Store, anyURL{}), Orders: s.service,
				Channels: []cloud.NotificationChannel{cloud.ByEmail}, Links: s.Server.Keys.Links(), LinkBase: "https://tms.example"})
			s.addressed(l, nil)
			_, err := l.ResendPickupCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-1", Channel: "email"})
			require.NoError(t, err)
			require.Equal(t, "https://tms.example/track/"+s.made.Number+"?k="+link, s.notes()[0].Link)
			n := s.find().DeliveryNumber
			_, err = s.Lockers.OpenParcel(ctx, cloud.Caller{}, locker.ParcelOpenInput{Number: n, Key: link, OnSiteToken: "222222"})
			require.Equal(t, "NOT_AT_LOCKER", refusal(err))
			zero := 0
			got, err := s.Lockers.OpenParcel(ctx, cloud.Caller{}, locker.ParcelOpenInput{Number: n, Key: link, OnSiteToken: s.onSite(), WaitSeconds: &zero})
			require.NoError(t, err)
			require.Len(t, got.Opening.Compartments, 1)
			out, err := s.Lockers.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: n, Key: link, Name: "Sam"})
			require.NoError(t, err)
			require.NotNil(t, out.PickupCode)
		})
	})
}

// An order's package was put into another person's delivery and taken out again.
func TestTheLinkOfAPackageThatWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carry(t, devicetest.New(t, nil), 1, true, func(s *parcels) {
			_, err := s.Lockers.AddPackage(ctx, s.Box.ProviderCaller, locker.AddPackageInput{Delivery: "ref:R-1", PackageInput: locker.PackageInput{TrackingNumber: "PK-OTHER", Size: "S"}})
			require.NoError(t, err)
			_, err = s.Lockers.RemovePackage(ctx, s.Box.ProviderCaller, locker.RemovePackageInput{Delivery: "ref:R-1", TrackingNumber: s.made.Packages[0].Number})
			require.NoError(t, err)
			a := s.open()
			time.Sleep(3 * time.Second)
			s.settle(a)
			require.Equal(t, cloud.DeliveryDelivered, s.find().Status)
			require.Empty(t, byLink(s.story, s.made.Number, secret(s.World, s.made.Number)))
		})
	})
}

// An order's packages come in two deliveries.
func TestTheLinkOfAnOrderInTwoDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carry(t, devicetest.New(t, nil), 2, true, func(s *parcels) {
			_, err := s.Lockers.RemovePackage(ctx, s.Box.ProviderCaller, locker.RemovePackageInput{Delivery: "ref:R-1", TrackingNumber: s.made.Packages[1].Number})
			require.NoError(t, err)
			a := s.open()
			time.Sleep(3 * time.Second)
			s.settle(a)
			_, err = s.bring("R-2", s.made.Packages[1].Number)
			require.NoError(t, err)
			link := secret(s.World, s.made.Number)
			require.Equal(t, []string{"R-1"}, byLink(s.story, s.made.Number, link))
			s.deposit("ref:R-2")
			require.Equal(t, []string{"R-1", "R-2"}, byLink(s.story, s.made.Number, link))
		})
	})
}

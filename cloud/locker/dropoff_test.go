package locker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// senderKey is the secret of the link of who brings the delivery of a story.
func (s *story) senderKey() string {
	s.t.Helper()
	return s.Server.Keys.Links().OfSender(s.find().DeliveryID)
}

func (s *story) dropoff(key string) (locker.DropoffBody, error) {
	out, err := s.Lockers.FindDropoff(ctx, cloud.Caller{}, locker.DropoffInput{Number: s.code, Key: key})
	return out.Dropoff, err
}

func (s *story) cancelDropoff(key string) (locker.DropoffBody, error) {
	out, err := s.Lockers.CancelDropoff(ctx, cloud.Caller{}, locker.DropoffInput{Number: s.code, Key: key})
	return out.Dropoff, err
}

func TestASenderFollowsADropoff(t *testing.T) {
	t.Parallel()
	for _, purpose := range []string{wire.PurposeSend, wire.PurposeReturn} {
		tellOf(t, purpose, 1, nil, func(s *story) {
			key := s.senderKey()
			b, err := s.dropoff(key)
			require.NoError(t, err)
			d := s.find()
			require.Equal(t, []any{purpose, locker.DropoffToBring, true, *d.DeliveryCode, passcode.QR("CAB-1", *d.DeliveryCode), "One", s.code},
				[]any{b.Purpose, b.State, b.CanCancel, *b.DropoffCode, *b.DropoffQR, b.Locker.DeviceName, b.DeliveryNumber})
			require.NotNil(t, b.BringBefore)
			s.brought("op_in")
			b, err = s.dropoff(key)
			require.NoError(t, err)
			require.Equal(t, []any{locker.DropoffBrought, false}, []any{b.State, b.CanCancel})
			require.Nil(t, b.DropoffCode)
			require.Nil(t, b.DropoffQR)
			_, err = s.cancelDropoff(key)
			require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err))
			require.Equal(t, cloud.DeliveryDelivered, err.(*cloud.Error).Details["status"])
			s.status(cloud.DeliveryDelivered)
			s.overdue()
			b, err = s.dropoff(key)
			require.NoError(t, err)
			require.Equal(t, locker.DropoffBrought, b.State, "it lies there, though its courier is late")
			require.NoError(t, s.remove("PK-1", "handover"))
			b, err = s.dropoff(key)
			require.NoError(t, err)
			require.Equal(t, locker.DropoffCollected, b.State)
		})
	}
}

// The sender's key opens nothing of a recipient, a recipient's nothing of the sender; each is
// answered like a number that is not known.
func TestKeysOfSendersAndRecipientsAreApart(t *testing.T) {
	t.Parallel()
	missing := func(err error) {
		t.Helper()
		require.Equal(t, cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND"), err)
	}
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		links, own := s.Server.Keys.Links(), s.senderKey()
		d := s.find()
		for _, wrong := range []string{"", "wrong", own[:21], own + "A", strings.ToLower(own), links.OfSender(d.DeliveryID + 1), secret(s.World, "PK-1"),
			links.OfShipment(cloud.ShipmentID(d.DeliveryID), 0), links.OfOrder(cloud.OrderID(d.DeliveryID), 0), links.Until(own, time.Now().Add(time.Hour))} {
			_, err := s.dropoff(wrong)
			missing(err)
			_, err = s.cancelDropoff(wrong)
			missing(err)
		}
		_, err := s.Lockers.FindDropoff(ctx, cloud.Caller{}, locker.DropoffInput{Number: "LD-000999999", Key: own})
		missing(err)
		s.asksAsRecipient(own)
		s.brought("op_in")
		s.asksAsRecipient(own)
		s.status(cloud.DeliveryDelivered)
	})
	tell(t, 1, nil, func(s *story) { // a delivery that no sender brings
		_, err := s.dropoff(s.senderKey())
		missing(err)
		_, err = s.dropoff(secret(s.World, "PK-1"))
		missing(err)
		_, err = s.cancelDropoff(s.senderKey())
		missing(err)
		s.asksAsRecipient(s.senderKey())
		s.settle(s.open())
		s.asksAsRecipient(s.senderKey())
	})
}

// asksAsRecipient tries what a recipient's link opens with a key that is none.
func (s *story) asksAsRecipient(key string) {
	s.t.Helper()
	var errs []error
	add := func(_ any, err error) { errs = append(errs, err) }
	zero := 0
	add(s.Lockers.OpenParcel(ctx, cloud.Caller{}, locker.ParcelOpenInput{Number: s.code, Key: key, OnSiteToken: s.onSite(), WaitSeconds: &zero}))
	add(s.Lockers.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: s.code, Key: key, Name: "Sam"}))
	add(s.Lockers.TakeBackParcel(ctx, cloud.Caller{}, locker.ParcelTakeBackInput{Number: s.code, Key: key}))
	add(s.Lockers.ReturnParcel(ctx, cloud.Caller{}, locker.ParcelReturnInput{Number: s.code, Key: key}))
	add(s.Lockers.FindReturn(ctx, cloud.Caller{}, locker.ParcelReturnInput{Number: s.code, Key: key}))
	for _, err := range errs {
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
	}
	_, err := s.Lockers.ListParcels(ctx, cloud.Caller{}, locker.ParcelsInput{Number: "PK-1", Key: key})
	require.Equal(s.t, "TRACKING_NOT_FOUND", code(err))
}

func TestASenderCancelsADropoff(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		key := s.senderKey()
		b, err := s.cancelDropoff(key)
		require.NoError(t, err)
		require.Equal(t, []any{locker.DropoffCancelled, false, cloud.DeliveryCancelled}, []any{b.State, b.CanCancel, b.Status})
		require.Nil(t, b.DropoffCode)
		require.Empty(t, s.liveCodes(), "the code is dead")
		s.told("cancelled")
		_, bodies := s.events()
		require.Equal(t, "sender", bodies["cancelled"]["data"].(map[string]any)["cancelled_by"])
		_, err = s.cancelDropoff(key)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err))
		require.Equal(t, cloud.DeliveryCancelled, err.(*cloud.Error).Details["status"])
		s.told("cancelled")
		audits, err := s.Server.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 1000)
		require.NoError(t, err)
		found := 0
		for _, a := range audits {
			if a.Action == "dropoff_cancelled" {
				found++
				require.Equal(t, []string{"anonymous", s.code}, []string{a.Actor, a.Target})
			}
		}
		require.Equal(t, 1, found)
	})
}

// A drop-off that is not brought in time is too late from its time limit on.
func TestADropoffThatIsTooLate(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		key := s.senderKey()
		s.soon(time.Minute)
		time.Sleep(time.Minute + 15*time.Second)
		s.status(cloud.DeliveryExpired)
		b, err := s.dropoff(key)
		require.NoError(t, err)
		require.Equal(t, []any{locker.DropoffTooLate, false}, []any{b.State, b.CanCancel})
		require.Nil(t, b.DropoffCode)
		_, err = s.cancelDropoff(key)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err))
	})
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		require.NoError(t, s.fail(`{"failure_code":"PARCEL_TOO_LARGE"}`))
		b, err := s.dropoff(s.senderKey())
		require.NoError(t, err)
		require.Equal(t, []any{locker.DropoffFailed, false}, []any{b.State, b.CanCancel})
	})
}

// Customers who are signed in follow and cancel what they bring, and nothing of others.
func TestACustomerFollowsADropoff(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		s.goesTo(s.code, mail, nil)
		sid, jane := s.account(9001, "sid@example.com", nil), s.account(9000, mail, nil)
		foreign := sid
		foreign.Account.BusinessID++
		for name, c := range map[string]cloud.Caller{"recipient": jane, "other business": foreign, "partner": s.Box.ProviderCaller, "none": {}} {
			_, err := s.Lockers.FindDropoff(ctx, c, locker.DropoffInput{Number: s.code})
			require.Equal(t, "DELIVERY_NOT_FOUND", code(err), name)
			_, err = s.Lockers.CancelDropoff(ctx, c, locker.DropoffInput{Number: s.code})
			require.Equal(t, "DELIVERY_NOT_FOUND", code(err), name)
		}
		s.account(9001, "sid@example.com", func(a *cloud.Account) { a.MailProof = nil })
		_, err := s.Lockers.FindDropoff(ctx, sid, locker.DropoffInput{Number: s.code})
		require.Equal(t, "DELIVERY_NOT_FOUND", code(err), "an address that is not proven")
		s.account(9001, "sid@example.com", nil)
		out, err := s.Lockers.FindDropoff(ctx, sid, locker.DropoffInput{Number: strings.ToLower(s.code)})
		require.NoError(t, err)
		require.NotNil(t, out.Dropoff.DropoffCode)
		_, err = s.Lockers.FindDropoff(ctx, sid, locker.DropoffInput{Number: s.code, Key: "wrong"})
		require.Equal(t, "DELIVERY_NOT_FOUND", code(err), "a key goes first")
		out, err = s.Lockers.CancelDropoff(ctx, sid, locker.DropoffInput{Number: s.code})
		require.NoError(t, err)
		require.Equal(t, locker.DropoffCancelled, out.Dropoff.State)
	})
}

// The sender's message with the code has the link; that of a collection and those of a cloud
// without a public address have none.
func TestTheSendersMessageHasTheLink(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		l := locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Webhooks: webhook.New(s.Store, anyURL{}), Channels: []cloud.NotificationChannel{cloud.ByEmail, cloud.BySMS},
			Links: s.Server.Keys.Links(), LinkBase: "https://tms.example"})
		in := locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID, Purpose: wire.PurposeSend, Recipient: cloud.Recipient{Name: "Jane", Email: "jane@example.com"},
			Sender: &cloud.Sender{Name: "Sid", Email: "sid@example.com", Phone: "+14165550199"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-2", Size: "M"}}}
		out, err := l.Create(ctx, s.Box.ProviderCaller, in)
		require.NoError(t, err)
		notes := s.notes()
		require.Len(t, notes, 2)
		for _, n := range notes {
			require.Equal(t, "https://tms.example/dropoff/"+out.Delivery.DeliveryNumber+"?k="+s.Server.Keys.Links().OfSender(out.Delivery.DeliveryID), n.Link)
		}
		_, err = s.notifying(cloud.ByEmail).ResendDeliveryCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-2", Channel: "email"})
		require.NoError(t, err)
		require.Empty(t, s.notes()[0].Link)
	})
}

// While doors are open the cabinet decides: a deposit that comes first stays.
func TestASenderCancelsWithDoorsOpened(t *testing.T) {
	t.Parallel()
	begin := func(s *story) (a asked, c wire.Command, answer chan error) {
		a, answer = s.open(), make(chan error, 1)
		key := s.senderKey()
		b, err := s.dropoff(key)
		require.NoError(s.t, err)
		require.True(s.t, b.CanCancel)
		go func() {
			_, err := s.cancelDropoff(key)
			answer <- err
		}()
		var body wire.CloseSession
		c = s.Command(&body)
		require.Equal(s.t, wire.CloseCancel, body.How)
		return a, c, answer
	}
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		a, c, answer := begin(s)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		require.NoError(t, <-answer)
		s.status(cloud.DeliveryCancelled)
		s.end(a, wire.EndCancelled)
		require.Equal(t, cloud.GridFree, s.cell(a.Doors[0]).State)
	})
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		a, c, answer := begin(s)
		s.settle(a)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		<-answer
		s.status(cloud.DeliveryDelivered)
		b, err := s.dropoff(s.senderKey())
		require.NoError(t, err)
		require.Equal(t, locker.DropoffBrought, b.State)
	})
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		s.open()
		s.Drop()
		synctest.Wait()
		_, err := s.cancelDropoff(s.senderKey())
		require.Equal(t, "DEVICE_OFFLINE", code(err))
		s.status(cloud.DeliveryDoorsOpened)
	})
}

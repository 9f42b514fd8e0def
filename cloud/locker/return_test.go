package locker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// offersReturns switches returns of the business on or off.
func (s *story) offersReturns(on bool) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(s.Box.ProviderCaller.Provider.BusinessID)
		b.Settings.LockerReturns = on
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
}

// collectedAt moves the collection of R-1.
func (s *story) collectedAt(at time.Time) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.DeliveryByNumber(s.code)
		d.PickedUpAt = at
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}}, err
	}))
}

func (s *story) askReturn(key string) (locker.ParcelReturnOutput, error) {
	return s.Lockers.ReturnParcel(ctx, cloud.Caller{}, locker.ParcelReturnInput{Number: s.code, Key: key})
}

func (s *story) findReturn(key string) (locker.ParcelReturnOutput, error) {
	return s.Lockers.FindReturn(ctx, cloud.Caller{}, locker.ParcelReturnInput{Number: s.code, Key: key})
}

func (s *story) collectedList(key string) []locker.CollectedBody {
	s.t.Helper()
	list, err := s.Lockers.ListParcels(ctx, cloud.Caller{}, locker.ParcelsInput{Number: "PK-1", Key: key})
	require.NoError(s.t, err)
	return list.Collected
}

func TestARecipientReturnsAParcel(t *testing.T) {
	t.Parallel()
	tell(t, 2, nil, func(s *story) {
		key := secret(s.World, "PK-1")
		_, err := s.askReturn(key)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err), "it was not collected")
		a := s.open()
		s.settle(a)
		_, err = s.askReturn(key)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err), "it still waits")
		s.pickUp("op_p", 2, nil, a.Doors...)
		_, err = s.askReturn(key)
		require.Equal(t, "RETURN_NOT_OFFERED", code(err))
		require.Empty(t, s.collectedList(key))
		s.offersReturns(true)
		_, err = s.findReturn(key)
		require.Equal(t, "DELIVERY_NOT_FOUND", code(err), "none was asked for")
		for _, wrong := range []string{"", "wrong", secret(s.World, "PK-2")[:8]} {
			_, err = s.askReturn(wrong)
			require.Equal(t, "DELIVERY_NOT_FOUND", code(err))
		}
		list := s.collectedList(key)
		require.Len(t, list, 1)
		require.Nil(t, list[0].Return)
		require.Equal(t, []string{"PK-1", "PK-2"}, list[0].TrackingNumbers)

		s.collectedAt(time.Now().UTC().Add(-14*24*time.Hour - time.Minute))
		_, err = s.askReturn(key)
		require.Equal(t, "RETURN_WINDOW_CLOSED", code(err))
		require.Empty(t, s.collectedList(key))
		s.collectedAt(time.Now().UTC().Add(-14*24*time.Hour + time.Minute))

		// Two at once: by the links of both packages, at two nodes.
		outs := make([]locker.ParcelReturnOutput, 4)
		var wg sync.WaitGroup
		for i := range outs {
			wg.Go(func() {
				out, err := s.askReturn(secret(s.World, []string{"PK-1", "PK-2"}[i%2]))
				require.NoError(t, err)
				outs[i] = out
			})
		}
		wg.Wait()
		created := 0
		for _, out := range outs {
			require.Equal(t, outs[0].Return, out.Return)
			if out.Created {
				created++
			}
		}
		require.Equal(t, 1, created)
		back := outs[0].Return
		require.Equal(t, []any{cloud.DeliveryCreated, passcode.QR("CAB-1", *back.DropoffCode), 2}, []any{back.Status, *back.DropoffQR, len(back.TrackingNumbers)})
		require.Len(t, *back.DropoffCode, passcode.DeliveryDigits)
		found, err := s.findReturn(key)
		require.NoError(t, err)
		require.Equal(t, back, found.Return)
		require.Equal(t, back, *s.collectedList(key)[0].Return)
		_, err = s.findReturn("wrong")
		require.Equal(t, "DELIVERY_NOT_FOUND", code(err))

		d := s.ofReference("RETURN-" + back.DeliveryNumber)
		require.Equal(t, []any{wire.PurposeReturn, "Jane Smith", s.Box.ProviderCaller.Provider.Name, s.find().DeliveryID}, []any{d.Purpose, d.Sender.Name, d.Recipient.Name, *d.Returns})
		require.Equal(t, "PK-1", *d.Packages[0].Reference)
		s.deposit(locker.DeliveryKey("ref:" + d.ReferenceNumber))
		found, err = s.findReturn(key)
		require.NoError(t, err)
		require.Equal(t, cloud.DeliveryDelivered, found.Return.Status)
		require.Nil(t, found.Return.DropoffCode)
		again, err := s.askReturn(key)
		require.NoError(t, err)
		require.Equal(t, []any{false, back.DeliveryNumber}, []any{again.Created, again.Return.DeliveryNumber}, "one return")
	})
}

func (s *story) ofReference(ref string) locker.DeliveryBody {
	s.t.Helper()
	out, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, locker.DeliveryKey("ref:"+ref))
	require.NoError(s.t, err)
	return out.Delivery
}

// A return that was cancelled or not brought is over: another one can be asked for, for as
// long as returns are possible. A cabinet out of use takes none, and a return has none.
func TestAReturnThatIsOver(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		key := secret(s.World, "PK-1")
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.offersReturns(true)
		first, err := s.askReturn(key)
		require.NoError(t, err)
		_, err = s.Lockers.Cancel(ctx, s.Box.ProviderCaller, locker.CancelInput{Delivery: locker.DeliveryKey("ref:RETURN-" + first.Return.DeliveryNumber)})
		require.NoError(t, err)
		_, err = s.findReturn(key)
		require.Equal(t, "DELIVERY_NOT_FOUND", code(err))
		second, err := s.askReturn(key)
		require.NoError(t, err)
		require.True(t, second.Created)
		require.NotEqual(t, first.Return.DeliveryNumber, second.Return.DeliveryNumber)
		_, err = s.Lockers.ReturnParcel(ctx, cloud.Caller{}, locker.ParcelReturnInput{Number: second.Return.DeliveryNumber, Key: secret(s.World, second.Return.TrackingNumbers[0])})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err), "a return is not returned")
		s.offersReturns(false)
		shown, err := s.askReturn(key)
		require.NoError(t, err)
		require.Equal(t, second.Return.DeliveryNumber, shown.Return.DeliveryNumber, "what was promised stays")
	})
}

// Returns of what was taken back by a courier, and at a cabinet that is out of use.
func TestWhatCannotBeReturned(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		key := secret(s.World, "PK-1")
		s.settle(s.open())
		s.offersReturns(true)
		require.NoError(t, s.remove("PK-1", "handover"))
		_, err := s.askReturn(key)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", code(err), "staff have given it out: nothing says that it was collected here")
	})
	tell(t, 1, nil, func(s *story) {
		key := secret(s.World, "PK-1")
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.offersReturns(true)
		require.NoError(t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(s.ID)
			d.Disabled = true
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
		}))
		_, err := s.askReturn(key)
		require.Equal(t, "DEVICE_DISABLED", code(err))
	})
}

package locker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// brought begins and settles a deposit by the sender's code, at the cabinet alone.
func (s *story) brought(opening string) asked {
	s.t.Helper()
	time.Sleep(15 * time.Second)
	e := s.listed(wire.CodeDelivery)
	require.Len(s.t, e, 1)
	var a asked
	a.OpeningID, a.Kind, a.Doors, a.Packages = opening, wire.OpenDeposit, e[0].Doors, e[0].Packages
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: opening, Kind: wire.OpenDeposit, Doors: a.Doors, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code, CodeNumber: e[0].Number})
	s.settle(a)
	return a
}

func (s *story) codesOf() (out []otep.Code) {
	s.t.Helper()
	for _, e := range s.timeline().Events {
		out = append(out, e.StatusCode)
	}
	return out
}

func TestASenderBringsAndACourierCollects(t *testing.T) {
	t.Parallel()
	for purpose, kind := range map[string]string{wire.PurposeSend: "customer_dropoff", wire.PurposeReturn: "return_dropoff"} {
		t.Run(purpose, func(t *testing.T) {
			tellOf(t, purpose, 1, nil, func(s *story) {
				d := s.find()
				require.Equal(t, []any{purpose, "Sid Sender", "1 Main St"}, []any{d.Purpose, d.Sender.Name, d.Recipient.Address})
				require.NotNil(t, d.DeliveryCode)
				require.Nil(t, d.PickupCode)
				require.Equal(t, []string{"delivery now", "outgoing at_settle"}, s.liveCodes(), "no pickup code is listed")
				require.Equal(t, purpose, s.listed(wire.CodeDelivery)[0].Purpose)
				require.Empty(t, s.listed(wire.CodeOutgoing)[0].Verifier)
				a := s.brought("op_in")
				d = s.find()
				require.Equal(t, []any{cloud.DeliveryDelivered, false}, []any{d.Status, d.PickupCodeActive})
				require.Nil(t, d.PickupCode)
				require.Zero(t, s.planned(d.DeliveryID), "no recipient is reminded")
				row := s.row("PK-1")
				require.Equal(t, []any{kind, "stored", "courier"}, []any{row.Kind, row.Status, *row.NextActor})
				require.Equal(t, []string{"delivery now", "outgoing now"}, s.liveCodes(), "a cabinet that lost its memory finds it again")
				require.Equal(t, []otep.Code{otep.InformationSubmitted, otep.AwaitingPickup}, s.codesOf())
				s.refusesRecipients()
				var b asked
				_, err := s.retrieve("collection", func(x asked) {
					b = x
					s.begin(x)
					s.swung(x, true)
					s.outcome(x.id, wire.OutcomeDone, nil)
				})
				require.NoError(t, err)
				require.Equal(t, a.Doors, b.Doors)
				require.NoError(t, s.retrieved())
				require.NoError(t, s.retrieved(), "again is the same")
				d = s.find()
				require.Equal(t, cloud.DeliveryPickedUp, d.Status)
				require.Equal(t, []string{"PK-1 picked_up"}, s.orders())
				require.Nil(t, s.row("PK-1").RemovalReason)
				require.Equal(t, []otep.Code{otep.InformationSubmitted, otep.AwaitingPickup, otep.PickedUp}, s.codesOf())
				require.Empty(t, s.liveCodes())
				s.told("doors_opened", "delivered", "picked_up")
				_, bodies := s.events()
				data := bodies["picked_up"]["data"].(map[string]any)
				require.Equal(t, "courier", data["picked_up_by"].(map[string]any)["type"])
				require.Equal(t, purpose, data["delivery"].(map[string]any)["purpose"])
				require.Nil(t, bodies["delivered"]["data"].(map[string]any)["pickup_code"])
				require.Equal(t, cloud.GridFree, s.cell(a.Doors[0]).State)
			})
		})
	}
}

// refusesRecipients tries what is for the recipient of a delivery alone.
func (s *story) refusesRecipients() {
	s.t.Helper()
	refused := func(err error) {
		s.t.Helper()
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		require.Equal(s.t, s.purpose, err.(*cloud.Error).Details["purpose"])
	}
	l, c, key := s.Lockers, s.Box.ProviderCaller, secret(s.World, "PK-1")
	_, err := l.RotatePickupCode(ctx, c, locker.RotateInput{Delivery: "ref:R-1"})
	refused(err)
	_, err = l.HandOver(ctx, c, locker.HandoverInput{Delivery: "ref:R-1", Name: "Sam"})
	refused(err)
	_, err = l.ResendPickupCode(ctx, c, locker.ResendInput{Delivery: "ref:R-1", Channel: "email"})
	refused(err)
	_, err = l.OpenParcel(ctx, cloud.Caller{}, locker.ParcelOpenInput{Number: s.code, Key: key, OnSiteToken: s.onSite()})
	refused(err)
	_, err = l.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: s.code, Key: key, Name: "Sam"})
	refused(err)
	_, err = l.OpenParcel(ctx, cloud.Caller{}, locker.ParcelOpenInput{Number: s.code, Key: "wrong", OnSiteToken: s.onSite()})
	require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
	list, err := l.ListParcels(ctx, cloud.Caller{}, locker.ParcelsInput{Number: "PK-1", Key: key})
	require.NoError(s.t, err)
	require.Empty(s.t, list.Parcels)
}

func TestAnOutgoingParcelIsOverdue(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		s.brought("op_in")
		s.overdue()
		row := s.row("PK-1")
		require.Equal(t, []any{"overdue", "operator"}, []any{row.Status, *row.NextActor})
		require.Equal(t, []otep.Code{otep.InformationSubmitted, otep.AwaitingPickup}, s.codesOf(), "nothing has happened to the parcel")
		require.Zero(t, s.planned(s.find().DeliveryID))
		_, err := s.Lockers.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 24})
		require.NoError(t, err)
		require.Equal(t, "courier", *s.row("PK-1").NextActor)
		require.NoError(t, s.remove("PK-1", "handover"), "staff give it to the courier")
		d := s.find()
		require.Equal(t, cloud.DeliveryPickedUp, d.Status)
		require.Equal(t, []string{"PK-1 picked_up"}, s.orders())
		require.Equal(t, otep.PickedUp, s.codesOf()[2])
	})
	tellOf(t, wire.PurposeReturn, 1, nil, func(s *story) {
		s.brought("op_in")
		require.NoError(t, s.remove("PK-1", "destroyed"))
		s.status(cloud.DeliveryFailed)
		require.Equal(t, []string{"PK-1 removed"}, s.orders())
	})
}

// A parcel that its sender does not bring in time, and one whose doors do not open.
func TestAnOutgoingParcelThatIsNotBrought(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		s.soon(time.Minute)
		time.Sleep(time.Minute + 15*time.Second)
		s.status(cloud.DeliveryExpired)
		require.Empty(t, s.liveCodes())
		s.told("expired")
	})
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		require.NoError(t, s.fail(`{"failure_code":"PARCEL_TOO_LARGE"}`))
		require.Equal(t, []otep.Code{otep.InformationSubmitted, otep.PickupFailed}, s.codesOf())
		require.Empty(t, s.liveCodes())
	})
}

// The secrets of a cabinet change: what it holds stays listed, without a code.
func TestAnOutgoingParcelOutlivesNewSecrets(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		s.brought("op_in")
		_, err := s.Lockers.Configure(ctx, s.ID, func(c *wire.Config) error { c.Codes.Passes++; return nil })
		require.NoError(t, err)
		e := s.listed(wire.CodeOutgoing)
		require.Len(t, e, 1)
		require.Equal(t, []any{wire.ActiveNow, 0}, []any{e[0].Active, len(e[0].Verifier)})
	})
}

func TestWhoMaySend(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		in := locker.CreateInput{ReferenceNumber: "R-9", DeviceID: s.ID, Recipient: jane, Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "M"}}}
		wrong := func(field string, change func(*locker.CreateInput)) {
			t.Helper()
			bad := in
			change(&bad)
			_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, bad)
			require.Equal(t, "VALIDATION_FAILED", code(err))
			require.Contains(t, err.(*cloud.Error).Fields, field)
		}
		wrong("sender", func(in *locker.CreateInput) { in.Purpose = "send" })
		wrong("sender", func(in *locker.CreateInput) { in.Sender = &cloud.Sender{Name: "Sid", Phone: "+14165550123"} })
		wrong("sender", func(in *locker.CreateInput) { in.Purpose, in.Sender = "return", &cloud.Sender{Name: "Sid"} })
		wrong("recipient.address", func(in *locker.CreateInput) { in.Recipient.Address = "1 Main St" })
	})
}

// The sender is notified of the code, of a new one, and of the collection; the recipient of
// nothing.
func TestNotificationsOfSenders(t *testing.T) {
	t.Parallel()
	tellOf(t, wire.PurposeSend, 1, nil, func(s *story) {
		l := s.notifying(cloud.ByEmail, cloud.BySMS)
		in := locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID, Purpose: wire.PurposeSend, Recipient: cloud.Recipient{Name: "Jane", Email: "jane@example.com"},
			Sender: &cloud.Sender{Name: "Sid", Email: "sid@example.com", Phone: "+14165550199", Language: "de"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-2", Size: "M"}}}
		out, err := l.Create(ctx, s.Box.ProviderCaller, in)
		require.NoError(t, err)
		notes := s.notes()
		require.Len(t, notes, 2, "by mail and SMS")
		for _, n := range notes {
			require.Equal(t, []any{cloud.NotifyDropoffCode, *out.Delivery.DeliveryCode, "One"}, []any{n.Kind, n.Parcel.Code, n.Parcel.Locker})
			require.Contains(t, []string{"sid@example.com", "+14165550199"}, n.To)
			require.False(t, n.Parcel.Until.IsZero())
			when, err := l.WhenToNotify(ctx, n.Notification, time.Now())
			require.NoError(t, err)
			require.False(t, when.IsZero())
		}
		again, err := l.Create(ctx, s.Box.ProviderCaller, in)
		require.NoError(t, err)
		require.False(t, again.Created)
		require.Len(t, s.notes(), 2, "a repeat sends nothing")
		_, err = l.RotateDeliveryCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-2"})
		require.NoError(t, err)
		require.Len(t, s.notes(), 4)
		when, err := l.WhenToNotify(ctx, notes[0].Notification, time.Now())
		require.NoError(t, err)
		require.Zero(t, when, "its code is another one by now")
		sent, err := l.ResendDeliveryCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-2", Channel: "email"})
		require.NoError(t, err)
		require.Equal(t, "s***@example.com", sent.SentTo)
		a := s.deposit("ref:R-2")
		require.Len(t, s.notes(), 5, "a deposit sends nothing")
		_, err = during(s, func() (locker.RetrieveOutput, error) {
			return l.Retrieve(ctx, s.Box.ProviderCaller, locker.RetrieveInput{Delivery: "ref:R-2", Reason: "collection"})
		}, func(x asked) {
			require.Equal(t, a.Doors, x.Doors)
			s.begin(x)
			s.swung(x, true)
			s.outcome(x.id, wire.OutcomeDone, nil)
		})
		require.NoError(t, err)
		synctest.Wait()
		_, err = l.RetrieveConfirm(ctx, s.Box.ProviderCaller, locker.RetrieveConfirmInput{Delivery: "ref:R-2"})
		require.NoError(t, err)
		notes = s.notes()
		require.Len(t, notes, 7)
		require.Equal(t, []any{cloud.NotifyParcelCollected, "", "PK-2"}, []any{notes[0].Kind, notes[0].Parcel.Code, notes[0].Parcel.Numbers[0]})
		when, err = l.WhenToNotify(ctx, notes[0].Notification, time.Now())
		require.NoError(t, err)
		require.False(t, when.IsZero())
	})
}

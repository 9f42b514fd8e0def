package locker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// mailing is the story's cloud with a mail server.
func (s *story) mailing() *locker.Service {
	return locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Webhooks: webhook.New(s.Store, anyURL{}), Mails: true})
}

// mails are those that wait, the newest first.
func (s *story) mails() []cloud.MailRow {
	s.t.Helper()
	list, err := s.Store.ListMails(ctx, s.Box.ProviderCaller.Provider.BusinessID, 10)
	require.NoError(s.t, err)
	return list
}

func (s *story) addressed(l *locker.Service, n *cloud.Notify) {
	s.t.Helper()
	_, err := l.Edit(ctx, s.Box.ProviderCaller, locker.EditInput{Delivery: "ref:R-1", Recipient: &cloud.Recipient{Name: "Jane Smith", Email: "jane.smith@example.com", Language: "fr"}, Notify: n})
	require.NoError(s.t, err)
}

// waiting confirms the deposit of R-1 by word.
func (s *story) waiting(l *locker.Service) {
	s.t.Helper()
	a := s.open()
	for _, n := range a.Doors {
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: n, Pulses: 1})
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: n, OpenMS: 4000})
	}
	_, err := l.Confirm(ctx, s.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1"})
	require.NoError(s.t, err)
	s.status(cloud.DeliveryDelivered)
}

// ignored is an error but for that of a row that is not there.
func ignored(err error) error {
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	return err
}

func TestMailsToRecipients(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories of cmd/e2e")
	f := plays(t)
	resend := func(s *story, l *locker.Service, channel string) (locker.ResendOutput, error) {
		return l.ResendPickupCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-1", Channel: channel})
	}
	f("the code on deposit, once more, a new one, overdue", 2, func(s *story) {
		l := s.mailing()
		s.addressed(l, nil)
		_, err := resend(s, l, "email")
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), "nothing lies there yet")
		s.waiting(l)
		require.Len(s.t, s.mails(), 1)
		m := s.mails()[0]
		require.Equal(s.t, cloud.ParcelWaitingMail, m.Kind)
		require.Equal(s.t, []string{"jane.smith@example.com", "fr", "Jane Smith"}, []string{m.To, m.Language, m.Name})
		d := s.find()
		require.Equal(s.t, *d.PickupCode, m.Parcel.Code)
		require.Equal(s.t, []string{"PK-1", "PK-2"}, m.Parcel.Numbers)
		require.Len(s.t, m.Parcel.Doors, 2)
		require.Equal(s.t, "One", m.Parcel.Locker)
		require.Equal(s.t, "-05:00", m.Parcel.Until.Format("-07:00"), "the cabinet's own time")
		out, err := resend(s, l, "email")
		require.NoError(s.t, err)
		require.Equal(s.t, "j***@example.com", out.SentTo)
		require.Equal(s.t, []any{2, cloud.ParcelCodeMail, *d.PickupCode}, []any{len(s.mails()), s.mails()[0].Kind, s.mails()[0].Parcel.Code})
		_, err = resend(s, l, "sms")
		require.Equal(s.t, "CHANNEL_NOT_CONFIGURED", code(err))
		_, err = resend(s, s.Lockers, "email")
		require.Equal(s.t, "CHANNEL_NOT_CONFIGURED", code(err), "without a mail server")
		rotated, err := l.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{3, cloud.ParcelCodeMail, rotated.PickupCode}, []any{len(s.mails()), s.mails()[0].Kind, s.mails()[0].Parcel.Code})
		_, err = l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{4, cloud.ParcelOverdueMail}, []any{len(s.mails()), s.mails()[0].Kind})
		require.True(s.t, s.mails()[0].Until.After(time.Now()))
	})
	f("one reminder a day before the end of its time, while it waits", 1, func(s *story) {
		l := s.mailing()
		s.addressed(l, nil)
		s.waiting(l)
		id := s.find().DeliveryID
		due := func() (d cloud.Delivery, at time.Time) {
			s.Look(func(v cloud.View) (err error) {
				if d, err = v.Delivery(id); err != nil {
					return err
				}
				r, err := v.Reminder(id)
				at = r.At
				return ignored(err)
			})
			return d, at
		}
		d, at := due()
		require.Equal(s.t, d.DueAt.Add(-24*time.Hour).UnixMilli(), at.UnixMilli())
		_, err := l.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 2})
		require.NoError(s.t, err)
		d, at = due()
		require.Equal(s.t, d.DueAt.Add(-24*time.Hour).UnixMilli(), at.UnixMilli(), "it moves with the time to collect")
		pass := func() { // at two nodes
			require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{LockerChanges: cloud.LockerChanges{Reminders: []cloud.Reminder{{DeliveryID: id, At: time.Now()}}}}, nil
			}))
			nodes, stop := context.WithCancel(ctx)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { _ = l.RunDeadlines(nodes, s.Store) })
			}
			synctest.Wait()
			stop()
			wg.Wait()
			_, at := due()
			require.Zero(s.t, at)
		}
		time.Sleep(5 * time.Second) // the server's own look is not at the same moment
		pass()
		require.Equal(s.t, []any{2, cloud.ParcelReminderMail}, []any{len(s.mails()), s.mails()[0].Kind})
		_, err = l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		pass()
		require.Equal(s.t, []any{3, cloud.ParcelOverdueMail}, []any{len(s.mails()), s.mails()[0].Kind})
	})
	f("not against the partner's wish, unless the partner asks", 1, func(s *story) {
		l := s.mailing()
		s.addressed(l, &cloud.Notify{SMS: true})
		s.waiting(l)
		require.Empty(s.t, s.mails())
		_, err := resend(s, l, "email")
		require.NoError(s.t, err)
		require.Len(s.t, s.mails(), 1)
	})
	f("no address, no mail; another's delivery", 1, func(s *story) {
		l := s.mailing()
		s.waiting(l)
		require.Empty(s.t, s.mails())
		_, err := resend(s, l, "email")
		require.Equal(s.t, "CHANNEL_NOT_CONFIGURED", code(err))
		other := s.Box.ProviderCaller
		other.Provider.ID++
		_, err = l.ResendPickupCode(ctx, other, locker.ResendInput{Delivery: "ref:R-1", Channel: "email"})
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
	})
	f("not while another person collects", 1, func(s *story) {
		l := s.mailing()
		s.addressed(l, nil)
		s.waiting(l)
		_, err := l.HandOver(ctx, s.Box.ProviderCaller, locker.HandoverInput{Delivery: "ref:R-1", Name: "Bo"})
		require.NoError(s.t, err)
		_, err = resend(s, l, "email")
		require.Equal(s.t, "CHANNEL_NOT_CONFIGURED", code(err))
		require.Len(s.t, s.mails(), 1, "the code of the other person is not the recipient's to have")
	})
}

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// notifying is the story's cloud with channels.
func (s *story) notifying(by ...cloud.NotificationChannel) *locker.Service {
	return locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Webhooks: webhook.New(s.Store, anyURL{}), Channels: by})
}

// notes are those of the provider's business, the newest first.
func (s *story) notes() []cloud.NotificationRow {
	s.t.Helper()
	list, err := s.Store.ListNotifications(ctx, s.Box.ProviderCaller.Provider.BusinessID, 10)
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

// look lets two nodes look at deadlines and reminders at once.
func (s *story) look(l *locker.Service) {
	nodes, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { _ = l.RunDeadlines(nodes, s.Store) })
	}
	synctest.Wait()
	stop()
	wg.Wait()
}

// planned is when the recipient of a delivery is to be notified; zero: not.
func (s *story) planned(id cloud.DeliveryID) (at time.Time) {
	s.Look(func(v cloud.View) error {
		r, err := v.Reminder(id)
		at = r.At
		return ignored(err)
	})
	return at
}

// ignored is an error but for that of a row that is not there.
func ignored(err error) error {
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	return err
}

func TestNotificationsOfDeliveries(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories of cmd/e2e")
	f := plays(t)
	resend := func(s *story, l *locker.Service, channel cloud.NotificationChannel) (locker.ResendOutput, error) {
		return l.ResendPickupCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-1", Channel: channel})
	}
	f("the code on deposit, once more, a new one, overdue", 2, func(s *story) {
		l := s.notifying(cloud.ByEmail)
		s.addressed(l, nil)
		_, err := resend(s, l, "email")
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), "nothing lies there yet")
		s.waiting(l)
		require.Len(s.t, s.notes(), 1)
		m := s.notes()[0]
		require.Equal(s.t, cloud.NotifyParcelWaiting, m.Kind)
		require.Equal(s.t, []string{"jane.smith@example.com", "fr, en", "Jane Smith"}, []string{m.To, m.Language, m.Name})
		d := s.find()
		require.Equal(s.t, *d.PickupCode, m.Parcel.Code)
		require.Equal(s.t, []string{"PK-1", "PK-2"}, m.Parcel.Numbers)
		require.Len(s.t, m.Parcel.Doors, 2)
		require.Equal(s.t, "One", m.Parcel.Locker)
		require.Equal(s.t, "-05:00", m.Parcel.Until.Format("-07:00"), "the cabinet's own time")
		out, err := resend(s, l, "email")
		require.NoError(s.t, err)
		require.Equal(s.t, "j***@example.com", out.SentTo)
		require.Equal(s.t, []any{2, cloud.NotifyParcelCode, *d.PickupCode}, []any{len(s.notes()), s.notes()[0].Kind, s.notes()[0].Parcel.Code})
		_, err = resend(s, l, "sms")
		require.Equal(s.t, "not_offered", unsent(err))
		_, err = resend(s, s.notifying(cloud.BySMS), "sms")
		require.Equal(s.t, "no_phone", unsent(err))
		_, err = resend(s, s.Lockers, "email")
		require.Equal(s.t, "not_offered", unsent(err), "without a mail server")
		rotated, err := l.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{3, cloud.NotifyParcelCode, rotated.PickupCode}, []any{len(s.notes()), s.notes()[0].Kind, s.notes()[0].Parcel.Code})
		_, err = l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		s.look(l)
		require.Equal(s.t, []any{4, cloud.NotifyParcelOverdue}, []any{len(s.notes()), s.notes()[0].Kind})
		require.True(s.t, s.notes()[0].Until.After(time.Now()))
	})
	f("a link for the recipient, and for no other person", 1, func(s *story) {
		links := cloud.LinkKey("0123456789abcdef0123456789abcdef")
		l := locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Webhooks: webhook.New(s.Store, anyURL{}), Channels: []cloud.NotificationChannel{cloud.ByEmail, cloud.BySMS}, Links: links, LinkBase: "https://tms.example"})
		s.addressed(l, nil)
		s.waiting(l)
		link, err := url.Parse(s.notes()[0].Link)
		require.NoError(s.t, err)
		require.Equal(s.t, "https://tms.example/track/PK-1", link.Scheme+"://"+link.Host+link.Path)
		out, err := l.ListParcels(ctx, cloud.Caller{}, locker.ParcelsInput{Number: "PK-1", Key: link.Query().Get("k")})
		require.NoError(s.t, err)
		require.Equal(s.t, s.notes()[0].Parcel.Code, *out.Parcels[0].PickupCode)
		_, err = l.HandOver(ctx, s.Box.ProviderCaller, locker.HandoverInput{Delivery: "ref:R-1", Name: "Sam Smith", Phone: "+14165550199"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{cloud.BySMS, "+14165550199", ""}, []any{s.notes()[0].Channel, s.notes()[0].To, s.notes()[0].Link}, "it would show the recipient's page")
	})
	f("one reminder a day before the end of its time, while it waits", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail)
		s.addressed(l, nil)
		s.waiting(l)
		id := s.find().DeliveryID
		due := func() (d cloud.Delivery, at time.Time) {
			s.Look(func(v cloud.View) (err error) {
				d, err = v.Delivery(id)
				return err
			})
			return d, s.planned(id)
		}
		d, at := due()
		require.Equal(s.t, d.DueAt.Add(-24*time.Hour).UnixMilli(), at.UnixMilli())
		_, err := l.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 1})
		require.NoError(s.t, err)
		d, at = due()
		require.Equal(s.t, d.DueAt.Add(-24*time.Hour).UnixMilli(), at.UnixMilli(), "it moves with the time to collect")
		pass := func() { // at two nodes
			require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{LockerChanges: cloud.LockerChanges{Reminders: []cloud.Reminder{{DeliveryID: id, At: time.Now()}}}}, nil
			}))
			s.look(l)
			require.Zero(s.t, s.planned(id))
		}
		time.Sleep(5 * time.Second) // the server's own look is not at the same moment
		pass()
		require.Equal(s.t, []any{2, cloud.NotifyParcelReminder}, []any{len(s.notes()), s.notes()[0].Kind})
		_, err = l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		pass()
		require.Equal(s.t, []any{3, cloud.NotifyParcelOverdue}, []any{len(s.notes()), s.notes()[0].Kind})
	})
	f("by both channels, each as the partner wants", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail, cloud.BySMS)
		_, err := l.Edit(ctx, s.Box.ProviderCaller, locker.EditInput{Delivery: "ref:R-1", Recipient: &cloud.Recipient{Name: "Jane Smith", Email: "jane.smith@example.com", Phone: "0049 (30) 901-820"}})
		require.NoError(s.t, err)
		s.waiting(l)
		to := map[cloud.NotificationChannel]string{}
		for _, n := range s.notes() {
			to[n.Channel] = n.To
			require.Equal(s.t, []any{s.find().DeliveryID, s.Box.ProviderCaller.Provider.ID, *s.find().PickupCode, false}, []any{n.DeliveryID, n.ProviderID, n.Parcel.Code, n.Sandbox})
		}
		require.Equal(s.t, map[cloud.NotificationChannel]string{cloud.ByEmail: "jane.smith@example.com", cloud.BySMS: "+4930901820"}, to)
		require.Len(s.t, s.notes(), 2)
		out, err := resend(s, l, "sms")
		require.NoError(s.t, err)
		require.Equal(s.t, "***820", out.SentTo)
		_, err = l.Edit(ctx, s.Box.ProviderCaller, locker.EditInput{Delivery: "ref:R-1", Notify: &cloud.Notify{SMS: true}})
		require.NoError(s.t, err)
		_, err = l.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{4, cloud.BySMS, cloud.NotifyParcelCode}, []any{len(s.notes()), s.notes()[0].Channel, s.notes()[0].Kind})
	})
	f("what can wait waits for the morning at the cabinet", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail)
		s.addressed(l, nil)
		s.waiting(l)
		id := s.find().DeliveryID
		zone := time.FixedZone("", -2*3600) // where it is ten in the evening
		name := "Etc/GMT+2"
		_, err := l.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: s.ID, Timezone: &name})
		require.NoError(s.t, err)
		require.Len(s.t, s.notes(), 1)
		_, err = l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		require.Equal(s.t, "2000-01-01 08:00:00", s.planned(id).In(zone).Format(time.DateTime))
		s.look(l)
		require.Len(s.t, s.notes(), 1)
		_, err = l.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		require.Len(s.t, s.notes(), 2, "a code does not wait")
		_, err = l.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 24 + 8}) // a day before its end is six in the morning
		require.NoError(s.t, err)
		require.True(s.t, s.planned(id).IsZero(), "too soon after now")
		_, err = l.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 24})
		require.NoError(s.t, err)
		require.Equal(s.t, "08:00", s.planned(id).In(zone).Format("15:04"))
	})
	f("the courier's code once more", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail, cloud.BySMS)
		courier := func(l *locker.Service, by cloud.NotificationChannel) (locker.ResendOutput, error) {
			return l.ResendDeliveryCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-1", Channel: by})
		}
		_, err := courier(l, cloud.BySMS)
		require.Equal(s.t, "no_phone", unsent(err))
		_, err = l.Edit(ctx, s.Box.ProviderCaller, locker.EditInput{Delivery: "ref:R-1", Courier: &cloud.Courier{Name: "Cy", Phone: "+1 416 555 0199"}})
		require.NoError(s.t, err)
		out, err := courier(l, cloud.BySMS)
		require.NoError(s.t, err)
		require.Equal(s.t, "***199", out.SentTo)
		n := s.notes()[0]
		require.Equal(s.t, []any{cloud.NotifyDeliveryCode, "+14165550199", *s.find().DeliveryCode, "PK-1"}, []any{n.Kind, n.To, n.Parcel.Code, n.Parcel.Numbers[0]})
		_, err = courier(l, cloud.ByEmail)
		require.Equal(s.t, "courier_email", unsent(err))
		_, err = courier(s.notifying(cloud.ByEmail), cloud.BySMS)
		require.Equal(s.t, "not_offered", unsent(err), "without a gateway")
		other := s.Box.ProviderCaller
		other.Provider.ID++
		_, err = l.ResendDeliveryCode(ctx, other, locker.ResendInput{Delivery: "ref:R-1", Channel: cloud.BySMS})
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
		s.waiting(l)
		_, err = courier(l, cloud.BySMS)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), "it was brought")
		require.Equal(s.t, cloud.NotifyParcelWaiting, s.notes()[0].Kind)
	})
	f("not against the partner's wish, unless the partner asks", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail)
		s.addressed(l, &cloud.Notify{SMS: true})
		s.waiting(l)
		require.Empty(s.t, s.notes())
		_, err := resend(s, l, "email")
		require.NoError(s.t, err)
		require.Len(s.t, s.notes(), 1)
	})
	f("no address, no mail; another's delivery", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail)
		s.waiting(l)
		require.Empty(s.t, s.notes())
		_, err := resend(s, l, "email")
		require.Equal(s.t, "no_email", unsent(err))
		other := s.Box.ProviderCaller
		other.Provider.ID++
		_, err = l.ResendPickupCode(ctx, other, locker.ResendInput{Delivery: "ref:R-1", Channel: "email"})
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
	})
	f("the person who collects in the recipient's place", 1, func(s *story) {
		l := s.notifying(cloud.ByEmail, cloud.BySMS)
		s.addressed(l, nil)
		s.waiting(l)
		require.Len(s.t, s.notes(), 1)
		hand := func(phone string) *string {
			out, err := l.HandOver(ctx, s.Box.ProviderCaller, locker.HandoverInput{Delivery: "ref:R-1", Name: "Bo", Phone: phone})
			require.NoError(s.t, err)
			return out.PickupCode
		}
		hand("")
		_, err := resend(s, l, "email")
		require.Equal(s.t, "handed_over", unsent(err))
		require.Len(s.t, s.notes(), 1, "the code of the other person is not the recipient's to have")
		given := hand("+1 416 555 0188")
		n := s.notes()[0]
		require.Equal(s.t, []any{2, cloud.BySMS, cloud.NotifyParcelCode, "+14165550188", "Bo", *given}, []any{len(s.notes()), n.Channel, n.Kind, n.To, n.Name, n.Parcel.Code})
		when, err := l.WhenToNotify(ctx, n.Notification, time.Now())
		require.NoError(s.t, err)
		require.False(s.t, when.IsZero())
		out, err := resend(s, l, "sms")
		require.NoError(s.t, err)
		require.Equal(s.t, "***188", out.SentTo)
		_, err = l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		s.look(l)
		require.Len(s.t, s.notes(), 3, "reminders are the recipient's")
		_, err = l.TakeBack(ctx, s.Box.ProviderCaller, locker.TakeBackInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{4, "jane.smith@example.com"}, []any{len(s.notes()), s.notes()[0].To})
		when, err = l.WhenToNotify(ctx, n.Notification, time.Now())
		require.NoError(s.t, err)
		require.True(s.t, when.IsZero(), "not to the other person any more")
	})
}

// sendable are the short messages that a sender would hand over after a while.
func (s *story) sendable(l *locker.Service, after time.Duration) (out []cloud.NotificationRow) {
	s.t.Helper()
	now := time.Now().Add(after)
	list, err := s.Store.ClaimNotifications(ctx, cloud.BySMS, now, 20)
	require.NoError(s.t, err)
	for _, n := range list {
		when, err := l.WhenToNotify(ctx, n.Notification, now)
		require.NoError(s.t, err)
		if now.Before(n.Until) && !when.IsZero() && !when.After(now) {
			out = append(out, n)
		}
	}
	require.NoError(s.t, s.Store.RecoverNotifications(ctx, cloud.BySMS))
	return out
}

// What waits for a gateway that is down is sent only while it is still true.
func TestNotificationsThatAreNoLongerTrue(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories of cmd/e2e")
	f := plays(t)
	edit := func(s *story, l *locker.Service, in locker.EditInput) {
		s.t.Helper()
		in.Delivery = "ref:R-1"
		_, err := l.Edit(ctx, s.Box.ProviderCaller, in)
		require.NoError(s.t, err)
	}
	courier := func(s *story, l *locker.Service) {
		s.t.Helper()
		edit(s, l, locker.EditInput{Courier: &cloud.Courier{Name: "Cy", Phone: "+14165550001"}})
		_, err := l.ResendDeliveryCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-1", Channel: cloud.BySMS})
		require.NoError(s.t, err)
		require.Len(s.t, s.sendable(l, time.Hour), 1)
	}
	waiting := func(s *story, l *locker.Service) {
		s.t.Helper()
		s.waiting(l)
		require.Len(s.t, s.sendable(l, time.Hour), 1)
	}
	for name, step := range map[string]struct {
		begin func(*story, *locker.Service)
		then  func(*story, *locker.Service)
	}{
		"another courier": {courier, func(s *story, l *locker.Service) {
			edit(s, l, locker.EditInput{Courier: &cloud.Courier{Name: "Di", Phone: "+14165550002"}})
		}},
		"cancelled":       {courier, func(s *story, _ *locker.Service) { require.NoError(s.t, s.cancel()) }},
		"brought already": {courier, func(s *story, l *locker.Service) { edit(s, l, locker.EditInput{Notify: &cloud.Notify{}}); s.waiting(l) }},
		"another telephone number": {waiting, func(s *story, l *locker.Service) {
			edit(s, l, locker.EditInput{Recipient: &cloud.Recipient{Name: "Jane", Phone: "+14165550777"}})
		}},
		"collected": {waiting, func(s *story, _ *locker.Service) { s.pickUp("op-9", 2, nil, 1) }},
		"another person collects": {waiting, func(s *story, l *locker.Service) {
			_, err := l.HandOver(ctx, s.Box.ProviderCaller, locker.HandoverInput{Delivery: "ref:R-1", Name: "Bo"})
			require.NoError(s.t, err)
		}},
	} {
		f(name, 1, func(s *story) {
			l := s.notifying(cloud.BySMS)
			step.begin(s, l)
			step.then(s, l)
			require.Empty(s.t, s.sendable(l, time.Hour))
		})
	}
	f("another code: the last one alone is sent, a minute after the one before", 1, func(s *story) {
		l := s.notifying(cloud.BySMS)
		waiting(s, l)
		for range 8 {
			_, err := l.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
			require.NoError(s.t, err)
		}
		require.Empty(s.t, s.sendable(l, 0), "the first one went before")
		require.Empty(s.t, s.sendable(l, 30*time.Second))
		left := s.sendable(l, time.Minute)
		require.Len(s.t, left, 1)
		require.Equal(s.t, *s.find().PickupCode, left[0].Parcel.Code)
	})
	f("a look that is late, and a gateway that is back in the night", 1, func(s *story) {
		l := s.notifying(cloud.BySMS)
		waiting(s, l)
		id := s.find().DeliveryID
		night, evening := "Etc/GMT+2", "Etc/GMT+4" // ten and eight in the evening
		zone := func(name *string) {
			_, err := l.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: s.ID, Timezone: name})
			require.NoError(s.t, err)
		}
		zone(&night)
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Reminders: []cloud.Reminder{{DeliveryID: id, At: time.Now().Add(-65 * time.Minute)}}}}, nil
		}))
		time.Sleep(5 * time.Second)
		s.look(l)
		require.Len(s.t, s.notes(), 1)
		require.Equal(s.t, "2000-01-01 08:00:00", s.planned(id).In(time.FixedZone("", -2*3600)).Format(time.DateTime))
		zone(&evening)
		_, err := l.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		s.look(l)
		overdue := func(n cloud.NotificationRow) bool { return n.Kind == cloud.NotifyParcelOverdue }
		require.True(s.t, slices.ContainsFunc(s.sendable(l, 0), overdue), "it is eight in the evening")
		require.False(s.t, slices.ContainsFunc(s.sendable(l, 4*time.Hour), overdue), "it is midnight")
		require.True(s.t, slices.ContainsFunc(s.sendable(l, 12*time.Hour+time.Minute), overdue))
	})
	f("a courier corrects the deposit: its recipient is notified after that", 1, func(s *story) {
		l := s.notifying(cloud.BySMS)
		s.waiting(l)
		s.Command(&wire.CloseSession{})
		var b asked
		_, err := s.correct(func(x asked) { b = x; s.opened(x) })
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryCorrecting, s.find().Status)
		n := s.notes()[0].Notification
		when, err := l.WhenToNotify(ctx, n, time.Now())
		require.NoError(s.t, err)
		require.Equal(s.t, time.Minute, time.Until(when))
		s.settle(b)
		require.Len(s.t, s.sendable(l, time.Minute), 1)
	})
	f("past its deadline", 1, func(s *story) {
		l := s.notifying(cloud.BySMS)
		courier(s, l)
		s.open()
		s.soon(time.Second)
		time.Sleep(time.Minute)
		require.Equal(s.t, cloud.DeliveryDoorsOpened, s.find().Status)
		require.Empty(s.t, s.sendable(l, 0))
		_, err := l.ResendDeliveryCode(ctx, s.Box.ProviderCaller, locker.ResendInput{Delivery: "ref:R-1", Channel: cloud.BySMS})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
	})
}

// unsent is the reason why nothing was sent, "" for other errors. Every reason has words.
func unsent(err error) string {
	var e *cloud.Error
	if !errors.As(err, &e) || e.Code != "CHANNEL_NOT_CONFIGURED" || strings.Contains(locale.Error("en", e.Code, e.Args...), "unsent") {
		return ""
	}
	return fmt.Sprint(e.Args...)
}

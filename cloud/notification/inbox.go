package notification

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
)

// Decider is the database, as far as lists are made of it.
type Decider interface {
	Look(ctx context.Context, look func(cloud.View) error) error
}

// Lists shows what became of notifications, and the inbox of the sandbox. Staff see those of
// their business, a provider those about its own deliveries. Safe for concurrent use.
type Lists struct{ Store Decider }

// Row is a notification as it is listed: without its text, which is sealed until it is sent
// and erased then.
type Row struct {
	NotificationID string                    `json:"notification_id"`
	Kind           cloud.NotificationKind    `json:"kind"`
	Channel        cloud.NotificationChannel `json:"channel"`
	Status         cloud.NotificationState   `json:"status"`
	DeliveryID     cloud.DeliveryID          `json:"delivery_id"`
	Attempts       int                       `json:"attempts"`
	Reason         *string                   `json:"reason" doc:"Why it was not sent: refused; server for one that was asked too often; obsolete for one that was no longer true"`
	CreatedAt      *string                   `json:"created_at"`
	EndedAt        *string                   `json:"ended_at"`
}

// Input asks for a part of the notifications.
type Input struct {
	check.Keyset
	Delivery cloud.DeliveryID        `query:"delivery_id" min:"1"`
	Status   cloud.NotificationState `query:"status" enum:"waiting,sent,failed,expired"`
}

// Output lists notifications.
type Output struct {
	Result bool `json:"result"`
	check.PageOutput
	Notifications []Row `json:"notifications"`
}

// List lists the notifications to recipients and couriers, the newest first.
func (l Lists) List(ctx context.Context, c cloud.Caller, in Input) (out Output, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	f := ownedBy(c)
	f.DeliveryID, f.Status, f.Page = in.Delivery, in.Status, page
	err = l.Store.Look(ctx, func(v cloud.View) error {
		list, listed, zone, err := read(v, f)
		if err != nil {
			return err
		}
		out = Output{Result: true, PageOutput: in.Output(in, listed), Notifications: []Row{}}
		for _, n := range list {
			out.Notifications = append(out.Notifications, Row{NotificationID: n.ID, Kind: n.Kind, Channel: n.Channel, Status: n.State, DeliveryID: n.DeliveryID, Attempts: n.Attempts,
				Reason: cloud.OrNull(n.Reason), CreatedAt: cloud.Stamp(n.At, zone), EndedAt: cloud.Stamp(n.EndedAt, zone)})
		}
		return nil
	})
	return out, err
}

// ownedBy are the notifications that a caller may see.
func ownedBy(c cloud.Caller) cloud.NotificationFilter {
	if c.Provider.ID != 0 {
		return cloud.NotificationFilter{BusinessID: c.Provider.BusinessID, ProviderID: c.Provider.ID}
	}
	return cloud.NotificationFilter{BusinessID: c.Account.BusinessID}
}

func read(v cloud.View, f cloud.NotificationFilter) (list []cloud.NotificationRow, listed cloud.Listed, zone *time.Location, err error) {
	b, err := v.Business(f.BusinessID)
	if err != nil {
		return nil, listed, nil, err
	}
	list, listed, err = v.Notifications(f)
	return list, listed, b.Location(), err
}

// Message is a notification of the sandbox, as it would have been sent.
type Message struct {
	MessageID      string                    `json:"message_id"`
	Kind           cloud.NotificationKind    `json:"kind"`
	Channel        cloud.NotificationChannel `json:"channel"`
	SentTo         string                    `json:"sent_to" doc:"Email address, or telephone number"`
	Language       string                    `json:"language"`
	Subject        *string                   `json:"subject" doc:"Of a mail"`
	Text           string                    `json:"text"`
	Segments       *int                      `json:"segments" doc:"How many messages an SMS is charged as"`
	DeliveryID     cloud.DeliveryID          `json:"delivery_id"`
	DeliveryNumber *string                   `json:"delivery_number"`
	CreatedAt      *string                   `json:"created_at"`
}

// InboxInput asks for a part of the inbox of the sandbox.
type InboxInput struct {
	check.Keyset
	Delivery cloud.DeliveryID `query:"delivery_id" min:"1"`
}

// InboxOutput lists messages of the sandbox.
type InboxOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Messages []Message `json:"messages"`
}

// Inbox lists the notifications about test deliveries, the newest first. They are kept for
// 30 days.
func (l Lists) Inbox(ctx context.Context, c cloud.Caller, in InboxInput) (out InboxOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	f := ownedBy(c)
	f.Sandbox, f.DeliveryID, f.Page = true, in.Delivery, page
	err = l.Store.Look(ctx, func(v cloud.View) error {
		list, listed, zone, err := read(v, f)
		if err != nil {
			return err
		}
		out = InboxOutput{Result: true, PageOutput: in.Output(in, listed), Messages: []Message{}}
		for _, n := range list {
			m, err := message(v, n, zone)
			if err != nil {
				return err
			}
			out.Messages = append(out.Messages, m)
		}
		return nil
	})
	return out, err
}

// MessageInput names a message of the sandbox.
type MessageInput struct {
	ID string `path:"message_id" json:"-"`
}

// MessageOutput is a message of the sandbox.
type MessageOutput struct {
	Result  bool    `json:"result"`
	Message Message `json:"message"`
}

// FindMessage finds a message of the sandbox. Error: NOTIFICATION_NOT_FOUND.
func (l Lists) FindMessage(ctx context.Context, c cloud.Caller, in MessageInput) (out MessageOutput, err error) {
	f := ownedBy(c)
	err = l.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(f.BusinessID)
		if err != nil {
			return err
		}
		n, err := v.SandboxNotification(b.ID, in.ID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && f.ProviderID != 0 && n.ProviderID != f.ProviderID {
			return cloud.E(cloud.NotFound, "NOTIFICATION_NOT_FOUND")
		}
		if err != nil {
			return err
		}
		m, err := message(v, n, b.Location())
		out = MessageOutput{Result: true, Message: m}
		return err
	})
	return out, err
}

// message is a notification of the sandbox in words.
func message(v cloud.View, n cloud.NotificationRow, zone *time.Location) (Message, error) {
	m := Message{MessageID: n.ID, Kind: n.Kind, Channel: n.Channel, SentTo: n.To, Language: locale.Negotiate(n.Language), DeliveryID: n.DeliveryID, CreatedAt: cloud.Stamp(n.At, zone)}
	switch d, err := v.Delivery(n.DeliveryID); {
	case err == nil:
		m.DeliveryNumber = &d.Number
	case !errors.Is(err, cloud.ErrNotFound):
		return m, err
	}
	if n.Channel == cloud.BySMS {
		x, err := ComposeSMS(n.Notification, n.At)
		m.Text, m.Segments = x.Text, &x.Segments
		return m, leaveRefused(err)
	}
	x, err := Compose(n.Notification, n.At)
	m.Subject, m.Text = &x.Subject, x.Text
	return m, leaveRefused(err)
}

// leaveRefused is an error but for that of a notification that no carrier would take.
func leaveRefused(err error) error {
	if errors.Is(err, ErrRefused) {
		return nil
	}
	return err
}

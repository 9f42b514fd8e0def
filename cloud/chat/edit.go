package chat

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
)

// EditInput is another text for a message.
type EditInput struct {
	ID   cloud.ChatMessageID `path:"message_id" json:"-"`
	Text string              `json:"text" required:"true" max:"2000"`
}

// MessageInput names a message.
type MessageInput struct {
	ID cloud.ChatMessageID `path:"message_id" json:"-"`
}

// Edit gives an own message another text, within ten minutes. Errors:
// MESSAGE_NOT_FOUND, NOT_A_PARTICIPANT, NOT_THE_AUTHOR, MESSAGE_NOT_EDITABLE,
// CONVERSATION_CLOSED, VALIDATION_FAILED.
func (s messages) Edit(ctx context.Context, c cloud.Caller, in EditInput) (MessageOutput, error) {
	return s.change(ctx, c, in.ID, func(x *participant, m *cloud.ChatMessage) (string, error) {
		switch {
		case !m.DeletedAt.IsZero():
			return "", cloud.E(cloud.Conflict, codeFixed)
		case m.Text == in.Text:
			return "", nil
		}
		m.Text, m.EditedAt = in.Text, x.now
		return eventUpdated, nil
	})
}

// Delete takes the content of an own message away, within ten minutes; its ids
// stay. Errors: those of Edit.
func (s messages) Delete(ctx context.Context, c cloud.Caller, in MessageInput) (MessageOutput, error) {
	return s.change(ctx, c, in.ID, func(x *participant, m *cloud.ChatMessage) (string, error) {
		if !m.DeletedAt.IsZero() {
			return "", nil
		}
		for _, a := range m.Attachments {
			x.ch.DroppedFiles = append(x.ch.DroppedFiles, kept(a)...)
		}
		m.Text, m.Attachments, m.Place, m.ReplyTo, m.ReplyToStaff, m.DeletedAt = "", nil, nil, 0, false, x.now
		return eventDeleted, nil
	})
}

// change changes an own message. fn gives the event that is sent of it; "": nothing has
// changed.
func (s messages) change(ctx context.Context, c cloud.Caller, id cloud.ChatMessageID, fn func(x *participant, m *cloud.ChatMessage) (event string, err error)) (out MessageOutput, err error) {
	unknown := cloud.E(cloud.NotFound, codeMessage)
	var order cloud.OrderID
	err = s.store.Look(ctx, func(v cloud.View) error {
		m, ok, err := found(v.ChatMessage(c.Account.BusinessID, id))
		if order = m.OrderID; err == nil && !ok {
			err = unknown
		}
		return err
	})
	if err != nil {
		return out, err
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, order)
		var refused *cloud.Error
		if errors.As(err, &refused) && refused.Code == codeOrder {
			err = unknown
		}
		if err != nil {
			return nil, err
		}
		m, ok, err := x.find(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, unknown
		}
		if m.Sender.Account != x.me.Account {
			return nil, cloud.E(cloud.Forbidden, codeAuthor)
		}
		if err := x.checkWrite(); err != nil {
			return nil, err
		}
		event, err := fn(x, &m)
		if err != nil {
			return nil, err
		}
		if event != "" && x.now.Sub(m.CreatedAt) > editable {
			return nil, cloud.E(cloud.Conflict, codeFixed)
		}
		out = MessageOutput{Result: true}
		if out.Message, err = x.message(m); err != nil || event == "" {
			return nil, err
		}
		x.markChanged(m.Staff)
		if err := x.addMessageEvent(event, &m); err != nil {
			return nil, err
		}
		x.ch.ChatMessages = []cloud.ChatMessage{m}
		return x.changes(), nil
	})
	if err != nil {
		return MessageOutput{}, err
	}
	return out, nil
}

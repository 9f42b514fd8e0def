package chat

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/postern-io/postern/cloud"
)

// Types of live events.
const (
	eventCreated     = "message.created"
	eventUpdated     = "message.updated"
	eventDeleted     = "message.deleted"
	eventRead        = "message.read"
	eventTyping      = "typing"
	eventClosed      = "conversation.closed"
	eventReopened    = "conversation.reopened"
	eventParticipant = "participant.changed"
)

// Event is what listeners are told.
type Event struct {
	ID             string                `json:"event_id"`
	Type           string                `json:"type"`
	OrderID        cloud.OrderID         `json:"order_id"`
	ConversationID *cloud.ConversationID `json:"conversation_id"` // null before the first message
	OccurredAt     string                `json:"occurred_at"`
	Data           any                   `json:"data"`
}

type messageEvent struct {
	Message Message `json:"message"`
}

type readEvent struct {
	Reader Party               `json:"reader"`
	UpTo   cloud.ChatMessageID `json:"last_message_id"`
}

type typingEvent struct {
	Participant Party `json:"participant"`
	Typing      bool  `json:"typing"`
}

type conversationEvent struct {
	Status   string  `json:"status"`
	By       *Party  `json:"by"` // null when nobody did it
	ClosesAt *string `json:"closes_at"`
}

type participantEvent struct {
	Change      string      `json:"change"` // added, removed, muted, unmuted
	Participant Participant `json:"participant"`
}

// tell adds a live event: for dispatchers and driver, or for everybody.
func (x *seat) tell(staff bool, kind string, data any) error {
	x.events++
	e := Event{ID: newID("och_", x.now, x.events), Type: kind, OrderID: x.o.ID, ConversationID: cloud.OrNull(x.talk.ID), OccurredAt: x.stamp(x.now), Data: data}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode live event: %w", err)
	}
	to := cloud.LiveChat
	if staff {
		to = cloud.LiveChatStaff
	}
	x.ch.Live = append(x.ch.Live, cloud.LiveEvent{ID: e.ID, Kind: to, BusinessID: x.o.BusinessID, Subject: int64(x.o.ID), At: x.now, Body: body, Passing: kind == eventTyping})
	return nil
}

// tellMessage tells of a message to those whom it is for.
func (x *seat) tellMessage(kind string, m cloud.ChatMessage) error {
	list, err := x.messages([]cloud.ChatMessage{m}, m.Staff)
	if err != nil {
		return err
	}
	return x.tell(m.Staff, kind, messageEvent{list[0]})
}

const pushBody = 120 // characters

// push sends a word about a message to the order's driver, unless it is the
// driver's own.
func (x *seat) push(m cloud.ChatMessage) {
	driver := x.o.DriverID
	if driver == 0 || driver == m.Sender.Account || x.b.Settings.Chat.NoDriver {
		return
	}
	if to := x.talk.Member(driver); to != nil && (to.Out || to.Muted) {
		return
	}
	x.ch.Pushes = append(x.ch.Pushes, cloud.Push{ID: newID("psh_", x.now, 0), BusinessID: x.o.BusinessID, DriverID: driver, Type: "order_chat_message", Title: cmp.Or(m.Sender.Name, x.o.Number), Body: brief(m),
		Data: cloud.PushData{OrderID: x.o.ID, ConversationID: int64(x.talk.ID), MessageID: int64(m.ID), TrackingNumber: x.o.Number}, At: x.now,
		Collapse: fmt.Sprintf("conversation:%d", x.talk.ID)})
}

// brief is a message on one line.
func brief(m cloud.ChatMessage) string {
	text := m.Text
	if text == "" && len(m.Attachments) > 0 {
		text = m.Attachments[0].Name
	}
	if p := m.Place; text == "" && p != nil {
		text = cmp.Or(p.Label, fmt.Sprintf("%.5f, %.5f", p.Latitude, p.Longitude))
	}
	r := []rune(text)
	return string(r[:min(len(r), pushBody)])
}

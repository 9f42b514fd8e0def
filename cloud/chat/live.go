package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

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

// Event is what listeners receive.
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
	By       *Party  `json:"by"` // null when no participant did it
	ClosesAt *string `json:"closes_at"`
}

type participantEvent struct {
	Change      string      `json:"change"` // added, removed, muted, unmuted
	Participant Participant `json:"participant"`
}

// addEvent adds a live event: for dispatchers and driver, or for all participants.
func (x *participant) addEvent(staff bool, kind string, data any) error {
	e, err := x.event(staff, x.newEvent(kind), data)
	x.ch.Live = append(x.ch.Live, e)
	return err
}

// newEvent is an event of this decision.
func (x *participant) newEvent(kind string) cloud.ChatSent {
	x.events++
	return cloud.ChatSent{ID: newID("och_", x.now, x.events), Type: kind, At: x.now}
}

func (x *participant) event(staff bool, t cloud.ChatSent, data any) (cloud.LiveEvent, error) {
	body, err := json.Marshal(Event{ID: t.ID, Type: t.Type, OrderID: x.o.ID, ConversationID: cloud.OrNull(x.talk.ID), OccurredAt: x.stamp(t.At), Data: data})
	if err != nil {
		return cloud.LiveEvent{}, fmt.Errorf("encode live event: %w", err)
	}
	to := cloud.LiveChat
	if staff {
		to = cloud.LiveChatStaff
	}
	return cloud.LiveEvent{ID: t.ID, Kind: to, BusinessID: x.o.BusinessID, Subject: int64(x.o.ID), At: t.At, Body: body, Passing: t.Type == eventTyping}, nil
}

// addMessageEvent sends a message to those whom it is for. The events that were sent of
// a deleted one lose its words: it is sent again to listeners who come back.
func (x *participant) addMessageEvent(kind string, m *cloud.ChatMessage) error {
	others := *x
	others.c = x.c.ForOthers()
	list, err := others.messages([]cloud.ChatMessage{*m}, m.Staff)
	if err != nil {
		return err
	}
	t := x.newEvent(kind)
	e, err := x.event(m.Staff, t, messageEvent{list[0]})
	if err != nil {
		return err
	}
	x.ch.Live = append(x.ch.Live, e)
	if m.DeletedAt.IsZero() {
		m.Reached = append(slices.DeleteFunc(slices.Clone(m.Reached), func(t cloud.ChatSent) bool { return x.now.Sub(t.At) > toldFor }), t)
		return nil
	}
	for _, t := range m.Reached {
		e, err := x.event(m.Staff, t, messageEvent{list[0]})
		if err != nil {
			return err
		}
		x.ch.Reworded = append(x.ch.Reworded, e)
	}
	if m.Push != "" {
		x.ch.RewordedPushes = append(x.ch.RewordedPushes, x.pushOf(*m))
	}
	m.Reached, m.Push = nil, ""
	return nil
}

// toldFor is how long a live event is surely kept no more.
const toldFor = cloud.LiveKept + time.Minute

const pushBody = 120 // characters

// push sends a word about a message to the order's driver, unless it is the
// driver's own.
func (x *participant) push(m *cloud.ChatMessage) {
	driver := x.o.DriverID
	if driver == 0 || driver == m.Sender.Account || x.b.Settings.Chat.NoDriver {
		return
	}
	if to := x.talk.Member(driver); to != nil && (to.Out || to.Muted) {
		return
	}
	m.Push = newID("psh_", x.now, 0)
	x.ch.Pushes = append(x.ch.Pushes, x.pushOf(*m))
}

// pushOf is the push of a message to the order's driver; of one that is deleted it
// says only of which order it was.
func (x *participant) pushOf(m cloud.ChatMessage) cloud.Push {
	p := cloud.Push{ID: m.Push, BusinessID: x.o.BusinessID, DriverID: x.o.DriverID, Type: "order_chat_message", Title: cmp.Or(m.Sender.Name, x.o.Number), Body: x.o.Number,
		Data: cloud.PushData{OrderID: x.o.ID, ConversationID: int64(x.talk.ID), MessageID: int64(m.ID), TrackingNumber: x.o.Number}, At: m.CreatedAt,
		Collapse: fmt.Sprintf("conversation:%d", x.talk.ID)}
	if m.DeletedAt.IsZero() {
		p.Body = brief(m)
	}
	return p
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

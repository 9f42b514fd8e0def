package chat

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// SendInput is a message.
type SendInput struct {
	OrderID       cloud.OrderID       `path:"order_id" json:"order_id" required:"true"`
	ClientID      string              `json:"client_message_id" max:"64" doc:"The sender's own id: sent again, it is the first message"`
	Kind          string              `json:"kind" enum:"text,image,file,location,quick_reply" doc:"What it is; left out, it is found from what is given"`
	Text          string              `json:"text" max:"2000" doc:"Plain text"`
	QuickReplyID  string              `json:"quick_reply_id" doc:"One of the business's quick replies, in place of text"`
	AttachmentIDs []int64             `json:"attachment_ids" max:"5" doc:"Files that were uploaded for this order"`
	Location      *PlaceInput         `json:"location" null:"true"`
	ReplyTo       cloud.ChatMessageID `json:"reply_to" graphql:"Long" null:"true"`
	Audience      string              `json:"audience" enum:"all,staff_driver" doc:"all, or only dispatchers and the driver"`
}

// GraphQLName is the type's name there, without Input.
func (SendInput) GraphQLName() string { return "OrderChatSend" }

// MessageOutput shows a message.
type MessageOutput struct {
	Result  bool    `json:"result"`
	Message Message `json:"message"`
}

// Kinds of messages.
const (
	kindText       = "text"
	kindImage      = "image"
	kindFile       = "file"
	kindLocation   = "location"
	kindQuickReply = "quick_reply"
	kindSystem     = "system"
	kindFiles      = "files" // image or file, as the files are
)

// check checks what can be checked without the order, and fills in kind and
// audience.
func (in *SendInput) check() error {
	f := fields{check.Of(in)} // also of what comes over a socket
	switch {
	case in.Kind != "":
	case in.QuickReplyID != "":
		in.Kind = kindQuickReply
	case in.Location != nil:
		in.Kind = kindLocation
	case len(in.AttachmentIDs) > 0:
		in.Kind = kindFiles
	default:
		in.Kind = kindText
	}
	if in.Audience == "" {
		in.Audience = audienceAll
	}
	files, place := len(in.AttachmentIDs) > 0, in.Location != nil
	switch in.Kind {
	case kindText:
		if blank(in.Text) {
			f.required("text")
		}
	case kindImage, kindFile, kindFiles:
		if !files {
			f.required("attachment_ids")
		}
	case kindLocation:
		if !place {
			f.required("location")
		}
	case kindQuickReply:
		if in.QuickReplyID == "" {
			f.required("quick_reply_id")
		}
		if in.Text != "" {
			f.Add("text", "This does not go with a message of this kind.")
		}
	}
	if files && in.Kind != kindImage && in.Kind != kindFile && in.Kind != kindFiles {
		f.Add("attachment_ids", "This does not go with a message of this kind.")
	}
	if place && in.Kind != kindLocation {
		f.Add("location", "This does not go with a message of this kind.")
	}
	if in.QuickReplyID != "" && in.Kind != kindQuickReply {
		f.Add("quick_reply_id", "This does not go with a message of this kind.")
	}
	return f.Err()
}

// Send sends a message. Sent again under its sender's own id, it is the first
// message as it is now, also when the sender could not send a new one. Errors:
// ORDER_NOT_FOUND, NOT_A_PARTICIPANT, CONVERSATION_CLOSED, VALIDATION_FAILED,
// RATE_LIMITED.
func (s messages) Send(ctx context.Context, c cloud.Caller, in SendInput) (out MessageOutput, err error) {
	again := false
	err = s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.join(v, c, in.OrderID)
		if err != nil {
			return err
		}
		if again, err = x.sent(in.ClientID, &out); err != nil || again {
			return err
		}
		if err := x.checkWrite(); err != nil {
			return err
		}
		if err := in.check(); err != nil {
			return err
		}
		return s.spendAllowance("send", x)
	})
	if err != nil || again {
		return out, err
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, in.OrderID)
		if err != nil {
			return nil, err
		}
		if again, err := x.sent(in.ClientID, &out); err != nil || again { // at the same moment, through another node
			return nil, err
		}
		if err := x.checkWrite(); err != nil {
			return nil, err
		}
		m, err := x.compose(in)
		if err != nil {
			return nil, err
		}
		if err := x.addMessage(&m); err != nil {
			return nil, err
		}
		out = MessageOutput{Result: true}
		if out.Message, err = x.message(m); err != nil {
			return nil, err
		}
		if err := x.autoReply(m); err != nil {
			return nil, err
		}
		ch := x.changes()
		ch.Answer = out
		return ch, nil
	})
	return out, err
}

// sent shows the message that the caller sent under an id, if there is one.
func (x *participant) sent(id string, out *MessageOutput) (bool, error) {
	if id == "" {
		return false, nil
	}
	m, ok, err := found(x.v.ChatMessageByClient(x.o.BusinessID, x.o.ID, x.me.Account, id))
	if err != nil || !ok {
		return false, err
	}
	out.Result = true
	out.Message, err = x.message(m)
	return err == nil, err
}

// compose makes a message of an input that was checked.
func (x *participant) compose(in SendInput) (cloud.ChatMessage, error) {
	m := cloud.ChatMessage{ClientID: in.ClientID, Sender: x.me, Staff: in.Audience == audienceStaff, Kind: in.Kind, Text: in.Text}
	f := newFields()
	if m.Staff && !x.staff() {
		f.Say("audience", check.MessageEnum, audienceAll)
	}
	if p := in.Location; p != nil {
		m.Place = &cloud.ChatPlace{Latitude: *p.Latitude, Longitude: *p.Longitude}
		if p.Label != nil {
			m.Place.Label = *p.Label
		}
	}
	if in.Kind == kindQuickReply {
		list := x.b.Settings.Chat.QuickReplies
		i := slices.IndexFunc(list, func(q cloud.ChatQuickReply) bool { return q.ID == in.QuickReplyID })
		if i < 0 || list[i].Audience == audienceStaff && !x.staff() {
			f.Add("quick_reply_id", "There is no such quick reply.")
		} else {
			m.Text = list[i].Text
			m.Staff = m.Staff || list[i].Audience == audienceStaff
		}
	}
	if in.ReplyTo != 0 {
		to, ok, err := x.find(in.ReplyTo)
		if err != nil {
			return m, err
		}
		if !ok {
			f.Add("reply_to", "There is no such message in this conversation.")
		}
		m.ReplyTo, m.ReplyToStaff = in.ReplyTo, to.Staff
	}
	if err := x.attach(in, &m, f); err != nil {
		return m, err
	}
	return m, f.Err()
}

// find finds a message of this conversation that shows to the caller.
func (x *participant) find(id cloud.ChatMessageID) (cloud.ChatMessage, bool, error) {
	m, ok, err := found(x.v.ChatMessage(x.o.BusinessID, id))
	return m, ok && m.OrderID == x.o.ID && (!m.Staff || x.staff()), err
}

// addMessage puts a message into the conversation, which it begins when there is none.
func (x *participant) addMessage(m *cloud.ChatMessage) error {
	if err := x.open(); err != nil {
		return err
	}
	n, err := x.v.NewID(cloud.ChatMessageIDs)
	if err != nil {
		return err
	}
	m.ID = messageID(x.now, x.talk.Staff.Last, n)
	m.BusinessID, m.OrderID, m.ConversationID, m.CreatedAt = x.o.BusinessID, x.o.ID, x.talk.ID, x.now
	x.markChanged(m.Staff)
	x.talk.Staff.Last = m.ID
	if !m.Staff {
		x.talk.All.Last = m.ID
	}
	if err := x.addMessageEvent(eventCreated, m); err != nil {
		return err
	}
	if m.Sender.Account != cloud.SystemParty {
		x.member().Out = false
		x.push(m)
	}
	x.ch.ChatMessages = append(x.ch.ChatMessages, *m)
	return nil
}

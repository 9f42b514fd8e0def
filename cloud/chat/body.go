package chat

import (
	"cmp"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Party is who sent, read or does something. The recipient and the system have
// no id.
type Party struct {
	Type cloud.ChatRole   `json:"type"`
	ID   *cloud.AccountID `json:"id"`
	Name string           `json:"name"`
}

// GraphQLName is the type's name there.
func (Party) GraphQLName() string { return "OrderChatParty" }

// ReadBy says who read a message, and when.
type ReadBy struct {
	Type   cloud.ChatRole   `json:"type"`
	ID     *cloud.AccountID `json:"id"`
	ReadAt string           `json:"read_at" graphql:"DateTime!"`
}

// GraphQLName is the type's name there.
func (ReadBy) GraphQLName() string { return "OrderChatReader" }

// Attachment is a file of a message, with an address at which it can be read
// at for a week, and one of a small picture of it where there is one.
type Attachment struct {
	ID           int64   `json:"attachment_id"`
	Name         string  `json:"name"`
	MIME         string  `json:"mime_type"`
	Size         int64   `json:"size"`
	URL          string  `json:"url"`
	ThumbnailURL *string `json:"thumbnail_url"`
	Width        *int    `json:"width"`
	Height       *int    `json:"height"`
}

// GraphQLName is the type's name there.
func (Attachment) GraphQLName() string { return "OrderChatAttachment" }

// Message is a message as answers and live events show it.
type Message struct {
	ID             cloud.ChatMessageID  `json:"message_id" graphql:"Long!"`
	ClientID       *string              `json:"client_message_id"`
	ConversationID cloud.ConversationID `json:"conversation_id"`
	OrderID        cloud.OrderID        `json:"order_id"`
	Sender         Party                `json:"sender"`
	Audience       string               `json:"audience"`
	Kind           string               `json:"kind"`
	Text           *string              `json:"text"`
	Attachments    []Attachment         `json:"attachments" graphql:"!"`
	Location       *Place               `json:"location"`
	ReplyTo        *cloud.ChatMessageID `json:"reply_to" graphql:"Long"`
	Status         string               `json:"status"`
	ReadBy         []ReadBy             `json:"read_by" graphql:"!"`
	EditedAt       *string              `json:"edited_at" graphql:"DateTime"`
	DeletedAt      *string              `json:"deleted_at" graphql:"DateTime"`
	Translated     *map[string]string   `json:"translated"`
	CreatedAt      string               `json:"created_at" graphql:"DateTime!"`
}

// GraphQLName is the type's name there.
func (Message) GraphQLName() string { return "OrderChatMessage" }

// Place is a place on the map.
type Place struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Label     *string `json:"label"`
}

// GraphQLName is the type's name there.
func (Place) GraphQLName() string { return "OrderChatPlace" }

// PlaceInput is a place of a new message. 0 is on the equator, not absent.
type PlaceInput struct {
	Latitude  *float64 `json:"latitude" required:"true" min:"-90" max:"90"`
	Longitude *float64 `json:"longitude" required:"true" min:"-180" max:"180"`
	Label     *string  `json:"label" max:"200"`
}

// GraphQLName is the type's name there, without Input.
func (PlaceInput) GraphQLName() string { return "OrderChatPlace" }

// Conversation is a conversation as one participant sees it.
type Conversation struct {
	ID             cloud.ConversationID `json:"conversation_id"`
	OrderID        cloud.OrderID        `json:"order_id"`
	OrderRef       *string              `json:"order_ref"`
	TrackingNumber string               `json:"tracking_number"`
	BusinessID     cloud.BusinessID     `json:"business_id"`
	Status         string               `json:"status" enum:"open,closed"`
	Participants   []Participant        `json:"participants"`
	Unread         int                  `json:"unread"`
	LastMessage    *Message             `json:"last_message"`
	ClosesAt       *string              `json:"closes_at"`
	CreatedAt      *string              `json:"created_at"`
	UpdatedAt      *string              `json:"updated_at"`
}

// Values of status and audience.
const (
	statusOpen    = "open"
	statusClosed  = "closed"
	audienceAll   = "all"
	audienceStaff = "staff_driver"
)

func partyOf(p cloud.ChatParty) Party {
	out := Party{Type: p.Role, Name: p.Name}
	if p.Account > 0 {
		out.ID = &p.Account
	}
	return out
}

// messageBody is a message as it is, without who has read it. staff says for whom.
func (x *participant) messageBody(m cloud.ChatMessage, staff bool) Message {
	zone := x.b.Location()
	out := Message{ID: m.ID, ClientID: cloud.OrNull(m.ClientID), ConversationID: m.ConversationID, OrderID: m.OrderID, Sender: partyOf(m.Sender), Audience: audienceAll, Kind: m.Kind,
		Text: cloud.OrNull(m.Text), Attachments: []Attachment{}, Status: "sent", ReadBy: []ReadBy{}, EditedAt: cloud.Stamp(m.EditedAt, zone), DeletedAt: cloud.Stamp(m.DeletedAt, zone),
		CreatedAt: *cloud.Stamp(m.CreatedAt, zone)}
	if m.Staff {
		out.Audience = audienceStaff
	}
	for _, a := range m.Attachments {
		out.Attachments = append(out.Attachments, x.attachment(a))
	}
	if p := m.Place; p != nil {
		out.Location = &Place{p.Latitude, p.Longitude, cloud.OrNull(p.Label)}
	}
	if staff || !m.ReplyToStaff {
		out.ReplyTo = cloud.OrNull(m.ReplyTo)
	}
	return out
}

func (x *participant) attachment(a cloud.ChatAttachment) Attachment {
	sign := func(path string) string { return x.c.BaseURL + x.s.cfg.SignFile(path, x.now.Add(fileSigned)) }
	out := Attachment{ID: a.ID, Name: a.Name, MIME: a.MIME, Size: a.Size, URL: sign(a.Path), Width: cloud.OrNull(a.Width), Height: cloud.OrNull(a.Height)}
	if a.Thumbnail != "" {
		small := sign(a.Thumbnail)
		out.ThumbnailURL = &small
	}
	return out
}

// messages are messages of the conversation, which stand in the order of their
// ids, with who has read them.
func (x *participant) messages(list []cloud.ChatMessage, staff bool) ([]Message, error) {
	out := make([]Message, len(list))
	if len(list) == 0 {
		return out, nil
	}
	for i, m := range list {
		out[i] = x.messageBody(m, staff)
	}
	for _, m := range x.talk.Members {
		reads, err := x.reads(m, list[0].ID, list[len(list)-1].ID)
		if err != nil {
			return nil, err
		}
		for i, said := range list {
			switch {
			case said.Sender.Account == m.Account, said.Staff && !m.Role.SeesStaff():
			case m.Read >= said.ID:
				out[i].Status = "read"
				k, _ := slices.BinarySearchFunc(reads, said.ID, func(r cloud.ChatRead, id cloud.ChatMessageID) int { return cmp.Compare(r.UpTo, id) })
				out[i].ReadBy = append(out[i].ReadBy, ReadBy{Type: m.Role, ID: partyOf(m.ChatParty).ID, ReadAt: *cloud.Stamp(reads[k].At, x.b.Location())})
			case m.Fetched >= said.ID && out[i].Status == "sent":
				out[i].Status = "delivered"
			}
		}
	}
	return out, nil
}

// reads are when a member read what lies from one message to another: the last
// of them is at to or beyond, or at what was read last.
func (x *orderChat) reads(m cloud.ChatMember, from, to cloud.ChatMessageID) (all []cloud.ChatRead, err error) {
	const step = 200
	for m.Read >= from {
		part, err := x.v.ChatReads(x.o.BusinessID, x.o.ID, m.Account, from, step)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if len(part) < step || part[len(part)-1].UpTo >= to {
			return all, nil
		}
		from = part[len(part)-1].UpTo + 1
	}
	return all, nil
}

// message is one message with who has read it.
func (x *participant) message(m cloud.ChatMessage) (Message, error) {
	list, err := x.messages([]cloud.ChatMessage{m}, x.staff())
	if err != nil {
		return Message{}, err
	}
	return list[0], nil
}

// conversation is the conversation as the caller sees it; nil when there is none
// for the caller.
func (x *participant) conversation() (*Conversation, error) {
	if !x.isVisible() {
		return nil, nil
	}
	zone, trace := x.b.Location(), x.talk.Trace(x.staff())
	out := &Conversation{ID: x.talk.ID, OrderID: x.o.ID, OrderRef: cloud.OrNull(x.o.Ref), TrackingNumber: x.o.Number, BusinessID: x.o.BusinessID, Status: statusOpen,
		ClosesAt: cloud.Stamp(x.closesAt(), zone), CreatedAt: cloud.Stamp(trace.CreatedAt, zone), UpdatedAt: cloud.Stamp(trace.UpdatedAt, zone)}
	if x.isClosed() {
		out.Status = statusClosed
	}
	var err error
	if out.Participants, err = x.participants(); err != nil {
		return nil, err
	}
	if out.Unread, err = x.unread(); err != nil {
		return nil, err
	}
	for _, id := range []cloud.ChatMessageID{trace.Last, x.talk.All.Last} {
		if id == 0 || out.LastMessage != nil {
			continue
		}
		m, err := x.v.ChatMessage(x.o.BusinessID, id)
		if err != nil {
			return nil, err
		}
		if !x.readsMessage(m) {
			continue
		}
		last, err := x.message(m)
		if err != nil {
			return nil, err
		}
		out.LastMessage = &last
	}
	return out, nil
}

// unread counts what the caller has not read.
func (x *participant) unread() (int, error) {
	var read cloud.ChatMessageID
	if m := x.talk.Member(x.me.Account); m != nil {
		read = m.Read
	}
	return x.v.ChatUnread(x.o.BusinessID, x.o.ID, x.staff(), x.me.Account, read)
}

// stamp is a time as answers show it.
func (x *orderChat) stamp(t time.Time) string { return *cloud.Stamp(t, x.b.Location()) }

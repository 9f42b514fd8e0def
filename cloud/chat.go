package cloud

import (
	"slices"
	"time"
)

// ConversationID and ChatMessageID name what is said about orders.
type (
	ConversationID int64
	ChatMessageID  int64 // unique in the deployment, growing within a conversation, below 2^53
)

// Sequences of the chat.
const (
	ConversationIDs   IDKind = "conversation"
	ChatMessageIDs    IDKind = "chat_message" // only their low bits are in a message's id
	ChatAttachmentIDs IDKind = "chat_attachment"
)

// ChatRole is the role of a participant in a conversation.
type ChatRole string

// Roles.
const (
	ChatDispatcher ChatRole = "dispatcher" // staff, and the contractor that holds the order
	ChatDriver     ChatRole = "driver"
	ChatCustomer   ChatRole = "customer"
	ChatRecipient  ChatRole = "recipient" // holders of the order's chat token; they count as one
	ChatSystem     ChatRole = "system"    // no account; only sends
)

// SeesStaff reports whether messages among dispatchers and driver are shown.
func (r ChatRole) SeesStaff() bool { return r == ChatDispatcher || r == ChatDriver }

// ChatParty is a participant of a conversation. Account is 0 for the recipient and
// SystemParty for the system.
type ChatParty struct {
	Role    ChatRole  `json:"Role"`
	Account AccountID `json:"Account"`
	Name    string    `json:"Name"`
}

// SystemParty stands for the system where accounts are named.
const SystemParty AccountID = -1

// Conversation is what is said about one order.
type Conversation struct {
	ID         ConversationID `json:"ID"`
	BusinessID BusinessID     `json:"BusinessID"`
	OrderID    OrderID        `json:"OrderID"`
	// ClosedAt is when it was closed, the zero time while it is open. One whose
	// order ended long enough ago is closed although no row says so yet.
	ClosedAt   time.Time    `json:"ClosedAt"`
	ReopenedAt time.Time    `json:"ReopenedAt"`
	Epoch      int          `json:"Epoch"` // counts how often it was opened again; tokens of recipients name it
	Members    []ChatMember `json:"Members"`
	All        ChatTrace    `json:"All"`   // of messages that all participants see
	Staff      ChatTrace    `json:"Staff"` // of all messages
	// AutoReplied is the beginning of the closed period in which the last
	// automatic reply was given.
	AutoReplied time.Time `json:"AutoReplied"`
}

// ChatTrace is what of a conversation shows to participants who see some of its
// messages. The zero value: nothing.
type ChatTrace struct {
	Last      ChatMessageID `json:"Last"`      // newest message
	CreatedAt time.Time     `json:"CreatedAt"` // of the first one
	UpdatedAt time.Time     `json:"UpdatedAt"`
}

// Trace is what shows of c to a participant.
func (c *Conversation) Trace(staff bool) ChatTrace {
	if staff {
		return c.Staff
	}
	return c.All
}

// Member is the member of an account, nil when there is none.
func (c *Conversation) Member(a AccountID) *ChatMember {
	if i := slices.IndexFunc(c.Members, func(m ChatMember) bool { return m.Account == a }); i >= 0 {
		return &c.Members[i]
	}
	return nil
}

// ChatMember is an account that has taken part in a conversation or was added.
type ChatMember struct {
	ChatParty
	Fetched ChatMessageID `json:"Fetched"` // newest message that was fetched
	Read    ChatMessageID `json:"Read"`    // newest message that was read
	ReadAll ChatMessageID `json:"ReadAll"` // newest of those that all participants see and was read
	Muted   bool          `json:"Muted"`   // gets no push, and no count of unread messages
	Out     bool          `json:"Out"`     // staff took them out
	// Contractor says that a dispatcher is none of the business's own people.
	Contractor bool `json:"Contractor"`
}

// ChatMessage is one message. A deleted one has no content.
type ChatMessage struct {
	ID             ChatMessageID    `json:"ID"`
	BusinessID     BusinessID       `json:"BusinessID"`
	OrderID        OrderID          `json:"OrderID"`
	ConversationID ConversationID   `json:"ConversationID"`
	ClientID       string           `json:"ClientID"` // the sender's own, unique per conversation and sender; "" none
	Sender         ChatParty        `json:"Sender"`
	Staff          bool             `json:"Staff"` // for dispatchers and driver only
	Kind           string           `json:"Kind"`  // text, image, file, location, quick_reply, system
	Text           string           `json:"Text"`
	Attachments    []ChatAttachment `json:"Attachments"`
	Place          *ChatPlace       `json:"Place"`
	ReplyTo        ChatMessageID    `json:"ReplyTo"`
	ReplyToStaff   bool             `json:"ReplyToStaff"` // what it replies to is for dispatchers and driver only
	CreatedAt      time.Time        `json:"CreatedAt"`
	EditedAt       time.Time        `json:"EditedAt"`
	DeletedAt      time.Time        `json:"DeletedAt"`
	// The live events that hold its words and, in Push, the id of its
	// driver's push: once it is deleted they hold them no more.
	Reached []ChatSent `json:"Told"`
	Push    string     `json:"Push"`
}

// ChatSent is a live event about a message.
type ChatSent struct {
	ID   string    `json:"ID"`
	Type string    `json:"Type"`
	At   time.Time `json:"At"`
}

// ChatPlace is a place that a participant sends.
type ChatPlace struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Label     string  `json:"label"`
}

// ChatAttachment is a file that goes with a message. It is a row of its own
// until a message has it.
type ChatAttachment struct {
	ID         int64      `json:"ID"`
	BusinessID BusinessID `json:"BusinessID"`
	OrderID    OrderID    `json:"OrderID"`
	By         AccountID  `json:"By"` // 0: the recipient
	Name       string     `json:"Name"`
	Path       string     `json:"Path"`
	Thumbnail  string     `json:"Thumbnail"` // where a small picture of it is kept; "" there is none
	MIME       string     `json:"MIME"`
	Size       int64      `json:"Size"`  // bytes
	Width      int        `json:"Width"` // pixels of a picture, 0 otherwise
	Height     int        `json:"Height"`
	At         time.Time  `json:"At"`
}

// Picture reports whether the file is one.
func (a ChatAttachment) Picture() bool { return a.Width > 0 }

// ChatRead says that a participant had read up to a message. It is never changed.
type ChatRead struct {
	BusinessID BusinessID
	OrderID    OrderID
	Account    AccountID // 0: the recipient
	UpTo       ChatMessageID
	At         time.Time
}

// ChatPage asks for messages of a conversation, by their ids.
type ChatPage struct {
	BusinessID BusinessID
	OrderID    OrderID
	Staff      bool // those among dispatchers and driver, too
	Page            // its sort is the list's own
}

// ConversationQuery asks for a page of conversations that one account may see,
// newest first. Zero fields do not filter.
type ConversationQuery struct {
	BusinessID BusinessID // required
	Customer   AccountID  // whose orders
	Driver     AccountID  // who drives the order
	Contractor AccountID  // who holds its active assignment
	Staff      bool       // messages among dispatchers and driver count, too
	Status     string     // open, closed
	Unread     bool       // only those with something unread
	Reader     AccountID  // for whom it is unread
	Allowed    bool       // only those that the reader was not taken out of
	Keyword    string     // folded, at least three characters
	// Ended is the time at or before which an order must have ended for its
	// conversation to be closed.
	Ended time.Time
	Page  // its sort is the list's own
}

// ChatSettings are what a business chose for its chat. The zero value is that of
// a business that chose nothing.
type ChatSettings struct {
	Recipient     bool             `json:"recipient,omitempty"`      // a recipient with a tracking number may chat
	NoCustomer    bool             `json:"no_customer,omitempty"`    // owners of orders may not
	NoDriver      bool             `json:"no_driver,omitempty"`      // drivers may not
	CloseHours    int              `json:"close_hours,omitempty"`    // after an order's end; 0: 24
	RetentionDays int              `json:"retention_days,omitempty"` // after a closing; 0: 365
	QuickReplies  []ChatQuickReply `json:"quick_replies,omitempty"`
	Hours         []ChatHours      `json:"hours,omitempty"` // empty: always
	AutoReply     string           `json:"auto_reply,omitempty"`
}

// ChatQuickReply is a text that is sent by its id.
type ChatQuickReply struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Audience string `json:"audience"`
}

// ChatHours is a time in which a business answers, on some days of the week.
// One that ends before it begins ends on the next day.
type ChatHours struct {
	Days  []int  `json:"days"`  // 1 Monday to 7 Sunday
	Start string `json:"start"` // HH:MM in the business's time zone
	End   string `json:"end"`
}

// CloseAfter is how long after its order's end a conversation is open.
func (s ChatSettings) CloseAfter() time.Duration {
	if s.CloseHours == 0 {
		return 24 * time.Hour
	}
	return time.Duration(s.CloseHours) * time.Hour
}

// Retention is how long a closed conversation is kept.
func (s ChatSettings) Retention() time.Duration {
	if s.RetentionDays == 0 {
		return 365 * 24 * time.Hour
	}
	return time.Duration(s.RetentionDays) * 24 * time.Hour
}

// ChatView reads the present of order chats.
type ChatView interface {
	// Conversation is that of an order. Who changes anything about it reads the
	// order first and writes the conversation.
	Conversation(BusinessID, OrderID) (Conversation, error)
	ChatMessage(BusinessID, ChatMessageID) (ChatMessage, error)
	// ChatMessageByClient finds a message by its sender's own id.
	ChatMessageByClient(b BusinessID, o OrderID, sender AccountID, id string) (ChatMessage, error)
	ChatMessages(ChatPage) ([]ChatMessage, Listed, error)
	// ChatReads lists when a participant had read up to a message or beyond, in the
	// order of messages. At most limit.
	ChatReads(b BusinessID, o OrderID, reader AccountID, from ChatMessageID, limit int) ([]ChatRead, error)
	// ChatUnread counts messages of others that a reader has not read and that
	// are not deleted.
	ChatUnread(b BusinessID, o OrderID, staff bool, reader AccountID, read ChatMessageID) (int, error)
	// ChatAttachment finds a file that no message has.
	ChatAttachment(BusinessID, int64) (ChatAttachment, error)
}

// ChatChanges are the changes of order chats.
type ChatChanges struct {
	// Conversations are one per order. Their members' positions go with them.
	Conversations []Conversation
	ChatMessages  []ChatMessage
	ChatReads     []ChatRead // insert
	// ChatAttachments wait for a message, which takes them: they are dropped then.
	ChatAttachments        []ChatAttachment // insert
	DroppedChatAttachments []ChatAttachment
	// DroppedConversations are removed with all that is kept about them.
	DroppedConversations []OrderKey
}

func (s *ChatChanges) preview(e *effectList) {
	previewEach(e, "ChatMessages", s.ChatMessages, func(m ChatMessage) {
		old, err := e.view.ChatMessage(m.BusinessID, m.ID)
		e.showMembers(Effect{Type: "chat_message", ID: m.ID, Before: old.members(), After: m.members()}, old, err)
	})
}

func (m ChatMessage) members() map[string]any {
	return map[string]any{"order_id": m.OrderID, "kind": m.Kind, "text": OrNull(m.Text), "staff_only": m.Staff, "attachments": len(m.Attachments), "deleted": !m.DeletedAt.IsZero()}
}

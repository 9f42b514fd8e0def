package chat

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// OrderInput names an order.
type OrderInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
}

// ConversationOutput shows a conversation, null when nobody has said anything.
type ConversationOutput struct {
	Result       bool          `json:"result"`
	Conversation *Conversation `json:"conversation"`
}

// Find shows the conversation about an order. Errors: ORDER_NOT_FOUND,
// NOT_A_PARTICIPANT.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in OrderInput) (out ConversationOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.join(v, c, in.OrderID)
		if err != nil {
			return err
		}
		out.Result = true
		out.Conversation, err = x.conversation()
		return err
	})
	return out, err
}

// MessagesInput asks for messages of an order.
type MessagesInput struct {
	OrderID  cloud.OrderID        `path:"order_id" json:"-"`
	BeforeID cloud.ChatMessageID  `query:"before_id" graphql:"Long" doc:"The messages before this one; without it and after_id, the newest"`
	AfterID  *cloud.ChatMessageID `query:"after_id" graphql:"-" doc:"The messages after this one, to catch up; 0 is the beginning"`
	Limit    int                  `query:"limit" min:"1" max:"100" doc:"50 when it is left out"`
}

// MessagesOutput shows messages, oldest first. HasMore says that there are more
// in the direction that was asked for.
type MessagesOutput struct {
	Result   bool      `json:"result"`
	Messages []Message `json:"messages" graphql:"!"`
	HasMore  bool      `json:"has_more"`
}

// GraphQLName is the type's name there.
func (MessagesOutput) GraphQLName() string { return "OrderChatMessageList" }

const (
	defaultMessages = 50
)

// Messages shows messages of an order. Those of others count as delivered from
// then on. Errors: ORDER_NOT_FOUND, NOT_A_PARTICIPANT, VALIDATION_FAILED.
func (s *Service) Messages(ctx context.Context, c cloud.Caller, in MessagesInput) (out MessagesOutput, err error) {
	f := newFields()
	if in.Limit == 0 {
		in.Limit = defaultMessages
	}
	if in.AfterID != nil && in.BeforeID != 0 {
		f.Add("after_id", "Give before_id or after_id, not both.")
	}
	if err := f.Err(); err != nil {
		return out, err
	}
	news := false
	page := func(v cloud.View) (x *participant, err error) {
		if x, err = s.join(v, c, in.OrderID); err != nil {
			return nil, err
		}
		list, more, err := x.page(in)
		if err != nil {
			return nil, err
		}
		news = x.fetch(list)
		out = MessagesOutput{Result: true, HasMore: more}
		out.Messages, err = x.messages(list, x.staff())
		return x, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error { _, err := page(v); return err })
	if err != nil || !news {
		return out, err
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := page(v)
		if err != nil || !news {
			return nil, err
		}
		x.ch.Unaudited = true
		return x.changes(), nil
	})
	return out, err
}

// page is a page of messages, oldest first.
func (x *participant) page(in MessagesInput) (list []cloud.ChatMessage, more bool, err error) {
	p := cloud.ChatPage{BusinessID: x.o.BusinessID, OrderID: x.o.ID, Staff: x.staff(), Before: in.BeforeID, Limit: in.Limit + 1}
	if in.AfterID != nil {
		p.Forward, p.After = true, *in.AfterID
	}
	if list, err = x.v.ChatMessages(p); err != nil {
		return nil, false, err
	}
	if more = len(list) > in.Limit; more {
		list = list[:in.Limit]
	}
	if !p.Forward {
		slices.Reverse(list)
	}
	return list, more, nil
}

// fetch takes down what the caller was given, and reports whether that is news.
func (x *participant) fetch(list []cloud.ChatMessage) bool {
	var newest cloud.ChatMessageID
	for _, m := range list {
		if m.Sender.Account != x.me.Account {
			newest = m.ID
		}
	}
	before := x.talk.Member(x.me.Account)
	if newest == 0 || x.former || before != nil && before.Fetched >= newest {
		return false
	}
	x.member().Fetched = newest
	return true
}

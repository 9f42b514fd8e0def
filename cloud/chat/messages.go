package chat

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// OrderInput names an order.
type OrderInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
}

// ConversationOutput shows a conversation, null when it has no message.
type ConversationOutput struct {
	Result       bool          `json:"result"`
	Conversation *Conversation `json:"conversation"`
}

// Find shows the conversation about an order. Errors: ORDER_NOT_FOUND,
// NOT_A_PARTICIPANT.
func (s conversations) Find(ctx context.Context, c cloud.Caller, in OrderInput) (out ConversationOutput, err error) {
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
	Limit    int                  `query:"limit" min:"1" max:"100" doc:"In place of per_page"`
	check.LongKeyset
}

// MessagesOutput shows messages, oldest first. HasMore says that there are more
// in the direction that was asked for.
type MessagesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Messages []Message `json:"messages" graphql:"!"`
	HasMore  bool      `json:"has_more"`
}

// GraphQLName is the type's name there.
func (MessagesOutput) GraphQLName() string { return "OrderChatMessageList" }

// Messages shows messages of an order. Messages of others count as delivered from
// then on. Errors: ORDER_NOT_FOUND, NOT_A_PARTICIPANT, VALIDATION_FAILED.
func (s messages) Messages(ctx context.Context, c cloud.Caller, in MessagesInput) (out MessagesOutput, err error) {
	p, err := in.part()
	if err != nil {
		return out, err
	}
	news := false
	page := func(v cloud.View) (x *participant, err error) {
		if x, err = s.join(v, c, in.OrderID); err != nil {
			return nil, err
		}
		list, listed, err := x.page(p)
		if err != nil {
			return nil, err
		}
		news = x.fetch(list)
		out = MessagesOutput{Result: true, PageOutput: in.Output(in, listed), HasMore: listed.Next != nil}
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

// part is the part of the messages that is asked for. What is after one goes
// forward, everything else back from the newest.
func (in *MessagesInput) part() (p cloud.Page, err error) {
	f := newFields()
	if in.AfterID != nil && in.BeforeID != 0 {
		f.Add("after_id", "Give before_id or after_id, not both.")
		return p, f.Err()
	}
	if in.Limit != 0 {
		in.PerPage = &in.Limit
	}
	p, err = in.Part(*in, "-id")
	switch p.Down = in.AfterID == nil; {
	case p.After != nil:
	case in.AfterID != nil:
		p.After = &cloud.Mark{ID: int64(*in.AfterID)}
	case in.BeforeID > 0:
		p.After = &cloud.Mark{ID: int64(in.BeforeID)}
	}
	return p, err
}

// page is a page of messages, oldest first.
func (x *participant) page(p cloud.Page) ([]cloud.ChatMessage, cloud.Listed, error) {
	list, listed, err := x.v.ChatMessages(cloud.ChatPage{BusinessID: x.o.BusinessID, OrderID: x.o.ID, Staff: x.staff(), Page: p})
	if p.Down {
		slices.Reverse(list)
	}
	list = slices.DeleteFunc(list, func(m cloud.ChatMessage) bool { return !x.readsMessage(m) })
	return list, listed, err
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

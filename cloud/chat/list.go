package chat

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// ListInput asks for a page of conversations. An absent member does not filter.
type ListInput struct {
	Status     string          `query:"status" enum:"open,closed"`
	UnreadOnly bool            `query:"unread_only" doc:"Only those with something that the caller has not read"`
	DriverID   cloud.AccountID `query:"driver_id" doc:"Who drives the order"`
	Keyword    string          `query:"keyword" min:"3" max:"100" doc:"Part of what the order is found by"`
	check.Keyset
}

// ListOutput is a page of conversations, those that changed last first.
type ListOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Conversations []Conversation `json:"conversations"`
}

const (
	minKeyword = 3
	mostUnread = 10_000 // that are counted
)

// mine asks for the conversations that a caller takes part in.
func mine(b cloud.Business, c cloud.Caller) (q cloud.ConversationQuery, none bool) {
	a, chat := c.Account, b.Settings.Chat
	q = cloud.ConversationQuery{BusinessID: b.ID, Reader: a.ID}
	switch a.Type {
	case cloud.ClientAdmin, cloud.ClientEmployee:
		q.Staff = true
		return q, false
	case cloud.Broker:
		q.Staff, q.Contractor = true, a.ID
	case cloud.DriverAccount:
		q.Staff, q.Driver, none = true, a.ID, chat.NoDriver
	case cloud.Customer:
		q.Customer, none = a.ID, chat.NoCustomer
	default:
		none = true
	}
	q.Allowed = true
	return q, none
}

// List shows the conversations that the caller takes part in. Error:
// VALIDATION_FAILED.
func (s conversations) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	f, keyword := check.Fields{}, fold(in.Keyword)
	if n := utf8.RuneCountInString(keyword); in.Keyword != "" && n < minKeyword {
		f.Say("keyword", check.MessageShort, strconv.Itoa(minKeyword), strconv.Itoa(n)) // without blanks
		return ListOutput{}, f.Err()
	}
	page, err := in.Part(in, "")
	if err != nil {
		return ListOutput{}, err
	}
	out := ListOutput{Result: true, PageOutput: in.Output(in, cloud.Listed{}), Conversations: []Conversation{}}
	var q cloud.ConversationQuery
	var none bool
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		q, none = mine(b, c)
		q.Ended = s.time().Add(-b.Settings.Chat.CloseAfter())
		return err
	})
	if err != nil || none || q.Driver != 0 && in.DriverID != 0 && in.DriverID != q.Driver {
		return out, err
	}
	if in.DriverID != 0 {
		q.Driver = in.DriverID
	}
	q.Status, q.Unread, q.Keyword, q.Page = in.Status, in.UnreadOnly, keyword, page
	listed, list, err := s.store.ListConversations(ctx, q)
	if err != nil {
		return ListOutput{}, err
	}
	out.PageOutput = in.Output(in, listed)
	return out, s.store.Look(ctx, func(v cloud.View) error {
		for _, talk := range list {
			x, err := s.join(v, c, talk.OrderID)
			if refused(err) { // it changed hands a moment ago
				continue
			}
			if err != nil {
				return err
			}
			shown, err := x.conversation()
			if err != nil {
				return err
			}
			if shown != nil {
				out.Conversations = append(out.Conversations, *shown)
			}
		}
		return nil
	})
}

// UnreadOutput says how many messages the caller has not read, and in how many
// conversations; what is beyond 10,000 is not counted.
type UnreadOutput struct {
	Result        bool `json:"result"`
	Total         int  `json:"total"`
	Conversations int  `json:"conversations"`
}

// UnreadCount counts what the caller has not read in conversations that are not
// muted.
func (s conversations) UnreadCount(ctx context.Context, c cloud.Caller, _ check.None) (UnreadOutput, error) {
	out := UnreadOutput{Result: true}
	var q cloud.ConversationQuery
	var none bool
	err := s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		q, none = mine(b, c)
		return err
	})
	if err != nil || none {
		return out, err
	}
	out.Total, out.Conversations, err = s.store.CountUnread(ctx, q, mostUnread)
	return out, err
}

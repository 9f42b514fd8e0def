package chat

import (
	"context"
	"math"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// MarkInput says up to where the caller has read.
type MarkInput struct {
	OrderID cloud.OrderID       `path:"order_id" json:"order_id" required:"true"`
	UpTo    cloud.ChatMessageID `json:"last_message_id" required:"true" min:"1" graphql:"Long" doc:"It and everything before it was read"`
}

// MarkOutput says how much is left.
type MarkOutput struct {
	Result bool `json:"result"`
	Unread int  `json:"unread"`
}

// MarkRead takes down that the caller has read up to a message. Going back does
// nothing. Errors: ORDER_NOT_FOUND, NOT_A_PARTICIPANT, VALIDATION_FAILED.
func (s messages) MarkRead(ctx context.Context, c cloud.Caller, in MarkInput) (out MarkOutput, err error) {
	if in.UpTo < 1 {
		f := newFields()
		f.Say("last_message_id", check.MessageLeast, "1")
		return out, f.Err()
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, in.OrderID)
		if err != nil {
			return nil, err
		}
		if x.former {
			return nil, outsider()
		}
		news, err := x.read(in.UpTo)
		if err != nil {
			return nil, err
		}
		out.Result = true
		if out.Unread, err = x.unread(); err != nil || !news {
			return nil, err
		}
		x.ch.Unaudited = true
		return x.changes(), nil
	})
	return out, err
}

// newest is the newest message up to one, 0 when there is none.
func (x *orderChat) newest(upTo cloud.ChatMessageID, staff bool) (cloud.ChatMessageID, error) {
	list, _, err := x.v.ChatMessages(cloud.ChatPage{BusinessID: x.o.BusinessID, OrderID: x.o.ID, Staff: staff,
		Page: cloud.Page{Down: true, Limit: 1, After: &cloud.Mark{ID: int64(min(upTo, math.MaxInt64-1)) + 1}}})
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].ID, nil
}

// read moves the caller's position and tells of it: everybody of what everybody
// sees, dispatchers and driver of what only they do.
func (x *participant) read(upTo cloud.ChatMessageID) (news bool, err error) {
	to, err := x.newest(upTo, x.staff())
	if err != nil || to == 0 {
		return false, err
	}
	if m := x.talk.Member(x.me.Account); m != nil && m.Read >= to {
		return false, nil
	}
	all, err := x.newest(to, false)
	if err != nil {
		return false, err
	}
	m := x.member()
	was := *m
	m.Read, m.ReadAll, m.Fetched = to, all, max(m.Fetched, to)
	x.ch.ChatReads = []cloud.ChatRead{{BusinessID: x.o.BusinessID, OrderID: x.o.ID, Account: m.Account, UpTo: to, At: x.now}}
	if all > was.ReadAll {
		err = x.addEvent(false, eventRead, readEvent{partyOf(x.me), all})
	}
	if err == nil && to > all {
		err = x.addEvent(true, eventRead, readEvent{partyOf(x.me), to})
	}
	return true, err
}

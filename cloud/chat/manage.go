package chat

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Close closes the conversation about an order; one that is closed stays so.
// Errors: ORDER_NOT_FOUND, CONVERSATION_NOT_FOUND.
func (s conversations) Close(ctx context.Context, c cloud.Caller, in OrderInput) (ConversationOutput, error) {
	return s.manage(ctx, c, in.OrderID, func(x *participant) (bool, error) {
		switch {
		case !x.known:
			return false, cloud.E(cloud.NotFound, codeConversation)
		case x.isClosed():
			return false, nil
		}
		return true, x.close(x.now)
	})
}

// close closes the conversation, as of a time.
func (x *participant) close(at time.Time) error {
	x.talk.ClosedAt = at
	x.markChanged(x.isHidden())
	return x.addEvent(x.isHidden(), eventClosed, x.conversationEvent(statusClosed))
}

func (x *participant) conversationEvent(status string) conversationEvent {
	e := conversationEvent{Status: status, ClosesAt: cloud.Stamp(x.closesAt(), x.b.Location())}
	if x.me.Role != "" {
		by := partyOf(x.me)
		e.By = &by
	}
	return e
}

// Reopen opens the conversation about an order again, for as long as it would be
// open after the order's end; also one without a message before it closed.
// Error: ORDER_NOT_FOUND.
func (s conversations) Reopen(ctx context.Context, c cloud.Caller, in OrderInput) (ConversationOutput, error) {
	return s.manage(ctx, c, in.OrderID, func(x *participant) (bool, error) {
		if !x.isClosed() {
			if !x.known {
				return false, cloud.E(cloud.NotFound, codeConversation)
			}
			return false, nil
		}
		if err := x.open(); err != nil {
			return false, err
		}
		x.talk.ClosedAt, x.talk.ReopenedAt = time.Time{}, x.now
		x.talk.Epoch++
		x.markChanged(x.isHidden())
		return true, x.addEvent(x.isHidden(), eventReopened, x.conversationEvent(statusOpen))
	})
}

// manage changes a conversation for staff and shows it. fn says whether it
// changed anything.
func (s conversations) manage(ctx context.Context, c cloud.Caller, id cloud.OrderID, fn func(x *participant) (bool, error)) (out ConversationOutput, err error) {
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, id)
		if err != nil {
			return nil, err
		}
		changed, err := fn(x)
		if err != nil {
			return nil, err
		}
		out.Result = true
		if out.Conversation, err = x.conversation(); err != nil || !changed {
			return nil, err
		}
		return x.changes(), nil
	})
	return out, err
}

// ParticipantsOutput shows who takes part.
type ParticipantsOutput struct {
	Result       bool          `json:"result"`
	Participants []Participant `json:"participants"`
}

// Participants shows who may take part in the conversation about an order. Error:
// ORDER_NOT_FOUND.
func (s participants) Participants(ctx context.Context, c cloud.Caller, in OrderInput) (out ParticipantsOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.join(v, c, in.OrderID)
		if err != nil {
			return err
		}
		out.Result = true
		out.Participants, err = x.participants()
		return err
	})
	return out, err
}

// AddInput names a participant: an account by its id, or the recipient by type.
type AddInput struct {
	OrderID cloud.OrderID   `path:"order_id" json:"-"`
	Type    string          `json:"type" enum:"dispatcher,driver,customer,recipient" doc:"Needed for the recipient only, who has no id"`
	ID      cloud.AccountID `json:"id" doc:"An account that may take part in this order's chat"`
	Muted   *bool           `json:"muted" doc:"Muted participants get no pushes, and their unread messages are not counted in totals"`
}

// Add adds a participant, lets one take part again, or mutes one. Errors:
// ORDER_NOT_FOUND, CONVERSATION_NOT_FOUND, VALIDATION_FAILED.
func (s participants) Add(ctx context.Context, c cloud.Caller, in AddInput) (ParticipantsOutput, error) {
	return s.attend(ctx, c, in.OrderID, in.Type, in.ID, func(m *cloud.ChatMember, known bool) (change string) {
		if m.Out || !known && in.Muted == nil {
			change = "added"
		}
		m.Out = false
		if in.Muted != nil && *in.Muted != m.Muted {
			m.Muted = *in.Muted
			if change == "" {
				change = map[bool]string{true: "muted", false: "unmuted"}[m.Muted]
			}
		}
		return change
	})
}

// RemoveInput names a participant.
type RemoveInput struct {
	OrderID cloud.OrderID   `path:"order_id" json:"-"`
	Type    string          `query:"type" enum:"dispatcher,driver,customer,recipient" doc:"Needed for the recipient only, who has no id"`
	ID      cloud.AccountID `query:"id" doc:"The participant's account"`
}

// Remove takes a participant out: all but the business's own people can neither
// read nor write from then on, until they are added again. Errors:
// ORDER_NOT_FOUND, CONVERSATION_NOT_FOUND, VALIDATION_FAILED.
func (s participants) Remove(ctx context.Context, c cloud.Caller, in RemoveInput) (ParticipantsOutput, error) {
	return s.attend(ctx, c, in.OrderID, in.Type, in.ID, func(m *cloud.ChatMember, _ bool) string {
		if m.Out {
			return ""
		}
		m.Out = true
		return "removed"
	})
}

// attend changes a participant. fn says what changed, "" for nothing.
func (s participants) attend(ctx context.Context, c cloud.Caller, id cloud.OrderID, role string, account cloud.AccountID, fn func(m *cloud.ChatMember, known bool) string) (out ParticipantsOutput, err error) {
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, id)
		if err != nil {
			return nil, err
		}
		if !x.known {
			return nil, cloud.E(cloud.NotFound, codeConversation)
		}
		who, contractor, err := x.candidate(role, account)
		if err != nil {
			return nil, err
		}
		known := x.talk.Member(who.Account) != nil
		m := x.join(who, contractor)
		change := fn(m, known)
		person := *m
		out.Result = true
		if out.Participants, err = x.participants(); err != nil || change == "" {
			return nil, err
		}
		x.markChanged(x.isHidden())
		return x.changes(), x.addEvent(x.isHidden(), eventParticipant, participantEvent{change, x.participantBody(person, x.isHidden())})
	})
	return out, err
}

// candidate is an account that may take part in this conversation, by id or as the
// recipient. Error: VALIDATION_FAILED.
func (x *participant) candidate(role string, account cloud.AccountID) (who cloud.ChatParty, contractor bool, err error) {
	f := newFields()
	if (account <= 0) != (role == string(cloud.ChatRecipient)) {
		f.Add("id", "Give the id of an account, or the type recipient.")
		return who, false, f.Err()
	}
	them := *x
	them.talk.Members = nil // also whom staff took out
	if them.c = (cloud.Caller{Account: cloud.Account{BusinessID: x.o.BusinessID}, Recipient: x.o.ID}); account > 0 {
		a, ok, err := found(x.v.Account(account))
		if err != nil {
			return who, false, err
		}
		if !ok || a.BusinessID != x.o.BusinessID || !a.Enabled {
			a = cloud.Account{}
		}
		them.c = cloud.Caller{Account: a}
	}
	if them.contractor, them.former = false, false; refused(them.findRole()) || them.former || role != "" && role != string(them.me.Role) {
		f.Add("id", "This account cannot take part in the chat of this order.")
	}
	return them.me, them.contractor, f.Err()
}

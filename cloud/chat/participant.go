package chat

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// orderChat is the chat of one order within one decision, for any participant.
type orderChat struct {
	v   cloud.View
	now time.Time

	b     cloud.Business
	o     cloud.Order
	talk  cloud.Conversation
	known bool // there is a conversation
}

// participant is an account's or the recipient's part in the chat of one order, within one decision.
type participant struct {
	orderChat
	s *core
	c cloud.Caller

	me         cloud.ChatParty
	contractor bool
	former     bool      // drove the order until lately: may only read
	until      time.Time // of a former driver: when they ceased to have it

	ch     cloud.Changes
	events byte
}

func outsider() error { return cloud.E(cloud.Forbidden, codeOutsider) }

// join finds an order's chat and the caller's place in it. Errors:
// ORDER_NOT_FOUND for orders that the caller does not see, NOT_A_PARTICIPANT.
func (s *core) join(v cloud.View, c cloud.Caller, id cloud.OrderID) (*participant, error) {
	x := &participant{orderChat: orderChat{v: v, now: s.time()}, s: s, c: c}
	o, ok, err := found(v.Order(c.Account.BusinessID, id))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, cloud.E(cloud.NotFound, codeOrder)
	}
	x.o = o
	if x.b, err = v.Business(o.BusinessID); err != nil {
		return nil, err
	}
	if x.talk, x.known, err = found(v.Conversation(o.BusinessID, o.ID)); err != nil {
		return nil, err
	}
	return x, x.findRole()
}

// findRole finds as what the caller takes part.
func (x *participant) findRole() error {
	a, chat := x.c.Account, x.b.Settings.Chat
	x.me = cloud.ChatParty{Account: a.ID, Name: cmp.Or(a.Name, a.Email)}
	sees, may := false, true
	switch {
	case x.c.Recipient != 0:
		x.me = x.recipient()
		sees, may = x.c.Recipient == x.o.ID, chat.Recipient
	case a.Type == cloud.ClientAdmin, a.Type == cloud.ClientEmployee:
		x.me.Role = cloud.ChatDispatcher
		return nil
	case a.Type == cloud.Broker:
		x.me.Role, x.contractor = cloud.ChatDispatcher, true
		sees, may = x.o.BrokerID == a.ID, x.o.AssignmentID != 0
	case a.Type == cloud.DriverAccount:
		x.me.Role = cloud.ChatDriver
		x.former = x.o.DriverID != a.ID
		x.until = x.droveUntil(a.ID)
		sees, may = !x.former || !x.until.IsZero(), !chat.NoDriver
	case a.Type == cloud.Customer:
		x.me.Role = cloud.ChatCustomer
		sees, may = x.o.CustomerID == a.ID, !chat.NoCustomer
	}
	if !sees {
		return cloud.E(cloud.NotFound, codeOrder)
	}
	if m := x.talk.Member(x.me.Account); !may || m != nil && m.Out {
		return outsider()
	}
	return nil
}

// droveUntil is when a driver who had the order lately ceased to; zero for others.
func (x *orderChat) droveUntil(a cloud.AccountID) (until time.Time) {
	for _, f := range x.o.Drove {
		if f.ID == a && x.now.Sub(f.Until) < cloud.FormerDriverReads && f.Until.After(until) {
			until = f.Until
		}
	}
	return until
}

// readsMessage reports whether a message is for the caller: a former driver reads on what
// all read, and not what dispatchers said to the driver afterwards.
func (x *participant) readsMessage(m cloud.ChatMessage) bool {
	return !x.former || !m.Staff || !m.CreatedAt.After(x.until)
}

// recipient is a holder of the order's token.
func (x *orderChat) recipient() cloud.ChatParty {
	p := cloud.ChatParty{Role: cloud.ChatRecipient}
	for _, a := range []*cloud.Address{x.o.Recipient, x.o.Sender} {
		if a != nil && p.Name == "" {
			p.Name = cmp.Or(a.Name, a.Company)
		}
	}
	return p
}

// key names who it is, for limits.
func (x *participant) key() string {
	if x.me.Account == 0 {
		return fmt.Sprintf("order/%d", x.o.ID)
	}
	return fmt.Sprintf("account/%d", x.me.Account)
}

// staff reports whether messages for dispatchers and driver show here.
func (x *participant) staff() bool { return x.me.Role.SeesStaff() }

// isVisible reports whether there is a conversation as far as the caller can see.
func (x *participant) isVisible() bool { return x.known && !x.talk.Trace(x.staff()).CreatedAt.IsZero() }

// isHidden reports whether only dispatchers and driver have said anything, and
// only to each other.
func (x *orderChat) isHidden() bool {
	return x.talk.All.CreatedAt.IsZero() && !x.talk.Staff.CreatedAt.IsZero()
}

// closesAt is when the conversation closes by itself, the zero time while the order
// goes on.
func (x *orderChat) closesAt() time.Time {
	if !x.o.Status.State().Terminal {
		return time.Time{}
	}
	from := x.o.Since()
	if x.talk.ReopenedAt.After(from) {
		from = x.talk.ReopenedAt
	}
	return from.Add(x.b.Settings.Chat.CloseAfter())
}

func (x *orderChat) isClosed() bool {
	ends := x.closesAt()
	return !x.talk.ClosedAt.IsZero() || !ends.IsZero() && !x.now.Before(ends)
}

// isClosureUnsent reports whether the conversation has closed by itself and that is not
// written.
func (x *orderChat) isClosureUnsent() bool {
	return x.known && x.talk.ClosedAt.IsZero() && x.isClosed()
}

// checkWrite refuses a participant that may not write here now.
func (x *participant) checkWrite() error {
	switch {
	case x.former:
		return outsider()
	case x.isClosed():
		return cloud.E(cloud.Conflict, codeClosed)
	}
	return nil
}

// open makes the conversation when there is none.
func (x *orderChat) open() error {
	if x.known {
		return nil
	}
	id, err := x.v.NewID(cloud.ConversationIDs)
	x.talk = cloud.Conversation{ID: cloud.ConversationID(id), BusinessID: x.o.BusinessID, OrderID: x.o.ID}
	x.known = err == nil
	return err
}

// member is the caller's own member, made when there is none. It holds until
// members are added.
func (x *participant) member() *cloud.ChatMember { return x.join(x.me, x.contractor) }

func (x *orderChat) join(p cloud.ChatParty, contractor bool) *cloud.ChatMember {
	if x.talk.Member(p.Account) == nil {
		x.talk.Members = append(slices.Clip(x.talk.Members), cloud.ChatMember{ChatParty: p, Contractor: contractor})
	}
	return x.talk.Member(p.Account)
}

// markChanged takes down that something changed for everybody, or for dispatchers and
// driver only.
func (x *orderChat) markChanged(staff bool) {
	mark := func(t *cloud.ChatTrace) {
		t.UpdatedAt = x.now
		if t.CreatedAt.IsZero() {
			t.CreatedAt = x.now
		}
	}
	mark(&x.talk.Staff)
	if !staff {
		mark(&x.talk.All)
	}
}

// changes is what the decision writes.
func (x *participant) changes() *cloud.Changes {
	x.ch.Conversations = []cloud.Conversation{x.talk}
	return &x.ch
}

package chat

import "github.com/postern-io/postern/cloud"

// DriverChanged is what the participants of an order's chat receive when its driver has
// changed, inside the decision that changes it: o is the order as it will be, was
// its former driver, 0 for none. Nothing without participants, or where drivers have no part.
func (s listeners) DriverChanged(v cloud.View, o cloud.Order, was cloud.AccountID) ([]cloud.LiveEvent, error) {
	x := &participant{orderChat: orderChat{v: v, now: s.time(), o: o}, s: s.core}
	var err error
	if x.talk, x.known, err = found(v.Conversation(o.BusinessID, o.ID)); err != nil || !x.known || !x.talk.ClosedAt.IsZero() {
		return nil, err
	}
	if x.b, err = v.Business(o.BusinessID); err != nil || x.b.Settings.Chat.NoDriver {
		return nil, err
	}
	for _, d := range []struct {
		id     cloud.AccountID
		change string
	}{{was, "removed"}, {o.DriverID, "added"}} {
		if d.id == 0 {
			continue
		}
		m := cloud.ChatMember{ChatParty: cloud.ChatParty{Role: cloud.ChatDriver, Account: d.id}}
		if known := x.talk.Member(d.id); known != nil {
			m = *known
		}
		if m.Out {
			continue // as far as any event said, it had no part
		}
		if a, _, err := found(v.Account(d.id)); err != nil {
			return nil, err
		} else if m.Name == "" {
			m.Name = a.Name
		}
		if err := x.addEvent(x.isHidden(), eventParticipant, participantEvent{d.change, x.participantBody(m, x.isHidden())}); err != nil {
			return nil, err
		}
	}
	return x.ch.Live, nil
}

package chat

import (
	"cmp"

	"github.com/postern-io/postern/cloud"
)

// Participant is an account or the recipient in a conversation.
type Participant struct {
	Type      cloud.ChatRole       `json:"type"`
	ID        *cloud.AccountID     `json:"id"`
	Name      string               `json:"name"`
	AvatarURL *string              `json:"avatar_url"`
	LastRead  *cloud.ChatMessageID `json:"last_read_message_id"`
	Muted     bool                 `json:"muted"`
}

// participants are the accounts that may take part by what they are, and staff who has
// or was added.
func (x *participant) participants() ([]Participant, error) {
	list, err := x.entitled()
	if err != nil {
		return nil, err
	}
	for _, m := range x.talk.Members {
		if m.Role == cloud.ChatDispatcher && !m.Contractor {
			list = append(list, m)
		}
	}
	out := []Participant{}
	for _, m := range list {
		if now := x.talk.Member(m.Account); now != nil {
			m = *now
		}
		if !m.Out {
			out = append(out, x.participantBody(m, x.staff()))
		}
	}
	return out, nil
}

func (x *participant) participantBody(m cloud.ChatMember, staff bool) Participant {
	p := partyOf(m.ChatParty)
	read := m.ReadAll
	if staff {
		read = m.Read
	}
	return Participant{Type: p.Type, ID: p.ID, Name: p.Name, LastRead: cloud.OrNull(read), Muted: m.Muted}
}

// entitled are the accounts that take part by what they are to the order, none of them
// the business's own people.
func (x *orderChat) entitled() (list []cloud.ChatMember, err error) {
	chat := x.b.Settings.Chat
	add := func(role cloud.ChatRole, id cloud.AccountID, name string) error {
		if name == "" && id != 0 {
			a, _, err := found(x.v.Account(id))
			if err != nil {
				return err
			}
			name = cmp.Or(a.Name, a.Email)
		}
		list = append(list, cloud.ChatMember{ChatParty: cloud.ChatParty{Role: role, Account: id, Name: name}, Contractor: role == cloud.ChatDispatcher})
		return nil
	}
	if x.o.AssignmentID != 0 && x.o.BrokerID != 0 {
		err = add(cloud.ChatDispatcher, x.o.BrokerID, "")
	}
	if err == nil && x.o.DriverID != 0 && !chat.NoDriver {
		err = add(cloud.ChatDriver, x.o.DriverID, x.o.DriverName)
	}
	if err == nil && x.o.CustomerID != 0 && !chat.NoCustomer {
		err = add(cloud.ChatCustomer, x.o.CustomerID, "")
	}
	if err == nil && chat.Recipient {
		err = add(cloud.ChatRecipient, 0, x.recipient().Name)
	}
	return list, err
}

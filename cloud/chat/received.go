package chat

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// Received counts the messages of live events that a listener has acknowledged as
// delivered to it, as fetching them would. Events that are unknown, or no longer
// kept, count for nothing.
func (s listeners) Received(ctx context.Context, b cloud.BusinessID, account cloud.AccountID, recipient, order cloud.OrderID, ids []string) error {
	list, err := s.receivedMessages(ctx, b, order, ids)
	if err != nil || len(list) == 0 {
		return err
	}
	news := false
	take := func(v cloud.View) (*participant, error) {
		x, err := s.listener(v, b, account, recipient, order)
		if news = false; err != nil || x == nil || x.listenRight() == ReceivesNothing {
			return x, err
		}
		heard := list
		if x.listenRight() != ReceivesStaff {
			heard = slices.DeleteFunc(slices.Clone(list), func(m cloud.ChatMessage) bool { return m.Staff })
		}
		news = x.fetch(heard)
		return x, nil
	}
	err = s.store.Look(ctx, func(v cloud.View) error { _, err := take(v); return err })
	if err != nil || !news {
		return err
	}
	return s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := take(v)
		if err != nil || !news {
			return nil, err
		}
		x.ch.Unaudited = true
		return x.changes(), nil
	})
}

// maxLiveEvents is how many of the live events that are kept of an order are looked at,
// the oldest first.
const maxLiveEvents = 1000

// receivedMessages are the messages that live events made known, oldest first.
func (s listeners) receivedMessages(ctx context.Context, b cloud.BusinessID, order cloud.OrderID, ids []string) (out []cloud.ChatMessage, err error) {
	for _, kind := range []cloud.LiveKind{cloud.LiveChat, cloud.LiveChatStaff} {
		events, err := s.store.LiveOf(ctx, b, kind, int64(order), s.time().Add(-cloud.LiveKept), maxLiveEvents)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			var body struct {
				Type string       `json:"type"`
				Data messageEvent `json:"data"`
			}
			if slices.Contains(ids, e.ID) && json.Unmarshal(e.Body, &body) == nil && body.Type == eventCreated {
				m := cloud.ChatMessage{ID: body.Data.Message.ID, Staff: kind == cloud.LiveChatStaff}
				if sender := body.Data.Message.Sender; sender.ID != nil {
					m.Sender.Account = *sender.ID
				}
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b cloud.ChatMessage) int { return int(a.ID - b.ID) })
	return out, nil
}

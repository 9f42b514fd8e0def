package chat

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

// TypingInput says whether the caller is typing.
type TypingInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
	Typing  bool          `json:"typing"`
}

// Nothing is the answer of what has none.
type Nothing struct{}

// Typing sends to the listeners that the caller types, or stopped. It is stored
// nowhere; a caller that says so too often causes no event. Errors: ORDER_NOT_FOUND,
// NOT_A_PARTICIPANT, CONVERSATION_CLOSED.
func (s messages) Typing(ctx context.Context, c cloud.Caller, in TypingInput) (Nothing, error) {
	var quiet bool
	err := s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.join(v, c, in.OrderID)
		if err == nil {
			err = x.checkWrite()
		}
		if err == nil {
			quiet = !s.typing.Take(x.key(), typingMinute, s.now()).OK
		}
		return err
	})
	if err != nil || quiet {
		return Nothing{}, err
	}
	return Nothing{}, s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, in.OrderID)
		if err == nil {
			err = x.checkWrite()
		}
		if err == nil {
			err = x.addEvent(false, eventTyping, typingEvent{partyOf(x.me), in.Typing})
		}
		if err != nil {
			return nil, err
		}
		x.ch.Unaudited = true
		return &x.ch, nil
	})
}

package chat

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// Right is what a listener may receive of an order's live events.
type Right string

// Rights.
const (
	ReceivesNothing Right = "none"
	ReceivesAll     Right = "all"   // what all participants see
	ReceivesStaff   Right = "staff" // that, and what is for dispatchers and driver
)

// Rights says what a listener may receive of an order's chat now; its channels are not
// looked at. A right may end at any time: ask again. When the conversation
// has closed by itself and that is not written yet, this writes it, so that listeners
// receive it before they are let go.
func (s listeners) Rights(ctx context.Context, who Listener, order cloud.OrderID) (Right, error) {
	right, untold := ReceivesNothing, false
	err := s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.listener(v, who.BusinessID, who.Account, who.Recipient, order)
		if x != nil {
			untold = x.isClosureUnsent()
			if who.Recipient == 0 || who.Epoch == x.epoch() {
				right = x.listenRight()
			}
		}
		return err
	})
	if err == nil && untold {
		err = s.closeEnded(ctx, who.BusinessID, order)
	}
	return right, err
}

// listener is the participant of a listener, nil when there is none any more.
func (s listeners) listener(v cloud.View, b cloud.BusinessID, account cloud.AccountID, recipient, order cloud.OrderID) (*participant, error) {
	c := cloud.Caller{Account: cloud.Account{BusinessID: b}, Recipient: recipient}
	if recipient == 0 {
		a, ok, err := found(v.Account(account))
		if err != nil || !ok || a.BusinessID != b || !a.Enabled {
			return nil, err
		}
		c.Account = a
	}
	x, err := s.join(v, c, order)
	if refused(err) {
		return nil, nil
	}
	return x, err
}

func (x *participant) listenRight() Right {
	switch {
	case !x.b.Settings.Has(Feature), x.former, x.c.Recipient != 0 && x.isClosed():
		return ReceivesNothing
	case x.staff():
		return ReceivesStaff
	}
	return ReceivesAll
}

// Listener is an account or recipient that receives live events of some orders.
type Listener struct {
	BusinessID cloud.BusinessID
	Account    cloud.AccountID // 0: the recipient
	Recipient  cloud.OrderID   // whose recipient it is, 0 otherwise
	Epoch      int             // of the recipient's token
	Channels   []Channel
}

// Channel is one order's chat with what the listener receives of it.
type Channel struct {
	OrderID cloud.OrderID
	Right   Right
}

// MQTT is what live events are listened to with.
type MQTT struct {
	URL          string   `json:"url" doc:"Address over TCP or TLS; empty when there is none"`
	WebSocketURL string   `json:"websocket_url" doc:"Address over WebSocket; empty when there is none"`
	ClientID     string   `json:"client_id"`
	Username     string   `json:"username"`
	Password     string   `json:"password"`
	Topics       []string `json:"topics" doc:"All that may be subscribed to, without wildcards; a driver's pushes and the staff's dashboard are among them"`
	ExpiresAt    string   `json:"expires_at" format:"date-time" doc:"The connection ends within a minute of it"`
}

// Credentials gives what live events are listened to with: for an hour, and to
// subscribe only.
type Credentials interface {
	Issue(ctx context.Context, who Listener) (MQTT, error)
}

// Listens reports whether live events can be listened to.
func (s *Service) Listens() bool { return s.core != nil && s.listen != nil }

const maxListened = 50

// TokenInput names orders.
type TokenInput struct {
	OrderIDs []cloud.OrderID `json:"order_ids" required:"true" doc:"1 to 50 orders"`
}

// TokenOutput shows credentials.
type TokenOutput struct {
	Result bool `json:"result"`
	MQTT   MQTT `json:"mqtt"`
}

// Token gives credentials for the live events of some orders, all of which the
// caller may hear. Errors: ORDER_NOT_FOUND, NOT_A_PARTICIPANT,
// VALIDATION_FAILED.
func (s listeners) Token(ctx context.Context, c cloud.Caller, in TokenInput) (out TokenOutput, err error) {
	if n := len(in.OrderIDs); n < 1 || n > maxListened {
		f := newFields()
		f.Add("order_ids", "Give 1 to 50 orders.")
		return out, f.Err()
	}
	orders := slices.Compact(slices.Sorted(slices.Values(in.OrderIDs)))
	who := Listener{BusinessID: c.Account.BusinessID, Account: c.Account.ID, Recipient: c.Recipient}
	err = s.store.Look(ctx, func(v cloud.View) error {
		who.Channels = nil
		for _, id := range orders {
			x, err := s.join(v, c, id)
			if err != nil {
				return err
			}
			right := x.listenRight()
			if right == ReceivesNothing {
				return outsider()
			}
			who.Channels = append(who.Channels, Channel{id, right})
			if c.Recipient != 0 {
				who.Epoch = x.epoch()
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	out.MQTT, err = s.listen.Issue(ctx, who)
	out.Result = err == nil
	return out, err
}

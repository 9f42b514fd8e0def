package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/live"
)

// hearing tells the live channel who may hear a chat.
type hearing struct{ *chat.Service }

func (h hearing) Chat(ctx context.Context, l live.Listener, o cloud.OrderID) (live.ChatRight, error) {
	recipient, epoch := guestOf(l)
	switch right, err := h.Rights(ctx, chat.Listener{BusinessID: l.BusinessID, Account: l.AccountID, Recipient: recipient, Epoch: epoch}, o); right {
	case chat.ReceivesStaff:
		return live.ChatStaff, err
	case chat.ReceivesAll:
		return live.ChatAll, err
	default:
		return live.NoChat, err
	}
}

// received counts as delivered what a listener has acknowledged.
func (h hearing) received(ctx context.Context, l live.Listener, o cloud.OrderID, ids []string) error {
	recipient, _ := guestOf(l)
	return h.Received(ctx, l.BusinessID, l.AccountID, recipient, o, ids)
}

// guest is a recipient by whose order it is, and by the epoch of the token that it
// came with: when that token ends, so does what it listens with.
func guest(o cloud.OrderID, epoch int) string { return fmt.Sprintf("%d/%d", o, epoch) }

// guestOf reads a guest; 0 of an account, and of what is none.
func guestOf(l live.Listener) (o cloud.OrderID, epoch int) {
	order, text, _ := strings.Cut(l.Guest, "/")
	id, err := strconv.ParseInt(order, 10, 64)
	if epoch, wrong := strconv.Atoi(text); err == nil && wrong == nil {
		return cloud.OrderID(id), epoch
	}
	return 0, 0
}

// listening gives the participants of chats what they listen with. A recipient is
// the guest of its order.
type listening struct{ *live.Service }

func (l listening) Issue(ctx context.Context, who chat.Listener) (chat.MQTT, error) {
	to := live.Listener{BusinessID: who.BusinessID, AccountID: who.Account}
	if who.Recipient != 0 {
		to.Guest = guest(who.Recipient, who.Epoch)
	} else if t, ok := catalog.TokenOf(ctx); ok {
		to.Token = t.Hash
	}
	for _, c := range who.Channels {
		to.Orders = append(to.Orders, c.OrderID)
	}
	c, err := l.Service.Issue(ctx, to)
	return chat.MQTT{URL: c.URL, WebSocketURL: c.WebSocketURL, ClientID: c.ClientID, Username: c.Username, Password: c.Password, Topics: c.Topics, ExpiresAt: c.ExpiresAt}, err
}

package server

import (
	"context"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/live"
)

// hearing tells the live channel who may hear a chat.
type hearing struct{ *chat.Service }

func (h hearing) Chat(ctx context.Context, l live.Listener, o cloud.OrderID) (live.ChatRight, error) {
	guest, _ := strconv.ParseInt(l.Guest, 10, 64) // of an account: none
	switch right, err := h.Rights(ctx, l.BusinessID, l.AccountID, cloud.OrderID(guest), o); right {
	case chat.HearsStaff:
		return live.ChatStaff, err
	case chat.HearsAll:
		return live.ChatAll, err
	default:
		return live.NoChat, err
	}
}

// received counts as delivered what a listener has acknowledged.
func (h hearing) received(ctx context.Context, l live.Listener, o cloud.OrderID, ids []string) error {
	guest, _ := strconv.ParseInt(l.Guest, 10, 64)
	return h.Received(ctx, l.BusinessID, l.AccountID, cloud.OrderID(guest), o, ids)
}

// listening gives those who may hear chats what they listen with. A recipient is
// the guest of its order.
type listening struct{ *live.Service }

func (l listening) Issue(ctx context.Context, who chat.Listener) (chat.MQTT, error) {
	to := live.Listener{BusinessID: who.BusinessID, AccountID: who.Account}
	if who.Recipient != 0 {
		to.Guest = strconv.FormatInt(int64(who.Recipient), 10)
	} else if t, ok := catalog.TokenOf(ctx); ok {
		to.Token = t.Hash
	}
	for _, c := range who.Channels {
		to.Orders = append(to.Orders, c.OrderID)
	}
	c, err := l.Service.Issue(ctx, to)
	return chat.MQTT{URL: c.URL, WebSocketURL: c.WebSocketURL, ClientID: c.ClientID, Username: c.Username, Password: c.Password, Topics: c.Topics, ExpiresAt: c.ExpiresAt}, err
}

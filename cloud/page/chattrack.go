package page

import (
	"context"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/tracking"
)

// trackSend takes the chat's form of a tracking page. Nobody is logged in there:
// who has the number may write, and gets the token with the tracking answer.
func (p *Pages) trackSend(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if !sameSite(ctx) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	f, out, ok := p.parcel(c, ctx)
	if !ok {
		return
	}
	if out.Chat.Token == nil {
		p.showParcel(c, ctx, f, out, nil, cloud.E(cloud.Conflict, "CONVERSATION_CLOSED"))
		return
	}
	in := readChatForm(ctx.PostArgs())
	run := recipientCall{c, ctx, p, f.Lang, *out.Chat.Token, out.OrderID}
	var err error
	switch in.do {
	case "send":
		err = in.send(func(name string, body map[string]any) (chat.MessageOutput, error) {
			return runRecipient[chat.MessageOutput](run, name, body)
		})
	case "read":
		_, err = runRecipient[chat.MarkOutput](run, "order_chat.read", map[string]any{"last_message_id": in.last})
	default:
		p.message(ctx, fasthttp.StatusBadRequest, "trouble.title", "oops.body")
		return
	}
	if err != nil {
		p.showParcel(c, ctx, f, out, &in, err)
		return
	}
	seeOther(ctx, f.Path+"#chat-end")
}

// recipientCall is how pages call the interface for an order's recipient.
type recipientCall struct {
	c     context.Context
	ctx   *fasthttp.RequestCtx
	p     *Pages
	lang  string
	token string
	order cloud.OrderID
}

func runRecipient[Out any](r recipientCall, operation string, in map[string]any) (Out, error) {
	in["order_id"] = r.order
	return runAs[Out](r.c, r.ctx, r.p, r.lang, r.token, operation, in)
}

// chatArea is where the script calls the interface for the recipient.
const chatArea = "/api/v1/order-chat"

// recipientPanel is the chat as the order's recipient sees it.
func (p *Pages) recipientPanel(c context.Context, ctx *fasthttp.RequestCtx, f frame, out tracking.PublicOutput) (*chatPanel, error) {
	call := recipientCall{c, ctx, p, f.Lang, *out.Chat.Token, out.OrderID}
	talk, err := runRecipient[chat.ConversationOutput](call, "order_chat.find", map[string]any{})
	if err != nil {
		return nil, err
	}
	in := map[string]any{}
	before := hookID(string(ctx.QueryArgs().Peek("before")))
	if before != 0 {
		in["before_id"] = before
	}
	said, err := runRecipient[chat.MessagesOutput](call, "order_chat.messages", in)
	if err != nil {
		return nil, err
	}
	panel := &chatPanel{frame: f, OrderID: call.order, Action: f.Path, API: fmt.Sprintf(chatArea+"/orders/%d", call.order), Messages: chatArea + "/messages", Files: chatArea + "/attachments", Listen: chatArea + "/token", Token: call.token,
		Me: string(cloud.ChatRecipient) + ":", ZoneName: f.Zone.String(), Writes: true, ClientID: newClientID()}
	if before != 0 {
		panel.Newest = f.Path + "#chat"
	}
	panel.fill(talk, said)
	return panel, nil
}

package page

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/tracking"
)

// trackPost takes the forms of a tracking page: proof, and the chat's.
func (p trackingPages) trackPost(ctx *fasthttp.RequestCtx) {
	c, cancel := visit(ctx)
	defer cancel()
	if !sameSite(ctx) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	switch string(ctx.PostArgs().Peek("do")) {
	case "verify":
		p.verify(c, ctx)
		return
	case "open":
		p.openParcel(ctx)
		return
	case "return":
		p.returnParcel(c, ctx)
		return
	case "hand_over":
		p.handOver(c, ctx, false)
		return
	case "take_back":
		p.handOver(c, ctx, true)
		return
	}
	if p.cfg.Chats {
		p.trackSend(c, ctx)
		return
	}
	p.message(ctx, fasthttp.StatusBadRequest, "trouble.title", "oops.body")
}

// verify takes the last digits of the recipient's telephone number. Where they
// are right the browser keeps a proof for a day.
func (p trackingPages) verify(c context.Context, ctx *fasthttp.RequestCtx) {
	digits := strings.TrimSpace(string(ctx.PostArgs().Peek("digits")))
	f, out, ok := p.parcel(c, ctx, cmp.Or(digits, "-"))
	if !ok {
		return
	}
	if out.DayProof != "" {
		p.setCookie(ctx, keyCookie, out.DayProof, f.Path, tracking.ProofLife, fasthttp.CookieSameSiteLaxMode)
	}
	if out.Access.Level == tracking.LevelRecipient {
		seeOther(ctx, f.Path)
		return
	}
	view, status := trackView(f, out), fasthttp.StatusUnprocessableEntity
	view.Problem = f.T("track.wrong")
	if wait := out.Access.RetryAfter; wait != nil {
		status, view.Problem = fasthttp.StatusTooManyRequests, f.T("track.locked", strconv.Itoa((*wait+59)/60))
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(*wait))
	}
	p.showUnproved(ctx, status, view)
}

// showUnproved shows a parcel to a visitor whose proof was refused, and why.
func (p trackingPages) showUnproved(ctx *fasthttp.RequestCtx, status int, view trackPage) {
	if view.offerProof(p.cfg.Chats); !view.Asks {
		view.Warning, view.Problem = view.Problem, ""
	}
	p.show(ctx, status, "track.html", view)
}

// trackSend takes the chat's form. Only the recipient has the token for it, which
// comes with the tracking answer.
func (p trackingPages) trackSend(c context.Context, ctx *fasthttp.RequestCtx) {
	f, out, ok := p.parcel(c, ctx, "")
	if !ok {
		return
	}
	if out.Chat.Enabled && out.Chat.Token == nil {
		view := trackView(f, out)
		view.Problem = f.T("track.needproof")
		p.showUnproved(ctx, fasthttp.StatusForbidden, view)
		return
	}
	if out.Chat.Token == nil {
		p.showParcel(c, ctx, f, out, nil, cloud.E(cloud.Conflict, "CONVERSATION_CLOSED"))
		return
	}
	in := readChatForm(ctx.PostArgs())
	run := recipientCall{c, ctx, p.kit, f.Lang, *out.Chat.Token, out.OrderID}
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
	p     *kit
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
func (p trackingPages) recipientPanel(c context.Context, ctx *fasthttp.RequestCtx, f frame, out tracking.PublicOutput) (*chatPanel, error) {
	call := recipientCall{c, ctx, p.kit, f.Lang, *out.Chat.Token, out.OrderID}
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

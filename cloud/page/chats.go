package page

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/locale"
)

const (
	chatsPath = ConsolePath + "/chats"
	maxChats  = 20 // on a page
)

// ChatUploads is where the script of a conversation's page uploads files, in
// bodies of up to MaxChatUpload bytes, which its server has to let in.
const (
	ChatUploads   = chatsPath + "/{id}/api/attachments"
	MaxChatUpload = 11 << 20
)

type chatsPage struct {
	frame
	CSRF            string
	Status, Keyword string // filters
	Unread          bool
	Problem         string
	Rows            []chatsRow
	Total           int
	Before, After   string // pages beside this one, "" none
}

// chatsRow is a conversation in the list.
type chatsRow struct {
	OrderID     cloud.OrderID
	Number, Ref string
	Closed      bool
	Unread      int
	Who, Said   string // last message
	At          *moment
}

// chats lists the conversations about the business's orders, those that changed
// last first.
func (p chatPages) chats(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.visitor(c, ctx)
	if !ok {
		return
	}
	v.Title = v.T("chat.title")
	args := ctx.QueryArgs()
	page := chatsPage{CSRF: p.formToken(ctx, &forStaff), Keyword: outside(strings.TrimSpace(string(args.Peek("keyword"))), maxFilter), Unread: args.Has("unread")}
	if s := string(args.Peek("status")); slices.Contains([]string{"open", "closed"}, s) {
		page.Status = s
	}
	n := int(max(hookID(string(args.Peek("page"))), 1))
	out, err := run[chat.ListOutput](c, ctx, p.kit, v, "order_chat.conversations", map[string]any{"status": page.Status, "unread_only": page.Unread, "keyword": page.Keyword, "page": n, "per_page": maxChats})
	status := fasthttp.StatusOK
	var shown *cloud.Error
	switch {
	case errors.As(err, &shown) && shown.Kind == cloud.Invalid:
		page.Problem, status = cmp.Or(fieldProblem(v.frame, shown), describeError(v.frame, shown)), statusOf(shown)
	case err != nil:
		p.refused(ctx, v, err)
		return
	}
	for _, x := range out.Conversations {
		page.Rows = append(page.Rows, newChatsRow(v.frame, x))
	}
	page.Total, v.Query = out.Total, page.query(n)
	if n > 1 {
		page.Before = chatsPath + "?" + page.query(n-1)
	}
	if n*maxChats < out.Total {
		page.After = chatsPath + "?" + page.query(n+1)
	}
	page.frame = v.frame
	page.Kit = []string{"chat"}
	p.show(ctx, status, "chats.html", page)
}

// query is the address of a page with these filters.
func (p chatsPage) query(n int) string {
	q := url.Values{"page": {strconv.Itoa(n)}}
	for name, value := range map[string]string{"status": p.Status, "keyword": p.Keyword} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if p.Unread {
		q.Set("unread", "1")
	}
	return q.Encode()
}

// fieldProblem is the first of what is wrong with fields, in words.
func fieldProblem(f frame, e *cloud.Error) string {
	for _, texts := range e.Fields {
		for _, t := range texts {
			return locale.Field(f.Lang, t)
		}
	}
	return ""
}

func newChatsRow(f frame, x chat.Conversation) chatsRow {
	r := chatsRow{OrderID: x.OrderID, Number: x.TrackingNumber, Closed: x.Status == "closed", Unread: x.Unread}
	if x.OrderRef != nil {
		r.Ref = outside(*x.OrderRef, 80)
	}
	if x.UpdatedAt != nil {
		r.At = f.stamped(x.UpdatedAt)
	}
	if m := x.LastMessage; m != nil {
		r.Who, r.Said = outside(cmp.Or(m.Sender.Name, f.V("chatrole", string(m.Sender.Type))), 80), gist(f, *m)
	}
	return r
}

// UnreadText is how many messages are not read, in digits.
func (r chatsRow) UnreadText() string { return strconv.Itoa(r.Unread) }

type chatPage struct {
	frame
	User, Business, CSRF string
	Number               string
	Chat                 *chatPanel
}

func chatOrder(ctx *fasthttp.RequestCtx) cloud.OrderID {
	id, _ := ctx.UserValue("id").(string)
	return cloud.OrderID(hookID(id))
}

// chat shows what is said about one order.
func (p chatPages) chat(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if v, ok := p.visitor(c, ctx); ok {
		p.showChat(c, ctx, v, nil, nil)
	}
}

// chatForm takes the forms of a conversation's page.
func (p chatPages) chatPost(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.writer(c, ctx)
	if !ok {
		return
	}
	in, id := readChatForm(ctx.PostArgs()), chatOrder(ctx)
	var err error
	switch in.do {
	case "send":
		err = in.send(func(name string, body map[string]any) (chat.MessageOutput, error) {
			body["order_id"] = id
			return run[chat.MessageOutput](c, ctx, p.kit, v, name, body)
		})
	case "read":
		_, err = run[chat.MarkOutput](c, ctx, p.kit, v, "order_chat.read", map[string]any{"order_id": id, "last_message_id": in.last})
	case "close", "reopen":
		_, err = run[chat.ConversationOutput](c, ctx, p.kit, v, "order_chat."+in.do, map[string]any{"order_id": id})
	default:
		p.message(ctx, fasthttp.StatusBadRequest, "trouble.title", "oops.body")
		return
	}
	if err != nil {
		p.showChat(c, ctx, v, &in, err)
		return
	}
	seeOther(ctx, fmt.Sprintf("%s/%d#chat-end", chatsPath, id))
}

// showChat shows a conversation with what a form has brought.
func (p chatPages) showChat(c context.Context, ctx *fasthttp.RequestCtx, v visitor, in *chatForm, tried error) {
	id := chatOrder(ctx)
	find := map[string]any{"order_id": id}
	talk, err := run[chat.ConversationOutput](c, ctx, p.kit, v, "order_chat.find", find)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	before := hookID(string(ctx.QueryArgs().Peek("before")))
	if before != 0 {
		find = map[string]any{"order_id": id, "before_id": before}
	}
	messages, err := run[chat.MessagesOutput](c, ctx, p.kit, v, "order_chat.messages", find)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	page := chatPage{CSRF: p.formToken(ctx, &forStaff)}
	self := fmt.Sprintf("%s/%d", chatsPath, id)
	panel := &chatPanel{OrderID: id, Action: self, API: self + "/api", Messages: self + "/api/messages", Files: self + "/api/attachments", Listen: self + "/api/token", CSRF: page.CSRF, Me: fmt.Sprintf("%s:%d", cloud.ChatDispatcher, v.c.Account.ID), ZoneName: v.Zone.String(),
		Writes: p.may(c, v, "order_chat.send"), Manages: p.may(c, v, "order_chat.close"), ClientID: newClientID()}
	err = p.cfg.Store.Look(c, func(view cloud.View) error {
		o, err := view.Order(v.c.Account.BusinessID, id)
		if err != nil {
			return err
		}
		page.Number = o.Number
		b, err := view.Business(o.BusinessID)
		panel.Quick = b.Settings.Chat.QuickReplies
		return err
	})
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	if before != 0 {
		panel.Newest, v.Query = self+"#chat", fmt.Sprintf("before=%d", before)
	}
	v.Title = v.T("chat.title") + " " + page.Number
	v.Kit = []string{"chat"}
	page.frame, panel.frame, page.Chat = v.frame, v.frame, panel
	panel.fill(talk, messages)
	panel.tried(p.why(v.frame, tried), in)
	var shown *cloud.Error
	if errors.As(tried, &shown) && shown.Code == "CONVERSATION_CLOSED" { // perhaps before anybody said anything
		panel.Closed, panel.Begun = true, true
	}
	ctx.Response.Header.Set("Content-Security-Policy", p.chatPolicy)
	p.show(ctx, statusFor(tried), "chat.html", page)
}

// maxCall is the size of what the script of a conversation's page sends.
const maxCall = 64 << 10

// chatCall is an operation about a conversation for the script of its page, which
// cannot know the session: as the interface takes and answers it, with the form's
// secret in place of a token.
func (p chatPages) chatCall(name string) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		c, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		lang := p.frame(ctx, "chat.title").Lang
		_, ok, err := p.session(c, ctx, &forStaff)
		if err == nil && !ok {
			err = cloud.E(cloud.Unauthenticated, "UNAUTHENTICATED")
		}
		var in map[string]any
		if err == nil {
			in, err = callInput(ctx, name)
		}
		if err != nil {
			p.refuseCall(ctx, lang, err)
			return
		}
		a, err := p.answer(c, ctx, lang, sessionToken(ctx), "order_chat."+name, in)
		if err != nil {
			p.refuseCall(ctx, lang, err)
			return
		}
		if a.Body == nil {
			ctx.SetStatusCode(fasthttp.StatusNoContent)
			return
		}
		p.writeJSON(ctx, fasthttp.StatusOK, a.Body)
	}
}

// callInput is what a script gives to an operation.
func callInput(ctx *fasthttp.RequestCtx, name string) (in map[string]any, err error) {
	if !ctx.IsGet() {
		cookie, form := ctx.Request.Header.Cookie(forStaff.form), ctx.Request.Header.Peek("X-Form")
		if !sameSite(ctx) || len(cookie) != 32 || subtle.ConstantTimeCompare(cookie, form) != 1 {
			return nil, cloud.E(cloud.Forbidden, "FORBIDDEN")
		}
	}
	switch {
	case name == "attach":
		in, err = callUpload(ctx)
	case ctx.IsPost() || ctx.IsPatch():
		in, err = callBody(ctx)
	default:
		in = map[string]any{}
		for _, q := range []string{"before_id", "after_id", "limit"} {
			if name == "messages" && ctx.QueryArgs().Has(q) {
				in[q] = string(ctx.QueryArgs().Peek(q))
			}
		}
	}
	if err != nil {
		return nil, err
	}
	switch id := chatOrder(ctx); name {
	case "token":
		in["order_ids"] = []cloud.OrderID{id}
	case "edit", "delete":
		message, _ := ctx.UserValue("message").(string)
		in["message_id"] = hookID(message)
	default:
		in["order_id"] = id
	}
	return in, nil
}

// callBody is the JSON of a call.
func callBody(ctx *fasthttp.RequestCtx) (in map[string]any, err error) {
	body := ctx.PostBody()
	if len(body) > maxCall {
		return nil, cloud.E(cloud.TooLarge, "PAYLOAD_TOO_LARGE")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&in); err != nil || in == nil {
		return nil, cloud.E(cloud.Malformed, "MALFORMED_JSON")
	}
	return in, nil
}

// callUpload is the file of a call, and what it is called.
func callUpload(ctx *fasthttp.RequestCtx) (map[string]any, error) {
	if len(ctx.Request.Header.ContentEncoding()) > 0 { // what it unpacks to is anybody's guess
		return nil, cloud.E(cloud.Malformed, "UNSUPPORTED_MEDIA_TYPE")
	}
	form, err := ctx.MultipartForm()
	if err != nil || len(form.File["file"]) == 0 {
		return nil, cloud.E(cloud.Malformed, "BAD_REQUEST")
	}
	f, err := form.File["file"][0].Open()
	if err != nil {
		return nil, fmt.Errorf("open uploaded file: %w", err)
	}
	defer f.Close()
	body, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read uploaded file: %w", err)
	}
	in := map[string]any{"file": body}
	if names := form.Value["name"]; len(names) > 0 {
		in["name"] = names[0]
	}
	return in, nil
}

// refuseCall answers a script with an error.
func (p chatPages) refuseCall(ctx *fasthttp.RequestCtx, lang string, err error) {
	f := frame{Lang: lang}
	message := p.why(f, err)
	shown, _ := cloud.Answered(err)
	if shown.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(shown.RetryAfter))
	}
	p.writeJSON(ctx, catalog.Status(shown), map[string]any{"result": false, "error_code": shown.Code, "message": cmp.Or(fieldProblem(f, shown), message)})
}

func (p chatPages) writeJSON(ctx *fasthttp.RequestCtx, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		p.log.Error("encode answer", "path", string(ctx.Path()), "err", err)
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.SetBody(b)
}

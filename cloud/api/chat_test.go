package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/chat"
)

const chats = "/api/v1/order-chat"

// invited is an order with a message, and what its public tracking answer says of
// the chat.
func (x *world) invited() (order, token string) {
	order, _ = x.said()
	number, _ := at(x.made("GET", "/api/v1/orders/"+order, x.token(admin), ""), "order", "tracking_number").(string)
	shown := x.made("GET", "/api/v1/tracking/"+number, x.token(admin), "")
	require.Equal(x.t, true, at(shown, "chat", "enabled"))
	token, _ = at(shown, "chat", "token").(string)
	require.NotZero(x.t, at(shown, "chat", "order_id"), "whose chat it is")
	require.True(x.t, strings.HasPrefix(token, cloud.RecipientToken))
	return order, token
}

// The token of an order's recipient is good for the operations that name
// recipients, about that order: everywhere else it is no token at all.
func TestTheRecipientsTokenIsGoodForOneOrder(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: x.graph.Schema()})
	require.Nil(t, err)
	order, token := x.invited()
	other, _ := x.said()
	open := []string{"order_chat.find", "order_chat.messages", "order_chat.send", "order_chat.edit", "order_chat.delete", "order_chat.read", "order_chat.typing", "order_chat.attach", "order_chat.token"}
	var named []string
	for _, o := range x.table.Operations() {
		if o.NoToken {
			continue
		}
		ask := func(path, body string) answer { return x.do(o.Method, path, token, body) }
		if !o.Recipient {
			code := "TOKEN_INVALID"
			if o.NoTokenCode != "" {
				code = o.NoTokenCode
			}
			require.Equal(t, code, ask(unknown(o.Path, order), "{}").code(), o.Name)
			require.Equal(t, 401, ask(unknown(o.Path, order), "{}").status, o.Name)
			if o.GraphQL != nil {
				require.Equal(t, code, x.ask(x.field(schema, o, call{path: unknown(o.Path, order)}), token).code(), o.Name)
			}
			continue
		}
		named = append(named, o.Name)
		require.Equal(t, chat.Feature, o.Gate)
		theirs, mine := call{path: unknown(o.Path, other)}, call{path: unknown(o.Path, order)}
		switch o.Name {
		case "order_chat.attach":
			theirs.body, mine.body = proofOf("order_id", other), proofOf("order_id", order)
		case "order_chat.token":
			theirs.body, mine.body = `{"order_ids":[`+order+","+other+`]}`, `{"order_ids":[`+order+`]}`
		case "order_chat.send":
			theirs.body, mine.body = `{"text":"x"}`, `{"text":"x"}`
		case "order_chat.read":
			theirs.body, mine.body = `{"last_message_id":1}`, `{"last_message_id":1}`
		case "order_chat.edit", "order_chat.delete":
			own := x.made("POST", chats+"/orders/"+order+"/messages", token, `{"text":"x"}`)
			mine.path = unknown(o.Path, x.id(at(own, "message", "message_id")))
			_, m := x.said()
			theirs.path = unknown(o.Path, m)
			theirs.body, mine.body = `{"text":"x"}`, `{"text":"x"}`
		case "order_chat.typing":
			theirs.body, mine.body = `{"typing":true}`, `{"typing":true}`
		}
		a := ask(theirs.path, theirs.body)
		require.Equal(t, 404, a.status, "%s: %s", o.Name, a.body)
		a = ask(mine.path, mine.body)
		require.Less(t, a.status, 300, "%s: %s", o.Name, a.body)
		if o.GraphQL != nil && o.Name != "order_chat.send" {
			require.Equal(t, 404, x.ask(x.field(schema, o, theirs), token).status)
			require.Empty(t, x.ask(x.field(schema, o, mine), token).code(), o.Name)
		}
	}
	require.ElementsMatch(t, open, named)
	a := x.do("POST", "/api/graphql", token, `{"query":"mutation { orderChatSend(input: {order_id: `+order+`, text: \"by GraphQL\"}) { text sender { type id } } }"}`)
	require.JSONEq(t, `{"data":{"orderChatSend":{"text":"by GraphQL","sender":{"type":"recipient","id":null}}}}`, string(a.body))
	for _, bad := range []string{token[:len(token)-2], cloud.RecipientToken, cloud.RecipientToken + strings.Repeat("A", 54)} {
		require.Equal(t, "TOKEN_INVALID", x.do("GET", chats+"/orders/"+order, bad, "").code())
	}
	require.Equal(t, "TOKEN_INVALID", x.do("GET", chats+"/orders/"+order+"/nothing", token, "").code())

	// Audit lines say who it was, and hold no token.
	found := false
	for _, l := range x.audits() {
		found = found || l.Actor == "recipient:"+order && l.Action == "order_chat.send"
		require.NotContains(t, fmt.Sprint(l), token)
	}
	require.True(t, found)

	path := chats + "/orders/" + order + "/messages"
	x.made("PUT", chats+"/settings", x.token(admin), `{"allow_recipient":false}`)
	require.Equal(t, "NOT_A_PARTICIPANT", x.do("GET", path, token, "").code())
	x.made("PUT", chats+"/settings", x.token(admin), `{"allow_recipient":true}`)
	x.made("PUT", "/api/v1/features/order_chat", x.token(admin), `{"enabled":false}`)
	off := x.do("GET", path, token, "")
	require.Equal(t, 409, off.status)
	require.Equal(t, false, off.json["feature_enabled"])
	x.made("PUT", "/api/v1/features/order_chat", x.token(admin), `{"enabled":true}`)
	require.Equal(t, 200, x.do("GET", path, token, "").status)
	x.made("POST", chats+"/orders/"+order+"/close", x.token(admin), `{}`)
	require.Equal(t, "TOKEN_INVALID", x.do("GET", path, token, "").code(), "until the conversation closes")
	x.made("POST", chats+"/orders/"+order+"/reopen", x.token(admin), `{}`)
	require.Equal(t, "TOKEN_INVALID", x.do("GET", path, token, "").code())
}

// The tracking answer has a token only while recipients may chat.
func TestTheTrackingAnswerInvitesToTheChat(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	order, _ := x.order(cloud.OrderNew)
	number, _ := at(x.made("GET", "/api/v1/orders/"+order, x.token(admin), ""), "order", "tracking_number").(string)
	invited := func() bool {
		shown := x.made("GET", "/api/v1/tracking/"+number, x.token(admin), "")
		require.Equal(t, at(shown, "chat", "enabled"), at(shown, "chat", "token") != nil)
		return at(shown, "chat", "enabled") == true
	}
	require.True(t, invited(), "before anybody said anything")
	x.made("PUT", chats+"/settings", x.token(admin), `{"allow_recipient":false}`)
	require.False(t, invited())
	x.made("PUT", chats+"/settings", x.token(admin), `{"allow_recipient":true}`)
	require.True(t, invited())
	x.made("PUT", "/api/v1/features/order_chat", x.token(admin), `{"enabled":false}`)
	require.False(t, invited())
	require.Nil(t, at(x.made("GET", "/api/v1/tracking/SWP100200300", "", ""), "chat", "token"), "a parcel without an order")
}

// An order that changes hands: its former driver reads on for a while and writes
// no more, also when there was no message before.
func TestTheChatFollowsTheDriver(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	order, _ := x.order(cloud.OrderNew)
	drive := func(driver string) {
		x.made("POST", "/api/v1/orders/"+order+"/driver", x.token(admin), `{"driver_id":`+driver+`}`)
	}
	messages := chats + "/orders/" + order + "/messages"
	sam := x.token(cloud.DriverAccount)
	require.Equal(t, "ORDER_NOT_FOUND", x.do("GET", messages, sam, "").code())
	drive("4")
	drive("null")
	require.Equal(t, 200, x.do("GET", messages, sam, "").status)
	require.Equal(t, "NOT_A_PARTICIPANT", x.do("POST", messages, sam, `{"text":"x"}`).code())
	drive("4")
	x.made("POST", messages, sam, `{"text":"x"}`)
	drive("null")
	x.made("POST", messages, x.token(admin), `{"text":"y"}`)
	require.Len(t, x.made("GET", messages, sam, "")["messages"], 2)
	require.Equal(t, "NOT_A_PARTICIPANT", x.do("POST", messages, sam, `{"text":"x"}`).code())
	require.Equal(t, "ORDER_NOT_FOUND", x.do("GET", messages, x.w.Others[cloud.DriverAccount], "").code())
}

// The answer to typing is empty.
func TestTypingIsAnsweredWithNothing(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	order, _ := x.order(cloud.OrderNew)
	a := x.do("POST", chats+"/orders/"+order+"/typing", x.token(admin), `{"typing":true}`)
	require.Equal(t, 204, a.status)
	require.Empty(t, a.body)
	require.Equal(t, "MALFORMED_JSON", x.do("POST", chats+"/orders/"+order+"/typing", x.token(admin), `{`).code())
}

// The mirrors in GraphQL do what the addresses do, and while the family is off,
// by the business's switch or the platform's, neither does anything.
func TestTheChatInGraphQL(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	order, first := x.said()
	ask := func(query string) answer {
		return x.do("POST", "/api/graphql", x.token(admin), `{"query":"`+strings.ReplaceAll(query, `"`, `\"`)+`"}`)
	}
	const send, list, read = `mutation { orderChatSend(input: {order_id: %s, text: "At the dock", client_message_id: "g-1"}) { message_id text status } }`,
		`{ orderChatMessages(orderId: %s, beforeId: %s, limit: 1) { messages { message_id text } has_more } }`, `mutation { orderChatMarkRead(orderId: %s, lastMessageId: %s) { unread } }`
	sent := ask(fmt.Sprintf(send, order))
	id := x.id(at(sent.json, "data", "orderChatSend", "message_id"))
	require.Equal(t, "At the dock", at(sent.json, "data", "orderChatSend", "text"), "%s", sent.body)
	require.Nil(t, at(x.made("GET", "/api/v1/orders/"+order, x.token(admin), ""), "order", "note"), "a message is no note of the order")
	require.JSONEq(t, string(sent.body), string(ask(fmt.Sprintf(send, order)).body), "sent again it is the first")
	require.JSONEq(t, `{"data":{"orderChatMessages":{"messages":[{"message_id":`+first+`,"text":"Which door is it?"}],"has_more":false}}}`, string(ask(fmt.Sprintf(list, order, id)).body))
	require.JSONEq(t, `{"data":{"orderChatMarkRead":{"unread":0}}}`, string(ask(fmt.Sprintf(read, order, id)).body))

	off := func() {
		t.Helper()
		for _, query := range []string{fmt.Sprintf(send, order), fmt.Sprintf(list, order, id), fmt.Sprintf(read, order, id)} {
			a := ask(query)
			require.Contains(t, string(a.body), `"error_code":"FEATURE_DISABLED","http_status":409`)
			require.Nil(t, a.json["data"])
		}
		for _, path := range []string{"/conversations", "/settings", "/unread-count", "/orders/" + order, "/orders/" + order + "/messages", "/orders/999999/messages"} {
			a := x.do("GET", chats+path, x.token(admin), "")
			require.Equal(t, []any{409, false, false}, []any{a.status, a.json["result"], a.json["feature_enabled"]}, path)
		}
		a := x.do("POST", chats+"/orders/"+order+"/messages", x.token(admin), `{`)
		require.Equal(t, 409, a.status, "whatever is sent")
	}
	x.made("PUT", "/api/v1/features/order_chat", x.token(admin), `{"enabled":false}`)
	off()
	x.made("PUT", "/api/v1/features/order_chat", x.token(admin), `{"enabled":true}`)
	require.NotContains(t, string(ask(fmt.Sprintf(list, order, id)).body), "errors")
	x.made("PUT", "/api/v1/admin/features/order_chat/42", x.token(cloud.PlatformAdmin), `{"state":"revoked","enabled":true}`)
	off()
}

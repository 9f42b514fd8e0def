package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
)

var (
	chatRead  = []string{"chat:read"}
	chatWrite = []string{"chat:write"}

	// talkers take part in the chat of orders, each of those that they see. Those
	// who have the token of an order's recipient do, too.
	talkers = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer}
)

// chats are what is said about orders.
func (c Config) chats() []catalog.Operation {
	s := c.Chat
	const area = "/api/v1/order-chat"
	const order = area + "/orders/{order_id}"
	const outsider, closed, unknown = "NOT_A_PARTICIPANT", "CONVERSATION_CLOSED", "CONVERSATION_NOT_FOUND"
	row := func(name, summary, method, path string, types []cloud.AccountType, errs ...string) catalog.Operation {
		r := catalog.Operation{Name: "order_chat." + name, Summary: summary, Tag: "Order Chat", Method: method, Path: path, Types: types, Scopes: chatRead, Gate: chat.Feature,
			Errors: append([]string{"FEATURE_DISABLED"}, errs...)}
		if method != http.MethodGet {
			r.Scopes = chatWrite
		}
		return r
	}
	with := func(r catalog.Operation, change func(*catalog.Operation)) catalog.Operation {
		change(&r)
		return r
	}
	// open is an operation for recipients, too.
	open := func(r catalog.Operation) catalog.Operation {
		r.Recipient = true
		return r
	}
	graph := func(r catalog.Operation, g catalog.GraphQL) catalog.Operation {
		r.GraphQL = &g
		return r
	}
	settings := func(r *catalog.Operation) { r.Scopes = settingsWrite }
	rows := []catalog.Operation{
		catalog.Define(with(row("settings.find", "Get the order chat settings", "GET", area+"/settings", admins), settings), s.FindSettings, nil),
		catalog.Define(with(row("settings.save", "Save the order chat settings", "PUT", area+"/settings", admins), func(r *catalog.Operation) {
			settings(r)
			r.Risk, r.Example = catalog.RiskMedium, chat.SettingsInput{Recipient: ptr(true), CloseHours: ptr(48), QuickReplies: &[]chat.QuickReply{{ID: "on-my-way", Text: "I am on my way", Audience: "all"}},
				Hours: &[]chat.Hours{{Days: []int{1, 2, 3, 4, 5}, Start: "09:00", End: "17:00"}}, AutoReply: ptr("We answer from nine to five.")}
		}), s.SaveSettings, nil),
		catalog.Define(row("conversations", "List order conversations, latest change first", "GET", area+"/conversations", talkers), s.List, nil),
		catalog.Define(row("unread_count", "Count the caller's unread messages", "GET", area+"/unread-count", talkers), s.UnreadCount, nil),
		catalog.Define(open(row("find", "Get the conversation about an order", "GET", order, talkers, missing, outsider)), s.Find, nil),
		catalog.Define(graph(open(row("messages", "List messages about an order, oldest first", "GET", order+"/messages", talkers, missing, outsider)), catalog.GraphQL{Field: "orderChatMessages", Type: "OrderChatMessageList"}),
			s.Messages, nil),
		catalog.Define(graph(open(with(row("send", "Send a message about an order", "POST", order+"/messages", talkers, missing, outsider, closed), func(r *catalog.Operation) {
			r.Status, r.Idempotent = http.StatusCreated, true
			r.Example = chat.SendInput{OrderID: 120045, ClientID: "c-9", Kind: "text", Text: "I am at the lobby"}
		})), catalog.GraphQL{Field: "orderChatSend", Pick: "message", Input: true, Mutation: true}), s.Send, nil),
		catalog.Define(open(row("edit", "Edit an own message within ten minutes", "PATCH", area+"/messages/{message_id}", talkers, "MESSAGE_NOT_FOUND", outsider, "NOT_THE_AUTHOR", closed, "MESSAGE_NOT_EDITABLE")), s.Edit, nil),
		catalog.Define(open(row("delete", "Delete the content of an own message within ten minutes", "DELETE", area+"/messages/{message_id}", talkers, "MESSAGE_NOT_FOUND", outsider, "NOT_THE_AUTHOR", closed, "MESSAGE_NOT_EDITABLE")), s.Delete, nil),
		catalog.Define(graph(open(with(row("read", "Mark messages as read", "POST", order+"/read", talkers, missing, outsider), func(r *catalog.Operation) {
			r.Scopes, r.Example = chatRead, chat.MarkInput{OrderID: 120045, UpTo: 51}
		})), catalog.GraphQL{Field: "orderChatMarkRead", Type: "OrderChatReadResult", Mutation: true}), s.MarkRead, nil),
		catalog.Define(open(with(row("typing", "Send a typing indicator", "POST", order+"/typing", talkers, missing, outsider, closed), func(r *catalog.Operation) {
			r.Status, r.Example = http.StatusNoContent, chat.TypingInput{Typing: true}
		})), s.Typing, func(chat.Nothing) catalog.Answer { return catalog.Answer{} }),
		catalog.Define(open(with(row("attach", "Upload a file for a message", "POST", area+"/attachments", talkers, missing, outsider, closed, "PAYLOAD_TOO_LARGE"), func(r *catalog.Operation) {
			r.Idempotent, r.Example = true, chat.AttachInput{OrderID: 120045, Name: "door.jpg"}
		})), s.Attach, nil),
		catalog.Define(row("close", "Close the conversation about an order", "POST", order+"/close", staff, missing, unknown), s.Close, nil),
		catalog.Define(row("reopen", "Open a closed conversation again", "POST", order+"/reopen", staff, missing, unknown), s.Reopen, nil),
		catalog.Define(row("participants.list", "List the participants of a conversation", "GET", order+"/participants", staff, missing), s.Participants, nil),
		catalog.Define(with(row("participants.add", "Add or mute a participant", "POST", order+"/participants", staff, missing, unknown), func(r *catalog.Operation) {
			r.Example = chat.AddInput{ID: 903, Muted: ptr(true)}
		}), s.Add, nil),
		catalog.Define(row("participants.remove", "Remove a participant", "DELETE", order+"/participants", staff, missing, unknown), s.Remove, nil),
	}
	if s.Listens() {
		rows = append(rows, catalog.Define(open(with(row("token", "Create live credentials for orders", "POST", area+"/token", talkers, missing, outsider), func(r *catalog.Operation) {
			r.Scopes, r.Secret, r.Example = chatRead, true, chat.TokenInput{OrderIDs: []cloud.OrderID{120045}}
		})), s.Token, nil))
	}
	return rows
}

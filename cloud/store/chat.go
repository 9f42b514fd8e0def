package store

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlConversation     = `SELECT body FROM conversation WHERE business_id = $1 AND order_id = $2`
	sqlSaveConversation = `INSERT INTO conversation (business_id, order_id, id, closed_at, reopened_at, shown_at, updated_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (business_id, order_id) DO UPDATE SET closed_at = excluded.closed_at, reopened_at = excluded.reopened_at, shown_at = excluded.shown_at,
  updated_at = excluded.updated_at, body = excluded.body`
	sqlSaveChatMember = `INSERT INTO chat_member (business_id, order_id, account_id, read_to, muted, gone) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (business_id, order_id, account_id) DO UPDATE SET read_to = excluded.read_to, muted = excluded.muted, gone = excluded.gone
WHERE chat_member.read_to <> excluded.read_to OR chat_member.muted <> excluded.muted OR chat_member.gone <> excluded.gone`

	sqlChatMessage         = `SELECT body FROM chat_message WHERE business_id = $1 AND id = $2`
	sqlChatMessageByClient = `SELECT body FROM chat_message WHERE business_id = $1 AND order_id = $2 AND sender_id = $3 AND client_id = $4 AND client_id <> ''`
	sqlSaveChatMessage     = `INSERT INTO chat_message (id, business_id, order_id, sender_id, client_id, staff, deleted, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET deleted = excluded.deleted, body = excluded.body
WHERE chat_message.business_id = excluded.business_id AND chat_message.order_id = excluded.order_id`

	sqlChatReads          = `SELECT up_to, at FROM chat_read WHERE business_id = $1 AND order_id = $2 AND account_id = $3 AND up_to >= $4 ORDER BY up_to LIMIT $5`
	sqlAddChatRead        = `INSERT INTO chat_read (business_id, order_id, account_id, up_to, at) VALUES ($1, $2, $3, $4, $5)`
	sqlChatUnread         = `SELECT COUNT(*) FROM chat_message WHERE business_id = $1 AND order_id = $2 AND id > $3 AND sender_id <> $4 AND NOT deleted`
	sqlChatUnreadShown    = sqlChatUnread + ` AND NOT staff`
	sqlChatAttachment     = `SELECT body FROM chat_attachment WHERE business_id = $1 AND id = $2`
	sqlAddChatAttachment  = `INSERT INTO chat_attachment (id, business_id, order_id, at, body) VALUES ($1, $2, $3, $4, $5)`
	sqlDropChatAttachment = `DELETE FROM chat_attachment WHERE business_id = $1 AND id = $2`
	sqlIdleAttachments    = `SELECT body FROM chat_attachment WHERE at < $1 ORDER BY at, id LIMIT $2`

	sqlDropConversation = `DELETE FROM conversation WHERE business_id = $1 AND order_id = $2`
	sqlDropChatFiles    = `DELETE FROM kept_file WHERE business_id = $1 AND order_id = $2 AND order_id <> 0 AND shard >= 'chat/' AND shard < 'chat0'`

	sqlNextChatBusiness = `SELECT business_id FROM conversation WHERE business_id > $1 ORDER BY business_id LIMIT 1`
	sqlEndedChats       = `SELECT c.order_id FROM conversation c JOIN orders o ON o.business_id = c.business_id AND o.id = c.order_id
WHERE c.business_id = $1 AND c.closed_at IS NULL AND c.order_id > $2 AND ` + chatEnded + `$3) ORDER BY c.order_id LIMIT $4`
	sqlOldChats = `SELECT order_id FROM conversation WHERE business_id = $1 AND closed_at < $2 ORDER BY closed_at LIMIT $3`

	// chatEnded asks whether an order has ended, and long enough ago.
	chatEnded = `(o.status_id IN (41, 45, 47, 50) AND o.status_at <= `
)

// droppedChat are the tables of a conversation but its own.
var droppedChat = []string{
	`DELETE FROM chat_member WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM chat_message WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM chat_read WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM chat_attachment WHERE business_id = $1 AND order_id = $2`,
}

func scanConversation(r rows, c *cloud.Conversation) error     { return r.Scan(parsed(c)) }
func scanChatMessage(r rows, m *cloud.ChatMessage) error       { return r.Scan(parsed(m)) }
func scanChatAttachment(r rows, a *cloud.ChatAttachment) error { return r.Scan(parsed(a)) }
func scanOrderID(r rows, id *cloud.OrderID) error              { return r.Scan((*int64)(id)) }

func (v chatView) Conversation(b cloud.BusinessID, o cloud.OrderID) (cloud.Conversation, error) {
	return one(v.ctx, v.q, v.locked(sqlConversation), scanConversation, int64(b), int64(o))
}

func (v chatView) ChatMessage(b cloud.BusinessID, id cloud.ChatMessageID) (cloud.ChatMessage, error) {
	return one(v.ctx, v.q, sqlChatMessage, scanChatMessage, int64(b), int64(id))
}

func (v chatView) ChatMessageByClient(b cloud.BusinessID, o cloud.OrderID, sender cloud.AccountID, id string) (cloud.ChatMessage, error) {
	return one(v.ctx, v.q, sqlChatMessageByClient, scanChatMessage, int64(b), int64(o), int64(sender), id)
}

// messageList is the list of a conversation's messages by their ids.
func messageList(p cloud.ChatPage) keyList {
	p.Sort = "id"
	l := keyList{columns: "body", from: "chat_message", page: p.Page}
	l.where.and("business_id = $%d AND order_id = $%d", int64(p.BusinessID), int64(p.OrderID))
	if !p.Staff {
		l.where.and("NOT staff")
	}
	return l
}

func (v chatView) ChatMessages(p cloud.ChatPage) ([]cloud.ChatMessage, cloud.Listed, error) {
	out, found, err := readKeyList(v.ctx, v.q, messageList(p), scanChatMessage)
	return found, out, err
}

func (v chatView) ChatReads(b cloud.BusinessID, o cloud.OrderID, reader cloud.AccountID, from cloud.ChatMessageID, limit int) ([]cloud.ChatRead, error) {
	return list(v.ctx, v.q, sqlChatReads, func(r rows, x *cloud.ChatRead) error {
		*x = cloud.ChatRead{BusinessID: b, OrderID: o, Account: reader}
		return r.Scan((*int64)(&x.UpTo), when(&x.At))
	}, int64(b), int64(o), int64(reader), int64(from), limit)
}

func (v chatView) ChatUnread(b cloud.BusinessID, o cloud.OrderID, staff bool, reader cloud.AccountID, read cloud.ChatMessageID) (int, error) {
	sql := sqlChatUnreadShown
	if staff {
		sql = sqlChatUnread
	}
	n, err := one(v.ctx, v.q, sql, scanInt, int64(b), int64(o), int64(read), int64(reader))
	return int(n), err
}

func (v chatView) ChatAttachment(b cloud.BusinessID, id int64) (cloud.ChatAttachment, error) {
	return one(v.ctx, v.q, v.locked(sqlChatAttachment), scanChatAttachment, int64(b), id)
}

func (w *writer) chats(c *cloud.Changes) {
	for _, k := range c.DroppedConversations {
		for _, sql := range append([]string{sqlDropConversation, sqlDropChatFiles}, droppedChat...) {
			w.add(anything, sql, int64(k.BusinessID), int64(k.ID))
		}
	}
	for _, x := range c.Conversations {
		w.add(anything, sqlSaveConversation, int64(x.BusinessID), int64(x.OrderID), int64(x.ID), ms(x.ClosedAt), ms(x.ReopenedAt), ms(x.All.UpdatedAt), ms(x.Staff.UpdatedAt), text(x))
		for _, m := range x.Members {
			w.add(anything, sqlSaveChatMember, int64(x.BusinessID), int64(x.OrderID), int64(m.Account), int64(m.Read), m.Muted, m.Out)
		}
	}
	for _, m := range c.ChatMessages {
		w.add(mustExist, sqlSaveChatMessage, int64(m.ID), int64(m.BusinessID), int64(m.OrderID), int64(m.Sender.Account), m.ClientID, m.Staff, !m.DeletedAt.IsZero(), text(m))
	}
	for _, r := range c.ChatReads {
		w.add(anything, sqlAddChatRead, int64(r.BusinessID), int64(r.OrderID), int64(r.Account), int64(r.UpTo), ms(r.At))
	}
	for _, a := range c.DroppedChatAttachments {
		w.add(anything, sqlDropChatAttachment, int64(a.BusinessID), a.ID)
	}
	for _, a := range c.ChatAttachments {
		w.add(anything, sqlAddChatAttachment, a.ID, int64(a.BusinessID), int64(a.OrderID), ms(a.At), text(a))
	}
}

// conversationsFrom are conversations c with their orders o. SQLite joins tables
// in the order of a CROSS JOIN: a viewer of some orders only has few, so these
// come first.
func conversationsFrom(q cloud.ConversationQuery) string {
	if q.Customer != 0 || q.Driver != 0 || q.Contractor != 0 {
		return `orders o CROSS JOIN conversation c`
	}
	return `conversation c CROSS JOIN orders o`
}

// conversationsWhere is the condition of a query, with only what it asks for.
func (db chats) conversationsWhere(q cloud.ConversationQuery) (c conditions) {
	c.and(`c.business_id = $%[1]d AND o.business_id = $%[1]d AND o.id = c.order_id`, int64(q.BusinessID))
	if !q.Staff {
		c.and(`c.shown_at IS NOT NULL`)
	}
	if q.Customer != 0 {
		c.and(`o.customer_id = $%d AND o.customer_id <> 0`, int64(q.Customer))
	}
	if q.Driver != 0 {
		c.and(`o.driver_id = $%d AND o.driver_id <> 0`, int64(q.Driver))
	}
	if q.Contractor != 0 {
		c.and(`o.broker_id = $%[1]d AND o.broker_id <> 0 AND EXISTS (SELECT 1 FROM broker_assignment a WHERE a.order_id = c.order_id AND a.status = 'active' AND a.business_id = c.business_id AND a.broker_id = $%[1]d)`, int64(q.Contractor))
	}
	if q.Allowed {
		c.and(`NOT EXISTS (SELECT 1 FROM chat_member p WHERE p.business_id = c.business_id AND p.order_id = c.order_id AND p.account_id = $%d AND p.gone)`, int64(q.Reader))
	}
	const closed = `(c.closed_at IS NOT NULL OR ` + chatEnded + `$%[1]d AND (c.reopened_at IS NULL OR c.reopened_at <= $%[1]d)))`
	switch q.Status {
	case "closed":
		c.and(closed, ms(q.Ended))
	case "open":
		c.and(`NOT `+closed, ms(q.Ended))
	}
	if q.Unread {
		c.and(`EXISTS (SELECT 1 FROM chat_message m WHERE `+unreadOf(q)+`)`, int64(q.Reader))
	}
	if q.Keyword != "" {
		c.and(`c.order_id IN (SELECT order_id FROM order_search WHERE business_id = $%d AND @contains $%d)`, int64(q.BusinessID), db.contains(q.Keyword))
	}
	return c
}

// unreadOf is the condition of messages m of c that a reader has not read.
func unreadOf(q cloud.ConversationQuery) string {
	sql := `m.business_id = c.business_id AND m.order_id = c.order_id AND m.sender_id <> $%[1]d AND NOT m.deleted AND m.id > COALESCE(
  (SELECT p.read_to FROM chat_member p WHERE p.business_id = c.business_id AND p.order_id = c.order_id AND p.account_id = $%[1]d), 0)`
	if !q.Staff {
		sql += ` AND NOT m.staff`
	}
	return sql
}

// conversationList is the list of a query, those that changed last first.
func (db chats) conversationList(q cloud.ConversationQuery) keyList {
	by := sortColumn{name: "updated_at", id: "order_id"}
	if !q.Staff {
		by.name = "shown_at"
	}
	q.Sort, q.Down = by.name, true
	return keyList{columns: "c.body", from: conversationsFrom(q), where: db.conversationsWhere(q), prefix: "c.", by: by, page: q.Page}
}

// unreadSQL counts what a reader has not read, up to limit.
func (db chats) unreadSQL(q cloud.ConversationQuery, limit int) statement {
	c := db.conversationsWhere(q)
	c.and(unreadOf(q)+`
  AND NOT EXISTS (SELECT 1 FROM chat_member p WHERE p.business_id = c.business_id AND p.order_id = c.order_id AND p.account_id = $%[1]d AND p.muted)`, int64(q.Reader))
	c.args = append(c.args, limit)
	return statement{`SELECT COUNT(*), COUNT(DISTINCT order_id) FROM (SELECT c.order_id FROM ` + conversationsFrom(q) + ` CROSS JOIN chat_message m` + c.where() + fmt.Sprintf(` LIMIT $%d) AS unread`, len(c.args)), c.args}
}

// ListConversations reads a page of conversations, those that changed last
// first, and counts all that the query asks for, up to cloud.MaxTotal. Error:
// cloud.ErrNoMark.
func (db chats) ListConversations(ctx context.Context, q cloud.ConversationQuery) (cloud.Listed, []cloud.Conversation, error) {
	return lookKeyList(ctx, db.database, db.conversationList(q), scanConversation)
}

// CountUnread counts what a reader has not read in the conversations of a query,
// and in how many of them it is. Conversations that the reader muted are left out. What
// is beyond limit messages is not counted.
func (db chats) CountUnread(ctx context.Context, q cloud.ConversationQuery, limit int) (messages, conversations int, err error) {
	s := db.unreadSQL(q, limit)
	counted, err := readOne(ctx, db.database, s.sql, func(r rows, x *[2]int) error { return r.Scan(&x[0], &x[1]) }, s.args...)
	return counted[0], counted[1], err
}

// NextChatBusiness is the next business with conversations after one;
// cloud.ErrNotFound when there is none.
func (db chats) NextChatBusiness(ctx context.Context, after cloud.BusinessID) (cloud.BusinessID, error) {
	id, err := readOne(ctx, db.database, sqlNextChatBusiness, scanInt, int64(after))
	return cloud.BusinessID(id), err
}

// EndedChats lists orders of a business, by id, that ended at or before a time
// and whose conversation is not closed yet.
func (db chats) EndedChats(ctx context.Context, b cloud.BusinessID, after cloud.OrderID, ended time.Time, limit int) ([]cloud.OrderID, error) {
	return readList(ctx, db.database, sqlEndedChats, scanOrderID, int64(b), int64(after), ms(ended), limit)
}

// OldChats lists orders of a business whose conversations were closed before a
// time, the oldest first.
func (db chats) OldChats(ctx context.Context, b cloud.BusinessID, closed time.Time, limit int) ([]cloud.OrderID, error) {
	return readList(ctx, db.database, sqlOldChats, scanOrderID, int64(b), ms(closed), limit)
}

// IdleAttachments lists files from before a time that no message has.
func (db chats) IdleAttachments(ctx context.Context, before time.Time, limit int) ([]cloud.ChatAttachment, error) {
	return readList(ctx, db.database, sqlIdleAttachments, scanChatAttachment, ms(before), limit)
}

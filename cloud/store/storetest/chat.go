package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// chats come back as they were written, only to their business, and pages of
// them, lists of conversations and counts are those of a plain filter.
func chats(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(48, 48))
	orders := map[cloud.OrderID]cloud.Order{}
	held := map[cloud.OrderID]cloud.AccountID{}
	all := map[cloud.OrderID]cloud.Conversation{}
	said := map[cloud.ChatMessageID]cloud.ChatMessage{}
	reads := map[[3]int64]cloud.ChatRead{}
	statuses := cloud.OrderStates() // each has an order
	hour := func(n int) time.Time { return now.Add(time.Duration(r.IntN(n)) * time.Hour) }
	for id := cloud.OrderID(1); int(id) <= len(statuses); id++ {
		o := order(id, cloud.BusinessID(id%2+1))
		o.Status, o.StatusAt, o.CustomerID, o.DriverID = statuses[id-1].ID, hour(5), cloud.AccountID(r.IntN(3)), cloud.AccountID(10+r.IntN(3))
		ch := &cloud.Changes{}
		if o.BrokerID = cloud.AccountID(r.IntN(2) * (20 + r.IntN(2))); o.BrokerID != 0 && r.IntN(3) > 0 {
			held[id] = o.BrokerID
			ch.Assignments = []cloud.Assignment{{ID: cloud.AssignmentID(id), BusinessID: o.BusinessID, OrderID: id, BrokerID: held[id], Status: cloud.AssignmentActive}}
		}
		orders[id], ch.Orders = o, []cloud.Order{o}
		write(t, db, 0, ch)
	}
	next := cloud.ChatMessageID(1 << 52)
	for range 160 {
		o := orders[cloud.OrderID(r.IntN(len(statuses))+1)]
		c, known := all[o.ID]
		if !known {
			c = cloud.Conversation{ID: cloud.ConversationID(o.ID * 7), BusinessID: o.BusinessID, OrderID: o.ID}
		}
		c.ClosedAt, c.ReopenedAt = time.Time{}, time.Time{}
		if r.IntN(4) == 0 {
			c.ClosedAt = hour(5)
		}
		if r.IntN(3) == 0 {
			c.ReopenedAt = hour(5)
		}
		ch := &cloud.Changes{}
		next += cloud.ChatMessageID(r.IntN(3) + 1)
		m := random[cloud.ChatMessage](r)
		m.ID, m.BusinessID, m.OrderID, m.ConversationID, m.Sender.Account, m.ClientID = next, o.BusinessID, o.ID, c.ID, cloud.AccountID(r.IntN(4)-1), []string{"", fmt.Sprint("c", next)}[r.IntN(2)]
		if r.IntN(3) > 0 {
			m.DeletedAt = time.Time{}
		}
		said[m.ID] = m
		c.Staff.UpdatedAt, c.Staff.Last = hour(9), m.ID
		if !m.Staff {
			c.All.UpdatedAt, c.All.Last = c.Staff.UpdatedAt, m.ID
		}
		c.Members = slices.Clone(c.Members)
		if reader := cloud.AccountID(r.IntN(3)); c.Member(reader) == nil {
			c.Members = append(c.Members, cloud.ChatMember{ChatParty: cloud.ChatParty{Role: cloud.ChatDispatcher, Account: reader, Name: "A"}})
		} else if to := c.Member(reader); to.Read < m.ID && r.IntN(2) == 0 {
			to.Read, to.Muted, to.Out = m.ID, r.IntN(4) == 0, r.IntN(4) == 0
			x := cloud.ChatRead{BusinessID: o.BusinessID, OrderID: o.ID, Account: reader, UpTo: m.ID, At: hour(9)}
			reads[[3]int64{int64(o.ID), int64(reader), int64(m.ID)}] = x
			ch.ChatReads = []cloud.ChatRead{x}
		}
		all[o.ID] = c
		ch.Conversations, ch.ChatMessages = []cloud.Conversation{c}, []cloud.ChatMessage{m}
		write(t, db, 0, ch)
	}
	for id, m := range said { // an edit, a deletion
		if r.IntN(4) == 0 {
			m.Text, m.DeletedAt = "other", now
			said[id] = m
			write(t, db, 0, &cloud.Changes{ChatChanges: cloud.ChatChanges{ChatMessages: []cloud.ChatMessage{m}}})
		}
	}
	unread := func(c cloud.Conversation, staff bool, reader cloud.AccountID) (n int) {
		var read cloud.ChatMessageID
		if m := c.Member(reader); m != nil {
			read = m.Read
		}
		for _, m := range said {
			if m.OrderID == c.OrderID && m.ID > read && m.Sender.Account != reader && m.DeletedAt.IsZero() && (staff || !m.Staff) {
				n++
			}
		}
		return n
	}
	look(t, db, func(v cloud.View) {
		for id, o := range orders {
			got, err := v.Conversation(o.BusinessID, id)
			if want, ok := all[id]; ok {
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			_, err = v.Conversation(3-o.BusinessID, id)
			require.ErrorIs(t, err, cloud.ErrNotFound, "another business's")
			for range 10 {
				p := cloud.ChatPage{BusinessID: o.BusinessID, OrderID: id, Staff: r.IntN(2) == 0, Page: cloud.Page{Down: r.IntN(2) == 0, Limit: r.IntN(6) + 1}}
				want := sorted(said, func(m cloud.ChatMessage) bool { return m.OrderID == id && (p.Staff || !m.Staff) })
				total := len(want)
				if p.Down {
					slices.Reverse(want)
				}
				requireWalk(t, p.Page, func(page cloud.Page) (cloud.Listed, []cloud.ChatMessage, error) {
					p := p
					p.Page = page
					list, listed, err := v.ChatMessages(p)
					return listed, list, err
				})
				if r.IntN(3) > 0 {
					from := cloud.ChatMessageID(1<<52) + cloud.ChatMessageID(r.IntN(260))
					p.After = &cloud.Mark{ID: int64(from)}
					want = slices.DeleteFunc(want, func(m cloud.ChatMessage) bool { return m.ID == from || p.Down == (m.ID > from) })
				}
				got, listed, err := v.ChatMessages(p)
				require.NoError(t, err)
				require.Equal(t, total, listed.Total)
				require.Equal(t, append([]cloud.ChatMessage{}, want[:min(len(want), p.Limit)]...), append([]cloud.ChatMessage{}, got...), "%+v", p)
				p.BusinessID = 3 - p.BusinessID
				got, _, err = v.ChatMessages(p)
				require.NoError(t, err)
				require.Empty(t, got)
			}
			for reader := range cloud.AccountID(3) {
				for _, staff := range []bool{true, false} {
					n, err := v.ChatUnread(o.BusinessID, id, staff, reader, 0)
					require.NoError(t, err)
					require.Equal(t, unread(cloud.Conversation{OrderID: id}, staff, reader), n)
				}
				from := cloud.ChatMessageID(1<<52) + cloud.ChatMessageID(r.IntN(260))
				var want []cloud.ChatRead
				for _, x := range reads {
					if x.OrderID == id && x.Account == reader && x.UpTo >= from {
						want = append(want, x)
					}
				}
				slices.SortFunc(want, func(a, b cloud.ChatRead) int { return cmp.Compare(a.UpTo, b.UpTo) })
				got, err := v.ChatReads(o.BusinessID, id, reader, from, 3)
				require.NoError(t, err)
				require.Equal(t, want[:min(3, len(want))], got)
			}
		}
		for id, m := range said {
			got, err := v.ChatMessage(m.BusinessID, id)
			require.NoError(t, err)
			require.Equal(t, m, got)
			_, err = v.ChatMessage(3-m.BusinessID, id)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			got, err = v.ChatMessageByClient(m.BusinessID, m.OrderID, m.Sender.Account, m.ClientID)
			if m.ClientID == "" {
				require.ErrorIs(t, err, cloud.ErrNotFound)
			} else {
				require.NoError(t, err)
				require.Equal(t, m, got)
			}
			_, err = v.ChatMessageByClient(m.BusinessID, m.OrderID, m.Sender.Account+1, m.ClientID)
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
	})
	for range 300 {
		q := cloud.ConversationQuery{BusinessID: cloud.BusinessID(r.IntN(2) + 1), Staff: r.IntN(2) == 0, Unread: r.IntN(2) == 0, Reader: cloud.AccountID(r.IntN(3)), Ended: hour(5), Page: cloud.Page{Offset: r.IntN(3), Limit: r.IntN(9) + 1}}
		q.Status, q.Allowed = []string{"", "open", "closed"}[r.IntN(3)], r.IntN(2) == 0
		switch r.IntN(5) {
		case 0:
			q.Customer = cloud.AccountID(1 + r.IntN(2))
		case 1:
			q.Driver = cloud.AccountID(10 + r.IntN(3))
		case 2:
			q.Contractor = cloud.AccountID(20 + r.IntN(2))
		}
		want := slices.DeleteFunc(slices.Collect(maps.Values(all)), func(c cloud.Conversation) bool {
			o := orders[c.OrderID]
			closed := !c.ClosedAt.IsZero() || o.Status.State().Terminal && !o.StatusAt.After(q.Ended) && !c.ReopenedAt.After(q.Ended)
			m := c.Member(q.Reader)
			return c.BusinessID != q.BusinessID || q.Allowed && m != nil && m.Out || c.Trace(q.Staff).UpdatedAt.IsZero() || q.Customer != 0 && o.CustomerID != q.Customer || q.Driver != 0 && o.DriverID != q.Driver ||
				q.Contractor != 0 && held[c.OrderID] != q.Contractor || q.Status == "open" && closed || q.Status == "closed" && !closed || q.Unread && unread(c, q.Staff, q.Reader) == 0
		})
		slices.SortFunc(want, func(a, b cloud.Conversation) int {
			return cmp.Or(b.Trace(q.Staff).UpdatedAt.Compare(a.Trace(q.Staff).UpdatedAt), cmp.Compare(b.OrderID, a.OrderID))
		})
		listed, got, err := db.ListConversations(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, len(want), listed.Total, "%+v", q)
		requireWalk(t, q.Page, func(p cloud.Page) (cloud.Listed, []cloud.Conversation, error) {
			q := q
			q.Page = p
			return db.ListConversations(t.Context(), q)
		})
		from := min(q.Offset, len(want))
		require.Equal(t, append([]cloud.Conversation(nil), want[from:min(from+q.Limit, len(want))]...), got, "%+v", q)
		messages, with := 0, 0
		for _, c := range want {
			if m := c.Member(q.Reader); m != nil && m.Muted {
				continue
			}
			if n := unread(c, q.Staff, q.Reader); n > 0 {
				messages, with = messages+n, with+1
			}
		}
		n, in, err := db.CountUnread(t.Context(), q, 10_000)
		require.NoError(t, err)
		require.Equal(t, [2]int{messages, with}, [2]int{n, in}, "%+v", q)
		few, _, err := db.CountUnread(t.Context(), q, 2)
		require.NoError(t, err)
		require.Equal(t, min(messages, 2), few)
	}
}

// chatUpkeep: what has ended, what is old and what is unused is found, and a
// conversation goes with all that is kept about it, its order's other files
// excepted.
func chatUpkeep(t *testing.T, db *store.DB) {
	done := func(id cloud.OrderID, b cloud.BusinessID, after time.Duration) cloud.Order {
		o := order(id, b)
		o.Status, o.StatusAt = cloud.OrderDelivered, now.Add(after)
		return o
	}
	talk := func(id cloud.OrderID, b cloud.BusinessID, closed time.Time) cloud.Conversation {
		return cloud.Conversation{ID: cloud.ConversationID(id), BusinessID: b, OrderID: id, ClosedAt: closed, Members: []cloud.ChatMember{{ChatParty: cloud.ChatParty{Account: 5}}}}
	}
	open := order(4, 1)
	idle := cloud.ChatAttachment{ID: 1, BusinessID: 1, OrderID: 1, Path: "chat/00aa", Thumbnail: "chat/00dd", At: now}
	fresh := cloud.ChatAttachment{ID: 2, BusinessID: 1, OrderID: 1, Path: "chat/00bb", At: now.Add(time.Hour)}
	kept := []cloud.KeptFile{{Path: "chat/00aa", BusinessID: 1, OrderID: 1}, {Path: "chat/00bb", BusinessID: 1, OrderID: 1}, {Path: "proof/00cc", BusinessID: 1, OrderID: 1}}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{done(1, 1, 0), done(2, 1, time.Hour), done(3, 1, 0), open, done(5, 3, 0)}},
		ChatChanges: cloud.ChatChanges{Conversations: []cloud.Conversation{talk(1, 1, time.Time{}), talk(2, 1, time.Time{}), talk(3, 1, now), talk(4, 1, time.Time{}), talk(5, 3, now.Add(time.Hour))},
			ChatMessages:    []cloud.ChatMessage{{ID: 9, BusinessID: 1, OrderID: 1, ClientID: "x"}, {ID: 10, BusinessID: 1, OrderID: 2, ClientID: "x"}},
			ChatReads:       []cloud.ChatRead{{BusinessID: 1, OrderID: 1, Account: 5, UpTo: 9, At: now}},
			ChatAttachments: []cloud.ChatAttachment{idle, fresh}},
		FileChanges: cloud.FileChanges{Files: kept}})

	ended, err := db.EndedChats(t.Context(), 1, 0, now, 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.OrderID{1}, ended)
	ended, err = db.EndedChats(t.Context(), 1, 0, now.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.OrderID{1, 2}, ended)
	ended, err = db.EndedChats(t.Context(), 1, 1, now.Add(time.Hour), 1)
	require.NoError(t, err)
	require.Equal(t, []cloud.OrderID{2}, ended)
	old, err := db.OldChats(t.Context(), 1, now.Add(time.Millisecond), 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.OrderID{3}, old)
	old, err = db.OldChats(t.Context(), 3, now.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Empty(t, old)
	var businesses []cloud.BusinessID
	for b := cloud.BusinessID(0); ; {
		if b, err = db.NextChatBusiness(t.Context(), b); err != nil {
			require.ErrorIs(t, err, cloud.ErrNotFound)
			break
		}
		businesses = append(businesses, b)
	}
	require.Equal(t, []cloud.BusinessID{1, 3}, businesses)

	unused, err := db.IdleAttachments(t.Context(), now.Add(time.Millisecond), 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.ChatAttachment{idle}, unused)
	write(t, db, 0, &cloud.Changes{ChatChanges: cloud.ChatChanges{DroppedChatAttachments: []cloud.ChatAttachment{idle}}, FileChanges: cloud.FileChanges{DroppedFiles: kept[:1]}})
	look(t, db, func(v cloud.View) {
		_, err := v.ChatAttachment(1, 1)
		require.ErrorIs(t, err, cloud.ErrNotFound)
		got, err := v.ChatAttachment(1, 2)
		require.NoError(t, err)
		require.Equal(t, fresh, got)
		_, err = v.ChatAttachment(2, 2)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})

	gone := func() {
		look(t, db, func(v cloud.View) {
			_, err := v.Conversation(1, 1)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			_, err = v.ChatMessage(1, 9)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			_, err = v.ChatAttachment(1, 2)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			reads, err := v.ChatReads(1, 1, 5, 0, 9)
			require.NoError(t, err)
			require.Empty(t, reads)
			_, err = v.ChatMessage(1, 10)
			require.NoError(t, err, "that of another order")
		})
	}
	write(t, db, 0, &cloud.Changes{ChatChanges: cloud.ChatChanges{DroppedConversations: []cloud.OrderKey{{BusinessID: 1, ID: 1}}}})
	gone()
	paths, err := db.ListKeptFiles(t.Context(), "chat/00")
	require.NoError(t, err)
	require.Empty(t, paths)
	paths, err = db.ListKeptFiles(t.Context(), "proof/00")
	require.NoError(t, err)
	require.Len(t, paths, 1)
	write(t, db, 0, &cloud.Changes{ChatChanges: cloud.ChatChanges{Conversations: []cloud.Conversation{talk(1, 1, now)},
		ChatMessages:    []cloud.ChatMessage{{ID: 9, BusinessID: 1, OrderID: 1}},
		ChatAttachments: []cloud.ChatAttachment{fresh},
		ChatReads:       []cloud.ChatRead{{BusinessID: 1, OrderID: 1, Account: 5, UpTo: 9, At: now}}}})
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 1, ID: 1}}}})
	gone()
}

package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// A conversation closes some hours after its order's end, at once for every
// reader; listeners receive it once, whichever node sweeps. It can be opened again.
func TestClosing(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		s := r.nodes[0]
		r.says(customer, "x")
		r.wait(time.Hour)
		r.order(func(o *cloud.Order) { o.Status, o.StatusAt = cloud.OrderDelivered, r.clock() })
		require.Equal(t, "2026-11-21T11:00:00-05:00", *r.talk(customer).ClosesAt)
		r.wait(24*time.Hour - time.Millisecond)
		r.says(customer, "y")
		r.told()
		require.NoError(t, s.Sweep(t.Context()))
		require.Empty(t, r.told())
		r.wait(time.Millisecond)
		_, err := r.send(customer, SendInput{Text: "z"})
		r.refused(err, "CONVERSATION_CLOSED")
		_, err = s.Typing(t.Context(), r.caller(customer), TypingInput{OrderID: theOrder, Typing: true})
		r.refused(err, "CONVERSATION_CLOSED")
		status := func(want string) {
			t.Helper()
			require.Equal(t, want, r.talk(customer).Status)
			for _, filter := range []string{"open", "closed", ""} {
				out, err := s.List(t.Context(), r.caller(admin), ListInput{Status: filter})
				require.NoError(t, err)
				require.Len(t, out.Conversations, map[bool]int{true: 1}[filter == want || filter == ""])
			}
		}
		status("closed")
		for _, node := range r.nodes {
			require.NoError(t, node.Sweep(t.Context()))
		}
		e := r.told()
		require.Equal(t, []string{"order_chat conversation.closed"}, types(e))
		require.Nil(t, e[0].Data.By)
		status("closed")
		require.Equal(t, 2, r.talk(admin).Unread)
		require.Equal(t, 0, r.reads(admin, 1<<60), "what is closed can be read")
		r.told()

		for range 2 {
			out, err := s.Reopen(t.Context(), r.caller(admin), OrderInput{theOrder})
			require.NoError(t, err)
			require.Equal(t, "open", out.Conversation.Status)
			require.Equal(t, "2026-11-22T11:00:00-05:00", *out.Conversation.ClosesAt)
		}
		status("open")
		require.NoError(t, s.Sweep(t.Context()))
		r.says(customer, "z")
		require.Equal(t, []string{"order_chat conversation.reopened", "order_chat message.created"}, types(r.told()))
		r.wait(24 * time.Hour)
		status("closed")
		_, err = s.Reopen(t.Context(), r.caller(admin), OrderInput{theOrder})
		require.NoError(t, err, "nobody had written that it was closed")
		for range 2 {
			out, err := s.Close(t.Context(), r.caller(admin), OrderInput{theOrder})
			require.NoError(t, err)
			require.Equal(t, "closed", out.Conversation.Status)
		}
		require.Equal(t, []string{"order_chat conversation.reopened", "order_chat conversation.closed"}, types(r.told()))

		r.wait(365 * 24 * time.Hour)
		require.NoError(t, s.Sweep(t.Context()))
		require.NotNil(t, r.talk(admin))
		a, err := r.db.ListAudits(t.Context(), 42, 0, 10)
		require.NoError(t, err)
		require.Empty(t, a, "nobody did anything here but by plain calls")
		r.wait(time.Second)
		require.NoError(t, s.Sweep(t.Context()))
		require.Nil(t, r.talk(admin))
		require.Empty(t, r.messages(admin))
	})
}

// A request for what a listener may receive notices that a conversation has closed by
// itself, and sends that at once: the listeners that are let go for it receive it.
func TestWhoNoticesThatItClosedTells(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		who := Listener{BusinessID: 42, Recipient: theOrder}
		right := func(node *Service) Right {
			t.Helper()
			got, err := node.Rights(t.Context(), who, theOrder)
			require.NoError(t, err)
			return got
		}
		r.order(func(o *cloud.Order) { o.Status, o.StatusAt = cloud.OrderDelivered, started })
		r.wait(24 * time.Hour)
		require.Equal(t, ReceivesNothing, right(r.nodes[0]))
		require.Empty(t, r.told(), "nobody has said anything")
		r.wait(-time.Hour)
		r.says(customer, "x")
		r.told()
		require.Equal(t, ReceivesAll, right(r.nodes[0]))
		r.wait(time.Hour)
		require.Equal(t, ReceivesNothing, right(r.nodes[1]))
		e := r.told()
		require.Equal(t, []string{"order_chat conversation.closed"}, types(e))
		require.Nil(t, e[0].Data.By)
		for _, node := range r.nodes {
			require.Equal(t, ReceivesNothing, right(node))
			require.NoError(t, node.Sweep(t.Context()))
		}
		require.Empty(t, r.told(), "once")
		_, err := r.nodes[0].Reopen(t.Context(), r.caller(admin), OrderInput{theOrder})
		require.NoError(t, err)
		require.Equal(t, ReceivesNothing, right(r.nodes[0]), "as the recipient's token, it is over for good")
		who.Epoch = 1
		require.Equal(t, ReceivesAll, right(r.nodes[0]))
	})
}

func TestTheChatOfAnOrderThatEndedLongAgo(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	r.order(func(o *cloud.Order) { o.Status, o.StatusAt = cloud.OrderCancelled, started.Add(-25*time.Hour) })
	_, err := r.send(customer, SendInput{Text: "x"})
	r.refused(err, "CONVERSATION_CLOSED")
	_, err = r.nodes[0].Reopen(t.Context(), r.caller(admin), OrderInput{theOrder})
	require.NoError(t, err)
	r.says(customer, "x")
	_, err = r.nodes[0].Reopen(t.Context(), r.caller(admin), OrderInput{71})
	r.refused(err, "CONVERSATION_NOT_FOUND")
	_, err = r.nodes[0].Close(t.Context(), r.caller(admin), OrderInput{71})
	r.refused(err, "CONVERSATION_NOT_FOUND")
}

func TestAutoReply(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	weekdays := []cloud.ChatHours{{Days: []int{1, 2, 3, 4, 5}, Start: "09:00", End: "12:00"}, {Days: []int{1, 2, 3, 4, 5}, Start: "12:00", End: "17:00"}}
	r.settings(func(s *cloud.ChatSettings) { s.Hours, s.AutoReply = weekdays, "We answer on Monday" })
	replies := func() (n int) {
		for _, m := range r.messages(customer) {
			if m.Kind == "system" {
				require.Equal(t, Party{cloud.ChatSystem, nil, "Acme"}, m.Sender)
				n++
			}
		}
		return n
	}
	r.says(customer, "Friday at ten")
	require.Zero(t, replies())
	r.wait(8 * time.Hour)
	r.says(driver, "Friday evening")
	r.says(admin, "Friday evening")
	require.Zero(t, replies(), "to customers and recipients only")
	r.says(customer, "Friday evening")
	require.Equal(t, 1, replies())
	list := r.messages(admin)
	require.Equal(t, "system", list[len(list)-1].Kind)
	require.Greater(t, list[len(list)-1].ID, list[len(list)-2].ID)
	r.says(recipient, "Saturday")
	r.wait(40 * time.Hour)
	r.says(customer, "Sunday")
	require.Equal(t, 1, replies(), "once until they answer again")
	r.wait(24 * time.Hour)
	r.says(customer, "Monday at ten")
	r.wait(8 * time.Hour)
	r.says(recipient, "Monday evening")
	require.Equal(t, 2, replies())
}

func TestHours(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	at := func(s string) time.Time {
		x, err := time.ParseInLocation("2006-01-02 15:04", s, zone)
		require.NoError(t, err)
		return x
	}
	f := func(hours []cloud.ChatHours, now, since string) {
		t.Helper()
		got, open := answering(hours, at(now))
		require.Equal(t, since == "", open)
		if !open {
			require.Equal(t, at(since), got)
		}
	}
	f(nil, "2026-11-20 03:00", "")
	night := []cloud.ChatHours{{Days: []int{5}, Start: "22:00", End: "06:00"}}
	f(night, "2026-11-20 23:00", "")
	f(night, "2026-11-21 05:59", "")
	f(night, "2026-11-21 06:00", "2026-11-21 06:00")
	f(night, "2026-11-20 21:59", "2026-11-14 06:00")
	day := []cloud.ChatHours{{Days: []int{7}, Start: "00:00", End: "24:00"}}
	f(day, "2026-11-22 00:00", "")
	f(day, "2026-11-22 23:59", "")
	f(day, "2026-11-23 00:00", "2026-11-23 00:00")
	f(day, "2026-11-21 23:59", "2026-11-16 00:00")
	lunch := []cloud.ChatHours{{Days: []int{1, 2, 3, 4, 5, 6, 7}, Start: "09:00", End: "12:00"}, {Days: []int{1, 2, 3, 4, 5, 6, 7}, Start: "13:00", End: "17:00"}}
	f(lunch, "2026-11-20 12:30", "2026-11-20 12:00")
	f(lunch, "2026-11-20 08:00", "2026-11-19 17:00")
	f(lunch, "2026-03-08 08:00", "2026-03-07 17:00") // the night in which the clock goes forward
}

func TestSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	s := r.nodes[0]
	r.settings(func(s *cloud.ChatSettings) { *s = cloud.ChatSettings{} })
	out, err := s.FindSettings(t.Context(), r.caller(admin), check.None{})
	require.NoError(t, err)
	raw, err := json.Marshal(out.Settings)
	require.NoError(t, err)
	require.JSONEq(t, `{"allow_recipient":false,"allow_customer":true,"allow_driver":true,"auto_close_hours":24,"quick_replies":[],"working_hours":[],"auto_reply":null,"retention_days":365}`, string(raw))
	save := func(body string) (Settings, error) {
		var in SettingsInput
		require.NoError(t, json.Unmarshal([]byte(body), &in))
		out, err := checktest.Given(s.SaveSettings)(t.Context(), r.caller(admin), in)
		return out.Settings, err
	}
	got, err := save(`{"allow_driver":false,"auto_close_hours":1,"quick_replies":[{"id":"a","text":"b"}],"working_hours":[{"days":[1],"start":"09:00","end":"24:00"}],"auto_reply":"x","retention_days":7}`)
	require.NoError(t, err)
	again, err := save(`{"allow_recipient":true}`)
	require.NoError(t, err)
	got.Recipient = true
	require.Equal(t, got, again, "what is left out stays")
	require.Equal(t, "all", again.QuickReplies[0].Audience)
	for _, bad := range []string{`{"auto_close_hours":0}`, `{"auto_close_hours":721}`, `{"retention_days":0}`, `{"retention_days":4000}`, `{"auto_reply":"` + strings.Repeat("x", 2001) + `"}`,
		`{"quick_replies":[{"id":"a b","text":"x"}]}`, `{"quick_replies":[{"id":"a","text":"x"},{"id":"a","text":"y"}]}`, `{"quick_replies":[{"id":"a","text":" "}]}`,
		`{"quick_replies":[{"id":"a","text":"x","audience":"me"}]}`, `{"working_hours":[{"days":[],"start":"09:00","end":"10:00"}]}`, `{"working_hours":[{"days":[8],"start":"09:00","end":"10:00"}]}`,
		`{"working_hours":[{"days":[1],"start":"9:00","end":"10:00"}]}`, `{"working_hours":[{"days":[1],"start":"09:00","end":"24:01"}]}`} {
		_, err := save(bad)
		r.refused(err, "VALIDATION_FAILED")
	}
	got, err = save(`{"quick_replies":[],"working_hours":[],"auto_reply":""}`)
	require.NoError(t, err)
	require.Empty(t, got.QuickReplies)
	require.Nil(t, got.AutoReply)
}

// Ids grow within a conversation whatever the clocks of nodes say, and no two
// are alike.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	seen := map[cloud.ChatMessageID]bool{}
	last := [3]cloud.ChatMessageID{}
	for n := range int64(200_000) {
		now := started.Add(time.Duration(n/1000)*time.Second - time.Duration(n%7)*time.Second)
		talk := n % 3
		id := messageID(now, last[talk], n)
		require.Greater(t, id, last[talk])
		require.False(t, seen[id])
		require.Less(t, id, cloud.ChatMessageID(1<<53))
		seen[id], last[talk] = true, id
	}
	require.Less(t, messageID(began.AddDate(250, 0, 0), 0, 1<<40), cloud.ChatMessageID(1<<53))
	require.Positive(t, messageID(time.Unix(0, 0), 0, 1))
}

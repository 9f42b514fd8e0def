package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// Nothing is there until the first message; then every participant sees it, and
// its sender sees how far it has come.
func TestAConversation(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		for _, who := range everybody {
			require.Nil(t, r.talk(who), "opened by the first message only")
			require.Empty(t, r.messages(who))
		}
		require.Empty(t, r.told())
		first, err := r.send(customer, SendInput{ClientID: "c-1", Text: "Where are you?"})
		require.NoError(t, err)
		require.Equal(t, "sent", first.Status)
		require.Equal(t, Party{cloud.ChatCustomer, ptr(customer), "Person 6"}, first.Sender)
		require.Less(t, first.ID, cloud.ChatMessageID(1<<53))

		require.Equal(t, 1, r.talk(driver).Unread)
		require.Equal(t, 0, r.talk(customer).Unread)
		require.Equal(t, "sent", r.messages(customer)[0].Status, "own messages are not delivered by looking at them")
		r.wait(time.Second)
		require.Equal(t, "delivered", r.messages(driver)[0].Status)
		require.Equal(t, "delivered", r.talk(customer).LastMessage.Status)
		r.wait(time.Second)
		require.Equal(t, 0, r.reads(driver, first.ID))
		r.wait(time.Minute)
		require.Equal(t, 0, r.reads(admin, first.ID+1000))
		m := r.messages(customer)[0]
		require.Equal(t, "read", m.Status)
		require.Equal(t, []ReadBy{{cloud.ChatDriver, ptr(driver), "2026-11-20T10:00:02-05:00"}, {cloud.ChatDispatcher, ptr(admin), "2026-11-20T10:01:02-05:00"}}, m.ReadBy)

		answer := r.says(driver, "At the lobby")
		require.Greater(t, answer.ID, first.ID)
		r.reads(customer, answer.ID)
		talk := r.talk(recipient)
		require.Equal(t, answer.ID, talk.LastMessage.ID)
		require.Equal(t, 2, talk.Unread)
		require.Equal(t, []string{"order_chat message.created", "order_chat message.read", "order_chat message.read", "order_chat message.created", "order_chat message.read"}, types(r.told()))

		var names []string
		for _, p := range r.talk(admin).Participants {
			names = append(names, fmt.Sprint(p.Type, " ", p.Name))
		}
		require.Equal(t, []string{"dispatcher Person 3", "driver Person 4", "customer Person 6", "recipient Ada Moreau", "dispatcher Person 1"}, names)

		require.Len(t, r.pushes, 1, "the driver's own message is no push")
		p := r.pushes[0]
		require.Equal(t, cloud.Push{ID: p.ID, BusinessID: 42, DriverID: driver, Type: "order_chat_message", Title: "Person 6", Body: "Where are you?",
			Data: cloud.PushData{OrderID: theOrder, ConversationID: int64(talk.ID), MessageID: int64(first.ID), TrackingNumber: "SR000000070"}, At: started, Collapse: fmt.Sprintf("conversation:%d", talk.ID)}, p)
		require.Regexp(t, `^psh_[0-9A-HJKMNP-TV-Z]{26}$`, p.ID)
	})
}

func ptr[T any](v T) *T { return &v }

// A message among dispatchers and driver shows to no other participant: in no answer,
// count, position or live event.
func TestStaffMessagesAreHidden(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		hidden := r.says(driver, "The customer shouts", audienceStaff)
		for _, who := range []cloud.AccountID{customer, recipient} {
			require.Nil(t, r.talk(who), "there is no conversation for them")
			require.Empty(t, r.messages(who))
			_, err := r.send(who, SendInput{Text: "x", Audience: audienceStaff})
			r.refused(err, "VALIDATION_FAILED")
			_, err = r.send(who, SendInput{Text: "x", ReplyTo: hidden.ID})
			r.refused(err, "VALIDATION_FAILED")
			_, err = r.nodes[0].Edit(t.Context(), r.caller(who), EditInput{hidden.ID, "x"})
			r.refused(err, "MESSAGE_NOT_FOUND")
		}
		out, err := r.nodes[0].List(t.Context(), r.caller(customer), ListInput{})
		require.NoError(t, err)
		require.Empty(t, out.Conversations)
		require.Equal(t, []string{"order_chat_staff message.created"}, types(r.told()))

		r.wait(time.Minute)
		shown := r.says(customer, "Hello?")
		require.Empty(t, r.told()[0].Data.Message.ReplyTo)
		require.Equal(t, "2026-11-20T10:01:00-05:00", *r.talk(customer).CreatedAt)
		require.Equal(t, "2026-11-20T10:00:00-05:00", *r.talk(admin).CreatedAt)
		r.wait(time.Minute)
		reply, err := r.send(admin, SendInput{Text: "Both of you be nice", ReplyTo: hidden.ID})
		require.NoError(t, err)
		require.Equal(t, hidden.ID, *reply.ReplyTo)
		e := r.told()
		require.Equal(t, []string{"order_chat message.created"}, types(e))
		require.Nil(t, e[0].Data.Message.ReplyTo, "everybody hears this")
		last := r.says(contractor, "I call them", audienceStaff)
		r.told()

		require.Equal(t, []cloud.ChatMessageID{shown.ID, reply.ID}, ids(r.messages(recipient)))
		require.Nil(t, r.messages(recipient)[1].ReplyTo)
		talk := r.talk(customer)
		require.Equal(t, reply.ID, talk.LastMessage.ID)
		require.Equal(t, "2026-11-20T10:02:00-05:00", *talk.UpdatedAt)
		require.Equal(t, 1, talk.Unread)
		require.Equal(t, []cloud.ChatMessageID{hidden.ID, shown.ID, reply.ID, last.ID}, ids(r.messages(employee)))

		r.reads(admin, last.ID)
		e = r.told()
		require.Equal(t, []string{"order_chat message.read", "order_chat_staff message.read"}, types(e))
		require.Equal(t, reply.ID, e[0].Data.UpTo, "not the id of what is hidden")
		require.Equal(t, last.ID, e[1].Data.UpTo)
		position := func(who cloud.AccountID) cloud.ChatMessageID {
			for _, p := range r.talk(who).Participants {
				if p.ID != nil && *p.ID == admin {
					return *p.LastRead
				}
			}
			return 0
		}
		require.Equal(t, reply.ID, position(customer))
		require.Equal(t, last.ID, position(driver))
		r.reads(customer, last.ID)
		require.Equal(t, reply.ID, r.told()[0].Data.UpTo)
		require.Equal(t, "read", r.messages(admin)[2].Status)
		require.Equal(t, []ReadBy{{cloud.ChatDispatcher, ptr(admin), "2026-11-20T10:02:00-05:00"}}, r.messages(contractor)[3].ReadBy)
		_, err = r.nodes[0].Delete(t.Context(), r.caller(contractor), MessageInput{last.ID})
		require.NoError(t, err)
		require.Equal(t, []string{"order_chat_staff message.deleted"}, types(r.told()))
		require.Equal(t, "2026-11-20T10:02:00-05:00", *r.talk(customer).UpdatedAt)
	})
}

// A message that is sent again is the first one, whatever it says and whatever
// has become of the conversation.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		first, err := r.send(driver, SendInput{ClientID: "c", Text: "one"})
		require.NoError(t, err)
		for _, text := range []string{"one", "another"} {
			again, err := r.send(driver, SendInput{ClientID: "c", Text: text})
			require.NoError(t, err)
			require.Equal(t, first, again)
		}
		mine, err := r.send(customer, SendInput{ClientID: "c", Text: "mine"})
		require.NoError(t, err)
		require.NotEqual(t, first.ID, mine.ID, "ids are the sender's own")
		_, err = r.nodes[0].Close(t.Context(), r.caller(admin), OrderInput{theOrder})
		require.NoError(t, err)
		again, err := r.send(driver, SendInput{ClientID: "c", Text: "one"})
		require.NoError(t, err)
		require.Equal(t, first.ID, again.ID)
		_, err = r.send(driver, SendInput{ClientID: "d", Text: "one"})
		r.refused(err, "CONVERSATION_CLOSED")
		require.Len(t, r.messages(admin), 2)
		require.Len(t, r.pushes, 1)
	})
}

func TestWhatCanBeSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	r.settings(func(s *cloud.ChatSettings) {
		s.QuickReplies = []cloud.ChatQuickReply{{ID: "late", Text: "I am late", Audience: audienceAll}, {ID: "staff", Text: "Help", Audience: audienceStaff}}
	})
	bad := func(who cloud.AccountID, in SendInput, field string) {
		t.Helper()
		_, err := r.send(who, in)
		r.refused(err, "VALIDATION_FAILED")
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.Fields, field)
	}
	good := func(who cloud.AccountID, in SendInput) Message {
		t.Helper()
		m, err := r.send(who, in)
		require.NoError(t, err)
		return m
	}
	good(driver, SendInput{Text: strings.Repeat("é", 2000)})
	bad(driver, SendInput{Text: strings.Repeat("é", 2001)}, "text")
	bad(driver, SendInput{Text: " \n "}, "text")
	bad(driver, SendInput{Text: "a\x00b"}, "text")
	bad(driver, SendInput{Text: "\xff"}, "text")
	bad(driver, SendInput{Text: "x", ClientID: strings.Repeat("c", 65)}, "client_message_id")
	bad(driver, SendInput{Text: "x", Kind: "system"}, "kind")
	bad(driver, SendInput{Text: "x", Kind: kindFiles}, "kind")
	bad(driver, SendInput{Text: "x", Audience: "me"}, "audience")
	bad(driver, SendInput{Kind: "location"}, "location")
	bad(driver, SendInput{Kind: "image"}, "attachment_ids")
	bad(driver, SendInput{Text: "x", AttachmentIDs: []int64{1}}, "attachment_ids")
	bad(driver, SendInput{AttachmentIDs: []int64{1, 2, 3, 4, 5, 6}}, "attachment_ids")
	bad(driver, SendInput{Location: &PlaceInput{Latitude: ptr(91.0), Longitude: ptr(0.0)}}, "location.latitude")
	bad(driver, SendInput{Text: "x", Kind: "text", Location: &PlaceInput{Latitude: ptr(0.0), Longitude: ptr(0.0)}}, "location")
	bad(driver, SendInput{Text: "x", ReplyTo: 12345}, "reply_to")
	bad(customer, SendInput{QuickReplyID: "staff"}, "quick_reply_id")
	bad(driver, SendInput{QuickReplyID: "none"}, "quick_reply_id")
	bad(driver, SendInput{QuickReplyID: "late", Text: "x"}, "text")

	m := good(customer, SendInput{QuickReplyID: "late"})
	require.Equal(t, [3]string{"quick_reply", "I am late", "all"}, [3]string{m.Kind, *m.Text, m.Audience})
	require.Equal(t, audienceStaff, good(driver, SendInput{QuickReplyID: "staff"}).Audience)
	m = good(driver, SendInput{Location: &PlaceInput{ptr(43.6), ptr(-79.3), ptr("Gate 2")}})
	require.Equal(t, "location", m.Kind)
	require.Equal(t, "Gate 2", *m.Location.Label)
	require.Nil(t, m.Text)
	m = good(admin, SendInput{Location: &PlaceInput{Latitude: ptr(43.6), Longitude: ptr(0.0)}})
	require.Equal(t, "43.60000, 0.00000", r.pushes[len(r.pushes)-1].Body)
	require.Equal(t, m.ID, *good(customer, SendInput{Text: "Thanks", ReplyTo: m.ID}).ReplyTo)
	long := strings.Repeat("長い", 70)
	good(customer, SendInput{Text: long})
	require.Equal(t, string([]rune(long)[:120]), r.pushes[len(r.pushes)-1].Body)
}

// Of one sender's messages the 21st in a minute waits, however the others were
// spread over it; others are not held up, and neither is a repeat.
func TestTwentyAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	r.nodes[0].cfg.PerMinute = perMinute
	send := func(id int) error {
		_, err := r.send(customer, SendInput{ClientID: fmt.Sprint(id), Text: "x"})
		return err
	}
	for i := range 20 {
		require.NoError(t, send(i))
		r.wait(2 * time.Second)
	}
	err := send(20)
	r.refused(err, "RATE_LIMITED")
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 20, e.RetryAfter)
	require.NoError(t, send(7), "a repeat")
	r.says(recipient, "x")
	r.wait(20*time.Second - time.Millisecond)
	r.refused(send(20), "RATE_LIMITED")
	r.wait(time.Millisecond)
	require.NoError(t, send(20))
	r.refused(send(21), "RATE_LIMITED")
	require.Len(t, r.messages(admin), 22)
}

func TestEditsAndDeletions(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		s := r.nodes[0]
		m := r.says(customer, "Hallo")
		edit := func(who cloud.AccountID, id cloud.ChatMessageID, text string) (Message, error) {
			out, err := checktest.Given(s.Edit)(t.Context(), r.caller(who), EditInput{id, text})
			return out.Message, err
		}
		r.told()
		r.wait(time.Minute)
		got, err := edit(customer, m.ID, "Hello")
		require.NoError(t, err)
		require.Equal(t, "Hello", *got.Text)
		require.Equal(t, "2026-11-20T10:01:00-05:00", *got.EditedAt)
		_, err = edit(customer, m.ID, "Hello")
		require.NoError(t, err)
		require.Equal(t, []string{"order_chat message.updated"}, types(r.told()), "the same again is no change")
		_, err = edit(customer, m.ID, strings.Repeat("x", 2001))
		r.refused(err, "VALIDATION_FAILED")
		_, err = edit(driver, m.ID, "x")
		r.refused(err, "NOT_THE_AUTHOR")
		for _, who := range []cloud.AccountID{stranger, foreign, second} {
			_, err = edit(who, m.ID, "x")
			r.refused(err, "MESSAGE_NOT_FOUND")
		}
		_, err = edit(customer, m.ID+1, "x")
		r.refused(err, "MESSAGE_NOT_FOUND")

		a, err := r.upload(customer, drawing(t))
		require.NoError(t, err)
		pic, err := r.send(customer, SendInput{AttachmentIDs: []int64{a.ID}, Text: "my door"})
		require.NoError(t, err)
		require.Equal(t, "image", pic.Kind)
		r.told()
		for range 2 {
			out, err := s.Delete(t.Context(), r.caller(customer), MessageInput{pic.ID})
			require.NoError(t, err)
			gone := out.Message
			require.Nil(t, gone.Text)
			require.Empty(t, gone.Attachments)
			require.NotNil(t, gone.DeletedAt)
			require.Equal(t, pic.ID, gone.ID)
		}
		require.Equal(t, []string{"order_chat message.deleted"}, types(r.told()))
		paths, err := r.db.ListKeptFiles(t.Context(), "chat/"+a.URL[strings.Index(a.URL, "/chat/")+6:][:2])
		require.NoError(t, err)
		require.Empty(t, paths, "its file is needed no more")
		require.Equal(t, 1, r.talk(driver).Unread, "what is deleted is not unread")
		_, err = edit(customer, pic.ID, "again")
		r.refused(err, "MESSAGE_NOT_EDITABLE")

		r.wait(9 * time.Minute)
		_, err = edit(customer, m.ID, "Last")
		require.NoError(t, err, "ten minutes")
		r.wait(time.Millisecond)
		_, err = edit(customer, m.ID, "Late")
		r.refused(err, "MESSAGE_NOT_EDITABLE")
		_, err = s.Delete(t.Context(), r.caller(customer), MessageInput{m.ID})
		r.refused(err, "MESSAGE_NOT_EDITABLE")
	})
}

// Between two messages that a customer sees the driver read hundreds that are
// hidden: both still say when they were read.
func TestReadsAmongHiddenMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	r.says(customer, "a")
	for range 205 {
		r.wait(time.Second)
		r.reads(driver, r.says(admin, "x", audienceStaff).ID)
	}
	r.wait(time.Hour)
	r.reads(driver, r.says(customer, "b").ID)
	list := r.messages(customer)
	require.Len(t, list, 2)
	require.Equal(t, "2026-11-20T10:00:01-05:00", list[0].ReadBy[0].ReadAt)
	require.Equal(t, "2026-11-20T11:03:25-05:00", list[1].ReadBy[0].ReadAt)
}

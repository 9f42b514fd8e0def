package chat

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store/storetest"
)

func TestWhoTakesPart(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	s := r.nodes[0]
	r.says(driver, "x")
	for _, who := range []cloud.AccountID{stranger, second, foreign} {
		_, err := s.Find(t.Context(), r.caller(who), OrderInput{theOrder})
		r.refused(err, "ORDER_NOT_FOUND")
		_, err = r.send(who, SendInput{Text: "x"})
		r.refused(err, "ORDER_NOT_FOUND")
	}
	c := r.caller(recipient)
	_, err := s.Find(t.Context(), c, OrderInput{71})
	r.refused(err, "ORDER_NOT_FOUND")
	r.settings(func(s *cloud.ChatSettings) { s.NoCustomer, s.NoDriver, s.Recipient = true, true, false })
	for _, who := range []cloud.AccountID{customer, driver, recipient} {
		_, err := s.Find(t.Context(), r.caller(who), OrderInput{theOrder})
		r.refused(err, "NOT_A_PARTICIPANT")
	}
	pushes := len(r.pushes)
	r.says(admin, "x")
	require.Len(t, r.pushes, pushes)
	list, err := s.List(t.Context(), r.caller(driver), ListInput{})
	require.NoError(t, err)
	require.Empty(t, list.Conversations)
	r.settings(func(s *cloud.ChatSettings) { *s = cloud.ChatSettings{} })
	_, err = s.Find(t.Context(), r.caller(recipient), OrderInput{theOrder})
	r.refused(err, "NOT_A_PARTICIPANT")
	r.messages(driver)

	// The contractor takes part while the assignment is active.
	r.says(contractor, "x")
	require.Contains(t, fmt.Sprint(r.talk(admin).Participants), "Person 3")
	r.order(func(o *cloud.Order) { o.AssignmentID = 0 })
	require.NotContains(t, fmt.Sprint(r.talk(admin).Participants), "Person 3")
	_, err = r.send(contractor, SendInput{Text: "x"})
	r.refused(err, "NOT_A_PARTICIPANT")
	r.order(func(o *cloud.Order) { o.BrokerID = 0 })
	_, err = r.send(contractor, SendInput{Text: "x"})
	r.refused(err, "ORDER_NOT_FOUND")

	// A driver from whom the order was taken reads for a day and writes no more.
	r.order(func(o *cloud.Order) {
		o.DriverID, o.Drove = second, []cloud.FormerDriver{{ID: driver, Until: started}}
	})
	require.NotEmpty(t, r.messages(driver))
	for _, err := range []error{
		func() error { _, err := r.send(driver, SendInput{Text: "x"}); return err }(),
		func() error {
			_, err := s.Typing(t.Context(), r.caller(driver), TypingInput{OrderID: theOrder})
			return err
		}(),
		func() error {
			_, err := s.MarkRead(t.Context(), r.caller(driver), MarkInput{theOrder, 1 << 60})
			return err
		}(),
		func() error { _, err := r.upload(driver, drawing(t)); return err }(),
	} {
		r.refused(err, "NOT_A_PARTICIPANT")
	}
	right, err := s.Rights(t.Context(), Listener{BusinessID: 42, Account: driver}, theOrder)
	require.NoError(t, err)
	require.Equal(t, ReceivesNothing, right)
	r.says(second, "x")
	r.wait(24*time.Hour - time.Millisecond)
	require.NotEmpty(t, r.messages(driver))
	r.wait(time.Millisecond)
	_, err = s.Messages(t.Context(), r.caller(driver), MessagesInput{OrderID: theOrder})
	r.refused(err, "ORDER_NOT_FOUND")
}

func TestParticipants(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	s := r.nodes[0]
	add := func(in AddInput) error {
		in.OrderID = theOrder
		_, err := s.Add(t.Context(), r.caller(admin), in)
		return err
	}
	remove := func(role string, id cloud.AccountID) error {
		_, err := s.Remove(t.Context(), r.caller(admin), RemoveInput{theOrder, role, id})
		return err
	}
	r.refused(add(AddInput{ID: employee}), "CONVERSATION_NOT_FOUND")
	r.says(customer, "x")
	r.told()
	require.NoError(t, add(AddInput{ID: employee}))
	require.NoError(t, add(AddInput{ID: employee}))
	require.NoError(t, add(AddInput{ID: driver, Muted: ptr(true)}))
	e := r.told()
	require.Equal(t, []string{"order_chat participant.changed", "order_chat participant.changed"}, types(e))
	require.Equal(t, []string{"added", "muted"}, []string{e[0].Data.Change, e[1].Data.Change})
	for _, id := range []cloud.AccountID{stranger, second, foreign, 999, -1} {
		r.refused(add(AddInput{ID: id}), "VALIDATION_FAILED")
	}
	r.refused(add(AddInput{}), "VALIDATION_FAILED")
	r.refused(add(AddInput{ID: customer, Type: "driver"}), "VALIDATION_FAILED")
	pushes := len(r.pushes)
	r.says(customer, "x")
	require.Len(t, r.pushes, pushes, "a muted driver gets no push")
	n, err := s.UnreadCount(t.Context(), r.caller(driver), check.None{})
	require.NoError(t, err)
	require.Zero(t, n.Total)
	require.Equal(t, 2, r.talk(driver).Unread)

	for _, who := range []cloud.AccountID{customer, recipient, contractor} {
		role := ""
		if who == recipient {
			role = "recipient"
		}
		require.NoError(t, remove(role, who))
		_, err := s.Find(t.Context(), r.caller(who), OrderInput{theOrder})
		r.refused(err, "NOT_A_PARTICIPANT")
		_, err = r.send(who, SendInput{Text: "x"})
		r.refused(err, "NOT_A_PARTICIPANT")
		if who != recipient {
			out, err := s.List(t.Context(), r.caller(who), ListInput{})
			require.NoError(t, err)
			require.Empty(t, out.Conversations)
			require.Zero(t, out.Total)
		}
		require.NoError(t, add(AddInput{Type: role, ID: who}))
		r.says(who, "back")
	}
	require.NoError(t, remove("", employee))
	require.NotContains(t, fmt.Sprint(r.talk(admin).Participants), "Person 2")
	r.says(employee, "staff are never locked out")
	out, err := s.Participants(t.Context(), r.caller(admin), OrderInput{theOrder})
	require.NoError(t, err)
	require.Equal(t, r.talk(admin).Participants, out.Participants)
	require.Len(t, out.Participants, 5)
}

// A recipient's token is good for one order until its conversation closes.
func TestTokensOfRecipients(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	s := r.nodes[0]
	invite := func() (token string, ok bool) {
		require.NoError(t, r.db.Look(t.Context(), func(v cloud.View) error {
			o, err := v.Order(42, theOrder)
			require.NoError(t, err)
			token, ok, err = s.Invite(v, o)
			return err
		}))
		return token, ok
	}
	token, ok := invite()
	require.True(t, ok)
	require.Regexp(t, `^oct_[A-Za-z0-9_-]{54}$`, token)
	c, err := s.FindRecipient(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, cloud.Caller{Account: cloud.Account{BusinessID: 42}, Recipient: theOrder}, c)
	for i := range token {
		changed := []byte(token)
		changed[i] ^= 1
		_, err := s.FindRecipient(t.Context(), string(changed))
		require.ErrorIs(t, err, cloud.ErrNotFound)
	}
	for _, bad := range []string{"", "oct_", token + "A", token[:len(token)-1], s.token(42, 999, 0), s.token(43, theOrder, 0), s.token(42, theOrder, 1)} {
		_, err := s.FindRecipient(t.Context(), bad)
		require.ErrorIs(t, err, cloud.ErrNotFound, bad)
	}
	other := New(Config{Store: r.db, Key: bytes.Repeat([]byte{3}, 32)})
	_, err = other.FindRecipient(t.Context(), token)
	require.ErrorIs(t, err, cloud.ErrNotFound, "of another deployment")

	r.says(recipient, "x")
	_, err = s.Close(t.Context(), r.caller(admin), OrderInput{theOrder})
	require.NoError(t, err)
	_, err = s.FindRecipient(t.Context(), token)
	require.ErrorIs(t, err, cloud.ErrNotFound)
	_, ok = invite()
	require.False(t, ok)
	_, err = s.Reopen(t.Context(), r.caller(admin), OrderInput{theOrder})
	require.NoError(t, err)
	_, err = s.FindRecipient(t.Context(), token)
	require.ErrorIs(t, err, cloud.ErrNotFound, "it ended with the closing")
	fresh, ok := invite()
	require.True(t, ok)
	_, err = s.FindRecipient(t.Context(), fresh)
	require.NoError(t, err)
	r.settings(func(s *cloud.ChatSettings) { s.Recipient = false })
	_, ok = invite()
	require.False(t, ok)
	c, err = s.FindRecipient(t.Context(), fresh)
	require.NoError(t, err)
	_, err = s.Find(t.Context(), c, OrderInput{theOrder})
	r.refused(err, "NOT_A_PARTICIPANT")
}

func TestRights(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	right := func(who cloud.AccountID) Right {
		of := cloud.OrderID(0)
		if who == recipient {
			of = theOrder
		}
		got, err := r.nodes[0].Rights(t.Context(), Listener{BusinessID: 42, Account: who, Recipient: of}, theOrder)
		require.NoError(t, err)
		return got
	}
	want := map[cloud.AccountID]Right{admin: ReceivesStaff, employee: ReceivesStaff, contractor: ReceivesStaff, driver: ReceivesStaff, customer: ReceivesAll, recipient: ReceivesAll,
		second: ReceivesNothing, stranger: ReceivesNothing, foreign: ReceivesNothing, 999: ReceivesNothing}
	for who, w := range want {
		require.Equal(t, w, right(who), who)
	}
	none, err := r.nodes[0].Rights(t.Context(), Listener{BusinessID: 42, Recipient: 71}, theOrder)
	require.NoError(t, err)
	require.Equal(t, ReceivesNothing, none, "the recipient of another order")
	off := r.caller(employee).Account
	off.Enabled = false
	r.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{off}}})
	require.Equal(t, ReceivesNothing, right(employee), "an account that is switched off")
	r.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Timezone: "America/Toronto", Settings: cloud.Settings{Chat: cloud.ChatSettings{Recipient: true}}}}}})
	for who := range want {
		require.Equal(t, ReceivesNothing, right(who), "the feature is off")
	}
}

func TestTyping(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	for range 70 {
		_, err := r.nodes[0].Typing(t.Context(), r.caller(recipient), TypingInput{theOrder, true})
		require.NoError(t, err)
	}
	e := r.told()
	require.Len(t, e, 60, "who says so too often is not told of")
	require.True(t, e[0].Passing)
	require.Equal(t, cloud.LiveChat, e[0].Kind)
	require.Equal(t, cloud.ChatRecipient, e[0].Data.Participant.Type)
	require.Nil(t, r.talk(admin))

	// A driver from whom the order is taken while the call runs sends nothing.
	s := r.nodes[0]
	s.store = changing{s.store, func() {
		r.order(func(o *cloud.Order) {
			o.DriverID, o.Drove = second, []cloud.FormerDriver{{ID: driver, Until: started}}
		})
	}}
	_, err := s.Typing(t.Context(), r.caller(driver), TypingInput{theOrder, true})
	r.refused(err, "NOT_A_PARTICIPANT")
	require.Empty(t, r.told())
}

// changing is a store in which something changes after each look.
type changing struct {
	Store
	change func()
}

func (c changing) Look(ctx context.Context, fn func(cloud.View) error) error {
	err := c.Store.Look(ctx, fn)
	c.change()
	return err
}

// fake gives credentials and keeps for whom.
type fake struct{ who *Listener }

func (f fake) Issue(_ context.Context, who Listener) (MQTT, error) {
	*f.who = who
	return MQTT{Password: "p"}, nil
}

// Credentials are for orders all of which the caller may hear.
func TestCredentials(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	s := r.nodes[0]
	require.False(t, s.Listens())
	var who Listener
	s.LetListen(fake{&who})
	require.True(t, s.Listens())
	ask := func(c cloud.AccountID, orders ...cloud.OrderID) error {
		who = Listener{}
		_, err := s.Token(t.Context(), r.caller(c), TokenInput{orders})
		return err
	}
	require.NoError(t, ask(admin, 71, theOrder, 71))
	require.Equal(t, Listener{BusinessID: 42, Account: admin, Channels: []Channel{{theOrder, ReceivesStaff}, {71, ReceivesStaff}}}, who)
	require.NoError(t, ask(customer, theOrder))
	require.Equal(t, []Channel{{theOrder, ReceivesAll}}, who.Channels)
	require.NoError(t, ask(recipient, theOrder))
	require.Equal(t, Listener{BusinessID: 42, Recipient: theOrder, Channels: []Channel{{theOrder, ReceivesAll}}}, who)
	for _, c := range []cloud.AccountID{customer, recipient, driver} {
		r.refused(ask(c, theOrder, 71), "ORDER_NOT_FOUND")
		require.Zero(t, who, "all or nothing")
	}
	r.order(func(o *cloud.Order) { o.DriverID, o.Drove = 0, []cloud.FormerDriver{{ID: driver, Until: started}} })
	r.refused(ask(driver, theOrder), "NOT_A_PARTICIPANT")
	r.refused(ask(admin), "VALIDATION_FAILED")
	r.refused(ask(admin, make([]cloud.OrderID, 51)...), "VALIDATION_FAILED")
}

func FuzzRecipientToken(f *testing.F) {
	s := New(Config{Key: bytes.Repeat([]byte{2}, 32)})
	f.Add(s.token(42, theOrder, 3))
	f.Add("oct_")
	f.Add(s.token(42, theOrder, 3) + "\n")
	f.Fuzz(func(t *testing.T, token string) {
		if b, o, epoch, ok := s.read(token); ok {
			require.Equal(t, token, s.token(b, o, epoch), "there is one spelling of each")
		}
	})
}

// An account that may not chat finds nothing in the list and the count either, and a
// former driver who may only read is no account to which a message was delivered.
func TestWhoMayNotFindsNothing(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		s := r.nodes[0]
		found := func(who cloud.AccountID) [3]int {
			t.Helper()
			out, err := s.List(t.Context(), r.caller(who), ListInput{})
			require.NoError(t, err)
			require.Len(t, out.Conversations, out.Total)
			n, err := s.UnreadCount(t.Context(), r.caller(who), check.None{})
			require.NoError(t, err)
			return [3]int{out.Total, n.Total, n.Conversations}
		}
		r.says(admin, "x")
		may := [3]int{1, 1, 1}
		for who, set := range map[cloud.AccountID]func(s *cloud.ChatSettings, no bool){
			customer: func(s *cloud.ChatSettings, no bool) { s.NoCustomer = no },
			driver:   func(s *cloud.ChatSettings, no bool) { s.NoDriver = no },
		} {
			require.Equal(t, may, found(who))
			r.settings(func(s *cloud.ChatSettings) { set(s, true) })
			require.Zero(t, found(who))
			r.settings(func(s *cloud.ChatSettings) { set(s, false) })
			require.Equal(t, may, found(who))
			require.Zero(t, found(stranger))
		}
		r.order(func(o *cloud.Order) { o.DriverID, o.Drove = 0, []cloud.FormerDriver{{ID: driver, Until: started}} })
		require.Zero(t, found(driver))
		require.Len(t, r.messages(driver), 1, "it may read")
		require.Equal(t, "sent", r.talk(admin).LastMessage.Status)
		r.wait(cloud.FormerDriverReads)
		_, err := s.Messages(t.Context(), r.caller(driver), MessagesInput{OrderID: theOrder})
		r.refused(err, "ORDER_NOT_FOUND")
	})
}

// A former driver reads on what is said to all, and not what is said to the next driver.
func TestAFormerDriverReadsNothingForTheNext(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		texts := func() (out []string) {
			t.Helper()
			for _, m := range r.messages(driver) {
				out = append(out, *m.Text)
			}
			return out
		}
		r.says(admin, "before")
		r.says(admin, "to the driver", "staff_driver")
		r.wait(time.Second)
		until := r.clock()
		r.order(func(o *cloud.Order) { o.DriverID, o.Drove = 0, []cloud.FormerDriver{{ID: driver, Until: until}} })
		require.Equal(t, []string{"before", "to the driver"}, texts())
		require.Equal(t, "to the driver", *r.talk(driver).LastMessage.Text)
		r.wait(time.Second)
		r.says(admin, "to all")
		r.says(admin, "the code of the gate", "staff_driver")
		require.Equal(t, []string{"before", "to the driver", "to all"}, texts())
		require.Equal(t, "to all", *r.talk(driver).LastMessage.Text)
		require.Len(t, r.messages(admin), 4)
		r.order(func(o *cloud.Order) { o.DriverID, o.Drove = driver, nil })
		require.Len(t, texts(), 4, "the order came back")
	})
}

package chat

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/internal/ring"
)

// The quick ring walks beside the model fewer times; -rapid.checks says otherwise.
var _ = flag.Set("rapid.checks", strconv.Itoa(ring.Count(20, 100)))

// model is a conversation as a plain list, with the positions of its readers.
type model struct {
	said    []*line
	fetched map[cloud.AccountID]cloud.ChatMessageID
	reads   map[cloud.AccountID][]mark
	closed  bool
}

type line struct {
	id      cloud.ChatMessageID
	client  string
	by      cloud.AccountID
	staff   bool
	text    string
	edited  bool
	deleted bool
	replyTo *line
	at      time.Time
}

type mark struct {
	upTo cloud.ChatMessageID
	at   time.Time
}

func (m *model) shows(l *line, who cloud.AccountID) bool { return !l.staff || staffed(who) }

// seen are the messages that show to an account.
func (m *model) seen(who cloud.AccountID) (out []*line) {
	for _, l := range m.said {
		if m.shows(l, who) {
			out = append(out, l)
		}
	}
	return out
}

func (m *model) read(who cloud.AccountID) cloud.ChatMessageID {
	if r := m.reads[who]; len(r) > 0 {
		return r[len(r)-1].upTo
	}
	return 0
}

func (m *model) unread(who cloud.AccountID) (n int) {
	for _, l := range m.seen(who) {
		if l.id > m.read(who) && l.by != who && !l.deleted {
			n++
		}
	}
	return n
}

// known is what of a message is compared.
type known struct {
	ID      cloud.ChatMessageID
	Client  string
	By      string
	Staff   bool
	Text    string
	Edited  bool
	Deleted bool
	ReplyTo cloud.ChatMessageID
	Status  string
	ReadBy  map[string]string
}

func person(who cloud.AccountID) string {
	if who == recipient {
		return "recipient"
	}
	return fmt.Sprint(who)
}

func (m *model) known(l *line, viewer cloud.AccountID) known {
	k := known{ID: l.id, Client: l.client, By: person(l.by), Staff: l.staff, Text: l.text, Edited: l.edited, Deleted: l.deleted, Status: "sent", ReadBy: map[string]string{}}
	if l.replyTo != nil && m.shows(l.replyTo, viewer) {
		k.ReplyTo = l.replyTo.id
	}
	for _, who := range everybody {
		if who == l.by || !m.shows(l, who) {
			continue
		}
		if m.fetched[who] >= l.id && k.Status == "sent" {
			k.Status = "delivered"
		}
		if i := slices.IndexFunc(m.reads[who], func(x mark) bool { return x.upTo >= l.id }); i >= 0 {
			k.Status = "read"
			k.ReadBy[person(who)] = m.reads[who][i].at.In(toronto).Format(time.RFC3339)
		}
	}
	return k
}

var toronto, _ = time.LoadLocation("America/Toronto")

// shownAs is an answer's message in the model's words.
func shownAs(m Message) known {
	who := func(role cloud.ChatRole, id *cloud.AccountID) string {
		if role == cloud.ChatRecipient {
			return "recipient"
		}
		return fmt.Sprint(*id)
	}
	k := known{ID: m.ID, By: who(m.Sender.Type, m.Sender.ID), Staff: m.Audience == audienceStaff, Edited: m.EditedAt != nil, Deleted: m.DeletedAt != nil, Status: m.Status, ReadBy: map[string]string{}}
	if m.ClientID != nil {
		k.Client = *m.ClientID
	}
	if m.Text != nil {
		k.Text = *m.Text
	}
	if m.ReplyTo != nil {
		k.ReplyTo = *m.ReplyTo
	}
	for _, r := range m.ReadBy {
		k.ReadBy[who(r.Type, r.ID)] = r.ReadAt
	}
	return k
}

// Any order of sends and resends, edits, deletions, reads, closings and reopenings
// by people of all roles, on two nodes, with answers that are lost: every answer
// is that of the model, and every reader who catches up has the same messages in the
// same order.
func TestAgainstAModel(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, first *rig) {
		db, nodes := first.db, first.nodes
		rapid.Check(t, func(rt *rapid.T) {
			seed := rapid.Uint64().Draw(rt, "seed")
			r := &rig{t: t, db: db, nodes: nodes, files: first.files, now: started}
			for _, s := range nodes {
				s.now = r.clock
			}
			r.write(&cloud.Changes{ChatChanges: cloud.ChatChanges{DroppedConversations: []cloud.OrderKey{{BusinessID: 42, ID: theOrder}}}})
			w := &walk{r: r, rnd: rand.New(rand.NewPCG(seed, 1)), m: &model{fetched: map[cloud.AccountID]cloud.ChatMessageID{}, reads: map[cloud.AccountID][]mark{}}, callers: map[cloud.AccountID]cloud.Caller{}}
			for _, who := range everybody {
				w.callers[who] = r.caller(who)
			}
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				w.step()
			}
			w.end()
		})
	})
}

type walk struct {
	r       *rig
	rnd     *rand.Rand
	m       *model
	n       int
	callers map[cloud.AccountID]cloud.Caller
}

func (w *walk) node() *Service { return w.r.nodes[w.rnd.IntN(len(w.r.nodes))] }

func (w *walk) any() *line {
	if len(w.m.said) == 0 {
		return nil
	}
	return w.m.said[w.rnd.IntN(len(w.m.said))]
}

// expect is whether a call was refused as the model says; "" is not at all.
func (w *walk) expect(err error, code string) bool {
	w.r.t.Helper()
	if code == "" {
		require.NoError(w.r.t, err)
		return true
	}
	w.r.refused(err, code)
	return false
}

func (w *walk) step() {
	w.r.wait(time.Duration(w.rnd.IntN(90)) * time.Second)
	who := everybody[w.rnd.IntN(len(everybody))]
	switch w.rnd.IntN(12) {
	case 0, 1, 2, 3:
		w.send(who)
	case 4:
		w.edit(who)
	case 5:
		w.delete(who)
	case 6, 7:
		w.fetch(who)
	case 8, 9:
		w.mark(who)
	case 10:
		w.close()
	default:
		w.look(who)
	}
}

// lost repeats a call whose answer was lost, now and then.
func (w *walk) lost(call func()) {
	call()
	for w.rnd.IntN(3) == 0 {
		call()
	}
}

func (w *walk) send(who cloud.AccountID) {
	ctx, t := w.r.t.Context(), w.r.t
	w.n++
	in := SendInput{OrderID: theOrder, ClientID: fmt.Sprint("c", w.n), Text: fmt.Sprint("text ", w.n)}
	if old := w.any(); old != nil && w.rnd.IntN(5) == 0 {
		in.ClientID = old.client // its own sender's, or another person's
	}
	if w.rnd.IntN(3) == 0 {
		in.Audience = audienceStaff
	}
	if to := w.any(); to != nil && w.rnd.IntN(3) == 0 {
		in.ReplyTo = to.id
	}
	w.lost(func() {
		out, err := w.node().Send(ctx, w.callers[who], in)
		if i := slices.IndexFunc(w.m.said, func(l *line) bool { return l.by == who && l.client == in.ClientID }); i >= 0 {
			require.NoError(t, err)
			require.Equal(t, w.m.known(w.m.said[i], who), shownAs(out.Message))
			return
		}
		var to *line
		if i := slices.IndexFunc(w.m.said, func(l *line) bool { return l.id == in.ReplyTo }); i >= 0 {
			to = w.m.said[i]
		}
		code := ""
		switch {
		case w.m.closed:
			code = codeClosed
		case !staffed(who) && in.Audience == audienceStaff, to != nil && !w.m.shows(to, who):
			code = codeInvalid
		}
		if !w.expect(err, code) {
			return
		}
		l := &line{id: out.Message.ID, client: in.ClientID, by: who, staff: in.Audience == audienceStaff, text: in.Text, replyTo: to, at: w.r.clock()}
		if n := len(w.m.said); n > 0 {
			require.Greater(t, l.id, w.m.said[n-1].id)
		}
		w.m.said = append(w.m.said, l)
		require.Equal(t, w.m.known(l, who), shownAs(out.Message))
	})
}

// changeable is the answer to an account that changes a message.
func (w *walk) changeable(l *line, who cloud.AccountID) string {
	switch {
	case !w.m.shows(l, who):
		return codeMessage
	case l.by != who:
		return codeAuthor
	case w.m.closed:
		return codeClosed
	}
	return ""
}

func (w *walk) edit(who cloud.AccountID) {
	l := w.any()
	if l == nil {
		return
	}
	if w.rnd.IntN(2) == 0 {
		who = l.by
	}
	w.n++
	text := fmt.Sprint("other ", w.n)
	w.lost(func() {
		out, err := w.node().Edit(w.r.t.Context(), w.callers[who], EditInput{l.id, text})
		code := w.changeable(l, who)
		if code == "" && (l.deleted || l.text != text && w.r.clock().Sub(l.at) > editable) {
			code = codeFixed
		}
		if w.expect(err, code) {
			l.edited = l.edited || l.text != text
			l.text = text
			require.Equal(w.r.t, w.m.known(l, who), shownAs(out.Message))
		}
	})
}

func (w *walk) delete(who cloud.AccountID) {
	l := w.any()
	if l == nil {
		return
	}
	if w.rnd.IntN(2) == 0 {
		who = l.by
	}
	w.lost(func() {
		out, err := w.node().Delete(w.r.t.Context(), w.callers[who], MessageInput{l.id})
		code := w.changeable(l, who)
		if code == "" && !l.deleted && w.r.clock().Sub(l.at) > editable {
			code = codeFixed
		}
		if w.expect(err, code) {
			l.deleted, l.text, l.replyTo = true, "", nil
			require.Equal(w.r.t, w.m.known(l, who), shownAs(out.Message))
		}
	})
}

func (w *walk) fetch(who cloud.AccountID) {
	in := MessagesInput{OrderID: theOrder, Limit: w.rnd.IntN(6) + 1}
	list := w.m.seen(who)
	more := false
	from := cloud.ChatMessageID(0)
	if l := w.any(); l != nil {
		from = l.id + cloud.ChatMessageID(w.rnd.IntN(3)-1)
	}
	if w.rnd.IntN(2) == 0 {
		in.AfterID = &from
		list = slices.DeleteFunc(list, func(l *line) bool { return l.id <= from })
		more = len(list) > in.Limit
		list = list[:min(len(list), in.Limit)]
	} else {
		if from > 0 && w.rnd.IntN(2) == 0 {
			in.BeforeID = from
			list = slices.DeleteFunc(list, func(l *line) bool { return l.id >= from })
		}
		more = len(list) > in.Limit
		list = list[max(0, len(list)-in.Limit):]
	}
	out, err := w.node().Messages(w.r.t.Context(), w.callers[who], in)
	require.NoError(w.r.t, err)
	for _, l := range list {
		if l.by != who {
			w.m.fetched[who] = max(w.m.fetched[who], l.id)
		}
	}
	w.same(who, list, out.Messages)
	require.Equal(w.r.t, more, out.HasMore)
}

func (w *walk) same(who cloud.AccountID, list []*line, got []Message) {
	w.r.t.Helper()
	var want, have []known
	for _, l := range list {
		want = append(want, w.m.known(l, who))
	}
	for _, m := range got {
		have = append(have, shownAs(m))
	}
	require.Empty(w.r.t, cmp.Diff(want, have), "%s", person(who))
}

func (w *walk) mark(who cloud.AccountID) {
	upTo := cloud.ChatMessageID(w.rnd.Int64N(1<<53) + 1)
	if l := w.any(); l != nil {
		upTo = l.id + cloud.ChatMessageID(w.rnd.IntN(3)-1)
	}
	w.lost(func() {
		out, err := w.node().MarkRead(w.r.t.Context(), w.callers[who], MarkInput{theOrder, upTo})
		require.NoError(w.r.t, err)
		to := cloud.ChatMessageID(0)
		for _, l := range w.m.seen(who) {
			if l.id <= upTo {
				to = l.id
			}
		}
		if to > w.m.read(who) {
			w.m.reads[who] = append(w.m.reads[who], mark{to, w.r.clock()})
			w.m.fetched[who] = max(w.m.fetched[who], to)
		}
		require.Equal(w.r.t, w.m.unread(who), out.Unread)
	})
}

func (w *walk) close() {
	close := w.rnd.IntN(3) == 0
	w.lost(func() {
		call := w.node().Reopen
		if close {
			call = w.node().Close
		}
		_, err := call(w.r.t.Context(), w.callers[admin], OrderInput{theOrder})
		if len(w.m.said) == 0 {
			w.expect(err, codeConversation)
			return
		}
		require.NoError(w.r.t, err)
		w.m.closed = close
	})
}

func (w *walk) look(who cloud.AccountID) {
	t := w.r.t
	out, err := w.node().Find(t.Context(), w.callers[who], OrderInput{theOrder})
	require.NoError(t, err)
	seen := w.m.seen(who)
	if len(seen) == 0 {
		require.Nil(t, out.Conversation)
	} else {
		require.Equal(t, w.m.unread(who), out.Conversation.Unread)
		require.Equal(t, map[bool]string{true: "closed", false: "open"}[w.m.closed], out.Conversation.Status)
		require.Equal(t, w.m.known(seen[len(seen)-1], who), shownAs(*out.Conversation.LastMessage))
	}
	if who == recipient {
		return
	}
	n, err := w.node().UnreadCount(t.Context(), w.callers[who], check.None{})
	require.NoError(t, err)
	require.Equal(t, w.m.unread(who), n.Total)
	list, err := w.node().List(t.Context(), w.callers[who], ListInput{UnreadOnly: true})
	require.NoError(t, err)
	require.Equal(t, w.m.unread(who) > 0, len(list.Conversations) == 1)
	if len(list.Conversations) == 1 {
		require.Empty(t, cmp.Diff(*out.Conversation, list.Conversations[0]))
	}
}

// end lets everybody catch up from the beginning, in small steps.
func (w *walk) end() {
	for _, who := range everybody {
		for _, l := range w.m.seen(who) {
			if l.by != who {
				w.m.fetched[who] = max(w.m.fetched[who], l.id)
			}
		}
		w.catchUp(who)
	}
	for _, who := range everybody {
		w.same(who, w.m.seen(who), w.catchUp(who))
		w.look(who)
	}
}

func (w *walk) catchUp(who cloud.AccountID) (all []Message) {
	all, err := catchUp(w.r, w.node(), w.callers[who], 0, w.rnd.IntN(4)+1)
	require.NoError(w.r.t, err)
	return all
}

// catchUp reads on from an id until there is no more.
func catchUp(r *rig, s *Service, c cloud.Caller, after cloud.ChatMessageID, limit int) (all []Message, err error) {
	for {
		out, err := s.Messages(r.t.Context(), c, MessagesInput{OrderID: theOrder, AfterID: &after, Limit: limit})
		if err != nil || len(out.Messages) == 0 {
			return all, err
		}
		all = append(all, out.Messages...)
		after = all[len(all)-1].ID
		if !out.HasMore {
			return all, nil
		}
	}
}

// Everybody talks at once on both nodes, sending again at random, while others
// read on from where they were: no reader misses a message, none is there twice, and
// all have the same order.
func TestEverybodyAtOnce(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		const each = 15
		var wg, readers sync.WaitGroup
		var over atomic.Bool
		got := make([][]Message, len(everybody))
		for i, who := range everybody {
			c := r.caller(who)
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(7, uint64(i)))
				for n := range each {
					in := SendInput{OrderID: theOrder, ClientID: fmt.Sprint(n), Text: fmt.Sprint(person(who), " ", n)}
					if staffed(who) && n%3 == 0 {
						in.Audience = audienceStaff
					}
					var again sync.WaitGroup // a repeat that overtakes, maybe
					for range 1 + rnd.IntN(2) {
						s := r.nodes[rnd.IntN(len(r.nodes))]
						again.Go(func() {
							if _, err := s.Send(t.Context(), c, in); err != nil {
								t.Error(err)
							}
						})
					}
					again.Wait()
					if _, err := r.nodes[0].MarkRead(t.Context(), c, MarkInput{theOrder, 1 << 60}); err != nil {
						t.Error(err)
					}
				}
			})
			readers.Go(func() {
				for last := false; ; {
					last = over.Load()
					after := cloud.ChatMessageID(0)
					if n := len(got[i]); n > 0 {
						after = got[i][n-1].ID
					}
					more, err := catchUp(r, r.nodes[i%len(r.nodes)], c, after, 3)
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = append(got[i], more...)
					if last {
						return
					}
				}
			})
		}
		wg.Wait()
		over.Store(true)
		readers.Wait()
		all := ids(got[0])
		require.Len(t, all, each*len(everybody))
		require.True(t, slices.IsSorted(all))
		require.Len(t, slices.Compact(slices.Clone(all)), len(all))
		public := slices.DeleteFunc(slices.Clone(got[0]), func(m Message) bool { return m.Audience == audienceStaff })
		for i, who := range everybody {
			if staffed(who) {
				require.Equal(t, all, ids(got[i]), person(who))
			} else {
				require.Equal(t, ids(public), ids(got[i]), person(who))
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		created := 0
		for _, e := range r.live {
			if bytes.Contains(e.Body, []byte(`"type":"message.created"`)) {
				created++
			}
		}
		require.Equal(t, len(all), created, "each is told of once")
		require.Len(t, r.pushes, each*(len(everybody)-1))
	})
}

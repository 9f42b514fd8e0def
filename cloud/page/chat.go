package page

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/chat"
)

// maxSaid is the length of a message, in characters.
const maxSaid = 2000

// chatPanel is what is said about an order, with what more is said by: for one of
// the business's staff, or for the order's recipient. The script goes on from it.
type chatPanel struct {
	frame
	OrderID  cloud.OrderID
	Action   string // where forms go
	API      string // where the script calls
	Messages string // where it changes messages, by their id
	Files    string // where it uploads
	Listen   string // where it gets credentials for live events
	Token    string // recipient's; "": staff, by the session
	CSRF     string // staff's form secret
	Me       string // role:id
	ZoneName string // of the times
	Updated  string // when the conversation changed last
	Rows     []chatRow
	Earlier  string // address of earlier messages, "" when there are none
	Newest   string // address of the newest messages, where these are others
	Unread   int
	Last     cloud.ChatMessageID
	Closed   bool
	ClosesAt string
	Writes   bool
	Manages  bool
	Begun    bool
	Quick    []cloud.ChatQuickReply

	ClientID, Text, Problem string
	Private                 bool
}

// chatRow is a message as it is shown.
type chatRow struct {
	ID            cloud.ChatMessageID
	Own           bool
	Who, Role     string
	At            *moment
	Text          string
	Edited        bool
	Deleted       bool
	Private       bool // for staff and driver only
	To            *chatQuote
	Place         *chatPlace
	Files         []chatFile
	Status, State string // State changes with the content
}

type chatPlace struct{ URL, Label string }

// chatQuote is what a message answers; Said is "" when that is on another page.
type chatQuote struct {
	ID             cloud.ChatMessageID
	URL, Who, Said string
}

// chatFile is a file of a message; Shown is the address of what a picture is shown
// by, a small one where there is one.
type chatFile struct {
	ID            int64
	URL, Name     string
	Image         bool
	Shown         string
	Width, Height int
}

// Staff reports whether it is for one of the business's staff.
func (p chatPanel) Staff() bool { return p.Token == "" }

// chatWords are what the script says.
var chatWords = []string{"chat.you", "chat.edited", "chat.deleted", "chat.private", "chat.place", "chat.auto", "chat.sent", "chat.delivered", "chat.read", "chat.typing", "chat.live", "chat.poll", "chat.offline", "chat.left", "chat.over", "chat.unsent", "chat.again", "chat.signin", "chat.send", "chat.busy",
	"chat.kept", "chat.often", "chat.photo", "chat.photoless", "chat.photokind", "chat.photobig", "chat.photomany", "chat.photofail", "chat.uploading", "chat.reply", "chat.edit", "chat.delete", "chat.suredelete", "chat.undone", "chat.save", "chat.replying", "chat.editing", "chat.original"}

// UnreadText is how many messages are not read, in digits.
func (p chatPanel) UnreadText() string { return strconv.Itoa(p.Unread) }

var chatMarks = map[string]string{"sent": "✓", "delivered": "✓✓", "read": "✓✓"}

// Mark says what became of an own message.
func (p chatPanel) Mark(status string) string { return chatMarks[status] + " " + p.T("chat."+status) }

// rowOf is a message with the panel that it stands in.
type rowOf struct {
	Panel *chatPanel
	Row   chatRow
}

// With is a message in the panel.
func (p *chatPanel) With(r chatRow) rowOf { return rowOf{p, r} }

// tried takes in why what a form was to do did not work, "" when it did.
func (p *chatPanel) tried(problem string, in *chatForm) {
	p.Problem = problem
	if in != nil && in.do == "send" {
		p.Text, p.ClientID, p.Private = in.text, in.clientID, in.private
	}
}

// Words are the script's words as JSON.
func (p chatPanel) Words() string {
	all := map[string]string{}
	for _, w := range chatWords {
		all[strings.TrimPrefix(w, "chat.")] = p.T(w)
	}
	for _, role := range []cloud.ChatRole{cloud.ChatDispatcher, cloud.ChatDriver, cloud.ChatCustomer, cloud.ChatRecipient, cloud.ChatSystem} {
		all["role."+string(role)] = p.V("chatrole", string(role))
	}
	b, _ := json.Marshal(all) // texts always encode
	return string(b)
}

// fill takes what the interface answers about a conversation and its messages.
func (p *chatPanel) fill(talk chat.ConversationOutput, said chat.MessagesOutput) {
	p.Begun = talk.Conversation != nil
	if x := talk.Conversation; x != nil {
		p.Closed, p.Unread = x.Status == "closed", x.Unread
		if x.UpdatedAt != nil {
			p.Updated = *x.UpdatedAt
		}
		if x.ClosesAt != nil {
			p.ClosesAt = p.stamped(x.ClosesAt).clock()
		}
		if x.LastMessage != nil {
			p.Last = x.LastMessage.ID
		}
	}
	here := map[cloud.ChatMessageID]chat.Message{}
	for _, m := range said.Messages {
		here[m.ID] = m
		r := p.row(m)
		if m.ReplyTo != nil {
			r.To = p.quote(*m.ReplyTo, here)
		}
		p.Rows = append(p.Rows, r)
	}
	if said.HasMore && len(said.Messages) > 0 {
		p.Earlier = fmt.Sprintf("%s?before=%d#chat", p.Action, said.Messages[0].ID)
	}
}

// row is a message as the script shows it, too.
func (p *chatPanel) row(m chat.Message) chatRow {
	r := chatRow{ID: m.ID, Own: partyKey(m.Sender) == p.Me, Who: outside(m.Sender.Name, 100), Role: p.V("chatrole", string(m.Sender.Type)), At: p.stamped(&m.CreatedAt),
		Edited: m.EditedAt != nil, Deleted: m.DeletedAt != nil, Private: m.Audience == "staff_driver", Status: m.Status, State: stateOf(m)}
	if m.Text != nil {
		r.Text = outside(*m.Text, maxSaid)
	}
	if m.Sender.Type == cloud.ChatSystem {
		r.Who = p.T("chat.auto")
	}
	if x := m.Location; x != nil {
		at := fmt.Sprintf("%.5f, %.5f", x.Latitude, x.Longitude)
		r.Place = &chatPlace{fmt.Sprintf("https://www.openstreetmap.org/?mlat=%.5f&mlon=%.5f#map=17/%.5f/%.5f", x.Latitude, x.Longitude, x.Latitude, x.Longitude), at}
		if x.Label != nil {
			r.Place.Label = outside(*x.Label, 200) + " (" + at + ")"
		}
	}
	for _, a := range m.Attachments {
		f := chatFile{ID: a.ID, URL: ownAddress(a.URL), Name: outside(cmp.Or(a.Name, a.MIME), 200), Image: a.Width != nil && a.Height != nil}
		if f.Image {
			f.Width, f.Height = fit(*a.Width, *a.Height)
			f.Shown = f.URL
			if a.ThumbnailURL != nil {
				f.Shown = ownAddress(*a.ThumbnailURL)
			}
		}
		r.Files = append(r.Files, f)
	}
	return r
}

// quote is the message that another one answers, among those of the page.
func (p *chatPanel) quote(id cloud.ChatMessageID, here map[cloud.ChatMessageID]chat.Message) *chatQuote {
	m, ok := here[id]
	if !ok {
		return &chatQuote{ID: id, URL: fmt.Sprintf("%s?before=%d#m%d", p.Action, id+1, id)}
	}
	q := &chatQuote{ID: id, URL: fmt.Sprintf("#m%d", id), Who: p.row(m).Who, Said: gist(p.frame, m)}
	if partyKey(m.Sender) == p.Me {
		q.Who = p.T("chat.you")
	}
	return q
}

// gist is a message on one line.
func gist(f frame, m chat.Message) string {
	switch {
	case m.DeletedAt != nil:
		return f.T("chat.deleted")
	case m.Text != nil:
		return outside(*m.Text, 140)
	case len(m.Attachments) > 0:
		return outside(cmp.Or(m.Attachments[0].Name, m.Attachments[0].MIME), 140)
	}
	return f.T("chat.place")
}

// fit is the size of a picture where it is shown, with the place that it will
// take before it is there.
func fit(width, height int) (int, int) {
	w := max(1, math.Round(min(320, float64(width), 256*float64(width)/float64(height))))
	return int(w), max(1, int(math.Round(w*float64(height)/float64(width))))
}

// stateOf is another one when a message's content changed.
func stateOf(m chat.Message) string {
	at := func(t *string) string {
		if t == nil {
			return ""
		}
		return *t
	}
	return at(m.EditedAt) + "|" + at(m.DeletedAt)
}

func partyKey(x chat.Party) string {
	if x.ID == nil {
		return string(x.Type) + ":"
	}
	return fmt.Sprintf("%s:%d", x.Type, *x.ID)
}

// ownAddress is the address of a file without the host: pages show pictures of
// their own host only, by whatever name it was reached.
func ownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.Scheme, u.Host, u.User = "", "", nil
	return u.String()
}

// newClientID names a message that is to be sent.
func newClientID() string {
	var b [18]byte
	_, _ = rand.Read(b[:]) // never fails
	return "p-" + base64.RawURLEncoding.EncodeToString(b[:])
}

// chatForm is what a form about a chat brings.
type chatForm struct {
	do, text, quick, clientID string
	private                   bool
	last                      int64
}

func readChatForm(args *fasthttp.Args) chatForm {
	in := chatForm{do: cmp.Or(string(args.Peek("do")), "send"), text: strings.ReplaceAll(string(args.Peek("text")), "\r\n", "\n"), quick: string(args.Peek("quick")), private: args.Has("private"),
		clientID: string(args.Peek("client_message_id")), last: hookID(string(args.Peek("last")))}
	if in.clientID == "" || len(in.clientID) > 64 {
		in.clientID = newClientID()
	}
	return in
}

// send sends what a form has through run. A form that was sent before and changed
// since, as by going back, has an id that stands for the first text: then what it
// has now is a message of its own.
func (in chatForm) send(run func(operation string, in map[string]any) (chat.MessageOutput, error)) error {
	body := map[string]any{"client_message_id": in.clientID}
	if in.quick != "" {
		body["quick_reply_id"], body["client_message_id"] = in.quick, newClientID()
	} else {
		body["text"] = in.text
	}
	if in.private {
		body["audience"] = "staff_driver"
	}
	out, err := run("order_chat.send", body)
	if err == nil && in.quick == "" && out.Message.DeletedAt == nil && out.Message.EditedAt == nil && (out.Message.Text == nil || *out.Message.Text != in.text) {
		body["client_message_id"] = newClientID()
		_, err = run("order_chat.send", body)
	}
	return err
}

// hearing is the policy of pages that listen at an address.
func hearing(address string) (string, error) {
	if address == "" {
		return policy, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" || u.User != nil || strings.ContainsAny(address, " ;,'\"") {
		return "", fmt.Errorf("the live channel's address %q is none for pages: use one such as wss://tms.example/mqtt", address)
	}
	u.RawQuery, u.Fragment = "", ""
	return strings.Replace(policy, "connect-src 'self'", "connect-src 'self' "+u.String(), 1), nil
}

package page

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud/seal"
)

// ticket is what a page may follow. The page holds it sealed: a browser can neither read
// nor change it, and it is of use to the session alone that the page was made for.
type ticket struct {
	Topics []string `json:"t"`
	Lang   string   `json:"l"`
	Since  string   `json:"s"` // id of the latest event that the page shows
	Until  int64    `json:"u"` // seconds
	// Proof is what showed that a visitor of a tracking page is the recipient; "": nothing
	// did.
	Proof string `json:"p,omitempty"`
}

// How long a ticket is good: those of visitors as long as a page is likely to be looked
// at, those of people who are signed in as long as a session at most.
const (
	visitorTicketLife = time.Hour
	ticketLife        = 24 * time.Hour
)

// visitorTicket begins the tickets of visitors without a session.
const visitorTicket = "v."

// maxTicket bounds what is looked at, in bytes.
const maxTicket = 4096

// tickets seals tickets with a key of the deployment.
type tickets struct{ key []byte }

func (k tickets) box() *seal.Box { return sealBox(k.key, "tickets of live pages") }

// seal gives a ticket as a page holds it. about is the session that it is for, or
// visitorTicket.
func (k tickets) seal(about string, t ticket) string {
	plain, _ := json.Marshal(t) // plain fields always encode
	out := base64.RawURLEncoding.EncodeToString(k.box().Seal(about, plain))
	if about == visitorTicket {
		return visitorTicket + out
	}
	return out
}

// open gives a ticket that a page holds; false for one of another session, one that
// was changed, and one that is over.
func (k tickets) open(about, text string, now time.Time) (t ticket, ok bool) {
	if len(text) > maxTicket {
		return t, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, visitorTicket))
	if err != nil {
		return t, false
	}
	plain, err := k.box().Open(about, raw)
	return t, err == nil && json.Unmarshal(plain, &t) == nil && now.Unix() < t.Until
}

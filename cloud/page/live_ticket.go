package page

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
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

func (k tickets) box() cipher.AEAD {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte("tickets of live pages"))
	block, _ := aes.NewCipher(mac.Sum(nil)) // of 32 bytes
	box, _ := cipher.NewGCM(block)
	return box
}

// seal gives a ticket as a page holds it. about is the session that it is for, or
// visitorTicket.
func (k tickets) seal(about string, t ticket) string {
	plain, _ := json.Marshal(t) // plain fields always encode
	box := k.box()
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	out := base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, plain, []byte(about)))
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
	box := k.box()
	if err != nil || len(raw) < box.NonceSize() {
		return t, false
	}
	plain, err := box.Open(nil, raw[:box.NonceSize()], raw[box.NonceSize():], []byte(about))
	return t, err == nil && json.Unmarshal(plain, &t) == nil && now.Unix() < t.Until
}

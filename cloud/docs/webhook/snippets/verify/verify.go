// Package verify verifies webhooks. It is an example to copy.
package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Request reports whether a request was signed with secret in the last five
// minutes. body is what was received, before any decoding.
func Request(h http.Header, body []byte, secret string, now time.Time) bool {
	at := h.Get("X-Webhook-Timestamp")
	sec, err := strconv.ParseInt(at, 10, 64)
	if age := now.Unix() - sec; err != nil || age > 300 || age < -300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	var want string
	var given []string
	if id := h.Get("X-Webhook-Delivery-Id"); id != "" { // endpoint of a provider
		mac.Write([]byte(at + "\n" + id + "\n"))
		mac.Write(body)
		want = base64.StdEncoding.EncodeToString(mac.Sum(nil))
		given = []string{h.Get("X-Webhook-Signature"), h.Get("X-Webhook-Signature-Next")}
	} else { // address of an account
		mac.Write([]byte(at + "."))
		mac.Write(body)
		want = hex.EncodeToString(mac.Sum(nil))
		given = strings.Split(h.Get("X-Webhook-Signature-V2"), ",")
	}
	ok := false
	for _, g := range given {
		ok = hmac.Equal([]byte(g), []byte(want)) || ok
	}
	return ok
}

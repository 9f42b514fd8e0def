package object

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Prefix is what addresses of files begin with; the stored path follows.
const Prefix = "/api/v1/files/"

// Address is where a file can be read until a time, without the host.
func (f *Files) Address(stored string, until time.Time) string {
	return Prefix + f.sign(stored, until)
}

func (f *Files) sign(stored string, until time.Time) string {
	expires := strconv.FormatInt(until.Unix(), 10)
	return stored + "?expires=" + expires + "&signature=" + f.signature(stored, expires)
}

// Signed reports whether an address was made by Address, and whether its time
// is over.
func (f *Files) Signed(stored, expires, signature string) (ok, over bool) {
	if !hmac.Equal([]byte(signature), []byte(f.signature(stored, expires))) {
		return false, false
	}
	at, err := strconv.ParseInt(expires, 10, 64)
	return err == nil, err == nil && !f.now().Before(time.Unix(at, 0))
}

// signature covers path and time; neither can hold a line feed in an address
// that was made here.
func (f *Files) signature(stored, expires string) string {
	m := hmac.New(sha256.New, f.key)
	m.Write([]byte(stored + "\n" + expires))
	return hex.EncodeToString(m.Sum(nil))
}

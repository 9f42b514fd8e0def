package page

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// sealer carries secrets that were typed into a form through the preview to the
// confirmation: the page holds them sealed, of use to the same session at the same
// address alone.
type sealer struct {
	key   []byte // of the deployment
	about string // session and address
}

// sealedMark begins a sealed value.
const sealedMark = "sealed:"

func (s sealer) box() cipher.AEAD {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("secrets of forms"))
	block, _ := aes.NewCipher(mac.Sum(nil)) // of 32 bytes
	box, _ := cipher.NewGCM(block)
	return box
}

// seal is a secret as a page holds it, "" for none.
func (s sealer) seal(path, text string) string {
	if text == "" {
		return ""
	}
	box := s.box()
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return sealedMark + base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, []byte(text), []byte(s.about+"\n"+path)))
}

// open is the secret that a form sent, sealed or as it was typed; false for one that was
// sealed for another form.
func (s sealer) open(path, text string) (string, bool) {
	raw, sealed := strings.CutPrefix(text, sealedMark)
	if !sealed {
		return text, true
	}
	b, err := base64.RawURLEncoding.DecodeString(raw)
	box := s.box()
	if err != nil || len(b) < box.NonceSize() {
		return "", false
	}
	plain, err := box.Open(nil, b[:box.NonceSize()], b[box.NonceSize():], []byte(s.about+"\n"+path))
	return string(plain), err == nil
}

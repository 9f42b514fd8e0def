package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/seal"
)

// sealer carries secrets that were typed into a form through the preview to the
// confirmation: the page holds them sealed, of use to the same session at the same
// address alone.
type sealer struct {
	key   []byte // of the deployment
	about string // session and address
}

// newSealer seals for the session of a request at one place.
func newSealer(p *kit, ctx *fasthttp.RequestCtx, place string) sealer {
	return sealer{p.cfg.DigestKey, sessionToken(ctx) + "\n" + place}
}

// sealedMark begins a sealed value.
const sealedMark = "sealed:"

// sealBox seals what pages hold for one use, with a key that follows from the
// deployment's.
func sealBox(key []byte, use string) *seal.Box {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(use))
	box, _ := seal.New(mac.Sum(nil)) // of seal.KeySize bytes
	return box
}

func (s sealer) box() *seal.Box { return sealBox(s.key, "secrets of forms") }

// seal is a secret as a page holds it, "" for none.
func (s sealer) seal(path, text string) string {
	if text == "" {
		return ""
	}
	return sealedMark + base64.RawURLEncoding.EncodeToString(s.box().Seal(s.about+"\n"+path, []byte(text)))
}

// open is the secret that a form sent, sealed or as it was typed; false for one that was
// sealed for another form.
func (s sealer) open(path, text string) (string, bool) {
	raw, sealed := strings.CutPrefix(text, sealedMark)
	if !sealed {
		return text, true
	}
	b, err := base64.RawURLEncoding.DecodeString(raw)
	if err != nil {
		return "", false
	}
	plain, err := s.box().Open(s.about+"\n"+path, b)
	return string(plain), err == nil
}

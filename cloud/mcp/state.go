package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// stateLife is how long a question waits for its answer.
const stateLife = 10 * time.Minute

// A state is sealed for one server, method or tool, caller and set of
// arguments:
//
//	bytes 0-7   expiry, Unix seconds, big endian
//	bytes 8-23  nonce
//	rest        what the tool gave

// purpose binds a state to its call.
func (s *Server) purpose(c *Call) string {
	b := []byte("mcp state")
	for _, part := range []string{s.cfg.Name, c.Request.Method, c.Request.Tool, c.Caller.ID} {
		b = strconv.AppendQuote(append(b, ' '), part)
	}
	return string(append(b, canonical(c.Arguments)...))
}

// canonical is the digest of arguments however they are written: clients may
// send them again in another order. Numbers keep their text.
func canonical(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil { // checked JSON always decodes
		return digest(raw)
	}
	b, _ := encode(v)
	return digest(b)
}

func (s *Server) sealState(c *Call, state []byte, now time.Time) string {
	nonce := uuid.New()
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 24+len(state)), uint64(now.Add(stateLife).Unix()))
	b = append(append(b, nonce[:]...), state...)
	return base64.RawURLEncoding.EncodeToString(s.box.Seal(s.purpose(c), b))
}

// openState gives a call its state. ok is false when it was altered, is too old
// or belongs to another call.
func (s *Server) openState(c *Call, sealed string, now time.Time) (ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return false
	}
	b, err = s.box.Open(s.purpose(c), b)
	if err != nil || len(b) < 24 || now.Unix() >= int64(binary.BigEndian.Uint64(b)) {
		return false
	}
	c.Nonce, c.State = hex.EncodeToString(b[8:24]), append([]byte{}, b[24:]...)
	return true
}

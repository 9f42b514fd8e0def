package chat

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// A recipient's token is kept nowhere. It names an order and how often the
// order's conversation was opened again or its link replaced, so that it is good
// until the conversation closes and not after either:
//
//	oct_ base64url( business 8 │ order 8 │ epoch 4 │ HMAC-SHA256 over these, 20 )
const (
	tokenBody = 20
	tokenMAC  = 20
)

func (s recipients) mac(body []byte) []byte {
	m := hmac.New(sha256.New, s.cfg.Key)
	m.Write(body)
	return m.Sum(nil)[:tokenMAC]
}

func (s recipients) token(b cloud.BusinessID, o cloud.OrderID, epoch int) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(b))
	body = binary.BigEndian.AppendUint64(body, uint64(o))
	body = binary.BigEndian.AppendUint32(body, uint32(epoch))
	return cloud.RecipientToken + base64.RawURLEncoding.EncodeToString(append(body, s.mac(body)...))
}

// read is what a token says; ok is false for one that was not made here.
func (s recipients) read(token string) (b cloud.BusinessID, o cloud.OrderID, epoch int, ok bool) {
	text, ok := strings.CutPrefix(token, cloud.RecipientToken)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(raw) != tokenBody+tokenMAC || len(text) != base64.RawURLEncoding.EncodedLen(len(raw)) || // the decoder overlooks line feeds
		!hmac.Equal(raw[tokenBody:], s.mac(raw[:tokenBody])) {
		return 0, 0, 0, false
	}
	return cloud.BusinessID(binary.BigEndian.Uint64(raw)), cloud.OrderID(binary.BigEndian.Uint64(raw[8:])), int(binary.BigEndian.Uint32(raw[16:])), true
}

// epoch counts what ends a recipient's token. Neither part ever goes back.
func (x *orderChat) epoch() int { return x.talk.Epoch + x.o.LinkGeneration }

// FindRecipient is the caller behind a recipient's token. Error:
// cloud.ErrNotFound for one that was not made here, or is no longer good.
func (s recipients) FindRecipient(ctx context.Context, token string) (c cloud.Caller, err error) {
	b, o, epoch, ok := s.read(token)
	if !ok {
		return c, cloud.ErrNotFound
	}
	c.Account.BusinessID, c.Recipient = b, o
	return c, s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.join(v, c, o)
		if x == nil && !refused(err) {
			return err
		}
		if x == nil || x.isClosed() || x.epoch() != epoch { // a caller that may not take part gets that answer later
			return cloud.ErrNotFound
		}
		return nil
	})
}

// Invite is the token of an order's recipient; ok is false when the business
// does not let recipients chat, or the conversation is closed.
func (s recipients) Invite(v cloud.View, o cloud.Order) (token string, ok bool, err error) {
	x, err := s.join(v, cloud.Caller{Account: cloud.Account{BusinessID: o.BusinessID}, Recipient: o.ID}, o.ID)
	if refused(err) {
		return "", false, nil
	}
	if err != nil || !x.b.Settings.Has(Feature) || x.isClosed() {
		return "", false, err
	}
	return s.token(o.BusinessID, o.ID, x.epoch()), true, nil
}

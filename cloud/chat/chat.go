// Package chat holds the rules of what is said about an order: one conversation
// for each, between dispatchers (staff, and the contractor that holds the
// order), its driver, the customer whose it is, and holders of the order's chat
// token, who is its recipient.
//
// A conversation begins with its first message. Messages of one conversation
// have growing ids in the order in which they are stored, so a reader who goes on
// from an id misses none. A message that is sent again under its sender's own id
// is the first one. Messages for dispatchers and driver show to no other participant in
// any answer, count or live event.
//
// Every decision reads the order first, which makes decisions about one
// conversation wait for each other, and writes the conversation. The messages to
// listeners and the push to the driver are written with what they report.
//
// A conversation closes by itself some time after its order has ended. No write
// is needed for that: a reader compares the time, and Run writes it a little
// later so that listeners receive it. Safe for concurrent use.
package chat

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/picture"
)

// Feature is the family that must be on for a business.
const Feature = "order_chat"

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	LiveOf(ctx context.Context, b cloud.BusinessID, kind cloud.LiveKind, subject int64, from time.Time, limit int) ([]cloud.LiveEvent, error)
	ListConversations(ctx context.Context, q cloud.ConversationQuery) (cloud.Listed, []cloud.Conversation, error)
	CountUnread(ctx context.Context, q cloud.ConversationQuery, limit int) (messages, conversations int, err error)
	NextChatBusiness(ctx context.Context, after cloud.BusinessID) (cloud.BusinessID, error)
	EndedChats(ctx context.Context, b cloud.BusinessID, after cloud.OrderID, ended time.Time, limit int) ([]cloud.OrderID, error)
	OldChats(ctx context.Context, b cloud.BusinessID, closed time.Time, limit int) ([]cloud.OrderID, error)
	IdleAttachments(ctx context.Context, before time.Time, limit int) ([]cloud.ChatAttachment, error)
}

// Files keeps what is uploaded.
type Files interface {
	// Put keeps what body holds, up to max bytes, if it is of one of kinds. Errors:
	// cloud.ErrFileSize, cloud.ErrFileKind.
	Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error)
	Delete(ctx context.Context, path string) error
}

// Config is what New needs.
type Config struct {
	Store Store
	Files Files // nil: no files are taken
	// SignFile is the address, without the host, at which a stored file can be
	// read until then.
	SignFile func(path string, until time.Time) string
	// Key signs the tokens of recipients: the same on every node, at least 32
	// bytes, and used for nothing else.
	Key []byte
	// PerMinute is how many messages, and how many files, one sender may send a
	// minute; 0 is 20, a negative one no limit.
	PerMinute int
}

// Service is the feature.
type Service struct {
	*core
	messages
	conversations
	participants
	settings
	listeners
	recipients
	sweeper
}

// Sections of the service.
type (
	messages      struct{ *core } // of one order: sending, changing, reading
	conversations struct{ *core } // lists of them, and their beginning and end
	participants  struct{ *core } // those of one conversation, as staff sets them
	settings      struct{ *core } // of a business
	listeners     struct{ *core } // of live events
	recipients    struct{ *core } // tokens of recipients, who have no account
	sweeper       struct{ *core } // what time alone ends
)

// core is what the sections share: the place of a caller in a chat, and limits.
type core struct {
	cfg    Config
	store  Store
	listen Credentials    // nil: no app can listen
	limits *limit.Windows // of messages and files, of this node
	typing *limit.Buckets // of this node
	thumbs *picture.Thumbnails
	now    func() time.Time
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.PerMinute == 0 {
		cfg.PerMinute = perMinute
	}
	c := &core{cfg: cfg, store: cfg.Store, limits: limit.NewWindows(0), typing: limit.New(0, nil), thumbs: picture.NewThumbnails(), now: time.Now}
	return &Service{c, messages{c}, conversations{c}, participants{c}, settings{c}, listeners{c}, recipients{c}, sweeper{c}}
}

// LetListen says what gives credentials for live events. Call it before the
// service is used.
func (s *core) LetListen(c Credentials) { s.listen = c }

// Error codes of this package.
const (
	codeOrder        = "ORDER_NOT_FOUND"
	codeConversation = "CONVERSATION_NOT_FOUND"
	codeMessage      = "MESSAGE_NOT_FOUND"
	codeOutsider     = "NOT_A_PARTICIPANT"
	codeClosed       = "CONVERSATION_CLOSED"
	codeFixed        = "MESSAGE_NOT_EDITABLE"
	codeAuthor       = "NOT_THE_AUTHOR"
	codeInvalid      = "VALIDATION_FAILED"
	codeTooLarge     = "PAYLOAD_TOO_LARGE"
	codeLimited      = "RATE_LIMITED"
	codeUnavailable  = "MODULE_UNAVAILABLE"
)

// Bounds.
const (
	perMinute    = 20
	typingMinute = 60
	maxFile      = 10 << 20 // bytes
	editable     = 10 * time.Minute
	fileSigned   = 7 * 24 * time.Hour // an address of a file
	idleFile     = 24 * time.Hour     // without a message
)

// time is now as it is stored.
func (s *core) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// letters are those of a ULID; their order is that of what they stand for.
var letters = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID is the time in milliseconds, a number that grows within one decision,
// and nine random bytes.
func newID(prefix string, now time.Time, n byte) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[7:]) // never fails
	b[6] = n
	return prefix + letters.EncodeToString(b[:])
}

// began is what the seconds in message ids are counted from.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// messageID is the id of a message after last. Its high part is the time in
// seconds, or a little ahead of it where clocks of nodes differ; its low 20 bits
// are those of a number that is given once in the deployment, so that no two
// messages share an id.
func messageID(now time.Time, last cloud.ChatMessageID, n int64) cloud.ChatMessageID {
	at := max(int64(now.Sub(began)/time.Second), int64(last>>20), 0)
	id := cloud.ChatMessageID(at<<20 | n&(1<<20-1))
	if id <= last {
		id += 1 << 20
	}
	return id
}

// spendAllowance takes one from a sender's limit.
func (s *core) spendAllowance(what string, me *participant) error {
	if wait, ok := s.limits.Take(what+"/"+me.key(), s.cfg.PerMinute, s.now()); !ok {
		return &cloud.Error{Kind: cloud.Limited, Code: codeLimited, RetryAfter: wait, Details: map[string]any{"retry_after": wait}}
	}
	return nil
}

// found is what a view found, or nothing when there is none.
func found[T any](v T, err error) (T, bool, error) {
	if errors.Is(err, cloud.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, err
}

// refused reports whether an error is an answer to who asks, and no fault.
func refused(err error) bool {
	var e *cloud.Error
	return errors.As(err, &e)
}

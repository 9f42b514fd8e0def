package cloud

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"
)

// LiveKind is a family of live channels.
type LiveKind string

// Live channels (devices 10.2). Subject is the order of a chat and the driver of
// a push.
const (
	LiveChat      LiveKind = "order_chat"       // all who take part in an order's chat
	LiveChatStaff LiveKind = "order_chat_staff" // its dispatchers and its driver
	LiveDriver    LiveKind = "driver"           // one driver's app
)

// LiveEvent is sent over MQTT to its listeners when it is committed, and again
// to listeners that come within LiveKept. Each is sent at least once;
// receivers drop what they have seen by its id, which is in the body too. A listener that
// was away longer reads what happened by the interface. It is written with what
// it tells of, and changes only when the words in it are taken back.
type LiveEvent struct {
	ID         string // och_…, psh_…
	Kind       LiveKind
	BusinessID BusinessID
	Subject    int64
	At         time.Time
	Body       []byte // JSON, at most 64 KiB
	// Passing says that it is of no use a moment later, such as that a participant
	// types: it is sent to present listeners only.
	Passing bool
}

// LiveKept is how long a live event waits for apps that are just coming back.
const LiveKept = 2 * time.Minute

// MaxLiveBody is the size of a live event's body, in bytes.
const MaxLiveBody = 64 << 10

// Push is a word to a driver's app: over the live channel to an app that listens, and
// through the platform's push provider to a driver who does not. Apps drop what
// they have seen by its id.
type Push struct {
	ID         string // NewPushID
	BusinessID BusinessID
	DriverID   AccountID
	Type       string // order_assigned, of devices 10.5
	Title      string
	Body       string // at most 120 characters
	Data       PushData
	At         time.Time
	// Collapse names what a later push takes the place of while it has not been
	// handed to the provider: a conversation. Empty: it stands for itself.
	Collapse string
	Test     bool // sandbox: logged, never handed to the provider
}

// PushData has the ids of what a push is about.
type PushData struct {
	OrderID        OrderID `json:"order_id,omitzero"`
	RouteID        RouteID `json:"route_id,omitzero"`
	ConversationID int64   `json:"conversation_id,omitzero"`
	MessageID      int64   `json:"message_id,omitzero"`
	TrackingNumber string  `json:"tracking_number,omitzero"`
}

// PushBody is a push as apps get it, whatever way it comes.
type PushBody struct {
	PushID    string   `json:"push_id"`
	Type      string   `json:"type"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Data      PushData `json:"data"`
	CreatedAt string   `json:"created_at" format:"date-time"`
}

// PublicBody is the push as apps get it.
func (p Push) PublicBody() PushBody {
	return PushBody{PushID: p.ID, Type: p.Type, Title: p.Title, Body: p.Body, Data: p.Data, CreatedAt: p.At.UTC().Format(time.RFC3339)}
}

// Live is the push on the driver's live channel.
func (p Push) Live() LiveEvent {
	body, _ := json.Marshal(p.PublicBody()) // plain fields always encode
	return LiveEvent{ID: p.ID, Kind: LiveDriver, BusinessID: p.BusinessID, Subject: int64(p.DriverID), At: p.At, Body: body}
}

// NewPushID is psh_ and 32 hexadecimal digits that no other push has; those of
// later pushes sort behind.
func NewPushID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[6:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16|uint64(binary.BigEndian.Uint16(b[6:])))
	return "psh_" + hex.EncodeToString(b[:])
}

// PushState is what became of a push.
type PushState string

// States of a push. All but the first are its end.
const (
	PushWaiting  PushState = "waiting"  // for the provider
	PushSent     PushState = "sent"     // the provider took it
	PushHeard    PushState = "heard"    // the app acknowledged it on the live channel
	PushReplaced PushState = "replaced" // a later one took its place, and no app acknowledged it
	PushFailed   PushState = "failed"   // the provider did not take it
	PushExpired  PushState = "expired"  // no app received it in time
	PushLogged   PushState = "logged"   // of a sandbox
)

// PushDelay is what the live channel is given before the provider.
const PushDelay = 2 * time.Second

// PushKept is how long pushes can be read.
const PushKept = 7 * 24 * time.Hour

// PushRow is a push with what became of it.
type PushRow struct {
	Push
	State      PushState
	Attempts   int
	NextAt     time.Time
	EndedAt    time.Time
	Reason     string // why it was not sent, "" when it was
	Generation int64  // of the lease that it is tried under
}

// PushToken is where one of a driver's apps is reached through the provider.
type PushToken struct {
	DriverID AccountID
	Token    string   // of the platform, at most 4,096 bytes
	Platform string   // fcm, apns, web
	Login    [32]byte // hash of the access token that it was given with
	At       time.Time
}

// MaxPushTokens is how many apps of a driver are reached; the oldest goes.
const MaxPushTokens = 10

// LiveChanges are the changes of messages to apps that listen.
type LiveChanges struct {
	Live []LiveEvent // insert
	// Reworded and RewordedPushes have other words for what is kept under these ids;
	// what became of a push stays.
	Reworded []LiveEvent
}

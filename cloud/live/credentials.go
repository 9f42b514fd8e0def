package live

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/mqttbroker"
)

// Life is how long credentials are good.
const Life = time.Hour

// MaxOrders is how many chats one app listens to.
const MaxOrders = 50

// Listener is who wants to listen: an account with a token, or a guest.
type Listener struct {
	BusinessID cloud.BusinessID `json:"b"`
	AccountID  cloud.AccountID  `json:"a,omitzero"` // 0 of a guest
	Token      [32]byte         `json:"t,omitzero"` // hash of the account's token
	// Guest is what a guest came with, for Rights alone.
	Guest  string          `json:"g,omitempty"`
	Orders []cloud.OrderID `json:"o,omitempty"` // whose chats it listens to, at most MaxOrders
}

// owner names whose connections are counted together.
func (l Listener) owner() string {
	if l.AccountID == 0 {
		sum := sha256.Sum256([]byte(l.Guest))
		return "guest/" + hex.EncodeToString(sum[:])
	}
	return fmt.Sprint("account/", l.AccountID)
}

// Credentials let an app listen, over MQTT 3.1.1 or 5. The user name is the
// client id. Each client id has one connection.
type Credentials struct {
	URL          string   `json:"url" doc:"Address over TCP or TLS; empty when there is none"`
	WebSocketURL string   `json:"websocket_url" doc:"Address over WebSocket; empty when there is none"`
	ClientID     string   `json:"client_id"`
	Username     string   `json:"username"`
	Password     string   `json:"password"`
	Topics       []string `json:"topics" doc:"All that may be subscribed to, without wildcards"`
	ExpiresAt    string   `json:"expires_at" format:"date-time" doc:"The connection ends within a minute of it"`
}

// claim is what credentials say: it is their password, sealed for the client id.
type claim struct {
	Listener
	Expires int64 `json:"e"` // Unix seconds
	// channels are by topic; found at each login.
	channels map[string]channel
	ip       string // of the connection; empty before there is one
}

func purpose(client string) string { return "live channel/" + client }

// errRefused says that an account may not listen.
var errRefused = errors.New("may not listen")

// Issue gives credentials for all that a listener may receive: a driver its pushes,
// staff the dashboard, and the chats of the orders that it names. Error:
// FORBIDDEN when it may not receive one of these, or nothing at all.
func (s *Service) Issue(ctx context.Context, l Listener) (Credentials, error) {
	l.Orders = slices.Compact(slices.Sorted(slices.Values(l.Orders)))
	if len(l.Orders) > MaxOrders {
		return Credentials{}, cloud.E(cloud.Forbidden, "FORBIDDEN")
	}
	now := time.Now()
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	name := fmt.Sprint(l.AccountID)
	if l.AccountID == 0 {
		name = "guest"
	}
	c := claim{Listener: l, Expires: now.Add(Life).Unix()}
	channels, err := s.rights(ctx, &c)
	if errors.Is(err, errRefused) || err == nil && len(channels) == 0 {
		return Credentials{}, cloud.E(cloud.Forbidden, "FORBIDDEN")
	}
	if err != nil {
		return Credentials{}, err
	}
	client := mqttbroker.AppPrefix + name + "-" + hex.EncodeToString(b[:])
	plain, _ := json.Marshal(c) // plain fields always encode
	return Credentials{URL: s.cfg.URL, WebSocketURL: s.cfg.WebSocketURL, ClientID: client, Username: client,
		Password: base64.RawURLEncoding.EncodeToString(s.cfg.Sealer.Seal(purpose(client), plain)), Topics: s.topics(channels),
		ExpiresAt: time.Unix(c.Expires, 0).UTC().Format(time.RFC3339)}, nil
}

func (s *Service) topics(list []channel) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.topic(s.cfg.Prefix)
	}
	return out
}

// rights are the channels that a claim stands for at this moment. Errors:
// errRefused when it stands for nothing any more.
func (s *Service) rights(ctx context.Context, c *claim) (out []channel, err error) {
	if c.Guest == "" {
		session, err := s.cfg.FindToken(ctx, c.Token)
		switch {
		case errors.Is(err, cloud.ErrNotFound):
			return nil, errRefused
		case err != nil:
			return nil, err
		case !auth.Valid(session.Token, time.Now()) || !session.Token.Policy.On("live") || c.ip != "" && !auth.From(session.Token, c.ip) || !session.Account.Enabled || session.Suspended() || session.Account.ID != c.AccountID || session.Account.BusinessID != c.BusinessID:
			return nil, errRefused
		}
		if len(c.Orders) > 0 && !s.cfg.SeesChats(session) {
			return nil, errRefused
		}
		switch session.Account.Type {
		case cloud.DriverAccount:
			if s.cfg.SeesPushes(session) {
				out = append(out, channel{cloud.LiveDriver, c.BusinessID, int64(c.AccountID)})
			}
		case cloud.ClientAdmin, cloud.ClientEmployee:
			if s.cfg.SeesOrders(session) {
				out = append(out, channel{dashboard, c.BusinessID, 0})
			}
		}
	}
	for _, o := range c.Orders {
		right := NoChat
		if s.cfg.Rights != nil {
			if right, err = s.cfg.Rights.Chat(ctx, c.Listener, o); err != nil {
				return nil, err
			}
		}
		switch right {
		case ChatStaff:
			out = append(out, channel{cloud.LiveChat, c.BusinessID, int64(o)}, channel{cloud.LiveChatStaff, c.BusinessID, int64(o)})
		case ChatAll:
			out = append(out, channel{cloud.LiveChat, c.BusinessID, int64(o)})
		default:
			return nil, errRefused
		}
	}
	return out, nil
}

var _ mqttbroker.People = (*Service)(nil)

// Login lets an app in that has credentials of ours.
func (s *Service) Login(ctx context.Context, client, password, ip string) (mqttbroker.Person, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(password)
	if err != nil {
		return mqttbroker.Person{}, errors.New("the password is none of ours")
	}
	plain, err := s.cfg.Sealer.Open(purpose(client), sealed)
	c := &claim{}
	if err == nil {
		err = json.Unmarshal(plain, c)
	}
	if err != nil {
		return mqttbroker.Person{}, errors.New("the password is none of ours, or for another client id")
	}
	if time.Now().Unix() >= c.Expires {
		return mqttbroker.Person{}, errors.New("the credentials have expired")
	}
	c.ip = ip
	channels, err := s.rights(ctx, c)
	if err != nil {
		return mqttbroker.Person{}, err
	}
	topics := s.topics(channels)
	c.channels = map[string]channel{}
	for i, x := range channels {
		c.channels[topics[i]] = x
		if x.kind == dashboard {
			if err := s.expect(ctx); err != nil {
				return mqttbroker.Person{}, err
			}
		}
	}
	return mqttbroker.Person{Owner: c.owner(), Topics: topics, Claim: c}, nil
}

// Holds reports whether an app still has all rights that it was let in for.
func (s *Service) Holds(ctx context.Context, p mqttbroker.Person) (bool, error) {
	c := p.Claim.(*claim)
	if time.Now().Unix() >= c.Expires {
		return false, nil
	}
	channels, err := s.rights(ctx, c)
	if errors.Is(err, errRefused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, x := range c.channels {
		if !slices.Contains(channels, x) {
			return false, nil
		}
	}
	return true, nil
}

// ListRecent gives the messages of a channel within cloud.LiveKept, oldest first.
func (s *Service) ListRecent(ctx context.Context, p mqttbroker.Person, topic string) ([]mqttbroker.Message, error) {
	ch, ok := p.Claim.(*claim).channels[topic]
	if !ok || ch.kind == dashboard {
		return nil, nil
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	from := time.Now().Add(-cloud.LiveKept)
	for limit := 100; ; limit *= 4 {
		found, err := s.cfg.Store.LiveOf(ctx, ch.business, ch.kind, ch.subject, from, limit)
		if err != nil {
			return nil, err
		}
		if len(found) == limit {
			continue
		}
		out := make([]mqttbroker.Message, len(found))
		for i, e := range found {
			out[i] = mqttbroker.Message{ID: e.ID, Payload: e.Body}
		}
		return out, nil
	}
}

// Listening counts who listens.
func (s *Service) Listening(p mqttbroker.Person, topic string, change int) {
	ch := p.Claim.(*claim).channels[topic]
	if ch.kind != dashboard {
		s.subscriptions.Add(int64(change))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dash.open[ch.business] += change; s.dash.open[ch.business] == 0 {
		delete(s.dash.open, ch.business)
	}
}

// ack is an event that an app has.
type ack struct {
	claim   *claim
	channel channel
	id      string
}

// Received notes that a driver's app acknowledged a push, or a person's app a chat event.
func (s *Service) Received(p mqttbroker.Person, topic, id string) {
	c := p.Claim.(*claim)
	ch := c.channels[topic]
	if ch.kind == dashboard || ch.kind != cloud.LiveDriver && s.cfg.ChatReceived == nil {
		return
	}
	select {
	case s.acks <- ack{c, ch, id}:
	default: // the provider tells it again
	}
}

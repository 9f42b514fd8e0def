package notification_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/notification/mailtest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

const secret = "a-token-that-lets-people-in"

func invitation(id string) cloud.Notification {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return cloud.Notification{ID: id, BusinessID: 1, Channel: cloud.ByEmail, Kind: cloud.NotifyInvitation, At: now, Until: now.Add(time.Hour),
		NotificationText: cloud.NotificationText{To: "zoe@a.example", Language: "en", Name: "Zoe", Business: "Acme & Söhne", Link: "https://cloud.test/invitation?key=" + secret}}
}

// parts are a mail's bodies by their type.
func parts(t *testing.T, raw string) (netmail.Header, map[string]string) {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(raw))
	require.NoError(t, err)
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/alternative", kind)
	out := map[string]string{}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m.Header, out
		}
		require.NoError(t, err)
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		require.NoError(t, err)
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		require.NoError(t, err)
		out[kind] = string(body)
	}
}

// Every kind of mail has a subject, a text and HTML in each language, and nothing of
// it ends a line of a header or is read as HTML.
func TestMailsInSixLanguages(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, kind := range cloud.NotificationKinds() {
		for _, l := range locale.All() {
			if kind == cloud.NotifyDeliveryCode {
				continue // couriers have a telephone number alone
			}
			m := invitation("m")
			m.Kind, m.Language, m.Name, m.Business = kind, l.Code, "<b>Zoe</b>\r\nBcc: eve@x.example", "Acme\r\nBcc: eve@x.example"
			if kind != cloud.NotifyInvitation && kind != cloud.NotifyReset && kind != cloud.NotifyAdminReset {
				m.Link = ""
			}
			if strings.HasPrefix(string(kind), "parcel_") || kind == cloud.NotifyDropoffCode {
				m.Parcel = &cloud.ParcelNotice{Numbers: []string{"PK-1", "PK-2"}, Code: "135790", Locker: "Front St <b>Lobby", Address: "120 Front St", Doors: []string{"A-3"}, Until: time.Date(2099, 12, 1, 18, 30, 0, 0, time.FixedZone("", -5*3600))}
			}
			if kind == cloud.NotifyParcelCollected {
				m.Parcel = &cloud.ParcelNotice{Numbers: []string{"PK-1"}, Locker: "Front St", Address: "120 Front St"}
			}
			x, err := notification.Compose(m, m.At)
			require.NoError(t, err)
			if kind == cloud.NotifyParcelCollected {
				require.Contains(t, x.Text, "PK-1")
				require.Contains(t, x.Text, "120 Front St")
				require.NotContains(t, x.Text, locale.Word(l.Code, "mail.parcel.code"), "there is no code")
				require.NotContains(t, x.HTML, locale.Word(l.Code, "mail.parcel.door"))
			} else if m.Parcel != nil {
				require.NotContains(t, x.Subject, m.Parcel.Code)
				for _, part := range []string{"135790", "A-3", "PK-1, PK-2", "120 Front St", map[bool]string{true: "6:30", false: "18:30"}[l.Code == "en"]} {
					require.Contains(t, x.Text, part, l.Code)
					require.Contains(t, x.HTML, part, l.Code)
				}
			}
			require.NotContains(t, x.Subject, "\n")
			require.NotContains(t, x.HTML, "<b>")
			require.NotContains(t, x.Text+x.HTML, "%!")
			require.NotContains(t, x.Text+x.HTML, "mail.")
			require.Contains(t, x.HTML, `<html lang="`+l.Code+`">`)
			require.False(t, seen[x.Text], "%s in %s is another mail's", kind, l.Code)
			seen[x.Text] = true
			if m.Link != "" {
				require.Contains(t, x.Text, m.Link)
				require.Contains(t, x.HTML, `href="`+m.Link+`"`)
			}
		}
	}
}

// rig sends from a database to a server.
type rig struct {
	t      *testing.T
	db     *store.DB
	server *mailtest.Server
}

func (r *rig) write(mails ...cloud.Notification) {
	r.t.Helper()
	require.NoError(r.t, r.db.Decide(r.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: mails}}, nil
	}))
}

func (r *rig) row(id string) cloud.NotificationRow {
	r.t.Helper()
	list, err := r.db.ListNotifications(r.t.Context(), 1, 100)
	require.NoError(r.t, err)
	i := slices.IndexFunc(list, func(m cloud.NotificationRow) bool { return m.ID == id })
	require.GreaterOrEqual(r.t, i, 0)
	return list[i]
}

// A real server with STARTTLS and a login: down, back, busy, refusing, and asked with
// a wrong password. A mail is sent once; what was refused is given up with a line.
func TestMailServer(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, db: storetest.OpenSQLite(t), server: mailtest.New(t)}
	settings := r.server.Settings()
	at, err := notification.NewMailServer(settings)
	require.NoError(t, err)
	ctx := t.Context()
	send := func(m cloud.Notification) error { return at.Send(ctx, m) }

	require.NoError(t, send(invitation("first")))
	got := <-r.server.Mails
	require.Equal(t, []any{"no-reply@tms.example", "zoe@a.example", true}, []any{got.From, got.To, got.TLS})
	head, bodies := parts(t, got.Raw)
	require.Equal(t, "<first@tms.example>", head.Get("Message-ID"))
	require.Equal(t, "auto-generated", head.Get("Auto-Submitted"))
	subject, err := new(mime.WordDecoder).DecodeHeader(head.Get("Subject"))
	require.NoError(t, err)
	require.Equal(t, "Invitation to Acme & Söhne", subject)
	for _, kind := range []string{"text/plain", "text/html"} {
		require.Contains(t, bodies[kind], "https://cloud.test/invitation?key="+secret, kind)
	}

	wrong := settings
	wrong.Password = "another password"
	other, err := notification.NewMailServer(wrong)
	require.NoError(t, err)
	err = other.Send(ctx, invitation("login"))
	require.Error(t, err)
	require.NotErrorIs(t, err, notification.ErrRefused, "the settings can be put right")
	require.NotContains(t, err.Error(), wrong.Password)
	unknown := settings
	unknown.TLS = nil
	other, err = notification.NewMailServer(unknown)
	require.NoError(t, err)
	require.Error(t, other.Send(ctx, invitation("cert")), "a certificate that no authority vouches for")

	r.server.Refuse(451)
	err = send(invitation("busy"))
	require.Error(t, err)
	require.NotErrorIs(t, err, notification.ErrRefused)
	r.server.Refuse(550)
	err = send(invitation("gone"))
	require.ErrorIs(t, err, notification.ErrRefused)
	require.NotContains(t, err.Error(), "zoe@a.example")
	r.server.Refuse(0)
	r.server.Stop()
	err = send(invitation("down"))
	require.Error(t, err)
	require.NotErrorIs(t, err, notification.ErrRefused)
	r.server.Start()
	require.NoError(t, send(invitation("back")))
	require.Contains(t, (<-r.server.Mails).Raw, "<back@tms.example>")
	m := invitation("address")
	m.To = "no address"
	require.ErrorIs(t, send(m), notification.ErrRefused)
}

func TestMailSettings(t *testing.T) {
	t.Parallel()
	good := notification.MailServer{Host: "mail.example", Port: 587, Encryption: notification.StartTLS, From: "no-reply@tms.example"}
	_, err := notification.NewMailServer(good)
	require.NoError(t, err)
	for name, change := range map[string]func(*notification.MailServer){
		"sender":     func(s *notification.MailServer) { s.From = "Postern" },
		"encryption": func(s *notification.MailServer) { s.Encryption = "ssl" },
		"login":      func(s *notification.MailServer) { s.Encryption, s.User, s.Password = notification.Plain, "u", "p" },
		"port":       func(s *notification.MailServer) { s.Port = 70000 },
	} {
		bad := good
		change(&bad)
		_, err := notification.NewMailServer(bad)
		require.Error(t, err, name)
	}
}

// carrier is a server of which each answer is chosen.
type carrier struct {
	mu    sync.Mutex
	sent  []string
	tries int
	next  func(try int) error
}

func (c *carrier) Send(_ context.Context, m cloud.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	err := c.next(c.tries)
	if err == nil {
		c.sent = append(c.sent, m.ID)
	}
	return err
}

// memory keeps one mail as the store does, without a database, for time in a bubble.
type memory struct {
	mu    sync.Mutex
	m     cloud.NotificationRow
	taken bool
	ends  int
	fail  error // of the next end
}

func (s *memory) NotificationDue(_ context.Context, _ cloud.NotificationChannel, now time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.State == cloud.NotificationWaiting && !s.taken && !now.Before(s.m.NextAt), nil
}

func (s *memory) ClaimNotifications(_ context.Context, by cloud.NotificationChannel, now time.Time, _ int) ([]cloud.NotificationRow, error) {
	if due, _ := s.NotificationDue(context.Background(), by, now); !due {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = true
	s.m.Attempts++
	return []cloud.NotificationRow{s.m}, nil
}

func (s *memory) EndNotification(_ context.Context, m cloud.NotificationRow) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail; err != nil {
		s.fail = nil
		return false, err
	}
	s.m, s.taken = m, false
	s.ends++
	return true, nil
}

func (s *memory) RetryNotification(_ context.Context, m cloud.NotificationRow) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m, s.taken = m, false
	return nil
}

func (s *memory) RecoverNotifications(context.Context, cloud.NotificationChannel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = false
	return nil
}

// A mail waits for a server that is down, and ends once; one that never comes back,
// or a node that ends in the middle of every attempt, ends after so many attempts;
// one that is of no use any more is not sent.
func TestMailsEndOnce(t *testing.T) {
	t.Parallel()
	down := errors.New("the server is down")
	for name, c := range map[string]struct {
		next  func(int) error
		until time.Duration
		state cloud.NotificationState
		tries int
	}{
		"down, then back": {func(try int) error {
			if try < 6 {
				return down
			}
			return nil
		}, 24 * time.Hour, cloud.NotificationSent, 6},
		"refused":       {func(int) error { return notification.ErrRefused }, 24 * time.Hour, cloud.NotificationFailed, 1},
		"down for ever": {func(int) error { return down }, 1000 * time.Hour, cloud.NotificationFailed, notification.MaxAttempts},
		"too late":      {func(int) error { return down }, time.Minute, cloud.NotificationExpired, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				m := invitation("m")
				m.Until = time.Now().Add(c.until)
				db, out := &memory{m: cloud.NotificationRow{Notification: m, State: cloud.NotificationWaiting}}, &carrier{next: c.next}
				var unsent int
				var log bytes.Buffer
				s := notification.New(notification.Config{Channel: cloud.ByEmail, Store: db, Carrier: out, Log: slog.New(slog.NewTextHandler(&log, nil)), Ended: func(context.Context, cloud.NotificationRow) error { unsent++; return nil }})
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				time.Sleep(900 * time.Hour)
				cancel()
				require.NoError(t, <-done)
				require.Equal(t, []any{c.state, c.tries, 1}, []any{db.m.State, out.tries, db.ends})
				require.Equal(t, c.state != cloud.NotificationSent, unsent == 1)
				require.NotContains(t, log.String(), secret)
				require.NotContains(t, log.String(), "zoe@a.example")
			})
		})
	}
}

// One that can wait waits for its time and one that is no longer true is not sent, without
// a line; nor has one a line that another node has by now.
func TestNotificationsAreAskedAboutBeforeTheyGo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		when  time.Duration // after the start; negative: never
		state cloud.NotificationState
		sent  int
	}{"later": {5 * time.Hour, cloud.NotificationSent, 1}, "never": {-1, cloud.NotificationExpired, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				m, start := invitation("m"), time.Now()
				m.Until = start.Add(24 * time.Hour)
				db, out := &memory{m: cloud.NotificationRow{Notification: m, State: cloud.NotificationWaiting}}, &carrier{next: func(int) error {
					require.GreaterOrEqual(t, time.Since(start), c.when)
					return nil
				}}
				s := notification.New(notification.Config{Store: db, Channel: cloud.ByEmail, Carrier: out, Ended: func(context.Context, cloud.NotificationRow) error { t.Error("a line about it"); return nil },
					When: func(_ context.Context, _ cloud.Notification, now time.Time) (time.Time, error) {
						if c.when < 0 {
							return time.Time{}, nil
						}
						if later := now.Add(time.Minute); later.Before(start.Add(c.when)) { // again and again
							return later, nil
						}
						return start.Add(c.when), nil
					}})
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				time.Sleep(30 * time.Hour)
				cancel()
				require.NoError(t, <-done)
				require.Equal(t, []any{c.state, c.sent, 1, 1}, []any{db.m.State, out.tries, db.ends, db.m.Attempts})
			})
		})
	}
}

// The end of a mail that the server took cannot be written: it is handed over once
// more, by the same id, and then ends.
func TestMailWhoseEndIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		db, out := &memory{m: cloud.NotificationRow{Notification: invitation("m"), State: cloud.NotificationWaiting}, fail: errors.New("the database is gone")}, &carrier{next: func(int) error { return nil }}
		s := notification.New(notification.Config{Channel: cloud.ByEmail, Store: db, Carrier: out})
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		s.Committed(&cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{db.m.Notification}}})
		time.Sleep(time.Hour)
		cancel()
		require.NoError(t, <-done)
		require.Equal(t, []string{"m", "m"}, out.sent)
		require.Equal(t, []any{cloud.NotificationSent, 1}, []any{db.m.State, db.ends})
	})
}

// From the row to the server: sent once, the text erased.
func TestMailsFromTheDatabase(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, db: storetest.OpenSQLite(t), server: mailtest.New(t)}
	settings := r.server.Settings()
	at, err := notification.NewMailServer(settings)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s := notification.New(notification.Config{Channel: cloud.ByEmail, Store: r.db, Carrier: at})
	r.db.OnCommit(s.Committed)
	// An earlier run ended in the middle of an attempt.
	r.write(invitation("one"))
	claimed, err := r.db.ClaimNotifications(ctx, cloud.ByEmail, time.Now().Add(time.Minute), 10)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r.write(invitation("two"))
	ids := []string{}
	for range 2 {
		head, _ := parts(t, (<-r.server.Mails).Raw)
		ids = append(ids, head.Get("Message-ID"))
	}
	require.ElementsMatch(t, []string{"<one@tms.example>", "<two@tms.example>"}, ids)
	require.Eventually(t, func() bool {
		return r.row("one").State == cloud.NotificationSent && r.row("two").State == cloud.NotificationSent
	}, time.Minute, 5*time.Millisecond)
	require.Empty(t, r.row("one").Link)
	require.Equal(t, []int{2, 1}, []int{r.row("one").Attempts, r.row("two").Attempts})
	cancel()
	require.NoError(t, <-done)
	require.Empty(t, r.server.Mails)
}

// The link of a sender's mail says what the sender does there, which is not what a recipient does.
func TestASendersMailHasTheLink(t *testing.T) {
	t.Parallel()
	const link = "https://tms.example/dropoff/LD-000064021?k=0123456789abcdefABCD_-"
	for _, l := range locale.All() {
		m := invitation("m")
		m.Kind, m.Language, m.Link, m.Parcel = cloud.NotifyDropoffCode, l.Code, link, &cloud.ParcelNotice{Code: "1357902", Locker: "Front St"}
		x, err := notification.Compose(m, m.At)
		require.NoError(t, err)
		for _, text := range []string{x.Text, x.HTML} {
			require.Contains(t, text, link, l.Code)
			require.Contains(t, text, locale.Word(l.Code, "mail.parcel.sender_link"))
			require.NotContains(t, text, locale.Word(l.Code, "mail.parcel.link"))
		}
		require.NotContains(t, x.Subject, "http")
	}
}

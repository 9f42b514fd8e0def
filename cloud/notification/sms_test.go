package notification_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hook"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/notification"
)

// then is when the messages of the tests are read.
var then = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func short(kind cloud.NotificationKind, lang string) cloud.Notification {
	now := then
	return cloud.Notification{ID: "sms-1", BusinessID: 1, Channel: cloud.BySMS, Kind: kind, At: now, Until: now.Add(time.Hour),
		NotificationText: cloud.NotificationText{To: "+14165550123", Language: lang, Business: "Harbour Parcels", Parcel: &cloud.ParcelNotice{Numbers: []string{"PK-1", "PK-2"}, Code: "135790",
			Locker: "Front St Lobby", Address: "120 Front St", Doors: []string{"A-3", "B-12"}, Until: time.Date(2026, 12, 1, 18, 30, 0, 0, time.FixedZone("", -5*3600))}}}
}

var smsKinds = []cloud.NotificationKind{cloud.NotifyParcelWaiting, cloud.NotifyParcelCode, cloud.NotifyParcelReminder, cloud.NotifyParcelOverdue, cloud.NotifyDeliveryCode, cloud.NotifyDropoffCode}

// The link comes with what two messages hold, whole or not at all.
func TestShortMessagesHaveTheLink(t *testing.T) {
	t.Parallel()
	const link = "https://tms.example/track/SWP100200300?k=0123456789abcdefABCD_-"
	whole := 0
	for _, kind := range smsKinds {
		for _, l := range locale.All() {
			m := short(kind, l.Code)
			m.Link = link
			x, err := notification.ComposeSMS(m, then)
			require.NoError(t, err)
			require.LessOrEqual(t, x.Segments, 2)
			require.Contains(t, x.Text, "135790")
			require.Contains(t, x.Text, "A-3, B-12")
			if strings.HasSuffix(x.Text, " "+link) {
				whole++
			} else {
				require.NotContains(t, x.Text, "http", "no part of a link")
			}
		}
	}
	require.Greater(t, whole, len(smsKinds)*3, "most have it")
}

// Every kind has a text in each language that two messages hold, however long the names
// are, and that always has code, compartments and time limit.
func TestShortMessagesInSixLanguages(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, kind := range smsKinds {
		for _, l := range locale.All() {
			for _, long := range []int{0, 1, 40, 400} {
				m := short(kind, l.Code)
				m.Business += strings.Repeat(" & Söhne", long)
				m.Parcel.Locker += strings.Repeat(" 大厅", long)
				m.Parcel.Address += strings.Repeat("\r\nfloor", long)
				x, err := notification.ComposeSMS(m, then)
				require.NoError(t, err)
				require.LessOrEqual(t, x.Segments, 2)
				until := map[bool]string{true: "6:30", false: "18:30"}[l.Code == "en"]
				if kind == cloud.NotifyParcelOverdue {
					until = "" // it has passed
				}
				for _, part := range []string{"135790", "A-3, B-12", until, "Harbour", "Front St"} {
					require.Contains(t, x.Text, part, "%s in %s: %s", kind, l.Code, x.Text)
				}
				require.False(t, strings.ContainsAny(x.Text, "\r\n’"), x.Text)
				require.NotContains(t, x.Text, "%!")
				require.NotContains(t, x.Text, "sms.")
				require.False(t, long == 0 && seen[x.Text], x.Text)
				seen[x.Text] = true
				if x.Encoding == notification.UCS2 {
					require.LessOrEqual(t, utf8.RuneCountInString(x.Text), 134)
				}
			}
		}
	}
	m := short(cloud.NotifyParcelWaiting, "en")
	x, err := notification.ComposeSMS(m, then)
	require.NoError(t, err)
	require.Equal(t, notification.ShortMessage{Text: "Harbour Parcels: your parcel is in the locker. Code 135790. Front St Lobby, 120 Front St. Compartment A-3, B-12. Collect by 1 Dec, 6:30 pm. PK-1, PK-2",
		Language: "en", Encoding: notification.GSM7, Segments: 1}, x)
	for lang, begins := range map[string]string{"zh-CN": "Harbour Parcels：", "fr-CA": "Harbour Parcels : ", "de_AT": "Harbour Parcels: Ihr", "xx": "Harbour Parcels: your"} {
		x, err = notification.ComposeSMS(short(cloud.NotifyParcelWaiting, lang), then)
		require.NoError(t, err)
		require.Contains(t, x.Text, begins, lang)
	}
	m.Kind = cloud.NotifyReset
	_, err = notification.ComposeSMS(m, then)
	require.ErrorIs(t, err, notification.ErrRefused)
	m = short(cloud.NotifyParcelWaiting, "en")
	m.Parcel.Doors = []string{strings.Repeat("A-1, ", 100)}
	x, err = notification.ComposeSMS(m, then)
	require.NoError(t, err)
	require.Greater(t, x.Segments, 2)
	require.Contains(t, x.Text, "A-1, A-1, A-1,.", "never cut in the middle of what opens a door")
	m = short(cloud.NotifyParcelCode, "en")
	m.Parcel.Until = then
	x, err = notification.ComposeSMS(m, then)
	require.NoError(t, err)
	require.NotContains(t, x.Text, "Collect", "a time that has passed")
	m.Business, m.Parcel.Locker = "Acme \u202e", "Front\u200b St\u2066"
	x, err = notification.ComposeSMS(m, then)
	require.NoError(t, err)
	require.Contains(t, x.Text, "Acme: the pickup code of your parcel. Code 135790. Front St, ")
	require.Equal(t, notification.GSM7, x.Encoding)
}

// Whatever letters places and months are written with, ten compartments are all named, and
// two messages hold them where they can.
func TestShortMessagesOfManyCompartments(t *testing.T) {
	t.Parallel()
	for _, l := range locale.All() {
		for _, kind := range smsKinds {
			for _, place := range []string{"Front St Lobby", "Estación Atocha", "Łódź Główna Dworzec", "Ωμέγα"} {
				for month := range 12 {
					for n := 1; n <= 10; n++ {
						m := short(kind, l.Code)
						m.Business, m.Parcel.Locker, m.Parcel.Doors = "Müller Łódź Logistik", place, nil
						m.Parcel.Until = time.Date(2027, time.Month(month+1), 28, 18, 30, 0, 0, time.UTC)
						for i := range n {
							m.Parcel.Doors = append(m.Parcel.Doors, fmt.Sprintf("B-%d", 10+i))
						}
						x, err := notification.ComposeSMS(m, then)
						require.NoError(t, err)
						require.Contains(t, x.Text, strings.Join(m.Parcel.Doors, ", "))
						most := 2
						if n > 4 && x.Encoding == notification.UCS2 {
							most = 3
						}
						require.LessOrEqual(t, x.Segments, most, "%s: %s", l.Code, x.Text)
					}
				}
			}
		}
	}
}

// Numbers are read as people write them; none is guessed.
func TestPhoneNumbers(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{"+1 (416) 555-0123": "+14165550123", "0049 30 901820": "+4930901820", "+44 (0)20 7946 0958": "+442079460958", "+49 (0) 30 901820": "+4930901820",
		"\u202a+14165550123\u202c": "+14165550123", "+1\u00ad4165550123": "+14165550123", "tel:+14165550123": "+14165550123", "416 555 0123": "", "(416) 555-0123": "", "020 7946 0958": "", "+0 20 7946": "",
		"+1 416 555 0123 ext 4": "", "+12": "", "": "", "+1234567890123456": "", "ann@a.example": ""} {
		require.Equal(t, want, cloud.PhoneNumber(written), written)
	}
}

// The gateway gets what any library of Standard Webhooks verifies; its answers decide.
func TestGateway(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // example key of Standard Webhooks
	status, fails := 200, error(nil)
	headers := http.Header{}
	var body []byte
	g := &notification.Gateway{Address: hook.Address{URL: "https://sms.example/send", Secret: secret, Post: func(_ context.Context, url string, h [][2]string, b []byte) (int, []byte, error) {
		require.Equal(t, "https://sms.example/send", url)
		body = b
		for _, x := range h {
			headers.Set(x[0], x[1])
		}
		return status, nil, fails
	}}}
	m := short(cloud.NotifyParcelWaiting, "de")
	require.NoError(t, g.Send(t.Context(), m))
	require.Equal(t, []string{"sms-1", "application/json"}, []string{headers.Get("webhook-id"), headers.Get("Content-Type")})
	judge, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, judge.Verify(body, headers))
	require.Error(t, judge.Verify(append(body, ' '), headers))
	var got map[string]any
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, "+14165550123", got["to"])
	require.Contains(t, got["text"], "Code 135790.")
	require.Equal(t, []any{"gsm7", 1.0, "de", "parcel_waiting", "sms-1", "2026-11-28T13:00:00Z"}, []any{got["encoding"], got["segments"], got["language"], got["kind"], got["message_id"], got["expires_at"]})
	for want, refused := range map[int]bool{199: false, 302: false, 400: true, 401: false, 404: false, 413: true, 422: true, 429: false, 500: false} {
		status = want
		err := g.Send(t.Context(), m)
		require.Error(t, err, want)
		require.Equal(t, refused, errors.Is(err, notification.ErrRefused), want)
		require.NotContains(t, err.Error(), m.To)
	}
	status, fails = 0, errors.New("no route")
	err = g.Send(t.Context(), m)
	require.ErrorIs(t, err, fails)
	require.NotErrorIs(t, err, notification.ErrRefused)
	fails, body = nil, nil
	for _, to := range []string{"", "4165550123", "+0123456789", "+1 416 555 0123", "ann@a.example"} {
		m.To = to
		require.ErrorIs(t, g.Send(t.Context(), m), notification.ErrRefused, to)
		require.Nil(t, body, "nothing went out")
	}
}

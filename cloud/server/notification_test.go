package server

import (
	"context"
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/notification/mailtest"
	"github.com/postern-io/postern/cloud/store/storetest"
)

var mailedLink = regexp.MustCompile(`https://tms\.example/([a-z-]+)\?key=([\w-]{64})`)

// A person without the password asks on the login page, gets a mail from a real
// server that was down meanwhile, and logs in with another password. An address
// without an account is answered alike. An invitation comes by mail too.
func TestPeopleGetMails(t *testing.T) {
	t.Parallel()
	post := mailtest.New(t)
	settings := post.Settings()
	at, err := notification.NewMailServer(settings)
	require.NoError(t, err)
	s, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), BaseURL: "https://tms.example", Mail: at})
	require.NoError(t, err)
	hash := auth.HashPassword("correct horse battery")
	admin := auth.NewToken()
	require.NoError(t, s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme"}},
			Accounts: []cloud.Account{{ID: 1, BusinessID: 42, Type: cloud.ClientAdmin, Email: "ada@acme.example", Name: "Ada", PasswordHash: hash, Locale: "de", Enabled: true, CreatedAt: time.Now()}},
			Tokens:   []cloud.Token{{Hash: auth.Hash(admin), AccountID: 1, Name: "test", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}}}}, nil
	}))
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, Listeners{HTTP: ln}) }()
	defer func() { stop(); require.NoError(t, <-done) }()
	base := "http://" + ln.Addr().String()
	send := func(path, token, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Request-Id", "the-same")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer a.Body.Close()
		out, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(out)
	}
	next := func() (path, key, text string) {
		t.Helper()
		got := <-post.Mails
		raw, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(got.Raw)))
		require.NoError(t, err)
		m := mailedLink.FindStringSubmatch(string(raw))
		require.NotNil(t, m, "%s", raw)
		return m[1], m[2], string(raw)
	}

	status, unknown := send("/api/v1/user/password-reset/request", "", `{"email":"eve@x.example"}`)
	require.Equal(t, 200, status)
	status, known := send("/api/v1/user/password-reset/request", "", `{"email":"ada@acme.example"}`)
	require.Equal(t, 200, status)
	require.Equal(t, unknown, known)
	path, key, text := next()
	require.Equal(t, "password-reset", path)
	require.Contains(t, text, "Guten Tag Ada", "in the person's language")
	status, body := send("/api/v1/user/password-reset", "", `{"token":"`+key+`","password":"another long password"}`)
	require.Equal(t, 200, status, body)
	status, _ = send("/api/v1/user/login", "", `{"email":"ada@acme.example","password":"another long password"}`)
	require.Equal(t, 200, status)
	require.Contains(t, (<-post.Mails).Raw, "Auto-Submitted", "that the password was changed")

	require.NoError(t, s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(admin), AccountID: 1, Name: "test", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}}}}, nil
	}))
	status, body = send("/api/v1/invitations", admin, `{"account_type":"customer","name":"Zoe","email":"zoe@acme.example"}`)
	require.Equal(t, 201, status, body)
	var made struct {
		Mailed      bool
		Token, Link string
	}
	require.NoError(t, json.Unmarshal([]byte(body), &made))
	require.Equal(t, []any{true, "", ""}, []any{made.Mailed, made.Token, made.Link})
	path, key, _ = next()
	require.Equal(t, "invitation", path)
	status, body = send("/api/v1/invitations/accept", "", `{"token":"`+key+`","email":"zoe@acme.example","password":"another long password"}`)
	require.Equal(t, 200, status, body)
	require.NotContains(t, body, key)
	// Requests are bounded, for addresses with and without an account alike.
	var limited []string
	for _, email := range []string{"eve@x.example", "ada@acme.example"} {
		n := 0
		for status = 200; status == 200; n++ {
			status, body = send("/api/v1/user/password-reset/request", "", `{"email":`+"\""+email+`"}`)
		}
		require.Equal(t, 429, status, body)
		limited = append(limited, url.QueryEscape(body))
	}
	require.Len(t, limited, 2)
}

// A short message goes through the gateway; one about a test stays here.
func TestShortMessagesGoByTheGateway(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	judge, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	type sms struct{ ID, To, Text string }
	taken := make(chan sms, 10)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || judge.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var in struct{ To, Text string }
		_ = json.Unmarshal(body, &in)
		taken <- sms{r.Header.Get("webhook-id"), in.To, in.Text}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer gateway.Close()
	at, err := url.Parse(gateway.URL)
	require.NoError(t, err)
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	require.NoError(t, err)
	s, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), BaseURL: "https://tms.example", SMSURL: gateway.URL + "/send", SMSSecret: secret,
		WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, WebhookPorts: []uint16{uint16(port)}, WebhookHTTP: true})
	require.NoError(t, err)
	require.Equal(t, []cloud.NotificationChannel{cloud.BySMS}, channelsOf(s.cfg))
	now := time.Now()
	note := cloud.Notification{ID: "one", BusinessID: 42, Channel: cloud.BySMS, Kind: cloud.NotifyParcelWaiting, At: now, Until: now.Add(time.Hour),
		NotificationText: cloud.NotificationText{To: "+14165550123", Language: "en", Business: "Acme", Parcel: &cloud.ParcelNotice{Code: "135790", Locker: "Front St", Doors: []string{"A-1"}, Until: now.Add(time.Hour)}}}
	test := note
	test.ID, test.Sandbox = "test", true
	require.NoError(t, s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme"}}},
			NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{note, test}}}, nil
	}))
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, Listeners{HTTP: ln}) }()
	var got sms
	select {
	case got = <-taken:
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	require.Equal(t, []string{"one", "+14165550123"}, []string{got.ID, got.To})
	require.Contains(t, got.Text, "Code 135790.")
	require.Eventually(t, func() bool {
		list, err := s.Store.ListNotifications(t.Context(), 42, 10)
		require.NoError(t, err)
		return list[1].State == cloud.NotificationSent && list[1].Parcel == nil && list[0].State == cloud.NotificationSandbox
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
	require.Empty(t, taken)
}

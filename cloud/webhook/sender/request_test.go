package sender

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ce "github.com/cloudevents/sdk-go/v2"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/protocol/cloudevent"
	"github.com/postern-io/postern/protocol/signature"
)

const (
	nextSecret = "fedcba9876543210fedcba9876543210"
	uid        = "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e"
	rawBody    = `{"event_id":"OCR-120045","event":"order.created","test":true}`
)

var signedAt = time.Unix(1795216320, 0)

// seed is the key of the v1a vector.
func seed() []byte {
	b := make([]byte, 32)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// sent is a request as a receiver reads it.
func sent(t *testing.T, body string, edit func(*message)) *http.Request {
	t.Helper()
	target, err := fetch.NewGuard(fetch.GuardConfig{}).CheckURL("https://a.example.com/hook?key=1")
	require.NoError(t, err)
	o := event(1)
	toAccount(&o)
	w := &cloud.OutboxWork{Event: o.Event, Delivery: o.Deliveries[0]}
	w.Event.EventID, w.Event.Event, w.Event.Body, w.Event.ReferenceType, w.Event.ReferenceID = "OCR-120045", "order.created", []byte(body), "order", "120045"
	w.Event.OccurredAt = time.Date(2026, 11, 20, 23, 12, 0, 0, time.UTC)
	m := message{target, &cloud.Endpoint{Secret: []byte(secretOfVectors)}, w, "https://api.example.com", uid, 1, signedAt, nil, ""}
	if edit != nil {
		edit(&m)
	}
	r, err := m.build()
	require.NoError(t, err)
	q, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(r.head), bytes.NewReader(r.body))))
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1", q.Proto)
	require.EqualValues(t, len(r.body), q.ContentLength)
	require.Empty(t, q.TransferEncoding)
	q.Body = io.NopCloser(bytes.NewReader(r.body))
	return q
}

const secretOfVectors = "0123456789abcdef0123456789abcdef"

func toProvider(m *message) { m.work.Event.Channel = cloud.ChannelLocker }

func rotating(m *message) {
	m.endpoint.SecretNext, m.endpoint.NextUntil = []byte(nextSecret), signedAt.Add(time.Hour)
}

// The vectors of the interface description, in requests as they go out.
func TestRequestsCarryTheVectors(t *testing.T) {
	t.Parallel()
	const v1a = "v1a,SsjOrY8IUU8OdrDaebutbUKqeFYkJxDvmzdP7c4RXv/Uwcr0hR7yR1PLKN8M0IlbFVxUY9LA6j8CL+x6F67qAg=="
	standard := func(m *message) { m.endpoint.Signature = cloud.SignatureStandard }
	for name, c := range map[string]struct {
		edits []func(*message)
		want  map[string]string
	}{
		"account": {nil, map[string]string{
			"Signature":              "07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d",
			"X-Webhook-Signature-V2": "14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd",
			"X-Webhook-Timestamp":    "1795216320", "X-Webhook-Signature": "", "webhook-signature": "", "webhook-id": "", "Signature-Next": "",
			"X-Webhook-Delivery-Id": "", "X-Webhook-Content-Digest": "", "ce-id": "", "X-Webhook-Reference-Sequence": ""}},
		"numbered": {[]func(*message){func(m *message) { m.work.Event.Sequence = 12 }}, map[string]string{"X-Webhook-Reference-Sequence": "12"}},
		"account in overlap": {[]func(*message){rotating, standard}, map[string]string{
			"X-Webhook-Signature-V2": "5daf9c637ba9d4abbfee939dd7d48cd95e3c37e80614a13ac2b58eadb104a7f9,14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd",
			"webhook-signature":      "v1,yIo1Ftd86SAURYXiR6wGSEKvkJbNn9/Ya2GYScDVZ0E= v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0=",
			"Signature":              "07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d"}},
		"provider": {[]func(*message){toProvider}, map[string]string{
			"X-Webhook-Signature":      "SRnSBr6c3NpiCyS3Dxkb2LUvsmwTKNQ6Z4zr9WCUi18=",
			"X-Webhook-Content-Digest": "a05b3296580ab6e8d09482964bc3400aae849f8b27fb5250e3e4d11ce47a868f",
			"X-Webhook-Delivery-Id":    uid, "Signature": "", "X-Webhook-Signature-V2": "", "X-Webhook-Signature-Next": ""}},
		"provider in overlap": {[]func(*message){toProvider, rotating}, map[string]string{
			"X-Webhook-Signature":      "SRnSBr6c3NpiCyS3Dxkb2LUvsmwTKNQ6Z4zr9WCUi18=",
			"X-Webhook-Signature-Next": "nYK8MNYSo29LSH9pz6LGjZuW1kEylmxaRTvt7eG3hEQ="}},
		"standard": {[]func(*message){standard}, map[string]string{"webhook-id": "OCR-120045", "webhook-timestamp": "1795216320",
			"webhook-signature": "v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0=",
			"Signature":         "07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d"}},
		"whsec": {[]func(*message){standard, func(m *message) { m.endpoint.Secret = []byte("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX") }}, map[string]string{
			"webhook-signature": "v1,RZh+oQoFTYtndg51DkgQUsepxugTx78mGHEESPU3Bqk=",
			"Signature":         "186655ba28cccbaa83f3784af02aeda6a9d74a3abd54b5370a252dba362df74d"}},
		"v1a": {[]func(*message){func(m *message) { m.endpoint.Signature, m.endpoint.SigningKey = cloud.SignatureAsymmetric, seed() }}, map[string]string{
			"webhook-signature": "v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0= " + v1a}},
	} {
		for _, format := range []string{"", cloud.FormatNative, cloud.FormatBinary} {
			q := sent(t, rawBody, func(m *message) {
				m.endpoint.Format = format
				for _, e := range c.edits {
					e(m)
				}
			})
			for header, want := range c.want {
				if format != cloud.FormatBinary || header != "ce-id" {
					require.Equal(t, want, q.Header.Get(header), "%s: %s", name, header)
				}
			}
		}
	}
}

// bodies are what can be sent: characters beyond ASCII, no data, much of it.
func bodies() []string {
	envelope := `{"event_id":"OCR-120045","event":"order.created","api_version":"1","occurred_at":"2026-11-20T18:12:00-05:00","data":%s}`
	return []string{rawBody, fmt.Sprintf(envelope, `{}`), fmt.Sprintf(envelope, `{"name":"包裹 ü <b>&","n":12345678901234567890}`),
		fmt.Sprintf(envelope, `{"t":"`+strings.Repeat("x", 64<<10)+`"}`)}
}

// Whatever format and channel a receiver has, it verifies what came, with each
// secret that is good, by our own verifier and by that of the standard's authors.
func TestEveryFormatVerifies(t *testing.T) {
	t.Parallel()
	key, err := signature.ParsePrivateKey("whsk_" + base64.StdEncoding.EncodeToString(seed()))
	require.NoError(t, err)
	public := signature.PublicKeyText(key)
	for _, format := range cloud.HookFormats() {
		for _, scheme := range cloud.HookSignatures() {
			for _, channel := range cloud.Channels() {
				for _, body := range bodies() {
					q := sent(t, body, func(m *message) {
						rotating(m)
						m.now, m.work.Event.Channel = time.Now(), channel
						m.endpoint.NextUntil = m.now.Add(time.Hour)
						m.endpoint.Format, m.endpoint.Signature, m.endpoint.SigningKey = format, scheme, seed()
					})
					what := fmt.Sprint(format, scheme, channel)
					raw, err := io.ReadAll(q.Body)
					require.NoError(t, err)
					secrets := []string{secretOfVectors, nextSecret}
					if scheme == cloud.SignatureAsymmetric {
						secrets = append(secrets, public)
					}
					for _, s := range secrets {
						_, err := signature.Verify(q.Header.Get, raw, time.Now(), s)
						require.NoError(t, err, what)
						_, err = signature.Verify(q.Header.Get, append(raw[:len(raw):len(raw)], ' '), time.Now(), s)
						require.ErrorIs(t, err, signature.ErrMismatch, what)
					}
					if scheme == cloud.SignatureNative {
						require.Empty(t, q.Header.Get("webhook-signature"), what)
						continue
					}
					// The channel's own signatures stay.
					bare := q.Header.Clone()
					bare.Del("webhook-signature")
					_, err = signature.Verify(bare.Get, raw, time.Now(), nextSecret)
					require.NoError(t, err, what)
					for _, s := range secrets[:2] {
						wh, err := standardwebhooks.NewWebhook(signature.StandardForm(s))
						require.NoError(t, err)
						require.NoError(t, wh.Verify(raw, q.Header), what)
						require.Error(t, wh.Verify(append(raw[:len(raw):len(raw)], ' '), q.Header), what)
					}
				}
			}
		}
	}
}

// The CloudEvents library of the specification's authors reads both modes.
func TestCloudEventsLibraryReadsUs(t *testing.T) {
	t.Parallel()
	body := bodies()[2]
	for _, format := range []string{cloud.FormatBinary, cloud.FormatStructured} {
		for _, channel := range cloud.Channels() {
			q := sent(t, body, func(m *message) {
				m.endpoint.Format, m.work.Event.Channel, m.work.Event.ReferenceID = format, channel, "1200-45"
			})
			e, err := ce.NewEventFromHTTPRequest(q)
			require.NoError(t, err)
			require.NoError(t, e.Validate())
			require.Equal(t, []string{"1.0", "OCR-120045", "order.created", "https://api.example.com/businesses/42", "order/1200-45"},
				[]string{e.SpecVersion(), e.ID(), e.Type(), e.Source(), e.Subject()})
			require.Equal(t, "2026-11-20T18:12:00-05:00", e.Time().Format(time.RFC3339))
			require.Equal(t, body, string(e.Data()), "the bytes of the envelope")
			if channel == cloud.ChannelLocker {
				require.Equal(t, "true", fmt.Sprint(e.Extensions()["livemode"]))
			} else {
				require.Empty(t, e.Extensions())
			}
		}
	}
}

// Header values beyond ASCII, which that library neither writes nor reads, are
// encoded as the binding says.
func TestAttributesInHeaders(t *testing.T) {
	t.Parallel()
	q := sent(t, bodies()[1], func(m *message) {
		m.endpoint.Format, m.work.Event.ReferenceID = cloud.FormatBinary, "Zürich Hbf 5%\r\nX-Evil: 1"
	})
	require.Equal(t, "order/Z%C3%BCrich%20Hbf%205%25%0D%0AX-Evil:%201", q.Header.Get("ce-subject"))
	require.Empty(t, q.Header.Get("X-Evil"))
	got, err := cloudevent.DecodeHeader(q.Header.Get("ce-subject"))
	require.NoError(t, err)
	require.Equal(t, "order/Zürich Hbf 5%\r\nX-Evil: 1", got)
	require.Equal(t, "application/json; charset=utf-8", q.Header.Get("Content-Type"))
	require.Empty(t, q.Header.Get("ce-datacontenttype"))
	require.Equal(t, "2026-11-20T18:12:00-05:00", q.Header.Get("ce-time"))

	// A body that does not say when it happened, or something else.
	for _, body := range []string{rawBody, `{"occurred_at":"yesterday"}`, `{"data":{"occurred_at":"2001-01-01T00:00:00Z"}}`} {
		q := sent(t, body, func(m *message) { m.endpoint.Format = cloud.FormatBinary })
		require.Equal(t, "2026-11-20T23:12:00Z", q.Header.Get("ce-time"), body)
	}
}

func TestStructuredMode(t *testing.T) {
	t.Parallel()
	body := bodies()[1]
	q := sent(t, body, func(m *message) { m.endpoint.Format = cloud.FormatStructured })
	require.Equal(t, "application/cloudevents+json", q.Header.Get("Content-Type"))
	require.Empty(t, q.Header.Get("ce-id"))
	for name, want := range map[string]string{"X-Webhook-Event": "order.created", "X-Webhook-Event-Id": "OCR-120045", "X-Webhook-Timestamp": "1795216320"} {
		require.Equal(t, want, q.Header.Get(name))
	}
	raw, err := io.ReadAll(q.Body)
	require.NoError(t, err)
	require.Equal(t, `{"specversion":"1.0","id":"OCR-120045","source":"https://api.example.com/businesses/42","type":"order.created",`+
		`"time":"2026-11-20T18:12:00-05:00","subject":"order/120045","datacontenttype":"application/json","data":`+body+`}`, string(raw))
	require.True(t, json.Valid(raw))
}

func TestWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	target, err := fetch.NewGuard(fetch.GuardConfig{}).CheckURL("https://a.example.com/hook")
	require.NoError(t, err)
	for what, edit := range map[string]func(*message){
		"no secret":         func(m *message) { m.endpoint.Secret = nil },
		"too large":         func(m *message) { m.work.Event.Body = make([]byte, maxBody+1) },
		"event id":          func(m *message) { m.work.Event.EventID = "a.b" },
		"webhook id":        func(m *message) { m.work.Delivery.WebhookID = "a\nb" },
		"event":             func(m *message) { m.work.Event.Event = "a\r\nX-Evil: 1" },
		"no key":            func(m *message) { m.endpoint.Signature = cloud.SignatureAsymmetric },
		"unreadable secret": func(m *message) { m.endpoint.Signature, m.endpoint.Secret = cloud.SignatureStandard, []byte("whsec_!") },
	} {
		o := event(1)
		m := message{target, &cloud.Endpoint{Secret: []byte(secretOfVectors)}, &cloud.OutboxWork{Event: o.Event, Delivery: o.Deliveries[0]}, "", uid, 1, signedAt, nil, ""}
		_, err := m.build()
		require.NoError(t, err, what)
		edit(&m)
		_, err = m.build()
		require.Error(t, err, what)
		require.NotContains(t, err.Error(), secretOfVectors)
	}
}

// A receiver changes its format between two attempts: the body within and all
// ids stay, the format is that of the attempt. Large requests are counted.
func TestFormatIsThatOfTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits = []time.Duration{time.Second, time.Second}
		w.a.Reply = func(n int, w http.ResponseWriter) { w.WriteHeader(500) }
		w.run()
		synctest.Wait()
		w.emit(nil)
		time.Sleep(100 * time.Millisecond)
		w.endpoint(func(e *cloud.Endpoint) { e.Format, e.Signature = cloud.FormatStructured, cloud.SignatureStandard })
		for range 100 { // waits have a jitter, and due retries are looked for each second
			if len(w.a.Seen()) == 3 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		posts := w.a.Seen()
		require.Len(t, posts, 3)
		require.Empty(t, posts[0].Head.Get("webhook-id"))
		var outer struct {
			ID   string
			Data json.RawMessage
		}
		require.NoError(t, json.Unmarshal(posts[2].Body, &outer))
		require.Equal(t, string(posts[0].Body), string(outer.Data))
		require.Equal(t, posts[0].Head.Get("X-Webhook-Event-Id"), outer.ID)
		require.Equal(t, outer.ID, posts[2].Head.Get("webhook-id"))
		require.Equal(t, posts[0].Head.Get("X-Webhook-Id"), posts[2].Head.Get("X-Webhook-Id"))
		for _, p := range posts {
			_, err := signature.Verify(p.Head.Get, p.Body, p.At, secret)
			require.NoError(t, err)
		}
		require.Zero(t, w.count("webhook_oversize_total", "channel", cloud.ChannelLocker))
		w.emit(func(o *cloud.OutboxWrite) { o.Event.Body = []byte(`"` + strings.Repeat("x", largeBody) + `"`) })
		time.Sleep(3 * time.Second)
		require.Positive(t, w.count("webhook_oversize_total", "channel", cloud.ChannelLocker))
		w.stop()
		w.close()
	})
}

package sender

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webhook/webhooktest"
	"github.com/postern-io/postern/internal/verdict"
	"github.com/postern-io/postern/protocol/signature"
)

// The JavaScript libraries of both standards verify and read what we send, in
// every format, with each secret of a rotation; not with another's, and not
// after a change.
func TestJavaScriptLibrariesReadUs(t *testing.T) {
	t.Parallel()
	type request struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Secrets []string          `json:"secrets"`
		Now     int64             `json:"now"`
	}
	type reading struct {
		Verified []bool
		Event    *struct{ ID, Source, Type, Subject, Time, SpecVersion, Livemode, Data string }
		Fault    string
	}
	var requests []request
	var formats, channels, sentBodies []string
	for _, format := range cloud.HookFormats() {
		for _, scheme := range []string{cloud.SignatureStandard, cloud.SignatureAsymmetric} {
			for _, channel := range cloud.Channels() {
				for _, body := range bodies() {
					q := sent(t, body, func(m *message) {
						rotating(m)
						m.work.Event.Channel, m.endpoint.Format, m.endpoint.Signature, m.endpoint.SigningKey = channel, format, scheme, seed()
					})
					raw, err := io.ReadAll(q.Body)
					require.NoError(t, err)
					head := map[string]string{}
					for name := range q.Header {
						head[strings.ToLower(name)] = q.Header.Get(name)
					}
					requests = append(requests, request{head, base64.StdEncoding.EncodeToString(raw),
						[]string{signature.StandardForm(secretOfVectors), signature.StandardForm(nextSecret), signature.StandardForm("another secret of nobody")}, signedAt.Unix()})
					formats, channels, sentBodies = append(formats, format), append(channels, channel), append(sentBodies, body)
				}
			}
		}
	}
	changed := requests[0]
	changed.Body = base64.StdEncoding.EncodeToString([]byte(rawBody + " "))
	late := requests[0]
	late.Now += 301
	input, err := json.Marshal(append(requests, changed, late))
	require.NoError(t, err)
	var found []reading
	require.NoError(t, json.Unmarshal(webhooktest.Node(t, "verify.mjs", input), &found))
	require.Len(t, found, len(requests)+2)
	verified, read, events := 0, 0, 0
	for i, v := range found[:len(requests)] {
		if len(v.Verified) == 3 && v.Verified[0] && v.Verified[1] && !v.Verified[2] {
			verified++
		}
		if formats[i] == cloud.FormatNative {
			continue
		}
		if events++; v.Event != nil && v.Fault == "" {
			read++
		}
	}
	verdict.Record(t, "standardwebhooks", "signatures of webhooks in every format, channel and scheme, with both secrets of a rotation and another", verified, len(requests))
	verdict.Record(t, "cloudevents", "webhooks as events, structured and binary", read, events)
	for i, v := range found[:len(requests)] {
		what := fmt.Sprint(i, formats[i], channels[i])
		require.Equal(t, []bool{true, true, false}, v.Verified, what)
		if formats[i] == cloud.FormatNative {
			require.Nil(t, v.Event, what)
			continue
		}
		require.Empty(t, v.Fault, what)
		require.NotNil(t, v.Event, what)
		live := ""
		if channels[i] == cloud.ChannelLocker {
			live = "true"
		}
		require.Equal(t, []string{"OCR-120045", "https://api.example.com/businesses/42", "order.created", "order/120045", "1.0", live},
			[]string{v.Event.ID, v.Event.Source, v.Event.Type, v.Event.Subject, v.Event.SpecVersion, v.Event.Livemode}, what)
		require.JSONEq(t, sentBodies[i], v.Event.Data, what)
	}
	for _, v := range found[len(requests):] {
		require.Equal(t, []bool{false, false, false}, v.Verified)
	}
}

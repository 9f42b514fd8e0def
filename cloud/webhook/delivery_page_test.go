package webhook

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestWhatIsHiddenFromEyes(t *testing.T) {
	t.Parallel()
	body := `{"a":[{"pickup_code":"550618","delivery_code":"8306142","note":"your code: 550618"}],"n":12345678901234567890}`
	s := DeliveryView{Contents: true, Event: cloud.OutboxEvent{Body: []byte(body)}, Receiver: Receiver{secrets: []string{"a-secret-of-16-chars", "abc"}},
		Attempts: []cloud.OutboxAttempt{{URL: "https://x.example/a-secret-of-16-chars", Error: "for 550618", RequestHead: "X-A: 8306142", AnswerHead: "X-Echo: a-secret-of-16-chars", AnswerBody: `abc {"pickup_code":"77`}}}
	s.hide()
	require.Nil(t, s.Event.Body)
	require.Contains(t, s.Body, `"note": "your code: ******"`)
	require.Contains(t, s.Body, "12345678901234567890")
	for _, text := range []string{s.Body, s.Attempts[0].URL, s.Attempts[0].Error, s.Attempts[0].RequestHead, s.Attempts[0].AnswerHead, s.Attempts[0].AnswerBody} {
		for _, secret := range []string{"550618", "8306142", "a-secret", `"77`} {
			require.NotContains(t, text, secret)
		}
	}
	require.Contains(t, s.Attempts[0].AnswerBody, "abc", "what is short is found everywhere")

	s = DeliveryView{Event: cloud.OutboxEvent{Body: []byte(body)}, Receiver: Receiver{Endpoint: cloud.Endpoint{URL: "https://x.example/key"}}, Attempts: []cloud.OutboxAttempt{{URL: "https://x.example:8443/key?a=***", Error: "for 550618", RequestHead: "a", AnswerHead: "b", AnswerBody: "c"}}}
	s.hide()
	require.Empty(t, s.Body)
	require.Equal(t, "https://x.example", s.Receiver.URL)
	require.Equal(t, cloud.OutboxAttempt{URL: "https://x.example:8443", Error: "for ******"}, s.Attempts[0])
	for in, want := range map[string]string{"https://a.example/b": "https://a.example/b", "https://a.example/?k=v&x&y=": "https://a.example/?k=***&x=***&y=***", "": "", "?": "?=***"} {
		require.Equal(t, want, maskedURL(in))
	}
}

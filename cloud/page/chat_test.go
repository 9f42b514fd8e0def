package page_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
)

// An address that would say more in the pages' policy than where they listen is
// refused.
func TestPagesListenAtAnAddressOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "wss://tms.example/mqtt", "ws://127.0.0.1:8083/mqtt", "wss://[::1]:8083/mqtt"} {
		_, err := page.New(page.Config{LiveURL: address})
		require.NoError(t, err, address)
	}
	for _, address := range []string{"https://tms.example/mqtt", "tms.example", "wss://", "wss://user@tms.example/mqtt", "wss://tms.example/mqtt; script-src *", "wss://tms.example/ *", "wss://a,b/'unsafe-inline'"} {
		_, err := page.New(page.Config{LiveURL: address})
		require.ErrorContains(t, err, "wss://tms.example/mqtt", address)
	}
}

// A message that is not taken is shown again, with why and in the form it came in.
func TestAMessageThatIsRefusedStaysInItsForm(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *page.Config) { cfg.Chats = true })
	now := time.Now().UTC().Truncate(time.Second)
	r.w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{{ID: 900, BusinessID: 42, Number: "TALK-7Q2K-900", Type: cloud.DeliveryOrder, Status: cloud.OrderNew, CreatedAt: now, UpdatedAt: now}}}})
	r.signedIn()
	const path = "/console/chats/900"
	g := r.do("GET", path, nil)
	require.Equal(t, 200, g.status, g.body)
	send := func(text string) got {
		return r.do("POST", path, url.Values{"form": {g.hidden(t, "form")}, "client_message_id": {g.hidden(t, "client_message_id")}, "text": {text}})
	}
	long := strings.Repeat("a", 2001)
	refused := send(long)
	require.Equal(t, 422, refused.status, refused.body)
	require.Contains(t, refused.body, ">"+long+"</textarea>")
	require.Contains(t, html.UnescapeString(refused.body), locale.Word("en", "chat.kept"))
	require.Equal(t, g.hidden(t, "client_message_id"), refused.hidden(t, "client_message_id"))
	taken := send("Ring twice.")
	require.Equal(t, 303, taken.status, taken.body)
	require.Equal(t, path+"#chat-end", taken.header("Location"))
	newest := r.do("GET", path, nil).body
	require.Contains(t, newest, "Ring twice.")

	// A page of earlier messages does not change by itself, leads to the newest ones, and stays that
	// page in another language.
	earlier := html.UnescapeString(r.do("GET", path+"?before=1", nil).body)
	for _, mark := range []string{" data-static", `href="` + path + `#chat"`, path + "?before=1&lang=fr"} {
		require.Contains(t, earlier, mark)
		require.NotContains(t, newest, mark)
	}
	require.NotContains(t, earlier, "Ring twice.")
}

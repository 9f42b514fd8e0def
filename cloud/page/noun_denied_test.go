package page_test

import (
	"bytes"
	"mime/multipart"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// What was typed is not lost when a right was taken while the form was open: the form
// comes back with it, and says what is missing. Nothing is written, and a form of another
// site, or one that is asked for, is refused as ever.
func TestWhatWasTypedStaysWithoutTheRight(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, err := r.w.FindToken(t.Context(), hashOf(r.w.Tokens[cloud.ClientEmployee]))
	require.NoError(t, err)
	grant := func(scopes ...string) {
		s.Account.Permissions = scopes
		r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
	}
	grant("orders:read", "orders:write")
	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	const path = "/console/orders/new"
	g := r.do("GET", path, nil)
	require.Equal(t, 200, g.status)
	form := url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}, "step": {"next"}, "key": {"typed-once"}, "in:order_ref": {"MY-REFERENCE-7"}, "in:recipient.name": {"Ann <b>Bell"}}
	for _, left := range [][]string{{"orders:read"}, {"lockers:read"}, nil} {
		grant(left...)
		g = r.do("POST", path, form)
		require.Equal(t, 403, g.status)
		for _, want := range []string{`value="MY-REFERENCE-7"`, `value="Ann &lt;b&gt;Bell"`, `role="alert"`, "(Orders, tracking and proofs: see", "An administrator of your business"} {
			require.Contains(t, g.body, want, left)
		}
		require.Equal(t, 403, r.do("GET", path, nil).status)
		foreign := url.Values{"form": {"x"}, "step": {"next"}, "in:order_ref": {"MY-REFERENCE-7"}}
		g = r.do("POST", path, foreign)
		require.Equal(t, 403, g.status)
	}
	grant("orders:read", "orders:write")
	require.NotContains(t, r.do("GET", "/console/orders", nil).body, "MY-REFERENCE-7", "nothing was written")
	for _, l := range locale.All() {
		require.NotEqual(t, "work.denied", locale.Word(l.Code, "work.denied"))
	}
}

// A file that is no text is named as what it is not, in words for people; what is wrong
// with a form is said once and without the words of the interface.
func TestImportOfAPictureAndMessagesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	g := r.do("GET", "/console/orders/import", nil)
	token := formField.FindStringSubmatch(g.body)[1]
	for name, raw := range map[string]string{"a.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a.xlsx": "PK\x03\x04\x14\x00\x06\x00", "a.pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3"} {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		require.NoError(t, w.WriteField("form", token))
		part, err := w.CreateFormFile("file", name)
		require.NoError(t, err)
		_, _ = part.Write([]byte(raw))
		require.NoError(t, w.Close())
		g := r.raw("POST", "/console/orders/import", w.FormDataContentType(), b.String())
		require.Equal(t, 422, g.status, name)
		require.Contains(t, g.body, "This file is no CSV file", name)
	}
	g = r.do("GET", "/console/orders/new", nil)
	form := url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}, "step": {"next"}, "key": {"said-once"}, "in:type": {"D"}, "in:recipient.name": {"Ann"}}
	g = r.do("POST", "/console/orders/new", form)
	require.Equal(t, 422, g.status)
	require.NotContains(t, g.body, "errors”")
	for _, m := range regexp.MustCompile(`([A-Z][a-z ]+): ([A-Z][a-z ]+)`).FindAllStringSubmatch(g.body, -1) {
		require.False(t, strings.HasPrefix(m[2], m[1]+" "), "said twice: %s", m[0])
	}
}

// The letters that press verbs of a list's rows are those of verbs that the visitor may use.
func TestLettersOfAListPressWhatTheVisitorMayDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, err := r.w.FindToken(t.Context(), hashOf(r.w.Tokens[cloud.ClientEmployee]))
	require.NoError(t, err)
	now := time.Now().UTC()
	r.w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{{ID: 900, BusinessID: 42, Number: "ROW-900", Type: cloud.DeliveryOrder, Status: cloud.OrderNew, CreatedAt: now, UpdatedAt: now}}}})
	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	for keys, scopes := range map[string][]string{"": {"orders:read"}, ` data-keys="s=/hold"`: {"orders:read", "orders:write"}} {
		s.Account.Permissions = scopes
		r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
		g := r.do("GET", "/console/orders", nil)
		require.Contains(t, g.body, "ROW-900")
		require.Equal(t, keys, rowKeys.FindString(g.body), scopes)
	}
}

var rowKeys = regexp.MustCompile(` data-keys="[^"]*"`)

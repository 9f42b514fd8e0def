package oauth

import (
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What passes as a redirect address leads where it says, whatever reads it, and
// is the same as another only in all but a loopback's port.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{"https://a.example/cb", "http://127.0.0.1:8/cb", "http://[::1]/cb?x", "http://localhost:1@evil.example/", "http://127.0.0.1.evil.example/", "https://a.example\\@b.example/", "http://localhost:80:90/", "com.example.desk:/cb", "cursor://x/cb"} {
		f.Add(s, "http://127.0.0.1:9/cb")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if goodRedirect(a) {
			u, err := url.Parse(a)
			require.NoError(t, err)
			require.Nil(t, u.User)
			require.Empty(t, u.Fragment)
			local := u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "localhost"
			require.True(t, u.Scheme == "https" || u.Scheme == "http" && local || isPrivate(a), a)
			require.NotContains(t, []string{"javascript", "data", "file", "vbscript", "blob", "about"}, u.Scheme)
			to := answerTo(a, url.Values{"code": {"c d"}})
			v, err := url.Parse(to)
			require.NoError(t, err)
			require.Equal(t, u.Scheme+u.Host+u.Path, v.Scheme+v.Host+v.Path)
			require.True(t, strings.HasSuffix(v.RawQuery, "code=c+d"))
			require.NotContains(t, to, "\n")
		}
		if sameRedirect(a, b) && goodRedirect(a) && goodRedirect(b) {
			u, v := must(url.Parse(a)), must(url.Parse(b))
			require.Equal(t, u.Hostname(), v.Hostname())
			require.Equal(t, u.RequestURI(), v.RequestURI())
			require.Equal(t, u.Scheme, v.Scheme)
			if a != b {
				require.Equal(t, "http", u.Scheme)
			}
		}
	})
}

// A description that passes is of a client that could have registered so.
func FuzzDocument(f *testing.F) {
	f.Add("application/json", []byte(`{"client_id":"https://a.example/c","client_name":"\u202ex","redirect_uris":["https://a.example/cb"]}`))
	f.Add("x/+json", []byte(`{"client_id":null}`))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		const id = "https://a.example/c"
		c, err := readDocument(id, Document{200, kind, body})
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			return
		}
		require.Equal(t, id, c.ID)
		require.NotEmpty(t, c.RedirectURIs)
		for _, u := range c.RedirectURIs {
			require.True(t, goodRedirect(u))
		}
		require.LessOrEqual(t, len([]rune(c.Name)), maxName)
		for _, r := range c.Name {
			require.True(t, unicode.IsPrint(r))
		}
	})
}

// Whatever comes as a form or request is an answer, never a panic, and no
// refusal goes to an address that is not the client's.
func FuzzForms(f *testing.F) {
	f.Add("client_id=c&redirect_uri=https%3A%2F%2Fdesk.example%2Fcb&state=x", "grant_type=refresh_token&refresh_token=x&client_id=c&resource=x")
	f.Add("client_id=https://a/b&lang=de", "a=%zz")
	r := newRig(f)
	id := r.client(callback)
	f.Fuzz(func(t *testing.T, query, body string) {
		r.unlimited().t = t
		for _, q := range []string{query, query + "&client_id=" + id, "client_id=" + id + "&redirect_uri=" + url.QueryEscape(callback) + "&" + query} {
			_, err := r.s.Check(t.Context(), base, q, "")
			if refusal, ok := err.(*Refusal); ok && refusal.Redirect != "" {
				require.True(t, strings.HasPrefix(refusal.Redirect, callback+"?"), refusal.Redirect)
			}
		}
		for _, path := range []string{TokenPath, RevokePath} {
			a := r.do("POST", path, "application/x-www-form-urlencoded", body)
			require.Contains(t, []int{200, 400, 401}, a.status)
			if a.status != 200 {
				require.NotEmpty(t, a.error())
			}
		}
	})
}

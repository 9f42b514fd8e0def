package attack

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// person is a user at a browser.
type person struct {
	t    *testing.T
	base string
	http *http.Client
}

// browser is one without a login. It follows no redirects.
func (c *target) browser() *person {
	jar, err := cookiejar.New(nil)
	require.NoError(c.t, err)
	return &person{c.t, c.base, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (c *target) signIn(email, password string) *person {
	p := c.browser()
	form := hidden(p.get("/console/login"))
	form.Set("email", email)
	form.Set("password", password)
	status, page := p.post("/console/login", form)
	require.Equal(c.t, 303, status, "%s", page)
	return p
}

func (p *person) get(path string) string {
	resp, err := p.http.Get(p.base + path)
	require.NoError(p.t, err)
	return read(p.t, resp)
}

func (p *person) post(path string, form url.Values) (int, string) {
	resp := p.send(path, form)
	return resp.StatusCode, read(p.t, resp)
}

// redirected is where a form leads.
func (p *person) redirected(path string, form url.Values) *url.URL {
	resp := p.send(path, form)
	page := read(p.t, resp)
	to, err := resp.Location()
	require.NoError(p.t, err, page)
	return to
}

func (p *person) send(path string, form url.Values) *http.Response {
	req, err := http.NewRequestWithContext(p.t.Context(), "POST", p.base+path, strings.NewReader(form.Encode()))
	require.NoError(p.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", p.base)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := p.http.Do(req)
	require.NoError(p.t, err)
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(raw)
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// hidden are the hidden members of a page's forms.
func hidden(page string) url.Values {
	out := url.Values{}
	for _, m := range hiddenInput.FindAllStringSubmatch(page, -1) {
		out.Set(m[1], html.UnescapeString(m[2]))
	}
	return out
}

// challenge is that of a PKCE verifier.
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// parse reads a JSON object.
func parse(t *testing.T, body string) (a answer) {
	require.NoError(t, json.Unmarshal([]byte(body), &a.json), body)
	return a
}

package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

const (
	maxQuery = 8 << 10 // bytes of an authorization request
	maxState = 2 << 10
)

// Request is an authorization request that was checked.
type Request struct {
	Client      cloud.OAuthClient
	RedirectURI string   // where the answer goes
	Scopes      []string // that were asked for; nil: none in particular
	Resource    string   // one of ours
	Query       string   // of the request, to ask the same again

	base, state, challenge string
	given                  string // redirect address as it stood in the request
}

// Host is that of the address that the answer goes to.
func (r *Request) Host() string { return hostOf(r.RedirectURI) }

// Local reports whether the answer goes to a program on the user's own machine.
func (r *Request) Local() bool { return r.loopback() || isPrivate(r.RedirectURI) }

// loopback reports whether the answer goes to an address of the user's own
// machine.
func (r *Request) loopback() bool { _, ok := withoutPort(r.RedirectURI); return ok }

// Site is the host whose document describes the client; "" when it registered
// itself.
func (r *Request) Site() string {
	if !byDocument(r.Client.ID) {
		return ""
	}
	return hostOf(r.Client.ID)
}

// Refusal is the error of an authorization request. Redirect is where the
// client receives it; it is empty until client and redirect address are proven,
// and then only the user sees it (RFC 6749 4.1.2.1). Anybody can register an
// address, so that no browser is sent to one unasked but to a loopback address of
// the user's own machine, which is when Local is set (RFC 9700 4.11.2).
type Refusal struct {
	Err      *Error
	Redirect string
	Host     string // of Redirect
	Local    bool
}

func (r *Refusal) Error() string { return r.Err.Error() }

// form is a set of parameters. One without a value is not there (RFC 6749 3.1).
type form map[string][]string

func readForm(raw string) (form, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fail(InvalidRequest, "The parameters are not encoded as a form.")
	}
	f := form{}
	for name, list := range values {
		if list = slices.DeleteFunc(list, func(v string) bool { return v == "" }); len(list) > 0 {
			f[name] = list
		}
	}
	return f, nil
}

func (f form) get(name string) string {
	if len(f[name]) == 0 {
		return ""
	}
	return f[name][0]
}

// twice reports whether one of some parameters is there more than once.
func (f form) twice(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return len(f[n]) > 1 })
}

// Check reads an authorization request that came to base, from a browser at ip.
// An error of the request is a *Refusal.
func (s *Service) Check(ctx context.Context, base, query, ip string) (*Request, error) {
	told := func(e *Error) error { return &Refusal{Err: e} }
	if len(query) > maxQuery {
		return nil, told(fail(InvalidRequest, "The request is too long."))
	}
	f, err := readForm(query)
	var e *Error
	if errors.As(err, &e) {
		return nil, told(e)
	}
	id := f.get("client_id")
	if id == "" || f.twice("client_id", "redirect_uri") {
		return nil, told(fail(InvalidRequest, "client_id and redirect_uri must be there once."))
	}
	r := &Request{Query: url.Values(f).Encode(), base: base, given: f.get("redirect_uri")}
	if r.Client, err = s.client(ctx, id, ip); errors.As(err, &e) {
		return nil, told(e)
	} else if err != nil {
		return nil, err
	}
	if e := r.redirect(); e != nil {
		return nil, told(e)
	}
	if !f.twice("state") && len(f.get("state")) <= maxState {
		r.state = f.get("state")
	}
	if e := r.rest(f); e != nil {
		return nil, &Refusal{e, r.answer(url.Values{"error": {e.Code}, "error_description": {e.Text}}), r.Host(), r.loopback()}
	}
	return r, nil
}

// redirect settles where the answer goes.
func (r *Request) redirect() *Error {
	if r.given == "" {
		if len(r.Client.RedirectURIs) != 1 {
			return fail(InvalidRequest, "redirect_uri must be there: the client has several.")
		}
		r.RedirectURI = r.Client.RedirectURIs[0]
		return nil
	}
	if !goodRedirect(r.given) || !slices.ContainsFunc(r.Client.RedirectURIs, func(u string) bool { return sameRedirect(u, r.given) }) {
		return fail(InvalidRedirect, "The redirect address is none of the client's.")
	}
	r.RedirectURI = r.given
	return nil
}

// rest reads the parameters whose faults the client may see.
func (r *Request) rest(f form) *Error {
	switch {
	case f.twice("response_type", "scope", "state", "code_challenge", "code_challenge_method", "response_mode"):
		return fail(InvalidRequest, "A parameter is there more than once.")
	case len(f.get("state")) > maxState:
		return fail(InvalidRequest, "state is too long.")
	case f.get("response_type") == "":
		return fail(InvalidRequest, "response_type must be there: code.")
	case f.get("response_type") != "code":
		return fail(UnsupportedResponse, "response_type must be code.")
	case f.get("response_mode") != "" && f.get("response_mode") != "query":
		return fail(InvalidRequest, "response_mode must be query.")
	case f.get("code_challenge_method") != "S256" || !goodChallenge(f.get("code_challenge")):
		return fail(InvalidRequest, "A code_challenge with code_challenge_method S256 must be there.")
	}
	r.challenge = f.get("code_challenge")
	switch len(f["resource"]) {
	case 0: // a client from before RFC 8707 asks for all that agents reach
		r.Resource = r.base
	case 1:
		r.Resource = resourceOf(r.base, f.get("resource"))
	}
	if r.Resource == "" {
		return fail(InvalidTarget, "resource must be there once at most, as the metadata of the resource names it.")
	}
	var e *Error
	r.Scopes, e = readScopes(f.get("scope"))
	return e
}

// readScopes reads a list of scopes. A wish for refresh tokens is one for
// nothing: they are always given.
func readScopes(s string) (out []string, _ *Error) {
	for _, scope := range strings.Fields(s) {
		switch {
		case scope == "offline_access" || slices.Contains(out, scope):
		case scope == "*" || cloud.KnownScope(scope):
			out = append(out, scope)
		default:
			return nil, fail(InvalidScope, "A scope is not known.")
		}
	}
	return out, nil
}

// goodChallenge reports whether s may be a SHA-256 in base64url (RFC 7636 4.2).
func goodChallenge(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == 32
}

// answer is the redirect address with an answer.
func (r *Request) answer(params url.Values) string {
	if r.state != "" {
		params.Set("state", r.state)
	}
	params.Set("iss", r.base) // RFC 9207
	return answerTo(r.RedirectURI, params)
}

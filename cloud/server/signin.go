package server

import (
	"strings"

	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/page"
)

// demanding are the codes of businesses whose people sign in by their provider alone.
func (s *Server) demanding() (out []string) {
	for _, p := range s.cfg.SignIn {
		if p.Required {
			out = append(out, p.Business)
		}
	}
	return out
}

// signIn asks the sign-in providers of businesses through the guard of webhooks; nil:
// there are none.
func (s *Server) signIn() *oidc.Service {
	if len(s.cfg.SignIn) == 0 {
		return nil
	}
	return oidc.New(oidc.Config{Providers: s.cfg.SignIn, Redirect: strings.TrimSuffix(s.cfg.BaseURL, "/") + page.OIDCCallback, Key: s.Keys.signIn(),
		Client: fetch.NewHTTPClient(fetch.Config{Guard: s.Guard, Proxy: s.Proxy, Dial: s.cfg.WebhookDial}), Log: s.log})
}

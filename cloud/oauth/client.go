package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

const (
	maxRedirects = 10
	maxName      = 80 // characters
	maxClientID  = 1024
)

// metadata is what a client says about itself: when it registers, and in the
// document that its id is the address of.
type metadata struct {
	ClientID      string          `json:"client_id"`
	Name          string          `json:"client_name"`
	RedirectURIs  []string        `json:"redirect_uris"`
	AuthMethod    string          `json:"token_endpoint_auth_method"`
	GrantTypes    []string        `json:"grant_types"`
	ResponseTypes []string        `json:"response_types"`
	Secret        json.RawMessage `json:"client_secret"`
}

// check says what of a client's own description cannot be. Addresses that no
// answer may go to are left out; one good address is enough.
func (m *metadata) check() *Error {
	given := len(m.RedirectURIs)
	m.RedirectURIs = slices.DeleteFunc(slices.Clone(m.RedirectURIs), func(u string) bool { return !goodRedirect(u) })
	switch {
	case given == 0 || given > maxRedirects:
		return fail(InvalidRedirect, "redirect_uris must hold 1 to 10 addresses.")
	case len(m.RedirectURIs) == 0:
		return fail(InvalidRedirect, "A redirect address must be an https address, an http address of 127.0.0.1, [::1] or localhost, or one of a private-use scheme such as com.example.app:/callback, without a fragment.")
	case m.GrantTypes != nil && !slices.Contains(m.GrantTypes, "authorization_code"):
		return fail(InvalidMetadata, "grant_types must hold authorization_code.")
	case m.ResponseTypes != nil && !slices.Contains(m.ResponseTypes, "code"):
		return fail(InvalidMetadata, "response_types must hold code.")
	}
	return nil
}

// nameOf is a name as it may be shown: of one line, bounded, and without signs
// that turn or hide others.
func nameOf(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) > maxName {
		s = string([]rune(s)[:maxName-1]) + "…"
	}
	return s
}

// readMetadata reads a registration.
func readMetadata(body []byte) (m metadata, err error) {
	if json.Unmarshal(body, &m) != nil {
		return m, fail(InvalidMetadata, "The body must be a JSON object of client metadata.")
	}
	if e := m.check(); e != nil {
		return m, e
	}
	return m, nil
}

// register keeps a client (RFC 7591). A wish that is not offered is
// replaced by what is: it gets no secret, and the answer says so.
func (s *Service) register(ctx context.Context, m metadata, ip string) (cloud.OAuthClient, error) {
	now := time.Now().UTC()
	c := cloud.OAuthClient{ID: "agent_" + auth.NewToken()[:24], Name: nameOf(m.Name), RedirectURIs: m.RedirectURIs, CreatedAt: now}
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		ch := &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{c}},
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line(0, 0, "oauth_client_registered", c.ID, now, map[string]any{"name": c.Name, "redirect_uris": c.RedirectURIs, "ip": ip})}}}
		all, err := v.UnusedOAuthClients(time.Time{})
		if err != nil || all < maxUnused {
			return ch, err
		}
		// A client that registered within the hour may be at the login right now.
		hour := now.Add(-time.Hour)
		fresh, err := v.UnusedOAuthClients(hour)
		if err == nil && fresh >= maxUnused {
			err = fail(TemporarilyUnavailable, "Too many clients registered within the hour. Try again later.")
		}
		ch.DropOAuth.Unused = hour
		return ch, err
	})
	return c, err
}

// byDocument reports whether a client id is the address of a document.
func byDocument(id string) bool { return strings.HasPrefix(id, "https://") }

// goodDocumentID reports whether an address may be a client id: it has a path,
// and stands for nothing else.
func goodDocumentID(id string) bool {
	u, err := url.Parse(id)
	if err != nil || len(id) > maxClientID || !isPrintable(id) || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(id, "#") || len(u.Path) < 2 {
		return false
	}
	return !slices.ContainsFunc(strings.Split(u.Path, "/"), func(p string) bool { return p == "." || p == ".." })
}

// document is a client's description as it was read last.
type document struct {
	client cloud.OAuthClient
	until  time.Time
}

const (
	maxDocuments = 256
	documentLife = 10 * time.Minute
)

// client finds a client by its id. An *Error says that there is none.
func (s *Service) client(ctx context.Context, id, ip string) (c cloud.OAuthClient, err error) {
	if byDocument(id) {
		return s.documented(ctx, id, ip)
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) { c, err = v.OAuthClient(id); return err })
	if errors.Is(err, cloud.ErrNotFound) {
		return c, fail(InvalidClient, "There is no such client. Register it first.")
	}
	return c, err
}

func (s *Service) documented(ctx context.Context, id, ip string) (c cloud.OAuthClient, err error) {
	now := time.Now()
	s.mu.Lock()
	d, ok := s.documents[id]
	s.mu.Unlock()
	if ok && now.Before(d.until) {
		return d.client, nil
	}
	if s.cfg.Fetch == nil || !goodDocumentID(id) {
		return c, fail(InvalidClient, "The client id is not the address of a client's description.")
	}
	if !s.limits.Take("fetch/"+ip, s.cfg.Limits.Fetch, now).OK {
		return c, fail(TemporarilyUnavailable, "Too many descriptions were asked for. Try again in a minute.")
	}
	doc, err := s.cfg.Fetch(ctx, id)
	if err != nil {
		s.log.Info("client description is not read", "host", hostOf(id), "err", err)
		return c, fail(InvalidClient, "The client's description could not be read.")
	}
	if c, err = readDocument(id, doc); err != nil {
		return c, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.documents) >= maxDocuments {
		clear(s.documents)
	}
	s.documents[id] = document{c, now.Add(documentLife)}
	return c, nil
}

// readDocument reads a client's description. It must say that it is this one's,
// of a client without a secret.
func readDocument(id string, d Document) (c cloud.OAuthClient, err error) {
	kind, _, err := mime.ParseMediaType(d.Type)
	if d.Status != 200 || err != nil || kind != "application/json" && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return c, fail(InvalidClient, "There is no JSON document at the client's address.")
	}
	var m metadata
	if json.Unmarshal(d.Body, &m) != nil || m.ClientID != id {
		return c, fail(InvalidClient, "The document at the client's address is no description of this client.")
	}
	if len(m.Secret) > 0 || m.AuthMethod != "" && m.AuthMethod != "none" {
		return c, fail(InvalidClient, "Only clients without a secret are served: token_endpoint_auth_method must be none.")
	}
	if e := m.check(); e != nil {
		return c, fail(InvalidClient, e.Text)
	}
	return cloud.OAuthClient{ID: id, Name: nameOf(m.Name), RedirectURIs: m.RedirectURIs}, nil
}

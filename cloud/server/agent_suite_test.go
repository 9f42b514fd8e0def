package server

import (
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/postern-io/postern/cloud/mcp"
	"github.com/postern-io/postern/cloud/mcp/mcptest"
	"github.com/postern-io/postern/cloud/mcp/suitetest"
	"github.com/postern-io/postern/internal/ring"
)

// newSuiteWorld is a node as cmd/cloud assembles it for its own public address; what
// the suite needs beyond the usual is settings: no limits.
func newSuiteWorld(t *testing.T, cfg Config) *agentWorld {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg.BaseURL, cfg.Rates = "http://"+ln.Addr().String(), map[string]int{}
	for _, name := range RateNames() {
		cfg.Rates[name] = 0
	}
	return agentWorldOn(t, cfg, ln, true)
}

// grant is a token for one address of a tool server as a program gets it: it
// registers and its user logs in and allows it a profile.
func (w *agentWorld) grant(path, profile string) string {
	w.t.Helper()
	conf := w.program("http://127.0.0.1:4711/callback")
	resource, verifier := oauth2.SetAuthURLParam("resource", w.base+path), oauth2.GenerateVerifier()
	answer := consent(w.t, conf.AuthCodeURL("st", oauth2.S256ChallengeOption(verifier), resource), w.box.Admin.Email, w.box.Admin.Password, profile)
	ctx := context.WithValue(w.t.Context(), oauth2.HTTPClient, &http.Client{Transport: resourceful{w.base + path}})
	token, err := conf.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(w.t, err)
	return token.AccessToken
}

// program registers a client whose answers go to an address.
func (w *agentWorld) program(callback string) oauth2.Config {
	w.t.Helper()
	var client struct {
		ID string `json:"client_id"`
	}
	require.Equal(w.t, 201, call(w.t, "POST", w.base+"/oauth/register", "", map[string]any{"client_name": "Suite", "redirect_uris": []string{callback}}, &client))
	return oauth2.Config{ClientID: client.ID, RedirectURL: callback, Endpoint: oauth2.Endpoint{AuthURL: w.base + "/oauth/authorize", TokenURL: w.base + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams}}
}

// revisions are those that the suite has requirements for.
var revisions = []string{"2025-11-25", "2026-07-28"}

// needFixtures are the checks of a revision that no server without the suite's own
// tools, prompts, resources and tasks can pass.
func needFixtures(t *testing.T, revision string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "suite", revision+".txt"))
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(b)), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

// addresses are those of the tool servers.
var addresses = []string{"/mcp", "/api/mcp", "/mcp/developer", "/api/mcp/developer", "/mcp/lockers", "/api/mcp/lockers"}

// The official suite on every address of a node, with the token of a program whose
// user allowed it everything: all checks that need no fixture succeed, and the others
// are exactly those that are listed.
func TestOfficialSuiteOnTheRealAddresses(t *testing.T) {
	t.Parallel()
	w := newSuiteWorld(t, Config{})
	for _, path := range addresses {
		for _, revision := range revisions {
			t.Run(path+" "+revision, func(t *testing.T) {
				if path != "/mcp" {
					ring.SkipUnlessFull(t, "the other addresses of the tool servers")
				}
				at := mcptest.WithHeader(t, w.base, "Authorization: Bearer "+w.grant(path, "full"))
				failed, all := mcptest.Failing(t, "tool servers of a node, "+revision+" (the rest needs tools of the suite)", at+path, "--requirements", revision)
				require.Equal(t, needFixtures(t, revision), failed)
				require.Greater(t, all, len(failed))
			})
		}
		// Without a token what is listed is the same, and a call of a tool that needs
		// one is refused before the suite's headers are compared.
		t.Run(path+" without a token", func(t *testing.T) {
			ring.SkipUnlessFull(t, "callers without a token")
			failed, _ := mcptest.Failing(t, "tool servers of a node without a token, 2026-07-28 (the rest needs tools of the suite, or one)", w.base+path, "--requirements", "2026-07-28")
			failed = slices.DeleteFunc(failed, func(check string) bool { return strings.HasPrefix(check, "http-header-validation ") })
			require.Equal(t, needFixtures(t, "2026-07-28"), failed)
		})
	}
}

// The whole official suite on a node that has its fixtures beside the real tools: all
// that is between a client and the engine lets every scenario pass.
func TestOfficialSuiteWithFixturesOnANode(t *testing.T) {
	t.Parallel()
	fixtures := suitetest.Fixtures()
	w := newSuiteWorld(t, Config{WrapTools: func(c *mcp.Config) {
		c.Tools = slices.Concat(c.Tools, fixtures.Tools)
		c.Methods = maps.Clone(fixtures.Methods)
		c.Capabilities = fixtures.Capabilities
	}})
	for _, path := range addresses {
		for name, args := range map[string][]string{
			"2026-07-28":                           {"--requirements", "2026-07-28"},
			"2025-11-25":                           {"--requirements", "2025-11-25", "--expected-failures", "expected-failures.yml"},
			"http-header-validation":               {"--scenario", "http-header-validation"},
			"http-custom-header-server-validation": {"--scenario", "http-custom-header-server-validation"},
			"json-schema-2020-12":                  {"--scenario", "json-schema-2020-12"},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				if path != "/mcp" || name[0] != '2' {
					ring.SkipUnlessFull(t, "the other addresses, and scenarios that are not scored")
				}
				at := mcptest.WithHeader(t, w.base, "Authorization: Bearer "+login(t, w.base, w.box.Admin.Email, w.box.Admin.Password))
				mcptest.Conformance(t, "tool servers of a node with the suite's own tools, "+name, at+path, args...)
			})
		}
	}
}

// The official suite of authorization servers: the metadata, and a code that a user's
// consent gives for each resource.
func TestOfficialSuiteOfTheAuthorizationServer(t *testing.T) {
	t.Parallel()
	mcptest.Node(t)
	w := newSuiteWorld(t, Config{})
	for _, path := range append([]string{""}, addresses...) {
		t.Run("resource "+path, func(t *testing.T) {
			if path != "" {
				ring.SkipUnlessFull(t, "one resource shows the way of all")
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			port := ln.Addr().(*net.TCPAddr).Port
			require.NoError(t, ln.Close())
			callback := "http://" + ln.Addr().String() + "/callback"
			mcptest.Authorization(t, w.base, w.program(callback).ClientID, w.base+path, port, func(page string) {
				answer := consentFrom(t, page, callback, w.box.Admin.Email, w.box.Admin.Password, "support")
				require.Equal(t, 200, call(t, "GET", callback+"?"+answer.Encode(), "", nil, nil))
			})
		})
	}
}

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/mcp"
)

// session is who a request is from, and what its connection is narrowed to.
type session struct {
	*Service
	server   string
	caller   cloud.Caller // Scopes are the effective ones, nil for all
	ceiling  []string     // scopes of the token, nil for all
	token    cloud.Token
	who      catalog.Who
	path     string
	profile  string
	narrowed string // header that narrows the token's scopes, "" when none does
	dry      bool
	approval bool
	argument bool            // the token came as an argument
	entered  context.Context // values of the call for the pipeline
}

// mergedContext is a context with values of another one beside its own.
type mergedContext struct {
	context.Context
	values context.Context
}

func (c mergedContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// in is ctx with what the pipeline knows of the caller.
func (u *session) in(ctx context.Context) context.Context {
	return catalog.Admitted(mergedContext{ctx, u.entered}, u.caller)
}

// Today is the present date in the caller's business; of a caller without one,
// in UTC.
func (u *session) Today(ctx context.Context) string {
	now := time.Now().UTC()
	if b := u.caller.Account.BusinessID; b != 0 {
		_ = u.cfg.Store.Look(ctx, func(v cloud.View) error { // a business that cannot be read has its date in UTC
			business, err := v.Business(b)
			if err == nil {
				now = now.In(business.Location())
			}
			return err
		})
	}
	return now.Format(time.DateOnly)
}

// tokenArgumentEnds is when tokens are no longer taken as an argument: the last
// day is 2026-12-31 (interface document 5.1).
var tokenArgumentEnds = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

const tokenArgument = "api_token"

// Admit finds who a request is from, for Config.Admit of cloud/mcp.
func (s *Service) Admit(server string) func(context.Context, *mcp.Request) (mcp.Caller, error) {
	return func(ctx context.Context, r *mcp.Request) (mcp.Caller, error) { return s.admit(ctx, server, r) }
}

func (s *Service) admit(ctx context.Context, server string, r *mcp.Request) (mcp.Caller, error) {
	u := &session{Service: s, server: server, path: r.Path, dry: r.DryRun, approval: r.Approval,
		who: catalog.Who{Authorization: r.Authorization, IP: r.IP, Language: r.Language, BaseURL: r.BaseURL, Surface: "mcp", RequestID: r.RequestID, Trace: r.Trace, Resource: r.BaseURL + r.Path}}
	if text, ok := u.tokenGiven(r); ok && time.Now().Before(tokenArgumentEnds) {
		u.who.Authorization, u.argument = "Bearer "+text, true
	}
	var err error
	var state limit.State
	u.entered, u.caller, state, err = s.cfg.Pipeline.Enter(ctx, u.who)
	if err != nil {
		return mcp.Caller{}, u.turnedAway(err, state)
	}
	u.token, _ = catalog.TokenOf(u.entered)
	if u.token.Kind == cloud.SetupToken { // tools about tools are behind no operation that would say it
		return mcp.Caller{}, u.turnedAway(cloud.E(cloud.Forbidden, "SECOND_FACTOR_SETUP_REQUIRED"), state)
	}
	u.dry = u.dry || u.token.Policy.DryRunOnly
	u.ceiling = u.caller.Scopes
	if err := u.narrow(r); err != nil {
		return mcp.Caller{}, err
	}
	out := mcp.Caller{Value: u, Set: "all", Account: int64(u.caller.Account.ID)}
	if !u.caller.Anonymous() {
		out.ID = strconv.FormatInt(int64(u.caller.Account.ID), 10)
	}
	if (u.narrowed != "" || !u.caller.Anonymous()) && u.caller.Scopes != nil {
		out.Set, out.Sees = strings.Join(u.caller.Scopes, " "), u.sees
	}
	return out, nil
}

// tokenGiven is the token in the arguments of a call that has none in its header.
func (u *session) tokenGiven(r *mcp.Request) (string, bool) {
	if r.Tool == "" || r.Authorization != "" {
		return "", false
	}
	t := u.cfg.Catalog.Tool(u.server, r.Tool)
	if t == nil || t.Public() {
		return "", false
	}
	var given struct {
		Token *string `json:"api_token"`
	}
	if json.Unmarshal(r.Arguments, &given) != nil || given.Token == nil {
		return "", false
	}
	return *given.Token, true
}

// narrow takes from the caller's scopes what the connection's headers leave
// out. A name that does not exist is refused: it must never mean
// everything.
func (u *session) narrow(r *mcp.Request) error {
	refused := func(code, name string, valid []string) error {
		return &mcp.Error{Status: 400, Code: -32602, Message: locale.Error(u.caller.Language, code, name, strings.Join(valid, ", ")),
			Data: map[string]any{"code": code, "name": name, "valid": valid}}
	}
	var only []string
	switch {
	case r.Scopes != nil:
		only, u.narrowed = []string{}, "X-MCP-Scopes"
		for name := range strings.SplitSeq(*r.Scopes, ",") {
			if name = strings.TrimSpace(name); name != "*" && !cloud.KnownScope(name) {
				return refused("UNKNOWN_SCOPE", name, cloud.AllScopes())
			}
			only = append(only, name)
		}
	case r.Profile != nil:
		if only = catalog.ProfileScopes(*r.Profile); only == nil {
			return refused("UNKNOWN_PROFILE", *r.Profile, catalog.Profiles())
		}
		u.profile, u.narrowed = *r.Profile, "X-MCP-Profile"
	default:
		u.profile = u.token.Profile
		return nil
	}
	if slices.Contains(only, "*") {
		u.narrowed = "" // takes nothing away
		return nil
	}
	slices.Sort(only)
	u.caller.Scopes = catalog.Intersect(slices.Compact(only), u.ceiling)
	return nil
}

// sees reports whether a tool is listed: by its scopes alone.
func (u *session) sees(name string) bool {
	t := u.cfg.Catalog.Tool(u.server, name)
	return t != nil && u.missingScope(t, u.caller.Scopes) == ""
}

// missingScope is the first of a tool's scopes that are not among those, of which
// nil is every scope.
func (u *session) missingScope(t *catalog.Tool, have []string) string {
	for _, s := range t.Scopes {
		if have != nil && !cloud.HasScope(have, s) {
			return s
		}
	}
	return ""
}

// turnedAway is the answer to who is not let in at all.
func (u *session) turnedAway(err error, state limit.State) error {
	shown, _ := cloud.Answered(err)
	if shown.Kind == cloud.Internal {
		return err
	}
	status := catalog.Status(shown)
	out := &mcp.Error{Status: status, Code: status, Message: locale.Error(u.caller.Language, shown.Code, shown.Args...), Data: map[string]any{"code": shown.Code}}
	switch status {
	case 401:
		out.Headers = [][2]string{{"WWW-Authenticate", u.challenge(`error="invalid_token"`, "")}}
	case 429:
		out.Headers = [][2]string{{"Retry-After", strconv.Itoa(max(state.RetryAfter, shown.RetryAfter, 1))}}
	}
	return out
}

// challenge is a WWW-Authenticate header (mcp-wire 10.2).
func (u *session) challenge(reason, scopes string) string {
	parts := []string{}
	if reason != "" {
		parts = append(parts, reason)
	}
	parts = append(parts, fmt.Sprintf("resource_metadata=%q", u.who.BaseURL+"/.well-known/oauth-protected-resource"+u.path))
	if scopes != "" {
		parts = append(parts, fmt.Sprintf("scope=%q", scopes))
	}
	return "Bearer " + strings.Join(parts, ", ")
}

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/mcp"
)

type listInput struct {
	PerPage int `query:"per_page"`
}

type listOutput struct {
	Result bool     `json:"result"`
	Orders []string `json:"orders"`
}

// small is a service over a table of one read.
func small(t *testing.T, logs *strings.Builder, token string, read func(context.Context, cloud.Caller, listInput) (listOutput, error)) *Service {
	t.Helper()
	c := catalog.New([]catalog.Operation{catalog.Define(catalog.Operation{Name: "orders.list", Summary: "Orders", Description: "A test.", Tag: "Client", Method: "GET", Path: "/orders", Scopes: []string{"orders:read"},
		Types: []cloud.AccountType{cloud.ClientAdmin}, Tools: []string{"get_orders"}}, read, nil)})
	c.AddTools(catalog.Tool{Name: "get_orders", Title: "Get orders", Description: "Lists orders", Servers: []string{catalog.OperationsServer}, Category: "orders", Operation: "orders.list",
		Arguments: catalog.Arguments("per_page integer 1..200", "order_ref text 0..64")})
	line := catalog.NewPipeline(catalog.Config{FindToken: func(_ context.Context, hash [32]byte) (auth.Session, error) {
		if hash != auth.Hash(token) {
			return auth.Session{}, cloud.ErrNotFound
		}
		return auth.Session{Token: cloud.Token{Hash: hash, Name: "login"}, Account: cloud.Account{ID: 7, BusinessID: 1, Type: cloud.ClientAdmin, Enabled: true}}, nil
	}, Limits: catalog.Limits{Authenticated: -1, Anonymous: -1}})
	return New(Config{Catalog: c, Pipeline: line, PerMinute: 100, Log: slog.New(slog.NewTextHandler(logs, nil))})
}

// send calls the one tool as a server would.
func send(ctx context.Context, s *Service, authorization, arguments string) (*mcp.Result, error) {
	r := &mcp.Request{Tool: "get_orders", Method: "tools/call", Arguments: json.RawMessage(arguments), Authorization: authorization, BaseURL: "https://h.example", Path: "/mcp", Language: "en"}
	caller, err := s.Admit(catalog.OperationsServer)(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, x := range s.Tools(catalog.OperationsServer) {
		if x.Name == r.Tool {
			return x.Run(ctx, &mcp.Call{Request: r, Caller: caller, Arguments: r.Arguments})
		}
	}
	return nil, fmt.Errorf("no tool")
}

func none(context.Context, cloud.Caller, listInput) (listOutput, error) {
	return listOutput{Result: true, Orders: []string{}}, nil
}

// The line about a call names arguments that the tool has, shortly: strangers' calls
// leave lines, too.
func TestLogLinesOfCallsAreShort(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ arguments, kept string }{
		"an argument of the tool": {`{"per_page":5}`, "per_page:5"},
		"many others":             {`{"per_page":5` + manyMembers(5000) + `}`, "per_page:5"},
		"a long number":           {`{"per_page":` + strings.Repeat("9", 5000) + `}`, "per_page:…"},
		"a number for a text":     {`{"order_ref":123456}`, "order_ref:…"},
		"a list for a text":       {`{"order_ref":["` + strings.Repeat("a", 5000) + `"]}`, "order_ref:…"},
		"a long text":             {`{"order_ref":"SO-1` + strings.Repeat("a", 5000) + `"}`, "order_ref:SO-1a"},
		"a link for a number":     {`{"order_ref":"https://h.example/track/SR7KQ4M2XD9HTB?k=0123456789"}`, "track/SR7KQ4M2XD9HTB"},
	} {
		logs := &strings.Builder{}
		const token = "0123456789012345678901234567890123456789012345678901234567890123"
		_, err := send(t.Context(), small(t, logs, token, none), "Bearer "+token, x.arguments)
		require.NoError(t, err, name)
		require.Contains(t, logs.String(), x.kept, name)
		require.NotContains(t, logs.String(), "0123456789", name)
		require.NotContains(t, logs.String(), "123456", name)
		require.Less(t, len(logs.String()), 600, name)
	}
}

// manyMembers are n members of an object, each after a comma.
func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"x%d":1`, i)
	}
	return b.String()
}

// A token in the arguments is taken until the end of 2026, and never shown.
func TestTheTokenArgumentEnds(t *testing.T) {
	t.Parallel()
	const token = "0123456789012345678901234567890123456789012345678901234567890123"
	synctest.Test(t, func(t *testing.T) {
		logs := &strings.Builder{}
		s := small(t, logs, token, none)
		call := func(authorization, arguments string) (*mcp.Result, error) {
			return send(t.Context(), s, authorization, arguments)
		}
		good := func() {
			t.Helper()
			out, err := call("", `{"api_token":"`+token+`","per_page":5}`)
			require.NoError(t, err)
			require.False(t, out.IsError, "%v", out.Content)
			require.Contains(t, string(out.Structured), `"deprecations":[{"item":"api_token argument","until":"2026-12-31"}]`)
			require.NotContains(t, string(out.Structured)+logs.String(), token)
		}
		good()
		_, err := call("", `{"api_token":"wrong"}`)
		require.ErrorAs(t, err, new(*mcp.Error), "a bad one is a bad token")
		_, err = call("", `{}`)
		require.ErrorAs(t, err, new(*mcp.Error))
		out, err := call("Bearer "+token, `{"api_token":"`+token+`"}`)
		require.NoError(t, err)
		require.True(t, out.IsError, "beside a header it is no argument")
		require.NotContains(t, fmt.Sprint(out.Content), token)

		time.Sleep(time.Until(time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)))
		good()
		time.Sleep(time.Second)
		out, err = call("", `{"api_token":"`+token+`"}`)
		require.NoError(t, err)
		require.True(t, out.IsError)
		require.Contains(t, fmt.Sprint(out.Content), "API_TOKEN_ARGUMENT_REMOVED")
		require.NotContains(t, fmt.Sprint(out.Content)+logs.String(), token)
	})
}

// A long list is cut where it is a list, and says so; the rest stays.
func TestLongResultsAreCut(t *testing.T) {
	t.Parallel()
	rows := make([]string, 200)
	for i := range rows {
		rows[i] = strings.Repeat("x", 1000+i)
	}
	s := small(t, &strings.Builder{}, "tok", func(context.Context, cloud.Caller, listInput) (listOutput, error) { return listOutput{true, rows}, nil })
	out, err := send(t.Context(), s, "Bearer tok", `{}`)
	require.NoError(t, err)
	require.LessOrEqual(t, len(out.Structured), maxResult)
	var got struct {
		Result    bool
		Orders    []string
		Truncated bool
		Hint      string `json:"truncated_hint"`
	}
	require.NoError(t, json.Unmarshal(out.Structured, &got))
	require.True(t, got.Result && got.Truncated)
	require.Equal(t, rows[:len(got.Orders)], got.Orders)
	require.Greater(t, len(got.Orders), 80, "as much as fits")
	require.Contains(t, got.Hint, "of 200 rows")
}

// One caller may call one tool so often; the model gets how long to wait.
func TestEachToolHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := small(t, &strings.Builder{}, "tok", none)
		over := 0
		for range 150 {
			out, err := send(t.Context(), s, "Bearer tok", `{}`)
			require.NoError(t, err)
			if out.IsError {
				over++
				require.Contains(t, out.Content[0]["text"], `"code":"RATE_LIMITED"`)
				require.Contains(t, out.Content[0]["text"], `"retry_after"`)
			}
		}
		require.Equal(t, 50, over)
		time.Sleep(time.Minute)
		out, err := send(t.Context(), s, "Bearer tok", `{}`)
		require.NoError(t, err)
		require.False(t, out.IsError)
	})
}

// An error of ours, and a panic's, is shown to no caller.
func TestOurErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	s := small(t, &strings.Builder{}, "tok", func(context.Context, cloud.Caller, listInput) (listOutput, error) {
		return listOutput{}, fmt.Errorf("dial tcp 10.0.0.7: refused")
	})
	_, err := send(t.Context(), s, "Bearer tok", `{}`)
	require.Error(t, err, "the engine logs it and tells an id")
}

// FuzzArguments: whatever a model sends is taken or answered with what is wrong with it,
// five problems at most, and what is taken is what was sent.
func FuzzArguments(f *testing.F) {
	tool := catalog.Tool{Name: "t", Arguments: catalog.Arguments(`
		a! text 1..5
		b list integer 1..3
		c date
		d x|y
		e number 0..1.5
		f time
		g object
		h boolean`), OneOf: [][]string{{"a"}, {"b"}}}
	for _, s := range []string{`{"a":"x"}`, `{"a":1,"b":[1,2,"3"]}`, `{"a":"x","c":"2026-02-30","f":"24:00"}`, `{"aa":1}`, `[]`, `{"a":"x","e":1e400,"b":[9223372036854775808]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		given, problems := tool.Check(raw, "")
		require.LessOrEqual(t, len(problems), 5)
		if len(problems) > 0 {
			return
		}
		var all map[string]any
		require.NoError(t, json.Unmarshal(raw, &all))
		for name := range all {
			require.True(t, all[name] == nil || given[name] != nil, "%s is lost", name)
		}
		text, ok := given["a"].(string)
		require.True(t, ok && len([]rune(text)) >= 1 && len([]rune(text)) <= 5)
	})
}

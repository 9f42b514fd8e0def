package mcp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The whole of table 2.1: what a body claims, what the header says.
func TestEra(t *testing.T) {
	t.Parallel()
	const absent = "-"
	type verdict struct {
		modern bool
		code   int
	}
	legacy, now, refused := verdict{}, verdict{modern: true}, func(code int) verdict { return verdict{code: code} }
	for _, c := range []struct {
		claim, header string
		want          verdict
	}{
		{absent, absent, legacy}, {absent, newest, legacy}, {absent, "2024-11-05", legacy},
		{absent, modern, refused(CodeInvalidParams)}, {absent, "2027-01-01", refused(CodeVersion)}, {absent, "", refused(CodeVersion)},
		{`"2026-07-28"`, absent, refused(CodeHeaderMismatch)}, {`"2026-07-28"`, modern, now}, {`"2026-07-28"`, newest, refused(CodeHeaderMismatch)},
		{`"2025-11-25"`, newest, legacy}, {`"2025-11-25"`, "2025-06-18", refused(CodeHeaderMismatch)}, {`"2025-11-25"`, modern, refused(CodeHeaderMismatch)},
		{`"2025-11-25"`, absent, refused(CodeHeaderMismatch)},
		{`"v999"`, "v999", refused(CodeVersion)}, {`"v999"`, modern, refused(CodeHeaderMismatch)}, {`"v999"`, absent, refused(CodeHeaderMismatch)},
		{`3`, modern, refused(CodeInvalidParams)}, {`null`, absent, refused(CodeInvalidParams)}, {`{}`, newest, refused(CodeInvalidParams)},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{}}}`
		if c.claim != absent {
			body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{%q:%s,%q:{}}}}`, metaVersion, c.claim, metaCapabilities)
		}
		m, ok := decode([]byte(body))
		require.True(t, ok)
		h := header{1, c.header}
		if c.header == absent {
			h = header{}
		}
		isModern, e := language("en").era(m, h)
		got := verdict{modern: isModern}
		if e != nil {
			require.Equal(t, 400, e.Status)
			got = verdict{code: e.Code}
		}
		require.Equal(t, c.want, got, "claim %s, header %s", c.claim, c.header)
	}
}

func TestHandshakeIsLegacyWhateverTheHeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	body := fmt.Sprintf(handshake, newest)
	for _, h := range []string{newest, "2024-11-05", "2027-01-01", ""} {
		require.Equal(t, newest, r.post(body, "MCP-Protocol-Version", h).result()["protocolVersion"], h)
	}
	require.Equal(t, CodeHeaderMismatch, r.post(body, "MCP-Protocol-Version", modern).code())
	require.Equal(t, newest, r.post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`).result()["protocolVersion"])
}

func TestNotificationsAndStrayResponses(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	for _, c := range []struct {
		body   string
		header []string
		status int
		code   int
	}{
		{`{"jsonrpc":"2.0","method":"whatever"}`, nil, 202, 0},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, []string{modern}, 202, 0},
		{`{"jsonrpc":"2.0","method":"x","params":{` + envelope + `}}`, nil, 202, 0},
		{`{"jsonrpc":"2.0","method":"x","params":{` + envelope + `}}`, []string{newest}, 400, CodeHeaderMismatch},
		{`{"jsonrpc":"2.0","method":"x"}`, []string{"v999"}, 400, CodeVersion},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 202, 0},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, []string{newest}, 202, 0},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, []string{modern}, 400, CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1}`, nil, 400, CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, nil, 400, CodeInvalidRequest},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, CodeInvalidRequest},
		{`{"id":1,"method":"ping"}`, nil, 400, CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, nil, 400, CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, nil, 400, CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, nil, 400, CodeInvalidRequest},
		{`7`, nil, 400, CodeInvalidRequest},
	} {
		var headers []string
		for _, h := range c.header {
			headers = append(headers, "MCP-Protocol-Version", h)
		}
		res := r.post(c.body, headers...)
		require.Equal(t, c.status, res.status, c.body)
		require.Equal(t, c.code, res.code(), c.body)
		require.Equal(t, c.status == 202, len(res.body) == 0)
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	with := func(member string) *response {
		return r.now("tools/list", "", `"_meta":{`+member+`,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)
	}
	for _, good := range []string{`"io.modelcontextprotocol/logLevel":"debug"`, `"io.modelcontextprotocol/clientInfo":7`, `"progressToken":"x"`, `"traceparent":"nonsense"`} {
		require.NotNil(t, with(good).result()["tools"], good)
	}
	for _, bad := range []string{`"io.modelcontextprotocol/logLevel":"loud"`, `"io.modelcontextprotocol/logLevel":1`, `"progressToken":1.5`, `"progressToken":{}`} {
		res := with(bad)
		require.Equal(t, 200, res.status)
		require.Equal(t, CodeInvalidParams, res.code(), bad)
	}
	res := r.now("tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}`)
	require.Equal(t, 400, res.status)
	require.Contains(t, string(res.body), metaCapabilities, "the message names the key")
}

func TestMirrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	call := func(arguments string, headers ...string) *response {
		return r.now("tools/call", "region", `"name":"region","arguments":`+arguments+`,M`, headers...)
	}
	for arguments, headers := range map[string][]string{
		`{}`: {}, `{"region":null}`: {}, `{"region":"west"}`: {"mcp-param-region", " west "}, `{"region":"wëst"}`: {"Mcp-Param-Region", "=?base64?d8Orc3Q=?="},
		`{"n":42}`: {"Mcp-Param-N", "42.0"}, `{"n":-7,"in":{"b":true}}`: {"Mcp-Param-N", "-7", "Mcp-Param-B", "true"}, `{"in":7}`: {"Mcp-Param-Unknown", "x"},
	} {
		require.Equal(t, 0, call(arguments, headers...).code(), arguments)
	}
	for _, c := range []struct {
		arguments string
		headers   []string
	}{
		{`{"region":"west"}`, nil}, {`{"region":"west"}`, []string{"Mcp-Param-Region", "West"}}, {`{"region":"west"}`, []string{"Mcp-Param-Region", "west", "Mcp-Param-Region", "west"}},
		{`{}`, []string{"Mcp-Param-Region", "west"}}, {`{"n":42}`, []string{"Mcp-Param-N", "4.2e1"}}, {`{"n":42}`, []string{"Mcp-Param-N", "43"}}, {`{"n":42}`, []string{"Mcp-Param-N", "0x2a"}},
		{`{"in":{"b":true}}`, []string{"Mcp-Param-B", "True"}}, {`{"region":"west"}`, []string{"Mcp-Param-Region", "=?base64?d2Vzd?="}}, {`{"region":"west"}`, []string{"Mcp-Param-Region", "=?BASE64?d2VzdA==?="}},
	} {
		res := call(c.arguments, c.headers...)
		require.Equal(t, 400, res.status, "%v", c)
		require.Equal(t, CodeHeaderMismatch, res.code(), "%v", c)
		require.EqualValues(t, 7, res.json["id"])
	}
	for _, headers := range [][]string{{"Mcp-Method", "tools/list"}, {"MCP-Protocol-Version", modern}} { // a second time
		require.Equal(t, CodeHeaderMismatch, r.now("tools/list", "", "M", headers...).code(), headers)
	}
	require.Equal(t, CodeHeaderMismatch, r.now("tools/call", "echo", `"name":"echo",M`, "Mcp-Name", "echo").code(), "a name twice")
	require.Equal(t, CodeHeaderMismatch, r.now("tools/call", "", `"name":"echo",M`).code(), "no name")
	require.Equal(t, CodeHeaderMismatch, r.now("tools/call", "find_order", `"name":"echo",M`).code(), "another name")
	require.Equal(t, CodeHeaderMismatch, r.now("tools/call", "echo", `M`).code(), "a name that the body has not")
	require.Equal(t, CodeInvalidParams, r.now("tools/call", "", `M`).code())
	require.Equal(t, CodeInvalidParams, r.now("tools/call", "gone", `"name":"gone",M`).code())
}

package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	deep := func(n int, open, end string) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, in := range []string{
		`{}`, `[]`, ` { "a" : [ 1 , -0.5e+10 , true , false , null , "é\u00e9\ud83d\ude00\n\/" ] } `, `0`, `""`, `{"":{}}`,
		deep(64, "[", "]"), strings.Repeat(`{"a":`, 63) + `{}` + strings.Repeat("}", 63), "\"\u007f\u2028\"",
	} {
		s := scan{b: []byte(in)}
		require.True(t, s.read(), in)
		require.True(t, json.Valid([]byte(in)), in)
	}
	for _, in := range []string{
		``, ` `, `{`, `}`, `{}}`, `{} {}`, `[1,]`, `[,]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `NaN`, `tru`, `nul`,
		`"`, `"\`, `"\x"`, `"\u12"`, `"\u00zz"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\xef\xbb\xbf{}", `"\ud800"`, `"\udc00"`, `"\ud800\u0041"`, `"\ud800x"`, `"\u0000"`,
		deep(65, "[", "]"), strings.Repeat(`{"a":`, 64) + `{}` + strings.Repeat("}", 64), `// x`, `1 2`, `"\u+123"`, `"\u 123"`,
	} {
		s := scan{b: []byte(in)}
		require.False(t, s.read(), "%.80q", in)
	}
}

// The character U+0000 is refused everywhere but in the arguments of a tool, in a batch too.
func TestZeroInArguments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		`{"params":{"arguments":{"a":"\u0000"}}}`:            true,
		`{"params":{"arguments":{"\u0000":1}}}`:              true,
		`{"params":{"arguments":{"a":[{"b":"x\u0000"}]}}}`:   true,
		`[{},{"params":{"arguments":{"a":"\u0000"}}}]`:       true,
		`{"params":{"arguments":"\u0000"}}`:                  false,
		`{"params":{"\u0000":1,"arguments":{}}}`:             false,
		`{"params":{"arguments":{}},"\u0000":1}`:             false,
		`{"params":{"name":"\u0000","arguments":{"a":"b"}}}`: false,
		`{"arguments":{"params":{"a":"\u0000"}}}`:            false,
		`{"params":[{"arguments":{"a":"\u0000"}}]}`:          false,
		`[[{"params":{"arguments":{"a":"\u0000"}}}]]`:        false,
		`{"params":{"arguments":{"a":"\ud800"}}}`:            false,
		"{\"params\":{\"arguments\":{\"a\":\"\x00\"}}}":      false,
		`{"x":{"params":{"arguments":{"a":"\u0000"}}}}`:      false,
	} {
		s := scan{b: []byte(in)}
		require.Equal(t, want, s.read(), in)
	}
}

func TestMembersThatAreThereTwice(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 20 {
		many += `"k` + strings.Repeat("x", i) + `":1,`
	}
	for in, want := range map[string]string{
		`{"a":1,"a":2}`:                                         "a",
		`{"a":1,"\u0061":2}`:                                    "a",
		`{"a":1,"A":2}`:                                         "",
		`{"params":{"_meta":{"x":1,"x":1}}}`:                    "params._meta.x",
		`{"params":{"arguments":1,"arguments":2}}`:              "params.arguments",
		`[{"a":1},{"b":[{"c":1,"c":1}]}]`:                       "[1].b[0].c",
		`{` + many + `"kxx":1}`:                                 "kxx",
		`{"params":{"arguments":{"a":1,"a":1}},"x":1,"x":2}`:    "x",
		`{"params":{"arguments":{}},"arguments":{"a":1,"a":1}}`: "arguments.a",
	} {
		s := scan{b: []byte(in)}
		require.True(t, s.read(), in)
		require.Equal(t, want, s.outside, in)
	}
	s := scan{b: []byte(`{"params":{"arguments":{"stops":[{"a":1},{"b":{"c":1,"c":2}}],"a":1,"a":2}}}`)}
	require.True(t, s.read())
	require.Empty(t, s.outside)
	require.Equal(t, map[int]string{-1: "stops[1].b.c"}, s.arguments, "the first one")
	s = scan{b: []byte(`[{},{"params":{"arguments":{"a":1,"a":2}}}]`)}
	require.True(t, s.read())
	require.Equal(t, map[int]string{1: "a"}, s.arguments)
}

// Spaces may stand around every part of a message, and are part of none.
func TestMessageWithSpaces(t *testing.T) {
	t.Parallel()
	s := scan{b: []byte("{ \"jsonrpc\" : \"2.0\" ,\t\"id\"\t: 7 , \"method\" : \"a\" ,\n\"params\"\n: { \"x\" : [ 1 , 2 ] , \"_meta\" : { \"y\" : \"z\" } } }")}
	require.True(t, s.read())
	m, ok := decode(s.b)
	require.True(t, ok)
	require.Equal(t, []string{"7", "a", "[ 1 , 2 ]", `"z"`}, []string{string(m.id), m.method, string(m.params.get("x")), string(m.meta.get("y"))})
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "plain", "a\"b\\c/\n\r\t\x00\x1f\x7f", "é 😀 \u2028 <b>&", "bad \xff\xc3 end\xe2\x82"} {
		b := quote(nil, in)
		var out string
		require.NoError(t, json.Unmarshal(b, &out))
		require.Equal(t, strings.ToValidUTF8(in, "\ufffd"), strings.ReplaceAll(out, "\ufffd\ufffd", "\ufffd"))
		require.NotContains(t, string(b), `\u003c`)
	}
}

// Whatever is posted, reading it never panics, and what is taken for a message
// is what other readers see.
func FuzzMessage(f *testing.F) {
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,{"b":2}]},` + envelope + `}}`,
		`{"jsonrpc":"2.0","id":"\u00e9\ud83d\ude00","method":"ping"}`, `[{"jsonrpc":"2.0","method":"x"},[]]`, `{"jsonrpc":"2.0","id":-12345678901234567890,"result":{}}`,
		` { "jsonrpc" : "2.0" , "method" : "a" , "params" : { "_meta" : [ ] , "a" : "]}" } } `, `{"a":1,"a":2}`, `"\ud800"`, `[[[[`, `{"id":1.0}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := scan{b: bytes.Clone(trimmed(in))}
		if !s.read() {
			return
		}
		if !json.Valid(in) {
			t.Fatalf("not JSON: %q", in)
		}
		if s.b[0] == '[' {
			var all []json.RawMessage
			if err := json.Unmarshal(in, &all); err != nil {
				t.Fatal(err)
			}
			list := elements(s.b, maxBatch)
			if len(list) != min(len(all), maxBatch+1) {
				t.Fatalf("%d elements of %d", len(list), len(all))
			}
			for i := range list {
				if !bytes.Equal(list[i], all[i]) {
					t.Fatalf("element %d is %q, not %q", i, list[i], all[i])
				}
			}
			return
		}
		m, ok := decode(s.b)
		if !ok || s.outside != "" || m.response {
			return
		}
		var other struct {
			ID     json.RawMessage            `json:"id"`
			Method string                     `json:"method"`
			Params map[string]json.RawMessage `json:"params"`
		}
		var exact map[string]json.RawMessage
		if err := json.Unmarshal(in, &exact); err != nil {
			t.Fatal(err)
		}
		other.ID = exact["id"]
		_ = json.Unmarshal(exact["method"], &other.Method)
		_ = json.Unmarshal(exact["params"], &other.Params)
		if !bytes.Equal(m.id, other.ID) || m.method != other.Method || len(m.params) != len(other.Params) {
			t.Fatalf("%q read as id %q, method %q, params %v", in, m.id, m.method, m.params)
		}
		for _, p := range m.params {
			if !bytes.Equal(p.value, other.Params[string(p.name)]) {
				t.Fatalf("%q is %q, not %q", p.name, p.value, other.Params[string(p.name)])
			}
		}
		answered := errorBody(m.id, &Error{Code: 1, Message: "x"})
		if !json.Valid(answered) {
			t.Fatalf("answer %q", answered)
		}
	})
}

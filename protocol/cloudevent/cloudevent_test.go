package cloudevent

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEncodeHeader(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Zürich Hbf 5%":                   "Z%C3%BCrich%20Hbf%205%25",
		`order "A"`:                       "order%20%22A%22",
		"包裹/42":                           "%E5%8C%85%E8%A3%B9/42",
		"order/120045":                    "order/120045",
		"2026-11-20T18:12:00-05:00":       "2026-11-20T18:12:00-05:00",
		"https://api.example.com/a+b,c?d": "https://api.example.com/a+b,c?d",
		"a\r\nb\x00\x7f":                  "a%0D%0Ab%00%7F",
		"\xff":                            "%EF%BF%BD",
		"%41":                             "%2541",
		"":                                "",
	} {
		require.Equal(t, want, EncodeHeader(text))
	}
}

func TestDecodeHeader(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"Z%C3%BCrich%20Hbf%205%25": "Zürich Hbf 5%",
		"%c3%bc%41":                "üA",
		"%2541":                    "%41",
		`"a b"`:                    "a b",
		`"a\"b\\c%20d"`:            `a"b\c d`,
		"plain text":               "plain text",
	} {
		got, err := DecodeHeader(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got)
	}
	for value, want := range map[string]error{
		"%": ErrEscape, "%4": ErrEscape, "a%": ErrEscape, "%zz": ErrEscape, "%+1": ErrEscape,
		"%ff": ErrUTF8, "%c0%af": ErrUTF8, "%ed%a0%80": ErrUTF8, "%C3": ErrUTF8, "\xff": ErrUTF8,
		`"`: ErrQuoted, `"a`: ErrQuoted, `"a"b`: ErrQuoted, `"a\`: ErrQuoted,
	} {
		_, err := DecodeHeader(value)
		require.ErrorIs(t, err, want, value)
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	live := false
	data := []byte(`{"n":12345678901234567890,"t":"<ü>"}`)
	e := Event{ID: "PLE-1", Source: "https://api.example.com/businesses/42", Type: "locker_delivery.delivered", Time: "2026-11-20T18:12:00-05:00",
		Subject: "locker_delivery/D&1", Livemode: &live}
	b, err := Structured(e, data)
	require.NoError(t, err)
	require.Equal(t, `{"specversion":"1.0","id":"PLE-1","source":"https://api.example.com/businesses/42","type":"locker_delivery.delivered",`+
		`"time":"2026-11-20T18:12:00-05:00","subject":"locker_delivery/D&1","datacontenttype":"application/json","livemode":false,"data":`+string(data)+`}`, string(b))
	b, err = Structured(Event{ID: "a", Source: "b", Type: "c"}, []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, `{"specversion":"1.0","id":"a","source":"b","type":"c","datacontenttype":"application/json","data":{}}`, string(b))
	require.Len(t, Event{ID: "a", Source: "b", Type: "c"}.Attributes(), 4)
}

// Whatever stands in an attribute, the event is JSON that says it.
func TestStructuredHoldsAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~<>&"\\]{0,20}`)).Draw(rt, "text")
		b, err := Structured(Event{ID: "a" + text, Source: "b", Type: "c", Subject: text}, []byte(`{}`))
		require.NoError(rt, err)
		var got struct {
			ID, Subject string
			Data        json.RawMessage
		}
		require.NoError(rt, json.Unmarshal(b, &got))
		require.Equal(rt, []string{"a" + text, text, "{}"}, []string{got.ID, got.Subject, string(got.Data)})
		for _, escaped := range []string{`\u003c`, `\u003e`, `\u0026`} {
			require.NotContains(rt, string(b), escaped)
		}
	})
}

// What a header carries comes back, whatever it is.
func TestHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { roundTrip(rt, rapid.String().Draw(rt, "text")) })
}

type fatal interface {
	Fatalf(format string, args ...any)
}

func roundTrip(t fatal, text string) {
	if !utf8.ValidString(text) {
		return
	}
	value := EncodeHeader(text)
	for _, c := range []byte(value) {
		if c <= ' ' || c > '~' || c == '"' {
			t.Fatalf("%q holds %q", value, c)
		}
	}
	if got, err := DecodeHeader(value); err != nil || got != text {
		t.Fatalf("%q came back as %q: %v", text, got, err)
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "%", `"a\"`, "Zürich 5%", "%ed%a0%80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		roundTrip(t, s)
		if got, err := DecodeHeader(s); err == nil {
			roundTrip(t, got)
		}
		b, err := Structured(Event{ID: s, Source: s, Type: s, Subject: s}, []byte("1"))
		require.NoError(t, err)
		require.True(t, json.Valid(b))
	})
}

func ExampleDecodeHeader() {
	subject, _ := DecodeHeader("order/Z%C3%BCrich%201")
	fmt.Println(subject)
	// Output: order/Zürich 1
}

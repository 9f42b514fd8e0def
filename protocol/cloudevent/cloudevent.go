// Package cloudevent writes and reads the values that CloudEvents 1.0 puts into
// HTTP headers, and writes events in structured mode. Receivers may import it.
//
// Functions keep no state and are safe for concurrent use.
package cloudevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SpecVersion is the version of the specification.
const SpecVersion = "1.0"

// ContentType is that of an event in structured mode.
const ContentType = "application/cloudevents+json"

// Event is what describes an event, without its data. ID, Source and Type are
// never empty; Source is a URI reference, Time is RFC 3339 with an offset.
// Livemode is an extension, nil when the event has none.
type Event struct {
	ID, Source, Type, Time, Subject string
	Livemode                        *bool
}

// Attribute is one attribute with its value as text.
type Attribute struct{ Name, Value string }

// Attributes are those of an event that have a value, in a fixed order.
func (e Event) Attributes() []Attribute {
	out := []Attribute{{"specversion", SpecVersion}, {"id", e.ID}, {"type", e.Type}, {"source", e.Source}}
	if e.Time != "" {
		out = append(out, Attribute{"time", e.Time})
	}
	if e.Subject != "" {
		out = append(out, Attribute{"subject", e.Subject})
	}
	if e.Livemode != nil {
		out = append(out, Attribute{"livemode", strconv.FormatBool(*e.Livemode)})
	}
	return out
}

// Structured is an event in structured mode with a JSON document as its data,
// whose bytes stand in it as they are.
func Structured(e Event, data []byte) (_ []byte, err error) {
	b := append(make([]byte, 0, len(data)+512), `{"specversion":"`+SpecVersion+`"`...)
	for _, a := range [...]Attribute{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}, {"time", e.Time}, {"subject", e.Subject},
		{"datacontenttype", "application/json"}} {
		if a.Value == "" {
			continue
		}
		b = append(append(append(b, `,"`...), a.Name...), `":`...)
		if b, err = appendText(b, a.Value); err != nil {
			return nil, err
		}
	}
	if e.Livemode != nil {
		b = strconv.AppendBool(append(b, `,"livemode":`...), *e.Livemode)
	}
	b = append(append(b, `,"data":`...), data...)
	return append(b, '}'), nil
}

// appendText appends text as a JSON string, without HTML escapes.
func appendText(b []byte, text string) ([]byte, error) {
	if strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) < 0 {
		return append(append(append(b, '"'), text...), '"'), nil
	}
	var s bytes.Buffer
	enc := json.NewEncoder(&s)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return nil, err
	}
	return append(b, bytes.TrimSuffix(s.Bytes(), []byte("\n"))...), nil
}

const upperHex = "0123456789ABCDEF"

// EncodeHeader is the value of a header that holds an attribute: a space, a
// double quote, a percent sign and what is not printable ASCII become
// percent-encoded UTF-8 (CloudEvents HTTP binding 3.1.3.2). Bytes that are no
// UTF-8 become U+FFFD.
func EncodeHeader(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var b strings.Builder
	for _, c := range []byte(text) {
		if isUnescaped(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

func isUnescaped(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }

// Errors of DecodeHeader.
var (
	ErrQuoted = errors.New("the quoted string does not end, or goes on after its end")
	ErrEscape = errors.New("a percent sign is not followed by two hexadecimal digits")
	ErrUTF8   = errors.New("the decoded value is not UTF-8")
)

// DecodeHeader is the attribute that a header holds. It undoes a quoted string
// and then one round of percent-encoding.
func DecodeHeader(value string) (string, error) {
	if strings.HasPrefix(value, `"`) {
		var err error
		if value, err = unquote(value); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '%' {
			b.WriteByte(value[i])
			continue
		}
		if i+2 >= len(value) {
			return "", ErrEscape
		}
		high, ok1 := digit(value[i+1])
		low, ok2 := digit(value[i+2])
		if !ok1 || !ok2 {
			return "", ErrEscape
		}
		b.WriteByte(high<<4 | low)
		i += 2
	}
	if out := b.String(); utf8.ValidString(out) {
		return out, nil
	}
	return "", ErrUTF8
}

// unquote undoes a quoted string (RFC 9110 5.6.4).
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i != len(s)-1 {
				return "", ErrQuoted
			}
			return b.String(), nil
		case '\\':
			if i++; i == len(s) {
				return "", ErrQuoted
			}
		}
		b.WriteByte(s[i])
	}
	return "", ErrQuoted
}

func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

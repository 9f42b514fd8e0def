package mcp

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

const (
	modern  = "2026-07-28"
	newest  = "2025-11-25" // of the legacy ones
	assumed = "2025-03-26" // without any word about it
)

// versions are those that are spoken, newest first.
var versions = []string{modern, newest, "2025-06-18", assumed, "2024-11-05"}

var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// header is a request header: how often it came, and the only value.
type header struct {
	times int
	value string
}

// known reports whether a version is spoken.
func known(version string) bool { return slices.Contains(versions, version) }

// era decides which wire a message is on: by what its body claims, with the
// version header h as a cross-check (2.1).
func (l language) era(m *message, h header) (isModern bool, e *Error) {
	claim := m.meta.get(metaVersion)
	v, isString := m.meta.text(metaVersion)
	mismatch := func() *Error {
		return l.refusal(fasthttp.StatusBadRequest, CodeHeaderMismatch, codeHeader, "MCP-Protocol-Version")
	}
	switch {
	case h.times > 1:
		return false, mismatch()
	case m.response || m.id == nil: // 2.2
		switch {
		case h.times > 0 && isString && h.value != v:
			return false, mismatch()
		case h.times > 0 && !known(h.value):
			return false, l.unsupported(h.value)
		case h.times == 0 && isString && !known(v):
			return false, l.unsupported(v)
		case m.response && (h.value == modern || v == modern):
			return false, l.refusal(fasthttp.StatusBadRequest, CodeInvalidRequest, codeMessage)
		}
		return h.value == modern || v == modern, nil
	case claim == nil && m.method == "initialize":
		if h.value == modern {
			return false, mismatch()
		}
		return false, nil
	case claim == nil && h.times == 0:
		return false, nil
	case claim == nil && h.value == modern:
		missing := metaVersion
		if !isObject(m.meta.get(metaCapabilities)) {
			missing += ", " + metaCapabilities
		}
		return true, l.incomplete(missing)
	case claim == nil && !known(h.value):
		return false, l.unsupported(h.value)
	case claim == nil:
		return false, nil
	case !isString:
		return true, l.incomplete(metaVersion)
	case h.times == 0 || h.value != v:
		return false, mismatch()
	case !known(v):
		return false, l.unsupported(v)
	case v != modern:
		return false, nil
	case !isObject(m.meta.get(metaCapabilities)):
		return true, l.incomplete(metaCapabilities)
	}
	return true, nil
}

func (l language) incomplete(keys string) *Error {
	return l.refusal(fasthttp.StatusBadRequest, CodeInvalidParams, codeEnvelope, keys)
}

func (l language) unsupported(version string) *Error {
	e := l.refusal(fasthttp.StatusBadRequest, CodeVersion, codeVersion, strings.Join(versions, ", "))
	e.Data = map[string]any{"supported": versions, "requested": short(version)}
	return e
}

// envelope checks the members of _meta that are not needed on every request.
func (l language) envelope(m *message) *Error {
	if m.metaOdd {
		return l.invalid("_meta")
	}
	if raw := m.meta.get(metaLogLevel); raw != nil {
		if level, ok := m.meta.text(metaLogLevel); !ok || !slices.Contains(logLevels, level) {
			return l.invalid(metaLogLevel)
		}
	}
	if raw := m.meta.get("progressToken"); raw != nil && !isText(raw) && !isWhole(raw) {
		return l.invalid("progressToken")
	}
	return nil
}

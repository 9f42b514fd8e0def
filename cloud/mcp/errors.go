package mcp

import (
	"errors"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/locale"
)

// Codes of JSON-RPC and of the protocol. A refusal because of HTTP has
// the number of its status.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeHeaderMismatch    = -32020
	CodeMissingCapability = -32021
	CodeVersion           = -32022
)

// Keys of messages.
const (
	codeJSON       = "MALFORMED_JSON"
	codeMessage    = "MCP_INVALID_MESSAGE"
	codeTwice      = "MCP_MEMBER_TWICE"
	codeBatch      = "MCP_BATCH_REFUSED"
	codeMethod     = "MCP_UNKNOWN_METHOD"
	codeVersion    = "MCP_UNSUPPORTED_VERSION"
	codeHeader     = "MCP_HEADER_MISMATCH"
	codeEnvelope   = "MCP_ENVELOPE_INCOMPLETE"
	codeParameter  = "MCP_INVALID_PARAMETER"
	codeCursor     = "MCP_INVALID_CURSOR"
	codeTool       = "MCP_UNKNOWN_TOOL"
	codeState      = "MCP_CONFIRMATION_MISMATCH"
	codeCapability = "MCP_CAPABILITY_MISSING"
	codeOrigin     = "MCP_ORIGIN_REFUSED"
	codeHost       = "MCP_HOST_REFUSED"
	codeHTTPMethod = "MCP_POST_ONLY"
	codeAccept     = "MCP_NOT_ACCEPTABLE"
	codeMedia      = "UNSUPPORTED_MEDIA_TYPE"
	codeTooLarge   = "MCP_BODY_TOO_LARGE"
	codeInternal   = "INTERNAL_ERROR"
)

// language is that of whom an error is for.
type language string

// refusal is an error with a message in the caller's language.
func (l language) refusal(status, code int, key string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: locale.Error(string(l), key, args...)}
}

// invalid is an error about a parameter, on HTTP 200.
func (l language) invalid(name string) *Error {
	return l.refusal(fasthttp.StatusOK, CodeInvalidParams, codeParameter, name)
}

// publicError is the error that the caller may see. Anything but an *Error is logged
// and becomes an internal one, with the id to ask by.
func (s *Server) publicError(r *Request, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	s.log.Error("request failed", "server", s.cfg.Name, "request_id", r.RequestID, "method", r.Method, "tool", r.Tool, "err", err)
	return s.internal(r)
}

func (s *Server) internal(r *Request) *Error {
	if s.cfg.Failures != nil {
		s.cfg.Failures.Inc()
	}
	e := language(r.Language).refusal(fasthttp.StatusOK, CodeInternal, codeInternal) // a 5xx hides the message from most clients
	if r.RequestID != "" {
		e.Data = map[string]string{"request_id": r.RequestID}
	}
	return e
}

// guarded answers a message. A panic of the product ends this answer and no
// other.
func (s *Server) guarded(r *Request, id []byte, f func() answer) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("request panicked", "server", s.cfg.Name, "request_id", r.RequestID, "method", r.Method, "tool", r.Tool, "panic", p, "stack", string(debug.Stack()))
			a = refused(id, s.internal(r))
		}
	}()
	return f()
}

// errorBody is the answer with an error. id is nil when it could not be read.
func errorBody(id []byte, e *Error) []byte {
	b := opened(id, 192+len(e.Message))
	b = append(b, `"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = quote(b, e.Message)
	if e.Data != nil {
		if data, err := encode(e.Data); err == nil {
			b = append(append(b, `,"data":`...), data...)
		}
	}
	return append(b, "}}"...)
}

// opened is the beginning of an answer.
func opened(id []byte, room int) []byte {
	b := append(make([]byte, 0, 40+len(id)+room), `{"jsonrpc":"2.0",`...)
	if id == nil {
		return b
	}
	return append(append(append(b, `"id":`...), id...), ',')
}

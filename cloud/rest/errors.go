package rest

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// errorBody is the body of every error.
type errorBody struct {
	Result    bool                `json:"result"`
	Code      string              `json:"code"`
	ErrorCode string              `json:"error_code"`
	Message   string              `json:"message"`
	Errors    map[string][]string `json:"errors,omitempty"`
	Details   map[string]any      `json:"details,omitempty"`
	RequestID string              `json:"request_id"`
}

// refuse answers with an error. An internal error is logged and becomes
// INTERNAL_ERROR.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	id, _ := ctx.UserValue(idKey).(string)
	var over *catalog.Limited
	if errors.As(err, &over) {
		limitHeaders(ctx, over.State)
	}
	shown := s.publicError(ctx, id, err)
	status := catalog.Status(shown)
	lang := locale.Negotiate(string(ctx.Request.Header.Peek("Accept-Language")))
	body := errorBody{Code: shown.Code, ErrorCode: shown.Code, Message: locale.Error(lang, shown.Code, shown.Args...), Details: shown.Details, RequestID: id}
	if status == fasthttp.StatusUnprocessableEntity {
		body.Errors = locale.Fields(lang, shown.Fields)
	}
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Language", lang)
	h.Set("Vary", "Accept-Language")
	if shown.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(shown.RetryAfter))
	}
	if shown.Kind == cloud.Limited && len(h.Peek(remaining)) > 0 {
		h.Set(remaining, "0") // whichever limit it was
	}
	if shown.Kind == cloud.Unauthenticated && shown.Code != "INVALID_CREDENTIALS" {
		h.Set("WWW-Authenticate", "Bearer")
	}
	b, _ := encode(withMembers(body, shown.Members)) // plain fields and details of our own always encode
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.SetBody(b)
}

// withMembers is body with further members.
func withMembers(body errorBody, more map[string]any) any {
	if len(more) == 0 {
		return body
	}
	all := map[string]any{"result": body.Result, "code": body.Code, "error_code": body.ErrorCode, "message": body.Message, "request_id": body.RequestID}
	if len(body.Errors) > 0 {
		all["errors"] = body.Errors
	}
	if len(body.Details) > 0 {
		all["details"] = body.Details
	}
	maps.Copy(all, more)
	return all
}

// publicError is the error that the caller may see.
func (s *Server) publicError(ctx *fasthttp.RequestCtx, id string, err error) *cloud.Error {
	if cloud.Shown(err) == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		err = ended(err)
	}
	e, ours := cloud.Answered(err)
	if ours {
		s.log.Error("request failed", "request_id", id, "method", string(ctx.Method()), "path", loggedPath(ctx), "err", err)
	}
	return e
}

// longSegment is from how many characters on a part of a path may be a secret, such as the
// token of an address that works once.
const longSegment = 32

// loggedPath is the path of a request without what may be secret in it.
func loggedPath(ctx *fasthttp.RequestCtx) string {
	parts := strings.Split(string(ctx.Path()), "/")
	for i, p := range parts {
		if len(p) >= longSegment {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// unreadable answers what is no request: bad framing, a body over the limit, a
// header over the limit, a sender that is too slow. The connection is closed.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, err error) {
	begun := time.Now()
	ctx.SetUserValue(operationKey{}, opUnreadable)
	defer func() { s.observe(ctx, begun) }()
	ctx.Response.Header.Set("X-Request-Id", requestID(ctx))
	full := s.room.release(&ctx.Request.Header)
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		s.slow.mark(ctx.Conn().RemoteAddr())
		if full {
			s.refuse(ctx, &cloud.Error{Kind: cloud.Unavailable, Code: "MODULE_UNAVAILABLE", RetryAfter: 1})
			return
		}
		for _, m := range s.cfg.Mounts {
			if m.TooLarge != nil && sameShape(m.Path, string(ctx.Path())) {
				m.TooLarge(ctx)
				return
			}
		}
		if err := s.unknown(&ctx.Request.Header); err != nil {
			s.refuse(ctx, err)
			return
		}
		code := "PAYLOAD_TOO_LARGE"
		if strings.HasPrefix(string(ctx.Path()), "/api/v1/otep/") {
			code = "OTEP_" + code
		}
		s.refuse(ctx, cloud.E(cloud.TooLarge, code))
		return
	}
	s.refuse(ctx, cloud.E(cloud.Malformed, "BAD_REQUEST"))
}

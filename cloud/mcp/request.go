package mcp

import (
	"bytes"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// headerTrace is the header, and the member of _meta, that carries a trace (W3C Trace
// Context 3.2).
const headerTrace = "traceparent"

// request is what Config.Admit gets to know, copied.
func (s *Server) request(ctx *fasthttp.RequestCtx, l language) Request {
	h := &ctx.Request.Header
	r := Request{
		Authorization: joined(h, "Authorization"), Profile: optional(h, "X-MCP-Profile"), Scopes: optional(h, "X-MCP-Scopes"),
		DryRun: on(h, "X-MCP-Dry-Run"), Approval: on(h, "X-MCP-Require-Approval"),
		Path: string(ctx.Path()), BaseURL: BaseURL(ctx, s.cfg.Public), IP: ctx.RemoteIP().String(), Language: string(l), Trace: string(h.Peek(headerTrace)),
	}
	if s.cfg.RequestID != nil {
		r.RequestID = s.cfg.RequestID(ctx)
	}
	return r
}

// joined is all values of a header as one list.
func joined(h *fasthttp.RequestHeader, name string) string {
	all := h.PeekAll(name)
	if len(all) == 1 {
		return strings.TrimSpace(string(all[0]))
	}
	return string(bytes.Join(all, []byte(", ")))
}

// optional is a header that may be missing, which is something else than empty.
func optional(h *fasthttp.RequestHeader, name string) *string {
	if len(h.PeekAll(name)) == 0 {
		return nil
	}
	v := joined(h, name)
	return &v
}

// on reads a flag. A value that is neither yes nor no is yes, the safe side.
func on(h *fasthttp.RequestHeader, name string) bool {
	return slices.ContainsFunc(h.PeekAll(name), func(b []byte) bool {
		switch strings.ToLower(string(bytes.Trim(b, " \t"))) {
		case "", "0", "false", "off", "no":
			return false
		}
		return true
	})
}

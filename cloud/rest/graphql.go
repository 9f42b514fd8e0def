package rest

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/span"
)

// GraphQLRequest is one request for the other face at its address here.
type GraphQLRequest struct {
	Body   []byte
	Accept string
	Key    string // Idempotency-Key
	Always bool   // as there
	Tool   bool   // as there
	catalog.Who
}

// GraphQLResponse is its answer.
type GraphQLResponse struct {
	Status int
	Type   string
	Body   []byte
	// Replayed is set for the first answer of a call that was repeated.
	Replayed bool
	// Unknown are variables that the operation does not declare, sorted.
	Unknown []string
	// Account is that of the caller, 0 when it is not known.
	Account cloud.AccountID
}

// graphQL hands a request to the face that answers GraphQL.
func (s *Server) graphQL(ctx *fasthttp.RequestCtx) {
	kind, _, _ := strings.Cut(string(ctx.Request.Header.ContentType()), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") || len(ctx.Request.Header.ContentEncoding()) > 0 {
		s.refuse(ctx, cloud.E(cloud.Malformed, "UNSUPPORTED_MEDIA_TYPE"))
		return
	}
	out := s.cfg.GraphQL(s.ctx, GraphQLRequest{Body: bytes.Clone(ctx.Request.Body()), Accept: string(ctx.Request.Header.Peek("Accept")),
		Key: string(ctx.Request.Header.Peek("Idempotency-Key")), Who: s.who(ctx)})
	peer.SetAccount(ctx, int64(out.Account))
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.Header.Set("Vary", "Accept, Accept-Language, Authorization")
	if out.Replayed {
		ctx.Response.Header.Set("Idempotent-Replayed", "true")
	}
	nameUnknown(ctx, out.Unknown)
	ctx.SetStatusCode(out.Status)
	ctx.SetContentType(out.Type)
	if !setCompressed(ctx, out.Body) {
		ctx.SetBody(out.Body)
	}
}

// who is what a request tells of its caller.
func (s *Server) who(ctx *fasthttp.RequestCtx) catalog.Who {
	id, _ := ctx.UserValue(idKey).(string)
	return catalog.Who{Surface: "api", RequestID: id, Trace: string(ctx.Request.Header.Peek(span.HeaderName)), Authorization: string(ctx.Request.Header.Peek("Authorization")), IP: ctx.RemoteIP().String(),
		Language: locale.Negotiate(string(ctx.Request.Header.Peek("Accept-Language"))), BaseURL: s.base(ctx), PublicURL: peer.Public(ctx, s.cfg.BaseURL)}
}

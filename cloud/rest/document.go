package rest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
)

// DocumentQuery is what a document may depend on.
type DocumentQuery struct {
	Base string // own address that the caller reaches, without a slash at the end
	// Value is a parameter of the query, "" when it is not there.
	Value func(name string) string
}

// Document is an answer that is prepared and the same for everybody. Its bytes
// are not written to.
type Document struct {
	Body []byte
	Type string
	Tag  string // of its ETag
	Name string // of the file to save it as; "" to show it
	// Whole is never compressed, so that the tag on the wire is always Tag.
	Whole bool
}

// document answers with what every caller may read. It counts as an anonymous
// call, with a token or without.
func (s *Server) document(ctx *fasthttp.RequestCtx, m Mount) {
	anyOrigin(ctx)
	state := s.cfg.Pipeline.TakeAnonymous(catalog.Who{IP: ctx.RemoteIP().String()})
	if limitHeaders(ctx, state); !state.OK {
		s.refuse(ctx, &catalog.Limited{State: state})
		return
	}
	d, err := m.Document(DocumentQuery{Base: s.base(ctx), Value: func(name string) string { return string(ctx.QueryArgs().Peek(name)) }})
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	r := reply{status: fasthttp.StatusOK, body: d.Body, kind: d.Type, etag: true, tag: d.Tag, headers: [][2]string{{"Cache-Control", "public, max-age=300"}}}
	if d.Name != "" {
		r.headers = append(r.headers, [2]string{"Content-Disposition", `attachment; filename="` + d.Name + `"`})
	}
	s.write(ctx, &route{Operation: &catalog.Operation{Secret: d.Whole}}, r)
}

// answerMount answers as a Mount says.
func (s *Server) answerMount(ctx *fasthttp.RequestCtx, m Mount) {
	c, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	body, err := m.Answer(c, ctx)
	r := reply{status: fasthttp.StatusOK, kind: "application/json", etag: true, err: err}
	if err == nil {
		if r.body, err = json.Marshal(body); err != nil {
			r.err = fmt.Errorf("encode answer of %s: %w", m.Path, err)
		}
	}
	s.write(ctx, &route{Operation: &catalog.Operation{Secret: true}}, r)
}

func anyOrigin(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.Response.Header.Set("Access-Control-Expose-Headers", "ETag")
}

// preflight lets a browser's page of any origin ask.
func preflight(ctx *fasthttp.RequestCtx) {
	anyOrigin(ctx)
	h := &ctx.Response.Header
	h.Set("Allow", "GET, HEAD, OPTIONS")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Accept-Language, If-None-Match, X-Request-Id")
	h.Set("Access-Control-Max-Age", "86400")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

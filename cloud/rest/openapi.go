package rest

import (
	"bytes"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
)

// openAPI answers with the description of the REST addresses. It counts as a call
// without a token, for every caller.
func (s *Server) openAPI(ctx *fasthttp.RequestCtx) {
	state := s.cfg.Pipeline.TakeAnonymous(catalog.Who{IP: ctx.RemoteIP().String()})
	if limitHeaders(ctx, state); !state.OK {
		s.refuse(ctx, &catalog.Limited{State: state})
		return
	}
	r := reply{status: fasthttp.StatusOK, body: s.describe(s.base(ctx)), etag: true, headers: [][2]string{{"Cache-Control", "public, max-age=300"}}}
	s.write(ctx, &route{Operation: &catalog.Operation{}}, r)
}

// someBase stands in the kept description where the caller's own address goes.
const someBase = "https://base.invalid"

// describe is the description for callers that reach us at base. It is made at the
// first call and kept for all of them.
func (s *Server) describe(base string) []byte {
	s.descriptionOnce.Do(func() { s.description = s.cfg.Catalog.OpenAPI(someBase, s.cfg.Version) })
	text, err := json.Marshal(base)
	if err != nil {
		panic("rest: an address has no encoding: " + err.Error()) // every string has one
	}
	return bytes.ReplaceAll(s.description, []byte(`"`+someBase+`"`), text)
}

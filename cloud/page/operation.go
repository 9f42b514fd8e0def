package page

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/peer"
)

// may reports whether a visitor may call an operation of the interface.
func (p *kit) may(c context.Context, v visitor, operation string) bool {
	return p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(operation), v.c) == nil
}

// reader is the visitor of a page that shows what an operation of the interface
// answers. For a visitor who may not call it the page says what is missing.
func (p *kit) reader(c context.Context, ctx *fasthttp.RequestCtx, operation string) (v visitor, ok bool) {
	if v, ok = p.visitor(c, ctx); !ok {
		return v, false
	}
	if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(operation), v.c); err != nil {
		p.refused(ctx, v, err)
		return v, false
	}
	return v, true
}

// run runs an operation of the interface for a visitor, as it runs for a caller
// by REST: with the token of the session, the limits of that token,
// account type and scopes, and an audit line. in are its members by name.
func run[Out any](c context.Context, ctx *fasthttp.RequestCtx, p *kit, v visitor, operation string, in map[string]any) (Out, error) {
	return runAs[Out](c, ctx, p, v.Lang, sessionToken(ctx), operation, in)
}

// runAs runs an operation with a token.
func runAs[Out any](c context.Context, ctx *fasthttp.RequestCtx, p *kit, lang, token, operation string, in map[string]any) (out Out, err error) {
	a, err := p.answer(c, ctx, lang, token, operation, in)
	return answered[Out](operation, a, err)
}

// answered is what an operation answers, as its own type.
func answered[Out any](operation string, a catalog.Answer, err error) (out Out, _ error) {
	if err != nil {
		return out, err
	}
	out, ok := a.Body.(Out)
	if !ok {
		return out, fmt.Errorf("operation %s answers %T", operation, a.Body)
	}
	return out, nil
}

// base is our own address as the caller reaches it: the configured one, else the one
// that was asked.
func (p *kit) base(ctx *fasthttp.RequestCtx) string {
	if p.cfg.BaseURL != "" {
		return strings.TrimRight(p.cfg.BaseURL, "/")
	}
	return peer.Asked(ctx)
}

// answer is what an operation answers to a token.
func (p *kit) answer(c context.Context, ctx *fasthttp.RequestCtx, lang, token, operation string, in map[string]any) (catalog.Answer, error) {
	return p.answerTo(c, p.who(ctx, lang, token), operation, in, catalog.Key{})
}

// who is the caller of a request's operations.
func (p *kit) who(ctx *fasthttp.RequestCtx, lang, token string) catalog.Who {
	return catalog.Who{Authorization: authorization(token), IP: ctx.RemoteIP().String(), Language: lang, BaseURL: p.base(ctx), PublicURL: peer.Public(ctx, p.cfg.BaseURL), Surface: "web"}
}

// visitorCaller is the caller of a visitor's operations: the session of the request.
func visitorCaller(p *kit, ctx *fasthttp.RequestCtx, v visitor) catalog.Who {
	return p.who(ctx, v.Lang, sessionToken(ctx))
}

// sessionToken is the token of the console's session; "" without one.
func sessionToken(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Request.Header.Cookie(forStaff.session))
}

// addFields adds to a problem those of members, by their words, in the order of their names.
func addFields(lang, problem string, fields map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		problem += " " + namedOnce(memberWords(lang, name), fields[name])
	}
	return problem
}

// namedOnce is a message with the name of what it is about before it, unless it begins with
// that name.
func namedOnce(name, message string) string {
	if name == "" || strings.HasPrefix(strings.ToLower(message), strings.ToLower(name)) {
		return message
	}
	return name + ": " + message
}

// answerTo is what an operation answers to a caller. A repeat with the same key gets
// the answer of the first call.
func (p *kit) answerTo(c context.Context, w catalog.Who, operation string, in map[string]any, k catalog.Key) (catalog.Answer, error) {
	return answerBound(c, p, w, operation, k, func(o *catalog.Operation) catalog.Bind { return o.Values(in) })
}

// answerBound is answerTo with an input that bind makes.
func answerBound(c context.Context, p *kit, w catalog.Who, operation string, k catalog.Key, bind func(*catalog.Operation) catalog.Bind) (catalog.Answer, error) {
	o := p.cfg.Catalog.Find(operation)
	if o == nil {
		return catalog.Answer{}, cloud.E(cloud.NotFound, "NOT_FOUND")
	}
	c, caller, _, err := p.cfg.Pipeline.Admit(c, o, w)
	if err != nil {
		return catalog.Answer{}, err
	}
	return p.cfg.Pipeline.Run(c, o, caller, k, bind(o))
}

// authorization is the header of a token; "" for none.
func authorization(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

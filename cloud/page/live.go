package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/page/stream"
)

// livePath is where pages get what changes on them: a page holds a ticket that names its
// topics. As server-sent events each is {topic, at, sections: {name: html}}; a request
// that accepts JSON alone is answered once, with an entity tag.
const livePath = "/live"

// livePages keep open pages up to date.
type livePages struct{ drawnPages }

func (p livePages) tickets() tickets { return tickets{p.cfg.DigestKey} }

// Committed takes what a decision changed: pages that show it are kept up to date. It
// never waits.
func (p *Pages) Committed(ch *cloud.Changes) { p.hub.Committed(ch.Touches()) }

// Notice takes what another node changed, as Committed does. It never waits.
func (p *Pages) Notice(changed []cloud.Touch) { p.hub.Committed(changed) }

// Live counts what was done for live pages.
func (p *Pages) Live() stream.Stats { return p.hub.Stats() }

// ownerOf is the business of a cabinet.
func (p livePages) ownerOf(c context.Context, d cloud.DeviceID) (b cloud.BusinessID, err error) {
	err = p.cfg.Store.Look(c, func(v cloud.View) error {
		x, err := v.Device(d)
		b = x.BusinessID
		return err
	})
	return b, err
}

// streamTopics streams the topics of a page.
func (p livePages) streamTopics(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	topics, about, ok := p.followed(c, ctx)
	if !ok {
		return
	}
	if !strings.Contains(string(ctx.Request.Header.Peek("Accept")), "text/event-stream") {
		p.poll(c, ctx, topics)
		return
	}
	since := string(ctx.Request.Header.Peek("Last-Event-ID"))
	if since == "" {
		since = about.Since
	}
	r, err := p.hub.Enter(about.session, about.account, since, topics)
	if err != nil {
		ctx.Response.Header.Set("Retry-After", "30")
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		return
	}
	ctx.SetContentType("text/event-stream")
	ctx.Response.Header.Set("X-Accel-Buffering", "no")
	ctx.Response.Header.Set("Connection", "close")
	ctx.Response.Header.SetContentLength(-2) // until the connection ends
	head := bytes.Clone(ctx.Response.Header.Header())
	done := ctx.Done()
	// A stream takes its connection over: it needs no buffers and no place among the
	// server's running requests.
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		if u, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
			c = u.UnsafeConn()
		}
		r.Serve(c, head, done, p.log)
	})
}

// follower is who asks for topics.
type follower struct {
	ticket
	session string // of the hub's count; "" for visitors of a tracking page
	account cloud.AccountID
}

// followed are the topics of a request's ticket. Otherwise it has answered: 401 without
// a session, 403 for a ticket that is not good for it.
func (p livePages) followed(c context.Context, ctx *fasthttp.RequestCtx) (topics []stream.Topic, f follower, ok bool) {
	text := string(ctx.QueryArgs().Peek("t"))
	var s auth.Session
	about := visitorTicket
	if !strings.HasPrefix(text, visitorTicket) {
		var err error
		if s, ok, err = p.session(c, ctx, &forWork); err != nil {
			p.trouble(ctx, err)
			return nil, f, false
		}
		if !ok {
			ctx.SetStatusCode(fasthttp.StatusUnauthorized)
			return nil, f, false
		}
		about = hex.EncodeToString(s.Token.Hash[:])
		f.session, f.account = about, s.Account.ID
	}
	if f.ticket, ok = p.tickets().open(about, text, time.Now()); !ok {
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		return nil, f, false
	}
	w, err := p.watcherOf(c, s, f.ticket)
	for i := 0; err == nil && i < len(f.Topics); i++ {
		var t stream.Topic
		if t, err = p.topicOf(c, w, f.Topics[i]); err == nil {
			topics = append(topics, t)
		}
	}
	switch {
	case err == nil:
		return topics, f, true
	case cloud.Shown(err) != nil, errors.Is(err, stream.ErrEnded), errors.Is(err, cloud.ErrNotFound):
		ctx.SetStatusCode(fasthttp.StatusForbidden)
	default:
		p.trouble(ctx, err)
	}
	return nil, f, false
}

// poll answers what topics show now. A page that has it already gets 304.
func (p livePages) poll(c context.Context, ctx *fasthttp.RequestCtx, topics []stream.Topic) {
	answers, err := p.hub.Poll(c, topics)
	if errors.Is(err, stream.ErrEnded) {
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		return
	}
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	type shownTopic struct {
		Topic    string            `json:"topic"`
		Sections map[string]string `json:"sections"`
	}
	out := make([]shownTopic, len(answers))
	for i, a := range answers {
		out[i] = shownTopic{a.Topic, map[string]string{}}
		for _, x := range a.Sections {
			out[i].Sections[x.Name] = x.HTML
		}
	}
	body, err := json.Marshal(out) // in the order of names
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	ctx.Response.Header.Set("ETag", tag)
	if string(ctx.Request.Header.Peek("If-None-Match")) == tag {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

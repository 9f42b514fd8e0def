package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/peer"
)

// idKey is where a request's id waits for its answer.
const idKey = "postern.request-id"

// requestID is the caller's own id when it is usable, else a new one.
func requestID(ctx *fasthttp.RequestCtx) string {
	id := string(ctx.Request.Header.Peek("X-Request-Id"))
	if !usableID(id) {
		id = uuid.NewString()
	}
	ctx.SetUserValue(idKey, id)
	return id
}

func usableID(id string) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func stack() string { return string(debug.Stack()) }

// serve takes one request to its operation and writes the answer. A kept answer
// needs neither a context nor a token.
func (s *Server) serve(ctx *fasthttp.RequestCtx, op *route) {
	who := s.who(ctx)
	if op.Types == nil { // what everybody may ask
		number, _ := ctx.UserValue("tracking_number").(string)
		who.Parcel = cloud.NumberKey(strings.TrimSpace(number))
	}
	var key []byte
	if op.Kept && who.Authorization == "" {
		key = answerKey(ctx, who)
		if r, ok := s.answers.find(key, time.Now()); ok {
			state, err := s.cfg.Pipeline.LookAgain(who, r.about.Shipment)
			limitHeaders(ctx, state)
			r.err = err
			s.write(ctx, op, r)
			return
		}
	}
	c, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout+op.Wait)
	defer cancel()
	c, caller, state, err := s.cfg.Pipeline.Admit(c, op.Operation, who)
	peer.SetAccount(ctx, int64(caller.Account.ID))
	limitHeaders(ctx, state)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	if op.Kept && key == nil {
		if key = s.accountKey(ctx, who, caller); key != nil {
			if r, ok := s.answers.find(key, time.Now()); ok {
				s.write(ctx, op, r)
				return
			}
		}
	}
	q, err := read(ctx, op)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	if op.HasBody() {
		nameUnknown(ctx, op.Unknown(q.body))
	}
	var begun uint64
	if key != nil {
		begun = s.answers.begin()
	}
	r := s.answer(c, op, caller, catalog.Key{Value: string(ctx.Request.Header.Peek("Idempotency-Key")), Address: op.Method + " " + string(ctx.Path()), Request: q.body}, q)
	if who.Parcel != "" && caller.Anonymous() { // the operation counted
		limitHeaders(ctx, s.cfg.Pipeline.Lookups().State(who.IP, time.Now()))
	}
	if key != nil && r.about.Shipment != 0 && (caller.Anonymous() || r.about.Named) {
		r.tag = tagOf(r.body)
		s.answers.store(string(key), r, begun, time.Now())
	}
	if r.live != nil {
		s.serveEvents(ctx, op.Operation, who, r.live)
		return
	}
	s.write(ctx, op, r)
}

// base is our own address as the caller reaches it: the configured one, else
// the one that was asked.
func (s *Server) base(ctx *fasthttp.RequestCtx) string {
	if s.cfg.BaseURL != "" {
		return strings.TrimRight(s.cfg.BaseURL, "/")
	}
	return peer.Asked(ctx)
}

const remaining = "X-RateLimit-Remaining"

func limitHeaders(ctx *fasthttp.RequestCtx, st limit.State) {
	if st.Limit == 0 {
		return
	}
	h := &ctx.Response.Header
	h.Set("X-RateLimit-Limit", strconv.Itoa(st.Limit))
	h.Set(remaining, strconv.Itoa(st.Remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(st.Reset.Unix(), 10))
}

// read copies what an operation needs out of the request.
func read(ctx *fasthttp.RequestCtx, op *route) (*query, error) {
	q := &query{}
	if op.Upload() != nil {
		var err error
		if q.form, err = readForm(ctx); err != nil {
			return nil, err
		}
		q.body = q.form.digest()
	} else {
		q.body = bytes.Clone(ctx.Request.Body())
	}
	if op.Upload() == nil && len(q.body) > 0 {
		kind, _, _ := strings.Cut(string(ctx.Request.Header.ContentType()), ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind != "" && kind != "application/json" && !slices.Contains(op.Media, kind) {
			return nil, cloud.E(cloud.Malformed, "UNSUPPORTED_MEDIA_TYPE")
		}
		if len(ctx.Request.Header.ContentEncoding()) > 0 {
			return nil, cloud.E(cloud.Malformed, "UNSUPPORTED_MEDIA_TYPE")
		}
	}
	params := map[string]string{}
	var bad error
	ctx.VisitUserValuesAll(func(k, v any) {
		name, ok1 := k.(string)
		raw, ok2 := v.(string)
		if !ok1 || !ok2 || name == idKey {
			return
		}
		text, err := url.PathUnescape(raw)
		if err != nil {
			bad = cloud.E(cloud.Malformed, "BAD_REQUEST")
		}
		params[name] = strings.Clone(text)
	})
	args := map[string]string{}
	for k, v := range ctx.QueryArgs().All() {
		if _, twice := args[string(k)]; !twice {
			args[string(k)] = string(v)
		}
	}
	q.path = func(name string) string { return params[name] }
	args["*"] = string(ctx.QueryArgs().QueryString())
	q.arg = func(name string) string { return args[name] }
	q.header = func(name string) string { return string(ctx.Request.Header.Peek(name)) }
	return q, bad
}

// reply is an answer as it goes out.
type reply struct {
	status  int
	body    []byte
	stream  *catalog.Stream // in place of body
	live    catalog.EventStream
	headers [][2]string
	kind    string
	etag    bool
	tag     string // of body, when it is known
	about   cloud.AnswerSubject
	err     error // of which body is made later, in the caller's language
	again   bool  // the first answer of a call that was repeated
}

// answer calls an operation. Its panics are caught where routes are guarded.
func (s *Server) answer(c context.Context, op *route, caller cloud.Caller, k catalog.Key, q *query) reply {
	a, err := s.cfg.Pipeline.Run(c, op.Operation, caller, k, op.bind(q))
	var held *catalog.Held
	if errors.As(err, &held) {
		if body, err := encode(held.Body); err == nil {
			return reply{status: held.Status(), body: body}
		}
	}
	if err != nil {
		if ctxErr := context.Cause(c); ctxErr != nil && cloud.Shown(err) == nil {
			err = ended(ctxErr)
		}
		return reply{err: err, again: a.Replayed}
	}
	if a.Status == 0 {
		a.Status = cmp.Or(op.Status, fasthttp.StatusOK)
	}
	if file, ok := a.Body.(catalog.Stream); ok {
		return reply{status: a.Status, stream: &file, headers: a.Headers, kind: a.Type}
	}
	if live, ok := a.Body.(catalog.EventStream); ok {
		return reply{status: a.Status, live: live}
	}
	body, err := encode(a.Body)
	if err != nil {
		return reply{err: fmt.Errorf("encode answer of %s: %w", op.Name, err)}
	}
	return reply{status: a.Status, body: body, headers: a.Headers, kind: a.Type, etag: a.ETag || a.Tag != "", tag: a.Tag, about: a.About, again: a.Replayed}
}

// ended is the error of a request whose context ended first.
func ended(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &cloud.Error{Kind: cloud.Unavailable, Code: "MODULE_UNAVAILABLE", RetryAfter: 5, Err: cause}
	}
	return &cloud.Error{Kind: cloud.Unavailable, Code: "MAINTENANCE", RetryAfter: 5, Err: cause}
}

// encode is JSON with nothing escaped for HTML.
func encode(v any) ([]byte, error) {
	if a, ok := v.(interface {
		AppendJSON([]byte) ([]byte, error)
	}); ok { // knows how to write itself, or that it does not
		if b, err := a.AppendJSON(make([]byte, 0, 4<<10)); err == nil {
			return append(b, '\n'), nil
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:12])
}

const gzipFrom = 1 << 10 // bytes

// write sends a reply.
func (s *Server) write(ctx *fasthttp.RequestCtx, op *route, r reply) {
	if r.again {
		ctx.Response.Header.Set("Idempotent-Replayed", "true")
	}
	if r.err != nil {
		s.refuse(ctx, r.err)
		return
	}
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-store")
	for _, x := range r.headers {
		h.Set(x[0], x[1])
	}
	ctx.SetStatusCode(r.status)
	if ctx.SetContentType("application/json; charset=utf-8"); r.kind != "" {
		ctx.SetContentType(r.kind)
	}
	if r.stream != nil {
		ctx.SetBodyStream(r.stream, int(r.stream.Size))
		return
	}
	tag := ""
	if r.etag {
		if tag = r.tag; tag == "" {
			tag = tagOf(r.body)
		}
		if matches(string(ctx.Request.Header.Peek("If-None-Match")), tag) {
			h.Set("ETag", `"`+tag+`"`)
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
	}
	if !op.Secret && setCompressed(ctx, r.body) {
		tag += gzipMark(tag)
	} else {
		ctx.SetBody(r.body)
	}
	if tag != "" {
		h.Set("ETag", `"`+tag+`"`)
	}
}

// setCompressed sets the body of an answer, compressed, and reports whether it did: it leaves
// short ones, and callers that take nothing compressed.
func setCompressed(ctx *fasthttp.RequestCtx, body []byte) bool {
	if len(body) < gzipFrom || !ctx.Request.Header.HasAcceptEncoding("gzip") {
		return false
	}
	ctx.Response.Header.Set("Content-Encoding", "gzip")
	ctx.Response.Header.Add("Vary", "Accept-Encoding")
	ctx.SetBody(fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestSpeed))
	return true
}

// gzipMark sets the compressed form's tag apart (RFC 9110 8.8.3.3).
func gzipMark(tag string) string {
	if tag == "" {
		return ""
	}
	return "-gzip"
}

// matches reports whether an If-None-Match header holds tag, in either form.
func matches(header, tag string) bool {
	if strings.TrimSpace(header) == "*" {
		return true
	}
	for item := range strings.SplitSeq(header, ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		item = strings.TrimSuffix(strings.Trim(item, `"`), "-gzip")
		if item == tag {
			return true
		}
	}
	return false
}

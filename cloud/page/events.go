package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// Pace of a stream.
const (
	streamPace  = 200 * time.Millisecond // between two updates
	streamBeat  = 15 * time.Second       // heartbeat, and a look without a notice
	streamWrite = 10 * time.Second       // for one write
)

// sections of the console that are told apart in updates.
var sections = []string{"cabinets", "openings", "exceptions", "deliveries", "webhooks", "waiting"}

// events streams the console's sections as they change. It ends with the
// server, with the session, or when the browser leaves.
func (p consolePages) events(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	s, ok, err := p.session(c, ctx, &forStaff)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	if !ok {
		ctx.SetStatusCode(fasthttp.StatusUnauthorized)
		return
	}
	select {
	case p.streams <- struct{}{}:
	default:
		ctx.Response.Header.Set("Retry-After", "5")
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		return
	}
	st := &stream{p: p, frame: p.frame(ctx, "console.title"), hash: s.Token.Hash, done: ctx.Done(), conn: ctx.Conn(), last: map[string][]byte{}}
	ctx.SetContentType("text/event-stream")
	ctx.Response.Header.Set("X-Accel-Buffering", "no")
	ctx.Response.ImmediateHeaderFlush = true
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer func() { <-p.streams }()
		defer func() {
			if e := recover(); e != nil {
				p.log.Error("stream panicked", "panic", e)
			}
		}()
		st.run(w)
	})
}

// stream is one browser that follows the console.
type stream struct {
	p     consolePages
	frame frame
	hash  [32]byte
	done  <-chan struct{} // closed when the server stops
	conn  net.Conn
	last  map[string][]byte // section as it was sent
}

func (s *stream) run(w *bufio.Writer) {
	changed, stop := s.p.cfg.Listen()
	defer stop()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	if _, err := w.WriteString("retry: 2000\n\n"); err != nil {
		return
	}
	for {
		if !s.update(w) {
			return
		}
		if !s.pause() {
			return
		}
		select {
		case <-s.done:
			return
		case <-changed:
		case <-beat.C:
			if !s.alive() {
				return
			}
			if _, err := w.WriteString(": beat\n\n"); err != nil {
				return
			}
		}
	}
}

// pause keeps the pace. It reports false when the server stops.
func (s *stream) pause() bool {
	t := time.NewTimer(streamPace)
	defer t.Stop()
	select {
	case <-s.done:
		return false
	case <-t.C:
		return true
	}
}

// alive reports whether the session still holds.
func (s *stream) alive() bool {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	_, err := s.session(c)
	return err == nil
}

var errSessionOver = errors.New("the session is over")

// session is the session that the stream belongs to, with the rights that its
// account has now.
func (s *stream) session(c context.Context) (auth.Session, error) {
	x, err := s.p.cfg.FindToken(c, s.hash)
	if err == nil && !(auth.Valid(x.Token, time.Now()) && x.Account.Enabled && !x.Suspended()) {
		err = errSessionOver
	}
	return x, err
}

// update sends the sections that look different from what was sent. It
// reports false when the browser is gone.
func (s *stream) update(w *bufio.Writer) bool {
	parts, err := s.read()
	if errors.Is(err, errSessionOver) || errors.Is(err, cloud.ErrNotFound) {
		return false
	}
	if err != nil {
		s.p.log.Error("read console", "err", err)
		return false // the browser comes back
	}
	news := map[string]string{"made": s.frame.Time(time.Now()).Text}
	for name, html := range parts {
		if last, sent := s.last[name]; !sent || !bytes.Equal(last, html) {
			news[name], s.last[name] = string(html), html
		}
	}
	if len(news) > 1 {
		if !writeNews(w, news) {
			return false
		}
	}
	// The server set one deadline for the whole answer; each write has its own.
	if s.conn != nil && s.conn.SetWriteDeadline(time.Now().Add(streamBeat+streamWrite)) != nil {
		return false
	}
	return w.Flush() == nil
}

// writeNews writes one event. Its data is one line, as JSON escapes line ends.
func writeNews(w *bufio.Writer, news map[string]string) bool {
	if _, err := w.WriteString("event: board\ndata: "); err != nil {
		return false
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if e.Encode(news) != nil { // ends the line
		return false
	}
	return w.WriteByte('\n') == nil
}

func (s *stream) read() (map[string][]byte, error) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	f := s.frame
	f.Made = time.Now().UTC()
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	b, err := s.p.board(c, f, caller(x, f.Lang, s.p.cfg.BaseURL))
	if err != nil {
		return nil, err
	}
	s.frame.Zone = b.Zone
	out := make(map[string][]byte, len(sections))
	for _, name := range sections {
		var buf bytes.Buffer
		if err := s.p.tmpl.ExecuteTemplate(&buf, name, b); err != nil {
			return nil, fmt.Errorf("render section %s: %w", name, err)
		}
		out[name] = buf.Bytes()
	}
	return out, nil
}

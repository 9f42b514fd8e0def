// Package localpage serves a page of this computer to browsers of this computer: its
// guard against pages of other origins, small JSON bodies, and a stream of states.
package localpage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/postern-io/postern/internal/loopback"
)

const (
	keepAlive = 15 * time.Second // between signs of life on a stream
	writeWait = 10 * time.Second // for one message of a stream
	stopWait  = 2 * time.Second  // for requests that run when the page stops
)

// Policy lets the page load what the program brings, talk to it, and nothing
// else: no inline script, no other host, no frame around it, no form that goes
// anywhere.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Guard stands before a page: it sets the headers and refuses requests that a page
// of another origin could have caused.
type Guard struct {
	Camera bool // the page may use one
	// Body is the media type of bodies to a path, and how many bytes they may have.
	Body func(path string) (mediaType string, most int64)
	// Refuse answers a request that is refused: 421 for the name of another host, 400
	// for a query, which no page has, so that no code gets into an address, 415 for a
	// body of another media type.
	Refuse func(w http.ResponseWriter, r *http.Request, status int)
}

// Before is next behind the guard.
func (g Guard) Before(next http.Handler) http.Handler {
	features := "camera=(), microphone=(), geolocation=()"
	if g.Camera {
		features = "camera=(self), microphone=(), geolocation=()"
	}
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", features)
		h.Set("Cache-Control", "no-store")
		// A name of another host that was pointed at the loopback would be the
		// same origin to a browser.
		if !loopback.IsHost(r.Host) {
			g.Refuse(w, r, http.StatusMisdirectedRequest)
			return
		}
		if r.URL.RawQuery != "" {
			g.Refuse(w, r, http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPost {
			want, most := g.Body(r.URL.Path)
			if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != want {
				g.Refuse(w, r, http.StatusUnsupportedMediaType)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
		}
		next.ServeHTTP(w, r)
	})
}

// Read decodes a body: one JSON value without unknown members.
func Read(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// Reply answers with v as JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the page has gone
}

// Stream sends view as events of type "state", at once and whenever a look, every so
// long, finds that it has changed, and each notice as an event of type "notice". It
// returns when the page has gone or the request's context ends.
func Stream[N any](w http.ResponseWriter, r *http.Request, every time.Duration, view func() any, notices <-chan N) {
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{w: w, rc: http.NewResponseController(w)}
	_ = s.rc.SetReadDeadline(time.Time{}) // the page says no more; tests' recorders have none
	look, alive := time.NewTicker(every), time.NewTicker(keepAlive)
	defer look.Stop()
	defer alive.Stop()
	for sent := s.state(view()); sent; {
		select {
		case <-r.Context().Done():
			return
		case <-look.C:
			sent = s.state(view())
		case <-alive.C:
			sent = s.send(": still here\n\n")
		case n := <-notices:
			b, _ := json.Marshal(n) // plain fields always encode
			sent = s.send("event: notice\ndata: %s\n\n", b)
		}
	}
}

// stream is one live page.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	last []byte
}

// state sends v when it differs from what was sent last.
func (s *stream) state(v any) bool {
	b, _ := json.Marshal(v) // plain fields always encode
	if bytes.Equal(b, s.last) {
		return true
	}
	s.last = b
	return s.send("event: state\ndata: %s\n\n", b)
}

// send reports whether the page is still there.
func (s *stream) send(format string, a ...any) bool {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeWait)) // tests' recorders have none
	if _, err := fmt.Fprintf(s.w, format, a...); err != nil {
		return false
	}
	return s.rc.Flush() == nil
}

// Serve serves a page on ln, a listener on the loopback, until ctx ends. It closes ln
// and returns nil after an ordinary stop. answerWait is how long an answer may take.
func Serve(ctx context.Context, ln net.Listener, page http.Handler, answerWait time.Duration, log *slog.Logger) error {
	s := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: answerWait, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if err := s.Shutdown(last); err != nil {
		_ = s.Close() // a connection is still held; it ends here
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

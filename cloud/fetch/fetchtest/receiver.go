package fetchtest

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Request is one request as a receiver saw it.
type Request struct {
	At   time.Time
	Head http.Header
	Body []byte
	Path string
	Host string
}

// Receiver answers every request by a function and remembers them.
type Receiver struct {
	mu    sync.Mutex
	posts []Request
	Reply func(n int, w http.ResponseWriter) // n counts from 1
}

// Seen returns the requests so far.
func (r *Receiver) Seen() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Request(nil), r.posts...)
}

// Handle serves requests on one connection until it ends.
func (r *Receiver) Handle(c net.Conn) {
	l := &oneConn{c: c, done: make(chan struct{})}
	srv := &http.Server{Handler: r, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				l.Close()
			}
		}}
	_ = srv.Serve(l)
}

// ServeHTTP answers one request.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.posts = append(r.posts, Request{time.Now(), req.Header, body, req.URL.RequestURI(), req.Host})
	n := len(r.posts)
	r.mu.Unlock()
	if r.Reply != nil {
		r.Reply(n, w)
	}
}

type oneConn struct {
	c    net.Conn
	once sync.Once
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.c; c != nil {
		l.c = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// Package objecttest runs an S3-compatible server inside a test: one that checks
// signatures and digests, keeps objects in memory, and whose connections break on
// demand.
package objecttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/rclone/gofakes3/signature"
	"github.com/stretchr/testify/require"
)

// The key that a server takes, and its bucket.
const (
	KeyID  = "postern-test"
	Secret = "hunter2-hunter2-hunter2"
	Bucket = "postern"
)

// Fault is what becomes of a request.
type Fault int

// What becomes of a request.
const (
	None      Fault = iota
	Status500       // an answer of a server in trouble; nothing is done
	CutBody         // the connection ends in the middle of the request's body
	CutAnswer       // all is done, and the connection ends in the middle of the answer
	Slow            // an answer that says to come again later; nothing is done
)

// Server is a running server. Safe for concurrent use.
type Server struct {
	URL      string
	Requests atomic.Int64

	mu    sync.Mutex
	now   time.Time // zero: the machine's clock
	fault func(*http.Request) Fault
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	backend := s3mem.New(s3mem.WithTimeSource(s))
	require.NoError(t, backend.CreateBucket(t.Context(), Bucket))
	h := gofakes3.New(backend, gofakes3.WithIntegrityCheck(true), gofakes3.WithTimeSkewLimit(0)).Server()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(signed(h), w, r) }))
	t.Cleanup(web.Close)
	s.URL = web.URL
	return s
}

// SetTime sets the time at which objects are written.
func (s *Server) SetTime(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// SetFault decides about requests from now on; nil: there are no faults.
func (s *Server) SetFault(fault func(*http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Now implements gofakes3.TimeSource.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.IsZero() {
		return time.Now().UTC()
	}
	return s.now.UTC()
}

// Since implements gofakes3.TimeSource.
func (s *Server) Since(at time.Time) time.Duration { return s.Now().Sub(at) }

func (s *Server) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	f := None
	if fault != nil {
		f = fault(r)
	}
	switch f {
	case Status500:
		http.Error(w, "<Error><Code>InternalError</Code></Error>", http.StatusInternalServerError)
	case Slow:
		http.Error(w, "<Error><Code>SlowDown</Code></Error>", http.StatusServiceUnavailable)
	case CutBody:
		_, _ = io.CopyN(io.Discard, r.Body, max(r.ContentLength/2, 1))
		panic(http.ErrAbortHandler)
	case CutAnswer:
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	default:
		h.ServeHTTP(w, r)
	}
}

// signed lets requests through whose signature is right. After that it takes an empty
// delimiter away, which the server behind it does not read as none.
func signed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := signature.V4SignVerifyWithLookup(r, func(id string) (string, bool) { return Secret, id == KeyID })
		if code != signature.ErrNone {
			e := signature.GetAPIError(code)
			w.WriteHeader(e.HTTPStatusCode)
			_, _ = w.Write(signature.EncodeAPIErrorToResponse(e))
			return
		}
		if q := r.URL.Query(); q.Has("delimiter") && q.Get("delimiter") == "" {
			q.Del("delimiter")
			r.URL.RawQuery = q.Encode()
		}
		h.ServeHTTP(w, r)
	})
}

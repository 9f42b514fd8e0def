package trace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// collector sends to one address. One upload at a time.
type collector struct {
	client otlptrace.Client
	seen   *seen
}

// result is what came of an upload.
type result int

const (
	took   result = iota // all of it, or the part that it ever will
	failed               // nobody knows; it may succeed later
	wrong                // the content is refused, and would be again
)

func (r result) String() string { return [...]string{"took", "failed", "wrong"}[r] }

// uploadTime bounds one upload. It is shorter than a lease.
const uploadTime = 10 * time.Second

// longestAsk is as long as a collector may ask to be left alone.
const longestAsk = 5 * time.Minute

func newCollector(endpoint string) (*collector, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("trace collector: give an address such as http://collector:4318")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces" // OTLP 1.x, default path of traces
	}
	tap := &seen{next: http.DefaultTransport.(*http.Transport).Clone()}
	c := &http.Client{Transport: tap, Timeout: uploadTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &collector{seen: tap, client: otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithHTTPClient(c),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))}, nil
}

func (c *collector) start(ctx context.Context) error { return c.client.Start(ctx) }

// upload sends spans and waits for the answer.
func (c *collector) upload(ctx context.Context, spans []*tracepb.ResourceSpans) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	c.seen.status, c.seen.wait = 0, 0
	err := c.client.UploadTraces(ctx, spans)
	switch s := c.seen.status; {
	case s >= 200 && s <= 299:
		return took, err // a partial success must not be repeated
	case err == nil:
		return failed, fmt.Errorf("the trace collector answered %d", s)
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnprocessableEntity:
		return wrong, err
	}
	return failed, err
}

// asked is how long the last answer asks to wait.
func (c *collector) asked() time.Duration { return c.seen.wait }

// seen notes what the last answer said beside its body.
type seen struct {
	next   http.RoundTripper
	status int
	wait   time.Duration
}

// RoundTrip implements http.RoundTripper.
func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	s.status = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 && resp.StatusCode > 299 {
		s.wait = min(time.Duration(n)*time.Second, longestAsk)
	}
	return resp, nil
}

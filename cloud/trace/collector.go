package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// collector sends to one address, by OTLP over HTTP in binary Protobuf
// (OpenTelemetry Protocol 1.x, "OTLP/HTTP Request" and "OTLP/HTTP Response").
// One upload at a time: status and wait are of the last one.
//
// The address is the operator's own, and most often inside: what guards receivers
// that outsiders name would refuse it. No redirect is followed, and an answer is
// read up to a bound.
type collector struct {
	endpoint string
	headers  map[string]string // of every upload; they may hold a secret
	http     *http.Client
	status   int           // of the last answer, 0 when there was none
	wait     time.Duration // that the last answer asks for
}

var _ otlptrace.Client = (*collector)(nil)

// result is what came of an upload.
type result int

const (
	took   result = iota // all of it, or the part that it ever will
	failed               // unknown; it may succeed later
	wrong                // the content is refused, and would be again
)

func (r result) String() string { return [...]string{"took", "failed", "wrong"}[r] }

// uploadTime bounds one upload. It is shorter than a lease.
const uploadTime = 10 * time.Second

// longestAsk is as long as a collector may ask to be left alone.
const longestAsk = 5 * time.Minute

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// NewClient gives the client of a collector for spans of others, one upload at a time: of
// an address without a path it is /v1/traces.
func NewClient(endpoint string, headers map[string]string) (otlptrace.Client, error) {
	return newCollector(endpoint, headers)
}

func newCollector(endpoint string, headers map[string]string) (*collector, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("trace collector: give an address such as http://collector:4318")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces" // OTLP 1.x, default path of traces
	}
	return &collector{endpoint: u.String(), headers: headers, http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: uploadTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Start implements otlptrace.Client: a connection is made with the first upload.
func (c *collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client. Idle connections are closed.
func (c *collector) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client: it posts spans once and reads the
// answer. An error says that the collector has not taken all of them.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.status, c.wait = 0, 0
	raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // the bytes of an ExportTraceServiceRequest
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, _ = z.Write(raw) // a buffer takes everything
	_ = z.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, &body)
	if err != nil {
		return err
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "Postern")
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("reach the trace collector: %w", err)
	}
	defer resp.Body.Close()
	c.status = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 && resp.StatusCode > 299 {
		c.wait = min(time.Duration(n)*time.Second, longestAsk)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return fmt.Errorf("the trace collector answered %d", resp.StatusCode)
	case err != nil || resp.Header.Get("Content-Type") != "application/x-protobuf":
		return nil // it took them, and said no more
	}
	if n, why := leftOut(answer); n != 0 || why != "" {
		return fmt.Errorf("the trace collector left out %d spans: %.200q", n, why)
	}
	return nil
}

// leftOut reads what an ExportTraceServiceResponse says of a partial success: the
// member 1 of it, whose member 1 is the number of rejected spans and member 2 a
// message. The generated type would bring gRPC with it. Nothing is what no such
// answer says.
func leftOut(answer []byte) (spans int64, why string) {
	for _, partial := range fields(answer, 1, protowire.BytesType) {
		for _, v := range fields(partial, 1, protowire.VarintType) {
			n, _ := protowire.ConsumeVarint(v)
			spans = int64(n)
		}
		for _, v := range fields(partial, 2, protowire.BytesType) {
			why = string(v)
		}
	}
	return spans, why
}

// fields are the values of one member of a message, of one wire type; none when
// it is no message.
func fields(message []byte, number protowire.Number, kind protowire.Type) (out [][]byte) {
	for len(message) > 0 {
		n, t, head := protowire.ConsumeTag(message)
		if head < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(n, t, message[head:])
		if size < 0 {
			return nil
		}
		if v := message[head : head+size]; n == number && t == kind {
			if t == protowire.BytesType {
				v, _ = protowire.ConsumeBytes(v)
			}
			out = append(out, v)
		}
		message = message[head+size:]
	}
	return out
}

// upload sends spans and waits for the answer.
func (c *collector) upload(ctx context.Context, spans []*tracepb.ResourceSpans) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	err := c.UploadTraces(ctx, spans)
	switch s := c.status; {
	case s >= 200 && s <= 299:
		return took, err // a partial success must not be repeated
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnprocessableEntity:
		return wrong, err
	}
	return failed, err
}

// asked is how long the last answer asks to wait.
func (c *collector) asked() time.Duration { return c.wait }

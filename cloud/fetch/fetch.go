// Package fetch makes the requests that leave the cloud for addresses that
// outsiders name: webhooks, client metadata, traces. Guard decides which addresses
// are allowed; Client checks each connection against it, at the moment when it is
// made, and goes by way of the deployment's outgoing Proxy where there is one;
// Fetcher reads small documents. Redirects are never followed.
package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Document is what was read from an address.
type Document struct {
	Status int
	Type   string // media type as it was sent
	Body   []byte // at most MaxDocument bytes
}

// MaxDocument is how much of a document is read.
const MaxDocument = 16 << 10

// ErrTooLarge is the error of a document of more than MaxDocument bytes.
var ErrTooLarge = errors.New("the document is too large")

// Fetcher asks addresses that outsiders name for small documents, through
// the same guard as webhooks: each connection is checked, none is kept, and
// nothing is redirected. Safe for concurrent use.
type Fetcher struct{ client *Client }

// NewFetcher builds a fetcher.
func NewFetcher(cfg Config) *Fetcher { return &Fetcher{NewClient(cfg)} }

// Fetch reads what is at an address, within connectTimeout. An error says of
// what kind it is and nothing about the inside; ErrBlocked when the guard
// refused.
func (f *Fetcher) Fetch(ctx context.Context, raw string) (Document, error) {
	return f.request(ctx, raw, http.MethodGet, nil, nil)
}

// Post sends a body to an address and reads the answer, as Fetch does. Headers
// are beside those that every request has, and hold no line breaks.
func (f *Fetcher) Post(ctx context.Context, raw string, headers [][2]string, body []byte) (Document, error) {
	return f.request(ctx, raw, http.MethodPost, headers, body)
}

func (f *Fetcher) request(ctx context.Context, raw, method string, headers [][2]string, body []byte) (Document, error) {
	t, err := f.client.guard.CheckURL(raw)
	if err != nil {
		return Document{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	d, err := f.fetch(ctx, t, question(t, method, headers, body), method)
	if err == nil || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrBlocked) {
		return d, err
	}
	code, text := classify(err)
	return Document{}, fmt.Errorf("%s: %s", code, text)
}

// question is a whole request as it goes out.
func question(t *Target, method string, headers [][2]string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nUser-Agent: Postern\r\nConnection: close\r\n", method, t.Path, t.HostHeader())
	for _, h := range headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	if method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

func (f *Fetcher) fetch(ctx context.Context, t *Target, request []byte, method string) (d Document, err error) {
	cn, err := f.client.connection(ctx, t, &Answer{})
	if err != nil {
		return d, err
	}
	defer cn.drop()
	deadline, _ := ctx.Deadline()
	if err := cn.SetDeadline(deadline); err != nil {
		return d, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := cn.Write(request); err != nil {
		return d, unread(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(cn.r, readLimit)), &http.Request{Method: method})
	if err != nil {
		return d, unread(err)
	}
	defer resp.Body.Close()
	d = Document{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type")}
	if d.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxDocument+1)); err != nil {
		return Document{}, unread(err)
	}
	if len(d.Body) > MaxDocument {
		return Document{}, ErrTooLarge
	}
	return d, nil
}

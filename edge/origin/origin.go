// Package origin is the cloud that a cabinet was enrolled at, by HTTPS: programs come from there,
// and answers to diagnoses go there. It knows one host, and follows no redirect.
package origin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/diagnosis"
)

// sendTime is how long one try of Send may take.
const sendTime = 5 * time.Minute

// Cloud is that host. Safe for concurrent use.
type Cloud struct {
	base   string // https://host, without a path; "": not known
	client *http.Client
}

// New uses the address that the cabinet was enrolled at, "" when it is not known. transport is
// how it is reached.
func New(cloud string, transport http.RoundTripper) *Cloud {
	return &Cloud{base: strings.TrimSuffix(cloud, "/"), client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Address is that of a path at the cloud.
func (c *Cloud) Address(path string) (string, error) {
	if c == nil || c.base == "" {
		return "", errors.New("the cloud's address is not known: enrol again, or add cloud_url to the secrets file")
	}
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return "", errors.New("the address must be a path at the cloud, such as /api/v1/…")
	}
	return c.base + u.String(), nil
}

// Do sends a request to an address that Address made.
func (c *Cloud) Do(req *http.Request) (*http.Response, error) { return c.client.Do(req) }

// Refusal is an answer that another try does not change.
type Refusal struct{ Status int }

func (e *Refusal) Error() string { return fmt.Sprintf("the cloud answers %d", e.Status) }

// CheckAnswer tells an answer's status apart: nil for one of success, a Refusal, or an error
// that may pass.
func CheckAnswer(status int) error {
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status/100 == 5:
		return fmt.Errorf("the cloud answers %d", status)
	}
	return &Refusal{status}
}

// WithoutAddress is an error of a request without its address, which may let its holder in.
func WithoutAddress(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// Send puts an answer at a path of the cloud, with the device's signature when it has one. Errors
// are a Refusal, or may pass.
func (c *Cloud) Send(ctx context.Context, path string, file, signature []byte) error {
	address, err := c.Address(path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(file))
	if err != nil {
		return WithoutAddress(err)
	}
	req.Header.Set("Content-Type", diagnosis.MIME)
	req.Header.Set(diagnosis.HeaderDigest, diagnosis.Digest(sha256.Sum256(file)))
	if len(signature) > 0 {
		req.Header.Set(diagnosis.HeaderSignature, base64.StdEncoding.EncodeToString(signature))
	}
	answer, err := c.client.Do(req)
	if err != nil {
		return WithoutAddress(err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	return errors.Join(CheckAnswer(answer.StatusCode), answer.Body.Close())
}

// Package hook posts to addresses of the deployment's own providers, signed by Standard
// Webhooks. It knows nothing of what is posted.
package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/protocol/signature"
)

// Post sends a body to an address and gives the answer. Headers are beside those that
// every request has.
type Post func(ctx context.Context, url string, headers [][2]string, body []byte) (status int, answer []byte, err error)

// Address takes signed posts. Safe for concurrent use.
type Address struct {
	URL    string
	Secret string // as in settings: whsec_… or any text
	Post   Post
}

// ErrRefused is the error of a post that the address will never take.
var ErrRefused = errors.New("refused for good")

// Send posts a JSON body; id is its webhook-id, by which a receiver drops one that comes
// twice. Any status of the 200s takes it; 400, 413 and 422 are ErrRefused, and another
// attempt may do better after every other error. An answer may come with an error.
func (a Address) Send(ctx context.Context, id string, body []byte) (answer []byte, err error) {
	headers, err := signature.StandardHeaders(a.Secret, id, time.Now(), body)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	status, answer, err := a.Post(ctx, a.URL, append(headers, [2]string{"Content-Type", "application/json"}), body)
	switch {
	case err != nil:
		return nil, err
	case status == 400 || status == 413 || status == 422:
		return answer, fmt.Errorf("%w: it answered %d", ErrRefused, status)
	case status < 200 || status > 299:
		return answer, fmt.Errorf("it answered %d", status)
	}
	return answer, nil
}

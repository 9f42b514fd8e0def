package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// What is done at the page happens to the cabinet, and is printed like all else.
func TestThePageTouchesTheCabinet(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out := &watcher{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--tcp", "127.0.0.1:0", "--page", "127.0.0.1:0"}, &watcher{}, out) }()
	var address string
	ring.Await(t, func() bool {
		m := regexp.MustCompile(`doors can be touched at (http://127\.0\.0\.1:[0-9]+/CABINET)\n`).FindStringSubmatch(out.String())
		if m != nil {
			address = m[1]
		}
		return m != nil
	}, "the address of the page")
	r, err := http.Post(address+"/act", "application/json", strings.NewReader(`{"action":"force","door":3}`))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, 200, r.StatusCode)
	ring.Await(t, func() bool { return strings.Contains(out.String(), "door 3  opened") }, "the fact")
	stop()
	require.NoError(t, <-ended)
}

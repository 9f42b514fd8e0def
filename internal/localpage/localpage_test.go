package localpage

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPageOnTheLoopback(t *testing.T) {
	t.Parallel()
	var number atomic.Int64
	notices := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		Stream(w, r, time.Millisecond, func() any { return number.Load() }, notices)
	})
	mux.HandleFunc("POST /act", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Door int }
		if err := Read(r, &in); err != nil {
			Reply(w, http.StatusBadRequest, err.Error())
			return
		}
		Reply(w, http.StatusOK, in)
	})
	page := Guard{
		Body:   func(string) (string, int64) { return "application/json", 32 },
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int) { Reply(w, status, "refused") },
	}.Before(mux)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, ln, page, 10*time.Second, slog.New(slog.DiscardHandler)) }()
	at := "http://" + ln.Addr().String()

	for _, c := range []struct {
		host, path, mediaType, body, origin string
		status                              int
	}{
		{"", "/act", "application/json", `{"Door":1}`, "", 200},
		{"", "/act", "application/json; charset=utf-8", `{"Door":1}`, at, 200},
		{"", "/act", "application/json", `{"Door":1}`, "http://evil.example", 403},
		{"evil.example", "/act", "application/json", `{"Door":1}`, "", 421},
		{"", "/act?code=1", "application/json", `{"Door":1}`, "", 400},
		{"", "/act", "text/plain", `{"Door":1}`, "", 415},
		{"", "/act", "", `{"Door":1}`, "", 415},
		{"", "/act", "application/json", `{"Door":1,"Code":2}`, "", 400},
		{"", "/act", "application/json", `{"Door":1}{"Door":1}`, "", 400},
		{"", "/act", "application/json", `{"Door":1` + strings.Repeat(" ", 32) + `}`, "", 400},
	} {
		r, err := http.NewRequest(http.MethodPost, at+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		r.Host = c.host
		r.Header.Set("Content-Type", c.mediaType)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.status, resp.StatusCode, "%+v", c)
	}

	// A state is sent once, and again when it has changed; the stream ends with the page.
	resp, err := http.Get(at + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() (line string) {
		for line == "" && lines.Scan() {
			line = lines.Text()
		}
		return line
	}
	require.Equal(t, []string{"event: state", "data: 0"}, []string{next(), next()})
	number.Store(7)
	require.Equal(t, []string{"event: state", "data: 7"}, []string{next(), next()})
	notices <- "pull"
	require.Equal(t, []string{"event: notice", `data: "pull"`}, []string{next(), next()})
	stop()
	require.NoError(t, <-done)
	require.Empty(t, next())
}

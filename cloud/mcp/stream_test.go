package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// slow is a server with one tool, on a pipe per connection.
type slow struct {
	s    *Server
	http *fasthttp.Server
}

func newSlow(t *testing.T, run func(context.Context, *Call) (*Result, error)) *slow {
	t.Helper()
	s, err := New(Config{Name: "slow", Key: testKey, Tools: []Tool{{Name: "work", Description: "Works.", Input: json.RawMessage(`{"type":"object"}`), Streams: true, Run: run}}})
	require.NoError(t, err)
	return &slow{s, &fasthttp.Server{Handler: s.Handle, NoDefaultContentType: true}}
}

// call sends one request and gives the connection, whose answer is not read
// yet, and what tells the end of serving it.
func (s *slow) call(version string) (net.Conn, <-chan error) {
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.http.ServeConn(far) }()
	meta, headers := `"progressToken":"p"`, "MCP-Protocol-Version: "+version+"\r\n"
	if version == modern {
		meta += "," + envelope[len(`"_meta":{`):len(envelope)-1]
		headers += "Mcp-Method: tools/call\r\nMcp-Name: work\r\n"
	}
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"work","_meta":{` + meta + `}}}`
	go func() {
		_, _ = io.WriteString(near, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nAccept-Encoding: gzip\r\nConnection: close\r\n"+headers)
		_, _ = io.WriteString(near, "Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	}()
	return near, done
}

func answerOf(t *testing.T, conn net.Conn) (*fasthttp.ResponseHeader, string) {
	t.Helper()
	resp := &fasthttp.Response{}
	require.NoError(t, resp.Read(bufio.NewReader(conn)))
	return &resp.Header, string(resp.Body())
}

// A silent call shows every 15 seconds that it lives.
func TestSilenceIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, func(ctx context.Context, c *Call) (*Result, error) {
			time.Sleep(20 * time.Second)
			c.Progress(1, 2, "half")
			time.Sleep(26 * time.Second)
			return &Result{Structured: json.RawMessage(`{}`)}, ctx.Err()
		})
		conn, done := s.call(modern)
		h, body := answerOf(t, conn)
		require.Equal(t, "text/event-stream", string(h.ContentType()))
		require.Equal(t, "no-cache, no-transform", string(h.Peek("Cache-Control")))
		require.Equal(t, "no", string(h.Peek("X-Accel-Buffering")))
		require.Empty(t, h.ContentEncoding(), "streams are never compressed")
		require.Equal(t, ":\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"p\",\"progress\":1,\"total\":2,\"message\":\"half\"}}\n\n"+
			":\n\nevent: message\ndata: ", body[:strings.LastIndex(body, "{\"jsonrpc")])
		require.Contains(t, body, `"id":7,"result":{"resultType":"complete"`)
		<-done
		s.s.Close()
	})
}

// A client that leaves cancels its call, but not on the legacy wire, where a
// lost connection means nothing.
func TestLostConnections(t *testing.T) {
	for _, version := range []string{modern, newest} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				s := newSlow(t, func(ctx context.Context, c *Call) (*Result, error) {
					c.Progress(1, 2, "")
					select {
					case <-ctx.Done():
					case <-time.After(40 * time.Second):
					}
					c.Progress(2, 2, "")
					ended <- ctx.Err()
					return &Result{}, nil
				})
				conn, done := s.call(version)
				time.Sleep(time.Second)
				_, err := conn.Read(make([]byte, 4096))
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				started := time.Now()
				err = <-ended
				if version == modern {
					require.ErrorIs(t, err, context.Canceled)
					require.Less(t, time.Since(started), 20*time.Second)
				} else {
					require.NoError(t, err, "started work ends")
				}
				<-done
				s.s.Close()
			})
		})
	}
}

func TestCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, func(ctx context.Context, _ *Call) (*Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		conn, done := s.call(modern)
		start := time.Now()
		_, body := answerOf(t, conn)
		require.Equal(t, time.Minute, time.Since(start))
		require.Contains(t, body, `"error":{"code":-32603`)
		<-done

		conn, done = s.call(newest)
		go func() {
			time.Sleep(time.Second)
			s.s.Close()
		}()
		_, body = answerOf(t, conn)
		require.Contains(t, body, `"error":{"code":-32603`, "with the server")
		<-done
	})
}

// States are good for ten minutes.
func TestStatesGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Name: "shop", Key: testKey})
		require.NoError(t, err)
		defer s.Close()
		c := func() *Call {
			return &Call{Request: &Request{Method: "tools/call", Tool: "x"}, Arguments: json.RawMessage(`{}`)}
		}
		state := s.sealState(c(), []byte("it"), time.Now())
		time.Sleep(stateLife - time.Second)
		got := c()
		require.True(t, s.openState(got, state, time.Now()))
		require.Equal(t, "it", string(got.State))
		time.Sleep(time.Second)
		require.False(t, s.openState(c(), state, time.Now()))
	})
}

// What is refused or done at once has its own status and no stream.
func TestQuickCallsAreNoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, stream := range map[time.Duration]bool{0: false, patience - time.Millisecond: false, patience + time.Millisecond: true} {
			s := newSlow(t, func(context.Context, *Call) (*Result, error) {
				time.Sleep(after)
				return nil, &Error{Status: 403, Code: 403, Message: "no"}
			})
			conn, done := s.call(modern)
			h, body := answerOf(t, conn)
			if stream {
				require.Equal(t, 200, h.StatusCode())
				require.Equal(t, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":403,\"message\":\"no\"}}\n\n", body)
			} else {
				require.Equal(t, 403, h.StatusCode(), after)
				require.Equal(t, "application/json", string(h.ContentType()))
			}
			<-done
			s.s.Close()
		}
	})
}

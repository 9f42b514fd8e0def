package rest

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// A length that is only announced takes memory as the body itself would. Strangers
// share a little, and leave room to those who have a token.
func TestAnnouncedBodiesHaveLittleRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *options) { o.Room = Room{Strangers: maxBody, Known: maxBody} })
	announce := func(length, begin string) net.Conn {
		c, err := r.ln.Dial()
		require.NoError(t, err)
		_, err = io.WriteString(c, "POST /api/v1/user/login HTTP/1.1\r\nHost: x\r\n"+length+"\r\n\r\n"+begin)
		require.NoError(t, err)
		return c
	}
	used := func() int64 {
		r.s.room.mu.Lock()
		defer r.s.room.mu.Unlock()
		return r.s.room.used[0]
	}
	for length, begin := range map[string]string{"Content-Length: 1000000": "{", "Transfer-Encoding: chunked": "f4240\r\n{"} {
		first := announce(length, begin)
		ring.Await(t, func() bool { return used() > 0 })
		status, body := r.raw("POST /api/v1/user/login HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(maxBody-1) + "\r\n\r\n{")
		require.Equal(t, 503, status, body)
		require.Contains(t, body, "MODULE_UNAVAILABLE")
		r.refused(r.do("POST", "/api/v1/user/login", "", `{"email":"a@b.example","password":"correct horse"}`), 401, "INVALID_CREDENTIALS")
		r.refused(r.do("POST", "/api/v1/third-party-delivery/deliveries", r.provider(), `{"a":"`+strings.Repeat("x", 900_000)+`"}`), 422, "VALIDATION_FAILED")
		require.NoError(t, first.Close())
		ring.Await(t, func() bool { return used() == 0 })
		r.refused(r.do("POST", "/api/v1/user/login", "", `{"a":"`+strings.Repeat("x", 900_000)+`"}`), 422, "VALIDATION_FAILED")
		require.Zero(t, used())
	}
}

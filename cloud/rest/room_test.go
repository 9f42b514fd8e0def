package rest

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/internal/ring"
)

// A length that is only announced takes memory as the body itself would. Strangers
// share a little, and leave room to callers with a token.
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

// One token takes a quarter of the room of callers with one; the rest is for others.
func TestOneTokenTakesAShareOfTheRoom(t *testing.T) {
	t.Parallel()
	r := newRoom(Room{Strangers: 100, Known: 400})
	a, b := token{1}, token{2}
	loans := make([]fasthttp.RequestHeader, 8)
	take := func(i int, who token, size int64) bool { return r.reserve(&loans[i], size, who, time.Minute) }
	require.True(t, take(0, a, 60))
	require.True(t, take(1, a, 40))
	require.False(t, take(2, a, 1), "its share is taken")
	require.True(t, take(3, b, 250), "one body may be longer than a share")
	require.False(t, take(4, b, 1))
	require.False(t, take(5, token{3}, 60), "there is no more for all together")
	require.True(t, take(6, token{}, 100), "strangers have room of their own")
	r.shrink(&loans[3], 50)
	require.True(t, take(5, token{3}, 60))
	r.release(&loans[1])
	require.True(t, take(2, a, 40))
	for i := range loans {
		r.release(&loans[i])
	}
	require.Equal(t, [2]int64{}, r.used)
	require.Empty(t, r.each)
}

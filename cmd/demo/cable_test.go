package main

import (
	"bufio"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// A cut ends what is connected; a connection that is tried then gets its answer
// once the cable is mended, and none when the cable is taken away.
func TestACutCableIsSilentUntilItIsMended(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }() // an echo, until the line is cut
		}
	}()
	c, err := newCable(ln.Addr().String())
	require.NoError(t, err)
	dial := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", c.ln.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte("hello\n"))
		require.NoError(t, err)
		return conn, bufio.NewReader(conn)
	}
	first, answer := dial()
	defer first.Close()
	text, err := answer.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", text)
	require.False(t, c.isCut())

	c.set(true)
	_, err = answer.ReadString('\n')
	require.Error(t, err, "cut")
	second, answer := dial()
	defer second.Close()
	held := func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.held == 1 }
	ring.Await(t, held, "a connection on the dead line")
	c.set(false)
	text, err = answer.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", text)

	c.set(true)
	third, answer := dial()
	defer third.Close()
	ring.Await(t, held, "a connection on the dead line")
	c.close()
	_, err = answer.ReadString('\n')
	require.Error(t, err, "taken away")
}

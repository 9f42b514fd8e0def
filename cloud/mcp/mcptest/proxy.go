package mcptest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// WithHeader is the address of a listener in front of the server at base that
// puts one header into every request and leaves all other bytes as they are:
// the suite cannot send headers of its own.
func WithHeader(t *testing.T, base, header string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				to, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(c, to); _ = c.Close() }()
				_ = insert(to, bufio.NewReader(c), header)
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// insert copies requests with one more header each. Bodies have a length.
func insert(to io.Writer, from *bufio.Reader, header string) error {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return err
		}
		length := int64(0)
		head := line + header + "\r\n"
		for strings.TrimRight(line, "\r\n") != "" {
			if line, err = from.ReadString('\n'); err != nil {
				return err
			}
			head += line
			if name, value, ok := strings.Cut(line, ":"); ok && http.CanonicalHeaderKey(name) == "Content-Length" {
				if _, err := fmt.Sscan(value, &length); err != nil {
					return err
				}
			}
		}
		if _, err := io.WriteString(to, head); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, length); err != nil {
			return err
		}
	}
}

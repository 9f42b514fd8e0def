package store

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that starts before its database waits for it; a wrong name or password is said
// at once, without the password.
func TestTheDatabaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	to, err := url.Parse(freshSchema(t))
	require.NoError(t, err)
	there := to.Host
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	to.Host = ln.Addr().String()
	require.NoError(t, ln.Close())
	late := make(chan net.Listener, 1)
	time.AfterFunc(700*time.Millisecond, func() {
		ln, err := net.Listen("tcp4", to.Host)
		if err != nil {
			late <- nil
			return
		}
		late <- ln
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", there)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	})
	db, err := Open(t.Context(), Config{URL: to.String(), Instance: "n1", Box: testBox(t), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	if ln := <-late; ln != nil {
		require.NoError(t, ln.Close())
	}

	begun := time.Now()
	to.Host, to.Path = there, "/none_such"
	to.User = url.UserPassword(to.User.Username(), "hunter2")
	_, err = Open(t.Context(), Config{URL: to.String(), Instance: "n1", Box: testBox(t)})
	require.ErrorContains(t, err, "none_such")
	require.NotContains(t, fmt.Sprintf("%+v", err), "hunter2")
	require.Less(t, time.Since(begun), pgAwait)
}

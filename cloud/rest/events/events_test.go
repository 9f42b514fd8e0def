package events

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

var quiet = slog.New(slog.DiscardHandler)

// endless is a stream that writes until that fails.
type endless struct {
	written int
	closed  chan struct{}
}

func (e *endless) Serve(_ context.Context, w io.Writer, _ func(context.Context) (cloud.Caller, error)) error {
	for {
		n, err := w.Write(make([]byte, 1000))
		if e.written += n; err != nil {
			return err
		}
	}
}

func (e *endless) Close() { close(e.closed) }

// A caller that takes nothing more is cut after the time of a write, and nothing is kept for it
// until then.
func TestASlowCallerIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		live := &endless{closed: make(chan struct{})}
		Serve(t.Context(), there, []byte("head"), nil, live, nil, quiet)
		_, err := io.ReadFull(here, make([]byte, 3004))
		require.NoError(t, err)
		began := time.Now()
		<-live.closed
		require.Equal(t, WriteTime, time.Since(began))
		require.Equal(t, 3000, live.written)
		_, err = here.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// idle is a stream that has nothing to say.
type idle struct{ closed chan struct{} }

func (e *idle) Serve(ctx context.Context, _ io.Writer, _ func(context.Context) (cloud.Caller, error)) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (e *idle) Close() { close(e.closed) }

// A stream ends at once when its caller leaves, when the server stops, and when its own fault
// is a panic.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(conn net.Conn, stop, cancel func()){
		"the caller leaves":  func(conn net.Conn, _, _ func()) { _ = conn.Close() },
		"the server stops":   func(_ net.Conn, stop, _ func()) { stop() },
		"the server is gone": func(_ net.Conn, _, cancel func()) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopped, live := make(chan struct{}), &idle{make(chan struct{})}
			Serve(ctx, there, []byte("head"), stopped, live, nil, quiet)
			_, err := io.ReadFull(here, make([]byte, 4))
			require.NoError(t, err)
			began := time.Now()
			end(here, func() { close(stopped) }, cancel)
			<-live.closed
			require.Zero(t, time.Since(began), name)
			_, err = here.Read(make([]byte, 1))
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe), name)
		})
	}
	here, there := net.Pipe()
	Serve(t.Context(), there, []byte("head"), nil, faulty{}, nil, quiet)
	got, err := io.ReadAll(here)
	require.NoError(t, err)
	require.Equal(t, "head", string(got))
}

type faulty struct{}

func (faulty) Serve(context.Context, io.Writer, func(context.Context) (cloud.Caller, error)) error {
	panic("boom")
}
func (faulty) Close() {}

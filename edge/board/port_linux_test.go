package board_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/board"
	sim "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
)

// onPort runs an agent's cabinet in real time with the default opener.
func onPort(t *testing.T, port string) (*board.Cabinet, <-chan edge.Event) {
	l := layoutOf(single(lockbus.CU48B))
	l.Lines[0].Port = port
	events := make(chan edge.Event, 1000)
	c := board.New(board.Config{Layout: l, Log: slog.New(slog.DiscardHandler), Sink: func(e edge.Event) { events <- e }})
	c.SetSession(true)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return c, events
}

// await waits for an event that ok accepts.
func await(t *testing.T, events <-chan edge.Event, ok func(edge.Event) bool) {
	t.Helper()
	for e := range events {
		if ok(e) {
			return
		}
	}
	require.FailNow(t, "the event did not come")
}

func reads(door edge.DoorNumber, open bool) func(edge.Event) bool {
	return func(e edge.Event) bool {
		d, ok := e.(edge.DoorReading)
		return ok && d.Door == door && d.Open == open
	}
}

func openAndClose(t *testing.T, s *sim.Cabinet, c *board.Cabinet, events <-chan edge.Event) {
	await(t, events, reads(2, false))
	c.Pulse(2, edge.Authority{})
	await(t, events, reads(2, true))
	require.True(t, s.HookOutBetween(2, time.Now().Add(-time.Minute), time.Now()))
	require.NoError(t, s.CloseDoor(2))
	await(t, events, reads(2, false))
}

func TestARealPseudoTerminalAndAnAdapterThatComesBackUnderAnotherName(t *testing.T) {
	t.Parallel()
	s, err := sim.New(single(lockbus.CU48B))
	require.NoError(t, err)
	defer s.Close()
	stable := filepath.Join(t.TempDir(), "cabinet")
	plug := func() (*sim.PTY, chan error) {
		p, err := sim.OpenPTY()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			t.Skipf("no pseudo-terminals here: %v", err)
		}
		require.NoError(t, err)
		_ = os.Remove(stable)
		require.NoError(t, os.Symlink(p.Path, stable))
		served := make(chan error, 1)
		go func() { served <- s.ServeLine(context.Background(), "main", p) }()
		return p, served
	}
	_, served := plug()
	c, events := onPort(t, stable)
	openAndClose(t, s, c, events)

	require.NoError(t, s.Unplug("main", time.Millisecond))
	<-served
	await(t, events, func(e edge.Event) bool { _, ok := e.(edge.BoardLost); return ok })
	time.Sleep(2 * time.Millisecond)
	plug()
	openAndClose(t, s, c, events)
}

func TestOverTCP(t *testing.T) {
	t.Parallel()
	s, err := sim.New(single(lockbus.CU48B))
	require.NoError(t, err)
	defer s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.ServeTCP(ctx, "main", ln) }()
	c, events := onPort(t, "tcp://"+ln.Addr().String())
	openAndClose(t, s, c, events)
	cancel()
	require.NoError(t, <-done)
}

package scanner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

func TestSettingsOfScanners(t *testing.T) {
	t.Parallel()
	good := []scanner.Config{
		{Name: "a", Port: "/dev/ttyACM0", Use: scanner.UseCodes},
		{Name: "b", Port: "tcp://10.0.0.7:2112", Use: scanner.UseLabels, Post: "Dock 3", Step: otep.Received, Repeat: 10 * time.Second},
		{Name: "c", Port: "input:/dev/input/by-id/usb-x-event-kbd", Use: scanner.UseLabels, Post: "Dock 3", Step: otep.PackageOutbound},
	}
	require.NoError(t, scanner.Check(good))
	bad := []scanner.Config{
		{Name: "a", Port: "tcp://x", Baud: 7, Use: "both"},
		{Name: "a", Port: "input:/etc/passwd", Use: scanner.UseLabels, Post: " ", Step: "delivered", Repeat: time.Hour},
		{Name: "c", Port: "udp://x:1", Use: scanner.UseCodes, Post: "x"},
		{Name: "f", Port: "/dev/f", Use: scanner.UseLabels, Post: "Dock", Step: otep.Received, Choices: []otep.Code{otep.PickedUp, otep.PickedUp, "gone"}},
		{Name: "d", Port: "/dev/x", Use: scanner.UseCodes}, {Name: "e", Port: "/dev/x", Use: scanner.UseCodes},
	}
	err := scanner.Check(bad)
	for _, want := range []string{"tcp://host:port", "baud 7: use 1200 to 921600", `use "both": use codes or labels`, "a name of its own", "/dev/input/", "post", `step "delivered": use one of picked_up, received,`,
		"repeat_seconds 3600: use 1 to 600", "picked_up is there twice", `step "gone": use`, "must be one of them", "has none", "one port has one scanner"} {
		require.ErrorContains(t, err, want)
	}
	for _, s := range []string{"received", "otep:parcel:received", "arrival_scan"} {
		_, err := scanner.ParseStep(s)
		require.NoError(t, err, s)
	}
}

// store counts what it is given.
type store struct {
	mu      sync.Mutex
	records []wire.Record
	n       int64
}

func (s *store) Stamp(at time.Time) wire.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return wire.Record{At: at.UnixNano(), Boot: 1, Mono: s.n}
}

func (s *store) Keep(_ context.Context, _ map[string][]byte, records []wire.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, records...)
	return nil
}

// results collects what scanners report.
type results struct {
	mu  sync.Mutex
	all []scanner.Result
}

func (r *results) report(x scanner.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, x)
}

func (r *results) outcomes() (out []scanner.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.all {
		out = append(out, x.Outcome)
	}
	return out
}

var errAway = errors.New("no such device")

// An adapter that is pulled and comes back under its name, a line that was torn by
// it, and pauses as ends of lines.
func TestAScannerThatGoesAndComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var plugged net.Conn
		opens := 0
		there := make(chan net.Conn, 1)
		open := func(context.Context, scanner.Config) (board.Port, error) {
			mu.Lock()
			defer mu.Unlock()
			if opens++; plugged == nil {
				return nil, errAway
			}
			here, out := net.Pipe()
			there <- out
			return board.ConnPort(here), nil
		}
		plug := func(c net.Conn) {
			mu.Lock()
			defer mu.Unlock()
			plugged = c
		}
		var r results
		s := scanner.New(scanner.Config{Name: "a", Use: scanner.UseLabels, Post: "Dock", Step: otep.Received},
			scanner.Options{Open: open, Recorder: scanner.NewRecorder(&store{}, nil, discard()), Report: r.report})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		require.Less(t, opens, 60, "looked for less and less often")
		mu.Unlock()
		here, _ := net.Pipe()
		plug(here)
		time.Sleep(15 * time.Second)
		line := <-there
		_, err := io.WriteString(line, "SR-1\r\nSR-2\tSR-3")
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Len(t, r.outcomes(), 3, "the last by its pause")
		_, err = io.WriteString(line, "SR-4 torn")
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, line.Close())
		time.Sleep(time.Second)
		line = <-there
		_, err = io.WriteString(line, "SR-5\r"+strings.Repeat("x", 3*scanner.MaxLine)+"\rSR-6\r482913\r")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []scanner.Outcome{"ok", "ok", "ok", "ok", "refused", "ok", "refused"}, r.outcomes())
		stop()
		require.NoError(t, <-done)
	})
}

// A scanner that sends without end is read at a pace that no store is filled by.
func TestAScannerThatSendsWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, line := net.Pipe()
		var r results
		kept := &store{}
		s := scanner.New(scanner.Config{Name: "a", Use: scanner.UseLabels, Post: "Dock", Step: otep.Received},
			scanner.Options{Open: func(context.Context, scanner.Config) (board.Port, error) { return board.ConnPort(here), nil }, Recorder: scanner.NewRecorder(kept, nil, discard()), Report: r.report})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		sent := make(chan int)
		go func() {
			n := 0
			for ; ; n++ {
				if _, err := fmt.Fprintf(line, "SR-%d\r\n", n); err != nil {
					sent <- n
					return
				}
			}
		}()
		time.Sleep(time.Minute)
		first := len(r.outcomes())
		require.InDelta(t, 100+60*20, first, 30)
		time.Sleep(time.Minute)
		require.InDelta(t, 60*20, len(r.outcomes())-first, 30)
		stop()
		require.NoError(t, <-done)
		_ = line.Close()
		require.Less(t, <-sent, len(r.outcomes())+1000, "the rest waits at the scanner")
	})
}

// codes plays the check of codes.
type codes chan string

func (c codes) Scan(_ context.Context, text string) (locker.Answer, error) {
	c <- text
	return locker.Answer{Outcome: wire.CodeOK}, nil
}

func TestCodesAreCheckedAndNeverKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(codes, 10)
		here, there := net.Pipe()
		st := &store{}
		var r results
		s := scanner.New(scanner.Config{Name: "a", Use: scanner.UseCodes}, scanner.Options{Codes: asked, Recorder: scanner.NewRecorder(st, nil, discard()), Report: r.report,
			Open: func(context.Context, scanner.Config) (board.Port, error) { return board.ConnPort(here), nil }})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		_, err := io.WriteString(there, "]Q1PU:CAB-1:482913\r\n")
		require.NoError(t, err)
		require.Equal(t, "PU:CAB-1:482913", <-asked)
		synctest.Wait()
		require.Empty(t, st.records)
		require.Equal(t, scanner.Result{At: r.all[0].At, Scanner: "a", Use: scanner.UseCodes, Outcome: scanner.CodeTried, Answer: locker.Answer{Outcome: wire.CodeOK}}, r.all[0])
		stop()
		require.NoError(t, <-done)
	})
}

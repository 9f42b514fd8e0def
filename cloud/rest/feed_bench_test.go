package rest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/protocol/otep"
)

const (
	benchReaders = 100
	benchRate    = 1000 // events a second
	benchEvents  = 3000
)

// cpu is what the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readLags reads n events from a connection and gives how long each was under way.
func readLags(c net.Conn, n int) []time.Duration {
	out := make([]time.Duration, 0, n)
	in := bufio.NewReaderSize(c, 64<<10)
	for len(out) < n {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return out
		}
		if _, rest, ok := bytes.Cut(line, []byte(`"message":"at `)); ok {
			text, _, _ := bytes.Cut(rest, []byte{'"'})
			ns, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				return out
			}
			out = append(out, time.Since(time.Unix(0, ns)))
		}
	}
	return out
}

// paced does something n times at the rate of the bench, eight at once.
func paced(n int, do func(i int)) {
	var all sync.WaitGroup
	began, turns := time.Now(), make(chan struct{}, 8)
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / benchRate)))
		turns <- struct{}{}
		all.Go(func() { do(i); <-turns })
	}
	all.Wait()
}

// BenchmarkFeed is a hundred readers of the stream who follow a thousand events a second: how
// long after the call of its commit an event has reached a reader, and what following costs
// beside the same commits without readers, against the same texts written to as many sockets.
func BenchmarkFeed(b *testing.B) {
	r := feedRig(b)
	admin := r.w.Tokens[cloud.ClientAdmin]
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	served, done := New(r.s.cfg), make(chan error, 1)
	go func() { done <- served.Serve(ln) }()
	b.Cleanup(func() { require.NoError(b, served.Shutdown(context.Background())); require.NoError(b, <-done) })
	for i := 1; i < benchReaders/20; i++ {
		id := cloud.AccountID(900 + i)
		r.w.Write(b, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: id, BusinessID: 42, Type: cloud.ClientAdmin, Name: "reader", Email: fmt.Sprint(id, "@42.example"), Enabled: true}},
			Tokens: []cloud.Token{{Hash: auth.Hash(fmt.Sprint("token-of-reader-", i)), AccountID: id, Name: "test", ExpiresAt: time.Now().Add(time.Hour)}}}})
	}
	serial := 0
	commit := func(i int) {
		now := time.Now()
		e := otep.Event{EventID: fmt.Sprint("bench-", serial, "-", i), StatusCode: "in_transit", OccurredAt: otep.Time{Time: now}, RecordedAt: otep.Time{Time: now}, Message: fmt.Sprint("at ", now.UnixNano()),
			Source: &otep.Source{Type: "partner", Provider: "swiftparcel"}, Location: &otep.Location{City: "Toronto", Country: "CA"}}
		c := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{ShipmentID: 101, BusinessID: 42, Event: e}}}}
		if err := r.w.DB.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }); err != nil {
			b.Error(err)
		}
	}
	var lags []time.Duration
	var without, with, bare time.Duration
	for b.Loop() {
		serial++
		before := cpu(b)
		paced(benchEvents, commit)
		without += cpu(b) - before

		serial++
		after := r.end(admin)
		var readers sync.WaitGroup
		var mu sync.Mutex
		for i := range benchReaders {
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(b, err)
			token := admin
			if i >= 20 { // of one account no more wait
				token = fmt.Sprint("token-of-reader-", i/20)
			}
			_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\nLast-Event-ID: %s\r\n\r\n", changes, token, after)
			require.NoError(b, err)
			readers.Go(func() {
				defer conn.Close()
				got := readLags(conn, benchEvents)
				mu.Lock()
				defer mu.Unlock()
				lags = append(lags, got...)
			})
		}
		time.Sleep(200 * time.Millisecond)
		before = cpu(b)
		paced(benchEvents, commit)
		readers.Wait()
		with += cpu(b) - before

		bare += bareStreams(b, r)
	}
	require.Len(b, lags, b.N*benchReaders*benchEvents, "some readers were cut")
	slices.Sort(lags)
	events := float64(b.N * benchEvents)
	b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64((with-without).Microseconds())/events, "cpu-us/event")
	b.ReportMetric(float64(bare)/float64(with-without), "ratio")
	b.ReportMetric(0, "ns/op")
}

// bareStreams is the CPU time of a loop that writes the texts of as many events to as many
// sockets, as many at once as the feed does, and of their readers.
func bareStreams(b *testing.B, r *rig) time.Duration {
	g := r.do("GET", changes+"?limit=1", r.w.Tokens[cloud.ClientAdmin], "")
	require.Equal(b, 200, g.status)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer ln.Close()
	text := append(append([]byte("id: x\nevent: event.recorded\ndata: "), g.body[30:len(g.body)-60]...), fmt.Sprintf(`"message":"at %d"`, time.Now().UnixNano())+"\n\n"...)
	var readers sync.WaitGroup
	var conns []net.Conn
	for range benchReaders {
		readers.Go(func() {
			c, err := ln.Accept()
			if err == nil {
				readLags(c, benchEvents)
				_ = c.Close()
			}
		})
		c, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(b, err)
		defer c.Close()
		conns = append(conns, c)
	}
	const atOnce = benchRate / 50 // events of a read
	batch := bytes.Repeat(text, atOnce)
	before := cpu(b)
	for range benchEvents / atOnce {
		time.Sleep(time.Second / 50)
		for _, c := range conns {
			_, err := c.Write(batch)
			require.NoError(b, err)
		}
	}
	readers.Wait()
	return cpu(b) - before
}

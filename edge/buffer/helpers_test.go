package buffer

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// clock gives every record another Mono.
type clock struct{ mono atomic.Int64 }

func (c *clock) stamp() wire.Record {
	m := c.mono.Add(1)
	return wire.Record{At: 1_700_000_000_000_000_000 + m, Mono: m, Clock: wire.ClockCarried}
}

func (c *clock) record(boot uint64, k wire.Kind, body string) Record {
	r := c.stamp()
	r.Kind, r.Boot, r.Body = k, boot, wire.MustEncode(map[uint]string{1: body})
	return Record{Kind: k, Bytes: wire.MustEncode(r)}
}

// bodyOf is the text that record put into a record, or the gap's reason.
func bodyOf(t require.TestingT, raw []byte) string {
	r, err := wire.DecodeRecord(raw)
	require.NoError(t, err)
	if r.Kind == wire.KindGap {
		return "gap " + gapOf(t, raw).Reason
	}
	var m map[uint]string
	require.NoError(t, wire.Decode(r.Body, &m))
	return m[1]
}

func gapOf(t require.TestingT, raw []byte) wire.Gap {
	r, err := wire.DecodeRecord(raw)
	require.NoError(t, err)
	require.Equal(t, wire.KindGap, r.Kind)
	var g wire.Gap
	require.NoError(t, wire.Decode(r.Body, &g))
	return g
}

func testConfig(t testing.TB, c *clock) Config {
	return Config{Path: filepath.Join(t.TempDir(), "store.db"), MaxBytes: 8 << 20, Stamp: c.stamp, NoSync: true}
}

func open(t testing.TB, cfg Config) *Store {
	s, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func commit(t require.TestingT, s *Store, recs ...Record) {
	require.NoError(t, s.Commit(context.Background(), Change{Records: recs}))
}

// readAll reads a lane from n on in small runs and checks that they join.
func readAll(t require.TestingT, s *Store, l wire.Lane, n uint64) (first uint64, bodies []string, head wire.Head) {
	for {
		run, err := s.Read(l, n, 7, 1<<20)
		require.NoError(t, err)
		if first == 0 {
			first = run.First
		} else {
			require.Equal(t, n, run.First)
		}
		head = run.Head
		if len(run.Records) == 0 {
			return first, bodies, head
		}
		for _, r := range run.Records {
			bodies = append(bodies, bodyOf(t, r))
		}
		n = run.Next()
	}
}

func bodies(prefix string, from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

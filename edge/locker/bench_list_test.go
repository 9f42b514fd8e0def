package locker

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/wire"
)

// BenchmarkWholeList applies a whole list of 5,000 entries in parts, from the last
// part to the end of its one commit.
func BenchmarkWholeList(b *testing.B) {
	store, err := buffer.Open(buffer.Config{Path: filepath.Join(b.TempDir(), "edge.db"), Stamp: func() wire.Record { return wire.Record{Boot: 1, Mono: 1} }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	now := Now{Boot: 1, Mono: second, Offset: 1_800_000_000 * second, Clock: wire.ClockSynced}
	b.StopTimer()
	for i := range b.N {
		s, _ := Step(New(testConfig(60)), Started{Fresh: true}, now)
		list := partsOf(8, fmt.Append(nil, i), parcels(5000)...)
		var out Out
		for j, c := range list {
			if j == len(list)-1 {
				b.StartTimer()
			}
			s, out = Step(s, CodesCame{Codes: c, Asked: c.Nonce, Keyed: true}, now)
		}
		bytes := 0
		for _, v := range out.Put {
			bytes += len(v)
		}
		if err := store.Commit(context.Background(), buffer.Change{Put: out.Put}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(len(out.Put)), "keys")
		b.ReportMetric(float64(bytes), "bytes")
	}
}

package device

import (
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// Replay reads one device's journal again: what its records said and when they
// occurred, as it was understood when they came. The zero Replay stands before
// the first row.
type Replay struct{ last time.Time }

// Records are the records of the next row that can be read, but for those that
// are only kept as batches. Rows come in the order of the journal, without
// those that were put aside.
func (p *Replay) Records(j cloud.JournalBatch) ([]Record, error) {
	raws, err := JournalRecords(j)
	if err != nil {
		return nil, err
	}
	b, err := wire.DecodeBatch(j.Bytes)
	if err != nil {
		return nil, err
	}
	var out []Record
	for i, raw := range raws {
		r, err := wire.DecodeRecord(raw)
		if err != nil || !placed(r.Kind) {
			continue
		}
		r.Body = wire.Clean(r.Body)
		at, approximate := place(b, r, p.last, j.ReceivedAt)
		var earliest, latestAt time.Time
		if approximate {
			earliest, latestAt = bounds(j.Lane, at, p.last, newest(b, r, j.ReceivedAt))
		}
		p.last = latest(p.last, at)
		out = append(out, Record{Record: r, Lane: j.Lane, Seq: j.First + uint64(i), OccurredAt: at, Approximate: approximate, Earliest: earliest, Latest: latestAt})
	}
	return out, nil
}

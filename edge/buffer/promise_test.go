package buffer

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/postern-io/postern/protocol/wire"
)

// crashConfig is a small store, so that eviction and segments come early.
func crashConfig(dir string, c *clock) Config {
	return Config{Path: filepath.Join(dir, "s"), MaxBytes: 256 << 10, SegmentRecords: 8, Stamp: c.stamp}
}

// told is what the script was promised up to some point.
type told struct {
	created bool
	ok      []string          // committed
	cloud   [2]map[string]int // acknowledged by the cloud, so it may go
}

func (t *told) hear(note string) {
	f := strings.Fields(note)
	switch f[0] {
	case "opened":
		t.created = true
	case "ok":
		t.ok = append(t.ok, f[1])
	case "cloud":
		l, _ := strconv.Atoi(f[1])
		t.cloud[l][f[2]]++
	}
}

// missing lists what was promised and is neither held, nor acknowledged by the
// cloud, nor named by a gap.
func missing(s *Store, facts told) (lost []string, err error) {
	state := map[string]bool{}
	if err := s.Load(func(k string, v []byte) error { state[k+"="+string(v)] = true; return nil }); err != nil {
		return nil, err
	}
	var held [2]map[string]bool
	named := uint64(0)
	for l := range held {
		held[l] = map[string]bool{}
		for n := uint64(1); ; {
			run, err := s.Read(wire.Lane(l), n, 50, 1<<20)
			if err != nil {
				return nil, err
			}
			if len(run.Records) == 0 {
				break
			}
			n = run.Next()
			for _, raw := range run.Records {
				named += note(raw, held[l])
			}
		}
	}
	for _, id := range facts.ok {
		if !state["state/"+id+"="+id] {
			lost = append(lost, "state "+id)
		}
		if !held[0][id] && facts.cloud[0][id] == 0 {
			lost = append(lost, "settlement "+id)
		}
		if !held[1][id] && facts.cloud[1][id] == 0 {
			if named == 0 {
				lost = append(lost, "telemetry "+id)
				continue
			}
			named--
		}
	}
	return lost, nil
}

// note adds a record to what is held, or returns how many records it names as
// lost.
func note(raw wire.Raw, held map[string]bool) uint64 {
	r, err := wire.DecodeRecord(raw)
	if err != nil {
		panic(err)
	}
	if r.Kind == wire.KindGap {
		var g wire.Gap
		if err := wire.Decode(r.Body, &g); err != nil {
			panic(err)
		}
		if g.Reason != wire.GapEvicted {
			return 0
		}
		return g.Last - g.First + 1
	}
	var m map[uint]string
	if err := wire.Decode(r.Body, &m); err != nil {
		panic(err)
	}
	id, _, _ := strings.Cut(m[1], "/")
	held[id] = true
	return 0
}

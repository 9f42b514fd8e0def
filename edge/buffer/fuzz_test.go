package buffer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

func FuzzDecodeStored(f *testing.F) {
	f.Add(stored{kind: wire.KindScan, boot: 300, record: []byte{0xa0}}.encode())
	f.Add(stored{kind: wire.KindScan, boot: 1, before: &wire.Head{1}, record: []byte{0xa0}}.encode())
	f.Add([]byte{1, 1, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeStored(b)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := decodeStored(r.encode())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

// The check reads whatever lies in the file: it may only say that it is damaged.
func FuzzCheck(f *testing.F) {
	var c clock
	cfg := testConfig(f, &c)
	s, err := Open(cfg)
	require.NoError(f, err)
	for i := range 40 {
		commit(f, s, c.record(1, wire.KindScan, fmt.Sprint(i)))
	}
	require.NoError(f, s.Close())
	sound, err := os.ReadFile(cfg.Path)
	require.NoError(f, err)
	f.Add(uint32(4100), []byte{1, 2, 3})
	f.Add(uint32(3*4096+8), []byte{1})
	f.Add(uint32(0), []byte{})
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		b := bytes.Clone(sound)
		copy(b[int(at)%len(b):], with)
		for _, full := range []bool{false, true} {
			p, err := openPages(context.Background(), bytes.NewReader(b), 0)
			if err == nil {
				_, err = p.check(full)
			}
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged)
			}
		}
	})
}

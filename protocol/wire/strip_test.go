package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutLeavesTheRestAsItWas(t *testing.T) {
	t.Parallel()
	in := MustEncode(map[uint64]any{1: "a", 5: []any{1, []byte{2}, "x"}, 10: []byte{9}, 11: map[uint64]any{1: -4, 2: 1.5, 3: true}})
	out, err := Without(in, 5, 10)
	require.NoError(t, err)
	require.Equal(t, MustEncode(map[uint64]any{1: "a", 11: map[uint64]any{1: -4, 2: 1.5, 3: true}}), out)
	same, err := Without(in)
	require.NoError(t, err)
	require.Equal(t, in, same)
	many := map[uint64]any{}
	for k := range uint64(40) {
		many[k+1] = k
	}
	out, err = Without(MustEncode(many), 40)
	require.NoError(t, err)
	delete(many, 40)
	require.Equal(t, MustEncode(many), out)
}

// A record that is nested too deeply for the link leaves its batch signed: the
// cloud refuses it to the device, which sets it aside.
func TestWithoutPassesWhatTheLinkRefuses(t *testing.T) {
	t.Parallel()
	deep := append(bytes.Repeat([]byte{0x81}, 12), 0x00)
	out, err := Without(append([]byte{0xa2, 0x01, 0x02, 0x05}, deep...), 5)
	require.NoError(t, err)
	require.Equal(t, []byte{0xa1, 0x01, 0x02}, out)
	tagged := []byte{0xa1, 0x05, 0xc1, 0x00}
	out, err = Without(tagged, 5)
	require.NoError(t, err)
	require.Equal(t, []byte{0xa0}, out)
}

func TestWithoutRefusesWhatIsNoMapInOrder(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]byte{nil, {0x01}, {0x80}, {0xa1}, {0xa1, 0x01}, {0xa2, 0x02, 0x01, 0x01, 0x01}, {0xa2, 0x01, 0x01, 0x01, 0x01}, {0xa1, 0x01, 0x01, 0x00}, {0xbf, 0xff},
		{0xa1, 0x01, 0x5a, 0xff, 0xff, 0xff, 0xff}, append([]byte{0xa1, 0x01}, bytes.Repeat([]byte{0x81}, 40)...), {0xa1, 0x61, 0x61, 0x01}} {
		_, err := Without(bad, 5)
		require.ErrorIs(t, err, ErrBad, "%x", bad)
	}
}

func FuzzWithout(f *testing.F) {
	f.Add(MustEncode(sampleBatch()))
	f.Add([]byte{0xa2, 0x01, 0x02, 0x05, 0x81, 0x81, 0x00})
	f.Fuzz(func(t *testing.T, p []byte) {
		out, err := Without(p, 5, 10)
		if err != nil {
			return
		}
		again, err := Without(out, 5, 10)
		require.NoError(t, err)
		require.Equal(t, out, again)
	})
}

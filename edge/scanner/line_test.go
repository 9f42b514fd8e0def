package scanner

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever pieces a stream comes in, its lines are those between its ends, and
// too long ones are refused once.
func TestStreamsAreCutIntoLines(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(2, 6))
	for range 300 {
		var stream []byte
		for range rnd.IntN(12) {
			n := rnd.IntN(30)
			if rnd.IntN(6) == 0 {
				n = MaxLine - 1 + rnd.IntN(3)
			}
			stream = append(stream, bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, n)...)
			stream = append(stream, []string{"\r", "\n", "\r\n", "\t"}[rnd.IntN(4)]...)
		}
		var want, got []string
		for _, l := range bytes.FieldsFunc(stream, func(r rune) bool { return r == '\r' || r == '\n' || r == '\t' }) {
			if len(l) > MaxLine {
				l = []byte("too long")
			}
			want = append(want, string(l))
		}
		give := func(raw []byte, fits bool) {
			if !fits {
				require.Nil(t, raw)
				raw = []byte("too long")
			}
			got = append(got, string(raw))
		}
		var s splitter
		for rest := stream; len(rest) > 0; {
			n := 1 + rnd.IntN(len(rest))
			s.add(rest[:n], give)
			rest = rest[n:]
		}
		s.end(give)
		require.Equal(t, want, got)
	}
}

func TestAPauseEndsALine(t *testing.T) {
	t.Parallel()
	var got []string
	var s splitter
	give := func(raw []byte, _ bool) { got = append(got, string(raw)) }
	s.add([]byte("AB"), give)
	require.Empty(t, got)
	s.end(give)
	s.end(give)
	s.add([]byte("CD\n"), give)
	require.Equal(t, []string{"AB", "CD"}, got)
}

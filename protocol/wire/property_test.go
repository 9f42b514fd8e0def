package wire

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawEpoch(t *rapid.T) Epoch {
	return Epoch(rapid.SliceOfN(rapid.Byte(), 16, 16).Filter(func(b []byte) bool { return !Epoch(b).IsZero() }).Draw(t, "epoch"))
}

func drawHead(t *rapid.T) Head {
	return Head(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "head"))
}

func drawRecord(t *rapid.T) Record {
	return Record{Kind: Kind(rapid.UintRange(1, 40).Draw(t, "kind")), At: rapid.Int64().Draw(t, "at"), Boot: rapid.Uint64().Draw(t, "boot"),
		Mono: rapid.Int64().Draw(t, "mono"), Clock: Clock(rapid.IntRange(0, 2).Draw(t, "clock")), ErrMS: rapid.Uint32().Draw(t, "err"),
		Body: MustEncode(DoorOpened{OpeningID: rapid.String().Draw(t, "id"), Door: rapid.Uint().Draw(t, "door")})}
}

func TestAnyBatchIsReadBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Batch{Version: Version, Epoch: drawEpoch(t), Lane: Lane(rapid.IntRange(0, 1).Draw(t, "lane")), First: rapid.Uint64Range(1, 1<<62).Draw(t, "first"),
			Head: drawHead(t), Sent: Sample{Boot: rapid.Uint64().Draw(t, "boot"), Mono: rapid.Int64().Draw(t, "mono"), Wall: rapid.Int64().Draw(t, "wall"),
				Clock: ClockSynced, ErrMS: rapid.Uint32().Draw(t, "err")}}
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			b.Records = append(b.Records, MustEncode(drawRecord(t)))
		}
		if rapid.Bool().Draw(t, "boots") {
			b.Boots = map[uint64]BootSync{rapid.Uint64().Draw(t, "b"): {Mono: 1, Wall: -1, ErrMS: 9}}
		}
		raw := MustEncode(b)
		got, err := DecodeBatch(raw)
		require.NoError(t, err)
		require.Equal(t, b, *got)
		require.Equal(t, b.First+uint64(len(b.Records))-1, got.Last())
		e, l, first, ok := PeekBatch(raw)
		require.True(t, ok)
		require.Equal(t, b.Epoch, e)
		require.Equal(t, b.Lane, l)
		require.Equal(t, b.First, first)
		for i := range b.Records {
			r, err := DecodeRecord(got.Records[i])
			require.NoError(t, err)
			require.Equal(t, []byte(b.Records[i]), MustEncode(r))
		}
	})
}

func TestAnyStatusIsReadBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Status{State: rapid.SampledFrom([]string{Online, Offline}).Draw(t, "state"), At: rapid.Int64().Draw(t, "at"), Epoch: drawEpoch(t),
			CodeList: rapid.Uint64().Draw(t, "list"), AgentVersion: rapid.String().Draw(t, "version")}
		for range rapid.IntRange(0, 64).Draw(t, "doors") {
			s.Doors = append(s.Doors, DoorStatus{Door: rapid.Uint().Draw(t, "door"), State: DoorOpen, Item: Item(rapid.IntRange(0, 2).Draw(t, "item")),
				OpeningID: rapid.String().Draw(t, "opening"), Version: rapid.Uint64().Draw(t, "v")})
		}
		got, err := DecodeStatus(MustEncode(s))
		require.NoError(t, err)
		require.Equal(t, s, *got)
	})
}

// The chain is SHA-256 over the value before and the bytes as sent, from a start
// that names epoch and lane: written down here a second time, from the rule.
func TestHeadsAreTheChainOfTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e, l := drawEpoch(t), Lane(rapid.IntRange(0, 1).Draw(t, "lane"))
		want := sha256.Sum256(append(append([]byte("postern/chain/1"), e[:]...), byte(l)))
		got := FirstHead(e, l)
		require.Equal(t, Head(want), got)
		for _, r := range rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 5).Draw(t, "records") {
			want = sha256.Sum256(append(bytes.Clone(want[:]), r...))
			got = got.Next(r)
			require.Equal(t, Head(want), got)
		}
		require.NotEqual(t, FirstHead(e, 0), FirstHead(e, 1))
	})
}

package wire

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

// loose encodes what the link's own encoder refuses to.
var loose = must(cbor.EncOptions{}.EncMode())

func looseBytes(t testing.TB, v any) []byte {
	t.Helper()
	b, err := loose.Marshal(v)
	require.NoError(t, err)
	return b
}

// batchMap is a sound batch as a map, to be broken.
func batchMap() map[int]any {
	return map[int]any{1: 1, 2: bytes.Repeat([]byte{1}, 16), 3: 0, 4: 1, 5: []Raw{MustEncode(sampleRecord())}, 6: []int64{1, 2, 3, 2, 4}, 8: bytes.Repeat([]byte{3}, 32)}
}

func nested(levels int) any {
	var v any = 1
	for range levels {
		v = []any{v}
	}
	return v
}

func TestDecodersRefuseWhatBreaksALimit(t *testing.T) {
	t.Parallel()
	f := func(name, want string, change func(map[int]any)) {
		t.Helper()
		m := batchMap()
		change(m)
		_, err := DecodeBatch(looseBytes(t, m))
		require.ErrorIs(t, err, ErrBad, name)
		require.ErrorContains(t, err, want, name)
	}
	records := func(n int) []Raw {
		out := make([]Raw, n)
		for i := range out {
			out[i] = Raw{0xa0}
		}
		return out
	}
	f("another version", "version 2", func(m map[int]any) { m[1] = 2 })
	f("no epoch", "without an epoch", func(m map[int]any) { delete(m, 2) })
	f("lane 2", "lane 2", func(m map[int]any) { m[3] = 2 })
	f("first 0", "first record is 0", func(m map[int]any) { m[4] = 0 })
	f("first beyond any store", "first record is", func(m map[int]any) { m[4] = uint64(1<<62 + 1) })
	f("no records", "0 records", func(m map[int]any) { m[5] = []Raw{} })
	f("1,025 records", "max number of elements 1024", func(m map[int]any) { m[5] = records(1025) })
	f("a record over 16 KiB", "16385 bytes", func(m map[int]any) {
		m[5] = []Raw{looseBytes(t, bytes.Repeat([]byte{7}, MaxRecord+1-3))}
	})
	f("prev_epoch in the middle", "prev_epoch on record 2", func(m map[int]any) { m[4], m[7] = 2, bytes.Repeat([]byte{1}, 16) })
	f("65 pairs in a map", "max number of key-value pairs 64", func(m map[int]any) {
		pairs := map[int]int{}
		for i := range 65 {
			pairs[i] = i
		}
		m[99] = pairs
	})
	f("nine levels", "max nested level 8", func(m map[int]any) { m[99] = nested(8) })
	f("over 128 KiB", "the limit is 131072", func(m map[int]any) { m[99] = bytes.Repeat([]byte{0}, MaxPayload) })

	ok := batchMap()
	ok[5] = records(MaxRecords)
	_, err := DecodeBatch(looseBytes(t, ok))
	require.NoError(t, err, "1,024 records are allowed")
	ok = batchMap()
	ok[99] = nested(7)
	_, err = DecodeBatch(looseBytes(t, ok))
	require.NoError(t, err, "eight levels are allowed")
	ok = batchMap()
	ok[5] = []Raw{looseBytes(t, bytes.Repeat([]byte{7}, MaxRecord-3))}
	b, err := DecodeBatch(looseBytes(t, ok))
	require.NoError(t, err, "16 KiB are allowed")
	require.Len(t, b.Records[0], MaxRecord)
}

func TestDecodersRefuseWhatIsNotDeterministicallyOneItem(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"empty":                 {},
		"duplicate key":         {0xa2, 0x01, 0x01, 0x01, 0x02},
		"indefinite map":        {0xbf, 0x01, 0x01, 0xff},
		"indefinite array":      {0xa1, 0x05, 0x9f, 0x01, 0xff},
		"indefinite bytes":      {0xa1, 0x02, 0x5f, 0x41, 0x01, 0xff},
		"trailing byte":         {0xa1, 0x01, 0x01, 0x00},
		"two items":             {0xa0, 0xa0},
		"cut short":             {0xa1, 0x01},
		"text that is no UTF-8": {0xa1, 0x01, 0x61, 0xff},
		"reserved info":         {0x1c},
		"a break alone":         {0xff},
	} {
		var down Down
		require.ErrorIs(t, Decode(b, &down), ErrBad, name)
		var any map[uint64]any
		require.ErrorIs(t, Decode(b, &any), ErrBad, name)
	}
	_, err := DecodeRecord(looseBytes(t, map[int]any{1: 2, 7: bytes.Repeat([]byte{1}, MaxRecord)}))
	require.ErrorIs(t, err, ErrBad)
	_, err = DecodeRecord([]byte{0xa0})
	require.ErrorContains(t, err, "without a kind")
	_, err = DecodeStatus(looseBytes(t, map[int]any{1: "asleep"}))
	require.ErrorContains(t, err, `status state "asleep"`)
	_, err = DecodeDown([]byte{0xa1, 0x01, 0x01})
	require.ErrorContains(t, err, "without a body")
}

// Unknown keys are ignored: that is how the link grows.
func TestUnknownKeysAreIgnoredInEveryMessage(t *testing.T) {
	t.Parallel()
	for _, m := range messages() {
		var fields map[uint64]cbor.RawMessage
		require.NoError(t, Decode(MustEncode(m.value), &fields), m.name)
		fields[60] = MustEncode("of a newer agent")
		fields[61] = MustEncode([]int{1, 2})
		got, err := decodeLike(m.value, MustEncode(fields))
		require.NoError(t, err, m.name)
		require.Equal(t, MustEncode(m.value), MustEncode(got), m.name)
	}
}

// A refusal must name the batch it answers, or the agent sends the same batch
// for ever: it halves what it can name. What is wrong comes behind the names.
func TestRefusedBatchIsNamedWhateverIsWrongWithIt(t *testing.T) {
	t.Parallel()
	deep := batchMap()
	deep[5] = []Raw{looseBytes(t, map[int]any{1: 2, 7: nested(7)})} // reads well alone, too deep inside a batch
	_, err := DecodeRecord(deep[5].([]Raw)[0])
	require.NoError(t, err)
	big := batchMap()
	big[99] = bytes.Repeat([]byte{0}, MaxPayload)
	sort := must(cbor.EncOptions{Sort: cbor.SortCoreDeterministic}.EncMode())
	for name, m := range map[string]map[int]any{"too deep": deep, "too large": big} {
		b, err := sort.Marshal(m)
		require.NoError(t, err)
		_, err = DecodeBatch(b)
		require.ErrorIs(t, err, ErrBad, name)
		e, l, first, ok := PeekBatch(b)
		require.True(t, ok, name)
		require.Equal(t, epoch(1), e)
		require.Equal(t, Settlement, l)
		require.EqualValues(t, 1, first)
	}
	whole := MustEncode(sampleBatch())
	for n := range whole {
		_, _, first, ok := PeekBatch(whole[:n])
		require.Equal(t, n >= 25, ok, "cut after %d bytes", n)
		require.True(t, !ok || first == 1)
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	good := sampleConfig()
	require.NoError(t, good.Check())
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := sampleConfig()
		change(&c)
		require.ErrorContains(t, c.Check(), want)
	}
	f("version is 0", func(c *Config) { c.Version = 0 })
	f("no doors", func(c *Config) { c.Layout = nil })
	f("door 0", func(c *Config) { c.Layout[0].Door = 0 })
	f("channel 0", func(c *Config) { c.Layout[0].Channel = 0 })
	f(`board ""`, func(c *Config) { c.Layout[0].Board = "" })
	f("listed twice", func(c *Config) { c.Layout = append(c.Layout, LayoutDoor{Door: 1, Board: "A", Channel: 9}) })
	f("two doors on A/2", func(c *Config) { c.Layout = append(c.Layout, LayoutDoor{Door: 2, Board: "A", Channel: 2}) })
	f("day 7", func(c *Config) { c.Hours[0].Day = 7 })
	f("pulse of 99 ms", func(c *Config) { c.Times.PulseMS = 99 })
	f("pulse of 2001 ms", func(c *Config) { c.Times.PulseMS = 2001 })
	f("session of 4 s", func(c *Config) { c.Times.SessionS = 4 })
	f("session of 7201 s", func(c *Config) { c.Times.SessionS = 7201 })
	f("debounce of 900 ms", func(c *Config) { c.Times.DebounceMS = 900 })
	f("code parameters", func(c *Config) { c.Codes.Passes = 0 })
	f("code parameters", func(c *Config) { c.Codes.MemoryKiB = 65537 })
	f("code parameters", func(c *Config) { c.Codes.MemoryKiB = 7 })
	f("pinned key", func(c *Config) { c.Keys[0].Key = nil })
	f("pinned key", func(c *Config) { c.Keys[0].ID = nil })

	post := sampleConfig()
	require.ErrorContains(t, post.CheckPost(), fmt.Sprintf("a warehouse post has no doors, and the layout has %d", len(post.Layout)))
	post.Layout = nil
	require.NoError(t, post.CheckPost())
	post.Codes.Passes = 0
	require.ErrorContains(t, post.CheckPost(), "code parameters", "all else is checked as for a cabinet")

	all := sampleConfig()
	all.Version, all.Codes.Passes = 0, 0
	require.ErrorContains(t, all.Check(), "version is 0")
	require.ErrorContains(t, all.Check(), "code parameters", "everything that is wrong is told at once")
}

func TestTimesTakeDefaultsFieldByField(t *testing.T) {
	t.Parallel()
	require.Equal(t, DefaultTimes(), Times{}.WithDefaults())
	got := Times{SettleMS: 1}.WithDefaults()
	want := DefaultTimes()
	want.SettleMS = 1
	require.Equal(t, want, got)
}

func TestEveryKindHasALaneAndAName(t *testing.T) {
	t.Parallel()
	for k := KindOpeningStarted; k.IsKnown(); k++ {
		want := Settlement
		switch k {
		case KindDoorOpened, KindDoorClosed, KindScan, KindTelemetry, KindHealth, KindCodeAttempt:
			want = Telemetry
		}
		require.Equal(t, want, k.Lane(), k.String())
		require.NotContains(t, k.String(), "kind(")
	}
	require.Equal(t, Telemetry, Kind(99).Lane())
	require.Equal(t, "kind(99)", Kind(99).String())
	require.Equal(t, "kind(0)", Kind(0).String())
}

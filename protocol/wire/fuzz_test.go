package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// seed adds every golden message, and some that were cut or bent.
func seed(f *testing.F) {
	for _, m := range messages() {
		b := MustEncode(m.value)
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(b, 0))
	}
	f.Add([]byte{})
	f.Add([]byte{0x9f, 0xff})
	f.Add([]byte{0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
}

// again demands that what was read is written and read as the same.
func again[T any](t *testing.T, v T) {
	b, err := Encode(v)
	require.NoError(t, err)
	if len(b) > MaxPayload {
		return
	}
	var w T
	require.NoError(t, Decode(b, &w))
	c, err := Encode(w)
	require.NoError(t, err)
	require.Equal(t, b, c)
}

func FuzzBatch(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		e, l, first, named := PeekBatch(p)
		b, err := DecodeBatch(p)
		if err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		require.LessOrEqual(t, len(b.Records), MaxRecords)
		if named { // a batch in another order of keys cannot be named, and is read all the same
			require.Equal(t, b.Epoch, e)
			require.Equal(t, b.Lane, l)
			require.Equal(t, b.First, first)
		}
		for _, r := range b.Records {
			_, _ = DecodeRecord(r)
		}
		again(t, *b)
	})
}

func FuzzRecordAndEveryBody(f *testing.F) {
	for k, b := range bodies() {
		f.Add(MustEncode(Record{Kind: k, Boot: 1, Mono: 2, Body: MustEncode(b)}))
	}
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := DecodeRecord(p)
		if err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		again(t, r)
		body, ok := bodies()[r.Kind]
		if !ok {
			return
		}
		v, err := decodeLike(body, r.Body)
		if err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		_, err = Encode(v)
		require.NoError(t, err)
	})
}

func FuzzDown(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		d, err := DecodeDown(p)
		if err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		var a Ack
		if d.Type == DownAck && Decode(d.Body, &a) == nil {
			again(t, a)
		}
		again(t, d)
	})
}

func FuzzStatus(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := DecodeStatus(p)
		if err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		again(t, *s)
	})
}

func FuzzCommandAndEveryBody(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		var c Command
		if Decode(p, &c) == nil {
			again(t, c)
		}
		for _, body := range []any{OpenDoors{}, CloseSession{}, DoorReason{}, SyncConfig{}, Update{}, Diagnosis{}, ChannelTest{}, Time{}} {
			if v, err := decodeLike(body, p); err == nil {
				_, err = Encode(v)
				require.NoError(t, err)
			}
		}
	})
}

func FuzzConfig(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		var c Config
		if err := Decode(p, &c); err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		_ = c.Check()
		again(t, c)
	})
}

func FuzzCodes(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		var c Codes
		if err := Decode(p, &c); err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		again(t, c)
	})
}

// The quick readers take what the library takes, and mean the same.
func FuzzQuickReaders(f *testing.F) {
	for k, b := range bodies() {
		f.Add(MustEncode(Record{Kind: k, At: -1, Boot: 1, Mono: 2, Clock: ClockSynced, ErrMS: 7, Body: MustEncode(b)}))
	}
	seed(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > MaxRecord {
			return
		}
		if r, ok := quickRecord(p); ok {
			want, err := libraryRecord(p)
			require.NoError(t, err)
			require.Equal(t, want, r)
		}
		if b, ok := quickBatch(p); ok {
			var want Batch
			require.NoError(t, Decode(p, &want))
			require.Equal(t, want, b)
		}
	})
}

// What our own encoder writes takes the quick way.
func TestOwnMessagesAreReadQuickly(t *testing.T) {
	for k, b := range bodies() {
		raw := MustEncode(Record{Kind: k, At: 5, Boot: 1, Mono: 2, Clock: ClockSynced, ErrMS: 7, Body: MustEncode(b)})
		_, ok := quickRecord(raw)
		require.True(t, ok, "%v: %x", k, raw)
		_, ok = quickBatch(MustEncode(Batch{Version: 1, Epoch: Epoch{1}, First: 1, Records: []Raw{raw, raw}, Boots: map[uint64]BootSync{1: {Mono: 1}}}))
		require.True(t, ok, k)
	}
}

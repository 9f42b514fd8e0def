package lockbus

import (
	"encoding/hex"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return p
}

// locks is the hook or item mask of these channels.
func locks(n ...uint) (m uint64) {
	for _, l := range n {
		m |= 1 << (l - 1)
	}
	return m
}

const all48 = 1<<48 - 1

func list(n ...uint8) (f Frame) {
	f.Count = uint8(copy(f.List[:], n))
	return f
}

type golden struct {
	family Family
	what   string
	hex    string
	answer bool
	frame  Frame
}

// goldens are the frames that manufacturers' papers and working drivers give,
// every one of them, and a few captured answers of the preamble board.
func goldens() []golden {
	turn := list(1, 2, 3)
	turn.Kind = UnlockInTurn
	return []golden{
		{CU48, "status of board 0", "02 00 00 50 03 55", false, Frame{Kind: AskStatus}},
		{CU48, "status of all boards", "02 0A 00 50 03 5F", false, Frame{Kind: AskStatus, Board: AllBoards}},
		{CU48, "locks 1, 2, 3, 47, 48 locked", "02 00 00 65 07 00 00 00 00 C0 03 31", true, Frame{Kind: Status, Hooks: locks(1, 2, 3, 47, 48)}},
		{CU48, "board 1: only lock 24 locked", "02 01 00 65 00 00 80 00 00 00 03 EB", true, Frame{Kind: Status, Board: 1, Hooks: locks(24)}},
		{CU48, "board 2: all locked", "02 02 00 65 FF FF FF FF FF FF 03 66", true, Frame{Kind: Status, Board: 2, Hooks: all48}},
		{CU48, "board 2: all locked but 17", "02 02 00 65 FF FF FE FF FF FF 03 65", true, Frame{Kind: Status, Board: 2, Hooks: all48 &^ locks(17)}},
		{CU48, "unlock lock 1 of board 0", "02 00 00 51 03 56", false, Frame{Kind: Unlock, Lock: 1}},
		{CU48, "unlock lock 17 of board 2", "02 02 10 51 03 68", false, Frame{Kind: Unlock, Board: 2, Lock: 17}},
		{CU48, "unlock all of board 0", "02 00 30 51 03 86", false, Frame{Kind: UnlockAll}},
		{CU48, "unlock everything on the line", "02 0A 30 51 03 90", false, Frame{Kind: UnlockAll, Board: AllBoards}},

		{CU48B, "status of board 0", "02 00 00 60 03 65", false, Frame{Kind: AskStatus}},
		{CU48B, "unlock lock 5 of board 0", "02 00 04 61 03 6A", false, Frame{Kind: Unlock, Lock: 5}},
		{CU48B, "unlock all of board 0", "02 00 30 61 03 96", false, Frame{Kind: UnlockAll}},
		{CU48B, "all locked, items in 1 and 5", "02 00 00 75 FF FF FF FF FF FF 11 00 00 00 00 00 03 85", true, Frame{Kind: Status, Hooks: all48, Items: locks(1, 5)}},
		{CU48B, "lock 5 open, item in 1 only", "02 00 00 75 EF FF FF FF FF FF 01 00 00 00 00 00 03 65", true, Frame{Kind: Status, Hooks: all48 &^ locks(5), Items: locks(1)}},

		{CU16, "status of board 0", "02 00 30 03 35", false, Frame{Kind: AskStatus}},
		{CU16, "unlock lock 1 of board 0", "02 00 31 03 36", false, Frame{Kind: Unlock, Lock: 1}},
		{CU16, "unlock lock 16 of board 0", "02 0F 31 03 45", false, Frame{Kind: Unlock, Lock: 16}},
		{CU16, "unlock lock 3 of board 1", "02 12 31 03 48", false, Frame{Kind: Unlock, Board: 1, Lock: 3}},
		{CU16, "unlock all of board 0", "02 00 33 03 38", false, Frame{Kind: UnlockAll}},
		{CU16, "status of all boards", "02 F0 32 03 27", false, Frame{Kind: AskStatus, Board: AllBoards}},
		{CU16, "all locked, item in 1", "02 00 35 FF FF 01 00 03 39", true, Frame{Kind: Status, Hooks: 0xFFFF, Items: locks(1)}},
		{CU16, "lock 3 open, no items", "02 00 35 FB FF 00 00 03 34", true, Frame{Kind: Status, Hooks: 0xFFFF &^ locks(3)}},

		{Station, "unlock station 1 slot 5", "90 06 05 01 05 03", false, Frame{Kind: Unlock, Board: 1, Lock: 5}},
		{Station, "done", "90 07 85 01 05 01 03", true, Frame{Kind: Unlocked, Board: 1, Lock: 5, Result: Done}},
		{Station, "cooling down", "90 07 85 01 05 02 03", true, Frame{Kind: Unlocked, Board: 1, Lock: 5, Result: Cooling}},
		{Station, "failed", "90 07 85 01 05 00 03", true, Frame{Kind: Unlocked, Board: 1, Lock: 5, Result: Failed}},
		{Station, "status of station 1 slot 5", "90 06 12 01 05 03", false, Frame{Kind: AskLock, Board: 1, Lock: 5}},
		{Station, "open", "90 07 92 01 01 05 03", true, Frame{Kind: LockState, Board: 1, Lock: 5}},

		{Door80, "open lock 1 of board 1", "8A 01 01 11 9B", false, Frame{Kind: Unlock, Board: 1, Lock: 1}},
		{Door80, "open lock 12 of board 1", "8A 01 0C 11 96", false, Frame{Kind: Unlock, Board: 1, Lock: 12}},
		{Door80, "lock 12 is open", "8A 01 0C 00 87", true, Frame{Kind: Unlocked, Board: 1, Lock: 12, Result: Done}},
		{Door80, "lock 12 did not open", "8A 01 0C 11 96", true, Frame{Kind: Unlocked, Board: 1, Lock: 12, Result: Failed, Closed: true}},
		{Door80, "ask lock 12", "80 01 0C 33 BE", false, Frame{Kind: AskLock, Board: 1, Lock: 12}},
		{Door80, "closed", "80 01 0C 11 9C", true, Frame{Kind: LockState, Board: 1, Lock: 12, Closed: true}},
		{Door80, "open", "80 01 0C 00 8D", true, Frame{Kind: LockState, Board: 1, Lock: 12}},
		{Door80, "ask all", "80 01 00 33 B2", false, Frame{Kind: AskStatus, Board: 1}},
		{Door80, "only 1, 9, 17 closed", "80 01 01 01 01 33 B3", true, Frame{Kind: Status, Board: 1, Hooks: locks(1, 9, 17)}},
		{Door80, "only door 10 open", "80 01 FF FD FF 33 4F", true, Frame{Kind: Status, Board: 1, Hooks: (1<<24 - 1) &^ locks(10)}},
		{Door80, "open all", "8A 01 00 11 9A", false, Frame{Kind: UnlockAll, Board: 1}},

		{Preamble, "open channel 5", "57 4B 4C 59 09 00 82 05 87", false, Frame{Kind: Unlock, Lock: 5}},
		{Preamble, "ask channel 5", "57 4B 4C 59 09 00 83 05 86", false, Frame{Kind: AskLock, Lock: 5}},
		{Preamble, "ask all", "57 4B 4C 59 08 00 84 85", false, Frame{Kind: AskStatus}},
		{Preamble, "open 1, 2, 3 in turn", "57 4B 4C 59 0C 00 87 03 01 02 03 81", false, turn},
		{Preamble, "channel 1 has opened", "57 4B 4C 59 0B 00 82 00 01 00 81", true, Frame{Kind: Unlocked, Lock: 1, Result: Done, Code: preUnlock}},
		{Preamble, "channel 1 flashed", "57 4B 4C 59 0A 00 81 00 01 83", true, Frame{Kind: Acted, Lock: 1, Result: Done, Code: preFlash}},
	}
}

func TestKnownFramesReadAndWriteByteForByte(t *testing.T) {
	t.Parallel()
	for _, g := range goldens() {
		t.Run(g.family.String()+"/"+g.what, func(t *testing.T) {
			t.Parallel()
			c, raw := For(g.family), unhex(t, g.hex)
			decode, encode := c.DecodeRequest, c.AppendRequest
			if g.answer {
				decode, encode = c.DecodeAnswer, c.AppendAnswer
			}
			got, err := decode(raw)
			require.NoError(t, err)
			require.Equal(t, g.frame, got)
			out, err := encode([]byte{0xEE}, g.frame)
			require.NoError(t, err)
			require.Equal(t, append([]byte{0xEE}, raw...), out, "appends behind what is there")
		})
	}
}

// frames draws a frame that its family can encode.
func frames(c Codec, answer bool) *rapid.Generator[Frame] {
	return rapid.Custom(func(t *rapid.T) Frame {
		r := c.Family.row()
		f := Frame{
			Kind:   Kind(rapid.IntRange(int(AskStatus), int(Changed)).Draw(t, "kind")),
			Board:  rapid.Uint8Range(r.first, min(r.last, 31)).Draw(t, "board"),
			Lock:   uint8(rapid.UintRange(0, r.channels).Draw(t, "lock")),
			Hooks:  rapid.Uint64().Draw(t, "hooks") & channelMask(r.channels),
			Items:  rapid.Uint64().Draw(t, "items") & channelMask(r.channels),
			Closed: rapid.Bool().Draw(t, "closed"),
			Result: Result(rapid.IntRange(int(None), int(Cooling)).Draw(t, "result")),
			Code:   rapid.SampledFrom([]uint8{0, preUnlock, preAll, preFlash, preHold}).Draw(t, "code"),
		}
		if !answer && rapid.Bool().Draw(t, "all") {
			f.Board = AllBoards
		}
		f.Count = uint8(copy(f.List[:], rapid.SliceOfN(rapid.Uint8Range(1, MaxList), 0, MaxList).Draw(t, "list")))
		return f
	})
}

func both(c Codec, answer bool) (func([]byte, Frame) ([]byte, error), func([]byte) (Frame, error)) {
	if answer {
		return c.AppendAnswer, c.DecodeAnswer
	}
	return c.AppendRequest, c.DecodeRequest
}

func TestWhatIsWrittenReadsBackAndStaysTheSame(t *testing.T) {
	t.Parallel()
	for _, fam := range Families() {
		for _, answer := range []bool{false, true} {
			rapid.Check(t, func(t *rapid.T) {
				c := For(fam)
				encode, decode := both(c, answer)
				f := frames(c, answer).Draw(t, "frame")
				raw, err := encode(nil, f)
				if err != nil {
					require.Empty(t, raw)
					return
				}
				require.LessOrEqual(t, len(raw), MaxFrame)
				got, err := decode(raw)
				require.NoError(t, err, "% X", raw)
				require.Equal(t, f.Kind, got.Kind)
				require.Equal(t, f.Board, got.Board)
				if f.Kind == Status {
					require.Equal(t, f.Hooks, got.Hooks)
				}
				again, err := encode(nil, got)
				require.NoError(t, err)
				require.Equal(t, raw, again)
			})
		}
	}
}

func TestOneFlippedBitIsNeverTakenForAFrameWhereThereIsACheckByte(t *testing.T) {
	t.Parallel()
	for _, g := range goldens() {
		if g.family == Station {
			continue // has no check byte
		}
		raw := unhex(t, g.hex)
		_, decode := both(For(g.family), g.answer)
		for i := range len(raw) * 8 {
			p := append([]byte(nil), raw...)
			p[i/8] ^= 1 << (i % 8)
			_, err := decode(p)
			require.Error(t, err, "%s %s, bit %d", g.family, g.what, i)
		}
	}
}

func TestTheSumMissesFlipsThatCancelOut(t *testing.T) {
	t.Parallel()
	// Why one poll proves nothing: hook 1 set, hook 9 clear has the same sum as
	// the other way round.
	raw := unhex(t, "02 00 00 65 01 00 00 00 00 00 03 6B")
	raw[4], raw[5] = 0, 1
	f, err := For(CU48).DecodeAnswer(raw)
	require.NoError(t, err)
	require.Equal(t, locks(9), f.Hooks)
}

func TestAnotherMakersTable(t *testing.T) {
	t.Parallel()
	c := For(CU16)
	c.Order = [4]Part{Hooks1to8, Items1to8, Hooks9to16, Items9to16}
	f := Frame{Kind: Status, Hooks: 0xFF01, Items: 0x00F0}
	raw, err := c.AppendAnswer(nil, f)
	require.NoError(t, err)
	require.Equal(t, []byte{0x01, 0xF0, 0xFF, 0x00}, raw[3:7])
	got, err := c.DecodeAnswer(raw)
	require.NoError(t, err)
	require.Equal(t, f, got)

	d := For(Door80)
	d.Open, d.Closed = d.Closed, d.Open
	got, err = d.DecodeAnswer(unhex(t, "80 01 0C 00 8D"))
	require.NoError(t, err)
	require.True(t, got.Closed)
}

func TestEncodingWhatAFamilyCannotSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		family Family
		frame  Frame
		want   error
	}{
		{CU48, Frame{Kind: Unlock}, ErrRange},
		{CU48, Frame{Kind: Unlock, Lock: 49}, ErrRange},
		{CU48, Frame{Kind: Unlock, Lock: 1, Board: 10}, ErrRange},
		{CU48, Frame{Kind: Flash, Lock: 1}, ErrKind},
		{CU16, Frame{Kind: Unlock, Lock: 17}, ErrRange},
		{CU16, Frame{Kind: Unlock, Lock: 1, Board: AllBoards}, ErrRange},
		{Station, Frame{Kind: AskStatus, Board: 1}, ErrKind},
		{Station, Frame{Kind: Unlock, Board: 5, Lock: 1}, ErrRange},
		{Door80, Frame{Kind: Unlock, Board: 1, Lock: 25}, ErrRange},
		{Preamble, Frame{Kind: Unlock, Board: 32, Lock: 1}, ErrRange},
		{Preamble, Frame{Kind: UnlockInTurn}, ErrRange},
		{0, Frame{Kind: Unlock, Lock: 1}, ErrKind},
	} {
		_, err := For(c.family).AppendRequest(nil, c.frame)
		require.ErrorIs(t, err, c.want, "%s %+v", c.family, c.frame)
	}
}

func TestFamilyNames(t *testing.T) {
	t.Parallel()
	for _, f := range Families() {
		text, err := f.MarshalText()
		require.NoError(t, err)
		var back Family
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, f, back)
		require.Positive(t, f.Baud())
	}
	var f Family
	require.Error(t, f.UnmarshalText([]byte("cu49")))
	require.Error(t, CU48.CheckAddress(10))
	require.Error(t, Station.CheckAddress(0))
	require.NoError(t, Preamble.CheckAddress(31))
}

func TestScannerFindsEveryFrameBetweenNoise(t *testing.T) {
	t.Parallel()
	for _, fam := range Families() {
		rapid.Check(t, func(t *rapid.T) {
			c := For(fam)
			var want []Frame
			var stream []byte
			// Noise without a byte that begins a frame: what lies between is
			// then unambiguous.
			quiet := rapid.SliceOfN(rapid.SampledFrom([]byte{0x00, 0x11, 0x33, 0xAA, 0xFF}), 0, 20)
			for range rapid.IntRange(1, 5).Draw(t, "count") {
				stream = append(stream, quiet.Draw(t, "noise")...)
				f := frames(c, true).Draw(t, "frame")
				f.Kind = Status
				if fam == Station {
					f.Kind, f.Lock = LockState, max(f.Lock, 1)
				}
				raw, err := c.AppendAnswer(nil, f)
				if err != nil {
					continue
				}
				f, err = c.DecodeAnswer(raw)
				require.NoError(t, err)
				want, stream = append(want, f), append(stream, raw...)
			}
			s := NewScanner(c)
			var got []Frame
			kind := func(f *Frame) bool { return f.Kind == Status || f.Kind == LockState && fam == Station }
			for len(stream) > 0 {
				n := min(rapid.IntRange(1, 40).Draw(t, "chunk"), len(stream))
				s.Feed(stream[:n])
				stream = stream[n:]
				for f, ok := s.Next(kind); ok; f, ok = s.Next(kind) {
					got = append(got, f)
				}
			}
			require.Equal(t, want, got)
		})
	}
}

func TestScannerSkipsEchoStaleBytesAndForeignFrames(t *testing.T) {
	t.Parallel()
	s := NewScanner(For(CU48))
	s.Feed(unhex(t, "03 02 00 00 50 03 55"))                      // tail of something, then the echo
	s.Feed(unhex(t, "02 01 00 65 00 00 80 00 00 00 03 EB 02 02")) // board 1, and noise like STX
	s.Feed(unhex(t, "02 00 00 65 07 00 00 00 00 C0 03"))          // ours but for the sum
	ours := func(f *Frame) bool { return f.Board == 0 }
	_, ok := s.Next(ours)
	require.False(t, ok)
	s.Feed([]byte{0x31})
	f, ok := s.Next(ours)
	require.True(t, ok)
	require.Equal(t, locks(1, 2, 3, 47, 48), f.Hooks)
	_, ok = s.Next(nil)
	require.False(t, ok, "what came before the frame is forgotten")
}

func TestScannerMemoryIsBounded(t *testing.T) {
	t.Parallel()
	s := NewScanner(For(CU48))
	for range 1000 {
		s.Feed([]byte{0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02})
		require.LessOrEqual(t, s.n, ScanBuffer)
	}
	s.Feed(make([]byte, 10*ScanBuffer))
	s.Feed(unhex(t, "02 02 00 65 FF FF FF FF FF FF 03 66"))
	f, ok := s.Next(nil)
	require.True(t, ok)
	require.Equal(t, 48, bits.OnesCount64(f.Hooks))
	s.Feed(append(make([]byte, 10*ScanBuffer), unhex(t, "02 02 00 65 FF FF FF FF FF FF 03 66")...))
	_, ok = s.Next(nil)
	require.True(t, ok, "what comes last stays")
}

func fuzzDecoder(f *testing.F, fam Family) {
	for _, g := range goldens() {
		if g.family == fam {
			f.Add(unhex(f, g.hex))
		}
	}
	c := For(fam)
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, answer := range []bool{false, true} {
			encode, decode := both(c, answer)
			frame, err := decode(p)
			if err != nil {
				continue
			}
			raw, err := encode(nil, frame)
			require.NoError(t, err, "%+v from % X", frame, p)
			back, err := decode(raw)
			require.NoError(t, err)
			require.Equal(t, frame, back)
		}
		for _, s := range []*Scanner{NewScanner(c), NewRequestScanner(c)} {
			s.Feed(p)
			for range ScanBuffer {
				if _, ok := s.Next(nil); !ok {
					break
				}
			}
			_, ok := s.Next(nil)
			require.False(t, ok)
		}
	})
}

func FuzzCU48(f *testing.F)     { fuzzDecoder(f, CU48) }
func FuzzCU48B(f *testing.F)    { fuzzDecoder(f, CU48B) }
func FuzzCU16(f *testing.F)     { fuzzDecoder(f, CU16) }
func FuzzStation(f *testing.F)  { fuzzDecoder(f, Station) }
func FuzzDoor80(f *testing.F)   { fuzzDecoder(f, Door80) }
func FuzzPreamble(f *testing.F) { fuzzDecoder(f, Preamble) }

package diagnosis

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func number(n int64) *int64 { return &n }

func flag(b bool) *bool { return &b }

var (
	sampleBoard = Board{Name: "A", Line: "l", Family: "switch24", Address: 1, State: "online", Polls: 9, Error: "no answer", ErrorMS: number(5), AnsweredMS: number(6),
		Channels: []Channel{{Channel: 1, Door: 1, Switch: flag(true), State: "closed", Edges: 2}, {Channel: 2, Item: flag(false)}}}
	sampleTest = Test{At: time.Unix(1, 0).UTC(), OpeningID: "op", Door: 1, Channel: 1, Result: Opened, Pulses: 1, DelayMS: number(80), Closed: true, OpenMS: number(900), Item: "absent",
		Moves: []Move{{AfterMS: 80, Channel: 1, Bit: Switch}}, Board: &sampleBoard}
)

func TestAnswersComeBack(t *testing.T) {
	boards := Boards{At: time.Unix(1, 0).UTC(), Boards: []Board{sampleBoard}}
	file, err := Encode(boards)
	require.NoError(t, err)
	got, err := DecodeBoards(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, boards, got)
	file, err = Encode(sampleTest)
	require.NoError(t, err)
	test, err := DecodeTest(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, sampleTest, test)
}

func packed(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// What is cut short, of no form, or grows beyond the bounds is refused.
func TestBadAnswersAreRefused(t *testing.T) {
	good, err := Encode(sampleTest)
	require.NoError(t, err)
	bad := map[string][]byte{
		"empty": nil, "no gzip": []byte("{}"), "cut": good[:len(good)-9], "no JSON": packed(t, "{"), "bomb": packed(t, `{"boards":[],"x":"`+strings.Repeat("a", 2*MaxView)+`"}`),
		"boards":    packed(t, `{"boards":[`+strings.Repeat(`{},`, maxBoards)+`{}]}`),
		"channels":  packed(t, `{"boards":[{"channels":[`+strings.Repeat(`{},`, maxChannels)+`{}]}]}`),
		"long text": packed(t, `{"boards":[{"name":"`+strings.Repeat("a", maxText+1)+`"}]}`),
		"control":   packed(t, `{"boards":[{"error":"a\u001b[2J"}]}`),
	}
	for name, file := range bad {
		_, err := DecodeBoards(bytes.NewReader(file))
		require.ErrorIs(t, err, ErrBad, name)
	}
	for name, file := range map[string][]byte{
		"moves": packed(t, `{"moves":[`+strings.Repeat(`{},`, MaxMoves)+`{}]}`), "channel": packed(t, `{"moves":[{"channel":65}]}`), "board": packed(t, `{"board":{"name":"\u0000"}}`),
	} {
		_, err := DecodeTest(bytes.NewReader(file))
		require.ErrorIs(t, err, ErrBad, name)
	}
}

// A kilobyte of gzip does not become a hundred megabytes of boards that are refused then.
func TestMemoryIsBounded(t *testing.T) {
	for name, file := range map[string][]byte{
		"boards":   packed(t, `{"boards":[`+strings.Repeat(`{},`, 330_000)+`{}]}`),
		"numbers":  packed(t, `{"boards":[`+strings.Repeat(`0,`, 500_000)+`0]}`),
		"channels": packed(t, `{"boards":[{"channels":[`+strings.Repeat(`0,`, 500_000)+`0]}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeBoards(bytes.NewReader(file))
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrBad, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*MaxView), "%s: of %d bytes", name, len(file))
	}
	var all Boards
	for range maxBoards {
		b := Board{Name: strings.Repeat("n", maxText), AnsweredMS: number(1), ErrorMS: number(1), Error: "no_answer"}
		for n := range maxChannels {
			b.Channels = append(b.Channels, Channel{Channel: uint(n + 1), Door: 1, Switch: flag(true), Item: flag(true), State: "closed", Edges: 9})
		}
		all.Boards = append(all.Boards, b)
	}
	file, err := Encode(all)
	require.NoError(t, err)
	_, err = DecodeBoards(bytes.NewReader(file))
	require.NoError(t, err, "the largest answer")
}

func TestTextIsBounded(t *testing.T) {
	require.Equal(t, "a b", Text("a\nb"))
	require.True(t, areTexts(Text(strings.Repeat("ä", 500)), Text("\xff\x00x")))
}

func FuzzDecode(f *testing.F) {
	for _, x := range []any{Boards{Boards: []Board{sampleBoard}}, sampleTest} {
		file, err := Encode(x)
		require.NoError(f, err)
		f.Add(file)
	}
	f.Add(packed(f, `{"at":"x"}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if b, err := DecodeBoards(bytes.NewReader(file)); err == nil {
			_, err := Encode(b)
			require.NoError(t, err)
		}
		if x, err := DecodeTest(bytes.NewReader(file)); err == nil {
			_, err := Encode(x)
			require.NoError(t, err)
		}
	})
}

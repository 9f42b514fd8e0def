package scanner

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// event is one input event as the kernel writes it.
func event(kind, code uint16, value uint32) []byte {
	b := make([]byte, eventSize)
	binary.NativeEndian.PutUint16(b[eventWords:], kind)
	binary.NativeEndian.PutUint16(b[eventWords+2:], code)
	binary.NativeEndian.PutUint32(b[eventWords+4:], value)
	return b
}

func typed(t *testing.T, keys ...[2]int) []byte {
	t.Helper()
	var raw []byte
	for _, k := range keys {
		raw = append(raw, event(4, 4, 7)...) // a scan code, which is no key
		raw = append(raw, event(typeKey, uint16(k[0]), uint32(k[1]))...)
		raw = append(raw, event(0, 0, 0)...)
	}
	var k keyboard
	var out []byte
	for i := 0; i < len(raw); i += 7 { // in pieces that fit no event
		out = k.decode(out, raw[i:min(i+7, len(raw))])
	}
	return out
}

// Keys by their numbers in linux/input-event-codes.h, not by the table.
func TestKeysTypeCharacters(t *testing.T) {
	t.Parallel()
	press := func(code int) [][2]int { return [][2]int{{code, 1}, {code, 0}} }
	keys := func(groups ...[][2]int) (out [][2]int) {
		for _, g := range groups {
			out = append(out, g...)
		}
		return out
	}
	shift := func(in [][2]int) [][2]int { return keys([][2]int{{42, 1}}, in, [][2]int{{42, 0}}) }
	ctrl := func(in [][2]int) [][2]int { return keys([][2]int{{97, 1}}, in, [][2]int{{97, 0}}) }
	for want, in := range map[string][][2]int{
		"s1":     keys(press(31), press(2)),
		"S!":     keys(shift(press(31)), shift(press(2))),
		"PU:":    keys(shift(press(25)), shift(press(22)), shift(press(39))),
		"]C1":    keys(press(27), shift(press(46)), press(2)),
		"\x1d":   ctrl(press(27)),
		"A\x1dB": keys(shift(press(30)), press(66), shift(press(48))),
		"\r":     press(28),
		"\t":     press(15),
		"01":     keys(press(82), press(79)),
		"Ab":     keys(press(58), press(30), shift(press(48)), press(58)),
		"-/.,":   keys(press(12), press(53), press(52), press(51)),
		"aa":     {{30, 1}, {30, 2}, {30, 2}, {30, 0}, {30, 1}},
		"":       keys(press(1), press(125), press(105), press(183), press(700)),
	} {
		require.Equal(t, want, string(typed(t, in...)))
	}
}

// Every character of a label can be typed, by a table that is read backwards.
func TestEveryCharacterHasAKey(t *testing.T) {
	t.Parallel()
	has := map[byte]bool{}
	for _, k := range usLayout {
		has[k[0]], has[k[1]] = true, true
	}
	for c := byte(' '); c < 0x7f; c++ {
		require.True(t, has[c], "%q", c)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add(event(typeKey, 30, 1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var whole, pieces keyboard
		want := whole.decode(nil, raw)
		var got []byte
		for i := range raw {
			got = pieces.decode(got, raw[i:i+1])
		}
		require.Equal(t, want, got)
		require.LessOrEqual(t, len(got), len(raw)/eventSize)
	})
}

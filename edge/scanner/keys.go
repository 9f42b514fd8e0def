package scanner

import (
	"encoding/binary"
	"math/bits"
)

// A Linux input event, in the byte order of the machine:
//
//	0        time, two words
//	2 words  type   uint16  1 is a key
//	+2       code   uint16
//	+4       value  int32   0 released, 1 pressed, 2 held down
const (
	eventWords = 2 * bits.UintSize / 8
	eventSize  = eventWords + 8
	typeKey    = 1
)

// Codes of keys that are more than characters (linux/input-event-codes.h).
const (
	keyBackspace  = 14
	keyTab        = 15
	keyEnter      = 28
	keyLeftCtrl   = 29
	keyLeftShift  = 42
	keyRightShift = 54
	keyCapsLock   = 58
	keyF8         = 66
	keyKeypadEnd  = 96 // enter of the keypad
	keyRightCtrl  = 97
)

const separator = 0x1D

// usLayout has the characters of keys, plain and with shift.
var usLayout = func() (m [128][2]byte) {
	for _, row := range []struct {
		first          int
		plain, shifted string
	}{
		{2, "1234567890-=", "!@#$%^&*()_+"},
		{16, "qwertyuiop[]", "QWERTYUIOP{}"},
		{30, "asdfghjkl;'`", `ASDFGHJKL:"~`},
		{43, `\zxcvbnm,./`, "|ZXCVBNM<>?"},
		{55, "*", "*"}, {57, " ", " "}, // of the keypad, and the space bar
		{71, "789-456+1230.", "789-456+1230."}, {98, "/", "/"}, // keypad
	} {
		for i := range len(row.plain) {
			m[row.first+i] = [2]byte{row.plain[i], row.shifted[i]}
		}
	}
	return m
}()

// keyboard makes bytes of the key events of a scanner that types, in the US
// layout. A separator is Ctrl+] or F8, the ways in which scanners type it; other
// letters with Ctrl are their control characters. Used by one goroutine.
type keyboard struct {
	part        []byte // of an event
	shift, ctrl [2]bool
	caps        bool
}

// decode takes bytes of input events and appends the bytes that they type to out.
func (k *keyboard) decode(out, p []byte) []byte {
	for len(p) > 0 {
		n := min(eventSize-len(k.part), len(p))
		k.part, p = append(k.part, p[:n]...), p[n:]
		if len(k.part) < eventSize {
			break
		}
		e := k.part[eventWords:]
		if binary.NativeEndian.Uint16(e) == typeKey {
			out = k.press(out, binary.NativeEndian.Uint16(e[2:]), binary.NativeEndian.Uint32(e[4:]))
		}
		k.part = k.part[:0]
	}
	return out
}

// press takes one key event.
func (k *keyboard) press(out []byte, code uint16, value uint32) []byte {
	down := value != 0
	switch code {
	case keyLeftShift:
		k.shift[0] = down
	case keyRightShift:
		k.shift[1] = down
	case keyLeftCtrl:
		k.ctrl[0] = down
	case keyRightCtrl:
		k.ctrl[1] = down
	}
	if value != 1 { // what is held down is not scanned again
		return out
	}
	switch {
	case code == keyCapsLock:
		k.caps = !k.caps
	case code == keyEnter || code == keyKeypadEnd:
		return append(out, '\r')
	case code == keyTab:
		return append(out, '\t')
	case code == keyF8:
		return append(out, separator)
	case int(code) < len(usLayout) && usLayout[code][0] != 0:
		return append(out, k.character(usLayout[code]))
	}
	return out
}

func (k *keyboard) character(key [2]byte) byte {
	c, shift := key[0], k.shift[0] || k.shift[1]
	if isLetter(key[1]) && k.caps {
		shift = !shift
	}
	if shift {
		c = key[1]
	}
	if (k.ctrl[0] || k.ctrl[1]) && (isLetter(key[1]) || c == '[' || c == '\\' || c == ']') {
		c &= 0x1f
	}
	return c
}

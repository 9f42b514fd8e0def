// Package lockbus reads and writes the frames between a cabinet's agent and its
// lock controller boards, for six families of boards:
//
//	family     request                             status answer                          check
//	cu48       02 ADDR LOCK CMD 03 SUM             02 ADDR xx 65 D1..D6 03 SUM            sum
//	cu48b      02 ADDR LOCK CMD 03 SUM             02 ADDR LOCK 75 H1..H6 I1..I6 03 SUM   sum
//	cu16       02 ADDR CMD 03 SUM                  02 ADDR 35 H1 H2 I1 I2 03 SUM          sum
//	station    90 06 FN STATION SLOT 03            90 07 FN a b c 03                      none
//	door80     8A|80 BOARD LOCK VALUE XOR          80 BOARD D3 D2 D1 33 XOR               xor
//	preamble   57 4B 4C 59 LEN ADDR CMD DATA XOR   57 4B 4C 59 LEN ADDR 84 RES N S1..Sn XOR  xor
//
// A frame is known by its length and its check byte, never by STX or ETX:
// status data may hold both. The check bytes are weak (the sum misses swapped
// bytes and flips that cancel out, the station board has none), so a valid
// frame is only a claim; a caller that acts on one must see it twice.
//
// The package is pure: no I/O, no clock, no state but a Scanner's own buffer.
// Codec and Frame are values and safe for concurrent use; a Scanner belongs to
// one goroutine. Nothing here panics on any input.
package lockbus

import (
	"errors"
	"fmt"
	"strings"
)

// Family is a kind of board. The zero value is none.
type Family uint8

// Families of boards.
const (
	CU48     Family = iota + 1 // 48 locks
	CU48B                      // 48 locks, item sensors
	CU16                       // 16 locks, item sensors
	Station                    // station and slot, no check byte
	Door80                     // frames that begin with 8A and 80, 24 doors
	Preamble                   // frames that begin with a four byte preamble
)

// family is what differs between families and is plain data.
type family struct {
	name     string
	channels uint  // locks per board
	first    uint8 // lowest board address
	last     uint8 // highest board address
	baud     int
	items    bool // status answers carry item bits
	acks     bool // an unlock is answered; cu48b may answer or not
	unasked  bool // the board may speak first
	sameEcho bool // an unlock's echo reads like the answer "did not open"
}

func (f Family) row() family {
	switch f {
	case CU48:
		return family{name: "cu48", channels: 48, last: 9, baud: 19200}
	case CU48B:
		return family{name: "cu48b", channels: 48, last: 9, baud: 19200, items: true, acks: true}
	case CU16:
		return family{name: "cu16", channels: 16, last: 9, baud: 19200, items: true}
	case Station:
		return family{name: "station", channels: 16, first: 1, last: 4, baud: 9600, acks: true}
	case Door80:
		return family{name: "door80", channels: 24, last: 0xFE, baud: 9600, acks: true, sameEcho: true}
	case Preamble:
		return family{name: "preamble", channels: 48, last: 31, baud: 9600, acks: true, unasked: true}
	}
	return family{}
}

// Families returns all families in a fixed order.
func Families() []Family { return []Family{CU48, CU48B, CU16, Station, Door80, Preamble} }

// ParseFamily returns the family with this name: cu48, cu48b, cu16, station,
// door80 or preamble.
func ParseFamily(name string) (Family, error) {
	var known []string
	for _, f := range Families() {
		if f.row().name == name {
			return f, nil
		}
		known = append(known, f.row().name)
	}
	return 0, fmt.Errorf("unknown board family %q; use %s", name, strings.Join(known, ", "))
}

func (f Family) String() string {
	if n := f.row().name; n != "" {
		return n
	}
	return fmt.Sprintf("family(%d)", uint8(f))
}

// UnmarshalText reads a family's name.
func (f *Family) UnmarshalText(p []byte) error {
	v, err := ParseFamily(string(p))
	if err == nil {
		*f = v
	}
	return err
}

// MarshalText writes a family's name.
func (f Family) MarshalText() ([]byte, error) {
	if f.row().name == "" {
		return nil, fmt.Errorf("unknown board family %d", uint8(f))
	}
	return []byte(f.row().name), nil
}

// Channels is how many locks a board of this family drives at most.
func (f Family) Channels() uint { return f.row().channels }

// Baud is the usual speed of the line.
func (f Family) Baud() int { return f.row().baud }

// HasItems reports whether status answers carry item bits. A cabinet may still
// have no sensors wired to them.
func (f Family) HasItems() bool { return f.row().items }

// AnswersUnlock reports whether an unlock may be answered.
func (f Family) AnswersUnlock() bool { return f.row().acks }

// Unasked reports whether a board may send door changes without a request.
func (f Family) Unasked() bool { return f.row().unasked }

// EchoLooksRefused reports whether the echo of an unlock has the same bytes as
// the answer that it did not open.
func (f Family) EchoLooksRefused() bool { return f.row().sameEcho }

// CheckAddress reports whether a board of this family can have this address.
func (f Family) CheckAddress(a uint8) error {
	r := f.row()
	if r.name == "" {
		return fmt.Errorf("unknown board family %d", uint8(f))
	}
	if a < r.first || a > r.last {
		return fmt.Errorf("%s board address %d is not in %d to %d", r.name, a, r.first, r.last)
	}
	return nil
}

// Kind says what a frame asks or answers.
type Kind uint8

// Kinds of frames. Which a family has is in its codec; encoding another one is
// ErrKind.
const (
	AskStatus      Kind = iota + 1 // all channels of a board; Board may be AllBoards
	AskLock                        // one channel
	Unlock                         // one channel
	UnlockAll                      // all channels of a board; Board may be AllBoards
	UnlockTogether                 // the channels in List at once
	UnlockInTurn                   // the channels in List, one after the other
	UnlockLater                    // one channel, after the board's own delay
	AskUnlockTime                  // how long a pulse is
	Flash                          // lamp of one channel
	Hold                           // keep one channel's output on
	Release                        // end a hold

	Status      // answer: all channels of a board
	StatusOfAll // answer: one board's share of a status of all boards
	LockState   // answer: one channel
	Unlocked    // answer to an unlock of any kind
	Acted       // answer to flash, hold and release
	Changed     // a door moved; the board sent it unasked
)

// AllBoards in a request addresses every board of the line. Not for normal
// work: the boards' answers may collide.
const AllBoards uint8 = 0xFF

// Result is what a board says became of an unlock.
type Result uint8

// Results. None is for frames without one.
const (
	None    Result = iota
	Done           // carried out
	Failed         // did not work
	Cooling        // refused, the coil is cooling down
)

// MaxList is how many channels a list or a preamble status can hold.
const MaxList = 48

// MaxFrame is the length of the longest frame of any family.
const MaxFrame = 7 + 2 + MaxList + 1

// Frame is one request or answer of whichever family. Fields that a kind does
// not use are zero; frames can be compared.
type Frame struct {
	Kind  Kind
	Board uint8 // address; AllBoards in some requests
	Lock  uint8 // channel from 1; 0 is none or all
	// Hooks and Items of a status: bit 0 is channel 1. A set hook bit is what
	// the board calls locked or closed; a cabinet's polarity is not applied.
	// A set item bit means that something blocks the beam.
	Hooks, Items uint64
	Closed       bool // state of one door in LockState, Changed, Unlocked
	Result       Result
	Code         uint8          // preamble Unlocked and Acted: the request's command byte
	Count        uint8          // entries in List; channels of a preamble status
	List         [MaxList]uint8 // channels from 1, in the order to fire
}

// Errors of encoding and decoding. They carry no detail, so that scanning
// noise costs nothing.
var (
	ErrLength = errors.New("lockbus: no frame has this length")
	ErrCheck  = errors.New("lockbus: wrong check byte")
	ErrShape  = errors.New("lockbus: bytes do not fit the layout")
	ErrKind   = errors.New("lockbus: this family has no such frame")
	ErrRange  = errors.New("lockbus: address or channel out of range")
)

// Part names one status byte of a CU16 answer.
type Part uint8

// Parts of a CU16 status answer.
const (
	Hooks1to8 Part = iota
	Hooks9to16
	Items1to8
	Items9to16
)

// Codec is one family's table: makers differ in the order of fields and in the
// values that mean open and closed. The zero Codec knows no frame.
type Codec struct {
	Family Family
	Order  [4]Part // CU16: what the four status bytes are, each part once
	Open   byte    // station, door80, preamble: state byte of an open door
	Closed byte    // the same of a closed one; differs from Open
}

// For returns the usual table of a family.
func For(f Family) Codec {
	c := Codec{Family: f}
	switch f {
	case CU16:
		c.Order = [4]Part{Hooks1to8, Hooks9to16, Items1to8, Items9to16}
	case Station:
		c.Open, c.Closed = 0x01, 0x00
	case Door80:
		c.Open, c.Closed = 0x00, 0x11
	case Preamble:
		c.Open, c.Closed = 0x00, 0x01
	}
	return c
}

// AppendRequest appends f's bytes to dst. On error dst is returned as it was.
func (c Codec) AppendRequest(dst []byte, f Frame) ([]byte, error) {
	switch c.Family {
	case CU48, CU48B:
		return c.appendCU48Request(dst, f)
	case CU16:
		return c.appendCU16Request(dst, f)
	case Station:
		return c.appendStationRequest(dst, f)
	case Door80:
		return c.appendDoor80Request(dst, f)
	case Preamble:
		return c.appendPreambleRequest(dst, f)
	}
	return dst, ErrKind
}

// AppendAnswer appends f's bytes to dst. On error dst is returned as it was.
func (c Codec) AppendAnswer(dst []byte, f Frame) ([]byte, error) {
	switch c.Family {
	case CU48, CU48B:
		return c.appendCU48Answer(dst, f)
	case CU16:
		return c.appendCU16Answer(dst, f)
	case Station:
		return c.appendStationAnswer(dst, f)
	case Door80:
		return c.appendDoor80Answer(dst, f)
	case Preamble:
		return c.appendPreambleAnswer(dst, f)
	}
	return dst, ErrKind
}

// DecodeRequest reads a request that is exactly p.
func (c Codec) DecodeRequest(p []byte) (Frame, error) {
	switch c.Family {
	case CU48, CU48B:
		return c.decodeCU48Request(p)
	case CU16:
		return c.decodeCU16Request(p)
	case Station:
		return c.decodeStationRequest(p)
	case Door80:
		return c.decodeDoor80Request(p)
	case Preamble:
		return c.decodePreambleRequest(p)
	}
	return Frame{}, ErrKind
}

// DecodeAnswer reads an answer, or an unasked change, that is exactly p.
func (c Codec) DecodeAnswer(p []byte) (Frame, error) {
	switch c.Family {
	case CU48, CU48B:
		return c.decodeCU48Answer(p)
	case CU16:
		return c.decodeCU16Answer(p)
	case Station:
		return c.decodeStationAnswer(p)
	case Door80:
		return c.decodeDoor80Answer(p)
	case Preamble:
		return c.decodePreambleAnswer(p)
	}
	return Frame{}, ErrKind
}

// ZeroState is the status that a board reports while all its inputs read 0.
func (c Codec) ZeroState() (hooks uint64) {
	if c.Family == Station || c.Family == Preamble {
		if c.Closed == 0 {
			return channelMask(c.Family.Channels())
		}
	}
	return 0
}

func channelMask(n uint) uint64 { return 1<<n - 1 }

func (c Codec) state(closed bool) byte {
	if closed {
		return c.Closed
	}
	return c.Open
}

// closed reads a state byte; ok is false when it means neither.
func (c Codec) closed(b byte) (closed, ok bool) { return b == c.Closed, b == c.Closed || b == c.Open }

func sum(p []byte) (s byte) {
	for _, b := range p {
		s += b
	}
	return s
}

func xor(p []byte) (x byte) {
	for _, b := range p {
		x ^= b
	}
	return x
}

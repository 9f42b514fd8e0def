package lockbus

// Layout, LEN being the whole frame:
//
//	0  1  2  3  4   5    6   7 .. LEN-2  LEN-1
//	57 4B 4C 59 LEN ADDR CMD DATA        XOR
//
// DATA of a request is nothing, a channel, or a count and as many channels. Of
// an answer:
//
//	82 83       RESULT CHANNEL STATE
//	81 88 89    RESULT CHANNEL
//	80 86 87    RESULT
//	84          RESULT COUNT STATE...
//	85 unasked  CHANNEL STATE
//
// RESULT is 00 done or FF failed; a failed answer's STATE has no meaning.
const (
	preHead = 7 // bytes before DATA
	preMin  = preHead + 1

	preTogether = 0x80
	preFlash    = 0x81
	preUnlock   = 0x82
	preAskOne   = 0x83
	preAskAll   = 0x84
	preChanged  = 0x85
	preAll      = 0x86
	preInTurn   = 0x87
	preHold     = 0x88
	preRelease  = 0x89

	preDone   = 0x00
	preFailed = 0xFF
)

func preambleAt(p []byte) bool {
	return p[0] == 0x57 && p[1] == 0x4B && p[2] == 0x4C && p[3] == 0x59
}

// preambleCommand returns a request's command byte; data is 0 for none, 1 for a
// channel, 2 for a list.
func preambleCommand(k Kind) (cmd byte, data int) {
	switch k {
	case UnlockTogether:
		return preTogether, 2
	case Flash:
		return preFlash, 1
	case Unlock:
		return preUnlock, 1
	case AskLock:
		return preAskOne, 1
	case AskStatus:
		return preAskAll, 0
	case UnlockAll:
		return preAll, 0
	case UnlockInTurn:
		return preInTurn, 2
	case Hold:
		return preHold, 1
	case Release:
		return preRelease, 1
	}
	return 0, 0
}

func appendPreamble(dst []byte, board, cmd byte, data ...byte) []byte {
	from := len(dst)
	dst = append(dst, 0x57, 0x4B, 0x4C, 0x59, byte(preMin+len(data)), board, cmd)
	dst = append(dst, data...)
	return append(dst, xor(dst[from:]))
}

func goodChannel(b byte) bool { return b >= 1 && b <= MaxList }

func (c Codec) appendPreambleRequest(dst []byte, f Frame) ([]byte, error) {
	cmd, data := preambleCommand(f.Kind)
	switch {
	case cmd == 0:
		return dst, ErrKind
	case f.Board > 31, data == 1 && !goodChannel(f.Lock), f.Count > MaxList, data == 2 && f.Count == 0:
		return dst, ErrRange
	}
	switch data {
	case 0:
		return appendPreamble(dst, f.Board, cmd), nil
	case 1:
		return appendPreamble(dst, f.Board, cmd, f.Lock), nil
	}
	var list [MaxList + 1]byte
	list[0] = f.Count
	for i, ch := range f.List[:f.Count] {
		if !goodChannel(ch) {
			return dst, ErrRange
		}
		list[1+i] = ch
	}
	return appendPreamble(dst, f.Board, cmd, list[:1+f.Count]...), nil
}

// openPreamble checks everything around DATA.
func openPreamble(p []byte) (board, cmd byte, data []byte, err error) {
	n := len(p)
	switch {
	case n < preMin || n > MaxFrame:
		return 0, 0, nil, ErrLength
	case !preambleAt(p) || int(p[4]) != n || p[5] > 31:
		return 0, 0, nil, ErrShape
	case xor(p[:n-1]) != p[n-1]:
		return 0, 0, nil, ErrCheck
	}
	return p[5], p[6], p[preHead : n-1], nil
}

func (c Codec) decodePreambleRequest(p []byte) (Frame, error) {
	board, cmd, data, err := openPreamble(p)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Board: board}
	for k := AskStatus; k <= Release; k++ {
		if b, _ := preambleCommand(k); b == cmd && b != 0 {
			f.Kind = k
		}
	}
	_, want := preambleCommand(f.Kind)
	switch {
	case f.Kind == 0:
		return Frame{}, ErrShape
	case want == 0 && len(data) == 0:
		return f, nil
	case want == 1 && len(data) == 1 && goodChannel(data[0]):
		f.Lock = data[0]
		return f, nil
	case want == 2 && len(data) > 1 && int(data[0]) == len(data)-1 && data[0] <= MaxList:
		f.Count = data[0]
		for i, ch := range data[1:] {
			if !goodChannel(ch) {
				return Frame{}, ErrShape
			}
			f.List[i] = ch
		}
		return f, nil
	}
	return Frame{}, ErrShape
}

func (c Codec) appendPreambleAnswer(dst []byte, f Frame) ([]byte, error) {
	if f.Board > 31 || f.Count > MaxList {
		return dst, ErrRange
	}
	result := byte(preDone)
	if f.Result == Failed {
		result = preFailed
	}
	needLock := f.Kind == LockState || f.Kind == Acted || f.Kind == Changed || f.Kind == Unlocked && f.Code == preUnlock
	if needLock && !goodChannel(f.Lock) {
		return dst, ErrRange
	}
	switch {
	case f.Kind == Status:
		if f.Hooks&^channelMask(uint(f.Count)) != 0 {
			return dst, ErrRange
		}
		var data [2 + MaxList]byte
		data[0], data[1] = result, f.Count
		for i := range f.Count {
			data[2+i] = c.state(f.Hooks>>i&1 == 1)
		}
		return appendPreamble(dst, f.Board, preAskAll, data[:2+f.Count]...), nil
	case f.Kind == LockState:
		return appendPreamble(dst, f.Board, preAskOne, result, f.Lock, c.state(f.Closed)), nil
	case f.Kind == Unlocked && f.Code == preUnlock:
		return appendPreamble(dst, f.Board, preUnlock, result, f.Lock, c.state(f.Closed)), nil
	case f.Kind == Unlocked && (f.Code == preTogether || f.Code == preAll || f.Code == preInTurn):
		return appendPreamble(dst, f.Board, f.Code, result), nil
	case f.Kind == Acted && (f.Code == preFlash || f.Code == preHold || f.Code == preRelease):
		return appendPreamble(dst, f.Board, f.Code, result, f.Lock), nil
	case f.Kind == Changed:
		return appendPreamble(dst, f.Board, preChanged, f.Lock, c.state(f.Closed)), nil
	}
	return dst, ErrKind
}

func (c Codec) decodePreambleAnswer(p []byte) (Frame, error) {
	board, cmd, data, err := openPreamble(p)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Board: board}
	if cmd == preChanged {
		if len(data) != 2 || !goodChannel(data[0]) {
			return Frame{}, ErrShape
		}
		closed, ok := c.closed(data[1])
		if !ok {
			return Frame{}, ErrShape
		}
		f.Kind, f.Lock, f.Closed = Changed, data[0], closed
		return f, nil
	}
	if len(data) == 0 || data[0] != preDone && data[0] != preFailed {
		return Frame{}, ErrShape
	}
	f.Result = Done
	if data[0] == preFailed {
		f.Result = Failed
	}
	ok := false
	switch cmd {
	case preUnlock, preAskOne:
		ok = c.oneState(&f, cmd, data)
	case preFlash, preHold, preRelease:
		f.Kind, f.Code = Acted, cmd
		if ok = len(data) == 2 && goodChannel(data[1]); ok {
			f.Lock = data[1]
		}
	case preTogether, preAll, preInTurn:
		f.Kind, f.Code, ok = Unlocked, cmd, len(data) == 1
	case preAskAll:
		ok = c.allStates(&f, data)
	}
	if !ok {
		return Frame{}, ErrShape
	}
	return f, nil
}

func (c Codec) oneState(f *Frame, cmd byte, data []byte) bool {
	if len(data) != 3 || !goodChannel(data[1]) {
		return false
	}
	f.Kind, f.Lock = LockState, data[1]
	if cmd == preUnlock {
		f.Kind, f.Code = Unlocked, preUnlock
	}
	closed, known := c.closed(data[2])
	f.Closed = closed
	return known || f.Result == Failed
}

func (c Codec) allStates(f *Frame, data []byte) bool {
	if len(data) < 2 || data[1] > MaxList || len(data) != 2+int(data[1]) {
		return false
	}
	f.Kind, f.Count = Status, data[1]
	for i, b := range data[2:] {
		closed, known := c.closed(b)
		if !known {
			return false
		}
		if closed {
			f.Hooks |= 1 << i
		}
	}
	return true
}

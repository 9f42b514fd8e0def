package lockbus

const (
	door80Unlock = 0x8A
	door80Status = 0x80
	door80Fire   = 0x11
	door80Ask    = 0x33
	door80Doors  = 24
	lenDoor80One = 5
	lenDoor80All = 7
)

func (c Codec) appendDoor80Request(dst []byte, f Frame) ([]byte, error) {
	head, value, lock := byte(door80Unlock), byte(door80Fire), f.Lock
	switch f.Kind {
	case Unlock, AskLock:
		if f.Lock < 1 || f.Lock > door80Doors {
			return dst, ErrRange
		}
	case UnlockAll, AskStatus:
		lock = 0
	default:
		return dst, ErrKind
	}
	if f.Kind == AskLock || f.Kind == AskStatus {
		head, value = door80Status, door80Ask
	}
	if f.Board == AllBoards {
		return dst, ErrRange
	}
	return append(dst, head, f.Board, lock, value, head^f.Board^lock^value), nil
}

func (c Codec) decodeDoor80Request(p []byte) (Frame, error) {
	if len(p) != lenDoor80One {
		return Frame{}, ErrLength
	}
	if xor(p[:4]) != p[4] {
		return Frame{}, ErrCheck
	}
	f := Frame{Board: p[1], Lock: p[2]}
	unlock := p[0] == door80Unlock && p[3] == door80Fire
	ask := p[0] == door80Status && p[3] == door80Ask
	if p[1] == AllBoards || p[2] > door80Doors || !unlock && !ask {
		return Frame{}, ErrShape
	}
	switch {
	case unlock && p[2] == 0:
		f.Kind = UnlockAll
	case unlock:
		f.Kind = Unlock
	case p[2] == 0:
		f.Kind = AskStatus
	default:
		f.Kind = AskLock
	}
	return f, nil
}

// An open that did not work is answered with "closed", so Result and Closed of
// an Unlocked say the same; Result is what counts when encoding. The answer to
// "open all" is taken to be the same frame with lock 0.
func (c Codec) appendDoor80Answer(dst []byte, f Frame) ([]byte, error) {
	if f.Board == AllBoards || f.Lock > door80Doors {
		return dst, ErrRange
	}
	switch f.Kind {
	case Status:
		if f.Hooks>>door80Doors != 0 {
			return dst, ErrRange
		}
		d3, d2, d1 := byte(f.Hooks>>16), byte(f.Hooks>>8), byte(f.Hooks)
		x := door80Status ^ f.Board ^ d3 ^ d2 ^ d1 ^ door80Ask
		return append(dst, door80Status, f.Board, d3, d2, d1, door80Ask, x), nil
	case LockState:
		if f.Lock == 0 {
			return dst, ErrRange
		}
		v := c.state(f.Closed)
		return append(dst, door80Status, f.Board, f.Lock, v, door80Status^f.Board^f.Lock^v), nil
	case Unlocked:
		v := c.state(f.Result != Done)
		return append(dst, door80Unlock, f.Board, f.Lock, v, door80Unlock^f.Board^f.Lock^v), nil
	}
	return dst, ErrKind
}

func (c Codec) decodeDoor80Answer(p []byte) (Frame, error) {
	n := len(p)
	if n != lenDoor80One && n != lenDoor80All {
		return Frame{}, ErrLength
	}
	if xor(p[:n-1]) != p[n-1] {
		return Frame{}, ErrCheck
	}
	if p[1] == AllBoards {
		return Frame{}, ErrShape
	}
	if n == lenDoor80All {
		if p[0] != door80Status || p[5] != door80Ask {
			return Frame{}, ErrShape
		}
		return Frame{Kind: Status, Board: p[1], Hooks: uint64(p[2])<<16 | uint64(p[3])<<8 | uint64(p[4])}, nil
	}
	closed, ok := c.closed(p[3])
	f := Frame{Board: p[1], Lock: p[2], Closed: closed}
	switch {
	case !ok || p[2] > door80Doors:
		return Frame{}, ErrShape
	case p[0] == door80Status && p[2] > 0:
		f.Kind = LockState
	case p[0] == door80Unlock && closed:
		f.Kind, f.Result = Unlocked, Failed
	case p[0] == door80Unlock:
		f.Kind, f.Result = Unlocked, Done
	default:
		return Frame{}, ErrShape
	}
	return f, nil
}

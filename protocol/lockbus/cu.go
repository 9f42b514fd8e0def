package lockbus

const (
	stx = 0x02
	etx = 0x03

	cu48All    = 0x0A // address of all boards
	cu48Locks  = 0x30 // LOCK of all locks
	cu16All    = 0xF0
	lenCU48Ask = 6
	lenCU48    = 12
	lenCU48B   = 18
	lenCU16Ask = 5
	lenCU16    = 9
)

// cu48Codes are a CU48 family's command and answer bytes.
type cu48Codes struct{ status, unlock, answer byte }

func (c Codec) cu48() cu48Codes {
	if c.Family == CU48B {
		return cu48Codes{0x60, 0x61, 0x75}
	}
	return cu48Codes{0x50, 0x51, 0x65}
}

func (c Codec) appendCU48Request(dst []byte, f Frame) ([]byte, error) {
	addr, codes := f.Board, c.cu48()
	if addr == AllBoards {
		addr = cu48All
	} else if addr > 9 {
		return dst, ErrRange
	}
	var lock, cmd byte
	switch f.Kind {
	case AskStatus:
		cmd = codes.status
	case Unlock:
		if f.Lock < 1 || f.Lock > 48 {
			return dst, ErrRange
		}
		lock, cmd = f.Lock-1, codes.unlock
	case UnlockAll:
		lock, cmd = cu48Locks, codes.unlock
	default:
		return dst, ErrKind
	}
	return append(dst, stx, addr, lock, cmd, etx, stx+addr+lock+cmd+etx), nil
}

func (c Codec) decodeCU48Request(p []byte) (Frame, error) {
	if len(p) != lenCU48Ask {
		return Frame{}, ErrLength
	}
	if sum(p[:5]) != p[5] {
		return Frame{}, ErrCheck
	}
	if p[0] != stx || p[4] != etx || p[1] > cu48All {
		return Frame{}, ErrShape
	}
	f := Frame{Board: p[1]}
	if p[1] == cu48All {
		f.Board = AllBoards
	}
	codes := c.cu48()
	switch {
	case p[3] == codes.status:
		f.Kind = AskStatus
	case p[3] == codes.unlock && p[2] == cu48Locks:
		f.Kind = UnlockAll
	case p[3] == codes.unlock && p[2] < cu48Locks:
		f.Kind, f.Lock = Unlock, p[2]+1
	default:
		return Frame{}, ErrShape
	}
	return f, nil
}

func (c Codec) appendCU48Answer(dst []byte, f Frame) ([]byte, error) {
	if f.Board > 9 || f.Hooks>>48 != 0 || f.Items>>48 != 0 {
		return dst, ErrRange
	}
	from := len(dst)
	switch {
	case f.Kind == Status:
		dst = append(dst, stx, f.Board, 0, c.cu48().answer)
		dst = appendBits(dst, f.Hooks, 6)
		if c.Family == CU48B {
			dst = appendBits(dst, f.Items, 6)
		} else if f.Items != 0 {
			return dst[:from], ErrRange
		}
	case f.Kind == Unlocked && c.Family == CU48B:
		if f.Lock < 1 || f.Lock > 48 {
			return dst, ErrRange
		}
		dst = append(dst, stx, f.Board, f.Lock-1, c.cu48().answer)
	default:
		return dst, ErrKind
	}
	dst = append(dst, etx)
	return append(dst, sum(dst[from:])), nil
}

func (c Codec) decodeCU48Answer(p []byte) (Frame, error) {
	n := len(p)
	switch {
	case c.Family == CU48 && n != lenCU48, c.Family == CU48B && n != lenCU48B && n != lenCU48Ask:
		return Frame{}, ErrLength
	case sum(p[:n-1]) != p[n-1]:
		return Frame{}, ErrCheck
	case p[0] != stx || p[1] > 9 || p[3] != c.cu48().answer || p[n-2] != etx:
		return Frame{}, ErrShape
	}
	if n == lenCU48Ask {
		if p[2] >= 48 {
			return Frame{}, ErrShape
		}
		return Frame{Kind: Unlocked, Board: p[1], Lock: p[2] + 1, Result: Done}, nil
	}
	f := Frame{Kind: Status, Board: p[1], Hooks: bitsOf(p[4:10])}
	if n == lenCU48B {
		f.Items = bitsOf(p[10:16])
	}
	return f, nil
}

// cu16Commands are the requests that a CU16 knows, all in the same layout.
func cu16Command(k Kind) (cmd byte, one, ok bool) {
	switch k {
	case AskStatus:
		return 0x30, false, true
	case Unlock:
		return 0x31, true, true
	case UnlockAll:
		return 0x33, false, true
	case AskUnlockTime:
		return 0x37, false, true
	case UnlockLater:
		return 0x39, true, true
	}
	return 0, false, false
}

func (c Codec) appendCU16Request(dst []byte, f Frame) ([]byte, error) {
	cmd, one, ok := cu16Command(f.Kind)
	if !ok {
		return dst, ErrKind
	}
	addr := f.Board << 4
	switch {
	case f.Board == AllBoards && one, f.Board != AllBoards && f.Board > 9:
		return dst, ErrRange
	case f.Board == AllBoards && f.Kind == AskStatus:
		addr, cmd = cu16All, 0x32
	case f.Board == AllBoards:
		addr = cu16All
	}
	if one {
		if f.Lock < 1 || f.Lock > 16 {
			return dst, ErrRange
		}
		addr |= f.Lock - 1
	}
	return append(dst, stx, addr, cmd, etx, stx+addr+cmd+etx), nil
}

func (c Codec) decodeCU16Request(p []byte) (Frame, error) {
	if len(p) != lenCU16Ask {
		return Frame{}, ErrLength
	}
	if sum(p[:4]) != p[4] {
		return Frame{}, ErrCheck
	}
	if p[0] != stx || p[3] != etx {
		return Frame{}, ErrShape
	}
	all := p[1] == cu16All
	f := Frame{Board: p[1] >> 4}
	if all {
		f.Board = AllBoards
	} else if f.Board > 9 {
		return Frame{}, ErrShape
	}
	switch {
	case p[2] == 0x30 && !all, p[2] == 0x32 && all:
		f.Kind = AskStatus
	case p[2] == 0x31 && !all:
		f.Kind, f.Lock = Unlock, p[1]&0x0F+1
	case p[2] == 0x33:
		f.Kind = UnlockAll
	case p[2] == 0x37:
		f.Kind = AskUnlockTime
	case p[2] == 0x39 && !all:
		f.Kind, f.Lock = UnlockLater, p[1]&0x0F+1
	default:
		return Frame{}, ErrShape
	}
	return f, nil
}

func (c Codec) appendCU16Answer(dst []byte, f Frame) ([]byte, error) {
	if f.Board > 9 || f.Hooks>>16 != 0 || f.Items>>16 != 0 {
		return dst, ErrRange
	}
	var cmd byte
	switch f.Kind {
	case Status:
		cmd = 0x35
	case StatusOfAll:
		cmd = 0x36
	default:
		return dst, ErrKind
	}
	from := len(dst)
	dst = append(dst, stx, f.Board<<4, cmd)
	for _, part := range c.Order {
		word := f.Hooks | f.Items<<16
		dst = append(dst, byte(word>>(8*part)))
	}
	dst = append(dst, etx)
	return append(dst, sum(dst[from:])), nil
}

func (c Codec) decodeCU16Answer(p []byte) (Frame, error) {
	switch {
	case len(p) != lenCU16:
		return Frame{}, ErrLength
	case sum(p[:8]) != p[8]:
		return Frame{}, ErrCheck
	case p[0] != stx || p[7] != etx || p[1]>>4 > 9:
		return Frame{}, ErrShape
	}
	f := Frame{Kind: Status, Board: p[1] >> 4}
	switch p[2] {
	case 0x35:
	case 0x36:
		f.Kind = StatusOfAll
	default:
		return Frame{}, ErrShape
	}
	var word uint64
	for i, part := range c.Order {
		word |= uint64(p[3+i]) << (8 * part)
	}
	f.Hooks, f.Items = word&0xFFFF, word>>16&0xFFFF
	return f, nil
}

// appendBits appends n bytes, the lowest eight bits first.
func appendBits(dst []byte, v uint64, n int) []byte {
	for i := range n {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

func bitsOf(p []byte) (v uint64) {
	for i, b := range p {
		v |= uint64(b) << (8 * i)
	}
	return v
}

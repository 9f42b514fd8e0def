package lockbus

const (
	stationHead   = 0x90
	lenStationAsk = 6
	lenStation    = 7

	stationUnlock = 0x05
	stationStatus = 0x12
	stationAnswer = 0x80 // added to the request's function

	stationFailed  = 0x00
	stationDone    = 0x01
	stationCooling = 0x02
)

func checkStation(f Frame) error {
	if f.Board < 1 || f.Board > 4 || f.Lock < 1 || f.Lock > 16 {
		return ErrRange
	}
	return nil
}

func (c Codec) appendStationRequest(dst []byte, f Frame) ([]byte, error) {
	var fn byte
	switch f.Kind {
	case Unlock:
		fn = stationUnlock
	case AskLock:
		fn = stationStatus
	default:
		return dst, ErrKind
	}
	if err := checkStation(f); err != nil {
		return dst, err
	}
	return append(dst, stationHead, lenStationAsk, fn, f.Board, f.Lock, etx), nil
}

func (c Codec) decodeStationRequest(p []byte) (Frame, error) {
	if len(p) != lenStationAsk {
		return Frame{}, ErrLength
	}
	f := Frame{Board: p[3], Lock: p[4]}
	switch p[2] {
	case stationUnlock:
		f.Kind = Unlock
	case stationStatus:
		f.Kind = AskLock
	}
	if p[0] != stationHead || p[1] != lenStationAsk || p[5] != etx || f.Kind == 0 || checkStation(f) != nil {
		return Frame{}, ErrShape
	}
	return f, nil
}

// The two answers order their last fields differently:
//
//	90 07 85 STATION SLOT STATUS 03
//	90 07 92 STATION STATUS SLOT 03
func (c Codec) appendStationAnswer(dst []byte, f Frame) ([]byte, error) {
	if err := checkStation(f); err != nil {
		return dst, err
	}
	switch f.Kind {
	case Unlocked:
		var status byte
		switch f.Result {
		case Done:
			status = stationDone
		case Failed:
			status = stationFailed
		case Cooling:
			status = stationCooling
		default:
			return dst, ErrRange
		}
		return append(dst, stationHead, lenStation, stationUnlock|stationAnswer, f.Board, f.Lock, status, etx), nil
	case LockState:
		return append(dst, stationHead, lenStation, stationStatus|stationAnswer, f.Board, c.state(f.Closed), f.Lock, etx), nil
	}
	return dst, ErrKind
}

func (c Codec) decodeStationAnswer(p []byte) (Frame, error) {
	if len(p) != lenStation {
		return Frame{}, ErrLength
	}
	if p[0] != stationHead || p[1] != lenStation || p[6] != etx {
		return Frame{}, ErrShape
	}
	f, ok := Frame{Board: p[3]}, true
	switch p[2] {
	case stationUnlock | stationAnswer:
		f.Kind, f.Lock = Unlocked, p[4]
		switch p[5] {
		case stationDone:
			f.Result = Done
		case stationFailed:
			f.Result = Failed
		case stationCooling:
			f.Result = Cooling
		default:
			ok = false
		}
	case stationStatus | stationAnswer:
		f.Kind, f.Lock = LockState, p[5]
		f.Closed, ok = c.closed(p[4])
	default:
		ok = false
	}
	if !ok || checkStation(f) != nil {
		return Frame{}, ErrShape
	}
	return f, nil
}

package device

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// heldList is the code list that a device says it holds.
type heldList struct {
	number, generation uint64
	lost               bool // its memory of what lies where, until a whole list comes
	numbersOnly        bool // the agent knows no generations
}

// namesGenerations reports whether the agent names generations of lists at all.
func namesGenerations(st *wire.Status) bool { return st.Generation > 0 || st.Snapshot > 0 }

func listOf(st *wire.Status) heldList {
	return heldList{number: st.CodeList, generation: st.Generation, lost: st.Lost, numbersOnly: !namesGenerations(st)}
}

func (x *session) hold(l heldList) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.holds = l
}

// whole reports whether the device needs the whole list: it holds none, a void
// one, one of another generation, more than there is, or has lost its memory.
func (l heldList) whole(d cloud.Device) bool {
	return l.number == 0 && d.CodeList > 0 || l.number > d.CodeList || l.number < d.ListFrom || l.lost ||
		!l.numbersOnly && l.generation != max(d.CodeGeneration, 1)
}

// sendCodes sends what a device lacks of the code list, again until a status
// confirms it:
//
//	tail          follows what the device holds
//	whole list    from 0, only in answer to a status with a nonce, which it names
//	announcement  an empty tail that follows nothing: the agent answers it with
//	              such a status
//
// nonce is that of the status which is answered. An agent that knows no
// generations takes a whole list at any time.
func (s *Service) sendCodes(ctx context.Context, x *session, d cloud.Device, nonce []byte) {
	held := x.listHeld()
	newest, whole := d.CodeList, held.whole(d)
	if !whole && held.number == newest {
		x.awaitList(0)
		return
	}
	x.awaitList(newest)
	msg := wire.Codes{DeviceCode: x.code, From: held.number, To: newest, Generation: max(d.CodeGeneration, 1)}
	if whole {
		if len(nonce) == 0 && !held.numbersOnly {
			return // the next status with a nonce brings it
		}
		msg.From, msg.Nonce = 0, nonce
	}
	if err := s.fillCodes(ctx, x, &msg); err != nil {
		s.log.Error("read code list", "device", x.code, "err", err)
		return
	}
	s.signed(x, topic.Down, wire.DownCodes, signed.ForCodes, msg)
}

// announceCodes makes a device that needs the whole list ask for it. It reports
// whether it does; while a status is worked on, that is its answer's part. A
// device that has lost its memory, while nothing is listed, asks by itself.
func (s *Service) announceCodes(x *session, d cloud.Device) bool {
	held := x.listHeld()
	if held.numbersOnly || !held.whole(d) {
		return false
	}
	x.awaitList(d.CodeList)
	if d.CodeList > 0 && !x.isBusy() {
		s.signed(x, topic.Down, wire.DownCodes, signed.ForCodes, wire.Codes{DeviceCode: x.code, From: d.CodeList, To: d.CodeList, Generation: max(d.CodeGeneration, 1)})
	}
	return true
}

func (x *session) listHeld() heldList {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.holds
}

func (x *session) isBusy() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.busy
}

// fillCodes adds the entries behind msg.From. Where they are too many for one
// message it ends earlier; the rest follows the next status.
func (s *Service) fillCodes(ctx context.Context, x *session, msg *wire.Codes) error {
	return s.cfg.Store.Look(ctx, func(v cloud.View) error {
		rows, err := v.CodeRows(x.id, msg.From, wire.MaxRecords)
		if err != nil {
			return err
		}
		size := 0
		for i, r := range rows {
			size += len(wire.MustEncode(r.Entry))
			if i > 0 && size > codesBytes {
				msg.To = msg.Entries[i-1].Number
				return nil
			}
			msg.Entries = append(msg.Entries, r.Entry)
		}
		if len(rows) == wire.MaxRecords {
			msg.To = rows[len(rows)-1].Entry.Number
		}
		return nil
	})
}

// awaitList notes that a list up to a number was sent and is not confirmed; 0:
// none is awaited.
func (x *session) awaitList(to uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.codesTo = to
	if to != 0 {
		x.codesAt = time.Now()
	}
}

package device

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// heldList is the code list that a device says it holds.
type heldList struct {
	number, generation uint64
	lost               bool   // its memory of what lies where, until a whole list comes
	numbersOnly        bool   // the agent knows no generations
	nonce              []byte // of the newest status of the session that had one; nil with numbersOnly
}

// namesGenerations reports whether the agent names generations of lists at all.
func namesGenerations(st *wire.Status) bool { return st.Generation > 0 || st.Snapshot > 0 }

func listOf(st *wire.Status) heldList {
	if !namesGenerations(st) {
		return heldList{number: st.CodeList, generation: st.Generation, lost: st.Lost, numbersOnly: true}
	}
	return heldList{number: st.CodeList, generation: st.Generation, lost: st.Lost, nonce: st.Nonce}
}

// hold notes what a status says of the list. One without a nonce leaves that of
// the status before.
func (x *session) hold(l heldList) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(l.nonce) == 0 {
		l.nonce = x.holds.nonce
	}
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
//	tail          follows what the device holds; as much as a message holds, the
//	              rest of it follows the next status
//	whole list    from 0, only in answer to a status with a nonce, which it names;
//	              in parts where one message does not hold it
//	announcement  an empty tail that follows nothing: the agent answers it with
//	              such a status
//
// nonce is that of the status which is answered; tails and announcements name the
// newest one of the session. An agent that knows no generations takes a whole list
// at any time, and knows no parts.
func (s downlink) sendCodes(ctx context.Context, x *session, d cloud.Device, nonce []byte) {
	held := x.listHeld()
	if !held.lacks(d) {
		x.awaitList(0)
		return
	}
	x.awaitList(d.CodeList)
	if len(nonce) == 0 && !held.numbersOnly && held.whole(d) {
		return // the next status with a nonce brings it
	}
	list, err := s.readCodes(ctx, x, nonce)
	if err != nil {
		s.log.Error("read code list", "device", x.code, "err", err)
		return
	}
	for _, msg := range list {
		s.signed(x, topic.Down, wire.DownCodes, signed.ForCodes, msg)
	}
}

// lacks reports whether the device needs anything of the list.
func (l heldList) lacks(d cloud.Device) bool { return l.whole(d) || l.number != d.CodeList }

// announceCodes makes a device that needs the whole list ask for it. It reports
// whether it does; while a status is worked on, that is its answer's part. A
// device that has lost its memory, while nothing is listed, asks by itself.
func (s downlink) announceCodes(x *session, d cloud.Device) bool {
	held := x.listHeld()
	if held.numbersOnly || !held.whole(d) {
		return false
	}
	x.awaitList(d.CodeList)
	if d.CodeList > 0 && !x.isBusy() {
		s.signed(x, topic.Down, wire.DownCodes, signed.ForCodes, wire.Codes{DeviceCode: x.code, From: d.CodeList, To: d.CodeList,
			Generation: max(d.CodeGeneration, 1), Nonce: held.nonce})
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

// readCodes makes the messages that lead a device on, from one state of the
// database: none where it lacks nothing by now, or needs a nonce for it.
func (s downlink) readCodes(ctx context.Context, x *session, nonce []byte) (list []wire.Codes, err error) {
	held := x.listHeld()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := v.Device(x.id)
		if err != nil || !held.lacks(d) {
			return err
		}
		msg := wire.Codes{DeviceCode: x.code, From: held.number, To: d.CodeList, Generation: max(d.CodeGeneration, 1), Nonce: held.nonce}
		limit := wire.MaxRecords
		if held.whole(d) {
			if len(nonce) == 0 && !held.numbersOnly {
				return nil
			}
			msg.From, msg.Nonce, limit = 0, nonce, wire.MaxRecords*wire.MaxListParts
		}
		rows, err := v.CodeRows(x.id, msg.From, limit)
		if err != nil {
			return err
		}
		if msg.From > 0 && len(rows) == limit {
			msg.To = rows[limit-1].Entry.Number
		}
		list = divide(msg, rows)
		if msg.From > 0 || held.numbersOnly {
			list = list[:1]
		} else if len(list) > 1 {
			number(list, msg.To)
		}
		if len(list) > wire.MaxListParts || msg.From == 0 && len(rows) == limit {
			n := len(list)
			list = nil
			return fmt.Errorf("a whole list of %d entries in %d messages, the limit is %d messages", len(rows), n, wire.MaxListParts)
		}
		return nil
	})
	return list, err
}

// divide cuts what msg is to hold into messages that a payload can hold, each
// from where the one before ends.
func divide(msg wire.Codes, rows []cloud.CodeRow) (list []wire.Codes) {
	end, size := msg.To, 0
	for _, r := range rows {
		n := len(wire.MustEncode(r.Entry))
		if k := len(msg.Entries); k > 0 && (size+n > codesBytes || k == wire.MaxRecords) {
			msg.To = msg.Entries[k-1].Number
			list = append(list, msg)
			msg.From, msg.To, msg.Entries, size = msg.To, end, nil, 0
		}
		msg.Entries, size = append(msg.Entries, r.Entry), size+n
	}
	return append(list, msg)
}

// number makes messages the parts of one whole list that leads to end.
func number(list []wire.Codes, end uint64) {
	for i := range list {
		list[i].Part, list[i].End = uint(i+1), end
	}
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

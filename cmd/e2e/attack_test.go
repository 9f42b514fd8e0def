package e2e

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// trick is one thing that the broker's owner can do. It says whether there was
// anything to do it with.
type trick struct {
	name string
	do   func() bool
}

// attack does one of the things that the broker's owner can do to a cabinet and
// the cloud. What it was is counted by name.
func (t *wiretap) attack(code string, rnd *rand.Rand) {
	tricks := t.tricks(code, rnd)
	trick := tricks[rnd.IntN(len(tricks))]
	if trick.do() {
		t.count(trick.name)
	}
}

// kindOf is a kind of message on the link, in one direction.
type kindOf struct {
	name string
	down bool
	is   func(m message) bool
}

// kindsOf are all kinds of messages between a cabinet and the cloud.
func kindsOf() []kindOf {
	down := func(name string, types ...wire.DownType) kindOf {
		return kindOf{name, true, func(m message) bool { return slices.Contains(types, downType(m)) }}
	}
	batch := func(name string, lane wire.Lane) kindOf {
		return kindOf{name, false, func(m message) bool {
			if m.leaf != topic.Up {
				return false
			}
			b, err := wire.DecodeBatch(m.payload)
			return err == nil && b.Lane == lane
		}}
	}
	status := func(name, state string) kindOf {
		return kindOf{name, false, func(m message) bool {
			if m.leaf != topic.Status {
				return false
			}
			st, err := wire.DecodeStatus(m.payload)
			return err == nil && st.State == state
		}}
	}
	return []kindOf{
		down("command", wire.DownCommand), down("list", wire.DownCodes), down("time", wire.DownTime), down("receipt", wire.DownAck, wire.DownReceipt),
		{"configuration", true, func(m message) bool { return m.leaf == topic.Config }},
		batch("settlements", wire.Settlement), batch("telemetry", wire.Telemetry), status("status", wire.Online), status("farewell", wire.Offline),
	}
}

// tricks are all that the broker's owner tries: everything that can be done with
// recorded messages of each kind, and what can be invented.
func (t *wiretap) tricks(code string, rnd *rand.Rand) []trick {
	list := []trick{
		{"replay any down", func() bool { return t.replay(code, code, true, 1+rnd.IntN(5), rnd) }},
		{"replay any up", func() bool { return t.replay(code, code, false, 1+rnd.IntN(5), rnd) }},
		{"replay first list", func() bool { return t.replayFirst(code, wire.DownCodes) }},
		{"replay all commands", func() bool { return t.replayAll(code, wire.DownCommand) }},
		{"misdirect down", func() bool { return t.replay(t.other(code, rnd), code, true, 3, rnd) }},
		{"misdirect up", func() bool { return t.replay(t.other(code, rnd), code, false, 3, rnd) }},
		{"invent command", func() bool { return t.inventCommand(code, rnd) }},
		{"invent list", func() bool { return t.inventList(code, rnd) }},
		{"invent tail", func() bool { return t.inventTail(code, rnd) }},
		{"invent time", func() bool { return t.inventTime(code, rnd) }},
		{"invent configuration", func() bool { return t.inventConfig(code) }},
		{"invent receipt", func() bool { return t.inventReceipt(code) }},
		{"invent refusal", func() bool { return t.inventRefusal(code, rnd) }},
		{"invent settlement", func() bool { return t.inventSettlement(code, rnd) }},
		{"invent telemetry", func() bool { return t.inventTelemetry(code, rnd) }},
		{"invent status", func() bool { return t.inventStatus(code, rnd) }},
		{"invent farewell", func() bool { return t.inventFarewell(code) }},
	}
	for _, k := range kindsOf() {
		list = append(list,
			trick{"replay " + k.name, func() bool {
				return t.handOn(code, k, func(all []message) []message { return []message{all[rnd.IntN(len(all))]} })
			}},
			trick{"repeat " + k.name, func() bool {
				return t.handOn(code, k, func(all []message) []message { return slices.Repeat(all[len(all)-1:], 3) })
			}},
			trick{"reorder " + k.name, func() bool {
				return t.handOn(code, k, func(all []message) []message {
					last := slices.Clone(all[max(0, len(all)-4):])
					slices.Reverse(last)
					return last
				})
			}},
			trick{"alter " + k.name, func() bool {
				return t.handOn(code, k, func(all []message) []message {
					return []message{altered(all[len(all)-1-rnd.IntN(min(10, len(all)))], rnd)}
				})
			}},
			trick{"withhold " + k.name, func() bool {
				return t.withhold(code, rnd, func(m message, down bool) bool { return down == k.down && k.is(m) })
			}},
		)
	}
	return list
}

// handOn gives a cabinet or the cloud some of the recorded messages of one kind. It
// says whether there were any.
func (t *wiretap) handOn(code string, k kindOf, which func(all []message) []message) bool {
	all := slices.DeleteFunc(t.recorded(code, k.down), func(m message) bool { return !k.is(m) })
	if len(all) == 0 {
		return false
	}
	for _, m := range which(all) {
		t.hand(m, k.down)
	}
	return true
}

func (t *wiretap) count(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried[name]++
}

func (t *wiretap) other(code string, rnd *rand.Rand) string {
	for _, c := range t.w.cabinets {
		if c.code != code {
			return c.code
		}
	}
	return code
}

// recorded are the messages kept of a cabinet in one direction.
func (t *wiretap) recorded(code string, down bool) []message {
	t.mu.Lock()
	defer t.mu.Unlock()
	if down {
		return slices.Clone(t.down[code])
	}
	return slices.Clone(t.up[code])
}

// replay gives n recorded messages of one cabinet to another one, or the same.
func (t *wiretap) replay(from, to string, down bool, n int, rnd *rand.Rand) bool {
	list := t.recorded(from, down)
	for range n {
		if len(list) == 0 {
			return false
		}
		m := list[rnd.IntN(len(list))]
		m.code = to
		t.hand(m, down)
	}
	return true
}

func downType(m message) wire.DownType {
	d, err := wire.DecodeDown(m.payload)
	if m.leaf != topic.Down || err != nil {
		return 0
	}
	return d.Type
}

func isDown(types ...wire.DownType) func(message, bool) bool {
	return func(m message, down bool) bool { return down && slices.Contains(types, downType(m)) }
}

// replayFirst gives a cabinet the first message of a type that it ever got.
func (t *wiretap) replayFirst(code string, kind wire.DownType) bool {
	for _, m := range t.recorded(code, true) {
		if downType(m) == kind {
			t.hand(m, true)
			return true
		}
	}
	return false
}

// replayAll gives a cabinet every message of a type again, in order.
func (t *wiretap) replayAll(code string, kind wire.DownType) (any bool) {
	for _, m := range t.recorded(code, true) {
		if downType(m) == kind {
			t.hand(m, true)
			any = true
		}
	}
	return any
}

// altered is a message with some bits flipped.
func altered(m message, rnd *rand.Rand) message {
	m.payload = bytes.Clone(m.payload)
	for range 1 + rnd.IntN(3) {
		m.payload[rnd.IntN(len(m.payload))] ^= 1 << rnd.IntN(8)
	}
	return m
}

// own is a key of the broker's owner.
func (t *wiretap) own() *signed.Signer {
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0x66}, 32)))
	if err != nil {
		panic(err)
	}
	return s
}

func (t *wiretap) sendSigned(code string, kind wire.DownType, p signed.Purpose, payload any) bool {
	env, err := t.own().Sign(p, payload)
	if err != nil {
		return false
	}
	t.hand(message{code: code, leaf: topic.Down, payload: wire.EncodeDown(kind, env)}, true)
	return true
}

func (t *wiretap) inventCommand(code string, rnd *rand.Rand) bool {
	now := time.Now()
	return t.sendSigned(code, wire.DownCommand, signed.ForCommand, wire.Command{CommandID: fmt.Sprintf("forged-%x", rnd.Uint64()), DeviceCode: code, IssuedAt: now.UnixNano(),
		ExpiresAt: now.Add(time.Minute).UnixNano(), Kind: wire.CmdOpenDoors, Body: wire.MustEncode(wire.OpenDoors{OpeningID: fmt.Sprintf("op_%x", rnd.Uint64()),
			Kind: wire.OpenStaff, Doors: []uint{uint(1 + rnd.IntN(doors))}, SessionSeconds: 600})})
}

func (t *wiretap) inventList(code string, rnd *rand.Rand) bool {
	return t.sendSigned(code, wire.DownCodes, signed.ForCodes, wire.Codes{DeviceCode: code, From: 0, To: 1 << 40, Generation: 1 << 40,
		Entries: []wire.CodeEntry{{Number: 1, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: bytes.Repeat([]byte{byte(rnd.Uint64())}, 32), Active: wire.ActiveNow}}})
}

// inventTail adds a code to the list that the cabinet holds.
func (t *wiretap) inventTail(code string, rnd *rand.Rand) bool {
	held := t.heldOf(code)
	if len(held) == 0 {
		return false
	}
	h := held[len(held)-1]
	return t.sendSigned(code, wire.DownCodes, signed.ForCodes, wire.Codes{DeviceCode: code, From: h.Number, To: h.Number + 1, Generation: h.Generation,
		Entries: []wire.CodeEntry{{Number: h.Number + 1, Op: wire.CodeSet, Kind: wire.CodePickup, DeliveryRef: "LD-000000001", Doors: []uint{1, 2, 3, 4},
			Verifier: bytes.Repeat([]byte{byte(rnd.Uint64())}, 32), Active: wire.ActiveNow}}})
}

// newestStatus is the newest status of a cabinet with a nonce.
func (t *wiretap) newestStatus(code string) (*wire.Status, bool) {
	for _, m := range slices.Backward(t.recorded(code, false)) {
		if m.leaf != topic.Status {
			continue
		}
		if st, err := wire.DecodeStatus(m.payload); err == nil && len(st.Nonce) > 0 {
			return st, true
		}
	}
	return nil, false
}

// inventTime answers the newest nonce with a time that is years off.
func (t *wiretap) inventTime(code string, rnd *rand.Rand) bool {
	st, ok := t.newestStatus(code)
	if !ok {
		return false
	}
	off := time.Duration(rnd.Int64N(int64(4*365*24*time.Hour))) - 2*365*24*time.Hour
	return t.sendSigned(code, wire.DownTime, signed.ForTime, wire.Time{DeviceCode: code, Nonce: st.Nonce, ServerTime: time.Now().Add(off).UnixNano()})
}

// inventConfig wires the doors otherwise.
func (t *wiretap) inventConfig(code string) bool {
	env, err := t.own().Sign(signed.ForConfig, wire.Config{DeviceCode: code, Version: 1 << 40, Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 4, Size: "M"}}})
	if err != nil {
		return false
	}
	t.hand(message{code: code, leaf: topic.Config, payload: env}, true)
	return true
}

// inventFarewell says that the cabinet went away.
func (t *wiretap) inventFarewell(code string) bool {
	st, ok := t.newestStatus(code)
	if !ok {
		return false
	}
	t.hand(message{code: code, leaf: topic.Status, payload: wire.MustEncode(&wire.Status{State: wire.Offline, Epoch: st.Epoch, Boot: st.Boot, Instance: st.Instance, Count: st.Count + 1})}, false)
	return true
}

// inventTelemetry goes on with the cabinet's own lane of telemetry: doors that opened
// and shut, which never did.
func (t *wiretap) inventTelemetry(code string, rnd *rand.Rand) bool {
	for _, m := range slices.Backward(t.recorded(code, false)) {
		b, err := wire.DecodeBatch(m.payload)
		if m.leaf != topic.Up || err != nil || b.Lane != wire.Telemetry {
			continue
		}
		x := wire.Batch{Version: wire.Version, Epoch: b.Epoch, Lane: b.Lane, First: b.Last() + 1, Sent: b.Sent, Head: b.Head}
		for i, body := range []any{wire.DoorOpened{Door: 1, Pulses: 1}, wire.DoorClosed{Door: 1, OpenMS: 900}} {
			raw := wire.MustEncode(wire.Record{Kind: []wire.Kind{wire.KindDoorOpened, wire.KindDoorClosed}[i], At: time.Now().UnixNano(), Boot: b.Sent.Boot, Mono: b.Sent.Mono + int64(i), Clock: wire.ClockSynced, Body: wire.MustEncode(body)})
			x.Records, x.Head = append(x.Records, raw), x.Head.Next(raw)
		}
		if rnd.IntN(2) == 0 {
			key, err := signed.NewDeviceKey(code, bytes.Repeat([]byte{0x66}, 32))
			if err != nil || key.SignBatch(&x) != nil {
				return false
			}
		}
		t.hand(message{code: code, leaf: topic.Up, payload: wire.MustEncode(&x)}, false)
		return true
	}
	return false
}

// newest is the newest batch of lane 0 that a cabinet sent.
func (t *wiretap) newest(code string) (*wire.Batch, bool) {
	for _, m := range slices.Backward(t.recorded(code, false)) {
		if b, err := wire.DecodeBatch(m.payload); m.leaf == topic.Up && err == nil && b.Lane == wire.Settlement {
			return b, true
		}
	}
	return nil, false
}

// inventReceipt keeps batches back and acknowledges the newest: an agent that
// believes it throws records away that the cloud never saw.
func (t *wiretap) inventReceipt(code string) bool {
	t.mu.Lock()
	t.closed, t.until = func(m message, down bool) bool { return !down && m.code == code && m.leaf == topic.Up }, time.Now().Add(2*time.Minute)
	t.mu.Unlock()
	t.w.people.Go(func() {
		for range 8 {
			time.Sleep(15 * time.Second)
			b, ok := t.newest(code)
			if !ok {
				continue
			}
			ack := wire.MustEncode(wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Next: b.Last() + 1, Head: b.Head})
			t.hand(message{code: code, leaf: topic.Down, payload: wire.EncodeDown(wire.DownAck, ack)}, true)
			if env, err := t.own().Sign(signed.ForReceipt, wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Next: b.Last() + 1, Head: b.Head}); err == nil {
				t.hand(message{code: code, leaf: topic.Down, payload: wire.EncodeDown(wire.DownReceipt, env)}, true)
			}
		}
	})
	return true
}

// inventRefusal says that the cloud will not have the newest batch.
func (t *wiretap) inventRefusal(code string, rnd *rand.Rand) bool {
	b, ok := t.newest(code)
	if !ok {
		return false
	}
	why := []string{wire.RefusedBadBatch, wire.RefusedFork, wire.RefusedEpochConflict}[rnd.IntN(3)]
	for range 4 {
		t.hand(message{code: code, leaf: topic.Down, payload: wire.EncodeDown(wire.DownAck,
			wire.MustEncode(wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Next: b.First, Head: wire.FirstHead(b.Epoch, b.Lane), Refused: why, RefusedFirst: b.First}))}, true)
	}
	return true
}

// inventSettlement tells the cloud of a deposit that never was, in a new epoch.
func (t *wiretap) inventSettlement(code string, rnd *rand.Rand) bool {
	t.w.mu.Lock()
	var x *task
	if n := len(t.w.tasks); n > 0 {
		x = t.w.tasks[rnd.IntN(n)]
	}
	t.w.mu.Unlock()
	if x == nil || t.w.cabinets[x.cabinet].code != code {
		return false
	}
	var e wire.Epoch
	for i := range e {
		e[i] = byte(rnd.Uint64())
	}
	id, at := fmt.Sprintf("op_%x", rnd.Uint64()), time.Now().UnixNano()
	records := []wire.Raw{}
	for i, body := range []struct {
		kind wire.Kind
		body any
	}{
		{wire.KindGap, wire.Gap{Epoch: wire.Epoch{1}, Reason: wire.GapStoreDamaged}},
		{wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: id, Kind: wire.OpenDeposit, Doors: []uint{1}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: x.number}},
		{wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: id, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: 1, OpenedAt: at, ClosedAt: at}},
			Packages: []wire.SettledPackage{{Ref: x.packages[0], Door: 1, Outcome: wire.Deposited}}}},
	} {
		records = append(records, wire.MustEncode(wire.Record{Kind: body.kind, At: at, Boot: 99, Mono: int64(i + 1), Clock: wire.ClockSynced, Body: wire.MustEncode(body.body)}))
	}
	head := wire.FirstHead(e, wire.Settlement)
	for _, r := range records {
		head = head.Next(r)
	}
	b := wire.Batch{Version: wire.Version, Epoch: e, Lane: wire.Settlement, First: 1, Records: records, Sent: wire.Sample{Boot: 99, Mono: 9, Wall: at, Clock: wire.ClockSynced}, Head: head}
	if rnd.IntN(2) == 0 {
		key, err := signed.NewDeviceKey(code, bytes.Repeat([]byte{0x66}, 32))
		if err != nil || key.SignBatch(&b) != nil {
			return false
		}
	}
	t.hand(message{code: code, leaf: topic.Up, payload: wire.MustEncode(&b)}, false)
	return true
}

// inventStatus takes the newest status and changes what it says.
func (t *wiretap) inventStatus(code string, rnd *rand.Rand) bool {
	for _, m := range slices.Backward(t.recorded(code, false)) {
		st, err := wire.DecodeStatus(m.payload)
		if m.leaf != topic.Status || err != nil || st.State != wire.Online {
			continue
		}
		st.Count += 1000
		switch rnd.IntN(5) {
		case 0:
			st.Lost, st.CodeList, st.Nonce = true, 0, []byte{1, 2, 3, 4}
		case 1:
			st.CodeList += 100 // every revocation has arrived
		case 2:
			st.Contents = map[uint]string{}
		case 3:
			st.Ends = []wire.LaneEnd{{}, {}}
		case 4:
			st.Contents = map[uint]string{1: "LD-000000001", 2: "LD-000000002"}
			for i := range st.Doors {
				st.Doors[i].State, st.Doors[i].OpeningID = wire.DoorOpen, ""
			}
		}
		m.payload = wire.MustEncode(st)
		t.hand(m, false)
		return true
	}
	return false
}

// withhold keeps some messages of a cabinet back for a while.
func (t *wiretap) withhold(code string, rnd *rand.Rand, which func(message, bool) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.until = func(m message, down bool) bool { return m.code == code && which(m, down) }, time.Now().Add(pick(rnd, 10*time.Second, 2*time.Minute, 10*time.Minute))
	return true
}

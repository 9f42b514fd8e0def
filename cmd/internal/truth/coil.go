package truth

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// Limits of device-link.md 4.1 and locker-hardware.md 3.
const (
	lineLatency  = 2 * time.Second  // from the trace's line to the coil: a slow line, a split request
	busyLatency  = 10 * time.Second // the same of real processes, which wait for a processor too
	actLife      = 60 * time.Second // of an authorisation
	queueStep    = 4 * time.Second  // more for each door before it in a queue
	coilsPerAct  = 2
	typingTakes  = 10 * time.Second // at most, from the start of an act to its step
	clockSlack   = 6 * time.Second  // a cabinet obeys commands with a clock error up to 5 s
	errSlack     = 6 * time.Second  // of a clock that is set, beyond its error at the time of a record
	handSlack    = 500 * time.Millisecond
	relatchSlack = 3 * time.Second
	startTakes   = 10 * time.Second // of a real process
	readTakes    = time.Second      // at most, from a latch that opens to the reading that an act goes by
)

// coils joins coils and lines of the trace, by board, channel and order.
func (j *judge) coils(b *Cabinet) {
	used, latency := make([]bool, len(b.Pulses)), lineLatency
	if b.WallClock {
		latency = busyLatency
	}
	for _, f := range b.Facts {
		if f.Kind != board.CoilFired || f.Cause != board.ByRequest {
			continue
		}
		j.Coils++
		found := -1
		for i, p := range b.Pulses {
			if p.At.After(f.At) {
				break
			}
			if !used[i] && p.Board == f.Board && p.Channel == f.Channel && f.At.Sub(p.At) <= latency {
				found = i // the newest: an older one was lost
			}
		}
		if found < 0 {
			j.find("coil", b, f.Door, f.At, "a coil fired that no line of the trace asked for")
			continue
		}
		used[found] = true
		if uint(b.Pulses[found].Door) != f.Door {
			j.find("coil", b, f.Door, f.At, "the coil of door %d fired for door %d", f.Door, b.Pulses[found].Door)
		}
		if out := b.openBefore(b.Pulses[found]); !out.IsZero() {
			j.find("open_pulse", b, f.Door, f.At, "pulsed for the act %s, and its latch was open since %s", b.Pulses[found].Act, clockTime(out))
		}
		j.Authorised++
	}
	for _, u := range used {
		if !u {
			j.Unfired++
		}
	}
}

// openBefore is since when the door of a pulse was read open as the act began, which
// then pulses nothing (locker-hardware.md 3, step 2); zero: it was not.
func (b *Cabinet) openBefore(p Pulse) time.Time {
	boot, ok := b.boot(p.Boot, p.At)
	if !ok {
		return time.Time{}
	}
	began := boot.Start.Add(time.Duration(p.Mono))
	at := began
	if b.WallClock { // a real process counts from some moment after its start: the act began between the two
		at = p.At
	}
	out := b.hookOutSince(uint(p.Door), at)
	if out.IsZero() || began.Sub(out) <= readTakes || !b.watched(uint(p.Door), out, p.At) {
		return time.Time{}
	}
	return out
}

// hookOutSince is since when a door's latch is open at a moment; zero: it is not.
func (b *Cabinet) hookOutSince(door uint, at time.Time) (out time.Time) {
	for _, f := range b.Facts {
		switch {
		case f.Door != door || f.At.After(at):
		case f.Kind == board.HookOut:
			out = f.At
		case f.Kind == board.HookIn:
			out = time.Time{}
		}
	}
	return out
}

// authorities asks who allowed each line.
func (j *judge) authorities(b *Cabinet) {
	type actDoor struct { // whatever the boot: an act is obeyed once
		act  string
		door uint
	}
	lines := map[actDoor]int{}
	boots := j.Cloud.Devices[b.Code].actBoots()
	acts := map[string]int{} // of the trace, to the script's
	for _, p := range b.Pulses {
		door := uint(p.Door)
		k := actDoor{p.Act, door}
		lines[k]++
		if p.Act == "" || lines[k] > coilsPerAct {
			j.find("authority", b, door, p.At, "pulse %d of the act %q", lines[k], p.Act)
			continue
		}
		if of, known := boots[p.Act]; known && of != p.Boot {
			j.find("authority", b, door, p.At, "the act %s is of boot %d, and the pulse of boot %d", p.Act, of, p.Boot)
			continue
		}
		boots[p.Act] = p.Boot
		boot, ok := b.boot(p.Boot, p.At)
		if !ok || p.At.Before(boot.Start) || !boot.End.IsZero() && p.At.After(boot.End) {
			j.find("authority", b, door, p.At, "a pulse under the boot %d, which did not run", p.Boot)
			continue
		}
		began := boot.Start.Add(time.Duration(p.Mono))
		if age := p.At.Sub(began); age < -b.slack() || age > actLife+j.Cloud.Devices[b.Code].queueTime() {
			j.find("authority", b, door, p.At, "its act %s is %s old", p.Act, age.Round(time.Millisecond))
			continue
		}
		if why := j.refuses(b, p, began, acts); why != "" {
			j.find("authority", b, door, p.At, "%s act %s: %s", p.Kind, p.Act, why)
		}
	}
}

// actBoots are the starts in which commands began an opening, by the records of that.
// Another start obeys none of them.
func (d Device) actBoots() map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range d.Records {
		var s wire.OpeningStarted
		if r.Kind == wire.KindOpeningStarted && wire.Decode(r.Body, &s) == nil && s.CommandID != wire.LocalCommand {
			if _, known := out[s.CommandID]; !known {
				out[s.CommandID] = r.Boot
			}
		}
	}
	return out
}

// queueTime is how much longer an act lasts for the last door of a cabinet's queue: one
// whose doors are not known is taken for the largest.
func (d Device) queueTime() time.Duration {
	n := len(d.Cells)
	if n == 0 {
		n = wire.MaxDoors
	}
	return time.Duration(n) * queueStep
}

// refuses says why nothing outside the agent allowed a pulse, "" when something
// did.
func (j *judge) refuses(b *Cabinet, p Pulse, began time.Time, acts map[string]int) string {
	if p.Kind == edge.ByCommand {
		return j.refusesCommand(b, p, began)
	}
	i, known := acts[p.Act]
	if !known {
		whose, kind := "", ""
		if e := j.entry(b, p.CodeNumber); e != nil {
			whose, kind = e.Entry.DeliveryRef, e.Entry.Kind
		}
		fits := func(a Act) bool {
			return a.Cabinet == b.Code && a.Kind == p.Kind && within(began, a.At.Add(-b.slack()), j.until(a).Add(b.slack())) && !taken(acts, j.Acts, a)
		}
		i = slices.IndexFunc(j.Acts, func(a Act) bool { return fits(a) && a.Delivery == whose && a.Code == kind })
		if i < 0 { // judged below: another code of the delivery
			i = slices.IndexFunc(j.Acts, func(a Act) bool { return fits(a) && a.Delivery == whose })
		}
		if i < 0 { // judged below: another delivery's code
			i = slices.IndexFunc(j.Acts, func(a Act) bool { return fits(a) && (!j.Unscripted || a.namesDoor(uint(p.Door))) })
		}
		if i < 0 {
			if why, ok := j.refusesGuest(b, p, began); ok {
				return why
			}
		}
		if i < 0 {
			return "no person of the script did that"
		}
		acts[p.Act] = i
	}
	a := j.Acts[i]
	if a.OK && len(a.Doors) > 0 && !slices.Contains(a.Doors, uint(p.Door)) {
		return fmt.Sprintf("the person was let in to %v", a.Doors)
	}
	switch p.Kind {
	case edge.ByCode:
		return j.refusesCode(b, p, a, began)
	case edge.ByLarger:
		return refusesLarger(j, b, p, a)
	case edge.ByPass:
		return refusesPass(j, b, p, a, began, acts)
	}
	return ""
}

// refusesPass looks the signed QR code up that the person has shown. One of a courier
// stands for an entry of the code list.
func refusesPass(j *judge, b *Cabinet, p Pulse, a Act, began time.Time, acts map[string]int) string {
	rows := j.Cloud.Devices[b.Code].QRCodes
	i := slices.IndexFunc(rows, func(q cloud.QRCode) bool { return q.PassID == a.Pass })
	if i < 0 && isForgotten(j.Forgotten, p.At) {
		return ""
	}
	if i < 0 {
		return "the cloud gave out no such QR code for this cabinet"
	}
	if q := rows[i]; began.Before(q.CreatedAt.Add(-clockSlack)) || began.After(q.EndsAt.Add(clockSlack)) {
		return fmt.Sprintf("a QR code was used at %s, given out at %s and good until %s", clockTime(began), clockTime(q.CreatedAt), clockTime(q.EndsAt))
	}
	for act, k := range acts {
		if act != p.Act && j.Acts[k].Pass == a.Pass {
			return "a QR code was used a second time"
		}
	}
	if e := j.entry(b, p.CodeNumber); e != nil {
		findRevoked(j, b, p, e.Entry, began)
	}
	return ""
}

// slack is how exactly an act's time is known: of a real process its monotonic
// clock's start is not.
func (b *Cabinet) slack() time.Duration {
	if b.WallClock {
		return startTakes
	}
	return handSlack
}

// until is the end of an act, open-ended when nothing answered it.
func (j *judge) until(a Act) time.Time {
	if a.Until.IsZero() {
		return a.At.Add(typingTakes)
	}
	return a.Until
}

// taken reports whether another act of the trace stands for the script's.
func taken(acts map[string]int, all []Act, a Act) bool {
	for _, i := range acts {
		if all[i].Cabinet == a.Cabinet && all[i].At.Equal(a.At) && all[i].Kind == a.Kind && all[i].Delivery == a.Delivery {
			return true
		}
	}
	return false
}

func (j *judge) refusesCommand(b *Cabinet, p Pulse, began time.Time) string {
	c, ok := j.Cloud.Commands[p.Act]
	d := j.Cloud.Devices[b.Code]
	var body wire.OpenDoors
	switch {
	case !ok && isForgotten(j.Forgotten, p.At):
		return ""
	case !ok:
		return "the cloud has no such command"
	case c.DeviceID != d.Row.ID:
		return "a command for another cabinet"
	case c.Kind != wire.CmdOpenDoors && c.Kind != wire.CmdChannelTest || wire.Decode(c.Body, &body) != nil || !slices.Contains(body.Doors, uint(p.Door)):
		return "a command that does not open this door"
	case body.OpeningID != p.OpeningID:
		return "a command for another opening: " + body.OpeningID
	case c.Kind == wire.CmdChannelTest && (body.Kind != wire.OpenStaff || len(body.Doors) != 1):
		return "a channel test is an opening by staff of one door"
	case began.Before(c.IssuedAt.Add(-clockSlack)) || began.After(c.ExpiresAt.Add(clockSlack)):
		return fmt.Sprintf("obeyed at %s, issued at %s and good until %s", clockTime(began), clockTime(c.IssuedAt), clockTime(c.ExpiresAt))
	}
	return ""
}

// refusesCode looks the entry up that the cabinet took the code for, and whether
// the cabinet had reported that it holds its revocation.
func (j *judge) refusesCode(b *Cabinet, p Pulse, a Act, began time.Time) string {
	e := j.entry(b, p.CodeNumber)
	switch {
	case e == nil && a.Code == wire.CodeStaff:
		return ""
	case e == nil && isForgotten(j.Forgotten, p.At):
		return ""
	case e == nil:
		return fmt.Sprintf("the cloud never listed entry %d", p.CodeNumber)
	case e.Entry.Kind != a.Code || e.Entry.DeliveryRef != a.Delivery:
		return fmt.Sprintf("entry %d is a %s code of %s, the person used the %s code of %s", p.CodeNumber, e.Entry.Kind, e.Entry.DeliveryRef, a.Code, a.Delivery)
	}
	if x, ok := j.Cloud.Devices[b.Code].Deliveries[e.Entry.DeliveryRef]; ok && x.IsOutgoing() && e.Entry.Kind != wire.CodeDelivery {
		j.find("outgoing", b, uint(p.Door), p.At, "a %s code has opened %s, which a courier collects", e.Entry.Kind, e.Entry.DeliveryRef)
	}
	if end := time.Unix(0, e.Entry.NotAfter); e.Entry.NotAfter != 0 && (a.Code == wire.CodeDelivery || a.Code == wire.CodeStaff) && began.After(end.Add(errSlack+b.slack())) && b.clockSet(j.Cloud.Devices[b.Code].Records, p.Boot, began) {
		j.find("expired", b, uint(p.Door), p.At, "entry %d had ended at %s", e.Entry.Number, clockTime(end))
	}
	if begins := time.Unix(0, e.Entry.NotBefore); e.Entry.NotBefore != 0 && began.Before(begins.Add(-errSlack-b.slack())) && b.clockSet(j.Cloud.Devices[b.Code].Records, p.Boot, began) {
		j.find("early", b, uint(p.Door), p.At, "entry %d begins at %s", e.Entry.Number, clockTime(begins))
	}
	findRevoked(j, b, p, e.Entry, began)
	return ""
}

// findRevoked finds an entry that opened a door although the cabinet had reported that it
// holds its revocation.
func findRevoked(j *judge, b *Cabinet, p Pulse, e wire.CodeEntry, began time.Time) {
	for _, r := range j.Cloud.Devices[b.Code].Codes {
		if r.Entry.Op != wire.CodeRevoke || r.Entry.Kind != e.Kind || r.Entry.DeliveryRef != e.DeliveryRef || r.Entry.Number < e.Number ||
			e.DeliveryRef == "" && !bytes.Equal(r.Entry.Verifier, e.Verifier) {
			continue
		}
		for _, h := range b.Held {
			if h.Number >= r.Entry.Number && h.At.Before(began) && !j.forgot(b, h.At, began) {
				j.find("dead_code", b, uint(p.Door), p.At, "entry %d was revoked by entry %d, which the cabinet had reported as held at %s", e.Number, r.Entry.Number, clockTime(h.At))
				return
			}
		}
	}
}

// clockSet reports whether the agent's clock was set by the cloud, and not far off, in a
// boot before a moment: its records say so.
func (b *Cabinet) clockSet(records []wire.Record, boot uint64, before time.Time) bool {
	return slices.ContainsFunc(records, func(r wire.Record) bool {
		return r.Boot == boot && r.Clock == wire.ClockSynced && time.Duration(r.ErrMS)*time.Millisecond <= errSlack && b.at(r).Before(before)
	})
}

// entry is the code that the cloud listed under a number, nil when it never did.
func (j *judge) entry(b *Cabinet, number uint64) *cloud.CodeRow {
	codes := j.Cloud.Devices[b.Code].Codes
	for i := range codes {
		if codes[i].Entry.Number == number && codes[i].Entry.Op == wire.CodeSet {
			return &codes[i]
		}
	}
	return nil
}

// forgot reports whether a cabinet's memory was taken from it between two
// moments.
func (j *judge) forgot(b *Cabinet, from, to time.Time) bool {
	return slices.ContainsFunc(b.Boots, func(x Boot) bool { return x.Lost && within(x.Start, from, to) })
}

// hands asks of each item that left a box whether its door had been opened for
// a person: by a coil (judged above), by hand or by force.
func (j *judge) hands(b *Cabinet) {
	open := map[uint]bool{}
	for _, f := range b.Facts {
		switch f.Kind {
		case board.Opened:
			open[f.Door] = true
		case board.Closed:
			open[f.Door] = false
		case board.ItemOut:
			if !open[f.Door] && !b.Sensors {
				j.find("hand", b, f.Door, f.At, "%s left through a shut door", f.Item)
			}
		}
	}
	j.swings(b)
}

// swings asks of each door that swung open whether a coil or a force did it.
func (j *judge) swings(b *Cabinet) {
	last := map[uint]time.Time{}
	for _, f := range b.Facts {
		switch f.Kind {
		case board.CoilFired:
			last[f.Door] = f.At
		case board.Opened:
			forced := slices.ContainsFunc(b.Trouble, func(s Span) bool {
				return s.Door == f.Door && s.What == force && within(f.At, s.At, s.At.Add(handSlack))
			})
			if at, ok := last[f.Door]; !forced && (!ok || f.At.Sub(at) > relatchSlack) {
				j.find("hand", b, f.Door, f.At, "the door swung open by itself")
			}
		}
	}
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000") }

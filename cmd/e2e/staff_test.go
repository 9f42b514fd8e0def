package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/wire"
)

// staffOpening begins the names of openings that staff ask for.
const staffOpening = "op_staff_"

// staffCommand queues a command about one door, as the cloud's own operations do:
// the compartment's version counts up with it, and staff openings have a row.
func (w *world) staffCommand(s step, door uint, kind wire.CommandKind, body any) (opening string) {
	opening, _ = w.command(s.cabinet, door, kind, body)
	return opening
}

// command is staffCommand for a cabinet by its number, with the command's id.
func (w *world) command(cabinet int, door uint, kind wire.CommandKind, body any) (opening, command string) {
	id := w.box.Devices[cabinet].DeviceID
	now := time.Now().UTC()
	_ = w.server().Store.Decide(context.Background(), id, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(id)
		if err != nil {
			return nil, err
		}
		cell, err := v.Compartment(id, door)
		if err != nil {
			return nil, err
		}
		cell.Version++
		opening = ""
		cmd := cloud.Command{ID: uuid.Must(uuid.NewV7()).String(), DeviceID: id, Kind: kind, Versions: map[uint]uint64{door: cell.Version}, IssuedAt: now,
			ExpiresAt: now.Add(24 * time.Hour), State: cloud.CommandQueued}
		ch := &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{cell}}}
		if kind == wire.CmdCloseSession { // who is at the doors does not wait for it any longer
			cmd.ExpiresAt = now.Add(12 * time.Second)
		}
		if kind == wire.CmdOpenDoors {
			opening = staffOpening + cmd.ID[24:]
			cmd.OpeningID, cmd.ExpiresAt = opening, now.Add(20*time.Second)
			body = wire.OpenDoors{OpeningID: opening, Kind: wire.OpenStaff, Doors: []uint{door}, SessionSeconds: 600}
			ch.Openings = []cloud.Opening{{ID: opening, BusinessID: d.BusinessID, DeviceID: id, Kind: wire.OpenStaff, Requester: cloud.Requester{Type: "console"},
				Doors: []cloud.OpeningDoor{{Door: door, GridID: cell.GridID, Status: "unknown"}}, State: cloud.OpeningRequested, RequestedAt: now}}
		}
		cmd.Body = wire.MustEncode(body)
		ch.Commands = []cloud.Command{cmd}
		command = cmd.ID
		return ch, nil
	})
	return opening, command
}

// staffOpen opens a door from the console; a person looks inside and closes it. A
// door that stands open for another person is left alone.
func (w *world) staffOpen(s step, rnd *rand.Rand) {
	door := uint(1 + rnd.IntN(doors))
	opening := w.staffCommand(s, door, wire.CmdOpenDoors, nil)
	w.people.Go(func() {
		time.Sleep(time.Duration(3+rnd.IntN(20)) * time.Second)
		if c := w.cabinets[s.cabinet]; c.pulsedFor(opening) {
			_ = c.sim.CloseDoor(door)
		}
	})
}

// staffBlock takes a door out of service for a while.
func (w *world) staffBlock(s step, rnd *rand.Rand) {
	door := uint(1 + rnd.IntN(doors))
	w.staffCommand(s, door, wire.CmdBlock, wire.DoorReason{Door: door, Reason: "dirty"})
	w.people.Go(func() {
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Second)
		w.staffCommand(s, door, wire.CmdUnblock, wire.DoorReason{Door: door})
	})
}

// staffReset lets the keypad take typed codes again.
func (w *world) staffReset(s step) {
	out, err := w.server().Lockers.SendDeviceCommand(context.Background(), w.staff, locker.DeviceCommandInput{Device: w.box.Devices[s.cabinet].DeviceID, Type: string(wire.CmdResetTries), Reason: "vandals"})
	w.effect("reset_tries", err)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resets = append(w.resets, truth.Reset{Cabinet: w.cabinets[s.cabinet].code, CommandID: out.Command.CommandID})
}

// wrongCode is one of six digits that is hardly any delivery's.
func wrongCode(rnd *rand.Rand) string { return fmt.Sprintf("%06d", 100000+rnd.IntN(899999)) }

// vandal types codes until the keypad is locked, and goes on for a little. Staff lift
// that, or time does.
func (w *world) vandal(s step, rnd *rand.Rand) {
	scan := rnd.IntN(4) == 0
	for range 5 + rnd.IntN(4) {
		_, _ = w.enter(w.cabinets[s.cabinet], truth.Act{Code: "wrong"}, wrongCode(rnd), scan)
	}
	if rnd.IntN(2) == 0 {
		w.staffReset(s)
	}
}

// deviceCommand sends a command to a cabinet as a whole: one that staff can send, or
// one that only the link knows.
func (w *world) deviceCommand(s step, rnd *rand.Rand) {
	switch kind := pick(rnd, "sync", "update_config", "reboot", "reboot", "beep", "show_message", "capture"); kind {
	case "beep", "show_message", "capture":
		w.command(s.cabinet, uint(1+rnd.IntN(doors)), wire.CommandKind(kind), wire.DoorReason{Reason: "hello"})
		w.effect(kind, nil)
	default:
		_, err := w.server().Lockers.SendDeviceCommand(context.Background(), w.staff, locker.DeviceCommandInput{Device: w.box.Devices[s.cabinet].DeviceID, Type: kind})
		w.effect(kind, err)
	}
}

// reboot starts agents again that got the command, as the program does.
func (w *world) reboot() {
	for _, c := range w.cabinets {
		if c.launcher != nil && c.launcher.endTrial() {
			c.reboot.Store(true)
		}
		if c.reboot.Swap(false) {
			c.restart(time.Second)
			w.effect("rebooted", nil)
		}
	}
}

// staffClear has staff look behind a door, take out what lies there, and clear it.
func (w *world) staffClear(s step, rnd *rand.Rand) {
	door, c := uint(1+rnd.IntN(doors)), w.cabinets[s.cabinet]
	var full []uint
	for n := uint(1); n <= doors; n++ {
		if len(c.sim.ItemsAt(n, time.Now())) > 0 {
			full = append(full, n)
		}
	}
	if len(full) > 0 && rnd.IntN(3) > 0 {
		door = full[rnd.IntN(len(full))]
	}
	w.people.Go(func() { w.inspect(s.cabinet, []uint{door}) })
}

// blockByCall takes a compartment out of use by the operation, which refuses one that
// is in use, and puts it back later.
func (w *world) blockByCall(s step, rnd *rand.Rand) {
	id, door := w.box.Devices[s.cabinet].DeviceID, uint(1+rnd.IntN(doors))
	cell := w.cellOf(w.cabinets[s.cabinet], door)
	_, err := w.server().Lockers.Block(context.Background(), w.staff, locker.BlockInput{Device: id, Grid: cell.GridID, Reason: "dirty"})
	w.effect("block", err)
	if err != nil {
		return
	}
	w.people.Go(func() {
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Second)
		_, err := w.server().Lockers.Unblock(context.Background(), w.staff, locker.UnblockInput{Device: id, Grid: cell.GridID})
		w.effect("unblock", err)
	})
}

func (w *world) wasStolen(c *cabinet) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.strays, func(x truth.Stray) bool { return x.Cabinet == c.code && x.What == "stolen" })
}

// inspectFound has staff look at last behind the doors of what was stolen and found
// again, where parcels wait whose codes died with the theft.
func (w *world) inspectFound() {
	for i, c := range w.cabinets {
		if !w.wasStolen(c) {
			continue
		}
		var all []uint
		for _, x := range w.tasks {
			if x.cabinet != i || w.find(x.ref).PickupCodeActive {
				continue
			}
			for door := range w.boxes(x) {
				if cell := w.cellOf(c, door); cell.DeliveryID == x.id && cell.State != cloud.GridReserved {
					all = append(all, door)
				}
			}
		}
		if len(all) > 0 {
			w.inspect(i, all)
		}
	}
}

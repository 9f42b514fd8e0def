package e2e

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
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
	_, _ = w.server().Lockers.SendDeviceCommand(context.Background(), w.staff, locker.DeviceCommandInput{Device: w.box.Devices[s.cabinet].DeviceID, Type: string(wire.CmdResetTries), Reason: "vandals"})
}

package cloud

import (
	"strings"
	"time"
)

// DoorJammed is the status of a door that stayed shut when it was last to open, until it opens.
const DoorJammed = "jammed"

// DoorStatusAfter is the status of a door that is read anew: a reading that is not open does not
// say that a jammed one would open.
func DoorStatusAfter(was, read string) string {
	if was == DoorJammed && read != "open" {
		return was
	}
	return read
}

// ShutDoor is a door that stayed shut when it was last to open, as the exception DevDoorShut
// names it in its detail.
type ShutDoor struct {
	Name  string    // as on the door
	Since time.Time // zero where the detail does not say
}

// Words between the parts of the detail.
const (
	shutDoor  = "door "
	shutSince = " since "
	shutNext  = "; "
	blockedBy = ": "
)

// String is the door's part of the detail: door A-10 since 2026-11-30T06:41:00Z.
func (d ShutDoor) String() string {
	return shutDoor + d.Name + shutSince + d.Since.UTC().Format(time.RFC3339)
}

// ShutDoors are the doors that the detail of a DevDoorShut names, in its order.
func ShutDoors(detail string) (out []ShutDoor) {
	for part := range strings.SplitSeq(detail, shutNext) {
		name, ok := strings.CutPrefix(part, shutDoor)
		if !ok {
			continue
		}
		d := ShutDoor{Name: name}
		if i := strings.LastIndex(name, shutSince); i >= 0 {
			if at, err := time.Parse(time.RFC3339, name[i+len(shutSince):]); err == nil {
				d.Name, d.Since = name[:i], at
			}
		}
		out = append(out, d)
	}
	return out
}

// ShutDoorNames are the names of doors, with commas between them.
func ShutDoorNames(doors []ShutDoor) string {
	names := make([]string, len(doors))
	for i, d := range doors {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

// BlockedDoor is the part of a door in the detail of a DevCompartmentBlocked: door A-10: dirty.
func BlockedDoor(name, reason string) string { return shutDoor + name + blockedBy + reason }

// BlockedDoorNames are the names of the doors that the detail of a DevCompartmentBlocked names,
// with commas between them.
func BlockedDoorNames(detail string) string {
	doors := ShutDoors(detail)
	for i, d := range doors {
		if at := strings.LastIndex(d.Name, blockedBy); at >= 0 {
			doors[i].Name = d.Name[:at]
		}
	}
	return ShutDoorNames(doors)
}

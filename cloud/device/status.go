package device

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// duplicateWithin is how close together two agents must take turns to count as
// two with one identity.
const duplicateWithin = 10 * time.Minute

// status takes a device's present and answers with what the device lacks. It
// never settles, ends, opens or closes anything: records do.
func (s *Service) status(ctx context.Context, x *session, in incoming) {
	st, err := wire.DecodeStatus(wire.Clean(in.payload))
	if err == nil {
		err = plausible(st)
	}
	if err != nil {
		s.Metrics.Refused.Add(1)
		s.fault(ctx, x, cloud.DevBadBatch, "status: "+err.Error(), in.at)
		return
	}
	if st.State == wire.Offline {
		s.offline(ctx, x.id, x.generation)
		return
	}
	var forks []wire.Ack
	var lanes [wire.Lanes]cloud.LaneState
	var device cloud.Device
	err = s.cfg.Store.Decide(ctx, x.id, func(v cloud.View) (*cloud.Changes, error) {
		forks = nil
		var err error
		if device, err = v.Device(x.id); err != nil {
			return nil, err
		}
		ch, err := statusChanges(v, x, device, st, in.at)
		if err != nil {
			return nil, err
		}
		for l := range lanes {
			lanes[l], err = v.Lane(x.id, st.Epoch, wire.Lane(l))
			if errors.Is(err, cloud.ErrNotFound) {
				lanes[l] = cloud.LaneState{DeviceID: x.id, Epoch: st.Epoch, Lane: wire.Lane(l), Next: 1, Head: wire.FirstHead(st.Epoch, wire.Lane(l))}
			} else if err != nil {
				return nil, err
			}
			if l < len(st.Ends) && forked(st.Ends[l], lanes[l]) {
				forks = append(forks, wire.Ack{Epoch: st.Epoch, Lane: wire.Lane(l), Next: lanes[l].Next, Head: lanes[l].Head, Refused: wire.RefusedFork})
				ch.DeviceFaults = append(ch.DeviceFaults, cloud.DeviceException{DeviceID: x.id, Type: cloud.DevStoreFork, OpenedAt: in.at, SeenAt: in.at,
					Detail: fmt.Sprintf("lane %d ends at %d, the cloud holds up to %d", l, st.Ends[l].Last, lanes[l].Next-1)})
			}
		}
		return ch, nil
	})
	if err != nil {
		if !errors.Is(err, cloud.ErrStale) && ctx.Err() == nil {
			s.log.Error("store status", "device", x.code, "err", err)
		}
		return
	}
	s.answer(ctx, x, st, device, lanes, forks)
}

// plausible refuses numbers that no device can have reached, and that databases
// cannot hold.
func plausible(st *wire.Status) error {
	if st.ConfigVersion > maxNumber || st.CodeList > maxNumber {
		return fmt.Errorf("configuration %d, code list %d", st.ConfigVersion, st.CodeList)
	}
	for l, end := range st.Ends {
		if end.Last > maxNumber {
			return fmt.Errorf("lane %d ends at %d", l, end.Last)
		}
	}
	if len(st.Instance) > 64 {
		return fmt.Errorf("instance of %d bytes", len(st.Instance))
	}
	return nil
}

// forked reports whether a device's lane cannot be the one the cloud knows: it
// ends before what is stored, or ends there with another chain.
func forked(end wire.LaneEnd, l cloud.LaneState) bool {
	return end.Last+1 < l.Next || end.Last+1 == l.Next && end.Last > 0 && end.Head != l.Head
}

// statusChanges is what a status teaches.
func statusChanges(v cloud.View, x *session, d cloud.Device, st *wire.Status, at time.Time) (*cloud.Changes, error) {
	ch := &cloud.Changes{Generation: x.generation}
	row, err := v.Session(x.id)
	if err != nil {
		return nil, err
	}
	row.Online, row.LastSeenAt = true, at
	if instance := hex.EncodeToString(st.Instance); instance != "" && instance != row.Instance {
		row.Instance = instance
		if alternates(row.Instances, instance, at) {
			ch.DeviceFaults = append(ch.DeviceFaults, cloud.DeviceException{DeviceID: x.id, Type: cloud.DevDuplicateIdentity, OpenedAt: at, SeenAt: at,
				Detail: "two agents take turns under this identity"})
		}
		row.Instances = append(row.Instances, cloud.InstanceSeen{Instance: instance, At: at})
		if n := len(row.Instances); n > 4 {
			row.Instances = row.Instances[n-4:]
		}
	}
	ch.Sessions = []cloud.Session{row}
	seen := cloud.DeviceSeen{DeviceID: x.id, LastSeenAt: at, StatusAt: at, StatusEpoch: st.Epoch, CodesHeld: &st.CodeList,
		Applied: st.ConfigVersion, Firmware: st.AgentVersion, StatusEnds: &[wire.Lanes]uint64{}}
	for l := range min(len(st.Ends), wire.Lanes) {
		seen.StatusEnds[l] = st.Ends[l].Last
	}
	ch.Seen = []cloud.DeviceSeen{seen}
	cells, err := v.Compartments(x.id)
	if err != nil {
		return nil, err
	}
	was := make(map[uint]cloud.Compartment, len(cells))
	for _, c := range cells {
		was[c.Door] = c
	}
	for _, ds := range st.Doors {
		c, ok := was[ds.Door]
		p := cloud.DoorPresent{DeviceID: x.id, Door: ds.Door, DoorStatus: doorStatus(ds.State), Occupied: occupied(ds.Item), OpeningID: ds.OpeningID}
		if ok && (c.DoorStatus != p.DoorStatus || c.OpeningID != p.OpeningID || !sameBool(c.Occupied, p.Occupied)) {
			ch.Doors = append(ch.Doors, p)
		}
	}
	return ch, nil
}

func sameBool(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// alternates reports A, then B, then A within the time: two agents, not one
// that restarted.
func alternates(seen []cloud.InstanceSeen, now string, at time.Time) bool {
	for i := len(seen) - 2; i >= 0; i-- {
		if seen[i].Instance == now && at.Sub(seen[i].At) <= duplicateWithin {
			return true
		}
	}
	return false
}

// doorStatus maps a door's state at the cabinet to the public one. Unknown is
// never shown as closed.
func doorStatus(state string) string {
	switch state {
	case wire.DoorLocked, wire.DoorSettling, wire.DoorOpening:
		return "closed"
	case wire.DoorOpen:
		return "open"
	}
	return "unknown"
}

func occupied(i wire.Item) *bool {
	if i == wire.ItemUnknown {
		return nil
	}
	v := i == wire.ItemPresent
	return &v
}

// fault keeps a device exception of its own.
func (s *Service) fault(ctx context.Context, x *session, typ, detail string, at time.Time) {
	err := s.cfg.Store.Decide(ctx, x.id, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceFaults: []cloud.DeviceException{{DeviceID: x.id, Type: typ, Detail: detailText(detail), OpenedAt: at, SeenAt: at}}}, nil
	})
	if err != nil && ctx.Err() == nil {
		s.log.Error("keep device exception", "device", x.code, "type", typ, "err", err)
	}
}

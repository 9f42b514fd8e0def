package locker

import (
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/wire"
)

// Diagnosis is a file that the cloud waits for. Its command's outcome is still open.
type Diagnosis struct {
	CommandID string
	Kind      wire.CommandKind
	Upload    wire.Upload
	Test      *Test `cbor:",omitempty"` // of CmdChannelTest
}

// Test is an opening by staff whose readings are wanted.
type Test struct {
	OpeningID string
	Door      edge.DoorNumber
	At        Instant
	// Over is set once the opening or its session has ended; what follows is known then.
	Over    bool
	Result  string // one of the results of diagnosis
	Pulses  int
	DelayMS *int64 // from the last pulse to the open door; nil: not known
	Closed  bool
	OpenMS  *int64 // nil: not known
	Item    wire.Item
}

// diagnose keeps what is wanted. It is collected and sent outside of the rules, also after
// another start. One is carried out at a time.
func (d commands) diagnose(in Ordered) string {
	c := in.Command
	x := &Diagnosis{CommandID: c.CommandID, Kind: c.Kind}
	var test wire.ChannelTest
	if c.Kind == wire.CmdChannelTest {
		if wire.Decode(c.Body, &test) != nil || len(test.Doors) != 1 || test.Kind != wire.OpenStaff {
			return wire.ReasonUnsupported
		}
		x.Upload = test.Upload
	} else {
		var b wire.Diagnosis
		if wire.Decode(c.Body, &b) != nil {
			return wire.ReasonUnsupported
		}
		x.Upload = b.Upload
	}
	switch {
	case in.Problem != "":
		return in.Problem
	case x.Upload.Path == "" || x.Upload.Max <= 0:
		return wire.ReasonUnsupported
	case d.Meta.Diagnosis != nil:
		return wire.ReasonDiagnosing
	}
	if c.Kind == wire.CmdChannelTest {
		if reason := d.beginTest(c, test); reason != "" {
			return reason
		}
		x.Test = &Test{OpeningID: test.OpeningID, Door: edge.DoorNumber(test.Doors[0]), At: d.now.instant(d.now.Mono)}
	}
	m := d.Meta
	m.Diagnosis = x
	d.setMeta(m)
	d.addAction(DiagnosisWanted{})
	return waiting
}

// beginTest begins the opening of a channel test: one by staff, under the rules of all of
// them. While another opening runs it is refused, since its doors would move as well.
func (d commands) beginTest(c wire.Command, b wire.ChannelTest) string {
	n := edge.DoorNumber(b.Doors[0])
	switch {
	case len(d.Openings) > 0:
		return wire.ReasonBusy
	case (d.Doors[n].Delivery != "" || d.Doors[n].Item == wire.ItemPresent) && !b.Occupied:
		return wire.ReasonOccupied
	case d.Doors[n].Known && d.Doors[n].Open:
		return wire.ReasonBusy // nothing would move
	}
	reason := d.openDoors(c, wire.OpenDoors{OpeningID: b.OpeningID, Kind: wire.OpenStaff, Doors: b.Doors, SessionSeconds: b.SessionSeconds})
	if reason != waiting {
		return reason
	}
	o := d.Openings[b.OpeningID]
	o.Runs = nil // the command's outcome is that of the diagnosis
	d.setOpening(o)
	return ""
}

// recordTest keeps what an opening has shown for the test that began it, once.
func recordTest(d openings, o Opening) {
	x := d.Meta.Diagnosis
	if x == nil || x.Test == nil || x.Test.OpeningID != o.ID || x.Test.Over {
		return
	}
	od := o.door(x.Test.Door)
	t := *x.Test
	t.Over, t.Pulses, t.Result = true, od.Pulses, diagnosis.NotOpened
	switch {
	case od.Phase.opened():
		t.Result = diagnosis.Opened
		if at := d.Doors[t.Door].PulseAt; at != 0 && od.OpenedAt.Boot == d.now.Boot && od.OpenedAt.Mono >= at {
			t.DelayMS = milliseconds(od.OpenedAt.Mono - at)
		}
	case od.Phase == NotSeen:
		t.Result = diagnosis.NotSeen
	}
	if od.Phase == Closed {
		t.Closed, t.Item = true, od.Item
		if !od.Unseen && od.ClosedAt.Boot == od.OpenedAt.Boot {
			t.OpenMS = milliseconds(od.ClosedAt.Mono - od.OpenedAt.Mono)
		}
	}
	next := *x
	next.Test = &t
	m := d.Meta
	m.Diagnosis = &next
	d.setMeta(m)
	d.addAction(DiagnosisWanted{})
}

func milliseconds(ns int64) *int64 {
	v := ns / int64(time.Millisecond)
	return &v
}

// doorErrors are the codes of a test's door, nil when it opened or the test is not over.
func (t *Test) doorErrors() map[uint]string {
	switch {
	case t == nil || !t.Over || t.Result == diagnosis.Opened:
		return nil
	case t.Result == diagnosis.NotOpened:
		return map[uint]string{uint(t.Door): wire.DoorOpenFailed}
	}
	return map[uint]string{uint(t.Door): wire.DoorNotSeen}
}

// diagnosed ends the diagnosis that is wanted, once.
func (d commands) diagnosed(in Diagnosed) {
	x := d.Meta.Diagnosis
	if x == nil || x.CommandID != in.CommandID {
		return
	}
	m := d.Meta
	m.Diagnosis = nil
	d.setMeta(m)
	d.record(wire.KindCommandOutcome, d.now.Mono, wire.CommandOutcome{CommandID: in.CommandID, Outcome: in.Outcome, Reason: in.Reason, Doors: x.Test.doorErrors(), Digest: in.Digest})
}

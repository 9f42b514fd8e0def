package kiosk

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// View is what the page shows, which any passer-by may look at: the cabinet as it
// stands. It holds no code, nothing by which a person or parcel could be known,
// and nothing that says behind which door a parcel lies.
type View struct {
	DeviceCode string          `json:"device_code"`
	Online     bool            `json:"online"` // a session with the cloud stands
	Store      StoreView       `json:"store"`
	Doors      []DoorView      `json:"doors"`
	Openings   []OpeningView   `json:"openings"`
	Reopen     []ReopenView    `json:"reopen"`
	Exceptions []ExceptionView `json:"exceptions"`
	// LockedSeconds is how long typed codes of 6 and 7 digits are locked, 0 when
	// they are not; the others are for scanned codes and typed staff codes.
	LockedSeconds      int    `json:"locked_seconds"`
	ScanLockedSeconds  int    `json:"scan_locked_seconds"`
	StaffLockedSeconds int    `json:"staff_locked_seconds"`
	CodeList           uint64 `json:"code_list"` // number of the newest entry held
	ConfigVersion      uint64 `json:"config_version"`
	// OnSite is what a recipient types on their own page to show that they stand here; it
	// changes each minute, and is empty while the cloud could not open a door.
	OnSite string `json:"on_site,omitempty"`
}

// StoreView is how the cabinet's memory stands.
type StoreView struct {
	State         string    `json:"state"` // ok, working (slow now), full, broken
	FilledPercent int       `json:"filled_percent"`
	Waiting       [2]uint64 `json:"waiting"`
}

// DoorView is one door.
type DoorView struct {
	DoorRef
	Size    string `json:"size,omitempty"`
	State   string `json:"state"` // wire's door states; unknown is never shown as locked
	Blocked bool   `json:"blocked"`
}

// OpeningView is a running opening.
type OpeningView struct {
	OpeningID string        `json:"opening_id"`
	Kind      string        `json:"kind"`
	Who       string        `json:"who"`
	Doors     []OpeningDoor `json:"doors"`
	// CanBeDone says that the courier may press done: everything that opened
	// is closed or will be.
	CanBeDone   bool `json:"can_be_done"`
	EndsSeconds int  `json:"ends_seconds"`
}

// OpeningDoor is a door of an opening.
type OpeningDoor struct {
	DoorRef
	Phase string `json:"phase"` // opening, open, closed, failed, not_seen
}

// ReopenView is a pickup that may be opened once more without a code.
type ReopenView struct {
	OpeningID string    `json:"opening_id"`
	Doors     []DoorRef `json:"doors"`
	Seconds   int       `json:"seconds"`
}

// ExceptionView is something that can be put right at the cabinet: a door that was
// left open.
type ExceptionView struct {
	Type     string `json:"type"`
	Severity string `json:"severity"`
	Door     uint   `json:"door,omitempty"`
}

var phases = map[locker.Phase]string{locker.Queued: "opening", locker.Pulsed: "opening", locker.Opened: "open", locker.Closed: "closed",
	locker.OpenFailed: "failed", locker.NotSeen: "not_seen"}

// fullFrom is the share of the store from which on it takes no new sessions,
// in hundredths.
const fullFrom = 90

func (k *Kiosk) view() View {
	s, now := k.cfg.Loop.State(), k.cfg.Now()
	v := View{DeviceCode: k.cfg.DeviceCode, Online: k.cfg.Link.Connected(), Doors: []DoorView{}, Openings: []OpeningView{}, Reopen: []ReopenView{},
		Exceptions: []ExceptionView{}, CodeList: s.Meta.CodeList, ConfigVersion: s.Config.Version}
	if k.cfg.OnSite != nil {
		v.OnSite = k.cfg.OnSite()
	}
	b := s.Meta.Budgets
	v.LockedSeconds, v.ScanLockedSeconds, v.StaffLockedSeconds = seconds(b.Typed.Locked(now), now), seconds(b.Scanned.Locked(now), now), seconds(b.Staff.Locked(now), now)
	st := k.cfg.Store()
	v.Store = StoreView{State: "ok", FilledPercent: st.FilledPercent, Waiting: st.Waiting}
	switch {
	case k.cfg.Loop.Broken():
		v.Store.State = "broken"
	case st.FilledPercent >= fullFrom, k.cfg.Loop.Full():
		v.Store.State = "full"
	case k.cfg.Loop.Working():
		v.Store.State = "working"
	}
	v.doors(&s, now)
	v.openings(&s, now)
	v.reopen(&s, now)
	for _, id := range slices.Sorted(maps.Keys(s.Exceptions)) {
		e := s.Exceptions[id]
		if e.Type != wire.ExDoorLeftOpen { // the others tell of contents
			continue
		}
		v.Exceptions = append(v.Exceptions, ExceptionView{Type: e.Type, Severity: e.Severity, Door: e.Door})
	}
	return v
}

func (v *View) doors(s *locker.State, now locker.Now) {
	minOpen := int64(s.Config.Times.WithDefaults().MinOpenMS) * int64(time.Millisecond)
	for _, l := range s.Config.Layout {
		d := s.Doors[edge.DoorNumber(l.Door)]
		v.Doors = append(v.Doors, DoorView{DoorRef: ref(s, edge.DoorNumber(l.Door)), Size: l.Size, State: d.State(s, minOpen, now.Mono), Blocked: d.Blocked != ""})
	}
}

func (v *View) openings(s *locker.State, now locker.Now) {
	for _, id := range slices.Sorted(maps.Keys(s.Openings)) {
		o := s.Openings[id]
		out := OpeningView{OpeningID: id, Kind: string(o.Kind), Who: o.Who, CanBeDone: o.Kind.IsDeposit() && !o.Done, EndsSeconds: seconds(max(o.Ends.Mono, 0), now)}
		for _, d := range o.Doors {
			out.Doors = append(out.Doors, OpeningDoor{DoorRef: ref(s, d.Door), Phase: phases[d.Phase]})
		}
		v.Openings = append(v.Openings, out)
	}
}

// reopen lists the pickups whose reopening the rules would allow.
func (v *View) reopen(s *locker.State, now locker.Now) {
	for _, id := range slices.Sorted(maps.Keys(s.Ended)) {
		doors, until := s.Reopenable(id, now)
		if len(doors) == 0 {
			continue
		}
		out := ReopenView{OpeningID: id, Seconds: seconds(until, now)}
		for _, n := range doors {
			out.Doors = append(out.Doors, ref(s, n))
		}
		v.Reopen = append(v.Reopen, out)
	}
}

// ref names a door as its label, its display number or its own number.
func ref(s *locker.State, n edge.DoorNumber) DoorRef {
	out := DoorRef{Door: uint(n), Label: strconv.FormatUint(uint64(n), 10)}
	for _, l := range s.Config.Layout {
		switch {
		case l.Door != uint(n):
		case l.Label != "":
			out.Label = l.Label
		case l.Display != 0:
			out.Label = strconv.FormatUint(uint64(l.Display), 10)
		}
	}
	return out
}

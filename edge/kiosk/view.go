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

// PublicView is what the page shows to any passer-by: how the cabinet works, and what
// runs. It holds no code, nothing by which a person or parcel could be known, and no
// state of a door but those of openings that run.
type PublicView struct {
	DeviceCode string        `json:"device_code"`
	Online     bool          `json:"online"` // a session with the cloud stands
	Store      string        `json:"store"`  // as StoreView.State
	Doors      []DoorPlace   `json:"doors"`
	Openings   []OpeningView `json:"openings"`
	Reopen     []ReopenView  `json:"reopen"`
	LeftOpen   []DoorRef     `json:"left_open"` // doors that were left open
	Locks
	// Notice is a line of the operator's, empty for none.
	Notice string `json:"notice,omitempty"`
	// OnSite is what a recipient types on their own page to show that they stand here; it
	// changes each minute, and is empty while the cloud could not open a door.
	OnSite string `json:"on_site,omitempty"`
}

// Locks are how long wrong codes lock input, in seconds, 0 when they do not: typed
// codes of 6 and 7 digits, scanned codes, and typed staff codes.
type Locks struct {
	LockedSeconds      int `json:"locked_seconds"`
	ScanLockedSeconds  int `json:"scan_locked_seconds"`
	StaffLockedSeconds int `json:"staff_locked_seconds"`
}

// DoorPlace is a door of the layout, in the layout's order.
type DoorPlace struct {
	DoorRef
	Size string `json:"size,omitempty"`
}

// View is what staff see: the cabinet as it stands. It holds no code, nothing by
// which a person or parcel could be known, and says to a staff session alone behind which
// doors parcels lie that are to be collected, or that the session has opened.
type View struct {
	DeviceCode string          `json:"device_code"`
	Online     bool            `json:"online"` // a session with the cloud stands
	Store      StoreView       `json:"store"`
	Doors      []DoorView      `json:"doors"`
	Openings   []OpeningView   `json:"openings"`
	Reopen     []ReopenView    `json:"reopen"`
	Exceptions []ExceptionView `json:"exceptions"`
	Locks
	CodeList      uint64 `json:"code_list"` // number of the newest entry held
	ConfigVersion uint64 `json:"config_version"`
	// Learn is what has moved since staff began to learn how a door is wired; nil: they do not.
	Learn  *edge.Learned `json:"learn,omitempty"`
	Health any           `json:"health,omitempty"` // boards' errors, store, uplink, temperatures, versions
	// Session is what a staff session sees besides; programs do not.
	Session *SessionView `json:"session,omitempty"`
}

// SessionView is what a staff session may do with parcels.
type SessionView struct {
	Collect []CollectView `json:"collect"` // what is to be collected now
	Opened  []OpenedView  `json:"opened"`  // doors that the session has opened a short while ago
	Queued  int           `json:"queued"`  // doors that were chosen and are not opened yet
}

// CollectView is a compartment with something to be collected.
type CollectView struct {
	DoorPlace
	Why      string `json:"why"`      // overdue, or outgoing: brought by its sender for a courier
	Packages int    `json:"packages"` // 0 where no deposit was confirmed
}

// OpenedView is a door that a staff session has opened.
type OpenedView struct {
	DoorRef
	OpeningID string `json:"opening_id"`
	Shut      bool   `json:"shut"`
	Holds     bool   `json:"holds"` // what lay there as the door opened is the cabinet's still
	Why       string `json:"why,omitempty"`
	Packages  int    `json:"packages"`
	Outcome   string `json:"outcome,omitempty"` // that was stated: taken, not_found, refused
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
	Doors     []OpeningDoor `json:"doors"`
	// CanBeDone says that the courier may press done: everything that opened
	// is closed or will be.
	CanBeDone bool `json:"can_be_done"`
	// Left says that another one was taken, or that it was cancelled: nothing stays
	// behind its doors.
	Left bool `json:"left"`
	// Outgoing says that a sender puts in a parcel which a courier collects later.
	Outgoing bool `json:"outgoing"`
}

// OpeningDoor is a door of an opening.
type OpeningDoor struct {
	DoorRef
	Phase string `json:"phase"` // opening, open, closed, failed, not_seen
	// CanBeLeft says that the courier may take another compartment in its place, and
	// CanBeLarger that a larger one is free.
	CanBeLeft   bool `json:"can_be_left,omitempty"`
	CanBeLarger bool `json:"can_be_larger,omitempty"`
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

func (k *Kiosk) publicView() PublicView {
	s, now := k.cfg.Loop.State(), k.cfg.Now()
	v := PublicView{DeviceCode: k.cfg.DeviceCode, Online: k.cfg.Link.Connected(), Store: k.storeView().State, Doors: []DoorPlace{}, LeftOpen: []DoorRef{},
		Openings: openingsOf(&s, now), Reopen: reopenOf(&s, now), Locks: locksOf(&s, now), Notice: s.Config.Texts[wire.TextNotice]}
	if k.cfg.OnSite != nil {
		v.OnSite = k.cfg.OnSite()
	}
	for _, l := range s.Config.Layout {
		v.Doors = append(v.Doors, DoorPlace{DoorRef: ref(&s, edge.DoorNumber(l.Door)), Size: l.Size})
	}
	for _, e := range exceptionsOf(&s) {
		v.LeftOpen = append(v.LeftOpen, ref(&s, edge.DoorNumber(e.Door)))
	}
	return v
}

func (k *Kiosk) view() View {
	s, now := k.cfg.Loop.State(), k.cfg.Now()
	v := View{DeviceCode: k.cfg.DeviceCode, Online: k.cfg.Link.Connected(), Store: k.storeView(), Doors: []DoorView{}, Openings: openingsOf(&s, now), Reopen: reopenOf(&s, now),
		Exceptions: exceptionsOf(&s), Locks: locksOf(&s, now), CodeList: s.Meta.CodeList, ConfigVersion: s.Config.Version}
	v.doors(&s, now)
	if k.cfg.Health != nil {
		h := k.cfg.Health()
		v.Health = map[string]any{"board_errors": h.Boards, "store": h.StoreUse, "uplink": h.Uplink, "temperatures": h.Temperatures, "versions": h.Versions}
	}
	return v
}

func (k *Kiosk) sessionView(session string) *SessionView {
	s, now := k.cfg.Loop.State(), k.cfg.Now()
	v := &SessionView{Collect: []CollectView{}, Opened: []OpenedView{}}
	if session != "" && session == s.Staff.ID {
		v.Queued = len(s.Staff.Queue)
	}
	packages := func(n edge.DoorNumber) int { return len(s.Deliveries[s.Doors[n].Delivery].Doors[n]) }
	for _, n := range s.Collectable(now) {
		v.Collect = append(v.Collect, CollectView{DoorPlace{ref(&s, n), s.SizeOf(n)}, s.Due(n, now), packages(n)})
	}
	for _, n := range s.SeenBy(session, now) {
		seen, d := s.Staff.Seen[n], s.Doors[n]
		v.Opened = append(v.Opened, OpenedView{ref(&s, n), seen.OpeningID, d.Known && !d.Open, seen.Delivery != "" && d.Delivery == seen.Delivery, seen.Due, packages(n), seen.Answer})
	}
	return v
}

func (k *Kiosk) storeView() StoreView {
	st := k.cfg.Store()
	v := StoreView{State: "ok", FilledPercent: st.FilledPercent, Waiting: st.Waiting}
	switch {
	case k.cfg.Loop.Broken():
		v.State = "broken"
	case st.FilledPercent >= fullFrom, k.cfg.Loop.Full():
		v.State = "full"
	case k.cfg.Loop.Working():
		v.State = "working"
	}
	return v
}

func locksOf(s *locker.State, now locker.Now) Locks {
	b := s.Meta.Budgets
	return Locks{seconds(b.Typed.Locked(now), now), seconds(b.Scanned.Locked(now), now), seconds(b.Staff.Locked(now), now)}
}

// exceptionsOf lists the doors that were left open; the other exceptions tell of
// contents.
func exceptionsOf(s *locker.State) []ExceptionView {
	list := []ExceptionView{}
	for _, id := range slices.Sorted(maps.Keys(s.Exceptions)) {
		if e := s.Exceptions[id]; e.Type == wire.ExDoorLeftOpen {
			list = append(list, ExceptionView{Type: e.Type, Severity: e.Severity, Door: e.Door})
		}
	}
	return list
}

func (v *View) doors(s *locker.State, now locker.Now) {
	minOpen := int64(s.Config.Times.WithDefaults().MinOpenMS) * int64(time.Millisecond)
	for _, l := range s.Config.Layout {
		d := s.Doors[edge.DoorNumber(l.Door)]
		v.Doors = append(v.Doors, DoorView{DoorRef: ref(s, edge.DoorNumber(l.Door)), Size: l.Size, State: d.State(s, minOpen, now.Mono), Blocked: d.Blocked != ""})
	}
}

func openingsOf(s *locker.State, now locker.Now) []OpeningView {
	list := []OpeningView{}
	for _, id := range slices.Sorted(maps.Keys(s.Openings)) {
		o := s.Openings[id]
		out := OpeningView{OpeningID: id, Kind: string(o.Kind), CanBeDone: o.Kind.IsDeposit() && !o.Done && !o.Cancelled, Left: o.Cancelled, Outgoing: o.Kind.IsDeposit() && s.Purpose(o.DeliveryRef) != ""}
		for _, d := range o.Doors {
			out.Doors = append(out.Doors, OpeningDoor{DoorRef: ref(s, d.Door), Phase: phases[d.Phase],
				CanBeLeft: s.CanLeave(id, d.Door, now), CanBeLarger: s.Another(id, d.Door, locker.TooSmall, now) != 0})
		}
		list = append(list, out)
	}
	return list
}

// reopenOf lists the pickups whose reopening the rules would allow.
func reopenOf(s *locker.State, now locker.Now) []ReopenView {
	list := []ReopenView{}
	for _, id := range slices.Sorted(maps.Keys(s.Ended)) {
		doors, until := s.Reopenable(id, now)
		if len(doors) == 0 {
			continue
		}
		out := ReopenView{OpeningID: id, Seconds: seconds(until, now)}
		for _, n := range doors {
			out.Doors = append(out.Doors, ref(s, n))
		}
		list = append(list, out)
	}
	return list
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

// Package locker holds the rules of a cabinet: what a door's readings mean,
// when an opening starts and how it ends, which codes open what.
//
// The rules are one pure function: Step takes the state, one input and the
// time, and returns the next state, the records it caused and what is to be
// done outside. Loop owns the state: it commits next state and records in one
// transaction and only then acts, so an intent is durable before its lock is
// pulsed and nothing is reported that a power cut could take back.
//
// Every opening ends exactly once. A deposit settles when every door of its
// opening has an outcome, at least one opened, and all opened ones are closed;
// it never settles while a door is open or its state unknown.
package locker

import (
	"maps"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Now is the time of one step. Times inside a boot are monotonic nanoseconds
// since the agent's start.
type Now struct {
	Boot   uint64
	Mono   int64
	Offset int64 // wall clock = Mono + Offset, unix ns
	Clock  wire.Clock
	ErrMS  uint32
	// Floor is a lower bound of the true time, unix ns, 0 when none is known.
	Floor int64
	// Random feeds ids made in this step; fresh for every step.
	Random [16]byte
}

// Wall is the wall clock at a monotonic time of this boot.
func (n Now) Wall(mono int64) int64 { return mono + n.Offset }

// certain is the time that has certainly passed: the floor or, with a
// synchronisation in this boot, the wall clock less its error where that is later.
// 0 when nothing is known.
func (n Now) certain() int64 {
	wall, err := n.Wall(n.Mono), ms(n.ErrMS)
	switch {
	case n.Clock != wire.ClockSynced:
		return n.Floor
	case n.Floor > wall+err: // the cloud's time was ahead when it was kept
		return wall - err
	}
	return max(n.Floor, wall-err)
}

// Instant is a moment that can be compared across boots as far as the clocks
// allow.
type Instant struct {
	Boot  uint64
	Mono  int64
	Wall  int64
	Clock wire.Clock
}

func (n Now) instant(mono int64) Instant {
	return Instant{Boot: n.Boot, Mono: mono, Wall: n.Wall(mono), Clock: n.Clock}
}

// date is the wall clock of a moment, by the clock as it is now where the moment is
// of this boot: it may have been set since. The zero moment is 0.
func (n Now) date(i Instant) int64 {
	if i.Boot == n.Boot && i != (Instant{}) {
		return n.Wall(i.Mono)
	}
	return i.Wall
}

// State is everything the rules know. Its maps and slices are never changed in
// place: Step returns a new State and leaves the old one as it was.
type State struct {
	Doors      map[edge.DoorNumber]Door
	Openings   map[string]Opening // without an end
	Ended      map[string]EndedOpening
	Deliveries map[string]Delivery // by delivery ref: what lies where
	Commands   map[string]int64    // seen command ids, and those of used passes → expiry, unix ns
	Exceptions map[string]Exception
	Codes      map[uint64]wire.CodeEntry
	Meta       Meta
	Config     wire.Config
	Fresh      bool // the store is new: open doors are found open, not forced
	// Ready is set once every board was read, or given up as silent, in this boot:
	// no lock is pulsed before.
	Ready bool
	// OldLists mutes repeats of code lists that would have gone back.
	OldLists Mute
	// Parts are those of a whole code list that is not complete yet; not kept.
	Parts listParts
	// Staff is the staff session that runs; not kept.
	Staff StaffSession `cbor:"-"`
	// choices are couriers' codes whose compartments are not chosen yet, by a random id that
	// only who typed the code knows; not kept.
	choices map[string]Choice
}

// Meta is what is kept once per cabinet.
type Meta struct {
	CodeList uint64 // number of the newest entry applied
	// Generation is that of the list held, 0 when none was ever taken or the cloud
	// names none. ListNonce is what the newest whole list answered.
	Generation uint64
	ListNonce  []byte
	// Lost is set when the store began anew or was found to be an older copy, in
	// LostBoot, until a whole code list has brought back what lies where.
	Lost     bool
	LostBoot uint64 `cbor:",omitempty"`
	// Found is the loss that was found at a start, until that start's first step.
	Found Found `cbor:",omitempty"`
	// CommandsFrom is when the cloud has to have made a command, unix ns, 0 for any:
	// the ids of older ones went with the memory. CommandsLost says that it is not
	// known yet: there was no synchronised clock since the loss.
	CommandsFrom int64 `cbor:",omitempty"`
	CommandsLost bool  `cbor:",omitempty"`
	Budgets      Budgets
	// Awake is how far this boot is known to have come, kept while wrong codes count.
	Awake Instant `cbor:",omitzero"`
	// Update is what CmdUpdate asked for, until its outcome; nil: nothing.
	Update *Update `cbor:",omitempty"`
	// Diagnosis is what a diagnosis asked for, until its outcome; nil: nothing.
	Diagnosis *Diagnosis `cbor:",omitempty"`
	// Tries is the former single counter, only as long as it has not been taken
	// over.
	Tries *formerTries `cbor:",omitempty"`
}

// Update is a version of the agent that is wanted. Its command's outcome is still open.
type Update struct {
	CommandID string
	ExpiresAt int64 // unix ns
	Want      wire.Update
}

// Door is one compartment's door.
type Door struct {
	Number edge.DoorNumber

	// The present; not kept across starts.
	Known   bool
	DarkAt  int64 // mono of when it was known last, 0 for the start
	Open    bool
	Item    wire.Item
	Since   int64 // mono of the last change of Open
	OpenFor int64 // ns for which polls have read it open; 0: it is watched without a gap
	Suspect bool
	PulseAt int64 // mono of the last pulse's result, 0 when none in this boot
	Read    bool  // its board answered for it, or was given up as silent, in this boot
	Met     bool  // its state was known in this boot
	Found   bool  // stands open since the first reading of a new store, or of a board that was silent: found open, not forced
	ShutAt  int64 // mono of the last reading that showed it shut before it was read open, 0 when none
	SoundAt int64 // mono of the last sound about its being open, 0 when none in this boot
	StaffAt int64 // mono of when it was last shut in an opening of staff, of which they may still state what they took; 0 otherwise

	// Kept.
	Counted      bool    // open for at least the minimum time, reported, not reported closed
	OpenedAt     Instant // of the counted opening
	Opening      string  // running on it, "" when none
	Version      uint64  // highest compartment version stored
	Delivery     string  // delivery ref that lies in it, "" when free
	Blocked      string  // reason, "" when in service
	BlockedFor   string  `cbor:",omitempty"` // delivery whose courier had it blocked, "" otherwise
	Failures     int     // open_failed in a row; three take the door out of service
	TamperAt     int64   // mono of the last forced record in this boot
	TamperCount  uint64
	MissedClosed bool // was open when its board or the agent was lost
	Unverified   bool // what lies in it is the cloud's word alone, after a loss of memory
	Seen         bool // its sensor saw what was deposited, which has not been taken out in an opening since
	Wear         Wear
}

// State is the door's state as a status shows it.
func (d Door) State(s *State, minOpen int64, now int64) string {
	switch {
	case !d.Known:
		return wire.DoorUnknown
	case d.Open && !d.Counted:
		return wire.DoorOpening
	case d.Open:
		return wire.DoorOpen
	}
	if o, ok := s.Openings[d.Opening]; ok {
		switch od := o.door(d.Number); od.Phase {
		case Queued, Pulsed:
			return wire.DoorOpening
		case Closed:
			return wire.DoorSettling
		}
	}
	return wire.DoorLocked
}

// Phase is where one door of an opening stands.
type Phase uint8

// Phases. Opened, Closed, OpenFailed and NotSeen are outcomes.
const (
	Queued     Phase = iota // a pulse was asked for
	Pulsed                  // its result is known, the door has not opened yet
	Opened                  // open and counted
	Closed                  // closed again
	OpenFailed              // did not open
	NotSeen                 // may have opened; no reading says so
)

func (p Phase) outcome() bool { return p >= Opened }
func (p Phase) opened() bool  { return p == Opened || p == Closed }

// OpeningDoor is one door of an opening.
type OpeningDoor struct {
	Door     edge.DoorNumber
	Phase    Phase
	Pulses   int   // asked for by the act By
	Waiting  bool  // for a PulseResult
	Deadline int64 // mono by which it must be seen open, or Shut must come; 0 when none runs
	// Watched is set when Shut comes for the pulse. Unwatched is set when the door may have opened
	// and shut again for a pulse of the act, between two polls.
	Watched   bool `cbor:",omitempty"`
	Unwatched bool `cbor:",omitempty"`
	// Withheld is set when a pulse of the act did not go out, as while the lock rests.
	Withheld bool `cbor:",omitempty"`
	OpenedAt Instant
	ClosedAt Instant
	// LastOpen is when the door was last known to be open, as far as that is
	// durable. Unseen is set when it closed after that without being seen: ClosedAt
	// is then the first read that shows it closed.
	LastOpen Instant
	Unseen   bool
	Item     wire.Item
	Error    string
	Packages []string
	By       edge.Authority // the last act that asked for this door
	// Asked is set once a pulse may have gone out for this opening, or the door stood
	// open when an act asked for it. A door that opens without that was forced.
	// AskedBefore is Asked without the pulse that is waited for.
	Asked       bool `cbor:",omitempty"`
	AskedBefore bool `cbor:",omitempty"`
}

// Opening is one authorised unlocking of doors until they are closed again.
type Opening struct {
	ID          string
	Kind        wire.OpeningKind
	CommandID   string
	Who         string
	How         string // of a pickup, and of what a pass has begun
	DeliveryRef string
	Doors       []OpeningDoor
	Code        *wire.CodeEntry
	Generation  uint64 // of the code list held when Code came, or that of the pass
	PassID      []byte `cbor:",omitempty"` // of the pass that has begun it
	CodeNumber  uint64
	ListNumber  uint64
	Runs        []Run // commands without an outcome
	Ends        Instant
	Last        Instant // of its last durable record
	Unsure      bool    // elapsed time unknown after a restart
	Cancelled   bool
	Done        bool   // courier pressed done
	Confirm     string // close_session: confirmed_by
	// Confirmed is what close_session named, by door; nil: everything.
	Confirmed map[edge.DoorNumber][]string
	LeftOpen  bool // the session ended with a door open
	Missed    bool // the end waits for a door that was not seen closing
}

// Run is a command whose outcome is still open.
type Run struct {
	CommandID string
	Doors     []edge.DoorNumber
}

func (o Opening) door(n edge.DoorNumber) OpeningDoor {
	for _, d := range o.Doors {
		if d.Door == n {
			return d
		}
	}
	return OpeningDoor{}
}

// EndedOpening remembers an end, so that what comes late is recognised: a
// repeated command, a confirmation of what was left unverified, a reopening.
type EndedOpening struct {
	ID       string
	Kind     wire.OpeningKind
	Settled  bool
	At       Instant
	Ends     Instant // of its session, in At's boot
	Delivery string
	Doors    []edge.DoorNumber
	Packages map[edge.DoorNumber][]string
	// Used is set when a package was deposited or collected: codes that had been
	// listed by then are used. List and Generation are those of the list held then.
	Used             bool
	List, Generation uint64
}

// Delivery is what lies in the cabinet of one delivery.
type Delivery struct {
	Ref       string
	Doors     map[edge.DoorNumber][]string // confirmed packages per door
	Suspended bool                         // a correction is open: the pickup code does not work
	// Purpose is wire.PurposeSend or wire.PurposeReturn for what its sender has brought: no
	// code of a recipient opens it, a courier collects it. "" is a delivery to its recipient.
	Purpose string `cbor:",omitempty"`
}

// Exception is an open exception.
type Exception struct {
	wire.Exception
	At        Instant
	Written   int   `cbor:"Told"`   // how often
	WrittenAt int64 `cbor:"ToldAt"` // mono of the first time, or of the start after it
}

// Record is one record to be kept, before it is numbered and encoded. Mono is
// the moment of the occurrence in this boot.
type Record struct {
	Kind wire.Kind
	Mono int64
	Body any
}

// Action is something to be done outside once the step is durable.
type Action interface{ action() }

// Actions.
type (
	// Pulse asks for one pulse of a door's lock; a PulseResult answers.
	Pulse struct {
		Door edge.DoorNumber
		By   edge.Authority
	}
	// Withdraw takes back the pulses of an opening that still wait: each is
	// answered as refused.
	Withdraw struct{ OpeningID string }
	// StatusChanged asks for a new status.
	StatusChanged struct{}
	// UpdateWanted asks for Meta.Update; an Updated answers.
	UpdateWanted struct{}
	// DiagnosisWanted asks for Meta.Diagnosis; a Diagnosed answers.
	DiagnosisWanted struct{}
	// AskList asks for a status with a nonce, for which a whole code list can come.
	AskList struct{}
	// Show is text for the person at the cabinet.
	Show struct {
		What string // open, pull, close, left_open, sound, reboot, message
		Door edge.DoorNumber
		Text string
	}
)

func (Pulse) action()         {}
func (Withdraw) action()      {}
func (StatusChanged) action() {}
func (UpdateWanted) action()  {}
func (AskList) action()       {}
func (Show) action()          {}

func (DiagnosisWanted) action() {}

// Out is what one step leads to.
type Out struct {
	Put     map[string][]byte // state to keep; nil deletes
	Records []Record
	Actions []Action
	Urgent  bool // belongs to a session that is already open
	Answer  Answer
}

// Answer is the reply to who asked: a code try, a kiosk action.
type Answer struct {
	Outcome   string // wire's code outcomes, or a refusal reason
	OpeningID string
	Doors     []edge.DoorNumber
	Budget    Budget // that a code was tried against
	Left      int    // tries left before it locks
	Until     int64  // mono until which it is locked, 0 when it is not
	Session   string // of staff, which a right staff code or a signed QR code of staff has begun or gone on with
	// Of ChooseSize: what PickSize names, the size that is proposed, and what is free.
	Choice string
	Size   string
	Free   []FreeSize
}

// Input is what a step is about.
type Input interface{ input() }

// Inputs.
type (
	// Started is the first input of a boot.
	Started struct {
		Fresh bool
		// Behind says that the store is an older copy: what the cabinet remembers
		// outside of it is newer.
		Behind bool
	}
	// Reading is a debounced reading of a door.
	Reading struct {
		Door    edge.DoorNumber
		Open    bool
		Item    wire.Item
		Mono    int64
		Suspect bool
		// OpenFor is as edge.DoorReading has it, in ns.
		OpenFor int64
		// Interrupted is as edge.DoorReading has it.
		Interrupted bool
		// LastShut is as edge.DoorReading has it, as mono; 0: none.
		LastShut int64
	}
	// Lost says that the doors' states are unknown from now on.
	Lost struct {
		Doors []edge.DoorNumber
		Mono  int64
		// LastOpen is when a poll last read each door open that was so.
		LastOpen map[edge.DoorNumber]int64
	}
	// Pulsing answers a Pulse.
	Pulsing struct {
		Door    edge.DoorNumber
		By      edge.Authority // of the pulse; zero is the opening that runs on the door
		Outcome edge.PulseOutcome
		Mono    int64
		Watched bool // as edge.PulseResult has it
	}
	// Shut says that a pulsed door stayed shut until the time to open was over.
	Shut struct {
		Door edge.DoorNumber
		By   edge.Authority // of the pulse; zero is that of the opening that runs on the door
		Mono int64
		Gap  int64 // as edge.StayedShut has it, in ns
	}
	// Ordered is a command whose signature and device code were verified.
	Ordered struct {
		Command wire.Command
		// Update is the body of CmdUpdate where this machine can take one; nil: it cannot.
		Update *wire.Update
		// Problem is why CmdUpdate, or a diagnosis, is refused for reasons outside these
		// rules; "": it is not.
		Problem string
	}
	// Updated is the outcome of Meta.Update.
	Updated struct{ CommandID, Outcome, Reason string }
	// Diagnosed is the outcome of Meta.Diagnosis. Digest is that of the file that the cloud
	// has taken, nil for none.
	Diagnosed struct {
		CommandID, Outcome, Reason string
		Digest                     []byte
	}
	// Refuse records that a command was not carried out.
	Refuse struct {
		Command wire.Command
		Reason  string
	}
	// CodesCame is a verified message about the code list: a tail, a whole list, or
	// a part of one.
	CodesCame struct {
		Codes wire.Codes
		Asked []byte // nonce of the newest status of this connection that carried one; nil: none
		// Earlier are the nonces of this connection before it.
		Earlier [][]byte
		Marks   Marks // what is remembered outside the store
		Keyed   bool  // the device has a key: its cloud names generations
	}
	// ConfigCame is a verified configuration. Problem is set when it cannot be
	// applied for reasons outside these rules. Post says that this is a warehouse post, which
	// has no doors.
	ConfigCame struct {
		Config  wire.Config
		Problem string
		Post    bool
	}
	// CodeTried is a code that a person entered, as its verifier.
	CodeTried struct {
		Verifier []byte
		Input    string            // keypad, qr
		Budget   Budget            // "": by Input
		Doors    []edge.DoorNumber // chosen at the terminal, for staff codes
		// Queue has the doors opened one after the other: the first now, the others by OpenNext.
		// Doors behind which nothing is to be collected are left out.
		Queue  bool
		Label  string // scanned before: the code has to be of its delivery; "": none
		Choose bool   // the terminal lets couriers choose a size
	}
	// PickSize is the courier's choice after ChooseSize.
	PickSize struct{ Choice, Size string }
	// PassShown is a signed QR code whose signature was verified. Device is the code
	// of this cabinet.
	PassShown struct {
		Pass   wire.Pass
		Device string
		Label  string // as of CodeTried
	}
	// Reopen opens a pickup again without a code.
	Reopen struct{ OpeningID string }
	// OpenNext opens the next door that was chosen in a staff session. The answer is QueueDone
	// when there is none.
	OpenNext struct{ Session string }
	// Remove is what staff state of the packages behind a door which an opening of their
	// session has opened. Outcome and reason are as wire.IsRemoval allows.
	Remove struct {
		Session, OpeningID string
		Door               edge.DoorNumber
		Outcome, Reason    string
	}
	// TakeAnother is the courier's word that the parcel does not go into the compartment of a
	// door that CanLeave allows: TooSmall, or the reason of a block.
	TakeAnother struct {
		OpeningID string
		Door      edge.DoorNumber
		Reason    string
	}
	// PressedDone is the courier's "done".
	PressedDone struct{ OpeningID string }
	// Tampered is a tampering seen outside the doors.
	Tampered struct {
		What  string
		Count uint64
	}
	// Tick lets time pass.
	Tick struct{}
)

func (Started) input()     {}
func (Reading) input()     {}
func (Lost) input()        {}
func (Pulsing) input()     {}
func (Shut) input()        {}
func (Ordered) input()     {}
func (Updated) input()     {}
func (Diagnosed) input()   {}
func (Refuse) input()      {}
func (CodesCame) input()   {}
func (ConfigCame) input()  {}
func (CodeTried) input()   {}
func (PassShown) input()   {}
func (Reopen) input()      {}
func (OpenNext) input()    {}
func (Remove) input()      {}
func (TakeAnother) input() {}
func (PickSize) input()    {}
func (PressedDone) input() {}
func (Tampered) input()    {}
func (Tick) input()        {}

// New is the state of a cabinet that knows nothing but its configuration.
func New(c wire.Config) State {
	s := State{
		Doors: map[edge.DoorNumber]Door{}, Openings: map[string]Opening{}, Ended: map[string]EndedOpening{},
		Deliveries: map[string]Delivery{}, Commands: map[string]int64{}, Exceptions: map[string]Exception{},
		Codes: map[uint64]wire.CodeEntry{}, choices: map[string]Choice{}, Config: c,
	}
	s.layDoors()
	return s
}

// layDoors adds the doors of the configuration that are missing.
func (s *State) layDoors() {
	for _, l := range s.Config.Layout {
		n := edge.DoorNumber(l.Door)
		if _, ok := s.Doors[n]; !ok {
			s.Doors[n] = Door{Number: n}
		}
	}
}

func (s State) clone() State {
	s.Doors, s.Openings, s.Ended = maps.Clone(s.Doors), maps.Clone(s.Openings), maps.Clone(s.Ended)
	s.Deliveries, s.Commands = maps.Clone(s.Deliveries), maps.Clone(s.Commands)
	s.Exceptions, s.Codes = maps.Clone(s.Exceptions), maps.Clone(s.Codes)
	s.choices = maps.Clone(s.choices)
	return s
}

// Step applies one input. It never fails: what cannot be done is a record that
// says so.
func Step(s State, in Input, now Now) (State, Out) {
	d := newStep(&draft{State: s.clone(), now: now, touched: map[string]bool{}, urgent: len(s.Openings) > 0})
	switch in := in.(type) {
	case Started:
		d.start(in)
	case Reading:
		d.reading(in)
	case Lost:
		d.lost(in)
	case Pulsing:
		d.pulsed(in)
	case Shut:
		stayedShut(d.openings, in)
	case Ordered:
		d.order(in)
	case Updated:
		d.updated(in)
	case Diagnosed:
		d.diagnosed(in)
	case Refuse:
		d.refuse(in)
	case CodesCame:
		d.codes(in)
	case ConfigCame:
		d.config(in)
	case CodeTried:
		d.tryCode(in)
	case PassShown:
		d.showPass(in)
	case Reopen:
		d.reopen(in)
	case OpenNext:
		openNext(d.openings, in)
	case Remove:
		remove(d.openings, in)
	case PickSize:
		d.pickSize(in)
	case TakeAnother:
		d.takeAnother(in)
	case PressedDone:
		d.pressedDone(in)
	case Tampered:
		if in.What == wire.TamperStoreRolledBack {
			d.lose()
		}
		d.record(wire.KindTamper, now.Mono, wire.Tamper{What: in.What, Count: in.Count})
	}
	d.pass()
	return d.finish()
}

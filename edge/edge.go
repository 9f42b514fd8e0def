// Package edge holds the nouns of a cabinet: doors, what boards report about
// them, and what may be asked of a board. Rules live in edge/locker, drivers in
// edge/board. The package does no I/O.
package edge

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// DoorNumber is a compartment's number, from 1. It is configuration, never
// computed from the number that people see.
type DoorNumber uint

// Place is where a door's lock is wired.
type Place struct {
	Board    string // name of the board in the configuration
	Channel  uint   // lock output and switch input, from 1
	Inverted bool   // hook switch reads the other way round
}

// Event is something that a cabinet's hardware reports to the locker loop:
// DoorReading, BoardLost, PulseResult or StayedShut.
type Event interface{ event() }

// DoorReading is a debounced state of one door. It is sent when a state is
// first known, when it was lost and is known again, whenever hook or item
// changes, and once more when polls have proved a door open for ProvenOpen; never
// for bounce.
type DoorReading struct {
	Door DoorNumber
	Open bool      // hook not engaged
	Item wire.Item // ItemUnknown without a sensor
	At   time.Time // the first of the equal polls, with monotonic reading
	// Suspect is set while the sensor flaps: Open is then the last good state.
	Suspect bool
	// OpenFor is how long polls have read the door open, from the answer to the
	// first to the request of the last; of a closed door, how long they did before
	// it closed. Between polls a line may have stood still, so that the time that
	// passed proves nothing. 0: the source watches without a gap.
	OpenFor time.Duration
	// Interrupted is set of a closed door when its line was lost while it read open.
	// What broke the line may have reset the board, whose zeros read as open.
	Interrupted bool
	// LastShut is, of a door that opened, when the request of the last poll that read it shut
	// was sent: it opened after that, and At may be much later where a line stood still. Zero:
	// the source watches without a gap.
	LastShut time.Time
}

// ProvenOpen is how long polls have to read a door open for it to count as open
// for the minimum time: less than that by the longest time between two polls, at
// either end.
func ProvenOpen(minOpen time.Duration) time.Duration {
	return max(minOpen-2*PollGap, minOpen/2)
}

// PollGap is the longest time between two polls of a board that is watched.
const PollGap = 50 * time.Millisecond

// BoardLost says that a board fell silent: the states of its doors are unknown
// until a new DoorReading comes for each.
type BoardLost struct {
	Board string
	Doors []DoorNumber
	At    time.Time
	// LastOpen is when the last poll read each door open that was so, with
	// monotonic reading.
	LastOpen map[DoorNumber]time.Time
}

// Kinds of acts that allow a pulse.
const (
	ByCommand = "command" // of the cloud
	ByCode    = "code"    // typed or scanned at the cabinet
	ByStaff   = "staff"   // a staff code with doors chosen on the screen
	ByReopen  = "reopen"  // a pickup opened once more without a code
	ByPass    = "pass"    // a signed QR code of a courier or of staff
	ByLarger  = "larger"  // a courier's choice of another compartment in place of an open one
)

// Authority is the act that allows a pulse. A pulse belongs to exactly one, of
// the same boot.
type Authority struct {
	Boot       uint64 `json:"boot"`
	OpeningID  string `json:"opening_id"`
	Act        string `json:"act"`         // id of the act: the command's, or one drawn at the cabinet
	Kind       string `json:"kind"`        // one of the By constants
	CodeNumber uint64 `json:"code_number"` // entry of the code list, 0 without a code
	Mono       int64  `json:"mono"`        // the act's time, ns since that start of the agent
	// Until is the last moment, in the same count, at which a lock may still be
	// pulsed by this act; 0 sets no end.
	Until int64 `json:"until,omitempty"`
}

// PulseTrace is one unlock request that is about to be written to a line.
type PulseTrace struct {
	At      time.Time  `json:"at"`
	Written int64      `json:"written"` // At, in nanoseconds since the start of the agent; 0 where it does not count
	Board   string     `json:"board"`
	Channel uint       `json:"channel"`
	Door    DoorNumber `json:"door"`
	Authority
}

// PulseOutcome is what became of one Pulse.
type PulseOutcome uint8

// Pulse outcomes. Unanswered is not a failure: the lock may have opened.
const (
	PulseConfirmed  PulseOutcome = iota + 1 // sent, and the board said yes
	PulseUnanswered                         // sent, no answer
	PulseNotSent                            // the board could not be reached; nothing went out
	PulseRefused                            // it was withdrawn, too old or too soon; nothing went out
	PulseDenied                             // sent, and the board said no: cooling down, or its coil fired and the lock held
)

// PulseResult answers one Pulse. At is when the request had been written or
// given up, with monotonic reading.
type PulseResult struct {
	Door    DoorNumber
	By      Authority // as it was asked; zero for a pulse too many
	Outcome PulseOutcome
	At      time.Time
	// Watched is set when the source reports a door that does not open for the pulse by StayedShut.
	Watched bool
}

// StayedShut says that polls read a pulsed door shut until the time to open was over. It is
// sent once for a pulse of which PulseResult says so, unless the door reads open by then, its
// board is lost, the door is pulsed again or the layout is replaced.
type StayedShut struct {
	Door DoorNumber
	By   Authority // of the pulse
	At   time.Time // of the poll that ended the watch, with monotonic reading
	// Gap is the longest time in which the door may have opened and shut between two polls:
	// the agent, the line or the board stood still.
	Gap time.Duration
}

func (DoorReading) event() {}
func (BoardLost) event()   {}
func (PulseResult) event() {}
func (StayedShut) event()  {}

// BoardHealth is one board's counters since start.
type BoardHealth struct {
	State  string // online, offline, noisy
	Polls  uint64 // requests sent
	Silent uint64 // without an answer
	Bad    uint64 // answers with a wrong check or shape
	Pulses uint64
	Edges  map[uint]uint64 // raw switch changes per channel, for wear
}

// BoardView is what a board answers, by its newest poll.
type BoardView struct {
	Name, Line, Family string
	Address            uint8
	Health             BoardHealth
	ReadAt             time.Time // of the newest answer; zero: never
	TriedAt            time.Time // of the newest poll, answered or not; zero: never
	Err                string    // what went wrong last: no_answer, damaged, line_closed; "" when nothing did
	ErrAt              time.Time
	Channels           []ChannelView // that the board has, or a door uses, by number
}

// ChannelView is a channel of a board.
type ChannelView struct {
	Channel      uint
	Door         DoorNumber // 0: none
	Switch, Item *bool      // raw bits; nil: not read, or no sensor
	State        string     // of the door, debounced: open, closed, unknown; "" without one
}

// BitMove is a raw bit that differs from the poll before.
type BitMove struct {
	At      time.Time // begin of the poll
	Channel uint
	Item    bool // of the item sensor, not of the switch
	Set     bool
}

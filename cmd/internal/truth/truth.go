// Package truth judges what a cabinet, the cloud and everything sent to others
// say against what physically happened: which coil fired, which switch moved,
// which parcel lies in which box. The facts are the simulator's own; none comes
// from the code under judgement but the trace of pulses, whose every line has to
// be answered for by the cloud's, the codes' or the script's own facts.
//
// Judge is a pure function of a Case. Tests and the demo fill a Case from a
// simulated cabinet, an agent's trace, the cloud's store and the script that
// moved the people; Read fills the cloud's part.
//
// The rules, each with a name that its findings carry:
//
//	coil        a coil without a line of the trace before it, or two for one line
//	authority   a line without an act that allowed this door, of another boot, too
//	            old, or the third of one act for one door; a signed QR code that was not
//	            given out, had ended, or was used before
//	dead_code   an act by a code, or by a signed QR code in its place, whose revocation the
//	            cabinet had told it holds
//	refused     a code that was refused as expired before its end
//	cancelled   a cancelled session that ended as anything else
//	cut_off     hardware that was replaced or stolen and got in all the same
//	kept        a parcel that new hardware does not know of, and nothing moved
//	cleared     a parcel that staff took out and that counts as inside again
//	keypad      a code that was not looked at without five wrong ones before it, or
//	            one more that was, after them
//	hand        an item that left a box through a door that was not allowed to open
//	open_settle a settlement while one of its doors was open
//	twice       an opening with two ends
//	close_time  a close told as seen when it was not, or outside its bounds
//	running     an opening, or a command, without an end after everything was said
//	lost        records that are neither stored nor named by a gap
//	views       cabinet and cloud that disagree about a compartment and do not say
//	            so, or say so without a cause, or leave it in use
//	place       a parcel that is not where they believe, with no doubt on record
//	device_order, timeline   the registry or the timeline says another place
//	cause       an exception without its physical cause
//	silent      a physical cause without its exception
//	test        a channel test that counts as a deposit or a pickup, or opened a door over a
//	            parcel that staff did not know of
//	event       an event that never came, came with other bytes, or came twice
//	            without a reason
//	news        a deposit or a collection without an event, one thing that happened with
//	            two, or an event that names another cabinet or compartment
//	told        an exception of a cabinet that the cloud does not have, has about another
//	            door, or keeps open although the door is shut
//	expired     a code that opened a door after its end, by a clock that was set
package truth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// Case is everything there is to judge. Its slices are read, never kept.
type Case struct {
	Cabinets []Cabinet
	Simple   []Simple // devices that run no agent
	Cloud    Cloud
	Acts     []Act      // in order of time
	Received []Received // by the webhook receiver, in order of time; nil: not judged
	Outages  []Span     // of cloud nodes and receiver: events in flight may come twice
	// Forgotten are the times between a backup and the restore from it: what the cloud made
	// and sent then, it need not know.
	Forgotten []Span
	Recorded  uint64   // records that the agents kept
	Cancels   []Cancel // sessions that people of the script had cancelled
	Replaced  []Replacement
	Strays    []Stray
	Cleared   []Clear
	Resets    []Reset
	Tests     []ChannelTest
	// Unscripted says that people outside of the script were at the doors too: their
	// acts are judged by the codes alone, with the pickups that these opened once
	// more, and not what they put in, took or forced.
	Unscripted bool
	// Final says that all trouble is over and everything has been said: views,
	// places and events are judged.
	Final bool
}

// Cabinet is one cabinet's share.
type Cabinet struct {
	Code    string
	Facts   []board.Fact // in order of time
	Pulses  []Pulse      // in the order in which they were written
	Boots   []Boot       // by number
	Held    []Held       // what its statuses reported, in order of time
	Trouble []Span       // of boards, lines, power, disk and clock, as the script made it
	Removed []Span       // compartments that staff took out of the layout, until they put them back
	Sensors bool         // item sensors are wired
	// Contents is what the cabinet believes lies behind its doors at the end: door
	// to delivery number.
	Contents map[uint]string
	Kept     map[uint]bool // of Contents, those that it only keeps a box for
	Running  []string      // openings without an end
	// WallClock says that the agent is a real process, of which a boot's start is not known
	// exactly: its count begins where its trace says so, and its records' own times are
	// the true ones where there is no trace.
	WallClock bool
	begins    map[uint64]time.Time // where the counts of its boots begin, by their traces
}

// Pulse is one line of an agent's trace: a request to unlock that is about to be
// written to the line, and what allowed it.
type Pulse = edge.PulseTrace

// Boot is one start of an agent.
type Boot struct {
	N          uint64
	Start, End time.Time // End is zero while it runs
	Lost       bool      // its store was new, damaged or an older copy
	// Ahead is how far the machine's clock went ahead at the start. The agent's own may
	// be set right later.
	Ahead time.Duration
	// Unsent is how many records its store held at its end that the cloud had not
	// acknowledged: those that are gone when the next start is Lost.
	Unsent uint64
}

// Held is a code list number that a cabinet's status reported.
type Held struct {
	At                 time.Time
	Generation, Number uint64
}

// What a Span says where it matters; any other word is a disturbance alone.
const (
	force  = "force"  // a door was forced open, at At
	forgot = "forgot" // what happened in it at the cabinet may be forgotten
	clock  = "clock"  // the machine's clock is wrong, from At on
)

// Span is a stretch of trouble. A zero Until lasts.
type Span struct {
	At, Until time.Time
	What      string
	Door      uint // 0: all
}

func (s Span) touches(from, to time.Time) bool {
	return !s.At.After(to) && (s.Until.IsZero() || !s.Until.Before(from))
}

// Act is something that a person of the script did to open doors, or asked the
// cloud for.
type Act struct {
	Cabinet  string
	Kind     string    // of the trace: one of edge's By constants
	At       time.Time // when it began
	Until    time.Time // when it was answered; zero when it never was
	Delivery string    // number; empty for staff
	Code     string    // wire's code kind, where a code was used; any other word is a wrong one
	Scanned  bool      // the code was shown, not typed
	Pass     string    // single-use id of a signed QR code, in hex
	Replaced uint64    // number of the list in which another code took its place; 0: none did
	OK       bool      // the answer let the person in
	Outcome  string    // of a code, empty when it was not answered
	Doors    []uint    // that the answer named
}

// Cancel is a session that a command cancelled.
type Cancel struct {
	Cabinet, OpeningID, CommandID string
}

// Received is one request that a webhook receiver was sent.
type Received struct {
	At      time.Time
	EventID string
	Body    string
	Status  int // that it answered
}

// Cloud is what the cloud holds in the end.
type Cloud struct {
	Audit    server.Audit
	Commands map[string]cloud.Command // those that traces name
	Devices  map[string]Device        // by code
	// Timelines are the events of parcels, by tracking number, in the order
	// in which a reader sees them.
	Timelines map[string][]Step
	Provider  cloud.ProviderID
	Events    []Event // that the webhook log of the provider holds
}

// Event is one event for one endpoint.
type Event struct {
	ID              string
	Name, Reference string // what happened, and to which delivery
	OccurredAt      time.Time
	CreatedAt       time.Time
	Delivered       bool
	Attempts        int
}

// Device is one cabinet as the cloud knows it.
type Device struct {
	Row        cloud.Device
	Cells      map[uint]cloud.Compartment // by door
	Deliveries map[string]cloud.Delivery  // by number
	Orders     []cloud.DeviceOrder
	Codes      []cloud.CodeRow // all that there ever were
	QRCodes    []cloud.QRCode  // all that were given out
	Exceptions []cloud.Exception
	Faults     []cloud.DeviceException
	Running    []cloud.Opening
	Commands   []cloud.Command          // without an outcome
	Openings   map[string]cloud.Opening // of its deliveries and of signed QR codes, by id
	Records    []wire.Record            // of the journal, each once, by boot and time
}

// Finding is one broken rule.
type Finding struct {
	Rule    string    `json:"rule"`
	Cabinet string    `json:"cabinet,omitempty"`
	Door    uint      `json:"door,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Text    string    `json:"text"`
}

func (f Finding) String() string {
	at := ""
	if !f.At.IsZero() {
		at = f.At.UTC().Format(" 15:04:05.000")
	}
	if f.Door != 0 {
		return fmt.Sprintf("%s: %s door %d%s: %s", f.Rule, f.Cabinet, f.Door, at, f.Text)
	}
	return fmt.Sprintf("%s: %s%s: %s", f.Rule, f.Cabinet, at, f.Text)
}

// Verdict is what Judge found, with the counts that show that there was
// something to judge.
type Verdict struct {
	Coils      int       `json:"coils"`      // fired on request
	Authorised int       `json:"authorised"` // of these, with a line and an act
	Unfired    int       `json:"unfired"`    // lines without a coil: lost, refused or cut off
	Settled    int       `json:"settled"`
	Collected  int       `json:"collected"`
	Items      int       `json:"items"` // in boxes at the end
	Exceptions int       `json:"exceptions"`
	Events     int       `json:"events"`
	Findings   []Finding `json:"findings"`
}

// OK reports whether no rule was broken.
func (v Verdict) OK() bool { return len(v.Findings) == 0 }

func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d coils, %d authorised; %d deposits settled, %d collections; %d items inside; %d exceptions; %d events; %d findings",
		v.Coils, v.Authorised, v.Settled, v.Collected, v.Items, v.Exceptions, v.Events, len(v.Findings))
	for _, f := range v.Findings {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// judge is one judgement in the making.
type judge struct {
	Case
	Verdict
}

// Judge finds every broken rule.
func Judge(c Case) Verdict {
	j := &judge{Case: c}
	for i := range c.Cabinets {
		b := &c.Cabinets[i]
		j.coils(b)
		j.authorities(b)
		if !c.Unscripted {
			j.hands(b)
		}
		j.settlements(b)
		j.refusals(b)
		j.cancels(b)
		j.keypad(b)
		j.replacedCodes(b)
		judgeTests(j, b)
		if c.Final {
			j.ends(b)
			j.places(b)
			judgeOutgoing(j, b, j.Cloud.Devices[b.Code])
			j.exceptions(b)
			statements{j}.exceptionRows(b)
			j.forced(b)
			j.replacements(b)
		}
	}
	for i := range c.Simple {
		judgeSimple(j, &c.Simple[i])
	}
	if c.Final {
		j.events()
		statements{j}.news()
		j.records()
		j.clears()
	}
	j.strays()
	slices.SortStableFunc(j.Findings, func(a, b Finding) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Rule, b.Rule)) })
	return j.Verdict
}

func (j *judge) find(rule string, b *Cabinet, door uint, at time.Time, format string, args ...any) {
	code := ""
	if b != nil {
		code = b.Code
	}
	j.Findings = append(j.Findings, Finding{Rule: rule, Cabinet: code, Door: door, At: at, Text: fmt.Sprintf(format, args...)})
}

// boot finds a start of the agent. A store that was exchanged for an older copy
// counts its starts from there, so a number may have been given twice: the one
// that ran nearest to a moment is meant.
func (b *Cabinet) boot(n uint64, near time.Time) (best Boot, ok bool) {
	between := func(x Boot, near time.Time) time.Duration {
		switch {
		case near.Before(x.Start):
			return x.Start.Sub(near)
		case !x.End.IsZero() && near.After(x.End):
			return near.Sub(x.End)
		}
		return 0
	}
	off := func(x Boot) time.Duration { return min(between(x, near), between(x, near.Add(-x.Ahead))) }
	for _, x := range b.Boots {
		if x.N == n && (!ok || off(x) < off(best)) {
			best, ok = x, true
		}
	}
	return best, ok
}

// at is when a record's moment really was.
func (b *Cabinet) at(r wire.Record) time.Time {
	if b.WallClock {
		if begin := b.begin(r.Boot); !begin.IsZero() {
			return begin.Add(time.Duration(r.Mono))
		}
		return time.Unix(0, r.At)
	}
	x, _ := b.boot(r.Boot, time.Unix(0, r.At))
	return x.Start.Add(time.Duration(r.Mono))
}

// begin is where the count of a real process's boot begins on this machine's clock, which
// need not be the cloud's: by the earliest that the lines of the boot's trace say. Zero: nothing was traced, or another boot has the same number.
func (b *Cabinet) begin(n uint64) time.Time {
	if b.begins == nil {
		b.begins = map[uint64]time.Time{}
		for _, p := range b.Pulses {
			at := p.At.Add(-time.Duration(p.Written))
			if was, ok := b.begins[p.Boot]; !ok || at.Before(was) {
				b.begins[p.Boot] = at
			}
		}
		for _, x := range b.Boots {
			if starts, _ := b.starts(x.N); starts > 1 {
				delete(b.begins, x.N)
			}
		}
	}
	return b.begins[n]
}

// troubled reports whether the script, a restart of the agent or the boards
// themselves disturbed a door between two moments. A force on it is none: that is
// what has to be reported.
func (b *Cabinet) troubled(door uint, from, to time.Time) bool {
	if slices.ContainsFunc(b.Trouble, func(s Span) bool { return s.What != force && (s.Door == 0 || s.Door == door) && s.touches(from, to) }) {
		return true
	}
	for i, x := range b.Boots {
		if i > 0 && within(x.Start, from, to) || !x.End.IsZero() && within(x.End, from, to) {
			return true
		}
	}
	return b.blind(to) || slices.ContainsFunc(b.Facts, func(f board.Fact) bool {
		return within(f.At, from, to) && (f.Kind == board.BoardReset || f.Kind == board.BrownOut || f.Kind == board.PowerOff || f.Kind == board.PowerOn)
	})
}

func within(t, from, to time.Time) bool { return !t.Before(from) && !t.After(to) }

// Step is one event of a parcel's timeline.
type Step struct {
	Code string
	At   time.Time
}

func (s Step) String() string { return s.Code + s.At.Format(" 15:04:05.000") }

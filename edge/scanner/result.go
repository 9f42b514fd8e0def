package scanner

import (
	"time"

	"github.com/postern-io/postern/edge/locker"
)

// Outcome is what became of a line.
type Outcome string

// Outcomes. Accepted and Repeated are said of what is stored.
const (
	Accepted   Outcome = "ok"         // scan record and tracking event are stored
	Repeated   Outcome = "repeated"   // the same scan as one that is stored
	Ambiguous  Outcome = "ambiguous"  // a scan record is stored, no event: scan again
	Unreadable Outcome = "unreadable" // a scan record is stored, no event
	Refused    Outcome = "refused"    // nothing is stored
	Failed     Outcome = "failed"     // the store took nothing: scan again
	CodeTried  Outcome = "code"       // Answer and Err say what became of the code
)

// Result is what became of one line. It holds no code and nothing of one.
type Result struct {
	At         time.Time // when the line was complete
	Scanner    string
	Use        Use
	Post, Step string
	Outcome    Outcome
	Text       string // what the label names, for people; "" of refused lines and of what is or may be a code
	Message    string // what to do next, of outcomes that ask for it

	Answer locker.Answer // of CodeTried
	Err    error         // of CodeTried; access.ErrNotACode for what is no code, such as a label
}

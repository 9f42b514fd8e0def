package cloud

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Ids of containers and of what is known of them.
type (
	ContainerID      int64
	ContainerMarkID  int64
	ContainerEventID int64
	ContainerTaskID  int64
	// ContainerCaptureID is of an aggregation event of EPCIS.
	ContainerCaptureID int64
)

// Their sequences.
const (
	ContainerIDs      IDKind = "container"
	ContainerMarkIDs  IDKind = "container_mark"
	ContainerEventIDs IDKind = "container_event"
	ContainerTaskIDs  IDKind = "container_task"

	ContainerCaptureIDs IDKind = "container_capture"
)

// Bounds of containers.
const (
	MaxContainerDepth    = 5     // containers one in the other
	MaxContainerChildren = 5_000 // things in one at a time
)

// ByContainer stands in an event's withdrawal for the code of a provider, where its thing was not in the container
// that it came through.
const ByContainer = "(container)"

// Container holds parcels, orders and other containers for a while. It has a timeline of its own.
type Container struct {
	Kept[ContainerID]
	Kind       string     `row:",fixed"` // pallet, bag, cage, route or vehicle
	Scheme     string     `row:",fixed"` // of its identity: sscc, grai, giai or own
	Identity   string     `row:",fixed"` // as it was given
	Key        string     `row:",fixed"` // identity as it is compared
	ProviderID ProviderID `row:",fixed"` // that made it, 0 for the business
}

// RowKind implements Row.
func (Container) RowKind() IDKind { return ContainerIDs }

// OfProvider reports whether a container is a provider's to see and add to.
func (c Container) OfProvider(p Provider) bool {
	return p.ID != 0 && p.BusinessID == c.BusinessID && (p.ID == c.ProviderID || p.Scope == ScopeAll)
}

// Thing is what can be in a container: a container, a whole order or parcel, or one package of an order.
type Thing struct {
	Container ContainerID
	Shipment  ShipmentID
	Package   PackageID
}

// String is the thing as it is stored.
func (t Thing) String() string {
	if t.Container != 0 {
		return fmt.Sprint("c", int64(t.Container))
	}
	return fmt.Sprintf("s%d.%d", t.Shipment, t.Package)
}

// ParseThing reads what String gives.
func ParseThing(text string) (t Thing, err error) {
	if id, ok := strings.CutPrefix(text, "c"); ok {
		n, err := strconv.ParseInt(id, 10, 64)
		return Thing{Container: ContainerID(n)}, err
	}
	_, err = fmt.Sscanf(text, "s%d.%d", &t.Shipment, &t.Package)
	return t, err
}

// ContainerMark says that a thing was put into a container at a time, or taken out. It is never changed but by an error
// declaration: in the order of their times the marks of both say when the thing was inside, whenever they came.
type ContainerMark struct {
	Kept[ContainerMarkID]
	ContainerID ContainerID `row:",fixed"`
	Child       string      `row:",fixed"` // a Thing, or EveryChild
	At          time.Time   `row:",fixed"`
	Inside      bool        `row:",fixed"` // from then on
	Cause       string      `row:",fixed"` // call, or that of a ContainerCapture
	ShipmentID  ShipmentID  `row:",fixed"` // of the child, 0 for a container
	WithdrawnAt time.Time   // it counts no more; the thing still is one that was there once
}

// EveryChild is the child of a mark that says that all was taken out. Each thing that this was true of has a mark of its
// own beside it, also one that is put in later for a time before.
const EveryChild = ""

// ContainerCapture is an aggregation event of EPCIS that put things into a container, or took them out.
type ContainerCapture struct {
	Kept[ContainerCaptureID]
	ContainerID ContainerID `row:",fixed"`
	EventID     string      `row:",fixed"`
	OccurredAt  time.Time   `row:",fixed"`
	ProviderID  ProviderID  `row:",fixed"` // that sent it
	Content     string      `row:",fixed"` // digest of what it did
	WithdrawnAt time.Time   // by an error declaration
	Reason      string      // of that
}

// RowKind implements Row.
func (ContainerCapture) RowKind() IDKind { return ContainerCaptureIDs }

// Cause is that of the capture's marks.
func (x ContainerCapture) Cause() string { return "epcis:" + x.EventID }

// RowKind implements Row.
func (ContainerMark) RowKind() IDKind { return ContainerMarkIDs }

// ContainerEvent is an event of a container's timeline.
type ContainerEvent struct {
	Kept[ContainerEventID]
	ContainerID ContainerID `row:",fixed"`
	EventID     string      `row:",fixed"`
	OccurredAt  time.Time   `row:",fixed"`
	ProviderID  ProviderID  `row:",fixed"` // that sent it
	Event       []byte      `row:",fixed,text"`
	WithdrawnAt time.Time
	Reason      string // of the withdrawal
	WithdrawnBy string
	CorrectedBy string
}

// RowKind implements Row.
func (ContainerEvent) RowKind() IDKind { return ContainerEventIDs }

// Decode is the event itself, marked when it was taken back.
func (e ContainerEvent) Decode() (otep.Event, error) {
	out, err := otep.DecodeEvent(string(e.Event))
	out.Withdrawn = !e.WithdrawnAt.IsZero()
	return out, err
}

// ContainerTask is work that follows from a change of a container: a thing, or all that ever was in a container, is to have
// the events of its containers within some time. Tasks are done in the order of their ids.
type ContainerTask struct {
	Kept[ContainerTaskID]
	Root     string    `row:",fixed"` // a Thing
	Since    time.Time `row:",fixed"`
	Until    time.Time `row:",fixed"`
	Finished string    // thing up to which a container is done
}

// RowKind implements Row.
func (ContainerTask) RowKind() IDKind { return ContainerTaskIDs }

// ContainerTurn is written by whatever depends on all bindings of a business, so that of two at a time one is
// begun again with what the other wrote.
type ContainerTurn struct {
	Kept[BusinessID]
}

// RowKind implements Row.
func (ContainerTurn) RowKind() IDKind { return "container_turn" }

// EndOfTimes is behind every event.
var EndOfTimes = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Bindings are the marks of one thing in one container.
type Bindings []ContainerMark

// With are the marks with another one, if it counts.
func (b Bindings) With(m ContainerMark) Bindings {
	if m.WithdrawnAt.IsZero() {
		b = append(b, m)
	}
	return b
}

// Sort puts the marks into the order in which they count.
func (b Bindings) Sort() Bindings {
	slices.SortFunc(b, func(x, y ContainerMark) int {
		inside := 0
		if x.Inside != y.Inside {
			inside = map[bool]int{true: 1, false: -1}[x.Inside]
		}
		return cmp.Or(x.At.Compare(y.At), inside, cmp.Compare(x.ID, y.ID))
	})
	return b
}

// Holds reports whether the thing was inside at a moment, those of the binding and of the release included.
// The marks are sorted.
func (b Bindings) Holds(at time.Time) bool {
	return b.Before(at) || slices.ContainsFunc(b, func(m ContainerMark) bool { return m.Inside && m.At.Equal(at) })
}

// Before reports whether the thing was inside up to a moment. The marks are sorted.
func (b Bindings) Before(at time.Time) bool {
	inside := false
	for _, m := range b {
		if m.At.Before(at) {
			inside = m.Inside
		}
	}
	return inside
}

// Since reports whether the thing is inside from a moment on. The marks are sorted.
func (b Bindings) Since(at time.Time) bool {
	return b.Before(at.Add(1))
}

// Next is the time of the first mark behind a moment, EndOfTimes without one. The marks are sorted.
func (b Bindings) Next(at time.Time) time.Time {
	for _, m := range b {
		if m.At.After(at) {
			return m.At
		}
	}
	return EndOfTimes
}

// Span is a part of time, both ends included.
type Span struct{ From, To time.Time }

// In is the part of a span that is in another one; ok is false for none.
func (s Span) In(o Span) (Span, bool) {
	if o.From.After(s.From) {
		s.From = o.From
	}
	if o.To.Before(s.To) {
		s.To = o.To
	}
	return s, s.From.Before(s.To)
}

// Spans are the times at which the thing was inside. The marks are sorted.
func (b Bindings) Spans() (out []Span) {
	open := false
	for _, m := range b {
		switch {
		case m.Inside && !open:
			out, open = append(out, Span{m.At, EndOfTimes}), true
		case !m.Inside && open:
			out[len(out)-1].To, open = m.At, false
		}
	}
	return out
}

// ContainerView reads the present of containers.
type ContainerView interface {
	// ContainerByKey finds a container of a business by its identity as it is compared.
	ContainerByKey(b BusinessID, key string) (Container, error)
	// MarksIn lists the marks of a container, in no particular order.
	MarksIn(ContainerID) ([]ContainerMark, error)
	// MarksOf lists the marks of a thing in all containers, in no particular order.
	MarksOf(b BusinessID, child string) ([]ContainerMark, error)
	// EventsIn lists a container's events between two times, both included, in no particular order.
	EventsIn(c ContainerID, from, to time.Time) ([]ContainerEvent, error)
	// CaptureIn finds the aggregation event of a container with an id.
	CaptureIn(c ContainerID, eventID string) (ContainerCapture, error)
	// ThingsIn lists what ever was in a container, behind a thing, in the order of their texts.
	ThingsIn(c ContainerID, after string, limit int) ([]string, error)
}

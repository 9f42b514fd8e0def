package locker

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// step is one input's way through the rules. Each part calls those below it and
// none beside it or above:
//
//	doors      commands   keypad     codeList     inputs: boards, cloud, people, lists
//	└──────────┴────┬─────┘              │
//	            openings                 │        doors that are unlocked until they are closed
//	                └───────────┬────────┘
//	                          draft               the state, records and actions
type step struct {
	*draft
	openings
	doors
	commands
	keypad
	codeList
}

// Parts of a step.
type (
	openings struct{ *draft }
	doors    struct{ openings }
	commands struct{ openings }
	keypad   struct{ openings }
	codeList struct{ *draft }
)

func newStep(d *draft) step {
	o := openings{d}
	return step{d, o, doors{o}, commands{o}, keypad{o}, codeList{d}}
}

// draft is a state being changed by one step.
type draft struct {
	State
	now     Now
	touched map[string]bool // keys of what has to be kept
	out     Out
	urgent  bool
	ids     int
	present bool // the present changed: a status is due
}

// Keys of the state as it is kept.
const (
	keyDoor      = "door/"
	keyOpening   = "opening/"
	keyEnded     = "ended/"
	keyDelivery  = "delivery/"
	keyCommand   = "command/"
	keyException = "exception/"
	keyCode      = "code/"
	keyMeta      = "meta"
	keyConfig    = "config"
)

func (d *draft) setDoor(v Door)           { d.Doors[v.Number] = v; d.touch(keyDoor + num(v.Number)) }
func (d *draft) setOpening(v Opening)     { d.Openings[v.ID] = v; d.touch(keyOpening + v.ID) }
func (d *draft) setDelivery(v Delivery)   { d.Deliveries[v.Ref] = v; d.touch(keyDelivery + v.Ref) }
func (d *draft) setException(v Exception) { d.Exceptions[v.ID] = v; d.touch(keyException + v.ID) }
func (d *draft) setMeta(v Meta)           { d.Meta = v; d.touch(keyMeta) }
func (d *draft) touch(key string)         { d.touched[key] = true }

func (d *draft) dropException(id string) { delete(d.Exceptions, id); d.touch(keyException + id) }
func (d *draft) dropDelivery(ref string) { delete(d.Deliveries, ref); d.touch(keyDelivery + ref) }
func (d *draft) dropCode(n uint64)       { delete(d.Codes, n); d.touch(keyCode + strconv.FormatUint(n, 10)) }

func num(n edge.DoorNumber) string { return strconv.FormatUint(uint64(n), 10) }

// record adds a record of this moment or of an earlier one of this boot.
func (d *draft) record(k wire.Kind, mono int64, body any) {
	d.out.Records = append(d.out.Records, Record{Kind: k, Mono: mono, Body: body})
}

func (d *draft) addAction(a Action) { d.out.Actions = append(d.out.Actions, a) }

// newID makes a random id that is not ordered in time.
func (d *draft) newID(prefix string) string {
	d.ids++
	sum := sha256.Sum256(append(d.now.Random[:], byte(d.ids), byte(d.ids>>8)))
	return prefix + hex.EncodeToString(sum[:12])
}

func (d *draft) times() wire.Times { return d.Config.Times.WithDefaults() }

func ms(v uint32) int64  { return int64(v) * int64(time.Millisecond) }
func sec(v uint32) int64 { return int64(v) * int64(time.Second) }

// order of map walks is fixed, so that one state and input give one result.
func sorted[K interface{ ~string | ~uint | ~uint64 }, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// finish turns the draft into the step's result.
func (d *draft) finish() (State, Out) {
	if len(d.touched) > 0 {
		d.out.Put = make(map[string][]byte, len(d.touched))
		for key := range d.touched {
			d.out.Put[key] = d.State.encode(key)
		}
	}
	if d.present {
		d.addAction(StatusChanged{})
	}
	d.out.Urgent = d.urgent
	return d.State, d.out
}

// Clone-on-write of an opening's doors: openings are values, their slices are
// shared until changed.
func (o Opening) with(n edge.DoorNumber, f func(*OpeningDoor)) Opening {
	o.Doors = slices.Clone(o.Doors)
	for i := range o.Doors {
		if o.Doors[i].Door == n {
			f(&o.Doors[i])
		}
	}
	return o
}

func (o Opening) numbers() []edge.DoorNumber {
	out := make([]edge.DoorNumber, len(o.Doors))
	for i, d := range o.Doors {
		out[i] = d.Door
	}
	return out
}

func uints(doors []edge.DoorNumber) []uint {
	out := make([]uint, len(doors))
	for i, d := range doors {
		out[i] = uint(d)
	}
	return out
}

// numbers are doors as a message or a person names them, each once: a door that is named twice
// would be pulsed twice.
func numbers[D uint | edge.DoorNumber](doors []D) []edge.DoorNumber {
	out := make([]edge.DoorNumber, 0, len(doors))
	for _, d := range doors {
		if n := edge.DoorNumber(d); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

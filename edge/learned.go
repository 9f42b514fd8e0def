package edge

import "time"

// Results of Learned.
const (
	LearnWaiting       = "waiting"        // no switch has moved yet
	LearnRight         = "right"          // the switch that moved is the layout's, and is read the right way round
	LearnOtherPolarity = "other_polarity" // it is the layout's, and is read the wrong way round
	LearnOtherChannel  = "other_channel"  // another switch moved
	LearnSeveral       = "several"        // more than one did: other doors moved as well
)

// Learned is what moved on the boards while staff opened one door, to learn how it is wired. The
// door was shut when it began.
type Learned struct {
	Door   DoorNumber `json:"door"`
	At     time.Time  `json:"at"` // of the begin, by the machine's clock
	Layout Wiring     `json:"layout"`
	// Switch and Item are the raw bits of the layout's channel now; nil: not read, or no sensor.
	Switch *bool         `json:"switch_bit,omitempty"`
	Item   *bool         `json:"item_bit,omitempty"`
	Moves  []LearnedMove `json:"moves"` // since the begin, oldest first
	Result string        `json:"result"`
	Needs  *Wiring       `json:"needs,omitempty"` // what the layout would have to say; nil: as it does, or not known
}

// Wiring is where a door's switch is read.
type Wiring struct {
	Board    string `json:"board"`
	Channel  uint   `json:"channel"`
	Inverted bool   `json:"inverted"`
}

// LearnedMove is a raw bit that moved.
type LearnedMove struct {
	AfterMS int64  `json:"after_ms"` // the begin
	Board   string `json:"board"`
	Channel uint   `json:"channel"`
	Bit     string `json:"bit"` // switch or item
	Set     bool   `json:"set"`
}

// Judge sets the result by the first move of a switch, which was the door's opening.
func (l *Learned) Judge() {
	var first *LearnedMove
	l.Result, l.Needs = LearnWaiting, nil
	for i, m := range l.Moves {
		switch {
		case m.Bit != "switch":
		case first == nil:
			first = &l.Moves[i]
		case m.Board != first.Board || m.Channel != first.Channel:
			l.Result = LearnSeveral
			return
		}
	}
	if first == nil {
		return
	}
	// A switch's bit is set while its door is shut, or the other way round where it is inverted.
	is := Wiring{first.Board, first.Channel, first.Set}
	switch {
	case is == l.Layout:
		l.Result = LearnRight
		return
	case is.Board == l.Layout.Board && is.Channel == l.Layout.Channel:
		l.Result = LearnOtherPolarity
	default:
		l.Result = LearnOtherChannel
	}
	l.Needs = &is
}

package projection

import (
	"github.com/postern-io/postern/protocol/otep"
)

// coarse is the input of the formats that only know an order's fulfilment.
type coarse struct {
	otep.Coarse
	events  []otep.Event
	last    *otep.Event
	shipped *otep.Event
	label   string // of the latest event, "" when there is none
}

func (p *Projector) coarse(t otep.Timeline) coarse {
	events := actual(t)
	c := coarse{events: events, last: last(events), shipped: shipped(events)}
	code, phase := otep.InformationSubmitted, ""
	if c.last != nil {
		code, phase = c.last.StatusCode, c.last.Phase
		c.label = p.label(code)
	}
	c.Coarse = otep.Project(code, phase).CoarseIn(c.shipped != nil)
	return c
}

// carrier is the name of who carries.
func (c coarse) carrier() string {
	if c.last == nil {
		return "other"
	}
	return sourceName(c.last)
}

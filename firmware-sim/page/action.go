package page

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/localpage"
)

// Result is the answer to an act: ok, shut (the hand reached for a box whose door
// is shut), failed or refused, the last two with a reason.
type Result struct {
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
}

// actions are what a guest can do, as the page and its requests name them.
var actions = []string{"close", "force", "jam", "free", "put", "take", "network", "power"}

// actInput is one act. Door belongs to the actions on doors, On to network and
// power.
type actInput struct {
	Action string `json:"action"`
	Door   uint   `json:"door"`
	On     *bool  `json:"on"`
}

// serveAction does what a guest asks for.
func (p *Page) serveAction(w http.ResponseWriter, r *http.Request, c *Cabinet) {
	var in actInput
	if !readJSON(w, r, &in) {
		return
	}
	onSwitch := in.Action == "network" || in.Action == "power"
	switch {
	case !slices.Contains(actions, in.Action):
		refuse(w, http.StatusBadRequest, fmt.Sprintf("`action` must be one of %s.", strings.Join(actions, ", ")))
		return
	case onSwitch && in.On == nil:
		refuse(w, http.StatusBadRequest, "`on` must be true or false.")
		return
	case in.Action == "network" && c.Network == nil:
		refuse(w, http.StatusBadRequest, "This cabinet has no network to cut.")
		return
	case !onSwitch && !slices.ContainsFunc(c.Sim.View().Doors, func(d board.DoorView) bool { return d.Number == in.Door }):
		refuse(w, http.StatusBadRequest, fmt.Sprintf("`door` must be a door of %s.", c.Code))
		return
	}
	switch err := p.perform(c, in); {
	case errors.Is(err, board.ErrShut):
		localpage.Reply(w, http.StatusConflict, Result{Outcome: "shut", Why: err.Error()})
	case err != nil:
		p.cfg.Log.Warn("act of a guest failed", "cabinet", c.Code, "action", in.Action, "err", err)
		localpage.Reply(w, http.StatusInternalServerError, Result{Outcome: "failed", Why: err.Error()})
	default:
		name := in.Action
		if onSwitch {
			name += map[bool]string{true: "_on", false: "_off"}[*in.On]
		}
		p.cfg.OnAct(c.Code, name, in.Door)
		localpage.Reply(w, http.StatusOK, Result{Outcome: "ok"})
	}
}

func (p *Page) perform(c *Cabinet, in actInput) error {
	switch in.Action {
	case "close":
		return c.Sim.CloseDoor(in.Door)
	case "force":
		return c.Sim.Force(in.Door)
	case "jam":
		return c.Sim.Jam(in.Door)
	case "free":
		return c.Sim.Free(in.Door)
	case "put":
		return c.Sim.Put(in.Door, fmt.Sprintf("GUEST-%d", p.brought.Add(1)))
	case "take":
		_, err := c.Sim.TakeOut(in.Door)
		return err
	case "network":
		return c.Network.Set(*in.On)
	}
	return c.Power.Set(*in.On)
}

// boardPower is the power of the boards alone.
type boardPower struct{ sim *board.Cabinet }

func (b boardPower) On() bool { return b.sim.View().Powered }

func (b boardPower) Set(on bool) error {
	if on {
		b.sim.PowerOn()
	} else if b.On() {
		b.sim.PowerOff()
	}
	return nil
}

package locker

import (
	"context"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// await waits until the command has an outcome, the wait is over, or the
// command expires.
func (s *core) await(ctx context.Context, cmd cloud.Command, wait time.Duration) (OpenOutput, error) {
	if cloud.PreviewOf(ctx) != nil { // nothing was sent
		return OpenOutput{Result: true, Pending: true}, nil
	}
	changed, stop := s.watch(cmd.OpeningID)
	defer stop()
	timer := time.NewTimer(min(wait, time.Until(cmd.ExpiresAt)))
	defer timer.Stop()
	for over := false; ; {
		out, done, err := s.commandOutcome(ctx, cmd)
		if done || err != nil {
			return out, err
		}
		if over {
			if !time.Now().Before(cmd.ExpiresAt) {
				return out, &cloud.Error{Kind: cloud.Timeout, Code: "DEVICE_TIMEOUT", RetryAfter: 5}
			}
			out.Pending = true
			return out, nil
		}
		poll := time.NewTimer(time.Second) // another node may have stored it
		select {
		case <-ctx.Done():
			poll.Stop()
			return out, ctx.Err()
		case <-changed:
		case <-poll.C:
		case <-timer.C:
			over = true
		}
		poll.Stop()
	}
}

// commandOutcome reads how far a command has come.
func (s *core) commandOutcome(ctx context.Context, cmd cloud.Command) (out OpenOutput, done bool, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		c, err := v.Command(cmd.ID)
		if err != nil {
			return err
		}
		o, err := v.Opening(cmd.OpeningID)
		if err != nil {
			return err
		}
		var shown DeliveryOutput // of an opening by staff: none
		if o.DeliveryID != 0 {
			d, err := v.Delivery(o.DeliveryID)
			if err != nil {
				return err
			}
			if shown, err = s.output(v, d); err != nil {
				return err
			}
		}
		biz, err := v.Business(o.BusinessID)
		if err != nil {
			return err
		}
		cells, err := cellsOf(v, o.DeviceID, o)
		if err != nil {
			return err
		}
		out = OpenOutput{Result: true, Opening: openingBody(o, cells, biz.Location()), PickupCode: shown.Delivery.PickupCode}
		switch c.State {
		case cloud.CommandDone, cloud.CommandPartial:
			done = true
		case cloud.CommandExpired:
			return &cloud.Error{Kind: cloud.Timeout, Code: "DEVICE_TIMEOUT", RetryAfter: 5}
		case cloud.CommandFailed, cloud.CommandRefused, cloud.CommandInterrupted:
			details := map[string]any{"outcome": c.State, "reason": c.Reason, "opening_id": o.ID}
			if o.DeliveryID != 0 {
				details["status"] = shown.Delivery.Status
			}
			args, doors := notOpened(c, o, cells)
			details["doors"] = doors
			return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Args: args, Details: details}
		}
		return nil
	})
	return out, done, err
}

// notOpened says of a command that opened no door which doors those are, and what people read
// about them: they stayed shut, or the cabinet did not say that they opened.
func notOpened(c cloud.Command, o cloud.Opening, cells map[uint]cloud.Compartment) (args []any, doors []map[string]any) {
	asked := len(c.Versions) > 0
	var names []string
	doors = []map[string]any{}
	for _, od := range o.Doors {
		if _, ok := c.Versions[od.Door]; asked && !ok {
			continue
		}
		cell := cells[od.Door]
		names = append(names, cell.Name())
		doors = append(doors, map[string]any{"grid_id": od.GridID, "grid_code": cell.GridCode, "door_name": cell.Name(), "error_code": cloud.OrNull(c.Doors[od.Door])})
	}
	how := "unseen"
	if c.State == cloud.CommandFailed {
		how = "shut"
	}
	return []any{how, strings.Join(names, ", ")}, doors
}

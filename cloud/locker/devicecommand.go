package locker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// DeviceCommandInput sends a command to a cabinet as a whole.
type DeviceCommandInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Type   string         `json:"type" required:"true" enum:"reset_tries,sync,update_config,reboot,update" doc:"sync and update_config make the cabinet say where it stands, which brings it the newest code list and configuration; reboot starts its agent again, and no door opens by that; reset_tries makes the keypad take typed codes again after thirty wrong ones within a day, at once or when the cabinet connects within 24 hours; update has it fetch a version of its agent, install it and try it, and go back when that does not work"`
	// Version is for update.
	Version string `json:"version" max:"64" doc:"Version of the agent that update installs, such as 1.4.0; only for update"`
	Reason  string `json:"reason" max:"255"`
}

// DeviceCommandBody is a command on its way.
type DeviceCommandBody struct {
	CommandID string             `json:"command_id"`
	Type      string             `json:"type"`
	State     cloud.CommandState `json:"state"`
	ExpiresAt *string            `json:"expires_at"`
}

// DeviceCommandOutput shows a command.
type DeviceCommandOutput struct {
	Result  bool              `json:"result"`
	Command DeviceCommandBody `json:"command"`
}

// SendDeviceCommand queues a command for a cabinet of the caller's business; it
// is sent at once, or when the cabinet connects within 24 hours. Errors: DEVICE_NOT_FOUND,
// DEVICE_DISABLED, RELEASE_NOT_FOUND, UPDATE_NOT_POSSIBLE, VALIDATION_FAILED.
func (s staff) SendDeviceCommand(ctx context.Context, c cloud.Caller, in DeviceCommandInput) (out DeviceCommandOutput, err error) {
	now := time.Now().UTC()
	update, err := s.findUpdate(ctx, c, in, now)
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := owned(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		if device.Disabled {
			return nil, cloud.E(cloud.Conflict, "DEVICE_DISABLED")
		}
		biz, err := v.Business(device.BusinessID)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		kind, body := wire.CommandKind(in.Type), any(wire.DoorReason{Reason: in.Reason})
		if update != nil {
			body = *update
		}
		if in.Type == "sync" || in.Type == "update_config" {
			kind, body = wire.CmdSyncConfig, wire.SyncConfig{Version: device.ConfigVersion}
		}
		cmd, err := w.send("", kind, body, nil, longCommandLife)
		if err != nil {
			return nil, err
		}
		detail, err := json.Marshal(map[string]string{"type": in.Type, "reason": in.Reason, "version": in.Version, "command_id": cmd.ID})
		if err != nil {
			return nil, err
		}
		w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: device.BusinessID, At: now, Actor: actor(c),
			Action: "device_command", Target: device.Code, Detail: string(detail)})
		out = DeviceCommandOutput{Result: true, Command: DeviceCommandBody{CommandID: cmd.ID, Type: in.Type, State: cmd.State, ExpiresAt: cloud.Stamp(cmd.ExpiresAt, biz.Location())}}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	return out, err
}

const messageUpdateVersion = "Give a version, such as 1.4.0, with the type update, and with no other type."

// findUpdate is what an update installs, nil for other commands. It is looked up before the
// decision, as files are read for it.
func (s staff) findUpdate(ctx context.Context, c cloud.Caller, in DeviceCommandInput, now time.Time) (*wire.Update, error) {
	isUpdate := in.Type == string(wire.CmdUpdate)
	if isUpdate != (in.Version != "") {
		f := newFields()
		f.Say("version", messageUpdateVersion)
		return nil, f.Err()
	}
	if !isUpdate {
		return nil, nil
	}
	var device cloud.Device
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		device, err = owned(v, c, in.Device)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.updateOf(ctx, device, in.Version, now)
}

// updateOf is the order for a version of a device's agent. Errors: RELEASE_NOT_FOUND,
// UPDATE_NOT_POSSIBLE.
func (s *core) updateOf(ctx context.Context, d cloud.Device, version string, now time.Time) (*wire.Update, error) {
	if d.Protocol != cloud.ProtocolMQTT || !d.Program.Updates {
		return nil, cloud.E(cloud.Conflict, "UPDATE_NOT_POSSIBLE")
	}
	if s.cfg.Programs == nil {
		return nil, cloud.E(cloud.NotFound, "RELEASE_NOT_FOUND")
	}
	u, err := s.cfg.Programs.FindUpdate(ctx, version, d.Program.Platform, now.Add(longCommandLife))
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, cloud.E(cloud.NotFound, "RELEASE_NOT_FOUND")
	}
	if err != nil {
		return nil, fmt.Errorf("find version %s for %s: %w", version, d.Program.Platform, err)
	}
	return &u, nil
}

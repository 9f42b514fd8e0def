package locker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// DeviceCommandInput sends a command to a cabinet as a whole.
type DeviceCommandInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Type   string         `json:"type" required:"true" enum:"reset_tries,sync,update_config,reboot" doc:"sync and update_config make the cabinet say where it stands, which brings it the newest code list and configuration; reboot starts its agent again, and no door opens by that; reset_tries makes the keypad take typed codes again after thirty wrong ones within a day, at once or when the cabinet connects within 24 hours"`
	Reason string         `json:"reason" max:"255"`
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
// DEVICE_DISABLED, VALIDATION_FAILED.
func (s staff) SendDeviceCommand(ctx context.Context, c cloud.Caller, in DeviceCommandInput) (out DeviceCommandOutput, err error) {
	now := time.Now().UTC()
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
		if in.Type == "sync" || in.Type == "update_config" {
			kind, body = wire.CmdSyncConfig, wire.SyncConfig{Version: device.ConfigVersion}
		}
		cmd, err := w.send("", kind, body, nil, longCommandLife)
		if err != nil {
			return nil, err
		}
		detail, err := json.Marshal(map[string]string{"type": in.Type, "reason": in.Reason, "command_id": cmd.ID})
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

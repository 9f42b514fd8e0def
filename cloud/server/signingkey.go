package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/internal/wholefile"
	"github.com/postern-io/postern/protocol/wire"
)

// Cabinets trust two of the cloud's keys: the one that signs, and the next. A rotation takes
// the next one into use and draws another next one; nodes that start with the keys file then
// sign with it. Once all of them do, the two keys are published in the configuration of every
// cabinet. A cabinet that has it drops the former key as soon as a time answer by the new one
// came. A cabinet that was away for the whole rotation trusts the new key already, and learns
// the next when it connects: it would be lost by a second rotation before that.

// KeyHolder is a device that is not known to trust the next key.
type KeyHolder struct {
	Device     cloud.DeviceID
	Code       string
	BusinessID cloud.BusinessID
	LastSeenAt time.Time // zero: never
	// Unpublished is whether its configuration has other keys than the cloud's: publish them.
	Unpublished bool
	// EnrolsAgain is whether it gets keys by an enrolment alone: it speaks HTTP.
	EnrolsAgain bool
}

// SigningKeys are the ids of the key that signs messages to devices, and of the next one.
func (k Keys) SigningKeys() (current, next string) {
	p := pinKeys(k.pinned())
	return hex.EncodeToString(p[0].ID), hex.EncodeToString(p[1].ID)
}

// Rotate is the keys with the next signing key in use, and another next one.
func (k Keys) Rotate(now time.Time) Keys {
	next := make([]byte, len(k.Next))
	_, _ = rand.Read(next) // never fails
	k.Signing, k.Next, k.Rotated = k.Next, next, now.UTC().Truncate(time.Millisecond)
	return k
}

// ReplaceKeys puts keys in place of those of a file: whole or not at all, also across a power
// cut.
func ReplaceKeys(path string, k Keys) error {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("encode keys: %w", err)
	}
	if err := wholefile.Replace(path, append(raw, '\n')); err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	return nil
}

// ListKeyHolders lists the enrolled devices that are not known to trust the next key: the
// next rotation would lose them.
func ListKeyHolders(ctx context.Context, s *Server) (out []KeyHolder, err error) {
	pinned := s.pinnedKeys()
	err = eachDevice(ctx, s, func(d cloud.Device) error {
		var c wire.Config
		if err := wire.Decode(d.Config, &c); err != nil {
			return fmt.Errorf("configuration of %s: %w", d.Code, err)
		}
		h := KeyHolder{Device: d.ID, Code: d.Code, BusinessID: d.BusinessID, LastSeenAt: d.LastSeenAt, EnrolsAgain: d.Protocol == cloud.ProtocolHTTP}
		h.Unpublished = !h.EnrolsAgain && !device.HasKeys(c, pinned)
		if d.EnrolledAt.IsZero() || d.IsCutOff() {
			return nil // it gets the keys with its enrolment
		}
		if !device.HasKeys(c, pinned[1:]) || !h.EnrolsAgain && (h.Unpublished || d.Applied < d.ConfigVersion) {
			out = append(out, h)
		}
		return nil
	})
	return out, err
}

// ErrFormerKeys says that cabinets were given newer keys than those of the keys file.
var ErrFormerKeys = errors.New("the keys file is one from before the last rotation: cabinets have newer keys")

// isFormer reports whether a configuration has the keys of a rotation after those of pinned.
func isFormer(c wire.Config, pinned []wire.PinnedKey) bool {
	return len(c.Keys) > 0 && device.HasKeys(wire.Config{Keys: c.Keys[:1]}, pinned[1:]) && !device.HasKeys(c, pinned[:1])
}

// PublishKeys gives every agent the present keys, as a configuration of the next version where
// it has others. It counts them. It may end at any moment, and be run again. Error:
// ErrFormerKeys; former keys would come back with it.
func PublishKeys(ctx context.Context, s *Server) (published int, err error) {
	pinned := s.pinnedKeys()
	err = eachDevice(ctx, s, func(d cloud.Device) error {
		changed := false
		err := s.Store.Decide(ctx, d.ID, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(d.ID)
			if err != nil || d.Protocol == cloud.ProtocolHTTP {
				return nil, err
			}
			var c wire.Config
			if wire.Decode(d.Config, &c) == nil && isFormer(c, pinned) {
				return nil, ErrFormerKeys
			}
			if changed, err = device.PinKeys(&d, pinned); err != nil || !changed {
				return nil, err
			}
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, nil
		})
		if err == nil && changed {
			published++
		}
		return err
	})
	return published, err
}

// ListFormerSigners lists the names of nodes that sign with another key than the present one.
// Of one that has not said which, that is so when it started before the last rotation.
func ListFormerSigners(ctx context.Context, s *Server) (names []string, err error) {
	current, _ := s.Keys.SigningKeys()
	nodes, err := s.Store.ListNodes(ctx)
	for _, n := range nodes {
		if n.SigningKey != "" && n.SigningKey != current || n.SigningKey == "" && n.StartedAt.Before(s.Keys.Rotated) {
			names = append(names, n.Name)
		}
	}
	return names, err
}

// eachDevice calls f with each device that takes messages and is in use.
func eachDevice(ctx context.Context, s *Server, f func(cloud.Device) error) error {
	const page = 500
	for after := cloud.DeviceID(0); ; {
		devices, err := s.Store.ListAllDevices(ctx, after, page)
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		for _, d := range devices {
			if after = d.ID; d.Protocol == cloud.ProtocolMock || !d.RetiredAt.IsZero() || len(d.Config) == 0 {
				continue
			}
			if err := f(d); err != nil {
				return err
			}
		}
		if len(devices) < page {
			return nil
		}
	}
}

// pinEnrolled has a decision that gives a device its secrets keep the keys that it gets with
// them in its configuration, which would bring former ones back.
func pinEnrolled(pinned []wire.PinnedKey, decide func(cloud.View) (*cloud.Changes, error)) func(cloud.View) (*cloud.Changes, error) {
	return func(v cloud.View) (*cloud.Changes, error) {
		ch, err := decide(v)
		if err == nil && len(ch.Devices) > 0 {
			_, err = device.PinKeys(&ch.Devices[0], pinned)
		}
		return ch, err
	}
}

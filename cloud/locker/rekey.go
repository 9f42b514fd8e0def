package locker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// rekeyTries bounds how often a list may change while verifiers are made for it.
const rekeyTries = 20

var (
	errMoreCodes      = errors.New("a code came meanwhile")
	errSecretsChanged = errors.New("the device's code secrets have changed")
)

// Rekey gives a device other code secrets. In one transaction with what change
// returns, whose first device must be this one, every live code of its list gets a
// new number and a new verifier, and lists with an older number become void, so
// that the cabinet is sent the whole list. The verifiers, which cost time and
// memory, are made before; change runs in a decision and may run again.
func (s rekeying) Rekey(ctx context.Context, id cloud.DeviceID, secrets CodeSecrets, change func(cloud.View) (*cloud.Changes, error)) error {
	verifiers := map[string][]byte{} // by code
	for range rekeyTries {
		var codes []string
		err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
			live, err := s.liveCodes(v, id)
			for _, c := range live {
				codes = append(codes, c.code)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range codes {
			if c == "" || verifiers[c] != nil {
				continue
			}
			if verifiers[c], err = s.verifier(ctx, c, secrets); err != nil {
				return err
			}
		}
		err = s.cfg.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
			ch, err := change(v)
			if err != nil {
				return nil, err
			}
			if len(ch.Devices) == 0 || ch.Devices[0].ID != id {
				return nil, fmt.Errorf("new code secrets for device %d: the change is about another", id)
			}
			ch.Devices[0].SealedCode = SealSecrets(s.cfg.Sealer, secrets)
			return ch, s.renumber(v, ch, verifiers, time.Now().UTC())
		})
		if !errors.Is(err, errMoreCodes) {
			return err
		}
	}
	return errMoreCodes
}

// secrets are what a device's verifiers are made with now, and the same sealed:
// a decision compares them, since the device may enrol again meanwhile.
func (s *core) secrets(ctx context.Context, id cloud.DeviceID) (c CodeSecrets, sealed []byte, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := v.Device(id)
		sealed = d.SealedCode
		return err
	})
	if err == nil {
		c, err = OpenSecrets(s.cfg.Sealer, sealed)
	}
	return c, sealed, err
}

// verifier makes one, few at a time.
func (s *core) verifier(ctx context.Context, code string, secrets CodeSecrets) ([]byte, error) {
	select {
	case s.hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.hashing }()
	return passcode.Verifier(code, secrets.Salt, secrets.Key, secrets.Params), nil
}

// liveCode is an entry of a device's list and the code behind it, "" when that
// is not known: such an entry cannot be made anew.
type liveCode struct {
	cloud.CodeRow
	code string
}

func (s rekeying) liveCodes(v cloud.View, id cloud.DeviceID) ([]liveCode, error) {
	rows, err := v.CodeRows(id, 0, maxLiveCodes)
	if err != nil {
		return nil, err
	}
	device, err := v.Device(id)
	if err != nil {
		return nil, err
	}
	out := make([]liveCode, 0, len(rows))
	for _, r := range rows {
		c := liveCode{CodeRow: r}
		if r.StaffCodeID != 0 {
			if c.code, err = s.liveStaffCode(v, device.BusinessID, r.StaffCodeID); err != nil {
				return nil, err
			}
		}
		if r.Entry.Op == wire.CodeSet && r.DeliveryID != 0 {
			d, err := v.Delivery(r.DeliveryID)
			if err != nil {
				return nil, err
			}
			codes, err := s.openCodes(d)
			if err != nil {
				return nil, err
			}
			switch r.Entry.Kind {
			case wire.CodeDelivery:
				c.code = codes.Delivery
			case wire.CodePickup, wire.CodeHandover:
				c.code = codes.Pickup
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// liveStaffCode is the code of a member; "" once its day is over, or another took its
// place.
func (s *core) liveStaffCode(v cloud.View, b cloud.BusinessID, id cloud.StaffCodeID) (string, error) {
	c, err := cloud.Find(v, cloud.StaffCode{Kept: cloud.Kept[cloud.StaffCodeID]{ID: id, BusinessID: b}})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (!c.DroppedAt.IsZero() || !c.EndsAt.After(time.Now())) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return s.openStaffCode(c)
}

// renumber puts every live code at the end of the list with its new verifier, and
// makes what came before void.
func (s rekeying) renumber(v cloud.View, ch *cloud.Changes, verifiers map[string][]byte, now time.Time) error {
	device := &ch.Devices[0]
	live, err := s.liveCodes(v, device.ID)
	if err != nil {
		return err
	}
	device.ListFrom = device.CodeList + 1
	device.CodeGeneration = max(device.CodeGeneration, 1) + 1
	for _, c := range live {
		old := c.CodeRow
		old.DroppedAt = now
		ch.Codes = append(ch.Codes, old)
		outgoing := c.Entry.Kind == wire.CodeOutgoing && c.Entry.Op == wire.CodeSet
		if c.code == "" && !outgoing {
			continue
		}
		if verifiers[c.code] == nil && !outgoing {
			return errMoreCodes
		}
		device.CodeList++
		c.CreatedAt, c.Entry.Number, c.Entry.Verifier = now, device.CodeList, nil
		if !outgoing {
			c.Entry.Verifier = verifiers[c.code]
		}
		ch.Codes = append(ch.Codes, c.CodeRow)
	}
	device.CodeList = max(device.CodeList, device.ListFrom)
	return nil
}

// Configure publishes a new configuration of a device: what change makes of the
// current one, under the next version. Changed code parameters come with new
// verifiers and the whole list, in the same transaction.
func (s rekeying) Configure(ctx context.Context, id cloud.DeviceID, change func(*wire.Config) error) (version uint64, err error) {
	for range rekeyTries {
		version, err = s.configure(ctx, id, change)
		if !errors.Is(err, errSecretsChanged) {
			break
		}
	}
	return version, err
}

func (s rekeying) configure(ctx context.Context, id cloud.DeviceID, change func(*wire.Config) error) (uint64, error) {
	var before cloud.Device
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		before, err = v.Device(id)
		return err
	})
	if err != nil {
		return 0, err
	}
	var conf wire.Config
	if err := wire.Decode(before.Config, &conf); err != nil {
		return 0, fmt.Errorf("read configuration of %s: %w", before.Code, err)
	}
	if err := change(&conf); err != nil {
		return 0, err
	}
	conf.Version, conf.DeviceCode = before.ConfigVersion+1, before.Code
	if err := checkConfig(before, conf); err != nil {
		return 0, fmt.Errorf("configuration of %s: %w", before.Code, err)
	}
	publish := func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(id)
		if err != nil {
			return nil, err
		}
		if d.ConfigVersion != before.ConfigVersion || !bytes.Equal(d.SealedCode, before.SealedCode) {
			return nil, errSecretsChanged // published or enrolled meanwhile
		}
		d.Config, d.ConfigVersion = wire.MustEncode(conf), conf.Version
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, nil
	}
	secrets, err := OpenSecrets(s.cfg.Sealer, before.SealedCode)
	if err != nil {
		return 0, fmt.Errorf("device %s: %w", before.Code, err)
	}
	if conf.Codes == secrets.Params {
		return conf.Version, s.cfg.Store.Decide(ctx, id, publish)
	}
	secrets.Params = conf.Codes
	return conf.Version, s.Rekey(ctx, id, secrets, publish)
}

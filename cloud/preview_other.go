package cloud

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/postern-io/postern/protocol/wire"
)

// otherEffects are the effects of c on things of which a preview shows no
// members: that there is a new one, or that one changes. An account's show what it
// may. Things that follow of themselves have none.
func otherEffects(v View, c *Changes) ([]Effect, error) {
	var out []Effect
	var failed error
	add := func(kind string, id any, name string, old any, err error) {
		e := Effect{Type: kind, ID: id, Name: name}
		switch {
		case errors.Is(err, ErrNotFound):
			e.ID, e.After = nil, map[string]any{"new": true}
		case err != nil:
			failed = err
		default:
			e.version, e.Before, e.After = versionOf(old), map[string]any{}, map[string]any{"changed": true}
		}
		out = append(out, e)
	}
	for _, x := range c.Businesses {
		old, err := v.Business(x.ID)
		add("business", x.ID, x.Name, old, err)
	}
	for _, x := range c.Providers {
		old, err := v.Provider(x.ID)
		add("provider", x.ID, x.Name, old, err)
	}
	for _, x := range c.Accounts {
		old, err := v.Account(x.ID)
		add("account", x.ID, x.Name, old, err)
		if failed != nil {
			return nil, failed
		}
		e := &out[len(out)-1]
		maps.Copy(e.After, x.rights())
		if e.Before != nil {
			maps.Copy(e.Before, old.rights())
		}
		if x.PasswordHash != old.PasswordHash {
			e.After["password"] = Masked
		}
	}
	for _, x := range c.Tokens {
		old, err := v.Token(x.Hash)
		add("token", x.ID, x.Name, old, err)
	}
	for _, x := range c.Devices {
		old, err := v.Device(x.ID)
		add("device", x.ID, x.Code, old.withoutReports(), err)
	}
	for _, x := range c.Compartments {
		old, err := v.Compartment(x.DeviceID, x.Door)
		add("compartment", fmt.Sprintf("%d/%d", x.DeviceID, x.Door), x.GridCode, old, err)
	}
	for _, x := range c.Deliveries {
		old, err := v.Delivery(x.ID)
		add("delivery", x.ID, x.Number, old, err)
		if e := &out[len(out)-1]; err == nil && old.Status != x.Status {
			e.Before["status"], e.After["status"] = old.Status, x.Status
		}
	}
	for _, x := range c.Commands {
		old, err := v.Command(x.ID)
		add("command", x.ID, "", old, err)
	}
	for _, x := range c.Interceptions {
		old, err := v.Interception(x.BusinessID, x.ID)
		add("interception", x.ID, "", old, err)
	}
	for _, x := range c.Assignments {
		old, err := v.Assignment(x.BusinessID, x.ID)
		add("assignment", x.ID, "", old, err)
	}
	for _, x := range c.ThirdParties {
		old, err := v.ThirdParty(x.BusinessID, x.ID)
		add("third_party", x.ID, "", old, err)
	}
	for _, x := range c.Routes {
		old, err := v.Route(x.BusinessID, x.ID)
		add("route", x.ID, "", old, err)
	}
	for _, x := range c.Rows {
		old, err := v.FindRow(x)
		add(string(x.RowKind()), x.RowID(), nameOf(x), old, err)
	}
	for _, x := range c.DroppedRows {
		out = append(out, Effect{Type: string(x.RowKind()), ID: x.RowID(), Name: nameOf(x), version: versionOf(x), Before: map[string]any{"removed": false}})
	}
	return out, failed
}

// rights are what an account may, for a person who decides about it.
func (a Account) rights() map[string]any {
	out := map[string]any{"account_type": a.Type, "email": a.Email, "enabled": a.Enabled}
	if len(a.Permissions) > 0 {
		out["permissions"] = a.Permissions
	}
	return out
}

// withoutReports is a device without what it last said: it speaks all the time,
// and that is no other version of what people decide about.
func (d Device) withoutReports() Device {
	d.Applied, d.CodesHeld, d.HeldGeneration, d.Firmware = 0, 0, 0, ""
	d.LastSeenAt, d.LastPlaced, d.StatusAt, d.TypedLocked = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	d.StatusEnds, d.StatusEpoch = [wire.Lanes]uint64{}, wire.Epoch{}
	return d
}

// kinds are the effects of c when all that is known is what kinds of things it
// changes. Audit lines are none: they say what was done.
func (c *Changes) kinds() (out []Effect) {
	for member, v := range c.each {
		list := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
		if member.Tag.Get("change") == condition || member.Name == "Audits" || list && v.Len() == 0 || v.IsZero() {
			continue
		}
		out = append(out, Effect{Type: kindOf(member.Name), Before: map[string]any{}, After: map[string]any{"changed": true}})
	}
	return out
}

// snakeCase is the name of a member in small letters with underscores.
func snakeCase(member string) string {
	var b strings.Builder
	small := false // the letter before was one
	for _, r := range member {
		if unicode.IsUpper(r) && small {
			b.WriteByte('_')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// kindOf is the name of a kind of things by that of a member: ChatReads are of
// the kind chat_read.
func kindOf(member string) string {
	name := snakeCase(member)
	if y, ok := strings.CutSuffix(name, "ies"); ok {
		return y + "y"
	}
	return strings.TrimSuffix(name, "s")
}

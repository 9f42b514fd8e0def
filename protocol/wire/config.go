package wire

import (
	"errors"
	"fmt"
)

// Config is the payload of a signed configuration.
type Config struct {
	Version uint64            `cbor:"1,keyasint"`
	Layout  []LayoutDoor      `cbor:"2,keyasint"`
	Hours   []Hours           `cbor:"3,keyasint,omitempty"`
	Texts   map[string]string `cbor:"4,keyasint,omitempty"`
	Times   Times             `cbor:"5,keyasint"`
	Policy  Policy            `cbor:"6,keyasint"`
	Codes   CodeParams        `cbor:"7,keyasint"`
	Keys    []PinnedKey       `cbor:"8,keyasint,omitempty"`
	Brokers []string          `cbor:"9,keyasint,omitempty"`
	// DeviceCode names the only device that may apply it.
	DeviceCode string `cbor:"10,keyasint"`
}

// ResultOK is the result of a configuration that a cabinet has applied; any other
// text says why it has not.
const ResultOK = "ok"

// Sizes are those of compartments for parcels, in growing order.
func Sizes() []string { return []string{"S", "M", "L", "XL"} }

// SizeStaff is the size of a compartment that no delivery may be given: a screen's, a
// battery's.
const SizeStaff = "staff"

// TextNotice is the key of the text that a cabinet shows on its screen, one line.
const TextNotice = "notice"

// LayoutDoor maps a door to its lock. Display is the number people see, 0 when
// none. Inverted is the polarity of the hook switch.
type LayoutDoor struct {
	_        struct{} `cbor:",toarray"`
	Door     uint
	Board    string
	Channel  uint // from 1
	Inverted bool
	Size     string
	Display  uint
	Label    string
}

// Hours are opening hours of one weekday, 0 is Sunday, "HH:MM".
type Hours struct {
	_     struct{} `cbor:",toarray"`
	Day   uint8
	Open  string
	Close string
}

// Times are the cabinet's waits in milliseconds; 0 takes the default of
// DefaultTimes.
type Times struct {
	DebounceMS     uint32 `cbor:"1,keyasint,omitempty"`
	MinOpenMS      uint32 `cbor:"2,keyasint,omitempty"`
	OpenWaitMS     uint32 `cbor:"3,keyasint,omitempty"`
	SettleMS       uint32 `cbor:"4,keyasint,omitempty"`
	SessionS       uint32 `cbor:"5,keyasint,omitempty"`
	PulseMS        uint32 `cbor:"6,keyasint,omitempty"`
	PulseGapMS     uint32 `cbor:"7,keyasint,omitempty"`
	PollIdleMS     uint32 `cbor:"8,keyasint,omitempty"`
	HintS          uint32 `cbor:"9,keyasint,omitempty"`
	LeftOpenSoundS uint32 `cbor:"10,keyasint,omitempty"`
	ReopenS        uint32 `cbor:"11,keyasint,omitempty"`
}

// DefaultTimes are the waits of a cabinet without other settings.
func DefaultTimes() Times {
	return Times{
		DebounceMS: 150, MinOpenMS: 800, OpenWaitMS: 1500, SettleMS: 2000, SessionS: 600,
		PulseMS: 500, PulseGapMS: 300, PollIdleMS: 1000, HintS: 20, LeftOpenSoundS: 120, ReopenS: 60,
	}
}

// WithDefaults returns t with every zero replaced by its default.
func (t Times) WithDefaults() Times {
	d := DefaultTimes()
	for _, f := range []struct{ v, def *uint32 }{
		{&t.DebounceMS, &d.DebounceMS}, {&t.MinOpenMS, &d.MinOpenMS}, {&t.OpenWaitMS, &d.OpenWaitMS},
		{&t.SettleMS, &d.SettleMS}, {&t.SessionS, &d.SessionS}, {&t.PulseMS, &d.PulseMS},
		{&t.PulseGapMS, &d.PulseGapMS}, {&t.PollIdleMS, &d.PollIdleMS}, {&t.HintS, &d.HintS},
		{&t.LeftOpenSoundS, &d.LeftOpenSoundS}, {&t.ReopenS, &d.ReopenS},
	} {
		if *f.v == 0 {
			*f.v = *f.def
		}
	}
	return t
}

// Policy says what the cabinet may decide alone.
type Policy struct {
	LocalDropOff bool `cbor:"1,keyasint,omitempty"`
	OfflineTrust bool `cbor:"2,keyasint,omitempty"`
	RetainDays   uint `cbor:"3,keyasint,omitempty"`
}

// CodeParams are the cost of one code try: argon2id with one thread.
type CodeParams struct {
	MemoryKiB uint32 `json:"MemoryKiB" cbor:"1,keyasint"`
	Passes    uint32 `json:"Passes" cbor:"2,keyasint"`
}

// PinnedKey is one of the cloud's public keys that the agent trusts.
type PinnedKey struct {
	ID  []byte `cbor:"1,keyasint" json:"id"`
	Key []byte `cbor:"2,keyasint" json:"key"` // Ed25519, 32 bytes
}

// Check reports everything wrong with c as the configuration of a cabinet, or nil.
func (c *Config) Check() error {
	if len(c.Layout) == 0 {
		return errors.Join(errors.New("layout has no doors"), c.check())
	}
	return c.check()
}

// CheckPost reports everything wrong with c as the configuration of a warehouse post, which
// has no doors, or nil.
func (c *Config) CheckPost() error {
	if n := len(c.Layout); n > 0 {
		return errors.Join(fmt.Errorf("a warehouse post has no doors, and the layout has %d", n), c.check())
	}
	return c.check()
}

// check reports everything wrong with c, whatever the number of its doors.
func (c *Config) check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if c.Version == 0 {
		bad("version is 0")
	}
	doors, places := map[uint]bool{}, map[string]bool{}
	for _, d := range c.Layout {
		place := fmt.Sprintf("%s/%d", d.Board, d.Channel)
		switch {
		case d.Door == 0 || d.Channel == 0 || d.Board == "":
			bad("door %d: board %q, channel %d", d.Door, d.Board, d.Channel)
		case doors[d.Door]:
			bad("door %d is listed twice", d.Door)
		case places[place]:
			bad("two doors on %s", place)
		}
		doors[d.Door], places[place] = true, true
	}
	for _, h := range c.Hours {
		if h.Day > 6 {
			bad("opening hours for day %d", h.Day)
		}
	}
	t := c.Times.WithDefaults()
	switch {
	case t.PulseMS < 100 || t.PulseMS > 2000:
		bad("pulse of %d ms", t.PulseMS)
	case t.SessionS < 5 || t.SessionS > 7200:
		bad("session of %d s", t.SessionS)
	case t.DebounceMS > t.MinOpenMS:
		bad("debounce of %d ms is longer than the minimum open time", t.DebounceMS)
	}
	if c.Codes.MemoryKiB < 8 || c.Codes.MemoryKiB > 65536 || c.Codes.Passes == 0 || c.Codes.Passes > 64 {
		bad("code parameters %d KiB, %d passes", c.Codes.MemoryKiB, c.Codes.Passes)
	}
	for _, k := range c.Keys {
		if len(k.Key) != 32 || len(k.ID) == 0 || len(k.ID) > 32 {
			bad("pinned key %x", k.ID)
		}
	}
	return errors.Join(errs...)
}

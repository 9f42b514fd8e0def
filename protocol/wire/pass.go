package wire

import (
	"fmt"
	"slices"
	"time"
)

// PassInput is how a signed QR code is named where records say what was entered.
const PassInput = "signed_qr"

// Outcomes of a pass that codes and commands do not have.
const (
	PassForged       = "forged"        // not signed by the cloud, or changed since
	PassOtherCabinet = "other_cabinet" // for another cabinet
	PassUsed         = "used"          // it has opened doors already
	PassRevoked      = "revoked"       // the code list has withdrawn it
)

// Limits of a pass.
const (
	PassIDSize      = 16 // bytes
	MaxPassDoors    = 10
	MaxPassPackages = 20
	MaxCourierPass  = 8 * time.Hour
	MaxStaffPass    = 15 * time.Minute
)

// Pass is the payload of a signed QR code: the cloud's word that the person who shows it
// may open doors of one cabinet once, between two moments and without a network.
// Kind is OpenDeposit for the courier of a delivery and OpenStaff for staff.
type Pass struct {
	DeviceCode string      `cbor:"1,keyasint"`
	ID         []byte      `cbor:"2,keyasint"` // single use, PassIDSize random bytes
	Kind       OpeningKind `cbor:"3,keyasint"`
	Doors      []uint      `cbor:"4,keyasint"` // 1 to MaxPassDoors, each once
	NotBefore  int64       `cbor:"5,keyasint"` // unix ns
	NotAfter   int64       `cbor:"6,keyasint"` // unix ns; at most MaxCourierPass or MaxStaffPass later
	// Of a courier's pass: the delivery, its packages behind each door, and number and
	// generation of the code list's entry that the pass stands for. A cabinet whose
	// list has revoked the entry refuses the pass.
	DeliveryRef string            `cbor:"7,keyasint,omitempty"`
	Packages    map[uint][]string `cbor:"8,keyasint,omitempty"`
	CodeNumber  uint64            `cbor:"9,keyasint,omitempty"`
	Generation  uint64            `cbor:"10,keyasint,omitempty"`
}

// Check says what is wrong with a pass; the error wraps ErrBad.
func (p Pass) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: pass "+format, append([]any{ErrBad}, args...)...)
	}
	longest := MaxCourierPass
	if p.Kind == OpenStaff {
		longest = MaxStaffPass
	}
	n := 0
	for door, refs := range p.Packages {
		if n += len(refs); !slices.Contains(p.Doors, door) {
			return bad("names packages behind door %d, which it does not open", door)
		}
	}
	for i, door := range p.Doors {
		if door == 0 || slices.Contains(p.Doors[:i], door) {
			return bad("names door %d twice, or door 0", door)
		}
	}
	switch {
	case p.Kind != OpenDeposit && p.Kind != OpenStaff:
		return bad("is of kind %q, not deposit or staff", p.Kind)
	case p.DeviceCode == "":
		return bad("names no cabinet")
	case len(p.ID) != PassIDSize:
		return bad("has an id of %d bytes, not %d", len(p.ID), PassIDSize)
	case len(p.Doors) == 0 || len(p.Doors) > MaxPassDoors:
		return bad("opens %d doors, not 1 to %d", len(p.Doors), MaxPassDoors)
	case n > MaxPassPackages:
		return bad("names %d packages, more than %d", n, MaxPassPackages)
	case p.NotBefore <= 0 || p.NotAfter <= p.NotBefore || p.NotAfter-p.NotBefore > int64(longest):
		return bad("is not valid for up to %s", longest)
	case p.Kind == OpenDeposit && (p.DeliveryRef == "" || n == 0 || p.CodeNumber == 0):
		return bad("of a courier names no delivery, package or entry of the code list")
	case p.Kind == OpenStaff && (p.DeliveryRef != "" || n != 0 || p.CodeNumber != 0 || p.Generation != 0):
		return bad("of staff names a delivery")
	}
	return nil
}

package cloud

import (
	"strings"
	"time"
)

// AliasID is of a number by which others know a thing.
type AliasID int64

// AliasIDs is their sequence.
const AliasIDs IDKind = "alias"

// Bounds of aliases.
const (
	AliasLife  = 180 * 24 * time.Hour // after the end of its thing; carriers use numbers again
	MaxAliases = 50                   // of a thing
)

// Alias is a number by which others know a thing, for a while. It gives no rights.
type Alias struct {
	Kept[AliasID]
	Thing      string     `row:",fixed"` // a Thing
	ShipmentID ShipmentID `row:",fixed"` // of it, 0 for a container
	Kind       string     `row:",fixed"` // carrier, package, sscc, epc, partner or legacy
	Issuer     string     `row:",fixed"` // that gave it, lower case; may be empty
	Value      string     `row:",fixed"`
	Key        string     `row:",fixed"` // value as it is compared
	Since      time.Time  `row:",fixed"`
	Until      time.Time  // zero: as long as the thing's end allows
	ProviderID ProviderID `row:",fixed"` // that added it, 0 for the business
}

// RowKind implements Row.
func (Alias) RowKind() IDKind { return AliasIDs }

// AliasKey is a value as it is compared: an EPC as it is written, numbers without regard to case and spaces.
func AliasKey(kind, value string) string {
	value = strings.TrimSpace(value)
	if kind == "epc" {
		return value
	}
	return strings.ToUpper(strings.Join(strings.Fields(value), ""))
}

// AliasView reads the present of aliases.
type AliasView interface {
	// AliasesByKey lists a business's aliases with a value, in the order of their ids.
	AliasesByKey(b BusinessID, key string) ([]Alias, error)
	// AliasesOf lists the aliases of a thing, in the order of their ids.
	AliasesOf(b BusinessID, thing string) ([]Alias, error)
}

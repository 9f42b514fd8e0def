package cloud

import (
	"fmt"
	"strconv"
	"strings"
)

// SiteID names a site.
type SiteID int64

// SiteIDs is their sequence.
const SiteIDs IDKind = "site"

// Site is a place at which cabinets stand and to which packages are distributed. Interfaces
// call its id location_id. Source: lockers-devices 6.
type Site struct {
	Kept[SiteID]
	Name     string         `row:",sort"`
	Address  string         // one line
	Timezone string         // of the hours; "" is that of the business
	Hours    []OpeningHours // empty: always open
}

// RowKind implements Row.
func (Site) RowKind() IDKind { return SiteIDs }

// AnnouncedPackageID names an announced package.
type AnnouncedPackageID int64

// AnnouncedPackageIDs is their sequence.
const AnnouncedPackageIDs IDKind = "announced_package"

// AnnouncedPackage is a package that a carrier has announced for a site. Source:
// lockers-devices 6.
type AnnouncedPackage struct {
	Kept[AnnouncedPackageID]
	ProviderID       ProviderID `row:",fixed"`
	CarrierReference string     `row:",fixed"` // of the carrier, unique among its packages
	MemberNumber     string     `row:",fixed"` // of the recipient at the carrier
	TrackingNumber   string     `row:",fixed"`
	Recipient        Recipient  `row:",fixed"`
	SiteID           SiteID     `row:",fixed"`
	Size             string     `row:",fixed"`
	Weight           float64    `row:",fixed"`
	Status           string     // announced
	RequestHash      []byte     `row:",fixed,secret"` // of what the carrier sent
}

// RowKind implements Row.
func (AnnouncedPackage) RowKind() IDKind { return AnnouncedPackageIDs }

// PackageAnnounced is the state of a package that no distribution order has yet.
const PackageAnnounced = "announced"

// packageNumberPrefix begins the numbers of announced packages.
const packageNumberPrefix = "CPD-PKG-"

// Number is the number of the package for all who handle it: CPD-PKG- and its id.
func (p AnnouncedPackage) Number() string { return fmt.Sprint(packageNumberPrefix, int64(p.ID)) }

// ParsePackageNumber is the id in the number of an announced package; ok is false for what
// is none.
func ParsePackageNumber(s string) (id AnnouncedPackageID, ok bool) {
	digits, ok := strings.CutPrefix(s, packageNumberPrefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return AnnouncedPackageID(n), ok && err == nil && n > 0 && strconv.FormatInt(n, 10) == digits
}

package locker

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// LockerRow is a cabinet as a provider sees it.
type LockerRow struct {
	DeviceID        cloud.DeviceID        `json:"device_id"`
	DeviceCode      string                `json:"device_code"`
	DeviceName      string                `json:"device_name"`
	DeviceType      string                `json:"device_type" doc:"smart_locker, kiosk or smart_drop"`
	BusinessID      cloud.BusinessID      `json:"business_id"`
	OwnerProviderID *cloud.ProviderID     `json:"owner_provider_id" doc:"Null: providers of the business share it"`
	Protocol        string                `json:"protocol" doc:"mqtt, http or mock"`
	Firmware        string                `json:"firmware" doc:"Version of its program; empty until it has said so"`
	LastSeenAt      *string               `json:"last_seen_at"`
	Address         string                `json:"address"`
	PostalCode      string                `json:"postal_code" doc:"Empty while it is not known"`
	Country         string                `json:"country" doc:"ISO 3166-1 alpha-2; empty while it is not known"`
	LocationID      *cloud.SiteID         `json:"location_id" doc:"Site at which it stands"`
	Latitude        *float64              `json:"latitude" doc:"Degrees; null while it is not known where it stands"`
	Longitude       *float64              `json:"longitude"`
	Timezone        string                `json:"timezone"`
	Livemode        bool                  `json:"livemode" doc:"False for a test locker"`
	Status          string                `json:"status" doc:"online, offline, maintenance, disabled or retired"`
	Features        cloud.DeviceFeatures  `json:"features"`
	OpeningHours    *[]cloud.OpeningHours `json:"opening_hours" doc:"Null is always open"`
	IndoorGuide     *cloud.IndoorGuide    `json:"indoor_guide"`
	GridCounts      map[string]int        `json:"grid_counts" graphql:"JSON" doc:"Compartments for pickup, by size"`
	Availability    map[string]int        `json:"availability" graphql:"JSON" doc:"Those of them that are free now, by size; where a list was asked for a size, of those that take it"`
	DistanceKM      *float64              `json:"distance_km" doc:"From the place that was asked for; null without one"`
}

// LockerGrid is a compartment as a provider sees it: nothing of what lies inside.
type LockerGrid struct {
	GridID       cloud.GridID `json:"grid_id"`
	GridCode     string       `json:"grid_code"`
	Door         uint         `json:"compartment_number"`
	PickupNumber *int         `json:"pickup_locker_number"`
	PickupLabel  *string      `json:"pickup_locker_code"`
	Column       int          `json:"column"`
	Row          int          `json:"row" doc:"1 is on top"`
	Size         string       `json:"size" doc:"S, M, L or XL"`
	Inner        *cloud.Inner `json:"inner" doc:"Measures inside; null while they are not known"`
	Available    bool         `json:"available" doc:"It is free now"`
}

// LockerShelf is a column block of a cabinet.
type LockerShelf struct {
	ShelfCode string       `json:"shelf_code"`
	Grids     []LockerGrid `json:"grids" doc:"Compartments for pickup, by column and row"`
}

// LockerBody is a cabinet with its compartments.
type LockerBody struct {
	LockerRow
	Shelves []LockerShelf `json:"shelves" doc:"From left to right"`
}

// LockersInput asks for a part of the cabinets that a provider may use.
type LockersInput struct {
	Latitude   *float64 `query:"latitude" min:"-90" max:"90" with:"longitude" doc:"Degrees; with a place the nearest locker comes first, without one the newest"`
	Longitude  *float64 `query:"longitude" min:"-180" max:"180" with:"latitude" doc:"Degrees"`
	RadiusKM   float64  `query:"radius_km" min:"0.1" max:"50" doc:"About the place; 10 when left out"`
	PostalCode string   `query:"postal_code" max:"20" pattern:"^ *[0-9A-Za-z][0-9A-Za-z -]*$" example:"M5V 2T6" doc:"The whole of it; blanks and capital letters make no difference"`
	Country    string   `query:"country" format:"country" doc:"ISO 3166-1 alpha-2, such as CA"`
	Size       string   `query:"size" enum:"S,M,L,XL" doc:"Lockers with a compartment that takes it, free or not"`
	Keyword    string   `query:"keyword" max:"80" doc:"Part of the name, the code or the address"`
	Livemode   *bool    `query:"livemode" doc:"Live lockers or test lockers alone"`
	check.Keyset
}

// LockersOutput lists cabinets.
type LockersOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Lockers []LockerRow `json:"lockers"`
}

// defaultRadius is how far lockers are looked for about a place, in kilometres.
const defaultRadius = 10

// circleAbout is where lockers are looked for about a place; a radius of 0 is the usual one.
func circleAbout(latitude, longitude, km float64) *cloud.Circle {
	return &cloud.Circle{Latitude: latitude, Longitude: longitude, Meters: int(math.Round(cmp.Or(km, defaultRadius) * 1000))}
}

// ListLockers lists a part of the cabinets that the calling provider may use and that take
// deliveries. Errors: VALIDATION_FAILED.
func (s partners) ListLockers(ctx context.Context, c cloud.Caller, in LockersInput) (out LockersOutput, err error) {
	f := cloud.DeviceFilter{BusinessID: c.Provider.BusinessID, UsableBy: c.Provider.ID, Keyword: in.Keyword, PostalCode: cloud.PostalKey(in.PostalCode), Country: strings.ToUpper(in.Country), Livemode: in.Livemode}
	sort := "-id"
	if in.Latitude != nil && in.Longitude != nil {
		f.Near, sort = circleAbout(*in.Latitude, *in.Longitude, in.RadiusKM), "distance"
	}
	if in.Size != "" {
		f.Sizes = sizes[slices.Index(sizes, in.Size):]
	}
	if f.Page, err = in.Part(in, sort); err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Provider.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := v.Devices(f)
		if err != nil {
			return err
		}
		out = LockersOutput{Result: true, PageOutput: in.Output(in, listed), Lockers: []LockerRow{}}
		for _, d := range list {
			facts, err := readFacts(v, d, biz.Location())
			if err != nil {
				return err
			}
			row := facts.lockerRow(in.Size)
			if f.Near != nil {
				row.DistanceKM = new(math.Round(f.Near.Distance(d.Latitude, d.Longitude)) / 1000)
			}
			out.Lockers = append(out.Lockers, row)
		}
		return nil
	})
	return out, err
}

// lockerRow shows a device to a provider; size leaves in its availability what takes it.
func (f deviceFacts) lockerRow(size string) LockerRow {
	d := f.device
	out := LockerRow{DeviceID: d.ID, DeviceCode: d.Code, DeviceName: d.Name, DeviceType: d.Type, Address: d.Address, PostalCode: d.PostalCode, Country: d.Country, LocationID: cloud.OrNull(d.Profile.SiteID), Timezone: d.Timezone,
		BusinessID: d.BusinessID, OwnerProviderID: cloud.OrNull(d.OwnerProviderID), Protocol: d.Protocol, Firmware: d.Firmware, LastSeenAt: cloud.Stamp(d.LastSeenAt, f.zone),
		Livemode: d.Livemode, Status: d.Status(f.online), Features: f.features(), IndoorGuide: d.Profile.Guide, OpeningHours: f.hours(), GridCounts: f.gridCounts(), Availability: map[string]int{}}
	out.Latitude, out.Longitude = d.Place()
	for _, have := range sizes {
		if fits(size, have) {
			out.Availability[have] = 0
		}
	}
	for _, c := range f.cells {
		if d.TakesDeliveries() && isFree(c) && fits(size, c.Size) {
			out.Availability[c.Size]++
		}
	}
	return out
}

// LockerInput names a cabinet.
type LockerInput struct {
	Device cloud.DeviceID `path:"device_id" json:"-"`
}

// LockerOutput shows a cabinet.
type LockerOutput struct {
	Result bool       `json:"result"`
	Locker LockerBody `json:"locker"`
}

// FindLocker shows a cabinet that the calling provider may use, with its compartments for
// pickup. Errors: DEVICE_NOT_FOUND, DEVICE_NOT_SHARED.
func (s partners) FindLocker(ctx context.Context, c cloud.Caller, in LockerInput) (out LockerOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		facts, err := factsFor(v, c, in.Device)
		if err != nil {
			return err
		}
		out = LockerOutput{Result: true, Locker: LockerBody{LockerRow: facts.lockerRow(""), Shelves: []LockerShelf{}}}
		for _, shelf := range facts.shelves {
			block := LockerShelf{ShelfCode: shelf.Code, Grids: []LockerGrid{}}
			for _, c := range facts.cells {
				if c.ShelfCode == shelf.Code && c.PickupEnabled {
					block.Grids = append(block.Grids, LockerGrid{GridID: c.GridID, GridCode: c.GridCode, Door: c.Door, PickupNumber: cloud.OrNull(c.PickupNumber), PickupLabel: cloud.OrNull(c.Label),
						Column: c.Column, Row: c.Row, Size: c.Size, Inner: cloud.OrNull(c.Inner), Available: facts.device.TakesDeliveries() && isFree(c)})
				}
			}
			slices.SortFunc(block.Grids, func(a, b LockerGrid) int {
				return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.Row, b.Row))
			})
			out.Locker.Shelves = append(out.Locker.Shelves, block)
		}
		return nil
	})
	return out, err
}

// factsFor reads what a device is shown by to the calling provider.
func factsFor(v cloud.View, c cloud.Caller, id cloud.DeviceID) (deviceFacts, error) {
	d, err := Usable(v, c, id)
	if err != nil {
		return deviceFacts{}, err
	}
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return deviceFacts{}, err
	}
	return readFacts(v, d, biz.Location())
}

// AvailabilityInput asks for the free compartments of a cabinet.
type AvailabilityInput struct {
	Device cloud.DeviceID `path:"device_id" json:"-"`
	Size   string         `query:"size" enum:"S,M,L,XL" doc:"Compartments that take it alone"`
}

// AvailabilityOutput counts free compartments.
type AvailabilityOutput struct {
	Result       bool           `json:"result"`
	Availability map[string]int `json:"availability" graphql:"JSON" doc:"Free compartments by size"`
	Online       bool           `json:"online"`
	CheckedAt    *string        `json:"checked_at"`
}

// ShowAvailability counts the free compartments of a cabinet that the calling provider may
// use; one that takes no deliveries has none. Errors: DEVICE_NOT_FOUND, DEVICE_NOT_SHARED.
func (s partners) ShowAvailability(ctx context.Context, c cloud.Caller, in AvailabilityInput) (out AvailabilityOutput, err error) {
	now := time.Now()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Provider.BusinessID)
		if err != nil {
			return err
		}
		facts, err := factsFor(v, c, in.Device)
		if err != nil {
			return err
		}
		out = AvailabilityOutput{Result: true, Availability: facts.lockerRow(in.Size).Availability, Online: facts.online, CheckedAt: cloud.Stamp(now, biz.Location())}
		return nil
	})
	return out, err
}

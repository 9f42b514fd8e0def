package locker

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// PickupPoint is a cabinet as everybody sees it.
type PickupPoint struct {
	DeviceID     cloud.DeviceID        `json:"device_id"`
	DeviceCode   string                `json:"device_code"`
	Name         string                `json:"name"`
	Type         string                `json:"type" doc:"smart_locker, kiosk or smart_drop"`
	Address      string                `json:"address"`
	PostalCode   string                `json:"postal_code" doc:"Empty while it is not known"`
	Country      string                `json:"country" doc:"ISO 3166-1 alpha-2; empty while it is not known"`
	Latitude     *float64              `json:"latitude"`
	Longitude    *float64              `json:"longitude"`
	Timezone     string                `json:"timezone" doc:"Of its opening hours"`
	OpeningHours *[]cloud.OpeningHours `json:"opening_hours" doc:"Null is always open"`
	IndoorGuide  *cloud.IndoorGuide    `json:"indoor_guide"`
	Sizes        []string              `json:"sizes" doc:"Sizes of compartments that it has: S, M, L, XL"`
	Features     cloud.DeviceFeatures  `json:"features"`
	DistanceKM   *float64              `json:"distance_km" doc:"From the place that was asked for; null without one"`
	Preferred    bool                  `json:"preferred" doc:"By the customer who is signed in; false for all other callers"`
}

// PickupPointsInput asks for a part of the pickup points of a business.
type PickupPointsInput struct {
	ClientCode string   `query:"client_code" required:"true" max:"64" doc:"Code of the business whose pickup points are listed"`
	Latitude   *float64 `query:"latitude" min:"-90" max:"90" with:"longitude" doc:"Degrees; with a place the nearest comes first"`
	Longitude  *float64 `query:"longitude" min:"-180" max:"180" with:"latitude" doc:"Degrees"`
	RadiusKM   float64  `query:"radius_km" min:"0.1" max:"50" doc:"About the place; 10 when left out"`
	Text       string   `query:"q" max:"80" doc:"Part of the name, the code or the address"`
	Type       string   `query:"type" enum:"smart_locker,kiosk,smart_drop"`
	check.Keyset
}

// PickupPointsOutput lists pickup points.
type PickupPointsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	PickupPoints []PickupPoint `json:"pickup_points"`
}

// ListPickupPoints lists a part of the live cabinets that a business shows to everybody and
// that take deliveries now, for every caller. For a customer of the business who is signed
// in the preferred one is first, on the first page alone. Errors: CLIENT_NOT_FOUND, VALIDATION_FAILED. Source:
// lockers-devices 11.
func (s recipients) ListPickupPoints(ctx context.Context, c cloud.Caller, in PickupPointsInput) (out PickupPointsOutput, err error) {
	f := cloud.DeviceFilter{Keyword: in.Text, Type: in.Type, Public: true, Livemode: new(true)}
	sort := "name"
	if in.Latitude != nil && in.Longitude != nil {
		f.Near, sort = circleAbout(*in.Latitude, *in.Longitude, in.RadiusKM), "distance"
	}
	if f.Page, err = in.Part(in, sort); err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.BusinessByCode(in.ClientCode)
		if errors.Is(err, cloud.ErrNotFound) {
			return cloud.E(cloud.NotFound, "CLIENT_NOT_FOUND")
		}
		if err != nil {
			return err
		}
		f.BusinessID = biz.ID
		list, listed, err := v.Devices(f)
		if err != nil {
			return err
		}
		out = PickupPointsOutput{Result: true, PageOutput: in.Output(in, listed), PickupPoints: []PickupPoint{}}
		preferred := cloud.DeviceID(0)
		if preferred, list, err = preferFirst(v, c, biz.ID, f, list); err != nil {
			return err
		}
		ids := make([]cloud.DeviceID, len(list))
		for i, d := range list {
			ids[i] = d.ID
		}
		has, err := v.PickupSizes(ids)
		if err != nil {
			return err
		}
		for _, d := range list {
			p := pickupPoint(d, has[d.ID])
			p.Preferred = d.ID == preferred
			if f.Near != nil {
				p.DistanceKM = new(math.Round(f.Near.Distance(d.Latitude, d.Longitude)) / 1000)
			}
			out.PickupPoints = append(out.PickupPoints, p)
		}
		return nil
	})
	return out, err
}

// pickupPoint shows a cabinet with compartments of sizes.
func pickupPoint(d cloud.Device, has []string) PickupPoint {
	p := PickupPoint{DeviceID: d.ID, DeviceCode: d.Code, Name: d.Name, Type: d.Type, Address: d.Address, PostalCode: d.PostalCode, Country: d.Country, Timezone: d.Timezone, OpeningHours: deviceFacts{device: d}.hours(), IndoorGuide: d.Profile.Guide,
		Sizes: []string{}, Features: d.Profile.Features}
	p.Latitude, p.Longitude = d.Place()
	p.Features.RemoteOpen = p.Features.RemoteOpen || len(has) > 0
	for _, size := range sizes {
		if slices.Contains(has, size) {
			p.Sizes = append(p.Sizes, size)
		}
	}
	return p
}

package route

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Point is where a driver was at one moment.
type Point struct {
	Latitude   *float64 `json:"latitude" required:"true" min:"-90" max:"90"`
	Longitude  *float64 `json:"longitude" required:"true" min:"-180" max:"180"`
	Accuracy   *float64 `json:"accuracy_m" min:"0" max:"100000" doc:"Metres"`
	Heading    *float64 `json:"heading" min:"0" max:"360" doc:"Degrees from north, clockwise"`
	Speed      *float64 `json:"speed_kmh" min:"0" max:"1000"`
	Battery    *int     `json:"battery" min:"0" max:"100" doc:"Per cent"`
	RecordedAt string   `json:"recorded_at" format:"date-time" doc:"Now when absent; a clock that is ahead counts as now"`
}

// LocateInput is where the calling driver was, in any order. Points that come
// late are welcome: the newest counts.
type LocateInput struct {
	Points []Point `json:"points" required:"true" min:"1" max:"100"`
}

// LocateOutput is the answer to Locate.
type LocateOutput struct {
	Result   bool `json:"result"`
	Accepted int  `json:"accepted"`
}

// Locate takes points of the calling driver's way. Error: VALIDATION_FAILED, of
// which none is kept.
func (s *Service) Locate(ctx context.Context, c cloud.Caller, in LocateInput) (LocateOutput, error) {
	r, err := driver(c)
	if err != nil {
		return LocateOutput{}, err
	}
	now := s.time()
	places := in.read(now)
	newest := places[0] // by the driver's clock, of equals the one that stands last
	for _, x := range places[1:] {
		if !x.RecordedAt.Before(newest.RecordedAt) {
			newest = x
		}
	}
	if newest.RecordedAt.After(now) {
		newest.RecordedAt = now
	}
	newest.AccountID, newest.BusinessID = r.driver, r.business
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		d, err := r.person(v, r.driver)
		if err != nil {
			return nil, err
		}
		return s.arrive(v, d, newest, now)
	})
	return LocateOutput{Result: err == nil, Accepted: len(places)}, err
}

func (in LocateInput) read(now time.Time) (out []cloud.DriverPlace) {
	for _, p := range in.Points {
		recorded := now
		if p.RecordedAt != "" {
			recorded = check.Moment(p.RecordedAt, time.UTC).Truncate(time.Millisecond)
		}
		out = append(out, cloud.DriverPlace{Latitude: *p.Latitude, Longitude: *p.Longitude, Accuracy: p.Accuracy, Heading: p.Heading, Speed: p.Speed, Battery: p.Battery, RecordedAt: recorded})
	}
	return out
}

// PlaceBody is where a driver was last.
type PlaceBody struct {
	Latitude   float64  `json:"latitude"`
	Longitude  float64  `json:"longitude"`
	Heading    *float64 `json:"heading"`
	Speed      *float64 `json:"speed_kmh"`
	RecordedAt *string  `json:"recorded_at"`
}

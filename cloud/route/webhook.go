package route

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

const eventDuty = "driver.on_duty_changed"

//go:embed samples.json
var samples []byte

// Events are those of drivers that businesses can receive.
func Events() []cloud.HookEvent {
	var bodies map[string]json.RawMessage
	if err := json.Unmarshal(samples, &bodies); err != nil {
		panic("route: embedded samples: " + err.Error())
	}
	return []cloud.HookEvent{
		{Name: eventDuty, Family: "lifecycle", Settings: []string{cloud.HookOrderLifecycle}, ReferenceType: "driver", Prefix: "DLE-", Data: hookDuty{}, Sample: bodies[eventDuty],
			About: "A driver began or ended work."},
		{Name: cloud.EventDriverPlace, Family: "driver_location", Settings: []string{cloud.HookDriverPlace}, ReferenceType: "driver", Prefix: "DLU-", Data: hookPlace{}, Sample: bodies[cloud.EventDriverPlace],
			About: "A driver is somewhere else; one event per driver in driver_location_min_interval_sec, with the newest place. What waits gives way to what is newer."},
	}
}

// hookDuty is the data of driver.on_duty_changed.
type hookDuty struct {
	Driver   order.HookDriver `json:"driver"`
	OnDuty   bool             `json:"on_duty"`
	Source   string           `json:"source"` // driver_app
	Reason   *string          `json:"reason"`
	Shift    *hookShift       `json:"shift"`
	Location *hookSpot        `json:"location"`
}

type hookShift struct {
	Start *string `json:"start"`
	End   *string `json:"end"`
}

type hookSpot struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// hookPlace is the data of driver.location_update.
type hookPlace struct {
	Driver   order.HookDriver `json:"driver"`
	Location hookLocation     `json:"location"`
	OnDuty   bool             `json:"on_duty"`
	RouteIDs []cloud.RouteID  `json:"route_ids"`
	Battery  *int             `json:"battery"` // per cent
}

type hookLocation struct {
	hookSpot
	Accuracy   *float64 `json:"accuracy_m"`
	Heading    *float64 `json:"heading"` // degrees from north, clockwise
	Speed      *float64 `json:"speed_kmh"`
	RecordedAt *string  `json:"recorded_at"`
}

func driverEvent(d cloud.Driver, now time.Time, setting, name, id string, data func() (any, error)) cloud.AccountEvent {
	return cloud.AccountEvent{BusinessID: d.Account.BusinessID, Settings: []string{setting}, Event: name, ID: id, ReferenceType: "driver",
		ReferenceID: strconv.FormatInt(int64(d.Account.ID), 10), OccurredAt: now, Data: func(int64, bool) (any, error) { return data() }}
}

// tellDuty tells that a driver began or ended work.
func (s *Service) tellDuty(v cloud.View, d cloud.Driver, now time.Time) ([]cloud.OutboxWrite, error) {
	return s.webhooks.FanOut(v, driverEvent(d, now, cloud.HookOrderLifecycle, eventDuty, "DLE-", func() (any, error) {
		b, err := v.Business(d.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		out := hookDuty{Driver: order.TellDriver(d), OnDuty: d.OnDuty, Source: "driver_app", Shift: shiftAt(d, now, b.Location())}
		p, err := v.DriverPlace(d.Account.BusinessID, d.Account.ID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && now.Sub(p.RecordedAt) > cloud.PlaceFresh {
			return out, nil
		}
		out.Location = &hookSpot{p.Latitude, p.Longitude}
		return out, err
	}))
}

// shiftAt is the shift of a driver that now is in, else that of today; nil when
// the driver has none.
func shiftAt(d cloud.Driver, now time.Time, zone *time.Location) *hookShift {
	if d.ShiftStart == "" || d.ShiftEnd == "" {
		return nil
	}
	year, month, day := now.In(zone).Date()
	at := func(clock string, days int) time.Time {
		t, _ := time.Parse("15:04", clock) // was checked when it was stored
		return time.Date(year, month, day+days, t.Hour(), t.Minute(), 0, 0, zone)
	}
	night := 0
	if d.ShiftEnd < d.ShiftStart {
		night = 1
	}
	start, end := at(d.ShiftStart, 0), at(d.ShiftEnd, night)
	if before := at(d.ShiftEnd, night-1); night == 1 && now.Before(before) {
		start, end = at(d.ShiftStart, -1), before
	}
	return &hookShift{cloud.Stamp(start, zone), cloud.Stamp(end, zone)}
}

// arrive keeps where a driver is now, and sends it, or says when that is to
// be sent: the first place of a shift at once, and then the newest whenever the
// interval has passed.
func (s *Service) arrive(v cloud.View, d cloud.Driver, p cloud.DriverPlace, now time.Time) (*cloud.Changes, error) {
	before, err := v.DriverPlace(p.BusinessID, p.AccountID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return nil, err
	}
	if !p.RecordedAt.After(before.RecordedAt) {
		return nil, nil
	}
	p.SentAt = before.SentAt
	every, err := placeEvery(v, p.BusinessID)
	if err != nil || every == 0 {
		return &cloud.Changes{PlaceChanges: cloud.PlaceChanges{DriverPlaces: []cloud.DriverPlace{p}}, Unaudited: true}, err
	}
	p.DueAt = p.SentAt.Add(every)
	if d.OnDuty && d.DutySince.After(p.SentAt) {
		p.DueAt = p.SentAt.Add(time.Second) // the id of an event has its second
	}
	return s.tellPlace(v, d, p, now)
}

// tellPlace tells of a place if it is due.
func (s *Service) tellPlace(v cloud.View, d cloud.Driver, p cloud.DriverPlace, now time.Time) (*cloud.Changes, error) {
	if p.DueAt.After(now) {
		return &cloud.Changes{PlaceChanges: cloud.PlaceChanges{DriverPlaces: []cloud.DriverPlace{p}}, Unaudited: true}, nil
	}
	p.SentAt, p.DueAt = now, time.Time{}
	told, err := s.webhooks.FanOut(v, driverEvent(d, now, cloud.HookDriverPlace, cloud.EventDriverPlace, fmt.Sprintf("DLU-%d-%d", d.Account.ID, now.Unix()), func() (any, error) {
		b, err := v.Business(p.BusinessID)
		if err != nil {
			return nil, err
		}
		out := hookPlace{Driver: order.TellDriver(d), OnDuty: d.OnDuty, RouteIDs: []cloud.RouteID{}, Battery: p.Battery,
			Location: hookLocation{hookSpot{p.Latitude, p.Longitude}, p.Accuracy, p.Heading, p.Speed, cloud.Stamp(p.RecordedAt, b.Location())}}
		out.RouteIDs, err = active(v, d, now.In(b.Location()))
		return out, err
	}))
	return &cloud.Changes{PlaceChanges: cloud.PlaceChanges{DriverPlaces: []cloud.DriverPlace{p}}, OutboxChanges: cloud.OutboxChanges{Outbox: told}, Unaudited: true}, err
}

// active are the routes that a driver has today, or still drives since yesterday.
func active(v cloud.View, d cloud.Driver, now time.Time) ([]cloud.RouteID, error) {
	out, today := []cloud.RouteID{}, now.Format(time.DateOnly)
	routes, _, err := v.Routes(cloud.RouteFilter{BusinessID: d.Account.BusinessID, DriverID: d.Account.ID, DateFrom: now.AddDate(0, 0, -1).Format(time.DateOnly), DateTo: today,
		Page: cloud.Page{Sort: "id", Limit: maxPage}})
	if err != nil {
		return nil, err
	}
	for _, x := range routes {
		switch x.Phase() {
		case cloud.RouteDispatched:
			if x.Date == today {
				out = append(out, x.ID)
			}
		case cloud.RouteInProgress:
			orders, err := v.RouteOrders(x.BusinessID, x.ID)
			if err != nil {
				return nil, err
			}
			if x.Status(stopsOf(x.ID, orders)) == cloud.RouteInProgress {
				out = append(out, x.ID)
			}
		}
	}
	return out, nil
}

// placeEvery is the least time between two places of a driver that a business receives; 0:
// it does not.
func placeEvery(v cloud.View, b cloud.BusinessID) (time.Duration, error) {
	w, err := v.WebhookSettings(b, 0)
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return 0, nil
	case err != nil || w.Off || len(w.URLs[cloud.HookDriverPlace]) == 0:
		return 0, err
	case w.PlaceEvery == 0:
		return cloud.PlaceEvery, nil
	}
	return w.PlaceEvery, nil
}

const (
	duePoll  = time.Second
	dueBatch = 100
)

// Run tells of places whose time has come, until ctx ends. Several nodes may:
// each place is sent once.
func (s *Service) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(duePoll)
	defer tick.Stop()
	for {
		if err := s.tellDue(ctx); err != nil && ctx.Err() == nil {
			log.Error("locations of drivers cannot be published now", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) tellDue(ctx context.Context) error {
	for {
		now := s.time()
		due, err := s.store.DuePlaces(ctx, now, dueBatch)
		if err != nil {
			return err
		}
		var errs []error
		for _, p := range due { // one that cannot be sent does not hold up the others
			if err := s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) { return s.due(v, p, now) }); err != nil {
				errs = append(errs, fmt.Errorf("place of driver %d: %w", p.AccountID, err))
			}
		}
		if err := errors.Join(errs...); err != nil || len(due) < dueBatch {
			return err
		}
	}
}

// due sends a driver's place as it is now, unless another node has.
func (s *Service) due(v cloud.View, p cloud.DriverPlace, now time.Time) (*cloud.Changes, error) {
	place, err := v.DriverPlace(p.BusinessID, p.AccountID)
	if err != nil || place.DueAt.IsZero() || place.DueAt.After(now) {
		return nil, err
	}
	every, err := placeEvery(v, p.BusinessID)
	if err != nil {
		return nil, err
	}
	d, err := v.Driver(p.BusinessID, p.AccountID)
	if every == 0 || errors.Is(err, cloud.ErrNotFound) { // the business wants none, or there is no driver
		place.DueAt = time.Time{}
		return &cloud.Changes{PlaceChanges: cloud.PlaceChanges{DriverPlaces: []cloud.DriverPlace{place}}, Unaudited: true}, nil
	}
	if err != nil {
		return nil, err
	}
	return s.tellPlace(v, d, place, now)
}

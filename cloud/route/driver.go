package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// DriverBody is a driver as answers show it (interface 7.1).
type DriverBody struct {
	DriverID cloud.AccountID    `json:"driver_id"`
	Name     string             `json:"name"`
	Phone    *string            `json:"phone"`
	Email    string             `json:"email"`
	Status   cloud.DriverStatus `json:"status" doc:"active, inactive or pending_review"`
	OnDuty   bool               `json:"on_duty"`
	Skills   []string           `json:"skills"`
	Vehicle  VehicleBody        `json:"vehicle"`
	BrokerID *cloud.AccountID   `json:"broker_id"`
	Shift    *Shift             `json:"shift"`
	Today    Today              `json:"today"`
	Place    *PlaceBody         `json:"last_location"`
}

// VehicleBody is what a driver drives.
type VehicleBody struct {
	ID               *int64   `json:"id"`
	Type             *string  `json:"type"`
	Plate            *string  `json:"plate"`
	CapacityWeight   *float64 `json:"capacity_weight" doc:"kg"`
	CapacityVolume   *float64 `json:"capacity_volume" doc:"m³"`
	CapacityPackages *int     `json:"capacity_packages"`
}

// Shift is when a driver works, in the business's time zone.
type Shift struct {
	Start string `json:"start" format:"time" with:"end"`
	End   string `json:"end" format:"time" with:"start" doc:"Over midnight when it is before the start"`
}

// Today is what a driver has on the present day of the business.
type Today struct {
	RouteIDs []cloud.RouteID `json:"route_ids"`
	Stops    int             `json:"stops_total"`
	Done     int             `json:"stops_done" doc:"That have ended, one way or another"`
}

// day reads what a driver has on a date.
func day(v cloud.View, d cloud.Driver, date string) (Today, error) {
	out := Today{RouteIDs: []cloud.RouteID{}}
	routes, _, err := v.Routes(cloud.RouteFilter{BusinessID: d.Account.BusinessID, DriverID: d.Account.ID, DateFrom: date, DateTo: date,
		Page: cloud.Page{Sort: "id", Limit: maxPage}})
	for _, x := range routes {
		if x.Phase() == cloud.RouteCancelled {
			continue
		}
		orders, err := v.RouteOrders(x.BusinessID, x.ID)
		if err != nil {
			return out, err
		}
		out.RouteIDs = append(out.RouteIDs, x.ID)
		for _, stop := range stopsOf(x.ID, orders) {
			out.Stops++
			if stop.State != cloud.StopPending {
				out.Done++
			}
		}
	}
	return out, err
}

func showDriver(v cloud.View, d cloud.Driver, date string) (DriverBody, error) {
	x := d.Vehicle
	b := DriverBody{DriverID: d.Account.ID, Name: d.Account.Name, Phone: cloud.OrNull(d.Phone), Email: d.Account.Email, Status: d.Status(), OnDuty: d.OnDuty,
		Skills: append([]string{}, d.Skills...), BrokerID: cloud.OrNull(d.BrokerID),
		Vehicle: VehicleBody{cloud.OrNull(x.ID), cloud.OrNull(x.Type), cloud.OrNull(x.Plate), cloud.OrNull(x.CapacityWeight), cloud.OrNull(x.CapacityVolume), cloud.OrNull(x.CapacityPackages)}}
	if d.ShiftStart != "" {
		b.Shift = &Shift{d.ShiftStart, d.ShiftEnd}
	}
	p, err := v.DriverPlace(d.Account.BusinessID, d.Account.ID)
	switch {
	case err == nil:
		business, err := v.Business(d.Account.BusinessID)
		if err != nil {
			return b, err
		}
		b.Place = &PlaceBody{p.Latitude, p.Longitude, p.Heading, p.Speed, cloud.Stamp(p.RecordedAt, business.Location())}
	case !errors.Is(err, cloud.ErrNotFound):
		return b, err
	}
	b.Today, err = day(v, d, date)
	return b, err
}

// today is the present date of a business.
func (s *Service) today(v cloud.View, id cloud.BusinessID) (string, error) {
	b, err := v.Business(id)
	return s.time().In(b.Location()).Format(time.DateOnly), err
}

// DriversInput asks for a page of drivers. Fields that are not given do not
// filter.
type DriversInput struct {
	Status   string          `query:"status" json:"status" enum:"active,inactive,pending_review"`
	OnDuty   *bool           `query:"on_duty" json:"on_duty"`
	Skill    string          `query:"skill" json:"skill" doc:"A skill code that the driver has"`
	BrokerID cloud.AccountID `query:"broker_id" json:"broker_id" doc:"Whose drivers; contractors see their own"`
	Keyword  string          `query:"keyword" json:"keyword" max:"100" line:"true" doc:"A part of the name, email or telephone number"`
	check.Keyset
	Sort string `query:"sort" json:"sort" enum:"-id,id,-name,name,-email,email,-created_at,created_at" doc:"-id when absent"`
}

// maxDrivers bounds how many drivers of a business are looked through for a page.
const maxDrivers = 10_000

// filters reports whether drivers are chosen by what only their rows say.
func (in DriversInput) filters() bool {
	return in.Status != "" || in.OnDuty != nil || in.Skill != "" || in.Keyword != ""
}

// wants reports whether a driver is one of those that are asked for.
func (in DriversInput) wants(d cloud.Driver) bool {
	word := strings.ToLower(in.Keyword)
	return (in.Status == "" || in.Status == string(d.Status())) && (in.OnDuty == nil || *in.OnDuty == d.OnDuty) && (in.Skill == "" || slices.Contains(d.Skills, in.Skill)) &&
		(word == "" || strings.Contains(strings.ToLower(d.Account.Name+"\n"+d.Account.Email+"\n"+d.Phone), word))
}

// chosen are the drivers of the page that is asked for.
func (in DriversInput) chosen(v cloud.View, f cloud.DriverFilter) ([]cloud.Driver, cloud.Listed, error) {
	if !in.filters() {
		return v.Drivers(f)
	}
	page := f.Page
	read := func(after *cloud.Mark) ([]cloud.Driver, cloud.Listed, error) {
		f.Page = cloud.Page{Sort: page.Sort, Down: page.Down, Limit: maxDrivers, After: after}
		all, listed, err := v.Drivers(f)
		all = slices.DeleteFunc(all, func(d cloud.Driver) bool { return !in.wants(d) })
		return all, cloud.Listed{Total: len(all), AtLeast: listed.Next != nil, Next: listed.Next}, err
	}
	rest, out, err := read(nil)
	if page.After != nil && err == nil {
		var behind cloud.Listed
		rest, behind, err = read(page.After)
		out.Next = behind.Next
	}
	if rest = rest[min(page.Offset, len(rest)):]; len(rest) > page.Limit {
		rest = rest[:page.Limit]
		out.Next = markOf(rest[page.Limit-1], page.Sort)
	}
	return rest, out, err
}

// markOf is a driver in a list.
func markOf(d cloud.Driver, sort string) *cloud.Mark {
	m := &cloud.Mark{ID: int64(d.Account.ID)}
	switch sort {
	case "name":
		m.Key = d.Account.Name
	case "email":
		m.Key = d.Account.Email
	case "created_at":
		m.Key = int64(0)
		if t := d.Account.CreatedAt; !t.IsZero() {
			m.Key = t.UnixMilli()
		}
	}
	return m
}

// DriversOutput is a page of drivers.
type DriversOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Drivers []DriverBody `json:"drivers"`
}

// Drivers shows a page of the drivers that the caller may see. Error:
// VALIDATION_FAILED.
func (s *Service) Drivers(ctx context.Context, c cloud.Caller, in DriversInput) (DriversOutput, error) {
	r, err := planner(c)
	if err != nil {
		return DriversOutput{}, err
	}
	page, err := in.Part(in, cmp.Or(in.Sort, "-id"))
	if err != nil {
		return DriversOutput{}, err
	}
	out := DriversOutput{Result: true, Drivers: []DriverBody{}}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		date, err := s.today(v, r.business)
		if err != nil {
			return err
		}
		broker := r.broker
		if broker == 0 {
			broker = in.BrokerID
		}
		list, listed, err := in.chosen(v, cloud.DriverFilter{BusinessID: r.business, BrokerID: broker, Page: page})
		if err != nil {
			return err
		}
		out.PageOutput = in.Output(in, listed)
		for _, d := range list {
			b, err := showDriver(v, d, date)
			if err != nil {
				return err
			}
			out.Drivers = append(out.Drivers, b)
		}
		return nil
	})
}

// ByDriver names a driver.
type ByDriver struct {
	DriverID cloud.AccountID `path:"driver_id" json:"-"`
}

// DriverOutput shows a driver.
type DriverOutput struct {
	Result bool       `json:"result"`
	Driver DriverBody `json:"driver"`
}

// Driver shows a driver. Error: DRIVER_NOT_FOUND.
func (s *Service) Driver(ctx context.Context, c cloud.Caller, in ByDriver) (out DriverOutput, err error) {
	r, err := planner(c)
	if err != nil {
		return out, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		date, err := s.today(v, r.business)
		if err != nil {
			return err
		}
		d, err := r.person(v, in.DriverID)
		if err != nil {
			return err
		}
		out.Result = true
		out.Driver, err = showDriver(v, d, date)
		return err
	})
	return out, err
}

// EditDriverInput changes what is kept of a driver. Members that are absent stay
// as they are.
type EditDriverInput struct {
	DriverID cloud.AccountID     `path:"driver_id" json:"-"`
	Phone    *string             `json:"phone" max:"32" line:"true"`
	Status   *cloud.DriverStatus `json:"status" enum:"active,inactive" doc:"inactive drivers cannot log in"`
	Skills   *[]string           `json:"skills" max:"50" item_min:"1" item_max:"64" item_line:"true"`
	Vehicle  *cloud.Vehicle      `json:"vehicle"`
	Shift    *Shift              `json:"shift" doc:"Both empty: none"`
	BrokerID *cloud.AccountID    `json:"broker_id" doc:"0: the business's own driver"`
}

// EditDriver changes what is kept of a driver. One who is switched off keeps
// what was planned until it is planned anew. Staff may. Errors:
// DRIVER_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) EditDriver(ctx context.Context, c cloud.Caller, in EditDriverInput) (DriverOutput, error) {
	r, err := staff(c)
	if err != nil {
		return DriverOutput{}, err
	}
	now := s.time()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		d, err := r.person(v, in.DriverID)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "driver_changed", "account", int64(d.Account.ID), "{}")}}
		if in.BrokerID != nil && *in.BrokerID != 0 {
			if err := r.contractor(v, *in.BrokerID); err != nil {
				return nil, err
			}
		}
		in.put(&d)
		if in.Status != nil {
			d.Pending, d.Account.Enabled = false, *in.Status == cloud.DriverActive
			ch.Accounts = []cloud.Account{d.Account}
		}
		ch.Drivers = []cloud.Driver{d}
		return ch, nil
	})
	if err != nil {
		return DriverOutput{}, err
	}
	return s.Driver(ctx, c, ByDriver{in.DriverID})
}

func (in EditDriverInput) put(d *cloud.Driver) {
	if in.Phone != nil {
		d.Phone = *in.Phone
	}
	if in.Skills != nil {
		d.Skills = *in.Skills
	}
	if in.Vehicle != nil {
		d.Vehicle = *in.Vehicle
	}
	if in.Shift != nil {
		d.ShiftStart, d.ShiftEnd = in.Shift.Start, in.Shift.End
	}
	if in.BrokerID != nil {
		d.BrokerID = *in.BrokerID
	}
}

// DutyInput says whether a driver works.
type DutyInput struct {
	OnDuty *bool `json:"on_duty" required:"true"`
}

// DutyOutput is the answer to Duty.
type DutyOutput struct {
	Result bool `json:"result"`
	OnDuty bool `json:"on_duty"`
}

// Duty is a driver who begins or ends work. Error: VALIDATION_FAILED.
func (s *Service) Duty(ctx context.Context, c cloud.Caller, in DutyInput) (DutyOutput, error) {
	r, err := driver(c)
	if err != nil {
		return DutyOutput{}, err
	}
	now := s.time()
	action, op := "driver_duty_off", opDutyOff
	if *in.OnDuty {
		action, op = "driver_duty_on", opDutyOn
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		d, err := r.person(v, r.driver)
		if err != nil || d.OnDuty == *in.OnDuty {
			return nil, err
		}
		if d.OnDuty = *in.OnDuty; d.OnDuty {
			d.DutySince = now
		}
		told, err := s.tellDuty(v, d, now)
		if err != nil {
			return nil, err
		}
		return &cloud.Changes{RouteChanges: cloud.RouteChanges{Drivers: []cloud.Driver{d}}, OutboxChanges: cloud.OutboxChanges{Outbox: told}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, action, "account", int64(r.driver), fmt.Sprintf(`{"operation_type":%d}`, op))}}, nil
	})
	return DutyOutput{Result: err == nil, OnDuty: *in.OnDuty}, err
}

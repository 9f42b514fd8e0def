// Package report adds up what happened at the cabinets, orders and webhook endpoints of a
// business, by days or hours of a time zone.
//
// Reports read sums that are written with the events themselves, and indexes that hold
// what is counted: a report costs the same however many parcels there are. All of them
// change nothing and show the caller's own business alone. Safe for concurrent use.
package report

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Store is what reports read.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Service has the operations of reports.
type Service struct {
	Store Store
	Now   func() time.Time // nil: the machine's clock
}

const (
	// maxDays is how many days a report reaches over, at most.
	maxDays = 31
	// usualDays is how many it has unless asked for otherwise.
	usualDays = 7
	// hourly is up to how many days a report counts by hours.
	hourly = 2

	usualCabinets = 50

	pruneEvery = 6 * time.Hour
)

// Kept is how long sums and gaps of connections are kept: a month can be compared with that
// of the year before, and with the one before that.
const Kept = 800 * 24 * time.Hour

// Pruner removes what reports no longer read.
type Pruner interface {
	PruneReports(ctx context.Context, before time.Time) error
}

// Prune removes what is older than Kept, now and every six hours, until ctx ends. Other
// nodes may do the same.
func Prune(ctx context.Context, p Pruner, log *slog.Logger) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if err := p.PruneReports(ctx, time.Now().Add(-Kept)); err != nil && ctx.Err() == nil {
			log.Error("old figures of reports cannot be removed now", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// RangeInput chooses the time of a report.
type RangeInput struct {
	From     string `query:"from" format:"date" doc:"First day; six days before the last unless given"`
	To       string `query:"to" format:"date" doc:"Last day, at most 31 with the first; today unless given"`
	TimeZone string `query:"time_zone" format:"time-zone" doc:"In which days begin; that of the business unless given"`
}

// Range is the time that a report is about.
type Range struct {
	From     string `json:"from" doc:"First day"`
	To       string `json:"to" doc:"Last day"`
	TimeZone string `json:"time_zone"`
}

// span is a time of whole days in a zone.
type span struct {
	cloud.ReportRange
	zone *time.Location
	days int
	now  time.Time
}

func (s span) showRange() Range {
	return Range{s.From.Format(time.DateOnly), s.From.AddDate(0, 0, s.days-1).Format(time.DateOnly), s.zone.String()}
}

// look reads a report in one transaction: read gets the time that the input chooses.
// Error: VALIDATION_FAILED.
func (s *Service) look(ctx context.Context, c cloud.Caller, in RangeInput, read func(cloud.View, span) error) error {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	return s.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		x, err := in.span(b, now)
		if err != nil {
			return err
		}
		return read(v, x)
	})
}

func (in RangeInput) span(b cloud.Business, now time.Time) (span, error) {
	s := span{zone: b.Location(), now: now}
	s.BusinessID = b.ID
	if in.TimeZone != "" {
		zone, err := time.LoadLocation(in.TimeZone)
		if err != nil {
			return span{}, err // the format is checked before
		}
		s.zone = zone
	}
	day := func(text string, usual time.Time) time.Time {
		if t, err := time.ParseInLocation(time.DateOnly, text, s.zone); err == nil {
			return t
		}
		return time.Date(usual.Year(), usual.Month(), usual.Day(), 0, 0, 0, 0, s.zone)
	}
	last := day(in.To, now.In(s.zone))
	s.From = day(in.From, last.AddDate(0, 0, 1-usualDays))
	s.To = last.AddDate(0, 0, 1)
	for d := s.From; d.Before(s.To) && s.days <= maxDays; d = d.AddDate(0, 0, 1) {
		s.days++
	}
	f := check.Fields{}
	switch {
	case s.days == 0:
		f.Add("to", "The last day must not be before the first.")
	case s.days > maxDays:
		f.Add("from", "A report has at most 31 days.")
	}
	return s, f.Err()
}

// byHour reports whether a report counts by hours.
func (s span) byHour() bool { return s.days <= hourly }

// starts are the beginnings of the hours or days of a report.
func (s span) starts() (out []time.Time) {
	for t := s.From; t.Before(s.To); {
		out = append(out, t)
		if s.byHour() {
			t = t.Add(time.Hour)
		} else {
			t = t.AddDate(0, 0, 1)
		}
	}
	return out
}

// place is the index of the part that a moment is in; -1 for none.
func place(starts []time.Time, end, at time.Time) int {
	if at.Before(starts[0]) || !at.Before(end) {
		return -1
	}
	i, found := slices.BinarySearchFunc(starts, at, time.Time.Compare)
	if found {
		return i
	}
	return i - 1
}

// stamp is a moment with the offset of a zone.
func stamp(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.RFC3339) }

func (s span) step() string {
	if s.byHour() {
		return "hour"
	}
	return "day"
}

// DeliveriesInput chooses deliveries.
type DeliveriesInput struct {
	RangeInput
	Livemode *bool `query:"livemode" default:"true" doc:"false: test deliveries in place of real ones"`
}

// DeliveryCount is what happened in an hour or a day.
type DeliveryCount struct {
	At          string `json:"at" doc:"Beginning of the hour or day"`
	Deposits    int    `json:"deposits"`
	Collections int    `json:"collections"`
}

// HourCount is what happened in an hour of the day, all days together.
type HourCount struct {
	Hour        int `json:"hour" doc:"0 to 23"`
	Deposits    int `json:"deposits"`
	Collections int `json:"collections"`
}

// DeliveriesOutput counts deposits and collections.
type DeliveriesOutput struct {
	Result bool `json:"result"`
	Range
	Step        string          `json:"step" doc:"hour up to two days, else day"`
	Deposits    int             `json:"deposits"`
	Collections int             `json:"collections"`
	Items       []DeliveryCount `json:"items"`
	Hours       []HourCount     `json:"hours" doc:"By the hour of the day"`
}

// Deliveries counts parcels that were put into cabinets and taken out.
func (s *Service) Deliveries(ctx context.Context, c cloud.Caller, in DeliveriesInput) (out DeliveriesOutput, err error) {
	err = s.look(ctx, c, in.RangeInput, func(v cloud.View, x span) error {
		starts := x.starts()
		out = DeliveriesOutput{Result: true, Range: x.showRange(), Step: x.step(), Items: make([]DeliveryCount, len(starts)), Hours: make([]HourCount, 24)}
		for i, t := range starts {
			out.Items[i].At = stamp(t, x.zone)
		}
		for i := range out.Hours {
			out.Hours[i].Hour = i
		}
		slots, err := v.DeliverySlots(x.ReportRange, in.Livemode == nil || *in.Livemode)
		if err != nil {
			return err
		}
		for _, slot := range slots {
			i := place(starts, x.To, slot.At)
			if i < 0 {
				continue
			}
			taken := 0
			for _, n := range slot.Taken {
				taken += n
			}
			hour := &out.Hours[slot.At.In(x.zone).Hour()]
			for _, to := range [][2]*int{{&out.Deposits, &out.Collections}, {&out.Items[i].Deposits, &out.Items[i].Collections}, {&hour.Deposits, &hour.Collections}} {
				*to[0] += slot.Deposits
				*to[1] += taken
			}
		}
		return nil
	})
	return out, err
}

// WaitCount counts collections by how long the parcel lay in the cabinet.
type WaitCount struct {
	FromHours   int  `json:"from_hours"`
	ToHours     *int `json:"to_hours" doc:"null: without end"`
	Collections int  `json:"collections"`
}

// WaitDay is how long parcels lay that were collected on a day.
type WaitDay struct {
	Date        string   `json:"date"`
	Collections int      `json:"collections"`
	MeanHours   *float64 `json:"mean_hours" doc:"null: nothing was collected"`
}

// CollectionOutput says how long parcels lay in cabinets.
type CollectionOutput struct {
	Result bool `json:"result"`
	Range
	Collections int         `json:"collections"`
	MeanHours   *float64    `json:"mean_hours" doc:"From deposit to collection; null: nothing was collected"`
	Waits       []WaitCount `json:"waits"`
	Days        []WaitDay   `json:"days"`
}

// Collection adds up the times from deposit to collection of what was collected.
func (s *Service) Collection(ctx context.Context, c cloud.Caller, in DeliveriesInput) (out CollectionOutput, err error) {
	err = s.look(ctx, c, in.RangeInput, func(v cloud.View, x span) error {
		out = CollectionOutput{Result: true, Range: x.showRange()}
		var starts []time.Time
		for t := x.From; t.Before(x.To); t = t.AddDate(0, 0, 1) {
			starts = append(starts, t)
			out.Days = append(out.Days, WaitDay{Date: t.Format(time.DateOnly)})
		}
		for class := range len(cloud.WaitClasses) + 1 {
			w := WaitCount{}
			if class > 0 {
				w.FromHours = int(cloud.WaitClasses[class-1].Hours())
			}
			if class < len(cloud.WaitClasses) {
				to := int(cloud.WaitClasses[class].Hours())
				w.ToHours = &to
			}
			out.Waits = append(out.Waits, w)
		}
		slots, err := v.DeliverySlots(x.ReportRange, in.Livemode == nil || *in.Livemode)
		if err != nil {
			return err
		}
		waited, total := make([]time.Duration, len(starts)), time.Duration(0)
		for _, slot := range slots {
			i := place(starts, x.To, slot.At)
			if i < 0 {
				continue
			}
			for class, n := range slot.Taken {
				out.Waits[class].Collections += n
				out.Days[i].Collections += n
				out.Collections += n
			}
			waited[i] += slot.Waited
			total += slot.Waited
		}
		for i := range out.Days {
			out.Days[i].MeanHours = mean(waited[i], out.Days[i].Collections)
		}
		out.MeanHours = mean(total, out.Collections)
		return nil
	})
	return out, err
}

// mean is a mean in hours with two digits behind the point; nil of nothing.
func mean(total time.Duration, n int) *float64 {
	if n <= 0 {
		return nil
	}
	h := float64(int64(total.Hours()/float64(n)*100+.5)) / 100
	return &h
}

// CabinetsInput bounds the cabinets of a report.
type CabinetsInput struct {
	Limit *int `query:"limit" min:"1" max:"200" default:"50" doc:"Cabinets of the answer"`
}

func (in CabinetsInput) limit() int {
	if in.Limit == nil {
		return usualCabinets
	}
	return *in.Limit
}

// Occupancy counts compartments by state.
type Occupancy struct {
	Compartments int `json:"compartments"`
	Occupied     int `json:"occupied"`
	Reserved     int `json:"reserved"`
	Free         int `json:"free"`
	Blocked      int `json:"blocked" doc:"Blocked, or cleaned now"`
	Unread       int `json:"unread" doc:"Free as far as the cloud knows, but no reading of the door says so"`
}

func (o *Occupancy) add(state string, n int) {
	o.Compartments += n
	switch state {
	case cloud.GridOccupied:
		o.Occupied += n
	case cloud.GridReserved:
		o.Reserved += n
	case cloud.GridFree:
		o.Free += n
	case "":
		o.Unread += n
	default:
		o.Blocked += n
	}
}

// CabinetOccupancy is the occupancy of a cabinet.
type CabinetOccupancy struct {
	DeviceID   cloud.DeviceID `json:"device_id"`
	DeviceName string         `json:"device_name"`
	Occupancy
}

// OccupancyOutput is how full cabinets are.
type OccupancyOutput struct {
	Result   bool   `json:"result"`
	At       string `json:"at"`
	Cabinets int    `json:"cabinets" doc:"All of the business that are in use; items are the fullest of them"`
	Occupancy
	Items []CabinetOccupancy `json:"items"`
}

// Occupancy shows how full cabinets are now, the fullest first.
func (s *Service) Occupancy(ctx context.Context, c cloud.Caller, in CabinetsInput) (out OccupancyOutput, err error) {
	err = s.look(ctx, c, RangeInput{}, func(v cloud.View, x span) error {
		states, err := v.CompartmentStates(x.BusinessID)
		if err != nil {
			return err
		}
		out = OccupancyOutput{Result: true, At: stamp(x.now, x.zone), Items: []CabinetOccupancy{}}
		for _, n := range states { // by cabinet
			if last := len(out.Items) - 1; last < 0 || out.Items[last].DeviceID != n.DeviceID {
				out.Items = append(out.Items, CabinetOccupancy{DeviceID: n.DeviceID, DeviceName: n.Name})
			}
			out.Items[len(out.Items)-1].add(n.State, n.Count)
			out.add(n.State, n.Count)
		}
		out.Cabinets = len(out.Items)
		slices.SortStableFunc(out.Items, func(a, b CabinetOccupancy) int {
			return cmp.Or(cmp.Compare(b.Occupied*a.Compartments, a.Occupied*b.Compartments), cmp.Compare(a.DeviceID, b.DeviceID))
		})
		out.Items = out.Items[:min(len(out.Items), in.limit())]
		return nil
	})
	return out, err
}

// ConnectionsInput chooses times without a connection.
type ConnectionsInput struct {
	RangeInput
	CabinetsInput
}

// CabinetConnection is how well a cabinet was connected.
type CabinetConnection struct {
	DeviceID       cloud.DeviceID `json:"device_id"`
	DeviceName     string         `json:"device_name"`
	Gaps           int            `json:"gaps"`
	DownMinutes    int            `json:"down_minutes"`
	LongestMinutes int            `json:"longest_minutes"`
	Offline        bool           `json:"offline" doc:"It has no connection now"`
}

// ConnectionsOutput lists the cabinets that were without a connection.
type ConnectionsOutput struct {
	Result bool `json:"result"`
	Range
	Gaps        int                 `json:"gaps"`
	DownMinutes int                 `json:"down_minutes"`
	Cabinets    int                 `json:"cabinets" doc:"All that had a gap; items are those that were longest without a connection"`
	Items       []CabinetConnection `json:"items"`
}

// Connections adds up the times that cabinets had no connection for a minute or longer,
// the longest first.
func (s *Service) Connections(ctx context.Context, c cloud.Caller, in ConnectionsInput) (out ConnectionsOutput, err error) {
	err = s.look(ctx, c, in.RangeInput, func(v cloud.View, x span) error {
		gaps, err := v.ConnectionGaps(x.ReportRange, x.now)
		if err != nil {
			return err
		}
		out = ConnectionsOutput{Result: true, Range: x.showRange(), Items: []CabinetConnection{}}
		for _, g := range gaps {
			n := CabinetConnection{DeviceID: g.DeviceID, DeviceName: g.Name, Gaps: g.Gaps, DownMinutes: int(g.Down.Minutes() + .5), LongestMinutes: int(g.Longest.Minutes() + .5), Offline: g.Open}
			out.Gaps, out.DownMinutes = out.Gaps+n.Gaps, out.DownMinutes+n.DownMinutes
			out.Items = append(out.Items, n)
		}
		slices.SortFunc(out.Items, func(a, b CabinetConnection) int {
			return cmp.Or(cmp.Compare(b.DownMinutes, a.DownMinutes), cmp.Compare(a.DeviceID, b.DeviceID))
		})
		out.Cabinets = len(out.Items)
		out.Items = out.Items[:min(len(out.Items), in.limit())]
		return nil
	})
	return out, err
}

// AttemptCount are attempts of webhooks in an hour or a day.
type AttemptCount struct {
	At       string `json:"at" doc:"Beginning of the hour or day"`
	Attempts int    `json:"attempts"`
	Failures int    `json:"failures"`
}

// WebhooksOutput counts attempts of webhooks.
type WebhooksOutput struct {
	Result bool `json:"result"`
	Range
	Step     string         `json:"step" doc:"hour up to two days, else day"`
	Attempts int            `json:"attempts"`
	Failures int            `json:"failures" doc:"Attempts that the endpoint did not take"`
	Items    []AttemptCount `json:"items"`
}

// Webhooks counts attempts at all webhook endpoints of the business. Counts are kept for 32
// days, by hours of UTC.
func (s *Service) Webhooks(ctx context.Context, c cloud.Caller, in RangeInput) (out WebhooksOutput, err error) {
	err = s.look(ctx, c, in, func(v cloud.View, x span) error {
		sums, err := v.WebhookHours(x.ReportRange)
		if err != nil {
			return err
		}
		starts := x.starts()
		out = WebhooksOutput{Result: true, Range: x.showRange(), Step: x.step(), Items: make([]AttemptCount, len(starts))}
		for i, t := range starts {
			out.Items[i].At = stamp(t, x.zone)
		}
		for _, sum := range sums {
			if i := place(starts, x.To, sum.At); i >= 0 {
				out.Items[i].Attempts += sum.Attempts
				out.Items[i].Failures += sum.Failures
				out.Attempts += sum.Attempts
				out.Failures += sum.Failures
			}
		}
		return nil
	})
	return out, err
}

// StatusCount counts orders in a state.
type StatusCount struct {
	OrderStatusID cloud.OrderStatus `json:"order_status_id"`
	Orders        int               `json:"orders"`
}

// OrderDay counts the orders that are planned for a day.
type OrderDay struct {
	Date     string        `json:"date"`
	Orders   int           `json:"orders"`
	Statuses []StatusCount `json:"statuses" doc:"By the state that they are in now"`
	Punctuality
}

// Punctuality counts the orders that should have arrived, and those that arrived in time.
type Punctuality struct {
	Due    int `json:"due" doc:"Delivered, or planned for a day that is over; cancelled orders are not due"`
	OnTime int `json:"on_time" doc:"Delivered by the end of the day that they are planned for"`
}

// OrdersOutput counts orders by day and state.
type OrdersOutput struct {
	Result bool `json:"result"`
	Range
	Orders   int           `json:"orders"`
	Statuses []StatusCount `json:"statuses"`
	Punctuality
	Days []OrderDay `json:"days"`
}

// Orders counts the orders that are planned for each day, by the state that they are in
// now, and those that were delivered in time.
func (s *Service) Orders(ctx context.Context, c cloud.Caller, in RangeInput) (out OrdersOutput, err error) {
	err = s.look(ctx, c, in, func(v cloud.View, x span) error {
		out = OrdersOutput{Result: true, Range: x.showRange(), Statuses: []StatusCount{}}
		counts, err := v.OrderDays(x.BusinessID, out.From, out.To)
		if err != nil {
			return err
		}
		all, at := map[cloud.OrderStatus]int{}, map[string]int{}
		for t := x.From; t.Before(x.To); t = t.AddDate(0, 0, 1) {
			at[t.Format(time.DateOnly)] = len(out.Days)
			out.Days = append(out.Days, OrderDay{Date: t.Format(time.DateOnly), Statuses: []StatusCount{}})
		}
		for _, n := range counts {
			i, ok := at[n.Date]
			if !ok {
				continue
			}
			d := &out.Days[i]
			d.Orders += n.Count
			d.Statuses = append(d.Statuses, StatusCount{n.StatusID, n.Count})
			if end := x.From.AddDate(0, 0, i+1); n.StatusID == cloud.OrderDelivered || n.StatusID != cloud.OrderCancelled && !end.After(x.now) {
				d.Due += n.Count
				out.Due += n.Count
			}
			out.Orders += n.Count
			all[n.StatusID] += n.Count
		}
		delivered, err := v.DeliveredSlots(x.BusinessID, out.From, out.To)
		if err != nil {
			return err
		}
		for _, n := range delivered {
			if i, ok := at[n.Date]; ok && n.At.Before(x.From.AddDate(0, 0, i+1)) {
				out.Days[i].OnTime += n.Count
				out.OnTime += n.Count
			}
		}
		for status, n := range all {
			out.Statuses = append(out.Statuses, StatusCount{status, n})
		}
		slices.SortFunc(out.Statuses, func(a, b StatusCount) int { return cmp.Compare(a.OrderStatusID, b.OrderStatusID) })
		return nil
	})
	return out, err
}

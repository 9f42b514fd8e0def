package locker

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// historyLife is how far back the history of doors is shown.
const historyLife = 90 * 24 * time.Hour

// HistoryInput asks for a part of the history of a cabinet's doors.
type HistoryInput struct {
	Device   cloud.DeviceID   `path:"id"`
	Delivery cloud.DeliveryID `query:"delivery_id" doc:"Only openings for this delivery"`
	check.LongKeyset
}

// HistoryDoor is one door of an opening.
type HistoryDoor struct {
	GridID   cloud.GridID `json:"grid_id"`
	GridCode string       `json:"grid_code"`
	DoorName string       `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none"`
	Door     uint         `json:"compartment_number"`
	OpenedAt *string      `json:"opened_at"` // null: not seen open
	ClosedAt *string      `json:"closed_at"`
	Error    *string      `json:"error"`
	// Removals are what staff stated at the cabinet, in their order.
	Removals []HistoryRemoval `json:"removals" doc:"What staff stated at the cabinet's screen of parcels behind this door"`
}

// HistoryRemoval is what became of the packages of a delivery behind a door, by word of staff
// at the cabinet.
type HistoryRemoval struct {
	DeliveryID cloud.DeliveryID `json:"delivery_id"`
	Outcome    string           `json:"outcome" doc:"taken, not_found, or refused: left inside"`
	Reason     string           `json:"removal_reason" doc:"As in the registry of packages in cabinets, or collected: overdue, or brought by its sender for a courier"`
	At         *string          `json:"occurred_at"`
}

// HistoryLine is one opening: who had which doors opened, and why.
type HistoryLine struct {
	OpeningID   string            `json:"opening_id"`
	Kind        string            `json:"kind" doc:"deposit, reassign, correction, pickup or staff"`
	By          string            `json:"requested_by" doc:"partner_api, courier, recipient, staff or console"`
	ByID        *string           `json:"requested_by_id" doc:"Of the account or provider, null for a code at the cabinet"`
	ByName      *string           `json:"requested_by_name"`
	Reason      *string           `json:"reason"`
	DeliveryID  *cloud.DeliveryID `json:"delivery_id"`
	State       string            `json:"state"`
	EndReason   *string           `json:"end_reason"`
	RequestedAt *string           `json:"requested_at"`
	OpenedAt    *string           `json:"opened_at"`
	EndedAt     *string           `json:"ended_at"`
	Doors       []HistoryDoor     `json:"doors"`
}

// HistoryOutput is a part of the history of a cabinet's doors, newest first.
type HistoryOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Reports []HistoryLine `json:"door_reports"`
}

// ListDoorHistory lists a part of the openings of a cabinet of the caller's business
// within 90 days, newest first. Error: DEVICE_NOT_FOUND.
func (s staff) ListDoorHistory(ctx context.Context, c cloud.Caller, in HistoryInput) (out HistoryOutput, err error) {
	page, err := in.Part(in, "-requested_at")
	if err != nil {
		return out, err
	}
	since := time.Now().UTC().Add(-historyLife)
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := ours(v, c, in.Device)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		cells, err := v.Compartments(d.ID)
		if err != nil {
			return err
		}
		places := byGrid(cells)
		list, listed, err := v.DoorHistory(d.ID, in.Delivery, since, page)
		out = HistoryOutput{Result: true, PageOutput: in.Output(in, listed), Reports: []HistoryLine{}}
		for _, o := range list {
			out.Reports = append(out.Reports, historyLine(o, places, biz.Location()))
		}
		return err
	})
	return out, err
}

// byGrid are compartments by their id.
func byGrid(cells []cloud.Compartment) map[cloud.GridID]cloud.Compartment {
	out := make(map[cloud.GridID]cloud.Compartment, len(cells))
	for _, c := range cells {
		out[c.GridID] = c
	}
	return out
}

func historyLine(o cloud.Opening, cells map[cloud.GridID]cloud.Compartment, l *time.Location) HistoryLine {
	out := HistoryLine{OpeningID: o.ID, Kind: string(o.Kind), By: o.Requester.Type, ByID: cloud.OrNull(o.Requester.ID), ByName: cloud.OrNull(o.Requester.Name), Reason: cloud.OrNull(o.Reason),
		DeliveryID: cloud.OrNull(o.DeliveryID), State: o.State, EndReason: cloud.OrNull(o.EndReason), RequestedAt: cloud.Stamp(o.RequestedAt, l), OpenedAt: cloud.Stamp(o.OpenedAt, l),
		EndedAt: cloud.Stamp(o.EndedAt, l), Doors: []HistoryDoor{}}
	for _, d := range o.Doors {
		removals := []HistoryRemoval{}
		for _, x := range d.Removals {
			removals = append(removals, HistoryRemoval{x.DeliveryID, x.Outcome, x.Reason, cloud.Stamp(x.At, l)})
		}
		out.Doors = append(out.Doors, HistoryDoor{Removals: removals, GridID: d.GridID, GridCode: cells[d.GridID].GridCode, DoorName: cells[d.GridID].Name(), Door: d.Door, OpenedAt: cloud.Stamp(d.OpenedAt, l), ClosedAt: cloud.Stamp(d.ClosedAt, l), Error: cloud.OrNull(d.Error)})
	}
	return out
}

package locker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// StaffDeliveryBody is a delivery as staff see it: without codes.
type StaffDeliveryBody struct {
	DeliveryID      cloud.DeliveryID     `json:"delivery_id"`
	DeliveryNumber  string               `json:"delivery_number"`
	ReferenceNumber string               `json:"reference_number"`
	ProviderID      cloud.ProviderID     `json:"provider_id"`
	Purpose         string               `json:"purpose" doc:"delivery, send or return"`
	DeviceID        cloud.DeviceID       `json:"device_id"`
	OrderID         *int64               `json:"order_id"`
	Status          cloud.DeliveryStatus `json:"status"`
	Livemode        bool                 `json:"livemode" doc:"False for a delivery to a test locker"`
	Packages        []PackageBody        `json:"packages"`
	RecipientName   string               `json:"recipient_name"`
	SenderName      *string              `json:"sender_name" doc:"Who brings a parcel of the purposes send and return"`
	DueAt           *string              `json:"due_at"`
	CreatedAt       *string              `json:"created_at"`
	DepositedAt     *string              `json:"deposited_at"`
	PickedUpAt      *string              `json:"picked_up_at"`
	EndedAt         *string              `json:"ended_at" doc:"When it was cancelled, failed or expired"`
}

func staffDelivery(d cloud.Delivery, l *time.Location) StaffDeliveryBody {
	ended := d.CancelledAt
	for _, t := range []time.Time{d.FailedAt, d.ExpiredAt} {
		if ended.IsZero() {
			ended = t
		}
	}
	b := StaffDeliveryBody{Purpose: purposeName(d), DeliveryID: d.ID, DeliveryNumber: d.Number, ReferenceNumber: d.Reference, ProviderID: d.ProviderID, DeviceID: d.DeviceID, OrderID: cloud.OrNull(int64(d.OrderID())),
		Status: d.Status, Livemode: d.Livemode, Packages: []PackageBody{}, RecipientName: d.Recipient.Name, DueAt: cloud.Stamp(d.DueAt, l), CreatedAt: cloud.Stamp(d.CreatedAt, l),
		DepositedAt: cloud.Stamp(d.DepositedAt, l), PickedUpAt: cloud.Stamp(d.PickedUpAt, l), EndedAt: cloud.Stamp(ended, l)}
	for _, p := range d.Packages {
		b.Packages = append(b.Packages, packageBody(p))
	}
	if d.Sender != nil {
		b.SenderName = &d.Sender.Name
	}
	return b
}

// StaffDeliveriesInput asks for a part of the business's deliveries.
type StaffDeliveriesInput struct {
	check.Keyset
	Status   cloud.DeliveryStatus `query:"status" enum:"created,doors_opened,delivered,correcting,picked_up,failed,expired,cancelled"`
	DeviceID cloud.DeviceID       `query:"device_id" min:"1"`
	Livemode *bool                `query:"livemode" doc:"Live deliveries, or those to test lockers, alone"`
}

// StaffDeliveriesOutput lists deliveries.
type StaffDeliveriesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Deliveries []StaffDeliveryBody `json:"deliveries"`
}

// ListStaffDeliveries lists the deliveries of the caller's business, newest first.
func (s staff) ListStaffDeliveries(ctx context.Context, c cloud.Caller, in StaffDeliveriesInput) (out StaffDeliveriesOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := v.Deliveries(cloud.DeliveryFilter{BusinessID: biz.ID, DeviceID: in.DeviceID, Status: in.Status, Livemode: in.Livemode, Page: page})
		if err != nil {
			return err
		}
		out = StaffDeliveriesOutput{Result: true, PageOutput: in.Output(in, listed), Deliveries: []StaffDeliveryBody{}}
		for _, d := range list {
			out.Deliveries = append(out.Deliveries, staffDelivery(d, biz.Location()))
		}
		return nil
	})
	return out, err
}

// DeliveriesInput asks for a part of the caller's deliveries.
type DeliveriesInput struct {
	check.Keyset
	Status      cloud.DeliveryStatus `query:"status" enum:"created,doors_opened,delivered,correcting,picked_up,failed,expired,cancelled"`
	DeviceID    cloud.DeviceID       `query:"device_id" min:"1"`
	Reference   string               `query:"reference_number" max:"64" doc:"Your own number of the delivery"`
	Number      string               `query:"tracking_number" max:"64" doc:"Of a package, in capital or small letters"`
	CreatedFrom string               `query:"created_from" format:"moment" graphql:"DateTime"`
	CreatedTo   string               `query:"created_to" format:"moment" graphql:"DateTime" doc:"Before this time"`
}

// DeliveriesOutput lists deliveries.
type DeliveriesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Deliveries []DeliveryBody `json:"deliveries"`
}

// ListDeliveries lists a part of the deliveries of the calling provider with the codes that work
// now, newest first.
func (s partners) ListDeliveries(ctx context.Context, c cloud.Caller, in DeliveriesInput) (out DeliveriesOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Provider.BusinessID)
		if err != nil {
			return err
		}
		zone := biz.Location()
		list, listed, err := v.Deliveries(cloud.DeliveryFilter{BusinessID: biz.ID, ProviderID: c.Provider.ID, DeviceID: in.DeviceID, Status: in.Status, Reference: in.Reference, TrackingNumber: in.Number,
			From: check.Moment(in.CreatedFrom, zone), To: check.Moment(in.CreatedTo, zone), Page: page})
		if err != nil {
			return err
		}
		out = DeliveriesOutput{Result: true, PageOutput: in.Output(in, listed), Deliveries: []DeliveryBody{}}
		for _, d := range list {
			shown, err := s.body(v, biz, d)
			if err != nil {
				return err
			}
			out.Deliveries = append(out.Deliveries, shown)
		}
		return nil
	})
	return out, err
}

// DeliveryEventsOutput lists events of a delivery, oldest first.
type DeliveryEventsOutput struct {
	Result bool                `json:"result"`
	Events []DeliveryEventBody `json:"events"`
}

// DeliveryEventBody is an event of a delivery, as receivers of webhooks get it.
type DeliveryEventBody struct {
	EventID    string    `json:"event_id"`
	Event      string    `json:"event"`
	Sequence   int64     `json:"sequence" graphql:"Long!" doc:"Rises with every event of the delivery, with gaps"`
	OccurredAt *string   `json:"occurred_at"`
	Data       eventData `json:"data"`
}

// deliveryEvents are listed at once.
const deliveryEvents = 200

// ListDeliveryEvents lists the events of a delivery of the calling provider. Error:
// DELIVERY_NOT_FOUND.
func (s partners) ListDeliveryEvents(ctx context.Context, c cloud.Caller, key DeliveryKey) (out DeliveryEventsOutput, err error) {
	err = s.lookAt(ctx, c, key, func(v cloud.View, d cloud.Delivery, biz cloud.Business) error {
		list, err := v.DeliveryEvents(d.BusinessID, d.ProviderID, d.Number, deliveryEvents)
		if err != nil {
			return err
		}
		out = DeliveryEventsOutput{Result: true, Events: []DeliveryEventBody{}}
		for _, e := range list {
			var body eventBody
			if err := json.Unmarshal(e.Body, &body); err != nil {
				return fmt.Errorf("body of event %s: %w", e.EventID, err)
			}
			out.Events = append(out.Events, DeliveryEventBody{EventID: e.EventID, Event: e.Event, Sequence: e.Sequence, OccurredAt: cloud.Stamp(e.OccurredAt, biz.Location()), Data: body.Data})
		}
		return nil
	})
	return out, err
}

// StaffDeliveryInput names a delivery by its id.
type StaffDeliveryInput struct {
	Delivery DeliveryKey `path:"id" doc:"delivery_id"`
}

// StaffDeliveryOutput shows a delivery.
type StaffDeliveryOutput struct {
	Result   bool              `json:"result"`
	Delivery StaffDeliveryBody `json:"delivery"`
}

// FindStaffDelivery shows a delivery of the caller's business. Error:
// DELIVERY_NOT_FOUND.
func (s staff) FindStaffDelivery(ctx context.Context, c cloud.Caller, in StaffDeliveryInput) (out StaffDeliveryOutput, err error) {
	err = s.lookAt(ctx, c, in.Delivery, func(_ cloud.View, d cloud.Delivery, biz cloud.Business) error {
		out = StaffDeliveryOutput{Result: true, Delivery: staffDelivery(d, biz.Location())}
		return nil
	})
	return out, err
}

package locker

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// Shapes of the public interface. Nullable members are pointers and always
// present.
type (
	// OpeningBody is the block "opening".
	OpeningBody struct {
		OpeningID    string            `json:"opening_id"`
		Kind         wire.OpeningKind  `json:"kind"`
		RequestedBy  cloud.Requester   `json:"requested_by"`
		OpenedAt     *string           `json:"opened_at"`
		Compartments []CompartmentBody `json:"compartments"`
	}
	// CompartmentBody is one compartment of an opening.
	CompartmentBody struct {
		GridID       cloud.GridID `json:"grid_id"`
		Door         uint         `json:"compartment_number"`
		PickupNumber *int         `json:"pickup_locker_number"`
		PickupLabel  *string      `json:"pickup_locker_code"`
		GridCode     string       `json:"grid_code"`
		ShelfCode    string       `json:"shelf_code"`
		Size         string       `json:"size"`
		Packages     []string     `json:"package_tracking_numbers"`
		DoorStatus   string       `json:"door_status"`
	}
	// PackageBody is one package of a delivery.
	PackageBody struct {
		TrackingNumber string              `json:"tracking_number"`
		Reference      *string             `json:"reference"`
		GridID         *cloud.GridID       `json:"grid_id"`
		Status         cloud.PackageStatus `json:"status"`
		FailureCode    string              `json:"failure_code,omitempty"`
		Size           string              `json:"size,omitempty"`
		Weight         float64             `json:"weight,omitempty"`
		Length         float64             `json:"length,omitempty"`
		Width          float64             `json:"width,omitempty"`
		Height         float64             `json:"height,omitempty"`
		Description    string              `json:"description,omitempty"`
	}
	recipientBody struct {
		Name     string  `json:"name"`
		Phone    *string `json:"phone"`
		Email    *string `json:"email"`
		Language string  `json:"language,omitempty"`
		Address  string  `json:"address,omitempty"`
	}
	// SenderBody is who brings a parcel that a courier collects.
	SenderBody struct {
		Name     string  `json:"name"`
		Phone    *string `json:"phone"`
		Email    *string `json:"email"`
		Language string  `json:"language,omitempty"`
	}
	// DeliveryBody is a delivery as its partner sees it.
	DeliveryBody struct {
		DeliveryID       cloud.DeliveryID     `json:"delivery_id"`
		DeliveryNumber   string               `json:"delivery_number"`
		ReferenceNumber  string               `json:"reference_number"`
		Status           cloud.DeliveryStatus `json:"status"`
		Purpose          string               `json:"purpose" doc:"delivery, send or return"`
		DeviceID         cloud.DeviceID       `json:"device_id"`
		OrderID          *int64               `json:"order_id"`
		Packages         []PackageBody        `json:"packages"`
		Recipient        recipientBody        `json:"recipient"`
		Sender           *SenderBody          `json:"sender" doc:"Who brings a parcel of the purposes send and return; null for delivery"`
		Returns          *cloud.DeliveryID    `json:"returned_delivery_id" doc:"Of a return that a recipient has asked for: the delivery whose packages come back"`
		Courier          *cloud.Courier       `json:"courier"`
		DeliveryCode     *string              `json:"delivery_code"`
		PickupCode       *string              `json:"pickup_code"`
		PickupCodeActive bool                 `json:"pickup_code_active"`
		Notify           cloud.Notify         `json:"notify"`
		DeliverBefore    *string              `json:"deliver_before"`
		CollectWithin    int                  `json:"collect_within_hours"`
		DueAt            *string              `json:"due_at"`
		ConfirmedBy      *wire.ConfirmedBy    `json:"confirmed_by"`
		Livemode         bool                 `json:"livemode"`
		Metadata         json.RawMessage      `json:"metadata"`
		Opening          *OpeningBody         `json:"opening"`
		Correction       *CorrectionBody      `json:"correction"`
		Rotation         *Rotation            `json:"rotation" doc:"The newest replacement of a code; null: none was"`
		Handover         *HandoverBody        `json:"handover" doc:"Who collects in the recipient's place; null: the recipient"`
		CreatedAt        *string              `json:"created_at"`
		DoorsOpenedAt    *string              `json:"doors_opened_at"`
		DepositedAt      *string              `json:"deposited_at"`
		// DepositedEarliest and DepositedLatest bound a deposit whose moment was not
		// seen, or whose clock was not to be relied on; null otherwise.
		DepositedEarliest *string `json:"deposited_earliest"`
		DepositedLatest   *string `json:"deposited_latest"`
		PickedUpAt        *string `json:"picked_up_at"`
		ExpiredAt         *string `json:"expired_at"`
		CancelledAt       *string `json:"cancelled_at"`
		FailedAt          *string `json:"failed_at"`
	}
	// Rotation is the block "rotation".
	Rotation struct {
		CodeKind           string  `json:"code_kind"`
		Reason             string  `json:"reason"`
		RotatedBy          string  `json:"rotated_by"`
		RotatedAt          string  `json:"rotated_at"`
		PreviousValidUntil *string `json:"previous_code_valid_until"`
	}
)

func openingBody(o cloud.Opening, cells map[uint]cloud.Compartment, l *time.Location) *OpeningBody {
	b := &OpeningBody{OpeningID: o.ID, Kind: o.Kind, RequestedBy: o.Requester, OpenedAt: cloud.Stamp(o.OpenedAt, l), Compartments: []CompartmentBody{}}
	for _, d := range o.Doors {
		c := cells[d.Door]
		packages := d.Packages
		if packages == nil {
			packages = []string{}
		}
		b.Compartments = append(b.Compartments, CompartmentBody{GridID: d.GridID, Door: d.Door, PickupNumber: cloud.OrNull(c.PickupNumber), PickupLabel: cloud.OrNull(c.Label),
			GridCode: c.GridCode, ShelfCode: c.ShelfCode, Size: c.Size, Packages: packages, DoorStatus: d.Status})
	}
	return b
}

func packageBody(p cloud.Package) PackageBody {
	return PackageBody{TrackingNumber: p.TrackingNumber, Reference: cloud.OrNull(p.Reference), GridID: cloud.OrNull(p.GridID), Status: p.Status, FailureCode: p.FailureCode,
		Size: p.Size, Weight: p.Weight, Length: p.Length, Width: p.Width, Height: p.Height, Description: p.Description}
}

func recipient(r cloud.Recipient) recipientBody {
	return recipientBody{Name: r.Name, Phone: cloud.OrNull(r.Phone), Email: cloud.OrNull(r.Email), Language: r.Language, Address: r.Address}
}

func senderBody(s *cloud.Sender) *SenderBody {
	if s == nil {
		return nil
	}
	return &SenderBody{Name: s.Name, Phone: cloud.OrNull(s.Phone), Email: cloud.OrNull(s.Email), Language: s.Language}
}

// deliveryBody shows a delivery. The delivery code is shown while it can be
// used, the pickup code once it counts as assigned, until the parcel is gone.
func deliveryBody(d cloud.Delivery, c Codes, o *OpeningBody, cor *CorrectionBody, l *time.Location) DeliveryBody {
	b := DeliveryBody{Purpose: purposeName(d), Sender: senderBody(d.Sender), Returns: cloud.OrNull(d.Returns), DeliveryID: d.ID, DeliveryNumber: d.Number, ReferenceNumber: d.Reference, Status: d.Status, DeviceID: d.DeviceID,
		OrderID: cloud.OrNull(int64(d.OrderID())), Packages: []PackageBody{}, Recipient: recipient(d.Recipient), Courier: d.Courier, PickupCodeActive: d.PickupCodeActive, Notify: d.Notify,
		DeliverBefore: cloud.Stamp(d.DeliverBefore, l), CollectWithin: int(d.CollectWithin / time.Hour), DueAt: cloud.Stamp(d.DueAt, l),
		ConfirmedBy: cloud.OrNull(d.ConfirmedBy), Livemode: d.Livemode, Metadata: d.Metadata, Opening: o, Correction: cor,
		CreatedAt: cloud.Stamp(d.CreatedAt, l), DoorsOpenedAt: cloud.Stamp(d.DoorsOpenedAt, l), DepositedAt: cloud.Stamp(d.DepositedAt, l), DepositedEarliest: cloud.Stamp(d.DepositedEarliest, l), DepositedLatest: cloud.Stamp(d.DepositedLatest, l), PickedUpAt: cloud.Stamp(d.PickedUpAt, l),
		ExpiredAt: cloud.Stamp(d.ExpiredAt, l), CancelledAt: cloud.Stamp(d.CancelledAt, l), FailedAt: cloud.Stamp(d.FailedAt, l)}
	b.DeliveryCode, b.PickupCode = shownCodes(d, c)
	b.Handover, b.Rotation = handoverBody(d, l), rotationBody(d, l)
	for _, p := range d.Packages {
		b.Packages = append(b.Packages, packageBody(p))
	}
	return b
}

// rotationBody shows the newest replacement of a code, nil where none was.
func rotationBody(d cloud.Delivery, l *time.Location) *Rotation {
	if d.Rotation == nil {
		return nil
	}
	return &Rotation{CodeKind: d.Rotation.CodeKind, Reason: d.Rotation.Reason, RotatedBy: d.Rotation.By, RotatedAt: *cloud.Stamp(d.Rotation.At, l)}
}

func handoverBody(d cloud.Delivery, l *time.Location) *HandoverBody {
	if d.Handover == nil {
		return nil
	}
	return &HandoverBody{Name: d.Handover.Name, Phone: cloud.OrNull(d.Handover.Phone), Since: cloud.Stamp(d.Handover.At, l)}
}

func shownCodes(d cloud.Delivery, c Codes) (delivery, pickup *string) {
	switch d.Status {
	case cloud.DeliveryCreated, cloud.DeliveryDoorsOpened:
		delivery = &c.Delivery
	}
	switch d.Status {
	case cloud.DeliveryPickedUp, cloud.DeliveryCancelled, cloud.DeliveryFailed:
	default:
		if d.PickupAssigned && !d.IsOutgoing() {
			pickup = &c.Pickup
		}
	}
	return delivery, pickup
}

// eventBody is the body of a locker provider's event.
type eventBody struct {
	cloud.EventHead
	Provider providerBody `json:"provider"`
	Livemode bool         `json:"livemode"`
	Data     eventData    `json:"data"`
}

type providerBody struct {
	ID   cloud.ProviderID `json:"id"`
	Code string           `json:"code"`
	Name string           `json:"name"`
}

type eventData struct {
	Delivery         eventDelivery     `json:"delivery"`
	Locker           eventLocker       `json:"locker"`
	Packages         []eventPackage    `json:"packages"`
	Opening          *OpeningBody      `json:"opening"`
	PickupCode       *string           `json:"pickup_code"`
	PickupCodeActive bool              `json:"pickup_code_active"`
	DeliveryCode     *string           `json:"delivery_code"`
	ConfirmedBy      *wire.ConfirmedBy `json:"confirmed_by"`
	Correction       *CorrectionBody   `json:"correction"`
	Rotation         *Rotation         `json:"rotation"`
	DueAt            *string           `json:"due_at"`
	DepositedAt      *string           `json:"deposited_at,omitempty"`
	// DepositedEarliest and DepositedLatest bound a deposit whose moment was not seen.
	DepositedEarliest *string     `json:"deposited_earliest,omitempty"`
	DepositedLatest   *string     `json:"deposited_latest,omitempty"`
	PickedUpAt        *string     `json:"picked_up_at,omitempty"`
	PickedUpBy        *pickedUpBy `json:"picked_up_by,omitempty"`
	ExpiredKind       string      `json:"expired_kind,omitempty"`
	ExpiredAt         *string     `json:"expired_at,omitempty"`
	CancelledAt       *string     `json:"cancelled_at,omitempty"`
	CancelReason      string      `json:"cancel_reason,omitempty"`
	CancelledBy       string      `json:"cancelled_by,omitempty"`
	FailureCode       string      `json:"failure_code,omitempty"`
	// Handover is who collects in the recipient's place, while a person does.
	Handover *HandoverBody `json:"handover,omitempty"`
}

type pickedUpBy struct {
	Type   string `json:"type"`
	Method string `json:"method"`
}

type eventDelivery struct {
	DeliveryID      cloud.DeliveryID     `json:"delivery_id"`
	DeliveryNumber  string               `json:"delivery_number"`
	ReferenceNumber string               `json:"reference_number"`
	Status          cloud.DeliveryStatus `json:"status"`
	Courier         *cloud.Courier       `json:"courier"`
	Recipient       recipientBody        `json:"recipient"`
	// Purpose and Sender are those of parcels that a courier collects.
	Purpose string      `json:"purpose,omitempty"`
	Sender  *SenderBody `json:"sender,omitempty"`
}

type eventLocker struct {
	DeviceID   cloud.DeviceID `json:"device_id"`
	DeviceCode string         `json:"device_code"`
	DeviceName string         `json:"device_name"`
	DeviceType string         `json:"device_type"`
	Address    string         `json:"address"`
	Latitude   float64        `json:"latitude"`
	Longitude  float64        `json:"longitude"`
	Timezone   string         `json:"timezone"`
}

type eventPackage struct {
	TrackingNumber string              `json:"tracking_number"`
	Reference      *string             `json:"reference"`
	GridID         *cloud.GridID       `json:"grid_id"`
	Status         cloud.PackageStatus `json:"status"`
	FailureCode    string              `json:"failure_code,omitempty"`
}

// eventPrefix begins the ids of events of locker deliveries.
const eventPrefix = "PLE-"

// Names of the events of a locker delivery.
const (
	EventDoorsOpened        = "locker_delivery.doors_opened"
	EventDelivered          = "locker_delivery.delivered"
	EventPickedUp           = "locker_delivery.picked_up"
	EventDeliveryFailed     = "locker_delivery.delivery_failed"
	EventExpired            = "locker_delivery.expired"
	EventCancelled          = "locker_delivery.cancelled"
	EventCorrectionReopened = "locker_delivery.correction_reopened"
	EventPickupCodeChanged  = "locker_delivery.pickup_code_changed"
)

// addDeliveryEvent writes one event of a delivery for those of its provider's endpoints
// that want it. Codes are in it: it goes to the partner that made the delivery
// and to no other.
func (s *core) addDeliveryEvent(v cloud.View, ch *cloud.Changes, event string, at time.Time, d cloud.Delivery, o *cloud.Opening, rot *Rotation) error {
	if s.cfg.Webhooks == nil {
		return nil
	}
	var trace string
	if o != nil {
		trace = o.Trace
	}
	out, err := s.cfg.Webhooks.FanOutToProvider(v, cloud.ProviderEvent{BusinessID: d.BusinessID, Trace: trace, ProviderID: d.ProviderID, Channel: cloud.ChannelLocker, Event: event, Prefix: eventPrefix,
		ReferenceType: "locker_delivery", ReferenceID: d.Number, OccurredAt: at, Test: !d.Livemode,
		Body: func(head cloud.EventHead) (any, error) { return s.eventBody(v, head, d, o, rot) }})
	ch.Outbox = append(ch.Outbox, out...)
	return err
}

func (s *core) eventBody(v cloud.View, head cloud.EventHead, d cloud.Delivery, o *cloud.Opening, rot *Rotation) (eventBody, error) {
	p, err := v.Provider(d.ProviderID)
	if err != nil {
		return eventBody{}, err
	}
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return eventBody{}, err
	}
	dev, err := v.Device(d.DeviceID)
	if err != nil {
		return eventBody{}, err
	}
	codes, err := s.openCodes(d)
	if err != nil {
		return eventBody{}, err
	}
	l := biz.Location()
	b := eventBody{EventHead: head, Provider: providerBody{p.ID, p.Code, p.Name}, Livemode: d.Livemode}
	b.Data = eventData{
		Delivery: eventDelivery{DeliveryID: d.ID, DeliveryNumber: d.Number, ReferenceNumber: d.Reference, Status: d.Status, Courier: d.Courier, Recipient: recipient(d.Recipient), Purpose: d.Purpose, Sender: senderBody(d.Sender)},
		Locker: eventLocker{DeviceID: dev.ID, DeviceCode: dev.Code, DeviceName: dev.Name, DeviceType: dev.Type, Address: dev.Address,
			Latitude: dev.Latitude, Longitude: dev.Longitude, Timezone: dev.Timezone},
		Packages: []eventPackage{}, PickupCodeActive: d.PickupCodeActive, ConfirmedBy: cloud.OrNull(d.ConfirmedBy), Rotation: rot, DueAt: cloud.Stamp(d.DueAt, l),
		DepositedAt: cloud.Stamp(d.DepositedAt, l), DepositedEarliest: cloud.Stamp(d.DepositedEarliest, l), DepositedLatest: cloud.Stamp(d.DepositedLatest, l), PickedUpAt: cloud.Stamp(d.PickedUpAt, l), ExpiredAt: cloud.Stamp(d.ExpiredAt, l),
		CancelledAt: cloud.Stamp(d.CancelledAt, l), CancelReason: d.CancelReason, CancelledBy: d.CancelledBy, FailureCode: d.FailureCode,
	}
	b.Data.DeliveryCode, b.Data.PickupCode = shownCodes(d, codes)
	b.Data.Handover = handoverBody(d, l)
	if !d.PickedUpAt.IsZero() {
		b.Data.DueAt, b.Data.ConfirmedBy = nil, nil
		b.Data.PickedUpBy = &pickedUpBy{d.PickedUpBy, d.PickedUpMethod}
	}
	for _, p := range d.Packages {
		b.Data.Packages = append(b.Data.Packages, eventPackage{p.TrackingNumber, cloud.OrNull(p.Reference), cloud.OrNull(p.GridID), p.Status, p.FailureCode})
	}
	if d.Status == cloud.DeliveryExpired {
		b.Data.ExpiredKind = d.ExpiredKind
	}
	if o != nil {
		cells, err := cellsOf(v, d.DeviceID, *o)
		if err != nil {
			return eventBody{}, err
		}
		b.Data.Correction = s.correctionBody(d, o, biz)
		b.Data.Opening = openingBody(*o, cells, l)
	}
	return b, nil
}

func cellsOf(v cloud.View, d cloud.DeviceID, o cloud.Opening) (map[uint]cloud.Compartment, error) {
	cells := make(map[uint]cloud.Compartment, len(o.Doors))
	for _, od := range o.Doors {
		c, err := v.Compartment(d, od.Door)
		if err != nil {
			return nil, fmt.Errorf("compartment %d of device %d: %w", od.Door, d, err)
		}
		cells[od.Door] = c
	}
	return cells, nil
}

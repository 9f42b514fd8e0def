package locker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Webhooks are the webhook subscriptions to events of device orders and of
// locker deliveries.
type Webhooks interface {
	// FanOut returns the outbox writes for the subscribers of events.
	FanOut(v cloud.View, events ...cloud.AccountEvent) ([]cloud.OutboxWrite, error)
	// FanOutToProvider returns the outbox writes for a provider's endpoints.
	FanOutToProvider(v cloud.View, e cloud.ProviderEvent) ([]cloud.OutboxWrite, error)
}

// Parcels sends what happens to parcels without an order to their subscribers.
type Parcels interface {
	// FanOutParcel returns the outbox writes for the subscribers of news about a parcel.
	FanOutParcel(v cloud.View, news cloud.TrackingNews) ([]cloud.OutboxWrite, error)
}

// fanOutParcels adds what subscribers of shipments get of events of theirs, and of those that ch takes back.
func (s *core) fanOutParcels(v cloud.View, ch *cloud.Changes, shipments []cloud.Shipment, events []cloud.TimelineEvent) error {
	if s.cfg.Parcels == nil || len(events)+len(ch.Withdrawn) == 0 {
		return nil
	}
	for _, x := range shipments {
		news := cloud.TrackingNews{Shipment: x}
		for _, ref := range ch.Withdrawn {
			if ref.ShipmentID == x.ID {
				news.Withdrawn = append(news.Withdrawn, ref)
			}
		}
		for _, e := range events {
			if e.ShipmentID == x.ID {
				news.Events = append(news.Events, e)
			}
		}
		out, err := s.cfg.Parcels.FanOutParcel(v, news)
		if err != nil {
			return err
		}
		ch.Outbox = append(ch.Outbox, out...)
	}
	return nil
}

// Events of device orders, and of exceptions at their compartments.
const (
	EventStored          = "device_order.stored"
	EventCollected       = "device_order.picked_up"
	EventRemoved         = "device_order.removed"
	EventOverdue         = "device_order.overdue"
	EventExceptionOpened = "device_order.exception_opened"
	EventExceptionClosed = "device_order.exception_closed"
)

// DeviceOrderBody is a device order in webhooks of accounts. No code is in it.
type DeviceOrderBody struct {
	ID            cloud.DeviceOrderID `json:"id"`
	Kind          string              `json:"kind"`
	Status        string              `json:"status"`
	NextActor     *string             `json:"next_actor"`
	DeviceType    string              `json:"device_type"`
	DeviceID      cloud.DeviceID      `json:"device_id"`
	DeviceName    string              `json:"device_name"`
	GridCode      string              `json:"grid_code"`
	Reference     *string             `json:"reference_number"`
	OrderID       *cloud.OrderID      `json:"order_id"`
	ExternalID    *string             `json:"external_order_id"`
	RemovalReason *string             `json:"removal_reason"`
	DueAt         *string             `json:"due_at"`
	OverdueAt     *string             `json:"overdue_at"`
	StoredAt      *string             `json:"stored_at"`
	// StoredEarliest and StoredLatest bound a deposit whose moment was not seen.
	StoredEarliest *string `json:"stored_earliest,omitempty"`
	StoredLatest   *string `json:"stored_latest,omitempty"`
	EndedAt        *string `json:"ended_at"`
}

// ExceptionBody is an exception in webhooks of accounts.
type ExceptionBody struct {
	ID         cloud.ExceptionID `json:"id"`
	Type       string            `json:"type"`
	Severity   string            `json:"severity"`
	Status     string            `json:"status"`
	Resolution *string           `json:"resolution_action"`
	DeviceID   cloud.DeviceID    `json:"device_id"`
	GridCode   string            `json:"grid_code"`
}

// RegistryData is the data of the events of device orders. Only an exception at
// a door with no parcel has no device order.
type RegistryData struct {
	Order     *DeviceOrderBody `json:"device_order"`
	Exception *ExceptionBody   `json:"exception,omitempty"`
}

// registryNews is a change of the registry that accounts may receive: the
// rows as they were then.
type registryNews struct {
	event     string
	at        time.Time
	order     *cloud.DeviceOrder
	exception *cloud.Exception
	// earliest and latest bound the deposit of the order's package, zero when it
	// was seen.
	earliest, latest time.Time
}

// noteStatus notes the event for the new status of a row of the registry. A
// parcel that was overdue and has more time was stored before.
func (w *rows) noteStatus(row any) {
	var n registryNews
	switch r := row.(type) {
	case *cloud.DeviceOrder:
		was := w.status[row]
		if w.status[row] = r.Status; was == r.Status || was == "overdue" && r.Status == "stored" {
			return
		}
		c := *r
		n.order = &c
		switch r.Status {
		case "stored":
			n.event, n.at = EventStored, r.StoredAt
		case "overdue":
			n.event, n.at = EventOverdue, r.OverdueAt
		case "picked_up":
			n.event, n.at = EventCollected, r.EndedAt
		case "removed":
			n.event, n.at = EventRemoved, r.EndedAt
		default:
			return
		}
	case *cloud.Exception:
		was := w.status[row]
		if w.status[row] = r.Status; was == r.Status {
			return
		}
		c := *r
		n.exception, n.event, n.at = &c, EventExceptionClosed, r.ClosedAt
		if r.Status == "open" {
			n.event, n.at = EventExceptionOpened, r.OpenedAt
		}
	default:
		return
	}
	w.registry = append(w.registry, n)
}

// addAccountEvents sends the business's receivers what the registry noted. A
// carrier's own cabinet reports to that carrier alone, and a cabinet for tests
// to no receiver.
func (w *rows) addAccountEvents(ch *cloud.Changes) error {
	if w.s.cfg.Webhooks == nil || w.device.OwnerProviderID != 0 || !w.device.Livemode || len(w.registry) == 0 {
		return nil
	}
	var events []cloud.AccountEvent
	for _, n := range w.registry {
		e, err := w.registryEvent(n)
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	out, err := w.s.cfg.Webhooks.FanOut(w.v, events...)
	ch.Outbox = append(ch.Outbox, out...)
	return err
}

// registryEvent is the event of a piece of news. It is about the customer whose
// order rests in the compartment.
func (w *rows) registryEvent(n registryNews) (cloud.AccountEvent, error) {
	e := cloud.AccountEvent{BusinessID: w.device.BusinessID, Settings: []string{cloud.HookDeviceOrder}, Event: n.event, ID: "DOE-", ReferenceType: "device_order", OccurredAt: n.at}
	if x := n.exception; x != nil && x.DeviceOrderID != 0 {
		rows, err := w.deviceOrders(x.DeliveryID)
		if err != nil {
			return e, err
		}
		if i := slices.IndexFunc(rows, func(o *cloud.DeviceOrder) bool { return o.ID == x.DeviceOrderID }); i >= 0 {
			n.order = rows[i]
		}
	}
	var parcel cloud.Order
	if n.order == nil {
		e.ReferenceID = fmt.Sprint("exception-", n.exception.ID)
	} else {
		e.ReferenceID = fmt.Sprint(n.order.ID)
		d, err := w.delivery(n.order.DeliveryID)
		if err == nil && d != nil && d.DepositedAt.Equal(n.order.StoredAt) {
			n.earliest, n.latest = d.DepositedEarliest, d.DepositedLatest
		}
		if err == nil && d != nil && d.OrderID() != 0 {
			parcel, err = w.v.Order(d.BusinessID, d.OrderID())
		}
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return e, err
		}
		e.CustomerID = parcel.CustomerID
	}
	e.Data = func(int64, bool) (any, error) {
		b, err := w.v.Business(w.device.BusinessID)
		return w.registryData(n, parcel, b.Location()), err
	}
	return e, nil
}

func (w *rows) registryData(n registryNews, parcel cloud.Order, l *time.Location) RegistryData {
	var out RegistryData
	if n.order != nil {
		out.Order = deviceOrderBody(w.device, n, parcel, l)
	}
	if x := n.exception; x != nil {
		out.Exception = &ExceptionBody{ID: x.ID, Type: x.Type, Severity: x.Severity, Status: x.Status, Resolution: cloud.OrNull(x.Resolution), DeviceID: x.DeviceID, GridCode: x.GridCode}
	}
	return out
}

// deviceOrderBody shows the device order of a piece of news.
func deviceOrderBody(d cloud.Device, n registryNews, parcel cloud.Order, l *time.Location) *DeviceOrderBody {
	o := n.order
	return &DeviceOrderBody{ID: o.ID, Kind: o.Kind, Status: o.Status, NextActor: cloud.OrNull(o.NextActor), DeviceType: d.Type, DeviceID: o.DeviceID,
		DeviceName: d.Name, GridCode: o.GridCode, Reference: cloud.OrNull(o.Reference), OrderID: cloud.OrNull(parcel.ID), ExternalID: cloud.OrNull(parcel.ExternalID),
		RemovalReason: cloud.OrNull(o.RemovalReason), DueAt: cloud.Stamp(o.DueAt, l), OverdueAt: cloud.Stamp(o.OverdueAt, l), StoredAt: cloud.Stamp(o.StoredAt, l),
		StoredEarliest: cloud.Stamp(n.earliest, l), StoredLatest: cloud.Stamp(n.latest, l), EndedAt: cloud.Stamp(o.EndedAt, l)}
}

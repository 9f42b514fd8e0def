package projection

import (
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Shopify's fulfilment events, twice: fulfillment_events as its older REST
// interface has them, which the published example and the list of events show,
// and fulfillment.events as the GraphQL Admin API of today has them. Ids are
// numbers there, so they are made from the event's id.
type (
	shopifyDocument struct {
		Events      []fulfillmentEvent `json:"fulfillment_events"`
		Fulfillment fulfillment        `json:"fulfillment"`
	}
	fulfillment struct {
		Events struct {
			Nodes []fulfillmentNode `json:"nodes"`
		} `json:"events"`
	}
	fulfillmentEvent struct {
		ID            uint64     `json:"id"`
		OrderID       *int64     `json:"order_id"`
		FulfillmentID *int64     `json:"fulfillment_id"`
		Status        string     `json:"status"`
		Message       string     `json:"message"`
		HappenedAt    otep.Time  `json:"happened_at"`
		CreatedAt     otep.Time  `json:"created_at"`
		UpdatedAt     otep.Time  `json:"updated_at"`
		Address       *string    `json:"address1"`
		City          *string    `json:"city"`
		Province      *string    `json:"province"`
		Country       *string    `json:"country"`
		Zip           *string    `json:"zip"`
		Latitude      *float64   `json:"latitude"`
		Longitude     *float64   `json:"longitude"`
		Estimated     *otep.Time `json:"estimated_delivery_at"`
	}
	// A node's times are in UTC.
	fulfillmentNode struct {
		ID         string     `json:"id"`
		Status     string     `json:"status"`
		Message    string     `json:"message"`
		HappenedAt otep.Time  `json:"happenedAt"`
		CreatedAt  otep.Time  `json:"createdAt"`
		Estimated  *otep.Time `json:"estimatedDeliveryAt"`
		Address    *string    `json:"address1"`
		City       *string    `json:"city"`
		Province   *string    `json:"province"`
		Country    *string    `json:"country"`
		Zip        *string    `json:"zip"`
		Latitude   *float64   `json:"latitude"`
		Longitude  *float64   `json:"longitude"`
	}
)

func shopify(p *Projector, t otep.Timeline, _ time.Time) any {
	return newShopifyDocument(p.fulfillments(t))
}

func newShopifyDocument(events []fulfillmentEvent) shopifyDocument {
	out := shopifyDocument{Events: events}
	out.Fulfillment.Events.Nodes = make([]fulfillmentNode, len(events))
	for i, e := range events {
		n := fulfillmentNode{ID: "gid://shopify/FulfillmentEvent/" + strconv.FormatUint(e.ID, 10), Status: strings.ToUpper(e.Status), Message: e.Message,
			HappenedAt: utc(e.HappenedAt), CreatedAt: utc(e.CreatedAt), Address: e.Address, City: e.City, Province: e.Province, Country: e.Country, Zip: e.Zip,
			Latitude: e.Latitude, Longitude: e.Longitude}
		if e.Estimated != nil {
			n.Estimated = new(utc(*e.Estimated))
		}
		out.Fulfillment.Events.Nodes[i] = n
	}
	return out
}

func shopifyEvents(p *Projector, t otep.Timeline) any { return p.fulfillments(t) }

func (p *Projector) fulfillments(t otep.Timeline) []fulfillmentEvent {
	events := actual(t)
	out := make([]fulfillmentEvent, len(events))
	for i, e := range events {
		f := fulfillmentEvent{ID: shopifyID(e.EventID), OrderID: orNull(t.Subject.OrderID), Status: otep.Project(e.StatusCode, e.Phase).Shopify,
			Message: p.label(e.StatusCode), HappenedAt: e.OccurredAt, CreatedAt: e.RecordedAt, UpdatedAt: e.RecordedAt, Estimated: t.EstimatedDeliveryAt}
		if l := e.Location; l != nil {
			f.Address, f.City, f.Province, f.Country, f.Zip = orNull(l.Address), orNull(l.City), orNull(l.Region), orNull(l.Country), orNull(l.PostalCode)
			if located(l) {
				f.Latitude, f.Longitude = l.Latitude, l.Longitude
			}
		}
		out[i] = f
	}
	return out
}

// shopifyID is 48 bits: such numbers survive in JavaScript.
func shopifyID(event string) (id uint64) {
	for _, b := range digest(6, "otep/shopify/", event) {
		id = id<<8 | uint64(b)
	}
	return id
}

package projection

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// BigCommerce: an order's status by number and name, and its shipment (orders
// V2). Where a shipment has its own tracking link, no link is generated.
type bigCommerceOrder struct {
	Approximate bool   `json:"approximate"`
	StatusID    int    `json:"status_id"`
	Status      string `json:"status"`
	Shipment    struct {
		Number      string  `json:"tracking_number"`
		Carrier     string  `json:"tracking_carrier"`
		Provider    string  `json:"shipping_provider"`
		Link        string  `json:"tracking_link"`
		DateCreated *string `json:"date_created"` // RFC 2822
		Comments    string  `json:"comments"`
		Display     string  `json:"shipping_provider_display_name"`
		Generated   string  `json:"generated_tracking_link"`
	} `json:"shipment"`
}

func bigCommerce(p *Projector, t otep.Timeline, _ time.Time) any {
	c := p.coarse(t)
	out := bigCommerceOrder{Approximate: true, StatusID: c.BigCommerceID, Status: c.BigCommerce}
	out.Shipment.Number, out.Shipment.Link, out.Shipment.Comments = number(t.Subject), p.page(t.Subject), c.label
	out.Shipment.Provider, out.Shipment.Display = c.carrier().bigCommerce, c.carrier().name
	if c.shipped != nil {
		s := c.shipped.OccurredAt.UTC().Format(time.RFC1123Z)
		out.Shipment.DateCreated = &s
	}
	return out
}

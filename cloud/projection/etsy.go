package projection

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Etsy: a receipt's status and its shipments (Open API v3). Its carriers have
// codes and no names.
type (
	etsyReceipt struct {
		Approximate bool           `json:"approximate"`
		Status      string         `json:"status"`
		IsShipped   bool           `json:"is_shipped"`
		Shipments   []etsyShipment `json:"shipments"`
	}
	etsyShipment struct {
		ID       *int64 `json:"receipt_shipping_id"`
		Notified *int64 `json:"shipment_notification_timestamp"` // epoch seconds
		Carrier  string `json:"carrier_name"`
		Code     string `json:"tracking_code"`
	}
)

func etsy(p *Projector, t otep.Timeline, _ time.Time) any {
	c := p.coarse(t)
	s := etsyShipment{Carrier: c.carrier().code, Code: number(t.Subject)}
	if c.shipped != nil {
		at := c.shipped.OccurredAt.Unix()
		s.Notified = &at
	}
	return etsyReceipt{Approximate: true, Status: c.Etsy, IsShipped: c.EtsyShipped, Shipments: []etsyShipment{s}}
}

package projection

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Walmart Marketplace: the status of an order line. A carrier that is not on
// their list is named as another one, which then needs a tracking address.
type (
	walmartOrder struct {
		Approximate bool `json:"approximate"`
		Lines       struct {
			Line []walmartLine `json:"orderLineStatus"`
		} `json:"orderLineStatuses"`
	}
	walmartLine struct {
		Status   string `json:"status"`
		Quantity struct {
			Unit   string `json:"unitOfMeasurement"`
			Amount string `json:"amount"`
		} `json:"statusQuantity"`
		Tracking walmartTracking `json:"trackingInfo"`
	}
	walmartTracking struct {
		ShippedAt *int64            `json:"shipDateTime"` // epoch milliseconds
		Carrier   map[string]string `json:"carrierName"`
		Method    string            `json:"methodCode"`
		Number    string            `json:"trackingNumber"`
		URL       string            `json:"trackingURL"`
	}
)

func walmart(p *Projector, t otep.Timeline, _ time.Time) any {
	c := p.coarse(t)
	line := walmartLine{Status: c.Walmart, Tracking: walmartTracking{Carrier: map[string]string{"otherCarrier": c.carrier().name}, Method: "Standard",
		Number: number(t.Subject), URL: p.page(t.Subject)}}
	line.Quantity.Unit, line.Quantity.Amount = "EACH", "1"
	if name := c.carrier().walmart; name != "" {
		line.Tracking.Carrier = map[string]string{"carrier": name}
	}
	if c.shipped != nil {
		ms := c.shipped.OccurredAt.UnixMilli()
		line.Tracking.ShippedAt = &ms
	}
	out := walmartOrder{Approximate: true}
	out.Lines.Line = []walmartLine{line}
	return out
}

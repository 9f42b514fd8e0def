package projection

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// WooCommerce: an order's status, and the entry of its shipment tracking
// extension.
type (
	wooOrder struct {
		Approximate bool          `json:"approximate"`
		Status      string        `json:"status"`
		Tracking    []wooTracking `json:"shipment_tracking"`
	}
	wooTracking struct {
		ID       string  `json:"tracking_id"`
		Provider string  `json:"tracking_provider"`
		Number   string  `json:"tracking_number"`
		Link     string  `json:"tracking_link"`
		Shipped  *string `json:"date_shipped"` // as the place of the event had it
	}
)

func wooCommerce(p *Projector, t otep.Timeline, _ time.Time) any {
	c := p.coarse(t)
	track := wooTracking{ID: hexDigest(16, "otep/woocommerce/", t.Subject.IdentityKey()), Provider: c.carrier().name, Number: number(t.Subject), Link: p.page(t.Subject)}
	if c.shipped != nil {
		day := c.shipped.OccurredAt.Format(time.DateOnly)
		track.Shipped = &day
	}
	return wooOrder{Approximate: true, Status: c.WooCommerce, Tracking: []wooTracking{track}}
}

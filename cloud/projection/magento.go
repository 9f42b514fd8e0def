package projection

import (
	"cmp"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Magento (Adobe Commerce): an order's state and status, and the tracks of its
// shipment. Times are in UTC without a zone.
type (
	magentoOrder struct {
		Approximate bool `json:"approximate"`
		Order       struct {
			State  string `json:"state"`
			Status string `json:"status"`
		} `json:"order"`
		Shipment struct {
			Tracks   []magentoTrack   `json:"tracks"`
			Comments []magentoComment `json:"comments"`
		} `json:"shipment"`
	}
	magentoTrack struct {
		Number  string `json:"track_number"`
		Title   string `json:"title"`
		Carrier string `json:"carrier_code"`
	}
	magentoComment struct {
		Comment   string `json:"comment"`
		CreatedAt string `json:"created_at"`
	}
)

func magento(p *Projector, t otep.Timeline, _ time.Time) any {
	c := p.coarse(t)
	out := magentoOrder{Approximate: true}
	out.Order.State, out.Order.Status = c.MagentoState, c.MagentoStatus
	out.Shipment.Tracks = []magentoTrack{{number(t.Subject), c.carrier().name, cmp.Or(c.carrier().magento, "custom")}}
	out.Shipment.Comments = []magentoComment{}
	if c.last != nil {
		out.Shipment.Comments = append(out.Shipment.Comments, magentoComment{c.label, c.last.OccurredAt.UTC().Format(time.DateTime)})
	}
	return out
}

package order

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
)

// ReplaceNumberInput replaces what an order is tracked by.
type ReplaceNumberInput struct {
	OrderID  cloud.OrderID `path:"order_id" json:"-"`
	LinkOnly bool          `json:"link_only" doc:"Keep the number and replace the secret of the recipient's link alone"`
}

// maxFormer is how many former numbers of an order its search knows.
const maxFormer = 20

// ReplaceNumber gives an order a new tracking number and its recipient a new link, for
// a number or link that reached the wrong people. The old link, what was given for
// it and the chat token end at once; the old number works for callers who see the
// order. A third party that has the order knows its packages by their numbers:
// until it ends only the link is replaced. Errors: ORDER_NOT_FOUND,
// HELD_BY_THIRD_PARTY.
func (s *Service) ReplaceNumber(ctx context.Context, c cloud.Caller, in ReplaceNumberInput) (OrderOutput, error) {
	if err := RequireOwners(c); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error { return replaceLink(d, in.LinkOnly) })
}

func replaceLink(d *Decision, linkOnly bool) error {
	d.repeats = true
	was := d.Order.Number
	d.Order.LinkGeneration++
	changes := map[string]cloud.FieldChange{"link_generation": {From: d.Order.LinkGeneration - 1, To: d.Order.LinkGeneration}}
	if !linkOnly {
		if err := replaceNumber(d); err != nil {
			return err
		}
		changes["tracking_number"] = cloud.FieldChange{From: was, To: d.Order.Number}
	}
	d.LogOperation(orderRenumbered, d.Order.Status, "", changes)
	d.AddEvent(eventRenumbered, "OLE-", func(t *eventWriter) (any, error) { return t.renumbered(was, linkOnly), nil })
	return nil
}

// replaceNumber gives the order and its packages new numbers. The timeline stays.
func replaceNumber(d *Decision) error {
	if d.Order.HeldByThirdParty() {
		return cloud.E(cloud.Conflict, CodeThirdParty)
	}
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	number, err := unusedNumber(d)
	if err != nil {
		return err
	}
	d.Order.FormerNumbers = append([]string{d.Order.Number}, d.Order.FormerNumbers...)
	d.Order.FormerNumbers = d.Order.FormerNumbers[:min(len(d.Order.FormerNumbers), maxFormer)]
	d.Order.Number, l.Shipment.Number, l.Changed = number, number, true
	packages := make([]cloud.OrderPackage, len(d.Order.Packages))
	for i, p := range d.Order.Packages {
		p.Number = packageNumber(number, i)
		packages[i] = p
	}
	d.Order.Packages = packages
	d.Index()
	return nil
}

// unusedNumber is a number that no parcel has: partners name theirs as they like.
func unusedNumber(d *Decision) (string, error) {
	for {
		number := cloud.NewTrackingNumber()
		if _, err := d.View.ShipmentByNumber(number); errors.Is(err, cloud.ErrNotFound) {
			return number, nil
		} else if err != nil {
			return "", err
		}
	}
}

// hookNumber is the data of order.tracking_number_changed. It holds no link: who
// may change the order reads recipient_link there.
type hookNumber struct {
	Order       hookOrder    `json:"order"`
	Previous    string       `json:"previous_tracking_number"`
	LinkOnly    bool         `json:"link_only"` // the number is as before
	TrackingURL string       `json:"tracking_url"`
	Operator    OperatorBody `json:"operator"`
	ChangedAt   *string      `json:"changed_at"`
}

func (t *eventWriter) renumbered(was string, linkOnly bool) hookNumber {
	return hookNumber{Order: t.order(), Previous: was, LinkOnly: linkOnly, TrackingURL: trackingURL(t.d.Caller.ForOthers(), t.d.Order.Number), Operator: t.actor(), ChangedAt: t.stamp(t.d.Now)}
}

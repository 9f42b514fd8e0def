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
	if err := owners(c); err != nil {
		return OrderOutput{}, err
	}
	return s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error { return w.replaceLink(in.LinkOnly) })
}

func (w *work) replaceLink(linkOnly bool) error {
	w.repeats = true
	was := w.o.Number
	w.o.LinkGeneration++
	changes := map[string]cloud.FieldChange{"link_generation": {From: w.o.LinkGeneration - 1, To: w.o.LinkGeneration}}
	if !linkOnly {
		if err := w.replaceNumber(); err != nil {
			return err
		}
		changes["tracking_number"] = cloud.FieldChange{From: was, To: w.o.Number}
	}
	w.did(orderRenumbered, w.o.Status, "", changes)
	w.tell(eventRenumbered, "OLE-", func(t *telling) (any, error) { return t.renumbered(was, linkOnly), nil })
	return nil
}

// replaceNumber gives the order and its packages new numbers. The timeline stays.
func (w *work) replaceNumber() error {
	if w.o.HeldByThirdParty() {
		return cloud.E(cloud.Conflict, codeThirdParty)
	}
	l, err := w.timeline()
	if err != nil {
		return err
	}
	number, err := w.unusedNumber()
	if err != nil {
		return err
	}
	w.o.FormerNumbers = append([]string{w.o.Number}, w.o.FormerNumbers...)
	w.o.FormerNumbers = w.o.FormerNumbers[:min(len(w.o.FormerNumbers), maxFormer)]
	w.o.Number, l.shipment.Number, l.changed = number, number, true
	packages := make([]cloud.OrderPackage, len(w.o.Packages))
	for i, p := range w.o.Packages {
		p.Number = packageNumber(number, i)
		packages[i] = p
	}
	w.o.Packages = packages
	w.index()
	return nil
}

// unusedNumber is a number that no parcel has: partners name theirs as they like.
func (w *work) unusedNumber() (string, error) {
	for {
		number := cloud.NewTrackingNumber()
		if _, err := w.v.ShipmentByNumber(number); errors.Is(err, cloud.ErrNotFound) {
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

func (t *telling) renumbered(was string, linkOnly bool) hookNumber {
	return hookNumber{Order: t.order(), Previous: was, LinkOnly: linkOnly, TrackingURL: trackingURL(t.w.c.ForOthers(), t.w.o.Number), Operator: t.actor(), ChangedAt: t.stamp(t.w.now)}
}

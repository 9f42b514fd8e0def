package locker

import (
	"errors"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// link is the secret of a shipment's link.
func (s recipients) link(v cloud.View, sh cloud.Shipment) (string, error) {
	if sh.OrderID == 0 {
		return s.cfg.Links.OfShipment(sh.ID, sh.LinkFrom), nil
	}
	o, err := v.Order(sh.BusinessID, sh.OrderID)
	return s.cfg.Links.OfOrder(o.ID, o.LinkGeneration), err
}

// byLinkOf reports whether a delivery is shown to, and opened for, who has a shipment's link:
// it waits with a package of the shipment inside.
func byLinkOf(sh cloud.Shipment, d cloud.Delivery) bool {
	return waits(d) && !d.IsOutgoing() && slices.ContainsFunc(d.PackagesOf(sh), func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment })
}

// shipmentOf is the shipment that a package of a live delivery belongs to, whose link its
// recipient has. Error: cloud.ErrNotFound.
func shipmentOf(v cloud.View, d cloud.Delivery, p cloud.Package) (cloud.Shipment, error) {
	if p.OrderID != 0 {
		return v.OrderShipment(d.BusinessID, p.OrderID)
	}
	return v.ShipmentByNumber(p.TrackingNumber)
}

// linkProof finds a delivery's shipment whose link has a key as its secret. The digits of a
// telephone number are not proof enough to be given a code that opens a door. Errors as of
// hasLink.
func (s recipients) linkProof(v cloud.View, d cloud.Delivery, key string) (cloud.Shipment, error) {
	for _, p := range d.Packages {
		sh, err := shipmentOf(v, d, p)
		if err == nil {
			err = s.hasLink(v, sh, d, key)
		}
		var refused *cloud.Error
		if !errors.Is(err, cloud.ErrNotFound) && (!errors.As(err, &refused) || refused.Kind != cloud.NotFound) {
			return sh, err
		}
	}
	return cloud.Shipment{}, cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
}

// hasLink refuses with DELIVERY_NOT_FOUND a key that is not the secret of a shipment's link,
// and a delivery that this link is not for; with DELIVERY_STATE_CONFLICT one that does not wait for its recipient.
func (s recipients) hasLink(v cloud.View, sh cloud.Shipment, d cloud.Delivery, key string) error {
	link, err := s.link(v, sh)
	switch {
	case err != nil:
		return err
	case len(d.PackagesOf(sh)) == 0 || !s.cfg.Links.IsLink(link, key) || waits(d) && !d.IsOutgoing() && !byLinkOf(sh, d):
		return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	case !waits(d), d.IsOutgoing():
		return conflict(d)
	}
	return nil
}

// prove finds a delivery that waits for the recipient whose proof p is, and gives what asks
// for that proof once more. Errors as of hasLink.
func (s recipients) prove(v cloud.View, d cloud.Delivery, p proof) (again func(cloud.View, cloud.Delivery) error, err error) {
	if p.byAccount() {
		again = func(v cloud.View, d cloud.Delivery) error { return isFor(v, p.caller, d) }
		return again, again(v, d)
	}
	sh, err := s.linkProof(v, d, p.key)
	return func(v cloud.View, d cloud.Delivery) error {
		now, err := v.ShipmentByNumber(sh.Number)
		if errors.Is(err, cloud.ErrNotFound) { // the order has another number, and link, by now
			return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
		}
		if err != nil {
			return err
		}
		return s.hasLink(v, now, d, p.key)
	}, err
}

// keepsLink reports whether a delivery that a shipment's number is announced for once more is
// for the one who has the link already: what else holds the number, and is not over, is for
// the same telephone and mail address.
func keepsLink(v cloud.View, sh cloud.Shipment, d cloud.Delivery) (bool, error) {
	before, err := v.DeliveriesOf(sh)
	keeps := false
	for _, x := range before {
		if isOver(x) {
			continue
		}
		if cloud.PhoneNumber(x.Recipient.Phone) != cloud.PhoneNumber(d.Recipient.Phone) || !strings.EqualFold(x.Recipient.Email, d.Recipient.Email) {
			return false, err
		}
		keeps = true
	}
	return keeps, err
}

// isOver reports whether nothing of a delivery lies in a compartment or may still come there.
func isOver(d cloud.Delivery) bool {
	return d.Status == cloud.DeliveryPickedUp || d.Status == cloud.DeliveryCancelled || d.Status == cloud.DeliveryExpired && !isOverdue(d)
}

package store

import "github.com/postern-io/postern/cloud"

var byID = sortable{"id": {}}

// Deliveries lists a part of a business's deliveries, by id, with their packages.
func (v lockerView) Deliveries(f cloud.DeliveryFilter) ([]cloud.Delivery, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	if f.DeviceID != 0 {
		c.and("device_id = $%d", int64(f.DeviceID))
	}
	if f.ProviderID != 0 {
		c.and("provider_id = $%d", int64(f.ProviderID))
	}
	if f.Status != "" {
		c.and("status = $%d", string(f.Status))
	}
	if f.Livemode != nil {
		c.and("livemode = $%d", *f.Livemode)
	}
	if f.Reference != "" {
		c.and("reference = $%d", f.Reference)
	}
	if f.TrackingNumber != "" {
		c.and("id IN (SELECT delivery_id FROM package WHERE LOWER(tracking_number) = LOWER($%d) AND tracking_number <> '')", f.TrackingNumber)
	}
	c.created("", f.From, f.To)
	sorts := byID
	if f.Of != "" {
		sorts = c.ofRecipient(f)
	}
	found, listed, err := part(v.snapshot, keyList{from: "delivery", columns: deliveryColumns, where: c, page: f.Page}, sorts, scanDelivery)
	for i := range found {
		if err != nil {
			break
		}
		found[i].Packages, err = list(v.ctx, v.q, sqlPackages, scanPackage, int64(found[i].ID))
	}
	return found, listed, err
}

// ofRecipient chooses deliveries of the person with a mail address, by an index for each part.
func (c *conditions) ofRecipient(f cloud.DeliveryFilter) sortable {
	c.and("livemode")
	switch f.Part {
	case cloud.RecipientWaiting:
		c.and("LOWER(TRIM(@mailto)) = $%d AND purpose = '' AND status IN ('delivered', 'expired') AND (status = 'delivered' OR expired_kind = 'pickup_overdue')", f.Of)
	case cloud.RecipientCollected:
		c.and("LOWER(TRIM(@mailto)) = $%d AND purpose = '' AND status = 'picked_up'", f.Of)
		c.and("picked_up_at >= $%d", f.CollectedFrom.UnixMilli())
		return sortable{"picked_up_at": {name: "picked_up_at"}}
	case cloud.RecipientBrings:
		c.and("LOWER(TRIM(@mailfrom)) = $%d AND purpose <> '' AND status IN ('created', 'doors_opened')", f.Of)
	}
	return byID
}

// Exceptions lists a part of a business's exceptions, by id.
func (v lockerView) Exceptions(f cloud.ExceptionFilter) ([]cloud.Exception, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	if f.DeviceID != 0 {
		c.and("device_id = $%d", int64(f.DeviceID))
	}
	if f.Status != "" {
		c.and("status = $%d", f.Status)
	}
	if f.Live {
		c.andNotMock(f.BusinessID)
	}
	return part(v.snapshot, keyList{from: "exception", columns: exceptionColumns, where: c, page: f.Page}, byID, scanException)
}

// Registry lists a part of a business's device orders, by id.
func (v lockerView) Registry(f cloud.DeviceOrderFilter) ([]cloud.DeviceOrder, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	if f.DeviceID != 0 {
		c.and("device_id = $%d", int64(f.DeviceID))
	}
	if f.Status != "" {
		c.and("status = $%d", f.Status)
	}
	if f.Kind != "" {
		c.and("kind = $%d", f.Kind)
	}
	if f.Live {
		c.andNotMock(f.BusinessID)
	}
	if f.Reference != "" {
		c.and("reference = $%d", f.Reference)
	}
	return part(v.snapshot, keyList{from: "device_order", columns: deviceOrderColumns, where: c, page: f.Page}, byID, scanDeviceOrder)
}

// andNotMock leaves out what stands at mock cabinets of a business.
func (c *conditions) andNotMock(b cloud.BusinessID) {
	c.and("device_id NOT IN (SELECT id FROM device WHERE business_id = $%d AND protocol = 'mock')", int64(b))
}
